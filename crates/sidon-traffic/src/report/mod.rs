//! The results of a run, each with its certainty.

mod figures;
mod json;
mod part;

use figures::Loss;
pub(crate) use part::{Part, most_first};

use crate::{
    FlowKey, Snapshot,
    audit::Audit,
    ledger::Ledger,
    monitor::{
        connections::Counts,
        incidents::{Incident, KINDS, kinds},
        machine,
        p2p::Suspect,
        sizes::{Host, Port},
        sources::Subnet,
        subnet::HostPackets,
    },
};
use sidon::count::{Ranking, Stored};

/// The results after the last packet.
#[derive(Debug, Clone)]
pub struct Report {
    /// Counts of frames by result.
    pub ledger: Ledger,
    /// The memory budget of the tables, in bytes.
    pub budget: u64,
    /// The bytes that the tables allocated.
    pub allocated: u64,
    /// The times of the first and the last packet; `None` without packets.
    pub times: Option<(u64, u64)>,
    /// The heaviest flows, by bytes.
    pub flows: Ranking<FlowKey, 2>,
    /// The heaviest hosts, by bytes.
    pub hosts: Ranking<Host, 2>,
    /// The heaviest ports, by bytes.
    pub ports: Ranking<Port, 2>,
    /// The number of flows, hosts and ports that the tables keep.
    pub kept: [u64; 3],
    /// Subnets by their number of new source addresses, most first, at most [`SUBNETS_LISTED`].
    pub new_sources: Vec<(Subnet, u32)>,
    /// The number of subnets with new source addresses.
    pub new_subnets: u64,
    /// The number of new source addresses.
    pub new_sources_total: u64,
    /// Exact packet counts of the hosts of each selected subnet.
    pub subnets: Vec<(String, Vec<HostPackets>)>,
    /// TCP connections by outcome, and the number that are half open.
    pub connections: Counts,
    /// The probability, after the last packet, that a packet of a new connection matches another's
    /// cell.
    pub stranger_rate: f64,
    /// Incidents: the most severe first, floods before scans, each by time.
    pub alarms: Vec<Incident>,
    /// The number of further incidents that are not listed. The ledger has them by kind.
    pub alarms_unlisted: u64,
    /// Incidents that the user allows, by rule.
    pub incidents_allowed: Vec<(String, u64)>,
    /// Incidents that were ever listed, by kind.
    pub alarms_raised: [u64; KINDS.len()],
    /// P2P-like hosts, the highest score first.
    pub p2p: Vec<Suspect>,
    /// Counts of user-defined machines.
    pub machines: Vec<machine::Counts>,
    /// The number of engines whose states are merged here.
    pub engines: u64,
    /// Whether two of these engines can have counted packets of the same flow.
    pub crossing: bool,
    /// The results of the exact references, if they ran.
    pub audit: Option<Audit>,
}

/// The most subnets with new addresses in a report. A flood from forged addresses adds one subnet
/// per address, and this limit bounds the memory of a report.
pub const SUBNETS_LISTED: usize = 1000;

