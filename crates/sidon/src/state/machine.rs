//! A state machine as a table: the action of every event in every state and for absent flows.
//!
//! States and events have names. A rule defines the action of an event. The paper has three forms:
//! go to a state from any state, go to it from a given state, or add to the number of the state.
//! ```text
//!            | closed  opening  open   | absent    unknown
//!   syn      | opening    .       .    | opening   .            opens a flow
//!   ack      |    .      open     .    |    .      .            if in opening, go to open
//!   rst      | closed  closed  closed  |    .      closed       go to closed, which is terminal
//! ```
//! [`Machine::new`] compiles the rules to such a table, or returns what is wrong with them. A flow
//! that reaches a terminal state is removed. An empty entry of the table changes nothing. Examples
//! are an event that opens no flow, for an absent flow, and a transition that is not valid in the
//! present state. Bonomi et al., SIGCOMM 2006, section 3.

use super::Next;
use super::{STATES_MAX, State};
use crate::answer::Lookup;
use std::{collections::HashMap, fmt};

/// The action of an event.
///
/// ```
/// use sidon::{Lookup, state::{Machine, Next, Rule}};
///
/// let states = ["one", "two", "many"];
/// let machine = Machine::new(&states, &[], &[("packet", &[Rule::Open("one"), Rule::Add(1)])])?;
/// assert_eq!(machine.next(Lookup::Absent, 0), Next::Insert(0));
/// assert_eq!(machine.next(Lookup::State(0), 0), Next::Modify(1));
/// assert_eq!(machine.next(Lookup::State(2), 0), Next::Stay);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule<'a> {
    /// An absent flow is inserted in this state. A stored flow keeps its state, unless another rule
    /// applies.
    Open(&'a str),
    /// As `Open`, for an event that is certainly the first of its flow. If the flow seems to be
    /// stored, then another flow shares its cells, and both become unknown.
    OpenNew(&'a str),
    /// From any state, and from unknown, to this one.
    Go(&'a str),
    /// From the first state to the second.
    If(&'a str, &'a str),
    /// From state `i` to state `i + n`, if that state exists.
    Add(i32),
    /// In this state the event is the first of another flow, and both flows become unknown.
    Mix(&'a str),
}

/// The reason why rules are no machine.
///
/// ```
/// use sidon::state::{Machine, Rule};
///
/// let faulty = Machine::new(&["open"], &[], &[("syn", &[Rule::Open("opne")])]).unwrap_err();
/// assert_eq!(faulty.to_string(), "there is no state \"opne\"");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Faulty {
    /// The number of states or events is not from 1 to 32,768.
    Number {
        /// States or events.
        what: &'static str,
        /// The number given.
        got: usize,
    },
    /// Two states, or two events, have this name.
    Twice {
        /// State or event.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// No state, or no event, has this name.
    Unknown {
        /// State or event.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Two rules lead from one state to different states on the same event.
    Conflict {
        /// The event.
        event: String,
        /// The state, or `absent`.
        state: String,
        /// The states that the two rules lead to.
        to: [String; 2],
    },
    /// No event opens a flow, so the map would stay empty.
    Closed,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Faulty::Number { what, got } => {
                write!(f, "{got} {what}: a machine has from 1 to {STATES_MAX}")
            }
            Faulty::Twice { what, name } => write!(f, "the {what} {name:?} is named twice"),
            Faulty::Unknown { what, name } => write!(f, "there is no {what} {name:?}"),
            Faulty::Conflict { event, state, to: [one, other] } => {
                write!(f, "on {event:?}, {state:?} goes to both {one:?} and {other:?}")
            }
            Faulty::Closed => write!(f, "no event opens a flow"),
        }
    }
}

impl std::error::Error for Faulty {}

/// The action of an event on a flow.
type Cell = Next<State>;

/// A compiled machine. See the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    states: Vec<String>,
    events: Vec<String>,
    terminal: Vec<bool>,
    /// For each event: a cell for each state, then one for absent and one for unknown flows.
    table: Vec<Cell>,
}

impl Machine {
    /// Compiles a machine from its states, the terminal ones among them, and the rules of its
    /// events.
    ///
    /// ```
    /// use sidon::{Lookup, state::{Machine, Next, Rule}};
    ///
    /// let machine = Machine::new(
    ///     &["opening", "open", "closed"],
    ///     &["closed"],
    ///     &[
    ///         ("syn", &[Rule::Open("opening")]),
    ///         ("ack", &[Rule::If("opening", "open")]),
    ///         ("rst", &[Rule::Go("closed")]),
    ///     ],
    /// )?;
    /// let [syn, ack, rst] = ["syn", "ack", "rst"].map(|name| machine.event(name).unwrap());
    /// assert_eq!(machine.next(Lookup::Absent, syn), Next::Insert(0));
    /// assert_eq!(machine.next(Lookup::State(0), ack), Next::Modify(1));
    /// assert_eq!(machine.next(Lookup::State(1), ack), Next::Stay);
    /// assert_eq!(machine.next(Lookup::State(1), rst), Next::Forget);
    /// assert_eq!(machine.next(Lookup::Absent, rst), Next::Stay);
    /// # Ok::<(), sidon::state::Faulty>(())
    /// ```
    pub fn new(
        states: &[&str],
        terminal: &[&str],
        events: &[(&str, &[Rule<'_>])],
    ) -> Result<Self, Faulty> {
        let state_numbers = numbers("state", states.iter().copied())?;
        numbers("event", events.iter().map(|&(name, _)| name))?;
        let find = |name: &str| {
            let unknown = || Faulty::Unknown { what: "state", name: name.to_owned() };
            state_numbers.get(name).copied().ok_or_else(unknown)
        };
        let mut ends = vec![false; states.len()];
        for name in terminal {
            ends[usize::from(find(name)?)] = true;
        }
        let mut machine = Machine {
            states: states.iter().map(|&name| name.to_owned()).collect(),
            events: events.iter().map(|&(name, _)| name.to_owned()).collect(),
            terminal: ends,
            table: vec![Next::Stay; (states.len() + 2) * events.len()],
        };
        let mut opens = false;
        for (event, &(_, rules)) in (0..).zip(events) {
            for &rule in rules {
                opens |= matches!(rule, Rule::Open(_) | Rule::OpenNew(_));
                machine.add(event, rule, &find)?;
            }
        }
        if opens { Ok(machine) } else { Err(Faulty::Closed) }
    }

    /// The names of the states, by number.
    pub fn states(&self) -> &[String] {
        &self.states
    }

    /// The names of the events, by number.
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// The number of an event: its index in [`events`](Self::events).
    pub fn event(&self, name: &str) -> Option<u16> {
        self.events.iter().position(|event| event == name).map(|number| number as u16)
    }

    /// Whether a flow that reaches the state is removed.
    #[doc(hidden)]
    pub fn is_terminal(&self, state: State) -> bool {
        self.terminal.get(usize::from(state)).copied().unwrap_or(false)
    }

    /// The action of an event on a flow whose state is `now`, for
    /// [`transition`](super::Map::transition). `Stay` for an event or a state that the
    /// machine does not have.
    #[inline]
    pub fn next(&self, now: Lookup<State>, event: u16) -> Next<State> {
        let row = self.states.len() + 2;
        let column = match now {
            Lookup::State(state) if usize::from(state) < self.states.len() => usize::from(state),
            Lookup::State(_) => return Next::Stay,
            Lookup::Absent => row - 2,
            Lookup::DontKnow => row - 1,
        };
        self.table.get(usize::from(event) * row + column).copied().unwrap_or(Next::Stay)
    }

    fn add(
        &mut self,
        event: usize,
        rule: Rule<'_>,
        find: &impl Fn(&str) -> Result<State, Faulty>,
    ) -> Result<(), Faulty> {
        let states = self.states.len();
        let (absent, unknown) = (states, states + 1);
        match rule {
            Rule::Open(to) => self.enter(event, absent, Next::Insert(find(to)?))?,
            Rule::OpenNew(to) => {
                let insert = Next::Insert(find(to)?);
                for column in 0..=unknown {
                    self.enter(event, column, insert)?;
                }
            }
            Rule::Go(to) => {
                let to = find(to)?;
                for column in (0..states).chain([unknown]) {
                    self.go(event, column, to)?;
                }
            }
            Rule::If(from, to) => self.go(event, find(from)?.into(), find(to)?)?,
            Rule::Mix(from) => {
                let from = find(from)?;
                self.enter(event, from.into(), Next::Insert(from))?;
            }
            Rule::Add(amount) => {
                for from in 0..states {
                    let to = from as i64 + i64::from(amount);
                    if let Ok(to) = usize::try_from(to)
                        && to < states
                    {
                        self.go(event, from, to as State)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn go(&mut self, event: usize, column: usize, to: State) -> Result<(), Faulty> {
        let ends = self.is_terminal(to);
        self.enter(event, column, if ends { Next::Forget } else { Next::Modify(to) })
    }

    fn enter(&mut self, event: usize, column: usize, next: Cell) -> Result<(), Faulty> {
        let cell = &mut self.table[event * (self.states.len() + 2) + column];
        if *cell == Next::Stay || *cell == next {
            *cell = next;
            return Ok(());
        }
        let other = *cell;
        let name = |next: Cell| match next {
            Next::Insert(to) | Next::Modify(to) | Next::Set(to) => {
                self.states[usize::from(to)].clone()
            }
            Next::Forget => "the end".to_owned(),
            Next::Stay => "itself".to_owned(),
        };
        let state = match self.states.get(column) {
            Some(name) => name.clone(),
            None if column == self.states.len() => "absent".to_owned(),
            None => "unknown".to_owned(),
        };
        let event = self.events[event].clone();
        Err(Faulty::Conflict { event, state, to: [name(other), name(next)] })
    }
}

/// The names and their numbers. An error if there is no name, or if two are equal.
fn numbers<'a>(
    what: &'static str,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> Result<HashMap<&'a str, State>, Faulty> {
    let got = names.len();
    if got == 0 || got > STATES_MAX as usize {
        let what = if what == "state" { "states" } else { "events" };
        return Err(Faulty::Number { what, got });
    }
    let mut all = HashMap::new();
    for (number, name) in (0..).zip(names) {
        if all.insert(name, number).is_some() {
            return Err(Faulty::Twice { what, name: name.to_owned() });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Rule::{Add, Go, If, Open, OpenNew};

    const STATES: [&str; 4] = ["new", "some", "more", "done"];

    fn machine(events: &[(&str, &[Rule<'_>])]) -> Result<Machine, Faulty> {
        Machine::new(&STATES, &["done"], events)
    }

    #[test]
    fn the_three_forms_of_a_transition() {
        let machine = machine(&[
            ("start", &[Open("new")]),
            ("restart", &[Open("new"), Go("new")]),
            ("first", &[OpenNew("some")]),
            ("if", &[If("some", "more"), If("more", "done")]),
            ("add", &[Add(1)]),
            ("back", &[Add(-2)]),
            ("mix", &[Rule::Mix("some")]),
        ])
        .unwrap();
        let row = |event: &str| {
            let event = machine.event(event).unwrap();
            let now = [Lookup::State(0), Lookup::State(1), Lookup::State(2), Lookup::State(3)];
            let mut row: Vec<_> = now.iter().map(|&now| machine.next(now, event)).collect();
            row.push(machine.next(Lookup::Absent, event));
            row.push(machine.next(Lookup::DontKnow, event));
            row
        };
        use Next::{Forget, Insert, Modify, Stay};
        assert_eq!(row("start"), [Stay, Stay, Stay, Stay, Insert(0), Stay]);
        let to_new = [Modify(0), Modify(0), Modify(0), Modify(0), Insert(0), Modify(0)];
        assert_eq!(row("restart"), to_new);
        assert_eq!(row("first"), [Insert(1); 6]);
        assert_eq!(row("if"), [Stay, Modify(2), Forget, Stay, Stay, Stay]);
        assert_eq!(row("add"), [Modify(1), Modify(2), Forget, Stay, Stay, Stay]);
        assert_eq!(row("back"), [Stay, Stay, Modify(0), Modify(1), Stay, Stay]);
        assert_eq!(row("mix"), [Stay, Insert(1), Stay, Stay, Stay, Stay]);
        assert_eq!(machine.next(Lookup::State(0), 99), Stay);
        assert_eq!(machine.next(Lookup::State(99), 0), Stay);
        assert!(machine.is_terminal(3) && !machine.is_terminal(2) && !machine.is_terminal(99));
    }

    #[test]
    fn faults_are_named() {
        type Events<'a> = &'a [(&'a str, &'a [Rule<'a>])];
        let faults: [(Events<'_>, &str); 7] = [
            (&[], "0 events"),
            (&[("a", &[Go("new")])], "no event opens a flow"),
            (&[("a", &[Open("nowhere")])], "no state \"nowhere\""),
            (&[("a", &[If("x", "new")])], "no state \"x\""),
            (&[("a", &[Open("new")]), ("a", &[])], "the event \"a\" is named twice"),
            (&[("a", &[Open("new"), Go("some"), Add(1)])], "goes to both \"some\" and \"more\""),
            (&[("a", &[Open("new"), Open("some")])], "\"absent\" goes to both"),
        ];
        for (events, part) in faults {
            let why = machine(events).unwrap_err().to_string();
            assert!(why.contains(part), "{why}");
        }
        let why = Machine::new(&STATES, &["end"], &[("a", &[Open("new")])]).unwrap_err();
        assert_eq!(why, Faulty::Unknown { what: "state", name: "end".to_owned() });
        let why = Machine::new(&["a", "a"], &[], &[("a", &[Open("a")])]).unwrap_err();
        assert_eq!(why.to_string(), "the state \"a\" is named twice");
    }
}
