//! Every structure has the same inherent methods. Each row of the table calls all of them.

use sidon::{
    Certainty, Infeasible, Refused, Seed,
    count::{
        Distinct, FanOut, Layout, Min, Periods, Prefix, Prefixes, Top, Update, distinct, fan_out,
        min, prefixes, top,
    },
    decide::Suspects,
    plan::{self, Prefer, States, Target},
    set::{
        AnySet, Backyard, Bh, Blocked, Bloom, Counting, DLeft, Decode, Elastic, Increments, Moves,
        Multilayer, Overflow, Spread, Variable, backyard, bh, blocked, bloom, counting, dleft,
        elastic, multilayer, variable,
    },
    state::{Direct, Fingerprint, Stateful, direct, stateful},
    zone::{Adaptive, Filter, Hosts, Ols, Sketch, Subnets, ols, subnets},
};
use std::net::IpAddr;

const SEED: Seed = Seed(7);

/// A structure of this shape, and how something is added to it and then looked up.
macro_rules! has_the_core {
    ($structure:ty, $shape:expr, $add:expr, $ask:expr) => {{
        let (shape, add, ask) = ($shape, $add, $ask);
        let mut one = <$structure>::new(shape, SEED).unwrap();
        assert!((one.shape(), one.seed()) == (shape, SEED) && one.is_empty());
        let bytes: u64 = one.memory_bytes();
        assert_eq!(bytes, <$structure>::planned_bytes(shape));
        let empty = one.try_clone().unwrap();
        is_the_same(&mut one, &empty, add, ask, |one| one.try_clone().unwrap());
        is_saved!($structure, one, SEED);
    }};
}

/// A structure without a seed.
macro_rules! has_the_core_without_a_seed {
    ($structure:ty, $new:expr, $copy:expr, $add:expr, $ask:expr) => {{
        let mut one: $structure = $new;
        assert!(one.is_empty());
        let _: u64 = one.memory_bytes();
        let empty = $copy(&one);
        is_the_same(&mut one, &empty, $add, $ask, $copy);
        is_saved!($structure, one, Seed(0));
    }};
}

macro_rules! is_saved {
    ($structure:ty, $one:expr, $seed:expr) => {
        let certainty: Certainty = $one.certainty();
        let one = &mut $one;
        assert!(certainty.error() < 0.1 && !certainty.to_string().is_empty());
        assert!(!one.is_empty() && !format!("{one:?}").is_empty());
        let read = <$structure>::from_bytes(&one.to_bytes(), $seed).unwrap();
        assert!(read == *one && read.certainty() == certainty);
        one.clear();
        assert!(one.is_empty() && read != *one);
    };
}

/// Adds to a structure, and compares it with its copies.
fn is_the_same<S: PartialEq>(
    one: &mut S,
    empty: &S,
    add: impl Fn(&mut S),
    ask: impl Fn(&S) -> bool,
    copy: impl Fn(&S) -> S,
) {
    assert!(!ask(one) && one == empty);
    add(one);
    assert!(ask(one) && !ask(empty) && one != empty);
    assert!(copy(one) == *one);
}

/// A set: every key is stored once.
macro_rules! set {
    ($structure:ty, $shape:expr) => {
        has_the_core!(
            $structure,
            $shape,
            |one: &mut $structure| one.insert("key").unwrap(),
            |one: &$structure| one.contains("key") && one.len() == 1
        );
        let mut sum = <$structure>::from_keys($shape, SEED, ["a"]).unwrap();
        sum.merge(&<$structure>::from_keys($shape, SEED, ["b"]).unwrap()).unwrap();
        assert!(sum.contains("a") && sum.contains("b") && sum.len() == 2);
    };
}

