//! One shard's part of a report: counts and bounded lists.

use super::SUBNETS_LISTED;
use crate::{
    FlowKey,
    audit::Audit,
    monitor::{
        sizes::{Host, Port},
        sources::Subnet,
    },
    shard::Shard,
};
use sidon::count::Ranking;
use std::cmp::Reverse;

/// What a report needs from one shard.
pub(crate) struct Part {
    pub(crate) number: usize,
    pub(super) flows: Ranking<FlowKey, 2>,
    pub(super) hosts: Ranking<Host, 2>,
    pub(super) ports: Ranking<Port, 2>,
    /// The number of flows, hosts and ports that the tables keep.
    pub(super) kept: [u64; 3],
    /// The subnets with the most new addresses, at most [`SUBNETS_LISTED`].
    pub(super) new_sources: Vec<(Subnet, u32)>,
    /// The number of subnets with new addresses.
    pub(super) new_subnets: u64,
    /// The number of new addresses.
    pub(super) new_addresses: u64,
    /// Refusals of the shard's tables.
    pub(super) refused: [(&'static str, u64); 3],
    pub(super) audit: Option<Audit>,
}

impl Part {
    /// The part of a shard, with top lists of length `top`.
    pub(crate) fn of(shard: &Shard, top: usize) -> Self {
        let (sizes, sources) = (&shard.sizes, &shard.sources);
        let (mut new_sources, mut new_subnets) = (Vec::new(), 0);
        sources.new_by_subnet(|subnet, hosts| {
            new_subnets += 1;
            new_sources.push((subnet, hosts));
            if new_sources.len() == 2 * SUBNETS_LISTED {
                keep_most(&mut new_sources);
            }
        });
        keep_most(&mut new_sources);
        Part {
            number: shard.number(),
            flows: sizes.flows.heaviest(top),
            hosts: sizes.hosts.heaviest(top),
            ports: sizes.ports.heaviest(top),
            kept: [sizes.flows.len(), sizes.hosts.len(), sizes.ports.len()],
            new_sources,
            new_subnets,
            new_addresses: sources.new,
            refused: [
                ("known_sources", shard.unlearnt),
                ("sources_v4", sources.refused[0]),
                ("sources_v6", sources.refused[1]),
            ],
            audit: shard.audit(top),
        }
    }
}

fn keep_most(list: &mut Vec<(Subnet, u32)>) {
    list.sort_unstable_by_key(most_first);
    list.truncate(SUBNETS_LISTED);
}

/// The order of subnets in a list: the most addresses first, then by subnet.
pub(crate) fn most_first(&(subnet, hosts): &(Subnet, u32)) -> (Reverse<u32>, Subnet) {
    (Reverse(hosts), subnet)
}
