//! The false-positive rate of a code beyond its zone.
//!
//! Polynomials are linear, so the key looked up may be zero, and the members random others.
//! By inclusion and exclusion over the groups that nobody covers,
//! ```text
//! P(all covered) = sum over j of (-1)^j C(k, j) C(N_j, c) / C(q^t - 1, c)
//! ```
//! with `N_j` the polynomials other than zero that vanish in none of `j` points. That is exact for a
//! code of all `q^t` polynomials and `c` of them drawn at random.

use super::tail::ln_factorial;

/// The most members for which the exact rate is computed: it takes a step for each.
const MEMBERS_MAX: u64 = 1 << 16;

/// The exact false-positive rate of a code of all `order^digits` polynomials at `groups` points with
/// `members` random ones stored. `None` if the terms cancel to fewer digits than a double has, and for
/// more than 65,536 members.
pub(crate) fn pol_rate(order: u32, digits: u32, groups: u32, members: u64) -> Option<f64> {
    let (q, k) = (f64::from(order), groups);
    let all = q.powi(digits as i32) - 1.0;
    let c = members as f64;
    if c > all || k > 64 || members > MEMBERS_MAX {
        return (c > all).then_some(1.0);
    }
    let (mut sum, mut largest) = (0.0, 0.0f64);
    for j in 0..=k {
        let vanish_nowhere = if j == 0 { all } else { nowhere(q, digits, j) };
        let share = choose_share(vanish_nowhere, all, members);
        let term = (ln_factorial(k.into()) - ln_factorial(j.into()) - ln_factorial((k - j).into()))
            .exp()
            * share;
        sum += if j % 2 == 0 { term } else { -term };
        largest = largest.max(term);
    }
    // A dozen digits of the largest term are right.
    (sum > largest * 1e-10).then_some(sum)
}

/// The number of nonzero polynomials that vanish in none of `j` points.
fn nowhere(q: f64, digits: u32, j: u32) -> f64 {
    let (mut sum, mut ways) = (0.0, 1.0);
    for i in 0..=j {
        // Those that vanish in i given points: zero alone from `digits` on.
        let vanish = q.powi(digits.saturating_sub(i) as i32);
        sum += if i % 2 == 0 { ways * vanish } else { -ways * vanish };
        ways *= f64::from(j - i) / f64::from(i + 1);
    }
    sum.round()
}

/// `C(n, c) / C(all, c)`: the chance that all of `c` drawn are among the `n`.
fn choose_share(n: f64, all: f64, c: u64) -> f64 {
    let mut share = 1.0;
    for i in 0..c {
        let i = i as f64;
        if n <= i {
            return 0.0;
        }
        share *= (n - i) / (all - i);
    }
    share
}

/// The false-positive rate of groups of these sizes with `members` random members, if the groups were
/// independent. It is above the exact rate in every case that was computed.
pub(crate) fn groups_rate(sizes: impl Iterator<Item = u64>, members: u64) -> f64 {
    // 1 - (1 - 1/size)^members, without losing its digits when it is small.
    sizes.map(|size| -(members as f64 * (-1.0 / size as f64).ln_1p()).exp_m1()).product()
}
