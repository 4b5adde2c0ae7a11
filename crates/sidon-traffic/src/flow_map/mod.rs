//! A map from flows to states that ages by packet time and samples when it is full.
//!
//! Connections, machines of users and pairs of hosts are each a [`Monitor`] on such a map:
//! ```text
//! packets -> Monitor::next  -> valve -> map: write -> Monitor::done     counts, verdicts
//!            timers, by packet time   -> map: visit -> Monitor::visit    expiry
//! ```
//! `done` runs after the write and says whether the map accepted it. A monitor counts there and
//! nowhere else, so that no count has to be undone.

mod saved;
mod valve;

pub use valve::Valve;

use crate::work::Work;
use sidon::{
    Digest, Infeasible, Lookup, Refused, Seed,
    internals::{Fate, Follow, GROUP, Visited},
    state::{Fingerprint, Next, State, fingerprint::Shape},
};

/// Time that may pass before the timers run.
pub const GRAIN: u64 = valve::WINDOW;

/// The rules of one kind of flow.
pub trait Monitor {
    /// The next state of the flow of packet `index`, which is in state `now`.
    fn next(&mut self, index: usize, now: Lookup<State>) -> Next<State>;

    /// Whether packet `index` can be the first of a flow.
    fn is_first(&self, index: usize) -> bool {
        let _ = index;
        true
    }

    /// The result of a packet.
    fn done(&mut self, index: usize, step: Step);

    /// Whether timer `timer` runs now.
    fn runs(&self, timer: usize) -> bool {
        let _ = timer;
        true
    }

    /// The action on a cell that timer `timer` visits.
    fn visit(&mut self, timer: usize, cell: Visited, share: Share) -> Fate;
}

/// The result of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The state before.
    pub before: Lookup<State>,
    /// The next state, as [`Monitor::next`] chose it.
    pub next: Next<State>,
    /// Whether the map stored the next state.
    pub result: Taken,
    /// The share of flows that this one represents.
    pub share: Share,
    /// Whether a new flow is evidence: flows of its class were followed for as long as an attempt
    /// lasts.
    pub is_evidence: bool,
}

/// The share of all flows that a followed flow represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The flow's sampling class.
    pub class: u32,
    /// The level that counts are scaled by.
    pub level: u32,
}

impl Share {
    /// The number of flows that this one represents; 0 if it is left out of counts.
    #[inline]
    pub fn scale(self) -> u64 {
        if self.class >= self.level { 1 << self.level } else { 0 }
    }

    /// The variance that this flow adds to a count.
    #[inline]
    pub fn variance(self) -> u64 {
        self.scale() * self.scale().saturating_sub(1)
    }
}

/// Whether a map stored the next state of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The map stored it.
    Yes,
    /// The map had no room for a new flow, or could not count one more flow in a shared cell.
    Refused,
    /// The valve passed over a new flow.
    Unsampled,
}

/// A timer: the time between two visits of every cell, and the periods that have begun.
#[derive(Debug)]
struct Timer {
    period: u64,
    rounds: u64,
}

/// The map.
#[derive(Debug)]
pub struct FlowMap {
    map: Fingerprint,
    /// One timer for each timeout.
    timers: Vec<Timer>,
    /// When the timers last ran.
    swept: Option<u64>,
    valve: Valve,
    /// The expected number of flows whose packets went to another flow's cell, up to the last time
    /// the timers ran, and the packets since then that matched no cell.
    mistaken: f64,
    absent: u64,
    /// Whether the valve may sample.
    samples: bool,
    /// For tests: the number of packets after which the map refuses every new flow.
    full_after: Option<u64>,
    /// Cells that the timers have read, and packets so far.
    cells_read: u64,
    packets: u64,
}

impl FlowMap {
    /// An empty map with timers of these periods, in nanoseconds. `timers_of` has the timers of each
    /// state, see [`Fingerprint::set_timers`]. Without `samples`, the map refuses new flows that do
    /// not fit.
    pub fn new(
        shape: Shape,
        seed: Seed,
        periods: &[u64],
        timers_of: Vec<u8>,
        samples: bool,
    ) -> Result<Self, Infeasible> {
        let timer = |&period: &u64| Timer { period: period.max(1), rounds: 0 };
        let mut map = Fingerprint::new(shape, seed)?;
        map.set_timers(timers_of);
        Ok(FlowMap {
            map,
            timers: periods.iter().map(timer).collect(),
            swept: None,
            valve: Valve::default(),
            mistaken: 0.0,
            absent: 0,
            samples,
            full_after: None,
            cells_read: 0,
            packets: 0,
        })
    }

    /// For tests: from `packets` packets on, the map refuses every new flow.
    #[doc(hidden)]
    pub fn refuse_after(&mut self, packets: u64) {
        self.full_after = Some(packets);
    }

