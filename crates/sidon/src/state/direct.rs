//! States in a plain filter: the set of all pairs of a flow and its state.
//!
//! A pair has `k` cells, like a key of a counting Bloom filter. A caller that knows the state
//! checks one pair; a lookup checks the pairs of all states. If two pairs seem to be stored, the
//! answer is [`Lookup::DontKnow`]:
//! ```text
//!   (X, 3) --> . . 1 . 1 . . 1 . .        X goes from 3 to 5: these are decremented,
//!   (X, 5) --> . . . . . . 1 . 1 . 1      and these incremented
//! ```
//! A pair that is not stored passes with the rate `f` of the filter, so a lookup of a stored flow
//! among `s` states answers `DontKnow` with probability `1 - (1 - f)^(s-1)`. The map suits few
//! states, or events that imply the state. With ageing, one bit per cell suffices; old pairs then
//! stay until the clock hand clears them. Bonomi et al., SIGCOMM 2006, section 3.1, where it is the
//! DBF.

use super::{
    Map, State, Sweep,
    cell_set::{Array, CellSet},
    cells::Cells,
    check_states, known,
};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed, answer::Lookup, packed::Packed, saved, set,
};

/// The widest counter.
pub(crate) const COUNTER_MAX: u32 = 16;

/// The integers that fix the table.
///
/// ```
/// use sidon::state::{Direct, direct::Shape};
///
/// let shape = Shape { cells: 1_000, hashes: 4, states: 3, counter: 4, timed: true };
/// assert_eq!((shape.width(), Direct::planned_bytes(shape)), (5, 625));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of cells: at least 1.
    pub cells: u64,
    /// The number of cells of a pair: 1 to 32.
    pub hashes: u32,
    /// The number of states.
    pub states: u32,
    /// The bits of a counter, 1 to 16. One bit makes the map a Bloom filter, which
    /// only ageing can empty, so it must be timed.
    pub counter: u32,
    /// Whether cells have a flag, so that a [`Clock`](super::Clock) can age them.
    pub timed: bool,
}

impl Shape {
    /// The bits of a cell: counter and flag.
    #[doc(hidden)]
    pub fn width(&self) -> u32 {
        self.counter + u32::from(self.timed)
    }

    /// The bytes of the table, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        Packed::bytes_of(self.cells, self.width())
    }
}

/// A map from keys to states, in counters or bits. See the [module](self).
///
/// ```
/// use sidon::{Seed, state::{Direct, direct::Shape}};
///
/// let shape = Shape { cells: 1_000, hashes: 4, states: 3, counter: 4, timed: false };
/// let mut flows = Direct::new(shape, Seed(1))?;
/// flows.insert("flow", 0)?;
/// assert!(flows.is_in("flow", 0) && !flows.is_in("flow", 2));
/// flows.modify_from("flow", 0, 2)?;
/// assert!(flows.is_in("flow", 2) && !flows.is_in("flow", 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Direct = Map<Body>;

/// The cells of a [`Direct`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    seed: Seed,
    array: Array,
    /// Whether a lookup touches every cell that it reads: see `Map::with_touch_by_lookup`.
    touches_all: bool,
}

impl Body {
    /// The probability that a pair that is not stored passes.
    fn pair_rate(&self) -> f64 {
        self.array.fill().powi(self.shape.hashes as i32)
    }

    /// Replaces the pair of the first state by that of the second.
    fn modify_from(&mut self, digest: Digest, from: State, to: State) -> Result<(), Refused> {
        known(to, self.shape.states)?;
        let (old, new) = (self.spots(digest, from), self.spots(digest, to));
        if !self.all_in_use(&old) {
            return Err(Refused::NotStored);
        }
        self.replace(&old, &new)
    }

    fn forget_from(&mut self, digest: Digest, state: State) -> Result<(), Refused> {
        let spots = self.spots(digest, state);
        if !self.all_in_use(&spots) {
            return Err(Refused::NotStored);
        }
        self.lower(&spots);
        Ok(())
    }

    fn spots(&self, digest: Digest, state: State) -> CellSet {
        self.array.spots(pair(digest, state))
    }

    fn all_in_use(&self, spots: &CellSet) -> bool {
        spots.as_slice().iter().all(|&cell| self.array.value(cell) != 0)
    }

