//! `sidon demo`: a minute in which a newcomer sees what the library does.

use crate::show;
use indicatif::ProgressBar;
use serde_json::json;
use sidon::{
    Seed,
    member::DLeft,
    ops::{Contains, Insert, Remove},
    plan::{self, Target},
};
use sidon_kit::FiveTuples;
use std::time::{Duration, Instant};

/// See it work: a set of a million flows that come and go
///
/// Plans a d-left filter, fills it with generated IPv4 five-tuples, lets every flow leave and
/// another come, and prints what was promised beside what was measured. Nothing is read from the
/// network or the disk.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many flows are in the set at a time
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    flows: u64,
    /// The share of strangers that may pass
    #[arg(long, value_name = "P", default_value_t = 0.001)]
    fpr: f64,
    /// The seed of the hash and of the generated flows
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write JSON: {"rows": [{"what", "promised", "measured"}]}
    #[arg(long)]
    json: bool,
}

/// Flows handed over at a time.
const BATCH: usize = 1024;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let target = Target { keys: args.flows, false_positives: args.fpr };
    let shape = plan::dleft_fast(target)?;
    let mut filter = DLeft::new(shape, Seed(args.seed.into()))?;
    // Enough strangers that a rate of this size is known to a few per cent.
    let strangers = ((2_000.0 / args.fpr) as u64).clamp(100_000, 20_000_000);
    let bar = show::progress(args.flows * 3 + strangers);
    let mut refused = 0u64;

    bar.set_message("filling");
    let filled = each(FiveTuples::seeded(args.seed), args.flows, &bar, |flows| {
        filter.insert_batch(flows, &mut |_, _| refused += 1);
    });

    // The first half of the stream leaves as the second comes in.
    bar.set_message("churning");
    let mut leaving = FiveTuples::seeded(args.seed);
    let mut coming = FiveTuples::seeded(args.seed);
    coming.nth(args.flows as usize - 1);
    let arrivals = coming.clone();
    let mut gone = Vec::with_capacity(BATCH);
    let churned = each(coming, args.flows, &bar, |flows| {
        gone.clear();
        gone.extend(leaving.by_ref().take(flows.len()));
        filter.remove_batch(&gone, &mut |_, _| refused += 1);
        filter.insert_batch(flows, &mut |_, _| refused += 1);
    });

    bar.set_message("asking for members");
    let mut lost = 0u64;
    let mut found = vec![false; BATCH];
    let mut count_absent = |flows: &[[u8; 13]], counter: &mut u64| {
        let found = &mut found[..flows.len()];
        filter.contains_batch(flows, found);
        *counter += found.iter().filter(|&&found| !found).count() as u64;
    };
    let mut after = arrivals.clone();
    let asked = each(arrivals, args.flows, &bar, |flows| count_absent(flows, &mut lost));

    bar.set_message("asking for strangers");
    after.nth(args.flows as usize - 1);
    let mut turned_away = 0;
    each(after, strangers, &bar, |flows| count_absent(flows, &mut turned_away));
    let passed = strangers - turned_away;
    bar.finish_and_clear();

    let measured = passed as f64 / strangers as f64;
    let spread = 1.96 * (measured * (1.0 - measured) / strangers as f64).sqrt();
    let promised = plan::dleft_rate(shape, args.flows);
    let load = args.flows as f64 / shape.all_cells() as f64;
    if args.json {
        let interval = [measured - spread, measured + spread];
        return show::json_rows(vec![
            json!({"what": "false_positive_rate", "promised": promised, "measured": measured,
                   "interval": interval}),
            json!({"what": "members_lost", "promised": 0, "measured": lost}),
            json!({"what": "operations_refused", "promised": 0, "measured": refused}),
            json!({"what": "load", "promised": load, "measured": filter.load()}),
            json!({"what": "bits_per_flow",
                   "promised": shape.bytes() as f64 * 8.0 / args.flows as f64}),
        ]);
    }
    let million = |flows: u64, took: Duration| flows as f64 / took.as_secs_f64() / 1e6;
    let row =
        |what: &str, promised: String, measured: String| vec![what.to_owned(), promised, measured];
    let rows = [
        row(
            "strangers that pass",
            show::rate(promised),
            format!("{} +/- {}", show::rate(measured), show::rate(spread)),
        ),
        row("members lost", "0".to_owned(), show::whole(lost)),
        row("operations refused", "0".to_owned(), show::whole(refused)),
        row("cells in use", show::rate(load), show::rate(filter.load())),
    ];
    show::print(&format!(
        "A set of {} flows that come and go, in {} ({:.1} bits a flow):\n\
         a d-left filter of {} subtables of {} buckets, {} cells of {} bits in each.\n",
        show::whole(args.flows),
        show::bytes(shape.bytes()),
        shape.bytes() as f64 * 8.0 / args.flows as f64,
        shape.subtables,
        show::whole(shape.buckets),
        shape.cells,
        shape.width,
    ))?;
    show::print(&show::table(&["", "promised", "measured"], rows))?;
    show::print(&format!(
        "\nFilled at {:.1} million flows a second, churned at {:.1}, asked at {:.1}, on one core,\n\
         the flows generated on the way. Every `no` was right; a `yes` is wrong as often as said.\n\
         Next: sidon plan member --keys {} --fpr {}",
        million(args.flows, filled),
        million(args.flows, churned),
        million(args.flows, asked),
        args.flows,
        args.fpr,
    ))
}

/// Hands `n` flows to `act` in batches, and says how long it took.
fn each(
    flows: FiveTuples,
    n: u64,
    bar: &ProgressBar,
    mut act: impl FnMut(&[[u8; 13]]),
) -> Duration {
    let start = Instant::now();
    let mut flows = flows.take(n as usize);
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        batch.clear();
        batch.extend(flows.by_ref().take(BATCH));
        if batch.is_empty() {
            return start.elapsed();
        }
        act(&batch);
        bar.inc(batch.len() as u64);
    }
}
