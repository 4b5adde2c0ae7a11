//! Zone structures compared with exact references, including refused operations.

use sidon::internals::{Ladder, Way};
use sidon::{
    Bound, Key, Refused, Seed,
    count::Update,
    plan::zone::{self as planned, Target},
    zone::{Adaptive, Any, Code, Filter, Hosts, Shape, Sketch, Subnets, egh, ols, pol, subnets},
};
use sidon_kit::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// Every code that a plan gives for this universe and number of members.
fn codes(universe: u64, members: u64) -> Vec<Any> {
    let shapes = planned::shapes(Target { universe, members }).unwrap().into_iter();
    shapes.map(|shape| shape.code().unwrap()).collect()
}

#[test]
fn a_filter_is_a_set_inside_its_zone_and_never_loses_a_member() {
    let (mut inside, mut outside) = (0, 0);
    for (seed, code) in
        [codes(25, 3), codes(256, 3), codes(343, 2)].concat().into_iter().enumerate()
    {
        let mut rng = Rng::seeded(seed as u64);
        let mut filter = Filter::new(code.clone()).unwrap();
        let mut twin = BTreeSet::new();
        for _ in 0..400 {
            match rng.below(20) {
                0 => {
                    filter.clear();
                    twin.clear();
                }
                1 => {
                    let mut other = Filter::new(code.clone()).unwrap();
                    for _ in 0..rng.below(3) {
                        let key = rng.below(code.universe());
                        other.insert(&key).unwrap();
                        twin.insert(key);
                    }
                    filter.merge(&other).unwrap();
                }
                // Few keys, so that they repeat.
                _ => {
                    let key = rng.below(8) * 29 % code.universe();
                    filter.insert(&key).unwrap();
                    twin.insert(key);
                }
            }
            let len = twin.len() as u64;
            assert_eq!(filter.len(), (len <= code.zone()).then_some(len), "{code:?}");
            assert!(twin.iter().all(|key| filter.contains(key)));
            if filter.len().is_some() {
                inside += 1;
                assert!(
                    (0..code.universe()).all(|key| filter.contains(&key) == twin.contains(&key))
                );
                assert!(filter.list().iter().eq(&twin));
            } else {
                outside += 1;
                assert!(filter.certainty().error() > 0.0);
                assert!(twin.iter().all(|key| filter.list().contains(key)));
            }
            let again = Filter::<Any>::from_bytes(&filter.to_bytes(), Seed(9)).unwrap();
            assert_eq!(again.to_bytes(), filter.to_bytes());
            assert_eq!(again.len(), filter.len());
        }
    }
    assert!(inside > 1000 && outside > 1000, "{inside} {outside}");
}

/// A merge does not list 1,400 elements. An element of both filters must not count twice.
#[test]
fn a_merge_that_counts_no_elements_claims_no_number() {
    let shape =
        pol::Shape { universe: 3001 * 3001, order: 3001, digits: 2, groups: 3001, infinity: false };
    let code = Shape::Pol(shape).code().unwrap();
    let mut filter = Filter::new(code.clone()).unwrap();
    let mut rng = Rng::seeded(9);
    while filter.len() < Some(1_400) {
        filter.insert(&rng.below(code.universe())).unwrap();
    }
    let copy = filter.try_clone().unwrap();
    assert!(filter.len() == Some(1_400) && code.zone() == 3_000);
    filter.merge(&Filter::new(code.clone()).unwrap()).unwrap();
    assert_eq!(filter.len(), Some(1_400));
    filter.merge(&copy).unwrap();
    assert_eq!(filter.len(), None);
    let mut empty = Filter::new(code).unwrap();
    empty.merge(&copy).unwrap();
    assert_eq!(empty.len(), Some(1_400));
}

