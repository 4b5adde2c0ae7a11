//! A file for every period: `--rotate 5m --save-dir DIR`.
//!
//! Periods are whole multiples of their length since 1970, by the time of the packets, and where they
//! are awaited also by the clock. A file holds
//! what its period saw and nothing else, so that files of one run merge to what any stretch saw. Time
//! that goes back stays in the period that it is; a period without a packet has no file.

use super::file;
use anyhow::Context;
use sidon::Infeasible;
use sidon_traffic::{Engine, Report, Snapshot, time};
use std::{
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// The length of a period unless it is said.
pub(crate) const PERIOD: &str = "5m";

/// Where the files go, and when the next one is due.
#[derive(Debug)]
pub(crate) struct Rotation {
    directory: PathBuf,
    period_ns: u64,
    /// The start of the period of now, once there was a packet.
    start: Option<u64>,
    /// Files written.
    pub(crate) files: u64,
    /// Whether an alarm was raised in one of the periods.
    pub(crate) alarmed: bool,
    /// Packets in the periods that are over.
    pub(crate) seen: u64,
}

/// A period that is over.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) report: Report,
    /// The file, or why there is none.
    pub(crate) saved: anyhow::Result<PathBuf>,
}

impl Rotation {
    /// No period yet; the directory is made if need be.
    pub(crate) fn new(directory: PathBuf, period_ns: u64) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        Ok(Rotation { directory, period_ns, start: None, files: 0, alarmed: false, seen: 0 })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// The start of the period of now, once there was a packet.
    pub(crate) fn start(&self) -> Option<u64> {
        self.start
    }

    /// It is so late: if the period is over, another begins. If it had a packet, it is written, and
    /// the engine begins anew, whether it could be written or not.
    #[inline]
    pub(crate) fn turn(
        &mut self,
        time_ns: u64,
        engine: &mut Engine,
    ) -> Result<Option<Box<Over>>, Infeasible> {
        let start = *self.start.get_or_insert(time_ns - time_ns % self.period_ns);
        if time_ns.saturating_sub(start) < self.period_ns {
            return Ok(None);
        }
        self.start = Some(time_ns - time_ns % self.period_ns);
        if engine.ledger().seen == 0 {
            return Ok(None);
        }
        engine.rotate(|snapshot| Some(Box::new(self.save(&snapshot, start))))
    }

    /// The same; what cannot be written is an error.
    #[inline]
    pub(crate) fn at(&mut self, time_ns: u64, engine: &mut Engine) -> anyhow::Result<()> {
        if let Some(over) = self.turn(time_ns, engine)? {
            over.saved?;
        }
        Ok(())
    }

    /// The same by the clock, where no packet tells the time.
    pub(crate) fn now(&mut self, engine: &mut Engine) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.at(now.as_nanos() as u64, engine)
    }

    /// Writes the last period, if it had a packet.
    pub(crate) fn end(&mut self, snapshot: &Snapshot) -> anyhow::Result<Option<PathBuf>> {
        match self.start {
            Some(start) if snapshot.ledger().seen > 0 => self.save(snapshot, start).saved.map(Some),
            _ => Ok(None),
        }
    }

    fn save(&mut self, snapshot: &Snapshot, start: u64) -> Over {
        let report = snapshot.report();
        self.alarmed |= !report.alarms.is_empty();
        self.seen += report.ledger.seen;
        let path = self.directory.join(name(start));
        let saved = file::create(&path, |out| snapshot.write(out));
        self.files += u64::from(saved.is_ok());
        Over { report, saved }
    }
}

/// `sidon-20261116T051500Z.sidon`: in the order of time.
pub(super) fn name(start_ns: u64) -> String {
    let digits: String =
        time::iso8601(start_ns)[..19].chars().filter(|c| !matches!(c, '-' | ':')).collect();
    format!("sidon-{digits}Z.sidon")
}

/// `90s`, `5m`, `1h`, `1d`, in nanoseconds.
pub(crate) fn period(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a time like 30s, 5m, 1h or 1d");
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400u64)];
    let (unit, seconds) =
        *units.iter().find(|(unit, _)| text.ends_with(*unit)).ok_or_else(wrong)?;
    let number: u64 = text.trim_end_matches(unit).parse().map_err(|_| wrong())?;
    let period = number.checked_mul(seconds).and_then(|all| all.checked_mul(1_000_000_000));
    period.filter(|&period| period > 0).ok_or_else(wrong)
}

/// The same backwards, in the largest unit that fits.
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
        for wrong in ["", "5", "m", "0s", "5min", "1.5h", "999999999999d"] {
            assert!(period(wrong).is_err(), "{wrong}");
        }
    }
}
