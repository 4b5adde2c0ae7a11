//! The saved bytes of the filter: the lines, then the buckets of the overflow table.

use super::{
    Body, Line, Shape,
    line::{CELLS, VALUES, reach},
};
use crate::{Malformed, Seed, saved, set::filter::Filter, simd::LINE};

impl Body {
    pub(super) fn write_image(&self) -> Vec<u8> {
        let Shape { lines, sharing } = self.shape;
        let payload = [self.lines().as_flattened(), self.back.payload()].concat();
        saved::write(Self::KIND, self.seed, &[lines, sharing.into()], &payload)
    }

    pub(super) fn read_image(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read::<2>(image, Self::KIND, seed)?;
        let [lines, sharing] = fields;
        let shape = Shape { lines, sharing: saved::narrow("sharing", sharing)? };
        shape.check()?;
        saved::justify(payload, shape.bytes())?;
        let mut filter = Body::new(shape, seed)?;
        let (front, back) = payload.split_at(lines as usize * LINE);
        filter.front.bytes_mut()[..front.len()].copy_from_slice(front);
        filter.back.memory.bytes_mut()[..back.len()].copy_from_slice(back);
        filter.recount().ok_or(Malformed::Field { name: "payload" })?;
        Ok(filter)
    }
}

impl Body {
    /// Counts the stored keys. `None` for a table that no sequence of operations leads to. Such a table has
    /// bits beyond the parts of a cell. Or a line with spilled keys does not record the smallest of them, has
    /// room for one, or stores a larger value than the smallest.
    fn recount(&mut self) -> Option<()> {
        let beyond = !self.back.addressing.cell_mask as u32;
        let cells = self.back.payload().as_chunks().0;
        if cells.iter().any(|&cell| u32::from_le_bytes(cell) & beyond != 0) {
            return None;
        }
        let mut spilled = 0;
        for (line, low) in self.back.cells() {
            if line >= self.shape.lines || low >= VALUES {
                return None;
            }
            spilled += 1;
        }
        let mut stored = spilled;
        for (i, line) in (0..).zip(self.lines()) {
            let in_use = Line(line).values().count() as u64;
            let behind = reach(&self.back, i);
            if Line(line).reach() != behind || (behind > 0 && in_use < CELLS.into()) {
                return None;
            }
            // No value of the line may be above the smallest overflowed value.
            if behind > 0 && Line(line).largest() > behind.wrapping_neg() {
                return None;
            }
            stored += in_use;
        }
        (self.stored, self.back.occupied) = (stored, spilled);
        Some(())
    }
}
