//! `--save`, `show`, `merge` and `--rotate` as a user runs them.

use assert_cmd::Command;
use serde_json::Value;
use std::{fs, path::PathBuf};

/// A directory for one test, removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sidon-saved-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// A capture of `packets` generated packets, at 1,000 per second.
    pub(crate) fn capture(&self, name: &str, packets: u64, seed: u64) -> String {
        use sidon_traffic::{Generator, Mix, generate::write_pcap};
        let path = self.path(name);
        let mix = Mix { packets, rate: 1_000, active: 100, ..Mix::default() };
        let file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
        write_pcap(Generator::new(mix, seed).unwrap(), 65_535, file).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the command: what it wrote to standard output and to standard error.
pub(crate) fn sidon(arguments: &[&str], code: i32) -> (String, String) {
    let assert = Command::cargo_bin("sidon").unwrap().args(arguments).assert();
    let output = assert.get_output();
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}{err}");
    (out.into_owned(), err.into_owned())
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&sidon(arguments, 0).0).unwrap()
}

const SMALL: [&str; 4] = ["--memory", "512KiB", "--seed", "4711"];

pub(crate) fn watch(capture: &str, more: &[&str]) -> (String, String) {
    sidon(&[&["watch", "-r", capture], &SMALL[..], more].concat(), 0)
}

/// The words of a screen, whose title may take two lines.
fn unfolded(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The saved files in a directory, without its lock.
pub(crate) fn saved_in(directory: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(directory).unwrap().map(|one| one.unwrap().path());
    all.filter(|path| !path.ends_with(".lock")).collect()
}

#[test]
fn a_saved_file_shows_what_was_on_the_screen() {
    let folder = Folder::new("show");
    let (capture, saved) = (folder.capture("a.pcap", 5_000, 1), folder.path("a.sidon"));
    let (screen, _) = watch(&capture, &["--save", &saved]);
    let (shown, _) = sidon(&["show", &saved], 0);
    let body = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(body(&shown), body(&screen));
    assert!(shown.starts_with(&format!("{saved} (saved, given or random seed)")), "{shown}");

    let mut report: Value =
        serde_json::from_str(&watch(&capture, &["--json", "--save", &saved]).0).unwrap();
    let mut shown = json(&["show", "--json", &saved]);
    assert_eq!(shown["seed"], "given or random");
    shown.as_object_mut().unwrap().remove("seed");
    let check = shown["saved"]["seed_check"].as_str().unwrap().to_owned();
    assert_eq!((shown["saved"]["engines"].clone(), check.len()), (1.into(), 16));
    assert!(!shown.to_string().contains("4711"), "the seed is never printed");
    shown.as_object_mut().unwrap().remove("saved");
    // A file does not tell how its seed was chosen.
    assert_eq!(report.as_object_mut().unwrap().remove("seed"), Some("given".into()));
    report.as_object_mut().unwrap().sort_keys();
    shown.as_object_mut().unwrap().sort_keys();
    assert_eq!(shown, report);
    assert_eq!(
        json(&["show", "--json", "--top", "3", &saved])["top_flows"].as_array().unwrap().len(),
        3
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&saved).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it holds addresses and a seed");
    }
}

#[test]
fn files_of_two_hosts_merge_to_what_one_would_have_seen() {
    let folder = Folder::new("merge");
    let one = folder.capture("one.pcap", 3_000, 1);
    let two = folder.capture("two.pcap", 3_000, 2);
    let [a, b, c] = ["a.sidon", "b.sidon", "c.sidon"].map(|name| folder.path(name));
    watch(&one, &["--save", &a]);
    watch(&two, &["--save", &b]);
    let (_, said) = sidon(&["merge", &a, &b, "-o", &c], 0);
    assert!(said.contains("2 files, 6,000 packets"), "{said}");
    let merged = json(&["show", "--json", &c]);
    let [left, right] = [&a, &b].map(|file| json(&["show", "--json", file]));
    assert_eq!(merged["packets"], 6_000);
    assert_eq!(merged["ledger"]["balance"], 0);
    assert_eq!(merged["saved"]["engines"], 2);
    let bytes = |report: &Value| report["bytes"].as_u64().unwrap();
    assert_eq!(bytes(&merged), bytes(&left) + bytes(&right));
    // The heaviest of either is in the sum with no less.
    let heaviest = |report: &Value| report["top_flows"][0]["bytes"].as_u64().unwrap();
    assert!(heaviest(&merged) >= heaviest(&left).max(heaviest(&right)));
    let shown = unfolded(&sidon(&["show", &c], 0).0);
    assert!(shown.contains("(saved, given or random seed, 2 merged)"), "{shown}");
}

