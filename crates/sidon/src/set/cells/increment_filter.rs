//! The common part of the filters with variable increments: a table of cells, and a code that
//! interprets their values.
//!
//! ```text
//! digest --spread--> cell, increment        for each of the k cells
//! insert: increment each cell   remove: decrement each   contains: does each admit the increment?
//! ```
//! The whole part of a product is the position of a cell, and its fraction selects the increment,
//! so an increment costs one more multiplication. A key whose positions coincide adds to the cell
//! each time, and subtracts each time. A write changes one cell after the other. If one of them
//! refuses, the cells before it get their old values back.

mod batches;

use super::{
    super::increments::Increments,
    admit_table::AdmitTable,
    increment_code::{IncrementCode, Sums},
    mapping::{InLines, Spread},
    overflow::Overflow,
    table::{ANY, MANY, Table, Width},
};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    batch::{Keys, hasher},
    key::spread,
    simd::LINE,
};

/// The memory of the values.
pub(in crate::set) trait Store {
    /// Whether restoring a value may store it in another cell. If so, a write checks all cells
    /// first.
    const MOVES: bool;
    fn table(&self) -> &Table;
    /// The value of a cell, of which the table holds `held`.
    fn value(&self, held: u64, cell: u64) -> u64;
    /// Sets a cell to `value`. On `Err`, nothing has changed.
    fn write(&mut self, cell: u64, value: u64) -> Result<(), Refused>;
    fn clear(&mut self);
}

/// A store that consists of one table.
#[derive(Debug)]
pub(in crate::set) struct Plain(pub(in crate::set) Table);

impl Store for Plain {
    const MOVES: bool = false;

    #[inline(always)]
    fn table(&self) -> &Table {
        &self.0
    }

    #[inline(always)]
    fn value(&self, held: u64, _: u64) -> u64 {
        held
    }

    #[inline(always)]
    fn write(&mut self, cell: u64, value: u64) -> Result<(), Refused> {
        let width = Width::<ANY>(self.0.cells.width());
        width.write(self.0.cells.bytes_mut(), cell, value);
        Ok(())
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// A filter whose cells are interpreted by a code.
#[derive(Debug)]
pub(in crate::set) struct IncrementFilter<C, S = Plain> {
    pub(in crate::set) store: S,
    pub(in crate::set) code: C,
    pub(in crate::set) seed: Seed,
    pub(in crate::set) stored: u64,
    /// A faster test than that of the code, if there is one.
    pub(in crate::set) rows: Option<Box<AdmitTable>>,
    /// Whether the last insertion was refused. The next one then checks its cells before it writes
    /// to them, so that a refusal undoes no writes.
    pub(in crate::set) refusing: bool,
}

/// An operation on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::set) enum Act {
    Insert,
    Remove,
}

/// A cell and the mark of an increment in one number, the mark in the lowest byte.
#[inline(always)]
fn spot(cell: u64, fraction: u64, marks: &[u8]) -> u64 {
    let which = spread::fraction(fraction, marks.len() as u64) as usize;
    // The fraction of a length is below it, but the compiler does not know that.
    cell << 8 | u64::from(marks.get(which).copied().unwrap_or(0))
}

#[inline(always)]
fn cell(spot: u64) -> u64 {
    spot >> 8
}

#[inline(always)]
fn mark(spot: u64) -> u8 {
    spot as u8
}

/// Writes the cells `from..to` of the digest, with their marks, to the same indices of `spots`.
#[inline(always)]
fn place(table: &Table, marks: &[u8], digest: Digest, from: usize, to: usize, spots: &mut [u64]) {
    match table.in_lines {
        None => {
            let splits = spread::splits(digest, from, to, table.cells.cells());
            for (place, (cell, fraction)) in spots[from..to].iter_mut().zip(splits) {
                *place = spot(cell, fraction, marks);
            }
        }
        Some(mapping) => place_in_lines(table, mapping, marks, digest, from, to, spots),
    }
}

/// Selects a line as if it were a cell, and spreads its fraction again over the line's cells.
#[inline(always)]
fn place_in_lines(
    table: &Table,
    mapping: InLines,
    marks: &[u8],
    digest: Digest,
    from: usize,
    to: usize,
    spots: &mut [u64],
) {
    let in_line = LINE as u64 * 8 / u64::from(table.cells.width());
    let each = mapping.each as usize;
    for line in from / each..to.div_ceil(each) {
        let (offset, word) = mapping.line(digest, line as u32);
        let first = (offset / LINE) as u64 * in_line;
        let (own, until) = ((line * each).max(from), ((line + 1) * each).min(to));
        let splits = spread::splits_in_line(word, own - line * each, until - line * each, in_line);
        for (place, (cell, fraction)) in spots[own..until].iter_mut().zip(splits) {
            *place = spot(first + cell, fraction, marks);
        }
    }
}

impl<C: IncrementCode, S: Store> IncrementFilter<C, S> {
    pub(in crate::set) fn new(store: S, code: C, seed: Seed) -> Self {
        let rows = if S::MOVES { None } else { AdmitTable::of(&code, store.table()) };
        IncrementFilter { store, code, seed, stored: 0, rows, refusing: false }
    }

