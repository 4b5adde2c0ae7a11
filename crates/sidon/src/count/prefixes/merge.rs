//! Merging the tables of two streams.
//!
//! The entries of both tables compete for the eight entries of each bucket. Amounts that the other table
//! may have missed of a prefix count as missed. Entries that find no room are added to the next level, after
//! that level has been merged, as if they were evicted.

use super::{
    LEVELS, Prefixes,
    bucket::{Bucket, CEILING, ENTRIES, Entry, Item, LIMIT, digest, parts, tag_of},
};
use crate::{Refused, key::spread, set::same, simd};

impl<const A: usize> Prefixes<A> {
    /// Adds the amounts of another table of the same shape and seed. The amounts of both tables must have
    /// been halved at the same times. On `Err`, nothing has changed.
    ///
    /// ```
    /// use sidon::{Seed, count::{Prefix, Prefixes, prefixes::Shape}};
    ///
    /// let shape = Shape { buckets: [8, 4, 2, 1, 1] };
    /// let mut one: Prefixes<1> = Prefixes::new(shape, Seed(1))?;
    /// let mut other = one.try_clone()?;
    /// one.add([10, 0, 0, 1].into(), [5])?;
    /// other.add([10, 0, 0, 2].into(), [6])?;
    /// one.merge(&other)?;
    /// assert_eq!(one.bounds(&Prefix::new([10, 0, 0, 0].into(), 24)?)[0].to_string(), "= 11");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("buckets", self.shape == other.shape)?;
        let mut total = self.total;
        for (total, more) in total.iter_mut().zip(other.total) {
            let sum = total.checked_add(more).filter(|&sum| sum <= parts(CEILING));
            *total = sum.ok_or(Refused::Overflow { ceiling: CEILING })?;
        }
        // Only saved bytes that no stream produces can have such bounds.
        if self.largest() + other.largest() > LIMIT.into() {
            return Err(Refused::Overflow { ceiling: CEILING });
        }
        self.total = total;
        self.rest.join(&other.rest);
        let (mut losers, mut next) = (Vec::new(), Vec::new());
        for level in 0..LEVELS {
            for (bucket, theirs) in other.buckets(level).enumerate() {
                let at = bucket * Bucket::<A>::BYTES;
                let own = &mut self.levels[level].bytes_mut()[at..][..Bucket::<A>::BYTES];
                Bucket::<A>::catch_up(own, self.halvings);
                let due = Bucket::<A>::due(theirs, other.halvings);
                let seed = self.seed;
                join_bucket(own, theirs, due, |key| tag_of(digest(key, seed)), &mut next);
            }
            for item in losers.drain(..) {
                self.put_at(level, &item, &mut next);
            }
            if level + 1 < LEVELS {
                losers.extend(next.drain(..).map(|item: Item<A>| item.above(level + 1)));
            }
        }
        next.iter().for_each(|item| self.rest.join(item));
        Ok(())
    }

    /// Adds an item at one level. Evicted items are added to `next`.
    fn put_at(&mut self, level: usize, item: &Item<A>, next: &mut Vec<Item<A>>) {
        let digest = digest(item.key, self.seed);
        let bucket = spread::position(digest, 0, self.shape.buckets[level]) as usize;
        let bytes = &mut self.levels[level].bytes_mut()[bucket * Bucket::<A>::BYTES..];
        next.extend(Bucket::put(
            simd::BASE,
            &mut bytes[..Bucket::<A>::BYTES],
            tag_of(digest),
            item,
        ));
    }
}

/// Merges a bucket of another table, which still needs `due` halvings, into this one. Entries without
/// room are added to `losers`.
fn join_bucket<const A: usize>(
    own: &mut [u8],
    theirs: &[u8],
    due: u64,
    tag: impl Fn(u128) -> u16,
    losers: &mut Vec<Item<A>>,
) {
    let all = |bytes: &[u8], due| -> Vec<Entry<A>> {
        Bucket::<A>::taken(bytes).map(|entry| Bucket::entry(bytes, entry, due)).collect()
    };
    let (mut entries, others) = (all(own, 0), all(theirs, due));
    let (away, other_away) = (Bucket::<A>::away(own, 0), Bucket::<A>::away(theirs, due));
    let add = |to: &mut [u64; A], more: [u64; A]| {
        for (to, more) in to.iter_mut().zip(more) {
            *to = to.saturating_add(more);
        }
    };
    for entry in &mut entries {
        match others.iter().find(|other| other.item.key == entry.item.key) {
            Some(other) => {
                entry.item.join(&other.item);
                add(&mut entry.missed, other.missed);
            }
            None => add(&mut entry.missed, other_away),
        }
    }
    let had = entries.len();
    for mut other in others {
        if entries[..had].iter().all(|entry| entry.item.key != other.item.key) {
            add(&mut other.missed, away);
            entries.push(other);
        }
    }
    let most = |entry: &Entry<A>| entry.item.kept[0].saturating_add(entry.missed[0]);
    // Equal amounts in the order of their prefixes, so that it does not matter which table is which.
    entries.sort_unstable_by_key(|entry| (std::cmp::Reverse(most(entry)), entry.item.key));
    let mut both = away;
    add(&mut both, other_away);
    Bucket::<A>::empty(own, both);
    for (at, entry) in entries.iter().enumerate() {
        if at < ENTRIES {
            Bucket::write(own, at, tag(entry.item.key), entry);
        } else {
            Bucket::reject(own, entry);
            losers.push(entry.item);
        }
    }
}
