//! Digests equal the golden values, depend on the seed, and are spread evenly.

use super::*;
use crate::simd::{self, Isa, Kernel};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SEED: Seed = Seed(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100);

fn batch<K: Key>(seed: Seed, keys: &[K]) -> Vec<Digest> {
    struct Loop<'a, K>(Seed, &'a [K]);
    impl<K: Key> Kernel for Loop<'_, K> {
        type Output = Vec<Digest>;
        fn run<I: Isa>(self, isa: I) -> Vec<Digest> {
            let mut digests = vec![Digest(0); self.1.len()];
            digests_by(isa, self.0, self.1, &mut digests);
            digests
        }
    }
    simd::dispatch(Loop(seed, keys))
}

/// The function of `docs/FORMAT.md` over a copy of the key with its zeros: all 128 bits of the state
/// after `last` rounds on the last block.
fn state_by_the_book(seed: Seed, key: &[u8], last: usize) -> u128 {
    let constant = |i: usize| halved(cipher::CONSTANTS[i]);
    let halves = |x: u128| [x as u64, (x >> 64) as u64];
    let mut padded = key.to_vec();
    padded.resize(key.len().next_multiple_of(16).max(16), 0);
    let blocks = padded.as_chunks::<16>().0;
    let mut state = 0;
    for (i, block) in blocks.iter().enumerate() {
        let block = u128::from_le_bytes(*block);
        state = if i == 0 { sum(mask(seed, key.len()), block) } else { state ^ block };
        let rounds = if i + 1 == blocks.len() { last } else { 4 };
        for i in 1..=rounds {
            let round_key = halves(seed.0 ^ constant(i));
            state = halved(simd::Portable.aes_round(halves(state), round_key));
        }
    }
    state
}

fn by_the_book(seed: Seed, key: &[u8]) -> u64 {
    state_by_the_book(seed, key, 6) as u64
}

/// The number of two halves, the lower first.
fn halved(halves: [u64; 2]) -> u128 {
    u128::from(halves[0]) | u128::from(halves[1]) << 64
}

/// The sums of the lower and of the upper halves.
fn sum(a: u128, b: u128) -> u128 {
    let high = (a >> 64) as u64;
    halved([(a as u64).wrapping_add(b as u64), high.wrapping_add((b >> 64) as u64)])
}

/// The differences of the lower and of the upper halves.
fn difference(a: u128, b: u128) -> u128 {
    let high = (a >> 64) as u64;
    halved([(a as u64).wrapping_sub(b as u64), high.wrapping_sub((b >> 64) as u64)])
}

/// The mask of keys of `len` bytes.
fn mask(seed: Seed, len: usize) -> u128 {
    let odd = 2 * len as u64 + 1;
    let start = seed.0 ^ halved(cipher::CONSTANTS[0]);
    halved([(start as u64).wrapping_mul(odd), ((start >> 64) as u64).wrapping_mul(odd)])
}

/// The first construction, for keys of at most 16 bytes: exclusive or joins mask and block, and five
/// rounds follow. The tests of chosen keys and of the integral must reject it.
fn first_construction(seed: Seed, key: &[u8]) -> u64 {
    let halves = |x: u128| [x as u64, (x >> 64) as u64];
    let mut block = [0; 16];
    block[..key.len()].copy_from_slice(key);
    let state = mask(seed, key.len()) ^ u128::from_le_bytes(block);
    let round = |state, i: usize| {
        let round_key = halves(seed.0 ^ halved(cipher::CONSTANTS[i]));
        halved(simd::Portable.aes_round(halves(state), round_key))
    };
    (1..=5).fold(state, round) as u64
}

#[test]
fn the_function_is_the_documented_one() {
    let bytes: Vec<u8> = (0..=255).cycle().take(300).collect();
    for len in 0..bytes.len() {
        for seed in [SEED, Seed(0), Seed(u128::MAX)] {
            let key = &bytes[bytes.len() - len..];
            assert_eq!(key.digest(seed).0, by_the_book(seed, key), "{len} bytes");
            assert_eq!(digest_by(key, simd::Portable, seed), key.digest(seed), "{len} bytes");
        }
    }
}

