//! Table 1 of 002 and its section 4, drawn.

use super::{formulas, simulations::SHAPE};
use crate::{
    chart::{Axis, Chart, Curve},
    figure::{Figure, measured, printed},
    formulas::dleft::at_least,
    row::Row,
    trials::Run,
};
use sidon::{Infeasible, plan::dleft::bucket_loads};

/// The paper has tables alone.
pub static FIGURES: [Figure; 2] = [
    Figure {
        name: "002-table1",
        about: "table 1: the share of buckets of a load or more, in the limit and simulated",
        claims: &["002.table1"],
        draw: table_1,
    },
    Figure {
        name: "002-rates",
        about: "section 4: d-left and the counting filter in the same room",
        claims: &["002.cmp"],
        draw: rates,
    },
];

fn table_1(_: &Run<'_>, rows: &[Row]) -> Result<Chart, Infeasible> {
    let loads = || (1..=8).map(|load| (load, f64::from(load)));
    let of = |kind: &str, load: i32| format!("002.table1.{kind}.ge{load}");
    let limit = bucket_loads(SHAPE.subtables, 6.0, true);
    let said = |kind| loads().filter_map(move |(i, x)| Some((x, printed(&of(kind, i))?)));
    let ours = loads().filter_map(|(i, x)| Some((x, measured(rows, &of("sim", i))?)));
    Ok(Chart {
        title: "Buckets of a load or more, six keys a bucket (table 1)".to_owned(),
        x: Axis::linear("load"),
        y: Axis::log("share of buckets"),
        curves: vec![
            Curve::new("the limit of many buckets")
                .line(loads().map(|(i, x)| (x, at_least(&limit, i as usize))))
                .printed(said("fluid")),
            Curve::new("simulated").measured(ours).printed(said("sim")),
        ],
    })
}

fn rates(_: &Run<'_>, _: &[Row]) -> Result<Chart, Infeasible> {
    let x = |r: u32| f64::from(SHAPE.cells * (r + SHAPE.counter)) / 6.0;
    let said = |id, bits: f64| printed(id).map(|rate| (bits, rate));
    Ok(Chart {
        title: "Counting filters in the same room (section 4)".to_owned(),
        x: Axis::linear("bits a key"),
        y: Axis::log("false positives"),
        curves: vec![
            Curve::new("d-left, three quarters full")
                .line((5..=20).map(|r| (x(r), 24.0 / 2f64.powi(r as i32))))
                .printed(
                    said("002.cmp.dl_r11", x(11))
                        .into_iter()
                        .chain(said("002.fpr.bound_r14", x(14))),
                ),
            Curve::new("counters of four bits, best hashes")
                .line((4..=26).map(|r| (x(r), formulas::bits_to_rate(x(r) / 4.0))))
                .printed(said("002.cmp.cbf9_k6", 36.0)),
        ],
    })
}
