//! The saved bytes of a [`Periods`]: its shape and the refused contacts as fields, then the buckets.

use super::{Gaps, Periods, Shape};
use crate::{
    Malformed, Seed,
    count::Stored,
    keyed::Keyed,
    saved::{self, Save},
};

impl<K: Stored> Periods<K> {
    /// The saved bytes. They contain a check value of the seed, not the seed: store the seed apart.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Shape { buckets, shortest, grace, longest } = self.shape;
        let fields = [K::BYTES as u64, buckets, shortest, grace, longest, self.refused];
        saved::write(<Self as Save>::KIND, self.seed, &fields, self.table.bytes())
    }

    /// The table of saved bytes that were written under this seed.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload): ([u64; 6], _) = saved::read(image, <Self as Save>::KIND, seed)?;
        let [key_bytes, buckets, shortest, grace, longest, refused] = fields;
        if key_bytes != K::BYTES as u64 {
            return Err(Malformed::Field { name: "key bytes" });
        }
        let shape = Shape { buckets, shortest, grace, longest };
        saved::justify(payload, shape.bytes(K::BYTES)?)?;
        let is_sound = |bytes: &[u8; Gaps::BYTES]| Gaps::from_bytes(*bytes).is_sound(&shape);
        let table = Keyed::from_bytes(buckets, seed, payload, is_sound)?;
        let table = table.ok_or(Malformed::Field { name: "bucket" })?;
        Ok(Periods { shape, seed, table, refused })
    }
}

impl<K: Stored> Save for Periods<K> {
    const KIND: u16 = crate::saved::kinds::PERIODS.number;

    fn to_bytes(&self) -> Vec<u8> {
        Periods::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Periods::from_bytes(image, seed)
    }
}
