//! The least bits for a zone: `members` of a `universe`, over all codes, fields and degrees.
//!
//! A polynomial code of `t` digits takes `(t - 1) d + 1` groups of `q` cells, so the least field with
//! `q^t >= n` and enough points is best for each `t`; the residues by the paper's rule are the first
//! primes whose product reaches `n^d`; the coprime moduli are searched for. The plain alternatives
//! stand beside them: a list of the members, and a bitmap of the universe.

use super::{groups_rate, zone_search};
use crate::{
    Infeasible,
    zone::{
        Shape, UNIVERSE_MOST, egh,
        field::{ORDER_MOST, prime_power},
        ols,
        pol::{self, DIGITS_MOST},
    },
};

/// What must be held without a false positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Few {
    /// Keys are the numbers below this.
    pub universe: u64,
    /// How many are in at a time, at the most.
    pub members: u64,
}

/// The most moduli that are searched for.
const SEARCHED_MOST: u64 = 512;
/// The largest universe that crossovers are looked for in, one after the other.
const CROSSOVERS_MOST: u64 = 1 << 24;
/// The most members a plan is made for.
const MEMBERS_MOST: u64 = 1024;

impl Few {
    fn check(self) -> Result<(), Infeasible> {
        Infeasible::unless_within("universe", self.universe, 2, UNIVERSE_MOST)?;
        Infeasible::unless_within("members", self.members, 1, MEMBERS_MOST.min(self.universe))
    }
}

/// A way to hold few of many, and what it costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// How it is done.
    pub held: Held,
    /// The bits it takes.
    pub bits: u64,
    /// The bits that a lookup reads; the members that it compares, for a list.
    pub probes: u64,
    /// How many members it holds without a false positive; more than asked for, at times.
    pub zone: u64,
}

/// How few of many are held.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Held {
    /// By a code that the paper has: the first primes, Latin squares, polynomials at points of the
    /// field.
    Code(Shape),
    /// By residues of other moduli than the first primes.
    Coprime(egh::Shape),
    /// By polynomials, the last group at infinity and cut to the leading coefficients that occur.
    Cut(pol::Shape),
    /// By writing the members down, each in so many bits.
    List(u32),
    /// By one bit for every key.
    Bitmap,
}

impl Held {
    /// Its name in tables and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Held::Code(shape) => shape.name(),
            Held::Coprime(_) => "coprime",
            Held::Cut(_) => "pol",
            Held::List(_) => "list",
            Held::Bitmap => "bitmap",
        }
    }

    /// The shape of its code, if it has one.
    pub fn code(&self) -> Option<Shape> {
        match self {
            Held::Code(shape) => Some(shape.clone()),
            Held::Coprime(shape) => Some(Shape::Egh(shape.clone())),
            Held::Cut(shape) => Some(Shape::Pol(*shape)),
            Held::List(_) | Held::Bitmap => None,
        }
    }
}

/// Every way to hold so few of so many, the fewest bits first.
pub fn zones(few: Few) -> Result<Vec<Zone>, Infeasible> {
    few.check()?;
    let Few { universe, members } = few;
    let mut rows = Vec::new();
    let mut add = |held: Held, zone: u64| {
        if let Some(shape) = held.code() {
            let (bits, probes) = (shape.cells(), shape.groups());
            rows.push(Zone { held, bits, probes, zone });
        }
    };
    let egh = egh_primes(few)?;
    let zone = egh::zone(universe, &egh.moduli);
    add(Held::Code(Shape::Egh(egh)), zone);
    if let Some(shape) = coprime(few) {
        let zone = egh::zone(universe, &shape.moduli);
        add(Held::Coprime(shape), zone);
    }
    if let Some(shape) = ols::Shape::least(universe, members) {
        add(Held::Code(Shape::Ols(shape)), members);
    }
    let plain = least(few, |digits| pol(few, digits, Fields::PrimePowers, Points::Needed));
    if let Some(shape) = plain {
        add(Held::Code(Shape::Pol(shape)), shape.zone());
    }
    if let Some(shape) = least(few, |digits| pol(few, digits, Fields::PrimePowers, Points::All))
        && plain.is_none_or(|plain| shape.cells() < plain.cells())
    {
        add(Held::Cut(shape), shape.zone());
    }
    let width = (universe - 1).ilog2() + 1;
    // So many members, and how many there are.
    let bits = members * u64::from(width) + u64::from(members.ilog2() + 1);
    rows.push(Zone { held: Held::List(width), bits, probes: members, zone: members });
    rows.push(Zone { held: Held::Bitmap, bits: universe, probes: 1, zone: universe });
    rows.sort_by_key(|row| row.bits);
    Ok(rows)
}