/// The constants are the hexadecimal digits of the fraction of pi, by Machin's formula.
#[test]
fn the_constants_are_pi() {
    // Numbers of 32 words of 32 bits, the whole part first. 32 bits are for rounding errors.
    type Number = [u32; 32];
    fn divide(mut number: Number, by: u64) -> Number {
        let mut rest = 0;
        for word in &mut number {
            let whole = rest << 32 | u64::from(*word);
            (*word, rest) = ((whole / by) as u32, whole % by);
        }
        number
    }
    fn add(sum: &mut Number, number: Number, is_negative: bool) {
        let mut carry = 0;
        for (word, other) in sum.iter_mut().zip(number).rev() {
            let other = if is_negative { -i64::from(other) } else { other.into() };
            let whole = i64::from(*word) + other + carry;
            (*word, carry) = (whole as u32, whole >> 32);
        }
    }
    // pi = 16 arctan(1 / 5) - 4 arctan(1 / 239)
    let mut pi = Number::default();
    for (factor, of, is_negative) in [(16, 5u64, false), (4, 239, true)] {
        let mut power = Number::default();
        power[0] = factor;
        power = divide(power, of);
        for term in 0..512 {
            add(&mut pi, divide(power, 2 * term + 1), is_negative ^ (term % 2 == 1));
            power = divide(power, of * of);
        }
    }
    let words = cipher::CONSTANTS.as_flattened().iter();
    let words: Vec<u32> = words.flat_map(|word| [(word >> 32) as u32, *word as u32]).collect();
    assert_eq!((pi[0], &pi[1..=words.len()]), (3, &words[..]));
}

/// Files contain the check value. No key has it as its digest, whatever the seed.
#[test]
fn the_check_value_is_an_upper_half_and_a_digest_is_a_lower_one() {
    let text = b"sidon: the check value of a seed";
    for seed in [SEED, Seed(0), Seed(1), Seed(u128::MAX)] {
        assert_eq!(seed.check_value(), (state_by_the_book(seed, text, 6) >> 64) as u64);
        assert_ne!(seed.check_value(), text.digest(seed).0);
    }
}

/// Chosen keys of different lengths collide for the fewest seeds that any construction by multiples
/// of the mask allows.
///
/// The test reduces the function to words of eight bits. One half of the seed is zero; the other makes
/// the mask `m * 2^56` for each `m` below 256. The key of 16 bytes takes 256 blocks, which differ in
/// the upper byte of that half. The masks of `n` and 16 bytes are `m (2n + 1)` and `33 m`, so the keys
/// collide if `2 (16 - n) m` is the difference of the blocks modulo 256. Under the first
/// construction, the best block for 15 bytes collides for 64 seeds of 256 instead of 2.
#[test]
fn chosen_keys_of_different_lengths_collide_for_the_fewest_seeds() {
    let new = |seed: Seed, key: &[u8]| key.digest(seed).0;
    for unknown in [0, 64] {
        for len in 8..16 {
            let most = 2 << (16 - len as u32).trailing_zeros();
            assert_eq!(most_seeds(unknown, len, new), most, "{len} and 16 bytes");
        }
        let old = most_seeds(unknown, 15, first_construction);
        assert_eq!(old, 64, "seeds of 256, under the first construction");
    }
}

/// The most seeds of 256 under which a key of `len` zeros and a chosen one of 16 bytes collide. The
/// seeds differ in the half that starts at bit `unknown`.
fn most_seeds(unknown: u32, len: usize, digest: impl Fn(Seed, &[u8]) -> u64) -> usize {
    let constant = halved(cipher::CONSTANTS[0]) & u128::from(u64::MAX) << unknown;
    let seeds: Vec<Seed> = (0..256).map(|m| Seed(constant ^ m << (unknown + 56))).collect();
    let short: Vec<u64> = seeds.iter().map(|&seed| digest(seed, &[0; 16][..len])).collect();
    // The known halves of the masks. The blocks must compensate for their difference.
    let [one, other] = [len, 16].map(|len| mask(seeds[0], len));
    let collisions = [difference(one, other), one ^ other]
        .into_iter()
        .flat_map(|block| (0..256).map(move |byte| (block ^ byte << (unknown + 56)).to_le_bytes()));
    let collisions = collisions.map(|long| {
        let pairs = seeds.iter().zip(&short);
        pairs.filter(|(seed, short)| digest(**seed, &long) == **short).count()
    });
    collisions.max().unwrap_or(0)
}

