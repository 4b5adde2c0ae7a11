//! The reader of state machines in TOML.

use super::when;
use sidon::state::{Faulty, Machine, Rule};
use sidon_traffic::{
    excerpt::{excerpt, word},
    monitor::machine::{Definition, EVENTS_MAX, STATES_MAX, TIMEOUT, When},
    text,
};
use std::ops::Range;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The most states, and the most events, of a machine in a file.
const NAMES_MAX: usize = 1024;

/// What is wrong, and where in the text.
#[derive(Debug)]
pub(super) struct Wrong {
    what: String,
    span: Range<usize>,
}

impl Wrong {
    pub(super) fn new(what: impl Into<String>, span: Range<usize>) -> Self {
        Wrong { what: what.into(), span }
    }

    /// Line, column, the reason and the line in question.
    pub(super) fn at(&self, text: &str) -> String {
        let start = self.span.start.min(text.len());
        let before = text.get(..start).unwrap_or(text);
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or("").chars().count();
        let source = text.lines().nth(line).unwrap_or("");
        let part = text.get(self.span.clone()).and_then(|part| part.lines().next());
        let end = column + part.unwrap_or("").chars().count();
        let excerpt = excerpt(source, column..end).replace('\n', "\n  ");
        format!("{}:{}: {}\n  {excerpt}", line + 1, column + 1, self.what)
    }
}

/// Contents of a file.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) machine: Machine,
    /// The packets of each event, if it has `when`, and the position of its name.
    events: Vec<(Option<When>, Range<usize>)>,
    /// Seconds, by state.
    pub(super) timeouts: Vec<u64>,
    /// Position of the states.
    states: Range<usize>,
}

impl Read {
    /// The machine over packets, if every event has `when`.
    pub(super) fn definition(self, name: String) -> Result<Definition, Wrong> {
        let Read { machine, events, timeouts, states } = self;
        if machine.states().len() > STATES_MAX {
            let got = machine.states().len();
            let what = format!("{got} states are too many; over packets, use at most {STATES_MAX}");
            return Err(Wrong::new(what, states));
        }
        if let Some((_, span)) = events.get(EVENTS_MAX) {
            let got = events.len();
            let what = format!("{got} events are too many; over packets, use at most {EVENTS_MAX}");
            return Err(Wrong::new(what, span.clone()));
        }
        let mut own = Vec::new();
        for (number, (when, span)) in (0..).zip(events) {
            let Some(when) = when else {
                let what = "this event has no packets; add when = { protocol = \"tcp\", .. }";
                return Err(Wrong::new(what, span));
            };
            own.push((when, number));
        }
        Ok(Definition { name, machine, events: own, timeouts })
    }
}

