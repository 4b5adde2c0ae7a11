//! Ageing: a cell that is not touched for a whole phase is cleared, a few cells at a time.
//!
//! Every cell has a flag, which is set when the cell is looked up, inserted or modified, and not
//! when it is deleted. The paper ends a phase by visiting all cells at once: those without a flag
//! are cleared, all flags go down. Here a hand goes round instead, once a phase, and does the same
//! to the cells it passes:
//! ```text
//!   cells    | 3 . 7 . . 1 | 3 . 7 . . 1 |        | no flag: cleared
//!   flags    | 0 0 1 0 0 1 | 1 0 0 0 0 1 |  ->    | flag: kept, and the flag goes down
//!                    hand ^ -- a few cells an operation -->
//! ```
//! The rule is the same, each cell having a phase of its own, from one visit to the next; no
//! operation waits for a whole table. A flow that nothing touches is gone after two visits at the
//! most, hence within two phases. Bonomi et al., SIGCOMM 2006, section 3.2.

/// What a hand can go round on.
pub trait Sweep {
    /// How many units there are to visit: buckets, or words of cells.
    fn units(&self) -> u64;

    /// Visits units `from..to`, both at most [`units`](Self::units): clears the cells whose flag is
    /// down and puts all flags down. Gives the number of cells cleared.
    fn sweep(&mut self, from: u64, to: u64) -> u64;
}

/// How long a phase lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// So many operations.
    Operations(u64),
    /// So many nanoseconds, by the clock of the packets.
    Nanos(u64),
}

/// The hand. One goes with one structure, and is told of operations or of time.
#[derive(Debug, Clone)]
pub struct Clock {
    period: Period,
    /// The most units visited for one operation.
    most: u64,
    /// Units of the structure when the hand last moved; it may have grown since.
    units: u64,
    /// Where the hand is: units visited in this phase.
    hand: u64,
    /// Operations or nanoseconds of this phase that have passed.
    passed: u64,
    /// The latest time, once there was one.
    now: Option<u64>,
    phases: u64,
    cleared: u64,
}

/// Units that an operation may visit at the most, unless told otherwise: some cache lines, which
/// follow each other in memory.
const MOST: u64 = 8;

impl Clock {
    /// A hand at the start of a phase. A period of zero is taken for one.
    pub fn new(period: Period) -> Self {
        let (units, hand, passed, now, phases, cleared) = (0, 0, 0, None, 0, 0);
        Clock { period, most: MOST, units, hand, passed, now, phases, cleared }
    }

    /// The same with another bound on the units visited for one operation, of 1 or more.
    #[must_use]
    pub fn at_most(self, units: u64) -> Self {
        Clock { most: units.max(1), ..self }
    }

    /// How long a phase lasts.
    pub fn period(&self) -> Period {
        self.period
    }

    /// Phases that have ended.
    pub fn phases(&self) -> u64 {
        self.phases
    }

    /// Cells cleared so far.
    pub fn cleared(&self) -> u64 {
        self.cleared
    }

    /// How many units the hand is behind where it should be: zero, or the bound on the work of an
    /// operation is too low for the period, and phases last longer.
    pub fn behind(&self) -> u64 {
        self.wanted(self.units).saturating_sub(self.hand)
    }

    /// So many operations were done: moves the hand, if it goes by operations.
    #[inline]
    pub fn tick<S: Sweep>(&mut self, map: &mut S, operations: u64) {
        if let Period::Operations(_) = self.period {
            self.passed = self.passed.saturating_add(operations);
            self.advance(map, operations.max(1));
        }
    }

    /// So many operations were done, and it is `nanos` now: moves the hand, if it goes by time.
    /// Time that goes back is no time.
    #[inline]
    pub fn at<S: Sweep>(&mut self, map: &mut S, operations: u64, nanos: u64) {
        if let Period::Nanos(period) = self.period {
            let before = self.now.unwrap_or(nanos);
            let passed = self.passed.saturating_add(nanos.saturating_sub(before));
            self.now = Some(nanos.max(before));
            // Two rounds clear all that was not touched: more would clear nothing.
            self.passed = passed.min(period.max(1).saturating_mul(3));
            self.advance(map, operations.max(1));
        }
    }

    fn length(&self) -> u64 {
        let (Period::Operations(length) | Period::Nanos(length)) = self.period;
        length.max(1)
    }

    /// Where the hand should be, counted on beyond the end of the phase.
    fn wanted(&self, units: u64) -> u64 {
        let wanted = u128::from(self.passed) * u128::from(units) / u128::from(self.length());
        u64::try_from(wanted).unwrap_or(u64::MAX)
    }

    fn advance<S: Sweep>(&mut self, map: &mut S, operations: u64) {
        let units = map.units();
        if units != self.units {
            // The structure grew, every unit into two neighbours, or shrank: the hand keeps its
            // place.
            let hand = u128::from(self.hand) * u128::from(units) / u128::from(self.units.max(1));
            self.hand = if self.units == 0 { 0 } else { hand as u64 };
            self.units = units;
        }
        let mut left = self.wanted(units).saturating_sub(self.hand);
        left = left.min(self.most.saturating_mul(operations));
        while left > 0 {
            let to = units.min(self.hand + left);
            self.cleared += map.sweep(self.hand, to);
            left -= to - self.hand;
            self.hand = to;
            if to == units {
                self.hand = 0;
                self.passed -= self.length();
                self.phases += 1;
            }
        }
    }
}
