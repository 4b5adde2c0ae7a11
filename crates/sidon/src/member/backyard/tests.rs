use super::*;
use crate::{Malformed, bytes::Image, member::batch::DEEP};
use sidon_kit::{Keys, Rng};
use std::collections::HashMap;

fn filter(lines: u64, sharing: u32) -> Backyard {
    Backyard::new(Shape { lines, sharing }, Seed(3)).unwrap()
}

/// Copies by fingerprint, and how many keys each line has.
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
        // What is in the back depends on the keys alone.
        let beyond = self.lines.values().map(|&keys| keys.saturating_sub(CELLS.into()));
        assert_eq!(filter.spilled(), beyond.sum::<u64>());
        assert_eq!(filter.stored(), self.lines.values().sum::<u64>());
        // Reading an image back checks every line and every cell behind.
        let again = Backyard::from_bytes(&filter.to_bytes(), Seed(3)).unwrap();
        assert_eq!((again.stored(), again.spilled()), (filter.stored(), filter.spilled()));
    }
}

/// Batches of all lengths and single operations; how many insertions were refused.
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
    // Few lines, and more of them than the back has buckets.
    assert!(is_its_twin(filter(1, 3), 100, 400) > 100);
    assert!(is_its_twin(filter(3, 1), 300, 400) > 100);
    assert!(is_its_twin(filter(40, 2), 3_000, 400) > 0);
    is_its_twin(filter(700, 5), 30_000, 800);
}

#[test]
fn tables_beyond_the_caches_do_what_a_map_of_copies_does() {
    // Few keys, many copies: their lines spill.
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
    assert!(filter.spilled() > 20);
    let mut passed = 0;
    for key in keys.take(1_000_000) {
        assert_eq!(filter.contains(&key), stored.contains(&filter.fingerprint(&key)));
        passed += usize::from(filter.contains(&key));
    }
    assert!(passed > 300, "too few to tell");
}

#[test]
fn a_full_line_keeps_the_key_that_came_last() {
    let mut filter = filter(1, 1);
    for key in Keys::seeded(4).take(60) {
        filter.insert(&key).unwrap();
        let place = filter.place_of(key.digest(Seed(3)));
        assert!(Line(&filter.lines()[0]).values().any(|value| value == place.value()));
    }
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
    assert_eq!(left.stored(), 90);
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
    assert!(whole.spilled() > 2);
    let payload = Malformed::Field { name: "payload" };
    let read = |filter: &Backyard| Backyard::from_bytes(&filter.to_bytes(), Seed(3)).err();
    assert_eq!(read(&whole), None);
    let spoil = |spoil: &dyn Fn(&mut Backyard)| {
        let mut copy = whole.try_clone().unwrap();
        spoil(&mut copy);
        read(&copy)
    };
    let spilled = Line(&whole.lines()[0]).spilled();
    assert!(spilled != 0, "the first line is to have spilled");
    // A class too many, a class too few, an empty cell in a line that spilled, a bit beyond a cell, a
    // value that is none.
    for wrong in [!spilled, spilled & (spilled - 1)] {
        let set =
            |it: &mut Backyard| it.front.bytes_mut()[62..64].copy_from_slice(&wrong.to_le_bytes());
        assert_eq!(spoil(&set), Some(payload.clone()));
    }
    assert_eq!(spoil(&|it| it.front.bytes_mut()[..2].fill(0)), Some(payload.clone()));
    assert_eq!(spoil(&|it| it.back.memory.bytes_mut()[3] |= 0x80), Some(payload.clone()));
    assert_eq!(spoil(&|it| it.back.memory.bytes_mut()[..2].fill(0)), Some(payload));
}

#[test]
fn shapes_that_cannot_be_are_infeasible() {
    for (lines, sharing) in [(0, 6), (1 << 45, 6), (1, 0), (1, SHARING_MOST + 1), (1 << 44, 1)] {
        assert!(Backyard::new(Shape { lines, sharing }, Seed(1)).is_err());
    }
    assert!(Backyard::new(Shape { lines: 1, sharing: SHARING_MOST }, Seed(1)).is_ok());
}
