//! Snapshots: read, reported, written back, merged, and read again.
//!
//! A snapshot has 240 kB, most of them zeros in tables. So an input is not a snapshot, but changes of
//! one: see [`Base::changed`]. Lengths and checksums are put right afterwards. Most inputs change a
//! snapshot whose largest tables were replaced by small ones.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidon::{
    Seed,
    saved::{Save, Parts},
    count::{
        Top,
        top::{self, Stored},
    },
    state::{Fingerprint, Machine, fingerprint, Rule},
    zone::{Subnets, subnets},
};
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Generator, Mix, Settings, Snapshot, budget,
    generate::{Flood, Shares},
    monitor::{
        addresses::Addresses,
        machine::{Definition, When},
        sizes::{Host, Port},
    },
    snapshot::{Damage, damage},
};
use std::sync::{Arc, LazyLock};

fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| {
    let Some((&base, edits)) = bytes.split_first() else { return };
    let base = BASES.choose(base);
    let changed = base.changed(edits);
    let Ok(mut snapshot) = Snapshot::from_bytes(&changed) else {
        // The search for the damaged part ends, and names parts inside the file.
        let end = |damage: &Damage| damage.bytes.start <= changed.len() as u64;
        return assert!(damage(&changed).iter().all(end));
    };
    assert!(snapshot.to_bytes() == changed, "accepted, but written otherwise");
    if sidon_fuzz::is_rare(bytes, 8) {
        let _ = snapshot.report().to_json();
    }
    if !sidon_fuzz::is_rare(bytes, 16) {
        return;
    }
    let Ok(mut plain) = Snapshot::from_bytes(&base.whole) else { panic!("a base is read") };
    let Ok(again) = Snapshot::from_bytes(&changed) else { panic!("accepted once, then refused") };
    if plain.merge(again).is_ok() {
        sidon_fuzz::is_read_back(&plain);
        // The merged one may have sums near their ceilings.
        if snapshot.merge(plain).is_ok() {
            sidon_fuzz::is_read_back(&snapshot);
        }
    }
});

/// A snapshot, and its parts.
struct Base {
    whole: Vec<u8>,
    seed_check: u64,
    fields: Vec<u64>,
    /// Name and shard of each part, and its bytes.
    parts: Vec<([u8; 8], Vec<u8>)>,
}

impl Base {
    fn new(whole: Vec<u8>) -> Self {
        let Parts { seed_check, fields, mut payload, .. } = Parts::of(&whole).expect("a snapshot");
        let mut parts = Vec::new();
        while let Some((head, rest)) = payload.split_first_chunk::<8>() {
            let (length, rest) = rest.split_first_chunk().expect("a part has a length");
            let (part, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);
            parts.push((*head, part.to_vec()));
            payload = rest;
        }
        Base { seed_check, fields, parts, whole }
    }

    /// A copy with small tables. Flows, hosts and ports keep the heaviest keys, source addresses
    /// the first of the table. The map of connections is empty.
    fn small(&self) -> Self {
        let seed = Seed(u128::from(self.fields[1]) << 64 | u128::from(self.fields[0]));
        let mut small = Base {
            parts: self.parts.clone(),
            fields: self.fields.clone(),
            whole: Vec::new(),
            seed_check: self.seed_check,
        };
        let mut numbers = Vec::new();
        for (at, (head, part)) in small.parts.iter_mut().enumerate() {
            *part = match u16::from_le_bytes([head[0], head[1]]) {
                4 => {
                    numbers.push(at);
                    continue;
                }
                5 => lighter::<FlowKey>(part, seed),
                6 => lighter::<Host>(part, seed),
                7 => lighter::<Port>(part, seed),
                10 => {
                    let map = Fingerprint::from_bytes(part, seed).expect("a map");
                    let shape = fingerprint::Shape { buckets: 8, ..map.shape() };
                    Fingerprint::new(shape, seed).expect("a small map").to_bytes()
                }
                _ => continue,
            };
        }
        // Counts, flows, hosts, ports, sources: the parts of a shard follow one another.
        for at in numbers {
            let [(_, counts), _, _, _, (_, v4), (_, v6)] = &mut small.parts[at..at + 6] else {
                panic!("a shard has six parts");
            };
            fewer_sources(counts, v4, v6, seed);
        }
        small.whole = small.changed(&[]);
        small
    }

