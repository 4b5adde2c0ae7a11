//! SpreadSketch, as its paper describes it: four rows of buckets, each with a distinct counter, a candidate
//! and the largest level of a pair so far.
//!
//! The distinct counter is a multiresolution bitmap of 438 bits in three parts of 79, 79 and 280, the sizes that
//! the authors use. A pair of level `l` has probability `2^-(l+1)`; it sets a bit in part `l`, or in the last. The
//! estimate starts at the first part that is at most 93% full, scales by the share of pairs beyond it, and adds
//! `-b ln(empty share)` for each part from there. A bucket counts as 438 bits, a key of 32 and a level of 8.
//!
//! The estimate of a key is that of the bits that all its buckets have in common, which is closer than the
//! minimum over the rows. Tang, Huang and Lee, "SpreadSketch: Toward Invertible and Network-Wide Detection of
//! Superspreaders", INFOCOM 2020.

use sidon::{Digest, Key, Seed};
use std::collections::BTreeMap;

const ROWS: u32 = 4;
const PART: u64 = 79;
const LAST: u64 = 280;
const PARTS: u32 = 3;
/// Bits of a bitmap.
const BITS: u64 = PART * (PARTS as u64 - 1) + LAST;
/// Bits of a bucket.
const BUCKET: u64 = BITS + 32 + 8;
/// A part with more bits set is too full: 93.1%.
const FULL: u32 = (PART * 931 / 1_000 + 1) as u32;

type Bitmap = [u64; BITS.div_ceil(64) as usize];

#[derive(Clone, Copy)]
struct Bucket {
    bits: Bitmap,
    key: u32,
    /// The largest level plus one; 0 without a pair.
    level: u8,
}

/// The sketch.
pub(crate) struct SpreadSketch {
    width: u64,
    seed: Seed,
    buckets: Vec<Bucket>,
}

impl SpreadSketch {
    /// The largest sketch in `bytes` bytes.
    pub(crate) fn new(bytes: u64, seed: Seed) -> Self {
        let width = (bytes * 8 / BUCKET / u64::from(ROWS)).max(1);
        let empty = Bucket { bits: Bitmap::default(), key: 0, level: 0 };
        SpreadSketch { width, seed, buckets: vec![empty; (width * u64::from(ROWS)) as usize] }
    }

    fn place(&self, digest: Digest, row: u32) -> usize {
        (u64::from(row) * self.width + digest.position(row, self.width)) as usize
    }

    /// Adds a pair.
    pub(crate) fn add(&mut self, key: u32, element: u32) {
        let pair = (key, element).digest(self.seed);
        let level = pair.0.trailing_ones().min(32);
        let bit = match level {
            0 | 1 => u64::from(level) * PART + pair.position(0, PART),
            _ => (u64::from(PARTS) - 1) * PART + pair.position(0, LAST),
        };
        let digest = key.digest(self.seed);
        for row in 0..ROWS {
            let place = self.place(digest, row);
            let bucket = &mut self.buckets[place];
            bucket.bits[bit as usize / 64] |= 1 << (bit % 64);
            if u32::from(bucket.level) < level + 1 {
                bucket.level = level as u8 + 1;
                bucket.key = key;
            }
        }
    }

    /// The estimate of a key.
    pub(crate) fn estimate(&self, key: u32) -> u64 {
        let digest = key.digest(self.seed);
        let mut common = [u64::MAX; BITS.div_ceil(64) as usize];
        for row in 0..ROWS {
            let bits = &self.buckets[self.place(digest, row)].bits;
            common.iter_mut().zip(bits).for_each(|(common, bits)| *common &= bits);
        }
        count(&common)
    }

    /// The candidates with an estimate above `threshold`.
    pub(crate) fn above(&self, threshold: u64) -> BTreeMap<u32, u64> {
        let taken = self.buckets.iter().filter(|bucket| bucket.level > 0);
        let large = taken.filter(|bucket| count(&bucket.bits) > threshold);
        let estimates = large.map(|bucket| (bucket.key, self.estimate(bucket.key)));
        estimates.filter(|&(_, estimate)| estimate > threshold).collect()
    }
}

/// The estimate of a bitmap.
fn count(bits: &Bitmap) -> u64 {
    let set = |from: u64, to: u64| {
        (from..to).filter(|bit| bits[*bit as usize / 64] >> (bit % 64) & 1 == 1).count() as u32
    };
    let sizes = [(0, PART), (PART, PART), (2 * PART, LAST)];
    let parts = sizes.map(|(start, size)| (size as f64, f64::from(set(start, start + size))));
    let full = |&(_, set): &(f64, f64)| set > f64::from(FULL);
    // The last part is used however full it is.
    let base = parts[..2].iter().rposition(full).map_or(0, |full| full + 1);
    let sum: f64 =
        parts[base..].iter().map(|&(size, set)| size * (size / (size - set).max(1.0)).ln()).sum();
    ((1u64 << base) as f64 * sum + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_within_six_standard_errors() {
        for number in [50, 200, 1_000, 3_000] {
            let seeds = 100;
            let mut sum = 0.0;
            for seed in 0..seeds {
                let mut sketch = SpreadSketch::new(60_000, Seed(seed));
                (0..number).for_each(|element| sketch.add(7, element));
                assert_eq!(
                    sketch.above(u64::from(number) / 2).keys().copied().collect::<Vec<_>>(),
                    [7]
                );
                sum += sketch.estimate(7) as f64 / f64::from(number);
            }
            let mean = sum / seeds as f64;
            assert!((mean - 1.0).abs() < 6.0 * 0.1 / (seeds as f64).sqrt(), "{number}: {mean}");
        }
    }
}
