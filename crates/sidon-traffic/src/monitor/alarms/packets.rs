//! What a packet means to the detectors: who asked for it, and what its sender tries.
//!
//! | packet | flood at its receiver | scan by its sender |
//! |---|---|---|
//! | SYN of a followed connection | SYN, until it is answered | a try |
//! | SYN+ACK, if the receiver did not send to this host | SYN+ACK | |
//! | RST of a flow of which nothing else was seen | RST | |
//! | other TCP, first of a flow of which nothing was seen | ACK | FIN, Xmas, Null, or ACK without payload |
//! | first UDP packet of a flow | UDP, until it is answered | a try |
//! | UDP from the port of an amplifier, if the receiver did not send to this host | reflection | |
//! | ICMP request; reply or error that nobody caused | ICMP | a try, if a request |
//! | fragment | fragments | |
//! | handshake that completes | idle connections, until the server sends payload or it ends | |

use super::{
    super::{
        connections::{Deed, Verdict},
        contacts::{self, Contacts, Met},
        floods::{Arrival, Class, Excuse, amplifiers},
        p2p::ports,
        scans::{Attempt, Scans, Technique},
        sizes::Host,
    },
    Alarms,
};
use crate::{
    Packet, TcpFlags, Transport,
    batch::Batch,
    flow::protocol::{ICMP, ICMPV6, TCP, UDP},
    packet::Fragment,
};
use sidon::Digest;
use std::net::IpAddr;

/// A packet with its hashes.
struct Seen<'a> {
    packet: &'a Packet,
    now: u64,
    /// The digest of the undirected flow, and whether the sender is its higher end.
    flow: u64,
    is_turned: bool,
    /// Source and destination.
    ends: [Host; 2],
    digests: [Digest; 2],
    hashes: [u32; 2],
    payload: u32,
}

impl Seen<'_> {
    /// The packet as something that arrives at its receiver.
    fn arrival(&self, sends: bool) -> Arrival<'_> {
        Arrival {
            now: self.now,
            flow: &self.packet.flow,
            ends: self.ends,
            hashes: self.hashes,
            sends,
            sampled: false,
            by_scanner: false,
            asked: 1,
            packets: 1,
            bytes: self.packet.wire_len.into(),
            is_first: false,
        }
    }

    /// The packet as a try of its sender.
    fn attempt(&self, technique: Technique) -> Attempt<'_> {
        Attempt {
            now: self.now,
            flow: &self.packet.flow,
            ends: self.ends,
            hashes: self.hashes,
            technique,
            sampled: false,
        }
    }

    /// The hosts of the packet and those of its protocol.
    fn pair(&self, protocol: u8) -> (u64, bool) {
        contacts::pair(self.digests, protocol)
    }
}

/// Whether an address stands for many hosts, or for none.
fn is_group(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_multicast() || v6.is_unspecified(),
    }
}

/// The least payload of a request that a server must answer.
const REQUEST: u32 = 64;
/// The most hops that a probe of traceroute has left. Hosts send with 64 or more.
const HOPS: u8 = 30;
/// Probes of traceroute over UDP.
const TRACEROUTE: std::ops::RangeInclusive<u16> = 33_434..=33_689;

impl Alarms {
    /// Reads one packet of a batch, and the event of its handshake, if there is one.
    pub(super) fn packet(
        &mut self,
        batch: &Batch,
        index: usize,
        verdict: Option<&Verdict>,
        sampled: bool,
    ) {
        let packet = &batch.packets[index];
        let digests = batch.columns.ends[index];
        let seen = Seen {
            packet,
            now: packet.time_ns,
            flow: batch.flows[index].0,
            is_turned: !packet.flow.is_ordered(),
            ends: batch.columns.hosts[index],
            digests,
            hashes: digests.map(|digest| (digest.0 >> 32) as u32),
            payload: packet.payload_len,
        };
        // A record stands for packets that were not seen, at a time that is not theirs.
        let is_packet = !batch.has_weights() && !is_group(packet.flow.destination());
        if is_packet {
            self.contacts.pass(seen.now);
            match packet.flow.protocol() {
                TCP => self.tcp(&seen),
                UDP => self.udp(&seen),
                ICMP | ICMPV6 => self.icmp(&seen),
                _ => {}
            }
            if packet.fragment != Fragment::Whole {
                self.fragment(&seen);
            }
        }
        if let Some(verdict) = verdict {
            self.handshake(&seen, verdict, sampled, is_packet);
        }
    }

