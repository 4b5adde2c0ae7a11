//! Files are replaced as a whole or not at all: on a disk in memory that fails at each operation in
//! turn, and on the real one.

use sidon_traffic::files::{
    self, Access, Disk, System, Target,
    memory::{Fault, Memory},
};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// A directory for one test, removed at its end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sidon-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let each = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            each.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Content of several buffers, so that it takes several writes.
fn long(byte: u8) -> Vec<u8> {
    vec![byte; 300_000]
}

fn path() -> &'static Path {
    Path::new("d/a")
}

type Files = BTreeMap<String, Vec<u8>>;

/// Runs an operation with each fault in turn and a power cut after each. `check` sees what is left.
fn at_every_fault(
    operate: impl Fn(&Memory) -> io::Result<()>,
    before: impl Fn() -> Memory,
    check: impl Fn(&Files, bool),
) {
    let sound = before();
    operate(&sound).unwrap();
    let operations = sound.operations();
    assert!(operations > 4, "{operations}");
    check(&sound.all(), true);
    for fault in (0..operations).flat_map(|at| [Fault::Once(at), Fault::From(at)]) {
        let disk = before();
        disk.fail(fault, operations);
        let done = operate(&disk);
        assert!(disk.mend() && done.is_err(), "{fault:?}: {done:?}");
        let left = disk.all();
        assert!(left.keys().all(|name| !name.contains(".new")), "{fault:?}: {:?}", left.keys());
        check(&left, false);
        for seed in 0..20 {
            check(&disk.after_power_cut(seed), false);
        }
    }
    for seed in 0..100 {
        check(&sound.after_power_cut(seed), true);
    }
}

#[test]
fn a_file_is_the_old_one_or_the_new_one_after_every_fault() {
    let before = || {
        let disk = Memory::default();
        disk.put("d/a", &long(1));
        disk
    };
    let write = |out: &mut dyn Write| out.write_all(&long(2));
    let check = |left: &Files, done: bool| {
        let content = &left["d/a"];
        assert!(*content == long(2) || !done && *content == long(1), "{} bytes", content.len());
    };
    at_every_fault(|disk| files::replace(disk, path(), Access::Owner, write), before, check);
    // A first file exists as a whole or not at all.
    let check = |left: &Files, done: bool| match left.get("d/a") {
        Some(content) => assert!(*content == long(2), "{} bytes", content.len()),
        None => assert!(!done),
    };
    at_every_fault(
        |disk| files::replace(disk, path(), Access::Owner, write),
        Memory::default,
        check,
    );
    at_every_fault(
        |disk| files::create(disk, path(), Access::Owner, write).map(drop),
        Memory::default,
        check,
    );
}

#[test]
fn a_file_of_the_same_name_stays_beside_a_new_one() {
    let before = || {
        let disk = Memory::default();
        disk.put("d/a", &long(1));
        disk.put("d/a-2", &long(1));
        disk
    };
    let check = |left: &Files, done: bool| {
        assert!(left["d/a"] == long(1) && left["d/a-2"] == long(1));
        match left.get("d/a-3") {
            Some(content) => assert!(*content == long(2)),
            None => assert!(!done),
        }
    };
    let write = |out: &mut dyn Write| out.write_all(&long(2));
    let create = |disk: &Memory| files::create(disk, path(), Access::Owner, write).map(drop);
    at_every_fault(create, before, check);
}

