//! What a user types, and what comes back.

use assert_cmd::Command;
use serde_json::Value;

fn sidon(args: &[&str]) -> (bool, String, String) {
    let output = Command::cargo_bin("sidon").unwrap().args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn rows(args: &[&str]) -> Vec<Value> {
    let (success, out, err) = sidon(args);
    assert!(success, "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    json["rows"].as_array().unwrap().clone()
}

#[test]
fn plan_member_lists_structures_cheapest_first() {
    let rows = rows(&["plan", "member", "--keys", "1000000", "--fpr", "0.01", "--json"]);
    let names: Vec<_> = rows.iter().map(|row| row["structure"].as_str().unwrap()).collect();
    let expected = [
        "bloom",
        "blocked",
        "dleft",
        "dleft",
        "elastic",
        "dleft",
        "multilayer",
        "backyard",
        "variable",
        "variable",
        "bh",
        "counting",
        "counting",
        "hash_set",
    ];
    assert_eq!(names, expected);
    let bytes: Vec<_> = rows.iter().map(|row| row["bytes"].as_u64().unwrap()).collect();
    assert!(bytes.is_sorted());
    for row in &rows {
        assert!(row["fpr"].as_f64().unwrap() <= 0.01);
        let bits = row["bytes"].as_f64().unwrap() * 8.0 / 1e6;
        assert!((row["bits_per_key"].as_f64().unwrap() - bits).abs() < 1e-9);
    }
    let counting = rows.iter().find(|row| row["structure"] == "counting").unwrap();
    assert_eq!(counting["deletes"], true);
    assert_eq!(counting["shape"]["width"], 4);
    assert_eq!(counting["shape"]["hashes"], 7);
    // A Bloom filter takes a quarter of the counters' bits, rounded up to bytes.
    assert_eq!(rows[0]["shape"]["bits"], counting["shape"]["counters"]);
}

#[test]
fn keys_that_leave_take_little_more_than_keys_that_stay() {
    let rows = rows(&["plan", "member", "--keys", "1000000", "--fpr", "0.001", "--json"]);
    let dleft: Vec<_> = rows.iter().filter(|row| row["structure"] == "dleft").collect();
    let bits = |row: &Value| row["bits_per_key"].as_f64().unwrap();
    let [smallest, small, fast] = dleft[..] else { panic!("three shapes, got {dleft:?}") };
    assert!(bits(smallest) <= 15.0 && smallest["shape"]["counter"] == 0);
    assert!(bits(small) <= 17.0 && small["shape"]["counter"] == 2);
    for row in [smallest, small, fast] {
        assert_eq!(row["deletes"], true);
        assert_eq!(row["shape"]["subtables"], 2);
        assert_eq!(row["shape"]["moves"], "search 256");
        let cells = 2 * row["shape"]["cells"].as_u64().unwrap();
        let bytes = row["shape"]["width"].as_u64().unwrap() * cells / 8;
        let buckets = row["shape"]["buckets"].as_u64().unwrap();
        assert_eq!(row["bytes"].as_u64().unwrap(), bytes * buckets);
    }
}

#[test]
fn the_table_and_the_json_tell_the_same() {
    let (success, out, _) = sidon(&["plan", "member", "--keys", "1e6", "--fpr", "0.01"]);
    assert!(success);
    for row in rows(&["plan", "member", "--keys", "1_000_000", "--fpr", "0.01", "--json"]) {
        let name = row["structure"].as_str().unwrap();
        let bits = format!(" {:.2} ", row["bits_per_key"].as_f64().unwrap());
        let is_row = |line: &str| line.starts_with(name) && line.contains(&bits);
        assert!(out.lines().any(is_row), "{name}{bits}in {out}");
    }
}

#[test]
fn bad_targets_are_explained() {
    for (args, part) in [
        (["--keys", "0", "--fpr", "0.01"], "--keys 0 is too small"),
        (["--keys", "10", "--fpr", "0"], "--fpr 0 is too small"),
        (["--keys", "10", "--fpr", "NaN"], "--fpr NaN is not a number"),
        (["--keys", "ten", "--fpr", "0.1"], "whole number"),
        (["--keys", "1.5", "--fpr", "0.1"], "whole number"),
        (["--keys", "18446744073709551615", "--fpr", "0.1"], "is too large"),
    ] {
        let (success, out, err) = sidon(&[&["plan", "member"][..], &args].concat());
        assert!(!success && out.is_empty(), "{args:?}");
        assert!(err.contains(part), "{args:?}: {err}");
    }
}

#[test]
fn a_plan_tells_the_floor_the_lines_and_what_each_can_do() {
    let all = rows(&["plan", "member", "--keys", "1e6", "--fpr", "0.0009765625", "--json"]);
    for row in &all {
        assert_eq!(row["floor_bits"], 10.0);
        let bits = row["bits_per_key"].as_f64().unwrap();
        assert!(
            (row["excess"].as_f64().unwrap() - (bits / 10.0 - 1.0)).abs() < 1e-9 && bits > 10.0
        );
        assert!(
            row["lines"].as_u64().unwrap() >= 1 && row["merges"] == true && row["ages"] == false
        );
    }
    let row = |name: &str| all.iter().find(|row| row["structure"] == name).unwrap();
    assert_eq!(row("blocked")["lines"], 1);
    assert_eq!(row("bloom")["lines"], row("bloom")["shape"]["hashes"]);
    assert_eq!((&row("dleft")["grows"], &row("bloom")["grows"]), (&true.into(), &false.into()));
    let zones = rows(&["plan", "zone", "--universe", "256", "--members", "3", "--json"]);
    // 1 + 256 + 32640 + 2763520 sets.
    assert!(zones.iter().all(|row| (row["floor_bits"].as_f64().unwrap() - 21.4151).abs() < 1e-3));
    let counts = ["plan", "count", "--memory", "1MiB", "--keys", "1e6", "--json"];
    assert!(rows(&counts)[0]["excess"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_plan_is_explained_with_the_numbers_put_in() {
    for (args, parts) in [
        (
            &["member", "--keys", "1000000", "--fpr", "0.01"][..],
            &["log2(1/0.01) = 6.644", "(1 - (1 - 1/9,5", "* 1,000,000))^7", "2^", "n / 2^64"][..],
        ),
        (
            &["state", "--flows", "1e6", "--states", "8", "--error", "1e-4"],
            &["+ log2(8) = 16.288", "s f (1 - f)^(s-1)", "1,000,000"],
        ),
        (
            &["zone", "--universe", "256", "--members", "3"],
            &["C(256, i)", "7 * 7, t = 3", "4 * 16"],
        ),
        (&["count", "--epsilon", "0.01", "--delta", "0.01"], &["e / 272", "e^-5"]),
    ] {
        let (success, out, err) = sidon(&[&["plan", "explain"], args].concat());
        assert!(success, "{err}");
        for part in parts {
            assert!(out.contains(part), "{part} in {out}");
        }
    }
}

#[test]
fn what_cannot_be_had_says_what_to_relax() {
    for (args, part) in [
        (&["member", "--keys", "10", "--fpr", "1e-13"][..], "type --fpr 1e-12 or more, 10 times"),
        (&["member", "--keys", "1e12", "--fpr", "1e-8"], "or type --keys 11529215046 or less"),
        (&["zone", "--universe", "256", "--members", "300"], "type --members 256 or less"),
        (
            &["state", "--flows", "9", "--states", "1000000", "--error", "0.1"],
            "type --states 32768 or less",
        ),
        (&["count", "--epsilon", "2"], "--epsilon 2 is too large; type a number below 1"),
    ] {
        let (success, out, err) = sidon(&[&["plan"], args].concat());
        assert!(!success && out.is_empty() && err.contains(part), "{args:?}: {err}");
    }
}

#[test]
fn flows_that_end_unheard_and_overflow_odds_take_room() {
    let line = ["plan", "state", "--flows", "1e6", "--states", "8", "--error", "1e-4", "--json"];
    let plain = rows(&line);
    let timeout = ["--timeout", "30", "--silent", "10000"];
    let aged = rows(&[&line[..], &timeout].concat());
    // 600,000 more flows; structures that do not age are left out.
    assert!(aged.iter().all(|row| row["ages"] == true && row["structure"] != "hash_map"));
    let bytes = |rows: &[Value], name: &str| {
        let row = rows.iter().find(|row| row["structure"] == name).unwrap();
        row["bytes"].as_f64().unwrap()
    };
    let ratio = bytes(&aged, "fingerprint") / bytes(&plain, "fingerprint");
    assert!((1.5..1.7).contains(&ratio), "{ratio}");
    for odds in ["1e-3", "1e-9"] {
        let roomy = rows(&[&line[..], &["--overflow", odds]].concat());
        assert_eq!(roomy.len(), plain.len() + 1);
        let most: f64 = odds.parse().unwrap();
        let meets = |row: &&Value| row["overflow"].as_f64().is_some_and(|o| o <= most);
        let row = roomy.iter().find(meets).unwrap();
        // No larger than it must be.
        assert!(row["overflow"].as_f64().unwrap() > most * 0.9, "{row}");
    }
    let (success, _, err) = sidon(&[&line[..], &["--timeout", "30"]].concat());
    assert!(!success && err.contains("--silent"), "{err}");
}

#[test]
fn plan_state_lists_maps_cheapest_first() {
    let line = ["plan", "state", "--flows", "1e6", "--states", "8", "--error", "0.0001"];
    let rows = rows(&[&line[..], &["--json"]].concat());
    let bytes: Vec<_> = rows.iter().map(|row| row["bytes_per_flow"].as_f64().unwrap()).collect();
    assert!(bytes.is_sorted() && bytes[0] < 4.0, "{bytes:?}");
    let names: Vec<_> = rows.iter().map(|row| row["structure"].as_str().unwrap()).collect();
    assert_eq!(names[0], "fingerprint");
    for name in ["direct", "stateful", "hash_map"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for row in &rows {
        assert!(
            row["error"].as_f64().unwrap() <= 1e-4 && row["dont_know"].as_f64().unwrap() <= 1e-4
        );
    }
    let (success, out, _) = sidon(&line);
    assert!(success && out.contains("remainder") && out.contains("don't\nstructure"), "{out}");
    let (success, _, err) =
        sidon(&["plan", "state", "--flows", "9", "--states", "0", "--error", "0.1"]);
    assert!(!success && err.contains("--states 0 is too small"), "{err}");
}

#[test]
fn the_demo_keeps_its_promises() {
    let (success, out, err) = sidon(&["demo", "--sources", "100000", "--json"]);
    assert!(success, "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["audit"]["violations"], 0);
    assert!(report["audit"]["flows"].as_u64().unwrap() > 300, "{}", report["audit"]);
    let alarms = report["alarms"].as_array().unwrap();
    assert_eq!(alarms.len(), 1, "{alarms:?}");
    assert_eq!(
        (&alarms[0]["kind"], &alarms[0]["subject"]),
        (&"syn_flood".into(), &"198.18.0.7".into())
    );
    assert!(report["victim"].as_str().unwrap().starts_with("198.18.0.7:"));
    assert!(report["connections"]["peak_half_open"].as_u64().unwrap() > 50_000);
    assert_eq!(report["ledger"]["balance"], 0);
    let memory = &report["memory"];
    assert!(memory["allocated"].as_u64() <= memory["budget"].as_u64());
    if let (Some(least), Some(most)) =
        (memory["resident_least"].as_u64(), memory["resident_most"].as_u64())
    {
        assert!(most > least / 2 && most > memory["allocated"].as_u64().unwrap() / 2);
    }

    let (success, out, _) = sidon(&["demo", "--sources", "20000"]);
    assert!(success && out.contains("SYN flood at 198.18.0.7 port 443"), "{out}");
    assert!(out.contains("0 bound violations") && out.contains("sidon watch -r"), "{out}");
    assert!(!out.contains('\x1b'), "no redrawing in a pipe");
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn an_audit_measures_what_was_planned() {
    let rows = rows(&[
        "plan",
        "member",
        "--keys",
        "30000",
        "--fpr",
        "0.01",
        "--audit",
        "--turnovers",
        "3",
        "--json",
    ]);
    let mut measured = 0;
    for row in &rows {
        let Some(found) = row["measured"].as_object() else {
            assert_eq!(row["structure"], "hash_set");
            continue;
        };
        assert_eq!((&found["lost"], &found["refused"]), (&0.into(), &0.into()), "{row}");
        let churned = if row["deletes"] == true { 90_000 } else { 0 };
        assert_eq!(found["churned"], churned, "{row}");
        // A million strangers at one in a hundred: six sigma are 6 %, the table's own spread more.
        let ratio = found["fpr"].as_f64().unwrap() / row["fpr"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.12, "{row}");
        measured += 1;
    }
    assert!(measured >= 9);

    let (success, _, err) =
        sidon(&["plan", "member", "--keys", "9", "--fpr", "0.1", "--only", "x"]);
    assert!(!success && err.contains("--only x: no structure of this name"));
}

#[test]
fn plans_of_distinct_counts_are_measured_by_their_audit() {
    let line = ["plan", "distinct", "--error", "0.02", "--keys", "50000", "--audit", "--json"];
    let [distinct, hash_set] = &rows(&line)[..] else { panic!("two rows") };
    assert_eq!(distinct["shape"]["registers"], 328);
    assert_eq!((&hash_set["structure"], &hash_set["measured"]), (&"hash_set".into(), &Value::Null));
    let found = |row: &Value, name: &str| row["measured"][name].as_f64().unwrap();
    // 100 runs: a root mean square has a relative error of 1 / sqrt(200), and six of them are 42 %.
    assert!((found(distinct, "error") / 0.02 - 1.0).abs() < 0.43, "{distinct}");
    // 99 of 100, less six standard deviations of sqrt(0.99).
    assert!(found(distinct, "held") >= 93.0, "{distinct}");

    let line = ["plan", "fan-out", "--keys", "500", "--error", "0.13", "--audit", "--json"];
    let [row] = &rows(&line)[..] else { panic!("one row") };
    assert_eq!(row["shape"]["registers"], 10);
    let planned = row["error"].as_f64().unwrap();
    assert!((found(row, "error") / planned - 1.0).abs() < 6.0 / 1_000f64.sqrt(), "{row}");
    // At most half a key of 500 is planned to be lost; eight are 1 in 10^9.
    assert!(found(row, "lost") <= 7.0 / 500.0 && row["lost"].as_f64().unwrap() <= 0.001, "{row}");
    assert!(found(row, "held") >= 0.99 - 6.0 * (0.99f64 * 0.01 / 500.0).sqrt(), "{row}");
}

#[test]
fn an_audit_of_networks_finds_the_planted_ones_and_no_wrong_bound() {
    for size in [["--memory", "64KiB"], ["--slack", "0.001"]] {
        let line =
            [&["plan", "prefixes", "--audit", "--packets", "200000", "--json"][..], &size].concat();
        let (success, out, err) = sidon(&line);
        assert!(success, "{err}");
        let plan: Value = serde_json::from_str(&out).unwrap();
        let audit = &plan["audit"];
        assert_eq!(
            (&audit["wrong"], &audit["planted"], &audit["found"]),
            (&0.into(), &10.into(), &10.into())
        );
        assert!(audit["bounds"].as_u64().unwrap() > 10_000);
        let rows = plan["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[2]["ipv4"], &rows[2]["ipv6"]), (5, &20.into(), &56.into()));
        for row in rows {
            let [planned, measured] =
                [&row["slack"], &row["measured"]["slack"]].map(|x| x.as_f64().unwrap());
            assert!(0.0 < planned && measured <= planned, "{row}");
        }
    }
    let (success, out, _) = sidon(&["plan", "prefixes", "--memory", "1MiB"]);
    assert!(success && out.contains("/24, /64") && out.contains("1023.75 KiB in all"), "{out}");
}

#[test]
fn plan_count_gives_the_rows_and_columns_of_the_paper() {
    let rows = rows(&["plan", "count", "--epsilon", "0.01", "--delta", "0.01", "--json"]);
    assert_eq!(rows[0]["shape"]["rows"], 5);
    assert_eq!(rows[0]["shape"]["columns"], 272);
    assert_eq!(rows[0]["bytes"], 5 * 272 * 4);
    assert!(rows[0]["epsilon"].as_f64().unwrap() <= 0.01);
    let (success, out, _) = sidon(&["plan", "count", "--epsilon", "0.01", "--delta", "0.01"]);
    assert!(success && out.contains("rows 5, columns 272"), "{out}");
}

#[test]
fn plan_count_fits_memory_and_names_the_plain_alternative() {
    let line = ["plan", "count", "--memory", "1MiB", "--keys", "1e6", "--json"];
    let rows = rows(&line);
    let names: Vec<_> = rows.iter().map(|row| row["structure"].as_str().unwrap()).collect();
    assert_eq!(names, ["min", "min", "hash_map"]);
    assert!(rows[..2].iter().all(|row| row["bytes"].as_u64().unwrap() <= 1 << 20));
    assert!(rows[0]["mean_overestimate"].as_f64() < rows[1]["mean_overestimate"].as_f64());
    assert_eq!(rows[2]["bytes"], (1 << 21) * 17);
    let few = ["plan", "count", "--memory", "1MiB", "--keys", "1000"];
    assert!(sidon(&few).1.contains("A plain hash table is the smallest here"));
    for wrong in [
        &["plan", "count", "--delta", "0.01"][..],
        &["plan", "count", "--epsilon", "0.1", "--memory", "1MiB"],
        &["plan", "count", "--epsilon", "2"],
        &["plan", "count", "--memory", "2"],
    ] {
        let (success, _, err) = sidon(wrong);
        assert!(!success && !err.is_empty(), "{wrong:?}");
    }
}

#[test]
fn plan_zone_has_the_right_lengths() {
    for (members, expected) in [
        ("3", [("egh", 100), ("coprime", 70), ("ols", 64), ("pol", 49), ("list", 26)]),
        ("7", [("egh", 328), ("coprime", 181), ("ols", 128), ("pol", 128), ("list", 59)]),
        ("15", [("egh", 1060), ("coprime", 577), ("ols", 256), ("pol", 256), ("list", 124)]),
    ] {
        let rows = rows(&["plan", "zone", "--universe", "256", "--members", members, "--json"]);
        let bits: Vec<_> = rows.iter().map(|row| row["bits"].as_u64().unwrap()).collect();
        assert!(bits.is_sorted() && rows.len() == 7);
        for (code, bits) in expected.into_iter().chain([("bitmap", 256)]) {
            let row = rows.iter().find(|row| row["code"] == code).unwrap();
            assert_eq!(row["bits"], bits, "{code}");
            assert!(row["zone"].as_u64().unwrap() >= members.parse().unwrap(), "{row}");
            assert!(row["probes"].is_u64() && row["shape"].is_object());
        }
        let pol = rows.iter().find(|row| row["code"] == "pol").unwrap();
        assert_eq!(pol["shape"]["order"], if members == "3" { 7 } else { 16 });
        assert_eq!(pol["matrix_bits"].as_u64().unwrap(), pol["bits"].as_u64().unwrap() * 256);
        assert_eq!(pol["cut"]["bits"].as_u64(), (members == "3").then_some(48));
    }
    let (success, out, _) = sidon(&["plan", "zone", "--universe", "256", "--members", "3"]);
    assert!(success && out.contains("pol, cut") && out.contains("a list of them is the smallest"));
    let runs =
        rows(&["plan", "zone", "--universe", "2000", "--members", "2", "--crossovers", "--json"]);
    let first = &runs[0];
    assert_eq!(
        (&first["code"], &first["from"], &first["to"]),
        (&"ols".into(), &8.into(), &169.into())
    );
    let (success, _, err) = sidon(&["plan", "zone", "--universe", "256", "--members", "0"]);
    assert!(!success && err.contains("--members 0 is too small"));
}

/// Whether every line of the output fits 80 columns.
fn fits(args: &[&str]) {
    let (_, out, err) = sidon(args);
    assert!(!out.is_empty(), "{args:?}: {err}");
    for line in out.lines().chain(err.lines()) {
        assert!(line.chars().count() <= 80, "{args:?}: wider than 80 columns: {line}");
    }
}

#[test]
fn help_fits_80_columns() {
    for command in [
        "",
        "watch",
        "serve",
        "demo",
        "generate",
        "lab",
        "lab list",
        "lab run",
        "lab traffic",
        "machine",
        "machine check",
        "machine dot",
        "man",
        "merge",
        "plan",
        "plan member",
        "plan count",
        "plan distinct",
        "plan fan-out",
        "plan state",
        "plan zone",
        "plan explain",
        "plan explain member",
        "plan explain count",
        "plan explain distinct",
        "plan explain fan-out",
        "plan explain state",
        "plan explain zone",
        "show",
        #[cfg(feature = "parquet")]
        "tables",
        "completions",
    ] {
        for help in ["-h", "--help"] {
            let words: Vec<&str> = command.split_whitespace().chain([help]).collect();
            fits(&words);
        }
    }
}

#[test]
fn tables_and_texts_fit_80_columns() {
    let member = ["member", "--keys", "1e6", "--fpr", "0.001"];
    let state = ["state", "--flows", "1e9", "--states", "8", "--error", "1e-4"];
    let aged = [&state[..], &["--timeout", "30", "--silent", "1e4", "--overflow", "1e-6"]].concat();
    let count = ["count", "--memory", "1MiB", "--keys", "1e12"];
    let zone = ["zone", "--universe", "1e6", "--members", "200"];
    let distinct = ["distinct", "--error", "0.001", "--keys", "1e12"];
    let fan_out = ["fan-out", "--keys", "1e6", "--error", "0.05", "--panes", "16"];
    for question in [&member[..], &state, &aged, &count, &distinct, &fan_out, &zone] {
        fits(&[&["plan"], question].concat());
        fits(&[&["plan", "explain"], question].concat());
    }
    fits(&["plan", "zone", "--universe", "2000", "--members", "2", "--crossovers"]);
    let audit = ["--audit", "--turnovers", "1", "--keys", "1000", "--fpr", "0.1"];
    fits(&[&["plan", "member", "--only", "bloom"], &audit[..]].concat());
    fits(&["lab", "list"]);
    fits(&["lab", "run", "000", "003", "--quick"]);
    let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/machines");
    for name in ["tcp-handshake", "udp-without-reply"] {
        fits(&["machine", &format!("{machines}/{name}.toml")]);
    }
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../sidon/tests/golden");
    for file in std::fs::read_dir(golden).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|end| end == "sidon") {
            // The path itself is one word, and may be longer than a line.
            let mut command = Command::cargo_bin("sidon").unwrap();
            command.current_dir(golden).arg("show").arg(path.file_name().unwrap());
            let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
            assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
        }
    }
}
