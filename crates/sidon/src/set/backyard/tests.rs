use super::*;
use crate::{Malformed, batch::DEEP};
use sidon_kit::{Keys, Rng};
use std::collections::HashMap;

fn filter(lines: u64, sharing: u32) -> Backyard {
    Backyard::new(Shape { lines, sharing }, Seed(3)).unwrap()
}

/// Copies by fingerprint, and the number of keys of each line.
#[derive(Default)]
struct Twin {
    copies: HashMap<u64, u64>,
    lines: HashMap<u64, u64>,
}

impl Twin {
    fn count(&self, fingerprint: u64) -> u64 {
        self.copies.get(&fingerprint).copied().unwrap_or(0)
    }

    fn add(&mut self, fingerprint: u64) {
        *self.copies.entry(fingerprint).or_default() += 1;
        *self.lines.entry(fingerprint / line::VALUES).or_default() += 1;
    }

    fn take(&mut self, fingerprint: u64) {
        *self.copies.get_mut(&fingerprint).unwrap() -= 1;
        *self.lines.get_mut(&(fingerprint / line::VALUES)).unwrap() -= 1;
    }

    fn assert_equal(&self, filter: &Backyard) {
        let mut copies: HashMap<u64, u64> = HashMap::new();
        filter.fingerprints().for_each(|it| *copies.entry(it).or_default() += 1);
        let stored = self.copies.iter().filter(|(_, copies)| **copies > 0);
        assert_eq!(copies, stored.map(|(&it, &copies)| (it, copies)).collect());
        // The overflow table depends on the stored keys alone.
        let beyond = self.lines.values().map(|&keys| keys.saturating_sub(CELLS.into()));
        assert_eq!(filter.stats().overflowed, beyond.sum::<u64>());
        assert_eq!(filter.len(), self.lines.values().sum::<u64>());
        // Reading an image back checks every line and every cell behind.
        let again = Backyard::from_bytes(&filter.to_bytes(), Seed(3)).unwrap();
        assert_eq!(
            (again.len(), again.stats().overflowed),
            (filter.len(), filter.stats().overflowed)
        );
    }
}

/// Compares batches of all lengths and single operations. Returns the number of refused insertions.
fn is_its_twin(mut filter: Backyard, universe: u64, rounds: u32) -> u64 {
    let (mut twin, mut rng, mut full) = (Twin::default(), Rng::seeded(universe), 0);
    for round in 0..rounds {
        let len = [1, 7, 8, 31, 32, 33, 100, 300][rng.below(8) as usize];
        let keys: Vec<u64> = (0..len).map(|_| rng.below(universe)).collect();
        let counts: Vec<u64> = keys.iter().map(|it| twin.count(filter.fingerprint(it))).collect();
        let (mut found, mut counted) = (vec![false; len], vec![0; len]);
        filter.contains_batch(&keys, &mut found);
        filter.count_batch(&keys, &mut counted);
        assert_eq!(counted, counts);
        for ((key, &count), found) in keys.iter().zip(&counts).zip(found) {
            assert_eq!(
                (filter.count(key), filter.contains(key), found),
                (count, count > 0, count > 0)
            );
        }

        let (insert, batch) = (rng.below(5) < 3, rng.below(4) > 0);
        let mut done = vec![Ok(()); len];
        match (batch, insert) {
            (true, true) => filter.insert_batch(&keys, &mut |i, why| done[i] = Err(why)),
            (true, false) => filter.remove_batch(&keys, &mut |i, why| done[i] = Err(why)),
            (false, _) => {
                for (done, key) in done.iter_mut().zip(&keys) {
                    *done = if insert { filter.insert(key) } else { filter.remove(key) };
                }
            }
        }
        for (key, done) in keys.iter().zip(done) {
            let fingerprint = filter.fingerprint(key);
            match done {
                Ok(()) if insert => twin.add(fingerprint),
                Ok(()) => twin.take(fingerprint),
                Err(Refused::Full { .. }) if insert => full += 1,
                Err(why) => {
                    assert_eq!((why, insert), (Refused::NotStored, false));
                    assert_eq!(twin.count(fingerprint), 0);
                }
            }
        }
        if round % 16 == 0 || round + 1 == rounds {
            twin.assert_equal(&filter);
        }
    }
    full
}

