//! The promises of the module, tested exhaustively where the table is small.

use super::{super::Clock, *};
use crate::Digest;
use sidon_kit::{Keys, Rng, assert_rate, trials};
use std::collections::HashMap;

const SMALL: Shape = Shape {
    subtables: 2,
    buckets: 1,
    cells: 8,
    width: 8,
    remainder: 3,
    states: 5,
    shared: 3,
    placing: Placing::Permuted,
    moves: Moves::Never,
    reinsert: false,
    stash: 0,
    growths: 0,
    grows: false,
    listed: 0,
};
/// Cells of a line each: the fast shapes, and two that are not.
const WIDTHS: [(u32, u32); 6] = [(16, 32), (24, 10), (24, 21), (32, 16), (64, 8), (19, 8)];

fn map(shape: Shape) -> Fingerprint {
    Fingerprint::new(shape, Seed(1)).unwrap()
}

fn wide((width, cells): (u32, u32), buckets: u64) -> Shape {
    let states = 16;
    let shape = Shape { buckets, cells, width, states, shared: 15, ..SMALL };
    Shape { remainder: (width - shape.low_bits()).min(40), moves: Moves::Search(64), ..shape }
}

/// One of the digests that have this fingerprint.
fn digest_of(map: &Fingerprint, fingerprint: u64, which: u64) -> Digest {
    let all = u128::from(map.body.shape.fingerprints());
    let digest = Digest((u128::from(fingerprint) << 64).div_ceil(all) as u64 + which);
    assert_eq!(map.fingerprint(&digest), fingerprint);
    digest
}

/// All well-behaved sequences of operations on two flows of one fingerprint and one of another.
fn every_sequence(map: &Fingerprint, twin: &mut [Option<State>; 3], keys: &[Digest; 3], left: u32) {
    for (key, &state) in keys.iter().zip(&*twin) {
        match (map.lookup(key), state) {
            (Lookup::State(answer), Some(state)) => assert_eq!(answer, state),
            (Lookup::Absent, Some(_)) => panic!("a member is never absent"),
            (answer, None) if *key == keys[2] => assert_eq!(answer, Lookup::Absent),
            _ => {}
        }
    }
    let alone = twin[0].is_none() || twin[1].is_none();
    let flows = twin.iter().flatten().count() as u64;
    assert_eq!((map.len(), alone || map.stats().unknown == 1), (flows, true));
    if left == 0 {
        return;
    }
    for (i, key) in keys.iter().enumerate() {
        let before = twin[i];
        let all = [Next::Insert(1), Next::Modify(1), Next::Modify(4), Next::Forget];
        for next in all.into_iter().filter(|next| before.is_none() == (*next == Next::Insert(1))) {
            let mut after = map.try_clone().unwrap();
            let _before = after.transition(key, |_| next).unwrap();
            twin[i] = match next {
                Next::Insert(state) | Next::Modify(state) => Some(state),
                _ => None,
            };
            every_sequence(&after, twin, keys, left - 1);
            twin[i] = before;
        }
    }
}

#[test]
fn no_short_sequence_ends_in_a_wrong_state() {
    for shape in [SMALL, Shape { buckets: 3, reinsert: true, ..SMALL }] {
        let map = map(shape);
        // The largest remainder is among them: an empty cell must not match it.
        let shared = shape.fingerprints() - 1;
        let keys = [(shared, 0), (shared, 1), (2, 0)];
        let keys = keys.map(|(fingerprint, which)| digest_of(&map, fingerprint, which));
        every_sequence(&map, &mut [None; 3], &keys, 7);
    }
}

