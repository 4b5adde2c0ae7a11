//! `sidon watch` on endless sources: flow records from a socket, and errors of interfaces. To read
//! an interface takes rights: `scripts/live-namespaces` tests that.

use assert_cmd::Command;
use serde_json::Value;
use std::{
    net::UdpSocket,
    process::Stdio,
    time::{Duration, Instant},
};

fn sidon(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("sidon").unwrap();
    command.arg("watch").args(arguments).timeout(Duration::from_secs(30));
    command
}

/// NetFlow 5, one record: 7 packets and 4,000 bytes.
fn datagram(sequence: u32) -> Vec<u8> {
    let mut bytes = vec![0, 5, 0, 1, 0, 0, 0, 1];
    bytes.extend(1_700_000_000u32.to_be_bytes());
    bytes.extend(0u32.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend([0, 0, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0, 0, 0, 7, 0, 0, 0x0f, 0xa0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0x9c, 0x40, 1, 0xbb, 0, 0x1b, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn flow_records_are_counted_until_there_are_enough() {
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    // A port that was free a moment ago.
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let arguments = ["--netflow", &address.to_string(), "--json", "-c", "21", "--duration", "60s"];
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("sidon"))
        .arg("watch")
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let mut sequence = 0;
    while child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(30), "it goes on");
        // Until it listens, nobody does.
        let _ = sender.send_to(&datagram(sequence), address);
        sequence += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["packets"], &report["bytes"]), (&21.into(), &12_000.into()));
    assert_eq!(report["ledger"]["balance"], 0);
    assert_eq!(report["ledger"]["source"]["records"], 3);
    let exporter = &report["exporters"][0];
    assert_eq!((&exporter["version"], &exporter["counted"]), (&5.into(), &3.into()));
    assert_eq!(exporter["sampling"], Value::Null);
    assert_eq!(report["top_flows"][0]["packets"], 21);
    assert_eq!(report["top_flows"][0]["certainty"], "exact");
}

/// IPFIX, a template and one record of it: this number of packets and of bytes.
fn wide(amount: u64) -> Vec<u8> {
    let layout: [u16; 16] = [8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 6, 1, 2, 8, 1, 8];
    let template: Vec<u16> = [2, 40, 256, 8].into_iter().chain(layout).collect();
    let mut sets: Vec<u8> = template.iter().flat_map(|half| half.to_be_bytes()).collect();
    sets.extend([1, 0, 0, 34, 10, 0, 0, 1, 10, 0, 0, 80, 0x9c, 0x40, 1, 0xbb, 6, 0x1b]);
    sets.extend([amount, amount].map(u64::to_be_bytes).as_flattened());
    let mut bytes = vec![0, 10];
    bytes.extend((16 + sets.len() as u16).to_be_bytes());
    bytes.extend([1_700_000_000, 1, 7].map(u32::to_be_bytes).as_flattened());
    bytes.extend(sets);
    bytes
}

#[test]
fn a_record_of_any_amount_is_saved_shown_and_merged() {
    let folder = std::env::temp_dir().join(format!("sidon-wide-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (one, two, three) = (path("one.sidon"), path("two.sidon"), path("three.sidon"));
    for amount in [3 << 60, (1 << 62) + 1, u64::MAX] {
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("sidon"))
            .args(["watch", "--netflow", &address, "-c", "1", "--duration", "60s", "-q"])
            .args(["--memory", "256KiB", "--save", &one])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while child.try_wait().unwrap().is_none() {
            let _ = sender.send_to(&wide(amount), &address);
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(child.wait().unwrap().success());
        let run = |arguments: &[&str]| {
            let output = Command::cargo_bin("sidon").unwrap().args(arguments).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            output.stdout
        };
        run(&["merge", &one, &one, "-o", &two]);
        run(&["merge", &two, &one, "-o", &three]);
        for (file, times) in [(&one, 1), (&two, 2), (&three, 3)] {
            let report: Value = serde_json::from_slice(&run(&["show", "--json", file])).unwrap();
            // A second datagram may have arrived before the command ended.
            let least = u128::from(amount) * times;
            let at_ceiling = report["packets"] == u64::MAX;
            assert_eq!(at_ceiling, report["packets_figure"]["kind"] == "at_least", "{report}");
            assert!(at_ceiling || u128::from(report["packets"].as_u64().unwrap()) >= least);
            assert!(!run(&["show", file]).is_empty());
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn two_sources_at_a_time_are_one_too_many() {
    for arguments in [
        &["-r", "x", "-i", "lo"][..],
        &["-i", "lo", "--netflow", "127.0.0.1:1"],
        &["--netflow", "127.0.0.1:1", "tcp"],
        &["-i", "lo", "--templates", "x"],
        &["-i", "lo", "--duration", "5x"],
        &[],
    ] {
        sidon(arguments).assert().code(2);
    }
}

#[test]
fn an_address_that_cannot_be_had_is_said() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = sidon(&["--netflow", &address]).assert().code(1).get_output().stderr.clone();
    assert!(String::from_utf8(said).unwrap().contains(&address));
}

#[cfg(target_os = "linux")]
#[test]
fn interfaces_are_listed_and_one_that_is_not_there_is_refused() {
    let listed = sidon(&["-D"]).assert().success().get_output().stdout.clone();
    let listed = String::from_utf8(listed).unwrap();
    assert!(listed.lines().any(|line| line.contains(".lo ")), "{listed}");
    let said = sidon(&["-i", "nosuch0"]).assert().code(1).get_output().stderr.clone();
    let said = String::from_utf8(said).unwrap();
    // Without the right to read interfaces, the message names the command that grants it.
    let [missing, setcap] = ["no interface \"nosuch0\"", "setcap cap_net_raw=ep "];
    assert!(said.contains(missing) || said.contains(setcap), "{said}");
}
