//! Exact counts for each number of a small universe, in memory that grows with the keys in use.
//!
//! The counterpart of [`Adaptive`](super::Adaptive) with counters, for example packets for each
//! host of a /24. It lists the keys that have a count, in order, while the list is smaller than a
//! table with a counter for every key. Then it keeps the table.
//! ```text
//! list   | key count | key count | ..      table   | count | count | count | ..
//! ```
//! In a /24 with 32-bit counters, four hosts take 32 bytes: eight bytes per entry, and the number
//! of entries is rounded up to a power of two. All 256 hosts take 1 KiB. A
//! [`Sketch`](super::Sketch) of zone 3 takes 256 bytes to be exact for the same four hosts. Use a
//! sketch where summaries are added and subtracted without decoding.

use super::{NO_SEED, within};
use crate::{
    Certainty, Estimate, Infeasible, Malformed, Refused, Seed,
    saved::{self, Save},
};

/// The largest universe.
pub(crate) const UNIVERSE_MAX: u64 = 1 << 16;
/// The bytes of an entry of the list: key and count, 32 bits each.
const ENTRY: usize = 8;

/// Exact counts of numbers of a small universe. See the [module](self).
///
/// ```
/// use sidon::{Estimate, Seed, zone::Hosts};
///
/// let mut packets = Hosts::new(256)?;
/// packets.add(&7, 100)?;
/// packets.add(&200, 5)?;
/// packets.subtract(7, 40)?;
/// assert_eq!(packets.estimate(&7), Estimate::exact(60));
/// assert_eq!(packets.list(), [(7, 60), (200, 5)]);
/// let saved = Hosts::from_bytes(&packets.to_bytes(), Seed(0))?;
/// packets.merge(&saved)?;
/// assert_eq!(packets.list(), [(7, 120), (200, 10)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Hosts {
    universe: u64,
    held: Held,
    active: u64,
}

#[derive(Debug, Clone)]
enum Held {
    /// Ordered by key.
    List(Vec<(u32, u32)>),
    Table(Vec<u32>),
}

impl Hosts {
    /// All counts zero, for keys below `universe`, 1 to 2^16.
    pub fn new(universe: u64) -> Result<Self, Infeasible> {
        Infeasible::unless_within("universe", universe, 1, UNIVERSE_MAX)?;
        Ok(Hosts { universe, held: Held::List(Vec::new()), active: 0 })
    }

    /// Subtracts an amount from a key's count. An amount above the count is refused. On `Err`,
    /// nothing has changed.
    pub fn subtract(&mut self, key: u64, amount: u64) -> Result<(), Refused> {
        within(key, self.universe)?;
        let count = u64::from(self.count(key));
        let Some(rest) = count.checked_sub(amount) else { return Err(Refused::NotStored) };
        if amount > 0 {
            self.set(key, rest as u32);
        }
        Ok(())
    }

    /// The number of keys that have a count.
    pub fn len(&self) -> u64 {
        self.active
    }

    /// Whether no key has a count.
    pub fn is_empty(&self) -> bool {
        self.active == 0
    }

    /// The keys that have a count, in order, each with its count.
    pub fn list(&self) -> Vec<(u64, u64)> {
        match &self.held {
            Held::List(list) => {
                list.iter().map(|&(key, count)| (key.into(), count.into())).collect()
            }
            Held::Table(table) => {
                let all = table.iter().enumerate().map(|(key, &n)| (key as u64, u64::from(n)));
                all.filter(|&(_, count)| count > 0).collect()
            }
        }
    }

    /// The bytes of the counts.
    pub fn memory_bytes(&self) -> u64 {
        let bytes = match &self.held {
            Held::List(list) => list.capacity() * ENTRY,
            Held::Table(table) => table.len() * 4,
        };
        bytes as u64
    }

    /// Sets all counts to zero.
    pub fn clear(&mut self) {
        (self.held, self.active) = (Held::List(Vec::new()), 0);
    }

    /// Always `Certain`: every count is exact.
    pub fn certainty(&self) -> Certainty {
        Certainty::Certain
    }

