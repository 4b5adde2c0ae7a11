//! Examples of the flows of an incident: the first four and the last four.

use crate::{
    FlowKey,
    flow::protocol,
    snapshot::encode::{In, Out},
    time,
};
use serde_json::{Value, json};
use sidon::Malformed;

const SECOND: u64 = 1_000_000_000;
/// Examples from the beginning, and as many from the end.
const HALF: usize = 4;
/// The most examples of an incident.
pub(super) const EXAMPLES_MAX: usize = 2 * HALF;

/// A packet of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Example {
    /// The time of the packet.
    pub time: u64,
    /// Its addresses and ports, in its direction.
    pub flow: FlowKey,
}

impl Example {
    /// The example in the fields of an event.
    pub(super) fn to_json(self) -> Value {
        let Example { time, flow } = self;
        let mut json = json!({
            "time": time::iso8601(time),
            "src_ip": flow.source(),
            "dest_ip": flow.destination(),
            "proto": protocol_name(flow.protocol()),
        });
        if protocol::has_ports(flow.protocol()) {
            json["src_port"] = flow.source_port().into();
            json["dest_port"] = flow.destination_port().into();
        }
        json
    }

    pub(super) fn save(&self, out: &mut Out) {
        out.number(self.time);
        out.flow(self.flow);
    }

    pub(super) fn read(bytes: &mut In<'_>) -> Result<Self, Malformed> {
        Ok(Example { time: bytes.number()?, flow: bytes.flow("examples")? })
    }
}

/// The name of a protocol in events: `TCP`, or its number.
pub(crate) fn protocol_name(number: u8) -> String {
    protocol::name(number).map_or_else(|| number.to_string(), str::to_uppercase)
}

/// Adds an example. A full list drops the oldest of its second half. Examples after the first four are
/// a second apart, so that a flood costs no more than a comparison per packet.
pub(super) fn add(examples: &mut Vec<Example>, example: Example) {
    let early = |last: &Example| example.time < last.time.saturating_add(SECOND);
    if examples.len() >= HALF && examples.last().is_some_and(early) {
        return;
    }
    if examples.len() >= EXAMPLES_MAX {
        examples.remove(HALF);
    }
    examples.push(example);
}

/// Joins the examples of two lists, by time: the first four of all, and the last four.
pub(super) fn join(own: &mut Vec<Example>, other: Vec<Example>) {
    own.extend(other);
    own.sort_unstable();
    own.dedup();
    if own.len() > EXAMPLES_MAX {
        own.drain(HALF..own.len() - HALF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(second: u64) -> Example {
        let time = second * SECOND;
        Example { time, flow: FlowKey::v4([10, 0, 0, 1], [10, 0, 0, 2], [second as u16, 80], 6) }
    }

    fn times(examples: &[Example]) -> Vec<u64> {
        examples.iter().map(|example| example.time / SECOND).collect()
    }

    #[test]
    fn the_first_four_and_the_last_four_are_kept() {
        let mut list = Vec::new();
        (0..100).for_each(|time| add(&mut list, example(time)));
        assert_eq!(times(&list), [0, 1, 2, 3, 96, 97, 98, 99]);
        // A packet less than a second later.
        add(&mut list, Example { time: 99 * SECOND + 1, ..example(5) });
        assert_eq!(times(&list), [0, 1, 2, 3, 96, 97, 98, 99]);
        join(&mut list, (50..58).map(example).collect());
        assert_eq!(times(&list), [0, 1, 2, 3, 96, 97, 98, 99]);
        join(&mut list, (99..103).map(example).collect());
        assert_eq!(times(&list), [0, 1, 2, 3, 99, 100, 101, 102]);
        let mut few = vec![example(1)];
        join(&mut few, vec![example(0), example(1)]);
        assert_eq!(times(&few), [0, 1]);
    }
}
