//! The state of every TCP connection in four bytes: how many are half open, how they end.
//!
//! A connection is a flow in both directions; its state is that of the machine in [`life`], kept in
//! a [`Fingerprint`] map, 24 bits of remainder beside it.
//! ```text
//! packet -> flow key, event -> map: now -> next    -> counts: half open, open, outcomes
//!                               hands: go round    -> outcomes of what is over or silent
//! ```
//! Three hands age the map by the time of the packets: attempts end between four and five seconds
//! after their first SYN, what is over or unconfirmed after five to ten of silence, all else after
//! five to ten minutes. Ended connections and those still there are counted by outcome; two that
//! cannot be told apart are counted as don't-knows, and what a full map refuses in the ledger.
//!
//! A packet of a flow that is not in may meet the cell of another one, and is then taken for that:
//! with the map full, one in 2^19. Without the keys nobody can see that.

pub mod life;
mod merge;
mod twin;

pub use life::OUTCOMES;
pub use twin::Twin;

use crate::{FlowKey, Packet, batch::PACKETS};
use life::{Ageing, Life, Lives};
use sidon::{
    Digest, Infeasible, Lookup, Seed,
    ops::{Next, StateMap},
    state::{
        Clock, Fingerprint, Period, State, Sweep,
        fingerprint::{Fate, Moves, Placing, Shape, Visited},
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
/// Time that may pass before the hands move.
const GRAIN: u64 = SECOND / 4;

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
}

/// The monitor.
#[derive(Debug)]
pub struct Connections {
    map: Fingerprint,
    lives: Lives,
    counts: Counts,
    patience: Patience,
    hands: [Clock; 3],
    /// When the hands last moved.
    swept: Option<u64>,
    digests: Vec<Digest>,
    events: Vec<(u16, u16)>,
    refused: Vec<u16>,
    answers: Vec<Lookup<State>>,
    verdicts: Vec<Verdict>,
    twin: Option<Twin>,
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
        let hand = |period| Clock::new(Period::Nanos(period)).at_most(u64::MAX);
        Ok(Connections {
            map: Fingerprint::new(shape, seed)?,
            lives: Lives::new(),
            counts: Counts::default(),
            patience,
            hands: [
                hand(patience.attempt / u64::from(life::AGES)),
                hand(patience.short),
                hand(patience.long),
            ],
            swept: None,
            digests: Vec::with_capacity(PACKETS),
            events: Vec::with_capacity(PACKETS),
            refused: Vec::with_capacity(PACKETS),
            answers: Vec::with_capacity(PACKETS),
            verdicts: Vec::with_capacity(PACKETS),
            twin: audit.then(Twin::default),
        })
    }

    /// Takes in packets, no more than a batch holds, with the digests of their undirected flows
    /// under the map's seed, and says what they did to handshakes.
    pub fn take(&mut self, packets: &[Packet], flows: &[Digest]) -> &[Verdict] {
        self.verdicts.clear();
        let mut from = 0;
        while from < packets.len() {
            let now = packets[from].time_ns;
            self.pass(now);
            let until = self.swept.unwrap_or(now).saturating_add(GRAIN);
            let length = packets[from..].iter().take_while(|packet| packet.time_ns < until).count();
            let to = from + length.max(1);
            self.stretch(packets, flows, from, to);
            from = to;
        }
        &self.verdicts
    }

    /// Packets `from..to`, between which no hand moves.
    fn stretch(&mut self, packets: &[Packet], flows: &[Digest], from: usize, to: usize) {
        let Connections { map, lives, counts, digests, events, refused, answers, verdicts, .. } =
            self;
        digests.clear();
        events.clear();
        refused.clear();
        answers.clear();
        for (index, packet) in packets[from..to].iter().enumerate() {
            if let Some(event) = life::event(packet) {
                digests.push(flows[from + index]);
                events.push(((from + index) as u16, event));
            }
        }
        let change = |key: usize, now: Lookup<State>| {
            let (index, event) = events[key];
            let next = lives.machine.next(now, event);
            answers.push(now);
            if let Some((what, turned)) = counts.follow(lives, now, next) {
                let by_opener = packets[usize::from(index)].flow.is_ordered() != turned;
                verdicts.push(Verdict { index, what, by_opener });
            }
            next
        };
        map.transition_batch(digests, change, &mut |key, _| refused.push(key as u16));
        for &key in &*refused {
            // Nothing but a newcomer is ever refused.
            let (_, event) = events[usize::from(key)];
            counts.undo(lives, lives.machine.next(Lookup::Absent, event));
        }
        if let Some(twin) = &mut self.twin {
            let mut refused = refused.iter().peekable();
            for (key, &(index, event)) in events.iter().enumerate() {
                let flow = &packets[usize::from(index)].flow.undirected();
                let refused = refused.next_if_eq(&&(key as u16)).is_some();
                let time = packets[usize::from(index)].time_ns;
                let fingerprint = map.fingerprint(flow);
                let answer = if refused { None } else { Some(answers[key]) };
                twin.compare(lives, &self.patience, flow, fingerprint, event, time, answer);
            }
        }
    }

    /// It is so late now: what is too old goes.
    pub fn pass(&mut self, now: u64) {
        if self.swept.is_some_and(|swept| now < swept.saturating_add(GRAIN)) {
            return;
        }
        let before = self.swept.replace(now).unwrap_or(now);
        let Connections { map, lives, counts, hands, .. } = self;
        for (hand, ageing) in hands.iter_mut().zip([Ageing::Attempt, Ageing::Short, Ageing::Long]) {
            let mut round = Round { map, lives, counts, ageing };
            if let (Ageing::Attempt, Period::Nanos(period)) = (ageing, hand.period()) {
                // A clock makes up for no more than a few rounds at once, and an attempt needs more.
                for rounds in 1..=u64::from(life::AGES) {
                    let then = before.saturating_add(period.saturating_mul(rounds));
                    if then < now {
                        hand.at(&mut round, 1, then);
                    }
                }
            }
            hand.at(&mut round, 1, now);
        }
    }

    /// What is counted so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.clone();
        let census = self.map.census();
        for (life, cells) in self.lives.lives.iter().zip(&census) {
            counts.by_state[life.outcome()] += cells;
            counts.present[life.outcome()] += cells;
        }
        counts
    }

    /// The chance that a packet of a flow that is not in is taken for another's.
    pub fn stranger_rate(&self) -> f64 {
        self.map.stranger_rate()
    }

    /// Connections whose handshake is not complete, now.
    pub fn half_open(&self) -> u64 {
        self.counts.half_open
    }

    /// The state of a connection now, of either direction's key. What is over is forgotten after
    /// seconds. Only a flow that is not in may be answered another's, see
    /// [`stranger_rate`](Self::stranger_rate).
    pub fn lookup(&self, flow: &FlowKey) -> Lookup<Life> {
        match self.map.lookup(&flow.undirected()) {
            Lookup::State(state) => Lookup::State(*self.lives.of(state)),
            Lookup::Absent => Lookup::Absent,
            Lookup::DontKnow => Lookup::DontKnow,
        }
    }

    /// Connections that there was no room for.
    pub fn refused(&self) -> u64 {
        self.counts.refused
    }

    /// The map.
    pub fn map(&self) -> &Fingerprint {
        &self.map
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

    fn enter(&mut self, life: &Life) {
        self.half_open += u64::from(life.is_half_open());
        self.open += u64::from(life.is_open());
        self.peak_half_open = self.peak_half_open.max(self.half_open);
    }

    fn leave(&mut self, life: &Life) {
        self.half_open -= u64::from(life.is_half_open());
        self.open -= u64::from(life.is_open());
    }

    /// Counts what becomes of a connection, and says what that means for its handshake, and whether
    /// the higher end opened it.
    #[inline]
    fn follow(
        &mut self,
        lives: &Lives,
        now: Lookup<State>,
        next: Next<State>,
    ) -> Option<(Deed, bool)> {
        match (now, next) {
            (Lookup::Absent, Next::Insert(state)) => {
                let life = lives.of(state);
                self.enter(life);
                self.one_way += u64::from(life.is_one_way());
                life.is_half_open().then_some((Deed::Opened, life.is_turned()))
            }
            (Lookup::State(state), Next::Insert(_)) => {
                self.leave(lives.of(state));
                self.dont_know += 2;
                None
            }
            (Lookup::State(state), Next::Modify(to)) => {
                let (old, new) = (lives.of(state), lives.of(to));
                self.leave(old);
                self.enter(new);
                if old.is_over() && !new.is_over() {
                    self.by_state[old.outcome()] += 1;
                    return Some((Deed::Opened, new.is_turned()));
                }
                self.one_way += u64::from(new.is_one_way() && !old.is_one_way());
                self.came_about += u64::from(new.is_open() && !old.is_open());
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

    /// A connection that was counted has not been taken in.
    fn undo(&mut self, lives: &Lives, next: Next<State>) {
        if let Next::Insert(state) = next {
            self.leave(lives.of(state));
            self.refused += 1;
        }
    }
}

/// One hand on the map.
struct Round<'a> {
    map: &'a mut Fingerprint,
    lives: &'a Lives,
    counts: &'a mut Counts,
    ageing: Ageing,
}

impl Sweep for Round<'_> {
    fn units(&self) -> u64 {
        self.map.units()
    }

    fn sweep(&mut self, from: u64, to: u64) -> u64 {
        if self.map.flows() == 0 {
            return 0;
        }
        let Round { map, lives, counts, ageing } = self;
        map.sweep_by(from, to, &mut |cell: Visited| {
            let Lookup::State(state) = cell.answer else {
                // Connections that are not told apart are counted already.
                return match (*ageing, cell.touched) {
                    (Ageing::Long, true) => Fate::Untouch,
                    (Ageing::Long, false) => Fate::Clear,
                    _ => Fate::Keep,
                };
            };
            let life = lives.of(state);
            if life.ageing() != *ageing {
                return Fate::Keep;
            }
            let fate = match (*ageing, cell.touched) {
                (Ageing::Attempt, _) => {
                    lives.older[usize::from(state)].map_or(Fate::Clear, Fate::Become)
                }
                (_, true) => Fate::Untouch,
                (_, false) => Fate::Clear,
            };
            if fate == Fate::Clear {
                counts.leave(life);
                counts.by_state[life.outcome()] += 1;
            }
            fate
        })
    }
}
