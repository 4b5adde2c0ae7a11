use super::{
    Excess, Failures, RATES, Suspects, Test,
    excess::{self, Usual},
    failures::Shape,
};
use crate::{Refused, Seed, plan};
use sidon_kit::{Rng, poisson::poisson, rate::SIGMAS};
use std::collections::HashMap;

fn rule(usual: f64, apart: u64) -> Failures {
    Failures::new(plan::decide::shape(usual, apart).unwrap()).unwrap()
}

/// The most false accusations in `trials` trials of innocent subjects, by the bound and six sigma.
fn most(trials: u64, apart: u64) -> f64 {
    let expected = trials as f64 / apart as f64;
    expected + SIGMAS * expected.sqrt()
}

#[test]
fn an_innocent_subject_gains_at_most_one_per_trial() {
    for usual in [1e-6, 1e-4, 0.01, 0.05, 0.2, 0.5, 0.9] {
        let rule = rule(usual, 1_000);
        let p = f64::from(rule.shape().usual) / 1e6;
        // From any level, one step leads to at most the level and one, on average. The steps are those of
        // the code, with all their rounding.
        for level in [0.0, 1e-3, 0.7, 1.0, 3.3, 12.0, 345.6, 1e3 / 3.0] {
            let start = Test::from_levels([level as f32; RATES]);
            let [mut failed, mut passed] = [start; 2];
            rule.see(&mut failed, true);
            rule.see(&mut passed, false);
            for i in 0..RATES {
                let mean = p * failed.level(i) + (1.0 - p) * passed.level(i);
                assert!(mean <= start.level(i) + 1.0, "{usual} {level} {i}: {mean}");
                // The reduction costs less than it must: the test is not weak.
                let capped = failed.level(i) == f64::from(rule.ceiling());
                assert!(capped || mean >= (start.level(i) + 1.0) * (1.0 - 1e-6));
            }
        }
    }
}

#[test]
fn the_factor_of_a_count_has_a_mean_of_at_most_one() {
    let rule = Excess::new(excess::Shape::new(1 << 62)).unwrap();
    for mean in [0.01, 0.1, 0.4, 3.0, 12.5] {
        for size in [1u64, 2, 5] {
            // Bursts of `size` arrivals each, and a rule that allows for bursts of up to 5.
            for burst in [size as f64, 5.0] {
                let mut total = [0.0; RATES];
                for bursts in 0..400 {
                    let mut test = Test::default();
                    rule.see(&mut test, bursts * size, Usual { mean, burst });
                    let chance = poisson(mean / size as f64, bursts);
                    (0..RATES).for_each(|i| total[i] += chance * test.level(i));
                }
                for total in total {
                    assert!(total <= 1.0, "{mean} {size} {burst}: {total}");
                    // Levels stop at the ceiling: larger means would need larger levels.
                    assert!(
                        burst > size as f64 || mean > 0.1 || total > 0.999,
                        "{mean} {size}: {total}"
                    );
                }
            }
        }
    }
}

/// The false accusations of `subjects` subjects that fail at `rate`, with `trials` trials each.
fn accusations(rule: &Failures, rate: f64, subjects: u64, trials: u64) -> u64 {
    let mut accusations = 0;
    for subject in 0..subjects {
        let mut rng = Rng::seeded(subject);
        let mut test = Test::default();
        for _ in 0..trials {
            rule.see(&mut test, rng.chance(rate));
            if rule.accuses(&test) {
                accusations += 1;
                test.restart();
            }
        }
    }
    accusations
}

#[test]
fn false_accusations_stay_within_the_budget_however_often_one_looks() {
    let apart = 50_000;
    for usual in [0.01, 0.2] {
        let rule = rule(usual, apart);
        let [few, many] =
            [usual, usual * 1.4].map(|rate| accusations(&rule, rate, 1_000, 10_000) as f64);
        assert!(few <= most(10_000_000, apart), "{few}");
        // The bound is not far from the truth, and the same test finds subjects that fail more often.
        assert!(few >= 0.2 * 10_000_000.0 / apart as f64, "{few}");
        assert!(many > most(10_000_000, apart), "{many}");
    }
}

