//! The tables of 003, its figure 9, and equations 3 and 4: what needs no sampling.

use super::{facts, figures::list};
use crate::{
    claim::{Claim, Value},
    experiment::Experiment,
    formulas::zone::{self, Fields, Held, Points, polynomials},
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible,
    plan::{
        self,
        zone::{Target, first_primes},
    },
    zone::{Code, Pol, Shape, pol},
};

/// Tables 6 to 8, figure 9, sections 1 and 5.
pub fn lengths(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let sketch = plan::count::shape(0.01, 0.01)?;
    let pol = |universe, members, fields, points| {
        bits(polynomials(Target { universe, members }, 3, fields, points))
    };
    let squares = zone::squares(343, 2).map(Shape::Ols).map(|shape| shape.cells());
    // Table 5: the percentage of subnets with more than eight sources.
    let at_most = |over: f64| ((100.0 - over) * 100.0).round() / 100.0;
    let detected = Value::Numbers([1.53, 1.3, 1.25].map(at_most).to_vec().into());
    let [
        count_min,
        cubes,
        squares_343,
        any_zone,
        tables @ ..,
        fig_13,
        o2,
        o3,
        o4,
        p2,
        p3,
        p4,
        fig_12,
    ] = &facts::LENGTHS;
    let [by_members @ .., cut, coprime_2, coprime_3, coprime_7, detect] = tables;
    let by_members: &[_; 3 * TABLES] = by_members;
    let mut rows = vec![
        Row::computed(count_min, list([sketch.rows.into(), sketch.columns])),
        Row::computed(cubes, pol(343, 2, Fields::Primes, Points::Affine)),
        Row::computed(squares_343, bits(squares)),
        Row::computed(any_zone, largest_zone_of_cubes()),
    ];
    for (claims, members) in by_members.as_chunks::<TABLES>().0.iter().zip([3, 7, 15]) {
        rows.extend(tables_6_and_7(claims, members)?);
    }
    rows.extend([
        Row::computed(cut, pol(256, 3, Fields::PrimePowers, Points::All)),
        Row::computed(coprime_2, coprime(2)?),
        Row::computed(coprime_3, coprime(3)?),
        Row::computed(coprime_7, coprime(7)?),
        Row::computed(detect, detected),
        Row::computed(fig_13, pol(1331, 3, Fields::Primes, Points::Affine)),
        Row::computed(o2, last_universe_of_squares(2)?),
        Row::computed(o3, last_universe_of_squares(3)?),
        Row::computed(o4, last_universe_of_squares(4)?),
        Row::computed(p2, polynomials_or_residues(2000, 2)),
        Row::computed(p3, polynomials_or_residues(16_000, 3)),
        Row::computed(p4, polynomials_or_residues(64_000, 4)),
        Row::computed(fig_12, 100.0 * (1.0 - 5.77 / 10.29)),
    ]);
    Ok(rows)
}

/// Claims about tables 6 and 7 for each number of members.
const TABLES: usize = 9;

/// The rows of tables 6 and 7, and the least polynomials of two to four digits.
fn tables_6_and_7(claims: &'static [Claim; TABLES], members: u64) -> Result<Vec<Row>, Infeasible> {
    let target = Target { universe: 256, members };
    let ways = zone::ways(target)?;
    let way = |code: &str| {
        ways.iter().find(|way| matches!(&way.held, Held::Code(shape) if shape.name() == code))
    };
    let both = |code| way(code).map_or(Value::Nothing, |way| list([way.bits, way.probes]));
    let matrix = |code| way(code).map_or(Value::Nothing, |way| (way.bits * 256).into());
    // Beyond a zone of three, the product of table 7 is that of the printed length.
    let matrix_of_pol =
        if members > 3 { (7 * (2 * members + 1) * 256).into() } else { matrix("pol") };
    let [egh, egh_matrix, ols, ols_matrix, pol, pol_matrix, two, three, four] = claims;
    Ok(vec![
        Row::computed(egh, both("egh")),
        Row::computed(egh_matrix, matrix("egh")),
        Row::computed(ols, both("ols")),
        Row::computed(ols_matrix, matrix("ols")),
        Row::computed(pol, both("pol")),
        Row::computed(pol_matrix, matrix_of_pol),
        Row::computed(two, least(target, 2)),
        Row::computed(three, least(target, 3)),
        Row::computed(four, least(target, 4)),
    ])
}

