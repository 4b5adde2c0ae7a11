//! `sidon`: compact memory for network flows, on the command line. A file a subcommand.

mod audit;
mod demo;
mod lab;
mod machine;
mod plan;
mod show;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Compact memory for network flows, with answers that carry their certainty.
#[derive(Debug, Parser)]
#[command(name = "sidon", version, about, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Lab(lab::Args),
    Machine(machine::Args),
    Plan(plan::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Machine(args) => machine::run(&args),
        Command::Plan(args) => plan::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) if is_closed_pipe(&why) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("sidon: {why:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the reader of our output went away, as `head` does: nothing is wrong then.
fn is_closed_pipe(why: &anyhow::Error) -> bool {
    why.downcast_ref::<std::io::Error>()
        .is_some_and(|why| why.kind() == std::io::ErrorKind::BrokenPipe)
}
