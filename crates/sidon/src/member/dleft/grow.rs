//! Growing and shrinking, without the keys.
//!
//! ```text
//!            | bucket        | remainder         |      f permuted: the same bits
//! grow   ->  | bucket            | remainder     |      twice the buckets
//! ```
//! A bucket's cells go to its two halves by the upper bit of their remainders, so no half can
//! overflow. Shrinking joins two neighbours, where their cells fit into one bucket.

use super::{DLeft, Lanes, Layout, Odd, Shape, with_layout};
use crate::Infeasible;

impl DLeft {
    /// Doubles the buckets. No key is lost, and none of the strangers' answers changes.
    ///
    /// `Infeasible`, with nothing changed, if the shape allows no more growth, if there is no
    /// memory, or if a cell would be left with one copy too many to count.
    pub fn grow(&mut self) -> Result<(), Infeasible> {
        Infeasible::unless_within("growths", self.shape.growths.into(), 1, u64::MAX)?;
        let shape = Shape {
            buckets: self.shape.buckets * 2,
            remainder: self.shape.remainder - 1,
            growths: self.shape.growths - 1,
            ..self.shape
        };
        shape.check()?;
        self.reshape(shape)
    }

    /// Halves the buckets, the opposite of [`grow`](Self::grow).
    ///
    /// `Infeasible`, with nothing changed, if their number is odd, if a cell has no room for a
    /// longer remainder, or if two buckets do not fit into one.
    pub fn shrink(&mut self) -> Result<(), Infeasible> {
        Infeasible::unless_within("odd buckets", self.shape.buckets % 2, 0, 0)?;
        let shape = Shape {
            buckets: self.shape.buckets / 2,
            remainder: self.shape.remainder + 1,
            growths: self.shape.growths + 1,
            ..self.shape
        };
        shape.check()?;
        self.reshape(shape)
    }

    /// Takes on another split of the same fingerprints into bucket and remainder.
    fn reshape(&mut self, shape: Shape) -> Result<(), Infeasible> {
        debug_assert_eq!(shape.fingerprints(), self.shape.fingerprints());
        let (stored, moved) = (self.stored, self.moved);
        let mut next = DLeft { stored, moved, ..DLeft::new(shape, self.seed)? };
        with_layout!(shape, |layout| self.pour(layout, &mut next))?;
        debug_assert_eq!(next.occupied, self.occupied);
        *self = next;
        Ok(())
    }

    fn pour<L: Layout>(&self, layout: L, next: &mut DLeft) -> Result<(), Infeasible> {
        let mask = (1 << next.shape.remainder) - 1;
        // Cells written to the buckets that the present one is poured into, by their parity.
        let mut used = [0; 2];
        for subtable in 0..self.shape.subtables {
            for bucket in 0..self.shape.buckets {
                if bucket % 2 == 0 || next.shape.buckets > self.shape.buckets {
                    used = [0; 2];
                }
                let bytes = &self.memory.bytes()[self.offset(subtable, bucket)..];
                for cell in 0..self.shape.cells {
                    let Some((remainder, copies)) = self.decode(layout.read(bytes, cell)) else {
                        continue;
                    };
                    let image = (bucket << self.shape.remainder) | remainder;
                    let (target, remainder) = (image >> next.shape.remainder, image & mask);
                    let used: &mut u32 = &mut used[target as usize % 2];
                    let most = next.ceiling_of(remainder);
                    Infeasible::unless_within("copies", copies, 1, most)?;
                    let room = u64::from(next.shape.cells);
                    Infeasible::unless_within("cells", u64::from(*used) + 1, 1, room)?;
                    let (at, value) =
                        (next.offset(subtable, target), next.encode(remainder, copies));
                    layout.write(&mut next.memory.bytes_mut()[at..], *used, value);
                    *used += 1;
                    next.occupied += 1;
                }
            }
        }
        Ok(())
    }
}
