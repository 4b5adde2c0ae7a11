//! The packets that trigger an event of a machine.

use crate::{Packet, TcpFlags, Transport};
use std::ops::RangeInclusive;

/// The sender of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The sender of the packet that opened the flow, or that would open it.
    Opener,
    /// The other end.
    Responder,
}

/// The conditions under which a packet triggers an event: all of them must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When {
    /// The protocol number; `None` matches any protocol.
    pub protocol: Option<u8>,
    /// The ports that must contain the source or the destination port.
    pub ports: Ports,
    /// The ports that must contain the source port.
    pub source_ports: Ports,
    /// The ports that must contain the destination port.
    pub destination_ports: Ports,
    /// TCP flags that must be set.
    pub flags: TcpFlags,
    /// TCP flags that must not be set.
    pub without: TcpFlags,
    /// The sender; `None` matches either end.
    pub direction: Option<Direction>,
    /// The range of the payload length in bytes.
    pub payload: RangeInclusive<u32>,
}

impl Default for When {
    /// Conditions that match any packet.
    fn default() -> Self {
        When {
            protocol: None,
            ports: Ports::default(),
            source_ports: Ports::default(),
            destination_ports: Ports::default(),
            flags: TcpFlags::default(),
            without: TcpFlags::default(),
            direction: None,
            payload: 0..=u32::MAX,
        }
    }
}

impl When {
    /// Whether a packet meets all conditions.
    #[inline]
    pub fn fits(&self, packet: &Packet, by_opener: bool) -> bool {
        let flow = &packet.flow;
        let flags = match packet.transport {
            Transport::Tcp(tcp) => tcp.flags.has(self.flags) && !tcp.flags.any(self.without),
            _ => self.flags.0 == 0 && self.without.0 == 0,
        };
        let direction = match self.direction {
            None => true,
            Some(Direction::Opener) => by_opener,
            Some(Direction::Responder) => !by_opener,
        };
        let (from, to) = (flow.source_port(), flow.destination_port());
        self.protocol.is_none_or(|protocol| protocol == flow.protocol())
            && flags
            && direction
            && (self.ports.contains(from) || self.ports.contains(to))
            && self.source_ports.contains(from)
            && self.destination_ports.contains(to)
            && self.payload.contains(&packet.payload_len)
    }
}

/// A set of ports: first and last port of each range, in order, with a gap between any two ranges.
/// There are at most 32,768 ranges, and a search compares at most 17 of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports(Vec<[u16; 2]>);

impl Default for Ports {
    /// All ports.
    fn default() -> Self {
        Ports(vec![[0, u16::MAX]])
    }
}

impl FromIterator<RangeInclusive<u16>> for Ports {
    /// The ports of these ranges. Ranges may overlap, in any order.
    fn from_iter<I: IntoIterator<Item = RangeInclusive<u16>>>(ranges: I) -> Self {
        let ranges = ranges.into_iter().filter(|range| !range.is_empty());
        let mut ranges: Vec<_> = ranges.map(|range| [*range.start(), *range.end()]).collect();
        ranges.sort_unstable();
        let mut merged: Vec<[u16; 2]> = Vec::new();
        for [first, last] in ranges {
            match merged.last_mut() {
                Some([_, end]) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push([first, last]),
            }
        }
        Ports(merged)
    }
}

impl Ports {
    /// Whether a port is in the set.
    #[inline]
    pub fn contains(&self, port: u16) -> bool {
        let after = self.0.partition_point(|&[first, _]| first <= port);
        after.checked_sub(1).is_some_and(|at| port <= self.0[at][1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::Rng;

    #[test]
    fn ports_are_those_of_the_ranges_in_few_ranges() {
        let mut rng = Rng::seeded(5);
        let mut lists = vec![
            vec![],
            vec![0..=0],
            vec![65_535..=65_535, 0..=0],
            vec![0..=65_535, 7..=9],
            vec![std::ops::RangeInclusive::new(5, 4), 9..=9],
            (0..=65_535).step_by(2).map(|port| port..=port).collect(),
            vec![1..=1; 240_000],
            (0..240_000).map(|number| (number % 400) as u16).map(|port| port..=port).collect(),
        ];
        for ranges in 1..200 {
            let range = |_| {
                let first = rng.next_u64() as u16;
                first..=first.saturating_add((rng.next_u64() % 1_000) as u16)
            };
            lists.push((0..ranges).map(range).collect());
        }
        for list in lists {
            let mut exact = vec![false; 65_536];
            for range in &list {
                range.clone().for_each(|port| exact[usize::from(port)] = true);
            }
            let ports: Ports = list.into_iter().collect();
            for port in 0..=u16::MAX {
                assert_eq!(ports.contains(port), exact[usize::from(port)], "{port}");
            }
            let starts = (0..exact.len()).filter(|&at| exact[at] && (at == 0 || !exact[at - 1]));
            assert_eq!(ports.0.len(), starts.count(), "ranges that touch are merged");
        }
        assert!((0..=u16::MAX).all(|port| Ports::default().contains(port)));
    }
}
