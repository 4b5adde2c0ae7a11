//! Atomic writes of files.
//!
//! A write goes to a temporary file in the same directory, which is synced to the disk and then
//! renamed. A reader finds the old file or the new one, never a part. Only the owner may read the
//! files, because they contain addresses and a seed.

use anyhow::Context;
use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Write},
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
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let replace = || {
        let beside = beside(path, write)?;
        fs::rename(&beside, path).inspect_err(|_| remove(&beside))?;
        settle(path)
    };
    replace().with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a new file and returns its path: this one, or with a number if a file has that name.
pub(crate) fn create(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<PathBuf> {
    let create = || {
        let beside = beside(path, write)?;
        let named = name(&beside, path);
        remove(&beside);
        let named = named?;
        settle(&named)?;
        Ok::<_, io::Error>(named)
    };
    create().with_context(|| format!("cannot write {}", path.display()))
}

/// Links a file to the first free name.
fn name(file: &Path, path: &Path) -> io::Result<PathBuf> {
    for number in 1u32.. {
        let named = match number {
            1 => path.to_owned(),
            number => {
                let mut stem = path.file_stem().unwrap_or_default().to_owned();
                stem.push(format!("-{number}"));
                if let Some(extension) = path.extension() {
                    stem.push(".");
                    stem.push(extension);
                }
                path.with_file_name(stem)
            }
        };
        match fs::hard_link(file, &named) {
            Ok(()) => return Ok(named),
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Writes a temporary file in the same directory and returns its path.
fn beside(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or_else(|| io::Error::other("the path has no file name"))?);
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let fill = || {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut out = BufWriter::with_capacity(1 << 16, options.open(&beside)?);
        write(&mut out)?;
        out.into_inner()?.sync_all()
    };
    fill().inspect_err(|_| remove(&beside))?;
    Ok(beside)
}

/// Syncs the directory of a new name, on systems that can.
fn settle(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match File::open(directory.unwrap_or(Path::new("."))) {
        Ok(directory) if cfg!(unix) => directory.sync_all(),
        _ => Ok(()),
    }
}

/// Removes a temporary file. An error is ignored: the file does no harm.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("sidon-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.sidon");
        replace(&path, |out| out.write_all(b"one")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        let failed = replace(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(format!("{:#}", failed.unwrap_err()).contains("the disk is full"));
        assert_eq!(fs::read(&path).unwrap(), b"one");
        replace(&path, |out| out.write_all(b"two")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");

        let second = create(&path, |out| out.write_all(b"three")).unwrap();
        assert_eq!(second, folder.join("a-2.sidon"));
        assert_eq!(create(&path, |_| Ok(())).unwrap(), folder.join("a-3.sidon"));
        assert_eq!(fs::read(&path).unwrap(), b"two");
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a-2.sidon", "a-3.sidon", "a.sidon"], "nothing else is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
