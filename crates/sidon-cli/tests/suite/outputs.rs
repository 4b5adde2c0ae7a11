//! Outputs that cannot be written: a full disk, a closed pipe, a directory that is read-only or not
//! there. The status and the message tell it, and no other output suffers.

#![cfg(target_os = "linux")] // /dev/full

use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

/// A directory for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("sidon-outputs-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let folder = Folder(path);
        let made = folder.run("generate -w a.pcap -c 20000 --rate 4000 --clients 5000 -s 96");
        assert!(made.status.success(), "{made:?}");
        folder
    }

    /// Runs a line of a shell, in which `sidon` is the first word.
    fn run(&self, line: &str) -> Output {
        let sidon = env!("CARGO_BIN_EXE_sidon");
        let script = format!("set -o pipefail; SIDON={sidon}; timeout 60 {sidon} {line}");
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(&self.0).stdin(Stdio::null());
        shell.output().unwrap()
    }

    /// The standard error of a line that ends with this status.
    fn fails(&self, line: &str, code: i32) -> String {
        let output = self.run(line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(!said.contains("panicked"), "{line}: {said}");
        assert!(self.temporary().is_empty(), "{line}: {:?}", self.temporary());
        said
    }

    fn temporary(&self) -> Vec<String> {
        let each = fs::read_dir(&self.0).unwrap();
        let names = each.map(|one| one.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".new")).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const FULL: &str = "No space left on device (os error 28)";

#[test]
fn events_on_a_full_disk_are_counted_and_told_twice() {
    let folder = Folder::new("events");
    let report = folder.run("watch -q --json -r a.pcap --known k");
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let events = report["new_sources_total"].as_u64().unwrap();
    assert!(events > 1_000, "{events}");
    let said = folder.fails("watch -q -r a.pcap --events /dev/full > screen", 1);
    let expected = format!(
        "sidon: cannot write the events /dev/full: {FULL}; the run goes on\n\
         sidon: cannot write the events /dev/full: {FULL}; "
    );
    assert!(said.starts_with(&expected), "{said}");
    let lost = said.lines().last().unwrap().rsplit("; ").next().unwrap();
    let lost: u64 = lost.split(' ').next().unwrap().replace(',', "").parse().unwrap();
    assert!(lost >= events, "{lost} of {events}");
    assert_eq!(said.lines().count(), 2, "{said}");
    // The report is whole all the same.
    assert!(fs::read_to_string(folder.0.join("screen")).unwrap().contains("LEDGER"), "no report");

    // A file that may have 50,000 bytes has whole lines only.
    let said = folder.fails("watch -q -r a.pcap --events e.json > screen", 0);
    assert_eq!(said, "");
    let whole = fs::read(folder.0.join("e.json")).unwrap();
    assert!(whole.len() > 100_000);
    // A second run appends. It ends a line that was cut by a kill.
    fs::write(folder.0.join("e.json"), &whole[..whole.len() - 9]).unwrap();
    assert_eq!(folder.fails("watch -q -r a.pcap --events e.json > screen", 0), "");
    let both = fs::read(folder.0.join("e.json")).unwrap();
    assert_eq!(both, [&whole[..whole.len() - 9], b"\n", &whole[..]].concat());
    let earlier = &whole[..1 + whole.iter().position(|&byte| byte == b'\n').unwrap()];
    fs::write(folder.0.join("e.json"), earlier).unwrap();
    let limited = "watch -q -r a.pcap --events e.json";
    let script = format!("ulimit -f 48; {} {limited}", env!("CARGO_BIN_EXE_sidon"));
    let mut shell = Command::new("bash");
    let output = shell.args(["-c", &script]).current_dir(&folder.0).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let part = fs::read(folder.0.join("e.json")).unwrap();
    assert!(part.len() > earlier.len() && part.len() <= 48 << 10, "{}", part.len());
    assert!(part.starts_with(earlier), "the line of the earlier run stays");
    assert!(part.ends_with(b"}\n"), "the last line is whole");
    for line in part.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        serde_json::from_slice::<Value>(line).unwrap();
    }
}

