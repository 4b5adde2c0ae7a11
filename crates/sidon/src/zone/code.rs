//! A code maps each number of a universe to one cell in each of several groups.
//!
//! ```text
//! element --split--> | group 0: . . 1 . | group 1: 1 . . . | group 2: . . . 1 |
//! ```
//! The cells of an element are its column. A code has a zone of `d` if no union of `d` columns
//! covers another column. This is a proven property of the code and does not depend on the members.
//! Cells are numbered group by group, and by value within a group.
//!
//! The union of at most `d` columns can be decoded. A few groups determine the element, so the
//! values found in them give all candidates. The members are the candidates whose other cells are
//! set, too: [`list`].

use super::{Egh, Ols, Pol, egh, ols, pol};
use crate::Infeasible;
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

/// A mapping of the numbers `0..universe` to cells. Only the codes of this module implement it. Its
/// hidden methods may change.
///
/// ```
/// use sidon::{Infeasible, zone::{Code, Filter, Ols, ols}};
///
/// /// The bytes of a filter, for each element of its zone.
/// fn price<C: Code>(code: &C) -> Result<u64, Infeasible> {
///     Ok(Filter::new(code.clone())?.memory_bytes() / code.zone())
/// }
/// let code = Ols::new(ols::Shape { universe: 1_024, order: 32, groups: 4 })?;
/// assert_eq!((code.zone(), price(&code)?), (3, 5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Code: Clone + fmt::Debug + PartialEq + Sized {
    /// The integers that fix the code.
    fn shape(&self) -> Shape;

    /// The proven number of other elements that never cover an element.
    fn zone(&self) -> u64;

    /// An element in the form that its cells are computed from.
    #[doc(hidden)]
    type Split: Copy;

    /// The code of this shape, or `None` for a shape of another family.
    #[doc(hidden)]
    fn of(shape: &Shape) -> Option<Result<Self, Infeasible>>;

    /// The number of elements.
    #[doc(hidden)]
    fn universe(&self) -> u64;

    /// The number of cells.
    #[doc(hidden)]
    fn cells(&self) -> u64 {
        self.start(self.groups())
    }

    /// The number of groups, which is the number of cells per element.
    #[doc(hidden)]
    fn groups(&self) -> u32;

    /// The first cell of a group. For `group == groups()`, the number of cells of the code.
    #[doc(hidden)]
    fn start(&self, group: u32) -> u64;

    /// Prepares an element below the universe.
    #[doc(hidden)]
    fn split(&self, element: u64) -> Self::Split;

    /// The cell of a prepared element in a group.
    #[doc(hidden)]
    fn position(&self, split: Self::Split, group: u32) -> u64;

    /// The average share of other elements that `members` random elements cover.
    #[doc(hidden)]
    fn rate(&self, members: u64) -> f64;

    /// Calls `visit` with every element whose cells may all be among those found, and possibly with
    /// further ones. Does nothing if the groups cannot determine an element.
    #[doc(hidden)]
    fn candidates(&self, found: &Found, visit: &mut dyn FnMut(u64));

    /// The number of elements that `candidates` would visit.
    #[doc(hidden)]
    fn work(&self, found: &Found) -> u64;

    /// The columns as words, if the code is small enough to keep them.
    #[doc(hidden)]
    fn columns(&self) -> &Columns;

    /// The cells of an element as the bits of words. `None` for more than 512 cells or a universe
    /// above 2^12.
    #[inline]
    #[doc(hidden)]
    fn column(&self, element: u64) -> Option<&[u64]> {
        let kept = &self.columns().0;
        let columns = match kept.get() {
            Some(columns) => columns,
            None if self.cells() > 64 * WORDS_MAX || self.universe() > COLUMNS_MAX => return None,
            None => kept.get_or_init(|| self.computed_columns()),
        };
        columns.words.get(element as usize * columns.each..)?.get(..columns.each)
    }

    /// The columns of all elements.
    #[cold]
    #[doc(hidden)]
    fn computed_columns(&self) -> Words {
        let each = self.cells().div_ceil(64) as usize;
        let mut words = vec![0; self.universe() as usize * each];
        for (element, column) in (0..).zip(words.chunks_exact_mut(each)) {
            for cell in self.positions(element) {
                column[cell as usize / 64] |= 1 << (cell % 64);
            }
        }
        Words { each, words: words.into() }
    }

    /// The cells of an element below the universe, one per group.
    #[doc(hidden)]
    fn positions(&self, element: u64) -> impl Iterator<Item = u64> + '_ {
        let split = self.split(element);
        (0..self.groups()).map(move |group| self.position(split, group))
    }
}

