//! The theorems of 003, by covering every element and without a theorem.

use super::figures::list;
use crate::{claim::Value, experiment::Experiment, row::Row, trials::Run};
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
pub fn zones(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let mut rows = Vec::new();
    for claim in experiment.claims {
        let measured = match claim.id {
            "003.thm1.zone_s5" => {
                let codes = (2..=6).map(|groups| ols(25, 5, groups));
                let codes = codes.collect::<Result<Vec<_>, _>>()?;
                list(codes.iter().map(zone_of_all))
            }
            "003.thm1.zone_s16" => {
                let codes = [4, 8, 16, 17].map(|groups| ols(256, 16, groups));
                let codes = codes.into_iter().collect::<Result<Vec<_>, _>>()?;
                // The code is linear: every element is covered as the first one is.
                list(codes.iter().map(|code| zone_at(&positions(code), 0)))
            }
            "003.ols.mod16_arithmetic" => {
                let groups = |y: u64| {
                    let (row, col) = (y / 16, y % 16);
                    vec![row, col, (row + col) % 16, (2 * row + col) % 16]
                };
                let all: Vec<_> = (0..256).map(groups).collect();
                zone_of(&all).into()
            }
            "003.ols.max_groups" => list([4, 5, 7, 8, 9, 11, 13, 16].map(most)),
            "003.ols.not_prime_power" => list([6, 10, 12, 14, 15, 18, 20, 21, 24].map(most)),
            "003.thm3.zone_p7_t3" => {
                let codes = [(3, false), (5, false), (7, false), (8, true)];
                let codes = codes.map(|(groups, infinity)| pol(343, 7, 3, groups, infinity));
                let codes = codes.into_iter().collect::<Result<Vec<_>, _>>()?;
                list(codes.iter().map(zone_of_all))
            }
            "003.thm3.exhaustive_n343_d2" => zone_of_all(&pol(343, 7, 3, 5, false)?).into(),
            "003.egh.exact_zone.d3" => bins(3).into(),
            "003.egh.exact_zone.d7" => bins(7).into(),
            "003.egh.exact_zone.d15" => bins(15).into(),
            "003.egh.bin_packing_rule" => disagreements()?.into(),
            "003.fig12.d2_thresholds" => {
                // An active flow is covered by the others, an idle one by all.
                let zone = zone_of_all(&ols(25, 5, 3)?);
                list([zone + 2, zone + 1])
            }
            _ => Value::Nothing,
        };
        rows.push(Row::computed(claim, measured));
    }
    Ok(rows)
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

/// The fewest others that cover this element, less one; all there are if they do not. What so many
/// others can cover is a set of groups; those sets grow by one other at a time.
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
