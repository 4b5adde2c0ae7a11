//! The corpus of real captures, file by file.

use std::path::{Path, PathBuf};

/// The folder of the corpus. If it is not set, prints that the test is skipped, and `what`.
pub(crate) fn corpus(what: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("SIDON_CORPUS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: SIDON_CORPUS is not set, {what}");
    }
    folder
}

/// Calls `act` with every file of a folder and of its subfolders, in order.
pub(crate) fn each_file(folder: &Path, act: &mut dyn FnMut(&Path)) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { each_file(&path, act) } else { act(&path) }
    }
}
