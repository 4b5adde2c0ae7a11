//! Batches for [`Min`]: hash keys, prefetch their counters, then act.
//!
//! Only the digest of a key is kept between the two steps: computing its positions twice is cheaper
//! than storing them. The loops are compiled for each width of counters, and for four rows
//! separately, but once for all types of keys.

use super::{
    cell::{self, Job, Mapping},
    min::{self, Min, Update},
};
use crate::{
    Digest, Estimate, Key, Refused,
    batch::{self, AnyKeys, Batch, CHUNK, Keys, NEAR, Pace, hasher},
    simd::Isa,
};

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
        // If the total has room for all of them, none can be refused.
        match amounts.iter().try_fold(self.total, |total, &amount| min::grown(total, amount)) {
            Ok(total) => {
                self.total = total;
                self.raise_keys(Keys::Any(keys.len(), &hasher(self.seed, keys)), amounts);
            }
            Err(_) => {
                for (i, (key, &amount)) in keys.iter().zip(amounts).enumerate() {
                    self.add(key, amount).unwrap_or_else(|why| refused(i, why));
                }
            }
        }
    }

    /// Adds amounts that are already in the total.
    fn raise_keys(&mut self, keys: AnyKeys<'_>, amounts: &[u64]) {
        struct Loop<'a>(&'a mut Min, AnyKeys<'a>, &'a [u64]);
        impl Job for Loop<'_> {
            type Output = ();
            fn run<const B: usize, const D: usize>(self) {
                let Loop(sketch, keys, amounts) = self;
                let (mapping, update) = (sketch.mapping, sketch.shape.update);
                let table = sketch.memory.bytes_mut();
                let bytes = table.len();
                batch::dispatch(keys, bytes, Add::<B, D> { mapping, update, table, amounts });
            }
        }
        cell::by_shape(self.shape, Loop(self, keys, amounts));
    }

    /// Writes the [`estimate`](Self::estimate) of each key to the same index.
    ///
    /// ```
    /// use sidon::{Estimate, Seed, count::Min, plan};
    ///
    /// let mut counts = Min::new(plan::count::shape(0.001, 0.01)?, Seed(1))?;
    /// counts.add_batch(&[80u16, 443, 80], &[10, 20, 30], &mut |index, why| eprintln!("{index}: {why}"));
    /// let mut estimates = [Estimate::default(); 2];
    /// counts.estimate_batch(&[80u16, 443], &mut estimates);
    /// assert_eq!(estimates.map(|estimate| estimate.value), [40, 20]);
    /// # Ok::<(), sidon::Infeasible>(())
    /// ```
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn estimate_batch<K: Key>(&self, keys: &[K], estimates: &mut [Estimate]) {
        assert_eq!(keys.len(), estimates.len(), "one answer a key");
        let keys = Keys::Any(keys.len(), &hasher(self.seed, keys));
        self.ask(keys, Answers::Estimates(estimates));
    }

    /// Writes the smallest counter of each key to the same index. This is the value of its
    /// estimate, or [`ceiling`](super::min::Shape::ceiling) if that is not an upper bound.
    ///
    /// # Panics
    /// If the two slices differ in length.
    #[doc(hidden)]
    pub fn least_batch<K: Key>(&self, keys: &[K], values: &mut [u64]) {
        assert_eq!(keys.len(), values.len(), "one answer a key");
        self.ask(Keys::Any(keys.len(), &hasher(self.seed, keys)), Answers::Least(values));
    }

    fn ask(&self, keys: AnyKeys<'_>, answers: Answers<'_>) {
        struct Loop<'a>(&'a Min, AnyKeys<'a>, Answers<'a>);
        impl Job for Loop<'_> {
            type Output = ();
            fn run<const B: usize, const D: usize>(self) {
                let Loop(sketch, keys, answers) = self;
                let table = sketch.table();
                batch::dispatch(keys, table.len(), Ask::<B, D> { sketch, table, answers });
            }
        }
        cell::by_shape(self.shape, Loop(self, keys, answers));
    }
}

