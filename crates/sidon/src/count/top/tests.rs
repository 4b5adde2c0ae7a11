//! The bounds of every key hold, exact counts are exact, and no key is missing from `complete`
//! ones.

use super::*;
use crate::{Malformed, Refused};
use sidon_kit::{FiveTuples, Rng, Zipf};
use std::collections::HashMap;

type Flow = [u8; 13];
type Truth = HashMap<Flow, [u64; 2]>;
type Table = Top<Flow, 2>;

const SEED: Seed = Seed(77);

/// A stream of bytes and packets under Zipf flows.
fn stream(packets: usize, flows: u64, seed: u64) -> Vec<(Flow, [u64; 2])> {
    let names: Vec<Flow> = FiveTuples::seeded(40).take(flows as usize).collect();
    let law = Zipf::new(flows, 1.0);
    let mut rng = Rng::seeded(seed);
    let mut packet = || {
        let rank = law.draw(&mut rng);
        (names[rank as usize - 1], [40 + rng.below(1461), 1])
    };
    (0..packets).map(|_| packet()).collect()
}

fn truth(stream: &[(Flow, [u64; 2])]) -> Truth {
    let mut truth = Truth::new();
    for (flow, amounts) in stream {
        let counts = truth.entry(*flow).or_default();
        counts[0] += amounts[0];
        counts[1] += amounts[1];
    }
    truth
}

fn filled(shape: Shape, stream: &[(Flow, [u64; 2])]) -> Table {
    let mut table = Table::new(shape, SEED).unwrap();
    for (flow, amounts) in stream {
        table.add(flow, *amounts);
    }
    table
}

/// Compares every claim of the table with the truth. Returns the number of exact entries.
#[track_caller]
fn check(table: &Table, truth: &Truth, count: usize) -> (usize, Ranking<Flow, 2>) {
    for (flow, counts) in truth {
        for (bounds, &count) in table.bounds(flow).iter().zip(counts) {
            assert!(bounds.least <= count && count <= bounds.most, "{bounds:?}, truly {count}");
        }
    }
    let ranking = table.heaviest(count);
    assert!(ranking.entries.is_sorted_by_key(|entry| std::cmp::Reverse(entry.amounts[0].most)));
    for entry in &ranking.entries {
        assert_eq!(table.bounds(&entry.key), entry.amounts);
        if entry.amounts.iter().all(Bounds::is_exact) {
            assert_eq!(entry.amounts.map(|own| own.most), truth[&entry.key]);
        }
    }
    let listed: HashMap<_, _> = ranking.entries.iter().map(|entry| (entry.key, ())).collect();
    let mut heaviest: Vec<_> = truth.iter().map(|(flow, counts)| (counts[0], *flow)).collect();
    heaviest.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
    for (count, flow) in &heaviest {
        assert!(*count <= ranking.others || listed.contains_key(flow), "{count} is missing");
    }
    // Up to ties: a key with the same amount as the last one may take its place.
    let of = |flow: &Flow| truth[flow][0];
    for (first, of_those) in [(ranking.complete, ranking.entries.len()), (ranking.leading, 0)] {
        let among = &ranking.entries[..of_those.max(first)];
        let bar = if first == 0 { 0 } else { heaviest[first - 1].0 };
        let as_heavy = among.iter().filter(|entry| of(&entry.key) >= bar).count();
        assert!(as_heavy >= first, "{as_heavy} of the {first} heaviest are listed");
    }
    assert!(ranking.leading <= ranking.complete);
    (
        ranking.entries.iter().filter(|entry| entry.amounts.iter().all(Bounds::is_exact)).count(),
        ranking,
    )
}

const SMALL: Shape = Shape { buckets: 100, rows: 2, columns: 2_000 };

#[test]
fn every_claim_is_true_on_a_zipf_stream() {
    let stream = stream(400_000, 50_000, 1);
    let table = filled(SMALL, &stream);
    let (exact, ranking) = check(&table, &truth(&stream), 50);
    // 54 KiB for 50,000 flows. The first twenty are certain, and most had an entry from the start.
    assert!(ranking.complete >= 20 && ranking.leading >= 5, "{ranking:?}");
    assert!(exact >= 10, "{exact}");
    assert_eq!(table.total()[1], 400_000);
    assert_eq!(table.len(), 800);
}

#[test]
fn a_table_that_never_was_full_knows_everything() {
    let stream = stream(20_000, 300, 2);
    // That nine of 300 flows share one of 1,000 buckets has a chance of 4e-8.
    let table = filled(Shape { buckets: 1_000, ..SMALL }, &stream);
    let truth = truth(&stream);
    let (exact, ranking) = check(&table, &truth, 1000);
    assert_eq!((exact, ranking.others), (truth.len(), 0));
    assert_eq!((ranking.complete, ranking.leading), (truth.len(), truth.len()));
    assert_eq!(table.bounds(&[9; 13]), [Bounds::default(); 2]);
}

