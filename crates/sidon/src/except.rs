//! Exceptions: keys that a set or a map rejects although its cells pass them.
//!
//! A false positive repeats with every packet of its flow. A caller that finds out the truth reports the
//! key once. Its digest enters a list, and the structure rejects the key afterwards.
//!
//! ```text
//! answer = the cells pass the key, and its digest is not in the list
//! ```
//!
//! An answer `false` stays a fact by four rules:
//!
//! - The caller excepts only keys that are not stored.
//! - Inserting a key takes it out of the list. A refused insertion leaves it there.
//! - An excepted key cannot be removed or modified: its cells are those of stored keys.
//! - After a merge, an exception of one side is kept only if the other side rejects the key, too. Otherwise
//!   the other side may store it.
//!
//! Two keys of one digest are one key to the list, as they are to the cells. A stored key is rejected if its
//! digest is that of an excepted key: with `n` keys stored and `e` excepted, the probability is at most
//! `n * e / 2^64`.
//!
//! The list is an open hash table of twice as many slots as it has room for. Its memory is taken when the
//! caller gives it room. A structure without room pays one branch for each answer `true`, or for each batch.
//!
//! M. Mitzenmacher, S. Pontarelli, P. Reviriego: Adaptive cuckoo filters, ALENEX 2018 (arXiv 1704.06818).
//! That filter moves the cell that caused the false positive to another fingerprint, and needs the stored
//! keys for that. A list needs none, and works for every structure.

use crate::{Digest, Infeasible, Key, Malformed, Refused, Seed, saved};
use std::borrow::Cow;

/// The most exceptions that a list can have room for: 256 MiB.
const ROOM_MAX: u32 = 1 << 24;

/// A list of exceptions that no sequence of operations produces.
const MALFORMED: Malformed = Malformed::Field { name: "exceptions" };

/// A list of excepted digests. Without room, it takes 8 bytes.
#[derive(Debug, Default)]
pub(crate) struct Exceptions {
    table: Option<Box<Table>>,
}

/// An open hash table with linear probing. At least half of the slots are empty, so searches end.
#[derive(Debug)]
struct Table {
    /// Digests; 0 if the slot is empty.
    slots: Vec<u64>,
    stored: u64,
    /// Whether digest 0 is excepted, which no slot can hold.
    has_zero: bool,
}

impl Exceptions {
    /// These exceptions, with room for `room` in all.
    pub(crate) fn with_room(self, room: u32) -> Result<Self, Infeasible> {
        let stored = self.len();
        Infeasible::unless_within("room", room.into(), stored, ROOM_MAX.into())?;
        if room == 0 {
            return Ok(Exceptions::default());
        }
        let mut slots = Vec::new();
        let wanted = 2 * room as usize;
        let bytes = 8 * wanted as u64;
        slots.try_reserve_exact(wanted).map_err(|_| Infeasible::Memory { bytes })?;
        slots.resize(wanted, 0);
        let mut table = Box::new(Table { slots, stored: 0, has_zero: false });
        self.digests().for_each(|digest| table.add(digest));
        Ok(Exceptions { table: Some(table) })
    }

    pub(crate) fn try_clone(&self) -> Result<Self, Infeasible> {
        let mut copy = Exceptions::default().with_room(self.room())?;
        if let Some(table) = &mut copy.table {
            self.digests().for_each(|digest| table.add(digest));
        }
        Ok(copy)
    }

    /// The number of exceptions.
    pub(crate) fn len(&self) -> u64 {
        self.table.as_ref().map_or(0, |table| table.stored)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.table.as_ref().is_none_or(|table| table.stored == 0)
    }

    fn room(&self) -> u32 {
        self.table.as_ref().map_or(0, |table| table.slots.len() as u32 / 2)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.table.as_ref().map_or(0, |table| 8 * table.slots.len() as u64)
    }

    /// Whether the key is excepted.
    #[inline(always)]
    pub(crate) fn has(&self, digest: Digest) -> bool {
        match &self.table {
            Some(table) if table.stored > 0 => table.has(digest.0),
            _ => false,
        }
    }