/// 256 keys whose states after one round differ in one byte, which takes all values. Their states
/// after four rounds add up to zero: the integral of four rounds. 2^32 keys have it without
/// knowledge of the seed. `without` removes the mask from the state.
fn integral(seed: Seed, without: impl Fn(u128, u128) -> u128) -> Vec<[u8; 16]> {
    let after = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978u128;
    let round_key = seed.0 ^ halved(cipher::CONSTANTS[1]);
    let states = (0..256).map(|byte| before_round(after ^ byte, round_key));
    states.map(|state| without(state, mask(seed, 16)).to_le_bytes()).collect()
}

/// The inverse of a round of AES. The lower half of the argument gives the eight bytes that the
/// round took there, if the upper half is unknown.
fn before_round(state: u128, round_key: u128) -> u128 {
    let times = |mut a: u8, b: u8| {
        (0..8).fold(0, |product, bit| {
            let now = if b >> bit & 1 == 1 { product ^ a } else { product };
            a = a << 1 ^ if a >= 0x80 { 0x1b } else { 0 };
            now
        })
    };
    let bytes = (state ^ round_key).to_le_bytes();
    let mut before = [0; 16];
    for column in 0..4 {
        for row in 0..4 {
            let factors = [14, 11, 13, 9];
            let mixed = (0..4).map(|i| times(bytes[4 * column + i], factors[(i + 4 - row) % 4]));
            let value = mixed.fold(0, |sum, byte| sum ^ byte);
            before[(column + row) % 4 * 4 + row] = unsubstituted(value);
        }
    }
    u128::from_le_bytes(before)
}

/// The byte that SubBytes takes to `value`: its table is in the lowest byte of a round of equal bytes.
fn unsubstituted(value: u8) -> u8 {
    let goes_to =
        |byte: u8| simd::Portable.aes_round([u64::from_ne_bytes([byte; 8]); 2], [0; 2])[0];
    (0..=255).find(|&byte| goes_to(byte) as u8 == value).unwrap()
}

/// The sums over the keys of eight bytes of the state before the last round. An attacker who sees
/// digests computes each sum from a guess of one byte of the last round key. A right guess gives zero
/// if the states before that round add up to zero.
fn sums_before_the_last_round(seed: Seed, last: usize, digests: &[u64]) -> Vec<u8> {
    let round_key = seed.0 ^ halved(cipher::CONSTANTS[last]);
    let before =
        digests.iter().map(|&digest| before_round(digest.into(), round_key & u128::from(u64::MAX)));
    let sum = before.fold(0, |sum, state| sum ^ state).to_le_bytes();
    // Rows of the two columns that a digest shows, where ShiftRows took them from.
    (0..8).map(|i| sum[(i / 4 + i % 4) % 4 * 4 + i % 4]).collect()
}

