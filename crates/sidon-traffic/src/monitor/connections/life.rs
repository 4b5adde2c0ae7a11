//! The life of a TCP connection as a state machine of few bits.
//!
//! ```text
//!              SYN                SYN-ACK               ACK
//!   absent ----------> attempt ------------> waiting ---------> open --FIN--> .. --FIN--> closed
//!      |                  | RST                 | RST             | RST
//!      | anything else    v                     v                 v
//!      +-> midstream    refused               reset             reset
//! ```
//! Each end is in one of six states, and with who opened the connection that is all of it. An
//! attempt has an age besides, in rounds of a hand, because it ends by its age and not by silence.
//! Outcomes are named as Zeek names them in `conn_state`, and the ends change as they do there, with
//! what a state of few bits cannot hold left out: sequence numbers, and how much was sent.

use crate::{Packet, TcpFlags, Transport, flow::protocol};
use sidon::state::{
    State,
    machine::{Machine, Rule},
};
use std::collections::HashMap;

/// Outcomes, in the order in which they are counted.
pub const OUTCOMES: [&str; 13] =
    ["S0", "S1", "SF", "REJ", "S2", "S3", "RSTO", "RSTR", "RSTOS0", "RSTRH", "SH", "SHR", "OTH"];

/// Rounds of the hand after which an attempt is over.
pub const AGES: u8 = 5;

/// What one end has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum End {
    Silent,
    Syn,
    /// It speaks in a connection whose beginning was not seen.
    Partial,
    Established,
    Closed,
    Reset,
}

/// What a segment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Syn,
    SynAck,
    Fin,
    Rst,
    Ack,
    Data,
}

const SIGNALS: [Signal; 6] =
    [Signal::Syn, Signal::SynAck, Signal::Fin, Signal::Rst, Signal::Ack, Signal::Data];

/// How many events there are: signals, by which end sends, by whether that looks like the server.
const EVENTS: u16 = 4 * SIGNALS.len() as u16;

/// The event of a packet; `None` unless it is TCP with its flags.
#[inline]
pub fn event(packet: &Packet) -> Option<u16> {
    let Transport::Tcp(tcp) = packet.transport else { return None };
    if packet.flow.protocol() != protocol::TCP {
        return None;
    }
    let flags = tcp.flags;
    let signal = if flags.has(TcpFlags::RST) {
        Signal::Rst
    } else if flags.has(TcpFlags::SYN) {
        if flags.has(TcpFlags::ACK) { Signal::SynAck } else { Signal::Syn }
    } else if flags.has(TcpFlags::FIN) {
        Signal::Fin
    } else if flags.has(TcpFlags::ACK) && packet.payload_len == 0 {
        Signal::Ack
    } else {
        Signal::Data
    };
    let high = !packet.flow.is_ordered();
    let server = packet.flow.source_port() < 1024 && packet.flow.destination_port() >= 1024;
    Some(signal as u16 * 4 + u16::from(high) * 2 + u16::from(server))
}

/// Whether an event is a SYN, the first packet of a connection.
#[inline]
pub fn is_syn(event: u16) -> bool {
    event / 4 == Signal::Syn as u16
}

/// A state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Life {
    /// The one who opened it, and the other.
    ends: [End; 2],
    /// Whether the higher end of the flow opened it.
    turned: bool,
    /// The opener goes on as if it were answered: the answers pass elsewhere.
    one_way: bool,
    /// The opener's reset came right after its SYN.
    gave_up: bool,
    /// Rounds of the hand that an attempt has seen.
    age: u8,
}

/// How a connection ages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ageing {
    /// By its age, whatever is sent.
    Attempt,
    /// By a short silence: it is over, or never came about.
    Short,
    /// By a long silence.
    Long,
}

/// What a packet means for a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    To(Life),
    /// Two connections that cannot be told apart.
    Mixed,
}

impl Life {
    fn new(ends: [End; 2], turned: bool) -> Self {
        Life { ends, turned, one_way: false, gave_up: false, age: 0 }
    }

