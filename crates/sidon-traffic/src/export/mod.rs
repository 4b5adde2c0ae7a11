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

use crate::work::Work;
use serde_json::Value;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Origin { address, version, domain } = self;
        write!(f, "{address}/{version}/{domain}")
    }
}

/// A text is not of the form `192.0.2.1/9/0`: address, version and domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnOrigin;

impl FromStr for Origin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let (address, rest) = text.split_once('/').ok_or(NotAnOrigin)?;
        let (version, domain) = rest.split_once('/').ok_or(NotAnOrigin)?;
        Ok(Origin {
            address: address.parse().map_err(|_| NotAnOrigin)?,
            version: version.parse().map_err(|_| NotAnOrigin)?,
            domain: domain.parse().map_err(|_| NotAnOrigin)?,
        })
    }
}

/// The most steps per byte of all datagrams. A field takes at least one byte and is read twice. A
/// record is one more step, and has at least one field.
const STEPS_PER_BYTE: u64 = 3;

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
    /// Bytes of all datagrams, and the steps that they caused.
    bytes: u64,
    steps: u64,
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
            bytes: 0,
            steps: 0,
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
        self.bytes += bytes.len() as u64;
        match Origin::of(from, bytes) {
            Err(Foreign::Sflow) => self.sflow += 1,
            Err(Foreign::Other) => self.foreign += 1,
            Ok(origin) => match self.exporter(origin, now_ns) {
                Some(place) => {
                    let Collector { exporters, templates, .. } = self;
                    exporters[place].take(bytes, now_ns, templates, &mut to);
                    self.steps += exporters[place].take_steps();
                }
                None => self.refused += 1,
            },
        }
    }

    /// The index of the exporter with this origin, which is added if it is new; `None` if there is
    /// no room.
    fn exporter(&mut self, origin: Origin, now_ns: u64) -> Option<usize> {
        let place = self.exporters.iter().position(|exporter| exporter.origin() == origin);
        self.steps += place.map_or(self.exporters.len(), |place| place + 1) as u64;
        if place.is_some() {
            return place;
        }
        if self.exporters.len() < self.limits.exporters {
            self.exporters.push(Exporter::new(origin, self.limits));
            return Some(self.exporters.len() - 1);
        }
        // Replaces an exporter that never sent a record, or that has been silent for `SILENT`. All
        // others stay: the source address of a datagram is easily forged.
        self.steps += self.exporters.len() as u64;
        let all = self.exporters.iter().enumerate();
        let (place, _) = all
            .filter(|(_, exporter)| exporter.is_spare(now_ns))
            .min_by_key(|(_, exporter)| exporter.last_ns())?;
        let new = Exporter::new(origin, self.limits);
        let old = std::mem::replace(&mut self.exporters[place], new);
        self.gone.add(&old.counts());
        Some(place)
    }

    /// The steps that datagrams caused: exporters that were compared, and messages, sets, templates,
    /// fields and records that were read. A set that waited for its template is counted when it is
    /// read, so the limit holds on average over the datagrams.
    pub fn work(&self) -> Work {
        let datagrams = self.datagrams.saturating_mul(2 * self.limits.exporters as u64);
        let bytes = self.bytes.saturating_mul(STEPS_PER_BYTE);
        Work {
            what: "steps of flow export",
            done: self.steps,
            most: datagrams.saturating_add(bytes),
        }
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
