//! A code maps each number of a universe to one cell in each of several groups.
//!
//! ```text
//! element --split--> | group 0: . . 1 . | group 1: 1 . . . | group 2: . . . 1 |
//! ```
//! The cells of an element are its column. A code has a zone of `d` if no column is covered by the
//! union of `d` others; that is a property of the code alone, proven and not sampled. Cells are
//! numbered through: group after group, in each by value.
//!
//! The union of at most `d` columns can be taken apart again. A few groups determine the element,
//! so the values found in them give all candidates, and those whose other cells are set too are the
//! members: [`list`].

use super::{Egh, Ols, Pol, egh, ols, pol};
use crate::Infeasible;
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

/// A mapping of the numbers `0..universe` to cells.
pub trait Code: Clone + fmt::Debug + PartialEq + Sized {
    /// What all cells of an element are computed from.
    type Split: Copy;

    /// The code of this shape; nothing for a shape of another family.
    fn of(shape: &Shape) -> Option<Result<Self, Infeasible>>;

    /// The integers that fix it.
    fn shape(&self) -> Shape;

    /// How many elements there are.
    fn universe(&self) -> u64;

    /// How many groups: the cells of an element.
    fn groups(&self) -> u32;

    /// Where a group's cells start; for the number of groups, how many cells there are in all.
    fn start(&self, group: u32) -> u64;

    /// How many others never cover an element, proven.
    fn zone(&self) -> u64;

    /// Prepares an element below the universe.
    fn split(&self, element: u64) -> Self::Split;

    /// The cell of a prepared element in a group.
    fn position(&self, split: Self::Split, group: u32) -> u64;

    /// The share of other elements that are covered by this many random ones, on average.
    fn rate(&self, members: u64) -> f64;

    /// Calls `visit` with every element whose cells may all be among those found, and others; or
    /// does nothing if there are fewer elements than combinations to try.
    fn candidates(&self, found: &Found, visit: &mut dyn FnMut(u64));

    /// How many elements `candidates` would visit.
    fn work(&self, found: &Found) -> u64;

    /// The columns as words, if the code is small enough to keep them.
    fn columns(&self) -> &Columns;

    /// How many cells there are.
    fn cells(&self) -> u64 {
        self.start(self.groups())
    }

    /// The cells of an element as the bits of a word; nothing if they do not fit or the universe
    /// is above [`COLUMNS_MOST`].
    #[inline]
    fn column(&self, element: u64) -> Option<u64> {
        if self.cells() > 64 || self.universe() > COLUMNS_MOST {
            return None;
        }
        let columns = self.columns().0.get_or_init(|| {
            let column = |element| {
                let split = self.split(element);
                (0..self.groups()).fold(0, |word, group| word | 1 << self.position(split, group))
            };
            (0..self.universe()).map(column).collect()
        });
        columns.get(element as usize).copied()
    }

    /// The cells of an element below the universe, one a group.
    fn positions(&self, element: u64) -> impl Iterator<Item = u64> + '_ {
        let split = self.split(element);
        (0..self.groups()).map(move |group| self.position(split, group))
    }
}

/// The largest universe whose columns are kept as words, eight bytes each.
pub const COLUMNS_MOST: u64 = 1 << 12;

/// The columns of a small code, made when they are first asked for and shared by its clones.
#[derive(Debug, Clone, Default)]
pub struct Columns(Arc<OnceLock<Box<[u64]>>>);

/// Columns follow from the shape.
impl PartialEq for Columns {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The values found in each group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found(Vec<Vec<u64>>);

impl Found {
    /// The values whose cells are set.
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

    /// The most values in any group: there are at least as many members.
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

    /// How many ways there are to pick one value in each of these groups.
    pub(super) fn ways(&self, groups: &[u32]) -> u64 {
        let ways =
            |product: u64, &group: &u32| product.saturating_mul(self.values(group).len() as u64);
        groups.iter().fold(1, ways)
    }
}

/// Every element whose cells are all set, in order; nothing if that would take more than `budget`
/// elements to look at. Members are always among them; inside the zone they are nothing else.
pub fn list<C: Code>(code: &C, is_set: impl Fn(u64) -> bool, budget: u64) -> Option<Vec<u64>> {
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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// An [`Egh`].
    Egh(egh::Shape),
    /// An [`Ols`].
    Ols(ols::Shape),
    /// A [`Pol`].
    Pol(pol::Shape),
}

impl Shape {
    /// The family's name in tables and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Shape::Egh(_) => "egh",
            Shape::Ols(_) => "ols",
            Shape::Pol(_) => "pol",
        }
    }

    /// How many elements there are.
    pub fn universe(&self) -> u64 {
        match self {
            Shape::Egh(shape) => shape.universe,
            Shape::Ols(shape) => shape.universe,
            Shape::Pol(shape) => shape.universe,
        }
    }

    /// How many cells an element has.
    pub fn groups(&self) -> u64 {
        match self {
            Shape::Egh(shape) => shape.moduli.len() as u64,
            Shape::Ols(shape) => shape.groups.into(),
            Shape::Pol(shape) => shape.groups.into(),
        }
    }

    /// How many cells there are, without building the code.
    pub fn cells(&self) -> u64 {
        match self {
            Shape::Egh(shape) => shape.cells(),
            Shape::Ols(shape) => shape.polynomials().cells(),
            Shape::Pol(shape) => shape.cells(),
        }
    }
}

/// A code of any family, for those who learn which at run time: when an image is read, or a plan
/// has chosen.
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

/// What [`Any`] computes an element's cells from.
#[derive(Debug, Clone, Copy)]
pub enum AnySplit {
    /// The element itself.
    Egh(u64),
    /// Its digits.
    Digits(pol::Digits),
}

macro_rules! each {
    ($self:expr, $code:ident => $do:expr) => {
        match $self {
            Any::Egh($code) => $do,
            Any::Ols($code) => $do,
            Any::Pol($code) => $do,
        }
    };
}

impl Code for Any {
    type Split = AnySplit;

    fn of(shape: &Shape) -> Option<Result<Self, Infeasible>> {
        match shape {
            Shape::Egh(_) => Egh::of(shape).map(|code| code.map(Any::Egh)),
            Shape::Ols(_) => Ols::of(shape).map(|code| code.map(Any::Ols)),
            Shape::Pol(_) => Pol::of(shape).map(|code| code.map(Any::Pol)),
        }
    }
    fn shape(&self) -> Shape {
        each!(self, code => Code::shape(code))
    }
    fn universe(&self) -> u64 {
        each!(self, code => code.universe())
    }
    fn groups(&self) -> u32 {
        each!(self, code => code.groups())
    }
    fn start(&self, group: u32) -> u64 {
        each!(self, code => code.start(group))
    }
    fn zone(&self) -> u64 {
        each!(self, code => code.zone())
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
        each!(self, code => code.rate(members))
    }
    fn candidates(&self, found: &Found, visit: &mut dyn FnMut(u64)) {
        each!(self, code => code.candidates(found, visit));
    }
    fn work(&self, found: &Found) -> u64 {
        each!(self, code => code.work(found))
    }
    fn columns(&self) -> &Columns {
        each!(self, code => code.columns())
    }
}