#[test]
fn files_of_one_balanced_link_merge_to_what_one_sensor_counts() {
    use sidon_traffic::{Generator, Mix, Packet, generate::write_pcap};
    let folder = Folder::new("balanced");
    let mix = Mix { packets: 6_000, rate: 1_000, active: 100, ..Mix::default() };
    let watch = |name: &str, is_here: &dyn Fn(&Packet) -> bool| {
        let [capture, saved] = ["pcap", "sidon"].map(|end| folder.path(&format!("{name}.{end}")));
        let packets = Generator::new(mix, 1).unwrap().filter(is_here);
        write_pcap(packets, 65_535, fs::File::create(&capture).unwrap()).unwrap();
        sidon(&["watch", "-r", &capture, "--seed", "4711", "--save", &saved], 0);
        saved
    };
    // A balancer that sends both directions of a flow to one sensor.
    let is_odd =
        |packet: &Packet| (packet.flow.source_port() ^ packet.flow.destination_port()) & 1 == 1;
    let all = watch("all", &|_| true);
    let parts = [watch("odd", &is_odd), watch("even", &|packet| !is_odd(packet))];
    let total = |file: &str| json(&["show", "--json", file])["connections"]["total"].clone();
    assert!(parts.iter().all(|part| total(part).as_u64() > Some(100)));
    let (sum, n) = (folder.path("sum.sidon"), total(&all));
    let interval = |made: &[&str]| {
        sidon(&[&["merge", &parts[0], &parts[1], "-o", &sum], made].concat(), 0);
        assert_eq!(total(&sum), n);
        json(&["show", "--json", &sum])["connections"]["total_figure"]["interval"].clone()
    };
    assert_eq!(interval(&["--by-flow"]), serde_json::json!([n, n]));
    assert_ne!(interval(&[]), serde_json::json!([n, n]));
    let golden = golden("bloom.sidon");
    let (_, said) = sidon(&["merge", "--by-flow", &golden, &golden, "-o", &sum], 1);
    assert!(said.contains("merge it without --by-flow"), "{said}");
}

#[test]
fn what_does_not_fit_together_is_refused_and_nothing_is_written() {
    let folder = Folder::new("refuse");
    let capture = folder.capture("a.pcap", 500, 1);
    let [a, b, c] = ["a.sidon", "b.sidon", "c.sidon"].map(|name| folder.path(name));
    watch(&capture, &["--save", &a]);
    let refused = |made: &[&str], why: &str| {
        sidon(&[&["watch", "-r", &capture, "--save", &b], made].concat(), 0);
        let (_, said) = sidon(&["merge", &a, &b, "-o", &c], 1);
        assert!(said.contains(&format!("they differ in their {why}")), "{said}");
        assert!(!fs::exists(&c).unwrap());
    };
    refused(&["--memory", "512KiB", "--seed", "4712"], "seed");
    refused(&["--memory", "512KiB"], "seed");
    refused(&["--memory", "1MiB", "--seed", "4711"], "memory");
    refused(&[&SMALL[..], &["--subnet", "10.0.0.0/24"]].concat(), "watched subnets");
    refused(&[&SMALL[..], &["tcp"]].concat(), "filter expression");
    refused(&[&SMALL[..], &["--inner"]].concat(), "treatment of tunnels");
    let golden = golden("bloom.sidon");
    let (_, said) = sidon(&["merge", &golden, &a, "-o", &c], 1);
    assert!(said.contains("kinds"), "{said}");
    sidon(&["merge", &a, &b], 2);
    sidon(&["merge", "-o", &c], 2);
    sidon(&["merge", &a, &folder.path("none"), "-o", &c], 1);
    assert!(!fs::exists(&c).unwrap());
    sidon(&["merge", &a, "-o", &c], 0);
    assert_eq!(fs::read(&a).unwrap(), fs::read(&c).unwrap(), "one alone is copied");
}

