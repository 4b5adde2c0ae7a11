//! Codes with a zone: every set where the universe is small, a million sets where it is not.

use sidon::{
    Certainty, Infeasible, Refused,
    count::Update,
    plan::zone::{self as planned, Target},
    zone::{Any, Code, Egh, Filter, Ols, Pol, Shape, Sketch, egh, ols, pol},
};
use sidon_kit::{Rng, assert_rate};
use std::collections::HashSet;

fn ols(universe: u64, order: u32, groups: u32) -> Ols {
    Ols::new(ols::Shape { universe, order, groups }).unwrap()
}

fn pol(universe: u64, order: u32, digits: u32, groups: u32, infinity: bool) -> Pol {
    Pol::new(pol::Shape { universe, order, digits, groups, infinity }).unwrap()
}

fn egh(universe: u64, moduli: &[u32]) -> Egh {
    Egh::new(egh::Shape { universe, moduli: moduli.to_vec() }).unwrap()
}

fn any(code: impl Code) -> Any {
    code.shape().code().unwrap()
}

/// The groups in which two elements share a cell, as bits.
fn shared<C: Code>(code: &C, a: u64, b: u64) -> u32 {
    let pairs = code.positions(a).zip(code.positions(b));
    pairs.enumerate().fold(0, |mask, (group, (a, b))| mask | u32::from(a == b) << group)
}

/// The fewest others that cover an element, less one. A breadth-first search over sets of groups,
/// for every element, without a theorem.
fn exact_zone<C: Code>(code: &C) -> u64 {
    let all = (1u32 << code.groups()) - 1;
    let zone_of = |y: u64| {
        let others = (0..code.universe()).filter(|&x| x != y);
        let mut masks: Vec<u32> = others.map(|x| shared(code, x, y)).collect();
        masks.sort_unstable();
        masks.dedup();
        let mut reached = HashSet::from([0]);
        for taken in 1.. {
            let next: HashSet<u32> = reached
                .iter()
                .flat_map(|&have| masks.iter().map(move |mask| have | mask))
                .collect();
            if next.contains(&all) {
                return taken - 1;
            }
            if next == reached {
                return code.universe();
            }
            reached = next;
        }
        unreachable!("a set of groups grows or stays")
    };
    (0..code.universe()).map(zone_of).min().unwrap()
}

/// Every code here of at most 64 elements.
fn small() -> Vec<Any> {
    vec![
        any(ols(25, 5, 2)),
        any(ols(25, 5, 3)),
        any(ols(25, 5, 4)),
        any(ols(16, 4, 5)),
        any(ols(49, 7, 4)),
        any(ols(64, 8, 3)),
        any(ols(64, 8, 4)),
        any(ols(60, 8, 4)),
        any(ols(36, 6, 3)),
        any(ols(64, 10, 3)),
        any(ols(64, 12, 4)),
        any(pol(27, 3, 3, 3, false)),
        any(pol(64, 4, 3, 5, true)),
        any(pol(49, 7, 2, 4, false)),
        any(pol(64, 5, 3, 5, false)),
        any(pol(64, 8, 2, 3, true)),
        any(egh(30, &[2, 3, 5, 7])),
        any(egh(60, &[4, 5, 7, 9])),
        any(egh(64, &[3, 4, 5, 7, 11])),
    ]
}

#[test]
fn no_set_inside_the_zone_covers_another_element() {
    fn sets(code: &Any, columns: &[u128], from: u64, set: &mut Vec<u64>, union: u128, n: &mut u64) {
        *n += 1;
        let covered = columns.iter().enumerate().filter(|&(_, column)| union & column == *column);
        let members: Vec<u64> = covered.map(|(y, _)| y as u64).collect();
        assert_eq!(members, *set, "{code:?}");
        if (set.len() as u64) < code.zone() {
            for x in from..code.universe() {
                set.push(x);
                sets(code, columns, x + 1, set, union | columns[x as usize], n);
                set.pop();
            }
        }
    }
    for code in small() {
        assert!(code.cells() <= 128);
        let column = |y| code.positions(y).fold(0u128, |column, cell| column | 1 << cell);
        let columns: Vec<u128> = (0..code.universe()).map(column).collect();
        let mut n = 0;
        sets(&code, &columns, 0, &mut Vec::new(), 0, &mut n);
        assert!(n > code.universe(), "{code:?} has a zone of {}", code.zone());
    }
}

