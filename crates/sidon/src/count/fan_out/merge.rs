//! Merging the tables of any two streams.
//!
//! Both tables hash a key to the same bucket and an element to the same word of it. So sketches of one key
//! are joined, and so are the remainders. The entries of both tables compete for the eight entries of
//! each bucket by their counts; the sketches of the others are added to the remainder.

use super::{Bucket, ENTRIES, FanOut, Stored, bucket::tag_of};
use crate::{Refused, Seed, set::same};

impl<K: Stored> FanOut<K> {
    /// Adds the elements of another table of the same shape and seed. On `Err`, nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("buckets", self.shape.buckets == other.shape.buckets)?;
        same("registers", self.shape.registers == other.shape.registers)?;
        same("panes", self.shape.panes == other.shape.panes)?;
        same("pane", self.shape.pane == other.shape.pane)?;
        let (layout, seed) = (self.layout(), self.seed);
        let width = layout.bytes();
        let mut join = Join { layout, seed, theirs: vec![0; width], joined: vec![0; width] };
        let pairs = self.buckets.bytes_mut().chunks_exact_mut(width).zip(other.all());
        for (own, other) in pairs.take(self.shape.buckets as usize) {
            join.buckets::<K>(own, other);
        }
        Ok(())
    }
}

/// Room for the bucket of the other table and for the joined bucket.
struct Join {
    layout: Bucket,
    seed: Seed,
    theirs: Vec<u8>,
    joined: Vec<u8>,
}

impl Join {
    /// Adds the elements of the bucket `other` to `own`.
    fn buckets<K: Stored>(&mut self, own: &mut [u8], other: &[u8]) {
        let Join { layout, seed, theirs, joined } = self;
        let layout = *layout;
        let epoch = layout.epoch(own).max(layout.epoch(other));
        theirs.copy_from_slice(other);
        layout.advance(own, epoch);
        layout.advance(theirs, epoch);
        // Each key with its count and its entries in both buckets.
        let mut keys: Vec<(u32, K, [Option<usize>; 2])> = Vec::with_capacity(2 * ENTRIES);
        for entry in layout.taken(own) {
            let key = K::read(layout.key_of(own, entry));
            let tag = tag_of(key.digest(*seed));
            let twin = layout.find(crate::simd::Portable, theirs, tag, &key);
            if let Some(twin) = twin {
                let sketches = layout.sketches(theirs, Some(twin));
                layout.merge(own, Some(entry), sketches);
                layout.set_count(own, entry);
            }
            keys.push((layout.count(own, entry), key, [Some(entry), twin]));
        }
        for entry in layout.taken(theirs) {
            if !keys.iter().any(|(.., [_, twin])| *twin == Some(entry)) {
                let key = K::read(layout.key_of(theirs, entry));
                keys.push((layout.count(theirs, entry), key, [None, Some(entry)]));
            }
        }
        keys.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        joined.fill(0);
        layout.advance(joined, epoch);
        layout.merge(joined, None, layout.sketches(own, None));
        layout.merge(joined, None, layout.sketches(theirs, None));
        for (number, (_, key, entries)) in keys.iter().enumerate() {
            let sketches = match *entries {
                [Some(entry), _] => layout.sketches(own, Some(entry)),
                [None, Some(entry)] => layout.sketches(theirs, Some(entry)),
                [None, None] => continue,
            };
            if number < ENTRIES {
                layout.write_key(joined, number, tag_of(key.digest(*seed)), key);
                layout.merge(joined, Some(number), sketches);
                layout.set_count(joined, number);
            } else {
                layout.merge(joined, None, sketches);
            }
        }
        own.copy_from_slice(joined);
    }
}