    pub(in crate::set) fn clear(&mut self) {
        self.store.clear();
        self.stored = 0;
    }

    /// The values in order.
    pub(in crate::set) fn values(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.store.table().cells.cells()).map(|cell| self.read(cell))
    }

    pub(in crate::set) fn fill(&self) -> f64 {
        self.store.table().cells.occupied() as f64 / self.store.table().cells.cells() as f64
    }

    pub(in crate::set) fn pinned(&self) -> u64 {
        self.values().filter(|&value| self.code.is_pinned(value)).count() as u64
    }

    /// The false-positive rate of this table. Draws are independent, given the table.
    pub(in crate::set) fn false_positive_rate(&self) -> f64 {
        let table = self.store.table();
        let Some(mapping) = table.in_lines else {
            let sum: f64 = self.values().map(|value| self.code.share(value)).sum();
            return (sum / table.cells.cells() as f64).powi(table.hashes as i32);
        };
        mapping.passes(table.cells.width(), self.values().map(|value| self.code.share(value)))
    }

    #[inline(never)]
    pub(in crate::set) fn contains(&self, digest: Digest) -> bool {
        self.all_admit(digest)
    }

    /// The value of a cell.
    #[inline(always)]
    fn read(&self, cell: u64) -> u64 {
        let cells = &self.store.table().cells;
        self.store.value(Width::<ANY>(cells.width()).read(cells.bytes(), cell), cell)
    }

    #[inline(always)]
    fn all_admit(&self, digest: Digest) -> bool {
        let table = self.store.table();
        match table.in_lines {
            None => self.cells_admit(digest, 0, table.hashes),
            Some(mapping) => self.lines_admit(mapping, digest, 0, mapping.lines),
        }
    }

    /// Whether the cells `from..to` of the digest admit their increments. The cells may be anywhere.
    /// Most keys never inserted are excluded by their first or second cell.
    #[inline(always)]
    fn cells_admit(&self, digest: Digest, from: usize, to: usize) -> bool {
        let (table, marks) = (&self.store.table().cells, self.code.marks());
        // Read before the loop, which the compiler would not do.
        let (width, bytes) = (Width::<ANY>(table.width()), table.bytes());
        for (cell, fraction) in spread::splits(digest, from, to, table.cells()) {
            let value = self.store.value(width.read(bytes, cell), cell);
            if !self.code.admits(value, mark(spot(0, fraction, marks))) {
                return false;
            }
        }
        true
    }

