//! A set that keys can leave, in about half the room of a counting Bloom filter.
//!
//! Every key has one bucket in each of `d` subtables and is stored in the emptiest, ties to the
//! left. A cell holds a remainder and the number of keys that share it.
//! ```text
//! digest --fraction--> fingerprint f in 0..buckets * 2^r
//! f --permute(i)--> | bucket | remainder |             for subtable i in 0..d
//!                       |         |
//!       subtable i: [....|X..X.X...|.....]   a cell: | remainder r | counter c |
//! ```
//! A lookup reads `d` buckets. A stranger passes if and only if it shares the whole fingerprint
//! with a member: `n / (buckets * 2^r)`. Bonomi et al., ESA 2006; its names are kept here.
//!
//! # Why permutations
//!
//! The natural construction gives a key `d` independent buckets and one remainder, the same in all
//! subtables. It has a subtle flaw. Let `x` have the first bucket of each subtable and remainder
//! `a`, stored in the last subtable. Let `y` have bucket `i` of subtable `i`, the same remainder
//! `a`, and be stored in the first subtable, in the bucket that is also `x`'s. Now `a` stands in two
//! of `x`'s buckets, and whoever removes `x` cannot know which of them is `x`'s own: take the wrong
//! one, and `y` is lost. Here bucket *and* remainder come from one fingerprint by a permutation for
//! each subtable, so two keys that agree in bucket and remainder in one subtable have the same
//! fingerprint, and then agree in all. A fingerprint has at most one cell, and the counter of that
//! cell knows its copies. The tests show the flaw on the naive variant, and its absence here.
//!
//! # The empty cell
//!
//! A cell stores the complement of `remainder * 2^c + copies - 1`, so zero is free to mean empty.
//! One combination is thereby lost: the largest remainder tops out one copy lower. Without a counter
//! (`c = 0`, each copy takes a cell of its own) that remainder could not be stored at all; the few
//! fingerprints that would meet it in some subtable are taken to be their successors.
//!
//! # Growing
//!
//! The permutations act on `0..buckets * 2^r` whatever part of that is called bucket. Growing doubles
//! the buckets and hands each the upper bit of the remainder: a cell still knows its fingerprint, so
//! no key is needed and none is lost, and the false-positive rate stays `n / (buckets * 2^r)`.

mod grow;
mod image;
mod moves;

pub use moves::{Moved, Moves};

use super::batch::{self, NEAR, Steps};
use crate::{
    Certainty, Digest, Infeasible, Key, Refused, Seed,
    cells::{
        Memory,
        bucket::{Lanes, Layout, Odd},
    },
    hash::{
        permute::{MODULUS_MOST, Permutation},
        spread,
    },
    ops::{Contains, Insert, Merge, Remove},
    probe::{self, BASE, Isa, Kernel},
};

/// The most subtables.
pub const SUBTABLES_MOST: u32 = 8;
/// The most cells of a bucket.
const CELLS_MOST: usize = 32;
/// The most bits of a counter.
pub const COUNTER_MOST: u32 = 4;

/// The integers that fix a d-left filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many subtables, 2 to 8.
    pub subtables: u32,
    /// How many buckets each subtable has: any number but zero.
    pub buckets: u64,
    /// How many cells a bucket has: 8, 16 or 32.
    pub cells: u32,
    /// The bits of a cell, 5 to 32; 8, 16 and 32 are the fast ones.
    pub width: u32,
    /// The bits of a remainder, at most what the counter leaves of the cell.
    pub remainder: u32,
    /// The bits of a counter, 0 to 4: a cell counts up to `2^counter` copies. With 0, each copy of
    /// a fingerprint takes a cell of its own.
    pub counter: u32,
    /// What happens when all cells of a key are taken.
    pub moves: Moves,
    /// How many times the table may still be doubled.
    pub growths: u32,
    /// Whether a table that would refuse a key as [`Refused::Full`] doubles itself instead, while
    /// `growths` lasts.
    pub grows: bool,
}

impl Shape {
    /// The cells of the whole table.
    pub fn all_cells(&self) -> u64 {
        u64::from(self.subtables) * self.buckets * u64::from(self.cells)
    }

    /// The bytes of the whole table.
    pub fn bytes(&self) -> u64 {
        u64::from(self.subtables) * self.buckets * u64::from(self.bucket_bytes())
    }