#[test]
fn a_shared_cell_counts_its_flows_and_empties_with_them() {
    let mut map = map(SMALL);
    let [a, b, c, d] = [0, 1, 2, 3].map(|which| digest_of(&map, 6, which));
    map.insert(&a, 2).unwrap();
    map.insert(&b, 2).unwrap();
    assert_eq!((map.lookup(&a), map.stats().unknown, map.len()), (Lookup::DontKnow, 1, 2));
    map.insert(&c, 0).unwrap();
    assert_eq!(map.insert(&d, 0), Err(Refused::Overflow { ceiling: 3 }));
    // The state of each flow is unknown while there are two.
    map.forget(&a).unwrap();
    map.modify(&b, 4).unwrap();
    assert_eq!((map.lookup(&b), map.len()), (Lookup::DontKnow, 2));
    map.forget(&c).unwrap();
    // The last flow has the cell alone. Its state is unknown until it is modified.
    assert_eq!(map.lookup(&b), Lookup::DontKnow);
    assert_eq!(map.transition(&b, |_| Next::Stay), Ok(Lookup::DontKnow));
    map.modify(&b, 4).unwrap();
    assert_eq!((map.lookup(&b), map.stats().unknown), (Lookup::State(4), 0));
    map.forget(&b).unwrap();
    assert_eq!((map.lookup(&b), map.len(), map.stats().load), (Lookup::Absent, 0, 0.0));
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    let mut map = map(Shape { stash: 2, ..SMALL });
    assert_eq!(map.modify("x", 1), Err(Refused::NotStored));
    assert_eq!(map.forget("x"), Err(Refused::NotStored));
    assert_eq!(map.insert("x", 5), Err(Refused::Outside { universe: 5 }));
    let _ = map.transition("x", |_| Next::Set(1)).unwrap();
    assert_eq!(map.transition("x", |_| Next::Set(5)), Err(Refused::Outside { universe: 5 }));
    assert_eq!(map.lookup("x"), Lookup::State(1));
    map.clear();
    // Eight fingerprints, sixteen cells: never full. With six bits more, it is.
    let shape = Shape { width: 16, remainder: 9, stash: 2, ..SMALL };
    let mut map = self::map(shape);
    for fingerprint in 0..18 {
        let key = digest_of(&map, fingerprint, 0);
        map.insert(&key, (fingerprint % 5) as State).unwrap();
    }
    assert_eq!((map.stats().stashed, map.stats().load), (2, 1.0));
    let key = digest_of(&map, 18, 0);
    assert_eq!(map.insert(&key, 0), Err(Refused::Full { stored: 18, cells: 18 }));
    for fingerprint in 0..18 {
        let key = digest_of(&map, fingerprint, 0);
        assert_eq!(map.lookup(&key), Lookup::State((fingerprint % 5) as State));
        map.modify(&key, 4).unwrap();
        assert_eq!(map.lookup(&key), Lookup::State(4));
    }
    for fingerprint in (0..18).rev() {
        let key = digest_of(&map, fingerprint, 0);
        map.forget(&key).unwrap();
        assert_eq!(map.lookup(&key), Lookup::Absent);
    }
    assert_eq!((map.len(), map.stats().stashed), (0, 0));
}

/// Operations on keys that are stored or absent as the operation needs, in batches and one by one.
#[test]
fn batches_and_single_operations_agree_in_every_width() {
    for width in WIDTHS {
        for subtables in [2, 3] {
            let shape = Shape { subtables, growths: 7, grows: true, ..wide(width, 1) };
            let (mut one, mut batch) = (map(shape), map(shape));
            let mut twin: HashMap<u64, State> = HashMap::new();
            let mut rng = Rng::seeded(3);
            for round in 0..60 {
                let keys: Vec<u64> = (0..50).map(|_| rng.below(900)).collect();
                let mut change = |key: u64, now: Lookup<State>| match now {
                    _ if key % 7 == round % 7 && twin.contains_key(&key) => {
                        twin.remove(&key);
                        Next::Forget
                    }
                    _ => {
                        let state = ((key + round) % 16) as State;
                        match twin.insert(key, state) {
                            None => Next::Insert(state),
                            Some(_) => Next::Modify(state),
                        }
                    }
                };
                let mut nexts = Vec::new();
                batch.transition_batch(
                    &keys,
                    |i, now| {
                        nexts.push((now, change(keys[i], now)));
                        nexts[i].1
                    },
                    &mut |i, why| panic!("{i}: {why}"),
                );
                for (key, (now, next)) in keys.iter().zip(nexts) {
                    assert_eq!(one.transition(key, |_| next), Ok(now), "{width:?}");
                }
                let all: Vec<u64> = (0..900).collect();
                let mut answers = [Lookup::Absent; 900];
                batch.lookup_batch(&all, &mut answers);
                for (key, &answer) in all.iter().zip(&answers) {
                    assert_eq!(one.lookup(key), answer);
                    match twin.get(key) {
                        Some(&state) => {
                            assert!([Lookup::State(state), Lookup::DontKnow].contains(&answer));
                        }
                        // With short remainders, some keys never inserted pass.
                        None => assert!(answer == Lookup::Absent || shape.remainder < 20),
                    }
                }
                assert_eq!((one.len(), batch.len()), (twin.len() as u64, twin.len() as u64));
            }
            assert!(batch.shape().buckets > 4, "it grew under way");
            assert_eq!(batch.census().iter().sum::<u64>(), {
                let shared: u64 = batch.len() - (batch.body.table.occupied - batch.stats().unknown);
                batch.len() - shared + batch.stats().unknown
            });
        }
    }
}

