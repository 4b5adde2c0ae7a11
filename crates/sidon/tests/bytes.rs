//! Images: golden ones that must never change, and everything that is none.

use sidon::{
    Malformed, Seed,
    bytes::{self, Image},
    member::{
        Blocked, Bloom, Counting, DLeft, Moves, Overflow, Spread, blocked, bloom, counting, dleft,
    },
    ops::{Contains, Insert, StateMap},
    state::{Direct, Fingerprint, State, Stateful, direct, fingerprint, stateful},
};
use sidon_kit::Rng;
use std::path::PathBuf;

const SEED: Seed = Seed(0x5eed);
const KEYS: [&str; 5] = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "", "sidon"];

fn golden<S: Image>(name: &str, fresh: S) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    // A new structure gets its file once, by this variable and one thread, and never again.
    if std::env::var_os("SIDON_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, fresh.to_bytes()).unwrap();
    }
    let image = std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    assert_eq!(fresh.to_bytes(), image, "{name}: what is written today differs from the past");
    image
}

fn filled<S: Insert<str>>(mut empty: S) -> S {
    for key in KEYS {
        empty.insert(key).unwrap();
    }
    empty
}

fn with_states<M: StateMap<str, State = State>>(mut empty: M) -> M {
    for (i, key) in KEYS.iter().enumerate() {
        empty.insert(key, i as State).unwrap();
    }
    empty.modify(KEYS[1], 4).unwrap();
    empty
}

fn state_goldens() -> [Vec<u8>; 3] {
    let pairs = direct::Shape { cells: 401, hashes: 4, states: 5, counter: 3, timed: true };
    let keeping = stateful::Keeping::Summed(3);
    let cells = stateful::Shape { cells: 161, hashes: 3, states: 5, keeping };
    let left = fingerprint::Shape {
        subtables: 2,
        buckets: 1,
        cells: 2,
        width: 24,
        remainder: 18,
        states: 5,
        shared: 3,
        placing: fingerprint::Placing::Permuted,
        moves: Moves::Search(8),
        reinsert: false,
        stash: 2,
        growths: 1,
        grows: false,
    };
    [
        golden("state-direct.sidon", with_states(Direct::new(pairs, SEED).unwrap())),
        golden("state-stateful.sidon", with_states(Stateful::new(cells, SEED).unwrap())),
        golden("state-fingerprint.sidon", with_states(Fingerprint::new(left, SEED).unwrap())),
    ]
}

fn goldens() -> [Vec<u8>; 6] {
    let overflow = Overflow::Refuse;
    let counting4 =
        counting::Shape { counters: 101, hashes: 4, width: 4, overflow, spread: Spread::Anywhere };
    let overflow = Overflow::Pin;
    let counting3 =
        counting::Shape { counters: 61, hashes: 3, width: 3, overflow, spread: Spread::Anywhere };
    let overflow = Overflow::Refuse;
    let spread = Spread::Lines(2);
    let lines = counting::Shape { counters: 256, hashes: 6, width: 4, overflow, spread };
    let left = dleft::Shape {
        subtables: 2,
        buckets: 5,
        cells: 8,
        width: 16,
        remainder: 12,
        counter: 2,
        moves: Moves::Search(64),
        growths: 1,
        grows: true,
    };
    let blocked = blocked::Shape { lines: 2, hashes: 8 };
    let bloom = bloom::Shape { bits: 333, hashes: 5 };
    [
        golden("bloom.sidon", filled(Bloom::new(bloom, SEED).unwrap())),
        golden("blocked.sidon", filled(Blocked::new(blocked, SEED).unwrap())),
        golden("counting.sidon", filled(Counting::new(counting4, SEED).unwrap())),
        golden("counting-pin.sidon", filled(Counting::new(counting3, SEED).unwrap())),
        golden("counting-lines.sidon", filled(Counting::new(lines, SEED).unwrap())),
        golden("dleft.sidon", filled(DLeft::new(left, SEED).unwrap())),
    ]
}

/// Reads the image as every kind there is. What is accepted must be written back the same, byte
/// for byte: then no two images are one structure, and no structure is half read.
fn read_as_all(image: &[u8]) -> Option<Malformed> {
    fn one<S: Image>(image: &[u8]) -> Option<Malformed> {
        match S::from_bytes(image, SEED) {
            Ok(structure) => {
                assert_eq!(structure.to_bytes(), image, "accepted, but written otherwise");
                None
            }
            Err(why) => Some(why),
        }
    }
    match bytes::kind(image) {
        Ok(Bloom::KIND) => one::<Bloom>(image),
        Ok(Blocked::KIND) => one::<Blocked>(image),
        Ok(Counting::KIND) => one::<Counting>(image),
        Ok(DLeft::KIND) => one::<DLeft>(image),
        Ok(Direct::KIND) => one::<Direct>(image),
        Ok(Stateful::KIND) => one::<Stateful>(image),
        Ok(Fingerprint::KIND) => one::<Fingerprint>(image),
        _ => {
            let all = [one::<Bloom>(image), one::<Blocked>(image), one::<Counting>(image)];
            all.into_iter().reduce(Option::and).flatten()
        }
    }
}