/// The report on a state whose shards gave these parts.
pub(crate) fn of(state: &Snapshot, parts: Vec<Part>) -> Report {
    let mut ledger = state.ledger.clone();
    for (name, times) in parts.iter().flat_map(|part| part.refused) {
        ledger.refused(name, times);
    }
    let counts = state.connections.counts();
    ledger.refused("connections", counts.refused);
    ledger.refused("connections_unsampled", counts.sampling.unsampled);
    ledger.dont_know("connections", counts.dont_know);
    let unlisted = state.alarms.unlisted();
    for &(kind, times) in unlisted {
        ledger.refused(kinds::unlisted(kind), times);
    }
    let audits = parts.iter().filter_map(|part| part.audit.clone());
    let audit = audits
        .reduce(|all, audit| all.with(&audit))
        .map(|audit| audit.and_connections(state.connections.twin()))
        .map(|audit| Audit { p2p: state.peers_audit.unwrap_or_default(), ..audit });
    let new_subnets = parts.iter().map(|part| part.new_subnets).sum();
    let new_sources_total = parts.iter().map(|part| part.new_addresses).sum();
    let lists = parts.iter().flat_map(|part| &part.new_sources);
    let mut new_sources: Vec<_> = lists.copied().collect();
    new_sources.sort_unstable_by_key(most_first);
    new_sources.truncate(SUBNETS_LISTED);
    let top = state.settings.top;
    let mut report = Report {
        ledger,
        budget: state.settings.memory,
        allocated: state.allocated,
        times: state.times(),
        flows: heaviest(parts.iter().map(|part| &part.flows), top),
        hosts: heaviest(parts.iter().map(|part| &part.hosts), top),
        ports: heaviest(parts.iter().map(|part| &part.ports), top),
        kept: std::array::from_fn(|table| parts.iter().map(|part| part.kept[table]).sum()),
        new_sources,
        new_subnets,
        new_sources_total,
        subnets: state.subnets.iter().map(|one| (one.network().to_string(), one.list())).collect(),
        alarms: state.alarms.listed(),
        alarms_unlisted: unlisted.iter().fold(0, |sum: u64, (_, n)| sum.saturating_add(*n)),
        incidents_allowed: state.alarms.allowed().to_vec(),
        alarms_raised: state.alarms.raised(),
        connections: counts,
        stranger_rate: state.connections.stranger_rate(),
        audit,
        engines: state.engines,
        crossing: state.crossing,
        p2p: state.peers.clone(),
        machines: state.machines.clone(),
    };
    report.weaken();
    let [slack, _] = report.service_slack();
    if report.crossing {
        (report.ports.leading, report.ports.complete) = (0, 0);
    } else if slack > 0 {
        report.ports = with_slack(report.ports, slack);
    }
    if report.ledger.loss() != Loss::None {
        for (leading, complete) in [
            (&mut report.flows.leading, &mut report.flows.complete),
            (&mut report.hosts.leading, &mut report.hosts.complete),
            (&mut report.ports.leading, &mut report.ports.complete),
        ] {
            (*leading, *complete) = (0, 0);
        }
    }
    if let Some(mut audit) = report.audit.take() {
        report.compare(&mut audit, state.services_audit.as_ref(), state.connections.twin());
        report.audit = Some(audit);
    }
    report
}

/// A list whose amounts may be wrong by `slack`: fewer of its entries are certainly the heaviest.
fn with_slack<K: Stored>(ranking: Ranking<K, 2>, slack: u64) -> Ranking<K, 2> {
    let mut wide = ranking.entries.clone();
    for entry in &mut wide {
        let [bytes, _] = &mut entry.amounts;
        bytes.least = bytes.least.saturating_sub(slack);
        bytes.most = bytes.most.saturating_add(slack);
    }
    let count = wide.len();
    let others = ranking.others.saturating_add(slack);
    Ranking { entries: ranking.entries, ..Ranking::of(wide, others, count) }
}

/// The heaviest keys of rankings without common keys. Equal amounts are ordered by key.
fn heaviest<'a, K: Stored + Ord + 'a>(
    rankings: impl Iterator<Item = &'a Ranking<K, 2>>,
    count: usize,
) -> Ranking<K, 2> {
    let (mut entries, mut others) = (Vec::new(), 0);
    for ranking in rankings {
        entries.extend_from_slice(&ranking.entries);
        others = others.max(ranking.others);
    }
    entries.sort_by_key(|entry| entry.key);
    Ranking::of(entries, others, count)
}

#[cfg(test)]
mod tests {
    use crate::{
        Decoder, Engine, Filter, Generator, Mix, Packet, Settings, Snapshot,
        budget::Budget,
        generate::Flood,
        monitor::{
            connections::OUTCOMES,
            sizes::{self, Sizes},
        },
    };
    use sidon::Seed;

    const LITTLE: u64 = 1 << 20;
    const MUCH: u64 = 16 << 20;

    fn packets(mix: Mix) -> impl Iterator<Item = Packet> {
        Generator::new(mix, 7).unwrap()
    }

    fn watched(memory: u64, packets: impl IntoIterator<Item = Packet>) -> Snapshot {
        let settings = Settings { memory, audit: true, ..Settings::new(Seed(1)) };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        for packet in packets {
            engine.packet(&packet);
        }
        engine.snapshot()
    }

