//! `sidon machine`: a state machine in a TOML file, read, checked and shown as a table.
//!
//! ```toml
//! states = ["opening", "open", "closed"]
//! terminal = ["closed"]
//!
//! [events]
//! syn = { open = "opening" }              # an absent flow enters
//! ack = { if = { opening = "open" } }     # from the first state to the second
//! rst = { go = "closed" }                 # from any state
//! ```
//! The other forms are `open_new = "state"`, an event known to be the first of its flow, and
//! `add = 1`, from a state to the one so many further on. One event may have several.

use crate::show;
use anyhow::Context;
use serde_json::json;
use sidon::{
    Lookup,
    ops::Next,
    state::{
        Machine, State,
        machine::{Faulty, Rule},
    },
};
use std::{ops::Range, path::PathBuf};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Check a state machine in a TOML file, and show what every event does in every state
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write JSON: {"rows": [{"event", "state", "next"}]}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let path = args.file.display();
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("cannot read {path}"))?;
    let machine = read(&text).map_err(|why| anyhow::anyhow!("{path}:{}", why.at(&text)))?;
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

/// What is wrong, and where in the text.
#[derive(Debug)]
pub(crate) struct Wrong {
    what: String,
    span: Range<usize>,
}

impl Wrong {
    fn new(what: impl Into<String>, span: Range<usize>) -> Self {
        Wrong { what: what.into(), span }
    }

    /// Line, column, the reason and the line in question.
    pub(crate) fn at(&self, text: &str) -> String {
        let start = self.span.start.min(text.len());
        let before = text.get(..start).unwrap_or(text);
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or("").chars().count();
        let source = text.lines().nth(line).unwrap_or("");
        let long =
            text.get(self.span.clone()).map_or(1, |part| part.lines().next().unwrap_or("").len());
        let marks = "^".repeat(long.clamp(1, source.len().saturating_sub(column).max(1)));
        let what = &self.what;
        format!("{}:{}: {what}\n  {source}\n  {:column$}{marks}", line + 1, column + 1, "")
    }
}

