//! `sidon plan distinct`: registers from a relative error.

use crate::{
    args::{
        number::{decimal, whole, within},
        refusal,
    },
    show,
};
use serde_json::{Value, json};
use sidon::{
    Seed,
    count::{Distinct, Interval, distinct::Shape},
    plan::distinct,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Relative standard error of the count, such as 0.01
    #[arg(long, value_name = "E", value_parser = decimal)]
    error: f64,
    /// Number of distinct keys: adds a plain hash set of 64-bit digests for comparison
    #[arg(long, value_name = "N", value_parser = within::<u64>(1..=1 << 48))]
    keys: Option<u64>,
    /// Count a million keys, or as many as --keys, up to ten million, under 100 seeds, and measure error and intervals
    #[arg(long)]
    audit: bool,
    /// With --audit: first seed of the hash functions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, requires = "audit")]
    seed: u64,
    /// Write JSON: {"rows": [{"structure", "bytes", "error", "exact_up_to", "shape"}]}, and with --audit "measured":
    /// {"keys", "error", "bias", "held", "seeds"}
    #[arg(long)]
    json: bool,
}

/// Seeds of an audit.
const SEEDS: u64 = 100;

/// The measurements of an audit.
struct Found {
    keys: u64,
    /// The root mean square error, and the mean error, as shares of the truth.
    error: f64,
    bias: f64,
    /// Intervals that contain the truth, of [`SEEDS`].
    held: u64,
}

/// Counts the same keys under different seeds.
fn audit(shape: Shape, keys: u64, first: u64) -> anyhow::Result<Found> {
    let keys = keys.min(10_000_000);
    let bar = show::progress(SEEDS);
    let mut found = Found { keys, error: 0.0, bias: 0.0, held: 0 };
    for seed in 0..SEEDS {
        let mut one = Distinct::new(shape, Seed(first.wrapping_add(seed).into()))?;
        let mut batch = [0u64; 256];
        for start in (0..keys).step_by(batch.len()) {
            let batch = &mut batch[..(keys - start).min(256) as usize];
            (start..).zip(&mut *batch).for_each(|(key, slot)| *slot = key);
            one.add_batch(batch);
        }
        let count: Interval = one.count();
        let error = count.value as f64 / keys as f64 - 1.0;
        found.error += error * error;
        found.bias += error;
        found.held += u64::from(count.contains(keys));
        bar.inc(1);
    }
    bar.finish_and_clear();
    found.error = (found.error / SEEDS as f64).sqrt();
    found.bias /= SEEDS as f64;
    Ok(found)
}

/// The number of keys up to which counts of this shape are exact.
fn exact_up_to(shape: Shape) -> u64 {
    (Distinct::planned_bytes(shape) / 8).min(256)
}

/// The bytes of a plain hash set of 64-bit digests.
fn hash_set(keys: u64) -> u64 {
    (keys.div_ceil(7) * 8).next_power_of_two() * 9
}

fn flag(name: &str) -> Option<&'static str> {
    (name == "error").then_some("--error")
}

pub(super) fn explain(args: &Args) -> anyhow::Result<Vec<String>> {
    let shape = distinct::shape(args.error).map_err(|why| refusal(why, flag))?;
    let registers = show::whole(shape.registers.into());
    Ok(vec![format!(
        "distinct: registers {registers}\n  error = 0.362 / sqrt(registers) = 0.362 / sqrt({registers}) = {}\n  memory = 28 \
         registers / 8 = {} bytes\n  exact while 8 bytes per key fit, up to 256 keys: up to {} keys",
        show::rate(distinct::error(shape)),
        show::whole(Distinct::planned_bytes(shape)),
        exact_up_to(shape)
    )])
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let shape = distinct::shape(args.error).map_err(|why| refusal(why, flag))?;
    let found = match args.audit {
        true => Some(audit(shape, args.keys.unwrap_or(1_000_000), args.seed)?),
        false => None,
    };
    let (bytes, error) = (Distinct::planned_bytes(shape), distinct::error(shape));
    let plain = args.keys.map(hash_set);
    if args.json {
        let mut rows = vec![json!({
            "structure": "distinct",
            "bytes": bytes,
            "error": error,
            "exact_up_to": exact_up_to(shape),
            "shape": {"registers": shape.registers},
            "measured": found.as_ref().map(measured),
        })];
        rows.extend(plain.map(|bytes| {
            json!({"structure": "hash_set", "bytes": bytes, "error": 0.0, "exact_up_to": null, "shape": null,
                   "measured": null})
        }));
        return show::json_rows(rows);
    }
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let mut lines = vec![vec![
        "distinct".to_owned(),
        show::bytes(bytes),
        percent(error),
        format!("up to {}", exact_up_to(shape)),
        format!("registers {}", show::whole(shape.registers.into())),
    ]];
    lines.extend(plain.map(|bytes| {
        ["hash_set", &show::bytes(bytes), "0.00 %", "always", "slots of 9 bytes"]
            .map(str::to_owned)
            .to_vec()
    }));
    show::print(&show::table(&["structure", "memory", "error", "exact", "shape"], lines))?;
    if let Some(found) = found {
        show::print(&show::folded(&format!(
            "\nmeasured with {} keys under {SEEDS} seeds: error {}, bias {}; {} of {SEEDS} intervals hold",
            show::whole(found.keys),
            percent(found.error),
            percent(found.bias),
            found.held
        )))?;
    }
    if plain.is_some_and(|plain| plain <= bytes) {
        show::print("\nA plain hash set is the smallest here, and exact: take that.")?;
    }
    Ok(())
}

fn measured(found: &Found) -> Value {
    json!({
        "keys": found.keys,
        "error": found.error,
        "bias": found.bias,
        "held": found.held,
        "seeds": SEEDS,
    })
}
