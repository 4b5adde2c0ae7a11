//! Connections after the last packet: restores them from a file, ages them and merges them.

use super::{Connections, Counts, Held, Merged, Rules, Sampling, life::Lives};
use crate::{flow_map::Share, snapshot::Split};
use sidon::{
    Infeasible, Lookup, Refused, Seed,
    internals::Met,
    state::{Fingerprint, State},
};

/// Connections that a merge found in both parts, and connections that did not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) in_both: u64,
    pub(crate) refused: u64,
}

impl Connections {
    /// The connections of a map saved at time `now`. Returns `None` if the shape is not that of
    /// connections, or if there are more half-open connections than the recorded peak. The timers
    /// start a new round.
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
        // Sets the time of the timers while the map is empty, so that no connection expires.
        restored.pass(now);
        restored.flows.restore(map);
        let peak = counts.peak_half_open;
        restored.rules.counts = counts;
        restored.recount();
        Ok((restored.rules.counts.peak_half_open == peak).then_some(restored))
    }

    /// Merges the connections of another part. `last` are the times of the last packets of both
    /// parts; the earlier one ages to the later. `apart` says that the parts do not overlap in
    /// time. The later part's peak then adds to the connections left half open by the earlier part,
    /// and not to its peak.
    ///
    /// Of parts one after the other, the connections open at the end are those of the later part,
    /// and those of the earlier part that the later one followed and did not see end. Any other
    /// connection of the earlier part was silent or has ended since.
    ///
    /// Of parts split by flow, the counts add up. Two connections with one fingerprint, one in each
    /// part, share a cell afterwards: their outcomes are counted, but not whether they are open.
    pub(crate) fn merge(
        &mut self,
        mut other: Connections,
        last: [u64; 2],
        apart: bool,
        split: Split,
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
        let crossing = if split == Split::ByFlow {
            0
        } else if apart {
            // Every flow that the earlier part still stores, also those in shared cells.
            let stored = [self.map(), other.map()][earlier].len();
            stored.saturating_mul(1 << [&own_counts, &other_counts][earlier].sampling.highest)
        } else {
            let counts = [self.counts(), other.counts()];
            let all = counts.map(|one| total(&one.by_state).saturating_add(one.dont_know));
            all[0].min(all[1])
        };
        let now = last[0].max(last[1]);
        self.pass(now);
        other.pass(now);
        let other_counts = other.raw_counts();
        self.rules.counts = self.raw_counts();
        self.flows.forget_mistaken();
        let opens = [&self.rules.counts, &other_counts]
            .map(|counts| (counts.open, counts.merged.map_or([counts.open; 2], |one| one.open)));
        // No packet of the other part was compared with the flows of this one.
        let stranger = match split {
            Split::Any => self.stranger_rate() * other.map().len() as f64,
            Split::ByFlow => 0.0,
        };
        let Connections { flows, rules: Rules { lives, counts, .. }, .. } = self;
        let mut joined = Joined::default();
        let mut continuing = 0u64;
        let level = counts.sampling.highest.max(other_counts.sampling.highest);
        flows.map_mut().take_over(other.map(), &mut |met: Met| {
            let share = Share { class: met.class, level };
            if met.own != Lookup::Absent {
                joined.in_both += 1;
                let parts = [met.own, met.other];
                if let (Lookup::State(before), Lookup::State(after)) =
                    (parts[earlier], parts[1 - earlier])
                {
                    let goes_on = lives.of(before).is_open() && !lives.of(after).is_over();
                    let counted = lives.of(after).is_open();
                    continuing += if goes_on && !counted { share.scale() } else { 0 };
                }
                counts.settle(lives, met.own, share);
                counts.settle(lives, met.other, share);
            } else if met.refused.is_some() {
                joined.refused += 1;
                counts.settle(lives, met.other, share);
            }
        })?;
        counts.add(&other_counts);
        counts.in_both = counts.in_both.saturating_add(joined.in_both);
        counts.refused = counts.refused.saturating_add(joined.refused);
        counts.peak_half_open = peak;
        counts.mistaken += other_counts.mistaken + stranger;
        counts.sampling.join(&other_counts.sampling);
        let before = [&own_counts, &other_counts].map(|counts| counts.merged.unwrap_or_default());
        let [(left, [left_least, left_most]), (open, [open_least, open_most])] =
            [opens[earlier], opens[1 - earlier]];
        let (open_now, least) = match (split, apart) {
            (Split::ByFlow, _) => {
                (left.saturating_add(open), left_least.saturating_add(open_least))
            }
            (Split::Any, true) => (open.saturating_add(continuing), open_least),
            (Split::Any, false) => (left.saturating_add(open), 0),
        };
        let hidden = if split == Split::ByFlow { 2 * joined.in_both } else { 0 };
        let crossed = before[0].crossing.saturating_add(before[1].crossing);
        counts.merged = Some(Merged {
            crossing: crossed.saturating_add(crossing).saturating_add(hidden),
            open_now,
            open: [least, left_most.saturating_add(open_most)],
            peak_least: peaks[0].max(peaks[1]),
        });
        self.recount();
        Ok(joined)
    }

    /// Recounts half-open and open connections, scaled by the level of the counts.
    pub(super) fn recount(&mut self) {
        let level = self.rules.counts.sampling.highest;
        let (mut half_open, mut open) = (Held::default(), Held::default());
        for (class, answer) in self.map().cells() {
            let Lookup::State(state) = answer else { continue };
            let (life, share) = (self.rules.lives.of(state), Share { class, level });
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
        self.flows.restore_level(level);
    }
}

/// The sum of counts, at most 2^64 - 1.
pub(super) fn total(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n))
}

impl Sampling {
    /// Adds the sampling of another part. Counts of both parts are scaled by the higher level,
    /// because both followed every connection of that class.
    fn join(&mut self, other: &Sampling) {
        self.level = self.level.max(other.level);
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
    /// Counts the outcome of a connection that the merged map does not store, or stores in a shared
    /// cell.
    fn settle(&mut self, lives: &Lives, answer: Lookup<State>, share: Share) {
        if let Lookup::State(state) = answer {
            let outcome = lives.of(state).outcome();
            let (count, variance) =
                (&mut self.by_state[outcome], &mut self.sampling.by_state[outcome]);
            *count = count.saturating_add(share.scale());
            *variance = variance.saturating_add(share.variance());
        }
    }

    /// Adds the outcomes of ended connections and the running counts.
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
