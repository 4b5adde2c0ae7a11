//! The state of every TCP connection in four bytes: how many are half open, how they end.
//!
//! A connection is a flow in both directions. A [`FlowMap`] with 24 bits of remainder stores its
//! state, as the machine in [`life`] defines it.
//! ```text
//! packet -> flow digest, event -> map: state -> next state -> counts and verdicts
//! timers                       -> connections that ended or fell silent -> outcomes
//! ```
//! Four timers age the map by packet time. An attempt ends four to five seconds after its first
//! SYN. Nothing evicts it earlier, so every handshake has four seconds to finish. A connection that
//! ended expires after 3.4 to 6.8 seconds of silence. One that was answered and not confirmed expires
//! after 20 to 40 seconds, because a responder waits up to 16 seconds before it repeats its SYN-ACK.
//! Any other expires after five to ten minutes. Two connections that cannot be distinguished count as
//! don't-knows.
//!
//! When new connections no longer fit, the map follows a share of them
//! ([`Valve`](crate::flow_map::Valve)). Established connections stay. Counts are then estimates,
//! and [`Counts::sampling`] has their variances.
//!
//! A packet of a connection that the map does not store may match the cell of another connection:
//! one packet in 2^19 when the map is full. The map stores no keys, so it cannot detect such a
//! match.

mod directions;
mod figures;
pub mod life;
mod merge;
mod saved;
mod twin;

pub use figures::Figures;
pub(crate) use figures::SURE;
pub use life::OUTCOMES;
pub use twin::Twin;

use crate::{
    FlowKey, Packet,
    batch::PACKETS,
    figure::CEILING,
    flow_map::{FlowMap, Monitor, Share, Step, Taken},
    work::Work,
};
use directions::Directions;
use life::{Ageing, Life, Lives};
use sidon::{
    Digest, Infeasible, Lookup, Seed,
    internals::{CLASSES, Fate, Visited},
    state::{
        Fingerprint, Next, State,
        fingerprint::{Moves, Placing, Shape},
    },
};

/// Bits of a cell, and cells of a bucket: 64 bytes, one cache line.
const WIDTH: u32 = 32;
const CELLS: u32 = 16;
const REMAINDER: u32 = 24;
/// The most flows that a shared cell counts.
const SHARED: u32 = 15;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// The timeouts of connections, in nanoseconds of packet time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Time from the first packet of an unanswered attempt to its end: this at most, four fifths of
    /// it at least.
    pub attempt: u64,
    /// Silence after which a connection expires that was answered and not confirmed: this at least,
    /// twice this at most.
    pub answered: u64,
    /// Silence after which a connection expires that is over: this at least, twice this at most.
    pub short: u64,
    /// Silence after which any other connection expires: this at least, twice this at most.
    pub long: u64,
}

impl Default for Patience {
    /// 5 s, 20 s, 3.4 s and 300 s. Zeek waits 5 s after a close, the mean of 3.4 and 6.8.
    fn default() -> Self {
        let [attempt, answered, short, long] =
            [50, 200, 34, 3_000].map(|tenths| tenths * SECOND / 10);
        Patience { attempt, answered, short, long }
    }
}

/// The rule of expiry that each timer applies.
const TIMERS: [Ageing; 4] = [Ageing::Attempt, Ageing::Answered, Ageing::Short, Ageing::Long];

/// An event of a handshake, and the packet that caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The index of the packet in its batch.
    pub index: u16,
    /// The event.
    pub what: Deed,
    /// Whether the source of the packet opened the connection.
    pub by_opener: bool,
    /// Whether a packet of the responder was captured, other than an ACK before its SYN-ACK. A forged
    /// opener can confirm a connection, but cannot answer it.
    pub answered: bool,
    /// Whether the packets of the responder's network are missing in the capture: connections to it
    /// go on, and none of its answers was captured. The responder may then have answered.
    pub one_way: bool,
    /// Whether a SYN may be counted against its answer: connections of its sampling class have been
    /// followed for as long as an attempt lasts.
    pub is_evidence: bool,
}

/// The events of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// A SYN opened a connection.
    Opened,
    /// The handshake completed, or its opener went on to send data or a FIN as if it had. See
    /// [`Verdict::answered`].
    Confirmed,
    /// The responder refused the connection.
    Refused,
    /// The opener reset the connection before the handshake completed.
    Aborted,
}