/// The machine of a TOML text.
pub(super) fn read(text: &str) -> Result<Read, Wrong> {
    let table = DeTable::parse(text)
        .map_err(|why| Wrong::new(why.message(), why.span().unwrap_or(0..0)))?;
    let whole = table.span();
    let table = table.get_ref();
    for key in table.keys() {
        if !["states", "terminal", "timeouts", "events"].contains(&&**key.get_ref()) {
            let key_name = key.get_ref();
            let what =
                format!("expected states, terminal, timeouts or events, got {:?}", word(key_name));
            return Err(Wrong::new(what, key.span()));
        }
    }
    let Some(states) = table.get("states") else {
        return Err(Wrong::new("there are no states; add states = [\"first\", ..]", whole));
    };
    let Some(events) = table.get("events") else {
        return Err(Wrong::new("there are no events; add [events]", whole));
    };
    let states_span = states.span();
    let names = strings(states)?;
    few("states", names.len(), &states_span)?;
    let states: Vec<&str> = names.iter().map(|&(name, _)| name).collect();
    let state = |value: &Spanned<DeValue<'_>>| {
        let Some(name) = value.get_ref().as_str() else {
            return Err(Wrong::new("expected the name of a state", value.span()));
        };
        match states.iter().find(|&&state| state == name) {
            Some(&name) => Ok(name),
            None => {
                let (name, all) = (word(name), states.join(", "));
                let what = format!("there is no state {name:?}; the states are {}", word(&all));
                Err(Wrong::new(what, value.span()))
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
    let mut timeouts = vec![TIMEOUT; states.len()];
    if let Some(list) = table.get("timeouts") {
        let Some(list) = list.get_ref().as_table() else {
            return Err(Wrong::new("expected a table of states and seconds", list.span()));
        };
        for (name, value) in list {
            let Some(number) = states.iter().position(|&state| state == &**name.get_ref()) else {
                let what = format!("there is no state {:?}", word(name.get_ref()));
                return Err(Wrong::new(what, name.span()));
            };
            timeouts[number] = match when::number(value) {
                Some(seconds @ 1..=86_400) => seconds,
                _ => {
                    let what = "expected a number of seconds from 1 to 86400";
                    return Err(Wrong::new(what, value.span()));
                }
            };
        }
    }
    let event_span = events.span();
    let Some(events) = events.get_ref().as_table() else {
        return Err(Wrong::new("expected a table of events", event_span));
    };
    few("events", events.len(), &event_span)?;
    let mut in_order: Vec<_> = events.iter().collect();
    in_order.sort_by_key(|(name, _)| name.span().start);
    let mut whens = Vec::new();
    let mut rules: Vec<(&str, Vec<Rule<'_>>, Range<usize>)> = Vec::new();
    for (name, value) in in_order {
        visible(name.get_ref(), name.span())?;
        let Some(forms) = value.get_ref().as_table() else {
            let what = "expected the action of the event, such as { go = \"state\" }";
            return Err(Wrong::new(what, value.span()));
        };
        let mut own = Vec::new();
        let mut packets = None;
        for (form, value) in forms {
            match &**form.get_ref() {
                "when" => packets = Some(when::read(value)?),
                "open" => own.push(Rule::Open(state(value)?)),
                "open_new" => own.push(Rule::OpenNew(state(value)?)),
                "go" => own.push(Rule::Go(state(value)?)),
                "add" => {
                    let number = value.get_ref().as_integer().and_then(|number| {
                        i32::from_str_radix(number.as_str(), number.radix()).ok()
                    });
                    let Some(number) = number else {
                        return Err(Wrong::new("expected a whole number", value.span()));
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
                            let what = format!("there is no state {:?}", word(from.get_ref()));
                            return Err(Wrong::new(what, from.span()));
                        };
                        own.push(Rule::If(from, state(to)?));
                    }
                }
                other => {
                    let other = word(other);
                    let what =
                        format!("expected when, open, open_new, go, if or add, got {other:?}");
                    return Err(Wrong::new(what, form.span()));
                }
            }
        }
        whens.push((packets, name.span()));
        rules.push((&**name.get_ref(), own, name.span()));
    }
    let all: Vec<(&str, &[Rule<'_>])> =
        rules.iter().map(|(name, rules, _)| (*name, rules.as_slice())).collect();
    let machine = Machine::new(&states, &terminal, &all).map_err(|why| {
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
    })?;
    Ok(Read { machine, events: whens, timeouts, states: states_span })
}

/// Refuses a list that is longer than [`NAMES_MAX`]. The table of transitions has one cell for each
/// state and event.
fn few(what: &str, got: usize, span: &Range<usize>) -> Result<(), Wrong> {
    if got > NAMES_MAX {
        let what = format!("{got} {what} are too many; a machine has at most {NAMES_MAX}");
        return Err(Wrong::new(what, span.clone()));
    }
    Ok(())
}

/// Refuses a name with characters that a terminal would not show.
fn visible(name: &str, span: Range<usize>) -> Result<(), Wrong> {
    match name.contains(text::is_hidden) {
        true => Err(Wrong::new("a name has a control character; use visible characters", span)),
        false => Ok(()),
    }
}

/// The strings of a list, and their positions.
fn strings<'a>(list: &'a Spanned<DeValue<'_>>) -> Result<Vec<(&'a str, Range<usize>)>, Wrong> {
    let Some(values) = list.get_ref().as_array() else {
        return Err(Wrong::new("expected a list of names", list.span()));
    };
    let name = |value: &'a Spanned<DeValue<'_>>| match value.get_ref().as_str() {
        Some(name) => visible(name, value.span()).map(|()| (name, value.span())),
        None => Err(Wrong::new("expected a name", value.span())),
    };
    values.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::dot, *};
    use sidon::{Lookup, state::Next};

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
        let machine = read(TCP).unwrap().machine;
        assert_eq!(machine.states(), ["opening", "open", "closed"]);
        let [syn, ack, rst] = ["syn", "ack", "rst"].map(|name| machine.event(name).unwrap());
        assert_eq!(machine.next(Lookup::Absent, syn), Next::Insert(0));
        assert_eq!(machine.next(Lookup::State(0), ack), Next::Modify(1));
        assert_eq!(machine.next(Lookup::State(1), rst), Next::Forget);
    }

    #[test]
    fn mistakes_are_shown_where_they_are() {
        for (from, to, message) in [
            (
                "\"open\" } }",
                "\"opne\" } }",
                "7:26: there is no state \"opne\"; the states are opening",
            ),
            ("go =", "goto =", "8:9: expected when, open, open_new, go, if or add, got \"goto\""),
            ("[\"closed\"]", "[\"close\"]", "3:13: there is no state \"close\""),
            (
                "[events]",
                "[event]",
                "5:2: expected states, terminal, timeouts or events, got \"event\"",
            ),
            ("{ opening =", "{ start =", "7:16: there is no state \"start\""),
            (
                "\"closed\"]\nterm",
                "\"closed\", \"open\"]\nterm",
                "2:40: the state \"open\" is named twice",
            ),
            ("syn = { open = \"opening\" }", "syn = {}", "no event opens a flow"),
            ("go = \"closed\"", "add = \"x\"", "8:15: expected a whole number"),
            ("go = \"closed\"", "go = \"open\", add = 1", "8:1: on \"rst\""),
            ("rst =", "rst", "8:"),
        ] {
            let text = TCP.replace(from, to);
            assert_ne!(text, TCP, "{from}");
            let why = read(&text).unwrap_err().at(&text);
            assert!(why.contains(message), "{from}: {why}");
        }
    }

    const UDP: &str = include_str!("../../../../examples/machines/udp-without-reply.toml");
    const HANDSHAKE: &str = include_str!("../../../../examples/machines/tcp-handshake.toml");

    #[test]
    fn the_shipped_machines_run_over_packets() {
        for text in [UDP, HANDSHAKE] {
            let definition = read(text).and_then(|read| read.definition("shipped".to_owned()));
            let definition = definition.map_err(|why| why.at(text)).unwrap();
            assert_eq!(definition.timeouts[0], 5);
        }
        let events = read(HANDSHAKE).unwrap().definition(String::new()).unwrap().events;
        let numbers: Vec<_> = events.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4], "in the order of the file");
        let machine = read(HANDSHAKE).unwrap().machine;
        assert_eq!(machine.events()[..2], ["refused", "syn"]);
    }

    #[test]
    fn mistakes_about_packets_are_shown_where_they_are() {
        for (from, to, message) in [
            ("\"opener\"", "\"sender\"", "expected \"opener\" or \"responder\""),
            ("protocol = \"udp\"", "protocol = \"upd\"", "there is no protocol \"upd\""),
            ("protocol =", "proto =", "got \"proto\""),
            ("asked = 5", "asked = 0", "expected a number of seconds from 1 to 86400"),
            ("asked = 5", "aksed = 5", "there is no state \"aksed\""),
            ("protocol = \"udp\", ", "port = 70000, ", "expected a port"),
            ("protocol = \"udp\", ", "flags = \"SX\", ", "expected TCP flags"),
            ("protocol = \"udp\", ", "size = \"9-3\", ", "expected a number of bytes"),
        ] {
            let text = UDP.replacen(from, to, 1);
            assert_ne!(text, UDP, "{from}");
            let why = read(&text).unwrap_err().at(&text);
            assert!(why.contains(message), "{from}: {why}");
            assert!(why.lines().nth(2).is_some_and(|marks| marks.contains('^')), "{why}");
        }
        let why = read(TCP).unwrap().definition(String::new()).unwrap_err().at(TCP);
        assert!(why.starts_with("6:1: this event has no packets"), "{why}");
    }

    #[test]
    fn a_machine_over_packets_has_at_most_256_events() {
        let text = |events: usize| {
            let one = |number| format!("e{number} = {{ when = {{ port = [] }}, open = \"a\" }}\n");
            let events: String = (0..events).map(one).collect();
            format!("states = [\"a\"]\n[events]\n{events}")
        };
        let most = text(EVENTS_MAX);
        assert!(read(&most).unwrap().definition(String::new()).is_ok());
        let more = text(EVENTS_MAX + 1);
        let why = read(&more).unwrap().definition(String::new()).unwrap_err().at(&more);
        let expected = "259:1: 257 events are too many; over packets, use at most 256";
        assert!(why.starts_with(expected), "{why}");
    }

    #[test]
    fn a_list_of_ports_of_any_length_is_a_set() {
        let list: Vec<String> = (0..200_000).map(|number| (number % 400).to_string()).collect();
        let whole = |ports: &str| {
            let event = format!("e = {{ when = {{ port = {ports} }}, open = \"a\" }}");
            let text = format!("states = [\"a\"]\n[events]\n{event}\n");
            let mut events = read(&text).unwrap().definition(String::new()).unwrap().events;
            events.remove(0).0.ports
        };
        assert_eq!(whole(&format!("[{}]", list.join(","))), whole("\"0-399\""));
        assert_eq!(whole("[]"), whole("\"0-65535\""), "an empty list means all ports");
    }

    #[test]
    fn a_mistake_in_a_line_of_any_length_is_shown_in_a_short_message() {
        for length in [10, 99, 65_535, 65_536, 200_000] {
            for letter in ["x", "ü"] {
                let long = letter.repeat(length);
                for text in [
                    format!("states = [\"{long}\"]\nterminal = [\"{long}\", 5]"),
                    format!("states = [\"a\"] # {long}\nevents = {{ \"{long}\" = 5 }}"),
                    format!("states = [\"a\", \"{long}\"]\n[events]\n{long} = {{ go = 1 }}"),
                    format!("states = [\"a\"]\n[events]\nb = {{ go = \"{long}\" }}"),
                    format!("states = [\"a\"]\n[events]\nb = {{ when = {{ \"{long}\" = 1 }} }}"),
                    format!("{}x", " ".repeat(length)),
                ] {
                    let why = read(&text).unwrap_err().at(&text);
                    assert!(why.lines().count() == 3 && why.contains('^'), "{why}");
                    assert!(why.chars().count() < 500, "{length}: {why}");
                }
            }
        }
    }

    #[test]
    fn a_drawing_has_every_state_and_every_step() {
        let drawing = dot::draw(&read(TCP).unwrap());
        for part in [
            "\"opening\" -> \"open\" [label=\"ack\"]",
            "absent -> \"opening\" [label=\"syn\"]",
            "\"open\" -> \"closed\" [label=\"rst\"]",
            "\"closed\" [shape=doublecircle]",
        ] {
            assert!(drawing.contains(part), "{part} in {drawing}");
        }
        let timed = dot::draw(&read(UDP).unwrap());
        assert!(timed.contains("5 s"), "{timed}");
    }
}
