//! Laws of every set, compared with an exact reference, including refused operations.

use sidon::{
    Certainty, Key, Malformed, Refused, Seed,
    saved::Save,
    set::{
        Backyard, Bh, Blocked, Bloom, Counting, DLeft, Decode, Elastic, Increments, Moves,
        Multilayer, Overflow, Removes, Set, Spread, Variable, backyard, bh, blocked, bloom,
        counting, dleft, elastic, multilayer, variable,
    },
};
use sidon_kit::{Keys, Multiset, Rng};

/// A structure under test. `remove` is `None` for sets without deletes.
trait Subject: Sized {
    fn fresh(seed: Seed, size: u64) -> Self;
    fn insert(&mut self, key: &u64) -> Result<(), Refused>;
    fn insert_batch(&mut self, keys: &[u64], refused: &mut dyn FnMut(usize, Refused));
    fn contains(&self, key: &u64) -> bool;
    fn contains_batch(&self, keys: &[u64], found: &mut [bool]);
    fn try_remove(&mut self, _: u64) -> Option<Result<(), Refused>> {
        None
    }
    fn try_remove_batch(&mut self, _: &[u64], _: &mut dyn FnMut(usize, Refused)) -> bool {
        false
    }
    fn merge(&mut self, other: &Self) -> Result<(), Refused>;
    fn to_bytes(&self) -> Vec<u8>;
    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed>;
    fn stored(&self) -> u64;
    fn trust(&self) -> Certainty;
    fn wipe(&mut self);
}

/// The methods that every set has.
macro_rules! of_the_set {
    ($inner:ident, $shape:expr) => {
        fn fresh(seed: Seed, size: u64) -> Self {
            Self($inner::new($shape(size), seed).unwrap())
        }
        fn insert(&mut self, key: &u64) -> Result<(), Refused> {
            self.0.insert(key)
        }
        fn insert_batch(&mut self, keys: &[u64], refused: &mut dyn FnMut(usize, Refused)) {
            self.0.insert_batch(keys, refused);
        }
        fn contains(&self, key: &u64) -> bool {
            self.0.contains(key)
        }
        fn contains_batch(&self, keys: &[u64], found: &mut [bool]) {
            self.0.contains_batch(keys, found);
        }
        fn merge(&mut self, other: &Self) -> Result<(), Refused> {
            self.0.merge(&other.0)
        }
        fn to_bytes(&self) -> Vec<u8> {
            self.0.to_bytes()
        }
        fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
            $inner::from_bytes(image, seed).map(Self)
        }
        fn stored(&self) -> u64 {
            self.0.len()
        }
        fn trust(&self) -> Certainty {
            self.0.certainty()
        }
        fn wipe(&mut self) {
            self.0.clear();
        }
    };
}

struct Bits(Bloom);
impl Subject for Bits {
    of_the_set!(Bloom, |size| bloom::Shape { bits: size, hashes: 5 });
}
struct BitLines(Blocked);
impl Subject for BitLines {
    of_the_set!(Blocked, |size: u64| blocked::Shape { lines: size.div_ceil(512), hashes: 8 });
}

/// Wraps a structure with deletes, with its own parameters.
macro_rules! keys_leave {
    ($name:ident<$(const $parameter:ident: $type:ty),*>($inner:ident), $shape:expr) => {
        struct $name<$(const $parameter: $type),*>($inner);

        impl<$(const $parameter: $type),*> Subject for $name<$($parameter),*> {
            of_the_set!($inner, $shape);
            fn try_remove(&mut self, key: u64) -> Option<Result<(), Refused>> {
                Some(self.0.remove(&key))
            }
            fn try_remove_batch(
                &mut self,
                keys: &[u64],
                refused: &mut dyn FnMut(usize, Refused),
            ) -> bool {
                self.0.remove_batch(keys, refused);
                true
            }
        }
    };
}

keys_leave!(Counters<const WIDTH: u32, const PIN: bool, const LINES: u32>(Counting), |size: u64| {
    let overflow = if PIN { Overflow::Pin } else { Overflow::Refuse };
    let (counters, spread) = match LINES {
        0 => (size, Spread::Anywhere),
        lines => (size.next_multiple_of((512 / WIDTH).into()), Spread::Lines(lines)),
    };
    counting::Shape { counters, hashes: 4, width: WIDTH, overflow, spread }
});