/// For operations of any kind, valid or not, a batch does the same as single operations in order.
#[test]
fn a_batch_leaves_the_bytes_that_single_operations_leave() {
    for width in WIDTHS {
        for (grows, reinsert) in [(false, false), (true, false), (false, true)] {
            let shape = Shape { states: 5, shared: 3, stash: 2, reinsert, ..wide(width, 2) };
            // So few fingerprints that the largest remainder occurs, and flows share fingerprints.
            let shape = Shape { remainder: 7, growths: 3, grows, ..shape };
            let (mut one, mut batch) = (map(shape), map(shape));
            let mut rng = Rng::seeded(u64::from(width.0));
            let (mut reasons, mut stashed) = (HashMap::new(), 0);
            for _ in 0..400 {
                let len = rng.below(100) as usize;
                let keys: Vec<u64> = (0..len).map(|_| rng.below(2_000)).collect();
                let nexts: Vec<Next<State>> = (0..len)
                    .map(|_| match (rng.below(16), rng.below(6) as State) {
                        (0..7, state) => Next::Insert(state),
                        (7..9, state) => Next::Set(state),
                        (9..12, state) => Next::Modify(state),
                        (12, _) => Next::Stay,
                        _ => Next::Forget,
                    })
                    .collect();
                let (mut told, mut refused) = (vec![], vec![]);
                let change = |i: usize, now| {
                    told.push((i, now));
                    nexts[i]
                };
                batch.transition_batch(&keys, change, &mut |i, why| refused.push((i, why)));
                let (mut answers, mut reasons_alone) = (vec![], vec![]);
                for (i, key) in keys.iter().enumerate() {
                    let done = one.transition(key, |now| {
                        answers.push((i, now));
                        nexts[i]
                    });
                    reasons_alone.extend(done.err().map(|why| (i, why)));
                }
                assert_eq!((&told, &refused), (&answers, &reasons_alone), "{width:?}");
                assert_eq!(batch.to_bytes(), one.to_bytes(), "{width:?}");
                assert_eq!((batch.len(), batch.stats().unknown), (one.len(), one.stats().unknown));
                assert_eq!(batch.stats(), one.stats());
                let mut answers = vec![Lookup::Absent; len];
                batch.lookup_batch(&keys, &mut answers);
                assert!(keys.iter().zip(answers).all(|(key, answer)| one.lookup(key) == answer));
                stashed += batch.stats().stashed;
                for (_, why) in refused {
                    *reasons.entry(std::mem::discriminant(&why)).or_insert(0) += 1;
                }
                if rng.below(20) == 0 {
                    let to = one.hand() + rng.below(20);
                    let cleared = one.sweep(to);
                    assert_eq!((batch.sweep(to), batch.hand()), (cleared, one.hand()));
                }
            }
            // Not stored, not a state, and counted as far as a cell counts; full, unless it grows.
            assert!(reasons.len() == if grows { 3 } else { 4 }, "{width:?} {reasons:?}");
            assert!(grows || stashed > 0);
        }
    }
}

