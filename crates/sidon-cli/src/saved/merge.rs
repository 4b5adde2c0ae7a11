//! `sidon merge`: several saved files become one.

use super::{
    file,
    library::{self, Apart},
    show::broken,
};
use crate::show::whole;
use sidon::{Refused, bytes::Parts};
use sidon_traffic::{
    Snapshot,
    snapshot::{KIND, Merged},
};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Merges saved files: of several hosts, or of several hours
///
/// Files of sidon watch --save must have been made under the same seed, with the same --memory, the
/// same --subnet, the same expression and the same --known: on several hosts, give them all the same
/// --seed; the files of one run with --rotate have one. Counts that were exact stay so where both files
/// know the flow from its first packet, and are bounds otherwise; no bound is ever wrong. Source
/// addresses are the union, exact. A connection that is in two files is counted in each, and how often
/// that was is said. Structures of the library are merged with their like.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
EXIT STATUS
  0  merged
  1  the files do not fit together, or could not be read or written: nothing was written
  2  the command line is wrong
  3  a file is cut or damaged: nothing was written

EXAMPLES
  sidon watch -r a.pcap --seed 4711 --save a.sidon    # on one host
  sidon watch -r b.pcap --seed 4711 --save b.sidon    # on another
  sidon merge a.sidon b.sidon -o both.sidon && sidon show both.sidon
  sidon merge day/*.sidon -o day.sidon")]
pub(crate) struct Args {
    /// The files; one alone is copied
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// Where the merged one goes; what is there is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Say nothing if all went well
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let first = file::read(&args.files[0])?;
    match Parts::of(&first) {
        Ok(parts) if parts.kind == KIND => engines(args, &first),
        Ok(_) => structures(args),
        Err(why) => Ok(broken(&args.files[0].display().to_string(), &first, &why)),
    }
}

/// One file after the other, so that two are in memory at a time.
fn engines(args: &Args, first: &[u8]) -> anyhow::Result<ExitCode> {
    let mut sum: Option<Snapshot> = None;
    let mut told = Merged::default();
    for (index, path) in args.files.iter().enumerate() {
        let name = path.display().to_string();
        let read;
        let image = if index == 0 {
            first
        } else {
            read = file::read(path)?;
            &read[..]
        };
        let next = match Snapshot::from_bytes(image) {
            Ok(next) => next,
            Err(why) => return Ok(broken(&name, image, &why)),
        };
        match &mut sum {
            None => sum = Some(next),
            Some(sum) => match sum.merge(next) {
                Ok(merged) => {
                    told.in_both += merged.in_both;
                    told.refused_connections += merged.refused_connections;
                    told.refused_sources += merged.refused_sources;
                }
                Err(why) => return Ok(refused(args, path, why)),
            },
        }
    }
    let Some(sum) = sum else { return Ok(ExitCode::FAILURE) };
    file::replace(&args.output, |out| sum.write(out))?;
    if !args.quiet {
        let ledger = sum.report().ledger;
        eprintln!("sidon: {} files, {} packets", args.files.len(), whole(ledger.seen));
        for (count, what) in [
            (told.in_both, "times a connection was in a further file: it is counted in each"),
            (told.refused_connections, "connections found no room: their states are not kept"),
            (told.refused_sources, "source addresses found no room: they are not among the new"),
        ] {
            if count > 0 {
                eprintln!("  {} {what}", whole(count));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn structures(args: &Args) -> anyhow::Result<ExitCode> {
    let mut images = Vec::new();
    for path in &args.files {
        images.push(file::read(path)?);
    }
    let mut all = Vec::new();
    for (path, image) in args.files.iter().zip(&images) {
        match Parts::of(image) {
            Ok(parts) => all.push(parts),
            Err(why) => return Ok(broken(&path.display().to_string(), image, &why)),
        }
    }
    match library::merge(&all) {
        Ok(image) => {
            file::replace(&args.output, |out| out.write_all(&image))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(Apart::Malformed(index, why)) => {
            let path = args.files[index].display().to_string();
            Ok(broken(&path, &images[index], &why))
        }
        Err(Apart::Refused(index, why)) => Ok(refused(args, &args.files[index], why)),
        Err(Apart::Kind(name)) => {
            eprintln!(
                "sidon: structures {name} cannot be merged here: what their keys are, and their \
                 seed, is known to the program that made them"
            );
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Says why a file does not fit, and what would have helped.
fn refused(args: &Args, path: &Path, why: Refused) -> ExitCode {
    let (first, path) = (args.files[0].display(), path.display());
    match why {
        Refused::Mismatch { field } => {
            eprintln!("sidon: {path} does not fit {first}: they differ in their {field}");
            let help = match field {
                "seed" => "files that are to be merged are made with the same --seed",
                "memory" | "tables" => {
                    "files that are to be merged are made with the same --memory"
                }
                "watched subnets" => "files that are to be merged are made with the same --subnet",
                "machines" => "files that are to be merged are made with the same --machine",
                "known sources" => "files that are to be merged are made with the same --known",
                _ => return ExitCode::FAILURE,
            };
            eprintln!("  {help}");
        }
        why => eprintln!("sidon: {path} cannot be merged with {first}: {why}"),
    }
    ExitCode::FAILURE
}
