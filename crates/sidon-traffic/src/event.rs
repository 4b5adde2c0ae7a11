//! Events as JSON lines, in the envelope of Suricata's EVE format.

use crate::{
    FlowKey, Packet,
    flow::protocol,
    monitor::{
        incidents::{Incident, State, kinds, protocol_name},
        sources::Subnet,
    },
    time,
};
use serde_json::{Value, json};
use std::net::IpAddr;

/// The event type of new sources.
pub const NEW_SOURCE: &str = "new_source";
/// The event type of incidents.
const ALARM: &str = "alarm";

/// A new source, or a change of an incident, with its time.
#[derive(Debug, Clone)]
pub struct Event {
    time_ns: u64,
    event_type: &'static str,
    kind: &'static str,
    ends: Ends,
    detail: Value,
}

/// The addresses and ports of the envelope, as far as they are known.
#[derive(Debug, Clone, Default)]
struct Ends {
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    protocol: Option<u8>,
    community_id: Option<String>,
}

impl Event {
    /// A source address was seen for the first time, in this packet.
    pub fn new_source(packet: &Packet) -> Self {
        let source = packet.flow.source();
        let detail = json!({ "address": source, "subnet": Subnet::of(source).to_string() });
        let (time_ns, ends) = (packet.time_ns, Ends::of(packet));
        Event { time_ns, event_type: NEW_SOURCE, kind: NEW_SOURCE, ends, detail }
    }

    /// An incident was opened, updated or closed at time `time_ns`. Its addresses and ports are those
    /// that all of its packets have in common.
    pub(crate) fn incident(time_ns: u64, incident: &Incident, state: State) -> Self {
        let mut detail = incident.to_json();
        detail["state"] = state.name().into();
        // The name of the state before incidents were updated.
        detail["action"] = if state == State::Opened { "raised" } else { state.name() }.into();
        let kind = kinds::number(incident.kind).map_or("", |kind| kinds::KINDS[kind]);
        Event { time_ns, event_type: ALARM, kind, ends: Ends::of_incident(incident), detail }
    }

    /// When it happened, in nanoseconds since 1970.
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// The kind of the incident, or [`NEW_SOURCE`].
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// One object, one line.
    pub fn to_json(&self) -> Value {
        let mut event = json!({
            "timestamp": time::iso8601(self.time_ns),
            "event_type": self.event_type,
        });
        let Ends { source, destination, source_port, destination_port, .. } = self.ends;
        for (name, address) in [("src_ip", source), ("dest_ip", destination)] {
            if let Some(address) = address {
                event[name] = address.to_string().into();
            }
        }
        if let Some(protocol) = self.ends.protocol {
            event["proto"] = protocol_name(protocol).into();
        }
        for (name, port) in [("src_port", source_port), ("dest_port", destination_port)] {
            if let Some(port) = port {
                event[name] = port.into();
            }
        }
        if let Some(id) = &self.ends.community_id {
            event["community_id"] = id.as_str().into();
        }
        event[self.event_type] = self.detail.clone();
        event
    }
}

impl Ends {
    /// Those of a packet.
    fn of(packet: &Packet) -> Self {
        let flow: &FlowKey = &packet.flow;
        let has_ports = protocol::has_ports(flow.protocol());
        Ends {
            source: Some(flow.source()),
            destination: Some(flow.destination()),
            source_port: has_ports.then(|| flow.source_port()),
            destination_port: has_ports.then(|| flow.destination_port()),
            protocol: Some(flow.protocol()),
            community_id: packet.community_id(0),
        }
    }

    /// Those of an incident. A prefix is not an address: it is in the subject alone.
    fn of_incident(incident: &Incident) -> Self {
        let subject = Some(incident.subject).filter(|subject| subject.is_host());
        let subject = subject.map(|host| host.address()).filter(|host| !host.is_unspecified());
        let own = incident.ends;
        let forth = Ends {
            source: subject,
            destination: own.peer,
            source_port: own.subject_port,
            destination_port: own.peer_port,
            protocol: own.protocol,
            community_id: None,
        };
        if incident.is_sender() {
            return forth;
        }
        let Ends { source, destination, source_port, destination_port, .. } = forth;
        Ends {
            source: destination,
            destination: source,
            source_port: destination_port,
            destination_port: source_port,
            ..forth
        }
    }
}
