//! Escape sequences, controls and marks of direction in names and texts never reach a terminal as they
//! are.

#![cfg(target_os = "linux")] // names of any bytes

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    process::{Command, Stdio},
};

/// A name that sets the title of a terminal, clears the screen, breaks the line, reverses the
/// direction, and is not UTF-8.
const HOSTILE: &[u8] =
    b"x\x1b]0;title\x07\x1b[2J\r\nsidon: all is well\x7f\xc2\x9b31m\xe2\x80\xaetxt\xe2\x81\xa6\xff\xfez";

/// A directory with a hostile name, removed at the end.
struct Folder {
    outer: PathBuf,
    inner: PathBuf,
}

impl Folder {
    fn new(name: &str) -> Self {
        let outer =
            std::env::temp_dir().join(format!("sidon-escapes-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&outer);
        let inner = outer.join(OsStr::from_bytes(HOSTILE));
        fs::create_dir_all(&inner).unwrap();
        Folder { outer, inner }
    }

    /// A hostile name with this end, in the hostile directory.
    fn name(&self, end: &str) -> OsString {
        let mut name = self.inner.join(OsStr::from_bytes(HOSTILE)).into_os_string();
        name.push(end);
        name
    }

    /// Runs a command. Words that begin with `@` are hostile names.
    fn run(&self, line: &str) -> Vec<u8> {
        let words = line.split(' ').map(|word| match word.strip_prefix('@') {
            Some(end) => self.name(end),
            None => word.into(),
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidon"));
        command.args(words).current_dir(&self.outer).stdin(Stdio::null());
        let output = command.env_remove("SIDON_TOKEN").output().unwrap();
        let all = [&output.stdout[..], b"|", &output.stderr].concat();
        assert!(output.status.code().is_some_and(|code| code < 6), "{line}: {output:?}");
        safe(line, &all);
        all
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.outer);
    }
}

/// Fails if a terminal would act on a character, or if a line looks like a message of the program.
fn safe(line: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes);
    let text = text.unwrap_or_else(|_| panic!("{line}: {}", bytes.escape_ascii()));
    let hidden = |c: char| c != '\n' && sidon_traffic::text::is_hidden(c);
    assert!(!text.contains(hidden), "{line}: {}", bytes.escape_ascii());
    assert!(!text.lines().any(|line| line.starts_with("sidon: all is well")), "{line}: {text}");
}

#[test]
fn hostile_names_are_printed_with_escapes() {
    let folder = Folder::new("names");
    folder.run("generate -w @a.pcap -c 2000 -s 96");
    folder.run("generate -w @dir/a.pcap -c 20");
    let said = folder.run("watch -r @a.pcap --save @a.sidon --csv @csv --known @known --events @e");
    assert!(said.starts_with(b"x") || said.windows(5).any(|part| part == b"\\x1b]"));
    fs::write(folder.name("cut.sidon"), &fs::read(folder.name("a.sidon")).unwrap()[..2_000])
        .unwrap();
    fs::write(folder.name("text"), "hello").unwrap();
    fs::create_dir(folder.name("folder")).unwrap();
    for line in [
        "watch -r @none",
        "watch -r @text",
        "watch -r @folder",
        "watch -r @a.pcap --json",
        "watch -r @a.pcap -q --save @none/a.sidon",
        "watch -r @a.pcap -q --save @folder",
        "watch -r @a.pcap -q --csv @text",
        "watch -r @a.pcap -q --events @none/e",
        "watch -r @a.pcap -q --known @text",
        "watch -r @a.pcap -q --known @folder",
        "watch -r @a.pcap -q --machine @text",
        "watch -r @a.pcap -q --machine @none",
        "watch -r @a.pcap -q --rotate 1s --save-dir @periods",
        "watch -r @a.pcap -q --rotate 1s --save-dir @text",
        "watch --netflow @x",
        "watch --netflow 127.0.0.1:0 --templates @text",
        "watch -i @eth",
        "watch -r @a.pcap tcp @x",
        "watch -r @a.pcap tcp --json@",
        "watch @x",
        "watch --@x",
        "@command",
        "--@option",
        "watch -r @a.pcap --seed @1",
        "watch -r @a.pcap --memory @1",
        "generate -w @b.pcap --mix @web=1",
        "generate -w @b.pcap --scenario @none",
        "generate -w @b.pcap --scenario @text",
        "generate -w @none/b.pcap",
        "show @a.sidon",
        "show @a.sidon --json",
        "show @cut.sidon",
        "show @none",
        "show @text",
        "merge @a.sidon @a.sidon -o @c.sidon",
        "merge @a.sidon @cut.sidon -o @c.sidon",
        "merge @a.sidon @text -o @none/c",
        "merge @text -o @c.sidon",
        "machine @none",
        "machine @text",
        "machine dot @text",
        "machine check @folder",
        "lab run @x",
        "lab run --quick 002.bf.base --out @text",
        "lab traffic @none",
        "lab traffic @folder",
        "man @text",
        "plan member --keys @1",
        "serve -r @none",
        "serve -r @a.pcap --token-file @none",
        "serve -r @a.pcap --token-file @text",
        "serve -r @none --save-dir @periods",
        "serve --demo --listen @1",
    ] {
        folder.run(line);
    }
    let temporary = fs::read_dir(&folder.inner).unwrap();
    let ends = |name: OsString| name.as_bytes().ends_with(b".new");
    assert_eq!(temporary.filter(|one| ends(one.as_ref().unwrap().file_name())).count(), 0);
}

#[test]
fn hostile_texts_in_files_are_printed_with_escapes_or_refused() {
    let folder = Folder::new("texts");
    folder.run("generate -w a.pcap -c 2000 -s 96");
    let escape = "\u{1b}[31m\u{202e}";
    // The name of a machine is the name of its file; its states have names of their own.
    let machine = "states = [\"a\"]\n[events]\nx = { when = { flags = \"S\" }, open = \"a\" }\n";
    fs::write(folder.name("m.toml"), machine).unwrap();
    folder.run("watch -r a.pcap --machine @m.toml --save m.sidon");
    folder.run("watch -r a.pcap --machine @m.toml --json");
    folder.run("show m.sidon");
    folder.run("show m.sidon --json");
    for text in [
        "states = [\"a\\u001b[31m\"]\n[events]\nx = { open = \"a\\u001b[31m\" }\n",
        "states = [\"a\"]\n[events]\n\"x\\u202e\" = { open = \"a\" }\n",
        &format!("states = [\"a\"] # {escape}\n[events]\nx = {{ goto = \"a\" }}\n"),
        &format!("{escape} = 1\n"),
        "states = [\"a\"]\n[events]\nx = { open = \"b\\u001b\" } # \u{9b}2J\n",
    ] {
        fs::write(folder.outer.join("m.toml"), text).unwrap();
        for line in ["machine m.toml", "machine dot m.toml", "watch -r a.pcap --machine m.toml"] {
            let said = folder.run(line);
            let said = String::from_utf8(said).unwrap();
            assert!(said.contains("m.toml:"), "{line}: {said}");
        }
    }
    for known in [format!("{escape}\n"), format!("10.0.0.1\n1.2.3.4{escape}\n")] {
        fs::write(folder.outer.join("known"), known).unwrap();
        folder.run("watch -r a.pcap --known known");
    }
    for text in
        [format!("name = \"{}\"\n", "\\u001b[2J"), format!("{escape}\n"), "x\u{7f} = 1\n".into()]
    {
        fs::write(folder.outer.join("s.toml"), text).unwrap();
        folder.run("generate -w b.pcap --scenario s.toml");
    }
    fs::write(folder.outer.join("t"), format!("{escape}\n")).unwrap();
    folder.run("watch --netflow 127.0.0.1:0 --templates t");
    // The texts of a saved file: its expression, and the names of machines.
    folder.run("watch -r a.pcap -q --save e.sidon tcp or udp");
    let mut image = fs::read(folder.outer.join("e.sidon")).unwrap();
    let at = image.windows(10).position(|part| part == b"tcp or udp").unwrap();
    image[at + 3] = 0x1b;
    image[at + 4] = b'[';
    fs::write(folder.outer.join("e.sidon"), sealed(&mut image)).unwrap();
    let shown = String::from_utf8(folder.run("show e.sidon")).unwrap();
    assert!(shown.contains("filter: tcp\\x1b[r udp") || shown.contains("damaged"), "{shown}");
    let shown = String::from_utf8(folder.run("show e.sidon --json")).unwrap();
    assert!(shown.contains("tcp\\u001b[r udp") || shown.contains("damaged"), "{shown}");
}

/// The bytes with the right checksum at their end.
fn sealed(image: &mut [u8]) -> &[u8] {
    let end = image.len() - 4;
    let mut checksum = !0u32;
    for &byte in &image[..end] {
        checksum ^= u32::from(byte);
        for _ in 0..8 {
            checksum = checksum >> 1 ^ (0xedb8_8320 & (checksum & 1).wrapping_neg());
        }
    }
    image[end..].copy_from_slice(&(!checksum).to_le_bytes());
    image
}
