//! A table of what a code admits: for each value of a cell a row with one bit per increment.
//!
//! A test is then two reads, the value and its row. Codes for cells of up to eight bits and up to
//! eight increments have rows.

use super::{byte_cells, byte_lines, increment_code::IncrementCode, table::Table};
use crate::{
    Key, Seed,
    batch::{Keys, hasher},
    key::spread,
    simd::{SIEVED_MAX, Sieve},
};

/// The rows of a code.
#[derive(Debug, Clone)]
pub(in crate::set) struct AdmitTable {
    /// Bit `i` of row `value`: whether the cell admits increment `i`.
    rows: [u8; 256],
    /// The number of increments.
    pub(in crate::set) increments: u32,
    /// A faster test of cells in lines, for codes that allow it.
    pub(in crate::set) sieve: Option<Sieve>,
}

impl AdmitTable {
    /// The rows of a code. `None` if it has none. Cells in lines must be bytes, with 1, 2, 4 or 8
    /// increments.
    pub(in crate::set) fn of<C: IncrementCode>(code: &C, table: &Table) -> Option<Box<Self>> {
        let (marks, width) = (code.marks(), table.cells.width());
        let octets = width == 8 && marks.len().is_power_of_two();
        if width > 8 || marks.len() > 8 || (table.in_lines.is_some() && !octets) {
            return None;
        }
        let mut rows = [0; 256];
        for (value, row) in (0..).zip(&mut rows[..1 << width]) {
            for (i, &mark) in marks.iter().enumerate() {
                *row |= u8::from(code.admits(value, mark)) << i;
            }
        }
        Some(Box::new(AdmitTable {
            rows,
            increments: marks.len() as u32,
            sieve: sieve(code, table),
        }))
    }

    /// One in the lowest bit if a cell of this value admits the increment.
    #[inline(always)]
    pub(in crate::set) fn admits(&self, value: u8, increment: u64) -> u8 {
        self.rows[usize::from(value)] >> (increment % 8)
    }

    /// Looks up each key.
    pub(in crate::set) fn contains_keys<K: Key>(
        &self,
        table: &Table,
        seed: Seed,
        keys: &[K],
        found: &mut [bool],
    ) {
        match table.in_lines {
            Some(mapping) => byte_lines::contains_keys(self, table, mapping, seed, keys, found),
            None => {
                let keys = Keys::Any(keys.len(), &hasher(seed, keys));
                byte_cells::contains_keys(self, table, keys, found);
            }
        }
    }
}

/// The sieve of cells in lines, if one 32-bit word holds the excluded values.
fn sieve<C: IncrementCode>(code: &C, table: &Table) -> Option<Sieve> {
    let (excluded, marks) = (u32::try_from(code.excluded()?).ok()?, code.marks());
    let cells = table.in_lines?.each;
    if excluded > u32::MAX / 2 || cells > SIEVED_MAX {
        return None;
    }
    // The factors that spread the cells of a line.
    let mut factors = [1; SIEVED_MAX as usize];
    for i in 1..factors.len() {
        factors[i] = spread::again_in_line(factors[i - 1]);
    }
    let mark = |three_bits: usize| marks[three_bits * marks.len() / 8].into();
    Some(Sieve { cells, factors, marks: std::array::from_fn(mark), excluded })
}
