//! A loop over keys that finds their buckets, asks for them, and acts once they have come.

use super::{Place, Placing, Table, with_fast_layout, with_layout};
use crate::{
    Digest, Key, Seed,
    cells::bucket::Layout,
    member::batch::{self, Steps},
    probe::{self, Isa, Kernel},
};

/// What is done with each key. A trait and not a closure, so that it is inlined into the loop and
/// compiled for its instruction set.
pub(crate) trait Each {
    fn table(&self) -> &Table;

    /// Acts on the key of this index.
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        key: usize,
        places: &[Place; D],
    );
}

/// Acts on every key, in order.
pub(crate) fn each_key<K: Key, E: Each>(seed: Seed, keys: &[K], each: E) {
    with_layout!(each.table().form, |layout| probe::dispatch(EachKey { layout, seed, keys, each }));
}

/// The same with a loop of its own only for the fast shapes, two subtables of a line a bucket: for
/// loops that are many.
pub(crate) fn each_key_of_few<K: Key, E: Each>(seed: Seed, keys: &[K], each: E) {
    with_fast_layout!(each.table().form, |layout, D| probe::dispatch(OfFew::<_, _, _, D> {
        layout,
        seed,
        keys,
        each
    }));
}

struct OfFew<'a, K, L, E, const D: usize> {
    layout: L,
    seed: Seed,
    keys: &'a [K],
    each: E,
}

impl<K: Key, L: Layout, E: Each, const D: usize> Kernel for OfFew<'_, K, L, E, D> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let OfFew { layout, seed, keys, each } = self;
        EachKey { layout, seed, keys, each }.run_with::<D, I>(isa);
    }
}

struct EachKey<'a, K, L, E> {
    layout: L,
    seed: Seed,
    keys: &'a [K],
    each: E,
}

impl<K: Key, L: Layout, E: Each> Kernel for EachKey<'_, K, L, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        match self.each.table().form.subtables {
            2 => self.run_with::<2, I>(isa),
            3..=4 => self.run_with::<4, I>(isa),
            _ => self.run_with::<8, I>(isa),
        }
    }
}

impl<K: Key, L: Layout, E: Each> EachKey<'_, K, L, E> {
    #[inline(always)]
    fn run_with<const D: usize, I: Isa>(self, isa: I) {
        let EachKey { layout, seed, keys, each } = self;
        let (buckets, bytes) = (each.table().form.buckets, each.table().memory.bytes().len());
        let steps = Walk::<_, _, _, D> { isa, layout, each, buckets };
        batch::each_key(isa, seed, keys, bytes, steps);
    }
}

struct Walk<I, L, E, const D: usize> {
    isa: I,
    layout: L,
    each: E,
    /// How many buckets there were at the start.
    buckets: u64,
}

impl<I: Isa, L: Layout, E: Each, const D: usize> Steps for Walk<I, L, E, D> {
    /// The fingerprint, and where it may be stored.
    type Place = (u64, [Place; D]);
    const NOWHERE: Self::Place = (0, [Place::NOWHERE; D]);

    #[inline(always)]
    fn approach(&mut self, digest: Digest, (fingerprint, places): &mut Self::Place) {
        let table = self.each.table();
        *fingerprint = table.fingerprint_of(digest);
        *places = match table.form.placing {
            Placing::Permuted => table.places_of(*fingerprint),
            Placing::Independent => table.places(digest),
        };
        table.prefetch(places);
    }

    #[inline(always)]
    fn act(&mut self, key: usize, (fingerprint, places): &Self::Place) {
        if self.each.table().form.buckets == self.buckets {
            self.each.act(self.isa, self.layout, key, places);
        } else {
            // The table grew under way, and the places of a fingerprint are others now.
            let places = self.each.table().places_of(*fingerprint);
            self.each.act::<D, _, _>(self.isa, self.layout, key, &places);
        }
    }
}
