//! Figures 6 and 8 to 13 of 003, and the least length of a zone against the universe.

use super::{
    counts::{excess_12, excess_13},
    zones::ols,
};
use crate::{
    chart::{Axis, Chart, Curve, Point},
    figure::{Figure, measured, printed},
    formulas::zone::{self, Fields, Held, Points, polynomials, squares},
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible,
    plan::zone::{Target, first_primes},
    zone::{Code, Shape},
};

/// Those with numbers; figures 1, 2, 5 and 7 are pictures of an idea, 3 and 4 small matrices.
pub static FIGURES: [Figure; 12] = [
    Figure {
        name: "003-fig6",
        about: "figure 6: the matrix of Latin squares for 3 of 25",
        claims: &["003.fig6"],
        draw: matrix,
    },
    Figure {
        name: "003-fig8",
        about: "figure 8: the counters after four flows",
        claims: &["003.fig8"],
        draw: counters,
    },
    Figure {
        name: "003-fig9-d2",
        about: "figure 9: bits for 2 of a universe",
        claims: &["003.fig9.ols_range.d2", "003.fig9.pol_range.d2"],
        draw: |_, _| Ok(lengths(2)),
    },
    Figure {
        name: "003-fig9-d3",
        about: "figure 9: bits for 3 of a universe, with the points of table 6",
        claims: &[
            "003.fig9.ols_range.d3",
            "003.fig9.pol_range.d3",
            "003.table6.egh.d3",
            "003.table6.ols.d3",
            "003.table6.pol.d3",
        ],
        draw: |_, _| Ok(lengths(3)),
    },
    Figure {
        name: "003-fig9-d4",
        about: "figure 9: bits for 4 of a universe",
        claims: &["003.fig9.ols_range.d4", "003.fig9.pol_range.d4"],
        draw: |_, _| Ok(lengths(4)),
    },
    Figure {
        name: "003-fig9-d7",
        about: "figure 9: bits for 7 of a universe; the polynomials of table 6 lie where they have no zone of 7",
        claims: &["003.table6.egh.d7", "003.table6.ols.d7", "003.table6.pol.d7"],
        draw: |_, _| Ok(lengths(7)),
    },
    Figure {
        name: "003-fig10",
        about: "figure 10: bits of the matrices, with the points of table 7",
        claims: &["003.table7"],
        draw: |_, _| Ok(matrices()),
    },
    Figure {
        name: "003-fig11",
        about: "figure 11: false positives beyond the zone, exact and by the equations",
        claims: &["003.fig11"],
        draw: beyond,
    },
    Figure {
        name: "003-fig12a",
        about: "figure 12a: mean overestimate with 20 counters",
        claims: &["003.fig12.fpfz.m20", "003.fig12.random.m20"],
        draw: |run, _| figure_12(run, 4),
    },
    Figure {
        name: "003-fig12b",
        about: "figure 12b: mean overestimate with 15 counters",
        claims: &["003.fig12.fpfz.m15", "003.fig12.random.m15", "003.fig12.d2_thresholds"],
        draw: |run, _| figure_12(run, 3),
    },
    Figure {
        name: "003-fig13",
        about: "figure 13: how much less a code of 1331 flows errs than a random mapping",
        claims: &["003.fig13"],
        draw: figure_13,
    },
    Figure {
        name: "003-zone-length",
        about: "ours: the least length of every way to hold 3 of a universe",
        claims: &["003.pol.min.d3", "003.pol.trunc48", "003.egh.coprime.d3"],
        draw: |_, _| zone_length(),
    },
];

fn matrix(_: &Run<'_>, _: &[Row]) -> Result<Chart, Infeasible> {
    let square = ols(25, 5, 4)?;
    let bits = (0..25).flat_map(|y| square.positions(y).map(move |bit| (y as f64, bit as f64)));
    Ok(Chart {
        title: "Bits of each element, Latin squares for 3 of 25 (figure 6)".to_owned(),
        x: Axis::linear("element"),
        y: Axis::linear("bit"),
        curves: vec![Curve::new("is set").measured(bits)],
    })
}

