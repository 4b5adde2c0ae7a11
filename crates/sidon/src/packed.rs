//! An array of integers of a few bits each, without gaps.
//!
//! ```text
//! bytes    |76543210|FEDCBA98|...          little-endian words of 64 bits
//! cell i      bits i*width .. (i+1)*width, lowest first
//! ```
//! A cell is read from the aligned word that holds its first bit. The next word is read only if the
//! cell continues there. A width that divides 64 therefore reads one word, and never two cache
//! lines.

use crate::{
    error::{Infeasible, Refused},
    memory::Memory,
};

/// The widest cell.
pub(crate) const WIDTH_MAX: u32 = 32;

/// A fixed number of cells of 1 to [`WIDTH_MAX`] bits, zero at first.
#[derive(Debug)]
pub(crate) struct Packed {
    memory: Memory,
    cells: u64,
    width: u32,
}

impl Packed {
    /// `cells` cells of `width` bits, all zero.
    pub(crate) fn zeroed(cells: u64, width: u32) -> Result<Self, Infeasible> {
        Infeasible::unless_within("width", width.into(), 1, WIDTH_MAX.into())?;
        // One word more than the cells need, so that the word after the last cell can be read.
        let bytes = Self::payload_bytes(cells, width)?
            .checked_add(8)
            .ok_or(Infeasible::Memory { bytes: u64::MAX })?;
        Ok(Packed { memory: Memory::zeroed(bytes)?, cells, width })
    }

    /// The bytes of `cells` cells of `width` bits, or `u64::MAX` if there are more.
    pub(crate) fn bytes_of(cells: u64, width: u32) -> u64 {
        Packed::payload_bytes(cells, width).unwrap_or(u64::MAX)
    }

    /// The bytes of `cells` cells of `width` bits. An error if they have 2^64 bits or more.
    pub(crate) fn payload_bytes(cells: u64, width: u32) -> Result<u64, Infeasible> {
        let bits = cells.checked_mul(width.into());
        bits.map(|bits| bits.div_ceil(8)).ok_or(Infeasible::Memory { bytes: u64::MAX })
    }

    /// The number of cells.
    pub(crate) fn cells(&self) -> u64 {
        self.cells
    }

    /// The bits of a cell.
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// The largest value a cell holds.
    pub(crate) fn ceiling(&self) -> u64 {
        ceiling(self.width)
    }

    /// The bytes of the cells. Bits beyond the last cell are zero.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.memory.bytes()[..self.payload_len()]
    }

    /// Loads the bytes of [`payload`](Self::payload). Returns `false` and changes nothing if the
    /// length differs or a bit beyond the cells is set.
    pub(crate) fn load(&mut self, payload: &[u8]) -> bool {
        let used = (self.cells * u64::from(self.width)) % 8;
        let beyond = match payload.last() {
            Some(last) if used != 0 => last >> used,
            _ => 0,
        };
        if payload.len() != self.payload_len() || beyond != 0 {
            return false;
        }
        let own = self.payload_len();
        self.memory.bytes_mut()[..own].copy_from_slice(payload);
        true
    }

    /// All bytes, for [`read()`].
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// All bytes, for [`write()`].
    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }

    /// The value of a cell.
    ///
    /// # Panics
    /// If there is no such cell.
    #[inline]
    pub(crate) fn get(&self, cell: u64) -> u64 {
        assert!(cell < self.cells, "cell {cell} of {}", self.cells);
        read(self.bytes(), self.width, cell)
    }

    /// Sets a cell to `value`. A value above the ceiling is refused.
    ///
    /// # Panics
    /// If there is no such cell.
    #[inline]
    pub(crate) fn set(&mut self, cell: u64, value: u64) -> Result<(), Refused> {
        assert!(cell < self.cells, "cell {cell} of {}", self.cells);
        let ceiling = self.ceiling();
        if value > ceiling {
            return Err(Refused::Overflow { ceiling });
        }
        let width = self.width;
        write(self.bytes_mut(), width, cell, value);
        Ok(())
    }

    /// The number of cells that are not zero.
    pub(crate) fn occupied(&self) -> u64 {
        if !64u32.is_multiple_of(self.width) {
            return self.iter().filter(|&value| value != 0).count() as u64;
        }
        // The highest bit of each cell of a word.
        let high = (u64::MAX / self.ceiling()) << (self.width - 1);
        let words = self.bytes().chunks_exact(8);
        words
            .map(|word| {
                let word = u64::from_le_bytes(word.try_into().expect("a chunk of eight bytes"));
                // A carry reaches a cell's highest bit if any lower bit is set.
                let carried = ((word & !high) + !high) | word;
                u64::from((carried & high).count_ones())
            })
            .sum()
    }

    /// The values in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (bytes, width) = (self.bytes(), self.width);
        (0..self.cells).map(move |cell| read(bytes, width, cell))
    }

    /// Sets every cell to zero.
    pub(crate) fn clear(&mut self) {
        self.bytes_mut().fill(0);
    }

    /// An independent copy.
    pub(crate) fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Packed { memory: self.memory.try_clone()?, ..*self })
    }

    fn payload_len(&self) -> usize {
        (self.cells * u64::from(self.width)).div_ceil(8) as usize
    }
}

