//! `sidon lab`: every claim of the quick run holds, whatever the number of threads.

use assert_cmd::Command;
use serde_json::Value;
use sidon_lab::row::VERDICTS;
use std::{collections::HashSet, fs};

fn sidon(args: &[&str]) -> (bool, String, String) {
    let output = Command::cargo_bin("sidon").unwrap().args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn rows(json: &str) -> Vec<Value> {
    let json: Value = serde_json::from_str(json).unwrap();
    json["rows"].as_array().unwrap().clone()
}

/// Whether two results are equal except in the last digits, which may differ between machines.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-8 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        _ => a == b,
    }
}

/// Compares the rows of a quick run with the results in docs/papers. All numbers must equal those of
/// a quick run, and the values of formulas also those of the full run. After a change, run
/// `sidon lab run --all --quick --json > docs/papers/quick.json` and the command in docs/PAPERS.md
/// with `--out docs`, and commit the results.
fn unchanged(paper: &str, rows: &[Value]) {
    let read = |name: &str| {
        let path = format!("{}/../../docs/papers/{name}.json", env!("CARGO_MANIFEST_DIR"));
        self::rows(&fs::read_to_string(path).unwrap())
    };
    let of = |all: Vec<Value>| -> Vec<Value> {
        all.into_iter().filter(|row| row["id"].as_str().unwrap().starts_with(paper)).collect()
    };
    let (quick, full) = (of(read("quick")), read(paper));
    let (_, listed, _) = sidon(&["lab", "list", paper, "--json"]);
    let listed = self::rows(&listed);
    assert_eq!((quick.len(), full.len(), listed.len()), (rows.len(), rows.len(), rows.len()));
    for (((now, quick), full), listed) in rows.iter().zip(&quick).zip(&full).zip(&listed) {
        let id = &now["id"];
        assert_eq!([&quick["id"], &full["id"], &listed["id"]], [id; 3]);
        for field in ["paper", "expected", "measured", "interval", "verdict"] {
            assert!(same(&now[field], &quick[field]), "{id}: {field} was {}", quick[field]);
            if listed["trials"] == 0 {
                assert!(same(&now[field], &full[field]), "{id}: {field} was {}", full[field]);
            }
        }
        // A quick run may show less than the full one, and nothing else.
        let shows_less =
            ["consistent", "too few trials"].iter().any(|&less| now["verdict"] == less);
        assert!(shows_less || now["verdict"] == full["verdict"], "{id}: {now}");
    }
}

#[test]
fn every_claim_of_000_and_001_holds() {
    for paper in ["000", "001"] {
        let (success, out, err) = sidon(&["lab", "run", paper, "--quick", "--json"]);
        assert!(success, "{err}");
        unchanged(paper, &rows(&out));
        let base = rows(&out).into_iter().find(|row| row["id"] == "001.dbf.base");
        assert!(base.is_none_or(|base| base["verdict"] == "paper rounds"));
    }
}

#[test]
fn every_claim_of_002_holds() {
    let (success, out, err) = sidon(&["lab", "run", "002", "--quick", "--json"]);
    assert!(success, "{err}");
    let rows = rows(&out);
    unchanged("002", &rows);
    let mut ids = HashSet::new();
    for row in &rows {
        let id = row["id"].as_str().unwrap();
        assert!(id.starts_with("002.") && ids.insert(id), "{id}");
        let verdict = row["verdict"].as_str().unwrap();
        assert!(
            VERDICTS.iter().any(|(known, _)| *known == verdict) && verdict != "fails",
            "{id}: {verdict}"
        );
        for field in ["paper", "expected", "measured", "note"] {
            assert!(row.get(field).is_some(), "{id} has no {field}");
        }
        assert_eq!(row["interval"].as_array().unwrap().len(), 2, "{id}");
    }
    // The measured value is within its interval, and is not a copy of the expected one.
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
    // Eight trials cannot tell 0.0254 from 0.055.
    assert_eq!(row("002.sim.overflow6_5.m53428")["verdict"], "too few trials");
    assert_eq!(row("002.table1.sim.ge7")["verdict"], "consistent");
    let table = row("002.table1.sim.ge7");
    let measured = table["measured"].as_f64().unwrap();
    assert!(table["interval"][0].as_f64().unwrap() <= measured && measured != 0.286807759603);
    assert!(table["note"].as_str().unwrap().contains("too few"));
    let printed = row("002.fluid.load6_5.elements");
    assert_eq!((&printed["paper"], &printed["measured"]), (&53428.into(), &53248.into()));
    // The list names the same claims.
    let (success, out, _) = sidon(&["lab", "list", "002", "--json"]);
    assert!(success);
    let listed = self::rows(&out);
    assert!(listed.iter().map(|row| &row["id"]).eq(rows.iter().map(|row| &row["id"])));
}

