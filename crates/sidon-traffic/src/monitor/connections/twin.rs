//! An exact reference: the machine of connections on a hash map of all connections.
//!
//! The twin follows every packet, whether or not the map stored its connection, and compares its
//! state with the map's answer before that packet. The map cannot distinguish two flows with the
//! same fingerprint. Wrong answers about such flows are counted as `mistaken`, not as violations.
//!
//! A timer of the map expires a connection within a range of time. For a connection that the map
//! stores, the twin learns from the map's answer whether it has expired, and counts a violation if
//! that was too early. For any other connection the twin counts how often its expiry was uncertain.
//! Its counts have this uncertainty, and are exact otherwise.
//!
//! Packets may be out of order. The clock of the twin is that of the map: the latest time so far.

use super::{
    OUTCOMES, Patience,
    life::{AGES, Ageing, Life, Lives},
};
use crate::{FlowKey, audit::ROWS, flow_map::GRAIN};
use sidon::{
    Lookup,
    state::{Next, State},
};
use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

/// The true state of a connection.
#[derive(Debug, Clone, Copy)]
struct Truth {
    /// `None` after SYNs from both ends: the map then answers `DontKnow`.
    state: Option<State>,
    /// The time of the attempt's first packet.
    opened: u64,
    /// The time of the last packet.
    last: u64,
    /// Whether the map stored the connection after its last packet.
    stored: bool,
}

/// Whether the timers of the map have expired a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry {
    No,
    Maybe,
    Yes,
}

/// All connections, and the results of the comparison.
#[derive(Debug, Default)]
pub struct Twin {
    connections: HashMap<FlowKey, Truth>,
    /// The first flow with each fingerprint, and whether another flow has it too.
    fingerprints: HashMap<u64, (FlowKey, bool)>,
    /// Other flows whose fingerprint an earlier flow has.
    others: HashSet<FlowKey>,
    /// The latest time of a packet.
    clock: u64,
    /// Ended connections by outcome, in the order of [`OUTCOMES`].
    ended: [u64; OUTCOMES.len()],
    came_about: u64,
    one_way: u64,
    /// Connections that two ends opened at the same time, each counted twice as the map does.
    mixed: u64,
    /// The number of times that the expiry of a connection was uncertain.
    uncertain: u64,
    /// Answers that were compared.
    pub answers: u64,
    /// Wrong answers about a flow whose fingerprint no other flow has. Expected to be 0.
    pub violations: u64,
    /// The first violations, one line each.
    pub rows: Vec<String>,
    /// Answers `DontKnow`.
    pub dont_knows: u64,
    /// Answers that were wrong because another flow has the same fingerprint.
    pub mistaken: u64,
    /// The number of flows.
    pub flows: u64,
    /// Flows that share their fingerprint with an earlier one.
    pub alike: u64,
    lives: Arc<Lives>,
    patience: Patience,
}

/// The true counts of connections, each from the least to the most it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Truths {
    pub(crate) total: [u64; 2],
    pub(crate) by_state: [[u64; 2]; OUTCOMES.len()],
    pub(crate) half_open: [u64; 2],
    pub(crate) open: [u64; 2],
    pub(crate) came_about: [u64; 2],
    pub(crate) one_way: [u64; 2],
}

impl Twin {
    /// A twin without connections, for a map with these timeouts.
    pub(super) fn new(patience: Patience) -> Self {
        Twin { patience, ..Twin::default() }
    }

    /// Advances the clock to `now`.
    pub(super) fn pass(&mut self, now: u64) {
        self.clock = self.clock.max(now);
    }

