//! What a structure can say.

/// How far an answer can be trusted.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub enum Certainty {
    /// The answer is a fact.
    Certain,
    /// The answer is wrong with at most this probability, over the choice of the seed, for a key
    /// that was chosen without knowing the seed.
    WrongAtMost(f64),
}

impl Certainty {
    /// The probability of being wrong: 0 for `Certain`.
    pub fn error(self) -> f64 {
        match self {
            Certainty::Certain => 0.0,
            Certainty::WrongAtMost(rate) => rate,
        }
    }

    /// `Certain` for a rate of exactly zero, `WrongAtMost` for any other.
    pub fn from_rate(rate: f64) -> Self {
        if rate == 0.0 { Certainty::Certain } else { Certainty::WrongAtMost(rate) }
    }
}

/// What a state map says of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Lookup<S> {
    /// The key is in this state.
    State(S),
    /// The key has no state.
    Absent,
    /// The cells of the key do not tell: never a guess.
    DontKnow,
}

/// On which side of the truth an [`Estimate`] may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The value is the truth.
    Exact,
    /// The truth is the value or less.
    AtMost,
    /// The truth is the value or more, but for the slack: a counter stands at its ceiling.
    AtLeast,
}

/// A count, with how far it can be trusted.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub struct Estimate {
    /// The count.
    pub value: u64,
    /// Which side of the truth it may lie on; this is a fact.
    pub bound: Bound,
    /// How far the value may lie above the truth, as far as `certainty` goes.
    pub slack: u64,
    /// How sure the slack is.
    pub certainty: Certainty,
}

impl Estimate {
    /// The count itself.
    pub fn exact(value: u64) -> Self {
        Estimate { value, bound: Bound::Exact, slack: 0, certainty: Certainty::Certain }
    }

    /// A count that the truth does not exceed, and from which it differs by at most `slack`.
    pub fn at_most(value: u64, slack: u64, certainty: Certainty) -> Self {
        Estimate { value, bound: Bound::AtMost, slack, certainty }
    }

    /// A count that stopped at a ceiling.
    pub fn at_least(value: u64) -> Self {
        Estimate { value, bound: Bound::AtLeast, slack: 0, certainty: Certainty::Certain }
    }

    /// Whether the value is the truth.
    pub fn is_exact(&self) -> bool {
        self.bound == Bound::Exact
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_zero_is_a_fact() {
        assert_eq!(Certainty::from_rate(0.0), Certainty::Certain);
        assert_eq!(Certainty::from_rate(0.25).error(), 0.25);
        assert_eq!(Certainty::Certain.error(), 0.0);
    }
}