/// The opener of a followed connection, at a packet of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opener {
    /// The index of the packet in its batch.
    pub index: u16,
    /// Whether the source of the packet opened the connection.
    pub is_source: bool,
    /// Whether a SYN or SYN-ACK named the opener. Otherwise it is a guess: the end whose port is
    /// not registered, or else the sender of the first packet.
    pub by_syn: bool,
}

/// The counts of all connections.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    /// Connections by outcome, in the order of [`OUTCOMES`]. A connection that has not ended counts
    /// with the outcome that it would have if no further packet came.
    pub by_state: [u64; OUTCOMES.len()],
    /// Connections that have not ended, by that outcome. `by_state` includes them.
    pub present: [u64; OUTCOMES.len()],
    /// Connections now whose handshake is incomplete.
    pub half_open: u64,
    /// The largest number of half-open connections at a time.
    pub peak_half_open: u64,
    /// Connections now whose handshake was captured, and no FIN or RST.
    pub open: u64,
    /// Connections that cannot be distinguished.
    pub dont_know: u64,
    /// Packets of connections that did not fit in the map.
    pub refused: u64,
    /// Connections of which only one side was captured, though the other must have sent packets.
    pub one_way: u64,
    /// Connections whose handshake completed.
    pub came_about: u64,
    /// Fingerprints that a merge found in both parts: one connection, or two that cannot be
    /// distinguished. The outcomes in both parts are counted.
    pub in_both: u64,
    /// The expected number of connections whose packets went to the cell of another one.
    pub mistaken: f64,
    /// How connections were sampled.
    pub sampling: Sampling,
    /// The connections that a merge may have counted twice; `None` without a merge.
    pub merged: Option<Merged>,
}

/// The effect of merges on the counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// Connections that may be in two of the parts, and are then counted in each.
    pub crossing: u64,
    /// Connections open at the end: the count, and the ends of its interval.
    pub open_now: u64,
    /// The least and the most connections that can be open at the end.
    pub open: [u64; 2],
    /// The highest peak of one part.
    pub peak_least: u64,
}

/// How connections were sampled, and the variances of the counts that follow from it. All zero if
/// every connection was followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sampling {
    /// One new connection in `2^level` is followed now.
    pub level: u32,
    /// The highest level so far, which counts are scaled by.
    pub highest: u32,
    /// When sampling began, in nanoseconds.
    pub since: Option<u64>,
    /// Packets that could have opened a connection and that sampling left out.
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

    /// The 99% confidence interval of a count, from its estimate and variance.
    ///
    /// With `k` the highest level, each sampled flow adds `2^k * (2^k - 1)` to the variance. The
    /// variance therefore yields the number of sampled flows. That number varies no more than a
    /// Poisson variable. Its exact interval (Garwood) is computed with Wilson and Hilferty's cube
    /// root. The part of a count from before sampling has no error.
    pub fn interval(&self, estimate: u64, variance: u64) -> (u64, u64) {
        self.interval_at(estimate, variance, 2.576)
    }

    /// The confidence interval of `z` standard deviations.
    pub(crate) fn interval_at(&self, estimate: u64, variance: u64, z: f64) -> (u64, u64) {
        if !self.is_sampled() {
            return (estimate, estimate);
        }
        // A variance or an estimate that stopped at its ceiling gives no interval.
        if variance == CEILING || estimate == CEILING {
            return (0, CEILING);
        }
        let scale = f64::from(1u32 << self.highest);
        let flows = variance as f64 / (scale * (scale - 1.0));
        let exact = estimate as f64 - flows * scale;
        let end = |flows: f64, z: f64| {
            let root = 1.0 - 1.0 / (9.0 * flows) + z / (3.0 * flows.sqrt());
            flows * root.max(0.0).powi(3)
        };
        let least = if flows > 0.0 { end(flows, -z) } else { 0.0 };
        let most = end(flows + 1.0, z);
        let whole = |flows: f64| (exact + flows * scale).max(0.0);
        (whole(least).floor() as u64, whole(most).ceil() as u64)
    }

    /// The variance of `scaled`, the estimate of a number of connections that have not ended.
    pub fn present_variance(&self, scaled: u64) -> u64 {
        scaled.saturating_mul((1 << self.highest) - 1)
    }
}

