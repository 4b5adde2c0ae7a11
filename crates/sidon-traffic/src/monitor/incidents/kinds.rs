//! The kinds of incidents: names, and the rules that depend on the kind.
//!
//! | class | kinds | subject | at most one open incident of |
//! |---|---|---|---|
//! | flood | `*_flood`, `udp_reflection`, `forged_syns` | victim: host or prefix | a kind and a subject |
//! | scan | `address_scan`, `port_scan`, `random_scan` | source | a subject: the kinds are one incident |
//! | beacon | `beacon` | source; the server is the peer | a subject |

use super::Severity;
use crate::Prefix;

/// Unanswered TCP handshakes.
pub const SYN_FLOOD: &str = "syn_flood";
/// TCP handshakes that fail, to one port of many hosts.
pub const ADDRESS_SCAN: &str = "address_scan";
/// Tries at many ports of one host.
pub const PORT_SCAN: &str = "port_scan";
/// Tries at many ports of many hosts.
pub const RANDOM_SCAN: &str = "random_scan";
/// SYNs with addresses that no host can have.
pub const FORGED_SYNS: &str = "forged_syns";
/// SYN+ACKs without a SYN of the subject.
pub const SYN_ACK_FLOOD: &str = "syn_ack_flood";
/// RSTs of connections that the subject does not have.
pub const RST_FLOOD: &str = "rst_flood";
/// TCP segments of connections that do not exist.
pub const ACK_FLOOD: &str = "ack_flood";
/// UDP datagrams that nobody answers.
pub const UDP_FLOOD: &str = "udp_flood";
/// UDP answers without a request of the subject.
pub const UDP_REFLECTION: &str = "udp_reflection";
/// ICMP or ICMPv6 messages.
pub const ICMP_FLOOD: &str = "icmp_flood";
/// Fragments of IP packets.
pub const FRAGMENT_FLOOD: &str = "fragment_flood";
/// Connections that complete and stay idle.
pub const CONNECTION_FLOOD: &str = "connection_flood";
/// Connections that a host opens periodically.
pub const BEACON: &str = "beacon";

/// The kinds of incidents. A new kind is added at the end.
pub const KINDS: [&str; 14] = [
    SYN_FLOOD,
    ADDRESS_SCAN,
    PORT_SCAN,
    RANDOM_SCAN,
    FORGED_SYNS,
    SYN_ACK_FLOOD,
    RST_FLOOD,
    ACK_FLOOD,
    UDP_FLOOD,
    UDP_REFLECTION,
    ICMP_FLOOD,
    FRAGMENT_FLOOD,
    CONNECTION_FLOOD,
    BEACON,
];

/// The names in the ledger of incidents that did not fit, in the order of [`KINDS`].
pub(crate) const UNLISTED: [&str; KINDS.len()] = [
    "incidents_syn_flood",
    "incidents_address_scan",
    "incidents_port_scan",
    "incidents_random_scan",
    "incidents_forged_syns",
    "incidents_syn_ack_flood",
    "incidents_rst_flood",
    "incidents_ack_flood",
    "incidents_udp_flood",
    "incidents_udp_reflection",
    "incidents_icmp_flood",
    "incidents_fragment_flood",
    "incidents_connection_flood",
    "incidents_beacon",
];

/// The name in the ledger of incidents of a kind that did not fit.
pub(crate) fn unlisted(kind: &str) -> &'static str {
    number(kind).map_or("incidents_others", |number| UNLISTED[number])
}

const SECOND: u64 = 1_000_000_000;

/// The number of a kind in [`KINDS`]. A file may contain kinds that this version does not have.
pub(crate) fn number(kind: &str) -> Option<usize> {
    KINDS.iter().position(|known| *known == kind)
}

/// What the kinds of a class have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// The subject receives the packets.
    Flood,
    /// The subject sends the packets, to many targets.
    Scan,
    /// The subject sends the packets, to one server.
    Beacon,
}

/// The class of a kind. An unknown kind counts as a flood, so that it is listed first.
pub(crate) fn class(kind: &str) -> Class {
    match kind {
        ADDRESS_SCAN | PORT_SCAN | RANDOM_SCAN => Class::Scan,
        BEACON => Class::Beacon,
        _ => Class::Flood,
    }
}

