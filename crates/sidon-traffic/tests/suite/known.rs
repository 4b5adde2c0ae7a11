//! The file of known sources is only added to: no line of the user is lost, whatever it has.

use crate::files::Folder;
use sidon_traffic::{
    files::{
        Disk, System,
        memory::{Fault, Memory},
    },
    known::{self, KnownError, LINE_MAX, Seen},
};
use std::{
    collections::HashSet,
    fs,
    io::Write,
    net::{IpAddr, Ipv4Addr},
    path::Path,
};

fn seen(addresses: &[&str]) -> Seen {
    addresses.iter().map(|text| text.parse::<IpAddr>().unwrap()).collect()
}

/// Adds addresses to a file, and returns its new text.
fn added(before: &[u8], addresses: &[&str]) -> String {
    let disk = Memory::default();
    disk.put("d/known", before);
    known::add(&disk, Path::new("d/known"), &mut seen(addresses)).unwrap();
    String::from_utf8_lossy(&disk.all()["d/known"]).into_owned()
}

#[test]
fn lines_comments_and_order_stay_and_new_addresses_follow() {
    let user = "# mine\n10.0.0.9  # the printer\n\n10.0.0.1\n   192.0.2.1\n";
    let run = ["10.0.0.1", "10.0.0.2", "10.0.0.2", "2001:db8::1", "9.9.9.9"];
    assert_eq!(added(user.as_bytes(), &run), format!("{user}9.9.9.9\n10.0.0.2\n2001:db8::1\n"));
    // A file that has everything is not written: not even its last line gets a line feed.
    for whole in ["10.0.0.1\n# end", "10.0.0.1", "10.0.0.1\n10.0.0.1\n"] {
        assert_eq!(added(whole.as_bytes(), &["10.0.0.1"]), whole);
    }
    // The last line has no line feed.
    assert_eq!(added(b"10.0.0.1", &["10.0.0.2"]), "10.0.0.1\n10.0.0.2\n");
    assert_eq!(added(b"# only words", &["10.0.0.2"]), "# only words\n10.0.0.2\n");
    assert_eq!(added(b"", &["10.0.0.2"]), "10.0.0.2\n");
    // The user's own duplicates stay.
    assert_eq!(added(b"10.0.0.1\n10.0.0.1\n", &["10.0.0.2"]), "10.0.0.1\n10.0.0.1\n10.0.0.2\n");
}

#[test]
fn line_ends_spellings_and_foreign_bytes_of_the_user_stay() {
    assert_eq!(added(b"10.0.0.1\r\n", &["10.0.0.1", "10.0.0.2"]), "10.0.0.1\r\n10.0.0.2\r\n");
    assert_eq!(added(b"#a\r\n10.0.0.1", &["10.0.0.2"]), "#a\r\n10.0.0.1\r\n10.0.0.2\r\n");
    assert_eq!(added("\u{feff}10.0.0.1\n".as_bytes(), &["10.0.0.1"]), "\u{feff}10.0.0.1\n");
    let spellings = "2001:DB8:0:0:0:0:0:1\n2001:0db8::0002\n::ffff:192.0.2.1\n";
    let run = ["2001:db8::1", "2001:db8::2", "::ffff:c000:201", "192.0.2.1"];
    assert_eq!(added(spellings.as_bytes(), &run), format!("{spellings}192.0.2.1\n"));
    let disk = Memory::default();
    disk.put("k", b"# \xff\x1b[31m\n10.0.0.1 # \xe9\n");
    known::add(&disk, Path::new("k"), &mut seen(&["10.0.0.1", "10.0.0.2"])).unwrap();
    assert_eq!(disk.all()["k"], b"# \xff\x1b[31m\n10.0.0.1 # \xe9\n10.0.0.2\n");
    assert_eq!(disk.mode("k"), Some(0o640), "permissions stay");
}

#[test]
fn a_first_file_has_a_title_and_every_address() {
    let disk = Memory::default();
    let path = Path::new("d/known");
    assert_eq!(known::add(&disk, path, &mut seen(&["10.0.0.2", "10.0.0.1"])).unwrap(), 2);
    let text = "# Source addresses that sidon watch has seen.\n10.0.0.1\n10.0.0.2\n";
    assert_eq!(disk.all()["d/known"], text.as_bytes());
    let read: Result<Vec<_>, _> = known::read(&disk, path).unwrap().collect();
    assert_eq!(read.unwrap().len(), 2);
}

#[test]
fn a_wrong_line_is_named_and_nothing_is_written() {
    let long = [b"10.0.0.1\n#".as_slice(), &vec![b'x'; LINE_MAX], b"\n10.0.0.3\n"].concat();
    let endless = vec![0; LINE_MAX * 2];
    for (text, says) in [
        (&b"10.0.0.1\nnot one\n"[..], "line 2: expected one IP address per line, got \"not one\""),
        (b"10.0.0.1 10.0.0.2\n", "line 1: expected one IP address per line"),
        (b"#\n\n10.0.0.0/8\n", "line 3: expected"),
        (b"fe80::1%eth0\n", "line 1: expected"),
        (b"\xff\n", "line 1: expected"),
        (b"\x1b[31m10.0.0.1\n", "got \"\\u{1b}[31m10.0.0.1\""),
        (&long, "line 2 is longer than 65536 bytes, the limit"),
        (&endless, "line 1 is longer than 65536 bytes, the limit"),
    ] {
        let disk = Memory::default();
        disk.put("k", text);
        let why = known::add(&disk, Path::new("k"), &mut seen(&["10.0.0.7"])).unwrap_err();
        assert!(why.to_string().contains(says), "{why}");
        assert_eq!(disk.all()["k"], text);
        let read: Result<Vec<_>, _> = known::read(&disk, Path::new("k")).unwrap().collect();
        assert_eq!(read.unwrap_err().to_string(), why.to_string());
    }
}

