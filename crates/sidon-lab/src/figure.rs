//! The papers' figures and our own, as charts beside the claims they show.

use crate::{
    chart::{Axis, Chart, Curve, Point},
    claim::Claim,
    papers,
    row::Row,
    trials::Run,
};
use sidon::Infeasible;

/// A figure: one function that draws it.
#[derive(Debug)]
pub struct Figure {
    /// The name of its file, without an ending.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// What the ids of the claims it shows begin with.
    pub claims: &'static [&'static str],
    /// Draws it, given the results of the run.
    pub draw: fn(&Run<'_>, &[Row]) -> Result<Chart, Infeasible>,
}

impl Figure {
    /// Whether the claim is one of those it shows.
    pub fn shows(&self, claim: &Claim) -> bool {
        self.claims.iter().any(|prefix| claim.id.starts_with(prefix))
    }
}

/// The number that was measured for a claim, if the run has it.
pub fn measured(rows: &[Row], id: &str) -> Option<f64> {
    let row = rows.iter().find(|row| row.claim.id == id)?;
    row.measured.numbers().first().copied()
}

/// The number that a paper prints for a claim, if it prints one.
pub fn printed(id: &str) -> Option<f64> {
    all_printed(id).first().copied()
}

/// The numbers that a paper prints for a claim.
pub fn all_printed(id: &str) -> &'static [f64] {
    let mut claims = papers::ALL.iter().flat_map(|paper| paper.experiments).flat_map(|e| e.claims);
    claims.find(|claim| claim.id == id).map_or(&[], |claim| claim.paper.numbers())
}

/// A worked example: what each cell holds, ours and the paper's.
pub fn cells(rows: &[Row], id: &str, title: &str, [x, y]: [&str; 2]) -> Result<Chart, Infeasible> {
    let numbered =
        |numbers: &[f64]| -> Vec<Point> { (0..).map(f64::from).zip(numbers.to_vec()).collect() };
    let row = rows.iter().find(|row| row.claim.id == id);
    let ours = row.map_or(Vec::new(), |row| numbered(row.measured.numbers()));
    let paper = row.map_or(Vec::new(), |row| numbered(row.claim.paper.numbers()));
    let curve = Curve::new("after the step").measured(ours).printed(paper);
    let (x, y) = (Axis::linear(x), Axis::linear(y));
    Ok(Chart { title: title.to_owned(), x, y, curves: vec![curve] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn figures_have_names_of_their_own_and_show_claims() {
        let mut names = HashSet::new();
        for paper in papers::ALL {
            for figure in paper.figures {
                assert!(names.insert(figure.name), "{}", figure.name);
                for prefix in figure.claims {
                    let claims = paper.experiments.iter().flat_map(|e| e.claims);
                    let shown = claims.filter(|claim| claim.id.starts_with(prefix)).count();
                    assert!(shown > 0, "{}: {prefix}", figure.name);
                }
            }
        }
        assert!(names.len() >= 20);
    }

    #[test]
    fn every_figure_can_be_drawn() {
        let run = Run {
            seed: 1,
            quick: true,
            trials: Some(1),
            threads: 1,
            flows: Some(200),
            progress: &|_| {},
        };
        for figure in papers::ALL.iter().flat_map(|paper| paper.figures) {
            let chart = (figure.draw)(&run, &[]).unwrap();
            assert!(!chart.x.label.is_empty() && !chart.y.label.is_empty(), "{}", figure.name);
            // What fits 800 pixels in letters of a title, and half of that in those of the key.
            assert!(chart.title.len() <= 74, "{}: {}", figure.name, chart.title);
            assert!(chart.curves.iter().all(|c| c.name.len() <= 42), "{}", figure.name);
            assert!(chart.curves.len() <= 8 && !chart.svg().is_empty());
        }
    }
}