#[test]
fn a_damaged_file_says_what_is_wrong_and_where() {
    let folder = Folder::new("damage");
    let (capture, saved) = (folder.capture("a.pcap", 500, 1), folder.path("a.sidon"));
    watch(&capture, &["--save", &saved]);
    let image = fs::read(&saved).unwrap();
    let other = folder.path("other.sidon");

    fs::write(&other, &image[..image.len() - 1_000]).unwrap();
    let (_, said) = sidon(&["show", &other], 3);
    assert!(said.contains("other.sidon is cut: 1,000 of "), "{said}");
    let (_, said) = sidon(&["merge", &saved, &other, "-o", &folder.path("c")], 3);
    assert!(said.contains("other.sidon is cut"), "{said}");

    let mut damaged = image.clone();
    damaged[image.len() / 2] ^= 4;
    fs::write(&other, &damaged).unwrap();
    let (_, said) = sidon(&["show", &other], 3);
    assert!(said.contains("the checksum does not match"), "{said}");
    assert!(said.contains("of shard"), "{said}");

    fs::write(&other, b"not ours at all, but long enough to have a header").unwrap();
    let (_, said) = sidon(&["show", &other], 1);
    assert!(said.contains("other.sidon is not a saved file"), "{said}");
    sidon(&["show", &folder.path("none")], 1);
}

#[test]
fn periods_have_files_of_their_own_that_merge_to_the_whole() {
    let folder = Folder::new("rotate");
    let (capture, days) = (folder.capture("a.pcap", 5_000, 1), folder.path("days"));
    let (_, said) = watch(&capture, &["--rotate", "2s", "--save-dir", &days]);
    let mut names = saved_in(&days);
    names.sort();
    // Five seconds from an even one on, and the last packets a little later.
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(said.contains("5,000 packets in 3 files"), "{said}");
    let first = names[0].file_name().unwrap().to_str().unwrap();
    assert_eq!(first, "sidon-20231114T221320Z.sidon");
    let mut packets = 0;
    for name in &names {
        packets += json(&["show", "--json", name.to_str().unwrap()])["packets"].as_u64().unwrap();
    }
    assert_eq!(packets, 5_000);

    let merged = folder.path("all.sidon");
    let files: Vec<_> = names.iter().map(|name| name.to_str().unwrap()).collect();
    sidon(&[&["merge"], &files[..], &["-o", &merged, "-q"]].concat(), 0);
    let merged = json(&["show", "--json", &merged]);
    let whole: Value = serde_json::from_str(&watch(&capture, &["--json"]).0).unwrap();
    for same in ["packets", "bytes", "first", "last", "new_sources", "new_sources_total"] {
        assert_eq!(merged[same], whole[same], "{same}");
    }
    assert!(merged["connections"]["in_both"].as_u64().unwrap() > 0);

    // Another run into the same folder takes nothing away.
    watch(&capture, &["--rotate", "2s", "--save-dir", &days]);
    assert_eq!(saved_in(&days).len(), 6);
    assert!(fs::exists(PathBuf::from(&days).join("sidon-20231114T221320Z-2.sidon")).unwrap());
    for wrong in
        [&["--rotate", "2s"][..], &["--save-dir", "x"], &["--rotate", "2", "--save-dir", "x"]]
    {
        sidon(&[&["watch", "-r", &capture], wrong].concat(), 2);
    }
}

