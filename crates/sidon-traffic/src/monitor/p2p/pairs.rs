//! The state of each pair of hosts: TCP, UDP or both, and which ends have sent packets.
//!
//! ```text
//!             lower end sends     higher end sends     either, then the other
//!   TCP          tcp >               tcp <               tcp
//!   UDP          udp >               udp <               udp
//!   both         both >              both <              both       <- the last state
//! ```
//! There are nine states and four events. A [`Machine`] defines the transitions, and one of the
//! maps of [`sidon::state`] stores the present states; a hash map serves as the exact reference.
//! Bonomi et al., SIGCOMM 2006, describe these maps and name tracking of P2P flows as a use.

use super::partners::Partners;
use crate::batch::PACKETS;
use crate::{
    FlowKey,
    flow_map::{FlowMap, Monitor, Share, Step as Taking, Taken},
    resume::Resume,
    snapshot::encode::{In, Out},
    work::Work,
};
use sidon::{
    Digest, Infeasible, Key, Lookup, Malformed, Seed,
    internals::{Fate, Visited},
    state::{
        Cells, Direct, Fingerprint, Machine, Next, Rule, State, Stateful, direct,
        fingerprint::{self, Moves, Placing},
        stateful,
    },
};
use std::collections::HashMap;

/// States of a pair.
pub const STATES: u32 = 9;
/// Default bits per cell, and cells per bucket: 21 cells of 24 bits fill a cache line of 64 bytes.
const WIDTH: u32 = 24;
const CELLS: u32 = 21;
/// Largest number of pairs that a shared cell counts.
const SHARED: u32 = 5;

const SECOND: u64 = 1_000_000_000;
/// Minimum silence before a pair expires: `SHORT` if only one end has spoken, else `LONG`.
const SHORT: u64 = 150 * SECOND;
const LONG: u64 = 300 * SECOND;
/// Minimum silence before any pair is evicted while the map is [`CROWDED`], as in a flood with
/// forged sources. A pair has at least this long to answer. A pair that returns after its eviction
/// is new to the map, but the counts of distinct peers do not count it again.
const PRESSED: u64 = SECOND;
/// The share of cells in use above which silent pairs are evicted.
const CROWDED: f64 = 0.6;

/// A change of a pair's state: each field holds the values before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Protocols seen: 1 for TCP, 2 for UDP, 3 for both, 0 for none.
    pub(super) protocols: [u8; 2],
    /// Ends that have sent: 1 for the lower end, 2 for the higher, 3 for both, 0 for none.
    pub(super) ways: [u8; 2],
}

/// The protocols and the directions of a state.
fn parts(state: State) -> (u8, u8) {
    (state as u8 / 3 + 1, state as u8 % 3 + 1)
}

/// Whether a pair expires after the shorter silence, because only one end has spoken.
fn is_short(state: State) -> bool {
    parts(state).1 != 3
}

fn state(protocols: u8, ways: u8) -> State {
    State::from((protocols - 1) * 3 + ways - 1)
}

/// The event of a packet: its protocol, and whether the lower end sent it.
#[inline]
pub(super) fn event(udp: bool, lower: bool) -> u16 {
    u16::from(udp) * 2 + u16::from(!lower)
}