#[test]
fn golden_images_are_read_back() {
    fn check<S: Image + Contains<str>>(image: &[u8]) {
        let structure = S::from_bytes(image, SEED).unwrap();
        assert!(KEYS.iter().all(|key| structure.contains(key)));
        assert!(!structure.contains("a stranger"));
        assert_eq!(S::from_bytes(image, Seed(1)).err(), Some(Malformed::Seed));
    }
    let [bloom, blocked, counting, pin, lines, left] = goldens();
    check::<Bloom>(&bloom);
    check::<Blocked>(&blocked);
    check::<Counting>(&counting);
    check::<Counting>(&pin);
    check::<Counting>(&lines);
    check::<DLeft>(&left);
    assert_eq!(
        Bloom::from_bytes(&counting, SEED).err(),
        Some(Malformed::Kind { expected: Bloom::KIND, got: Counting::KIND })
    );
}

#[test]
fn golden_states_are_read_back() {
    fn check<M: Image + StateMap<str, State = State>>(image: &[u8]) {
        let map = M::from_bytes(image, SEED).unwrap();
        let states = KEYS.map(|key| map.lookup(key));
        assert_eq!(states, [0, 4, 2, 3, 4].map(sidon::Lookup::State));
        assert_eq!(map.lookup("a stranger"), sidon::Lookup::Absent);
        assert_eq!(M::from_bytes(image, Seed(1)).err(), Some(Malformed::Seed));
    }
    let [pairs, cells, left] = state_goldens();
    check::<Direct>(&pairs);
    check::<Stateful>(&cells);
    check::<Fingerprint>(&left);
}

#[test]
fn every_single_byte_corruption_is_noticed() {
    for image in goldens().into_iter().chain(state_goldens()) {
        assert_eq!(read_as_all(&image), None);
        for at in 0..image.len() {
            for flip in 1..=255 {
                let mut damaged = image.clone();
                damaged[at] ^= flip;
                assert!(read_as_all(&damaged).is_some(), "byte {at} ^ {flip} went unnoticed");
            }
        }
        for len in 0..image.len() {
            assert!(read_as_all(&image[..len]).is_some(), "cut to {len} bytes");
        }
        let longer = [&image[..], &[0]].concat();
        assert!(matches!(read_as_all(&longer), Some(Malformed::Length { .. })));
    }
}

fn seal(image: &mut [u8]) {
    if let Some(body) = image.len().checked_sub(4) {
        let checksum = crc32fast::hash(&image[..body]);
        image[body..].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Ten million strings: some of nothing but noise, most of them damaged images, of which every
/// other one has its checksum put right, so that the reader's later checks are put to the test.
#[test]
fn ten_million_byte_strings_give_a_structure_or_malformed() {
    let goldens: Vec<_> = goldens().into_iter().chain(state_goldens()).collect();
    let mut rng = Rng::seeded(20);
    let mut accepted = 0;
    let mut image = Vec::new();
    for round in 0..10_000_000u32 {
        image.clear();
        if round % 4 == 0 {
            let len = rng.below(120);
            image.extend((0..len).map(|_| rng.next_u64() as u8));
            if round % 8 == 0 && image.len() > 6 {
                image[..6].copy_from_slice(b"SIDN\x01\x00");
            }
        } else {
            image.extend(&goldens[rng.below(goldens.len() as u64) as usize]);
            for _ in 0..=rng.below(3) {
                // Two in three changes go to the header and the fields.
                let reach = if rng.below(3) == 0 { image.len() } else { 96 };
                let at = rng.below(reach as u64) as usize;
                image[at] = match rng.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => image[at].wrapping_add(1),
                    _ => rng.next_u64() as u8,
                };
            }
            if rng.below(16) == 0 {
                image.truncate(rng.below(image.len() as u64 + 1) as usize);
            }
        }
        if round % 2 == 1 {
            seal(&mut image);
        }
        accepted += u32::from(read_as_all(&image).is_none());
    }
    // Some sealed images differ only in a payload or a statistic that is as good as another.
    assert!(accepted > 1_000 && accepted < 5_000_000, "{accepted} accepted");
}

#[test]
fn no_shape_takes_more_memory_than_its_image_is_long() {
    // A header that promises 2^60 bits over a payload of 42 bytes.
    let [mut bloom, ..] = goldens();
    bloom[32..40].copy_from_slice(&(1u64 << 60).to_le_bytes());
    seal(&mut bloom);
    assert!(matches!(
        Bloom::from_bytes(&bloom, SEED),
        Err(Malformed::Length { expected, .. }) if expected == 1 << 57
    ));
}