    /// Compares the answer before a packet with the truth, then follows the packet. `None` is a
    /// connection that the map did not store.
    pub(super) fn compare(
        &mut self,
        flow: &FlowKey,
        fingerprint: u64,
        event: u16,
        time: u64,
        answer: Option<Lookup<State>>,
    ) {
        self.pass(time);
        let shares = self.meets(flow, fingerprint);
        let lives = Arc::clone(&self.lives);
        let truth = self.connections.get(flow).copied();
        let expiry = truth.map_or(Expiry::No, |truth| self.expiry(&lives, &truth));
        if let Some(answer) = answer {
            self.judge(&lives, flow, answer, truth, expiry, shares);
        }
        // The map's answer tells whether a stored connection has expired.
        let is_gone = match (answer, truth) {
            (_, None) => false,
            (Some(answer), Some(Truth { stored: true, .. })) if !shares => answer == Lookup::Absent,
            (None, Some(Truth { stored: true, .. })) if !shares => true,
            _ => {
                self.uncertain += u64::from(expiry == Expiry::Maybe);
                expiry == Expiry::Yes
            }
        };
        let before = truth.filter(|_| !is_gone);
        if let Some(truth) = truth.filter(|_| is_gone) {
            self.end(&lives, &truth);
        }
        let next = self.follow(&lives, before, event);
        match next {
            Some(truth) => {
                let truth = Truth { stored: answer.is_some(), ..truth };
                self.connections.insert(*flow, truth);
            }
            None => {
                self.connections.remove(flow);
            }
        }
    }

    /// The true counts now. An uncertain expiry changes each count by one at most.
    pub(crate) fn truths(&self) -> Truths {
        let (mut by_state, mut half_open, mut open) = (self.ended, [0u64; 2], [0u64; 2]);
        let mut mixed = self.mixed;
        for truth in self.connections.values() {
            let Some(state) = truth.state else {
                mixed += 1;
                continue;
            };
            let life = self.lives.of(state);
            by_state[life.outcome()] += 1;
            let present = match self.expiry(&self.lives, truth) {
                Expiry::No => [1, 1],
                Expiry::Maybe => [0, 1],
                Expiry::Yes => [0, 0],
            };
            for (is, count) in [(life.is_half_open(), &mut half_open), (life.is_open(), &mut open)]
            {
                if is {
                    *count = [count[0] + present[0], count[1] + present[1]];
                }
            }
        }
        let wider =
            |[least, most]: [u64; 2]| [least.saturating_sub(self.uncertain), most + self.uncertain];
        let range = |n| wider([n, n]);
        Truths {
            total: range(by_state.iter().sum::<u64>() + mixed),
            by_state: by_state.map(range),
            half_open: wider(half_open),
            open: wider(open),
            came_about: range(self.came_about),
            one_way: range(self.one_way),
        }
    }

    /// Counts a flow the first time it occurs. Returns whether another flow has its fingerprint.
    fn meets(&mut self, flow: &FlowKey, fingerprint: u64) -> bool {
        match self.fingerprints.entry(fingerprint) {
            Entry::Vacant(place) => {
                place.insert((*flow, false));
                self.flows += 1;
                false
            }
            Entry::Occupied(mut place) => {
                let (first, another) = place.get_mut();
                if first != flow && self.others.insert(*flow) {
                    self.flows += 1;
                    self.alike += 1;
                }
                *another |= first != flow;
                *another
            }
        }
    }

    /// Compares an answer of the map with the truth.
    fn judge(
        &mut self,
        lives: &Lives,
        flow: &FlowKey,
        answer: Lookup<State>,
        truth: Option<Truth>,
        expiry: Expiry,
        shares: bool,
    ) {
        self.answers += 1;
        self.dont_knows += u64::from(answer == Lookup::DontKnow);
        let right = match (answer, truth) {
            (Lookup::Absent, None) => true,
            (Lookup::Absent, Some(truth)) => expiry != Expiry::No || !truth.stored,
            (Lookup::DontKnow, Some(Truth { state: None, .. })) => true,
            (Lookup::State(state), Some(Truth { state: Some(truth), .. })) => {
                same(lives.of(state), lives.of(truth))
            }
            _ => false,
        };
        match (right, shares) {
            (true, _) => {}
            (false, true) => self.mistaken += u64::from(answer != Lookup::DontKnow),
            (false, false) => {
                self.violations += 1;
                if self.rows.len() < ROWS {
                    let name = |state: Option<State>| {
                        state.map_or("don't know", |state| OUTCOMES[lives.of(state).outcome()])
                    };
                    let shown = match answer {
                        Lookup::Absent => "absent",
                        Lookup::DontKnow => "don't know",
                        Lookup::State(state) => name(Some(state)),
                    };
                    let truth = truth.map_or("absent", |truth| name(truth.state));
                    let flow = flow.two_way();
                    self.rows.push(format!("connection {flow}: shown {shown}, truth {truth}"));
                }
            }
        }
    }