/// The state machine of pairs.
fn machine() -> Machine {
    let names: Vec<String> = (0..STATES as State)
        .map(|number| {
            let (protocols, ways) = parts(number);
            let protocol = ["tcp", "udp", "both"][usize::from(protocols - 1)];
            format!("{protocol}{}", [" >", " <", ""][usize::from(ways - 1)])
        })
        .collect();
    let mut events = Vec::new();
    for number in 0..4u8 {
        let (protocol, way) = (number / 2 + 1, number % 2 + 1);
        let mut rules = vec![Rule::Open(&names[usize::from(state(protocol, way))])];
        for from in 0..STATES as State {
            let (protocols, ways) = parts(from);
            let to = state(protocols | protocol, ways | way);
            if to != from {
                rules.push(Rule::If(&names[usize::from(from)], &names[usize::from(to)]));
            }
        }
        events.push((["tcp >", "tcp <", "udp >", "udp <"][usize::from(number)], rules));
    }
    let events: Vec<(&str, &[Rule<'_>])> =
        events.iter().map(|(name, rules)| (*name, rules.as_slice())).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Machine::new(&names, &[], &events).expect("nine states, and one rule for each and each event")
}

/// The map that stores the states of pairs.
#[derive(Debug, Clone, Copy)]
pub enum Keeping {
    /// A hash map that grows: the exact reference.
    Exact,
    /// A counting Bloom filter of (pair, state) entries.
    Direct(direct::Shape),
    /// The cells of a stateful Bloom filter.
    Stateful(stateful::Shape),
    /// Cells with fingerprints. Only in this map do pairs expire.
    Fingerprint(fingerprint::Shape),
}

impl Keeping {
    /// The usual map in `bytes` bytes: fingerprints with cells of three bytes.
    pub fn within(bytes: u64) -> Self {
        let bucket = u64::from(CELLS * WIDTH).div_ceil(64) * 8;
        Keeping::fingerprint((bytes / (2 * bucket)).max(1), CELLS, WIDTH)
    }

    /// Fingerprints for `pairs` pairs in `bits` bits per pair, at least 8. A cell has three
    /// quarters of `bits`, but at least 8 bits.
    pub fn fingerprints(pairs: u64, bits: u32) -> Self {
        let width = (bits * 3 / 4).max(8);
        let cells = pairs.saturating_mul(bits.into()) / u64::from(width);
        Keeping::fingerprint((cells / 32).max(1), 16, width)
    }

    /// A stateful Bloom filter for `pairs` pairs in `bits` bits per pair.
    pub fn stateful(pairs: u64, bits: u32) -> Self {
        let mut shape = stateful::Shape {
            cells: 1,
            hashes: 1,
            states: STATES,
            keeping: stateful::Keeping::Counted(3),
        };
        shape.cells = (pairs.saturating_mul(bits.into()) / u64::from(shape.width())).max(1);
        shape.hashes = hashes(shape.cells, pairs);
        Keeping::Stateful(shape)
    }

    /// A counting Bloom filter of (pair, state) entries for `pairs` pairs in `bits` bits per pair.
    pub fn direct(pairs: u64, bits: u32) -> Self {
        let (hashes_one, counter, timed) = (1, 4, false);
        let mut shape =
            direct::Shape { cells: 1, hashes: hashes_one, states: STATES, counter, timed };
        shape.cells = (pairs.saturating_mul(bits.into()) / u64::from(shape.width())).max(1);
        shape.hashes = hashes(shape.cells, pairs);
        Keeping::Direct(shape)
    }

    fn fingerprint(buckets: u64, cells: u32, width: u32) -> Self {
        let low = fingerprint::Shape { states: STATES, shared: SHARED, ..SHAPE }.low_bits();
        Keeping::Fingerprint(fingerprint::Shape {
            buckets,
            cells,
            width,
            remainder: width - low,
            ..SHAPE
        })
    }

    /// The size in bytes; 0 for the hash map, which grows.
    pub fn bytes(&self) -> u64 {
        match self {
            Keeping::Exact => 0,
            Keeping::Direct(shape) => Direct::planned_bytes(*shape),
            Keeping::Stateful(shape) => Stateful::planned_bytes(*shape),
            Keeping::Fingerprint(shape) => Fingerprint::planned_bytes(*shape),
        }
    }
}

const SHAPE: fingerprint::Shape = fingerprint::Shape {
    subtables: 2,
    buckets: 1,
    cells: CELLS,
    width: WIDTH,
    remainder: 1,
    states: STATES,
    shared: SHARED,
    placing: Placing::Permuted,
    // A flood at a port without a known service fills the map. A search for free cells at each of
    // its packets would cost more than all other work.
    moves: Moves::Never,
    reinsert: false,
    stash: 0,
    growths: 0,
    grows: false,
    listed: 0,
};

/// The optimal number of cells per key, as for a Bloom filter.
fn hashes(cells: u64, keys: u64) -> u32 {
    ((cells as f64 / keys.max(1) as f64 * std::f64::consts::LN_2).round() as u32).clamp(1, 32)
}

/// The states of all pairs.
#[derive(Debug)]
pub(super) struct Pairs {
    seed: Seed,
    machine: Machine,
    map: Map,
    digests: Vec<Digest>,
    /// Packets whose new pair was refused.
    pub(super) refused: u64,
    /// Packets of pairs whose state the map did not know.
    pub(super) dont_know: u64,
    /// Silent pairs that were evicted while the map was crowded.
    pub(super) evicted: u64,
}

#[derive(Debug)]
enum Map {
    Exact(HashMap<FlowKey, State>),
    Direct(Direct),
    Stateful(Stateful),
    Fingerprint(Box<FlowMap>, Partners),
}

impl Pairs {
    /// For tests: after `packets` packets the map refuses every new pair, if it can be full.
    pub(super) fn refuse_after(&mut self, packets: u64) {
        if let Map::Fingerprint(map, _) = &mut self.map {
            map.refuse_after(packets);
        }
    }

    pub(super) fn new(keeping: Keeping, seed: Seed) -> Result<Self, Infeasible> {
        let map = match keeping {
            Keeping::Exact => Map::Exact(HashMap::new()),
            Keeping::Direct(shape) => Map::Direct(Direct::new(shape, seed)?),
            Keeping::Stateful(shape) => Map::Stateful(Stateful::new(shape, seed)?),
            Keeping::Fingerprint(shape) => {
                let states = 0..shape.states as State;
                let timer = |state| if is_short(state) { 0b101 } else { 0b110 };
                let timers_of = states.map(timer).chain([0b110]).collect();
                let map = FlowMap::new(shape, seed, &[SHORT, LONG, PRESSED], timers_of, false)?;
                Map::Fingerprint(Box::new(map), Partners::new(seed))
            }
        };
        let digests = Vec::with_capacity(PACKETS);
        Ok(Pairs { seed, machine: machine(), map, digests, refused: 0, dont_know: 0, evicted: 0 })
    }

    /// Applies `events` to the pairs `keys` in order, and calls `changed` for each event that
    /// changed its pair. A refused event changes nothing and is counted in `refused`.
    pub(super) fn follow(
        &mut self,
        keys: &[FlowKey],
        events: &[u16],
        time: impl Fn(usize) -> u64,
        changed: impl FnMut(usize, Step),
    ) {
        let crowded = self.is_crowded();
        let Pairs { seed, machine, map, digests, refused, dont_know, evicted } = self;
        let mut batch = Batch {
            machine,
            keys,
            events,
            changed,
            partners: None,
            crowded,
            refused,
            dont_know,
            evicted,
        };
        match map {
            Map::Fingerprint(map, partners) => {
                digests.clear();
                digests.extend(keys.iter().map(|key| key.digest(*seed)));
                partners.at(if keys.is_empty() { 0 } else { time(0) });
                batch.partners = crowded.then_some(partners);
                map.take(digests, time, &mut batch);
            }
            Map::Exact(map) => {
                for (index, key) in keys.iter().enumerate() {
                    let now = map.get(key).map_or(Lookup::Absent, |&state| Lookup::State(state));
                    let next = batch.next(index, now);
                    if let Next::Insert(to) | Next::Modify(to) = next {
                        map.insert(*key, to);
                    }
                    batch.changed(index, now, next, true);
                }
            }
            Map::Direct(map) => one_by_one(map, keys, &mut batch),
            Map::Stateful(map) => one_by_one(map, keys, &mut batch),
        }
    }

    /// Advances the clock to `now`: silent pairs expire, if the map supports expiry.
    pub(super) fn pass(&mut self, now: u64) {
        let crowded = self.is_crowded();
        let Pairs { machine, map, refused, dont_know, evicted, .. } = self;
        let Map::Fingerprint(map, _) = map else { return };
        let (keys, events, changed) = (&[], &[], |_: usize, _: Step| {});
        let partners = None;
        let mut batch = Batch {
            machine,
            keys,
            events,
            changed,
            partners,
            crowded,
            refused,
            dont_know,
            evicted,
        };
        map.pass(now, &mut batch);
    }

    /// The work of its map, if that ages.
    pub(super) fn work(&self) -> Option<[Work; 2]> {
        let Map::Fingerprint(map, _) = &self.map else { return None };
        Some(map.work(["pairs: cells read by timers", "pairs: buckets searched"]))
    }

    fn is_crowded(&self) -> bool {
        matches!(&self.map, Map::Fingerprint(map, _) if map.map().stats().load > CROWDED)
    }

    /// Pairs stored now; 0 for a map that does not count them.
    pub(super) fn count(&self) -> u64 {
        match &self.map {
            Map::Exact(map) => map.len() as u64,
            Map::Fingerprint(map, _) => map.map().len(),
            Map::Direct(_) | Map::Stateful(_) => 0,
        }
    }

    /// The expected number of pairs that were mistaken for another one.
    pub(super) fn mistaken(&self) -> f64 {
        match &self.map {
            Map::Fingerprint(map, _) => map.mistaken(),
            _ => 0.0,
        }
    }

    /// The probability that a new pair is mistaken for a stored one.
    pub(super) fn stranger_rate(&self) -> f64 {
        match &self.map {
            Map::Fingerprint(map, _) => map.map().certainty().error(),
            _ => 0.0,
        }
    }
}

fn one_by_one<B: Cells, C: FnMut(usize, Step)>(
    map: &mut sidon::state::Map<B>,
    keys: &[FlowKey],
    batch: &mut Batch<'_, C>,
) {
    for (index, key) in keys.iter().enumerate() {
        let (mut before, mut chosen) = (Lookup::Absent, Next::Stay);
        let result = map.transition(key, |now| {
            (before, chosen) = (now, batch.next(index, now));
            chosen
        });
        batch.changed(index, before, chosen, result.is_ok());
    }
}

/// The events of a batch.
struct Batch<'a, C> {
    machine: &'a Machine,
    keys: &'a [FlowKey],
    events: &'a [u16],
    changed: C,
    /// The limit on new pairs of a host, while the map is crowded.
    partners: Option<&'a mut Partners>,
    crowded: bool,
    refused: &'a mut u64,
    dont_know: &'a mut u64,
    evicted: &'a mut u64,
}

impl<C: FnMut(usize, Step)> Batch<'_, C> {
    /// Reports the change that an event made to its pair.
    fn changed(&mut self, index: usize, before: Lookup<State>, next: Next<State>, taken: bool) {
        if !taken {
            *self.refused += 1;
            return;
        }
        let (protocols, ways) = match (before, next) {
            (Lookup::State(from), Next::Modify(to)) => {
                let ((protocols, ways), (to_protocols, to_ways)) = (parts(from), parts(to));
                ([protocols, to_protocols], [ways, to_ways])
            }
            (Lookup::Absent, Next::Insert(to)) => {
                let (protocols, ways) = parts(to);
                ([0, protocols], [0, ways])
            }
            (Lookup::DontKnow, _) => {
                *self.dont_know += 1;
                return;
            }
            _ => return,
        };
        (self.changed)(index, Step { protocols, ways });
    }
}

