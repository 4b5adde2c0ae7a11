//! Every planned shape can be built, and no argument makes a formula panic.

use proptest::{collection::vec, prelude::*, sample::select};
use sidon::{
    Infeasible, Seed,
    count::{Layout, Min, Top, min, top},
    member::{
        Backyard, Bh, Blocked, Bloom, Counting, DLeft, Decode, Increments, Moves, Multilayer,
        Overflow, Spread, Variable, backyard, bh, blocked, bloom, counting, dleft, multilayer,
        variable,
    },
    plan::{
        self, CountTarget, Few, Fields, Fluid, Left, Meeting, Points, StateShape, States, Target,
    },
    state::{Direct, Fingerprint, Stateful, direct, fingerprint, stateful},
    zone::{Any, Code, Filter},
};

const SEED: Seed = Seed(0);

/// A table may be too large for this machine, but no field may be out of range.
fn built<T>(made: Result<T, Infeasible>) -> bool {
    matches!(made, Ok(_) | Err(Infeasible::Memory { .. }))
}

fn member_is_built(shape: plan::Shape) -> bool {
    use plan::Shape as S;
    match shape {
        S::Bloom(shape) => built(Bloom::new(shape, SEED)),
        S::Blocked(shape) => built(Blocked::new(shape, SEED)),
        S::Counting(shape) => built(Counting::new(shape, SEED)),
        S::Variable(shape) => built(Variable::new(shape, SEED)),
        S::Bh(shape) => built(Bh::new(shape, SEED)),
        S::Multilayer(shape) => built(Multilayer::new(shape, SEED)),
        S::DLeft(shape) => built(DLeft::new(shape, SEED)),
        S::Backyard(shape) => built(Backyard::new(shape, SEED)),
        S::HashSet { .. } => true,
        _ => false,
    }
}

fn state_is_built(shape: StateShape) -> bool {
    match shape {
        StateShape::Direct(shape) => built(Direct::new(shape, SEED)),
        StateShape::Stateful(shape) => built(Stateful::new(shape, SEED)),
        StateShape::Fingerprint(shape) => built(Fingerprint::new(shape, SEED)),
        StateShape::HashMap { .. } => true,
        _ => false,
    }
}

