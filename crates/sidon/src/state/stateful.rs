//! States in the cells of a Bloom filter. A cell used by flows of two states becomes unknown.
//!
//! A flow has `k` cells. Each holds its state and the number of flows that use the cell:
//! ```text
//!   X in 3:  2 1 3 . 3 2 . ? 1 . . .      cells 2, 4, 7: cell 7 is shared and unknown
//!   X to 5:  2 1 5 . 5 2 . ? 1 . . .      the other two belong to X alone, and change
//! ```
//! A lookup reads all `k` cells:
//!
//! - If one is empty, or two hold different states, the flow is absent.
//! - If all are unknown, the answer is [`Lookup::DontKnow`].
//! - Otherwise it is the state that the known cells agree on.
//!
//! Where the paper leaves a choice, this map does the following. Coinciding cells of a flow count
//! once. Modifying a flow to its present state changes nothing. Removing a flow decrements the
//! counts, and the last flow empties the cell. An unknown cell stays unknown until it is empty.
//! Bonomi et al., SIGCOMM 2006, section 3.3: the SBF.
//!
//! # Sums
//!
//! With [`Keeping::Summed`] a state is a number of a Sidon set, in which no two pairs have the same
//! sum. A cell holds the sum of the numbers of its flows. The sum of two flows determines their two
//! states, and a lookup takes the state that all its cells have in common. A cell of three or more
//! flows is unknown until at most two are left. This applies the idea of variable increments
//! (Rottenstreich et al., INFOCOM 2012) to states. The cells are wider.

mod shape;

use self::shape::marks;
pub use self::shape::{Keeping, Shape};
use super::{
    Map, State, Stats, Sweep,
    cell_set::{Array, CellSet},
    cells::Cells,
    known,
};
use crate::{
    Digest, Infeasible, Malformed, Refused, Seed, answer::Lookup, packed::Packed, saved, set,
};

/// The states of the flows in a cell, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Empty,
    /// All flows are in this state.
    All(State),
    /// Two flows, in these two states.
    Two(State, State),
    Unknown,
}

/// A map from keys to states, in cells of a state and a counter. See the [module](self).
///
/// ```
/// use sidon::{Lookup, Seed, state::{Stateful, stateful::{Keeping, Shape}}};
///
/// let shape = Shape { cells: 1_000, hashes: 4, states: 6, keeping: Keeping::Counted(4) };
/// let mut flows = Stateful::new(shape, Seed(1))?;
/// flows.insert("flow", 0)?;
/// flows.modify("flow", 5)?;
/// flows.insert("other", 1)?;
/// assert_eq!(flows.lookup("flow"), Lookup::State(5));
/// assert_eq!(flows.lookup("another"), Lookup::Absent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Stateful = Map<Body>;

/// The cells of a [`Stateful`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    seed: Seed,
    array: Array,
    /// The bits of a cell's value, which follow from the shape.
    bits: u32,
    /// With sums: the number of each state, and the two states of each sum.
    marks: Vec<u64>,
    pairs: Vec<Option<(State, State)>>,
    /// Whether a lookup touches every cell that it reads: see `Map::with_touch_by_lookup`.
    touches_all: bool,
}

impl Body {
    fn ceiling(&self) -> u64 {
        match self.shape.keeping {
            Keeping::Timed => u64::MAX,
            Keeping::Counted(counter) | Keeping::Summed(counter) => (1 << counter) - 1,
        }
    }

    /// The value of an unknown cell.
    fn lost(&self) -> u64 {
        match self.shape.keeping {
            Keeping::Counted(_) => 0,
            Keeping::Timed => u64::from(self.shape.states) + 1,
            Keeping::Summed(_) => (1 << self.bits) - 1,
        }
    }

    /// The number of flows and the value of a cell. A timed cell in use counts one flow.
    fn parts(&self, cell: u64) -> (u64, u64) {
        let bits = self.bits;
        match (self.shape.keeping, self.array.value(cell)) {
            (_, 0) => (0, 0),
            (Keeping::Timed, value) => (1, value),
            (_, value) => (value >> bits, value & ((1 << bits) - 1)),
        }
    }