/// Followed connections of one kind, by sampling class.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    by_class: [u64; CLASSES as usize + 1],
    /// The level that counts are scaled by, and the number of connections of that class or higher.
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
    directions: Directions,
    /// The digests, packet numbers and events of the TCP packets of a batch.
    digests: Vec<Digest>,
    events: Vec<(u16, u16)>,
    /// The states before each of those packets; `None` for a connection that the map did not store.
    answers: Vec<Option<Lookup<State>>>,
    verdicts: Vec<Verdict>,
    openers: Vec<Opener>,
    twin: Option<Twin>,
}

/// The rules for packets and timers, and the counts.
#[derive(Debug)]
struct Rules {
    lives: Lives,
    counts: Counts,
    half_open: Held,
    open: Held,
}

/// The shape of a map of `bytes` bytes.
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
        listed: 0,
    })
}

impl Connections {
    /// A monitor without connections. With `audit`, a twin checks every answer.
    pub fn new(shape: Shape, seed: Seed, audit: bool) -> Result<Self, Infeasible> {
        let patience = Patience::default();
        let Patience { attempt, answered, short, long } = patience;
        let periods = [attempt / u64::from(life::AGES), answered, short, long];
        let lives = Lives::new();
        let timer =
            |life: &Life| 1 << TIMERS.iter().take_while(|one| **one != life.ageing()).count();
        // Connections that cannot be distinguished expire after the longest silence.
        let timers_of = lives.lives.iter().map(timer).chain([1 << (TIMERS.len() - 1)]).collect();
        Ok(Connections {
            flows: FlowMap::new(shape, seed, &periods, timers_of, true)?,
            rules: Rules {
                lives,
                counts: Counts::default(),
                half_open: Held::default(),
                open: Held::default(),
            },
            directions: Directions::new(seed),
            digests: Vec::with_capacity(PACKETS),
            events: Vec::with_capacity(PACKETS),
            answers: Vec::with_capacity(PACKETS),
            verdicts: Vec::with_capacity(PACKETS),
            openers: Vec::with_capacity(PACKETS),
            twin: audit.then(|| Twin::new(patience)),
        })
    }

    /// Reads packets, at most one batch, with the digests of their undirected flows under the map's
    /// seed. Returns the events of handshakes.
    pub fn take(&mut self, packets: &[Packet], flows: &[Digest]) {
        self.digests.clear();
        self.events.clear();
        self.answers.clear();
        self.verdicts.clear();
        self.openers.clear();
        for (index, packet) in packets.iter().enumerate() {
            if let Some(event) = life::event(packet) {
                self.digests.push(flows[index]);
                self.events.push((index as u16, event));
            }
        }
        if let Some(first) = packets.first() {
            self.pass(first.time_ns);
        }
        let Connections {
            flows,
            rules,
            directions,
            digests,
            events,
            answers,
            verdicts,
            openers,
            twin,
        } = self;
        let time = |key: usize| packets[usize::from(events[key].0)].time_ns;
        let audited = twin.is_some();
        let mut batch =
            Batch { rules, directions, packets, events, answers, audited, verdicts, openers };
        flows.take(digests, time, &mut batch);
        if let Some(twin) = twin {
            for (&(index, event), &answer) in events.iter().zip(&*answers) {
                let packet = &packets[usize::from(index)];
                let flow = &packet.flow.undirected();
                let fingerprint = flows.map().fingerprint(flow);
                twin.compare(flow, fingerprint, event, packet.time_ns, answer);
            }
        }
    }

    /// What the packets of the last batch did to handshakes.
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// The openers of the connections of the last batch, one for each packet of a connection that
    /// the map follows, in packet order.
    pub fn openers(&self) -> &[Opener] {
        &self.openers
    }

    /// Advances the time to `now`: connections that are too old expire.
    pub fn pass(&mut self, now: u64) {
        self.flows.pass(now, &mut Ageless(&mut self.rules));
        if let Some(twin) = &mut self.twin {
            twin.pass(now);
        }
    }

    /// The work of its map.
    pub fn work(&self) -> [Work; 2] {
        self.flows.work(["connections: cells read by timers", "connections: buckets searched"])
    }

    /// For tests: after `packets` TCP packets the map refuses every new connection.
    #[doc(hidden)]
    pub fn refuse_after(&mut self, packets: u64) {
        self.flows.refuse_after(packets);
    }

    /// For tests: makes the counts wrong, so that an audit must find it.
    #[cfg(test)]
    pub(crate) fn distort(&mut self, act: impl FnOnce(&mut Counts)) {
        act(&mut self.rules.counts);
    }