    /// How many fingerprints there are: `buckets * 2^remainder`, which growing does not change.
    pub fn fingerprints(&self) -> u64 {
        self.buckets << self.remainder
    }

    /// How many copies of a key a cell counts, and one less for the largest remainder.
    pub fn ceiling(&self) -> u64 {
        1 << self.counter
    }

    fn bucket_bytes(&self) -> u32 {
        self.cells * self.width / 8
    }

    fn check(&self) -> Result<(), Infeasible> {
        let within = Infeasible::unless_within;
        within("subtables", self.subtables.into(), 2, SUBTABLES_MOST.into())?;
        if ![8, 16, 32].contains(&self.cells) {
            within("cells", self.cells.into(), 8, 8)?;
        }
        within("width", self.width.into(), 5, 32)?;
        within("counter", self.counter.into(), 0, COUNTER_MOST.into())?;
        within("remainder", self.remainder.into(), 1, (self.width - self.counter).into())?;
        // Without counters, some remainders are passed over: at most half of the fingerprints.
        let reserve = if self.counter == 0 { 4 } else { 1 };
        within("growths", self.growths.into(), 0, self.remainder.saturating_sub(reserve).into())?;
        if self.counter == 0 {
            within("remainder", self.remainder.into(), 4, 32)?;
        }
        within("buckets", self.buckets, 1, MODULUS_MOST >> self.remainder)?;
        let bytes = u128::from(self.subtables) * u128::from(self.buckets);
        if bytes * u128::from(self.bucket_bytes()) > u128::from(u64::MAX / 4) {
            return Err(Infeasible::Memory { bytes: u64::MAX });
        }
        self.moves.check()
    }
}

/// A multiset that keys can enter and leave. See the [module](self).
#[derive(Debug)]
pub struct DLeft {
    shape: Shape,
    seed: Seed,
    memory: Memory,
    /// Bytes of a bucket and of a subtable, which the shape gives.
    bucket_bytes: usize,
    subtable_bytes: usize,
    /// One for each subtable; the first is the identity.
    permutations: [Permutation; SUBTABLES_MOST as usize],
    /// Copies stored.
    stored: u64,
    /// Cells in use.
    occupied: u64,
    moved: Moved,
    /// Room for a search, kept from one to the next.
    search: Vec<moves::Step>,
}

/// Runs a body with the layout of a shape as a value of its own type.
macro_rules! with_layout {
    ($shape:expr, |$layout:ident| $body:expr) => {
        match ($shape.width, $shape.cells) {
            (8, 16) => {
                let $layout = Lanes::<u8, 16>::NEW;
                $body
            }
            (8, 32) => {
                let $layout = Lanes::<u8, 32>::NEW;
                $body
            }
            (16, 8) => {
                let $layout = Lanes::<u16, 16>::NEW;
                $body
            }
            (16, 16) => {
                let $layout = Lanes::<u16, 32>::NEW;
                $body
            }
            (16, 32) => {
                let $layout = Lanes::<u16, 64>::NEW;
                $body
            }
            (32, 8) => {
                let $layout = Lanes::<u32, 32>::NEW;
                $body
            }
            (32, 16) => {
                let $layout = Lanes::<u32, 64>::NEW;
                $body
            }
            (width, cells) => {
                let $layout = Odd { cells, width };
                $body
            }
        }
    };
}
use with_layout;

