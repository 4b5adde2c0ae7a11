//! Every planned shape can be built, and no argument makes a formula panic.

use proptest::{collection::vec, prelude::*, sample::select};
use sidon::{
    Infeasible, Seed,
    count::{Distinct, FanOut, Layout, Min, Periods, Prefixes, Top, distinct, fan_out, min},
    decide::Suspects,
    plan::{self, Prefer, SetShape, States, Target},
    set::{
        AnySet, Counting, Decode, Increments, Moves, Multilayer, Overflow, Spread, Variable,
        backyard, bh, blocked, bloom, counting, dleft, multilayer, variable,
    },
    state::{Direct, Fingerprint, Stateful, direct, fingerprint, stateful},
    zone::{Code, Filter},
};

const SEED: Seed = Seed(0);

/// A table may be too large for this machine, but no field may be out of range.
fn built<T>(made: Result<T, Infeasible>) -> bool {
    matches!(made, Ok(_) | Err(Infeasible::Memory { .. }))
}

/// Keys and rates, evenly by their logarithms; most of them feasible.
fn targets() -> impl Strategy<Value = Target> {
    (0.0..20.0f64, -41.0..-0.1f64)
        .prop_map(|(keys, rate)| Target::new(keys.exp2() as u64, rate.exp2()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if crate::is_whole() { 1000 } else { crate::size(60, 12) as u32 }))]

    #[test]
    fn every_planned_set_can_be_built(target in targets(), counter in 0..=4u32, growth in 0..=12u32) {
        let fast = Target { prefer: Prefer::Speed, ..target };
        let grows = Target { growth, ..target };
        let shapes = [
            plan::bloom::shape(target).map(SetShape::Bloom),
            plan::blocked::shape(target).map(SetShape::Blocked),
            plan::counting::shape(target).map(SetShape::Counting),
            plan::counting::shape(fast).map(SetShape::Counting),
            plan::variable::shape(target).map(SetShape::Variable),
            plan::variable::shape(fast).map(SetShape::Variable),
            plan::bh::shape(target).map(SetShape::Bh),
            plan::multilayer::shape(target).map(SetShape::Multilayer),
            plan::dleft::shape(grows, counter).map(SetShape::DLeft),
            plan::dleft::shape(Target { growth, ..fast }, counter).map(SetShape::DLeft),
            plan::backyard::shape(target).map(SetShape::Backyard),
            plan::elastic::shape(Target { growth: growth.min(3), ..target }).map(SetShape::Elastic),
            plan::set(target).map(|row| row.shape),
            plan::set(grows).map(|row| row.shape),
        ];
        for shape in shapes.into_iter().flatten() {
            prop_assert!(built(AnySet::new(shape, SEED)), "{target:?}: {shape:?}");
        }
    }

    #[test]
    fn an_error_of_a_plan_names_a_setting_of_the_caller_and_a_value_that_works(
        flows in 0.0..49.0f64,
        rate in -44.0..-0.1f64,
        states in 1..=40u32,
        growth in 0..40u32,
    ) {
        let (flows, error) = (flows.exp2() as u64, rate.exp2());
        let wanted = States { flows, states, error };
        for prefer in [Prefer::Memory, Prefer::Speed] {
            let fast = plan::fingerprint::shape(wanted, prefer).err();
            let direct = plan::direct::shape(wanted).err();
            for why in fast.into_iter().chain(direct) {
                match why {
                    Infeasible::Rate { name, got, least, .. } => {
                        prop_assert!(name == "error" && got == error && got < least, "{wanted:?}: {why}");
                    }
                    Infeasible::OutOfRange { name, got, least, most } => {
                        prop_assert!(["flows", "states"].contains(&name), "{wanted:?}: {why}");
                        prop_assert!(least <= most && !(least..=most).contains(&got), "{wanted:?}: {why}");
                    }
                    why => prop_assert!(matches!(why, Infeasible::Memory { .. }), "{wanted:?}: {why}"),
                }
            }
            let target = Target { growth, prefer, ..Target::new(flows, error) };
            match plan::dleft::shape(target, 2) {
                Ok(_) | Err(Infeasible::Memory { .. }) => {}
                Err(Infeasible::Rate { name, got, least, .. }) => {
                    prop_assert!(name == "false_positives" && got < least, "{target:?}");
                }
                Err(Infeasible::OutOfRange { name: "growth", got, most, .. }) => {
                    prop_assert!(got == u64::from(growth) && got > most);
                }
                Err(Infeasible::OutOfRange { name, got, most, .. }) => {
                    prop_assert!(name == "keys" && got > most, "{target:?}");
                }
                Err(why) => prop_assert!(false, "{target:?}: {why}"),
            }
        }
    }

    #[test]
    fn every_planned_state_map_can_be_built(target in targets(), states in 1..=300u32) {
        let Target { keys: flows, false_positives: error, .. } = target;
        let target = States { flows, states, error };
        if let Ok(shape) = plan::direct::shape(target) {
            prop_assert!(built(Direct::new(shape, SEED)), "{target:?}: {shape:?}");
        }
        if let Ok(shape) = plan::stateful::shape(target) {
            prop_assert!(built(Stateful::new(shape, SEED)), "{target:?}: {shape:?}");
        }
        for prefer in [Prefer::Speed, Prefer::Memory] {
            if let Ok(shape) = plan::fingerprint::shape(target, prefer) {
                prop_assert!(built(Fingerprint::new(shape, SEED)), "{target:?}: {shape:?}");
            }
        }
    }

    #[test]
    fn every_planned_count_can_be_built(
        epsilon in -30.0..0.0f64,
        delta in -9.0..0.0f64,
        bytes in 0.0..26.0f64,
        width in select(vec![8u32, 9, 12, 16, 24, 32, 63, 64]),
        line in any::<bool>(),
    ) {
        let (epsilon, delta, bytes) = (epsilon.exp2(), delta.exp(), bytes.exp2() as u64);
        let layout = if line { Layout::Line } else { Layout::Rows };
        let shapes =
            [plan::count::shape(epsilon, delta), plan::count::shape_in(bytes, delta, width, layout)];
        for shape in shapes.into_iter().flatten() {
            prop_assert!(built(Min::new(shape, SEED)), "{shape:?}");
        }
        if let Ok(shape) = plan::distinct::shape(epsilon) {
            prop_assert!(built(Distinct::new(shape, SEED)), "{shape:?}");
        }
        let target = plan::fan_out::Target { panes: width.min(16), ..plan::fan_out::Target::new(bytes >> 10, epsilon) };
        if let Ok(shape) = plan::fan_out::shape(target) {
            prop_assert!(built(FanOut::<u32>::new(shape, SEED)), "{shape:?}");
        }
        if let Ok(shape) = plan::top::shape(bytes, 4, 1) {
            prop_assert!(built(Top::<u32, 1>::new(shape, SEED)), "{shape:?}");
        }
        if let Ok(shape) = plan::top::shape(bytes, 16, 2) {
            prop_assert!(built(Top::<[u8; 16], 2>::new(shape, SEED)), "{shape:?}");
        }
        if let Ok(shape) = plan::prefixes::shape(bytes, 3) {
            prop_assert!(built(Prefixes::<3>::new(shape, SEED)), "{shape:?}");
        }
        if let Ok(shape) = plan::prefixes::shape_for(epsilon) {
            prop_assert!(built(Prefixes::<1>::new(shape, SEED)), "{shape:?}");
        }
    }

    #[test]
    fn every_planned_test_can_be_built(
        usual in -21.0..1.0f64,
        apart in 0.0..70.0f64,
        subjects in 0.0..18.0f64,
    ) {
        let (usual, apart) = (usual.exp2(), apart.exp2() as u64);
        if let Ok(test) = plan::decide::shape(usual, apart) {
            let subjects = subjects.exp2() as u64;
            let shape = plan::decide::suspects(subjects, test).unwrap();
            prop_assert!(built(Suspects::<u32>::new(shape, SEED)), "{shape:?}");
            prop_assert!(plan::decide::delay(test, 1.0).is_finite(), "{shape:?}");
            // Smaller rates are rounded to few parts per million.
            let slow = plan::decide::delay(test, (usual * 1.6).min(1.0));
            prop_assert!(slow.is_finite() || usual < 1e-4, "{shape:?}");
            let shape = plan::periods::shape(subjects).unwrap();
            prop_assert!(built(Periods::<u32>::new(shape, SEED)), "{shape:?}");
        }
    }

    #[test]
    fn every_planned_zone_can_be_built(universe in 1.0..20.0f64, members in 0.0..6.0f64) {
        let (universe, members) = (universe.exp2() as u64, members.exp2() as u64);
        for shape in plan::zone::shapes(plan::zone::Target { universe, members }).into_iter().flatten() {
            let code = shape.code();
            let code = code.unwrap();
            prop_assert!(code.zone() >= members, "{members} of {universe}: {shape:?}");
            prop_assert!(built(Filter::new(code)), "{members} of {universe}: {shape:?}");
        }
    }
}

