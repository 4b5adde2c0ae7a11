//! The same machine on a hash map of all connections, for comparison.
//!
//! The twin goes by the truth, packet by packet, and looks at what the map answered before it. It
//! does not age: it lets a connection go when the map has, and calls that a violation if it was too
//! soon. Two flows of one fingerprint are one to the map: what they are answered is counted apart,
//! and is no violation, because nothing else was promised.

use super::{
    Patience,
    life::{AGES, Ageing, Life, Lives},
};
use crate::{FlowKey, flow_map::GRAIN};
use sidon::{Lookup, ops::Next, state::State};
use std::collections::{HashMap, hash_map::Entry};

/// What is known of a connection.
#[derive(Debug, Clone, Copy)]
struct Truth {
    /// `None` if it met itself the other way round, and the map cannot tell the two apart.
    state: Option<State>,
    /// When its attempt began.
    opened: u64,
    /// When its last packet came.
    last: u64,
}

/// All connections, and how the map did.
#[derive(Debug, Default)]
pub struct Twin {
    connections: HashMap<FlowKey, Truth>,
    /// The first flow of each fingerprint, and whether there was another.
    fingerprints: HashMap<u64, (FlowKey, bool)>,
    /// Answers that were compared.
    pub answers: u64,
    /// Answers that were wrong though the flow has its fingerprint for itself: none.
    pub violations: u64,
    /// Answers `DontKnow`.
    pub dont_knows: u64,
    /// Answers that were wrong because another flow has the same fingerprint.
    pub mistaken: u64,
    /// How many flows there were.
    pub flows: u64,
    /// Flows that share their fingerprint with an earlier one.
    pub alike: u64,
}

impl Twin {
    /// Compares the answer before a packet with the truth, and follows the packet. `None` is a
    /// connection that there was no room for.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn compare(
        &mut self,
        lives: &Lives,
        patience: &Patience,
        flow: &FlowKey,
        fingerprint: u64,
        event: u16,
        time: u64,
        answer: Option<Lookup<State>>,
    ) {
        let shares = match self.fingerprints.entry(fingerprint) {
            Entry::Vacant(place) => {
                place.insert((*flow, false));
                self.flows += 1;
                false
            }
            Entry::Occupied(mut place) => {
                let (first, another) = place.get_mut();
                if first != flow && !self.connections.contains_key(flow) {
                    self.flows += 1;
                    self.alike += 1;
                }
                *another |= first != flow;
                *another
            }
        };
        let Some(answer) = answer else {
            // The map does not know it, and so nobody is wrong about it.
            self.connections.remove(flow);
            return;
        };
        self.answers += 1;
        let truth = self.connections.get(flow).copied();
        let right = match (answer, truth) {
            (Lookup::Absent, None) => true,
            (Lookup::Absent, Some(truth)) => may_be_gone(lives, patience, &truth, time),
            (Lookup::DontKnow, Some(Truth { state: None, .. })) => true,
            (Lookup::State(state), Some(Truth { state: Some(truth), .. })) => {
                same(lives.of(state), lives.of(truth))
            }
            _ => false,
        };
        self.dont_knows += u64::from(answer == Lookup::DontKnow);
        match (right, shares) {
            (true, _) => {}
            (false, true) if answer != Lookup::DontKnow => self.mistaken += 1,
            (false, true) => {}
            (false, false) => self.violations += 1,
        }
        let truth = truth.filter(|_| answer != Lookup::Absent || shares);
        let now = match truth {
            None => Lookup::Absent,
            Some(Truth { state: None, .. }) => Lookup::DontKnow,
            Some(Truth { state: Some(state), .. }) => Lookup::State(state),
        };
        let opened = |state: State| {
            let goes_on = truth.filter(|truth| {
                let attempt = |state| lives.of(state).ageing() == Ageing::Attempt;
                attempt(state) && truth.state.is_some_and(attempt)
            });
            goes_on.map_or(time, |truth| truth.opened)
        };
        let next = match lives.machine.next(now, event) {
            Next::Insert(state) if now == Lookup::Absent => {
                Some(Truth { state: Some(state), opened: time, last: time })
            }
            Next::Insert(_) => Some(Truth { state: None, opened: time, last: time }),
            Next::Modify(state) | Next::Set(state) => {
                Some(Truth { state: Some(state), opened: opened(state), last: time })
            }
            Next::Stay => truth.map(|truth| Truth { last: time, ..truth }),
            Next::Forget => None,
        };
        match next {
            Some(truth) => self.connections.insert(*flow, truth),
            None => self.connections.remove(flow),
        };
    }
}

/// Equal but for the age, which the twin does not have.
fn same(one: &Life, other: &Life) -> bool {
    one.ageless() == other.ageless()
}

/// Whether a hand may have cleared the connection by now. A cell that was moved to make room may
/// have met the hand once more than others.
fn may_be_gone(lives: &Lives, patience: &Patience, truth: &Truth, time: u64) -> bool {
    let ageing = truth.state.map_or(Ageing::Long, |state| lives.of(state).ageing());
    let (since, least) = match ageing {
        Ageing::Attempt => {
            let round = patience.attempt / u64::from(AGES);
            (truth.opened, round * u64::from(AGES - 2))
        }
        Ageing::Short => (truth.last, patience.short),
        Ageing::Long => (truth.last, patience.long),
    };
    time.saturating_sub(since) + GRAIN >= least
}
