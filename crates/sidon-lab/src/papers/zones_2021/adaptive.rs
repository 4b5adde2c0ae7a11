//! Section 8.D: the sources of each /24 subnet, held exactly. A full run goes through all 2^24.

use super::facts;
use crate::{
    claim::Claim,
    experiment::Experiment,
    interval::{self, Interval},
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible, Seed,
    internals::{Ladder, Way},
    zone::{Subnets, subnets::Shape},
};
use sidon_kit::Rng;

/// The most hosts of a subnet without a bitmap.
const LISTED_MAX: u32 = 7;

/// Subnets in a trial. 1024 trials cover all /24 subnets.
const SUBNET_BITS: u32 = 14;
const SUBNETS: u64 = 1 << SUBNET_BITS;

/// Table 5, CHI16: least and most sources, and the share of subnets.
const CLASSES: [(u64, u64, f64); 4] =
    [(1, 4, 0.9434), (5, 8, 0.0436), (9, 16, 0.0090), (17, 256, 0.0040)];

/// How many sources a subnet has.
fn sources(rng: &mut Rng) -> u64 {
    let mut left = 1.0;
    for (first, last, share) in CLASSES {
        if rng.chance(share / left) {
            return first + rng.below(last - first + 1);
        }
        left -= share;
    }
    let (first, last, _) = CLASSES[3];
    first + rng.below(last - first + 1)
}

/// What a trial found.
#[derive(Debug, Default)]
struct Seen {
    wrong: u64,
    list: u64,
    zones: u64,
    pooled: u64,
}

/// Sets of sources in three structures, and lookups of every host in each.
pub fn adaptive(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    let ladders = [Ladder::new(256, Way::List)?, Ladder::new(256, Way::Zones)?];
    let seen =
        run.each(experiment.name, trials, experiment.cost.millis, |rng| trial(&ladders, rng))?;
    let n = trials * SUBNETS;
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
    let [wrong, mean_bytes @ ..] = &facts::ADAPTIVE;
    let wrong = Row::computed(wrong, sum(|seen| seen.wrong)).note(&format!("{n} subnets"));
    let row = |(claim, bytes): (&'static Claim, u64)| {
        let right = claim.expected.numbers().first().copied().unwrap_or(f64::NAN);
        // A set takes 8 to 32 bytes, and is at most so spread about its mean.
        let spread = ((right - 8.0) * (32.0 - right)).sqrt();
        let Interval { low, high } = interval::mean(right, spread, n, u64::MAX);
        let mean = bytes as f64 / n as f64;
        let mib = mean * f64::from(1 << 24) / f64::from(1 << 20);
        Row::sampled(claim, mean, Interval { low, high }, trials)
            .note(&format!("of {SUBNETS} subnets; all 2^24: {mib:.1} MiB, as bitmaps 512"))
    };
    let [list, zones, pooled] = mean_bytes;
    let bytes = [
        (list, sum(|seen| seen.list)),
        (zones, sum(|seen| seen.zones)),
        (pooled, sum(|seen| seen.pooled)),
    ];
    Ok([wrong].into_iter().chain(bytes.map(row)).collect())
}

fn trial(ladders: &[Ladder; 2], mut rng: Rng) -> Result<Seen, Infeasible> {
    // A bitmap for every subnet. The trial counts the bitmaps in use.
    let shape = Shape { subnet_bits: SUBNET_BITS, slots: SUBNETS, bitmaps: SUBNETS };
    let mut pooled = Subnets::new(shape, Seed(rng.next_u64().into()))?;
    let (mut seen, mut twins) = (Seen::default(), Vec::with_capacity(SUBNETS as usize));
    for subnet in 0..SUBNETS {
        let mut twin = [false; 256];
        let mut sets = [ladders[0].empty(), ladders[1].empty()];
        let mut left = sources(&mut rng);
        while left > 0 {
            let host = rng.below(256);
            let is_new = !twin[host as usize];
            twin[host as usize] = true;
            left -= u64::from(is_new);
            // Hosts come again, as they do in traffic.
            let told = pooled.observe(subnet, host as u8);
            seen.wrong += u64::from(told != Ok(is_new));
            for set in &mut sets {
                seen.wrong += u64::from(set.contains(&host) == is_new);
                seen.wrong += u64::from(set.insert(&host).is_err());
            }
        }
        let [list, zones] = &sets;
        for (host, &is_in) in twin.iter().enumerate() {
            seen.wrong += u64::from(list.contains(&(host as u64)) != is_in);
            seen.wrong += u64::from(zones.contains(&(host as u64)) != is_in);
        }
        (seen.list, seen.zones) =
            (seen.list + list.memory_bytes(), seen.zones + zones.memory_bytes());
        twins.push(twin);
    }
    for (subnet, twin) in twins.iter().enumerate() {
        let wrong = |host: &usize| pooled.contains(subnet as u64, *host as u8) != twin[*host];
        seen.wrong += (0..256).filter(wrong).count() as u64;
        let many = pooled.hosts(subnet as u64) > LISTED_MAX;
        seen.pooled += 8 + 32 * u64::from(many);
    }
    seen.wrong += u64::from(pooled.len() != SUBNETS);
    Ok(seen)
}
