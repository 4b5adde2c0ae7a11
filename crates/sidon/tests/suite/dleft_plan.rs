//! Plans of d-left filters agree with measurements and with the paper.
//!
//! Bonomi et al., "An improved construction for counting Bloom filters" (ESA 2006), here `002`.

use sidon::{
    Seed,
    plan::{self, Prefer, Target},
    set::{DLeft, Moves, dleft::Shape},
};
use sidon_kit::{FiveTuples, Rng, assert_rate, rate::assert_close, trials};
use std::f64::consts::LN_2;

/// The layouts that `plan::sets` lists.
const LAYOUTS: [(Prefer, u32); 3] = [(Prefer::Speed, 2), (Prefer::Memory, 2), (Prefer::Memory, 0)];

fn planned(keys: u64, false_positives: f64, (prefer, counter): (Prefer, u32)) -> Shape {
    let target = Target { prefer, ..Target::new(keys, false_positives) };
    plan::dleft::shape(target, counter).unwrap()
}

/// The table of section 5: four subtables of 2048 buckets of eight cells of 14 + 2 bits.
const PAPER: Shape = Shape {
    subtables: 4,
    buckets: 2048,
    cells: 8,
    width: 16,
    remainder: 14,
    counter: 2,
    moves: Moves::Never,
    growths: 0,
    grows: false,
};
const ELEMENTS: u64 = 49_152;
const STEPS: u64 = 1 << 20;

#[test]
fn the_example_of_002() {
    // 002.fpr.exact and 002.fpr.bound_r14.
    assert_close(plan::dleft::rate(PAPER, ELEMENTS), 0.001_463_771_411_87, 1e-9);
    assert_eq!(ELEMENTS as f64 / PAPER.fingerprints() as f64, 0.001_464_843_75);
    // 002.size.bits and 002.size.capacity.
    assert_eq!((DLeft::planned_bytes(PAPER) * 8, PAPER.all_cells()), (1_048_576, 65_536));
}

#[test]
fn the_overflows_of_002() {
    // 002.fluid.load6_5.expected_overflows and the like for 53,428 elements: a trial's insertions
    // that find all cells taken.
    let overflows = |elements| STEPS as f64 * plan::dleft::overflow(PAPER, elements);
    assert_close(overflows(53_248), 0.025_739_190_671_6, 1e-3);
    assert_close(overflows(53_428), 0.063_796_277_661_9, 1e-3);
    // 002.sim.move6_75.potential: 40 to 100 of them, on average 59.4 in 480 trials.
    assert_close(overflows(55_296), 60.3, 5e-3);
    assert!(overflows(49_152) < 1e-20);
}

#[test]
fn the_comparison_of_002() {
    // Four subtables with an average of six elements a bucket, remainders of r bits.
    let elements = 24u64 << 20;
    let shape = |remainder: u32| Shape {
        buckets: 1 << 20,
        remainder,
        width: remainder + PAPER.counter,
        ..PAPER
    };
    let bound = |r| elements as f64 / shape(r).fingerprints() as f64;
    let bits = |r| DLeft::planned_bytes(shape(r)) as f64 * 8.0 / elements as f64;
    // A counting Bloom filter of the same size has (r + 2) / 3 counters of four bits an element.
    let cbf = |r| (-(bits(r) / 4.0) * LN_2 * LN_2).exp();
    // 002.cmp.first_r: the d-left filter is better if remainders have at least seven bits.
    assert_eq!((5..=30).find(|&r| cbf(r) > bound(r)), Some(7));
    assert!((7..=30).all(|r| cbf(r) > bound(r)));
    // 002.cmp.r14_ratio: 52.6 times, where the paper says over 100; that is reached at 16.
    assert_close(cbf(14) / bound(14), 52.646_019_004, 1e-6);
    assert_eq!((7..=30).find(|&r| cbf(r) > 100.0 * bound(r)), Some(16));
    // 002.cmp.dl_r11, bits_r11 and bits_identity.
    assert_close(bound(11), 0.011_718_75, 1e-9);
    assert_close(bits(11), 52.0 / 3.0, 1e-9);
    assert_close(bits(14), 64.0 / 3.0, 1e-9);
    assert_close(bits(14), (4.0 * (1.0 / bound(14)).log2() + 20.0 + 4.0 * 3f64.log2()) / 3.0, 1e-9);
}

