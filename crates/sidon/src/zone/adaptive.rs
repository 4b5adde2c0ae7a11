//! An exact set of numbers of a small universe, in as few words as its members need.
//!
//! Two representations of a set that is usually small and may grow to the whole universe. Both end
//! in a bitmap, and both keep only the words of their present stage:
//! ```text
//! list     | count | 1st | 2nd | .. |  one word, two, four ..              | bitmap |
//! zones    | code of zone 3 | listed, and put into a code of zone 7 | ..   | bitmap |
//! ```
//! For a /24, a list holds 7 hosts in one word of 64 bits and 15 in two. A code holds 3 and 7. So
//! [`List`](Way::List) is the default, and [`Zones`](Way::Zones) exists for comparison.
//! `sidon lab run 003.adaptive` compares them over all 2^24 subnets, with the source counts of
//! table V of the paper. A code is the better choice where summaries are merged without decoding; then use a
//! [`Filter`](super::Filter).
//!
//! A set allocates memory when it moves to a larger stage. For many sets in fixed memory, use
//! [`Subnets`](super::Subnets).

use super::{
    NO_SEED,
    code::{self, Any, Code},
    within,
};
use crate::{
    Certainty, Infeasible, Malformed, Refused, Seed, plan,
    saved::{self, Save},
};
use std::sync::Arc;

/// The largest universe. Its bitmap has 8 KiB.
pub(crate) const UNIVERSE_MAX: u64 = 1 << 16;

/// The representation of a set before it becomes a bitmap.
///
/// ```
/// use sidon::internals::{Ladder, Way};
///
/// // The most members and the bytes of the first stage.
/// let first = |way| Ladder::new(256, way).unwrap().stages().next();
/// assert_eq!((first(Way::List), first(Way::Zones)), (Some((7, 8)), Some((3, 8))));
/// ```
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// A list of the members.
    #[default]
    List,
    /// The bits of a code with a large enough zone.
    Zones,
}

/// The stages of sets over one universe, computed once and shared.
///
/// ```
/// use sidon::internals::{Ladder, Way};
///
/// // Millions of sets share one ladder.
/// let ladder = Ladder::new(256, Way::List)?;
/// let sets = [ladder.empty(), ladder.empty()];
/// assert_eq!(ladder.stages().collect::<Vec<_>>(), [(7, 8), (15, 16), (256, 32)]);
/// assert!(sets.iter().all(|set| set.memory_bytes() == 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    universe: u64,
    way: Way,
    steps: Arc<[Step]>,
}

/// A stage: the most members it holds, and its number of words.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    members: u64,
    words: usize,
    held: Held,
}

#[derive(Debug, Clone, PartialEq)]
enum Held {
    /// Entries of this many bits. The first entry is the number of members.
    List(u32),
    Code(Any),
    Bitmap,
}

impl Ladder {
    /// The stages for sets of numbers below `universe`, 1 to 2^16.
    pub fn new(universe: u64, way: Way) -> Result<Self, Infeasible> {
        Infeasible::unless_within("universe", universe, 1, UNIVERSE_MAX)?;
        let bitmap = universe.div_ceil(64) as usize;
        let mut steps = Vec::new();
        match way {
            Way::List => {
                let width = (universe - 1).max(1).ilog2() + 1;
                let mut words = 1;
                while words < bitmap {
                    let members = words as u64 * 64 / u64::from(width) - 1;
                    steps.push(Step { members, words, held: Held::List(width) });
                    words *= 2;
                }
            }
            Way::Zones => {
                let mut members = 3;
                while let Some(shape) = plan::zone::least_polynomials(universe, members) {
                    let words = shape.cells().div_ceil(64) as usize;
                    if words >= bitmap {
                        break;
                    }
                    let code = shape.code()?;
                    let members_of = code.zone();
                    steps.push(Step { members: members_of, words, held: Held::Code(code) });
                    members = 2 * members + 1;
                }
            }
        }
        steps.push(Step { members: universe, words: bitmap, held: Held::Bitmap });
        Ok(Ladder { universe, way, steps: steps.into() })
    }

