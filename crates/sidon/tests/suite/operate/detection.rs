//! Tests of subjects and contacts of pairs: trials, contacts, restarts and merges.

use super::{Draw, MEMBERS, Operate, SEED, UNIVERSE, any_key, member, one_of};
use sidon::{
    Infeasible, Refused,
    count::{Periods, periods},
    decide::{Suspects, failures, suspects},
};
use std::fmt::Debug;

type Sources = Suspects<[u8; 4]>;

fn source(key: u64) -> [u8; 4] {
    [10, 0, (key / 7) as u8, key as u8]
}

impl Operate for Sources {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let usual = one_of(draw, &[1, 20_000, 300_000]);
        let attacks = [0; 4].map(|_| usual + 1 + draw(600_000) as u32);
        let apart = one_of(draw, &[1, 50, 1_000_000, 1 << 62]);
        let test = failures::Shape { usual, attacks, apart };
        Suspects::new(suspects::Shape { buckets: 1 + draw(3), test }, SEED)
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        match draw(32) {
            0..28 => _ = self.see(&source(any_key(draw)), draw(3) > 0),
            28..30 => self.restart(&source(member(draw))),
            _ => return self.merge(other),
        }
        Ok(())
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let tests: Vec<_> = (0..UNIVERSE).map(|key| self.test(&source(key))).collect();
        (tests, self.accused().collect::<Vec<_>>(), self.len(), self.lost())
    }
}

type Pairs = Periods<[u8; 4]>;

impl Operate for Pairs {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let shortest = 1 + draw(3);
        let grace = shortest + draw(1_000);
        let longest = grace + one_of(draw, &[0, 500, 1 << 39]);
        Periods::new(periods::Shape { buckets: 1 + draw(3), shortest, grace, longest }, SEED)
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        let now = match draw(16) {
            0 => one_of(draw, &[0, u64::MAX, u64::MAX / 2]),
            _ => draw(40_000) * 1_000_000,
        };
        match draw(32) {
            0..20 => _ = self.see(&source(any_key(draw)), now),
            20..30 => _ = self.see(&source(draw(MEMBERS / 8)), now),
            _ => return self.merge(other),
        }
        Ok(())
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let pairs: Vec<_> = (0..UNIVERSE).map(|key| self.get(&source(key))).collect();
        (pairs, self.most_regular(7), self.len(), self.refused())
    }
}