#[test]
fn sets() {
    let (spread, overflow) = (Spread::Anywhere, Overflow::Refuse);
    let increments = Increments::of([4, 5, 6, 7]);
    set!(Bloom, bloom::Shape { bits: 1_000, hashes: 3 });
    set!(Blocked, blocked::Shape { lines: 10, hashes: 8 });
    set!(Counting, counting::Shape { counters: 1_000, hashes: 3, width: 4, overflow, spread });
    set!(
        Variable,
        variable::Shape { counters: 1_000, hashes: 3, width: 6, increments, overflow, spread }
    );
    let (first, rest, buckets) = (3, [4, 0, 0, 0, 0, 0, 0], [20, 0, 0, 0, 0, 0, 0]);
    set!(
        Multilayer,
        multilayer::Shape {
            counters: 1_000,
            hashes: 3,
            first,
            rest,
            buckets,
            increments,
            overflow,
            spread
        }
    );
    let increments = Increments::set(&[1, 2, 5, 7]).unwrap();
    let (decode, centred) = (Decode::Basic, false);
    set!(
        Bh,
        bh::Shape {
            cells: 1_000,
            hashes: 3,
            keys_bits: 3,
            sum_bits: 5,
            increments,
            decode,
            centred,
            overflow,
            spread
        }
    );
    let (moves, growths, grows) = (Moves::Never, 0, true);
    set!(
        DLeft,
        dleft::Shape {
            subtables: 2,
            buckets: 64,
            cells: 8,
            width: 16,
            remainder: 14,
            counter: 2,
            moves,
            growths,
            grows
        }
    );
    set!(
        Elastic,
        elastic::Shape {
            subtables: 2,
            buckets: 64,
            line: 16,
            least: 6,
            remainder: 13,
            counter: 2,
            moves,
            narrows: true
        }
    );
    set!(Backyard, backyard::Shape { lines: 10, sharing: 2 });
    set!(AnySet, plan::set(Target { deletes: true, ..Target::new(1_000, 0.01) }).unwrap().shape);
}

/// Filters that refuse no key can be extended. Any set can be built from keys, if it refuses none.
#[test]
fn sets_from_many_keys() {
    let keys = 0..500u32;
    let shape = bloom::Shape { bits: 5_000, hashes: 3 };
    let mut bloom = Bloom::new(shape, SEED).unwrap();
    bloom.extend(keys.clone());
    assert!(bloom.len() == 500 && bloom == Bloom::from_keys(shape, SEED, keys.clone()).unwrap());
    let shape = blocked::Shape { lines: 10, hashes: 3 };
    let mut blocked = Blocked::new(shape, SEED).unwrap();
    blocked.extend(keys.clone());
    assert!(blocked.len() == 500 && blocked == Blocked::from_keys(shape, SEED, keys).unwrap());
    let (spread, overflow) = (Spread::Anywhere, Overflow::Refuse);
    let shape = counting::Shape { counters: 1_000, hashes: 3, width: 2, overflow, spread };
    let refused = Infeasible::Key { index: 3, why: Refused::Overflow { ceiling: 3 } };
    assert_eq!(Counting::from_keys(shape, SEED, ["key"; 5]), Err(refused));
    let impossible = counting::Shape { hashes: 0, ..shape };
    let why = Counting::from_keys(impossible, SEED, ["key"]).unwrap_err();
    assert!(matches!(why, Infeasible::OutOfRange { name: "hashes", got: 0, .. }), "{why}");
}

#[test]
fn counts() {
    let (update, layout) = (Update::Plain, Layout::Rows);
    let shape = min::Shape { rows: 3, columns: 100, width: 32, update, layout };
    has_the_core!(Min, shape, |one: &mut Min| one.add("key", 5).unwrap(), |one: &Min| one
        .estimate("key")
        .value
        == 5
        && one.total() == 5);
    has_the_core!(
        Top<u32>,
        top::Shape { buckets: 10, rows: 2, columns: 100 },
        |one: &mut Top<u32>| one.add(&7, [5]),
        |one: &Top<u32>| one.bounds(&7)[0].is_exact() && one.len() == 1 && one.total() == [5]
    );
    has_the_core!(
        Distinct,
        distinct::Shape { registers: 16 },
        |one: &mut Distinct| one.add("key"),
        |one: &Distinct| one.count().is_exact() && one.count().value == 1
    );
    has_the_core!(
        FanOut<u32>,
        fan_out::Shape { buckets: 10, registers: 8, panes: 2, pane: 60 },
        |one: &mut FanOut<u32>| assert_eq!(one.add(&7, "element", 5), 1),
        |one: &FanOut<u32>| one.estimate(&7, 5).contains(1) && one.len() == 1
    );
    let host = IpAddr::from([10, 0, 0, 1]);
    has_the_core!(
        Prefixes<1>,
        prefixes::Shape { buckets: [4, 3, 2, 1, 1] },
        |one: &mut Prefixes<1>| one.add(host, [5]).unwrap(),
        |one: &Prefixes<1>| one.bounds(&Prefix::new(host, 24).unwrap())[0].is_exact()
            && one.len() == [1, 0, 0, 0, 0]
            && one.total() == [5]
    );
    has_the_core!(
        Periods<u32>,
        plan::periods::shape(100).unwrap(),
        |one: &mut Periods<u32>| (0..3).for_each(|i| _ = one.see(&7, i * 2_000_000_000)),
        |one: &Periods<u32>| one.get(&7).is_some_and(|pair| pair.contacts == 3) && one.len() == 1
    );
}

