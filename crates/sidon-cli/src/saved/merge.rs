//! `sidon merge`: merges saved files into one.

use super::{
    file,
    library::{self, Apart},
    show::broken,
};
use crate::{
    args::{Files, number::memory},
    sandbox::{self, Needs},
    show::{self, whole},
    signals::Signals,
};
use anyhow::{bail, ensure};
use sidon::{Malformed, Refused, saved::Parts};
use sidon_traffic::{
    Snapshot,
    files::System,
    snapshot::{KIND, Merged},
};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Merge saved files of several hosts or of several hours into one
///
/// Files of `sidon watch --save` must have the same --seed, --memory, --subnet, --machine and --known,
/// and the same filter expression. Give all hosts the same --seed. The files of one run with --rotate
/// have the same seed. A count stays exact if both files know the flow from its first packet, and is
/// a bound otherwise. Source addresses are the union of all files. A connection in two files counts
/// in each of them, and the command prints how many there are. Structures of the library are merged
/// with structures of the same kind, shape and seed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
EXIT STATUS
  0  merged
  1  the files cannot be merged, read or written; no file was written
  2  the command line is wrong
  3  a file is cut or damaged; no file was written

EXAMPLES
  sidon watch -r a.pcap --seed 4711 --save a.sidon    # on one host
  sidon watch -r b.pcap --seed 4711 --save b.sidon    # on another
  sidon merge a.sidon b.sidon -o both.sidon && sidon show both.sidon
  sidon merge day/*.sidon -o day.sidon
  sidon merge --by-flow a.sidon b.sidon -o both.sidon # two sensors of one link")]
pub(crate) struct Args {
    /// Files to merge; a single file is copied
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// File to write; an existing file is replaced, and may be one of the files to merge
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// No flow is in two files: all its packets, in both directions, went to one of them
    ///
    /// For sensors behind a load balancer that distributes flows, over the same time. Counts of flows
    /// and connections that are exact in every file then stay exact.
    #[arg(long)]
    by_flow: bool,
    /// The most bytes of each file, such as 2GiB
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = memory)]
    max_size: u64,
    /// Print no message after a successful merge
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // All files are read before the output is written, so it may be one of them.
    Files::default().replaces("-o", [&args.output]).check()?;
    let needs = Needs::nothing().reads(&args.files).outputs([&args.output]);
    sandbox::confine(&needs.quiet(args.quiet))?;
    let signals = Signals::stopping()?;
    let first = file::read(&args.files[0], args.max_size)?;
    match Parts::of(&first) {
        Ok(parts) if parts.kind == KIND => engines(args, &signals, &first),
        Ok(_) if args.by_flow => {
            let name = show::path(&args.files[0]);
            bail!("{name} is no file of sidon watch --save; merge it without --by-flow")
        }
        Ok(_) => structures(args, &signals, first),
        Err(why) => Ok(broken(&show::path(&args.files[0]), &first, &why)),
    }
}

/// Merges one file after the other, so that only two are in memory at a time.
fn engines(args: &Args, signals: &Signals, first: &[u8]) -> anyhow::Result<ExitCode> {
    let merge = if args.by_flow { Snapshot::merge_parts } else { Snapshot::merge };
    let in_both = if args.by_flow {
        "connections look like another one in another file; their last state is not known"
    } else {
        "connections are in more than one file and count in each"
    };
    let mut sum: Option<Snapshot> = None;
    let mut sums = Merged::default();
    for (index, path) in args.files.iter().enumerate() {
        go_on(args, signals)?;
        let name = show::path(path);
        let read;
        let image = if index == 0 {
            first
        } else {
            read = file::read(path, args.max_size)?;
            &read[..]
        };
        let next = match Snapshot::from_bytes(image) {
            Ok(next) => next,
            Err(Malformed::Kind { .. }) => {
                return Ok(refused(args, path, Refused::Mismatch { field: "kinds" }));
            }
            Err(why) => return Ok(broken(&name, image, &why)),
        };
        match &mut sum {
            None => sum = Some(next),
            Some(sum) => match merge(sum, next) {
                Ok(merged) => {
                    for (sum, more) in [
                        (&mut sums.in_both, merged.in_both),
                        (&mut sums.refused_connections, merged.refused_connections),
                        (&mut sums.refused_sources, merged.refused_sources),
                    ] {
                        *sum = sum.saturating_add(more);
                    }
                }
                Err(why) => return Ok(refused(args, path, why)),
            },
        }
    }
    let Some(sum) = sum else { return Ok(ExitCode::FAILURE) };
    write(args, signals, |out| sum.write(out))?;
    if !args.quiet {
        let ledger = sum.report().ledger;
        show::say(&format!("{} files, {} packets", args.files.len(), whole(ledger.seen)));
        for (count, what) in [
            (sums.in_both, in_both),
            (sums.refused_connections, "connections did not fit into the table and are not kept"),
            (
                sums.refused_sources,
                "source addresses did not fit into the table and are not listed",
            ),
        ] {
            if count > 0 {
                show::note(&format!("  {} {what}", whole(count)));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Merges one structure after the other, so that only two are in memory at a time.
fn structures(args: &Args, signals: &Signals, first: Vec<u8>) -> anyhow::Result<ExitCode> {
    let mut sum: Option<Vec<u8>> = None;
    let mut next = first;
    for (index, path) in args.files.iter().enumerate() {
        go_on(args, signals)?;
        if index > 0 {
            next = file::read(path, args.max_size)?;
        }
        let all = sum.iter().chain([&next]).map(|image| Parts::of(image));
        let merged = match all.collect::<Result<Vec<_>, _>>() {
            Ok(all) => library::merge(&all),
            Err(why) => return Ok(broken(&show::path(path), &next, &why)),
        };
        match merged {
            Ok(image) => sum = Some(image),
            Err(Apart::Malformed(why)) => {
                return Ok(broken(&show::path(path), &next, &why));
            }
            Err(Apart::Refused(why)) => return Ok(refused(args, path, why)),
            Err(Apart::Kind(name)) => {
                show::say(&format!(
                    "{} is a {name}, which this command cannot merge; merge it in the \
                     program that wrote it, which has its seed and its type of keys",
                    show::path(&args.files[0])
                ));
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    let Some(sum) = sum else { return Ok(ExitCode::FAILURE) };
    write(args, signals, |out| out.write_all(&sum))?;
    Ok(ExitCode::SUCCESS)
}

/// An error after SIGINT or SIGTERM.
fn go_on(args: &Args, signals: &Signals) -> anyhow::Result<()> {
    ensure!(!signals.stop(), "cannot write {}: interrupted", show::path(&args.output));
    Ok(())
}

/// Writes the merged file. After a signal the old file stays, and no temporary file is left.
fn write(
    args: &Args,
    signals: &Signals,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    file::replace(&System, &args.output, |out| {
        write(out)?;
        if signals.stop() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    })
}

/// Prints why a file cannot be merged, and which option to change.
fn refused(args: &Args, path: &Path, why: Refused) -> ExitCode {
    let (first, path) = (show::path(&args.files[0]), show::path(path));
    match why {
        Refused::Mismatch { field } => {
            show::say(&format!(
                "{path} cannot be merged with {first}: they differ in their {field}"
            ));
            let option = match field {
                "seed" => "--seed",
                "memory" | "tables" => "--memory",
                "watched subnets" => "--subnet",
                "machines" => "--machine",
                "known sources" => "--known",
                "filter expression" => "filter expression",
                "treatment of tunnels" => "use of --inner",
                _ => {
                    show::note("  merge only structures of one kind, shape and seed");
                    return ExitCode::FAILURE;
                }
            };
            show::note(&format!("  run sidon watch --save with the same {option} for all files"));
        }
        why => show::say(&format!("{path} cannot be merged with {first}: {why}")),
    }
    ExitCode::FAILURE
}
