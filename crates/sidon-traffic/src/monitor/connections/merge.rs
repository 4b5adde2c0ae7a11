//! Connections after the last packet: read back, aged further, merged.

use super::{Connections, Counts, Held, Rules, Sampling, life::Lives};
use crate::flow_map::Share;
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
        let mut restored = Connections::new(alike, seed, false)?;
        // With nothing in it, so that the timers have the time and nothing to do.
        restored.pass(now);
        *restored.flows.map_mut() = map;
        let peak = counts.peak_half_open;
        restored.rules.counts = counts;
        restored.recount();
        Ok((restored.rules.counts.peak_half_open == peak).then_some(restored))
    }

    /// Takes in another's. `last` are the times of the last packets; the one that ended first is
    /// aged. If they lie apart, what was half open in the one was at most for a while so in the other.
    pub(crate) fn merge(
        &mut self,
        mut other: Connections,
        last: [u64; 2],
        apart: bool,
    ) -> Result<Joined, Refused> {
        let (own_counts, other_counts) = (self.raw_counts(), other.raw_counts());
        let peaks = [own_counts.peak_half_open, other_counts.peak_half_open];
        let left = [own_counts.half_open, other_counts.half_open];
        let earlier = usize::from(last[1] < last[0]);
        let peak = if apart {
            peaks[earlier].max(left[earlier].saturating_add(peaks[1 - earlier]))
        } else {
            peaks[0].saturating_add(peaks[1])
        };
        let now = last[0].max(last[1]);
        self.pass(now);
        other.pass(now);
        let other_counts = other.raw_counts();
        self.rules.counts = self.raw_counts();
        let Connections { flows, rules: Rules { lives, counts, .. }, .. } = self;
        let mut joined = Joined::default();
        flows.map_mut().take_over(other.map(), &mut |met: Met| {
            if met.own != Lookup::Absent {
                joined.in_both += 1;
                counts.settle(lives, met.own);
                counts.settle(lives, met.other);
            } else if met.refused.is_some() {
                joined.refused += 1;
                counts.settle(lives, met.other);
            }
        })?;
        counts.add(&other_counts);
        counts.in_both = counts.in_both.saturating_add(joined.in_both);
        counts.refused = counts.refused.saturating_add(joined.refused);
        counts.peak_half_open = peak;
        counts.sampling.join(&other_counts.sampling);
        self.recount();
        Ok(joined)
    }

    /// Counts again the connections that are half open and that are open, and scales them by the
    /// level of the counts.
    fn recount(&mut self) {
        let weight = self.rules.counts.sampling.weight;
        let (mut half_open, mut open) = (Held::default(), Held::default());
        for (class, answer) in self.map().cells() {
            let Lookup::State(state) = answer else { continue };
            let (life, share) = (self.rules.lives.of(state), Share { class, level: weight });
            if life.is_half_open() {
                half_open.add(share);
            }
            if life.is_open() {
                open.add(share);
            }
        }
        let peak = &mut self.rules.counts.peak_half_open;
        *peak = (*peak).max(half_open.estimate());
        (self.rules.half_open, self.rules.open) = (half_open, open);
        self.flows.set_weight(weight);
    }
}

impl Sampling {
    /// Adds the sampling of another part. Cells of both parts are scaled by the higher level: every
    /// connection of that class was followed in both.
    fn join(&mut self, other: &Sampling) {
        self.level = self.level.max(other.level);
        self.weight = self.weight.max(other.weight);
        self.highest = self.highest.max(other.highest);
        self.since = match (self.since, other.since) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        };
        self.unsampled = self.unsampled.saturating_add(other.unsampled);
        for (own, other) in self.by_state.iter_mut().zip(other.by_state) {
            *own = own.saturating_add(other);
        }
        self.came_about = self.came_about.saturating_add(other.came_about);
        self.one_way = self.one_way.saturating_add(other.one_way);
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
