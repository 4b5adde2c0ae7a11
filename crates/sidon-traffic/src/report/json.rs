//! The report as one JSON object, described in `docs/WATCH.md`.

use super::Report;
use crate::{
    Figure,
    audit::{Audit, Peers},
    ledger::Ledger,
    monitor::{
        connections::{Figures, OUTCOMES},
        incidents::Incident,
        p2p::Suspect,
        services::RULES,
        sizes,
        subnet::HostPackets,
    },
    time,
};
use serde_json::{Value, json};
use sidon::count::{Bounds, Ranking};

/// The version of the object. Fields are added within a version, never renamed or removed.
const SCHEMA: u32 = 1;

impl Report {
    /// The report as one JSON object. Beside a figure `x`, the field `x_figure` has its kind and
    /// interval.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "schema": SCHEMA,
            "first": self.times.map(|(first, _)| time::iso8601(first)),
            "last": self.times.map(|(_, last)| time::iso8601(last)),
            "engines": self.engines,
            "ledger": self.ledger_json(),
            "memory": { "budget": self.budget, "allocated": self.allocated },
            "top_flows": self.rows(&self.flows, Report::amounts, |key| json!({
                "key": key.two_way(),
                "community_id": key.community_id(0, None),
            })),
            "top_flows_complete": self.flows.complete,
            "top_flows_kept": self.kept[0],
            "top_hosts": self.rows(&self.hosts, Report::amounts, |key| json!({ "key": sizes::address(*key) })),
            "top_hosts_complete": self.hosts.complete,
            "top_hosts_kept": self.kept[1],
            "top_ports": self.rows(&self.ports, Report::service_amounts, |key| {
                json!({ "key": sizes::port_name(*key) })
            }),
            "top_ports_complete": self.ports.complete,
            "top_ports_kept": self.kept[2],
            "new_sources_certainty": self.new_sources_certainty(),
            "connections": self.connections_json(),
            "incidents": self.alarms.iter().map(Incident::to_json).collect::<Value>(),
            "incidents_allowed": self.incidents_allowed.iter().map(|(rule, times)| {
                json!({ "allow": rule, "incidents": times })
            }).collect::<Value>(),
            "alarms": self.alarms.iter().map(Incident::to_alarm_json).collect::<Value>(),
            "alarms_unlisted": self.alarms_unlisted,
            "machines": {},
            "p2p": self.p2p.iter().map(Suspect::to_json).collect::<Value>(),
        });
        self.packets().set(&mut json, "packets");
        self.bytes().set(&mut json, "bytes");
        self.decoded().set(&mut json, "decoded");
        self.new_addresses().set(&mut json, "new_sources_total");
        self.new_subnets().set(&mut json, "new_sources_subnets");
        let sources = self.new_sources.iter().map(|(subnet, count)| {
            let mut row = json!({ "subnet": subnet.to_string() });
            self.new_in(*subnet, *count).set(&mut row, "count");
            row
        });
        json["new_sources"] = sources.collect();
        for counts in &self.machines {
            json["machines"][&counts.name] = counts.to_json();
        }
        if !self.subnets.is_empty() {
            let subnets = self.subnets.iter().map(|(subnet, hosts)| self.hosts_json(subnet, hosts));
            json["subnets"] = subnets.collect();
        }
        if self.engines > 1 {
            json["totals"] = totals();
        }
        if let Some(audit) = &self.audit {
            json["audit"] = audit_json(audit);
        }
        json
    }

    fn ledger_json(&self) -> Value {
        let Ledger { seen, filtered, behind_tag, decoded, .. } = self.ledger;
        let list = |list: &[(&'static str, u64)]| -> Value {
            list.iter().map(|&(name, times)| (name.to_owned(), Value::from(times))).collect()
        };
        let mut json = json!({
            "seen": seen,
            "filtered": filtered,
            "filtered_behind_vlan_tag": behind_tag,
            "undecoded": list(&self.ledger.undecoded),
            "decoded": decoded,
            "balance": i64::try_from(self.ledger.balance()).unwrap_or(i64::MAX),
            "refused": list(&self.ledger.refused),
            "dont_know": list(&self.ledger.dont_know),
            "guessed": { "bytes": self.ledger.guessed[0], "packets": self.ledger.guessed[1] },
            "late": self.ledger.late,
            "late_seconds": self.ledger.late_ns as f64 / 1e9,
            "time_jumps": self.ledger.time_jumps,
            "time_steps": self.ledger.time_steps,
            "services": RULES
                .into_iter()
                .zip(self.ledger.services)
                .map(|(rule, packets)| (rule.to_owned(), Value::from(packets)))
                .collect::<Value>(),
        });
        if !self.ledger.source.is_empty() {
            json["source"] = list(&self.ledger.source);
        }
        json
    }

    fn connections_json(&self) -> Value {
        let figures = self.connection_figures();
        let Figures { total, by_state, present, half_open, peak_half_open, .. } = figures;
        let Figures { open, came_about, one_way, dont_know, .. } = figures;
        let mut json = json!({
            "one_way_capture": self.connections.is_one_way(),
            "in_both": self.connections.in_both,
            "stranger_rate": self.stranger_rate,
        });
        for (name, figure) in [
            ("total", total),
            ("half_open", half_open),
            ("peak_half_open", peak_half_open),
            ("open", open),
            ("came_about", came_about),
            ("one_way", one_way),
            ("dont_know", dont_know),
        ] {
            figure.set(&mut json, name);
        }
        for (name, figures) in [("by_state", by_state), ("present_by_state", present)] {
            let states = || OUTCOMES.iter().zip(&figures);
            let each = |of: fn(&Figure) -> Value| -> Value {
                states().map(|(state, figure)| (state.to_string(), of(figure))).collect()
            };
            json[name] = each(|figure| figure.value().into());
            json[format!("{name}_figure")] = each(Figure::to_json);
        }
        let sampling = &self.connections.sampling;
        if let Some(since) = sampling.since {
            let interval = |figure: Figure| json!([figure.least(), figure.most()]);
            let states = OUTCOMES.iter().zip(by_state);
            json["sampling"] = json!({
                "one_in": 1u64 << sampling.level,
                "one_in_most": 1u64 << sampling.highest,
                "since": time::iso8601(since),
                "unsampled_packets": sampling.unsampled,
                "intervals_99": {
                    "by_state": states
                        .map(|(name, figure)| (name.to_string(), interval(figure)))
                        .collect::<Value>(),
                    "half_open": interval(half_open),
                    "open": interval(open),
                    "came_about": interval(came_about),
                    "one_way": interval(one_way),
                },
            });
        }
        json
    }

    fn hosts_json(&self, subnet: &str, hosts: &[HostPackets]) -> Value {
        let figure = |packets| self.watched(packets);
        let hosts = hosts.iter().map(|(address, sent, received)| {
            let mut host = json!({ "host": address });
            figure(*sent).set(&mut host, "sent");
            figure(*received).set(&mut host, "received");
            host
        });
        let certainty = figure(0).kind().name();
        json!({ "subnet": subnet, "certainty": certainty, "hosts": hosts.collect::<Value>() })
    }

    fn rows<K>(
        &self,
        ranking: &Ranking<K, 2>,
        amounts: fn(&Report, [Bounds; 2]) -> [Figure; 2],
        name: impl Fn(&K) -> Value,
    ) -> Value {
        let rows = ranking.entries.iter().map(|entry| {
            let [bytes, packets] = amounts(self, entry.amounts);
            let mut row = name(&entry.key);
            bytes.set(&mut row, "bytes");
            packets.set(&mut row, "packets");
            row["certainty"] = bytes.kind().name().into();
            row["lower"] = bytes.least().into();
            row["packets_lower"] = packets.least().into();
            row
        });
        rows.collect()
    }
}

