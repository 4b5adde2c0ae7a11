//! Incidents that are not listed, so that each is counted once.
//!
//! A detector reports a subject again and again while its condition holds. The table remembers 4,096
//! subjects in sets of 16, each with the second of its last report, in 48 KiB. A full set forgets the
//! subject reported least recently. A subject that is silent for the gap of its kind counts again, as it
//! would be listed again.

use super::kinds::{self, KINDS};
use crate::{
    Prefix,
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::{Key, Malformed, Seed};
use std::num::NonZeroU8;

/// Entries of a set.
const WAYS: usize = 16;
/// The entries of all sets.
const ENTRIES: usize = 4_096;
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// A subject that was not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// The lower half of the digest of the group and the subject.
    key: u32,
    /// The second of the last report.
    last: u32,
    /// The kind as which it was counted: one more than its number in [`KINDS`].
    kind: NonZeroU8,
}

impl Entry {
    /// Whether its incident goes on at this second.
    fn goes_on(self, kind: &str, second: u32) -> bool {
        u64::from(second.saturating_sub(self.last)) <= kinds::gap(kind) / SECOND
    }

    fn kind(self) -> usize {
        usize::from(self.kind.get()) - 1
    }
}

fn second(now: u64) -> u32 {
    u32::try_from(now / SECOND).unwrap_or(u32::MAX)
}

/// The subjects that were refused last.
#[derive(Debug)]
pub(super) struct Refusals {
    sets: Vec<Option<Entry>>,
}

impl Default for Refusals {
    fn default() -> Self {
        Refusals { sets: vec![None; ENTRIES] }
    }
}

/// The first entry of the set of a digest.
fn set(digest: u64) -> usize {
    (digest >> 32) as usize % (ENTRIES / WAYS) * WAYS
}

fn digest(kind: &'static str, subject: &Prefix, seed: Seed) -> u64 {
    let text = format!("{} {subject}", kinds::group(kind));
    text.as_bytes().digest(seed).0
}

impl Refusals {
    /// Remembers a subject that is not listed at time `now`. Returns whether it is a new incident.
    pub(super) fn is_new(
        &mut self,
        kind: &'static str,
        subject: &Prefix,
        now: u64,
        seed: Seed,
    ) -> bool {
        let (digest, last) = (digest(kind, subject, seed), second(now));
        let key = digest as u32;
        let ways = &mut self.sets[set(digest)..][..WAYS];
        let own = ways.iter().position(|entry| entry.is_some_and(|entry| entry.key == key));
        let oldest = || ways.iter().enumerate().min_by_key(|(_, one)| one.map(|one| one.last));
        let Some(way) = own.or_else(|| oldest().map(|(way, _)| way)) else { return true };
        let before = ways[way].filter(|before| own.is_some() && before.goes_on(kind, last));
        let number = kinds::number(kind).unwrap_or(0);
        let number = NonZeroU8::MIN.saturating_add(u8::try_from(number).unwrap_or(u8::MAX));
        let kind = before.map_or(number, |before| before.kind);
        ways[way] = Some(Entry { key, last, kind });
        before.is_none()
    }

    /// Forgets a subject that is listed now. Returns the number of the kind as which it was counted.
    pub(super) fn forget(
        &mut self,
        kind: &'static str,
        subject: &Prefix,
        now: u64,
        seed: Seed,
    ) -> Option<usize> {
        let digest = digest(kind, subject, seed);
        let mut ways = self.sets[set(digest)..][..WAYS].iter_mut();
        let own = ways.find(|entry| entry.is_some_and(|entry| entry.key == digest as u32));
        let before = own.and_then(Option::take)?;
        before.goes_on(kind, second(now)).then(|| before.kind())
    }
}

/// The table in a checkpoint: the entries in use, each with its position.
impl Resume for Refusals {
    fn save(&self, out: &mut Out) {
        let used = || self.sets.iter().enumerate().filter_map(|(at, entry)| Some((at, (*entry)?)));
        out.number(used().count() as u64);
        for (at, entry) in used() {
            let Entry { key, last, .. } = entry;
            out.numbers(&[at as u64, key.into(), last.into(), entry.kind() as u64]);
        }
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let mut next = 0;
        for _ in 0..bytes.length("refusals", ENTRIES)? {
            let at = bytes.below("refusals", ENTRIES)?;
            let [key, last, kind] = bytes.numbers()?;
            let (Ok(key), Ok(last)) = (u32::try_from(key), u32::try_from(last)) else {
                return bytes.wrong("refusals");
            };
            bytes.check("refusals", kind < KINDS.len() as u64 && at >= next)?;
            let start = at / WAYS * WAYS;
            let is_own = |entry: &Option<Entry>| entry.is_some_and(|entry| entry.key == key);
            bytes.check("refusals", !self.sets[start..][..WAYS].iter().any(is_own))?;
            let kind = NonZeroU8::MIN.saturating_add(kind as u8);
            self.sets[at] = Some(Entry { key, last, kind });
            next = at + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::incidents::kinds::{PORT_SCAN, RANDOM_SCAN, SYN_FLOOD};

    const SEED: Seed = Seed(3);

    #[test]
    fn an_incident_is_counted_once_while_it_goes_on() {
        let mut table = Refusals::default();
        let subject = "192.0.2.7".parse().unwrap();
        let mut count = 0;
        for second in 0..1_000 {
            count += u64::from(table.is_new(PORT_SCAN, &subject, second * SECOND, SEED));
            count += u64::from(table.is_new(RANDOM_SCAN, &subject, second * SECOND, SEED));
        }
        assert_eq!(count, 1, "all scans of a source are one");
        assert!(table.is_new(SYN_FLOOD, &subject, 1_000 * SECOND, SEED), "another kind");
        assert!(!table.is_new(SYN_FLOOD, &subject, 1_010 * SECOND, SEED));
        assert!(table.is_new(SYN_FLOOD, &subject, 1_021 * SECOND, SEED), "after its gap");
        let mut forget = |kind, second| table.forget(kind, &subject, second * SECOND, SEED);
        assert_eq!(forget(SYN_FLOOD, 1_021), kinds::number(SYN_FLOOD));
        assert_eq!(forget(SYN_FLOOD, 1_021), None);
        assert_eq!(forget(RANDOM_SCAN, 1_021), kinds::number(PORT_SCAN), "as it was counted");
    }

    #[test]
    fn two_thousand_subjects_are_counted_once_each() {
        assert_eq!(size_of::<Option<Entry>>(), 12);
        let mut table = Refusals::default();
        let mut count = 0;
        for second in 0..10 {
            for host in 0..2_000u32 {
                let subject = Prefix::from(std::net::IpAddr::from(host.to_be_bytes()));
                count += u64::from(table.is_new(PORT_SCAN, &subject, second * SECOND, SEED));
            }
        }
        // Sets have 7.8 subjects on average; the chance that one of 256 has 17 is one in four.
        assert!((2_000..2_100).contains(&count), "{count}");
    }

    #[test]
    fn the_table_is_read_back() {
        let mut table = Refusals::default();
        for host in 0..5_000u32 {
            let subject = Prefix::from(std::net::IpAddr::from(host.to_be_bytes()));
            assert!(table.is_new(PORT_SCAN, &subject, u64::from(host) * SECOND, SEED));
        }
        let mut out = Out::default();
        table.save(&mut out);
        let mut again = Refusals::default();
        let mut bytes = In { bytes: &out.0, part: "test" };
        again.resume(&mut bytes).and_then(|()| bytes.end()).unwrap();
        assert_eq!(again.sets, table.sets);
    }
}
