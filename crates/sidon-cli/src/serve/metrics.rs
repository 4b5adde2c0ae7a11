//! `/metrics`: the figures that a Prometheus server reads, from the last snapshot.
//!
//! The number of series is fixed: labels are outcomes, reasons, tables and ranks of the program
//! itself. Ten services have names and the rest is `other`; flows have ranks only. Clients that
//! accept OpenMetrics get it, all others get the older text format. The formats differ in three
//! points: the older one has no `# UNIT` and no `# EOF`, and it names the family of a counter like
//! its samples, with `_total`.
//!
//! A metric that can be a bound or an estimate has three more samples: `sidon_figure_least` and
//! `sidon_figure_most` are the interval of the truth, and `sidon_figure_kind` names the certainty.
//! Their label `figure` is the metric's name without `sidon_`, and `of` is the value of its label.
//!
//! Written by hand: prometheus-client and its dependencies take 2 seconds of a release build and
//! write OpenMetrics only.

use super::snapshot::{Snapshot, Status};
use sidon_traffic::{
    figure::{Figure, Kind},
    monitor::{
        connections::OUTCOMES,
        incidents::{KINDS, Severity},
        services::RULES,
        sizes,
    },
};
use std::fmt::{Display, Write as _};

/// The content type of the older text format.
pub(super) const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The content type of OpenMetrics.
pub(super) const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Services with names, and flows with ranks.
const TOP: usize = 10;
/// Tables that can be full; refusals of any other table count as `other`.
const TABLES: [&str; 11] = [
    "sources_v4",
    "sources_v6",
    "connections",
    "connections_unsampled",
    "known_sources",
    "subnet_counts",
    "p2p_pairs",
    "p2p_pairs_evicted",
    "p2p_hosts",
    "machines",
    "services",
];
/// Tables that can answer don't-know.
const UNSURE: [&str; 3] = ["connections", "p2p_pairs", "machines"];

/// The metrics of a snapshot, as OpenMetrics or as the older text.
pub(super) fn encode(snapshot: &Snapshot, open: bool) -> String {
    let mut to = Families { text: String::with_capacity(32 << 10), figures: Vec::new(), open };
    let scrape = Scrape(snapshot);
    scrape.traffic(&mut to);
    scrape.ledger(&mut to);
    scrape.memory(&mut to);
    scrape.connections(&mut to);
    scrape.alarms(&mut to);
    scrape.top(&mut to);
    to.certainties();
    if open {
        to.text.push_str("# EOF\n");
    }
    to.text
}

struct Scrape<'a>(&'a Snapshot);

