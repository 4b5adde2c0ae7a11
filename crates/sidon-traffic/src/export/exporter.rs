//! One exporter: its templates, its sampling, and counters of sent and lost records.

use super::{
    Counts, Limits, Origin, Record, SILENT, Templates,
    fields::{Fields, Way},
    layout::{self, Layout},
    numbers::{Numbers, Told},
    sets::{self, half, word},
    waiting::Waiting,
};
use crate::{Figure, flow::protocol};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// Most samplers of an exporter whose rates are stored.
const SAMPLERS: usize = 16;

/// The sampling rate, and where the exporter reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// One packet of `rate` packets is counted.
    pub rate: u64,
    /// `options template`, `record` or `header`.
    pub from: &'static str,
}

/// One exporter.
#[derive(Debug)]
pub struct Exporter {
    origin: Origin,
    limits: Limits,
    /// Layouts by template number, each with its number in order of arrival.
    layouts: BTreeMap<u16, (u64, Arc<Layout>)>,
    /// Template numbers in order of arrival, and the number of the next arrival.
    arrivals: BTreeMap<u64, u16>,
    arrival: u64,
    counts: Counts,
    numbers: Numbers,
    /// Sets that wait for their templates, and the number of records replayed from them.
    waiting: Waiting,
    replayed: u64,
    /// Numbers of the templates in this datagram.
    told: Vec<u16>,
    last_ns: u64,
    /// The rate for all packets, and the rates of single samplers.
    rate: Option<Sampling>,
    samplers: BTreeMap<u64, u64>,
    /// The rate that was used last.
    used: Option<Sampling>,
    /// Messages, sets, templates, fields and records that were read.
    steps: u64,
}

impl Exporter {
    /// An exporter that has sent nothing.
    pub(super) fn new(origin: Origin, limits: Limits) -> Self {
        Exporter {
            origin,
            limits,
            layouts: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            arrival: 0,
            counts: Counts::default(),
            numbers: Numbers::default(),
            waiting: Waiting::new(limits.waiting),
            replayed: 0,
            told: Vec::new(),
            last_ns: 0,
            rate: None,
            samplers: BTreeMap::new(),
            used: None,
            steps: 0,
        }
    }

    /// The address, version and domain of the exporter.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The time of its last datagram.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// The sampling that was used last; `None` if packets are not sampled.
    pub fn sampling(&self) -> Option<Sampling> {
        self.used.filter(|sampling| sampling.rate > 1)
    }

    /// Whether another exporter may replace this one.
    pub(super) fn is_spare(&self, now_ns: u64) -> bool {
        self.counts.counted == 0 || now_ns.saturating_sub(self.last_ns) > SILENT
    }

