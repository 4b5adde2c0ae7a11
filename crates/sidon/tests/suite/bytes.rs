//! Saved bytes: golden files that must never change, and byte strings that a reader must refuse.

use sidon::internals::{Ladder, Way};
use sidon::{
    Malformed, Seed,
    count::Update,
    saved::{self, Save},
    set::{
        self, Backyard, Bh, Blocked, Bloom, Counting, DLeft, Decode, Elastic, Increments, Moves,
        Multilayer, Overflow, Set, Spread, Variable, backyard, bh, blocked, bloom, counting, dleft,
        elastic, multilayer, variable,
    },
    state::{Cells, Direct, Fingerprint, Map, State, Stateful, direct, fingerprint, stateful},
    zone::{Adaptive, Any, Filter, Hosts, Shape, Sketch, egh, ols, pol},
};
use sidon_kit::Rng;
use std::path::PathBuf;

const SEED: Seed = Seed(0x5eed);
const KEYS: [&str; 5] = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "", "sidon"];

fn golden<S: Save>(name: &str, fresh: S) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    // This variable writes the file of a new structure, once and with one test thread.
    if std::env::var_os("SIDON_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, fresh.to_bytes()).unwrap();
    }
    let image = std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    assert_eq!(fresh.to_bytes(), image, "{name}: what is written today differs from the past");
    image
}

fn filled<B: set::Filter>(mut empty: Set<B>) -> Set<B> {
    for key in KEYS {
        empty.insert(key).unwrap();
    }
    empty
}

/// Images of zone structures: a filter and a sketch of each code, inside the zone, one beyond it and
/// further, and adaptive sets at each stage.
fn zone_goldens() -> Vec<Vec<u8>> {
    let ols = Shape::Ols(ols::Shape { universe: 23, order: 5, groups: 4 });
    let pol =
        Shape::Pol(pol::Shape { universe: 60, order: 4, digits: 3, groups: 5, infinity: true });
    let egh = Shape::Egh(egh::Shape { universe: 60, moduli: vec![4, 5, 7, 9] });
    let product = Shape::Ols(ols::Shape { universe: 144, order: 12, groups: 4 });
    let filter = |shape: &Shape, keys: &[u64]| {
        let mut filter = Filter::new(shape.code().unwrap()).unwrap();
        keys.iter().for_each(|key| filter.insert(key).unwrap());
        filter
    };
    let sketch = |shape: &Shape, keys: &[u64]| {
        let mut sketch = Sketch::new(shape.code().unwrap(), 7, Update::Plain).unwrap();
        keys.iter().for_each(|&key| sketch.add(&key, 3 + key).unwrap());
        sketch
    };
    let conservative = |shape: &Shape, keys: &[u64]| {
        let update = Update::Conservative;
        let mut sketch = Sketch::new(shape.code().unwrap(), 7, update).unwrap();
        keys.iter().for_each(|&key| sketch.add(&key, 3 + key).unwrap());
        sketch
    };
    let adaptive = |universe, way, members| {
        let mut set = Ladder::new(universe, way).unwrap().empty();
        (0..members).for_each(|i| set.insert(&(i * 37 % universe)).unwrap());
        set
    };
    vec![
        golden("zone-filter-ols.sidon", filter(&ols, &[0, 7, 13])),
        golden("zone-filter-pol.sidon", filter(&pol, &[59, 3])),
        golden("zone-filter-egh.sidon", filter(&egh, &[8, 30, 59, 1])),
        golden("zone-sketch-ols.sidon", sketch(&ols, &[0, 7, 13, 19])),
        golden("zone-sketch-pol.sidon", sketch(&pol, &[59, 3])),
        golden("zone-sketch-egh.sidon", sketch(&egh, &[8, 30, 59, 1, 2])),
        golden("zone-list.sidon", adaptive(256, Way::List, 6)),
        golden("zone-ladder.sidon", adaptive(256, Way::Zones, 3)),
        golden("zone-bitmap.sidon", adaptive(100, Way::List, 40)),
        golden("zone-filter-ols12.sidon", filter(&product, &[0, 7, 143])),
        golden("zone-sketch-conservative.sidon", conservative(&ols, &[0, 7, 13])),
        golden("zone-sketch-beyond.sidon", conservative(&ols, &[0, 7, 13, 19, 22])),
    ]
}

