//! Every command that reads untrusted bytes gives up its rights before: the real binary makes
//! forbidden attempts, and `/proc` shows which rights it has.
//!
//! Tests say SKIPPED where `sidon doctor` and the kernel agree that a layer is missing.

#![cfg(target_os = "linux")]

use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::UdpSocket,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

fn sidon() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("sidon"));
    command.env_remove("SIDON_TOKEN").env_remove("SIDON_SANDBOX").stdin(Stdio::null());
    command
}

/// What `sidon doctor` says of a layer.
fn has(layer: &str) -> bool {
    let output = sidon().args(["doctor", "--json"]).output().unwrap();
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = all["checks"].as_array().unwrap();
    let ok = checks.iter().any(|check| check["check"] == layer && check["ok"] == true);
    if !ok {
        assert!(!kernel_has(layer), "this kernel has {layer}, and it is not in force");
        eprintln!("SKIPPED: this machine lacks {layer}");
    }
    ok
}

/// Whether the kernel has a layer, as far as that can be found out without the program.
fn kernel_has(layer: &str) -> bool {
    if layer == "seccomp" {
        return Path::new("/proc/sys/kernel/seccomp/actions_avail").exists();
    }
    // `landlock_create_ruleset` returns the version of Landlock.
    let version = "import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 1)";
    Command::new("python3").args(["-c", version]).status().is_ok_and(|status| status.success())
}

