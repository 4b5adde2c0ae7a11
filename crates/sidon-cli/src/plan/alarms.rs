//! `sidon plan alarms`: a sequential test of failures, its delays and its false accusations.

use crate::{
    args::{
        number::{decimal, whole, within},
        refusal,
    },
    show,
};
use serde_json::{Value, json};
use sidon::{
    decide::{Failures, Suspects, Test, failures::Shape},
    plan,
};
use sidon_kit::Rng;

/// Failure rates of attacks, as multiples of the usual one.
const TIMES: [f64; 4] = [1.5, 2.0, 5.0, 20.0];
/// Attacks per rate that --audit measures.
const ATTACKS: u64 = 400;
/// The most trials of an attack: after them it counts as not accused.
const TRIALS_MAX: u64 = 1 << 20;
/// Innocent trials that --audit measures, and the subjects that share them.
const INNOCENT: u64 = 40_000_000;
const SUBJECTS: u64 = 4_000;
/// The most trials per false accusation of the audit: enough false accusations to count.
const APART_MAX: u64 = 200_000;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Share of trials of an innocent subject that fail, at most
    #[arg(long, value_name = "P", value_parser = decimal)]
    usual: f64,
    /// Trials per second, of all subjects together
    #[arg(long, value_name = "N", value_parser = within::<u64>(1..=1_000_000_000))]
    trials: u64,
    /// At most one false accusation is expected in this many days
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = within::<u64>(1..=36_500))]
    days: u64,
    /// Subjects that had a failure and are stored at a time
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = whole)]
    subjects: u64,
    /// Measure delays and false accusations with generated trials
    #[arg(long)]
    audit: bool,
    /// With --audit: seed of the generated trials
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, requires = "audit")]
    seed: u64,
    /// Write JSON: {"rows": [{"times", "rate", "trials_at_most", "trials"}], "shape", "bytes", "audit":
    /// {"innocent_trials", "apart", "accusations_at_most", "accusations"}}; trials and audit are null without
    /// --audit
    #[arg(long)]
    json: bool,
}

/// An attack, its planned delay and the measured one.
struct Row {
    times: f64,
    rate: f64,
    planned: f64,
    measured: Option<f64>,
}

/// False accusations in innocent trials.
struct Innocent {
    apart: u64,
    accusations: u64,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let option = |name: &str| match name {
        "usual" => Some("--usual"),
        "subjects" => Some("--subjects"),
        _ => None,
    };
    let apart = args.trials * 86_400 * args.days;
    let test = plan::decide::shape(args.usual, apart).map_err(|why| refusal(why, option))?;
    let shape = plan::decide::suspects(args.subjects, test).map_err(|why| refusal(why, option))?;
    let rates = TIMES.map(|times| (times, times * args.usual));
    let mut rows = Vec::new();
    for (times, rate) in rates.into_iter().filter(|(_, rate)| *rate <= 1.0) {
        let measured = if args.audit { Some(delay(test, rate, args.seed)?) } else { None };
        rows.push(Row { times, rate, planned: plan::decide::delay(test, rate), measured });
    }
    let innocent = if args.audit { Some(innocent(test, args.seed)?) } else { None };
    let bytes = Suspects::<[u8; 16]>::planned_bytes(shape);
    if args.json {
        let audit = innocent.as_ref().map(|found| {
            json!({
                "innocent_trials": INNOCENT,
                "apart": found.apart,
                "accusations_at_most": INNOCENT / found.apart,
                "accusations": found.accusations,
            })
        });
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        return show::print_json(&json!({
            "rows": rows,
            "shape": { "buckets": shape.buckets, "usual": test.usual, "attacks": test.attacks,
                "apart": test.apart },
            "bytes": bytes,
            "audit": audit,
        }));
    }
    let head = ["failures", "share that fails", "trials until accused, at most", "measured"];
    let head = &head[..if args.audit { 4 } else { 3 }];
    let lines = rows.iter().map(|row| {
        let mut line = vec![
            format!("{} x usual", row.times),
            show::rate(row.rate),
            format!("{:.1}", row.planned),
        ];
        line.extend(row.measured.map(|trials| format!("{trials:.1}")));
        line
    });
    show::print(&show::table(head, lines))?;
    show::print(&show::folded(&format!(
        "\nAt most one false accusation is expected in {} trials, {} days at {} trials per second, however \
         many subjects there are and however often they are tested. {} suspects by IPv6 address take {}.",
        show::whole(apart),
        show::whole(args.days),
        show::whole(args.trials),
        show::whole(args.subjects),
        show::bytes(bytes),
    )))?;
    if let Some(Innocent { apart, accusations }) = innocent {
        show::print(&show::folded(&format!(
            "Measured with at most one false accusation in {} trials: {} in {} innocent trials, {} are allowed.",
            show::whole(apart),
            show::whole(accusations),
            show::whole(INNOCENT),
            show::whole(INNOCENT / apart),
        )))?;
    }
    Ok(())
}

/// The mean number of trials until new subjects that fail at this rate are accused. Infinite if one of them is not.
fn delay(test: Shape, rate: f64, seed: u64) -> anyhow::Result<f64> {
    let rule = Failures::new(test)?;
    let mut total = 0;
    for attack in 0..ATTACKS {
        let mut rng = Rng::seeded(seed.wrapping_add(attack << 32));
        let mut test = Test::default();
        let accused = (1..=TRIALS_MAX).find(|_| {
            rule.see(&mut test, rng.chance(rate));
            rule.accuses(&test)
        });
        let Some(trials) = accused else { return Ok(f64::INFINITY) };
        total += trials;
    }
    Ok(total as f64 / ATTACKS as f64)
}

/// The false accusations of subjects that fail at the usual rate.
fn innocent(test: Shape, seed: u64) -> anyhow::Result<Innocent> {
    let apart = test.apart.min(APART_MAX);
    let rule = Failures::new(Shape { apart, ..test })?;
    let usual = f64::from(test.usual) / 1e6;
    let mut accusations = 0;
    for subject in 0..SUBJECTS {
        let mut rng = Rng::seeded(seed.wrapping_add(subject << 32).wrapping_add(1 << 31));
        let mut test = Test::default();
        for _ in 0..INNOCENT / SUBJECTS {
            rule.see(&mut test, rng.chance(usual));
            if rule.accuses(&test) {
                accusations += 1;
                test.restart();
            }
        }
    }
    Ok(Innocent { apart, accusations })
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "times": self.times,
            "rate": self.rate,
            "trials_at_most": self.planned,
            "trials": self.measured,
        })
    }
}
