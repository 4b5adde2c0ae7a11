//! The packets of a scenario, in the order of their times.
//!
//! A heap holds one entry per flow in progress, the time of its next packet first, and one entry per
//! kind of flows, for the next flow. Memory is bounded by the number of flows in progress, which
//! [`size`](super::size) computes before the first packet.

use super::{Flows, Scenario, Script, Step, TooLarge, key};
use crate::{
    FlowKey, Packet,
    flow::protocol,
    generate::Mix,
    packet::{Fragment, Tcp, TcpFlags, Transport, Vlans},
};
use sidon_kit::Rng;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Iterator over the packets of a scenario. Memory holds one entry per flow in progress: at most
/// [`FLOWS_MAX`](super::FLOWS_MAX).
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    scenario: &'a Scenario,
    unit: u64,
    /// What comes next, by time, then in the order of insertion.
    pub(super) next: BinaryHeap<Reverse<(u64, u64, Next)>>,
    order: u64,
    /// One generator per kind of flows.
    rngs: Vec<Rng>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Next {
    /// The index of the flows.
    kind: usize,
    event: Event,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The flow with this number starts, at this active time.
    Start(u64, u64),
    /// This flow sends a packet.
    Packet(FlowKey, Position),
}

/// The position of a packet in the script of its flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    /// Whether the flow fails.
    failed: bool,
    /// The index of the step, and how many packets of it were sent.
    step: u32,
    sent: u32,
    /// How often the body was sent.
    round: u32,
}

impl Position {
    /// The position of the packet after this one.
    fn next(self, script: &Script) -> Option<Position> {
        let Position { step, sent, round, .. } = self;
        if sent + 1 < script.steps[step as usize].repeat {
            return Some(Position { sent: sent + 1, ..self });
        }
        let step = step as usize + 1;
        if step == script.body.end && round + 1 < script.rounds && !script.body.is_empty() {
            let step = script.body.start as u32;
            return Some(Position { step, sent: 0, round: round + 1, ..self });
        }
        let next = Position { step: step as u32, sent: 0, ..self };
        (step < script.steps.len()).then_some(next)
    }
}

impl Flows {
    fn script(&self, failed: bool) -> &Script {
        if failed { &self.failed } else { &self.packets }
    }
}

impl Scenario {
    /// The packets, in the order of their times. Refuses a scenario with more than `most` packets,
    /// or with more than [`FLOWS_MAX`](super::FLOWS_MAX) flows in progress at once.
    pub fn packets(&self, unit: u64, seed: u64, most: u64) -> Result<Packets<'_>, TooLarge> {
        self.check(unit, most)?;
        let mut packets =
            Packets { scenario: self, unit, next: BinaryHeap::new(), order: 0, rngs: Vec::new() };
        for (kind, flows) in self.flows.iter().enumerate() {
            packets.rngs.push(Rng::seeded(seed.wrapping_mul(1_000).wrapping_add(kind as u64)));
            if flows.number.of(unit) > 0 {
                packets.push(flows.starts.time_ns[0], kind, Event::Start(0, 0));
            }
        }
        Ok(packets)
    }
}

impl Packets<'_> {
    fn push(&mut self, time_ns: u64, kind: usize, event: Event) {
        self.order += 1;
        self.next.push(Reverse((time_ns, self.order, Next { kind, event })));
    }

    /// Nanoseconds to wait for a packet of this step.
    fn wait_ns(&mut self, kind: usize, step: &Step) -> u64 {
        let more = match step.jitter_ns {
            0 => 0,
            jitter => self.rngs[kind].below(jitter + 1),
        };
        step.after_ns + more
    }
}

impl Iterator for Packets<'_> {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        loop {
            let Reverse((time_ns, _, Next { kind, event })) = self.next.pop()?;
            let flows = &self.scenario.flows[kind];
            let (flow, at) = match event {
                Event::Packet(flow, at) => (flow, at),
                Event::Start(number, active) => {
                    let (all, more) = (flows.number.of(self.unit), number + 1);
                    let rng = &mut self.rngs[kind];
                    let flow = flows.key(rng, number);
                    let failed = flows.fails > 0.0 && rng.chance(flows.fails);
                    if more < all {
                        let active = flows.starts.next_active_ns(active, more, all, rng);
                        let time_ns = flows.starts.time_ns(active);
                        self.push(time_ns, kind, Event::Start(more, active));
                    }
                    let Some(first) = flows.script(failed).steps.first() else { continue };
                    let at = Position { failed, ..Position::default() };
                    let wait_ns = self.wait_ns(kind, first);
                    if wait_ns > 0 {
                        self.push(time_ns + wait_ns, kind, Event::Packet(flow, at));
                        continue;
                    }
                    (flow, at)
                }
            };
            let script = flows.script(at.failed);
            let step = &script.steps[at.step as usize];
            let packet = packet(flows, flow, step, at.sent, time_ns, &mut self.rngs[kind]);
            if let Some(then) = at.next(script) {
                let wait_ns = self.wait_ns(kind, &script.steps[then.step as usize]);
                self.push(time_ns + wait_ns, kind, Event::Packet(flow, then));
            }
            return Some(packet);
        }
    }
}

/// The packet of a step. `sent` is the number of packets of this step before it.
fn packet(
    flows: &Flows,
    flow: FlowKey,
    step: &Step,
    sent: u32,
    time_ns: u64,
    rng: &mut Rng,
) -> Packet {
    let mut flow = if step.reply { flow.reversed() } else { flow };
    let [least, most] = step.payload;
    let mut payload_len = match most - least {
        0 => least,
        more => least + rng.below(u64::from(more) + 1) as u32,
    };
    let (transport, header) = match (step.fragment, step.icmp, flows.protocol) {
        (Fragment::Later, ..) => (Transport::Other, 0),
        (_, Some([kind, code]), _) => (Transport::Icmp { kind, code }, 8),
        (_, _, protocol::TCP) => {
            let acknowledgement = u32::from(step.flags.has(TcpFlags::ACK));
            (Transport::Tcp(Tcp { sequence: 1, acknowledgement, flags: step.flags }), 20)
        }
        (_, _, protocol::UDP) => (Transport::Ports, 8),
        _ => (Transport::Other, 0),
    };
    if header == 0 && !flows.is_v4 && step.fragment == Fragment::Whole {
        // IPv6 reserves a length of zero for packets whose length is elsewhere.
        payload_len = payload_len.max(1);
    }
    let mut number = flow.protocol();
    if step.icmp.is_some() {
        number = if flows.is_v4 { protocol::ICMP } else { protocol::ICMPV6 };
    }
    let by = step.by.map(|by| by.address(flows.is_v4, rng, sent.into()));
    let has_ports = matches!(transport, Transport::Tcp(_) | Transport::Ports);
    if by.is_some() || number != flow.protocol() || !has_ports {
        let ports = if has_ports { [flow.source_port(), flow.destination_port()] } else { [0; 2] };
        flow = key([by.unwrap_or(flow.source()), flow.destination()], ports, number);
    }
    let network = match (flows.is_v4, step.fragment) {
        (true, _) => 20,
        (false, Fragment::Whole) => 40,
        // The header of the fragment.
        (false, _) => 48,
    };
    let wire_len = (14 + network + header + payload_len).max(60);
    Packet {
        time_ns: Mix::default().start_ns + time_ns,
        flow,
        wire_len,
        captured: wire_len,
        payload_len,
        transport,
        fragment: step.fragment,
        ttl: step.ttl,
        vlans: Vlans::default(),
        tunnels: 0,
    }
}