/// Keys and rates, evenly by their logarithms; most of them feasible.
fn targets() -> impl Strategy<Value = Target> {
    (0.0..20.0f64, -41.0..-0.1f64)
        .prop_map(|(keys, rate)| Target { keys: keys.exp2() as u64, false_positives: rate.exp2() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if crate::is_whole() { 1000 } else { crate::size(60, 12) as u32 }))]

    #[test]
    fn every_planned_set_can_be_built(target in targets(), counter in 0..=4u32) {
        use plan::Shape as S;
        let shapes = [
            plan::bloom(target).map(S::Bloom),
            plan::blocked(target).map(S::Blocked),
            plan::counting(target).map(S::Counting),
            plan::counting_in_lines(target).map(S::Counting),
            plan::variable(target).map(S::Variable),
            plan::variable_in_lines(target).map(S::Variable),
            plan::bh(target).map(S::Bh),
            plan::bh_of(target, Increments::of([1, 2, 5, 14]), Decode::Basic).map(S::Bh),
            plan::multilayer(target).map(S::Multilayer),
            plan::dleft_fast(target).map(S::DLeft),
            plan::dleft_small(target).map(S::DLeft),
            plan::dleft_smallest(target).map(S::DLeft),
            plan::dleft(Left { counter, ..target.into() }).map(S::DLeft),
            plan::backyard(target).map(S::Backyard),
        ];
        for shape in shapes.into_iter().flatten() {
            prop_assert!(member_is_built(shape), "{target:?}: {shape:?}");
        }
    }

    #[test]
    fn every_planned_state_map_can_be_built(target in targets(), states in 1..=300u32) {
        let Target { keys: flows, false_positives: error } = target;
        let target = States { flows, states, error };
        let shapes = [
            plan::direct(target).map(StateShape::Direct),
            plan::stateful(target).map(StateShape::Stateful),
            plan::fingerprint_fast(target).map(StateShape::Fingerprint),
            plan::fingerprint_small(target).map(StateShape::Fingerprint),
        ];
        for shape in shapes.into_iter().flatten() {
            prop_assert!(state_is_built(shape), "{target:?}: {shape:?}");
        }
        for row in plan::states(target).into_iter().flatten() {
            prop_assert!(state_is_built(row.shape), "{target:?}: {row:?}");
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
        let target = CountTarget { epsilon, delta };
        let shapes = [plan::count(target), plan::count_in(bytes, delta, width, layout)];
        for shape in shapes.into_iter().flatten() {
            prop_assert!(built(Min::new(shape, SEED)), "{shape:?}");
        }
        if let Ok(shape) = plan::top(bytes, 4, 1) {
            prop_assert!(built(Top::<u32, 1>::new(shape, SEED)), "{shape:?}");
        }
        if let Ok(shape) = plan::top(bytes, 16, 2) {
            prop_assert!(built(Top::<[u8; 16], 2>::new(shape, SEED)), "{shape:?}");
        }
    }

    #[test]
    fn every_planned_zone_can_be_built(universe in 1.0..20.0f64, members in 0.0..6.0f64, digits in 0..=17u32) {
        let few = Few { universe: universe.exp2() as u64, members: members.exp2() as u64 };
        let mut shapes = Vec::new();
        for row in plan::zones(few).into_iter().flatten() {
            shapes.extend(row.held.code());
        }
        shapes.extend(plan::least_polynomials(few));
        shapes.extend(plan::coprime(few).map(sidon::zone::Shape::Egh));
        shapes.extend(plan::egh_primes(few).ok().map(sidon::zone::Shape::Egh));
        shapes.extend(plan::egh_fewest_primes(few).ok().map(sidon::zone::Shape::Egh));
        for fields in [Fields::Primes, Fields::PrimePowers] {
            for points in [Points::Affine, Points::Needed, Points::All] {
                let shape = plan::pol(few, digits, fields, points);
                shapes.extend(shape.map(sidon::zone::Shape::Pol));
            }
        }
        for shape in shapes {
            let code = Any::of(&shape).expect("every family is known");
            prop_assert!(code.is_ok_and(|code| built(Filter::new(code))), "{few:?}: {shape:?}");
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
    fn no_target_makes_a_plan_panic(keys in numbers(), rate in floats(), other in floats(), n in small()) {
        let target = Target { keys, false_positives: rate };
        let _ = (plan::bloom(target), plan::blocked(target), plan::counting(target));
        let _ = (plan::backyard(target), plan::dleft_fast(target), plan::dleft_smallest(target));
        let _ = plan::dleft(Left { counter: n, refusals: other, moves: Moves::Search(n), ..target.into() });
        let _ = plan::variable_of(target, Increments::of([4, 5, 6, 7]), other);
        let _ = plan::multilayer_of(target, Increments::of([4, 5, 6, 7]), n);
        let states = States { flows: keys, states: n, error: rate };
        let _ = (plan::direct(states), plan::stateful(states), plan::fingerprint_small(states));
        let _ = plan::count(CountTarget { epsilon: rate, delta: other });
        let _ = plan::count_in(keys, rate, n, Layout::Rows);
        let _ = plan::count_in(keys, rate, n, Layout::Line);
        let _ = plan::top(keys, n as usize, 1);
        let _ = plan::top(keys, usize::MAX, n as usize);
        let _ = plan::top(keys, 4, usize::MAX - n as usize);
    }

    #[test]
    fn no_shape_makes_a_formula_of_cells_panic(
        (cells, keys, level, hashes) in (numbers(), numbers(), numbers(), small()),
        (width, other, increments) in (small(), small(), increments()),
        (spread, overflow, flag) in (spreads(), overflows(), any::<bool>()),
    ) {
        let shape = counting::Shape { counters: cells, hashes, width, overflow, spread };
        let rate = plan::counting_rate(shape, keys);
        prop_assert!((0.0..=1.0).contains(&rate), "{shape:?} {keys}: {rate}");
        let _ = plan::counting_at_least(shape, keys, level);
        let _ = (plan::counting_overflow(shape, keys), plan::counting_overflow_bound(shape, keys));
        let _ = plan::counting_raises(shape, keys, level, level);
        let shape = variable::Shape { counters: cells, hashes, width, increments, overflow, spread };
        if let Ok(rate) = plan::variable_rate(shape, keys) {
            prop_assert!((0.0..=1.0).contains(&rate), "{shape:?} {keys}: {rate}");
        }
        let _ = (plan::variable_overflow(shape, keys), plan::variable_overflow_bound(shape, keys));
        let _ = plan::variable_at_least(shape, keys, level);
        let _ = plan::variable_best_hashes(increments, width, cells, keys);
        let (keys_bits, sum_bits, centred) = (width, other, flag);
        let decode = if flag { Decode::Basic } else { Decode::Improved(other) };
        let shape = bh::Shape { cells, hashes, keys_bits, sum_bits, increments, decode, centred, overflow, spread };
        if let Ok(rate) = plan::bh_rate(shape, keys) {
            prop_assert!((0.0..=1.0).contains(&rate), "{shape:?} {keys}: {rate}");
        }
        let _ = (plan::bh_overflow(shape, keys), plan::bh_best_hashes(shape, keys), shape.table_bits());
        let (first, rest, buckets) = (width, other, level);
        let shape = multilayer::Shape { counters: cells, hashes, first, rest, buckets, increments, overflow, spread };
        let _ = (plan::multilayer_rate(shape, keys), plan::multilayer_spilled(shape, keys), shape.bytes());
        let rate = plan::bloom_rate(bloom::Shape { bits: cells, hashes }, keys);
        prop_assert!((0.0..=1.0).contains(&rate), "{cells} {hashes} {keys}: {rate}");
        let _ = plan::blocked_rate(blocked::Shape { lines: cells, hashes }, keys);
        let _ = plan::bloom_best_hashes(cells, keys);
        let _ = plan::bh_basic_rate(width, other, cells, hashes, keys);
        let _ = plan::variable_range_rate(width, cells, hashes, keys);
        let _ = (plan::bh_floor(width, other), plan::bh_floor(hashes, u32::MAX));
        let _ = plan::bh_detection(increments, width.min(24));
        let _ = plan::bh_detection(Increments::of([1]), other);
    }

    #[test]
    fn no_shape_makes_a_formula_of_buckets_panic(
        (buckets, keys, copies, other) in (numbers(), numbers(), numbers(), numbers()),
        (subtables, cells, width, remainder) in (small(), small(), small(), small()),
        (counter, growths, flag) in (small(), small(), any::<bool>()),
    ) {
        let (moves, grows) = (Moves::Search(counter), flag);
        let shape = dleft::Shape { subtables, buckets, cells, width, remainder, counter, moves, growths, grows };
        let _ = (plan::dleft_rate(shape, keys), plan::dleft_overflow(shape, keys));
        let _ = plan::dleft_copies(shape, keys, copies);
        let _ = plan::dleft_counter_overflow(shape, keys, other);
        let shape = backyard::Shape { lines: buckets, sharing: width };
        let _ = (plan::backyard_rate(shape, keys), plan::backyard_spilled(shape, keys));
        let shape = fingerprint::Shape {
            subtables, buckets, cells, width, remainder, moves, growths, grows,
            states: counter,
            shared: 3,
            placing: fingerprint::Placing::Permuted,
            reinsert: false,
            stash: growths,
        };
        let _ = (plan::fingerprint_error(shape, keys), plan::fingerprint_dont_know(shape, keys));
        let _ = plan::fingerprint_overflow(shape, keys);
        let shape = stateful::Shape { cells: buckets, hashes: cells, states: counter, keeping: stateful::Keeping::Timed };
        let _ = plan::stateful_rates(shape, keys);
        let shape = direct::Shape { cells: buckets, hashes: cells, states: counter, counter, timed: flag };
        let _ = plan::direct_pair_rate(shape, keys);
        let flows = [keys, copies, other];
        let meeting = Meeting { cells: buckets, hashes: cells, flows: &flows };
        for state in [0, 2, 3, usize::MAX] {
            let _ = (meeting.member_dont_know(state), meeting.member_dont_know_limit(state));
            let _ = meeting.stranger_state(state);
        }
        let _ = (meeting.timed_member_dont_know(), meeting.stranger_dont_know());
        let (update, layout) = (sidon::count::Update::Plain, if flag { Layout::Rows } else { Layout::Line });
        let shape = min::Shape { rows: cells, columns: buckets, width, update, layout };
        let _ = (plan::count_epsilon(shape), plan::count_excess(shape, keys, other));
        let _ = plan::top_entries(top::Shape { buckets, rows: cells, columns: other });
    }

    #[test]
    fn no_argument_makes_a_plain_formula_panic(
        (a, b, c) in (floats(), floats(), floats()),
        (n, m, k, d) in (numbers(), numbers(), small(), small()),
    ) {
        let _ = (plan::poisson(a, n), plan::poisson_at_least(a, n), plan::ln_factorial(n));
        let _ = (plan::bloom_bits_per_key(a), plan::bloom_rate_limit(a, k), plan::two_hashes(a));
        let _ = (plan::direct_dont_know(a, k), plan::direct_error(b, d));
        let few = Few { universe: n, members: m };
        let _ = (plan::egh_primes(few), plan::egh_fewest_primes(few));
        let _ = (plan::pol(few, k, Fields::Primes, Points::All), plan::least_polynomials(few));
        let _ = plan::pol_rate(k, d, k, n);
        let _ = plan::ols_rate(k, d.min(1 << 16), n);
        let _ = plan::independent_rate(k, d, n);
        let _ = plan::groups_rate([n, m, k.into()].into_iter(), n);
        let _ = plan::runs(n.max(u64::MAX - 50), u64::MAX, |n| n % 3 > 0);
        let _ = plan::crossovers(m, n.min(300));
        let _ = plan::crossovers(m, n.max(1 << 25));
        let _ = (c, plan::primes_of(n.min(1 << 32)));
    }
}

#[test]
fn buckets_of_any_number_and_load_have_a_steady_state() {
    for subtables in [0, 1, 2, u32::MAX] {
        for height in [0, 1, u32::MAX] {
            for load in [0.0, -1.0, 5e-324, 3.0, 1e300, f64::INFINITY, f64::NAN] {
                // The largest take a while: once is enough.
                if height < 2 || (subtables < 2 && load < 1e9) {
                    let _ = Fluid::steady(subtables, load, height).load();
                    let _ = Fluid::insert_only(subtables, load, height).at_least(u32::MAX);
                }
            }
        }
    }
}

#[test]
fn plans_that_had_too_many_hashes() {
    for (keys, false_positives) in [(1038, 2.0417e-11), (100, 1e-12), (30_000, 1.1e-12)] {
        let target = Target { keys, false_positives };
        for shape in [plan::counting_in_lines(target), plan::counting(target)] {
            let shape = shape.unwrap();
            assert!(shape.hashes <= 32 && built(Counting::new(shape, SEED)), "{shape:?}");
        }
        let shape = plan::variable_in_lines(target).unwrap();
        assert!(shape.hashes <= 32 && built(Variable::new(shape, SEED)), "{shape:?}");
    }
}
