//! Saved files: read whole, written atomically. Only the owner may read a new one, because they
//! contain addresses and a seed.

use anyhow::Context;
use sidon_traffic::files::{self, Access, Disk};
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The bytes of a file; `-` is standard input.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::stdin().lock(), &mut bytes)
            .context("cannot read standard input")?;
        return Ok(bytes);
    }
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file, and replaces the file of that name if it exists.
pub(crate) fn replace(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let written = files::replace(disk, path, Access::Owner, write);
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a new file and returns its path: this one, or with a number if a file has that name.
pub(crate) fn create(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<PathBuf> {
    let written = files::create(disk, path, Access::Owner, write);
    written.with_context(|| format!("cannot write {}", path.display()))
}