    /// Whether the cells of lines `from..to` of the digest admit their increments.
    #[inline(always)]
    fn lines_admit(&self, mapping: InLines, digest: Digest, from: u32, to: u32) -> bool {
        let (table, marks) = (&self.store.table().cells, self.code.marks());
        let (width, bytes) = (Width::<ANY>(table.width()), table.bytes());
        let in_line = LINE as u64 * 8 / u64::from(table.width());
        for line in from..to {
            let (line, word) = mapping.split(digest, line);
            let splits = spread::splits_in_line(word, 0, mapping.each as usize, in_line);
            for (cell, fraction) in splits {
                let cell = line as u64 * in_line + cell;
                let value = self.store.value(width.read(bytes, cell), cell);
                if !self.code.admits(value, mark(spot(0, fraction, marks))) {
                    return false;
                }
            }
        }
        true
    }

    pub(in crate::set) fn contains_keys<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        match &self.rows {
            Some(rows) => rows.contains_keys(self.store.table(), self.seed, keys, found),
            None => self.contains_any(Keys::Any(keys.len(), &hasher(self.seed, keys)), found),
        }
    }

    #[inline(never)]
    pub(in crate::set) fn act_on_digest(
        &mut self,
        act: Act,
        digest: Digest,
    ) -> Result<(), Refused> {
        let (mut spots, hashes) = ([0; MANY], self.store.table().hashes);
        place(self.store.table(), self.code.marks(), digest, 0, hashes, &mut spots);
        self.act(act, &spots[..hashes])
    }

    #[inline(always)]
    fn act(&mut self, act: Act, spots: &[u64]) -> Result<(), Refused> {
        if act == Act::Remove {
            // Pinned cells stay when their keys leave, so an empty filter may still answer `true`.
            if self.stored == 0 || (S::MOVES && !self.can_leave(spots)) {
                return Err(Refused::NotStored);
            }
        }
        if act == Act::Insert && !S::MOVES && self.refusing && !self.can_enter(spots) {
            return Err(Refused::Overflow { ceiling: self.code.ceiling() });
        }
        let stored = match act {
            Act::Insert => crate::set::sum_of_copies(self.stored, 1)?,
            Act::Remove => self.stored - 1,
        };
        let (mut held, mut failed) = ([0u32; MANY], None);
        for (i, (&spot, held)) in spots.iter().zip(&mut held).enumerate() {
            let (cell, mark) = (cell(spot), mark(spot));
            let value = self.read(cell);
            *held = value as u32;
            let written = match act {
                Act::Insert => match self.code.raise(value, mark) {
                    Some(value) => self.store.write(cell, value),
                    None => Err(Refused::Overflow { ceiling: self.code.ceiling() }),
                },
                Act::Remove => match self.code.lower(value, mark) {
                    Some(value) => self.store.write(cell, value),
                    None => Err(Refused::NotStored),
                },
            };
            if let Err(why) = written {
                failed = Some((i, why));
                break;
            }
        }
        if let Some((i, why)) = failed {
            self.put_back(&spots[..i], &held);
            self.refusing = act == Act::Insert;
            return Err(why);
        }
        self.stored = stored;
        self.refusing = false;
        Ok(())
    }

    /// Whether each cell has room for the key, considered alone.
    fn can_enter(&self, spots: &[u64]) -> bool {
        // No early exit: which cell is full differs from key to key, and a branch would be
        // mispredicted.
        let room = |&spot: &u64| self.code.raise(self.read(cell(spot)), mark(spot)).is_some();
        spots.iter().map(room).fold(true, |all, one| all & one)
    }

    /// Restores the values of the cells, last one first: a cell that occurs twice held two values.
    #[cold]
    fn put_back(&mut self, spots: &[u64], held: &[u32; MANY]) {
        for (&spot, &value) in spots.iter().zip(held).rev() {
            let back = self.store.write(cell(spot), value.into());
            debug_assert!(back.is_ok(), "what was held a moment ago can be held");
        }
    }

    /// Whether each cell admits the key, and cells that occur twice admit it twice.
    fn can_leave(&self, spots: &[u64]) -> bool {
        let mut rests = [0; MANY];
        for (i, &spot) in spots.iter().enumerate() {
            let earlier = (0..i).rev().find(|&j| cell(spots[j]) == cell(spot));
            let value = match earlier {
                Some(j) => rests[j],
                None => self.read(cell(spot)),
            };
            match self.code.lower(value, mark(spot)) {
                Some(rest) => rests[i] = rest,
                None => return false,
            }
        }
        true
    }
}

