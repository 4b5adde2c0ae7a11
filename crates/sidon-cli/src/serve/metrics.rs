//! `/metrics`: what a Prometheus server reads, from the last snapshot.
//!
//! The number of series is fixed: labels are outcomes, reasons, tables and ranks of the program's
//! own. Of the heaviest services ten have names and all else is `other`; flows have ranks alone.
//! OpenMetrics is served to those who ask for it, and the older text to all others.

use super::snapshot::{Snapshot, Status};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::{Registry, Unit},
};
use sidon_traffic::monitor::{alarms::KINDS, connections::OUTCOMES, sizes};
use std::{fmt, sync::Arc};

/// The older text format.
pub(super) const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
/// OpenMetrics.
pub(super) const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Services with names, and flows with ranks.
const TOP: usize = 10;
/// Tables that can be full; what is refused by any other is `other`.
const TABLES: [&str; 9] = [
    "sizes",
    "sources_v4",
    "sources_v6",
    "connections",
    "known_sources",
    "subnet_counts",
    "p2p_pairs",
    "p2p_hosts",
    "machines",
];
/// Tables that can have no answer.
const UNSURE: [&str; 3] = ["connections", "p2p_pairs", "machines"];

/// The metrics of a snapshot, as OpenMetrics or as the older text.
pub(super) fn encode(snapshot: Arc<Snapshot>, open: bool) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("sidon");
    registry.register_collector(Box::new(Scrape(snapshot)));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(if open { text } else { plain(&text) })
}

#[derive(Debug)]
struct Scrape(Arc<Snapshot>);

/// One label and its value.
type Label = [(&'static str, String); 1];

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Families { encoder: &mut encoder };
        self.traffic(&mut to)?;
        self.ledger(&mut to)?;
        self.memory(&mut to)?;
        self.connections(&mut to)?;
        self.alarms(&mut to)?;
        self.top(&mut to)
    }
}

impl Scrape {
    fn traffic(&self, to: &mut Families<'_, '_>) -> fmt::Result {
        let Snapshot { report, status, .. } = &*self.0;
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        let about =
            to.encoder.encode_descriptor("build", "The program", None, version.metric_type())?;
        version.encode(about)?;
        let ledger = &report.ledger;
        to.counter("packets", "Frames that the source gave", None, ledger.seen)?;
        to.counter(
            "wire",
            "Bytes on the wire of all frames seen",
            Some(Unit::Bytes),
            ledger.wire_bytes,
        )?;
        let running = u64::from(*status == Status::Running);
        to.gauge("source_running", "Whether packets still come", None, running as f64)?;
        let last = report.times.map_or(0.0, |(_, last)| last as f64 / 1e9);
        let about = "The time of the last packet";
        to.gauge("last_packet_timestamp", about, Some(Unit::Seconds), last)?;
        let about = "When these figures were made";
        let made = self.0.made_ns as f64 / 1e9;
        to.gauge("snapshot_timestamp", about, Some(Unit::Seconds), made)?;
        let about = "How long the last report took the thread that feeds";
        to.gauge("report_duration", about, Some(Unit::Seconds), self.0.took.as_secs_f64())?;
        let about = "Source addresses seen for the first time";
        to.counter("new_sources", about, None, report.new_sources_total)
    }

    fn ledger(&self, to: &mut Families<'_, '_>) -> fmt::Result {
        let ledger = &self.0.report.ledger;
        let fates = [
            ("decoded", ledger.decoded),
            ("filtered", ledger.filtered),
            ("undecoded", ledger.undecoded_total()),
        ];
        let about = "Frames by what became of them; their sum is sidon_packets_total";
        to.counters("ledger_packets", about, "fate", fates)?;
        let refused = by_table(&ledger.refused, &TABLES);
        to.counters("refused", "What a full table did not take in", "table", refused)?;
        let of_source = |name| {
            let found = ledger.source.iter().find(|(known, _)| *known == name);
            found.map_or(0, |(_, times)| *times)
        };
        let about = "Frames that the kernel saw on the interface";
        to.counter("kernel_received_packets", about, None, of_source("kernel_received"))?;
        let about = "Those of them that there was no room for in the ring";
        to.counter("kernel_dropped_packets", about, None, of_source("kernel_dropped"))?;
        let unknown = by_table(&ledger.dont_know, &UNSURE);
        to.counters("dont_know", "Questions that a table could not answer", "table", unknown)
    }

