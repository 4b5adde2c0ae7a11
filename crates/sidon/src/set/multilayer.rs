//! Narrow counters, and up to seven further layers for the few that need more: deletes in about
//! twenty-five bits per key.
//!
//! Most counters are small. The first layer gives each a few bits. A counter that reaches the
//! ceiling of a layer continues in the next one, a small exact map by its position.
//! ```text
//! first    | . 5 . 15 . . 9 . 15 . |      4 bits each; 15 means: continues below
//! second           |          |
//!                (3: +7)    (8: +0)      position, and the part above 15, up to 7
//! third            |
//!                (3: +2)                 the part above 22: the counter is 24
//! ```
//! A lookup reads the second layer only for counters at the ceiling, a few in a hundred. With
//! increments of one this is the multi-layer hashed counting filter (ML-HCBF), with several it is
//! ML-VI-HCBF: Rottenstreich et al., INFOCOM 2012, section V, after Ficara et al., 2010. The papers
//! find the position in the next layer by perfect hashing, which a changing table cannot keep, and
//! do not count its memory. Here a cell of a further layer identifies its counter in full, by its
//! bucket and a tag of a few bits. [`Set::planned_bytes`](super::Set::planned_bytes) includes all of it.
//!
//! When a key is removed that was never inserted, all layers together keep the same facts as
//! [`Variable`](super::Variable). A layer has an entry for each counter at the ceiling of the layer
//! before it, and no other entry. A pinned counter is at the first ceiling and has no entry.

use super::{
    cells::increment_code::{IncrementCode, Sums},
    cells::increment_filter::{self, Act, IncrementFilter, Store},
    cells::mapping::Spread,
    cells::overflow::Overflow,
    cells::overflow_map::OverflowMap,
    cells::table::{ANY, Table, Width},
    filter::{Filter, Removes},
    increments::Increments,
    operations::{Set, Stats},
};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    batch::{AnyKeys, Keys, hasher},
    packed::Packed,
    saved,
};

/// The integers that fix a filter of two to eight layers.
///
/// ```
/// use sidon::{Refused, Seed};
/// use sidon::set::{Increments, Multilayer, Overflow, Spread, multilayer::Shape};
///
/// let shape = Shape {
///     counters: 1_000,
///     hashes: 4,
///     first: 2,
///     rest: [3, 1, 0, 0, 0, 0, 0],
///     buckets: [16, 4, 0, 0, 0, 0, 0],
///     increments: Increments::of([1]),
///     overflow: Overflow::Refuse,
///     spread: Spread::Anywhere,
/// };
/// // A counter reaches 3 in the first layer, 7 more in the second, and 1 more in the third.
/// let mut seen = Multilayer::from_keys(shape, Seed(1), ["key"; 11])?;
/// assert_eq!(seen.insert("key"), Err(Refused::Overflow { ceiling: 11 }));
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
    /// The bits of the part that a cell of each further layer adds, 1 to 16. Zero for layers that
    /// do not exist. There is at least one further layer.
    pub rest: [u32; 7],
    /// Buckets of eight cells in each half of each further layer. Zero for layers that do not exist.
    pub buckets: [u64; 7],
    /// The values that a key may add.
    pub increments: Increments,
    /// The action when an insertion finds no room in a further layer, or would exceed the ceiling
    /// of the last. A pinned counter is at the first ceiling and has no entry in any further layer.
    pub overflow: Overflow,
    /// The positions of a key's counters.
    pub spread: Spread,
}

impl Shape {
    /// The bytes of all layers, or `u64::MAX` if there are more or no such table exists.
    pub(crate) fn bytes(&self) -> u64 {
        let first = Packed::bytes_of(self.counters, self.first);
        let further = self.further().map(|(rest, buckets)| {
            OverflowMap::bytes(self.counters, buckets, rest).unwrap_or(u64::MAX)
        });
        further.fold(first, u64::saturating_add)
    }

