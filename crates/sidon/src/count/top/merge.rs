//! Merging the tables of any two streams, or of two streams without a common key.
//!
//! The entries of both tables compete for the eight entries of each bucket. If the streams may have
//! common keys, the other table may have counted amounts of a key without giving it an entry. Its
//! upper bound for keys without an entry is then added to the entry's. If the streams have no
//! common key, like the shards of a stream, nothing is added, and exact counts stay exact.

use super::{
    ENTRIES, Place, Stored, Top,
    bucket::{TAGS, set_word, tag_of},
    filter,
};
use crate::{Refused, set::same};

/// A key that competes for an entry of the merged table.
#[derive(Clone, Copy)]
struct Candidate<K, const A: usize> {
    key: K,
    most: [u64; A],
    missed: [u64; A],
}

impl<K: Stored, const A: usize> Top<K, A> {
    /// Adds the counts of another table of the same shape and seed. On `Err`, nothing has changed.
    ///
    /// Adds the counts of another table, whose stream may have keys in common with this one.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        self.join(other, true)
    }

    /// Adds the counts of another table, whose stream has no key in common with this one. Exact
    /// counts stay exact. The bounds of a common key would be wrong.
    pub fn merge_disjoint(&mut self, other: &Self) -> Result<(), Refused> {
        self.join(other, false)
    }

    fn join(&mut self, other: &Self, shared: bool) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("buckets", self.shape.buckets == other.shape.buckets)?;
        same("rows", self.shape.rows == other.shape.rows)?;
        same("columns", self.shape.columns == other.shape.columns)?;
        // Every sum stops at the ceiling, so no count of the merged table is above its total.
        for (total, other) in self.total.iter_mut().zip(other.total) {
            *total = total.saturating_add(other);
        }
        // The filters must not change until every bucket has been merged.
        let mut losers = Vec::new();
        for bucket in self.all_buckets() {
            self.join_bucket(other, bucket, shared, &mut losers);
        }
        let both = self.filter.bytes_mut().as_chunks_mut::<4>().0.iter_mut();
        for (own, other) in both.zip(other.filter.bytes().as_chunks::<4>().0) {
            let (left, right) = (u32::from_le_bytes(*own), u32::from_le_bytes(*other));
            *own = if shared { left.saturating_add(right) } else { left.max(right) }.to_le_bytes();
        }
        for (place, most) in losers {
            let Top { shape, buckets, filter, .. } = self;
            let bucket = &mut buckets.bytes_mut()[place.bucket..][..Self::BUCKET.bytes()];
            Self::BUCKET.turn_away(bucket, most);
            filter::raise(filter.bytes_mut(), shape, place.digest, most);
        }
        Ok(())
    }

    /// Merges a bucket, and adds the keys that have lost their entry to `losers`.
    fn join_bucket(
        &mut self,
        other: &Self,
        bucket: usize,
        shared: bool,
        losers: &mut Vec<(Place, [u64; A])>,
    ) {
        let mut candidates: Vec<Candidate<K, A>> = Vec::with_capacity(2 * ENTRIES);
        for (one, two) in [(&*self, other), (other, &*self)] {
            for entry in Self::BUCKET.taken(one.bucket(bucket)) {
                let key = K::read(Self::BUCKET.key_of(one.bucket(bucket), entry));
                if candidates.iter().any(|had| had.key == key) {
                    continue;
                }
                let bounds: [_; A] = Self::BUCKET.bounds(one.bucket(bucket), entry);
                let (mut most, mut least) =
                    (bounds.map(|own| own.most), bounds.map(|own| own.least));
                let place = one.place(key.digest(one.seed));
                let twin = two.find(&place, &key);
                let elsewhere = match twin {
                    Some(twin) => {
                        let bounds = Self::BUCKET.bounds(two.bucket(bucket), twin);
                        bounds.map(|own| (own.most, own.least))
                    }
                    None if shared => two.without_entry(&place).map(|most| (most, 0)),
                    None => [(0, 0); A],
                };
                for amount in 0..A {
                    most[amount] = most[amount].saturating_add(elsewhere[amount].0);
                    least[amount] = least[amount].saturating_add(elsewhere[amount].1);
                }
                let missed = std::array::from_fn(|amount| most[amount] - least[amount]);
                candidates.push(Candidate { key, most, missed });
            }
        }
        let mut away: [u64; A] = Self::BUCKET.turned_away(self.bucket(bucket));
        let others: [u64; A] = Self::BUCKET.turned_away(other.bucket(bucket));
        for (away, other) in away.iter_mut().zip(others) {
            *away = if shared { away.saturating_add(other) } else { (*away).max(other) };
        }
        let bytes = &mut self.buckets.bytes_mut()[bucket..][..Self::BUCKET.bytes()];
        bytes.fill(0);
        for (amount, away) in away.into_iter().enumerate() {
            set_word(bytes, TAGS + 8 * amount, away);
        }
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.most[0]));
        for (entry, Candidate { key, most, missed }) in candidates.into_iter().enumerate() {
            let place = self.place(key.digest(self.seed));
            if entry < ENTRIES {
                let bytes = &mut self.buckets.bytes_mut()[bucket..][..Self::BUCKET.bytes()];
                Self::BUCKET.write(bytes, entry, tag_of(place.digest), &key, [most, missed]);
            } else {
                losers.push((place, most));
            }
        }
    }
}
