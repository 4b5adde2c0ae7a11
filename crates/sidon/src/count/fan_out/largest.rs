//! The list of the keys with the most elements.

use super::{FanOut, Interval, Stored};

/// The largest `count` of the table at `epoch`.
pub(super) fn rank<K: Stored>(table: &FanOut<K>, count: usize, epoch: u64) -> Vec<(K, Interval)> {
    // A list with twice `count` entries drops all but the largest, so memory does not depend on the
    // size of the table.
    let most = count.saturating_mul(2).max(64);
    let mut list = Vec::new();
    for bytes in table.all() {
        for entry in table.layout().taken(bytes) {
            let interval = table.interval(bytes, Some(entry), epoch);
            if interval.value > 0 {
                list.push((K::read(table.layout().key_of(bytes, entry)), interval));
            }
            if list.len() == most {
                keep_largest(&mut list, count);
            }
        }
    }
    keep_largest(&mut list, count);
    list
}

fn keep_largest<K: Ord>(list: &mut Vec<(K, Interval)>, count: usize) {
    list.sort_unstable_by(|a, b| b.1.value.cmp(&a.1.value).then_with(|| a.0.cmp(&b.0)));
    list.truncate(count);
}