/// The polynomial code of the fewest bits, as Latin squares where those are as short.
pub fn least_polynomials(few: Few) -> Option<Shape> {
    few.check().ok()?;
    let ols = ols::Shape::least(few.universe, few.members).map(Shape::Ols);
    let pol = least(few, |digits| pol(few, digits, Fields::PrimePowers, Points::All));
    let pol = pol.map(Shape::Pol);
    ols.into_iter().chain(pol).min_by_key(Shape::cells)
}

fn least(few: Few, of: impl Fn(u32) -> Option<pol::Shape>) -> Option<pol::Shape> {
    let all = (2..=DIGITS_MOST).take_while(|&digits| groups(few, digits) <= ORDER_MOST + 1);
    all.filter_map(of).min_by_key(|shape| (shape.cells(), shape.groups))
}

/// Which fields are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fields {
    /// Arithmetic modulo a prime, as in the paper.
    Primes,
    /// All there are.
    PrimePowers,
}

/// Which points are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// The elements of the field.
    Affine,
    /// Infinity too, where a smaller field does with it.
    Needed,
    /// Infinity always: its group is the shortest.
    All,
}

/// How many groups polynomials of so many digits need.
fn groups(few: Few, digits: u32) -> u64 {
    u64::from(digits - 1) * few.members + 1
}

/// The polynomials of so many digits over the least field.
pub fn pol(few: Few, digits: u32, fields: Fields, points: Points) -> Option<pol::Shape> {
    few.check().ok()?;
    Infeasible::unless_within("digits", digits.into(), 2, DIGITS_MOST.into()).ok()?;
    let groups = groups(few, digits);
    let more = u64::from(points != Points::Affine);
    let reaches = |q: &u64| u128::from(*q).saturating_pow(digits) >= few.universe.into();
    let allowed = |q: &u64| match prime_power(*q) {
        Some((_, exponent)) => exponent == 1 || fields == Fields::PrimePowers,
        None => false,
    };
    let first = groups.saturating_sub(more).max(2).max(root(few.universe, digits));
    let order = (first..=ORDER_MOST).filter(reaches).find(allowed)?;
    let infinity = match points {
        Points::Affine => false,
        Points::Needed => groups > order,
        Points::All => true,
    };
    let (universe, order, groups) = (few.universe, order as u32, groups as u32);
    Some(pol::Shape { universe, order, digits, groups, infinity })
}

/// A number not far below the `digits`-th root of `n`.
fn root(n: u64, digits: u32) -> u64 {
    ((n as f64).powf(1.0 / f64::from(digits)) as u64).saturating_sub(1)
}

/// The first primes whose product is `universe^members` or more: the paper's rule.
pub fn egh_primes(few: Few) -> Result<egh::Shape, Infeasible> {
    few.check()?;
    let target = Big::power(few.universe, few.members);
    let (mut product, mut moduli) = (Big::one(), Vec::new());
    let mut prime = 2;
    while product < target {
        if prime_power(prime).is_some_and(|(_, exponent)| exponent == 1) {
            product.multiply(prime);
            moduli.push(prime as u32);
        }
        prime += 1;
    }
    Ok(egh::Shape { universe: few.universe, moduli })
}

/// The fewest of the first primes that have the zone.
pub fn egh_fewest_primes(few: Few) -> Result<egh::Shape, Infeasible> {
    let mut shape = egh_primes(few)?;
    // A code has at least one group.
    while let [fewer @ .., _] = &shape.moduli[..]
        && !fewer.is_empty()
        && egh::zone(few.universe, fewer) >= few.members
    {
        shape.moduli.pop();
    }
    Ok(shape)
}

