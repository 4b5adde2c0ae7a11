//! Lookups of 8-bit cells in a few cache lines per key, a line at a time.
//!
//! If one word holds the values that exclude a key, a [`Sieve`](probe::Sieve) tests all cells of a
//! line in parallel. Otherwise the rows of the code test one cell after the other. Most keys never
//! inserted are excluded by their first line.

use super::{
    batch::{self, NEAR, Steps},
    mapping::InLines,
    rows::Rows,
    table::Table,
};
use crate::{
    Digest, Key, Seed,
    hash::spread,
    probe::{self, Isa, Kernel, LINE, Sieve},
};

/// Looks up each key.
pub(super) fn contains_keys<K: Key>(
    rows: &Rows,
    table: &Table,
    mapping: InLines,
    seed: Seed,
    keys: &[K],
    found: &mut [bool],
) {
    let table = table.cells.bytes();
    match (&rows.sieve, mapping.lines) {
        // These loops hash a key when they prefetch its lines, so they are compiled for every type
        // of key. With a constant number of lines the compiler unrolls their inner loops.
        (Some(sieve), 1) => {
            probe::dispatch(Sifted::<K, 1> { sieve, table, mapping, seed, keys, found });
        }
        (Some(sieve), 2) => {
            probe::dispatch(Sifted::<K, 2> { sieve, table, mapping, seed, keys, found });
        }
        _ => batch::hashed(seed, keys, |first, digests| {
            let found = &mut found[first..first + digests.len()];
            contains_digests(rows, table, mapping, digests, found);
        }),
    }
}

/// [`contains_keys`] for digests, for any code and number of lines.
fn contains_digests(
    rows: &Rows,
    table: &[u8],
    mapping: InLines,
    digests: &[Digest],
    found: &mut [bool],
) {
    probe::dispatch(Lookup { rows, table, mapping, digests, found });
}

/// A loop over keys with `LINES` lines each, which tests all cells of a line in parallel.
struct Sifted<'a, K, const LINES: u32> {
    sieve: &'a Sieve,
    table: &'a [u8],
    mapping: InLines,
    seed: Seed,
    keys: &'a [K],
    found: &'a mut [bool],
}

impl<K: Key, const LINES: u32> Kernel for Sifted<'_, K, LINES> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Sifted { sieve, table, mut mapping, seed, keys, found } = self;
        let ask = Sieved(isa, isa.sieve(sieve, mapping.each));
        mapping.lines = LINES;
        batch::each_key(isa, seed, keys, table.len(), Find::new(ask, table, mapping, found));
    }
}

/// A loop over digests.
struct Lookup<'a> {
    rows: &'a Rows,
    table: &'a [u8],
    mapping: InLines,
    digests: &'a [Digest],
    found: &'a mut [bool],
}

impl Kernel for Lookup<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Lookup { rows, table, mapping, digests, found } = self;
        let (each, any, bytes) = (mapping.each, Seed(0), table.len());
        match &rows.sieve {
            Some(sieve) => {
                let ask = Sieved(isa, isa.sieve(sieve, each));
                batch::each_key(isa, any, digests, bytes, Find::new(ask, table, mapping, found));
            }
            None => {
                let ask = ByRows(rows, each);
                batch::each_key(isa, any, digests, bytes, Find::new(ask, table, mapping, found));
            }
        }
    }
}

/// A test of a line.
trait Ask {
    /// Whether the cells that `word` selects in a line all admit their increments.
    fn all_admit(&self, line: &[u8; LINE], word: u64) -> bool;
}

/// Tests all cells in parallel.
struct Sieved<I: Isa>(I, I::Sieve);

impl<I: Isa> Ask for Sieved<I> {
    #[inline(always)]
    fn all_admit(&self, line: &[u8; LINE], word: u64) -> bool {
        self.0.all_admitted(line, word, &self.1)
    }
}

/// Tests this number of cells one after the other.
struct ByRows<'a>(&'a Rows, u32);

impl Ask for ByRows<'_> {
    #[inline(always)]
    fn all_admit(&self, line: &[u8; LINE], mut word: u64) -> bool {
        let mut all = 1;
        for _ in 0..self.1 {
            let (cell, fraction) = spread::split_in_line(word, 0, LINE as u64);
            let increment = spread::fraction(fraction, self.0.increments.into());
            all &= self.0.admits(line[cell as usize % LINE], increment);
            word = spread::again_in_line(word);
        }
        all & 1 == 1
    }
}

/// Prefetches the lines of a key, and tests its cells.
struct Find<'a, A> {
    ask: A,
    lines: &'a [[u8; LINE]],
    far: bool,
    mapping: InLines,
    found: &'a mut [bool],
}

impl<'a, A: Ask> Find<'a, A> {
    #[inline(always)]
    fn new(ask: A, table: &'a [u8], mapping: InLines, found: &'a mut [bool]) -> Self {
        let (lines, far) = (table.as_chunks().0, table.len() > NEAR);
        Find { ask, lines, far, mapping, found }
    }
}

impl<A: Ask> Steps for Find<'_, A> {
    type Place = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn approach(&mut self, digest: Digest, place: &mut Digest) {
        if self.far {
            self.mapping.prefetch(self.lines.as_flattened(), digest);
        }
        *place = digest;
    }

    #[inline(always)]
    fn act(&mut self, key: usize, digest: &Digest) {
        let mut all = true;
        for i in 0..self.mapping.lines {
            let (line, word) = self.mapping.split(*digest, i);
            all = all && self.ask.all_admit(&self.lines[line], word);
        }
        self.found[key] = all;
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Seed,
        member::{Increments, Overflow, Spread, Variable, variable::Shape},
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