/// A folder with inputs, and another one that no command names. Removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("sidon-sandbox-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for part in ["in", "out", "secret"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        let folder = Folder(folder);
        fs::write(folder.path("secret/file"), "secret").unwrap();
        fs::write(folder.path("in/machine.toml"), MACHINE).unwrap();
        fs::write(folder.path("in/scenario.toml"), SCENARIO).unwrap();
        let capture = folder.path("in/a.pcap");
        let made = sidon().args(["generate", "-c", "2000", "-w", &capture]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let saved = folder.path("in/a.sidon");
        let mut watch = sidon();
        watch.args(["watch", "-q", "-r", &capture, "-m", "1MiB", "--save", &saved]);
        let made = watch.output().unwrap();
        assert!(made.status.success(), "{made:?}");
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Every command that reads untrusted bytes: its name, its arguments, and whether it writes
    /// files.
    fn commands(&self) -> Vec<(&'static str, Vec<String>, bool)> {
        let [capture, saved, machine, scenario] =
            ["in/a.pcap", "in/a.sidon", "in/machine.toml", "in/scenario.toml"]
                .map(|name| self.path(name));
        let [out, known, csv] =
            ["out/new.sidon", "out/known.txt", "out/csv"].map(|name| self.path(name));
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        vec![
            ("watch -r", own(&["watch", "-r", &capture, "--machine", &machine]), false),
            ("watch -r --save", own(&["watch", "-r", &capture, "--save", &out]), true),
            ("watch -r --known", own(&["watch", "-r", &capture, "--known", &known]), true),
            ("watch -r --csv", own(&["watch", "-r", &capture, "--csv", &csv]), true),
            ("watch --netflow", own(&["watch", "--netflow", "127.0.0.1:0"]), false),
            ("show", own(&["show", &saved]), false),
            ("merge", own(&["merge", &saved, &saved, "-o", &out]), true),
            ("lab traffic", own(&["lab", "traffic", &capture]), false),
            ("machine", own(&["machine", &machine]), false),
            ("machine dot", own(&["machine", "dot", &machine]), false),
            ("generate", own(&["generate", "--scenario", &scenario, "-w", &out]), true),
            ("serve", own(&["serve", "-r", &capture, "--listen", "127.0.0.1:0"]), false),
            ("serve --demo", own(&["serve", "--demo", "--listen", "127.0.0.1:0"]), false),
        ]
    }

    /// Runs a command that makes these attempts once it is confined.
    fn attempt(&self, arguments: &[String], attempts: &str, path: &Path) -> Output {
        let mut command = sidon();
        command.args(arguments).env("SIDON_SANDBOX_TRY", attempts);
        command.env("SIDON_SANDBOX_PATH", path).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const MACHINE: &str =
    "states = [\"a\"]\n[events]\nx = { when = { flags = \"S\" }, open = \"a\" }\n";
const SCENARIO: &str = "name = \"one\"\n[[flows]]\nname = \"a\"\nunits = 0.01\nkind = \"udp\"\n\
                        from = \"10.0.0.0/8\"\nto = \"198.18.0.1\"\nto_ports = 53\nseconds = [0, 1]\n";

/// Asserts that a command made all of these attempts, and that each was refused.
fn assert_refused(name: &str, output: &Output, attempts: &str) {
    let said = String::from_utf8_lossy(&output.stdout);
    for attempt in attempts.split(',') {
        let line = said.lines().find(|line| line.starts_with(&format!("{attempt}: ")));
        let line = line.unwrap_or_else(|| panic!("{name}: no word of {attempt}: {output:?}"));
        assert!(line.contains(": refused: "), "{name}: {line}");
        assert!(!line.contains("no attempt has the name"), "{name}: {line}");
    }
}

#[test]
fn no_command_can_start_programs_open_sockets_or_gain_rights() {
    if !has("seccomp") {
        return;
    }
    let folder = Folder::new("calls");
    let secret = folder.0.join("secret/file");
    let attempts =
        "connect,listen,send,spawn,process,kill,setuid,capabilities,code,ioctl,permissions";
    for (name, arguments, writes) in folder.commands() {
        let output = folder.attempt(&arguments, attempts, &secret);
        assert_refused(name, &output, attempts);
        // Without a file to open later, a command cannot open any file, even without Landlock.
        if !writes && !["lab traffic", "generate"].contains(&name) {
            let files = "read,write,create,remove,rename,link,directory";
            assert_refused(name, &folder.attempt(&arguments, files, &secret), files);
        }
        let thread = folder.attempt(&arguments, "thread", &secret);
        assert_eq!(String::from_utf8_lossy(&thread.stdout).trim(), "thread: ALLOWED", "{name}");
    }
    let arguments = &folder.commands()[0].1;
    for fatal in ["execve", "ptrace", "mount", "unshare", "bpf"] {
        let output = folder.attempt(arguments, fatal, &secret);
        assert_eq!(output.status.signal(), Some(31), "{fatal}: {output:?}");
    }
}

#[test]
fn files_that_a_command_does_not_name_stay_closed() {
    if !has("Landlock") {
        return;
    }
    let folder = Folder::new("files");
    let secret = folder.0.join("secret/file");
    for (name, arguments, writes) in folder.commands() {
        let attempts = "read,write,create,remove,rename,link,directory,list";
        let attempts = if writes || name == "lab traffic" { attempts } else { "read,write,create" };
        assert_refused(name, &folder.attempt(&arguments, attempts, &secret), attempts);
        // Inputs beside the outputs cannot be changed either.
        let input = folder.0.join("in/a.pcap");
        let attempts = "write,create,remove";
        assert_refused(name, &folder.attempt(&arguments, attempts, &input), attempts);
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        assert_eq!(fs::read_dir(folder.0.join("secret")).unwrap().count(), 1, "{name}");
    }
}

/// Fields of `/proc/PID/status`.
fn status(child: &Child) -> impl Fn(&str) -> String {
    let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    move |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name}")).trim().to_owned()
    }
}

/// Asserts that all layers that the kernel reports are in force, on every thread.
fn assert_confined(name: &str, child: &Child) {
    let begun = Instant::now();
    while status(child)("NoNewPrivs") != "1" || status(child)("Seccomp") != "2" {
        let now = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20), "{name}: {now}");
        std::thread::sleep(Duration::from_millis(10));
    }
    for task in fs::read_dir(format!("/proc/{}/task", child.id())).unwrap() {
        let text = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            let line = text.lines().find(|line| line.starts_with(set)).unwrap();
            assert!(line.ends_with("\t0000000000000000"), "{name}: {line}");
        }
        for right in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
            assert!(text.contains(right), "{name}: {text}");
        }
    }
}