impl DLeft {
    /// An empty filter.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        // Room also for the word that a bucket of any width reads beyond the last.
        let memory = Memory::zeroed(shape.bytes() + 8)?;
        let permutations = permutations(shape.fingerprints())?;
        let (moved, search) = (Moved::default(), Vec::new());
        let bucket_bytes = shape.bucket_bytes() as usize;
        let subtable_bytes = shape.buckets as usize * bucket_bytes;
        Ok(DLeft {
            shape,
            seed,
            memory,
            bucket_bytes,
            subtable_bytes,
            permutations,
            stored: 0,
            occupied: 0,
            moved,
            search,
        })
    }

    /// Takes every key out. The table keeps the size it has grown to.
    pub fn clear(&mut self) {
        self.memory.bytes_mut().fill(0);
        self.stored = 0;
        self.occupied = 0;
    }

    /// The integers that fix the memory, as they are now.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many keys are stored, each copy counted.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// The share of cells in use.
    pub fn load(&self) -> f64 {
        self.occupied as f64 / self.shape.all_cells() as f64
    }

    /// How often a key found all its cells taken, and what moved to make room.
    pub fn moved(&self) -> Moved {
        self.moved
    }

    /// The share of strangers that pass: fingerprints in use, of those there are.
    pub fn false_positive_rate(&self) -> f64 {
        // A share `q` of fingerprints is passed over for successors, which are then twice as likely,
        // for members and strangers alike. Copies in cells of their own make this cautious.
        let q = self.passed_over();
        self.occupied as f64 / self.shape.fingerprints() as f64 * (1.0 + q) / (1.0 - q)
    }

    /// The fingerprint of a key: keys that share it are one to the filter, others never.
    pub fn fingerprint<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.fingerprint_of(key.digest(self.seed))
    }

    /// How many copies of the key are stored, or of others with its fingerprint.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        let places = self.places::<{ SUBTABLES_MOST as usize }>(key.digest(self.seed));
        with_layout!(self.shape, |layout| self.count_at(BASE, layout, &places))
    }

    /// Writes the number of copies of each key to the same place of `counts`.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn count_batch<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        assert_eq!(keys.len(), counts.len(), "one answer a key");
        with_layout!(self.shape, |layout| probe::dispatch(Ask {
            filter: self,
            layout,
            keys,
            answers: counts,
            answer: Count,
        }));
    }

    /// The stored fingerprints and their copies, in the order of the table.
    pub fn fingerprints(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let Shape { subtables, buckets, cells, .. } = self.shape;
        (0..subtables).flat_map(move |subtable| {
            (0..buckets).flat_map(move |bucket| {
                (0..cells).filter_map(move |cell| self.cell(subtable, bucket, cell))
            })
        })
    }

    /// How many buckets of each subtable hold exactly 0, 1, .. cells in use.
    pub fn loads(&self) -> Vec<Vec<u64>> {
        let mut loads = vec![vec![0; self.shape.cells as usize + 1]; self.shape.subtables as usize];
        for (subtable, loads) in (0..).zip(&mut loads) {
            for bucket in 0..self.shape.buckets {
                let bytes = &self.memory.bytes()[self.offset(subtable, bucket)..];
                let empty = with_layout!(self.shape, |layout| layout.matches(BASE, bytes, 0, 0));
                loads[(self.shape.cells - empty.count_ones()) as usize] += 1;
            }
        }
        loads
    }

    /// A copy in memory of its own.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(DLeft { memory: self.memory.try_clone()?, search: Vec::new(), ..*self })
    }

    /// The fingerprint and copies in a cell, if it is in use.
    fn cell(&self, subtable: u32, bucket: u64, cell: u32) -> Option<(u64, u64)> {
        let at = self.offset(subtable, bucket);
        let bytes = &self.memory.bytes()[at..];
        let value = with_layout!(self.shape, |layout| layout.read(bytes, cell));
        let (remainder, copies) = self.decode(value)?;
        let image = (bucket << self.shape.remainder) | remainder;
        Some((self.permutations[subtable as usize].invert(image), copies))
    }

    /// Remainder and copies of a cell that is not empty.
    #[inline(always)]
    fn decode(&self, value: u32) -> Option<(u64, u64)> {
        let raw = !value & self.shape.cell_mask();
        let copies = (raw & (self.shape.ceiling() as u32 - 1)) + 1;
        (value != 0).then_some((u64::from(raw >> self.shape.counter), u64::from(copies)))
    }

    /// The value of a cell with this remainder and number of copies, 1 or more.
    #[inline(always)]
    fn encode(&self, remainder: u64, copies: u64) -> u32 {
        let raw = (remainder << self.shape.counter) + copies - 1;
        !(raw as u32) & self.shape.cell_mask()
    }

    /// Where a bucket starts.
    #[inline(always)]
    fn offset(&self, subtable: u32, bucket: u64) -> usize {
        subtable as usize * self.subtable_bytes + bucket as usize * self.bucket_bytes
    }

    /// The share of fingerprints that are passed over for their successors.
    fn passed_over(&self) -> f64 {
        match self.passed_mask() {
            0 => 0.0,
            mask => f64::from(self.shape.subtables) / (mask as f64 + 1.0),
        }
    }

    /// Images whose bits under this mask are all set cannot be stored: none if there are counters.
    #[inline(always)]
    fn passed_mask(&self) -> u64 {
        if self.shape.counter > 0 {
            return 0;
        }
        (1 << (self.shape.remainder - self.shape.growths)) - 1
    }

    #[inline(always)]
    fn fingerprint_of(&self, digest: Digest) -> u64 {
        let fingerprint = spread::fraction(digest.0, self.shape.fingerprints());
        let mask = self.passed_mask();
        if mask == 0 { fingerprint } else { self.next_storable(fingerprint, mask) }
    }

    /// The fingerprint, or the first after it whose remainder can be stored in every subtable now
    /// and after every growth.
    #[inline(always)]
    fn next_storable(&self, mut fingerprint: u64, mask: u64) -> u64 {
        let subtables = self.shape.subtables as usize;
        loop {
            let lost = |p: &Permutation| p.apply(fingerprint) & mask == mask;
            if !self.permutations[..subtables].iter().any(lost) {
                return fingerprint;
            }
            fingerprint += 1;
            if fingerprint == self.shape.fingerprints() {
                fingerprint = 0;
            }
        }
    }

    /// The bucket and remainder of a digest in each subtable. `D` is at least their number.
    #[inline(always)]
    fn places<const D: usize>(&self, digest: Digest) -> [Place; D] {
        self.places_of(self.fingerprint_of(digest))
    }

    /// How many subtables there are: two, the fast layout, known to the compiler.
    #[inline(always)]
    fn subtables<const D: usize>(&self) -> usize {
        if D == 2 { 2 } else { self.shape.subtables as usize }
    }

    #[inline(always)]
    fn places_of<const D: usize>(&self, fingerprint: u64) -> [Place; D] {
        let mut places = [Place { offset: 0, remainder: 0 }; D];
        for (i, place) in places[..self.subtables::<D>()].iter_mut().enumerate() {
            let image = match i {
                0 => fingerprint,
                _ => self.permutations[i].apply(fingerprint),
            };
            let bucket = image >> self.shape.remainder;
            place.offset = self.offset(i as u32, bucket);
            place.remainder = image & ((1 << self.shape.remainder) - 1);
        }
        places
    }

    /// Which cells of the bucket at `place` hold its remainder.
    #[inline(always)]
    fn matches<I: Isa, L: Layout>(&self, isa: I, layout: L, place: Place) -> u64 {
        self.matches_in(isa, layout, self.memory.bytes(), place)
    }

    /// The same, for those who have the table's bytes at hand.
    #[inline(always)]
    fn matches_in<I: Isa, L: Layout>(&self, isa: I, layout: L, table: &[u8], place: Place) -> u64 {
        let bucket = &table[place.offset..];
        let counter = self.shape.ceiling() as u32 - 1;
        let value = self.encode(place.remainder, 1);
        let found = layout.matches(isa, bucket, value, counter);
        // Only the largest remainder looks like an empty cell where the counter is not looked at.
        if place.remainder + 1 == 1 << self.shape.remainder {
            return found & !layout.matches(isa, bucket, 0, 0);
        }
        found
    }

    #[inline(always)]
    fn contains_at<const D: usize, I: Isa, L: Layout>(
        &self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> bool {
        // No early exit: buckets are asked for together, and a branch a bucket costs more. No
        // closure: what is not inlined is not compiled for the instruction set.
        let (mut any, table) = (0, self.memory.bytes());
        for &place in &places[..self.subtables::<D>()] {
            any |= self.matches_in(isa, layout, table, place);
        }
        any != 0
    }

    #[inline(always)]
    fn count_at<const D: usize, I: Isa, L: Layout>(
        &self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> u64 {
        let mut count = 0;
        for &place in &places[..self.subtables::<D>()] {
            let found = self.matches(isa, layout, place);
            if self.shape.counter == 0 {
                count += u64::from(found.count_ones());
            } else if found != 0 {
                let bucket = &self.memory.bytes()[place.offset..];
                let value = layout.read(bucket, found.trailing_zeros());
                count += self.decode(value).map_or(0, |(_, copies)| copies);
            }
        }
        count
    }

    /// Looks, then writes: the counter of the fingerprint's cell if it has one, else an empty cell
    /// of its emptiest bucket, else whatever the fail-safe can free.
    #[inline(always)]
    fn insert_at<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> Result<(), Refused> {
        let mut most = 0;
        let mut best = (0, 0);
        let table = self.memory.bytes();
        for (i, &place) in places[..self.subtables::<D>()].iter().enumerate() {
            if self.shape.counter > 0 {
                let found = self.matches_in(isa, layout, table, place);
                if found != 0 {
                    return self.raise(layout, place, found.trailing_zeros());
                }
            }
            let empty = layout.matches(isa, &table[place.offset..], 0, 0);
            // Strictly more: ties go to the left.
            if empty.count_ones() > most {
                most = empty.count_ones();
                best = (i, empty.trailing_zeros());
            }
        }
        if most == 0 {
            return self.insert_by_moving(places);
        }
        self.put(layout, places[best.0], best.1);
        Ok(())
    }

    /// One more copy in a cell that is in use.
    #[inline(always)]
    fn raise<L: Layout>(&mut self, layout: L, place: Place, cell: u32) -> Result<(), Refused> {
        let value = layout.read(&self.memory.bytes()[place.offset..], cell);
        let copies = self.decode(value).map_or(0, |(_, copies)| copies);
        let ceiling = self.ceiling_of(place.remainder);
        if copies >= ceiling {
            return Err(Refused::Overflow { ceiling });
        }
        let value = self.encode(place.remainder, copies + 1);
        layout.write(&mut self.memory.bytes_mut()[place.offset..], cell, value);
        self.stored += 1;
        Ok(())
    }

    /// The most copies a cell with this remainder counts: one more would look empty.
    #[inline(always)]
    fn ceiling_of(&self, remainder: u64) -> u64 {
        let largest = remainder + 1 == 1 << self.shape.remainder;
        self.shape.ceiling() - u64::from(largest)
    }

    /// The first copy in an empty cell.
    #[inline(always)]
    fn put<L: Layout>(&mut self, layout: L, place: Place, cell: u32) {
        let value = self.encode(place.remainder, 1);
        layout.write(&mut self.memory.bytes_mut()[place.offset..], cell, value);
        self.stored += 1;
        self.occupied += 1;
    }

    #[inline(always)]
    fn remove_at<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> Result<(), Refused> {
        for &place in &places[..self.subtables::<D>()] {
            let found = self.matches(isa, layout, place);
            if found == 0 {
                continue;
            }
            let cell = found.trailing_zeros();
            let value = layout.read(&self.memory.bytes()[place.offset..], cell);
            let copies = self.decode(value).map_or(1, |(_, copies)| copies);
            let rest = if copies > 1 { self.encode(place.remainder, copies - 1) } else { 0 };
            layout.write(&mut self.memory.bytes_mut()[place.offset..], cell, rest);
            self.stored -= 1;
            self.occupied -= u64::from(rest == 0);
            return Ok(());
        }
        Err(Refused::NotStored)
    }
}

/// Where a fingerprint may be stored in one subtable.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Where its bucket starts.
    offset: usize,
    remainder: u64,
}

