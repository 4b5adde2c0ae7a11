//! The positions of a key's cells: anywhere in the table, or in a few cache lines of it.
//!
//! ```text
//! Anywhere      | . . x . . . | . . . . . . | x . . . x . | . . . x . . |   k lines per key
//! Lines(2)      | . . . . . . | x . x . . . | . . . . . . | . x . . . x |   2 lines per key
//! ```
//! In a table larger than the cache, each line of a key costs a memory access, and further cells of
//! the same line cost nearly nothing. Some lines get more keys than others, which raises the
//! false-positive rate. To make up for it, a table needs a few per cent more memory with two or
//! three lines per key. With one line it needs a third more at a rate of 0.1 %.

use crate::{
    Digest, Infeasible,
    batch::NEAR,
    key::spread,
    simd::{self, Isa, LINE, NIBBLES_MAX},
};

/// The positions of a key's cells.
///
/// ```
/// use sidon::{Seed, set::{Counting, Overflow, Spread, counting::Shape}};
///
/// let (overflow, spread) = (Overflow::Refuse, Spread::Lines(2));
/// let shape = Shape { counters: 1_280, hashes: 6, width: 4, overflow, spread };
/// assert!(Counting::from_keys(shape, Seed(1), ["key"])?.contains("key"));
/// // A line has 128 counters of four bits.
/// let why = Counting::new(Shape { counters: 1_300, ..shape }, Seed(1)).unwrap_err();
/// assert_eq!(why.name(), Some("counters"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Spread {
    /// Anywhere in the table, independently: the classic mapping, which needs the fewest cells.
    #[default]
    Anywhere,
    /// In this many cache lines, 1 to 8, with the same number of cells in each. The width of a cell
    /// must be a power of two, and the table a whole number of lines.
    Lines(u32),
}

/// The most lines of a key.
pub(crate) const LINES_MAX: u32 = 8;
/// The number of upper bits of a word that select cells before the next word is computed. All of
/// them are uniform in tables of up to 2^24 lines.
const WORD_BITS: u32 = 40;

/// A mapping from a digest to cells in a few lines.
#[derive(Debug, Clone, Copy)]
pub(in crate::set) struct InLines {
    /// Lines per key, and cells of a key per line.
    pub(in crate::set) lines: u32,
    pub(in crate::set) each: u32,
    /// Lines of the table.
    all: u64,
}

