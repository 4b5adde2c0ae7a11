//! Moving cells as a fail-safe: what to do when every cell of a key is taken.
//!
//! A cell knows its fingerprint, hence its other buckets, and may be moved to one of them that has
//! room. The paper lets only cells of the first subtable move, once (section 5.2). A search goes on
//! from bucket to bucket, breadth first, so the fewest cells move: tables then fill to 95 per cent
//! and more.

use super::{BASE, CELLS_MOST, DLeft, Lanes, Layout, Odd, Place, SUBTABLES_MOST, with_layout};
use crate::{Infeasible, Refused, probe};

/// What happens when all cells of a key are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moves {
    /// The key is refused.
    #[default]
    Never,
    /// A cell of the first subtable's bucket moves to another of its buckets, if one has room.
    First,
    /// Cells move along the shortest chain to an empty one, found by looking at no more than this
    /// many buckets, up to [`Moves::SEARCH_MOST`].
    Search(u32),
}

impl Moves {
    /// The most buckets that a search may look at.
    pub const SEARCH_MOST: u32 = 4096;

    pub(super) fn check(self) -> Result<(), Infeasible> {
        match self {
            Moves::Never | Moves::First => Ok(()),
            Moves::Search(limit) => {
                let most = Moves::SEARCH_MOST.into();
                Infeasible::unless_within("search limit", limit.into(), 1, most)
            }
        }
    }
}

/// How often the fail-safe was needed since the filter was made or read from bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Insertions that found all cells of their key taken.
    pub needed: u64,
    /// Those of them for which room was made.
    pub resolved: u64,
    /// Cells moved for them.
    pub cells: u64,
}

/// A bucket on the way of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    subtable: u32,
    bucket: u64,
    /// The step that led here, and which of its cells would move here; a root leads from itself.
    from: u32,
    cell: u32,
}

