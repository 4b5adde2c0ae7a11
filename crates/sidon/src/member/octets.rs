//! Cells of eight bits in a few lines of a key, asked by a table of all values.
//!
//! What a code admits is a row of bits, one for each increment, for each of the 256 values of a cell. A
//! question is then two reads a cell: its value, and the row of that. Strangers mostly end in
//! their first line.

use super::{
    batch::{self, NEAR, Steps},
    code::Code,
    mapping::InLines,
    table::Table,
};
use crate::{
    Digest, Seed,
    hash::spread,
    probe::{self, Isa, Kernel, LINE},
};

/// The rows of a code.
#[derive(Debug, Clone)]
pub(super) struct Octets {
    /// Bit `i` of row `value`: whether the cell admits increment `i`.
    rows: [u8; 256],
    /// There are two to this many increments.
    log_increments: u32,
}

impl Octets {
    /// The rows, if cells are bytes in lines and there are 1, 2, 4 or 8 increments.
    pub(super) fn of<C: Code>(code: &C, table: &Table) -> Option<Box<Self>> {
        let marks = code.marks();
        let fits = table.cells.width() == 8 && marks.len().is_power_of_two() && marks.len() <= 8;
        if !fits || table.in_lines.is_none() {
            return None;
        }
        let mut rows = [0; 256];
        for (value, row) in (0..).zip(&mut rows) {
            for (i, &mark) in marks.iter().enumerate() {
                *row |= u8::from(code.admits(value, mark)) << i;
            }
        }
        Some(Box::new(Octets { rows, log_increments: marks.len().ilog2() }))
    }

    /// Whether the cells that `word` picks in a line all admit their increments, as
    /// [`Coded`](super::coded::Coded) places them.
    #[inline(always)]
    fn all_admit(&self, line: &[u8; LINE], word: u64, cells: u32) -> bool {
        let mut all = 1;
        for i in 0..cells {
            let (cell, fraction) = spread::split(Digest(word), i, LINE as u64);
            // The upper bits of the fraction, none of them if there is one increment.
            let which = (fraction >> 1) >> (63 - self.log_increments);
            all &= self.rows[usize::from(line[cell as usize % LINE])] >> which;
        }
        all & 1 == 1
    }

    /// Answers for each digest.
    pub(super) fn contains_batch(&self, table: &Table, digests: &[Digest], found: &mut [bool]) {
        let Some(mapping) = table.in_lines else {
            unreachable!("there are rows for lines alone");
        };
        let (octets, table) = (self, table.cells.bytes());
        probe::dispatch(Lookup { octets, table, mapping, digests, found });
    }
}

struct Lookup<'a> {
    octets: &'a Octets,
    table: &'a [u8],
    mapping: InLines,
    digests: &'a [Digest],
    found: &'a mut [bool],
}

impl Kernel for Lookup<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        // A number that is known lets the compiler do without loops.
        match (self.mapping.lines, self.mapping.each) {
            (2, 3) => self.run_with::<3, I>(isa),
            (2, 4) => self.run_with::<4, I>(isa),
            (2, 5) => self.run_with::<5, I>(isa),
            _ => self.run_with::<0, I>(isa),
        }
    }
}

impl Lookup<'_> {
    /// With `EACH` cells in each of two lines, or any number in any if `EACH` is zero.
    #[inline(always)]
    fn run_with<const EACH: u32, I: Isa>(self, isa: I) {
        let (digests, bytes) = (self.digests, self.table.len());
        // Digests are keys that have been hashed: the seed is of no account.
        let steps = Find::<EACH> { far: bytes > NEAR, lookup: self };
        batch::each_key(isa, Seed(0), digests, bytes, steps);
    }
}

struct Find<'a, const EACH: u32> {
    lookup: Lookup<'a>,
    far: bool,
}

impl<const EACH: u32> Steps for Find<'_, EACH> {
    type Place = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn approach(&mut self, digest: Digest, place: &mut Digest) {
        if self.far {
            self.lookup.mapping.prefetch(self.lookup.table, digest);
        }
        *place = digest;
    }

    #[inline(always)]
    fn act(&mut self, key: usize, digest: &Digest) {
        let Lookup { octets, table, mapping, found, .. } = &mut self.lookup;
        let (lines, each) = if EACH > 0 { (2, EACH) } else { (mapping.lines, mapping.each) };
        let mut all = true;
        for i in 0..lines {
            let (offset, word) = mapping.line(*digest, i);
            let Some(line) = table[offset..].first_chunk::<LINE>() else {
                unreachable!("every line is whole");
            };
            all = all && octets.all_admit(line, word, each);
        }
        found[key] = all;
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
            for (lines, hashes) in [(1, 1), (1, 7), (2, 6), (2, 8), (2, 10), (3, 12)] {
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
            assert!((100..6 * 17_000).contains(&passed), "{passed} strangers of {increments:?}");
        }
    }
}
