//! Pairwise coprime moduli with the least sum.
//!
//! A greedy search starts at several numbers near the root of the universe, and takes each next number
//! that shares no prime with those taken. For few moduli, a search of bounded length then tries every
//! next number, and skips those that cannot come below the best sum.

use crate::zone::egh::MODULUS_MAX;

/// Numbers that the search tries for each `t`.
const STEPS: u32 = 100_000;
/// The most moduli that are searched for beyond the greedy ones.
const SEARCHED_MAX: u64 = 32;
/// How many starts the greedy way has.
const STARTS: u64 = 64;

/// The greatest common divisor.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// `groups` pairwise coprime numbers in rising order whose `digits` smallest multiply to `universe`
/// or more, with a sum below `bound`; the least sum, unless the search takes too long.
pub(super) fn moduli(universe: u64, groups: u64, digits: u32, bound: u64) -> Option<Vec<u32>> {
    let mut search =
        Search { groups: groups as usize, digits, universe, best: None, bound, steps: STEPS };
    let root = (universe as f64).powf(1.0 / f64::from(digits)) as u64;
    let step = (root / STARTS).max(1);
    for start in (root / 2..root + 4 * step).step_by(step as usize) {
        search.greedy(start.max(2));
    }
    if groups <= SEARCHED_MAX {
        search.extend(&mut Vec::new(), 1, 0);
    }
    search.best
}

struct Search {
    groups: usize,
    digits: u32,
    universe: u64,
    best: Option<Vec<u32>>,
    /// A sum that must be beaten.
    bound: u64,
    steps: u32,
}

impl Search {
    /// The first numbers from `start` on that share no prime.
    fn greedy(&mut self, start: u64) {
        let (mut chosen, mut sum, mut product) = (Vec::new(), 0, 1u128);
        let mut used = std::collections::HashSet::new();
        let mut next = start;
        while chosen.len() < self.groups {
            let left = (self.groups - chosen.len()) as u64;
            if left.saturating_mul(next).saturating_add(sum) >= self.bound || next > MODULUS_MAX {
                return;
            }
            let primes = primes_of(next);
            if primes.iter().all(|prime| !used.contains(prime)) {
                used.extend(primes);
                chosen.push(next as u32);
                sum += next;
                if chosen.len() <= self.digits as usize {
                    product = product.saturating_mul(next.into());
                }
                if chosen.len() == self.digits as usize && product < self.universe.into() {
                    return;
                }
            }
            next += 1;
        }
        (self.best, self.bound) = (Some(chosen), sum);
    }

    /// Tries every next number after those chosen, the smallest first.
    fn extend(&mut self, chosen: &mut Vec<u32>, product: u128, sum: u64) {
        if chosen.len() == self.groups {
            if sum < self.bound {
                (self.best, self.bound) = (Some(chosen.clone()), sum);
            }
            return;
        }
        let left = (self.groups - chosen.len()) as u64;
        let mut next = chosen.last().map_or(2, |&last| u64::from(last) + 1);
        let among_smallest = chosen.len() < self.digits as usize;
        if chosen.len() + 1 == self.digits as usize {
            // The last of the smallest has to reach the universe.
            let rest = u128::from(self.universe).div_ceil(product);
            next = next.max(u64::try_from(rest).unwrap_or(u64::MAX));
        }
        // Of numbers in a row that are pairwise coprime at most one is even.
        let gaps = left.saturating_sub(2) * left.saturating_sub(1);
        loop {
            let least = left.saturating_mul(next).saturating_add(gaps).saturating_add(sum);
            if least >= self.bound || next > MODULUS_MAX || self.steps == 0 {
                return;
            }
            self.steps -= 1;
            if chosen.iter().all(|&other| gcd(next, other.into()) == 1) {
                chosen.push(next as u32);
                let factor = if among_smallest { next } else { 1 };
                self.extend(chosen, product.saturating_mul(factor.into()), sum + next);
                chosen.pop();
            }
            next += 1;
        }
    }
}

/// The primes that divide a number.
pub(crate) fn primes_of(mut n: u64) -> Vec<u64> {
    let (mut primes, mut p) = (Vec::new(), 2);
    while p <= n / p {
        if n.is_multiple_of(p) {
            primes.push(p);
            while n.is_multiple_of(p) {
                n /= p;
            }
        }
        p += 1;
    }
    primes.extend((n > 1).then_some(n));
    primes
}
