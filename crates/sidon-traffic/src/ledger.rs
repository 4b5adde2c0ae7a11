//! Every packet is accounted for.
//!
//! ```text
//! seen = filtered + undecoded (by reason) + decoded
//! ```
//! Counts of decoded packets that a full structure refused are listed separately, and so are those
//! of packets with a service, by the rule that named it. Every report ends with these lines. They
//! add up: [`Ledger::balance`], their difference, is 0.

use crate::{Timing, monitor::services::RULES, packet::Undecoded};

/// Counts of frames by result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Frames that the source delivered.
    pub seen: u64,
    /// Frames that the filter expression rejected.
    pub filtered: u64,
    /// Filtered frames that the expression would have matched without their VLAN tags.
    pub behind_tag: u64,
    /// Packets that were decoded and passed to the monitors.
    pub decoded: u64,
    /// Decoded packets that have a service, by the rule that named it, in the order of [`RULES`].
    pub services: [u64; RULES.len()],
    /// Bytes and packets whose service is a guess, because no table follows their flow.
    pub guessed: [u64; 2],
    /// Billionths of the expected number of flows whose service is that of another flow.
    pub misnamed: u64,
    /// Frames that could not be decoded, by reason. Lists only reasons that occurred, in the order
    /// of their first frame.
    pub undecoded: Vec<(&'static str, u64)>,
    /// Writes that a full structure refused: the structure's name and the number of refusals.
    pub refused: Vec<(&'static str, u64)>,
    /// Lookups that a structure could not answer, by monitor.
    pub dont_know: Vec<(&'static str, u64)>,
    /// Packets that are older than a packet before them.
    pub late: u64,
    /// The most nanoseconds by which a packet was older than one before it.
    pub late_ns: u64,
    /// Packets whose time disagrees with those of the packets around them.
    pub time_jumps: u64,
    /// Times that the clock of a capture was set back. Later times are shifted forward.
    pub time_steps: u64,
    /// Bytes on the wire of all frames seen.
    pub wire_bytes: u64,
    /// Counters of a source that is not a file, by name: packets that the kernel received and
    /// dropped, datagrams that could not be parsed or were lost.
    pub source: Vec<(&'static str, u64)>,
}

impl Ledger {
    /// Counts a frame that could not be decoded.
    pub fn undecoded(&mut self, why: Undecoded) {
        note(&mut self.undecoded, why.name(), 1);
    }

    /// Counts what was odd about the time of a packet.
    pub(crate) fn timing(&mut self, timing: Timing) {
        let late = match timing {
            Timing::Good => return,
            Timing::Late(late_ns) => late_ns,
            Timing::Jump { late_ns } => {
                self.time_jumps = self.time_jumps.saturating_add(1);
                late_ns
            }
            Timing::SetBack => {
                self.time_steps = self.time_steps.saturating_add(1);
                0
            }
        };
        self.late = self.late.saturating_add(u64::from(late > 0));
        self.late_ns = self.late_ns.max(late);
    }

    /// Counts `times` frames that could not be decoded for reason `why`.
    pub(crate) fn undecoded_as(&mut self, why: &'static str, times: u64) {
        note(&mut self.undecoded, why, times);
    }

    /// Adds `times` to counter `what` of the source.
    pub(crate) fn source_as(&mut self, what: &'static str, times: u64) {
        note(&mut self.source, what, times);
    }

    /// Counts `times` refusals of structure `what`.
    pub fn refused(&mut self, what: &'static str, times: u64) {
        note(&mut self.refused, what, times);
    }

    /// Counts `times` lookups of monitor `what` without an answer.
    pub fn dont_know(&mut self, what: &'static str, times: u64) {
        note(&mut self.dont_know, what, times);
    }

    /// Sets the refusals of structure `what`, which counts them itself.
    pub(crate) fn set_refused(&mut self, what: &'static str, times: u64) {
        set(&mut self.refused, what, times);
    }

    /// Sets the lookups without an answer of monitor `what`, which counts them itself.
    pub(crate) fn set_dont_know(&mut self, what: &'static str, times: u64) {
        set(&mut self.dont_know, what, times);
    }

    /// How many frames could not be decoded.
    pub fn undecoded_total(&self) -> u64 {
        self.undecoded.iter().map(|(_, times)| times).sum()
    }

    /// Frames seen minus frames accounted for. Always 0.
    pub fn balance(&self) -> i128 {
        let accounted = [self.filtered, self.undecoded_total(), self.decoded];
        i128::from(self.seen) - accounted.into_iter().map(i128::from).sum::<i128>()
    }
}

fn note(list: &mut Vec<(&'static str, u64)>, name: &'static str, times: u64) {
    if times == 0 {
        return;
    }
    match list.iter_mut().find(|(known, _)| *known == name) {
        Some((_, count)) => *count = count.saturating_add(times),
        None => list.push((name, times)),
    }
}

fn set(list: &mut Vec<(&'static str, u64)>, name: &'static str, times: u64) {
    list.retain(|(known, _)| *known != name);
    note(list, name, times);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Layer;

    #[test]
    fn reasons_add_up() {
        let mut ledger = Ledger { seen: 4, filtered: 1, decoded: 1, ..Ledger::default() };
        ledger.undecoded(Undecoded::Network(0x0806));
        assert_eq!(ledger.balance(), 1);
        ledger.undecoded(Undecoded::Truncated(Layer::Network));
        ledger.refused("sources", 0);
        assert_eq!(ledger.balance(), 0);
        assert_eq!(ledger.undecoded, [("arp", 1), ("truncated_network", 1)]);
        assert_eq!(ledger.refused, []);
    }
}
