//! Measures the errors of a state map against an exact reference.
//!
//! Every operation is applied to the map and to a hash table of all flows, and the answers of the
//! map are compared with the truth. The paper names five errors. A flow that was never inserted may
//! get a state (false positive) or a "don't know". A stored flow may get none (false negative), a
//! wrong one (false return state) or a "don't know". Bonomi et al., SIGCOMM 2006, section 3.

use super::{Cells, Machine, Map, Next, State, Sweep};
use crate::{Key, Refused, answer::Lookup};
use std::{collections::HashMap, hash::Hash};

/// A number of occurrences and the number of opportunities.
///
/// ```
/// use sidon::internals::Share;
///
/// let share = Share { hits: 5, of: 1_000 };
/// assert_eq!(share.rate(), 0.005);
/// let [least, most] = share.interval();
/// assert!(0.002 < least && least < 0.005 && 0.005 < most && most < 0.012);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// The number of occurrences.
    pub hits: u64,
    /// The number of opportunities.
    pub of: u64,
}

impl Share {
    /// The rate. Zero if there was no opportunity.
    pub fn rate(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.hits as f64 / self.of as f64 }
    }

    /// The 95 % interval of the rate, by Wilson's score.
    pub fn interval(self) -> [f64; 2] {
        if self.of == 0 {
            return [0.0, 1.0];
        }
        const Z: f64 = 1.96;
        let (n, p) = (self.of as f64, self.rate());
        let centre = p + Z * Z / (2.0 * n);
        let reach = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        [((centre - reach) / scale).max(0.0), ((centre + reach) / scale).min(1.0)]
    }

    fn count(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }
}

/// The errors of a map, by kind.
///
/// ```
/// use sidon::internals::{Share, Tally};
///
/// let tally = Tally { false_negatives: Share { hits: 2, of: 50 }, ..Tally::default() };
/// let (name, share) = tally.rates()[2];
/// assert_eq!((name, share.rate()), ("false_negatives", 0.04));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Flows never inserted that got a state.
    pub false_positives: Share,
    /// Flows never inserted that got `DontKnow`.
    pub stranger_dont_knows: Share,
    /// Stored flows that got `Absent`.
    pub false_negatives: Share,
    /// Stored flows that got another state than theirs.
    pub false_states: Share,
    /// Stored flows that got `DontKnow`.
    pub member_dont_knows: Share,
    /// Operations that were refused.
    pub refused: Share,
}

impl Tally {
    /// The five rates of the paper and the refusals, by name.
    pub fn rates(&self) -> [(&'static str, Share); 6] {
        [
            ("false_positives", self.false_positives),
            ("stranger_dont_knows", self.stranger_dont_knows),
            ("false_negatives", self.false_negatives),
            ("false_states", self.false_states),
            ("member_dont_knows", self.member_dont_knows),
            ("refused", self.refused),
        ]
    }

    fn compare(&mut self, answer: Lookup<State>, truth: Option<State>) {
        match truth {
            None => {
                self.false_positives.count(matches!(answer, Lookup::State(_)));
                self.stranger_dont_knows.count(answer == Lookup::DontKnow);
            }
            Some(state) => {
                self.false_negatives.count(answer == Lookup::Absent);
                let wrong = matches!(answer, Lookup::State(other) if other != state);
                self.false_states.count(wrong);
                self.member_dont_knows.count(answer == Lookup::DontKnow);
            }
        }
    }
}

/// A state map and its exact reference. The map may age under a [`Clock`](super::Clock). The
/// reference does not age, so expired flows count as false negatives.
///
/// ```
/// use sidon::{Seed, internals::{Audit, Share}, state::{Direct, Next, direct::Shape}};
///
/// let shape = Shape { cells: 1_000, hashes: 4, states: 3, counter: 4, timed: false };
/// let mut audit = Audit::new(Direct::new(shape, Seed(1))?);
/// for flow in 0..10u32 {
///     audit.apply(&flow, Next::Insert(2))?;
/// }
/// (0..100).for_each(|flow| drop(audit.ask(&flow)));
/// assert_eq!(audit.tally.false_negatives, Share { hits: 0, of: 10 });
/// assert_eq!(audit.tally.false_positives, Share { hits: 0, of: 90 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Audit<M, K> {
    /// The map.
    pub map: M,
    /// The true state of every flow. A caller whose operation was refused may correct it.
    pub truth: HashMap<K, State>,
    /// The errors so far.
    pub tally: Tally,
}

impl<K: Key + Copy + Eq + Hash, B: Cells> Audit<Map<B>, K> {
    /// An empty map with an empty reference.
    pub fn new(map: Map<B>) -> Self {
        Audit { map, truth: HashMap::new(), tally: Tally::default() }
    }

