//! The figures of a report: each count with its certainty.

use super::Report;
use crate::{
    audit::Audit,
    figure::Figure,
    flow_map::{EXACT, mistaken_most},
    ledger::Ledger,
    monitor::{
        connections::{self, OUTCOMES},
        sources::Subnet,
    },
};
use sidon::count::Bounds;

impl Report {
    /// Frames seen.
    pub fn packets(&self) -> Figure {
        self.counted(self.ledger.seen)
    }

    /// Bytes on the wire of all frames seen.
    pub fn bytes(&self) -> Figure {
        self.counted(self.ledger.wire_bytes)
    }

    /// Packets that were decoded.
    pub fn decoded(&self) -> Figure {
        self.counted(self.ledger.decoded)
    }

    /// Bytes or packets of a flow, a host or a port.
    pub fn amount(&self, bounds: Bounds) -> Figure {
        self.ledger.amount(bounds)
    }

    /// Bytes and packets of a flow or a host.
    pub fn amounts(&self, bounds: [Bounds; 2]) -> [Figure; 2] {
        bounds.map(|bounds| self.amount(bounds))
    }

    /// Bytes and packets of a service. They are estimates once a packet's service was a guess, or
    /// may be that of another flow.
    pub fn service_amounts(&self, bounds: [Bounds; 2]) -> [Figure; 2] {
        let certain = mistaken_most(self.misnamed(), EXACT) == 0;
        if self.ledger.is_estimated() || (certain && self.ledger.guessed == [0, 0]) {
            return self.amounts(bounds);
        }
        let slack = self.service_slack();
        std::array::from_fn(|i| {
            let Bounds { least, most } = bounds[i];
            let (lower, upper) = (least.saturating_sub(slack[i]), most.saturating_add(slack[i]));
            Figure::estimate(most, lower, upper)
        })
    }

    /// The bytes and packets that may have been counted for the wrong service: those of guesses, and
    /// those of flows mistaken for others, which have no more bytes than the heaviest flow. A packet
    /// has at least 20 bytes.
    pub(super) fn service_slack(&self) -> [u64; 2] {
        let heaviest = self.flows.entries.first().map_or(0, |entry| entry.amounts[0].most);
        let heaviest = heaviest.max(self.flows.others);
        let flows = mistaken_most(self.misnamed(), 0.005);
        let mistaken = [heaviest, heaviest / 20].map(|amount| amount.saturating_mul(flows));
        std::array::from_fn(|i| self.ledger.guessed[i].saturating_add(mistaken[i]))
    }

    /// The expected number of flows whose service is that of another flow.
    fn misnamed(&self) -> f64 {
        self.ledger.misnamed as f64 / 1e9 + self.connections.mistaken
    }

    /// New source addresses.
    pub fn new_addresses(&self) -> Figure {
        self.sources(self.new_sources_total, |_| true)
    }

    /// Subnets with new source addresses.
    pub fn new_subnets(&self) -> Figure {
        self.sources(self.new_subnets, |_| true)
    }

    /// New source addresses of one subnet.
    pub fn new_in(&self, subnet: Subnet, addresses: u32) -> Figure {
        let version = if matches!(subnet, Subnet::V4(_)) { "v4" } else { "v6" };
        self.sources(addresses.into(), |name| name.ends_with(version))
    }

    /// Packets of a host of a selected subnet.
    pub fn watched(&self, packets: u64) -> Figure {
        match times(&self.ledger.refused, "subnet_counts") {
            0 => self.counted(packets),
            _ => Figure::at_least(packets, None),
        }
    }

    /// Connections.
    pub fn connection_figures(&self) -> connections::Figures {
        self.connections.figures()
    }

    /// A count of the addresses in the tables that `is_of` selects by the name of their refusals.
    /// Each refused packet has at most one new address.
    fn sources(&self, count: u64, is_of: impl Fn(&str) -> bool) -> Figure {
        if times(&self.ledger.refused, "known_sources") > 0 || self.ledger.is_estimated() {
            return Figure::unknown(count);
        }
        let is_source = |name: &str| name.contains("sources_v") && is_of(name);
        let refused = self.ledger.refused.iter().filter(|(name, _)| is_source(name));
        let refused = refused.fold(0, |sum: u64, (_, times)| sum.saturating_add(*times));
        Figure::at_least(count, Some(count.saturating_add(refused)))
    }

    /// A count of frames. An exporter that samples reports estimates without a bound.
    fn counted(&self, count: u64) -> Figure {
        match count {
            _ if self.ledger.is_estimated() => Figure::unknown(count),
            u64::MAX => Figure::at_least(count, None),
            _ => Figure::exact(count),
        }
    }

    /// Compares every figure that is not in a list with the exact references.
    pub(super) fn compare(&self, audit: &mut Audit, twin: Option<&connections::Twin>) {
        let [addresses, subnets] = audit.new_sources;
        audit.check("new_sources_total", self.new_addresses(), [addresses; 2]);
        audit.check("new_sources_subnets", self.new_subnets(), [subnets; 2]);
        let Some(twin) = twin else { return };
        let truths = twin.truths();
        let shown = self.connections.figures_at(connections::SURE);
        for (name, figure, truth) in [
            ("total", shown.total, truths.total),
            ("half_open", shown.half_open, truths.half_open),
            ("open", shown.open, truths.open),
            ("came_about", shown.came_about, truths.came_about),
            ("one_way", shown.one_way, truths.one_way),
        ] {
            audit.check(&format!("connections.{name}"), figure, truth);
        }
        for ((name, figure), truth) in OUTCOMES.iter().zip(shown.by_state).zip(truths.by_state) {
            audit.check(&format!("connections.by_state.{name}"), figure, truth);
        }
    }

    /// The certainty of the new source addresses: `exact`, `at_least` or `unknown`.
    pub fn new_sources_certainty(&self) -> &'static str {
        self.new_addresses().kind().name()
    }
}

impl Ledger {
    /// Bytes or packets of a flow, a host or a port.
    pub(crate) fn amount(&self, bounds: Bounds) -> Figure {
        match self.is_estimated() {
            true => Figure::unknown(bounds.most),
            // Amounts beyond 2^64 - 1 are missing.
            false if times(&self.refused, "sizes") > 0 => Figure::at_least(bounds.least, None),
            false => bounds.into(),
        }
    }

    /// Bytes or packets of a service, for a report without the heaviest flow: no bound is known once
    /// a service was a guess or may be that of another flow. `mistaken` connections are expected.
    pub(crate) fn service_amount(&self, bounds: Bounds, mistaken: f64) -> Figure {
        let misnamed = self.misnamed as f64 / 1e9 + mistaken;
        if self.guessed == [0, 0] && mistaken_most(misnamed, EXACT) == 0 {
            return self.amount(bounds);
        }
        Figure::unknown(bounds.most)
    }

    /// Whether an exporter of flow records has sampled packets.
    fn is_estimated(&self) -> bool {
        times(&self.source, "records_estimated") > 0
    }
}

fn times(list: &[(&'static str, u64)], name: &str) -> u64 {
    list.iter().find(|(known, _)| *known == name).map_or(0, |(_, times)| *times)
}
