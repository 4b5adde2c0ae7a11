//! `sidon plan`: which structure, what size, what it will cost. A file a question.

pub(crate) mod count;
mod explain;
mod member;
mod state;
mod worth;
mod zone;

use crate::show;
use clap::Subcommand;
use serde_json::Value;
use sidon::Infeasible;

/// Choose a structure and its size for a target
///
/// Prints every structure that meets the target, cheapest first, with the plain alternative among
/// them. The figures are closed forms; the library's tests measure that they hold.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Sets: is this key one of them?
    ///
    /// Example: sidon plan member --keys 1000000 --fpr 0.001
    Member(member::Args),
    /// Counts: how much was added under this key?
    ///
    /// Example: sidon plan count --epsilon 0.0001 --delta 0.02
    Count(count::Args),
    State(state::Args),
    /// Few numbers of a universe, without a false positive
    ///
    /// Example: sidon plan zone --universe 256 --members 3
    Zone(zone::Args),
    /// The formula behind each row of a plan, with the numbers put in
    ///
    /// Example: sidon plan explain member --keys 1000000 --fpr 0.001
    Explain(explain::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Member(args) => member::run(args),
        What::Count(args) => count::run(args),
        What::State(args) => state::run(args),
        What::Zone(args) => zone::run(args),
        What::Explain(args) => explain::run(args),
    }
}

/// A refusal with the wish to relax and by how much. `flag` is what the wish is called here.
fn relaxed(why: Infeasible, flag: impl Fn(&str) -> Option<&'static str>) -> anyhow::Error {
    let text = why.to_string();
    let Infeasible::Parameter { name, got, least, most } = why else { return text_only(text) };
    let Some(flag) = flag(name) else { return text_only(text) };
    let far = |times: f64| format!("{} times", (times * 100.0 - 1e-6).ceil() / 100.0);
    let way = if got < least && got > 0.0 {
        format!("; relax {flag} to {least:e}, {} as much", far(least / got))
    } else if got < least {
        format!("; relax {flag} to {least:e}")
    } else if got > most {
        format!("; lower {flag} to {most}, {} less", far(got / most))
    } else {
        String::new()
    };
    text_only(text + &way)
}

fn text_only(text: String) -> anyhow::Error {
    anyhow::anyhow!(text)
}

/// A whole number, written plainly, with underscores, or as 1e6.
fn whole(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.replace('_', "").parse() {
        return Ok(number);
    }
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number < 2f64.powi(64) && number.fract() == 0.0 => {
            Ok(number as u64)
        }
        _ => Err("expected a whole number, such as 1000000 or 1e6".to_owned()),
    }
}

/// A shape on a line, from the same facts as the JSON.
fn shape_text(shape: &Value) -> String {
    let Value::Object(fields) = shape else { return String::new() };
    let fields: Vec<_> = fields.iter().map(|(name, v)| format!("{name} {}", text(v))).collect();
    fields.join(", ")
}

fn text(value: &Value) -> String {
    match value {
        Value::Number(number) => number.as_u64().map_or(number.to_string(), show::whole),
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_wish_and_how_far_off_it_is() {
        let relax = |got, least, most| {
            let why = Infeasible::Parameter { name: "false_positives", got, least, most };
            relaxed(why, |name| (name == "false_positives").then_some("--fpr")).to_string()
        };
        assert!(relax(1e-13, 1e-12, 1.0).ends_with("; relax --fpr to 1e-12, 10 times as much"));
        assert!(relax(0.0, 1e-12, 1.0).ends_with("; relax --fpr to 1e-12"));
        assert!(relax(4.0, 1e-12, 1.0).ends_with("; lower --fpr to 1, 4 times less"));
        assert!(relax(f64::NAN, 1e-12, 1.0).ends_with("to 1"));
        let other = Infeasible::Parameter { name: "x", got: 3.0, least: 1.0, most: 2.0 };
        assert_eq!(relaxed(other.clone(), |_| None).to_string(), other.to_string());
    }
}