    /// Applies an operation to the map and to the reference. Counts a refusal of the map.
    pub fn apply(&mut self, key: &K, next: Next<State>) -> Result<(), Refused> {
        let done = match next {
            Next::Stay => Ok(()),
            Next::Insert(state) => self.map.insert(key, state),
            Next::Modify(state) => self.map.modify(key, state),
            Next::Set(_) => self.map.transition(key, |_| next).map(|_| ()),
            Next::Forget => self.map.forget(key),
        };
        self.follow(key, next);
        self.tally.refused.count(done.is_err());
        done
    }

    /// Applies an event of a machine. The map starts from the state that it has for the flow, the
    /// reference from the true state. Counts an error if the two differ.
    pub fn step(&mut self, key: &K, machine: &Machine, event: u16) -> Result<(), Refused> {
        let truth = self.truth.get(key).copied();
        let done = self.map.transition(key, |now| machine.next(now, event));
        let refused = match done {
            Ok(now) => {
                self.tally.compare(now, truth);
                None
            }
            Err(why) => {
                self.tally.compare(self.map.lookup(key), truth);
                Some(why)
            }
        };
        self.tally.refused.count(refused.is_some());
        self.follow(key, machine.next(truth.map_or(Lookup::Absent, Lookup::State), event));
        refused.map_or(Ok(()), Err)
    }

    /// Looks up the flow and compares the answer with the truth.
    pub fn ask(&mut self, key: &K) -> Lookup<State> {
        let answer = self.map.lookup(key);
        self.tally.compare(answer, self.truth.get(key).copied());
        answer
    }

    fn follow(&mut self, key: &K, next: Next<State>) {
        match next {
            Next::Stay => {}
            Next::Insert(state) | Next::Set(state) => {
                self.truth.insert(*key, state);
            }
            Next::Modify(state) => {
                if let Some(own) = self.truth.get_mut(key) {
                    *own = state;
                }
            }
            Next::Forget => {
                self.truth.remove(key);
            }
        }
    }
}

impl<M: Sweep, K> Sweep for Audit<M, K> {
    fn units(&self) -> u64 {
        self.map.units()
    }

    fn hand(&self) -> u64 {
        self.map.hand()
    }

    fn sweep(&mut self, to: u64) -> u64 {
        self.map.sweep(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Seed,
        state::{Direct, Rule, direct::Shape},
    };

    fn map(states: u32) -> Direct {
        Direct::new(Shape { cells: 100, hashes: 3, states, counter: 4, timed: false }, Seed(1))
            .unwrap()
    }

    #[test]
    fn every_wrong_answer_is_counted_under_its_name() {
        let mut audit = Audit::new(map(6));
        for answer in [Lookup::State(3), Lookup::State(4), Lookup::Absent, Lookup::DontKnow] {
            audit.tally.compare(answer, Some(3));
            audit.tally.compare(answer, None);
        }
        audit.apply(&1, Next::Insert(3)).unwrap();
        audit.map.forget(&1).unwrap();
        assert_eq!(audit.apply(&1, Next::Modify(5)), Err(Refused::NotStored));
        assert_eq!(audit.truth.get(&1).copied(), Some(5));
        let hits = audit.tally.rates().map(|(_, share)| (share.hits, share.of));
        assert_eq!(hits, [(2, 4), (1, 4), (1, 4), (1, 4), (1, 4), (1, 2)]);
        audit.map.insert(&1, 5).unwrap();
        audit.apply(&1, Next::Forget).unwrap();
        assert_eq!(audit.truth.len(), 0);
    }

    #[test]
    fn the_reference_starts_from_the_truth_and_the_map_from_its_own_state() {
        let rules: [(&str, &[Rule<'_>]); 2] =
            [("open", &[Rule::Open("a")]), ("go", &[Rule::If("a", "b")])];
        let machine = Machine::new(&["a", "b"], &[], &rules).unwrap();
        // The map has no room for state b.
        let mut audit = Audit::new(map(1));
        audit.step(&1, &machine, 0).unwrap();
        audit.map.forget(&1).unwrap();
        audit.step(&1, &machine, 1).unwrap();
        assert_eq!(audit.truth.get(&1).copied(), Some(1));
        assert_eq!(audit.tally.false_negatives, Share { hits: 1, of: 1 });
        // The map has state a for the flow, and its change is refused.
        audit.map.insert(&1, 0).unwrap();
        assert_eq!(audit.step(&1, &machine, 1), Err(Refused::Outside { universe: 1 }));
        assert_eq!(audit.tally.false_states, Share { hits: 1, of: 2 });
    }

    #[test]
    fn an_interval_holds_the_rate_and_is_never_empty() {
        for (hits, of) in [(0, 10), (3, 10), (10, 10), (1, 1_000_000)] {
            let share = Share { hits, of };
            let [low, high] = share.interval();
            assert!(low <= share.rate() && share.rate() <= high && low < high);
        }
        assert_eq!(Share::default().interval(), [0.0, 1.0]);
        // Wilson, by hand: 3 of 10 is from 0.1078 to 0.6032.
        let [low, high] = Share { hits: 3, of: 10 }.interval();
        assert!((low - 0.1078).abs() < 1e-4 && (high - 0.6032).abs() < 1e-4, "{low} {high}");
    }
}
