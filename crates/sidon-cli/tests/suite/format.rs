//! docs/FORMAT.md and the saved files of the tests have the kinds that the library lists.

use sidon::{internals::Kind, saved::Parts};
use std::{fs, path::Path};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The text without anything in parentheses.
fn plain(text: &str) -> String {
    let (mut plain, mut depth) = (String::new(), 0);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    plain
}

#[test]
fn the_documented_kinds_are_those_of_the_library() {
    let text = fs::read_to_string(root().join("docs/FORMAT.md")).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with("| kind |")).skip(2);
    let rows: Vec<&str> = lines.take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), Kind::ALL.len());
    for (row, kind) in rows.iter().zip(Kind::ALL) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, number, name, fields, ..] = cells[..] else { panic!("{row}") };
        assert_eq!(number, kind.number.to_string(), "{row}");
        assert!(name.contains(kind.name), "{row}");
        let fields = plain(fields);
        let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
        assert_eq!(fields, kind.fields, "{row}");
    }
}

#[test]
fn every_saved_file_has_the_fields_of_its_kind() {
    let mut seen = 0;
    for folder in ["sidon", "sidon-traffic"] {
        for file in fs::read_dir(root().join("crates").join(folder).join("tests/golden")).unwrap() {
            let path = file.unwrap().path();
            let image = fs::read(&path).unwrap();
            let parts = Parts::of(&image).unwrap();
            let kind = Kind::of(parts.kind).unwrap();
            assert_eq!(parts.fields.len(), kind.fields.len(), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 29, "{seen} files");
}
