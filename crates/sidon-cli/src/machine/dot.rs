//! A machine as a drawing for Graphviz: one node per state, one arrow per transition.

use super::read::Read;
use sidon::{
    Lookup,
    state::{Next, State},
};
use std::fmt::Write;

/// The drawing.
pub(super) fn draw(read: &Read) -> String {
    let machine = &read.machine;
    let name = |state: State| {
        let name = machine.states().get(usize::from(state)).map_or("", String::as_str);
        format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
    };
    let mut text = String::from("digraph machine {\n  rankdir=LR;\n  absent [shape=point];\n");
    let ends = (0..machine.states().len() as State).find(|&state| machine.is_terminal(state));
    for state in 0..machine.states().len() as State {
        let (own, seconds) = (name(state), read.timeouts.get(usize::from(state)));
        let _ = match (machine.is_terminal(state), seconds) {
            (true, _) => writeln!(text, "  {own} [shape=doublecircle];"),
            (false, Some(seconds)) => {
                let inner = &own[1..own.len() - 1];
                writeln!(text, "  {own} [label=\"{inner}\\n{seconds} s\"];")
            }
            (false, None) => writeln!(text, "  {own};"),
        };
    }
    let states = (0..machine.states().len() as State).filter(|&state| !machine.is_terminal(state));
    let nows = states.map(|state| (name(state), Lookup::State(state)));
    for (from, now) in nows.chain([("absent".to_owned(), Lookup::Absent)]) {
        for (event, event_name) in (0..).zip(machine.events()) {
            let to = match machine.next(now, event) {
                Next::Stay => continue,
                Next::Forget => ends.map_or("absent".to_owned(), &name),
                Next::Insert(to) | Next::Modify(to) | Next::Set(to) => name(to),
            };
            let label = event_name.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(text, "  {from} -> {to} [label=\"{label}\"];");
        }
    }
    text.push('}');
    text
}