/// A batch on a table beyond the caches, in which acting is some groups behind prefetching. Flows
/// occur several times within that distance.
#[test]
fn a_batch_in_a_table_beyond_the_caches_does_as_single_operations_do() {
    for width in WIDTHS {
        let buckets = crate::batch::DEEP as u64 / 64 + 5;
        let shape = Shape { states: 5, shared: 3, stash: 2, ..wide(width, buckets) };
        let shape = Shape { remainder: 7, ..shape };
        let (mut one, mut batch) = (map(shape), map(shape));
        let mut rng = Rng::seeded(u64::from(width.0));
        // Every third flow has the largest remainder, which empty cells look like.
        let flows: Vec<Digest> = (0..60)
            .map(|i| {
                let any = rng.below(shape.fingerprints());
                digest_of(&one, if i % 3 == 0 { any | 127 } else { any }, 0)
            })
            .collect();
        for _ in 0..200 {
            let len = rng.below(100) as usize;
            let flow = |rng: &mut Rng| flows[rng.below(flows.len() as u64) as usize];
            let keys: Vec<Digest> = (0..len).map(|_| flow(&mut rng)).collect();
            let next = |i: usize| match (keys[i].0 ^ i as u64) % 5 {
                0 => Next::Forget,
                state => Next::Set(state as State),
            };
            let (mut told, mut refused) = (vec![], vec![]);
            let change = |i: usize, now| {
                told.push(now);
                next(i)
            };
            batch.transition_batch(&keys, change, &mut |i, why| refused.push((i, why)));
            for (i, key) in keys.iter().enumerate() {
                let was = one.lookup(key);
                let done = one.transition(key, |_| next(i));
                assert_eq!(told[i], was, "{width:?}");
                assert_eq!(
                    refused.iter().find(|&&(at, _)| at == i).map(|&(_, why)| why),
                    done.err()
                );
            }
            assert_eq!((batch.len(), batch.stats().unknown), (one.len(), one.stats().unknown));
            let mut answers = vec![Lookup::Absent; len];
            batch.lookup_batch(&keys, &mut answers);
            assert!(keys.iter().zip(answers).all(|(key, answer)| one.lookup(key) == answer));
        }
        assert!(batch.body.table.memory.bytes() == one.body.table.memory.bytes(), "{width:?}");
    }
}

#[test]
fn strangers_are_answered_as_often_as_fingerprints_are_in_use() {
    for (placing, moves) in
        [(Placing::Permuted, Moves::Search(64)), (Placing::Independent, Moves::Never)]
    {
        let shape = Shape { buckets: 128, remainder: 10, placing, moves, ..wide((16, 32), 64) };
        let mut map = map(shape);
        let mut keys = Keys::seeded(5);
        for key in keys.by_ref().take(5_000) {
            map.insert(&key, 3).unwrap();
        }
        let p = map.certainty().error();
        assert!(p > 0.01 && p < 0.05, "{p}");
        let n = trials(p, 0.05);
        let passed = keys.take(n).filter(|key| map.lookup(key) != Lookup::Absent).count();
        assert_rate(passed, n, p);
    }
}

#[test]
fn independent_buckets_never_return_a_wrong_state_either() {
    let shape =
        Shape { buckets: 16, remainder: 6, placing: Placing::Independent, ..wide((16, 32), 1) };
    let mut map = map(Shape { moves: Moves::Never, ..shape });
    let mut twin: HashMap<u64, State> = HashMap::new();
    let (mut rng, mut unknown, mut ambiguous) = (Rng::seeded(8), 0, 0);
    for step in 0..40_000u64 {
        let key = rng.below(600);
        let state = (step % 16) as State;
        let is_in = twin.contains_key(&key);
        if !is_in {
            map.insert(&key, state).unwrap();
            twin.insert(key, state);
        } else if step % 4 != 0 {
            map.modify(&key, state).unwrap();
            twin.insert(key, state);
        } else {
            match map.forget(&key) {
                Ok(()) => {
                    twin.remove(&key);
                }
                Err(why) => {
                    assert_eq!(why, Refused::Ambiguous);
                    ambiguous += 1;
                }
            }
        }
        let asked = rng.below(600);
        match (map.lookup(&asked), twin.get(&asked)) {
            (Lookup::State(answer), Some(&state)) => assert_eq!(answer, state),
            (Lookup::Absent, Some(_)) => panic!("{asked} is lost"),
            (Lookup::DontKnow, Some(_)) => unknown += 1,
            _ => {}
        }
    }
    assert!(unknown > 100 && ambiguous > 100, "{unknown} {ambiguous}");
}