    /// The stages, each as the number of members it holds and its bytes.
    pub fn stages(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.steps.iter().map(|step| (step.members, 8 * step.words as u64))
    }

    /// An empty set with these stages.
    pub fn empty(&self) -> Adaptive {
        Adaptive { ladder: self.clone(), words: vec![0; self.step(0).words], members: 0 }
    }

    /// The stage of a set of `members` members.
    fn step(&self, members: u64) -> &Step {
        let step = self.steps.iter().find(|step| members <= step.members);
        step.expect("the bitmap holds the universe")
    }
}

/// A set of numbers of a small universe. See the [module](self).
///
/// ```
/// use sidon::{Certainty, zone::Adaptive};
///
/// let mut hosts = Adaptive::new(256)?;
/// for host in [200, 1, 77, 1] {
///     hosts.insert(&host)?;
/// }
/// assert_eq!(hosts.list(), [1, 77, 200]);
/// assert_eq!((hosts.contains(&78), hosts.certainty()), (false, Certainty::Certain));
/// assert!(hosts.insert(&256).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Adaptive {
    ladder: Ladder,
    words: Vec<u64>,
    members: u64,
}

impl Adaptive {
    /// An empty set, held as a list and then as a bitmap. Its clones share what describes the stages.
    pub fn new(universe: u64) -> Result<Self, Infeasible> {
        Ok(Ladder::new(universe, Way::default())?.empty())
    }

    /// The number of members.
    pub fn len(&self) -> u64 {
        self.members
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// The bytes of the present stage.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.words.len() as u64
    }

    /// Removes every member and returns to the first stage.
    pub fn clear(&mut self) {
        *self = self.ladder.empty();
    }

    /// Always `Certain`: both answers of `contains` are facts.
    pub fn certainty(&self) -> Certainty {
        Certainty::Certain
    }

    /// The members in order.
    pub fn list(&self) -> Vec<u64> {
        match &self.step().held {
            &Held::List(width) => {
                (1..=self.members).map(|i| entry(&self.words, width, i)).collect()
            }
            Held::Code(code) => {
                code::list(code, |cell| self.bit(cell), u64::MAX).unwrap_or_default()
            }
            Held::Bitmap => (0..self.ladder.universe).filter(|&key| self.bit(key)).collect(),
        }
    }

    fn step(&self) -> &Step {
        self.ladder.step(self.members)
    }

    #[inline(always)]
    fn bit(&self, bit: u64) -> bool {
        self.words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Adds a new member to a stage with room for it.
    fn put(&mut self, key: u64) {
        self.members += 1;
        let Adaptive { ladder, words, members } = self;
        let mut set = |bit: u64| words[(bit / 64) as usize] |= 1 << (bit % 64);
        match &ladder.step(*members).held {
            &Held::List(width) => {
                // Keeps the list in order: larger members move up by one.
                let mut place = *members;
                while place > 1 && entry(words, width, place - 1) > key {
                    let above = entry(words, width, place - 1);
                    set_entry(words, width, place, above);
                    place -= 1;
                }
                set_entry(words, width, place, key);
                set_entry(words, width, 0, *members);
            }
            Held::Code(code) => code.positions(key).for_each(set),
            Held::Bitmap => set(key),
        }
    }
}

#[inline(always)]
fn entry(words: &[u64], width: u32, index: u64) -> u64 {
    let bit = index * u64::from(width);
    let (word, shift) = ((bit / 64) as usize, (bit % 64) as u32);
    let mut value = words[word] >> shift;
    if shift + width > 64 {
        value |= words[word + 1] << (64 - shift);
    }
    value & ((1 << width) - 1)
}

fn set_entry(words: &mut [u64], width: u32, index: u64, value: u64) {
    let bit = index * u64::from(width);
    let (word, shift) = ((bit / 64) as usize, (bit % 64) as u32);
    let mask = (1u64 << width) - 1;
    words[word] = words[word] & !(mask << shift) | value << shift;
    if shift + width > 64 {
        let done = 64 - shift;
        words[word + 1] = words[word + 1] & !(mask >> done) | value >> done;
    }
}

impl Adaptive {
    /// Stores a number. On `Err`, nothing has changed.
    pub fn insert(&mut self, &key: &u64) -> Result<(), Refused> {
        within(key, self.ladder.universe)?;
        if self.contains(&key) {
            return Ok(());
        }
        let (now, next) = (self.step(), self.ladder.step(self.members + 1));
        if now == next {
            self.put(key);
            return Ok(());
        }
        // Promotion: list the members and add them to the larger stage.
        let words = next.words;
        let members = self.list();
        self.words = vec![0; words];
        let ladder = Ladder { steps: Arc::new([next.clone()]), ..self.ladder.clone() };
        let mut promoted = Adaptive { ladder, words: std::mem::take(&mut self.words), members: 0 };
        members.into_iter().chain([key]).for_each(|key| promoted.put(key));
        (self.words, self.members) = (promoted.words, promoted.members);
        Ok(())
    }