impl<C: FnMut(usize, Step)> Monitor for Batch<'_, C> {
    #[inline(always)]
    fn next(&mut self, index: usize, now: Lookup<State>) -> Next<State> {
        if now == Lookup::Absent
            && let Some(partners) = &mut self.partners
            && !partners.admits(&self.keys[index])
        {
            *self.refused += 1;
            return Next::Stay;
        }
        self.machine.next(now, self.events[index])
    }

    #[inline(always)]
    fn done(&mut self, index: usize, Taking { before, next, result, .. }: Taking) {
        self.changed(index, before, next, result == Taken::Yes);
    }

    /// The flag of a cell belongs to the timers for silence, or to that of a crowded map alone.
    fn runs(&self, timer: usize) -> bool {
        self.crowded == (timer == 2)
    }

    fn visit(&mut self, timer: usize, cell: Visited, _: Share) -> Fate {
        let short = matches!(cell.answer, Lookup::State(state) if is_short(state));
        let own = match timer {
            0 => short,
            1 => !short,
            _ => true,
        };
        match (own, cell.touched) {
            (false, _) => Fate::Keep,
            (true, true) => Fate::Untouch,
            (true, false) => {
                *self.evicted += u64::from(timer == 2);
                Fate::Clear
            }
        }
    }
}

