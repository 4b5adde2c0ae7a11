//! State maps of 000 and 001: tables of states and pair filters.

use sidon::{plan, set::bloom, state::direct};

/// The rate at which pairs that are not stored are found, with `flows` flows stored.
pub fn pair_rate(shape: direct::Shape, flows: u64) -> f64 {
    plan::bloom::rate(bloom::Shape { bits: shape.cells, hashes: shape.hashes }, flows)
}

/// The chance that a stored flow is answered "don't know": one of its `states - 1` other pairs is found,
/// each at the rate `pair`.
pub fn pair_dont_know(pair: f64, states: u32) -> f64 {
    -((f64::from(states) - 1.0) * (-pair).ln_1p()).exp_m1()
}

/// A table of states into which flows were inserted, `hashes` cells each, and its rates.
///
/// The formulas are those of [`sidon::plan::stateful`], for states of any frequency.
#[derive(Debug, Clone, Copy)]
pub struct Meeting<'a> {
    /// The number of cells.
    pub cells: u64,
    /// The number of cells that a flow uses.
    pub hashes: u32,
    /// The number of flows in each state.
    pub flows: &'a [u64],
}

impl Meeting<'_> {
    fn all(&self) -> u64 {
        self.flows.iter().fold(0, |all: u64, &flows| all.saturating_add(flows))
    }

    /// The number of flows in other states. A state beyond the end of `flows` has no flows.
    fn others(&self, state: usize) -> u64 {
        self.all() - self.flows.get(state).copied().unwrap_or(0)
    }

    /// The chance that none of `flows` flows uses a given cell.
    fn missed(&self, flows: u64) -> f64 {
        let draws = f64::from(self.hashes) * flows as f64;
        (draws * (-1.0 / self.cells as f64).ln_1p()).exp()
    }

    /// The share of cells that only flows of this state use.
    fn known(&self, state: usize) -> f64 {
        self.missed(self.others(state)) - self.missed(self.all())
    }

    /// The share of cells that flows of two states or more use.
    fn unknown(&self) -> f64 {
        let known: f64 = (0..self.flows.len()).map(|state| self.known(state)).sum();
        (1.0 - self.missed(self.all()) - known).max(0.0)
    }

    fn power(&self, share: f64) -> f64 {
        share.powi(self.hashes as i32)
    }

    /// The chance that a stored flow of this state is answered "don't know".
    pub fn member_dont_know(&self, state: usize) -> f64 {
        self.power(1.0 - self.missed(self.others(state)))
    }

    /// The limit of [`member_dont_know`](Self::member_dont_know) for many cells:
    /// `(1 - e^(-k (n - n_i) / m))^k`.
    pub fn member_dont_know_limit(&self, state: usize) -> f64 {
        let others = self.others(state) as f64;
        self.power(-(-f64::from(self.hashes) * others / self.cells as f64).exp_m1())
    }

    /// The chance that a stored flow is answered "don't know" by a timed table, in which any second flow
    /// makes a cell unknown.
    pub fn timed_member_dont_know(&self) -> f64 {
        self.power(1.0 - self.missed(self.all().saturating_sub(1)))
    }

    /// The chance that a key never stored is answered this state.
    pub fn stranger_state(&self, state: usize) -> f64 {
        self.power(self.known(state) + self.unknown()) - self.power(self.unknown())
    }

    /// The chance that a key never stored is answered "don't know".
    pub fn stranger_dont_know(&self) -> f64 {
        self.power(self.unknown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formulas::bloom::rate_limit;
    use sidon::state::stateful::{Keeping, Shape};
    use sidon_kit::rate::assert_close;

    const PAPER: Meeting<'_> = Meeting { cells: 4096, hashes: 3, flows: &[500, 300, 200] };

    #[test]
    fn the_numbers_of_001() {
        // 001.dbf.sign: ten cells a flow, seven hashes, and the limit.
        let shape = direct::Shape { cells: 10_000, hashes: 7, states: 8, counter: 4, timed: false };
        let pair = pair_rate(shape, 1000);
        assert_close(pair, 0.008_195_702_596_76, 1e-9);
        assert_close(pair, rate_limit(10.0, 7), 1e-3);
        // 001.dbf.dk_s2 and dk_s8.
        assert_close(pair_dont_know(pair, 2), 0.008_195_702_596_76, 1e-9);
        assert_close(pair_dont_know(pair, 8), 0.055_978_468_233_8, 1e-9);
    }

    #[test]
    fn the_numbers_of_000() {
        // 000.sbf.member_dk and fp_value, by value; fp_dk; member_dk.limit; timer_member_dk.
        let members = [0.028_842_497_626_6, 0.064_557_571_832_5, 0.087_207_049_254_6];
        let strangers = [0.032_996_863_094_4, 0.010_868_290_111_2, 0.005_270_321_020_49];
        for state in 0..3 {
            assert_close(PAPER.member_dont_know(state), members[state], 1e-9);
            assert_close(PAPER.stranger_state(state), strangers[state], 1e-9);
        }
        assert_close(PAPER.stranger_dont_know(), 0.001_431_027_677_14, 1e-9);
        assert_close(PAPER.member_dont_know_limit(0), 0.028_833_751_987_3, 1e-9);
        assert_close(PAPER.timed_member_dont_know(), 0.139_756, 1e-5);
        // A state without flows, and numbers beyond 64 bits, are no error.
        assert!(PAPER.member_dont_know(usize::MAX) < 1.0);
        let all = Meeting { flows: &[u64::MAX, u64::MAX], ..PAPER };
        assert_eq!(all.member_dont_know(0), 0.0);
    }

    #[test]
    fn plans_use_the_formulas_for_states_of_equal_frequency() {
        let meeting = Meeting { cells: 4096, hashes: 3, flows: &[250; 4] };
        let shape = Shape { cells: 4096, hashes: 3, states: 4, keeping: Keeping::Counted(3) };
        let [error, dont_know] = plan::stateful::rates(shape, 1000);
        assert_close(error, 4.0 * meeting.stranger_state(0), 1e-12);
        assert_close(dont_know, meeting.member_dont_know(0), 1e-12);
    }
}
