//! `sidon lab`: the papers' tables and experiments, re-run.

mod traffic;

use crate::show;
use anyhow::{Context, bail};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use sidon_lab::{
    Chosen, Cost, Row, Run, pages,
    papers::{self, acsm_2006::compare},
    report, select,
};
use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

/// Re-run the papers: what they print, what is right, what Sidon measures
///
/// Each claim of a paper has an id, such as 002.table1.sim.ge7; a part of it from the left chooses
/// all that begin with it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the claims: where they stand, what they say, what checking them costs
    List(ListArgs),
    /// Check claims; the exit code is 1 if one fails
    ///
    /// The results depend on the seed and the number of trials, and on nothing else.
    ///
    /// Example: sidon lab run 002.table1 --quick
    Run(RunArgs),
    /// Measure on captures what the papers measured on traces
    ///
    /// Sources by subnet (003, table 5), and the five schemes with five-tuples for keys (004, figure 5).
    ///
    /// Example: sidon lab traffic captures/
    Traffic(traffic::Args),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only claims whose id begins with one of these
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Write JSON: {"rows": [{"id", "paper", "place", "claim", "trials", "seconds"}]}
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Claims whose id begins with one of these: 002 is a paper, 002.table1 a table
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// All claims of all papers
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// A few trials each, in seconds: wide intervals, and the rows say so
    #[arg(long)]
    quick: bool,
    /// This many trials of each simulation, in place of its own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    trials: Option<u64>,
    /// Where all randomness comes from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Trials side by side [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Concurrent flows where state maps are compared [default: 20,000; 2,000 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    flows: Option<u64>,
    /// Write JSON: {"rows": [{"id", "paper", "expected", "measured", "interval", "verdict", "note"}]}
    #[arg(long)]
    json: bool,
    /// Write PAPERS.md to DIR, the results of each paper to DIR/papers, as 002.json and 002.md, and
    /// figures to DIR/papers/charts, as SVG
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::List(args) => list(args),
        What::Run(args) => check(args),
        What::Traffic(args) => traffic::run(args),
    }
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let chosen = select(&args.ids)?;
    let claims = || {
        let experiments = chosen.experiments().iter();
        experiments
            .flat_map(|experiment| experiment.claims.iter().map(|claim| (claim, experiment.cost)))
            .filter(|(claim, _)| chosen.has(claim))
    };
    let paper = |id: &str| papers::ALL.iter().find(|paper| id.starts_with(paper.id));
    if args.json {
        let rows = claims().map(|(claim, cost)| {
            json!({
                "id": claim.id,
                "paper": paper(claim.id).map(|paper| paper.title),
                "place": claim.place,
                "claim": claim.about,
                "trials": cost.full,
                "seconds": (cost.full * cost.millis) as f64 / 1000.0,
            })
        });
        return show::json_rows(rows.collect());
    }
    let head = ["id", "paper", "place", "claim", "cost of a full run"];
    let rows = claims().map(|(claim, cost)| {
        let paper = paper(claim.id).map_or("", |paper| paper.short);
        [claim.id, paper, claim.place, claim.about, &cost_text(cost)].map(str::to_owned).to_vec()
    });
    show::print(&show::table(&head, rows))
}

/// What an experiment costs on one core, the same for all claims it checks.
fn cost_text(cost: Cost) -> String {
    let seconds = cost.full * cost.millis / 1000;
    match cost.full {
        0 => "none".to_owned(),
        trials => format!("{} trials, {} min", show::whole(trials), seconds.div_ceil(60)),
    }
}

fn check(args: &RunArgs) -> anyhow::Result<()> {
    let chosen = select(&args.ids)?;
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(processors, usize::from);
    let bar = ProgressBar::new(0);
    let style = "{wide_bar} {percent:>3} %  {elapsed} gone, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    let progress = |millis| bar.inc(millis);
    let (seed, quick, trials) = (args.seed, args.quick, args.trials);
    let run = Run { seed, quick, trials, threads, flows: args.flows, progress: &progress };
    bar.set_length(chosen.millis(&run));
    let rows = chosen.run(&run);
    bar.finish_and_clear();
    let rows = rows?;

    if let Some(dir) = &args.out {
        write_all(dir, args, &chosen, &run, &rows)?;
    }
    if args.json {
        show::json_rows(rows.iter().map(report::json).collect())?;
    } else {
        let lines = rows.iter().map(|row| report::line(row).to_vec());
        show::print(&show::table(&report::HEAD, lines))?;
        show::print(&format!("\n{}", report::tally(&rows)))?;
    }
    all_hold(&rows)
}

/// Everything a run has to show, in files: the same for the same run.
fn write_all(
    dir: &Path,
    args: &RunArgs,
    chosen: &Chosen,
    run: &Run<'_>,
    rows: &[Row],
) -> anyhow::Result<()> {
    let papers = dir.join("papers");
    let charts = papers.join("charts");
    fs::create_dir_all(&charts).with_context(|| format!("cannot make {}", charts.display()))?;
    let write = |path: PathBuf, bytes: &[u8]| {
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    for paper in papers::ALL {
        let of_paper = |row: &&Row| row.claim.id.starts_with(paper.id);
        let rows: Vec<_> = rows.iter().filter(of_paper).cloned().collect();
        if rows.is_empty() {
            continue;
        }
        let json = json!({ "rows": rows.iter().map(report::json).collect::<Vec<_>>() });
        let json = serde_json::to_string_pretty(&json)? + "\n";
        write(papers.join(format!("{}.json", paper.id)), json.as_bytes())?;
        let page = report::markdown(paper, run, &args.ids, &rows);
        write(papers.join(format!("{}.md", paper.id)), page.as_bytes())?;
    }
    if rows.iter().any(|row| row.claim.id == compare::CLAIM) {
        write(papers.join("state_errors.md"), compare::page(run)?.as_bytes())?;
    }
    for figure in chosen.figures() {
        let chart = (figure.draw)(run, rows)?;
        write(charts.join(format!("{}.svg", figure.name)), chart.svg().as_bytes())?;
    }
    write(dir.join("PAPERS.md"), pages::papers(run, &args.ids, rows).as_bytes())
}

/// An error that names the claims that fail.
fn all_hold(rows: &[Row]) -> anyhow::Result<()> {
    let failed: Vec<_> = rows.iter().filter(|row| !row.holds).map(|row| row.claim.id).collect();
    if !failed.is_empty() {
        bail!("{} of {} claims fail: {}", failed.len(), rows.len(), failed.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_fails_is_an_error() {
        let claims = papers::ALL[0].experiments[0].claims;
        let right: Vec<_> =
            claims.iter().map(|claim| Row::computed(claim, claim.expected.clone())).collect();
        all_hold(&right).unwrap();
        let wrong = Row::computed(&claims[0], 1.0);
        let why = all_hold(&[wrong]).unwrap_err().to_string();
        assert_eq!(why, format!("1 of 1 claims fail: {}", claims[0].id));
    }
}
