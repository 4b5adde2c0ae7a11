//! Ageing: a flow that nothing touches for two periods expires.
//!
//! Every cell has a flag. Looking a flow up with `touch`, inserting it or modifying it sets the
//! flag; deleting does not. Once a period, a clock hand visits every cell. A cell without a flag is
//! cleared, and a cell with a flag is kept and loses the flag:
//! ```text
//!   cells    | 3 . 7 . . 1 | 3 . 7 . . 1 |        | no flag: cleared
//!   flags    | 0 0 1 0 0 1 | 1 0 0 0 0 1 |  ->    | flag: kept, flag cleared
//!                    hand ^ -- in proportion to time -->
//! ```
//! The paper visits all cells at the end of a period. The clock hand spreads the same work over the
//! period, so that no operation has to wait for a whole table. Bonomi et al., SIGCOMM 2006, section
//! 3.2.
//!
//! A [`Clock`] owns its map, and gives access to it only with the time of the access. It moves the
//! clock hand first. Therefore every touch has a time, and these bounds hold however rare calls
//! are:
//!
//! - A flow that was touched at time `t` is stored at every call up to `t + period`.
//! - A flow that was last touched at `t` is gone at every call from `t + 2 * period` on.
//!
//! The second bound has an exception: a cell that moves, because a search makes room or a merge copies
//! it, counts as touched at that time. In a map at its planned load, insertions move cells often. Of
//! flows inserted once into such a map, 13 % outlived two periods in the plan for speed, the oldest by
//! five periods. In the plan for memory it was 35 %, the oldest by twelve. A map with room to spare, or
//! with `Moves::Never`, has no such flows. The bounds are those of cells: an expired flow is answered
//! otherwise than `Absent` as often as a key never inserted. Growing and shrinking keep the flags. They change the number of hand steps per period, and
//! each growth or shrinking can delay the end of a flow by up to three of the longer steps (`period
//! / units`). Saved bytes include the position of the clock hand, so that a loaded map ages on from
//! there.
//!
//! # Touching by lookup
//!
//! In the paper every lookup touches the cells that it reads. Here, a lookup of a flow that looks absent
//! touches none. [`Map::with_touch_by_lookup`](super::Map::with_touch_by_lookup) selects the paper's rule.
//! Both keep every flow that was touched within a period. They differ in the cells of ended flows.
//!
//! Let a lookup read `k` of `m` cells. By the paper's rule, `n` lookups of absent flows per period keep a
//! cell with probability `1 - (1 - 1/m)^(k * n)`, in each period again. By our rule, cells of ended flows live
//! for at most two periods, unless other flows use them. It needs the answer before it can touch.
//!
//! Measured on maps of 32,000 cells and 2,000 live flows, with 400 flows per period that end silently,
//! and `n` lookups of absent flows per period. The test `the_two_rules_of_touching_cost_this` computes
//! and checks these numbers:
//!
//! | map | `n` | our rule: in use, errors | paper's rule: in use, errors |
//! |---|---:|---|---|
//! | `Direct`, 1 bit, `k` = 8 | 1,000 | 48.0 %, 0.2 % | 49.3 %, 0.3 % |
//! | `Direct`, 1 bit, `k` = 8 | 8,000 | 48.0 %, 0.3 % | 67.7 %, 4.5 % |
//! | `Stateful`, `k` = 4 | 1,000 | 27.9 %, 0.3 % (37.6 %) | 28.3 %, 0.4 % (37.6 %) |
//! | `Stateful`, `k` = 4 | 8,000 | 28.0 %, 0.4 % (36.3 %) | 33.6 %, 0.6 % (36.3 %) |
//!
//! An error is a lookup of an absent flow that is answered otherwise. For `Stateful`, don't-knows about
//! live flows follow in brackets.
//!
//! Cost: a call visits `elapsed / period` of the map, and no more than all of it twice. Two visits
//! clear every flow that was not touched in between.

/// A map whose cells have flags for ageing, and a clock hand that visits them.
///
/// ```
/// use sidon::{Lookup, Seed, internals::Sweep, state::{Direct, direct::Shape}};
///
/// let shape = Shape { cells: 1_000, hashes: 4, states: 3, counter: 4, timed: true };
/// let mut flows = Direct::new(shape, Seed(1))?;
/// flows.insert("flow", 1)?;
/// // The first round clears the flags, the second clears the cells.
/// assert_eq!(flows.sweep(flows.units()), 0);
/// assert_eq!(flows.lookup("flow"), Lookup::State(1));
/// assert_eq!(flows.sweep(flows.units()), 4);
/// assert_eq!(flows.lookup("flow"), Lookup::Absent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(hidden)]
pub trait Sweep {
    /// The number of units in a round of the clock hand: buckets, or blocks of cells.
    fn units(&self) -> u64;