fn with_states<B: Cells>(mut empty: Map<B>) -> Map<B> {
    for (i, key) in KEYS.iter().enumerate() {
        empty.insert(key, i as State).unwrap();
    }
    empty.modify(KEYS[1], 4).unwrap();
    empty
}

/// A map with two flows in its list, and maps whose lookups touch all cells that they read.
fn later_state_goldens() -> [Vec<u8>; 3] {
    let left = fingerprint::Shape {
        subtables: 2,
        buckets: 1,
        cells: 8,
        width: 16,
        remainder: 9,
        states: 5,
        shared: 3,
        placing: fingerprint::Placing::Permuted,
        moves: Moves::Never,
        reinsert: false,
        stash: 1,
        growths: 0,
        grows: false,
        listed: 3,
    };
    let mut listing = with_states(Fingerprint::new(left, SEED).unwrap());
    let own = listing.fingerprint(KEYS[0]);
    let alike = (0..).filter(|key: &u64| listing.fingerprint(key) == own);
    for key in alike.take(2).collect::<Vec<_>>() {
        listing.insert(&key, 3).unwrap();
    }
    assert_eq!(listing.stats().listed, 2);
    let pairs = direct::Shape { cells: 401, hashes: 4, states: 5, counter: 3, timed: true };
    let pairs = with_states(Direct::new(pairs, SEED).unwrap());
    let keeping = stateful::Keeping::Timed;
    let cells = stateful::Shape { cells: 161, hashes: 3, states: 5, keeping };
    let cells = with_states(Stateful::new(cells, SEED).unwrap());
    [
        golden("state-fingerprint-listed.sidon", listing),
        golden("state-direct-touch.sidon", pairs.with_touch_by_lookup().unwrap()),
        golden("state-stateful-touch.sidon", cells.with_touch_by_lookup().unwrap()),
    ]
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
        listed: 0,
    };
    [
        golden("state-direct.sidon", with_states(Direct::new(pairs, SEED).unwrap())),
        golden("state-stateful.sidon", with_states(Stateful::new(cells, SEED).unwrap())),
        golden("state-fingerprint.sidon", with_states(Fingerprint::new(left, SEED).unwrap())),
    ]
}

/// Images of a set and of a map with room for exceptions.
fn except_goldens() -> [Vec<u8>; 2] {
    let mut set = filled(Bloom::new(bloom::Shape { bits: 333, hashes: 5 }, SEED).unwrap());
    set = set.with_exceptions(3).unwrap();
    ["10.0.0.3", "10.0.0.4"].iter().for_each(|key| set.except(key).unwrap());
    let pairs = direct::Shape { cells: 401, hashes: 4, states: 5, counter: 3, timed: true };
    let mut map = with_states(Direct::new(pairs, SEED).unwrap()).with_exceptions(1).unwrap();
    map.except("10.0.0.3").unwrap();
    [golden("bloom-except.sidon", set), golden("state-direct-except.sidon", map)]
}

