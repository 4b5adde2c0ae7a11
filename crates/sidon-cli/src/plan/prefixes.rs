//! `sidon plan prefixes`: the levels of a table of networks, and by `--audit` what a table of this shape does.
//!
//! The audit adds a generated trace: addresses by Zipf's law, and ten heavy networks, one of each length and
//! family. It compares the bounds of all addresses and of all listed networks with exact counts, and looks up
//! addresses that never came.

use crate::{
    args::{
        number::{decimal, memory, memory_text, whole, within},
        refusal,
    },
    show,
};
use anyhow::anyhow;
use serde_json::{Value, json};
use sidon::{
    Infeasible, Seed,
    count::{
        Prefix, Prefixes,
        prefixes::{LEVELS, Shape},
    },
    plan::prefixes,
};
use sidon_kit::{Networks, Rng};
use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("size").required(true).args(["memory", "slack"]))]
pub(crate) struct Args {
    /// Memory to use, such as 65536, 64KiB or 16MiB
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    memory: Option<u64>,
    /// Mean distance between the bounds of a network, as a share of the total
    #[arg(long, value_name = "E", value_parser = decimal)]
    slack: Option<f64>,
    /// Amounts per network, such as bytes, packets and new flows
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = within::<usize>(1..=4))]
    amounts: usize,
    /// Measure a table with three amounts on a generated trace
    #[arg(long)]
    audit: bool,
    /// With --audit: packets of the trace
    #[arg(long, value_name = "N", default_value_t = 1_000_000, requires = "audit",
          value_parser = within::<u64>(10_000..=1_000_000_000))]
    packets: u64,
    /// With --audit: seed of the hash function and of the trace
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, requires = "audit")]
    seed: u64,
    /// Write JSON: {"rows": [{"ipv4", "ipv6", "buckets", "entries", "bytes", "slack"}]}, and with --audit
    /// "measured": {"slack"} per row and {"audit": {"packets", "bounds", "wrong", "planted", "found"}}
    #[arg(long)]
    json: bool,
}

/// The lengths of each level.
const LENGTHS: [[u8; 2]; LEVELS] = [[32, 128], [24, 64], [20, 56], [16, 48], [8, 32]];
/// Addresses that never came, looked up per level.
const ABSENT: u64 = 100;

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let shape = shape(args)?;
    let bytes = planned(args.amounts, shape);
    let bucket = bytes / shape.buckets.iter().sum::<u64>().max(1);
    let slack = prefixes::slack(shape);
    let found = args.audit.then(|| audit(shape, args.packets, args.seed)).transpose()?;
    if args.json {
        let row = |level: usize| {
            let mut row = json!({
                "ipv4": LENGTHS[level][0],
                "ipv6": LENGTHS[level][1],
                "buckets": shape.buckets[level],
                "entries": shape.buckets[level].saturating_mul(8),
                "bytes": shape.buckets[level].saturating_mul(bucket),
                "slack": slack[level],
            });
            if let Some(found) = &found {
                row["measured"] = json!({ "slack": found.slack[level] });
            }
            row
        };
        let mut all = json!({ "rows": (0..LEVELS).map(row).collect::<Vec<Value>>() });
        if let Some(found) = &found {
            all["audit"] = json!({
                "packets": args.packets, "bounds": found.bounds, "wrong": found.wrong,
                "planted": found.planted, "found": found.found,
            });
        }
        return show::print_json(&all);
    }
    let mut head = vec!["lengths", "buckets", "entries", "memory", "mean slack at most"];
    head.extend(found.is_some().then_some("measured"));
    let lines = (0..LEVELS).map(|level| {
        let [v4, v6] = LENGTHS[level];
        let buckets = shape.buckets[level];
        let mut line = vec![
            format!("/{v4}, /{v6}"),
            show::whole(buckets),
            show::whole(buckets.saturating_mul(8)),
            show::bytes(buckets.saturating_mul(bucket)),
            show::rate(slack[level]),
        ];
        line.extend(found.as_ref().map(|found| show::rate(found.slack[level])));
        line
    });
    show::print(&show::table(&head, lines))?;
    show::print(&show::folded(&format!(
        "\n{} in all. The slack is the distance between the bounds of a network as a share of the total.",
        show::bytes(bytes)
    )))?;
    if let Some(found) = &found {
        show::print(&show::folded(&format!(
            "Audit of {} packets: {} of {} bounds are wrong, {} of {} planted networks are listed.",
            show::whole(args.packets),
            show::whole(found.wrong),
            show::whole(found.bounds),
            found.found,
            found.planted,
        )))?;
    }
    Ok(())
}

