//! Ageing: a flow lives for a period after its last touch, and is gone after two.

use sidon::{
    Lookup, Refused, Seed,
    internals::Sweep,
    plan::{self, Prefer, States},
    state::{
        Cells, Clock, Direct, Fingerprint, Map, Stateful, direct,
        fingerprint::{self, Moves, Placing},
        stateful::{self, Keeping},
    },
};
use sidon_kit::Rng;

const SEED: Seed = Seed(33);

/// A structure that ages.
trait Ages: Sweep + Sized {
    fn joined(&mut self, other: &Self) -> Result<(), Refused>;
    fn enter(&mut self, key: u64) -> Result<(), Refused>;
    fn touched(&mut self, key: u64) -> bool;
    fn holds(&self, key: u64) -> bool;
    /// A copy, made from the saved bytes.
    fn reloaded(&self) -> Self;
}

macro_rules! ages {
    ($name:ident) => {
        impl Ages for $name {
            fn joined(&mut self, other: &Self) -> Result<(), Refused> {
                self.merge(other)
            }
            fn enter(&mut self, key: u64) -> Result<(), Refused> {
                self.insert(&key, 0)
            }
            fn touched(&mut self, key: u64) -> bool {
                self.touch(&key) != Lookup::Absent
            }
            fn holds(&self, key: u64) -> bool {
                self.lookup(&key) != Lookup::Absent
            }
            fn reloaded(&self) -> Self {
                Self::from_bytes(&self.to_bytes(), SEED).unwrap()
            }
        }
    };
}
ages!(Fingerprint);
ages!(Direct);
ages!(Stateful);

const SHAPE: fingerprint::Shape = fingerprint::Shape {
    subtables: 2,
    buckets: 16,
    cells: 16,
    width: 32,
    remainder: 24,
    states: 2,
    shared: 4,
    placing: Placing::Permuted,
    moves: Moves::Never,
    reinsert: false,
    stash: 0,
    growths: 4,
    grows: false,
    listed: 0,
};

fn fingerprint(shape: fingerprint::Shape) -> Fingerprint {
    Fingerprint::new(shape, SEED).unwrap()
}

/// Some flows have no cell and are in the stash.
fn stashing() -> Fingerprint {
    fingerprint(fingerprint::Shape { cells: 1, stash: 32, ..SHAPE })
}

/// A map whose flows are all in its list by digest.
struct Listing(Fingerprint);

impl Listing {
    fn new() -> Self {
        Listing(fingerprint(fingerprint::Shape { remainder: 2, growths: 0, listed: 64, ..SHAPE }))
    }
}

impl Sweep for Listing {
    fn units(&self) -> u64 {
        self.0.units()
    }

    fn hand(&self) -> u64 {
        self.0.hand()
    }

    fn sweep(&mut self, to: u64) -> u64 {
        self.0.sweep(to)
    }
}

impl Ages for Listing {
    fn joined(&mut self, other: &Self) -> Result<(), Refused> {
        self.0.merge(&other.0)
    }

    /// Another flow has the cell while this one enters the list.
    fn enter(&mut self, key: u64) -> Result<(), Refused> {
        let own = self.0.fingerprint(&key);
        let alike = |other: &u64| *other != key && self.0.fingerprint(other) == own;
        let first = (1 << 40..).find(alike).unwrap();
        self.0.insert(&first, 0)?;
        self.0.insert(&key, 0)?;
        self.0.forget(&first)
    }

    fn touched(&mut self, key: u64) -> bool {
        self.0.touch(&key) != Lookup::Absent
    }

    fn holds(&self, key: u64) -> bool {
        self.0.lookup(&key) != Lookup::Absent
    }

    fn reloaded(&self) -> Self {
        Listing(self.0.reloaded())
    }
}

fn direct(counter: u32) -> Direct {
    let shape = direct::Shape { cells: 9_000, hashes: 5, states: 2, counter, timed: true };
    Direct::new(shape, SEED).unwrap()
}

