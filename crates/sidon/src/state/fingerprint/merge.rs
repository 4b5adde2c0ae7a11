//! Merges another map cell by cell, with a report to the caller for each cell.
//!
//! [`Map::merge`](crate::state::Map::merge) adds all of another map or nothing. Here, flows that do not fit are
//! left out, and flows stored in both maps become shared. The caller receives a report of both.

use super::{Body, Lookup, State, UNTOUCHED};
use crate::{Refused, dleft_table::Cell};

/// The report of one cell of the other map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Met {
    /// The answer of this map before the merge. If it is not `Absent`, the cell is shared now.
    pub own: Lookup<State>,
    /// The answer of the other map.
    pub other: Lookup<State>,
    /// The reason why the flow was left out, if it was.
    pub refused: Option<Refused>,
    /// The sampling class of the flow, see `Fingerprint::classes`.
    pub class: u32,
}

impl Body {
    /// Adds the flows of another map, as far as there is room, and calls `met` for each cell. A
    /// fingerprint stored in both becomes a shared cell. Its count of flows stops at the ceiling,
    /// so the map should remove such flows by ageing, not by `forget`.
    ///
    /// `Err`, with nothing changed, if the maps differ as for [`Map::merge`](crate::state::Map::merge).
    pub(super) fn take_over(
        &mut self,
        other: &Self,
        met: &mut dyn FnMut(Met),
    ) -> Result<(), Refused> {
        self.same(other)?;
        let ceiling = u64::from(self.shape.shared);
        let listed = self.before_merge(other);
        for (fingerprint, low) in other.table.cells().chain(other.stash.iter().copied()) {
            let held = self.held(fingerprint);
            let own = held.map_or(Lookup::Absent, |own| self.tally.read(own));
            let room = ceiling - held.map_or(0, |own| self.tally.flows_of(own)).min(ceiling);
            let joined = match self.capped(low, room) {
                Some(low) => self.join(fingerprint, low),
                // The count of the shared cell is at its ceiling.
                None => Ok(()),
            };
            let class = self.class_at(fingerprint);
            met(Met { own, other: other.tally.read(low), refused: joined.err(), class });
        }
        for (digest, low, stored) in listed {
            let own = if stored { self.lookup_digest(digest) } else { Lookup::Absent };
            let refused = self.join_listed((digest, low, stored)).err();
            let class = self.class_at(self.table.fingerprints.of_digest(digest));
            met(Met { own, other: other.tally.read(low), refused, class });
        }
        Ok(())
    }

    /// The low bits of the cell of a fingerprint, if it has one.
    pub(super) fn held(&self, fingerprint: u64) -> Option<u64> {
        match self.cell_of(fingerprint) {
            Some(cell) => Some(self.table.addressing.low_bits(cell.value)),
            None => self.stashed_at(fingerprint).map(|at| self.stash[at].1),
        }
    }

    /// The cell of a fingerprint, if it has one.
    pub(super) fn cell_of(&self, fingerprint: u64) -> Option<Cell> {
        let finder = self.table.any_finder();
        finder.find(self.table.memory.bytes(), &self.table.fingerprints.permuted(fingerprint))
    }

    /// These low bits with at most `flows` flows. `None` for 0.
    fn capped(&self, low: u64, flows: u64) -> Option<u64> {
        match flows {
            0 => None,
            flows if flows >= self.tally.flows_of(low) => Some(low),
            flows => Some(self.tally.shared_by(flows) | low & UNTOUCHED),
        }
    }

