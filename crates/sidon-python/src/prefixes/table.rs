//! A table of one to four amounts, behind one trait.

use crate::{error::Raise, key::Column};
use pyo3::prelude::*;
use sidon::{
    Infeasible, Malformed, Refused, Seed,
    count::{Bounds, Prefix, Prefixes, prefixes::Shape},
};
use std::{any::Any, net::IpAddr};

/// A prefix of a list, the bounds of its amounts, and those of its residue.
pub(super) type Row = (Prefix, Vec<Bounds>, Vec<Bounds>);

/// A table whose number of amounts is known at run time. Addresses of a column have been checked.
pub(super) trait Table: Send + Sync {
    fn add_batch(&mut self, addresses: &Column, amounts: &[&[u64]]) -> Result<(), Refused>;
    fn bounds(&self, prefix: &Prefix) -> Vec<Bounds>;
    fn heavy(&self, amount: usize, least: u64) -> (Vec<Row>, u64);
    fn halve(&mut self, times: u32);
    fn merge(&mut self, other: &dyn Table) -> Result<(), Refused>;
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

/// The address of 4 or 16 bytes.
fn address(bytes: &[u8]) -> IpAddr {
    match <[u8; 4]>::try_from(bytes) {
        Ok(octets) => octets.into(),
        Err(_) => <[u8; 16]>::try_from(bytes).unwrap_or_default().into(),
    }
}

impl<const A: usize> Table for Prefixes<A> {
    fn add_batch(&mut self, addresses: &Column, amounts: &[&[u64]]) -> Result<(), Refused> {
        let mut all = Vec::with_capacity(addresses.len());
        for (_, rows) in addresses.parts() {
            rows.each_key(&mut |bytes| all.push(address(bytes)));
        }
        let of = |row: usize| std::array::from_fn(|amount| amounts[amount][row]);
        Prefixes::add_batch(self, &all, &(0..all.len()).map(of).collect::<Vec<_>>())
    }

    fn bounds(&self, prefix: &Prefix) -> Vec<Bounds> {
        Prefixes::bounds(self, prefix).to_vec()
    }

    fn heavy(&self, amount: usize, least: u64) -> (Vec<Row>, u64) {
        let heavy = Prefixes::heavy(self, amount, least);
        let rows =
            heavy.rows.iter().map(|row| (row.prefix, row.amounts.to_vec(), row.residue.to_vec()));
        (rows.collect(), heavy.others)
    }

    fn halve(&mut self, times: u32) {
        Prefixes::halve(self, times);
    }

    fn merge(&mut self, other: &dyn Table) -> Result<(), Refused> {
        let Some(other) = other.as_any().downcast_ref::<Self>() else {
            return Err(Refused::Mismatch { field: "amounts" });
        };
        Prefixes::merge(self, other)
    }

    fn clear(&mut self) {
        Prefixes::clear(self);
    }

    fn try_clone(&self) -> Result<Box<dyn Table>, Infeasible> {
        Ok(Box::new(Prefixes::try_clone(self)?))
    }

    fn to_bytes(&self) -> Vec<u8> {
        Prefixes::to_bytes(self)
    }

    fn shape(&self) -> Shape {
        Prefixes::shape(self)
    }

    fn seed(&self) -> Seed {
        Prefixes::seed(self)
    }

    fn total(&self) -> Vec<u64> {
        Prefixes::total(self).to_vec()
    }

    fn len(&self) -> u64 {
        Prefixes::len(self).iter().sum()
    }

    fn memory_bytes(&self) -> u64 {
        Prefixes::memory_bytes(self)
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
pub(super) enum Unbuilt {
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

/// The table with `amounts` amounts.
pub(super) fn build(
    amounts: u64,
    source: &Source<'_>,
    seed: Seed,
) -> Result<Box<dyn Table>, Unbuilt> {
    match amounts {
        1 => one::<1>(source, seed),
        2 => one::<2>(source, seed),
        3 => one::<3>(source, seed),
        4 => one::<4>(source, seed),
        got => {
            let (name, least, most) = ("amounts", 1, 4);
            Err(Unbuilt::Infeasible(Infeasible::OutOfRange { name, got, least, most }))
        }
    }
}

fn one<const A: usize>(source: &Source<'_>, seed: Seed) -> Result<Box<dyn Table>, Unbuilt> {
    Ok(match source {
        Source::Shape(shape) => {
            Box::new(Prefixes::<A>::new(*shape, seed).map_err(Unbuilt::Infeasible)?)
        }
        Source::Image(image) => {
            Box::new(Prefixes::<A>::from_bytes(image, seed).map_err(Unbuilt::Malformed)?)
        }
    })
}
