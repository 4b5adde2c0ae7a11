//! Lookups of 8-bit cells in a few cache lines per key, a line at a time.
//!
//! If one word holds the values that exclude a key, a [`Sieve`](simd::Sieve) tests all cells of a
//! line in parallel. Otherwise the rows of the code test one cell after the other. Most keys never
//! inserted are excluded by their first line.

use super::{admit_table::AdmitTable, mapping::InLines, table::Table};
use crate::{
    Digest, Key, Seed,
    batch::{self, AnyKeys, Batch, Keys, Pace, hasher},
    key::spread,
    simd::{self, Isa, Kernel, LINE, Sieve},
};

/// Looks up each key.
pub(in crate::set) fn contains_keys<K: Key>(
    rows: &AdmitTable,
    table: &Table,
    mapping: InLines,
    seed: Seed,
    keys: &[K],
    found: &mut [bool],
) {
    let (table, typed) = (table.cells.bytes(), Keys::Typed(seed, keys));
    match (&rows.sieve, mapping.lines) {
        // These loops hash a key when they prefetch its lines, so they are compiled for every type
        // of key. With a constant number of lines the compiler unrolls their inner loops.
        (Some(sieve), 1) => {
            simd::dispatch(Sifted::<K, 1> { sieve, table, mapping, keys: typed, found });
        }
        (Some(sieve), 2) => {
            simd::dispatch(Sifted::<K, 2> { sieve, table, mapping, keys: typed, found });
        }
        _ => contains_any(rows, table, mapping, Keys::Any(keys.len(), &hasher(seed, keys)), found),
    }
}

/// [`contains_keys`] for any code and number of lines, compiled once.
fn contains_any(
    rows: &AdmitTable,
    table: &[u8],
    mapping: InLines,
    keys: AnyKeys<'_>,
    found: &mut [bool],
) {
    match &rows.sieve {
        Some(sieve) => {
            simd::dispatch(Sifted::<Digest, 0> { sieve, table, mapping, keys, found });
        }
        None => {
            let lines = table.as_chunks().0;
            batch::dispatch(keys, table.len(), ByRows { rows, lines, mapping, found });
        }
    }
}

/// A loop over keys that tests all cells of a line in parallel. The keys have `LINES` lines each,
/// or any number if that is zero.
struct Sifted<'a, K, const LINES: u32> {
    sieve: &'a Sieve,
    table: &'a [u8],
    mapping: InLines,
    keys: Keys<'a, K>,
    found: &'a mut [bool],
}

impl<K: Key, const LINES: u32> Kernel for Sifted<'_, K, LINES> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Sifted { sieve, table, mut mapping, keys, found } = self;
        if LINES != 0 {
            mapping.lines = LINES;
        }
        let lines = table.as_chunks().0;
        batch::run(isa, keys, table.len(), Sieved { sieve: *sieve, lines, mapping, found });
    }
}

/// Tests all cells of a line in parallel.
struct Sieved<'a> {
    /// A copy, so that the compiler knows that writing `found` does not change it.
    sieve: Sieve,
    lines: &'a [[u8; LINE]],
    mapping: InLines,
    found: &'a mut [bool],
}

impl Batch for Sieved<'_> {
    const PACE: Pace = Pace { singly: true, ..Pace::USUAL };
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        self.mapping.prefetch(self.lines.as_flattened(), digests);
        positions.copy_from_slice(digests);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, positions: &[Digest]) {
        let (sieve, mapping) = (self.sieve, self.mapping);
        for (&digest, found) in positions.iter().zip(&mut self.found[first..]) {
            let mut all = true;
            for (line, word) in mapping.splits(digest) {
                all = all && isa.all_admitted(&self.lines[line], word, &sieve);
            }
            *found = all;
        }
    }
}

/// Tests the cells of a line one after the other.
struct ByRows<'a> {
    rows: &'a AdmitTable,
    lines: &'a [[u8; LINE]],
    mapping: InLines,
    found: &'a mut [bool],
}

/// Whether the `cells` cells that `word` selects in a line all admit their increments.
#[inline(always)]
fn all_admit(
    rows: &AdmitTable,
    increments: u64,
    line: &[u8; LINE],
    mut word: u64,
    cells: u32,
) -> bool {
    let mut all = 1;
    for _ in 0..cells {
        let (cell, fraction) = spread::split_in_line(word, 0, LINE as u64);
        let increment = spread::fraction(fraction, increments);
        all &= rows.admits(line[cell as usize % LINE], increment);
        word = spread::again_in_line(word);
    }
    all & 1 == 1
}

impl Batch for ByRows<'_> {
    const PACE: Pace = Pace::USUAL;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        self.mapping.prefetch(self.lines.as_flattened(), digests);
        positions.copy_from_slice(digests);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, positions: &[Digest]) {
        // Copies, so that the compiler knows that writing `found` does not change them.
        let (mapping, increments) = (self.mapping, self.rows.increments.into());
        for (&digest, found) in positions.iter().zip(&mut self.found[first..]) {
            let mut all = true;
            for (line, word) in mapping.splits(digest) {
                all =
                    all && all_admit(self.rows, increments, &self.lines[line], word, mapping.each);
            }
            *found = all;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Seed,
        set::{Increments, Overflow, Spread, Variable, variable::Shape},
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
                assert_eq!(filter.body.is_asked_by_rows(), by_rows);
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
