//! Polynomials over a finite field: any two agree in fewer points than they have coefficients.
//!
//! The base-`q` digits of an element are the `t` coefficients of a polynomial over GF(q). Its cell
//! in group `j` is the polynomial's value at the field's element `j`. The point at infinity gives
//! one more group: its value is the leading coefficient.
//! ```text
//! q = 7, t = 3     50 = 1 + 0*7 + 1*49     1 + x^2     values 1 2 5 3 3 at x = 0 1 2 3 4
//! ```
//! Two polynomials that agree in `t` points are equal. An element therefore shares at most `t - 1`
//! cells with another, and `(t - 1) d + 1` groups have a zone of `d`. The points must be distinct,
//! so there are at most `q` groups, `q + 1` with infinity. The paper's condition of fewer than `q`
//! excludes sound codes. Its lengths for 7 and 15 members of 256 take 15 and 31 points modulo 7,
//! which repeat points. Those filters have a zone of 3; a test has four elements that cover a
//! fifth.
//!
//! The group at infinity has only the leading coefficients that occur: six of seven for 256
//! elements at `q = 7, t = 3`, which makes 48 bits instead of 49.
//!
//! This is a Reed-Solomon code with one-hot symbols: Kautz and Singleton, 1964.

use super::{
    UNIVERSE_MAX,
    code::{self, Code, Columns, Found},
    field::{Field, ORDER_MAX},
};
use crate::{Infeasible, plan};

/// The most coefficients. Sixteen digits of a base above 16 represent every 64-bit number, and
/// smaller fields have at most 17 points.
pub(crate) const DIGITS_MAX: u32 = 16;

/// The integers that fix a code of polynomials.
///
/// ```
/// use sidon::zone::pol::Shape;
///
/// let shape = Shape { universe: 512, order: 8, digits: 3, groups: 7, infinity: false };
/// assert_eq!((shape.cells(), shape.zone()), (56, 3));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of elements: at most `order^digits`.
    pub universe: u64,
    /// The order of the field, a prime power.
    pub order: u32,
    /// The number of coefficients: 2 to 16.
    pub digits: u32,
    /// The number of groups: 1 to `order`, or `order + 1` with infinity.
    pub groups: u32,
    /// Whether the last group is the point at infinity.
    pub infinity: bool,
}

impl Shape {
    /// The number of cells.
    #[doc(hidden)]
    pub fn cells(&self) -> u64 {
        let affine = u64::from(self.groups).saturating_sub(self.infinity.into());
        let last = if self.infinity { self.leading() } else { 0 };
        affine.saturating_mul(self.order.into()).saturating_add(last)
    }

    /// The number of leading coefficients that occur.
    fn leading(&self) -> u64 {
        let places = u64::from(self.order).saturating_pow(self.digits.saturating_sub(1)).max(1);
        self.universe.div_ceil(places)
    }

    /// The number of other elements that never cover an element.
    #[doc(hidden)]
    pub fn zone(&self) -> u64 {
        u64::from(self.groups.saturating_sub(1) / self.digits.saturating_sub(1).max(1))
    }

    fn check(&self) -> Result<(), Infeasible> {
        Infeasible::unless_within("order", self.order.into(), 2, ORDER_MAX)?;
        Infeasible::unless_within("digits", self.digits.into(), 2, DIGITS_MAX.into())?;
        let points = u64::from(self.order) + u64::from(self.infinity);
        Infeasible::unless_within("groups", self.groups.into(), 1, points)?;
        let all = u64::from(self.order).saturating_pow(self.digits);
        Infeasible::unless_within("universe", self.universe, 1, all.min(UNIVERSE_MAX))
    }
}

/// The coefficients of an element.
pub(super) type Digits = [u16; DIGITS_MAX as usize];

/// A code of polynomials. See the [module](self).
///
/// ```
/// use sidon::zone::{Code, Pol, pol::Shape};
///
/// let shape = Shape { universe: 512, order: 8, digits: 3, groups: 7, infinity: false };
/// let code = Pol::new(shape)?;
/// assert_eq!(code.zone(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Pol {
    shape: Shape,
    curve: Curve,
    columns: Columns,
}

