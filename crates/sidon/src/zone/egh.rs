//! Residues: an element's cell in each group is its remainder by the group's modulus.
//!
//! Two elements share the cells of exactly the moduli that divide their difference, and as the
//! moduli are pairwise coprime the product of those is at most `universe - 1`.
//! ```text
//! 2: . 1     3: . . 1     5: 1 . . . .     11 of 0..30 -> 1, 2, 1
//! ```
//! So to cover an element, the moduli have to be dealt out to the others, each of which takes a
//! share whose product is below the universe: *bins* of a capacity. One set fewer than the least
//! number of bins covers nothing, and that is the zone, exactly. The paper's rule, a product of at
//! least `universe^d`, only bounds it: its 15 primes for 7 of 256 have a zone of 8, and 14 do.
//!
//! Shorter still is the family of `(t - 1) d + 1` moduli any `t` of which multiply to the universe
//! or more: no bin holds `t`, so there are more than `d`. For 3 of 256 that is
//! `5 7 8 9 11 13 17`, 70 cells in place of 100. [`plan::coprime`] finds it.

use super::{
    UNIVERSE_MOST,
    code::{self, Code, Columns, Found},
};
use crate::{Infeasible, plan};
use std::{collections::HashSet, sync::Arc};

/// The largest modulus.
pub const MODULUS_MOST: u64 = 1 << 24;
/// The most moduli.
pub const MODULI_MOST: u64 = 1 << 12;

/// The integers that fix a code of residues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// How many elements there are.
    pub universe: u64,
    /// What is divided by: pairwise coprime, from 2 up, in rising order.
    pub moduli: Vec<u32>,
}

impl Shape {
    /// How many cells there are.
    pub fn cells(&self) -> u64 {
        self.moduli.iter().map(|&modulus| u64::from(modulus)).sum()
    }

    fn check(&self) -> Result<(), Infeasible> {
        Infeasible::unless_within("universe", self.universe, 1, UNIVERSE_MOST)?;
        Infeasible::unless_within("moduli", self.moduli.len() as u64, 1, MODULI_MOST)?;
        let (mut least, mut primes) = (2, HashSet::new());
        for &modulus in &self.moduli {
            Infeasible::unless_within("modulus", modulus.into(), least, MODULUS_MOST)?;
            least = u64::from(modulus) + 1;
            for prime in plan::primes_of(modulus.into()) {
                let times = 1 + u64::from(!primes.insert(prime));
                Infeasible::unless_within("moduli with a common prime", times, 1, 1)?;
            }
        }
        Ok(())
    }
}

/// A code of residues. See the [module](self).
#[derive(Debug, Clone)]
pub struct Egh {
    universe: u64,
    moduli: Arc<[u32]>,
    starts: Arc<[u64]>,
    zone: u64,
    columns: Columns,
}

impl PartialEq for Egh {
    fn eq(&self, other: &Self) -> bool {
        (self.universe, &self.moduli) == (other.universe, &other.moduli)
    }
}

impl Egh {
    /// The code of this shape.
    pub fn new(shape: Shape) -> Result<Self, Infeasible> {
        shape.check()?;
        let mut starts = vec![0];
        for &modulus in &shape.moduli {
            starts.push(starts[starts.len() - 1] + u64::from(modulus));
        }
        Ok(Egh {
            universe: shape.universe,
            zone: zone(shape.universe, &shape.moduli),
            moduli: shape.moduli.into(),
            starts: starts.into(),
            columns: Columns::default(),
        })
    }

    /// The integers that fix it.
    pub fn shape(&self) -> Shape {
        Shape { universe: self.universe, moduli: self.moduli.to_vec() }
    }

    /// The largest moduli that determine an element; all of them if they do not.
    fn largest(&self) -> (Vec<u32>, u128) {
        let (mut groups, mut product) = (Vec::new(), 1u128);
        for group in (0..self.moduli.len()).rev() {
            if product >= self.universe.into() {
                break;
            }
            groups.push(group as u32);
            product *= u128::from(self.moduli[group]);
        }
        (groups, product)
    }
}

/// How many bins of capacity `universe - 1` the moduli need, less one. Where the search for the
/// fewest would take too long, a bound from below: then the zone is at least this.
pub fn zone(universe: u64, moduli: &[u32]) -> u64 {
    let most = universe - 1;
    // A modulus that fits no bin tells all elements apart.
    if moduli.last().is_none_or(|&last| u64::from(last) > most) {
        return universe;
    }
    let bins = fewest_bins(most, moduli);
    (bins - 1).min(universe)
}

/// Nodes of the search for the fewest bins.
const NODES: u32 = 20_000;

