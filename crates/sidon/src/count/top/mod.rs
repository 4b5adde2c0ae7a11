//! The heaviest keys in fixed memory, each with what it has at least and at most.
//!
//! Every key has one bucket of eight entries, and a newcomer that finds it full has to earn its
//! place. Until then its amounts are kept in a small filter, a Count-Min sketch of conservative
//! update for all keys that have no entry. Once the filter's count passes the lightest entry of the
//! bucket, the two change places: the newcomer's entry starts with the filter's count, and the
//! filter is raised to what the evicted entry had.
//! ```text
//! bucket  | 8 tags | turned away at most | 8 x at most | 8 x (more amounts, missed at most, key) |
//!                        ^ |                                               ^
//! filter  | . . 7 . 3 . .  v . . |    counts of keys without an entry ------+
//! ```
//! A count is never below the truth, and what was counted while a key had its entry never above.
//! An entry that was made while nobody had been turned away from its bucket, or whose counters in
//! the filter were zero, was made on the key's first appearance: its counts are exact. A bucket
//! remembers the most that anyone without an entry may have, so the table knows which keys cannot
//! be missing: see [`Ranking`].
//!
//! An addition to a key with an entry reads the bucket's head and the entry, two or three lines; any
//! other the head and the filter, three or four. A key
//! may have several amounts, bytes and packets for example; the first decides who stays. Metwally,
//! Agrawal and El Abbadi's Space-Saving, ICDT 2005, in buckets; the filter in front of it by Homem
//! and Carvalho, 2010.

mod image;
mod merge;
mod ranking;
mod stored;
#[cfg(test)]
mod tests;

pub use ranking::{Entry, Ranking};
pub use stored::Stored;

use crate::{
    Digest, Infeasible, Key, Refused, Seed,
    cells::Memory,
    hash::spread,
    member::batch::{self, Steps},
    probe::{self, Isa, Kernel, LINE},
};
use std::marker::PhantomData;

/// Entries of a bucket.
pub const ENTRIES: usize = 8;
/// The most amounts a key has.
pub const AMOUNTS_MOST: usize = 4;
/// The most rows a filter has.
pub const ROWS_MOST: usize = 4;
/// Bytes of a bucket's tags.
const TAGS: usize = 2 * ENTRIES;
/// Bytes of eight counts.
const COUNTS: usize = 8 * ENTRIES;

/// The integers that fix a table of the heaviest keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many buckets of eight entries: any number but zero.
    pub buckets: u64,
    /// How many counters a key without an entry has for each of its amounts, 1 to 4.
    pub rows: u32,
    /// How many counters of 32 bits a row of the filter has for each amount: any number but zero.
    pub columns: u64,
}

impl Shape {
    /// The bytes of buckets and filter for keys of so many bytes with so many amounts.
    pub fn bytes(&self, key_bytes: usize, amounts: usize) -> Result<u64, Infeasible> {
        let (buckets, filter) = self.parts(key_bytes, amounts)?;
        Ok(buckets + filter)
    }

    fn parts(&self, key_bytes: usize, amounts: usize) -> Result<(u64, u64), Infeasible> {
        Infeasible::unless_within("buckets", self.buckets, 1, 1 << 40)?;
        Infeasible::unless_within("rows", self.rows.into(), 1, ROWS_MOST as u64)?;
        Infeasible::unless_within("columns", self.columns, 1, 1 << 48)?;
        Infeasible::unless_within("amounts", amounts as u64, 1, AMOUNTS_MOST as u64)?;
        Infeasible::unless_within("key bytes", key_bytes as u64, 1, 1 << 16)?;
        let bucket = Bucket { key: key_bytes, amounts }.bytes() as u64;
        let row = self.columns * amounts as u64 * 4;
        Ok((self.buckets * bucket, u64::from(self.rows) * row))
    }
}

/// What a key has, from `least` to `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// The truth is this or more.
    pub least: u64,
    /// The truth is this or less.
    pub most: u64,
}

