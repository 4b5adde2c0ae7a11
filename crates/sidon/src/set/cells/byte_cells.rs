//! Lookups of cells anywhere in the table, by the [`AdmitTable`] of a code.
//!
//! The positions of cells in flight are not stored: a position is one multiplication, done once for
//! the prefetch and again for the read. Most keys that were never inserted are excluded by their
//! first or second cell. In a table much larger than the core's L2 cache, the other cells are
//! prefetched only after those passed. In a smaller table they are read at once.

use super::{
    admit_table::AdmitTable,
    table::{ANY, Table, Width},
};
use crate::{
    Digest,
    batch::{self, AnyKeys, Batch, NEAR, Pace},
    key::spread,
    simd::Isa,
};

/// ByteCells that are read first, without a branch between them.
const FIRST: usize = 2;
/// In tables of at least this many bytes, all cells of a key are prefetched before they are read.
const DEEP: usize = 6 << 20;

/// Looks up each key. Compiled once for all types of keys.
pub(in crate::set) fn contains_keys(
    rows: &AdmitTable,
    table: &Table,
    keys: AnyKeys<'_>,
    found: &mut [bool],
) {
    match table.cells.width() {
        7 => contains_of(Width::<7>(7), rows, table, keys, found),
        8 => contains_of(Width::<8>(8), rows, table, keys, found),
        width => contains_of(Width::<ANY>(width), rows, table, keys, found),
    }
}

fn contains_of<const W: u32>(
    width: Width<W>,
    rows: &AdmitTable,
    table: &Table,
    keys: AnyKeys<'_>,
    found: &mut [bool],
) {
    let (bytes, cells) = (table.cells.bytes(), table.cells.cells());
    let (increments, hashes) = (u64::from(rows.increments), table.hashes);
    if increments.is_power_of_two() {
        let increments = increments.ilog2().into();
        let cells = ByteCells::<W, true> { width, rows, increments, bytes, cells, hashes };
        batch::dispatch(keys, bytes.len(), Ask { cells, found });
    } else {
        let cells = ByteCells::<W, false> { width, rows, increments, bytes, cells, hashes };
        batch::dispatch(keys, bytes.len(), Ask { cells, found });
    }
}

/// The values that prefetching and reading cells need. With `POWER`, there are `2^increments`
/// increments, otherwise `increments`.
#[derive(Clone, Copy)]
struct ByteCells<'a, const W: u32, const POWER: bool> {
    width: Width<W>,
    rows: &'a AdmitTable,
    increments: u64,
    bytes: &'a [u8],
    cells: u64,
    hashes: usize,
}

/// Looks up each key.
struct Ask<'a, const W: u32, const POWER: bool> {
    cells: ByteCells<'a, W, POWER>,
    found: &'a mut [bool],
}

impl<const W: u32, const POWER: bool> Batch for Ask<'_, W, POWER> {
    const PACE: Pace = Pace::CHUNKS_AHEAD;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        if self.cells.bytes.len() > NEAR {
            for &Digest(word) in digests {
                self.cells.prefetch(word, FIRST);
            }
        }
        positions.copy_from_slice(digests);
    }

    #[inline(always)]
    fn read_ahead<I: Isa>(&mut self, _: I, first: usize, positions: &mut [Digest]) {
        let Ask { cells, found } = self;
        let (cells, others) = (*cells, cells.hashes.saturating_sub(FIRST));
        let answers = positions.iter_mut().zip(&mut found[first..]);
        if cells.bytes.len() < DEEP {
            for (&mut Digest(word), found) in answers {
                let (all, next) = cells.first_admit(word);
                *found = all && cells.all_admit(next, others);
            }
        } else {
            for (&mut Digest(word), found) in answers {
                let (all, next) = cells.first_admit(word);
                *found = all;
                if all {
                    cells.prefetch(next, others);
                }
            }
        }
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, positions: &[Digest]) {
        if self.cells.bytes.len() < DEEP {
            return;
        }
        let others = self.cells.hashes.saturating_sub(FIRST);
        let Ask { cells, found } = self;
        for (&Digest(word), found) in positions.iter().zip(&mut found[first..]) {
            let next = (0..FIRST).fold(word, |word, _| spread::again(word));
            *found = *found && cells.all_admit(next, others);
        }
    }
}

impl<const W: u32, const POWER: bool> ByteCells<'_, W, POWER> {
    /// Prefetches the cells of `cells` words, starting with `word`.
    #[inline(always)]
    fn prefetch(&self, mut word: u64, cells: usize) {
        for _ in 0..cells {
            self.width.prefetch(self.bytes, spread::fraction(word, self.cells));
            word = spread::again(word);
        }
    }

    /// One in the lowest bit if the cell of this word admits its increment.
    #[inline(always)]
    fn admits(&self, word: u64) -> u8 {
        let (cell, fraction) = spread::split(Digest(word), 0, self.cells);
        let value = self.width.read(self.bytes, cell);
        self.rows.admits(value as u8, self.increment(fraction))
    }

    /// The increment that the fraction of a position selects. The upper `n` bits select one of `2^n`
    /// increments.
    #[inline(always)]
    fn increment(&self, fraction: u64) -> u64 {
        if POWER {
            (fraction >> 1) >> (63 - self.increments)
        } else {
            spread::fraction(fraction, self.increments)
        }
    }

    /// Whether the first cells admit their increments, and the word after theirs.
    #[inline(always)]
    fn first_admit(&self, mut word: u64) -> (bool, u64) {
        let mut all = self.admits(word);
        if self.hashes >= FIRST {
            for _ in 1..FIRST {
                word = spread::again(word);
                all &= self.admits(word);
            }
        }
        (all & 1 == 1, spread::again(word))
    }

    /// Whether the cells of `cells` words, starting with `word`, all admit their increments.
    #[inline(always)]
    fn all_admit(&self, mut word: u64, cells: usize) -> bool {
        for _ in 0..cells {
            if self.admits(word) & 1 == 0 {
                return false;
            }
            word = spread::again(word);
        }
        true
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
            Increments::UNIT,
            Increments::of([3, 4, 5]),
            Increments::range(4).unwrap(),
            Increments::of([8, 12, 14, 15]),
            Increments::of([31, 47, 60]),
            Increments::range(16).unwrap(),
        ];
        let keys: Vec<u64> = (0..20_000).collect();
        for increments in sets {
            let mut passed = 0;
            // Tables within and beyond the core's own cache.
            for (hashes, width, counters) in
                [(1, 7, 3_000), (2, 9, 6_000), (5, 7, 12_001), (10, 8, 700_001), (3, 16, 600_000)]
            {
                let (overflow, spread) = (Overflow::Pin, Spread::Anywhere);
                let shape = Shape { counters, hashes, width, increments, overflow, spread };
                let mut filter = Variable::new(shape, Seed(6)).unwrap();
                let members = (counters / 4).min(15_000) as usize;
                for key in &keys[..members] {
                    filter.insert(key).unwrap();
                }
                let mut found = vec![false; keys.len()];
                filter.contains_batch(&keys, &mut found);
                passed += found[members..].iter().filter(|&&found| found).count();
                for (key, found) in keys.iter().zip(found) {
                    assert_eq!(found, filter.contains(key), "{key} in {shape:?}");
                }
            }
            assert!(passed > 100, "{passed} strangers of {increments:?}");
        }
    }
}
