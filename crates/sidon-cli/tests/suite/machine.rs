//! `sidon machine` and `sidon watch --machine`: files that are machines, and files that are not.

use assert_cmd::Command;
use serde_json::Value;
use sidon_traffic::{
    Generator, Mix,
    generate::{Flood, Shares, write_pcap},
};
use std::{fs, path::PathBuf};

fn sidon(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("sidon").unwrap();
    command.args(arguments);
    command
}

fn shipped(name: &str) -> String {
    format!("{}/../../examples/machines/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// A directory for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("sidon-machine-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_machine_is_checked_and_drawn() {
    for name in ["tcp-handshake", "udp-without-reply"] {
        let file = shipped(name);
        for arguments in [&["machine", "check", &file][..], &["machine", &file]] {
            let output = sidon(arguments).assert().code(0).get_output().stdout.clone();
            assert!(String::from_utf8(output).unwrap().contains("asked"), "{arguments:?}");
        }
        let drawing =
            sidon(&["machine", "dot", &file]).assert().code(0).get_output().stdout.clone();
        let drawing = String::from_utf8(drawing).unwrap();
        assert!(drawing.starts_with("digraph") && drawing.ends_with("}\n"), "{drawing}");
    }
}

#[test]
fn a_flood_is_handshakes_that_expire_when_they_were_answered_and_when_not() {
    let folder = Folder::new("flood");
    let path = folder.0.join("flood.pcap");
    let victim = "198.18.0.9:443".parse().unwrap();
    let flood =
        Flood { sources: 8_000, victim, after: 5_000, share: 80, answered: 50, ..Flood::default() };
    let shares = Shares { peers: 40, ..Mix::default().shares };
    let (rate, active, flood) = (1_000, 100, Some(flood));
    let mix = Mix { packets: 40_000, clients: 100, rate, active, shares, flood, ..Mix::default() };
    let file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    write_pcap(Generator::new(mix, 5).unwrap(), 65_535, file).unwrap();
    let (tcp, udp) = (shipped("tcp-handshake"), shipped("udp-without-reply"));
    let capture = path.to_str().unwrap();
    let watch = ["watch", "-r", capture, "--machine", &tcp, "--machine", &udp];
    let all = [&watch[..], &["--json", "--audit"]].concat();
    let output = sidon(&all).assert().code(0).get_output().stdout.clone();
    let report: Value = serde_json::from_slice(&output).unwrap();
    let states = &report["machines"]["tcp-handshake"]["states"];
    let expired = |state: &str| states[state]["expired"].as_u64().unwrap();
    // Half of the forged SYNs are answered, and none of those confirmed: six sigma of 8,000.
    assert!(expired("answered").abs_diff(4_000) < 300, "{states}");
    assert!((3_700..4_800).contains(&expired("asked")), "{states}");
    let asked = &report["machines"]["udp-without-reply"]["states"]["asked"];
    assert!(asked["expired"].as_u64().unwrap() > 10, "{asked}");
    assert_eq!(report["machines"]["tcp-handshake"]["refused"], 0);
    assert_eq!(report["audit"]["violations"], 0);
    let (allocated, budget) = (&report["memory"]["allocated"], &report["memory"]["budget"]);
    assert!(allocated.as_u64() <= budget.as_u64());
    let screen =
        sidon(&[&watch[..], &["--audit"]].concat()).assert().code(0).get_output().stdout.clone();
    let screen = String::from_utf8(screen).unwrap();
    assert!(screen.contains("MACHINE tcp-handshake"), "{screen}");
    assert!(screen.contains("P2P-LIKE"), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
}

#[test]
fn what_is_wrong_with_a_machine_is_shown_where_it_is() {
    let folder = Folder::new("wrong");
    let path = folder.0.join("wrong.toml");
    let text = fs::read_to_string(shipped("udp-without-reply")).unwrap();
    fs::write(&path, text.replace("\"responder\"", "\"server\"")).unwrap();
    let file = path.to_str().unwrap();
    for (arguments, code) in [
        (&["machine", "check", file][..], 1),
        (&["watch", "-r", "/dev/null", "--machine", file], 2),
    ] {
        let output = sidon(arguments).assert().code(code).get_output().stderr.clone();
        let message = String::from_utf8(output).unwrap();
        assert!(message.contains("wrong.toml:16:"), "{message}");
        assert!(message.contains("expected \"opener\" or \"responder\""), "{message}");
        assert!(message.contains("^^^^^^^^"), "{message}");
    }
    let one = shipped("tcp-handshake");
    let five = ["--machine", &one].repeat(5);
    let arguments = [&["watch", "-r", "/dev/null"][..], &five].concat();
    sidon(&arguments).assert().failure();
}
