//! One exporter: its templates, how it samples, what it sent and what did not arrive.

use super::{
    Limits, Origin, Record, SILENT, Templates,
    fields::{Fields, Way},
};
use crate::flow::protocol;
use netflow_parser::{
    CacheInfo, CacheMetrics, NetflowPacket, NetflowParser, PendingFlowsConfig,
    static_versions::v5::V5,
    variable_versions::{ipfix, v9},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// Samplers of an exporter whose rates are kept.
const SAMPLERS: usize = 16;
/// How long sets wait for their template.
const WAIT: Duration = Duration::from_secs(1800);

/// How many packets one that was counted stands for, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// One of so many packets is counted.
    pub rate: u64,
    /// `options template`, `record` or `header`.
    pub from: &'static str,
}

/// What became of what an exporter sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Datagrams.
    pub datagrams: u64,
    /// Those of them that contradict themselves, in whole or behind what was understood.
    pub malformed: u64,
    /// Records of flows: those that were counted and those without addresses.
    pub records: u64,
    /// Records that were counted.
    pub counted: u64,
    /// Records that do not say who spoke to whom.
    pub without_addresses: u64,
    /// Records of options, such as the rate of sampling.
    pub options: u64,
    /// Templates that were sent, again and again.
    pub templates: u64,
    /// Sets of records that wait for their template.
    pub waiting: u64,
    /// Sets that waited and were counted when it came.
    pub replayed: u64,
    /// Sets whose template did not come in time or at all, for which there was no room, or that did
    /// not fit the template.
    pub given_up: u64,
    /// Sets that are not understood.
    pub not_understood: u64,
    /// Records that were sent and did not arrive, by the numbers in the datagrams.
    pub records_lost: u64,
    /// Datagrams, in the same way: NetFlow 9 numbers those.
    pub datagrams_lost: u64,
    /// Datagrams that came late, or with numbers that began again.
    pub out_of_order: u64,
    /// Packets, sampling made up for.
    pub packets: u64,
    /// Bytes from the IP header on, sampling made up for.
    pub bytes: u64,
    /// Records of TCP without its flags: handshakes are not known.
    pub without_flags: u64,
    /// Records without a number of packets.
    pub without_packets: u64,
    /// Records that stand for more than was counted, because of sampling.
    pub estimated: u64,
}

