//! The slow path of a transition: flows in the stash, and new flows that find no empty cell.
//!
//! Such a flow gets a cell by moves or growth, or enters the stash, or is refused. Also writes and finds of
//! single cells, for parts of the map that do not run in batches.

use super::{Body, Follow, Lookup, Next, Placing, Refused, State};
use crate::{
    bucket::Layout,
    dleft_table::{ANY, Cell},
};

impl Body {
    /// The transition of a flow that is in the stash, or has no cell and no empty cell. `chosen` is
    /// its next state, if `follow` has already chosen it.
    #[cold]
    #[inline(never)]
    pub(super) fn change_slowly(
        &mut self,
        key: usize,
        permuted: &[u64],
        chosen: Option<Next<State>>,
        follow: &mut impl Follow,
    ) {
        // The first permutation is the identity.
        let stashed = self.stashed_at(permuted[0]);
        let old = stashed.map(|at| self.stash[at].1);
        let before = old.map_or(Lookup::Absent, |low| self.tally.read(low));
        let next = chosen.unwrap_or_else(|| follow.next(key, before));
        let done = self.tally.rule(old, next).and_then(|write| {
            match (stashed, write.low) {
                (Some(at), Some(low)) => self.stash[at].1 = low,
                (Some(at), None) => {
                    self.stash.swap_remove(at);
                }
                (None, Some(low)) => self.enter_by_moving(permuted, low)?,
                (None, None) => {}
            }
            self.tally.record(write);
            Ok(())
        });
        follow.done(key, before, next, done);
    }

    /// Stores a new flow by moving cells, growing or the stash, if they are allowed.
    fn enter_by_moving(&mut self, permuted: &[u64], low: u64) -> Result<(), Refused> {
        let room = self.table.room_by_moving(permuted);
        for &(bucket, low) in &self.table.landed {
            self.marks.mark(bucket, low >> 1);
        }
        if let Some(room) = room {
            self.put(room, low);
            return Ok(());
        }
        if self.shape.placing == Placing::Independent {
            return Err(self.full());
        }
        let grows = self.shape.grows && self.table.doubling_makes_room(permuted);
        if grows && self.grow().is_ok() {
            return self.enter_fingerprint(permuted[0], low);
        }
        if self.stash.len() < self.shape.stash as usize {
            self.stash.push((permuted[0], low));
            return Ok(());
        }
        Err(self.full())
    }

    /// Stores a new fingerprint.
    pub(super) fn enter_fingerprint(&mut self, fingerprint: u64, low: u64) -> Result<(), Refused> {
        self.enter(&self.table.fingerprints.permuted(fingerprint), low)
    }

    /// Stores a new flow.
    pub(super) fn enter(&mut self, permuted: &[u64; ANY], low: u64) -> Result<(), Refused> {
        match self.table.any_finder().room(self.table.memory.bytes(), permuted) {
            Some(room) => {
                self.put(room, low);
                Ok(())
            }
            None => self.enter_by_moving(permuted, low),
        }
    }

    /// Stores a flow in an empty cell.
    fn put(&mut self, room: Cell, low: u64) {
        self.table.put(self.table.any(), room, low);
        self.marks.mark(room.bucket, low >> 1);
    }

    /// Changes the low bits of a cell in use.
    pub(super) fn rewrite(&mut self, cell: Cell, low: u64) {
        let old = self.table.addressing.low_bits(cell.value);
        let layout = self.table.any();
        let bucket = layout.bucket_mut(self.table.memory.bytes_mut(), cell.bucket);
        layout.write(bucket, cell.cell, cell.value ^ old ^ low);
        self.marks.mark(cell.bucket, low >> 1);
    }

    /// The refusal of a flow whose cells are all taken. `None` if a search, growth or the stash may
    /// make room.
    pub(super) fn surely_full(&self) -> Option<Refused> {
        let grows = self.shape.grows && self.table.may_double();
        let may = self.table.may_search() || grows || self.stash.len() < self.shape.stash as usize;
        (!may).then(|| self.full())
    }

    pub(super) fn full(&self) -> Refused {
        let stored = self.table.occupied + self.stash.len() as u64;
        let cells = self.shape.all_cells() + u64::from(self.shape.stash);
        Refused::Full { stored, cells }
    }

    /// The index of a fingerprint in the stash.
    #[cold]
    #[inline(never)]
    pub(super) fn stashed_at(&self, fingerprint: u64) -> Option<usize> {
        self.stash.iter().position(|&(stashed, _)| stashed == fingerprint)
    }
}
