//! The laws of remainders that change their length.

use super::*;
use crate::set::Moves;
use sidon_kit::{Keys, Rng, assert_rate, trials};
use std::collections::HashMap;

const SHAPE: Shape = Shape {
    subtables: 2,
    buckets: 64,
    line: 32,
    least: 4,
    remainder: 14,
    counter: 1,
    moves: Moves::Search(256),
    narrows: false,
};

fn filter(shape: Shape) -> Elastic {
    Elastic::new(shape, Seed(1)).unwrap()
}

/// A multiset of few keys beside an exact reference, while the length of remainders changes.
#[test]
fn no_member_is_lost_whatever_the_length() {
    for (counter, least, line) in [(0, 3, 16), (1, 4, 32), (2, 6, 32), (4, 5, 64)] {
        // So few fingerprints that keys share them, with all or with some of the extra bits.
        let shape = Shape { buckets: 3, counter, least, line, remainder: least + 6, ..SHAPE };
        let mut filter = filter(shape);
        let mut truth: HashMap<u64, u64> = HashMap::new();
        let mut rng = Rng::seeded(u64::from(counter) + 2);
        let (mut resized, mut refused, mut passed) = (0, 0, 0);
        for step in 0..30_000 {
            let key = rng.below(120);
            match rng.below(20) {
                0 => {
                    let before = filter.to_bytes();
                    let bits = least + rng.below(9) as u32;
                    match filter.set_remainder(bits) {
                        Ok(()) => {
                            assert_eq!(filter.shape().remainder, bits);
                            resized += 1;
                        }
                        Err(_) => assert_eq!(filter.to_bytes(), before),
                    }
                    assert_eq!(filter.len(), truth.values().sum::<u64>());
                }
                1..11 => match filter.insert(&key) {
                    Ok(()) => *truth.entry(key).or_default() += 1,
                    Err(why) => {
                        assert!(matches!(why, Refused::Full { .. }));
                        refused += 1;
                    }
                },
                _ => {
                    // Only members are removed.
                    let copies = truth.get(&key).copied().unwrap_or(0);
                    if copies > 0 {
                        filter.remove(&key).unwrap();
                        truth.insert(key, copies - 1);
                    }
                }
            }
            if step % 10 == 0 {
                for key in 0..120 {
                    let copies = truth.get(&key).copied().unwrap_or(0);
                    assert!(filter.count(&key) >= copies.min(1), "{step}: {key} is lost");
                    assert_eq!(filter.contains(&key), filter.count(&key) > 0);
                    passed += u64::from(copies == 0 && filter.contains(&key));
                }
            }
        }
        assert!(resized > 100 && refused > 100 && passed > 100, "{resized} {refused} {passed}");
        assert_eq!(filter.len(), truth.values().sum::<u64>());
        for (key, copies) in truth {
            (0..copies).for_each(|_| filter.remove(&key).unwrap());
        }
        assert_eq!((filter.len(), filter.stats().load, filter.certainty().error()), (0, 0.0, 0.0));
    }
}

/// Keys never inserted pass as often as the present remainders say: exactly by fingerprint, and sampled.
#[test]
fn false_positives_follow_the_remainder() {
    let mut filter = filter(Shape { buckets: 400, ..SHAPE });
    let mut keys = Keys::seeded(3);
    let members: Vec<u64> = keys.by_ref().take(8_000).collect();
    let mut refused = 0;
    filter.insert_batch(&members, &mut |_, _| refused += 1);
    assert_eq!(refused, 0);
    let all = 400.0 * 2f64.powi(4);
    let check = |filter: &Elastic, keys: &mut Keys| {
        let p = filter.certainty().error();
        let n = trials(p, 0.1);
        let strangers: Vec<u64> = keys.take(n).collect();
        let mut found = vec![false; n];
        filter.contains_batch(&strangers, &mut found);
        // A key that matches two cells counts once.
        assert_rate(found.iter().filter(|&&found| found).count(), n, -(-p).exp_m1());
        p
    };
    for bits in [14, 12, 10, 8] {
        filter.set_remainder(bits).unwrap();
        let p = check(&filter, &mut keys);
        let expected = 8_000.0 / (all * 2f64.powi(bits as i32 - 4));
        // Keys that share all bits share a cell.
        assert!(p <= expected && p > 0.9 * expected, "{bits}: {p} {expected}");
        assert!(members.iter().all(|key| filter.contains(key)));
    }
    // Longer remainders give nothing back by themselves.
    let short = filter.certainty().error();
    filter.set_remainder(14).unwrap();
    assert_eq!(filter.certainty().error(), short);
    assert!(members.iter().all(|key| filter.contains(key)));
    // Half of the keys are replaced: half of the rate is left.
    let fresh: Vec<u64> = keys.by_ref().take(8_000).collect();
    for (old, new) in members.iter().zip(&fresh).take(4_000) {
        filter.remove(old).unwrap();
        filter.insert(new).unwrap();
    }
    let p = check(&filter, &mut keys);
    assert!((p / short - 0.5).abs() < 0.05, "{p} {short}");
    assert!(members[4_000..].iter().chain(&fresh[..4_000]).all(|key| filter.contains(key)));
    // All are replaced: the rate is that of a filter that was never narrowed, except for longest matches
    // that left shorter cells behind.
    for (old, new) in members.iter().zip(&fresh).skip(4_000) {
        filter.remove(old).unwrap();
        filter.insert(new).unwrap();
    }
    let p = filter.certainty().error();
    let expected = 8_000.0 / (all * 2f64.powi(10));
    assert!(p > 0.9 * expected && p < short / 10.0, "{p} {expected} {short}");
}