#[test]
fn lines_and_what_is_behind_do_what_a_map_of_copies_does() {
    // Few lines, and more lines than the overflow table has buckets.
    assert!(is_its_twin(filter(1, 3), 100, 400) > 100);
    assert!(is_its_twin(filter(3, 1), 300, 400) > 100);
    assert!(is_its_twin(filter(40, 2), 3_000, 400) > 0);
    is_its_twin(filter(700, 5), 30_000, 800);
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn tables_beyond_the_caches_do_what_a_map_of_copies_does() {
    // Few keys with many copies: their lines overflow.
    for bytes in [1 << 20, DEEP + 4096] {
        assert!(is_its_twin(filter((bytes / LINE) as u64, 6), 30, 200) > 100);
    }
}

#[test]
fn a_stranger_passes_if_and_only_if_it_shares_a_members_fingerprint() {
    let mut filter = filter(3, 1);
    let mut keys = Keys::seeded(3);
    let mut stored = std::collections::HashSet::new();
    for key in keys.by_ref().take(120) {
        filter.insert(&key).unwrap();
        stored.insert(filter.fingerprint(&key));
    }
    assert!(filter.stats().overflowed > 20);
    let mut passed = 0;
    for key in keys.take(1_000_000) {
        assert_eq!(filter.contains(&key), stored.contains(&filter.fingerprint(&key)));
        passed += usize::from(filter.contains(&key));
    }
    assert!(passed > 300, "too few to tell");
}

#[test]
fn a_full_line_keeps_the_least_values() {
    let mut filter = filter(1, 1);
    let (mut twin, mut rng) = (Vec::new(), Rng::seeded(4));
    let keys: Vec<u64> = (0..40).map(|_| rng.next_u64()).collect();
    for _ in 0..2000 {
        let key = &keys[rng.below(40) as usize];
        let value = filter.body.place_of(key.digest(Seed(3))).value;
        if rng.below(2) == 0 && filter.insert(key).is_ok() {
            twin.push(value);
        } else if filter.remove(key).is_ok() {
            twin.swap_remove(twin.iter().position(|&it| it == value).unwrap());
        }
        twin.sort_unstable();
        let line = Line(&filter.body.lines()[0]);
        assert_eq!(line.reach(), twin.get(31).map_or(0, |least| least.wrapping_neg()));
        let mut values: Vec<u16> = line.values().collect();
        values.sort_unstable();
        assert_eq!(values, twin[..twin.len().min(31)]);
    }
    assert!(twin.len() > 31, "the line is to be full most of the time");
}

#[test]
fn the_least_and_the_largest_value_spill_and_come_home() {
    // A digest is a key, and in one line the first and the last digest have the first and last value.
    let (least, largest) = (Digest(0), Digest(u64::MAX));
    for (key, other, reach) in [(least, largest, 65_535), (largest, least, 1)] {
        let mut filter = filter(1, 1);
        assert_eq!([least, largest].map(|it| filter.body.place_of(it).value), [1, 65_535]);
        for _ in 0..40 {
            filter.insert(&key).unwrap();
        }
        assert_eq!((filter.stats().overflowed, Line(&filter.body.lines()[0]).reach()), (9, reach));
        let answers = |filter: &Backyard, keys: &[Digest]| {
            let (mut found, mut counts) = (vec![false; keys.len()], vec![0; keys.len()]);
            filter.contains_batch(keys, &mut found);
            filter.count_batch(keys, &mut counts);
            (found, counts)
        };
        assert_eq!(answers(&filter, &[key; 40]), (vec![true; 40], vec![40; 40]));
        assert_eq!(answers(&filter, &[other; 40]), (vec![false; 40], vec![0; 40]));
        // A smaller value takes the cell of a larger one.
        filter.insert(&other).unwrap();
        assert_eq!(filter.stats().overflowed, 10);
        assert_eq!(answers(&filter, &[other; 40]), (vec![true; 40], vec![1; 40]));
        let again = Backyard::from_bytes(&filter.to_bytes(), Seed(3)).unwrap();
        assert_eq!(answers(&again, &[key; 40]), (vec![true; 40], vec![40; 40]));
        for _ in 0..40 {
            filter.remove(&key).unwrap();
        }
        assert_eq!(filter.remove(&key), Err(Refused::NotStored));
        filter.remove(&other).unwrap();
        assert_eq!((filter.len(), filter.stats().overflowed), (0, 0));
        assert_eq!(Line(&filter.body.lines()[0]).reach(), 0);
    }
}

#[test]
fn as_few_strangers_ask_the_back_as_ranks_predict() {
    let shape = Shape { lines: 20_000, sharing: 5 };
    let (mut filter, mut keys) = (Backyard::new(shape, Seed(7)).unwrap(), Keys::seeded(7));
    keys.by_ref().take(24 * 20_000).for_each(|key| filter.insert(&key).unwrap());
    let mut in_line = vec![0u64; 20_000];
    filter.fingerprints().for_each(|it| in_line[(it / line::VALUES) as usize] += 1);
    // Of n random values the one of rank 32 leaves a part above it that has a beta distribution.
    let (mut mean, mut variance) = (0.0, 0.0);
    for keys in in_line {
        let (above, below) = (keys.saturating_sub(CELLS.into()) as f64, f64::from(CELLS + 1));
        let all = above + below;
        mean += above / all;
        variance += above * below / (all * all * (all + 1.0));
    }
    let asking: u64 = filter.body.lines().iter().map(|line| u64::from(Line(line).reach())).sum();
    let sigmas = (asking as f64 / line::VALUES as f64 - mean) / variance.sqrt();
    assert!(sigmas.abs() < 6.0, "{sigmas}");
    assert!((0.0045..0.0065).contains(&(mean / 20_000.0)), "{}", mean / 20_000.0);
}

#[test]
fn a_merge_that_does_not_fit_changes_nothing() {
    let (mut left, mut right) = (filter(2, 1), filter(2, 1));
    for (i, key) in Keys::seeded(5).take(90).enumerate() {
        if i % 3 == 0 { &mut left } else { &mut right }.insert(&key).unwrap();
    }
    let before = left.to_bytes();
    left.merge(&filter(2, 1)).unwrap();
    assert_eq!(left.to_bytes(), before);
    left.merge(&right).unwrap();
    assert_eq!(left.len(), 90);
    let before = left.to_bytes();
    assert!(matches!(left.merge(&right), Err(Refused::Full { .. })));
    assert_eq!(left.to_bytes(), before);
    assert!(matches!(left.merge(&filter(3, 1)), Err(Refused::Mismatch { field: "lines" })));
}

#[test]
fn lines_that_do_not_know_what_is_behind_are_malformed() {
    let mut whole = filter(2, 1);
    for key in Keys::seeded(6).take(70) {
        whole.insert(&key).unwrap();
    }
    assert!(whole.stats().overflowed > 2);
    let payload = Malformed::Field { name: "payload" };
    let read = |filter: &Backyard| Backyard::from_bytes(&filter.to_bytes(), Seed(3)).err();
    assert_eq!(read(&whole), None);
    let spoil = |spoil: &dyn Fn(&mut Backyard)| {
        let mut copy = whole.try_clone().unwrap();
        spoil(&mut copy);
        read(&copy)
    };
    let reach = Line(&whole.body.lines()[0]).reach();
    assert!(reach != 0, "the first line is to have spilled");
    // Errors in an image: a least value that is too large, too small or missing, an empty cell in a
    // line with overflowed keys. Also a value that belongs in the overflow table, a bit beyond a
    // cell, and an invalid value.
    for wrong in [reach - 1, reach + 1, 0] {
        let set = |it: &mut Backyard| {
            it.body.front.bytes_mut()[62..64].copy_from_slice(&wrong.to_le_bytes());
        };
        assert_eq!(spoil(&set), Some(payload.clone()));
    }
    assert_eq!(spoil(&|it| it.body.front.bytes_mut()[..2].fill(0)), Some(payload.clone()));
    assert_eq!(spoil(&|it| it.body.front.bytes_mut()[..2].fill(0xff)), Some(payload.clone()));
    assert_eq!(spoil(&|it| it.body.back.memory.bytes_mut()[3] |= 0x80), Some(payload.clone()));
    assert_eq!(spoil(&|it| it.body.back.memory.bytes_mut()[..2].fill(0)), Some(payload));
}

#[test]
fn shapes_that_cannot_be_are_infeasible() {
    for (lines, sharing) in [(0, 6), (1 << 45, 6), (1, 0), (1, SHARING_MAX + 1), (1 << 44, 1)] {
        assert!(Backyard::new(Shape { lines, sharing }, Seed(1)).is_err());
    }
    assert!(Backyard::new(Shape { lines: 1, sharing: SHARING_MAX }, Seed(1)).is_ok());
}
