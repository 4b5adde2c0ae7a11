//! SipHash-1-3: a pseudo-random function of byte strings under a 128-bit key.
//!
//! One round a message word, three at the end. Written once over [`Word`], so that the same lines
//! hash one key or four side by side. Aumasson and Bernstein, "SipHash: a fast short-input PRF",
//! INDOCRYPT 2012.

use super::{Digest, Seed};
use crate::probe::{Isa, Word};

/// The four words of state.
struct State<W>([W; 4]);

impl<W: Word> State<W> {
    #[inline(always)]
    fn new(key: [W; 2]) -> Self {
        let [k0, k1] = key;
        State([
            k0.xor_word(0x736f_6d65_7073_6575),
            k1.xor_word(0x646f_7261_6e64_6f6d),
            k0.xor_word(0x6c79_6765_6e65_7261),
            k1.xor_word(0x7465_6462_7974_6573),
        ])
    }

    #[inline(always)]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.add(b);
        b = b.rotate::<13>().xor(a);
        a = a.rotate::<32>();
        c = c.add(d);
        d = d.rotate::<16>().xor(c);
        a = a.add(d);
        d = d.rotate::<21>().xor(a);
        c = c.add(b);
        b = b.rotate::<17>().xor(c);
        c = c.rotate::<32>();
        self.0 = [a, b, c, d];
    }

    #[inline(always)]
    fn absorb(&mut self, word: W) {
        self.0[3] = self.0[3].xor(word);
        self.round();
        self.0[0] = self.0[0].xor(word);
    }

    #[inline(always)]
    fn finish(mut self) -> W {
        self.0[2] = self.0[2].xor_word(0xff);
        self.round();
        self.round();
        self.round();
        let [a, b, c, d] = self.0;
        a.xor(b).xor(c).xor(d)
    }
}

fn halves(seed: Seed) -> [u64; 2] {
    [seed.0 as u64, (seed.0 >> 64) as u64]
}

/// Word `i` of the padded message: eight bytes of it, or the rest and the length.
#[inline(always)]
fn message_word(bytes: &[u8], i: usize) -> u64 {
    if let Some(whole) = bytes.get(i * 8..i * 8 + 8) {
        return u64::from_le_bytes(whole.try_into().expect("the slice has eight bytes"));
    }
    let (rest, length) = (bytes.len() % 8, (bytes.len() as u64) << 56);
    if rest == 0 {
        return length;
    }
    if let Some(last) = bytes.last_chunk::<8>() {
        // The last eight bytes, without those that the word before has already.
        return length | (u64::from_le_bytes(*last) >> (64 - 8 * rest));
    }
    bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte)) | length
}

/// The digest of one key.
#[inline(always)]
pub(super) fn hash(seed: Seed, bytes: &[u8]) -> Digest {
    let mut state = State::new(halves(seed));
    for i in 0..=bytes.len() / 8 {
        state.absorb(message_word(bytes, i));
    }
    Digest(state.finish())
}

/// Two words at a time: while one waits for its own last step, the other goes on.
#[derive(Clone, Copy)]
struct Pair<W>(W, W);

impl<W: Word> Word for Pair<W> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Pair(self.0.add(other.0), self.1.add(other.1))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Pair(self.0.xor(other.0), self.1.xor(other.1))
    }
    #[inline(always)]
    fn xor_word(self, word: u64) -> Self {
        Pair(self.0.xor_word(word), self.1.xor_word(word))
    }
    #[inline(always)]
    fn rotate<const N: u32>(self) -> Self {
        Pair(self.0.rotate::<N>(), self.1.rotate::<N>())
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> Self {
        Pair(self.0.shift_right(bits), self.1.shift_right(bits))
    }
}

/// Word `i` of the padded messages of eight keys.
#[inline(always)]
fn message_words<I: Isa, const N: usize>(isa: I, keys: &[[u8; N]; 8], i: usize) -> Pair<I::X4> {
    let gather = |word: &dyn Fn(usize) -> u64| {
        let low = isa.load([word(0), word(1), word(2), word(3)]);
        let high = isa.load([word(4), word(5), word(6), word(7)]);
        Pair(low, high)
    };
    if i == N / 8 && N > 8 && !N.is_multiple_of(8) {
        // The last eight bytes, without those that the word before has already, side by side.
        let last = gather(&|key| u64::from_le_bytes(*keys[key].last_chunk().expect("N > 8")));
        return last.shift_right(64 - 8 * (N as u32 % 8)).xor_word((N as u64) << 56);
    }
    gather(&|key| message_word(&keys[key], i))
}

/// The digests of keys of one length, eight at a time.
#[inline(always)]
pub(super) fn hash_each<I: Isa, const N: usize>(
    isa: I,
    seed: Seed,
    keys: &[[u8; N]],
    digests: &mut [Digest],
) {
    let key = halves(seed).map(|half| Pair(isa.load([half; 4]), isa.load([half; 4])));
    let (eights, rest) = keys.as_chunks::<8>();
    let (digests, rest_digests) = digests.as_chunks_mut::<8>();
    for (keys, digests) in eights.iter().zip(digests) {
        let mut state = State::new(key);
        for i in 0..=N / 8 {
            state.absorb(message_words(isa, keys, i));
        }
        let Pair(low, high) = state.finish();
        let (low, high) = (isa.store(low), isa.store(high));
        for i in 0..4 {
            digests[i] = Digest(low[i]);
            digests[i + 4] = Digest(high[i]);
        }
    }
    for (key, digest) in rest.iter().zip(rest_digests) {
        *digest = hash(seed, key);
    }
}
