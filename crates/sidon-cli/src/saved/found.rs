//! The state that an earlier run left in a directory of saved files.
//!
//! A server that saves writes a note to the directory while it runs, and removes it when it ends
//! normally. A note in a directory that no process has locked means that the server was killed:
//! ```text
//! sidon-20261116T051500Z.sidon           a period, whole
//! .sidon-5f3c0a91d2e47b68.new            half written: removed
//! .serve                                 the note: 5m per file; all before 05:20 is in files
//! ```
//! The packets since its last file are lost: at most one period.

use super::{file, rotate};
use crate::show;
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use sidon::Seed;
use sidon_traffic::{
    Snapshot,
    files::{self, System, input},
    time,
};
use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

/// Name of the note of a running server, and its most bytes.
const NOTE: &str = ".serve";
const NOTE_MAX: u64 = 4096;
/// Name of the file that is locked while a command saves to the directory.
const LOCK: &str = ".lock";
/// The most files that are read to find the last one that is whole.
const TRIES: usize = 64;

/// The path of the note in a directory.
pub(crate) fn note(directory: &Path) -> PathBuf {
    directory.join(NOTE)
}

/// Locks a directory, exclusively or shared, until the returned file is dropped.
///
/// Every user who can open a file can lock it. The directory itself may be readable by all, so a file that
/// only its owner can open is locked instead. It stays when the command ends: if it were removed,
/// two commands could each lock a file of that name.
fn hold(directory: &Path, alone: bool) -> anyhow::Result<File> {
    let path = directory.join(LOCK);
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        // A link or a pipe of this name is not the program's own.
        options.mode(0o600).custom_flags(flags.bits() as i32);
    }
    let place = || {
        format!(
            "cannot open the lock file {}; delete it if it is not yours, or give another --save-dir",
            show::path(&path)
        )
    };
    let file = options.open(&path).with_context(place)?;
    match if alone { file.try_lock() } else { file.try_lock_shared() } {
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another sidon saves its files to {}; stop it, or give another --save-dir",
                show::path(directory)
            )
        }
        // A file system without locks: continue without one.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(file),
    }
}

/// Locks a directory together with other runs of `sidon watch`. The first of them removes temporary
/// files.
pub(crate) fn share(directory: &Path) -> anyhow::Result<File> {
    if let Ok(alone) = hold(directory, true) {
        tidy(directory)?;
        drop(alone);
    }
    hold(directory, false)
}

/// Removes the temporary files of killed writers, and returns their number. Other commands may be
/// writing files in the directory, such as `merge -o`: their temporary files stay.
fn tidy(directory: &Path) -> anyhow::Result<u64> {
    let place = || format!("cannot read the directory {}", show::path(directory));
    let mut removed = 0;
    for entry in fs::read_dir(directory).with_context(place)? {
        let entry = entry.with_context(place)?;
        // A directory of such a name is not a writer's.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !entry.file_name().to_str().is_some_and(files::is_temporary) {
            continue;
        }
        // A file of another user cannot be removed. It stays, and the run goes on.
        removed += u64::from(files::remove_stale(&entry.path()).unwrap_or(false));
    }
    Ok(removed)
}

/// The note of a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Note {
    pub(crate) period_ns: u64,
    /// All packets before this time are in files, except those of failed periods.
    pub(crate) until_ns: Option<u64>,
    /// Periods that could not be written.
    pub(crate) failed: u64,
}

impl Note {
    /// Writes the note, and replaces an older one.
    pub(crate) fn write(&self, directory: &Path) -> anyhow::Result<()> {
        let Note { period_ns, until_ns, failed } = *self;
        let json = json!({ "period_ns": period_ns, "until_ns": until_ns, "failed": failed });
        file::replace(&System, &note(directory), |out| write!(out, "{json}"))
    }

    /// Moves `until_ns` past the period of this file. The server was killed after it wrote the file
    /// and before it updated the note.
    fn reaches(&mut self, name: &str) {
        let now = |until: u64| order(&rotate::name(until)).map(|(period, _)| period);
        if let (Some(until), Some((period, _))) = (self.until_ns, order(name))
            && now(until) == Some(period)
        {
            self.until_ns = Some(until.saturating_add(self.period_ns));
        }
    }

