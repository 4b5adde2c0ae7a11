//! Moving stored cells to make room for a key whose cells are all taken.
//!
//! A cell determines its fingerprint, hence its other buckets, and may be moved to one of them that
//! has room. In the paper only cells of the first subtable move, once (section 5.2). A search
//! follows chains of moves breadth first, so the fewest cells move. Tables then reach loads of 95 %
//! and more.
//!
//! Searches have a [`Budget`], so that a full table costs no more than one with room. A search
//! spends one token for each bucket whose cells it follows. Every cell that is taken or freed earns
//! [`EARNED`] tokens. A table that refuses every key earns none and soon stops searching. Searches
//! resume when cells become free. Over any `n` operations, searches follow at most `EARNED * n +
//! SAVED * limit` buckets.

use super::{CELLS_MAX, Cell, SUBTABLES_MAX, Table};
use crate::{
    Infeasible,
    bucket::{Layout, with_layout},
    set::Stats,
    simd::{self, BASE},
};

/// The policy when all cells of a key are taken.
///
/// ```
/// use sidon::set::Moves;
///
/// // Searches share a budget, so that many of them in a row stay cheap.
/// assert_eq!(Moves::Never.work_most(0), 0);
/// assert!(Moves::Search(256).work_most(1_000) < 256 * 1_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Moves {
    /// The key is refused.
    #[default]
    Never,
    /// A cell of the first subtable's bucket moves to another of its buckets, if one has room.
    First,
    /// Cells move along the shortest chain to an empty cell. The search reads at most this many
    /// buckets, up to 4,096.
    Search(u32),
}

impl Moves {
    /// The most buckets that one search may read.
    pub(crate) const SEARCH_MAX: u32 = 4096;

    /// The most buckets whose cells searches follow over this many operations, for any keys and any
    /// load ([`Stats::followed`](crate::set::Stats::followed)).
    #[doc(hidden)]
    pub fn work_most(self, operations: u64) -> u64 {
        EARNED.saturating_mul(operations).saturating_add(Budget::new(self).most)
    }

    pub(crate) fn check(self) -> Result<(), Infeasible> {
        match self {
            Moves::Never | Moves::First => Ok(()),
            Moves::Search(limit) => {
                let most = Moves::SEARCH_MAX.into();
                Infeasible::unless_within("search limit", limit.into(), 1, most)
            }
        }
    }

    /// The policy and its limit as two fields of an image.
    pub(crate) fn to_fields(self) -> [u64; 2] {
        match self {
            Moves::Never => [0, 0],
            Moves::First => [1, 0],
            Moves::Search(limit) => [2, limit.into()],
        }
    }

    /// The inverse of [`to_fields`](Self::to_fields).
    pub(crate) fn from_fields(policy: u64, limit: u32) -> Option<Self> {
        match (policy, limit) {
            (0, 0) => Some(Moves::Never),
            (1, 0) => Some(Moves::First),
            (2, limit) => Some(Moves::Search(limit)),
            _ => None,
        }
    }
}

/// Counts of searches since the table was built or read from bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Insertions that found all cells of their key taken.
    pub needed: u64,
    /// Insertions for which a search made room.
    pub resolved: u64,
    /// Cells that these insertions moved.
    pub cells: u64,
    /// Buckets whose cells searches followed: the work of all searches.
    pub looked: u64,
}

impl Moved {
    /// These counts, with the others of `stats`.
    pub(crate) fn stats(self, stats: Stats) -> Stats {
        let Moved { needed: searches, resolved, cells: moved, looked: followed } = self;
        Stats { searches, resolved, moved, followed, ..stats }
    }
}

/// Tokens that a cell earns when it is taken or freed.
const EARNED: u64 = 4;
/// The most tokens of a budget, as a number of searches of the full limit.
const SAVED: u64 = 64;

/// The buckets that searches may still follow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    tokens: u64,
    most: u64,
    /// Changes of the table whose tokens were added.
    paid: u64,
}

impl Budget {
    pub(super) fn new(moves: Moves) -> Self {
        let limit = match moves {
            Moves::Never => 0,
            Moves::First => 1,
            Moves::Search(limit) => limit,
        };
        let most = SAVED * u64::from(limit);
        Budget { tokens: most, most, paid: 0 }
    }

