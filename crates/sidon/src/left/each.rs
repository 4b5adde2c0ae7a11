//! A loop over keys that computes their buckets, prefetches them, and acts on each key later.

use super::{ANY, Place, Placing, Table, Ways};
use crate::{
    Digest, Key, Seed,
    cells::bucket::Layout,
    member::batch::{self, NEAR, Steps},
    probe::{self, BASE, Isa, Kernel},
};

/// The action on each key. A trait instead of a closure, so that it is inlined into the loop and
/// compiled for its instruction set.
pub(crate) trait Each {
    fn table(&self) -> &Table;

    /// Acts on the key with index `key`.
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        key: usize,
        places: &[Place; D],
    );
}

/// Acts on every key, in order. One loop serves all shapes: for operations that are slow in any
/// case.
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

/// Acts on one key after the other. Serves [`Placing::Independent`], which exists for comparison.
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
    /// The addressing and the number of buckets at the start of the batch.
    ways: Ways<D>,
    buckets: u64,
    /// Whether the table is so large that its buckets are prefetched.
    far: bool,
}

impl<I: Isa, L: Layout, E: Each, const D: usize> Steps for Walk<I, L, E, D> {
    /// The fingerprint, and its place in each subtable.
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
    /// Acts on a key after the table grew within the batch, which changed the places of all
    /// fingerprints.
    #[cold]
    #[inline(never)]
    fn act_anew(&mut self, key: usize, fingerprint: u64) {
        let layout = self.each.table().any();
        let places = self.each.table().places_of::<ANY>(fingerprint);
        self.each.act(BASE, layout, key, &places);
    }
}
