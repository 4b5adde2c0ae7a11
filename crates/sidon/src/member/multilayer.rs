//! Narrow counters, and a second layer for the few that need more: deletes in about twenty-five
//! bits per key.
//!
//! Most counters are small. The first layer gives each a few bits. A counter that reaches the
//! ceiling continues in the second layer, a small exact map by its position.
//! ```text
//! first    | . 5 . 15 . . 9 . 15 . |      4 bits each; 15 means: continues below
//! second           |          |
//!                (3: +7)    (8: +0)      position, and the part above 15
//! ```
//! A lookup reads the second layer only for counters at the ceiling, a few in a hundred. With
//! increments of one this is the multi-layer hashed counting filter (ML-HCBF), with several it is
//! ML-VI-HCBF: Rottenstreich et al., INFOCOM 2012, section V, after Ficara et al., 2010. The papers
//! find the position in the next layer by perfect hashing, which a changing table cannot keep, and
//! do not count its memory. Here a cell of the second layer identifies its counter in full, by its
//! bucket and a tag of a few bits. [`Shape::bytes`] includes all of it.
//!
//! When a key is removed that was never inserted, both layers together keep the same facts as
//! [`Variable`](super::Variable). The second layer has an entry for each counter at the first
//! ceiling, except for pinned ones, and no other entry.

use super::{
    code::{Code, Sums},
    coded::{self, Act, Coded, Store},
    counting::Overflow,
    increments::Increments,
    mapping::Spread,
    set::{Filter, Removes, Set, Stats},
    spill::Spill,
    table::{ANY, Table, Width},
};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    batch::{AnyKeys, Keys, hasher},
    bytes,
    cells::Packed,
};

/// The integers that fix a filter of two layers.
///
/// ```
/// use sidon::{Refused, Seed};
/// use sidon::member::{Increments, Multilayer, Overflow, Spread, multilayer::Shape};
///
/// let shape = Shape {
///     counters: 1_000,
///     hashes: 4,
///     first: 2,
///     rest: 3,
///     buckets: 16,
///     increments: Increments::of([1]),
///     overflow: Overflow::Refuse,
///     spread: Spread::Anywhere,
/// };
/// // A counter reaches 3 in the first layer and 7 more in the second.
/// let mut seen = Multilayer::from_keys(shape, Seed(1), ["key"; 10])?;
/// assert_eq!(seen.insert("key"), Err(Refused::Overflow { ceiling: 10 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of counters of the first layer: at least 1.
    pub counters: u64,
    /// The number of counters of a key: 1 to 32.
    pub hashes: u32,
    /// The bits of a counter of the first layer, 1 to 8.
    pub first: u32,
    /// The bits of the part that a cell of the second layer adds, 1 to 16.
    pub rest: u32,
    /// Buckets of eight cells in each half of the second layer.
    pub buckets: u64,
    /// The values that a key may add.
    pub increments: Increments,
    /// The action when an insertion finds no room in the second layer, or would exceed the ceiling
    /// there. A pinned counter is at the first ceiling and has no entry in the second layer.
    pub overflow: Overflow,
    /// The positions of a key's counters.
    pub spread: Spread,
}

impl Shape {
    /// The bytes of both layers, or `u64::MAX` if there are more or no such table exists.
    pub fn bytes(&self) -> u64 {
        let first = Packed::bytes_of(self.counters, self.first);
        let second = Spill::bytes(self.counters, self.buckets, self.rest);
        first.saturating_add(second.unwrap_or(u64::MAX))
    }

    /// The largest value of a counter.
    pub(crate) fn ceiling(&self) -> u64 {
        let most = |bits: u32| (1u64 << bits.min(16)) - 1;
        most(self.first) + most(self.rest)
    }

    pub(crate) fn code(self) -> Result<Sums, Infeasible> {
        Infeasible::unless_within("first", self.first.into(), 1, 8)?;
        Infeasible::unless_within("rest", self.rest.into(), 1, 16)?;
        Sums::new(self.increments, self.ceiling(), self.overflow)
    }
}