fn stateful() -> Stateful {
    let shape = stateful::Shape { cells: 9_000, hashes: 4, states: 2, keeping: Keeping::Timed };
    Stateful::new(shape, SEED).unwrap()
}

/// A period that no number of units divides.
const PERIOD: u64 = 251;
/// The flows of each map.
const FLOWS: u64 = 40;
/// The first flow of the other map.
const OTHER: u64 = 1_000;

/// Does `change` at every position of the clock hand. Before, two maps with clock hands at
/// different positions have their flows touched at times spread over a period. Afterwards, every
/// flow of the first map, and with `merges` of the second, must live for a period after its touch.
/// It must be gone after two. A change of the units may add three steps of the clock hand, and a
/// merge or a move counts as a touch.
fn at_every_position<M: Ages>(
    name: &str,
    fresh: &dyn Fn() -> M,
    change: &dyn Fn(&mut M, &M),
    [merges, moves]: [bool; 2],
) {
    let (mut lost, mut late) = (0, 0);
    for position in 0..PERIOD {
        // The second map began this long before the first.
        let offset = position * 7 % PERIOD;
        let (mut clock, mut second) = (Clock::new(fresh(), PERIOD), Clock::new(fresh(), PERIOD));
        second.tick(offset);
        for flow in 0..FLOWS {
            clock.tick(0).enter(flow).unwrap();
            second.tick(0).enter(OTHER + flow).unwrap();
        }
        let changed = PERIOD + position;
        let touch = |flow: u64| changed - flow * PERIOD / FLOWS;
        let mut slack = 0;
        for now in 1..=changed + 3 * PERIOD {
            clock.tick(1);
            second.tick(1);
            // Keeps the flows until the touch that counts.
            for flow in 0..FLOWS {
                if now <= touch(flow) && (now == touch(flow) || now % (PERIOD / 2) == 0) {
                    assert!(clock.tick(0).touched(flow));
                    assert!(second.tick(0).touched(OTHER + flow));
                }
            }
            if now == changed {
                let before = clock.map().units();
                change(clock.tick(0), second.map());
                let after = clock.map().units();
                if before != after {
                    slack = 3 * PERIOD.div_ceil(before.min(after));
                }
            }
            let map = clock.map();
            for flow in 0..FLOWS {
                let end = |merged| if merged || moves { changed } else { touch(flow) };
                for (key, merged) in [(flow, false), (OTHER + flow, true)] {
                    if merged && !merges {
                        continue;
                    }
                    if now >= changed && now == touch(flow) + PERIOD {
                        lost += u64::from(!map.holds(key));
                    }
                    if now == end(merged) + 2 * PERIOD + slack {
                        late += u64::from(map.holds(key));
                    }
                }
            }
        }
    }
    assert_eq!((lost, late), (0, 0), "{name}: flows lost, and flows that stayed too long");
}

const NEITHER: [bool; 2] = [false; 2];
const MERGES: [bool; 2] = [true, false];

/// The changes that every structure allows.
fn keeps_the_law<M: Ages>(name: &str, fresh: &dyn Fn() -> M) {
    at_every_position(&format!("{name}, no change"), fresh, &|_, _| {}, NEITHER);
    let reload = |map: &mut M, _: &M| *map = map.reloaded();
    at_every_position(&format!("{name}, saved and loaded"), fresh, &reload, NEITHER);
    let merge = |map: &mut M, other: &M| map.joined(other).unwrap();
    at_every_position(&format!("{name}, merged"), fresh, &merge, MERGES);
}

#[test]
fn a_flow_lives_for_a_period_and_is_gone_after_two_in_every_structure() {
    keeps_the_law("fingerprint", &|| fingerprint(SHAPE));
    keeps_the_law("direct", &|| direct(1));
    keeps_the_law("direct, counting", &|| direct(4));
    keeps_the_law("stateful", &stateful);
}

