//! One bucket: the layout of its bytes, and the operations on it.
//!
//! Amounts are stored in sixteenths, so that four halvings of a whole number are exact. A halving that is
//! not exact rounds up, and the rounding of the entry says by how much its kept amounts may be too high.

use super::prefix;
use crate::{
    Digest, Key, Seed,
    key::Hasher,
    simd::{Isa, LINE, Portable},
};

/// Entries of a bucket.
pub(super) const ENTRIES: usize = 8;
/// Bytes of a bucket's tags.
const TAGS: usize = 2 * ENTRIES;
/// Bytes of the number of halvings that a bucket has had.
const HALVINGS: usize = 8;
/// Bytes of the first amounts.
const FIRST: usize = 8 * ENTRIES;
/// Bytes of a key.
const KEY: usize = 16;

/// The binary digits after the point of a stored amount.
const DIGITS: u32 = 4;
/// The largest sum of amounts, in whole units. Sums of a table stay below [`LIMIT`] by a factor of two,
/// far more than rounding can add.
pub(crate) const CEILING: u64 = (1 << 58) - 1;
/// No table whose sums exceed this number of parts is read or merged. Additions at most double it, so
/// no sum exceeds an integer.
pub(super) const LIMIT: u64 = 1 << 63;

/// An amount in parts. The caller has checked that it is at most [`CEILING`].
#[inline(always)]
pub(super) const fn parts(units: u64) -> u64 {
    units << DIGITS
}

/// The whole units of some parts, rounded down.
pub(super) const fn floor(parts: u64) -> u64 {
    parts >> DIGITS
}

/// The whole units of some parts, rounded up.
pub(super) const fn ceil(parts: u64) -> u64 {
    halved(parts, DIGITS as u64)
}

/// An amount after some halvings, rounded up.
#[inline(always)]
pub(super) const fn halved(parts: u64, times: u64) -> u64 {
    if times >= 64 {
        return (parts > 0) as u64;
    }
    (parts >> times) + (parts & ((1 << times) - 1) != 0) as u64
}

/// A prefix and the part of its amounts that one entry holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<const A: usize> {
    /// The first bits, as a number.
    pub(super) key: u128,
    /// The amounts, not too low.
    pub(super) kept: [u64; A],
    /// The most by which each of them is too high.
    pub(super) rounding: u64,
}

impl<const A: usize> Item<A> {
    pub(super) const NONE: Self = Item { key: 0, kept: [0; A], rounding: 0 };

    /// The prefix of the next level that contains this one, with the same amounts.
    #[inline(always)]
    pub(super) fn above(self, level: usize) -> Self {
        Item { key: prefix::at_level(self.key, level), ..self }
    }

    /// The item after `times` halvings.
    #[inline(always)]
    pub(super) fn halved(self, times: u64) -> Self {
        let inexact = |kept: u64| times > 0 && u64::from(kept.trailing_zeros()) < times.min(64);
        // Rounding up adds less than one part, so a rounding of one part stays at one.
        let rounding = if self.kept.into_iter().any(inexact) {
            halved(self.rounding.saturating_sub(1), times).saturating_add(1)
        } else {
            halved(self.rounding, times)
        };
        Item { kept: self.kept.map(|kept| halved(kept, times)), rounding, ..self }
    }

    /// Adds the amounts of another item.
    #[inline(always)]
    pub(super) fn join(&mut self, other: &Self) {
        for (kept, more) in self.kept.iter_mut().zip(other.kept) {
            *kept = kept.saturating_add(more);
        }
        self.rounding = self.rounding.saturating_add(other.rounding);
    }
}

/// The digest of a prefix is that of its 16 bytes in network order.
impl<const A: usize> Key for Item<A> {
    #[inline(always)]
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
        hasher.digest(&self.key.to_be_bytes())
    }
}

/// The digest of a prefix under a seed.
pub(super) fn digest(key: u128, seed: Seed) -> Digest {
    key.to_be_bytes().digest(seed)
}