    /// Whether the number may be stored. `false` is certain.
    ///
    /// A number outside the universe is never contained.
    pub fn contains(&self, &key: &u64) -> bool {
        if key >= self.ladder.universe {
            return false;
        }
        match &self.step().held {
            &Held::List(width) => (1..=self.members).any(|i| entry(&self.words, width, i) == key),
            Held::Code(code) => match code.column(key) {
                Some(column) => {
                    self.words.iter().zip(column).all(|(word, column)| word & column == *column)
                }
                None => code.positions(key).all(|cell| self.bit(cell)),
            },
            Held::Bitmap => self.bit(key),
        }
    }

    /// Adds what another one of the same code stores. On `Err`, nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        if self.ladder.universe != other.ladder.universe {
            return Err(Refused::Mismatch { field: "universe" });
        }
        other.list().iter().try_for_each(|key| self.insert(key))
    }

    /// The byte image.
    pub fn to_bytes(&self) -> Vec<u8> {
        let way = match self.ladder.way {
            Way::List => 0,
            Way::Zones => 1,
        };
        let payload: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let fields = [self.ladder.universe, way, self.members];
        saved::write(<Self as Save>::KIND, NO_SEED, &fields, &payload)
    }

    /// The structure of a byte image.
    ///
    /// Accepts any seed, because no key is hashed.
    pub fn from_bytes(image: &[u8], _: Seed) -> Result<Self, Malformed> {
        let ([universe, way, members], payload) =
            saved::read(image, <Self as Save>::KIND, NO_SEED)?;
        let field = |name| Malformed::Field { name };
        let way = match way {
            0 => Way::List,
            1 => Way::Zones,
            _ => return Err(field("way")),
        };
        let ladder = Ladder::new(universe, way)?;
        if members > universe {
            return Err(field("members"));
        }
        saved::justify(payload, 8 * ladder.step(members).words as u64)?;
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let words = payload.chunks_exact(8).map(word).collect();
        let read = Adaptive { ladder, words, members };
        // A set built from the members read must equal the one read. This proves that the list is
        // in order, inside the universe and complete, and that no other bit is set.
        let mut again = read.ladder.empty();
        for key in read.list() {
            again.insert(&key).map_err(|_| field("members"))?;
        }
        if again.members != read.members || again.words != read.words {
            return Err(field("members"));
        }
        Ok(read)
    }
}

impl Save for Adaptive {
    const KIND: u16 = crate::saved::kinds::ADAPTIVE.number;

    fn to_bytes(&self) -> Vec<u8> {
        Adaptive::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Adaptive::from_bytes(image, seed)
    }
}

/// Two sets are equal if their universes and members are.
impl PartialEq for Adaptive {
    fn eq(&self, other: &Self) -> bool {
        self.ladder.universe == other.ladder.universe && self.list() == other.list()
    }
}
