//! File output: every file that the program writes passes through this module.
//!
//! [`replace`] writes a new file beside the old one, syncs it, and renames it. A reader finds the old
//! file or the new one, never a part. After an error the old file is untouched, and the temporary
//! file is removed:
//! ```text
//! .sidon-5f3c0a91d2e47b68.new --write, sync--> rename to the target --> sync the directory
//! ```
//! A killed process can leave its temporary file behind, which [`is_temporary`] recognizes. A process
//! locks its temporary file while it writes, so that [`remove_stale`] removes only those of others.
//!
//! The file system is behind the trait [`Disk`], so that tests can make the n-th operation fail.
//! [`System`] is the real one.

pub mod input;
#[doc(hidden)]
pub mod memory;
mod system;

pub use system::{System, remove_stale};

use sidon::Seed;
use std::{
    io::{self, BufWriter, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

/// Bytes that are collected before they are written.
const BUFFER: usize = 1 << 16;
/// The most files of one name that [`create`] numbers.
const NUMBERS: u32 = 10_000;

/// A file system, as far as output needs it.
pub trait Disk: Send + Sync {
    /// What a path names. Symbolic links are followed, so that a link stays and its file is written.
    fn find(&self, path: &Path) -> io::Result<Target>;
    /// Opens a file for reading.
    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;
    /// Creates a file, and locks it until the output is dropped. A file of that name is an error.
    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Output>>;
    /// Opens a file to write lines at its end. A missing file is created. If the last line of a
    /// regular file is cut, it gets its line feed first.
    fn stream(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    /// Renames a file. A file of the new name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a further name, or a new one on a file system without links. A file of the new
    /// name is an error.
    fn link(&self, file: &Path, name: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory and those above it, unless they exist.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;
    /// Makes new names in a directory durable.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
    /// Waits while another process has locked this file, for a few seconds at most. The lock ends
    /// with the returned value.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>>;
}

/// An open file.
pub trait Output: Write + Send {
    /// Makes the content durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Removes all bytes after the first `length` of those that were written to this output.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// The owner, the permissions and the version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct About {
    /// Numbers that differ between two files, and change when a file is written: device, inode,
    /// length, time of the last change in seconds and nanoseconds.
    pub version: [u64; 5],
    /// The permission bits.
    pub mode: u32,
    /// User and group.
    pub owner: [u32; 2],
}

/// What a path names, after symbolic links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Nothing yet. A new file gets this path.
    Missing(PathBuf),
    /// A regular file.
    File(PathBuf, About),
    /// A device or a pipe, which can only be written in place.
    Stream(PathBuf),
}

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The owner only.
    Owner,
    /// Those whom the user's umask allows.
    Umask,
    /// The users who may read another file.
    Like(About),
}

/// Writes a file, and replaces the file of that name if it exists. A new file can be read according
/// to `access`; the permissions of an old one stay.
///
/// A device or a pipe is written in place.
pub fn replace(
    disk: &dyn Disk,
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let (path, access) = match disk.find(path)? {
        Target::Missing(path) => (path, access),
        Target::File(path, about) => (path, Access::Like(about)),
        Target::Stream(path) => return buffered(disk.stream(&path)?, write).map(drop),
    };
    Temporary::write(disk, &path, access, write)?.rename(&path)
}

/// Writes the successor of the file that was found as `old` at this path, or a first file. `false`
/// if another program has changed or created the file meanwhile: it is then left alone.
pub fn replace_version(
    disk: &dyn Disk,
    path: &Path,
    old: Option<About>,
    access: Access,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<bool> {
    let new = Temporary::write(disk, path, old.map_or(access, Access::Like), write)?;
    match old {
        Some(about) if disk.find(path)? == Target::File(path.to_owned(), about) => {
            new.rename(path)?;
        }
        Some(_) => return Ok(false),
        None => match disk.link(&new.path, path) {
            Ok(()) => {
                drop(new);
                disk.sync_directory(directory(path))?;
            }
            Err(why) if why.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(why) => return Err(why),
        },
    }
    Ok(true)
}

/// Writes a new file and returns its path: this one, or one with a number if a file has that name.
pub fn create(
    disk: &dyn Disk,
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let new = Temporary::write(disk, path, access, write)?;
    let name = name(disk, &new.path, path)?;
    drop(new);
    disk.sync_directory(directory(path))?;
    Ok(name)
}

/// Whether this is the name of a temporary file of this module.
pub fn is_temporary(name: &str) -> bool {
    let number = name.strip_prefix(".sidon-").and_then(|rest| rest.strip_suffix(".new"));
    number.is_some_and(|number| {
        number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The directory in which a new file for this path will be created, after symbolic links.
pub fn directory_of(path: &Path) -> PathBuf {
    match System.find(path) {
        Ok(Target::Missing(path) | Target::File(path, _) | Target::Stream(path)) => {
            directory(&path).to_owned()
        }
        Err(_) => directory(path).to_owned(),
    }
}

/// The directory of a file.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes through a buffer, and returns the output without an unwritten byte.
fn buffered(
    output: Box<dyn Output>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Box<dyn Output>> {
    let mut buffer = BufWriter::with_capacity(BUFFER, output);
    match write(&mut buffer).and_then(|()| buffer.flush()) {
        Ok(()) => Ok(buffer.into_parts().0),
        Err(why) => {
            // Dropping the buffer would write the rest.
            drop(buffer.into_parts());
            Err(why)
        }
    }
}

/// Links a file to the first free name.
fn name(disk: &dyn Disk, file: &Path, path: &Path) -> io::Result<PathBuf> {
    for number in 1..=NUMBERS {
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
        match disk.link(file, &named) {
            Ok(()) => return Ok(named),
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, format!("{NUMBERS} files have that name")))
}

/// A complete file under a temporary name, which is removed when this value is dropped.
struct Temporary<'a> {
    disk: &'a dyn Disk,
    path: PathBuf,
    removed: bool,
    /// The open file, whose lock shows that its writer runs.
    output: Option<Box<dyn Output>>,
}

impl<'a> Temporary<'a> {
    /// Writes and syncs a file in the directory of `path`.
    fn write(
        disk: &'a dyn Disk,
        path: &Path,
        access: Access,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Self> {
        let beside = path.with_file_name(format!(".sidon-{:016x}.new", Seed::random()?.0 as u64));
        let output = disk.create(&beside, access)?;
        let mut new = Temporary { disk, path: beside, removed: false, output: None };
        new.output.insert(buffered(output, write)?).sync()?;
        Ok(new)
    }

    /// Gives the file its name.
    fn rename(mut self, path: &Path) -> io::Result<()> {
        self.disk.rename(&self.path, path)?;
        self.removed = true;
        self.disk.sync_directory(directory(path))
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.removed {
            // If even this fails, the next `serve` or `watch --save-dir` removes the file.
            let _ = self.disk.remove(&self.path);
        }
    }
}
