//! A state for every flow in two to five bytes, or an honest "don't know".
//!
//! Every flow has one bucket in each of a few subtables, and one cell in one of them: what is left
//! of its fingerprint there, its state, and a flag for ageing.
//! ```text
//! digest --fraction--> fingerprint f in 0..buckets * 2^r
//! f --permute(i)--> | bucket | remainder |               for subtable i in 0..d
//!                       |         |
//!       subtable i: [....|X..X.X...|.....]   a cell: | remainder r | value v | flag |
//!                                            value:  a state, or "unknown, n flows"
//! ```
//! A lookup reads `d` buckets; two of 64 bytes are the fast shape. A transition reads and writes
//! them in one pass. Bonomi et al., SIGCOMM 2006, section 3.4, where it is the FCF.
//!
//! # What is certain
//!
//! Bucket and remainder come from one fingerprint by a permutation for each subtable, so a
//! fingerprint has at most one cell ([`DLeft`](crate::member::DLeft) tells why). Two flows get into
//! each other's way if and only if they share the whole fingerprint, `n / (buckets * 2^r)` of them.
//! A newcomer that does is seen, because its cell is there already: the cell becomes *shared*. It
//! then answers [`Lookup::DontKnow`], counts its flows, and is empty when all have left; the last
//! one to be modified has it for itself again. So while the caller inserts flows that are not in,
//! and modifies and forgets flows that are, an answer about a member is its state or `DontKnow`, and
//! never a wrong one.
//!
//! A stranger that shares a member's fingerprint is answered that member's state, and what the
//! caller then does to the stranger is done to the member. No table without the keys can see that:
//! the rate is [`stranger_rate`](Fingerprint::stranger_rate), and is what a plan keeps small.
//!
//! # The paper's own variant
//!
//! [`Placing::Independent`] gives a flow a bucket of its own in each subtable and one fingerprint for
//! all. A fingerprint can then stand in two buckets of a flow, which is answered `DontKnow`; such a
//! flow cannot be forgotten, since nobody knows which cell is its own, and ageing must do it. Cells
//! do not move and tables do not grow. It is here to be compared with.

mod age;
mod image;
mod join;
mod marks;
mod pairs;
mod steps;
mod sweep;
mod tally;

pub use crate::left::{Moved, Moves, Placing};
pub use age::{Fate, Swept, Visited};
pub use join::Met;
pub use marks::GROUP;

use super::{STATES_MOST, State, Sweep, check_states, known};
use crate::{
    Certainty, Digest, Infeasible, Key, Refused, Seed,
    answer::Lookup,
    cells::bucket::Layout,
    hash::spread,
    left::{self, Each, Form, Place, SUBTABLES_MOST, Spot, Table, with_fast_layout},
    member::{
        self,
        batch::{self, Hashes, Unhashed},
    },
    ops::{Merge, Next, StateMap},
    probe::{self, BASE, Isa},
};
use marks::Marks;
use pairs::with_pairs;
use tally::Tally;

/// The highest sampling class, see [`Fingerprint::class_of`].
pub const CLASSES: u32 = 16;

/// Zero bits at the end of a fingerprint or of one of its remainders, of which `bits` are the same in
/// every subtable: each permutation multiplies by an odd number modulo a multiple of `2^bits`.
#[inline(always)]
fn class(number: u64, bits: u32) -> u32 {
    (number | 1 << bits.min(CLASSES)).trailing_zeros()
}

/// The most flows of the stash.
pub const STASH_MOST: u32 = 64;

/// The integers that fix the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many subtables, 2 to 8.
    pub subtables: u32,
    /// How many buckets each subtable has: any number but zero.
    pub buckets: u64,
    /// How many cells a bucket has, 1 to 32; together they are a whole number of bytes.
    pub cells: u32,
    /// The bits of a cell, 8 to 64. Fast are 32 cells of 16, 21 of 24 and 16 of 32, which fill a line,
    /// and 10 of 24 in half a line.
    pub width: u32,
    /// The bits of a remainder, at most what value and flag leave of the cell.
    pub remainder: u32,
    /// How many states there are, 1 to [`STATES_MOST`]: they are `0..states`.
    pub states: u32,
    /// The most flows that a shared cell counts, 2 or more.
    pub shared: u32,
    /// Where buckets and remainder come from.
    pub placing: Placing,
    /// What happens when all cells of a flow are taken.
    pub moves: Moves,
    /// Whether a flow that changes its state is taken out and inserted again, into the emptiest of
    /// its buckets, in place of being changed where it is.
    pub reinsert: bool,
    /// How many flows beyond the table's cells are kept in a list, up to [`STASH_MOST`].
    pub stash: u32,
    /// How many times the table may still be doubled.
    pub growths: u32,
    /// Whether a table that would refuse a flow as [`Refused::Full`] doubles itself instead, while
    /// `growths` lasts and at least an eighth of its cells is in use.
    pub grows: bool,
}

