//! The operations on a cell: read first, then write.

use super::{
    Body, Follow, Isa, Layout, Lookup, Next, Place, Placing, Refused, Spot, State, UNTOUCHED,
};
use crate::{left::ANY, probe::BASE};

impl Body {
    #[inline(always)]
    pub(super) fn lookup_at<const D: usize, I: Isa, L: Layout>(
        &self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> Lookup<State> {
        match self.table.find(isa, layout, places) {
            (spot, 1) => self.tally.read(self.table.low_at(layout, places, spot)),
            (_, 0) if self.stash.is_empty() => Lookup::Absent,
            (_, 0) => match self.stashed_at(places) {
                Some(at) => self.tally.read(self.stash[at].1),
                None => Lookup::Absent,
            },
            _ => Lookup::DontKnow,
        }
    }

    #[inline(always)]
    pub(super) fn transition_at<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        places: &[Place; D],
        change: impl FnOnce(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        let (spot, found) = self.table.find(isa, layout, places);
        if found == 1 {
            let old = self.table.low_at(layout, places, spot);
            let now = self.tally.read(old);
            let next = change(now);
            if let Next::Insert(state) = next
                && self.shape.placing == Placing::Independent
            {
                self.enter(isa, layout, places, state)?;
                return Ok(now);
            }
            match self.tally.change(old, next)? {
                None => self.table.empty(layout, places, spot),
                Some(low) if self.shape.reinsert && low >> 1 != old >> 1 => {
                    self.table.empty(layout, places, spot);
                    let room = self.table.room(isa, layout, places).unwrap_or(spot);
                    self.put(layout, places, room, low);
                }
                Some(low) => self.write(layout, places, spot, low),
            }
            return Ok(now);
        }
        if found > 1 {
            let next = change(Lookup::DontKnow);
            self.change_several(places, next)?;
            return Ok(Lookup::DontKnow);
        }
        if !self.stash.is_empty()
            && let Some(at) = self.stashed_at(places)
        {
            let old = self.stash[at].1;
            let now = self.tally.read(old);
            let next = change(now);
            match self.tally.change(old, next)? {
                Some(low) => self.stash[at].1 = low,
                None => {
                    self.stash.swap_remove(at);
                }
            }
            return Ok(now);
        }
        match change(Lookup::Absent) {
            Next::Stay => {}
            Next::Insert(state) | Next::Set(state) => self.enter(isa, layout, places, state)?,
            Next::Modify(_) | Next::Forget => return Err(Refused::NotStored),
        }
        Ok(Lookup::Absent)
    }

    /// [`transition_at`](Self::transition_at) with the calls of `follow` before and after it.
    #[inline(always)]
    pub(super) fn follow_at<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        places: &[Place; D],
        key: usize,
        known: Option<Next<State>>,
        follow: &mut impl Follow,
    ) {
        let (mut before, mut chosen) = (Lookup::Absent, Next::Stay);
        let result = self.transition_at(isa, layout, places, |now| {
            before = now;
            chosen = known.unwrap_or_else(|| follow.next(key, now));
            chosen
        });
        follow.done(key, before, chosen, result.map(|_| ()));
    }

