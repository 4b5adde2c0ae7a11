//! A fixed table of keys with a few bytes each. A key is in one of two buckets of eight entries.
//!
//! ```text
//! bucket | 8 tags of 16 bits, 0 if empty | 8 x (key, value) | zeros to a whole cache line |
//! ```
//! A new key takes the first empty entry of its emptier bucket, so a table fills to seven tenths before a key
//! finds no entry. The owner of the table decides which entry it then replaces. Every operation reads two
//! buckets, however full the table is. The buckets follow from the keyed digest, so nobody without the seed
//! can fill the buckets of a chosen key.

use crate::{
    Digest, Infeasible, Seed,
    count::Stored,
    key::spread,
    memory::Memory,
    simd::{self, Isa, LINE},
};
use std::marker::PhantomData;

/// Entries of a bucket.
pub(crate) const ENTRIES: usize = 8;
/// Bytes of a bucket's tags.
const TAGS: usize = 2 * ENTRIES;
/// The most bytes of a key.
const KEY_MAX: u64 = 1 << 16;

/// The bytes of a table, or the parameter that no table can have.
pub(crate) fn bytes(buckets: u64, key: usize, value: usize) -> Result<u64, Infeasible> {
    Infeasible::unless_within("buckets", buckets, 1, 1 << 40)?;
    Infeasible::unless_within("key_bytes", key as u64, 1, KEY_MAX)?;
    Ok(buckets * bucket_bytes(key, value) as u64)
}

/// The bytes of a bucket.
pub(crate) const fn bucket_bytes(key: usize, value: usize) -> usize {
    (TAGS + ENTRIES * (key + value)).next_multiple_of(LINE)
}

/// The table. Values have `V` bytes.
#[derive(Debug)]
pub(crate) struct Keyed<K, const V: usize> {
    memory: Memory,
    buckets: u64,
    key: PhantomData<K>,
}

/// An entry of a table: the offset of its bucket, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    bucket: usize,
    entry: usize,
}

impl<K: Stored, const V: usize> Keyed<K, V> {
    const BUCKET: usize = bucket_bytes(K::BYTES, V);

    /// An empty table.
    pub(crate) fn new(buckets: u64) -> Result<Self, Infeasible> {
        let memory = Memory::zeroed(bytes(buckets, K::BYTES, V)?)?;
        Ok(Keyed { memory, buckets, key: PhantomData })
    }

    /// The key's entry.
    #[inline]
    pub(crate) fn find(&self, digest: Digest, key: &K) -> Option<Slot> {
        let tag = tag_of(digest);
        self.buckets_of(digest).into_iter().find_map(|bucket| {
            let mut tagged = self.tagged(bucket, tag);
            while tagged != 0 {
                let slot = Slot { bucket, entry: tagged.trailing_zeros() as usize % ENTRIES };
                if key.is(self.key_bytes(slot)) {
                    return Some(slot);
                }
                tagged &= tagged - 1;
            }
            None
        })
    }

    /// The entry that a new key of this digest takes, if one is empty.
    pub(crate) fn vacant(&self, digest: Digest) -> Option<Slot> {
        let [first, second] =
            self.buckets_of(digest).map(|bucket| (bucket, self.tagged(bucket, 0)));
        let more = second.1.count_ones() > first.1.count_ones();
        let (bucket, empty) = if more { second } else { first };
        (empty != 0).then(|| Slot { bucket, entry: empty.trailing_zeros() as usize % ENTRIES })
    }

