//! Batches of packets, with the keys of each packet sorted by the shard that owns them.
//!
//! ```text
//! packet -> flow key  -> digest -> | lane 0 | lane 1 | ... | lane 7 |     by bits of the digest
//!        -> two hosts -> digests ->
//!        -> service   -> digest  ->       once the monitor of services has named it
//! ```
//! One thread fills a batch, and the owners of the shards read it. All shards share the columns of
//! keys and amounts; a `Lane` lists the entries of one shard. Columns and lanes are allocated once,
//! at their full length, so that no packet needs an allocation.

use crate::{
    FlowKey, Packet,
    budget::SHARDS,
    monitor::sizes::{self, Host, Port},
    resume::{self, Resume},
    snapshot::encode::{In, Out},
};
use sidon::{Digest, Key, Malformed, Seed, count::top::Pick, key};
use std::net::IpAddr;

/// Packets in a batch.
pub const PACKETS: usize = 512;

/// The input of one shard: the positions of its keys in the batch's columns, in packet order.
#[derive(Debug)]
pub struct Lane {
    /// Undirected flows of this shard.
    pub flows: Vec<Pick>,
    /// Hosts of this shard.
    pub hosts: Vec<Pick>,
    /// Ports of this shard.
    pub ports: Vec<Pick>,
    /// Packets whose source addresses belong to this shard.
    pub sources: Vec<u16>,
    /// Source addresses to add as known: packets do not report them as new.
    pub known: Vec<IpAddr>,
}

impl Lane {
    fn new() -> Self {
        Lane {
            flows: Vec::with_capacity(PACKETS),
            hosts: Vec::with_capacity(2 * PACKETS),
            ports: Vec::with_capacity(PACKETS),
            sources: Vec::with_capacity(PACKETS),
            known: Vec::new(),
        }
    }
}

/// A batch of packets, and the input of each shard.
#[derive(Debug)]
pub struct Batch {
    /// The packets in order of arrival, at most [`PACKETS`].
    pub packets: Vec<Packet>,
    /// The digests of the packets' undirected flows under the engine's seed, once sorted.
    pub flows: Vec<Digest>,
    /// The keys and amounts that the lanes refer to, once sorted.
    pub columns: Columns,
    /// The input of each shard.
    pub lanes: Vec<Lane>,
    /// The weight of each packet. Empty if every packet has its own weight.
    weights: Vec<Weight>,
}

/// The weight of a packet.
#[derive(Debug, Clone, Copy)]
struct Weight {
    /// Bytes and packets that it counts for.
    amounts: [u64; 2],
    /// See [`Batch::is_unordered`].
    is_unordered: bool,
}

/// The keys of the packets and their amounts. Each column has [`PACKETS`] entries; entries after
/// the last packet have no meaning.
#[derive(Debug)]
pub struct Columns {
    /// Undirected flows.
    pub flows: Vec<FlowKey>,
    /// Source and destination of each packet.
    pub hosts: Vec<[Host; 2]>,
    /// The digests of source and destination.
    pub ends: Vec<[Digest; 2]>,
    /// The subnets of the sources, see [`subnet`].
    networks: Vec<u64>,
    /// The digests of the sources' subnets.
    pub subnets: Vec<Digest>,
    /// Services, or [`NO_PORT`](sizes::NO_PORT), once the monitor of services has named them.
    pub ports: Vec<Port>,
    /// The digests of the services.
    services: Vec<Digest>,
    /// Bytes and packets.
    pub amounts: Vec<[u64; 2]>,
}

/// The weight of a packet: the bytes and packets that it counts for.
trait Weigh {
    fn weigh(&self, index: usize, packet: &Packet) -> [u64; 2];
}

/// The ordinary weight: the packet's own bytes, and one packet.
struct Itself;

impl Weigh for Itself {
    #[inline(always)]
    fn weigh(&self, _: usize, packet: &Packet) -> [u64; 2] {
        [packet.wire_len.into(), 1]
    }
}

impl Weigh for &[Weight] {
    #[inline(always)]
    fn weigh(&self, index: usize, _: &Packet) -> [u64; 2] {
        self[index].amounts
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        let nobody = FlowKey::v4([0; 4], [0; 4], [0; 2], 0);
        Batch {
            packets: Vec::with_capacity(PACKETS),
            flows: vec![Digest(0); PACKETS],
            columns: Columns {
                flows: vec![nobody; PACKETS],
                hosts: vec![[[0; 17]; 2]; PACKETS],
                ends: vec![[Digest(0); 2]; PACKETS],
                networks: vec![0; PACKETS],
                subnets: vec![Digest(0); PACKETS],
                ports: vec![[0; 3]; PACKETS],
                services: vec![Digest(0); PACKETS],
                amounts: vec![[0; 2]; PACKETS],
            },
            lanes: (0..SHARDS).map(|_| Lane::new()).collect(),
            weights: Vec::new(),
        }
    }

