//! Random operations on every structure of the library, to test the law of saved bytes.
//!
//! A structure is of a small shape, and its keys are of a small universe. So positions coincide,
//! counters reach their ceilings, tables fill, and keys that were never inserted pass and are
//! removed. The fuzz targets use this module, too: there, the fuzzer's input draws the numbers.

mod counts;
mod detection;
mod sets;
mod states;
mod zones;

use sidon::{Infeasible, Refused, Seed, saved::Save};
use std::fmt::Debug;

/// The seed of all structures.
pub(crate) const SEED: Seed = Seed(0x5eed);

/// Gives a number below a bound, which is not zero.
pub(crate) type Draw<'a> = dyn FnMut(u64) -> u64 + 'a;

/// A structure that can be built, changed and compared.
pub(crate) trait Operate: Save {
    /// An empty structure of a small shape.
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible>;

    /// Performs one operation. `other` is a structure of the same kind, for merges.
    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused>;

    /// Takes everything out.
    fn wipe(&mut self);

    /// Answers about a few keys, and all statistics.
    fn answers(&self) -> impl PartialEq + Debug;
}

/// The keys of an operation: those from `MEMBERS` on are only looked up and removed.
const UNIVERSE: u64 = 40;
const MEMBERS: u64 = 24;

/// A key to insert.
fn member(draw: &mut Draw<'_>) -> u64 {
    draw(MEMBERS)
}

/// A key to look up or to remove, which may never have been inserted.
fn any_key(draw: &mut Draw<'_>) -> u64 {
    draw(UNIVERSE)
}

/// Some keys for a batch.
fn keys(draw: &mut Draw<'_>, universe: u64) -> Vec<u64> {
    (0..draw(12)).map(|_| draw(universe)).collect()
}

/// One of the given values.
fn one_of<T: Copy>(draw: &mut Draw<'_>, values: &[T]) -> T {
    values[draw(values.len() as u64) as usize]
}

/// Performs a batch. Refusals of some of its keys are no refusal of the batch.
fn batch(of: impl FnOnce(&mut dyn FnMut(usize, Refused))) -> Result<(), Refused> {
    of(&mut |_, _| {});
    Ok(())
}

/// Reads the structure's bytes back, and asserts that bytes and answers are the same: the law.
pub(crate) fn is_read_back<S: Operate>(structure: &S) -> S {
    let bytes = structure.to_bytes();
    let again = match S::from_bytes(&bytes, SEED) {
        Ok(again) => again,
        Err(why) => panic!("kind {}: its own bytes are refused: {why}", S::KIND),
    };
    assert!(again.to_bytes() == bytes, "kind {}: read, but written otherwise", S::KIND);
    assert_eq!(again.answers(), structure.answers(), "kind {}", S::KIND);
    again
}

/// Performs operations on two structures of one shape. A refused one must change nothing.
pub(crate) fn sequence<S: Operate>(pair: &mut [S; 2], steps: u64, draw: &mut Draw<'_>) {
    for _ in 0..steps {
        let [one, two] = pair;
        let (own, other) = if draw(3) == 0 { (two, &*one) } else { (one, &*two) };
        if draw(80) == 0 {
            own.wipe();
            continue;
        }
        let before = own.to_bytes();
        if let Err(why) = own.operate(other, draw) {
            assert!(own.to_bytes() == before, "kind {}: refused, yet changed: {why}", S::KIND);
        }
    }
}
