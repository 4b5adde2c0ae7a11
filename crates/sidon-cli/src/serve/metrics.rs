//! `/metrics`: the figures that a Prometheus server reads, from the last snapshot.
//!
//! The number of series is fixed: labels are outcomes, reasons, tables and ranks of the program
//! itself. Ten services have names and the rest is `other`; flows have ranks only. Clients that
//! accept OpenMetrics get it, all others get the older text format. The formats differ in three
//! points: the older one has no `# UNIT` and no `# EOF`, and it names the family of a counter like
//! its samples, with `_total`.
//!
//! Written by hand: prometheus-client and what it needs take 2 seconds of a release build and write
//! OpenMetrics only, which then had to be translated.

use super::snapshot::{Snapshot, Status};
use sidon_traffic::monitor::{alarms::KINDS, connections::OUTCOMES, sizes};
use std::fmt::{Display, Write as _};

/// The content type of the older text format.
pub(super) const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The content type of OpenMetrics.
pub(super) const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Services with names, and flows with ranks.
const TOP: usize = 10;
/// Tables that can be full; refusals of any other table count as `other`.
const TABLES: [&str; 11] = [
    "sizes",
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
];
/// Tables that can answer don't-know.
const UNSURE: [&str; 3] = ["connections", "p2p_pairs", "machines"];