/// Ends a child however the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_kernel_sees_no_capabilities_and_a_filter_while_input_is_read() {
    if !has("seccomp") {
        return;
    }
    let folder = Folder::new("status");
    let capture = fs::read(folder.path("in/a.pcap")).unwrap();
    // A pipe that stays open: the program waits for more.
    for arguments in [&["watch", "-r", "-", "--threads", "2", "--json"][..], &["watch", "-r", "-"]]
    {
        let child = sidon().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = Running(child.unwrap());
        let mut input = child.0.stdin.take().unwrap();
        input.write_all(&capture[..1000]).unwrap();
        assert_confined("watch -r -", &child.0);
        input.write_all(&capture[1000..]).unwrap();
        drop(input);
        assert!(child.0.wait().unwrap().success());
    }
    let child = sidon().args(["watch", "--netflow", "127.0.0.1:0"]).stdout(Stdio::null()).spawn();
    assert_confined("watch --netflow", &Running(child.unwrap()).0);
    let secret = folder.path("in/token");
    let mut command = sidon();
    command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]).env("SIDON_TOKEN", "s3cret");
    let mut child = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(child.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_confined("serve", &child.0);
    // Other programs of the same user cannot read the token.
    let environment = fs::metadata(format!("/proc/{}/environ", child.0.id())).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&environment), 0, "{secret}");
}

/// A pipe from which nothing has come yet, in place of each file that others may have written.
#[test]
fn rights_are_gone_before_the_first_byte_of_a_file() {
    if !has("seccomp") {
        return;
    }
    let folder = Folder::new("first");
    let [capture, saved, machine] =
        ["in/a.pcap", "in/a.sidon", "in/machine.toml"].map(|name| folder.path(name));
    let [fifo, out] = ["in/fifo", "out/new.sidon"].map(|name| folder.path(name));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (arguments, whole) in [
        (&["watch", "-r", &fifo][..], &capture),
        (&["watch", "-r", &capture, "--machine", &fifo], &machine),
        (&["show", &fifo], &saved),
        (&["merge", &fifo, "-o", &out], &saved),
        (&["machine", &fifo], &machine),
        (&["machine", "dot", &fifo], &machine),
    ] {
        let whole = fs::read(whole).unwrap();
        let child = sidon().args(arguments).stdout(Stdio::null()).spawn();
        let mut child = Running(child.unwrap());
        // Returns when the program has opened the pipe, too.
        let mut input = fs::File::options().write(true).open(&fifo).unwrap();
        assert_confined(arguments[0], &child.0);
        input.write_all(&whole).unwrap();
        drop(input);
        assert!(child.0.wait().unwrap().success(), "{arguments:?}");
    }
}