    /// Whether the higher end of the flow opened the connection.
    pub fn is_turned(&self) -> bool {
        self.turned
    }

    /// The same, as young as it can be.
    pub fn ageless(&self) -> Life {
        Life { age: 0, ..*self }
    }

    /// Whether the opener waits for an answer, or the answer for its confirmation.
    pub fn is_half_open(&self) -> bool {
        match self.ends {
            [End::Syn, End::Silent] => !self.one_way,
            ends => ends == [End::Syn, End::Established],
        }
    }

    /// Whether the handshake was seen and nothing that ends it.
    pub fn is_open(&self) -> bool {
        self.ends == [End::Established; 2]
    }

    /// Whether only one side of it is seen, though the other must have spoken.
    pub fn is_one_way(&self) -> bool {
        self.one_way || self.ends == [End::Silent, End::Established]
    }

    /// Whether the other end refused it.
    pub fn is_refused(&self) -> bool {
        self.ends == [End::Syn, End::Reset]
    }

    /// Whether the opener reset it.
    pub fn is_aborted(&self) -> bool {
        self.ends[0] == End::Reset
    }

    /// Whether it is over, so that a SYN is the next connection of these ends.
    pub fn is_over(&self) -> bool {
        let [one, other] = self.ends;
        let done = |end| matches!(end, End::Closed | End::Reset);
        one == End::Reset || other == End::Reset || (done(one) && done(other))
    }

    /// How it ages.
    pub fn ageing(&self) -> Ageing {
        match self.ends {
            [End::Syn, End::Silent] => Ageing::Attempt,
            [End::Syn, End::Established] | [End::Closed, End::Silent] => Ageing::Short,
            [End::Silent, End::Closed] => Ageing::Short,
            _ if self.is_over() => Ageing::Short,
            _ => Ageing::Long,
        }
    }

    /// The outcome if nothing more comes, as an index of [`OUTCOMES`].
    pub fn outcome(&self) -> usize {
        use End::{Closed, Established, Partial, Reset, Silent, Syn};
        let name = match self.ends {
            [Syn, Reset] => "REJ",
            [Silent | Partial, Reset] => "RSTRH",
            [_, Reset] => "RSTR",
            [Reset, Silent | Partial] if self.gave_up => "RSTOS0",
            [Reset, Silent | Partial] => "OTH",
            [Reset, _] => "RSTO",
            [Closed, Closed] => "SF",
            [Closed, Silent | Partial] => "SH",
            [Closed, _] => "S2",
            [Silent | Partial, Closed] => "SHR",
            [_, Closed] => "S3",
            [Syn, Silent] => "S0",
            [Syn | Established, Established] => "S1",
            _ => "OTH",
        };
        OUTCOMES.iter().position(|outcome| *outcome == name).unwrap_or(OUTCOMES.len() - 1)
    }

    /// The same, a round of the hand later; `None` if it is over then. Attempts alone have an age.
    fn older(self) -> Option<Life> {
        (self.age + 1 < AGES).then_some(Life { age: self.age + 1, ..self })
    }

    /// The first packet of a flow.
    fn first(signal: Signal, high: bool, server: bool) -> Life {
        use End::{Closed, Established, Partial, Reset, Silent, Syn};
        // Who answers was asked; who speaks from a server's port most likely answers.
        let answers = match signal {
            Signal::Syn => false,
            Signal::SynAck => true,
            _ => server,
        };
        let end = match signal {
            Signal::Syn => Syn,
            Signal::SynAck => Established,
            Signal::Fin => Closed,
            Signal::Rst => Reset,
            Signal::Ack | Signal::Data => Partial,
        };
        let ends = if answers { [Silent, end] } else { [end, Silent] };
        Life::new(ends, high != answers)
    }