#[test]
fn equal_amounts_are_listed_by_key_whatever_the_seed() {
    let mut keys: Vec<Flow> = FiveTuples::seeded(41).take(300).collect();
    let listed = |seed: u128, keys: &[Flow]| -> Vec<Flow> {
        let mut table = Table::new(Shape { buckets: 1_000, ..SMALL }, Seed(seed)).unwrap();
        keys.iter().for_each(|key| table.add(key, [5, 1]));
        table.heaviest(40).entries.iter().map(|entry| entry.key).collect()
    };
    let of_seeds = [1, 2, 3].map(|seed| listed(seed, &keys));
    keys.sort_unstable();
    for list in of_seeds {
        assert_eq!(list, keys[..40]);
    }
}

#[test]
fn tiny_tables_and_rare_shapes_only_know_less() {
    let stream = stream(60_000, 5_000, 3);
    let truth = truth(&stream);
    for shape in [
        Shape { buckets: 1, rows: 1, columns: 1 },
        Shape { buckets: 3, rows: 4, columns: 100 },
        Shape { buckets: 50, rows: 3, columns: 7 },
    ] {
        let _ = check(&filled(shape, &stream), &truth, 10);
    }
    for (shape, name) in [
        (Shape { buckets: 0, ..SMALL }, "buckets"),
        (Shape { rows: 5, ..SMALL }, "rows"),
        (Shape { columns: 0, ..SMALL }, "columns"),
    ] {
        let why = Table::new(shape, SEED).unwrap_err();
        assert_eq!(why.name(), Some(name), "{why}");
    }
}

#[test]
fn newcomers_that_grow_displace_the_light_and_are_never_underrated() {
    // Flows of one packet take all entries before the heavy flows start.
    let mut early = stream(3_000, 100_000, 4);
    let late: Vec<Flow> = FiveTuples::seeded(41).take(20).collect();
    let mut rng = Rng::seeded(5);
    for _ in 0..20_000 {
        early.push((late[rng.below(20) as usize], [1000, 1]));
    }
    let table = filled(SMALL, &early);
    let (_, ranking) = check(&table, &truth(&early), 30);
    assert!(late.iter().all(|flow| ranking.entries.iter().any(|entry| entry.key == *flow)));
}

#[test]
fn batches_with_and_without_digests_leave_the_same_table() {
    let stream = stream(50_000, 20_000, 6);
    let (keys, amounts): (Vec<_>, Vec<_>) = stream.iter().copied().unzip();
    // In the cache and far beyond it.
    for shape in [SMALL, Shape { buckets: 1 << 16, rows: 2, columns: 1 << 10 }] {
        let one_by_one = filled(shape, &stream).to_bytes();
        let mut batch = Table::new(shape, SEED).unwrap();
        batch.add_batch(&keys, &amounts);
        assert!(batch.to_bytes() == one_by_one);
        let digests: Vec<_> = keys.iter().map(|key| crate::Key::digest(key, SEED)).collect();
        batch.clear();
        let picks: Vec<_> =
            (0..).zip(digests).map(|(at, digest)| Pick { digest, key: at, amounts: at }).collect();
        batch.add_picked_batch(&picks, &keys, &amounts);
        assert!(batch.to_bytes() == one_by_one);
    }
}

#[test]
fn merged_tables_hold_the_truth_of_both_streams() {
    let whole = stream(200_000, 30_000, 7);
    let truth = truth(&whole);
    let (left, right) = whole.split_at(120_000);
    let mut any = filled(SMALL, left);
    any.merge(&filled(SMALL, right)).unwrap();
    let (_, ranking) = check(&any, &truth, 50);
    assert!(ranking.complete >= 10, "{ranking:?}");
    // Shards by digest have no common key, so exact counts stay exact.
    let of_left = |packet: &&(Flow, _)| crate::Key::digest(&packet.0, SEED).0 & 1 == 0;
    let left: Vec<_> = whole.iter().filter(of_left).copied().collect();
    let right: Vec<_> = whole.iter().filter(|packet| !of_left(packet)).copied().collect();
    let mut shards = filled(SMALL, &left);
    shards.merge_disjoint(&filled(SMALL, &right)).unwrap();
    let (exact, ranking) = check(&shards, &truth, 50);
    assert!(ranking.complete >= 15 && exact >= 10, "{exact} {ranking:?}");
    // A merged table accepts further additions.
    for (flow, amounts) in &whole {
        shards.add(flow, *amounts);
    }
    let twice = truth.iter().map(|(flow, counts)| (*flow, counts.map(|count| 2 * count)));
    let _ = check(&shards, &twice.collect(), 50);
    let other = Table::new(Shape { rows: 3, ..SMALL }, SEED).unwrap();
    assert_eq!(shards.merge(&other), Err(Refused::Mismatch { field: "rows" }));
}

