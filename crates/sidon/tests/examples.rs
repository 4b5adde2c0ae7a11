//! Runs the programs of `examples/` and compares lines of their output. `cargo test` builds them; a run of
//! this test alone (`--test examples`) needs `cargo build --examples` before it.

use std::{path::PathBuf, process::Command};

/// The output of an example, which must succeed.
fn output(name: &str) -> String {
    // The test lies in `deps`, and the examples in `examples` beside it.
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    program.extend(["examples", &format!("{name}{}", std::env::consts::EXE_SUFFIX)]);
    let source = format!("{}/examples/{name}.rs", env!("CARGO_MANIFEST_DIR"));
    let changed = |path: PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    assert!(
        changed(program.clone()) > changed(source.into()),
        "{} is missing or old: type cargo build -p sidon --examples",
        program.display()
    );
    let run = Command::new(&program).output().unwrap();
    let (out, err) = (String::from_utf8(run.stdout).unwrap(), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && err.is_empty(), "{name}: {}\n{out}{err}", run.status);
    out
}

/// Fails unless the output has each of these lines, in this order.
#[track_caller]
fn prints(name: &str, lines: &[&str]) -> String {
    let output = output(name);
    let mut rest = output.lines();
    for line in lines {
        assert!(rest.any(|printed| printed == *line), "{name} does not print {line:?}:\n{output}");
    }
    output
}

/// The number that follows this text in the output.
#[track_caller]
fn number(output: &str, after: &str) -> f64 {
    let rest = output.split(after).nth(1).unwrap_or_else(|| panic!("no {after:?}:\n{output}"));
    let end = rest.find([' ', '\n', ',', ';']).unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|why| panic!("{after:?}: {why}:\n{output}"))
}

const ERROR: &str = "wrong with a probability of at most ";

#[test]
fn deny_list() {
    let output = prints(
        "deny_list",
        &[
            "    5 s: 192.0.2.7 is denied",
            "    8 s: 2001:db8::9 is allowed",
            " 1140 s: 2001:db8::9 is denied",
            " 1300 s: 192.0.2.7 is allowed",
            " 1800 s: 2001:db8::9 is allowed",
        ],
    );
    assert!(number(&output, ERROR) <= 1e-6);
}

#[test]
fn seen_before() {
    let output = prints("seen_before", &[]);
    assert!(output.contains("20000 tokens were sent twice\n50000 tokens are stored in "));
    // No token was accepted twice. Some 0.1 % of the others were rejected.
    let [accepted, rejected] = ["accepted ", "rejected "].map(|word| number(&output, word));
    assert_eq!(accepted + rejected, 220_000.0);
    assert!((20_000.0..20_300.0).contains(&rejected));
    assert!(number(&output, ERROR) <= 0.001);
}

#[test]
fn connections() {
    let output = prints(
        "connections",
        &[
            "  0 s: 10.0.0.1:40000 syn: absent -> opening",
            "  1 s: 10.0.0.1:40000 ack: opening -> open",
            "  3 s: 10.0.0.3:40000 ack: absent -> absent",
            " 56 s: 10.0.0.1:40000 ack: closing -> absent",
            "125 s: 10.0.0.2:40000 ack: absent -> absent",
        ],
    );
    assert!(number(&output, ERROR) <= 1e-6);
}

#[test]
fn top_talkers() {
    let output = prints("top_talkers", &["152711774 bytes in 200000 packets"]);
    let first = output.lines().nth(2).unwrap();
    let columns: Vec<&str> = first.split_whitespace().collect();
    let [least, most] = [columns[1], columns[2]].map(|bytes| bytes.parse::<u64>().unwrap());
    // The host sends 12,330,876 bytes in 16,131 packets.
    assert_eq!(columns[0], "10.0.0.1");
    assert!(least <= 12_330_876 && 12_330_876 <= most, "{first}");
    assert!(number(&output, "the first ") >= 1.0);
}

#[test]
fn port_scans() {
    let output = prints("port_scans", &["after 60100 ms:", "after 119999 ms:"]);
    // The fast scan is listed at once. The slow one tries 121 to 181 ports in the newest 40 to 60 seconds.
    let [fast, slow] = ["198.51.100.9 tried ports: ~ ", "203.0.113.5 tried ports: ~ "]
        .map(|host| number(output.rsplit("after").next().unwrap_or(&output), host));
    assert!((200.0..2_000.0).contains(&fast) && (60.0..400.0).contains(&slow), "{output}");
    let hosts = number(&output, "hosts: ~ ");
    assert!((17_000.0..22_000.0).contains(&hosts), "{output}");
}

#[test]
fn heavy_networks() {
    let output =
        prints("heavy_networks", &["second 1: 20000 packets, 2492 new flows, halved every second"]);
    let second = |number: u32| {
        let rest = output.split(&format!("second {number}: ")).nth(1).unwrap();
        rest.split("second ").next().unwrap().to_owned()
    };
    for flooded in ["198.51.100.0/24", "2001:db8:7::/48"] {
        assert!(!second(5).contains(flooded) && second(7).contains(flooded), "{output}");
    }
    // Before the flood, only the network of all hosts is heavy.
    assert_eq!(second(5).matches("/").count(), 1, "{output}");
    assert!(second(10).contains("no other network has a tenth of the new flows"));
}

#[test]
fn scanners() {
    let output = prints("scanners", &["lost: 0"]);
    let accused: Vec<&str> = output.split("accused: ").skip(1).collect();
    assert_eq!(accused.len(), 2, "{output}");
    for (source, planned) in [("10.0.7.209", "at 80 %"), ("10.0.7.208", "at 10 %")] {
        assert!(output.contains(planned));
        assert!(accused.iter().any(|line| line.starts_with(source)), "{output}");
    }
    let [regular, random] = ["10.0.0.1: score ", "10.0.0.2: score "].map(|of| number(&output, of));
    assert!(regular > 0.7 && random < regular, "{output}");
}

#[test]
fn merge_processes() {
    let output = prints(
        "merge_processes",
        &[
            "worker 1: 10090 requests in 32100 bytes",
            "worker 2: 20180 requests in 32100 bytes",
            "together: 30270 requests",
        ],
    );
    // Page 7 has 300 requests. Its counters hold those of other pages, too.
    let most = number(&output, "/page/7: <= ");
    assert!((300.0..600.0).contains(&most));
}

#[test]
fn plan_and_audit() {
    let output = prints("plan_and_audit", &[]);
    let planned = number(&output, "planned share: ");
    assert!(0.0 < planned && planned <= 0.001);
    // Six standard deviations of the number of 980,000 other flows that pass.
    let expected = 980_000.0 * planned;
    let passed = number(&output, "of 980000 other flows, ");
    assert!((passed - expected).abs() <= 6.0 * expected.sqrt(), "{output}");
    assert!(output.contains("\nwrong answers about stored flows: 0, "), "{output}");
}

#[test]
fn save_and_load() {
    let output = prints(
        "save_and_load",
        &[
            "loaded 10000 keys; equal: true",
            "client-77: true",
            "another seed: written under another seed; the bytes do not hold it, so pass the seed \
             that the structure was built with",
            "damaged: the checksum does not match the bytes",
        ],
    );
    assert!(number(&output, ERROR) <= 0.012);
}
