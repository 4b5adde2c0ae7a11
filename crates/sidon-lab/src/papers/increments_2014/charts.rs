//! Figures 4, 5 and 6 of 004, and every filter's rate against its bits.

use super::formulas::{self, KEYS};
use crate::{
    chart::{Axis, Chart, Curve, Point},
    figure::{Figure, all_printed, printed},
    formulas::increments,
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible,
    plan::{self, Target},
    set::Increments,
};

/// Those with numbers; figures 1 to 3 are worked examples and a circuit.
pub static FIGURES: [Figure; 4] = [
    Figure {
        name: "004-fig4",
        about: "figure 4: how often a cell excludes a key, by the number of keys in it",
        claims: &["004.fD"],
        draw: detection,
    },
    Figure {
        name: "004-fig5",
        about: "figure 5: the five schemes against memory",
        claims: &["004.fig5"],
        draw: schemes,
    },
    Figure {
        name: "004-fig6",
        about: "figure 6: increments from L to 2 L - 1",
        claims: &["004.fig6"],
        draw: ranges,
    },
    Figure {
        name: "004-members",
        about: "ours: what every set is planned at, a million keys, the smallest layout of each",
        claims: &["004.table1.cbf.main", "004.table1.vi_general.min_m"],
        draw: |_, _| members(),
    },
];

fn detection(_: &Run<'_>, _: &[Row]) -> Result<Chart, Infeasible> {
    let example = Increments::of([1, 4, 8, 13]);
    let share = |keys: u32| {
        let (told, all) = increments::detection(example, keys)?;
        Some((f64::from(keys), told as f64 / all as f64))
    };
    let basic = (0..16).map(|keys| (f64::from(keys), f64::from(u8::from(keys <= 3))));
    // The one value that is printed in the text.
    let said = match all_printed("004.fD.4") {
        [told, all] => Some((4.0, told / all)),
        _ => None,
    };
    Ok(Chart {
        title: "Non-members that a cell excludes, increments 1, 4, 8, 13 (figure 4)".to_owned(),
        x: Axis::linear("keys in the cell"),
        y: Axis::linear("share of keys excluded"),
        curves: vec![
            Curve::new("all sums examined").line((0..16).filter_map(share)).printed(said),
            Curve::new("sums of up to three").line(basic),
        ],
    })
}

fn schemes(_: &Run<'_>, _: &[Row]) -> Result<Chart, Infeasible> {
    let names = [
        ("cbf", "counting filter"),
        ("bh", "pairs, basic"),
        ("bh_improved", "pairs, all sums examined"),
        ("vi_D4", "increments 4 to 7"),
        ("vi_general", "increments 8, 12, 14, 15"),
    ];
    let mut curves = Vec::new();
    for (id, name) in names {
        let mut points: Vec<Point> = Vec::new();
        for bits in (20..=60).step_by(5) {
            points.push((bits as f64, formulas::figure_5(id, bits)?));
        }
        let said = |bits: u64| Some((bits as f64, printed(&format!("004.fig5.{id}.{bits}"))?));
        curves.push(Curve::new(name).line(points).printed([30, 50].into_iter().filter_map(said)));
    }
    Ok(Chart {
        title: "Filters that keys can leave, 1024 keys (figure 5)".to_owned(),
        x: Axis::linear("bits a key"),
        y: Axis::log("false positives"),
        curves,
    })
}

fn ranges(_: &Run<'_>, _: &[Row]) -> Result<Chart, Infeasible> {
    let curve = |(least, width): (u32, u64)| {
        let rate = |bits: u64| {
            let counters = KEYS * bits / width;
            let at = |hashes| increments::range_rate(least, counters, hashes, KEYS);
            (1..=32).map(at).fold(1.0, f64::min)
        };
        let line = (10..=50).step_by(2).map(|bits| (bits as f64, rate(bits)));
        let said = printed(&format!("004.fig6.L{least}")).map(|rate| (30.0, rate));
        let name = format!("{least} to {}, {width} bits a counter", 2 * least - 1);
        Curve::new(name).line(line).printed(said)
    };
    Ok(Chart {
        title: "Increments from L to 2 L - 1, best hashes, 1024 keys (figure 6)".to_owned(),
        x: Axis::linear("bits a key"),
        y: Axis::log("false positives"),
        curves: [(2, 6), (4, 7), (8, 8), (16, 9)].map(curve).to_vec(),
    })
}

fn members() -> Result<Chart, Infeasible> {
    const SETS: u64 = 1_000_000;
    let names = ["bloom", "blocked", "dleft", "counting", "variable", "bh", "multilayer"];
    let mut points = [const { Vec::new() }; 7];
    let mut floor = Vec::new();
    for step in 2..=16 {
        let rate = 10f64.powf(f64::from(step) / -2.0);
        let rows = plan::sets(Target::new(SETS, rate))?;
        for (name, points) in names.iter().zip(&mut points) {
            // The rows come cheapest first.
            if let Some(row) = rows.iter().find(|row| row.shape.name() == *name) {
                points.push((row.bytes as f64 * 8.0 / SETS as f64, row.false_positives));
            }
        }
        floor.push((-rate.log2(), rate));
    }
    let curves = names.into_iter().zip(points).map(|(name, points)| Curve::new(name).line(points));
    let floor = Curve::new("floor: log2(1 / rate)").line(floor);
    Ok(Chart {
        title: "What every set is planned at, a million keys".to_owned(),
        x: Axis::linear("bits a key"),
        y: Axis::log("false positives"),
        curves: curves.chain([floor]).collect(),
    })
}