#[test]
fn amounts_beyond_the_ceiling_are_lower_bounds_and_stop_no_other_key() {
    let shape = Shape { buckets: 4, rows: 2, columns: 8 };
    let mut rng = Rng::seeded(12);
    let mut parts = [(); 3].map(|()| (Table::new(shape, SEED).unwrap(), HashMap::new()));
    for (table, truth) in &mut parts {
        for _ in 0..300 {
            let key: Flow = [rng.below(60) as u8; 13];
            let huge = [1, 1 << 32, 1 << 62, u64::MAX - 1, u64::MAX];
            let amounts = [huge[rng.below(5) as usize], rng.below(3)];
            table.add(&key, amounts);
            let sum = truth.entry(key).or_insert([0u128; 2]);
            *sum = [sum[0] + u128::from(amounts[0]), sum[1] + u128::from(amounts[1])];
        }
    }
    let [(mut all, mut truth), others @ ..] = parts;
    for (other, its) in others {
        all.merge(&other).unwrap();
        for (key, [bytes, packets]) in its {
            let sum = truth.entry(key).or_insert([0; 2]);
            *sum = [sum[0] + bytes, sum[1] + packets];
        }
        let image = all.to_bytes();
        assert_eq!(Table::from_bytes(&image, SEED).map(|read| read.to_bytes()), Ok(image));
        for (key, sum) in &truth {
            for (bounds, &count) in all.bounds(key).iter().zip(sum) {
                assert!(u128::from(bounds.least) <= count, "{bounds:?}, truly {count}");
                assert!(count <= bounds.most.into() || bounds.most == CEILING, "{bounds:?}");
                assert!(!bounds.is_exact() || count == bounds.most.into(), "{bounds:?}");
            }
        }
        let ranking = all.heaviest(10);
        assert_eq!(ranking.entries[0].amounts[0].most, CEILING);
        // Several keys are at the ceiling, so the largest of them is not known.
        assert_eq!(ranking.leading, 0);
    }
    assert_eq!(all.total()[0], CEILING);
    // A key of a bucket with a free entry is still counted exactly.
    let mut table = Top::<u64>::new(Shape { buckets: 1, rows: 1, columns: 1 }, SEED).unwrap();
    for (key, amount) in [(1, u64::MAX), (1, 1), (2, 7), (2, 8)] {
        table.add(&key, [amount]);
    }
    assert_eq!(table.bounds(&2), [Bounds { least: 15, most: 15 }]);
    assert!(!table.bounds(&1)[0].is_exact());
    let ranking = table.heaviest(2);
    assert_eq!((ranking.leading, ranking.complete), (2, 2), "one at the ceiling is the largest");
}

#[test]
fn counters_at_their_ceiling_do_not_underrate() {
    // One counter of 32 bits for all keys, and amounts far above its ceiling.
    let shape = Shape { buckets: 1, rows: 1, columns: 1 };
    let mut table = Top::<u32>::new(shape, SEED).unwrap();
    let mut truth = HashMap::new();
    let mut rng = Rng::seeded(8);
    for _ in 0..5_000 {
        let (key, amount) = (rng.below(40) as u32, rng.below(1 << 31));
        table.add(&key, [amount]);
        *truth.entry(key).or_insert(0) += amount;
    }
    for (key, count) in truth {
        let [bounds] = table.bounds(&key);
        assert!(bounds.least <= count && count <= bounds.most);
    }
}

#[test]
fn an_amount_of_nothing_is_still_an_appearance() {
    // The first amount is always zero, so no new key gets an entry, but packets are counted.
    let shape = Shape { buckets: 1, rows: 1, columns: 50 };
    let mut table = Top::<u32, 2>::new(shape, SEED).unwrap();
    for key in (0..20).cycle().take(200) {
        table.add(&key, [0, 1]);
    }
    for key in 0..20 {
        let [_, packets] = table.bounds(&key);
        assert!(packets.least <= 10 && packets.most >= 10, "{packets:?}");
    }
}

#[test]
fn images_come_back_and_impossible_ones_do_not() {
    let table = filled(Shape { buckets: 3, rows: 2, columns: 9 }, &stream(500, 100, 9));
    let image = table.to_bytes();
    let back = Table::from_bytes(&image, SEED).unwrap();
    assert_eq!(back.to_bytes(), image);
    assert_eq!(back.heaviest(5), table.heaviest(5));
    assert_eq!(Table::from_bytes(&image, Seed(1)).err(), Some(Malformed::Seed));
    let other = Top::<[u8; 14], 2>::from_bytes(&image, SEED);
    assert_eq!(other.err(), Some(Malformed::Field { name: "key bytes" }));
    let other = Top::<Flow, 1>::from_bytes(&image, SEED);
    assert_eq!(other.err(), Some(Malformed::Field { name: "amounts" }));
    // Changes each byte of a bucket under a valid checksum. The result must be another structure or
    // an error.
    let start = 32 + 9 * 8;
    for at in start..image.len() - 4 {
        let mut damaged = image.clone();
        damaged[at] ^= 0x80;
        let body = damaged.len() - 4;
        let checksum = crc32fast::hash(&damaged[..body]);
        damaged[body..].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(table) = Table::from_bytes(&damaged, SEED) {
            assert_eq!(table.to_bytes(), damaged, "byte {at}");
        }
    }
}