#[test]
fn batches_and_samples_stay_within_the_budget() {
    let (usual, apart) = (0.1, 20_000);
    let rule = rule(usual, apart);
    let mut rng = Rng::seeded(5);
    let (mut batched, mut sampled, mut seen) = (0, 0, 0);
    for _ in 0..200 {
        let [mut batch, mut sample] = [Test::default(); 2];
        for _ in 0..2_000 {
            let trials = rng.below(20) as u32;
            let failed = (0..trials).filter(|_| rng.chance(usual)).count() as u32;
            seen += u64::from(trials);
            rule.see_many(&mut batch, failed, trials - failed);
            // One trial in eight is kept. A kept trial counts once, not eight times.
            for trial in 0..trials {
                if rng.below(8) == 0 {
                    rule.see(&mut sample, trial < failed);
                }
            }
            for (test, count) in [(&mut batch, &mut batched), (&mut sample, &mut sampled)] {
                if rule.accuses(test) {
                    *count += 1;
                    test.restart();
                }
            }
        }
    }
    assert!(f64::from(batched) <= most(seen, apart), "{batched} of {seen}");
    assert!(f64::from(sampled) <= most(seen / 8, apart), "{sampled} of {seen}");
    assert!(batched > 0 && sampled > 0);
}

#[test]
fn attacks_are_accused_within_the_planned_delay() {
    let rule = rule(0.02, 100_000_000);
    for rate in [0.03, 0.04, 0.1, 0.4, 1.0] {
        let planned = plan::decide::delay(rule.shape(), rate);
        let mut delays = Vec::new();
        for subject in 0..300 {
            let mut rng = Rng::seeded(subject);
            let mut test = Test::default();
            let seen = (1u64..).find(|_| {
                rule.see(&mut test, rng.chance(rate));
                rule.accuses(&test)
            });
            delays.push(seen.unwrap() as f64);
        }
        let n = delays.len() as f64;
        let mean = delays.iter().sum::<f64>() / n;
        let deviation = (delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n / n).sqrt();
        assert!(mean - SIGMAS * deviation <= planned, "{rate}: {mean} of {planned}");
        assert!(mean + SIGMAS * deviation >= 0.5 * planned, "{rate}: {mean} of {planned}");
    }
}

#[test]
fn a_flood_is_found_in_counts_and_usual_traffic_is_not() {
    let apart = 10_000;
    let rule = Excess::new(excess::Shape::new(apart)).unwrap();
    let mut rng = Rng::seeded(9);
    // Poisson counts by the gaps of a fine grid: 1,000 chances per tick.
    let mut count = |mean: f64| (0..1_000).filter(|_| rng.chance(mean / 1_000.0)).count() as u64;
    let usual = Usual { mean: 3.0, burst: 1.0 };
    let mut accusations = 0;
    let mut test = Test::default();
    for _ in 0..40_000 {
        rule.see(&mut test, count(3.0), usual);
        if rule.accuses(&test) {
            accusations += 1;
            test.restart();
        }
    }
    assert!(f64::from(accusations) <= most(40_000, apart), "{accusations}");
    for (times, ticks) in [(2.0, 20), (5.0, 3), (20.0, 1)] {
        let mut test = Test::default();
        (0..ticks).for_each(|_| rule.see(&mut test, count(3.0 * times), usual));
        assert!(rule.accuses(&test), "{times}");
    }
}

