//! Zone codes: the fewest cells that hold `members` numbers below `universe` without a false positive.
//!
//! A polynomial code of `t` digits takes `(t - 1) d + 1` groups of `q` cells, so the least field with
//! `q^t >= n` and enough points is best for each `t`. The residues by the paper's rule are the first
//! primes whose product reaches `n^d`. Shorter ones of other coprime moduli are searched for.
//!
//! A code has members that are united or added without decoding. To store the members and no more, a
//! list of them is shorter: `members * log2(universe)` bits.

use super::zone_search;
use crate::{
    Infeasible,
    zone::{
        Shape, UNIVERSE_MAX, egh,
        field::{ORDER_MAX, prime_power},
        ols,
        pol::{self, DIGITS_MAX},
    },
};

/// The requirements on a zone: sets that are stored without a false positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Keys are the numbers below this.
    pub universe: u64,
    /// The most keys of a set.
    pub members: u64,
}

/// The most moduli that are searched for.
const SEARCHED_MAX: u64 = 512;
/// The most members of a plan.
const MEMBERS_MAX: u64 = 1024;

impl Target {
    fn check(self) -> Result<(), Infeasible> {
        Infeasible::unless_within("universe", self.universe, 2, UNIVERSE_MAX)?;
        Infeasible::unless_within("members", self.members, 1, MEMBERS_MAX.min(self.universe))
    }
}

/// The codes that have this zone, the fewest cells first.
///
/// There is at most one code of each kind: the [first primes](first_primes), other coprime moduli, Latin
/// squares, polynomials, and polynomials whose last group is cut at the point at infinity.
///
/// ```
/// use sidon::{plan::zone::{self, Target}, zone::Shape};
///
/// // Three of 256: 48 cells of polynomials over GF(7), cut, and 49 cells uncut; 64 of Latin squares; 70
/// // of coprime moduli; 100 of the first primes. Table 6 of Rottenstreich et al., and shorter codes.
/// let codes = zone::shapes(Target { universe: 256, members: 3 })?;
/// assert_eq!(codes.iter().map(Shape::cells).collect::<Vec<_>>(), [48, 49, 64, 70, 100]);
/// assert!(matches!(codes[0], Shape::Pol(pol) if pol.order == 7 && pol.digits == 3));
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shapes(target: Target) -> Result<Vec<Shape>, Infeasible> {
    let mut shapes = vec![Shape::Egh(first_primes(target)?)];
    shapes.extend(coprime(target).map(Shape::Egh));
    shapes.extend(ols::Shape::least(target.universe, target.members).map(Shape::Ols));
    let plain = polynomials(target, Infinity::IfNeeded);
    shapes.extend(plain.map(Shape::Pol));
    let cut = polynomials(target, Infinity::Always);
    let shorter = cut.filter(|cut| plain.is_none_or(|plain| cut.cells() < plain.cells()));
    shapes.extend(shorter.map(Shape::Pol));
    shapes.sort_by_key(Shape::cells);
    Ok(shapes)
}

/// The shortest code of polynomials or Latin squares; `None` if there is none.
pub(crate) fn least_polynomials(universe: u64, members: u64) -> Option<Shape> {
    let target = Target { universe, members };
    target.check().ok()?;
    let ols = ols::Shape::least(universe, members).map(Shape::Ols);
    let pol = polynomials(target, Infinity::Always).map(Shape::Pol);
    ols.into_iter().chain(pol).min_by_key(Shape::cells)
}

/// The shortest code of polynomials of any number of digits.
fn polynomials(target: Target, infinity: Infinity) -> Option<pol::Shape> {
    let all = (2..=DIGITS_MAX).take_while(|&digits| groups(target, digits) <= ORDER_MAX + 1);
    let shapes = all.filter_map(|digits| of_digits(target, digits, infinity));
    shapes.min_by_key(|shape| (shape.cells(), shape.groups))
}

/// When a code uses the point at infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Infinity {
    /// If a smaller field suffices with it.
    IfNeeded,
    /// Always: its group is the shortest.
    Always,
}

/// The groups that polynomials of `digits` digits need.
fn groups(target: Target, digits: u32) -> u64 {
    u64::from(digits - 1) * target.members + 1
}

/// The polynomials of `digits` digits over the least field.
fn of_digits(target: Target, digits: u32, infinity: Infinity) -> Option<pol::Shape> {
    let groups = groups(target, digits);
    let reaches = |q: &u64| u128::from(*q).saturating_pow(digits) >= target.universe.into();
    let first = (groups - 1).max(2).max(root(target.universe, digits));
    let order = (first..=ORDER_MAX).filter(reaches).find(|&order| prime_power(order).is_some())?;
    let infinity = infinity == Infinity::Always || groups > order;
    let (universe, order, groups) = (target.universe, order as u32, groups as u32);
    Some(pol::Shape { universe, order, digits, groups, infinity })
}

/// A number not far below the `digits`-th root of `n`.
fn root(n: u64, digits: u32) -> u64 {
    ((n as f64).powf(1.0 / f64::from(digits)) as u64).saturating_sub(1)
}

/// The first primes whose product is `universe^members` or more: the paper's rule for residues.
///
/// ```
/// use sidon::plan::zone::{self, Target};
///
/// // 2 * 3 * 5 * 7 * 11 * 13 * 17 * 19 * 23 is at least 256^3, and without the 23 it is not.
/// let shape = zone::first_primes(Target { universe: 256, members: 3 })?;
/// assert_eq!(shape.moduli, [2, 3, 5, 7, 11, 13, 17, 19, 23]);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
#[doc(hidden)]
pub fn first_primes(target: Target) -> Result<egh::Shape, Infeasible> {
    target.check()?;
    let least = Big::power(target.universe, target.members);
    let (mut product, mut moduli) = (Big::one(), Vec::new());
    let mut prime = 2;
    while product < least {
        if prime_power(prime).is_some_and(|(_, exponent)| exponent == 1) {
            product.multiply(prime);
            moduli.push(prime as u32);
        }
        prime += 1;
    }
    Ok(egh::Shape { universe: target.universe, moduli })
}

/// Pairwise coprime moduli with the least sum that a search of fixed length finds: `(t - 1) d + 1` of
/// them, any `t` of which multiply to the universe or more, over all `t`.
fn coprime(target: Target) -> Option<egh::Shape> {
    target.check().ok()?;
    let mut best: Option<Vec<u32>> = None;
    let sum = |moduli: &[u32]| moduli.iter().map(|&m| u64::from(m)).sum::<u64>();
    for digits in 2..=DIGITS_MAX {
        let groups = groups(target, digits);
        // The least sum of so many numbers from 2 up rules out all that follow.
        let bound = best.as_deref().map_or(u64::MAX, sum);
        if groups > SEARCHED_MAX || groups.saturating_mul(groups) / 2 >= bound {
            break;
        }
        if let Some(moduli) = zone_search::moduli(target.universe, groups, digits, bound) {
            best = Some(moduli);
        }
    }
    best.map(|moduli| egh::Shape { universe: target.universe, moduli })
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
