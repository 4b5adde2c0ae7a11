//! The state of every TCP connection in four bytes: how many are half open, how they end.
//!
//! A connection is a flow in both directions. Its state is that of the machine in [`life`], kept in
//! a [`FlowMap`] with 24 bits of remainder.
//! ```text
//! packet -> flow digest, event -> map: now -> next   -> counts: half open, open, outcomes; verdicts
//!                                 timers             -> outcomes of connections that ended or fell silent
//! ```
//! Three timers age the map by packet time. An attempt ends between four and five seconds after its
//! first SYN; nothing evicts it earlier, so every handshake has four seconds to finish. A connection
//! that ended or was never confirmed expires after five to ten seconds of silence, any other after
//! five to ten minutes. Two connections that cannot be distinguished count as don't-knows.
//!
//! When new connections no longer fit, the map follows a share of them ([`Valve`](crate::flow_map::Valve)).
//! Established connections stay. Counts are then estimates, and [`Counts::sampling`] has their
//! variances.
//!
//! A packet of a connection that the map does not hold may match the cell of another one: one packet
//! in 2^19 when the map is full. Without the keys nobody can see that.

pub mod life;
mod merge;
mod twin;

pub use life::OUTCOMES;
pub use twin::Twin;

use crate::{
    FlowKey, Packet,
    batch::PACKETS,
    flow_map::{FlowMap, Monitor, Share, Step, Taken},
};
use life::{Ageing, Life, Lives};
use sidon::{
    Digest, Infeasible, Lookup, Seed,
    ops::{Next, StateMap},
    state::{
        Fingerprint, State,
        fingerprint::{CLASSES, Fate, Moves, Placing, Shape, Visited},
    },
};

/// Bits of a cell, and cells of a bucket: a line.
const WIDTH: u32 = 32;
const CELLS: u32 = 16;
const REMAINDER: u32 = 24;
/// Flows that a shared cell counts.
const SHARED: u32 = 15;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// How long connections are kept, in nanoseconds of packet time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// An attempt without an answer, from its first packet on: this at the most, and four fifths of
    /// it at the least.
    pub attempt: u64,
    /// What is over, or was answered and not confirmed, from its last packet on: this at the least,
    /// and twice this at the most.
    pub short: u64,
    /// All else, in the same way.
    pub long: u64,
}

impl Default for Patience {
    /// Five seconds, five seconds and five minutes.
    fn default() -> Self {
        Patience { attempt: 5 * SECOND, short: 5 * SECOND, long: 300 * SECOND }
    }
}

/// Something that a packet did to a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Which packet.
    pub index: u16,
    /// What it did.
    pub what: Deed,
    /// Whether the source of the packet opened the connection.
    pub by_opener: bool,
}

/// What a packet can do to a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// A connection is asked for.
    Opened,
    /// It came about, or its opener goes on as if it had.
    Confirmed,
    /// It was refused.
    Refused,
    /// Its opener reset it before it came about.
    Aborted,
}

/// What is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections by outcome, in the order of [`OUTCOMES`]: those that ended, and those still there
    /// by what they would be if nothing more came.
    pub by_state: [u64; OUTCOMES.len()],
    /// Of those, the ones still there.
    pub present: [u64; OUTCOMES.len()],
    /// Connections whose handshake is not complete, now.
    pub half_open: u64,
    /// The most of them there were at a time.
    pub peak_half_open: u64,
    /// Connections whose handshake was seen and nothing that ends them, now.
    pub open: u64,
    /// Connections that could not be told apart.
    pub dont_know: u64,
    /// Connections that there was no room for.
    pub refused: u64,
    /// Connections of which one side alone was seen, though the other must have spoken.
    pub one_way: u64,
    /// Connections that came about.
    pub came_about: u64,
    /// After a merge: connections, or two of one fingerprint, that were in both parts. Each part's
    /// is counted by its outcome there.
    pub in_both: u64,
    /// How connections were sampled.
    pub sampling: Sampling,
}

