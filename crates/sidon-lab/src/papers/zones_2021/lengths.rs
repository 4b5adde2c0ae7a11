//! The tables of 003, its figure 9, and equations 3 and 4: what needs no sampling.

use super::figures::list;
use crate::{
    claim::Value,
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
pub fn lengths(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let mut rows = Vec::new();
    for claim in experiment.claims {
        let parts: Vec<&str> = claim.id.split('.').collect();
        let last = parts[parts.len() - 1];
        let number = |part: &str| part.trim_start_matches(char::is_alphabetic).parse::<u64>();
        let n = number(last).unwrap_or_default();
        let measured = match (parts[1], parts[2]) {
            ("cm", "params") => {
                let shape = plan::count::shape(plan::count::Target { epsilon: 0.01, delta: 0.01 })?;
                list([shape.rows.into(), shape.columns])
            }
            ("pol", "length_n343_d2") => bits(polynomials(
                Target { universe: 343, members: 2 },
                3,
                Fields::Primes,
                Points::Affine,
            )),
            ("pol", "ols_length_n343") => {
                bits(zone::squares(343, 2).map(Shape::Ols).map(|shape| shape.cells()))
            }
            ("pol", "shorter_any_d") => {
                // The zone of 2 d + 1 points of GF(7), while there are so many.
                let shape = |groups| pol::Shape {
                    universe: 343,
                    order: 7,
                    digits: 3,
                    groups,
                    infinity: false,
                };
                let zones = (1..9).filter_map(|d| Pol::new(shape(2 * d + 1)).ok());
                zones.map(|code| code.zone()).max().map_or(Value::Nothing, Value::from)
            }
            ("table6" | "table7", code) => match (parts[1], code, n) {
                // The printed length times the universe.
                ("table7", "pol", 7 | 15) => (7 * (2 * n + 1) * 256).into(),
                (table, code, members) => {
                    let rows = zone::ways(Target { universe: 256, members })?;
                    let row = rows.iter().find(|row| match &row.held {
                        Held::Code(shape) => shape.name() == code,
                        _ => false,
                    });
                    row.map_or(Value::Nothing, |row| match table {
                        "table6" => list([row.bits, row.probes]),
                        _ => (row.bits * 256).into(),
                    })
                }
            },
            ("pol", "min") => {
                let members = number(parts[3]).unwrap_or_default();
                least(Target { universe: 256, members }, n as u32)
            }
            ("pol", "trunc48") => bits(polynomials(
                Target { universe: 256, members: 3 },
                3,
                Fields::PrimePowers,
                Points::All,
            )),
            ("egh", "coprime") => {
                let ways = zone::ways(Target { universe: 256, members: n })?;
                let coprime = ways.iter().find(|way| matches!(way.held, Held::Coprime(_)));
                bits(coprime.map(|way| way.bits))
            }
            ("detect", _) => {
                // Table 5: the percentage of subnets with more than eight sources.
                let at_most = |over: f64| ((100.0 - over) * 100.0).round() / 100.0;
                Value::Numbers([1.53, 1.3, 1.25].map(at_most).to_vec().into())
            }
            ("fig12", "reduction_m15") => (100.0 * (1.0 - 5.77 / 10.29)).into(),
            ("fig13", "length") => bits(polynomials(
                Target { universe: 1331, members: 3 },
                3,
                Fields::Primes,
                Points::Affine,
            )),
            ("fig9", "ols_range") => {
                let [squares, _] = zone::crossovers(n, 4096)?;
                squares.last().map_or(Value::Nothing, |&(_, last)| last.into())
            }
            ("fig9", "pol_range") => {
                let universe = match n {
                    2 => 2000,
                    3 => 16_000,
                    _ => 64_000,
                };
                let few = Target { universe, members: n };
                let pol = |fields| polynomials(few, 3, fields, Points::Affine);
                let egh = first_primes(few);
                match (pol(Fields::Primes), pol(Fields::PrimePowers), egh) {
                    (Some(prime), Some(any), Ok(egh)) => {
                        list([prime.cells(), any.cells(), egh.cells()])
                    }
                    _ => Value::Nothing,
                }
            }
            _ => Value::Nothing,
        };
        rows.push(Row::computed(claim, measured));
    }
    Ok(rows)
}

/// Orders and bits for so many digits: primes, all fields, with infinity whole and cut; the points.
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
pub fn rates(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let rows = experiment.claims.iter().map(|claim| {
        let members = claim.id.rsplit('c').next().and_then(|members| members.parse().ok());
        let members = members.unwrap_or(0);
        let squares = claim.id.contains(".ols.");
        let (order, digits, groups) = if squares { (16, 2, 4) } else { (7, 3, 7) };
        let exact = zone::exact_rate(order, digits, groups, members);
        let printed = match squares {
            true => zone::squares_rate(order, groups, members),
            false => zone::independent_rate(order, groups, members),
        };
        let said = claim.paper.numbers().first().copied().unwrap_or(f64::NAN);
        let same = (printed / said - 1.0).abs() < 1e-9;
        Row::computed(claim, exact.map_or(Value::Nothing, Value::from))
            .require(same, "the equation gives another number than is on record")
    });
    Ok(rows.collect())
}
