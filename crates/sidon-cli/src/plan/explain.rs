//! `sidon plan explain`: the formula of each row, with its numbers.

use super::{count, distinct, fan_out, member, state, state_maps::StateShape, zone};
use crate::show;
use clap::Subcommand;
use sidon::plan::SetShape;

/// Print the formula of each row of a plan, with its numbers
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Sets, with the options of `sidon plan member`
    Member(member::Args),
    /// Counters, with the options of `sidon plan count`
    Count(count::Args),
    /// Counters of distinct keys, with the options of `sidon plan distinct`
    Distinct(distinct::Args),
    /// Distinct elements per key, with the options of `sidon plan fan-out`
    FanOut(fan_out::Args),
    /// State maps, with the options of `sidon plan state`
    State(state::Args),
    /// Small sets, with the options of `sidon plan zone`
    Zone(zone::Args),
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let lines = match &args.what {
        What::Member(args) => member::explain(args)?,
        What::Count(args) => count::explain(args)?,
        What::Distinct(args) => distinct::explain(args)?,
        What::FanOut(args) => fan_out::explain(args)?,
        What::State(args) => state::explain(args)?,
        What::Zone(args) => zone::explain(args)?,
    };
    show::print(&show::folded(&lines.join("\n")))
}

/// The false-positive rate of a set: its formula and its value.
pub(super) fn member_rate(shape: Option<SetShape>, keys: u64, rate: f64) -> String {
    let n = show::whole(keys);
    let spared = |m: u64, k: u32| {
        let m = show::whole(m);
        format!("(1 - (1 - 1/m)^(k n))^k = (1 - (1 - 1/{m})^({k} * {n}))^{k}")
    };
    let told = |m: u64, k: u32, what: &str| {
        let met = f64::from(k) * keys as f64 / m as f64;
        format!(
            "(1 - e)^k with k = {k}; e, the chance that a counter excludes a key never inserted, is \
             summed over the keys\n    in it, Poisson({met:.4}) on average, times the share of \
             {what} that their sum rules out"
        )
    };
    let formula = match shape {
        Some(SetShape::Bloom(shape)) => spared(shape.bits, shape.hashes),
        Some(SetShape::Blocked(shape)) => format!(
            "the mean of (1 - (1 - 1/512)^({k} j))^{k} over the keys j of a line, Poisson({:.3})",
            keys as f64 / shape.lines as f64,
            k = shape.hashes,
        ),
        Some(SetShape::Counting(shape)) => spared(shape.counters, shape.hashes),
        Some(SetShape::Variable(shape)) => {
            told(shape.counters, shape.hashes, &format!("increments {}", shape.increments))
        }
        Some(SetShape::Bh(shape)) => {
            told(shape.cells, shape.hashes, &format!("increments {}", shape.increments))
        }
        Some(SetShape::Multilayer(shape)) => {
            told(shape.counters, shape.hashes, &format!("increments {}", shape.increments))
        }
        Some(SetShape::DLeft(shape)) => {
            let (b, r, d) = (show::whole(shape.buckets), shape.remainder, shape.subtables);
            let used = format!("1 - (1 - 1/(B 2^r))^n = 1 - (1 - 1/({b} * 2^{r}))^{n}");
            match shape.counter {
                // A remainder equal to an empty cell is stored as the next value.
                0 => format!(
                    "u (1 - q^2 (1 - u)) / (1 - q (1 - u))^2 with q = {d} / 2^{}\n    and u = {used}",
                    r - shape.growths
                ),
                _ => used,
            }
        }
        Some(SetShape::Backyard(shape)) => {
            let lines = show::whole(shape.lines);
            format!("1 - (1 - 1/(65535 lines))^n = 1 - (1 - 1/(65535 * {lines}))^{n}")
        }
        Some(SetShape::Elastic(shape)) => {
            let (b, r) = (show::whole(shape.buckets), shape.remainder);
            format!("1 - (1 - 1/(B 2^r))^n = 1 - (1 - 1/({b} * 2^{r}))^{n}")
        }
        _ => format!("n / 2^64 = {n} / 2^64"),
    };
    format!("  rate = {formula}\n       = {}", show::rate(rate))
}

/// The two rates of a state map.
pub(super) fn state_rates(
    shape: Option<StateShape>,
    flows: u64,
    [error, unknown]: [f64; 2],
) -> String {
    let n = show::whole(flows);
    let formula = match shape {
        Some(StateShape::Direct(shape)) => {
            let (m, k, s) = (show::whole(shape.cells), shape.hashes, shape.states);
            format!(
                "  pair f = (1 - (1 - 1/{m})^({k} * {n}))^{k}\n  error = s f (1 - f)^(s-1), don't \
                 know = 1 - (1 - f)^(s-1), s = {s}"
            )
        }
        Some(StateShape::Stateful(shape)) => {
            let (m, k, s) = (show::whole(shape.cells), shape.hashes, shape.states);
            format!(
                "  z(j) = (1 - 1/{m})^({k} j), n = {n}, n_i = n/{s}\n  error = {s} ((known + \
                 unknown)^{k} - unknown^{k}), don't know = (1 - z(n - n_i))^{k}"
            )
        }
        Some(StateShape::Fingerprint(shape)) => {
            let (b, r) = (show::whole(shape.buckets), shape.remainder);
            format!(
                "  error = 1 - (1 - 1/(B 2^r))^n = 1 - (1 - 1/({b} * 2^{r}))^{n}\n  don't know: the \
                 same for the n - 1 other flows"
            )
        }
        _ => format!("  error = n / 2^64 = {n} / 2^64"),
    };
    format!("{formula}\n       = {}, don't know {}", show::rate(error), show::rate(unknown))
}