/// The identity first, then multiplications by well-spread factors. They depend on the number of
/// fingerprints alone, so tables that grew apart still agree.
fn permutations(fingerprints: u64) -> Result<[Permutation; SUBTABLES_MOST as usize], Infeasible> {
    let mut all = [None; SUBTABLES_MOST as usize];
    for (i, permutation) in (0u64..).zip(&mut all) {
        // Fractions of the range that no small multiple brings close to each other.
        let mut mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let wish = if i == 0 { 1 } else { spread::fraction(mixed, fingerprints) };
        *permutation = Permutation::near(fingerprints, wish);
    }
    match all {
        [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f), Some(g), Some(h)] => {
            Ok([a, b, c, d, e, f, g, h])
        }
        _ => Err(Infeasible::Memory { bytes: u64::MAX }),
    }
}

impl Shape {
    #[inline(always)]
    fn cell_mask(&self) -> u32 {
        u32::MAX >> (32 - self.remainder - self.counter)
    }
}

/// A question that a batch asks of each key.
trait Answer: Copy {
    type Value;
    fn of<const D: usize, I: Isa, L: Layout>(
        self,
        isa: I,
        layout: L,
        filter: &DLeft,
        at: &[Place; D],
    ) -> Self::Value;
}

#[derive(Clone, Copy)]
struct IsIn;
impl Answer for IsIn {
    type Value = bool;
    #[inline(always)]
    fn of<const D: usize, I: Isa, L: Layout>(
        self,
        isa: I,
        layout: L,
        filter: &DLeft,
        at: &[Place; D],
    ) -> bool {
        filter.contains_at(isa, layout, at)
    }
}