impl Bounds {
    /// Whether the truth is known.
    pub fn is_exact(&self) -> bool {
        self.least == self.most
    }
}

/// The heaviest keys and their `A` amounts. See the [module](self).
#[derive(Debug)]
pub struct Top<K, const A: usize = 1> {
    shape: Shape,
    seed: Seed,
    buckets: Memory,
    filter: Memory,
    /// All that was added.
    total: [u64; A],
    key: PhantomData<K>,
}

impl<K: Stored, const A: usize> Top<K, A> {
    /// An empty table.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let (buckets, filter) = shape.parts(K::BYTES, A)?;
        let (buckets, filter) = (Memory::zeroed(buckets)?, Memory::zeroed(filter)?);
        Ok(Top { shape, seed, buckets, filter, total: [0; A], key: PhantomData })
    }

    /// Adds the amounts to the key's. Refused only if a total would pass 2^64.
    #[inline]
    pub fn add(&mut self, key: &K, amounts: [u64; A]) -> Result<(), Refused> {
        self.add_hashed(key.digest(self.seed), key, amounts)
    }

    /// Adds the amounts to those of a key whose digest under the table's seed is known.
    #[inline]
    pub fn add_hashed(
        &mut self,
        digest: Digest,
        key: &K,
        amounts: [u64; A],
    ) -> Result<(), Refused> {
        debug_assert_eq!(digest, key.digest(self.seed), "the digest is the key's own");
        let place = self.place(digest);
        self.add_at(probe::BASE, &place, key, amounts)
    }

    /// Adds to each key's amounts those at the same place. `refused` is called with the index of
    /// each key whose amounts were not added, as in [`add`](Self::add).
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn add_batch(
        &mut self,
        keys: &[K],
        amounts: &[[u64; A]],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let seed = self.seed;
        self.each(seed, keys, keys, amounts, refused);
    }

    /// [`add_batch`](Self::add_batch) for keys whose digests under the table's seed are known.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn add_hashed_batch(
        &mut self,
        digests: &[Digest],
        keys: &[K],
        amounts: &[[u64; A]],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let seed = self.seed;
        self.each(seed, digests, keys, amounts, refused);
    }

    /// What the key has: from its entry, or from nothing to what the filter says.
    pub fn bounds(&self, key: &K) -> [Bounds; A] {
        let place = self.place(key.digest(self.seed));
        match self.find(probe::BASE, &place, key) {
            Some(entry) => self.entry_bounds(place.bucket, entry),
            None => self.without_entry(&place).map(|most| Bounds { least: 0, most }),
        }
    }

    /// The heaviest `count` keys by their first amounts, as far as the table knows. Reads all
    /// buckets.
    pub fn heaviest(&self, count: usize) -> Ranking<K, A> {
        ranking::rank(self, count)
    }

    /// Takes every key out.
    pub fn clear(&mut self) {
        self.buckets.bytes_mut().fill(0);
        self.filter.bytes_mut().fill(0);
        self.total = [0; A];
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// All that was added, by amount.
    pub fn total(&self) -> [u64; A] {
        self.total
    }

    /// How many keys have an entry. Reads all buckets.
    pub fn stored(&self) -> u64 {
        let tags = |bucket| (0..ENTRIES).filter(move |&entry| self.tag(bucket, entry) != 0).count();
        self.all_buckets().map(|bucket| tags(bucket) as u64).sum()
    }
}

/// Where a bucket's parts lie: tags, what was turned away and first amounts, by which it is found
/// who stays; then entry by entry the other amounts, what was missed and the key; then up to the
/// next line.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    key: usize,
    amounts: usize,
}

