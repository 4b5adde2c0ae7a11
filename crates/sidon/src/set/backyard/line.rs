//! One line of the front, and its keys in the overflow table.

use crate::{
    Digest,
    batch::NEAR,
    bucket::{Lanes, Layout},
    dleft_table::{Cell, Finder, Table},
    key::spread,
    memory::Memory,
    simd::{self, BASE, Isa, LINE},
};

/// Cells per line.
pub(crate) const CELLS: u32 = 31;
/// The number of values that a cell in use can have.
pub(super) const VALUES: u64 = 65_535;

/// Bits per cell in a mask, and the mask of all cells of a line.
const SPAN: u32 = <Lanes<2, LINE> as Layout>::SPAN;
const MARKS: u64 = u64::MAX >> SPAN;

/// A bucket of the overflow table fills a cache line.
const BACK: Lanes<4, LINE> = Lanes;
pub(super) const BACK_WIDTH: u32 = u32::BITS;
pub(super) const BACK_CELLS: u32 = LINE as u32 * 8 / BACK_WIDTH;

/// The line and the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u64,
    /// 1 to [`VALUES`].
    pub(super) value: u16,
}

impl Place {
    /// Any place, for initialisation.
    pub(super) const NOWHERE: Place = Place { line: 0, value: 0 };

    /// The place of a digest: the line is one fraction of it, the value a fraction of the rest.
    #[inline(always)]
    pub(super) fn of(digest: Digest, lines: u64) -> Self {
        let (line, rest) = spread::split(digest, 0, lines);
        Place::of_cell(line, spread::fraction(rest, VALUES))
    }

    /// The place of a key in the overflow table, where cells store the value less one.
    #[inline(always)]
    pub(super) fn of_cell(line: u64, low: u64) -> Self {
        Place { line, value: (low + 1) as u16 }
    }

    #[inline(always)]
    fn low(self) -> u64 {
        u64::from(self.value) - 1
    }

    pub(super) fn fingerprint(self) -> u64 {
        self.line * VALUES + self.low()
    }
}

/// The reader of the overflow table.
#[inline(always)]
fn finder(back: &Table) -> Finder<impl Isa, Lanes<4, LINE>, 2> {
    back.finder(BASE, BACK)
}

/// A line, shared or mutable.
pub(super) struct Line<B>(pub(super) B);

impl Line<&[u8; LINE]> {
    /// The last lane: zero if no key of the line has overflowed, otherwise 65536 less the smallest
    /// overflowed value.
    #[inline(always)]
    pub(super) fn reach(&self) -> u16 {
        let [.., low, high] = *self.0;
        u16::from_le_bytes([low, high])
    }

    /// Whether an overflowed value of the line is at most `value`.
    #[inline(always)]
    pub(super) fn reaches(&self, value: u16) -> bool {
        value.checked_add(self.reach()).is_none()
    }

    /// The cells that hold a value, as a mask. For zero, the empty cells.
    #[inline(always)]
    fn holding<I: Isa>(&self, isa: I, value: u16) -> u64 {
        isa.marks::<2, LINE>(self.0, value.into(), 0) & MARKS
    }

    /// Whether the line itself holds a copy.
    #[inline(always)]
    pub(super) fn holds<I: Isa>(&self, isa: I, value: u16) -> bool {
        self.holding(isa, value) != 0
    }

    /// Whether the line or the overflow table holds a copy.
    #[inline(always)]
    pub(super) fn contains<I: Isa>(&self, isa: I, place: Place, back: &Table) -> bool {
        self.holds(isa, place.value) || (self.reaches(place.value) && is_behind(back, place))
    }

    #[inline(always)]
    pub(super) fn count<I: Isa>(&self, isa: I, place: Place, back: &Table) -> u64 {
        let here = self.holding(isa, place.value).count_ones() / SPAN;
        if self.reaches(place.value) {
            return u64::from(here + count_back(back, place));
        }
        here.into()
    }

    /// The values of the cells in use.
    pub(super) fn values(self) -> impl Iterator<Item = u16> {
        self.cells().filter(|&value| value != 0)
    }

    /// The largest value, zero if the line is empty.
    pub(super) fn largest(self) -> u16 {
        self.cells().fold(0, u16::max)
    }

    fn cells(self) -> impl Iterator<Item = u16> {
        let cells = self.0.as_chunks::<2>().0[..CELLS as usize].iter();
        cells.map(|&cell| u16::from_le_bytes(cell))
    }
}

impl Line<&mut [u8; LINE]> {
    #[inline(always)]
    pub(super) fn look(&self) -> Line<&[u8; LINE]> {
        Line(self.0)
    }

    /// Writes a value to the first cell of the mask.
    #[inline(always)]
    fn write(&mut self, marks: u64, value: u16) {
        let cell = (marks.trailing_zeros() / SPAN) as usize % (LINE / 2);
        self.0.as_chunks_mut().0[cell] = value.to_le_bytes();
    }

    fn set_reach(&mut self, reach: u16) {
        let [.., low, high] = self.0;
        [*low, *high] = reach.to_le_bytes();
    }

    /// Stores one more copy, if the line has room.
    #[inline(always)]
    pub(super) fn insert_here<I: Isa>(&mut self, isa: I, place: Place) -> bool {
        let empty = self.look().holding(isa, 0);
        if empty != 0 {
            self.write(empty, place.value);
        }
        empty != 0
    }

    /// Stores one more copy, if there is room.
    #[inline(always)]
    pub(super) fn insert<I: Isa>(mut self, isa: I, place: Place, back: &mut Table) -> bool {
        self.insert_here(isa, place) || self.spill(place, back)
    }