#[test]
fn every_output_on_a_full_disk_ends_with_status_one() {
    let folder = Folder::new("full");
    assert_eq!(folder.fails("watch -q -r a.pcap -m 256KiB --save a.sidon > screen", 0), "");
    let stdout = format!("sidon: cannot write to standard output: {FULL}\n");
    for line in [
        "watch -q -r a.pcap",
        "watch -q -r a.pcap --json",
        "watch -D",
        "show a.sidon",
        "show a.sidon --json",
        "plan member --keys 1000 --fpr 0.01",
        "plan member --keys 1000 --fpr 0.01 --json",
        "lab list",
        "completions bash",
        "demo --sources 1000 --json",
        "--help",
        "watch --help",
        "--version",
    ] {
        assert_eq!(folder.fails(&format!("{line} > /dev/full"), 1), stdout, "{line}");
    }
    let file = format!("sidon: cannot write /dev/full: {FULL}\n");
    for line in [
        "watch -q -r a.pcap --save /dev/full > screen",
        "merge a.sidon -o /dev/full",
        "generate -w /dev/full -c 20000",
    ] {
        assert_eq!(folder.fails(line, 1), file, "{line}");
    }
    let said = folder.fails("generate -w - -c 20000 > /dev/full", 1);
    assert_eq!(said, stdout);
    // One output that fails does not keep the others back.
    let all = "watch -q -r a.pcap --save /dev/full --csv csv --known k --events e.json > screen";
    fs::create_dir_all(folder.0.join("csv/flows.csv")).unwrap();
    let said = folder.fails(all, 1);
    assert!(
        said.contains("cannot write /dev/full") && said.contains("to the directory csv"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 2, "{said}");
    for name in ["k", "e.json", "screen"] {
        assert!(fs::metadata(folder.0.join(name)).unwrap().len() > 100, "{name}");
    }
    // A full or closed standard error ends nothing.
    for error in ["2> /dev/full", "2>&-"] {
        folder.fails(&format!("generate -w b.pcap -c 1000 {error}"), 0);
        folder.fails(&format!("watch -v -r a.pcap --events /dev/full {error} > screen"), 1);
        folder.fails(&format!("show none {error}"), 1);
        folder.fails(&format!("merge a.sidon -o c.sidon {error}"), 0);
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let folder = Folder::new("pipe");
    assert_eq!(folder.fails("watch -q -r a.pcap -m 256KiB --save a.sidon > screen", 0), "");
    for line in [
        "watch -r a.pcap --json",
        "show a.sidon --json",
        "lab list",
        "generate -w - -c 200000",
        "plan member --keys 1000 --fpr 0.01",
        "completions bash",
    ] {
        assert_eq!(folder.fails(&format!("{line} | true"), 0), "", "{line}");
        folder.fails(&format!("{line} >&-"), 0);
    }
    let said = folder.fails("watch -q -r a.pcap --events - | true", 0);
    let start = "sidon: cannot write events to standard output: Broken pipe (os error 32)";
    assert!(said.lines().all(|line| line.starts_with(start)), "{said}");
    assert!(said.lines().last().unwrap().ends_with("events are lost"), "{said}");
    assert!(said.lines().count() <= 2, "{said}");
    // A named pipe is a file of the user: status 1.
    let line = "watch -q -r a.pcap --events pipe > screen";
    let script = format!(
        "mkfifo pipe; (read -n 1 < pipe) & sleep 0.3; {} {line}",
        env!("CARGO_BIN_EXE_sidon")
    );
    let mut shell = Command::new("bash");
    let output = shell.args(["-c", &script]).current_dir(&folder.0).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn a_pipe_that_nobody_reads_is_refused() {
    let folder = Folder::new("unread");
    assert_eq!(folder.fails("watch -q -r a.pcap -m 256KiB --save a.sidon > screen", 0), "");
    assert!(Command::new("mkfifo").arg(folder.0.join("pipe")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(folder.0.join("socket")).unwrap();
    let said = folder.fails("watch -q -r a.pcap --events pipe > screen", 1);
    let expected = "cannot write the events pipe: nobody reads this pipe; start its reader first";
    assert_eq!(said, format!("sidon: {expected}\n"));
    assert_eq!(fs::read(folder.0.join("screen")).unwrap(), b"", "no packet was read");
    for (name, kind) in [("pipe", "named pipe"), ("socket", "socket"), (".", "directory")] {
        for (line, option) in [
            ("watch -q -r a.pcap --save @ > screen", "--save"),
            ("generate -c 10 -w @", "-w"),
            ("merge a.sidon -o @", "-o"),
        ] {
            let said = folder.fails(&line.replace('@', name), 2);
            let start = format!("sidon: {option} {name} is a {kind}, which no file can replace; ");
            assert!(said.starts_with(&start), "{line}: {said}");
        }
    }
    let templates = "watch --netflow 127.0.0.1:0 --templates pipe";
    assert!(folder.fails(templates, 2).contains("--templates pipe is a named pipe"));
    // A pipe that is read gets all events, and an open pipe is no file to replace.
    folder.fails("watch -q -r a.pcap --events e.json > screen", 0);
    folder
        .fails("--version; cat pipe > got & sleep 0.3; $SIDON watch -q -r a.pcap --events pipe", 0);
    folder.fails("merge a.sidon -o /dev/stdout | cat > copy", 0);
    folder.fails("watch -q -r a.pcap --events >(cat > more; touch done) > screen", 0);
    let wait = "--version; until test -e done; do sleep 0.1; done";
    folder.fails(wait, 0);
    let read = |name: &str| fs::read(folder.0.join(name)).unwrap();
    assert!(read("got") == read("e.json") && read("more") == read("e.json"));
    assert!(read("copy") == read("a.sidon"));
}

/// Names and contents of all files in a directory, without subdirectories.
fn contents(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let each = fs::read_dir(&folder.0).unwrap().map(|one| one.unwrap());
    let mut all: Vec<_> = each
        .map(|one| {
            let is_file = fs::metadata(one.path()).is_ok_and(|about| about.is_file());
            let bytes = if is_file { fs::read(one.path()).unwrap() } else { Vec::new() };
            (one.file_name().into_string().unwrap(), bytes)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn no_output_is_an_input_or_another_output() {
    let folder = Folder::new("same");
    let at = |name: &str| folder.0.join(name);
    fs::hard_link(at("a.pcap"), at("hard")).unwrap();
    fs::copy(at("a.pcap"), at("flows.csv")).unwrap();
    for (target, link) in [("a.pcap", "soft"), ("new", "dangling"), (".", "here")] {
        std::os::unix::fs::symlink(target, at(link)).unwrap();
    }
    fs::write(at("k"), "192.0.2.1\n").unwrap();
    fs::write(at("m.toml"), "states = []\n").unwrap();
    let flows = "[[flows]]\ncount = 1\nfrom = 0.0\nprotocol = \"udp\"\nsource = \"10.0.0.1\"\n\
                 destination = \"192.0.2.1\"\ndestination_port = 53\npackets = [{}]\n";
    fs::write(at("whole.toml"), "name = \"whole\"\ninclude = [\"part.toml\"]\n").unwrap();
    fs::write(at("part.toml"), format!("include = [\"flows.toml\"]\n{flows}")).unwrap();
    fs::write(at("flows.toml"), flows).unwrap();
    fs::write(at("secret"), "4711\n").unwrap();
    fs::set_permissions(at("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let before = contents(&folder);
    for (line, one, two, change) in [
        ("watch -q -r a.pcap --save a.pcap", "-r a.pcap", "--save a.pcap", "--save"),
        ("watch -q -r a.pcap --save hard", "-r a.pcap", "--save hard", "--save"),
        ("watch -q -r soft --save here/a.pcap", "-r soft", "--save here/a.pcap", "--save"),
        ("watch -q -r a.pcap --events a.pcap", "-r a.pcap", "--events a.pcap", "--events"),
        ("watch -q -r a.pcap --known a.pcap", "-r a.pcap", "--known a.pcap", "--known"),
        ("watch -q -r a.pcap --known k --save k", "--known k", "--save k", "--save"),
        ("watch -q -r a.pcap --known k --events k", "--known k", "--events k", "--events"),
        ("watch -q -r a.pcap --known new --save new", "--known new", "--save new", "--save"),
        (
            "watch -q -r a.pcap --save new --events here/new",
            "--save new",
            "--events here/new",
            "--events",
        ),
        (
            "watch -q -r a.pcap --save new --events dangling",
            "--save new",
            "--events dangling",
            "--events",
        ),
        ("watch -q -r flows.csv --csv .", "-r flows.csv", "--csv ./flows.csv", "--csv"),
        (
            "watch -q -r a.pcap --csv d --save d/p2p.csv",
            "--save d/p2p.csv",
            "--csv d/p2p.csv",
            "--csv",
        ),
        ("watch -q -r a.pcap --csv d --save d", "--csv d", "--save d", "--save"),
        (
            "watch -q -r a.pcap --machine m.toml --save m.toml",
            "--machine m.toml",
            "--save m.toml",
            "--save",
        ),
        (
            "watch -q -r a.pcap --seed-file secret --events secret",
            "--seed-file secret",
            "--events secret",
            "--events",
        ),
        ("watch -q -r - --save a.pcap < a.pcap", "-r -", "--save a.pcap", "--save"),
        (
            "watch -q -r /dev/stdin --events a.pcap < a.pcap",
            "-r /dev/stdin",
            "--events a.pcap",
            "--events",
        ),
        (
            "watch -q -r /dev/fd/3 --save a.pcap 3< a.pcap",
            "-r /dev/fd/3",
            "--save a.pcap",
            "--save",
        ),
        (
            "watch --netflow 127.0.0.1:0 --templates t --save t",
            "--templates t",
            "--save t",
            "--save",
        ),
        (
            "serve --netflow 127.0.0.1:0 --listen 127.0.0.1:0 --templates secret --token-file secret",
            "--token-file secret",
            "--templates secret",
            "--templates",
        ),
        (
            "serve --demo --listen 127.0.0.1:0 --save-dir d --token-file d/.serve",
            "--token-file d/.serve",
            "--save-dir d/.serve",
            "--save-dir",
        ),
        ("watch -q -r a.pcap --save k >> k", "standard output", "--save k", "--save"),
        ("watch -q -r a.pcap --events k >> k", "standard output", "--events k", "--events"),
        (
            "watch -q -r a.pcap --save /dev/stdout >> k",
            "standard output",
            "--save /dev/stdout",
            "--save",
        ),
        ("watch -q -r a.pcap >> a.pcap", "standard output", "-r a.pcap", "standard output"),
        ("generate --scenario m.toml -w m.toml", "--scenario m.toml", "-w m.toml", "-w"),
        (
            "generate --scenario whole.toml -w part.toml",
            "--scenario part.toml",
            "-w part.toml",
            "-w",
        ),
        (
            "generate --scenario whole.toml -w here/flows.toml",
            "--scenario flows.toml",
            "-w here/flows.toml",
            "-w",
        ),
    ] {
        let said = folder.fails(line, 2);
        let expected =
            format!("sidon: {one} and {two} name the same file; type another file for {change}\n");
        assert_eq!(said, expected, "{line}");
        assert!(contents(&folder) == before, "{line}: files changed");
    }
    // Devices are no files of the user, and an input may be named twice.
    folder.fails("watch -q -r a.pcap -m 256KiB --save /dev/null --events /dev/null > screen", 0);
    folder
        .fails("watch -q -r a.pcap -m 256KiB --save a.sidon --csv out --events out/e > screen", 0);
    folder.fails("generate --scenario whole.toml -w whole.pcap 2> note", 0);
    folder.fails("merge a.sidon a.sidon -o b.sidon", 0);
    folder.fails("merge a.sidon a.sidon -q -o /dev/stdout > streamed", 0);
    assert!(fs::read(at("streamed")).unwrap() == fs::read(at("b.sidon")).unwrap());
    // A merge reads all files before it writes.
    folder.fails("merge a.sidon a.sidon -o a.sidon", 0);
    assert!(fs::read(at("a.sidon")).unwrap() == fs::read(at("b.sidon")).unwrap());
}

#[test]
fn periods_on_a_full_disk_are_lost_and_the_run_goes_on() {
    let folder = Folder::new("periods");
    // A file may have 100 KiB, and a saved period has more.
    let run = |script: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-c", &script.replace("sidon", env!("CARGO_BIN_EXE_sidon"))]);
        shell.current_dir(&folder.0).output().unwrap()
    };
    let watch = "sidon watch -q -r a.pcap -m 256KiB --rotate 1s --save-dir days";
    let output = run(&format!("ulimit -f 100; {watch}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("sidon: a period is lost: cannot write days/"), "{said}");
    assert!(said.contains("periods are lost: they could not be written to days"), "{said}");
    assert!(said.lines().count() <= 4, "{said}");
    let left = fs::read_dir(folder.0.join("days")).unwrap().map(|one| one.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), [".lock"], "nothing else is left");
    let output = run(watch);
    assert!(output.status.success());
    let names: Vec<_> = fs::read_dir(folder.0.join("days")).unwrap().collect();
    assert!(names.len() > 1, "{names:?}");
}

/// Some programs send a signal twice within milliseconds. That must not cost the file.
#[test]
fn a_signal_that_comes_twice_at_once_still_saves() {
    let folder = Folder::new("twice");
    let script = format!(
        "{} watch -q --netflow 127.0.0.1:0 -m 256KiB --save t.sidon > screen & p=$!
         sleep 1; kill -TERM $p; kill -TERM $p; sleep 0.02; kill -INT $p; wait $p",
        env!("CARGO_BIN_EXE_sidon")
    );
    let output =
        Command::new("bash").args(["-c", &script]).current_dir(&folder.0).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(folder.0.join("t.sidon").exists(), "{output:?}");
}

/// A terminal that closes sends SIGHUP. It ends a run as SIGTERM does, unless `nohup` ignores it.
#[test]
fn a_terminal_that_closes_costs_no_file() {
    // The tests may run under nohup, too.
    for under in ["env --default-signal=HUP", "nohup"] {
        let folder = Folder::new("closed");
        let script = format!(
            "mkfifo pipe; s={}; $s generate -c 20000 -w b.pcap 2> /dev/null
             {under} $s watch -q -r pipe -m 256KiB --json --save t.sidon > screen & p=$!
             exec 3> pipe; head -c $(($(stat -c %s b.pcap) / 2)) b.pcap >&3
             sleep 1; kill -HUP $p; sleep 1
             tail -c +$(($(stat -c %s b.pcap) / 2 + 1)) b.pcap >&3; exec 3>&-; wait $p",
            env!("CARGO_BIN_EXE_sidon")
        );
        let output =
            Command::new("bash").args(["-c", &script]).current_dir(&folder.0).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{under}: {output:?}");
        assert!(folder.0.join("t.sidon").exists(), "{output:?}");
        let screen = fs::read(folder.0.join("screen")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&screen).unwrap();
        let seen = report["packets"].as_u64().unwrap();
        // It ends soon after the signal, or reads on to the end.
        assert_eq!(seen == 20_000, under == "nohup", "{under}: {seen}");
    }
}

/// Signals to a merge cost neither the old file nor leave a temporary one.
#[test]
fn a_merge_that_a_signal_ends_leaves_the_old_file() {
    let folder = Folder::new("ended");
    assert_eq!(folder.fails("watch -q -r a.pcap -m 256KiB --save a.sidon > screen", 0), "");
    fs::write(folder.0.join("old"), "old").unwrap();
    let script = format!(
        "mkfifo pipe; {} merge a.sidon pipe -o old & p=$!
         sleep 1; kill -TERM $p; sleep 0.1; cat a.sidon > pipe; wait $p",
        env!("CARGO_BIN_EXE_sidon")
    );
    let output =
        Command::new("bash").args(["-c", &script]).current_dir(&folder.0).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "sidon: cannot write old: interrupted\n");
    let names: Vec<_> = contents(&folder).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a.pcap", "a.sidon", "old", "pipe", "screen"]);
    assert_eq!(fs::read(folder.0.join("old")).unwrap(), b"old");
}

#[test]
fn bad_names_of_outputs_are_refused_before_the_first_packet() {
    let folder = Folder::new("names");
    assert_eq!(folder.fails("watch -q -r a.pcap -m 256KiB --save a.sidon > screen", 0), "");
    fs::create_dir(folder.0.join("d")).unwrap();
    std::os::unix::fs::symlink("loop", folder.0.join("loop")).unwrap();
    let long = "x".repeat(300);
    for (line, option) in [
        ("watch -q -r a.pcap --save @", "--save"),
        ("watch -q -r a.pcap --events @", "--events"),
        ("watch -q -r a.pcap --known @", "--known"),
        ("watch --netflow 127.0.0.1:0 --duration 1s --templates @", "--templates"),
        ("generate -c 10 -w @", "-w"),
        ("merge a.sidon -o @", "-o"),
    ] {
        for (name, why) in [
            ("x/", "is the name of a directory; type the name of a file"),
            ("d/", "is a directory, which no file can replace; type the name of a regular file"),
            ("d", "is a directory, which no file can replace; type the name of a regular file"),
            (
                "none/f",
                "needs the directory none: No such file or directory (os error 2); create it, or \
                 type another name",
            ),
            ("a.pcap/f", "needs the directory a.pcap, which is a file; type another name"),
            (&long, "cannot be a file: File name too long (os error 36); type another name"),
            (
                "loop",
                "cannot be a file: Too many levels of symbolic links (os error 40); type another \
                 name",
            ),
            ("-", "is standard output, which no file can replace; type the name of a regular file"),
        ] {
            if name == "-" && ["--events", "-w"].contains(&option) {
                continue;
            }
            let line = format!("{} > screen", line.replace('@', name));
            let said = folder.fails(&line, 2);
            assert_eq!(said, format!("sidon: {option} {name} {why}\n"), "{line}");
            assert_eq!(
                fs::read(folder.0.join("screen")).unwrap(),
                b"",
                "{line}: packets were read"
            );
        }
    }
    // A directory of tables is created with those above it.
    assert_eq!(folder.fails("watch -q -r a.pcap --csv none/csv > screen", 0), "");
}

#[test]
fn a_thread_that_the_system_refuses_is_an_error() {
    let folder = Folder::new("threads");
    let mut refused = [0; 2];
    for kilobytes in (16_000..90_000).step_by(1_500) {
        for (command, refused) in [
            "watch -q -r a.pcap -m 1MiB --threads 8 > screen",
            "serve -r a.pcap -m 1MiB --threads 8 --listen 127.0.0.1:0 --save-dir s > screen",
        ]
        .into_iter()
        .zip(&mut refused)
        {
            let limited = format!(
                "--version > screen; ulimit -v {kilobytes}; timeout -s INT 1 $SIDON {command}"
            );
            let output = folder.run(&limited);
            let said = String::from_utf8_lossy(&output.stderr);
            // The standard library aborts or panics if memory ends at its own small allocations.
            let in_library = ["memory allocation of", "an alternative stack", "TLS destructor"];
            if in_library.iter().any(|words| said.contains(words)) {
                continue;
            }
            assert!(!said.contains("panicked"), "{limited}: {said}");
            if said.contains("the system refused a thread (") {
                assert_eq!(output.status.code(), Some(1), "{limited}: {said}");
                assert!(said.contains("type a smaller --threads"), "{said}");
                assert!(!folder.0.join("s/.serve").exists(), "{limited}: the note stays");
                *refused += 1;
            }
            let _ = fs::remove_file(folder.0.join("s/.serve"));
        }
    }
    assert!(refused.iter().all(|&times| times > 0), "{refused:?}");
}