    fn ceiling(&self) -> u64 {
        (1 << self.shape.counter) - 1
    }

    /// Removes the old pair and adds the new one. Refused if a counter of the new one is at its
    /// ceiling.
    fn replace(&mut self, old: &CellSet, new: &CellSet) -> Result<(), Refused> {
        self.raise(new)?;
        self.lower(old);
        Ok(())
    }

    fn raise(&mut self, spots: &CellSet) -> Result<(), Refused> {
        let (ceiling, counts) = (self.ceiling(), self.shape.counter > 1);
        let full = |&cell: &u64| self.array.value(cell) == ceiling;
        if counts && spots.as_slice().iter().any(full) {
            return Err(Refused::Overflow { ceiling });
        }
        for &cell in spots.as_slice() {
            let value = if counts { self.array.value(cell) + 1 } else { 1 };
            self.array.write(cell, value, true);
        }
        Ok(())
    }

    /// Decrements the counters of a pair. A bit is kept, because another pair may share it.
    fn lower(&mut self, spots: &CellSet) {
        if self.shape.counter > 1 {
            for &cell in spots.as_slice() {
                // Ageing may have cleared a counter that flows still use.
                self.array.write(cell, self.array.value(cell).saturating_sub(1), false);
            }
        }
    }
}

/// The digest of a flow in a state: the flow's digest plus a multiple of the golden ratio's bits,
/// mixed by SplitMix64's finaliser. Part of the byte format.
fn pair(digest: Digest, state: State) -> Digest {
    let step = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(u64::from(state) + 1);
    let mut x = digest.0.wrapping_add(step);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Digest(x ^ (x >> 31))
}

impl Sweep for Body {
    fn units(&self) -> u64 {
        self.array.units()
    }

    fn hand(&self) -> u64 {
        self.array.hand
    }

    fn sweep(&mut self, to: u64) -> u64 {
        self.array.sweep(to)
    }
}

impl Cells for Body {
    type Shape = Shape;
    const KIND: u16 = crate::saved::kinds::DIRECT.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        check_states(shape.states)?;
        let least = if shape.timed { 1 } else { 2 };
        Infeasible::unless_within("counter", shape.counter.into(), least, COUNTER_MAX.into())?;
        let array = Array::new(shape.cells, shape.hashes, shape.counter, shape.timed)?;
        Ok(Body { shape, seed, array, touches_all: false })
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn seed(&self) -> Seed {
        self.seed
    }

    fn memory_bytes(&self) -> u64 {
        self.shape.bytes()
    }

    fn load(&self) -> f64 {
        self.array.fill()
    }

    /// At most the rate of a pair for each state.
    fn rate(&self) -> f64 {
        (self.pair_rate() * f64::from(self.shape.states)).min(1.0)
    }