/// Numbers at the ends of their ranges, and some between.
fn numbers() -> impl Strategy<Value = u64> {
    let ends = vec![0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 512, 1000, 1 << 16, 1 << 32];
    let large = vec![1 << 48, 1 << 58, 1 << 63, u64::MAX - 1, u64::MAX];
    prop_oneof![4 => select(ends), 2 => select(large), 1 => any::<u64>()]
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![
        6 => 0..=40u32,
        1 => select(vec![63, 64, 65, 1 << 16, u32::MAX / 2, u32::MAX - 1, u32::MAX]),
    ]
}

fn floats() -> impl Strategy<Value = f64> {
    let ends = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        0.01,
        1e-12,
        1e-13,
        f64::MIN_POSITIVE,
        5e-324,
        1.0 - f64::EPSILON,
        1.0 + f64::EPSILON,
        1e9,
        f64::MAX,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    prop_oneof![4 => select(ends), 1 => any::<f64>()]
}

fn increments() -> impl Strategy<Value = Increments> {
    vec(1..=255u8, 1..=5).prop_filter_map("distinct", |values| Increments::set(&values).ok())
}

fn spreads() -> impl Strategy<Value = Spread> {
    prop_oneof![Just(Spread::Anywhere), small().prop_map(Spread::Lines)]
}

