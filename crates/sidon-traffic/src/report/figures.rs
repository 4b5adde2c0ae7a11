//! The figures of a report: each count with its certainty.

use super::Report;
use crate::{
    audit::{Audit, Services},
    figure::{Figure, Kind},
    flow_map::{EXACT, mistaken_most},
    ledger::{Ledger, times},
    monitor::{
        connections::{self, OUTCOMES},
        incidents::Incident,
        p2p::Suspect,
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
        if self.crossing {
            // A flow in two parts may have another first sender, and so another service, in each.
            return bounds.map(|bounds| Figure::unknown(bounds.most));
        }
        let is_named = certain && self.ledger.guessed == [0, 0];
        if is_named || self.ledger.loss() != Loss::None {
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
    /// those of flows mistaken for others, which have no more bytes than the heaviest flow.
    pub fn service_slack(&self) -> [u64; 2] {
        let heaviest = self.flows.entries.first().map_or(0, |entry| entry.amounts[0].most);
        let heaviest = heaviest.max(self.flows.others);
        let flows = mistaken_most(self.misnamed(), 0.005);
        let mistaken = [heaviest, self.ledger.decoded].map(|amount| amount.saturating_mul(flows));
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
        let (version, size) = match subnet {
            Subnet::V4(_) => ("v4", 256),
            Subnet::V6(_) => ("v6", u64::MAX),
        };
        let figure = self.sources(addresses.into(), |name| name.ends_with(version));
        match figure.kind() {
            Kind::AtLeast => {
                let most = figure.most().unwrap_or(u64::MAX).min(size);
                Figure::at_least(figure.least(), Some(most).filter(|most| *most < u64::MAX))
            }
            _ => figure,
        }
    }

    /// Packets of a host of a selected subnet.
    pub fn watched(&self, packets: u64) -> Figure {
        match times(&self.ledger.refused, "subnet_counts") {
            0 => self.counted(packets),
            _ => Figure::at_least(packets, None),
        }
    }

    /// Connections. Flow records do not tell when a connection began and ended, and lost packets
    /// change any count.
    pub fn connection_figures(&self) -> connections::Figures {
        let figures = self.connections.figures();
        let is_inferred = times(&self.ledger.source, "records") > 0;
        if is_inferred || self.ledger.loss() != Loss::None {
            return figures.map(|figure| Figure::unknown(figure.value()));
        }
        figures
    }

    /// A count of the addresses in the tables that `is_of` selects by the name of their refusals.
    /// Each refused packet has at most one new address.
    fn sources(&self, count: u64, is_of: impl Fn(&str) -> bool) -> Figure {
        let loss = self.ledger.loss();
        if times(&self.ledger.refused, "known_sources") > 0 || loss == Loss::Sampled {
            return Figure::unknown(count);
        }
        if loss == Loss::Lost {
            return Figure::at_least(count, None);
        }
        let is_source = |name: &str| name.contains("sources_v") && is_of(name);
        let refused = self.ledger.refused.iter().filter(|(name, _)| is_source(name));
        let refused = refused.fold(0, |sum: u64, (_, times)| sum.saturating_add(*times));
        Figure::at_least(count, Some(count.saturating_add(refused)))
    }

    /// A count of frames. An exporter that samples reports estimates without a bound.
    fn counted(&self, count: u64) -> Figure {
        match self.ledger.loss() {
            Loss::Sampled => Figure::unknown(count),
            Loss::Lost => Figure::at_least(count, None),
            Loss::None => Figure::exact(count),
        }
    }

    /// Turns the evidence of alarms into estimates if a connection may have been mistaken for
    /// another. If the source lost or sampled packets, turns the evidence of alarms and P2P-like
    /// hosts into lower bounds, and the counts of machines into unknown numbers.
    pub(super) fn weaken(&mut self) {
        let (loss, mistaken) = (self.ledger.loss(), self.connections.mistaken);
        self.alarms.iter_mut().for_each(|incident| loss.weaken(incident, mistaken));
        if loss == Loss::None {
            return;
        }
        let hosts = std::mem::take(&mut self.p2p);
        self.p2p = hosts.into_iter().map(Suspect::at_least).collect();
        for machine in &mut self.machines {
            machine.is_inferred = true;
        }
    }

    /// Compares every figure that is not in a list with the exact references.
    pub(super) fn compare(
        &self,
        audit: &mut Audit,
        services: Option<&Services>,
        twin: Option<&connections::Twin>,
    ) {
        let [addresses, subnets] = audit.new_sources;
        audit.check("new_sources_total", self.new_addresses(), [addresses; 2]);
        audit.check("new_sources_subnets", self.new_subnets(), [subnets; 2]);
        if let Some(reference) = services {
            let listed = self.ports.entries.iter();
            let listed = listed.map(|entry| (&entry.key, self.service_amounts(entry.amounts)));
            audit.check_services(reference, listed, self.ports.others);
        }
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
        match self.loss() {
            Loss::Sampled => Figure::unknown(bounds.most),
            Loss::Lost => Figure::at_least(bounds.least, None),
            Loss::None => bounds.into(),
        }
    }

    /// Bytes or packets of a service, for an answer without the heaviest flow: no bound is known once
    /// a service was a guess or may be that of another flow. `mistaken` connections are expected.
    pub(crate) fn service_amount(&self, bounds: Bounds, mistaken: f64) -> Figure {
        let misnamed = self.misnamed as f64 / 1e9 + mistaken;
        if self.guessed == [0, 0] && mistaken_most(misnamed, EXACT) == 0 {
            return self.amount(bounds);
        }
        Figure::unknown(bounds.most)
    }

    /// What the source did not deliver.
    pub(crate) fn loss(&self) -> Loss {
        const LOST: [&str; 8] = [
            "datagrams_of_refused_exporters",
            "kernel_dropped",
            "records_lost",
            "records_unexplained",
            "datagrams_lost",
            "datagrams_malformed",
            "sets_given_up",
            "sets_not_understood",
        ];
        if times(&self.source, "records_estimated") > 0 {
            return Loss::Sampled;
        }
        let is_lost = LOST.iter().any(|name| times(&self.source, name) > 0);
        if is_lost { Loss::Lost } else { Loss::None }
    }
}

/// Packets that passed the link and were not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// As far as the source knows, all were delivered.
    None,
    /// Some were lost: counts are lower bounds.
    Lost,
    /// An exporter sampled packets: counts are its estimates.
    Sampled,
}

impl Loss {
    /// Turns exact evidence into estimates if one of the `mistaken` expected connections may have
    /// changed it, and into lower bounds after a loss.
    pub(crate) fn weaken(self, incident: &mut Incident, mistaken: f64) {
        if mistaken_most(mistaken, EXACT) > 0 {
            incident.widen(mistaken_most(mistaken, 0.005).saturating_mul(3));
        }
        if self != Loss::None {
            incident.weaken();
        }
    }
}