    /// The snapshot after edits: a byte for the part, two for the position in it, one for the kind
    /// of edit and the number of bytes, then those bytes. Part 0 is the fields.
    fn changed(&self, mut edits: &[u8]) -> Vec<u8> {
        let mut fields: Vec<u8> = self.fields.iter().flat_map(|one| one.to_le_bytes()).collect();
        let mut parts: Vec<(usize, Vec<u8>)> = Vec::new();
        while let Some(([part, low, high, kind], rest)) = edits.split_first_chunk::<4>() {
            let (new, rest) = rest.split_at(usize::from(kind & 15).min(rest.len()));
            edits = rest;
            let number = usize::from(*part) % (self.parts.len() + 1);
            let bytes = match number.checked_sub(1) {
                None => &mut fields,
                Some(number) => {
                    let at = parts.iter().position(|(own, _)| *own == number);
                    let at = at.unwrap_or_else(|| {
                        parts.push((number, self.parts[number].1.clone()));
                        parts.len() - 1
                    });
                    &mut parts[at].1
                }
            };
            let at = usize::from(u16::from_le_bytes([*low, *high])) % (bytes.len() + 1);
            // Fields keep their number.
            let removed = match kind >> 6 {
                0 if number > 0 => 0,
                1 if number > 0 => bytes.len().min(at + usize::from(kind >> 4 & 3) * 8) - at,
                _ => new.len().min(bytes.len() - at),
            };
            let new = if number > 0 { new } else { &new[..removed] };
            bytes.splice(at..at + removed, new.iter().copied());
        }
        let fields = fields.as_chunks::<8>().0.iter().map(|one| u64::from_le_bytes(*one));
        let fields: Vec<u64> = fields.collect();
        // The seed is in the first two fields.
        let seed = Seed(u128::from(fields[1]) << 64 | u128::from(fields[0]));
        let is_same = fields[..2] == self.fields[..2];
        let seed_check = if is_same { self.seed_check } else { seed.check_value() };
        let mut payload = Vec::with_capacity(self.whole.len() + 256);
        for (number, (head, bytes)) in self.parts.iter().enumerate() {
            let edited = parts.iter_mut().find(|(own, _)| *own == number);
            let bytes = match edited {
                Some((_, bytes)) => {
                    repair(bytes);
                    &*bytes
                }
                None => bytes,
            };
            payload.extend(head);
            payload.extend((bytes.len() as u64).to_le_bytes());
            payload.extend(bytes);
        }
        let kind = sidon_traffic::snapshot::KIND;
        Parts { kind, seed_check, fields, room: 0, payload: &payload }.to_bytes()
    }
}

/// A table of one bucket with the heaviest keys of another.
fn lighter<K: Stored + std::fmt::Debug>(table: &[u8], seed: Seed) -> Vec<u8> {
    let table = Top::<K, 2>::from_bytes(table, seed).expect("a table");
    let shape = top::Shape { buckets: 1, columns: 2, ..table.shape() };
    let mut small = Top::<K, 2>::new(shape, seed).expect("a small table");
    for entry in table.heaviest(10).entries {
        small.add(&entry.key, entry.amounts.map(|bounds| bounds.most));
    }
    small.to_bytes()
}

