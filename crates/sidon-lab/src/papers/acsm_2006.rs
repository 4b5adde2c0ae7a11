//! 000: approximate state machines for flows. So far how rarely its d-left tables overflow.

use crate::{
    claim::{
        Claim,
        Tolerance::Relative,
        Value::{self, Number, Text},
    },
    experiment::{Cost, Experiment, Paper},
    row::Row,
    trials::Run,
};
use sidon::{Infeasible, plan::Fluid};

/// The paper.
pub static PAPER: Paper = Paper {
    id: "000",
    short: "ACSM 2006",
    title: "Beyond Bloom filters: from approximate membership checks to approximate state machines",
    source: "Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, SIGCOMM 2006",
    experiments: &[Experiment {
        name: "000.overflow",
        claims: &OVERFLOW,
        cost: Cost::FORMULA,
        run: overflow,
    }],
};

/// Section 3.4: three subtables of buckets of six cells, four flows a bucket.
pub static OVERFLOW: [Claim; 2] = [
    Claim::new(
        "000.fcf.overflow",
        "s3.4",
        "share of buckets of load 7 or more while no flow has left",
        Number(5.6e-31),
        Number(5.56715858466e-31),
        Relative(1e-3),
    ),
    Claim::new(
        "000.fcf.steady_overflow",
        "s3.4",
        "the same while flows leave and come",
        Text("very rare"),
        Number(8.91350632848e-09),
        Relative(1e-3),
    )
    .unprinted("rare a bucket, and yet 22 orders of magnitude above the one printed"),
];

/// Section 3.4: how many buckets would need a seventh cell.
pub fn overflow(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    const HEIGHT: u32 = 24;
    let rows = experiment.claims.iter().map(|claim| {
        let share = match claim.id {
            "000.fcf.overflow" => Fluid::insert_only(3, 4.0, HEIGHT).at_least(7).into(),
            "000.fcf.steady_overflow" => Fluid::steady(3, 4.0, HEIGHT).at_least(7).into(),
            _ => Value::Nothing,
        };
        Row::computed(claim, share)
    });
    Ok(rows.collect())
}
