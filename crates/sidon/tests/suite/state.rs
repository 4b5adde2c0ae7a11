//! State maps compared with an exact reference: with well-behaved input no stored flow gets a wrong
//! state.
//!
//! `SIDON_ABUSE=100000000 cargo test --release -p sidon --test suite state::` runs 10^8 operations.

use sidon::{
    Lookup, Refused, Seed,
    internals::{Audit, Tally},
    plan::{Prefer, States, fingerprint as planned},
    state::{
        Cells, Clock, Direct, Fingerprint, Machine, Map, Next, Rule, State, Stateful, direct,
        fingerprint::{self, Moves, Placing},
        stateful::{self, Keeping},
    },
};
use sidon_kit::{FiveTuples, Rng, assert_rate, trials};

const STATES: u32 = 8;
const FLOWS: u64 = 3_000;

fn steps() -> u64 {
    match std::env::var("SIDON_ABUSE") {
        Ok(steps) => steps.parse().expect("SIDON_ABUSE is a number of operations"),
        Err(_) => crate::size(1_000_000, 200_000),
    }
}

/// Flows begin, change and end. Every operation is followed by a lookup.
fn well_behaved<B: Cells>(map: Map<B>, steps: u64) -> Audit<Map<B>, u64> {
    let mut rng = Rng::seeded(41);
    let mut audit = Audit::new(map);
    let mut members: Vec<u64> = Vec::new();
    let mut next = 0;
    for _ in 0..steps / 2 {
        let state = rng.below(STATES.into()) as State;
        let full = members.len() as u64 >= FLOWS;
        match rng.below(4) {
            0 if !full => {
                // A flow that was refused never began.
                match audit.apply(&next, Next::Insert(state)) {
                    Ok(()) => members.push(next),
                    Err(_) => {
                        let _none = audit.truth.remove(&next);
                    }
                }
                next += 1;
            }
            1 if full || rng.chance(0.2) => {
                if !members.is_empty() {
                    let at = rng.below(members.len() as u64) as usize;
                    let key = members.swap_remove(at);
                    // A flow that the map cannot remove may still be stored.
                    let _ = audit.apply(&key, Next::Forget);
                }
            }
            _ => {
                if !members.is_empty() {
                    let key = members[rng.below(members.len() as u64) as usize];
                    // A full counter refuses the change, so the flow keeps its state.
                    let before = audit.truth.get(&key).copied();
                    if audit.apply(&key, Next::Modify(state)).is_err() {
                        match before {
                            Some(state) => audit.truth.insert(key, state),
                            None => audit.truth.remove(&key),
                        };
                    }
                }
            }
        }
        if !members.is_empty() && rng.chance(0.9) {
            let key = members[rng.below(members.len() as u64) as usize];
            let _answer = audit.ask(&key);
        } else {
            let _answer = audit.ask(&(u64::MAX - rng.below(1 << 40)));
        }
    }
    audit
}

fn fingerprint_shape(remainder: u32, placing: Placing, moves: Moves) -> fingerprint::Shape {
    fingerprint::Shape {
        subtables: 2,
        buckets: 60,
        cells: 32,
        width: 16,
        remainder,
        states: STATES,
        shared: 7,
        placing,
        moves,
        reinsert: false,
        stash: 0,
        growths: 0,
        grows: false,
        listed: 0,
    }
}