/// The largest value of a cell of `width` bits.
const fn ceiling(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// The value of a cell, read from the [`bytes`](Packed::bytes) of cells of width `width`.
#[inline(always)]
pub(crate) fn read(bytes: &[u8], width: u32, cell: u64) -> u64 {
    let bit = cell * u64::from(width);
    let (word, shift) = ((bit / 64) as usize * 8, (bit % 64) as u32);
    let mut value = load(bytes, word) >> shift;
    if shift + width > 64 {
        value |= load(bytes, word + 8) << (64 - shift);
    }
    value & ceiling(width)
}

/// Sets a cell to `value`, which must fit `width`, and returns its previous value.
#[inline(always)]
pub(crate) fn write(bytes: &mut [u8], width: u32, cell: u64, value: u64) -> u64 {
    debug_assert!(value <= ceiling(width), "{value} needs more than {width} bits");
    let bit = cell * u64::from(width);
    let (word, shift) = ((bit / 64) as usize * 8, (bit % 64) as u32);
    let first = load(bytes, word);
    let mut old = first >> shift;
    store(bytes, word, first & !(ceiling(width) << shift) | value << shift);
    if shift + width > 64 {
        let (second, done) = (load(bytes, word + 8), 64 - shift);
        old |= second << done;
        store(bytes, word + 8, second & !(ceiling(width) >> done) | value >> done);
    }
    old & ceiling(width)
}

#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a slice of eight bytes"))
}

#[inline(always)]
fn store(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Set(u64, u64),
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let amount = prop_oneof![0u64..4, any::<u64>(), Just(u64::MAX)];
        let step = prop_oneof![
            10 => (any::<u64>(), amount).prop_map(|(cell, value)| Step::Set(cell, value)),
            1 => Just(Step::Clear),
        ];
        prop::collection::vec(step, 0..200)
    }

    /// Applies a write to the exact reference. Returns `false` if it is refused.
    fn twin(values: &mut [u64], ceiling: u64, step: &Step) -> bool {
        let (cell, value) = match *step {
            Step::Set(cell, value) => (cell, value),
            Step::Clear => {
                values.fill(0);
                return true;
            }
        };
        if value <= ceiling {
            values[cell as usize] = value;
        }
        value <= ceiling
    }

    proptest! {
        #[test]
        fn packed_cells_are_a_vector_of_integers(
            width in 1..=WIDTH_MAX, cells in 1u64..150, steps in steps(),
        ) {
            let mut packed = Packed::zeroed(cells, width).unwrap();
            let mut values = vec![0; cells as usize];
            let ceiling = packed.ceiling();
            for step in steps {
                let step = match step {
                    // Half the values fit the width.
                    Step::Set(cell, value) if value % 2 == 0 =>
                        Step::Set(cell % cells, value & ceiling),
                    Step::Set(cell, value) => Step::Set(cell % cells, value),
                    Step::Clear => Step::Clear,
                };
                let done = match step {
                    Step::Set(cell, value) => packed.set(cell, value).is_ok(),
                    Step::Clear => {
                        packed.clear();
                        true
                    }
                };
                prop_assert_eq!(done, twin(&mut values, ceiling, &step), "{:?}", step);
                prop_assert!(packed.iter().eq(values.iter().copied()), "after {:?}", step);
                let occupied = values.iter().filter(|&&value| value != 0).count() as u64;
                prop_assert_eq!(packed.occupied(), occupied);
            }
            let mut copy = Packed::zeroed(cells, width).unwrap();
            prop_assert!(copy.load(packed.payload()));
            prop_assert!(copy.iter().eq(values.iter().copied()));
        }
    }

    #[test]
    fn writing_returns_what_was_there() {
        for width in 1..=WIDTH_MAX {
            let mut packed = Packed::zeroed(67, width).unwrap();
            let top = packed.ceiling();
            for cell in 0..67 {
                assert_eq!(write(packed.bytes_mut(), width, cell, top), 0);
                assert_eq!(write(packed.bytes_mut(), width, cell, 1), top);
            }
            assert!(packed.iter().all(|value| value == 1));
        }
    }

    #[test]
    fn a_payload_with_bits_beyond_the_cells_is_not_taken() {
        let mut packed = Packed::zeroed(3, 3).unwrap();
        assert_eq!(packed.payload().len(), 2);
        assert!(packed.load(&[0xff, 0x01]));
        assert!(!packed.load(&[0xff, 0x02]));
        assert!(!packed.load(&[0xff]));
        assert!(!packed.load(&[0xff, 0x01, 0]));
        assert!(packed.iter().all(|value| value == 7));
    }

    #[test]
    fn shapes_that_cannot_be_are_infeasible() {
        assert!(matches!(Packed::zeroed(1, 0), Err(Infeasible::OutOfRange { .. })));
        assert!(matches!(Packed::zeroed(1, 33), Err(Infeasible::OutOfRange { .. })));
        assert!(matches!(Packed::zeroed(u64::MAX, 32), Err(Infeasible::Memory { .. })));
    }
}