    fn clear(&mut self) {
        self.array.clear();
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Body { array: self.array.try_clone()?, ..*self })
    }

    fn lookup(&self, digest: Digest) -> Lookup<State> {
        let mut answer = Lookup::Absent;
        for state in 0..self.shape.states as State {
            if self.all_in_use(&self.spots(digest, state)) {
                if answer != Lookup::Absent {
                    return Lookup::DontKnow;
                }
                answer = Lookup::State(state);
            }
        }
        answer
    }

    fn touch(&mut self, digest: Digest) -> Lookup<State> {
        let answer = self.lookup(digest);
        let states = match answer {
            _ if !self.shape.timed => 0..0,
            _ if self.touches_all => {
                for state in 0..self.shape.states as State {
                    self.array.touch(&self.spots(digest, state));
                }
                0..0
            }
            Lookup::State(state) => state..state + 1,
            Lookup::DontKnow => 0..self.shape.states as State,
            Lookup::Absent => 0..0,
        };
        for state in states {
            let spots = self.spots(digest, state);
            if self.all_in_use(&spots) {
                self.array.touch(&spots);
            }
        }
        answer
    }

    fn touch_by_lookup(&mut self) -> Result<(), Infeasible> {
        if !self.shape.timed {
            return Err(Infeasible::conflict("timed", &false, "be true if lookups touch cells"));
        }
        self.touches_all = true;
        Ok(())
    }

    fn insert(&mut self, digest: Digest, state: State) -> Result<(), Refused> {
        known(state, self.shape.states)?;
        let spots = self.spots(digest, state);
        self.raise(&spots)
    }

    fn modify(&mut self, digest: Digest, state: State) -> Result<(), Refused> {
        match self.lookup(digest) {
            Lookup::State(old) if old == state => {
                known(state, self.shape.states)?;
                self.array.touch(&self.array.spots(pair(digest, state)));
                Ok(())
            }
            Lookup::State(old) => self.modify_from(digest, old, state),
            Lookup::Absent => Err(Refused::NotStored),
            Lookup::DontKnow => self.insert(digest, state),
        }
    }

    fn forget(&mut self, digest: Digest) -> Result<(), Refused> {
        match self.lookup(digest) {
            Lookup::State(state) => self.forget_from(digest, state),
            Lookup::Absent => Err(Refused::NotStored),
            Lookup::DontKnow => Err(Refused::Ambiguous),
        }
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        set::same("seed", self.seed == other.seed)?;
        set::same("shape", self.shape == other.shape)?;
        let (ceiling, counts) = (self.ceiling(), self.shape.counter > 1);
        let sum = |cell| self.array.value(cell) + other.array.value(cell);
        if counts && (0..self.shape.cells).any(|cell| sum(cell) > ceiling) {
            return Err(Refused::Overflow { ceiling });
        }
        for cell in 0..self.shape.cells {
            let sum = self.array.value(cell) + other.array.value(cell);
            let touched = self.array.merge_touches(&other.array, cell);
            self.array.write(cell, sum.min(ceiling), touched);
        }
        Ok(())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Shape { cells, hashes, states, counter, timed } = self.shape;
        let (timed, hand) = (u64::from(timed) + u64::from(self.touches_all), self.array.hand);
        let fields = [cells, hashes.into(), states.into(), counter.into(), timed, hand];
        saved::write(Self::KIND, self.seed, &fields, self.array.cells.payload())
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read::<6>(image, Self::KIND, seed)?;
        let [cells, hashes, states, counter, timed, hand] = fields;
        let shape = Shape {
            cells,
            hashes: saved::narrow("hashes", hashes)?,
            states: saved::narrow("states", states)?,
            counter: saved::narrow("counter", counter)?,
            timed: timed == 2 || saved::flag("timed", timed)?,
        };
        Infeasible::unless_within("counter", counter, 1, COUNTER_MAX.into())?;
        saved::justify(payload, Packed::payload_bytes(cells, shape.width())?)?;
        let mut map = Body::new(shape, seed)?;
        map.touches_all = timed == 2;
        map.array.load(hand, payload, |_| true)?;
        Ok(map)
    }
}

impl Direct {
    /// The probability that a pair of a key and a state that is not stored passes, at the present load.
    #[doc(hidden)]
    pub fn pair_rate(&self) -> f64 {
        self.body.pair_rate()
    }

    /// Whether the key may be in this state: one check. `false` is certain for a stored key.
    #[doc(hidden)]
    pub fn is_in<K: Key + ?Sized>(&self, key: &K, state: State) -> bool {
        let digest = key.digest(self.body.seed);
        self.body.all_in_use(&self.body.spots(digest, state)) && !self.exceptions.has(digest)
    }

    /// Changes the state of a key whose present state the caller knows. No other state is looked up. On
    /// `Err`, nothing has changed.
    #[doc(hidden)]
    pub fn modify_from<K: Key + ?Sized>(
        &mut self,
        key: &K,
        from: State,
        to: State,
    ) -> Result<(), Refused> {
        self.body.modify_from(self.stored(key)?, from, to)
    }