    /// Counters of what this exporter sent.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts;
        counts.waiting = self.waiting.len();
        counts.given_up += self.waiting.given_up();
        counts.unexplained = counts.unexplained.saturating_sub(self.replayed);
        counts
    }

    /// The steps since the last call, see [`work`](crate::work).
    pub(super) fn take_steps(&mut self) -> u64 {
        std::mem::take(&mut self.steps) + self.waiting.take_steps()
    }

    /// Reads a datagram.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        templates: &mut Templates,
        to: &mut impl FnMut(&Record),
    ) {
        self.counts.datagrams += 1;
        self.last_ns = now_ns;
        self.waiting.expire(now_ns);
        self.told.clear();
        let whole = match self.origin.version {
            5 => self.v5(bytes, now_ns, to),
            9 => self.v9(bytes, now_ns, templates, to),
            _ => self.ipfix(bytes, now_ns, templates, to),
        };
        self.counts.malformed += u64::from(whole.is_none());
        self.replay(now_ns, templates, to);
    }

    /// Reads the sets that waited for the templates of this datagram.
    fn replay(&mut self, now_ns: u64, templates: &Templates, to: &mut impl FnMut(&Record)) {
        self.told.sort_unstable();
        self.told.dedup();
        for set in self.waiting.take(&self.told) {
            let before = self.counts;
            // The datagram may hold more templates than stay in memory.
            self.knows(set.template, templates);
            self.data(set.template, &set.bytes, now_ns, to);
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

    /// Reads a NetFlow 5 datagram. This and the methods below return `None` if the datagram
    /// contradicts itself.
    fn v5(&mut self, bytes: &[u8], now_ns: u64, to: &mut impl FnMut(&Record)) -> Option<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if half(rest, 0)? != 5 {
                return None;
            }
            rest = self.v5_message(rest, now_ns, to)?;
        }
        Some(())
    }

    /// Reads a NetFlow 5 message and returns the bytes behind it.
    fn v5_message<'a>(
        &mut self,
        bytes: &'a [u8],
        now_ns: u64,
        to: &mut impl FnMut(&Record),
    ) -> Option<&'a [u8]> {
        const HEADER: usize = 24;
        const RECORD: usize = 48;
        self.steps += 1;
        let count = usize::from(half(bytes, 2)?);
        let (number, sampling) = (word(bytes, 16)?, half(bytes, 22)?);
        let (records, rest) = bytes.get(HEADER..)?.split_at_checked(count * RECORD)?;
        // The upper two bits are the sampling mode, the others the interval.
        let rate = u64::from(sampling & 0x3fff);
        if rate > 1 {
            self.rate = Some(Sampling { rate, from: "header" });
        }
        for record in records.as_chunks::<RECORD>().0 {
            let address = |at: usize| <[u8; 4]>::try_from(record.get(at..at + 4)?).ok();
            let mut fields = Fields {
                ends: [address(0), address(4)].map(|end| end.map(Into::into)),
                ports: [half(record, 32), half(record, 34)].map(Option::unwrap_or_default),
                protocol: record[38],
                ..Fields::default()
            };
            fields.ways[0] = Way {
                packets: word(record, 16).map(u64::from),
                bytes: word(record, 20).map(u64::from),
                flags: Some(record[37]),
            };
            self.flow(&fields, now_ns, to);
        }
        let told = self.numbers.next(number, count as u32);
        self.records_told(told);
        Some(rest)
    }

    /// Reads a NetFlow 9 datagram.
    fn v9(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        templates: &mut Templates,
        to: &mut impl FnMut(&Record),
    ) -> Option<()> {
        let (count, number) = (half(bytes, 2)?, word(bytes, 12)?);
        let before = self.counts;
        let (whole, all) = self.sets(bytes.get(20..)?, now_ns, templates, to);
        if !all {
            // Some exporters count the records of templates, too.
            let here = self.counts.since(&before);
            let known = here.records + here.options + here.templates;
            self.counts.unexplained += u64::from(count).saturating_sub(known);
        }
        let told = self.numbers.next(number, 1);
        self.counts.datagrams_lost += told.missing;
        self.counts.out_of_order += u64::from(told.out_of_order);
        whole.then_some(())
    }

    /// Reads an IPFIX datagram, which may hold several messages.
    fn ipfix(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        templates: &mut Templates,
        to: &mut impl FnMut(&Record),
    ) -> Option<()> {
        let (mut rest, mut whole) = (bytes, true);
        while !rest.is_empty() {
            self.steps += 1;
            let (version, length, number) = (half(rest, 0)?, half(rest, 2)?, word(rest, 8)?);
            let (message, after) = rest.split_at_checked(length.into())?;
            if version != 10 {
                return None;
            }
            let before = self.counts;
            let (sound, all) = self.sets(message.get(16..)?, now_ns, templates, to);
            let here = self.counts.since(&before);
            let [flows, options] =
                [here.records, here.options].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
            let told = self.numbers.ipfix(number, flows, options, all);
            self.records_told(told);
            whole &= sound;
            rest = after;
        }
        whole.then_some(())
    }

    /// Reads the sets of a message. Returns whether the message is well-formed, and whether every
    /// record in it was counted.
    fn sets(
        &mut self,
        body: &[u8],
        now_ns: u64,
        templates: &mut Templates,
        to: &mut impl FnMut(&Record),
    ) -> (bool, bool) {
        let (mut whole, mut all) = (true, true);
        for set in sets::of(body) {
            self.steps += 1;
            match set {
                Ok((number @ 0..=3, body)) => whole &= self.templates(number, body, templates),
                Ok((number @ 256.., body)) if self.knows(number, templates) => {
                    if !self.data(number, body, now_ns, to) {
                        self.counts.not_understood += 1;
                        all = false;
                    }
                }
                Ok((number @ 256.., body)) => {
                    self.waiting.keep(number, body, now_ns);
                    all = false;
                }
                Ok(_) => {
                    self.counts.not_understood += 1;
                    all = false;
                }
                Err(_) => whole = false,
            }
        }
        (whole, all && whole)
    }

    /// Reads a set of templates; `false` if it is malformed.
    fn templates(&mut self, number: u16, body: &[u8], templates: &mut Templates) -> bool {
        // IPFIX numbers its template sets 2 and 3; NetFlow 9 uses 0 and 1.
        if self.origin.version == 9 && number > 1 {
            self.counts.not_understood += 1;
            return true;
        }
        let (fields, mut steps) = (self.limits.fields, 0);
        let read = layout::templates(number, body, fields, &mut steps, |id, layout| {
            let layout = templates.keep(self.origin, id, layout);
            self.learn(id, layout);
            self.counts.templates += 1;
            self.told.push(id);
        });
        self.steps += steps;
        read.is_ok()
    }

    /// Keeps a layout. The one that was sent longest ago makes room for it.
    fn learn(&mut self, id: u16, layout: Arc<Layout>) {
        self.steps += 1;
        if let Some((old, _)) = self.layouts.insert(id, (self.arrival, layout)) {
            self.arrivals.remove(&old);
        }
        self.arrivals.insert(self.arrival, id);
        self.arrival += 1;
        if self.layouts.len() > self.limits.templates
            && let Some((_, oldest)) = self.arrivals.pop_first()
        {
            self.layouts.remove(&oldest);
        }
    }

    /// Whether a template is known, here or among those kept for the file.
    fn knows(&mut self, id: u16, templates: &Templates) -> bool {
        if !self.layouts.contains_key(&id)
            && let Some(layout) = templates.get(self.origin, id)
        {
            self.learn(id, layout);
        }
        self.layouts.contains_key(&id)
    }

    /// Reads the records of a set whose template is known; `false` if it holds no record.
    fn data(
        &mut self,
        number: u16,
        body: &[u8],
        now_ns: u64,
        to: &mut impl FnMut(&Record),
    ) -> bool {
        let Some((_, layout)) = self.layouts.get(&number) else { return false };
        let layout = Arc::clone(layout);
        let mut records = layout.records(body);
        let mut any = false;
        loop {
            let mut fields = Fields::default();
            if !records.next(|field, value| fields.read(field, value)) {
                break;
            }
            any = true;
            if layout.options {
                self.option(&fields);
            } else {
                self.flow(&fields, now_ns, to);
            }
        }
        self.steps += records.steps();
        any || body.is_empty()
    }

    /// Reads an options record. Only the sampling rate is used.
    fn option(&mut self, fields: &Fields) {
        self.steps += 1;
        self.counts.options += 1;
        let Some(rate) = fields.rate() else { return };
        let Some(sampler) = fields.sampler else {
            self.rate = Some(Sampling { rate, from: "options template" });
            return;
        };
        if self.samplers.len() < SAMPLERS || self.samplers.contains_key(&sampler) {
            self.samplers.insert(sampler, rate);
        }
    }

    /// The sampling of a record: its own rate, else that of its sampler, else that for all packets,
    /// else that of the only sampler.
    fn sampled(&self, fields: &Fields) -> Sampling {
        let from = "options template";
        let told = |&rate: &u64| Sampling { rate, from };
        let by_sampler = || self.samplers.get(&fields.sampler?).map(told);
        let only = self.samplers.first_key_value().filter(|_| self.samplers.len() == 1);
        let by_only = || only.filter(|_| fields.sampler.is_none()).map(|(_, rate)| told(rate));
        let own = fields.rate().map(|rate| Sampling { rate, from: "record" });
        own.or_else(by_sampler)
            .or(self.rate)
            .or_else(by_only)
            .unwrap_or(Sampling { rate: 1, from: "" })
    }

    /// Counts a flow record.
    fn flow(&mut self, fields: &Fields, now_ns: u64, to: &mut impl FnMut(&Record)) {
        self.steps += 1;
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

    /// Properties of the traffic that the records of this exporter do not show, in words.
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
        let figure = if counts.estimated > 0 { Figure::unknown } else { Figure::exact };
        let mut json = json!({
            "exporter": address,
            "version": version,
            "domain": domain,
            "datagrams": counts.datagrams,
            "records": counts.records,
            "counted": counts.counted,
            "templates_sent": counts.templates,
            "sampling": self.sampling().map(|sampling| {
                json!({ "rate": sampling.rate, "from": sampling.from, "records": counts.estimated })
            }),
            "ledger": list,
            "not_known": self.not_known(),
        });
        figure(counts.packets).set(&mut json, "packets");
        figure(counts.bytes).set(&mut json, "bytes");
        json
    }
}
