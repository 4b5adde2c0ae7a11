//! Operations on flows, single or in batches.
//!
//! A single operation is a batch of one. The loop handles the common cases: the flow has a cell, or
//! one of its buckets has an empty cell, or the map is full. It stops at a flow that is in the stash,
//! or for which cells may move or the table may grow. That flow takes the slow path, after which the
//! loop reads the table's form again. Permuted fingerprints stay valid.
//! ```text
//! find the cell --> the state before --> follow.next --> rule --> write, count --> follow.done
//!                                                          |
//!                         no empty cell, or in the stash --+--> slow path
//! ```

use super::{Body, Lookup, Next, Placing, Refused, State, Table};
use crate::{
    Digest,
    batch::{AnyKeys, Batch, Pace},
    bucket::{Layout, with_layout},
    dleft_table::{Addressing, run_best},
    simd::{BASE, Isa},
};

/// The two sides of a transition: the choice before the write and the result after it.
#[doc(hidden)]
pub trait Follow {
    /// The next state of the flow of key `key`, which is in state `now`.
    fn next(&mut self, key: usize, now: Lookup<State>) -> Next<State>;

    /// The map went from `before` to `next`, or refused to and changed nothing.
    fn done(
        &mut self,
        key: usize,
        before: Lookup<State>,
        next: Next<State>,
        result: Result<(), Refused>,
    );
}

/// A closure that chooses the next state, and one that receives refusals.
pub(super) struct Refusing<'a, F> {
    pub(super) change: F,
    pub(super) refused: &'a mut dyn FnMut(usize, Refused),
}

impl<F: FnMut(usize, Lookup<State>) -> Next<State>> Follow for Refusing<'_, F> {
    #[inline(always)]
    fn next(&mut self, key: usize, now: Lookup<State>) -> Next<State> {
        (self.change)(key, now)
    }

    #[inline(always)]
    fn done(&mut self, key: usize, _: Lookup<State>, _: Next<State>, result: Result<(), Refused>) {
        if let Err(why) = result {
            (self.refused)(key, why);
        }
    }
}

/// A closure for one flow, and the result of its transition.
struct Once<'a> {
    change: &'a mut dyn FnMut(Lookup<State>) -> Next<State>,
    result: Result<Lookup<State>, Refused>,
}

impl Follow for Once<'_> {
    #[inline(always)]
    fn next(&mut self, _: usize, now: Lookup<State>) -> Next<State> {
        (self.change)(now)
    }

    #[inline(always)]
    fn done(
        &mut self,
        _: usize,
        before: Lookup<State>,
        _: Next<State>,
        result: Result<(), Refused>,
    ) {
        self.result = result.map(|()| before);
    }
}

impl Body {
    pub(super) fn lookup_digest(&self, digest: Digest) -> Lookup<State> {
        match self.listed.get(digest) {
            Some(low) => self.tally.read(low),
            None => self.lookup_cells(digest),
        }
    }

    /// The answer for a flow that is not listed.
    pub(super) fn lookup_cells(&self, digest: Digest) -> Lookup<State> {
        with_layout!(self.shape, |layout, D| {
            let mut answers = [Lookup::Absent];
            let permuted: [u64; D] = self.table.permuted(digest);
            let stashed = Stashed::any(&self.stash);
            let mut look = LookUp { layout, map: self, stashed, answers: &mut answers };
            look.apply(BASE, 0, &[permuted]);
            answers[0]
        })
    }

