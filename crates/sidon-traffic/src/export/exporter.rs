//! One exporter: its templates, how it samples, what it sent and what did not arrive.

use super::{
    Counts, Limits, Origin, Record, SILENT, Templates,
    fields::{Fields, Way},
    numbers::{Numbers, Told},
    sets,
    variable::Variable,
    waiting::Waiting,
};
use crate::flow::protocol;
use netflow_parser::{
    NetflowPacket, NetflowParser,
    static_versions::v5::V5,
    variable_versions::{ipfix, v9},
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Samplers of an exporter whose rates are kept.
const SAMPLERS: usize = 16;

/// How many packets one that was counted stands for, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// One of so many packets is counted.
    pub rate: u64,
    /// `options template`, `record` or `header`.
    pub from: &'static str,
}

/// One exporter.
#[derive(Debug)]
pub struct Exporter {
    origin: Origin,
    parser: NetflowParser,
    counts: Counts,
    numbers: Numbers,
    /// Sets that wait for their templates, and the records of those that waited.
    waiting: Waiting,
    replayed: u64,
    /// Templates that this datagram tells.
    told: Vec<u16>,
    variable: Variable,
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
        let parser = NetflowParser::builder()
            .with_allowed_versions(&[version])
            .with_cache_size(limits.templates)
            .with_max_field_count(limits.fields)
            .with_max_records_per_flowset(1 << 16)
            // Of sets without a template all bytes are given, to wait here.
            .with_max_error_sample_size(1 << 16)
            .with_template_store(Arc::<Templates>::clone(templates))
            .with_template_store_scope(format!("{address}/{version}/{domain}"))
            .build()
            .ok()?;
        Some(Exporter {
            origin,
            parser,
            counts: Counts::default(),
            numbers: Numbers::default(),
            waiting: Waiting::new(limits.waiting),
            replayed: 0,
            told: Vec::new(),
            variable: Variable::new(limits.templates, limits.fields),
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
        counts.waiting = self.waiting.len();
        counts.given_up += self.waiting.given_up();
        counts.unexplained = counts.unexplained.saturating_sub(self.replayed);
        counts
    }

    /// Takes in a datagram.
    pub(super) fn take(&mut self, bytes: &[u8], now_ns: u64, to: &mut impl FnMut(&Record)) {
        self.counts.datagrams += 1;
        self.last_ns = now_ns;
        self.waiting.expire(now_ns);
        self.told.clear();
        let full = (self.origin.version == 10).then(|| self.variable.filled(self.origin, bytes));
        let full = full.flatten();
        let bytes = full.as_deref().unwrap_or(bytes);
        let parsed = self.parser.parse_bytes(bytes);
        let whole = parsed.error.is_none() && !parsed.packets.is_empty();
        self.counts.malformed += u64::from(!whole);
        let mut given = 0;
        for packet in &parsed.packets {
            let before = self.counts;
            match packet {
                NetflowPacket::V5(packet) => self.v5(packet, now_ns, to),
                NetflowPacket::V9(packet) => {
                    given += packet.flowsets.len() as u64;
                    let all = self.v9_sets(&packet.flowsets, now_ns, to) && whole;
                    if !all {
                        // Some count the records of templates here, too.
                        let here = self.counts.since(&before);
                        let known = here.records + here.options + here.templates;
                        self.counts.unexplained +=
                            u64::from(packet.header.count).saturating_sub(known);
                    }
                    let told = self.numbers.next(packet.header.sequence_number, 1);
                    self.counts.datagrams_lost += told.missing;
                    self.counts.out_of_order += u64::from(told.out_of_order);
                }
                NetflowPacket::IPFix(packet) => {
                    given += packet.flowsets.len() as u64;
                    let all = self.ipfix_sets(&packet.flowsets, now_ns, to) && whole;
                    let here = self.counts.since(&before);
                    let [flows, options] =
                        [here.records, here.options].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
                    let number = packet.header.sequence_number;
                    let told = self.numbers.ipfix(number, flows, options, all);
                    self.records_told(told);
                }
                _ => self.counts.malformed += 1,
            }
        }
        if whole {
            self.counts.not_understood += (sets::of(bytes).count() as u64).saturating_sub(given);
        }
        self.replay(now_ns, to);
    }

    /// Takes in the sets that waited for the templates of this datagram, each as a message of its
    /// own.
    fn replay(&mut self, now_ns: u64, to: &mut impl FnMut(&Record)) {
        self.told.sort_unstable();
        for set in self.waiting.take(&self.told) {
            let before = self.counts;
            let alone = [(set.template, &set.bytes[..])].into_iter();
            let Some(mut message) = sets::message(self.origin, alone) else {
                self.counts.given_up += 1;
                continue;
            };
            if self.origin.version == 10
                && let Some(full) = self.variable.filled(self.origin, &message)
            {
                message = full;
            }
            for packet in &self.parser.parse_bytes(&message).packets {
                match packet {
                    NetflowPacket::V9(packet) => self.v9_sets(&packet.flowsets, now_ns, to),
                    NetflowPacket::IPFix(packet) => self.ipfix_sets(&packet.flowsets, now_ns, to),
                    _ => false,
                };
            }
            let here = self.counts.since(&before);
            self.replayed += here.records + here.options;
            if here.records + here.options > 0 {
                self.counts.replayed += 1;
            } else {
                self.counts.given_up += 1;
            }
        }
    }

    fn records_told(&mut self, told: Told) {
        self.counts.records_lost += told.missing;
        self.counts.unexplained += told.uncounted;
        self.counts.out_of_order += u64::from(told.out_of_order);
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
        let told = self.numbers.next(packet.header.flow_sequence, records);
        self.records_told(told);
    }

    /// Takes in sets, and says whether all of them were counted.
    fn v9_sets(&mut self, sets: &[v9::FlowSet], now_ns: u64, to: &mut impl FnMut(&Record)) -> bool {
        let mut all = true;
        for set in sets {
            match &set.body {
                v9::FlowSetBody::Template(sent) => {
                    self.told(sent.templates.iter().map(|one| one.template_id));
                }
                v9::FlowSetBody::OptionsTemplate(sent) => {
                    self.told(sent.templates.iter().map(|one| one.template_id));
                }
                v9::FlowSetBody::Data(data) => self.v9_records(data, now_ns, to),
                v9::FlowSetBody::OptionsData(data) => self.v9_options(data),
                v9::FlowSetBody::NoTemplate(set) => {
                    self.waiting.keep(set.template_id, &set.raw_data, now_ns);
                    all = false;
                }
                v9::FlowSetBody::Empty => {
                    self.counts.not_understood += 1;
                    all = false;
                }
            }
        }
        all
    }

    /// Notes templates.
    fn told(&mut self, templates: impl Iterator<Item = u16>) {
        let before = self.told.len();
        self.told.extend(templates);
        self.counts.templates += (self.told.len() - before) as u64;
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

    /// Takes in sets, and says whether all of them were counted.
    fn ipfix_sets(
        &mut self,
        sets: &[ipfix::FlowSet],
        now_ns: u64,
        to: &mut impl FnMut(&Record),
    ) -> bool {
        use ipfix::FlowSetBody as Body;
        let fields = |record: &[ipfix::IPFixFieldPair]| {
            let mut fields = Fields::default();
            for (field, value) in record {
                fields.ipfix(*field, value);
            }
            fields
        };
        let mut all = true;
        for set in sets {
            match &set.body {
                Body::Template(sent) => self.told([sent.template_id].into_iter()),
                Body::V9Template(sent) => self.told([sent.template_id].into_iter()),
                Body::OptionsTemplate(sent) => self.told([sent.template_id].into_iter()),
                Body::V9OptionsTemplate(sent) => self.told([sent.template_id].into_iter()),
                Body::Templates(sent) => self.told(sent.iter().map(|one| one.template_id)),
                Body::V9Templates(sent) => self.told(sent.iter().map(|one| one.template_id)),
                Body::OptionsTemplates(sent) => self.told(sent.iter().map(|one| one.template_id)),
                Body::V9OptionsTemplates(sent) => self.told(sent.iter().map(|one| one.template_id)),
                Body::Data(data) => {
                    for record in &data.fields {
                        self.flow(&fields(record), now_ns, to);
                    }
                }
                Body::OptionsData(data) => {
                    for record in &data.fields {
                        self.option(&fields(record));
                    }
                }
                Body::V9Data(data) => self.v9_records(data, now_ns, to),
                Body::V9OptionsData(data) => self.v9_options(data),
                Body::NoTemplate(set) => {
                    self.waiting.keep(set.template_id, &set.raw_data, now_ns);
                    all = false;
                }
                Body::Empty => {
                    self.counts.not_understood += 1;
                    all = false;
                }
            }
        }
        all
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
