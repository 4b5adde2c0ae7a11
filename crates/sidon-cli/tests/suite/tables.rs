//! `sidon tables`: the rows of Parquet files against the report and the bytes of the saved files.

use super::saved::{Folder, saved_in, sidon, watch};
use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::{Field, Row},
};
use serde_json::Value;
use sidon_traffic::Snapshot;
use std::{fs, path::PathBuf};

fn rows(path: &str) -> Vec<Row> {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

/// The value of a column, without its type.
fn value(row: &Row, column: &str) -> Value {
    match row.get_column_iter().find(|(name, _)| *name == column).unwrap().1 {
        Field::Null => Value::Null,
        Field::Str(text) => text.as_str().into(),
        Field::ULong(number) => (*number).into(),
        Field::Long(time) => (*time).into(),
        Field::Bool(flag) => (*flag).into(),
        other => panic!("{column} is {other:?}"),
    }
}

fn image(row: &Row) -> Vec<u8> {
    match row.get_column_iter().find(|(name, _)| *name == "image").unwrap().1 {
        Field::Bytes(bytes) => bytes.data().to_vec(),
        other => panic!("{other:?}"),
    }
}

/// The files of a run by periods, and a folder for tables.
fn saved(folder: &Folder, sensor: &str) -> Vec<String> {
    let capture = folder.capture(&format!("{sensor}.pcap"), 5_000, 3);
    let directory = folder.path(sensor);
    watch(&capture, &["--quiet", "--rotate", "2s", "--save-dir", &directory]);
    let mut files: Vec<PathBuf> = saved_in(&directory);
    files.sort();
    assert!(files.len() >= 3);
    files.iter().map(|file| file.to_str().unwrap().to_owned()).collect()
}

fn tables(files: &[String], more: &[&str], code: i32) -> (String, String) {
    let files = files.iter().map(String::as_str);
    sidon(
        &["tables"].into_iter().chain(files).chain(more.iter().copied()).collect::<Vec<_>>(),
        code,
    )
}

#[test]
fn tables_have_the_figures_of_the_reports_and_the_bytes_of_the_files() {
    let folder = Folder::new("tables");
    let files = [saved(&folder, "tap-1"), saved(&folder, "tap-2")].concat();
    let out = folder.path("new/tables");
    let (printed, message) = tables(&files, &["-o", &out, "--top", "20"], 0);
    assert!(printed.is_empty() && message.contains(&format!("{} files", files.len())), "{message}");
    let images = rows(&format!("{out}/images.parquet"));
    assert_eq!(images.len(), files.len());
    let lists =
        ["flows", "hosts", "ports"].map(|list| (list, rows(&format!("{out}/{list}.parquet"))));
    let mut next = [0; 3];
    for (file, row) in files.iter().zip(&images) {
        let report: Value =
            serde_json::from_str(&sidon(&["show", file, "--json", "--top", "20"], 0).0).unwrap();
        let sensor = if file.contains("tap-1") { "tap-1" } else { "tap-2" };
        let snapshot = Snapshot::from_bytes(&fs::read(file).unwrap()).unwrap();
        let [first, last] = snapshot.times().map(<[u64; 2]>::from).unwrap();
        assert_eq!(value(row, "sensor"), sensor);
        assert_eq!(value(row, "kind"), "snapshot");
        assert_eq!(value(row, "packets"), report["packets"]);
        assert_eq!((value(row, "first"), value(row, "last")), (first.into(), last.into()));
        assert_eq!((value(row, "certainty"), value(row, "partial")), (Value::Null, false.into()));
        let period = value(row, "period").as_u64().unwrap();
        assert!(period.is_multiple_of(2_000_000_000) && first.abs_diff(period) < 3_000_000_000);
        // The bytes leave the seed out: they open with it only.
        assert!(Snapshot::from_bytes(&image(row)).is_err());
        let again = Snapshot::from_bytes_under(&image(row), snapshot.settings().seed).unwrap();
        assert!(again.to_bytes() == snapshot.to_bytes(), "{file}");
        for ((list, rows), next) in lists.iter().zip(&mut next) {
            for entry in report[format!("top_{list}")].as_array().unwrap() {
                let row = &rows[*next];
                *next += 1;
                assert_eq!(
                    (value(row, "sensor"), value(row, "period")),
                    (sensor.into(), period.into())
                );
                let key = entry["key"].as_str().map_or(entry["key"].to_string(), str::to_owned);
                assert_eq!(value(row, "key"), key);
                assert_eq!(value(row, "community_id"), entry["community_id"]);
                for amount in ["bytes", "packets"] {
                    let figure = &entry[format!("{amount}_figure")];
                    assert_eq!(value(row, amount), entry[amount]);
                    assert_eq!(value(row, &format!("{amount}_kind")), figure["kind"]);
                    assert_eq!(value(row, &format!("{amount}_lower")), figure["interval"][0]);
                    assert_eq!(value(row, &format!("{amount}_upper")), figure["interval"][1]);
                }
            }
        }
    }
    assert_eq!(next, lists.map(|(_, rows)| rows.len()));
    assert!(next[0] > 20 * files.len() / 2);
    // Another name for the sensor, and no list.
    tables(&files[..1], &["-o", &out, "--top", "0", "--sensor", "edge", "-q"], 0);
    assert_eq!(value(&rows(&format!("{out}/images.parquet"))[0], "sensor"), "edge");
    assert!(rows(&format!("{out}/flows.parquet")).is_empty());
}

#[test]
fn a_wrong_file_leaves_the_tables_as_they_were() {
    let folder = Folder::new("tables-wrong");
    let files = saved(&folder, "tap");
    let out = folder.path("tables");
    fs::create_dir(&out).unwrap();
    fs::write(format!("{out}/hosts.parquet"), "old").unwrap();
    let unchanged = || {
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(format!("{out}/hosts.parquet")).unwrap(), "old");
    };
    let cut = folder.path("cut.sidon");
    fs::write(&cut, &fs::read(&files[0]).unwrap()[..100_000]).unwrap();
    let (_, why) = tables(&[files[0].clone(), cut], &["-o", &out], 3);
    assert!(why.contains("cut.sidon is cut"), "{why}");
    unchanged();
    let (_, why) = tables(&[files[0].clone(), folder.path("none.sidon")], &["-o", &out], 1);
    assert!(why.contains("cannot read") && why.contains("none.sidon"), "{why}");
    unchanged();
    let (_, why) = tables(&files, &["-o", &files[0]], 1);
    assert!(why.contains("cannot create the directory"), "{why}");
    let structure = format!("{}/../sidon/tests/golden/bloom.sidon", env!("CARGO_MANIFEST_DIR"));
    let (_, why) = tables(&[structure], &["-o", &out], 1);
    assert!(why.contains("no file of sidon watch --save"), "{why}");
    unchanged();
    let own = format!("{out}/hosts.parquet");
    let (_, why) = tables(&[own], &["-o", &out], 2);
    assert!(why.contains("name the same file"), "{why}");
    unchanged();
}
