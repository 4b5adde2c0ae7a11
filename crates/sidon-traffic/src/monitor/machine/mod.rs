//! A user-defined state machine over packets: counts flows by state, and the states where they end.
//!
//! A [`Definition`] says which packets trigger each event ([`When`]) and how long a flow may be
//! silent in each state. A flow is a five-tuple in both directions. A [`Fingerprint`] map of fixed
//! size stores its state, with the opener of the flow in the lowest bit:
//! ```text
//! packet -> flow key -> map: state, opener -> event -> machine: next -> counts by state and event
//! timers, by packet time -> flows silent longer than their timeout -> expired, by state
//! ```
//! A packet triggers the first event that it matches, in the order of the definition. A flow
//! expires after a silence of one to two times the timeout of its state.

mod saved;
mod when;

pub use when::{Direction, Ports, When};

use crate::{
    Packet,
    figure::Figure,
    flow_map::{EXACT, FlowMap, Monitor, Share, Step, Taken, mistaken_most},
    work::Work,
};
use serde_json::{Value, json};
use sidon::{
    Digest, Infeasible, Lookup, Seed,
    internals::{Fate, Visited},
    state::{
        Fingerprint, Machine, Next, State,
        fingerprint::{Moves, Placing, Shape},
    },
};
use std::sync::Arc;

/// The most states of a machine over packets. A cell of four bytes stores one of these and 23 bits
/// of remainder.
pub const STATES_MAX: usize = 120;
/// The most events of a machine over packets. A packet may be compared with all of them, by at most
/// eight tests each.
pub const EVENTS_MAX: usize = 256;
/// The timeout of a silent flow, in seconds, for states without their own.
pub const TIMEOUT: u64 = 300;
/// Bits of a cell, and cells of a bucket: 64 bytes, one cache line.
const WIDTH: u32 = 32;
const CELLS: u32 = 16;
/// The most flows that a shared cell counts.
const SHARED: u32 = 12;
const SECOND: u64 = 1_000_000_000;

/// A machine, the packets that trigger its events, and its timeouts.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The name of the machine.
    pub name: String,
    /// The machine.
    pub machine: Machine,
    /// The conditions and number of each event. The first match is used.
    pub events: Vec<(When, u16)>,
    /// The timeout of a silent flow in each state, in seconds.
    pub timeouts: Vec<u64>,
}

/// Counts of one state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stay {
    /// How often flows entered the state.
    pub entered: u64,
    /// Flows in the state now.
    pub now: u64,
    /// Flows that expired in the state because they were silent too long.
    pub expired: u64,
}

/// Counts of one machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    /// The name of the machine.
    pub name: String,
    /// The number of flows that were opened.
    pub flows: u64,
    /// Counts by state, in the order of the machine's states.
    pub states: Vec<(String, Stay)>,
    /// Packets that triggered each event, in the order of the machine's events.
    pub events: Vec<(String, u64)>,
    /// Packets that the full map refused.
    pub refused: u64,
    /// Packets of flows that cannot be distinguished.
    pub dont_know: u64,
    /// The expected number of flows whose packets went to the cell of another one.
    pub mistaken: f64,
    /// Flows that may be in two of the parts that were merged, and are then counted in each. At least
    /// one after a merge.
    pub crossing: u64,
    /// Whether the source lost or sampled packets, so that no count has a bound. Not saved: the
    /// ledger tells.
    pub is_inferred: bool,
}

impl Counts {
    /// A count of flows as a figure. A refused packet, a packet without an answer and a flow in two
    /// parts change it by one at most, and a mistaken flow by three. The interval holds the truth in
    /// 99 of 100 cases.
    pub fn figure(&self, flows: u64) -> Figure {
        if self.is_inferred {
            return Figure::unknown(flows);
        }
        if self.slack(EXACT) == 0 {
            return Figure::exact(flows);
        }
        let slack = self.slack(0.005);
        Figure::estimate(flows, flows.saturating_sub(slack), flows.saturating_add(slack))
    }

