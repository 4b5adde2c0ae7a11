//! The numbers that the paper on zones (003) prints for Count-Min sketches, and the correct ones.

use sidon::{
    Seed,
    count::{Layout, Min, Update, min::Shape},
};
use sidon_kit::Rng;

const UNIVERSE: usize = 25;
const ACTIVE: usize = 5;
const TRIALS: u64 = 40_000;

/// The mean errors of active and of idle flows.
struct Errors {
    active: f64,
    idle: f64,
}

/// Five of 25 flows have uniform sizes from 1 to 100; `estimate` answers for each of the 25.
fn errors(mut estimate: impl FnMut(u64, &[u64; UNIVERSE], &mut Rng) -> [u64; UNIVERSE]) -> Errors {
    let mut rng = Rng::seeded(12);
    let (mut active, mut idle) = (0, 0);
    for trial in 0..TRIALS {
        let mut sizes = [0; UNIVERSE];
        for _ in 0..ACTIVE {
            let place = loop {
                let place = rng.below(UNIVERSE as u64) as usize;
                if sizes[place] == 0 {
                    break place;
                }
            };
            sizes[place] = 1 + rng.below(100);
        }
        let counts = estimate(trial, &sizes, &mut rng);
        for (count, size) in counts.into_iter().zip(sizes) {
            let error = count - size;
            if size > 0 { active += error } else { idle += error }
        }
    }
    let mean = |sum: u64, flows: usize| sum as f64 / (TRIALS * flows as u64) as f64;
    Errors { active: mean(active, ACTIVE), idle: mean(idle, UNIVERSE - ACTIVE) }
}

/// Count-Min proper, with one counter per row. Over all hash functions, or only over those under
/// which no flow has the same counters as an active one.
fn by_rows(rows: u32, columns: u64, all: bool) -> Errors {
    let shape = Shape { rows, columns, width: 32, update: Update::Plain, layout: Layout::Rows };
    let counts = |seed: Seed, sizes: &[u64; UNIVERSE]| -> [u64; UNIVERSE] {
        let mut sketch = Min::new(shape, seed).unwrap();
        for (flow, &size) in sizes.iter().enumerate().filter(|(_, size)| **size > 0) {
            sketch.add(&(flow as u64), size).unwrap();
        }
        std::array::from_fn(|flow| sketch.estimate(&(flow as u64)).value)
    };
    errors(|trial, sizes, rng| {
        let mut seed = Seed(trial.into());
        let alone = |seed: Seed, flow: usize| {
            let mut sizes = [0; UNIVERSE];
            sizes[flow] = 1;
            counts(seed, &sizes).iter().sum::<u64>() == 1
        };
        while !all && !(0..UNIVERSE).all(|flow| sizes[flow] == 0 || alone(seed, flow)) {
            seed = Seed(rng.next_u64().into());
        }
        counts(seed, sizes)
    })
}

/// Distinct counters anywhere among all, no two flows with the same ones.
fn anywhere(counters: u64, each: u32) -> Errors {
    errors(|_, sizes, rng| {
        let mut masks: Vec<u64> = Vec::new();
        while masks.len() < UNIVERSE {
            let mut mask = 0u64;
            while mask.count_ones() < each {
                mask |= 1 << rng.below(counters);
            }
            if !masks.contains(&mask) {
                masks.push(mask);
            }
        }
        let counter = |i: u64| -> u64 {
            let in_use = masks.iter().zip(sizes).filter(|(mask, _)| *mask >> i & 1 == 1);
            in_use.map(|(_, size)| size).sum()
        };
        let values: Vec<u64> = (0..counters).map(counter).collect();
        std::array::from_fn(|flow| {
            let own = (0..counters).filter(|i| masks[flow] >> i & 1 == 1);
            own.map(|i| values[i as usize]).min().unwrap_or(0)
        })
    })
}

#[track_caller]
fn near(got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance, "got {got}, expected {expected}");
}

/// 003.fig12.random.m20.active, 003.fig12.random.m20.idle, 003.fig12.random.m15.idle: the paper's
/// random mapping takes distinct counters anywhere, which the paper does not state.
#[test]
fn the_papers_random_mapping_is_distinct_counters_anywhere() {
    let m20 = anywhere(20, 4);
    near(m20.active, 3.18, 0.15);
    near(m20.idle, 6.06, 0.15);
    near(anywhere(15, 3).idle, 10.29, 0.15);
}

/// These three numbers with one counter per row, as in Count-Min. Errors are larger with as many
/// counters, even if all flows have different ones.
#[test]
fn one_counter_a_row_errs_more_in_small_sketches() {
    let m20 = by_rows(4, 5, false);
    near(m20.active, 3.819, 0.15);
    near(m20.idle, 6.795, 0.15);
    near(by_rows(3, 5, false).idle, 10.763, 0.15);
    assert!(by_rows(4, 5, true).active > 3.819 + 0.15);
}
