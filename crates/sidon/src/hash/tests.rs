//! Digests are what they were, keyed, and spread evenly.

use super::*;
use crate::probe::{self, Isa, Kernel};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SEED: Seed = Seed(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100);

fn batch<K: Key>(seed: Seed, keys: &[K]) -> Vec<Digest> {
    struct Loop<'a, K>(Seed, &'a [K]);
    impl<K: Key> Kernel for Loop<'_, K> {
        type Output = Vec<Digest>;
        fn run<I: Isa>(self, isa: I) -> Vec<Digest> {
            let mut digests = vec![Digest(0); self.1.len()];
            K::digests(isa, self.0, self.1, &mut digests);
            digests
        }
    }
    probe::dispatch(Loop(seed, keys))
}

/// The function as `docs/FORMAT.md` has it, over a copy of the key with its zeros.
fn by_the_book(seed: Seed, key: &[u8]) -> u64 {
    const PI: [u128; 6] = [
        0x1319_8a2e_0370_7344_243f_6a88_85a3_08d3,
        0x082e_fa98_ec4e_6c89_a409_3822_299f_31d0,
        0xbe54_66cf_34e9_0c6c_4528_21e6_38d0_1377,
        0x3f84_d5b5_b547_0917_c0ac_29b7_c97c_50dd,
        0xd131_0ba6_98df_b5ac_9216_d5d9_8979_fb1b,
        0xb8e1_afed_6a26_7e96_2ffd_72db_d01a_dfb7,
    ];
    let halves = |x: u128| [x as u64, (x >> 64) as u64];
    let odd = 2 * key.len() as u64 + 1;
    let [low, high] = halves(seed.0 ^ PI[0]).map(|half| half.wrapping_mul(odd));
    let mut state = u128::from(low) | u128::from(high) << 64;
    let mut padded = key.to_vec();
    padded.resize(key.len().next_multiple_of(16).max(16), 0);
    let blocks = padded.as_chunks::<16>().0;
    for (i, block) in blocks.iter().enumerate() {
        state ^= u128::from_le_bytes(*block);
        let rounds = if i + 1 == blocks.len() { 5 } else { 4 };
        for constant in &PI[1..=rounds] {
            let [low, high] = probe::Portable.aes_round(halves(state), halves(seed.0 ^ constant));
            state = u128::from(low) | u128::from(high) << 64;
        }
    }
    state as u64
}

#[test]
fn the_function_is_the_documented_one() {
    let bytes: Vec<u8> = (0..=255).cycle().take(300).collect();
    for len in 0..bytes.len() {
        for seed in [SEED, Seed(0), Seed(u128::MAX)] {
            let key = &bytes[bytes.len() - len..];
            assert_eq!(key.digest(seed).0, by_the_book(seed, key), "{len} bytes");
            assert_eq!(key.digest_by(probe::Portable, seed), key.digest(seed), "{len} bytes");
        }
    }
}

/// Zeros behind a key make another key, under any seed and at any length.
#[test]
fn a_key_and_the_same_with_zeros_behind_it_are_two() {
    let zeros = [0u8; 70];
    for seed in [Seed(0), Seed(1), SEED] {
        let digests = (0..=zeros.len()).map(|len| zeros[..len].digest(seed));
        assert_eq!(digests.collect::<std::collections::HashSet<_>>().len(), zeros.len() + 1);
    }
}

/// Each bit of a key and of the seed turns each bit of the digest half the time.
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
        (0..spread::MOST).map(|i| spread::position(Digest(GOLDEN[1]), i, 1_000_003)).collect();
    assert_eq!(positions[..4], POSITIONS);
    assert_eq!(spread::position(Digest(GOLDEN[1]), 31, 1 << 40), POSITION_31);
}
const GOLDEN: [u64; 12] = [
    0x0fc1_1111_4581_077a,
    0x1f4c_5083_bbce_d91a,
    0xd5f0_538a_13d2_65f6,
    0x81e1_8790_2b60_cd6d,
    0xb975_5056_851c_4b39,
    0xca4f_6387_d435_0475,
    0x56ef_4a7b_e165_d2f8,
    0x851d_fe4b_9421_b282,
    0x672b_e6e3_615f_fa26,
    0xa72c_7c06_59b2_87a3,
    0x434b_0039_94a4_b1d8,
    0x762b_3acb_aad5_6c1d,
];
const POSITIONS: [u64; 4] = [122258, 961492, 20009, 773777];
const POSITION_31: u64 = 395533443007;

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
        for i in 0..spread::MOST {
            prop_assert!(spread::position(Digest(digest), i, size) < size);
            let cell = spread::position_in_row(Digest(digest), i, width);
            prop_assert_eq!(cell / width, u64::from(i));
        }
    }

    #[test]
    fn bucket_and_remainder_are_the_two_parts_of_a_fingerprint(
        digest: u64, buckets in 1u64..1 << 30, bits in 0u32..=33,
    ) {
        let (bucket, remainder) = spread::bucket_and_remainder(Digest(digest), buckets, bits);
        prop_assert!(bucket < buckets && remainder < 1 << bits);
        prop_assert_eq!(bucket << bits | remainder, spread::fraction(digest, buckets << bits));
    }
}

/// Pairs of keys whose digests begin with the same 36 bits: 2^20 keys have about eight.
fn prefix_collisions(keys: &[[u8; 13]], digest: impl Fn(&[u8; 13]) -> u64) -> Vec<[[u8; 13]; 2]> {
    let mut prefixes: Vec<_> = keys.iter().map(|key| (digest(key) >> 28, *key)).collect();
    prefixes.sort_unstable();
    prefixes.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|p| [p[0].1, p[1].1]).collect()
}

#[test]
fn collisions_found_under_one_seed_do_not_survive_another() {
    let keys: Vec<_> = sidon_kit::FiveTuples::seeded(5).take(1 << 20).collect();
    let found = prefix_collisions(&keys, |key| key.digest(SEED).0);
    // n^2 / 2 / 2^36 = 8 pairs are expected; with none there would be nothing to test.
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
    // Each pair of positions, taken to 8 cells, fills the 64 combinations evenly.
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

/// Why the digest is not rapidhash v3, though it is the fastest: keys that collide under any seed.
#[test]
fn rapidhash_has_collisions_that_survive_every_seed_and_ours_has_not() {
    use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
    let key = |rest: u64| {
        let mut key = [0; 13];
        key[5..].copy_from_slice(&rest.to_be_bytes());
        // Its second constant: the first eight bytes cancel, and nothing is left to multiply.
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
