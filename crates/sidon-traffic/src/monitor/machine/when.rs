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
    /// Ranges that must contain the source or the destination port. An empty list matches any port.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Ranges that must contain the source port. An empty list matches any port.
    pub source_ports: Vec<RangeInclusive<u16>>,
    /// Ranges that must contain the destination port. An empty list matches any port.
    pub destination_ports: Vec<RangeInclusive<u16>>,
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
            ports: Vec::new(),
            source_ports: Vec::new(),
            destination_ports: Vec::new(),
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
        let within = |ranges: &[RangeInclusive<u16>], port: u16| {
            ranges.is_empty() || ranges.iter().any(|range| range.contains(&port))
        };
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
            && (within(&self.ports, from) || within(&self.ports, to))
            && within(&self.source_ports, from)
            && within(&self.destination_ports, to)
            && self.payload.contains(&packet.payload_len)
    }
}