#[test]
fn filters_of_other_codes_do_not_merge() {
    let mut all: Vec<_> =
        codes(256, 3).into_iter().map(|code| Filter::new(code).unwrap()).collect();
    assert!(all.len() >= 4);
    let (first, rest) = all.split_first_mut().unwrap();
    let before = first.to_bytes();
    for other in rest {
        assert_eq!(first.merge(other), Err(Refused::Mismatch { field: "code" }));
    }
    assert_eq!(first.to_bytes(), before);
}

/// Checks every estimate, and that the sketch is exact whenever theorem 5 says so.
fn check(sketch: &Sketch<Any>, twin: &BTreeMap<u64, u64>) -> (u32, u32) {
    let code = sketch.code();
    if twin.len() as u64 <= code.zone() {
        assert_eq!(sketch.len(), Some(twin.len() as u64), "{code:?}");
    }
    if let Some(active) = sketch.len() {
        assert_eq!(active, twin.len() as u64);
        assert!(sketch.list().unwrap().into_iter().eq(twin.iter().map(|(&k, &n)| (k, n))));
    }
    let mut seen = (0, 0);
    for key in 0..code.universe() + 1 {
        let (estimate, truth) = (sketch.estimate(&key), twin.get(&key).copied().unwrap_or(0));
        match estimate.bound {
            Bound::Exact => assert_eq!(estimate.value, truth, "{code:?} {key}"),
            Bound::AtMost => assert!(truth <= estimate.value && estimate.slack <= estimate.value),
            Bound::AtLeast => panic!("no counter stops at a ceiling"),
        }
        assert!(sketch.len().is_none() || estimate.bound == Bound::Exact);
        seen.0 += u32::from(estimate.bound == Bound::Exact);
        seen.1 += u32::from(estimate.bound != Bound::Exact);
    }
    seen
}

#[test]
fn a_sketch_is_exact_or_at_most_and_comes_back_into_its_zone() {
    let (mut exact, mut at_most, mut back, mut refused) = (0, 0, 0, 0);
    let codes = [codes(25, 3), codes(25, 2), codes(64, 3)].concat();
    for (seed, code) in codes.into_iter().enumerate() {
        let mut rng = Rng::seeded(seed as u64);
        let mut sketch = Sketch::new(code.clone(), 4, Update::Plain).unwrap();
        let mut twin = BTreeMap::new();
        for _ in 0..600 {
            let was_exact = sketch.len().is_some();
            let before = sketch.to_bytes();
            let key = rng.below(9) * 7 % code.universe();
            match rng.below(100) {
                0 => {
                    sketch.clear();
                    twin.clear();
                }
                1..4 => {
                    let mut other = Sketch::new(code.clone(), 4, Update::Plain).unwrap();
                    let mut added = BTreeMap::new();
                    for _ in 0..rng.below(3) {
                        let (key, amount) = (rng.below(code.universe()), 1 + rng.below(3));
                        other.add(&key, amount).unwrap();
                        *added.entry(key).or_insert(0) += amount;
                    }
                    if sketch.merge(&other).is_ok() {
                        check_sum(&mut twin, &added);
                        if rng.chance(0.5) {
                            sketch.unmerge(&other).unwrap();
                            for (key, amount) in added {
                                less(&mut twin, key, amount);
                            }
                        }
                    } else {
                        assert_eq!(sketch.to_bytes(), before);
                    }
                }
                4..50 => match sketch.add(&key, rng.below(4)) {
                    Ok(()) => {
                        let amount = sketch_amount(&before, &sketch, key);
                        if amount > 0 {
                            *twin.entry(key).or_insert(0) += amount;
                        }
                    }
                    Err(why) => {
                        assert_eq!(why, Refused::Overflow { ceiling: 15 });
                        assert_eq!(sketch.to_bytes(), before, "a refused add changed something");
                        refused += 1;
                    }
                },
                50..90 => {
                    let Some((&key, &count)) = twin.iter().nth(rng.below(9) as usize) else {
                        continue;
                    };
                    let amount = if rng.chance(0.6) { count } else { 1 };
                    sketch.subtract(key, amount).unwrap();
                    less(&mut twin, key, amount);
                }
                _ if sketch.len().is_some() => {
                    let count = twin.get(&key).copied().unwrap_or(0);
                    assert_eq!(sketch.subtract(key, count + 1), Err(Refused::NotStored));
                    assert_eq!(sketch.to_bytes(), before, "a refused subtract changed something");
                }
                _ => {}
            }
            let seen = check(&sketch, &twin);
            exact += seen.0;
            at_most += seen.1;
            back += u32::from(!was_exact && sketch.len().is_some() && !twin.is_empty());
            let again = Sketch::<Any>::from_bytes(&sketch.to_bytes(), Seed(9)).unwrap();
            assert_eq!(again.to_bytes(), sketch.to_bytes());
            assert_eq!(again.len(), sketch.len());
        }
    }
    assert!(
        exact > 10_000 && at_most > 1_000 && back > 20 && refused > 20,
        "{exact} {at_most} {back} {refused}"
    );
}

