//! Laws of counts compared with an exact reference, and their error rates, to six sigma.

use sidon::{
    Bound, Certainty, Digest, Estimate, Infeasible, Key, Refused, Seed,
    count::{Layout, Min, Update, min::Shape, solve},
    plan,
};
use sidon_kit::{FiveTuples, Keys, Rng, Zipf, assert_rate, rate::assert_close};
use std::collections::HashMap;

const SHAPE: Shape =
    Shape { rows: 4, columns: 512, width: 32, update: Update::Plain, layout: Layout::Rows };

/// Every width, number of rows of any kind, layout and update.
fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for width in [8, 16, 32, 64] {
        for rows in [1, 2, 3, 4, 5, 8, 16] {
            for update in [Update::Plain, Update::Conservative] {
                let layout = Layout::Rows;
                shapes.push(Shape { rows, columns: 101, width, update, layout });
                let cells = 512 / width;
                if rows <= cells {
                    let columns = 37 * u64::from(cells / rows);
                    let layout = Layout::Line;
                    shapes.push(Shape { rows, columns, width, update, layout });
                }
            }
        }
    }
    shapes
}

/// Additions under Zipf keys, some of them large.
fn stream(additions: usize, keys: u64, seed: u64) -> Vec<(u64, u64)> {
    let law = Zipf::new(keys, 1.0);
    let mut rng = Rng::seeded(seed);
    let mut one = || (law.draw(&mut rng), 1 + rng.below(3));
    (0..additions).map(|_| one()).collect()
}

fn truth(stream: &[(u64, u64)]) -> HashMap<u64, u64> {
    let mut truth = HashMap::new();
    for (key, amount) in stream {
        *truth.entry(*key).or_insert(0) += amount;
    }
    truth
}

fn filled(shape: Shape, stream: &[(u64, u64)]) -> Min {
    let mut sketch = Min::new(shape, Seed(3)).unwrap();
    for (key, amount) in stream {
        sketch.add(key, *amount).unwrap();
    }
    sketch
}

/// Checks the parts of an answer that are facts.
#[track_caller]
fn check(estimate: Estimate, count: u64, shape: Shape) {
    let Estimate { value, bound, slack, certainty } = estimate;
    match bound {
        Bound::Exact => assert_eq!(value, count, "{shape:?}"),
        Bound::AtMost => assert!(value >= count, "{value} for {count}, {shape:?}"),
        Bound::AtLeast => assert_eq!(value, shape.ceiling(), "{shape:?}"),
    }
    assert!(slack <= value);
    if certainty == Certainty::Certain {
        assert!(value - slack <= count, "{value} - {slack} for {count}, {shape:?}");
    }
}

#[test]
fn no_count_is_below_the_truth_in_any_shape() {
    let stream = stream(3_000, 400, 1);
    let truth = truth(&stream);
    let (mut at_least, mut exact, mut slight) = (0, 0, 0);
    for shape in shapes() {
        let sketch = filled(shape, &stream);
        assert_eq!(sketch.total(), stream.iter().map(|(_, amount)| amount).sum::<u64>());
        for key in 0..600u64 {
            let (estimate, count) = (sketch.estimate(&key), truth.get(&key).copied().unwrap_or(0));
            check(estimate, count, shape);
            at_least += u32::from(estimate.bound == Bound::AtLeast);
            exact += u32::from(estimate.bound == Bound::Exact);
            slight += u32::from(estimate.slack < estimate.value);
        }
        assert!(sketch.stats().load > 0.0 && sketch.stats().load <= 1.0);
        assert_eq!(sketch.stats().at_ceiling > 0, shape.width == 8, "{shape:?}");
    }
    // The test covered every kind of answer.
    assert!(at_least > 100 && exact > 1_000 && slight > 1_000, "{at_least} {exact} {slight}");
}

#[test]
fn conservative_counts_are_at_most_the_plain_ones_and_smaller_on_the_whole() {
    let stream = stream(20_000, 5_000, 2);
    for shape in shapes().into_iter().filter(|shape| shape.update == Update::Plain) {
        let plain = filled(shape, &stream);
        let less = filled(Shape { update: Update::Conservative, ..shape }, &stream);
        let sum = |sketch: &Min| (1..=5_000u64).map(|key| sketch.estimate(&key).value).sum::<u64>();
        for key in 1..=5_000u64 {
            assert!(less.estimate(&key).value <= plain.estimate(&key).value, "{shape:?}");
        }
        // With one counter per row and line, the two updates are the same.
        let choice = shape.rows > 1 && shape.columns > 37;
        if choice && shape.width > 16 {
            assert!(sum(&less) < sum(&plain), "{shape:?}");
        }
    }
}