impl Shape {
    /// The cells of the whole table, without the stash.
    pub fn all_cells(&self) -> u64 {
        self.form().all_cells()
    }

    /// The bytes of the whole table, with the stash, or `u64::MAX` if there are more.
    pub fn bytes(&self) -> u64 {
        self.form().bytes().saturating_add(STASH_BYTES * u64::from(self.stash))
    }

    /// How many fingerprints there are: `buckets * 2^remainder`, which growing does not change.
    pub fn fingerprints(&self) -> u64 {
        self.buckets << self.remainder
    }

    /// The bits of a cell that are not remainder: the value and the flag.
    pub fn low_bits(&self) -> u32 {
        low_bits(self.states, self.shared)
    }

    pub(crate) fn check(&self) -> Result<(), Infeasible> {
        let within = Infeasible::unless_within;
        within("subtables", self.subtables.into(), 2, SUBTABLES_MOST.into())?;
        within("cells", self.cells.into(), 1, 32)?;
        within("width", self.width.into(), 8, 64)?;
        within("bits beyond whole bytes", (self.cells * self.width % 8).into(), 0, 0)?;
        check_states(self.states)?;
        within("shared", self.shared.into(), 2, STATES_MOST.into())?;
        let low = self.low_bits();
        within("remainder", self.remainder.into(), 1, self.width.saturating_sub(low).into())?;
        within("stash", self.stash.into(), 0, STASH_MOST.into())?;
        within("growths", self.growths.into(), 0, (self.remainder - 1).into())?;
        if self.placing == Placing::Independent {
            within("growths of independent buckets", self.growths.into(), 0, 0)?;
            within("stash of independent buckets", self.stash.into(), 0, 0)?;
            within("moves of independent buckets", self.moves.to_fields()[0], 0, 0)?;
        }
        self.form().check()
    }

    fn form(&self) -> Form {
        let Shape { subtables, buckets, cells, width, remainder, moves, growths, .. } = *self;
        let (placing, low) = (self.placing, self.low_bits());
        // A cell that moves may pass the clock hand of the clock: it counts as touched.
        let lost_by_moving = UNTOUCHED;
        Form {
            subtables,
            buckets,
            cells,
            width,
            remainder,
            low,
            moves,
            growths,
            placing,
            lost_by_moving,
        }
    }
}

/// The bits of value and flag: a value for each state and each number of flows that share a cell,
/// and one more, which no cell has, so that none looks empty.
pub(crate) fn low_bits(states: u32, shared: u32) -> u32 {
    let values = u64::from(states) + u64::from(shared) + 1;
    values.next_power_of_two().ilog2() + 1
}

/// The lowest bit of a cell's low bits: set if the cell was not touched in this phase.
const UNTOUCHED: u64 = 1;
/// Bytes of a stashed flow.
const STASH_BYTES: u64 = 16;

/// A map from flows to states. See the [module](self).
#[derive(Debug)]
pub struct Fingerprint {
    shape: Shape,
    seed: Seed,
    /// The low bits of a cell are its value, then [`UNTOUCHED`].
    table: Table,
    /// Fingerprints and low bits of the flows that found no cell.
    stash: Vec<(u64, u64)>,
    /// How many flows there are, and how many cells are shared.
    tally: Tally,
    marks: Marks,
    /// The position of the clock hand: a bucket, counted through all subtables.
    hand: u64,
}