/// Pairwise coprime moduli, any `t` of which multiply to the universe or more, `(t - 1) d + 1` of
/// them, with the least sum that a search of fixed length finds over all `t`.
pub fn coprime(few: Few) -> Option<egh::Shape> {
    few.check().ok()?;
    let mut best: Option<Vec<u32>> = None;
    let sum = |moduli: &[u32]| moduli.iter().map(|&m| u64::from(m)).sum::<u64>();
    for digits in 2..=DIGITS_MOST {
        let groups = groups(few, digits);
        // The least sum of so many numbers from 2 up rules out all that follow.
        let bound = best.as_deref().map_or(u64::MAX, sum);
        if groups > SEARCHED_MOST || groups.saturating_mul(groups) / 2 >= bound {
            break;
        }
        if let Some(moduli) = zone_search::moduli(few.universe, groups, digits, bound) {
            best = Some(moduli);
        }
    }
    best.map(|moduli| egh::Shape { universe: few.universe, moduli })
}

/// Where one code becomes shorter than another as the universe grows: each run of universes, from
/// the first to the last number, in which `a` takes fewer bits.
pub fn runs(first: u64, last: u64, mut shorter: impl FnMut(u64) -> bool) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for n in (first..=last).filter(|&n| shorter(n)) {
        match runs.last_mut() {
            Some((_, end)) if *end == n - 1 => *end = n,
            _ => runs.push((n, n)),
        }
    }
    runs
}

/// The universes up to `last` in which a code of the paper is shorter than its residues, for so many
/// members: Latin squares, and polynomials of three digits. Figure 9.
pub fn crossovers(members: u64, last: u64) -> Result<[Vec<(u64, u64)>; 2], Infeasible> {
    Infeasible::unless_within("last", last, 2, CROSSOVERS_MOST)?;
    Infeasible::unless_within("members", members, 1, MEMBERS_MOST)?;
    let mut primes = Primes::new(members);
    let egh: Vec<u64> = (0..=last).map(|n| if n < 2 { 0 } else { primes.bits(n) }).collect();
    let few = |universe| Few { universe, members };
    let squares =
        |n| ols::Shape::least(n, members).map(|s| u64::from(s.groups) * u64::from(s.order));
    let cubes = |n| {
        let shape = pol(few(n), 3, Fields::PrimePowers, Points::Affine);
        shape.map(|shape| shape.cells())
    };
    let first = 8.min(last);
    let shorter = |bits: Option<u64>, n: u64| bits.is_some_and(|bits| bits < egh[n as usize]);
    Ok([runs(first, last, |n| shorter(squares(n), n)), runs(first, last, |n| shorter(cubes(n), n))])
}

/// The length of the residues by the paper's rule, for one universe after the other.
struct Primes {
    members: u64,
    product: Big,
    next: u64,
    sum: u64,
}

impl Primes {
    fn new(members: u64) -> Self {
        Primes { members, product: Big::one(), next: 2, sum: 0 }
    }

    /// For a universe no smaller than the last one.
    fn bits(&mut self, universe: u64) -> u64 {
        let target = Big::power(universe, self.members);
        while self.product < target {
            if prime_power(self.next).is_some_and(|(_, exponent)| exponent == 1) {
                self.product.multiply(self.next);
                self.sum += self.next;
            }
            self.next += 1;
        }
        self.sum
    }
}

/// A number of any size, without leading zeros: the lowest 32 bits first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Big(Vec<u32>);

impl Big {
    fn one() -> Self {
        Big(vec![1])
    }

    fn power(base: u64, exponent: u64) -> Self {
        let mut power = Big::one();
        (0..exponent).for_each(|_| power.multiply(base));
        power
    }

    fn multiply(&mut self, by: u64) {
        let mut carry = 0u128;
        for digit in &mut self.0 {
            carry += u128::from(*digit) * u128::from(by);
            *digit = carry as u32;
            carry >>= 32;
        }
        while carry > 0 {
            self.0.push(carry as u32);
            carry >>= 32;
        }
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        let longer = self.0.len().cmp(&other.0.len());
        Some(longer.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())))
    }
}

/// The share of strangers that pass Latin squares beyond their zone, by the paper's equation 3: each
/// member matches in one group at the most.
pub fn ols_rate(order: u32, groups: u32, members: u64) -> f64 {
    let miss = 1.0 - 1.0 / f64::from(order);
    (0..u64::from(groups)).map(|i| 1.0 - miss.powf(members.saturating_sub(i) as f64)).product()
}

/// The same by its equation 4: groups that know nothing of each other.
pub fn independent_rate(order: u32, groups: u32, members: u64) -> f64 {
    groups_rate([order.into()].into_iter(), members).powf(groups.into())
}