    /// Takes packets with these times and flow digests, in order. The timers run before the
    /// first packet of each [`GRAIN`] of time.
    pub fn take(
        &mut self,
        flows: &[Digest],
        time: impl Fn(usize) -> u64,
        monitor: &mut impl Monitor,
    ) {
        self.packets += flows.len() as u64;
        let mut from = 0;
        while from < flows.len() {
            let now = time(from);
            self.pass(now, monitor);
            let until = (self.swept.unwrap_or(now) / GRAIN + 1).saturating_mul(GRAIN);
            let length = (from..flows.len()).take_while(|&index| time(index) < until).count();
            let to = from + length.max(1);
            let FlowMap { map, valve, absent, samples, full_after, .. } = self;
            let classes = Classes { flows: &flows[from..to], of: map.classes() };
            let mut gate = Gate {
                monitor,
                valve,
                absent,
                first: from,
                classes,
                samples: *samples,
                full_after,
                passed_over: None,
            };
            map.follow_batch(&flows[from..to], &mut gate);
            from = to;
        }
    }

    /// Runs the timers that are due, if a new [`GRAIN`] of time has begun.
    ///
    /// A timer visits all of its cells at once, whenever a new period begins; periods count from
    /// 1970. The moment when a flow expires therefore depends on the times of the packets alone. It
    /// depends neither on the seed, which decides where its cell is, nor on the start of the capture.
    ///
    /// Each visit brings a cell of the timer closer to its end, and the map skips groups of buckets
    /// without such cells. Therefore the work depends on the number of packets, however far apart they
    /// are: see [`work`](Self::work).
    pub fn pass(&mut self, now: u64, monitor: &mut impl Monitor) {
        if self.swept.is_some_and(|swept| now / GRAIN <= swept / GRAIN) {
            return;
        }
        let is_first = self.swept.replace(now).is_none();
        self.mistaken = self.mistaken();
        self.absent = 0;
        let FlowMap { map, timers, valve, cells_read, .. } = self;
        let level = valve.highest();
        for (number, timer) in timers.iter_mut().enumerate() {
            let due = now / timer.period;
            let rounds = due.saturating_sub(timer.rounds).min(if is_first { 0 } else { ROUNDS });
            timer.rounds = due.max(timer.rounds);
            for _ in 0..rounds {
                if map.is_empty() || !monitor.runs(number) {
                    break;
                }
                let mut visit =
                    |cell: Visited| monitor.visit(number, cell, Share { class: cell.class, level });
                *cells_read += map.sweep_timer(number, &mut visit).read;
            }
        }
        let cells = self.map.shape().all_cells();
        if self.samples {
            self.valve.turn(now, self.map.len(), cells);
        }
    }

    /// The expected number of flows whose packets went to the cell of another flow. A packet of a
    /// flow that is not stored matches the cell of another one with the chance
    /// [`certainty`](Fingerprint::certainty) of the map, which is highest just before the timers run.
    pub fn mistaken(&self) -> f64 {
        self.mistaken + self.absent as f64 * self.map.certainty().error()
    }

    /// Sets the number of mistaken flows to 0, after the caller has added it to its own count.
    pub(crate) fn forget_mistaken(&mut self) {
        (self.mistaken, self.absent) = (0.0, 0);
    }

    /// The map.
    pub fn map(&self) -> &Fingerprint {
        &self.map
    }

    /// The map, mutable, so that a merge can add flows.
    pub(crate) fn map_mut(&mut self) -> &mut Fingerprint {
        &mut self.map
    }

    /// Replaces the map by one from a file.
    pub(crate) fn restore(&mut self, mut map: Fingerprint) {
        map.set_timers(self.map.timers_of().to_vec());
        self.map = map;
    }

    /// The cells that timers have read, and the buckets that searches for room have followed.
    ///
    /// After its last packet, a cell is visited `ROUNDS` times at most, and once more if its mark is
    /// left over. A visit reads a group of buckets.
    pub fn work(&self, names: [&'static str; 2]) -> [Work; 2] {
        let shape = self.map.shape();
        let group = GROUP as u64 * u64::from(shape.cells);
        let cells = ((ROUNDS + 1) * group).saturating_mul(self.packets);
        // A flow takes a cell once and frees it once.
        let buckets = shape.moves.work_most(2 * self.packets);
        [
            Work { what: names[0], done: self.cells_read, most: cells },
            Work { what: names[1], done: self.map.stats().followed, most: buckets },
        ]
    }

    /// Scales counts by the highest level that an earlier map reached.
    pub(crate) fn restore_level(&mut self, highest: u32) {
        self.valve.restore(highest);
    }

    /// The sampling valve.
    pub fn valve(&self) -> &Valve {
        &self.valve
    }
}

/// The number of mistaken flows that is exceeded with a probability below `chance`, if `expected` of
/// them are expected and each is independent of the others.
pub fn mistaken_most(expected: f64, chance: f64) -> u64 {
    if expected > 100.0 {
        // Bernstein's inequality for a Poisson variable.
        let log = -chance.ln();
        return (expected + log / 3.0 + (log * log / 9.0 + 2.0 * log * expected).sqrt()).ceil()
            as u64;
    }
    // The terms beyond `most` sum to less than the first of them times a geometric series.
    let mut term = (-expected).exp();
    let mut most = 0;
    loop {
        let next = (most + 1) as f64;
        let tail = term * expected / next / (1.0 - expected / (next + 1.0)).max(1e-3);
        if next > expected && tail < chance {
            return most;
        }
        term *= expected / next;
        most += 1;
    }
}

/// The chance that a count is called exact though a mistaken flow has changed it.
pub const EXACT: f64 = 1e-6;

/// Rounds of a timer that run after a jump in time: as many as the ages of an attempt.
const ROUNDS: u64 = 5;

/// The sampling classes of the flows of one part of a batch.
struct Classes<'a, F> {
    flows: &'a [Digest],
    of: F,
}