/// How connections were sampled, and the variances of the counts that follow from it. All zero if
/// every connection was followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sampling {
    /// One new connection in `2^level` is followed now.
    pub level: u32,
    /// The level that counts are scaled by.
    pub weight: u32,
    /// The highest level so far.
    pub highest: u32,
    /// When sampling began, in nanoseconds.
    pub since: Option<u64>,
    /// Packets of connections that were not followed and that could have begun one.
    pub unsampled: u64,
    /// The variance of [`Counts::by_state`], of connections that ended.
    pub by_state: [u64; OUTCOMES.len()],
    /// The variance of [`Counts::came_about`].
    pub came_about: u64,
    /// The variance of [`Counts::one_way`].
    pub one_way: u64,
}

impl Sampling {
    /// Whether counts are estimates.
    pub fn is_sampled(&self) -> bool {
        self.highest > 0
    }

    /// The interval that holds the true number in 99 of 100 cases, given an estimate and its variance.
    ///
    /// With `k` the highest level, a flow that counts `2^k` times adds `2^k * (2^k - 1)` to the variance:
    /// so many sampled flows are in the estimate. Their number is a Poisson variable at the most, whose
    /// exact interval (Garwood) is computed by Wilson and Hilferty's cube root. The part of a count from
    /// before sampling has no error.
    pub fn interval(&self, estimate: u64, variance: u64) -> (u64, u64) {
        const Z: f64 = 2.576;
        if !self.is_sampled() {
            return (estimate, estimate);
        }
        let scale = f64::from(1u32 << self.highest);
        let flows = variance as f64 / (scale * (scale - 1.0));
        let exact = estimate as f64 - flows * scale;
        let end = |flows: f64, z: f64| {
            let root = 1.0 - 1.0 / (9.0 * flows) + z / (3.0 * flows.sqrt());
            flows * root.max(0.0).powi(3)
        };
        let least = if flows > 0.0 { end(flows, -Z) } else { 0.0 };
        let most = end(flows + 1.0, Z);
        let whole = |flows: f64| (exact + flows * scale).max(0.0);
        (whole(least).floor() as u64, whole(most).ceil() as u64)
    }

    /// The variance of a number of connections that are there now, of which `scaled` is the estimate.
    pub fn present_variance(&self, scaled: u64) -> u64 {
        scaled.saturating_mul((1 << self.weight) - 1)
    }
}

/// Followed connections of one kind, by sampling class.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    by_class: [u64; CLASSES as usize + 1],
    /// The level that counts are scaled by, and the connections of that class or a higher one.
    level: u32,
    counted: u64,
}

impl Held {
    #[inline]
    fn add(&mut self, share: Share) {
        self.at(share.level);
        self.by_class[share.class as usize] += 1;
        self.counted += u64::from(share.class >= share.level);
    }

    #[inline]
    fn take(&mut self, share: Share) {
        self.at(share.level);
        self.by_class[share.class as usize] -= 1;
        self.counted -= u64::from(share.class >= share.level);
    }

    #[inline]
    fn at(&mut self, level: u32) {
        if level != self.level {
            self.level = level;
            self.counted = self.by_class[level as usize..].iter().sum();
        }
    }

    /// The estimate of all connections of this kind.
    fn estimate(&self) -> u64 {
        self.counted << self.level
    }
}

/// The monitor.
#[derive(Debug)]
pub struct Connections {
    flows: FlowMap,
    rules: Rules,
    /// The digests, packet numbers and events of the packets of TCP in a batch.
    digests: Vec<Digest>,
    events: Vec<(u16, u16)>,
    /// The states before each of those packets; `None` for a connection that was not taken.
    answers: Vec<Option<Lookup<State>>>,
    verdicts: Vec<Verdict>,
    twin: Option<Twin>,
}

/// What a packet and the timers do to a connection, and the counts.
#[derive(Debug)]
struct Rules {
    lives: Lives,
    counts: Counts,
    half_open: Held,
    open: Held,
    patience: Patience,
}

