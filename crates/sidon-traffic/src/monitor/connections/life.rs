//! The life of a TCP connection as a state machine of few bits.
//!
//! ```text
//!              SYN                SYN-ACK               ACK
//!   absent ----------> attempt ------------> waiting ---------> open --FIN--> .. --FIN--> closed
//!      |                  | RST                 | RST             | RST
//!      | anything else    v                     v                 v
//!      +-> midstream    refused               reset             reset
//! ```
//! A state holds the states of both ends, one of six each, which end opened the connection, and two
//! flags. A third flag says whether a SYN or SYN-ACK named the opener or the ports did. An attempt
//! also has an age in rounds of its timer, because it ends by its age and not by silence. Outcomes
//! have the names of Zeek's `conn_state`, and the ends change state as in Zeek. Zeek's tests of
//! sequence numbers and byte counts are left out: they do not fit in a state of seven bits.

use crate::{Packet, TcpFlags, Transport, flow::protocol, monitor::p2p::ports};
use sidon::state::{Machine, Rule, State};
use std::{collections::HashMap, sync::LazyLock};

/// Outcomes, in the order in which they are counted.
pub const OUTCOMES: [&str; 13] =
    ["S0", "S1", "SF", "REJ", "S2", "S3", "RSTO", "RSTR", "RSTOS0", "RSTRH", "SH", "SHR", "OTH"];

/// Timer rounds after which an attempt is over.
pub const AGES: u8 = 5;

/// The state of one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum End {
    Silent,
    Syn,
    /// The end sends in a connection whose handshake was not captured.
    Partial,
    Established,
    Closed,
    Reset,
}

/// The meaning of a TCP segment, from its flags and payload length.
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

/// The number of events: signals, times two senders, times whether the sender's port is registered
/// and the other is not.
const EVENTS: u16 = 4 * SIGNALS.len() as u16;

/// The event of a packet; `None` unless the packet is TCP and its flags were captured.
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
    let server = ports::is_registered(packet.flow.source_port())
        && !ports::is_registered(packet.flow.destination_port());
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
    /// The states of the opener and of the responder.
    ends: [End; 2],
    /// Whether the higher end of the flow key opened the connection.
    turned: bool,
    /// Whether a SYN or SYN-ACK named the opener. Otherwise the opener is a guess.
    by_syn: bool,
    /// Whether the opener sent more after its SYN though no answer was captured.
    one_way: bool,
    /// Whether the opener reset the connection before any answer.
    gave_up: bool,
    /// Timer rounds since the start of an attempt.
    age: u8,
}

/// How a connection ages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ageing {
    /// By age, even if the ends send packets.
    Attempt,
    /// By a short silence: the connection is over or was never established.
    Short,
    /// By a long silence: every other connection.
    Long,
}

/// The effect of a packet on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    To(Life),
    /// Two connections that cannot be distinguished.
    Mixed,
}

impl Life {
    fn new(ends: [End; 2], turned: bool, by_syn: bool) -> Self {
        Life { ends, turned, by_syn, one_way: false, gave_up: false, age: 0 }
    }

    /// Whether the higher end of the flow opened the connection.
    pub fn is_turned(&self) -> bool {
        self.turned
    }

    /// Whether a SYN or SYN-ACK named the opener. Otherwise the opener is a guess.
    pub fn is_by_syn(&self) -> bool {
        self.by_syn
    }

    /// This state with age 0.
    pub fn ageless(&self) -> Life {
        Life { age: 0, ..*self }
    }

    /// Whether the handshake is incomplete: the SYN is unanswered, or the SYN-ACK unacknowledged.
    pub fn is_half_open(&self) -> bool {
        match self.ends {
            [End::Syn, End::Silent] => !self.one_way,
            ends => ends == [End::Syn, End::Established],
        }
    }

    /// Whether the handshake was captured, and no FIN or RST.
    pub fn is_open(&self) -> bool {
        self.ends == [End::Established; 2]
    }

    /// Whether only one side was captured, though the other must have sent packets.
    pub fn is_one_way(&self) -> bool {
        self.one_way || self.ends == [End::Silent, End::Established]
    }

    /// Whether the responder refused the connection.
    pub fn is_refused(&self) -> bool {
        self.ends == [End::Syn, End::Reset]
    }

    /// Whether the opener reset the connection.
    pub fn is_aborted(&self) -> bool {
        self.ends[0] == End::Reset
    }

    /// Whether the connection is over. A further SYN then opens a new connection.
    pub fn is_over(&self) -> bool {
        let [one, other] = self.ends;
        let done = |end| matches!(end, End::Closed | End::Reset);
        one == End::Reset || other == End::Reset || (done(one) && done(other))
    }

