//! What an earlier run left in a directory of saved files.
//!
//! A server that saves leaves a note in the directory while it runs, and takes it away when it ends
//! by itself. Whoever finds the note, and nobody who holds the directory, knows that it was killed:
//! ```text
//! sidon-20261116T051500Z.sidon           a period, whole
//! .sidon-20261116T052000Z.sidon.77.new   half written: removed
//! .serve                                 it ran, with 5m to a file; all before 05:20 is in files
//! ```
//! What it had seen since its last file is lost, one period at the most.

use super::{file, rotate};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use sidon::Seed;
use sidon_traffic::{Snapshot, time};
use std::{
    fs::{self, File, TryLockError},
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// The file that is there while a server runs.
const NOTE: &str = ".serve";

/// Holds a directory, for one alone or with others, until the file is dropped.
fn hold(directory: &Path, alone: bool) -> anyhow::Result<File> {
    let place = || directory.display().to_string();
    let file = File::open(directory).with_context(place)?;
    match if alone { file.try_lock() } else { file.try_lock_shared() } {
        Err(TryLockError::WouldBlock) => {
            bail!("{}: another sidon saves its files there", directory.display())
        }
        // Where nothing can be locked, nobody is hindered.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(file),
    }
}

/// Holds a directory with others who do not mind each other's files.
pub(crate) fn share(directory: &Path) -> anyhow::Result<File> {
    hold(directory, false)
}

/// What a server writes down while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Note {
    pub(crate) period_ns: u64,
    /// What came before is in files.
    pub(crate) until_ns: Option<u64>,
    /// But for so many periods that could not be written.
    pub(crate) failed: u64,
}

impl Note {
    /// Writes it in place of the one before.
    pub(crate) fn write(&self, directory: &Path) -> anyhow::Result<()> {
        let Note { period_ns, until_ns, failed } = *self;
        let json = json!({ "period_ns": period_ns, "until_ns": until_ns, "failed": failed });
        file::replace(&directory.join(NOTE), |out| write!(out, "{json}"))
    }

    /// There is a file of this name: if it is of the period that was being seen, it was killed
    /// before it noted that.
    fn reaches(&mut self, name: &str) {
        let now = |until: u64| order(&rotate::name(until)).map(|(period, _)| period);
        if let (Some(until), Some((period, _))) = (self.until_ns, order(name))
            && now(until) == Some(period)
        {
            self.until_ns = Some(until.saturating_add(self.period_ns));
        }
    }

    /// The server ends by itself.
    pub(crate) fn remove(directory: &Path) -> anyhow::Result<()> {
        let path = directory.join(NOTE);
        fs::remove_file(&path).with_context(|| path.display().to_string())
    }

    /// That of an earlier run; what it does not say is not known.
    fn read(directory: &Path) -> Option<Self> {
        let text = fs::read(directory.join(NOTE)).ok()?;
        let json: Value = serde_json::from_slice(&text).unwrap_or_default();
        let number = |name: &str| json[name].as_u64();
        Some(Note {
            period_ns: number("period_ns").unwrap_or(0),
            until_ns: number("until_ns"),
            failed: number("failed").unwrap_or(0),
        })
    }
}

/// The last file.
#[derive(Debug)]
struct Last {
    name: String,
    until_ns: u64,
    seed: Seed,
}

/// What was found, and the directory, held.
#[derive(Debug)]
pub(crate) struct Found {
    directory: PathBuf,
    last: Option<Last>,
    /// Later files that cannot be read, and why.
    damaged: Vec<String>,
    /// Half-written files that were removed.
    removed: u64,
    /// If the run before was killed.
    note: Option<Note>,
    _held: File,
}

impl Found {
    /// Takes the directory for one alone, looks at it, and removes what is half written.
    pub(crate) fn take(directory: &Path) -> anyhow::Result<Self> {
        let _held = hold(directory, true)?;
        let place = || directory.display().to_string();
        let (mut files, mut removed) = (Vec::new(), 0);
        for entry in fs::read_dir(directory).with_context(place)? {
            let entry = entry.with_context(place)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if is_half_written(&name) {
                match fs::remove_file(entry.path()) {
                    Ok(()) => removed += 1,
                    Err(why) if why.kind() == ErrorKind::NotFound => {}
                    Err(why) => {
                        return Err(why).with_context(|| entry.path().display().to_string());
                    }
                }
            }
            files.extend(order(&name).map(|order| (order, name)));
        }
        files.sort_unstable();
        let (mut last, mut damaged) = (None, Vec::new());
        for (_, name) in files.into_iter().rev() {
            let image = fs::read(directory.join(&name)).map_err(|why| why.to_string());
            let read = |image: Vec<u8>| Snapshot::from_bytes(&image).map_err(|why| why.to_string());
            match image.and_then(read) {
                Ok(snapshot) => {
                    let until_ns = snapshot.times().map_or(0, |(_, last)| last);
                    last = Some(Last { name, until_ns, seed: snapshot.settings().seed });
                    break;
                }
                Err(why) => damaged.push(format!("{name}: {why}")),
            }
        }
        let mut note = Note::read(directory);
        let directory = directory.to_owned();
        if let (Some(note), Some(last)) = (&mut note, &last) {
            note.reaches(&last.name);
        }
        Ok(Found { directory, last, damaged, removed, note, _held })
    }

    /// The seed of the last file: files of the same seed can be merged.
    pub(crate) fn seed(&self) -> Option<Seed> {
        self.last.as_ref().map(|last| last.seed)
    }

