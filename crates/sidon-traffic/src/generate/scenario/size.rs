//! The size of a scenario, computed before its first packet.
//!
//! A file of a few lines can describe 2^32 flows of 2^32 packets. [`Scenario::packets`] therefore
//! refuses a scenario with too many packets, or with too many flows in progress at once.

use super::{Flows, Scenario, Script, Step};
use crate::excerpt::word;
use std::fmt;

/// The most flows in progress at once. Each takes about 100 bytes of memory: 400 MiB in all.
pub const FLOWS_MAX: u64 = 1 << 22;

/// The default of the most packets of a scenario. Frames of 60 bytes are then a capture of 760 MB.
pub const PACKETS_MAX: u64 = 10_000_000;

/// Why the packets of a scenario are not generated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooLarge {
    /// The scenario has more packets than the caller allows.
    Packets {
        /// The number of packets. [`u64::MAX`] stands for that many or more.
        got: u64,
        /// The limit of the caller.
        most: u64,
        /// The flows with the most packets: their name, or their number if they have none.
        flows: String,
    },
    /// More than [`FLOWS_MAX`] flows may be in progress at once.
    Flows {
        /// An upper bound of the flows in progress at once.
        got: u64,
        /// The flows that add most to it: their name, or their number if they have none.
        flows: String,
    },
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooLarge::Packets { got, most, flows } => write!(
                f,
                "the scenario has {got} packets, most of them in the flows {flows}; the limit is \
                 {most}"
            ),
            TooLarge::Flows { got, flows } => write!(
                f,
                "up to {got} flows are in progress at once, most of them the flows {flows}; the \
                 limit is {FLOWS_MAX}; use fewer or shorter flows, or a later `until`"
            ),
        }
    }
}

impl std::error::Error for TooLarge {}

impl Scenario {
    /// Refuses more than `most` packets, and more than [`FLOWS_MAX`] flows in progress at once.
    pub(super) fn check(&self, unit: u64, most: u64) -> Result<(), TooLarge> {
        let (got, flows) = self.sum(|flows| flows.packets(unit));
        if got > most {
            return Err(TooLarge::Packets { got, most, flows });
        }
        let (got, flows) = self.sum(|flows| flows.at_once(unit));
        if got > FLOWS_MAX {
            return Err(TooLarge::Flows { got, flows });
        }
        Ok(())
    }

    /// The sum over all flows, and the name of those with the largest part.
    fn sum(&self, part: impl Fn(&Flows) -> u64) -> (u64, String) {
        let name = match self.flows.iter().enumerate().max_by_key(|(_, flows)| part(flows)) {
            Some((_, flows)) if !flows.name.is_empty() => format!("{:?}", word(&flows.name)),
            Some((index, _)) => format!("number {}", index + 1),
            None => String::new(),
        };
        (self.flows.iter().map(part).fold(0, u64::saturating_add), name)
    }
}

impl Flows {
    /// The most packets. Without flows that fail, their exact number.
    pub(super) fn packets(&self, unit: u64) -> u64 {
        self.number.of(unit).saturating_mul(self.packets_each())
    }

    fn packets_each(&self) -> u64 {
        self.packets.packets().max(self.failed.packets())
    }

    /// An upper bound of the flows in progress at once, and one for the next flow.
    pub(super) fn at_once(&self, unit: u64) -> u64 {
        let all = self.number.of(unit);
        let lasts = self.packets.lasts_ns().max(self.failed.lasts_ns());
        if self.packets_each() <= 1 && lasts == 0 {
            return 1;
        }
        if self.starts.random {
            return all.saturating_add(1);
        }
        // Those in progress started in the last `lasts + 1` nanoseconds. Starts are rounded.
        let time = u128::from(self.starts.active_ns().max(1));
        let started = u128::from(all).saturating_mul(u128::from(lasts) + 1) / time + 1;
        all.min(u64::try_from(started).unwrap_or(u64::MAX)).saturating_add(1)
    }
}

impl Script {
    /// The sum over all steps, those of the body counted once per round.
    fn sum(&self, part: impl Fn(&Step) -> u64) -> u64 {
        let of = |steps: &[Step]| steps.iter().map(&part).fold(0, u64::saturating_add);
        let body = self.steps.get(self.body.clone()).map_or(0, of);
        body.saturating_mul(self.rounds.saturating_sub(1).into()).saturating_add(of(&self.steps))
    }

    /// The number of packets.
    fn packets(&self) -> u64 {
        self.sum(|step| step.repeat.max(1).into())
    }

    /// The most nanoseconds from the start of a flow to its last packet.
    pub(super) fn lasts_ns(&self) -> u64 {
        let each = |step: &Step| step.after_ns.saturating_add(step.jitter_ns);
        self.sum(|step| each(step).saturating_mul(step.repeat.max(1).into()))
    }
}