#[test]
fn batches_say_and_do_what_single_operations_do() {
    let stream = stream(2_000, 900, 3);
    let (keys, amounts): (Vec<u64>, Vec<u64>) = stream.iter().copied().unzip();
    let digests: Vec<Digest> = keys.iter().map(|key| key.digest(Seed(3))).collect();
    let mut shapes = shapes();
    // Beyond the core's cache, and beyond all caches.
    shapes.extend([100_003, 1_500_003].map(|columns| Shape { columns, ..SHAPE }));
    shapes.extend([400_000, 4_000_000].map(|columns| Shape {
        columns,
        layout: Layout::Line,
        update: Update::Conservative,
        ..SHAPE
    }));
    for shape in shapes {
        let mut single = filled(shape, &stream);
        let mut batch = Min::new(shape, Seed(3)).unwrap();
        batch.add_batch(&keys, &amounts, &mut |_, why| panic!("{why}"));
        assert!(batch.to_bytes() == single.to_bytes(), "{shape:?}");
        batch.clear();
        assert_eq!((batch.total(), batch.stats().load), (0, 0.0));
        batch.add_batch(&digests, &amounts, &mut |_, why| panic!("{why}"));
        assert!(batch.to_bytes() == single.to_bytes(), "{shape:?}");
        let mut estimates = vec![Estimate::exact(0); keys.len()];
        let mut values = vec![0; keys.len()];
        single.estimate_batch(&keys, &mut estimates);
        single.least_batch(&keys, &mut values);
        for ((key, estimate), value) in keys.iter().zip(&estimates).zip(values) {
            assert_eq!(single.estimate(key), *estimate);
            assert_eq!(estimate.value, value);
        }
        single.decay(2, 3).unwrap();
        single.estimate_batch(&keys, &mut estimates);
        for (key, estimate) in keys.iter().zip(&estimates) {
            assert_eq!(single.estimate(key), *estimate, "{shape:?}");
        }
    }
}

#[test]
fn a_merge_is_the_sketch_of_both_streams_and_comes_apart_again() {
    let (left, right) = (stream(4_000, 700, 4), stream(3_000, 900, 5));
    let both = [left.clone(), right.clone()].concat();
    let truth = truth(&both);
    for shape in shapes() {
        let mut merged = filled(shape, &left);
        let before = merged.to_bytes();
        merged.merge(&filled(shape, &right)).unwrap();
        for (key, count) in &truth {
            check(merged.estimate(key), *count, shape);
        }
        if shape.update == Update::Conservative {
            assert_eq!(merged.unmerge(&merged.try_clone().unwrap()), Err(Refused::NotSums));
            continue;
        }
        assert!(merged.to_bytes() == filled(shape, &both).to_bytes(), "{shape:?}");
        let full = merged.stats().at_ceiling > 0;
        let apart = merged.unmerge(&filled(shape, &right));
        if full {
            assert_eq!(apart, Err(Refused::Overflow { ceiling: shape.ceiling() }));
        } else {
            assert_eq!(apart, Ok(()));
            assert!(merged.to_bytes() == before, "{shape:?}");
            // Amounts that were never added cannot be subtracted.
            let more = filled(shape, &[(1, merged.total() + 1)]);
            assert_eq!(merged.unmerge(&more), Err(Refused::NotStored));
            assert!(merged.to_bytes() == before, "{shape:?}");
        }
    }
    // A decay rounds amounts, so none can be subtracted exactly afterwards.
    let mut decayed = Min::new(SHAPE, Seed(1)).unwrap();
    decayed.add("key", 40).unwrap();
    let earlier = decayed.try_clone().unwrap();
    decayed.add("key", 60).unwrap();
    decayed.decay(1, 2).unwrap();
    let before = decayed.to_bytes();
    assert_eq!(decayed.unmerge(&earlier), Err(Refused::NotSums));
    assert_eq!(decayed.subtract("key", 40), Err(Refused::NotSums));
    assert_eq!(decayed.to_bytes(), before);
    let mut whole = earlier.try_clone().unwrap();
    assert_eq!(whole.unmerge(&decayed), Err(Refused::NotSums));
    assert_eq!(whole, earlier);

    let mut one = Min::new(SHAPE, Seed(1)).unwrap();
    for (other, seed, field) in [
        (SHAPE, 2, "seed"),
        (Shape { rows: 3, ..SHAPE }, 1, "rows"),
        (Shape { columns: 511, ..SHAPE }, 1, "columns"),
        (Shape { width: 64, ..SHAPE }, 1, "width"),
        (Shape { update: Update::Conservative, ..SHAPE }, 1, "update"),
        (Shape { layout: Layout::Line, ..SHAPE }, 1, "layout"),
    ] {
        let other = Min::new(other, Seed(seed)).unwrap();
        assert_eq!(one.merge(&other), Err(Refused::Mismatch { field }));
    }
}

