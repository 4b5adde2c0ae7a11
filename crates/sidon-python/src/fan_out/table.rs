//! A table of any type of keys, behind one trait.

use crate::{
    key::Column,
    top::{
        kind::Kind,
        table::{Kept, Unbuilt},
    },
};
use sidon::{
    Digest, Infeasible, Refused, Seed,
    count::{FanOut, Interval, fan_out::Shape},
};
use std::{any::Any, net::IpAddr};

/// Keys that are passed on together.
const CHUNK: usize = 4096;

/// A table whose type of keys is known at run time. Keys of a column have been checked.
pub(super) trait Table: Send + Sync {
    fn add_batch(&mut self, keys: &Column, elements: &[Digest], now: u64);
    fn estimate(&self, keys: &Column, now: u64) -> Vec<Interval>;
    fn largest(&self, count: usize, now: u64) -> Vec<(Vec<u8>, Interval)>;
    fn others(&self, now: u64) -> u64;
    fn merge(&mut self, other: &dyn Table) -> Result<(), Refused>;
    fn clear(&mut self);
    fn try_clone(&self) -> Result<Box<dyn Table>, Infeasible>;
    fn to_bytes(&self) -> Vec<u8>;
    fn shape(&self) -> Shape;
    fn seed(&self) -> Seed;
    fn len(&self) -> u64;
    fn memory_bytes(&self) -> u64;
    fn as_any(&self) -> &dyn Any;
}

impl<K: Kept> Table for FanOut<K> {
    fn add_batch(&mut self, keys: &Column, elements: &[Digest], now: u64) {
        let (mut part, mut first) = (Vec::with_capacity(CHUNK), 0);
        let mut add = |part: &mut Vec<K>| {
            FanOut::add_batch(self, part, &elements[first..first + part.len()], now);
            first += part.len();
            part.clear();
        };
        for (_, rows) in keys.parts() {
            rows.each_key(&mut |bytes| {
                part.push(K::of(bytes));
                if part.len() == CHUNK {
                    add(&mut part);
                }
            });
        }
        add(&mut part);
    }

    fn estimate(&self, keys: &Column, now: u64) -> Vec<Interval> {
        let mut all = Vec::with_capacity(keys.len());
        for (_, rows) in keys.parts() {
            rows.each_key(&mut |bytes| all.push(FanOut::estimate(self, &K::of(bytes), now)));
        }
        all
    }

    fn largest(&self, count: usize, now: u64) -> Vec<(Vec<u8>, Interval)> {
        let list = FanOut::largest(self, count, now);
        list.into_iter().map(|(key, interval)| (key.bytes(), interval)).collect()
    }

    fn others(&self, now: u64) -> u64 {
        FanOut::others(self, now)
    }

    fn merge(&mut self, other: &dyn Table) -> Result<(), Refused> {
        match other.as_any().downcast_ref::<Self>() {
            Some(other) => FanOut::merge(self, other),
            None => Err(Refused::Mismatch { field: "keys" }),
        }
    }

    fn clear(&mut self) {
        FanOut::clear(self);
    }

    fn try_clone(&self) -> Result<Box<dyn Table>, Infeasible> {
        Ok(Box::new(FanOut::try_clone(self)?))
    }

    fn to_bytes(&self) -> Vec<u8> {
        FanOut::to_bytes(self)
    }

    fn shape(&self) -> Shape {
        FanOut::shape(self)
    }

    fn seed(&self) -> Seed {
        FanOut::seed(self)
    }

    fn len(&self) -> u64 {
        FanOut::len(self)
    }

    fn memory_bytes(&self) -> u64 {
        FanOut::memory_bytes(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The content of a new table.
pub(super) enum Source<'a> {
    /// Nothing.
    Shape(Shape),
    /// The table of these bytes.
    Image(&'a [u8]),
}

type Built = Result<Box<dyn Table>, Unbuilt>;

/// The table of this type of keys.
pub(super) fn build(kind: Kind, source: &Source<'_>, seed: Seed) -> Built {
    match (kind, kind.width()) {
        (Kind::Ip, _) => one::<IpAddr>(source, seed),
        (_, 4) => one::<[u8; 4]>(source, seed),
        (_, 8) => one::<[u8; 8]>(source, seed),
        (_, 13) => one::<[u8; 13]>(source, seed),
        (_, 16) => one::<[u8; 16]>(source, seed),
        (_, 32) => one::<[u8; 32]>(source, seed),
        (_, 37) => one::<[u8; 37]>(source, seed),
        _ => one::<[u8; 64]>(source, seed),
    }
}

fn one<K: Kept>(source: &Source<'_>, seed: Seed) -> Built {
    Ok(match source {
        Source::Shape(shape) => {
            Box::new(FanOut::<K>::new(*shape, seed).map_err(Unbuilt::Infeasible)?)
        }
        Source::Image(image) => {
            Box::new(FanOut::<K>::from_bytes(image, seed).map_err(Unbuilt::Malformed)?)
        }
    })
}