/// The shape of the map in so many bytes.
pub fn shape(bytes: u64) -> Result<Shape, Infeasible> {
    let bucket = u64::from(CELLS * WIDTH / 8);
    Ok(Shape {
        subtables: 2,
        buckets: (bytes / (2 * bucket)).max(1),
        cells: CELLS,
        width: WIDTH,
        remainder: REMAINDER,
        states: Lives::new().lives.len() as u32,
        shared: SHARED,
        placing: Placing::Permuted,
        moves: Moves::Search(64),
        reinsert: false,
        stash: 0,
        growths: 0,
        grows: false,
    })
}

impl Connections {
    /// No connection yet; with a twin if everything is to be compared with the truth.
    pub fn new(shape: Shape, seed: Seed, audit: bool) -> Result<Self, Infeasible> {
        let patience = Patience::default();
        let periods = [patience.attempt / u64::from(life::AGES), patience.short, patience.long];
        Ok(Connections {
            flows: FlowMap::new(shape, seed, &periods, true)?,
            rules: Rules {
                lives: Lives::new(),
                counts: Counts::default(),
                half_open: Held::default(),
                open: Held::default(),
                patience,
            },
            digests: Vec::with_capacity(PACKETS),
            events: Vec::with_capacity(PACKETS),
            answers: Vec::with_capacity(PACKETS),
            verdicts: Vec::with_capacity(PACKETS),
            twin: audit.then(Twin::default),
        })
    }

    /// Takes in packets, no more than a batch holds, with the digests of their undirected flows
    /// under the map's seed, and says what they did to handshakes.
    pub fn take(&mut self, packets: &[Packet], flows: &[Digest]) -> &[Verdict] {
        self.digests.clear();
        self.events.clear();
        self.answers.clear();
        self.verdicts.clear();
        for (index, packet) in packets.iter().enumerate() {
            if let Some(event) = life::event(packet) {
                self.digests.push(flows[index]);
                self.events.push((index as u16, event));
            }
        }
        if let Some(first) = packets.first() {
            self.pass(first.time_ns);
        }
        let Connections { flows, rules, digests, events, answers, verdicts, twin } = self;
        let time = |key: usize| packets[usize::from(events[key].0)].time_ns;
        let audited = twin.is_some();
        let mut batch = Batch { rules, packets, events, answers, audited, verdicts };
        flows.take(digests, time, &mut batch);
        if let Some(twin) = twin {
            for (&(index, event), &answer) in events.iter().zip(&*answers) {
                let packet = &packets[usize::from(index)];
                let flow = &packet.flow.undirected();
                let fingerprint = flows.map().fingerprint(flow);
                let Rules { lives, patience, .. } = &*rules;
                twin.compare(lives, patience, flow, fingerprint, event, packet.time_ns, answer);
            }
        }
        &self.verdicts
    }

    /// It is so late now: connections that are too old expire.
    pub fn pass(&mut self, now: u64) {
        self.flows.pass(now, &mut Ageless(&mut self.rules));
    }

    /// For tests: from so many packets of TCP on, the map refuses every new connection.
    #[doc(hidden)]
    pub fn refuse_after(&mut self, packets: u64) {
        self.flows.refuse_after(packets);
    }

    /// The level of the sampling valve: one new connection in `2^level` is followed.
    pub fn level(&self) -> u32 {
        self.flows.valve().level()
    }

