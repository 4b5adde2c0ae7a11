//! The list of flows that a fingerprint map cannot distinguish, against an exact reference.

use sidon::{
    Lookup, Refused, Seed, plan,
    state::{
        Fingerprint, Next, State,
        fingerprint::{Moves, Placing, Shape},
    },
};
use sidon_kit::{Keys, Rng};
use std::collections::HashMap;

const SEED: Seed = Seed(61);
const STATES: u32 = 6;

/// Short remainders: about one flow in six shares its fingerprint with a stored one.
const SHAPE: Shape = Shape {
    subtables: 2,
    buckets: 24,
    cells: 16,
    width: 16,
    remainder: 7,
    states: STATES,
    shared: 5,
    placing: Placing::Permuted,
    moves: Moves::Search(64),
    reinsert: false,
    stash: 4,
    growths: 0,
    grows: false,
    listed: 256,
};

fn independent(shape: Shape) -> Shape {
    Shape { placing: Placing::Independent, moves: Moves::Never, stash: 0, ..shape }
}

fn map(shape: Shape) -> Fingerprint {
    Fingerprint::new(shape, SEED).unwrap()
}

/// Lookups of stored flows: all, those answered "don't know", and flows that the list held at most.
#[derive(Debug, Default)]
struct Seen {
    asked: u64,
    unknown: u64,
    listed: u64,
}

/// Well-behaved flows, one operation at a time or in batches. An answer about a stored flow is its state or
/// "don't know". With `exact`, it is always its state.
fn behaves(shape: Shape, exact: bool, batches: bool) -> Seen {
    let mut map = map(shape);
    let mut truth: HashMap<u64, State> = HashMap::new();
    let mut members: Vec<u64> = Vec::new();
    let (mut rng, mut fresh) = (Rng::seeded(62), Keys::seeded(63));
    let mut seen = Seen::default();
    for _ in 0..2_000 {
        let mut steps = Vec::new();
        for _ in 0..1 + rng.below(12) {
            let state = rng.below(STATES.into()) as State;
            let at = rng.below(members.len().max(1) as u64) as usize;
            // A batch has each flow once, so that the reference needs no order.
            let (key, next) = match rng.below(4) {
                0 | 1 if members.len() < 500 => (fresh.next().unwrap(), Next::Insert(state)),
                2 if members.len() > 400 => (members[at], Next::Forget),
                3 if !members.is_empty() => (members[at], Next::Modify(state)),
                _ => continue,
            };
            if steps.iter().all(|&(other, _)| other != key) {
                steps.push((key, next));
            }
        }
        let keys: Vec<u64> = steps.iter().map(|step| step.0).collect();
        let mut refused = vec![None; steps.len()];
        if batches {
            let mut note = |i: usize, why| refused[i] = Some(why);
            map.transition_batch(&keys, |i, _| steps[i].1, &mut note);
        } else {
            for (i, &(key, next)) in steps.iter().enumerate() {
                refused[i] = map.transition(&key, |_| next).err();
            }
        }
        for (&(key, next), why) in steps.iter().zip(&refused) {
            match (next, why) {
                (Next::Insert(state) | Next::Modify(state), None) => {
                    if truth.insert(key, state).is_none() {
                        members.push(key);
                    }
                }
                (Next::Forget, None) => {
                    truth.remove(&key);
                    members.retain(|&other| other != key);
                }
                (Next::Forget, Some(Refused::Ambiguous)) => {
                    assert_eq!(shape.placing, Placing::Independent);
                }
                (Next::Insert(_), Some(Refused::Overflow { .. } | Refused::Full { .. })) => {
                    assert!(!exact);
                }
                other => panic!("{other:?}"),
            }
        }
        let mut answers = vec![Lookup::Absent; members.len()];
        map.lookup_batch(&members, &mut answers);
        for (key, answer) in members.iter().zip(&answers) {
            assert_eq!(map.lookup(key), *answer);
            seen.asked += 1;
            match answer {
                Lookup::State(state) => assert_eq!(*state, truth[key], "{key}"),
                Lookup::Absent => panic!("{key} is lost"),
                Lookup::DontKnow => seen.unknown += 1,
            }
        }
        assert!(!exact || seen.unknown == 0, "{:?}", map.stats());
        let stats = map.stats();
        assert!(stats.listed <= shape.listed.into());
        seen.listed = seen.listed.max(stats.listed);
        if shape.placing == Placing::Permuted {
            assert_eq!(map.len(), truth.len() as u64);
        }
    }
    // The law of saved bytes, and the counts again.
    let again = Fingerprint::from_bytes(&map.to_bytes(), SEED).unwrap();
    assert!(again == map);
    assert_eq!((again.len(), again.stats().listed), (map.len(), map.stats().listed));
    assert_eq!(again.census(), map.census());
    seen
}