#[test]
fn what_is_not_touched_for_a_phase_is_gone_and_all_else_stays() {
    for width in WIDTHS {
        let mut map = map(Shape { stash: 4, ..wide(width, 40) });
        let cells = map.shape().all_cells();
        let keys: Vec<u64> = Keys::seeded(9).take(cells as usize * 9 / 10).collect();
        let (busy, idle) = keys.split_at(100);
        for key in &keys {
            map.insert(key, 7).unwrap();
        }
        let mut clock = Clock::new(map, 1_000);
        let mut rng = Rng::seeded(10);
        for round in 0..40 {
            // Each busy flow is touched once in every hundred operations.
            for key in busy {
                assert_ne!(clock.tick(1).touch(key), Lookup::Absent, "{width:?} round {round}");
            }
            // New flows make cells move while the clock hand goes round.
            for _ in 0..5 {
                let _ = clock.tick(0).insert(&rng.next_u64(), 1);
            }
        }
        let map = clock.map();
        let gone = idle.iter().filter(|key| map.lookup(*key) == Lookup::Absent).count();
        let passing = (map.certainty().error() * idle.len() as f64 * 3.0) as usize + 3;
        assert!(gone + passing >= idle.len(), "{width:?}: {gone} of {}", idle.len());
        assert!(map.stats().moved > 0 || map.shape().cells > 8);
        // Counts are those of the cells that are left.
        let cells = map.body.table.cells().chain(map.body.stash.iter().copied());
        let flows: u64 = cells.map(|(_, low)| map.body.tally.flows_of(low)).sum();
        assert_eq!((flows, map.census().pop()), (map.len(), Some(map.stats().unknown)));
    }
}

#[test]
fn two_maps_of_disjoint_flows_become_one() {
    let shape = Shape { remainder: 9, shared: 3, stash: 8, ..wide((16, 32), 32) };
    let keys: Vec<u64> = Keys::seeded(11).take(1_600).collect();
    let (mut left, mut right, mut both) = (map(shape), map(shape), map(shape));
    for (i, key) in keys.iter().enumerate() {
        let half = if i % 2 == 0 { &mut left } else { &mut right };
        half.insert(key, (i % 16) as State).unwrap();
        both.insert(key, (i % 16) as State).unwrap();
    }
    left.merge(&right).unwrap();
    assert_eq!((left.len(), left.stats().unknown), (both.len(), both.stats().unknown));
    assert!(left.stats().unknown > 10);
    assert!(keys.iter().all(|key| left.lookup(key) == both.lookup(key)));

    // A merge that does not fit changes nothing.
    for key in Keys::seeded(12).take(400) {
        right.insert(&key, 0).unwrap();
    }
    let before: Vec<_> = left.body.table.cells().collect();
    assert!(matches!(left.merge(&right), Err(Refused::Full { .. } | Refused::Overflow { .. })));
    assert!(left.body.table.cells().eq(before));
    let other = Fingerprint::new(shape, Seed(2)).unwrap();
    assert_eq!(left.merge(&other), Err(Refused::Mismatch { field: "seed" }));
}

#[test]
fn shapes_that_cannot_be_are_infeasible() {
    let good = wide((32, 16), 8);
    assert!(Fingerprint::new(good, Seed(1)).is_ok());
    for bad in [
        Shape { subtables: 1, ..good },
        Shape { buckets: 0, ..good },
        Shape { buckets: u64::MAX, ..good },
        Shape { cells: 33, ..good },
        Shape { cells: 0, ..good },
        Shape { width: 65, ..good },
        Shape { width: 7, ..good },
        Shape { cells: 7, width: 9, remainder: 2, ..good },
        Shape { remainder: 27, ..good },
        Shape { remainder: 0, ..good },
        Shape { states: 0, ..good },
        Shape { states: 1 << 30, ..good },
        Shape { shared: 1, ..good },
        Shape { stash: 65, ..good },
        Shape { growths: 26, ..good },
        Shape { moves: Moves::Search(0), ..good },
        Shape { placing: Placing::Independent, ..good },
        Shape { placing: Placing::Independent, moves: Moves::Never, stash: 1, ..good },
    ] {
        assert!(Fingerprint::new(bad, Seed(1)).is_err(), "{bad:?}");
    }
}

