//! `sidon machine`: reads and checks a state machine in a TOML file, prints it as a table, draws it.
//!
//! ```toml
//! states = ["opening", "open", "closed"]
//! terminal = ["closed"]
//!
//! [timeouts]
//! opening = 5                             # seconds without a packet; default 300
//!
//! [events]
//! syn = { when = { protocol = "tcp", flags = "S", without = "A" }, open = "opening" }
//! ack = { when = { flags = "A", direction = "opener" }, if = { opening = "open" } }
//! rst = { when = { flags = "R" }, go = "closed" }
//! ```
//! `open` stores a flow that is absent. `if` changes the first state to the second, `go` any state.
//! `open_new = "state"` is for an event that is always the first of its flow. `add = n` changes state
//! `i` to state `i + n`. One event may have several of these. [`when`] selects the packets of an
//! event: `sidon watch --machine` needs it in every event, and runs the first event that matches.

mod dot;
mod read;
mod when;

use crate::{
    sandbox::{self, Needs},
    show,
};
use read::{Wrong, read};
use serde_json::json;
use sidon::{
    Lookup,
    state::{Next, State},
};
use sidon_traffic::{
    files::input::{self, Unread},
    monitor::machine::Definition,
};
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Check a state machine in a TOML file, print its transitions, or draw it
///
/// A machine runs over packets in `sidon watch --machine FILE` if all its events have `when`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    table: Option<Table>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check the file and print the transitions as a table; an error has its line and column
    Check(Table),
    /// Draw the machine with Graphviz: `sidon machine dot FILE | dot -Tsvg > machine.svg`
    Dot {
        /// TOML file with the machine
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Table {
    /// TOML file with the machine
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write JSON: {"rows": [{"event", "state", "next"}]}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match (&args.command, &args.table) {
        (Some(Command::Check(table)), _) | (None, Some(table)) => show_table(table),
        (Some(Command::Dot { file }), _) => {
            let text = text_confined(file)?;
            show::print(&dot::draw(&read(&text).map_err(|why| at_file(file, &text, &why))?))
        }
        (None, None) => anyhow::bail!("no file; type: sidon machine FILE"),
    }
}

/// The machine over packets in an open file. Its name is the file's name without the extension.
pub(crate) fn definition(file: &Path, open: File) -> anyhow::Result<Arc<Definition>> {
    let text = text_of(file, open)?;
    let name = show::path(file.file_stem().unwrap_or(file.as_os_str()));
    let definition = read(&text).and_then(|read| read.definition(name));
    definition.map(Arc::new).map_err(|why| at_file(file, &text, &why))
}

/// The most bytes of a file with a machine.
const FILE_MAX: u64 = 1 << 20;

/// Opens a file with a machine. The program may confine itself before it reads the file.
pub(crate) fn open(file: &Path) -> anyhow::Result<File> {
    File::open(file).map_err(|why| unread(file, why.into()))
}

/// The text of an open file with a machine.
fn text_of(file: &Path, open: File) -> anyhow::Result<String> {
    input::text(open, FILE_MAX).map_err(|why| unread(file, why))
}

fn unread(file: &Path, why: Unread) -> anyhow::Error {
    anyhow::anyhow!("cannot read the machine {}: {why}", show::path(file))
}

/// Opens a file with a machine, gives up all rights, and reads the file.
fn text_confined(file: &Path) -> anyhow::Result<String> {
    let open = open(file)?;
    sandbox::confine(&Needs::nothing())?;
    text_of(file, open)
}

fn at_file(file: &Path, text: &str, why: &Wrong) -> anyhow::Error {
    anyhow::anyhow!("{}:{}", show::path(file), why.at(text))
}

fn show_table(args: &Table) -> anyhow::Result<()> {
    let text = text_confined(&args.file)?;
    let machine = read(&text).map_err(|why| at_file(&args.file, &text, &why))?.machine;
    let mut columns: Vec<(String, Lookup<State>)> = (0..)
        .zip(machine.states())
        .filter(|&(number, _)| !machine.is_terminal(number))
        .map(|(number, name)| (name.clone(), Lookup::State(number)))
        .collect();
    columns.push(("(absent)".to_owned(), Lookup::Absent));
    columns.push(("(unknown)".to_owned(), Lookup::DontKnow));
    let next = |event, now| match machine.next(now, event) {
        Next::Stay => ".".to_owned(),
        Next::Forget => "end".to_owned(),
        Next::Insert(to) | Next::Modify(to) | Next::Set(to) => {
            machine.states().get(usize::from(to)).cloned().unwrap_or_default()
        }
    };
    if args.json {
        let rows = (0..).zip(machine.events()).flat_map(|(event, name)| {
            let row = move |(state, now): &(String, Lookup<State>)| {
                json!({ "event": name, "state": state, "next": next(event, *now) })
            };
            columns.iter().map(row).collect::<Vec<_>>()
        });
        return show::json_rows(rows.collect());
    }
    let mut head = vec!["event"];
    head.extend(columns.iter().map(|(name, _)| name.as_str()));
    let lines = (0..).zip(machine.events()).map(|(event, name)| {
        let cells = columns.iter().map(|&(_, now)| next(event, now));
        std::iter::once(name.clone()).chain(cells).collect()
    });
    show::print(&show::table(&head, lines))
}