/// A multiset in counters of two layers. See the [module](self).
///
/// ```
/// use sidon::{Seed, member::{Increments, Multilayer, Overflow, Spread, multilayer::Shape}};
///
/// let shape = Shape {
///     counters: 1_000, hashes: 4, first: 2, rest: 3, buckets: 16,
///     increments: Increments::of([1]), overflow: Overflow::Refuse, spread: Spread::Anywhere,
/// };
/// let mut seen = Multilayer::from_keys(shape, Seed(1), ["a", "a"])?;
/// assert_eq!(seen.stats().overflowed, 0);
/// // At 3, each of the four counters gets a cell of the second layer.
/// seen.insert("a")?;
/// assert_eq!((seen.len(), seen.stats().overflowed), (3, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Multilayer = Set<Body>;

/// The cells of a [`Multilayer`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    filter: Coded<Sums, Layers>,
}

/// Both layers.
#[derive(Debug)]
struct Layers {
    first: Table,
    second: Spill,
    /// The ceiling of the first layer, and that of both together.
    top: u64,
    ceiling: u64,
    pins: bool,
}

impl Layers {
    fn new(shape: Shape) -> Result<Self, Infeasible> {
        let first =
            Table::zeroed(("counters", shape.counters), shape.first, shape.hashes, shape.spread)?;
        let second = Spill::new(shape.counters, shape.buckets, shape.rest)?;
        let pins = shape.overflow == Overflow::Pin;
        Ok(Layers { first, second, top: (1 << shape.first) - 1, ceiling: shape.ceiling(), pins })
    }

    /// The value of a counter whose first layer is at its ceiling.
    #[inline(never)]
    fn beyond(&self, cell: u64) -> u64 {
        // A counter at the first ceiling without an entry in the second layer is pinned.
        self.second.get(cell).map_or(self.ceiling, |rest| self.top + rest)
    }
}

impl Store for Layers {
    const MOVES: bool = true;

    #[inline(always)]
    fn table(&self) -> &Table {
        &self.first
    }

    #[inline(always)]
    fn value(&self, held: u64, cell: u64) -> u64 {
        if held == self.top { self.beyond(cell) } else { held }
    }

    #[inline(always)]
    fn write(&mut self, cell: u64, value: u64) -> Result<(), Refused> {
        let width = Width::<ANY>(self.first.cells.width());
        let spilled = width.read(self.first.cells.bytes(), cell) == self.top;
        if spilled || value >= self.top {
            if value < self.top || (self.pins && value == self.ceiling) {
                self.second.forget(cell);
            } else if let Err(full) = self.second.set(cell, value - self.top)
                && !self.pins
            {
                return Err(full);
            }
        }
        width.write(self.first.cells.bytes_mut(), cell, value.min(self.top));
        Ok(())
    }

    fn clear(&mut self) {
        self.first.clear();
        self.second.clear();
    }
}

impl Body {
    /// Not generic over keys, so that it is compiled once.
    fn change(&mut self, act: Act, keys: AnyKeys<'_>, refused: &mut dyn FnMut(usize, Refused)) {
        self.filter.act_on_keys(act, keys, refused);
    }
}

impl Filter for Body {
    type Shape = Shape;
    const KIND: u16 = 7;

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let code = shape.code()?;
        Ok(Body { shape, filter: Coded::new(Layers::new(shape)?, code, seed) })
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn seed(&self) -> Seed {
        self.filter.seed
    }

    fn len(&self) -> u64 {
        self.filter.stored
    }

    fn memory_bytes(&self) -> u64 {
        self.shape.bytes()
    }

    fn load(&self) -> f64 {
        self.filter.fill()
    }

    fn stats(&self) -> Stats {
        let overflowed = self.filter.store.second.used();
        Stats { at_ceiling: self.filter.pinned(), overflowed, ..Stats::default() }
    }

    fn rate(&self) -> f64 {
        self.filter.false_positive_rate()
    }

    fn clear(&mut self) {
        self.filter.clear();
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        let Layers { first, second, .. } = &self.filter.store;
        let (first, second) = (first.try_clone()?, second.try_clone()?);
        let store = Layers { first, second, ..self.filter.store };
        let filter = Coded { store, code: self.filter.code.clone(), rows: None, ..self.filter };
        Ok(Body { shape: self.shape, filter })
    }

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<(), Refused> {
        self.filter.act_on_digest(Act::Insert, digest)
    }

