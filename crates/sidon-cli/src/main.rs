//! `sidon`: compact memory for network flows, on the command line. One file per subcommand.

mod args;
mod audit;
mod demo;
mod doctor;
mod generate;
mod lab;
mod machine;
mod manual;
mod plan;
mod sandbox;
mod saved;
mod serve;
mod show;
mod signals;
mod watch;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

/// Compact memory for network flows, with answers that carry their certainty.
#[derive(Debug, Parser)]
#[command(name = "sidon", bin_name = "sidon", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Completions(manual::CompletionArgs),
    Demo(demo::Args),
    Doctor(doctor::Args),
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
    let done = match parse().command {
        Command::Completions(args) => manual::completions(&args, Cli::command()).map(success),
        Command::Demo(args) => demo::run(&args).map(success),
        Command::Doctor(args) => doctor::run(&args),
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
            eprintln!("{}", show::for_terminal(&format!("sidon: {why:#}")));
            ExitCode::FAILURE
        }
    }
}

/// The command line. Help is as wide as the terminal, up to 100 columns. The parser of an option
/// reads negative numbers, so that its error names the option.
fn parse() -> Cli {
    fn negative(command: clap::Command) -> clap::Command {
        let command = command.mut_args(|arg| match arg.get_action().takes_values() {
            true if !arg.is_positional() => arg.allow_negative_numbers(true),
            _ => arg,
        });
        command.mut_subcommands(negative)
    }
    let command = negative(Cli::command()).term_width(show::width().min(100));
    Cli::from_arg_matches_mut(&mut command.get_matches()).unwrap_or_else(|why| why.exit())
}

/// Whether the reader of standard output closed it, as `head` does. That is not an error.
fn is_closed_pipe(why: &anyhow::Error) -> bool {
    why.downcast_ref::<std::io::Error>()
        .is_some_and(|why| why.kind() == std::io::ErrorKind::BrokenPipe)
}
