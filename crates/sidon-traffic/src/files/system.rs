//! The file system of this machine.

use super::{About, Access, Disk, Output, Target};
use std::{
    ffi::OsStr,
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read, Write},
    path::Path,
    thread,
    time::Duration,
};

/// The most symbolic links in a row, as in the kernel.
const LINKS: usize = 40;

/// The number of tries to lock a file, and the time between two.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Disk for System {
    fn find(&self, path: &Path) -> io::Result<Target> {
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(ErrorKind::IsADirectory.into());
        }
        // The kernel refuses links that other users left in a shared directory: ask it first.
        match fs::metadata(path) {
            Ok(about) if about.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(about) if !about.is_file() => return Ok(Target::Stream(path.to_owned())),
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let mut real = path.to_owned();
        for _ in 0..LINKS {
            let about = match fs::symlink_metadata(&real) {
                Ok(about) => about,
                Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Target::Missing(real)),
                Err(why) => return Err(why),
            };
            if !about.is_symlink() {
                return Ok(Target::File(real, describe(&about)));
            }
            let parent = super::directory(&real);
            // A link such as /dev/stdout names an open file, which has no place for another file.
            if fs::canonicalize(parent)?.starts_with("/proc") {
                return Ok(Target::Stream(path.to_owned()));
            }
            real = parent.join(fs::read_link(&real)?);
        }
        Err(io::Error::other("more than 40 symbolic links in a row"))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(path)?))
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Output>> {
        if path.file_name().is_none_or(|name| name == OsStr::new("..")) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if access != Access::Umask {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let file = create_locked(path, &options)?;
        if let Access::Like(about) = access
            && let Err(why) = permit(&file, path, &about)
        {
            let _ = fs::remove_file(path);
            return Err(why);
        }
        Ok(Box::new(Plain { file, start: 0 }))
    }

    fn stream(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let is_stream = matches!(self.find(path)?, Target::Stream(_));
        let mut options = OpenOptions::new();
        options.append(true).create(!is_stream);
        let mut file = if is_stream { open_stream(path, options)? } else { options.open(path)? };
        let mut start = file.metadata()?.len();
        if start > 0 && is_cut(path) {
            file.write_all(b"\n")?;
            start += 1;
        }
        Ok(Box::new(Plain { file, start }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        link_or_rename(file, name, |file, name| fs::hard_link(file, name))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        // A directory may be writable and not readable, and some file systems cannot sync one.
        let Ok(directory) = File::open(directory) else { return Ok(()) };
        match directory.sync_all() {
            Err(why) if !matches!(why.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
                Err(why)
            }
            _ => Ok(()),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>> {
        let file = File::open(path)?;
        lock_soon(&file);
        Ok(Box::new(file))
    }
}

/// Links a file by `link`. On a file system without links, such as vfat, renames the file instead,
/// unless a file has the new name.
fn link_or_rename(
    file: &Path,
    name: &Path,
    link: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    match link(file, name) {
        Err(why) if matches!(why.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
            #[cfg(target_os = "linux")]
            {
                use rustix::fs::{CWD, RenameFlags, renameat_with};
                renameat_with(CWD, file, CWD, name, RenameFlags::NOREPLACE).map_err(|again| {
                    match io::Error::from(again) {
                        again if again.kind() == ErrorKind::AlreadyExists => again,
                        // The file system lacks this, too: the first error tells more.
                        _ => why,
                    }
                })
            }
            #[cfg(not(target_os = "linux"))]
            Err(why)
        }
        linked => linked,
    }
}

/// Locks a file, unless another process keeps it locked for a few seconds.
fn lock_soon(file: &File) {
    // Every user who may read the file may lock it for ever, so the wait has an end.
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            // A file system without locks: continue without one.
            Err(TryLockError::Error(_)) | Ok(()) => break,
        }
    }
}

/// Creates a file and locks it.
fn create_locked(path: &Path, options: &OpenOptions) -> io::Result<File> {
    for _ in 0..LOCK_TRIES {
        let file = options.open(path)?;
        lock_soon(&file);
        // `remove_stale` may have removed the file before it was locked.
        let named = fs::symlink_metadata(path).map(|about| describe(&about).version);
        let opened = describe(&file.metadata()?).version;
        if named.is_ok_and(|named| named[..2] == opened[..2]) {
            return Ok(file);
        }
    }
    Err(io::Error::other("other processes remove this file while it is created"))
}

/// Removes a temporary file that a killed process left. `false` if the file stays, because its writer
/// may still run: the file is locked or cannot be opened, or its file system has no locks.
pub fn remove_stale(path: &Path) -> io::Result<bool> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits() as i32);
    }
    let Ok(file) = options.open(path) else { return Ok(false) };
    if file.try_lock().is_err() {
        return Ok(false);
    }
    match fs::remove_file(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// Opens a device or a pipe. A named pipe that nobody reads is an error: to open it would wait for
/// ever.
#[cfg(unix)]
fn open_stream(path: &Path, mut options: OpenOptions) -> io::Result<File> {
    use rustix::{
        fs::{OFlags, fcntl_setfl},
        io::Errno,
    };
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_fifo() {
        return options.open(path);
    }
    let opened = options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
    let file = opened.map_err(|why| match why.raw_os_error() {
        Some(code) if code == Errno::NXIO.raw_os_error() => {
            io::Error::new(ErrorKind::BrokenPipe, "nobody reads this pipe; start its reader first")
        }
        _ => why,
    })?;
    // A write waits for a slow reader.
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

#[cfg(not(unix))]
fn open_stream(path: &Path, options: OpenOptions) -> io::Result<File> {
    options.open(path)
}

/// Whether a file ends within a line. A file that may not be read counts as whole.
fn is_cut(path: &Path) -> bool {
    let last = File::open(path).and_then(|mut file| {
        let mut last = [b'\n'];
        io::Seek::seek(&mut file, io::SeekFrom::End(-1))?;
        file.read_exact(&mut last).map(|()| last)
    });
    last.is_ok_and(|last| last != [b'\n'])
}

/// A file of the system.
struct Plain {
    file: File,
    /// Length of the file when it was opened.
    start: u64,
}

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for Plain {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        // Bytes after the own ones are of another process.
        if io::Seek::stream_position(&mut self.file)? != self.file.metadata()?.len() {
            return Ok(());
        }
        self.file.set_len(self.start + length)?;
        io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.start + length)).map(drop)
    }
}

