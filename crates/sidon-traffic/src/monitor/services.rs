//! The service of each packet: the port of the end that was contacted, the responder.
//!
//! Four rules name the responder, in this order. The ledger counts packets by rule.
//!
//! | rule | the responder |
//! |---|---|
//! | `syn` | the destination of a SYN, the source of a SYN-ACK; then for the whole connection |
//! | `first_sender` | the end that did not send the first packet of the flow |
//! | `registered_port` | the end at a [registered](ports::is_registered) port, if the other is not |
//! | `lower_port` | the end at the lower port |
//!
//! The map of connections stores the opener of each TCP connection that it follows. A connection
//! without a SYN began before the capture, so either end may have sent its first captured packet. A
//! registered port then takes precedence over the first sender.
//!
//! A second map stores the first sender of each flow of another protocol, in three bytes per flow.
//! A flow expires after 60 to 120 seconds of silence.
//!
//! The ports alone name the responder of a flow that neither map follows, because the map is full or
//! samples. `guessed` sums the amounts of such packets, because the named service may be wrong. The
//! ports also name the responder of a flow record, which does not tell the order of its packets. A
//! record with a SYN and no ACK is the exception.

use super::{
    connections::Connections,
    p2p::ports,
    sizes::{self, Port},
};
use crate::{
    FlowKey, Packet, TcpFlags,
    batch::{Batch, PACKETS},
    flow::protocol,
    flow_map::{FlowMap, Monitor, Share, Step, Taken},
    resume::Resume,
    snapshot::encode::{In, Out},
    work::Work,
};
use sidon::{
    Digest, Infeasible, Lookup, Malformed, Seed,
    internals::{Fate, Visited},
    state::{
        Next, State,
        fingerprint::{Moves, Placing, Shape},
    },
};

/// The names of the rules, in the order of [`Rule`].
pub const RULES: [&str; 4] = ["syn", "first_sender", "registered_port", "lower_port"];

/// The rule that named a responder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A SYN or SYN-ACK.
    Syn,
    /// The first packet of the flow.
    FirstSender,
    /// The only registered port of the two.
    RegisteredPort,
    /// The lower port.
    LowerPort,
}

/// The responder of a packet's flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Responder {
    /// Whether the source of the packet is the responder.
    pub is_source: bool,
    /// The rule that says so.
    pub rule: Rule,
}

impl Responder {
    /// The responder by the ports alone.
    #[inline]
    pub fn by_ports(flow: &FlowKey) -> Self {
        let [source, destination] = [flow.source_port(), flow.destination_port()];
        let is_registered = ports::is_registered(source);
        if is_registered != ports::is_registered(destination) {
            return Responder { is_source: is_registered, rule: Rule::RegisteredPort };
        }
        // Port 0 is reserved, so it counts as the highest.
        let is_source = source.wrapping_sub(1) < destination.wrapping_sub(1);
        Responder { is_source, rule: Rule::LowerPort }
    }

    /// The service of a packet of `flow`.
    #[inline]
    pub fn service(self, flow: &FlowKey) -> Port {
        let port = if self.is_source { flow.source_port() } else { flow.destination_port() };
        sizes::port(flow.protocol(), port)
    }
}

/// Bits of a cell, and cells of a bucket: 21 cells of 24 bits fill a cache line of 64 bytes.
const WIDTH: u32 = 24;
const CELLS: u32 = 21;

/// Silence after which a flow expires, in nanoseconds: this at least, twice this at most.
pub(crate) const SILENCE: u64 = 60_000_000_000;

/// The shape of a map of `bytes` bytes.
pub fn shape(bytes: u64) -> Shape {
    let bucket = u64::from(CELLS * WIDTH).div_ceil(64) * 8;
    let shape = Shape {
        subtables: 2,
        buckets: (bytes / (2 * bucket)).max(1),
        cells: CELLS,
        width: WIDTH,
        remainder: 1,
        // The lower end of the flow sent first, or the higher end.
        states: 2,
        // The least that a map allows. Flows never share a cell here.
        shared: 2,
        placing: Placing::Permuted,
        // A flood of datagrams fills the map. Its packets must not pay for a search for free cells.
        moves: Moves::Never,
        reinsert: false,
        stash: 0,
        growths: 0,
        grows: false,
        listed: 0,
    };
    Shape { remainder: WIDTH - shape.low_bits(), ..shape }
}

