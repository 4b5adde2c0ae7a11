//! The tables of the report as files for a spreadsheet.

use anyhow::Context;
use sidon::count::Ranking;
use sidon_traffic::{
    Report,
    monitor::{sizes, sources::Subnet},
    report::certainty,
};
use std::{fs, path::Path};

/// Writes one file per table to the directory, and creates the directory if necessary. The report
/// lists only some of the subnets with new sources, so `new_sources` has them all.
pub(super) fn write(
    directory: &Path,
    report: &Report,
    new_sources: &[(Subnet, u32)],
) -> anyhow::Result<()> {
    let place = || directory.display().to_string();
    fs::create_dir_all(directory).with_context(place)?;
    let save = |name: &str, text: String| fs::write(directory.join(name), text).with_context(place);
    save("flows.csv", ranking(&report.flows, |key| key.two_way().to_string()))?;
    save("hosts.csv", ranking(&report.hosts, |key| sizes::address(*key).to_string()))?;
    save("ports.csv", ranking(&report.ports, |key| sizes::port_name(*key).to_string()))?;
    let mut sources = "subnet,new_addresses\n".to_owned();
    for (subnet, count) in new_sources {
        sources += &format!("{subnet},{count}\n");
    }
    save("new_sources.csv", sources)?;
    let mut peers = "host,score,reasons\n".to_owned();
    for suspect in &report.p2p {
        let reasons: Vec<_> = suspect.reasons.iter().map(ToString::to_string).collect();
        peers += &format!("{},{},{}\n", suspect.host, suspect.score, reasons.join("; "));
    }
    save("p2p.csv", peers)?;
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

/// Names hold no comma and no quote.
fn ranking<K>(ranking: &Ranking<K, 2>, name: impl Fn(&K) -> String) -> String {
    let mut text = "key,certainty,bytes,bytes_lower,packets,packets_lower\n".to_owned();
    for entry in &ranking.entries {
        let [bytes, packets] = entry.amounts;
        text += &format!(
            "{},{},{},{},{},{}\n",
            name(&entry.key),
            certainty(&bytes),
            bytes.most,
            bytes.least,
            packets.most,
            packets.least
        );
    }
    text
}