    fn write(&mut self, cell: u64, flows: u64, value: u64, touch: bool) {
        let packed = match (self.shape.keeping, flows) {
            (_, 0) => 0,
            (Keeping::Timed, _) => value,
            (_, flows) => flows << self.bits | value,
        };
        self.array.write(cell, packed, touch);
    }

    fn content(&self, cell: u64) -> Content {
        let (flows, value) = self.parts(cell);
        match self.shape.keeping {
            _ if flows == 0 => Content::Empty,
            _ if value == self.lost() => Content::Unknown,
            Keeping::Counted(_) | Keeping::Timed => Content::All((value - 1) as State),
            Keeping::Summed(_) => match flows {
                1 => match self.marks.binary_search(&value) {
                    Ok(state) => Content::All(state as State),
                    Err(_) => Content::Unknown,
                },
                2 => match self.pairs.get(value as usize).copied().flatten() {
                    Some((a, b)) if a == b => Content::All(a),
                    Some((a, b)) => Content::Two(a, b),
                    None => Content::Unknown,
                },
                _ => Content::Unknown,
            },
        }
    }

    /// The value of a cell with one flow in this state.
    fn value_of(&self, state: State) -> u64 {
        match self.shape.keeping {
            Keeping::Summed(_) => self.marks[usize::from(state)],
            _ => u64::from(state) + 1,
        }
    }

    /// The sum of a cell of `flows` flows after subtracting state `old` and adding `more`. Unknown
    /// if no such flows have that sum: a flow that was never inserted may have been mistaken for a
    /// stored one.
    fn resum(&self, flows: u64, sum: u64, old: State, more: u64) -> u64 {
        let largest = self.marks.last().copied().unwrap_or(0);
        match sum.checked_sub(self.value_of(old)) {
            Some(rest) if rest + more <= flows * largest => rest + more,
            _ => self.lost(),
        }
    }

    fn lookup_at(&self, spots: &CellSet) -> Lookup<State> {
        // The states that all known cells so far have in common, at most two. `None` before the
        // first known cell.
        let mut common: Option<[Option<State>; 2]> = None;
        for &cell in spots.as_slice() {
            let says = match self.content(cell) {
                Content::Empty => return Lookup::Absent,
                Content::Unknown => continue,
                Content::All(state) => [Some(state), None],
                Content::Two(a, b) => [Some(a), Some(b)],
            };
            common = Some(match common {
                None => says,
                Some(both) => both.map(|state| state.filter(|_| says.contains(&state))),
            });
        }
        match common {
            None | Some([Some(_), Some(_)]) => Lookup::DontKnow,
            Some([Some(state), None] | [None, Some(state)]) => Lookup::State(state),
            Some([None, None]) => Lookup::Absent,
        }
    }

    fn insert_at(&mut self, spots: &CellSet, state: State) -> Result<(), Refused> {
        known(state, self.shape.states)?;
        let ceiling = self.ceiling();
        if spots.as_slice().iter().any(|&cell| self.parts(cell).0 == ceiling) {
            return Err(Refused::Overflow { ceiling });
        }
        for &cell in spots.as_slice() {
            let (flows, value) = self.parts(cell);
            let (own, lost) = (self.value_of(state), self.lost());
            let value = match self.shape.keeping {
                _ if flows == 0 => own,
                _ if value == lost => lost,
                Keeping::Summed(_) => value + own,
                Keeping::Counted(_) if value == own => own,
                Keeping::Counted(_) | Keeping::Timed => lost,
            };
            self.write(cell, flows + 1, value, true);
        }
        Ok(())
    }

    fn modify_at(&mut self, spots: &CellSet, state: State) -> Result<(), Refused> {
        known(state, self.shape.states)?;
        let now = self.lookup_at(spots);
        if now == Lookup::Absent {
            return Err(Refused::NotStored);
        }
        for &cell in spots.as_slice() {
            let (flows, value) = self.parts(cell);
            let (own, lost) = (self.value_of(state), self.lost());
            let value = match (self.shape.keeping, now) {
                (Keeping::Summed(_), _) if flows == 1 => own,
                (_, _) if value == lost => lost,
                (Keeping::Summed(_), Lookup::State(old)) => self.resum(flows, value, old, own),
                (Keeping::Summed(_), _) => lost,
                (Keeping::Counted(_), _) if flows > 1 && value != own => lost,
                (Keeping::Counted(_) | Keeping::Timed, _) => own,
            };
            self.write(cell, flows, value, true);
        }
        Ok(())
    }

