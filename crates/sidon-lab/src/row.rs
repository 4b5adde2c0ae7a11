//! A claim beside its measurement.

use crate::{
    claim::{Claim, Said, Tolerance, Value, short},
    interval::Interval,
};

/// How much a row says about its claim if it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The interval is no wider than the tolerance of the claim.
    Full,
    /// Less: the interval is wider than the tolerance.
    Wide,
    /// Nearly nothing: the interval is as wide as the right value, or the measurement is also
    /// consistent with the printed number that is called wrong.
    Weak,
}

/// One line of a result table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The claim that the row checks.
    pub claim: &'static Claim,
    /// What we found.
    pub measured: Value,
    /// Where it had to fall; for several numbers, the first one's.
    pub interval: Interval,
    /// Whether it did.
    pub holds: bool,
    /// The strength of the evidence if it holds.
    pub proof: Proof,
    /// What a reader should know: number of trials, reasons.
    pub note: String,
}

impl Row {
    /// A measurement held to the claim's own tolerance, each number to its own.
    pub fn computed(claim: &'static Claim, measured: impl Into<Value>) -> Self {
        let measured = measured.into();
        let (got, right) = (measured.numbers(), claim.expected.numbers());
        let intervals: Vec<_> = right.iter().map(|&right| close(claim.tolerance, right)).collect();
        let all_in = intervals.iter().zip(got).all(|(interval, &got)| interval.contains(got));
        let holds = !right.is_empty() && got.len() == right.len() && all_in;
        let interval = intervals.first().copied().unwrap_or(Interval::around(f64::NAN, 0.0));
        Row { claim, measured, interval, holds, proof: Proof::Full, note: reason(claim) }
    }

    /// A measurement held to an interval that follows from the number of trials. If that is wider
    /// than the claim's own tolerance, the row says so.
    pub fn sampled(
        claim: &'static Claim,
        measured: impl Into<Value>,
        interval: Interval,
        trials: u64,
    ) -> Self {
        let measured = measured.into();
        let got = measured.numbers();
        let holds = !got.is_empty() && got.iter().all(|&got| interval.contains(got));
        let weak = matches!(claim.said, Said::Wrong(_)) && !rules_out(claim, got, interval);
        let proof = if weak { Proof::Weak } else { proof(claim, interval) };
        let row = Row { claim, measured, interval, holds, proof, note: reason(claim) };
        let row = row.note(&format!("{trials} trials"));
        match (weak, claim.tolerance) {
            (true, _) => row.note("the printed number is not ruled out by these"),
            (_, Tolerance::Absolute(distance)) if proof != Proof::Full => {
                row.note(&format!("too few for the record's +/- {}", short(distance)))
            }
            (_, Tolerance::Relative(share)) if proof != Proof::Full => {
                row.note(&format!("too few for the record's +/- {} %", short(100.0 * share)))
            }
            _ => row,
        }
    }

    /// The row with a further note.
    #[must_use]
    pub fn note(mut self, text: &str) -> Self {
        if !self.note.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(text);
        self
    }

    /// The row, which fails unless `met`. The note then names the requirement.
    #[must_use]
    pub fn require(mut self, met: bool, what: &str) -> Self {
        if met {
            return self;
        }
        self.holds = false;
        self.note(&format!("FAILS: {what}"))
    }

    /// One of [`VERDICTS`]: no more than the measurement shows.
    pub fn verdict(&self) -> &'static str {
        match (self.claim.said, self.proof) {
            _ if !self.holds => "fails",
            (Said::Nothing(_), _) => "paper prints no number",
            (_, Proof::Weak) => "too few trials",
            (Said::Right, Proof::Full) => "agrees",
            (Said::Right, Proof::Wide) => "consistent",
            (Said::Rounded(_), _) => "paper rounds",
            (Said::Underspecified(_), _) => "underspecified",
            (Said::Wrong(_), _) => "paper is wrong",
        }
    }
}

/// Every verdict with its meaning, in the order of the columns that count them.
pub const VERDICTS: [(&str, &str); 8] = [
    ("agrees", "our value is the right one, as close as the record demands"),
    ("consistent", "it lies in six standard deviations, which are wider than the record demands"),
    ("too few trials", "the trials cannot tell the right value from none, or from a wrong one"),
    ("paper rounds", "the printed number has too few digits"),
    ("underspecified", "the paper does not state a choice that the number depends on"),
    ("paper is wrong", "the printed number cannot be right"),
    ("paper prints no number", "the right value is ours"),
    ("fails", "our value is not the right one"),
];

