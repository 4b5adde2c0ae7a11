//! Laws of exceptions, on every set and every map: an excepted key is rejected until it is inserted, and no
//! stored key is ever rejected.

use crate::operate::{Draw, Operate, SEED, is_read_back};
use sidon::{
    Lookup, Malformed, Refused, Seed,
    plan::{self, Target},
    saved::Save,
    set::{
        AnySet, Backyard, Bh, Blocked, Bloom, Counting, DLeft, Elastic, Filter, Multilayer, Set,
        Variable, bloom,
    },
    state::{Cells, Direct, Fingerprint, Map, Next, Stateful},
};
use sidon_kit::{Multiset, Rng};
use std::collections::BTreeSet;

/// Keys that are looked up; those below `MEMBERS` may be stored.
const UNIVERSE: u64 = 60;
const MEMBERS: u64 = 30;
/// Exceptions that a structure of the test has room for.
const ROOM: u32 = 12;

/// What the laws need of a set or a map.
trait Subject: Operate {
    fn with_room(self, room: u32) -> Self;
    fn insert(&mut self, key: u64) -> Result<(), Refused>;
    fn insert_batch(&mut self, keys: &[u64], refused: &mut dyn FnMut(usize, Refused));
    /// `None` for sets without deletes.
    fn remove(&mut self, key: u64) -> Option<Result<(), Refused>>;
    fn except(&mut self, key: u64) -> Result<(), Refused>;
    fn exceptions(&self) -> u64;
    fn join(&mut self, other: &Self) -> Result<(), Refused>;
    /// Whether each key of the universe passes, after one batch gave the same answers.
    fn passing(&self) -> Vec<bool>;
}

fn universe() -> Vec<u64> {
    (0..UNIVERSE).collect()
}

macro_rules! of_the_set {
    ($name:ident, $remove:expr) => {
        impl Subject for $name {
            fn with_room(self, room: u32) -> Self {
                self.with_exceptions(room).unwrap()
            }
            fn insert(&mut self, key: u64) -> Result<(), Refused> {
                Set::insert(self, &key)
            }
            fn insert_batch(&mut self, keys: &[u64], refused: &mut dyn FnMut(usize, Refused)) {
                Set::insert_batch(self, keys, refused);
            }
            fn remove(&mut self, key: u64) -> Option<Result<(), Refused>> {
                let remove: fn(&mut $name, u64) -> Option<Result<(), Refused>> = $remove;
                remove(self, key)
            }
            fn except(&mut self, key: u64) -> Result<(), Refused> {
                Set::except(self, &key)
            }
            fn exceptions(&self) -> u64 {
                self.stats().exceptions
            }
            fn join(&mut self, other: &Self) -> Result<(), Refused> {
                self.merge(other)
            }
            fn passing(&self) -> Vec<bool> {
                passing_of_set(self)
            }
        }
    };
}

fn passing_of_set<B: Filter>(set: &Set<B>) -> Vec<bool> {
    let keys = universe();
    let mut found = vec![false; keys.len()];
    set.contains_batch(&keys, &mut found);
    assert!(keys.iter().map(|key| set.contains(key)).eq(found.iter().copied()));
    found
}

of_the_set!(Bloom, |_, _| None);
of_the_set!(Blocked, |_, _| None);
of_the_set!(Counting, |set, key| Some(Set::remove(set, &key)));
of_the_set!(Variable, |set, key| Some(Set::remove(set, &key)));
of_the_set!(Bh, |set, key| Some(Set::remove(set, &key)));
of_the_set!(Multilayer, |set, key| Some(Set::remove(set, &key)));
of_the_set!(DLeft, |set, key| Some(Set::remove(set, &key)));
of_the_set!(Elastic, |set, key| Some(Set::remove(set, &key)));
of_the_set!(Backyard, |set, key| Some(Set::remove(set, &key)));

