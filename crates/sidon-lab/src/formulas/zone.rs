//! Zone codes of 003: all ways to hold a small set, codes of given digits, crossovers, and rates beyond
//! the zone.

use crate::papers::zones_2021::table_then_bloom;
use sidon::{
    Infeasible,
    plan::zone::{self, Target},
    set::bloom,
    zone::{Code, Egh, Pol, Shape, egh, ols, pol},
};

/// A way to hold `members` numbers below `universe`, and its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// How the members are held.
    pub held: Held,
    /// The bits of a set.
    pub bits: u64,
    /// The bits that a lookup reads; for a list, the members that it compares.
    pub probes: u64,
    /// The most members without a false positive: `members`, or more.
    pub zone: u64,
}

/// How the members of a small set are held.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Held {
    /// By a code of the paper: the first primes, Latin squares, or polynomials at points of the field.
    Code(Shape),
    /// By residues of other moduli than the first primes.
    Coprime(egh::Shape),
    /// By polynomials whose last group is at infinity and cut to the leading coefficients that occur.
    Cut(pol::Shape),
    /// By a list of the members, each in this many bits.
    List(u32),
    /// By one bit for every number.
    Bitmap,
    /// By a list of the members, each in this many bits, and a Bloom filter for more. It is the alternative
    /// of section VII, in the memory of the shortest code.
    ListThenBloom(u32, bloom::Shape),
}

impl Held {
    /// The name in tables and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Held::Code(shape) => shape.name(),
            Held::Coprime(_) => "coprime",
            Held::Cut(_) => "pol",
            Held::List(_) => "list",
            Held::Bitmap => "bitmap",
            Held::ListThenBloom(..) => "list, bloom",
        }
    }

    /// The shape of the code, if it has one.
    pub fn code(&self) -> Option<Shape> {
        match self {
            Held::Code(shape) => Some(shape.clone()),
            Held::Coprime(shape) => Some(Shape::Egh(shape.clone())),
            Held::Cut(shape) => Some(Shape::Pol(*shape)),
            Held::List(_) | Held::Bitmap | Held::ListThenBloom(..) => None,
        }
    }
}

/// Every way to hold such sets, the fewest bits first: the codes, a list of the members, and a bitmap of
/// the universe. A list with a Bloom filter takes the memory of the shortest code.
pub fn ways(target: Target) -> Result<Vec<Way>, Infeasible> {
    let Target { universe, members } = target;
    let first = zone::first_primes(target)?;
    let shapes = zone::shapes(target)?;
    let mut ways = Vec::new();
    for shape in &shapes {
        let (bits, probes) = (shape.cells(), shape.groups());
        let (held, zone) = match shape {
            Shape::Egh(egh) => {
                let zone = Egh::new(egh.clone())?.zone();
                let held = if *egh == first {
                    Held::Code(shape.clone())
                } else {
                    Held::Coprime(egh.clone())
                };
                (held, zone)
            }
            // The shorter of two codes of polynomials is the one that is cut.
            Shape::Pol(pol) => {
                let longer = |other: &Shape| matches!(other, Shape::Pol(_)) && other.cells() > bits;
                let cut = shapes.iter().any(longer);
                (if cut { Held::Cut(*pol) } else { Held::Code(shape.clone()) }, pol.zone())
            }
            _ => (Held::Code(shape.clone()), members),
        };
        ways.push(Way { held, bits, probes, zone });
    }
    let width = (universe - 1).ilog2() + 1;
    // The members, and their number.
    let bits = members * u64::from(width) + u64::from(members.ilog2() + 1);
    ways.push(Way { held: Held::List(width), bits, probes: members, zone: members });
    let shortest = ways.iter().filter(|way| way.held.code().is_some()).map(|way| way.bits).min();
    let twice = members.saturating_mul(2);
    let spare = shortest.and_then(|all| Some((all, table_then_bloom::best(target, all, twice)?.0)));
    if let Some((all, hashes)) = spare {
        let filter = bloom::Shape { bits: all - bits, hashes };
        let (held, probes) = (Held::ListThenBloom(width, filter), members + u64::from(hashes));
        ways.push(Way { held, bits: all, probes, zone: members });
    }
    ways.push(Way { held: Held::Bitmap, bits: universe, probes: 1, zone: universe });
    ways.sort_by_key(|way| way.bits);
    Ok(ways)
}

