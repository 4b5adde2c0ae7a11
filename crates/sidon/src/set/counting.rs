//! The counting Bloom filter: a set with deletes, in about forty bits per key.
//!
//! A Bloom filter with a small counter for each bit. Inserting adds one to each of a key's `k`
//! counters, and removing subtracts one. A key with a zero among its counters is not stored.
//! ```text
//! digest --spread--> | . 2 . . 1 . . . 3 . . |      k = 3, counters of 4 bits
//! ```
//! The counters of a key are anywhere, or in a few cache lines of the table: [`Spread`]. The second
//! costs a few per cent more counters, and is several times faster in a large table.
//!
//! A key whose positions coincide counts once there, on insert and on remove alike. The
//! false-positive rate is that of a Bloom filter, `fill^k`. [`Overflow`] selects the action at a
//! counter's ceiling; a counter never wraps. Fan et al., SIGCOMM 1998; Rottenstreich et al.,
//! INFOCOM 2012, equations 7 and 8.
//!
//! If a key is removed that was never inserted and yet passes, each counter is still the additions
//! less the subtractions. But the counters no longer bound the number of keys, since the positions
//! of that key may coincide more or less often than those of stored keys. Only if every key has a
//! single counter do all counters sum up to the number of keys.

mod batches;

use super::{
    cells::lines,
    cells::mapping::{self, InLines, LINES_MAX, Ones, Spread},
    cells::overflow::Overflow,
    cells::table::{ANY, MANY, Table, Width, with_line_width},
    filter::{Filter, Removes},
    operations::{Set, Stats},
};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    batch::{Keys, hasher},
    key::spread,
    packed::{self, Packed},
    saved, simd,
};

/// [`LINES_MAX`] as the length of an array.
const MOST: usize = LINES_MAX as usize;

/// The widest counter.
pub(crate) const WIDTH_MAX: u32 = 16;

/// The integers that fix a counting Bloom filter.
///
/// ```
/// use sidon::set::{Counting, Overflow, Spread, counting::Shape};
///
/// let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
/// let shape = Shape { counters: 2_000, hashes: 7, width: 4, overflow, spread };
/// assert_eq!(Counting::planned_bytes(shape), 1_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of counters of the table: at least 1.
    pub counters: u64,
    /// The number of counters of a key: 1 to 32.
    pub hashes: u32,
    /// The bits of a counter, 1 to 16; four suffice for most uses.
    pub width: u32,
    /// The action at a counter's ceiling.
    pub overflow: Overflow,
    /// The positions of a key's counters.
    pub spread: Spread,
}

impl Shape {
    /// The bytes of the table, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        Packed::bytes_of(self.counters, self.width)
    }

    /// Checks everything except the memory.
    pub(crate) fn check(self) -> Result<(), Infeasible> {
        Infeasible::unless_within("width", self.width.into(), 1, WIDTH_MAX.into())?;
        mapping::check(("counters", self.counters), self.width, self.hashes, self.spread)
            .map(|_| ())
    }
}

/// A multiset in counters. See the [module](self).
///
/// ```
/// use sidon::{Seed, set::{Counting, Overflow, Spread, counting::Shape}};
///
/// let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
/// let shape = Shape { counters: 2_000, hashes: 7, width: 4, overflow, spread };
/// let mut open = Counting::from_keys(shape, Seed(1), ["10.0.0.1", "10.0.0.2", "10.0.0.1"])?;
/// open.remove("10.0.0.1")?;
/// assert!(open.contains("10.0.0.1"));
/// open.remove("10.0.0.1")?;
/// assert!(!open.contains("10.0.0.1") && open.contains("10.0.0.2"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Counting = Set<Body>;

/// The cells of a [`Counting`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    seed: Seed,
    counters: Table,
    stored: u64,
}

impl Body {
    fn at_ceiling(&self) -> u64 {
        let cells = &self.counters.cells;
        cells.iter().filter(|&value| value == cells.ceiling()).count() as u64
    }

    #[inline(always)]
    fn insert_at<const W: u32>(
        &mut self,
        width: Width<W>,
        positions: &[u64],
    ) -> Result<(), Refused> {
        let ceiling = self.counters.cells.ceiling();
        let mut values = Values::default();
        let table = self.counters.cells.bytes();
        let mut full = false;
        for (value, &position) in values.iter_mut().zip(positions) {
            let read = width.read(table, position);
            full |= read == ceiling;
            *value = read as u16;
        }
        if full && self.shape.overflow == Overflow::Refuse {
            return Err(Refused::Overflow { ceiling });
        }
        self.stored = super::sum_of_copies(self.stored, 1)?;
        let table = self.counters.cells.bytes_mut();
        let mut fresh = 0;
        for (&value, &position) in values.iter().zip(positions) {
            // A position that occurs twice no longer holds the value that was read: it is
            // incremented once.
            let value = u64::from(value);
            let raised = width.replace(table, position, value, ceiling.min(value + 1));
            fresh += u64::from(raised & (value == 0));
        }
        self.counters.occupied += fresh;
        Ok(())
    }

