//! Every section of the papers, with the file and the test that carries it.
//!
//! The tables are in `sections.md` beside this file. After a change of them, run
//! `SIDON_BLESS=1 cargo test -p sidon-lab sections`, which copies them into `docs/PAPERS.md`.

/// The tables as Markdown. Links are relative to `docs/`.
pub const PAGE: &str = include_str!("sections.md");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers;
    use std::{fs, path::PathBuf};

    fn root(path: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
    }

    /// The cells of each row whose first cell names a paper.
    fn rows() -> Vec<Vec<&'static str>> {
        let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect();
        let rows = PAGE.lines().filter(|line| line.starts_with("| ")).map(cells);
        rows.filter(|row: &Vec<_>| row[0] != "section").collect()
    }

    /// The text and the target of a link.
    fn link(cell: &str) -> Option<(&str, &str)> {
        cell.strip_prefix('[')?.strip_suffix(')')?.split_once("](../")
    }

    #[test]
    fn the_files_and_tests_exist() {
        let mut done = 0;
        for row in rows() {
            let place = row[0];
            let known = papers::ALL.iter().any(|paper| place.starts_with(paper.id));
            assert!(known || place == "all", "{place}");
            if let [_, _, file, test] = row[..] {
                let (_, file) = link(file).expect("a link to a file");
                let (test, tests) = link(test).expect("a link to a test");
                assert!(root(file).is_file(), "{place}: {file}");
                let text = fs::read_to_string(root(tests)).unwrap_or_default();
                let name = format!("fn {}()", test.trim_matches('`'));
                assert!(text.contains(&name), "{place}: {tests} has no {name}");
                done += 1;
            } else {
                assert!(row.len() == 3 && !row[2].is_empty(), "{place}: no reason");
            }
        }
        assert!(done >= 60, "{done}");
    }

    #[test]
    fn claims_that_reasons_name_exist() {
        let claims = papers::ALL.iter().flat_map(|paper| paper.experiments).flat_map(|e| e.claims);
        let ids: Vec<_> = claims.map(|claim| claim.id).collect();
        for row in rows() {
            for word in row[1..].iter().flat_map(|cell| cell.split([' ', ',', ';'])) {
                let is_id = word.starts_with("00") && word.contains('.');
                assert!(!is_id || ids.contains(&word), "{word}");
            }
        }
    }

    #[test]
    fn docs_have_these_tables() {
        let path = root("docs/PAPERS.md");
        let old = fs::read_to_string(&path).unwrap();
        let heading = PAGE.lines().next().unwrap();
        let (before, rest) = old.split_once(heading).expect("a heading");
        let end = rest.find("\n## ").unwrap_or(rest.len());
        let now = format!("{before}{PAGE}{}", &rest[end..]);
        if std::env::var_os("SIDON_BLESS").is_some() {
            fs::write(path, now).unwrap();
        } else {
            assert!(now == old, "run SIDON_BLESS=1 cargo test -p sidon-lab sections");
        }
    }
}
