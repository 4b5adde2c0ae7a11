//! The filter compared with a reference of plain vectors, in every layout that has specialised
//! code.

use super::*;
use crate::{batch::DEEP, dleft_table::ANY};
use sidon_kit::Rng;
use std::collections::HashMap;

/// Remainder and copies, if a cell is in use.
type Cell = Option<(u64, u64)>;

/// The algorithm of the paper, cell by cell. Untouched buckets are not listed.
struct Twin {
    shape: Shape,
    buckets: HashMap<usize, Vec<Cell>>,
}

impl Twin {
    fn new(shape: Shape) -> Self {
        Twin { shape, buckets: HashMap::new() }
    }

    /// The bucket and remainder of a key in each subtable.
    fn places(&mut self, filter: &DLeft, key: u64) -> Vec<(usize, u64)> {
        let addressing = filter.body.table.addressing;
        let fingerprint = filter.fingerprint(&key);
        let permuted = filter.body.table.fingerprints.permuted::<ANY>(fingerprint);
        let place = |(i, &word)| (addressing.bucket(i, word), remainder(self.shape, word));
        let permuted = permuted[..self.shape.subtables as usize].iter().enumerate();
        let places: Vec<_> = permuted.map(place).collect();
        for &(bucket, _) in &places {
            self.buckets.entry(bucket).or_insert_with(|| vec![None; self.shape.cells as usize]);
        }
        places
    }

    fn in_use(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.values().flatten().flatten().copied()
    }

    /// The first cell of the key.
    fn find(&self, places: &[(usize, u64)]) -> Option<(usize, usize)> {
        let holds = |cell: &Cell, remainder| cell.is_some_and(|it| it.0 == remainder);
        places.iter().find_map(|&(bucket, remainder)| {
            let cell = self.buckets[&bucket].iter().position(|cell| holds(cell, remainder))?;
            Some((bucket, cell))
        })
    }

    fn count(&self, places: &[(usize, u64)]) -> u64 {
        let copies = |&(bucket, remainder): &(usize, u64)| -> u64 {
            let cells = self.buckets[&bucket].iter().flatten();
            cells.filter(|cell| cell.0 == remainder).map(|cell| cell.1).sum()
        };
        places.iter().map(copies).sum()
    }

    fn insert(&mut self, places: &[(usize, u64)]) -> Result<(), Refused> {
        let shape = self.shape;
        if shape.counter > 0
            && let Some((bucket, cell)) = self.find(places)
            && let Some((remainder, copies)) = &mut self.cells(bucket)[cell]
        {
            let largest = *remainder == (1 << shape.remainder) - 1;
            let ceiling = shape.ceiling() - u64::from(largest);
            if *copies == ceiling {
                return Err(Refused::Overflow { ceiling });
            }
            *copies += 1;
            return Ok(());
        }
        let load = |bucket: usize| self.buckets[&bucket].iter().flatten().count();
        let best = places.iter().min_by_key(|place| load(place.0));
        let Some(&(bucket, remainder)) = best else { unreachable!("there are subtables") };
        match self.cells(bucket).iter_mut().find(|cell| cell.is_none()) {
            Some(cell) => *cell = Some((remainder, 1)),
            None => {
                let stored = self.in_use().count() as u64;
                return Err(Refused::Full { stored, cells: self.shape.all_cells() });
            }
        }
        Ok(())
    }

    fn remove(&mut self, places: &[(usize, u64)]) -> Result<(), Refused> {
        let (bucket, cell) = self.find(places).ok_or(Refused::NotStored)?;
        let cell = &mut self.cells(bucket)[cell];
        *cell = cell.and_then(|(remainder, copies)| (copies > 1).then(|| (remainder, copies - 1)));
        Ok(())
    }

    fn cells(&mut self, bucket: usize) -> &mut [Cell] {
        self.buckets.get_mut(&bucket).expect("a bucket that a key has met")
    }

    fn assert_equal(&self, filter: &DLeft) {
        for (&i, cells) in &self.buckets {
            let subtable = i / self.shape.buckets as usize;
            for (cell, &own) in cells.iter().enumerate() {
                let theirs = filter.body.table.cell(i, cell as u32);
                let places = theirs.map(|(fingerprint, low)| {
                    let permuted = filter.body.table.fingerprints.permuted::<ANY>(fingerprint);
                    (remainder(self.shape, permuted[subtable]), low + 1)
                });
                assert_eq!(places, own, "cell {cell} of bucket {i} in {:?}", self.shape);
            }
        }
        assert_eq!(filter.len(), self.in_use().map(|cell| cell.1).sum::<u64>());
        let used = self.in_use().count() as f64;
        assert_eq!(filter.stats().load, used / self.shape.all_cells() as f64);
    }
}

/// The remainder of a permuted fingerprint.
fn remainder(shape: Shape, permuted: u64) -> u64 {
    permuted & ((1 << shape.remainder) - 1)
}