    fn next(self, signal: Signal, high: bool) -> Step {
        use End::{Closed, Established, Partial, Reset, Silent, Syn};
        if signal == Signal::Syn && self.is_over() {
            return Step::To(Life::new([Syn, Silent], high));
        }
        let side = usize::from(high != self.turned);
        let (own, other) = (self.ends[side], self.ends[1 - side]);
        let mut next = self;
        let own = match (own, signal) {
            (Silent, Signal::Syn) if side == 1 && other == Syn => return Step::Mixed,
            (Silent, Signal::Syn) if side == 0 => Syn,
            (Silent, Signal::SynAck) if side == 0 => Syn,
            (Silent, Signal::Syn | Signal::SynAck) => Established,
            (Silent, Signal::Fin) => Closed,
            (Silent, Signal::Rst) => Reset,
            // Some acknowledge a SYN before they answer it.
            (Silent, Signal::Ack) if side == 1 && other == Syn => Silent,
            (Silent, _) if other == Established => Established,
            (Silent, _) => Partial,
            (Syn, Signal::Fin) => Closed,
            (Syn, Signal::Rst) if other == Reset => Syn,
            (Syn, Signal::Rst) => {
                next.gave_up = other == Silent;
                Reset
            }
            (Syn, Signal::Ack | Signal::Data) if other == Silent => {
                next.one_way = true;
                Syn
            }
            (Syn, Signal::Ack | Signal::Data) if other != Reset => Established,
            (Partial, Signal::Syn) if other == Silent => Syn,
            (Established | Partial, Signal::Fin) => Closed,
            (Established | Partial, Signal::Rst) => {
                if side == 1 && other == Syn {
                    // It had answered before: not refused but reset.
                    next.ends[0] = Established;
                }
                Reset
            }
            (Closed, Signal::Rst) if other != Closed => Reset,
            (own, _) => own,
        };
        next.ends[side] = own;
        if next.ends[1] != Silent || own == Closed || own == Reset {
            next.one_way = false;
        }
        if next.ends != [Syn, Silent] {
            next.age = 0;
        }
        Step::To(next)
    }
}

/// The machine, and what its states mean.
#[derive(Debug, Clone)]
pub struct Lives {
    /// The machine of all connections.
    pub machine: Machine,
    /// What each state means.
    pub lives: Vec<Life>,
    /// Where the hand takes a state; `None` if it is over.
    pub older: Vec<Option<State>>,
}