#[cfg(unix)]
fn describe(about: &Metadata) -> About {
    use std::os::unix::fs::MetadataExt;
    let time = [about.mtime(), about.mtime_nsec()].map(|part| part as u64);
    About {
        version: [about.dev(), about.ino(), about.len(), time[0], time[1]],
        mode: about.mode() & 0o777,
        owner: [about.uid(), about.gid()],
    }
}

/// Gives the file at `path` the owner and the permissions of another one in its folder. If the group
/// cannot be set, the group gets the permissions of all others.
///
/// Refused in a folder such as `/tmp`, where all users may create files, if another user owns that
/// file. That user could have created it to become the owner of the new one. The kernel's
/// `fs.protected_regular` has the same rule.
#[cfg(unix)]
fn permit(file: &File, path: &Path, like: &About) -> io::Result<()> {
    use std::os::unix::fs::{PermissionsExt, fchown};
    let now = describe(&file.metadata()?);
    let [user, group] = like.owner;
    let folder = fs::metadata(super::directory(path))?;
    let is_shared = folder.permissions().mode() & 0o1002 == 0o1002;
    if is_shared && user != now.owner[0] && user != describe(&folder).owner[0] {
        let why = "another user owns the file, in a folder where all users may create files; remove \
                   the file, or type another name";
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    let mut mode = like.mode;
    if now.owner[1] != group && fchown(file, None, Some(group)).is_err() {
        mode = mode & 0o707 | (mode & 7) << 3;
    }
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    if now.owner[0] != user {
        // Only root may do this. For everybody else the new file belongs to its writer.
        let _ = fchown(file, Some(user), None);
    }
    Ok(())
}

#[cfg(not(unix))]
fn describe(about: &Metadata) -> About {
    let time = about.modified().ok();
    let time = time.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let time = time.map_or(0, |time| time.as_nanos() as u64);
    About { version: [0, 0, about.len(), time, 0], ..About::default() }
}

#[cfg(not(unix))]
fn permit(_: &File, _: &Path, _: &About) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_user_put_into_a_shared_folder_is_not_replaced() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let folder = std::env::temp_dir().join(format!("sidon-shared-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let [own, foreign] = ["own", "foreign"].map(|name| folder.join(name));
        let write = |path: &Path| {
            crate::files::replace(&System, path, Access::Umask, |out| out.write_all(b"new"))
        };
        [&own, &foreign].into_iter().for_each(|path| fs::write(path, "old").unwrap());
        if chown(&foreign, Some(65_534), None).is_err() {
            println!("SKIPPED: only root can give a file to another user");
            return fs::remove_dir_all(&folder).unwrap();
        }
        for (mode, refused) in [(0o1777, true), (0o1755, false), (0o777, false)] {
            fs::write(&foreign, "old").unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            let result = write(&foreign).map_err(|why| why.kind());
            let expected = if refused { Err(ErrorKind::PermissionDenied) } else { Ok(()) };
            assert_eq!(result, expected, "{mode:o}");
            let text = fs::read_to_string(&foreign).unwrap();
            assert_eq!(text, if refused { "old" } else { "new" }, "{mode:o}");
            write(&own).unwrap();
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "no temporary file is left");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_system_without_links_renames_and_replaces_nothing() {
        let folder = std::env::temp_dir().join(format!("sidon-links-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let [new, name] = ["new", "name"].map(|name| folder.join(name));
        // vfat refuses a link with EPERM, other file systems with EOPNOTSUPP.
        for code in [1, 95] {
            let refuse = |_: &Path, _: &Path| Err(io::Error::from_raw_os_error(code));
            fs::write(&new, "new").unwrap();
            fs::write(&name, "old").unwrap();
            let why = link_or_rename(&new, &name, refuse).unwrap_err();
            assert_eq!(why.kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&name).unwrap(), b"old");
            fs::remove_file(&name).unwrap();
            link_or_rename(&new, &name, refuse).unwrap();
            assert_eq!((fs::read(&name).unwrap(), new.exists()), (b"new".to_vec(), false));
            fs::remove_file(&name).unwrap();
        }
        let _ = fs::remove_dir_all(&folder);
    }
}