impl Pol {
    /// The code of this shape.
    pub fn new(shape: Shape) -> Result<Self, Infeasible> {
        let infinity = if shape.infinity { Infinity::Last } else { Infinity::Absent };
        let curve = Curve::new(shape, infinity)?;
        Ok(Pol { shape, curve, columns: Columns::default() })
    }
}

/// Which group is the point at infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Infinity {
    Absent,
    First,
    Last,
}

/// The code that [`Pol`] and [`Ols`](super::Ols) share. They differ in the order of their groups.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    field: Field,
    universe: u64,
    digits: u32,
    groups: u32,
    infinity: Infinity,
    /// The number of leading coefficients that occur, which is the size of the group at infinity.
    leading: u64,
    zone: u64,
    /// Whether every polynomial is an element.
    full: bool,
}

impl Curve {
    pub(super) fn new(shape: Shape, infinity: Infinity) -> Result<Self, Infeasible> {
        shape.check()?;
        let Shape { universe, order, digits, groups, .. } = shape;
        let field = match infinity {
            Infinity::First => Field::product(order.into())?,
            _ => Field::new(order.into())?,
        };
        let points = field.points() + u32::from(infinity != Infinity::Absent);
        Infeasible::unless_within("groups", groups.into(), 1, points.into())?;
        Ok(Curve {
            field,
            universe,
            digits,
            groups,
            infinity,
            leading: shape.leading(),
            zone: shape.zone(),
            full: u64::from(order).checked_pow(digits) == Some(universe),
        })
    }

    pub(super) fn universe(&self) -> u64 {
        self.universe
    }

    pub(super) fn groups(&self) -> u32 {
        self.groups
    }

    pub(super) fn zone(&self) -> u64 {
        self.zone
    }

    #[inline(always)]
    pub(super) fn start(&self, group: u32) -> u64 {
        let order = u64::from(self.field.order());
        match self.infinity {
            Infinity::First if group > 0 => self.leading + u64::from(group - 1) * order,
            Infinity::Last if group == self.groups => u64::from(group - 1) * order + self.leading,
            _ => u64::from(group) * order,
        }
    }

    #[inline(always)]
    pub(super) fn split(&self, mut element: u64) -> Digits {
        let order = u64::from(self.field.order());
        let mut digits = [0; DIGITS_MAX as usize];
        for digit in &mut digits[..self.digits as usize] {
            // Below 2^16, the largest order.
            *digit = (element % order) as u16;
            element /= order;
        }
        digits
    }

    #[inline(always)]
    pub(super) fn position(&self, digits: Digits, group: u32) -> u64 {
        let all = &digits[..self.digits as usize];
        let value = match self.point(group) {
            None => all[all.len() - 1].into(),
            // By Horner.
            Some(x) => all
                .iter()
                .rev()
                .fold(0, |value, &digit| self.field.add(self.field.mul(value, x), digit.into())),
        };
        self.start(group) + u64::from(value)
    }

    /// The field element that a group evaluates at. `None` at infinity.
    #[inline(always)]
    fn point(&self, group: u32) -> Option<u32> {
        match self.infinity {
            // A group of Latin squares may be a point of a product of fields.
            Infinity::First => group.checked_sub(1).map(|number| self.field.point(number)),
            Infinity::Last if group + 1 == self.groups => None,
            _ => Some(group),
        }
    }

    pub(super) fn rate(&self, members: u64) -> f64 {
        let order = self.field.order();
        if self.full
            && let Some(rate) = plan::pol_rate(order, self.digits, self.groups, members)
        {
            return rate;
        }
        let size = |group| self.start(group + 1) - self.start(group);
        plan::groups_rate((0..self.groups).map(size), members)
    }

    /// The `digits` groups with the fewest values: enough to determine an element.
    fn narrowest(&self, found: &Found) -> Vec<u32> {
        let mut groups: Vec<u32> = (0..self.groups).collect();
        groups.sort_by_key(|&group| found.values(group).len());
        groups.truncate(self.digits as usize);
        groups
    }

    pub(super) fn work(&self, found: &Found) -> u64 {
        if self.groups < self.digits {
            return u64::MAX;
        }
        found.ways(&self.narrowest(found))
    }

