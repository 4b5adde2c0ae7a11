//! A list of flows by their digests, for flows that cells cannot distinguish.
//!
//! A new flow whose fingerprint is stored already would make the cell shared, and both flows would be
//! answered [`Lookup::DontKnow`]. The map knows the digest of the new flow. So that flow enters a list
//! with its state, and the cell stays that of the first flow:
//! ```text
//! lookup:  digest --in the list?--> its state
//!             |  no
//!             +--fingerprint--> the cell's state
//! ```
//! The list is bounded. While it is full, cells become shared as without a list. A flow of a shared cell
//! enters the list at its next change of state, if there is room again: the change tells both its
//! digest and its state.
//!
//! With [`Placing::Independent`], a flow enters the list if its buckets hold its remainder already, or if
//! it changes its state while two cells match it. In the second case its old cell cannot be found. All
//! matching cells then become unknown, as without a list, and its own one remains until ageing clears
//! it.
//!
//! Two flows of one digest are one flow to the list. Among `n` flows, that happens with probability
//! `n^2 / 2^65`.
//!
//! Bonomi et al., SIGCOMM 2006, section 3.4: "DK values can also be handled using a TCAM, to store
//! flow-ids that yield a DK explicitly."

use super::{Body, Follow, Lookup, Next, Placing, Refused, State, UNTOUCHED, value::Tally};
use crate::{
    Digest, Infeasible,
    batch::{AnyKeys, CHUNK, Keys},
    bucket::ANY,
    key,
    simd::BASE,
};
use std::collections::HashSet;

/// The most flows in the list: 2 MiB.
pub(crate) const LISTED_MAX: u32 = 1 << 16;
/// Bytes for each flow that the list has room for: two slots.
pub(super) const LISTED_BYTES: u64 = 32;

/// The list: an open hash table with linear probing. At least half of the slots are empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed {
    /// A digest, and the low bits of its flow plus one; 0 if the slot is empty.
    slots: Vec<[u64; 2]>,
    stored: usize,
}

impl Listed {
    /// A list with room for `room` flows.
    pub(super) fn new(room: u32) -> Result<Self, Infeasible> {
        let (wanted, bytes) = (2 * room as usize, LISTED_BYTES * u64::from(room));
        let mut slots = Vec::new();
        slots.try_reserve_exact(wanted).map_err(|_| Infeasible::Memory { bytes })?;
        slots.resize(wanted, [0; 2]);
        Ok(Listed { slots, stored: 0 })
    }

    /// Whether the map has a list at all.
    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        !self.slots.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.stored as u64
    }

    pub(super) fn has_room(&self) -> bool {
        2 * self.stored < self.slots.len()
    }

    /// The slot of a digest, or the empty slot where the search for it ends.
    fn slot(&self, digest: u64) -> usize {
        let mut slot = ((u128::from(digest) * self.slots.len() as u128) >> 64) as usize;
        while self.slots[slot][1] != 0 && self.slots[slot][0] != digest {
            slot = self.after(slot);
        }
        slot
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    /// The low bits of a listed flow.
    pub(super) fn get(&self, digest: Digest) -> Option<u64> {
        if self.stored == 0 {
            return None;
        }
        self.slots[self.slot(digest.0)][1].checked_sub(1)
    }

    /// Changes the low bits of a flow, or adds it. A new flow needs [room](Self::has_room).
    pub(super) fn set(&mut self, digest: Digest, low: u64) {
        let slot = self.slot(digest.0);
        self.stored += usize::from(self.slots[slot][1] == 0);
        self.slots[slot] = [digest.0, low + 1];
    }

    /// Takes a flow out.
    pub(super) fn remove(&mut self, digest: Digest) {
        let mut empty = self.slot(digest.0);
        if self.slots[empty][1] == 0 {
            return;
        }
        self.stored -= 1;
        self.slots[empty] = [0; 2];
        // Later flows move forward, so that no search for them ends at the empty slot.
        let mut slot = self.after(empty);
        while self.slots[slot][1] != 0 {
            let moving = std::mem::take(&mut self.slots[slot]);
            empty = self.slot(moving[0]);
            self.slots[empty] = moving;
            slot = self.after(slot);
        }
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill([0; 2]);
        self.stored = 0;
    }

    /// The flows and their low bits, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Digest, u64)> + '_ {
        let used = self.slots.iter().filter(|slot| slot[1] != 0);
        used.map(|&[digest, low]| (Digest(digest), low - 1))
    }

    /// The flows and their low bits, by digest.
    pub(super) fn sorted(&self) -> Vec<(Digest, u64)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable_by_key(|(digest, _)| digest.0);
        all
    }
}

