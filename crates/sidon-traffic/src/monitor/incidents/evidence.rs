//! The evidence of an alarm: named figures, their labels, and their union over several periods.

use crate::{Figure, figure::Kind};
use serde_json::Value;

/// The most figures of an alarm. This version has seven names; a file may bring others.
pub(crate) const EVIDENCE_MAX: usize = 16;

/// Figures by name, at most `EVIDENCE_MAX`.
pub type Evidence = Vec<(&'static str, Figure)>;

/// A plain label for a name of evidence, to print after the figure.
pub fn label(name: &'static str) -> &'static str {
    match name {
        "attempts" => "attempts, also before the alarm",
        "peak_pending" => "handshakes of the last 5 to 10 s incomplete (peak)",
        "sources_about" => "sources",
        "targets_at_least" => "targets failed",
        "targets_about" => "targets tried",
        "idle" => "connections idle (peak)",
        "period_seconds" => "seconds between contacts",
        "jitter_seconds" => "seconds of jitter",
        "impossible" => "SYNs with impossible addresses",
        "forged_about" => "SYNs forged",
        // A file may contain names that this version does not have.
        other => other,
    }
}

/// The evidence in words, one text for each figure.
pub(super) fn text(evidence: &[(&'static str, Figure)]) -> Vec<String> {
    evidence.iter().map(|(name, figure)| format!("{figure:#} {}", label(name))).collect()
}

/// Sets `evidence`, `evidence_figure` and `evidence_text` of a JSON object.
pub(super) fn set(evidence: &[(&'static str, Figure)], object: &mut Value) {
    let each = |value: fn(&Figure) -> Value| -> Value {
        evidence.iter().map(|(name, figure)| ((*name).to_owned(), value(figure))).collect()
    };
    object["evidence"] = each(|figure| figure.value().into());
    object["evidence_figure"] = each(Figure::to_json);
    object["evidence_text"] = text(evidence).into();
}

/// A count of connections: a lower bound unless all were `counted`.
pub(crate) fn count(count: u64, counted: bool) -> Figure {
    if counted { Figure::exact(count) } else { Figure::at_least(count, None) }
}

/// An estimate from connections: its lower end unless all were `followed`. At most the number of
/// `attempts`, if that is exact.
pub(crate) fn estimate(figure: Figure, attempts: Figure, followed: bool) -> Figure {
    match (figure.most(), attempts.most()) {
        _ if !followed => Figure::at_least(figure.least(), None),
        (Some(most), Some(attempts)) if attempts < most => {
            Figure::estimate(figure.value().min(attempts), figure.least().min(attempts), attempts)
        }
        _ => figure,
    }
}

/// Turns counts into lower bounds, for a source that lost or sampled packets.
pub(super) fn at_least(evidence: &mut Evidence) {
    for (_, figure) in evidence {
        *figure = Figure::at_least(figure.least(), None);
    }
}

/// Turns exact counts into estimates that may be wrong by `slack`.
pub(super) fn widen(evidence: &mut Evidence, slack: u64) {
    for (_, figure) in evidence.iter_mut().filter(|(_, figure)| figure.kind() == Kind::Exact) {
        let n = figure.value();
        *figure = Figure::estimate(n, n.saturating_sub(slack), n.saturating_add(slack));
    }
}

/// Adds the evidence of another period for the same alarm. Leaves out names without room.
pub(super) fn join(own: &mut Evidence, other: Evidence) {
    for (name, figure) in other {
        let has_room = own.len() < EVIDENCE_MAX;
        match own.iter_mut().find(|(known, _)| *known == name) {
            Some((_, had)) => *had = joined(name, *had, figure),
            None if has_room => own.push((name, figure)),
            None => {}
        }
    }
}

fn joined(name: &str, one: Figure, two: Figure) -> Figure {
    let most_sum = one.most().zip(two.most()).map(|(one, two)| one.saturating_add(two));
    let value_sum = one.value().saturating_add(two.value());
    let (value, least) = (one.value().max(two.value()), one.least().max(two.least()));
    let is_estimate = one.kind() == Kind::Estimate || two.kind() == Kind::Estimate;
    match (name, most_sum) {
        // Each period collects evidence from the start before it raises the alarm again, so
        // attempts between two periods may be missing. A SYN that is repeated after the boundary
        // counts in both.
        ("forged_about", Some(most)) if is_estimate => Figure::estimate(value_sum, least, most),
        // A set of both periods is at least the larger and at most both together.
        (_, Some(most)) if is_estimate => Figure::estimate(value, least, most),
        // The true peak may have been at the boundary, half in each period.
        ("peak_pending", most) => Figure::at_least(least, most),
        _ => Figure::at_least(least, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_periods_add_up_where_counts_do_and_bound_each_other_where_they_do_not() {
        let exact = Figure::exact;
        let about = Figure::estimate;
        let at_least = Figure::at_least;
        for (name, one, two, both) in [
            ("attempts", exact(5), exact(7), at_least(7, None)),
            ("attempts", exact(5), at_least(7, None), at_least(7, None)),
            ("impossible", exact(5), exact(7), at_least(7, None)),
            ("forged_about", about(20, 15, 25), about(40, 30, 50), about(60, 30, 75)),
            ("forged_about", about(20, 15, 25), at_least(30, None), at_least(30, None)),
            ("peak_pending", exact(50), exact(70), at_least(70, Some(120))),
            ("peak_pending", exact(50), at_least(70, None), at_least(70, None)),
            ("targets_at_least", at_least(32, None), at_least(25, None), at_least(32, None)),
            ("targets_about", about(100, 90, 120), about(50, 40, 60), about(100, 90, 180)),
            ("sources_about", about(100, 90, 120), at_least(95, None), at_least(95, None)),
        ] {
            let mut own = vec![(name, one)];
            join(&mut own, vec![(name, two)]);
            assert_eq!(own, [(name, both)]);
            let mut other = vec![(name, two)];
            join(&mut other, vec![(name, one)]);
            assert_eq!(other, [(name, both)], "in the other order");
        }
        let mut own = vec![("attempts", exact(1))];
        join(&mut own, vec![("impossible", exact(2))]);
        assert_eq!(own, [("attempts", exact(1)), ("impossible", exact(2))]);
    }

    #[test]
    fn an_estimate_is_at_most_an_exact_number_of_attempts() {
        let about = Figure::estimate(1_000, 850, 1_200);
        for (attempts, followed, expected) in [
            (Figure::exact(5_000), true, about),
            (Figure::exact(1_100), true, Figure::estimate(1_000, 850, 1_100)),
            (Figure::exact(800), true, Figure::estimate(800, 800, 800)),
            (Figure::at_least(800, None), true, about),
            (Figure::at_least(800, None), false, Figure::at_least(850, None)),
        ] {
            assert_eq!(estimate(about, attempts, followed), expected);
        }
    }

    #[test]
    fn evidence_is_printed_with_marks_intervals_and_plain_labels() {
        let evidence = vec![
            ("peak_pending", Figure::at_least(1_228_711, None)),
            ("targets_about", Figure::estimate(1_000, 850, 1_200)),
        ];
        let lines = [
            ">= 1,228,711 handshakes of the last 5 to 10 s incomplete (peak)",
            "~ 1,000 [850, 1,200] targets tried",
        ];
        assert_eq!(text(&evidence), lines);
        let mut json = serde_json::json!({});
        set(&evidence, &mut json);
        let expected = serde_json::json!({
            "evidence": { "peak_pending": 1_228_711, "targets_about": 1_000 },
            "evidence_figure": {
                "peak_pending": { "kind": "at_least", "interval": [1_228_711, null] },
                "targets_about": { "kind": "estimate", "interval": [850, 1_200] },
            },
            "evidence_text": lines,
        });
        assert_eq!(json, expected);
    }
}
