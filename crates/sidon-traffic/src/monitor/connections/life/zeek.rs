//! The rules of Zeek's `conn_state`, written down again as a reference for tests.
//!
//! Zeek keeps a state of each end, the state before it, and a history of letters: one for each kind
//! of segment, in upper case if the originator sent it. The outcome follows from these and from
//! whether any end sent data. Sequence numbers decide which SYNs open another connection, so this
//! reference takes no second SYN.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Inactive,
    SynSent,
    SynAckSent,
    Partial,
    Established,
    Closed,
    Reset,
}

/// A segment of these flags; `data` is whether it has a payload.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Segment {
    pub(super) syn: bool,
    pub(super) ack: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
    pub(super) data: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) ends: [End; 2],
    before: [End; 2],
    pub(super) history: String,
    data: bool,
}

impl Connection {
    pub(super) fn new() -> Self {
        let ends = [End::Inactive; 2];
        Connection { ends, before: ends, history: String::new(), data: false }
    }

    fn enter(&mut self, side: usize, end: End) {
        if self.ends[side] != end {
            self.before[side] = self.ends[side];
            self.ends[side] = end;
        }
    }

    /// Takes a segment of the originator (side 0) or of the responder (side 1).
    pub(super) fn take(&mut self, side: usize, segment: Segment) {
        use End::{Closed, Established, Inactive, Partial, Reset, SynAckSent, SynSent};
        let Segment { syn, ack, fin, rst, data } = segment;
        let letter = match (syn, fin, rst) {
            (_, true, true) => 'I',
            (true, true, _) | (true, _, true) => 'Q',
            (true, ..) => {
                if ack {
                    'H'
                } else {
                    'S'
                }
            }
            (_, true, _) => 'F',
            (_, _, true) => 'R',
            _ if data => 'D',
            _ => 'A',
        };
        self.history.push(if side == 0 { letter } else { letter.to_ascii_lowercase() });
        self.data |= data && !rst;
        let (own, other) = (self.ends[side], self.ends[1 - side]);
        match own {
            Inactive => {
                if syn && side == 0 {
                    self.enter(0, if ack { SynAckSent } else { SynSent });
                } else if syn {
                    if other == SynSent {
                        self.enter(0, Established);
                    }
                    self.enter(1, Established);
                }
                if fin {
                    self.enter(side, Closed);
                }
                if rst {
                    self.enter(side, Reset);
                }
                let ignored = side == 1 && !data && other == SynSent;
                if self.ends[side] == Inactive && !ignored {
                    let joins = ack && other == Established;
                    self.enter(side, if joins { Established } else { Partial });
                }
            }
            SynSent | SynAckSent => {
                if fin {
                    self.enter(side, Closed);
                }
                if rst {
                    self.enter(side, Reset);
                }
            }
            Established | Partial if rst => self.enter(side, Reset),
            Established | Partial if fin => {
                self.enter(side, Closed);
                if other == Reset && self.before[1 - side] == Closed {
                    self.enter(1 - side, Closed);
                }
            }
            Closed if rst && other != Closed => self.enter(side, Reset),
            _ => {}
        }
    }

    pub(super) fn outcome(&self) -> &'static str {
        use End::{Closed, Established, Inactive, Partial, Reset, SynAckSent, SynSent};
        match self.ends {
            [SynSent | SynAckSent, Reset] => "REJ",
            [Reset, Reset] if !self.data => "REJ",
            [Inactive | Partial, Reset] => "RSTRH",
            [_, Reset] => "RSTR",
            [Reset, Inactive | Partial] => {
                let until = self.history.find('R').unwrap_or(0);
                let first = self.history.starts_with('S');
                let only = !self.history[..until].contains(['H', 'A', 'F', 'G', 'I', 'Q']);
                if first && only { "RSTOS0" } else { "OTH" }
            }
            [Reset, _] => "RSTO",
            [Closed, Closed] => "SF",
            [Closed, Inactive | Partial] => "SH",
            [Closed, _] => "S2",
            [Inactive | Partial, Closed] => "SHR",
            [_, Closed] => "S3",
            [SynSent, Inactive] => "S0",
            [Established, Established] => "S1",
            _ => "OTH",
        }
    }
}