#[test]
fn no_member_is_answered_a_wrong_state_or_lost() {
    let steps = steps();
    let tell = |name: &str, tally: Tally| {
        println!("{name}: {steps} operations, {:?}", tally.rates());
        assert_eq!(tally.false_states.hits, 0, "{name}");
        assert_eq!(tally.false_negatives.hits, 0, "{name}");
        assert!(tally.member_dont_knows.of > 1_000, "{name}");
        // The test is strong enough: flows share cells, and some keys never inserted pass.
        assert!(tally.member_dont_knows.hits > 0, "{name}");
        assert!(tally.false_positives.hits > 0, "{name}");
    };
    // Short remainders, so that flows share fingerprints.
    let permuted = fingerprint_shape(7, Placing::Permuted, Moves::Search(64));
    for shape in [permuted, fingerprint::Shape { reinsert: true, ..permuted }] {
        let map = Fingerprint::new(shape, Seed(42)).unwrap();
        let audit = well_behaved(map, steps / 2);
        tell("fingerprint", audit.tally);
        assert_eq!(audit.map.len(), audit.truth.len() as u64);
        assert_eq!(audit.tally.refused.hits, 0);
    }
    // About 40 of 1,257 keys never inserted pass.
    let direct =
        direct::Shape { cells: 20_000, hashes: 6, states: STATES, counter: 4, timed: false };
    tell("direct", well_behaved(Direct::new(direct, Seed(43)).unwrap(), steps / 8).tally);
    for keeping in [Keeping::Counted(4), Keeping::Summed(4)] {
        let shape = stateful::Shape { cells: 12_000, hashes: 3, states: STATES, keeping };
        let audit = well_behaved(Stateful::new(shape, Seed(44)).unwrap(), steps / 4);
        tell("stateful", audit.tally);
        assert_eq!(audit.tally.refused.hits, 0);
    }
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn planned_maps_err_as_planned() {
    let target = States { flows: 20_000, states: 16, error: 2e-3 };
    for shape in [Prefer::Speed, Prefer::Memory].map(|prefer| planned::shape(target, prefer)) {
        let shape = shape.unwrap();
        let mut map = Fingerprint::new(shape, Seed(45)).unwrap();
        let mut keys = FiveTuples::seeded(46);
        let members: Vec<_> = keys.by_ref().take(target.flows as usize).collect();
        map.transition_batch(&members, |i, _| Next::Insert((i % 16) as State), &mut |i, why| {
            panic!("{i}: {why}")
        });
        let p = planned::rates(shape, target.flows)[0];
        assert!((map.certainty().error() / p - 1.0).abs() < 0.02, "{p}");
        // The rate of this table, whose fingerprints in use are known.
        let p = map.certainty().error();
        let n = trials(p, 0.1);
        let passed = keys.take(n).filter(|key| map.lookup(key) != Lookup::Absent).count();
        assert_rate(passed, n, p);
        let unknown = members.iter().filter(|key| map.lookup(*key) == Lookup::DontKnow).count();
        assert_rate(unknown / 2, members.len() / 2, planned::rates(shape, target.flows)[1]);
    }
}

#[test]
fn a_machine_drives_a_map_and_the_clock_takes_what_never_ends() {
    let machine = Machine::new(
        &["opening", "open", "closed"],
        &["closed"],
        &[
            ("syn", &[Rule::Open("opening")]),
            ("ack", &[Rule::If("opening", "open")]),
            ("fin", &[Rule::Go("closed")]),
        ],
    )
    .unwrap();
    let [syn, ack, fin] = ["syn", "ack", "fin"].map(|name| machine.event(name).unwrap());
    let target = States { flows: 10_000, states: 3, error: 1e-6 };
    let shape = planned::shape(target, Prefer::Speed).unwrap();
    let mut clock = Clock::new(Audit::new(Fingerprint::new(shape, Seed(47)).unwrap()), 40_000);
    let mut rng = Rng::seeded(48);
    let mut live = Vec::new();
    for flow in 0..60_000u64 {
        let audit = clock.tick(4);
        audit.step(&flow, &machine, syn).unwrap();
        live.push(flow);
        // Packets of flows that never began change nothing.
        audit.step(&(1 << 40 | flow), &machine, if flow % 2 == 0 { ack } else { fin }).unwrap();
        let some = live[rng.below(live.len() as u64) as usize];
        if audit.truth.get(&some).copied().is_some() {
            audit.step(&some, &machine, ack).unwrap();
        }
        // One flow in ten never ends; the others end when there are 500.
        if live.len() > 500 {
            let done = live.swap_remove(rng.below(500) as usize);
            if done % 10 != 0 {
                audit.step(&done, &machine, fin).unwrap();
            }
        }
    }
    let audit = clock.map();
    let tally = audit.tally;
    assert_eq!((tally.false_states.hits, tally.refused.hits), (0, 0), "{tally:?}");
    assert_eq!(tally.false_positives.hits + tally.stranger_dont_knows.hits, 0, "{tally:?}");
    // The reference has all flows that never ended, the map those of two periods.
    assert!(audit.truth.len() > 5_500);
    let flows = audit.map.len();
    assert!((1_000..3_500).contains(&flows), "{flows} of {}", audit.truth.len());
}

#[test]
fn every_map_ages_and_comes_back_from_its_bytes() {
    fn check<B: Cells>(map: Map<B>) {
        let mut clock = Clock::new(map, 1_000_000);
        for key in 0..100 {
            clock.at(0).insert(&key, (key % 8) as State).unwrap();
        }
        for round in 0..40u64 {
            for key in 0..50 {
                let answer = clock.at(round * 100_000).touch(&key);
                assert_ne!(answer, Lookup::Absent, "round {round}");
            }
        }
        let map = clock.map();
        for key in 50..100u64 {
            assert_eq!(map.lookup(&key), Lookup::Absent, "{key}");
        }
        let again = Map::<B>::from_bytes(&map.to_bytes(), Seed(49)).unwrap();
        for key in 0..200 {
            assert_eq!(again.lookup(&key), map.lookup(&key));
        }
        assert_eq!(again.to_bytes(), map.to_bytes());
        // Long after, all flows are gone. An earlier time changes nothing.
        clock.at(1 << 50);
        let map = clock.at(0);
        assert!((0..200).all(|key| map.lookup(&key) == Lookup::Absent));
        assert_eq!(map.forget(&0), Err(Refused::NotStored));
    }
    let direct = direct::Shape { cells: 9_000, hashes: 5, states: 8, counter: 1, timed: true };
    check(Direct::new(direct, Seed(49)).unwrap());
    check(Direct::new(direct::Shape { counter: 3, ..direct }, Seed(49)).unwrap());
    let shape = stateful::Shape { cells: 5_000, hashes: 4, states: 8, keeping: Keeping::Timed };
    check(Stateful::new(shape, Seed(49)).unwrap());
    // Wide cells: none of 50 flows that are gone has the fingerprint of one of 50 that stay, except
    // with a probability of 50 * 50 / (60 * 2^27) = 3e-7.
    for (placing, moves) in
        [(Placing::Permuted, Moves::Search(64)), (Placing::Independent, Moves::Never)]
    {
        let shape =
            fingerprint::Shape { cells: 16, width: 32, ..fingerprint_shape(27, placing, moves) };
        check(Fingerprint::new(shape, Seed(49)).unwrap());
    }
}
