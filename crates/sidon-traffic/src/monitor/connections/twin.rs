//! An exact reference: the machine of connections on a hash map of all connections.
//!
//! The twin follows every packet and compares its state with the map's answer before that packet.
//! The twin has no timers. It removes a connection when the map has, and counts a violation if that
//! was too early. The map cannot distinguish two flows with the same fingerprint. Wrong answers
//! about such flows are counted as `mistaken`, not as violations.

use super::{
    Patience,
    life::{AGES, Ageing, Life, Lives},
};
use crate::{FlowKey, flow_map::GRAIN};
use sidon::{Lookup, ops::Next, state::State};
use std::collections::{HashMap, hash_map::Entry};

/// The true state of a connection.
#[derive(Debug, Clone, Copy)]
struct Truth {
    /// `None` after SYNs from both ends: the map then answers `DontKnow`.
    state: Option<State>,
    /// The time of the attempt's first packet.
    opened: u64,
    /// The time of the last packet.
    last: u64,
}

/// All connections, and the results of the comparison.
#[derive(Debug, Default)]
pub struct Twin {
    connections: HashMap<FlowKey, Truth>,
    /// The first flow with each fingerprint, and whether another flow has it too.
    fingerprints: HashMap<u64, (FlowKey, bool)>,
    /// Answers that were compared.
    pub answers: u64,
    /// Wrong answers about a flow whose fingerprint no other flow has. Expected to be 0.
    pub violations: u64,
    /// Answers `DontKnow`.
    pub dont_knows: u64,
    /// Answers that were wrong because another flow has the same fingerprint.
    pub mistaken: u64,
    /// The number of flows.
    pub flows: u64,
    /// Flows that share their fingerprint with an earlier one.
    pub alike: u64,
}

impl Twin {
    /// Compares the answer before a packet with the truth, then follows the packet. `None` is a
    /// connection that the map did not store.
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
            // The map does not store the connection, so there is no answer to compare.
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

/// Whether two states are equal except for the age, which the twin does not keep.
fn same(one: &Life, other: &Life) -> bool {
    one.ageless() == other.ageless()
}

/// Whether a timer may have cleared the connection by now. An insertion may move a cell ahead of
/// the timer, which then visits the cell once more than others.
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
