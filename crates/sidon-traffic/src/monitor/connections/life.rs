//! The life of a TCP connection as a state machine of few bits.
//!
//! ```text
//!              SYN                SYN-ACK               ACK
//!   absent ----------> attempt ------------> waiting ---------> open --FIN--> .. --FIN--> closed
//!      |                  | RST                 | RST             | RST
//!      | anything else    v                     v                 v
//!      +-> midstream    refused               reset             reset
//! ```
//! A state holds the states of both ends, one of seven each, which end opened the connection, and a
//! note about the opener. A flag says whether a SYN or SYN-ACK named the opener or the ports did. An
//! attempt also has an age in rounds of its timer, because it ends by its age and not by silence.
//!
//! Outcomes have the names of Zeek's `conn_state`, and the ends change state as in Zeek. Zeek compares
//! sequence numbers and counts bytes; a state of seven bits holds neither. This machine therefore
//! decides by the ends alone whether a SYN opens another connection:
//!
//! | SYN from | connection | Zeek, usually | here |
//! |---|---|---|---|
//! | the opener | attempted, answered, refused or open | the number is that of the first SYN: a copy | a copy |
//! | the opener | anything else | another number: a new connection | a new connection |
//! | the responder | any | another number: a new connection | a new connection |
//!
//! A SYN-ACK from the sender of an unanswered SYN belongs to another connection with the same
//! fingerprint: both become don't-knows.

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
    /// The end has sent a FIN.
    Closed,
    Reset,
    /// The end has sent a FIN and then a RST.
    Aborted,
}

/// A note about the opener. `WentOn` may also be about the responder, if its opener was not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Note {
    Nothing,
    /// The opener acknowledged an answer that was not captured. A forged sender does that too.
    Acked,
    /// The end sent more than a handshake, though no packet of the other end was captured.
    WentOn,
    /// The opener reset the connection before any answer.
    GaveUp,
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

/// The number of events: signals, times two senders, times whether the ports say that the sender is
/// the responder.
const EVENTS: u16 = 4 * SIGNALS.len() as u16;

/// The event of a packet; `None` unless the packet is TCP and its flags were captured.
#[inline]
pub fn event(packet: &Packet) -> Option<u16> {
    let Transport::Tcp(tcp) = packet.transport else { return None };
    if packet.flow.protocol() != protocol::TCP {
        return None;
    }
    let flags = tcp.flags;
    let (syn, ack) = (flags.has(TcpFlags::SYN), flags.has(TcpFlags::ACK));
    let signal = if flags.has(TcpFlags::RST) {
        Signal::Rst
    } else if flags.has(TcpFlags::FIN) {
        // A SYN with a FIN opens nothing that could be answered.
        Signal::Fin
    } else if syn {
        if ack { Signal::SynAck } else { Signal::Syn }
    } else if packet.payload_len == 0 {
        Signal::Ack
    } else {
        Signal::Data
    };
    let high = !packet.flow.is_ordered();
    // The sender of a SYN is no responder, whatever its port. Clients may get a registered port of
    // 1024 or more by chance, so a port below 1024 is the better sign.
    let sign = |port: u16| match port {
        1..1024 => 2,
        _ => u8::from(ports::is_registered(port)),
    };
    let (own, other) = (sign(packet.flow.source_port()), sign(packet.flow.destination_port()));
    let server = (ack || !syn) && own > other;
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
    note: Note,
    /// Timer rounds since the start of an attempt.
    age: u8,
}

