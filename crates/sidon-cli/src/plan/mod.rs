//! `sidon plan`: which structure, what size, what it will cost. One file per question.

mod alarms;
pub(crate) mod count;
mod distinct;
mod explain;
mod fan_out;
mod member;
mod periods;
mod prefixes;
mod state;
mod state_maps;
mod worth;
mod zone;

use crate::show::{self, NO_BREAK};
use clap::Subcommand;
use serde_json::Value;

/// Choose a structure and its size for a target
///
/// Prints every structure that meets the target, the smallest first, and a plain hash table or
/// bitmap for comparison. The figures come from formulas; --audit of plan member, distinct, fan-out
/// and prefixes measures them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Sets: is this key a member?
    ///
    /// Example: sidon plan member --keys 1000000 --fpr 0.001
    Member(member::Args),
    /// Counters: how much was added to this key?
    ///
    /// Example: sidon plan count --epsilon 0.0001 --delta 0.02
    Count(count::Args),
    /// Counters of distinct keys: how many different ones were added?
    ///
    /// Example: sidon plan distinct --error 0.01
    Distinct(distinct::Args),
    /// Distinct elements per key, for the keys that have most: which hosts scan?
    ///
    /// Example: sidon plan fan-out --keys 1000 --error 0.13
    FanOut(fan_out::Args),
    State(state::Args),
    /// Networks: which addresses and prefixes have the largest amounts?
    ///
    /// Example: sidon plan prefixes --memory 1MiB --audit
    Prefixes(prefixes::Args),
    /// Small sets of small numbers, without false positives
    ///
    /// Example: sidon plan zone --universe 256 --members 3
    Zone(zone::Args),
    /// Sequential tests: does this subject fail more often than usual?
    ///
    /// Example: sidon plan alarms --usual 0.05 --trials 1000 --days 30
    Alarms(alarms::Args),
    /// Tables of regular contact: the period of a pair of hosts
    ///
    /// Example: sidon plan periods --pairs 100000
    Periods(periods::Args),
    /// Print the formula of each row of a plan, with its numbers
    ///
    /// Example: sidon plan explain member --keys 1000000 --fpr 0.001
    Explain(explain::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Member(args) => member::run(args),
        What::Count(args) => count::run(args),
        What::Distinct(args) => distinct::run(args),
        What::FanOut(args) => fan_out::run(args),
        What::State(args) => state::run(args),
        What::Prefixes(args) => prefixes::run(args),
        What::Zone(args) => zone::run(args),
        What::Alarms(args) => alarms::run(args),
        What::Periods(args) => periods::run(args),
        What::Explain(args) => explain::run(args),
    }
}

/// A shape on one line, made from its JSON.
fn shape_text(shape: &Value) -> String {
    let Value::Object(fields) = shape else { return String::new() };
    // A line breaks between two fields or inside a list, never between a name and its value.
    let field = |(name, value): (&String, &Value)| {
        let value = if value.is_array() { text(value) } else { text(value).replace(' ', NO_BREAK) };
        format!("{name}{NO_BREAK}{value}")
    };
    let fields: Vec<_> = fields.iter().map(field).collect();
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