/// An entry after the halvings that its bucket has not yet had.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<const A: usize> {
    pub(super) item: Item<A>,
    /// The most that was added to the prefix at this level while it had no entry.
    pub(super) missed: [u64; A],
}

/// The layout of a bucket. First the tags, the number of halvings, the upper bounds of prefixes without
/// an entry, and the upper bounds of the entries' first amounts, by which entries are evicted. Then
/// for each entry the upper bounds of the other amounts, the missed amounts, the rounding and the key.
/// With three amounts, an entry is a cache line.
///
/// All functions take the bytes of one bucket, [`BYTES`](Self::BYTES) of them.
pub(super) struct Bucket<const A: usize>;

impl<const A: usize> Bucket<A> {
    const AWAY: usize = TAGS + HALVINGS;
    const MOST: usize = Self::AWAY + 8 * A;
    /// Bytes before the entries.
    pub(super) const HEAD: usize = Self::MOST + FIRST;
    /// Bytes from one entry to the next: a whole line if the entry nearly fills it.
    pub(super) const STRIDE: usize = {
        let needed = 8 * (2 * A - 1) + 8 + KEY;
        let lines = needed.next_multiple_of(LINE);
        if lines - needed <= LINE / 16 { lines } else { needed }
    };
    const ENTRIES_AT: usize = if Self::STRIDE.is_multiple_of(LINE) {
        Self::HEAD.next_multiple_of(LINE)
    } else {
        Self::HEAD
    };
    pub(super) const BYTES: usize = Self::entry_at(ENTRIES).next_multiple_of(LINE);

    /// The offset of an entry.
    #[inline(always)]
    pub(super) const fn entry_at(entry: usize) -> usize {
        Self::ENTRIES_AT + entry * Self::STRIDE
    }
    #[inline(always)]
    const fn most_at(amount: usize, entry: usize) -> usize {
        if amount == 0 { Self::MOST + 8 * entry } else { Self::entry_at(entry) + 8 * (amount - 1) }
    }
    #[inline(always)]
    const fn missed_at(amount: usize, entry: usize) -> usize {
        Self::entry_at(entry) + 8 * (A - 1 + amount)
    }
    #[inline(always)]
    const fn rounding_at(entry: usize) -> usize {
        Self::missed_at(A, entry)
    }
    #[inline(always)]
    const fn key_at(entry: usize) -> usize {
        Self::rounding_at(entry) + 8
    }
}

/// The tag of a prefix in its bucket. It is never that of an empty entry.
#[inline(always)]
pub(super) fn tag_of(digest: Digest) -> u16 {
    (digest.0 as u16).max(1)
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes[at..].first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => unreachable!("every amount is whole"),
    }
}

#[inline(always)]
fn set_word(bytes: &mut [u8], at: usize, word: u64) {
    match bytes[at..].first_chunk_mut() {
        Some(bytes) => *bytes = word.to_le_bytes(),
        None => unreachable!("every amount is whole"),
    }
}

impl<const A: usize> Bucket<A> {
    /// The entries that have this tag, as a mask.
    #[inline(always)]
    pub(super) fn tagged<I: Isa>(isa: I, bytes: &[u8], tag: u16) -> u64 {
        match bytes.first_chunk::<TAGS>() {
            Some(tags) => isa.matches::<2, TAGS>(tags, tag.into(), 0),
            None => unreachable!("every bucket is whole"),
        }
    }

    /// The entries that hold a prefix.
    pub(super) fn taken(bytes: &[u8]) -> impl Iterator<Item = usize> + use<A> {
        let free = Self::tagged(Portable, bytes, 0);
        (0..ENTRIES).filter(move |entry| free >> entry & 1 == 0)
    }

    #[inline(always)]
    fn key(bytes: &[u8], entry: usize) -> u128 {
        match bytes[Self::key_at(entry)..].first_chunk() {
            Some(key) => u128::from_be_bytes(*key),
            None => unreachable!("every key is whole"),
        }
    }