impl Body {
    /// Puts a flow that has no entry into the list.
    fn list(&mut self, digest: Digest, low: u64) {
        self.listed.set(digest, low);
        self.tally.add(low);
    }

    /// Takes a flow out of the list.
    fn unlist(&mut self, digest: Digest, low: u64) {
        self.listed.remove(digest);
        self.tally.subtract(low);
    }

    /// A transition in a map with a list.
    #[cold]
    #[inline(never)]
    pub(super) fn transition_listed(
        &mut self,
        digest: Digest,
        change: &mut dyn FnMut(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        if let Some(low) = self.listed.get(digest) {
            let before = self.tally.read(low);
            let write = self.tally.rule(Some(low), change(before))?;
            match write.low {
                Some(low) => self.listed.set(digest, low),
                None => self.listed.remove(digest),
            }
            self.tally.record(write);
            return Ok(before);
        }
        let before = self.lookup_cells(digest);
        let next = change(before);
        if self.listed.has_room() {
            match (before, next) {
                (Lookup::State(_) | Lookup::DontKnow, Next::Insert(state)) => {
                    self.tally.known(state)?;
                    self.list(digest, u64::from(state) << 1);
                    return Ok(before);
                }
                (Lookup::DontKnow, Next::Modify(state) | Next::Set(state)) => {
                    self.tally.known(state)?;
                    if self.leave_shared(digest) {
                        self.list(digest, u64::from(state) << 1);
                        return Ok(before);
                    }
                }
                _ => {}
            }
        }
        self.transition_cells(digest, &mut |_| next)
    }

    /// Takes a flow out of its shared cell. `false`, with nothing changed, if it is the only flow left
    /// there: then the cell itself gets the new state.
    fn leave_shared(&mut self, digest: Digest) -> bool {
        if self.shape.placing == Placing::Independent {
            return self.blur_independent(&self.table.permuted::<ANY>(digest));
        }
        let fingerprint = self.table.fingerprints.of_digest(digest);
        let Some(low) = self.held(fingerprint) else { return false };
        let flows = self.tally.flows_of(low);
        if flows == 1 {
            return false;
        }
        let left = self.tally.shared_by(flows - 1) | low & UNTOUCHED;
        if let Some(cell) = self.cell_of(fingerprint) {
            self.rewrite(cell, left);
        } else if let Some(at) = self.stashed_at(fingerprint) {
            self.stash[at].1 = left;
        }
        self.tally.flows -= 1;
        true
    }

    /// Replaces the answers of listed flows.
    pub(super) fn answer_listed(&self, keys: AnyKeys<'_>, answers: &mut [Lookup<State>]) {
        if self.listed.len() == 0 {
            return;
        }
        each_chunk(keys, |first, digests| {
            for (&digest, answer) in digests.iter().zip(&mut answers[first..]) {
                if let Some(low) = self.listed.get(digest) {
                    *answer = self.tally.read(low);
                }
            }
        });
    }

    /// A transition of each flow, in a map with a list. Prefetches the buckets of a chunk of flows.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_listed(&mut self, keys: AnyKeys<'_>, follow: &mut impl Follow) {
        each_chunk(keys, |first, digests| {
            let mut permuted = [[0; ANY]; CHUNK];
            self.table.locate(BASE, self.table.any(), digests, &mut permuted[..digests.len()]);
            for (key, &digest) in (first..).zip(digests) {
                let mut chosen = (Lookup::Absent, Next::Stay);
                let result = self.transition_listed(digest, &mut |now| {
                    chosen = (now, follow.next(key, now));
                    chosen.1
                });
                follow.done(key, chosen.0, chosen.1, result.map(|_| ()));
            }
        });
    }

    /// The fingerprints of the listed flows.
    fn listed_fingerprints(&self) -> HashSet<u64> {
        let of = |(digest, _)| self.table.fingerprints.of_digest(digest);
        self.listed.iter().map(of).collect()
    }

