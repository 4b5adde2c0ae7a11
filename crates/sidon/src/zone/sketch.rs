//! Counts that are exact while few keys have one, with a report when they are not.
//!
//! Counters over a [`Code`]: an amount is added to one counter in each group, and the smallest of a
//! key's counters is never below its count. While at most `zone` keys have a count, every key has a
//! counter that no other key shares. Its smallest counter is then its count, which holds for keys
//! with a count of zero, too. With one key more it still holds for the keys that have a count
//! (theorem 5 of the paper).
//! ```text
//! 0: 5, 7: 3      5 3 . . .   5 . 3 . .   5 . . 3 .   5 . . . 3     0 reads min(5,5,5,5)
//! ```
//! The sketch counts its keys: inside the zone it detects when a key is new or has become zero. It
//! remembers the key that exceeded the zone. Without that key's counts the others are inside the
//! zone, so one key above the zone is exact, too. With more keys an estimate is an upper bound.
//! Subtractions may re-enter the zone. The sketch detects this, because a removed key frees a
//! counter.
//!
//! All groups have the same sum, since each amount is added to, or subtracted from, one counter of
//! every group. This holds even if amounts were subtracted that were never added.
//!
//! An update changes one counter per group. Counters have up to 32 bits. An update that would
//! overflow one is refused and changes nothing. Sketches of the same code can be added and
//! subtracted counter by counter.
//!
//! Beyond the zone, three methods for Count-Min err less, and all keep what is exact.
//! [`Update::Conservative`] raises only the counters that are below the new answer. Its
//! counters are not sums, so it refuses subtractions, and it is exact for `zone` keys only.
//! [`estimate_unbiased`](Sketch::estimate_unbiased) subtracts the mean of the other keys.
//! [`solve`](Sketch::solve) computes all counts together. Section II of the paper lists them.

mod beyond;
mod saved;

use super::{
    code::{self, Code},
    within,
};
use crate::{
    Certainty, Estimate, Infeasible, Refused,
    count::Update,
    packed::{self, Packed},
};

/// The most elements that a subtraction checks to find out whether the zone has been re-entered.
const SETTLE_BUDGET: u64 = 1 << 14;
/// The most elements that adding or subtracting two sketches checks.
const MERGE_BUDGET: u64 = 1 << 20;
/// The most elements that `from_bytes` checks.
const READ_BUDGET: u64 = 1 << 10;

/// Counts of numbers of a universe. See the [module](self).
///
/// ```
/// use sidon::{Estimate, count::Update, zone::{Ols, Sketch, ols::Shape}};
///
/// let code = Ols::new(Shape { universe: 256, order: 16, groups: 4 })?;
/// let mut packets = Sketch::new(code, 32, Update::Plain)?;
/// packets.add(&7, 100)?;
/// packets.add(&9, 20)?;
/// packets.subtract(7, 40)?;
/// assert_eq!(packets.estimate(&7), Estimate::exact(60));
/// assert_eq!(packets.list(), Some(vec![(7, 60), (9, 20)]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sketch<C> {
    code: C,
    counters: Packed,
    update: Update,
    known: Known,
    /// The number of counters above zero, by group.
    occupied: Vec<u32>,
}

/// The number of keys that have a count, as far as it is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// This number of keys, at most the zone.
    Inside(u64),
    /// One key more than the zone. The value is one of these keys.
    OneMore(u64),
    Beyond,
}

impl<C: Code> Sketch<C> {
    /// All counts zero, in counters of `width` bits, 1 to 32.
    pub fn new(code: C, width: u32, update: Update) -> Result<Self, Infeasible> {
        let counters = Packed::zeroed(code.cells(), width)?;
        let occupied = vec![0; code.groups() as usize];
        Ok(Sketch { code, counters, update, known: Known::Inside(0), occupied })
    }

    /// Sets all counts to zero, which re-enters the zone.
    pub fn clear(&mut self) {
        self.counters.clear();
        self.occupied.fill(0);
        self.known = Known::Inside(0);
    }

    /// The mapping of keys to counters.
    pub fn code(&self) -> &C {
        &self.code
    }