    /// The position of the clock hand: the number of units visited in this round, less than
    /// [`units`](Self::units).
    fn hand(&self) -> u64;

    /// Visits the units from the clock hand to `to`, at most to the last: clears the cells without
    /// a flag, and clears all flags. The clock hand is at `to` afterwards, or at 0 after the last
    /// unit. Returns the number of cells cleared.
    fn sweep(&mut self, to: u64) -> u64;
}

/// A map that ages. See the [module](self).
///
/// Time is in any unit: nanoseconds of a packet clock with [`at`](Self::at), or operations with
/// [`tick`](Self::tick).
/// ```
/// use sidon::{Lookup, Seed, plan::{Prefer, States, fingerprint}, state::{Clock, Fingerprint}};
/// const SECOND: u64 = 1_000_000_000;
/// let shape = fingerprint::shape(States { flows: 1_000, states: 4, error: 1e-6 }, Prefer::Speed)?;
/// let mut flows = Clock::new(Fingerprint::new(shape, Seed(1))?, 5 * SECOND);
/// flows.at(60 * SECOND).insert("a flow", 3)?;
/// assert_eq!(flows.at(65 * SECOND).lookup("a flow"), Lookup::State(3));
/// assert_eq!(flows.at(70 * SECOND).lookup("a flow"), Lookup::Absent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Clock<M> {
    map: M,
    period: u64,
    /// Units and hand of the map after the last call. They differ if the caller has grown, shrunk
    /// or replaced the map since.
    units: u64,
    hand: u64,
    /// Time since the round began.
    passed: u64,
    /// Time that the clock hand still waits after a growth.
    wait: u64,
    /// The latest time given to [`at`](Self::at).
    now: Option<u64>,
}

impl<M: Sweep> Clock<M> {
    /// A clock that ages `map`, starting at the map's clock hand. A period of 0 means 1.
    pub fn new(map: M, period: u64) -> Self {
        let (units, hand, passed, wait, now) = (0, 0, 0, 0, None);
        Clock { map, period: period.max(1), units, hand, passed, wait, now }
    }

    /// The map at time `now`, with the clock hand moved there. The first call starts the clock. A
    /// time before that of an earlier call counts as the time of the earlier call.
    #[inline]
    pub fn at(&mut self, now: u64) -> &mut M {
        let before = self.now.unwrap_or(now);
        self.now = Some(now.max(before));
        self.tick(now.saturating_sub(before))
    }

    /// The map after `elapsed` operations, or any other unit of time, since the last call.
    #[inline]
    pub fn tick(&mut self, elapsed: u64) -> &mut M {
        if (self.map.units(), self.map.hand()) != (self.units, self.hand) {
            self.follow();
        }
        if elapsed / 2 >= self.period {
            // Everything expires, and an empty map may have its clock hand anywhere.
            self.visit(self.units.saturating_mul(2));
            return &mut self.map;
        }
        let waited = self.wait.min(elapsed);
        self.wait -= waited;
        self.passed = self.passed.saturating_add(elapsed - waited);
        let product = u128::from(self.passed) * u128::from(self.units);
        if product >= u128::from(self.hand + 1) * u128::from(self.period) {
            let due = product / u128::from(self.period);
            self.passed %= self.period;
            self.visit(u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.hand));
        }
        &mut self.map
    }

    /// The map as of the last call: flows that have expired since then are still stored.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// Sets the time of the round by the clock hand, after the map has changed.
    #[cold]
    fn follow(&mut self) {
        let units = self.map.units();
        if units > self.units && self.units > 0 {
            // The lower half of a bucket comes before its end in the new round, by less than a step
            // of the old one. The wait makes up for it.
            self.wait = self.wait.saturating_add(self.period.div_ceil(self.units));
        }
        self.units = units;
        self.hand = self.map.hand().min(units.saturating_sub(1));
        let passed = u128::from(self.hand) * u128::from(self.period) / u128::from(units.max(1));
        // Less than the period, because the clock hand is less than the units.
        self.passed = passed as u64;
    }

    /// Moves the clock hand on by this number of units.
    fn visit(&mut self, mut units: u64) {
        while units > 0 {
            let to = self.units.min(self.hand.saturating_add(units));
            self.map.sweep(to);
            units -= to - self.hand;
            self.hand = if to == self.units { 0 } else { to };
        }
    }
}
