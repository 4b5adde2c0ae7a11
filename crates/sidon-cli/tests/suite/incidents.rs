//! Incidents as a user sees them: thresholds, allowed subjects, events, packets as evidence.

use assert_cmd::Command;
use serde_json::Value;
use sidon_traffic::{
    Filter, Frame, Generator, Mix, Source, Verdict,
    generate::{Flood, write_pcap},
};
use std::{fs, path::PathBuf};

/// A directory with a capture of a flood and a scan, removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("sidon-incidents-{name}-{}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        let victim = "198.18.0.9:25".parse().unwrap();
        let flood = Flood { sources: 20_000, victim, after: 5_000, share: 80, ..Flood::default() };
        let mut shares = Mix::default().shares;
        shares.scan = 5;
        let mix =
            Mix { packets: 60_000, rate: 2_000, flood: Some(flood), shares, ..Mix::default() };
        let file = fs::File::create(folder.path("capture.pcap")).unwrap();
        write_pcap(Generator::new(mix, 5).unwrap(), 65_535, std::io::BufWriter::new(file)).unwrap();
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Runs `sidon watch` on the capture.
    fn watch(&self, arguments: &[&str], code: i32) -> String {
        let mut command = Command::cargo_bin("sidon").unwrap();
        command.args(["watch", "-r", &self.path("capture.pcap")]).args(arguments);
        let output = command.assert().code(code).get_output().clone();
        let bytes = if code == 0 { output.stdout } else { output.stderr };
        String::from_utf8(bytes).unwrap()
    }

    fn report(&self, arguments: &[&str]) -> Value {
        let text = self.watch(&[&["--json"], arguments].concat(), 0);
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

fn lines(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_report_has_each_incident_in_full_and_in_short() {
    let folder = Folder::new("report");
    let report = folder.report(&[]);
    let (incidents, alarms) = (&report["incidents"], &report["alarms"]);
    assert_eq!(texts(incidents, "kind"), ["syn_flood", "address_scan"]);
    assert_eq!(texts(incidents, "severity")[0], "critical");
    let fields = ["kind", "subject", "text", "opened", "closed", "filter", "evidence"];
    for (full, short) in incidents.as_array().unwrap().iter().zip(alarms.as_array().unwrap()) {
        assert!(fields.iter().all(|field| full[field] == short[field]), "{full} {short}");
        assert!(full["updated"].as_str() >= full["opened"].as_str());
        assert!(!full["size"].as_array().unwrap().is_empty());
        assert!((1..=8).contains(&full["examples"].as_array().unwrap().len()), "{full}");
        assert_eq!(full["id"].as_str().unwrap().len(), 16);
    }
    assert_eq!(
        (&incidents[0]["subject_port"], &incidents[0]["proto"]),
        (&25.into(), &"TCP".into())
    );
    // The number of threads changes nothing, and neither does a file between.
    let saved = folder.path("saved.sidon");
    let again = folder.report(&["--threads", "2", "--save", &saved]);
    assert_eq!(again["incidents"], *incidents);
    let mut show = Command::cargo_bin("sidon").unwrap();
    let shown = show.args(["show", "--json", &saved]).assert().code(0);
    let shown: Value = serde_json::from_slice(&shown.get_output().stdout).unwrap();
    assert_eq!(shown["incidents"], *incidents);
}

#[test]
fn thresholds_of_a_file_and_allowed_subjects_are_applied_and_shown() {
    let folder = Folder::new("thresholds");
    let printed = folder.path("printed.toml");
    let mut print = Command::cargo_bin("sidon").unwrap();
    let print = print.args(["watch", "--print-thresholds"]).assert().code(0);
    fs::write(&printed, &print.get_output().stdout).unwrap();
    let report = folder.report(&[]);
    assert_eq!(folder.report(&["--thresholds", &printed])["incidents"], report["incidents"]);

    let scanner = report["incidents"][1]["subject"].as_str().unwrap();
    let own = folder.path("own.toml");
    let text = "[networks]\nmail = \"198.18.0.0/24\"\n[syn_flood]\nenabled = true\n";
    fs::write(&own, format!("allow = [\"{scanner}: address_scan\"]\n{text}")).unwrap();
    for arguments in [&["--thresholds", &own][..], &["--allow", scanner]] {
        let report = folder.report(arguments);
        assert_eq!(texts(&report["incidents"], "kind"), ["syn_flood"]);
        assert_eq!(report["incidents_allowed"][0]["incidents"], 1, "{report}");
        assert_eq!(
            (&report["alarms_unlisted"], &report["ledger"]["refused"]["incidents_address_scan"]),
            (&0.into(), &Value::Null)
        );
        let screen = folder.watch(arguments, 0);
        assert!(screen.contains(&format!("allowed by {scanner}")), "{screen}");
    }
    assert_eq!(folder.report(&["--thresholds", &own])["incidents"][0]["network"], "mail");
    assert!(folder.watch(&["--thresholds", &own], 0).contains("198.18.0.9 port 25 (mail)"));

    fs::write(&own, "[syn_flood]\nenabled = false\n").unwrap();
    let report = folder.report(&["--thresholds", &own]);
    assert_eq!(texts(&report["incidents"], "kind"), ["address_scan"]);
    assert_eq!(report["incidents_allowed"], Value::Array(Vec::new()));

    fs::write(&own, "[syn_flood]\ncount = 10\nratio = 7\n").unwrap();
    let why = folder.watch(&["--thresholds", &own], 2);
    assert!(why.contains("own.toml:3: expected a number above 0, up to 1 in ratio"), "{why}");
    let why = folder.watch(&["--allow", "10.0.0.1:scan"], 2);
    assert!(why.contains("\"scan\" is not one of syn_flood, "), "{why}");
}

#[test]
fn events_have_the_addresses_of_their_incident_and_its_states() {
    let folder = Folder::new("events");
    let path = folder.path("events.jsonl");
    let report = folder.report(&["--events", &path]);
    let all = lines(&path);
    let alarms: Vec<_> = all.iter().filter(|event| event["event_type"] == "alarm").collect();
    for incident in report["incidents"].as_array().unwrap() {
        let own = alarms.iter().filter(|event| event["alarm"]["id"] == incident["id"]);
        let own: Vec<_> = own.collect();
        let states: Vec<_> = own.iter().map(|event| &event["alarm"]["state"]).collect();
        assert!(states[0] == "opened" && states.len() > 1, "{states:?}");
        assert_eq!(*states.last().unwrap() == "closed", !incident["closed"].is_null());
        let end = if incident["kind"] == "syn_flood" { "dest_ip" } else { "src_ip" };
        assert!(own.iter().all(|event| event[end] == incident["subject"]), "{own:?}");
        let other = if end == "dest_ip" { "src_ip" } else { "dest_ip" };
        assert!(own.iter().all(|event| event[other].is_null() && event["proto"] == "TCP"));
        let port = if end == "dest_ip" { 25 } else { own[0]["dest_port"].as_u64().unwrap() };
        assert!(own.iter().all(|event| event["dest_port"] == port), "{own:?}");
    }

    // Kinds select, and the rate drops and counts.
    let some = folder.path("some.jsonl");
    folder.report(&["--events", &some, "--event-kinds", "address_scan"]);
    let some = lines(&some);
    assert!(!some.is_empty() && some.iter().all(|event| event["alarm"]["kind"] == "address_scan"));
    let few = folder.path("few.jsonl");
    folder.report(&["--events", &few, "--event-rate", "5"]);
    let few = lines(&few);
    let (notes, kept): (Vec<&Value>, Vec<_>) =
        few.iter().partition(|event| event["event_type"] == "dropped");
    let dropped: u64 = notes.iter().map(|note| note["dropped"]["events"].as_u64().unwrap()).sum();
    assert_eq!(kept.len() as u64 + dropped, all.len() as u64);
    // A line counts for the latest second so far: those of a batch may come in another order.
    let (mut latest, mut taken) = (String::new(), 0);
    for event in kept {
        let second = event["timestamp"].as_str().unwrap()[..19].to_owned();
        if second > latest {
            (latest, taken) = (second, 0);
        }
        taken += 1;
        assert!(taken <= 5, "{latest}");
    }
    assert!(dropped > 100, "{dropped}");
    assert!(folder.watch(&["--events", "-", "--event-kinds", "x"], 2).contains("syn_flood"));
}

#[test]
fn packets_of_incidents_are_kept_within_their_limits() {
    let folder = Folder::new("evidence");
    let directory = folder.path("packets");
    let report = folder.report(&["--evidence", &directory, "--evidence-size", "64KiB"]);
    let incidents = report["incidents"].as_array().unwrap();
    let names = |end: &str| -> Vec<PathBuf> {
        let files = fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|own| own == end)).collect()
    };
    assert_eq!((names("json").len(), names("pcap").len()), (incidents.len(), incidents.len()));
    for path in names("json") {
        let one: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let incident = incidents.iter().find(|other| other["id"] == one["id"]).unwrap();
        assert_eq!((&one["subject"], &one["filter"]), (&incident["subject"], &incident["filter"]));
        let filter: Filter = one["filter"].as_str().unwrap().parse().unwrap();
        let pcap = path.with_extension("pcap");
        assert!(fs::metadata(&pcap).unwrap().len() <= 24 + (64 << 10));
        let mut source = Source::open(&pcap).unwrap();
        let mut kept = 0;
        while let Some(frame) = source.next().unwrap() {
            let frame: Frame<'_> = frame;
            assert_eq!(filter.verdict(&frame), Verdict::Match);
            kept += 1;
        }
        assert_eq!(one["packets"]["kept"], kept);
        assert!(kept > 50 && one["packets"]["matched"].as_u64() >= Some(kept));
    }
    let few = folder.path("few");
    folder.report(&["--evidence", &few, "--evidence-files", "1"]);
    assert_eq!(fs::read_dir(&few).unwrap().count(), 2);
}