    #[inline(always)]
    fn remove_at<const W: u32>(
        &mut self,
        width: Width<W>,
        positions: &[u64],
    ) -> Result<(), Refused> {
        let ceiling = self.counters.cells.ceiling();
        let mut values = Values::default();
        let table = self.counters.cells.bytes();
        let mut absent = false;
        for (value, &position) in values.iter_mut().zip(positions) {
            let read = width.read(table, position);
            absent |= read == 0;
            *value = read as u16;
        }
        // Pinned counters stay when their keys leave, so an empty filter may still answer `true`.
        if absent || self.stored == 0 {
            return Err(Refused::NotStored);
        }
        let pins = self.shape.overflow == Overflow::Pin;
        let table = self.counters.cells.bytes_mut();
        let mut emptied = 0;
        for (&value, &position) in values.iter().zip(positions) {
            // A position that occurs twice no longer holds the value that was read: it is
            // decremented once.
            let value = u64::from(value);
            let rest = value - u64::from(!(pins & (value == ceiling)));
            let lowered = width.replace(table, position, value, rest);
            emptied += u64::from(lowered & (rest == 0));
        }
        self.counters.occupied -= emptied;
        self.stored -= 1;
        Ok(())
    }

    /// Acts on one key, counters anywhere.
    #[inline(always)]
    fn act<const W: u32>(
        &mut self,
        act: Act,
        width: Width<W>,
        digest: Digest,
    ) -> Result<(), Refused> {
        let (mut positions, hashes) = ([0; MANY], self.counters.hashes);
        let positions = &mut positions[..hashes];
        for (to, position) in positions.iter_mut().zip(self.counters.positions(digest, 0, hashes)) {
            *to = position;
        }
        match act {
            Act::Insert => self.insert_at(width, positions),
            Act::Remove => self.remove_at(width, positions),
        }
    }

