//! Operations on one fingerprint: read its buckets together, then write one cell.

use crate::{
    cells::bucket::Layout,
    left::Cut,
    probe::{BASE, Isa},
};
use std::hint::select_unpredictable;

/// The instruction set, the layout and the cut that operations on buckets use.
#[derive(Clone, Copy)]
pub(super) struct Look<I, L> {
    pub(super) isa: I,
    pub(super) layout: L,
    pub(super) cut: Cut,
}

/// The result of an insertion.
pub(super) enum Entered {
    /// The key took an empty cell.
    New,
    /// The cell of the fingerprint counts one more copy.
    Again,
    /// The cell of the fingerprint is at this ceiling. Nothing has changed.
    Overflow(u64),
    /// All cells of the key are taken. Nothing has changed.
    Full,
}

/// The result of a removal.
pub(super) enum Left {
    /// The cell is now empty.
    Last,
    /// The cell counts one copy less.
    One,
    /// No cell holds the fingerprint. Nothing has changed.
    None,
}

impl<I: Isa, L: Layout> Look<I, L> {
    /// The cells of a bucket that hold the remainder of `value`, as a mask. With low bits ignored,
    /// empty cells match the largest remainder, which has `value == low_mask`.
    #[inline(always)]
    fn alike(&self, bucket: &[u8], value: u64) -> u64 {
        self.layout.marks(self.isa, bucket, value, self.cut.low_mask)
    }

    /// [`alike`](Self::alike) without empty cells.
    #[inline(always)]
    fn equal(&self, bucket: &[u8], value: u64) -> u64 {
        let alike = self.alike(bucket, value);
        if value == self.cut.low_mask {
            alike & !self.layout.marks(BASE, bucket, 0, 0)
        } else {
            alike
        }
    }

    /// The empty cells of a bucket, as a mask.
    #[inline(always)]
    fn empty(&self, bucket: &[u8]) -> u64 {
        self.layout.marks(self.isa, bucket, 0, 0)
    }

    /// The bucket of a permuted fingerprint, and its cell value for low bits 0.
    #[inline(always)]
    fn place(&self, subtable: usize, image: u64) -> (usize, u64) {
        (self.cut.bucket(subtable, image), self.cut.value(image))
    }

    /// Whether a cell holds this fingerprint. No early exit: buckets are prefetched together, and
    /// one branch per bucket costs more.
    #[inline(always)]
    pub(super) fn contains<const D: usize>(&self, table: &[u8], images: &[u64; D]) -> bool {
        let mut any = 0;
        for (i, &image) in images[..self.cut.subtables::<D>()].iter().enumerate() {
            let (bucket, value) = self.place(i, image);
            any |= self.equal(self.layout.bucket(table, bucket), value);
        }
        any != 0
    }

    /// The number of copies stored.
    #[inline(always)]
    pub(super) fn count<const D: usize>(&self, table: &[u8], images: &[u64; D]) -> u64 {
        let mut copies = 0;
        for (i, &image) in images[..self.cut.subtables::<D>()].iter().enumerate() {
            let (bucket, value) = self.place(i, image);
            let bucket = self.layout.bucket(table, bucket);
            let equal = self.equal(bucket, value);
            if self.cut.low_mask == 0 {
                copies += u64::from(equal.count_ones() / L::SPAN);
            } else if equal != 0 {
                let cell = equal.trailing_zeros() / L::SPAN;
                copies = (!self.layout.read(bucket, cell) & self.cut.low_mask) + 1;
            }
        }
        copies
    }

    /// The first cell that holds the fingerprint: its bucket, and the cell in it. For rare cases;
    /// not inlined.
    #[inline(always)]
    fn find<const D: usize>(&self, table: &[u8], images: &[u64; D]) -> Option<(usize, u32)> {
        let plain = Look { isa: BASE, layout: self.layout, cut: self.cut };
        for (i, &image) in images[..self.cut.subtables::<D>()].iter().enumerate() {
            let (bucket, value) = self.place(i, image);
            let equal = plain.equal(self.layout.bucket(table, bucket), value);
            if equal != 0 {
                return Some((bucket, equal.trailing_zeros() / L::SPAN));
            }
        }
        None
    }

