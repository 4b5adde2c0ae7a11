//! The theorems of 003, by covering every element and without a theorem.

use super::{facts, figures::list};
use crate::{experiment::Experiment, row::Row, trials::Run};
use sidon::{
    Infeasible,
    plan::zone::{Target, first_primes},
    zone::{Code, Egh, Ols, Pol, egh, ols, pol},
};
use std::collections::BTreeSet;

/// A code of Latin squares.
pub fn ols(universe: u64, order: u32, groups: u32) -> Result<Ols, Infeasible> {
    Ols::new(ols::Shape { universe, order, groups })
}

/// A code of polynomials.
pub fn pol(
    universe: u64,
    order: u32,
    digits: u32,
    groups: u32,
    infinity: bool,
) -> Result<Pol, Infeasible> {
    Pol::new(pol::Shape { universe, order, digits, groups, infinity })
}

/// The most groups of Latin squares of this order.
fn most(order: u32) -> u64 {
    (1..100).take_while(|&groups| ols(9, order, groups).is_ok()).count() as u64
}

/// Theorems 1 and 3, residues, Latin squares of other orders.
pub fn zones(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let of_25 = (2..=6).map(|groups| ols(25, 5, groups)).collect::<Result<Vec<_>, _>>()?;
    let of_256 = [4, 8, 16, 17].map(|groups| ols(256, 16, groups));
    let of_256 = of_256.into_iter().collect::<Result<Vec<_>, _>>()?;
    let of_343 = [(3, false), (5, false), (7, false), (8, true)];
    let of_343 = of_343.map(|(groups, infinity)| pol(343, 7, 3, groups, infinity));
    let of_343 = of_343.into_iter().collect::<Result<Vec<_>, _>>()?;
    let zone_2 = zone_of_all(&ols(25, 5, 3)?);
    let [
        squares_5,
        squares_16,
        modulo_16,
        most_groups,
        macneish,
        cubes,
        cubes_2,
        bins_3,
        more @ ..,
    ] = &facts::ZONES;
    let [bins_7, bins_15, rule, thresholds] = more;
    Ok(vec![
        Row::computed(squares_5, list(of_25.iter().map(zone_of_all))),
        // The code is linear: every element is covered as the first one is.
        Row::computed(squares_16, list(of_256.iter().map(|code| zone_at(&positions(code), 0)))),
        Row::computed(modulo_16, zone_modulo_16()),
        Row::computed(most_groups, list([4, 5, 7, 8, 9, 11, 13, 16].map(most))),
        Row::computed(macneish, list([6, 10, 12, 14, 15, 18, 20, 21, 24].map(most))),
        Row::computed(cubes, list(of_343.iter().map(zone_of_all))),
        Row::computed(cubes_2, zone_of_all(&pol(343, 7, 3, 5, false)?)),
        Row::computed(bins_3, bins(3)),
        Row::computed(bins_7, bins(7)),
        Row::computed(bins_15, bins(15)),
        Row::computed(rule, disagreements()?),
        // An active flow is covered by the others, an idle one by all.
        Row::computed(thresholds, list([zone_2 + 2, zone_2 + 1])),
    ])
}

/// The zone of four groups of 256 elements in arithmetic modulo 16, which is no field.
fn zone_modulo_16() -> u64 {
    let groups = |y: u64| {
        let (row, col) = (y / 16, y % 16);
        vec![row, col, (row + col) % 16, (2 * row + col) % 16]
    };
    let all: Vec<_> = (0..256).map(groups).collect();
    zone_of(&all)
}

/// The zone of the primes that the product rule takes, by bins.
fn bins(members: u64) -> u64 {
    let primes = first_primes(Target { universe: 256, members });
    primes.and_then(Egh::new).map_or(0, |code| code.zone())
}

/// Sets of moduli and universes for which the bins and brute force differ.
fn disagreements() -> Result<u64, Infeasible> {
    const SETS: [&[u32]; 6] = [
        &[2, 3, 5],
        &[2, 3, 5, 7],
        &[3, 4, 5, 7],
        &[5, 7, 8, 9],
        &[2, 3, 5, 7, 11],
        &[4, 5, 7, 9, 11],
    ];
    let mut differ = 0;
    for universe in [12, 20, 30, 45, 60] {
        for moduli in SETS {
            let code = Egh::new(egh::Shape { universe, moduli: moduli.to_vec() })?;
            differ += u64::from(code.zone() != zone_of_all(&code));
        }
    }
    Ok(differ)
}

/// The cells of every element.
fn positions<C: Code>(code: &C) -> Vec<Vec<u64>> {
    (0..code.universe()).map(|element| code.positions(element).collect()).collect()
}

/// The fewest others that cover an element, less one, over all elements.
fn zone_of_all<C: Code>(code: &C) -> u64 {
    zone_of(&positions(code))
}

fn zone_of(cells: &[Vec<u64>]) -> u64 {
    (0..cells.len()).map(|element| zone_at(cells, element)).min().unwrap_or(0)
}

/// The fewest other elements that cover this one, less one. The number of elements if they do not cover it.
/// Each round adds one element to the sets of groups that can be covered.
fn zone_at(cells: &[Vec<u64>], element: usize) -> u64 {
    let shared = |other: &Vec<u64>| {
        let pairs = other.iter().zip(&cells[element]).enumerate();
        pairs.fold(0u32, |mask, (group, (a, b))| mask | u32::from(a == b) << group)
    };
    let others = cells.iter().enumerate().filter(|&(other, _)| other != element);
    let masks: BTreeSet<u32> = others.map(|(_, other)| shared(other)).filter(|&m| m > 0).collect();
    let all = (1u32 << cells[element].len()) - 1;
    let mut seen = vec![false; all as usize + 1];
    let mut reached = vec![0];
    for taken in 1..=cells.len() as u64 {
        let mut next = Vec::new();
        for have in reached {
            for mask in &masks {
                let covered = (have | mask) as usize;
                if !seen[covered] {
                    seen[covered] = true;
                    next.push(covered as u32);
                }
            }
        }
        if seen[all as usize] {
            return taken - 1;
        }
        reached = next;
    }
    cells.len() as u64
}
