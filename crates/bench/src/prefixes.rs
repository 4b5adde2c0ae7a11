//! Amounts of networks: a hundred million packets, ten heavy networks of five lengths among them.
//!
//! Four structures get the same blocks of packets in turn: `count::Prefixes`, two flat lists of addresses,
//! and a hash map per length. The lists are `count::Top` in the same memory, and CuckooTopK of the crate
//! heavykeeper. The hash maps are also the truth: a bound that does not hold counts as lost, and so does a
//! heavy network that is not listed.

use crate::{
    clock::ns_each,
    filter::SEED,
    report::{Row, Size},
    stats::Summary,
};
use anyhow::{Result, ensure};
use hashbrown::HashMap;
use heavykeeper::CuckooTopK;
use sidon::{
    count::{Bounds, Prefix, Prefixes, Top},
    plan,
};
use sidon_kit::Networks;
use std::{collections::BTreeMap, net::IpAddr};

const PACKETS: usize = 100_000_000;
/// Packets generated, then added, at a time: generating is not timed.
const BLOCK: usize = 1 << 16;
/// Packets added by one call, as the engine does.
const CALL: usize = 512;
const ADDRESSES: u64 = 2_000_000;
const MEMORY: [u64; 2] = [1 << 20, 16 << 20];

/// The lengths of a table's levels.
const LENGTHS: [[u8; 5]; 2] = [[32, 24, 20, 16, 8], [128, 64, 56, 48, 32]];

/// Exact amounts, by family and length.
type Exact = [HashMap<(bool, u128), [u64; 3]>; 5];

pub(crate) fn run(quick: bool, notes: &mut Vec<String>) -> Result<Vec<Row>> {
    let scale = if quick { 10 } else { 1 };
    let mut rows = Vec::new();
    for bytes in MEMORY {
        rows.extend(one(bytes, PACKETS / scale, ADDRESSES / scale as u64, notes)?);
    }
    Ok(rows)
}

fn one(bytes: u64, packets: usize, addresses: u64, notes: &mut Vec<String>) -> Result<Vec<Row>> {
    eprintln!("prefixes: {packets} packets of {addresses} addresses in {} KiB", bytes >> 10);
    let mut trace = Networks::seeded(80, addresses);
    let planted = trace.heavy();
    let shape = plan::prefixes::shape(bytes, 3)?;
    let mut table: Prefixes<3> = Prefixes::new(shape, SEED)?;
    let mut flat: Top<IpAddr, 3> = Top::new(plan::top::shape(bytes, 17, 3)?, SEED)?;
    // A bucket has a lobby and four cells of 16 bytes. Its number of buckets is a power of two.
    let width = (bytes / 80).next_power_of_two() / 2;
    let mut peer = CuckooTopK::<IpAddr>::new(1_000, width as usize, 4, 0.9);
    let mut exact = Exact::default();
    let mut times: [Vec<f64>; 4] = std::array::from_fn(|_| Vec::new());
    let (mut keys, mut amounts) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK));
    let mut left = packets;
    while left > 0 {
        let block = BLOCK.min(left);
        left -= block;
        keys.clear();
        amounts.clear();
        for (address, more) in trace.by_ref().take(block) {
            keys.push(address);
            amounts.push(more);
        }
        let mut refused = Ok(());
        times[0].push(ns_each(block, || {
            for (keys, amounts) in keys.chunks(CALL).zip(amounts.chunks(CALL)) {
                refused = refused.and(table.add_batch(keys, amounts));
            }
        }));
        refused?;
        times[1].push(ns_each(block, || {
            for (keys, amounts) in keys.chunks(CALL).zip(amounts.chunks(CALL)) {
                flat.add_batch(keys, amounts);
            }
        }));
        times[2].push(ns_each(block, || {
            for (key, amounts) in keys.iter().zip(&amounts) {
                peer.add(key, amounts[0]);
            }
        }));
        times[3].push(ns_each(block, || {
            for (key, amounts) in keys.iter().zip(&amounts) {
                for (level, map) in exact.iter_mut().enumerate() {
                    let sums = map.entry(at(*key, level)).or_default();
                    for (sum, more) in sums.iter_mut().zip(amounts) {
                        *sum += more;
                    }
                }
            }
        }));
    }
    let start = std::time::Instant::now();
    let threshold = table.total()[0] / 200;
    let list = table.heavy(0, threshold);
    let took = start.elapsed().as_secs_f64() * 1e3;
    let (wrong, slack) = check(&table, &exact)?;
    let missing = missing(&table, &exact, threshold);
    let found = planted
        .iter()
        .filter(|&&(address, length)| {
            let listed = |prefix| list.rows.iter().any(|row| row.prefix == prefix);
            Prefix::new(address, length).is_ok_and(listed)
        })
        .count();
    let certain = list.rows.iter().filter(|row| row.residue[0].least >= threshold).count();
    let entries: usize = exact.iter().map(HashMap::len).sum();
    let maps: usize = exact.iter().map(HashMap::allocation_size).sum();
    notes.push(format!(
        "prefixes in {} KiB: {found} of 10 planted networks listed. The list has {} rows above 0.5 %, \
         {certain} of them certain; {missing} are missing; it took {took:.1} ms. {wrong} of {} bounds \
         wrong; those of heavy networks are at most {:.4} % of the total apart. {shape:?}. The hash \
         maps have {entries} networks in {} MiB, CuckooTopK {} KiB",
        bytes >> 10,
        list.rows.len(),
        3 * entries,
        slack * 100.0,
        maps >> 20,
        peer.mem_bytes(|_| 0) >> 10,
    ));
    let lost = wrong + missing + (10 - found) as u64;
    let names = ["prefixes", "top", "heavykeeper_cuckoo", "hash_map_per_length"];
    let rows = names.into_iter().zip(&times).enumerate().map(|(i, (name, times))| Row {
        section: "prefixes",
        structure: name.to_owned(),
        ours: i < 2,
        removes: false,
        op: "add",
        size: Size::Bytes(bytes),
        ns: Summary::of(times),
        bits_per_key: None,
        fpr: None,
        lost: (i == 0).then_some(lost),
        overestimate: None,
        ratio: BTreeMap::new(),
    });
    Ok(rows.collect())
}

