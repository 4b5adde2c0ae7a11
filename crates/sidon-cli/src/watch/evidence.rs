//! `--evidence`: the packets of each incident in a pcap file, and the incident in a JSON file.
//!
//! ```text
//! DIR/20261116T021132Z-syn_flood-5f3c0a91d2e47b68.pcap     first packets, and a sample of later ones
//! DIR/20261116T021132Z-syn_flood-5f3c0a91d2e47b68.json     the incident, with the filter for the rest
//! ```
//! The files are written when the incident closes, and at the end of the run. They replace those of an
//! incident that began again. A file that cannot be written is tried again; the first error is printed
//! at once.

use crate::show;
use anyhow::Context;
use serde_json::json;
use sidon_traffic::{
    files::{self, Access, Disk},
    recorder::{Limits, Recorded, Recorder},
    text,
};
use std::path::PathBuf;

/// The bytes of the ring of the last frames, as a share of the bytes of an incident.
const RING: usize = 4;

/// The limits of a recorder for this number of incidents of this number of bytes each.
pub(super) fn limits(files: usize, bytes: u64) -> Limits {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Limits { files, bytes, ring: bytes.saturating_mul(RING) }
}

/// The directory of the files.
pub(super) struct Evidence {
    disk: Box<dyn Disk>,
    directory: PathBuf,
    /// Whether an error was printed.
    warned: bool,
}

impl Evidence {
    /// Writes to a directory that exists.
    pub(super) fn new(disk: Box<dyn Disk>, directory: PathBuf) -> Self {
        Evidence { disk, directory, warned: false }
    }

    /// Writes the files of incidents that have closed. Returns the first error of the run, once.
    pub(super) fn look(&mut self, recorder: &mut Recorder) -> Option<String> {
        let why = recorder.finished(false, |one| self.write(one)).err()?;
        let is_first = !std::mem::replace(&mut self.warned, true);
        is_first.then(|| format!("{why:#}; the run goes on"))
    }

    /// Writes all files, and prints the number of incidents that found no room.
    pub(super) fn finish(&mut self, recorder: &mut Recorder) -> anyhow::Result<()> {
        if recorder.missed() > 0 {
            let (missed, place) = (show::whole(recorder.missed()), show::path(&self.directory));
            show::say(&format!(
                "{missed} incidents have no packets in {place}; type a larger --evidence-files"
            ));
        }
        recorder.finished(true, |one| self.write(one))
    }

    fn write(&self, one: &Recorded) -> anyhow::Result<()> {
        let place = || format!("cannot write packets to {}", show::path(&self.directory));
        let path = |end: &str| self.directory.join(format!("{}.{end}", one.name()));
        files::replace(&*self.disk, &path("pcap"), Access::Owner, |out| one.write(out))
            .with_context(place)?;
        let mut json = one.incident().to_json();
        let [matched, kept] = one.packets();
        json["packets"] = json!({ "matched": matched, "kept": kept });
        let line = json.to_string();
        let line = text::json(&line);
        files::replace(&*self.disk, &path("json"), Access::Owner, |out| writeln!(out, "{line}"))
            .with_context(place)
    }
}