impl Counts {
    /// Both together.
    pub fn add(&mut self, other: &Counts) {
        let mut other = *other;
        for (mine, theirs) in self.all_mut().into_iter().zip(other.all_mut()) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    fn all_mut(&mut self) -> [&mut u64; 19] {
        let Counts {
            datagrams,
            malformed,
            records,
            counted,
            without_addresses,
            options,
            templates,
            waiting,
            replayed,
            given_up,
            not_understood,
            records_lost,
            datagrams_lost,
            out_of_order,
            packets,
            bytes,
            without_flags,
            without_packets,
            estimated,
        } = self;
        [
            datagrams,
            malformed,
            records,
            counted,
            without_addresses,
            options,
            templates,
            waiting,
            replayed,
            given_up,
            not_understood,
            records_lost,
            datagrams_lost,
            out_of_order,
            packets,
            bytes,
            without_flags,
            without_packets,
            estimated,
        ]
    }

    /// What the ledger says of them.
    pub(super) fn list(&self) -> [(&'static str, u64); 11] {
        [
            ("datagrams_malformed", self.malformed),
            ("records", self.records),
            ("records_without_addresses", self.without_addresses),
            ("records_of_options", self.options),
            ("sets_waiting_for_templates", self.waiting),
            ("sets_replayed", self.replayed),
            ("sets_given_up", self.given_up),
            ("sets_not_understood", self.not_understood),
            ("records_lost", self.records_lost),
            ("datagrams_lost", self.datagrams_lost),
            ("datagrams_out_of_order", self.out_of_order),
        ]
    }
}

/// One exporter.
#[derive(Debug)]
pub struct Exporter {
    origin: Origin,
    parser: NetflowParser,
    counts: Counts,
    /// The number of the last datagram, and that which the next should have; `None` if that
    /// cannot be known.
    last: Option<u32>,
    expected: Option<u32>,
    /// Whether the numbers of IPFIX include the records of their own datagram, as some exporters
    /// have it against the standard; `None` while nobody knows.
    includes: Option<bool>,
    last_ns: u64,
    /// The rate for all, and the rates of samplers.
    rate: Option<Sampling>,
    samplers: Vec<(u64, u64)>,
    /// The rate that was used last.
    used: Option<Sampling>,
}

impl Exporter {
    pub(super) fn new(origin: Origin, limits: Limits, templates: &Arc<Templates>) -> Option<Self> {
        let Origin { address, version, domain } = origin;
        let mut waiting = PendingFlowsConfig::with_ttl(limits.templates, WAIT);
        waiting.max_entries_per_template = 1024;
        waiting.max_entry_size_bytes = limits.waiting.clamp(1, 65_531);
        waiting.max_total_bytes = limits.waiting.max(1);
        let parser = NetflowParser::builder()
            .with_allowed_versions(&[version])
            .with_cache_size(limits.templates)
            .with_max_field_count(limits.fields)
            .with_max_records_per_flowset(1 << 16)
            .with_pending_flows(waiting)
            .with_template_store(Arc::<Templates>::clone(templates))
            .with_template_store_scope(format!("{address}/{version}/{domain}"))
            .build()
            .ok()?;
        Some(Exporter {
            origin,
            parser,
            counts: Counts::default(),
            last: None,
            expected: None,
            includes: None,
            last_ns: 0,
            rate: None,
            samplers: Vec::new(),
            used: None,
        })
    }

    /// Who it is.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// When it was last heard.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// How it samples, as far as that was needed; `None` if it does not.
    pub fn sampling(&self) -> Option<Sampling> {
        self.used.filter(|sampling| sampling.rate > 1)
    }

    /// Whether it may make room for another.
    pub(super) fn is_spare(&self, now_ns: u64) -> bool {
        self.counts.counted == 0 || now_ns.saturating_sub(self.last_ns) > SILENT
    }

    /// What became of what it sent.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts;
        let cache = self.cache();
        counts.waiting = cache.pending_flow_count as u64;
        counts.replayed = cache.metrics.pending_replayed;
        let CacheMetrics { pending_dropped, pending_replay_failed, .. } = cache.metrics;
        counts.given_up = pending_dropped.saturating_add(pending_replay_failed);
        counts
    }

    fn cache(&self) -> CacheInfo {
        match self.origin.version {
            9 => self.parser.v9_cache_info(),
            _ => self.parser.ipfix_cache_info(),
        }
    }

    fn metrics(&self) -> CacheMetrics {
        self.cache().metrics
    }

    /// Takes in a datagram.
    pub(super) fn take(&mut self, bytes: &[u8], now_ns: u64, to: &mut impl FnMut(&Record)) {
        self.counts.datagrams += 1;
        self.last_ns = now_ns;
        let before = self.metrics();
        let parsed = self.parser.parse_bytes(bytes);
        let after = self.metrics();
        let whole = parsed.error.is_none() && !parsed.packets.is_empty();
        self.counts.malformed += u64::from(!whole);
        let replayed = after.pending_replayed - before.pending_replayed;
        let kept = after.pending_cached - before.pending_cached;
        // Sets that wait are not among those given here, and those that waited are.
        let mut given = kept;
        let untold = after.misses != before.misses || replayed > 0 || !whole;
        for packet in &parsed.packets {
            let (flows, options) = (self.counts.records, self.counts.options);
            match packet {
                NetflowPacket::V5(packet) => self.v5(packet, now_ns, to),
                NetflowPacket::V9(packet) => {
                    given += packet.flowsets.len() as u64;
                    for set in &packet.flowsets {
                        self.v9(&set.body, now_ns, to);
                    }
                    self.sequence(packet.header.sequence_number, Some(1), Unit::Datagrams);
                }
                NetflowPacket::IPFix(packet) => {
                    given += packet.flowsets.len() as u64;
                    let before = self.counts.not_understood;
                    for set in &packet.flowsets {
                        self.ipfix(&set.body, now_ns, to);
                    }
                    // Of a set that waits nobody knows how many records it has, and one that
                    // waited belongs to an earlier datagram.
                    let untold = untold || self.counts.not_understood != before;
                    let known = |n: u64| u32::try_from(n).ok().filter(|_| !untold);
                    let flows = known(self.counts.records - flows);
                    let options = known(self.counts.options - options);
                    self.records(packet.header.sequence_number, flows.zip(options));
                }
                _ => self.counts.malformed += 1,
            }
        }
        if whole {
            let missing = sets(bytes).saturating_sub(given.saturating_sub(replayed));
            self.counts.not_understood += missing;
        }
    }

    fn v5(&mut self, packet: &V5, now_ns: u64, to: &mut impl FnMut(&Record)) {
        // Two bits say how, the others one of how many.
        let rate = u64::from(packet.header.sampling_interval & 0x3fff);
        if rate > 1 {
            self.rate = Some(Sampling { rate, from: "header" });
        }
        for flow in &packet.flowsets {
            let mut fields = Fields {
                ends: [Some(flow.src_addr.into()), Some(flow.dst_addr.into())],
                ports: [flow.src_port, flow.dst_port],
                protocol: flow.protocol_number,
                ..Fields::default()
            };
            fields.ways[0] = Way {
                bytes: Some(flow.d_octets.into()),
                packets: Some(flow.d_pkts.into()),
                flags: Some(flow.tcp_flags),
            };
            self.flow(&fields, now_ns, to);
        }
        let records = packet.flowsets.len() as u32;
        self.sequence(packet.header.flow_sequence, Some(records), Unit::Records);
    }

    fn v9(&mut self, body: &v9::FlowSetBody, now_ns: u64, to: &mut impl FnMut(&Record)) {
        match body {
            v9::FlowSetBody::Template(sent) => self.counts.templates += sent.templates.len() as u64,
            v9::FlowSetBody::OptionsTemplate(sent) => {
                self.counts.templates += sent.templates.len() as u64;
            }
            v9::FlowSetBody::Data(data) => self.v9_records(data, now_ns, to),
            v9::FlowSetBody::OptionsData(data) => self.v9_options(data),
            // There was no room for it to wait; the parser has counted that.
            v9::FlowSetBody::NoTemplate(_) => {}
            v9::FlowSetBody::Empty => self.counts.not_understood += 1,
        }
    }

    fn v9_records(&mut self, data: &v9::Data, now_ns: u64, to: &mut impl FnMut(&Record)) {
        for record in &data.fields {
            let mut fields = Fields::default();
            for (field, value) in record {
                fields.v9(*field, value);
            }
            self.flow(&fields, now_ns, to);
        }
    }

    fn v9_options(&mut self, data: &v9::OptionsData) {
        for record in &data.fields {
            let mut fields = Fields::default();
            for (field, value) in &record.options_fields {
                fields.v9(*field, value);
            }
            self.option(&fields);
        }
    }

    fn ipfix(&mut self, body: &ipfix::FlowSetBody, now_ns: u64, to: &mut impl FnMut(&Record)) {
        use ipfix::FlowSetBody as Body;
        let all = |record: &[ipfix::IPFixFieldPair]| {
            let mut fields = Fields::default();
            for (field, value) in record {
                fields.ipfix(*field, value);
            }
            fields
        };
        match body {
            Body::Template(_)
            | Body::V9Template(_)
            | Body::OptionsTemplate(_)
            | Body::V9OptionsTemplate(_) => self.counts.templates += 1,
            Body::Templates(sent) => self.counts.templates += sent.len() as u64,
            Body::V9Templates(sent) => self.counts.templates += sent.len() as u64,
            Body::OptionsTemplates(sent) => self.counts.templates += sent.len() as u64,
            Body::V9OptionsTemplates(sent) => self.counts.templates += sent.len() as u64,
            Body::Data(data) => {
                for record in &data.fields {
                    self.flow(&all(record), now_ns, to);
                }
            }
            Body::OptionsData(data) => {
                for record in &data.fields {
                    self.option(&all(record));
                }
            }
            Body::V9Data(data) => self.v9_records(data, now_ns, to),
            Body::V9OptionsData(data) => self.v9_options(data),
            Body::NoTemplate(_) => {}
            Body::Empty => self.counts.not_understood += 1,
        }
    }

    /// A record of options: all that matters here is how packets are sampled.
    fn option(&mut self, fields: &Fields) {
        self.counts.options += 1;
        let Some(rate) = fields.rate() else { return };
        let Some(sampler) = fields.sampler else {
            self.rate = Some(Sampling { rate, from: "options template" });
            return;
        };
        if let Some(known) = self.samplers.iter_mut().find(|(known, _)| *known == sampler) {
            known.1 = rate;
        } else if self.samplers.len() < SAMPLERS {
            self.samplers.push((sampler, rate));
        }
    }

    /// How the packets of a record were sampled: by its own word, by that of its sampler, by that
    /// for all, or by that of the only sampler there is.
    fn sampled(&self, fields: &Fields) -> Sampling {
        let from = "options template";
        let told = |&(_, rate): &(u64, u64)| Sampling { rate, from };
        let by_sampler = || {
            let sampler = fields.sampler?;
            self.samplers.iter().find(|(known, _)| *known == sampler).map(told)
        };
        let by_only = || match &self.samplers[..] {
            [only] if fields.sampler.is_none() => Some(told(only)),
            _ => None,
        };
        let own = fields.rate().map(|rate| Sampling { rate, from: "record" });
        own.or_else(by_sampler)
            .or(self.rate)
            .or_else(by_only)
            .unwrap_or(Sampling { rate: 1, from: "" })
    }

    /// A record of a flow.
    fn flow(&mut self, fields: &Fields, now_ns: u64, to: &mut impl FnMut(&Record)) {
        self.counts.records += 1;
        let sampling = self.sampled(fields);
        let Some(records) = fields.records(now_ns, sampling.rate) else {
            self.counts.without_addresses += 1;
            return;
        };
        let counts = &mut self.counts;
        counts.counted += 1;
        counts.estimated += u64::from(sampling.rate > 1);
        self.used = Some(sampling);
        let tcp = fields.protocol == protocol::TCP;
        counts.without_flags += u64::from(tcp && fields.ways[0].flags.is_none());
        counts.without_packets += u64::from(fields.ways[0].packets.is_none());
        for record in records.iter().flatten() {
            counts.packets = counts.packets.saturating_add(record.packets);
            counts.bytes = counts.bytes.saturating_add(record.bytes);
            to(record);
        }
    }

    /// The number of a datagram of IPFIX with so many records of flows and of options. By the
    /// standard it counts the records of all kinds before it; some count those of flows with its own.
    fn records(&mut self, number: u32, here: Option<(u32, u32)>) {
        let own = self.last.zip(here).map(|(last, (flows, _))| last.wrapping_add(flows));
        if self.includes.is_none() && self.expected.is_some() && self.expected != own {
            let matches = [self.expected, own].map(|should| should == Some(number));
            self.includes = match matches {
                [true, false] => Some(false),
                [false, true] => Some(true),
                _ => None,
            };
        }
        if self.includes == Some(true) {
            self.expected = own;
        }
        let next = here.map(|(flows, options)| flows.saturating_add(options));
        self.sequence(number, next, Unit::Records);
    }

    /// Compares the number of a datagram with what it should be, and says what the next should be:
    /// this one and so many more, `None` if nobody knows.
    fn sequence(&mut self, number: u32, next: Option<u32>, unit: Unit) {
        /// Numbers that a late datagram is behind; who is further behind began again.
        const LATE: u32 = 1000;
        /// Numbers that may be missing; who is further ahead counts something else now.
        const LOST: u32 = 1 << 20;
        if let Some(expected) = self.expected {
            let ahead = number.wrapping_sub(expected);
            if ahead > LOST {
                self.counts.out_of_order += 1;
                if expected.wrapping_sub(number) <= LATE {
                    return;
                }
            } else {
                match unit {
                    Unit::Records => self.counts.records_lost += u64::from(ahead),
                    Unit::Datagrams => self.counts.datagrams_lost += u64::from(ahead),
                }
            }
        }
        self.last = Some(number);
        self.expected = next.map(|next| number.wrapping_add(next));
    }

    /// What of it is not known, in words.
    pub fn not_known(&self) -> Vec<&'static str> {
        let Counts { counted, without_flags, without_packets, records, without_addresses, .. } =
            self.counts;
        let mut unknown = Vec::new();
        if without_flags > 0 {
            unknown.push("handshakes of records without TCP flags");
        }
        if without_packets > 0 && counted > 0 {
            unknown.push("packets of records that count bytes alone");
        }
        if without_addresses > 0 && without_addresses == records {
            unknown.push("flows: its records have no addresses");
        }
        unknown
    }