/// A full table after this many exchanges of all its keys, one by one and at random. Panics on any
/// refusal.
fn churned(shape: Shape, keys: usize, exchanges: usize, seed: u64) -> (DLeft, FiveTuples) {
    let mut filter = DLeft::new(shape, Seed(seed.into())).unwrap();
    let mut tuples = FiveTuples::seeded(seed);
    let mut rng = Rng::seeded(seed);
    let mut members: Vec<_> = tuples.by_ref().take(keys).collect();
    filter.insert_batch(&members, &mut |i, why| panic!("{shape:?}, key {i}: {why}"));
    for coming in tuples.by_ref().take(exchanges * keys) {
        let leaving = rng.below(keys as u64) as usize;
        filter.remove(&members[leaving]).unwrap();
        filter.insert(&coming).unwrap_or_else(|why| panic!("{shape:?}: {why}"));
        members[leaving] = coming;
    }
    assert_eq!(filter.len(), keys as u64);
    (filter, tuples)
}

fn assert_strangers_pass_at(filter: &DLeft, strangers: &mut FiveTuples, rate: f64) {
    let n = trials(rate, 0.08);
    let strangers: Vec<_> = strangers.take(n).collect();
    let mut found = vec![false; n];
    filter.contains_batch(&strangers, &mut found);
    assert_rate(found.into_iter().filter(|&found| found).count(), n, rate);
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn planned_tables_take_their_keys_and_pass_strangers_as_planned() {
    for false_positives in [0.001, 0.01] {
        for layout in LAYOUTS {
            let shape = planned(100_000, false_positives, layout);
            let (filter, mut strangers) = churned(shape, 100_000, 5, 1);
            let rate = plan::dleft::rate(shape, 100_000);
            assert!(rate <= false_positives);
            assert_strangers_pass_at(&filter, &mut strangers, rate);
        }
    }
}

#[test]
fn passed_over_fingerprints_are_in_the_plan() {
    // Short remainders and three subtables: one fingerprint in eleven is replaced by its successor.
    let shape = Shape {
        subtables: 3,
        buckets: 4001,
        width: 5,
        remainder: 5,
        counter: 0,
        moves: Moves::Search(256),
        ..PAPER
    };
    for keys in [2_000, 20_000, 80_000] {
        let (filter, mut strangers) = churned(shape, keys as usize, 1, keys);
        assert_strangers_pass_at(&filter, &mut strangers, plan::dleft::rate(shape, keys));
    }
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn small_planned_tables_are_never_full() {
    for keys in [1, 10, 100, 1000] {
        for false_positives in [0.3, 1e-3, 1e-6] {
            for layout in LAYOUTS {
                let shape = planned(keys, false_positives, layout);
                for seed in 0..1000 {
                    churned(shape, keys as usize, usize::from(seed < 10), seed);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn loads_are_those_of_the_fluid_limit() {
    // 002.table1: the paper's table, eight times as large, its keys exchanged twelve times over.
    let shape = Shape { buckets: 8 * PAPER.buckets, ..PAPER };
    let keys = 8 * ELEMENTS;
    let (filter, _) = churned(shape, keys as usize, 12, 5);
    let buckets = shape.buckets as usize;
    // Cells in use: distinct fingerprints.
    let limit = plan::dleft::bucket_loads(4, filter.stats().load * 8.0, true);
    for (subtable, (loads, limit)) in filter.loads().into_iter().zip(limit).enumerate() {
        for count in 1..=8 {
            let share = limit[count];
            let seen = loads[count..].iter().sum::<u64>() as usize;
            // The test expects none of an event rarer than one bucket. Otherwise it treats buckets
            // as independent. This overestimates the deviation, because one bucket's excess is
            // missing in others.
            if share * buckets as f64 > 1e-3 && share < 1.0 {
                let distance = sidon_kit::rate::sigmas(seen, buckets, share);
                let rare = share.min(1.0 - share) * (buckets as f64) < 10.0;
                assert!(distance.abs() < if rare { 12.0 } else { 6.0 }, "{subtable} {count}");
            } else {
                assert_eq!(seen, if share < 0.5 { 0 } else { buckets });
            }
        }
    }
}

#[test]
fn moves_are_needed_as_often_as_the_fluid_limit_says() {
    // Two subtables of 16 cells at 83 per cent, the edge of the fast layout.
    let shape =
        Shape { subtables: 2, buckets: 8192, cells: 16, moves: Moves::Search(256), ..PAPER };
    let (keys, exchanges) = ((shape.all_cells() * 83 / 100) as usize, 12);
    let (filter, _) = churned(shape, keys, exchanges, 6);
    let expected = plan::dleft::overflow(shape, keys as u64);
    // The first exchanges start from a freshly filled table, which overflows less.
    let seen = filter.stats().searches as f64 / ((exchanges - 1) * keys) as f64;
    assert_close(seen, expected, 0.15);
    assert_eq!(filter.stats().resolved, filter.stats().searches);
}