    /// The bits and buckets of the further layers.
    pub(crate) fn further(&self) -> impl Iterator<Item = (u32, u64)> {
        let exists = |&(rest, _): &(u32, u64)| rest > 0;
        self.rest.into_iter().zip(self.buckets).take_while(exists)
    }

    /// The largest value of a counter.
    pub(crate) fn ceiling(&self) -> u64 {
        let most = |bits: u32| (1u64 << bits.min(16)) - 1;
        self.further().map(|(rest, _)| most(rest)).sum::<u64>() + most(self.first)
    }

    pub(crate) fn code(self) -> Result<Sums, Infeasible> {
        Infeasible::unless_within("first", self.first.into(), 1, 8)?;
        Infeasible::unless_within("rest", self.rest[0].into(), 1, 16)?;
        let end = self.further().count();
        for i in 1..self.rest.len() {
            // After the first zero, all numbers must be zero.
            let most = if i < end { 16 } else { 0 };
            Infeasible::unless_within("rest", self.rest[i].into(), 0, most)?;
            Infeasible::unless_within("buckets", self.buckets[i], 0, most << 44)?;
        }
        Sums::new(self.increments, self.ceiling(), self.overflow)
    }
}

/// A multiset in counters of two layers. See the [module](self).
///
/// ```
/// use sidon::{Seed, set::{Increments, Multilayer, Overflow, Spread, multilayer::Shape}};
///
/// let shape = Shape {
///     counters: 1_000, hashes: 4, first: 2,
///     rest: [3, 0, 0, 0, 0, 0, 0], buckets: [16, 0, 0, 0, 0, 0, 0],
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
    filter: IncrementFilter<Sums, Layers>,
}

/// All layers.
#[derive(Debug)]
struct Layers {
    first: Table,
    further: Vec<OverflowMap>,
    /// The ceiling of the first layer, and that of all together.
    top: u64,
    ceiling: u64,
    pins: bool,
}

impl Layers {
    fn new(shape: Shape) -> Result<Self, Infeasible> {
        let first =
            Table::zeroed(("counters", shape.counters), shape.first, shape.hashes, shape.spread)?;
        let further =
            shape.further().map(|(rest, buckets)| OverflowMap::new(shape.counters, buckets, rest));
        let further = further.collect::<Result<_, _>>()?;
        let pins = shape.overflow == Overflow::Pin;
        Ok(Layers { first, further, top: (1 << shape.first) - 1, ceiling: shape.ceiling(), pins })
    }

    /// Stores the part above the first ceiling. On `Err`, nothing has changed.
    fn write_below(&mut self, cell: u64, value: u64) -> Result<(), Refused> {
        let pinned = self.pins && value == self.ceiling;
        // Writes the last layer first. A layer without room for the cell has no entry of it, so its
        // entries in later layers are new, and are removed again.
        let mut base = self.ceiling;
        for i in (0..self.further.len()).rev() {
            let layer = &mut self.further[i];
            base -= layer.top();
            if pinned || value < base {
                layer.forget(cell);
            } else if let Err(full) = layer.set(cell, (value - base).min(layer.top())) {
                // A pinned counter has no entry in any layer.
                let from = if self.pins { 0 } else { i };
                self.further[from..].iter_mut().for_each(|layer| layer.forget(cell));
                return if self.pins { Ok(()) } else { Err(full) };
            }
        }
        Ok(())
    }

