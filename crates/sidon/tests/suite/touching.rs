//! The two rules of touching: a lookup touches the cells of a stored flow, or all cells that it reads.

use sidon::{
    Infeasible, Lookup, Seed,
    internals::Sweep,
    state::{
        Cells, Clock, Direct, Fingerprint, Map, Next, State, Stateful, direct, fingerprint,
        stateful::{self, Keeping},
    },
};
use sidon_kit::{Keys, Rng, assert_rate};

const SEED: Seed = Seed(35);
const CELLS: u64 = 32_000;
const LIVE: u64 = 2_000;
const ENDING: usize = 400;

fn direct(states: u32) -> Direct {
    let shape = direct::Shape { cells: CELLS, hashes: 8, states, counter: 1, timed: true };
    Direct::new(shape, SEED).unwrap()
}

fn stateful() -> Stateful {
    let shape = stateful::Shape { cells: CELLS, hashes: 4, states: 4, keeping: Keeping::Timed };
    Stateful::new(shape, SEED).unwrap()
}

/// Ends all flows, then looks up `absent` flows in each period. Returns the share of cells in use after
/// the first visit of the clock hand, and after `periods` more.
fn survivors<B: Cells>(map: &mut Map<B>, absent: usize, periods: u32) -> [f64; 2] {
    let mut keys = Keys::seeded(36);
    for key in keys.by_ref().take(500) {
        map.insert(&key, 0).unwrap();
    }
    map.sweep(map.units());
    let before = map.stats().load;
    for _ in 0..periods {
        for key in keys.by_ref().take(absent) {
            let _ = map.touch(&key);
        }
        map.sweep(map.units());
    }
    [before, map.stats().load]
}

/// Cells of ended flows are geometrically distributed, as section 3.2 says.
#[test]
fn by_the_papers_rule_lookups_of_absent_flows_keep_the_cells_of_ended_ones() {
    fn check<B: Cells>(name: &str, fresh: &dyn Fn() -> Map<B>, reads: f64) {
        const ABSENT: usize = 3_000;
        let [before, after] = survivors(&mut fresh(), ABSENT, 1);
        assert!(before > 0.05 && after < 1e-3, "{name}, our rule: {before} {after}");
        let kept = -(reads * ABSENT as f64 * (-1.0 / CELLS as f64).ln_1p()).exp_m1();
        for periods in [1, 3] {
            let mut map = fresh().with_touch_by_lookup().unwrap();
            let [before, after] = survivors(&mut map, ABSENT, periods);
            let cells = |share: f64| (share * CELLS as f64).round() as usize;
            assert_rate(cells(after), cells(before), kept.powi(periods as i32));
        }
    }
    check("direct", &|| direct(1), 8.0);
    // A lookup reads the cells of a pair for each state.
    check("direct, 2 states", &|| direct(2), 16.0);
    check("stateful", &stateful, 4.0);
}

/// Live flows and flows that end, with lookups of absent flows between them. Returns the share of cells in
/// use, the share of absent flows that are not answered so, and the share of live flows answered
/// "don't know".
fn steady<B: Cells>(map: Map<B>, states: u64, absent: usize) -> [f64; 3] {
    const PERIOD: u64 = 1_000;
    let mut clock = Clock::new(map, PERIOD);
    let mut rng = Rng::seeded(37);
    let mut keys = Keys::seeded(38);
    let live: Vec<u64> = keys.by_ref().take(LIVE as usize).collect();
    for key in &live {
        clock.tick(0).insert(key, rng.below(states) as State).unwrap();
    }
    let mut seen = [0u64; 2];
    const PERIODS: u64 = 30;
    for period in 0..PERIODS {
        for part in 0..10 {
            let map = clock.tick(PERIOD / 10);
            for key in live.iter().skip(part).step_by(5) {
                // No live flow is lost under either rule.
                let answer = map.touch(key);
                assert_ne!(answer, Lookup::Absent);
                seen[1] += u64::from(period >= 20 && answer == Lookup::DontKnow);
            }
            for key in keys.by_ref().take(ENDING / 10) {
                map.insert(&key, rng.below(states) as State).unwrap();
            }
            for key in keys.by_ref().take(absent / 10) {
                let passed = map.touch(&key) != Lookup::Absent;
                seen[0] += u64::from(period >= 20 && passed);
            }
        }
    }
    let counted = (PERIODS - 20) as f64;
    [
        clock.map().stats().load,
        seen[0] as f64 / (counted * absent as f64),
        seen[1] as f64 / (counted * 2.0 * LIVE as f64),
    ]
}