macro_rules! of_the_map {
    ($($name:ident)*) => {$(
        impl Subject for $name {
            fn with_room(self, room: u32) -> Self {
                self.with_exceptions(room).unwrap()
            }
            fn insert(&mut self, key: u64) -> Result<(), Refused> {
                Map::insert(self, &key, 0)
            }
            fn insert_batch(&mut self, keys: &[u64], refused: &mut dyn FnMut(usize, Refused)) {
                self.transition_batch(keys, |_, _| Next::Insert(0), refused);
            }
            fn remove(&mut self, key: u64) -> Option<Result<(), Refused>> {
                Some(self.forget(&key))
            }
            fn except(&mut self, key: u64) -> Result<(), Refused> {
                Map::except(self, &key)
            }
            fn exceptions(&self) -> u64 {
                self.stats().exceptions
            }
            fn join(&mut self, other: &Self) -> Result<(), Refused> {
                self.merge(other)
            }
            fn passing(&self) -> Vec<bool> {
                passing_of_map(self)
            }
        }
    )*};
}

fn passing_of_map<B: Cells>(map: &Map<B>) -> Vec<bool> {
    let keys = universe();
    let mut answers = vec![Lookup::Absent; keys.len()];
    map.lookup_batch(&keys, &mut answers);
    assert!(keys.iter().map(|key| map.lookup(key)).eq(answers.iter().copied()));
    answers.into_iter().map(|answer| answer != Lookup::Absent).collect()
}

of_the_map!(Direct Stateful Fingerprint);

/// A structure, and what is true of it.
struct Audited<S> {
    structure: S,
    stored: Multiset<u64>,
    excepted: BTreeSet<u64>,
}

/// Counts of the events of a run, to check that each law was tested.
#[derive(Debug, Default)]
struct Met {
    repeats_ended: u32,
    inserted_again: u32,
    full: u32,
    refused_removes: u32,
    kept_by_merge: u32,
    dropped_by_merge: u32,
}

impl<S: Subject> Audited<S> {
    fn inserted(&mut self, key: u64, met: &mut Met) {
        self.stored.insert(key);
        met.inserted_again += u32::from(self.excepted.remove(&key));
    }

    fn operate(&mut self, draw: &mut Draw<'_>, met: &mut Met) {
        let key = draw(UNIVERSE);
        let before = self.structure.to_bytes();
        let unchanged = |after: Vec<u8>| assert!(after == before, "refused, yet changed");
        match draw(10) {
            0..3 => match self.structure.insert(key % MEMBERS) {
                Ok(()) => self.inserted(key % MEMBERS, met),
                Err(_) => unchanged(self.structure.to_bytes()),
            },
            3 => {
                let keys: Vec<u64> = (0..draw(8)).map(|_| draw(MEMBERS)).collect();
                let mut refused = Vec::new();
                self.structure.insert_batch(&keys, &mut |i, _| refused.push(i));
                for (i, &key) in keys.iter().enumerate() {
                    if !refused.contains(&i) {
                        self.inserted(key, met);
                    }
                }
            }
            4..6 => {
                let members = self.stored.members();
                if let Some(&member) = members.get(draw(MEMBERS) as usize)
                    && self.structure.remove(member) == Some(Ok(()))
                {
                    self.stored.remove(member);
                }
            }
            6..9 if self.stored.count(key) == 0 => {
                let passed = self.structure.passing()[key as usize];
                let room = self.excepted.len() < ROOM as usize || self.excepted.contains(&key);
                match self.structure.except(key) {
                    Ok(()) => {
                        assert!(room);
                        self.excepted.insert(key);
                        met.repeats_ended += u32::from(passed);
                    }
                    Err(why) => {
                        let cells = ROOM.into();
                        assert!(!room && why == Refused::Full { stored: cells, cells }, "{why}");
                        unchanged(self.structure.to_bytes());
                        met.full += 1;
                    }
                }
            }
            _ => {
                // Removing an excepted key would free cells of stored keys.
                if let Some(&key) = self.excepted.iter().next()
                    && let Some(answer) = self.structure.remove(key)
                {
                    assert_eq!(answer, Err(Refused::NotStored));
                    unchanged(self.structure.to_bytes());
                    met.refused_removes += 1;
                }
            }
        }
    }