    /// The bytes of the counters.
    pub fn memory_bytes(&self) -> u64 {
        Packed::bytes_of(self.counters.cells(), self.width())
    }

    /// Always `Certain`: an estimate is exact, or an upper bound that holds.
    pub fn certainty(&self) -> Certainty {
        Certainty::Certain
    }

    /// The bits of a counter.
    fn width(&self) -> u32 {
        self.counters.width()
    }

    /// The number of keys that have a count. `None` if it is above the zone plus one, or above the zone
    /// with conservative update: then estimates are upper bounds, otherwise they are exact.
    pub fn len(&self) -> Option<u64> {
        match self.known {
            Known::Inside(active) => Some(active),
            Known::OneMore(_) => Some(self.code.zone() + 1),
            Known::Beyond => None,
        }
    }

    /// Whether no key has a count.
    pub fn is_empty(&self) -> bool {
        self.known == Known::Inside(0)
    }

    /// Whether every estimate is exact.
    fn is_exact(&self) -> bool {
        self.known != Known::Beyond
    }

    /// The counters, group after group.
    #[doc(hidden)]
    pub fn counters(&self) -> impl Iterator<Item = u64> + '_ {
        self.counters.iter()
    }

    /// The smallest of a key's counters: the plain estimate. Zero for a number outside the
    /// universe.
    #[doc(hidden)]
    pub fn minimum(&self, key: u64) -> u64 {
        if key >= self.code.universe() {
            return 0;
        }
        self.least(key, None)
    }

    /// Subtracts an amount from a key's count. On `Err`, nothing has changed.
    ///
    /// While estimates are exact, an amount above the count is refused. Otherwise it is refused
    /// only if it exceeds a counter. An amount that was never added then reduces the counts of
    /// other keys, and estimates can be below the truth. Conservative update refuses all.
    pub fn subtract(&mut self, key: u64, amount: u64) -> Result<(), Refused> {
        within(key, self.code.universe())?;
        self.sums()?;
        let count = self.value(key);
        if amount > count {
            return Err(Refused::NotStored);
        }
        if amount == 0 {
            return Ok(());
        }
        let (mut freed, width) = (false, self.width());
        let split = self.code.split(key);
        for group in 0..self.code.groups() {
            let cell = self.code.position(split, group);
            let rest = self.counter(cell) - amount;
            packed::write(self.counters.bytes_mut(), width, cell, rest);
            if rest == 0 {
                self.occupied[group as usize] -= 1;
                freed = true;
            }
        }
        self.known = match self.known {
            Known::Inside(active) if amount == count => self.inside(active.saturating_sub(1)),
            Known::OneMore(_) if amount == count => self.inside(self.code.zone()),
            known => known,
        };
        if freed && self.known == Known::Beyond {
            self.settle(SETTLE_BUDGET);
        }
        Ok(())
    }

    /// Subtracts all counts of another sketch of the same code, for example an earlier state of
    /// this one. On `Err`, nothing has changed.
    pub fn unmerge(&mut self, other: &Self) -> Result<(), Refused> {
        self.same(other)?;
        self.sums()?;
        if self.counters.iter().zip(other.counters.iter()).any(|(own, other)| own < other) {
            return Err(Refused::NotStored);
        }
        self.combine(other, |own, other| own - other);
        Ok(())
    }

    /// The keys that have a count, in order, each with its count. `None` if estimates are not
    /// exact.
    pub fn list(&self) -> Option<Vec<(u64, u64)>> {
        let candidates = match self.known {
            Known::Beyond => return None,
            _ => code::list(&self.code, |cell| self.counter(cell) > 0, u64::MAX)?,
        };
        let counts = candidates.into_iter().map(|key| (key, self.value(key)));
        Some(counts.filter(|&(_, count)| count > 0).collect())
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        let (code, counters) = (self.code.clone(), self.counters.try_clone()?);
        Ok(Sketch { code, counters, occupied: self.occupied.clone(), ..*self })
    }

    /// Refused unless counters are sums of amounts.
    fn sums(&self) -> Result<(), Refused> {
        if self.update == Update::Plain { Ok(()) } else { Err(Refused::NotSums) }
    }

    #[inline(always)]
    fn counter(&self, cell: u64) -> u64 {
        packed::read(self.counters.bytes(), self.counters.width(), cell)
    }

    /// The count of a key of the universe where it is proven, otherwise its smallest counter.
    #[inline]
    fn value(&self, key: u64) -> u64 {
        match self.known {
            Known::OneMore(extra) if extra != key => self.least(key, Some(extra)),
            _ => self.least(key, None),
        }
    }

    /// The smallest of a key's counters, after subtracting the count of the key `without`.
    #[inline]
    fn least(&self, key: u64, without: Option<u64>) -> u64 {
        let split = self.code.split(key);
        let other = without.map(|other| (self.code.split(other), self.least(other, None)));
        let mut least = u64::MAX;
        for group in 0..self.code.groups() {
            let cell = self.code.position(split, group);
            let shared = match other {
                Some((split, count)) if self.code.position(split, group) == cell => count,
                _ => 0,
            };
            least = least.min(self.counter(cell) - shared);
        }
        least
    }

    /// `Inside(active)` if `active` keys can occupy the counters. They always can, unless the
    /// sketch was read from bytes that claimed too few keys; then `Beyond`.
    fn inside(&self, active: u64) -> Known {
        if self.can_be_of(active) { Known::Inside(active) } else { Known::Beyond }
    }

    /// Whether `active` keys can occupy the counters that are above zero, in each group.
    fn can_be_of(&self, active: u64) -> bool {
        let groups = || self.occupied.iter().copied().map(u64::from);
        groups().all(|occupied| occupied <= active && (occupied > 0) == (active > 0))
    }

    fn same(&self, other: &Self) -> Result<(), Refused> {
        if self.code != other.code {
            return Err(Refused::Mismatch { field: "code" });
        }
        if self.width() != other.width() {
            return Err(Refused::Mismatch { field: "width" });
        }
        if self.update != other.update {
            return Err(Refused::Mismatch { field: "update" });
        }
        Ok(())
    }

    /// Writes `of` both counters to each counter. The result must fit the width.
    fn combine(&mut self, other: &Self, of: impl Fn(u64, u64) -> u64) {
        let width = self.width();
        for cell in 0..self.counters.cells() {
            let value = of(self.counter(cell), other.counter(cell));
            packed::write(self.counters.bytes_mut(), width, cell, value);
        }
        if other.known != Known::Inside(0) {
            // With conservative update, an answer that was too large may stay in the counters.
            let is_inside = |known| matches!(known, Known::Inside(_));
            let proves = is_inside(self.known) && is_inside(other.known);
            self.known = Known::Beyond;
            self.count_occupied();
            if self.update == Update::Plain || proves {
                self.settle(MERGE_BUDGET);
            }
        }
    }

    fn count_occupied(&mut self) {
        for group in 0..self.code.groups() {
            let cells = self.code.start(group)..self.code.start(group + 1);
            let occupied = cells.filter(|&cell| self.counter(cell) > 0).count();
            self.occupied[group as usize] = occupied as u32;
        }
    }

    /// Sets `known` to `Inside` if the counters prove it: at most `zone` keys have no counter at
    /// zero, and their counts add up to all counters.
    fn settle(&mut self, budget: u64) {
        if self.occupied.iter().any(|&occupied| u64::from(occupied) > self.code.zone()) {
            return;
        }
        if let Some(active) = self.explained(None, budget) {
            self.known = Known::Inside(active);
        }
    }

    /// The number of keys whose counts add up to the counters, after subtracting the count of the
    /// key `without`. `None` if there are more than the zone allows, if a remainder is left, or if
    /// listing exceeds `budget`. With conservative update, the counts may add up to more.
    fn explained(&self, without: Option<u64>, budget: u64) -> Option<u64> {
        let mut rest: Vec<u64> = self.counters.iter().collect();
        if let Some(extra) = without {
            take(&self.code, &mut rest, extra, self.least(extra, None))?;
        }
        let held = rest.clone();
        let keys = code::list(&self.code, |cell| held[cell as usize] > 0, budget)?;
        if keys.len() as u64 > self.code.zone() {
            return None;
        }
        for &key in &keys {
            let amount = self.code.positions(key).map(|cell| held[cell as usize]).min()?;
            if self.update == Update::Plain {
                take(&self.code, &mut rest, key, amount)?;
            } else {
                let cells = self.code.positions(key).map(|cell| cell as usize);
                cells.for_each(|cell| rest[cell] = rest[cell].saturating_sub(amount));
            }
        }
        rest.iter().all(|&rest| rest == 0).then_some(keys.len() as u64)
    }
}

