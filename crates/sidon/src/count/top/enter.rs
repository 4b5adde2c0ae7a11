//! Batches: prefetch the lines of some keys, then add their amounts.

use super::{
    Place, Shape, Stored, Top,
    bucket::{self, Bucket},
    filter,
};
use crate::{
    Digest, Key, Seed,
    batch::{self, Batch, Keys, Pace},
    key::{Hasher, spread},
    simd::{self, Isa, LINE},
};
use std::marker::PhantomData;

/// Tables up to this many bytes stay in the cache and are not prefetched.
const NEAR: usize = 64 << 10;

/// A key of a batch to add: its digest under the table's seed, and the indices of the key and of
/// its amounts in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    /// The digest of the key.
    pub digest: Digest,
    /// The index of the key.
    pub key: u32,
    /// The index of the amounts.
    pub amounts: u32,
}

/// Uses the digest given.
impl Key for Pick {
    #[inline(always)]
    fn digest_with<H: Hasher>(&self, _: H) -> Digest {
        self.digest
    }
}

/// The keys and the amounts to add.
#[derive(Clone, Copy)]
pub(super) struct Additions<'a, K, const A: usize> {
    /// The index of the key and of the amounts of each addition. Without picks, both are the index
    /// of the addition.
    pub(super) picks: Option<&'a [Pick]>,
    pub(super) keys: &'a [K],
    pub(super) amounts: &'a [[u64; A]],
}

impl<'a, K, const A: usize> Additions<'a, K, A> {
    #[inline(always)]
    fn of(&self, number: usize) -> (&'a K, [u64; A]) {
        match self.picks {
            None => (&self.keys[number], self.amounts[number]),
            Some(picks) => {
                let Pick { key, amounts, .. } = picks[number];
                (&self.keys[key as usize], self.amounts[amounts as usize])
            }
        }
    }
}

/// The mutable parts of a table, borrowed once for many keys.
pub(super) struct Cells<'a, K, const A: usize> {
    pub(super) buckets: &'a mut [u8],
    pub(super) filter: &'a mut [u8],
    pub(super) shape: Shape,
    pub(super) seed: Seed,
    pub(super) total: &'a mut [u64; A],
    pub(super) key: PhantomData<K>,
}

impl<K: Stored, const A: usize> Cells<'_, K, A> {
    const BUCKET: Bucket = Top::<K, A>::BUCKET;

    #[inline(always)]
    pub(super) fn place(&self, digest: Digest) -> Place {
        let bucket = spread::position(digest, 0, self.shape.buckets) as usize;
        Place { bucket: bucket * Self::BUCKET.bytes(), digest }
    }

    #[inline(always)]
    pub(super) fn add<I: Isa>(&mut self, isa: I, place: Place, key: &K, amounts: [u64; A]) {
        // Every sum stops at the ceiling, so no count of any kind is above the total.
        for (total, amount) in self.total.iter_mut().zip(amounts) {
            *total = total.saturating_add(amount);
        }
        let bytes = &mut self.buckets[place.bucket..][..Self::BUCKET.bytes()];
        match Self::BUCKET.find(isa, bytes, bucket::tag_of(place.digest), key) {
            Some(entry) => Self::BUCKET.add(bytes, entry, amounts),
            None => self.add_new(isa, place, key, amounts),
        }
    }

    /// Adds the amounts of a key that has no entry.
    #[inline(always)]
    fn add_new<I: Isa>(&mut self, isa: I, place: Place, key: &K, amounts: [u64; A]) {
        let bytes = &mut self.buckets[place.bucket..][..Self::BUCKET.bytes()];
        let missed: [u64; A] =
            without_entry(Self::BUCKET, bytes, self.filter, &self.shape, place.digest);
        let mut most = missed;
        for (most, amount) in most.iter_mut().zip(amounts) {
            *most = most.saturating_add(amount);
        }
        let free = Self::BUCKET.tagged(isa, bytes, 0);
        let entry = if free != 0 {
            free.trailing_zeros() as usize % bucket::ENTRIES
        } else {
            let (lightest, least) = Self::BUCKET.lightest(bytes);
            let (digest, had) = if most[0] <= least {
                (place.digest, most)
            } else {
                let evicted = K::read(Self::BUCKET.key_of(bytes, lightest));
                let had = Self::BUCKET.bounds(bytes, lightest).map(|bounds| bounds.most);
                (evicted.digest(self.seed), had)
            };
            Self::BUCKET.turn_away(bytes, had);
            filter::raise(self.filter, &self.shape, digest, had);
            if most[0] <= least {
                return;
            }
            lightest
        };
        Self::BUCKET.write(bytes, entry, bucket::tag_of(place.digest), key, [most, missed]);
    }
}

