//! `sidon plan count`: rows and columns from an error or from memory.

use super::worth::excess;
use crate::{
    args::{
        number::{decimal, memory, memory_text, whole, within},
        refusal,
    },
    show,
};
use anyhow::anyhow;
use serde_json::{Value, json};
use sidon::{
    Infeasible,
    count::{Layout, Min, min::Shape},
    plan::count,
};
use sidon_kit::poisson::ln_factorial;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("size").required(true).args(["epsilon", "memory"]))]
pub(crate) struct Args {
    /// How far a count may exceed the truth, as a share of the sum of all counts
    #[arg(long, value_name = "E", value_parser = decimal)]
    epsilon: Option<f64>,
    /// Memory to use, such as 65536, 64KiB or 16MiB
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    memory: Option<u64>,
    /// Share of keys whose count may exceed the truth by more than that
    #[arg(long, value_name = "D", default_value_t = 0.02, value_parser = decimal)]
    delta: f64,
    /// Bits per counter: 8, 16, 32 or 64
    #[arg(long, value_name = "BITS", default_value_t = 32, value_parser = width)]
    width: u32,
    /// Number of keys to count: adds the mean error, and a plain hash table for comparison
    #[arg(long, value_name = "N", value_parser = within::<u64>(1..=1 << 48))]
    keys: Option<u64>,
    /// Sum of all counts [default: one per key]
    #[arg(long, value_name = "N", value_parser = whole, requires = "keys")]
    total: Option<u64>,
    /// Write JSON: {"rows": [{"structure", "layout", "bytes", "epsilon", "delta",
    /// "mean_overestimate", "lines", "deletes", "merges", "grows", "ages", "floor_bits", "excess",
    /// "shape"}]}; floor and excess are null without --keys
    #[arg(long)]
    json: bool,
}

fn width(text: &str) -> Result<u32, String> {
    let bits = text.parse().ok().filter(|bits| [8, 16, 32, 64].contains(bits));
    bits.ok_or_else(|| "expected 8, 16, 32 or 64".to_owned())
}

/// A sketch that meets the target, or a plain hash table.
struct Row {
    structure: &'static str,
    bytes: u64,
    epsilon: f64,
    delta: f64,
    mean: Option<f64>,
    shape: Option<Shape>,
}

/// The error that all keys except a share `e^-rows` stay below, as a share of the sum of all amounts. For
/// counters in a line this is the worst case: an answer also reads the total of its line.
fn epsilon(shape: Shape) -> f64 {
    let columns = shape.columns as f64;
    match shape.layout {
        Layout::Rows => std::f64::consts::E / columns,
        Layout::Line => f64::from(shape.rows).exp() / columns,
    }
}

/// Sketches and a plain hash table, the smallest first, or an error that names the option to change.
fn rows(args: &Args) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for layout in [Layout::Rows, Layout::Line] {
        let Some(shape) = shape(args, layout)? else { continue };
        rows.push(Row {
            structure: "min",
            bytes: Min::planned_bytes(shape),
            epsilon: epsilon(shape),
            delta: (-f64::from(shape.rows)).exp(),
            mean: args.keys.map(|keys| count::excess(shape, keys, args.total.unwrap_or(keys))),
            shape: Some(shape),
        });
    }
    if let Some(keys) = args.keys {
        // A slot has a digest of 64 bits, a count and a control byte; 7 of 8 slots are in use.
        let slots = keys.saturating_mul(8).div_ceil(7).checked_next_power_of_two();
        let bytes = slots.and_then(|slots| slots.checked_mul(17));
        if let Some(bytes) = bytes {
            let (structure, mean) = ("hash_map", Some(0.0));
            rows.push(Row { structure, bytes, epsilon: 0.0, delta: 0.0, mean, shape: None });
        }
    }
    // The sort is stable: at equal size, `rows` comes first because it errs less.
    rows.sort_by_key(|row| row.bytes);
    Ok(rows)
}

/// The floor in bits of counts within `epsilon` of the total, for `keys` keys.
///
/// Any `1/(2 epsilon)` of the keys may share the whole total evenly. The counts must distinguish
/// these sets of keys.
fn floor(keys: u64, epsilon: f64) -> f64 {
    if epsilon <= 0.0 {
        return f64::NAN;
    }
    let heavy = ((0.5 / epsilon) as u64).min(keys / 2);
    ln_choose(keys, heavy) / std::f64::consts::LN_2
}

