//! Orthogonal Latin squares: any two elements share at most one cell.
//!
//! The elements fill a square of order `s` row by row. Group 0 is the row and group 1 the column.
//! Each further group is a Latin square `lam * row + col`, with `lam = 1, 2, ..` over GF(s). Within
//! a square no value occurs twice in a row or column. In two superposed squares no pair of values
//! occurs twice.
//! ```text
//! s = 5    row+col  0 1 2 3 4    2row+col  0 1 2 3 4     superposed  0,0 1,1 2,2 3,3 4,4
//!                   1 2 3 4 0              2 3 4 0 1                 1,2 2,3 3,4 4,0 0,1
//!                   2 3 4 0 1              4 0 1 2 3                 2,4 3,0 4,1 0,2 1,3
//! ```
//! Covering an element takes a different element for each of its `d + 1` groups. So `(d + 1) s`
//! cells have a zone of `d`, up to `d = s` for a prime power `s`. Integers modulo 16 would not do,
//! because `2 * row` is no permutation of them.
//!
//! For any other order, the squares are products: MacNeish, Annals of Mathematics 1922. `s` is a
//! product of prime powers. A row, a column and `lam` then have one part in the field of each power,
//! and `lam` is the same number in all of them. The smallest power limits the
//! zone: 2 for 6 = 2 * 3, 3 for 12 = 4 * 3, and 4 for 20 = 4 * 5.
//! The next prime power costs a sixth more cells for 6 and 15 % more for 20. [`Shape::least`] takes
//! the least order with enough squares. The row group has only the rows in use.
//!
//! A row and a column are the values at infinity and at zero of a polynomial with two coefficients.
//! This code is therefore [`Pol`](super::Pol) with `t = 2` and its groups in another order.

use super::{
    code::{self, Code, Columns, Found},
    field::{ORDER_MAX, points},
    pol::{self, Curve, Digits, Infinity},
};
use crate::Infeasible;

/// The integers that fix a code of Latin squares.
///
/// ```
/// use sidon::zone::ols::Shape;
///
/// // Three of 256 hosts: four groups of 16 cells.
/// assert_eq!(Shape::least(256, 3), Some(Shape { universe: 256, order: 16, groups: 4 }));
/// // Three of 144: squares of order 12 suffice. Four need order 13.
/// assert_eq!(Shape::least(144, 3), Some(Shape { universe: 144, order: 12, groups: 4 }));
/// assert_eq!(Shape::least(144, 4), Some(Shape { universe: 144, order: 13, groups: 5 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of elements: at most `order^2`.
    pub universe: u64,
    /// The side of the squares: 2 to 2^16.
    pub order: u32,
    /// The number of groups: 1 to `p + 1`, with `p` the smallest of the prime powers whose product is
    /// `order`, one of each prime. A prime power allows `order + 1`.
    pub groups: u32,
}

impl Shape {
    /// The shape with the fewest cells for a zone of `members`. `None` above the largest order.
    #[doc(hidden)]
    pub fn least(universe: u64, members: u64) -> Option<Self> {
        let side = universe.isqrt() + u64::from(universe.isqrt().pow(2) < universe);
        let mut orders = side.max(members).max(2)..=ORDER_MAX;
        let order = orders.find(|&order| points(order) >= members)? as u32;
        Some(Shape { universe, order, groups: members as u32 + 1 })
    }

    /// The equivalent shape of polynomials, which has the groups in another order.
    pub(super) fn polynomials(&self) -> pol::Shape {
        let Shape { universe, order, groups } = *self;
        pol::Shape { universe, order, digits: 2, groups, infinity: true }
    }
}

/// A code of Latin squares. See the [module](self).
///
/// ```
/// use sidon::zone::{Code, Ols, ols::Shape};
///
/// let code = Ols::new(Shape { universe: 256, order: 16, groups: 4 })?;
/// assert_eq!(code.zone(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Ols {
    shape: Shape,
    curve: Curve,
    columns: Columns,
}

impl Ols {
    /// The code of this shape.
    pub fn new(shape: Shape) -> Result<Self, Infeasible> {
        let curve = Curve::new(shape.polynomials(), Infinity::First)?;
        Ok(Ols { shape, curve, columns: Columns::default() })
    }
}

impl Code for Ols {
    fn shape(&self) -> code::Shape {
        code::Shape::Ols(self.shape)
    }
    fn zone(&self) -> u64 {
        self.curve.zone()
    }
    type Split = Digits;
    fn of(shape: &code::Shape) -> Option<Result<Self, Infeasible>> {
        if let code::Shape::Ols(shape) = shape { Some(Ols::new(*shape)) } else { None }
    }
    fn universe(&self) -> u64 {
        self.curve.universe()
    }

    fn groups(&self) -> u32 {
        self.curve.groups()
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