/// Replaces the sources of a shard by a few of them. One address counts as known before.
fn fewer_sources(counts: &mut Vec<u8>, v4: &mut Vec<u8>, v6: &mut Vec<u8>, seed: Seed) {
    let old = Subnets::from_bytes(v4, seed).expect("subnets");
    let shape = subnets::Shape { slots: 12, bitmaps: 1, ..old.shape() };
    let mut few = Subnets::new(shape, seed).expect("a small table");
    for (subnet, _) in old.iter() {
        for host in old.list(subnet) {
            // Refused when the table is full.
            let _ = few.observe(subnet, host);
        }
    }
    let old = Addresses::from_bytes(v6, seed).expect("addresses");
    let mut six = Addresses::new(8, seed).expect("a small table");
    for address in old.iter() {
        let _ = six.observe(address);
    }
    let known = few.iter().next();
    let stored = few.iter().map(|(_, hosts)| u64::from(hosts)).sum::<u64>() + six.stored();
    // The numbers of refused addresses stay.
    let number = |at: usize| u64::from_le_bytes(counts[8 * at..][..8].try_into().expect("8 bytes"));
    let is_known = u64::from(known.is_some());
    let mut new = vec![number(0), stored - is_known, number(2), number(3), number(4), is_known];
    new.extend(known.iter().flat_map(|&(subnet, _)| [4, subnet, 1]));
    *counts = new.iter().flat_map(|number| number.to_le_bytes()).collect();
    (*v4, *v6) = (few.to_bytes(), six.to_bytes());
}

/// Puts the checksum of a table right.
fn repair(bytes: &mut [u8]) {
    if bytes.starts_with(b"SIDN")
        && let Some((body, checksum)) = bytes.split_last_chunk_mut::<4>()
    {
        *checksum = crc32fast::hash(body).to_le_bytes();
    }
}

/// Snapshots of engines, and the same with small tables.
struct Bases {
    whole: Vec<Base>,
    small: Vec<Base>,
}

impl Bases {
    /// Small ones for most choices.
    fn choose(&self, choice: u8) -> &Base {
        let list = if choice < 252 { &self.small } else { &self.whole };
        &list[usize::from(choice) % list.len()]
    }
}

/// An office, a flood with alarms, peers and a scan, two offices merged; the golden file.
static BASES: LazyLock<Bases> = LazyLock::new(|| {
    let flood = Flood {
        sources: 5_000,
        victim: "10.0.0.80:443".parse().expect("an address"),
        after: 2_000,
        share: 50,
        answered: 0,
        ..Flood::default()
    };
    let shares = Shares { peers: 30, scan: 20, ..Mix::default().shares };
    let office = Mix { packets: 400, ipv6: 30, ..Mix::default() };
    let busy = Mix { packets: 20_000, rate: 2_000, flood: Some(flood), shares, ..office };
    let mut merged = watched(office, 1);
    merged.merge(watched(office, 2)).expect("they can be merged");
    let mut bases = vec![watched(office, 1).to_bytes(), watched(busy, 2).to_bytes()];
    bases.push(merged.to_bytes());
    let golden = sidon_fuzz::folder("crates/sidon-traffic/tests/golden/engine.sidon");
    bases.extend(std::fs::read(golden));
    let whole: Vec<Base> = bases.into_iter().map(Base::new).collect();
    let small = whole.iter().map(Base::small).collect();
    Bases { whole, small }
});

fn watched(mix: Mix, seed: u64) -> Snapshot {
    let settings = Settings {
        memory: budget::LEAST,
        subnets: vec!["10.0.0.0/28".parse().expect("a subnet")],
        machines: vec![machine()],
        ..Settings::new(sidon_fuzz::SEED)
    };
    let mut engine =
        Engine::new(settings, Filter::default(), Decoder::default()).expect("the least memory");
    Generator::new(mix, seed).expect("a mix").for_each(|packet| engine.packet(&packet));
    engine.snapshot()
}

fn machine() -> Arc<Definition> {
    let rules: [(&str, &[Rule<'_>]); 2] =
        [("first", &[Rule::Open("asked")]), ("second", &[Rule::If("asked", "answered")])];
    let machine = Machine::new(&["asked", "answered"], &[], &rules).expect("a machine");
    let events = vec![(When::default(), 0), (When::default(), 1)];
    Arc::new(Definition { name: "udp".to_owned(), machine, events, timeouts: vec![5, 300] })
}

/// One edit in each part of each base: the largest count that can be saved.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (base, own) in (0u8..).zip(&BASES.small) {
        for part in 0..=own.parts.len() as u8 {
            let mut seed = vec![base, part, part.wrapping_mul(8), 0, 0x88];
            seed.extend((1u64 << 62).to_le_bytes());
            seeds.push(seed);
        }
    }
    seeds
}
