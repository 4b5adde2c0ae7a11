//! A map (a maplet) from flows to states in two to five bytes per flow, which may answer "don't
//! know".
//!
//! Every flow has one bucket in each of a few subtables, and one cell in one of these buckets. The
//! cell holds the remainder of its fingerprint, its state, and a flag for ageing.
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
//! # Certainty
//!
//! Bucket and remainder come from one fingerprint by a permutation for each subtable, so a
//! fingerprint has at most one cell (see [`DLeft`](crate::set::DLeft)). Two flows interfere only
//! if their whole fingerprints are equal: `n / (buckets * 2^r)` of the flows. A new flow with a
//! stored fingerprint is detected, and the cell becomes *shared*. A shared cell answers
//! [`Lookup::DontKnow`] and counts its flows. It is emptied when all have been removed. If one flow
//! is left, modifying that flow gives the cell a state again.
//!
//! A well-behaved caller inserts flows that are not stored, and modifies and forgets flows that
//! are. Then an answer about a stored flow is its state or `DontKnow`, never a wrong state.
//!
//! A flow that was never inserted may share the fingerprint of a stored one. A lookup then answers
//! the state of the stored flow, and a write changes that flow. No table without the keys can
//! detect this. A plan keeps its rate small: [`certainty`](Map::certainty).
//!
//! # The paper's variant
//!
//! [`Placing::Independent`] gives a flow independent buckets and one remainder for all of them. Two
//! buckets of a flow may then hold its remainder, and the answer is `DontKnow`. Such a flow cannot
//! be forgotten, because the map cannot tell which cell belongs to it; only ageing removes it.
//! Cells do not move and tables do not grow. The variant exists for comparison.
//!
//! # Flows that cannot be distinguished
//!
//! [`Shape::listed`] gives room to flows that would share a cell. A new flow whose fingerprint is stored
//! already enters a list by its 64-bit digest. Both flows then have a state: the first in the cell, the
//! other in the list. While the list is full, cells become shared.
//!
//! ```
//! use sidon::{Lookup, Seed, plan::{Prefer, States, fingerprint}, state::Fingerprint};
//!
//! // One flow in 300 shares its fingerprint with another.
//! let mut shape = fingerprint::shape(States { flows: 5_000, states: 4, error: 3e-3 }, Prefer::Memory)?;
//! shape.listed = 64;
//! let mut flows = Fingerprint::new(shape, Seed(1))?;
//! for flow in 0..5_000u32 {
//!     flows.insert(&flow, (flow % 4) as u16)?;
//! }
//! assert!((0..5_000u32).all(|flow| flows.lookup(&flow) == Lookup::State((flow % 4) as u16)));
//! assert!(flows.stats().listed > 0 && flows.stats().unknown == 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A transition in a map with a list first looks the flow up, and then writes. Batches prefetch the buckets
//! of a chunk of flows, and then act on one flow at a time.

mod age;
mod enter;
mod independent;
mod listed;
mod marks;
mod merge;
mod monitor;
mod operations;
mod saved;
mod shape;
mod sweep;
mod transition;
mod value;

pub use crate::dleft_table::{Moves, Placing};
#[doc(hidden)]
pub use age::{Fate, Swept, Visited};
pub(crate) use listed::LISTED_MAX;
#[doc(hidden)]
pub use marks::GROUP;
#[doc(hidden)]
pub use merge::Met;
#[doc(hidden)]
pub use operations::Follow;
pub use shape::Shape;
pub(crate) use shape::low_bits;

use super::{Map, Next, State, Stats, Sweep, cells::Cells};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    answer::Lookup,
    batch::{Keys, hasher},
    dleft_table::{Form, Moved, Table},
    key::spread,
    set,
};
use listed::Listed;
use marks::Marks;
use operations::Refusing;
use value::Tally;

/// The highest sampling class, see `Fingerprint::classes`.
#[doc(hidden)]
pub const CLASSES: u32 = 16;