impl Scrape<'_> {
    fn traffic(&self, to: &mut Families) {
        let Snapshot { report, totals, status, .. } = self.0;
        to.info("build", "The program", "version", env!("CARGO_PKG_VERSION"));
        let about = "Frames that the source delivered";
        to.figure("packets", about, "", "counter", totals.packets);
        let about = "Bytes on the wire of all frames seen";
        to.figure("wire", about, "bytes", "counter", totals.wire_bytes);
        let running = u64::from(*status == Status::Running);
        to.gauge(
            "source_running",
            "1 while the source delivers packets, 0 after its end",
            "",
            running as f64,
        );
        let last = report.times.map_or(0.0, |(_, last)| last as f64 / 1e9);
        let about = "The time of the last packet";
        to.gauge("last_packet_timestamp", about, "seconds", last);
        let about = "The time of this report";
        let made = self.0.made_ns as f64 / 1e9;
        to.gauge("snapshot_timestamp", about, "seconds", made);
        let about = "The time that the engine spent on the last report";
        to.gauge("report_duration", about, "seconds", self.0.took.as_secs_f64());
        let about = "Source addresses seen for the first time in their period";
        to.figure("new_sources", about, "", "counter", totals.new_sources);
        self.saved(to);
    }

    fn saved(&self, to: &mut Families) {
        let saved = self.0.saved.clone().unwrap_or_default();
        to.counter("saved_files", "Periods written to a file", "", saved.files);
        let about = "Periods that could not be written";
        to.counter("save_failures", about, "", saved.failed);
        let about = "The time of the last packet in a file; 0 without a file";
        to.gauge("saved_until_timestamp", about, "seconds", saved.until_ns as f64 / 1e9);
    }

    fn ledger(&self, to: &mut Families) {
        let totals = &self.0.totals;
        let fates = [
            ("decoded", totals.decoded),
            ("filtered", totals.filtered),
            ("undecoded", totals.undecoded),
        ];
        let about = "Frames by result; their sum is sidon_packets_total";
        to.counters("ledger_packets", about, "fate", fates);
        let about = "Packets whose service is named, by the rule that names it";
        to.counters("service_packets", about, "rule", RULES.into_iter().zip(totals.services));
        let refused = by_table(&totals.refused, &TABLES);
        to.counters("refused", "Writes that a full table refused", "table", refused);
        let of_source = |name| {
            let found = totals.source.iter().find(|(known, _)| *known == name);
            found.map_or(0, |(_, times)| *times)
        };
        let about = "Frames that the kernel received on the interface";
        to.counter("kernel_received_packets", about, "", of_source("kernel_received"));
        let about = "Frames that the kernel dropped because the ring was full";
        to.counter("kernel_dropped_packets", about, "", of_source("kernel_dropped"));
        let unknown = by_table(&totals.dont_know, &UNSURE);
        to.counters("dont_know", "Lookups that a table could not answer", "table", unknown);
    }

    fn memory(&self, to: &mut Families) {
        let Snapshot { report, .. } = self.0;
        let kinds = [("budget", report.budget), ("tables", report.allocated)];
        let kinds = kinds.map(|(kind, bytes)| (kind, bytes as f64));
        let about = "Memory that the tables may allocate (budget) and have allocated (tables)";
        to.gauges("memory", about, "bytes", "kind", kinds);
        let resident = self.0.now.resident.unwrap_or(0) as f64;
        let about = "Memory of the whole process; 0 if the system does not report it";
        to.gauge("resident_memory", about, "bytes", resident);
    }

    fn connections(&self, to: &mut Families) {
        let Snapshot { report, totals, .. } = self.0;
        let counts = report.connection_figures();
        let present = OUTCOMES.into_iter().zip(counts.present);
        let about = "TCP connections that have not ended, by the outcome they have so far";
        to.figures("connections", about, "", "gauge", "state", present);
        let about = "TCP connections that ended, by outcome";
        let ended = OUTCOMES.into_iter().zip(totals.ended);
        to.figures("connections_ended", about, "", "counter", "state", ended);
        let about = "TCP connections now whose handshake is not complete";
        to.figure("half_open_connections", about, "", "gauge", counts.half_open);
        let about = "The largest number of half-open TCP connections at one time in this period";
        to.figure("half_open_connections_peak", about, "", "gauge", counts.peak_half_open);
        let about = "TCP connections now whose handshake was captured, and no FIN or RST";
        to.figure("open_connections", about, "", "gauge", counts.open);
        let about = "New TCP connections per followed one: 1 if all are followed";
        let one_in = 1u64 << report.connections.sampling.level;
        to.gauge("connections_sampled_one_in", about, "", one_in as f64);
        let about = "TCP connections whose handshake completed";
        to.figure("connections_came_about", about, "", "counter", totals.came_about);
        let about = "The chance that a packet of a new connection matches the cell of another";
        to.gauge("stranger", about, "ratios", report.stranger_rate);
    }

    fn alarms(&self, to: &mut Families) {
        let Snapshot { report, totals, .. } = self.0;
        let raised = KINDS.into_iter().zip(totals.alarms);
        to.counters("alarms", "Alarms raised", "kind", raised);
        let about = "Alarms that the list had no room for";
        to.counter("alarms_unlisted", about, "", totals.alarms_unlisted);
        let holds = |kind| {
            let of = report.alarms.iter().filter(|alarm| alarm.kind == kind);
            of.filter(|alarm| alarm.closed.is_none()).count() as f64
        };
        let open = KINDS.map(|kind| (kind, holds(kind)));
        let severity = |severity: Severity| {
            let of = report.alarms.iter().filter(|alarm| alarm.severity == severity);
            of.filter(|alarm| alarm.closed.is_none()).count() as f64
        };
        let by_severity = Severity::ALL.map(|one| (one.name(), severity(one)));
        to.gauges("incidents_open", "Incidents that go on", "", "severity", by_severity);
        to.gauges("alarms_open", "Alarms whose condition holds", "", "kind", open);
    }

    fn top(&self, to: &mut Families) {
        let Snapshot { report, .. } = self.0;
        let ports = report.ports.entries.iter().take(TOP);
        let ports = ports.map(|entry| {
            let [bytes, _] = report.service_amounts(entry.amounts);
            (sizes::port_name(entry.key), bytes)
        });
        let about = "Bytes of the heaviest services; other is a lower bound of all other bytes";
        to.figures("top_port", about, "bytes", "gauge", "port", self.with_other(ports));
        let flows = (1u32..).zip(report.flows.entries.iter().take(TOP));
        let flows = flows.map(|(rank, entry)| (rank.to_string(), report.amount(entry.amounts[0])));
        let about =
            "Bytes of the heaviest flows by rank; other is a lower bound of all other bytes";
        to.figures("top_flow", about, "bytes", "gauge", "rank", self.with_other(flows));
    }

    /// Adds `other` to these rows: the bytes on the wire minus the upper bounds of the rows, which
    /// is a lower bound.
    fn with_other(&self, rows: impl Iterator<Item = (String, Figure)>) -> Vec<(String, Figure)> {
        let mut rows: Vec<_> = rows.collect();
        let all = self.0.report.bytes();
        let sum = |end: fn(&Figure) -> Option<u64>| {
            rows.iter().try_fold(0, |sum: u64, (_, row)| Some(sum.saturating_add(end(row)?)))
        };
        let rest = |all: u64, end| sum(end).map_or(0, |sum| all.saturating_sub(sum));
        let most = all.most().map(|most| rest(most, |row| Some(row.least())));
        let other = match all.kind() {
            Kind::Unknown => Figure::unknown(rest(all.value(), |row| Some(row.value()))),
            _ => Figure::at_least(rest(all.least(), Figure::most), most),
        };
        rows.push(("other".to_owned(), other));
        rows
    }
}