impl Lives {
    /// All states that packets and the hand can lead to, from no state on.
    pub fn new() -> Self {
        let mut numbers: HashMap<Life, State> = HashMap::new();
        let mut lives: Vec<Life> = Vec::new();
        let mut number = |life: Life, lives: &mut Vec<Life>| {
            *numbers.entry(life).or_insert_with(|| {
                lives.push(life);
                lives.len() as State - 1
            })
        };
        let parts =
            |event: u16| (SIGNALS[usize::from(event / 4)], event / 2 % 2 == 1, event % 2 == 1);
        let mut opens = Vec::new();
        for event in 0..EVENTS {
            let (signal, high, server) = parts(event);
            opens.push(number(Life::first(signal, high, server), &mut lives));
        }
        let (mut steps, mut older, mut at) = (Vec::new(), Vec::new(), 0);
        while at < lives.len() {
            let life = lives[at];
            for event in 0..EVENTS {
                let (signal, high, _) = parts(event);
                let to = match life.next(signal, high) {
                    Step::To(to) => Some(number(to, &mut lives)),
                    Step::Mixed => None,
                };
                steps.push((at, event, to));
            }
            let next = if life.ageing() == Ageing::Attempt { life.older() } else { None };
            older.push(next.map(|life| number(life, &mut lives)));
            at += 1;
        }
        let names: Vec<String> = lives.iter().map(|life| format!("{life:?}")).collect();
        let mut rules: Vec<Vec<Rule<'_>>> =
            opens.iter().map(|&state| vec![Rule::Open(&names[usize::from(state)])]).collect();
        for (at, event, to) in steps {
            let rules = &mut rules[usize::from(event)];
            match to {
                Some(to) if usize::from(to) == at => {}
                Some(to) => rules.push(Rule::If(&names[at], &names[usize::from(to)])),
                None => rules.push(Rule::Mix(&names[at])),
            }
        }
        let states: Vec<&str> = names.iter().map(String::as_str).collect();
        let events: Vec<String> = (0..EVENTS).map(|event| format!("{:?}", parts(event))).collect();
        let events: Vec<(&str, &[Rule<'_>])> =
            events.iter().map(String::as_str).zip(rules.iter().map(Vec::as_slice)).collect();
        let machine = Machine::new(&states, &[], &events)
            .expect("every rule names states that were numbered, and each pair once");
        Lives { machine, lives, older }
    }

    /// What a state means.
    #[inline]
    pub fn of(&self, state: State) -> &Life {
        &self.lives[usize::from(state)]
    }
}

impl Default for Lives {
    fn default() -> Self {
        Lives::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::{Lookup, ops::Next};

    /// The outcome of segments: `>` from the opener's side, `<` from the other.
    fn outcome(text: &str) -> &'static str {
        let lives = Lives::new();
        let mut now = Lookup::Absent;
        for segment in text.split(' ') {
            let (side, flags) = segment.split_at(1);
            let signal = match flags {
                "S" => Signal::Syn,
                "S." => Signal::SynAck,
                "F" => Signal::Fin,
                "R" => Signal::Rst,
                "." => Signal::Ack,
                "P" => Signal::Data,
                _ => unreachable!(),
            };
            let server = side == "<";
            let event = signal as u16 * 4 + u16::from(server) * 2 + u16::from(server);
            now = match lives.machine.next(now, event) {
                Next::Insert(_) if now != Lookup::Absent => return "mixed",
                Next::Insert(state) | Next::Modify(state) => Lookup::State(state),
                _ => now,
            };
        }
        let Lookup::State(state) = now else { unreachable!("the first segment opens") };
        assert!(!lives.of(state).is_turned(), "{text}");
        OUTCOMES[lives.of(state).outcome()]
    }

    #[test]
    fn every_outcome_has_its_segments() {
        for (text, expected) in [
            (">S", "S0"),
            (">S >S >S", "S0"),
            (">S >. >P", "S0"),
            (">S <S.", "S1"),
            (">S <S. >. <P >.", "S1"),
            (">S <S. >. >F <. <F >.", "SF"),
            (">S <S. >. >F <F >R", "SF"),
            (">S <R", "REJ"),
            (">S <R >R", "REJ"),
            (">S <S. >. >F", "S2"),
            (">S <S. >. <F", "S3"),
            (">S <S. >. >R", "RSTO"),
            (">S <S. >R", "RSTO"),
            (">S <S. >. >F <R", "RSTR"),
            (">S <S. <R", "RSTR"),
            (">S >R", "RSTOS0"),
            ("<S. <R", "RSTRH"),
            ("<R", "RSTRH"),
            (">S >. >F", "SH"),
            (">F <.", "SH"),
            ("<S. <P <F", "SHR"),
            ("<S. >. >P <P >F <F", "SF"),
            ("<S.", "OTH"),
            (">P <P >.", "OTH"),
            (">P <. >F <F", "SF"),
            (">R", "OTH"),
            (">S <S. >. >F <F >S", "S0"),
            (">S <S", "mixed"),
        ] {
            assert_eq!(outcome(text), expected, "{text}");
        }
    }

    #[test]
    fn the_states_fit_into_seven_bits_and_attempts_end_by_age() {
        let lives = Lives::new();
        // Values: the states, so many flows of a shared cell, and one that no cell has.
        let values = lives.lives.len() + super::super::SHARED as usize + 1;
        assert!(values <= 128, "{values}");
        for (state, life) in lives.lives.iter().enumerate() {
            let mut rounds = 0;
            let mut at = Some(state as State);
            while let Some(next) = at.and_then(|at| lives.older[usize::from(at)]) {
                assert_eq!(lives.of(next).outcome(), life.outcome());
                rounds += 1;
                at = Some(next);
            }
            let attempt = life.ageing() == Ageing::Attempt;
            assert_eq!(rounds, if attempt { AGES - 1 - life.age } else { 0 }, "{life:?}");
        }
    }
}