#[test]
fn the_zone_is_never_more_than_it_is_and_exact_for_whole_squares() {
    for code in small() {
        assert!(code.zone() >= 1 && code.zone() <= exact_zone(&code), "{code:?}");
    }
    // 003.thm1.zone_s5, 003.thm3.zone_p7_t3 and the largest codes of GF(4).
    for groups in 2..=6 {
        assert_eq!(exact_zone(&ols(25, 5, groups)), u64::from(groups) - 1);
        assert_eq!(ols(25, 5, groups).zone(), u64::from(groups) - 1);
    }
    for (groups, infinity, zone) in [(3, false, 1), (5, false, 2), (7, false, 3), (8, true, 3)] {
        let code = pol(343, 7, 3, groups, infinity);
        assert_eq!((code.zone(), exact_zone(&code)), (zone, zone), "{groups}");
    }
    // 003.pol.trunc48.
    let cut = pol(256, 7, 3, 7, true);
    assert_eq!((cut.cells(), cut.zone(), exact_zone(&cut)), (48, 3, 3));
}

#[test]
fn the_bins_of_residues_give_the_zone() {
    // 003.egh.bin_packing_rule: brute force over sets of moduli and universes.
    let sets: [&[u32]; 6] = [
        &[2, 3, 5],
        &[2, 3, 5, 7],
        &[3, 4, 5, 7],
        &[5, 7, 8, 9],
        &[2, 3, 5, 7, 11],
        &[4, 5, 7, 9, 11],
    ];
    for universe in [12, 20, 30, 45, 60] {
        for moduli in sets {
            let code = egh(universe, moduli);
            assert_eq!(code.zone(), exact_zone(&code), "{moduli:?} of {universe}");
        }
    }
    // 003.egh.exact_zone: the zone by the product rule, and the true one.
    for (members, zone) in [(3, 3), (7, 8), (15, 18)] {
        let target = Target { universe: 256, members };
        assert_eq!(Egh::new(planned::first_primes(target).unwrap()).unwrap().zone(), zone);
    }
}

