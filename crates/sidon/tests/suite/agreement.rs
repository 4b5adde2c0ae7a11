//! Planned, predicted and measured false-positive rates agree, from ten keys to a million.
//!
//! The planned rate is that of an average table by `plan`. The predicted one is the filter's own.
//! The measured one is the share of keys never inserted that pass. A small table differs much
//! from the average one, so these are averaged over many seeds.

use sidon::{
    Seed,
    plan::{self, Prefer, Target},
    set::{
        Bh, Counting, Decode, Filter, Increments, Overflow, Set, Spread, Variable, bh, counting,
        variable,
    },
};
use sidon_kit::{rate::assert_close, rate::sigmas, trials};

/// The relative error that six standard deviations must not exceed.
const TOLERANCE: f64 = 0.05;

/// Fills a filter of each seed with `keys` keys and looks up keys that it does not hold.
fn agree<B: Filter>(case: &str, seeds: u64, keys: u64, planned: f64, new: impl Fn(Seed) -> Set<B>) {
    let lookups = trials(planned, TOLERANCE).div_ceil(seeds as usize);
    let members: Vec<u64> = (0..keys).collect();
    let others: Vec<u64> = (keys..).take(lookups).collect();
    let mut found = vec![false; lookups];
    let (mut hits, mut sum, mut squares) = (0, 0.0, 0.0);
    for seed in 0..seeds {
        let mut filter = new(Seed(0xa6ee_0000 + u128::from(seed)));
        filter.insert_batch(&members, &mut |_, why| panic!("{case}: {why}"));
        let own = filter.certainty().error();
        (sum, squares) = (sum + own, squares + own * own);
        filter.contains_batch(&others, &mut found);
        hits += found.iter().filter(|&&found| found).count();
    }
    let n = lookups * seeds as usize;
    let predicted = sum / seeds as f64;
    let off = sigmas(hits, n, predicted);
    let measured = hits as f64 / n as f64;
    println!("{case}: planned {planned:.4e} predicted {predicted:.4e} measured {measured:.4e}");
    assert!(off.abs() <= 6.0, "{case}: {off:.1} sigma from what the filters predict");
    // Rates differ from table to table. Six standard errors of their mean must be below the tolerance.
    let variance = (squares / seeds as f64 - predicted * predicted).max(0.0);
    let sigma = (variance / seeds as f64).sqrt() / predicted;
    assert!(seeds == 1 || 6.0 * sigma <= TOLERANCE, "{case}: {sigma:.4} is too uncertain");
    assert_close(predicted, planned, TOLERANCE);
    let both = (sigma * sigma + (1.0 - predicted) / (predicted * n as f64)).sqrt();
    assert!((measured / planned - 1.0).abs() <= 6.0 * both + 0.01, "{case}: measured {measured}");
}

fn lines(spread: Spread) -> bool {
    matches!(spread, Spread::Lines(_))
}

fn counting_agrees(seeds: u64, target: Target) {
    for prefer in [Prefer::Memory, Prefer::Speed] {
        let shape = plan::counting::shape(Target { prefer, ..target }).unwrap();
        let planned = plan::counting::rate(shape, target.keys);
        assert!(planned <= target.false_positives);
        let new = |seed| Counting::new(shape, seed).unwrap();
        let case = format!("{target:?} {shape:?}");
        agree(&case, seeds, target.keys, planned, new);
    }
}

fn variable_agrees(seeds: u64, target: Target) {
    let mut in_lines = plan::variable::shape(Target { prefer: Prefer::Speed, ..target }).unwrap();
    if !lines(in_lines.spread) {
        // The plan prefers cells anywhere: test lines nevertheless.
        let counters = in_lines.counters.next_multiple_of(64) + 64;
        let (width, spread, overflow) = (8, Spread::Lines(2), Overflow::Pin);
        let increments = Increments::of([8, 12, 14, 15]);
        in_lines = variable::Shape { counters, hashes: 6, width, increments, overflow, spread };
    }
    for shape in [plan::variable::shape(target).unwrap(), in_lines] {
        let planned = plan::variable::rate(shape, target.keys).unwrap();
        let new = |seed| Variable::new(shape, seed).unwrap();
        let case = format!("{target:?} {shape:?}");
        agree(&case, seeds, target.keys, planned, new);
    }
}

