//! `sidon plan count`: rows and columns from an error or from memory.

use super::worth::excess;
use crate::show;
use serde_json::{Value, json};
use sidon::{
    count::{Layout, min::Shape},
    plan::{self, CountTarget},
};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("size").required(true).args(["epsilon", "memory"]))]
pub(crate) struct Args {
    /// How far above the truth a count may be, as a share of all that is added
    #[arg(long, value_name = "E")]
    epsilon: Option<f64>,
    /// The memory to use, such as 65536, 64KiB or 16MiB
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    memory: Option<u64>,
    /// The share of keys that may be further off
    #[arg(long, value_name = "D", default_value_t = 0.02)]
    delta: f64,
    /// Bits of a counter: 8, 16, 32 or 64
    #[arg(long, value_name = "BITS", default_value_t = 32)]
    width: u32,
    /// How many keys will be counted: adds the mean error, and a plain hash table
    #[arg(long, value_name = "N", value_parser = super::whole)]
    keys: Option<u64>,
    /// How much will be added in all [default: one for each key]
    #[arg(long, value_name = "N", value_parser = super::whole, requires = "keys")]
    total: Option<u64>,
    /// Write JSON: {"rows": [{"structure", "layout", "bytes", "epsilon", "delta",
    /// "mean_overestimate", "lines", "deletes", "merges", "grows", "ages", "floor_bits", "excess",
    /// "shape"}]}; floor and excess are null without --keys
    #[arg(long)]
    json: bool,
}

/// A number of bytes, with or without a unit.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)];
    let (number, unit) = units
        .iter()
        .find_map(|&(name, unit)| Some((text.strip_suffix(name)?.trim_end(), unit)))
        .unwrap_or((text, 1));
    let bytes = super::whole(number).ok().and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| "expected a number of bytes, such as 65536, 64KiB or 16MiB".to_owned())
}

/// A sketch that meets the target, or the plain alternative.
struct Row {
    structure: &'static str,
    bytes: u64,
    epsilon: f64,
    delta: f64,
    mean: Option<f64>,
    shape: Option<Shape>,
}

/// Sketches and the plain alternative, cheapest first; or what to relax.
fn rows(args: &Args) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for layout in [Layout::Rows, Layout::Line] {
        let Some(shape) = shape(args, layout)? else { continue };
        rows.push(Row {
            structure: "min",
            bytes: shape.bytes()?,
            epsilon: plan::count_epsilon(shape),
            delta: (-f64::from(shape.rows)).exp(),
            mean: args.keys.map(|keys| plan::count_excess(shape, keys, args.total.unwrap_or(keys))),
            shape: Some(shape),
        });
    }
    if let Some(keys) = args.keys {
        // Digests of 64 bits and counts, a byte of control a slot, seven slots in eight in use.
        let slots = keys.saturating_mul(8).div_ceil(7).checked_next_power_of_two();
        let bytes = slots.and_then(|slots| slots.checked_mul(17));
        if let Some(bytes) = bytes {
            let (structure, mean) = ("hash_map", Some(0.0));
            rows.push(Row { structure, bytes, epsilon: 0.0, delta: 0.0, mean, shape: None });
        }
    }
    // Of two that take the same, the rows come first: they err less.
    rows.sort_by_key(|row| row.bytes);
    Ok(rows)
}

/// Bits below which counts of so many keys cannot always be within a share of the total: any
/// `1/(2 share)` of the keys may hold all there is, evenly, and these sets must be told apart.
fn floor(keys: u64, epsilon: f64) -> f64 {
    if epsilon <= 0.0 {
        return f64::NAN;
    }
    let heavy = ((0.5 / epsilon) as u64).min(keys / 2);
    ln_choose(keys, heavy) / std::f64::consts::LN_2
}

fn ln_choose(n: u64, k: u64) -> f64 {
    plan::ln_factorial(n) - plan::ln_factorial(k) - plan::ln_factorial(n - k)
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
        lines.push(format!(
            "{}: {}\n  error = e / columns = e / {} = {} of the total\n  but for e^-rows = e^-{} = \
             {} of keys\n  memory = rows columns width / 8 = {} bytes",
            row.structure,
            text(&shape),
            show::whole(shape.columns),
            show::rate(row.epsilon),
            shape.rows,
            show::rate(row.delta),
            show::whole(row.bytes),
        ));
        if let Some(keys) = args.keys {
            let heavy = ((0.5 / row.epsilon) as u64).min(keys / 2);
            let floor = floor(keys, row.epsilon);
            lines.push(format!(
                "  floor, if no key may be further off = log2 C({}, {}) = {floor:.0} bits, {} over it",
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
        "but for",
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
            show::rate(row.delta),
            row.mean.map_or("-".to_owned(), |mean| format!("{mean:.4}")),
            row.lines().to_string(),
            row.shape.as_ref().map_or_else(|| "exact".to_owned(), text),
        ]
    });
    show::print(&show::table(&head, lines))?;
    show::print(
        "\nAll of these merge; a sketch does not grow, nor age, nor take back what was added.",
    )?;
    let smallest = rows.iter().min_by_key(|row| row.bytes);
    if smallest.is_some_and(|row| row.shape.is_none()) {
        show::print("\nA plain hash table is the smallest here, and exact: take that.")?;
    }
    Ok(())
}

/// The shape of a layout; in one line only for as much memory as rows need.
fn shape(args: &Args, layout: Layout) -> anyhow::Result<Option<Shape>> {
    let bytes = match (args.epsilon, args.memory) {
        (Some(epsilon), _) => {
            let target = CountTarget { epsilon, delta: args.delta };
            let shape = plan::count(target).map_err(|why| super::relaxed(why, flag))?;
            let shape = Shape { width: args.width, ..shape };
            if layout == Layout::Rows {
                shape.bytes()?;
                return Ok(Some(shape));
            }
            shape.bytes()?.next_multiple_of(64)
        }
        (None, Some(bytes)) => bytes,
        (None, None) => anyhow::bail!("--epsilon or --memory is needed"),
    };
    match plan::count_in(bytes, args.delta, args.width, layout) {
        Ok(shape) => Ok(Some(shape)),
        // More rows than a line has counters, or less than a line.
        Err(_) if layout == Layout::Line => Ok(None),
        Err(why) => Err(super::relaxed(why, flag)),
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
    /// Bits that no sketch of its error does without, if it is known how many keys there are.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_units() {
        assert_eq!(memory("65536"), Ok(65536));
        assert_eq!(memory("64KiB"), Ok(65536));
        assert_eq!(memory("16 MiB"), Ok(16 << 20));
        assert_eq!(memory("2GiB"), Ok(2 << 30));
        assert!(memory("lots").is_err() && memory("99999999999GiB").is_err());
    }
}