fn goldens() -> [Vec<u8>; 14] {
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
    let variable = variable::Shape {
        counters: 75,
        hashes: 4,
        width: 7,
        increments: Increments::of([4, 5, 6, 7]),
        overflow: Overflow::Refuse,
        spread: Spread::Anywhere,
    };
    let variable_lines = variable::Shape {
        counters: 128,
        width: 8,
        increments: Increments::of([8, 12, 14, 15]),
        overflow: Overflow::Pin,
        spread: Spread::Lines(2),
        ..variable
    };
    let bh = bh::Shape {
        cells: 43,
        hashes: 4,
        keys_bits: 4,
        sum_bits: 8,
        increments: Increments::of([1, 4, 13, 15]),
        decode: Decode::Basic,
        centred: false,
        overflow: Overflow::Refuse,
        spread: Spread::Anywhere,
    };
    let centred = bh::Shape {
        sum_bits: 6,
        decode: Decode::Improved(15),
        centred: true,
        overflow: Overflow::Pin,
        ..bh
    };
    let layers = multilayer::Shape {
        counters: 41,
        hashes: 4,
        first: 3,
        rest: [6, 0, 0, 0, 0, 0, 0],
        buckets: [2, 0, 0, 0, 0, 0, 0],
        increments: Increments::of([4, 5, 6, 7]),
        overflow: Overflow::Refuse,
        spread: Spread::Anywhere,
    };
    let four = multilayer::Shape {
        first: 3,
        rest: [2, 1, 3, 0, 0, 0, 0],
        buckets: [3, 2, 1, 0, 0, 0, 0],
        ..layers
    };
    let mut spilling =
        filled(Backyard::new(backyard::Shape { lines: 1, sharing: 1 }, SEED).unwrap());
    (0..29u64).for_each(|key| spilling.insert(&key).unwrap());
    let elastic = elastic::Shape {
        subtables: 2,
        buckets: 2,
        line: 16,
        least: 5,
        remainder: 12,
        counter: 2,
        moves: Moves::Search(8),
        narrows: true,
    };
    let mut elastic = filled(Elastic::new(elastic, SEED).unwrap());
    // Cells with remainders of two lengths.
    elastic.set_remainder(9).unwrap();
    elastic.set_remainder(11).unwrap();
    (0..7u64).for_each(|key| elastic.insert(&key).unwrap());
    let blocked = blocked::Shape { lines: 2, hashes: 8 };
    let bloom = bloom::Shape { bits: 333, hashes: 5 };
    [
        golden("bloom.sidon", filled(Bloom::new(bloom, SEED).unwrap())),
        golden("blocked.sidon", filled(Blocked::new(blocked, SEED).unwrap())),
        golden("counting.sidon", filled(Counting::new(counting4, SEED).unwrap())),
        golden("counting-pin.sidon", filled(Counting::new(counting3, SEED).unwrap())),
        golden("counting-lines.sidon", filled(Counting::new(lines, SEED).unwrap())),
        golden("dleft.sidon", filled(DLeft::new(left, SEED).unwrap())),
        golden("backyard.sidon", spilling),
        golden("variable.sidon", filled(Variable::new(variable, SEED).unwrap())),
        golden("variable-lines.sidon", filled(Variable::new(variable_lines, SEED).unwrap())),
        golden("bh.sidon", filled(Bh::new(bh, SEED).unwrap())),
        golden("bh-centred.sidon", filled(Bh::new(centred, SEED).unwrap())),
        golden("multilayer.sidon", filled(Multilayer::new(layers, SEED).unwrap())),
        golden("multilayer-four.sidon", filled(Multilayer::new(four, SEED).unwrap())),
        golden("elastic.sidon", elastic),
    ]
}