    /// A count of flows in a state now. In merged parts, the flows of an earlier part may have left
    /// the state since.
    pub fn now_figure(&self, flows: u64) -> Figure {
        if self.crossing > 0 { Figure::unknown(flows) } else { self.figure(flows) }
    }

    /// A count of events, such as packets or changes of state, as a figure. Any packet of a flow
    /// that was not followed may have caused another event.
    pub fn event_figure(&self, packets: u64) -> Figure {
        let is_exact = self.slack(EXACT) == 0 && !self.is_inferred;
        if is_exact { Figure::exact(packets) } else { Figure::unknown(packets) }
    }

    fn slack(&self, chance: f64) -> u64 {
        let mistaken = mistaken_most(self.mistaken, chance).saturating_mul(3);
        let known = self.refused.saturating_add(self.dont_know);
        known.saturating_add(mistaken).saturating_add(self.crossing)
    }

    /// The counts as one JSON object.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "states": {},
            "events": {},
            "events_figure": {},
            "refused": self.refused,
            "dont_know": self.dont_know,
        });
        self.figure(self.flows).set(&mut json, "flows");
        for (name, stay) in &self.states {
            let state = &mut json["states"][name];
            self.event_figure(stay.entered).set(state, "entered");
            self.now_figure(stay.now).set(state, "now");
            self.event_figure(stay.expired).set(state, "expired");
        }
        for (name, packets) in &self.events {
            json["events"][name] = (*packets).into();
            json["events_figure"][name] = self.event_figure(*packets).to_json();
        }
        json
    }
}

/// The shape of a map of `bytes` bytes for a machine of `states` states.
pub fn shape(bytes: u64, states: usize) -> Result<Shape, Infeasible> {
    if states == 0 || states > STATES_MAX {
        let (got, most) = (states as u64, STATES_MAX as u64);
        return Err(Infeasible::OutOfRange { name: "states", got, least: 1, most });
    }
    let bucket = u64::from(CELLS * WIDTH / 8);
    let shape = Shape {
        subtables: 2,
        buckets: (bytes / (2 * bucket)).max(1),
        cells: CELLS,
        width: WIDTH,
        remainder: 1,
        // Twice each state: opened by the lower end of the flow, or by the higher end.
        states: 2 * states as u32,
        shared: SHARED,
        placing: Placing::Permuted,
        moves: Moves::First,
        reinsert: false,
        stash: 0,
        growths: 0,
        grows: false,
        listed: 0,
    };
    Ok(Shape { remainder: WIDTH - shape.low_bits(), ..shape })
}

/// A machine with the states of its flows.
#[derive(Debug)]
pub struct Runner {
    flows: FlowMap,
    rules: Rules,
}

/// The definition of a machine, and its counts.
#[derive(Debug)]
struct Rules {
    definition: Arc<Definition>,
    counts: Counts,
    /// The different timeouts, in seconds. Each has one timer.
    lengths: Vec<u64>,
    /// Packets so far, and the events that they were compared with.
    packets: u64,
    compared: u64,
}

impl Runner {
    /// For tests: after `packets` packets the map refuses every new flow.
    #[doc(hidden)]
    pub fn refuse_after(&mut self, packets: u64) {
        self.flows.refuse_after(packets);
    }

    /// A machine without flows.
    pub fn new(definition: Arc<Definition>, bytes: u64, seed: Seed) -> Result<Self, Infeasible> {
        let machine = &definition.machine;
        let shape = shape(bytes, machine.states().len())?;
        let events = machine.events().len().max(definition.events.len());
        if events > EVENTS_MAX {
            let (name, got, most) = ("events", events as u64, EVENTS_MAX as u64);
            return Err(Infeasible::OutOfRange { name, got, least: 0, most });
        }
        let states = machine.states().iter().map(|name| (name.clone(), Stay::default()));
        let events = machine.events().iter().map(|name| (name.clone(), 0));
        let counts = Counts {
            name: definition.name.clone(),
            states: states.collect(),
            events: events.collect(),
            ..Counts::default()
        };
        let mut lengths = definition.timeouts.clone();
        lengths.sort_unstable();
        lengths.dedup();
        let periods: Vec<u64> =
            lengths.iter().map(|seconds| seconds.saturating_mul(SECOND)).collect();
        let timer = |seconds| lengths.iter().take_while(|length| *length != seconds).count();
        // A state is stored with the opener in its lowest bit.
        let of_state = |state: u32| definition.timeouts.get(state as usize / 2).map_or(0, timer);
        let timers = (0..shape.states).map(of_state).chain([lengths.len().saturating_sub(1)]);
        let timers_of = timers.map(|timer| 1 << timer.min(7)).collect();
        Ok(Runner {
            flows: FlowMap::new(shape, seed, &periods, timers_of, false)?,
            rules: Rules { definition, counts, lengths, packets: 0, compared: 0 },
        })
    }

