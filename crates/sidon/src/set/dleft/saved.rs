//! The saved bytes of a d-left filter.

use super::{Body, Moves, Shape};
use crate::set::filter::Filter;
use crate::{Malformed, Seed, bucket::Layout, saved};

impl Body {
    pub(super) fn write_image(&self) -> Vec<u8> {
        let Shape { subtables, buckets, cells, width, remainder, counter, moves, growths, grows } =
            self.shape;
        let [policy, limit] = moves.to_fields();
        let fields = [
            subtables.into(),
            buckets,
            cells.into(),
            width.into(),
            remainder.into(),
            counter.into(),
            policy,
            limit,
            growths.into(),
            grows.into(),
        ];
        saved::write(Self::KIND, self.seed, &fields, self.table.payload())
    }

    pub(super) fn read_image(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read::<10>(image, Self::KIND, seed)?;
        let [subtables, buckets, cells, width, remainder, counter, rest @ ..] = fields;
        let [policy, limit, growths, grows] = rest;
        let shape = Shape {
            subtables: saved::narrow("subtables", subtables)?,
            buckets,
            cells: saved::narrow("cells", cells)?,
            width: saved::narrow("width", width)?,
            remainder: saved::narrow("remainder", remainder)?,
            counter: saved::narrow("counter", counter)?,
            moves: Moves::from_fields(policy, saved::narrow("limit", limit)?)
                .ok_or(Malformed::Field { name: "moves" })?,
            growths: saved::narrow("growths", growths)?,
            grows: match grows {
                0 => false,
                1 => true,
                _ => return Err(Malformed::Field { name: "grows" }),
            },
        };
        shape.check()?;
        saved::justify(payload, shape.bytes())?;
        let mut filter = Body::new(shape, seed)?;
        filter.table.memory.bytes_mut()[..payload.len()].copy_from_slice(payload);
        filter.recount()?;
        Ok(filter)
    }
}

impl Body {
    /// Counts what is stored, and refuses a table that no sequence of operations leads to: bits
    /// beyond a cell's parts, a remainder that is passed over, a fingerprint in two cells.
    fn recount(&mut self) -> Result<(), Malformed> {
        let malformed = Malformed::Field { name: "payload" };
        let (mut stored, mut occupied) = (0, 0);
        for bucket in 0..self.table.buckets() {
            for cell in 0..self.shape.cells {
                let value = self.table.any().read(self.table.bucket(bucket), cell);
                if value & !self.table.addressing.cell_mask != 0 {
                    return Err(malformed);
                }
                let Some((fingerprint, low)) = self.table.cell(bucket, cell) else { continue };
                let storable = self.table.fingerprints.next_storable(fingerprint) == fingerprint;
                if !storable || (self.shape.counter > 0 && self.cells_of(fingerprint) != 1) {
                    return Err(malformed);
                }
                stored += low + 1;
                occupied += 1;
            }
        }
        (self.stored, self.table.occupied) = (stored, occupied);
        Ok(())
    }

    /// The number of cells that hold a fingerprint.
    pub(super) fn cells_of(&self, fingerprint: u64) -> u32 {
        self.table.cells_of(fingerprint)
    }
}