fn increments(set: u32) -> Increments {
    match set {
        0 => Increments::of([1]),
        1 => Increments::of([8, 12, 14, 15]),
        2 => Increments::of([1, 4, 13, 15]),
        // Its gaps need more than one word of a table.
        3 => Increments::of([31, 47, 60]),
        4 => Increments::of([4, 5, 6, 7]),
        least => Increments::set(&(least as u8..2 * least as u8).collect::<Vec<_>>()).unwrap(),
    }
}

fn counters(size: u64, width: u32, lines: u32) -> (u64, Spread) {
    match lines {
        0 => (size, Spread::Anywhere),
        lines => (size.next_multiple_of((512 / width).into()), Spread::Lines(lines)),
    }
}

keys_leave!(Varied<const SET: u32, const WIDTH: u32, const PIN: bool, const LINES: u32>(Variable), |size: u64| {
    let overflow = if PIN { Overflow::Pin } else { Overflow::Refuse };
    let (counters, spread) = counters(size, WIDTH, LINES);
    let increments = increments(SET);
    variable::Shape { counters, hashes: 4, width: WIDTH, increments, overflow, spread }
});

keys_leave!(Paired<const KEYS: u32, const SUM: u32, const EXAMINED: u32, const CENTRED: bool, const PIN: bool, const LINES: u32>(Bh), |size: u64| {
    let (cells, spread) = counters(size, KEYS + SUM, LINES);
    bh::Shape {
        cells,
        hashes: 4,
        keys_bits: KEYS,
        sum_bits: SUM,
        increments: increments(2),
        decode: if EXAMINED == 0 { Decode::Basic } else { Decode::Improved(EXAMINED) },
        centred: CENTRED,
        overflow: if PIN { Overflow::Pin } else { Overflow::Refuse },
        spread,
    }
});

// A digit of `REST` for the bits of each further layer.
keys_leave!(Layered<const SET: u32, const FIRST: u32, const REST: u32, const BUCKETS: u64, const PIN: bool>(Multilayer), |size: u64| {
    let (mut rest, mut buckets) = ([0; 7], [0; 7]);
    for (i, digit) in REST.to_string().bytes().enumerate() {
        (rest[i], buckets[i]) = (u32::from(digit - b'0'), BUCKETS);
    }
    multilayer::Shape {
        counters: size,
        hashes: 4,
        first: FIRST,
        rest,
        buckets,
        increments: increments(SET),
        overflow: if PIN { Overflow::Pin } else { Overflow::Refuse },
        spread: Spread::Anywhere,
    }
});

// Remainders wide enough that two keys of a small universe rarely share a fingerprint.
keys_leave!(Left<const D: u32, const CELLS: u32, const WIDTH: u32, const COUNTER: u32, const SEARCH: u32>(DLeft), |size: u64| {
    let cells = u64::from(D * CELLS);
    dleft::Shape {
        subtables: D,
        buckets: size.div_ceil(cells),
        cells: CELLS,
        width: WIDTH,
        remainder: WIDTH - COUNTER,
        counter: COUNTER,
        moves: match SEARCH {
            0 => Moves::Never,
            1 => Moves::First,
            limit => Moves::Search(limit),
        },
        growths: 0,
        grows: false,
    }
});

keys_leave!(Yard<const SHARING: u32>(Backyard), |size: u64| {
    backyard::Shape { lines: size.div_ceil(50), sharing: SHARING }
});

// It may narrow until few bits are left, so a key that was never inserted passes more often.
keys_leave!(Stretched<const D: u32, const LINE: u32, const REMAINDER: u32, const COUNTER: u32, const NARROWS: bool>(Elastic), |size: u64| {
    let shape = elastic::Shape {
        subtables: D,
        buckets: 1,
        line: LINE,
        least: 10,
        remainder: REMAINDER,
        counter: COUNTER,
        moves: Moves::Search(50),
        narrows: NARROWS,
    };
    elastic::Shape { buckets: size.div_ceil(u64::from(D * shape.cells())), ..shape }
});

/// Counts of the events of a run, to check that each law was tested.
#[derive(Debug, Default)]
struct Met {
    inserted: u32,
    refused_inserts: u32,
    removed: u32,
    refused_removes: u32,
}

