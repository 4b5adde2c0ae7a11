//! Orthogonal Latin squares: any two elements share at most one cell.
//!
//! The elements fill a square of order `s` row by row. Group 0 is the row and group 1 the column.
//! Each further group is a Latin square `lam * row + col` over GF(s), with `lam = 1, 2, ..`. Within
//! a square no value occurs twice in a row or column. In two superposed squares no pair of values
//! occurs twice.
//! ```text
//! s = 5    row+col  0 1 2 3 4    2row+col  0 1 2 3 4     superposed  0,0 1,1 2,2 3,3 4,4
//!                   1 2 3 4 0              2 3 4 0 1                 1,2 2,3 3,4 4,0 0,1
//!                   2 3 4 0 1              4 0 1 2 3                 2,4 3,0 4,1 0,2 1,3
//! ```
//! Covering an element takes a different element for each of its `d + 1` groups. So `(d + 1) s`
//! cells have a zone of `d`, up to `d = s`. The squares exist for every prime power `s`. Integers
//! modulo 16 would not do, because `2 * row` is no permutation of them. [`Shape::least`] rounds any
//! other order up to the next prime power. That costs a sixth more cells for 6, at most 15 % for
//! orders of at least 8 (20 becomes 23) and 6.5 % for orders of at least 128. The row group has
//! only the rows in use.
//!
//! A row and a column are the values at infinity and at zero of a polynomial with two coefficients.
//! This code is therefore [`Pol`](super::Pol) with `t = 2` and its groups in another order.

use super::{
    code::{self, Cells, Code, Columns, Found},
    field::next_prime_power,
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
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of elements: at most `order^2`.
    pub universe: u64,
    /// The side of the squares, a prime power.
    pub order: u32,
    /// The number of groups: 1 to `order + 1`.
    pub groups: u32,
}

impl Shape {
    /// The shape with the fewest cells for a zone of `members`. `None` above the largest order.
    #[doc(hidden)]
    pub fn least(universe: u64, members: u64) -> Option<Self> {
        let side = universe.isqrt() + u64::from(universe.isqrt().pow(2) < universe);
        let order = next_prime_power(side.max(members))? as u32;
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
}

impl Cells for Ols {
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