    /// Adds the counts of another structure of the same universe. On `Err`, nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        if self.universe != other.universe {
            return Err(Refused::Mismatch { field: "universe" });
        }
        let ceiling = u32::MAX.into();
        let sum = |(key, more)| (key, u64::from(self.count(key)) + more);
        let sums: Vec<(u64, u64)> = other.list().into_iter().map(sum).collect();
        if sums.iter().any(|&(_, sum)| sum > ceiling) {
            return Err(Refused::Overflow { ceiling });
        }
        for (key, sum) in sums {
            self.set(key, sum as u32);
        }
        Ok(())
    }

    /// The byte image: each key that has a count, and the count.
    pub fn to_bytes(&self) -> Vec<u8> {
        let table = u64::from(matches!(self.held, Held::Table(_)));
        let entry =
            |(key, count): (u64, u64)| [(key as u32).to_le_bytes(), (count as u32).to_le_bytes()];
        let payload: Vec<u8> = self.list().into_iter().flat_map(entry).flatten().collect();
        let fields = [self.universe, table, self.active];
        saved::write(<Self as Save>::KIND, NO_SEED, &fields, &payload)
    }

    /// The structure of a byte image.
    ///
    /// Accepts any seed, because no key is hashed.
    pub fn from_bytes(image: &[u8], _: Seed) -> Result<Self, Malformed> {
        let ([universe, table, active], payload) =
            saved::read(image, <Self as Save>::KIND, NO_SEED)?;
        let field = |name| Malformed::Field { name };
        let mut read = Hosts::new(universe)?;
        if active > universe {
            return Err(field("active"));
        }
        saved::justify(payload, active * ENTRY as u64)?;
        match table {
            0 => {}
            1 => read.held = Held::Table(vec![0; universe as usize]),
            _ => return Err(field("table")),
        }
        let mut above = 0;
        for entry in payload.as_chunks::<ENTRY>().0 {
            let [key, count] = [0, 4].map(|at| {
                u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
            });
            if u64::from(key) < above || u64::from(key) >= universe || count == 0 {
                return Err(field("entries"));
            }
            above = u64::from(key) + 1;
            read.set(key.into(), count);
        }
        // As many entries would have made the list a table.
        if table == 0 && matches!(read.held, Held::Table(_)) {
            return Err(field("table"));
        }
        Ok(read)
    }

    fn count(&self, key: u64) -> u32 {
        let key = key as u32;
        match &self.held {
            Held::List(list) => {
                list.binary_search_by_key(&key, |entry| entry.0).map_or(0, |at| list[at].1)
            }
            Held::Table(table) => table[key as usize],
        }
    }

    fn set(&mut self, key: u64, count: u32) {
        let key = key as u32;
        match &mut self.held {
            Held::Table(table) => {
                let old = std::mem::replace(&mut table[key as usize], count);
                self.active += u64::from(old == 0 && count > 0);
                self.active -= u64::from(old > 0 && count == 0);
            }
            Held::List(list) => match list.binary_search_by_key(&key, |entry| entry.0) {
                Ok(at) if count == 0 => {
                    list.remove(at);
                    self.active -= 1;
                }
                Ok(at) => list[at].1 = count,
                Err(_) if count == 0 => {}
                Err(at) => {
                    self.active += 1;
                    let room = (list.len() + 1).next_power_of_two();
                    if list.len() < list.capacity() || room * ENTRY < self.universe as usize * 4 {
                        list.reserve_exact(room - list.len());
                        list.insert(at, (key, count));
                        return;
                    }
                    let mut table = vec![0; self.universe as usize];
                    for &(key, count) in list.iter() {
                        table[key as usize] = count;
                    }
                    table[key as usize] = count;
                    self.held = Held::Table(table);
                }
            },
        }
    }
}

impl Hosts {
    /// Adds an amount to the count of a number. On `Err`, nothing has changed.
    pub fn add(&mut self, &key: &u64, amount: u64) -> Result<(), Refused> {
        within(key, self.universe)?;
        let ceiling = u32::MAX.into();
        let sum = u64::from(self.count(key)).checked_add(amount);
        let Some(sum) = sum.filter(|&sum| sum <= ceiling) else {
            return Err(Refused::Overflow { ceiling });
        };
        self.set(key, sum as u32);
        Ok(())
    }

    /// The count of a number.
    ///
    /// Always exact.
    pub fn estimate(&self, &key: &u64) -> Estimate {
        Estimate::exact(if key < self.universe { self.count(key).into() } else { 0 })
    }
}

impl Save for Hosts {
    const KIND: u16 = crate::saved::kinds::HOSTS.number;

    fn to_bytes(&self) -> Vec<u8> {
        Hosts::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Hosts::from_bytes(image, seed)
    }
}

/// Two structures are equal if their universes and counts are.
impl PartialEq for Hosts {
    fn eq(&self, other: &Self) -> bool {
        self.universe == other.universe && self.list() == other.list()
    }
}