/// Random operations on a small universe, so that keys repeat, counters fill and cells coincide.
fn against_the_twin<S: Subject>(size: u64, universe: u64, steps: u32, seed: u64) -> Met {
    let mut rng = Rng::seeded(seed);
    let mut subject = S::fresh(Seed(seed.into()), size);
    let mut twin = Multiset::new();
    let mut met = Met::default();
    for step in 0..steps {
        let key = rng.below(universe);
        let before = subject.to_bytes();
        match rng.below(100) {
            0..55 => match subject.insert(&key) {
                Ok(()) => {
                    twin.insert(key);
                    met.inserted += 1;
                }
                Err(why) => {
                    assert!(!matches!(why, Refused::NotStored | Refused::Mismatch { .. }), "{why}");
                    assert_eq!(subject.to_bytes(), before, "a refused insert changed something");
                    met.refused_inserts += 1;
                }
            },
            55..85 => {
                let Some(&member) = twin.members().get(rng.below(universe) as usize) else {
                    continue;
                };
                match subject.try_remove(member) {
                    Some(Ok(())) => {
                        assert!(twin.remove(member));
                        met.removed += 1;
                    }
                    Some(Err(why)) => panic!("a member could not be removed: {why}"),
                    None => {}
                }
            }
            85..99 if twin.count(key) == 0 && !subject.contains(&key) => {
                let Some(answer) = subject.try_remove(key) else { continue };
                assert_eq!(answer, Err(Refused::NotStored));
                assert_eq!(subject.to_bytes(), before, "a refused remove changed something");
                met.refused_removes += 1;
            }
            85..99 => {}
            _ if rng.chance(0.1) => {
                subject.wipe();
                twin.clear();
                assert_eq!(subject.to_bytes(), S::fresh(Seed(seed.into()), size).to_bytes());
            }
            _ => {}
        }
        assert_eq!(subject.stored(), twin.total(), "step {step}");
        for member in twin.members() {
            assert!(subject.contains(member), "step {step}: {member} is lost");
        }
        if step % 64 == 0 {
            let again = S::from_bytes(&subject.to_bytes(), Seed(seed.into())).unwrap();
            assert_eq!(again.to_bytes(), subject.to_bytes());
            assert_eq!(again.trust(), subject.trust());
        }
    }
    met
}

fn deletes<S: Subject>() -> Met {
    let mut all = Met::default();
    for seed in 0..8 {
        let met = against_the_twin::<S>(97, 60, 2_000, seed);
        all.inserted += met.inserted;
        all.refused_inserts += met.refused_inserts;
        all.removed += met.removed;
        all.refused_removes += met.refused_removes;
    }
    assert!(all.inserted > 1_000 && all.removed > 1_000 && all.refused_removes > 10, "{all:?}");
    all
}

#[test]
fn counting_keeps_every_law_with_counters_of_any_width() {
    assert!(deletes::<Counters<2, false, 0>>().refused_inserts > 100);
    assert!(deletes::<Counters<3, false, 0>>().refused_inserts > 100);
    assert!(deletes::<Counters<4, false, 0>>().refused_inserts > 100);
    deletes::<Counters<7, false, 0>>();
    assert!(deletes::<Counters<4, false, 1>>().refused_inserts > 100);
    deletes::<Counters<4, false, 2>>();
    deletes::<Counters<8, false, 4>>();
    deletes::<Counters<4, true, 2>>();
    deletes::<Counters<16, false, 0>>();
}

#[test]
fn pinned_counters_never_refuse_and_never_lose_a_member() {
    assert_eq!(deletes::<Counters<2, true, 0>>().refused_inserts, 0);
    assert_eq!(deletes::<Counters<3, true, 0>>().refused_inserts, 0);
    assert_eq!(deletes::<Counters<5, true, 0>>().refused_inserts, 0);
}

#[test]
fn variable_increments_keep_every_law() {
    assert!(deletes::<Varied<4, 4, false, 0>>().refused_inserts > 100);
    assert!(deletes::<Varied<1, 5, false, 0>>().refused_inserts > 100);
    assert!(deletes::<Varied<3, 8, false, 0>>().refused_inserts > 100);
    assert!(deletes::<Varied<1, 8, false, 1>>().refused_inserts > 100);
    deletes::<Varied<0, 4, false, 0>>();
    deletes::<Varied<4, 7, false, 0>>();
    deletes::<Varied<2, 9, false, 0>>();
    deletes::<Varied<16, 16, false, 0>>();
    deletes::<Varied<4, 8, false, 2>>();
    assert_eq!(deletes::<Varied<4, 4, true, 0>>().refused_inserts, 0);
    assert_eq!(deletes::<Varied<1, 6, true, 0>>().refused_inserts, 0);
    assert_eq!(deletes::<Varied<3, 8, true, 4>>().refused_inserts, 0);
}