/// After five rounds, sums before the last round are zero and give its key away byte by byte. After
/// six, as the function has them, they are not.
#[test]
fn the_integral_of_four_rounds_does_not_reach_the_digest() {
    for seed in [SEED, Seed(7), Seed(7 << 64)] {
        let keys = integral(seed, difference);
        let after_four = keys.iter().map(|key| state_by_the_book(seed, key, 4));
        assert_eq!(after_four.fold(0, |sum, state| sum ^ state), 0);
        let digests = |last| -> Vec<u64> {
            keys.iter().map(|key| state_by_the_book(seed, key, last) as u64).collect()
        };
        assert_eq!(sums_before_the_last_round(seed, 5, &digests(5)), [0; 8], "five rounds");
        // The first construction fails this test.
        let keys_of_old = integral(seed, |state, mask| state ^ mask);
        let of_old: Vec<u64> =
            keys_of_old.iter().map(|key| first_construction(seed, key)).collect();
        assert_eq!(sums_before_the_last_round(seed, 5, &of_old), [0; 8], "first construction");
        // The function itself, also if it joined mask and block by exclusive or.
        for keys in [keys, keys_of_old] {
            let digests: Vec<u64> = keys.iter().map(|key| key.digest(seed).0).collect();
            for last in [5, 6] {
                let sums = sums_before_the_last_round(seed, last, &digests);
                // One in 256 sums is zero by chance; four of eight are in 1 of 2^25 cases.
                assert!(sums.iter().filter(|&&sum| sum == 0).count() < 4, "{last}: {sums:?}");
            }
        }
    }
}

/// Appending zeros to a key makes another key, under any seed and at any length.
#[test]
fn a_key_and_the_same_with_zeros_behind_it_are_two() {
    let zeros = [0u8; 70];
    for seed in [Seed(0), Seed(1), SEED] {
        let digests = (0..=zeros.len()).map(|len| zeros[..len].digest(seed));
        assert_eq!(digests.collect::<std::collections::HashSet<_>>().len(), zeros.len() + 1);
    }
}

/// Each bit of a key and of the seed changes each bit of the digest with probability one half.
#[test]
fn one_bit_changes_about_half_of_all() {
    let n = 1 << 14;
    let keys: Vec<[u8; 13]> = sidon_kit::FiveTuples::seeded(8).take(n).collect();
    let turned = |digests: Vec<(Digest, Digest)>| {
        for bit in 0..64 {
            let count = digests.iter().filter(|(a, b)| (a.0 ^ b.0) >> bit & 1 == 1).count();
            sidon_kit::assert_rate(count, n, 0.5);
        }
    };
    for bit in 0..13 * 8 {
        let flip = |key: &[u8; 13]| {
            let mut key = *key;
            key[bit / 8] ^= 1 << (bit % 8);
            key
        };
        turned(keys.iter().map(|key| (key.digest(SEED), flip(key).digest(SEED))).collect());
    }
    for bit in 0..128 {
        let other = Seed(SEED.0 ^ 1 << bit);
        turned(keys.iter().map(|key| (key.digest(SEED), key.digest(other))).collect());
    }
}

#[test]
fn value_stability() {
    let addresses: (Ipv4Addr, Ipv6Addr) = ([192, 0, 2, 1].into(), Ipv6Addr::LOCALHOST);
    let socket: SocketAddr = "192.0.2.1:443".parse().unwrap();
    let digests = [
        b"".digest(SEED),
        b"sidon".digest(SEED),
        [7u8; 13].digest(SEED),
        1u8.digest(SEED),
        1u16.digest(SEED),
        1u32.digest(SEED),
        1u64.digest(SEED),
        1u128.digest(SEED),
        addresses.0.digest(SEED),
        addresses.1.digest(SEED),
        socket.digest(SEED),
        Digest(SEED.check_value()),
    ];
    assert_eq!(digests.map(|digest| digest.0), GOLDEN);
    let positions: Vec<u64> =
        (0..spread::MAX).map(|i| spread::position(Digest(GOLDEN[1]), i, 1_000_003)).collect();
    assert_eq!(positions[..4], POSITIONS);
    assert_eq!(spread::position(Digest(GOLDEN[1]), 31, 1 << 40), POSITION_31);
}
const GOLDEN: [u64; 12] = [
    0xaa93_59c9_c24e_44f7,
    0xec9a_ed05_d894_b54a,
    0xf243_2f9c_46c8_04b4,
    0x924c_dd89_1a31_8e06,
    0x466f_9b86_5ea1_f090,
    0x1250_c8dd_de67_194e,
    0x3b07_5d3c_8927_12c7,
    0x9c2a_4955_b085_0eb0,
    0xa5d5_6352_cdcd_4930,
    0x9b8f_1a5b_465f_b70c,
    0x1119_e8f3_7e42_d44a,
    0x84e9_9921_65f4_9541,
];
const POSITIONS: [u64; 4] = [924241, 196846, 265267, 609333];
const POSITION_31: u64 = 1025854406214;