    /// Reads packets, at most one batch, with the digests of their undirected flows under the map's
    /// seed.
    pub fn take(&mut self, packets: &[Packet], flows: &[Digest]) {
        self.rules.packets = self.rules.packets.saturating_add(packets.len() as u64);
        let mut batch = Batch { rules: &mut self.rules, packets, event: None };
        let flows = &flows[..packets.len()];
        self.flows.take(flows, |index| packets[index].time_ns, &mut batch);
    }

    /// Advances the time to `now`: flows that have been silent too long expire.
    pub fn pass(&mut self, now: u64) {
        let mut batch = Batch { rules: &mut self.rules, packets: &[], event: None };
        self.flows.pass(now, &mut batch);
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.rules.counts.clone();
        counts.mistaken = self.flows.mistaken();
        for (number, cells) in self.map().census().into_iter().enumerate() {
            if let Some((_, stay)) = counts.states.get_mut(number / 2) {
                stay.now = stay.now.saturating_add(cells);
            }
        }
        counts
    }

    /// The work of its map, and the events that packets were compared with.
    pub(crate) fn work(&self) -> [Work; 3] {
        let names = ["machine: cells read by timers", "machine: buckets searched"];
        let [cells, buckets] = self.flows.work(names);
        let most = self.rules.packets.saturating_mul(EVENTS_MAX as u64);
        [cells, buckets, Work { what: "machine: events compared", done: self.rules.compared, most }]
    }

    /// The map.
    pub fn map(&self) -> &Fingerprint {
        self.flows.map()
    }
}

impl Counts {
    /// Counts a change that the map stored. States have the opener in the lowest bit.
    fn follow(&mut self, before: Lookup<State>, next: Next<State>) {
        let entered = match next {
            Next::Insert(state) => {
                self.flows += 1;
                Some(state)
            }
            Next::Modify(state) | Next::Set(state) if before != Lookup::State(state) => Some(state),
            _ => None,
        };
        let entered = entered.map(|state| usize::from(state >> 1));
        if let Some((_, stay)) = entered.and_then(|state| self.states.get_mut(state)) {
            stay.entered += 1;
        }
    }
}

/// The packets of a batch.
struct Batch<'a> {
    rules: &'a mut Rules,
    packets: &'a [Packet],
    /// The event that the current packet triggers.
    event: Option<u16>,
}

