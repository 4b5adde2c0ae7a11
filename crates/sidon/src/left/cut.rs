//! Images: where a fingerprint stands in each subtable, before that is cut in two.
//!
//! ```text
//! f --permute(i)--> image i = | bucket | remainder |
//! ```
//! An image is one word and tells both parts. Growing moves the cut, and leaves the images of keys
//! that are under way as they are.

use super::{ANY, Table};

/// Where an image is cut, and what a cell makes of its lower part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    subtables: usize,
    /// Buckets of a subtable.
    buckets: usize,
    /// Bits of a remainder, and low bits of a cell.
    remainder: u32,
    low: u32,
    /// The low bits of a cell, and all its bits.
    pub(crate) low_mask: u64,
    cell_mask: u64,
}

impl Table {
    /// The cut as it is now.
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

    /// The image of a fingerprint in each subtable.
    #[inline(always)]
    pub(crate) fn images_of<const D: usize>(&self, fingerprint: u64) -> [u64; D] {
        self.ways().images_of(fingerprint)
    }
}

impl Cut {
    /// How many subtables there are: `D`, unless that stands for any number.
    #[inline(always)]
    pub(crate) fn subtables<const D: usize>(&self) -> usize {
        if D < ANY { D } else { self.subtables }
    }

    /// The bucket of an image in a subtable, of all buckets of the table.
    #[inline(always)]
    pub(crate) fn bucket(&self, subtable: usize, image: u64) -> usize {
        subtable * self.buckets + (image >> self.remainder) as usize
    }

    /// The value of a cell that holds an image's remainder and no low bit. Its low bits are set: a
    /// cell is the complement of what it holds.
    #[inline(always)]
    pub(crate) fn value(&self, image: u64) -> u64 {
        !(image << self.low) & self.cell_mask
    }

    /// The image in the first subtable that has this bucket, and this value without low bits.
    #[inline(always)]
    pub(crate) fn image(&self, bucket: usize, value: u64) -> u64 {
        (bucket as u64) << self.remainder | (!value & self.cell_mask) >> self.low
    }
}