/// The count of each named table, and `other` for the sum of all tables without a name here.
fn by_table(list: &[(&'static str, u64)], names: &[&'static str]) -> Vec<(&'static str, u64)> {
    let mut times: Vec<_> = names.iter().map(|name| (*name, 0)).chain([("other", 0)]).collect();
    for (name, n) in list {
        let place = names.iter().position(|known| known == name).unwrap_or(names.len());
        times[place].1 = u64::saturating_add(times[place].1, *n);
    }
    times
}

/// Metric families, written one after the other.
struct Families {
    text: String,
    /// The figures written so far, with the labels of their certainty.
    figures: Vec<(String, Figure)>,
    /// Whether the text is OpenMetrics.
    open: bool,
}

impl Families {
    /// The head of a family; returns the name of its samples.
    fn head(&mut self, name: &str, about: &str, unit: &str, kind: &str) -> String {
        let name = match unit {
            "" => format!("sidon_{name}"),
            unit => format!("sidon_{name}_{unit}"),
        };
        let sample = match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.clone(),
        };
        let (family, kind) = match (self.open, kind) {
            (true, kind) => (&name, kind),
            (false, "info") => (&sample, "gauge"),
            (false, kind) => (&sample, kind),
        };
        let _ = write!(self.text, "# HELP {family} {about}.\n# TYPE {family} {kind}\n");
        if self.open && !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {family} {unit}");
        }
        sample
    }

    fn labelled<S: Display>(
        &mut self,
        sample: &str,
        label: &str,
        values: impl IntoIterator<Item = (S, impl Display)>,
    ) {
        for (name, value) in values {
            let _ = writeln!(self.text, "{sample}{{{label}=\"{}\"}} {value}", escaped(&name));
        }
    }

    fn figure(&mut self, name: &str, about: &str, unit: &str, kind: &str, figure: Figure) {
        let sample = self.head(name, about, unit, kind);
        let _ = writeln!(self.text, "{sample} {}", figure.value());
        self.figures.push((named(&sample), figure));
    }

    fn figures<S: Display>(
        &mut self,
        name: &str,
        about: &str,
        unit: &str,
        kind: &str,
        label: &str,
        values: impl IntoIterator<Item = (S, Figure)>,
    ) {
        let sample = self.head(name, about, unit, kind);
        for (name, figure) in values {
            self.labelled(&sample, label, [(&name, figure.value())]);
            self.figures.push((format!("{},of=\"{}\"", named(&sample), escaped(&name)), figure));
        }
    }

    /// The intervals and kinds of all figures written so far.
    fn certainties(&mut self) {
        let figures = std::mem::take(&mut self.figures);
        let least = self.head("figure_least", "The truth is this or more", "", "gauge");
        for (labels, figure) in &figures {
            let _ = writeln!(self.text, "{least}{{{labels}}} {}", figure.least());
        }
        let about = "The truth is this or less; +Inf without an upper bound";
        let most = self.head("figure_most", about, "", "gauge");
        for (labels, figure) in &figures {
            let end = figure.most().map_or("+Inf".to_owned(), |most| most.to_string());
            let _ = writeln!(self.text, "{most}{{{labels}}} {end}");
        }
        let about = "Always 1; the label kind is the certainty of the figure";
        let kind = self.head("figure_kind", about, "", "gauge");
        for (labels, figure) in &figures {
            let name = figure.kind().name();
            let _ = writeln!(self.text, "{kind}{{{labels},kind=\"{name}\"}} 1");
        }
    }

    fn info(&mut self, name: &str, about: &str, label: &str, value: &str) {
        let sample = self.head(name, about, "", "info");
        self.labelled(&sample, label, [(value, 1)]);
    }

    fn counter(&mut self, name: &str, about: &str, unit: &str, value: u64) {
        let sample = self.head(name, about, unit, "counter");
        let _ = writeln!(self.text, "{sample} {value}");
    }

    fn counters<'v>(
        &mut self,
        name: &str,
        about: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'v str, u64)>,
    ) {
        let sample = self.head(name, about, "", "counter");
        self.labelled(&sample, label, values);
    }

    fn gauge(&mut self, name: &str, about: &str, unit: &str, value: f64) {
        let sample = self.head(name, about, unit, "gauge");
        let _ = writeln!(self.text, "{sample} {value}");
    }

    fn gauges<S: Display>(
        &mut self,
        name: &str,
        about: &str,
        unit: &str,
        label: &str,
        values: impl IntoIterator<Item = (S, f64)>,
    ) {
        let sample = self.head(name, about, unit, "gauge");
        self.labelled(&sample, label, values);
    }
}