#[test]
fn the_two_rules_of_touching_cost_this() {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut table = Vec::new();
    for absent in [1_000, 8_000] {
        let ours = steady(direct(1), 1, absent);
        let papers = steady(direct(1).with_touch_by_lookup().unwrap(), 1, absent);
        assert!(papers[0] > ours[0] && papers[1] > ours[1], "{ours:?} {papers:?}");
        let texts = [ours, papers].map(|[load, errors, _]| [load, errors].map(percent).join(", "));
        let n = if absent == 1_000 { "1,000" } else { "8,000" };
        table.push(format!("`Direct`, 1 bit, `k` = 8 | {n} | {} | {} |", texts[0], texts[1]));
    }
    for absent in [1_000, 8_000] {
        let ours = steady(stateful(), 4, absent);
        let papers = steady(stateful().with_touch_by_lookup().unwrap(), 4, absent);
        // Live flows that share a cell keep it unknown under either rule.
        let worse = papers[2] >= ours[2];
        assert!(papers[0] > ours[0] && papers[1] > ours[1] && worse, "{ours:?} {papers:?}");
        let text = |[load, errors, unknown]: [f64; 3]| {
            format!("{}, {} ({})", percent(load), percent(errors), percent(unknown))
        };
        let n = if absent == 1_000 { "1,000" } else { "8,000" };
        table.push(format!("`Stateful`, `k` = 4 | {n} | {} | {} |", text(ours), text(papers)));
    }
    let page = include_str!("../../src/state/clock.rs");
    let lacks = table.iter().any(|row| !page.contains(row));
    assert!(!lacks, "clock.rs lacks a row of\n{}", table.join("\n"));
}

#[test]
fn the_setting_is_saved_and_a_map_without_flags_refuses_it() {
    fn check<B: Cells>(map: Map<B>) {
        let plain = map.to_bytes();
        let set = map.with_touch_by_lookup().unwrap();
        let bytes = set.to_bytes();
        assert_ne!(bytes, plain, "the setting is not in the saved bytes");
        let again = Map::<B>::from_bytes(&bytes, SEED).unwrap();
        assert_eq!(again.to_bytes(), bytes);
        for mut map in [set.try_clone().unwrap(), again] {
            map.insert("ended", 0).unwrap();
            map.sweep(map.units());
            for key in 0..40_000u64 {
                // A transition that stays is a lookup, too.
                let _ = map.transition(&key, |_| Next::Stay).unwrap();
            }
            map.sweep(map.units());
            assert_ne!(map.lookup("ended"), Lookup::Absent);
            map.clear();
            map.sweep(map.units());
            assert_eq!(map.lookup("ended"), Lookup::Absent);
        }
    }
    check(direct(1));
    check(stateful());
    let shape = direct::Shape { cells: 100, hashes: 3, states: 2, counter: 3, timed: false };
    let refused = Direct::new(shape, SEED).unwrap().with_touch_by_lookup();
    assert!(matches!(refused.err(), Some(Infeasible::Conflict { name: "timed", .. })));
    let shape = stateful::Shape { cells: 100, hashes: 3, states: 2, keeping: Keeping::Counted(3) };
    let refused = Stateful::new(shape, SEED).unwrap().with_touch_by_lookup();
    assert!(matches!(refused.err(), Some(Infeasible::Conflict { name: "keeping", .. })));
    // An absent flow of a fingerprint map has no cell.
    let target = sidon::plan::States { flows: 100, states: 2, error: 1e-6 };
    let shape = sidon::plan::fingerprint::shape(target, sidon::plan::Prefer::Speed).unwrap();
    let map: Fingerprint = Map::new(shape, SEED).unwrap();
    let _: fingerprint::Shape = map.shape();
    let same = map.try_clone().unwrap().with_touch_by_lookup().unwrap();
    assert!(same == map);
}
