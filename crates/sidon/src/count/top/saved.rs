//! The saved bytes of a [`Top`]: its shape and totals as fields, then the buckets and the filter as
//! they are in memory.

use super::{
    AMOUNTS_MAX, ENTRIES, Shape, Stored, Top,
    bucket::{TAGS, set_word, tag_of, word},
};
use crate::{
    Malformed, Seed,
    saved::{self, Save},
};

impl<K: Stored, const A: usize> Top<K, A> {
    /// The byte image. It contains a check value of the seed, not the seed: store the seed apart.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut fields = [0; FIXED + AMOUNTS_MAX];
        let fixed = [K::BYTES as u64, A as u64, self.shape.buckets, self.shape.rows.into()];
        fields[..FIXED - 1].copy_from_slice(&fixed);
        fields[FIXED - 1] = self.shape.columns;
        fields[FIXED..FIXED + A].copy_from_slice(&self.total);
        let filter = self.shape.columns as usize * self.shape.rows as usize * A * 4;
        let payload = [self.buckets.bytes(), &self.filter.bytes()[..filter]].concat();
        saved::write(<Self as Save>::KIND, self.seed, &fields, &payload)
    }

    /// The structure of a byte image that was written under this seed.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload): ([u64; FIXED + AMOUNTS_MAX], _) =
            saved::read(image, <Self as Save>::KIND, seed)?;
        let [key_bytes, amounts, buckets, rows, columns, ..] = fields;
        let field = |name, valid: bool| valid.then_some(()).ok_or(Malformed::Field { name });
        field("key bytes", key_bytes == K::BYTES as u64)?;
        field("amounts", amounts == A as u64)?;
        field("total", fields[FIXED + A..].iter().all(|&beyond| beyond == 0))?;
        let shape = Shape { buckets, rows: saved::narrow("rows", rows)?, columns };
        let (bucket_bytes, filter_bytes) = shape.parts(K::BYTES, A)?;
        saved::justify(payload, bucket_bytes + filter_bytes)?;
        let mut table = Top::new(shape, seed)?;
        table.total.copy_from_slice(&fields[FIXED..FIXED + A]);
        let (buckets, filter) = payload.split_at(bucket_bytes as usize);
        table.buckets.bytes_mut().copy_from_slice(buckets);
        table.filter.bytes_mut()[..filter.len()].copy_from_slice(filter);
        field("bucket", table.all_buckets().all(|bucket| table.is_sound(bucket)))?;
        let mut counters = filter.as_chunks::<4>().0.iter().enumerate();
        let below = |(i, counter): (usize, &[u8; 4])| {
            u64::from(u32::from_le_bytes(*counter)) <= table.total[i % A]
        };
        field("filter", counters.all(below))?;
        Ok(table)
    }
}

impl<K: Stored, const A: usize> Save for Top<K, A> {
    const KIND: u16 = crate::saved::kinds::TOP.number;

    fn to_bytes(&self) -> Vec<u8> {
        Top::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Top::from_bytes(image, seed)
    }
}

/// Fields before the totals.
const FIXED: usize = 5;

impl<K: Stored, const A: usize> Top<K, A> {
    /// Whether a sequence of additions can produce the bucket: every key is in its own bucket,
    /// once, and no count is above the total.
    fn is_sound(&self, bucket: usize) -> bool {
        let bytes = self.bucket(bucket);
        let within = |counts: &[u64]| counts.iter().zip(self.total).all(|(&n, total)| n <= total);
        if !within(&Self::BUCKET.turned_away::<A>(bytes)) {
            return false;
        }
        // A bucket rebuilt from its entries and bounds must equal this one, so no other byte is
        // set.
        let mut again = vec![0; bytes.len()];
        again[TAGS..TAGS + 8 * A].copy_from_slice(&bytes[TAGS..TAGS + 8 * A]);
        let mut seen: Vec<K> = Vec::with_capacity(ENTRIES);
        for entry in Self::BUCKET.taken(bytes) {
            let key = K::read(Self::BUCKET.key_of(bytes, entry));
            let place = self.place(key.digest(self.seed));
            if place.bucket != bucket || seen.contains(&key) {
                return false;
            }
            seen.push(key);
            again[2 * entry..2 * entry + 2].copy_from_slice(&tag_of(place.digest).to_le_bytes());
            key.write(&mut again[Self::BUCKET.key(entry)..][..K::BYTES]);
            for (amount, total) in self.total.into_iter().enumerate() {
                let places = [Self::BUCKET.most(amount, entry), Self::BUCKET.missed(amount, entry)];
                let [most, missed] = places.map(|at| word(bytes, at));
                if missed > most || most > total {
                    return false;
                }
                for (at, count) in places.into_iter().zip([most, missed]) {
                    set_word(&mut again, at, count);
                }
            }
        }
        again == bytes
    }
}
