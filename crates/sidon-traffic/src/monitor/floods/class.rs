//! The classes of floods, by what arrives at the victim, and the subjects of each.

use crate::Prefix;
use crate::monitor::{
    alarms::table::Subject,
    incidents::kinds,
    sizes::{self, Host},
};

/// A class of packets that can be a flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// SYNs without an answer of the victim.
    Syn,
    /// SYN+ACKs without a SYN of the victim.
    SynAck,
    /// RSTs of flows that the victim does not have.
    Rst,
    /// Other TCP segments of flows that do not exist.
    Ack,
    /// UDP from the ports of amplifiers, without a question of the victim.
    Reflection,
    /// Other UDP that nobody answers.
    Udp,
    /// ICMP and ICMPv6.
    Icmp,
    /// Fragments.
    Fragment,
    /// Connections that complete and stay idle.
    Idle,
}

/// All classes, by number.
pub(super) const CLASSES: [Class; 9] = [
    Class::Syn,
    Class::SynAck,
    Class::Rst,
    Class::Ack,
    Class::Reflection,
    Class::Udp,
    Class::Icmp,
    Class::Fragment,
    Class::Idle,
];

impl Class {
    /// The kind of its incidents.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Class::Syn => kinds::SYN_FLOOD,
            Class::SynAck => kinds::SYN_ACK_FLOOD,
            Class::Rst => kinds::RST_FLOOD,
            Class::Ack => kinds::ACK_FLOOD,
            Class::Reflection => kinds::UDP_REFLECTION,
            Class::Udp => kinds::UDP_FLOOD,
            Class::Icmp => kinds::ICMP_FLOOD,
            Class::Fragment => kinds::FRAGMENT_FLOOD,
            Class::Idle => kinds::CONNECTION_FLOOD,
        }
    }

    /// The IP protocol of its packets; `None` for any.
    pub(super) fn protocol(self, is_v6: bool) -> Option<u8> {
        use crate::flow::protocol::{ICMP, ICMPV6, TCP, UDP};
        match self {
            Class::Reflection | Class::Udp => Some(UDP),
            Class::Icmp => Some(if is_v6 { ICMPV6 } else { ICMP }),
            Class::Fragment => None,
            _ => Some(TCP),
        }
    }

    /// The words of tcpdump that match its packets at this port.
    pub(super) fn words(self, port: u16) -> String {
        match self {
            Class::Syn if port > 0 => {
                format!(" and tcp dst port {port} and tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn")
            }
            Class::Syn => " and tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn".to_owned(),
            Class::SynAck => {
                " and tcp[tcpflags] & (tcp-syn|tcp-ack) == (tcp-syn|tcp-ack)".to_owned()
            }
            Class::Rst => " and tcp[tcpflags] & tcp-rst != 0".to_owned(),
            Class::Ack => " and tcp[tcpflags] & (tcp-syn|tcp-rst) == 0".to_owned(),
            Class::Reflection => format!(" and udp src port {port}"),
            Class::Udp => " and udp".to_owned(),
            Class::Icmp => " and (icmp or icmp6)".to_owned(),
            Class::Fragment => String::new(),
            Class::Idle => format!(" and tcp dst port {port}"),
        }
    }
}

/// The hosts that a subject stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// One port of a host. For [`Class::Reflection`] it is the port of the sources.
    Port,
    /// A host.
    Host,
    /// A prefix of this length.
    Prefix(u8),
}

/// The lengths of prefixes, from the widest.
pub(super) const LENGTHS: [[u8; 3]; 2] = [[16, 20, 24], [48, 56, 64]];

/// Positions in a subject, after the 17 bytes of the host.
const CLASS: usize = 31;
const LENGTH: usize = 32;
const IS_PORT: usize = 33;

/// A class at a port of a host.
pub(super) fn at_port(class: Class, host: &Host, port: u16) -> Subject {
    let mut subject = at_host(class, host);
    subject[IS_PORT] = 1;
    subject[34..].copy_from_slice(&port.to_be_bytes());
    subject
}

/// A class at a host.
pub(super) fn at_host(class: Class, host: &Host) -> Subject {
    let mut subject = [0; 36];
    subject[..17].copy_from_slice(host);
    subject[CLASS] = class as u8;
    subject
}

