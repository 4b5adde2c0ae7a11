//! `sidon`: compact memory for network flows, on the command line. A file a subcommand.

mod args;
mod audit;
mod demo;
mod generate;
mod lab;
mod machine;
mod manual;
mod plan;
mod saved;
mod serve;
mod show;
mod watch;

use clap::{CommandFactory, Parser, Subcommand};
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
    Completions(manual::CompletionArgs),
    Demo(demo::Args),
    Generate(generate::Args),
    Lab(lab::Args),
    Machine(machine::Args),
    Man(manual::ManArgs),
    Merge(saved::merge::Args),
    Plan(plan::Args),
    Serve(serve::Args),
    Show(saved::show::Args),
    Watch(Box<watch::Args>),
}

fn main() -> ExitCode {
    let success = |()| ExitCode::SUCCESS;
    let done = match Cli::parse().command {
        Command::Completions(args) => manual::completions(&args, Cli::command()).map(success),
        Command::Demo(args) => demo::run(&args).map(success),
        Command::Generate(args) => generate::run(&args).map(success),
        Command::Lab(args) => lab::run(&args).map(success),
        Command::Machine(args) => machine::run(&args).map(success),
        Command::Man(args) => manual::man(&args, Cli::command()).map(success),
        Command::Merge(args) => saved::merge::run(&args),
        Command::Plan(args) => plan::run(&args).map(success),
        Command::Serve(args) => serve::run(&args).map(success),
        Command::Show(args) => saved::show::run(&args),
        Command::Watch(args) => watch::run(&args),
    };
    match done {
        Ok(code) => code,
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