    /// The index of the first excepted key.
    #[inline(always)]
    pub(crate) fn first_of<K: Key>(&self, seed: Seed, keys: &[K]) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        keys.iter().position(|key| self.has(key.digest(seed)))
    }

    /// Replaces other answers for excepted keys by `absent`.
    #[inline(always)]
    pub(crate) fn reject<K: Key, A: Copy + PartialEq>(
        &self,
        seed: Seed,
        keys: &[K],
        answers: &mut [A],
        absent: A,
    ) {
        if self.is_empty() {
            return;
        }
        for (key, answer) in keys.iter().zip(answers) {
            if *answer != absent && self.has(key.digest(seed)) {
                *answer = absent;
            }
        }
    }

    /// Excepts a key. On `Err`, nothing has changed.
    pub(crate) fn add(&mut self, digest: Digest) -> Result<(), Refused> {
        let (stored, cells) = (self.len(), self.room().into());
        match &mut self.table {
            Some(table) if table.has(digest.0) => Ok(()),
            Some(table) if stored < cells => {
                table.add(digest.0);
                Ok(())
            }
            _ => Err(Refused::Full { stored, cells }),
        }
    }

    /// Takes a key out of the list, if it is excepted.
    #[inline(always)]
    pub(crate) fn take_out(&mut self, digest: Digest) {
        if let Some(table) = &mut self.table
            && table.stored > 0
        {
            table.take_out(digest.0);
        }
    }

    /// Takes out every exception; the room stays.
    pub(crate) fn clear(&mut self) {
        if let Some(table) = &mut self.table {
            table.clear();
        }
    }

    /// The exceptions that hold after a merge, or a refusal if there is no room for them. The two
    /// functions say whether a side passes a digest.
    pub(crate) fn after_merge(
        &self,
        other: &Self,
        passes: impl Fn(Digest) -> bool,
        other_passes: impl Fn(Digest) -> bool,
    ) -> Result<Vec<u64>, Refused> {
        let own = self.digests().filter(|&digest| !other_passes(Digest(digest)));
        let others = other.digests().filter(|&digest| !passes(Digest(digest)));
        let mut kept: Vec<u64> = own.chain(others).collect();
        kept.sort_unstable();
        kept.dedup();
        let (stored, cells) = (kept.len() as u64, self.room().into());
        if stored > cells {
            return Err(Refused::Full { stored, cells });
        }
        Ok(kept)
    }

    /// Replaces all exceptions by others, for which [`after_merge`](Self::after_merge) found room.
    pub(crate) fn replace(&mut self, digests: Vec<u64>) {
        if let Some(table) = &mut self.table {
            table.clear();
            digests.into_iter().for_each(|digest| table.add(digest));
        }
    }

    /// Keeps the exceptions that another structure does not pass.
    pub(crate) fn retain(&mut self, other_passes: impl Fn(Digest) -> bool) {
        let kept = self.digests().filter(|&digest| !other_passes(Digest(digest))).collect();
        self.replace(kept);
    }

    fn digests(&self) -> impl Iterator<Item = u64> + '_ {
        self.table.iter().flat_map(|table| table.digests())
    }

    /// The image of a structure, with its exceptions if it has room for any.
    pub(crate) fn join(&self, image: Vec<u8>) -> Vec<u8> {
        if self.table.is_none() {
            return image;
        }
        let mut digests: Vec<u64> = self.digests().collect();
        digests.sort_unstable();
        let mut part = Vec::with_capacity(8 + self.memory_bytes() as usize);
        part.extend(self.len().to_le_bytes());
        part.extend(digests.iter().flat_map(|digest| digest.to_le_bytes()));
        part.resize(8 + self.memory_bytes() as usize, 0);
        saved::append(&image, self.room(), &part)
    }

    /// The image of a structure without its exceptions, and the exceptions.
    pub(crate) fn split(image: &[u8]) -> Result<(Cow<'_, [u8]>, Self), Malformed> {
        let Some(room) = saved::room(image)? else {
            return Ok((Cow::Borrowed(image), Exceptions::default()));
        };
        if room > ROOM_MAX {
            return Err(MALFORMED);
        }
        let (image, part) = saved::detach(image, 8 + 16 * room as usize)?;
        let (words, _) = part.as_chunks::<8>();
        let [stored, words @ ..] = words else { return Err(MALFORMED) };
        let stored = u64::from_le_bytes(*stored);
        if stored > room.into() {
            return Err(MALFORMED);
        }
        let (digests, rest) = words.split_at(stored as usize);
        let digest = |word: &[u8; 8]| u64::from_le_bytes(*word);
        let ascending = digests.is_sorted_by(|a, b| digest(a) < digest(b));
        if !ascending || rest.iter().any(|word| digest(word) != 0) {
            return Err(MALFORMED);
        }
        // Not more memory than the part has bytes.
        let mut exceptions = Exceptions::default().with_room(room)?;
        exceptions.replace(digests.iter().map(digest).collect());
        Ok((Cow::Owned(image), exceptions))
    }
}