impl Bucket {
    const fn first(self) -> usize {
        TAGS + 8 * self.amounts
    }
    const fn head(self) -> usize {
        self.first() + COUNTS
    }
    /// Bytes from one entry to the next: a line if that is nearly what it needs.
    const fn stride(self) -> usize {
        let needed = 8 * (2 * self.amounts - 1) + self.key;
        let lines = needed.next_multiple_of(LINE);
        if lines - needed <= LINE / 16 { lines } else { needed }
    }
    const fn entry(self, entry: usize) -> usize {
        let start = if self.stride().is_multiple_of(LINE) {
            self.head().next_multiple_of(LINE)
        } else {
            self.head()
        };
        start + entry * self.stride()
    }
    const fn most(self, amount: usize, entry: usize) -> usize {
        if amount == 0 { self.first() + 8 * entry } else { self.entry(entry) + 8 * (amount - 1) }
    }
    const fn missed(self, amount: usize, entry: usize) -> usize {
        self.entry(entry) + 8 * (self.amounts - 1 + amount)
    }
    const fn key(self, entry: usize) -> usize {
        self.missed(self.amounts, entry)
    }
    const fn bytes(self) -> usize {
        self.entry(ENTRIES).next_multiple_of(LINE)
    }
}

/// Where a key's bucket and its counters in the filter start, and its tag.
#[derive(Debug, Clone, Copy)]
struct Place {
    bucket: usize,
    filter: [usize; ROWS_MOST],
    tag: u16,
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes[at..].first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => unreachable!("every count is whole"),
    }
}

#[inline(always)]
fn set_word(bytes: &mut [u8], at: usize, word: u64) {
    match bytes[at..].first_chunk_mut() {
        Some(bytes) => *bytes = word.to_le_bytes(),
        None => unreachable!("every count is whole"),
    }
}

impl<K: Stored, const A: usize> Top<K, A> {
    const BUCKET: Bucket = Bucket { key: K::BYTES, amounts: A };

    #[inline(always)]
    fn place(&self, digest: Digest) -> Place {
        let bucket = spread::position(digest, 0, self.shape.buckets) as usize;
        let mut filter = [0; ROWS_MOST];
        for (i, at) in filter[..self.shape.rows as usize].iter_mut().enumerate() {
            let row = i as u64 * self.shape.columns;
            let column = spread::position(digest, i as u32 + 1, self.shape.columns);
            *at = (row + column) as usize * A * 4;
        }
        // No key has the tag of an empty entry.
        let tag = (digest.0 as u16).max(1);
        Place { bucket: bucket * Self::BUCKET.bytes(), filter, tag }
    }

    fn all_buckets(&self) -> impl Iterator<Item = usize> + use<K, A> {
        (0..self.shape.buckets as usize).map(|bucket| bucket * Self::BUCKET.bytes())
    }

    #[inline(always)]
    fn tag(&self, bucket: usize, entry: usize) -> u16 {
        let bytes = &self.buckets.bytes()[bucket + 2 * entry..];
        match bytes.first_chunk() {
            Some(tag) => u16::from_le_bytes(*tag),
            None => unreachable!("every tag is whole"),
        }
    }

    /// Which entries have this tag: a bit each.
    #[inline(always)]
    fn tagged<I: Isa>(&self, isa: I, bucket: usize, tag: u16) -> u64 {
        match self.buckets.bytes()[bucket..].first_chunk::<TAGS>() {
            Some(tags) => isa.matches(tags, tag),
            None => unreachable!("every bucket is whole"),
        }
    }

    #[inline(always)]
    fn key(&self, bucket: usize, entry: usize) -> &[u8] {
        &self.buckets.bytes()[bucket + Self::BUCKET.key(entry)..][..K::BYTES]
    }

    /// The key's entry in its bucket.
    #[inline(always)]
    fn find<I: Isa>(&self, isa: I, place: &Place, key: &K) -> Option<usize> {
        let mut tagged = self.tagged(isa, place.bucket, place.tag);
        while tagged != 0 {
            let entry = tagged.trailing_zeros() as usize;
            if key.is(self.key(place.bucket, entry)) {
                return Some(entry);
            }
            tagged &= tagged - 1;
        }
        None
    }