#[test]
fn useless_means_add_nothing_and_large_counts_stop_at_the_ceiling() {
    let rule = Excess::new(excess::Shape::new(100)).unwrap();
    let mut test = Test::default();
    for mean in [f64::NAN, f64::INFINITY, -1.0] {
        rule.see(&mut test, 1_000, Usual { mean, burst: 1.0 });
    }
    for burst in [f64::NAN, 0.0, f64::INFINITY] {
        rule.see(&mut test, 1_000, Usual { mean: 1.0, burst });
    }
    assert_eq!(test, Test::default());
    rule.see(&mut test, u64::MAX, Usual { mean: 0.0, burst: 1.0 });
    assert!(rule.accuses(&test) && test.evidence().is_finite());
    rule.see(&mut test, 0, Usual { mean: f64::MAX, burst: 1.0 });
    assert_eq!(test, Test::default());
}

#[test]
fn many_trials_at_once_are_at_most_the_evidence_of_each_after_the_other() {
    let rule = rule(0.05, 1 << 40);
    for (failed, passed) in [(1, 0), (0, 1), (3, 40), (7, 7), (0, 1_000), (12, 0)] {
        let [mut once, mut each] = [Test::default(); 2];
        rule.see_many(&mut once, failed, passed);
        (0..passed).for_each(|_| rule.see(&mut each, false));
        (0..failed).for_each(|_| rule.see(&mut each, true));
        assert!(once.evidence() <= each.evidence() * (1.0 + 1e-5));
        assert!((once.evidence() / each.evidence() - 1.0).abs() < 1e-5 || failed + passed > 1);
    }
    let mut test = Test::default();
    rule.see_many(&mut test, 0, 0);
    assert_eq!(test, Test::default());
    rule.see_many(&mut test, u32::MAX, 0);
    assert!(rule.accuses(&test) && test.evidence().is_finite());
    rule.see_many(&mut test, 1_000, u32::MAX);
    assert_eq!(test, Test::default(), "so few failures exclude every attack rate");
}

#[test]
fn evidence_ends_with_the_attack() {
    let rule = rule(0.1, 1 << 50);
    let mut test = Test::default();
    rule.see_many(&mut test, 10_000, 0);
    assert!(rule.accuses(&test));
    let mut successes = 0;
    while rule.accuses(&test) {
        rule.see(&mut test, false);
        successes += 1;
    }
    assert!(successes < 60, "{successes}");
}

#[test]
fn a_test_is_read_back_and_impossible_levels_are_not() {
    let rule = rule(0.05, 1 << 40);
    let mut test = Test::default();
    for trial in 0..50 {
        assert_eq!(Test::from_bytes(test.to_bytes()), Ok(test));
        rule.see(&mut test, trial % 3 == 0);
    }
    for level in [f32::NAN, f32::INFINITY, -1.0, -0.0, f32::MAX] {
        let mut bytes = test.to_bytes();
        bytes[4..8].copy_from_slice(&level.to_le_bytes());
        assert!(Test::from_bytes(bytes).is_err(), "{level}");
    }
}

#[test]
fn merged_evidence_is_never_more_than_both() {
    let mut rng = Rng::seeded(3);
    for _ in 0..1_000 {
        let [one, two] = [0; 2]
            .map(|_| Test::from_levels([0; RATES].map(|_| rng.below(1 << 40) as f32 / 1_000.0)));
        let [mut both, mut reverse] = [one, two];
        both.merge(&two);
        reverse.merge(&one);
        assert_eq!(both, reverse);
        for i in 0..RATES {
            assert!(both.level(i) <= one.level(i) + two.level(i));
        }
    }
}

fn table(subjects: u64, usual: f64, apart: u64) -> Suspects<u64> {
    let test = plan::decide::shape(usual, apart).unwrap();
    Suspects::new(plan::decide::suspects(subjects, test).unwrap(), Seed(1)).unwrap()
}