    fn insert_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        let hasher = hasher(self.filter.seed, keys);
        self.change(Act::Insert, Keys::Any(keys.len(), &hasher), refused);
    }

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.filter.contains(digest)
    }

    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.filter.contains_keys(keys, found);
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        let (own, theirs) = (self.shape, other.shape);
        super::same("seed", self.filter.seed == other.filter.seed)?;
        super::same("counters", own.counters == theirs.counters)?;
        super::same("hashes", own.hashes == theirs.hashes)?;
        super::same("first", own.first == theirs.first)?;
        super::same("rest", own.rest == theirs.rest)?;
        super::same("buckets", own.buckets == theirs.buckets)?;
        super::same("increments", own.increments == theirs.increments)?;
        super::same("overflow", own.overflow == theirs.overflow)?;
        super::same("spread", own.spread == theirs.spread)?;
        let stored = super::sum_of_copies(self.filter.stored, other.filter.stored)?;
        let second = &self.filter.store.second;
        let full = Refused::Full { stored: second.used(), cells: second.cells.cells() };
        let mut both = Layers::new(own).map_err(|_| full)?;
        let code = &self.filter.code;
        for (cell, (one, two)) in (0..).zip(self.filter.values().zip(other.filter.values())) {
            let Some(sum) = code.join(one, two) else {
                return Err(Refused::Overflow { ceiling: code.ceiling() });
            };
            both.write(cell, sum)?;
        }
        self.filter.store = both;
        self.filter.stored = stored;
        Ok(())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Shape { counters, hashes, first, rest, buckets, increments, overflow, spread } =
            self.shape;
        let [low, high] = increments.to_fields();
        let fields = [
            counters,
            hashes.into(),
            first.into(),
            rest.into(),
            buckets,
            low,
            high,
            coded::overflow_field(overflow),
            coded::spread_field(spread),
            self.filter.stored,
        ];
        let store = &self.filter.store;
        let payload = [store.first.cells.payload(), store.second.cells.payload()].concat();
        bytes::write(Self::KIND, self.filter.seed, &fields, &payload)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = bytes::read(image, Self::KIND, seed)?;
        let [counters, hashes, first, rest, buckets, low, high, overflow, lines, stored] = fields;
        let shape = Shape {
            counters,
            hashes: bytes::narrow("hashes", hashes)?,
            first: bytes::narrow("first", first)?,
            rest: bytes::narrow("rest", rest)?,
            buckets,
            increments: coded::increments_from([low, high])?,
            overflow: coded::overflow_from(overflow)?,
            spread: coded::spread_from(lines)?,
        };
        shape.code()?;
        Infeasible::unless_within("counters", counters, 1, 1 << 60)?;
        bytes::justify(payload, shape.bytes())?;
        let mut layers = Body::new(shape, seed)?;
        let store = &mut layers.filter.store;
        let (one, two) = payload.split_at(store.first.cells.payload().len());
        store.first.load(one)?;
        let (first, top) = (&store.first.cells, store.top);
        if !store.second.load(two, |cell| first.get(cell) == top) {
            return Err(Malformed::Field { name: "payload" });
        }
        // Only a pinned counter is at the first ceiling without an entry in the second layer.
        let at_top = first.iter().filter(|&value| value == top).count() as u64;
        if shape.overflow == Overflow::Refuse && at_top != store.second.used() {
            return Err(Malformed::Field { name: "payload" });
        }
        if shape.overflow == Overflow::Pin && store.second.holds((1 << shape.rest) - 1) {
            return Err(Malformed::Field { name: "payload" });
        }
        layers.filter.check_sums(stored, shape.hashes, shape.increments)?;
        layers.filter.stored = stored;
        Ok(layers)
    }
}

impl Removes for Body {
    #[inline]
    fn remove(&mut self, digest: Digest) -> Result<(), Refused> {
        self.filter.act_on_digest(Act::Remove, digest)
    }

    fn remove_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        let hasher = hasher(self.filter.seed, keys);
        self.change(Act::Remove, Keys::Any(keys.len(), &hasher), refused);
    }
}