impl Fingerprint {
    /// An empty map.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        let stash = Vec::with_capacity(shape.stash as usize);
        Ok(Fingerprint {
            shape,
            seed,
            table: Table::new(shape.form())?,
            stash,
            tally: Tally::new(&shape),
            marks: Marks::default(),
            hand: 0,
        })
    }

    /// Takes every flow out. The table keeps the size it has grown to.
    pub fn clear(&mut self) {
        self.table.clear();
        self.stash.clear();
        self.tally = Tally::new(&self.shape);
        self.marks.clear();
        self.hand = 0;
    }

    /// The integers that fix the memory, as they are now.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many flows are stored, those of shared cells counted each.
    pub fn flows(&self) -> u64 {
        self.tally.flows
    }

    /// How many cells are shared, and so answer `DontKnow`.
    pub fn shared(&self) -> u64 {
        self.tally.shared
    }

    /// How many flows are in the stash.
    pub fn stashed(&self) -> u64 {
        self.stash.len() as u64
    }

    /// The share of cells in use.
    pub fn load(&self) -> f64 {
        self.table.load()
    }

    /// How often a flow found all its cells taken, and what moved to make room.
    pub fn moved(&self) -> Moved {
        self.table.moved
    }

    /// How many buckets of each subtable hold exactly 0, 1, .. cells in use.
    pub fn loads(&self) -> Vec<Vec<u64>> {
        self.table.loads()
    }

    /// The share of strangers that are not answered [`Lookup::Absent`]: fingerprints in use, of
    /// those there are. With independent buckets, the chance that a cell of theirs matches.
    pub fn stranger_rate(&self) -> f64 {
        let stored = self.table.occupied as f64 + self.stash.len() as f64;
        match self.shape.placing {
            Placing::Permuted => stored / self.shape.fingerprints() as f64,
            Placing::Independent => {
                let met = stored / self.shape.buckets as f64;
                let differ = -0.5f64.powi(self.shape.remainder as i32);
                -(met * differ.ln_1p()).exp_m1()
            }
        }
    }

    /// The probability that `lookup` does not answer [`Lookup::Absent`] for a flow that was never
    /// inserted.
    pub fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.stranger_rate())
    }

    /// The sampling class of a flow: the number of zero bits at the end of its fingerprint, at most
    /// [`CLASSES`] and at most the bits of a remainder. One flow in `2^k` is of class `k` or higher. A cell shows its class, so a flow
    /// that expires still knows the share that it was sampled by ([`Visited::class`]). With
    /// independent placing, a cell and its flow may differ in class.
    #[inline(always)]
    pub fn class_of(&self, digest: Digest) -> u32 {
        self.classes()(digest)
    }

    /// [`class_of`](Self::class_of) as a function that does not borrow the map.
    pub fn classes(&self) -> impl Fn(Digest) -> u32 + use<> {
        let (fingerprints, bits) = (self.shape.fingerprints(), self.shape.remainder);
        move |digest: Digest| class(spread::fraction(digest.0, fingerprints), bits)
    }

    fn class_at(&self, fingerprint: u64) -> u32 {
        class(fingerprint, self.shape.remainder)
    }

    /// The fingerprint of a flow: flows that share it are one to a map of permuted placing, others
    /// never.
    pub fn fingerprint<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.table.fingerprint_of(key.digest(self.seed))
    }

    /// How many cells are in each state, and at the end how many are shared. Reads all of the table.
    pub fn census(&self) -> Vec<u64> {
        self.census_from(0)
    }

    /// As [`census`](Self::census), of the flows of this sampling class or a higher one.
    pub fn census_from(&self, least: u32) -> Vec<u64> {
        let mut census = vec![0; self.shape.states as usize + 1];
        for (_, answer) in self.cells().filter(|&(class, _)| class >= least) {
            let state = match answer {
                Lookup::State(state) => state.into(),
                _ => self.shape.states as usize,
            };
            census[state] += 1;
        }
        census
    }

    /// The sampling class and the answer of every cell in use, in the order of the table.
    pub fn cells(&self) -> impl Iterator<Item = (u32, Lookup<State>)> + '_ {
        let cells = self.table.cells().chain(self.stash.iter().copied());
        cells.map(|(fingerprint, low)| (self.class_at(fingerprint), self.tally.read(low)))
    }

    /// A copy in memory of its own.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        let (table, stash, marks) =
            (self.table.try_clone()?, self.stash.clone(), self.marks.clone());
        Ok(Fingerprint { table, stash, marks, ..*self })
    }

    /// Doubles the buckets. No flow is lost, and no answer changes. The clock hand moves along with the
    /// buckets.
    ///
    /// `Infeasible`, with nothing changed, if the shape allows no more growth or there is no memory.
    pub fn grow(&mut self) -> Result<(), Infeasible> {
        self.reshape(self.table.form.grown()?)
    }

    /// Halves the buckets, the opposite of [`grow`](Self::grow).
    ///
    /// `Infeasible`, with nothing changed, if their number is odd, if a cell has no room for a
    /// longer remainder, or if two buckets do not fit into one.
    pub fn shrink(&mut self) -> Result<(), Infeasible> {
        self.reshape(self.table.form.shrunk()?)
    }

    fn reshape(&mut self, form: Form) -> Result<(), Infeasible> {
        let Form { buckets, remainder, growths, .. } = form;
        let shape = Shape { buckets, remainder, growths, ..self.shape };
        shape.check()?;
        if form.buckets > self.shape.buckets {
            self.table.reshape(form)?;
            self.hand *= 2;
        } else {
            self.shrink_table(form)?;
        }
        self.shape = shape;
        self.set_timers(self.marks.timers_of().to_vec());
        Ok(())
    }

    /// Writes the answer for each flow to the same place of `answers`. Nothing is touched.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn lookup_batch<K: Key>(&self, keys: &[K], answers: &mut [Lookup<State>]) {
        assert_eq!(keys.len(), answers.len(), "one answer a key");
        self.lookup_keys(&Unhashed { seed: self.seed, keys }, answers);
    }

    /// As [`lookup_batch`](Self::lookup_batch): compiled once, here.
    fn lookup_keys(&self, keys: &dyn Hashes, answers: &mut [Lookup<State>]) {
        with_pairs!(
            self.shape,
            |layout, N| {
                probe::dispatch(pairs::Ask::<_, N> { layout, map: self, keys, answers });
            },
            batch::runs(keys, |first, digests| {
                let answers = &mut answers[first..first + digests.len()];
                left::each_key_of_any(self.seed, digests, Ask { map: self, answers });
            })
        );
    }

    /// A transition of each flow, in order. `follow` chooses the next states and learns, after each
    /// write, whether the map accepted it.
    pub fn follow_batch<K: Key>(&mut self, keys: &[K], follow: &mut impl Follow) {
        let keys: &dyn Hashes = &Unhashed { seed: self.seed, keys };
        with_pairs!(
            self.shape,
            |layout, N| {
                let map = self;
                probe::dispatch(pairs::Change::<_, _, N> { layout, map, keys, follow });
            },
            batch::runs(keys, |first, digests| {
                let change = Change { map: self, first, follow: &mut *follow };
                left::each_key_of_any(change.map.seed, digests, change);
            })
        );
    }

    /// A [`transition`](StateMap::transition) of each flow, in order: `change` gets the index of a
    /// key and its state now. `refused` is called with the index of each refused flow and
    /// the reason; the others are done.
    pub fn transition_batch<K: Key>(
        &mut self,
        keys: &[K],
        change: impl FnMut(usize, Lookup<State>) -> Next<State>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        self.follow_batch(keys, &mut Refusing { change, refused });
    }

    /// Does the same to each flow whatever its state: [`insert`](StateMap::insert),
    /// [`modify`](StateMap::modify), [`set`](StateMap::set) or [`forget`](StateMap::forget), as
    /// `next` says for its index.
    pub fn apply_batch<K: Key>(
        &mut self,
        keys: &[K],
        next: &mut dyn FnMut(usize) -> Next<State>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        self.transition_batch(keys, |key, _| next(key), refused);
    }

    /// A transition of one flow, in one pass: see [`StateMap::transition`].
    pub fn transition_with<K: Key + ?Sized>(
        &mut self,
        key: &K,
        change: impl FnOnce(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        let mut change = Some(change);
        self.transition_of(key.digest(self.seed), &mut |now| match change.take() {
            Some(change) => change(now),
            None => Next::Stay,
        })
    }

    /// Refuses a map whose cells mean something else.
    fn same(&self, other: &Self) -> Result<(), Refused> {
        let (own, its) = (self.shape, other.shape);
        member::same("seed", self.seed == other.seed)?;
        member::same("subtables", own.subtables == its.subtables)?;
        member::same("fingerprints", own.fingerprints() == its.fingerprints())?;
        member::same("states", own.states == its.states)?;
        let permuted = |shape: Shape| shape.placing == Placing::Permuted;
        member::same("placing", permuted(own) && permuted(its))
    }

    fn lookup_digest(&self, digest: Digest) -> Lookup<State> {
        with_fast_layout!(self.shape, |layout, D| {
            self.lookup_at(BASE, layout, &self.table.places::<D>(digest))
        })
    }

    /// One function for all closures: single operations are compiled once.
    fn transition_of(
        &mut self,
        digest: Digest,
        change: &mut dyn FnMut(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        with_fast_layout!(self.shape, |layout, D| {
            let places = self.table.places::<D>(digest);
            self.transition_at(BASE, layout, &places, change)
        })
    }
}

impl<K: Key + ?Sized> StateMap<K> for Fingerprint {
    type State = State;

    #[inline]
    fn lookup(&self, key: &K) -> Lookup<State> {
        self.lookup_digest(key.digest(self.seed))
    }

    fn touch(&mut self, key: &K) -> Lookup<State> {
        // A flow that stays is refused nothing.
        self.transition_with(key, |_| Next::Stay).unwrap_or(Lookup::DontKnow)
    }

    /// A fingerprint that has a cell already is another flow's, and its cell becomes shared.
    /// [`Refused::Overflow`] if that counts as many flows as it can.
    fn insert(&mut self, key: &K, state: State) -> Result<(), Refused> {
        self.transition_with(key, |_| Next::Insert(state)).map(|_| ())
    }

    /// A shared cell stays so, unless only one of its flows is left: that is this one.
    fn modify(&mut self, key: &K, state: State) -> Result<(), Refused> {
        self.transition_with(key, |_| Next::Modify(state)).map(|_| ())
    }

    fn set(&mut self, key: &K, state: State) -> Result<(), Refused> {
        self.transition_with(key, |_| Next::Set(state)).map(|_| ())
    }

    /// A shared cell counts one flow less, and is empty when all have left.
    fn forget(&mut self, key: &K) -> Result<(), Refused> {
        self.transition_with(key, |_| Next::Forget).map(|_| ())
    }

    fn transition(
        &mut self,
        key: &K,
        change: &mut dyn FnMut(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        self.transition_of(key.digest(self.seed), change)
    }
}

impl Merge for Fingerprint {
    /// Takes over every flow of the other, which must be flows that are not in this one: a
    /// fingerprint that is in both becomes a shared cell. The two may have grown apart; all else must
    /// be equal, and placing permuted. For ageing, flows that were taken over count as touched.
    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        self.same(other)?;
        // What is refused half-way is undone by going back to a copy.
        let Ok(before) = self.try_clone() else {
            return Err(self.full());
        };
        for (fingerprint, low) in other.table.cells().chain(other.stash.iter().copied()) {
            if let Err(why) = self.join(fingerprint, low) {
                *self = before;
                return Err(why);
            }
        }
        Ok(())
    }
}

impl Sweep for Fingerprint {
    /// The buckets of all subtables. The clock hand visits the stash together with the last bucket.
    fn units(&self) -> u64 {
        u64::from(self.shape.subtables) * self.shape.buckets
    }

    fn hand(&self) -> u64 {
        self.hand
    }

    fn sweep(&mut self, to: u64) -> u64 {
        self.sweep_to(to)
    }
}

/// Asks, key by key.
struct Ask<'a> {
    map: &'a Fingerprint,
    answers: &'a mut [Lookup<State>],
}

