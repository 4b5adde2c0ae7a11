//! Plans of zones: the printed lengths, and shorter ones.

use sidon::{
    plan::zone::{self, Target},
    zone::{Code, Shape},
};
use sidon_kit::rate::assert_close;

#[test]
fn the_lengths_of_table_6_and_the_right_ones() {
    // By the first primes and by coprime moduli, Latin squares, polynomials and the same cut.
    for (members, primes, coprime, squares, polynomials) in
        [(3, 100, 70, 64, &[49, 48][..]), (7, 328, 181, 128, &[128]), (15, 1060, 0, 256, &[256])]
    {
        let target = Target { universe: 256, members };
        let shapes = zone::shapes(target).unwrap();
        assert!(shapes.is_sorted_by_key(Shape::cells));
        let first = zone::first_primes(target).unwrap();
        let lengths = |is: &dyn Fn(&Shape) -> bool| -> Vec<u64> {
            shapes.iter().rev().filter(|shape| is(shape)).map(Shape::cells).collect()
        };
        let is_first = |shape: &Shape| matches!(shape, Shape::Egh(egh) if *egh == first);
        assert_eq!(lengths(&is_first), [primes]);
        let others = lengths(&|shape| matches!(shape, Shape::Egh(_)) && !is_first(shape));
        assert!(coprime == 0 || others == [coprime], "{others:?}");
        assert_eq!(lengths(&|shape| matches!(shape, Shape::Ols(_))), [squares]);
        assert_eq!(lengths(&|shape| matches!(shape, Shape::Pol(_))), polynomials);
        // The codes have the planned lengths and the zone.
        for shape in &shapes {
            let code = shape.code().unwrap();
            assert_eq!((code.cells(), code.universe()), (shape.cells(), 256));
            assert!(code.zone() >= members);
        }
    }
    let over_16 = zone::shapes(Target { universe: 256, members: 7 }).unwrap();
    assert!(over_16.iter().any(|shape| matches!(shape, Shape::Pol(pol) if pol.order == 16)));
}

#[test]
fn squares_of_composite_order_are_planned_where_they_are_shorter() {
    // The side of the universe, members, and the order: by a product if it has enough groups.
    for (universe, members, order) in
        [(36, 2, 6), (36, 3, 7), (144, 3, 12), (144, 4, 13), (400, 4, 20), (400, 5, 23)]
    {
        let shapes = zone::shapes(Target { universe, members }).unwrap();
        let squares = shapes.iter().find_map(|shape| match shape {
            Shape::Ols(ols) => Some(*ols),
            _ => None,
        });
        let squares = squares.unwrap();
        assert_eq!((squares.order, u64::from(squares.groups)), (order, members + 1));
        let code = Shape::Ols(squares).code().unwrap();
        assert_eq!((code.zone(), code.universe()), (members, universe));
    }
}

#[test]
fn coprime_moduli_beat_the_first_primes() {
    for (members, moduli) in [
        (2, &[5, 7, 8, 9, 11][..]),
        (3, &[5, 7, 8, 9, 11, 13, 17]),
        (7, &[16, 17, 19, 21, 23, 25, 29, 31]),
    ] {
        let shapes = zone::shapes(Target { universe: 256, members }).unwrap();
        let found = shapes.iter().find_map(|shape| match shape {
            Shape::Egh(egh) => Some(egh.clone()),
            _ => None,
        });
        let found = found.unwrap();
        assert_eq!(found.cells(), moduli.iter().map(|&m| u64::from(m)).sum::<u64>());
        let by_hand = sidon::zone::egh::Shape { universe: 256, moduli: moduli.to_vec() };
        for shape in [found, by_hand] {
            assert!(sidon::zone::Egh::new(shape).unwrap().zone() >= members);
        }
    }
}

#[test]
fn rates_beyond_the_zone() {
    // 003.fig11: exact rates of all 16^2 and of all 7^3 polynomials.
    let rate = |order: u32, digits: u32, groups, members| {
        let universe = u64::from(order).pow(digits);
        let shape = sidon::zone::pol::Shape { universe, order, digits, groups, infinity: false };
        sidon::zone::Pol::new(shape).unwrap().rate(members)
    };
    for (members, exact) in
        [(4, 0.000294226183829), (5, 0.00130702069709), (10, 0.0308538637286), (20, 0.243342287668)]
    {
        assert_close(rate(16, 2, 4, members), exact, 1e-9);
    }
    for (members, exact) in [(4, 0.00121483262427), (6, 0.0192365065485), (15, 0.477523534837)] {
        assert_close(rate(7, 3, 7, members), exact, 1e-9);
    }
}

#[test]
fn targets_that_cannot_be_are_infeasible() {
    for (universe, members) in [(0, 1), (1, 1), (256, 0), (256, 257), (1 << 49, 3), (1 << 40, 1025)]
    {
        assert!(zone::shapes(Target { universe, members }).is_err(), "{universe} {members}");
    }
    for (universe, members) in
        [(2, 1), (2, 2), (256, 256), (1 << 32, 4), (1 << 48, 64), (65_536, 1024)]
    {
        let shapes = zone::shapes(Target { universe, members }).unwrap();
        assert!(!shapes.is_empty(), "{universe} {members}");
    }
}
