//! `sidon man` and `sidon completions`: manual pages and shell completions of this command.

use crate::show;
use anyhow::Context;
use clap_complete::Shell;
use clap_mangen::Man;
use sidon_traffic::files::{self, Access, System};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Write the manual pages, one per command, to a directory
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Directory for the pages; created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Print a script that completes the command line in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sidon completions bash > ~/.local/share/bash-completion/completions/sidon
  sidon completions fish > ~/.config/fish/completions/sidon.fish")]
pub(crate) struct CompletionArgs {
    /// Shell to write the script for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn man(args: &ManArgs, command: clap::Command) -> anyhow::Result<()> {
    let place =
        || format!("cannot write manual pages to the directory {}", show::path(&args.directory));
    fs::create_dir_all(&args.directory).with_context(place)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    pages(command, &args.directory).with_context(place)
}

/// Writes the page of a command, after those of its subcommands.
fn pages(command: clap::Command, directory: &Path) -> io::Result<()> {
    for command in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        pages(command.clone(), directory)?;
    }
    let page = Man::new(command);
    let path = directory.join(page.get_filename());
    files::replace(&System, &path, Access::Umask, |mut out| page.render(&mut out))
}

pub(crate) fn completions(args: &CompletionArgs, mut command: clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "sidon", &mut script);
    show::print(String::from_utf8_lossy(&script).trim_end())
}