    fn forget_at(&mut self, spots: &CellSet) -> Result<(), Refused> {
        let now = self.lookup_at(spots);
        if now == Lookup::Absent {
            return Err(Refused::NotStored);
        }
        for &cell in spots.as_slice() {
            let (flows, value) = self.parts(cell);
            let lost = self.lost();
            let (flows, value) = match (self.shape.keeping, now) {
                // The number of flows in an unknown cell is not known, so only ageing clears it.
                (Keeping::Timed, _) if value == lost => (1, lost),
                (_, _) if flows == 1 => (0, 0),
                (Keeping::Summed(_), Lookup::State(old)) if value != lost => {
                    (flows - 1, self.resum(flows - 1, value, old, 0))
                }
                (Keeping::Summed(_), _) => (flows - 1, lost),
                (Keeping::Counted(_) | Keeping::Timed, _) => (flows - 1, value),
            };
            self.write(cell, flows, value, false);
        }
        Ok(())
    }
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
    const KIND: u16 = crate::saved::kinds::STATEFUL.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        let timed = shape.keeping == Keeping::Timed;
        let width = shape.width() - u32::from(timed);
        let array = Array::new(shape.cells, shape.hashes, width, timed)?;
        let (mut own, mut pairs) = (Vec::new(), Vec::new());
        if let Keeping::Summed(_) = shape.keeping {
            own = marks(shape.states);
            pairs = vec![None; 2 * own.last().copied().unwrap_or(0) as usize + 1];
            for (a, one) in (0..).zip(&own) {
                for (b, other) in (0..=a).zip(&own) {
                    pairs[(one + other) as usize] = Some((b, a));
                }
            }
        }
        Ok(Body {
            shape,
            seed,
            array,
            bits: shape.value_bits(),
            marks: own,
            pairs,
            touches_all: false,
        })
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

    fn stats(&self) -> Stats {
        let unknown = |&cell: &u64| self.content(cell) == Content::Unknown;
        let unknown = (0..self.shape.cells).filter(unknown).count() as u64;
        Stats { unknown, ..Stats::default() }
    }

    /// At most the share of keys whose cells are all in use.
    fn rate(&self) -> f64 {
        self.array.fill().powi(self.shape.hashes as i32)
    }

    fn clear(&mut self) {
        self.array.clear();
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        let (marks, pairs) = (self.marks.clone(), self.pairs.clone());
        Ok(Body { array: self.array.try_clone()?, marks, pairs, ..*self })
    }

    fn lookup(&self, digest: Digest) -> Lookup<State> {
        self.lookup_at(&self.array.spots(digest))
    }

    fn touch(&mut self, digest: Digest) -> Lookup<State> {
        let spots = self.array.spots(digest);
        let answer = self.lookup_at(&spots);
        if answer != Lookup::Absent || self.touches_all {
            self.array.touch(&spots);
        }
        answer
    }

    fn touch_by_lookup(&mut self) -> Result<(), Infeasible> {
        if self.shape.keeping != Keeping::Timed {
            let why = "be Timed if lookups touch cells";
            return Err(Infeasible::conflict("keeping", &self.shape.keeping, why));
        }
        self.touches_all = true;
        Ok(())
    }

    fn insert(&mut self, digest: Digest, state: State) -> Result<(), Refused> {
        self.insert_at(&self.array.spots(digest), state)
    }

    fn modify(&mut self, digest: Digest, state: State) -> Result<(), Refused> {
        self.modify_at(&self.array.spots(digest), state)
    }

