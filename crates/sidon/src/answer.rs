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