#[test]
fn what_was_added_can_be_subtracted() {
    let (left, right) = (stream(4_000, 700, 6), stream(2_000, 700, 7));
    for shape in shapes() {
        let mut sketch = filled(shape, &left);
        let before = sketch.to_bytes();
        if shape.update == Update::Conservative {
            assert_eq!(sketch.subtract(&left[0].0, 1), Err(Refused::NotSums));
            assert!(sketch.to_bytes() == before);
            continue;
        }
        let full = sketch.stats().at_ceiling > 0;
        for (key, amount) in &right {
            sketch.add(key, *amount).unwrap();
        }
        if shape.width > 8 {
            for (key, amount) in &right {
                sketch.subtract(key, *amount).unwrap();
            }
            assert!(sketch.to_bytes() == before, "{shape:?}");
            assert_eq!(sketch.subtract(&1u64, u64::MAX), Err(Refused::NotStored));
            assert!(sketch.to_bytes() == before);
        } else if full {
            // If a counter is at its ceiling, its value after a subtraction is not known.
            let refused = Refused::Overflow { ceiling: 255 };
            let before = sketch.to_bytes();
            assert!((1..=700u64).any(|key| sketch.subtract(&key, 0) == Err(refused)));
            assert!(sketch.to_bytes() == before);
        }
    }
}

#[test]
fn a_counter_at_its_ceiling_says_at_least_and_is_never_silent() {
    let shape = Shape { width: 8, columns: 64, ..SHAPE };
    let mut sketch = Min::new(shape, Seed(1)).unwrap();
    sketch.add(&7u64, 254).unwrap();
    assert_eq!((sketch.estimate(&7u64).value, sketch.estimate(&7u64).bound), (254, Bound::AtMost));
    sketch.add(&7u64, 1_000_000).unwrap();
    let estimate = sketch.estimate(&7u64);
    assert_eq!((estimate.value, estimate.bound), (255, Bound::AtLeast));
    assert_eq!(sketch.estimate_unbiased(&7u64), None);
    assert_eq!(sketch.subtract(&7u64, 1), Err(Refused::Overflow { ceiling: 255 }));
    // A decay by half turns "255 or more" into "127 or more".
    sketch.decay(1, 2).unwrap();
    let estimate = sketch.estimate(&7u64);
    assert_eq!((estimate.value, estimate.bound), (127, Bound::AtLeast));
    sketch.clear();
    assert_eq!(sketch.estimate(&7u64), Estimate::exact(0));
    // The total has a ceiling, too, where an addition is refused.
    sketch.add(&1u64, u64::MAX).unwrap();
    let before = sketch.to_bytes();
    assert_eq!(sketch.add(&2u64, 1), Err(Refused::Overflow { ceiling: u64::MAX }));
    let mut refused = Vec::new();
    sketch.add_batch(&[1u64, 2, 3], &[0, 9, 0], &mut |key, _| refused.push(key));
    assert_eq!(refused, [1]);
    assert!(sketch.to_bytes() == before);
}

/// Another library calls the sketch's estimate a lower bound. With a hundred keys in a row of three
/// counters, every key would then have at least about 33.
#[test]
fn a_count_is_not_a_lower_bound() {
    let shape = Shape { rows: 1, columns: 3, ..SHAPE };
    let sketch = filled(shape, &(0..100).map(|key| (key, 1)).collect::<Vec<_>>());
    for key in 0..100u64 {
        let Estimate { value, bound, slack, certainty } = sketch.estimate(&key);
        assert!(value > 10 && bound == Bound::AtMost);
        assert!(value - slack <= 1, "{value} less {slack}, {certainty:?}");
    }
}