/// Inputs: plain, compressed, standard input, a FIFO, a link. Outputs: all options that write.
#[test]
fn every_input_and_output_works_while_confined() {
    let folder = Folder::new("works");
    let [capture, fifo, link] =
        ["in/a.pcap", "in/fifo", "out/link.sidon"].map(|name| folder.path(name));
    let bytes = fs::read(&capture).unwrap();
    let packed = folder.path("in/a.pcap.gz");
    let mut gzip = Command::new("gzip").arg("-kf").arg(&capture).spawn().unwrap();
    assert!(gzip.wait().unwrap().success());
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let count = |output: Output| {
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["packets"].as_u64().unwrap()
    };
    let quiet = |arguments: &[&str]| {
        let mut command = sidon();
        command.args(arguments).env("SIDON_SANDBOX", "quiet");
        command
    };
    for input in [&capture, &packed] {
        for threads in ["1", "3"] {
            let mut watch = quiet(&["watch", "--json", "--threads", threads, "-r", input]);
            assert_eq!(count(watch.output().unwrap()), 2000, "{input}");
        }
    }
    // A FIFO, a pipe by its name, and a file as standard input by its name.
    let writer = {
        let (fifo, bytes) = (fifo.clone(), bytes.clone());
        std::thread::spawn(move || fs::write(fifo, bytes))
    };
    assert_eq!(count(quiet(&["watch", "--json", "-r", &fifo]).output().unwrap()), 2000);
    writer.join().unwrap().unwrap();
    for name in ["-", "/dev/stdin", "/proc/self/fd/0"] {
        let mut command = quiet(&["watch", "--json", "-r", name]);
        command.stdin(fs::File::open(&capture).unwrap());
        assert_eq!(count(command.output().unwrap()), 2000, "{name}");
        let mut show = quiet(&["show", "--json", name]);
        show.stdin(fs::File::open(folder.path("in/a.sidon")).unwrap());
        assert_eq!(count(show.output().unwrap()), 2000, "{name}");
    }
    let mut merge = quiet(&["merge", "-q", "/dev/stdin", "-o", &folder.path("out/one.sidon")]);
    merge.stdin(fs::File::open(folder.path("in/a.sidon")).unwrap());
    assert!(merge.status().unwrap().success());
    // Outputs: new, again, by a link to another directory, a device.
    let real = folder.path("secret/real.sidon");
    fs::write(&real, "").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let [known, csv, events, periods] =
        ["out/known.txt", "out/a/b/csv", "out/events", "out/periods"].map(|name| folder.path(name));
    for save in [&folder.path("out/new.sidon"), &folder.path("out/new.sidon"), &link, "/dev/null"] {
        let mut watch =
            quiet(&["watch", "--json", "-r", &capture, "--save", save, "--known", &known]);
        watch.args(["--csv", &csv, "--events", &events]);
        assert_eq!(count(watch.output().unwrap()), 2000, "{save}");
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(count(quiet(&["show", "--json", &real]).output().unwrap()), 2000);
    assert!(fs::read_to_string(&known).unwrap().lines().count() > 10);
    assert!(Path::new(&csv).join("flows.csv").exists() && Path::new(&events).exists());
    let mut watch =
        quiet(&["watch", "-q", "-r", &capture, "--rotate", "1s", "--save-dir", &periods]);
    assert!(watch.output().unwrap().status.success());
    assert!(fs::read_dir(&periods).unwrap().count() > 0);
    // Relative names, and the present directory.
    let mut watch = quiet(&["watch", "--json", "-r", "in/a.pcap", "--save", "here.sidon"]);
    assert_eq!(count(watch.current_dir(&folder.0).output().unwrap()), 2000);
    assert_eq!(
        count(quiet(&["show", "--json", &folder.path("here.sidon")]).output().unwrap()),
        2000
    );
}

#[test]
fn templates_are_kept_while_confined() {
    let folder = Folder::new("templates");
    let templates = folder.path("out/templates.txt");
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = sidon();
    command.args(["watch", "--netflow", &address.to_string(), "--templates", &templates, "--json"]);
    let child = Running(command.stdout(Stdio::null()).spawn().unwrap());
    // NetFlow 9: one template with a source address.
    let template: &[u8] = &[
        0, 9, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 12, 1, 0, 0, 1, 0, 8,
        0, 4,
    ];
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let begun = Instant::now();
    while !Path::new(&templates).exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "no templates were written");
        let _ = sender.send_to(template, address);
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(child);
    assert!(fs::read_to_string(&templates).unwrap().contains("/9/"));
}

#[test]
fn what_is_lacking_is_said_once_and_can_be_silenced() {
    let folder = Folder::new("said");
    let capture = folder.path("in/a.pcap");
    let watch = |setting: &str, more: &[&str]| {
        let mut command = sidon();
        command.args(["watch", "--json", "-r", &capture]).args(more).env("SIDON_SANDBOX", setting);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(watch("off", &[]), "sidon: not confined, because SIDON_SANDBOX is off\n");
    assert_eq!(watch("off", &["-q"]), "");
    assert_eq!(watch("quiet", &[]), "");
    let said = watch("", &["--verbose"]);
    assert!(said.contains("confined by no_new_privs: set; capabilities: none left"), "{said}");
    let doctor = sidon().arg("doctor").env("SIDON_SANDBOX", "off").output().unwrap();
    assert_eq!(doctor.status.code(), Some(1));
    let text = String::from_utf8(doctor.stdout).unwrap();
    assert!(text.contains("SIDON_SANDBOX is off"), "{text}");
}

/// As root without root's power over files: an output that could not be written at the end is
/// refused at the start.
#[test]
fn an_output_that_the_confined_process_cannot_write_is_refused_at_the_start() {
    let folder = Folder::new("owner");
    let closed = folder.0.join("out");
    if std::os::unix::fs::chown(&closed, Some(65_534), None).is_err() {
        eprintln!("SKIPPED: not root; root's power over files was not given up");
        return;
    }
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = sidon();
    command.args(["watch", "-r", &folder.path("in/a.pcap"), "--save", &folder.path("out/x.sidon")]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("sidon gives up root's power over files"), "{said}");
}
