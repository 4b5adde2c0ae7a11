//! Experiments, and choosing among them by the ids of their claims.

use crate::{claim::Claim, figure::Figure, papers, row::Row, trials::Run};
use sidon::Infeasible;
use std::{error, fmt};

/// A paper whose claims are checked.
#[derive(Debug)]
pub struct Paper {
    /// The first part of its claims' ids.
    pub id: &'static str,
    /// Its name in a column: the structure and the year.
    pub short: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// Who wrote it, where and when it came out.
    pub source: &'static str,
    /// The experiments of its claims.
    pub experiments: &'static [Experiment],
    /// The charts of its claims.
    pub figures: &'static [Figure],
}

/// A table, a figure or a simulation: one function that checks some claims.
#[derive(Debug)]
pub struct Experiment {
    /// Its name; trials are seeded by it.
    pub name: &'static str,
    /// What it checks, in the order of its rows.
    pub claims: &'static [Claim],
    /// What it costs.
    pub cost: Cost,
    /// Runs a number of trials and returns a row for each claim.
    pub run: fn(&Experiment, &Run<'_>, u64) -> Result<Vec<Row>, Infeasible>,
}

/// How much work an experiment is.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Trials in a full run; zero for a formula.
    pub full: u64,
    /// Trials in a quick run.
    pub quick: u64,
    /// About how long a trial takes on one core, in milliseconds.
    pub millis: u64,
}

impl Cost {
    /// A formula: no trials, no time to speak of.
    pub const FORMULA: Cost = Cost { full: 0, quick: 0, millis: 0 };
}

impl Experiment {
    /// How many trials such a run makes.
    pub fn trials(&self, run: &Run<'_>) -> u64 {
        match run.trials {
            _ if self.cost.full == 0 => 0,
            Some(trials) => trials.max(1),
            None if run.quick => self.cost.quick,
            None => self.cost.full,
        }
    }
}

/// Some claims, and the experiments that check them.
#[derive(Debug, Clone)]
pub struct Chosen {
    prefixes: Vec<String>,
    experiments: Vec<&'static Experiment>,
}

/// A name that no claim begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown(pub String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no claim's id begins with {:?}: see `sidon lab list`", self.0)
    }
}

impl error::Error for Unknown {}

/// The claims whose id begins with one of these; all if there are none.
pub fn select(prefixes: &[String]) -> Result<Chosen, Unknown> {
    let all = || papers::ALL.iter().flat_map(|paper| paper.experiments);
    for prefix in prefixes {
        let known =
            |experiment: &Experiment| experiment.claims.iter().any(|c| c.id.starts_with(prefix));
        if !all().any(known) {
            return Err(Unknown(prefix.clone()));
        }
    }
    let mut chosen = Chosen { prefixes: prefixes.to_vec(), experiments: Vec::new() };
    chosen.experiments = all().filter(|e| e.claims.iter().any(|c| chosen.has(c))).collect();
    Ok(chosen)
}

impl Chosen {
    /// Whether the claim is one of them.
    pub fn has(&self, claim: &Claim) -> bool {
        self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| claim.id.starts_with(prefix))
    }

    /// The experiments that check them.
    pub fn experiments(&self) -> &[&'static Experiment] {
        &self.experiments
    }

    /// The figures that show one of them.
    pub fn figures(&self) -> impl Iterator<Item = &'static Figure> {
        let claims = || self.experiments.iter().flat_map(|e| e.claims).filter(|c| self.has(c));
        let all = papers::ALL.iter().flat_map(|paper| paper.figures);
        all.filter(move |figure| claims().any(|claim| figure.shows(claim)))
    }

    /// About how long that takes on one core, in milliseconds: what [`Run::progress`] adds up to.
    pub fn millis(&self, run: &Run<'_>) -> u64 {
        self.experiments.iter().map(|e| e.trials(run).saturating_mul(e.cost.millis)).sum()
    }

    /// Runs the experiments; a row for each of the claims, in the papers' order.
    pub fn run(&self, run: &Run<'_>) -> Result<Vec<Row>, Infeasible> {
        let mut rows = Vec::new();
        for experiment in &self.experiments {
            let all = (experiment.run)(experiment, run, experiment.trials(run))?;
            rows.extend(all.into_iter().filter(|row| self.has(row.claim)));
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_unique_and_carry_their_paper() {
        let mut ids = HashSet::new();
        let mut names = HashSet::new();
        for paper in papers::ALL {
            for experiment in paper.experiments {
                assert!(names.insert(experiment.name), "{}", experiment.name);
                for claim in experiment.claims {
                    assert!(ids.insert(claim.id), "{}", claim.id);
                    assert_eq!(claim.id.split('.').next(), Some(paper.id));
                }
            }
        }
        assert!(ids.len() >= 50);
    }

    #[test]
    fn prefixes_choose_claims_and_unknown_ones_are_named() {
        let chosen = select(&["002.table1.sim".to_owned()]).unwrap();
        assert_eq!(chosen.experiments().len(), 1);
        let claims = chosen.experiments()[0].claims;
        assert_eq!(claims.iter().filter(|claim| chosen.has(claim)).count(), 9);
        let all = select(&[]).unwrap();
        assert!(all.experiments().len() > 4);
        let unknown = select(&["002".to_owned(), "9".to_owned()]).unwrap_err();
        assert!(unknown.to_string().contains("\"9\""));
    }
}