#[test]
fn keys_are_hashed_as_the_bytes_they_document() {
    let bytes = |bytes: &[u8]| bytes.digest(SEED);
    assert_eq!("flow".digest(SEED), bytes(b"flow"));
    assert_eq!(String::from("flow").digest(SEED), bytes(b"flow"));
    assert_eq!(Box::<str>::from("flow").digest(SEED), bytes(b"flow"));
    assert_eq!((&&"flow").digest(SEED), bytes(b"flow"));
    assert_eq!([1u8, 2, 3].digest(SEED), bytes(&[1, 2, 3]));
    assert_eq!(0x0102u16.digest(SEED), bytes(&[2, 1]));
    assert_eq!((-2i32).digest(SEED), bytes(&[0xfe, 0xff, 0xff, 0xff]));
    assert_eq!(0x01u128.digest(SEED), bytes(&1u128.to_le_bytes()));
    let v4: IpAddr = "192.0.2.1".parse().unwrap();
    assert_eq!(v4.digest(SEED), bytes(&[192, 0, 2, 1]));
    let v6: IpAddr = "2001:db8::1".parse().unwrap();
    assert_eq!(v6.digest(SEED), bytes(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
    let socket: SocketAddr = "192.0.2.1:443".parse().unwrap();
    assert_eq!(socket.digest(SEED), bytes(&[192, 0, 2, 1, 1, 187]));
    let socket: SocketAddr = "[::1]:443".parse().unwrap();
    assert_eq!(
        socket.digest(SEED),
        bytes(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 187])
    );
    assert_eq!(Digest(77).digest(SEED), Digest(77));
}

proptest! {
    #[test]
    fn a_batch_hashes_as_one_by_one(keys: Vec<[u8; 13]>, wide: Vec<[u8; 37]>, seed: u128) {
        let seed = Seed(seed);
        let one_by_one: Vec<_> = keys.iter().map(|key| key.digest(seed)).collect();
        prop_assert_eq!(batch(seed, &keys), one_by_one);
        let one_by_one: Vec<_> = wide.iter().map(|key| key.digest(seed)).collect();
        prop_assert_eq!(batch(seed, &wide), one_by_one);
        let slices: Vec<&[u8]> = wide.iter().map(|key| &key[..20]).collect();
        let one_by_one: Vec<_> = slices.iter().map(|key| key.digest(seed)).collect();
        prop_assert_eq!(batch(seed, &slices), one_by_one);
    }

    #[test]
    fn positions_lie_in_the_table(digest: u64, size in 1u64.., width in 1u64..1 << 58) {
        for i in 0..spread::MAX {
            prop_assert!(spread::position(Digest(digest), i, size) < size);
            let cell = spread::position_in_row(Digest(digest), i, width);
            prop_assert_eq!(cell / width, u64::from(i));
        }
    }
}

/// Pairs of keys whose digests start with the same 36 bits: 2^20 keys have about eight.
fn prefix_collisions(keys: &[[u8; 13]], digest: impl Fn(&[u8; 13]) -> u64) -> Vec<[[u8; 13]; 2]> {
    let mut prefixes: Vec<_> = keys.iter().map(|key| (digest(key) >> 28, *key)).collect();
    prefixes.sort_unstable();
    prefixes.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|p| [p[0].1, p[1].1]).collect()
}

#[test]
fn collisions_found_under_one_seed_do_not_survive_another() {
    let keys: Vec<_> = sidon_kit::FiveTuples::seeded(5).take(1 << 20).collect();
    let found = prefix_collisions(&keys, |key| key.digest(SEED).0);
    // n^2 / 2 / 2^36 = 8 pairs are expected, and at least one is needed for the test.
    assert!((1..=32).contains(&found.len()), "{} pairs", found.len());
    let others = (1..=100).map(|i| Seed(SEED.0.wrapping_mul(2 * i + 1)));
    let survivors = others
        .flat_map(|seed| found.iter().map(move |pair| (seed, pair)))
        .filter(|(seed, [a, b])| a.digest(*seed).0 >> 28 == b.digest(*seed).0 >> 28)
        .count();
    assert_eq!(survivors, 0, "of {} pairs under 100 seeds", found.len());
}