#[test]
fn a_writer_that_fails_or_panics_leaves_the_old_file_alone() {
    let folder = Folder::new("files-fail");
    let path = folder.0.join("a");
    fs::write(&path, "old").unwrap();
    let failed = files::replace(&System, &path, Access::Umask, |out| {
        out.write_all(&long(1))?;
        Err(io::Error::other("no more"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "no more");
    let panicked = std::panic::catch_unwind(|| {
        files::replace(&System, &path, Access::Umask, |_| panic!("a fault of the writer"))
    });
    assert!(panicked.is_err());
    assert_eq!((fs::read(&path).unwrap(), folder.names()), (b"old".to_vec(), vec!["a".to_owned()]));
}

#[test]
fn a_file_that_changed_meanwhile_is_left_alone() {
    let disk = Memory::default();
    disk.put("d/a", b"one");
    let Target::File(_, about) = disk.find(path()).unwrap() else { panic!("no file") };
    let replace = |old, disk: &Memory| {
        files::replace_version(disk, path(), old, Access::Umask, |out| out.write_all(b"two"))
    };
    disk.put("d/a", b"another");
    assert!(!replace(Some(about), &disk).unwrap());
    assert!(!replace(None, &disk).unwrap(), "it is not a first file");
    assert_eq!(disk.all(), BTreeMap::from([("d/a".to_owned(), b"another".to_vec())]));
    let Target::File(_, about) = disk.find(path()).unwrap() else { panic!("no file") };
    assert!(replace(Some(about), &disk).unwrap());
    assert_eq!(disk.all(), BTreeMap::from([("d/a".to_owned(), b"two".to_vec())]));
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn write(path: &Path, access: Access) -> io::Result<()> {
        files::replace(&System, path, access, |out| out.write_all(b"new"))
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn permissions_stay_and_private_files_are_private() {
        let folder = Folder::new("files-mode");
        let old = folder.0.join("old");
        for bits in [0o600, 0o640, 0o444, 0o666] {
            fs::write(&old, "old").unwrap();
            fs::set_permissions(&old, fs::Permissions::from_mode(bits)).unwrap();
            write(&old, Access::Owner).unwrap();
            assert_eq!((mode(&old), fs::read(&old).unwrap()), (bits, b"new".to_vec()));
            fs::remove_file(&old).unwrap();
        }
        write(&folder.0.join("private"), Access::Owner).unwrap();
        assert_eq!(mode(&folder.0.join("private")), 0o600);
        fs::write(folder.0.join("usual"), "").unwrap();
        write(&folder.0.join("new"), Access::Umask).unwrap();
        assert_eq!(mode(&folder.0.join("new")), mode(&folder.0.join("usual")));
    }

    #[test]
    fn a_link_stays_and_its_file_is_replaced() {
        let folder = Folder::new("files-link");
        let inner = folder.0.join("inner");
        fs::create_dir(&inner).unwrap();
        let [link, loops] = ["link", "loops"].map(|name| folder.0.join(name));
        symlink("inner/target", &link).unwrap();
        // First the target is missing, then it exists.
        for _ in 0..2 {
            write(&link, Access::Owner).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read(inner.join("target")).unwrap(), b"new");
            assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
        }
        assert_eq!(files::directory_of(&link), inner);
        symlink("loops", &loops).unwrap();
        assert!(write(&loops, Access::Owner).is_err());
        assert_eq!(folder.names(), ["inner", "link", "loops"]);
    }

    #[test]
    fn directories_are_refused_and_devices_are_written_in_place() {
        let folder = Folder::new("files-device");
        for wrong in [folder.0.clone(), folder.0.join("new/"), folder.0.join("none/a")] {
            assert!(write(&wrong, Access::Owner).is_err(), "{wrong:?}");
        }
        assert_eq!(folder.names(), [""; 0]);
        write(Path::new("/dev/null"), Access::Owner).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file(), "it is still a device");
        #[cfg(target_os = "linux")]
        {
            let why = write(Path::new("/dev/full"), Access::Owner).unwrap_err();
            assert_eq!(why.kind(), io::ErrorKind::StorageFull);
            assert!(!fs::metadata("/dev/full").unwrap().is_file());
        }
    }
}

#[test]
fn temporary_files_have_names_of_their_own() {
    assert!(files::is_temporary(".sidon-0123456789abcdef.new"));
    for other in ["a", ".sidon-x.new", ".sidon-20261116T052000Z.sidon", ".mine.new", ".sidon-.new"]
    {
        assert!(!files::is_temporary(other), "{other}");
    }
}