#[test]
fn a_listed_flow_answers_its_state_and_never_a_wrong_one() {
    for batches in [false, true] {
        let without = behaves(Shape { listed: 0, ..SHAPE }, false, batches);
        assert!(without.unknown * 10 > without.asked, "{without:?}: too few to tell");
        let with = behaves(SHAPE, true, batches);
        assert!(with.listed > 30, "{with:?}");
        behaves(Shape { reinsert: true, ..SHAPE }, true, batches);
        // A list that is too short, so that cells are shared, too.
        let some = behaves(Shape { listed: 20, ..SHAPE }, false, batches);
        assert_eq!(some.listed, 20);
        assert!(some.unknown > 0 && some.unknown * 10 < without.unknown * 9, "{some:?}");
        // Independent buckets.
        let without = behaves(independent(Shape { listed: 0, ..SHAPE }), false, batches);
        let with = behaves(independent(SHAPE), false, batches);
        assert!(with.unknown * 2 < without.unknown, "{with:?} {without:?}");
    }
}

/// Flows of one fingerprint.
fn alike(map: &Fingerprint, flows: usize) -> Vec<u64> {
    let first = map.fingerprint(&0u64);
    (0..).filter(|key: &u64| map.fingerprint(key) == first).take(flows).collect()
}

#[test]
fn flows_of_a_shared_cell_have_a_state_again_when_there_is_room() {
    let mut map = map(Shape { listed: 1, ..SHAPE });
    let [a, b, c, d] = alike(&map, 4)[..] else { panic!() };
    for (key, state) in [(a, 1), (b, 2), (c, 3)] {
        map.insert(&key, state).unwrap();
    }
    // The first has the cell, the second the list. The third shares the cell of the first.
    let answers = |map: &Fingerprint| [a, b, c].map(|key| map.lookup(&key));
    let (unknown, state) = (Lookup::DontKnow, Lookup::State);
    assert_eq!(answers(&map), [unknown, state(2), unknown]);
    assert_eq!((map.len(), map.stats().unknown, map.stats().listed), (3, 1, 1));
    // Each change of the listed flow is its own.
    map.modify(&b, 5).unwrap();
    assert_eq!(answers(&map), [unknown, state(5), unknown]);
    map.modify(&a, 4).unwrap();
    assert_eq!(answers(&map), [unknown, state(5), unknown]);
    map.forget(&b).unwrap();
    assert_eq!((map.len(), map.stats().listed), (2, 0));
    // There is room: the next change of a flow takes it out of the shared cell.
    map.modify(&a, 4).unwrap();
    assert_eq!(map.lookup(&a), state(4));
    assert_eq!((map.len(), map.stats().unknown, map.stats().listed), (2, 1, 1));
    // The last flow of the cell gets the cell.
    map.modify(&c, 0).unwrap();
    assert_eq!([map.lookup(&a), map.lookup(&c)], [state(4), state(0)]);
    assert_eq!((map.len(), map.stats().unknown), (2, 0));
    // A flow that is inserted twice is unknown, as in a cell.
    map.insert(&a, 1).unwrap();
    assert_eq!((map.lookup(&a), map.len()), (unknown, 3));
    // A refusal changes nothing.
    let before = map.to_bytes();
    assert_eq!(map.modify(&a, 6), Err(Refused::Outside { universe: 6 }));
    assert_eq!(map.insert(&d, 6), Err(Refused::Outside { universe: 6 }));
    assert_eq!(map.to_bytes(), before);
    map.clear();
    assert_eq!((map.len(), map.lookup(&a), map.stats().listed), (0, Lookup::Absent, 0));
}

#[test]
fn the_first_flow_may_leave_and_the_listed_one_stays() {
    for shape in [SHAPE, independent(SHAPE)] {
        let mut map = map(shape);
        // Inserts flows until one enters the list.
        let mut keys = Keys::seeded(64);
        let mut members: Vec<u64> = Vec::new();
        let listed = loop {
            let key = keys.next().unwrap();
            map.insert(&key, 3).unwrap();
            if map.stats().listed == 1 {
                break key;
            }
            members.push(key);
        };
        for key in &members {
            if map.lookup(key) != Lookup::DontKnow {
                map.forget(key).unwrap();
            }
            assert_eq!(map.lookup(&listed), Lookup::State(3));
        }
        map.modify(&listed, 5).unwrap();
        assert_eq!(map.lookup(&listed), Lookup::State(5));
        map.forget(&listed).unwrap();
        assert_eq!(map.stats().listed, 0);
    }
}

