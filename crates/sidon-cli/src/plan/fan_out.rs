//! `sidon plan fan-out`: buckets and registers from the number of large keys and a relative error.

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
    count::{FanOut, fan_out::Shape},
    plan::fan_out::{self, Target},
};
use sidon_kit::Rng;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of large keys to keep, such as hosts that scan
    #[arg(long, value_name = "N", value_parser = whole)]
    keys: u64,
    /// Relative standard error of the number of elements of a large key, such as 0.13
    #[arg(long, value_name = "E", value_parser = decimal)]
    error: f64,
    /// Bytes of a key: 4 for IPv4, 17 for either address, 6 or 19 with a port
    #[arg(long, value_name = "BYTES", default_value_t = 4, value_parser = key_bytes)]
    key_bytes: u32,
    /// Number of panes that an estimate covers; all but the newest are complete
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within::<u32>(1..=16))]
    panes: u32,
    /// Build the table and measure it: large keys with 1,000 elements each, among 20 times as many small ones
    #[arg(long)]
    audit: bool,
    /// With --audit: seed of the hash functions and of the generated keys
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, requires = "audit")]
    seed: u64,
    /// Write JSON: {"rows": [{"structure", "bytes", "error", "lost", "shape"}]}, and with --audit "measured":
    /// {"error", "lost", "held"}
    #[arg(long)]
    json: bool,
}

fn key_bytes(text: &str) -> Result<u32, String> {
    let bytes = text.parse().ok().filter(|bytes| [4, 6, 8, 16, 17, 19, 32, 34].contains(bytes));
    bytes.ok_or_else(|| "expected 4, 6, 8, 16, 17, 19, 32 or 34".to_owned())
}

/// Elements of a large key in an audit, and small keys for each large one.
const ELEMENTS: u64 = 1_000;
const SMALL: u64 = 20;
/// The most large keys of an audit.
const KEYS_MOST: u64 = 20_000;

/// The measurements of an audit.
struct Found {
    /// The root mean square error of large keys with an entry, as a share of the truth.
    error: f64,
    /// The share of large keys without an entry, or with half their elements.
    lost: f64,
    /// The share of large keys whose interval contains the truth.
    held: f64,
}

fn bytes_of(shape: Shape, key_bytes: u32) -> u64 {
    match key_bytes {
        4 => FanOut::<[u8; 4]>::planned_bytes(shape),
        6 => FanOut::<[u8; 6]>::planned_bytes(shape),
        8 => FanOut::<[u8; 8]>::planned_bytes(shape),
        16 => FanOut::<[u8; 16]>::planned_bytes(shape),
        17 => FanOut::<[u8; 17]>::planned_bytes(shape),
        19 => FanOut::<[u8; 19]>::planned_bytes(shape),
        32 => FanOut::<[u8; 32]>::planned_bytes(shape),
        _ => FanOut::<[u8; 34]>::planned_bytes(shape),
    }
}

/// Adds the elements of large keys in turn, with small keys between them. The width of keys does not matter.
fn audit(shape: Shape, keys: u64, seed: u64) -> anyhow::Result<Found> {
    let mut table = FanOut::<u64>::new(shape, Seed(seed.into()))?;
    let mut rng = Rng::seeded(seed);
    let keys = keys.min(KEYS_MOST);
    let bar = show::progress(ELEMENTS);
    let mut small = keys;
    for element in 0..ELEMENTS {
        for key in 0..keys {
            table.add(&key, &(key, element), 0);
            // One small key after every fifty additions, with up to three elements.
            if rng.below(ELEMENTS / SMALL) == 0 {
                small += 1;
                (0..=rng.below(3)).for_each(|_| {
                    table.add(&small, &rng.next_u64(), 0);
                });
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let (mut squares, mut lost, mut held) = (0.0, 0u64, 0u64);
    for key in 0..keys {
        let found = table.estimate(&key, 0);
        held += u64::from(found.contains(ELEMENTS));
        if found.value <= ELEMENTS / 2 {
            lost += 1;
        } else {
            squares += (found.value as f64 / ELEMENTS as f64 - 1.0).powi(2);
        }
    }
    let all = keys as f64;
    let kept = (keys - lost).max(1) as f64;
    Ok(Found { error: (squares / kept).sqrt(), lost: lost as f64 / all, held: held as f64 / all })
}

fn flag(name: &str) -> Option<&'static str> {
    match name {
        "keys" => Some("--keys"),
        "error" => Some("--error"),
        "panes" => Some("--panes"),
        _ => None,
    }
}

fn shape(args: &Args) -> anyhow::Result<Shape> {
    let target = Target { panes: args.panes, ..Target::new(args.keys, args.error) };
    fan_out::shape(target).map_err(|why| refusal(why, flag))
}

pub(super) fn explain(args: &Args) -> anyhow::Result<Vec<String>> {
    let shape = shape(args)?;
    let (buckets, registers) = (show::whole(shape.buckets), shape.registers);
    Ok(vec![format!(
        "fan-out: buckets {buckets} of 8 entries, registers {registers}, panes {panes}\n  error = 0.362 / sqrt(registers) \
         (1 + 0.17 / registers) = {error}\n  lost = share of keys beyond the seventh of a bucket, Poisson({mean:.3}) = \
         {lost}\n  memory = buckets (56 + 9 * 3.5 registers panes + 8 key bytes) = {bytes} bytes",
        panes = shape.panes,
        error = show::rate(fan_out::error(shape)),
        mean = args.keys as f64 / shape.buckets as f64,
        lost = show::rate(fan_out::lost(shape, args.keys)),
        bytes = show::whole(bytes_of(shape, args.key_bytes)),
    )])
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let shape = shape(args)?;
    let bytes = bytes_of(shape, args.key_bytes);
    let (error, lost) = (fan_out::error(shape), fan_out::lost(shape, args.keys));
    let found = match args.audit {
        true => Some(audit(shape, args.keys, args.seed)?),
        false => None,
    };
    if args.json {
        return show::json_rows(vec![json!({
            "structure": "fan_out",
            "bytes": bytes,
            "error": error,
            "lost": lost,
            "shape": {"buckets": shape.buckets, "registers": shape.registers, "panes": shape.panes},
            "measured": found.as_ref().map(measured),
        })]);
    }
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let panes = show::whole(shape.panes.into());
    let line = vec![
        "fan-out".to_owned(),
        show::bytes(bytes),
        percent(error),
        percent(lost),
        format!(
            "buckets {}, registers {}, panes {panes}",
            show::whole(shape.buckets),
            shape.registers
        ),
    ];
    show::print(&show::table(&["structure", "memory", "error", "lost keys", "shape"], [line]))?;
    if let Some(found) = found {
        let keys = args.keys.min(KEYS_MOST);
        show::print(&show::folded(&format!(
            "\nmeasured with {} keys of {} elements among {} small ones: error {}, lost {}; {} of the intervals hold",
            show::whole(keys),
            show::whole(ELEMENTS),
            show::whole(keys * SMALL),
            percent(found.error),
            percent(found.lost),
            percent(found.held)
        )))?;
    }
    Ok(())
}

fn measured(found: &Found) -> Value {
    json!({"error": found.error, "lost": found.lost, "held": found.held})
}
