//! Every error message of every command, whole: `errors.txt` has a command line, its standard error
//! and its exit status in brackets.
//!
//! `SIDON_BLESS=1 cargo test -p sidon-cli errors` writes the messages of this build to that file.

#![cfg(target_os = "linux")] // the texts of the system's errors are in the messages

use assert_cmd::Command;
use std::{
    fmt::Write,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

const EXPECTED: &str = include_str!("errors.txt");

/// A directory with the files that the command lines name, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sidon-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = Command::cargo_bin("sidon").unwrap();
        command
            .current_dir(&self.0)
            .env("SIDON_SANDBOX", "quiet")
            .env_remove("SIDON_TOKEN")
            .env_remove("SIDON_SEED")
            .env_remove("COLUMNS");
        let output = command.args(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap_or(-1), text)
    }

    fn make(&self, arguments: &[&str]) {
        let (code, text) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {text}");
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fill(folder: &Folder) {
    fs::create_dir(folder.0.join("directory")).unwrap();
    folder.write("text.txt", "hello\n");
    folder.write("empty.txt", "");
    let long = "1".repeat(65);
    for (name, secret) in [
        ("token.txt", "s3cret\n"),
        ("no-token.txt", ""),
        ("spaces.txt", "a b\n"),
        ("seed.txt", "0x4711\n"),
        ("long-seed.txt", &long),
    ] {
        folder.write(name, secret);
        fs::set_permissions(folder.0.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    folder.write("long-token.txt", "x".repeat(5_000));
    fs::set_permissions(folder.0.join("text.txt"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(folder.0.join("long-token.txt"), fs::Permissions::from_mode(0o600))
        .unwrap();
    folder.make(&["generate", "-w", "a.pcap", "-c", "500", "-s", "96"]);
    folder.make(&["generate", "-w", "few.pcap", "-c", "10"]);
    let capture = folder.read("a.pcap");
    folder.write("cut.pcap", &capture[..1000]);
    folder.write("header.pcap", &capture[..10]);
    let watch = ["watch", "-q", "-r", "a.pcap", "--memory", "256KiB"];
    for (name, more) in [
        ("a.sidon", &[][..]),
        ("seed.sidon", &["--seed", "9"]),
        ("subnet.sidon", &["--subnet", "10.0.0.0/24"]),
        ("inner.sidon", &["--inner"]),
        ("filter.sidon", &["tcp"]),
    ] {
        folder.make(&[&watch[..], &["--save", name], more].concat());
    }
    folder.make(&["watch", "-q", "-r", "a.pcap", "--memory", "512KiB", "--save", "large.sidon"]);
    let saved = folder.read("a.sidon");
    folder.write("cut.sidon", &saved[..5000]);
    let mut damaged = saved;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 255;
    folder.write("damaged.sidon", damaged);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sidon/tests/golden");
    for name in ["bloom", "counting", "top"] {
        let name = format!("{name}.sidon");
        fs::copy(golden.join(&name), folder.0.join(&name)).unwrap();
    }
    folder.write("long.sidon", [folder.read("bloom.sidon"), b"xx".to_vec()].concat());
    for (name, text) in MACHINES {
        folder.write(name, text);
    }
    folder.write("known.txt", "10.0.0.1\nnot an address\n");
    folder.write("scenario.toml", "x = 1\n");
}

const MACHINES: [(&str, &str); 10] = [
    ("syntax.toml", "states = [\"a\"\n"),
    ("key.toml", "state = [\"a\"]\n"),
    ("states.toml", "[events]\n"),
    ("events.toml", "states = [\"a\"]\n"),
    ("name.toml", "states = [\"a\"]\n[events]\nx = { open = \"b\" }\n"),
    ("action.toml", "states = [\"a\"]\n[events]\nx = { goto = \"a\" }\n"),
    ("timeout.toml", "states = [\"a\"]\n[timeouts]\na = 0\n[events]\nx = { open = \"a\" }\n"),
    ("packets.toml", "states = [\"a\"]\n[events]\nx = { open = \"a\" }\n"),
    (
        "when.toml",
        "states = [\"a\"]\n[events]\nx = { when = { protocol = \"upd\" }, open = \"a\" }\n",
    ),
    ("good.toml", "states = [\"a\"]\n[events]\nx = { when = { flags = \"S\" }, open = \"a\" }\n"),
];

/// The words of a command line; quotes keep spaces.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

#[test]
fn every_error_of_every_command_has_its_whole_text() {
    let folder = Folder::new("errors");
    fill(&folder);
    let bless = std::env::var_os("SIDON_BLESS").is_some();
    let mut found = String::new();
    for line in EXPECTED.lines().filter(|line| line.starts_with("$ sidon")) {
        let words = words(&line[2..]);
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let (code, text) = folder.run(&arguments);
        assert_ne!(code, 0, "{line}: no error");
        let _ = writeln!(found, "{line}\n{text}[{code}]\n");
        if !bless {
            plain(line, &text);
        }
    }
    if bless {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/errors.txt");
        return fs::write(path, found).unwrap();
    }
    let blocks = |text: &str| text.split("\n\n$ ").map(str::to_owned).collect::<Vec<_>>();
    for (found, expected) in blocks(&found).iter().zip(&blocks(EXPECTED)) {
        assert_eq!(found.trim(), expected.trim());
    }
    assert_eq!(found.trim(), EXPECTED.trim());
}

/// What holds for every message: it starts with its sender, no clause comes twice, numbers are
/// short, and no text of Rust's parsers is left.
fn plain(line: &str, text: &str) {
    let starts = ["sidon: ", "error: "].iter().any(|start| text.starts_with(start));
    let help = text.contains("\nUsage: sidon");
    assert!(starts || help, "{line}: {text}");
    for part in text.lines() {
        let clauses: Vec<&str> = part.split(": ").filter(|clause| clause.len() > 8).collect();
        let twice = clauses.windows(2).any(|pair| pair[0] == pair[1]);
        assert!(!twice, "{line}: a clause comes twice: {part}");
        let digits = part.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
        assert!(digits <= Some(20), "{line}: {part}");
    }
    for rust in ["found in string", "invalid float", "invalid socket", "..=", "e0 ", "NaN is NaN"] {
        assert!(!text.contains(rust), "{line}: {rust:?} in {text}");
    }
}

/// Words that the parser of the command line quotes in its errors.
#[test]
fn an_error_quotes_a_part_of_a_long_word() {
    let folder = Folder::new("words");
    let long = "x".repeat(70_000);
    for line in [
        "@",
        "watch --@",
        "watch -r a.pcap --memory @",
        "watch -r a.pcap --seed @",
        "watch -r a.pcap --subnet @",
        "watch -r a.pcap --rotate=@",
        "plan member --keys @",
        "generate -w - --mix @",
        "lab @",
    ] {
        let words: Vec<String> = line.split(' ').map(|word| word.replace('@', &long)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (code, text) = folder.run(&words);
        assert_eq!(code, 2, "{line}: {}", &text[..text.len().min(1_000)]);
        assert!(text.len() < 1_000 && text.contains(&long[..50]), "{line}: {} bytes", text.len());
    }
}