    /// One object.
    pub fn to_json(&self) -> Value {
        let counts = self.counts();
        let Origin { address, version, domain } = self.origin;
        let list = counts.list().into_iter();
        let list: Value = list.map(|(name, times)| (name.to_owned(), Value::from(times))).collect();
        json!({
            "exporter": address,
            "version": version,
            "domain": domain,
            "datagrams": counts.datagrams,
            "records": counts.records,
            "counted": counts.counted,
            "packets": counts.packets,
            "bytes": counts.bytes,
            "templates_sent": counts.templates,
            "sampling": self.sampling().map(|sampling| {
                json!({ "rate": sampling.rate, "from": sampling.from, "records": counts.estimated })
            }),
            "ledger": list,
            "not_known": self.not_known(),
        })
    }
}

/// What the numbers of datagrams count.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Records,
    Datagrams,
}

/// The sets of a datagram of NetFlow 9 or IPFIX, by their headers.
fn sets(bytes: &[u8]) -> u64 {
    let half = |at: usize| {
        let part = bytes.get(at..).and_then(<[u8]>::first_chunk);
        part.map(|part| usize::from(u16::from_be_bytes(*part)))
    };
    let (mut sets, mut start) = (0, 0);
    while let Some(version) = half(start) {
        let (mut at, end) = match version {
            9 => (start + 20, bytes.len()),
            10 => (start + 16, (start + half(start + 2).unwrap_or(0)).min(bytes.len())),
            _ => break,
        };
        if end <= start {
            break;
        }
        while at + 4 <= end {
            let Some(length) = half(at + 2).filter(|&length| length >= 4) else { break };
            sets += 1;
            at += length;
        }
        start = end;
    }
    sets
}