/// The first bits of an address, as long as at this level, and whether it is of IPv4.
fn at(address: IpAddr, level: usize) -> (bool, u128) {
    match address {
        IpAddr::V4(address) => {
            (true, u128::from(address.to_bits() & u32::MAX << (32 - LENGTHS[0][level])))
        }
        IpAddr::V6(address) => (false, address.to_bits() & u128::MAX << (128 - LENGTHS[1][level])),
    }
}

/// The prefix of a key of a hash map.
fn prefix(level: usize, (v4, bits): (bool, u128)) -> Result<Prefix> {
    let address: IpAddr =
        if v4 { (bits as u32).to_be_bytes().into() } else { bits.to_be_bytes().into() };
    Ok(Prefix::new(address, LENGTHS[usize::from(!v4)][level])?)
}

/// The number of bounds that do not hold, over all networks, and how far those of heavy ones are
/// apart at most, as a share of the total.
fn check(table: &Prefixes<3>, exact: &Exact) -> Result<(u64, f64)> {
    // With the least threshold, every network with an entry is listed. Another one may have more than
    // `others` only because of listed networks inside it: its bounds are looked up.
    let all = table.heavy(0, 1);
    let rows: HashMap<Prefix, [Bounds; 3]> =
        all.rows.iter().map(|row| (row.prefix, row.amounts)).collect();
    let (mut wrong, mut slack, mut asked) = (0, 0u64, 0);
    for (level, map) in exact.iter().enumerate() {
        for (number, (&key, sums)) in map.iter().enumerate() {
            let prefix = prefix(level, key)?;
            let bounds = match rows.get(&prefix) {
                Some(bounds) => *bounds,
                None if level == 0
                    || number.is_multiple_of(map.len() / 50 + 1)
                    || sums[0] > all.others =>
                {
                    asked += 1;
                    table.bounds(&prefix)
                }
                None => continue,
            };
            for (bounds, &sum) in bounds.iter().zip(sums) {
                wrong += u64::from(sum < bounds.least || sum > bounds.most);
            }
            if sums[0] > table.total()[0] / 200 {
                slack = slack.max(bounds[0].most - bounds[0].least);
            }
        }
    }
    ensure!(asked > 0, "every network is listed");
    Ok((wrong, slack as f64 / table.total()[0] as f64))
}

/// The number of networks whose residue reaches the threshold and that are not listed.
fn missing(table: &Prefixes<3>, exact: &Exact, threshold: u64) -> u64 {
    let list = table.heavy(0, threshold);
    let key = |prefix: &Prefix| {
        let family = usize::from(prefix.address().is_ipv6());
        let level = LENGTHS[family].iter().position(|&length| length == prefix.length());
        (level.unwrap_or(0), prefix.address())
    };
    let listed: Vec<(usize, (bool, u128))> = list
        .rows
        .iter()
        .map(|row| key(&row.prefix))
        .map(|(level, of)| (level, at(of, level)))
        .collect();
    // What listed networks take from those that contain them.
    let mut taken: HashMap<(usize, (bool, u128)), u64> = HashMap::new();
    for row in &list.rows {
        let (own, address) = key(&row.prefix);
        for level in own + 1..5 {
            let above = (level, at(address, level));
            *taken.entry(above).or_default() +=
                exact[own].get(&at(address, own)).map_or(0, |sum| sum[0]);
            if listed.contains(&above) {
                break;
            }
        }
    }
    let mut missing = 0;
    for (level, map) in exact.iter().enumerate() {
        for (&key, sums) in map {
            let residue = sums[0] - taken.get(&(level, key)).copied().unwrap_or(0);
            missing += u64::from(residue >= threshold && !listed.contains(&(level, key)));
        }
    }
    missing
}
