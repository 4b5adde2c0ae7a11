//! Growing and shrinking, without the keys.
//!
//! ```text
//!            | bucket        | remainder         |      f permuted: the same bits
//! grow   ->  | bucket            | remainder     |      twice the buckets
//! ```
//! Growing distributes a bucket's cells to two buckets by the upper bit of their remainders, so
//! neither can overflow. Shrinking joins two neighbouring buckets, if their cells fit into one.

use super::{Form, Table};
use crate::{Infeasible, bucket::Layout};

impl Form {
    /// This form with twice the buckets, if it allows one more growth.
    pub(crate) fn grown(self) -> Result<Form, Infeasible> {
        Infeasible::unless_within("growths", self.growths.into(), 1, u64::MAX)?;
        let (buckets, remainder) = (self.buckets * 2, self.remainder - 1);
        Ok(Form { buckets, remainder, growths: self.growths - 1, ..self })
    }

    /// This form with half the buckets, if their number is even.
    pub(crate) fn shrunk(self) -> Result<Form, Infeasible> {
        Infeasible::unless_multiple("buckets", self.buckets, 2)?;
        let (buckets, remainder) = (self.buckets / 2, self.remainder + 1);
        Ok(Form { buckets, remainder, growths: self.growths + 1, ..self })
    }
}

impl Table {
    /// Whether growing makes room for a key whose cells are all taken, before less than an eighth
    /// of the cells is in use ([`may_double`](Self::may_double)). A cell leaves the bucket of the
    /// key after as many doublings as their remainders need to differ in an upper bit.
    pub(crate) fn doubling_makes_room(&self, permuted: &[u64]) -> bool {
        let layout = self.any();
        let each = permuted[..self.addressing.subtables()].iter().enumerate();
        let needed = each.filter_map(|(i, &permuted)| {
            let bytes = self.bucket(self.addressing.bucket(i, permuted));
            let own = self.addressing.remainder(self.addressing.value(permuted));
            let cells =
                (0..self.form.cells).filter_map(|cell| self.decode(layout.read(bytes, cell)));
            let differ = cells.filter_map(|(remainder, _)| (remainder ^ own).checked_ilog2());
            differ.map(|bit| self.form.remainder - bit).min()
        });
        let Some(needed) = needed.min() else { return false };
        let cells = u128::from(self.form.all_cells()) << (needed - 1);
        needed <= self.form.growths && u128::from(self.occupied) >= cells / 8
    }

    /// Changes to a form with the same fingerprints and another split into bucket and remainder.
    /// The form comes from [`Form::grown`] or [`Form::shrunk`]. On `Err`, nothing has changed.
    pub(crate) fn reshape(&mut self, form: Form) -> Result<(), Infeasible> {
        debug_assert_eq!(form.fingerprints(), self.form.fingerprints());
        let mut next = Table { moved: self.moved, ..Table::new(form)? };
        self.pour(&mut next)?;
        debug_assert_eq!(next.occupied, self.occupied);
        *self = next;
        Ok(())
    }

    fn pour(&self, next: &mut Table) -> Result<(), Infeasible> {
        let layout = self.any();
        // Cells already written to the buckets that receive the present bucket's cells, by bucket
        // parity.
        let mut used = [0; 2];
        for subtable in 0..self.addressing.subtables() {
            for bucket in 0..self.form.buckets as usize {
                if bucket.is_multiple_of(2) || next.form.buckets > self.form.buckets {
                    used = [0; 2];
                }
                let bucket = subtable * self.form.buckets as usize + bucket;
                for cell in 0..self.form.cells {
                    let value = layout.read(self.bucket(bucket), cell);
                    let Some((_, low)) = self.decode(value) else { continue };
                    let permuted = self.addressing.permuted_at(subtable, bucket, value);
                    let target = next.addressing.bucket(subtable, permuted);
                    let used: &mut u32 = &mut used[(permuted >> next.form.remainder) as usize % 2];
                    let most = next.addressing.low_mask + u64::from(next.storable(permuted, low));
                    Infeasible::unless_within("copies of a key", low + 1, 1, most)?;
                    let room = u64::from(next.form.cells);
                    Infeasible::unless_within(
                        "used cells of a bucket",
                        u64::from(*used) + 1,
                        1,
                        room,
                    )?;
                    let value = next.addressing.value(permuted) ^ low;
                    let bytes = layout.bucket_mut(next.memory.bytes_mut(), target);
                    layout.write(bytes, *used, value);
                    *used += 1;
                    next.occupied += 1;
                }
            }
        }
        Ok(())
    }
}