    /// A transition of one flow.
    pub(super) fn transition_of(
        &mut self,
        digest: Digest,
        change: &mut dyn FnMut(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        if self.listed.is_on() {
            return self.transition_listed(digest, change);
        }
        self.transition_cells(digest, change)
    }

    /// A transition of a flow that is not listed. Takes a trait object, so that single operations are
    /// compiled once for all closures.
    pub(super) fn transition_cells(
        &mut self,
        digest: Digest,
        change: &mut dyn FnMut(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        let mut once = Once { change, result: Ok(Lookup::Absent) };
        with_layout!(
            self.shape,
            few | layout,
            D | {
                let permuted: [u64; D] = self.table.permuted(digest);
                let (stashed, full) = (Stashed::any(&self.stash), None);
                let mut change = Change { layout, map: self, stashed, full, follow: &mut once };
                change.change_one(&permuted);
            }
        );
        once.result
    }

    /// Looks up many flows. Without a type parameter, so that it is compiled once.
    pub(super) fn lookup_keys(&self, keys: AnyKeys<'_>, answers: &mut [Lookup<State>]) {
        let bytes = self.table.memory.bytes().len();
        let stashed = Stashed::of(self);
        with_layout!(self.shape, |layout, D| {
            let answers = &mut *answers;
            run_best(keys, bytes, LookUp::<_, D> { layout, map: self, stashed, answers });
        });
        self.answer_listed(keys, answers);
    }

    pub(super) fn follow_keys(&mut self, keys: AnyKeys<'_>, follow: &mut impl Follow) {
        if self.listed.is_on() {
            return self.follow_listed(keys, follow);
        }
        let bytes = self.table.memory.bytes().len();
        let (stashed, full) = (Stashed::of(self), self.surely_full());
        with_layout!(
            self.shape,
            few | layout,
            D | {
                run_best(
                    keys,
                    bytes,
                    Change::<_, _, D> { layout, map: self, stashed, full, follow },
                );
            }
        );
    }
}

/// The flows that may be in the stash: one bit for each first bucket, modulo 64. A full table has a
/// full stash, and most flows then need not be compared with it.
#[derive(Clone, Copy)]
struct Stashed(u64);

impl Stashed {
    fn of(map: &Body) -> Self {
        let bit = |&(fingerprint, _): &(u64, u64)| Self::bit(&map.table.addressing, fingerprint);
        Stashed(map.stash.iter().map(bit).fold(0, |all, bit| all | bit))
    }

    /// All bits, unless the stash is empty.
    #[inline(always)]
    fn any(stash: &[(u64, u64)]) -> Self {
        Stashed(if stash.is_empty() { 0 } else { u64::MAX })
    }

    #[inline(always)]
    fn bit<const D: usize>(addressing: &Addressing<D>, fingerprint: u64) -> u64 {
        1 << (addressing.bucket(0, fingerprint) % 64)
    }

    #[inline(always)]
    fn may_hold<const D: usize>(self, addressing: &Addressing<D>, fingerprint: u64) -> bool {
        self.0 & Self::bit(addressing, fingerprint) != 0
    }
}

/// Looks up each flow.
struct LookUp<'a, L, const D: usize> {
    layout: L,
    map: &'a Body,
    stashed: Stashed,
    answers: &'a mut [Lookup<State>],
}

impl<L: Layout, const D: usize> Batch for LookUp<'_, L, D> {
    const PACE: Pace = Pace::USUAL;
    type Position = [u64; D];
    const NOWHERE: [u64; D] = [0; D];

    #[inline(always)]
    fn locate<I: Isa>(&mut self, isa: I, digests: &[Digest], permuted: &mut [[u64; D]]) {
        self.map.table.locate(isa, self.layout, digests, permuted);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, permuted: &[[u64; D]]) {
        let Body { shape, table, tally, .. } = self.map;
        let answers = permuted.iter().zip(&mut self.answers[first..]);
        if shape.placing == Placing::Independent {
            for (permuted, answer) in answers {
                *answer = self.map.lookup_independent(permuted);
            }
            return;
        }
        let (finder, bytes) = (table.finder(isa, self.layout), table.memory.bytes());
        for (permuted, answer) in answers {
            *answer = match finder.find(bytes, permuted) {
                Some(cell) => tally.read(finder.addressing.low_bits(cell.value)),
                None if self.stashed.may_hold(&finder.addressing, permuted[0]) => {
                    let stashed = self.map.stashed_at(permuted[0]);
                    stashed.map_or(Lookup::Absent, |at| tally.read(self.map.stash[at].1))
                }
                None => Lookup::Absent,
            };
        }
    }
}

/// Changes the state of each flow.
struct Change<'a, F, L, const D: usize> {
    layout: L,
    map: &'a mut Body,
    stashed: Stashed,
    /// The refusal of a flow whose cells are all taken, if the slow path could not make room.
    full: Option<Refused>,
    follow: &'a mut F,
}

