//! Residues: an element's cell in each group is its remainder by the group's modulus.
//!
//! Two elements share the cells of exactly the moduli that divide their difference, and as the
//! moduli are pairwise coprime the product of those is at most `universe - 1`.
//! ```text
//! 2: . 1     3: . . 1     5: 1 . . . .     11 of 0..30 -> 1, 2, 1
//! ```
//! To cover an element, other elements must share the cell of every modulus. Each of them shares a
//! set of moduli whose product is below the universe: the moduli are packed into *bins* of that
//! capacity. The zone is the least number of bins less one, exactly. The paper's rule, a product of
//! at least `universe^d`, is only a lower bound of the zone. Its 15 primes for 7 of 256 have a zone
//! of 8, and 14 primes suffice.
//!
//! A shorter code has `(t - 1) d + 1` moduli, any `t` of which have a product of at least the
//! universe. No bin then holds `t` moduli, so more than `d` bins are needed. For 3 of 256 these are
//! `5 7 8 9 11 13 17`, 70 cells instead of 100. [`plan::zone::shapes`] finds them.

use super::{
    UNIVERSE_MAX,
    code::{self, Code, Columns, Found},
};
use crate::{Infeasible, plan};
use std::{collections::HashSet, sync::Arc};

/// The largest modulus.
pub(crate) const MODULUS_MAX: u64 = 1 << 24;
/// The most moduli.
pub(crate) const MODULI_MAX: u64 = 1 << 12;

/// The integers that fix a code of residues.
///
/// ```
/// use sidon::zone::egh::Shape;
///
/// assert_eq!(Shape { universe: 60, moduli: vec![4, 5, 7, 9] }.cells(), 25);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of elements.
    pub universe: u64,
    /// The moduli: pairwise coprime, at least 2, in rising order.
    pub moduli: Vec<u32>,
}

impl Shape {
    /// The number of cells.
    #[doc(hidden)]
    pub fn cells(&self) -> u64 {
        self.moduli.iter().map(|&modulus| u64::from(modulus)).sum()
    }

    fn check(&self) -> Result<(), Infeasible> {
        Infeasible::unless_within("universe", self.universe, 1, UNIVERSE_MAX)?;
        Infeasible::unless_within("moduli", self.moduli.len() as u64, 1, MODULI_MAX)?;
        let (mut least, mut primes) = (2, HashSet::new());
        for &modulus in &self.moduli {
            Infeasible::unless_within("modulus", modulus.into(), least, MODULUS_MAX)?;
            least = u64::from(modulus) + 1;
            for prime in plan::primes_of(modulus.into()) {
                if !primes.insert(prime) {
                    let must = "have no prime factor in common with the moduli before it";
                    return Err(Infeasible::conflict("modulus", &modulus, must));
                }
            }
        }
        Ok(())
    }
}

/// A code of residues. See the [module](self).
///
/// ```
/// use sidon::zone::{Code, Egh, egh::Shape};
///
/// let code = Egh::new(Shape { universe: 60, moduli: vec![4, 5, 7, 9] })?;
/// // Two keys below 60 agree in the residues of at most two moduli, so one other key never covers all four.
/// assert_eq!(code.zone(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// The groups of the largest moduli whose product reaches the universe (all groups if none
    /// does), and that product.
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

/// The number of bins of capacity `universe - 1` that the moduli need, less one. A lower bound if
/// the search for the fewest bins exceeds its limit of nodes.
fn zone(universe: u64, moduli: &[u32]) -> u64 {
    let most = universe - 1;
    // A modulus above the capacity gives every element its own cell.
    if moduli.last().is_none_or(|&last| u64::from(last) > most) {
        return universe;
    }
    let bins = fewest_bins(most, moduli);
    (bins - 1).min(universe)
}

/// The limit of nodes in the search for the fewest bins.
const NODES: u32 = 20_000;

fn fewest_bins(capacity: u64, moduli: &[u32]) -> u64 {
    // Two lower bounds: by the product, and by how many of the smallest moduli fit in one bin.
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
    // Start at the lower bound, and try one bin more whenever a packing is proven impossible.
    let mut nodes = NODES;
    loop {
        let mut bins = Vec::new();
        match packs(&falling, capacity, fewest as usize, &mut bins, &mut nodes) {
            Some(false) => fewest += 1,
            Some(true) | None => return fewest,
        }
    }
}

/// Whether the moduli, largest first, fit in `most` bins. `None` if the search ran out of nodes.
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
        // Two bins with the same product lead to the same search.
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
    fn shape(&self) -> code::Shape {
        code::Shape::Egh(Shape { universe: self.universe, moduli: self.moduli.to_vec() })
    }
    fn zone(&self) -> u64 {
        self.zone
    }
    type Split = u64;
    fn of(shape: &code::Shape) -> Option<Result<Self, Infeasible>> {
        if let code::Shape::Egh(shape) = shape { Some(Egh::new(shape.clone())) } else { None }
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

/// Every number with one of the found remainders by each modulus, by the Chinese remainder theorem.
/// The remainders read so far determine `rest` modulo `product`.
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
        // rest + product * k has the remainder `value`.
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