/// A million sets in all: random ones against the whole universe, and ones made to cover a chosen
/// element as well as they can.
#[test]
fn a_million_sets_inside_the_zone_are_told_exactly() {
    let codes = [
        any(ols(256, 16, 4)),
        any(ols(256, 16, 8)),
        any(ols(256, 16, 16)),
        any(ols(361, 19, 4)),
        any(ols(144, 12, 4)),
        any(ols(390, 20, 5)),
        any(pol(343, 7, 3, 7, false)),
        any(pol(256, 7, 3, 7, true)),
        any(pol(729, 9, 3, 9, false)),
        any(egh(256, &[2, 3, 5, 7, 11, 13, 17, 19, 23])),
        any(egh(256, &[5, 7, 8, 9, 11, 13, 17])),
        any(egh(256, &[16, 17, 19, 21, 23, 25, 29, 31])),
    ];
    let mut rng = Rng::seeded(3);
    for code in codes {
        let (n, d, words) = (code.universe(), code.zone(), code.cells().div_ceil(64) as usize);
        let column = |y| {
            code.positions(y).fold(vec![0u64; words], |mut column, cell| {
                column[(cell / 64) as usize] |= 1 << (cell % 64);
                column
            })
        };
        let columns: Vec<Vec<u64>> = (0..n).map(column).collect();
        let (mut set, mut union) = (Vec::new(), vec![0u64; words]);
        for round in 0..100_000u32 {
            set.clear();
            union.fill(0);
            let target = rng.below(n);
            while (set.len() as u64) < d {
                let fresh = |x: &u64| *x != target && !set.contains(x);
                let draw = |rng: &mut Rng| loop {
                    let x = rng.below(n);
                    if fresh(&x) {
                        return x;
                    }
                };
                let uncovered = |x: u64| {
                    let column = columns[target as usize].iter().zip(&columns[x as usize]);
                    let left =
                        column.zip(&union).map(|((a, b), have)| (a & b & !*have).count_ones());
                    left.sum::<u32>()
                };
                let x = match round % 2 {
                    0 => draw(&mut rng),
                    _ => (0..8).map(|_| draw(&mut rng)).max_by_key(|&x| uncovered(x)).unwrap(),
                };
                set.push(x);
                union.iter_mut().zip(&columns[x as usize]).for_each(|(own, other)| *own |= other);
            }
            let is_in = |y: u64| columns[y as usize].iter().zip(&union).all(|(c, u)| c & !u == 0);
            assert!(set.iter().all(|&x| is_in(x)) && !is_in(target), "{code:?} {set:?} {target}");
            if round % 16 == 0 {
                assert_eq!((0..n).filter(|&y| is_in(y)).count() as u64, d, "{code:?} {set:?}");
            }
        }
    }
}

#[test]
fn the_papers_lengths_for_7_and_15_members_are_no_zones() {
    for (points, members, set) in [(15, 7, [7, 79, 80, 92]), (31, 15, [7, 73, 90, 96])] {
        // The printed filter takes points 0, 1, .. modulo 7, so that they repeat.
        let code = pol(256, 7, 3, 7, false);
        let cells = |y: u64| -> HashSet<u64> {
            let digits = code.split(y);
            let cell = |j: u32| u64::from(j) * 7 + code.position(digits, j % 7) % 7;
            (0..points).map(cell).collect()
        };
        let union: HashSet<u64> = set.iter().flat_map(|&x| cells(x)).collect();
        assert!(set.len() <= members && cells(0).is_subset(&union), "0 would be a member");
        // This library refuses to build it.
        let shape =
            pol::Shape { universe: 256, order: 7, digits: 3, groups: points, infinity: false };
        assert!(matches!(
            Pol::new(shape),
            Err(Infeasible::OutOfRange { name: "groups", most: 7, .. })
        ));
    }
}

#[test]
fn products_of_squares_have_the_zone_of_their_groups() {
    // Every order up to 24 that is no prime power: two elements share at most one cell, in all of
    // the groups that the least factor allows. One group more is refused.
    for (order, most) in
        [(6, 3), (10, 3), (12, 4), (14, 3), (15, 4), (18, 3), (20, 5), (21, 4), (22, 3), (24, 4)]
    {
        let universe = u64::from(order * order);
        let code = ols(universe, order, most);
        for y in 0..universe {
            for x in 0..y {
                assert!(shared(&code, x, y).count_ones() <= 1, "{order}: {x} {y}");
            }
        }
        let more = Ols::new(ols::Shape { universe, order, groups: most + 1 });
        assert!(matches!(more, Err(Infeasible::OutOfRange { name: "groups", .. })), "{order}");
        assert_eq!(code.zone(), u64::from(most) - 1);
    }
    // Whole squares: no element more is safe. A search over sets of groups, without a theorem.
    for (order, groups) in [(6, 2), (6, 3), (10, 3), (12, 3), (12, 4), (15, 4)] {
        let code = ols(u64::from(order * order), order, groups);
        assert_eq!(exact_zone(&code), u64::from(groups) - 1, "{order} {groups}");
    }
}