#[test]
fn every_claim_of_003_holds() {
    let (success, out, err) = sidon(&["lab", "run", "003", "--quick", "--json"]);
    assert!(success, "{err}");
    let rows = rows(&out);
    unchanged("003", &rows);
    assert!(rows.len() >= 104);
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
    // If the paper is wrong, the row has its number and the right one.
    let printed = row("003.table6.pol.d7");
    assert_eq!((&printed["paper"][0], &printed["measured"][0]), (&105.into(), &128.into()));
    assert_eq!(printed["verdict"], "paper is wrong");
    for members in ["d7", "d15"] {
        // The product is right for the printed length.
        assert_eq!(row(&format!("003.table7.pol.{members}"))["verdict"], "agrees");
    }
    assert_eq!(row("003.adaptive.wrong")["measured"], 0);
    let bytes = |id: &str| row(id)["measured"].as_f64().unwrap();
    assert!(bytes("003.adaptive.list") < bytes("003.adaptive.zones"));
    assert!(bytes("003.adaptive.zones") < 32.0);
}

#[test]
fn every_claim_of_004_holds() {
    let (success, out, err) = sidon(&["lab", "run", "004", "--quick", "--json"]);
    assert!(success, "{err}");
    let rows = rows(&out);
    unchanged("004", &rows);
    assert_eq!(rows.len(), 95);
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
    // The five schemes in the paper's order, by formula and simulated.
    for bits in [30, 50] {
        let rates: Vec<_> = ["cbf", "bh", "bh_improved", "vi_D4", "vi_general"]
            .iter()
            .map(|name| row(&format!("004.fig5.{name}.{bits}")))
            .map(|row| {
                assert!(row["note"].as_str().unwrap().contains("simulated 0.0"), "{row}");
                row["measured"].as_f64().unwrap()
            })
            .collect();
        assert!(rates.is_sorted_by(|a, b| a > b), "{rates:?}");
    }
    // The row of a misprint also has the right value.
    let wrong = ["004.table2.h12_l3", "004.thm3.pk_sign"];
    assert!(wrong.iter().all(|id| row(id)["verdict"] == "paper is wrong"));
    // Numbers that follow from a choice the paper does not state are not called wrong.
    let open = [
        "fig5.bh_improved_best_k.30",
        "fig5.bh_improved_best_k.50",
        "table1.vi_D4.min_m",
        "table1.bh_improved.main",
        "table1.ml_D4.layers",
    ];
    for id in open {
        assert_eq!(row(&format!("004.{id}"))["verdict"], "underspecified", "{id}");
    }
    assert_eq!(row("004.thm3.pk_sign")["paper"], -0.2);
    assert!(row("004.table1.ml_D4.capacity")["note"].as_str().unwrap().contains("30 %"));
}

#[test]
fn threads_change_nothing_and_seeds_do() {
    let run = |threads: &str, seed: &str| {
        let args = ["lab", "run", "002.sim.move6_75", "--trials", "3", "--json"];
        let (success, out, err) =
            sidon(&[&args[..], &["--threads", threads, "--seed", seed]].concat());
        assert!(success, "{err}");
        assert_eq!(rows(&out).len(), 2);
        out
    };
    let one = run("1", "5");
    assert_eq!(one, run("3", "5"));
    assert_ne!(one, run("3", "6"));
}

