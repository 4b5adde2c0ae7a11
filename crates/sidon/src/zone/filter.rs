//! A set of numbers without false positives while it holds few, which detects when that ends.
//!
//! Bits over a [`Code`]: inserting sets the bits of an element's column, and an element is
//! contained if all of them are set. With at most `zone` elements stored, both answers are facts
//! for every element of the universe. With more, it is a Bloom filter: `false` stays a fact, `true`
//! has an error rate.
//! ```text
//! 7 -> .1... ..1.. ...1. ....1
//! 0 -> 1.... 1.... 1.... 1....       | merged, and each can still be listed
//! ```
//! The filter detects which case holds. Inside the zone a new element always sets a new bit, so the
//! filter counts its elements as the insertions that set one. After a merge it lists the elements
//! whose bits are all set. If they are at most `zone`, they are exactly the members.
//!
//! A filter of up to 512 bits compares its words with the element's column: an AND and a population
//! count for each word. Universes up to 4096 keep these columns, eight bytes per word and element.
//! Larger filters read one bit per group. Listing takes
//! time proportional to the product of the numbers of values found in the few groups that determine
//! an element.

use super::{
    NO_SEED,
    code::{self, Code, Found, Shape},
    egh, ols, pol, within,
};
use crate::{
    Certainty, Infeasible, Malformed, Refused, Seed,
    packed::{self, Packed},
    saved::{self, Save},
};

/// The most elements that a merge checks to find out whether the filter is still inside the zone.
const MERGE_BUDGET: u64 = 1 << 20;
/// The most elements that `from_bytes` checks to verify the claimed number of members.
const READ_BUDGET: u64 = 1 << 10;

/// A set of numbers of a universe. See the [module](self).
///
/// ```
/// use sidon::{Certainty, zone::{Filter, Ols, ols::Shape}};
///
/// let mut hosts = Filter::new(Ols::new(Shape { universe: 256, order: 16, groups: 4 })?)?;
/// for host in [1, 77, 200] {
///     hosts.insert(&host)?;
/// }
/// assert_eq!(hosts.list(), [1, 77, 200]);
/// assert_eq!((hosts.len(), hosts.certainty()), (Some(3), Certainty::Certain));
/// // A fourth host leaves the zone of three.
/// hosts.insert(&30)?;
/// assert!(hosts.len().is_none() && hosts.certainty().error() > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Filter<C> {
    code: C,
    bits: Packed,
    /// The most columns that the bits can be the union of. Inside the zone, the number of elements.
    columns: u64,
}

impl<C: Code> Filter<C> {
    /// An empty filter.
    pub fn new(code: C) -> Result<Self, Infeasible> {
        let bits = Packed::zeroed(code.cells(), 1)?;
        Ok(Filter { code, bits, columns: 0 })
    }

    /// Removes every element, which re-enters the zone.
    pub fn clear(&mut self) {
        self.bits.clear();
        self.columns = 0;
    }

    /// The mapping of elements to bits.
    pub fn code(&self) -> &C {
        &self.code
    }

    /// The bytes of the table.
    pub fn memory_bytes(&self) -> u64 {
        Packed::bytes_of(self.bits.cells(), 1)
    }

    /// Whether at most `zone` elements are stored, which is proven.
    fn is_inside(&self) -> bool {
        self.columns <= self.code.zone()
    }

    /// The number of distinct elements stored. `None` outside the zone.
    pub fn len(&self) -> Option<u64> {
        self.is_inside().then_some(self.columns)
    }

    /// Whether no element is stored.
    pub fn is_empty(&self) -> bool {
        self.columns == 0
    }

    /// Every element whose bits are all set, in order. Inside the zone these are the members;
    /// outside, false positives are listed, too. Takes the time of checking all elements of the
    /// universe, or the product of the values in a few groups, whichever is less.
    pub fn list(&self) -> Vec<u64> {
        self.list_within(u64::MAX).unwrap_or_default()
    }

    /// [`list`](Self::list), or `None` if it would check more than `budget` elements.
    #[doc(hidden)]
    pub fn list_within(&self, budget: u64) -> Option<Vec<u64>> {
        code::list(&self.code, |cell| self.is_set(cell), budget)
    }