#[test]
fn a_table_with_room_agrees_with_a_test_for_each_subject() {
    let mut suspects = table(200, 0.1, 1_000);
    let rule = rule(0.1, 1_000);
    let mut exact: HashMap<u64, Test> = HashMap::new();
    let mut rng = Rng::seeded(2);
    for _ in 0..20_000 {
        let (subject, failed) = (rng.below(200), rng.chance(0.15));
        // A subject is stored with its first failure.
        if failed || exact.contains_key(&subject) {
            rule.see(exact.entry(subject).or_default(), failed);
        }
        let accused = suspects.see(&subject, failed);
        let test = exact.get(&subject).copied().unwrap_or_default();
        assert_eq!((suspects.test(&subject), accused), (test, rule.accuses(&test)));
        if accused {
            suspects.restart(&subject);
            exact.remove(&subject);
        }
    }
    assert_eq!((suspects.lost(), suspects.len()), (0, exact.len() as u64));
}

#[test]
fn a_flood_of_subjects_delays_and_accuses_nobody() {
    let mut suspects = table(100, 0.05, 1_000_000);
    // A scanner fails three times. Then a flood of sources follows, each of which fails once.
    (0..3).for_each(|_| _ = suspects.see(&7, true));
    let before = suspects.test(&7);
    for source in 1_000..1_000_000 {
        assert!(!suspects.see(&source, true));
    }
    assert!(suspects.lost() > 900_000);
    assert_eq!(suspects.test(&7), before, "the flood competes for one entry of each bucket");
    let accused = (0..20).position(|_| suspects.see(&7, true));
    assert!(accused.is_some_and(|more| more < 6), "{accused:?}");
    assert_eq!(suspects.accused().map(|(key, _)| key).collect::<Vec<_>>(), [7]);
}

#[test]
fn a_full_table_keeps_the_budget() {
    let apart = 5_000;
    let mut suspects = table(50, 0.1, apart);
    let mut rng = Rng::seeded(4);
    let mut accusations = 0;
    for _ in 0..2_000_000 {
        let subject = rng.below(500);
        if suspects.see(&subject, rng.chance(0.1)) {
            accusations += 1;
            suspects.restart(&subject);
        }
    }
    assert!(suspects.lost() > 0);
    assert!(f64::from(accusations) <= most(2_000_000, apart), "{accusations}");
}

#[test]
fn tables_merge_if_they_are_of_one_shape_and_seed() {
    let [mut one, mut two] = [0; 2].map(|_| table(100, 0.1, 1_000));
    for subject in 0..30 {
        one.see(&subject, true);
        two.see(&(subject + 15), true);
    }
    let parts = [one.try_clone().unwrap(), two.try_clone().unwrap()];
    one.merge(&two).unwrap();
    assert_eq!(one.len(), 45);
    for subject in 0..45 {
        let mut sum = parts[0].test(&subject);
        sum.merge(&parts[1].test(&subject));
        assert_eq!(one.test(&subject), sum);
    }
    let before = one.to_bytes();
    let other = Suspects::new(one.shape(), Seed(2)).unwrap();
    assert_eq!(one.merge(&other), Err(Refused::Mismatch { field: "seed" }));
    assert_eq!(one.merge(&table(100, 0.1, 999)), Err(Refused::Mismatch { field: "test" }));
    assert_eq!(one.merge(&table(999, 0.1, 1_000)), Err(Refused::Mismatch { field: "buckets" }));
    assert_eq!(one.to_bytes(), before);
}

#[test]
fn shapes_that_test_nothing_are_refused() {
    let good = plan::decide::shape(0.1, 1_000).unwrap();
    for shape in [
        Shape { usual: 0, ..good },
        Shape { usual: 1_000_000, ..good },
        Shape { attacks: [100_000, 1, 1, 1], ..good },
        Shape { attacks: [1_000_000; RATES], ..good },
        Shape { apart: 0, ..good },
        Shape { apart: u64::MAX, ..good },
    ] {
        assert!(Failures::new(shape).is_err(), "{shape:?}");
        assert_eq!(plan::decide::delay(shape, 0.5), f64::INFINITY);
    }
    assert!(plan::decide::shape(f64::NAN, 10).is_err() && plan::decide::shape(0.0, 10).is_err());
    assert!(Excess::new(excess::Shape { attacks: [100; RATES], apart: 1 }).is_err());
    assert!(plan::decide::suspects(0, good).is_err());
}