/// Two maps with different flows. Afterwards every flow has its state or is unknown, and a flow whose
/// fingerprint only one map had keeps its state.
#[test]
fn merged_lists_never_give_a_wrong_state() {
    for room in [0, 8, 256] {
        let shape = Shape { listed: room, buckets: 60, remainder: 6, ..SHAPE };
        let (mut one, mut two) = (map(shape), map(Shape { listed: 100, ..shape }));
        let mut keys = Keys::seeded(65);
        let mut truth: Vec<(u64, State, bool)> = Vec::new();
        for (i, key) in keys.by_ref().take(700).enumerate() {
            let (state, first) = ((i % 6) as State, i % 2 == 0);
            let entered = if first { &mut one } else { &mut two }.insert(&key, state);
            if entered.is_ok() {
                truth.push((key, state, first));
            }
        }
        assert!(two.stats().listed > 10, "{:?}", two.stats());
        let fingerprints = |first: bool| -> Vec<u64> {
            let of = truth.iter().filter(|flow| flow.2 == first);
            of.map(|flow| one.fingerprint(&flow.0)).collect()
        };
        let (firsts, seconds) = (fingerprints(true), fingerprints(false));
        let before: Vec<_> = truth
            .iter()
            .map(|(key, _, first)| if *first { one.lookup(key) } else { two.lookup(key) })
            .collect();
        let mut taken = one.try_clone().unwrap();
        let mut reports = 0;
        taken
            .take_over(&two, &mut |met| {
                reports += 1;
                assert_eq!(met.refused, None);
            })
            .unwrap();
        assert_eq!(reports, two.census().iter().sum::<u64>());
        one.merge(&two).unwrap();
        assert_eq!((one.len(), taken.len()), (truth.len() as u64, truth.len() as u64));
        let (mut kept, mut unknown) = (0, 0);
        for ((key, state, first), before) in truth.iter().zip(before) {
            for map in [&one, &taken] {
                match map.lookup(key) {
                    Lookup::State(answer) => assert_eq!(answer, *state),
                    Lookup::Absent => panic!("{key} is lost"),
                    Lookup::DontKnow => unknown += 1,
                }
            }
            let others = if *first { &seconds } else { &firsts };
            if room == 256 && !others.contains(&one.fingerprint(key)) {
                assert_eq!(one.lookup(key), before);
                kept += 1;
            }
        }
        assert!(unknown > 0 && (room != 256 || kept > 500), "{unknown} {kept}");
        assert!(Fingerprint::from_bytes(&one.to_bytes(), SEED).unwrap() == one);
    }
}

/// A flow that both maps store must not keep the state of one of them.
#[test]
fn a_flow_that_both_maps_store_is_unknown_in_lists_too() {
    let (mut one, mut two) = (map(SHAPE), map(SHAPE));
    let [a, b] = alike(&one, 2)[..] else { panic!() };
    // Listed in one map, in a cell of the other; and the other way round.
    for (left, right) in [(true, false), (false, true), (true, true)] {
        one.clear();
        two.clear();
        for (map, listed, state) in [(&mut one, left, 1), (&mut two, right, 2)] {
            if listed {
                map.insert(&a, 5).unwrap();
            }
            map.insert(&b, state).unwrap();
            assert_eq!(map.stats().listed, u64::from(listed));
        }
        one.merge(&two).unwrap();
        assert_eq!(one.lookup(&b), Lookup::DontKnow, "{left} {right}");
    }
}

#[test]
fn a_planned_list_takes_all_and_is_no_longer_than_needed() {
    let shape = Shape { buckets: 2_000, remainder: 9, listed: 0, ..SHAPE };
    const FLOWS: u64 = 40_000;
    let room = plan::fingerprint::listed(shape, FLOWS).unwrap();
    let mut map = map(Shape { listed: room, ..shape });
    let mut members: Vec<u64> = Keys::seeded(66).take(FLOWS as usize).collect();
    map.transition_batch(&members, |_, _| Next::Insert(1), &mut |_, why| panic!("{why}"));
    let (mut rng, mut mean) = (Rng::seeded(67), 0.0);
    const ROUNDS: usize = 200_000;
    for key in Keys::seeded(68).take(ROUNDS) {
        let at = rng.below(FLOWS) as usize;
        map.forget(&members[at]).unwrap();
        map.insert(&key, 2).unwrap();
        members[at] = key;
        mean += map.stats().listed as f64 / ROUNDS as f64;
    }
    assert_eq!(map.stats().unknown, 0);
    // One flow in 26 is listed. Nine standard deviations are less than a quarter.
    let expected = FLOWS as f64 * plan::fingerprint::rates(shape, FLOWS)[1];
    assert!(mean > 0.8 * expected && mean <= expected, "{mean} {expected}");
    assert!(f64::from(room) < 1.25 * expected, "{room} {expected}");
    assert_eq!(map.memory_bytes(), Fingerprint::planned_bytes(shape) + 32 * u64::from(room));
    // No list is long enough.
    assert_eq!(plan::fingerprint::listed(Shape { remainder: 1, ..shape }, 1 << 20), None);
}