    /// Removes the note when the server ends normally.
    pub(crate) fn remove(directory: &Path) -> anyhow::Result<()> {
        let path = note(directory);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", show::path(path)))
    }

    /// The note of an earlier run. Missing fields get their defaults.
    fn read(directory: &Path) -> Option<Self> {
        let path = note(directory);
        if !path.is_file() {
            return None;
        }
        // A note that cannot be read still shows that the server was killed.
        let text = input::bytes(&path, NOTE_MAX).unwrap_or_default();
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

/// Contents of the directory, and its lock.
#[derive(Debug)]
pub(crate) struct Found {
    directory: PathBuf,
    last: Option<Last>,
    /// Later files that cannot be read, with the reason.
    damaged: Vec<String>,
    /// Half-written files that were removed.
    removed: u64,
    /// The note of the run before, if it was killed.
    note: Option<Note>,
    _held: File,
}

impl Found {
    /// Locks the directory exclusively, reads it, and removes temporary files. A saved file has at
    /// most `most` bytes.
    pub(crate) fn take(directory: &Path, most: u64) -> anyhow::Result<Self> {
        let _held = hold(directory, true)?;
        let place = || format!("cannot read the directory {}", show::path(directory));
        let removed = tidy(directory)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(directory).with_context(place)? {
            let entry = entry.with_context(place)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            files.extend(order(&name).map(|order| (order, name)));
        }
        files.sort_unstable();
        let (mut last, mut damaged) = (None, Vec::new());
        for (_, name) in files.into_iter().rev().take(TRIES) {
            match snapshot(&directory.join(&name), most) {
                Ok(snapshot) => {
                    let until_ns = snapshot.times().map_or(0, |(_, last)| last);
                    last = Some(Last { name, until_ns, seed: snapshot.settings().seed });
                    break;
                }
                Err(why) => damaged.push(format!("{}: {why:#}", show::printable(&name))),
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

    /// The contents as lines of text; empty for an empty directory.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let last = self.last.as_ref().map(|last| {
            format!(
                "the last file is {}, up to {}",
                show::printable(&last.name),
                second(last.until_ns)
            )
        });
        match (&self.note, last) {
            (Some(note), last) => {
                let mut lost = "the run before was killed".to_owned();
                let period = rotate::words(note.period_ns);
                lost += &match note.until_ns {
                    Some(until) => {
                        format!(": its packets after {} are lost", second(until))
                    }
                    None => ": its packets are lost".to_owned(),
                };
                lost += &format!(", at most one period of {period}");
                if note.failed > 0 {
                    lost += &format!(", and {} earlier periods were not written", note.failed);
                }
                words.push(lost);
                words.push(last.unwrap_or_else(|| "it left no file".to_owned()));
            }
            (None, Some(last)) => words.push(format!("the run before ended normally; {last}")),
            (None, None) => {}
        }
        words.extend(self.damaged.iter().map(|name| format!("damaged: {name}")));
        match self.removed {
            0 => {}
            1 => words.push("removed 1 half-written file".to_owned()),
            many => words.push(format!("removed {many} half-written files")),
        }
        let place = show::path(&self.directory);
        words.into_iter().map(|line| format!("{place}: {line}")).collect()
    }

    /// The contents as one object; `null` for an empty directory.
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

/// The snapshot in a regular file. A pipe would never end.
fn snapshot(path: &Path, most: u64) -> anyhow::Result<Snapshot> {
    ensure!(path.is_file(), "it is not a file");
    Ok(Snapshot::from_bytes(&file::read(path, most)?)?)
}

/// A time to the second.
fn second(time_ns: u64) -> String {
    format!("{}Z", &time::iso8601(time_ns)[..19])
}

/// The sort key of a saved file: its period, and its number within the period.
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
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    /// A directory for one test, removed at its end.
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
        let found = Found::take(&folder.0, file::MOST).unwrap();
        assert_eq!((found.words().len(), found.to_json()), (0, Value::Null));
        let why = Found::take(&folder.0, file::MOST).unwrap_err().to_string();
        assert!(why.contains("another sidon saves its files to"), "{why}");
        assert!(share(&folder.0).is_err());
        drop(found);
        let (one, two) = (share(&folder.0).unwrap(), share(&folder.0).unwrap());
        assert!(Found::take(&folder.0, file::MOST).is_err());
        drop((one, two));
        assert!(Found::take(&folder.0, file::MOST).is_ok());
    }

    #[test]
    fn who_can_only_read_the_directory_cannot_lock_it() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let folder = Folder::new("reader");
        // A lock that needs no more than to read the directory.
        let reader = File::open(&folder.0).unwrap();
        reader.lock().unwrap();
        drop(Found::take(&folder.0, file::MOST).unwrap());
        drop(share(&folder.0).unwrap());
        let lock = folder.0.join(LOCK);
        assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o777, 0o600);
        // The target of a link is not opened.
        fs::remove_file(&lock).unwrap();
        symlink("elsewhere", &lock).unwrap();
        let why = share(&folder.0).unwrap_err().to_string();
        assert!(why.contains("cannot open the lock file"), "{why}");
        assert!(!folder.0.join("elsewhere").exists());
    }

    #[test]
    fn only_regular_files_are_temporary() {
        let folder = Folder::new("kinds");
        let [inner, link, half] =
            [1, 2, 3].map(|number| folder.0.join(format!(".sidon-{number:016x}.new")));
        fs::create_dir(&inner).unwrap();
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        fs::write(&half, "half").unwrap();
        drop(share(&folder.0).unwrap());
        assert!(inner.is_dir() && link.is_symlink() && !half.exists());
        assert_eq!(Found::take(&folder.0, file::MOST).unwrap().removed, 0);
    }

    #[test]
    fn the_temporary_file_of_a_running_writer_stays() {
        let folder = Folder::new("writer");
        let halves = || {
            let names = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| files::is_temporary(name.to_str().unwrap())).count()
        };
        fs::write(folder.0.join(".sidon-5f3c0a91d2e47b68.new"), "half").unwrap();
        // A `merge -o` into the directory, which a `watch --save-dir` and a `serve` start meanwhile.
        let merged = folder.0.join("merged.sidon");
        file::replace(&System, &merged, |out| {
            out.write_all(b"all of it")?;
            assert_eq!(halves(), 2);
            drop(share(&folder.0).unwrap());
            assert_eq!(halves(), 1);
            assert_eq!(Found::take(&folder.0, file::MOST).unwrap().removed, 0);
            Ok(())
        })
        .unwrap();
        assert_eq!((fs::read(&merged).unwrap(), halves()), (b"all of it".to_vec(), 0));
    }

    #[test]
    fn writers_do_not_notice_that_stale_files_are_removed() {
        let folder = Folder::new("race");
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    tidy(&folder.0).unwrap();
                }
            });
            let written = (0..300u32).try_for_each(|number| {
                file::replace(&System, &folder.0.join("file"), |out| write!(out, "{number}"))
            });
            over.store(true, Ordering::Relaxed);
            written.unwrap();
        });
        assert_eq!(fs::read(folder.0.join("file")).unwrap(), b"299");
    }

    #[test]
    fn a_note_that_stayed_tells_what_is_lost() {
        let folder = Folder::new("note");
        let half = folder.0.join(".sidon-5f3c0a91d2e47b68.new");
        fs::write(&half, "half").unwrap();
        let kept = folder.0.join(".mine.new");
        fs::write(&kept, "somebody else's").unwrap();
        fs::write(folder.0.join("sidon-20261116T051500Z.sidon"), "not a snapshot").unwrap();
        let until_ns = Some(1_794_805_200_000_000_000);
        let note = Note { period_ns: 300_000_000_000, until_ns, failed: 0 };
        note.write(&folder.0).unwrap();
        let found = Found::take(&folder.0, file::MOST).unwrap();
        let words = found.words().join("\n");
        assert!(words.contains("the run before was killed"), "{words}");
        assert!(words.contains("after 2026-11-16T05:00:00"), "{words}");
        assert!(words.contains("at most one period of 5m"), "{words}");
        assert!(words.contains("removed 1 half-written file"), "{words}");
        assert!(words.contains("damaged: sidon-20261116T051500Z.sidon"), "{words}");
        assert_eq!(found.to_json()["lost_seconds_at_most"], 300);
        assert!(!half.exists() && kept.exists());
        drop(found);
        Note::remove(&folder.0).unwrap();
        let found = Found::take(&folder.0, file::MOST).unwrap();
        assert!(!found.words().join("\n").contains("was killed"), "{:?}", found.words());
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