/// The monitor.
#[derive(Debug)]
pub struct Services {
    flows: FlowMap,
    /// The responder of each packet of a batch; `None` for a packet without ports.
    responders: Vec<Option<Responder>>,
    /// The packets that the map of flows follows, and the digests of their flows.
    datagrams: Vec<u16>,
    digests: Vec<Digest>,
    /// Whether the responder of each packet of a batch is a guess.
    guesses: Vec<bool>,
    /// Packets by rule.
    counts: [u64; RULES.len()],
    /// Bytes and packets whose service may be wrong: of flows that no map follows, and of connections
    /// without their SYN.
    guessed: [u64; 2],
    /// Packets of flows that did not fit in the map.
    refused: u64,
}

impl Services {
    /// A monitor without flows.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        Ok(Services {
            flows: FlowMap::new(
                shape,
                seed,
                &[SILENCE],
                vec![1; shape.states as usize + 1],
                false,
            )?,
            responders: Vec::with_capacity(PACKETS),
            datagrams: Vec::with_capacity(PACKETS),
            digests: Vec::with_capacity(PACKETS),
            guesses: Vec::with_capacity(PACKETS),
            counts: [0; RULES.len()],
            guessed: [0; 2],
            refused: 0,
        })
    }

    /// For tests: after `packets` packets the map refuses every new flow.
    #[doc(hidden)]
    pub fn refuse_after(&mut self, packets: u64) {
        self.flows.refuse_after(packets);
    }

    /// Writes the service of each packet of a sorted batch into its column of ports. `connections`
    /// has taken the batch.
    pub fn take(&mut self, batch: &mut Batch, connections: &Connections) {
        self.responders.clear();
        self.guesses.clear();
        self.datagrams.clear();
        self.digests.clear();
        for (index, packet) in batch.packets.iter().enumerate() {
            let (flow, unordered) = (&packet.flow, batch.is_unordered(index));
            if !has_service(flow) {
                self.responders.push(None);
                self.guesses.push(false);
                continue;
            }
            let by_flags = by_flags(packet).filter(|_| !unordered);
            self.guesses.push(by_flags.is_none() && !unordered);
            self.responders.push(Some(by_flags.unwrap_or_else(|| Responder::by_ports(flow))));
            if flow.protocol() != protocol::TCP && !unordered {
                self.datagrams.push(index as u16);
                self.digests.push(batch.flows[index]);
            }
        }
        for opener in connections.openers() {
            let index = usize::from(opener.index);
            let Some(responder) = &mut self.responders[index] else { continue };
            // Without its SYN, a connection may have been opened by either end.
            self.guesses[index] = !opener.by_syn && !batch.is_unordered(index);
            match responder.rule {
                _ if batch.is_unordered(index) => {}
                Rule::Syn => {}
                // The connection's guess is the registered port, too.
                Rule::RegisteredPort if !opener.by_syn => {}
                _ => {
                    let rule = if opener.by_syn { Rule::Syn } else { Rule::FirstSender };
                    *responder = Responder { is_source: !opener.is_source, rule };
                }
            }
        }
        let Services { flows, responders, guesses, datagrams, digests, refused, .. } = self;
        let packets = &batch.packets;
        let time = |key: usize| packets[usize::from(datagrams[key])].time_ns;
        let mut followed = Datagrams { packets, datagrams, responders, guesses, refused };
        flows.take(digests, time, &mut followed);
        for (index, responder) in self.responders.iter().enumerate() {
            let Some(responder) = responder else {
                batch.columns.ports[index] = sizes::NO_PORT;
                continue;
            };
            batch.columns.ports[index] = responder.service(&batch.packets[index].flow);
            let count = &mut self.counts[responder.rule as usize];
            let amounts = batch.columns.amounts[index];
            *count = count.saturating_add(amounts[1]);
            if self.guesses[index] {
                for (guessed, amount) in self.guessed.iter_mut().zip(amounts) {
                    *guessed = guessed.saturating_add(amount);
                }
            }
        }
    }

    /// The work of its map.
    pub(crate) fn work(&self) -> [Work; 2] {
        self.flows.work(["services: cells read by timers", "services: buckets searched"])
    }

    /// Starts the counts at zero again, and keeps the first senders of flows.
    pub(crate) fn reset_counts(&mut self) {
        (self.counts, self.guessed, self.refused) = ([0; RULES.len()], [0; 2], 0);
    }

    /// The responder of each packet of the last batch; `None` for a packet without ports.
    pub fn responders(&self) -> &[Option<Responder>] {
        &self.responders
    }

    /// Packets by rule, in the order of [`RULES`].
    pub fn counts(&self) -> [u64; RULES.len()] {
        self.counts
    }

    /// Bytes and packets whose service may be wrong.
    pub fn guessed(&self) -> [u64; 2] {
        self.guessed
    }

    /// The expected number of flows whose first sender is that of another flow.
    pub fn mistaken(&self) -> f64 {
        self.flows.mistaken()
    }

    /// Packets of flows that did not fit in the map.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

