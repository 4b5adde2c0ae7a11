//! Sets and counts of small universes, inside the zone where they are exact and outside it.

use super::{Draw, Operate, SEED, one_of};
use sidon::internals::{Ladder, Way};
use sidon::{
    Infeasible, Refused,
    count::Update,
    zone::{Adaptive, Any, Code, Filter, Hosts, Shape, Sketch, Subnets, egh, ols, pol, subnets},
};
use std::fmt::Debug;

/// The largest universe of the codes below, and one more.
const ELEMENTS: u64 = 62;

fn code(draw: &mut Draw<'_>) -> Shape {
    let universe = 1 + draw(60);
    match draw(4) {
        0 => Shape::Egh(egh::Shape { universe, moduli: vec![2, 3, 5, 7] }),
        1 => Shape::Egh(egh::Shape { universe, moduli: vec![4, 5, 7, 9, 11] }),
        2 => {
            let (order, groups) = one_of(draw, &[(8, 6), (12, 4), (10, 3)]);
            Shape::Ols(ols::Shape { universe, order, groups: 1 + draw(groups) as u32 })
        }
        _ => {
            let (digits, groups) = (2 + draw(2) as u32, 2 + draw(4) as u32);
            let infinity = draw(2) == 1;
            Shape::Pol(pol::Shape { universe, order: 8, digits, groups, infinity })
        }
    }
}

impl Operate for Filter<Any> {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        Filter::new(code(draw).code()?)
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        match draw(20) {
            0..14 => self.insert(&draw(ELEMENTS)),
            _ => self.merge(other),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let found: Vec<bool> = (0..ELEMENTS).map(|key| self.contains(&key)).collect();
        (found, self.list_within(1 << 12), self.len(), self.certainty().error())
    }
}

impl Operate for Sketch<Any> {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let width = one_of(draw, &[3, 5, 8, 32]);
        let update = one_of(draw, &[Update::Plain, Update::Conservative]);
        Sketch::new(code(draw).code()?, width, update)
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        match draw(32) {
            0..14 => self.add(&draw(ELEMENTS), draw(4)),
            14..25 => self.subtract(draw(ELEMENTS), draw(4)),
            25..28 => self.merge(other),
            28..30 => self.unmerge(other),
            _ => Ok(()),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let estimates: Vec<_> =
            (0..ELEMENTS).map(|key| (self.estimate(&key), self.estimate_unbiased(&key))).collect();
        let universe = self.code().universe();
        // Listing takes as long as the universe is large.
        let list = if universe <= ELEMENTS { self.list() } else { None };
        (estimates, list, self.len())
    }
}

impl Operate for Adaptive {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let way = one_of(draw, &[Way::List, Way::List, Way::Zones]);
        let universe = one_of(draw, &[1, 2, 63, 64, 65, 200, 256]);
        Ok(Ladder::new(universe, way)?.empty())
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        match draw(20) {
            0..18 => self.insert(&draw(257)),
            _ => self.merge(other),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        (self.list(), self.len(), self.memory_bytes())
    }
}

impl Operate for Hosts {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        Hosts::new(one_of(draw, &[1, 2, 7, 8, 9, 64, 256]))
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        let amount = one_of(draw, &[0, 1, 1, 2, 1 << 31, u32::MAX.into(), u64::MAX]);
        match draw(32) {
            0..18 => self.add(&draw(257), amount),
            18..29 => self.subtract(draw(257), amount),
            _ => self.merge(other),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let estimates: Vec<_> = (0..257).map(|key| self.estimate(&key)).collect();
        (estimates, self.list(), self.len())
    }
}

impl Operate for Subnets {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let subnet_bits = 3 + draw(3) as u32;
        let slots = if draw(2) == 0 { 1 << subnet_bits } else { 8 + draw(20) };
        Subnets::new(subnets::Shape { subnet_bits, slots, bitmaps: draw(4) }, SEED)
    }

    fn operate(&mut self, _: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        let subnets = 1 << self.shape().subnet_bits;
        self.observe(draw(subnets + 1), draw(12) as u8).map(|_| ())
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let subnets = 0..1 << self.shape().subnet_bits.min(6);
        let hosts: Vec<_> = subnets.map(|subnet| self.list(subnet)).collect();
        (hosts, self.len(), self.promoted())
    }
}
