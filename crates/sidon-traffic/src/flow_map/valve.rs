//! The sampling valve: which new flows a map follows when not all of them fit.
//!
//! At level `k` the map accepts one new flow in `2^k`, those of class `k` or higher
//! ([`Fingerprint::class_of`]). A flow that was accepted is followed to its end, whatever the level
//! becomes.
//!
//! The level depends on the free cells. Each window of [`WINDOW`] nanoseconds has a limit of
//! accepted flows. The limit is the number that fills the map to [`RELAXED`], and a share of the
//! cells from there to [`FULL`]. The share is chosen so that flows that stay for [`STAY`] fill the
//! map to [`FULL`] at most.
//!
//! The level rises as soon as a window exceeds its limit. It falls by one after [`QUIET`] windows
//! in a row below a third of the limit, or after two below a sixteenth.
//!
//! # Evidence
//!
//! An attempt and its answer can be seconds apart. After the level has fallen, the map accepts
//! attempts of more classes than it has answers for, and a server would seem not to answer.
//! Therefore an attempt is evidence of a flood only if its class was accepted throughout the last
//! [`SETTLE`] windows ([`evidence`](Valve::evidence)). Answers always count.
//!
//! # Counts
//!
//! A count sums `2^k` over the flows of class `k` or higher, with the variance `2^k * (2^k - 1)`
//! for each. `k` is the [`highest`](Valve::highest) level so far: the map accepted every flow of
//! that class, whenever the flow began. Counts stay scaled until the period ends, because a
//! connection that began at a high level may last for any time.

