//! Hosts that are like peers: in generated traffic, beside exact maps, and against the labels of nDPI.

use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, Generator, Mix, Packet, Settings, Source,
    generate::Shares,
    monitor::p2p::{All, Keeping, LISTED, P2p, Shape, Suspect},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::{Path, PathBuf},
};

fn exactly(packets: &[Packet], keeping: Keeping) -> P2p<All> {
    let mut monitor = P2p::exact(keeping, Seed(7)).unwrap();
    packets.chunks(512).for_each(|batch| monitor.take(batch));
    monitor
}

fn hosts(suspects: &[Suspect]) -> BTreeSet<IpAddr> {
    suspects.iter().map(|suspect| suspect.host).collect()
}

fn capture(path: &Path) -> Vec<Packet> {
    let mut source = Source::open(path).unwrap();
    let (decoder, mut packets) = (Decoder::default(), Vec::new());
    while let Ok(Some(frame)) = source.next() {
        packets.extend(decoder.decode(&frame));
    }
    packets
}

#[test]
fn debug() {
    let Some(folder) = std::env::var_os("SIDON_CORPUS").map(PathBuf::from) else { return };
    for part in ["p2p", "nonp2p"] {
        let mut files: Vec<_> = std::fs::read_dir(folder.join(part)).unwrap().map(|f| f.unwrap().path()).collect();
        files.sort();
        for path in files {
            if !matches!(path.extension().and_then(|e| e.to_str()), Some("pcap" | "pcapng")) { continue }
            let packets = capture(&path);
            let exact = exactly(&packets, Keeping::Exact);
            println!("== {} pairs {}", path.file_name().unwrap().to_string_lossy(), exact.pairs());
            for suspect in exact.suspects(20) { println!("  exact {suspect:?}"); }
            let mut ours = P2p::new(Shape::within(1 << 19), Seed(8)).unwrap();
            packets.chunks(512).for_each(|batch| ours.take(batch));
            for suspect in ours.suspects(20) { println!("  fixed {suspect:?}"); }
        }
    }
}
#[test]
fn gen_debug() {
    let mix = Mix { packets: 300_000, ..Mix::default() };
    let packets: Vec<_> = Generator::new(mix, 5).unwrap().collect();
    let exact = exactly(&packets, Keeping::Exact);
    println!("pairs {}", exact.pairs());
    for s in exact.suspects(1).iter().take(20) { println!("{s:?}"); }
    println!("{}", exact.suspects(1).len());
}
