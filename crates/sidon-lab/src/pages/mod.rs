//! All papers on one page: how many claims hold, each with its verdict and chart, the errata, and the
//! code for each section.

pub mod errata;
pub mod sections;

use crate::{
    claim::Value,
    experiment::Paper,
    figure::Figure,
    papers::{self, acsm_2006::compare},
    report,
    row::{Row, VERDICTS},
    trials::Run,
};

/// Claims that no paper makes: measured to complete the picture.
pub const OURS: [&str; 5] = [
    compare::CLAIM,
    "003.adaptive.wrong",
    "003.adaptive.list",
    "003.adaptive.zones",
    "003.adaptive.pooled",
];

/// Claims on record that no experiment reaches, with the reason. A claim of the tables is checked
/// by an experiment or listed here.
pub const OUT_OF_REACH: [(&str, &str); 0] = [];

/// The page. `ids` is what was chosen; nothing means all.
pub fn papers(run: &Run<'_>, ids: &[String], rows: &[Row]) -> String {
    let command = report::command(run, ids);
    let mut page = format!(
        "# The papers, re-run\n\n\
         Every number that four papers print or imply, beside the right one and beside what Sidon \
         measures. Made by\n`{command}`; the same command gives the same bytes, on any number of \
         threads.\nEach paper's own page has the intervals and the numbers of trials.\n\n"
    );
    count(&mut page, rows);
    for paper in papers::ALL {
        let rows: Vec<&Row> =
            rows.iter().filter(|row| row.claim.id.starts_with(paper.id)).collect();
        if !rows.is_empty() {
            section(&mut page, paper, &rows);
        }
    }
    limits(&mut page, run, rows);
    page.push_str(&errata::section(rows));
    page.push('\n');
    page.push_str(sections::PAGE);
    page
}

/// How many claims are checked, by paper and verdict.
fn count(page: &mut String, rows: &[Row]) {
    let names: Vec<_> = VERDICTS.iter().map(|(verdict, _)| *verdict).collect();
    page.push_str(&format!("| paper | claims | {} |\n", names.join(" | ")));
    page.push_str(&format!("|---|---:|{}\n", "---:|".repeat(names.len())));
    let mut line = |name: &str, rows: &[&Row]| {
        let of = |verdict: &&str| rows.iter().filter(|row| row.verdict() == *verdict).count();
        let cells: Vec<_> = names.iter().map(|verdict| of(verdict).to_string()).collect();
        page.push_str(&format!("| {name} | {} | {} |\n", rows.len(), cells.join(" | ")));
    };
    for paper in papers::ALL {
        let rows: Vec<_> = rows.iter().filter(|row| row.claim.id.starts_with(paper.id)).collect();
        if !rows.is_empty() {
            line(&format!("[{}](papers/{}.md), {}", paper.id, paper.id, paper.short), &rows);
        }
    }
    line("all", &rows.iter().collect::<Vec<_>>());
    let ours = rows.iter().filter(|row| OURS.contains(&row.claim.id)).count();
    let (recorded, beyond) = (rows.len() - ours + OUT_OF_REACH.len(), OUT_OF_REACH.len());
    page.push_str(&format!(
        "\nOf these {ours} are our own questions. The other {recorded} are on record from the \
         papers: {} are checked by an experiment, {beyond} are out of reach.\n\n",
        recorded - beyond,
    ));
    for (id, why) in OUT_OF_REACH {
        page.push_str(&format!("- {id}: {why}\n"));
    }
    for (verdict, meaning) in VERDICTS {
        page.push_str(&format!("- `{verdict}`: {meaning}.\n"));
    }
    page.push('\n');
}

fn section(page: &mut String, paper: &Paper, rows: &[&Row]) {
    page.push_str(&format!("## {}: {}\n\n{}.\n\n", paper.id, paper.title, paper.source));
    let drawn = |figure: &&Figure| rows.iter().any(|row| figure.shows(row.claim));
    for figure in paper.figures.iter().filter(drawn) {
        let Figure { name, about, .. } = figure;
        page.push_str(&format!("![{about}](papers/charts/{name}.svg)\n\n{}.\n\n", capital(about)));
    }
    page.push_str(
        "| claim | paper | right | ours | verdict | chart |\n|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let shown = paper.figures.iter().find(|figure| figure.shows(row.claim));
        let chart = shown
            .map_or(String::new(), |figure| format!("[{0}](papers/charts/{0}.svg)", figure.name));
        let values = [&row.claim.paper, &row.claim.expected, &row.measured].map(Value::to_string);
        let text = format!(
            "{}: {} ({}) | {} | {}",
            row.claim.id,
            row.claim.about,
            row.claim.place,
            values.join(" | "),
            row.verdict()
        );
        page.push_str(&format!("| {text} | {chart} |\n"));
    }
    page.push('\n');
}

/// What the experiments are not.
fn limits(page: &mut String, run: &Run<'_>, rows: &[Row]) {
    let compared = rows.iter().any(|row| row.claim.id == compare::CLAIM);
    let table = if compared { " ([table](papers/state_errors.md))" } else { "" };
    page.push_str(&format!(
        "## What these runs are not\n\n\
         - The papers' traces are not published. Keys and flows here are drawn at random. With a good \
         hash, the rates\n  are the same. Where a printed number came from a trace, the claim states \
         its distance from the formula.\n\
         - The comparison of state maps has {} concurrent flows{table}. No phase of the clock ends in its \
         stream, so flows\n  without an end accumulate there and do not expire.\n\
         - Rates of simulations are held to six standard deviations for the trials made, not to \
         the digits printed.\n\n",
        compare::flows(run)
    ));
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select;

    #[test]
    fn the_page_has_every_claim_its_verdict_and_its_chart() {
        let ids = ["002.cmp".to_owned(), "004.fig6".to_owned()];
        let run =
            Run { seed: 7, quick: true, trials: None, threads: 1, flows: None, progress: &|_| {} };
        let rows = select(&ids).unwrap().run(&run).unwrap();
        let page = papers(&run, &ids, &rows);
        assert!(page.contains("`sidon lab run 002.cmp 004.fig6 --quick --seed 7`"), "{page}");
        for row in &rows {
            assert!(page.contains(&format!("| {}: ", row.claim.id)), "{}", row.claim.id);
        }
        assert!(page.contains("![section 4: d-left") && page.contains("charts/004-fig6.svg"));
        assert!(!page.contains("charts/004-fig5.svg"));
        assert!(page.contains("## Errata") && page.contains("52.646"));
    }

    #[test]
    fn every_claim_has_an_experiment_or_a_reason() {
        // Claims hang on experiments alone: one that no row answers would be missing here.
        let run =
            Run { seed: 1, quick: true, trials: None, threads: 1, flows: None, progress: &|_| {} };
        let formulas = papers::ALL.iter().flat_map(|paper| paper.experiments);
        for experiment in formulas.filter(|experiment| experiment.cost.full == 0) {
            let rows = (experiment.run)(experiment, &run, 0).unwrap();
            let ids: Vec<_> = rows.iter().map(|row| row.claim.id).collect();
            let asked: Vec<_> = experiment.claims.iter().map(|claim| claim.id).collect();
            assert_eq!(ids, asked, "{}", experiment.name);
            for row in rows {
                assert!(row.holds && !row.measured.numbers().is_empty(), "{}", row.claim.id);
            }
        }
        for (id, why) in OUT_OF_REACH {
            assert!(!why.is_empty(), "{id}");
        }
    }
}