    /// `Certain` inside the zone. Outside, the false-positive rate for randomly drawn members and a
    /// random non-member. There is no seed, so an attacker with the code can choose four members
    /// that cover a fifth element.
    pub fn certainty(&self) -> Certainty {
        Certainty::from_rate(if self.is_inside() { 0.0 } else { self.code.rate(self.columns) })
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Filter { code: self.code.clone(), bits: self.bits.try_clone()?, columns: self.columns })
    }

    #[inline(always)]
    fn is_set(&self, cell: u64) -> bool {
        packed::read(self.bits.bytes(), 1, cell) == 1
    }

    /// The conclusion that the bits alone prove. `None` if listing would check more than `budget`
    /// elements.
    fn proven(&self, budget: u64) -> Option<Proven> {
        let found = Found::new(&self.code, |cell| self.is_set(cell));
        let zone = self.code.zone();
        if found.most() > zone {
            return Some(Proven::Outside);
        }
        let members = code::list_found(&self.code, &found, |cell| self.is_set(cell), budget)?;
        let (mut covered, mut rest) = (vec![false; self.bits.cells() as usize], found.total());
        for cell in members.iter().flat_map(|&member| self.code.positions(member)) {
            rest -= u64::from(!std::mem::replace(&mut covered[cell as usize], true));
        }
        Some(match members.len() as u64 {
            _ if rest > 0 => Proven::Impossible,
            members if members <= zone => Proven::Inside(members),
            _ => Proven::Outside,
        })
    }
}

/// Whether the bits prove that a filter is inside its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proven {
    /// Inside the zone, with this number of members.
    Inside(u64),
    Outside,
    /// A bit is set that belongs to none of the elements whose bits are all set.
    Impossible,
}

/// The fields of a code, and the payload that precedes the cells.
pub(super) fn write_code(shape: &Shape) -> ([u64; 6], Vec<u8>) {
    match shape {
        Shape::Egh(shape) => {
            let moduli = shape.moduli.iter().flat_map(|modulus| modulus.to_le_bytes());
            ([1, shape.universe, 0, 0, shape.moduli.len() as u64, 0], moduli.collect())
        }
        Shape::Ols(shape) => {
            let (order, groups) = (shape.order.into(), shape.groups.into());
            ([2, shape.universe, order, 2, groups, 1], Vec::new())
        }
        Shape::Pol(shape) => {
            let (order, digits, groups) =
                (shape.order.into(), shape.digits.into(), shape.groups.into());
            ([3, shape.universe, order, digits, groups, shape.infinity.into()], Vec::new())
        }
    }
}

/// Reads the code of these fields and the cells' part of the payload. The length of that part must
/// be `width` bits per cell; this is checked before the code is built.
pub(super) fn read_code<C: Code>(
    fields: [u64; 6],
    payload: &[u8],
    width: u32,
) -> Result<(C, &[u8]), Malformed> {
    let [family, universe, order, digits, groups, infinity] = fields;
    let field = |name| Err(Malformed::Field { name });
    let (order, digits) = (saved::narrow("order", order)?, saved::narrow("digits", digits)?);
    let narrow = saved::narrow("groups", groups)?;
    let (shape, cells) = match (family, order, digits, infinity) {
        (1, 0, 0, 0) => {
            let len = usize::try_from(groups).ok().and_then(|groups| groups.checked_mul(4));
            let Some((moduli, cells)) = len.and_then(|len| payload.split_at_checked(len)) else {
                let expected = groups.saturating_mul(4);
                return Err(Malformed::Length { expected, got: payload.len() as u64 });
            };
            let number =
                |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let moduli = moduli.chunks_exact(4).map(number).collect();
            (Shape::Egh(egh::Shape { universe, moduli }), cells)
        }
        (2, _, 2, 1) => (Shape::Ols(ols::Shape { universe, order, groups: narrow }), payload),
        (3, _, _, 0 | 1) => {
            let infinity = infinity == 1;
            (Shape::Pol(pol::Shape { universe, order, digits, groups: narrow, infinity }), payload)
        }
        _ => return field("code"),
    };
    saved::justify(cells, Packed::payload_bytes(shape.cells(), width)?)?;
    match C::of(&shape) {
        Some(code) => Ok((code?, cells)),
        None => field("code"),
    }
}