    fn handshake(&mut self, seen: &Seen<'_>, verdict: &Verdict, sampled: bool, is_packet: bool) {
        let Alarms { contacts, floods, scans, beacons, forged, list, .. } = self;
        let (now, own) = (seen.now, &seen.packet.flow);
        let flow = if verdict.by_opener { *own } else { own.reversed() };
        let (mut ends, mut hashes, mut digests) = (seen.ends, seen.hashes, seen.digests);
        if !verdict.by_opener {
            ends.reverse();
            hashes.reverse();
            digests.reverse();
        }
        let [_, victim] = ends;
        let port = flow.destination_port();
        let technique = Technique::Syn;
        let attempt = Attempt { now, flow: &flow, ends, hashes, technique, sampled };
        let forged = &mut forged[usize::from(!flow.is_v4())];
        let sends = contacts.has_sent(digests[1]);
        let arrival = Arrival {
            sampled,
            packets: 0,
            bytes: 0,
            flow: &flow,
            ends,
            hashes,
            ..seen.arrival(sends)
        };
        let mut excuse = |excuse| floods.excuse(Class::Syn, excuse, &victim, port, now);
        match verdict.what {
            Deed::Opened => {
                if forged.ask(&flow, hashes, now) {
                    list.example(forged.alarm(), now, &flow);
                }
                if is_packet {
                    beacons.contact(&flow, now);
                }
                let by_scanner = !verdict.is_evidence || scans.is_scanner(&attempt);
                if verdict.is_evidence {
                    let arrival = Arrival { by_scanner, ..arrival };
                    if floods.arrive(Class::Syn, &arrival) {
                        scans.skip();
                        return;
                    }
                }
                scans.try_at(&attempt);
            }
            Deed::Confirmed => {
                forged.confirm(&flow);
                scans.settle(&attempt, true);
                if verdict.answered {
                    excuse(Excuse::Answered);
                    if is_packet {
                        floods.arrive(Class::Idle, &arrival);
                    }
                } else {
                    excuse(Excuse::OneWay);
                }
            }
            Deed::Refused => {
                excuse(Excuse::Refused);
                scans.settle(&attempt, false);
            }
            Deed::Aborted => {
                excuse(Excuse::Answered);
                match verdict.answered {
                    true => scans.abort(&attempt),
                    false => scans.settle(&attempt, false),
                }
            }
        }
    }