    /// What is counted so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.raw_counts();
        let weight = counts.sampling.weight;
        let census = self.map().census_from(weight);
        for (life, cells) in self.rules.lives.lives.iter().zip(&census) {
            let (outcome, cells) = (life.outcome(), cells << weight);
            counts.by_state[outcome] += cells;
            counts.present[outcome] += cells;
            counts.sampling.by_state[outcome] += counts.sampling.present_variance(cells);
        }
        counts
    }

    /// What is counted, without the outcomes of connections that are still there.
    pub(crate) fn raw_counts(&self) -> Counts {
        let mut counts = self.rules.counts.clone();
        let valve = self.flows.valve();
        let (mut half_open, mut open) = (self.rules.half_open, self.rules.open);
        let sampling = &mut counts.sampling;
        sampling.level = valve.level();
        sampling.weight = sampling.weight.max(valve.weight());
        sampling.highest = sampling.highest.max(valve.highest());
        sampling.since = sampling.since.or(valve.since());
        half_open.at(sampling.weight);
        open.at(sampling.weight);
        (counts.half_open, counts.open) = (half_open.estimate(), open.estimate());
        counts.peak_half_open = counts.peak_half_open.max(counts.half_open);
        counts
    }

    /// The chance that a packet of a flow that is not in is taken for another's.
    pub fn stranger_rate(&self) -> f64 {
        self.map().stranger_rate()
    }

    /// Connections whose handshake is not complete, now.
    pub fn half_open(&self) -> u64 {
        self.raw_counts().half_open
    }

    /// The state of a connection now, of either direction's key. What is over is forgotten after
    /// seconds. Only a flow that is not in may be answered another's, see
    /// [`stranger_rate`](Self::stranger_rate).
    pub fn lookup(&self, flow: &FlowKey) -> Lookup<Life> {
        match self.map().lookup(&flow.undirected()) {
            Lookup::State(state) => Lookup::State(*self.rules.lives.of(state)),
            Lookup::Absent => Lookup::Absent,
            Lookup::DontKnow => Lookup::DontKnow,
        }
    }

    /// Connections that there was no room for.
    pub fn refused(&self) -> u64 {
        self.rules.counts.refused
    }

    /// The map.
    pub fn map(&self) -> &Fingerprint {
        self.flows.map()
    }

    /// The twin, if there is one.
    pub fn twin(&self) -> Option<&Twin> {
        self.twin.as_ref()
    }
}

impl Counts {
    /// Whether the capture seems to have one side of its connections only: ten at the least, and
    /// thrice as many as were seen to come about.
    pub fn is_one_way(&self) -> bool {
        self.one_way >= 10 && self.one_way > 3 * self.came_about
    }
}

impl Rules {
    fn enter(&mut self, life: &Life, share: Share) {
        if life.is_half_open() {
            self.half_open.add(share);
            let now = self.half_open.estimate();
            self.counts.peak_half_open = self.counts.peak_half_open.max(now);
        }
        if life.is_open() {
            self.open.add(share);
        }
    }

    fn leave(&mut self, life: &Life, share: Share) {
        if life.is_half_open() {
            self.half_open.take(share);
        }
        if life.is_open() {
            self.open.take(share);
        }
    }

    /// A connection ended.
    fn end(&mut self, life: &Life, share: Share) {
        self.counts.by_state[life.outcome()] += share.scale();
        self.counts.sampling.by_state[life.outcome()] += share.variance();
    }

    fn one_way(&mut self, is: bool, share: Share) {
        if is {
            self.counts.one_way += share.scale();
            self.counts.sampling.one_way += share.variance();
        }
    }