#[test]
fn squares_modulo_16_would_not_do() {
    // 003.ols.mod16_arithmetic: two columns share two cells, so the zone is 2 and not 3.
    let groups = |y: u64| {
        let (row, col) = (y / 16, y % 16);
        [row, col, (row + col) % 16, (2 * row + col) % 16]
    };
    let share = |x, y| groups(x).iter().zip(groups(y)).filter(|(a, b)| **a == *b).count();
    let most = |share: &dyn Fn(u64, u64) -> usize| {
        let all = (0..256).flat_map(|x| (0..x).map(move |y| (x, y)));
        all.map(|(x, y)| share(x, y)).max().unwrap()
    };
    assert_eq!(most(&share), 2);
    let code = ols(256, 16, 17);
    assert_eq!(most(&|x, y| shared(&code, x, y).count_ones() as usize), 1);
}

#[test]
fn figure_4_two_squares_and_their_superposition() {
    let code = ols(25, 5, 4);
    let cell = |row: u64, col: u64, group: u32| {
        code.position(code.split(5 * row + col), group) - code.start(group)
    };
    let lines = [
        "0,0 1,1 2,2 3,3 4,4",
        "1,2 2,3 3,4 4,0 0,1",
        "2,4 3,0 4,1 0,2 1,3",
        "3,1 4,2 0,3 1,4 2,0",
        "4,3 0,4 1,0 2,1 3,2",
    ];
    let mut pairs = HashSet::new();
    for (row, line) in lines.iter().enumerate() {
        for (col, pair) in line.split(' ').enumerate() {
            let (row, col) = (row as u64, col as u64);
            assert_eq!(format!("{},{}", cell(row, col, 2), cell(row, col, 3)), pair);
            assert!(pairs.insert(pair));
        }
    }
    // The elements under value 0 of the first square.
    let zero: Vec<u64> = (0..25).filter(|y| cell(y / 5, y % 5, 2) == 0).collect();
    assert_eq!(zero, [0, 9, 13, 17, 21]);
}

#[test]
fn figure_6_the_columns() {
    let code = ols(25, 5, 4);
    assert_eq!((code.cells(), code.universe(), code.zone()), (20, 25, 3));
    for (y, cells) in [
        (0, [0, 5, 10, 15]),
        (7, [1, 7, 13, 19]),
        (10, [2, 5, 12, 19]),
        (13, [2, 8, 10, 17]),
        (19, [3, 9, 12, 15]),
    ] {
        assert!(code.positions(y).eq(cells), "{y}");
    }
}

#[test]
fn columns_of_several_words_have_the_cells_of_their_elements() {
    let mut lengths = Vec::new();
    for members in [2, 3, 5, 7, 9] {
        for shape in planned::shapes(Target { universe: 256, members }).unwrap() {
            let code = shape.code().unwrap();
            let words = code.cells().div_ceil(64) as usize;
            assert_eq!(code.column(0).is_some(), words <= 8, "{shape:?}");
            if words > 8 {
                continue;
            }
            lengths.push(words);
            // A filter with columns, compared with its bits group by group.
            let mut filter = Filter::new(code.clone()).unwrap();
            let mut set = HashSet::new();
            for key in (0..256).map(|key| key * 77 % 256).take(3 * members as usize) {
                filter.insert(&key).unwrap();
                set.extend(code.positions(key));
                for other in 0..256 {
                    let covered = code.positions(other).all(|cell| set.contains(&cell));
                    assert_eq!(filter.contains(&other), covered, "{shape:?} {other}");
                }
            }
            for key in 0..256 {
                let column = code.column(key).unwrap();
                let bits = (0..64 * words as u64)
                    .filter(|&b| column[b as usize / 64] >> (b % 64) & 1 == 1);
                let mut cells: Vec<u64> = code.positions(key).collect();
                cells.sort_unstable();
                assert_eq!((column.len(), bits.collect::<Vec<_>>()), (words, cells));
            }
        }
    }
    lengths.sort_unstable();
    assert!(lengths.len() > 10 && lengths[0] == 1 && lengths[lengths.len() - 1] > 4, "{lengths:?}");
}

