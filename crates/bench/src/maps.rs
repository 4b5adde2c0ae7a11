//! What the engine answers, exactly, in hash maps that grow and that nothing ever leaves.

use hashbrown::{HashMap, HashSet, hash_map::Entry};
use sidon::{Lookup, ops::Next, state::State};
use sidon_traffic::{
    FlowKey, Packet,
    monitor::{
        connections::life::{self, Lives},
        sizes::{self, Host, Port},
    },
};
use std::net::IpAddr;

/// Bytes and packets for each flow, host and port, and the set of source addresses.
#[derive(Default)]
pub(crate) struct Sizes {
    pub(crate) flows: HashMap<FlowKey, [u64; 2]>,
    hosts: HashMap<Host, [u64; 2]>,
    ports: HashMap<Port, [u64; 2]>,
    sources: HashSet<IpAddr>,
}

impl Sizes {
    pub(crate) fn packet(&mut self, packet: &Packet) {
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
        if let Some(port) = sizes::port(packet) {
            add(self.ports.entry(port).or_default());
        }
        self.sources.insert(source);
    }
}

/// The state of every connection by the engine's own machine; of each victim the handshakes asked
/// for and answered; of each source the hosts, and for each host the ports, that did not let it in.
pub(crate) struct States {
    lives: Lives,
    connections: HashMap<FlowKey, State>,
    half_open: u64,
    victims: HashMap<(Host, u16), [u64; 2]>,
    hosts: HashMap<(Host, u16), HashSet<Host>>,
    ports: HashMap<(Host, Host), HashSet<u16>>,
}

impl States {
    pub(crate) fn new() -> Self {
        States {
            lives: Lives::new(),
            connections: HashMap::new(),
            half_open: 0,
            victims: HashMap::new(),
            hosts: HashMap::new(),
            ports: HashMap::new(),
        }
    }

    pub(crate) fn packet(&mut self, packet: &Packet) {
        let Some(event) = life::event(packet) else { return };
        let mut entry = self.connections.entry(packet.flow.undirected());
        let now = match &entry {
            Entry::Occupied(entry) => Lookup::State(*entry.get()),
            Entry::Vacant(_) => Lookup::Absent,
        };
        let next = match self.lives.machine.next(now, event) {
            Next::Stay => return,
            Next::Forget => {
                if let Entry::Occupied(entry) = entry {
                    entry.remove();
                }
                return;
            }
            Next::Insert(next) | Next::Modify(next) | Next::Set(next) => next,
        };
        match &mut entry {
            Entry::Occupied(entry) => *entry.get_mut() = next,
            Entry::Vacant(_) => drop(entry.insert(next)),
        }
        let life = self.lives.of(next);
        let was = matches!(now, Lookup::State(state) if self.lives.of(state).is_half_open());
        let turned = life.is_turned();
        let confirmed = !life.is_refused() && !life.is_aborted();
        match (was, life.is_half_open()) {
            (false, true) => {
                self.half_open += 1;
                self.asked(packet, turned);
            }
            (true, false) => {
                self.half_open -= 1;
                self.answered(packet, turned, confirmed);
            }
            _ => {}
        }
    }

    fn ends(packet: &Packet, turned: bool) -> (Host, Host, u16) {
        let by_opener = packet.flow.is_ordered() != turned;
        let flow = if by_opener { packet.flow } else { packet.flow.reversed() };
        let [opener, victim] = [flow.source(), flow.destination()].map(sizes::host);
        (opener, victim, flow.destination_port())
    }

    fn asked(&mut self, packet: &Packet, turned: bool) {
        let (opener, victim, port) = Self::ends(packet, turned);
        self.victims.entry((victim, port)).or_default()[0] += 1;
        self.hosts.entry((opener, port)).or_default().insert(victim);
        self.ports.entry((opener, victim)).or_default().insert(port);
    }

    fn answered(&mut self, packet: &Packet, turned: bool, confirmed: bool) {
        let (opener, victim, port) = Self::ends(packet, turned);
        if let Some(counts) = self.victims.get_mut(&(victim, port)) {
            counts[1] += 1;
        }
        if confirmed {
            if let Some(hosts) = self.hosts.get_mut(&(opener, port)) {
                hosts.remove(&victim);
            }
            if let Some(ports) = self.ports.get_mut(&(opener, victim)) {
                ports.remove(&port);
            }
        }
    }

    /// Connections whose handshake is not complete.
    pub(crate) fn half_open(&self) -> u64 {
        self.half_open
    }
}