    /// The tokens after `changes` changes of the table.
    #[inline(always)]
    fn at(&self, changes: u64) -> u64 {
        let earned = EARNED.saturating_mul(changes - self.paid);
        self.tokens.saturating_add(earned).min(self.most)
    }
}

/// A bucket that a search has reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    subtable: usize,
    /// The bucket, numbered through all subtables.
    bucket: usize,
    /// The step that led here, and its cell that would move here. The first steps refer to
    /// themselves.
    from: u32,
    cell: u32,
}

impl Table {
    /// The buckets that searches may follow now.
    pub(crate) fn tokens(&self) -> u64 {
        self.budget.at(self.changes)
    }

    /// Sets the tokens and the counts of searches to those of an earlier table. Returns `false`, and
    /// changes nothing, if they are more tokens than the policy allows.
    pub(crate) fn resume_searches(&mut self, tokens: u64, moved: Moved) -> bool {
        if tokens > self.budget.most {
            return false;
        }
        self.budget.tokens = tokens;
        self.budget.paid = self.changes;
        self.moved = moved;
        true
    }

    /// Whether a search may follow a bucket now.
    #[inline(always)]
    pub(crate) fn may_search(&self) -> bool {
        self.budget.at(self.changes) > 0
    }

    /// Makes an empty cell for a fingerprint whose cells are all taken, by moving others. `None` if
    /// moves are not allowed, the budget is spent or the search finds no chain.
    #[cold]
    #[inline(never)]
    pub(crate) fn room_by_moving(&mut self, permuted: &[u64]) -> Option<Cell> {
        self.moved.needed += 1;
        self.landed.clear();
        let tokens = self.budget.at(self.changes);
        let looked = self.moved.looked;
        let room = match self.form.moves {
            _ if tokens == 0 => None,
            Moves::Never => None,
            Moves::First => with_layout!(self.form, |layout| self.move_first(layout, permuted)),
            Moves::Search(limit) => {
                let limit = u64::from(limit).min(tokens) as usize;
                with_layout!(self.form, |layout| self.move_along_a_chain(layout, permuted, limit))
            }
        };
        self.budget.tokens = tokens - (self.moved.looked - looked);
        self.budget.paid = self.changes;
        self.moved.resolved += u64::from(room.is_some());
        room
    }

    fn move_first<L: Layout>(&mut self, layout: L, permuted: &[u64]) -> Option<Cell> {
        self.moved.looked += 1;
        let bucket = self.addressing.bucket(0, permuted[0]);
        let root = Step { subtable: 0, bucket, from: 0, cell: 0 };
        for cell in 0..self.form.cells {
            for other in 1..self.addressing.subtables() {
                let Some(next) = self.step(layout, &root, 0, cell, other) else { continue };
                if let Some(free) = self.empty_cell(layout, &next) {
                    self.move_cell(layout, &root, cell, &next, free);
                    let value = self.addressing.value(permuted[0]);
                    return Some(Cell { bucket, cell, value });
                }
            }
        }
        None
    }

    fn move_along_a_chain<L: Layout>(
        &mut self,
        layout: L,
        permuted: &[u64],
        limit: usize,
    ) -> Option<Cell> {
        let mut steps = std::mem::take(&mut self.search);
        steps.clear();
        for (subtable, &permuted) in (0..self.addressing.subtables()).zip(permuted) {
            let bucket = self.addressing.bucket(subtable, permuted);
            steps.push(Step { subtable, bucket, from: subtable as u32, cell: 0 });
        }
        let (found, looked) = self.find_chain(layout, &mut steps, limit);
        self.moved.looked += looked;
        let room = found.map(|(mut at, mut cell, last, free)| {
            self.move_cell(layout, &steps[at], cell, &last, free);
            // Each cell of the chain moves into the cell that its successor has left.
            while steps[at].from as usize != at {
                let (from, left) = (steps[at].from as usize, cell);
                cell = steps[at].cell;
                let (source, target) = (steps[from], steps[at]);
                self.move_cell(layout, &source, cell, &target, left);
                at = from;
            }
            let Step { subtable, bucket, .. } = steps[at];
            Cell { bucket, cell, value: self.addressing.value(permuted[subtable]) }
        });
        self.search = steps;
        room
    }