/// Reads the image as every kind of structure. A reader that accepts it must write back the same
/// bytes. Then no two images give the same structure, and no part of an image is ignored.
fn read_as_all(image: &[u8]) -> Option<Malformed> {
    fn one<S: Save>(image: &[u8]) -> Option<Malformed> {
        match S::from_bytes(image, SEED) {
            Ok(structure) => {
                assert_eq!(structure.to_bytes(), image, "accepted, but written otherwise");
                None
            }
            Err(why) => Some(why),
        }
    }
    match saved::kind(image) {
        Ok(Bloom::KIND) => one::<Bloom>(image),
        Ok(Blocked::KIND) => one::<Blocked>(image),
        Ok(Counting::KIND) => one::<Counting>(image),
        Ok(DLeft::KIND) => one::<DLeft>(image),
        Ok(Backyard::KIND) => one::<Backyard>(image),
        Ok(Filter::<Any>::KIND) => one::<Filter<Any>>(image),
        Ok(Sketch::<Any>::KIND) => one::<Sketch<Any>>(image),
        Ok(Adaptive::KIND) => one::<Adaptive>(image),
        Ok(Hosts::KIND) => one::<Hosts>(image),
        Ok(Variable::KIND) => one::<Variable>(image),
        Ok(Bh::KIND) => one::<Bh>(image),
        Ok(Multilayer::KIND) => one::<Multilayer>(image),
        Ok(Elastic::KIND) => one::<Elastic>(image),
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
    fn check<B: set::Filter>(read: fn(&[u8], Seed) -> Result<Set<B>, Malformed>, image: &[u8]) {
        let structure = read(image, SEED).unwrap();
        assert!(KEYS.iter().all(|key| structure.contains(key)));
        assert!(!structure.contains("a stranger"));
        assert_eq!(read(image, Seed(1)).err(), Some(Malformed::Seed));
    }
    let [bloom, blocked, counting, pin, lines, left, yard, others @ ..] = goldens();
    let [variable, in_lines, bh, centred, layers, four, elastic] = others;
    check(Bloom::from_bytes, &bloom);
    check(Blocked::from_bytes, &blocked);
    check(Counting::from_bytes, &counting);
    check(Counting::from_bytes, &pin);
    check(Counting::from_bytes, &lines);
    check(DLeft::from_bytes, &left);
    check(Backyard::from_bytes, &yard);
    check(Variable::from_bytes, &variable);
    check(Variable::from_bytes, &in_lines);
    check(Bh::from_bytes, &bh);
    check(Bh::from_bytes, &centred);
    check(Multilayer::from_bytes, &layers);
    check(Multilayer::from_bytes, &four);
    check(Elastic::from_bytes, &elastic);
    assert_eq!(
        Bloom::from_bytes(&counting, SEED).err(),
        Some(Malformed::Kind { expected: Bloom::KIND, got: Counting::KIND })
    );
}

/// Files with digests of an earlier function are refused for that reason.
#[test]
fn other_hash_functions_are_refused_by_their_number() {
    let [bloom, ..] = goldens();
    assert_eq!(bloom[8..10], [3, 0]);
    for got in [0u16, 1, 2, 4] {
        let mut other = bloom.clone();
        other[8..10].copy_from_slice(&got.to_le_bytes());
        let why = Bloom::from_bytes(&other, SEED).err().unwrap();
        assert_eq!(why, Malformed::Hash { got });
        assert!(why.to_string().contains(&format!("hash function {got}, ")), "{why}");
    }
}

#[test]
fn golden_states_are_read_back() {
    fn check<B: Cells>(read: fn(&[u8], Seed) -> Result<Map<B>, Malformed>, image: &[u8]) {
        let map = read(image, SEED).unwrap();
        let states = KEYS.map(|key| map.lookup(key));
        assert_eq!(states, [0, 4, 2, 3, 4].map(sidon::Lookup::State));
        assert_eq!(map.lookup("a stranger"), sidon::Lookup::Absent);
        assert_eq!(read(image, Seed(1)).err(), Some(Malformed::Seed));
    }
    let [set, map] = except_goldens();
    check(Direct::from_bytes, &map);
    let set = Bloom::from_bytes(&set, SEED).unwrap();
    assert_eq!((set.len(), set.stats().exceptions), (5, 2));
    let [pairs, cells, left] = state_goldens();
    check(Direct::from_bytes, &pairs);
    check(Stateful::from_bytes, &cells);
    check(Fingerprint::from_bytes, &left);
    let [listing, pairs, cells] = later_state_goldens();
    check(Fingerprint::from_bytes, &listing);
    check(Direct::from_bytes, &pairs);
    check(Stateful::from_bytes, &cells);
}

#[test]
fn every_single_byte_corruption_is_noticed() {
    let others = zone_goldens().into_iter().chain(state_goldens()).chain(except_goldens());
    let others = others.chain(later_state_goldens());
    for image in goldens().into_iter().chain(others) {
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

/// Some strings are noise, most are damaged files. Every other damaged file has a correct checksum,
/// so that the reader's later checks are tested.
#[test]
fn byte_strings_give_a_structure_or_malformed() {
    let states = [state_goldens(), later_state_goldens()].concat();
    let states = [states, except_goldens().to_vec()].concat();
    let goldens = [goldens().to_vec(), zone_goldens(), states].concat();
    let mut rng = Rng::seeded(20);
    let mut accepted = 0;
    let mut image = Vec::new();
    let rounds = crate::size(10_000_000, 500_000);
    for round in 0..rounds {
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
                let reach = if rng.below(3) == 0 { image.len() } else { 96.min(image.len()) };
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
        accepted += u64::from(read_as_all(&image).is_none());
    }
    // Some images with a correct checksum differ only in a payload or a statistic that is possible.
    assert!(accepted > rounds / 10_000 && accepted < rounds / 2, "{accepted} accepted");
}

#[test]
fn no_shape_takes_more_memory_than_its_image_is_long() {
    // The header claims 2^60 bits, and the payload has 42 bytes.
    let [mut bloom, ..] = goldens();
    bloom[32..40].copy_from_slice(&(1u64 << 60).to_le_bytes());
    seal(&mut bloom);
    assert!(matches!(
        Bloom::from_bytes(&bloom, SEED),
        Err(Malformed::Length { expected, .. }) if expected == 1 << 57
    ));
}

#[test]
fn golden_zones_are_read_back_under_any_seed() {
    let images = zone_goldens();
    for seed in [SEED, Seed(1)] {
        let filter = |image: usize| Filter::<Any>::from_bytes(&images[image], seed).unwrap();
        assert_eq!((filter(0).list(), filter(0).len()), (vec![0, 7, 13], Some(3)));
        assert_eq!((filter(1).list(), filter(1).len()), (vec![3, 59], Some(2)));
        assert!(
            [8, 30, 59, 1].iter().all(|key| filter(2).contains(key)) && filter(2).len().is_none()
        );
        let sketch = |image: usize| Sketch::<Any>::from_bytes(&images[image], seed).unwrap();
        assert_eq!(sketch(3).list().unwrap(), [(0, 3), (7, 10), (13, 16), (19, 22)]);
        assert_eq!(sketch(4).list().unwrap(), [(3, 6), (59, 62)]);
        assert!(sketch(5).len().is_none() && sketch(5).estimate(&30).value >= 33);
        assert_eq!((filter(9).list(), filter(9).len()), (vec![0, 7, 143], Some(3)));
        assert_eq!(sketch(10).list().unwrap(), [(0, 3), (7, 10), (13, 16)]);
        assert!(sketch(11).len().is_none() && sketch(11).estimate(&22).value >= 25);
        let set = |image: usize| Adaptive::from_bytes(&images[image], seed).unwrap().list();
        assert_eq!((set(6).len(), set(7), set(8).len()), (6, vec![0, 37, 74], 40));
    }
    // A code of one family is not read as another's.
    assert_eq!(
        Filter::<sidon::zone::Egh>::from_bytes(&images[0], SEED).err(),
        Some(Malformed::Field { name: "code" })
    );
}

#[test]
fn a_zone_that_is_not_there_is_not_believed() {
    // The number of members is the last field of the filter.
    let [image, ..] = &zone_goldens()[..] else { panic!("there are images") };
    for claim in [0, 2, 4, u64::MAX] {
        let mut image = image.clone();
        image[32 + 6 * 8..32 + 7 * 8].copy_from_slice(&u64::to_le_bytes(claim));
        seal(&mut image);
        let why = Filter::<Any>::from_bytes(&image, SEED).err();
        assert_eq!(why, Some(Malformed::Field { name: "columns" }), "{claim}");
    }
    // A universe of 2^40 needs more cells than the image has.
    let mut image = image.clone();
    image[40..48].copy_from_slice(&(1u64 << 40).to_le_bytes());
    seal(&mut image);
    assert!(matches!(Filter::<Any>::from_bytes(&image, SEED), Err(Malformed::Length { .. })));
}

/// The bytes with a field or a byte of the payload changed, and a correct checksum.
fn forged(image: &[u8], change: impl FnOnce(&mut [u64], &mut [u8])) -> Vec<u8> {
    let parts = saved::Parts::of(image).unwrap();
    let (mut fields, mut payload) = (parts.fields.clone(), parts.payload.to_vec());
    change(&mut fields, &mut payload);
    saved::Parts { fields, payload: &payload, ..parts }.to_bytes()
}

fn why<S: Save>(image: &[u8], change: impl FnOnce(&mut [u64], &mut [u8])) -> Option<Malformed> {
    S::from_bytes(&forged(image, change), SEED).err()
}

/// Values that no sequence of operations gives, each refused by its own check.
#[test]
fn cells_that_no_operations_lead_to_are_refused() {
    let malformed = |name| Some(Malformed::Field { name });
    let increments = Increments::of([4, 5, 6, 7]);
    let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
    let shape = variable::Shape { counters: 9, hashes: 2, width: 8, increments, overflow, spread };

    // Of 4, 5, 6 and 7, the sums are 0, 4 to 7, and all from 8.
    let variable = filled(Variable::new(shape, SEED).unwrap()).to_bytes();
    for value in [1, 2, 3, 9] {
        let set = |_: &mut [u64], payload: &mut [u8]| payload[0] = value;
        let expected = malformed("payload").filter(|_| value < 4);
        assert_eq!(why::<Variable>(&variable, set), expected, "{value}");
    }
    // A single increment: the number of keys follows from the counters.
    let ones = variable::Shape { increments: Increments::of([3]), ..shape };
    let ones = filled(Variable::new(ones, SEED).unwrap()).to_bytes();
    assert_eq!(why::<Variable>(&ones, |fields, _| fields[7] += 1), malformed("stored"));

    let shape = multilayer::Shape {
        counters: 8,
        hashes: 2,
        first: 4,
        rest: [4, 0, 0, 0, 0, 0, 0],
        buckets: [1, 0, 0, 0, 0, 0, 0],
        increments,
        overflow: Overflow::Pin,
        spread,
    };
    let mut layers = filled(Multilayer::new(shape, SEED).unwrap());
    let mut more = 0u64..;
    while layers.stats().overflowed == 0 {
        layers.insert(&more.next().unwrap()).unwrap();
    }
    let image = layers.to_bytes();
    assert_eq!(why::<Multilayer>(&image, |_, payload| payload[0] = 0x31), malformed("payload"));
    // A pinned counter has no entry in the second layer: fifteen above the first ceiling.
    let second = |_: &mut [u64], payload: &mut [u8]| {
        let used = payload[4..].iter_mut().find(|byte| **byte != 0).unwrap();
        *used |= 0x0f;
    };
    assert_eq!(why::<Multilayer>(&image, second), malformed("payload"));
    layers.clear();
    assert!(Multilayer::from_bytes(&layers.to_bytes(), SEED).is_ok());

    let shape = bh::Shape {
        cells: 9,
        hashes: 2,
        keys_bits: 4,
        sum_bits: 12,
        increments: Increments::of([1, 4, 13, 15]),
        decode: Decode::Basic,
        centred: false,
        overflow,
        spread,
    };
    // Sums of up to three keys are unique. A cell is its keys in the lower four bits, then the sum.
    let empty = Bh::new(shape, SEED).unwrap().to_bytes();
    for (keys, sum, accepted) in
        [(2, 5, true), (2, 6, false), (3, 5, true), (3, 2, false), (9, 8, false), (0, 1, false)]
    {
        let cell = move |fields: &mut [u64], payload: &mut [u8]| {
            payload[..2].copy_from_slice(&u16::to_le_bytes(sum << 4 | keys));
            // Two cells, so that the keys are twice those stored.
            payload[2..4].copy_from_slice(&u16::to_le_bytes(sum << 4 | keys));
            fields[10] = keys.into();
        };
        let expected = malformed("payload").filter(|_| !accepted);
        assert_eq!(why::<Bh>(&empty, cell), expected, "{keys} keys that sum up to {sum}");
    }
    let image = filled(Bh::new(shape, SEED).unwrap()).to_bytes();
    assert_eq!(why::<Bh>(&image, |fields, _| fields[10] += 1), malformed("stored"));

    let shape = counting::Shape { counters: 9, hashes: 1, width: 4, overflow, spread };
    let image = filled(Counting::new(shape, SEED).unwrap()).to_bytes();
    assert_eq!(why::<Counting>(&image, |fields, _| fields[5] -= 1), malformed("stored"));

    // An amount is added in every group, so all groups have equal sums.
    let ols = Shape::Ols(ols::Shape { universe: 23, order: 5, groups: 4 });
    let mut sketch = Sketch::new(ols.code().unwrap(), 8, Update::Plain).unwrap();
    (0..23).for_each(|key| sketch.add(&key, 2).unwrap());
    let image = sketch.to_bytes();
    assert_eq!(why::<Sketch<Any>>(&image, |_, payload| payload[3] += 1), malformed("counters"));

    let mut filter = Filter::new(ols.code().unwrap()).unwrap();
    filter.insert(&0).unwrap();
    let bits = |fields: &mut [u64], payload: &mut [u8]| {
        payload[0] |= 2;
        fields[6] = 2;
    };
    assert_eq!(why::<Filter<Any>>(&filter.to_bytes(), bits), malformed("columns"));
}
