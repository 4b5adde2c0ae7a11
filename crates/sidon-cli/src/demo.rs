//! `sidon demo`: a minute in which a newcomer sees what the library does.

use crate::show;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use sidon::{
    Seed,
    member::Counting,
    ops::{Contains, Insert, Remove},
    plan::{self, Target},
};
use sidon_kit::FiveTuples;
use std::time::{Duration, Instant};

/// See it work: a set of a million flows that come and go
///
/// Plans a counting filter, fills it with generated IPv4 five-tuples, lets every flow leave and
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
    let shape = plan::counting(target)?;
    let mut filter = Counting::new(shape, Seed(args.seed.into()))?;
    // Enough strangers that a rate of this size is known to a few per cent.
    let strangers = ((2_000.0 / args.fpr) as u64).clamp(100_000, 20_000_000);
    let bar = progress(args.flows * 4 + strangers);
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
    let table_bytes = (shape.counters * u64::from(shape.width)).div_ceil(8);
    if args.json {
        return show::json_rows(vec![
            json!({"what": "false_positive_rate", "promised": plan::counting_rate(shape, args.flows),
                   "measured": measured, "interval": [measured - spread, measured + spread]}),
            json!({"what": "members_lost", "promised": 0, "measured": lost}),
            json!({"what": "operations_refused",
                   "promised": plan::counting_overflow(shape, args.flows), "measured": refused}),
            json!({"what": "bytes", "promised": table_bytes, "measured": table_bytes}),
            json!({"what": "fill", "promised": (plan::counting_rate(shape, args.flows)).powf(1.0 / f64::from(shape.hashes)),
                   "measured": filter.fill()}),
        ]);
    }
    let million = |flows: u64, took: Duration| flows as f64 / took.as_secs_f64() / 1e6;
    let rows = [
        [
            "strangers that pass".to_owned(),
            show::rate(plan::counting_rate(shape, args.flows)),
            format!("{} (+/- {})", show::rate(measured), show::rate(spread)),
        ],
        ["members lost".to_owned(), "0, as a fact".to_owned(), show::whole(lost)],
        [
            "operations refused".to_owned(),
            show::rate(plan::counting_overflow(shape, args.flows)),
            show::whole(refused),
        ],
        [
            "counters in use".to_owned(),
            show::rate(plan::counting_rate(shape, args.flows).powf(1.0 / f64::from(shape.hashes))),
            show::rate(filter.fill()),
        ],
    ];
    show::print(&format!(
        "A set of {} flows that come and go, in {} ({:.1} bits a flow):\n\
         a counting Bloom filter of {} counters of {} bits, {} a flow.\n",
        show::whole(args.flows),
        show::bytes(table_bytes),
        table_bytes as f64 * 8.0 / args.flows as f64,
        show::whole(shape.counters),
        shape.width,
        shape.hashes,
    ))?;
    show::print(&show::table(&["", "promised", "measured"], rows.map(Vec::from)))?;
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

fn progress(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{msg:22} {bar:40} {percent:>3} %  {eta} left")
    {
        bar.set_style(style);
    }
    bar
}
