//! Events as JSON lines, in the envelope of Suricata's EVE format.

use crate::{
    Packet,
    flow::protocol,
    monitor::{alarms::Alarm, sources::Subnet},
    time,
};
use serde_json::{Value, json};

/// Something that happened at a packet.
#[derive(Debug, Clone)]
pub struct Event {
    packet: Packet,
    kind: &'static str,
    detail: Value,
}

impl Event {
    /// A source address was seen for the first time.
    pub fn new_source(packet: &Packet) -> Self {
        let source = packet.flow.source();
        let detail = json!({ "address": source, "subnet": Subnet::of(source).to_string() });
        Event { packet: *packet, kind: "new_source", detail }
    }

    /// An alarm was raised or, if `raised` is false, closed. `packet` is the last one before that.
    pub fn alarm(packet: &Packet, alarm: &Alarm, raised: bool) -> Self {
        let mut detail = alarm.to_json();
        detail["action"] = if raised { "raised" } else { "closed" }.into();
        Event { packet: *packet, kind: "alarm", detail }
    }

    /// When it happened, in nanoseconds since 1970.
    pub fn time_ns(&self) -> u64 {
        self.packet.time_ns
    }

    /// One object, one line.
    pub fn to_json(&self) -> Value {
        let flow = &self.packet.flow;
        let number = flow.protocol();
        let name = protocol::name(number).map_or_else(|| number.to_string(), str::to_uppercase);
        let mut event = json!({
            "timestamp": time::iso8601(self.packet.time_ns),
            "event_type": self.kind,
            "src_ip": flow.source(),
            "dest_ip": flow.destination(),
            "proto": name,
            "community_id": self.packet.community_id(0),
        });
        if protocol::has_ports(number) {
            event["src_port"] = flow.source_port().into();
            event["dest_port"] = flow.destination_port().into();
        }
        event[self.kind] = self.detail.clone();
        event
    }
}
