//! A table of any type of keys and of one or two amounts, behind one trait.

use super::kind::Kind;
use crate::{error::Raise, key::Column};
use pyo3::prelude::*;
use sidon::{
    Infeasible, Malformed, Refused, Seed,
    count::{
        Bounds, Top,
        top::{Shape, Stored},
    },
};
use std::{any::Any, net::IpAddr};

/// Keys that are passed on together.
const CHUNK: usize = 4096;

/// The heaviest keys as bytes: of a [`Ranking`](sidon::count::Ranking).
pub(super) struct Listed {
    pub(super) entries: Vec<(Vec<u8>, Vec<Bounds>)>,
    pub(super) others: u64,
    pub(super) complete: usize,
    pub(super) leading: usize,
}

/// A table whose type of keys is known at run time. Keys of a column have been checked.
pub(super) trait Table: Send + Sync {
    fn add_batch(&mut self, keys: &Column, amounts: &[&[u64]]);
    fn bounds(&self, keys: &Column) -> Vec<Bounds>;
    fn heaviest(&self, count: usize) -> Listed;
    fn merge(&mut self, other: &dyn Table, disjoint: bool) -> Result<(), Refused>;
    fn clear(&mut self);
    fn try_clone(&self) -> Result<Box<dyn Table>, Infeasible>;
    fn to_bytes(&self) -> Vec<u8>;
    fn shape(&self) -> Shape;
    fn seed(&self) -> Seed;
    fn total(&self) -> Vec<u64>;
    fn len(&self) -> u64;
    fn memory_bytes(&self) -> u64;
    fn as_any(&self) -> &dyn Any;
}

/// A key that is made of checked bytes.
pub(crate) trait Kept: Stored + Send + Sync + 'static {
    fn of(bytes: &[u8]) -> Self;
    fn bytes(self) -> Vec<u8>;
}

/// Shorter bytes get zeros behind them.
impl<const N: usize> Kept for [u8; N] {
    fn of(bytes: &[u8]) -> Self {
        let mut key = [0; N];
        key[..bytes.len()].copy_from_slice(bytes);
        key
    }

    fn bytes(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Kept for IpAddr {
    fn of(bytes: &[u8]) -> Self {
        match <[u8; 4]>::try_from(bytes) {
            Ok(octets) => octets.into(),
            Err(_) => <[u8; 16]>::of(bytes).into(),
        }
    }

    fn bytes(self) -> Vec<u8> {
        match self {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }
}

impl<K: Kept, const A: usize> Table for Top<K, A> {
    fn add_batch(&mut self, keys: &Column, amounts: &[&[u64]]) {
        let (mut part, mut parts) = (Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
        let mut first = 0;
        let mut add = |part: &mut Vec<K>| {
            let of = |row: usize| std::array::from_fn(|amount| amounts[amount][row]);
            parts.clear();
            parts.extend((first..first + part.len()).map(of));
            Top::add_batch(self, part, &parts);
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

    fn bounds(&self, keys: &Column) -> Vec<Bounds> {
        let mut all = Vec::with_capacity(keys.len() * A);
        for (_, rows) in keys.parts() {
            rows.each_key(&mut |bytes| all.extend(Top::bounds(self, &K::of(bytes))));
        }
        all
    }

    fn heaviest(&self, count: usize) -> Listed {
        let ranking = Top::heaviest(self, count);
        let entries = ranking
            .entries
            .iter()
            .map(|entry| (entry.key.bytes(), entry.amounts.to_vec()))
            .collect();
        Listed {
            entries,
            others: ranking.others,
            complete: ranking.complete,
            leading: ranking.leading,
        }
    }

    fn merge(&mut self, other: &dyn Table, disjoint: bool) -> Result<(), Refused> {
        let Some(other) = other.as_any().downcast_ref::<Self>() else {
            return Err(Refused::Mismatch { field: "keys or amounts" });
        };
        if disjoint { self.merge_disjoint(other) } else { Top::merge(self, other) }
    }

    fn clear(&mut self) {
        Top::clear(self);
    }

    fn try_clone(&self) -> Result<Box<dyn Table>, Infeasible> {
        Ok(Box::new(Top::try_clone(self)?))
    }

    fn to_bytes(&self) -> Vec<u8> {
        Top::to_bytes(self)
    }

    fn shape(&self) -> Shape {
        Top::shape(self)
    }

    fn seed(&self) -> Seed {
        Top::seed(self)
    }

    fn total(&self) -> Vec<u64> {
        Top::total(self).to_vec()
    }

    fn len(&self) -> u64 {
        Top::len(self)
    }

    fn memory_bytes(&self) -> u64 {
        Top::memory_bytes(self)
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

/// Why there is no such table.
pub(crate) enum Unbuilt {
    Infeasible(Infeasible),
    Malformed(Malformed),
}

impl Raise for Unbuilt {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Unbuilt::Infeasible(why) => why.raise(py),
            Unbuilt::Malformed(why) => why.raise(py),
        }
    }
}

type Built = Result<Box<dyn Table>, Unbuilt>;

/// The table of this type of keys, with `amounts` amounts.
pub(super) fn build(kind: Kind, amounts: usize, source: &Source<'_>, seed: Seed) -> Built {
    match (kind, kind.width()) {
        (Kind::Ip, _) => of_amounts::<IpAddr>(amounts, source, seed),
        (_, 4) => of_amounts::<[u8; 4]>(amounts, source, seed),
        (_, 8) => of_amounts::<[u8; 8]>(amounts, source, seed),
        (_, 13) => of_amounts::<[u8; 13]>(amounts, source, seed),
        (_, 16) => of_amounts::<[u8; 16]>(amounts, source, seed),
        (_, 32) => of_amounts::<[u8; 32]>(amounts, source, seed),
        (_, 37) => of_amounts::<[u8; 37]>(amounts, source, seed),
        _ => of_amounts::<[u8; 64]>(amounts, source, seed),
    }
}

fn of_amounts<K: Kept>(amounts: usize, source: &Source<'_>, seed: Seed) -> Built {
    match amounts {
        1 => one::<K, 1>(source, seed),
        2 => one::<K, 2>(source, seed),
        got => {
            let (name, got, least, most) = ("amounts", got as u64, 1, 2);
            Err(Unbuilt::Infeasible(Infeasible::OutOfRange { name, got, least, most }))
        }
    }
}

fn one<K: Kept, const A: usize>(source: &Source<'_>, seed: Seed) -> Built {
    Ok(match source {
        Source::Shape(shape) => {
            Box::new(Top::<K, A>::new(*shape, seed).map_err(Unbuilt::Infeasible)?)
        }
        Source::Image(image) => {
            Box::new(Top::<K, A>::from_bytes(image, seed).map_err(Unbuilt::Malformed)?)
        }
    })
}
