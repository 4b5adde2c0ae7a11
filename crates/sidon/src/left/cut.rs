//! The permuted fingerprint of each subtable, and where it is cut into bucket and remainder.
//!
//! ```text
//! f --permute(i)--> permuted fingerprint i = | bucket | remainder |
//! ```
//! A permuted fingerprint is one word with both parts. Growing the table moves the cut. The
//! permuted fingerprints that a batch has computed before stay valid.

use super::{ANY, Table};

/// The position of the cut, and the masks that encode a remainder as a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    subtables: usize,
    /// Buckets per subtable.
    buckets: usize,
    /// Bits per remainder, and low bits per cell.
    remainder: u32,
    low: u32,
    /// Masks of the low bits and of all bits of a cell.
    pub(crate) low_mask: u64,
    cell_mask: u64,
}

impl Table {
    /// The cut of the present form.
    #[inline(always)]
    pub(crate) fn cut(&self) -> Cut {
        Cut {
            subtables: self.form.subtables as usize,
            buckets: self.form.buckets as usize,
            remainder: self.form.remainder,
            low: self.form.low,
            low_mask: self.low_mask,
            cell_mask: self.cell_mask,
        }
    }

    /// The permuted fingerprint for each subtable.
    #[inline(always)]
    pub(crate) fn images_of<const D: usize>(&self, fingerprint: u64) -> [u64; D] {
        self.ways().images_of(fingerprint)
    }
}

impl Cut {
    /// The number of subtables: `D`, unless `D` is [`ANY`].
    #[inline(always)]
    pub(crate) fn subtables<const D: usize>(&self) -> usize {
        if D < ANY { D } else { self.subtables }
    }

    /// The bucket of a permuted fingerprint in a subtable, numbered through all subtables.
    #[inline(always)]
    pub(crate) fn bucket(&self, subtable: usize, image: u64) -> usize {
        subtable * self.buckets + (image >> self.remainder) as usize
    }

    /// The cell value for the remainder of a permuted fingerprint with low bits 0. A cell stores
    /// the complement, so the low bits of the value are set.
    #[inline(always)]
    pub(crate) fn value(&self, image: u64) -> u64 {
        !(image << self.low) & self.cell_mask
    }

    /// The permuted fingerprint of the first subtable with this bucket and this cell value; its low
    /// bits are ignored.
    #[inline(always)]
    pub(crate) fn image(&self, bucket: usize, value: u64) -> u64 {
        (bucket as u64) << self.remainder | (!value & self.cell_mask) >> self.low
    }
}