    fn memory(&self, to: &mut Families<'_, '_>) -> fmt::Result {
        let Snapshot { report, .. } = &*self.0;
        let kinds = [("budget", report.budget), ("tables", report.allocated)];
        let kinds = kinds.map(|(kind, bytes)| (kind, bytes as f64));
        let about = "Memory that the tables may take and take";
        to.gauges("memory", about, Some(Unit::Bytes), "kind", kinds)?;
        let resident = self.0.now().resident.unwrap_or(0) as f64;
        let about = "Memory of the whole process in use; 0 if the system does not tell";
        to.gauge("resident_memory", about, Some(Unit::Bytes), resident)
    }

    fn connections(&self, to: &mut Families<'_, '_>) -> fmt::Result {
        let Snapshot { report, .. } = &*self.0;
        let counts = &report.connections;
        let present = OUTCOMES.into_iter().zip(counts.present.map(|n| n as f64));
        let about = "TCP connections that are there, by what they would be if nothing more came";
        to.gauges("connections", about, None, "state", present)?;
        let ended = counts.by_state.iter().zip(counts.present).map(|(all, now)| all - now);
        let about = "TCP connections that ended, by outcome";
        to.counters("connections_ended", about, "state", OUTCOMES.into_iter().zip(ended))?;
        let about = "TCP connections whose handshake is not complete";
        to.gauge("half_open_connections", about, None, counts.half_open as f64)?;
        let about = "The most half-open TCP connections at a time";
        to.gauge("half_open_connections_peak", about, None, counts.peak_half_open as f64)?;
        let about = "TCP connections whose handshake was seen and no end";
        to.gauge("open_connections", about, None, counts.open as f64)?;
        let about = "TCP connections that came about";
        to.counter("connections_came_about", about, None, counts.came_about)?;
        let about = "The chance that a packet of a new connection is taken for another's";
        to.gauge("stranger", about, Some(Unit::Ratios), report.stranger_rate)
    }

    fn alarms(&self, to: &mut Families<'_, '_>) -> fmt::Result {
        let alarms = &self.0.report.alarms;
        let of = |kind| alarms.iter().filter(move |alarm| alarm.kind == kind);
        let raised = KINDS.map(|kind| (kind, of(kind).count() as u64));
        to.counters("alarms", "Alarms raised and listed", "kind", raised)?;
        let about = "Alarms that there was no room to list";
        to.counter("alarms_unlisted", about, None, self.0.report.alarms_unlisted)?;
        let open = |kind| of(kind).filter(|alarm| alarm.closed.is_none()).count() as f64;
        let open = KINDS.map(|kind| (kind, open(kind)));
        to.gauges("alarms_open", "Alarms whose condition holds", None, "kind", open)
    }

    fn top(&self, to: &mut Families<'_, '_>) -> fmt::Result {
        let Snapshot { report, .. } = &*self.0;
        let named = |entries: Vec<(String, u64)>| {
            let sum = entries.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
            let other = report.ledger.wire_bytes.saturating_sub(sum);
            let all = entries.into_iter().chain([("other".to_owned(), other)]);
            all.map(|(name, bytes)| (name, bytes as f64)).collect::<Vec<_>>()
        };
        let ports = report.ports.entries.iter().take(TOP);
        let ports = ports
            .map(|entry| (sizes::port_name(entry.key).to_string(), entry.amounts[0].most))
            .collect();
        let about = "Bytes of the heaviest services, at most; other is all else on the wire";
        to.gauges("top_port", about, Some(Unit::Bytes), "port", named(ports))?;
        let flows = (1..).zip(report.flows.entries.iter().take(TOP));
        let flows = flows
            .map(|(rank, entry): (u32, _)| (rank.to_string(), entry.amounts[0].most))
            .collect();
        let about = "Bytes of the heaviest flows by rank, at most; other is all else on the wire";
        to.gauges("top_flow", about, Some(Unit::Bytes), "rank", named(flows))
    }
}