/// The name of the incidents that are one if they have the same subject: the kind, and one name for
/// all scans.
pub(super) fn group(kind: &'static str) -> &'static str {
    if class(kind) == Class::Scan { "scan" } else { kind }
}

/// The rank of a scan: an incident has the strongest kind that its source showed.
pub(super) fn rank(kind: &str) -> u8 {
    match kind {
        RANDOM_SCAN => 2,
        ADDRESS_SCAN => 1,
        _ => 0,
    }
}

/// The time after its end within which an incident that begins again is the same one, in
/// nanoseconds.
pub(super) fn gap(kind: &str) -> u64 {
    match kind {
        FORGED_SYNS => 60 * SECOND,
        _ if class(kind) == Class::Flood => 10 * SECOND,
        _ => 300 * SECOND,
    }
}

/// The severity of an incident: by its class, and by how many times its `size` exceeds the `least`
/// size that is an incident. Every flood is above every scan.
pub(super) fn severity(kind: &str, size: u64, least: u64) -> Severity {
    let times = size / least.max(1);
    match class(kind) {
        Class::Flood if times >= 10 => Severity::Critical,
        Class::Flood => Severity::High,
        Class::Scan if times >= 10 => Severity::Medium,
        Class::Scan => Severity::Low,
        Class::Beacon => Severity::Medium,
    }
}

/// The text of an incident that several findings support.
pub(super) fn text(kind: &str, subject: &Prefix) -> String {
    let name = match kind {
        SYN_FLOOD => "SYN flood",
        SYN_ACK_FLOOD => "SYN+ACK flood",
        RST_FLOOD => "RST flood",
        ACK_FLOOD => "ACK flood",
        UDP_FLOOD => "UDP flood",
        UDP_REFLECTION => "UDP reflection",
        ICMP_FLOOD => "ICMP flood",
        FRAGMENT_FLOOD => "flood of fragments",
        CONNECTION_FLOOD => "flood of idle connections",
        FORGED_SYNS => "forged SYNs",
        PORT_SCAN => return format!("{subject} tries many ports of several hosts"),
        ADDRESS_SCAN => return format!("{subject} tries ports of one host after the other"),
        RANDOM_SCAN => return format!("{subject} tries ports of hosts at random"),
        BEACON => return format!("{subject} contacts several servers periodically"),
        _ => kind,
    };
    format!("{name} at {subject}")
}

/// A filter for all packets that an incident of several findings can consist of.
pub(super) fn filter(kind: &str, subject: &Prefix) -> String {
    let end = if class(kind) == Class::Flood { "dst" } else { "src" };
    format!("{end} {} {subject}", subject.word())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;

    #[test]
    fn every_flood_stands_above_every_scan() {
        let of = |kind: &'static str| [0, 1, 9, 10, u64::MAX].map(|size| severity(kind, size, 1));
        for flood in KINDS.into_iter().filter(|kind| class(kind) == Class::Flood) {
            for other in KINDS.into_iter().filter(|kind| class(kind) != Class::Flood) {
                assert!(of(flood).iter().min() > of(other).iter().max(), "{flood} {other}");
            }
        }
        assert_eq!(severity(SYN_FLOOD, 500, 50), Severity::Critical);
        assert_eq!(severity(SYN_FLOOD, 499, 50), Severity::High);
        assert_eq!(severity(ADDRESS_SCAN, 500, 0), Severity::Medium);
    }

    #[test]
    fn every_kind_has_a_name_a_text_and_a_filter_that_is_read() {
        for (at, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(number(kind), Some(at));
            assert_eq!(unlisted(kind), format!("incidents_{kind}"));
            for subject in ["192.0.2.7", "198.51.96.0/20", "2001:db8::/48"] {
                let subject = subject.parse().unwrap();
                assert!(text(kind, &subject).contains(&subject.to_string()));
                assert!(filter(kind, &subject).parse::<Filter>().is_ok());
            }
        }
    }
}