fn bh_agrees(seeds: u64, target: Target) {
    let flat = plan::bh::shape(target).unwrap();
    // Lines of 32 cells of 16 bits.
    let (cells, hashes) = ((flat.cells * 9 / 8).next_multiple_of(32), flat.hashes & !1);
    let (keys_bits, sum_bits, spread) = (6, 10, Spread::Lines(2));
    for shape in [flat, bh::Shape { cells, hashes, keys_bits, sum_bits, spread, ..flat }] {
        let planned = plan::bh::rate(shape, target.keys).unwrap();
        let new = |seed| Bh::new(shape, seed).unwrap();
        let case = format!("{target:?} {shape:?}");
        agree(&case, seeds, target.keys, planned, new);
    }
}

#[test]
fn twenty_keys_pass_as_planned_in_every_layout() {
    let target = Target::new(20, 0.01);
    counting_agrees(10_000, target);
    variable_agrees(10_000, target);
    bh_agrees(10_000, target);
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn ten_to_a_million_keys_pass_as_planned_in_every_layout() {
    for (keys, seeds) in [
        (10, 40_000),
        (20, 20_000),
        (50, 10_000),
        (100, 10_000),
        (500, 2_000),
        (1_000, 1_000),
        (5_000, 200),
        (10_000, 100),
        (100_000, 10),
        (1_000_000, 2),
    ] {
        // Without `SIDON_PLANS`, three sizes at one rate.
        let is_short = !crate::is_whole();
        if is_short && ![10, 100, 1_000].contains(&keys) {
            continue;
        }
        for false_positives in [0.01, 0.001] {
            if is_short && false_positives < 0.01 {
                continue;
            }
            let target = Target::new(keys, false_positives);
            counting_agrees(seeds, target);
            variable_agrees(seeds, target);
            bh_agrees(seeds, target);
        }
    }
}

#[test]
fn lines_of_a_key_choose_their_cells_independently() {
    // A table of one line of 128 counters: all lines of a key coincide. If two lines of a key picked
    // equal cells, a single key would use fewer counters than independent draws do.
    for (lines, hashes) in [(2, 12), (2, 16), (4, 32), (8, 32)] {
        let mut counters = 0.0;
        let shape = counting::Shape {
            counters: 128,
            hashes,
            width: 4,
            overflow: Overflow::Refuse,
            spread: Spread::Lines(lines),
        };
        let seeds = 4_000;
        for seed in 0..seeds {
            let mut filter = Counting::new(shape, Seed(seed)).unwrap();
            filter.insert(&1u64).unwrap();
            counters += filter.stats().load * 128.0;
        }
        let expected = 128.0 * (1.0 - (127.0f64 / 128.0).powi(hashes as i32));
        // Of up to 32 draws, fewer than four coincide on average: six sigma are below 1 %.
        assert_close(counters / seeds as f64, expected, 0.01);
    }
    // A table of one line of 32 cells.
    for hashes in [8, 16] {
        let shape = bh::Shape {
            cells: 32,
            hashes,
            keys_bits: 6,
            sum_bits: 10,
            increments: Increments::of([1, 4, 13, 15]),
            decode: Decode::Basic,
            centred: false,
            overflow: Overflow::Refuse,
            spread: Spread::Lines(4),
        };
        let (mut cells, seeds) = (0.0, 4_000);
        for seed in 0..seeds {
            let mut filter = Bh::new(shape, Seed(seed)).unwrap();
            filter.insert(&1u64).unwrap();
            cells += filter.stats().load * 32.0;
        }
        let expected = 32.0 * (1.0 - (31.0f64 / 32.0).powi(hashes as i32));
        assert_close(cells / seeds as f64, expected, 0.02);
    }
}
