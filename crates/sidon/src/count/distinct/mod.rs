//! The number of distinct keys in a fixed number of bytes, with an interval.
//!
//! The digest of a key gives a word, and registers remember facts about the words. The estimate is the number
//! of words that makes these facts most likely. As long as the words themselves fit in the bytes of
//! the registers, up to 256 of them, they are kept as a sorted list and the number is exact.
//! ```text
//! bytes:  | word 64 bits | word | .. up to 256       |     exact
//!         | register 28 bits | register 28 bits | .. |    +- 0.36 / sqrt(registers)
//! ```
//! The bytes depend on the set of keys alone: not on their order, not on repetitions, and not on the way
//! in which parts were merged.
//!
//! An addition reads one register, or searches the list. An estimate reads all registers. Otmar Ertl,
//! "ExaLogLog", EDBT 2025, is the source of the registers; `count/registers.rs` describes them.

mod saved;
#[cfg(test)]
mod tests;

use super::{Interval, registers};
use crate::{
    Certainty, Digest, Infeasible, Key, Refused, Seed, key::digests, memory::Memory, set::same,
};

/// The most words of a list.
const LISTED_MAX: usize = 256;
/// The fewest and the most registers.
pub(crate) const REGISTERS: (u32, u32) = (16, 1 << 20);

/// The integer that fixes a counter of distinct keys.
///
/// ```
/// use sidon::count::{Distinct, distinct::Shape};
///
/// // Two registers take seven bytes.
/// assert_eq!(Distinct::planned_bytes(Shape { registers: 1_000 }), 3_500);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of registers of 28 bits: an even number from 16 to 2^20.
    pub registers: u32,
}

impl Shape {
    pub(crate) fn bytes(self) -> Result<u64, Infeasible> {
        let (least, most) = REGISTERS;
        Infeasible::unless_within("registers", self.registers.into(), least.into(), most.into())?;
        Infeasible::unless_multiple("registers", self.registers.into(), 2)?;
        Ok(registers::bytes_of(self.registers) as u64)
    }
}

/// A counter of distinct keys. See the [module](self).
///
/// ```
/// use sidon::{Seed, count::{Distinct, distinct::Shape}};
///
/// let mut hosts = Distinct::new(Shape { registers: 2_048 }, Seed(1))?;
/// for host in ["10.0.0.1", "10.0.0.2", "10.0.0.1"] {
///     hosts.add(host);
/// }
/// assert_eq!(hosts.count().to_string(), "= 2");
/// for host in 0..100_000u32 {
///     hosts.add(&host);
/// }
/// let count = hosts.count();
/// assert!(count.contains(100_002) && count.most - count.least < 5_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Distinct {
    shape: Shape,
    seed: Seed,
    /// The list of words, or the registers.
    bytes: Memory,
    /// The number of words in the list. `None`: the bytes are registers.
    listed: Option<usize>,
}