#[test]
fn positions_of_one_digest_are_independent_of_each_other() {
    // Each pair of positions in 8 cells fills the 64 combinations evenly.
    let n = 1 << 20;
    let digests: Vec<_> = sidon_kit::Keys::seeded(6).take(n).map(Digest).collect();
    for (i, j) in [(0, 1), (0, 2), (1, 2), (3, 7), (0, 31), (15, 16), (30, 31)] {
        let mut counts = [0usize; 64];
        for &digest in &digests {
            let pair = spread::position(digest, i, 8) * 8 + spread::position(digest, j, 8);
            counts[pair as usize] += 1;
        }
        for count in counts {
            sidon_kit::assert_rate(count, n, 1.0 / 64.0);
        }
    }
}

#[test]
fn random_seeds_differ_and_do_not_print() {
    let (a, b) = (Seed::random().unwrap(), Seed::random().unwrap());
    assert_ne!(a, b);
    assert_ne!(a.check_value(), b.check_value());
    assert_eq!(format!("{a:?}"), "Seed(..)");
}

/// The reason why the digest is not rapidhash v3, the fastest function: keys that collide under any
/// seed.
#[test]
fn rapidhash_has_collisions_that_survive_every_seed_and_ours_has_not() {
    use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
    let key = |rest: u64| {
        let mut key = [0; 13];
        key[5..].copy_from_slice(&rest.to_be_bytes());
        // Its second constant cancels the first eight bytes, so the product is zero.
        key[..8].copy_from_slice(&0x8bb8_4b93_962e_acc9u64.to_le_bytes());
        key
    };
    for seed in 0..100 {
        let secrets = RapidSecrets::seed_cpp(seed);
        let rapid = (0..50).map(|rest| rapidhash_v3_seeded(&key(rest), &secrets));
        assert_eq!(rapid.collect::<std::collections::HashSet<_>>().len(), 1);
        let ours = (0..50).map(|rest| key(rest).digest(Seed(seed.into())));
        assert_eq!(ours.collect::<std::collections::HashSet<_>>().len(), 50);
    }
}

#[test]
fn a_tuple_is_hashed_as_lengths_and_bytes() {
    fn same(key: impl Key, bytes: &[u8]) {
        assert_eq!(key.digest(Seed(3)), bytes.digest(Seed(3)), "{bytes:?}");
    }
    same((1u8, "ab"), &[1, 1, 2, b'a', b'b']);
    same((1u16, 2u8, [7u8; 3]), &[2, 1, 0, 1, 2, 3, 7, 7, 7]);
    same(("", (1u8, 2u8)), &[0, 4, 1, 1, 1, 2]);
    same((Digest(5), &1u8), &[8, 5, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    same((1u8, 2u8, 3u8, 4u8, 5u8, 6u8), &[1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 1, 6]);
    let home = std::net::IpAddr::from([10, 0, 0, 1]);
    same((home, 443u16), &[4, 10, 0, 0, 1, 2, 187, 1]);
    // Parts of every length around the one byte, and tuples around the bytes that need no heap.
    for len in (0..80).chain(250..260).chain([1_000]) {
        let part = vec![9u8; len];
        let mut bytes = vec![1, 5];
        match u8::try_from(len) {
            Ok(len) if len < 255 => bytes.push(len),
            _ => {
                bytes.push(255);
                bytes.extend((len as u64).to_le_bytes());
            }
        }
        bytes.extend(&part);
        bytes.extend([1, 6]);
        same((5u8, part.as_slice(), 6u8), &bytes);
    }
    assert_ne!(("ab", "c").digest(Seed(3)), ("a", "bc").digest(Seed(3)));
}
