//! Batches for [`Min`]: hash all keys, ask for their counters, then act.

use super::{
    cell::{self, Cell, Job, Mapping, Places},
    min::Min,
};
use crate::{
    Digest, Estimate, Key, Refused, Seed,
    member::batch::{self, NEAR, Steps},
    probe::{self, Isa, Kernel},
};

impl Min {
    /// Adds to each key's count the amount at the same place. `refused` is called with the index of
    /// each key whose amount was not added, as in [`add`](crate::ops::Count::add).
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn add_batch<K: Key>(
        &mut self,
        keys: &[K],
        amounts: &[u64],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        assert_eq!(keys.len(), amounts.len(), "one amount a key");
        let (shape, seed) = (self.shape, self.seed);
        let act = Add { sketch: self, amounts, refused };
        cell::by_shape(shape, EachKey { seed, keys, act });
    }

    /// Writes what [`estimate`](crate::ops::Count::estimate) says of each key to the same place.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn estimate_batch<K: Key>(&self, keys: &[K], estimates: &mut [Estimate]) {
        assert_eq!(keys.len(), estimates.len(), "one answer a key");
        let act = Ask { sketch: self, estimates };
        cell::by_shape(self.shape, EachKey { seed: self.seed, keys, act });
    }

    /// Writes the smallest counter of each key to the same place: the value of its estimate, and
    /// [`ceiling`](super::min::Shape::ceiling) where that is not an upper bound.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn least_batch<K: Key>(&self, keys: &[K], values: &mut [u64]) {
        assert_eq!(keys.len(), values.len(), "one answer a key");
        let act = Least { sketch: self, values };
        cell::by_shape(self.shape, EachKey { seed: self.seed, keys, act });
    }
}

/// What is done with the counters of each key. A trait and not a closure, so that it is inlined
/// into the loop and compiled for its instruction set.
trait Act {
    fn sketch(&self) -> &Min;
    fn act<C: Cell, const D: usize>(&mut self, key: usize, at: &Places<D>);
}

struct Add<'a> {
    sketch: &'a mut Min,
    amounts: &'a [u64],
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl Act for Add<'_> {
    #[inline(always)]
    fn sketch(&self) -> &Min {
        self.sketch
    }
    #[inline(always)]
    fn act<C: Cell, const D: usize>(&mut self, key: usize, at: &Places<D>) {
        if let Err(why) = self.sketch.add_at::<C, D>(at, self.amounts[key]) {
            (self.refused)(key, why);
        }
    }
}

struct Ask<'a> {
    sketch: &'a Min,
    estimates: &'a mut [Estimate],
}

impl Act for Ask<'_> {
    #[inline(always)]
    fn sketch(&self) -> &Min {
        self.sketch
    }
    #[inline(always)]
    fn act<C: Cell, const D: usize>(&mut self, key: usize, at: &Places<D>) {
        self.estimates[key] = self.sketch.estimate_at::<C, D>(at);
    }
}

struct Least<'a> {
    sketch: &'a Min,
    values: &'a mut [u64],
}

impl Act for Least<'_> {
    #[inline(always)]
    fn sketch(&self) -> &Min {
        self.sketch
    }
    #[inline(always)]
    fn act<C: Cell, const D: usize>(&mut self, key: usize, at: &Places<D>) {
        self.values[key] = self.sketch.least_at::<C, D>(at);
    }
}

/// A loop over keys.
struct EachKey<'a, K, A> {
    seed: Seed,
    keys: &'a [K],
    act: A,
}

impl<K: Key, A: Act> Job for EachKey<'_, K, A> {
    type Output = ();

    #[inline(always)]
    fn run<C: Cell, const D: usize>(self) {
        struct Loop<'a, K, A, C, const D: usize>(EachKey<'a, K, A>, std::marker::PhantomData<C>);
        impl<K: Key, A: Act, C: Cell, const D: usize> Kernel for Loop<'_, K, A, C, D> {
            type Output = ();
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) {
                let EachKey { seed, keys, act } = self.0;
                let (mapping, bytes) = (act.sketch().mapping, act.sketch().used);
                let cells = std::marker::PhantomData::<C>;
                let steps = Find::<A, C, D> { mapping, far: bytes > NEAR, act, cells };
                batch::each_key(isa, seed, keys, bytes, steps);
            }
        }
        probe::dispatch(Loop::<K, A, C, D>(self, std::marker::PhantomData));
    }
}

/// Finds the counters of a key, and acts on them.
struct Find<A, C, const D: usize> {
    mapping: Mapping,
    far: bool,
    act: A,
    cells: std::marker::PhantomData<C>,
}

impl<A: Act, C: Cell, const D: usize> Steps for Find<A, C, D> {
    type Place = Places<D>;
    const NOWHERE: Self::Place = [0; D];

    #[inline(always)]
    fn approach(&mut self, digest: Digest, at: &mut Places<D>) {
        self.mapping.places::<C, D>(digest, at);
        if self.far {
            self.mapping.prefetch(self.act.sketch().memory.bytes(), at);
        }
    }

    #[inline(always)]
    fn act(&mut self, key: usize, at: &Places<D>) {
        self.act.act::<C, D>(key, at);
    }
}