fn fewest_bins(capacity: u64, moduli: &[u32]) -> u64 {
    // Two bounds from below: by the product, and by how many of the smallest fit one bin.
    let room = (capacity as f64).ln();
    let weight: f64 = moduli.iter().map(|&modulus| f64::from(modulus).ln()).sum();
    let mut product = 1u128;
    let in_one = moduli.iter().take_while(|&&modulus| {
        product = product.saturating_mul(modulus.into());
        product <= capacity.into()
    });
    let by_number = moduli.len().div_ceil(in_one.count().max(1)) as u64;
    let mut fewest = by_number.max((weight / room - 1e-9).ceil() as u64).max(1);
    let mut falling = moduli.to_vec();
    falling.reverse();
    // No fewer than these; one more if it is proven that they do not do.
    let mut nodes = NODES;
    loop {
        let mut bins = Vec::new();
        match packs(&falling, capacity, fewest as usize, &mut bins, &mut nodes) {
            Some(false) => fewest += 1,
            Some(true) | None => return fewest,
        }
    }
}

/// Whether the moduli, largest first, fit so many bins; nothing if the search was given up.
fn packs(
    moduli: &[u32],
    capacity: u64,
    most: usize,
    bins: &mut Vec<u64>,
    nodes: &mut u32,
) -> Option<bool> {
    let Some((&modulus, rest)) = moduli.split_first() else { return Some(true) };
    *nodes = nodes.checked_sub(1)?;
    let modulus = u64::from(modulus);
    for bin in 0..bins.len() {
        // Bins of one content are one bin.
        if bins[bin] > capacity / modulus || bins[..bin].contains(&bins[bin]) {
            continue;
        }
        bins[bin] *= modulus;
        let packs = packs(rest, capacity, most, bins, nodes)?;
        bins[bin] /= modulus;
        if packs {
            return Some(true);
        }
    }
    if bins.len() == most {
        return Some(false);
    }
    bins.push(modulus);
    let packs = packs(rest, capacity, most, bins, nodes)?;
    bins.pop();
    Some(packs)
}

impl Code for Egh {
    type Split = u64;

    fn of(shape: &code::Shape) -> Option<Result<Self, Infeasible>> {
        if let code::Shape::Egh(shape) = shape { Some(Egh::new(shape.clone())) } else { None }
    }
    fn shape(&self) -> code::Shape {
        code::Shape::Egh(self.shape())
    }
    fn universe(&self) -> u64 {
        self.universe
    }
    fn groups(&self) -> u32 {
        self.moduli.len() as u32
    }
    #[inline(always)]
    fn start(&self, group: u32) -> u64 {
        self.starts[group as usize]
    }
    fn zone(&self) -> u64 {
        self.zone
    }
    #[inline(always)]
    fn split(&self, element: u64) -> u64 {
        element
    }
    #[inline(always)]
    fn position(&self, element: u64, group: u32) -> u64 {
        self.starts[group as usize] + element % u64::from(self.moduli[group as usize])
    }
    fn rate(&self, members: u64) -> f64 {
        plan::groups_rate(self.moduli.iter().map(|&modulus| modulus.into()), members)
    }
    fn work(&self, found: &Found) -> u64 {
        let (groups, product) = self.largest();
        if product < self.universe.into() { u64::MAX } else { found.ways(&groups) }
    }
    fn candidates(&self, found: &Found, visit: &mut dyn FnMut(u64)) {
        let (groups, product) = self.largest();
        if product >= self.universe.into() {
            combine(self, found, &groups, (0, 1), visit);
        }
    }
    fn columns(&self) -> &Columns {
        &self.columns
    }
}

/// Every number with one of the found remainders by each modulus, by the Chinese remainder theorem:
/// what is known so far is `rest` modulo `product`.
fn combine(
    code: &Egh,
    found: &Found,
    groups: &[u32],
    (rest, product): (u128, u128),
    visit: &mut dyn FnMut(u64),
) {
    let Some((&group, groups)) = groups.split_first() else {
        return u64::try_from(rest).into_iter().for_each(visit);
    };
    let modulus = u128::from(code.moduli[group as usize]);
    let inverse = inverse(product % modulus, modulus);
    for &value in found.values(group) {
        // rest + product * k has the remainder value.
        let k = (u128::from(value) + modulus - rest % modulus) * inverse % modulus;
        combine(code, found, groups, (rest + product * k, product * modulus), visit);
    }
}

/// The inverse of a number that is coprime to the modulus.
fn inverse(a: u128, modulus: u128) -> u128 {
    let (mut old, mut new) = ((a as i128, 1i128), (modulus as i128, 0i128));
    while new.0 != 0 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    old.1.rem_euclid(modulus as i128) as u128
}
