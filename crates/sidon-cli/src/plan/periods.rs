//! `sidon plan periods`: a table of regular contact, and how well it tells periods from random gaps.

use crate::{
    args::{
        number::{whole, within},
        refusal,
    },
    show,
};
use serde_json::{Value, json};
use sidon::{Seed, count::Periods, plan};
use sidon_kit::{Keys, Rng};

/// Pairs per kind of gaps that --audit measures, and the contacts of each.
const PAIRS: u64 = 1_000;
const CONTACTS: u64 = 20;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Pairs of hosts that are stored at a time: those with a period, and new ones of the last hour
    #[arg(long, value_name = "N", value_parser = within::<u64>(1..=1 << 32))]
    pairs: u64,
    /// Build the table, fill it, and measure the scores of generated pairs
    #[arg(long)]
    audit: bool,
    /// With --audit: seed of the table and of the generated contacts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, requires = "audit")]
    seed: u64,
    /// Write JSON: {"rows": [{"key_bytes", "bytes", "bytes_per_pair"}], "audit": {"refused", "scores":
    /// [{"gaps", "mean", "from_half"}]}}; audit is null without --audit
    #[arg(long)]
    json: bool,
}

/// Keys by their bytes: pairs of IPv4 addresses, of any addresses, and with a port.
const KEYS: [(&str, u64); 3] = [("two IPv4", 8), ("two IPv6", 32), ("two IPv6, port", 34)];

/// The scores of pairs with one kind of gaps.
struct Scores {
    gaps: &'static str,
    mean: f64,
    /// The share of pairs with a score of at least a half.
    from_half: f64,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let option = |name: &str| (name == "pairs").then_some("--pairs");
    let shape = plan::periods::shape(args.pairs).map_err(|why| refusal(why, option))?;
    let bytes = [
        Periods::<[u8; 8]>::planned_bytes(shape),
        Periods::<[u8; 32]>::planned_bytes(shape),
        Periods::<[u8; 34]>::planned_bytes(shape),
    ];
    let rows = KEYS.into_iter().zip(bytes);
    let audit = if args.audit { Some((refused(args)?, scores(args.seed)?)) } else { None };
    if args.json {
        let rows: Vec<Value> = rows
            .map(|((_, key_bytes), bytes)| {
                let each = bytes as f64 / args.pairs as f64;
                json!({ "key_bytes": key_bytes, "bytes": bytes, "bytes_per_pair": each })
            })
            .collect();
        let audit = audit.map(|(refused, scores)| {
            let scores: Vec<Value> = scores
                .iter()
                .map(
                    |one| json!({ "gaps": one.gaps, "mean": one.mean, "from_half": one.from_half }),
                )
                .collect();
            json!({ "refused": refused, "scores": scores })
        });
        return show::print_json(&json!({ "rows": rows, "audit": audit }));
    }
    let lines = rows.map(|((name, key_bytes), bytes)| {
        let each = bytes as f64 / args.pairs as f64;
        vec![name.to_owned(), key_bytes.to_string(), show::bytes(bytes), format!("{each:.1} bytes")]
    });
    show::print(&show::table(&["addresses", "bytes of a key", "memory", "per pair"], lines))?;
    if let Some((refused, scores)) = audit {
        let lines = scores.iter().map(|one| {
            let share = format!("{:.1} %", one.from_half * 100.0);
            vec![one.gaps.to_owned(), format!("{:.3}", one.mean), share]
        });
        show::print("")?;
        show::print(&show::table(&["gaps", "mean score", "score of 0.5 or more"], lines))?;
        show::print(&show::folded(&format!(
            "\n{} of {} pairs were refused. Scores are of {} pairs per kind after {} contacts.",
            show::whole(refused),
            show::whole(args.pairs.min(FILL_MAX)),
            show::whole(PAIRS),
            CONTACTS,
        )))?;
    }
    Ok(())
}

/// The most pairs that --audit fills a table with.
const FILL_MAX: u64 = 2_000_000;

/// The pairs that a planned table refuses.
fn refused(args: &Args) -> anyhow::Result<u64> {
    let pairs = args.pairs.min(FILL_MAX);
    let mut table: Periods<u64> =
        Periods::new(plan::periods::shape(pairs)?, Seed(args.seed.into()))?;
    for key in Keys::seeded(args.seed).take(pairs as usize) {
        // The table counts refused pairs.
        table.see(&key, 0);
    }
    Ok(table.refused())
}

/// The scores after [`CONTACTS`] contacts with a mean gap of 60 seconds.
fn scores(seed: u64) -> anyhow::Result<Vec<Scores>> {
    type Gap = fn(&mut Rng) -> f64;
    let kinds: [(&'static str, Gap); 4] = [
        ("fixed", |_| 60.0),
        ("20 % jitter", |rng| 60.0 * (0.8 + 0.4 * uniform(rng))),
        ("50 % jitter", |rng| 60.0 * (0.5 + uniform(rng))),
        ("random (Poisson)", |rng| -60.0 * uniform(rng).ln()),
    ];
    let mut all = Vec::new();
    for (gaps, gap) in kinds {
        let mut rng = Rng::seeded(seed);
        let shape = plan::periods::shape(PAIRS)?;
        let mut table: Periods<u64> = Periods::new(shape, Seed(seed.into()))?;
        for pair in 0..PAIRS {
            let mut now = 0.0;
            for _ in 0..CONTACTS {
                table.see(&pair, (now * 1e9) as u64);
                now += gap(&mut rng);
            }
        }
        let found: Vec<f64> =
            (0..PAIRS).filter_map(|pair| table.get(&pair)).map(|pair| pair.score).collect();
        let mean = found.iter().sum::<f64>() / PAIRS as f64;
        let from_half = found.iter().filter(|&&score| score >= 0.5).count() as f64 / PAIRS as f64;
        all.push(Scores { gaps, mean, from_half });
    }
    Ok(all)
}

/// A number above 0 and below 1.
fn uniform(rng: &mut Rng) -> f64 {
    (rng.below(1 << 52) as f64 + 0.5) / (1u64 << 52) as f64
}
