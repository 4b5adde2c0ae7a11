//! Who has sent to whom, and which flows exist, for some minutes, in a few bits each.
//!
//! A pair of hosts and a flow have two directions. Each direction is a key of a Bloom filter, and the
//! filter keeps all keys of a pair or of a flow in one word, so that one cache line answers both: did
//! this end send before, and did the other one? A flow also has a key for the first payload of each
//! direction.
//! ```text
//! digest -> | recent: 64 bits | earlier: 64 bits |     a direction is three bits of a word
//!                     ^ the hand moves: earlier = recent, recent = 0
//! ```
//! The hand visits all words in [`PERIOD`], or sooner if many new keys come, so that at most a third of
//! the bits are set: a direction that was never seen then passes in one case of thirty. A packet moves
//! the hand by at most [`STEPS`] words. A direction that goes on is written again and stays.

use crate::{
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::{Digest, Infeasible, Malformed};

const SECOND: u64 = 1_000_000_000;
/// The time of one round of the hand.
const PERIOD: u64 = 300 * SECOND;
/// The most words that one packet moves the hand by.
const STEPS: u64 = 8;
/// New keys that move the hand by one word.
const KEYS: u64 = 7;
/// Pairs of hosts of which both ends were seen, from which on a capture has both directions.
const TWO_WAY: u64 = 16;
/// Flows of one direction that go on, from which on a capture without pairs has one direction.
const ONE_WAY: u64 = 8;

/// Which ends have sent before a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Met {
    /// The sender of the packet.
    pub(super) forward: bool,
    /// The receiver of the packet.
    pub(super) back: bool,
}

/// The memory of pairs of hosts and of flows.
#[derive(Debug)]
pub(super) struct Contacts {
    words: Vec<[u64; 2]>,
    hand: usize,
    /// When the hand moves next.
    next: u64,
    /// New keys since the hand moved for them.
    fresh: u64,
    /// Pairs of hosts whose second end was seen to answer the first.
    turned: u64,
    /// Pairs of hosts of which one end was seen.
    pairs: u64,
    /// Flows that sent payload to a host that was not seen to send to theirs.
    one_way: u64,
    /// Whether the capture had both directions at some time.
    was_two_way: bool,
}

/// Multipliers that select the bits of the keys of a word.
const KEYS_OF_WORD: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0xd6e8_feb8_6659_fd93];

/// The bits of a key.
#[inline(always)]
fn bits(digest: u64, key: usize) -> u64 {
    let mixed = digest.wrapping_mul(KEYS_OF_WORD[key]) >> 40;
    1 << (mixed & 63) | 1 << (mixed >> 6 & 63) | 1 << (mixed >> 12 & 63)
}

/// The digest of two hosts in either order, from their digests, for one protocol. Whether the first is
/// the higher one.
#[inline(always)]
pub(super) fn pair(ends: [Digest; 2], protocol: u8) -> (u64, bool) {
    let [one, two] = ends.map(|end| end.0);
    let (low, high) = (one.min(two), one.max(two));
    let salted = low.rotate_left(23) ^ u64::from(protocol).wrapping_mul(KEYS_OF_WORD[3]);
    let mixed = salted.wrapping_mul(KEYS_OF_WORD[0]) ^ high;
    (mixed.wrapping_mul(KEYS_OF_WORD[1]).rotate_left(29) ^ mixed, one > two)
}

impl Contacts {
    /// An empty memory of this size.
    pub(super) fn new(bytes: u64) -> Result<Self, Infeasible> {
        let length = (bytes / size_of::<[u64; 2]>() as u64).max(64);
        let length = usize::try_from(length).map_err(|_| Infeasible::Memory { bytes })?;
        let mut words = Vec::new();
        words.try_reserve_exact(length).map_err(|_| Infeasible::Memory { bytes })?;
        words.resize(length, [0; 2]);
        Ok(Contacts {
            words,
            hand: 0,
            next: 0,
            fresh: 0,
            turned: 0,
            pairs: 0,
            one_way: 0,
            was_two_way: false,
        })
    }

    fn place(&self, digest: u64) -> usize {
        ((u128::from(digest) * self.words.len() as u128) >> 64) as usize
    }

    #[inline]
    fn knows(&self, at: usize, bits: u64) -> bool {
        let [recent, earlier] = self.words[at];
        recent & bits == bits || earlier & bits == bits
    }

    /// Writes a key, and returns whether it was there.
    #[inline]
    fn mark(&mut self, at: usize, bits: u64) -> bool {
        let [recent, earlier] = &mut self.words[at];
        if *recent & bits == bits {
            return true;
        }
        let was_there = *earlier & bits == bits;
        *recent |= bits;
        self.fresh += 1;
        was_there
    }

    /// Moves the hand: by the time, and by the new keys.
    #[inline]
    pub(super) fn pass(&mut self, now: u64) {
        let mut steps = self.fresh / KEYS;
        self.fresh %= KEYS;
        if now >= self.next {
            steps += STEPS / 2;
            self.next = now.saturating_add(PERIOD / self.words.len() as u64 * (STEPS / 2));
        }
        for _ in 0..steps.min(STEPS) {
            let [recent, earlier] = &mut self.words[self.hand];
            *earlier = std::mem::take(recent);
            self.hand += 1;
            if self.hand == self.words.len() {
                self.hand = 0;
            }
        }
    }