/// The fields that a code may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fields {
    /// Arithmetic modulo a prime, as in the paper.
    Primes,
    /// Every finite field.
    PrimePowers,
}

/// The points that a code may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// The elements of the field.
    Affine,
    /// The elements and infinity, whose group is the shortest.
    All,
}

/// The largest order of a field.
const ORDER_MAX: u64 = 1 << 16;

/// The polynomials of `digits` digits, 2 to 16, over the least field; `None` if it is too large.
pub fn polynomials(
    target: Target,
    digits: u32,
    fields: Fields,
    points: Points,
) -> Option<pol::Shape> {
    let Target { universe, members } = target;
    if !(2..=16).contains(&digits) {
        return None;
    }
    let groups = u64::from(digits - 1).checked_mul(members)?.checked_add(1)?;
    let infinity = points == Points::All;
    let first = (groups - u64::from(infinity)).max(2);
    let allowed = |&order: &u64| {
        u128::from(order).saturating_pow(digits) >= universe.into()
            && match fields {
                Fields::Primes => primes_of(order) == [order],
                Fields::PrimePowers => primes_of(order).len() == 1,
            }
    };
    let order = (first..=ORDER_MAX).find(allowed)? as u32;
    Some(pol::Shape { universe, order, digits, groups: groups as u32, infinity })
}

/// The distinct primes that divide a number.
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

/// The zone of residues by these moduli.
fn zone_of(universe: u64, moduli: &[u32]) -> Result<u64, Infeasible> {
    Ok(Egh::new(egh::Shape { universe, moduli: moduli.to_vec() })?.zone())
}

/// The fewest of the first primes that have the zone. The paper's rule takes more.
pub fn fewest_primes(target: Target) -> Result<egh::Shape, Infeasible> {
    let mut shape = zone::first_primes(target)?;
    // A code has at least one group.
    while let [fewer @ .., _] = &shape.moduli[..]
        && !fewer.is_empty()
        && zone_of(target.universe, fewer)? >= target.members
    {
        shape.moduli.pop();
    }
    Ok(shape)
}

/// The largest universe of [`crossovers`], which tries every one.
const CROSSOVERS_MAX: u64 = 1 << 24;

/// The runs of numbers from `first` to `last` that meet a condition.
fn runs(first: u64, last: u64, meets: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for n in (first..=last).filter(|&n| meets(n)) {
        match runs.last_mut() {
            Some((_, end)) if *end == n - 1 => *end = n,
            _ => runs.push((n, n)),
        }
    }
    runs
}

/// The paper's Latin squares for a zone of `members`: the least order that is a prime power.
pub fn squares(universe: u64, members: u64) -> Option<ols::Shape> {
    let side = universe.isqrt() + u64::from(universe.isqrt().pow(2) < universe);
    let order = (side.max(members).max(2)..=1 << 16).find(|&order| primes_of(order).len() == 1)?;
    Some(ols::Shape { universe, order: order as u32, groups: members as u32 + 1 })
}

/// The universes up to `last` in which a code of the paper is shorter than its residues, for `members`
/// members: Latin squares, and polynomials of three digits. Figure 9. The first universe is 8, or
/// `members` if that is larger.
pub fn crossovers(members: u64, last: u64) -> Result<[Vec<(u64, u64)>; 2], Infeasible> {
    if !(2..=CROSSOVERS_MAX).contains(&last) {
        let (name, most) = ("last", CROSSOVERS_MAX);
        return Err(Infeasible::OutOfRange { name, got: last, least: 2, most });
    }
    let residues = Residues::new(members, last)?;
    let target = |universe| Target { universe, members };
    let squares = |n| squares(n, members).map(|s| u64::from(s.groups) * u64::from(s.order));
    let cubes = |n| {
        let shape = polynomials(target(n), 3, Fields::PrimePowers, Points::Affine);
        shape.map(|shape| shape.cells())
    };
    let first = members.max(8).min(last);
    let shorter = |bits: Option<u64>, n| bits.is_some_and(|bits| bits < residues.bits(n));
    Ok([runs(first, last, |n| shorter(squares(n), n)), runs(first, last, |n| shorter(cubes(n), n))])
}