/// Keeps the digests, and prefetches their counters unless the table is in the cache.
#[inline(always)]
fn locate<const B: usize, const D: usize>(
    mapping: &Mapping,
    table: &[u8],
    digests: &[Digest],
    positions: &mut [Digest],
) {
    if table.len() > NEAR {
        for &digest in digests {
            mapping.prefetch::<B, D>(table, digest);
        }
    }
    positions.copy_from_slice(digests);
}

/// Adds an amount to the counters of each key.
struct Add<'a, const B: usize, const D: usize> {
    mapping: Mapping,
    update: Update,
    table: &'a mut [u8],
    amounts: &'a [u64],
}

impl<const B: usize, const D: usize> Batch for Add<'_, B, D> {
    const PACE: Pace = Pace::USUAL;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        locate::<B, D>(&self.mapping, self.table, digests, positions);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, positions: &[Digest]) {
        let amounts = &self.amounts[first..];
        // The update is the same for all keys, so each has its own loop.
        match self.update {
            Update::Plain => self.raise(Update::Plain, positions, amounts),
            Update::Conservative => self.raise(Update::Conservative, positions, amounts),
        }
    }
}

impl<const B: usize, const D: usize> Add<'_, B, D> {
    #[inline(always)]
    fn raise(&mut self, update: Update, digests: &[Digest], amounts: &[u64]) {
        let (mapping, cells) = (self.mapping, cell::cells_mut::<B>(self.table));
        for (&digest, &amount) in digests.iter().zip(amounts) {
            let mut at = [0; D];
            mapping.places::<B, D>(digest, &mut at);
            min::raise::<B>(cells, &at[..mapping.rows::<D>()], update, amount);
        }
    }
}

/// The answers about keys.
enum Answers<'a> {
    /// The smallest counter of each key.
    Least(&'a mut [u64]),
    /// The estimate of each key.
    Estimates(&'a mut [Estimate]),
}

/// Reads the counters of each key.
struct Ask<'a, const B: usize, const D: usize> {
    sketch: &'a Min,
    table: &'a [u8],
    answers: Answers<'a>,
}

/// The position of a key's first counter, and the smallest of its counters.
#[inline(always)]
fn least<const B: usize, const D: usize>(
    sketch: &Min,
    table: &[u8],
    digest: Digest,
) -> (usize, u64) {
    let (mut at, mapping) = ([0; D], &sketch.mapping);
    mapping.places::<B, D>(digest, &mut at);
    (at[0], min::least::<B>(cell::cells::<B>(table), &at[..mapping.rows::<D>()]))
}

impl<const B: usize, const D: usize> Batch for Ask<'_, B, D> {
    const PACE: Pace = Pace::USUAL;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        locate::<B, D>(&self.sketch.mapping, self.table, digests, positions);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, positions: &[Digest]) {
        let (sketch, table) = (self.sketch, self.table);
        match &mut self.answers {
            Answers::Least(answers) => {
                for (&digest, answer) in positions.iter().zip(&mut answers[first..]) {
                    *answer = least::<B, D>(sketch, table, digest).1;
                }
            }
            // The slack depends on the key's line.
            Answers::Estimates(answers) if sketch.reads_lines() => {
                for (&digest, answer) in positions.iter().zip(&mut answers[first..]) {
                    let (at, least) = least::<B, D>(sketch, table, digest);
                    *answer = sketch.estimate_from::<B>(least, at);
                }
            }
            // Two loops, because one loop would need more registers than there are.
            Answers::Estimates(answers) => {
                let mut values = [0; CHUNK];
                let values = &mut values[..positions.len()];
                for (&digest, value) in positions.iter().zip(&mut *values) {
                    *value = least::<B, D>(sketch, table, digest).1;
                }
                sketch.reading().estimates(values, &mut answers[first..first + positions.len()]);
            }
        }
    }
}
