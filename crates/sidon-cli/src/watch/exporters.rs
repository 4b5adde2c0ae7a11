//! `--netflow`: the counters of each exporter of flow records.

use crate::show::{self, whole};
use sidon_traffic::{export::Collector, figure::CEILING};
use std::fmt::Write;

/// A few lines for each exporter.
pub(super) fn render(collector: &Collector) -> String {
    let mut text = String::new();
    for exporter in collector.exporters() {
        let (origin, counts) = (exporter.origin(), exporter.counts());
        let kind = match origin.version {
            10 => "IPFIX".to_owned(),
            version => format!("NetFlow {version}"),
        };
        let _ = write!(
            text,
            "\nEXPORTER {}, {kind}, domain {}: {} records, {} packets, {}",
            origin.address,
            origin.domain,
            whole(counts.counted),
            show::count(counts.packets),
            match counts.bytes {
                CEILING => format!(">= {}", show::bytes(CEILING)),
                bytes => show::bytes(bytes),
            },
        );
        if let Some(sampling) = exporter.sampling() {
            let _ = write!(text, "; estimated x{}, from {}", whole(sampling.rate), sampling.from);
        }
        let troubles = [
            ("records lost", counts.records_lost),
            ("datagrams lost", counts.datagrams_lost),
            ("sets wait for their template", counts.waiting),
            ("sets given up", counts.given_up),
            ("sets not understood", counts.not_understood),
            ("records unexplained", counts.unexplained),
            ("records without addresses", counts.without_addresses),
            ("datagrams malformed", counts.malformed),
        ];
        let troubles = troubles.iter().filter(|(_, times)| *times > 0);
        let troubles: Vec<_> =
            troubles.map(|(what, times)| format!("{} {what}", whole(*times))).collect();
        if !troubles.is_empty() {
            let _ = write!(text, "\n  {}", troubles.join(", "));
        }
        for unknown in exporter.not_known() {
            let _ = write!(text, "\n  not known: {unknown}");
        }
    }
    show::folded(&text)
}