/// The machine of a TOML text.
pub(crate) fn read(text: &str) -> Result<Machine, Wrong> {
    let table = DeTable::parse(text)
        .map_err(|why| Wrong::new(why.message(), why.span().unwrap_or(0..0)))?;
    let whole = table.span();
    let table = table.get_ref();
    for key in table.keys() {
        if !["states", "terminal", "events"].contains(&&**key.get_ref()) {
            let what = format!("{:?} is not one of states, terminal and events", key.get_ref());
            return Err(Wrong::new(what, key.span()));
        }
    }
    let Some(states) = table.get("states") else {
        return Err(Wrong::new("there are no states", whole));
    };
    let Some(events) = table.get("events") else {
        return Err(Wrong::new("there are no events", whole));
    };
    let names = strings(states)?;
    let states: Vec<&str> = names.iter().map(|&(name, _)| name).collect();
    let state = |value: &Spanned<DeValue<'_>>| {
        let Some(name) = value.get_ref().as_str() else {
            return Err(Wrong::new("expected the name of a state", value.span()));
        };
        match states.iter().find(|&&state| state == name) {
            Some(&name) => Ok(name),
            None => {
                let all = states.join(", ");
                Err(Wrong::new(format!("there is no state {name:?}, only {all}"), value.span()))
            }
        }
    };
    let mut terminal = Vec::new();
    if let Some(list) = table.get("terminal") {
        let Some(list) = list.get_ref().as_array() else {
            return Err(Wrong::new("expected a list of states", list.span()));
        };
        for value in list {
            terminal.push(state(value)?);
        }
    }
    let event_span = events.span();
    let Some(events) = events.get_ref().as_table() else {
        return Err(Wrong::new("expected a table of events", event_span));
    };
    let mut rules: Vec<(&str, Vec<Rule<'_>>, Range<usize>)> = Vec::new();
    for (name, value) in events {
        let Some(forms) = value.get_ref().as_table() else {
            let what = "expected what the event does, such as { go = \"state\" }";
            return Err(Wrong::new(what, value.span()));
        };
        let mut own = Vec::new();
        for (form, value) in forms {
            match &**form.get_ref() {
                "open" => own.push(Rule::Open(state(value)?)),
                "open_new" => own.push(Rule::OpenNew(state(value)?)),
                "go" => own.push(Rule::Go(state(value)?)),
                "add" => {
                    let number = value.get_ref().as_integer().and_then(|number| {
                        i32::from_str_radix(number.as_str(), number.radix()).ok()
                    });
                    let Some(number) = number else {
                        return Err(Wrong::new("expected a small whole number", value.span()));
                    };
                    own.push(Rule::Add(number));
                }
                "if" => {
                    let Some(pairs) = value.get_ref().as_table() else {
                        let what = "expected pairs of states, such as { opening = \"open\" }";
                        return Err(Wrong::new(what, value.span()));
                    };
                    for (from, to) in pairs {
                        let known = states.iter().find(|&&state| state == &**from.get_ref());
                        let Some(from) = known else {
                            let what = format!("there is no state {:?}", from.get_ref());
                            return Err(Wrong::new(what, from.span()));
                        };
                        own.push(Rule::If(from, state(to)?));
                    }
                }
                other => {
                    let what = format!("{other:?} is not one of open, open_new, go, if and add");
                    return Err(Wrong::new(what, form.span()));
                }
            }
        }
        rules.push((&**name.get_ref(), own, name.span()));
    }
    let all: Vec<(&str, &[Rule<'_>])> =
        rules.iter().map(|(name, rules, _)| (*name, rules.as_slice())).collect();
    Machine::new(&states, &terminal, &all).map_err(|why| {
        let span = match &why {
            Faulty::Conflict { event, .. } => {
                rules.iter().find(|(name, ..)| name == event).map(|(.., span)| span.clone())
            }
            Faulty::Twice { name, .. } => {
                names.iter().rev().find(|(own, _)| own == name).map(|(_, span)| span.clone())
            }
            _ => None,
        };
        Wrong::new(why.to_string(), span.unwrap_or(event_span))
    })
}

/// The strings of a list, and where they are.
fn strings<'a>(list: &'a Spanned<DeValue<'_>>) -> Result<Vec<(&'a str, Range<usize>)>, Wrong> {
    let Some(values) = list.get_ref().as_array() else {
        return Err(Wrong::new("expected a list of names", list.span()));
    };
    let name = |value: &'a Spanned<DeValue<'_>>| match value.get_ref().as_str() {
        Some(name) => Ok((name, value.span())),
        None => Err(Wrong::new("expected a name", value.span())),
    };
    values.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: &str = r#"
states = ["opening", "open", "closed"]
terminal = ["closed"]

[events]
syn = { open = "opening" }
ack = { if = { opening = "open" } }
rst = { go = "closed" }
"#;

    #[test]
    fn a_file_is_a_machine() {
        let machine = read(TCP).unwrap();
        assert_eq!(machine.states(), ["opening", "open", "closed"]);
        let [syn, ack, rst] = ["syn", "ack", "rst"].map(|name| machine.event(name).unwrap());
        assert_eq!(machine.next(Lookup::Absent, syn), Next::Insert(0));
        assert_eq!(machine.next(Lookup::State(0), ack), Next::Modify(1));
        assert_eq!(machine.next(Lookup::State(1), rst), Next::Forget);
    }

    #[test]
    fn mistakes_are_shown_where_they_are() {
        for (from, to, message) in [
            ("\"open\" } }", "\"opne\" } }", "7:26: there is no state \"opne\", only opening"),
            ("go =", "goto =", "8:9: \"goto\" is not one of open"),
            ("[\"closed\"]", "[\"close\"]", "3:13: there is no state \"close\""),
            ("[events]", "[event]", "5:2: \"event\" is not one of states"),
            ("{ opening =", "{ start =", "7:16: there is no state \"start\""),
            (
                "\"closed\"]\nterm",
                "\"closed\", \"open\"]\nterm",
                "2:40: the state \"open\" is named twice",
            ),
            ("syn = { open = \"opening\" }", "syn = {}", "no event opens a flow"),
            ("go = \"closed\"", "add = \"x\"", "8:15: expected a small whole number"),
            ("go = \"closed\"", "go = \"open\", add = 1", "8:1: on \"rst\""),
            ("rst =", "rst", "8:"),
        ] {
            let text = TCP.replace(from, to);
            assert_ne!(text, TCP, "{from}");
            let why = read(&text).unwrap_err().at(&text);
            assert!(why.contains(message), "{from}: {why}");
        }
    }
}