/// The times of each of these, and of all others together.
fn by_table(list: &[(&'static str, u64)], names: &[&'static str]) -> Vec<(&'static str, u64)> {
    let mut times: Vec<_> = names.iter().map(|name| (*name, 0)).chain([("other", 0)]).collect();
    for (name, n) in list {
        let place = names.iter().position(|known| known == name).unwrap_or(names.len());
        times[place].1 += n;
    }
    times
}

/// Families one after the other.
struct Families<'a, 'e> {
    encoder: &'a mut DescriptorEncoder<'e>,
}

impl Families<'_, '_> {
    fn counter(&mut self, name: &str, about: &str, unit: Option<Unit>, value: u64) -> fmt::Result {
        let metric = ConstCounter::new(value);
        let to = self.encoder.encode_descriptor(name, about, unit.as_ref(), MetricType::Counter)?;
        metric.encode(to)
    }

    fn counters<'v>(
        &mut self,
        name: &str,
        about: &str,
        label: &'static str,
        values: impl IntoIterator<Item = (&'v str, u64)>,
    ) -> fmt::Result {
        let mut to = self.encoder.encode_descriptor(name, about, None, MetricType::Counter)?;
        for (value, count) in values {
            let label: Label = [(label, value.to_owned())];
            ConstCounter::new(count).encode(to.encode_family(&label)?)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, about: &str, unit: Option<Unit>, value: f64) -> fmt::Result {
        let to = self.encoder.encode_descriptor(name, about, unit.as_ref(), MetricType::Gauge)?;
        ConstGauge::new(value).encode(to)
    }

    fn gauges<S: Into<String>>(
        &mut self,
        name: &str,
        about: &str,
        unit: Option<Unit>,
        label: &'static str,
        values: impl IntoIterator<Item = (S, f64)>,
    ) -> fmt::Result {
        let mut to =
            self.encoder.encode_descriptor(name, about, unit.as_ref(), MetricType::Gauge)?;
        for (value, gauge) in values {
            let label: Label = [(label, value.into())];
            ConstGauge::new(gauge).encode(to.encode_family(&label)?)?;
        }
        Ok(())
    }
}

/// OpenMetrics as the older text: there a counter's family has the name of its samples, and there is
/// no unit, no info and no end.
fn plain(text: &str) -> String {
    let (mut out, mut help) = (String::with_capacity(text.len()), "");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (end, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                kind => ("", kind),
            };
            out += &format!("# HELP {name}{end} {help}\n# TYPE {name}{end} {kind}\n");
        } else if !line.starts_with('#') {
            out += line;
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn open_metrics_read_as_the_older_text() {
        let open = "# HELP a_bytes Bytes.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n\
                    a_bytes_total{x=\"1\"} 2\n# HELP b B.\n# TYPE b info\nb_info{v=\"1\"} 1\n\
                    # HELP c C.\n# TYPE c gauge\nc 3\n# EOF\n";
        assert_eq!(
            plain(open),
            "# HELP a_bytes_total Bytes.\n# TYPE a_bytes_total counter\na_bytes_total{x=\"1\"} 2\n\
             # HELP b_info B.\n# TYPE b_info gauge\nb_info{v=\"1\"} 1\n\
             # HELP c C.\n# TYPE c gauge\nc 3\n"
        );
    }
}
