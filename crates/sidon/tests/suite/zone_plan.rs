//! Plans of zones: the printed lengths, the correct ones, and where one code becomes shorter than
//! another.

use sidon::{
    plan::{self, Few, Fields, Held, Points, Zone},
    zone::{Any, Code, Shape},
};
use sidon_kit::rate::assert_close;

fn bits(rows: &[Zone], name: &str) -> Vec<u64> {
    rows.iter().filter(|row| row.held.name() == name).map(|row| row.bits).collect()
}

#[test]
fn the_lengths_of_table_6_and_the_right_ones() {
    for (members, egh, coprime, ols, pol, list) in [
        (3, [100, 9], 70, [64, 4], [49, 7], 26),
        (7, [328, 15], 181, [128, 8], [128, 8], 59),
        (15, [1060, 25], 0, [256, 16], [256, 16], 124),
    ] {
        let rows = plan::zones(Few { universe: 256, members }).unwrap();
        assert!(rows.is_sorted_by_key(|row| row.bits));
        let row = |name: &str| {
            let row = rows
                .iter()
                .find(|row| row.held.name() == name && !matches!(row.held, Held::Cut(_)));
            row.map(|row| [row.bits, row.probes]).unwrap()
        };
        assert_eq!((row("egh"), row("ols"), row("pol")), (egh, ols, pol));
        assert!(coprime == 0 || row("coprime")[0] == coprime);
        assert_eq!((bits(&rows, "list"), bits(&rows, "bitmap")), (vec![list], vec![256]));
        // Every planned code can be built and has the planned shape.
        for row in &rows {
            assert!(row.zone >= members);
            if let Some(shape) = row.held.code() {
                let code = Any::of(&shape).unwrap().unwrap();
                assert_eq!((code.cells(), u64::from(code.groups())), (row.bits, row.probes));
                assert_eq!((code.universe(), code.zone()), (256, row.zone));
            }
        }
    }
    let rows = plan::zones(Few { universe: 256, members: 3 }).unwrap();
    let cut = rows.iter().find(|row| matches!(row.held, Held::Cut(_))).unwrap();
    assert_eq!((cut.bits, cut.zone), (48, 3));
    let over_16 = plan::zones(Few { universe: 256, members: 7 }).unwrap();
    let pol = over_16.iter().find_map(|row| match row.held.code() {
        Some(Shape::Pol(shape)) => Some(shape),
        _ => None,
    });
    assert_eq!(pol.map(|shape| shape.order), Some(16));
}

#[test]
fn coprime_moduli_beat_the_first_primes() {
    for (members, moduli) in [
        (2, &[5, 7, 8, 9, 11][..]),
        (3, &[5, 7, 8, 9, 11, 13, 17]),
        (7, &[16, 17, 19, 21, 23, 25, 29, 31]),
    ] {
        let few = Few { universe: 256, members };
        let found = plan::coprime(few).unwrap();
        assert_eq!(found.cells(), moduli.iter().map(|&m| u64::from(m)).sum::<u64>());
        assert!(sidon::zone::egh::zone(256, &found.moduli) >= members);
        assert!(sidon::zone::egh::zone(256, moduli) >= members);
    }
    for (members, primes, bits) in [(3, 9, 100), (7, 14, 281), (15, 22, 791)] {
        let shape = plan::egh_fewest_primes(Few { universe: 256, members }).unwrap();
        assert_eq!((shape.moduli.len(), shape.cells()), (primes, bits));
    }
}

#[test]
fn the_least_field_for_each_degree() {
    // members, digits; prime field, any field, with infinity: order and bits.
    for (members, digits, prime, any, infinity) in [
        (3, 2, (17, 68), (16, 64), (16, 64)),
        (3, 3, (7, 49), (7, 49), (7, 48)),
        (3, 4, (11, 110), (11, 110), (9, 82)),
        (7, 2, (17, 136), (16, 128), (16, 128)),
        (7, 3, (17, 255), (16, 240), (16, 225)),
        (7, 4, (23, 506), (23, 506), (23, 484)),
        (15, 2, (17, 272), (16, 256), (16, 256)),
        (15, 3, (31, 961), (31, 961), (31, 931)),
        (15, 4, (47, 2162), (47, 2162), (47, 2116)),
    ] {
        let few = Few { universe: 256, members };
        let least = |fields, points| {
            let shape = plan::pol(few, digits, fields, points).unwrap();
            assert!(shape.zone() >= members);
            (shape.order, shape.cells())
        };
        assert_eq!(least(Fields::Primes, Points::Affine), prime);
        assert_eq!(least(Fields::PrimePowers, Points::Affine), any);
        assert_eq!(least(Fields::PrimePowers, Points::All), infinity, "{members} {digits}");
    }
}

#[test]
fn where_the_codes_of_figure_9_cross() {
    let runs = |members| plan::crossovers(members, 4096).unwrap();
    assert_eq!(runs(2)[0], [(8, 169), (174, 361)]);
    assert_eq!(runs(3)[0], [(8, 529), (607, 1024)]);
    assert_eq!(runs(4)[0], [(8, 1369), (1651, 2209)]);
    assert_eq!(runs(2)[1], [(15, 2197), (3115, 4096)]);
    assert_eq!(runs(3)[1], [(32, 4096)]);
}

#[test]
fn rates_beyond_the_zone() {
    // 003.fig11: exact, by equation 3, by equation 4.
    for (members, exact, eq3, eq4) in [
        (4, 0.000294226183829, 0.000303112538859, 0.00267983070167),
        (5, 0.00130702069709, 0.00133759230576, 0.00578628083573),
        (10, 0.0308538637286, 0.0307126789213, 0.0511383225853),
        (20, 0.243342287668, 0.234452821134, 0.276192037363),
    ] {
        assert_close(plan::pol_rate(16, 2, 4, members).unwrap(), exact, 1e-9);
        assert_close(plan::ols_rate(16, 4, members), eq3, 1e-9);
        assert_close(plan::independent_rate(16, 4, members), eq4, 1e-9);
    }
    for (members, exact, eq4) in [
        (4, 0.00121483262427, 0.00437311427089),
        (6, 0.0192365065485, 0.0291333899092),
        (15, 0.477523534837, 0.481890284069),
    ] {
        assert_close(plan::pol_rate(7, 3, 7, members).unwrap(), exact, 1e-9);
        assert_close(plan::independent_rate(7, 7, members), eq4, 1e-9);
    }
    // Inside the zone no other element passes: the terms cancel.
    assert!(plan::pol_rate(16, 2, 4, 3).is_none_or(|rate| rate < 1e-9));
}

#[test]
fn targets_that_cannot_be_are_infeasible() {
    for (universe, members) in [(0, 1), (1, 1), (256, 0), (256, 257), (1 << 49, 3), (1 << 40, 1025)]
    {
        assert!(plan::zones(Few { universe, members }).is_err(), "{universe} {members}");
    }
    for (universe, members) in
        [(2, 1), (2, 2), (256, 256), (1 << 32, 4), (1 << 48, 64), (65_536, 1024)]
    {
        let rows = plan::zones(Few { universe, members }).unwrap();
        assert!(
            rows.len() >= 3 && rows.iter().all(|row| row.zone >= members),
            "{universe} {members}"
        );
    }
}
