//! The figures of 000 and 001, and the errors of the three structures against memory.

use super::compare::{self, BEHAVIOURS, STRUCTURES};
use crate::{
    chart::{Axis, Chart, Curve},
    figure::{Figure, cells},
    formulas::{
        bloom::best_hashes,
        state::{pair_dont_know, pair_rate},
    },
    row::Row,
    trials::Run,
};
use sidon::{Infeasible, state::direct};

/// From section 3.3 on.
pub static OF_000: [Figure; 5] = [
    Figure {
        name: "000-fig3",
        about: "figure 3: a flow in cells 2, 4 and 7 goes from state 3 to 5; -1 is don't-know",
        claims: &["000.fig3"],
        draw: |_, rows| cells(rows, "000.fig3", "Cells after a state change (figure 3)", CELLS),
    },
    Figure {
        name: "000-fig4",
        about: "figure 4: the fourth of ten flows goes from state 3 to 5",
        claims: &["000.fig4"],
        draw: |_, rows| {
            let axes = ["flow, in the order of the figure", "state"];
            cells(rows, "000.fig4", "States after a state change (figure 4)", axes)
        },
    },
    Figure {
        name: "000-errors",
        about: "ours: errors of the three structures against memory, on a well-behaved stream and \
                with half of the steps for absent flows; without errors there is no point",
        claims: &["000.fcf.most_settings"],
        draw: |run, _| errors(run, "well-behaved and half spurious", [0, 3]),
    },
    Figure {
        name: "000-errors-endless",
        about: "ours: the same with a hundredth and with a tenth of flows that never end",
        claims: &["000.fcf.most_settings"],
        draw: |run, _| errors(run, "with flows that never end", [4, 5]),
    },
    Figure {
        name: "000-wrong",
        about: "ours: of the same, members that are answered a wrong state or absent, without \
                don't-knows",
        claims: &["000.fcf.most_settings"],
        draw: wrong,
    },
];

/// Sections 3.1 and 3.2.
pub static OF_001: [Figure; 3] = [
    Figure {
        name: "001-fig1",
        about: "figure 1: counters after a flow goes from state 3 to 5",
        claims: &["001.fig1"],
        draw: |_, rows| cells(rows, "001.fig1", "Counters after a state change (figure 1)", CELLS),
    },
    Figure {
        name: "001-fig2",
        about: "figure 2: counters after a phase has ended",
        claims: &["001.fig2"],
        draw: |_, rows| cells(rows, "001.fig2", "Counters after a phase's end (figure 2)", CELLS),
    },
    Figure {
        name: "001-pairs",
        about: "section 3.1: pairs in a counting filter, by the corrected formula",
        claims: &["001.dbf"],
        draw: pairs,
    },
];

const CELLS: [&str; 2] = ["cell", "what it holds"];

/// All errors of each structure against memory, in two of the behaviours.
fn errors(run: &Run<'_>, kind: &str, two: [usize; 2]) -> Result<Chart, Infeasible> {
    let outcomes = compare::outcomes(run)?;
    let mut curves = Vec::new();
    for at in two {
        let behaviour = BEHAVIOURS[at];
        for structure in STRUCTURES {
            let here = outcomes.iter().filter(|o| o.structure == structure);
            let here = here.filter(|o| o.behaviour == behaviour);
            let points: Vec<_> = here.map(|o| (o.bits as f64, o.errors())).collect();
            let percent = |share: f64| (share * 100.0).round();
            let (spurious, endless) = (percent(behaviour.spurious), percent(behaviour.endless));
            let name = format!("{structure}: {spurious} % spurious, {endless} % endless");
            curves.push(Curve::new(name).line(points.clone()).measured(points));
        }
    }
    Ok(Chart {
        title: format!("Errors of state maps, {kind} ({} flows)", compare::flows(run)),
        x: Axis::linear("bits a flow"),
        y: Axis::log("sum of the five error rates"),
        curves,
    })
}

/// Wrong answers on members against memory, half of the steps being spurious.
fn wrong(run: &Run<'_>, _: &[Row]) -> Result<Chart, Infeasible> {
    let outcomes = compare::outcomes(run)?;
    let curve = |structure: &str| {
        let here = outcomes.iter().filter(|o| o.structure == structure);
        let here = here.filter(|o| o.behaviour == BEHAVIOURS[3]);
        let rate =
            |o: &compare::Outcome| o.tally.false_states.rate() + o.tally.false_negatives.rate();
        let points: Vec<_> = here.map(|o| (o.bits as f64, rate(o))).collect();
        Curve::new(structure).line(points.clone()).measured(points)
    };
    Ok(Chart {
        title: format!(
            "Members answered wrongly, half of the steps spurious ({} flows)",
            compare::flows(run)
        ),
        x: Axis::linear("bits a flow"),
        y: Axis::log("wrong state or absent, of members"),
        curves: STRUCTURES.map(curve).to_vec(),
    })
}

/// The rate of a pair and of a don't-know against cells a flow.
fn pairs(_: &Run<'_>, rows: &[Row]) -> Result<Chart, Infeasible> {
    const FLOWS: u64 = super::formulas::PAIRS_FLOWS;
    let rate = |cells: u64| {
        let hashes = best_hashes(cells, FLOWS);
        let shape = direct::Shape { cells, hashes, ..super::formulas::PAIRS };
        pair_rate(shape, FLOWS)
    };
    let along = |of: &dyn Fn(f64) -> f64| -> Vec<_> {
        let cells = (2..=40).map(|half| half * FLOWS / 2);
        cells.map(|cells| (cells as f64 / FLOWS as f64, of(rate(cells)))).collect()
    };
    let point = |id| crate::figure::measured(rows, id).map(|rate| (10.0, rate));
    let said = |id| crate::figure::printed(id).map(|rate| (10.0, rate));
    Ok(Chart {
        title: "Pairs of flow and state in a counting filter, 8 states".to_owned(),
        x: Axis::linear("counters a flow"),
        y: Axis::log("rate"),
        curves: vec![
            Curve::new("a pair that is not stored passes")
                .line(along(&|rate| rate))
                .measured(point("001.dbf.sim_fpr"))
                .printed(said("001.dbf.sim_fpr")),
            Curve::new("a member is unknown")
                .line(along(&|rate| pair_dont_know(rate, 8)))
                .measured(point("001.dbf.sim_dk"))
                .printed(said("001.dbf.sim_dk")),
        ],
    })
}