#[derive(Clone, Copy)]
struct Count;
impl Answer for Count {
    type Value = u64;
    #[inline(always)]
    fn of<const D: usize, I: Isa, L: Layout>(
        self,
        isa: I,
        layout: L,
        filter: &DLeft,
        at: &[Place; D],
    ) -> u64 {
        filter.count_at(isa, layout, at)
    }
}

/// A loop over keys that asks.
struct Ask<'a, K, L, A: Answer> {
    filter: &'a DLeft,
    layout: L,
    keys: &'a [K],
    answers: &'a mut [A::Value],
    answer: A,
}

impl<K: Key, L: Layout, A: Answer> Kernel for Ask<'_, K, L, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        match self.filter.shape.subtables {
            2 => self.run_with::<2, I>(isa),
            3..=4 => self.run_with::<4, I>(isa),
            _ => self.run_with::<8, I>(isa),
        }
    }
}

impl<K: Key, L: Layout, A: Answer> Ask<'_, K, L, A> {
    #[inline(always)]
    fn run_with<const D: usize, I: Isa>(self, isa: I) {
        let Ask { filter, layout, keys, answers, answer } = self;
        let steps = AskEach::<_, _, _, D> { isa, layout, filter, answers, answer };
        batch::each_key(isa, filter.seed, keys, filter.memory.bytes().len(), steps);
    }
}