    /// Adds one copy: in the cell of the fingerprint if it has one and cells count, otherwise in an
    /// empty cell of its emptiest bucket, ties to the left.
    #[inline(always)]
    pub(super) fn insert<const D: usize>(&self, table: &mut [u8], images: &[u64; D]) -> Entered {
        let [first, others @ ..] = &images[..self.cut.subtables::<D>()] else {
            return Entered::Full;
        };
        let (mut best, mut written) = self.place(0, *first);
        let cells = self.layout.bucket(table, best);
        let (mut alike, mut room) = (self.alike(cells, written), self.empty(cells));
        for (i, &image) in (1..).zip(others) {
            let (bucket, value) = self.place(i, image);
            let cells = self.layout.bucket(table, bucket);
            alike |= self.alike(cells, value);
            let empty = self.empty(cells);
            // Strictly more: ties go to the left. Both cases are equally likely, so there is no
            // branch.
            let more = empty.count_ones() > room.count_ones();
            best = select_unpredictable(more, bucket, best);
            room = select_unpredictable(more, empty, room);
            written = select_unpredictable(more, value, written);
        }
        if alike != 0
            && self.cut.low_mask != 0
            && let Some(raised) = self.raise(table, images)
        {
            return raised;
        }
        if room == 0 {
            return Entered::Full;
        }
        let cells = self.layout.bucket_mut(table, best);
        self.layout.write(cells, room.trailing_zeros() / L::SPAN, written);
        Entered::New
    }

    /// Adds one copy in the cell of the fingerprint, if it has one.
    #[cold]
    #[inline(never)]
    fn raise<const D: usize>(&self, table: &mut [u8], images: &[u64; D]) -> Option<Entered> {
        let (bucket, cell) = self.find(table, images)?;
        let cells = self.layout.bucket_mut(table, bucket);
        let value = self.layout.read(cells, cell);
        // Writes the complement of one more copy. The largest remainder counts one copy less,
        // because its last value would look empty.
        if value & self.cut.low_mask == 0 {
            return Some(Entered::Overflow(self.cut.low_mask + 1));
        }
        if value == 1 {
            return Some(Entered::Overflow(self.cut.low_mask));
        }
        self.layout.write(cells, cell, value - 1);
        Some(Entered::Again)
    }

    /// Removes one copy from the first cell that holds the fingerprint.
    #[inline(always)]
    pub(super) fn remove<const D: usize>(&self, table: &mut [u8], images: &[u64; D]) -> Left {
        let (mut first, mut alike) = (0, 0);
        for (i, &image) in images[..self.cut.subtables::<D>()].iter().enumerate().rev() {
            let (bucket, value) = self.place(i, image);
            let here = self.alike(self.layout.bucket(table, bucket), value);
            first = select_unpredictable(here != 0, bucket, first);
            alike = select_unpredictable(here != 0, here, alike);
        }
        if alike == 0 {
            return Left::None;
        }
        let cell = alike.trailing_zeros() / L::SPAN;
        let cells = self.layout.bucket_mut(table, first);
        match self.layout.read(cells, cell) {
            0 => self.remove_largest(table, images),
            value => self.lower(cells, cell, value),
        }
    }

    /// [`remove`](Self::remove) for a fingerprint that empty cells look like.
    #[cold]
    #[inline(never)]
    fn remove_largest<const D: usize>(&self, table: &mut [u8], images: &[u64; D]) -> Left {
        let Some((bucket, cell)) = self.find(table, images) else { return Left::None };
        let cells = self.layout.bucket_mut(table, bucket);
        self.lower(cells, cell, self.layout.read(cells, cell))
    }

    /// Removes one copy from a cell of this value.
    #[inline(always)]
    fn lower(&self, cells: &mut [u8], cell: u32, value: u64) -> Left {
        let last = value & self.cut.low_mask == self.cut.low_mask;
        self.layout.write(cells, cell, if last { 0 } else { value + 1 });
        if last { Left::Last } else { Left::One }
    }
}
