//! The saved bytes of a [`Min`]: eight fields, then the counters as they are in memory.

use super::{
    cell::{self, Job},
    min::{Layout, Min, Shape, Update},
};
use crate::{
    Malformed, Seed,
    saved::{self, Save},
    simd::LINE,
};

impl Min {
    /// The byte image. It contains a check value of the seed, not the seed: store the seed apart.
    pub fn to_bytes(&self) -> Vec<u8> {
        let fields = [
            self.shape.rows.into(),
            self.shape.columns,
            self.shape.width.into(),
            u64::from(self.shape.update == Update::Conservative),
            u64::from(self.shape.layout == Layout::Line),
            self.total,
            self.floor,
            self.rounding,
        ];
        saved::write(<Self as Save>::KIND, self.seed, &fields, self.table())
    }

    /// The structure of a byte image that was written under this seed.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let ([rows, columns, width, update, layout, total, floor, rounding], payload) =
            saved::read(image, <Self as Save>::KIND, seed)?;
        let shape = Shape {
            rows: saved::narrow("rows", rows)?,
            columns,
            width: saved::narrow("width", width)?,
            update: match update {
                0 => Update::Plain,
                1 => Update::Conservative,
                _ => return Err(Malformed::Field { name: "update" }),
            },
            layout: match layout {
                0 => Layout::Rows,
                1 => Layout::Line,
                _ => return Err(Malformed::Field { name: "layout" }),
            },
        };
        saved::justify(payload, shape.bytes())?;
        let mut sketch = Min::new(shape, seed)?;
        sketch.memory.bytes_mut()[..payload.len()].copy_from_slice(payload);
        (sketch.total, sketch.floor, sketch.rounding) = (total, floor, rounding);
        // Every decay reduces the floor.
        let decayed = rounding > 0;
        if floor > shape.ceiling() || decayed != (floor < shape.ceiling()) {
            return Err(Malformed::Field { name: "floor" });
        }
        if !cell::by_shape(shape, Plausible(&sketch)) {
            return Err(Malformed::Field { name: "total" });
        }
        Ok(sketch)
    }
}

impl Save for Min {
    const KIND: u16 = crate::saved::kinds::MIN.number;

    fn to_bytes(&self) -> Vec<u8> {
        Min::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Min::from_bytes(image, seed)
    }
}

/// Checks whether the counters fit the total.
struct Plausible<'a>(&'a Min);

impl Job for Plausible<'_> {
    type Output = bool;

    fn run<const B: usize, const D: usize>(self) -> bool {
        let sketch = self.0;
        let rows = sketch.shape.rows as usize;
        let (mut sums, mut hidden) = ([0u128; cell::MOST], [false; cell::MOST]);
        for (at, cell) in cell::cells::<B>(sketch.table()).iter().enumerate() {
            let row = match sketch.shape.layout {
                Layout::Rows => at / sketch.shape.columns as usize,
                Layout::Line => at % (LINE / B) / sketch.mapping.segment as usize,
            };
            let value = cell::get(*cell);
            if row >= rows {
                // A cell of a line that belongs to no row.
                if value != 0 {
                    return false;
                }
                continue;
            }
            // A counter stays at its ceiling while all others, and the total, decay.
            let stays = value == cell::ceiling::<B>() && sketch.rounding > 0;
            sums[row] += if stays { 0 } else { u128::from(value) };
            hidden[row] |= value == cell::ceiling::<B>();
        }
        let total = u128::from(sketch.total);
        let rounded = u128::from(sketch.rounding) * u128::from(sketch.shape.columns);
        let exact = sketch.shape.update == Update::Plain && sketch.rounding == 0;
        sums[..rows].iter().zip(hidden).all(|(&sum, hidden)| {
            if exact && !hidden { sum == total } else { sum <= total.saturating_add(rounded) }
        })
    }
}
