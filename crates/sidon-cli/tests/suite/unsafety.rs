//! docs/UNSAFE.md lists every unsafe block, function and implementation with the guarantee on which
//! it rests: the `SAFETY:` comment above it. This test compares the list with the code.
//!
//! `SIDON_BLESS=1 cargo test -p sidon-cli unsafety` writes the present list into the document.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All Rust files below a folder, in order, without build results.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, into);
        } else if name.ends_with(".rs") {
            into.push(path);
        }
    }
}

/// A line without its comment and without quoted text.
fn code(line: &str) -> String {
    let line = line.split("//").next().unwrap_or("");
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"")
}

/// Whether a line of code has a word.
fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

/// The name of the function or type that contains a line.
fn owner(lines: &[&str], at: usize) -> String {
    let name = |line: &&str| {
        let line = code(line);
        let (_, rest) = line.split_once("fn ").or_else(|| line.split_once(" for "))?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].to_owned())
    };
    lines[..=at].iter().rev().find_map(name).unwrap_or_default()
}

/// The comment that ends above a line. Lines of the same statement may lie in between.
fn guarantee(lines: &[&str], at: usize) -> Option<String> {
    let above = lines[..at].iter().rev().take(12);
    let from = above.clone().position(|line| line.trim_start().starts_with("//"))?;
    let broken = above.clone().take(from).any(|line| line.trim_end().ends_with([';', '}']));
    let comment: Vec<_> = above
        .skip(from)
        .map(|line| line.trim_start())
        .take_while(|line| line.starts_with("//"))
        .map(|line| line.trim_start_matches('/').trim())
        .collect();
    let text = comment.into_iter().rev().collect::<Vec<_>>().join(" ");
    let marks = ["SAFETY: ", "# Safety "];
    let text = marks.iter().find_map(|mark| text.split_once(mark)).filter(|_| !broken)?.1;
    Some(text.replace('|', "\\|"))
}

/// The rows of the table, one for each use of `unsafe`.
fn rows() -> Vec<String> {
    let (mut paths, mut rows) = (Vec::new(), Vec::new());
    for part in ["crates", "fuzz"].iter().map(|part| root().join(part)).filter(|part| part.exists())
    {
        sources(&part, &mut paths);
    }
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        for (at, line) in lines.iter().enumerate() {
            if !has_word(&code(line), "unsafe") {
                continue;
            }
            let rest = code(line).split("unsafe").nth(1).unwrap_or_default().trim().to_owned();
            let kind =
                ["fn", "impl", "extern", "trait"].into_iter().find(|kind| rest.starts_with(kind));
            let guarantee = guarantee(&lines, at);
            let place = format!("{name}:{}", at + 1);
            let guarantee = guarantee.unwrap_or_else(|| panic!("{place}: no SAFETY comment above"));
            let (owner, kind) = (owner(&lines, at), kind.unwrap_or("block"));
            rows.push(format!("| `{name}` | `{owner}` | {kind} | {guarantee} |"));
        }
    }
    rows
}

#[test]
fn every_use_of_unsafe_is_in_the_inventory() {
    let path = root().join("docs/UNSAFE.md");
    let text = fs::read_to_string(&path).unwrap();
    let (head, listed) = text.split_at(text.find("| file | in |").unwrap());
    let table = "| file | in | kind | guarantee |\n|---|---|---|---|\n";
    let rows = rows();
    assert!(rows.len() > 20, "{} uses of unsafe were found", rows.len());
    if std::env::var_os("SIDON_BLESS").is_some() {
        return fs::write(&path, format!("{head}{table}{}\n", rows.join("\n"))).unwrap();
    }
    let listed: Vec<&str> = listed.lines().skip(2).collect();
    for row in &rows {
        let [here, there] = [
            rows.iter().filter(|one| *one == row).count(),
            listed.iter().filter(|one| *one == row).count(),
        ];
        assert_eq!(here, there, "docs/UNSAFE.md lacks this row, or has it too often:\n{row}");
    }
    assert_eq!(rows.len(), listed.len(), "docs/UNSAFE.md lists uses that are gone");
}