    /// Removes one copy from the line, if it has one and no key of the line has overflowed.
    #[inline(always)]
    pub(super) fn remove_here<I: Isa>(&mut self, isa: I, place: Place) -> bool {
        let here = self.look().holding(isa, place.value);
        let can = (here != 0) & (self.look().reach() == 0);
        if can {
            self.write(here, 0);
        }
        can
    }

    /// Removes one copy, if there is one.
    #[inline(always)]
    pub(super) fn remove<I: Isa>(mut self, isa: I, place: Place, back: &mut Table) -> bool {
        self.remove_here(isa, place) || self.remove_with_back(place, back)
    }

    /// Stores a copy in this full line or in the overflow table. The largest value moves to the
    /// overflow table, and the new one takes its cell. If the new value is as large, it goes to the
    /// overflow table itself.
    #[cold]
    #[inline(never)]
    pub(super) fn spill(mut self, place: Place, back: &mut Table) -> bool {
        if back.is_full() {
            return false;
        }
        let finder = finder(back);
        let permuted = back.fingerprints.permuted(place.line);
        let room = finder.room(back.memory.bytes(), &permuted);
        let room = room.or_else(|| back.room_by_moving(&permuted));
        let Some(room) = room else { return false };
        let mut leaving = place;
        let largest = self.look().largest();
        if place.value < largest {
            leaving.value = largest;
            self.write(self.look().holding(BASE, largest), place.value);
        }
        back.put(BACK, room, leaving.low());
        self.set_reach(self.look().reach().max(leaving.value.wrapping_neg()));
        true
    }

    /// Removes a copy from this line, which has overflowed keys; the smallest of them takes its
    /// cell. Or removes a copy from the overflow table.
    #[cold]
    #[inline(never)]
    fn remove_with_back(mut self, place: Place, back: &mut Table) -> bool {
        let here = self.look().holding(BASE, place.value);
        let leaving = if here != 0 {
            Place { value: self.look().reach().wrapping_neg(), ..place }
        } else {
            place
        };
        if !self.look().reaches(leaving.value) {
            return false;
        }
        let Some(cell) = find(back, leaving) else {
            debug_assert!(here == 0, "what a line knows to be in the back is there");
            return false;
        };
        if here != 0 {
            self.write(here, leaving.value);
        }
        back.empty(BACK, cell);
        self.set_reach(reach(back, place.line));
        true
    }
}

/// All lines of a front.
#[inline(always)]
pub(super) fn all(front: &Memory) -> &[[u8; LINE]] {
    front.bytes().as_chunks().0
}

/// All lines of a front, mutable.
#[inline(always)]
pub(super) fn all_mut(front: &mut Memory) -> &mut [[u8; LINE]] {
    front.bytes_mut().as_chunks_mut().0
}

/// The last lane of a line.
pub(super) fn reach(back: &Table, line: u64) -> u16 {
    let finder = finder(back);
    let (table, mut reach) = (back.memory.bytes(), 0);
    for (i, permuted) in back.fingerprints.permuted::<2>(line).into_iter().enumerate() {
        let bucket = BACK.bucket(table, finder.addressing.bucket(i, permuted));
        let (value, low_mask) = (finder.addressing.value(permuted), finder.addressing.low_mask);
        let mut cells = BACK.matches(BASE, bucket, value, low_mask);
        while cells != 0 {
            // Empty cells match the largest remainder.
            if let Some((_, low)) = back.decode(BACK.read(bucket, cells.trailing_zeros())) {
                reach = reach.max(Place::of_cell(0, low).value.wrapping_neg());
            }
            cells &= cells - 1;
        }
    }
    reach
}

/// Whether the overflow table holds a copy.
#[inline(always)]
pub(super) fn is_behind(back: &Table, place: Place) -> bool {
    let [left, right] = alike(back, place);
    left | right != 0
}

/// The first cell of the overflow table that holds this line and value.
#[cold]
#[inline(never)]
fn find(back: &Table, place: Place) -> Option<Cell> {
    let cells = alike(back, place);
    let found = cells.iter().position(|&cells| cells != 0)?;
    let addressing = finder(back).addressing;
    let permuted = back.fingerprints.permuted::<2>(place.line)[found];
    let (bucket, cell) = (addressing.bucket(found, permuted), cells[found].trailing_zeros());
    Some(Cell { bucket, cell, value: addressing.value(permuted) ^ place.low() })
}

#[cold]
#[inline(never)]
fn count_back(back: &Table, place: Place) -> u32 {
    alike(back, place).map(u64::count_ones).iter().sum()
}

/// The cells of both buckets that hold the line and the value.
#[inline(always)]
fn alike(back: &Table, place: Place) -> [u64; 2] {
    let (table, addressing) = (back.memory.bytes(), finder(back).addressing);
    let permuted = back.fingerprints.permuted::<2>(place.line);
    [0, 1].map(|i| {
        let bucket = BACK.bucket(table, addressing.bucket(i, permuted[i]));
        BACK.matches(BASE, bucket, addressing.value(permuted[i]) ^ place.low(), 0)
    })
}

/// Prefetches the overflow buckets of a key's line.
#[cold]
#[inline(never)]
pub(super) fn ask_behind(back: &Table, place: Place) {
    let table = back.memory.bytes();
    if table.len() > NEAR {
        let addressing = finder(back).addressing;
        for (i, permuted) in back.fingerprints.permuted::<2>(place.line).into_iter().enumerate() {
            simd::prefetch(table, BACK.offset(addressing.bucket(i, permuted)));
        }
    }
}