fn overflows() -> impl Strategy<Value = Overflow> {
    select(vec![Overflow::Refuse, Overflow::Pin])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if crate::is_whole() { 4000 } else { crate::size(400, 60) as u32 }))]

    #[test]
    fn no_target_makes_a_plan_panic(
        (keys, rate, other, n) in (numbers(), floats(), floats(), small()),
        (deletes, fast, growth) in (any::<bool>(), any::<bool>(), small()),
    ) {
        let prefer = if fast { Prefer::Speed } else { Prefer::Memory };
        let target = Target { deletes, prefer, ..Target::new(keys, rate) };
        let _ = (plan::bloom::shape(target), plan::blocked::shape(target));
        let _ = (plan::counting::shape(Target { prefer: Prefer::Memory, ..target }), plan::backyard::shape(target));
        let _ = (plan::dleft::shape(target, n), plan::dleft::shape(Target { growth, ..target }, 2));
        let _ = plan::set(Target { growth: growth.max(1), ..target });
        let states = States { flows: keys, states: n, error: rate };
        let _ = (plan::direct::shape(states), plan::stateful::shape(states));
        let _ = plan::fingerprint::shape(states, Prefer::Memory);
        let _ = plan::count::shape(rate, other);
        let _ = plan::count::shape_in(keys, rate, n, Layout::Rows);
        let _ = plan::count::shape_in(keys, rate, n, Layout::Line);
        let _ = plan::top::shape(keys, n as usize, 1);
        let _ = plan::distinct::shape(rate);
        let _ = plan::fan_out::shape(plan::fan_out::Target { keys, error: rate, panes: n, pane: keys });
        let shape = fan_out::Shape { buckets: keys, registers: n, panes: n, pane: keys };
        let lost = plan::fan_out::lost(shape, keys / 3);
        prop_assert!((0.0..=1.0).contains(&lost), "{shape:?}: {lost}");
        let _ = (plan::fan_out::error(shape), plan::distinct::error(distinct::Shape { registers: n }));
        let _ = plan::top::shape(keys, usize::MAX, n as usize);
        let _ = plan::top::shape(keys, 4, usize::MAX - n as usize);
        let _ = (plan::prefixes::shape(keys, n as usize), plan::prefixes::shape_for(rate));
        let _ = plan::zone::first_primes(plan::zone::Target { universe: keys, members: n.into() });
    }

    #[test]
    fn no_shape_makes_a_formula_of_cells_panic(
        (cells, keys, level, hashes) in (numbers(), numbers(), numbers(), small()),
        (width, other, increments) in (small(), small(), increments()),
        (spread, overflow, flag) in (spreads(), overflows(), any::<bool>()),
    ) {
        let shape = counting::Shape { counters: cells, hashes, width, overflow, spread };
        let rate = plan::counting::rate(shape, keys);
        prop_assert!((0.0..=1.0).contains(&rate), "{shape:?} {keys}: {rate}");
        let _ = plan::counting::overflow(shape, keys);
        let shape = variable::Shape { counters: cells, hashes, width, increments, overflow, spread };
        if let Ok(rate) = plan::variable::rate(shape, keys) {
            prop_assert!((0.0..=1.0).contains(&rate), "{shape:?} {keys}: {rate}");
        }
        let _ = plan::variable::overflow(shape, keys);
        let (keys_bits, sum_bits, centred) = (width, other, flag);
        let decode = if flag { Decode::Basic } else { Decode::Improved(other) };
        let shape = bh::Shape { cells, hashes, keys_bits, sum_bits, increments, decode, centred, overflow, spread };
        if let Ok(rate) = plan::bh::rate(shape, keys) {
            prop_assert!((0.0..=1.0).contains(&rate), "{shape:?} {keys}: {rate}");
        }
        let _ = (plan::bh::overflow(shape, keys), shape.table_bits());
        let (first, rest, buckets) = (width, [other; 7], [level; 7]);
        let shape = multilayer::Shape { counters: cells, hashes, first, rest, buckets, increments, overflow, spread };
        let _ = (plan::multilayer::rate(shape, keys), Multilayer::planned_bytes(shape));
        let rate = plan::bloom::rate(bloom::Shape { bits: cells, hashes }, keys);
        prop_assert!((0.0..=1.0).contains(&rate), "{cells} {hashes} {keys}: {rate}");
        let _ = plan::blocked::rate(blocked::Shape { lines: cells, hashes }, keys);
    }

    #[test]
    fn no_shape_makes_a_formula_of_buckets_panic(
        (buckets, keys, other) in (numbers(), numbers(), numbers()),
        (subtables, cells, width, remainder) in (small(), small(), small(), small()),
        (counter, growths, flag) in (small(), small(), any::<bool>()),
    ) {
        let (moves, grows) = (Moves::Search(counter), flag);
        let shape = dleft::Shape { subtables, buckets, cells, width, remainder, counter, moves, growths, grows };
        let _ = (plan::dleft::rate(shape, keys), plan::dleft::overflow(shape, keys));
        let shape = backyard::Shape { lines: buckets, sharing: width };
        let _ = plan::backyard::rate(shape, keys);
        let shape = fingerprint::Shape {
            subtables, buckets, cells, width, remainder, moves, growths, grows,
            states: counter,
            shared: 3,
            placing: fingerprint::Placing::Permuted,
            reinsert: false,
            stash: growths,
            listed: counter,
        };
        let _ = plan::fingerprint::listed(shape, keys);
        let _ = (plan::fingerprint::rates(shape, keys), plan::fingerprint::overflow(shape, keys));
        let shape = stateful::Shape { cells: buckets, hashes: cells, states: counter, keeping: stateful::Keeping::Timed };
        let _ = plan::stateful::rates(shape, keys);
        let shape = direct::Shape { cells: buckets, hashes: cells, states: counter, counter, timed: flag };
        let _ = plan::direct::rates(shape, keys);
        let (update, layout) = (sidon::count::Update::Plain, if flag { Layout::Rows } else { Layout::Line });
        let shape = min::Shape { rows: cells, columns: buckets, width, update, layout };
        let _ = plan::count::excess(shape, keys, other);
    }
}

