use super::{Gaps, Periods, Shape};
use crate::{Refused, Seed, plan};
use sidon_kit::Rng;

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

fn table(pairs: u64) -> Periods<u64> {
    Periods::new(plan::periods::shape(pairs).unwrap(), Seed(1)).unwrap()
}

/// A number from 0 to 1.
fn uniform(rng: &mut Rng) -> f64 {
    (rng.below(1 << 53) as f64 + 0.5) / (1u64 << 53) as f64
}

/// The regularity after `contacts` contacts with these gaps in seconds.
fn score(contacts: usize, mut gap: impl FnMut() -> f64) -> f64 {
    let mut pairs = table(1);
    let mut now = 0.0;
    for _ in 0..contacts {
        assert!(pairs.see(&1, now as u64));
        now += gap() * SECOND;
    }
    pairs.get(&1).unwrap().score
}

#[test]
fn a_period_with_jitter_scores_high_and_random_gaps_score_low() {
    let mut rng = Rng::seeded(1);
    let (mut jittered, mut random) = (Vec::new(), Vec::new());
    for _ in 0..1_000 {
        jittered.push(score(20, || 300.0 * (0.8 + 0.4 * uniform(&mut rng))));
        random.push(score(20, || -300.0 * uniform(&mut rng).ln()));
    }
    assert_eq!(score(20, || 60.0), 1.0);
    let share = |scores: &[f64], from: f64| {
        scores.iter().filter(|&&score| score >= from).count() as f64 / scores.len() as f64
    };
    // Six sigma of 1,000 pairs are less than 0.04 at these shares.
    assert!(share(&jittered, 0.6) > 0.99, "{}", share(&jittered, 0.6));
    assert!(share(&random, 0.6) < 0.02, "{}", share(&random, 0.6));
    let mean = random.iter().sum::<f64>() / 1_000.0;
    assert!(mean < 0.1, "{mean}");
}

#[test]
fn lost_and_additional_contacts_change_little() {
    let mut rng = Rng::seeded(2);
    let lost = score(40, || if rng.chance(0.15) { 120.0 } else { 60.0 });
    let additional = score(60, || if rng.chance(0.15) { 20.0 } else { 60.0 });
    assert!(lost == 1.0 && additional == 1.0, "{lost} {additional}");
}

#[test]
fn few_contacts_do_not_score() {
    assert_eq!(score(1, || 60.0), 0.0);
    assert!(score(4, || 60.0) <= 0.25);
    assert!(score(13, || 60.0) == 1.0);
}

#[test]
fn period_jitter_and_number_are_those_of_the_gaps() {
    let mut pairs = table(1);
    assert_eq!(pairs.get(&1), None);
    for at in [0u64, 10, 20, 31, 40, 52] {
        assert!(pairs.see(&1, at * 1_000_000_000));
        // Packets of the same connection, and one with an earlier time, do not count.
        assert!(pairs.see(&1, at * 1_000_000_000 + 400_000_000));
        assert!(pairs.see(&1, at * 999_000_000));
    }
    let found = pairs.get(&1).unwrap();
    // Gaps of 10, 10, 11, 9 and 12 seconds.
    assert_eq!((found.period.as_secs_f64(), found.jitter.as_secs_f64()), (10.0, 1.0));
    assert_eq!((found.contacts, found.score), (6, (1.0 - 0.2) * 5.0 / 12.0));
    // After a gap that is too long, the pair starts again.
    assert!(pairs.see(&1, 10 * 86_400 * 1_000_000_000));
    assert_eq!((pairs.get(&1).unwrap().contacts, pairs.get(&1).unwrap().score), (1, 0.0));
}