    fn tcp(&mut self, seen: &Seen<'_>) {
        let Alarms { contacts, floods, scans, .. } = self;
        let Transport::Tcp(tcp) = seen.packet.transport else { return };
        let (flags, flow) = (tcp.flags, &seen.packet.flow);
        let [source, victim] = &seen.ends;
        let has = |flag| flags.has(flag);
        let is_reset = has(TcpFlags::RST);
        let (pair, is_turned) = seen.pair(TCP);
        // A host that only resets has not agreed to anything.
        let hosts = contacts.meet_hosts(pair, is_turned, !is_reset);
        let met = contacts.meet(seen.flow, seen.is_turned, !is_reset);
        if !hosts.forward && !is_reset {
            contacts.sends(seen.digests[0]);
        }
        let sends = |contacts: &Contacts| contacts.has_sent(seen.digests[1]);
        if is_reset || has(TcpFlags::FIN) {
            // The end of a connection that got nothing from its server.
            if !contacts.has_payload(seen.flow, !seen.is_turned) {
                let port = flow.destination_port();
                floods.excuse(Class::Idle, Excuse::Answered, victim, port, seen.now);
            }
            if is_reset && !contacts.has_payload(seen.flow, seen.is_turned) {
                let port = flow.source_port();
                floods.excuse(Class::Idle, Excuse::Answered, source, port, seen.now);
            }
        }
        if is_reset {
            if !hosts.back && !met.forward && !met.back {
                floods.arrive(Class::Rst, &seen.arrival(sends(contacts)));
            }
            return;
        }
        if has(TcpFlags::SYN) {
            if has(TcpFlags::ACK) {
                if !hosts.back {
                    floods.arrive(Class::SynAck, &seen.arrival(sends(contacts)));
                }
            } else if met.forward {
                let port = flow.destination_port();
                floods.excuse(Class::Syn, Excuse::Again, victim, port, seen.now);
            }
            return;
        }
        if seen.payload > 0 && contacts.is_first_payload(seen.flow, seen.is_turned) {
            // The server has something to say, so the connection is in use.
            let port = flow.source_port();
            floods.excuse(Class::Idle, Excuse::Answered, source, port, seen.now);
            if !hosts.back {
                contacts.note_one_way();
                floods.excuse(Class::SynAck, Excuse::Backing, victim, 0, seen.now);
            }
            // So has its client, unless it sends a few bytes of a request to keep it waiting.
            if seen.payload >= REQUEST {
                let port = flow.destination_port();
                floods.excuse(Class::Idle, Excuse::Answered, victim, port, seen.now);
            }
        } else if !hosts.back && contacts.has_payload(seen.flow, seen.is_turned) {
            // It goes on after its request, as forged packets do not.
            let port = flow.destination_port();
            floods.excuse(Class::Syn, Excuse::Backing, victim, port, seen.now);
        }
        let odd = odd(flags);
        match met {
            Met { forward: false, back: false } => {
                let mut by_scanner = false;
                let is_bare = flags == TcpFlags::ACK && seen.payload == 0;
                if let Some(technique) = odd.or(is_bare.then_some(Technique::Ack)) {
                    by_scanner = scans.try_at(&seen.attempt(technique));
                }
                if !hosts.back {
                    let arrival = Arrival { by_scanner, ..seen.arrival(sends(contacts)) };
                    floods.arrive(Class::Ack, &arrival);
                }
            }
            Met { forward: false, back: true } => {
                floods.excuse(Class::Ack, Excuse::Answered, source, flow.source_port(), seen.now);
                answer(scans, seen, Technique::Ack);
            }
            // A connection from the middle, of which the capture has one direction.
            Met { forward: true, back: false } if !hosts.back && odd.is_none() => {
                scans.settle(&seen.attempt(Technique::Ack), true);
            }
            Met { .. } => {}
        }
    }

    fn udp(&mut self, seen: &Seen<'_>) {
        let Alarms { contacts, floods, scans, beacons, .. } = self;
        if seen.packet.fragment == Fragment::Later {
            return;
        }
        let flow = &seen.packet.flow;
        let [from, to] = [flow.source_port(), flow.destination_port()];
        let (pair, is_turned) = seen.pair(UDP);
        let hosts = contacts.meet_hosts(pair, is_turned, true);
        let met = contacts.meet(seen.flow, seen.is_turned, true);
        if !hosts.forward {
            contacts.sends(seen.digests[0]);
        }
        let is_new = !met.forward && !met.back;
        if met.forward && !met.back && !contacts.is_first_payload(seen.flow, seen.is_turned) {
            // The third datagram of a flow: a stream, and no probe.
            scans.settle(&seen.attempt(Technique::Udp), true);
        }
        if !met.forward && met.back {
            floods.excuse(Class::Udp, Excuse::Answered, &seen.ends[0], from, seen.now);
            answer(scans, seen, Technique::Udp);
        }
        // A server's answer whose question was not captured is no try.
        let amplifies = amplifiers::name(from).is_some();
        let is_reply = (ports::is_registered(from) || amplifies) && !ports::is_registered(to);
        let is_trace = TRACEROUTE.contains(&to) || seen.packet.ttl <= HOPS;
        let is_try = is_new && !is_reply && !is_trace;
        let attempt = seen.attempt(Technique::Udp);
        let mut attacked = false;
        if !met.back && (is_new || !hosts.back) {
            let by_scanner = is_try && scans.is_scanner(&attempt);
            let sends = contacts.has_sent(seen.digests[1]);
            let arrival = Arrival { by_scanner, ..seen.arrival(sends) };
            // A question from the port of the service to the port of the service is no answer.
            if amplifies && !hosts.back && from != to {
                attacked = floods.arrive(Class::Reflection, &arrival);
            } else if !amplifiers::is_collector(to) || (is_new && seen.flow.is_multiple_of(16)) {
                let asked = u32::from(is_new);
                attacked = floods.arrive(Class::Udp, &Arrival { asked, ..arrival });
            }
        }
        if is_try && !attacked {
            beacons.contact(flow, seen.now);
            scans.try_at(&attempt);
        }
    }

