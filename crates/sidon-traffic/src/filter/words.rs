//! Names that stand for numbers.

/// Names inside `[ ]` and on either side of a comparison.
const NUMBERS: [(&str, u32); 45] = [
    ("tcpflags", 13),
    ("tcp-fin", 0x01),
    ("tcp-syn", 0x02),
    ("tcp-rst", 0x04),
    ("tcp-push", 0x08),
    ("tcp-ack", 0x10),
    ("tcp-urg", 0x20),
    ("tcp-ece", 0x40),
    ("tcp-cwr", 0x80),
    ("icmptype", 0),
    ("icmpcode", 1),
    ("icmp-echoreply", 0),
    ("icmp-unreach", 3),
    ("icmp-sourcequench", 4),
    ("icmp-redirect", 5),
    ("icmp-echo", 8),
    ("icmp-routeradvert", 9),
    ("icmp-routersolicit", 10),
    ("icmp-timxceed", 11),
    ("icmp-paramprob", 12),
    ("icmp-tstamp", 13),
    ("icmp-tstampreply", 14),
    ("icmp-ireq", 15),
    ("icmp-ireqreply", 16),
    ("icmp-maskreq", 17),
    ("icmp-maskreply", 18),
    ("icmp6type", 0),
    ("icmp6code", 1),
    ("icmp6-destinationunreach", 1),
    ("icmp6-packettoobig", 2),
    ("icmp6-timeexceeded", 3),
    ("icmp6-parameterproblem", 4),
    ("icmp6-echo", 128),
    ("icmp6-echoreply", 129),
    ("icmp6-multicastlistenerquery", 130),
    ("icmp6-multicastlistenerreportv1", 131),
    ("icmp6-multicastlistenerdone", 132),
    ("icmp6-routersolicit", 133),
    ("icmp6-routeradvert", 134),
    ("icmp6-neighborsolicit", 135),
    ("icmp6-neighboradvert", 136),
    ("icmp6-redirect", 137),
    ("icmp6-routerrenum", 138),
    ("icmp6-nodeinformationquery", 139),
    ("icmp6-multicastlistenerreportv2", 143),
];

/// Ports by name. The protocol is given for names that belong to one alone.
const PORTS: [(&str, u16, Option<u8>); 28] = [
    ("ftp-data", 20, Some(TCP)),
    ("ftp", 21, Some(TCP)),
    ("ssh", 22, Some(TCP)),
    ("telnet", 23, Some(TCP)),
    ("smtp", 25, Some(TCP)),
    ("domain", 53, None),
    ("bootps", 67, Some(UDP)),
    ("bootpc", 68, Some(UDP)),
    ("tftp", 69, Some(UDP)),
    ("http", 80, Some(TCP)),
    ("kerberos", 88, None),
    ("pop3", 110, Some(TCP)),
    ("sunrpc", 111, None),
    ("ntp", 123, Some(UDP)),
    ("netbios-ns", 137, Some(UDP)),
    ("netbios-dgm", 138, Some(UDP)),
    ("netbios-ssn", 139, Some(TCP)),
    ("imap2", 143, Some(TCP)),
    ("snmp", 161, None),
    ("snmp-trap", 162, None),
    ("bgp", 179, Some(TCP)),
    ("ldap", 389, None),
    ("https", 443, None),
    ("microsoft-ds", 445, None),
    ("syslog", 514, Some(UDP)),
    ("imaps", 993, Some(TCP)),
    ("pop3s", 995, Some(TCP)),
    ("mdns", 5353, Some(UDP)),
];

const TCP: u8 = crate::flow::protocol::TCP;
const UDP: u8 = crate::flow::protocol::UDP;

/// Words of libpcap's language that mean nothing here.
const FOREIGN: [&str; 46] = [
    "aarp", "action", "atalk", "byte", "carp", "clnp", "csnp", "decnet", "dir", "direction",
    "es-is", "esis", "fddi", "gateway", "geneve", "iih", "ifindex", "ifname", "inbound", "ipx",
    "is-is", "isis", "iso", "lane", "lat", "link", "llc", "lsp", "metac", "moprc", "mpls",
    "netbeui", "on", "outbound", "pppoed", "pppoes", "protochain", "psnp", "radio", "reason",
    "rnr", "stp", "subtype", "tr", "type", "wlan",
];

pub(super) fn number(word: &str) -> Option<u32> {
    NUMBERS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number)
}

pub(super) fn port(word: &str) -> Option<(u16, Option<u8>)> {
    PORTS.iter().find(|(name, ..)| *name == word).map(|&(_, port, over)| (port, over))
}

pub(super) fn is_foreign(word: &str) -> bool {
    FOREIGN.contains(&word)
}
