//! The digest function: a key goes through rounds of AES that the seed has keyed.
//!
//! ```text
//! block 0      block 1                  last block
//!    |            |                         |
//! M -+- 4 rounds -+- 4 rounds - .. 4 rounds -+- 5 rounds --> lower 64 bits
//! ```
//! `+` is exclusive or. A key's bytes fill blocks of 16, the last one filled up with zeros; the
//! mask `M` depends on the seed and on the key's length, so that a key and the same key with zeros
//! behind it begin from masks whose difference nobody can tell. Round `i` adds the seed and a
//! constant.
//!
//! What it rests on: under independent round keys, four rounds of AES take no difference of two
//! inputs to a chosen one with a chance above 2^-113 (Keliher and Sui, "Exact maximum expected
//! differential and linear probability for two-round Advanced Encryption Standard", 2007, and the
//! bound for four rounds that follows); and chaining blocks by four rounds is how Pelican makes a
//! message authentication code (Daemen and Rijmen, 2005). Two keys of one block and one length never
//! agree in all 128 bits; that they agree in the 64 that are kept is as likely as for random bits.
//! It is a keyed function for tables, not a code for messages: positions come from it, and nobody is
//! shown a digest.

use super::{Digest, Seed};
use crate::probe::Isa;

/// Rounds between two blocks.
const BETWEEN: usize = 4;
/// Rounds after the last block.
const LAST: usize = 5;

/// The mask's constant and the rounds': the first 768 bits of pi's fraction, so that nobody chose
/// them.
const CONSTANTS: [[u64; 2]; 1 + LAST] = [
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344],
    [0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89],
    [0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6c],
    [0xc0ac_29b7_c97c_50dd, 0x3f84_d5b5_b547_0917],
    [0x9216_d5d9_8979_fb1b, 0xd131_0ba6_98df_b5ac],
    [0x2ffd_72db_d01a_dfb7, 0xb8e1_afed_6a26_7e96],
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
        let (mask, rounds) = (key(0), [round(1), round(2), round(3), round(4), round(5)]);
        Cipher { isa, mask, rounds }
    }

    /// The digest of a key.
    #[inline(always)]
    pub(super) fn digest(&self, key: &[u8]) -> Digest {
        let Cipher { isa, mask, rounds } = *self;
        let odd = 2 * key.len() as u64 + 1;
        let mut state = isa.block([mask[0].wrapping_mul(odd), mask[1].wrapping_mul(odd)]);
        let mut from = 0;
        while key.len() - from > 16 {
            state = isa.xor(state, isa.block([word(key, from), word(key, from + 8)]));
            for round in &rounds[..BETWEEN] {
                state = isa.aes_round(state, *round);
            }
            from += 16;
        }
        state = isa.xor(state, isa.block(last_block(key, from)));
        for round in rounds {
            state = isa.aes_round(state, round);
        }
        Digest(isa.low_half(state))
    }
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

/// What is left of the key from `from` on, at most 16 bytes, and zeros. Words that overlap are read
/// and shifted, so that no byte is read alone where a key has eight.
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