    fn entry_bounds(&self, bucket: usize, entry: usize) -> [Bounds; A] {
        let bytes = self.buckets.bytes();
        std::array::from_fn(|amount| {
            let most = word(bytes, bucket + Self::BUCKET.most(amount, entry));
            let missed = word(bytes, bucket + Self::BUCKET.missed(amount, entry));
            Bounds { least: most - missed, most }
        })
    }

    /// The most that a key without an entry may have in this bucket.
    #[inline(always)]
    fn turned_away(&self, bucket: usize) -> [u64; A] {
        let mut most = [0; A];
        for (amount, most) in most.iter_mut().enumerate() {
            *most = word(self.buckets.bytes(), bucket + TAGS + 8 * amount);
        }
        most
    }

    /// The most that this key may have, if it has no entry.
    #[inline(always)]
    fn without_entry(&self, place: &Place) -> [u64; A] {
        let mut most = self.turned_away(place.bucket);
        if most == [0; A] {
            // Nobody was turned away: the key would have an entry.
            return most;
        }
        for &at in &place.filter[..self.shape.rows as usize] {
            for (amount, most) in most.iter_mut().enumerate() {
                let counter = self.counter(at + 4 * amount);
                // A counter at its ceiling says nothing.
                if counter != u32::MAX {
                    *most = (*most).min(counter.into());
                }
            }
        }
        most
    }

    #[inline(always)]
    fn counter(&self, at: usize) -> u32 {
        match self.filter.bytes()[at..].first_chunk() {
            Some(counter) => u32::from_le_bytes(*counter),
            None => unreachable!("every counter is whole"),
        }
    }

    /// Notes that a key without an entry may have so much.
    #[inline(always)]
    fn turn_away(&mut self, place: &Place, most: [u64; A]) {
        for (amount, &most) in most.iter().enumerate() {
            let at = place.bucket + TAGS + 8 * amount;
            let buckets = self.buckets.bytes_mut();
            if word(buckets, at) < most {
                set_word(buckets, at, most);
            }
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            for &at in &place.filter[..self.shape.rows as usize] {
                let at = at + 4 * amount;
                if self.counter(at) < most {
                    self.filter.bytes_mut()[at..at + 4].copy_from_slice(&most.to_le_bytes());
                }
            }
        }
    }

    #[inline(always)]
    fn add_at<I: Isa>(
        &mut self,
        isa: I,
        place: &Place,
        key: &K,
        amounts: [u64; A],
    ) -> Result<(), Refused> {
        let mut total = self.total;
        for (total, amount) in total.iter_mut().zip(amounts) {
            match total.checked_add(amount) {
                Some(sum) => *total = sum,
                None => return Err(Refused::Overflow { ceiling: u64::MAX }),
            }
        }
        // No count of any kind is above the total, so no sum below can pass 2^64.
        self.total = total;
        let bucket = place.bucket;
        if let Some(entry) = self.find(isa, place, key) {
            let bytes = self.buckets.bytes_mut();
            for (amount, add) in amounts.into_iter().enumerate() {
                let at = bucket + Self::BUCKET.most(amount, entry);
                set_word(bytes, at, word(bytes, at) + add);
            }
            return Ok(());
        }
        self.add_new(isa, place, key, amounts);
        Ok(())
    }

    /// Adds the amounts of a key that has no entry.
    #[inline(always)]
    fn add_new<I: Isa>(&mut self, isa: I, place: &Place, key: &K, amounts: [u64; A]) {
        let missed = self.without_entry(place);
        let mut most = missed;
        for (most, amount) in most.iter_mut().zip(amounts) {
            *most += amount;
        }
        let free = self.tagged(isa, place.bucket, 0);
        let entry = if free != 0 {
            free.trailing_zeros() as usize
        } else {
            let (lightest, least) = self.lightest(place.bucket);
            if most[0] <= least {
                self.turn_away(place, most);
                return;
            }
            let evicted = K::read(self.key(place.bucket, lightest));
            let had = self.entry_bounds(place.bucket, lightest).map(|bounds| bounds.most);
            let place = self.place(evicted.digest(self.seed));
            self.turn_away(&place, had);
            lightest
        };
        self.write(place.bucket, entry, place.tag, key, most, missed);
    }