    /// Stores a new flow in an empty cell.
    #[inline(always)]
    fn enter<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        places: &[Place; D],
        state: State,
    ) -> Result<(), Refused> {
        self.tally.known(state)?;
        let low = u64::from(state) << 1;
        match self.table.room(isa, layout, places) {
            Some(spot) => self.put(layout, places, spot, low),
            None => self.enter_by_moving(layout, places, low)?,
        }
        self.tally.flows += 1;
        Ok(())
    }

    /// Marks the group of the bucket at `offset` for the timers of a cell with these low bits.
    #[inline(always)]
    fn mark(&mut self, offset: usize, low: u64) {
        if !self.marks.is_empty() {
            self.marks.mark(offset / self.table.bucket_bytes, low >> 1);
        }
    }

    /// Stores a flow in an empty cell.
    #[inline(always)]
    fn put<L: Layout>(&mut self, layout: L, places: &[Place], spot: Spot, low: u64) {
        self.table.put(layout, places, spot, low);
        self.mark(places[spot.place].offset, low);
    }

    /// Changes the cell of a flow.
    #[inline(always)]
    fn write<L: Layout>(&mut self, layout: L, places: &[Place], spot: Spot, low: u64) {
        self.table.write(layout, places, spot, low);
        self.mark(places[spot.place].offset, low);
    }

    /// Stores a new flow whose cells are all taken, by moving, growing or the stash, if they are
    /// allowed.
    #[cold]
    #[inline(never)]
    fn enter_by_moving<L: Layout>(
        &mut self,
        layout: L,
        places: &[Place],
        low: u64,
    ) -> Result<(), Refused> {
        let room = self.table.room_by_moving(layout, places);
        for &(bucket, low) in &self.table.landed {
            self.marks.mark(bucket, low >> 1);
        }
        if let Some(spot) = room {
            self.put(layout, places, spot, low);
            return Ok(());
        }
        if self.shape.placing == Placing::Independent {
            return Err(self.full());
        }
        let fingerprint = self.table.fingerprint_at(places);
        let grows = self.shape.grows && self.table.doubling_makes_room(places);
        if grows && self.grow().is_ok() {
            return self.enter_fingerprint(fingerprint, low);
        }
        if self.stash.len() < self.shape.stash as usize {
            self.stash.push((fingerprint, low));
            return Ok(());
        }
        Err(self.full())
    }

    /// Whether the map may still make room for a flow whose cells are all taken.
    pub(super) fn may_make_room(&self) -> bool {
        let grows = self.shape.grows && self.table.may_double();
        self.table.may_search() || grows || self.stash.len() < self.shape.stash as usize
    }

    pub(super) fn full(&self) -> Refused {
        let stored = self.table.occupied + self.stash.len() as u64;
        let cells = self.shape.all_cells() + u64::from(self.shape.stash);
        Refused::Full { stored, cells }
    }

    fn enter_fingerprint(&mut self, fingerprint: u64, low: u64) -> Result<(), Refused> {
        let places = self.table.places_of::<ANY>(fingerprint);
        match self.table.room(BASE, self.table.any(), &places) {
            Some(spot) => {
                self.put(self.table.any(), &places, spot, low);
                Ok(())
            }
            None => self.enter_by_moving(self.table.any(), &places, low),
        }
    }

    /// The low bits of the cell of a fingerprint, if it has one.
    pub(super) fn held(&self, fingerprint: u64) -> Option<u64> {
        let places = self.table.places_of::<ANY>(fingerprint);
        let layout = self.table.any();
        match self.table.find(BASE, layout, &places) {
            (_, 0) => self.stashed_at(&places).map(|at| self.stash[at].1),
            (spot, _) => Some(self.table.low_at(layout, &places, spot)),
        }
    }

    /// These low bits with at most `flows` flows. `None` for 0.
    pub(super) fn capped(&self, low: u64, flows: u64) -> Option<u64> {
        match flows {
            0 => None,
            flows if flows >= self.tally.flows_of(low) => Some(low),
            flows => Some(self.tally.shared_by(flows) | low & UNTOUCHED),
        }
    }

    /// Adds the flows of another map's cell. Under a clock the cell counts as touched, because the
    /// clock hands of the two maps differ. Timers visit all cells at once, so the flag is kept.
    pub(super) fn join(&mut self, fingerprint: u64, low: u64) -> Result<(), Refused> {
        let low = if self.marks.is_empty() { low & !UNTOUCHED } else { low };
        let places = self.table.places_of::<ANY>(fingerprint);
        let layout = self.table.any();
        let (spot, found) = self.table.find(BASE, layout, &places);
        let stashed = if found == 0 { self.stashed_at(&places) } else { None };
        let old = match (found, stashed) {
            (0, None) => {
                let flows = self.tally.flows_of(low);
                // The other map may count more flows in a cell than this one can.
                let ceiling = self.shape.shared.into();
                if flows > ceiling {
                    return Err(Refused::Overflow { ceiling });
                }
                self.enter_fingerprint(fingerprint, low)?;
                self.tally.flows += flows;
                self.tally.shared += u64::from(self.tally.is_shared(low));
                return Ok(());
            }
            (_, Some(at)) => self.stash[at].1,
            _ => self.table.low_at(layout, &places, spot),
        };
        let (flows, ceiling) =
            (self.tally.flows_of(old) + self.tally.flows_of(low), self.shape.shared.into());
        if flows > ceiling {
            return Err(Refused::Overflow { ceiling });
        }
        self.tally.shared += u64::from(!self.tally.is_shared(old));
        self.tally.flows += self.tally.flows_of(low);
        let both = self.tally.shared_by(flows) | (old & low & UNTOUCHED);
        match stashed {
            Some(at) => self.stash[at].1 = both,
            None => self.write(layout, &places, spot, both),
        }
        Ok(())
    }

    /// The index of the flow with these places in the stash.
    #[cold]
    #[inline(never)]
    fn stashed_at(&self, places: &[Place]) -> Option<usize> {
        let fingerprint = self.table.fingerprint_at(places);
        self.stash.iter().position(|&(stashed, _)| stashed == fingerprint)
    }

    /// Changes a flow whose remainder is in several of its buckets, which happens with independent
    /// placing.
    #[cold]
    #[inline(never)]
    fn change_several<const D: usize>(
        &mut self,
        places: &[Place; D],
        next: Next<State>,
    ) -> Result<(), Refused> {
        let layout = self.table.any();
        match next {
            Next::Forget => return Err(Refused::Ambiguous),
            Next::Insert(state) => return self.enter(BASE, layout, places, state),
            Next::Modify(state) | Next::Set(state) => self.tally.known(state)?,
            Next::Stay => {}
        }
        for (i, &place) in places[..self.table.subtables::<D>()].iter().enumerate() {
            let table = self.table.memory.bytes();
            let mut found = self.table.matches_in(BASE, layout, table, place);
            while found != 0 {
                let spot = Spot { place: i, cell: found.trailing_zeros() };
                found &= found - 1;
                let old = self.table.low_at(layout, places, spot);
                // One of these cells belongs to the flow, so all of them become unknown.
                let low = match next {
                    Next::Stay => old & !UNTOUCHED,
                    _ => self.tally.shared_by(1),
                };
                self.tally.shared +=
                    u64::from(self.tally.is_shared(low) && !self.tally.is_shared(old));
                self.write(layout, places, spot, low);
            }
        }
        Ok(())
    }
}
