//! Source addresses that were seen in earlier runs: a text file, an address a line.

use anyhow::Context;
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, ErrorKind, Write},
    net::IpAddr,
    path::Path,
};

/// The addresses in the file; none if there is no file yet.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<IpAddr>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(why) => return Err(why).with_context(|| path.display().to_string()),
    };
    let mut addresses = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.with_context(|| path.display().to_string())?;
        let text = line.split('#').next().unwrap_or("").trim();
        if !text.is_empty() {
            let place = || format!("{}:{}: {text:?}", path.display(), number + 1);
            addresses.push(text.parse().with_context(place)?);
        }
    }
    Ok(addresses)
}

/// Writes the addresses, in order, in place of what the file held: all of them or none.
pub(super) fn write(path: &Path, addresses: impl Iterator<Item = IpAddr>) -> anyhow::Result<()> {
    let mut addresses: Vec<IpAddr> = addresses.collect();
    addresses.sort_unstable();
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let write = || {
        let mut file = BufWriter::new(File::create(&beside)?);
        writeln!(file, "# Source addresses that sidon watch has seen.")?;
        for address in &addresses {
            writeln!(file, "{address}")?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(&beside, path)
    };
    write().with_context(|| path.display().to_string())
}
