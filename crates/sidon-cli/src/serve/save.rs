//! Periods that go to files while the server runs, and what an earlier run left there.

use crate::saved::{
    file,
    found::{Found, Note},
    rotate::{Over, Rotation},
};
use crate::show;
use serde_json::{Value, json};
use sidon::Seed;
use sidon_traffic::{Report, Snapshot, files::System, time};
use std::path::{Path, PathBuf};

/// Where the files go, and how that went so far.
pub(super) struct Saving {
    rotation: Rotation,
    found: Found,
    note: Note,
    /// Whether the last note could be written.
    noted: bool,
    /// Why the last file could not be written, if it could not.
    error: Option<String>,
    /// The last file of this run, and the time of its last packet.
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    name: String,
    until_ns: u64,
}

/// Figures of the files.
#[derive(Debug, Clone, Default)]
pub(super) struct Saved {
    pub(super) files: u64,
    pub(super) failed: u64,
    /// The time of the last packet in a file.
    pub(super) until_ns: u64,
    /// The object for the page.
    pub(super) json: Value,
}

impl Saving {
    /// Locks the directory, and prints which files it has.
    pub(super) fn open(directory: &Path, period_ns: u64, memory: u64) -> anyhow::Result<Self> {
        let rotation = Rotation::new(Box::new(System), directory.to_owned(), period_ns)?;
        // Earlier runs may have had this memory, and files are a little larger than the tables.
        let found = Found::take(directory, memory.saturating_mul(2).max(file::MOST))?;
        for line in found.words() {
            show::say(&line);
        }
        let note = Note { period_ns, ..Note::default() };
        Ok(Saving { rotation, found, note, noted: true, error: None, last: None })
    }

    /// Writes the note of a running server: nothing can refuse to start any more.
    pub(super) fn start(&self) -> anyhow::Result<()> {
        self.note.write(self.rotation.directory())
    }

    /// The seed of the files found.
    pub(super) fn seed(&self) -> Option<Seed> {
        self.found.seed()
    }

    /// The length of a period.
    pub(super) fn period_ns(&self) -> u64 {
        self.rotation.period_ns()
    }

    /// Writes a period that is over, and returns its report. If it cannot be written, the server
    /// says so and goes on.
    pub(super) fn save(&mut self, start_ns: u64, snapshot: &Snapshot) -> Report {
        let Over { report, saved } = self.rotation.save(start_ns, snapshot);
        self.wrote(saved, &report);
        report
    }

    /// Notes the start of a period.
    pub(super) fn begin(&mut self, start_ns: u64) {
        self.note.until_ns = Some(start_ns);
        let written = self.note.write(self.rotation.directory());
        if let Err(why) = &written
            && self.noted
        {
            show::say(&format!("{why:#}"));
        }
        self.noted = written.is_ok();
    }

    fn wrote(&mut self, saved: anyhow::Result<PathBuf>, report: &Report) {
        match saved {
            Ok(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let until_ns = report.times.map_or(0, |(_, last)| last);
                self.last = Some(Last { name, until_ns });
                self.error = None;
            }
            Err(why) => self.failed(&format!("a period is lost: {why:#}")),
        }
    }

    /// Counts a failure, and prints the first of a row.
    fn failed(&mut self, why: &str) {
        if self.error.is_none() {
            show::say(why);
        }
        self.note.failed += 1;
        self.error = Some(why.to_owned());
    }

    /// Writes the last period. If that fails, the next run says that it was lost.
    pub(super) fn end(
        mut self,
        start_ns: Option<u64>,
        snapshot: &Snapshot,
    ) -> anyhow::Result<Rotation> {
        self.rotation.end(start_ns, snapshot)?;
        Note::remove(self.rotation.directory())?;
        Ok(self.rotation)
    }

    /// The counts so far.
    pub(super) fn figures(&self) -> Saved {
        let last = self.last.as_ref();
        let json = json!({
            "directory": show::path(self.rotation.directory()),
            "period_seconds": self.rotation.period_ns() / 1_000_000_000,
            "period_start": self.note.until_ns.map(time::iso8601),
            "files": self.rotation.files,
            "packets": self.rotation.seen,
            "last_file": last.map(|last| &last.name),
            "last_file_until": last.map(|last| time::iso8601(last.until_ns)),
            "failed": self.note.failed,
            "error": self.error,
            "found": self.found.to_json(),
        });
        Saved {
            files: self.rotation.files,
            failed: self.note.failed,
            until_ns: last.map_or(0, |last| last.until_ns),
            json,
        }
    }
}
