//! Compares every capture of the corpus with the values in its manifest.
//!
//! Set `SIDON_CORPUS` to the folder that holds `MANIFEST.md`. Otherwise these tests are skipped,
//! with a message.

use sidon_traffic::{Decoder, FlowKey, Source, SourceError, Tunnels, source::Broken};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// One line of the manifest's tables.
struct Row {
    file: String,
    contains: String,
    format: String,
    packets: u64,
    /// Distinct five-tuples, directed and undirected.
    flows: Option<[u64; 2]>,
    wire_bytes: u64,
}

impl Row {
    /// The manifest marks files that cannot be read to their end.
    fn is_broken(&self) -> bool {
        self.contains.contains("FILE: truncated")
    }
}

/// The folder and the captures in it, `None` if there is no corpus.
fn corpus() -> Option<(PathBuf, Vec<Row>)> {
    let Some(folder) = std::env::var_os("SIDON_CORPUS").map(PathBuf::from) else {
        eprintln!("SKIPPED: SIDON_CORPUS is not set, no real capture was read");
        return None;
    };
    let manifest = folder.join("MANIFEST.md");
    let text = std::fs::read_to_string(&manifest)
        .unwrap_or_else(|why| panic!("{}: {why}", manifest.display()));
    let rows: Vec<_> = text.lines().filter_map(row).collect();
    assert!(rows.len() > 200, "only {} captures found in {}", rows.len(), manifest.display());
    Some((folder, rows))
}

fn row(line: &str) -> Option<Row> {
    let columns: Vec<_> = line.strip_prefix("| ")?.split(" | ").map(str::trim).collect();
    let [file, contains, format, packets, flows, wire_bytes, ..] = columns[..] else { return None };
    if !format.starts_with("pcap") {
        return None;
    }
    let flows = flows.split_once(" / ").map(|(one, two)| [one, two].map(|n| n.parse().unwrap()));
    Some(Row {
        file: file.to_owned(),
        contains: contains.to_owned(),
        format: format.to_owned(),
        packets: packets.parse().unwrap(),
        flows,
        wire_bytes: wire_bytes.parse().unwrap(),
    })
}

/// Flow counts that differ from the manifest, directed and undirected, and why.
const OTHERWISE: [(&str, [u64; 2]); 4] = [
    // The manifest leaves 802.11 out; here its packets are decoded.
    ("tcp-state/zeek/radiotap.pcap", [3, 2]),
    // The header's options end after the packet does: malformed here, a flow there.
    ("malformed/zeek/trunc__ipv4-truncated-broken-header.pcap", [0, 0]),
    // Two of four packets have version 0: malformed here, flows there.
    ("malformed/tcpdump/ipv6-bad-version.pcap", [1, 1]),
    // IPv6 where the link type says IPv4: malformed here, a flow there.
    ("malformed/tcpdump/LINKTYPE_IPV4_invalid.pcap", [0, 0]),
];

#[derive(Default)]
struct Totals {
    frames: u64,
    decoded: u64,
    undecoded: u64,
    wire_bytes: u64,
    one_way: HashSet<FlowKey>,
    two_way: HashSet<FlowKey>,
    broken: Option<Broken>,
}

fn read(path: &Path, decoder: Decoder) -> Result<Totals, SourceError> {
    let mut source = Source::open(path)?;
    let mut totals = Totals::default();
    loop {
        match source.next() {
            Ok(None) => break,
            Ok(Some(frame)) => {
                totals.frames += 1;
                totals.wire_bytes += u64::from(frame.wire_len);
                match decoder.decode(&frame) {
                    Ok(packet) => {
                        totals.decoded += 1;
                        totals.one_way.insert(packet.flow);
                        totals.two_way.insert(packet.flow.undirected());
                    }
                    Err(_) => totals.undecoded += 1,
                }
            }
            Err(broken) => {
                totals.broken = Some(broken);
                break;
            }
        }
    }
    assert_eq!(source.frames(), totals.frames);
    Ok(totals)
}

#[test]
fn packets_bytes_and_flows_are_those_of_the_manifest() {
    let Some((folder, rows)) = corpus() else { return };
    let mut wrong = Vec::new();
    for row in &rows {
        let totals = match read(&folder.join(&row.file), Decoder::default()) {
            Ok(totals) => totals,
            Err(why) => {
                wrong.push(format!("{}: {why}", row.file));
                continue;
            }
        };
        assert_eq!(totals.decoded + totals.undecoded, totals.frames, "{}", row.file);
        let flows = [totals.one_way.len() as u64, totals.two_way.len() as u64];
        let found = (totals.frames, totals.wire_bytes, totals.broken.is_some());
        if found != (row.packets, row.wire_bytes, row.is_broken()) {
            wrong.push(format!(
                "{}: packets, bytes, broken {found:?}, expected {:?}; {:?}",
                row.file,
                (row.packets, row.wire_bytes, row.is_broken()),
                totals.broken,
            ));
        }
        let otherwise = OTHERWISE.iter().find(|(file, _)| *file == row.file);
        let expected = otherwise.map(|(_, flows)| *flows).or(row.flows);
        if expected.is_some_and(|expected| expected != flows) {
            wrong.push(format!(
                "{} ({}): flows {flows:?}, expected {expected:?}",
                row.file, row.format
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    eprintln!("{} captures agree with the manifest", rows.len());
}

#[test]
fn taking_packets_out_of_tunnels_loses_none() {
    let Some((folder, rows)) = corpus() else { return };
    for row in &rows {
        let path = folder.join(&row.file);
        let outer = read(&path, Decoder::default()).unwrap();
        let inner = read(&path, Decoder { tunnels: Tunnels::Inner }).unwrap();
        assert_eq!(inner.decoded, outer.decoded, "{}", row.file);
    }
}