    /// Removes a key that is in this state. On `Err`, nothing has changed.
    #[doc(hidden)]
    pub fn forget_from<K: Key + ?Sized>(&mut self, key: &K, state: State) -> Result<(), Refused> {
        self.body.forget_from(self.stored(key)?, state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::{Keys, assert_rate, trials};

    const SHAPE: Shape = Shape { cells: 10_000, hashes: 7, states: 8, counter: 4, timed: false };

    /// Figure 1: the cells of (X, 3) are decremented, those of (X, 5) incremented.
    #[test]
    fn a_state_change_as_in_figure_1() {
        let mut map = Direct::new(Shape { cells: 12, hashes: 3, ..SHAPE }, Seed(1)).unwrap();
        for (cell, value) in (0..).zip([0, 0, 1, 0, 2, 3, 0, 1, 1, 0, 0, 0]) {
            map.body.array.write(cell, value, false);
        }
        map.body.replace(&CellSet::of([2, 4, 7]), &CellSet::of([6, 8, 10])).unwrap();
        let after: Vec<u64> = (0..12).map(|cell| map.body.array.value(cell)).collect();
        assert_eq!(after, [0, 0, 0, 0, 1, 3, 1, 0, 2, 0, 1, 0]);
    }

    /// Figure 2: cells without a flag are cleared, and all flags are cleared.
    #[test]
    fn a_phase_ends_as_in_figure_2() {
        let shape = Shape { cells: 8, hashes: 3, timed: true, ..SHAPE };
        let mut map = Direct::new(shape, Seed(1)).unwrap();
        let before = [(1, 2), (0, 1), (0, 0), (0, 0), (1, 2), (1, 3), (0, 2), (1, 1)];
        for (cell, (flag, value)) in (0..).zip(before) {
            map.body.array.write(cell, value, flag == 1);
        }
        assert_eq!(map.sweep(map.units()), 2);
        let after: Vec<u64> = map.body.array.cells.iter().collect();
        assert_eq!(after, [2, 0, 0, 0, 2, 3, 0, 1].map(|value| value << 1));
    }

    #[test]
    fn pairs_pass_and_members_are_unknown_as_the_formulas_say() {
        let mut map = Direct::new(SHAPE, Seed(2)).unwrap();
        let mut keys = Keys::seeded(3);
        let members: Vec<u64> = keys.by_ref().take(1_000).collect();
        for (i, key) in members.iter().enumerate() {
            map.insert(key, (i % 8) as State).unwrap();
        }
        let p = map.pair_rate();
        let n = trials(p, 0.05);
        let passed = keys.take(n).filter(|key| map.is_in(key, 5)).count();
        assert_rate(passed, n, p);
        for (i, key) in members.iter().enumerate() {
            let answer = map.lookup(key);
            assert!([Lookup::State((i % 8) as State), Lookup::DontKnow].contains(&answer));
        }
    }

    #[test]
    fn a_flow_of_two_states_is_unknown_and_is_not_taken_out() {
        let mut map = Direct::new(SHAPE, Seed(4)).unwrap();
        map.insert("x", 1).unwrap();
        map.modify_from("x", 1, 2).unwrap();
        assert_eq!(map.lookup("x"), Lookup::State(2));
        assert_eq!(map.modify_from("x", 1, 3), Err(Refused::NotStored));
        map.insert("x", 5).unwrap();
        assert_eq!((map.lookup("x"), map.forget("x")), (Lookup::DontKnow, Err(Refused::Ambiguous)));
        map.modify("x", 6).unwrap();
        assert_eq!(map.lookup("x"), Lookup::DontKnow);
        for state in [2, 5, 6] {
            map.forget_from("x", state).unwrap();
        }
        assert_eq!((map.lookup("x"), map.stats().load), (Lookup::Absent, 0.0));
    }

    #[test]
    fn a_full_counter_refuses_and_nothing_has_changed() {
        let mut map = Direct::new(Shape { counter: 2, ..SHAPE }, Seed(5)).unwrap();
        for _ in 0..3 {
            map.insert("x", 1).unwrap();
        }
        map.insert("x", 2).unwrap();
        let before: Vec<u64> = map.body.array.cells.iter().collect();
        assert_eq!(map.insert("x", 1), Err(Refused::Overflow { ceiling: 3 }));
        assert_eq!(map.modify_from("x", 2, 1), Err(Refused::Overflow { ceiling: 3 }));
        assert!(map.body.array.cells.iter().eq(before));
        let double = map.try_clone().unwrap();
        assert!(matches!(map.merge(&double), Err(Refused::Overflow { .. })));
        for bad in [
            Shape { counter: 1, ..SHAPE },
            Shape { counter: 17, ..SHAPE },
            Shape { states: 0, ..SHAPE },
            Shape { hashes: 0, ..SHAPE },
            Shape { cells: 0, ..SHAPE },
        ] {
            assert!(Direct::new(bad, Seed(1)).is_err());
        }
        assert!(Direct::new(Shape { counter: 1, timed: true, ..SHAPE }, Seed(1)).is_ok());
    }
}