#[test]
fn tests_of_subjects() {
    let test = plan::decide::shape(0.1, 100).unwrap();
    has_the_core!(
        Suspects<u32>,
        plan::decide::suspects(100, test).unwrap(),
        |one: &mut Suspects<u32>| (0..9).for_each(|_| _ = one.see(&7, true)),
        |one: &Suspects<u32>| one.accused().count() == 1 && one.len() == 1
    );
}

#[test]
fn state_maps() {
    let target = States { flows: 1_000, states: 4, error: 0.01 };
    has_the_core!(
        Fingerprint,
        plan::fingerprint::shape(target, Prefer::Speed).unwrap(),
        |one: &mut Fingerprint| one.insert("key", 2).unwrap(),
        |one: &Fingerprint| one.contains("key") && one.len() == 1
    );
    let keeping = stateful::Keeping::Counted(4);
    has_the_core!(
        Stateful,
        stateful::Shape { cells: 1_000, hashes: 4, states: 4, keeping },
        |one: &mut Stateful| one.insert("key", 2).unwrap(),
        |one: &Stateful| one.contains("key")
    );
    has_the_core!(
        Direct,
        direct::Shape { cells: 1_000, hashes: 4, states: 4, counter: 4, timed: false },
        |one: &mut Direct| one.insert("key", 2).unwrap(),
        |one: &Direct| one.contains("key")
    );
}

#[test]
fn zones() {
    let code = || Ols::new(ols::Shape { universe: 256, order: 16, groups: 4 }).unwrap();
    has_the_core_without_a_seed!(
        Filter<Ols>,
        Filter::new(code()).unwrap(),
        |one: &Filter<Ols>| one.try_clone().unwrap(),
        |one: &mut Filter<Ols>| one.insert(&7).unwrap(),
        |one: &Filter<Ols>| one.contains(&7) && one.len() == Some(1)
    );
    has_the_core_without_a_seed!(
        Sketch<Ols>,
        Sketch::new(code(), 32, Update::Plain).unwrap(),
        |one: &Sketch<Ols>| one.try_clone().unwrap(),
        |one: &mut Sketch<Ols>| one.add(&7, 5).unwrap(),
        |one: &Sketch<Ols>| one.estimate(&7).value == 5 && one.len() == Some(1)
    );
    has_the_core_without_a_seed!(
        Adaptive,
        Adaptive::new(256).unwrap(),
        Adaptive::clone,
        |one: &mut Adaptive| one.insert(&7).unwrap(),
        |one: &Adaptive| one.contains(&7) && one.len() == 1
    );
    has_the_core_without_a_seed!(
        Hosts,
        Hosts::new(256).unwrap(),
        Hosts::clone,
        |one: &mut Hosts| one.add(&7, 5).unwrap(),
        |one: &Hosts| one.estimate(&7).value == 5 && one.len() == 1
    );
    for bytes in [1 << 12, 1 << 20] {
        has_the_core!(
            Subnets,
            subnets::Shape::within(bytes, 16).unwrap(),
            |one: &mut Subnets| assert_eq!(one.observe(9, 7), Ok(true)),
            |one: &Subnets| one.contains(9, 7) && one.len() == 1
        );
    }
}