/// The label that names a metric in the families of certainties.
fn named(sample: &str) -> String {
    format!("figure=\"{}\"", sample.trim_start_matches("sidon_"))
}

/// A label's value as both formats write it.
fn escaped(value: &impl Display) -> String {
    value.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::{Families, Figure};

    fn text(open: bool) -> String {
        let mut to = Families { text: String::new(), figures: Vec::new(), open };
        to.counters("a", "As", "x", [("1", 2)]);
        to.counter("wire", "On the wire", "bytes", 7);
        to.info("b", "B", "v", "a\"\\\n");
        to.gauge("c", "C", "seconds", 0.5);
        to.text
    }

    #[test]
    fn both_formats_name_families_as_their_readers_expect() {
        assert_eq!(
            text(true),
            "# HELP sidon_a As.\n# TYPE sidon_a counter\nsidon_a_total{x=\"1\"} 2\n\
             # HELP sidon_wire_bytes On the wire.\n# TYPE sidon_wire_bytes counter\n\
             # UNIT sidon_wire_bytes bytes\nsidon_wire_bytes_total 7\n\
             # HELP sidon_b B.\n# TYPE sidon_b info\nsidon_b_info{v=\"a\\\"\\\\\\n\"} 1\n\
             # HELP sidon_c_seconds C.\n# TYPE sidon_c_seconds gauge\n\
             # UNIT sidon_c_seconds seconds\nsidon_c_seconds 0.5\n"
        );
        assert_eq!(
            text(false),
            "# HELP sidon_a_total As.\n# TYPE sidon_a_total counter\nsidon_a_total{x=\"1\"} 2\n\
             # HELP sidon_wire_bytes_total On the wire.\n# TYPE sidon_wire_bytes_total counter\n\
             sidon_wire_bytes_total 7\n\
             # HELP sidon_b_info B.\n# TYPE sidon_b_info gauge\nsidon_b_info{v=\"a\\\"\\\\\\n\"} 1\n\
             # HELP sidon_c_seconds C.\n# TYPE sidon_c_seconds gauge\nsidon_c_seconds 0.5\n"
        );
    }

    #[test]
    fn a_figure_has_its_interval_and_its_kind() {
        let mut to = Families { text: String::new(), figures: Vec::new(), open: false };
        to.figure("a", "As", "", "counter", Figure::at_least(5, None));
        let rows = [("x", Figure::estimate(7, 6, 9)), ("y", Figure::exact(3))];
        to.figures("b", "Bs", "bytes", "gauge", "l", rows);
        to.certainties();
        assert_eq!(
            to.text,
            "# HELP sidon_a_total As.\n# TYPE sidon_a_total counter\nsidon_a_total 5\n\
             # HELP sidon_b_bytes Bs.\n# TYPE sidon_b_bytes gauge\n\
             sidon_b_bytes{l=\"x\"} 7\nsidon_b_bytes{l=\"y\"} 3\n\
             # HELP sidon_figure_least The truth is this or more.\n\
             # TYPE sidon_figure_least gauge\n\
             sidon_figure_least{figure=\"a_total\"} 5\n\
             sidon_figure_least{figure=\"b_bytes\",of=\"x\"} 6\n\
             sidon_figure_least{figure=\"b_bytes\",of=\"y\"} 3\n\
             # HELP sidon_figure_most The truth is this or less; +Inf without an upper bound.\n\
             # TYPE sidon_figure_most gauge\n\
             sidon_figure_most{figure=\"a_total\"} +Inf\n\
             sidon_figure_most{figure=\"b_bytes\",of=\"x\"} 9\n\
             sidon_figure_most{figure=\"b_bytes\",of=\"y\"} 3\n\
             # HELP sidon_figure_kind Always 1; the label kind is the certainty of the figure.\n\
             # TYPE sidon_figure_kind gauge\n\
             sidon_figure_kind{figure=\"a_total\",kind=\"at_least\"} 1\n\
             sidon_figure_kind{figure=\"b_bytes\",of=\"x\",kind=\"estimate\"} 1\n\
             sidon_figure_kind{figure=\"b_bytes\",of=\"y\",kind=\"exact\"} 1\n"
        );
    }
}