impl Monitor for Batch<'_> {
    fn next(&mut self, index: usize, now: Lookup<State>) -> Next<State> {
        let packet = &self.packets[index];
        let high = State::from(!packet.flow.is_ordered());
        let (opener, now) = match now {
            Lookup::State(state) => (state & 1, Lookup::State(state >> 1)),
            other => (high, other),
        };
        let Rules { definition, compared, .. } = &mut *self.rules;
        let fits = |(when, _): &&(When, u16)| {
            *compared += 1;
            when.fits(packet, opener == high)
        };
        self.event = definition.events.iter().find(fits).map(|&(_, event)| event);
        let Some(event) = self.event else { return Next::Stay };
        match definition.machine.next(now, event) {
            Next::Insert(to) => Next::Insert(to << 1 | opener),
            Next::Modify(to) => Next::Modify(to << 1 | opener),
            Next::Set(to) => Next::Set(to << 1 | opener),
            Next::Stay => Next::Stay,
            Next::Forget => Next::Forget,
        }
    }

    fn done(&mut self, _: usize, Step { before, next, result, .. }: Step) {
        let Some(event) = self.event else { return };
        let counts = &mut self.rules.counts;
        if let Some((_, times)) = counts.events.get_mut(usize::from(event)) {
            *times += 1;
        }
        counts.dont_know += u64::from(before == Lookup::DontKnow);
        if result == Taken::Yes {
            counts.follow(before, next);
        } else {
            counts.refused += 1;
        }
    }

    fn visit(&mut self, timer: usize, cell: Visited, _: Share) -> Fate {
        let Rules { definition, counts, lengths, .. } = &mut *self.rules;
        let state = match cell.answer {
            Lookup::State(state) => Some(usize::from(state >> 1)),
            _ => None,
        };
        let own = match state {
            Some(state) => definition.timeouts.get(state) == lengths.get(timer),
            // Flows that cannot be distinguished expire after the longest silence.
            None => timer + 1 == lengths.len(),
        };
        match (own, cell.touched) {
            (false, _) => Fate::Keep,
            (true, true) => Fate::Untouch,
            (true, false) => {
                if let Some((_, stay)) = state.and_then(|state| counts.states.get_mut(state)) {
                    stay.expired += 1;
                }
                Fate::Clear
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        FlowKey, Generator, Mix, TcpFlags, batch::PACKETS, flow::protocol, generate::Flood,
    };
    use sidon::{Key, state::Rule};
    use std::collections::HashMap;

    fn take(runner: &mut Runner, packets: &[Packet]) {
        let flows: Vec<_> =
            packets.iter().map(|packet| packet.flow.undirected().digest(Seed(1))).collect();
        runner.take(packets, &flows);
    }

    /// A machine of a handshake: SYN, SYN-ACK, ACK.
    fn handshake() -> Arc<Definition> {
        let rules: [(&str, &[Rule<'_>]); 3] = [
            ("syn", &[Rule::Open("asked")]),
            ("answer", &[Rule::If("asked", "answered")]),
            ("confirmed", &[Rule::If("answered", "done")]),
        ];
        let machine = Machine::new(&["asked", "answered", "done"], &["done"], &rules).unwrap();
        let tcp = When { protocol: Some(protocol::TCP), ..When::default() };
        let syn = When { flags: TcpFlags::SYN, without: TcpFlags::ACK, ..tcp.clone() };
        let flags = TcpFlags::SYN.with(TcpFlags::ACK);
        let answer = When { flags, direction: Some(Direction::Responder), ..tcp.clone() };
        let direction = Some(Direction::Opener);
        let confirmed = When { flags: TcpFlags::ACK, without: TcpFlags::RST, direction, ..tcp };
        let events = vec![(syn, 0), (answer, 1), (confirmed, 2)];
        let (name, timeouts) = ("handshake".to_owned(), vec![5, 5, TIMEOUT]);
        Arc::new(Definition { name, machine, events, timeouts })
    }

    fn packets() -> Vec<Packet> {
        let victim = "198.18.0.0:443".parse().unwrap();
        let flood = Flood {
            sources: 10_000,
            victim,
            after: 20_000,
            share: 60,
            answered: 20,
            ..Flood::default()
        };
        let mix =
            Mix { packets: 60_000, rate: 2_000, active: 200, flood: Some(flood), ..Mix::default() };
        Generator::new(mix, 9).unwrap().collect()
    }

    #[test]
    fn the_map_counts_what_a_hash_map_counts() {
        let (definition, packets) = (handshake(), packets());
        let mut runner = Runner::new(Arc::clone(&definition), 1 << 20, Seed(1)).unwrap();
        packets.chunks(PACKETS).for_each(|batch| take(&mut runner, batch));
        // An exact reference without timeouts. No flow returns in this capture after it expired.
        let mut exact: HashMap<FlowKey, (State, bool)> = HashMap::new();
        let (mut opened, mut ended, mut events) = (0u64, 0u64, [0u64; 3]);
        for packet in &packets {
            let (key, high) = (packet.flow.undirected(), !packet.flow.is_ordered());
            let now = exact.get(&key).copied();
            let by_opener = now.is_none_or(|(_, opener)| opener == high);
            let event = definition.events.iter().find(|(when, _)| when.fits(packet, by_opener));
            let Some(&(_, event)) = event else { continue };
            events[usize::from(event)] += 1;
            let known = now.map_or(Lookup::Absent, |(state, _)| Lookup::State(state));
            match definition.machine.next(known, event) {
                Next::Insert(state) => {
                    opened += 1;
                    exact.insert(key, (state, high));
                }
                Next::Modify(state) => {
                    let opener = now.map_or(high, |(_, opener)| opener);
                    exact.insert(key, (state, opener));
                }
                Next::Forget => {
                    ended += 1;
                    exact.remove(&key);
                }
                _ => {}
            }
        }
        let counts = runner.counts();
        let events: Vec<_> = ["syn", "answer", "confirmed"].into_iter().zip(events).collect();
        let own: Vec<_> = counts.events.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(own, events);
        assert_eq!((counts.flows, counts.refused, counts.dont_know), (opened, 0, 0));
        let left: u64 = counts.states.iter().map(|(_, stay)| stay.now + stay.expired).sum();
        assert_eq!(left, opened - ended);
        assert!(ended > 1_000 && counts.states[0].1.expired > 1_000, "{counts:?}");
        assert_eq!(counts.states[0].1.entered, opened);
    }

    #[test]
    fn a_packet_is_compared_with_at_most_256_events() {
        let definition = |events: usize| {
            let names: Vec<String> = (0..events).map(|number| format!("e{number}")).collect();
            let open: &[Rule<'_>] = &[Rule::Open("a")];
            let rules: Vec<_> = names.iter().map(|name| (name.as_str(), open)).collect();
            let machine = Machine::new(&["a"], &[], &rules).unwrap();
            // No packet has a protocol with this number.
            let when = When { protocol: Some(255), ..When::default() };
            let events = (0..events).map(|number| (when.clone(), number as u16)).collect();
            let (name, timeouts) = ("many".to_owned(), vec![TIMEOUT]);
            Arc::new(Definition { name, machine, events, timeouts })
        };
        let mut runner = Runner::new(definition(EVENTS_MAX), 1 << 16, Seed(1)).unwrap();
        let packets = &packets()[..PACKETS];
        take(&mut runner, packets);
        let [.., work] = runner.work();
        assert_eq!((work.done, work.most), (256 * PACKETS as u64, 256 * PACKETS as u64));
        let more = Runner::new(definition(EVENTS_MAX + 1), 1 << 16, Seed(1));
        let why = more.map(drop).unwrap_err();
        assert!(why.to_string().contains("events"), "{why}");
    }

    #[test]
    fn silence_expires_a_flow_after_its_time_and_before_twice_that() {
        let mut runner = Runner::new(handshake(), 1 << 16, Seed(1)).unwrap();
        let packets = packets();
        let syn = packets.iter().find(|packet| packet.tcp_flags() == TcpFlags::SYN).unwrap();
        take(&mut runner, std::slice::from_ref(syn));
        let at = |runner: &mut Runner, seconds: f64| {
            runner.pass(syn.time_ns + (seconds * 1e9) as u64);
            runner.counts().states[0].1
        };
        assert_eq!(at(&mut runner, 4.9), Stay { entered: 1, now: 1, expired: 0 });
        at(&mut runner, 7.5);
        assert_eq!(at(&mut runner, 10.1), Stay { entered: 1, now: 0, expired: 1 });
    }

    #[test]
    fn a_full_map_refuses_newcomers_and_counts_none_of_them() {
        let mut runner = Runner::new(handshake(), 1 << 10, Seed(1)).unwrap();
        packets().chunks(PACKETS).for_each(|batch| take(&mut runner, batch));
        let counts = runner.counts();
        assert!(counts.refused > 1_000, "{counts:?}");
        assert_eq!(counts.states[0].1.entered, counts.flows);
        let stay: u64 = counts.states.iter().map(|(_, stay)| stay.now).sum();
        assert!(stay <= runner.map().shape().all_cells());
    }
}