/// The zone of 2 d + 1 points of GF(7) for 343 elements, for as many as there are.
fn largest_zone_of_cubes() -> Value {
    let shape = |groups| pol::Shape { universe: 343, order: 7, digits: 3, groups, infinity: false };
    let zones = (1..9).filter_map(|d| Pol::new(shape(2 * d + 1)).ok());
    zones.map(|code| code.zone()).max().map_or(Value::Nothing, Value::from)
}

/// Bits of coprime moduli for some of 256.
fn coprime(members: u64) -> Result<Value, Infeasible> {
    let ways = zone::ways(Target { universe: 256, members })?;
    let coprime = ways.iter().find(|way| matches!(way.held, Held::Coprime(_)));
    Ok(bits(coprime.map(|way| way.bits)))
}

/// Figure 9: the last universe in which Latin squares are shorter than residues.
fn last_universe_of_squares(members: u64) -> Result<Value, Infeasible> {
    let [squares, _] = zone::crossovers(members, 4096)?;
    Ok(squares.last().map_or(Value::Nothing, |&(_, last)| last.into()))
}

/// Figure 9: bits of polynomials modulo a prime, of polynomials over any field, and of residues.
fn polynomials_or_residues(universe: u64, members: u64) -> Value {
    let few = Target { universe, members };
    let pol = |fields| polynomials(few, 3, fields, Points::Affine);
    match (pol(Fields::Primes), pol(Fields::PrimePowers), first_primes(few)) {
        (Some(prime), Some(any), Ok(egh)) => list([prime.cells(), any.cells(), egh.cells()]),
        _ => Value::Nothing,
    }
}

/// Orders and bits for `digits` digits: primes, all fields, with infinity whole and cut; the points.
fn least(few: Target, digits: u32) -> Value {
    let pol = |fields, points| polynomials(few, digits, fields, points);
    let shapes = [
        pol(Fields::Primes, Points::Affine),
        pol(Fields::PrimePowers, Points::Affine),
        pol(Fields::PrimePowers, Points::All),
    ];
    let [Some(prime), Some(any), Some(all)] = shapes else { return Value::Nothing };
    let whole = |shape: pol::Shape| u64::from(shape.groups) * u64::from(shape.order);
    list([
        prime.order.into(),
        whole(prime),
        any.order.into(),
        whole(any),
        all.order.into(),
        whole(all),
        all.cells(),
        all.groups.into(),
    ])
}

fn bits(bits: Option<impl Into<Bits>>) -> Value {
    bits.map_or(Value::Nothing, |bits| bits.into().0.into())
}

struct Bits(u64);

impl From<u64> for Bits {
    fn from(bits: u64) -> Self {
        Bits(bits)
    }
}

impl From<pol::Shape> for Bits {
    fn from(shape: pol::Shape) -> Self {
        Bits(shape.cells())
    }
}

/// Figure 11: exact rates, beside the equations.
pub fn rates(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    const SQUARES: [u64; 7] = [4, 5, 6, 8, 10, 15, 20];
    const POLYNOMIALS: [u64; 6] = [4, 5, 6, 8, 10, 15];
    let claims: &[_; SQUARES.len() + POLYNOMIALS.len()] = &facts::RATES;
    let (ols, pol) = claims.split_at(SQUARES.len());
    let ols = ols.iter().zip(SQUARES).map(|(claim, members)| {
        let exact = zone::exact_rate(16, 2, 4, members);
        rate(claim, exact, zone::squares_rate(16, 4, members))
    });
    let pol = pol.iter().zip(POLYNOMIALS).map(|(claim, members)| {
        let exact = zone::exact_rate(7, 3, 7, members);
        rate(claim, exact, zone::independent_rate(7, 7, members))
    });
    Ok(ols.chain(pol).collect())
}

/// A row of the exact rate. The paper's equation must give the printed one.
fn rate(claim: &'static Claim, exact: Option<f64>, equation: f64) -> Row {
    let printed = claim.paper.numbers().first().copied().unwrap_or(f64::NAN);
    let same = (equation / printed - 1.0).abs() < 1e-9;
    Row::computed(claim, exact.map_or(Value::Nothing, Value::from))
        .require(same, "the equation gives another number than is on record")
}