#[test]
fn pairs_of_counters_keep_every_law() {
    assert!(deletes::<Paired<3, 6, 0, false, false, 0>>().refused_inserts > 100);
    assert!(deletes::<Paired<4, 6, 15, false, false, 0>>().refused_inserts > 100);
    assert!(deletes::<Paired<4, 12, 6, false, false, 1>>().refused_inserts > 100);
    deletes::<Paired<4, 8, 0, false, false, 0>>();
    deletes::<Paired<5, 9, 31, true, false, 0>>();
    assert_eq!(deletes::<Paired<3, 5, 15, false, true, 0>>().refused_inserts, 0);
    assert_eq!(deletes::<Paired<4, 6, 15, true, true, 0>>().refused_inserts, 0);
    assert_eq!(deletes::<Paired<3, 5, 0, true, true, 2>>().refused_inserts, 0);
}

#[test]
fn layers_keep_every_law() {
    // The second layer full, its counters full, and room enough.
    assert!(deletes::<Layered<4, 4, 7, 1, false>>().refused_inserts > 100);
    assert!(deletes::<Layered<0, 2, 1, 9, false>>().refused_inserts > 100);
    deletes::<Layered<0, 2, 6, 9, false>>();
    deletes::<Layered<4, 4, 7, 9, false>>();
    deletes::<Layered<1, 5, 8, 9, false>>();
    deletes::<Layered<1, 3, 8, 9, false>>();
    assert_eq!(deletes::<Layered<4, 4, 5, 2, true>>().refused_inserts, 0);
    assert_eq!(deletes::<Layered<0, 2, 2, 3, true>>().refused_inserts, 0);
}

#[test]
fn more_layers_keep_every_law() {
    // A further layer full, the counters of the last full, and room enough.
    assert!(deletes::<Layered<4, 4, 333, 1, false>>().refused_inserts > 100);
    assert!(deletes::<Layered<0, 2, 11, 9, false>>().refused_inserts > 100);
    assert!(deletes::<Layered<1, 5, 11, 9, false>>().refused_inserts > 100);
    deletes::<Layered<4, 4, 336, 9, false>>();
    deletes::<Layered<4, 5, 5548, 9, false>>();
    deletes::<Layered<0, 1, 1111116, 30, false>>();
    assert_eq!(deletes::<Layered<4, 4, 333, 1, true>>().refused_inserts, 0);
    assert_eq!(deletes::<Layered<0, 1, 1111111, 3, true>>().refused_inserts, 0);
}

#[test]
fn dleft_keeps_every_law_in_every_layout() {
    // 97 cells round up to a few buckets: sixty keys with copies fill them, and counters.
    assert!(deletes::<Left<2, 8, 16, 1, 0>>().refused_inserts > 100);
    assert!(deletes::<Left<2, 8, 16, 2, 1>>().refused_inserts > 100);
    assert!(deletes::<Left<2, 8, 16, 0, 0>>().refused_inserts > 100);
    assert!(deletes::<Left<3, 8, 14, 0, 50>>().refused_inserts > 100);
    assert!(deletes::<Left<4, 8, 16, 2, 0>>().refused_inserts > 100);
    deletes::<Left<2, 16, 16, 2, 0>>();
    deletes::<Left<2, 32, 16, 3, 0>>();
    deletes::<Left<2, 16, 32, 4, 20>>();
    deletes::<Left<8, 8, 32, 4, 0>>();
    deletes::<Left<5, 8, 19, 4, 1>>();
}

#[test]
fn lines_with_a_back_keep_every_law() {
    assert!(deletes::<Stretched<2, 16, 14, 1, false>>().refused_inserts > 100);
    deletes::<Stretched<3, 32, 20, 2, false>>();
    assert!(deletes::<Stretched<2, 64, 12, 0, false>>().refused_inserts > 100);
    assert!(deletes::<Yard<1>>().refused_inserts > 100);
    assert!(deletes::<Yard<7>>().refused_inserts > 100);
}

#[test]
fn filters_that_only_grow_keep_every_law() {
    for seed in 0..4 {
        assert!(against_the_twin::<Bits>(401, 60, 1_000, seed).inserted > 400);
        assert!(against_the_twin::<BitLines>(2048, 60, 1_000, seed).inserted > 400);
    }
}