    fn merge(&mut self, other: &Self, met: &mut Met) {
        let (passing, others) = (self.structure.passing(), other.structure.passing());
        let kept: BTreeSet<u64> = self.excepted.union(&other.excepted).copied().collect();
        let kept = kept.into_iter().filter(|&key| !passing[key as usize] && !others[key as usize]);
        let kept: BTreeSet<u64> = kept.collect();
        let before = self.structure.to_bytes();
        match self.structure.join(&other.structure) {
            Ok(()) => {
                for &key in other.stored.members() {
                    (0..other.stored.count(key)).for_each(|_| self.stored.insert(key));
                }
                met.kept_by_merge += kept.len() as u32;
                met.dropped_by_merge += self.excepted.difference(&kept).count() as u32;
                self.excepted = kept;
                assert!(self.excepted.len() <= ROOM as usize);
            }
            Err(why) => {
                assert!(self.structure.to_bytes() == before, "refused, yet changed: {why}");
                met.full += u32::from(kept.len() > ROOM as usize);
            }
        }
    }

    fn check(&self) {
        let passing = self.structure.passing();
        for &key in self.stored.members() {
            assert!(passing[key as usize], "{key} is stored and rejected");
        }
        for &key in &self.excepted {
            assert!(!passing[key as usize], "{key} is excepted and passes");
        }
        assert_eq!(self.structure.exceptions(), self.excepted.len() as u64);
    }
}

fn laws<S: Subject>() -> Met {
    let mut met = Met::default();
    for seed in 0..crate::size(4_000, 400) {
        let mut rng = Rng::seeded(seed << 16 | u64::from(S::KIND));
        let draw: &mut Draw<'_> = &mut |bound| rng.below(bound);
        let Ok(first) = S::fresh(draw) else { continue };
        let pair = [is_read_back(&first), first];
        let mut pair = pair.map(|structure| Audited {
            structure: structure.with_room(ROOM),
            stored: Multiset::new(),
            excepted: BTreeSet::new(),
        });
        for step in 0..60 {
            let [one, two] = &mut pair;
            if step % 20 == 19 {
                one.merge(two, &mut met);
            }
            for audited in [one, two] {
                audited.operate(draw, &mut met);
                audited.check();
            }
        }
        pair[0].structure = is_read_back(&pair[0].structure);
        pair[0].check();
        pair[0].structure.wipe();
        assert_eq!(pair[0].structure.exceptions(), 0);
    }
    let Met { repeats_ended, inserted_again, full, kept_by_merge, dropped_by_merge, .. } = met;
    let all = [inserted_again, full, kept_by_merge, dropped_by_merge];
    assert!(all.into_iter().all(|count| count > 20), "{met:?}");
    // False positives of these two are rare: another test searches for them.
    let is_rare = [Blocked::KIND, Backyard::KIND].contains(&S::KIND);
    assert!(repeats_ended > 20 || is_rare, "{met:?}");
    met
}

macro_rules! every {
    ($($name:ident: $structure:ty;)*) => {$(
        #[test]
        fn $name() {
            let met = laws::<$structure>();
            let removes = <$structure>::KIND > Blocked::KIND;
            assert_eq!(met.refused_removes > 20, removes, "{met:?}");
        }
    )*};
}

every! {
    bloom_keeps_the_laws: Bloom;
    blocked_keeps_the_laws: Blocked;
    counting_keeps_the_laws: Counting;
    variable_keeps_the_laws: Variable;
    bh_keeps_the_laws: Bh;
    multilayer_keeps_the_laws: Multilayer;
    dleft_keeps_the_laws: DLeft;
    elastic_keeps_the_laws: Elastic;
    backyard_keeps_the_laws: Backyard;
    direct_keeps_the_laws: Direct;
    stateful_keeps_the_laws: Stateful;
    fingerprint_keeps_the_laws: Fingerprint;
}