fn ln_choose(n: u64, k: u64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

pub(super) fn explain(args: &Args) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for row in rows(args)? {
        let Some(shape) = row.shape else {
            lines.push(format!(
                "{}: slots of 17 bytes, at most 7 of 8 in use\n  = {} bytes, exact\n",
                row.structure,
                show::whole(row.bytes)
            ));
            continue;
        };
        let columns = show::whole(shape.columns);
        let error = match shape.layout {
            Layout::Rows => format!("e / columns = e / {columns}"),
            Layout::Line => format!("e^rows / columns = e^{} / {columns}", shape.rows),
        };
        lines.push(format!(
            "{}: {}\n  error = {error} = {} of the total\n  except for e^-rows = e^-{} \
             = {} of the keys\n  memory = rows columns width / 8 = {} bytes",
            row.structure,
            text(&shape),
            show::rate(row.epsilon),
            shape.rows,
            show::rate(row.delta),
            show::whole(row.bytes),
        ));
        if let Some(keys) = args.keys {
            let heavy = ((0.5 / row.epsilon) as u64).min(keys / 2);
            let floor = floor(keys, row.epsilon);
            lines.push(format!(
                "  floor, if no key may exceed the error = log2 C({}, {}) = {floor:.0} bits, {} over it",
                show::whole(keys),
                show::whole(heavy),
                excess(row.bytes as f64 * 8.0, floor)
            ));
        }
        lines.push(String::new());
    }
    Ok(lines)
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let rows = rows(args)?;
    if args.json {
        return show::json_rows(rows.iter().map(|row| row.json(args.keys)).collect());
    }
    let head = [
        "structure",
        "memory",
        "over floor",
        "error below",
        "except for",
        "mean error",
        "lines",
        "shape",
    ];
    let lines = rows.iter().map(|row| {
        vec![
            row.structure.to_owned(),
            show::bytes(row.bytes),
            row.floor(args.keys).map_or("-".to_owned(), |f| excess(row.bytes as f64 * 8.0, f)),
            format!("{} of the total", show::rate(row.epsilon)),
            format!("{} of keys", show::rate(row.delta)),
            row.mean.map_or("-".to_owned(), |mean| format!("{mean:.4}")),
            row.lines().to_string(),
            row.shape.as_ref().map_or_else(|| "exact".to_owned(), text),
        ]
    });
    show::print(&show::table(&head, lines))?;
    show::print(&show::folded(
        "\nAll rows can be merged. A sketch cannot grow or age, and amounts cannot be subtracted.",
    ))?;
    let smallest = rows.iter().min_by_key(|row| row.bytes);
    if smallest.is_some_and(|row| row.shape.is_none()) {
        show::print("\nA plain hash table is the smallest here, and exact: take that.")?;
    }
    Ok(())
}

/// The shape of a layout. The layout `line` gets as much memory as `rows` needs.
fn shape(args: &Args, layout: Layout) -> anyhow::Result<Option<Shape>> {
    let bytes = match (args.epsilon, args.memory) {
        (Some(epsilon), _) => {
            let shape = count::shape(epsilon, args.delta).map_err(|why| refusal(why, flag))?;
            let shape = Shape { width: args.width, ..shape };
            shape.check()?;
            if layout == Layout::Rows {
                return Ok(Some(shape));
            }
            Min::planned_bytes(shape).next_multiple_of(64)
        }
        (None, Some(bytes)) => bytes,
        (None, None) => anyhow::bail!("type --epsilon E or --memory BYTES"),
    };
    match count::shape_in(bytes, args.delta, args.width, layout) {
        Ok(shape) => Ok(Some(shape)),
        // A line has too few counters for these rows, or the memory is smaller than a line.
        Err(_) if layout == Layout::Line => Ok(None),
        Err(Infeasible::OutOfRange { name: "columns", got, least, .. }) => {
            let (size, rows) = (memory_text(bytes), (1.0 / args.delta).ln().ceil().max(1.0));
            let row = rows * f64::from(args.width) / 8.0;
            Err(if got < least {
                anyhow!("--memory {size} is too small; type --memory {row} or more")
            } else {
                let most = memory_text((row as u64).saturating_mul(1 << 48));
                anyhow!("--memory {size} is too large; type --memory {most} or less")
            })
        }
        Err(why) => Err(refusal(why, flag)),
    }
}

fn flag(name: &str) -> Option<&'static str> {
    match name {
        "epsilon" => Some("--epsilon"),
        "delta" => Some("--delta"),
        "bytes" => Some("--memory"),
        "width" => Some("--width"),
        _ => None,
    }
}

impl Row {
    /// The floor in bits for this error, if the number of keys is known.
    fn floor(&self, keys: Option<u64>) -> Option<f64> {
        keys.map(|keys| floor(keys, self.epsilon)).filter(|floor| *floor > 0.0)
    }

    /// Cache lines that a lookup reads.
    fn lines(&self) -> u32 {
        match self.shape {
            Some(Shape { layout: Layout::Rows, rows, .. }) => rows,
            Some(_) => 1,
            None => 2,
        }
    }

    fn json(&self, keys: Option<u64>) -> Value {
        let (floor, exact) = (self.floor(keys), self.shape.is_none());
        json!({
            "lines": self.lines(),
            "deletes": exact,
            "merges": true,
            "grows": exact,
            "ages": false,
            "floor_bits": floor,
            "excess": floor.map(|floor| self.bytes as f64 * 8.0 / floor - 1.0),
            "structure": self.structure,
            "layout": self.shape.map(|shape| name(shape.layout)),
            "bytes": self.bytes,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mean_overestimate": self.mean,
            "shape": self.shape.map(|shape| json!({
                "rows": shape.rows,
                "columns": shape.columns,
                "width": shape.width,
            })),
        })
    }
}

fn name(layout: Layout) -> &'static str {
    match layout {
        Layout::Rows => "rows",
        Layout::Line => "line",
    }
}

fn text(shape: &Shape) -> String {
    let (rows, columns) = (show::whole(shape.rows.into()), show::whole(shape.columns));
    format!("{}, rows {rows}, columns {columns}, width {}", name(shape.layout), shape.width)
}