/// Compares batches of all lengths and single operations on keys of a small universe.
fn is_its_twin(shape: Shape, universe: u64, rounds: u32) {
    let mut filter = DLeft::new(shape, Seed(3)).unwrap();
    let mut twin = Twin::new(shape);
    let mut rng = Rng::seeded(universe);
    for round in 0..rounds {
        let len = [1, 7, 8, 31, 32, 33, 100, 300][rng.below(8) as usize];
        let keys: Vec<u64> = (0..len).map(|_| rng.below(universe)).collect();
        let places: Vec<_> = keys.iter().map(|&key| twin.places(&filter, key)).collect();
        let counts: Vec<u64> = places.iter().map(|places| twin.count(places)).collect();
        let (mut found, mut counted) = (vec![false; len], vec![0; len]);
        filter.contains_batch(&keys, &mut found);
        filter.count_batch(&keys, &mut counted);
        assert_eq!(counted, counts, "{shape:?}");
        assert!(found.iter().zip(&counts).all(|(&found, &count)| found == (count > 0)));
        assert!(keys.iter().zip(&counts).all(|(key, &count)| filter.count(key) == count));
        assert!(keys.iter().zip(&found).all(|(key, &found)| filter.contains(key) == found));

        let (insert, batch) = (rng.below(5) < 3, rng.below(4) > 0);
        let act = |places| if insert { twin.insert(places) } else { twin.remove(places) };
        let wanted: Vec<_> = places.iter().map(Vec::as_slice).map(act).collect();
        let mut done = vec![Ok(()); len];
        match (batch, insert) {
            (true, true) => filter.insert_batch(&keys, &mut |i, why| done[i] = Err(why)),
            (true, false) => filter.remove_batch(&keys, &mut |i, why| done[i] = Err(why)),
            (false, _) => {
                for (done, key) in done.iter_mut().zip(&keys) {
                    *done = if insert { filter.insert(key) } else { filter.remove(key) };
                }
            }
        }
        assert_eq!(done, wanted, "{shape:?}");
        if round % 16 == 0 || round + 1 == rounds {
            twin.assert_equal(&filter);
        }
    }
}

const SHAPE: Shape = Shape {
    subtables: 2,
    buckets: 5,
    cells: 8,
    width: 16,
    remainder: 14,
    counter: 2,
    moves: Moves::Never,
    growths: 0,
    grows: false,
};

#[test]
fn every_layout_does_what_plain_vectors_do() {
    let layouts = [
        (8, 16),
        (8, 32),
        (16, 8),
        (16, 16),
        (16, 32),
        (32, 8),
        (32, 16),
        (13, 8),
        (11, 16),
        (7, 32),
        (27, 8),
    ];
    for (width, cells) in layouts {
        for subtables in [2, 3, 4, 8] {
            for counter in [0, 1, 2] {
                // Short remainders, so that keys share fingerprints and the largest remainder
                // occurs.
                for remainder in [4, (width - counter).min(20)] {
                    let shape = Shape { subtables, cells, width, remainder, counter, ..SHAPE };
                    let rounds = if cfg!(feature = "slow-tests") { 60 } else { 15 };
                    is_its_twin(shape, 3 * shape.all_cells() / 2, rounds);
                }
            }
        }
    }
}

#[test]
fn tables_beyond_the_caches_do_what_plain_vectors_do() {
    for (subtables, cells) in [(2, 16), (4, 8), (3, 16)] {
        let shape = Shape { subtables, cells, remainder: 5, counter: 3, ..SHAPE };
        for bytes in [1 << 20, DEEP as u64 + 4096] {
            let buckets = bytes / u64::from(subtables * cells * 2);
            // Few keys, many copies.
            is_its_twin(Shape { buckets, ..shape }, 200, 60);
        }
    }
}

#[test]
fn a_table_grows_within_a_batch_as_it_does_key_by_key() {
    for counter in [0, 2] {
        let shape = Shape { remainder: 13, counter, growths: 4, grows: true, ..SHAPE };
        let keys: Vec<u64> = (0..3_000).map(|key| key % 1_100).collect();
        let (mut batch, mut single) =
            (DLeft::new(shape, Seed(4)).unwrap(), DLeft::new(shape, Seed(4)).unwrap());
        for keys in keys.chunks(300) {
            let mut refused = Vec::new();
            batch.insert_batch(keys, &mut |i, why| refused.push((i, why)));
            let done = keys.iter().map(|key| single.insert(key)).enumerate();
            let one_by_one: Vec<_> = done.filter_map(|(i, done)| Some((i, done.err()?))).collect();
            assert_eq!(refused, one_by_one);
            assert_eq!(batch.loads(), single.loads());
            assert!(batch.body.fingerprints().eq(single.body.fingerprints()));
        }
        assert_eq!(batch.shape().growths, 0, "it never grew to its limit");
        let mut found = vec![false; keys.len()];
        batch.contains_batch(&keys, &mut found);
        assert!(found.iter().filter(|&&found| found).count() as u64 >= batch.len());
    }
}

#[test]
fn a_closure_that_panics_leaves_sizes_as_they_are() {
    let mut filter = DLeft::new(SHAPE, Seed(5)).unwrap();
    let keys: Vec<u64> = (0..20).map(|key| if key < 16 { key } else { 1_000 + key }).collect();
    filter.insert_batch(&keys[..16], &mut |_, why| panic!("{why}"));
    let removed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mixed: Vec<u64> = keys[..5].iter().chain(&keys[16..]).copied().collect();
        filter.remove_batch(&mixed, &mut |_, _| panic!("refused"));
    }));
    assert!(removed.is_err());
    assert_eq!(filter.len(), filter.body.fingerprints().map(|(_, copies)| copies).sum::<u64>());
}
