//! The list of the heaviest keys, and what is certain about it.

use super::{Bounds, CEILING, Stored, Top};

/// A key and the bounds of its amounts.
///
/// ```
/// use sidon::{Seed, count::{Top, top::Shape}};
///
/// let mut hosts: Top<u32> = Top::new(Shape { buckets: 10, rows: 2, columns: 100 }, Seed(1))?;
/// hosts.add(&7, [60]);
/// let entry = hosts.heaviest(1).entries[0];
/// assert_eq!((entry.key, entry.amounts[0].most, entry.amounts[0].is_exact()), (7, 60, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<K, const A: usize> {
    /// The key.
    pub key: K,
    /// Its amounts.
    pub amounts: [Bounds; A],
}

/// The heaviest keys by the upper bounds of their first amounts, heaviest first. Equal bounds are
/// in the order of their keys, so the list does not show the order of digests.
///
/// Keys that are not listed have at most [`others`](Self::others). So the list certainly contains
/// the [`complete`](Self::complete) heaviest keys.
///
/// ```
/// use sidon::count::{Bounds, Entry, Ranking};
///
/// let entry = |key, least, most| Entry { key, amounts: [Bounds { least, most }] };
/// let entries = vec![entry("c", 10, 40), entry("a", 90, 90), entry("b", 50, 60)];
/// // No other key has more than 30.
/// let ranking = Ranking::of(entries, 30, 3);
/// assert_eq!(ranking.entries.iter().map(|entry| entry.key).collect::<String>(), "abc");
/// // "c" may have less than another key. "a" and "b" are certainly the heaviest.
/// assert_eq!((ranking.complete, ranking.leading), (2, 2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Ranking<K, const A: usize> {
    /// The list, heaviest first.
    pub entries: Vec<Entry<K, A>>,
    /// The upper bound for the first amount of every key that is not listed. At `u64::MAX`,
    /// there is no upper bound.
    pub others: u64,
    /// The true `complete` heaviest keys, up to ties, are all listed, at any position.
    pub complete: usize,
    /// The first `leading` entries are the true heaviest keys, up to ties, in any order.
    pub leading: usize,
}

/// The heaviest `count` of the table.
pub(super) fn rank<K: Stored, const A: usize>(table: &Top<K, A>, count: usize) -> Ranking<K, A> {
    // A list with twice `count` entries drops all but the heaviest, so memory does not depend on
    // the size of the table.
    let most = count.saturating_mul(2).max(64);
    let mut entries = Vec::new();
    let mut others = 0;
    for bucket in table.all_buckets() {
        let (layout, bytes) = (Top::<K, A>::BUCKET, table.bucket(bucket));
        others = others.max(layout.turned_away::<A>(bytes)[0]);
        for entry in layout.taken(bytes) {
            let key = K::read(layout.key_of(bytes, entry));
            entries.push(Entry { key, amounts: layout.bounds(bytes, entry) });
            if entries.len() == most {
                others = others.max(keep_heaviest(&mut entries, count));
            }
        }
    }
    Ranking::of(entries, others, count)
}

impl<K: Ord, const A: usize> Ranking<K, A> {
    /// The heaviest `count` of these entries. No key without an entry may have more than `others`.
    /// The entries may come from several tables without a common key.
    #[doc(hidden)]
    pub fn of(mut entries: Vec<Entry<K, A>>, mut others: u64, count: usize) -> Self {
        others = others.max(keep_heaviest(&mut entries, count));
        let complete =
            entries.iter().filter(|entry| covers(entry.amounts[0].least, others)).count();
        let leading = leading(&entries, others);
        Ranking { entries, others, complete, leading }
    }
}

/// Sorts the entries, heaviest first, and keeps `count` of them. Returns the largest upper bound of
/// the others.
fn keep_heaviest<K: Ord, const A: usize>(entries: &mut Vec<Entry<K, A>>, count: usize) -> u64 {
    entries.sort_unstable_by(|a, b| {
        b.amounts[0].most.cmp(&a.amounts[0].most).then_with(|| a.key.cmp(&b.key))
    });
    let others = entries.get(count).map_or(0, |left_out| left_out.amounts[0].most);
    entries.truncate(count);
    others
}

/// Whether an amount of at least `least` is certainly not below one of at most `most`. Amounts at
/// the ceiling cannot be compared.
fn covers(least: u64, most: u64) -> bool {
    least >= most && most < CEILING
}

/// The number of first entries whose lower bounds are at least the upper bounds of all later ones.
fn leading<K, const A: usize>(entries: &[Entry<K, A>], others: u64) -> usize {
    let mut least = u64::MAX;
    let mut leading = 0;
    for (i, entry) in entries.iter().enumerate() {
        least = least.min(entry.amounts[0].least);
        let next = entries.get(i + 1).map_or(0, |next| next.amounts[0].most);
        if covers(least, next.max(others)) {
            leading = i + 1;
        }
    }
    leading
}