    /// The state after a packet at the clock's time; counts connections that end or complete.
    fn follow(&mut self, lives: &Lives, before: Option<Truth>, event: u16) -> Option<Truth> {
        let time = self.clock;
        let now = match before {
            None => Lookup::Absent,
            Some(Truth { state: None, .. }) => Lookup::DontKnow,
            Some(Truth { state: Some(state), .. }) => Lookup::State(state),
        };
        let fresh = |state| Some(Truth { state, opened: time, last: time, stored: false });
        match lives.machine.next(now, event) {
            Next::Insert(state) if now == Lookup::Absent => {
                self.one_way += u64::from(lives.of(state).is_one_way());
                fresh(Some(state))
            }
            Next::Insert(_) => {
                // The connection counts twice: once here, and once as long as it is stored.
                self.mixed += u64::from(now != Lookup::DontKnow);
                fresh(None)
            }
            Next::Modify(state) | Next::Set(state) => {
                let new = lives.of(state);
                let old = before.and_then(|truth| truth.state).map(|state| lives.of(state));
                let goes_on = old.filter(|_| !new.is_new());
                match (old, goes_on) {
                    (Some(old), None) => self.ended[old.outcome()] += 1,
                    (Some(old), Some(_)) => {
                        self.one_way += u64::from(new.is_one_way() && !old.is_one_way());
                        self.came_about += u64::from(new.is_open() && !old.is_open());
                    }
                    (None, _) => {}
                }
                let attempt = |life: &Life| life.ageing() == Ageing::Attempt;
                let opened = match (before, goes_on) {
                    (Some(truth), Some(old)) if attempt(old) && attempt(new) => truth.opened,
                    _ => time,
                };
                Some(Truth { state: Some(state), opened, last: time, stored: false })
            }
            Next::Stay => before.map(|truth| Truth { last: time, ..truth }),
            Next::Forget => {
                if let Some(truth) = before {
                    self.end(lives, &truth);
                }
                None
            }
        }
    }

    /// Counts a connection that ended.
    fn end(&mut self, lives: &Lives, truth: &Truth) {
        match truth.state {
            Some(state) => self.ended[lives.of(state).outcome()] += 1,
            None => self.mixed += 1,
        }
    }

    /// Whether the timers have expired a connection by now. An insertion may move a cell ahead of
    /// the timer, which then visits the cell once more than others.
    fn expiry(&self, lives: &Lives, truth: &Truth) -> Expiry {
        let ageing = truth.state.map_or(Ageing::Long, |state| lives.of(state).ageing());
        let Patience { attempt, answered, short, long } = self.patience;
        let (since, least, most) = match ageing {
            Ageing::Attempt => {
                let round = attempt / u64::from(AGES);
                (truth.opened, round * u64::from(AGES - 2), attempt)
            }
            Ageing::Answered => (truth.last, answered, 2 * answered),
            Ageing::Short => (truth.last, short, 2 * short),
            Ageing::Long => (truth.last, long, 2 * long),
        };
        match self.clock.saturating_sub(since) {
            silence if silence + GRAIN < least => Expiry::No,
            silence if silence <= most + 2 * GRAIN => Expiry::Maybe,
            _ => Expiry::Yes,
        }
    }
}

/// Whether two states are equal except for the age, which the twin does not keep.
fn same(one: &Life, other: &Life) -> bool {
    one.ageless() == other.ageless()
}
