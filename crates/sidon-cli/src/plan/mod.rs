//! `sidon plan`: which structure, what size, what it will cost. A file a question.

pub(crate) mod count;
mod member;
mod state;
mod zone;

use crate::show;
use clap::Subcommand;
use serde_json::Value;

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
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Member(args) => member::run(args),
        What::Count(args) => count::run(args),
        What::State(args) => state::run(args),
        What::Zone(args) => zone::run(args),
    }
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
