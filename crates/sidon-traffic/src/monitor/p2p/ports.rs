//! Ports that identify the application, whichever hosts use them.
//!
//! The heuristics use only conversations at ports without a known service. They leave out ports
//! below 1024 and the ports of `SERVICES`. This list holds the exceptions of the paper: streaming,
//! IRC, games, IPsec, NetBIOS and the like. It also holds newer services, most of which use TCP and
//! UDP with the same host, or speak to many hosts, as P2P does. Mail and DNS, two of the paper's
//! false positives, are below 1024.

/// Ports of services that are not P2P, in addition to all ports below 1024.
const SERVICES: [(u16, u16); 46] = [
    (1080, 1080),   // SOCKS
    (1194, 1194),   // OpenVPN
    (1433, 1434),   // SQL Server
    (1701, 1701),   // L2TP
    (1723, 1723),   // PPTP
    (1755, 1755),   // streaming
    (1812, 1813),   // RADIUS
    (1883, 1883),   // MQTT
    (1900, 1900),   // SSDP
    (2049, 2049),   // NFS
    (3074, 3074),   // games
    (3128, 3128),   // web proxies
    (3306, 3306),   // MySQL
    (3389, 3389),   // remote desktops
    (3478, 3481),   // STUN and TURN
    (3531, 3531),   // the paper's p2pnetworking.exe
    (3658, 3659),   // games
    (4500, 4500),   // IPsec behind NAT
    (5000, 5001),   // streaming
    (5004, 5005),   // RTP
    (5060, 5061),   // SIP
    (5222, 5223),   // messengers
    (5228, 5230),   // messengers
    (5353, 5353),   // multicast DNS
    (5355, 5355),   // link-local names
    (5432, 5432),   // PostgreSQL
    (5900, 5901),   // remote desktops
    (6000, 6001),   // X11
    (6112, 6114),   // games
    (6379, 6379),   // Redis
    (6660, 6669),   // IRC
    (6697, 6697),   // IRC
    (6868, 6868),   // games
    (6899, 6899),   // games
    (6970, 6970),   // streaming
    (7000, 7000),   // IRC
    (7070, 7070),   // streaming
    (7514, 7514),   // IRC
    (8000, 8000),   // web
    (8008, 8009),   // web
    (8080, 8081),   // web
    (8443, 8443),   // web
    (8801, 8810),   // meetings
    (8888, 8888),   // web
    (9090, 9090),   // web
    (27000, 27050), // games
];

/// Default ports of P2P programs.
const PEERS: [(u16, u16); 14] = [
    (1214, 1214),   // FastTrack
    (2234, 2234),   // Soulseek
    (4661, 4662),   // eDonkey
    (4665, 4665),   // eDonkey
    (4672, 4672),   // eDonkey
    (6257, 6257),   // WinMX
    (6346, 6347),   // Gnutella
    (6699, 6699),   // WinMX, Napster
    (6771, 6771),   // BitTorrent, local peers
    (6881, 6889),   // BitTorrent
    (8333, 8333),   // Bitcoin
    (21027, 21027), // Syncthing
    (22000, 22000), // Syncthing
    (30303, 30303), // Ethereum
];

/// A set of ports.
type Ports = [u64; 1024];

const fn of(ranges: &[(u16, u16)], below: u16) -> Ports {
    let mut ports = [0; 1024];
    let mut port = 0;
    while port < below {
        ports[(port >> 6) as usize] |= 1 << (port & 63);
        port += 1;
    }
    let mut at = 0;
    while at < ranges.len() {
        let (mut port, last) = ranges[at];
        while port <= last {
            ports[(port >> 6) as usize] |= 1 << (port & 63);
            port += 1;
        }
        at += 1;
    }
    ports
}

static SERVED: Ports = of(&SERVICES, 1024);
static PEERED: Ports = of(&PEERS, 0);

/// Whether conversations with this port at either end are left out.
#[inline(always)]
pub fn is_service(port: u16) -> bool {
    port < 1024 || holds(&SERVED, port)
}

/// Whether servers or peers of a known program wait at this port. Programs rarely choose such a
/// port as the source of a connection.
#[inline(always)]
pub fn is_registered(port: u16) -> bool {
    port != 0 && (is_service(port) || is_peers(port))
}

/// Whether this is a default port of a P2P program.
#[inline(always)]
pub fn is_peers(port: u16) -> bool {
    holds(&PEERED, port)
}

#[inline(always)]
fn holds(ports: &Ports, port: u16) -> bool {
    ports[usize::from(port >> 6)] >> (port & 63) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_hold_what_the_lists_say_and_share_nothing() {
        for port in 0..=u16::MAX {
            let within = |ranges: &[(u16, u16)]| {
                ranges.iter().any(|&(first, last)| (first..=last).contains(&port))
            };
            assert_eq!(is_service(port), port < 1024 || within(&SERVICES), "{port}");
            assert_eq!(is_peers(port), within(&PEERS), "{port}");
            assert!(!(is_service(port) && is_peers(port)), "{port}");
        }
    }
}