    /// The prefix's entry.
    #[inline(always)]
    pub(super) fn find<I: Isa>(isa: I, bytes: &[u8], tag: u16, key: u128) -> Option<usize> {
        let mut tagged = Self::tagged(isa, bytes, tag);
        while tagged != 0 {
            let entry = tagged.trailing_zeros() as usize % ENTRIES;
            if Self::key(bytes, entry) == key {
                return Some(entry);
            }
            tagged &= tagged - 1;
        }
        None
    }

    /// The number of halvings that a bucket still needs, of the `halvings` that the table had.
    #[inline(always)]
    pub(super) fn due(bytes: &[u8], halvings: u64) -> u64 {
        halvings - word(bytes, TAGS)
    }

    /// The upper bounds of the amounts that were added at this level to a prefix without an entry,
    /// after `due` halvings.
    #[inline(always)]
    pub(super) fn away(bytes: &[u8], due: u64) -> [u64; A] {
        std::array::from_fn(|amount| halved(word(bytes, Self::AWAY + 8 * amount), due))
    }

    /// An entry after `due` halvings.
    #[inline(always)]
    pub(super) fn entry(bytes: &[u8], entry: usize, due: u64) -> Entry<A> {
        let missed = std::array::from_fn(|amount| word(bytes, Self::missed_at(amount, entry)));
        let item = Item {
            key: Self::key(bytes, entry),
            kept: std::array::from_fn(|amount| {
                word(bytes, Self::most_at(amount, entry)) - missed[amount]
            }),
            rounding: word(bytes, Self::rounding_at(entry)),
        };
        let after = |missed: [u64; A]| missed.map(|missed| halved(missed, due));
        Entry { item: item.halved(due), missed: after(missed) }
    }

    /// Halves the amounts of the bucket as often as those of the table have been.
    #[inline(always)]
    pub(super) fn catch_up(bytes: &mut [u8], halvings: u64) {
        if word(bytes, TAGS) != halvings {
            Self::halve(bytes, halvings);
        }
    }

    #[cold]
    fn halve(bytes: &mut [u8], halvings: u64) {
        let due = Self::due(bytes, halvings);
        let away = Self::away(bytes, due);
        for entry in Self::taken(bytes) {
            let halved = Self::entry(bytes, entry, due);
            Self::write_amounts(bytes, entry, &halved);
        }
        set_word(bytes, TAGS, halvings);
        Self::set_away(bytes, away);
    }

    /// Removes all entries of a bucket that has had all halvings, and sets the upper bounds.
    pub(super) fn empty(bytes: &mut [u8], away: [u64; A]) {
        let halvings = word(bytes, TAGS);
        bytes.fill(0);
        set_word(bytes, TAGS, halvings);
        Self::set_away(bytes, away);
    }

    fn set_away(bytes: &mut [u8], away: [u64; A]) {
        for (amount, away) in away.into_iter().enumerate() {
            set_word(bytes, Self::AWAY + 8 * amount, away);
        }
    }

    #[inline(always)]
    fn write_amounts(bytes: &mut [u8], entry: usize, of: &Entry<A>) {
        for amount in 0..A {
            let most = of.item.kept[amount].saturating_add(of.missed[amount]);
            set_word(bytes, Self::most_at(amount, entry), most);
            // A bound at its ceiling reduces what counts as missed, never what is kept.
            set_word(bytes, Self::missed_at(amount, entry), most - of.item.kept[amount]);
        }
        set_word(bytes, Self::rounding_at(entry), of.item.rounding);
    }

    /// Writes an entry.
    #[inline(always)]
    pub(super) fn write(bytes: &mut [u8], entry: usize, tag: u16, of: &Entry<A>) {
        bytes[2 * entry..2 * entry + 2].copy_from_slice(&tag.to_le_bytes());
        Self::write_amounts(bytes, entry, of);
        bytes[Self::key_at(entry)..][..KEY].copy_from_slice(&of.item.key.to_be_bytes());
    }

