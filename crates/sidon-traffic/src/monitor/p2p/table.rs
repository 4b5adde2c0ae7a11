//! A table of hosts or ports with the evidence about each, in memory that does not grow. A new
//! entry replaces the one with the smallest weight.

use crate::{
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::{Infeasible, Key, Malformed, Seed};
use std::collections::HashMap;

/// A host and a port; the port is zero for the host itself.
pub(super) type Subject = [u8; 19];

/// Entries per set: a subject is stored in one of these.
const WAYS: usize = 8;

/// Evidence with a weight. The table evicts the smallest weight first.
pub(super) trait Weigh: Default + Clone {
    /// The weight of this evidence, in peers.
    fn weight(&self) -> u64;
}

/// Hosts or ports, and the evidence about each.
#[derive(Debug)]
pub(super) struct Table<E> {
    seed: Seed,
    room: Room<E>,
    /// Replaced entries that had a weight of more than one peer.
    pub(super) displaced: u64,
}

#[derive(Debug)]
enum Room<E> {
    Fixed(Vec<Option<(Subject, E)>>),
    Grows(HashMap<Subject, E>),
}

impl<E: Weigh> Table<E> {
    /// Bytes per entry.
    pub(super) const BYTES: u64 = size_of::<Option<(Subject, E)>>() as u64;

    /// An empty table of about `entries` entries.
    pub(super) fn fixed(entries: u64, seed: Seed) -> Result<Self, Infeasible> {
        let entries = (entries / WAYS as u64).max(1) * WAYS as u64;
        let bytes = entries.saturating_mul(Self::BYTES);
        let length = usize::try_from(entries).map_err(|_| Infeasible::Memory { bytes })?;
        let mut sets = Vec::new();
        sets.try_reserve_exact(length).map_err(|_| Infeasible::Memory { bytes })?;
        sets.resize(length, None);
        Ok(Table { seed, room: Room::Fixed(sets), displaced: 0 })
    }

    /// An empty table that grows.
    pub(super) fn exact() -> Self {
        Table { seed: Seed(0), room: Room::Grows(HashMap::new()), displaced: 0 }
    }

    /// The evidence about `subject`, if it is stored.
    pub(super) fn find(&mut self, subject: &Subject) -> Option<&mut E> {
        let sets = match &mut self.room {
            Room::Grows(map) => return map.get_mut(subject),
            Room::Fixed(sets) => sets,
        };
        let set = subject.digest(self.seed).position(0, (sets.len() / WAYS) as u64);
        let set = &mut sets[set as usize * WAYS..][..WAYS];
        set.iter_mut().flatten().find(|(own, _)| own == subject).map(|(_, evidence)| evidence)
    }

    /// The evidence about `subject`, which is added if it is missing. In a full set, the new entry
    /// replaces the one with the smallest weight.
    pub(super) fn enter(&mut self, subject: &Subject) -> &mut E {
        let sets = match &mut self.room {
            Room::Grows(map) => return map.entry(*subject).or_default(),
            Room::Fixed(sets) => sets,
        };
        let set = subject.digest(self.seed).position(0, (sets.len() / WAYS) as u64);
        let set = &mut sets[set as usize * WAYS..][..WAYS];
        let known = set.iter().position(|entry| matches!(entry, Some((own, _)) if own == subject));
        let way = known.unwrap_or_else(|| {
            let weight = |entry: &Option<(Subject, E)>| entry.as_ref().map(|(_, e)| e.weight());
            let (mut least, mut way) = (weight(&set[0]), 0);
            for (other, entry) in set.iter().enumerate().skip(1) {
                if weight(entry) < least {
                    (least, way) = (weight(entry), other);
                }
            }
            self.displaced += u64::from(least > Some(1));
            set[way] = Some((*subject, E::default()));
            way
        });
        &mut set[way].get_or_insert_with(|| (*subject, E::default())).1
    }

    /// All entries, in no particular order.
    pub(super) fn entries(&self) -> Box<dyn Iterator<Item = (&Subject, &E)> + '_> {
        match &self.room {
            Room::Fixed(sets) => Box::new(sets.iter().flatten().map(|(subject, e)| (subject, e))),
            Room::Grows(map) => Box::new(map.iter()),
        }
    }
}

/// A table in a checkpoint: the entries in use, each with its position. A table that grows has none,
/// because only exact references have such tables.
impl<E: Weigh + Resume> Resume for Table<E> {
    fn save(&self, out: &mut Out) {
        let sets = match &self.room {
            Room::Fixed(sets) => &sets[..],
            Room::Grows(_) => &[],
        };
        let used = || sets.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.as_ref()?)));
        out.numbers(&[self.displaced, used().count() as u64]);
        for (at, (subject, evidence)) in used() {
            out.number(at as u64);
            out.raw(subject);
            evidence.save(out);
        }
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let [displaced, used] = bytes.counts("displaced")?;
        self.displaced = displaced;
        let Room::Fixed(sets) = &mut self.room else { return bytes.wrong("hosts") };
        let number = (sets.len() / WAYS) as u64;
        let mut next = 0;
        for _ in 0..used {
            let (at, subject) = (bytes.below("position", sets.len())?, bytes.array()?);
            let set = subject.digest(self.seed).position(0, number) as usize * WAYS;
            let known = sets.get(set..at).unwrap_or_default();
            let is_new = known.iter().flatten().all(|(other, _)| *other != subject);
            bytes.check("position", at >= next && (set..set + WAYS).contains(&at) && is_new)?;
            let mut evidence = E::default();
            evidence.resume(bytes)?;
            sets[at] = Some((subject, evidence));
            next = at + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Default)]
    struct Times(u64);

    impl Weigh for Times {
        fn weight(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn the_lightest_makes_room() {
        let mut table = Table::<Times>::fixed(8, Seed(1)).unwrap();
        let subject = |number: u8| -> Subject { std::array::from_fn(|_| number) };
        for number in 0..8 {
            table.enter(&subject(number)).0 += 10 + u64::from(number);
        }
        table.enter(&subject(9)).0 += 1;
        table.enter(&subject(10)).0 += 1;
        let mut held: Vec<_> =
            table.entries().map(|(subject, times)| (subject[0], times.0)).collect();
        held.sort_unstable();
        assert_eq!(held[0], (1, 11), "the first had ten");
        assert_eq!(held.last(), Some(&(10, 1)), "the last of the light ones");
        assert_eq!((held.len(), table.displaced), (8, 1));
        let mut grows = Table::<Times>::exact();
        for number in 0..100 {
            grows.enter(&subject(number)).0 += 1;
        }
        assert_eq!((grows.entries().count(), grows.displaced), (100, 0));
    }
}