#[test]
fn a_conservative_sketch_is_exact_in_its_zone_and_at_most_beyond() {
    let (mut exact, mut at_most, mut refused, mut merged) = (0, 0, 0, 0);
    let codes = [codes(25, 3), codes(36, 2), codes(64, 3)].concat();
    for (seed, code) in codes.into_iter().enumerate() {
        let mut rng = Rng::seeded(100 + seed as u64);
        let fresh = || Sketch::new(code.clone(), 5, Update::Conservative).unwrap();
        let mut sketch = fresh();
        // A plain sketch of the same stream, whose answers are never smaller.
        let mut plain = Sketch::new(code.clone(), 32, Update::Plain).unwrap();
        let mut twin = BTreeMap::new();
        for _ in 0..600 {
            let before = sketch.to_bytes();
            let (key, amount) = (rng.below(9) * 7 % code.universe(), 1 + rng.below(4));
            match rng.below(100) {
                0..4 => {
                    sketch.clear();
                    plain.clear();
                    twin.clear();
                }
                4..12 => {
                    let mut other = fresh();
                    other.add(&key, amount).unwrap();
                    if sketch.merge(&other).is_ok() {
                        plain.add(&key, amount).unwrap();
                        *twin.entry(key).or_insert(0) += amount;
                        merged += 1;
                    } else {
                        assert_eq!(sketch.to_bytes(), before);
                    }
                }
                12..15 => {
                    assert_eq!(sketch.subtract(key, 1), Err(Refused::NotSums));
                    assert_eq!(sketch.unmerge(&fresh()), Err(Refused::NotSums));
                    assert_eq!(sketch.solve(&[key], 1), Err(Refused::NotSums));
                    let other = Sketch::new(code.clone(), 5, Update::Plain).unwrap();
                    assert_eq!(sketch.merge(&other), Err(Refused::Mismatch { field: "update" }));
                    assert_eq!(sketch.to_bytes(), before);
                }
                _ => match sketch.add(&key, amount) {
                    Ok(()) => {
                        plain.add(&key, amount).unwrap();
                        *twin.entry(key).or_insert(0) += amount;
                    }
                    Err(why) => {
                        assert_eq!(why, Refused::Overflow { ceiling: 31 });
                        assert_eq!(sketch.to_bytes(), before, "a refused add changed something");
                        refused += 1;
                    }
                },
            }
            let seen = check(&sketch, &twin);
            exact += seen.0;
            at_most += seen.1;
            let universe = 0..code.universe();
            assert!(universe.clone().all(|key| sketch.minimum(key) <= plain.minimum(key)));
            if sketch.len().is_some() {
                let truth = |key: u64| twin.get(&key).map_or(0.0, |&count| count as f64);
                assert!(
                    universe.into_iter().all(|k| sketch.estimate_unbiased(&k) == Some(truth(k)))
                );
            } else {
                assert_eq!(sketch.estimate_unbiased(&0), None);
            }
            let again = Sketch::<Any>::from_bytes(&sketch.to_bytes(), Seed(9)).unwrap();
            assert_eq!(again.to_bytes(), sketch.to_bytes());
            assert_eq!(again.len(), sketch.len());
        }
    }
    assert!(
        exact > 10_000 && at_most > 1_000 && refused > 20 && merged > 100,
        "{exact} {at_most} {refused} {merged}"
    );
}