    /// The step and its cell that can move, and the bucket and empty cell that it can move to. Also
    /// the number of buckets followed, at most `limit`.
    fn find_chain<L: Layout>(
        &self,
        layout: L,
        steps: &mut Vec<Step>,
        limit: usize,
    ) -> (Option<(usize, u32, Step, u32)>, u64) {
        let mut at = 0;
        while at < steps.len().min(limit) {
            for other in 0..self.addressing.subtables() {
                if other == steps[at].subtable {
                    continue;
                }
                // Prefetches the target buckets of all cells before reading the first.
                let mut nexts = [None; CELLS_MAX];
                for (cell, next) in (0..self.form.cells).zip(&mut nexts) {
                    *next = self.step(layout, &steps[at], at as u32, cell, other);
                    if let Some(next) = next {
                        simd::prefetch(self.memory.bytes(), layout.offset(next.bucket));
                    }
                }
                for next in nexts.into_iter().flatten() {
                    if let Some(free) = self.empty_cell(layout, &next) {
                        return (Some((at, next.cell, next, free)), at as u64 + 1);
                    }
                    let known = |step: &Step| step.bucket == next.bucket;
                    if steps.len() < limit && !steps.iter().any(known) {
                        steps.push(next);
                    }
                }
            }
            at += 1;
        }
        (None, at as u64)
    }

    /// The bucket of a cell in another subtable, if it can be stored there.
    #[inline(always)]
    fn step<L: Layout>(
        &self,
        layout: L,
        from: &Step,
        at: u32,
        cell: u32,
        subtable: usize,
    ) -> Option<Step> {
        let (permuted, low) = self.moving(layout, from, cell, subtable)?;
        let bucket = self.addressing.bucket(subtable, permuted);
        self.storable(permuted, low).then_some(Step { subtable, bucket, from: at, cell })
    }

    /// The fingerprint in a cell, permuted for another subtable, and its low bits. `None` if the
    /// cell is empty.
    #[inline(always)]
    fn moving<L: Layout>(
        &self,
        layout: L,
        from: &Step,
        cell: u32,
        subtable: usize,
    ) -> Option<(u64, u64)> {
        let value = layout.read(layout.bucket(self.memory.bytes(), from.bucket), cell);
        let here = self.addressing.permuted_at(from.subtable, from.bucket, value);
        let fingerprint = self.fingerprints.unpermuted(from.subtable, here);
        let there = self.fingerprints.permuted_for(subtable, fingerprint);
        (value != 0).then(|| (there, self.addressing.low_bits(value)))
    }

    #[inline(always)]
    fn empty_cell<L: Layout>(&self, layout: L, step: &Step) -> Option<u32> {
        let bucket = layout.bucket(self.memory.bytes(), step.bucket);
        let empty = layout.matches(BASE, bucket, 0, 0);
        (empty != 0).then(|| empty.trailing_zeros())
    }

    /// Moves a cell to an empty cell of another of its buckets.
    fn move_cell<L: Layout>(&mut self, layout: L, from: &Step, cell: u32, to: &Step, free: u32) {
        let Some((permuted, low)) = self.moving(layout, from, cell, to.subtable) else {
            unreachable!("a cell that moves is in use");
        };
        let bucket = self.addressing.bucket(to.subtable, permuted);
        debug_assert_eq!(bucket, to.bucket, "a cell moves to its own bucket");
        let low = low & !self.form.lost_by_moving;
        let value = self.addressing.value(permuted) ^ low;
        let table = self.memory.bytes_mut();
        layout.write(layout.bucket_mut(table, to.bucket), free, value);
        layout.write(layout.bucket_mut(table, from.bucket), cell, 0);
        self.landed.push((to.bucket, low));
        self.moved.cells += 1;
    }
}

const _: () = assert!(Moves::SEARCH_MAX as usize > SUBTABLES_MAX as usize);