/// How the figures of several merged engines follow from those of each.
fn totals() -> Value {
    json!({
        "sum": ["packets", "bytes", "decoded", "ledger", "top_flows", "top_hosts", "top_ports",
                "connections.total", "connections.by_state", "connections.came_about",
                "connections.one_way", "connections.dont_know", "machines", "subnets"],
        "union": ["new_sources", "new_sources_total", "new_sources_subnets", "alarms"],
        "maximum": ["connections.peak_half_open", "p2p"],
        "end": ["machines.*.states.*.now", "connections.half_open", "connections.open", "connections.present_by_state"],
    })
}

fn audit_json(audit: &Audit) -> Value {
    let mut json = json!({ "violations": audit.violations(), "rows": audit.rows });
    for (name, finding) in audit.parts() {
        json[name] = json!({
            "keys": finding.keys,
            "violations": finding.violations,
            "exact": finding.exact,
            "listed": finding.listed,
            "mean_excess": finding.mean_excess,
        });
    }
    let (states, connections) = (&audit.states, &mut json["connections"]);
    connections["answers"] = states.answers.into();
    connections["dont_knows"] = states.dont_knows.into();
    connections["mistaken"] = states.mistaken.into();
    let Peers { exact, missing, extra } = audit.p2p;
    json["p2p"] = json!({ "exact": exact, "missing": missing, "extra": extra });
    json
}