/// The lengths of the residues by the paper's rule, which never fall as the universe grows.
struct Residues {
    /// The last universe of each length, and the length.
    steps: Vec<(u64, u64)>,
}

impl Residues {
    fn new(members: u64, last: u64) -> Result<Self, Infeasible> {
        // A set has at most as many members as the universe has numbers.
        let bits = |universe: u64| {
            let universe = universe.max(members);
            Ok::<_, Infeasible>(zone::first_primes(Target { universe, members })?.cells())
        };
        let (mut steps, mut from) = (Vec::new(), 2.min(last));
        while from <= last {
            let length = bits(from)?;
            let (mut same, mut above) = (from, last + 1);
            while above - same > 1 {
                let middle = same + (above - same) / 2;
                if bits(middle)? == length { same = middle } else { above = middle }
            }
            steps.push((same, length));
            from = above;
        }
        Ok(Residues { steps })
    }

    fn bits(&self, universe: u64) -> u64 {
        let step = self.steps.partition_point(|&(last, _)| last < universe);
        self.steps.get(step).map_or(0, |&(_, bits)| bits)
    }
}

/// The exact rate of a code of all `order^digits` polynomials at `groups` points with `members` random
/// ones stored; `None` inside the zone, where nothing passes.
pub fn exact_rate(order: u32, digits: u32, groups: u32, members: u64) -> Option<f64> {
    let universe = u64::from(order).checked_pow(digits)?;
    let shape = pol::Shape { universe, order, digits, groups, infinity: false };
    let code = Pol::new(shape).ok().filter(|_| members > shape.zone())?;
    Some(code.rate(members))
}

/// Equation 3: the rate of Latin squares beyond their zone. Each member matches in at most one group.
pub fn squares_rate(order: u32, groups: u32, members: u64) -> f64 {
    let miss = 1.0 - 1.0 / f64::from(order);
    (0..u64::from(groups)).map(|i| 1.0 - miss.powf(members.saturating_sub(i) as f64)).product()
}