    /// Prepares a merge: the listed flows of the other map, each with whether this map stores its
    /// fingerprint.
    ///
    /// A cell of the other map may be that of any flow with its fingerprint. So listed flows of this map
    /// return to a cell if the other map stores their fingerprint. Without room for that, they become
    /// unknown.
    pub(super) fn before_merge(&mut self, other: &Self) -> Vec<(Digest, u64, bool)> {
        let (own, others) = (self.listed_fingerprints(), other.listed_fingerprints());
        let stored = |(digest, low)| {
            let fingerprint = self.table.fingerprints.of_digest(digest);
            let met = own.contains(&fingerprint) || self.held(fingerprint).is_some();
            (digest, low, met)
        };
        let theirs = other.listed.sorted().into_iter().map(stored).collect();
        for (digest, low) in self.listed.sorted() {
            let fingerprint = self.table.fingerprints.of_digest(digest);
            if !others.contains(&fingerprint) && other.held(fingerprint).is_none() {
                continue;
            }
            self.unlist(digest, low);
            if self.join(fingerprint, low).is_err() {
                self.list(digest, self.tally.shared_by(self.tally.flows_of(low)));
            }
        }
        theirs
    }

    /// Adds a listed flow of another map.
    pub(super) fn join_listed(
        &mut self,
        (digest, low, met): (Digest, u64, bool),
    ) -> Result<(), Refused> {
        let touched = if self.marks.is_empty() { low & !UNTOUCHED } else { low };
        if met || !self.listed.has_room() || self.listed.get(digest).is_some() {
            return self.join(self.table.fingerprints.of_digest(digest), low);
        }
        let ceiling = self.shape.shared.into();
        if self.tally.flows_of(low) > ceiling {
            return Err(Refused::Overflow { ceiling });
        }
        self.list(digest, touched);
        Ok(())
    }

    /// Visits the listed flows. `keep` returns the new low bits of a flow, or `None` to remove it, and
    /// updates the counts.
    pub(super) fn sweep_listed(
        &mut self,
        keep: &mut dyn FnMut(&mut Self, Digest, u64) -> Option<u64>,
    ) -> u64 {
        if self.listed.len() == 0 {
            return 0;
        }
        let mut cleared = 0;
        for (digest, low) in self.listed.iter().collect::<Vec<_>>() {
            match keep(self, digest, low) {
                Some(new) => self.listed.set(digest, new),
                None => {
                    self.listed.remove(digest);
                    cleared += 1;
                }
            }
        }
        cleared
    }
}

impl Tally {
    /// Counts the flows of a new cell or entry.
    fn add(&mut self, low: u64) {
        self.flows += self.flows_of(low);
        self.shared += u64::from(self.is_shared(low));
    }

    /// Subtracts the flows of a cell or entry that was removed.
    pub(super) fn subtract(&mut self, low: u64) {
        self.flows -= self.flows_of(low);
        self.shared -= u64::from(self.is_shared(low));
    }
}

/// Calls `act` with the digests of one chunk of keys after the other, and the index of its first key.
fn each_chunk(keys: AnyKeys<'_>, mut act: impl FnMut(usize, &[Digest])) {
    let mut digests = [Digest(0); CHUNK];
    let mut first = 0;
    while first < keys.len() {
        let len = CHUNK.min(keys.len() - first);
        match keys {
            Keys::Any(_, hash) => hash(first, &mut digests[..len]),
            Keys::Typed(seed, keys) => {
                key::digests(seed, &keys[first..first + len], &mut digests[..len]);
            }
        }
        act(first, &digests[..len]);
        first += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn the_list_is_a_map_of_bounded_size() {
        let mut rng = Rng::seeded(1);
        for room in [1u32, 2, 3, 10, 50] {
            let mut list = Listed::new(room).unwrap();
            let mut twin = BTreeMap::new();
            for _ in 0..20_000 {
                // Digests that begin their search at few slots.
                let digest = Digest(rng.below(8) << 61 | rng.below(u64::from(room)));
                if rng.chance(0.6) {
                    assert_eq!(list.has_room(), twin.len() < room as usize);
                    if list.has_room() || twin.contains_key(&digest.0) {
                        let low = rng.below(9);
                        list.set(digest, low);
                        twin.insert(digest.0, low);
                    }
                } else {
                    list.remove(digest);
                    twin.remove(&digest.0);
                }
                assert_eq!(list.get(digest), twin.get(&digest.0).copied());
                assert_eq!(list.len(), twin.len() as u64);
            }
            let sorted = list.sorted().into_iter().map(|(digest, low)| (digest.0, low));
            assert!(sorted.eq(twin));
        }
    }

    #[test]
    fn a_map_without_a_list_holds_nothing() {
        let list = Listed::default();
        assert!(!list.is_on() && !list.has_room());
        assert_eq!((list.get(Digest(7)), list.len()), (None, 0));
    }
}