#[test]
fn a_capture_of_packets_hours_apart_has_a_limit_of_files_and_loses_none() {
    use sidon_traffic::{Generator, Mix, Packet, generate::write_pcap};
    let folder = Folder::new("sparse");
    let (capture, days) = (folder.path("sparse.pcap"), folder.path("days"));
    let mix = Mix { packets: 60, active: 10, ..Mix::default() };
    let hour = 3_600_000_000_000;
    let start = 1_700_000_000_000_000_000 / hour * hour;
    let hourly = Generator::new(mix, 1).unwrap().zip(0u64..);
    let hourly = hourly.map(|(packet, n)| Packet { time_ns: start + n * hour, ..packet });
    write_pcap(hourly, 65_535, fs::File::create(&capture).unwrap()).unwrap();
    let run = |most: &str, code| {
        let _ = fs::remove_dir_all(&days);
        let rotate = ["watch", "-r", &capture, "--rotate", "5m", "--save-dir", &days];
        let (_, said) = sidon(&[&rotate, &["--files-most", most][..], &SMALL].concat(), code);
        let mut names: Vec<_> =
            saved_in(&days).iter().map(|path| path.display().to_string()).collect();
        names.sort();
        let packets = |name: &String| json(&["show", "--json", name])["packets"].as_u64().unwrap();
        (names.iter().map(packets).collect::<Vec<_>>(), said)
    };
    let (packets, said) = run("10", 1);
    assert_eq!(packets, [vec![1; 9], vec![51]].concat());
    assert!(said.contains("60 packets in 10 files"), "{said}");
    assert!(said.contains("more than 10 periods") && said.contains("--files-most N"), "{said}");
    // All gaps are an hour long, so the one before the last packet counts, too.
    let (packets, said) = run("60", 0);
    assert_eq!(packets, vec![1; 60]);
    assert!(!said.contains("--files-most"), "{said}");
}

#[test]
fn a_broken_capture_is_saved_as_what_it_is() {
    let folder = Folder::new("partial");
    let (capture, saved) = (folder.capture("a.pcap", 500, 1), folder.path("a.sidon"));
    let bytes = fs::read(&capture).unwrap();
    fs::write(&capture, &bytes[..bytes.len() - 7]).unwrap();
    sidon(&[&["watch", "-r", &capture, "--save", &saved], &SMALL[..]].concat(), 3);
    assert_eq!(json(&["show", "--json", &saved])["partial"], true);
    let shown = unfolded(&sidon(&["show", &saved], 0).0);
    assert!(shown.contains("of a capture that broke off"), "{shown}");
}

fn golden(name: &str) -> String {
    let library = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sidon/tests/golden");
    library.join(name).display().to_string()
}

#[test]
fn every_structure_of_the_library_is_shown_and_merged_with_itself() {
    let folder = Folder::new("library");
    let both = folder.path("both.sidon");
    let mut shown = 0;
    let files = fs::read_dir(golden("")).unwrap().map(|one| one.unwrap().path());
    for file in files.filter(|path| path.extension().is_some_and(|end| end == "sidon")) {
        let path = file.display().to_string();
        let summary = json(&["show", "--json", &path]);
        let structure = summary["structure"].as_str().unwrap().to_owned();
        assert!(structure.contains("::"), "{path}: {structure}");
        assert!(!summary["facts"].as_object().unwrap().is_empty(), "{path}");
        assert!(sidon(&["show", &path], 0).0.contains(&structure));
        shown += 1;
        // A full table refuses a second copy of itself; every other one takes it.
        let mut merge = Command::cargo_bin("sidon").unwrap();
        let done = merge.args(["merge", &path, &path, "-o", &both]).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        match done.status.code() {
            Some(0) => {
                let merged = json(&["show", "--json", &both]);
                assert_eq!(merged["structure"], summary["structure"]);
                assert_eq!(merged["seed_check"], summary["seed_check"]);
                if let Some(keys) = summary["facts"]["keys"].as_u64()
                    && structure.starts_with("member")
                {
                    assert_eq!(merged["facts"]["keys"], 2 * keys, "{path}");
                }
            }
            Some(1) => {
                let known = ["cannot merge", "cannot be merged", "ceiling"]
                    .iter()
                    .any(|why| said.contains(why));
                assert!(known, "{path}: {said}");
            }
            other => panic!("{path}: {other:?} {said}"),
        }
    }
    assert!(shown >= 26, "{shown}");
}
