//! What the engine answers, in exact hash maps that grow.
//!
//! Bytes and packets for each flow, host and port; the set of source addresses; the state of every
//! TCP connection by the same machine; for each victim what was asked and answered, for each source
//! the targets that did not let it in; for each pair of hosts what they spoke, and for each host and
//! port its peers and theirs. Nothing is aged, which the engine does besides.

use hashbrown::{HashMap, HashSet};
use sidon::{
    Lookup,
    state::{Next, State},
};
use sidon_traffic::{
    FlowKey, Packet, TcpFlags,
    flow::protocol,
    monitor::{
        connections::life::{self, Lives},
        p2p::ports,
        services::Responder,
        sizes::{self, Host, Port},
    },
};
use std::net::IpAddr;

/// A host and a port.
type End = (IpAddr, u16);
/// Peers, and their ports.
type Peers = (HashSet<IpAddr>, HashSet<u16>);

/// All of them.
#[derive(Default)]
pub(crate) struct Maps {
    pub(crate) flows: HashMap<FlowKey, [u64; 2]>,
    hosts: HashMap<Host, [u64; 2]>,
    ports: HashMap<Port, [u64; 2]>,
    sources: HashSet<IpAddr>,
    lives: Lives,
    connections: HashMap<FlowKey, State>,
    half_open: u64,
    /// Asked and answered, by victim.
    asked: HashMap<End, [u64; 2]>,
    /// Hosts that did not let a source in, by port; ports, by host.
    refusing_hosts: HashMap<End, HashSet<IpAddr>>,
    refusing_ports: HashMap<(IpAddr, IpAddr), HashSet<u16>>,
    /// Protocols and ways of a pair, two bits each.
    pairs: HashMap<FlowKey, u8>,
    both: HashMap<IpAddr, HashSet<IpAddr>>,
    opened: HashMap<IpAddr, Peers>,
    known: HashMap<IpAddr, HashSet<IpAddr>>,
    ends: HashMap<End, Peers>,
}

impl Maps {
    /// Bytes, packets and source addresses.
    pub(crate) fn sizes(&mut self, packet: &Packet) {
        let bytes = u64::from(packet.wire_len);
        let add = |counts: &mut [u64; 2]| {
            counts[0] += bytes;
            counts[1] += 1;
        };
        add(self.flows.entry(packet.flow.undirected()).or_default());
        let (source, destination) = (packet.flow.source(), packet.flow.destination());
        add(self.hosts.entry(sizes::host(source)).or_default());
        if source != destination {
            add(self.hosts.entry(sizes::host(destination)).or_default());
        }
        if protocol::has_ports(packet.flow.protocol()) {
            let service = Responder::by_ports(&packet.flow).service(&packet.flow);
            add(self.ports.entry(service).or_default());
        }
        self.sources.insert(source);
    }

    /// All else.
    pub(crate) fn states(&mut self, packet: &Packet) {
        self.connect(packet);
        self.pair(packet);
    }

    /// Connections whose handshake is not complete.
    pub(crate) fn half_open(&self) -> u64 {
        self.half_open
    }

    fn connect(&mut self, packet: &Packet) {
        let Some(event) = life::event(packet) else { return };
        let place = self.connections.entry(packet.flow.undirected());
        let now = match &place {
            hashbrown::hash_map::Entry::Occupied(entry) => Lookup::State(*entry.get()),
            hashbrown::hash_map::Entry::Vacant(_) => Lookup::Absent,
        };
        let next = match self.lives.machine.next(now, event) {
            Next::Insert(next) | Next::Modify(next) | Next::Set(next) => next,
            Next::Stay => return,
            Next::Forget => {
                self.connections.remove(&packet.flow.undirected());
                return;
            }
        };
        place.insert(next);
        let was = match now {
            Lookup::State(state) => self.lives.of(state).is_half_open(),
            _ => false,
        };
        let life = self.lives.of(next);
        let is = life.is_half_open();
        self.half_open += u64::from(is);
        self.half_open -= u64::from(was);
        if was == is {
            return;
        }
        let by_opener = packet.flow.is_ordered() != life.is_turned();
        let flow = if by_opener { packet.flow } else { packet.flow.reversed() };
        let (opener, victim, port) = (flow.source(), flow.destination(), flow.destination_port());
        if is {
            self.asked.entry((victim, port)).or_default()[0] += 1;
            self.refusing_hosts.entry((opener, port)).or_default().insert(victim);
            self.refusing_ports.entry((opener, victim)).or_default().insert(port);
        } else {
            self.asked.entry((victim, port)).or_default()[1] += 1;
            if !life.is_refused() && !life.is_aborted() {
                if let Some(hosts) = self.refusing_hosts.get_mut(&(opener, port)) {
                    hosts.remove(&victim);
                }
                if let Some(ports) = self.refusing_ports.get_mut(&(opener, victim)) {
                    ports.remove(&port);
                }
            }
        }
    }

    fn pair(&mut self, packet: &Packet) {
        let (flow, flags) = (&packet.flow, packet.tcp_flags());
        let udp = flow.protocol() == protocol::UDP;
        let [from, to] = [flow.source_port(), flow.destination_port()];
        let known = udp || flow.protocol() == protocol::TCP;
        if !known || ports::is_service(from) || ports::is_service(to) || flags.has(TcpFlags::RST) {
            return;
        }
        let (source, destination) = (flow.source(), flow.destination());
        let hosts = flow.hosts();
        let event = (if udp { 2 } else { 1 }) | if hosts.is_ordered() { 4 } else { 8 };
        let state = self.pairs.entry(hosts.undirected()).or_default();
        let was = std::mem::replace(state, *state | event);
        let is = was | event;
        let syn = flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK);
        if was == is && !syn {
            return;
        }
        if syn || (udp && was & 3 != is & 3) {
            let end = self.ends.entry((destination, to)).or_default();
            end.0.insert(source);
            end.1.insert(from);
        }
        if udp && was & 3 != is & 3 {
            let end = self.ends.entry((source, from)).or_default();
            end.0.insert(destination);
            end.1.insert(to);
        }
        if was & 3 != 3 && is & 3 == 3 {
            self.both.entry(source).or_default().insert(destination);
            self.both.entry(destination).or_default().insert(source);
        }
        if was == 0 && ports::is_peers(to) {
            self.known.entry(source).or_default().insert(destination);
        }
        if was != 0 && was >> 2 != 3 && is >> 2 == 3 {
            let opened = self.opened.entry(destination).or_default();
            opened.0.insert(source);
            opened.1.insert(from);
        }
    }
}
