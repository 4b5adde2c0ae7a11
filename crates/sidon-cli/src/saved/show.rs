//! `sidon show`: prints the contents of a saved file.

use super::{file, library};
use crate::{
    args::{
        SeedArg,
        number::{memory, within},
    },
    sandbox::{self, Needs},
    show,
    watch::screen,
};
use serde_json::json;
use sidon::{Infeasible, Malformed, saved::Parts};
use sidon_traffic::{
    Snapshot,
    snapshot::{self, KIND},
};
use std::{path::PathBuf, process::ExitCode};

/// Show the contents of a saved file
///
/// For a file of `sidon watch --save`, prints the report of that run. For any other structure of the
/// library, prints its kind, shape, number of keys and error rate. The seed is a secret and is never
/// printed. Two files with the same seed check have the same seed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
EXIT STATUS
  0  the file is whole
  1  the file cannot be read, or is not a saved file
  2  the command line is wrong
  3  the file is cut or damaged; the message names the damaged parts")]
pub(crate) struct Args {
    /// Saved file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Number of flows, of hosts and of ports to list, the heaviest first
    #[arg(long, value_name = "N", value_parser = within::<u16>(0..=65_535))]
    top: Option<u16>,
    /// The most bytes of a saved file, such as 2GiB
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = memory)]
    max_size: u64,
    /// Print one JSON object instead of a screen
    #[arg(long)]
    json: bool,
    /// Print only the heaviest flows and the packet ledger
    #[arg(short, long)]
    quiet: bool,
    /// Print longer lists
    #[arg(short, long)]
    verbose: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let opened = file::Opened::open(&args.file)?;
    sandbox::confine(&Needs::nothing().quiet(args.quiet))?;
    let image = opened.read(args.max_size)?;
    let path = show::path(&args.file);
    let parts = match Parts::of(&image) {
        Ok(parts) => parts,
        Err(why) => return Ok(broken(&path, &image, &why)),
    };
    if parts.kind == KIND {
        return match Snapshot::from_bytes(&image) {
            Ok(snapshot) => engine(args, &path, snapshot, parts.seed_check, image.len()),
            Err(why) => Ok(broken(&path, &image, &why)),
        };
    }
    match library::summary(&parts, image.len()) {
        Ok(summary) if args.json => {
            show::print_json(&summary.json())?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(summary) => {
            show::print(&summary.text(&path))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => Ok(broken(&path, &image, &why)),
    }
}

fn engine(
    args: &Args,
    path: &str,
    mut snapshot: Snapshot,
    seed_check: u64,
    bytes: usize,
) -> anyhow::Result<ExitCode> {
    let style = screen::Style::new(args.quiet, args.verbose, args.top);
    match args.top {
        Some(top) => snapshot.set_top(top.into()),
        None if !args.json => snapshot.set_top(style.rows().max(snapshot.settings().top)),
        None => {}
    }
    let report = snapshot.report();
    if args.json {
        let mut json = report.to_json();
        json["partial"] = snapshot.is_partial().into();
        json["seed"] = seed_name(&snapshot).into();
        json["saved"] = json!({
            "engines": snapshot.engines(),
            "expression": snapshot.expression(),
            "seed_check": format!("{seed_check:016x}"),
            "bytes": bytes,
        });
        show::print_json(&json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut title = format!("{path} (saved, {} seed", seed_name(&snapshot));
    if snapshot.engines() > 1 {
        title += &format!(", {} merged", show::whole(snapshot.engines()));
    }
    if snapshot.is_partial() {
        title += ", of a capture that broke off";
    }
    if !snapshot.expression().is_empty() {
        title += &format!(", filter: {}", show::printable(snapshot.expression()));
    }
    title.push(')');
    show::print(&screen::render(&title, &report, style))?;
    Ok(ExitCode::SUCCESS)
}

/// The seed of a saved run: the public one of captures, or another, which is a secret.
fn seed_name(snapshot: &Snapshot) -> &'static str {
    match SeedArg::FIXED.seed() {
        Ok(fixed) if fixed == snapshot.settings().seed => "fixed",
        _ => "given or random",
    }
}

/// Prints what is wrong with a file, and where.
pub(super) fn broken(path: &str, image: &[u8], why: &Malformed) -> ExitCode {
    match why {
        _ if image.is_empty() => show::say(&format!("{path} is empty, and not a saved file")),
        Malformed::Magic => {
            show::say(&format!(
                "{path} is not a saved file; sidon watch --save makes one, and sidon watch -r \
                 reads a capture"
            ));
            return ExitCode::FAILURE;
        }
        Malformed::Length { expected, got } if got < expected => show::say(&format!(
            "{path} is cut: {} of {} bytes are missing",
            show::whole(expected - got),
            show::whole(*expected)
        )),
        Malformed::Length { expected, .. } => {
            show::say(&format!("{path} goes on after its {} bytes", show::whole(*expected)));
        }
        // A table has about the length of its bytes in the file. A larger one comes from a damaged shape.
        Malformed::Shape(Infeasible::Memory { bytes }) if *bytes <= 4 * image.len() as u64 => {
            show::say(&format!("{path} cannot be read: {why}"));
            return ExitCode::FAILURE;
        }
        why => show::say(&format!("{path} is damaged: {why}")),
    }
    for damage in snapshot::damage(image) {
        show::note(&format!("  damaged: {damage}"));
    }
    ExitCode::from(3)
}
