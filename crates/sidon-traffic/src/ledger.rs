//! Every packet is accounted for.
//!
//! ```text
//! seen = filtered + undecoded (by reason) + decoded
//! ```
//! Counts of decoded packets that a full structure refused are listed separately, and so are those
//! of packets with a service, by the rule that named it. Every report ends with these lines. They
//! add up: [`Ledger::balance`], their difference, is 0.
//!
//! Every sum stops at [`CEILING`](crate::figure::CEILING), and so do both sides of the equation. A
//! list has at most `NAMES_MAX` names: counts of further names, which only files can bring, are
//! added to `OTHERS`.

use crate::{Timing, monitor::services::RULES, packet::Undecoded};

/// The most names of a list, [`OTHERS`] included.
pub(crate) const NAMES_MAX: usize = 64;
/// The name of the counts that found no room in a list.
pub(crate) const OTHERS: &str = "others";

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

    /// Counts a frame of `bytes` bytes that the source delivered.
    #[inline]
    pub(crate) fn count_seen(&mut self, bytes: u32) {
        self.seen = self.seen.saturating_add(1);
        self.wire_bytes = self.wire_bytes.saturating_add(bytes.into());
    }

    /// Adds the counts of another ledger.
    pub(crate) fn add(&mut self, other: Ledger) {
        let Ledger {
            seen,
            filtered,
            behind_tag,
            decoded,
            services,
            guessed,
            misnamed,
            undecoded,
            refused,
            dont_know,
            late,
            time_jumps,
            time_steps,
            late_ns,
            wire_bytes,
            source,
        } = other;
        for (own, other) in [
            (&mut self.seen, seen),
            (&mut self.filtered, filtered),
            (&mut self.behind_tag, behind_tag),
            (&mut self.decoded, decoded),
            (&mut self.misnamed, misnamed),
            (&mut self.late, late),
            (&mut self.time_jumps, time_jumps),
            (&mut self.time_steps, time_steps),
            (&mut self.wire_bytes, wire_bytes),
        ] {
            *own = own.saturating_add(other);
        }
        let services = self.services.iter_mut().zip(services);
        for (own, other) in services.chain(self.guessed.iter_mut().zip(guessed)) {
            *own = own.saturating_add(other);
        }
        self.late_ns = self.late_ns.max(late_ns);
        for (own, other) in [
            (&mut self.undecoded, undecoded),
            (&mut self.refused, refused),
            (&mut self.dont_know, dont_know),
            (&mut self.source, source),
        ] {
            other.into_iter().for_each(|(name, times)| note(own, name, times));
        }
    }

    /// How many frames could not be decoded.
    pub fn undecoded_total(&self) -> u64 {
        self.undecoded.iter().fold(0, |sum: u64, (_, times)| sum.saturating_add(*times))
    }

    /// Frames seen minus frames accounted for. Always 0.
    pub fn balance(&self) -> i128 {
        let accounted = self.filtered.saturating_add(self.undecoded_total());
        i128::from(self.seen) - i128::from(accounted.saturating_add(self.decoded))
    }
}

fn note(list: &mut Vec<(&'static str, u64)>, name: &'static str, times: u64) {
    if times == 0 {
        return;
    }
    let has_room = list.len() < NAMES_MAX - 1 || name == OTHERS;
    match list.iter_mut().find(|(known, _)| *known == name) {
        Some((_, count)) => *count = count.saturating_add(times),
        None if has_room => list.push((name, times)),
        // The list keeps its last entry for `OTHERS`.
        None => note(list, OTHERS, times),
    }
}

/// The count of a name. It includes that of [`OTHERS`], which may hold counts of this name.
pub(crate) fn times(list: &[(&'static str, u64)], name: &str) -> u64 {
    let counts = list.iter().filter(|(known, _)| [name, OTHERS].contains(known));
    counts.fold(0, |sum: u64, (_, times)| sum.saturating_add(*times))
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
    fn sums_stop_at_the_ceiling_and_still_add_up() {
        let ceiling = crate::figure::CEILING;
        let mut ledger =
            Ledger { seen: ceiling, filtered: 7, decoded: ceiling, ..Ledger::default() };
        ledger.undecoded(Undecoded::Network(0x0806));
        assert_eq!(ledger.balance(), 0);
        ledger.add(ledger.clone());
        ledger.count_seen(u32::MAX);
        assert_eq!((ledger.seen, ledger.filtered, ledger.balance()), (ceiling, 14, 0));
    }

    #[test]
    fn names_without_room_are_counted_together() {
        let mut ledger = Ledger::default();
        let name = |number: usize| -> &'static str { Box::leak(format!("n{number}").into()) };
        (0..100).for_each(|number| ledger.refused(name(number), 1));
        assert_eq!(ledger.refused.len(), NAMES_MAX);
        assert_eq!(ledger.refused.last(), Some(&(OTHERS, 37)));
        ledger.add(ledger.clone());
        assert_eq!(ledger.refused.iter().map(|(_, times)| times).sum::<u64>(), 200);
        // A name that may be among the others is not called zero.
        assert_eq!((times(&ledger.refused, "n3"), times(&ledger.refused, "n99")), (76, 74));
    }

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
