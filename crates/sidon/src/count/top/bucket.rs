//! One bucket: the layout of its bytes, and the operations on it.

use super::{AMOUNTS_MAX, Bounds, Stored};
use crate::{
    Digest,
    simd::{Isa, LINE},
};

/// Entries of a bucket.
pub(super) const ENTRIES: usize = 8;
/// Bytes of a bucket's tags.
pub(super) const TAGS: usize = 2 * ENTRIES;
/// Bytes of eight counts.
const COUNTS: usize = 8 * ENTRIES;

/// The layout of a bucket. First the tags, the upper bounds of keys without an entry, and the first
/// amounts, by which entries are evicted. Then for each entry the other amounts, the missed amounts
/// and the key, padded to a whole cache line.
///
/// All methods take the bytes of one bucket, [`bytes`](Self::bytes) of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    pub(super) key: usize,
    pub(super) amounts: usize,
}

impl Bucket {
    #[inline(always)]
    const fn first(self) -> usize {
        TAGS + 8 * self.amounts
    }
    #[inline(always)]
    pub(super) const fn head(self) -> usize {
        self.first() + COUNTS
    }
    /// Bytes from one entry to the next: a whole line if the entry nearly fills it.
    #[inline(always)]
    pub(super) const fn stride(self) -> usize {
        let needed = 8 * (2 * self.amounts - 1) + self.key;
        let lines = needed.next_multiple_of(LINE);
        if lines - needed <= LINE / 16 { lines } else { needed }
    }
    #[inline(always)]
    pub(super) const fn entry(self, entry: usize) -> usize {
        let start = if self.stride().is_multiple_of(LINE) {
            self.head().next_multiple_of(LINE)
        } else {
            self.head()
        };
        start + entry * self.stride()
    }
    #[inline(always)]
    pub(super) const fn most(self, amount: usize, entry: usize) -> usize {
        if amount == 0 { self.first() + 8 * entry } else { self.entry(entry) + 8 * (amount - 1) }
    }
    #[inline(always)]
    pub(super) const fn missed(self, amount: usize, entry: usize) -> usize {
        self.entry(entry) + 8 * (self.amounts - 1 + amount)
    }
    #[inline(always)]
    pub(super) const fn key(self, entry: usize) -> usize {
        self.missed(self.amounts, entry)
    }
    #[inline(always)]
    pub(super) const fn bytes(self) -> usize {
        self.entry(ENTRIES).next_multiple_of(LINE)
    }
}

/// The tag of a key in its bucket. It is never that of an empty entry.
#[inline(always)]
pub(super) fn tag_of(digest: Digest) -> u16 {
    (digest.0 as u16).max(1)
}

#[inline(always)]
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes[at..].first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => unreachable!("every count is whole"),
    }
}

#[inline(always)]
pub(super) fn set_word(bytes: &mut [u8], at: usize, word: u64) {
    match bytes[at..].first_chunk_mut() {
        Some(bytes) => *bytes = word.to_le_bytes(),
        None => unreachable!("every count is whole"),
    }
}

impl Bucket {
    /// The entries that have this tag, as a mask.
    #[inline(always)]
    pub(super) fn tagged<I: Isa>(self, isa: I, bytes: &[u8], tag: u16) -> u64 {
        match bytes.first_chunk::<TAGS>() {
            Some(tags) => isa.matches::<2, TAGS>(tags, tag.into(), 0),
            None => unreachable!("every bucket is whole"),
        }
    }

    /// The entries that hold a key.
    pub(super) fn taken(self, bytes: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let free = self.tagged(crate::simd::Portable, bytes, 0);
        (0..ENTRIES).filter(move |entry| free >> entry & 1 == 0)
    }

    /// The bytes of an entry's key.
    #[inline(always)]
    pub(super) fn key_of(self, bytes: &[u8], entry: usize) -> &[u8] {
        &bytes[self.key(entry)..][..self.key]
    }

    /// The key's entry.
    #[inline(always)]
    pub(super) fn find<I: Isa, K: Stored>(
        self,
        isa: I,
        bytes: &[u8],
        tag: u16,
        key: &K,
    ) -> Option<usize> {
        let mut tagged = self.tagged(isa, bytes, tag);
        while tagged != 0 {
            let entry = tagged.trailing_zeros() as usize % ENTRIES;
            if key.is(self.key_of(bytes, entry)) {
                return Some(entry);
            }
            tagged &= tagged - 1;
        }
        None
    }

    /// The bounds of an entry's key.
    #[inline(always)]
    pub(super) fn bounds<const A: usize>(self, bytes: &[u8], entry: usize) -> [Bounds; A] {
        let mut bounds = [Bounds::default(); A];
        for (amount, bounds) in bounds.iter_mut().enumerate() {
            let most = word(bytes, self.most(amount, entry));
            let missed = word(bytes, self.missed(amount, entry));
            *bounds = Bounds { least: most - missed, most };
        }
        bounds
    }

    /// Adds to the amounts of an entry's key. A sum stops at [`CEILING`](super::CEILING).
    #[inline(always)]
    pub(super) fn add<const A: usize>(self, bytes: &mut [u8], entry: usize, amounts: [u64; A]) {
        const { assert!(A <= AMOUNTS_MAX) };
        for (amount, add) in amounts.into_iter().enumerate() {
            let at = self.most(amount, entry);
            set_word(bytes, at, word(bytes, at).saturating_add(add));
        }
    }

    /// The upper bounds for any key without an entry.
    #[inline(always)]
    pub(super) fn turned_away<const A: usize>(self, bytes: &[u8]) -> [u64; A] {
        let mut most = [0; A];
        for (amount, most) in most.iter_mut().enumerate() {
            *most = word(bytes, TAGS + 8 * amount);
        }
        most
    }

    /// Raises the upper bounds for keys without an entry to `most`.
    #[inline(always)]
    pub(super) fn turn_away<const A: usize>(self, bytes: &mut [u8], most: [u64; A]) {
        for (amount, most) in most.into_iter().enumerate() {
            let at = TAGS + 8 * amount;
            set_word(bytes, at, word(bytes, at).max(most));
        }
    }

    /// The first entry with the smallest first amount, and that amount.
    #[inline(always)]
    pub(super) fn lightest(self, bytes: &[u8]) -> (usize, u64) {
        let counts = &bytes[self.first()..][..COUNTS];
        let (mut lightest, mut least) = (0, u64::MAX);
        for (entry, count) in counts.as_chunks::<8>().0.iter().enumerate() {
            let count = u64::from_le_bytes(*count);
            if count < least {
                (lightest, least) = (entry, count);
            }
        }
        (lightest, least)
    }

    /// Writes an entry.
    #[inline(always)]
    pub(super) fn write<K: Stored, const A: usize>(
        self,
        bytes: &mut [u8],
        entry: usize,
        tag: u16,
        key: &K,
        [most, missed]: [[u64; A]; 2],
    ) {
        bytes[2 * entry..2 * entry + 2].copy_from_slice(&tag.to_le_bytes());
        for amount in 0..A {
            set_word(bytes, self.most(amount, entry), most[amount]);
            set_word(bytes, self.missed(amount, entry), missed[amount]);
        }
        key.write(&mut bytes[self.key(entry)..][..self.key]);
    }
}
