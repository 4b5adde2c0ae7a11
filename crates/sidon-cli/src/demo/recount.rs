//! An exact count of some flows after the run. The traffic is generated a second time from its seed,
//! so the run itself needs no memory for exact counts.

use sidon::{Infeasible, Key, Seed};
use sidon_traffic::{FlowKey, Generator, Mix, Report, batch, shard::Shard};
use std::collections::HashMap;

/// One flow in `ONE_IN` is counted again, and every flow that the report lists.
const ONE_IN: u64 = 256;

/// Result of the exact count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recount {
    /// Flows counted again.
    pub(super) flows: u64,
    /// Flows whose bounds exclude the exact count.
    pub(super) violations: u64,
}

pub(super) fn recount(
    mix: Mix,
    traffic: u64,
    seed: Seed,
    report: &Report,
    shards: &[Shard],
) -> Result<Recount, Infeasible> {
    let listed = report.flows.entries.iter().map(|entry| (entry.key, [0, 0]));
    let mut truth: HashMap<FlowKey, [u64; 2]> = listed.collect();
    // These bits do not choose the shard of a flow.
    let sampled = |digest: u64| (digest >> 40).is_multiple_of(ONE_IN);
    for packet in Generator::new(mix, traffic)? {
        let key = packet.flow.undirected();
        let add = |amounts: &mut [u64; 2]| {
            amounts[0] += u64::from(packet.wire_len);
            amounts[1] += 1;
        };
        if sampled(key.digest(seed).0) {
            add(truth.entry(key).or_default());
        } else if let Some(amounts) = truth.get_mut(&key) {
            add(amounts);
        }
    }
    let wrong = truth.iter().filter(|(key, amounts)| {
        let shard = &shards[batch::shard(key.digest(seed))];
        let bounds = shard.sizes.flows.bounds(key);
        bounds
            .iter()
            .zip(*amounts)
            .any(|(bounds, truth)| !(bounds.least..=bounds.most).contains(truth))
    });
    let violations = wrong.count() as u64;
    Ok(Recount { flows: truth.len() as u64, violations })
}