    /// The entry with the smallest first amount, and that.
    #[inline(always)]
    fn lightest(&self, bucket: usize) -> (usize, u64) {
        let counts = &self.buckets.bytes()[bucket + Self::BUCKET.first()..][..COUNTS];
        let (mut lightest, mut least) = (0, u64::MAX);
        for (entry, count) in counts.as_chunks::<8>().0.iter().enumerate() {
            let count = u64::from_le_bytes(*count);
            if count < least {
                (lightest, least) = (entry, count);
            }
        }
        (lightest, least)
    }

    #[inline(always)]
    fn write(
        &mut self,
        bucket: usize,
        entry: usize,
        tag: u16,
        key: &K,
        most: [u64; A],
        missed: [u64; A],
    ) {
        let bytes = &mut self.buckets.bytes_mut()[bucket..][..Self::BUCKET.bytes()];
        bytes[2 * entry..2 * entry + 2].copy_from_slice(&tag.to_le_bytes());
        for amount in 0..A {
            set_word(bytes, Self::BUCKET.most(amount, entry), most[amount]);
            set_word(bytes, Self::BUCKET.missed(amount, entry), missed[amount]);
        }
        key.write(&mut bytes[Self::BUCKET.key(entry)..][..K::BYTES]);
    }

    fn each<H: Key>(
        &mut self,
        seed: Seed,
        hashed: &[H],
        keys: &[K],
        amounts: &[[u64; A]],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        struct Loop<'a, H, S>(Seed, &'a [H], usize, S);
        impl<H: Key, S: Steps> Kernel for Loop<'_, H, S> {
            type Output = ();
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) {
                batch::each_key(isa, self.0, self.1, self.2, self.3);
            }
        }
        assert_eq!(keys.len(), amounts.len(), "one amount a key");
        assert_eq!(keys.len(), hashed.len(), "one digest a key");
        let bytes = self.buckets.bytes().len() + self.filter.bytes().len();
        probe::dispatch(Loop(seed, hashed, bytes, Enter { table: self, keys, amounts, refused }));
    }
}

/// Finds the bucket and the counters of a key, and adds its amounts.
struct Enter<'a, K, const A: usize> {
    table: &'a mut Top<K, A>,
    keys: &'a [K],
    amounts: &'a [[u64; A]],
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl<K: Stored, const A: usize> Steps for Enter<'_, K, A> {
    type Place = Place;
    const NOWHERE: Place = Place { bucket: 0, filter: [0; ROWS_MOST], tag: 0 };

    #[inline(always)]
    fn approach(&mut self, digest: Digest, place: &mut Place) {
        *place = self.table.place(digest);
        for line in (0..Top::<K, A>::BUCKET.head()).step_by(LINE) {
            probe::prefetch(self.table.buckets.bytes(), place.bucket + line);
        }
    }

    /// The head of the bucket tells whether an entry is needed next, or the filter.
    #[inline(always)]
    fn draw_near(&mut self, place: &Place) {
        let table = &*self.table;
        let tagged = table.tagged(probe::BASE, place.bucket, place.tag);
        if tagged != 0 {
            let at = Top::<K, A>::BUCKET.entry(tagged.trailing_zeros() as usize);
            for line in (0..Top::<K, A>::BUCKET.stride()).step_by(LINE) {
                probe::prefetch(table.buckets.bytes(), place.bucket + at + line);
            }
        } else {
            for &at in &place.filter[..table.shape.rows as usize] {
                probe::prefetch(table.filter.bytes(), at);
            }
        }
    }

    #[inline(always)]
    fn act(&mut self, key: usize, place: &Place) {
        let done = self.table.add_at(probe::BASE, place, &self.keys[key], self.amounts[key]);
        if let Err(why) = done {
            (self.refused)(key, why);
        }
    }
}