    /// Counts a change that the map holds. Returns its meaning for the handshake, and whether the
    /// higher end opened the connection.
    #[inline]
    fn follow(
        &mut self,
        before: Lookup<State>,
        next: Next<State>,
        share: Share,
    ) -> Option<(Deed, bool)> {
        match (before, next) {
            (Lookup::Absent, Next::Insert(state)) => {
                let life = *self.lives.of(state);
                self.enter(&life, share);
                self.one_way(life.is_one_way(), share);
                life.is_half_open().then_some((Deed::Opened, life.is_turned()))
            }
            (Lookup::State(state), Next::Insert(_)) => {
                let life = *self.lives.of(state);
                self.leave(&life, share);
                self.counts.dont_know += 2 * share.scale();
                None
            }
            (Lookup::State(state), Next::Modify(to)) => {
                let (old, new) = (*self.lives.of(state), *self.lives.of(to));
                self.leave(&old, share);
                self.enter(&new, share);
                if old.is_over() && !new.is_over() {
                    self.end(&old, share);
                    return Some((Deed::Opened, new.is_turned()));
                }
                self.one_way(new.is_one_way() && !old.is_one_way(), share);
                if new.is_open() && !old.is_open() {
                    self.counts.came_about += share.scale();
                    self.counts.sampling.came_about += share.variance();
                }
                let what = match (old.is_half_open(), new.is_half_open()) {
                    (false, true) => Deed::Opened,
                    (true, false) if new.is_refused() => Deed::Refused,
                    (true, false) if new.is_aborted() => Deed::Aborted,
                    (true, false) => Deed::Confirmed,
                    _ => return None,
                };
                Some((what, new.is_turned()))
            }
            _ => None,
        }
    }

    /// The action of a timer on a connection.
    fn visit(&mut self, timer: usize, cell: Visited, share: Share) -> Fate {
        let ageing = [Ageing::Attempt, Ageing::Short, Ageing::Long][timer];
        let Lookup::State(state) = cell.answer else {
            // Connections that cannot be distinguished are counted already.
            return match (ageing, cell.touched) {
                (Ageing::Long, true) => Fate::Untouch,
                (Ageing::Long, false) => Fate::Clear,
                _ => Fate::Keep,
            };
        };
        let life = *self.lives.of(state);
        if life.ageing() != ageing {
            return Fate::Keep;
        }
        let fate = match (ageing, cell.touched) {
            (Ageing::Attempt, _) => {
                self.lives.older[usize::from(state)].map_or(Fate::Clear, Fate::Become)
            }
            (_, true) => Fate::Untouch,
            (_, false) => Fate::Clear,
        };
        if fate == Fate::Clear {
            self.leave(&life, share);
            self.end(&life, share);
        }
        fate
    }
}

/// The packets of TCP of a batch.
struct Batch<'a> {
    rules: &'a mut Rules,
    packets: &'a [Packet],
    events: &'a [(u16, u16)],
    answers: &'a mut Vec<Option<Lookup<State>>>,
    audited: bool,
    verdicts: &'a mut Vec<Verdict>,
}

impl Monitor for Batch<'_> {
    #[inline(always)]
    fn next(&mut self, key: usize, now: Lookup<State>) -> Next<State> {
        self.rules.lives.machine.next(now, self.events[key].1)
    }

    #[inline(always)]
    fn is_first(&self, key: usize) -> bool {
        life::is_syn(self.events[key].1)
    }

    #[inline(always)]
    fn done(&mut self, key: usize, step: Step) {
        let Step { before, next, result, share } = step;
        if self.audited {
            self.answers.push((result == Taken::Yes).then_some(before));
        }
        match result {
            Taken::Yes => {}
            Taken::Refused => {
                self.rules.counts.refused += 1;
                return;
            }
            Taken::Unsampled => {
                self.rules.counts.sampling.unsampled += 1;
                return;
            }
        }
        if let Some((what, turned)) = self.rules.follow(before, next, share) {
            let index = self.events[key].0;
            let by_opener = self.packets[usize::from(index)].flow.is_ordered() != turned;
            self.verdicts.push(Verdict { index, what, by_opener });
        }
    }

    fn visit(&mut self, timer: usize, cell: Visited, share: Share) -> Fate {
        self.rules.visit(timer, cell, share)
    }
}

/// The rules between batches, when time passes and no packet comes.
struct Ageless<'a>(&'a mut Rules);

impl Monitor for Ageless<'_> {
    fn next(&mut self, _: usize, _: Lookup<State>) -> Next<State> {
        Next::Stay
    }

    fn done(&mut self, _: usize, _: Step) {}

    fn visit(&mut self, timer: usize, cell: Visited, share: Share) -> Fate {
        self.0.visit(timer, cell, share)
    }
}