/// The filter between the map and a monitor: keeps out new flows whose class is below the level.
struct Gate<'a, M, F> {
    monitor: &'a mut M,
    valve: &'a mut Valve,
    absent: &'a mut u64,
    /// The batch index of the first packet of this part.
    first: usize,
    classes: Classes<'a, F>,
    samples: bool,
    full_after: &'a mut Option<u64>,
    /// The next state of the flow that is being kept out, and why.
    passed_over: Option<(Next<State>, Taken)>,
}

impl<M, F: Fn(Digest) -> u32> Gate<'_, M, F> {
    #[inline(always)]
    fn class(&self, key: usize) -> u32 {
        (self.classes.of)(self.classes.flows[key])
    }
}

impl<M: Monitor, F: Fn(Digest) -> u32> Follow for Gate<'_, M, F> {
    #[inline(always)]
    fn next(&mut self, key: usize, now: Lookup<State>) -> Next<State> {
        let index = self.first + key;
        let next = self.monitor.next(index, now);
        if let Some(left) = self.full_after {
            *left = left.saturating_sub(1);
        }
        if (now, matches!(next, Next::Insert(_))) == (Lookup::Absent, true) {
            let kept_out = if *self.full_after == Some(0) {
                Some(Taken::Refused)
            } else if self.valve.highest() > 0
                && !self.valve.admits(self.class(key), self.monitor.is_first(index))
            {
                Some(Taken::Unsampled)
            } else {
                None
            };
            if let Some(why) = kept_out {
                self.passed_over = Some((next, why));
                return Next::Stay;
            }
        }
        next
    }

    #[inline(always)]
    fn done(
        &mut self,
        key: usize,
        before: Lookup<State>,
        next: Next<State>,
        result: Result<(), Refused>,
    ) {
        let (next, result) = match self.passed_over.take() {
            Some(passed_over) => passed_over,
            None if result.is_ok() => (next, Taken::Yes),
            None => (next, Taken::Refused),
        };
        *self.absent += u64::from(before == Lookup::Absent);
        let new = before == Lookup::Absent && matches!(next, Next::Insert(_));
        if new && self.samples {
            match result {
                Taken::Unsampled => {}
                // Forced by a test: the map has room.
                Taken::Refused if *self.full_after == Some(0) => {}
                Taken::Yes | Taken::Refused => self.valve.offered(result == Taken::Yes),
            }
        }
        let share = Share { class: self.class(key), level: self.valve.highest() };
        let is_evidence = share.level == 0 || share.class >= self.valve.evidence();
        let step = Step { before, next, result, share, is_evidence };
        self.monitor.done(self.first + key, step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistaken_flows_stay_below_their_limit() {
        // The exact tail of a Poisson variable, by summation from the far end.
        let tail = |expected: f64, most: u64| -> f64 {
            let term = |n: u64| {
                let log = n as f64 * expected.ln() - expected;
                (log - (1..=n).map(|i| (i as f64).ln()).sum::<f64>()).exp()
            };
            (most + 1..most + 400).rev().map(term).sum()
        };
        for expected in [1e-7, 9e-7, 2e-6, 1e-3, 0.1, 1.0, 5.0, 40.0, 99.0, 150.0, 900.0] {
            for (chance, sigmas) in [(0.005, 3.0), (1e-6, 6.0), (1e-9, 8.0)] {
                let most = mistaken_most(expected, chance);
                assert!(tail(expected, most) < chance, "{expected}: {most}");
                let wide = most as f64 <= expected + sigmas * expected.sqrt() + 12.0;
                assert!(wide, "{expected}: {most}");
            }
        }
        assert_eq!(mistaken_most(0.0, EXACT), 0);
        assert_eq!(mistaken_most(9e-7, EXACT), 0);
        assert_eq!(mistaken_most(2e-6, EXACT), 1);
    }
}
