//! Another length of the remainders, without the keys.
//!
//! Every cell stays in its bucket, because its core does not change. Shorter remainders make room, and two
//! cells that have become equal are joined. Longer remainders leave fewer cells: a cell without room moves
//! to another of its buckets.

use super::{Body, Content, Shape};
use crate::{
    Infeasible,
    bucket::{ANY, Layout},
    set::filter::Filter,
};

impl Body {
    /// Changes the length of the remainders to that of a shape that is equal otherwise.
    pub(super) fn reshape(&mut self, shape: Shape) -> Result<(), Infeasible> {
        *self = self.reshaped(shape)?;
        Ok(())
    }

    /// Returns the filter with remainders of another length.
    pub(super) fn reshaped(&self, shape: Shape) -> Result<Self, Infeasible> {
        let mut next = <Body as Filter>::new(shape, self.seed)?;
        next.table.moved = self.table.moved;
        let mut homeless = Vec::new();
        for bucket in 0..self.table.buckets() {
            for cell in 0..self.table.form.cells {
                let Some((fingerprint, low)) = self.table.cell(bucket, cell) else { continue };
                let Some(content) = self.content(low) else { continue };
                let content = Content { prefix: content.prefix.cut(shape.field() - 1), ..content };
                let shorter = shape.remainder < self.shape.remainder;
                if shorter && next.joins(fingerprint, content)
                    || next.takes(bucket, fingerprint, content)
                {
                    continue;
                }
                homeless.push((fingerprint, content));
            }
        }
        let room = u64::from(next.table.form.cells);
        for (fingerprint, content) in homeless {
            let permuted = next.table.fingerprints.permuted(fingerprint);
            if next.add_at(&permuted, content).is_err() {
                Infeasible::unless_within("used cells of a bucket", room + 1, 1, room)?;
            }
        }
        debug_assert_eq!(next.stored, self.stored);
        Ok(next)
    }

    /// Adds the copies of a cell to those of an equal one, if there is one that can count them.
    fn joins(&mut self, fingerprint: u64, content: Content) -> bool {
        let permuted = self.table.fingerprints.permuted(fingerprint);
        let Some((cell, copies)) = self.equal(&permuted, content) else { return false };
        self.rewrite(cell, Content { copies, ..content });
        self.stored += content.copies;
        true
    }

    /// Puts a cell into an empty one of the same bucket, if there is one.
    fn takes(&mut self, bucket: usize, fingerprint: u64, content: Content) -> bool {
        let permuted: [u64; ANY] = self.table.fingerprints.permuted(fingerprint);
        let layout = self.table.any();
        let permuted = permuted[bucket / self.shape.buckets as usize];
        let empty = (0..self.table.form.cells).find(|&cell| self.table.read(bucket, cell) == 0);
        let Some(cell) = empty else { return false };
        let value = self.table.addressing.value(permuted) ^ self.low_of(content);
        let bytes = layout.bucket_mut(self.table.memory.bytes_mut(), bucket);
        layout.write(bytes, cell, value);
        self.table.occupied += 1;
        self.stored += content.copies;
        self.passing += content.passes();
        true
    }
}