    /// Adds the flows of another map's cell. Under a clock the cell counts as touched, because the
    /// clock hands of the two maps differ. Timers visit all cells at once, so the flag is kept.
    pub(super) fn join(&mut self, fingerprint: u64, low: u64) -> Result<(), Refused> {
        let low = if self.marks.is_empty() { low & !UNTOUCHED } else { low };
        let found = self.cell_of(fingerprint);
        let stashed = if found.is_none() { self.stashed_at(fingerprint) } else { None };
        let old = match (found, stashed) {
            (Some(cell), _) => self.table.addressing.low_bits(cell.value),
            (None, Some(at)) => self.stash[at].1,
            (None, None) => {
                let flows = self.tally.flows_of(low);
                // The other map may count more flows in a cell than this one can.
                let ceiling = self.shape.shared.into();
                if flows > ceiling {
                    return Err(Refused::Overflow { ceiling });
                }
                self.enter_fingerprint(fingerprint, low)?;
                self.tally.flows += flows;
                self.tally.shared += u64::from(self.tally.is_shared(low));
                return Ok(());
            }
        };
        let (flows, ceiling) =
            (self.tally.flows_of(old) + self.tally.flows_of(low), self.shape.shared.into());
        if flows > ceiling {
            return Err(Refused::Overflow { ceiling });
        }
        self.tally.shared += u64::from(!self.tally.is_shared(old));
        self.tally.flows += self.tally.flows_of(low);
        let both = self.tally.shared_by(flows) | (old & low & UNTOUCHED);
        match (found, stashed) {
            (Some(cell), _) => self.rewrite(cell, both),
            (None, Some(at)) => self.stash[at].1 = both,
            (None, None) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, state::fingerprint::*};

    fn shape(buckets: u64) -> Shape {
        Shape {
            subtables: 2,
            buckets,
            cells: 4,
            width: 32,
            remainder: 24,
            states: 6,
            shared: 3,
            placing: Placing::Permuted,
            moves: Moves::Search(64),
            reinsert: false,
            stash: 0,
            growths: 0,
            grows: false,
            listed: 0,
        }
    }

    fn filled(buckets: u64, keys: std::ops::Range<u64>) -> Fingerprint {
        let mut map = Fingerprint::new(shape(buckets), Seed(3)).unwrap();
        for key in keys {
            map.insert(&key, (key % 6) as State).unwrap();
        }
        map
    }

    #[test]
    fn what_is_in_one_keeps_its_state_and_what_is_in_both_is_shared() {
        let (mut map, other) = (filled(100, 0..300), filled(100, 200..400));
        let (mut both, mut fresh) = (0, 0);
        map.take_over(&other, &mut |met| {
            assert_eq!(met.refused, None);
            match met.own {
                Lookup::Absent => fresh += 1,
                own => {
                    assert_eq!(own, met.other);
                    both += 1;
                }
            }
        })
        .unwrap();
        assert_eq!((both, fresh), (100, 100));
        assert_eq!((map.len(), map.stats().unknown), (500, 100));
        for key in 0..400u64 {
            let expected = match key {
                200..300 => Lookup::DontKnow,
                _ => Lookup::State((key % 6) as State),
            };
            assert_eq!(map.lookup(&key), expected, "{key}");
        }
        // A shared cell counts up to three flows, and stays shared when there are more.
        for _ in 0..3 {
            map.take_over(&other, &mut |met| assert_eq!(met.refused, None)).unwrap();
        }
        assert_eq!(map.len(), 200 + 3 * 200);
        assert!((200..400u64).all(|key| map.lookup(&key) == Lookup::DontKnow));
        assert!(Fingerprint::from_bytes(&map.to_bytes(), Seed(3)).is_ok());
    }

    #[test]
    fn what_has_no_room_is_left_out_and_told() {
        let (mut map, other) = (filled(20, 0..140), filled(20, 200..340));
        let (mut taken, mut refused) = (0, 0);
        map.take_over(&other, &mut |met| match met.refused {
            None => taken += 1,
            Some(why) => {
                assert!(matches!(why, Refused::Full { .. }), "{why:?}");
                refused += 1;
            }
        })
        .unwrap();
        assert!(taken > 0 && refused > 0 && taken + refused == 140, "{taken} {refused}");
        assert!((0..140u64).all(|key| map.lookup(&key) == Lookup::State((key % 6) as State)));
        let found = (200..340u64).filter(|key| map.lookup(key) != Lookup::Absent).count();
        assert_eq!(found, taken);

        let another = Fingerprint::new(shape(21), Seed(3)).unwrap();
        let why = map.take_over(&another, &mut |_| {}).unwrap_err();
        assert_eq!(why, Refused::Mismatch { field: "fingerprints" });
    }
}
