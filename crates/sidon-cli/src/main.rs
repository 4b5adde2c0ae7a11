//! `sidon`: compact memory for network flows, on the command line. One file per subcommand.

#![warn(clippy::print_stdout, clippy::print_stderr)] // `show` prints, and checks what it prints

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
use sidon_traffic::excerpt;
use std::{
    ffi::{OsStr, OsString},
    io::IsTerminal,
    process::{ExitCode, exit},
};

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
    Serve(Box<serve::Args>),
    Show(saved::show::Args),
    #[cfg(feature = "parquet")]
    Tables(saved::tables::Args),
    Watch(Box<watch::Args>),
}

fn main() -> ExitCode {
    signals::prepare();
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
        #[cfg(feature = "parquet")]
        Command::Tables(args) => saved::tables::run(&args),
        Command::Watch(args) => watch::run(&args),
    };
    match done {
        Ok(code) => code,
        Err(why) if why.is::<show::Closed>() => ExitCode::SUCCESS,
        Err(why) => {
            show::say(&format!("{why:#}"));
            if why.is::<args::Misuse>() { ExitCode::from(2) } else { ExitCode::FAILURE }
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
    let read = |words: Vec<OsString>| {
        let mut matches = command.clone().try_get_matches_from(words)?;
        Cli::from_arg_matches_mut(&mut matches)
    };
    let words: Vec<_> = std::env::args_os().collect();
    read(words.clone()).unwrap_or_else(|why| {
        // The error quotes the words. It is made again from words that a terminal may show.
        let safe = words.iter().map(|word| quoted(word).into()).collect();
        end(if words == safe { why } else { read(safe).err().unwrap_or(why) })
    })
}

/// The most characters of a word that an error of the command line quotes.
const QUOTED: usize = 100;

/// A word as an error quotes it: printable, and cut if it is long.
fn quoted(word: &OsStr) -> String {
    let word = show::path(word);
    if word.chars().nth(QUOTED).is_some() { excerpt::word(&word).into_owned() } else { word }
}

/// Ends with an error of the command line, or with the help.
fn end(why: clap::Error) -> ! {
    if why.use_stderr() || std::io::stdout().is_terminal() {
        why.exit();
    }
    match show::print(why.render().to_string().trim_end()) {
        Err(why) if !why.is::<show::Closed>() => {
            show::say(&format!("{why:#}"));
            exit(1)
        }
        _ => exit(0),
    }
}