    /// [`act`](Self::act) for counters in lines.
    #[inline(always)]
    fn act_in_lines<const W: u32>(&mut self, act: Act, ones: &[Ones]) -> Result<(), Refused> {
        let pins = self.shape.overflow == Overflow::Pin;
        let table = self.counters.cells.bytes();
        let mut refused = false;
        for ones in ones {
            refused |= match act {
                Act::Insert => !pins && lines::any_at_ceiling::<W>(table, ones),
                Act::Remove => lines::any_zero::<W>(table, ones),
            };
        }
        match act {
            Act::Insert if refused => {
                return Err(Refused::Overflow { ceiling: self.counters.cells.ceiling() });
            }
            Act::Remove if refused || self.stored == 0 => return Err(Refused::NotStored),
            Act::Insert => self.stored = super::sum_of_copies(self.stored, 1)?,
            Act::Remove => self.stored -= 1,
        }
        let table = self.counters.cells.bytes_mut();
        for ones in ones {
            match act {
                Act::Insert => lines::raise::<W>(table, ones, pins),
                Act::Remove => lines::lower::<W>(table, ones, pins),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn act_on_lines<const L: usize, const W: u32>(
        &mut self,
        act: Act,
        mapping: InLines,
        digest: Digest,
    ) -> Result<(), Refused> {
        let mut ones = [Ones::NONE; L];
        mapping.ones::<L, W, _>(simd::BASE, digest, &mut ones);
        self.act_in_lines::<W>(act, &ones[..mapping.lines as usize])
    }

    fn act_on_digest(&mut self, act: Act, digest: Digest) -> Result<(), Refused> {
        if let Some(mapping) = self.counters.in_lines {
            return with_line_width!(self.shape.width, |W| {
                match mapping.lines {
                    1..=2 => self.act_on_lines::<2, W>(act, mapping, digest),
                    _ => self.act_on_lines::<MOST, W>(act, mapping, digest),
                }
            });
        }
        match self.shape.width {
            4 => self.act(act, Width::<4>(4), digest),
            width => self.act(act, Width::<ANY>(width), digest),
        }
    }
}

/// The values of a key's counters.
type Values = [u16; spread::MAX as usize];

/// An operation on a key.
#[derive(Clone, Copy)]
enum Act {
    Insert,
    Remove,
}

impl Act {
    #[inline(always)]
    fn of(insert: bool) -> Self {
        if insert { Act::Insert } else { Act::Remove }
    }
}

impl Filter for Body {
    type Shape = Shape;
    const KIND: u16 = crate::saved::kinds::COUNTING.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        let Shape { counters, hashes, width, spread, .. } = shape;
        let counters = Table::zeroed(("counters", counters), width, hashes, spread)?;
        Ok(Body { shape, seed, counters, stored: 0 })
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn seed(&self) -> Seed {
        self.seed
    }

    fn len(&self) -> u64 {
        self.stored
    }

    fn memory_bytes(&self) -> u64 {
        self.shape.bytes()
    }

    fn load(&self) -> f64 {
        self.counters.fill()
    }

    fn stats(&self) -> Stats {
        let largest = self.counters.cells.iter().max().unwrap_or(0);
        Stats { largest, at_ceiling: self.at_ceiling(), ..Stats::default() }
    }

    fn rate(&self) -> f64 {
        let Some(mapping) = self.counters.in_lines else {
            return self.load().powi(self.shape.hashes as i32);
        };
        let in_use = self.counters.cells.iter().map(|value| f64::from(u8::from(value != 0)));
        mapping.passes(self.shape.width, in_use)
    }

    fn clear(&mut self) {
        self.counters.clear();
        self.stored = 0;
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Body { counters: self.counters.try_clone()?, ..*self })
    }

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<(), Refused> {
        self.act_on_digest(Act::Insert, digest)
    }

    fn insert_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        self.act_on_keys(Act::Insert, Keys::Any(keys.len(), &hasher(self.seed, keys)), refused);
    }

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.counters.contains(digest)
    }

    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.counters.contains_keys(Keys::Any(keys.len(), &hasher(self.seed, keys)), found);
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        super::same("seed", self.seed == other.seed)?;
        super::same("counters", self.shape.counters == other.shape.counters)?;
        super::same("hashes", self.shape.hashes == other.shape.hashes)?;
        super::same("width", self.shape.width == other.shape.width)?;
        super::same("overflow", self.shape.overflow == other.shape.overflow)?;
        super::same("spread", self.shape.spread == other.shape.spread)?;
        let ceiling = self.counters.cells.ceiling();
        if self.shape.overflow == Overflow::Refuse {
            let mut pairs = self.counters.cells.iter().zip(other.counters.cells.iter());
            if pairs.any(|(own, other)| own + other > ceiling) {
                return Err(Refused::Overflow { ceiling });
            }
        }
        self.stored = super::sum_of_copies(self.stored, other.stored)?;
        let (width, size) = (self.shape.width, self.shape.counters);
        let (own, theirs) = (self.counters.cells.bytes_mut(), other.counters.cells.bytes());
        for cell in 0..size {
            let sum = packed::read(own, width, cell) + packed::read(theirs, width, cell);
            packed::write(own, width, cell, sum.min(ceiling));
        }
        self.counters.occupied = self.counters.cells.occupied();
        Ok(())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Shape { counters, hashes, width, overflow, spread } = self.shape;
        let overflow = match overflow {
            Overflow::Refuse => 0,
            Overflow::Pin => 1,
        };
        let lines = match spread {
            Spread::Anywhere => 0,
            Spread::Lines(lines) => lines,
        };
        let fields = [counters, hashes.into(), width.into(), overflow, lines.into(), self.stored];
        saved::write(Self::KIND, self.seed, &fields, self.counters.cells.payload())
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read(image, Self::KIND, seed)?;
        let [counters, hashes, width, overflow, lines, stored] = fields;
        let shape = Shape {
            counters,
            hashes: saved::narrow("hashes", hashes)?,
            width: saved::narrow("width", width)?,
            overflow: match overflow {
                0 => Overflow::Refuse,
                1 => Overflow::Pin,
                _ => return Err(Malformed::Field { name: "overflow" }),
            },
            spread: match saved::narrow("lines", lines)? {
                0 => Spread::Anywhere,
                lines => Spread::Lines(lines),
            },
        };
        saved::justify(payload, Packed::payload_bytes(counters, shape.width)?)?;
        let mut filter = Body::new(shape, seed)?;
        filter.counters.load(payload)?;
        // Pinned counters stay when their keys leave.
        let pinned = shape.overflow == Overflow::Pin && filter.at_ceiling() > 0;
        let raised: u128 = filter.counters.cells.iter().map(u128::from).sum();
        let one_each = hashes.min(counters) == 1;
        if one_each && !pinned && raised != stored.into() {
            return Err(Malformed::Field { name: "stored" });
        }
        filter.stored = stored;
        Ok(filter)
    }
}

impl Removes for Body {
    #[inline]
    fn remove(&mut self, digest: Digest) -> Result<(), Refused> {
        self.act_on_digest(Act::Remove, digest)
    }

    fn remove_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        self.act_on_keys(Act::Remove, Keys::Any(keys.len(), &hasher(self.seed, keys)), refused);
    }
}