    /// Whether the batch has no free position.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.packets.len() >= PACKETS
    }

    /// Adds a packet that counts for `amounts`: bytes and packets. For `is_unordered` see
    /// [`Batch::is_unordered`].
    pub fn push_weighted(&mut self, packet: &Packet, amounts: [u64; 2], is_unordered: bool) {
        self.even_out();
        self.packets.push(*packet);
        self.weights.push(Weight { amounts, is_unordered });
    }

    /// Whether packets stand for flow records, each with its own weight.
    pub(crate) fn has_weights(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Whether this packet stands for a flow record that does not tell which end sent first.
    #[inline]
    pub fn is_unordered(&self, index: usize) -> bool {
        self.weights.get(index).is_some_and(|weight| weight.is_unordered)
    }

    /// Gives each packet without a weight its own bytes and a count of one.
    fn even_out(&mut self) {
        let without = &self.packets[self.weights.len()..];
        let own = |packet| Weight { amounts: Itself.weigh(0, packet), is_unordered: false };
        self.weights.extend(without.iter().map(own));
    }

    /// Removes all packets.
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

    /// Hashes the keys of all packets except services, and adds them to the lanes of their shards.
    pub fn sort(&mut self, seed: Seed) {
        if self.weights.is_empty() {
            return self.sort_by(seed, Itself);
        }
        self.even_out();
        let weights = std::mem::take(&mut self.weights);
        self.sort_by(seed, &weights[..]);
        self.weights = weights;
    }

    /// Hashes the services in the column of ports, and adds them to the lanes of their shards.
    pub fn sort_ports(&mut self, seed: Seed) {
        let Batch { packets, columns, lanes, .. } = self;
        let (ports, digests) = (&columns.ports[..packets.len()], &mut columns.services);
        key::digests(seed, ports, &mut digests[..packets.len()]);
        for (at, (port, &digest)) in (0..).zip(ports.iter().zip(&*digests)) {
            if *port != sizes::NO_PORT {
                lanes[shard(digest)].ports.push(Pick { digest, key: at, amounts: at });
            }
        }
    }

    fn sort_by(&mut self, seed: Seed, weights: impl Weigh) {
        let Batch { packets, flows, columns, lanes, .. } = self;
        assert!(packets.len() <= PACKETS, "{} packets in a batch", packets.len());
        let length = packets.len();
        let Columns { flows: keys, hosts, ends, networks, subnets, .. } = columns;
        for (index, packet) in packets.iter().enumerate() {
            keys[index] = packet.flow.undirected();
            hosts[index] = packet.flow.ends();
            networks[index] = subnet(&hosts[index][0]);
        }
        // Each column is hashed at once, which takes less time than the keys of each packet in turn.
        key::digests(seed, &keys[..length], &mut flows[..length]);
        let hosts = hosts[..length].as_flattened();
        key::digests(seed, hosts, ends[..length].as_flattened_mut());
        key::digests(seed, &networks[..length], &mut subnets[..length]);
        for (index, packet) in packets.iter().enumerate() {
            let (at, digest) = (index as u32, flows[index]);
            lanes[shard(digest)].flows.push(Pick { digest, key: at, amounts: at });

            let [by_source, by_destination] = ends[index];
            let pick = Pick { digest: by_source, key: 2 * at, amounts: at };
            lanes[shard(by_source)].hosts.push(pick);
            // If source and destination are the same host, the packet counts once.
            if by_source != by_destination || hosts[2 * index] != hosts[2 * index + 1] {
                let pick = Pick { digest: by_destination, key: 2 * at + 1, amounts: at };
                lanes[shard(by_destination)].hosts.push(pick);
            }

            let amounts = weights.weigh(index, packet);
            columns.amounts[index] = amounts;
            // A packet that a flow record only implies has no amounts, and adds no source.
            if amounts != [0, 0] {
                lanes[shard(subnets[index])].sources.push(index as u16);
            }
        }
    }
}

/// A batch in a checkpoint: the packets that wait in it, their weights, and known addresses. Columns and
/// lanes follow from the packets.
impl Resume for Batch {
    fn save(&self, out: &mut Out) {
        let Batch { packets, flows: _, columns: _, lanes, weights } = self;
        out.number(packets.len() as u64);
        packets.iter().for_each(|packet| resume::save_packet(packet, out));
        out.number(weights.len() as u64);
        for Weight { amounts, is_unordered } in weights {
            out.numbers(amounts);
            out.flag(*is_unordered);
        }
        for Lane { flows: _, hosts: _, ports: _, sources: _, known } in lanes {
            out.number(known.len() as u64);
            known.iter().for_each(|&address| out.address(address));
        }
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        for _ in 0..bytes.length("packets", PACKETS)? {
            self.packets.push(resume::read_packet(bytes)?);
        }
        for _ in 0..bytes.length("weights", self.packets.len())? {
            let (amounts, is_unordered) = (bytes.numbers()?, bytes.flag("is_unordered")?);
            self.weights.push(Weight { amounts, is_unordered });
        }
        for lane in &mut self.lanes {
            for _ in 0..bytes.length("known", PACKETS)? {
                lane.known.push(bytes.address("known")?);
            }
        }
        Ok(())
    }
}

impl Default for Batch {
    fn default() -> Self {
        Batch::new()
    }
}

/// The shard that owns a key: bits from the digest's middle, which the tables use least.
#[inline(always)]
pub fn shard(digest: Digest) -> usize {
    (digest.0 >> 24) as usize % SHARDS
}

/// The subnet of a host as a key: the number of its /24, or of its /64. One shard owns all addresses
/// of a subnet.
#[inline(always)]
pub fn subnet(host: &Host) -> u64 {
    let [version, a, b, c, d, e, f, g, h, ..] = *host;
    match version {
        4 => u32::from_be_bytes([0, a, b, c]).into(),
        _ => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
    }
}

/// The shard that owns a source address.
pub fn shard_of_source(address: IpAddr, seed: Seed) -> usize {
    shard(subnet(&sizes::host(address)).digest(seed))
}