#[test]
fn a_listed_flow_lives_for_a_period_and_is_gone_after_two() {
    let mut map = Listing::new();
    (0..FLOWS).for_each(|flow| map.enter(flow).unwrap());
    assert_eq!((map.0.stats().listed, map.0.stats().load), (FLOWS, 0.0));
    at_every_position("listed, no change", &Listing::new, &|_, _| {}, NEITHER);
    let reload = |map: &mut Listing, _: &Listing| *map = map.reloaded();
    at_every_position("listed, saved and loaded", &Listing::new, &reload, NEITHER);
}

#[test]
fn growing_and_shrinking_neither_end_flows_nor_keep_them() {
    let mut full = stashing();
    (0..FLOWS).for_each(|flow| full.insert(&flow, 0).unwrap());
    assert!(full.stats().stashed > 5);
    type Change = fn(&mut Fingerprint);
    let changes: [(&str, Change); 5] = [
        ("grown", |map| map.grow().unwrap()),
        ("grown twice", |map| (0..2).for_each(|_| map.grow().unwrap())),
        ("grown and shrunk", |map| {
            map.grow().unwrap();
            map.shrink().unwrap();
        }),
        ("shrunk", |map| map.shrink().unwrap()),
        ("shrunk and saved", |map| {
            map.shrink().unwrap();
            *map = map.reloaded();
        }),
    ];
    let shapes: [(&str, fingerprint::Shape); 3] = [
        ("2 x 16", SHAPE),
        ("4 x 8", fingerprint::Shape { subtables: 4, buckets: 8, ..SHAPE }),
        ("lines of 24 bits", fingerprint::Shape { cells: 21, width: 24, remainder: 18, ..SHAPE }),
    ];
    for (name, change) in changes {
        let change = |map: &mut Fingerprint, _: &Fingerprint| change(map);
        for (shape_name, shape) in shapes {
            let name = format!("{shape_name}, {name}");
            at_every_position(&name, &|| fingerprint(shape), &change, NEITHER);
        }
        if !name.contains("shrunk") {
            at_every_position(&format!("stash, {name}"), &stashing, &change, NEITHER);
        }
    }
    at_every_position(
        "stash, merged into a table that grows",
        &|| fingerprint(fingerprint::Shape { cells: 2, grows: true, ..SHAPE }),
        &|map, other| map.merge(other).unwrap(),
        [true, true],
    );
}

#[test]
fn a_cell_that_moves_lives_on_wherever_it_lands() {
    let shape = fingerprint::Shape { cells: 2, moves: Moves::Search(64), ..SHAPE };
    let crowd = |map: &mut Fingerprint, _: &Fingerprint| {
        let moved = map.stats().moved;
        for key in 5_000..5_018u64 {
            let _ = map.insert(&key, 1);
        }
        assert!(map.stats().moved > moved);
    };
    at_every_position("moved", &|| fingerprint(shape), &crowd, [false, true]);
}