/// Whether the measurement contradicts the printed number as clearly as the interval allows.
fn rules_out(claim: &Claim, got: &[f64], interval: Interval) -> bool {
    let far = |printed: f64| {
        !interval.contains(printed) && got.iter().all(|got| (got - printed).abs() > interval.half())
    };
    claim.paper.numbers().iter().all(|&printed| far(printed))
}

/// How much an interval says about the right value.
fn proof(claim: &Claim, interval: Interval) -> Proof {
    let right = claim.expected.numbers().first().map_or(0.0, |right| right.abs());
    let asked = match claim.tolerance {
        Tolerance::Exact => 0.0,
        Tolerance::Relative(share) => share * right,
        Tolerance::Absolute(distance) => distance,
        Tolerance::AtMost(_) | Tolerance::Chance => f64::INFINITY,
    };
    match interval.half() {
        half if half > right && right > 0.0 => Proof::Weak,
        half if half > asked * (1.0 + 1e-9) => Proof::Wide,
        _ => Proof::Full,
    }
}

fn close(tolerance: Tolerance, right: f64) -> Interval {
    match tolerance {
        Tolerance::Exact | Tolerance::Chance => Interval::around(right, 0.0),
        Tolerance::Relative(share) => Interval::around(right, share * right.abs()),
        Tolerance::Absolute(distance) => Interval::around(right, distance),
        Tolerance::AtMost(most) => Interval { low: 0.0, high: most },
    }
}

fn reason(claim: &Claim) -> String {
    match claim.said {
        Said::Right => String::new(),
        Said::Wrong(why) | Said::Rounded(why) | Said::Underspecified(why) | Said::Nothing(why) => {
            why.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static CLAIM: Claim = claim(Tolerance::Absolute(0.25)).wrong("misprint");

    const fn claim(tolerance: Tolerance) -> Claim {
        let paper = Value::Number(1.1);
        Claim::new("999.x", "s1", "a number", paper, Value::list(&[1.0, 2.0]), tolerance)
    }

    fn computed(numbers: &'static [f64]) -> Row {
        Row::computed(&CLAIM, Value::list(numbers))
    }

    #[test]
    fn every_number_is_held_to_its_own_tolerance() {
        assert_eq!(computed(&[1.25, 1.75]).verdict(), "paper is wrong");
        for bad in [&[1.3, 2.0][..], &[1.0, 2.3], &[1.0], &[1.0, 2.0, 3.0], &[], &[1.0, f64::NAN]] {
            assert_eq!(computed(bad).verdict(), "fails", "{bad:?}");
        }
    }

    fn sampled(claim: &'static Claim, measured: f64, centre: f64, half: f64) -> Row {
        Row::sampled(claim, measured, Interval::around(centre, half), 7)
    }

    #[test]
    fn a_number_is_called_wrong_only_if_the_trials_rule_it_out() {
        // 1.1 is printed, and wrong.
        assert_eq!(sampled(&CLAIM, 1.0, 1.0, 0.05).verdict(), "paper is wrong");
        for (measured, half) in [(1.0, 0.25), (1.06, 0.08)] {
            let row = sampled(&CLAIM, measured, 1.0, half);
            assert_eq!(row.verdict(), "too few trials", "{half}");
            assert!(row.note.ends_with("7 trials; the printed number is not ruled out by these"));
        }
        let failed = sampled(&CLAIM, 1.4, 1.0, 0.5).require(false, "no key may be lost");
        assert!(!failed.holds && failed.note.ends_with("FAILS: no key may be lost"));
        assert_eq!(failed.verdict(), "fails");
    }

    #[test]
    fn a_wide_interval_is_admitted() {
        static CLAIMS: [Claim; 3] = [
            claim(Tolerance::Absolute(0.25)),
            claim(Tolerance::Relative(0.25)),
            claim(Tolerance::Chance),
        ];
        for (claim, note) in CLAIMS.iter().zip(["record's +/- 0.25", "record's +/- 25 %", ""]) {
            let row = |half| sampled(claim, 1.2, 1.0, half);
            assert_eq!(row(0.25).verdict(), "agrees");
            let wide = if note.is_empty() { "agrees" } else { "consistent" };
            assert_eq!(row(0.9).verdict(), wide);
            assert!(row(0.9).note.ends_with(note) && row(0.25).note == "7 trials");
            assert_eq!(row(1.1).verdict(), "too few trials");
            assert_eq!(row(0.1).verdict(), "fails");
        }
    }
}