/// A batch gives the same bytes, answers and refusals as single operations.
fn batch_is_one_by_one<S: Subject>(size: u64, universe: u64) {
    let seed = Seed(9);
    let mut rng = Rng::seeded(10);
    let (mut batch, mut single) = (S::fresh(seed, size), S::fresh(seed, size));
    for len in [0usize, 1, 3, 31, 32, 33, 100, 500] {
        let keys: Vec<u64> = (0..len).map(|_| rng.below(universe)).collect();
        let (mut refused, mut expected) = (Vec::new(), Vec::new());
        batch.insert_batch(&keys, &mut |i, why| refused.push((i, why)));
        for (i, key) in keys.iter().enumerate() {
            expected.extend(single.insert(key).err().map(|why| (i, why)));
        }
        assert_eq!(refused, expected);
        assert_eq!(batch.to_bytes(), single.to_bytes(), "after inserting {len}");

        let asked: Vec<u64> = (0..len).map(|_| rng.below(2 * universe)).collect();
        let mut found = vec![false; len];
        batch.contains_batch(&asked, &mut found);
        let one_by_one: Vec<bool> = asked.iter().map(|key| single.contains(key)).collect();
        assert_eq!(found, one_by_one);

        // Some keys that are stored and some that are visibly absent, but no false positive.
        let leaving: Vec<u64> = keys.iter().step_by(2).copied().collect();
        refused.clear();
        expected.clear();
        if batch.try_remove_batch(&leaving, &mut |i, why| refused.push((i, why))) {
            for (i, &key) in leaving.iter().enumerate() {
                expected.extend(single.try_remove(key).unwrap().err().map(|why| (i, why)));
            }
        }
        assert_eq!(refused, expected);
        assert_eq!(batch.to_bytes(), single.to_bytes(), "after removing from {len}");
    }
}

#[test]
fn batches_are_the_same_as_one_by_one() {
    // Once in the core's own cache, and once in a table too large for it.
    for size in [3_001, 8 << 20] {
        batch_is_one_by_one::<Bits>(size, 1 << 40);
        batch_is_one_by_one::<BitLines>(size, 1 << 40);
        batch_is_one_by_one::<Counters<4, false, 0>>(size, 1 << 40);
        batch_is_one_by_one::<Counters<5, true, 0>>(size, 1 << 40);
        batch_is_one_by_one::<Counters<4, false, 2>>(size, 1 << 40);
        batch_is_one_by_one::<Varied<4, 7, false, 0>>(size, 1 << 40);
        batch_is_one_by_one::<Varied<1, 8, true, 2>>(size, 1 << 40);
        batch_is_one_by_one::<Paired<4, 8, 15, false, false, 0>>(size, 1 << 40);
        batch_is_one_by_one::<Layered<4, 4, 7, 40, false>>(size, 1 << 40);
        batch_is_one_by_one::<Left<2, 16, 16, 2, 0>>(size, 1 << 40);
        batch_is_one_by_one::<Left<2, 8, 14, 0, 99>>(size, 1 << 40);
        batch_is_one_by_one::<Left<4, 8, 16, 2, 1>>(size, 1 << 40);
        batch_is_one_by_one::<Left<6, 16, 32, 4, 1>>(size, 1 << 40);
        batch_is_one_by_one::<Stretched<2, 32, 14, 1, true>>(size, 1 << 40);
        batch_is_one_by_one::<Yard<6>>(size, 1 << 40);
    }
    // Few keys: counters at their ceiling refuse within a batch.
    batch_is_one_by_one::<Counters<2, false, 0>>(301, 40);
    batch_is_one_by_one::<Counters<2, true, 0>>(301, 40);
    batch_is_one_by_one::<Yard<3>>(301, 40);
    batch_is_one_by_one::<Yard<6>>(14 << 20, 8);
    batch_is_one_by_one::<Varied<4, 4, false, 0>>(301, 40);
    batch_is_one_by_one::<Varied<1, 8, true, 2>>(20 << 20, 40);
    batch_is_one_by_one::<Varied<4, 5, true, 0>>(301, 40);
    batch_is_one_by_one::<Paired<3, 5, 6, false, false, 0>>(301, 40);
    batch_is_one_by_one::<Layered<4, 4, 4, 2, false>>(301, 40);
    batch_is_one_by_one::<Layered<4, 4, 4, 2, true>>(301, 40);
    batch_is_one_by_one::<Layered<4, 4, 333, 2, false>>(301, 40);
    batch_is_one_by_one::<Layered<4, 4, 333, 2, true>>(301, 40);
    batch_is_one_by_one::<Paired<4, 6, 15, true, true, 0>>(301, 40);
    batch_is_one_by_one::<Left<2, 8, 16, 1, 0>>(97, 400);
    batch_is_one_by_one::<Left<2, 8, 16, 0, 30>>(97, 400);
    batch_is_one_by_one::<Left<3, 8, 8, 1, 1>>(97, 400);
}