    fn forget(&mut self, digest: Digest) -> Result<(), Refused> {
        self.forget_at(&self.array.spots(digest))
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        set::same("seed", self.seed == other.seed)?;
        set::same("shape", self.shape == other.shape)?;
        let ceiling = self.ceiling();
        let flows = |cell| self.parts(cell).0.saturating_add(other.parts(cell).0);
        if (0..self.shape.cells).any(|cell| flows(cell) > ceiling) {
            return Err(Refused::Overflow { ceiling });
        }
        let lost = self.lost();
        for cell in 0..self.shape.cells {
            let ((flows, value), (more, its)) = (self.parts(cell), other.parts(cell));
            let touched = self.array.merge_touches(&other.array, cell);
            let value = match self.shape.keeping {
                _ if more == 0 => value,
                _ if flows == 0 => its,
                _ if value == lost || its == lost => lost,
                Keeping::Summed(_) => value + its,
                Keeping::Counted(_) if value == its => value,
                Keeping::Counted(_) | Keeping::Timed => lost,
            };
            self.write(cell, flows + more, value, touched);
        }
        Ok(())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Shape { cells, hashes, states, keeping } = self.shape;
        let (kind, counter) = match keeping {
            Keeping::Counted(counter) => (0, counter),
            Keeping::Timed => (if self.touches_all { 3 } else { 1 }, 0),
            Keeping::Summed(counter) => (2, counter),
        };
        let hand = self.array.hand;
        let fields = [cells, hashes.into(), states.into(), kind, counter.into(), hand];
        saved::write(Self::KIND, self.seed, &fields, self.array.cells.payload())
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read::<6>(image, Self::KIND, seed)?;
        let [cells, hashes, states, kind, counter, hand] = fields;
        let shape = Shape {
            cells,
            hashes: saved::narrow("hashes", hashes)?,
            states: saved::narrow("states", states)?,
            keeping: match (kind, saved::narrow("counter", counter)?) {
                (0, counter) => Keeping::Counted(counter),
                (1 | 3, 0) => Keeping::Timed,
                (2, counter) => Keeping::Summed(counter),
                _ => return Err(Malformed::Field { name: "keeping" }),
            },
        };
        shape.check()?;
        saved::justify(payload, Packed::payload_bytes(cells, shape.width())?)?;
        let mut map = Body::new(shape, seed)?;
        map.touches_all = kind == 3;
        let (bits, lost) = (map.bits, map.lost());
        let largest = map.marks.last().copied().unwrap_or(0);
        map.array.load(hand, payload, |value| match shape.keeping {
            Keeping::Timed => value <= lost,
            Keeping::Counted(_) => {
                value >> bits > 0 && value & ((1 << bits) - 1) <= u64::from(states as u32)
            }
            Keeping::Summed(_) => {
                let (flows, value) = (value >> bits, value & ((1 << bits) - 1));
                flows > 0 && (value == lost || value <= flows * largest)
            }
        })?;
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::{shape::SUMMED_MAX, *};

    const SHAPE: Shape = Shape { cells: 12, hashes: 3, states: 8, keeping: Keeping::Counted(3) };

    fn map(keeping: Keeping) -> Stateful {
        Stateful::new(Shape { keeping, ..SHAPE }, Seed(1)).unwrap()
    }

    fn contents(map: &Stateful) -> Vec<i64> {
        (0..map.body.shape.cells)
            .map(|cell| match map.body.content(cell) {
                Content::Empty => 0,
                Content::All(state) => state.into(),
                Content::Two(a, b) => 100 * i64::from(a) + i64::from(b),
                Content::Unknown => -1,
            })
            .collect()
    }

    /// Figure 3: two of X's cells go from 3 to 5, the third is unknown and stays so.
    #[test]
    fn a_state_change_as_in_figure_3() {
        for keeping in [Keeping::Counted(3), Keeping::Timed] {
            let mut map = map(keeping);
            for (cell, state) in (0..).zip([2, 1, 3, 0, 3, 2, 0, -1, 1, 0, 0, 0]) {
                let (lost, timed) = (map.body.lost(), keeping == Keeping::Timed);
                match state {
                    0 => {}
                    -1 => map.body.write(cell, if timed { 1 } else { 2 }, lost, false),
                    state => map.body.write(cell, 1, map.body.value_of(state as State), false),
                }
            }
            let spots = CellSet::of([2, 4, 7]);
            assert_eq!(map.body.lookup_at(&spots), Lookup::State(3));
            map.body.modify_at(&spots, 5).unwrap();
            assert_eq!(contents(&map), [2, 1, 5, 0, 5, 2, 0, -1, 1, 0, 0, 0]);
        }
    }

    #[test]
    fn unknown_spreads_where_states_meet_and_heals_when_all_have_left() {
        let mut map = map(Keeping::Counted(2));
        let (x, y) = (CellSet::of([0, 1, 2]), CellSet::of([2, 3, 3]));
        map.body.insert_at(&x, 1).unwrap();
        map.body.insert_at(&y, 1).unwrap();
        // First both flows are in the same state, then in different ones.
        assert_eq!(contents(&map)[..4], [1, 1, 1, 1]);
        map.body.modify_at(&y, 1).unwrap();
        assert_eq!(contents(&map)[..4], [1, 1, 1, 1]);
        map.body.modify_at(&y, 4).unwrap();
        assert_eq!(contents(&map)[..4], [1, 1, -1, 4]);
        assert_eq!(
            (map.body.lookup_at(&x), map.body.lookup_at(&y)),
            (Lookup::State(1), Lookup::State(4))
        );
        // Cells with two states, or an empty cell, mean that the flow is absent.
        assert_eq!(map.body.lookup_at(&CellSet::of([0, 3])), Lookup::Absent);
        assert_eq!(map.body.lookup_at(&CellSet::of([0, 9])), Lookup::Absent);
        assert_eq!(map.body.lookup_at(&CellSet::of([2])), Lookup::DontKnow);
        map.body.forget_at(&y).unwrap();
        assert_eq!(contents(&map)[..4], [1, 1, -1, 0]);
        map.body.forget_at(&x).unwrap();
        assert_eq!(contents(&map)[..4], [0, 0, 0, 0]);
        assert_eq!(map.body.forget_at(&x), Err(Refused::NotStored));
        for _ in 0..3 {
            map.body.insert_at(&x, 1).unwrap();
        }
        assert_eq!(map.body.insert_at(&x, 1), Err(Refused::Overflow { ceiling: 3 }));
    }

    #[test]
    fn a_sum_of_two_is_two_states_and_a_sum_of_three_is_unknown_for_as_long() {
        let mut map = map(Keeping::Summed(3));
        let [x, y, z] = [[0, 1], [1, 2], [1, 3]].map(CellSet::of);
        map.body.insert_at(&x, 2).unwrap();
        map.body.insert_at(&y, 7).unwrap();
        assert_eq!(contents(&map)[..4], [2, 207, 7, 0]);
        map.body.insert_at(&z, 5).unwrap();
        assert_eq!(contents(&map)[..4], [2, -1, 7, 5]);
        map.body.modify_at(&y, 6).unwrap();
        map.body.forget_at(&z).unwrap();
        assert_eq!(contents(&map)[..4], [2, 206, 6, 0]);
        // Only the pair of states of this flow is known, so the cell is unknown after it changes.
        let w = CellSet::of([1]);
        assert_eq!(map.body.lookup_at(&w), Lookup::DontKnow);
        map.body.insert_at(&w, 6).unwrap();
        map.body.forget_at(&w).unwrap();
        assert_eq!(contents(&map)[..4], [2, -1, 6, 0]);
        // The cell stays unknown until one flow is left in it and is set to a state.
        map.body.forget_at(&x).unwrap();
        assert_eq!(contents(&map)[..4], [0, -1, 6, 0]);
        map.body.modify_at(&y, 3).unwrap();
        assert_eq!(contents(&map)[..4], [0, 3, 3, 0]);
    }

    #[test]
    fn no_two_pairs_of_marks_have_one_sum() {
        let marks = marks(SUMMED_MAX);
        assert_eq!(marks[..8], [0, 1, 3, 7, 12, 20, 30, 44]);
        let mut sums = std::collections::HashSet::new();
        for (i, a) in marks.iter().enumerate() {
            assert!(marks[..=i].iter().all(|b| sums.insert(a + b)));
        }
    }

    #[test]
    fn widths_and_shapes() {
        let width = |keeping| Shape { keeping, ..SHAPE }.width();
        assert_eq!(width(Keeping::Counted(3)), 7);
        assert_eq!(width(Keeping::Timed), 5);
        assert_eq!(width(Keeping::Summed(3)), 3 + 9);
        for bad in [
            Shape { states: 0, ..SHAPE },
            Shape { hashes: 33, ..SHAPE },
            Shape { keeping: Keeping::Counted(1), ..SHAPE },
            Shape { keeping: Keeping::Summed(9), ..SHAPE },
            Shape { keeping: Keeping::Summed(3), states: 65, ..SHAPE },
        ] {
            assert!(Stateful::new(bad, Seed(1)).is_err(), "{bad:?}");
        }
    }
}