    fn icmp(&mut self, seen: &Seen<'_>) {
        let Alarms { contacts, floods, scans, .. } = self;
        let Transport::Icmp { kind, .. } = seen.packet.transport else { return };
        let is_v4 = seen.packet.flow.is_v4();
        let message = Message::of(kind, is_v4);
        let (pair, is_turned) = seen.pair(ICMP);
        let hosts = match message {
            Message::Link => return,
            Message::Error => contacts.meet_hosts(pair, is_turned, false),
            _ => contacts.meet_hosts(pair, is_turned, true),
        };
        if !hosts.forward && message != Message::Error {
            contacts.sends(seen.digests[0]);
        }
        let sends = contacts.has_sent(seen.digests[1]);
        let mut by_scanner = false;
        match message {
            Message::Request => {
                if !hosts.forward && !hosts.back {
                    by_scanner = scans.try_at(&seen.attempt(Technique::Icmp));
                }
            }
            Message::Reply => {
                if hosts.back {
                    floods.excuse(Class::Icmp, Excuse::Answered, &seen.ends[0], 0, seen.now);
                    if !hosts.forward {
                        answer(scans, seen, Technique::Icmp);
                    }
                    return;
                }
                if !sends && !contacts.is_two_way() {
                    return;
                }
            }
            Message::Error => {
                // A host that sends gets errors, also from routers. One that does not has its address
                // forged by others.
                if sends || !contacts.is_two_way() {
                    return;
                }
            }
            Message::Link => return,
        }
        floods.arrive(Class::Icmp, &Arrival { by_scanner, ..seen.arrival(sends) });
    }

    fn fragment(&mut self, seen: &Seen<'_>) {
        let is_first = seen.packet.fragment == Fragment::First;
        let sends = self.contacts.has_sent(seen.digests[1]);
        self.floods.arrive(Class::Fragment, &Arrival { is_first, ..seen.arrival(sends) });
    }
}

/// Notes that a packet answers the try of its receiver.
fn answer(scans: &mut Scans, seen: &Seen<'_>, technique: Technique) {
    let flow = seen.packet.flow.reversed();
    let [source, victim] = seen.ends;
    let [one, other] = seen.hashes;
    let attempt = Attempt {
        flow: &flow,
        ends: [victim, source],
        hashes: [other, one],
        ..seen.attempt(technique)
    };
    scans.settle(&attempt, true);
}

/// The technique of flags that no TCP sends by itself.
fn odd(flags: TcpFlags) -> Option<Technique> {
    let xmas = TcpFlags::FIN.with(TcpFlags::PSH).with(TcpFlags::URG);
    // The flags of congestion are not part of a technique.
    match TcpFlags(flags.0 & 0x3f) {
        TcpFlags(0) => Some(Technique::Null),
        TcpFlags::FIN => Some(Technique::Fin),
        flags if flags == xmas => Some(Technique::Xmas),
        _ => None,
    }
}

/// The meaning of an ICMP type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Message {
    /// It asks for a reply.
    Request,
    /// It answers a request.
    Reply,
    /// It reports a fault of another packet.
    Error,
    /// It manages a link: neighbours, routers, groups.
    Link,
}

impl Message {
    fn of(kind: u8, is_v4: bool) -> Self {
        match (is_v4, kind) {
            (true, 0 | 14 | 16 | 18) | (false, 129 | 140) => Message::Reply,
            (true, 3 | 4 | 5 | 11 | 12) | (false, 1..=4) => Message::Error,
            (true, 9 | 10) | (false, 130..=138 | 141..=153) => Message::Link,
            _ => Message::Request,
        }
    }
}