/// Equation 4: the rate of groups that are independent of each other.
pub fn independent_rate(order: u32, groups: u32, members: u64) -> f64 {
    // 1 - (1 - 1/order)^members, without losing digits of small rates.
    let covered = -(members as f64 * (-1.0 / f64::from(order)).ln_1p()).exp_m1();
    covered.powf(groups.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn the_lengths_of_table_6_and_the_right_ones() {
        for (members, egh, coprime, ols, pol, list) in [
            (3, [100, 9], 70, [64, 4], [49, 7], 26),
            (7, [328, 15], 181, [128, 8], [128, 8], 59),
            (15, [1060, 25], 0, [256, 16], [256, 16], 124),
        ] {
            let ways = ways(Target { universe: 256, members }).unwrap();
            assert!(ways.is_sorted_by_key(|way| way.bits));
            let find = |name: &str| {
                let named =
                    |way: &&Way| way.held.name() == name && !matches!(way.held, Held::Cut(_));
                ways.iter().find(named).map(|way| [way.bits, way.probes]).unwrap()
            };
            assert_eq!((find("egh"), find("ols"), find("pol")), (egh, ols, pol));
            assert!(coprime == 0 || find("coprime")[0] == coprime);
            assert_eq!((find("list")[0], find("bitmap")), (list, [256, 1]));
            assert!(ways.iter().all(|way| way.zone >= members));
        }
        let ways = ways(Target { universe: 256, members: 3 }).unwrap();
        let cut = ways.iter().find(|way| matches!(way.held, Held::Cut(_))).unwrap();
        assert_eq!((cut.bits, cut.zone), (48, 3));
    }

    #[test]
    fn the_least_field_for_each_degree() {
        // members, digits; prime field, any field, with infinity: order and bits.
        for (members, digits, prime, any, infinity) in [
            (3, 2, (17, 68), (16, 64), (16, 64)),
            (3, 3, (7, 49), (7, 49), (7, 48)),
            (3, 4, (11, 110), (11, 110), (9, 82)),
            (7, 2, (17, 136), (16, 128), (16, 128)),
            (7, 3, (17, 255), (16, 240), (16, 225)),
            (7, 4, (23, 506), (23, 506), (23, 484)),
            (15, 2, (17, 272), (16, 256), (16, 256)),
            (15, 3, (31, 961), (31, 961), (31, 931)),
            (15, 4, (47, 2162), (47, 2162), (47, 2116)),
        ] {
            let target = Target { universe: 256, members };
            let least = |fields, points| {
                let shape = polynomials(target, digits, fields, points).unwrap();
                assert!(shape.zone() >= members);
                (shape.order, shape.cells())
            };
            assert_eq!(least(Fields::Primes, Points::Affine), prime);
            assert_eq!(least(Fields::PrimePowers, Points::Affine), any);
            assert_eq!(least(Fields::PrimePowers, Points::All), infinity, "{members} {digits}");
        }
    }

    #[test]
    fn where_the_codes_of_figure_9_cross() {
        let runs = |members| crossovers(members, 4096).unwrap();
        assert_eq!(runs(2)[0], [(8, 169), (174, 361)]);
        assert_eq!(runs(3)[0], [(8, 529), (607, 1024)]);
        assert_eq!(runs(4)[0], [(8, 1369), (1651, 2209)]);
        assert_eq!(runs(2)[1], [(15, 2197), (3115, 4096)]);
        assert_eq!(runs(3)[1], [(32, 4096)]);
    }

    #[test]
    fn rates_beyond_the_zone() {
        // 003.fig11: exact, by equation 3, by equation 4.
        for (members, exact, eq3, eq4) in [
            (4, 0.000294226183829, 0.000303112538859, 0.00267983070167),
            (5, 0.00130702069709, 0.00133759230576, 0.00578628083573),
            (10, 0.0308538637286, 0.0307126789213, 0.0511383225853),
            (20, 0.243342287668, 0.234452821134, 0.276192037363),
        ] {
            assert_close(exact_rate(16, 2, 4, members).unwrap(), exact, 1e-9);
            assert_close(squares_rate(16, 4, members), eq3, 1e-9);
            assert_close(independent_rate(16, 4, members), eq4, 1e-9);
        }
        for (members, exact, eq4) in [
            (4, 0.00121483262427, 0.00437311427089),
            (6, 0.0192365065485, 0.0291333899092),
            (15, 0.477523534837, 0.481890284069),
        ] {
            assert_close(exact_rate(7, 3, 7, members).unwrap(), exact, 1e-9);
            assert_close(independent_rate(7, 7, members), eq4, 1e-9);
        }
        assert_eq!(exact_rate(16, 2, 4, 3), None);
    }

    #[test]
    fn fewer_primes_than_by_the_rule_have_the_zone() {
        for (members, primes, bits) in [(3, 9, 100), (7, 14, 281), (15, 22, 791)] {
            let shape = fewest_primes(Target { universe: 256, members }).unwrap();
            assert_eq!((shape.moduli.len(), shape.cells()), (primes, bits));
        }
    }

    #[test]
    fn lengths_of_residues_are_those_of_each_universe() {
        let residues = Residues::new(3, 300).unwrap();
        for universe in 3..=300 {
            let target = Target { universe, members: 3 };
            assert_eq!(residues.bits(universe), zone::first_primes(target).unwrap().cells());
        }
        for (members, last) in [(0, 4096), (1025, 4096), (3, u64::MAX)] {
            assert!(crossovers(members, last).is_err());
        }
        assert_eq!(
            polynomials(Target { universe: 9, members: u64::MAX }, 3, Fields::Primes, Points::All),
            None
        );
    }
}