impl<C: IncrementCode> IncrementFilter<C, Plain> {
    /// Adds cell to cell. Refused as a whole if a sum does not fit and the code does not pin.
    pub(in crate::set) fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        let fits = |(own, other)| self.code.join(own, other).is_some();
        if !self.values().zip(other.values()).all(fits) {
            return Err(Refused::Overflow { ceiling: self.code.ceiling() });
        }
        self.stored = crate::set::sum_of_copies(self.stored, other.stored)?;
        for (cell, value) in (0..).zip(other.values()) {
            let own = self.read(cell);
            if let Some(joined) = self.code.join(own, value) {
                self.store.write(cell, joined)?;
            }
        }
        Ok(())
    }

    pub(in crate::set) fn load(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        self.store.0.load(payload)
    }
}

impl<S: Store> IncrementFilter<Sums, S> {
    /// Refuses counters that are no sums of increments, and a number of keys that cannot have
    /// produced them.
    pub(in crate::set) fn check_sums(
        &self,
        stored: u64,
        hashes: u32,
        increments: Increments,
    ) -> Result<(), Malformed> {
        if !self.values().all(|value| self.code.is_reachable(value)) {
            return Err(Malformed::Field { name: "payload" });
        }
        let total = self.values().map(u128::from).sum();
        plausible(self.pinned() > 0, total, stored, hashes, increments)
    }
}

impl<C: Clone> IncrementFilter<C, Plain> {
    pub(in crate::set) fn try_clone(&self) -> Result<Self, Infeasible> {
        let store = Plain(self.store.0.try_clone()?);
        Ok(IncrementFilter { store, code: self.code.clone(), rows: self.rows.clone(), ..*self })
    }
}

/// The fields that the images of all these filters have.
pub(in crate::set) fn overflow_field(overflow: Overflow) -> u64 {
    match overflow {
        Overflow::Refuse => 0,
        Overflow::Pin => 1,
    }
}

pub(in crate::set) fn overflow_from(field: u64) -> Result<Overflow, Malformed> {
    match field {
        0 => Ok(Overflow::Refuse),
        1 => Ok(Overflow::Pin),
        _ => Err(Malformed::Field { name: "overflow" }),
    }
}

pub(in crate::set) fn spread_field(spread: Spread) -> u64 {
    match spread {
        Spread::Anywhere => 0,
        Spread::Lines(lines) => lines.into(),
    }
}

pub(in crate::set) fn spread_from(field: u64) -> Result<Spread, Malformed> {
    match crate::saved::narrow("lines", field)? {
        0 => Ok(Spread::Anywhere),
        lines => Ok(Spread::Lines(lines)),
    }
}

pub(in crate::set) fn increments_from(fields: [u64; 2]) -> Result<Increments, Malformed> {
    Increments::from_fields(fields).ok_or(Malformed::Field { name: "increments" })
}

/// Refuses cells and a number of keys that no sequence of operations produces. A key adds one of
/// the values `counted` to each of its cells, and `total` is the sum over all cells.
///
/// Every inserted key adds to `hashes` cells. Every removed key subtracts from as many, whether it
/// was inserted or not. So the total is a difference of two sums, the first of which has `hashes *
/// stored` addends more. Once a cell was pinned, nothing is known of the total.
pub(in crate::set) fn plausible(
    pinned: bool,
    total: u128,
    stored: u64,
    hashes: u32,
    counted: Increments,
) -> Result<(), Malformed> {
    let more = u128::from(stored) * u128::from(hashes);
    if pinned || counted.is_difference(total, more) {
        return Ok(());
    }
    Err(Malformed::Field { name: "stored" })
}
