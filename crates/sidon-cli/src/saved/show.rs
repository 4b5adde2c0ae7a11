//! `sidon show`: what is in a saved file.

use super::{file, library};
use crate::{show, watch::screen};
use serde_json::json;
use sidon::{Malformed, bytes::Parts};
use sidon_traffic::{
    Snapshot,
    snapshot::{self, KIND},
};
use std::{path::PathBuf, process::ExitCode};

/// Shows what is in a saved file
///
/// A file of sidon watch --save is shown as the screen of that run. Any other structure of the
/// library is shown by its kind, its shape, what it holds and how far its answers can be trusted. The
/// seed is a secret and is never printed: its check value tells whether two files have the same.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
EXIT STATUS
  0  the file is whole
  1  there is no such file, or it is none of ours
  2  the command line is wrong
  3  the file is cut or damaged: what is wrong and where is said")]
pub(crate) struct Args {
    /// The file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How many of the heaviest to list [default: as many as when it was saved]
    #[arg(long, value_name = "N")]
    top: Option<u16>,
    /// Print one JSON object instead of a screen
    #[arg(long)]
    json: bool,
    /// Only the heaviest flows and the ledger
    #[arg(short, long)]
    quiet: bool,
    /// More of everything
    #[arg(short, long)]
    verbose: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let image = file::read(&args.file)?;
    let path = args.file.display().to_string();
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
            show::print(&serde_json::to_string_pretty(&summary.json())?)?;
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
        None if !args.json => snapshot.set_top(style.rows()),
        None => {}
    }
    let report = snapshot.report();
    if args.json {
        let mut json = report.to_json();
        json["partial"] = snapshot.is_partial().into();
        json["saved"] = json!({
            "engines": snapshot.engines(),
            "expression": snapshot.expression(),
            "seed_check": format!("{seed_check:016x}"),
            "bytes": bytes,
        });
        show::print(&serde_json::to_string_pretty(&json)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut title = format!("{path} (saved");
    if snapshot.engines() > 1 {
        title += &format!(", {} merged", show::whole(snapshot.engines()));
    }
    if snapshot.is_partial() {
        title += ", of a capture that broke off";
    }
    if !snapshot.expression().is_empty() {
        title += &format!(", filter: {}", snapshot.expression());
    }
    title.push(')');
    show::print(&screen::render(&title, &report, style))?;
    Ok(ExitCode::SUCCESS)
}

/// Says what is wrong with a file, and where.
pub(super) fn broken(path: &str, image: &[u8], why: &Malformed) -> ExitCode {
    eprintln!("sidon: {path}: {why}");
    if *why == Malformed::Magic {
        return ExitCode::FAILURE;
    }
    if let Malformed::Length { expected, got } = why {
        match expected.checked_sub(*got) {
            Some(missing) => eprintln!("  it is cut: {} bytes are missing", show::whole(missing)),
            None => eprintln!("  there are {} bytes too many", show::whole(got - expected)),
        }
    }
    for damage in snapshot::damage(image) {
        eprintln!("  damaged: {damage}");
    }
    ExitCode::from(3)
}