/// The metrics of a snapshot, as OpenMetrics or as the older text.
pub(super) fn encode(snapshot: &Snapshot, open: bool) -> String {
    let mut to = Families { text: String::with_capacity(16 << 10), open };
    let scrape = Scrape(snapshot);
    scrape.traffic(&mut to);
    scrape.ledger(&mut to);
    scrape.memory(&mut to);
    scrape.connections(&mut to);
    scrape.alarms(&mut to);
    scrape.top(&mut to);
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
        to.counter("packets", "Frames that the source gave", "", totals.seen);
        to.counter("wire", "Bytes on the wire of all frames seen", "bytes", totals.wire_bytes);
        let running = u64::from(*status == Status::Running);
        to.gauge("source_running", "Whether packets still come", "", running as f64);
        let last = report.times.map_or(0.0, |(_, last)| last as f64 / 1e9);
        let about = "The time of the last packet";
        to.gauge("last_packet_timestamp", about, "seconds", last);
        let about = "When these figures were made";
        let made = self.0.made_ns as f64 / 1e9;
        to.gauge("snapshot_timestamp", about, "seconds", made);
        let about = "How long the last report took the thread that feeds";
        to.gauge("report_duration", about, "seconds", self.0.took.as_secs_f64());
        let about = "Source addresses seen for the first time";
        to.counter("new_sources", about, "", totals.new_sources);
        self.saved(to);
    }

    fn saved(&self, to: &mut Families) {
        let saved = self.0.saved.clone().unwrap_or_default();
        to.counter("saved_files", "Periods that went to a file", "", saved.files);
        let about = "Periods that could not be written";
        to.counter("save_failures", about, "", saved.failed);
        let about = "The time of the last packet that is in a file; 0 if none is";
        to.gauge("saved_until_timestamp", about, "seconds", saved.until_ns as f64 / 1e9);
    }

    fn ledger(&self, to: &mut Families) {
        let totals = &self.0.totals;
        let fates = [
            ("decoded", totals.decoded),
            ("filtered", totals.filtered),
            ("undecoded", totals.undecoded),
        ];
        let about = "Frames by what became of them; their sum is sidon_packets_total";
        to.counters("ledger_packets", about, "fate", fates);
        let refused = by_table(&totals.refused, &TABLES);
        to.counters("refused", "What a full table did not take in", "table", refused);
        let of_source = |name| {
            let found = totals.source.iter().find(|(known, _)| *known == name);
            found.map_or(0, |(_, times)| *times)
        };
        let about = "Frames that the kernel saw on the interface";
        to.counter("kernel_received_packets", about, "", of_source("kernel_received"));
        let about = "Those of them that there was no room for in the ring";
        to.counter("kernel_dropped_packets", about, "", of_source("kernel_dropped"));
        let unknown = by_table(&totals.dont_know, &UNSURE);
        to.counters("dont_know", "Questions that a table could not answer", "table", unknown);
    }

    fn memory(&self, to: &mut Families) {
        let Snapshot { report, .. } = self.0;
        let kinds = [("budget", report.budget), ("tables", report.allocated)];
        let kinds = kinds.map(|(kind, bytes)| (kind, bytes as f64));
        let about = "Memory that the tables may take and take";
        to.gauges("memory", about, "bytes", "kind", kinds);
        let resident = self.0.now().resident.unwrap_or(0) as f64;
        let about = "Memory of the whole process in use; 0 if the system does not tell";
        to.gauge("resident_memory", about, "bytes", resident);
    }

    fn connections(&self, to: &mut Families) {
        let Snapshot { report, totals, .. } = self.0;
        let counts = &report.connections;
        let present = OUTCOMES.into_iter().zip(counts.present.map(|n| n as f64));
        let about = "TCP connections that are there, by what they would be if nothing more came";
        to.gauges("connections", about, "", "state", present);
        let about = "TCP connections that ended, by outcome";
        let ended = OUTCOMES.into_iter().zip(totals.ended);
        to.counters("connections_ended", about, "state", ended);
        let about = "TCP connections whose handshake is not complete";
        to.gauge("half_open_connections", about, "", counts.half_open as f64);
        let about = "The most half-open TCP connections at a time";
        to.gauge("half_open_connections_peak", about, "", counts.peak_half_open as f64);
        let about = "TCP connections whose handshake was seen and no end";
        to.gauge("open_connections", about, "", counts.open as f64);
        let about = "New TCP connections of which one is followed: 1 if all are";
        let one_in = 1u64 << counts.sampling.level;
        to.gauge("connections_sampled_one_in", about, "", one_in as f64);
        let about = "TCP connections that came about";
        to.counter("connections_came_about", about, "", totals.came_about);
        let about = "The chance that a packet of a new connection is taken for another's";
        to.gauge("stranger", about, "ratios", report.stranger_rate);
    }

    fn alarms(&self, to: &mut Families) {
        let Snapshot { report, totals, .. } = self.0;
        let raised = KINDS.into_iter().zip(totals.alarms);
        to.counters("alarms", "Alarms raised", "kind", raised);
        let about = "Alarms that are not listed, or no longer";
        to.counter("alarms_unlisted", about, "", totals.alarms_unlisted);
        let holds = |kind| {
            let of = report.alarms.iter().filter(|alarm| alarm.kind == kind);
            of.filter(|alarm| alarm.closed.is_none()).count() as f64
        };
        let open = KINDS.map(|kind| (kind, holds(kind)));
        to.gauges("alarms_open", "Alarms whose condition holds", "", "kind", open);
    }

    fn top(&self, to: &mut Families) {
        let Snapshot { report, .. } = self.0;
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
        to.gauges("top_port", about, "bytes", "port", named(ports));
        let flows = (1..).zip(report.flows.entries.iter().take(TOP));
        let flows = flows
            .map(|(rank, entry): (u32, _)| (rank.to_string(), entry.amounts[0].most))
            .collect();
        let about = "Bytes of the heaviest flows by rank, at most; other is all else on the wire";
        to.gauges("top_flow", about, "bytes", "rank", named(flows));
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

/// Metric families, written one after the other.
struct Families {
    text: String,
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
            let name =
                name.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = writeln!(self.text, "{sample}{{{label}=\"{name}\"}} {value}");
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

#[cfg(test)]
mod tests {
    use super::Families;

    fn text(open: bool) -> String {
        let mut to = Families { text: String::new(), open };
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
}
