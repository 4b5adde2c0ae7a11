//! The saved bytes of a [`FanOut`]: its shape as fields, then the buckets as they are in memory.

use super::{Bucket, FanOut, Shape, Stored, bucket::tag_of};
use crate::{
    Malformed, Seed,
    count::registers,
    key::spread,
    saved::{self, Save},
};

impl<K: Stored> FanOut<K> {
    /// The byte image. It contains a check value of the seed, not the seed: store the seed apart.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Shape { buckets, registers, panes, pane } = self.shape;
        let fields = [K::BYTES as u64, buckets, registers.into(), panes.into(), pane];
        let payload = self.layout().bytes() * buckets as usize;
        let payload = &self.buckets.bytes()[..payload];
        saved::write(<Self as Save>::KIND, self.seed, &fields, payload)
    }

    /// The structure of a byte image that was written under this seed.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let ([key_bytes, buckets, registers, panes, pane], payload) =
            saved::read(image, <Self as Save>::KIND, seed)?;
        if key_bytes != K::BYTES as u64 {
            return Err(Malformed::Field { name: "key bytes" });
        }
        let registers = saved::narrow("registers", registers)?;
        let shape = Shape { buckets, registers, panes: saved::narrow("panes", panes)?, pane };
        saved::justify(payload, shape.bytes(K::BYTES)?)?;
        let mut table = FanOut::new(shape, seed)?;
        table.buckets.bytes_mut()[..payload.len()].copy_from_slice(payload);
        let sound = (0..).zip(table.all()).all(|(number, bytes)| table.is_sound(number, bytes));
        sound.then_some(table).ok_or(Malformed::Field { name: "bucket" })
    }

    /// Whether additions and merges can produce the bucket. Every key is in its own bucket, once. Words can
    /// produce its sketches, and its count follows from them.
    fn is_sound(&self, number: u64, bytes: &[u8]) -> bool {
        let layout = self.layout();
        if layout.epoch(bytes) > u64::MAX / self.shape.pane {
            return false;
        }
        let sketches = |layout: Bucket, entry| {
            let sketches = layout.sketches(bytes, entry);
            let mut each = sketches.chunks_exact(layout.sketch());
            each.all(|sketch| registers::is_sound(sketch, layout.registers)).then_some(sketches)
        };
        let Some(rest) = sketches(layout, None) else { return false };
        // A bucket rebuilt from its epoch, keys and sketches must equal this one, so no other byte is set.
        let mut again = vec![0; bytes.len()];
        layout.advance(&mut again, layout.epoch(bytes));
        layout.merge(&mut again, None, rest);
        for entry in layout.taken(bytes) {
            let key = K::read(layout.key_of(bytes, entry));
            let digest = key.digest(self.seed);
            let Some(sketches) = sketches(layout, Some(entry)) else { return false };
            if spread::position(digest, 0, self.shape.buckets) != number
                || sketches.iter().all(|&byte| byte == 0)
                || layout.find(crate::simd::Portable, &again, tag_of(digest), &key).is_some()
            {
                return false;
            }
            layout.write_key(&mut again, entry, tag_of(digest), &key);
            layout.merge(&mut again, Some(entry), sketches);
            layout.set_count(&mut again, entry);
        }
        again == bytes
    }
}

impl<K: Stored> Save for FanOut<K> {
    const KIND: u16 = saved::kinds::FAN_OUT.number;

    fn to_bytes(&self) -> Vec<u8> {
        FanOut::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        FanOut::from_bytes(image, seed)
    }
}
