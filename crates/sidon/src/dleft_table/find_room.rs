//! The cell of a key, and an empty cell for a new one.
//!
//! A key is stored in the emptiest of its buckets; of equally empty ones in the leftmost. So a
//! lookup has to read all of them: one in each subtable.
//! ```text
//! permuted fingerprint i --addressing--> bucket i, cell value --marks--> the cells that hold it
//!                                                                        the empty cells
//! ```
//! No branch depends on which bucket it is, since the processor would mispredict half of them. An
//! empty cell has all bits of the largest remainder, which is therefore compared in a second pass:
//! it is one of `2^r`.

use super::Addressing;
use crate::{
    bucket::Layout,
    simd::{BASE, Isa},
};
use std::hint::select_unpredictable;

/// A cell of a key: one that holds it, or an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The bucket, numbered through all subtables, and the cell in it.
    pub(crate) bucket: usize,
    pub(crate) cell: u32,
    /// The value of the cell. For an empty cell, the value that stores the key with low bits 0.
    pub(crate) value: u64,
}

/// Reads the buckets of one key after the other. A loop keeps this in registers.
#[derive(Clone, Copy)]
pub(crate) struct Finder<I, L, const D: usize> {
    pub(crate) isa: I,
    pub(crate) layout: L,
    pub(crate) addressing: Addressing<D>,
}

impl<I: Isa, L: Layout, const D: usize> Finder<I, L, D> {
    /// The bucket of a permuted fingerprint, and its cell value for low bits 0.
    #[inline(always)]
    fn place(&self, subtable: usize, permuted: u64) -> (usize, u64) {
        (self.addressing.bucket(subtable, permuted), self.addressing.value(permuted))
    }

    /// The cells of a bucket that hold the remainder of `value`, as marks. Empty cells match the
    /// largest remainder, which has `value == low_mask`.
    #[inline(always)]
    fn alike(&self, bucket: &[u8], value: u64) -> u64 {
        self.layout.marks(self.isa, bucket, value, self.addressing.low_mask)
    }

    /// [`alike`](Self::alike) without empty cells.
    #[inline(always)]
    fn equal(&self, bucket: &[u8], value: u64) -> u64 {
        let alike = self.alike(bucket, value);
        if value == self.addressing.low_mask {
            alike & !self.layout.marks(BASE, bucket, 0, 0)
        } else {
            alike
        }
    }

    /// The cells of a key in each of its buckets.
    #[inline(always)]
    pub(crate) fn each<'a>(
        &'a self,
        table: &'a [u8],
        permuted: &'a [u64; D],
    ) -> impl Iterator<Item = (usize, u64)> + 'a {
        permuted[..self.addressing.subtables()].iter().enumerate().map(|(i, &permuted)| {
            let (bucket, value) = self.place(i, permuted);
            (bucket, self.equal(self.layout.bucket(table, bucket), value))
        })
    }

    /// Whether a cell holds the key. No early exit: buckets are prefetched together, and one branch
    /// per bucket costs more.
    #[inline(always)]
    pub(crate) fn contains(&self, table: &[u8], permuted: &[u64; D]) -> bool {
        let mut any = 0;
        for (i, &permuted) in permuted[..self.addressing.subtables()].iter().enumerate() {
            let (bucket, value) = self.place(i, permuted);
            any |= self.equal(self.layout.bucket(table, bucket), value);
        }
        any != 0
    }

    /// The number of cells that hold the key.
    #[inline(always)]
    pub(crate) fn count(&self, table: &[u8], permuted: &[u64; D]) -> u32 {
        let mut cells = 0;
        for (i, &permuted) in permuted[..self.addressing.subtables()].iter().enumerate() {
            let (bucket, value) = self.place(i, permuted);
            let equal = self.equal(self.layout.bucket(table, bucket), value);
            cells += equal.count_ones() / L::SPAN;
        }
        cells
    }

    /// The first cell that holds the key.
    #[inline(always)]
    pub(crate) fn find(&self, table: &[u8], permuted: &[u64; D]) -> Option<Cell> {
        let (bucket, cell) = self.find_alike(table, permuted)?;
        match self.layout.read(self.layout.bucket(table, bucket), cell) {
            0 => self.find_exactly(table, permuted),
            value => Some(Cell { bucket, cell, value }),
        }
    }

    /// The bucket and the cell of the first cell that holds the key, or of an empty one if the key
    /// has the largest remainder. For callers that read the cell.
    #[inline(always)]
    pub(crate) fn find_alike(&self, table: &[u8], permuted: &[u64; D]) -> Option<(usize, u32)> {
        let [others @ .., last] = &permuted[..self.addressing.subtables()] else { return None };
        // The last bucket is taken in any case. If the first step chose between it and none, the
        // compiler would make a branch of that choice.
        let (mut first, value) = self.place(others.len(), *last);
        let mut alike = self.alike(self.layout.bucket(table, first), value);
        for (i, &permuted) in others.iter().enumerate().rev() {
            let (bucket, value) = self.place(i, permuted);
            let here = self.alike(self.layout.bucket(table, bucket), value);
            first = select_unpredictable(here != 0, bucket, first);
            alike = select_unpredictable(here != 0, here, alike);
        }
        (alike != 0).then(|| (first, alike.trailing_zeros() / L::SPAN))
    }

    /// [`find`](Self::find) for any remainder. For rare cases. Takes a copy, because a reference
    /// would keep the caller from holding `self` in registers.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_exactly(self, table: &[u8], permuted: &[u64; D]) -> Option<Cell> {
        let plain = Finder { isa: BASE, layout: self.layout, addressing: self.addressing };
        for (i, &permuted) in permuted[..self.addressing.subtables()].iter().enumerate() {
            let (bucket, value) = self.place(i, permuted);
            let cells = self.layout.bucket(table, bucket);
            let equal = plain.equal(cells, value);
            if equal != 0 {
                let cell = equal.trailing_zeros() / L::SPAN;
                return Some(Cell { bucket, cell, value: self.layout.read(cells, cell) });
            }
        }
        None
    }

    /// An empty cell of the emptiest bucket, ties to the left.
    #[inline(always)]
    pub(crate) fn room(&self, table: &[u8], permuted: &[u64; D]) -> Option<Cell> {
        self.find_room(table, permuted).1
    }

    /// Whether a cell may hold the key, and [`room`](Self::room), in one pass over the buckets. For
    /// the largest remainder the first result may be true without such a cell.
    #[inline(always)]
    pub(crate) fn find_room(&self, table: &[u8], permuted: &[u64; D]) -> (bool, Option<Cell>) {
        let [first, others @ ..] = &permuted[..self.addressing.subtables()] else {
            return (false, None);
        };
        let (mut bucket, mut value) = self.place(0, *first);
        let cells = self.layout.bucket(table, bucket);
        let (mut alike, mut room) =
            (self.alike(cells, value), self.layout.marks(self.isa, cells, 0, 0));
        for (i, &permuted) in (1..).zip(others) {
            let (here, its) = self.place(i, permuted);
            let cells = self.layout.bucket(table, here);
            alike |= self.alike(cells, its);
            let empty = self.layout.marks(self.isa, cells, 0, 0);
            // Strictly more: ties go to the left.
            let more = empty.count_ones() > room.count_ones();
            bucket = select_unpredictable(more, here, bucket);
            value = select_unpredictable(more, its, value);
            room = select_unpredictable(more, empty, room);
        }
        let cell = room.trailing_zeros() / L::SPAN;
        (alike != 0, (room != 0).then_some(Cell { bucket, cell, value }))
    }
}