#[test]
fn buckets_of_any_number_and_load_have_a_steady_state() {
    for subtables in [0, 1, 2, u32::MAX] {
        for load in [0.0, -1.0, 5e-324, 3.0, 1e300, f64::INFINITY, f64::NAN] {
            // The largest take a while: once is enough.
            if subtables < 2 || load < 1e9 {
                for keys_leave in [true, false] {
                    let loads = plan::dleft::bucket_loads(subtables, load, keys_leave);
                    assert_eq!(loads.len(), subtables.clamp(1, 16) as usize);
                    let whole = loads.iter().all(|shares| shares[0] == 1.0);
                    assert!(whole || load.is_nan() || load > 1e9, "{subtables} {load}");
                }
            }
        }
    }
}

#[test]
fn plans_that_had_too_many_hashes() {
    for (keys, false_positives) in [(1038, 2.0417e-11), (100, 1e-12), (30_000, 1.1e-12)] {
        let target = Target::new(keys, false_positives);
        let fast = Target { prefer: Prefer::Speed, ..target };
        for shape in [plan::counting::shape(fast), plan::counting::shape(target)] {
            let shape = shape.unwrap();
            assert!(shape.hashes <= 32 && built(Counting::new(shape, SEED)), "{shape:?}");
        }
        let shape = plan::variable::shape(fast).unwrap();
        assert!(shape.hashes <= 32 && built(Variable::new(shape, SEED)), "{shape:?}");
    }
}