/// The largest universe whose columns are kept as words.
pub(crate) const COLUMNS_MAX: u64 = 1 << 12;
/// The most words of a column: one cache line. All columns fit in 256 KiB.
const WORDS_MAX: u64 = 8;

/// The columns of a small code, computed at first use and shared by its clones.
#[derive(Debug, Clone, Default)]
pub struct Columns(Arc<OnceLock<Words>>);

/// One column after the other, of `each` words.
#[derive(Debug)]
pub struct Words {
    each: usize,
    words: Box<[u64]>,
}

/// Always equal: columns follow from the shape, which is compared elsewhere.
impl PartialEq for Columns {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The values found in each group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found(Vec<Vec<u64>>);

impl Found {
    /// The values whose cells are set, by group.
    pub fn new<C: Code>(code: &C, is_set: impl Fn(u64) -> bool) -> Self {
        let values = |group| {
            let (start, end) = (code.start(group), code.start(group + 1));
            (start..end).filter(|&cell| is_set(cell)).map(|cell| cell - start).collect()
        };
        Found((0..code.groups()).map(values).collect())
    }

    /// The values in a group.
    pub fn values(&self, group: u32) -> &[u64] {
        &self.0[group as usize]
    }

    /// The most values in any group: a lower bound of the number of members.
    pub fn most(&self) -> u64 {
        self.0.iter().map(Vec::len).max().unwrap_or(0) as u64
    }

    /// The fewest values in any group.
    pub fn fewest(&self) -> u64 {
        self.0.iter().map(Vec::len).min().unwrap_or(0) as u64
    }

    /// The values in all groups.
    pub fn total(&self) -> u64 {
        self.0.iter().map(Vec::len).sum::<usize>() as u64
    }

    /// The number of combinations of one value from each of these groups.
    pub(super) fn ways(&self, groups: &[u32]) -> u64 {
        let ways =
            |product: u64, &group: &u32| product.saturating_mul(self.values(group).len() as u64);
        groups.iter().fold(1, ways)
    }
}

/// Every element whose cells are all set, in order. `None` if that takes more than `budget`
/// elements to check. All members are listed; inside the zone, only members are.
pub(super) fn list<C: Code>(
    code: &C,
    is_set: impl Fn(u64) -> bool,
    budget: u64,
) -> Option<Vec<u64>> {
    let found = Found::new(code, &is_set);
    list_found(code, &found, is_set, budget)
}

pub(super) fn list_found<C: Code>(
    code: &C,
    found: &Found,
    is_set: impl Fn(u64) -> bool,
    budget: u64,
) -> Option<Vec<u64>> {
    let mut members = Vec::new();
    if found.fewest() == 0 {
        return Some(members);
    }
    let work = code.work(found);
    if work.min(code.universe()) > budget {
        return None;
    }
    let mut look = |element: u64| {
        if element < code.universe() && code.positions(element).all(&is_set) {
            members.push(element);
        }
    };
    if code.universe() <= work {
        (0..code.universe()).for_each(look);
    } else {
        code.candidates(found, &mut look);
        members.sort_unstable();
        members.dedup();
    }
    Some(members)
}

/// The shape of a code of any family.
///
/// ```
/// use sidon::zone::{Shape, ols};
///
/// let shape = Shape::Ols(ols::Shape { universe: 256, order: 16, groups: 4 });
/// assert_eq!((shape.name(), shape.groups(), shape.cells()), ("ols", 4, 64));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Shape {
    /// An [`Egh`].
    Egh(egh::Shape),
    /// An [`Ols`].
    Ols(ols::Shape),
    /// A [`Pol`].
    Pol(pol::Shape),
}

impl Shape {
    /// The code of this shape.
    pub fn code(&self) -> Result<Any, Infeasible> {
        Ok(match self {
            Shape::Egh(shape) => Any::Egh(Egh::new(shape.clone())?),
            Shape::Ols(shape) => Any::Ols(Ols::new(*shape)?),
            Shape::Pol(shape) => Any::Pol(Pol::new(*shape)?),
        })
    }

