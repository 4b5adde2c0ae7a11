//! Packets on their way to the monitors, each sorted to the shards that own its keys.
//!
//! ```text
//! packet -> flow key  -> digest -> | lane 0 | lane 1 | ... | lane 7 |     by the digest's upper bits
//!        -> two hosts -> digests ->
//!        -> port      -> digest  ->
//! ```
//! A batch is filled by one thread and read by the owners of its lanes. Its columns are made once,
//! as long as they can get: nothing is allocated per packet.

use crate::{
    FlowKey, Packet,
    budget::SHARDS,
    monitor::sizes::{self, Host, Port},
};
use sidon::{Digest, Key, Seed, count::Stored};
use std::net::IpAddr;

/// Packets in a batch.
pub const PACKETS: usize = 512;

/// Keys with their digests and amounts: bytes and packets.
#[derive(Debug)]
pub struct Column<K> {
    /// The keys' digests under the engine's seed.
    pub digests: Vec<Digest>,
    /// The keys.
    pub keys: Vec<K>,
    /// Bytes and packets.
    pub amounts: Vec<[u64; 2]>,
}

impl<K: Stored> Column<K> {
    fn with_room(room: usize) -> Self {
        Column {
            digests: Vec::with_capacity(room),
            keys: Vec::with_capacity(room),
            amounts: Vec::with_capacity(room),
        }
    }

    #[inline]
    fn push(&mut self, digest: Digest, key: K, amounts: [u64; 2]) {
        self.digests.push(digest);
        self.keys.push(key);
        self.amounts.push(amounts);
    }

    fn clear(&mut self) {
        self.digests.clear();
        self.keys.clear();
        self.amounts.clear();
    }
}

/// What one shard is given.
#[derive(Debug)]
pub struct Lane {
    /// Flows of this shard.
    pub flows: Column<FlowKey>,
    /// Hosts of this shard.
    pub hosts: Column<Host>,
    /// Ports of this shard.
    pub ports: Column<Port>,
    /// Sources of this shard: the index of the packet in the batch, and the address.
    pub sources: Vec<(u16, IpAddr)>,
    /// Addresses that are not new from here on.
    pub known: Vec<IpAddr>,
}

impl Lane {
    fn new() -> Self {
        Lane {
            flows: Column::with_room(PACKETS),
            hosts: Column::with_room(2 * PACKETS),
            ports: Column::with_room(PACKETS),
            sources: Vec::with_capacity(PACKETS),
            known: Vec::new(),
        }
    }
}

/// Some packets, and what each shard is to do with them.
#[derive(Debug)]
pub struct Batch {
    /// The packets, in the order in which they came.
    pub packets: Vec<Packet>,
    /// The digests of their undirected flows under the engine's seed, once sorted.
    pub flows: Vec<Digest>,
    /// One for each shard.
    pub lanes: Vec<Lane>,
    /// What each packet stands for, bytes and packets, if one of them stands for more than itself.
    weights: Vec<[u64; 2]>,
    scratch: Scratch,
}

/// What a packet counts for: bytes and packets.
trait Weigh {
    fn weigh(&self, index: usize, packet: &Packet) -> [u64; 2];
}

/// Every packet for itself.
struct Itself;

impl Weigh for Itself {
    #[inline(always)]
    fn weigh(&self, _: usize, packet: &Packet) -> [u64; 2] {
        [packet.wire_len.into(), 1]
    }
}

impl Weigh for &[[u64; 2]] {
    #[inline(always)]
    fn weigh(&self, index: usize, _: &Packet) -> [u64; 2] {
        self[index]
    }
}