/// A merge gives the same filter as inserting the keys of both.
fn merge_is_inserting_both<S: Subject>() {
    let mut keys = sidon_kit::Keys::seeded(11);
    let seed = Seed(12);
    let (mut left, mut right, mut both) =
        (S::fresh(seed, 5_003), S::fresh(seed, 5_003), S::fresh(seed, 5_003));
    for i in 0..400 {
        let key = keys.next().unwrap();
        let side = if i % 3 == 0 { &mut left } else { &mut right };
        side.insert(&key).unwrap();
        both.insert(&key).unwrap();
    }
    left.merge(&right).unwrap();
    assert_eq!(left.to_bytes(), both.to_bytes());

    for other in [S::fresh(Seed(13), 5_003), S::fresh(seed, 9_001)] {
        let before = left.to_bytes();
        assert!(matches!(left.merge(&other), Err(Refused::Mismatch { .. })));
        assert_eq!(left.to_bytes(), before);
    }
}

#[test]
fn a_merge_holds_what_both_held() {
    merge_is_inserting_both::<Bits>();
    merge_is_inserting_both::<BitLines>();
    merge_is_inserting_both::<Counters<4, false, 0>>();
    merge_is_inserting_both::<Counters<7, false, 0>>();
    merge_is_inserting_both::<Counters<4, false, 2>>();
    merge_is_inserting_both::<Counters<2, true, 0>>();
    merge_is_inserting_both::<Varied<4, 7, false, 0>>();
    merge_is_inserting_both::<Varied<1, 8, false, 2>>();
    merge_is_inserting_both::<Varied<4, 4, true, 0>>();
    merge_is_inserting_both::<Paired<4, 8, 0, false, false, 0>>();
    merge_is_inserting_both::<Paired<4, 9, 15, true, false, 0>>();
}

#[test]
fn a_merge_that_would_overflow_is_refused_whole() {
    let (mut left, mut right) = (
        Counters::<2, false, 0>::fresh(Seed(1), 100),
        Counters::<2, false, 0>::fresh(Seed(1), 100),
    );
    for _ in 0..2 {
        left.insert(&1).unwrap();
        right.insert(&1).unwrap();
    }
    let before = left.to_bytes();
    assert_eq!(left.merge(&right), Err(Refused::Overflow { ceiling: 3 }));
    assert_eq!(left.to_bytes(), before);
}

#[test]
fn a_merge_of_layers_holds_what_both_held() {
    merges_of_layers::<7, 8>();
    merges_of_layers::<235, 116>();
}

fn merges_of_layers<const REST: u32, const SMALL: u32>() {
    let fresh = || Layered::<4, 4, REST, 30, false>::fresh(Seed(12), 2_003);
    let (mut left, mut right, mut both) = (fresh(), fresh(), fresh());
    let keys: Vec<u64> = sidon_kit::Keys::seeded(11).take(500).collect();
    for (i, key) in keys.iter().enumerate() {
        let side = if i % 3 == 0 { &mut left } else { &mut right };
        side.insert(key).unwrap();
        both.insert(key).unwrap();
    }
    assert!(left.0.stats().overflowed > 0 && both.0.stats().overflowed > 30);
    left.merge(&right).unwrap();
    // Cells of the second layer may be in other positions. All answers are the same, and all keys
    // can be removed.
    assert_eq!((left.stored(), left.0.stats().overflowed), (500, both.0.stats().overflowed));
    assert_eq!(left.trust(), both.trust());
    for key in &keys {
        assert_eq!(left.try_remove(*key), Some(Ok(())));
    }
    assert_eq!(left.to_bytes(), fresh().to_bytes());

    // No room for the spilled counters of both: the merge is refused as a whole.
    let small = || Layered::<0, 1, SMALL, 1, false>::fresh(Seed(1), 60);
    let (mut left, mut right) = (small(), small());
    while left.insert(&keys[left.stored() as usize]).is_ok() {}
    while right.insert(&keys[400 - right.stored() as usize]).is_ok() {}
    let before = left.to_bytes();
    assert!(matches!(left.merge(&right), Err(Refused::Full { .. })));
    assert_eq!(left.to_bytes(), before);
}

#[test]
fn a_merge_of_sums_that_would_overflow_is_refused_whole() {
    fn check<S: Subject>() {
        let (mut left, mut right) = (S::fresh(Seed(1), 5), S::fresh(Seed(1), 5));
        while left.insert(&1).is_ok() && right.insert(&1).is_ok() {}
        let before = left.to_bytes();
        assert!(matches!(left.merge(&right), Err(Refused::Overflow { .. })));
        assert_eq!(left.to_bytes(), before);
    }
    check::<Varied<4, 6, false, 0>>();
    check::<Paired<4, 8, 0, false, false, 0>>();
}

