//! Cells of eight bits in a few lines of a key, a line at a time.
//!
//! Where one word says which values exclude a key, all cells of a line are looked at side by side: a
//! [`Sieve`](probe::Sieve). Otherwise one cell after the other is, by its row. Strangers mostly end in
//! their first line.

use super::{
    batch::{CHUNK, GROUP, Groups, Hashes, NEAR, Pace, by_groups},
    mapping::InLines,
    rows::Rows,
    table::Table,
};
use crate::{
    Digest,
    hash::spread,
    probe::{self, Isa, Kernel, LINE},
};

/// Answers for each key.
pub(super) fn contains_keys(
    rows: &Rows,
    table: &Table,
    mapping: InLines,
    keys: &dyn Hashes,
    found: &mut [bool],
) {
    probe::dispatch(Lookup { rows, table: table.cells.bytes(), mapping, keys, found });
}

struct Lookup<'a> {
    rows: &'a Rows,
    table: &'a [u8],
    mapping: InLines,
    keys: &'a dyn Hashes,
    found: &'a mut [bool],
}

impl Kernel for Lookup<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let (rows, each) = (self.rows, self.mapping.each);
        match (&rows.sieve, self.mapping.lines) {
            // A number that is known lets the compiler do without loops.
            (Some(sieve), 1) => self.ask::<1, _, I>(isa, Sieved(isa, isa.sieve(sieve, each))),
            (Some(sieve), 2) => self.ask::<2, _, I>(isa, Sieved(isa, isa.sieve(sieve, each))),
            (Some(sieve), _) => self.ask::<0, _, I>(isa, Sieved(isa, isa.sieve(sieve, each))),
            (None, _) => self.ask::<0, _, I>(isa, ByRows(rows, each)),
        }
    }
}

impl Lookup<'_> {
    /// In so many lines a key, or in any number of them if it is zero.
    #[inline(always)]
    fn ask<const LINES: u32, A: Ask, I: Isa>(self, isa: I, ask: A) {
        let Lookup { table, mut mapping, keys, found, .. } = self;
        if LINES > 0 {
            mapping.lines = LINES;
        }
        let bytes = table.len();
        by_groups::<{ 2 * CHUNK }, _, _>(isa, keys, bytes, Find { ask, table, mapping, found });
    }
}

/// What is asked of a line.
trait Ask {
    /// Whether the cells that `word` picks in a line all admit their increments.
    fn all_admit(&self, line: &[u8; LINE], word: u64) -> bool;
}

/// Side by side.
struct Sieved<I: Isa>(I, I::Sieve);

impl<I: Isa> Ask for Sieved<I> {
    #[inline(always)]
    fn all_admit(&self, line: &[u8; LINE], word: u64) -> bool {
        self.0.all_admitted(line, word, &self.1)
    }
}

/// One after the other, so many cells.
struct ByRows<'a>(&'a Rows, u32);

impl Ask for ByRows<'_> {
    #[inline(always)]
    fn all_admit(&self, line: &[u8; LINE], mut word: u64) -> bool {
        let mut all = 1;
        for _ in 0..self.1 {
            let (cell, fraction) = spread::split(Digest(word), 0, LINE as u64);
            let increment = spread::fraction(fraction, self.0.increments.into());
            all &= self.0.admits(line[cell as usize % LINE], increment);
            word = spread::again(word);
        }
        all & 1 == 1
    }
}

/// Asks for the lines of keys, and looks at their cells.
struct Find<'a, A> {
    ask: A,
    table: &'a [u8],
    mapping: InLines,
    found: &'a mut [bool],
}

/// A table of this many bytes is not in the core's own cache.
const SHARED: usize = 4 << 20;

impl<A: Ask> Groups for Find<'_, A> {
    const PACE: Pace = Pace { ask: GROUP, act: CHUNK, lag: CHUNK, from: SHARED };
    type Place = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn ask<I: Isa>(&mut self, _: I, digests: &[Digest], places: &mut [Digest]) {
        places.copy_from_slice(digests);
        if self.table.len() > NEAR {
            for &digest in digests {
                self.mapping.prefetch(self.table, digest);
            }
        }
    }

    #[inline(always)]
    fn act<I: Isa>(&mut self, _: I, first: usize, digests: &[Digest]) {
        let lines = self.table.as_chunks::<LINE>().0;
        for (&digest, found) in digests.iter().zip(&mut self.found[first..]) {
            let mut all = true;
            for i in 0..self.mapping.lines {
                let (line, word) = self.mapping.split(digest, i);
                all = all && self.ask.all_admit(&lines[line], word);
            }
            *found = all;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Seed,
        member::{Increments, Overflow, Spread, Variable, variable::Shape},
        ops::{Contains, Insert},
    };

    #[test]
    fn batches_answer_as_the_code_does_one_by_one() {
        let sets = [
            (Increments::UNIT, true),
            (Increments::of([3, 5]), true),
            (Increments::of([31, 47, 60]), false),
            (Increments::range(4).unwrap(), true),
            (Increments::of([8, 12, 14, 15]), true),
            (Increments::range(8).unwrap(), true),
        ];
        let keys: Vec<u64> = (0..20_000).collect();
        for (increments, by_rows) in sets {
            let mut passed = 0;
            for (lines, hashes) in [(1, 1), (1, 7), (1, 9), (2, 6), (2, 8), (2, 10), (3, 12)] {
                let (overflow, spread) = (Overflow::Pin, Spread::Lines(lines));
                let counters = 64 * 24 * u64::from(hashes);
                let shape = Shape { counters, hashes, width: 8, increments, overflow, spread };
                let mut filter = Variable::new(shape, Seed(6)).unwrap();
                assert_eq!(filter.is_asked_by_rows(), by_rows);
                for key in &keys[..2_000] {
                    filter.insert(key).unwrap();
                }
                let mut found = vec![false; keys.len()];
                filter.contains_batch(&keys, &mut found);
                passed += found[2_000..].iter().filter(|&&found| found).count();
                for (key, found) in keys.iter().zip(found) {
                    assert_eq!(found, filter.contains(key), "{key} in {shape:?}");
                }
            }
            assert!((100..7 * 17_000).contains(&passed), "{passed} strangers of {increments:?}");
        }
    }
}
