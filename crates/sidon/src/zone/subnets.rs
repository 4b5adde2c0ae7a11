//! The exact set of hosts seen, by subnet, for millions of subnets in fixed memory.
//!
//! A subnet has 256 hosts, of which usually few are seen. Each subnet takes one word of 64 bits,
//! which lists up to seven hosts. A subnet with more hosts takes a bitmap of 32 bytes from a pool.
//! ```text
//! words    | 3 . . . . c b a | 7 g f e d c b a | ff . . . . bitmap 1 |
//! bitmaps  | 256 bits | 256 bits | ..
//! ```
//! With one word for every subnet (2^24 for the /24s of IPv4: 128 MiB) the subnet is the index.
//! With fewer, the digest of the subnet selects the word, and the subnet is stored beside it in
//! `subnet_bits` bits. All answers are exact. When the words or the bitmaps run out, a new host is
//! refused and nothing changes.
//!
//! A lookup reads one word, two cache lines if it is hashed, and a bitmap for one subnet in fifty.
//!
//! A hashed subnet has two positions. It is stored in the first free slot at or after the first
//! position, if that is among the first eight slots. Otherwise it is stored in the nearer of the
//! first free slots of both. A search reads at most 64 slots from each position, so no choice of
//! subnets makes it longer. A subnet whose two windows are full is refused. Random subnets are
//! first refused at a load of 0.82; 15 in a million are refused until the table is full.

mod saved;

use super::within;
use crate::{
    Certainty, Digest, Infeasible, Key, Refused, Seed,
    key::spread,
    memory::Memory,
    packed::{self, Packed},
    simd,
};

/// The most hosts that a word lists.
pub(crate) const LISTED_MAX: u32 = 7;
/// The count of a word whose hosts are stored in a bitmap.
const PROMOTED: u64 = 0xff;
/// The bytes of a bitmap.
const BITMAP: usize = 32;
/// The number of slots that a search reads from each position.
const WINDOW: u64 = 64;
/// A search reads the second position only if the first `NEAR` slots of the first one are used.
const NEAR: u64 = 8;

/// The integers that fix the memory.
///
/// ```
/// use sidon::zone::{Subnets, subnets::Shape};
///
/// // A mebibyte for the /24s of IPv4.
/// let shape = Shape::within(1 << 20, 24)?;
/// assert!(Subnets::planned_bytes(shape) <= 1 << 20);
/// assert!(shape.slots < 1 << 24 && shape.subnets() > 70_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of bits of a subnet, 1 to 32: 24 for the /24s of IPv4.
    pub subnet_bits: u32,
    /// The number of words. With `2^subnet_bits` words the subnet is the index. With fewer, at
    /// least 8, seven in eight of the words are used.
    pub slots: u64,
    /// The number of subnets that can have more than seven hosts.
    pub bitmaps: u64,
}

impl Shape {
    /// The shape with the most subnets in at most `bytes` bytes, with one bitmap for every 32
    /// subnets. The traces of the paper's table V need one for every 50 to 80.
    pub fn within(bytes: u64, subnet_bits: u32) -> Result<Self, Infeasible> {
        Infeasible::unless_within("subnet_bits", subnet_bits.into(), 1, 32)?;
        let all = 1u64 << subnet_bits;
        let direct = Shape { subnet_bits, slots: all, bitmaps: all.div_ceil(32) };
        if direct.bytes() <= bytes {
            return Ok(direct);
        }
        // A slot takes eight bytes and the subnet. 32 slots in use share one bitmap of 32 bytes.
        let slots = (bytes.saturating_mul(8) / (64 + u64::from(subnet_bits) + 7)).min(all - 1);
        if slots < 8 {
            let least = if all > 8 { 71 + u64::from(subnet_bits) } else { direct.bytes() };
            Infeasible::unless_within("bytes", bytes, least, u64::MAX)?;
        }
        Ok(Shape { subnet_bits, slots, bitmaps: (slots - slots / 8) / 32 })
    }