    /// The level of the sampling valve: one new connection in `2^level` is followed.
    pub fn level(&self) -> u32 {
        self.flows.valve().level()
    }

    /// The level of the evidence: attempts of one connection in `2^level` are evidence of a flood.
    pub fn evidence_level(&self) -> u32 {
        self.flows.valve().evidence()
    }

    /// The expected number of connections whose packets went to the cell of another one.
    pub(crate) fn mistaken(&self) -> f64 {
        self.rules.counts.mistaken + self.flows.mistaken()
    }

    /// Whether every connection so far was followed: none was refused, left out of the sample, or
    /// found to share its cell with another.
    pub fn follows_all(&self) -> bool {
        let Counts { refused, dont_know, sampling, .. } = &self.rules.counts;
        [*refused, *dont_know, sampling.unsampled] == [0; 3]
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.raw_counts();
        let level = counts.sampling.highest;
        let census = self.map().census_from(level);
        for (life, cells) in self.rules.lives.lives.iter().zip(&census) {
            let (outcome, cells) = (life.outcome(), cells << level);
            let variance = counts.sampling.present_variance(cells);
            for (count, more) in [
                (&mut counts.by_state[outcome], cells),
                (&mut counts.present[outcome], cells),
                (&mut counts.sampling.by_state[outcome], variance),
            ] {
                *count = count.saturating_add(more);
            }
        }
        counts
    }

    /// The counts, without the outcomes of connections that have not ended.
    pub(crate) fn raw_counts(&self) -> Counts {
        let mut counts = self.rules.counts.clone();
        let valve = self.flows.valve();
        let (mut half_open, mut open) = (self.rules.half_open, self.rules.open);
        let sampling = &mut counts.sampling;
        sampling.level = sampling.level.max(valve.level());
        sampling.highest = sampling.highest.max(valve.highest());
        sampling.since = sampling.since.or(valve.since());
        half_open.at(sampling.highest);
        open.at(sampling.highest);
        (counts.half_open, counts.open) = (half_open.estimate(), open.estimate());
        if let Some(merged) = counts.merged {
            counts.open = merged.open_now;
        }
        counts.mistaken = self.mistaken();
        counts.peak_half_open = counts.peak_half_open.max(counts.half_open);
        counts
    }

    /// The probability that a packet of a connection that is not stored matches another's cell.
    pub fn stranger_rate(&self) -> f64 {
        self.map().certainty().error()
    }

    /// Connections now whose handshake is incomplete.
    pub fn half_open(&self) -> u64 {
        self.raw_counts().half_open
    }

    /// The state of a connection now; the key may have either direction. A connection that is over
    /// expires after seconds. A connection that is not stored may return the state of another one,
    /// with the probability [`stranger_rate`](Self::stranger_rate).
    pub fn lookup(&self, flow: &FlowKey) -> Lookup<Life> {
        match self.map().lookup(&flow.undirected()) {
            Lookup::State(state) => Lookup::State(*self.rules.lives.of(state)),
            Lookup::Absent => Lookup::Absent,
            Lookup::DontKnow => Lookup::DontKnow,
        }
    }

    /// Packets of new connections that the sampling valve passed over.
    pub fn unsampled(&self) -> u64 {
        self.rules.counts.sampling.unsampled
    }

    /// Packets of connections that did not fit in the map.
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
    /// Whether the capture certainly has only one side of most connections: at least ten one-way
    /// connections, and more than three times as many as completed handshakes. Forged clients that send
    /// data without an answer look one-way, too, however much traffic of both directions is beside.
    pub fn is_one_way(&self) -> bool {
        let Figures { one_way, came_about, .. } = self.figures();
        let completed = came_about.most().unwrap_or(u64::MAX).saturating_mul(3);
        one_way.least() >= 10 && one_way.least() > completed
    }
}

