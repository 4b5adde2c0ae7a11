//! `sidon watch` as a user runs it, on captures that the project generates.

use assert_cmd::Command;
use serde_json::Value;
use std::{fmt::Write, fs, path::PathBuf};

/// A directory for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sidon-watch-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// A capture of `packets` generated packets.
    fn capture(&self, packets: u64) -> String {
        use sidon_traffic::{Generator, Mix, generate::write_pcap};
        let path = self.path("capture.pcap");
        let mix = Mix { packets, active: 300, ..Mix::default() };
        let file = fs::File::create(&path).unwrap();
        write_pcap(Generator::new(mix, 5).unwrap(), 65_535, std::io::BufWriter::new(file)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sidon(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("sidon").unwrap();
    command.arg("watch").args(arguments);
    command
}

fn json(arguments: &[&str], code: i32) -> Value {
    // Options go before the filter expression, as in tcpdump.
    let all = [&["--json"], arguments].concat();
    let output = sidon(&all).assert().code(code).get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

#[test]
fn a_capture_is_reported_in_full() {
    let folder = Folder::new("full");
    let capture = folder.capture(20_000);
    let report = json(&["-r", &capture, "--audit", "--seed", "1"], 0);
    assert_eq!(report["packets"], 20_000);
    assert_eq!(report["ledger"]["balance"], 0);
    assert_eq!(report["audit"]["violations"], 0);
    assert_eq!(report["top_flows"].as_array().unwrap().len(), 10);
    assert_eq!(report["top_flows"][0]["certainty"], "exact");
    assert!(report["memory"]["allocated"].as_u64() <= report["memory"]["budget"].as_u64());

    let screen = sidon(&["-r", &capture, "--audit"]).assert().code(0).get_output().stdout.clone();
    let screen = String::from_utf8(screen).unwrap();
    assert!(screen.contains("AUDIT  0 violations in "), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    assert!(!screen.contains('\x1b'), "no colour in a pipe");
}

#[test]
fn top_is_the_length_of_every_list_whatever_else_is_shown() {
    let folder = Folder::new("top");
    let (capture, saved) = (folder.capture(20_000), folder.path("saved.sidon"));
    let text = |arguments: &[&str]| {
        let output = sidon(arguments).assert().code(0).get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    };
    let flows = |screen: &str| screen.lines().filter(|line| line.contains(" <-> ")).count();
    for extra in [&[][..], &["--audit"], &["-v"], &["--save", &saved]] {
        for top in ["3", "10", "50"] {
            let screen = text(&[&["-r", &capture, "--top", top][..], extra].concat());
            assert_eq!(flows(&screen).to_string(), top, "{extra:?}: {screen}");
            for list in ["FLOW", "HOST"] {
                assert!(screen.contains(&format!("{list}  top {top} of ")), "{screen}");
            }
        }
    }
    let report = json(&["-r", &capture, "--top", "50"], 0);
    assert_eq!(report["top_flows"].as_array().unwrap().len(), 50);
    assert_eq!(report["top_hosts"].as_array().unwrap().len(), 50);
    let mut show = Command::cargo_bin("sidon").unwrap();
    let shown = show.args(["show", &saved, "--top", "37"]).assert().code(0);
    assert_eq!(flows(&String::from_utf8_lossy(&shown.get_output().stdout)), 37);
    // Without a terminal and without --top, each list has ten rows.
    assert_eq!(flows(&text(&["-r", &capture])), 10);
    assert_eq!(flows(&text(&["-r", &capture, "-q"])), 10);
}

#[test]
fn a_flood_is_alarmed_and_ends_with_status_four() {
    let folder = Folder::new("flood");
    let path = folder.path("flood.pcap");
    use sidon_traffic::{Generator, Mix, generate::Flood, generate::write_pcap};
    let victim: std::net::SocketAddrV4 = "198.18.0.9:25".parse().unwrap();
    let flood =
        Flood { sources: 20_000, victim, after: 5_000, share: 80, answered: 5, ..Flood::default() };
    let mix = Mix { packets: 40_000, rate: 2_000, flood: Some(flood), ..Mix::default() };
    let file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    write_pcap(Generator::new(mix, 5).unwrap(), 65_535, file).unwrap();
    let events = folder.path("events.jsonl");
    let report = json(&["-r", &path, "--exit-on-alarm", "--events", &events, "--audit"], 4);
    assert_eq!(report["alarms"][0]["kind"], "syn_flood");
    assert_eq!(report["alarms"][0]["subject"], "198.18.0.9");
    assert_eq!(report["audit"]["violations"], 0);
    assert!(report["connections"]["peak_half_open"].as_u64().unwrap() > 10_000);
    let lines = fs::read_to_string(&events).unwrap();
    let alarms = lines.lines().filter(|line| line.contains("\"event_type\":\"alarm\""));
    assert!(alarms.count() >= 1);
    // The filter of the alarm takes the flood and little else.
    let forged = Generator::new(mix, 5).unwrap().filter(|packet| {
        packet.flow.destination() == std::net::IpAddr::V4(*victim.ip())
            && packet.flow.destination_port() == victim.port()
            && packet.tcp_flags() == sidon_traffic::packet::TcpFlags::SYN
    });
    let forged = forged.count() as u64;
    assert!(forged > 15_000, "{forged}");
    let filter = report["alarms"][0]["filter"].as_str().unwrap();
    let part = json(&["-r", &path, filter], 0)["decoded"].as_u64().unwrap();
    assert!((forged..forged + 200).contains(&part), "{part} of {forged}");
    let screen = sidon(&["-r", &path, "--audit"]).assert().code(0).get_output().stdout.clone();
    let screen = String::from_utf8(screen).unwrap();
    assert!(screen.contains("ALARM  SYN flood at 198.18.0.9 port 25"), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
}

#[test]
fn a_cut_capture_is_reported_up_to_the_cut() {
    let folder = Folder::new("cut");
    let capture = folder.capture(1_000);
    let whole = fs::read(&capture).unwrap();
    let cut = folder.path("cut.pcap");
    fs::write(&cut, &whole[..whole.len() - 7]).unwrap();
    let report = json(&["-r", &cut], 3);
    assert_eq!(report["packets"], 999);
    assert_eq!(report["partial"], true);
    assert!(report["broken"].as_str().unwrap().contains("byte"), "{}", report["broken"]);
}

#[test]
fn what_cannot_be_read_or_understood_says_so() {
    let folder = Folder::new("wrong");
    let capture = folder.capture(10);
    sidon(&["-r", &folder.path("nothing.pcap")]).assert().code(1);
    sidon(&["-r", file!()]).assert().code(1);
    let output = sidon(&["-r", &capture, "tcp", "prot", "80"]).assert().code(2);
    let message = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(message.contains("tcp prot 80\n    ^^^^"), "{message}");
    sidon(&["-r", &capture, "--memory", "1"]).assert().code(2);
    sidon(&["-r", &capture, "--memory", "much"]).assert().code(2);
}

#[test]
fn a_filter_takes_what_it_says() {
    let folder = Folder::new("filter");
    let capture = folder.capture(5_000);
    let all = json(&["-r", &capture], 0);
    let udp = json(&["-r", &capture, "udp"], 0);
    let rest = json(&["-r", &capture, "not", "udp"], 0);
    let decoded = |report: &Value| report["decoded"].as_u64().unwrap();
    assert!(decoded(&udp) > 100);
    assert_eq!(decoded(&udp) + decoded(&rest), decoded(&all));
    assert_eq!(udp["ledger"]["filtered"].as_u64().unwrap(), decoded(&rest));
    assert!(
        udp["top_flows"]
            .as_array()
            .unwrap()
            .iter()
            .all(|flow| { flow["key"].as_str().unwrap().ends_with("udp") })
    );
    assert_eq!(json(&["-r", &capture, "-c", "77"], 0)["packets"], 77);
}

#[test]
fn threads_change_no_answer() {
    let folder = Folder::new("threads");
    let capture = folder.capture(10_000);
    let answer = |threads: &str| json(&["-r", &capture, "--seed", "9", "--threads", threads], 0);
    assert_eq!(answer("1"), answer("2"));
    assert_eq!(answer("1"), answer("8"));
}

#[test]
fn what_was_seen_last_time_is_known_this_time() {
    let folder = Folder::new("known");
    let (capture, known) = (folder.capture(3_000), folder.path("known.txt"));
    let first = json(&["-r", &capture, "--known", &known], 0);
    let new = first["new_sources_total"].as_u64().unwrap();
    assert!(new > 50, "{new}");
    let lines = fs::read_to_string(&known).unwrap();
    assert_eq!(lines.lines().filter(|line| !line.starts_with('#')).count() as u64, new);
    let second = json(&["-r", &capture, "--known", &known], 0);
    assert_eq!(second["new_sources_total"], 0);
    assert_eq!(fs::read_to_string(&known).unwrap(), lines);
    fs::write(&known, "10.0.0.1\nnonsense\n").unwrap();
    let output = sidon(&["-r", &capture, "--known", &known]).assert().code(1);
    let message = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(message.contains("known.txt:2"), "{message}");
}

/// A file of known sources that the tables cannot hold, and whatever else the user wrote.
fn known_file_stays(name: &str, memory: &str, addresses: impl Iterator<Item = u32>) {
    let folder = Folder::new(name);
    let (capture, known) = (folder.capture(3_000), folder.path("known.txt"));
    let mut user = "# the user's words\r\n\n".to_owned();
    for address in addresses {
        let _ = writeln!(user, "{}", std::net::Ipv4Addr::from_bits(address));
    }
    user += "2001:DB8::1 # a comment\n10.0.0.1\n10.0.0.1";
    fs::write(&known, &user).unwrap();
    let report = json(&["-r", &capture, "--known", &known, "-m", memory], 0);
    let refused = report["ledger"]["refused"]["known_sources"].as_u64().unwrap_or(0);
    assert!(refused > 0, "the tables hold all addresses: {}", report["ledger"]);
    let text = fs::read_to_string(&known).unwrap();
    assert!(text.starts_with(&user), "a line of the user is lost");
    let added: Vec<_> = text[user.len()..].split_whitespace().collect();
    assert!(added.iter().all(|line| line.parse::<std::net::IpAddr>().is_ok()), "{added:?}");
    let before: std::collections::HashSet<_> = user.lines().collect();
    assert!(!added.iter().any(|line| before.contains(line)), "an address is there twice");
    let names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|one| one.unwrap().path()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    // The next run has nothing to add, and leaves the file alone.
    json(&["-r", &capture, "--known", &known, "-m", memory], 0);
    assert_eq!(fs::read_to_string(&known).unwrap(), text);
}

#[test]
fn a_known_file_keeps_every_line_that_the_tables_cannot_hold() {
    known_file_stays("known-dense", "256KiB", (0..100_000).map(|n| 0x0b00_0000 + n));
    known_file_stays("known-sparse", "256KiB", (0..50_000).map(|n| 0x0b00_0000 + (n << 8)));
}

#[cfg(feature = "slow-tests")]
#[test]
fn a_known_file_keeps_two_million_lines() {
    known_file_stays("known-2m-dense", "16MiB", (0..2_000_000).map(|n| 0x0b00_0000 + n));
    known_file_stays("known-2m-sparse", "16MiB", (0..2_000_000).map(|n| 0x0b00_0000 + (n << 8)));
}

#[test]
fn a_flood_from_everywhere_makes_no_endless_report() {
    let folder = Folder::new("everywhere");
    let (capture, tables) = (folder.path("flood.pcap"), folder.path("tables"));
    let flood = ["-c", "6000", "--flood", "5000", "--flood-share", "90", "-s", "80"];
    let generate = ["generate", "-w", &capture];
    Command::new(env!("CARGO_BIN_EXE_sidon")).args(generate).args(flood).assert().success();
    let report = json(&["-r", &capture, "--csv", &tables], 0);
    let subnets = report["new_sources_subnets"].as_u64().unwrap();
    assert!(subnets > 1000, "{subnets}");
    assert_eq!(report["new_sources"].as_array().unwrap().len(), 1000);
    let all = fs::read_to_string(folder.0.join("tables/new_sources.csv")).unwrap();
    assert_eq!(all.lines().count() as u64, 1 + subnets);
}

#[test]
fn events_and_tables_are_written() {
    let folder = Folder::new("files");
    let capture = folder.capture(3_000);
    let (events, tables) = (folder.path("events.jsonl"), folder.path("tables"));
    let report = json(&["-r", &capture, "--events", &events, "--csv", &tables], 0);
    let lines = fs::read_to_string(&events).unwrap();
    assert_eq!(lines.lines().count() as u64, report["new_sources_total"].as_u64().unwrap());
    for line in lines.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["event_type"], "new_source");
        assert_eq!(event["src_ip"], event["new_source"]["address"]);
        assert!(event["community_id"].as_str().unwrap().starts_with("1:"));
    }
    let flows = fs::read_to_string(folder.0.join("tables/flows.csv")).unwrap();
    assert_eq!(flows.lines().count(), 11);
    let first = report["top_flows"][0]["key"].as_str().unwrap();
    assert!(flows.lines().nth(1).unwrap().starts_with(first), "{flows}");
}

#[test]
fn the_same_file_gives_the_same_report() {
    let folder = Folder::new("seed");
    let capture = folder.capture(20_000);
    let text = |args: &[&str]| {
        let output = sidon(&[&["-r", &capture], args].concat()).assert().success();
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    let first = text(&[]);
    assert_eq!(first, text(&[]));
    assert!(first.lines().next().unwrap().ends_with("(Pcap, fixed seed)"), "{first}");
    assert_eq!(text(&["--json"]), text(&["--json"]));
    let seed = |args: &[&str]| json(&[&["-r", &capture], args].concat(), 0)["seed"].clone();
    assert_eq!(seed(&[]), "fixed");
    assert_eq!(seed(&["--seed", "9"]), "given");
    assert_eq!(seed(&["--seed", "random"]), "random");
    // A random seed gives another image; the fixed one gives the same.
    let saved = |name: &str, args: &[&str]| {
        let path = folder.path(name);
        text(&[&["--save", &path], args].concat());
        fs::read(path).unwrap()
    };
    assert_eq!(saved("a.sidon", &[]), saved("b.sidon", &[]));
    assert_ne!(saved("c.sidon", &[]), saved("d.sidon", &["--seed", "random"]));
    let wrong = sidon(&["-r", &capture, "--seed", "x"]).assert().code(2);
    let message = String::from_utf8(wrong.get_output().stderr.clone()).unwrap();
    assert!(
        message
            .contains("expected a whole number below 2^128, or 0x and 1 to 32 hexadecimal digits"),
        "{message}"
    );
}

/// A seed of 128 bits gives one file, from the command line, a file or the environment. No message
/// contains the seed.
#[cfg(unix)]
#[test]
fn a_seed_comes_from_the_command_line_a_private_file_or_the_environment() {
    use std::os::unix::fs::PermissionsExt;
    const HEX: &str = "0x00112233445566778899aabbccddeeff";
    let folder = Folder::new("seed-file");
    let (capture, file, saved) =
        (folder.capture(2_000), folder.path("seed.txt"), folder.path("saved.sidon"));
    let run = |args: &[&str], variable: Option<&str>, code: i32| {
        let mut command = sidon(&["-q", "-r", &capture, "--save", &saved]);
        command.args(args).env_remove("SIDON_SEED").env("SIDON_SANDBOX", "quiet");
        variable.map(|seed| command.env("SIDON_SEED", seed));
        let output = command.assert().code(code).get_output().clone();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("112233445566") && !said.contains("private"), "{said}");
        (said, String::from_utf8(output.stdout).unwrap())
    };
    let image = |args: &[&str], variable: Option<&str>| {
        let (_, report) = run(args, variable, 0);
        assert!(report.lines().next().unwrap().ends_with("given seed)"), "{report}");
        fs::read(&saved).unwrap()
    };
    fs::write(&file, format!("{HEX}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let first = image(&["--seed", HEX], None);
    // The fields of the file begin with the lower and the upper half.
    assert_eq!(first[32..48], 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_le_bytes());
    let decimal = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_string();
    assert_eq!(image(&["--seed", &decimal], None), first);
    assert_eq!(image(&["--seed-file", &file], None), first);
    assert_eq!(image(&[], Some(HEX)), first);

    for (option, value) in [("--seed", HEX), ("--seed-file", &file)] {
        let (said, _) = run(&[option, value], Some(HEX), 2);
        let both =
            format!("{option} and the variable SIDON_SEED both give a seed; leave out {option}");
        assert!(said.contains(&both), "{said}");
    }
    let (said, _) = run(&["--seed", HEX, "--seed-file", &file], None, 2);
    assert!(said.contains("'--seed <") && said.contains("'--seed-file <"), "{said}");
    for wrong in ["", "private", "private 1"] {
        let (said, _) = run(&[], Some(wrong), 2);
        assert!(said.contains("SIDON_SEED cannot be used: "), "{said}");
    }
    for mode in [0o644, 0o620] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let (said, _) = run(&["--seed-file", &file], None, 2);
        assert!(said.contains(&format!("type: chmod 600 {file}")), "{said}");
    }
    let (said, _) = run(&["--seed-file", "/dev/zero"], None, 2);
    assert!(said.contains("the seed has more than 64 bytes"), "{said}");
}

#[test]
fn new_sources_are_a_bound_once_the_table_is_full() {
    let folder = Folder::new("refused");
    let capture = folder.path("flood.pcap");
    let flood = ["-c", "40000", "--flood", "30000", "--flood-share", "90", "-s", "80"];
    let generate = ["generate", "-w", &capture];
    Command::new(env!("CARGO_BIN_EXE_sidon")).args(generate).args(flood).assert().success();
    for (memory, sign, certainty) in [("256KiB", ">=", "at_least"), ("64MiB", "=", "exact")] {
        let args = ["-r", &capture, "-m", memory];
        assert_eq!(json(&args, 0)["new_sources_certainty"], certainty);
        let screen = sidon(&args).assert().success().get_output().stdout.clone();
        let screen = String::from_utf8(screen).unwrap();
        let line = screen.lines().find(|line| line.starts_with("NEW SOURCES")).unwrap();
        assert!(line.starts_with(&format!("NEW SOURCES  {sign} ")), "{line}");
        assert!(!line.contains("exact"), "{line}");
    }
}

#[test]
fn a_compressed_capture_beyond_a_limit_names_the_flag_that_raises_it() {
    let folder = Folder::new("bomb");
    let file = folder.0.join("zeros.pcap.gz");
    let words = [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 65_535, 1];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(4 << 20, 0);
    // A gzip member with stored blocks.
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    for chunk in bytes.chunks(65_535) {
        gzip.push(0);
        gzip.extend((chunk.len() as u16).to_le_bytes());
        gzip.extend((!(chunk.len() as u16)).to_le_bytes());
        gzip.extend(chunk);
    }
    std::fs::write(&file, gzip).unwrap();
    let file = file.to_str().unwrap();
    let assert = sidon(&["--input-most", "1MiB", "-r", file]).assert().code(3);
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(said.contains("--input-most raises this limit"), "{said}");
}
