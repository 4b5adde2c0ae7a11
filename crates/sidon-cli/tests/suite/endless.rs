//! Files without an end, endless lines and headers that lie, in every place where a file is read. The
//! address space is limited, so a reader that reads everything ends with an abort.

#![cfg(target_os = "linux")] // /dev/zero and ulimit

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

/// KiB of address space for each command, unless a test sets another limit.
const ROOM: u64 = 1 << 20;

/// A directory for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sidon-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    /// A file with these bytes, then `zeros` zeros that take no space on the disk.
    fn sparse(&self, name: &str, bytes: &[u8], zeros: u64) {
        self.write(name, bytes);
        let file = fs::File::options().write(true).open(self.0.join(name)).unwrap();
        file.set_len(bytes.len() as u64 + zeros).unwrap();
    }

    /// Runs the command in limited memory, with an endless standard input that begins with `start`.
    fn run(&self, line: &str, start: &[u8]) -> Output {
        let script = format!("ulimit -v {ROOM}; exec {} {line}", env!("CARGO_BIN_EXE_sidon"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(&self.0).env_remove("SIDON_TOKEN");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let start = start.to_vec();
        let feeder = std::thread::spawn(move || {
            let _ = input.write_all(&start);
            while input.write_all(&[0; 1 << 16]).is_ok() {}
        });
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        output
    }

    /// Expects this status, and these words in the message.
    fn refuses(&self, line: &str, code: i32, words: &str) {
        self.refuses_after(line, b"", code, words);
    }

    fn refuses_after(&self, line: &str, start: &[u8], code: i32, words: &str) {
        let output = self.run(line, start);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
        assert!(said.lines().count() <= 4, "{line}: {said}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_reader_of_a_file_has_a_limit_and_names_it() {
    let folder = Folder::new("endless");
    assert!(folder.run("generate -w a.pcap -c 500 -s 96", b"").status.success());
    // A first line that is right, then a line of 400 MB.
    folder.sparse("line", b"10.0.0.1\n", 400 << 20);
    folder.sparse("comment", b"# a comment without an end", 400 << 20);
    for endless in ["/dev/zero", "line", "comment"] {
        let limit = "it is longer than 1048576 bytes, the limit";
        folder.refuses(&format!("machine {endless}"), 1, limit);
        folder.refuses(&format!("machine dot {endless}"), 1, limit);
        folder.refuses(&format!("watch -r a.pcap --machine {endless}"), 2, limit);
        folder.refuses(&format!("generate -w b.pcap --scenario {endless}"), 1, limit);
        let line = match endless {
            "line" => "line 1 is not a template",
            _ => "line 1 is longer than 8192 bytes, the limit",
        };
        let netflow = "--netflow 127.0.0.1:0";
        folder.refuses(&format!("watch {netflow} --templates {endless}"), 1, line);
        folder.refuses(&format!("serve {netflow} --templates {endless}"), 1, line);
        folder.refuses(&format!("show {endless}"), 1, "is not a saved file");
        folder.refuses(&format!("merge {endless} -o c.sidon"), 1, "is not a saved file");
    }
    folder.refuses("watch -r a.pcap --known line", 1, "line 2 is longer than 65536 bytes");
    folder.refuses("watch -r a.pcap --known comment", 1, "line 1 is longer than 65536 bytes");
    folder.refuses("watch -r a.pcap --known /dev/zero", 1, "it is a pipe or a device");
    folder.refuses("serve --demo --token-file /dev/zero", 1, "the token has more than 4096 bytes");
    folder.refuses("show -", 1, "is not a saved file");
    folder.refuses("lab traffic /dev/zero", 1, "has no capture");
    folder.refuses("watch -r /dev/zero", 1, "is not a capture");
    for left in ["b.pcap", "c.sidon"] {
        assert!(!folder.0.join(left).exists(), "{left}");
    }
}

#[test]
fn a_saved_file_is_read_as_far_as_its_header_says() {
    let folder = Folder::new("announced");
    assert!(folder.run("generate -w a.pcap -c 500 -s 96", b"").status.success());
    assert!(folder.run("watch -q -r a.pcap -m 256KiB --save a.sidon", b"").status.success());
    let whole = fs::read(folder.0.join("a.sidon")).unwrap();
    let announced = whole.len() as u64;
    let goes_on = format!("goes on after its {},", announced / 1_000);
    folder.sparse("more", &whole, 4 << 30);
    folder.refuses("show more", 3, &goes_on);
    folder.refuses("merge a.sidon more -o c.sidon", 3, &goes_on);
    folder.refuses_after("show -", &whole, 3, &goes_on);
    // A header that announces more than there is, more than is allowed, and more than there can be.
    let lying = |payload: u64| {
        let mut image = whole.clone();
        image[24..32].copy_from_slice(&payload.to_le_bytes());
        image
    };
    folder.write("cut", &lying(900 << 20));
    folder.refuses("show cut", 3, "cut is cut");
    folder.sparse("large", &lying(3 << 30), 3 << 30);
    folder.refuses(
        "show large",
        1,
        "more than the limit of 1073741824; if the file is yours, type --max-size",
    );
    folder.refuses("merge a.sidon large -o c.sidon", 1, "more than the limit of 1073741824");
    folder.refuses_after("show -", &lying(3 << 30), 1, "more than the limit of 1073741824");
    folder.write("never", &lying(u64::MAX));
    folder.refuses("show never", 3, "never is cut");
    folder.refuses("show a.sidon --max-size 1000", 1, "more than the limit of 1000");
    assert!(folder.run("show a.sidon", b"").status.success());
    assert!(!folder.0.join("c.sidon").exists());
}

#[test]
fn a_directory_of_saved_files_may_hold_anything() {
    let folder = Folder::new("anything");
    let names = ["20990101T000000Z", "20990101T000001Z", "20990101T000002Z", "20990101T000003Z"];
    let [pipe, directory, link, large] = names.map(|name| format!("sidon-{name}.sidon"));
    let made = Command::new("mkfifo").arg(folder.0.join(&pipe)).status().unwrap();
    assert!(made.success());
    fs::create_dir(folder.0.join(&directory)).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.0.join(&link)).unwrap();
    folder.sparse(&large, b"SIDN", 4 << 30);
    std::os::unix::fs::symlink("/dev/zero", folder.0.join(".serve")).unwrap();
    // The capture is empty, so the server ends after it has read the directory.
    let output = folder.run("serve -r /dev/null --save-dir .", b"");
    let said = String::from_utf8_lossy(&output.stderr);
    for name in [pipe, directory, link] {
        assert!(said.contains(&format!("damaged: {name}: it is not a file")), "{said}");
    }
    assert!(said.contains(&format!("damaged: {large}: ")), "{said}");
    // With Landlock, the server cannot write its note through a link to another directory.
    let end = ["/dev/null is not a capture", "cannot write ./.serve: Permission denied"];
    assert!(end.iter().any(|end| said.contains(end)), "{said}");
}

#[test]
fn a_machine_and_a_scenario_have_limits_on_their_parts() {
    let folder = Folder::new("parts");
    let names: Vec<String> = (0..2_000).map(|number| format!("\"s{number}\"")).collect();
    folder.write("states", format!("states = [{}]\n[events]\n", names.join(",")).as_bytes());
    folder.refuses("machine states", 1, "2000 states are too many; a machine has at most 1024");
    let events: String =
        (0..2_000).map(|number| format!("e{number} = {{ open = \"a\" }}\n")).collect();
    folder.write("events", format!("states = [\"a\"]\n[events]\n{events}").as_bytes());
    folder.refuses("machine events", 1, "2000 events are too many; a machine has at most 1024");
    let event = |number| format!("e{number} = {{ when = {{ port = 1 }}, open = \"a\" }}\n");
    let events: String = (0..257).map(event).collect();
    folder.write("packets", format!("states = [\"a\"]\n[events]\n{events}").as_bytes());
    assert!(folder.run("machine packets", b"").status.success());
    assert!(folder.run("generate -w a.pcap -c 10", b"").status.success());
    let limit = "257 events are too many; over packets, use at most 256";
    folder.refuses("watch -r a.pcap --machine packets", 2, limit);
    // Each file includes ten others: 11,111 in all.
    for depth in 0..5 {
        let list = format!("{:?}", vec![format!("d{}.toml", depth + 1); 10]);
        let text = if depth == 4 { String::new() } else { format!("include = {list}\n") };
        folder.write(&format!("d{depth}.toml"), format!("name = \"x\"\n{text}").as_bytes());
    }
    folder.refuses("generate -w b.pcap --scenario d0.toml", 1, "more than 64 files are included");
}

#[test]
fn a_scenario_of_a_few_lines_does_not_fill_memory_or_a_disk() {
    let folder = Folder::new("bomb");
    let bomb = |count: &str, packets: &str| {
        format!(
            "name = \"bomb\"\n[[flows]]\nname = \"waiting\"\n{count}\nfrom = 0.0\nuntil = 1.0\n\
             protocol = \"tcp\"\nsource = \"10.0.0.0/8\"\ndestination = \"192.0.2.1\"\n\
             destination_port = 80\npackets = [{packets}]\n"
        )
    };
    let wait = "{ flags = \"S\" }, { flags = \".\", after = 600000.0 }";
    folder.write("count", bomb("count = 4294967296", wait).as_bytes());
    folder.write("few", bomb("count = 4194304", wait).as_bytes());
    folder.write("units", bomb("units = 1e6", wait).as_bytes());
    let repeat = "{ flags = \"S\", repeat = 4294967295 }";
    folder.write("repeat", bomb("count = 1", repeat).as_bytes());
    let most = "the limit is 10000000; type a larger --packets-most, or a smaller --unit";
    for file in ["count", "units", "repeat"] {
        folder.refuses(&format!("generate -w b.pcap --scenario {file}"), 1, most);
    }
    let waiting = "most of them the flows \"waiting\"; the limit is 4194304";
    for line in ["count --packets-most 1e19", "few"] {
        folder.refuses(&format!("generate -w b.pcap --scenario {line}"), 1, waiting);
    }
    folder.refuses("generate -w b.pcap --scenario units --unit 1e19", 1, most);
    assert!(!folder.0.join("b.pcap").exists(), "nothing was written");
    folder.write("right", bomb("count = 5", wait).as_bytes());
    folder.refuses("generate -w b.pcap --scenario right --packets-most 9", 1, "has 10 packets");
    let line = "generate -w b.pcap --scenario right --packets-most 10";
    assert!(folder.run(line, b"").status.success());
}

#[test]
fn a_zstd_window_that_does_not_fit_in_memory_is_refused() {
    let folder = Folder::new("window");
    // A pcap header, and 130 MiB of packets without a byte in runs of 128 KiB.
    let header: Vec<u8> = [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 65_535, 1]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let frame = |exponent: u8| {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, 24 << 3, 0, 0];
        frame.extend(&header);
        for run in 1..=8 * 130u32 {
            let block = u32::from(run == 8 * 130) | 1 << 1 | (128 << 10) << 3;
            frame.extend(&block.to_le_bytes()[..3]);
            frame.push(0);
        }
        frame
    };
    folder.write("large", &frame(17));
    folder.write("second", &[frame(10), frame(17)].concat());
    folder.write("small", &frame(10));
    let run = |room: u64, file: &str| {
        let watch = format!("{} watch -q -r {file}", env!("CARGO_BIN_EXE_sidon"));
        let script = format!("ulimit -v {room}; exec {watch}");
        let output =
            Command::new("sh").args(["-c", &script]).current_dir(&folder.0).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (needed, tight) = ("a zstd window of 128 MiB needs 385 MiB of memory", 200 << 10);
    for (file, status) in [("large", 1), ("second", 3)] {
        let (code, said) = run(tight, file);
        assert_eq!(code, Some(status), "{file}: {said}");
        assert!(said.contains(needed), "{file}: {said}");
    }
    for (room, file) in [(tight, "small"), (ROOM, "large")] {
        assert_eq!(run(room, file), (Some(0), String::new()), "{file}");
    }
}