fn counters(_: &Run<'_>, rows: &[Row]) -> Result<Chart, Infeasible> {
    let stage = |number: u32| {
        let id = format!("003.fig8.stage{number}");
        let row = rows.iter().find(|row| row.claim.id == id);
        let counters = row.map_or(&[][..], |row| row.measured.numbers());
        // Side by side, so that equal counters do not hide each other.
        let aside = 0.18 * (f64::from(number) - 2.5);
        let points = (0..).map(f64::from).zip(counters).map(|(i, &counter)| (i + aside, counter));
        Curve::new(format!("after flow {number}")).measured(points)
    };
    Ok(Chart {
        title: "Counters as flows of size 5, 3, 4 and 2 come (figure 8)".to_owned(),
        x: Axis::linear("counter"),
        y: Axis::linear("packets"),
        curves: [1, 2, 3, 4].map(stage).to_vec(),
    })
}

/// Universes from 16 to 65,536, a quarter more each time.
fn universes() -> impl Iterator<Item = u64> {
    (0..=37).map(|step| (16.0 * 1.2522f64.powi(step)).round() as u64).chain([256])
}

/// Bits of each way of the paper for a target, by name.
const WAYS: [(&str, &str); 4] = [
    ("residues by the first primes (EGH)", "egh"),
    ("Latin squares (OLS)", "ols"),
    ("three digits modulo a prime (POL)", "pol"),
    ("three digits over any field", ""),
];

fn bits(way: usize, few: Target) -> Option<u64> {
    match way {
        0 => first_primes(few).ok().map(|shape| Shape::Egh(shape).cells()),
        1 => squares(few.universe, few.members).map(|shape| Shape::Ols(shape).cells()),
        2 => polynomials(few, 3, Fields::Primes, Points::Affine).map(|shape| shape.cells()),
        _ => polynomials(few, 3, Fields::PrimePowers, Points::Affine).map(|shape| shape.cells()),
    }
}

/// Bits against the universe, times the universe for a matrix.
fn along(way: usize, members: u64, of: fn(u64, u64) -> u64) -> Vec<Point> {
    let mut all: Vec<u64> = universes().collect();
    all.sort_unstable();
    let point = |universe: u64| {
        let bits = bits(way, Target { universe, members })?;
        Some((universe as f64, of(bits, universe) as f64))
    };
    all.into_iter().filter_map(point).collect()
}

fn lengths(members: u64) -> Chart {
    let curve = |way: usize| {
        let (name, code) = WAYS[way];
        let said = printed(&format!("003.table6.{code}.d{members}")).map(|bits| (256.0, bits));
        Curve::new(name).line(along(way, members, |bits, _| bits)).printed(said)
    };
    Chart {
        title: format!("Length of a filter without false positives for {members} (figure 9)"),
        x: Axis::log("universe"),
        y: Axis::log("bits"),
        curves: (0..WAYS.len()).map(curve).collect(),
    }
}

fn matrices() -> Chart {
    let curve = |way: usize, members: u64| {
        let (_, code) = WAYS[way];
        let said = printed(&format!("003.table7.{code}.d{members}")).map(|bits| (256.0, bits));
        let name = format!("{}, {members} members", code.to_uppercase());
        Curve::new(name).line(along(way, members, |bits, n| bits * n)).printed(said)
    };
    Chart {
        title: "Bits of the matrix that maps elements (figure 10)".to_owned(),
        x: Axis::log("universe"),
        y: Axis::log("bits"),
        curves: [3, 7].into_iter().flat_map(|d| (0..3).map(move |way| curve(way, d))).collect(),
    }
}

fn beyond(_: &Run<'_>, rows: &[Row]) -> Result<Chart, Infeasible> {
    let counts = || [4, 5, 6, 8, 10, 15, 20];
    let exact = |order, digits, groups| {
        let rate = move |members: u64| zone::exact_rate(order, digits, groups, members);
        (1..=20).filter_map(move |members| Some((members as f64, rate(members)?)))
    };
    let of = |code: &'static str, find: &dyn Fn(&str) -> Option<f64>| -> Vec<Point> {
        let point = |c: u64| Some((c as f64, find(&format!("003.fig11.{code}.c{c}"))?));
        counts().into_iter().filter_map(point).collect()
    };
    let ours = |id: &str| measured(rows, id);
    Ok(Chart {
        title: "False positives beyond the zone of 3 (figure 11)".to_owned(),
        x: Axis::linear("members"),
        y: Axis::log("false positives"),
        curves: vec![
            Curve::new("Latin squares, 64 bits for 256")
                .line(exact(16, 2, 4))
                .measured(of("ols", &ours))
                .printed(of("ols", &printed)),
            Curve::new("polynomials, 49 bits for 343")
                .line(exact(7, 3, 7))
                .measured(of("pol", &ours))
                .printed(of("pol", &printed)),
        ],
    })
}