/// Subtracts an amount from the counters of a key. `None` if one of them is smaller.
fn take<C: Code>(code: &C, counters: &mut [u64], key: u64, amount: u64) -> Option<()> {
    for cell in code.positions(key) {
        let counter = &mut counters[cell as usize];
        *counter = counter.checked_sub(amount)?;
    }
    Some(())
}

impl<C: Code> Sketch<C> {
    /// Whether listing would check at most `budget` elements.
    fn is_cheap(&self, budget: u64) -> bool {
        let found = code::Found::new(&self.code, |cell| self.counter(cell) > 0);
        found.fewest() == 0 || self.code.work(&found).min(self.code.universe()) <= budget
    }
}

impl<C: Code> Sketch<C> {
    /// Adds an amount to the count of a number. On `Err`, nothing has changed.
    pub fn add(&mut self, &key: &u64, amount: u64) -> Result<(), Refused> {
        within(key, self.code.universe())?;
        let (split, groups) = (self.code.split(key), self.code.groups());
        let (ceiling, width) = (self.counters.ceiling(), self.width());
        let answer = match self.update {
            Update::Plain => 0,
            Update::Conservative => self.least(key, None).saturating_add(amount),
        };
        let update = self.update;
        let raised = |counter: u64| match update {
            Update::Plain => counter.saturating_add(amount),
            Update::Conservative => counter.max(answer),
        };
        for group in 0..groups {
            if raised(self.counter(self.code.position(split, group))) > ceiling {
                return Err(Refused::Overflow { ceiling });
            }
        }
        if amount == 0 {
            return Ok(());
        }
        let is_new = self.known != Known::Beyond && self.value(key) == 0;
        for group in 0..groups {
            let cell = self.code.position(split, group);
            let counter = self.counter(cell);
            self.occupied[group as usize] += u32::from(counter == 0);
            packed::write(self.counters.bytes_mut(), width, cell, raised(counter));
        }
        self.known = match self.known {
            Known::Inside(active) if is_new && active == self.code.zone() => match self.update {
                Update::Plain => Known::OneMore(key),
                Update::Conservative => Known::Beyond,
            },
            Known::Inside(active) if is_new => Known::Inside(active + 1),
            Known::OneMore(_) if is_new => Known::Beyond,
            known => known,
        };
        Ok(())
    }

    /// The count of a number.
    ///
    /// Exact while at most `zone + 1` keys have a count, or `zone` with conservative update.
    /// Otherwise the value is an upper bound. A number outside the universe has the exact count 0.
    pub fn estimate(&self, &key: &u64) -> Estimate {
        if key >= self.code.universe() {
            return Estimate::exact(0);
        }
        let value = self.value(key);
        if self.is_exact() || value == 0 {
            return Estimate::exact(value);
        }
        Estimate::at_most(value, value, Certainty::Certain)
    }

    /// Adds what another one of the same code and update stores. On `Err`, nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        self.same(other)?;
        let ceiling = self.counters.ceiling();
        if self.counters.iter().zip(other.counters.iter()).any(|(a, b)| a + b > ceiling) {
            return Err(Refused::Overflow { ceiling });
        }
        if self.known == Known::Inside(0) {
            self.combine(other, |_, other| other);
            self.known = other.known;
        } else {
            self.combine(other, |own, other| own + other);
        }
        Ok(())
    }
}

/// Two sketches are equal if their codes, counters and numbers of keys are.
impl<C: Code> PartialEq for Sketch<C> {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code && self.to_bytes() == other.to_bytes()
    }
}
