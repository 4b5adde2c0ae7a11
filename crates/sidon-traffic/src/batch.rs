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
    fn push(&mut self, digest: Digest, key: K, bytes: u64) {
        self.digests.push(digest);
        self.keys.push(key);
        self.amounts.push([bytes, 1]);
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
}

impl Lane {
    fn new() -> Self {
        Lane {
            flows: Column::with_room(PACKETS),
            hosts: Column::with_room(2 * PACKETS),
            ports: Column::with_room(PACKETS),
            sources: Vec::with_capacity(PACKETS),
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
    scratch: Scratch,
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

    /// Takes all packets out.
    pub fn clear(&mut self) {
        self.packets.clear();
        for lane in &mut self.lanes {
            lane.flows.clear();
            lane.hosts.clear();
            lane.ports.clear();
            lane.sources.clear();
        }
    }

    /// Hashes the keys of all packets, and sorts them to the lanes.
    pub fn sort(&mut self, seed: Seed) {
        let Batch { packets, flows, lanes, scratch } = self;
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
        for ((packet, &key), &digest) in packets.iter().zip(&scratch.flows).zip(&*flows) {
            let bytes = packet.wire_len.into();
            lanes[shard(digest)].flows.push(digest, key, bytes);
            if let Some(port) = sizes::port(packet) {
                let digest = port.digest(seed);
                lanes[shard(digest)].ports.push(digest, port, bytes);
            }
        }
        hash(seed, &scratch.hosts, &mut scratch.digests);
        let pairs = scratch.hosts.as_chunks::<2>().0.iter().zip(scratch.digests.as_chunks::<2>().0);
        for (packet, (hosts, digests)) in packets.iter().zip(pairs) {
            let bytes = packet.wire_len.into();
            for (&host, &digest) in hosts.iter().zip(digests) {
                lanes[shard(digest)].hosts.push(digest, host, bytes);
                if hosts[0] == hosts[1] {
                    // Who speaks to itself is one host.
                    break;
                }
            }
        }
        hash(seed, &scratch.subnets, &mut scratch.digests);
        for ((index, packet), &digest) in packets.iter().enumerate().zip(&scratch.digests) {
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