#[test]
fn counts_and_rare_false_positives_end_too() {
    fn check<B: Filter>(mut set: Set<B>, count: impl Fn(&Set<B>, u64) -> [u64; 2]) {
        (0..500u64).for_each(|key| set.insert(&key).unwrap());
        let passes = (500..5_000_000u64).find(|key| set.contains(key)).unwrap();
        assert!(count(&set, passes)[0] > 0);
        set = set.with_exceptions(1).unwrap();
        set.except(&passes).unwrap();
        assert_eq!(count(&set, passes), [0, 0]);
        assert!(count(&set, 7)[0] > 0);
    }
    let target = || Target { deletes: true, ..Target::new(500, 0.01) };
    let left = plan::dleft::shape(target(), 2).unwrap();
    check(DLeft::new(left, SEED).unwrap(), |set, key| {
        let mut batch = [9];
        set.count_batch(&[key], &mut batch);
        [set.count(&key), batch[0]]
    });
    let yard = plan::backyard::shape(target()).unwrap();
    check(Backyard::new(yard, SEED).unwrap(), |set, key| {
        let mut batch = [9];
        set.count_batch(&[key], &mut batch);
        [set.count(&key), batch[0]]
    });
    let blocked = plan::blocked::shape(Target::new(500, 0.01)).unwrap();
    check(Blocked::new(blocked, SEED).unwrap(), |set, key| [u64::from(set.contains(&key)); 2]);
    let any = plan::set(target()).unwrap().shape;
    check(AnySet::new(any, SEED).unwrap(), |set, key| [u64::from(set.contains(&key)); 2]);
}

#[test]
fn room_for_as_many_keys_as_the_rate_foresees_ends_all_repeats() {
    let shape = bloom::Shape { bits: 5_000, hashes: 4 };
    let mut set = Bloom::from_keys(shape, Seed(3), 0..1_000u64).unwrap();
    let asked = 1_000..101_000u64;
    // Six standard deviations more than the mean.
    let mean = 100_000.0 * set.certainty().error();
    let room = (mean + 6.0 * mean.sqrt()) as u32;
    let before = set.memory_bytes();
    set = set.with_exceptions(room).unwrap();
    assert_eq!(set.memory_bytes(), before + 16 * u64::from(room));
    for key in asked.clone() {
        if set.contains(&key) {
            set.except(&key).unwrap();
        }
    }
    assert!(set.stats().exceptions as f64 > mean - 6.0 * mean.sqrt());
    assert!(!asked.into_iter().any(|key| set.contains(&key)));
    assert!((0..1_000u64).all(|key| set.contains(&key)));
}

#[test]
fn bytes_without_room_are_those_of_the_structure_and_damaged_exceptions_are_refused() {
    let shape = bloom::Shape { bits: 500, hashes: 2 };
    let plain = Bloom::from_keys(shape, SEED, 0..50u64).unwrap();
    let image = plain.to_bytes();
    assert_eq!(plain.with_exceptions(0).unwrap().to_bytes(), image);
    let mut set = Bloom::from_bytes(&image, SEED).unwrap().with_exceptions(3).unwrap();
    (100..103u64).for_each(|key| set.except(&key).unwrap());
    let image = set.to_bytes();
    let again = Bloom::from_bytes(&image, SEED).unwrap();
    assert_eq!((again.stats().exceptions, &again), (3, &set));
    assert_eq!(again.with_exceptions(2).err().unwrap().name(), Some("room"));

    // The last part of the payload: the number of exceptions, then six slots.
    let at = |word: usize| image.len() - 4 - 8 * (7 - word);
    let read = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut damaged = image.clone();
        change(&mut damaged);
        let body = damaged.len() - 4;
        let checksum = crc32fast::hash(&damaged[..body]).to_le_bytes();
        damaged[body..].copy_from_slice(&checksum);
        Bloom::from_bytes(&damaged, SEED).err()
    };
    assert_eq!(read(&|_| ()), None);
    let exceptions = Some(Malformed::Field { name: "exceptions" });
    // Too many; one that does not fit; two equal ones; bytes behind the last; more room than allowed.
    assert_eq!(read(&|image| image[at(0)] = 4), exceptions);
    assert_eq!(read(&|image| image[at(0)] = 2), exceptions);
    assert_eq!(read(&|image| image.copy_within(at(1)..at(2), at(2))), exceptions);
    assert_eq!(read(&|image| image[at(4)] = 1), exceptions);
    assert_eq!(read(&|image| image[15] = 255), exceptions);
    assert!(matches!(read(&|image| image[13] = 255), Some(Malformed::Length { .. })));
}