/// Draws behind each point of figures 12 and 13.
fn draws(run: &Run<'_>, most: u64) -> u64 {
    if run.quick { most / 20 } else { most }
}

fn figure_12(run: &Run<'_>, groups: u32) -> Result<Chart, Infeasible> {
    let cells = groups * 5;
    let mut points = [const { Vec::new() }; 4];
    for active in 1..=10 {
        let excess = excess_12(run, groups, active, draws(run, 10_000))?;
        for (points, excess) in points.iter_mut().zip(excess) {
            points.push((active as f64, excess));
        }
    }
    let names = [("Latin squares", "fpfz"), ("random mapping", "random")];
    let curves = points.into_iter().enumerate().map(|(i, points)| {
        let (name, id) = names[i / 2];
        let kind = ["active", "idle"][i % 2];
        let said = printed(&format!("003.fig12.{id}.m{cells}.{kind}")).map(|mean| (5.0, mean));
        Curve::new(format!("{name}, {kind} flows")).line(points).printed(said)
    });
    Ok(Chart {
        title: format!("Mean overestimate of 25 flows, {cells} counters (figure 12)"),
        x: Axis::linear("active flows"),
        y: Axis::linear("packets too many, sizes being 1 to 100"),
        curves: curves.collect(),
    })
}

fn figure_13(run: &Run<'_>, _: &[Row]) -> Result<Chart, Infeasible> {
    let mut idle = Vec::new();
    for active in 4..=10 {
        let [code, random] = excess_13(run, active, draws(run, 4_000))?;
        idle.push((active as f64, 100.0 * (1.0 - code / random)));
    }
    // An active flow sees what an idle one sees beside one flow fewer.
    let active = idle.iter().map(|&(x, percent)| (x + 1.0, percent)).filter(|&(x, _)| x <= 10.0);
    let said = |kind: &'static str| {
        let point = move |x: u64| Some((x as f64, printed(&format!("003.fig13.{kind}.x{x}"))?));
        [5, 6, 10].into_iter().filter_map(point)
    };
    Ok(Chart {
        title: "Polynomials against a random mapping, 1331 flows (figure 13)".to_owned(),
        x: Axis::linear("active flows"),
        y: Axis::linear("less error, percent"),
        curves: vec![
            Curve::new("idle flows").line(idle.clone()).printed(said("idle")),
            Curve::new("active flows").line(active).printed(said("active")),
        ],
    })
}

/// Every way to hold three of a universe, the floor among them.
fn zone_length() -> Result<Chart, Infeasible> {
    const MEMBERS: u64 = 3;
    let names = [
        "residues by the first primes",
        "residues of coprime moduli",
        "Latin squares",
        "polynomials over any field",
        "polynomials, cut at infinity",
        "a list of the members",
        "floor: the logarithm of all sets",
    ];
    let mut points = [const { Vec::new() }; 7];
    for step in 0..=24 {
        let universe = (16.0 * 2f64.powf(f64::from(step) / 2.0)) as u64;
        for row in zone::ways(Target { universe, members: MEMBERS })? {
            let at = match (&row.held, row.held.name()) {
                (Held::Code(_), "egh") => 0,
                (Held::Coprime(_), _) => 1,
                (Held::Code(_), "ols") => 2,
                (Held::Code(_), _) => 3,
                (Held::Cut(_), _) => 4,
                (Held::List(_), _) => 5,
                _ => continue,
            };
            points[at].push((universe as f64, row.bits as f64));
        }
        let n = universe as f64;
        let sets = 1.0 + n + n * (n - 1.0) / 2.0 + n * (n - 1.0) * (n - 2.0) / 6.0;
        points[6].push((n, sets.log2()));
    }
    let curves = names.into_iter().zip(points).map(|(name, points)| Curve::new(name).line(points));
    Ok(Chart {
        title: "Bits to hold 3 of a universe without a false positive".to_owned(),
        x: Axis::log("universe"),
        y: Axis::log("bits"),
        curves: curves.collect(),
    })
}