#[test]
fn results_are_written_to_a_folder() {
    let dir = std::env::temp_dir().join(format!("sidon-lab-{}", std::process::id()));
    let (success, out, err) = sidon(&[
        "lab",
        "run",
        "002.cmp",
        "000",
        "--quick",
        "--flows",
        "500",
        "--json",
        "--out",
        dir.to_str().unwrap(),
    ]);
    assert!(success, "{err}");
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let mut written = rows(&read("papers/000.json"));
    written.extend(rows(&read("papers/002.json")));
    assert_eq!(written, rows(&out));
    let page = read("papers/002.md");
    assert!(page.contains("sidon lab run 002.cmp 000 --quick --flows 500 --seed 1"), "{page}");
    assert!(page.contains("| over 100 | 52.646 | 52.646 |"), "{page}");
    // Every chart that the page shows is written, and so is the table of the state maps.
    let page = read("PAPERS.md");
    let shown: HashSet<_> = page
        .split("(papers/charts/")
        .skip(1)
        .filter_map(|rest| rest.split(".svg").next())
        .collect();
    assert_eq!(shown.len(), 6, "{shown:?}");
    for name in shown {
        assert!(read(&format!("papers/charts/{name}.svg")).starts_with("<svg"), "{name}");
    }
    assert!(read("papers/state_errors.md").starts_with("# State maps"));
    assert!(page.contains("## Errata") && page.contains("000.sbf.member_dk.limit: printed"));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn mistakes_are_explained() {
    for (args, part) in [
        (&["lab", "run", "9"][..], "no claim's id begins with \"9\""),
        (&["lab", "run"], "<ID>"),
        (&["lab", "run", "002", "--trials", "0"], "--trials"),
        (&["lab", "list", "003.table99"], "sidon lab list"),
    ] {
        let (success, out, err) = sidon(args);
        assert!(!success && out.is_empty() && err.contains(part), "{args:?}: {err}");
    }
}

#[test]
fn captures_give_the_papers_tables_or_say_why_not() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab-traffic");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (ok, _, said) = sidon(&["lab", "traffic", &path(".")]);
    assert!(!ok && said.contains("has no capture"), "{said}");

    fs::create_dir(path("deep")).unwrap();
    fs::write(path("deep/notes.txt"), "not a capture").unwrap();
    let capture = path("deep/office.pcap");
    assert!(sidon(&["generate", "-c", "30000", "--zipf", "0.5", "-w", &capture]).0);
    let (ok, json, said) = sidon(&["lab", "traffic", &path("."), "--json"]);
    assert!(ok, "{said}");
    let rows = rows(&json);
    let of = |verdict: &str| rows.iter().filter(|row| row["verdict"] == verdict).count();
    assert_eq!((of("traces differ"), of("exact"), of("agrees")), (4, 2, 10), "{json}");
    let shares: f64 = rows[..4].iter().map(|row| row["measured"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");

    // A compressed capture is read up to the limit that the user gives.
    // A zstd frame of stored blocks.
    let whole = fs::read(&capture).unwrap();
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3];
    let blocks = whole.chunks(128 << 10);
    let last = blocks.len() - 1;
    for (number, block) in blocks.enumerate() {
        let header = u32::from(number == last) | (block.len() as u32) << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(block);
    }
    fs::write(path("office.zst"), frame).unwrap();
    let (ok, _, said) = sidon(&["lab", "traffic", &path("office.zst"), "--input-most", "2MiB"]);
    assert!(ok && said.contains("--input-most raises this limit"), "{said}");
    let (ok, _, said) = sidon(&["lab", "traffic", &path("office.zst")]);
    assert!(ok && !said.contains("--input-most"), "{said}");
}
