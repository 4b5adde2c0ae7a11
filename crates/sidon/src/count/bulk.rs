//! Batches for [`Min`]: hash all keys, ask for their counters, then act.

use super::{
    cell::{self, Cell, Job, Mapping},
    min::{self, Min, Update},
};
use crate::{
    Digest, Estimate, Key, Refused, Seed,
    member::batch::{self, NEAR, Steps},
    probe::{self, Isa, Kernel},
};
use std::marker::PhantomData;

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
        batch::hashed(self.seed, keys, |first, digests| {
            let amounts = &amounts[first..first + digests.len()];
            self.add_digests(digests, amounts, &mut |i, why| refused(first + i, why));
        });
    }

    /// As [`add_batch`](Self::add_batch): compiled once, here.
    fn add_digests(
        &mut self,
        keys: &[Digest],
        amounts: &[u64],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        struct Batch<'a, K>(&'a mut Min, &'a [K], &'a [u64], &'a mut dyn FnMut(usize, Refused));
        impl<K: Key> Job for Batch<'_, K> {
            type Output = ();
            fn run<C: Cell, const D: usize>(self) {
                let Batch(sketch, keys, amounts, refused) = self;
                let (seed, mapping, update) = (sketch.seed, sketch.mapping, sketch.shape.update);
                let (table, total) = (sketch.memory.bytes_mut(), &mut sketch.total);
                let (bytes, cells) = (table.len(), PhantomData::<C>);
                let add = Add { mapping, update, table, total, amounts, refused, cells };
                probe::dispatch(EachKey(seed, keys, bytes, Each::<Add<'_, C>, C, D>(add, cells)));
            }
        }
        cell::by_shape(self.shape, Batch(self, keys, amounts, refused));
    }

    /// Writes what [`estimate`](crate::ops::Count::estimate) says of each key to the same place.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn estimate_batch<K: Key>(&self, keys: &[K], estimates: &mut [Estimate]) {
        assert_eq!(keys.len(), estimates.len(), "one answer a key");
        batch::hashed(self.seed, keys, |first, digests| {
            self.estimate_digests(digests, &mut estimates[first..first + digests.len()]);
        });
    }

    /// Writes the smallest counter of each key to the same place: the value of its estimate, and
    /// [`ceiling`](super::min::Shape::ceiling) where that is not an upper bound.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn least_batch<K: Key>(&self, keys: &[K], values: &mut [u64]) {
        assert_eq!(keys.len(), values.len(), "one answer a key");
        batch::hashed(self.seed, keys, |first, digests| {
            self.least_digests(digests, &mut values[first..first + digests.len()]);
        });
    }

    fn estimate_digests(&self, digests: &[Digest], estimates: &mut [Estimate]) {
        self.ask(digests, estimates);
    }

    fn least_digests(&self, digests: &[Digest], values: &mut [u64]) {
        self.ask(digests, values);
    }

    fn ask<K: Key, T: Answer>(&self, keys: &[K], answers: &mut [T]) {
        struct Batch<'a, K, T>(&'a [K], Ask<'a, T>);
        impl<K: Key, T: Answer> Job for Batch<'_, K, T> {
            type Output = ();
            fn run<C: Cell, const D: usize>(self) {
                let Batch(keys, ask) = self;
                let (seed, bytes, cells) = (ask.sketch.seed, ask.table.len(), PhantomData::<C>);
                probe::dispatch(EachKey(seed, keys, bytes, Each::<Ask<'_, T>, C, D>(ask, cells)));
            }
        }
        let ask = Ask { sketch: self, table: self.table(), answers };
        cell::by_shape(self.shape, Batch(keys, ask));
    }
}

/// What is done with the counters of each key. A trait and not a closure, so that it is inlined
/// into the loop and compiled for its instruction set.
trait Act<C: Cell> {
    fn mapping(&self) -> &Mapping;
    fn table(&self) -> &[u8];
    fn act(&mut self, key: usize, at: &[usize]);
}

struct Add<'a, C> {
    mapping: Mapping,
    update: Update,
    table: &'a mut [u8],
    total: &'a mut u64,
    amounts: &'a [u64],
    refused: &'a mut dyn FnMut(usize, Refused),
    cells: PhantomData<C>,
}

impl<C: Cell> Act<C> for Add<'_, C> {
    #[inline(always)]
    fn mapping(&self) -> &Mapping {
        &self.mapping
    }
    #[inline(always)]
    fn table(&self) -> &[u8] {
        self.table
    }
    #[inline(always)]
    fn act(&mut self, key: usize, at: &[usize]) {
        let amount = self.amounts[key];
        match min::grown(*self.total, amount) {
            Ok(total) => *self.total = total,
            Err(why) => return (self.refused)(key, why),
        }
        min::raise::<C>(C::cells_mut(self.table), at, self.update, amount);
    }
}

/// What can be said of a key.
trait Answer {
    fn of<C: Cell>(sketch: &Min, least: u64, first: usize) -> Self;
}

impl Answer for Estimate {
    #[inline(always)]
    fn of<C: Cell>(sketch: &Min, least: u64, first: usize) -> Self {
        sketch.estimate_from::<C>(least, first)
    }
}

impl Answer for u64 {
    #[inline(always)]
    fn of<C: Cell>(_: &Min, least: u64, _: usize) -> Self {
        least
    }
}

struct Ask<'a, T> {
    sketch: &'a Min,
    table: &'a [u8],
    answers: &'a mut [T],
}

impl<C: Cell, T: Answer> Act<C> for Ask<'_, T> {
    #[inline(always)]
    fn mapping(&self) -> &Mapping {
        &self.sketch.mapping
    }
    #[inline(always)]
    fn table(&self) -> &[u8] {
        self.table
    }
    #[inline(always)]
    fn act(&mut self, key: usize, at: &[usize]) {
        let least = min::least::<C>(C::cells(self.table), at);
        self.answers[key] = T::of::<C>(self.sketch, least, at[0]);
    }
}

/// A loop over keys: the seed, the keys, the bytes of the table, the steps.
struct EachKey<'a, K, S>(Seed, &'a [K], usize, S);

impl<K: Key, S: Steps> Kernel for EachKey<'_, K, S> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        batch::each_key(isa, self.0, self.1, self.2, self.3);
    }
}

/// Asks for the counters of a key if they are far, and acts on them. The digest alone is kept in
/// between: where the counters are is found twice, which is cheaper than to remember it.
struct Each<A, C, const D: usize>(A, PhantomData<C>);

impl<A: Act<C>, C: Cell, const D: usize> Steps for Each<A, C, D> {
    type Place = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn approach(&mut self, digest: Digest, place: &mut Digest) {
        *place = digest;
        let table = self.0.table();
        if table.len() > NEAR {
            self.0.mapping().prefetch::<C, D>(table, digest);
        }
    }

    #[inline(always)]
    fn act(&mut self, key: usize, digest: &Digest) {
        let mut at = [0; D];
        let mapping = self.0.mapping();
        mapping.places::<C, D>(*digest, &mut at);
        let rows = mapping.rows::<D>();
        self.0.act(key, &at[..rows]);
    }
}
