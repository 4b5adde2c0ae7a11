//! Count-Min sketches of others, of four rows and the bytes that are given.
//!
//! `datasketches` is plain, of any number of columns. `pingora-limits` is plain, of counters of 64
//! bits, so it has half the columns in the same bytes. `count-min-sketch` is conservative, of a
//! power of two of columns: the next one below.

use crate::{
    count::{Counter, Entry, ROWS},
    filter::Tuple,
};
use anyhow::{Result, anyhow};
use count_min_sketch::CountMinSketch32;
use datasketches::countmin::CountMinSketch;
use pingora_limits::estimator::Estimator;

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::peer("datasketches", |bytes| {
        let columns = u32::try_from(bytes / (4 * ROWS as u64))?;
        let sketch = CountMinSketch::<u32>::new(ROWS as u8, columns);
        Ok(Box::new(Datasketches(sketch.map_err(|why| anyhow!("{why:?}"))?)))
    }),
    Entry::peer("pingora_limits", |bytes| {
        let columns = bytes as usize / (8 * ROWS);
        Ok(Box::new(Pingora(Estimator::new(ROWS, columns), columns)))
    }),
    Entry::peer("count_min_sketch", |bytes| Ok(Box::new(Conservative::new(bytes)?))),
];

struct Datasketches(CountMinSketch<u32>);

impl Counter for Datasketches {
    fn bytes(&self) -> u64 {
        self.0.estimated_size() as u64
    }

    fn add(&mut self, keys: &[Tuple], amounts: &[u64]) {
        for (key, amount) in keys.iter().zip(amounts) {
            self.0.update_with_weight(key, *amount as u32);
        }
    }

    fn estimate(&self, keys: &[Tuple], values: &mut [u64]) {
        for (key, value) in keys.iter().zip(values) {
            *value = self.0.estimate(key).into();
        }
    }
}

struct Pingora(Estimator, usize);

impl Counter for Pingora {
    fn bytes(&self) -> u64 {
        (self.1 * 8 * ROWS) as u64
    }

    fn add(&mut self, keys: &[Tuple], amounts: &[u64]) {
        for (key, amount) in keys.iter().zip(amounts) {
            self.0.incr(key, *amount as isize);
        }
    }

    fn estimate(&self, keys: &[Tuple], values: &mut [u64]) {
        for (key, value) in keys.iter().zip(values) {
            *value = self.0.get(key) as u64;
        }
    }
}

struct Conservative {
    sketch: CountMinSketch32<Tuple>,
    bytes: u64,
}

impl Conservative {
    fn new(bytes: u64) -> Result<Self> {
        let most = bytes as usize / (4 * ROWS);
        let columns = 1usize << most.checked_ilog2().ok_or_else(|| anyhow!("no room"))?;
        // It takes 2 * capacity / tolerance columns, and a row for each halving of the doubt.
        let (capacity, probability) = (columns / 2, 1.0 - 0.5f64.powf(ROWS as f64 + 0.5));
        let needed = CountMinSketch32::<Tuple>::estimate_memory(capacity, probability, 1.0);
        let needed = needed.map_err(|why| anyhow!(why))? as u64;
        anyhow::ensure!(needed == (columns * 4 * ROWS) as u64, "it takes {needed} bytes");
        let sketch = CountMinSketch32::new(capacity, probability, 1.0);
        Ok(Conservative { sketch: sketch.map_err(|why| anyhow!(why))?, bytes: needed })
    }
}

impl Counter for Conservative {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn add(&mut self, keys: &[Tuple], amounts: &[u64]) {
        for (key, amount) in keys.iter().zip(amounts) {
            self.sketch.add(key, *amount as u32);
        }
    }

    fn estimate(&self, keys: &[Tuple], values: &mut [u64]) {
        for (key, value) in keys.iter().zip(values) {
            *value = self.sketch.estimate(key).into();
        }
    }
}