impl<F: Follow, L: Layout, const D: usize> Batch for Change<'_, F, L, D> {
    const PACE: Pace = Pace::USUAL;
    type Position = [u64; D];
    const NOWHERE: [u64; D] = [0; D];

    #[inline(always)]
    fn locate<I: Isa>(&mut self, isa: I, digests: &[Digest], permuted: &mut [[u64; D]]) {
        self.map.table.locate(isa, self.layout, digests, permuted);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, mut first: usize, mut permuted: &[[u64; D]]) {
        if self.map.shape.placing == Placing::Independent {
            for (key, permuted) in (first..).zip(permuted) {
                self.map.change_independent(key, permuted, self.follow);
            }
            return;
        }
        while let Some((stopped, next)) = self.change(isa, first, permuted) {
            self.map.change_slowly(first + stopped, &permuted[stopped], next, self.follow);
            (self.stashed, self.full) = (Stashed::of(self.map), self.map.surely_full());
            (first, permuted) = (first + stopped + 1, &permuted[stopped + 1..]);
        }
    }
}

impl<F: Follow, L: Layout, const D: usize> Change<'_, F, L, D> {
    /// A batch of one flow, which needs no loop.
    #[inline(always)]
    fn change_one(&mut self, permuted: &[u64; D]) {
        if self.map.shape.placing == Placing::Independent {
            self.map.change_independent(0, permuted, self.follow);
        } else if let Some((_, next)) = self.change(BASE, 0, &[*permuted]) {
            self.map.change_slowly(0, permuted, next, self.follow);
        }
    }

    /// Changes flows up to the first that must take the slow path. Returns its index, and its next
    /// state if that is already chosen.
    #[inline(always)]
    fn change<I: Isa>(
        &mut self,
        isa: I,
        first: usize,
        permuted: &[[u64; D]],
    ) -> Option<(usize, Option<Next<State>>)> {
        let Change { layout, ref mut map, stashed, ref mut full, ref mut follow } = *self;
        let Body { shape, table, stash, tally, marks, .. } = &mut **map;
        let finder = table.finder(isa, layout);
        let Table { memory, occupied, changes, moved, .. } = table;
        let bytes = memory.bytes_mut();
        for (i, permuted) in permuted.iter().enumerate() {
            let found = finder.find(bytes, permuted);
            let old = found.map(|cell| finder.addressing.low_bits(cell.value));
            if found.is_none()
                && stashed.may_hold(&finder.addressing, permuted[0])
                && is_stashed(stash, permuted[0])
            {
                return Some((i, None));
            }
            let before = old.map_or(Lookup::Absent, |low| tally.read(low));
            let next = follow.next(first + i, before);
            let done = match tally.rule(old, next) {
                Err(why) => Err(why),
                Ok(write) => {
                    // The cell that becomes empty, and the low bits that need another cell.
                    let (leaving, entering) = match (found, old, write.low) {
                        (Some(cell), Some(old), Some(low))
                            if !shape.reinsert
                                || low >> 1 == old >> 1
                                // The other flows of the cell keep its flag, so it stays where the
                                // clock hand expects it.
                                || matches!(next, Next::Forget) =>
                        {
                            let bucket = layout.bucket_mut(bytes, cell.bucket);
                            layout.write(bucket, cell.cell, cell.value ^ old ^ low);
                            marks.mark(cell.bucket, low >> 1);
                            (None, None)
                        }
                        (found, _, low) => (found, low),
                    };
                    if let Some(cell) = leaving {
                        layout.write(layout.bucket_mut(bytes, cell.bucket), cell.cell, 0);
                        *occupied -= 1;
                        *changes += 1;
                        // A cell that is taken or freed earns tokens for a search.
                        *full = None;
                    }
                    let mut done = Ok(());
                    if let Some(low) = entering {
                        match (finder.room(bytes, permuted), *full) {
                            (Some(room), _) => {
                                let bucket = layout.bucket_mut(bytes, room.bucket);
                                layout.write(bucket, room.cell, room.value ^ low);
                                marks.mark(room.bucket, low >> 1);
                                *occupied += 1;
                                *changes += 1;
                                *full = None;
                            }
                            (None, Some(why)) => {
                                moved.needed += 1;
                                done = Err(why);
                            }
                            (None, None) => return Some((i, Some(next))),
                        }
                    }
                    if done.is_ok() {
                        tally.record(write);
                    }
                    done
                }
            };
            follow.done(first + i, before, next, done);
        }
        None
    }
}

#[cold]
#[inline(never)]
fn is_stashed(stash: &[(u64, u64)], fingerprint: u64) -> bool {
    stash.iter().any(|&(stashed, _)| stashed == fingerprint)
}
