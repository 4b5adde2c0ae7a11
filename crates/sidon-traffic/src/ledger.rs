//! Every packet is accounted for.
//!
//! ```text
//! seen = filtered + undecoded (by reason) + decoded
//! ```
//! and what a full structure refused of the decoded ones is listed beside it. The last lines of
//! every report are these, and they add up: [`Ledger::balance`] is their difference.

use crate::packet::Undecoded;

/// What became of the frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Frames that the source gave.
    pub seen: u64,
    /// Frames that the expression did not take.
    pub filtered: u64,
    /// Of those, the ones that it would have taken without their VLAN tags.
    pub behind_tag: u64,
    /// Packets that the monitors were shown.
    pub decoded: u64,
    /// Frames that could not be decoded, by reason; reasons that occurred, in the order in which
    /// they did.
    pub undecoded: Vec<(&'static str, u64)>,
    /// What a monitor could not take in, because a structure was full: what, and how often.
    pub refused: Vec<(&'static str, u64)>,
    /// Questions that a structure could not answer, by monitor.
    pub dont_know: Vec<(&'static str, u64)>,
    /// Bytes on the wire of all frames seen.
    pub wire_bytes: u64,
    /// What a source that is not a file says of itself, by name: what the kernel received and
    /// dropped, datagrams that were not understood or did not come.
    pub source: Vec<(&'static str, u64)>,
}

impl Ledger {
    /// Notes a frame that could not be decoded.
    pub fn undecoded(&mut self, why: Undecoded) {
        note(&mut self.undecoded, why.name(), 1);
    }

    /// Notes so many frames that could not be decoded for a reason of this name.
    pub(crate) fn undecoded_as(&mut self, why: &'static str, times: u64) {
        note(&mut self.undecoded, why, times);
    }

    /// Adds to what a source says of itself.
    pub(crate) fn source_as(&mut self, what: &'static str, times: u64) {
        note(&mut self.source, what, times);
    }

    /// Notes so many refusals of a structure.
    pub fn refused(&mut self, what: &'static str, times: u64) {
        note(&mut self.refused, what, times);
    }

    /// Notes so many questions without an answer.
    pub fn dont_know(&mut self, what: &'static str, times: u64) {
        note(&mut self.dont_know, what, times);
    }

    /// How many frames could not be decoded.
    pub fn undecoded_total(&self) -> u64 {
        self.undecoded.iter().map(|(_, times)| times).sum()
    }

    /// Frames seen less frames accounted for: zero.
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