#[test]
fn a_key_whose_increments_coincide_adds_each_and_takes_each_away() {
    // One counter: all positions of every key coincide, and its increments add up.
    let shape = variable::Shape {
        counters: 1,
        hashes: 5,
        width: 12,
        increments: Increments::of([8, 12, 14, 15]),
        overflow: Overflow::Refuse,
        spread: Spread::Anywhere,
    };
    let mut filter = Variable::new(shape, Seed(3)).unwrap();
    let empty = filter.to_bytes();
    for key in 0..20u64 {
        filter.insert(&key).unwrap();
        assert!((0..=key).all(|key| filter.contains(&key)));
    }
    assert!((20 * 5 * 8..=20 * 5 * 15).contains(&filter.stats().largest));
    for key in 0..20u64 {
        filter.remove(&key).unwrap();
    }
    assert_eq!(filter.to_bytes(), empty);
    assert_eq!(filter.remove(&1u64), Err(Refused::NotStored));
}

#[test]
fn a_key_whose_positions_coincide_counts_once_there() {
    // One counter: all positions of every key coincide.
    let shape = counting::Shape {
        counters: 1,
        hashes: 7,
        width: 4,
        overflow: Overflow::Refuse,
        spread: Spread::Anywhere,
    };
    let mut filter = Counting::new(shape, Seed(3)).unwrap();
    for copies in 1..=15 {
        filter.insert(&copies).unwrap();
        assert_eq!(filter.stats().largest, copies);
    }
    assert_eq!(filter.insert(&16u64), Err(Refused::Overflow { ceiling: 15 }));
    for copies in (1..=15).rev() {
        filter.remove(&copies).unwrap();
        assert_eq!(filter.stats().largest, copies - 1);
    }
    assert_eq!(filter.remove(&1u64), Err(Refused::NotStored));
    assert_eq!(filter.stats().load, 0.0);
}

#[test]
fn a_digest_can_stand_for_its_key() {
    let mut filter = Counters::<4, false, 0>::fresh(Seed(4), 1000).0;
    filter.insert("10.0.0.1").unwrap();
    assert!(filter.contains(&"10.0.0.1".digest(Seed(4))));
    filter.remove(&"10.0.0.1".digest(Seed(4))).unwrap();
    assert!(!filter.contains("10.0.0.1"));
}

#[test]
fn shapes_that_cannot_be_are_refused_before_any_memory_is_taken() {
    let good = counting::Shape {
        counters: 9,
        hashes: 3,
        width: 4,
        overflow: Overflow::Refuse,
        spread: Spread::Anywhere,
    };
    for (shape, name) in [
        (counting::Shape { counters: 0, ..good }, Some("counters")),
        (counting::Shape { hashes: 0, ..good }, Some("hashes")),
        (counting::Shape { hashes: 33, ..good }, Some("hashes")),
        (counting::Shape { width: 0, ..good }, Some("width")),
        (counting::Shape { width: 17, ..good }, Some("width")),
        (counting::Shape { counters: u64::MAX, ..good }, None),
        (counting::Shape { counters: 1 << 58, ..good }, None),
    ] {
        let why = Counting::new(shape, Seed(1)).unwrap_err();
        assert_eq!(why.name(), name, "{shape:?}: {why}");
    }
    for (bits, hashes, name) in [
        (0, 3, Some("bits")),
        (10, 0, Some("hashes")),
        (10, 33, Some("hashes")),
        (u64::MAX, 3, None),
    ] {
        let why = Bloom::new(bloom::Shape { bits, hashes }, Seed(1)).unwrap_err();
        assert_eq!(why.name(), name, "{why}");
    }
    for (lines, hashes) in [(0, 3), (10, 0), (10, 17), (u64::MAX, 3), (1 << 57, 8)] {
        assert!(Blocked::new(blocked::Shape { lines, hashes }, Seed(1)).is_err());
    }
}

