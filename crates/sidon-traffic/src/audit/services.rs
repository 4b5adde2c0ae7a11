//! An exact reference of services: the responder of every flow, in a hash map.
//!
//! The reference follows each flow from its first packet. A SYN or SYN-ACK names the responder of a
//! TCP connection. The monitor's table forgets a flow of another protocol that was silent for a
//! minute or more. Whether it had forgotten such a flow is uncertain, so the reference sums the
//! amounts of its later packets, and those of flow records. Its counts are exact up to that sum.

use crate::{
    FlowKey,
    batch::Batch,
    flow::protocol,
    monitor::{
        services::{self, Responder, Rule},
        sizes::Port,
    },
};
use std::collections::HashMap;

/// The responder of a flow.
#[derive(Debug, Clone, Copy)]
struct Flow {
    /// Whether the lower end of the flow key is the responder.
    is_lower: bool,
    /// The time of the last packet.
    last: u64,
    /// Whether the monitor may have forgotten the flow.
    is_uncertain: bool,
}

/// The exact amounts of every service.
#[derive(Debug, Default)]
pub struct Services {
    flows: HashMap<FlowKey, Flow>,
    /// Bytes and packets of each service.
    pub(crate) ports: HashMap<Port, [u64; 2]>,
    /// Bytes and packets that the monitor may have counted for another service.
    pub(crate) uncertain: [u64; 2],
    clock: u64,
}

impl Services {
    /// Counts the packets of a sorted batch.
    pub(crate) fn take(&mut self, batch: &Batch) {
        for (index, packet) in batch.packets.iter().enumerate() {
            self.clock = self.clock.max(packet.time_ns);
            let flow = &packet.flow;
            if !services::has_service(flow) {
                continue;
            }
            let amounts = batch.columns.amounts[index];
            let by_flags = services::by_flags(packet);
            let (responder, is_uncertain) = if batch.is_unordered(index) {
                (by_flags.unwrap_or_else(|| Responder::by_ports(flow)), true)
            } else {
                self.follow(flow, by_flags)
            };
            add(self.ports.entry(responder.service(flow)).or_default(), amounts);
            if is_uncertain {
                add(&mut self.uncertain, amounts);
            }
        }
    }

    /// The responder at a packet of `flow`, and whether the monitor may name another one.
    fn follow(&mut self, flow: &FlowKey, by_flags: Option<Responder>) -> (Responder, bool) {
        let (is_lower_source, clock) = (flow.is_ordered(), self.clock);
        let is_tcp = flow.protocol() == protocol::TCP;
        let first = || {
            let by_ports = Responder::by_ports(flow);
            // The registered port of a connection without its SYN, or else the side that did not
            // send first.
            let is_source = is_tcp && by_ports.rule == Rule::RegisteredPort && by_ports.is_source;
            let is_lower = is_source == is_lower_source;
            Flow { is_lower, last: clock, is_uncertain: false }
        };
        let known = self.flows.entry(flow.undirected()).or_insert_with(first);
        if let Some(named) = by_flags {
            known.is_lower = named.is_source == is_lower_source;
        }
        let silence = clock.saturating_sub(known.last);
        known.is_uncertain |= !is_tcp && silence >= services::SILENCE;
        known.last = clock;
        let is_source = known.is_lower == is_lower_source;
        (Responder { is_source, rule: Rule::FirstSender }, known.is_uncertain)
    }
}

fn add(sum: &mut [u64; 2], amounts: [u64; 2]) {
    for (sum, amount) in sum.iter_mut().zip(amounts) {
        *sum = sum.saturating_add(amount);
    }
}