#[test]
fn the_columns_of_section_5() {
    let code = pol(343, 7, 3, 5, false);
    assert_eq!((code.cells(), code.zone()), (35, 2));
    let column = |y| {
        let word = code.column(y).unwrap()[0];
        let group =
            |g: u64| (0..7).map(|v| if word >> (7 * g + v) & 1 == 1 { '1' } else { '0' }).collect();
        (0..5).map(group).collect::<Vec<String>>().join(" ")
    };
    assert_eq!(column(7), "1000000 0100000 0010000 0001000 0000100");
    assert_eq!(column(50), "0100000 0010000 0000010 0001000 0001000");
}

#[test]
fn figure_8_exact_counts_and_the_first_that_is_not() {
    let mut sketch = Sketch::new(ols(25, 5, 4), 32, Update::Plain).unwrap();
    let stages = [
        (0, 5, [5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 5, 0, 0, 0, 0]),
        (7, 3, [5, 3, 0, 0, 0, 5, 0, 3, 0, 0, 5, 0, 0, 3, 0, 5, 0, 0, 0, 3]),
        (13, 4, [5, 3, 4, 0, 0, 5, 0, 3, 4, 0, 9, 0, 0, 3, 0, 5, 0, 4, 0, 3]),
        (19, 2, [5, 3, 4, 2, 0, 5, 0, 3, 4, 2, 9, 0, 2, 3, 0, 7, 0, 4, 0, 3]),
    ];
    for (stage, (key, amount, counters)) in stages.into_iter().enumerate() {
        sketch.add(&key, amount).unwrap();
        assert!(sketch.counters().eq(counters), "stage {stage}");
        assert_eq!(sketch.len(), Some(stage as u64 + 1));
        // Flow XI has no traffic; its plain estimate is right for three flows and not for four.
        assert_eq!(sketch.minimum(10), if stage < 3 { 0 } else { 2 });
    }
    // One key above the zone: exact for all keys, since the sketch remembers the fourth.
    for key in 0..25 {
        let truth =
            [(0, 5), (7, 3), (13, 4), (19, 2)].iter().find(|e| e.0 == key).map_or(0, |e| e.1);
        assert_eq!(sketch.estimate(&key), sidon::Estimate::exact(truth), "{key}");
    }
    assert_eq!(sketch.list().unwrap(), [(0, 5), (7, 3), (13, 4), (19, 2)]);
    // The sketch reports that a fifth flow is too many.
    sketch.add(&24, 1).unwrap();
    assert!(sketch.len().is_none());
    let xi = sketch.estimate(&10);
    assert_eq!((xi.value, xi.bound, xi.slack), (2, sidon::Bound::AtMost, 2));
    sketch.subtract(24, 1).unwrap();
    sketch.subtract(7, 3).unwrap();
    assert_eq!(sketch.len(), Some(3));
    assert_eq!(sketch.list().unwrap(), [(0, 5), (13, 4), (19, 2)]);
}

#[test]
fn a_filter_lists_its_members_and_knows_its_zone() {
    for code in small() {
        let zone = code.zone();
        let mut filter = Filter::new(code.clone()).unwrap();
        let mut rng = Rng::seeded(7);
        let mut members = Vec::new();
        while (members.len() as u64) < zone {
            let key = rng.below(code.universe());
            filter.insert(&key).unwrap();
            filter.insert(&key).unwrap();
            if !members.contains(&key) {
                members.push(key);
            }
            members.sort_unstable();
            assert_eq!(filter.list(), members);
            assert_eq!(filter.len(), Some(members.len() as u64));
            assert_eq!(filter.certainty(), Certainty::Certain);
        }
        let universe = code.universe();
        assert_eq!(filter.insert(&universe), Err(Refused::Outside { universe }));
        assert!(!filter.contains(&universe) && filter.len() == Some(zone));
        if let Some(stranger) = (0..universe).find(|key| !members.contains(key)) {
            filter.insert(&stranger).unwrap();
            assert!(filter.len().is_none() && filter.certainty().error() > 0.0, "{code:?}");
        }
        filter.clear();
        assert!(filter.is_empty() && filter.list().is_empty());
    }
}

