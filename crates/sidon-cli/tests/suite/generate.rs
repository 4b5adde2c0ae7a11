//! `sidon generate`: captures that other code reads.

use assert_cmd::Command;
use sidon_traffic::{Decoder, Source};
use std::io::Cursor;

fn sidon(args: &[&str]) -> (Option<i32>, Vec<u8>, String) {
    let output = Command::cargo_bin("sidon").unwrap().args(args).output().unwrap();
    (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_capture_holds_what_was_asked_for_and_is_the_same_again() {
    let args = ["generate", "-w", "-", "-c", "20000", "--flood", "5000", "--victim", "10.9.8.7:80"];
    let (code, capture, err) = sidon(&args);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.starts_with("20,000 packets, "), "{err}");
    let mut source = Source::from_reader(Cursor::new(capture.clone())).unwrap();
    let mut forged = 0;
    while let Some(frame) = source.next().unwrap() {
        let packet = Decoder::default().decode(&frame).unwrap();
        let to = packet.flow.destination().to_string();
        forged += u32::from(to == "10.9.8.7" && packet.flow.destination_port() == 80);
    }
    assert_eq!((source.frames(), forged), (20_000, 5_000));
    assert_eq!(sidon(&args).1, capture);
    assert_ne!(sidon(&[&args[..], &["--seed", "2"]].concat()).1, capture);
}

#[test]
fn a_snap_length_cuts_and_a_mix_chooses() {
    let args = ["generate", "-w", "-", "-c", "500", "-s", "64", "--mix", "dns=1", "--ipv6", "0"];
    let (_, capture, _) = sidon(&args);
    let mut source = Source::from_reader(Cursor::new(capture)).unwrap();
    while let Some(frame) = source.next().unwrap() {
        assert!(frame.bytes.len() <= 64 && frame.wire_len > 64);
        let flow = Decoder::default().decode(&frame).unwrap().flow;
        assert!(flow.source_port() == 53 || flow.destination_port() == 53, "{flow}");
    }
    assert_eq!(source.frames(), 500);
}

#[test]
fn what_cannot_be_generated_is_refused_with_its_name() {
    let refused = |args: &[&str]| {
        let (code, _, err) = sidon(&[&["generate", "-w", "-"], args].concat());
        assert_ne!(code, Some(0), "{args:?}");
        err
    };
    assert!(
        refused(&["--mix", "foo=1"]).contains("expected web, dns, peers, ping or scan, got `foo`")
    );
    assert!(refused(&["--mix", "web"]).contains("expected NAME=WEIGHT"));
    assert!(refused(&["--mix", "web=0"]).contains("the weights of --mix add up to 0"));
    assert!(refused(&["--clients", "0"]).contains("--clients 0 is too small"));
    assert!(refused(&["--victim", "10.0.0.1:80"]).contains("--flood"));
    let (code, _, err) = sidon(&["generate", "-w", "/nonexistent/x.pcap", "-c", "1"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("/nonexistent/x.pcap needs the directory /nonexistent"), "{err}");
}

#[test]
fn a_scenario_becomes_a_capture() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/overload/1-syn.toml");
    let folder = std::env::temp_dir().join(format!("sidon-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let capture = folder.join("syn.pcap").display().to_string();
    let generate = ["generate", "-w", &capture, "--scenario", scenario];
    let (code, _, err) = sidon(&[&generate[..], &["--unit", "5000"]].concat());
    assert_eq!(code, Some(0), "{err}");
    let (_, report, _) = sidon(&["watch", "-r", &capture, "--json", "--seed", "1"]);
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    // 200 connections of six packets, a scan of 1,000 ports, a flood of 20,000, and the attack.
    assert_eq!(report["packets"], 200 * 6 + 1_000 + 20_000 + 5_000);
    let alarms = report["alarms"].as_array().unwrap();
    let kinds: Vec<_> = alarms.iter().map(|alarm| alarm["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"port_scan") && kinds.contains(&"syn_flood"), "{kinds:?}");
    let (code, _, err) = sidon(&[&generate[..], &["--packets", "10"]].concat());
    assert_eq!(code, Some(2), "{err}");
    std::fs::remove_dir_all(&folder).unwrap();
}
