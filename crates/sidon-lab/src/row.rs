//! A claim beside its measurement.

use crate::{
    claim::{Claim, Said, Tolerance, Value, short},
    interval::Interval,
};

/// One line of a result table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What is claimed.
    pub claim: &'static Claim,
    /// What we found.
    pub measured: Value,
    /// Where it had to fall; for several numbers, the first one's.
    pub interval: Interval,
    /// Whether it did.
    pub holds: bool,
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
        Row { claim, measured, interval, holds, note: reason(claim) }
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
        let row = Row { claim, measured, interval, holds, note: reason(claim) };
        let mut row = row.note(&format!("{trials} trials"));
        if let Tolerance::Absolute(distance) = claim.tolerance
            && interval.half() > distance * (1.0 + 1e-9)
        {
            row = row.note(&format!("too few for the record's +/- {}", short(distance)));
        }
        let printed = claim.paper.numbers();
        if matches!(claim.said, Said::Wrong(_)) && printed.iter().any(|&p| interval.contains(p)) {
            row = row.note("the printed number is not ruled out by these");
        }
        row
    }

    /// The same, with more to say.
    #[must_use]
    pub fn note(mut self, text: &str) -> Self {
        if !self.note.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(text);
        self
    }

    /// The same, which also fails unless `met`; then it says what was required.
    #[must_use]
    pub fn require(mut self, met: bool, what: &str) -> Self {
        if met {
            return self;
        }
        self.holds = false;
        self.note(&format!("FAILS: {what}"))
    }

    /// `agrees`, `paper is wrong` or `paper prints no number` if ours is right, else `fails`.
    pub fn verdict(&self) -> &'static str {
        match self.claim.said {
            _ if !self.holds => "fails",
            Said::Right => "agrees",
            Said::Wrong(_) => "paper is wrong",
            Said::Nothing(_) => "paper prints no number",
        }
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
        Said::Wrong(why) | Said::Nothing(why) => why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static CLAIM: Claim = Claim {
        id: "999.x",
        place: "s1",
        about: "a number",
        paper: Value::Number(1.1),
        expected: Value::list(&[1.0, 2.0]),
        tolerance: Tolerance::Absolute(0.25),
        said: Said::Wrong("misprint"),
    };

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

    #[test]
    fn a_wide_interval_is_admitted() {
        let row = |half| Row::sampled(&CLAIM, 1.4, Interval::around(1.0, half), 7);
        assert!(row(0.5).holds && row(0.5).note.contains("7 trials; too few"));
        assert!(!row(0.25).holds && !row(0.25).note.contains("too few"));
        // 1.1 is printed, and wrong.
        assert!(row(0.25).note.contains("not ruled out") && !row(0.05).note.contains("ruled"));
        let failed = row(0.5).require(false, "no key may be lost");
        assert!(!failed.holds && failed.note.ends_with("FAILS: no key may be lost"));
    }
}