    /// The entries in use of the two buckets of this digest.
    pub(crate) fn rivals(&self, digest: Digest) -> impl Iterator<Item = Slot> + use<'_, K, V> {
        self.buckets_of(digest).into_iter().flat_map(|bucket| self.taken(bucket))
    }

    /// All entries in use, in the order of the buckets.
    pub(crate) fn all(&self) -> impl Iterator<Item = Slot> + use<'_, K, V> {
        (0..self.buckets as usize).flat_map(|bucket| self.taken(bucket * Self::BUCKET))
    }

    /// The key of an entry in use.
    pub(crate) fn key(&self, slot: Slot) -> K {
        K::read(self.key_bytes(slot))
    }

    /// The value of an entry in use.
    #[inline]
    pub(crate) fn value(&self, slot: Slot) -> &[u8; V] {
        match self.memory.bytes()[Self::value_at(slot)..].first_chunk() {
            Some(value) => value,
            None => unreachable!("every bucket is whole"),
        }
    }

    /// Sets the value of an entry in use.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, value: [u8; V]) {
        self.memory.bytes_mut()[Self::value_at(slot)..][..V].copy_from_slice(&value);
    }

    /// Writes a key and its value into an entry.
    pub(crate) fn write(&mut self, slot: Slot, digest: Digest, key: &K, value: [u8; V]) {
        let Slot { bucket, entry } = slot;
        let bytes = self.memory.bytes_mut();
        bytes[bucket + 2 * entry..][..2].copy_from_slice(&tag_of(digest).to_le_bytes());
        key.write(&mut bytes[Self::value_at(slot) - K::BYTES..][..K::BYTES]);
        self.set(slot, value);
    }

    /// Empties an entry.
    pub(crate) fn empty(&mut self, slot: Slot) {
        let bytes = self.memory.bytes_mut();
        bytes[slot.bucket + 2 * slot.entry..][..2].fill(0);
        bytes[Self::value_at(slot) - K::BYTES..][..K::BYTES + V].fill(0);
    }

    /// Empties all entries.
    pub(crate) fn clear(&mut self) {
        self.memory.bytes_mut().fill(0);
    }

    /// The bytes of all buckets.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// An independent copy.
    pub(crate) fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Keyed { memory: self.memory.try_clone()?, buckets: self.buckets, key: PhantomData })
    }

    /// The table of these bytes, if operations can produce it. Each key is stored once, in one of its two
    /// buckets, with its tag and a value that `is_value`. All other bytes are zero. The length must be right.
    pub(crate) fn from_bytes(
        buckets: u64,
        seed: Seed,
        bytes: &[u8],
        is_value: impl Fn(&[u8; V]) -> bool,
    ) -> Result<Option<Self>, Infeasible> {
        let mut table = Self::new(buckets)?;
        table.memory.bytes_mut().copy_from_slice(bytes);
        let mut again = vec![0; Self::BUCKET];
        for bucket in (0..buckets as usize).map(|bucket| bucket * Self::BUCKET) {
            again.fill(0);
            for slot in table.taken(bucket) {
                let (key, value) = (table.key(slot), table.value(slot));
                let digest = key.digest(seed);
                if table.find(digest, &key) != Some(slot) || !is_value(value) {
                    return Ok(None);
                }
                again[2 * slot.entry..][..2].copy_from_slice(&tag_of(digest).to_le_bytes());
                let at = Self::value_at(slot) - bucket;
                key.write(&mut again[at - K::BYTES..at]);
                again[at..at + V].copy_from_slice(value);
            }
            if again != table.memory.bytes()[bucket..][..Self::BUCKET] {
                return Ok(None);
            }
        }
        Ok(Some(table))
    }

    /// The offsets of the two buckets of a digest. They may be equal.
    #[inline(always)]
    fn buckets_of(&self, digest: Digest) -> [usize; 2] {
        [0, 1].map(|i| spread::position(digest, i, self.buckets) as usize * Self::BUCKET)
    }

    /// The entries of a bucket that have this tag, as a mask.
    #[inline(always)]
    fn tagged(&self, bucket: usize, tag: u16) -> u64 {
        match self.memory.bytes()[bucket..].first_chunk::<TAGS>() {
            Some(tags) => simd::BASE.matches::<2, TAGS>(tags, tag.into(), 0),
            None => unreachable!("every bucket is whole"),
        }
    }

    fn taken(&self, bucket: usize) -> impl Iterator<Item = Slot> + use<K, V> {
        let empty = self.tagged(bucket, 0);
        let taken = (0..ENTRIES).filter(move |entry| empty >> entry & 1 == 0);
        taken.map(move |entry| Slot { bucket, entry })
    }

    #[inline(always)]
    fn key_bytes(&self, slot: Slot) -> &[u8] {
        &self.memory.bytes()[Self::value_at(slot) - K::BYTES..][..K::BYTES]
    }

    /// The offset of an entry's value. Its key is in front of it.
    #[inline(always)]
    fn value_at(Slot { bucket, entry }: Slot) -> usize {
        bucket + TAGS + entry * (K::BYTES + V) + K::BYTES
    }
}

/// The tag of a digest. It is never that of an empty entry.
#[inline(always)]
fn tag_of(digest: Digest) -> u16 {
    (digest.0 as u16).max(1)
}

/// The buckets for `keys` keys at a time: seven tenths of the entries, and a few more for small tables. Fewer
/// than one key in a million then finds both buckets full; at four fifths, it is one in 5,000.
pub(crate) fn planned_buckets(keys: u64) -> u64 {
    let entries = keys.saturating_add(keys / 7 * 3).saturating_add(24);
    entries.div_ceil(ENTRIES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use sidon_kit::Keys;

    #[test]
    fn a_planned_table_has_an_entry_for_every_key() {
        for keys in [1, 10, 100, 1_000, 30_000, 1_000_000] {
            let mut table = Keyed::<u64, 1>::new(planned_buckets(keys)).unwrap();
            let mut lost = 0;
            for key in Keys::seeded(keys).take(keys as usize) {
                let digest = key.digest(Seed(7));
                assert_eq!(table.find(digest, &key), None);
                match table.vacant(digest) {
                    Some(slot) => table.write(slot, digest, &key, [1]),
                    None => lost += 1,
                }
            }
            assert_eq!((lost, table.all().count() as u64), (0, keys));
        }
    }

    #[test]
    fn a_key_is_found_until_its_entry_is_emptied() {
        let mut table = Keyed::<u32, 3>::new(2).unwrap();
        let digest = |key: &u32| key.digest(Seed(1));
        for key in 0..8u32 {
            let slot = table.vacant(digest(&key)).unwrap();
            table.write(slot, digest(&key), &key, [key as u8, 0, 1]);
        }
        for key in 0..8u32 {
            let slot = table.find(digest(&key), &key).unwrap();
            assert_eq!((table.key(slot), table.value(slot)), (key, &[key as u8, 0, 1]));
            assert!(table.rivals(digest(&key)).any(|rival| rival == slot));
            table.empty(slot);
            assert_eq!(table.find(digest(&key), &key), None);
        }
        assert!(table.bytes().iter().all(|&byte| byte == 0));
    }
}