    fn check(&self) -> Result<(), Infeasible> {
        Infeasible::unless_within("subnet_bits", self.subnet_bits.into(), 1, 32)?;
        let all = 1u64 << self.subnet_bits;
        let least = if self.is_direct() { 1 } else { all.min(8) };
        Infeasible::unless_within("slots", self.slots, least, all)?;
        Infeasible::unless_within("bitmaps", self.bitmaps, 0, all)
    }

    /// Whether the subnet is the index.
    fn is_direct(&self) -> bool {
        self.slots == 1 << self.subnet_bits
    }

    /// The number of subnets it has room for.
    #[doc(hidden)]
    pub fn subnets(&self) -> u64 {
        if self.is_direct() { self.slots } else { self.slots - self.slots / 8 }
    }

    /// The bytes of its tables.
    pub(crate) fn bytes(&self) -> u64 {
        let keys = if self.is_direct() { 0 } else { self.slots * u64::from(self.subnet_bits) / 8 };
        self.slots
            .saturating_mul(8)
            .saturating_add(keys)
            .saturating_add(self.bitmaps.saturating_mul(32))
    }
}

/// The hosts of many subnets. See the [module](self).
///
/// ```
/// use sidon::{Seed, zone::{Subnets, subnets::Shape}};
///
/// let mut seen = Subnets::new(Shape::within(1 << 20, 24)?, Seed(1))?;
/// let subnet = 0x0a_00_00;
/// assert!(seen.observe(subnet, 7)?);
/// assert!(!seen.observe(subnet, 7)?);
/// seen.observe(subnet, 9)?;
/// assert_eq!((seen.hosts(subnet), seen.list(subnet)), (2, vec![7, 9]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Subnets {
    shape: Shape,
    seed: Seed,
    words: Memory,
    /// The subnet of each word. `None` if the subnet is the index.
    keys: Option<Packed>,
    bitmaps: Memory,
    stored: u64,
    promoted: u64,
}

