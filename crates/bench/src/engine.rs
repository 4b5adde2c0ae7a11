//! Packets a second through the engine, beside exact hash maps that do the same.
//!
//! Packets are generated block by block, and only looking at them is timed: by the monitors of sizes
//! and sources, and by all. One table of the heaviest flows counts the same packets: its ratio to the
//! engine compares engines of different revisions across machines. Maps never let anything go, where the engine also ages what it holds.
//! Afterwards the engine's list of the heaviest flows is compared with the maps': every bound, and
//! whether a flow is missing.

use crate::{
    clock::ns_each,
    maps::Maps,
    report::{Row, Size},
    stats::Summary,
};
use anyhow::Result;
use hashbrown::HashSet;
use sidon::{
    Seed,
    count::{Stored, Top},
    plan,
};
use sidon_traffic::{
    Decoder, Engine, Filter, Generator, Mix, Packet, Settings,
    batch::Batch,
    budget::{Budget, SHARDS},
    flow::FlowKey,
    generate::Shares,
    shard::Shard,
};
use std::collections::BTreeMap;

/// Packets generated, then looked at, at a time.
const BLOCK: usize = 1 << 16;
/// The heaviest flows that are compared.
const LISTED: usize = 20;
/// The engine's memory.
const MEMORY: u64 = 16 << 20;
const SEED: Seed = Seed(3);
/// Keys added to the table of flows in one call.
const CHUNK: usize = 512;

/// The monitors of sizes and sources alone.
struct Shards {
    batch: Batch,
    shards: Vec<Shard>,
}

impl Shards {
    fn new() -> Result<Self> {
        let budget = Budget::of(MEMORY)?;
        let shards = (0..SHARDS).map(|number| Shard::new(number, &budget, SEED, false));
        Ok(Shards { batch: Batch::new(), shards: shards.collect::<Result<_, _>>()? })
    }

    fn packet(&mut self, packet: &Packet) {
        self.batch.packets.push(*packet);
        if self.batch.is_full() {
            self.batch.sort(SEED);
            self.shards.iter_mut().for_each(|shard| shard.take(&self.batch));
            self.batch.clear();
        }
    }
}

pub(crate) fn run(quick: bool, notes: &mut Vec<String>) -> Result<Vec<Row>> {
    let packets = if quick { 2_000_000 } else { 50_000_000 };
    // Mostly short conversations: ten million flows in the full run.
    let shares = Shares { web: 30, dns: 60, peers: 8, ping: 2, scan: 0 };
    let mix =
        Mix { packets, zipf: 0.5, clients: 60_000, active: 100_000, shares, ..Mix::default() };
    let settings = Settings { memory: MEMORY, top: LISTED, ..Settings::new(SEED) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default())?;
    engine.start()?;
    let mut shards = Shards::new()?;
    let mut maps = Maps::default();
    let mut generator = Generator::new(mix, 4)?;
    let shape = plan::top::shape(MEMORY, FlowKey::BYTES, 2)?;
    let mut top = Top::<FlowKey, 2>::new(shape, SEED)?;
    let mut block: Vec<Packet> = Vec::with_capacity(BLOCK);
    let (mut keys, mut amounts) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK));
    let mut times: [Vec<f64>; 5] = Default::default();
    let [part, exact_part, all, exact_all, top_alone] = &mut times;
    loop {
        block.clear();
        block.extend(generator.by_ref().take(BLOCK));
        if block.is_empty() {
            break;
        }
        let each =
            |act: &mut dyn FnMut(&Packet)| ns_each(block.len(), || block.iter().for_each(act));
        part.push(each(&mut |packet| shards.packet(packet)));
        all.push(each(&mut |packet| engine.packet(packet)));
        keys.clear();
        keys.extend(block.iter().map(|packet| packet.flow.undirected()));
        amounts.clear();
        amounts.extend(block.iter().map(|packet| [u64::from(packet.wire_len), 1]));
        top_alone.push(ns_each(block.len(), || {
            for (keys, amounts) in keys.chunks(CHUNK).zip(amounts.chunks(CHUNK)) {
                top.add_batch(keys, amounts);
            }
        }));
        let sizes = each(&mut |packet| maps.sizes(packet));
        let others = each(&mut |packet| maps.states(packet));
        exact_part.push(sizes);
        exact_all.push(sizes + others);
    }
    let (report, _) = engine.finish();
    let mut heaviest: Vec<_> = maps.flows.iter().collect();
    heaviest.sort_unstable_by_key(|(_, counts)| std::cmp::Reverse(counts[0]));
    let listed: HashSet<_> = report.flows.entries.iter().map(|entry| entry.key).collect();
    let found = heaviest[..LISTED].iter().filter(|(key, _)| listed.contains(*key)).count();
    let wrong = report.flows.entries.iter().filter(|entry| {
        let truth = maps.flows.get(&entry.key).copied().unwrap_or_default();
        let mut both = entry.amounts.iter().zip(truth);
        both.any(|(bounds, truth)| truth < bounds.least || truth > bounds.most)
    });
    let wrong = wrong.count() as u64;
    notes.push(format!(
        "engine: {packets} packets of {} flows in {} KiB: {found} of the true top {LISTED} listed, {} \
         leading, {wrong} bounds violated, ledger balance {}, {} half open and {} in the maps, whose \
         flows alone take about {} MiB",
        maps.flows.len(),
        MEMORY >> 10,
        report.flows.leading,
        report.ledger.balance(),
        report.connections.half_open,
        maps.half_open(),
        (maps.flows.capacity() * (size_of::<(FlowKey, [u64; 2])>() + 1)) >> 20,
    ));
    let [all, top_alone] = [2, 4].map(|index: usize| Summary::of(&times[index]).median);
    notes.push(format!(
        "engine: all monitors take {:.2} times as long as one table of flows",
        all / top_alone
    ));
    let row = |structure: &str, op, ours, times: &[f64]| Row {
        section: "engine",
        structure: structure.to_owned(),
        ours,
        removes: false,
        op,
        size: Size::Keys(maps.flows.len() as u64),
        ns: Summary::of(times),
        bits_per_key: None,
        fpr: None,
        lost: Some(if ours { wrong } else { 0 }),
        overestimate: None,
        ratio: BTreeMap::new(),
    };
    let [part, exact_part, all, exact_all, top_alone] = &times;
    Ok(vec![
        row("sidon_sizes_sources", "sizes and sources", true, part),
        row("hash_maps", "sizes and sources", false, exact_part),
        row("sidon_engine", "all monitors", true, all),
        row("hash_maps", "all monitors", false, exact_all),
        row("count_top_of_flows", "all monitors", false, top_alone),
    ])
}
