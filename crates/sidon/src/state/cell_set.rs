//! The `k` cells of a flow in an array of cells, for the maps that work like Bloom filters.

use crate::{
    Digest, Infeasible, Malformed,
    key::spread,
    packed::{self, Packed, WIDTH_MAX},
};

/// The distinct cells of a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellSet {
    cells: [u64; spread::MAX as usize],
    len: usize,
}

impl CellSet {
    /// These cells, without duplicates.
    pub(super) fn of(all: impl IntoIterator<Item = u64>) -> Self {
        let mut spots = CellSet { cells: [0; spread::MAX as usize], len: 0 };
        for cell in all {
            if !spots.as_slice().contains(&cell) && spots.len < spots.cells.len() {
                spots.cells[spots.len] = cell;
                spots.len += 1;
            }
        }
        spots
    }

    /// The cells of a digest in an array of `cells` cells.
    pub(super) fn of_digest(digest: Digest, hashes: u32, cells: u64) -> Self {
        Self::of((0..hashes).map(|i| spread::position(digest, i, cells)))
    }

    pub(super) fn as_slice(&self) -> &[u64] {
        &self.cells[..self.len]
    }
}

/// An array of cells. With ageing, the lowest bit of a cell is its flag.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) cells: Packed,
    hashes: u32,
    /// Whether the lowest bit of a cell is a flag.
    timed: bool,
    /// The number of cells that are not empty.
    pub(super) occupied: u64,
    /// The position of the clock hand, in units.
    pub(super) hand: u64,
}

/// The number of cells that a sweep visits as one unit.
const UNIT: u64 = 256;

impl Array {
    pub(super) fn new(
        cells: u64,
        hashes: u32,
        width: u32,
        timed: bool,
    ) -> Result<Self, Infeasible> {
        Infeasible::unless_within("hashes", hashes.into(), 1, spread::MAX.into())?;
        Infeasible::unless_within("cells", cells, 1, u64::MAX)?;
        let width = width + u32::from(timed);
        Infeasible::unless_within("width", width.into(), 1, WIDTH_MAX.into())?;
        let cells = Packed::zeroed(cells, width)?;
        Ok(Array { cells, hashes, timed, occupied: 0, hand: 0 })
    }

    pub(super) fn spots(&self, digest: Digest) -> CellSet {
        CellSet::of_digest(digest, self.hashes, self.cells.cells())
    }

    /// The value of a cell, without the flag.
    #[inline]
    pub(super) fn value(&self, cell: u64) -> u64 {
        self.cells.get(cell) >> u32::from(self.timed)
    }

    /// Writes a value that fits the width. `touch` sets the flag of the cell; an empty cell has no
    /// flag.
    #[inline]
    pub(super) fn write(&mut self, cell: u64, value: u64, touch: bool) {
        let old = self.cells.get(cell);
        let flag = (old & 1) | u64::from(touch);
        let new = match (self.timed, value) {
            (false, value) => value,
            (true, 0) => 0,
            (true, value) => value << 1 | flag,
        };
        let width = self.cells.width();
        packed::write(self.cells.bytes_mut(), width, cell, new);
        self.occupied = self.occupied + u64::from(new != 0) - u64::from(old != 0);
    }

    /// Sets the flags of the cells that are not empty.
    pub(super) fn touch(&mut self, spots: &CellSet) {
        if self.timed {
            for &cell in spots.as_slice() {
                self.write(cell, self.value(cell), true);
            }
        }
    }

    pub(super) fn units(&self) -> u64 {
        self.cells.cells().div_ceil(UNIT)
    }

    /// Moves the clock hand to unit `to`, as [`Sweep`](super::Sweep) requires. Without flags no
    /// cell changes.
    pub(super) fn sweep(&mut self, to: u64) -> u64 {
        let to = to.clamp(self.hand, self.units());
        let (first, last) = (self.hand * UNIT, to.saturating_mul(UNIT).min(self.cells.cells()));
        self.hand = to % self.units();
        if !self.timed {
            return 0;
        }
        let width = self.cells.width();
        let mut cleared = 0;
        for cell in first..last {
            let bytes = self.cells.bytes_mut();
            match packed::read(bytes, width, cell) {
                0 => {}
                stale if stale & 1 == 0 => {
                    packed::write(bytes, width, cell, 0);
                    cleared += 1;
                }
                touched => {
                    packed::write(bytes, width, cell, touched & !1);
                }
            }
        }
        self.occupied -= cleared;
        cleared
    }

    pub(super) fn fill(&self) -> f64 {
        self.occupied as f64 / self.cells.cells() as f64
    }

    pub(super) fn clear(&mut self) {
        self.cells.clear();
        (self.occupied, self.hand) = (0, 0);
    }

    pub(super) fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Array { cells: self.cells.try_clone()?, ..*self })
    }

    /// Whether a merge with `other` touches this cell: if `other` adds a value. The flag in `other`
    /// depends on the clock hand of `other`, which may be at another position.
    pub(super) fn merge_touches(&self, other: &Self, cell: u64) -> bool {
        self.timed && other.value(cell) != 0
    }

    /// Loads the position of the clock hand and a payload. `sound` must hold for every value, and
    /// every cell with a flag must have a value.
    pub(super) fn load(
        &mut self,
        hand: u64,
        payload: &[u8],
        sound: impl Fn(u64) -> bool,
    ) -> Result<(), Malformed> {
        if hand >= self.units() {
            return Err(Malformed::Field { name: "hand" });
        }
        self.hand = hand;
        let malformed = Malformed::Field { name: "payload" };
        if !self.cells.load(payload) {
            return Err(malformed);
        }
        for cell in self.cells.iter() {
            let value = cell >> u32::from(self.timed);
            if cell != 0 && (value == 0 || !sound(value)) {
                return Err(malformed);
            }
        }
        self.occupied = self.cells.occupied();
        Ok(())
    }
}
