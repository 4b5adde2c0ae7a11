//! Hash functions on 13-byte keys: how many a second, and how long until one is known.
//!
//! Throughput hashes independent keys one after the other. Latency lets each digest choose the
//! next key, so that no two overlap; it includes the load of that key from the nearest cache.

use crate::{
    clock::ns_each,
    filter::{CHUNK, SEED, Tuple},
    report::{Row, Size},
    stats::Summary,
};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use sidon::{Digest, Key, Seed, key};
use sidon_kit::FiveTuples;
use siphasher::sip::SipHasher13;
use std::{collections::BTreeMap, hint::black_box};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Keys hashed over and over: few enough for the nearest cache.
const KEYS: usize = 1024;
const PASSES: usize = 1000;

/// The functions, by name; the first two are ours.
pub(crate) const NAMES: [&str; 5] =
    ["sidon_digest_batch", "sidon_digest", "siphasher_13", "xxh3_64", "rapidhash_v3"];

/// The rows of the functions that `wanted` names.
pub(crate) fn run(rounds: usize, wanted: impl Fn(&str) -> bool) -> Vec<Row> {
    let keys: Vec<Tuple> = FiveTuples::seeded(7).take(KEYS).collect();
    let names: Vec<_> = NAMES.into_iter().filter(|name| wanted(name)).collect();
    let mut times = BTreeMap::<_, Vec<f64>>::new();
    for number in 1..=rounds {
        eprintln!("hash: round {number} of {rounds}");
        for name in &names {
            for (op, ns) in round(name, &keys) {
                times.entry((*name, op)).or_default().push(ns);
            }
        }
    }
    let rows = times.into_iter().map(|((name, op), times)| Row {
        section: "hash",
        structure: name.to_string(),
        ours: name.starts_with("sidon"),
        removes: false,
        op,
        size: Size::Keys(KEYS as u64),
        ns: Summary::of(&times),
        bits_per_key: None,
        fpr: None,
        lost: None,
        overestimate: None,
        ratio: BTreeMap::new(),
    });
    rows.collect()
}

/// Both timings of a function. Seeds are hidden from the compiler, as a user's are.
fn round(name: &str, keys: &[Tuple]) -> Vec<(&'static str, f64)> {
    let seed = black_box(SEED);
    let short = seed.0 as u64;
    match name {
        "sidon_digest_batch" => vec![("throughput", batch(seed, keys))],
        "sidon_digest" => both(keys, |key| key.digest(seed).0),
        "siphasher_13" => {
            let hasher = SipHasher13::new_with_key(&seed.0.to_le_bytes());
            both(keys, |key| hasher.hash(key))
        }
        "xxh3_64" => both(keys, |key| xxh3_64_with_seed(key, short)),
        _ => {
            let secrets = RapidSecrets::seed_cpp(short);
            both(keys, |key| rapidhash_v3_seeded(key, &secrets))
        }
    }
}

fn both(keys: &[Tuple], hash: impl Fn(&Tuple) -> u64) -> Vec<(&'static str, f64)> {
    let throughput = ns_each(PASSES * keys.len(), || {
        for _ in 0..PASSES {
            let all = black_box(keys).iter().fold(0, |all, key| all ^ hash(key));
            black_box(all);
        }
    });
    let latency = ns_each(PASSES * keys.len(), || {
        let mut at = 0;
        for _ in 0..PASSES * keys.len() {
            at = hash(&keys[at]) as usize % KEYS;
        }
        black_box(at);
    });
    vec![("throughput", throughput), ("latency", latency)]
}

fn batch(seed: Seed, keys: &[Tuple]) -> f64 {
    let mut digests = [Digest(0); CHUNK];
    ns_each(PASSES * keys.len(), || {
        for _ in 0..PASSES {
            for keys in black_box(keys).chunks(CHUNK) {
                key::digests(seed, keys, &mut digests[..keys.len()]);
                black_box(&digests);
            }
        }
    })
}