/// The bytes of a table with this number of amounts.
fn planned(amounts: usize, shape: Shape) -> u64 {
    match amounts {
        1 => Prefixes::<1>::planned_bytes(shape),
        2 => Prefixes::<2>::planned_bytes(shape),
        3 => Prefixes::<3>::planned_bytes(shape),
        _ => Prefixes::<4>::planned_bytes(shape),
    }
}

fn shape(args: &Args) -> anyhow::Result<Shape> {
    let flag = |name: &str| match name {
        "slack" => Some("--slack"),
        "amounts" => Some("--amounts"),
        "bytes" => Some("--memory"),
        _ => None,
    };
    let Some(bytes) = args.memory else {
        let slack = args.slack.ok_or_else(|| anyhow!("type --memory BYTES or --slack E"))?;
        return prefixes::shape_for(slack).map_err(|why| refusal(why, flag));
    };
    prefixes::shape(bytes, args.amounts).map_err(|why| match why {
        Infeasible::OutOfRange { name: "bytes", got, least, most } => {
            let size = memory_text(bytes);
            if got < least {
                anyhow!("--memory {size} is too small; type --memory {least} or more")
            } else {
                anyhow!("--memory {size} is too large; type --memory {} or less", memory_text(most))
            }
        }
        why => refusal(why, flag),
    })
}

/// The measurements of a table.
struct Found {
    /// The mean upper bound of networks that never came, per level, as a share of the total.
    slack: [f64; LEVELS],
    /// The bounds that were compared, and those that do not hold.
    bounds: u64,
    wrong: u64,
    /// The heavy networks of the trace, and those on the list.
    planted: u64,
    found: u64,
}

fn audit(shape: Shape, packets: u64, seed: u64) -> anyhow::Result<Found> {
    let mut table: Prefixes<3> = Prefixes::new(shape, Seed(seed.into()))?;
    let mut trace = Networks::seeded(seed, packets.div_ceil(50));
    let heavy = trace.heavy();
    let mut exact: [HashMap<Prefix, [u64; 3]>; LEVELS] = Default::default();
    let bar = show::progress(packets);
    let mut left = packets;
    while left > 0 {
        let (addresses, amounts): (Vec<_>, Vec<_>) =
            trace.by_ref().take(left.min(512) as usize).unzip();
        left -= addresses.len() as u64;
        table.add_batch(&addresses, &amounts)?;
        for (&address, amounts) in addresses.iter().zip(&amounts) {
            for (level, map) in exact.iter_mut().enumerate() {
                let sums = map.entry(at(address, level)?).or_default();
                sums.iter_mut().zip(amounts).for_each(|(sum, more)| *sum += more);
            }
        }
        bar.inc(addresses.len() as u64);
    }
    bar.finish_and_clear();

    // With the least threshold, the list has every network with an entry at or below it.
    let mut found = Found { slack: [0.0; LEVELS], bounds: 0, wrong: 0, planted: 10, found: 0 };
    let mut compare = |bounds: [sidon::count::Bounds; 3], sums: Option<&[u64; 3]>| {
        for (bounds, &sum) in bounds.iter().zip(sums.unwrap_or(&[0; 3])) {
            found.bounds += 1;
            found.wrong += u64::from(sum < bounds.least || sum > bounds.most);
        }
    };
    for row in table.heavy(0, 1).rows {
        compare(row.amounts, exact.iter().find_map(|map| map.get(&row.prefix)));
    }
    for (prefix, sums) in &exact[0] {
        compare(table.bounds(prefix), Some(sums));
    }
    let listed: HashSet<Prefix> =
        table.heavy(0, table.total()[0] / 200).rows.iter().map(|row| row.prefix).collect();
    for (address, length) in heavy {
        found.found += u64::from(listed.contains(&Prefix::new(address, length)?));
    }
    let mut rng = Rng::seeded(seed.wrapping_add(1));
    for _ in 0..ABSENT {
        let address =
            IpAddr::from((0x3fff_u128 << 112 | u128::from(rng.next_u64()) << 48).to_be_bytes());
        for (level, slack) in found.slack.iter_mut().enumerate() {
            let most = table.bounds(&at(address, level)?)[0].most;
            *slack += most as f64 / table.total()[0].max(1) as f64 / ABSENT as f64;
        }
    }
    Ok(found)
}

/// The prefix of an address at a level.
fn at(address: IpAddr, level: usize) -> Result<Prefix, Infeasible> {
    Prefix::new(address, LENGTHS[level][usize::from(address.is_ipv6())])
}