/// Work is bounded: over any number of operations searches follow at most
/// [`Moves::work_most`](sidon::set::Moves::work_most) buckets. A table that does not change
/// follows none.
#[test]
fn a_full_filter_refuses_without_searching() {
    for limit in [16, 64, 500] {
        let moves = sidon::set::Moves::Search(limit);
        let target = sidon::plan::Target {
            prefer: sidon::plan::Prefer::Speed,
            ..sidon::plan::Target::new(5_000, 0.001)
        };
        let planned = sidon::plan::dleft::shape(target, 2).unwrap();
        let mut filter = DLeft::new(dleft::Shape { moves, ..planned }, Seed(1)).unwrap();
        let mut keys = Keys::seeded(u64::from(limit));
        let mut offered = 0;
        for _ in 0..20 {
            let more: Vec<_> = keys.by_ref().take(5_000).collect();
            filter.insert_batch(&more, &mut |_, _| {});
            offered += 5_000;
            assert!(filter.stats().followed <= moves.work_most(offered), "{:?}", filter.stats());
        }
        let (before, stored) = (filter.stats().followed, filter.len());
        let more: Vec<_> = keys.by_ref().take(100_000).collect();
        filter.insert_batch(&more, &mut |_, _| {});
        let accepted = filter.len() - stored;
        assert!(accepted < 1_000, "{accepted}");
        let spent = filter.stats().followed - before;
        assert!(spent <= 4 * accepted + u64::from(limit), "{spent} buckets for {accepted} keys");
        // When cells become free, searches resume.
        let resolved = filter.stats().resolved;
        let gone: Vec<_> = Keys::seeded(u64::from(limit)).take(1_000).collect();
        filter.remove_batch(&gone, &mut |_, _| {});
        filter.insert_batch(&more, &mut |_, _| {});
        assert!(filter.stats().resolved > resolved);
    }
}

/// Copies of one key fill its buckets, and no doubling separates them.
#[test]
fn a_few_keys_cannot_demand_any_amount_of_memory() {
    let shape = dleft::Shape {
        subtables: 2,
        buckets: 1,
        cells: 8,
        width: 32,
        remainder: 32,
        counter: 0,
        moves: Moves::Search(64),
        growths: 28,
        grows: true,
    };
    let mut filter = DLeft::new(shape, Seed(1)).unwrap();
    let inserted = (0..40).filter(|_| filter.insert("one key").is_ok()).count();
    assert_eq!(inserted, 16);
    assert!(filter.shape().all_cells() <= 8 * 2 * 16, "{:?}", filter.shape());
    // Different keys still make it grow.
    let mut keys = Keys::seeded(1);
    keys.by_ref().take(10_000).for_each(|key| filter.insert(&key).unwrap());
    assert!(filter.shape().all_cells() >= 10_000);
}

/// A saved file may claim more copies than were ever inserted, where the cells do not exclude it. Their
/// number is kept exactly: more than can be counted is refused, and every filter reads its own bytes.
#[test]
fn copies_beyond_those_that_can_be_counted_are_refused() {
    fn check<B: Removes>(empty: Set<B>) {
        let (seed, bytes) = (Seed(1), empty.to_bytes());
        let mut parts = sidon::saved::Parts::of(&bytes).unwrap();
        // All differences of the increments below divide it, so that cells without keys do not exclude it.
        let claim = u64::MAX / 15 * 15 - 30;
        *parts.fields.last_mut().unwrap() = claim;
        let read = || Set::<B>::from_bytes(&parts.to_bytes(), seed).unwrap();
        let (mut claims, same) = (read(), read());
        let full = Refused::Overflow { ceiling: u64::MAX };
        assert_eq!(claims.merge(&same), Err(full), "kind {}", Set::<B>::KIND);
        assert_eq!(claims, same, "kind {}: a refused merge changes nothing", Set::<B>::KIND);
        // Each key leaves before the next one enters, except every third: no counter overflows.
        let mut refused = 0;
        for key in 0..120u64 {
            let result = claims.insert(&key);
            refused += u32::from(result == Err(full));
            assert!(
                Set::<B>::from_bytes(&claims.to_bytes(), seed).is_ok(),
                "kind {}",
                Set::<B>::KIND
            );
            if result.is_ok() && key % 3 > 0 {
                claims.remove(&key).unwrap();
            }
        }
        assert!(refused > 0, "kind {}", Set::<B>::KIND);
    }
    let (hashes, overflow, spread) = (4, Overflow::Refuse, Spread::Anywhere);
    let increments = Increments::set(&[1, 16]).unwrap();
    let (counters, width) = (1_000, 8);
    let shape = counting::Shape { counters, hashes, width, overflow, spread };
    check(Counting::new(shape, Seed(1)).unwrap());
    let shape = variable::Shape { counters, hashes, width, increments, overflow, spread };
    check(Variable::new(shape, Seed(1)).unwrap());
    let (first, rest, buckets) = (5, [8, 0, 0, 0, 0, 0, 0], [40, 0, 0, 0, 0, 0, 0]);
    let shape =
        multilayer::Shape { counters, hashes, first, rest, buckets, increments, overflow, spread };
    check(Multilayer::new(shape, Seed(1)).unwrap());
}
