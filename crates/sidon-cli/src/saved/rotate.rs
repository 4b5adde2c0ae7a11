//! One file per period: `--rotate 5m --save-dir DIR`.
//!
//! Periods are whole multiples of their length since 1970, by the clock of
//! [`drive`](sidon_traffic::drive). A file holds the state of its period only, so the files of a
//! run can be merged in any selection. A period without a packet has no file. A capture has at most
//! `--files-most` files, each about as large as `--memory`: its packets may be hours apart.

use super::file;
use crate::show;
use anyhow::{Context, anyhow};
use sidon_traffic::{Report, Snapshot, files::Disk, time};
use std::path::{Path, PathBuf};

/// Default length of a period.
pub(crate) const PERIOD: &str = "5m";

/// The directory of the files, and counts of the files in it.
pub(crate) struct Rotation {
    disk: Box<dyn Disk>,
    directory: PathBuf,
    period_ns: u64,
    /// Files written, and periods that could not be written.
    pub(crate) files: u64,
    pub(crate) failed: u64,
    /// Whether an alarm was raised in one of the periods.
    pub(crate) alarmed: bool,
    /// Packets in the periods that have ended.
    pub(crate) seen: u64,
}

/// A period that has ended.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) report: Report,
    /// Path of the file, or the reason why it was not written.
    pub(crate) saved: anyhow::Result<PathBuf>,
}

/// Creates a directory for files of periods, if it does not exist.
pub(crate) fn make(disk: &dyn Disk, directory: &Path) -> anyhow::Result<()> {
    disk.create_directory(directory)
        .with_context(|| format!("cannot create the directory {}", show::path(directory)))
}

impl Rotation {
    /// Creates the directory if it does not exist.
    pub(crate) fn new(
        disk: Box<dyn Disk>,
        directory: PathBuf,
        period_ns: u64,
    ) -> anyhow::Result<Self> {
        make(&*disk, &directory)?;
        Ok(Rotation { disk, directory, period_ns, files: 0, failed: 0, alarmed: false, seen: 0 })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Writes the last period, if it has a packet.
    pub(crate) fn end(&mut self, start_ns: Option<u64>, snapshot: &Snapshot) -> anyhow::Result<()> {
        if let Some(start_ns) = start_ns.filter(|_| snapshot.ledger().seen > 0) {
            self.save(start_ns, snapshot).saved?;
        }
        Ok(())
    }

    /// An error with the number of periods that could not be written, if there are any.
    pub(crate) fn lost(&self) -> Option<anyhow::Error> {
        let directory = show::path(&self.directory);
        match self.failed {
            0 => None,
            1 => Some(anyhow!("1 period is lost: it could not be written to {directory}")),
            many => {
                Some(anyhow!("{many} periods are lost: they could not be written to {directory}"))
            }
        }
    }

    /// Writes the state of a period that has ended to a separate file.
    pub(crate) fn save(&mut self, start_ns: u64, snapshot: &Snapshot) -> Over {
        let report = snapshot.report();
        self.alarmed |= !report.alarms.is_empty();
        self.seen = self.seen.saturating_add(report.ledger.seen);
        let path = self.directory.join(name(start_ns));
        let saved = file::create(&*self.disk, &path, |out| snapshot.write(out));
        self.files += u64::from(saved.is_ok());
        self.failed += u64::from(saved.is_err());
        Over { report, saved }
    }
}

/// The error if a capture has more periods than `most` files.
pub(crate) fn joined(most: Option<u64>) -> anyhow::Error {
    let most = show::whole(most.unwrap_or(0));
    anyhow!(
        "the capture has more than {most} periods with packets; the last file has all packets from its \
         period on; type a longer --rotate, or --files-most N for more files"
    )
}

/// `sidon-20261116T051500Z.sidon`: in the order of time.
pub(super) fn name(start_ns: u64) -> String {
    let digits: String =
        time::iso8601(start_ns)[..19].chars().filter(|c| !matches!(c, '-' | ':')).collect();
    format!("sidon-{digits}Z.sidon")
}

/// `90s`, `5m`, `1h`, `1d`, in nanoseconds.
pub(crate) fn period(text: &str) -> Result<u64, String> {
    let wrong = || "expected a time with its unit, such as 30s, 5m, 1h or 1d".to_owned();
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400u64)];
    let digits = |&(unit, seconds)| Some((text.strip_suffix(unit)?, seconds));
    let (digits, seconds) = units.iter().find_map(digits).ok_or_else(wrong)?;
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let period = number.checked_mul(seconds).and_then(|all| all.checked_mul(1_000_000_000));
    period.filter(|&period| period > 0).ok_or_else(wrong)
}

/// A period as text, in the largest unit that divides it.
pub(crate) fn words(period_ns: u64) -> String {
    let seconds = period_ns / 1_000_000_000;
    let units = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
    let fits = units.iter().find(|(_, unit)| seconds.is_multiple_of(*unit));
    let (unit, many) = fits.map_or(('s', seconds), |(unit, length)| (*unit, seconds / length));
    format!("{many}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_time_and_periods_have_units() {
        assert_eq!(name(1_794_805_200_000_000_000), "sidon-20261116T050000Z.sidon");
        assert!(name(999_999_999_000_000_000) < name(1_000_000_000_000_000_000));
        assert_eq!(period("5m"), Ok(300_000_000_000));
        assert_eq!(period("90s"), Ok(90_000_000_000));
        assert!(period(PERIOD).is_ok());
        for text in ["1s", "90s", "5m", "36h", "7d"] {
            assert_eq!(words(period(text).unwrap()), text);
        }
        for wrong in ["", "5", "m", "0s", "5ss", "5min", "1.5h", "999999999999d"] {
            assert!(period(wrong).is_err(), "{wrong}");
        }
    }
}