/// The number of zero bits at the end of a fingerprint or of one of its remainders, at most `bits`.
/// It is the same in every subtable, because each permutation multiplies by an odd number modulo a
/// multiple of `2^bits`.
#[inline(always)]
fn class(number: u64, bits: u32) -> u32 {
    (number | 1 << bits.min(CLASSES)).trailing_zeros()
}

/// The lowest bit of a cell's low bits: set if the cell was not touched since the last visit of the
/// clock hand.
const UNTOUCHED: u64 = 1;

/// A map from keys to states, in a d-left table of fingerprints. See the [module](self).
///
/// ```
/// use sidon::{Lookup, Seed, plan::{Prefer, States, fingerprint}, state::Fingerprint};
///
/// let shape = fingerprint::shape(States { flows: 1_000, states: 4, error: 1e-6 }, Prefer::Speed)?;
/// let mut flows = Fingerprint::new(shape, Seed(1))?;
/// flows.insert("flow", 0)?;
/// flows.modify("flow", 3)?;
/// assert_eq!((flows.lookup("flow"), flows.len()), (Lookup::State(3), 1));
/// flows.forget("flow")?;
/// assert_eq!(flows.lookup("flow"), Lookup::Absent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Fingerprint = Map<Body>;

/// The cells of a [`Fingerprint`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    seed: Seed,
    /// The low bits of a cell are its value, then [`UNTOUCHED`].
    table: Table,
    /// Fingerprints and low bits of the flows without a cell.
    stash: Vec<(u64, u64)>,
    /// Digests and low bits of flows that cells cannot distinguish from others.
    listed: Listed,
    /// The number of flows and of shared cells.
    tally: Tally,
    marks: Marks,
    /// The position of the clock hand: a bucket, numbered through all subtables.
    hand: u64,
}

impl Body {
    fn class_at(&self, fingerprint: u64) -> u32 {
        class(fingerprint, self.shape.remainder)
    }

