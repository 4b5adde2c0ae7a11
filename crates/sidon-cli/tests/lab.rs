//! `sidon lab`: every claim of the quick run holds, whatever the number of threads.

use assert_cmd::Command;
use serde_json::Value;
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

#[test]
fn every_claim_of_002_holds() {
    let (success, out, err) = sidon(&["lab", "run", "002", "--quick", "--json"]);
    assert!(success, "{err}");
    let rows = rows(&out);
    let mut ids = HashSet::new();
    for row in &rows {
        let id = row["id"].as_str().unwrap();
        assert!(id.starts_with("002.") && ids.insert(id), "{id}");
        let verdict = row["verdict"].as_str().unwrap();
        assert!(
            ["agrees", "paper is wrong", "paper prints no number"].contains(&verdict),
            "{id}: {verdict}"
        );
        for field in ["paper", "expected", "measured", "note"] {
            assert!(row.get(field).is_some(), "{id} has no {field}");
        }
        assert_eq!(row["interval"].as_array().unwrap().len(), 2, "{id}");
    }
    // What is measured lies where it must, and was not copied from what is expected.
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
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
    assert!(rows.len() >= 104);
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
    // Where the paper errs, its number stands beside the right one.
    let printed = row("003.table6.pol.d7");
    assert_eq!((&printed["paper"][0], &printed["measured"][0]), (&105.into(), &128.into()));
    assert_eq!(printed["verdict"], "paper is wrong");
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
    assert_eq!(rows.len(), 83);
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
    // Misprints stand beside what is right.
    let wrong = ["004.table2.h12_l3", "004.thm3.pk_sign", "004.fig5.bh_improved_best_k.30"];
    assert!(wrong.iter().all(|id| row(id)["verdict"] == "paper is wrong"));
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
    let (success, out, err) =
        sidon(&["lab", "run", "002.cmp", "000", "--json", "--out", dir.to_str().unwrap()]);
    assert!(success, "{err}");
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let mut written = rows(&read("000.json"));
    written.extend(rows(&read("002.json")));
    assert_eq!(written, rows(&out));
    let page = read("002.md");
    assert!(page.contains("sidon lab run 002.cmp 000 --seed 1"), "{page}");
    assert!(page.contains("| over 100 | 52.646 | 52.646 |"), "{page}");
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
