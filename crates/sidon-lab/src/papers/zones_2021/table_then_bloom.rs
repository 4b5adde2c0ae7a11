//! Section VII: a table of the first `d` members, and a Bloom filter of the others.
//!
//! The paper names this alternative to its codes. It has no false positive for up to `d` members either, if
//! none leaves. If members can leave, `d` members or fewer may lie in the filter, and then there are
//! false positives. The library has no such structure: [`Adaptive`](sidon::zone::Adaptive) is a list that
//! becomes a code or a bitmap, and stays exact.

use sidon::plan::zone::Target;

/// A table and a counting Bloom filter, so that members can leave.
#[derive(Debug, Clone)]
pub struct TableThenBloom {
    table: Vec<u64>,
    room: usize,
    counters: Vec<u32>,
    hashes: u64,
    beyond: u64,
}

impl TableThenBloom {
    /// Room for `room` members in the table, and a filter of `counters` counters.
    pub fn new(room: usize, counters: usize, hashes: u64) -> Self {
        TableThenBloom { table: Vec::new(), room, counters: vec![0; counters], hashes, beyond: 0 }
    }

    fn counters_of(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let mut rng = sidon_kit::Rng::seeded(key);
        let counters = self.counters.len() as u64;
        (0..self.hashes).map(move |_| rng.below(counters) as usize)
    }

    /// Adds a member that is not stored.
    pub fn insert(&mut self, key: u64) {
        if self.table.len() < self.room {
            self.table.push(key);
            return;
        }
        for counter in self.counters_of(key) {
            self.counters[counter] += 1;
        }
        self.beyond += 1;
    }

    /// Removes a member.
    pub fn remove(&mut self, key: u64) {
        if let Some(at) = self.table.iter().position(|&member| member == key) {
            self.table.swap_remove(at);
            return;
        }
        for counter in self.counters_of(key) {
            self.counters[counter] -= 1;
        }
        self.beyond -= 1;
    }

    /// Whether a key may be stored. The filter is read only if it holds a member.
    pub fn contains(&self, key: u64) -> bool {
        let passes = || self.counters_of(key).all(|counter| self.counters[counter] > 0);
        self.table.contains(&key) || self.beyond > 0 && passes()
    }
}

/// The best number of hashes and the rate of the alternative for `members` members, more than `target`
/// says, if it has `bits` bits in all and no member leaves. `None` if the table does not fit.
pub fn best(target: Target, bits: u64, members: u64) -> Option<(u32, f64)> {
    let width = u64::from((target.universe - 1).ilog2() + 1);
    let table = target.members * width + u64::from(target.members.ilog2() + 1);
    let left = bits.checked_sub(table).filter(|&left| left > 0)? as f64;
    let beyond = members.checked_sub(target.members)? as f64;
    let rate = |hashes: u32| {
        let used = 1.0 - (1.0 - 1.0 / left).powf(f64::from(hashes) * beyond);
        (hashes, used.powi(hashes as i32))
    };
    (1..=16).map(rate).min_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formulas::zone;
    use sidon::zone::{Code, Filter, Ols, ols};
    use sidon_kit::Rng;

    const TARGET: Target = Target { universe: 256, members: 3 };

    /// No false positives for `d` members that came one after the other; false positives for fewer members
    /// after the first ones have left. A code has none.
    #[test]
    fn removals_make_false_positives_within_the_zone() {
        let code = Ols::new(ols::Shape { universe: 256, order: 16, groups: 4 }).unwrap();
        assert_eq!(code.zone(), 3);
        let mut rng = Rng::seeded(7);
        let (mut fresh, mut worn) = (0, 0);
        for _ in 0..200 {
            let mut keys: Vec<u64> = (0..256).collect();
            (0..6).for_each(|i| keys.swap(i, i + rng.below(256 - i as u64) as usize));
            let mut set = TableThenBloom::new(3, 38, 2);
            keys[..3].iter().for_each(|&key| set.insert(key));
            fresh += keys[3..].iter().filter(|&&key| set.contains(key)).count();
            keys[3..6].iter().for_each(|&key| set.insert(key));
            keys[..3].iter().for_each(|&key| set.remove(key));
            assert!(keys[3..6].iter().all(|&key| set.contains(key)));
            worn += (0..256).filter(|key| !keys[3..6].contains(key) && set.contains(*key)).count();
            let mut filter = Filter::new(code.clone()).unwrap();
            keys[3..6].iter().for_each(|key| filter.insert(key).unwrap());
            assert_eq!(filter.list().len(), 3);
        }
        assert_eq!(fresh, 0);
        // Two bits of 38, of which three members have set six at most.
        let p = 1.0 - (1.0 - 1.0 / 38.0f64).powi(6);
        assert!((worn as f64 / (200.0 * 253.0) / p.powi(2) - 1.0).abs() < 0.3, "{worn}");
    }

    /// At equal memory: 64 bits hold three numbers of 256 in a table and leave 38 to the filter.
    #[test]
    fn beyond_the_zone_a_table_and_a_filter_err_more_rarely_at_first_and_more_often_later() {
        let squares = |members| zone::exact_rate(16, 2, 4, members).unwrap();
        let table = |members| best(TARGET, 64, members).unwrap();
        for (members, fewer) in [(4, true), (5, true), (10, false), (20, false)] {
            let (_, rate) = table(members);
            assert_eq!(rate < squares(members), fewer, "{members}: {rate} {}", squares(members));
        }
        let mut rng = Rng::seeded(8);
        for members in [10, 20] {
            let (hashes, rate) = table(members);
            let mut passed = 0;
            for _ in 0..5_000 {
                let salt = rng.next_u64();
                let mut set = TableThenBloom::new(3, 38, hashes.into());
                (0..members).for_each(|key| set.insert(salt ^ key));
                let strangers = members..members + 20;
                passed += strangers.filter(|key| set.contains(salt ^ key)).count();
            }
            // The formula takes bits as independent, which 38 are not quite.
            let seen = passed as f64 / 100_000.0;
            assert!((seen / rate - 1.0).abs() < 0.2, "{members}: {seen} {rate}");
        }
        // No room for the table itself.
        assert_eq!(best(TARGET, 26, 4), None);
    }
}