use crate::{
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::{Malformed, internals::CLASSES};

const SECOND: u64 = 1_000_000_000;
/// Nanoseconds of a window.
pub(crate) const WINDOW: u64 = SECOND / 4;
/// The shortest time that a new flow stays, in nanoseconds: that of an attempt without an answer.
const STAY: u64 = 5 * SECOND;
/// The share of cells above which new flows are sampled, and the share that they may fill.
const RELAXED: f64 = 0.6;
const FULL: f64 = 0.9;
/// The smallest number of new flows that a window may accept.
const LEAST: u64 = 8;
/// Windows in a row with few accepted flows before the level falls.
const QUIET: u32 = 8;
/// Windows after which an attempt that was not answered has expired.
const SETTLE: usize = (STAY / WINDOW) as usize + 4;

/// The valve of one map.
#[derive(Debug, Clone, Default)]
pub struct Valve {
    level: u32,
    /// New flows that this window has accepted, and the limit.
    accepted: u64,
    allowed: u64,
    /// Flows accepted in this window at which the level rises next, and the increment of that
    /// limit.
    limit: u64,
    step: u64,
    /// Windows in a row that accepted few flows.
    quiet: u32,
    /// When sampling began; `None` if it has not.
    since: Option<u64>,
    highest: u32,
    /// The highest levels of the last windows, the current one at `window`.
    levels: [u32; SETTLE],
    window: usize,
    /// The largest of them.
    evidence: u32,
    now: u64,
}

impl Valve {
    /// The level in force: one new flow in `2^level` is accepted.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// The highest level so far, which counts are scaled by.
    pub fn highest(&self) -> u32 {
        self.highest
    }

    /// The highest level of the last six seconds.
    pub fn evidence(&self) -> u32 {
        self.evidence
    }

    /// When sampling began, in nanoseconds; `None` if every flow was followed.
    pub fn since(&self) -> Option<u64> {
        self.since
    }

    /// The valve of a map that was sampled before, at levels up to this one.
    pub(super) fn restore(&mut self, highest: u32) {
        self.highest = highest;
    }

    /// Begins a window at time `now`, with `flows` flows in a map of `cells` cells.
    pub(crate) fn turn(&mut self, now: u64, flows: u64, cells: u64) {
        let passed = (now.saturating_sub(self.now) / WINDOW).clamp(1, SETTLE as u64);
        self.now = now;
        self.quiet = match self.accepted {
            accepted if accepted < self.allowed / 16 => self.quiet + QUIET / 2,
            accepted if accepted < self.allowed / 3 => self.quiet + 1,
            _ => 0,
        };
        if self.quiet >= QUIET {
            self.quiet = 0;
            self.level = self.level.saturating_sub(1);
        }
        for _ in 0..passed {
            self.window = (self.window + 1) % SETTLE;
            self.levels[self.window] = self.level;
        }
        self.evidence = self.levels.iter().copied().fold(0, u32::max);
        let load = flows as f64 / cells as f64;
        let share = (FULL - load.max(RELAXED)) * 2.0 * WINDOW as f64 / STAY as f64;
        let room = (RELAXED - load).max(0.0) + share.max(0.0);
        self.allowed = ((room * cells as f64) as u64).max(LEAST);
        self.limit = self.allowed;
        self.step = ((share * cells as f64) as u64 / 2).max(LEAST);
        self.accepted = 0;
    }

    /// Whether a new flow of this class may enter. Without its `first` packet, the flow may have
    /// been rejected at an earlier level. It then enters only if that level would have accepted it.
    #[inline]
    pub(crate) fn admits(&self, class: u32, first: bool) -> bool {
        class >= if first { self.level } else { self.highest }
    }

    /// Counts a new flow that the map accepted, or refused because it was full.
    #[inline]
    pub(crate) fn offered(&mut self, accepted: bool) {
        // A refusal shows that the map is fuller than its load suggests.
        self.accepted += if accepted { 1 } else { 1 + self.step / 4 };
        if self.accepted > self.limit && self.level < CLASSES {
            self.raise();
        }
    }

    #[cold]
    fn raise(&mut self) {
        self.level += 1;
        self.levels[self.window] = self.levels[self.window].max(self.level);
        self.evidence = self.evidence.max(self.level);
        self.limit = self.accepted + self.step;
        self.quiet = 0;
        self.highest = self.highest.max(self.level);
        self.since.get_or_insert(self.now);
    }
}

impl Resume for Valve {
    fn save(&self, out: &mut Out) {
        // `evidence` follows from `levels`.
        let Valve { level, accepted, allowed, limit, step, quiet, since, highest, .. } = *self;
        out.numbers(&[level.into(), highest.into(), quiet.into(), self.window as u64, self.now]);
        out.numbers(&[accepted, allowed, limit, step]);
        out.optional(since);
        out.numbers(&self.levels.map(u64::from));
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let classes = CLASSES as usize + 1;
        self.level = bytes.below("level", classes)? as u32;
        self.highest = bytes.below("highest", classes)? as u32;
        self.quiet = bytes.below("quiet", QUIET as usize)? as u32;
        self.window = bytes.below("window", SETTLE)?;
        self.now = bytes.number()?;
        [self.accepted, self.allowed, self.limit, self.step] = bytes.counts("accepted")?;
        self.since = bytes.optional("since")?;
        for level in &mut self.levels {
            *level = bytes.below("level", classes)? as u32;
        }
        self.evidence = self.levels.iter().copied().fold(0, u32::max);
        let is_sampled = self.since.is_some() == (self.highest > 0);
        bytes.check("level", is_sampled && self.level.max(self.evidence) <= self.highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers `rate` new flows per window for `windows` windows. Flows stay for [`STAY`]. Returns
    /// the largest number of flows stored at a time.
    fn offer(valve: &mut Valve, cells: u64, rate: u64, windows: u64, start: u64) -> u64 {
        let stay = (STAY / WINDOW) as usize;
        let mut held = std::collections::VecDeque::new();
        let (mut flows, mut most) = (0, 0);
        for window in 0..windows {
            valve.turn(start + window * WINDOW, flows, cells);
            let mut entered = 0;
            for number in 0..rate {
                let class = (number | 1 << CLASSES).trailing_zeros();
                if valve.admits(class, true) {
                    valve.offered(true);
                    entered += 1;
                }
            }
            held.push_back(entered);
            flows += entered;
            if held.len() > stay {
                flows -= held.pop_front().unwrap();
            }
            most = most.max(flows);
        }
        most
    }

    #[test]
    fn new_flows_that_fit_are_all_followed_and_others_never_fill_the_map() {
        let cells = 100_000;
        let mut quiet = Valve::default();
        offer(&mut quiet, cells, cells / 40, 200, 0);
        assert_eq!((quiet.level(), quiet.since()), (0, None));
        for times in [1, 3, 10, 100] {
            let mut valve = Valve::default();
            let most = offer(&mut valve, cells, times * cells / 20, 400, 0);
            assert!(most as f64 <= 0.97 * cells as f64, "{times}: {most}");
            assert!(most as f64 >= 0.3 * cells as f64, "{times}: {most}");
            assert!(valve.since().is_some(), "{times}");
            // The level returns to 0. The weight stays above 0 while flows from the sampled time
            // may exist.
            offer(&mut valve, cells, 10, 400, 400 * WINDOW);
            assert_eq!(valve.level(), 0, "{times}");
            assert!(valve.highest() > 0 && !valve.admits(0, false) && valve.admits(0, true));
        }
    }

    #[test]
    fn evidence_needs_a_class_that_was_accepted_for_as_long_as_an_attempt_lasts() {
        let mut valve = Valve::default();
        valve.turn(0, 890, 1000);
        (0..3).for_each(|_| valve.offered(false));
        assert_eq!((valve.level(), valve.evidence()), (1, 1));
        let mut fell = None;
        for window in 1..100 {
            valve.turn(window * WINDOW, 0, 1000);
            if valve.level() == 0 {
                let fell = *fell.get_or_insert(window);
                let settled = window - fell >= SETTLE as u64 - 1;
                assert_eq!(valve.evidence() == 0, settled, "{window} {fell}");
            } else {
                assert_eq!(valve.evidence(), 1);
            }
        }
        assert!(fell.is_some());
        // A long silence settles everything.
        (0..3).for_each(|_| valve.offered(false));
        valve.turn(1_000 * WINDOW, 0, 1000);
        valve.turn(2_000 * WINDOW, 0, 1000);
        valve.turn(3_000 * WINDOW, 0, 1000);
        assert_eq!(valve.evidence(), valve.level());
    }

    #[test]
    fn refusals_raise_the_level() {
        let mut valve = Valve::default();
        valve.turn(0, 890, 1000);
        (0..3).for_each(|_| valve.offered(false));
        assert_eq!((valve.level(), valve.highest()), (1, 1));
        assert!(!valve.admits(0, true) && valve.admits(1, true));
    }
}