/// Keys of a whole batch before they are sorted.
#[derive(Debug)]
struct Scratch {
    flows: Vec<FlowKey>,
    hosts: Vec<Host>,
    subnets: Vec<[u8; 9]>,
    digests: Vec<Digest>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Batch {
            packets: Vec::with_capacity(PACKETS),
            flows: vec![Digest(0); PACKETS],
            lanes: (0..SHARDS).map(|_| Lane::new()).collect(),
            weights: Vec::new(),
            scratch: Scratch {
                flows: Vec::with_capacity(PACKETS),
                hosts: Vec::with_capacity(2 * PACKETS),
                subnets: Vec::with_capacity(PACKETS),
                digests: vec![Digest(0); 2 * PACKETS],
            },
        }
    }

    /// Whether it holds as many packets as it can.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.packets.len() == PACKETS
    }

    /// Adds a packet that stands for so many bytes and packets.
    pub fn push_weighted(&mut self, packet: &Packet, amounts: [u64; 2]) {
        self.even_out();
        self.packets.push(*packet);
        self.weights.push(amounts);
    }

    /// Packets without a weight have their own.
    fn even_out(&mut self) {
        let without = &self.packets[self.weights.len()..];
        self.weights.extend(without.iter().map(|packet| Itself.weigh(0, packet)));
    }

    /// Takes all packets out.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.weights.clear();
        for lane in &mut self.lanes {
            lane.flows.clear();
            lane.hosts.clear();
            lane.ports.clear();
            lane.sources.clear();
            lane.known.clear();
        }
    }

    /// Hashes the keys of all packets, and sorts them to the lanes.
    pub fn sort(&mut self, seed: Seed) {
        if self.weights.is_empty() {
            return self.sort_by(seed, Itself);
        }
        self.even_out();
        let weights = std::mem::take(&mut self.weights);
        self.sort_by(seed, &weights[..]);
        self.weights = weights;
    }

    fn sort_by(&mut self, seed: Seed, weights: impl Weigh) {
        let Batch { packets, flows, lanes, scratch, .. } = self;
        scratch.flows.clear();
        scratch.hosts.clear();
        scratch.subnets.clear();
        for packet in &*packets {
            scratch.flows.push(packet.flow.undirected());
            let source = sizes::host(packet.flow.source());
            scratch.subnets.push(subnet(&source));
            scratch.hosts.push(source);
            scratch.hosts.push(sizes::host(packet.flow.destination()));
        }
        hash(seed, &scratch.flows, flows);
        let all = packets.iter().zip(&scratch.flows).zip(&*flows);
        for (index, ((packet, &key), &digest)) in all.enumerate() {
            let amounts = weights.weigh(index, packet);
            lanes[shard(digest)].flows.push(digest, key, amounts);
            if let Some(port) = sizes::port(packet) {
                let digest = port.digest(seed);
                lanes[shard(digest)].ports.push(digest, port, amounts);
            }
        }
        hash(seed, &scratch.hosts, &mut scratch.digests);
        let pairs = scratch.hosts.as_chunks::<2>().0.iter().zip(scratch.digests.as_chunks::<2>().0);
        for (index, (packet, (hosts, digests))) in packets.iter().zip(pairs).enumerate() {
            let amounts = weights.weigh(index, packet);
            for (&host, &digest) in hosts.iter().zip(digests) {
                lanes[shard(digest)].hosts.push(digest, host, amounts);
                if hosts[0] == hosts[1] {
                    // Who speaks to itself is one host.
                    break;
                }
            }
        }
        hash(seed, &scratch.subnets, &mut scratch.digests);
        for ((index, packet), &digest) in packets.iter().enumerate().zip(&scratch.digests) {
            if weights.weigh(index, packet) == [0, 0] {
                // A packet that must have been, and that nobody counted, shows no source.
                continue;
            }
            lanes[shard(digest)].sources.push((index as u16, packet.flow.source()));
        }
    }
}

impl Default for Batch {
    fn default() -> Self {
        Batch::new()
    }
}

/// The shard that owns a key: bits from the digest's middle, which the tables use least.
#[inline]
pub fn shard(digest: Digest) -> usize {
    (digest.0 >> 24) as usize % SHARDS
}

/// The subnet of a host as a key, a /24 or a /64: all of its addresses have one owner.
#[inline]
pub fn subnet(host: &Host) -> [u8; 9] {
    let mut subnet = [0; 9];
    let length = if host[0] == 4 { 4 } else { 9 };
    subnet[..length].copy_from_slice(&host[..length]);
    subnet
}

fn hash<K: Key>(seed: Seed, keys: &[K], digests: &mut [Digest]) {
    sidon::hash::digests(seed, keys, &mut digests[..keys.len()]);
}
