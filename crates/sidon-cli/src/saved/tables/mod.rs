//! `sidon tables`: saved files as Parquet, which other programs can join.
//!
//! `images.parquet` has one row per file, with its bytes. `flows.parquet`, `hosts.parquet` and `ports.parquet` have
//! one row per listed key, with bounds for its bytes and packets. Columns and rows are those that `sidon.tables`
//! of the Python package writes:
//! ```text
//! tap-1/sidon-20231114T221320Z.sidon -> one row group of each table: sensor tap-1, period 2023-11-14 22:13:20
//! ```
//! One file is in memory at a time. The four tables appear when all files are read, or none of them does.

mod columns;
mod period;

use super::{file, rotate, show::broken};
use crate::{
    args::{Files, number::memory, number::within},
    sandbox::{self, Needs},
    show::{self, whole},
    signals::Signals,
};
use anyhow::{Context, anyhow, bail};
use columns::{Column, Table};
use serde_json::{Value, json};
use sidon::{Malformed, saved::Parts};
use sidon_traffic::{
    Snapshot,
    files::{self, Access, System},
    snapshot::KIND,
};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Write saved files as tables in the format Parquet
///
/// Reads files of `sidon watch --save` and `--save-dir`. DIR/images.parquet gets one row per file, with the
/// bytes of the file without its seed. DIR/flows.parquet, hosts.parquet and ports.parquet get one row per
/// listed key. For bytes and packets it has the value, a lower and an upper bound, and the kind: exact,
/// at_most, at_least, estimate or unknown. The column period is the time in a name such as
/// sidon-20231114T221320Z.sidon.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
EXIT STATUS
  0  written
  1  a file cannot be read or written; no table was written
  2  the command line is wrong
  3  a file is cut or damaged; no table was written