#[test]
fn a_flood_of_pairs_evicts_no_regular_pair() {
    let mut pairs = table(100);
    let minute = 60_000_000_000;
    let beacons = 0..40;
    let mut new = 1_000u64..;
    let mut refused = 0;
    for round in 0..300 {
        for beacon in beacons.clone() {
            // Each beacon has its own minute.
            assert!(pairs.see(&beacon, round * minute + beacon * minute / 40));
        }
        for pair in new.by_ref().take(1_000) {
            refused += u64::from(!pairs.see(&pair, round * minute + minute / 2));
        }
    }
    assert_eq!(pairs.refused(), refused);
    assert!(refused > 290_000, "{refused}");
    for beacon in beacons {
        let found = pairs.get(&beacon).unwrap();
        assert_eq!((found.contacts, found.score), (300, 1.0));
    }
    assert!(pairs.most_regular(40).iter().all(|(pair, _)| *pair < 40));
}

#[test]
fn silent_pairs_make_room() {
    let mut pairs = table(100);
    for pair in 0..10_000 {
        pairs.see(&pair, 0);
    }
    let before = pairs.to_bytes();
    let hour = 3_600_000_000_000;
    let absent = (0..10_000).find(|pair| pairs.get(pair).is_none()).unwrap();
    let refused = pairs.refused();
    assert!(!pairs.see(&absent, hour));
    assert_eq!(pairs.refused(), refused + 1);
    // A refused contact changes the count of refused ones, and nothing else.
    let fields = 32 + 5 * 8;
    let after = pairs.to_bytes();
    assert!(after[..fields] == before[..fields]);
    assert!(after[fields + 8..after.len() - 4] == before[fields + 8..before.len() - 4]);
    assert!(pairs.see(&absent, hour + 1_000_000));
    assert_eq!(pairs.get(&absent).unwrap().contacts, 1);
}

#[test]
fn merged_tables_have_the_pairs_of_both() {
    let [mut one, mut two] = [0; 2].map(|_| table(100));
    let minute = 60_000_000_000;
    for round in 0..10 {
        assert!(one.see(&1, round * minute));
        assert!(two.see(&1, (round + 11) * minute));
        assert!(two.see(&2, round * minute));
    }
    let mut reverse = two.try_clone().unwrap();
    reverse.merge(&one).unwrap();
    one.merge(&two).unwrap();
    let both = one.get(&1).unwrap();
    assert_eq!((both.contacts, both.score, both.period.as_secs()), (20, 1.0, 60));
    assert_eq!(one.get(&2), two.get(&2));
    assert_eq!([1, 2].map(|pair| reverse.get(&pair)), [1, 2].map(|pair| one.get(&pair)));
    let before = one.to_bytes();
    assert_eq!(one.merge(&table(200)), Err(Refused::Mismatch { field: "shape" }));
    assert_eq!(one.to_bytes(), before);
}

#[test]
fn gaps_of_contacts_are_sound_and_others_are_not() {
    let shape = Shape { buckets: 1, shortest: 10, grace: 100, longest: 10_000 };
    let mut gaps = Gaps::first(5);
    let mut rng = Rng::seeded(8);
    let mut now = 5;
    for _ in 0..1_000 {
        assert!(gaps.is_sound(&shape));
        assert_eq!(Gaps::from_bytes(gaps.to_bytes()), gaps);
        now += rng.below(11_000);
        gaps.see(now, &shape);
    }
    for (at, byte) in [(6, 0), (7, 0), (9, 0xff), (5, 0xff)] {
        let mut bytes = Gaps::first(5).to_bytes();
        bytes[6] = 3;
        bytes[at] = byte;
        assert!(at == 7 || !Gaps::from_bytes(bytes).is_sound(&shape), "{at}");
    }
}

#[test]
fn shapes_without_an_order_of_times_are_refused() {
    let good = plan::periods::shape(10).unwrap();
    for shape in [
        Shape { buckets: 0, ..good },
        Shape { shortest: 0, ..good },
        Shape { grace: good.shortest - 1, ..good },
        Shape { longest: good.grace - 1, ..good },
        Shape { longest: u64::MAX, ..good },
    ] {
        assert!(Periods::<u64>::new(shape, Seed(1)).is_err(), "{shape:?}");
        assert_eq!(Periods::<u64>::planned_bytes(shape), u64::MAX);
    }
    assert!(plan::periods::shape(0).is_err());
}