    fn grow(&mut self) -> Result<(), Infeasible> {
        self.reshape(self.table.form.grown()?)
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

    /// Refuses a map whose cells are not compatible.
    fn same(&self, other: &Self) -> Result<(), Refused> {
        let (own, its) = (self.shape, other.shape);
        set::same("seed", self.seed == other.seed)?;
        set::same("subtables", own.subtables == its.subtables)?;
        set::same("fingerprints", own.fingerprints() == its.fingerprints())?;
        set::same("states", own.states == its.states)?;
        let permuted = |shape: Shape| shape.placing == Placing::Permuted;
        set::same("placing", permuted(own) && permuted(its))
    }
}

impl Sweep for Body {
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

impl Cells for Body {
    type Shape = Shape;
    const KIND: u16 = crate::saved::kinds::FINGERPRINT.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        let stash = Vec::with_capacity(shape.stash as usize);
        Ok(Body {
            shape,
            seed,
            table: Table::new(shape.form())?,
            stash,
            listed: Listed::new(shape.listed)?,
            tally: Tally::new(&shape),
            marks: Marks::default(),
            hand: 0,
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

    fn is_empty(&self) -> bool {
        self.tally.flows == 0
    }

    fn load(&self) -> f64 {
        self.table.load()
    }

    fn stats(&self) -> Stats {
        let stashed = self.stash.len() as u64;
        let (unknown, listed) = (self.tally.shared, self.listed.len());
        self.table.moved.stats(Stats { unknown, stashed, listed, ..Stats::default() })
    }

    /// The share of fingerprints that are in use. With independent buckets, the chance that a cell matches.
    fn rate(&self) -> f64 {
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

    fn clear(&mut self) {
        self.table.clear();
        self.stash.clear();
        self.listed.clear();
        self.tally = Tally::new(&self.shape);
        self.marks.clear();
        self.hand = 0;
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        let (table, stash, marks) =
            (self.table.try_clone()?, self.stash.clone(), self.marks.clone());
        Ok(Body { table, stash, marks, listed: self.listed.clone(), ..*self })
    }

    #[inline]
    fn lookup(&self, digest: Digest) -> Lookup<State> {
        self.lookup_digest(digest)
    }

    fn lookup_batch<K: Key>(&self, keys: &[K], answers: &mut [Lookup<State>]) {
        self.lookup_keys(Keys::Any(keys.len(), &hasher(self.seed, keys)), answers);
    }

    fn touch(&mut self, digest: Digest) -> Lookup<State> {
        // `Stay` is never refused.
        self.transition_of(digest, &mut |_| Next::Stay).unwrap_or(Lookup::DontKnow)
    }

    /// A flow that looks absent has no cell to touch.
    fn touch_by_lookup(&mut self) -> Result<(), Infeasible> {
        Ok(())
    }

    /// A fingerprint that already has a cell belongs to another flow, and the cell becomes shared.
    /// [`Refused::Overflow`] if its count of flows is at its ceiling.
    fn insert(&mut self, digest: Digest, state: State) -> Result<(), Refused> {
        self.transition_of(digest, &mut |_| Next::Insert(state)).map(|_| ())
    }

    /// A shared cell stays shared, unless only this flow is left in it.
    fn modify(&mut self, digest: Digest, state: State) -> Result<(), Refused> {
        self.transition_of(digest, &mut |_| Next::Modify(state)).map(|_| ())
    }

    /// A shared cell counts one flow less, and is emptied when all have been removed.
    fn forget(&mut self, digest: Digest) -> Result<(), Refused> {
        self.transition_of(digest, &mut |_| Next::Forget).map(|_| ())
    }

    fn transition(
        &mut self,
        digest: Digest,
        change: &mut dyn FnMut(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        self.transition_of(digest, change)
    }

    fn transition_batch<K: Key>(
        &mut self,
        keys: &[K],
        change: impl FnMut(usize, Lookup<State>) -> Next<State>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let hasher = hasher(self.seed, keys);
        self.follow_keys(Keys::Any(keys.len(), &hasher), &mut Refusing { change, refused });
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        self.same(other)?;
        // A refusal in the middle is undone by restoring this copy.
        let Ok(before) = self.try_clone() else {
            return Err(self.full());
        };
        let listed = self.before_merge(other);
        let mut cells = other.table.cells().chain(other.stash.iter().copied());
        let joined = cells.try_for_each(|(fingerprint, low)| self.join(fingerprint, low));
        let joined =
            joined.and_then(|()| listed.into_iter().try_for_each(|it| self.join_listed(it)));
        if joined.is_err() {
            *self = before;
        }
        joined
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.write_image()
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Body::read_image(image, seed)
    }
}

impl Fingerprint {
    /// The number of flows stored, including every flow of a shared cell.
    pub fn len(&self) -> u64 {
        self.body.tally.flows
    }

    /// The number of cells in each state, and at the end the number of shared cells. Reads all of
    /// the table.
    pub fn census(&self) -> Vec<u64> {
        self.census_from(0)
    }

    /// Doubles the buckets. No flow is lost, and no answer changes. The clock hand moves along with
    /// the buckets.
    ///
    /// `Infeasible`, with nothing changed, if `growths` is 0 or memory cannot be allocated.
    pub fn grow(&mut self) -> Result<(), Infeasible> {
        self.body.grow()
    }

    /// Halves the buckets, the opposite of [`grow`](Self::grow).
    ///
    /// `Infeasible`, with nothing changed, if their number is odd, if a cell has no room for a
    /// longer remainder, or if two buckets do not fit into one.
    pub fn shrink(&mut self) -> Result<(), Infeasible> {
        self.body.reshape(self.body.table.form.shrunk()?)
    }
}

#[cfg(test)]
mod tests;