#[test]
fn decayed_counts_are_never_below_decayed_amounts() {
    let stream = stream(6_000, 300, 8);
    for shape in shapes().into_iter().filter(|shape| shape.width > 8) {
        let mut sketch = Min::new(shape, Seed(3)).unwrap();
        let mut truth: HashMap<u64, f64> = HashMap::new();
        for (i, (key, amount)) in stream.iter().enumerate() {
            sketch.add(key, *amount).unwrap();
            *truth.entry(*key).or_default() += *amount as f64;
            if i % 1_000 == 999 {
                sketch.decay(3, 4).unwrap();
                truth.values_mut().for_each(|count| *count *= 0.75);
            }
        }
        for (key, count) in &truth {
            let estimate = sketch.estimate(key);
            assert!(estimate.value as f64 >= *count - 1e-6, "{estimate:?} for {count}, {shape:?}");
            if estimate.certainty == Certainty::Certain {
                assert!((estimate.value - estimate.slack) as f64 <= *count);
            }
        }
        assert_eq!(Min::from_bytes(&sketch.to_bytes(), Seed(3)).unwrap().total(), sketch.total());
        let mut other = filled(shape, &stream[..100]);
        if shape.update == Update::Plain {
            let refused = Err(Refused::NotSums);
            assert_eq!(other.unmerge(&sketch), refused);
        }
    }
    let mut sketch = filled(SHAPE, &stream);
    let before = sketch.to_bytes();
    assert!(sketch.decay(2, 1).is_err() && sketch.decay(0, 0).is_err());
    sketch.decay(5, 5).unwrap();
    assert!(sketch.to_bytes() == before);
    sketch.decay(0, 1).unwrap();
    assert_eq!((sketch.total(), sketch.stats().load), (0, 0.0));
}

#[test]
fn shapes_that_cannot_be_are_infeasible() {
    for (shape, name) in [
        (Shape { rows: 0, ..SHAPE }, "rows"),
        (Shape { rows: 17, ..SHAPE }, "rows"),
        (Shape { columns: 0, ..SHAPE }, "columns"),
        (Shape { columns: u64::MAX, ..SHAPE }, "columns"),
        (Shape { width: 0, ..SHAPE }, "width"),
        (Shape { width: 24, ..SHAPE }, "width"),
        (Shape { width: 128, ..SHAPE }, "width"),
        (Shape { width: 64, rows: 9, layout: Layout::Line, ..SHAPE }, "rows"),
        (Shape { columns: 511, layout: Layout::Line, ..SHAPE }, "columns"),
    ] {
        let why = Min::new(shape, Seed(1)).unwrap_err();
        assert_eq!(why.name(), Some(name), "{why}");
    }
    let much = Shape { columns: 1 << 46, width: 64, ..SHAPE };
    assert!(matches!(Min::new(much, Seed(1)), Err(Infeasible::Memory { .. })));
}

/// The number of keys never added, out of `strangers`, whose error is above the slack, over
/// sketches of `keys` keys of equal size.
fn beyond_slack(shape: Shape, keys: u64, sketches: u64, strangers: u64) -> (usize, usize) {
    let mut beyond = 0;
    for seed in 0..sketches {
        let mut sketch = Min::new(shape, Seed(seed.into())).unwrap();
        for key in 0..keys {
            sketch.add(&key, 1000).unwrap();
        }
        for key in keys..keys + strangers {
            let estimate = sketch.estimate(&key);
            beyond += usize::from(estimate.value > estimate.slack);
        }
    }
    (beyond, (sketches * strangers) as usize)
}

/// Few keys of equal size come near what no stream can exceed: of `j w / e` of them, one in
/// `1 / P(Poisson(j / e) >= j)` meets `j`, and then the error is the slack.
#[test]
fn errors_beyond_the_slack_are_as_rare_as_claimed_and_no_rarer_than_they_must_be() {
    for rows in [1, 2, 3] {
        for level in 1..=4 {
            let shape = Shape { rows, columns: 4_000, ..SHAPE };
            // A key less, so that `level` of them are just above the slack and not just below.
            let keys = (f64::from(level) * 4_000.0 / std::f64::consts::E) as u64 - 2;
            let (beyond, all) = beyond_slack(shape, keys, 30, 5_000);
            let row = sidon_kit::poisson::poisson_at_least(keys as f64 / 4_000.0, level as u64);
            let claimed = (-f64::from(rows)).exp();
            let p = row.powi(rows as i32);
            assert!(p < claimed);
            // The sketches differ a little in how many counters are shared.
            let deviation = 6.0 / (p * all as f64).sqrt();
            assert_close(beyond as f64 / all as f64, p, 0.05 + deviation);
            assert!((beyond as f64) < claimed * all as f64);
        }
    }
}