    /// A packet between two hosts: who sent before? `is_turned` is that of [`pair`]. `counts`: the
    /// packet itself is remembered.
    #[inline]
    pub(super) fn meet_hosts(&mut self, digest: u64, is_turned: bool, counts: bool) -> Met {
        let met = self.meet(digest, is_turned, counts);
        if counts && !met.forward {
            let count = if met.back { &mut self.turned } else { &mut self.pairs };
            *count = count.saturating_add(1);
            // A pair that was never seen passes as one that was, once in thirty times.
            self.was_two_way |= self.turned >= TWO_WAY.max(self.pairs / 8);
        }
        met
    }

    /// A packet of a flow: which end sent before? `is_turned`: the sender is the higher end.
    #[inline]
    pub(super) fn meet(&mut self, digest: u64, is_turned: bool, counts: bool) -> Met {
        let at = self.place(digest);
        let own = bits(digest, usize::from(is_turned));
        let back = self.knows(at, bits(digest, usize::from(!is_turned)));
        let forward = if counts { self.mark(at, own) } else { self.knows(at, own) };
        Met { forward, back }
    }

    /// Remembers that an end of a flow sent payload. Returns whether it is the first.
    #[inline]
    pub(super) fn is_first_payload(&mut self, digest: u64, is_turned: bool) -> bool {
        let at = self.place(digest);
        !self.mark(at, bits(digest, 2 + usize::from(is_turned)))
    }

    /// Whether an end of a flow sent payload.
    pub(super) fn has_payload(&self, digest: u64, is_turned: bool) -> bool {
        self.knows(self.place(digest), bits(digest, 2 + usize::from(is_turned)))
    }

    /// Remembers that a host sends.
    pub(super) fn sends(&mut self, host: Digest) {
        let at = self.place(host.0);
        self.mark(at, bits(host.0, 0));
    }

    /// Whether a host sent anything.
    pub(super) fn has_sent(&self, host: Digest) -> bool {
        self.knows(self.place(host.0), bits(host.0, 0))
    }

    /// Notes a flow that sends payload to a host that was not seen to send to its own.
    pub(super) fn note_one_way(&mut self) {
        self.one_way = self.one_way.saturating_add(1);
    }

    /// Whether the capture has both directions, as far as can be told: some pairs of hosts have, or no
    /// flow goes on without the other direction.
    pub(super) fn is_two_way(&self) -> bool {
        self.was_two_way || self.one_way < ONE_WAY.max(4 * self.turned)
    }
}

impl Resume for Contacts {
    fn save(&self, out: &mut Out) {
        let Contacts { words, hand, next, fresh, turned, pairs, one_way, was_two_way } = self;
        out.numbers(&[*hand as u64, *next, *fresh, *turned, *pairs, *one_way]);
        out.flag(*was_two_way);
        out.numbers(words.as_flattened());
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.hand = bytes.below("hand", self.words.len())?;
        self.next = bytes.number()?;
        self.fresh = bytes.count("fresh")?;
        [self.turned, self.pairs, self.one_way] = bytes.counts("turned")?;
        self.was_two_way = bytes.flag("was_two_way")?;
        for word in self.words.as_flattened_mut() {
            *word = bytes.number()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::{Key, Seed};

    fn digest(number: u64) -> Digest {
        number.digest(Seed(7))
    }

    #[test]
    fn both_directions_are_told_apart_and_forgotten_after_two_rounds() {
        let mut contacts = Contacts::new(16 << 10).unwrap();
        let (there, turned) = pair([digest(1), digest(2)], 17);
        let (back, other) = pair([digest(2), digest(1)], 17);
        assert_eq!((there, turned), (back, !other));
        assert_ne!(there, pair([digest(1), digest(2)], 6).0);
        let none = Met { forward: false, back: false };
        assert_eq!(contacts.meet_hosts(there, turned, true), none);
        assert_eq!(contacts.meet_hosts(there, turned, true), Met { forward: true, back: false });
        assert_eq!(contacts.meet_hosts(there, other, true), Met { forward: false, back: true });
        assert_eq!(contacts.turned, 1);
        assert!(!contacts.has_payload(there, true));
        assert!(contacts.is_first_payload(there, true) && !contacts.is_first_payload(there, true));
        assert!(contacts.has_payload(there, true) && !contacts.has_payload(there, false));
        for step in 0..7_000 {
            contacts.pass(step * SECOND / 5);
        }
        assert_eq!(contacts.meet_hosts(there, turned, false), none);
    }

    #[test]
    fn any_number_of_new_flows_leaves_most_others_unknown() {
        let mut contacts = Contacts::new(64 << 10).unwrap();
        let (mut known, mut all) = (0, 0);
        for number in 0..400_000 {
            contacts.pass(0);
            let met = contacts.meet(digest(number).0, number % 2 == 0, true);
            if number > 100_000 {
                all += 1;
                known += u32::from(met.forward) + u32::from(met.back);
            }
            // The flows of the last packets are known.
            if number > 1_000 {
                let before = number - 1_000;
                assert!(contacts.meet(digest(before).0, before % 2 == 0, false).forward);
            }
        }
        assert!(f64::from(known) < 0.15 * f64::from(all), "{known} of {all}");
    }
}
