//! Source addresses of earlier runs: a text file with one address per line.

use anyhow::{Context, bail};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, ErrorKind, Write},
    net::IpAddr,
    path::Path,
};

/// The addresses in the file. A missing file is an empty list.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<IpAddr>> {
    let cannot =
        |what: &'static str| move || format!("cannot {what} the known sources {}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(why) => return Err(why).with_context(cannot("read")),
    };
    let mut addresses = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.with_context(cannot("read"))?;
        let text = line.split('#').next().unwrap_or("").trim();
        if !text.is_empty() {
            let Ok(address) = text.parse() else {
                let place = format!("{}:{}", path.display(), number + 1);
                bail!("{place}: expected one IP address per line, got {text:?}");
            };
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// Replaces the file by one with these addresses, in order. An error leaves the old file.
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
    write().with_context(|| format!("cannot write the known sources {}", path.display()))
}