#[test]
fn a_filter_that_needs_room_gives_up_bits_in_the_same_memory() {
    let shape = Shape { narrows: true, ..SHAPE };
    let mut filter = filter(shape);
    let bytes = filter.memory_bytes();
    let keys: Vec<u64> = Keys::seeded(4).take(10_000).collect();
    let mut lengths = vec![filter.shape().remainder];
    let mut members = Vec::new();
    for key in &keys {
        match filter.insert(key) {
            Ok(()) => members.push(*key),
            Err(why) => {
                assert!(matches!(why, Refused::Full { .. }), "{why}");
                break;
            }
        }
        if lengths.last() != Some(&filter.shape().remainder) {
            lengths.push(filter.shape().remainder);
        }
    }
    assert_eq!(filter.memory_bytes(), bytes);
    // 2,048 cells of 16 bits, then 20 of 12 bits in a bucket, 24 of 10, and 32 of 8.
    assert_eq!(lengths, [14, 10, 8, 6]);
    assert!(members.len() > 3_800, "{}", members.len());
    assert!(members.iter().all(|key| filter.contains(key)));
    let fixed = self::filter(SHAPE);
    assert_eq!(fixed.memory_bytes(), bytes);
    // The used cells do not fit into fewer. The refusal changes nothing.
    let before = filter.to_bytes();
    assert!(matches!(filter.set_remainder(14), Err(Infeasible::OutOfRange { .. })));
    assert_eq!(filter.to_bytes(), before);
    let stay = members.split_off(members.len() - 1_500);
    members.iter().for_each(|key| filter.remove(key).unwrap());
    filter.set_remainder(14).unwrap();
    assert!(stay.iter().all(|key| filter.contains(key)));
}

#[test]
fn filters_of_different_lengths_merge() {
    for (own, its) in [(14, 9), (9, 14), (12, 12)] {
        let mut one = filter(Shape { remainder: own, ..SHAPE });
        let mut two = filter(Shape { remainder: its, ..SHAPE });
        let keys: Vec<u64> = Keys::seeded(5).take(900).collect();
        for (i, key) in keys.iter().enumerate() {
            let filter = if i % 2 == 0 { &mut one } else { &mut two };
            filter.insert(key).unwrap();
        }
        let before = (one.certainty().error(), two.certainty().error());
        one.merge(&two).unwrap();
        assert_eq!((one.len(), one.shape().remainder), (900, own));
        assert!(keys.iter().all(|key| one.contains(key)));
        // A cell keeps its length, if the table has room for it.
        let longest = two.certainty().error().min(before.1);
        assert!(one.certainty().error() <= before.0 + longest.max(450.0 / (64.0 * 512.0)) + 1e-12);
        keys.iter().for_each(|key| one.remove(key).unwrap());
        assert!(one.is_empty());
        // A merge that does not fit changes nothing.
        let many: Vec<u64> = Keys::seeded(6).take(2_200).collect();
        two.insert_batch(&many, &mut |_, _| {});
        let mut small = filter(Shape { remainder: 14, ..SHAPE });
        let mine: Vec<u64> = Keys::seeded(7).take(1_500).collect();
        small.insert_batch(&mine, &mut |_, why| panic!("{why}"));
        let bytes = small.to_bytes();
        assert!(matches!(small.merge(&two), Err(Refused::Full { .. })));
        assert_eq!(small.to_bytes(), bytes);
        for bad in [Shape { least: 5, ..SHAPE }, Shape { counter: 2, ..SHAPE }] {
            assert!(matches!(one.merge(&filter(bad)), Err(Refused::Mismatch { .. })));
        }
    }
}

#[test]
fn shapes_that_cannot_be_are_infeasible() {
    let bad = [
        Shape { subtables: 1, ..SHAPE },
        Shape { subtables: 9, ..SHAPE },
        Shape { buckets: 0, ..SHAPE },
        Shape { buckets: u64::MAX, ..SHAPE },
        Shape { line: 8, ..SHAPE },
        Shape { line: 24, ..SHAPE },
        Shape { least: 0, ..SHAPE },
        Shape { least: 15, ..SHAPE },
        Shape { remainder: 29, ..SHAPE },
        Shape { remainder: 31, ..SHAPE },
        Shape { remainder: u32::MAX, ..SHAPE },
        Shape { counter: 5, ..SHAPE },
        Shape { moves: Moves::Search(0), ..SHAPE },
    ];
    assert!(Elastic::new(SHAPE, Seed(1)).is_ok());
    for shape in bad {
        assert!(Elastic::new(shape, Seed(1)).is_err(), "{shape:?}");
    }
    let mut filter = filter(SHAPE);
    for bits in [3, 29, 31, u32::MAX] {
        assert!(filter.set_remainder(bits).is_err(), "{bits}");
    }
    // Every length that is allowed has cells, and at least as many as the next longer one has.
    let cells = |remainder| Shape { remainder, ..SHAPE }.cells();
    assert!((4..28).all(|bits| Shape { remainder: bits, ..SHAPE }.check().is_ok()));
    assert!((4..28).all(|bits| cells(bits) >= 1 && cells(bits) <= 32));
}