impl<C: Code> Filter<C> {
    /// Stores a number. On `Err`, nothing has changed.
    pub fn insert(&mut self, &key: &u64) -> Result<(), Refused> {
        within(key, self.code.universe())?;
        let mut fresh = false;
        let mut unite = |bytes: &mut [u8; 8], column: u64| {
            let word = u64::from_le_bytes(*bytes);
            fresh |= word & column != column;
            *bytes = (word | column).to_le_bytes();
        };
        let words = self.bits.bytes_mut().as_chunks_mut().0;
        match (self.code.column(key), &mut *words) {
            // One word needs no loop.
            (Some(&[column]), [bytes, ..]) => unite(bytes, column),
            (Some(column), _) => words.iter_mut().zip(column).for_each(|(b, &c)| unite(b, c)),
            (None, _) => {
                let (split, groups) = (self.code.split(key), self.code.groups());
                for group in 0..groups {
                    let cell = self.code.position(split, group);
                    fresh |= packed::write(self.bits.bytes_mut(), 1, cell, 1) == 0;
                }
            }
        }
        self.columns = self.columns.saturating_add(fresh.into());
        Ok(())
    }

    /// Whether the number may be stored. `false` is certain.
    ///
    /// A number outside the universe is never contained.
    pub fn contains(&self, &key: &u64) -> bool {
        if key >= self.code.universe() {
            return false;
        }
        let words = self.bits.bytes().as_chunks().0;
        let common =
            |(word, column): (&[u8; 8], &u64)| (u64::from_le_bytes(*word) & column).count_ones();
        match (self.code.column(key), words) {
            // One word needs no loop.
            (Some([column]), [word, ..]) => return common((word, column)) == self.code.groups(),
            (Some(column), _) => {
                return words.iter().zip(column).map(common).sum::<u32>() == self.code.groups();
            }
            (None, _) => {}
        }
        let split = self.code.split(key);
        for group in 0..self.code.groups() {
            if !self.is_set(self.code.position(split, group)) {
                return false;
            }
        }
        true
    }

    /// Adds what another one of the same code stores. On `Err`, nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        if self.code != other.code {
            return Err(Refused::Mismatch { field: "code" });
        }
        for (own, other) in self.bits.bytes_mut().iter_mut().zip(other.bits.bytes()) {
            *own |= other;
        }
        if self.is_empty() || other.is_empty() {
            self.columns = self.columns.max(other.columns);
            return Ok(());
        }
        self.columns = match self.proven(MERGE_BUDGET) {
            Some(Proven::Inside(members)) => members,
            // An element of both filters counts twice, so the sum is only an upper bound.
            _ => self.columns.saturating_add(other.columns).max(self.code.zone() + 1),
        };
        Ok(())
    }

    /// The byte image.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (code, mut payload) = write_code(&self.code.shape());
        let [family, universe, order, digits, groups, infinity] = code;
        let fields = [family, universe, order, digits, groups, infinity, self.columns];
        payload.extend(self.bits.payload());
        saved::write(<Self as Save>::KIND, NO_SEED, &fields, &payload)
    }

    /// The structure of a byte image.
    ///
    /// Accepts any seed, because no key is hashed.
    pub fn from_bytes(image: &[u8], _: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read::<7>(image, <Self as Save>::KIND, NO_SEED)?;
        let [code @ .., columns] = fields;
        let (code, cells) = read_code::<C>(code, payload, 1)?;
        let mut filter = Filter::new(code)?;
        if !filter.bits.load(cells) {
            return Err(Malformed::Field { name: "bits" });
        }
        filter.columns = columns;
        // The bits must fit the number of columns, and the image must claim the zone exactly if the
        // bits prove it.
        let found = Found::new(&filter.code, |cell| filter.is_set(cell));
        saved::plausible("columns", found.total(), columns, filter.code.groups())?;
        let agrees = match filter.proven(READ_BUDGET) {
            Some(Proven::Inside(members)) => columns == members,
            Some(Proven::Outside) => !filter.is_inside(),
            Some(Proven::Impossible) => false,
            None => true,
        };
        if !agrees || found.most() > columns || (found.fewest() > 0) != (columns > 0) {
            return Err(Malformed::Field { name: "columns" });
        }
        Ok(filter)
    }
}

/// `Filter<Any>` reads an image of any code.
impl<C: Code> Save for Filter<C> {
    const KIND: u16 = crate::saved::kinds::FILTER.number;

    fn to_bytes(&self) -> Vec<u8> {
        Filter::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Filter::from_bytes(image, seed)
    }
}

/// Two filters are equal if their codes, bits and numbers of elements are.
impl<C: Code> PartialEq for Filter<C> {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code && self.to_bytes() == other.to_bytes()
    }
}