/// Over all sets of other keys, the mean of an unbiased estimate is the truth. Groups of equal size,
/// and at most two of them, because a median of more is not a mean.
#[test]
fn an_unbiased_estimate_over_a_code_is_right_on_average() {
    let squares = |order: u32, groups| {
        Shape::Ols(ols::Shape { universe: u64::from(order * order), order, groups })
    };
    let residues = |moduli: &[u32]| {
        let universe = moduli.iter().map(|&m| u64::from(m)).product();
        Shape::Egh(egh::Shape { universe, moduli: moduli.to_vec() })
    };
    let cubes = pol::Shape { universe: 27, order: 3, digits: 3, groups: 2, infinity: false };
    for shape in [squares(5, 1), squares(5, 2), squares(6, 2), residues(&[5, 7]), Shape::Pol(cubes)]
    {
        let code = shape.code().unwrap();
        let (mut sum, mut least, mut sets) = (0.0, 0.0, 0.0);
        for b in 1..code.universe() {
            for a in (1..code.universe()).filter(|&a| a != b) {
                let mut sketch = Sketch::new(code.clone(), 32, Update::Plain).unwrap();
                for (key, amount) in [(a, 1000), (b, 70), (0, 3)] {
                    sketch.add(&key, amount).unwrap();
                }
                // Beyond the zone: three keys have a count, and the zone is 0 or 1.
                assert_eq!(sketch.len(), None, "{shape:?}");
                sum += sketch.estimate_unbiased(&0).unwrap();
                least += sketch.minimum(0) as f64;
                sets += 1.0;
            }
        }
        assert!((sum / sets - 3.0).abs() < 1e-9, "{shape:?}: {}", sum / sets);
        assert!(least / sets > 4.0, "{shape:?}: the smallest counter has a bias");
    }
}

#[test]
fn least_squares_over_a_code_are_exact_in_the_zone_and_err_less_beyond() {
    let mut rng = Rng::seeded(5);
    let (mut by_minimum, mut by_squares) = (0.0, 0.0);
    for code in [codes(256, 3), codes(400, 4)].concat() {
        let mut sketch = Sketch::new(code.clone(), 32, Update::Plain).unwrap();
        let mut twin = BTreeMap::new();
        while (twin.len() as u64) < 4 * code.zone() {
            let (key, amount) = (rng.below(code.universe()), 1 + rng.below(1000));
            sketch.add(&key, amount).unwrap();
            *twin.entry(key).or_insert(0) += amount;
            let keys: Vec<u64> = twin.keys().copied().chain([code.universe() - 1]).collect();
            let keys: Vec<u64> = BTreeSet::from_iter(keys).into_iter().collect();
            let solution = sketch.solve(&keys, 2_000).unwrap();
            for (key, count) in keys.iter().zip(solution.counts) {
                let truth = twin.get(key).copied().unwrap_or(0);
                if sketch.len().is_some() {
                    assert_eq!(count, truth as f64, "{code:?}");
                } else {
                    by_squares += (count - truth as f64).abs();
                    by_minimum += (sketch.minimum(*key) - truth) as f64;
                }
            }
            if sketch.len().is_some() {
                assert_eq!((solution.residual, solution.sweeps), (0.0, 1));
                // Without one of the keys, its counters do not fit.
                assert!(sketch.solve(&keys[1..], 9).unwrap().residual > 0.0);
            }
        }
        let outside = Refused::Outside { universe: code.universe() };
        assert_eq!(sketch.solve(&[code.universe()], 1), Err(outside));
        assert_eq!(sketch.estimate_unbiased(&code.universe()), None);
    }
    assert!(by_minimum > 1_000.0 && by_squares < by_minimum / 2.0, "{by_minimum} {by_squares}");
}