EXAMPLES
  sidon watch -r a.pcap --rotate 5m --save-dir tap-1
  sidon tables tap-1/*.sidon -o tables")]
pub(crate) struct Args {
    /// Saved files
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// Directory of the tables, which is created; existing tables are replaced
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Name of the sensor [default: that of the directory of each file]
    #[arg(long, value_name = "NAME")]
    sensor: Option<String>,
    /// Most flows, hosts and ports of a file, the heaviest first
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = within::<u16>(0..=65_535))]
    top: u16,
    /// The most bytes of each file, such as 2GiB
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = memory)]
    max_size: u64,
    /// Print no message after all tables are written
    #[arg(short, long)]
    quiet: bool,
}

/// The lists of a report, and the names of their tables.
const LISTS: [&str; 3] = ["flows", "hosts", "ports"];

const IMAGES: &str = "message images {
    optional binary sensor (STRING);
    optional int64 period (TIMESTAMP(NANOS, true));
    optional binary kind (STRING);
    optional binary shape (STRING);
    optional double certainty;
    optional int64 first (TIMESTAMP(NANOS, true));
    optional int64 last (TIMESTAMP(NANOS, true));
    optional int64 packets (INTEGER(64, false));
    optional int64 engines (INTEGER(64, false));
    optional boolean partial;
    optional binary image;
}";

const LISTED: &str = "message listed {
    optional binary sensor (STRING);
    optional int64 period (TIMESTAMP(NANOS, true));
    optional binary key (STRING);
    optional binary community_id (STRING);
    optional int64 bytes (INTEGER(64, false));
    optional binary bytes_kind (STRING);
    optional int64 bytes_lower (INTEGER(64, false));
    optional int64 bytes_upper (INTEGER(64, false));
    optional int64 packets (INTEGER(64, false));
    optional binary packets_kind (STRING);
    optional int64 packets_lower (INTEGER(64, false));
    optional int64 packets_upper (INTEGER(64, false));
}";

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let path = |name: &str| args.output.join(format!("{name}.parquet"));
    let tables = [path("images"), path("flows"), path("hosts"), path("ports")];
    Files::default().reads("FILE", &args.files).makes("-o", &tables).check()?;
    let sensors = args.files.iter().map(|file| sensor(args, file));
    let sensors = sensors.collect::<anyhow::Result<Vec<_>>>()?;
    rotate::make(&System, &args.output)?;
    let needs = Needs::nothing().reads(&args.files).directories([&args.output]);
    sandbox::confine(&needs.quiet(args.quiet))?;
    let signals = Signals::stopping()?;

    // A failure of the work leaves all four closures, and is the result of the command.
    let mut done = None;
    let written = all(&tables, |outputs| {
        let result = fill(args, &sensors, &signals, outputs);
        let is_whole = matches!(result, Ok(Ok(_)));
        done = Some(result);
        if is_whole { Ok(()) } else { Err(io::Error::other("not all files were read")) }
    });
    match (done, written) {
        (Some(Ok(Ok(rows))), Ok(())) => {
            if !args.quiet {
                let files = whole(args.files.len() as u64);
                show::say(&format!("{files} files, {} listed keys", whole(rows)));
            }
            Ok(ExitCode::SUCCESS)
        }
        (Some(Ok(Err(status))), _) => Ok(status),
        (Some(Err(why)), _) => Err(why),
        (_, Err(why)) => {
            Err(why).with_context(|| format!("cannot write tables to {}", show::path(&args.output)))
        }
        (None, Ok(())) => bail!("no table was written"),
    }
}

/// The name of the sensor of a file: that of its directory, unless the user gave one.
fn sensor(args: &Args, file: &Path) -> anyhow::Result<String> {
    if let Some(sensor) = &args.sensor {
        return Ok(sensor.clone());
    }
    let whole = std::path::absolute(file)
        .with_context(|| format!("cannot find the directory of {}", show::path(file)))?;
    let directory = whole.parent().and_then(Path::file_name).unwrap_or_default();
    Ok(directory.to_string_lossy().into_owned())
}

/// Replaces four files. All are renamed after `work` has written all of them.
fn all(
    [images, flows, hosts, ports]: &[PathBuf; 4],
    work: impl FnOnce([&mut dyn Write; 4]) -> io::Result<()>,
) -> io::Result<()> {
    let owner = Access::Owner;
    files::replace(&System, images, owner, |images| {
        files::replace(&System, flows, owner, |flows| {
            files::replace(&System, hosts, owner, |hosts| {
                files::replace(&System, ports, owner, |ports| work([images, flows, hosts, ports]))
            })
        })
    })
}

/// Writes a row group per file. Returns the listed keys, or the status after a damaged file.
fn fill(
    args: &Args,
    sensors: &[String],
    signals: &Signals,
    [images, flows, hosts, ports]: [&mut dyn Write; 4],
) -> anyhow::Result<Result<u64, ExitCode>> {
    let mut images = Table::new(images, IMAGES)?;
    let mut lists =
        [Table::new(flows, LISTED)?, Table::new(hosts, LISTED)?, Table::new(ports, LISTED)?];
    let mut rows = 0;
    for (path, sensor) in args.files.iter().zip(sensors) {
        let image = file::read(path, args.max_size)?;
        let mut snapshot = match read(path, &image) {
            Ok(snapshot) => snapshot,
            Err(Wrong::Damaged(why)) => return Ok(Err(broken(&show::path(path), &image, &why))),
            Err(Wrong::Other(why)) => return Err(why),
        };
        drop(image);
        let period = path.file_name().and_then(|name| period::start_ns(name.to_str()?));
        images.group(image_row(sensor, period, &snapshot)?)?;
        // A part of the bytes, so it changes after they are written.
        snapshot.set_top(args.top.into());
        let report = snapshot.report().to_json();
        for (table, list) in lists.iter_mut().zip(LISTS) {
            let entries = report[format!("top_{list}")].as_array().map_or(&[][..], |list| list);
            rows += entries.len() as u64;
            if !entries.is_empty() {
                table.group(listed(sensor, period, entries))?;
            }
        }
        if signals.stop() {
            bail!("cannot write tables to {}: interrupted", show::path(&args.output));
        }
    }
    images.finish()?;
    lists.into_iter().try_for_each(Table::finish)?;
    Ok(Ok(rows))
}

/// Why a file has no row.
enum Wrong {
    Damaged(Malformed),
    Other(anyhow::Error),
}

fn read(path: &Path, image: &[u8]) -> Result<Snapshot, Wrong> {
    let parts = Parts::of(image).map_err(Wrong::Damaged)?;
    if parts.kind != KIND {
        let name = show::path(path);
        return Err(Wrong::Other(anyhow!(
            "{name} is no file of sidon watch --save; sidon show prints its kind"
        )));
    }
    Snapshot::from_bytes(image).map_err(Wrong::Damaged)
}

/// Nanoseconds since 1970 in a signed column. Null after the year 2262.
fn time(ns: u64) -> Option<i64> {
    i64::try_from(ns).ok()
}

fn image_row(
    sensor: &str,
    period: Option<u64>,
    snapshot: &Snapshot,
) -> anyhow::Result<Vec<Column>> {
    let mut image = Vec::new();
    snapshot.write_without_seed(&mut image)?;
    let shape = json!({
        "memory": snapshot.settings().memory,
        "expression": snapshot.expression(),
    });
    let times = snapshot.times();
    Ok(vec![
        Column::text([Some(sensor.to_owned())]),
        Column::Times(vec![period.and_then(time)]),
        Column::text([Some("snapshot".to_owned())]),
        Column::text([Some(shape.to_string())]),
        // A snapshot has no single certainty: its report has a figure for every number.
        Column::Fractions(vec![None]),
        Column::Times(vec![times.and_then(|(first, _)| time(first))]),
        Column::Times(vec![times.and_then(|(_, last)| time(last))]),
        Column::Counts(vec![Some(snapshot.ledger().seen)]),
        Column::Counts(vec![Some(snapshot.engines())]),
        Column::Flags(vec![Some(snapshot.is_partial())]),
        Column::Bytes(vec![Some(image)]),
    ])
}

/// The rows of one list of a report.
fn listed(sensor: &str, period: Option<u64>, entries: &[Value]) -> Vec<Column> {
    let text = |of: &dyn Fn(&Value) -> Option<String>| Column::text(entries.iter().map(of));
    let counts = |of: &dyn Fn(&Value) -> &Value| {
        Column::Counts(entries.iter().map(|entry| of(entry).as_u64()).collect())
    };
    let mut columns = vec![
        text(&|_| Some(sensor.to_owned())),
        Column::Times(vec![period.and_then(time); entries.len()]),
        text(&|entry| match &entry["key"] {
            Value::String(key) => Some(key.clone()),
            key => Some(key.to_string()),
        }),
        text(&|entry| entry["community_id"].as_str().map(str::to_owned)),
    ];
    for amount in ["bytes", "packets"] {
        let figure = format!("{amount}_figure");
        columns.push(counts(&|entry| &entry[amount]));
        columns.push(text(&|entry| entry[&figure]["kind"].as_str().map(str::to_owned)));
        columns.push(counts(&|entry| &entry[&figure]["interval"][0]));
        columns.push(counts(&|entry| &entry[&figure]["interval"][1]));
    }
    columns
}