    fn flood(sources: u64) -> Mix {
        let victim = "10.0.0.1:443".parse().unwrap();
        let flood = Flood { sources, victim, after: 10_000, share: 90, answered: 10, every: 0 };
        Mix { packets: 40_000 + sources, flood: Some(flood), ..Mix::default() }
    }

    /// The rows that the audit of a snapshot names.
    fn rows(snapshot: &Snapshot) -> Vec<String> {
        let audit = snapshot.report().audit.unwrap();
        assert_eq!(audit.violations() == 0, audit.rows.is_empty());
        audit.rows
    }

    /// So few connections are confused with a chance below one in a million.
    fn few() -> Snapshot {
        watched(MUCH, packets(Mix { packets: 800, ..Mix::default() }))
    }

    #[test]
    fn the_audit_finds_each_monitor_that_is_broken() {
        assert_eq!(rows(&few()), [""; 0]);

        let mut broken = few();
        let budget = Budget::of(MUCH).unwrap();
        broken.shards[0].sizes = Sizes::new(&budget, Seed(1)).unwrap();
        let found = rows(&broken);
        for table in ["flow ", "host "] {
            assert!(found.iter().any(|row| row.starts_with(table)), "{table}: {found:?}");
        }

        // A service whose packets were counted for another one.
        let mut broken = few();
        let reference = broken.services_audit.as_mut().unwrap();
        let dns = reference.ports.remove(&sizes::port(17, 53)).unwrap();
        reference.ports.insert(sizes::port(17, 40_000), dns);
        let found = rows(&broken);
        for row in ["service 53/udp bytes: shown ", "service 40000/udp: not listed, truth "] {
            assert!(found.iter().any(|found| found.starts_with(row)), "{row}: {found:?}");
        }

        let mut broken = few();
        broken.shards[3].sources.new -= 1;
        let found = rows(&broken);
        assert!(
            found.len() == 1 && found[0].starts_with("new_sources_total: shown = "),
            "{found:?}"
        );

        for (outcome, name) in OUTCOMES.iter().enumerate() {
            let mut broken = few();
            broken.connections.distort(|counts| counts.by_state[outcome] += 1);
            let found = rows(&broken);
            let expected = format!("connections.by_state.{name}: shown = ");
            assert!(found.iter().any(|row| row.starts_with(&expected)), "{found:?}");
            assert!(found[0].starts_with("connections.total: "), "{found:?}");
        }
        let mut broken = few();
        broken.connections.distort(|counts| counts.came_about += 1);
        assert!(rows(&broken)[0].starts_with("connections.came_about: "));
    }

    #[test]
    fn the_audit_is_right_when_time_steps_back() {
        let forth = |index: usize| match index % 1_000 {
            // A clock that was set wrong for a while: an hour ahead, then an hour behind.
            300..400 => 3_600_000_000_000i64,
            600..700 => -3_600_000_000_000,
            // And small steps back, as of two queues of one interface.
            n if n % 7 == 0 => -40_000_000,
            _ => 0,
        };
        let all = packets(Mix { packets: 60_000, ..Mix::default() }).enumerate();
        let stepping = all.map(|(index, packet)| Packet {
            time_ns: packet.time_ns.saturating_add_signed(forth(index)),
            ..packet
        });
        assert_eq!(rows(&watched(LITTLE, stepping)), [""; 0]);
    }

    #[test]
    fn floods_beyond_the_tables_leave_no_figure_wrong() {
        // The map of connections has about 52,000 cells, the table of sources about 14,000.
        for sources in [5_000, 16_000, 52_000, 156_000] {
            let snapshot = watched(LITTLE, packets(flood(sources)));
            assert_eq!(rows(&snapshot), [""; 0], "{sources}");
            let figures = snapshot.report().connection_figures();
            assert_eq!(figures.total.kind().mark(), "~", "{sources}");
        }
        let figures = few().report().connection_figures();
        assert_eq!(figures.total.kind().mark(), "=");
        assert!(figures.total.value() > 40);
    }
}
