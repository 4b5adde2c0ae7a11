//! A flow record as a router exports it: counts and TCP flags of one flow.

use crate::{
    FlowKey, Packet,
    flow::protocol,
    monitor::services::Responder,
    packet::{Fragment, Tcp, TcpFlags, Transport, Vlans},
};

/// A number of packets of one flow, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Arrival time in nanoseconds since 1970. The clocks of exporters are not used.
    pub time_ns: u64,
    /// The directed five-tuple.
    pub flow: FlowKey,
    /// Packets, multiplied by the sampling rate; 0 if the record has no packet count.
    pub packets: u64,
    /// Bytes of IP packets, multiplied by the sampling rate; 0 if the record has no byte count.
    pub bytes: u64,
    /// The TCP flags of all these packets together, if the record has them.
    pub flags: Option<TcpFlags>,
    /// ICMP type and code, if the record has them.
    pub icmp: Option<(u8, u8)>,
}

impl Record {
    /// Whether the record has a SYN and no ACK: its source opened a connection. Any other record
    /// may be of either end.
    pub fn is_attempt(&self) -> bool {
        let flags = self.flags.filter(|_| self.flow.protocol() == protocol::TCP);
        flags.is_some_and(|flags| flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK))
    }

    /// Packets of a handshake that the record implies, at least one.
    ///
    /// A record combines the flags of all its packets, so the packets are put in the order that TCP
    /// requires. A SYN alone is an attempt. A SYN with an ACK is a handshake; the ports tell which
    /// end opened it ([`Responder::by_ports`]). A RST or FIN comes last. Packets that the other end
    /// must have sent are included.
    pub fn signs(&self) -> impl Iterator<Item = Packet> + '_ {
        let mut signs = [None; 4];
        let number = self.flow.protocol();
        match self.flags.filter(|_| number == protocol::TCP) {
            None => {
                let transport = match self.icmp {
                    Some((kind, code)) if matches!(number, protocol::ICMP | protocol::ICMPV6) => {
                        Transport::Icmp { kind, code }
                    }
                    // Only the ports are known.
                    _ if number == protocol::TCP => Transport::Cut,
                    _ if protocol::has_ports(number) => Transport::Ports,
                    _ => Transport::Other,
                };
                signs[0] = Some((transport, 0, self.flow));
            }
            Some(flags) => {
                let (ack, mut used) = (TcpFlags::ACK, 0);
                let mut sign = |flags, payload_len, flow| {
                    let tcp = Tcp { sequence: 0, acknowledgement: 0, flags };
                    signs[used] = Some((Transport::Tcp(tcp), payload_len, flow));
                    used += 1;
                };
                let flow = self.flow;
                let answers = Responder::by_ports(&self.flow).is_source;
                let ends = flags.any(TcpFlags::RST.with(TcpFlags::FIN));
                match (flags.has(TcpFlags::SYN), flags.has(ack)) {
                    (true, true) if answers => {
                        sign(TcpFlags::SYN, 0, flow.reversed());
                        sign(TcpFlags::SYN.with(ack), 0, flow);
                        // A responder that also sent PSH or FIN has received the opener's ACK.
                        if flags.any(TcpFlags::PSH.with(TcpFlags::FIN)) {
                            sign(ack, 0, flow.reversed());
                        }
                    }
                    (true, true) => {
                        sign(TcpFlags::SYN, 0, flow);
                        sign(TcpFlags::SYN.with(ack), 0, flow.reversed());
                        sign(ack, 0, flow);
                    }
                    (true, false) => sign(TcpFlags::SYN, 0, flow),
                    (false, _) if ends => {}
                    (false, _) => sign(ack, 1, flow),
                }
                if flags.has(TcpFlags::RST) {
                    sign(TcpFlags::RST.with(ack), 0, flow);
                } else if ends {
                    sign(TcpFlags::FIN.with(ack), 0, flow);
                }
            }
        }
        let mean = self.bytes / self.packets.max(1);
        let length = u32::try_from(mean).unwrap_or(u32::MAX);
        signs.into_iter().flatten().map(move |(transport, payload_len, flow)| Packet {
            time_ns: self.time_ns,
            flow,
            wire_len: length,
            captured: 0,
            payload_len,
            transport,
            fragment: Fragment::Whole,
            ttl: 0,
            vlans: Vlans::default(),
            tunnels: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(ports: [u16; 2], flags: u8) -> Vec<String> {
        let flow = FlowKey::v4([10, 0, 0, 1], [10, 0, 0, 2], ports, protocol::TCP);
        let flags = Some(TcpFlags(flags));
        let record = Record { time_ns: 0, flow, packets: 3, bytes: 120, flags, icmp: None };
        record.signs().map(|packet| packet.tcp_flags().to_string()).collect()
    }

    #[test]
    fn flags_together_are_told_apart_in_the_order_that_tcp_allows() {
        assert_eq!(signs([40_000, 80], 0x02), ["S"]);
        assert_eq!(signs([40_000, 80], 0x1b), ["S", "S.", ".", "F."]);
        assert_eq!(signs([80, 40_000], 0x1b), ["S", "S.", ".", "F."]);
        assert_eq!(signs([80, 40_000], 0x12), ["S", "S."]);
        assert_eq!(signs([80, 40_000], 0x14), ["R."]);
        assert_eq!(signs([40_000, 80], 0x18), ["."]);
        assert_eq!(signs([40_000, 80], 0x00), ["."]);
        assert_eq!(signs([40_000, 80], 0x06), ["S", "R."]);
    }

    #[test]
    fn a_record_without_flags_says_nothing_of_handshakes() {
        let flow = FlowKey::v4([10, 0, 0, 1], [10, 0, 0, 2], [1, 2], protocol::TCP);
        let record = Record { time_ns: 0, flow, packets: 1, bytes: 40, flags: None, icmp: None };
        let signs: Vec<_> = record.signs().collect();
        assert_eq!(signs.len(), 1);
        assert_eq!(signs[0].transport, Transport::Cut);
    }
}