/// The upper bounds for a key without an entry.
#[inline(always)]
pub(super) fn without_entry<const A: usize>(
    bucket: Bucket,
    bytes: &[u8],
    filter: &[u8],
    shape: &Shape,
    digest: Digest,
) -> [u64; A] {
    let mut most = bucket.turned_away(bytes);
    // If no key was rejected so far, the key would have an entry.
    if most != [0; A] {
        filter::lower(filter, shape, digest, &mut most);
    }
    most
}

/// Adds the additions, in order.
pub(super) fn each<K: Stored, const A: usize>(
    cells: Cells<'_, K, A>,
    additions: Additions<'_, K, A>,
) {
    let (seed, bytes) = (cells.seed, cells.buckets.len() + cells.filter.len());
    let enter = Enter { near: bytes <= NEAR, cells, additions };
    match additions.picks {
        None => batch::dispatch(Keys::Typed(seed, additions.keys), bytes, enter),
        Some(picks) => batch::dispatch(Keys::Typed(seed, picks), bytes, enter),
    }
}

/// Finds the bucket and the counters of each key, and adds its amounts.
struct Enter<'a, K, const A: usize> {
    near: bool,
    cells: Cells<'a, K, A>,
    additions: Additions<'a, K, A>,
}

impl<K: Stored, const A: usize> Batch for Enter<'_, K, A> {
    const PACE: Pace = Pace { ahead: Some(8), ..Pace::USUAL };
    type Position = Place;
    const NOWHERE: Place = Place { bucket: 0, digest: Digest(0) };

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], places: &mut [Place]) {
        for (&digest, place) in digests.iter().zip(places) {
            *place = self.cells.place(digest);
            if !self.near {
                for line in (0..Top::<K, A>::BUCKET.head()).step_by(LINE) {
                    simd::prefetch(self.cells.buckets, place.bucket + line);
                }
            }
        }
    }

    /// The head of the bucket tells whether an entry is needed next, or the filter.
    #[inline(always)]
    fn read_ahead<I: Isa>(&mut self, _: I, _: usize, places: &mut [Place]) {
        if self.near {
            return;
        }
        let Cells { buckets, filter, shape, .. } = &self.cells;
        for place in places {
            let tag = bucket::tag_of(place.digest);
            let tagged = Top::<K, A>::BUCKET.tagged(simd::BASE, &buckets[place.bucket..], tag);
            if tagged != 0 {
                let at = Top::<K, A>::BUCKET.entry(tagged.trailing_zeros() as usize);
                for line in (0..Top::<K, A>::BUCKET.stride()).step_by(LINE) {
                    simd::prefetch(buckets, place.bucket + at + line);
                }
            } else {
                for row in 0..shape.rows {
                    simd::prefetch(filter, filter::place::<A>(shape, place.digest, row));
                }
            }
        }
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, places: &[Place]) {
        for (number, &place) in (first..).zip(places) {
            let (key, amounts) = self.additions.of(number);
            self.cells.add(simd::BASE, place, key, amounts);
        }
    }
}