/// Checks whether `hashes` cells of a key can spread over a table of `cells` cells of `width` bits.
/// Returns the mapping if they are in lines. `name` is the shape's field that holds `cells`.
pub(in crate::set) fn check(
    (name, cells): (&'static str, u64),
    width: u32,
    hashes: u32,
    spread: Spread,
) -> Result<Option<InLines>, Infeasible> {
    Infeasible::unless_within("hashes", hashes.into(), 1, spread::MAX.into())?;
    Infeasible::unless_within(name, cells, 1, u64::MAX)?;
    match spread {
        Spread::Anywhere => Ok(None),
        Spread::Lines(lines) => InLines::new((name, cells), width, hashes, lines).map(Some),
    }
}

/// The cells of a key in one line: a mask with a one in the lowest bit of each.
#[derive(Debug, Clone, Copy)]
pub(in crate::set) struct Ones {
    /// The offset of the line.
    pub(in crate::set) offset: usize,
    pub(in crate::set) words: [u64; LINE / 8],
}

impl Ones {
    pub(in crate::set) const NONE: Ones = Ones { offset: 0, words: [0; LINE / 8] };
}

impl InLines {
    /// The mapping onto a table of `cells` cells of `width` bits. `name` is the shape's field that
    /// holds `cells`.
    pub(in crate::set) fn new(
        (name, cells): (&'static str, u64),
        width: u32,
        hashes: u32,
        lines: u32,
    ) -> Result<Self, Infeasible> {
        Infeasible::unless_within("lines", lines.into(), 1, LINES_MAX.min(hashes).into())?;
        Infeasible::unless_multiple("hashes", hashes.into(), lines.into())?;
        let bits = LINE as u64 * 8;
        let width = u64::from(width.max(1));
        if !bits.is_multiple_of(width) {
            let (allowed, near) =
                ("a power of two if cells lie in lines", width.next_power_of_two());
            return Err(Infeasible::NotOneOf { name: "width", got: width, allowed, near });
        }
        Infeasible::unless_multiple(name, cells, bits / width)?;
        Ok(InLines { lines, each: hashes / lines, all: cells / (bits / width) })
    }

    /// The cells of the digest, line by line. `L` is at least the number of lines. Coinciding cells
    /// occur once.
    #[inline(always)]
    pub(in crate::set) fn ones<const L: usize, const W: u32, I: Isa>(
        self,
        isa: I,
        digest: Digest,
        ones: &mut [Ones; L],
    ) {
        let lines = self.lines as usize;
        for (i, ones) in ones[..lines].iter_mut().enumerate() {
            self.in_line::<W, I>(isa, digest, i as u32, ones);
        }
        for i in 1..lines {
            for j in 0..i {
                if ones[i].offset == ones[j].offset {
                    let twice = ones[i].words;
                    for (one, other) in ones[j].words.iter_mut().zip(twice) {
                        *one |= other;
                    }
                    ones[i].words = [0; LINE / 8];
                }
            }
        }
    }

    /// The offset of line `i` of the digest, and the word that selects the cells in it.
    #[inline(always)]
    pub(in crate::set) fn line(self, digest: Digest, i: u32) -> (usize, u64) {
        let (line, word) = self.split(digest, i);
        (line * LINE, word)
    }

    /// The index of line `i` of the digest, and the word that selects the cells in it: the whole
    /// part of a position and its fraction.
    #[inline(always)]
    pub(in crate::set) fn split(self, digest: Digest, i: u32) -> (usize, u64) {
        let (line, word) = spread::split(digest, i, self.all);
        (line as usize, word)
    }

    /// [`split`](Self::split) for each line of the digest.
    #[inline(always)]
    pub(in crate::set) fn splits(self, digest: Digest) -> impl Iterator<Item = (usize, u64)> {
        let lines = spread::splits(digest, 0, self.lines as usize, self.all);
        lines.map(|(line, word)| (line as usize, word))
    }

    /// The share of digests that pass a table of cells of `width` bits, from the probability to
    /// pass in each cell. Given the table, draws are independent, within a line and in lines that
    /// coincide.
    pub(in crate::set) fn passes(self, width: u32, cells: impl Iterator<Item = f64>) -> f64 {
        let in_line = LINE * 8 / width as usize;
        let (mut passes, mut sum, mut lines) = (0.0, 0.0, 0u64);
        for (i, cell) in cells.enumerate() {
            sum += cell;
            if (i + 1) % in_line == 0 {
                passes += (sum / in_line as f64).powi(self.each as i32);
                (sum, lines) = (0.0, lines + 1);
            }
        }
        (passes / lines as f64).powi(self.lines as i32)
    }

    /// Prefetches the lines of the digests, unless the table is in the cache.
    #[inline(always)]
    pub(in crate::set) fn prefetch(self, table: &[u8], digests: &[Digest]) {
        if table.len() > NEAR {
            for &digest in digests {
                for i in 0..self.lines {
                    simd::prefetch(table, self.line(digest, i).0);
                }
            }
        }
    }

    #[inline(always)]
    fn in_line<const W: u32, I: Isa>(self, isa: I, digest: Digest, i: u32, ones: &mut Ones) {
        let (offset, mut word) = self.line(digest, i);
        if W == 4 && self.each <= NIBBLES_MAX {
            *ones = Ones { offset, words: isa.nibble_ones(word, self.each) };
            return;
        }
        *ones = Ones { offset, words: [0; LINE / 8] };
        let mut left = self.each;
        loop {
            let mut rest = word;
            for _ in 0..left.min(fields::<W>()) {
                let (word, place) = cell::<W>(rest);
                ones.words[word] |= 1 << place;
                rest <<= bits::<W>();
            }
            if left <= fields::<W>() {
                return;
            }
            left -= fields::<W>();
            word = spread::again_in_line(word);
        }
    }

    /// Whether one of the cells that `word` selects in a line is zero.
    #[inline(always)]
    pub(in crate::set) fn any_zero<const W: u32, I: Isa>(
        self,
        isa: I,
        line: &[u8; LINE],
        mut word: u64,
    ) -> bool {
        if W == 4 && self.each <= NIBBLES_MAX {
            return isa.any_nibble_zero(line, word, self.each);
        }
        let words = line.as_chunks::<8>().0;
        let mut zero = false;
        let mut left = self.each;
        loop {
            let mut rest = word;
            for _ in 0..left.min(fields::<W>()) {
                let (word, place) = cell::<W>(rest);
                let value = u64::from_le_bytes(words[word]) >> place;
                zero |= value & const { u64::MAX >> (64 - W) } == 0;
                rest <<= bits::<W>();
            }
            if left <= fields::<W>() {
                return zero;
            }
            left -= fields::<W>();
            word = spread::again_in_line(word);
        }
    }
}

/// The number of bits that select a cell of a line.
const fn bits<const W: u32>() -> u32 {
    9 - W.ilog2()
}

/// The number of cells that a word selects.
const fn fields<const W: u32>() -> u32 {
    WORD_BITS / bits::<W>()
}

/// The cell that the upper bits of `rest` select: three bits its word, the others its position in
/// the word.
#[inline(always)]
fn cell<const W: u32>(rest: u64) -> (usize, u64) {
    let place = (rest >> (64 - bits::<W>())) * u64::from(W) % 64;
    ((rest >> 61) as usize, place)
}