impl Distinct {
    /// An empty counter.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let bytes = Memory::zeroed(shape.bytes()?)?;
        Ok(Distinct { shape, seed, bytes, listed: Some(0) })
    }

    /// The bytes of a counter of this shape, or `u64::MAX` if no such counter exists.
    pub fn planned_bytes(shape: Shape) -> u64 {
        shape.bytes().unwrap_or(u64::MAX)
    }

    /// Adds a key. Adding it again changes nothing.
    #[inline]
    pub fn add<K: Key + ?Sized>(&mut self, key: &K) {
        self.add_digest(key.digest(self.seed));
    }

    /// Adds every key, as [`add`](Self::add) does.
    pub fn add_batch<K: Key>(&mut self, keys: &[K]) {
        let mut of = [Digest(0); 64];
        for keys in keys.chunks(of.len()) {
            let of = &mut of[..keys.len()];
            digests(self.seed, keys, of);
            of.iter().for_each(|&digest| self.add_digest(digest));
        }
    }

    #[inline]
    fn add_digest(&mut self, digest: Digest) {
        let word = registers::word(digest.0, 0);
        match self.listed {
            None => {
                registers::insert(self.bytes.bytes_mut(), self.shape.registers, word);
            }
            Some(listed) => self.list(listed, word),
        }
    }

    /// Adds a word to the list of `listed` words, which becomes registers if it is full.
    fn list(&mut self, listed: usize, word: u64) {
        let most = most_listed(self.shape);
        let words = self.bytes.bytes_mut().as_chunks_mut::<8>().0;
        let Err(at) = words[..listed].binary_search_by_key(&word, |word| u64::from_le_bytes(*word))
        else {
            return;
        };
        if listed < most {
            words.copy_within(at..listed, at + 1);
            words[at] = word.to_le_bytes();
            self.listed = Some(listed + 1);
        } else {
            self.end_list();
            registers::insert(self.bytes.bytes_mut(), self.shape.registers, word);
        }
    }

    /// Replaces the list by registers.
    fn end_list(&mut self) {
        let mut words = [[0; 8]; LISTED_MAX];
        let Some(listed) = self.listed.take() else { return };
        words[..listed].copy_from_slice(&self.bytes.bytes().as_chunks::<8>().0[..listed]);
        self.bytes.bytes_mut().fill(0);
        for word in &words[..listed] {
            let word = u64::from_le_bytes(*word);
            registers::insert(self.bytes.bytes_mut(), self.shape.registers, word);
        }
    }

    /// The number of distinct keys. Exact up to 256 keys, or fewer if their digests take more bytes than
    /// the registers.
    pub fn count(&self) -> Interval {
        match self.listed {
            Some(listed) => Interval::exact(listed as u64),
            None => registers::likely(self.bytes.bytes(), self.shape.registers).interval(),
        }
    }

    /// Adds the keys of another counter of the same shape and seed. On `Err`, nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("registers", self.shape == other.shape)?;
        match other.listed {
            Some(listed) => {
                for word in &other.bytes.bytes().as_chunks::<8>().0[..listed] {
                    let word = u64::from_le_bytes(*word);
                    match self.listed {
                        Some(listed) => self.list(listed, word),
                        None => {
                            registers::insert(self.bytes.bytes_mut(), self.shape.registers, word);
                        }
                    }
                }
            }
            None => {
                self.end_list();
                registers::merge(self.bytes.bytes_mut(), other.bytes.bytes(), self.shape.registers);
            }
        }
        Ok(())
    }

    /// Removes every key.
    pub fn clear(&mut self) {
        self.bytes.bytes_mut().fill(0);
        self.listed = Some(0);
    }

    /// Whether no key was added.
    pub fn is_empty(&self) -> bool {
        self.listed == Some(0)
    }

    /// The integer that fixes the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The seed that digests the keys.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The bytes of the registers.
    pub fn memory_bytes(&self) -> u64 {
        Self::planned_bytes(self.shape)
    }

    /// The certainty of [`count`](Self::count): that the interval contains the truth, for keys chosen without
    /// knowing the seed. Two of `n` listed keys have one digest with a probability of at most `n^2 / 2^65`.
    pub fn certainty(&self) -> Certainty {
        match self.listed {
            Some(listed) => Certainty::from_rate((listed as f64).powi(2) / 2f64.powi(65)),
            None => Certainty::WrongAtMost(0.01),
        }
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Distinct { bytes: self.bytes.try_clone()?, ..*self })
    }
}

/// Two counters are equal if their saved bytes are.
impl PartialEq for Distinct {
    fn eq(&self, other: &Self) -> bool {
        self.seed == other.seed && self.to_bytes() == other.to_bytes()
    }
}

/// The most words of the list of this shape.
fn most_listed(shape: Shape) -> usize {
    (registers::bytes_of(shape.registers) / 8).min(LISTED_MAX)
}