struct AskEach<'a, I, L, A: Answer, const D: usize> {
    isa: I,
    layout: L,
    filter: &'a DLeft,
    answers: &'a mut [A::Value],
    answer: A,
}

impl<I: Isa, L: Layout, A: Answer, const D: usize> Steps for AskEach<'_, I, L, A, D> {
    type Place = [Place; D];
    const NOWHERE: Self::Place = [Place { offset: 0, remainder: 0 }; D];

    #[inline(always)]
    fn approach(&mut self, digest: Digest, places: &mut [Place; D]) {
        *places = self.filter.places(digest);
        self.filter.prefetch(places);
    }

    #[inline(always)]
    fn act(&mut self, key: usize, places: &[Place; D]) {
        self.answers[key] = self.answer.of(self.isa, self.layout, self.filter, places);
    }
}

impl DLeft {
    /// Asks for the buckets of a key, if the table is not near anyway.
    #[inline(always)]
    fn prefetch<const D: usize>(&self, places: &[Place; D]) {
        let table = self.memory.bytes();
        if table.len() > NEAR {
            for place in &places[..self.subtables::<D>()] {
                probe::prefetch(table, place.offset);
            }
        }
    }
}

/// What a batch does with each key.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    Insert,
    Remove,
}

/// A loop over keys that changes the filter.
struct Change<'a, K, L> {
    filter: &'a mut DLeft,
    layout: L,
    keys: &'a [K],
    act: Act,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl<K: Key, L: Layout> Kernel for Change<'_, K, L> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        match self.filter.shape.subtables {
            2 => self.run_with::<2, I>(isa),
            3..=4 => self.run_with::<4, I>(isa),
            _ => self.run_with::<8, I>(isa),
        }
    }
}

impl<K: Key, L: Layout> Change<'_, K, L> {
    #[inline(always)]
    fn run_with<const D: usize, I: Isa>(self, isa: I) {
        let Change { filter, layout, keys, act, refused } = self;
        let (seed, buckets) = (filter.seed, filter.shape.buckets);
        let bytes = filter.memory.bytes().len();
        let steps = ChangeEach::<_, _, D> { isa, layout, filter, act, refused, buckets };
        batch::each_key(isa, seed, keys, bytes, steps);
    }
}

struct ChangeEach<'a, I, L, const D: usize> {
    isa: I,
    layout: L,
    filter: &'a mut DLeft,
    act: Act,
    refused: &'a mut dyn FnMut(usize, Refused),
    /// How many buckets there were at the start.
    buckets: u64,
}