/// Figure 4 of the paper: three buckets, ten fingerprints of 17 bits, one of which goes from 3 to 5.
#[test]
fn a_state_change_as_in_figure_4() {
    let fingerprints = [
        0b1_0001_1100_1111_1100,
        0b0_1110_1001_0001_0111,
        0b0_1110_0100_1010_1111,
        0b1_1110_1010_0100_0111,
        0b1_1110_1110_0100_1011,
        0b0_0011_1100_1110_1101,
        0b1_1111_1111_1000_0000,
        0b1_0101_1100_1010_1011,
        0b0_1110_0100_0101_1111,
        0b1_1100_0100_1011_1110u64,
    ];
    let states = [3, 1, 6, 3, 2, 1, 4, 2, 3, 1];
    let shape = Shape { subtables: 3, width: 32, remainder: 17, states: 8, ..SMALL };
    let mut map = map(shape);
    let keys = fingerprints.map(|fingerprint| digest_of(&map, fingerprint, 0));
    for (key, state) in keys.iter().zip(states) {
        map.insert(key, state).unwrap();
    }
    let before = map.transition(&keys[3], |now| match now {
        Lookup::State(3) => Next::Modify(5),
        _ => Next::Stay,
    });
    assert_eq!(before, Ok(Lookup::State(3)));
    let after = keys.map(|key| map.lookup(&key));
    assert_eq!(after, [3, 1, 6, 5, 2, 1, 4, 2, 3, 1].map(Lookup::State));
}

#[test]
fn a_hand_with_rules_does_to_every_cell_what_they_say() {
    for layout in WIDTHS {
        let mut map = map(Shape { stash: 4, ..wide(layout, 4) });
        let mut twin: HashMap<u64, (State, u64)> = HashMap::new();
        for key in Keys::seeded(8).take(3 * layout.1 as usize) {
            let state = (key % 16) as State;
            if map.insert(&key, state).is_ok() {
                let fingerprint = map.fingerprint(&key);
                twin.entry(fingerprint).or_insert((state, 0)).1 += 1;
            }
        }
        // Clears even states, adds two to odd ones below ten, and keeps shared cells.
        let (mut cleared, mut seen) = (0, 0);
        let units = map.units();
        let shared = map.stats().unknown;
        let counted = map.sweep_by(0, units, &mut |cell| {
            assert!(cell.touched);
            seen += cell.flows;
            match cell.answer {
                Lookup::State(state) if state % 2 == 0 => {
                    cleared += 1;
                    Fate::Clear
                }
                Lookup::State(state) if state < 10 => Fate::Become(state + 2),
                Lookup::State(_) => Fate::Untouch,
                _ => Fate::Keep,
            }
        });
        assert_eq!((counted, map.stats().unknown), (cleared, shared));
        assert_eq!(seen, twin.values().map(|(_, flows)| flows).sum::<u64>());
        let left = |(state, flows): &&(State, u64)| *flows > 1 || state % 2 == 1;
        assert_eq!(map.len(), twin.values().filter(left).map(|(_, flows)| flows).sum::<u64>());
        let mut census = vec![0; 17];
        for (state, flows) in twin.values().filter(left) {
            let now = if *flows > 1 { 16 } else { state + 2 * u16::from(*state < 10) };
            census[usize::from(now)] += 1;
        }
        assert_eq!(map.census(), census);
        map.sweep_by(0, units, &mut |cell| {
            let risen = !matches!(cell.answer, Lookup::State(13 | 15));
            assert!(cell.touched || cell.answer != Lookup::DontKnow);
            assert!(risen || !cell.touched || matches!(cell.answer, Lookup::State(_)));
            Fate::Clear
        });
        assert_eq!((map.len(), map.stats().unknown, map.stats().load), (0, 0, 0.0));
    }
}