impl Each for Ask<'_> {
    #[inline(always)]
    fn table(&self) -> &Table {
        &self.map.table
    }

    #[inline(always)]
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        key: usize,
        places: &[Place; D],
    ) {
        self.answers[key] = self.map.lookup_at(isa, layout, places);
    }
}

/// Changes states, key by key.
struct Change<'a, F> {
    map: &'a mut Fingerprint,
    /// The index of the first key.
    first: usize,
    follow: &'a mut F,
}

impl<F: Follow> Each for Change<'_, F> {
    #[inline(always)]
    fn table(&self) -> &Table {
        &self.map.table
    }

    #[inline(always)]
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        key: usize,
        places: &[Place; D],
    ) {
        self.map.follow_at(isa, layout, places, self.first + key, None, self.follow);
    }
}

/// The two sides of a transition: the choice before the write and the result after it.
pub trait Follow {
    /// The next state of the flow of key `key`, which is in state `now`.
    fn next(&mut self, key: usize, now: Lookup<State>) -> Next<State>;

    /// The map went from `before` to `next`, or refused to and changed nothing.
    fn done(
        &mut self,
        key: usize,
        before: Lookup<State>,
        next: Next<State>,
        result: Result<(), Refused>,
    );
}

/// A closure that chooses and one that hears of refusals.
struct Refusing<'a, F> {
    change: F,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl<F: FnMut(usize, Lookup<State>) -> Next<State>> Follow for Refusing<'_, F> {
    #[inline(always)]
    fn next(&mut self, key: usize, now: Lookup<State>) -> Next<State> {
        (self.change)(key, now)
    }

    #[inline(always)]
    fn done(&mut self, key: usize, _: Lookup<State>, _: Next<State>, result: Result<(), Refused>) {
        if let Err(why) = result {
            (self.refused)(key, why);
        }
    }
}

#[cfg(test)]
mod tests;