#[test]
fn in_a_line_errors_beyond_the_slack_are_as_rare_as_claimed() {
    for update in [Update::Plain, Update::Conservative] {
        for (rows, width, columns) in [(4, 32, 4_000), (2, 32, 8_000), (4, 16, 8_000)] {
            let shape = Shape { rows, width, columns, update, layout: Layout::Line };
            let claimed = (-f64::from(rows)).exp();
            for keys in [200, 1_000, 3_000, 8_000] {
                let (beyond, all) = beyond_slack(shape, keys, 20, 2_000);
                let most = claimed * all as f64;
                assert!((beyond as f64) < most + 6.0 * most.sqrt(), "{beyond} of {all}, {shape:?}");
            }
        }
    }
}

#[test]
fn the_mean_error_is_the_planned_one() {
    for (layout, rows, width, columns, keys) in [
        (Layout::Rows, 4, 32, 20_000, 20_000),
        (Layout::Rows, 2, 64, 10_000, 40_000),
        (Layout::Rows, 5, 16, 30_000, 90_000),
        (Layout::Line, 4, 32, 20_000, 20_000),
        (Layout::Line, 3, 16, 30_000, 60_000),
    ] {
        let shape = Shape { rows, columns, width, update: Update::Plain, layout };
        let (mut sum, mut asked) = (0, 0u64);
        for seed in 0..4 {
            let mut sketch = Min::new(shape, Seed(seed)).unwrap();
            let mut tuples = FiveTuples::seeded(seed as u64);
            for key in tuples.by_ref().take(keys) {
                sketch.add(&key, 3).unwrap();
            }
            for key in tuples.take(150_000) {
                sum += sketch.estimate(&key).value;
                asked += 1;
            }
        }
        let planned = plan::count::excess(shape, keys as u64, 3 * keys as u64);
        assert_close(sum as f64 / asked as f64, planned, 0.03);
    }
}

#[test]
fn the_unbiased_estimate_is_unbiased_and_nearer_where_columns_are_few() {
    // One row: the mean error of all keys is zero within its standard deviation. That is size *
    // sqrt(keys / columns), and keys that share a counter have the same error.
    let shape = Shape { rows: 1, columns: 4_096, ..SHAPE };
    let stream: Vec<_> = Keys::seeded(9).take(40_000).map(|key| (key, 5)).collect();
    let sketch = filled(shape, &stream);
    let error = |key: &u64| sketch.estimate_unbiased(key).unwrap() - 5.0;
    let mean = stream.iter().map(|(key, _)| error(key)).sum::<f64>() / stream.len() as f64;
    let deviation = 5.0 * (40_000.0f64 / 4_096.0).sqrt() / 4_096f64.sqrt();
    assert!(mean.abs() < 6.0 * deviation, "{mean} of {deviation}");
    for layout in [Layout::Rows, Layout::Line] {
        let shape = Shape { rows: 4, columns: 1_024, layout, ..SHAPE };
        let sketch = filled(shape, &stream);
        let (mut unbiased, mut least) = (0.0, 0.0);
        for (key, count) in &stream {
            unbiased += (sketch.estimate_unbiased(key).unwrap() - *count as f64).abs();
            least += (sketch.estimate(key).value - count) as f64;
        }
        assert!(unbiased < least / 3.0, "{unbiased} {least} {layout:?}");
    }
    let conservative = Shape { update: Update::Conservative, ..shape };
    assert_eq!(filled(conservative, &stream[..9]).estimate_unbiased(&1u64), None);
    assert_eq!(filled(Shape { columns: 1, ..shape }, &stream).estimate_unbiased(&1u64), None);
}

#[test]
fn fewer_keys_than_counters_are_solved_exactly() {
    let stream = stream(50_000, 1_500, 10);
    let truth = truth(&stream);
    let keys: Vec<u64> = truth.keys().copied().collect();
    let errors = |sketch: &Min| {
        let solution = solve(sketch, &keys, 3_000).unwrap();
        assert!(solution.residual < 1e-3, "{} after {}", solution.residual, solution.sweeps);
        let (mut plain, mut solved, mut worst) = (0.0, 0.0, 0.0f64);
        for (key, count) in keys.iter().zip(&solution.counts) {
            let error = (count - truth[key] as f64).abs();
            (solved, worst) = (solved + error, worst.max(error));
            plain += (sketch.estimate(key).value - truth[key]) as f64;
        }
        (plain, solved, worst)
    };
    let (plain, _, worst) = errors(&filled(Shape { columns: 700, ..SHAPE }, &stream));
    assert!(plain > 100.0 && worst < 0.01, "{plain}, solved to {worst}");
    // In a line some keys have the same counters, so they cannot be distinguished.
    let line = Shape { columns: 1_600, layout: Layout::Line, ..SHAPE };
    let (plain, solved, _) = errors(&filled(line, &stream));
    assert!(plain > 100.0 && solved < plain / 4.0, "{plain}, solved to {solved}");
}