#[test]
fn forgetting_a_flow_of_a_shared_cell_does_not_end_the_other_one() {
    let mut tried = 0;
    for placing in [Placing::Permuted, Placing::Independent] {
        for seed in 0..60 {
            let shape = fingerprint::Shape {
                subtables: 4,
                buckets: 8,
                cells: 4,
                width: 16,
                remainder: 4,
                placing,
                reinsert: true,
                growths: 0,
                ..SHAPE
            };
            let mut fresh = Fingerprint::new(shape, Seed(seed)).unwrap();
            fresh.insert(&0u64, 0).unwrap();
            let Some(twin) = (1..5_000u64).find(|key| fresh.holds(*key)) else { continue };
            if fresh.insert(&twin, 1).is_err() || fresh.lookup(&0u64) != Lookup::DontKnow {
                continue;
            }
            // Other flows, so that the emptiest bucket is another one.
            for key in 10_000..10_030u64 {
                let _ = fresh.insert(&key, 0);
            }
            for forgotten in (1..PERIOD).step_by(25) {
                let mut clock = Clock::new(fresh.try_clone().unwrap(), PERIOD);
                tried += u64::from(clock.tick(forgotten).forget(&twin).is_ok());
                for now in forgotten..PERIOD {
                    assert!(clock.tick(u64::from(now > forgotten)).holds(0), "{placing:?} {seed}");
                }
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn a_refused_shrinking_leaves_the_flags_and_the_hand() {
    let mut map = fingerprint(fingerprint::Shape { cells: 2, moves: Moves::Search(64), ..SHAPE });
    // 48 of 64 cells are taken at first, and 36 stay: more than half a map has.
    (0..48u64).for_each(|flow| map.insert(&flow, 0).unwrap());
    let mut refused = 0;
    for to in 1..2 * map.units() {
        map.sweep(to % map.units());
        (0..48u64).filter(|flow| flow % 4 != 0).for_each(|flow| {
            let _ = map.touch(&flow);
        });
        let before = map.to_bytes();
        assert!(map.shrink().is_err());
        assert_eq!(map.to_bytes(), before);
        refused += map.hand() % 2;
    }
    assert!(refused > 5);
}

/// Calls at random times, with gaps from far below a step to many periods, compared with the exact
/// times.
fn at_random_times<M: Ages>(map: M, seed: u64) {
    const PERIOD: u64 = 5_000_000_000;
    let mut rng = Rng::seeded(seed);
    let mut clock = Clock::new(map, PERIOD);
    let mut last = [None; 60];
    let mut now = 1 << 40;
    for _ in 0..3_000 {
        let gap = if rng.chance(0.02) { 10 * PERIOD } else { PERIOD >> rng.below(20) };
        now += rng.below(gap);
        let map = clock.at(now);
        for (flow, last) in (0..).zip(&mut last) {
            let Some(touched) = *last else { continue };
            if now <= touched + PERIOD {
                assert!(map.holds(flow), "{flow} is lost after {} ns", now - touched);
            } else if now >= touched + 2 * PERIOD {
                assert!(!map.holds(flow), "{flow} is stored after {} ns", now - touched);
                *last = None;
            }
        }
        for _ in 0..rng.below(4) {
            let flow = rng.below(60);
            if !map.touched(flow) {
                map.enter(flow).unwrap();
            }
            last[flow as usize] = Some(now);
        }
    }
}

#[test]
fn calls_may_come_at_any_time() {
    for seed in 0..4 {
        at_random_times(fingerprint(SHAPE), seed);
        at_random_times(direct(1), seed);
        at_random_times(stateful(), seed);
    }
}

/// Busy flows are touched at every call. Silent ones, from different times of a period, have
/// expired at the first call after two periods, and are stored at every call of one period.
fn with_calls_a_period<M: Ages>(map: M, calls: u64, wide: u64) {
    const PERIOD: u64 = 5_000_000_000;
    let gap = PERIOD * wide / calls;
    let mut clock = Clock::new(map, PERIOD);
    let begin = |flow: u64| flow * (PERIOD / 10).max(gap);
    clock.at(0).enter(OTHER).unwrap();
    let mut entered = [None; 10];
    let (mut now, mut gone) = (0, 0);
    while gone < entered.len() {
        let map = clock.at(now);
        assert!(map.touched(OTHER) == (gap < 2 * PERIOD || now == 0), "{calls} {now}");
        for (flow, entered) in (0..).zip(&mut entered) {
            match *entered {
                None if begin(flow) <= now => {
                    map.enter(flow).unwrap();
                    *entered = Some(now);
                }
                None | Some(u64::MAX) => {}
                Some(time) if now <= time + PERIOD => assert!(map.holds(flow), "{calls} {now}"),
                Some(time) if now >= time + 2 * PERIOD => {
                    assert!(!map.holds(flow), "{calls} {now}");
                    *entered = Some(u64::MAX);
                    gone += 1;
                }
                Some(_) => {}
            }
        }
        now += gap;
    }
}

#[test]
fn a_silent_flow_expires_however_rare_or_frequent_calls_are() {
    // A call in 100 periods, in three, and from one to a million calls a period.
    for (calls, wide) in [(1, 100), (1, 3), (1, 1), (2, 1), (3, 1), (9, 1), (100, 1), (1_000, 1)] {
        with_calls_a_period(fingerprint(SHAPE), calls, wide);
        with_calls_a_period(direct(1), calls, wide);
        with_calls_a_period(stateful(), calls, wide);
        with_calls_a_period(direct(4), calls, wide);
    }
    with_calls_a_period(fingerprint(SHAPE), 1_000_000, 1);
    // A hundred calls in a minute.
    with_calls_a_period(fingerprint(SHAPE), 100, 12);
}

/// A map that counts the units that the clock hand visits.
struct Counted {
    map: Fingerprint,
    visited: u64,
}

impl Sweep for Counted {
    fn units(&self) -> u64 {
        self.map.units()
    }

    fn hand(&self) -> u64 {
        self.map.hand()
    }

    fn sweep(&mut self, to: u64) -> u64 {
        assert!(to > self.hand() && to <= self.units());
        self.visited += to - self.hand();
        self.map.sweep(to)
    }
}

#[test]
fn a_call_visits_the_elapsed_part_of_the_map_and_no_more_than_twice_all_of_it() {
    let mut rng = Rng::seeded(34);
    for period in [1, 7, 100, 1 << 20, u64::MAX] {
        let mut clock = Clock::new(Counted { map: fingerprint(SHAPE), visited: 0 }, period);
        let (mut now, units) = (0u64, clock.map().units());
        for _ in 0..2_000 {
            let before = clock.map().visited;
            let elapsed = rng.next_u64() >> rng.below(64);
            now = now.saturating_add(elapsed);
            let by_time = rng.chance(0.5);
            if by_time {
                clock.at(now)
            } else {
                clock.tick(elapsed)
            };
            let visited = clock.map().visited - before;
            assert!(visited <= 2 * units, "{visited} units in a call");
            let part = u128::from(elapsed) * u128::from(units) / u128::from(period);
            assert!(
                by_time || u128::from(visited) <= part + 1,
                "{visited} for {elapsed} of {period}"
            );
        }
    }
}

/// Keys that are seen in every period stay, and all others expire within two.
fn forgets<B: Cells>(map: Map<B>) {
    let mut clock = Clock::new(map, 1_000);
    for key in 0..2_000u64 {
        clock.tick(0).insert(&key, 0).unwrap();
    }
    let mut left = vec![];
    for _ in 0..4 {
        for busy in 0..500u64 {
            assert_eq!(clock.tick(2).see(&busy), Ok(true));
        }
        left.push((500..2_000u64).filter(|key| clock.map().contains(key)).count());
    }
    let map = clock.tick(0);
    // The first visit clears flags, the second clears cells, except those shared with busy keys.
    assert_eq!(left[0], 1_500);
    assert!(left[1] < 20 && left[3] < 20, "{left:?}");
    assert!((0..500u64).all(|busy| map.contains(&busy)));
    let passing = map.certainty().error();
    assert!(passing > 0.0 && passing < 0.01, "{passing}");
    // An expired key counts as new, and can be inserted and removed again.
    let gone = (500..2_000u64).find(|key| !map.contains(key)).unwrap();
    assert_eq!(map.see(&gone), Ok(false));
    assert_eq!(map.see(&gone), Ok(true));
    map.forget(&gone).unwrap();
}

#[test]
fn a_map_of_one_state_is_a_set_of_the_keys_seen_recently() {
    let target = States { flows: 2_000, states: 1, error: 1e-3 };
    let shape = plan::fingerprint::shape(target, Prefer::Speed).unwrap();
    forgets(Fingerprint::new(shape, SEED).unwrap());
    for counter in [1, 4] {
        let (cells, hashes) = (32_000, 8);
        let shape = direct::Shape { cells, hashes, states: 1, counter, timed: true };
        forgets(Direct::new(shape, SEED).unwrap());
    }
}
