//! The saved bytes of a filter: its buckets.

use super::{Body, Shape};
use crate::{Malformed, Seed, bucket::Layout, dleft_table::Moves, saved, set::filter::Filter};

const PAYLOAD: Malformed = Malformed::Field { name: "payload" };

impl Body {
    pub(super) fn write_image(&self) -> Vec<u8> {
        let Shape { subtables, buckets, line, least, remainder, counter, moves, narrows } =
            self.shape;
        let [policy, limit] = moves.to_fields();
        let fields = [
            subtables.into(),
            buckets,
            line.into(),
            least.into(),
            remainder.into(),
            counter.into(),
            policy,
            limit,
            narrows.into(),
        ];
        saved::write(Self::KIND, self.seed, &fields, self.table.payload())
    }

    pub(super) fn read_image(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read::<9>(image, Self::KIND, seed)?;
        let [subtables, buckets, line, least, remainder, counter, policy, limit, narrows] = fields;
        let shape = Shape {
            subtables: saved::narrow("subtables", subtables)?,
            buckets,
            line: saved::narrow("line", line)?,
            least: saved::narrow("least", least)?,
            remainder: saved::narrow("remainder", remainder)?,
            counter: saved::narrow("counter", counter)?,
            moves: Moves::from_fields(policy, saved::narrow("limit", limit)?)
                .ok_or(Malformed::Field { name: "moves" })?,
            narrows: saved::flag("narrows", narrows)?,
        };
        shape.check()?;
        saved::justify(payload, shape.form().bytes())?;
        let mut filter = <Body as Filter>::new(shape, seed)?;
        filter.table.memory.bytes_mut()[..payload.len()].copy_from_slice(payload);
        filter.recount()?;
        Ok(filter)
    }

    /// Counts what is stored, and refuses a table that no sequence of operations leads to: bits beyond the
    /// cells or their parts, or extra bits without an end.
    fn recount(&mut self) -> Result<(), Malformed> {
        let (mut stored, mut passing, mut occupied) = (0u64, 0u64, 0);
        let used = (self.shape.cells() * self.shape.width()).div_ceil(8) as usize;
        let whole = self.table.any().offset(1);
        for bucket in 0..self.table.buckets() {
            if self.table.bucket(bucket)[used..whole].iter().any(|&byte| byte != 0) {
                return Err(PAYLOAD);
            }
            for cell in 0..self.shape.cells() {
                let value = self.table.read(bucket, cell);
                if value & !self.table.addressing.cell_mask != 0 {
                    return Err(PAYLOAD);
                }
                if value == 0 {
                    continue;
                }
                let low = self.table.addressing.low_bits(value);
                let content = self.content(low).ok_or(PAYLOAD)?;
                stored = stored.checked_add(content.copies).ok_or(PAYLOAD)?;
                passing = passing.checked_add(content.passes()).ok_or(PAYLOAD)?;
                occupied += 1;
            }
        }
        (self.stored, self.passing, self.table.occupied) = (stored, passing, occupied);
        Ok(())
    }
}