fn check_sum(twin: &mut BTreeMap<u64, u64>, added: &BTreeMap<u64, u64>) {
    for (&key, amount) in added {
        *twin.entry(key).or_insert(0) += amount;
    }
}

fn less(twin: &mut BTreeMap<u64, u64>, key: u64, amount: u64) {
    let count = twin.get_mut(&key).unwrap();
    *count -= amount;
    if *count == 0 {
        twin.remove(&key);
    }
}

/// The amount that an `add` added to the key's first counter.
fn sketch_amount(before: &[u8], after: &Sketch<Any>, key: u64) -> u64 {
    let before = Sketch::<Any>::from_bytes(before, Seed(0)).unwrap();
    let cell = after.code().position(after.code().split(key), 0) as usize;
    after.counters().nth(cell).unwrap() - before.counters().nth(cell).unwrap()
}

#[test]
fn an_adaptive_set_is_a_set_either_way() {
    for (seed, (universe, way)) in [
        (256, Way::List),
        (256, Way::Zones),
        (1000, Way::List),
        (1000, Way::Zones),
        (1, Way::List),
        (70, Way::Zones),
        (65_536, Way::List),
    ]
    .into_iter()
    .enumerate()
    {
        let ladder = Ladder::new(universe, way).unwrap();
        let stages: Vec<_> = ladder.stages().collect();
        assert!(
            stages.is_sorted() && stages.last() == Some(&(universe, 8 * universe.div_ceil(64)))
        );
        let mut rng = Rng::seeded(seed as u64);
        let (mut set, mut twin) = (ladder.empty(), BTreeSet::new());
        for step in 0..crate::size(600, 300) {
            let key = rng.below(universe);
            set.insert(&key).unwrap();
            twin.insert(key);
            assert_eq!(set.len(), twin.len() as u64);
            let stage = stages.iter().find(|stage| set.len() <= stage.0).unwrap();
            assert_eq!(set.memory_bytes(), stage.1);
            if step % 8 == 0 || step < 20 {
                assert!(set.list().iter().eq(&twin));
                assert!((0..universe).all(|key| set.contains(&key) == twin.contains(&key)));
                let again = Adaptive::from_bytes(&set.to_bytes(), Seed(1)).unwrap();
                assert_eq!(again.to_bytes(), set.to_bytes());
            }
            if step == 150 {
                set.clear();
                twin.clear();
                assert!(set.is_empty());
            }
            if step % 100 == 99 {
                let mut other = Adaptive::new(universe).unwrap();
                for key in (0..20).map(|_| rng.below(universe)) {
                    other.insert(&key).unwrap();
                    twin.insert(key);
                }
                set.merge(&other).unwrap();
            }
        }
        assert_eq!(set.insert(&universe), Err(Refused::Outside { universe }));
        assert!(!set.contains(&universe));
    }
}

#[test]
fn a_word_lists_seven_hosts_where_a_code_has_three() {
    let stages = |way| Ladder::new(256, way).unwrap().stages().collect::<Vec<_>>();
    assert_eq!(stages(Way::List), [(7, 8), (15, 16), (256, 32)]);
    assert_eq!(stages(Way::Zones), [(3, 8), (7, 16), (256, 32)]);
}

