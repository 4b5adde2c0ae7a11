//! Incidents that are not listed, so that each is counted once.
//!
//! A detector reports a subject again and again while its condition holds. The table remembers 1,024
//! subjects in sets of four, each with the last report; a full set forgets the one reported least
//! recently. A subject that is silent for the gap of its kind counts again, as it would be listed again.

use super::kinds::{self, KINDS};
use crate::{
    Prefix,
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::{Key, Malformed, Seed};

/// Entries of a set.
const WAYS: usize = 4;
/// The entries of all sets.
const ENTRIES: usize = 1_024;

/// A subject that was not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// The digest of the group and the subject.
    key: u64,
    last: u64,
    /// The kind as which it was counted, by its number in [`KINDS`].
    kind: usize,
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

/// The first entry of the set of a key.
fn set(key: u64) -> usize {
    (key >> 32) as usize % (ENTRIES / WAYS) * WAYS
}

fn key(kind: &'static str, subject: &Prefix, seed: Seed) -> u64 {
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
        let key = key(kind, subject, seed);
        let ways = &mut self.sets[set(key)..][..WAYS];
        let own = ways.iter().position(|entry| entry.is_some_and(|entry| entry.key == key));
        let oldest = || ways.iter().enumerate().min_by_key(|(_, one)| one.map(|one| one.last));
        let Some(way) = own.or_else(|| oldest().map(|(way, _)| way)) else { return true };
        let before = ways[way].filter(|_| own.is_some());
        let is_new = before.is_none_or(|one| now.saturating_sub(one.last) > kinds::gap(kind));
        let counted = before.filter(|_| !is_new).map(|before| before.kind);
        let kind = counted.or_else(|| kinds::number(kind)).unwrap_or(0);
        ways[way] = Some(Entry { key, last: now, kind });
        is_new
    }

    /// Forgets a subject that is listed now. Returns the number of the kind as which it was counted.
    pub(super) fn forget(
        &mut self,
        kind: &'static str,
        subject: &Prefix,
        now: u64,
        seed: Seed,
    ) -> Option<usize> {
        let key = key(kind, subject, seed);
        let mut ways = self.sets[set(key)..][..WAYS].iter_mut();
        let own = ways.find(|entry| entry.is_some_and(|entry| entry.key == key));
        let before = own.and_then(Option::take)?;
        (now.saturating_sub(before.last) <= kinds::gap(kind)).then_some(before.kind)
    }
}

/// The table in a checkpoint: the entries in use, each with its position.
impl Resume for Refusals {
    fn save(&self, out: &mut Out) {
        let used = || self.sets.iter().enumerate().filter_map(|(at, entry)| Some((at, (*entry)?)));
        out.number(used().count() as u64);
        for (at, Entry { key, last, kind }) in used() {
            out.numbers(&[at as u64, key, last, kind as u64]);
        }
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let mut next = 0;
        for _ in 0..bytes.length("refusals", ENTRIES)? {
            let at = bytes.below("refusals", ENTRIES)?;
            let [key, last] = bytes.numbers()?;
            let kind = bytes.below("refusals", KINDS.len())?;
            let start = set(key);
            let is_own = |entry: &Option<Entry>| entry.is_some_and(|entry| entry.key == key);
            let is_new = !self.sets[start..][..WAYS].iter().any(is_own);
            let is_place = at >= next && (start..start + WAYS).contains(&at);
            bytes.check("refusals", is_place && is_new)?;
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

    const SECOND: u64 = 1_000_000_000;
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
    fn the_table_is_read_back() {
        let mut table = Refusals::default();
        for host in 0..5_000u32 {
            let subject = Prefix::from(std::net::IpAddr::from(host.to_be_bytes()));
            assert!(table.is_new(PORT_SCAN, &subject, host.into(), SEED));
        }
        let mut out = Out::default();
        table.save(&mut out);
        let mut again = Refusals::default();
        let mut bytes = In { bytes: &out.0, part: "test" };
        again.resume(&mut bytes).and_then(|()| bytes.end()).unwrap();
        assert_eq!(again.sets, table.sets);
    }
}