/// How a connection ages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ageing {
    /// By age, even if the ends send packets.
    Attempt,
    /// By a silence longer than the gaps between repeated SYN-ACKs: the opener has not confirmed.
    Answered,
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
        Life { ends, turned, by_syn, note: Note::Nothing, age: 0 }
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

    /// Whether the state is that of a first SYN. A packet changes a stored connection to it only if
    /// it opens another one.
    pub fn is_new(&self) -> bool {
        *self == Life { turned: self.turned, ..Life::new([End::Syn, End::Silent], false, true) }
    }

    /// Whether the handshake is incomplete: the SYN is unanswered, or the SYN-ACK unacknowledged.
    pub fn is_half_open(&self) -> bool {
        match self.ends {
            [End::Syn, End::Silent] => self.note != Note::WentOn,
            ends => ends == [End::Syn, End::Established],
        }
    }

    /// Whether the handshake was captured, and no FIN or RST.
    pub fn is_open(&self) -> bool {
        self.ends == [End::Established; 2]
    }

    /// Whether a packet of the responder was captured, other than an ACK before the handshake.
    pub fn is_answered(&self) -> bool {
        self.ends[1] != End::Silent
    }

    /// Whether one end sent more than a handshake, though no packet of the other end was captured.
    pub fn is_one_way(&self) -> bool {
        self.note == Note::WentOn
    }

    /// Whether the responder refused the connection.
    pub fn is_refused(&self) -> bool {
        self.ends == [End::Syn, End::Reset]
    }

    /// Whether the opener reset the connection.
    pub fn is_aborted(&self) -> bool {
        self.ends[0] == End::Reset
    }

    /// Whether the connection is over.
    pub fn is_over(&self) -> bool {
        let is_reset = |end| matches!(end, End::Reset | End::Aborted);
        self.ends == [End::Closed; 2] || self.ends.into_iter().any(is_reset)
    }

    /// The rule by which the connection expires.
    pub fn ageing(&self) -> Ageing {
        match self.ends {
            [End::Syn, End::Silent] => Ageing::Attempt,
            [End::Syn, End::Established] => Ageing::Answered,
            // Captured from the middle: the capture began when the connection was about to end.
            [End::Closed, End::Silent | End::Partial] => Ageing::Short,
            [End::Silent | End::Partial, End::Closed] => Ageing::Short,
            _ if self.is_over() => Ageing::Short,
            _ => Ageing::Long,
        }
    }

    /// The outcome if no further packet comes, as an index of [`OUTCOMES`].
    pub fn outcome(&self) -> usize {
        use End::{Aborted, Closed, Established, Partial, Reset, Silent, Syn};
        let name = match self.ends {
            [Syn, Reset | Aborted] => "REJ",
            [Silent | Partial, Reset | Aborted] => "RSTRH",
            [_, Reset | Aborted] => "RSTR",
            [Reset, Silent | Partial] if self.note == Note::GaveUp => "RSTOS0",
            [Reset | Aborted, Silent | Partial] => "OTH",
            [Reset | Aborted, _] => "RSTO",
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

    /// This state after a SYN-ACK named the opener, which was a guess before.
    fn opened_by(mut self, turned: bool) -> Life {
        if self.turned != turned {
            self.ends.reverse();
        }
        Life { turned, by_syn: true, ..self }
    }

    /// One state for all states with the same outcome, as far as later packets cannot change it. Some
    /// reset states forget that a SYN named the opener. This keeps the states within seven bits.
    fn reduced(mut self) -> Life {
        use End::{Aborted, Closed, Established, Partial, Reset, Silent, Syn};
        let holds = match self.note {
            Note::Nothing => true,
            Note::Acked => self.ends == [Syn, Silent],
            Note::WentOn => matches!(self.ends, [Syn, Silent] | [Silent, Established]),
            Note::GaveUp => matches!(self.ends, [Reset, Silent | Partial]),
        };
        if !holds {
            self.note = Note::Nothing;
        }
        if self.ends != [Syn, Silent] {
            self.age = 0;
        }
        self.ends = match self.ends {
            [Partial, Reset] => [Silent, Reset],
            [Established | Reset | Aborted, Reset] => [Closed, Reset],
            [Closed | Reset | Aborted, Aborted] => [Closed, Reset],
            [Reset, Established] | [Aborted, Closed] => [Reset, Closed],
            ends => ends,
        };
        let names = |end: &End| matches!(end, Syn | Established);
        let forgets = matches!(
            self.ends,
            [Silent | Partial, Reset | Aborted] | [Reset | Aborted, Silent | Partial]
        );
        let named = self.note == Note::GaveUp || self.ends.iter().any(names);
        self.by_syn = named || self.by_syn && !forgets;
        self
    }

    /// The state after the first packet of a flow.
    fn first(signal: Signal, high: bool, server: bool) -> Life {
        use End::{Closed, Established, Partial, Reset, Silent, Syn};
        // The sender of a SYN-ACK is the responder. Without a handshake, the ports are a guess.
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

    /// The state after a SYN; see the table on top.
    fn after_syn(self, high: bool) -> Life {
        use End::{Aborted, Established, Partial, Reset, Silent, Syn};
        let by_opener = high == self.turned;
        match self.ends {
            [Syn, Silent | Established | Partial | Reset | Aborted] if by_opener => self,
            [Established, Established] if by_opener => self,
            // The SYN-ACK overtook the SYN.
            [Silent, Established] if by_opener && self.note == Note::Nothing => {
                Life { ends: [Syn, Established], ..self }
            }
            _ => Life::new([Syn, Silent], high, true),
        }
    }

    fn next(self, signal: Signal, high: bool) -> Step {
        use End::{Aborted, Closed, Established, Partial, Reset, Silent, Syn};
        use Signal::{Ack, Data, Fin, Rst, SynAck};
        if signal == Signal::Syn {
            return Step::To(self.after_syn(high));
        }
        let mut next = match signal {
            SynAck if !self.by_syn && !self.is_over() => self.opened_by(!high),
            _ => self,
        };
        let side = usize::from(high != next.turned);
        let (own, other) = (next.ends[side], next.ends[1 - side]);
        if side == 1 && next.ends == [Syn, Established] && matches!(signal, Fin | Rst) {
            // The responder had answered, so the connection is closed or reset, and not refused.
            next.ends[0] = Established;
        }
        next.ends[side] = match (own, signal) {
            (Syn, SynAck) if other == Silent => return Step::Mixed,
            (Silent, SynAck) if side == 0 => Syn,
            (Silent, SynAck) => Established,
            (Silent, Fin) => Closed,
            (Silent, Rst) => Reset,
            // Some responders acknowledge a SYN before they send the SYN-ACK.
            (Silent, Ack) if side == 1 && other == Syn => Silent,
            (Silent, _) if other == Established => Established,
            (Silent, _) => Partial,
            (Syn, Fin) => Closed,
            (Syn, Rst) if matches!(other, Reset | Aborted) => Syn,
            (Syn, Rst) => {
                if next.note == Note::Nothing && matches!(other, Silent | Partial) {
                    next.note = Note::GaveUp;
                }
                Reset
            }
            (Syn, Ack | Data) if other == Established => Established,
            (Syn, Data) if other == Silent => {
                next.note = Note::WentOn;
                Syn
            }
            (Syn, Ack) if other == Silent && next.note == Note::Nothing => {
                next.note = Note::Acked;
                Syn
            }
            (Established, Ack | Data) if side == 1 && other == Silent => {
                next.note = Note::WentOn;
                Established
            }
            (Established | Partial, Fin) => {
                if other == Aborted {
                    // The RST after the other end's FIN only cleaned up: this end closes, too.
                    next.ends[1 - side] = Closed;
                }
                Closed
            }
            (Established | Partial, Rst) => Reset,
            (Closed, Rst) if other != Closed => Aborted,
            (own, _) => own,
        };
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
mod tests;
#[cfg(test)]
mod zeek;
