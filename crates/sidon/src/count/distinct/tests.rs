use super::*;
use crate::plan;
use sidon_kit::Rng;
use std::collections::HashSet;

const SEEDS: u64 = 1_000;

fn empty(registers: u32, seed: u64) -> Distinct {
    Distinct::new(Shape { registers }, Seed(seed.into())).unwrap()
}

/// Registers after about `all` words, drawn rank by rank: for numbers that take too long to count.
fn drawn(registers: u32, all: u64, seed: u64) -> Distinct {
    let (mut rng, mut distinct) = (Rng::seeded(seed), empty(registers, seed));
    distinct.listed = None;
    let mean = all as f64 / f64::from(registers);
    for register in 0..registers as usize {
        for rank in 1..=164u32 {
            let chance = 0.5f64.powi(3 + ((rank - 1) / 4).min(39) as i32);
            if rng.chance(-(-mean * chance).exp_m1()) {
                registers::insert_rank(distinct.bytes.bytes_mut(), register, rank);
            }
        }
    }
    distinct
}

fn counted(registers: u32, all: u64, seed: u64) -> Distinct {
    let mut distinct = empty(registers, seed);
    (0..all).for_each(|key| distinct.add(&key));
    distinct
}

#[test]
fn the_interval_holds_for_99_of_100_seeds_and_the_error_is_the_planned_one() {
    // Six standard deviations below 99%: 990 - 6 * sqrt(1000 * 0.99 * 0.01) = 971.1.
    let least = |all: f64| 0.99 * all - 6.0 * (all * 0.99 * 0.01).sqrt();
    let (mut together, mut cases) = (0, 0);
    for registers in [16, 64, 400] {
        for (all, of) in [
            (30, counted as fn(u32, u64, u64) -> Distinct),
            (200, counted),
            (300, counted),
            (1_000, counted),
            (20_000, counted),
            (1_000_000, drawn),
            (1_000_000_000_000, drawn),
        ] {
            let (mut held, mut sum, mut squares) = (0, 0.0, 0.0);
            for seed in 0..SEEDS {
                let count = of(registers, all, seed).count();
                held += u64::from(count.contains(all));
                let error = count.value as f64 / all as f64 - 1.0;
                (sum, squares) = (sum + error, squares + error * error);
            }
            assert!(
                held as f64 >= least(SEEDS as f64),
                "{registers}, {all}: {held} of {SEEDS} hold"
            );
            (together, cases) = (together + held, cases + 1);
            let n = SEEDS as f64;
            let (mean, planned) = (sum / n, plan::distinct::error(Shape { registers }));
            let deviation = (squares / n - mean * mean).sqrt();
            assert!(
                mean.abs() < 6.0 * planned / n.sqrt() + 0.004,
                "{registers}, {all}: bias {mean}"
            );
            // A standard deviation of 1,000 normal values has a relative error of 1 / sqrt(2000).
            let most = planned * (1.0 + 6.0 / (2.0 * n).sqrt() + 1.0 / f64::from(registers));
            assert!(deviation < most, "{registers}, {all}: {deviation}, planned {planned}");
            if all >= 1_000_000 {
                assert!(deviation > planned * (1.0 - 6.0 / (2.0 * n).sqrt()), "{deviation}");
            }
        }
    }
    assert!(together as f64 >= least((cases * SEEDS) as f64), "{together} of {}", cases * SEEDS);
}

#[test]
fn the_bytes_depend_on_the_set_of_keys_alone() {
    for seed in 0..300 {
        let mut rng = Rng::seeded(seed);
        let registers = [16, 40, 700][seed as usize % 3];
        let number = 1 + rng.below(600);
        let keys: Vec<u64> = (0..number).map(|_| rng.below(500)).collect();
        let mut one = empty(registers, 1);
        keys.iter().for_each(|key| one.add(key));
        let mut other = empty(registers, 1);
        other.add_batch(&keys.iter().rev().chain(&keys).copied().collect::<Vec<_>>());
        assert!(one == other);
        let [mut left, mut right] = [(); 2].map(|()| empty(registers, 1));
        for key in &keys {
            if rng.chance(0.3) { &mut left } else { &mut right }.add(key);
        }
        let mut merged = left.try_clone().unwrap();
        merged.merge(&right).unwrap();
        assert!(merged == one);
        right.merge(&left).unwrap();
        assert!(right == one);
        // Exact as long as the list has room.
        let truth = keys.iter().collect::<HashSet<_>>().len() as u64;
        let room = most_listed(Shape { registers }) as u64;
        assert_eq!(one.count().is_exact(), truth <= room);
        assert!(!one.count().is_exact() || one.count().value == truth);
    }
}

#[test]
fn a_merge_of_another_shape_or_seed_is_refused() {
    let mut one = counted(16, 9, 1);
    let before = one.to_bytes();
    for (field, other) in [("seed", counted(16, 5, 2)), ("registers", counted(18, 5, 1))] {
        assert_eq!(one.merge(&other), Err(Refused::Mismatch { field }));
        assert!(one.to_bytes() == before);
    }
}

#[test]
fn impossible_shapes_are_refused() {
    for registers in [0, 14, 17, (1 << 20) + 2, u32::MAX] {
        let why = Distinct::new(Shape { registers }, Seed(1)).err();
        assert_eq!(why.and_then(|why| why.name()), Some("registers"));
        assert_eq!(Distinct::planned_bytes(Shape { registers }), u64::MAX);
    }
}