/// Whether packets of this flow have a service: at least one port is not 0. Both ports of a later
/// fragment are 0.
#[inline]
pub(crate) fn has_service(flow: &FlowKey) -> bool {
    protocol::has_ports(flow.protocol()) && (flow.source_port(), flow.destination_port()) != (0, 0)
}

/// The responder that a SYN or SYN-ACK names.
#[inline]
pub(crate) fn by_flags(packet: &Packet) -> Option<Responder> {
    let flags = packet.tcp_flags();
    let is_source = flags.has(TcpFlags::ACK);
    let names = flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::RST);
    names.then_some(Responder { is_source, rule: Rule::Syn })
}

/// The packets of a batch that the map of flows follows.
struct Datagrams<'a> {
    packets: &'a [Packet],
    datagrams: &'a [u16],
    responders: &'a mut [Option<Responder>],
    guesses: &'a mut [bool],
    refused: &'a mut u64,
}

impl Datagrams<'_> {
    /// Whether the higher end of the flow sent a packet, as a state.
    #[inline]
    fn sender(&self, key: usize) -> State {
        let packet = &self.packets[usize::from(self.datagrams[key])];
        State::from(!packet.flow.is_ordered())
    }
}

impl Monitor for Datagrams<'_> {
    #[inline]
    fn next(&mut self, key: usize, now: Lookup<State>) -> Next<State> {
        match now {
            Lookup::Absent => Next::Insert(self.sender(key)),
            _ => Next::Stay,
        }
    }

    #[inline]
    fn done(&mut self, key: usize, step: Step) {
        let first = match (step.before, step.next, step.result) {
            (Lookup::State(first), ..) | (_, Next::Insert(first), Taken::Yes) => first,
            _ => {
                *self.refused += 1;
                return;
            }
        };
        let is_source = self.sender(key) != first;
        let responder = Responder { is_source, rule: Rule::FirstSender };
        let index = usize::from(self.datagrams[key]);
        self.responders[index] = Some(responder);
        self.guesses[index] = false;
    }

    fn visit(&mut self, _: usize, cell: Visited, _: Share) -> Fate {
        if cell.touched { Fate::Untouch } else { Fate::Clear }
    }
}

impl Resume for Services {
    fn save(&self, out: &mut Out) {
        out.numbers(&self.counts);
        out.numbers(&self.guessed);
        out.number(self.refused);
        self.flows.save(out);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        (self.counts, self.guessed) = (bytes.numbers()?, bytes.numbers()?);
        self.refused = bytes.count("refused")?;
        self.flows.resume(bytes)
    }
}
