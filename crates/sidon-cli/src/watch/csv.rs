//! The tables of the report as files for a spreadsheet.

use crate::show;
use anyhow::Context;
use sidon::count::{Bounds, Ranking};
use sidon_traffic::{
    Figure, FlowKey, Report,
    files::{self, Access, Disk},
    monitor::{connections::OUTCOMES, sizes, sources::Subnet},
    time,
};
use std::path::Path;

/// Names of the files.
pub(super) const NAMES: [&str; 8] = [
    "flows.csv",
    "hosts.csv",
    "ports.csv",
    "new_sources.csv",
    "connections.csv",
    "p2p.csv",
    "incidents.csv",
    "ledger.csv",
];

/// Writes one file per table to the directory, and creates the directory if necessary. The lists of
/// flows, hosts and ports have `top` rows. The report lists only some of the subnets with new
/// sources, so `new_sources` has them all.
pub(super) fn write(
    disk: &dyn Disk,
    directory: &Path,
    report: &Report,
    top: usize,
    new_sources: &[(Subnet, u32)],
) -> anyhow::Result<()> {
    let place = || format!("cannot write CSV files to the directory {}", show::path(directory));
    disk.create_directory(directory).with_context(place)?;
    let save = |name: &str, text: String| {
        let path = directory.join(name);
        files::replace(disk, &path, Access::Umask, |out| out.write_all(text.as_bytes()))
            .with_context(place)
    };
    let flow = |key: &FlowKey| key.two_way();
    save("flows.csv", ranking(|bounds| report.amounts(bounds), &report.flows, top, flow))?;
    let host = |key: &sizes::Host| sizes::address(*key).to_string();
    save("hosts.csv", ranking(|bounds| report.amounts(bounds), &report.hosts, top, host))?;
    let port = |key: &sizes::Port| sizes::port_name(*key);
    save("ports.csv", ranking(|bounds| report.service_amounts(bounds), &report.ports, top, port))?;
    let mut sources = "subnet,new_addresses,certainty,least,most\n".to_owned();
    for (subnet, count) in new_sources {
        sources += &format!("{subnet},{}\n", cells(report.new_in(*subnet, *count)));
    }
    save("new_sources.csv", sources)?;
    save("connections.csv", connections(report))?;
    let mut peers = "host,score,certainty,least,most,reasons\n".to_owned();
    for suspect in &report.p2p {
        let reasons: Vec<_> = suspect.reasons.iter().map(ToString::to_string).collect();
        let reasons = quoted(&reasons.join("; "));
        peers += &format!("{},{},{reasons}\n", suspect.host, cells(suspect.score));
    }
    save("p2p.csv", peers)?;
    save("incidents.csv", incidents(report))?;
    let ledger = &report.ledger;
    let mut lines = format!(
        "what,packets\nseen,{}\nfiltered,{}\ndecoded,{}\n",
        ledger.seen, ledger.filtered, ledger.decoded
    );
    for (kind, list) in [("", &ledger.undecoded), ("refused_", &ledger.refused)] {
        for (name, times) in list {
            lines += &format!("{kind}{name},{times}\n");
        }
    }
    save("ledger.csv", lines)
}

/// The number, its kind, and its interval.
fn cells(figure: Figure) -> String {
    format!("{},{},{},{}", figure.value(), figure.kind().name(), figure.least(), upper(figure))
}

/// The upper end of the interval; empty if there is none.
fn upper(figure: Figure) -> String {
    figure.most().map_or(String::new(), |most| most.to_string())
}

fn incidents(report: &Report) -> String {
    let mut text =
        "id,kind,subject,network,severity,opened,updated,closed,peak_size,text,filter,evidence\n"
            .to_owned();
    for incident in &report.alarms {
        let cells = [
            incident.id(),
            incident.kind.to_owned(),
            incident.subject.to_string(),
            incident.network.clone(),
            incident.severity.name().to_owned(),
            time::iso8601(incident.opened),
            time::iso8601(incident.updated),
            incident.closed.map_or(String::new(), time::iso8601),
            incident.size.peak().to_string(),
            quoted(&incident.text),
            quoted(&incident.filter),
            quoted(&incident.evidence_text().join("; ")),
        ];
        text += &format!("{}\n", cells.join(","));
    }
    text
}

fn connections(report: &Report) -> String {
    let figures = report.connection_figures();
    let states = OUTCOMES.iter().zip(figures.by_state);
    let totals = [
        ("total", figures.total),
        ("half_open", figures.half_open),
        ("peak_half_open", figures.peak_half_open),
        ("open", figures.open),
        ("came_about", figures.came_about),
        ("one_way", figures.one_way),
        ("dont_know", figures.dont_know),
        ("new_sources_total", report.new_addresses()),
        ("new_sources_subnets", report.new_subnets()),
    ];
    let mut text = "what,count,certainty,least,most\n".to_owned();
    for (name, figure) in totals.into_iter().chain(states.map(|(name, figure)| (*name, figure))) {
        text += &format!("{name},{}\n", cells(figure));
    }
    text
}

/// A text that may hold commas.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Names hold no comma and no quote.
fn ranking<K>(
    amounts: impl Fn([Bounds; 2]) -> [Figure; 2],
    ranking: &Ranking<K, 2>,
    top: usize,
    name: impl Fn(&K) -> String,
) -> String {
    let mut text = "key,certainty,bytes,bytes_lower,packets,packets_lower,bytes_upper,\
                    packets_certainty,packets_upper\n"
        .to_owned();
    for entry in ranking.entries.iter().take(top) {
        let [bytes, packets] = amounts(entry.amounts);
        text += &format!(
            "{},{},{},{},{},{},{},{},{}\n",
            name(&entry.key),
            bytes.kind().name(),
            bytes.value(),
            bytes.least(),
            packets.value(),
            packets.least(),
            upper(bytes),
            packets.kind().name(),
            upper(packets),
        );
    }
    text
}