impl<I: Isa, L: Layout, const D: usize> Steps for ChangeEach<'_, I, L, D> {
    /// The fingerprint, and where it may be stored.
    type Place = (u64, [Place; D]);
    const NOWHERE: Self::Place = (0, [Place { offset: 0, remainder: 0 }; D]);

    #[inline(always)]
    fn approach(&mut self, digest: Digest, (fingerprint, places): &mut Self::Place) {
        *fingerprint = self.filter.fingerprint_of(digest);
        *places = self.filter.places_of(*fingerprint);
        self.filter.prefetch(places);
    }

    #[inline(always)]
    fn act(&mut self, key: usize, (fingerprint, places): &Self::Place) {
        let moved: [Place; D];
        let places = if self.filter.shape.buckets == self.buckets {
            places
        } else {
            // The table grew under way, and the places of a fingerprint are others now.
            moved = self.filter.places_of(*fingerprint);
            &moved
        };
        let done = match self.act {
            Act::Insert => self.filter.insert_at(self.isa, self.layout, places),
            Act::Remove => self.filter.remove_at(self.isa, self.layout, places),
        };
        if let Err(why) = done {
            (self.refused)(key, why);
        }
    }
}

impl<K: Key + ?Sized> Insert<K> for DLeft {
    #[inline]
    fn insert(&mut self, key: &K) -> Result<(), Refused> {
        let places = self.places::<{ SUBTABLES_MOST as usize }>(key.digest(self.seed));
        with_layout!(self.shape, |layout| self.insert_at(BASE, layout, &places))
    }

    fn insert_batch(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        let (filter, act) = (self, Act::Insert);
        with_layout!(filter.shape, |layout| probe::dispatch(Change {
            filter,
            layout,
            keys,
            act,
            refused
        }));
    }
}

impl<K: Key + ?Sized> Remove<K> for DLeft {
    #[inline]
    fn remove(&mut self, key: &K) -> Result<(), Refused> {
        let places = self.places::<{ SUBTABLES_MOST as usize }>(key.digest(self.seed));
        with_layout!(self.shape, |layout| self.remove_at(BASE, layout, &places))
    }

    fn remove_batch(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        let (filter, act) = (self, Act::Remove);
        with_layout!(filter.shape, |layout| probe::dispatch(Change {
            filter,
            layout,
            keys,
            act,
            refused
        }));
    }
}

impl<K: Key + ?Sized> Contains<K> for DLeft {
    #[inline]
    fn contains(&self, key: &K) -> bool {
        let places = self.places::<{ SUBTABLES_MOST as usize }>(key.digest(self.seed));
        with_layout!(self.shape, |layout| self.contains_at(BASE, layout, &places))
    }

    fn contains_batch(&self, keys: &[K], found: &mut [bool])
    where
        K: Sized,
    {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        with_layout!(self.shape, |layout| probe::dispatch(Ask {
            filter: self,
            layout,
            keys,
            answers: found,
            answer: IsIn
        }));
    }

    fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.false_positive_rate())
    }
}

impl Merge for DLeft {
    /// Inserts every stored fingerprint of the other, each as often as it is there. The two may have
    /// grown apart, since growing does not change a fingerprint; all else must be equal.
    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        super::same("seed", self.seed == other.seed)?;
        super::same("subtables", self.shape.subtables == other.shape.subtables)?;
        super::same("fingerprints", self.shape.fingerprints() == other.shape.fingerprints())?;
        super::same("counter", self.shape.counter == other.shape.counter)?;
        super::same("remainders", self.passed_mask() == other.passed_mask())?;
        // What is refused half-way is undone by going back to a copy.
        let Ok(before) = self.try_clone() else {
            return Err(Refused::Full { stored: self.occupied, cells: self.shape.all_cells() });
        };
        for (fingerprint, copies) in other.fingerprints() {
            for _ in 0..copies {
                if let Err(why) = self.insert_fingerprint(fingerprint) {
                    *self = before;
                    return Err(why);
                }
            }
        }
        Ok(())
    }
}

impl DLeft {
    fn insert_fingerprint(&mut self, fingerprint: u64) -> Result<(), Refused> {
        let places = self.places_of::<{ SUBTABLES_MOST as usize }>(fingerprint);
        with_layout!(self.shape, |layout| self.insert_at(BASE, layout, &places))
    }
}

#[cfg(test)]
mod tests;