    /// Visits every polynomial through one of the found values in each of the narrowest groups.
    pub(super) fn candidates(&self, found: &Found, visit: &mut dyn FnMut(u64)) {
        let groups = self.narrowest(found);
        if groups.len() < self.digits as usize {
            return;
        }
        let columns = self.inverse(&groups);
        let sum = vec![0; groups.len()];
        self.combine(found, &groups, &columns, &sum, visit);
    }

    fn combine(
        &self,
        found: &Found,
        groups: &[u32],
        columns: &[Vec<u32>],
        sum: &[u32],
        visit: &mut dyn FnMut(u64),
    ) {
        let ([group, groups @ ..], [column, columns @ ..]) = (groups, columns) else {
            let order = u64::from(self.field.order());
            // A number above 64 bits is above the universe, so it is no element.
            let element = sum.iter().rev().try_fold(0u64, |element, &digit| {
                element.checked_mul(order)?.checked_add(digit.into())
            });
            return element.into_iter().for_each(visit);
        };
        for &value in found.values(*group) {
            let add =
                |(&sum, &c): (&u32, &u32)| self.field.add(sum, self.field.mul(c, value as u32));
            let sum: Vec<u32> = sum.iter().zip(column).map(add).collect();
            self.combine(found, groups, columns, &sum, visit);
        }
    }

    /// The coefficients that a value of 1 in each of these groups adds: the columns of the inverse
    /// of the evaluation matrix, by elimination.
    fn inverse(&self, groups: &[u32]) -> Vec<Vec<u32>> {
        let (field, t) = (&self.field, groups.len());
        let one = field.point(1);
        let mut rows: Vec<Vec<u32>> = groups
            .iter()
            .enumerate()
            .map(|(i, &group)| {
                let mut row = vec![0; 2 * t];
                match self.point(group) {
                    None => row[t - 1] = one,
                    Some(x) => {
                        let mut power = one;
                        for place in &mut row[..t] {
                            *place = power;
                            power = field.mul(power, x);
                        }
                    }
                }
                row[t + i] = one;
                row
            })
            .collect();
        for column in 0..t {
            let pivot = (column..t).find(|&row| field.inverse(rows[row][column]).is_some());
            rows.swap(column, pivot.expect("values at distinct points determine a polynomial"));
            let lead = field.inverse(rows[column][column]).expect("the pivot has an inverse");
            for place in &mut rows[column] {
                *place = field.mul(*place, lead);
            }
            let pivot = rows[column].clone();
            for (_, row) in rows.iter_mut().enumerate().filter(|&(i, _)| i != column) {
                let factor = field.negative(row[column]);
                for (place, &by) in row.iter_mut().zip(&pivot) {
                    *place = field.add(*place, field.mul(factor, by));
                }
            }
        }
        (0..t).map(|i| rows.iter().map(|row| row[t + i]).collect()).collect()
    }
}

impl Code for Pol {
    fn shape(&self) -> code::Shape {
        code::Shape::Pol(self.shape)
    }
    fn zone(&self) -> u64 {
        self.curve.zone
    }
    type Split = Digits;
    fn of(shape: &code::Shape) -> Option<Result<Self, Infeasible>> {
        if let code::Shape::Pol(shape) = shape { Some(Pol::new(*shape)) } else { None }
    }
    fn universe(&self) -> u64 {
        self.curve.universe
    }

    fn groups(&self) -> u32 {
        self.curve.groups
    }
    #[inline(always)]
    fn start(&self, group: u32) -> u64 {
        self.curve.start(group)
    }
    #[inline(always)]
    fn split(&self, element: u64) -> Digits {
        self.curve.split(element)
    }
    #[inline(always)]
    fn position(&self, split: Digits, group: u32) -> u64 {
        self.curve.position(split, group)
    }
    fn rate(&self, members: u64) -> f64 {
        self.curve.rate(members)
    }
    fn candidates(&self, found: &Found, visit: &mut dyn FnMut(u64)) {
        self.curve.candidates(found, visit);
    }
    fn work(&self, found: &Found) -> u64 {
        self.curve.work(found)
    }
    fn columns(&self) -> &Columns {
        &self.columns
    }
}
