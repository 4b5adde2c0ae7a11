//! The least evidence for an incident of one kind, and the defaults of all kinds.

use crate::monitor::incidents::kinds as kind;

/// The least evidence for an incident of one kind. A field whose default is 0 is not used by the kind,
/// and a file cannot set it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// Packets per second; of a SYN flood unanswered handshakes, of a connection flood new connections.
    pub per_second: u64,
    /// Bytes per second.
    pub bytes_per_second: u64,
    /// The number within the window: unanswered handshakes, idle connections, SYNs with impossible
    /// addresses, repetitions of a beacon.
    pub count: u64,
    /// Different targets within the window: hosts or ports.
    pub targets: u64,
    /// The time in which evidence counts, in seconds.
    pub window: u64,
    /// The time that the condition must hold, in seconds.
    pub holds: u64,
    /// The share of the subject's traffic that must have failed, 0 to 1.
    pub ratio: f64,
    /// How many times the subject's usual rate, where its past is known.
    pub factor: f64,
    /// Whether incidents of the kind are reported.
    pub enabled: bool,
}

/// The names of the fields in a file, each with its meaning.
pub const FIELDS: [(&str, &str); 8] = [
    ("per_second", "packets per second; of handshakes, the unanswered ones"),
    ("bytes_per_second", "bytes per second"),
    ("count", "the number within the window"),
    ("targets", "different hosts or ports within the window"),
    ("window", "seconds in which evidence counts"),
    ("holds", "seconds that the condition must hold"),
    ("ratio", "the share of the subject's traffic that must have failed"),
    ("factor", "times the usual rate of the subject"),
];

impl Floor {
    /// No requirement, and no incident.
    pub(super) const OFF: Floor = Floor {
        per_second: 0,
        bytes_per_second: 0,
        count: 0,
        targets: 0,
        window: 0,
        holds: 0,
        ratio: 0.0,
        factor: 0.0,
        enabled: false,
    };

    /// The default of a kind.
    pub(super) fn of(kind: &str) -> Self {
        const USED: Floor = Floor { enabled: true, holds: 1, ..Floor::OFF };
        let packets = |per_second| Floor { per_second, window: 2, ..USED };
        let scan = |targets, ratio| Floor { targets, ratio, window: 300, ..USED };
        match kind {
            kind::SYN_FLOOD => Floor { count: 50, ratio: 0.125, window: 5, ..USED },
            kind::FORGED_SYNS => Floor { count: 10, window: 60, ..USED },
            kind::SYN_ACK_FLOOD => packets(100),
            kind::RST_FLOOD => packets(150),
            kind::ACK_FLOOD => packets(300),
            kind::UDP_FLOOD => packets(400),
            kind::UDP_REFLECTION => Floor { bytes_per_second: 500_000, ..packets(500) },
            kind::ICMP_FLOOD => Floor { bytes_per_second: 1_000_000, ..packets(250) },
            kind::CONNECTION_FLOOD => {
                Floor { count: 300, window: 30, holds: 8, ratio: 0.5, ..USED }
            }
            kind::ADDRESS_SCAN => scan(25, 0.5),
            kind::PORT_SCAN => scan(15, 0.5),
            kind::RANDOM_SCAN => scan(25, 0.9),
            kind::BEACON => Floor { count: 20, window: 3_600, ..USED },
            _ => packets(500),
        }
    }

    /// The field of this name in [`FIELDS`], as a number.
    pub(super) fn field(&self, name: &str) -> f64 {
        match name {
            "per_second" => self.per_second as f64,
            "bytes_per_second" => self.bytes_per_second as f64,
            "count" => self.count as f64,
            "targets" => self.targets as f64,
            "window" => self.window as f64,
            "holds" => self.holds as f64,
            "ratio" => self.ratio,
            "factor" => self.factor,
            _ => 0.0,
        }
    }
}