    /// The same in words, nothing if there was nothing.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let last = self
            .last
            .as_ref()
            .map(|last| format!("the last file is {}, up to {}", last.name, second(last.until_ns)));
        match (&self.note, last) {
            (Some(note), last) => {
                let mut lost = "the run before did not end by itself".to_owned();
                let period = rotate::words(note.period_ns);
                lost += &match note.until_ns {
                    Some(until) => {
                        format!(": what it saw after {} is lost", second(until))
                    }
                    None => ": what it saw is lost".to_owned(),
                };
                lost += &format!(", one rotation of {period} at the most");
                if note.failed > 0 {
                    lost += &format!(", and {} before that could not be written", note.failed);
                }
                words.push(lost);
                words.push(last.unwrap_or_else(|| "it left no file".to_owned()));
            }
            (None, Some(last)) => words.push(format!("the run before ended by itself; {last}")),
            (None, None) => {}
        }
        words.extend(self.damaged.iter().map(|name| format!("damaged: {name}")));
        match self.removed {
            0 => {}
            1 => words.push("1 file that was half written is removed".to_owned()),
            many => words.push(format!("{many} files that were half written are removed")),
        }
        let place = self.directory.display();
        words.into_iter().map(|line| format!("{place}: {line}")).collect()
    }

    /// The same as one object; `null` if there was nothing.
    pub(crate) fn to_json(&self) -> Value {
        if self.words().is_empty() {
            return Value::Null;
        }
        let last = self.last.as_ref();
        json!({
            "ended_by_itself": self.note.is_none(),
            "last_file": last.map(|last| &last.name),
            "last_file_until": last.map(|last| time::iso8601(last.until_ns)),
            "lost_after": self.note.and_then(|note| note.until_ns).map(time::iso8601),
            "lost_seconds_at_most": self.note.map(|note| note.period_ns / 1_000_000_000),
            "not_written": self.note.map_or(0, |note| note.failed),
            "half_written_removed": self.removed,
            "damaged": self.damaged,
        })
    }
}

/// A time to the second.
fn second(time_ns: u64) -> String {
    format!("{}Z", &time::iso8601(time_ns)[..19])
}

/// Whether it is what a writer that was killed leaves behind.
fn is_half_written(name: &str) -> bool {
    let ours = [".sidon-", &format!(".{NOTE}.")].iter().any(|start| name.starts_with(start));
    ours && name.ends_with(".new")
}

/// The place of a saved file in time: its period, and which one of that period it is.
fn order(name: &str) -> Option<(String, u32)> {
    let stem = name.strip_prefix("sidon-")?.strip_suffix(".sidon")?;
    match stem.split_once('-') {
        Some((period, number)) => Some((period.to_owned(), number.parse().ok()?)),
        None => Some((stem.to_owned(), 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own, gone afterwards.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("sidon-found-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_empty_directory_is_nothing_and_has_one_holder() {
        let folder = Folder::new("empty");
        let found = Found::take(&folder.0).unwrap();
        assert_eq!((found.words().len(), found.to_json()), (0, Value::Null));
        let why = Found::take(&folder.0).unwrap_err().to_string();
        assert!(why.contains("another sidon saves its files there"), "{why}");
        assert!(share(&folder.0).is_err());
        drop(found);
        let (one, two) = (share(&folder.0).unwrap(), share(&folder.0).unwrap());
        assert!(Found::take(&folder.0).is_err());
        drop((one, two));
        assert!(Found::take(&folder.0).is_ok());
    }

    #[test]
    fn a_note_that_stayed_tells_what_is_lost() {
        let folder = Folder::new("note");
        let half = folder.0.join(".sidon-20261116T052000Z.sidon.77.new");
        fs::write(&half, "half").unwrap();
        let kept = folder.0.join(".mine.new");
        fs::write(&kept, "somebody else's").unwrap();
        fs::write(folder.0.join("sidon-20261116T051500Z.sidon"), "not a snapshot").unwrap();
        let until_ns = Some(1_794_805_200_000_000_000);
        let note = Note { period_ns: 300_000_000_000, until_ns, failed: 0 };
        note.write(&folder.0).unwrap();
        let found = Found::take(&folder.0).unwrap();
        let words = found.words().join("\n");
        assert!(words.contains("did not end by itself"), "{words}");
        assert!(words.contains("after 2026-11-16T05:00:00"), "{words}");
        assert!(words.contains("one rotation of 5m at the most"), "{words}");
        assert!(words.contains("1 file that was half written is removed"), "{words}");
        assert!(words.contains("damaged: sidon-20261116T051500Z.sidon"), "{words}");
        assert_eq!(found.to_json()["lost_seconds_at_most"], 300);
        assert!(!half.exists() && kept.exists());
        drop(found);
        Note::remove(&folder.0).unwrap();
        let found = Found::take(&folder.0).unwrap();
        assert!(!found.words().join("\n").contains("did not end"), "{:?}", found.words());
    }

    #[test]
    fn a_file_that_was_not_noted_is_not_lost() {
        let until_ns = Some(1_794_805_200_000_000_000);
        let mut note = Note { period_ns: 300_000_000_000, until_ns, failed: 0 };
        note.reaches("sidon-20261116T045500Z.sidon");
        assert_eq!(note.until_ns, until_ns);
        note.reaches("sidon-20261116T050000Z-2.sidon");
        assert_eq!(note.until_ns, Some(1_794_805_500_000_000_000));
    }

    #[test]
    fn later_files_come_later() {
        let mut names = ["b-10", "a", "b-2", "b"].map(|name| format!("sidon-{name}.sidon"));
        names.sort_by_key(|name| order(name).unwrap());
        assert_eq!(names.map(|name| name[6..].replace(".sidon", "")), ["a", "b", "b-2", "b-10"]);
        for other in ["sidon-a", "a.sidon", "sidon-a-x.sidon", ".sidon-a.sidon"] {
            assert_eq!(order(other), None, "{other}");
        }
    }
}