/// Pairs in a checkpoint. Only the map of an engine is saved: the others exist for comparison.
impl Resume for Pairs {
    fn save(&self, out: &mut Out) {
        let Map::Fingerprint(map, partners) = &self.map else { return };
        out.numbers(&[self.refused, self.dont_know, self.evicted]);
        partners.save(out);
        map.save(out);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let Map::Fingerprint(map, partners) = &mut self.map else { return bytes.wrong("pairs") };
        [self.refused, self.dont_know, self.evicted] = bytes.counts("refused")?;
        partners.resume(bytes)?;
        map.resume(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> FlowKey {
        FlowKey::v4([10, 0, 0, 1], [10, 0, 1, number], [0, 0], 0)
    }

    #[test]
    fn a_pair_tells_its_news_once() {
        for keeping in [
            Keeping::Exact,
            Keeping::direct(100, 64),
            Keeping::stateful(100, 64),
            Keeping::fingerprints(100, 32),
            Keeping::within(1 << 12),
        ] {
            let mut pairs = Pairs::new(keeping, Seed(1)).unwrap();
            let mut steps = Vec::new();
            for (udp, lower) in [(true, true), (true, true), (false, true), (false, false)] {
                for _ in 0..2 {
                    let events = [event(udp, lower)];
                    pairs.follow(
                        &[key(7)],
                        &events,
                        |_| 0,
                        |_, Step { protocols, ways }| {
                            steps.push((protocols, ways));
                        },
                    );
                }
            }
            assert_eq!(
                steps,
                [([0, 2], [0, 1]), ([2, 3], [1, 1]), ([3, 3], [1, 3])],
                "{keeping:?}"
            );
            assert_eq!((pairs.refused, pairs.dont_know), (0, 0), "{keeping:?}");
        }
    }

    #[test]
    fn one_sided_pairs_go_after_half_the_silence_that_others_may_keep() {
        let mut pairs = Pairs::new(Keeping::within(1 << 12), Seed(1)).unwrap();
        pairs.pass(0);
        pairs.follow(&[key(1), key(2), key(2)], &[0, 2, 3], |_| 0, |_, _| {});
        let at = |pairs: &mut Pairs, seconds: u64| {
            pairs.pass(seconds * SECOND);
            pairs.count()
        };
        assert_eq!(at(&mut pairs, 151), 2);
        assert_eq!(at(&mut pairs, 299), 2);
        assert_eq!(at(&mut pairs, 301), 1);
        assert_eq!(at(&mut pairs, 599), 1);
        assert_eq!(at(&mut pairs, 601), 0);
    }

    #[test]
    fn a_keeping_takes_the_bits_that_it_was_given() {
        for bits in [8, 16, 32] {
            for keeping in [
                Keeping::fingerprints(10_000, bits),
                Keeping::stateful(10_000, bits),
                Keeping::direct(10_000, bits),
            ] {
                let each = keeping.bytes() as f64 * 8.0 / 10_000.0;
                assert!(each <= f64::from(bits) * 1.02 && each > f64::from(bits) * 0.9, "{each}");
            }
        }
        assert!(Keeping::within(1 << 20).bytes() <= 1 << 20);
    }
}