#[test]
fn more_keys_than_counters_are_still_nearer_than_estimates() {
    let stream = stream(100_000, 4_000, 11);
    let truth = truth(&stream);
    let keys: Vec<u64> = truth.keys().copied().collect();
    let sketch = filled(Shape { rows: 3, columns: 500, ..SHAPE }, &stream);
    let solution = solve(&sketch, &keys, 200).unwrap();
    let (mut solved, mut plain) = (0.0, 0.0);
    for (key, count) in keys.iter().zip(&solution.counts) {
        let (value, truth) = (sketch.estimate(key).value as f64, truth[key] as f64);
        assert!(*count >= 0.0 && *count <= value);
        solved += (count - truth).abs();
        plain += value - truth;
    }
    assert!(solved < plain / 2.0, "{solved} {plain}");
}

#[test]
fn a_system_by_hand_is_solved() {
    // One key: the mean of its counters, which are all its count. If another key shares one of
    // them, the bound decides, and the residual shows that a key is missing.
    let shape = Shape { rows: 2, columns: 50, ..SHAPE };
    let sketch = filled(shape, &[(1, 10)]);
    let alone = solve(&sketch, &[1u64], 10).unwrap();
    assert_eq!((alone.counts[0], alone.residual), (10.0, 0.0));
    let stranger = (2..).find(|key| {
        let both = filled(shape, &[(1, 10), (*key, 100)]);
        both.stats().load == 3.0 / 100.0
    });
    let both = filled(shape, &[(1, 10), (stranger.unwrap(), 100)]);
    let solution = solve(&both, &[1u64], 10).unwrap();
    assert_eq!(solution.counts, [10.0]);
    assert!(solution.residual > 1.0);
    let solution = solve(&both, &[1, stranger.unwrap()], 1000).unwrap();
    assert_close(solution.counts[0], 10.0, 1e-6);
    assert_close(solution.counts[1], 100.0, 1e-6);
    let conservative = Min::new(Shape { update: Update::Conservative, ..shape }, Seed(1)).unwrap();
    assert_eq!(solve(&conservative, &[1u64], 1), Err(Refused::NotSums));
    // A counter at its ceiling is no equation: the other counters suffice.
    let mut full = filled(Shape { width: 8, ..shape }, &[(1, 10), (stranger.unwrap(), 254)]);
    full.add(&stranger.unwrap(), 100).unwrap();
    let solution = solve(&full, &[1, stranger.unwrap()], 1000).unwrap();
    assert_close(solution.counts[0], 10.0, 1e-6);
}

#[test]
fn empty_sketches_are_exact_and_hits_are_rare() {
    let sketch = Min::new(Shape { columns: 1_000, ..SHAPE }, Seed(1)).unwrap();
    assert_eq!(sketch.estimate("anything"), Estimate::exact(0));
    // 500 keys: a key never added shares a counter in each of four rows with probability (1 - (1 -
    // 1/w)^500)^4.
    let stream: Vec<_> = (0..500).map(|key| (key, 1)).collect();
    let sketch = filled(Shape { columns: 1_000, ..SHAPE }, &stream);
    let p = plan::bloom::rate(sidon::set::bloom::Shape { bits: 4_000, hashes: 4 }, 500);
    let hits = (500..400_500u64).filter(|key| sketch.estimate(key).bound != Bound::Exact).count();
    // This sketch's own fill differs from the mean by a few per cent.
    assert_close(hits as f64 / 400_000.0, p, 0.2);
    assert_rate(hits, 400_000, own_rate(&sketch));
}

/// The probability that a key never added has a counter in use in each row, from the present
/// counters.
fn own_rate(sketch: &Min) -> f64 {
    let image = sketch.to_bytes();
    let counters = &image[32 + 8 * 8..image.len() - 4];
    let rows = counters.chunks(sketch.shape().columns as usize * 4);
    let used = |row: &[u8]| {
        let used = row.chunks(4).filter(|counter| counter.iter().any(|&byte| byte != 0)).count();
        used as f64 / sketch.shape().columns as f64
    };
    rows.map(used).product()
}
