//! Batches for [`Min`]: hash all keys, prefetch their counters, then act.

use super::{
    cell::{self, Cell, Job, Mapping},
    min::{self, Min, Update},
};
use crate::{
    Digest, Estimate, Key, Refused, Seed,
    member::batch::{self, CHUNK, NEAR, Steps},
    probe::{self, Isa, Kernel},
};
use std::marker::PhantomData;

impl Min {
    /// Adds to each key's count the amount at the same index. `refused` is called with the index of
    /// each key whose amount was not added, as in [`add`](Self::add).
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
            // If the total has room for all of them, none can be refused.
            match amounts.iter().try_fold(self.total, |total, &amount| min::grown(total, amount)) {
                Ok(total) => {
                    self.total = total;
                    self.raise_digests(digests, amounts);
                }
                Err(_) => {
                    for (i, (digest, &amount)) in digests.iter().zip(amounts).enumerate() {
                        self.add(digest, amount).unwrap_or_else(|why| refused(first + i, why));
                    }
                }
            }
        });
    }

    /// Adds amounts that are already in the total.
    fn raise_digests(&mut self, digests: &[Digest], amounts: &[u64]) {
        struct Batch<'a>(&'a mut Min, &'a [Digest], &'a [u64]);
        impl Job for Batch<'_> {
            type Output = ();
            fn run<C: Cell, const D: usize>(self) {
                let Batch(sketch, digests, amounts) = self;
                let (mapping, update) = (sketch.mapping, sketch.shape.update);
                let (table, cells) = (sketch.memory.bytes_mut(), PhantomData::<C>);
                let bytes = table.len();
                let add = Add { mapping, update, table, amounts, cells };
                probe::dispatch(EachKey(digests, bytes, Each::<Add<'_, C>, C, D>(add, cells)));
            }
        }
        cell::by_shape(self.shape, Batch(self, digests, amounts));
    }

    /// Writes the [`estimate`](Self::estimate) of each key to the same index.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn estimate_batch<K: Key>(&self, keys: &[K], estimates: &mut [Estimate]) {
        assert_eq!(keys.len(), estimates.len(), "one answer a key");
        batch::hashed(self.seed, keys, |first, digests| {
            self.estimate_digests(digests, &mut estimates[first..first + digests.len()]);
        });
    }

    /// Writes the smallest counter of each key to the same index. This is the value of its
    /// estimate, or [`ceiling`](super::min::Shape::ceiling) if that is not an upper bound.
    ///
    /// # Panics
    /// If the two slices differ in length.
    #[doc(hidden)]
    pub fn least_batch<K: Key>(&self, keys: &[K], values: &mut [u64]) {
        assert_eq!(keys.len(), values.len(), "one answer a key");
        batch::hashed(self.seed, keys, |first, digests| {
            self.ask(digests, &mut values[first..first + digests.len()]);
        });
    }

    fn estimate_digests(&self, digests: &[Digest], estimates: &mut [Estimate]) {
        if self.reads_lines() {
            return self.ask(digests, estimates);
        }
        // Two loops, because one loop would need more registers than there are.
        let reading = self.reading();
        let mut values = [0; CHUNK];
        for (digests, estimates) in digests.chunks(CHUNK).zip(estimates.chunks_mut(CHUNK)) {
            let values = &mut values[..digests.len()];
            self.ask(digests, values);
            reading.estimates(values, estimates);
        }
    }

    /// Compiled once for each type of answer.
    #[inline(never)]
    fn ask<T: Answer>(&self, digests: &[Digest], answers: &mut [T]) {
        struct Batch<'a, T>(&'a [Digest], Ask<'a, T>);
        impl<T: Answer> Job for Batch<'_, T> {
            type Output = ();
            fn run<C: Cell, const D: usize>(self) {
                let Batch(digests, ask) = self;
                let (bytes, cells) = (ask.table.len(), PhantomData::<C>);
                probe::dispatch(EachKey(digests, bytes, Each::<Ask<'_, T>, C, D>(ask, cells)));
            }
        }
        let ask = Ask { sketch: self, table: self.table(), answers };
        cell::by_shape(self.shape, Batch(digests, ask));
    }
}

/// The action on the counters of each key. A trait instead of a closure, so that it is inlined into
/// the loop and compiled for its instruction set.
trait Act<C: Cell> {
    fn mapping(&self) -> &Mapping;
    fn table(&self) -> &[u8];
    fn act(&mut self, key: usize, at: &[usize]);
}

struct Add<'a, C> {
    mapping: Mapping,
    update: Update,
    table: &'a mut [u8],
    amounts: &'a [u64],
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
        min::raise::<C>(C::cells_mut(self.table), at, self.update, self.amounts[key]);
    }
}

/// An answer about a key.
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

/// A loop over keys: their digests, the bytes of the table, the steps.
struct EachKey<'a, S>(&'a [Digest], usize, S);

impl<S: Steps> Kernel for EachKey<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let EachKey(digests, bytes, mut steps) = self;
        if bytes > NEAR {
            // The digests are already hashed, so the seed has no effect.
            return batch::each_key(isa, Seed(0), digests, bytes, steps);
        }
        // The table is in the cache, so there is nothing to prefetch.
        let mut place = S::NOWHERE;
        for (i, &digest) in digests.iter().enumerate() {
            steps.approach(digest, &mut place);
            steps.act(i, &place);
        }
    }
}

/// Prefetches the counters of a key if the table is not in the cache, and acts on them. Only the
/// digest is kept in between: computing the positions twice is cheaper than storing them.
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