#[test]
fn subnets_are_exact_until_they_refuse() {
    let shapes = [
        subnets::Shape { subnet_bits: 8, slots: 256, bitmaps: 10 },
        subnets::Shape { subnet_bits: 12, slots: 64, bitmaps: 10 },
        subnets::Shape { subnet_bits: 32, slots: 100, bitmaps: 0 },
    ];
    for (seed, shape) in shapes.into_iter().enumerate() {
        let mut rng = Rng::seeded(seed as u64);
        let mut subnets = Subnets::new(shape, Seed(5)).unwrap();
        let mut twin: BTreeMap<u64, BTreeSet<u8>> = BTreeMap::new();
        let mut refused = 0;
        for step in 0..20_000 {
            let wide = if rng.chance(0.1) { 1 << shape.subnet_bits } else { 40 };
            let (subnet, host) =
                (rng.below(wide), rng.below(if step < 9000 { 6 } else { 256 }) as u8);
            let known = twin.get(&subnet).map_or(0, BTreeSet::len);
            let seen = twin.get(&subnet).is_some_and(|hosts| hosts.contains(&host));
            match subnets.observe(subnet, host) {
                Ok(is_new) => {
                    assert_eq!(is_new, !seen);
                    twin.entry(subnet).or_default().insert(host);
                }
                Err(Refused::Full { .. }) => {
                    refused += 1;
                    let no_word = known == 0 && twin.len() as u64 == shape.subnets();
                    let no_bitmap = known == 7 && subnets.promoted() == shape.bitmaps;
                    assert!(!seen && (no_word || no_bitmap), "refused with room left");
                }
                Err(why) => panic!("{why}"),
            }
            assert_eq!(subnets.hosts(subnet) as usize, twin.get(&subnet).map_or(0, BTreeSet::len));
        }
        assert!(refused > 100 && subnets.len() == twin.len() as u64);
        for subnet in (0..1 << shape.subnet_bits.min(12)).chain(twin.keys().copied()) {
            let hosts: Vec<u8> = twin.get(&subnet).into_iter().flatten().copied().collect();
            assert_eq!(subnets.list(subnet), hosts);
            assert!((0..=255).all(|host| subnets.contains(subnet, host) == hosts.contains(&host)));
        }
        let mut all: Vec<_> = subnets.iter().collect();
        all.sort_unstable();
        assert!(
            all.into_iter().eq(twin.iter().map(|(&subnet, hosts)| (subnet, hosts.len() as u32)))
        );
        let universe = 1 << shape.subnet_bits;
        assert_eq!(subnets.observe(universe, 0), Err(Refused::Outside { universe }));
        subnets.clear();
        assert!(subnets.is_empty() && subnets.iter().count() == 0 && subnets.hosts(3) == 0);
    }
}

#[test]
fn subnets_that_an_attacker_chose_under_a_known_seed_make_no_long_search() {
    let shape = subnets::Shape { subnet_bits: 24, slots: 1 << 14, bitmaps: 0 };
    let seed = Seed(0);
    let mut set = Subnets::new(shape, seed).unwrap();
    let (mut chosen, mut stored) = (0, 0);
    for subnet in 0..1u64 << 21 {
        // Both positions are in one part of 256 slots, of 64 such parts.
        let digest = subnet.digest(seed);
        let near = |choice| digest.position(choice, shape.slots) < 256;
        if near(0) && near(1) {
            chosen += 1;
            stored += u64::from(set.observe(subnet, 1).is_ok());
            assert_eq!(set.contains(subnet, 1), set.iter().any(|(one, _)| one == subnet));
        }
    }
    // The part and the 64 slots after it are full. A table that stores more reads further.
    assert!(chosen > 400 && stored == set.len(), "{chosen}");
    assert!((256..=256 + 64).contains(&stored), "{stored}");
}

#[test]
fn random_subnets_fill_seven_of_eight_slots() {
    let shape = subnets::Shape { subnet_bits: 32, slots: 1 << 16, bitmaps: 0 };
    for seed in 1..=5 {
        let (mut rng, mut refused) = (Rng::seeded(seed), 0);
        let mut set = Subnets::new(shape, Seed(seed.into())).unwrap();
        let mut first = None;
        while set.len() < shape.subnets() {
            if set.observe(rng.below(1 << 32), 1).is_err() {
                refused += 1;
                first = first.or(Some(set.len()));
            }
        }
        let load = first.unwrap_or(set.len()) as f64 / shape.slots as f64;
        assert!(load > 0.78 && refused < 20, "{load} {refused}");
    }
}

