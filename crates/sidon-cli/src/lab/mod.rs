//! `sidon lab`: runs the papers' tables and experiments again.

mod traffic;

use crate::{
    args::number::{whole, within},
    show,
};
use anyhow::{Context, bail};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use sidon_lab::{
    Chosen, Cost, Row, Run, pages,
    papers::{self, acsm_2006::compare},
    report, select,
};
use sidon_traffic::files::{self, Access, System};
use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

/// Repeat the papers: what they print, what is right, what Sidon measures
///
/// Each claim of a paper has an id, such as 002.table1.sim.ge7. The start of an id, such as
/// 002.table1, chooses all claims that begin with it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the claims, their place in the paper and the cost of a check
    List(ListArgs),
    /// Check claims; the exit status is 1 if one fails
    ///
    /// Prints first how long the run will take, by the recorded cost of each trial. The results
    /// depend on the seed, the number of trials and of flows alone.
    ///
    /// Example: sidon lab run 002.table1 --quick
    Run(RunArgs),
    /// Measure on captures what the papers measured on traces
    ///
    /// Sources per subnet (003, table 5), and the five schemes with five-tuples as keys (004, figure
    /// 5).
    ///
    /// Example: sidon lab traffic captures/
    Traffic(traffic::Args),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// List only claims whose id begins with one of these
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Write JSON: {"rows": [{"id", "paper", "place", "claim", "trials", "seconds"}]}
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "\
sidon lab run [OPTIONS] <ID>...
       sidon lab run [OPTIONS] --all")]
struct RunArgs {
    /// Check the claims whose id begins with one of these: 002 is a paper, 002.table1 a table
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// Check all claims of all papers
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Run few trials of each simulation: seconds instead of minutes, with wider intervals
    #[arg(long)]
    quick: bool,
    /// Number of trials of each simulation, instead of the recorded one
    #[arg(long, value_name = "N", value_parser = within::<u64>(1..=1_000_000))]
    trials: Option<u64>,
    /// Seed of all trials
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole)]
    seed: u64,
    /// Number of trials that run at the same time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = within::<u16>(1..=1024))]
    threads: Option<u16>,
    /// Concurrent flows in the comparison of state maps [default: 20,000; 2,000 with --quick]
    #[arg(long, value_name = "N", value_parser = within::<u64>(100..=10_000_000))]
    flows: Option<u64>,
    /// Write JSON: {"rows": [{"id", "paper", "expected", "measured", "interval", "verdict", "note"}]}
    #[arg(long)]
    json: bool,
    /// Also write PAPERS.md to DIR, the results of each paper to DIR/papers (002.json and 002.md), and
    /// charts to DIR/papers/charts (SVG)
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

/// The cost of an experiment on one core. All claims that it checks share this cost.
fn cost_text(cost: Cost) -> String {
    match cost.full {
        0 => "none".to_owned(),
        trials => format!("{} trials, {}", show::whole(trials), duration(trials * cost.millis)),
    }
}

/// A duration in the unit that suits it.
fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => "less than 1 s".to_owned(),
        1_000..120_000 => format!("about {} s", millis.div_ceil(1_000)),
        _ => format!("about {} min", millis.div_ceil(60_000)),
    }
}

/// The estimate of a run, before it starts.
///
/// The recorded time of a trial is that of one core of the machine on which the costs were
/// measured, in a release build.
fn estimate(chosen: &Chosen, run: &Run<'_>) -> String {
    let on_threads = |run: &Run<'_>| duration(chosen.millis(run) / run.threads.max(1) as u64);
    let experiments = chosen.experiments().iter();
    let claims = experiments.flat_map(|one| one.claims).filter(|claim| chosen.has(claim)).count();
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = format!(
        "{} for {} on {}, by the recorded times of their trials",
        on_threads(run),
        plural(claims, "claim"),
        plural(run.threads, "thread"),
    );
    let quick = Run { quick: true, trials: None, ..*run };
    if chosen.millis(&quick) < chosen.millis(run) {
        text += &format!("; --quick takes {}", on_threads(&quick));
    }
    text
}

fn check(args: &RunArgs) -> anyhow::Result<()> {
    let chosen = select(&args.ids)?;
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(processors, usize::from);
    let bar = ProgressBar::new(0);
    let style = "{wide_bar} {percent:>3} %  {elapsed} so far, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    let progress = |millis| bar.inc(millis);
    let (seed, quick, trials) = (args.seed, args.quick, args.trials);
    let run = Run { seed, quick, trials, threads, flows: args.flows, progress: &progress };
    show::note(&show::folded(&format!("sidon: {}", estimate(&chosen, &run))));
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
        // The verdict comes second: in a narrow terminal, the last columns move below the row.
        let order = |[id, paper, right, ours, must, verdict]: [String; 6]| {
            vec![id, verdict, ours, right, must, paper]
        };
        let head = order(report::HEAD.map(str::to_owned));
        let head: Vec<_> = head.iter().map(String::as_str).collect();
        let lines = rows.iter().map(|row| order(report::line(row)));
        show::print(&show::table(&head, lines))?;
        show::print(&show::folded(&format!("\n{}", report::tally(&rows))))?;
    }
    all_hold(&rows)
}

/// Writes all results of a run to files. Equal runs write equal bytes.
fn write_all(
    dir: &Path,
    args: &RunArgs,
    chosen: &Chosen,
    run: &Run<'_>,
    rows: &[Row],
) -> anyhow::Result<()> {
    let papers = dir.join("papers");
    let charts = papers.join("charts");
    fs::create_dir_all(&charts)
        .with_context(|| format!("cannot create the directory {}", show::path(&charts)))?;
    let write = |path: PathBuf, bytes: &[u8]| {
        files::replace(&System, &path, Access::Umask, |out| out.write_all(bytes))
            .with_context(|| format!("cannot write {}", show::path(path)))
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
    fn a_run_is_estimated_and_a_quick_one_suggested() {
        let chosen = select(&["002.table1".to_owned()]).unwrap();
        let progress = |_| ();
        let (quick, trials, flows, progress) = (false, None, None, &progress);
        let run = Run { seed: 1, quick, trials, threads: 2, flows, progress };
        assert_eq!(
            estimate(&chosen, &run),
            "about 3 min for 18 claims on 2 threads, by the recorded times of their trials; --quick \
             takes less than 1 s"
        );
        let quick = Run { quick: true, ..run };
        assert!(!estimate(&chosen, &quick).contains("--quick"));
        assert!(estimate(&chosen, &Run { threads: 1, ..run }).starts_with("about 6 min"));
    }

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