/// Adds to a count, which stops at its ceiling.
#[inline]
fn raise(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
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
        let Counts { by_state, sampling, .. } = &mut self.counts;
        raise(&mut by_state[life.outcome()], share.scale());
        raise(&mut sampling.by_state[life.outcome()], share.variance());
    }

    fn one_way(&mut self, is: bool, share: Share) {
        if is {
            raise(&mut self.counts.one_way, share.scale());
            raise(&mut self.counts.sampling.one_way, share.variance());
        }
    }

    /// Counts a change that the map stored. Returns the event of the handshake, if there was one.
    #[inline]
    fn follow(&mut self, before: Lookup<State>, next: Next<State>, share: Share) -> Option<Deed> {
        match (before, next) {
            (Lookup::Absent, Next::Insert(state)) => {
                let life = *self.lives.of(state);
                self.enter(&life, share);
                self.one_way(life.is_one_way(), share);
                life.is_half_open().then_some(Deed::Opened)
            }
            (Lookup::State(state), Next::Insert(_)) => {
                let life = *self.lives.of(state);
                self.leave(&life, share);
                raise(&mut self.counts.dont_know, 2 * share.scale());
                None
            }
            (Lookup::State(state), Next::Modify(to)) => {
                let (old, new) = (*self.lives.of(state), *self.lives.of(to));
                self.leave(&old, share);
                self.enter(&new, share);
                if new.is_new() {
                    self.end(&old, share);
                    return Some(Deed::Opened);
                }
                self.one_way(new.is_one_way() && !old.is_one_way(), share);
                if new.is_open() && !old.is_open() {
                    raise(&mut self.counts.came_about, share.scale());
                    raise(&mut self.counts.sampling.came_about, share.variance());
                }
                match (old.is_half_open(), new.is_half_open()) {
                    (false, true) => Some(Deed::Opened),
                    (true, false) if new.is_refused() => Some(Deed::Refused),
                    (true, false) if new.is_aborted() => Some(Deed::Aborted),
                    (true, false) => Some(Deed::Confirmed),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The action of a timer on the cell of a connection.
    fn visit(&mut self, timer: usize, cell: Visited, share: Share) -> Fate {
        let ageing = TIMERS[timer];
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

/// The TCP packets of a batch.
struct Batch<'a> {
    rules: &'a mut Rules,
    directions: &'a mut Directions,
    packets: &'a [Packet],
    events: &'a [(u16, u16)],
    answers: &'a mut Vec<Option<Lookup<State>>>,
    audited: bool,
    verdicts: &'a mut Vec<Verdict>,
    openers: &'a mut Vec<Opener>,
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
        let Step { before, next, result, share, is_evidence } = step;
        if self.audited {
            self.answers.push((result == Taken::Yes).then_some(before));
        }
        match result {
            Taken::Yes => {}
            Taken::Refused => {
                raise(&mut self.rules.counts.refused, 1);
                return;
            }
            Taken::Unsampled => {
                raise(&mut self.rules.counts.sampling.unsampled, 1);
                return;
            }
        }
        let index = self.events[key].0;
        let packet = &self.packets[usize::from(index)];
        let ordered = packet.flow.is_ordered();
        let (state, old) = match (before, next) {
            (Lookup::Absent, Next::Insert(state)) => (state, None),
            (Lookup::State(old), Next::Modify(state)) => (state, Some(old)),
            (Lookup::State(state), Next::Stay) => (state, Some(state)),
            // Two connections that cannot be distinguished.
            _ => {
                self.rules.follow(before, next, share);
                return;
            }
        };
        let life = *self.rules.lives.of(state);
        let is_source = ordered != life.is_turned();
        self.openers.push(Opener { index, is_source, by_syn: life.is_by_syn() });
        if next == Next::Stay {
            return;
        }
        let old = old.map(|old| *self.rules.lives.of(old)).filter(|_| !life.is_new());
        let what = self.rules.follow(before, next, share);
        let (source, destination) = (packet.flow.source(), packet.flow.destination());
        let responder = if is_source { destination } else { source };
        if life.is_answered() && !old.is_some_and(|old| old.is_answered()) {
            self.directions.answered(responder, packet.time_ns);
        }
        if life.is_one_way() && !old.is_some_and(|old| old.is_one_way()) {
            // The source went on without an answer of the destination.
            self.directions.unanswered(destination, packet.time_ns);
        }
        if let Some(what) = what {
            let answered = life.is_answered();
            let one_way = !answered && self.directions.is_missing(responder, packet.time_ns);
            let by_opener = is_source;
            self.verdicts.push(Verdict { index, what, by_opener, answered, one_way, is_evidence });
        }
    }

    fn visit(&mut self, timer: usize, cell: Visited, share: Share) -> Fate {
        self.rules.visit(timer, cell, share)
    }
}

/// The rules between batches, when time passes without packets.
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