    /// The family's name in tables and JSON.
    #[doc(hidden)]
    pub fn name(&self) -> &'static str {
        match self {
            Shape::Egh(_) => "egh",
            Shape::Ols(_) => "ols",
            Shape::Pol(_) => "pol",
        }
    }

    /// The number of elements.
    #[doc(hidden)]
    pub fn universe(&self) -> u64 {
        match self {
            Shape::Egh(shape) => shape.universe,
            Shape::Ols(shape) => shape.universe,
            Shape::Pol(shape) => shape.universe,
        }
    }

    /// The number of cells of an element.
    #[doc(hidden)]
    pub fn groups(&self) -> u64 {
        match self {
            Shape::Egh(shape) => shape.moduli.len() as u64,
            Shape::Ols(shape) => shape.groups.into(),
            Shape::Pol(shape) => shape.groups.into(),
        }
    }

    /// The number of cells, computed without building the code.
    #[doc(hidden)]
    pub fn cells(&self) -> u64 {
        match self {
            Shape::Egh(shape) => shape.cells(),
            Shape::Ols(shape) => shape.polynomials().cells(),
            Shape::Pol(shape) => shape.cells(),
        }
    }
}

/// A code of any family, chosen at run time by an image or a plan.
///
/// ```
/// use sidon::zone::{Code, Shape, ols};
///
/// let shape = Shape::Ols(ols::Shape { universe: 256, order: 16, groups: 4 });
/// let code = shape.code()?;
/// assert_eq!((code.zone(), code.shape()), (3, shape));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Any {
    /// Residues.
    Egh(Egh),
    /// Latin squares.
    Ols(Ols),
    /// Polynomials.
    Pol(Pol),
}

/// The form of an element that [`Any`] computes cells from.
#[derive(Debug, Clone, Copy)]
pub enum AnySplit {
    /// The element itself.
    Egh(u64),
    /// Its digits.
    Digits(pol::Digits),
}

macro_rules! with_code {
    ($self:expr, $code:ident => $do:expr) => {
        match $self {
            Any::Egh($code) => $do,
            Any::Ols($code) => $do,
            Any::Pol($code) => $do,
        }
    };
}

impl Code for Any {
    fn shape(&self) -> Shape {
        with_code!(self, code => Code::shape(code))
    }
    fn zone(&self) -> u64 {
        with_code!(self, code => code.zone())
    }
    type Split = AnySplit;
    fn of(shape: &Shape) -> Option<Result<Self, Infeasible>> {
        match shape {
            Shape::Egh(_) => Egh::of(shape).map(|code| code.map(Any::Egh)),
            Shape::Ols(_) => Ols::of(shape).map(|code| code.map(Any::Ols)),
            Shape::Pol(_) => Pol::of(shape).map(|code| code.map(Any::Pol)),
        }
    }
    fn universe(&self) -> u64 {
        with_code!(self, code => code.universe())
    }

    fn groups(&self) -> u32 {
        with_code!(self, code => code.groups())
    }
    fn start(&self, group: u32) -> u64 {
        with_code!(self, code => code.start(group))
    }
    fn split(&self, element: u64) -> AnySplit {
        match self {
            Any::Egh(code) => AnySplit::Egh(code.split(element)),
            Any::Ols(code) => AnySplit::Digits(code.split(element)),
            Any::Pol(code) => AnySplit::Digits(code.split(element)),
        }
    }
    fn position(&self, split: AnySplit, group: u32) -> u64 {
        match (self, split) {
            (Any::Egh(code), AnySplit::Egh(split)) => code.position(split, group),
            (Any::Ols(code), AnySplit::Digits(split)) => code.position(split, group),
            (Any::Pol(code), AnySplit::Digits(split)) => code.position(split, group),
            _ => unreachable!("an element is split by the code that places it"),
        }
    }
    fn rate(&self, members: u64) -> f64 {
        with_code!(self, code => code.rate(members))
    }
    fn candidates(&self, found: &Found, visit: &mut dyn FnMut(u64)) {
        with_code!(self, code => code.candidates(found, visit));
    }
    fn work(&self, found: &Found) -> u64 {
        with_code!(self, code => code.work(found))
    }
    fn columns(&self) -> &Columns {
        with_code!(self, code => code.columns())
    }
}