    /// The first entry with the smallest first amount.
    #[inline(always)]
    fn lightest(bytes: &[u8]) -> usize {
        let counts = &bytes[Self::MOST..][..FIRST];
        let (mut lightest, mut least) = (0, u64::MAX);
        for (entry, count) in counts.as_chunks::<8>().0.iter().enumerate() {
            let count = u64::from_le_bytes(*count);
            if count < least {
                (lightest, least) = (entry, count);
            }
        }
        lightest
    }

    /// Adds an item to a bucket that has had all halvings. If no entry is free, the lightest one
    /// makes room and is returned.
    #[inline(always)]
    pub(super) fn put<I: Isa>(
        isa: I,
        bytes: &mut [u8],
        tag: u16,
        item: &Item<A>,
    ) -> Option<Item<A>> {
        if let Some(entry) = Self::find(isa, bytes, tag, item.key) {
            for (amount, more) in item.kept.into_iter().enumerate() {
                let at = Self::most_at(amount, entry);
                set_word(bytes, at, word(bytes, at).saturating_add(more));
            }
            if item.rounding > 0 {
                let at = Self::rounding_at(entry);
                set_word(bytes, at, word(bytes, at).saturating_add(item.rounding));
            }
            return None;
        }
        let free = Self::tagged(isa, bytes, 0);
        if free != 0 {
            let entry = free.trailing_zeros() as usize % ENTRIES;
            let missed = Self::away(bytes, 0);
            Self::write(bytes, entry, tag, &Entry { item: *item, missed });
            return None;
        }
        let entry = Self::lightest(bytes);
        let evicted = Self::entry(bytes, entry, 0);
        let missed = Self::reject(bytes, &evicted);
        Self::write(bytes, entry, tag, &Entry { item: *item, missed });
        Some(evicted.item)
    }

    /// The largest upper bound of any amount.
    pub(super) fn largest(bytes: &[u8]) -> u64 {
        let most = |entry| {
            let of = Self::entry(bytes, entry, 0);
            (0..A).map(move |amount| of.item.kept[amount].saturating_add(of.missed[amount]))
        };
        Self::away(bytes, 0).into_iter().chain(Self::taken(bytes).flat_map(most)).max().unwrap_or(0)
    }

    /// Raises the upper bounds of prefixes without an entry to those of an evicted one.
    #[inline(always)]
    pub(super) fn reject(bytes: &mut [u8], evicted: &Entry<A>) -> [u64; A] {
        let mut away = Self::away(bytes, 0);
        for (amount, away) in away.iter_mut().enumerate() {
            let most = evicted.item.kept[amount].saturating_add(evicted.missed[amount]);
            *away = (*away).max(most);
        }
        Self::set_away(bytes, away);
        away
    }

    /// Whether the bucket is as operations leave it after at most `halvings` halvings: every prefix is
    /// at its level, in its own bucket, and has one entry.
    pub(super) fn is_sound(
        bytes: &[u8],
        halvings: u64,
        level: usize,
        own: impl Fn(u128) -> Option<u16>,
    ) -> bool {
        let had = word(bytes, TAGS);
        if had > halvings {
            return false;
        }
        // A bucket rebuilt from its entries and bounds must equal this one, so no other byte is set.
        let away = Self::away(bytes, 0);
        let mut again = vec![0; bytes.len()];
        set_word(&mut again, TAGS, had);
        Self::set_away(&mut again, away);
        for entry in Self::taken(bytes) {
            for (amount, &away) in away.iter().enumerate() {
                let missed = word(bytes, Self::missed_at(amount, entry));
                if missed > word(bytes, Self::most_at(amount, entry)) || missed > away {
                    return false;
                }
            }
            let of = Self::entry(bytes, entry, 0);
            let key = of.item.key;
            let Some(tag) = own(key) else { return false };
            let twice = Self::taken(&again).any(|other| Self::key(&again, other) == key);
            if twice || prefix::at_level(key, level) != key {
                return false;
            }
            Self::write(&mut again, entry, tag, &of);
        }
        again == bytes
    }
}