impl DLeft {
    /// Inserts a fingerprint all of whose cells are taken, by moving or growing if that is allowed.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_by_moving(&mut self, places: &[Place]) -> Result<(), Refused> {
        self.moved.needed += 1;
        let moved = match self.shape.moves {
            Moves::Never => false,
            Moves::First => self.move_first(places),
            Moves::Search(limit) => self.move_along_a_chain(places, limit),
        };
        if moved {
            self.moved.resolved += 1;
            return Ok(());
        }
        if self.shape.grows && self.shape.growths > 0 {
            // The first permutation is the identity: bucket and remainder are the fingerprint.
            let bucket = (places[0].offset / self.bucket_bytes) as u64;
            let fingerprint = (bucket << self.shape.remainder) | places[0].remainder;
            if self.grow().is_ok() {
                return self.insert_fingerprint(fingerprint);
            }
        }
        Err(Refused::Full { stored: self.occupied, cells: self.shape.all_cells() })
    }

    fn move_first(&mut self, places: &[Place]) -> bool {
        let bucket = (places[0].offset / self.bucket_bytes) as u64;
        let root = Step { subtable: 0, bucket, from: 0, cell: 0 };
        for cell in 0..self.shape.cells {
            for other in 1..self.shape.subtables {
                let Some(next) = self.step(&root, 0, cell, other) else { continue };
                if let Some(free) = self.empty_cell(&next) {
                    self.move_cell(&root, cell, &next, free);
                    self.put_at(places[0], cell);
                    return true;
                }
            }
        }
        false
    }

    fn move_along_a_chain(&mut self, places: &[Place], limit: u32) -> bool {
        let mut steps = std::mem::take(&mut self.search);
        steps.clear();
        for (subtable, place) in (0..self.shape.subtables).zip(places) {
            let start = place.offset / self.bucket_bytes;
            let bucket = start as u64 - u64::from(subtable) * self.shape.buckets;
            steps.push(Step { subtable, bucket, from: subtable, cell: 0 });
        }
        let found = self.find_chain(&mut steps, limit as usize);
        if let Some((mut at, mut cell, last, free)) = found {
            self.move_cell(&steps[at], cell, &last, free);
            // Each cell along the way moves into the place that the one after it has left.
            while steps[at].from as usize != at {
                let (from, left) = (steps[at].from as usize, cell);
                cell = steps[at].cell;
                let (source, target) = (steps[from], steps[at]);
                self.move_cell(&source, cell, &target, left);
                at = from;
            }
            self.put_at(places[steps[at].subtable as usize], cell);
        }
        self.search = steps;
        found.is_some()
    }

    /// The step and the cell in it that can move, and the bucket and empty cell it can move to.
    fn find_chain(&self, steps: &mut Vec<Step>, limit: usize) -> Option<(usize, u32, Step, u32)> {
        let mut at = 0;
        while at < steps.len() {
            for other in 0..self.shape.subtables {
                if other == steps[at].subtable {
                    continue;
                }
                // Where all cells would go is asked for before any of it is looked at.
                let mut nexts = [None; CELLS_MOST];
                for (cell, next) in (0..self.shape.cells).zip(&mut nexts) {
                    *next = self.step(&steps[at], at as u32, cell, other);
                    if let Some(next) = next {
                        let offset = self.offset(next.subtable, next.bucket);
                        probe::prefetch(self.memory.bytes(), offset);
                    }
                }
                for next in nexts.into_iter().flatten() {
                    if let Some(free) = self.empty_cell(&next) {
                        return Some((at, next.cell, next, free));
                    }
                    let known =
                        |step: &Step| step.subtable == next.subtable && step.bucket == next.bucket;
                    if steps.len() < limit && !steps.iter().any(known) {
                        steps.push(next);
                    }
                }
            }
            at += 1;
        }
        None
    }

    /// Where a cell of a step's bucket would go in another subtable, if it can be stored there.
    fn step(&self, from: &Step, at: u32, cell: u32, subtable: u32) -> Option<Step> {
        let (fingerprint, copies) = self.cell(from.subtable, from.bucket, cell)?;
        let image = self.permutations[subtable as usize].apply(fingerprint);
        let remainder = image & ((1 << self.shape.remainder) - 1);
        let bucket = image >> self.shape.remainder;
        let fits = copies <= self.ceiling_of(remainder);
        fits.then_some(Step { subtable, bucket, from: at, cell })
    }

    fn empty_cell(&self, step: &Step) -> Option<u32> {
        let bucket = &self.memory.bytes()[self.offset(step.subtable, step.bucket)..];
        let empty = with_layout!(self.shape, |layout| layout.matches(BASE, bucket, 0, 0));
        (empty != 0).then(|| empty.trailing_zeros())
    }

    /// Moves a cell in use to an empty one of another of its buckets.
    fn move_cell(&mut self, from: &Step, cell: u32, to: &Step, free: u32) {
        let (source, target) =
            (self.offset(from.subtable, from.bucket), self.offset(to.subtable, to.bucket));
        let Some((fingerprint, copies)) = self.cell(from.subtable, from.bucket, cell) else {
            unreachable!("a cell that moves is in use");
        };
        let image = self.permutations[to.subtable as usize].apply(fingerprint);
        debug_assert_eq!(
            image >> self.shape.remainder,
            to.bucket,
            "a cell moves to its own bucket"
        );
        let value = self.encode(image & ((1 << self.shape.remainder) - 1), copies);
        with_layout!(self.shape, |layout| {
            let table = self.memory.bytes_mut();
            layout.write(&mut table[target..], free, value);
            layout.write(&mut table[source..], cell, 0);
        });
        self.moved.cells += 1;
    }

    fn put_at(&mut self, place: Place, cell: u32) {
        with_layout!(self.shape, |layout| self.put(layout, place, cell));
    }
}

const _: () = assert!(Moves::SEARCH_MOST as usize > SUBTABLES_MOST as usize);