/// A class at a prefix of a host, whose length is a multiple of four. `port` is that of a reflection.
pub(super) fn at_prefix(class: Class, host: &Host, length: u8, port: u16) -> Subject {
    let mut subject = at_host(class, host);
    let whole = usize::from(length / 8);
    subject[1 + whole..17].fill(0);
    if length % 8 == 4 {
        subject[1 + whole] = host[1 + whole] & 0xf0;
    }
    subject[LENGTH] = length;
    subject[34..].copy_from_slice(&port.to_be_bytes());
    subject
}

/// The class of a subject.
pub(super) fn class(subject: &Subject) -> Class {
    CLASSES.get(usize::from(subject[CLASS])).copied().unwrap_or(Class::Syn)
}

/// What a subject stands for.
pub(super) fn reach(subject: &Subject) -> Reach {
    match (subject[LENGTH], subject[IS_PORT]) {
        (0, 0) => Reach::Host,
        (0, _) => Reach::Port,
        (length, _) => Reach::Prefix(length),
    }
}

/// The host or prefix, and the port, of a subject.
pub(super) fn parts(subject: &Subject) -> (Prefix, u16) {
    let address = sizes::address(std::array::from_fn(|i| subject[i]));
    let port = u16::from_be_bytes([subject[34], subject[35]]);
    match reach(subject) {
        Reach::Prefix(length) => (Prefix::new(address, length), port),
        _ => (Prefix::from(address), port),
    }
}

/// The bucket of a host within its prefix of this length: the next four bits, or the last four of the
/// address for the narrowest length, where hosts differ.
pub(super) fn bucket(host: &Host, length: u8) -> usize {
    let nibble = match (host[0], length) {
        (4, 24) => host[4] & 0x0f,
        (_, 64) => host[16] & 0x0f,
        (_, length) => {
            let byte = host[1 + usize::from(length / 8)];
            if length.is_multiple_of(8) { byte >> 4 } else { byte & 0x0f }
        }
    };
    usize::from(nibble)
}

/// The prefix of this length around a host of an IPv4 network of 24 bits, by the host's last byte.
pub(super) fn narrowed(network: Prefix, length: u8, last: u8) -> Prefix {
    let mut host = sizes::host(network.address());
    host[4] = last;
    Prefix::new(sizes::address(host), length)
}

/// The prefix of length `to` that begins at this bucket of a network of `length` bits.
pub(super) fn narrowed_by(network: Prefix, length: u8, to: u8, bucket: u8) -> Prefix {
    let mut host = sizes::host(network.address());
    let byte = &mut host[1 + usize::from(length / 8)];
    *byte |= if length.is_multiple_of(8) { bucket << 4 } else { bucket & 0x0f };
    Prefix::new(sizes::address(host), to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_stand_for_ports_hosts_and_prefixes() {
        let host = sizes::host("198.51.103.7".parse().unwrap());
        for class in CLASSES {
            let one = at_host(class, &host);
            assert_eq!((super::class(&one), reach(&one)), (class, Reach::Host));
            assert_eq!(parts(&one), ("198.51.103.7".parse().unwrap(), 0));
            let one = at_port(class, &host, 0);
            assert_eq!((reach(&one), parts(&one).1), (Reach::Port, 0));
            for (length, text) in
                [(16, "198.51.0.0/16"), (20, "198.51.96.0/20"), (24, "198.51.103.0/24")]
            {
                let one = at_prefix(class, &host, length, 53);
                assert_eq!(reach(&one), Reach::Prefix(length));
                assert_eq!(parts(&one), (text.parse().unwrap(), 53));
            }
        }
        assert_eq!([16, 20, 24].map(|length| bucket(&host, length)), [6, 7, 7]);
        let host = sizes::host("2001:db8:1:ab31::9".parse().unwrap());
        assert_eq!([48, 56, 64].map(|length| bucket(&host, length)), [0xa, 3, 9]);
        let one = at_prefix(Class::Udp, &host, 56, 0);
        assert_eq!(parts(&one).0.to_string(), "2001:db8:1:ab00::/56");
    }
}
