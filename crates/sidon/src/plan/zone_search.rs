//! Pairwise coprime moduli with the least sum.

use crate::zone::egh::MODULUS_MOST;

/// Nodes of the search for each `t`.
const NODES: u32 = 200_000;

/// The greatest common divisor.
pub fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// `groups` pairwise coprime numbers in rising order whose `digits` smallest multiply to `universe`
/// or more, with a sum below `bound`; the least sum, unless the search takes too long.
pub(super) fn moduli(universe: u64, groups: u64, digits: u32, bound: u64) -> Option<Vec<u32>> {
    let mut search =
        Search { groups: groups as usize, digits, universe, best: None, bound, nodes: NODES };
    search.extend(&mut Vec::new(), 1, 0);
    search.best
}

struct Search {
    groups: usize,
    digits: u32,
    universe: u64,
    best: Option<Vec<u32>>,
    /// A sum that must be beaten.
    bound: u64,
    nodes: u32,
}

impl Search {
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
            next = next.max(
                u64::try_from(u128::from(self.universe).div_ceil(product)).unwrap_or(u64::MAX),
            );
        }
        loop {
            // No fewer than so many numbers in a row, of which at most one is even.
            let least = left
                .checked_mul(next)
                .and_then(|least| {
                    least.checked_add(left.saturating_sub(2).saturating_mul(left.saturating_sub(1)))
                })
                .and_then(|least| least.checked_add(sum));
            if least.is_none_or(|least| least >= self.bound) || next > MODULUS_MOST {
                return;
            }
            if self.nodes == 0 {
                return;
            }
            let coprime = chosen.iter().all(|&other| gcd(next, other.into()) == 1);
            if coprime {
                self.nodes -= 1;
                chosen.push(next as u32);
                let product =
                    if among_smallest { product.saturating_mul(next.into()) } else { product };
                self.extend(chosen, product, sum + next);
                chosen.pop();
            }
            next += 1;
        }
    }
}