    /// The rule by which the connection expires.
    pub fn ageing(&self) -> Ageing {
        match self.ends {
            [End::Syn, End::Silent] => Ageing::Attempt,
            [End::Syn, End::Established] | [End::Closed, End::Silent] => Ageing::Short,
            [End::Silent, End::Closed] => Ageing::Short,
            _ if self.is_over() => Ageing::Short,
            _ => Ageing::Long,
        }
    }

    /// The outcome if no further packet comes, as an index of [`OUTCOMES`].
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

    /// This state one timer round later; `None` if the attempt is then over. Only attempts have an
    /// age.
    fn older(self) -> Option<Life> {
        (self.age + 1 < AGES).then_some(Life { age: self.age + 1, ..self })
    }

    /// This state after a SYN or SYN-ACK named the opener, which was a guess before.
    fn opened_by(mut self, turned: bool) -> Life {
        if self.turned != turned {
            self.ends.reverse();
        }
        Life { turned, by_syn: true, ..self }
    }

    /// One state for all states of a finished connection with the same outcome, as far as later
    /// packets cannot change it. This keeps the states within seven bits.
    fn reduced(mut self) -> Life {
        if self.is_over() {
            for end in &mut self.ends {
                if *end == End::Silent {
                    *end = End::Partial;
                }
            }
            if self.ends == [End::Reset; 2] {
                self.ends[0] = End::Closed;
            }
            self.gave_up &= self.ends == [End::Reset, End::Partial];
        }
        self
    }

    /// The state after the first packet of a flow.
    fn first(signal: Signal, high: bool, server: bool) -> Life {
        use End::{Closed, Established, Partial, Reset, Silent, Syn};
        // The sender of a SYN-ACK is the responder. Without a handshake, guess: a sender at a
        // registered port is, if the other port is not registered.
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
        let by_syn = matches!(signal, Signal::Syn | Signal::SynAck);
        Life::new(ends, high != answers, by_syn).reduced()
    }

    fn next(self, signal: Signal, high: bool) -> Step {
        use End::{Closed, Established, Partial, Reset, Silent, Syn};
        if signal == Signal::Syn && self.is_over() {
            return Step::To(Life::new([Syn, Silent], high, true));
        }
        let mut next = match signal {
            Signal::Syn if !self.by_syn => self.opened_by(high),
            Signal::SynAck if !self.by_syn => self.opened_by(!high),
            _ => self,
        };
        let side = usize::from(high != next.turned);
        let (own, other) = (next.ends[side], next.ends[1 - side]);
        let own = match (own, signal) {
            (Silent, Signal::Syn) if side == 1 && other == Syn => return Step::Mixed,
            (Silent, Signal::Syn) if side == 0 => Syn,
            (Silent, Signal::SynAck) if side == 0 => Syn,
            (Silent, Signal::Syn | Signal::SynAck) => Established,
            (Silent, Signal::Fin) => Closed,
            (Silent, Signal::Rst) => Reset,
            // Some responders acknowledge a SYN before they send the SYN-ACK.
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
            // The SYN-ACK crossed the opener's reset.
            (Partial, Signal::SynAck) if side == 1 && other == Reset => Established,
            (Established | Partial, Signal::Fin) => Closed,
            (Established | Partial, Signal::Rst) => {
                if side == 1 && other == Syn {
                    // The responder had answered, so the connection is reset and not refused.
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
        Step::To(next.reduced())
    }
}

/// The machine, and the meaning of its states.
#[derive(Debug, Clone)]
pub struct Lives {
    /// The machine for all connections.
    pub machine: Machine,
    /// The meaning of each state.
    pub lives: Vec<Life>,
    /// Each state one timer round later; `None` if it is no attempt or the attempt is then over.
    pub older: Vec<Option<State>>,
}

/// Computed once: engines, snapshots and plans need it many times.
static ALL: LazyLock<Lives> = LazyLock::new(Lives::compute);

impl Lives {
    /// All states that packets and the timer can reach from the absent state, with their numbers.
    pub fn new() -> Self {
        ALL.clone()
    }

    fn compute() -> Self {
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

    /// The meaning of a state.
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
    use sidon::{Lookup, state::Next};

    /// The outcome of segments: `>` marks one from the opener's side, `<` one from the other.
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
            (">S >R <S.", "RSTO"),
            ("<R <R", "RSTRH"),
            (">S <S. >. >R <R", "RSTR"),
            (">S <S. >. >F <F >S", "S0"),
            (">S <S", "mixed"),
        ] {
            assert_eq!(outcome(text), expected, "{text}");
        }
    }

    #[test]
    fn the_states_fit_into_seven_bits_and_attempts_end_by_age() {
        let lives = Lives::new();
        // Values of a cell: one per state, one per number of flows that share a cell, one never
        // used.
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
