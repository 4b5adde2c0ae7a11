//! A file for every period: `--rotate 5m --save-dir DIR`.
//!
//! Periods are whole multiples of their length since 1970, by the time of the packets, and where they
//! are awaited also by the clock. A file holds
//! what its period saw and nothing else, so that files of one run merge to what any stretch saw. Time
//! that goes back stays in the period that it is; a period without a packet has no file.

use crate::saved::file;
use sidon_traffic::{Engine, Snapshot, time};
use std::{
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

/// Where the files go, and when the next one is due.
pub(super) struct Rotation {
    directory: PathBuf,
    period_ns: u64,
    /// The start of the period of now, once there was a packet.
    start: Option<u64>,
    /// Files written.
    pub(super) files: u64,
    /// Whether an alarm was raised in one of them.
    pub(super) alarmed: bool,
    /// Packets in them.
    pub(super) seen: u64,
}

impl Rotation {
    /// No period yet; the directory is made if need be.
    pub(super) fn new(directory: PathBuf, period_ns: u64) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&directory)
            .map_err(|why| anyhow::anyhow!("{}: {why}", directory.display()))?;
        Ok(Rotation { directory, period_ns, start: None, files: 0, alarmed: false, seen: 0 })
    }

    /// It is so late: if the period is over and had a packet, it is written, and the engine begins
    /// anew.
    #[inline]
    pub(super) fn at(&mut self, time_ns: u64, engine: &mut Engine) -> anyhow::Result<()> {
        let start = *self.start.get_or_insert(time_ns - time_ns % self.period_ns);
        if time_ns.saturating_sub(start) >= self.period_ns {
            self.start = Some(time_ns - time_ns % self.period_ns);
            if engine.ledger().seen > 0 {
                engine.rotate(|snapshot| self.save(&snapshot, start))??;
            }
        }
        Ok(())
    }

    /// The same by the clock, where no packet tells the time.
    pub(super) fn now(&mut self, engine: &mut Engine) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.at(now.as_nanos() as u64, engine)
    }

    /// Writes the last period.
    pub(super) fn end(&mut self, snapshot: &Snapshot) -> anyhow::Result<()> {
        match self.start {
            Some(start) => self.save(snapshot, start),
            None => Ok(()),
        }
    }

    fn save(&mut self, snapshot: &Snapshot, start: u64) -> anyhow::Result<()> {
        let report = snapshot.report();
        self.alarmed |= !report.alarms.is_empty();
        self.seen += report.ledger.seen;
        let path = self.directory.join(name(start));
        file::create(&path, |out| snapshot.write(out))?;
        self.files += 1;
        Ok(())
    }
}

/// `sidon-20261116T051500Z.sidon`: in the order of time.
fn name(start_ns: u64) -> String {
    let digits: String =
        time::iso8601(start_ns)[..19].chars().filter(|c| !matches!(c, '-' | ':')).collect();
    format!("sidon-{digits}Z.sidon")
}

/// `90s`, `5m`, `1h`, `1d`, in nanoseconds.
pub(super) fn period(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a time like 30s, 5m, 1h or 1d");
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400u64)];
    let (unit, seconds) =
        *units.iter().find(|(unit, _)| text.ends_with(*unit)).ok_or_else(wrong)?;
    let number: u64 = text.trim_end_matches(unit).parse().map_err(|_| wrong())?;
    let period = number.checked_mul(seconds).and_then(|all| all.checked_mul(1_000_000_000));
    period.filter(|&period| period > 0).ok_or_else(wrong)
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
        for wrong in ["", "5", "m", "0s", "5min", "1.5h", "999999999999d"] {
            assert!(period(wrong).is_err(), "{wrong}");
        }
    }
}