#[test]
fn a_full_table_stops_searching_and_resumes_when_cells_free_up() {
    let limit = 64;
    let shape = Shape { moves: Moves::Search(limit), ..wide((32, 16), 500) };
    let mut map = Fingerprint::new(shape, Seed(1)).unwrap();
    let insert = |map: &mut Fingerprint, keys: std::ops::Range<u64>| {
        let keys: Vec<u64> = keys.collect();
        let mut refused = 0;
        map.transition_batch(&keys, |_, _| Next::Insert(1), &mut |_, _| refused += 1);
        refused
    };
    let work = |map: &Fingerprint| map.stats().followed;
    let bound = |operations: u64| shape.moves.work_most(operations);
    let cells = shape.all_cells();
    insert(&mut map, 0..2 * cells);
    assert!(work(&map) <= bound(2 * cells), "{}", work(&map));
    assert!(map.stats().load > 0.97, "{}", map.stats().load);
    // In a full table, a hundred times as many new flows cost no search.
    let before = work(&map);
    let refused = insert(&mut map, 10 * cells..110 * cells);
    assert!(refused >= 100 * cells - cells / 10, "{refused}");
    let spent = work(&map) - before;
    assert!(spent <= bound(100 * cells - refused), "{spent}");
    // Cells free up, and searches find room again.
    let resolved = map.stats().resolved;
    let gone: Vec<u64> = (0..cells / 4).collect();
    map.transition_batch(&gone, |_, _| Next::Forget, &mut |_, _| {});
    insert(&mut map, 200 * cells..201 * cells);
    assert!(map.stats().resolved > resolved, "{:?}", map.stats());
    assert!(map.stats().load > 0.97, "{}", map.stats().load);
}

#[test]
fn a_flow_and_its_cell_are_of_one_class() {
    // A long remainder, one shorter than the highest class, and one that growing has shortened.
    let long = wide((32, 16), 5_000);
    let short = Shape { remainder: 7, ..wide((16, 32), 5_001) };
    let grows = Shape { growths: 2, remainder: 15, ..wide((32, 16), 1_000) };
    for shape in [long, short, grows] {
        let mut map = map(shape);
        for _ in 0..shape.growths {
            map.grow().unwrap();
        }
        let keys: Vec<u64> = (0..map.shape().all_cells() / 2).collect();
        let mut expected = [0u64; CLASSES as usize + 1];
        for key in &keys {
            expected[map.classes()(key.digest(Seed(1))) as usize] += 1;
        }
        map.transition_batch(&keys, |_, _| Next::Insert(0), &mut |_, _| {});
        let (mut found, units) = ([0u64; CLASSES as usize + 1], map.units());
        map.sweep_by(0, units, &mut |cell| {
            found[cell.class as usize] += cell.flows;
            Fate::Keep
        });
        assert_eq!(found, expected, "{shape:?}");
        let mut cells = [0u64; CLASSES as usize + 1];
        map.cells().for_each(|(class, _)| cells[class as usize] += 1);
        assert!(cells.iter().zip(found).all(|(&cells, flows)| cells <= flows));
        // One flow in two is of class 0, and one in four of class 1.
        assert_rate(found[0] as usize, keys.len(), 0.5);
        assert_rate(found[1] as usize, keys.len(), 0.25);
    }
}

/// The rules of three timers on 16 states. States below 4 move up and then expire. States up to 9, and
/// all others with shared cells, expire after a silence.
fn timers_of() -> Vec<u8> {
    (0..16)
        .map(|state| if state < 4 { 0b001 } else { 0b010 << (state / 10) })
        .chain([0b100])
        .collect()
}

fn three_timers(timer: usize, cell: Visited) -> Fate {
    let own = match cell.answer {
        Lookup::State(state) => timers_of()[usize::from(state)],
        _ => 0b100,
    };
    match (own >> timer & 1, cell.answer, cell.touched) {
        (0, ..) => Fate::Keep,
        (_, Lookup::State(3), _) => Fate::Clear,
        (_, Lookup::State(state @ 0..3), _) => Fate::Become(state + 1),
        (_, _, true) => Fate::Untouch,
        _ => Fate::Clear,
    }
}