impl Table {
    /// The slot where the search for a digest begins.
    fn start(&self, digest: u64) -> usize {
        ((u128::from(digest) * self.slots.len() as u128) >> 64) as usize
    }

    /// The slot of the digest, or the empty slot where the search for it ends.
    fn slot(&self, digest: u64) -> usize {
        let mut slot = self.start(digest);
        while self.slots[slot] != digest && self.slots[slot] != 0 {
            slot = self.after(slot);
        }
        slot
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    /// Whether the digest is in the table. A separate function, because most sets have no exceptions.
    #[cold]
    #[inline(never)]
    fn has(&self, digest: u64) -> bool {
        if digest == 0 { self.has_zero } else { self.slots[self.slot(digest)] == digest }
    }

    /// Adds a digest that is not in the table.
    fn add(&mut self, digest: u64) {
        if digest == 0 {
            self.has_zero = true;
        } else {
            let slot = self.slot(digest);
            self.slots[slot] = digest;
        }
        self.stored += 1;
    }

    fn take_out(&mut self, digest: u64) {
        if !self.has(digest) {
            return;
        }
        self.stored -= 1;
        if digest == 0 {
            self.has_zero = false;
            return;
        }
        // Later digests move forward, so that no search for them ends at the empty slot.
        let mut empty = self.slot(digest);
        self.slots[empty] = 0;
        let mut slot = self.after(empty);
        while self.slots[slot] != 0 {
            let moving = self.slots[slot];
            self.slots[slot] = 0;
            empty = self.slot(moving);
            self.slots[empty] = moving;
            slot = self.after(slot);
        }
    }

    fn clear(&mut self) {
        self.slots.fill(0);
        (self.stored, self.has_zero) = (0, false);
    }

    fn digests(&self) -> impl Iterator<Item = u64> + '_ {
        let zero = self.has_zero.then_some(0);
        zero.into_iter().chain(self.slots.iter().copied().filter(|&digest| digest != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn the_list_is_a_set_of_bounded_size() {
        let mut rng = Rng::seeded(1);
        for room in [1u32, 2, 3, 10, 50] {
            let mut list = Exceptions::default().with_room(room).unwrap();
            let mut twin = BTreeSet::new();
            for _ in 0..20_000 {
                // Digests that begin their search at few slots, and digest 0.
                let digest = rng.below(8) << 61 | rng.below(u64::from(room));
                if rng.chance(0.5) {
                    let fits = twin.contains(&digest) || twin.len() < room as usize;
                    assert_eq!(list.add(Digest(digest)).is_ok(), fits);
                    if fits {
                        twin.insert(digest);
                    }
                } else {
                    list.take_out(Digest(digest));
                    twin.remove(&digest);
                }
                assert_eq!(list.len(), twin.len() as u64);
                assert!(list.digests().all(|digest| list.has(Digest(digest))));
                assert_eq!(list.digests().collect::<BTreeSet<_>>(), twin);
            }
        }
    }

    #[test]
    fn room_can_change_and_is_checked() {
        let mut list = Exceptions::default();
        assert_eq!(list.add(Digest(7)), Err(Refused::Full { stored: 0, cells: 0 }));
        list = list.with_room(2).unwrap();
        list.add(Digest(7)).unwrap();
        list.add(Digest(0)).unwrap();
        assert_eq!(list.add(Digest(9)), Err(Refused::Full { stored: 2, cells: 2 }));
        list = list.with_room(3).unwrap();
        list.add(Digest(9)).unwrap();
        assert!([0, 7, 9].iter().all(|&digest| list.has(Digest(digest))));
        assert_eq!(list.memory_bytes(), 48);
        assert!(list.with_room(2).is_err());
        assert!(Exceptions::default().with_room(ROOM_MAX + 1).is_err());
    }
}