#[test]
fn large_universes_are_listed_without_looking_at_all_of_them() {
    let codes = [
        any(ols(1 << 32, 65_536, 5)),
        any(pol(1 << 40, 16_384, 3, 9, false)),
        any(pol(1 << 40, 59_049, 3, 9, true)),
        any(egh(1 << 30, &[1021, 1024, 1031, 1033, 1039, 1049, 1051])),
    ];
    let mut rng = Rng::seeded(11);
    for code in codes {
        let mut filter = Filter::new(code.clone()).unwrap();
        let mut members: Vec<u64> = (0..code.zone()).map(|_| rng.below(code.universe())).collect();
        members.iter().for_each(|key| filter.insert(key).unwrap());
        members.sort_unstable();
        assert!(code.zone() >= 2 && filter.list_within(10_000).unwrap() == members, "{code:?}");
        let mut other = Filter::new(code.clone()).unwrap();
        other.insert(&members[0]).unwrap();
        other.merge(&filter).unwrap();
        assert_eq!(other.len(), Some(code.zone()), "{code:?}: what both have is counted once");
    }
}

/// Random members and random other elements beyond the zone, to six sigma of the exact rate.
#[test]
fn strangers_pass_as_often_as_inclusion_and_exclusion_say() {
    for (code, members) in [
        (any(ols(256, 16, 4)), 6),
        (any(ols(256, 16, 4)), 20),
        (any(pol(343, 7, 3, 7, false)), 5),
        (any(pol(343, 7, 3, 7, false)), 10),
    ] {
        let rate = code.rate(members);
        let n = sidon_kit::trials(rate, 0.1);
        let mut rng = Rng::seeded(members);
        let mut filter = Filter::new(code.clone()).unwrap();
        let (mut hits, mut set) = (0, HashSet::new());
        for _ in 0..n {
            filter.clear();
            set.clear();
            while (set.len() as u64) < members {
                set.insert(rng.below(code.universe()));
            }
            set.iter().for_each(|key| filter.insert(key).unwrap());
            let stranger = loop {
                let key = rng.below(code.universe());
                if !set.contains(&key) {
                    break key;
                }
            };
            hits += usize::from(filter.contains(&stranger));
        }
        assert_rate(hits, n, rate);
    }
}

#[test]
fn shapes_that_cannot_be_are_infeasible() {
    let pol = |universe, order, digits, groups, infinity| {
        Pol::new(pol::Shape { universe, order, digits, groups, infinity }).is_err()
    };
    assert!(pol(344, 7, 3, 7, false) && pol(343, 7, 3, 8, false) && pol(343, 7, 3, 9, true));
    assert!(pol(36, 6, 2, 3, false) && pol(7, 7, 1, 3, false) && pol(7, 7, 17, 3, false));
    assert!(pol(0, 7, 3, 3, false) && pol(343, 7, 3, 0, true) && pol(343, 0, 3, 3, true));
    let egh = |universe, moduli: &[u32]| {
        Egh::new(egh::Shape { universe, moduli: moduli.to_vec() }).is_err()
    };
    assert!(egh(30, &[]) && egh(30, &[2, 4]) && egh(30, &[3, 2]) && egh(30, &[1, 2]));
    assert!(egh(0, &[2]) && egh(30, &[2, 2]) && !egh(30, &[2, 3]));
    assert!(Ols::new(ols::Shape { universe: 26, order: 5, groups: 3 }).is_err());
    assert!(matches!(any(ols(25, 5, 3)).shape(), Shape::Ols(_)));
}