/// A disk on which another program writes to the file whenever it is read.
struct Busy {
    disk: Memory,
    changes: std::sync::atomic::AtomicU32,
}

impl Disk for Busy {
    fn read(&self, path: &Path) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        let input = self.disk.read(path)?;
        let left = self.changes.load(std::sync::atomic::Ordering::Relaxed);
        if left > 0 {
            self.changes.store(left - 1, std::sync::atomic::Ordering::Relaxed);
            let mut all = self.disk.all()["k"].clone();
            writeln!(all, "192.0.2.{left}")?;
            self.disk.put("k", &all);
        }
        Ok(input)
    }

    fn find(&self, path: &Path) -> std::io::Result<sidon_traffic::files::Target> {
        self.disk.find(path)
    }
    fn create(
        &self,
        path: &Path,
        access: sidon_traffic::files::Access,
    ) -> std::io::Result<Box<dyn sidon_traffic::files::Output>> {
        self.disk.create(path, access)
    }
    fn stream(&self, path: &Path) -> std::io::Result<Box<dyn sidon_traffic::files::Output>> {
        self.disk.stream(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        self.disk.rename(from, to)
    }
    fn link(&self, file: &Path, name: &Path) -> std::io::Result<()> {
        self.disk.link(file, name)
    }
    fn remove(&self, path: &Path) -> std::io::Result<()> {
        self.disk.remove(path)
    }
    fn create_directory(&self, directory: &Path) -> std::io::Result<()> {
        self.disk.create_directory(directory)
    }
    fn sync_directory(&self, directory: &Path) -> std::io::Result<()> {
        self.disk.sync_directory(directory)
    }
    fn lock(&self, path: &Path) -> std::io::Result<Box<dyn Send>> {
        self.disk.lock(path)
    }
}

#[test]
fn lines_that_another_program_adds_meanwhile_stay() {
    for changes in [1, 2, 5] {
        let busy = Busy { disk: Memory::default(), changes: changes.into() };
        busy.disk.put("k", b"10.0.0.1\n");
        let mut run = seen(&["10.0.0.1", "10.0.0.2", "192.0.2.1"]);
        known::add(&busy, Path::new("k"), &mut run).unwrap();
        let all = busy.disk.all();
        assert_eq!(all.len(), 1, "no temporary file is left");
        let text = String::from_utf8(all["k"].clone()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        let distinct: HashSet<_> = lines.iter().collect();
        assert_eq!((lines.len(), distinct.len()), (2 + changes as usize, 2 + changes as usize));
        assert!(text.contains("10.0.0.2\n"), "{text}");
    }
    let busy = Busy { disk: Memory::default(), changes: 200.into() };
    busy.disk.put("k", b"10.0.0.1\n");
    let why = known::add(&busy, Path::new("k"), &mut seen(&["10.0.0.2"])).unwrap_err();
    assert!(matches!(why, KnownError::Changing), "{why}");
    assert!(!String::from_utf8(busy.disk.all()["k"].clone()).unwrap().contains("10.0.0.2"));
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    let user = "# mine\n10.0.0.1\n";
    let whole = format!("{user}10.0.0.2\n");
    for at in 0..12 {
        for fault in [Fault::Once(at), Fault::From(at)] {
            let disk = Memory::default();
            disk.put("k", user.as_bytes());
            disk.fail(fault, at);
            let done = known::add(&disk, Path::new("k"), &mut seen(&["10.0.0.2"]));
            assert_eq!(done.is_err(), disk.mend());
            let text = String::from_utf8(disk.all()["k"].clone()).unwrap();
            assert!(text == whole || done.is_err() && text == user, "{fault:?}: {text}");
            assert_eq!(disk.all().len(), 1);
        }
    }
}

/// More addresses than any table of a run holds. The addresses of the run are in the file or not.
fn many(name: &str, address: impl Fn(u32) -> u32) {
    const MANY: u32 = 2_000_000;
    let folder = Folder::new(name);
    let path = folder.0.join("known");
    let mut user = b"# two million\n".to_vec();
    for number in 0..MANY {
        writeln!(user, "{}", Ipv4Addr::from_bits(address(number))).unwrap();
    }
    fs::write(&path, &user).unwrap();
    let of_run =
        (0..MANY + 100).step_by(7).map(|number| Ipv4Addr::from_bits(address(number)).into());
    let mut run: Seen = of_run.collect();
    let new = (MANY..MANY + 100).filter(|number| number % 7 == 0).count();
    assert_eq!(known::add(&System, &path, &mut run).unwrap(), new as u64);
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&user), "every line of the user stays");
    let lines = after.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count();
    assert_eq!(lines, 1 + MANY as usize + new);
    assert_eq!(folder.names(), ["known"]);
}

#[test]
fn two_million_consecutive_addresses_stay() {
    many("known-dense", |number| 0x0a00_0000 + number);
}

#[test]
fn two_million_addresses_in_as_many_subnets_stay() {
    many("known-sparse", |number| (number << 8) + (number % 251));
}

#[test]
fn pipes_and_devices_are_refused() {
    #[cfg(unix)]
    for device in ["/dev/zero", "/dev/null"] {
        let why = known::read(&System, Path::new(device)).err().unwrap();
        assert!(matches!(why, KnownError::NotAFile), "{why}");
        let why = known::add(&System, Path::new(device), &mut seen(&["10.0.0.1"])).unwrap_err();
        assert!(matches!(why, KnownError::NotAFile), "{why}");
    }
}
