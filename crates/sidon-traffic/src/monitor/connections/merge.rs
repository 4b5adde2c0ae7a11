//! Connections after the last packet: read back, aged further, merged.

use super::{Connections, Counts, life::Lives};
use sidon::{
    Infeasible, Lookup, Refused, Seed,
    state::{Fingerprint, State, fingerprint::Met},
};

/// How many connections a merge met twice, and how many it had no room for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) in_both: u64,
    pub(crate) refused: u64,
}

impl Connections {
    /// What is counted, without those that are still there.
    pub(crate) fn raw_counts(&self) -> &Counts {
        &self.counts
    }

    /// The connections of a map as it was at that time; `None` if its states are not ours, or more are
    /// half open than ever were. The hands begin their rounds anew.
    pub(crate) fn restored(
        map: Fingerprint,
        counts: Counts,
        now: u64,
        seed: Seed,
    ) -> Result<Option<Self>, Infeasible> {
        let mut shape = map.shape();
        let alike = super::shape(0)?;
        (shape.buckets, shape.moves) = (alike.buckets, alike.moves);
        if shape != alike {
            return Ok(None);
        }
        let mut restored = Connections { counts, ..Connections::new(alike, seed, false)? };
        // With nothing in it, so that the hands have the time and nothing to do.
        restored.pass(now);
        restored.map = map;
        let peak = restored.counts.peak_half_open;
        restored.recount();
        Ok((restored.counts.peak_half_open == peak).then_some(restored))
    }

    /// Takes in another's. `last` are the times of the last packets; the one that ended first is
    /// aged. If they lie apart, what was half open in the one was at most for a while so in the other.
    pub(crate) fn merge(
        &mut self,
        mut other: Connections,
        last: [u64; 2],
        apart: bool,
    ) -> Result<Joined, Refused> {
        let peaks = [self.counts.peak_half_open, other.counts.peak_half_open];
        let left = [self.counts.half_open, other.counts.half_open];
        let earlier = usize::from(last[1] < last[0]);
        let peak = if apart {
            peaks[earlier].max(left[earlier].saturating_add(peaks[1 - earlier]))
        } else {
            peaks[0].saturating_add(peaks[1])
        };
        let now = last[0].max(last[1]);
        self.pass(now);
        other.pass(now);
        let Connections { map, lives, counts, .. } = self;
        let mut joined = Joined::default();
        map.take_over(&other.map, &mut |met: Met| {
            if met.own != Lookup::Absent {
                joined.in_both += 1;
                counts.settle(lives, met.own);
                counts.settle(lives, met.other);
            } else if met.refused.is_some() {
                joined.refused += 1;
                counts.settle(lives, met.other);
            }
        })?;
        counts.add(&other.counts);
        counts.in_both = counts.in_both.saturating_add(joined.in_both);
        counts.refused = counts.refused.saturating_add(joined.refused);
        counts.peak_half_open = peak;
        self.recount();
        Ok(joined)
    }

    /// Counts anew what is half open and what is open.
    fn recount(&mut self) {
        let (mut half_open, mut open) = (0, 0);
        for (life, cells) in self.lives.lives.iter().zip(self.map.census()) {
            half_open += u64::from(life.is_half_open()) * cells;
            open += u64::from(life.is_open()) * cells;
        }
        (self.counts.half_open, self.counts.open) = (half_open, open);
        self.counts.peak_half_open = self.counts.peak_half_open.max(half_open);
    }
}

impl Counts {
    /// Counts what the map will no longer tell.
    fn settle(&mut self, lives: &Lives, answer: Lookup<State>) {
        if let Lookup::State(state) = answer {
            self.by_state[lives.of(state).outcome()] += 1;
        }
    }

    /// Adds what has ended, and what was counted along the way.
    fn add(&mut self, other: &Counts) {
        for (own, other) in self.by_state.iter_mut().zip(other.by_state) {
            *own = own.saturating_add(other);
        }
        for (own, other) in [
            (&mut self.dont_know, other.dont_know),
            (&mut self.refused, other.refused),
            (&mut self.one_way, other.one_way),
            (&mut self.came_about, other.came_about),
            (&mut self.in_both, other.in_both),
        ] {
            *own = own.saturating_add(other);
        }
    }
}
