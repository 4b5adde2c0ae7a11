//! The digest function: rounds of AES whose round keys are the seed plus constants.
//!
//! ```text
//! block 0        block 1                  last block
//!    |              |                         |
//! M [+] 4 rounds - (+) 4 rounds - .. 4 rounds - (+) 6 rounds --> lower 64 bits
//! ```
//! The bytes of a key fill blocks of 16; zeros fill the last block. `[+]` adds the two 64-bit halves
//! modulo 2^64, `(+)` is exclusive or. The mask `M` is the seed with a constant, each half times
//! `2n + 1` for a key of `n` bytes. The key of round `i` is the seed with constant `i`.
//!
//! # Chosen keys
//!
//! An attacker who knows neither the seed nor a digest wants two keys that collide.
//!
//! - Two keys of one length and at most 16 bytes never agree in all 128 bits of the state. No pair is
//!   known that agrees in the lower 64 with a probability above 2^-64.
//! - Two keys of at most 16 bytes and of lengths `a` and `b` collide if `2(a - b)` times the mask is
//!   the difference of the blocks, in both halves. An equation modulo 2^64 has at most 32 solutions
//!   then, so the probability is at most 2^-118. A seed with a zero half has 64 unknown bits, and
//!   only the equation of the other half protects: 2^-59. Exclusive or in place of the sum would not
//!   do, because the exclusive or of two multiples of a number is far from uniform.
//! - Longer keys pass four rounds between two blocks. Under independent round keys, four rounds take no
//!   difference to a chosen one with a probability above 2^-113. The round keys here are not
//!   independent: they differ by constants. The bound follows from Keliher and Sui, "Exact maximum
//!   expected differential and linear probability for two-round Advanced Encryption Standard", 2007.
//!   Pelican chains blocks in this way (Daemen and Rijmen, 2005).
//!
//! # Limits
//!
//! The function is sound for attackers who are shown no digests, no fingerprints and no refusals. It
//! is no message authentication code. With five last rounds, the states of 2^32 keys add up to zero
//! before the fifth round. An attacker then computes the seed within minutes from 2^33 chosen keys
//! and their digests. Six last rounds stop this attack. Nobody has shown that they stop others.

use super::{Digest, Seed};
use crate::simd::{Isa, Portable};

/// Rounds between two blocks.
const BETWEEN: usize = 4;
/// Rounds after the last block.
const LAST: usize = 6;

/// The constants of the mask and of the rounds: the first 896 bits of the fraction of pi, so that
/// nobody chose them.
pub(super) const CONSTANTS: [[u64; 2]; 1 + LAST] = [
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344],
    [0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89],
    [0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6c],
    [0xc0ac_29b7_c97c_50dd, 0x3f84_d5b5_b547_0917],
    [0x9216_d5d9_8979_fb1b, 0xd131_0ba6_98df_b5ac],
    [0x2ffd_72db_d01a_dfb7, 0xb8e1_afed_6a26_7e96],
    [0xba7c_9045_f12c_7f99, 0x24a1_9947_b391_6cf7],
];

/// The function under one seed.
#[derive(Clone, Copy)]
pub(super) struct Cipher<I: Isa> {
    isa: I,
    mask: [u64; 2],
    rounds: [I::Block; LAST],
}

impl<I: Isa> Cipher<I> {
    #[inline(always)]
    pub(super) fn new(isa: I, seed: Seed) -> Self {
        let key = |i: usize| keyed(seed, CONSTANTS[i]);
        let round = |i: usize| isa.block(key(i));
        let rounds = [round(1), round(2), round(3), round(4), round(5), round(6)];
        Cipher { isa, mask: key(0), rounds }
    }

    /// The digest of a key.
    #[inline(always)]
    pub(super) fn digest(&self, key: &[u8]) -> Digest {
        Digest(self.isa.low_half(self.state(key)))
    }

    /// The state after the last round.
    #[inline(always)]
    fn state(&self, key: &[u8]) -> I::Block {
        let Cipher { isa, mask, rounds } = *self;
        let odd = 2 * key.len() as u64 + 1;
        let mut state = isa.block([mask[0].wrapping_mul(odd), mask[1].wrapping_mul(odd)]);
        if key.len() <= 16 {
            state = isa.add(state, isa.block(last_block(key, 0)));
        } else {
            state = isa.add(state, isa.block([word(key, 0), word(key, 8)]));
            let mut from = 16;
            loop {
                for round in &rounds[..BETWEEN] {
                    state = isa.aes_round(state, *round);
                }
                if key.len() - from <= 16 {
                    break;
                }
                state = isa.xor(state, isa.block([word(key, from), word(key, from + 8)]));
                from += 16;
            }
            state = isa.xor(state, isa.block(last_block(key, from)));
        }
        for round in rounds {
            state = isa.aes_round(state, round);
        }
        state
    }
}

/// 64 bits that depend on the seed alone: the *upper* half of the state for a fixed text. A digest is
/// always a lower half, so no key has this value for its digest, except by chance. The text has two
/// blocks and passes ten rounds, as many as AES-128 has, because files show the value.
pub(super) fn check_value(seed: Seed) -> u64 {
    Cipher::new(Portable, seed).state(b"sidon: the check value of a seed")[1]
}

/// A constant under the seed.
#[inline(always)]
fn keyed(seed: Seed, constant: [u64; 2]) -> [u64; 2] {
    [seed.0 as u64 ^ constant[0], (seed.0 >> 64) as u64 ^ constant[1]]
}

/// Eight bytes of the key.
#[inline(always)]
fn word(key: &[u8], from: usize) -> u64 {
    match key.get(from..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => 0,
    }
}

/// The rest of the key from `from`, at most 16 bytes, filled up with zeros. Reads and shifts
/// overlapping words, so that a key of at least eight bytes is not read byte by byte.
#[inline(always)]
fn last_block(key: &[u8], from: usize) -> [u64; 2] {
    let rest = key.len() - from;
    match rest {
        16 => [word(key, from), word(key, from + 8)],
        9..=15 => [word(key, from), word(key, key.len() - 8) >> (8 * (16 - rest))],
        8 => [word(key, from), 0],
        0 => [0, 0],
        _ if key.len() >= 8 => [word(key, key.len() - 8) >> (8 * (8 - rest)), 0],
        4..=7 => {
            let four = |from: usize| match key[from..].first_chunk() {
                Some(bytes) => u64::from(u32::from_le_bytes(*bytes)),
                None => 0,
            };
            [four(from) | four(key.len() - 4) << (8 * (rest - 4)), 0]
        }
        _ => {
            let byte = |i: usize| u64::from(key[from + i]) << (8 * i);
            [byte(0) | byte(rest / 2) | byte(rest - 1), 0]
        }
    }
}
