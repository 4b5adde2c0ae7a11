//! Rows as JSON and as a Markdown table.

use crate::{
    claim::{Tolerance, Value, short},
    experiment::Paper,
    interval::Interval,
    row::{Row, VERDICTS},
    trials::Run,
};
use serde_json::{Value as Json, json};

/// A row as JSON. Numbers have ten digits: more would differ between machines.
pub fn json(row: &Row) -> Json {
    let Interval { low, high } = row.interval;
    json!({
        "id": row.claim.id,
        "paper": value(&row.claim.paper),
        "expected": value(&row.claim.expected),
        "measured": value(&row.measured),
        "interval": [number(low), number(high)],
        "verdict": row.verdict(),
        "note": row.note,
    })
}

/// The head of [`line()`].
pub const HEAD: [&str; 6] = ["id", "paper", "right", "ours", "must be", "verdict"];

/// A row as the cells of a table.
pub fn line(row: &Row) -> [String; 6] {
    let Interval { low, high } = row.interval;
    let must = match (&row.measured, row.claim.tolerance) {
        (Value::Numbers(_), Tolerance::Relative(share)) => format!("relative error {share:e}"),
        (Value::Numbers(_), Tolerance::Absolute(far)) => format!("each within {far:e}"),
        _ if low == high => short(low),
        // The two ends would look the same.
        (_, Tolerance::Relative(share)) => format!("within {share:e} of it"),
        _ => row.interval.to_string(),
    };
    let cells = [&row.claim.paper, &row.claim.expected, &row.measured].map(Value::to_string);
    let [paper, right, ours] = cells;
    [row.claim.id.to_owned(), paper, right, ours, must, row.verdict().to_owned()]
}

/// The rows of one paper as a Markdown page, the same for the same run. `ids` is what was chosen;
/// nothing means all.
pub fn markdown(paper: &Paper, run: &Run<'_>, ids: &[String], rows: &[Row]) -> String {
    let command = command(run, ids);
    let mut page = format!(
        "# {}: {}\n\n{}.\n\nMade by `{command}`. \
         Our value must lie within six standard deviations of the\nright value for the number of \
         trials, within tails of the same probability, or within the tolerance of the record.\n\n",
        paper.id, paper.title, paper.source,
    );
    let mut add = |cells: &[String]| page.push_str(&format!("| {} |\n", cells.join(" | ")));
    let head = [&HEAD[..1], &["claim"], &HEAD[1..], &["note"]].concat();
    let head: Vec<_> = head.into_iter().map(str::to_owned).collect();
    add(&head);
    add(&vec!["---".to_owned(); head.len()]);
    for row in rows {
        let [id, rest @ ..] = line(row);
        let claim = format!("{} ({})", row.claim.about, row.claim.place);
        let cells: Vec<_> = [id, claim].into_iter().chain(rest).chain([row.note.clone()]).collect();
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        add(&cells);
    }
    page.push_str(&format!("\n{}\n", tally(rows)));
    page
}

/// The command of a run, without options that change no number. `ids` are the claims chosen; an empty list
/// means all.
pub fn command(run: &Run<'_>, ids: &[String]) -> String {
    let mut command = "sidon lab run ".to_owned();
    command += &if ids.is_empty() { "--all".to_owned() } else { ids.join(" ") };
    if run.quick {
        command += " --quick";
    }
    for (flag, number) in [("trials", run.trials), ("flows", run.flows)] {
        command += &number.map_or(String::new(), |number| format!(" --{flag} {number}"));
    }
    command + &format!(" --seed {}", run.seed)
}

/// How many claims have each verdict. `agrees` and `fails` are always listed.
pub fn tally(rows: &[Row]) -> String {
    let counts = VERDICTS.iter().filter_map(|(verdict, _)| {
        let count = rows.iter().filter(|row| row.verdict() == *verdict).count();
        let always = ["agrees", "fails"].contains(verdict);
        (count > 0 || always).then(|| format!("{verdict} {count}"))
    });
    format!("{} claims: {}.", rows.len(), counts.collect::<Vec<_>>().join(", "))
}

fn value(value: &Value) -> Json {
    match value {
        Value::Number(one) => number(*one),
        Value::Numbers(all) => all.iter().map(|&one| number(one)).collect(),
        Value::Text(text) => json!(text),
        Value::Nothing => Json::Null,
    }
}

/// The number with ten digits, or whole. NaN and infinity become null.
fn number(number: f64) -> Json {
    if number.fract() == 0.0 && number.abs() < 2f64.powi(53) {
        return json!(number as i64);
    }
    format!("{number:.9e}").parse::<f64>().map_or(Json::Null, |rounded| json!(rounded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_or_have_ten_digits() {
        assert_eq!(number(3.0).to_string(), "3");
        assert_eq!(number(1.0 / 3.0).to_string(), "0.3333333333");
        assert_eq!(number(1.680_777_707_914_2e-27).to_string(), "1.680777708e-27");
        assert_eq!(number(f64::NAN), Json::Null);
    }
}
