//! Files that a command line names. No output may be an input or another output: one would destroy
//! the other.

use crate::show;
use rustix::io::Errno;
use sidon_traffic::files::{Disk, System, Target, directory_of};
use std::{
    error, fmt, fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

/// The name of standard output in an error.
const PRINTED: &str = "standard output";

/// What a command does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Read,
    /// Read at the start, and replaced by a new file later.
    Updated,
    /// Replaced, in a directory that the command creates.
    Made,
    Replaced,
    Appended,
}

/// The files of a command line, each with its option.
#[derive(Debug, Default)]
pub(crate) struct Files(Vec<(&'static str, PathBuf, Role)>);

impl Files {
    fn add<P: AsRef<Path>>(
        mut self,
        option: &'static str,
        paths: impl IntoIterator<Item = P>,
        role: Role,
    ) -> Self {
        self.0.extend(paths.into_iter().map(|path| (option, path.as_ref().to_owned(), role)));
        self
    }

    /// Files that the command only reads, and directories.
    pub(crate) fn reads<P: AsRef<Path>>(
        self,
        option: &'static str,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        self.add(option, paths, Role::Read)
    }

    /// Files that the command replaces in a directory that it creates.
    pub(crate) fn makes<P: AsRef<Path>>(
        self,
        option: &'static str,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        self.add(option, paths, Role::Made)
    }

    /// Files that the command reads and later replaces.
    pub(crate) fn updates<P: AsRef<Path>>(
        self,
        option: &'static str,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        self.add(option, paths, Role::Updated)
    }

    /// Files that the command replaces.
    pub(crate) fn replaces<P: AsRef<Path>>(
        self,
        option: &'static str,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        self.add(option, paths, Role::Replaced)
    }

    /// Files to which the command appends.
    pub(crate) fn appends<P: AsRef<Path>>(
        self,
        option: &'static str,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        self.add(option, paths, Role::Appended)
    }

    /// Standard output, to which the command prints text.
    pub(crate) fn prints(self) -> Self {
        self.add(PRINTED, ["-"], Role::Appended)
    }

    /// An error if two options name the same file and the command writes one of them, or if a file to
    /// replace is not a regular file. Nothing was changed before. Devices and pipes have no identity.
    /// Standard input and output have one if they are regular files.
    pub(crate) fn check(&self) -> Result<(), Misuse> {
        for (option, path, role) in &self.0 {
            if let Some(kind) = wrong_kind(path, *role) {
                let path = show::path(path);
                return Err(Misuse(format!(
                    "{option} {path} is {kind}, which no file can replace; type the name of a \
                     regular file"
                )));
            }
        }
        let identities: Vec<_> =
            self.0.iter().map(|(_, path, role)| identity(path, *role)).collect();
        for (later, (option, path, role)) in self.0.iter().enumerate() {
            for (earlier, (other, same, other_role)) in self.0[..later].iter().enumerate() {
                let written = match (role, other_role) {
                    (Role::Read, Role::Read) => continue,
                    (Role::Read, _) => other,
                    _ => option,
                };
                if identities[later].is_some() && identities[later] == identities[earlier] {
                    let (later, earlier) = (named(option, path), named(other, same));
                    return Err(Misuse(format!(
                        "{earlier} and {later} name the same file; type another file for {written}"
                    )));
                }
            }
        }
        let made = self.0.iter().filter(|(_, _, role)| *role == Role::Made);
        let made: Vec<_> = made.map(|(_, path, _)| path.as_path()).collect();
        for (option, path, role) in &self.0 {
            if let Some(why) = wrong_name(path, *role, &made) {
                return Err(Misuse(format!("{option} {} {why}", show::path(path))));
            }
        }
        Ok(())
    }
}

/// An option with its file, in an error.
fn named(option: &str, path: &Path) -> String {
    if option == PRINTED { option.to_owned() } else { format!("{option} {}", show::path(path)) }
}

/// A command line that cannot be right: exit status 2.
#[derive(Debug)]
pub(crate) struct Misuse(pub(super) String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for Misuse {}

/// What distinguishes a file from all others.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// Device and inode: links and other names of a file have the same.
    File([u64; 2]),
    /// The path of a file that does not exist yet.
    Missing(PathBuf),
}

fn identity(path: &Path, role: Role) -> Option<Identity> {
    if path == Path::new("-") {
        // What the process reads and writes under this name.
        let open = if role == Role::Read { "/dev/stdin" } else { "/dev/stdout" };
        return regular(Path::new(open));
    }
    match System.find(path).ok()? {
        Target::File(_, about) => Some(Identity::File([about.version[0], about.version[1]])),
        Target::Missing(path) => {
            // Directories that exist may have several names.
            let found = path.ancestors().skip(1).find_map(|above| {
                let real = match above.as_os_str().is_empty() {
                    true => fs::canonicalize("."),
                    false => fs::canonicalize(above),
                };
                Some(real.ok()?.join(path.strip_prefix(above).ok()?))
            });
            found.map(Identity::Missing)
        }
        Target::Stream(_) => regular(path),
    }
}

/// The identity of a file that is open under this path, such as /dev/fd/3, if it is a regular file.
fn regular(path: &Path) -> Option<Identity> {
    let about = fs::metadata(path).ok()?;
    about.is_file().then(|| Identity::File([about.dev(), about.ino()]))
}

/// Why no file can have this name, and what to type instead. The directories of `made` files may be
/// missing.
fn wrong_name(path: &Path, role: Role, made: &[&Path]) -> Option<String> {
    // The command creates the directory of a made file before the first packet, or fails.
    if path == Path::new("-") || matches!(role, Role::Read | Role::Made) {
        return None;
    }
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Some("is the name of a directory; type the name of a file".to_owned());
    }
    let parent = directory_of(path);
    if let Err(why) = System.find(path)
        && let Some(Errno::LOOP | Errno::NAMETOOLONG) = Errno::from_io_error(&why)
    {
        return Some(format!("cannot be a file: {why}; type another name"));
    }
    match fs::metadata(&parent) {
        Ok(about) if about.is_dir() => None,
        Ok(_) => Some(format!(
            "needs the directory {}, which is a file; type another name",
            show::path(&parent)
        )),
        Err(_) if made.iter().any(|made| made.starts_with(&parent)) => None,
        Err(why) => Some(format!(
            "needs the directory {}: {why}; create it, or type another name",
            show::path(&parent)
        )),
    }
}

/// The kind of an existing file that cannot be replaced. A pipe that is open already, such as
/// /dev/stdout, is written instead, and so is a device such as /dev/null.
fn wrong_kind(path: &Path, role: Role) -> Option<&'static str> {
    if role == Role::Read {
        return None;
    }
    if path == Path::new("-") {
        return (role != Role::Appended).then_some("standard output");
    }
    let kind = fs::metadata(path).ok()?.file_type();
    if kind.is_dir() {
        // One table of --csv that cannot be written does not keep the others back.
        return (role != Role::Made).then_some("a directory");
    }
    if role == Role::Appended {
        return None;
    }
    // An open pipe has no path.
    fs::canonicalize(path).ok()?;
    if kind.is_fifo() {
        Some("a named pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_do_not_exist_have_one_identity_for_all_names() {
        let folder = std::env::temp_dir().join(format!("sidon-paths-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("d")).unwrap();
        std::os::unix::fs::symlink("d", folder.join("link")).unwrap();
        std::os::unix::fs::symlink("d/x", folder.join("dangling")).unwrap();
        let of = |name: &str| identity(&folder.join(name), Role::Read);
        assert!(of("d/x").is_some());
        for same in ["d/../d/x", "link/x", "dangling", "./d//x"] {
            assert_eq!(of(same), of("d/x"), "{same}");
        }
        assert_ne!(of("d/y"), of("d/x"));
        assert_eq!(of("link/none/x"), of("d/none/x"));
        assert_eq!((of("d"), identity(Path::new("/dev/null"), Role::Read)), (None, None));
        fs::write(folder.join("d/x"), "").unwrap();
        fs::hard_link(folder.join("d/x"), folder.join("hard")).unwrap();
        for same in ["hard", "link/x", "dangling"] {
            assert_eq!(of(same), of("d/x"), "{same}");
        }
        let _ = fs::remove_dir_all(&folder);
    }
}
