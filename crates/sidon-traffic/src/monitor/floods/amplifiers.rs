//! UDP services whose answers are much larger than the question, so that attackers reflect traffic off
//! them: the source port of a datagram that nobody asked for.

/// Ports and names. From the advisories on amplification attacks of CERT (TA14-017A) and later ones.
const AMPLIFIERS: [(u16, &str); 31] = [
    (17, "QOTD"),
    (19, "chargen"),
    (53, "DNS"),
    (69, "TFTP"),
    (111, "portmap"),
    (123, "NTP"),
    (137, "NetBIOS"),
    (138, "NetBIOS"),
    (161, "SNMP"),
    (177, "XDMCP"),
    (389, "CLDAP"),
    (427, "SLP"),
    (520, "RIP"),
    (623, "IPMI"),
    (1434, "SQL Server"),
    (1604, "Citrix"),
    (1900, "SSDP"),
    (3283, "ARD"),
    (3389, "RDP"),
    (3478, "STUN"),
    (3702, "WS-Discovery"),
    (5060, "SIP"),
    (5093, "Sentinel"),
    (5353, "mDNS"),
    (5683, "CoAP"),
    (10_001, "Ubiquiti discovery"),
    (11_211, "memcached"),
    (27_015, "Steam"),
    (32_414, "Plex"),
    (37_810, "DHDiscover"),
    (33_848, "Jenkins"),
];

/// Ports of collectors, to which a few sources send much and which never answer.
const COLLECTORS: [u16; 16] = [
    162, 514, 1514, 2055, 2056, 4729, 4739, 5140, 5514, 6343, 8125, 9555, 9995, 9996, 12_201,
    25_826,
];

/// The name of the service that answers from this port, if it amplifies.
pub(crate) fn name(port: u16) -> Option<&'static str> {
    AMPLIFIERS.iter().find(|(known, _)| *known == port).map(|(_, name)| *name)
}

/// Whether a port is that of a collector of logs or of flow records.
pub(crate) fn is_collector(port: u16) -> bool {
    COLLECTORS.contains(&port)
}