#[test]
fn subnets_keep_to_the_memory_they_are_given() {
    for (bytes, bits) in [(1 << 20, 24), (16 << 20, 24), (160 << 20, 24), (4096, 32), (1 << 20, 8)]
    {
        let shape = subnets::Shape::within(bytes, bits).unwrap();
        assert!(
            Subnets::planned_bytes(shape) <= bytes,
            "{shape:?} takes {}",
            Subnets::planned_bytes(shape)
        );
        assert!(
            shape.slots == 1 << shape.subnet_bits
                || Subnets::planned_bytes(shape) > bytes * 95 / 100,
            "{shape:?}"
        );
    }
    let shape = subnets::Shape::within(16 << 20, 24).unwrap();
    assert!(shape.subnets() > 1_200_000, "{shape:?}");
    assert_eq!(subnets::Shape::within(160 << 20, 24).unwrap().slots, 1 << 24);
    assert!(
        subnets::Shape::within(10, 24).is_err() && subnets::Shape::within(1 << 20, 33).is_err()
    );
    let odd = subnets::Shape { subnet_bits: 24, slots: 4, bitmaps: 1 };
    assert!(Subnets::new(odd, Seed(1)).is_err());
}

#[test]
fn counts_of_hosts_are_exact() {
    for universe in [256, 7, 1000] {
        let mut rng = Rng::seeded(universe);
        let (mut hosts, mut twin) = (Hosts::new(universe).unwrap(), BTreeMap::new());
        for step in 0..6_000 {
            let key = rng.below(if step < 2000 { 5 } else { universe });
            let amount = rng.below(3);
            if rng.chance(0.7) {
                hosts.add(&key, amount).unwrap();
                if amount > 0 {
                    *twin.entry(key).or_insert(0) += amount;
                }
            } else if twin.get(&key).is_some_and(|&count| count >= amount) {
                hosts.subtract(key, amount).unwrap();
                less(&mut twin, key, amount);
            } else {
                let count = twin.get(&key).copied().unwrap_or(0);
                assert_eq!(hosts.subtract(key, count + 1), Err(Refused::NotStored));
            }
            assert_eq!(hosts.len(), twin.len() as u64);
            assert_eq!(
                hosts.estimate(&key),
                sidon::Estimate::exact(twin.get(&key).copied().unwrap_or(0))
            );
        }
        assert!(hosts.list().into_iter().eq(twin));
        assert!(hosts.memory_bytes() <= 4 * universe);
        assert_eq!(hosts.add(&universe, 1), Err(Refused::Outside { universe }));
        let before = hosts.list();
        let ceiling = u32::MAX.into();
        assert_eq!(hosts.add(&0, u64::MAX), Err(Refused::Overflow { ceiling }));
        assert_eq!(hosts.list(), before);
    }
    // Four hosts of a /24: 32 bytes, where a sketch of zone 3 takes 256.
    let mut hosts = Hosts::new(256).unwrap();
    (0..4).for_each(|key| hosts.add(&key, 1).unwrap());
    assert_eq!(hosts.memory_bytes(), 32);
    let mut full = Hosts::new(256).unwrap();
    full.add(&3, u32::MAX.into()).unwrap();
    let ceiling = u32::MAX.into();
    assert_eq!(hosts.merge(&full), Err(Refused::Overflow { ceiling }));
    assert_eq!(hosts.list(), [(0, 1), (1, 1), (2, 1), (3, 1)]);
    let other = Hosts::new(255).unwrap();
    assert_eq!(hosts.merge(&other), Err(Refused::Mismatch { field: "universe" }));
}