impl Subnets {
    /// A table without hosts. With a secret seed, an attacker cannot choose subnets that collide.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        let keys = (!shape.is_direct()).then(|| Packed::zeroed(shape.slots, shape.subnet_bits));
        Ok(Subnets {
            shape,
            seed,
            words: Memory::zeroed(shape.slots * 8)?,
            keys: keys.transpose()?,
            bitmaps: Memory::zeroed(shape.bitmaps * BITMAP as u64)?,
            stored: 0,
            promoted: 0,
        })
    }

    /// The bytes that the tables of this shape take, or `u64::MAX` if there are more.
    pub fn planned_bytes(shape: Shape) -> u64 {
        shape.bytes()
    }

    /// Adds a host and returns whether it is new. On `Err`, nothing has changed.
    pub fn observe(&mut self, subnet: u64, host: u8) -> Result<bool, Refused> {
        self.observe_hashed(self.digest(subnet), subnet, host)
    }

    /// [`observe`](Self::observe) for a subnet whose digest under the seed is known.
    #[doc(hidden)]
    pub fn observe_hashed(
        &mut self,
        digest: Digest,
        subnet: u64,
        host: u8,
    ) -> Result<bool, Refused> {
        within(subnet, 1 << self.shape.subnet_bits)?;
        let (slot, word) = match self.find(digest, subnet) {
            Ok(slot) => (slot, self.word(slot)),
            Err(free) => {
                let free = free.filter(|_| self.stored < self.shape.subnets());
                let free = free.ok_or_else(|| self.full())?;
                if let Some(keys) = &mut self.keys {
                    keys.set(free, subnet)?;
                }
                self.stored += 1;
                (free, 0)
            }
        };
        let count = word >> 56;
        if count == PROMOTED {
            let (byte, bit) = bitmap_bit(word, host);
            let byte = &mut self.bitmaps.bytes_mut()[byte];
            let is_new = *byte >> bit & 1 == 0;
            *byte |= 1 << bit;
            return Ok(is_new);
        }
        if holds(word, count, host) {
            return Ok(false);
        }
        if count < LISTED_MAX.into() {
            let listed = word & !(0xff << 56) | u64::from(host) << (8 * count);
            self.set_word(slot, listed | (count + 1) << 56);
            return Ok(true);
        }
        if self.promoted == self.shape.bitmaps {
            let (stored, cells) = (self.promoted, self.shape.bitmaps);
            return Err(Refused::Full { stored, cells });
        }
        let promoted = PROMOTED << 56 | self.promoted;
        self.promoted += 1;
        let hosts = word.to_le_bytes();
        for host in hosts[..LISTED_MAX as usize].iter().copied().chain([host]) {
            let (byte, bit) = bitmap_bit(promoted, host);
            self.bitmaps.bytes_mut()[byte] |= 1 << bit;
        }
        self.set_word(slot, promoted);
        Ok(true)
    }

    /// Whether the host has been seen. Both answers are facts.
    pub fn contains(&self, subnet: u64, host: u8) -> bool {
        let Some(word) = self.word_of(subnet) else { return false };
        let count = word >> 56;
        if count < PROMOTED {
            return holds(word, count, host);
        }
        let (byte, bit) = bitmap_bit(word, host);
        self.bitmaps.bytes()[byte] >> bit & 1 == 1
    }

    /// The number of hosts of the subnet that have been seen.
    pub fn hosts(&self, subnet: u64) -> u32 {
        match self.word_of(subnet) {
            None => 0,
            Some(word) if word >> 56 < PROMOTED => (word >> 56) as u32,
            Some(word) => self.bitmap(word).iter().map(|byte| byte.count_ones()).sum(),
        }
    }

    /// The hosts of the subnet that have been seen, in order.
    pub fn list(&self, subnet: u64) -> Vec<u8> {
        let Some(word) = self.word_of(subnet) else { return Vec::new() };
        let count = word >> 56;
        if count < PROMOTED {
            let mut hosts = word.to_le_bytes()[..count as usize].to_vec();
            hosts.sort_unstable();
            return hosts;
        }
        let bitmap = self.bitmap(word);
        let is_in = |host: &u8| bitmap[usize::from(host / 8)] >> (host % 8) & 1 == 1;
        (0..=255).filter(is_in).collect()
    }

    /// Every subnet with a host that has been seen and its number of hosts, in the order of the
    /// table.
    #[doc(hidden)]
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let used = (0..self.shape.slots).filter(|&slot| self.word(slot) != 0);
        used.map(|slot| {
            let subnet = self.keys.as_ref().map_or(slot, |keys| keys.get(slot));
            (subnet, self.hosts(subnet))
        })
    }

    /// Removes all hosts.
    pub fn clear(&mut self) {
        self.words.bytes_mut().fill(0);
        self.bitmaps.bytes_mut().fill(0);
        if let Some(keys) = &mut self.keys {
            keys.clear();
        }
        (self.stored, self.promoted) = (0, 0);
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The seed that digests the subnets.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The number of subnets with a host that has been seen.
    pub fn len(&self) -> u64 {
        self.stored
    }

    /// Whether no host has been seen.
    pub fn is_empty(&self) -> bool {
        self.stored == 0
    }

    /// The bytes of the tables.
    pub fn memory_bytes(&self) -> u64 {
        self.shape.bytes()
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        let keys = self.keys.as_ref().map(Packed::try_clone).transpose()?;
        let (words, bitmaps) = (self.words.try_clone()?, self.bitmaps.try_clone()?);
        Ok(Subnets { words, keys, bitmaps, ..*self })
    }

    /// Always `Certain`: both answers of [`contains`](Self::contains) are facts.
    pub fn certainty(&self) -> Certainty {
        Certainty::Certain
    }

    /// The number of subnets that have a bitmap.
    #[doc(hidden)]
    pub fn promoted(&self) -> u64 {
        self.promoted
    }

    /// Prefetches the cache lines of a subnet with this digest.
    #[doc(hidden)]
    #[inline]
    pub fn ask_ahead(&self, digest: Digest) {
        if let Some(keys) = &self.keys {
            let slot = spread::position(digest, 0, self.shape.slots) as usize;
            simd::prefetch(self.words.bytes(), slot * 8);
            simd::prefetch(keys.bytes(), slot * self.shape.subnet_bits as usize / 8);
        }
    }

    /// The digest that a subnet is looked up by. Unused, and 0, if the subnet is the index.
    #[inline]
    fn digest(&self, subnet: u64) -> Digest {
        if self.keys.is_some() { subnet.digest(self.seed) } else { Digest(0) }
    }

    fn full(&self) -> Refused {
        Refused::Full { stored: self.stored, cells: self.shape.slots }
    }

    fn word_of(&self, subnet: u64) -> Option<u64> {
        within(subnet, 1 << self.shape.subnet_bits).ok()?;
        self.find(self.digest(subnet), subnet).ok().map(|slot| self.word(slot))
    }

    /// The slot of a subnet. Otherwise, as `Err`, the free slot where it would be stored, if there
    /// is one.
    #[inline]
    fn find(&self, digest: Digest, subnet: u64) -> Result<u64, Option<u64>> {
        let Some(keys) = &self.keys else {
            return if self.word(subnet) == 0 { Err(Some(subnet)) } else { Ok(subnet) };
        };
        let slots = self.shape.slots;
        let first = match self.window(keys, spread::position(digest, 0, slots), subnet) {
            Ok(slot) => return Ok(slot),
            Err(free) => free,
        };
        // Slots are never freed, so a subnet with a free slot near its first position has not been
        // stored elsewhere.
        if let Some((distance, slot)) = first
            && distance < NEAR
        {
            return Err(Some(slot));
        }
        let second = match self.window(keys, spread::position(digest, 1, slots), subnet) {
            Ok(slot) => return Ok(slot),
            Err(free) => free,
        };
        let nearer = [first, second].into_iter().flatten().min_by_key(|(distance, _)| *distance);
        Err(nearer.map(|(_, slot)| slot))
    }

    /// The slot of a subnet in the window that starts at `slot`. Otherwise, as `Err`, the distance
    /// and the slot of the first free one, if there is one.
    #[inline]
    fn window(&self, keys: &Packed, mut slot: u64, subnet: u64) -> Result<u64, Option<(u64, u64)>> {
        let slots = self.shape.slots;
        let words = &self.words.bytes().as_chunks::<8>().0[..slots as usize];
        let (keys, bits) = (keys.bytes(), self.shape.subnet_bits);
        for distance in 0..WINDOW {
            if words[slot as usize] == [0; 8] {
                return Err(Some((distance, slot)));
            }
            if packed::read(keys, bits, slot) == subnet {
                return Ok(slot);
            }
            slot += 1;
            if slot == slots {
                slot = 0;
            }
        }
        Err(None)
    }

    #[inline(always)]
    fn word(&self, slot: u64) -> u64 {
        let at = slot as usize * 8;
        u64::from_le_bytes(self.words.bytes()[at..at + 8].try_into().expect("eight bytes"))
    }

    fn set_word(&mut self, slot: u64, word: u64) {
        let at = slot as usize * 8;
        self.words.bytes_mut()[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn bitmap(&self, word: u64) -> &[u8] {
        let (start, _) = bitmap_bit(word, 0);
        &self.bitmaps.bytes()[start..start + BITMAP]
    }
}

/// Whether `host` is one of the lowest `count` bytes of the word.
#[inline(always)]
fn holds(word: u64, count: u64, host: u8) -> bool {
    const ONES: u64 = u64::MAX / 255;
    let differ = word ^ (ONES * u64::from(host));
    // The sum carries into a byte's highest bit exactly if one of its lower bits is set.
    let low = ONES * 0x7f;
    let zero = !(((differ & low) + low) | differ | low);
    zero & ((1 << (8 * count)) - 1) != 0
}

/// The byte and the bit of a host in the bitmap of a promoted word.
#[inline(always)]
fn bitmap_bit(word: u64, host: u8) -> (usize, u32) {
    let bitmap = (word & u64::from(u32::MAX)) as usize;
    (bitmap * BITMAP + usize::from(host / 8), u32::from(host % 8))
}

/// Two tables are equal if their images are: shape, seed, words and bitmaps.
impl PartialEq for Subnets {
    fn eq(&self, other: &Self) -> bool {
        self.seed == other.seed && self.to_bytes() == other.to_bytes()
    }
}