    /// The value of a counter whose first layer is at its ceiling.
    #[inline(never)]
    fn beyond(&self, cell: u64) -> u64 {
        let mut value = self.top;
        for layer in &self.further {
            // A counter at the first ceiling without an entry in the second layer is pinned.
            let Some(rest) = layer.get(cell) else { return self.ceiling };
            value += rest;
            if rest < layer.top() {
                break;
            }
        }
        value
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
            self.write_below(cell, value)?;
        }
        width.write(self.first.cells.bytes_mut(), cell, value.min(self.top));
        Ok(())
    }

    fn clear(&mut self) {
        self.first.clear();
        self.further.iter_mut().for_each(OverflowMap::clear);
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
    const KIND: u16 = crate::saved::kinds::MULTILAYER.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let code = shape.code()?;
        Ok(Body { shape, filter: IncrementFilter::new(Layers::new(shape)?, code, seed) })
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
        let overflowed = self.filter.store.further[0].used();
        Stats { at_ceiling: self.filter.pinned(), overflowed, ..Stats::default() }
    }

    fn rate(&self) -> f64 {
        self.filter.false_positive_rate()
    }

    fn clear(&mut self) {
        self.filter.clear();
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        let Layers { first, further, .. } = &self.filter.store;
        let further = further.iter().map(OverflowMap::try_clone).collect::<Result<_, _>>()?;
        let store = Layers { first: first.try_clone()?, further, ..self.filter.store };
        let filter =
            IncrementFilter { store, code: self.filter.code.clone(), rows: None, ..self.filter };
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
        let second = &self.filter.store.further[0];
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
            rest.iter().rev().fold(0, |all, &bits| all << 8 | u64::from(bits)),
            buckets[0],
            low,
            high,
            increment_filter::overflow_field(overflow),
            increment_filter::spread_field(spread),
            self.filter.stored,
        ];
        let store = &self.filter.store;
        let mut payload = Vec::new();
        for (_, buckets) in self.shape.further().skip(1) {
            payload.extend(buckets.to_le_bytes());
        }
        payload.extend(store.first.cells.payload());
        store.further.iter().for_each(|layer| payload.extend(layer.cells.payload()));
        saved::write(Self::KIND, self.filter.seed, &fields, &payload)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read(image, Self::KIND, seed)?;
        let [counters, hashes, first, rest, buckets, low, high, overflow, lines, stored] = fields;
        let [rest @ .., none] = rest.to_le_bytes();
        let wrong = || Malformed::Field { name: "payload" };
        let further = rest.iter().take_while(|&&bits| bits > 0).count();
        let more = payload.split_at_checked(further.saturating_sub(1) * 8);
        let (more, payload) = more.ok_or_else(wrong)?;
        let mut shape = Shape {
            counters,
            hashes: saved::narrow("hashes", hashes)?,
            first: saved::narrow("first", first)?,
            rest: rest.map(u32::from),
            buckets: [buckets, 0, 0, 0, 0, 0, 0],
            increments: increment_filter::increments_from([low, high])?,
            overflow: increment_filter::overflow_from(overflow)?,
            spread: increment_filter::spread_from(lines)?,
        };
        for (buckets, bytes) in shape.buckets[1..].iter_mut().zip(more.as_chunks().0) {
            *buckets = u64::from_le_bytes(*bytes);
        }
        if none != 0 {
            return Err(Malformed::Field { name: "rest" });
        }
        shape.code()?;
        Infeasible::unless_within("counters", counters, 1, 1 << 60)?;
        saved::justify(payload, shape.bytes())?;
        let mut layers = Body::new(shape, seed)?;
        let Layers { first, further, top, pins, .. } = &mut layers.filter.store;
        let (own, mut payload) = payload.split_at(first.cells.payload().len());
        first.load(own)?;
        // Only a pinned counter is at the first ceiling without an entry in the second layer.
        let mut at_top = first.cells.iter().filter(|value| value == top).count() as u64;
        for i in 0..further.len() {
            let (before, layer) = further[..=i].split_at_mut(i);
            let (before, layer) = (before.last(), &mut layer[0]);
            let (own, after) = payload.split_at(layer.cells.payload().len());
            let spills = |cell| match before {
                None => first.cells.get(cell) == *top,
                Some(before) => before.get(cell) == Some(before.top()),
            };
            let may_pin = *pins && before.is_none();
            if !layer.load(own, spills) || (!may_pin && at_top != layer.used()) {
                return Err(wrong());
            }
            (payload, at_top) = (after, layer.holding(layer.top()));
        }
        if *pins && at_top > 0 {
            return Err(wrong());
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
