//! The byte image of a d-left filter.

use super::{BASE, DLeft, Lanes, Layout, Moves, Odd, SUBTABLES_MOST, Shape, with_layout};
use crate::{
    Malformed, Seed,
    bytes::{self, Image},
};

impl Image for DLeft {
    const KIND: u16 = 4;

    fn to_bytes(&self) -> Vec<u8> {
        let Shape { subtables, buckets, cells, width, remainder, counter, moves, growths, grows } =
            self.shape;
        let (policy, limit) = match moves {
            Moves::Never => (0, 0),
            Moves::First => (1, 0),
            Moves::Search(limit) => (2, limit),
        };
        let fields = [
            subtables.into(),
            buckets,
            cells.into(),
            width.into(),
            remainder.into(),
            counter.into(),
            policy,
            limit.into(),
            growths.into(),
            grows.into(),
        ];
        let table = &self.memory.bytes()[..self.shape.bytes() as usize];
        bytes::write(Self::KIND, self.seed, &fields, table)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = bytes::read::<10>(image, Self::KIND, seed)?;
        let [subtables, buckets, cells, width, remainder, counter, rest @ ..] = fields;
        let [policy, limit, growths, grows] = rest;
        let shape = Shape {
            subtables: bytes::narrow("subtables", subtables)?,
            buckets,
            cells: bytes::narrow("cells", cells)?,
            width: bytes::narrow("width", width)?,
            remainder: bytes::narrow("remainder", remainder)?,
            counter: bytes::narrow("counter", counter)?,
            moves: match (policy, bytes::narrow("limit", limit)?) {
                (0, 0) => Moves::Never,
                (1, 0) => Moves::First,
                (2, limit) => Moves::Search(limit),
                _ => return Err(Malformed::Field { name: "moves" }),
            },
            growths: bytes::narrow("growths", growths)?,
            grows: match grows {
                0 => false,
                1 => true,
                _ => return Err(Malformed::Field { name: "grows" }),
            },
        };
        shape.check()?;
        bytes::justify(payload, shape.bytes())?;
        let mut filter = DLeft::new(shape, seed)?;
        filter.memory.bytes_mut()[..payload.len()].copy_from_slice(payload);
        filter.recount()?;
        Ok(filter)
    }
}

impl DLeft {
    /// Counts what is stored, and refuses a table that no sequence of operations leads to: bits
    /// beyond a cell's parts, a remainder that is passed over, a fingerprint in two cells.
    fn recount(&mut self) -> Result<(), Malformed> {
        let malformed = Malformed::Field { name: "payload" };
        let mask = self.passed_mask();
        let (mut stored, mut occupied) = (0, 0);
        for subtable in 0..self.shape.subtables {
            for bucket in 0..self.shape.buckets {
                let bytes = &self.memory.bytes()[self.offset(subtable, bucket)..];
                for cell in 0..self.shape.cells {
                    let value = with_layout!(self.shape, |layout| layout.read(bytes, cell));
                    if value & !self.shape.cell_mask() != 0 {
                        return Err(malformed);
                    }
                    let Some((fingerprint, copies)) = self.cell(subtable, bucket, cell) else {
                        continue;
                    };
                    let storable =
                        mask == 0 || self.next_storable(fingerprint, mask) == fingerprint;
                    if !storable || (self.shape.counter > 0 && self.cells_of(fingerprint) != 1) {
                        return Err(malformed);
                    }
                    stored += copies;
                    occupied += 1;
                }
            }
        }
        (self.stored, self.occupied) = (stored, occupied);
        Ok(())
    }

    /// In how many cells a fingerprint stands.
    pub(super) fn cells_of(&self, fingerprint: u64) -> u32 {
        let places = self.places_of::<{ SUBTABLES_MOST as usize }>(fingerprint);
        let places = &places[..self.shape.subtables as usize];
        with_layout!(self.shape, |layout| {
            places.iter().map(|&place| self.matches(BASE, layout, place).count_ones()).sum()
        })
    }
}