#[test]
fn a_timer_skips_groups_without_a_cell_of_its_own_and_misses_none() {
    for (number, layout) in WIDTHS.into_iter().enumerate() {
        for growths in [0, 1] {
            let shape = Shape { stash: 4, growths, ..wide(layout, 700) };
            let shape = Shape { remainder: shape.remainder.min(20), ..shape };
            let (mut quick, mut whole) = (map(shape), map(shape));
            quick.set_timers(timers_of());
            let mut rng = Rng::seeded(number as u64);
            for round in 0..200 {
                let keys: Vec<u64> = (0..rng.below(300)).map(|_| rng.below(20_000)).collect();
                let mut acts = Vec::new();
                for _ in &keys {
                    let state = rng.below(16) as State;
                    let acts_on = [Next::Insert(state), Next::Set(state), Next::Stay, Next::Forget];
                    acts.push(acts_on[rng.below(4) as usize]);
                }
                for map in [&mut quick, &mut whole] {
                    if round % 2 == 0 {
                        map.transition_batch(&keys, |key, _| acts[key], &mut |_, _| {});
                    } else {
                        for (key, &act) in keys.iter().zip(&acts) {
                            let _ = map.transition(key, |_| act);
                        }
                    }
                    if round == 100 && growths > 0 {
                        map.grow().unwrap();
                    }
                }
                let timer = rng.below(3) as usize;
                let swept = quick.sweep_timer(timer, &mut |cell| three_timers(timer, cell));
                let units = whole.units();
                let cleared = whole.sweep_by(0, units, &mut |cell| three_timers(timer, cell));
                assert_eq!(swept.cleared, cleared);
                assert_eq!(quick.to_bytes(), whole.to_bytes(), "{layout:?} {round}");
            }
        }
    }
}

#[test]
fn a_timer_finds_cells_that_have_moved() {
    let shape = wide((32, 16), 500);
    let (mut quick, mut whole) = (map(shape), map(shape));
    quick.set_timers(timers_of());
    let mut rng = Rng::seeded(9);
    let mut stored: Vec<u64> = Vec::new();
    for round in 0..200u64 {
        // At a load of 97 %, most insertions move cells. One flow in 200 belongs to the first timer.
        let mut keys: Vec<u64> = (0..500).map(|_| rng.next_u64()).collect();
        for map in [&mut quick, &mut whole] {
            let gone = stored.len().saturating_sub(15_000);
            map.transition_batch(&stored[..gone], |_, _| Next::Forget, &mut |_, _| {});
            let state = |key: usize| if key.is_multiple_of(200) { 0 } else { 12 };
            map.transition_batch(&keys, |key, _| Next::Insert(state(key)), &mut |_, _| {});
        }
        stored.drain(..stored.len().saturating_sub(15_000));
        stored.append(&mut keys);
        if round % 5 == 0 {
            quick.sweep_timer(0, &mut |cell| three_timers(0, cell));
            let units = whole.units();
            whole.sweep_by(0, units, &mut |cell| three_timers(0, cell));
            assert_eq!(quick.to_bytes(), whole.to_bytes(), "{round}");
        }
    }
    assert!(quick.stats().moved > 10_000, "{:?}", quick.stats());
}

#[test]
fn sweeps_read_cells_in_proportion_to_writes_however_many_there_are() {
    // A map of 1,000,000 cells in which few flows are stored.
    let shape = wide((32, 16), 32_768);
    let mut few = map(shape);
    few.set_timers(timers_of());
    let mut read = 0;
    for key in 0..1_000u64 {
        few.insert(&key, (key % 16) as State).unwrap();
        for timer in 0..3 {
            for _ in 0..5 {
                read += few.sweep_timer(timer, &mut |cell| three_timers(timer, cell)).read;
            }
        }
    }
    assert_eq!(few.len(), 0);
    // Each flow is visited four times at most before it leaves, in a group of 64 cells.
    assert!(read <= 1_000 * 5 * 64, "{read}");
    // A full table of flows that belong to the last timer costs the others nothing.
    let mut full = map(shape);
    full.set_timers(timers_of());
    let keys: Vec<u64> = (0..shape.all_cells() * 9 / 10).collect();
    full.transition_batch(&keys, |_, _| Next::Insert(12), &mut |_, _| {});
    let mut keep = |timer, times| {
        let mut read = 0;
        for key in 0..times {
            let _ = full.insert(&(1u64 << 40 | key), 0);
            read += full.sweep_timer(timer, &mut |cell| three_timers(timer, cell)).read;
        }
        read
    };
    let read = keep(0, 1_000);
    assert!(read <= 1_000 * 5 * 64, "{read}");
    assert_eq!(keep(1, 1_000), 0);
}
