//! Flow records from routers, instead of packets: NetFlow 5 and 9, and IPFIX.
//!
//! A router counts the packets of a flow and sends the sums. From time to time it sends templates,
//! which describe the layout of its records. Records that arrive before their template wait in
//! bounded memory.
//! ```text
//! datagram -> Exporter (address, version, domain) -> fields -> Record -> Engine::record
//!             templates, waiting sets,               addresses, counts,
//!             sequence, sampling                     flags
//! ```
//! Datagrams cannot make memory grow: [`Limits`] bounds the number of exporters, templates, fields
//! and waiting sets. Every datagram and every record is either counted or listed with a reason
//! ([`Collector::list`]). Counts of sampled packets are multiplied by the sampling rate, and each
//! exporter's JSON names the rate and its origin.
//!
//! A record gives sizes and sources. With TCP flags it also shows handshakes, but not the times of
//! their packets. Durations, such as how long attempts stay open, are therefore measured between
//! the arrivals of records.

mod counts;
mod exporter;
mod fields;
mod layout;
mod listen;
mod numbers;
mod record;
mod sets;
mod templates;
mod waiting;

pub use counts::Counts;
pub use exporter::{Exporter, Sampling};
pub use listen::{Datagram, Listener};
pub use record::Record;
pub use templates::{Templates, TemplatesError};

use serde_json::Value;
use std::net::{IpAddr, SocketAddr};

/// Upper limits on what datagrams make the collector store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Exporters.
    pub exporters: usize,
    /// Templates of each exporter in memory. Others are looked up among those kept for the file.
    pub templates: usize,
    /// Fields of a template.
    pub fields: usize,
    /// Bytes of an exporter's sets that wait for their templates.
    pub waiting: usize,
}

impl Default for Limits {
    /// 32 exporters with 64 templates of 256 fields and 1 MiB of waiting sets each.
    fn default() -> Self {
        Limits { exporters: 32, templates: 64, fields: 256, waiting: 1 << 20 }
    }
}

/// Nanoseconds of silence after which another exporter may replace this one.
const SILENT: u64 = 600_000_000_000;

/// The identity of an exporter. Each origin numbers its templates separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The address that the datagrams come from. The port may change.
    pub address: IpAddr,
    /// 5, 9 or, for IPFIX, 10.
    pub version: u16,
    /// The part of the exporter: source ID, observation domain, or engine.
    pub domain: u32,
}

/// Why a datagram belongs to no exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    Sflow,
    Other,
}

impl Origin {
    fn of(from: SocketAddr, bytes: &[u8]) -> Result<Self, Foreign> {
        let half = |at| sets::half(bytes, at).ok_or(Foreign::Other);
        let word = |at| sets::word(bytes, at).ok_or(Foreign::Other);
        let version = half(0)?;
        let domain = match version {
            5 => half(20)?.into(),
            9 => word(16)?,
            10 => word(12)?,
            // The version of sFlow takes four bytes.
            0 if half(2)? == 5 => return Err(Foreign::Sflow),
            _ => return Err(Foreign::Other),
        };
        let address = from.ip().to_canonical();
        Ok(Origin { address, version, domain })
    }
}

/// The state of all exporters.
#[derive(Debug)]
pub struct Collector {
    limits: Limits,
    templates: Templates,
    exporters: Vec<Exporter>,
    /// Sums of the counters of exporters that were replaced.
    gone: Counts,
    datagrams: u64,
    sflow: u64,
    foreign: u64,
    refused: u64,
}

impl Collector {
    /// A collector without exporters. `templates` may come from an earlier run.
    pub fn new(limits: Limits, templates: Templates) -> Self {
        Collector {
            limits,
            templates,
            exporters: Vec::new(),
            gone: Counts::default(),
            datagrams: 0,
            sflow: 0,
            foreign: 0,
            refused: 0,
        }
    }

    /// Reads a datagram that `from` sent and that arrived at `now_ns`. Calls `to` with its records.
    pub fn datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        now_ns: u64,
        mut to: impl FnMut(&Record),
    ) {
        self.datagrams += 1;
        match Origin::of(from, bytes) {
            Err(Foreign::Sflow) => self.sflow += 1,
            Err(Foreign::Other) => self.foreign += 1,
            Ok(origin) => match self.exporter(origin, now_ns) {
                Some(place) => {
                    let Collector { exporters, templates, .. } = self;
                    exporters[place].take(bytes, now_ns, templates, &mut to);
                }
                None => self.refused += 1,
            },
        }
    }

    /// The index of the exporter with this origin, which is added if it is new; `None` if there is
    /// no room.
    fn exporter(&mut self, origin: Origin, now_ns: u64) -> Option<usize> {
        let place = self.exporters.iter().position(|exporter| exporter.origin() == origin);
        if place.is_some() {
            return place;
        }
        let new = Exporter::new(origin, self.limits, &self.templates);
        if self.exporters.len() < self.limits.exporters {
            self.exporters.push(new);
            return Some(self.exporters.len() - 1);
        }
        // Replaces an exporter that never sent a record, or that has been silent for `SILENT`. All
        // others stay: the source address of a datagram is easily forged.
        let all = self.exporters.iter().enumerate();
        let (place, _) = all
            .filter(|(_, exporter)| exporter.is_spare(now_ns))
            .min_by_key(|(_, exporter)| exporter.last_ns())?;
        let old = std::mem::replace(&mut self.exporters[place], new);
        self.gone.add(&old.counts());
        Some(place)
    }

    /// The exporters, in the order in which they were first heard.
    pub fn exporters(&self) -> &[Exporter] {
        &self.exporters
    }

    /// The templates, to be written to a file.
    pub fn templates(&mut self) -> &mut Templates {
        &mut self.templates
    }

    /// The counters of datagrams and records by name, for the ledger.
    pub fn list(&self) -> Vec<(&'static str, u64)> {
        let mut sum = self.gone;
        for exporter in &self.exporters {
            sum.add(&exporter.counts());
        }
        let mut list = vec![
            ("datagrams", self.datagrams),
            ("datagrams_sflow", self.sflow),
            ("datagrams_not_flow_export", self.foreign),
            ("datagrams_of_refused_exporters", self.refused),
        ];
        list.extend(sum.list());
        list.retain(|&(name, times)| times > 0 || name == "datagrams" || name == "records");
        list
    }

    /// One object for each exporter.
    pub fn to_json(&self) -> Value {
        self.exporters.iter().map(Exporter::to_json).collect()
    }
}
