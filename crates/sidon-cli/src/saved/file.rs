//! Saved files: read as far as their header announces, written atomically. Only the owner may read a
//! new one, because they contain addresses and a seed.

use crate::show;
use anyhow::{Context, ensure};
use sidon::saved;
use sidon_traffic::files::{self, Access, Disk};
use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

/// The most bytes of a saved file, unless the user allows more.
pub(crate) const MOST: u64 = 1 << 30;

/// A saved file that is open, and of which nothing was read. The program may confine itself now.
pub(crate) struct Opened {
    input: Box<dyn Read>,
    name: String,
}

impl Opened {
    /// Opens a saved file; `-` is standard input.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Opened { input: Box::new(io::stdin()), name: "standard input".to_owned() });
        }
        let name = show::path(path);
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        Ok(Opened { input: Box::new(file), name })
    }

    /// The bytes of the file, at most `most`.
    pub(crate) fn read(mut self, most: u64) -> anyhow::Result<Vec<u8>> {
        take(&mut *self.input, most).with_context(|| format!("cannot read {}", self.name))
    }
}

/// The bytes of a saved file, of at most `most` bytes; `-` is standard input.
pub(crate) fn read(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    Opened::open(path)?.read(most)
}

/// Reads as many bytes as the header announces, and one more if there is one. If the header is
/// wrong, reads the header alone: the reader of the bytes says what is wrong.
fn take(input: &mut dyn Read, most: u64) -> anyhow::Result<Vec<u8>> {
    let mut image = Vec::new();
    input.take(saved::START as u64).read_to_end(&mut image)?;
    let Ok(length) = saved::announced(&image) else { return Ok(image) };
    ensure!(
        length <= most,
        "its header announces {length} bytes, more than the limit of {most}; if the file is yours, \
         type --max-size {length}"
    );
    // Memory grows with the bytes that arrive, not with the announcement.
    let rest = length - image.len() as u64;
    input.take(rest.saturating_add(1)).read_to_end(&mut image)?;
    Ok(image)
}

/// Writes a file, and replaces the file of that name if it exists.
pub(crate) fn replace(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let written = files::replace(disk, path, Access::Owner, write);
    written.with_context(|| format!("cannot write {}", show::path(path)))
}

/// Writes a new file and returns its path: this one, or with a number if a file has that name.
pub(crate) fn create(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<PathBuf> {
    let written = files::create(disk, path, Access::Owner, write);
    written.with_context(|| format!("cannot write {}", show::path(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::{Seed, set::Bloom};

    /// A reader that counts, and never ends.
    struct Endless<'a> {
        start: &'a [u8],
        read: u64,
    }

    impl Read for Endless<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = match self.start.read(buffer)? {
                0 => buffer.len(),
                length => length,
            };
            self.read += length as u64;
            Ok(length)
        }
    }

    #[test]
    fn no_more_is_read_than_the_header_announces() {
        let shape = sidon::plan::bloom::shape(sidon::plan::Target::new(100, 0.01));
        let mut bloom = Bloom::new(shape.unwrap(), Seed(1)).unwrap();
        bloom.insert(&1u64).unwrap();
        let image = bloom.to_bytes();
        assert_eq!(take(&mut &image[..], MOST).unwrap(), image);
        for cut in [0, 3, 35, 36, 40, image.len() - 1] {
            assert_eq!(take(&mut &image[..cut], MOST).unwrap(), image[..cut]);
        }
        let mut endless = Endless { start: &image, read: 0 };
        assert_eq!(take(&mut endless, MOST).unwrap().len(), image.len() + 1);
        assert!(endless.read <= image.len() as u64 + 1, "{}", endless.read);
        let mut zeros = Endless { start: &[], read: 0 };
        assert_eq!((take(&mut zeros, MOST).unwrap().len(), zeros.read), (36, 36));
        let why = take(&mut &image[..], image.len() as u64 - 1).unwrap_err().to_string();
        assert!(why.contains(&format!("--max-size {}", image.len())), "{why}");
        // Lengths that no file has.
        for payload in [u64::MAX, u64::MAX - 100, 1 << 63, 1 << 31] {
            let mut lying = image.clone();
            lying[24..32].copy_from_slice(&payload.to_le_bytes());
            let mut endless = Endless { start: &lying, read: 0 };
            let refused = take(&mut endless, MOST);
            assert!(refused.is_err() || refused.unwrap().len() == 36, "{payload}");
            assert!(endless.read <= 36, "{payload}: {}", endless.read);
        }
    }
}
