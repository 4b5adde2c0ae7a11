//! A loop over keys that finds their buckets, asks for them, and acts once they have come.

use super::{ANY, Place, Placing, Table, Ways};
use crate::{
    Digest, Key, Seed,
    cells::bucket::Layout,
    member::batch::{self, NEAR, Steps},
    probe::{self, BASE, Isa, Kernel},
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

/// Acts on every key, in order, with one loop for all shapes: for those that are not fast in any case.
pub(crate) fn each_key_of_any<K: Key, E: Each>(seed: Seed, keys: &[K], each: E) {
    let layout = each.table().any();
    EachKey::<_, _, _, ANY> { layout, seed, keys, each }.run(BASE);
}

struct EachKey<'a, K, L, E, const D: usize> {
    layout: L,
    seed: Seed,
    keys: &'a [K],
    each: E,
}

impl<K: Key, L: Layout, E: Each, const D: usize> Kernel for EachKey<'_, K, L, E, D> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let EachKey { layout, seed, keys, each } = self;
        let table = each.table();
        if table.form.placing == Placing::Independent {
            return apart(seed, keys, each);
        }
        let (ways, buckets) = (table.ways::<D>(), table.form.buckets);
        let bytes = table.memory.bytes().len();
        let far = bytes > NEAR;
        let steps = Walk::<_, _, _, D> { isa, layout, each, ways, buckets, far };
        batch::each_key(isa, seed, keys, bytes, steps);
    }
}

/// One after the other, for tables that are there for comparison.
#[inline(never)]
fn apart<K: Key, E: Each>(seed: Seed, keys: &[K], mut each: E) {
    for (key, digest) in keys.iter().map(|key| key.digest(seed)).enumerate() {
        let layout = each.table().any();
        let places = each.table().places::<ANY>(digest);
        each.act(BASE, layout, key, &places);
    }
}

struct Walk<I, L, E, const D: usize> {
    isa: I,
    layout: L,
    each: E,
    /// The ways, and how many buckets there were, at the start.
    ways: Ways<D>,
    buckets: u64,
    /// Whether the table is so large that its lines are asked for ahead.
    far: bool,
}

impl<I: Isa, L: Layout, E: Each, const D: usize> Steps for Walk<I, L, E, D> {
    /// The fingerprint, and where it may be stored.
    type Place = (u64, [Place; D]);
    const NOWHERE: Self::Place = (0, [Place::NOWHERE; D]);

    #[inline(always)]
    fn approach(&mut self, digest: Digest, (fingerprint, places): &mut Self::Place) {
        *fingerprint = self.ways.fingerprint_of(digest);
        let found = self.ways.places_of(*fingerprint);
        if self.far {
            let table = self.each.table();
            let bytes = table.memory.bytes();
            for place in &found[..table.subtables::<D>()] {
                probe::prefetch(bytes, place.offset);
            }
        }
        *places = found;
    }

    #[inline(always)]
    fn act(&mut self, key: usize, (fingerprint, places): &Self::Place) {
        if self.each.table().form.buckets == self.buckets {
            self.each.act(self.isa, self.layout, key, places);
        } else {
            self.act_anew(key, *fingerprint);
        }
    }
}

impl<I, L, E: Each, const D: usize> Walk<I, L, E, D> {
    /// The table grew under way, and the places of a fingerprint are others now.
    #[cold]
    #[inline(never)]
    fn act_anew(&mut self, key: usize, fingerprint: u64) {
        let layout = self.each.table().any();
        let places = self.each.table().places_of::<ANY>(fingerprint);
        self.each.act(BASE, layout, key, &places);
    }
}
