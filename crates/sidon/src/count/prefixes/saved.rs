//! The saved bytes of a [`Prefixes`]: its shape and sums as fields, then the levels as they are in
//! memory.

use super::{
    AMOUNTS_MAX, LEVELS, Prefixes, Shape,
    bucket::{Bucket, CEILING, LIMIT, digest, parts, tag_of},
};
use crate::{
    Malformed, Seed,
    key::spread,
    saved::{self, Save},
};

/// Fields before the totals.
const FIXED: usize = LEVELS + 3;
const FIELDS: usize = FIXED + 2 * AMOUNTS_MAX;

impl<const A: usize> Prefixes<A> {
    /// The byte image. It contains a check value of the seed, not the seed: store the seed apart.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut fields = [0; FIELDS];
        fields[0] = A as u64;
        fields[1..=LEVELS].copy_from_slice(&self.shape.buckets);
        fields[FIXED - 2] = self.halvings;
        fields[FIXED - 1] = self.rest.rounding;
        fields[FIXED..FIXED + A].copy_from_slice(&self.total);
        fields[FIXED + AMOUNTS_MAX..][..A].copy_from_slice(&self.rest.kept);
        let levels: Vec<&[u8]> = (0..LEVELS).flat_map(|level| self.buckets(level)).collect();
        saved::write(<Self as Save>::KIND, self.seed, &fields, &levels.concat())
    }

    /// The structure of a byte image that was written under this seed.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, mut payload): ([u64; FIELDS], _) =
            saved::read(image, <Self as Save>::KIND, seed)?;
        let field = |name, valid: bool| valid.then_some(()).ok_or(Malformed::Field { name });
        field("amounts", fields[0] == A as u64)?;
        let mut shape = Shape { buckets: [0; LEVELS] };
        shape.buckets.copy_from_slice(&fields[1..=LEVELS]);
        let parts = shape.parts::<A>()?;
        let needed = parts.into_iter().fold(0, u64::saturating_add);
        saved::justify(payload, needed)?;
        let mut table = Prefixes::new(shape, seed)?;
        table.halvings = fields[FIXED - 2];
        table.rest.rounding = fields[FIXED - 1];
        let (total, rest) = fields[FIXED..].split_at(AMOUNTS_MAX);
        field("total", total[A..].iter().all(|&beyond| beyond == 0))?;
        field("rest", rest[A..].iter().all(|&beyond| beyond == 0))?;
        table.total.copy_from_slice(&total[..A]);
        table.rest.kept.copy_from_slice(&rest[..A]);
        for (level, bytes) in table.levels.iter_mut().zip(parts) {
            let (own, others) = payload.split_at(bytes as usize);
            level.bytes_mut()[..own.len()].copy_from_slice(own);
            payload = others;
        }
        for level in 0..LEVELS {
            for (at, bytes) in table.buckets(level).enumerate() {
                field("bucket", table.is_sound(level, at as u64, bytes))?;
            }
        }
        field("total", table.adds_up())?;
        Ok(table)
    }

    /// Whether every prefix of a bucket belongs there.
    fn is_sound(&self, level: usize, at: u64, bytes: &[u8]) -> bool {
        Bucket::<A>::is_sound(bytes, self.halvings, level, |key| {
            let digest = digest(key, self.seed);
            let own = spread::position(digest, 0, self.shape.buckets[level]) == at;
            own.then(|| tag_of(digest))
        })
    }

    /// Whether all lower bounds together are at most the total, all amounts together at least the total,
    /// and no sum is so large that later sums could exceed an integer.
    fn adds_up(&self) -> bool {
        let [least, most] = self.sums();
        let within = |amount: usize| {
            let total = u128::from(self.total[amount]);
            least[amount] <= total && total <= most[amount]
        };
        let ceiling = self.total.into_iter().all(|total| total <= parts(CEILING));
        ceiling && (0..A).all(within) && self.largest() <= LIMIT.into()
    }
}

impl<const A: usize> Save for Prefixes<A> {
    const KIND: u16 = crate::saved::kinds::PREFIXES.number;

    fn to_bytes(&self) -> Vec<u8> {
        Prefixes::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Prefixes::from_bytes(image, seed)
    }
}

/// Two tables are equal if their images are.
impl<const A: usize> PartialEq for Prefixes<A> {
    fn eq(&self, other: &Self) -> bool {
        self.seed == other.seed && self.to_bytes() == other.to_bytes()
    }
}
