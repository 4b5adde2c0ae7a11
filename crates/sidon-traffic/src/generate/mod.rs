//! Generates traffic from a seed: the same packets on every machine.
//!
//! A fixed number of conversations is in progress at a time. The generator picks one of them, which
//! sends a packet or a burst. A new conversation replaces one that has ended.
//!
//! Conversations are TCP from handshake to close, DNS, P2P over TCP and UDP with outside hosts,
//! pings, and a scanner that tries one address after the other. Their sizes follow Zipf's law: of
//! `n` conversations the one of rank `r` carries about `(n / r)^z` data packets. A [`Flood`] can be
//! added.
//!
//! ```text
//! seed -> new conversations -> | slot | slot | .. active .. | -> pick, burst -> Packet
//!                                              forged sources -> SYN ---------^
//! ```
//! Memory holds only the slots. [`write_pcap`] turns packets into frames with right lengths and
//! checksums, which decode to the same packets.

mod conversation;
mod frame;
pub mod scenario;

pub use frame::{write_frame, write_pcap};

use crate::{
    FlowKey, Packet,
    flow::protocol,
    packet::{Fragment, Tcp, TcpFlags, Transport, Vlans},
};
use conversation::{Conversation, World};
use sidon::Infeasible;
use sidon_kit::Rng;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// The settings of the generated traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Number of packets in all.
    pub packets: u64,
    /// Packets per second of simulated time, without the flood.
    pub rate: u64,
    /// Time of the first packet in nanoseconds since 1970.
    pub start_ns: u64,
    /// Number of hosts of the network; the first is 10.0.0.1.
    pub clients: u32,
    /// Number of servers outside the network; the first is the most popular.
    pub servers: u32,
    /// Conversations in progress at a time.
    pub active: u32,
    /// The inequality of conversations: the exponent of their sizes by rank.
    pub zipf: f64,
    /// Most data packets of a conversation.
    pub largest: u32,
    /// Percentage of conversations over IPv6. Scans and floods use IPv4.
    pub ipv6: u32,
    /// The kinds of conversations.
    pub shares: Shares,
    /// A flood in addition.
    pub flood: Option<Flood>,
}

/// Weights of the kinds of new conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// TCP to servers.
    pub web: u32,
    /// Queries to a resolver.
    pub dns: u32,
    /// P2P: TCP and UDP between a few hosts and many outside hosts.
    pub peers: u32,
    /// Echo requests.
    pub ping: u32,
    /// Probes of one address after the other, by one outside host.
    pub scan: u32,
}

/// A SYN flood from forged addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flood {
    /// Number of forged source addresses; each sends one packet.
    pub sources: u64,
    /// The address and port under attack.
    pub victim: SocketAddrV4,
    /// Number of packets before the flood starts.
    pub after: u64,
    /// Percentage of packets that belong to the flood while it lasts.
    pub share: u32,
    /// Percentage of forged SYNs that the victim still answers.
    pub answered: u32,
    /// Packets from one start of the flood to the next; 0 for a single flood.
    pub every: u64,
}

/// An office: a thousand hosts, mostly web and DNS, some peers, no scan and no flood.
impl Default for Mix {
    fn default() -> Self {
        Mix {
            packets: 1_000_000,
            rate: 100_000,
            start_ns: 1_700_000_000_000_000_000,
            clients: 1_000,
            servers: 10_000,
            active: 1_024,
            zipf: 0.9,
            largest: 1_000_000,
            ipv6: 10,
            shares: Shares { web: 50, dns: 40, peers: 8, ping: 2, scan: 0 },
            flood: None,
        }
    }
}

impl Default for Flood {
    /// Ten million sources at the first server's port 443, nine packets of ten, from the start.
    fn default() -> Self {
        let victim = SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 0), 443);
        Flood { sources: 10_000_000, victim, after: 0, share: 90, answered: 10, every: 0 }
    }
}

/// The scanner's address.
pub const SCANNER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 66);

/// Iterator over the packets of a mix.
#[derive(Debug, Clone)]
pub struct Generator {
    mix: Mix,
    rng: Rng,
    world: World,
    slots: Vec<Conversation>,
    /// The slot that is sending, and the packets left in its burst.
    sender: usize,
    burst: u32,
    made: u64,
    time_ns: u64,
    /// Average nanoseconds between packets.
    gap_ns: u64,
    flood: Option<Forger>,
}

/// A flood in progress.
#[derive(Debug, Clone)]
struct Forger {
    flood: Flood,
    /// Nanoseconds between packets while the flood lasts, so that the background keeps its rate.
    gap_ns: u64,
    sent: u64,
    next: u32,
    step: u32,
    /// The flow of the SYN that the victim answers next, and its sequence number.
    answer: Option<(FlowKey, u32)>,
}

impl Generator {
    /// The traffic of `mix` and `seed`.
    pub fn new(mix: Mix, seed: u64) -> Result<Self, Infeasible> {
        check(&mix)?;
        let mut rng = Rng::seeded(seed);
        let mut world = World::new(&mix);
        let slots = (0..mix.active).map(|_| world.open(&mix, &mut rng)).collect();
        let gap_ns = (1_000_000_000 / mix.rate).max(1);
        let flood = mix.flood.map(|flood| Forger {
            flood,
            gap_ns: (gap_ns * u64::from(100 - flood.share.min(99)) / 100).max(1),
            sent: 0,
            next: rng.next_u64() as u32,
            // An odd step visits every address once before it repeats any.
            step: rng.next_u64() as u32 | 1,
            answer: None,
        });
        let time_ns = mix.start_ns;
        let (sender, burst, made) = (0, 0, 0);
        Ok(Generator { mix, rng, world, slots, sender, burst, made, time_ns, gap_ns, flood })
    }

    /// The mix that is generated.
    pub fn mix(&self) -> &Mix {
        &self.mix
    }

    /// Advances the clock to the next packet by a gap that `lot` selects. Returns whether that
    /// packet belongs to the flood.
    #[inline]
    fn pass_time(&mut self, lot: u32) -> bool {
        let flooding = self.flood.as_ref().filter(|forger| {
            let over = forger.sent == forger.flood.sources && forger.answer.is_none();
            self.made >= forger.flood.after && !over
        });
        let (gap_ns, share) =
            flooding.map_or((self.gap_ns, 0), |forger| (forger.gap_ns, forger.flood.share));
        // Gaps are of at most a second, so the product fits.
        self.time_ns += gap_ns / 2 + ((u64::from(lot) * gap_ns) >> 32);
        share > 0 && self.rng.below(100) < u64::from(share)
    }

    /// The flood's next packet.
    #[inline]
    fn forged(&mut self) -> Option<Packet> {
        let forger = self.flood.as_mut()?;
        let Flood { victim, answered, .. } = forger.flood;
        let sequence = self.rng.next_u64() as u32;
        let (flow, flags, acknowledgement) = match forger.answer.take() {
            Some((flow, opened)) => {
                (flow.reversed(), TcpFlags::SYN.with(TcpFlags::ACK), opened.wrapping_add(1))
            }
            None => {
                forger.sent += 1;
                forger.next = forger.next.wrapping_add(forger.step);
                let port = 1024 + self.rng.below(64_000) as u16;
                let source = forger.next.to_be_bytes();
                let ports = [port, victim.port()];
                let flow = FlowKey::v4(source, victim.ip().octets(), ports, protocol::TCP);
                if self.rng.below(100) < u64::from(answered) {
                    forger.answer = Some((flow, sequence));
                }
                (flow, TcpFlags::SYN, 0)
            }
        };
        let Flood { sources, after, every, .. } = forger.flood;
        if forger.sent == sources && forger.answer.is_none() && every > 0 {
            forger.flood.after = after.saturating_add(every).max(self.made);
            forger.sent = 0;
        }
        let tcp = Tcp { sequence, acknowledgement, flags };
        Some(Packet {
            time_ns: self.time_ns,
            flow,
            wire_len: 60,
            captured: 60,
            payload_len: 0,
            transport: Transport::Tcp(tcp),
            fragment: Fragment::Whole,
            ttl: 40 + (sequence >> 28) as u8,
            vlans: Vlans::default(),
            tunnels: 0,
        })
    }
}

impl Iterator for Generator {
    type Item = Packet;

    #[inline]
    fn next(&mut self) -> Option<Packet> {
        if self.made == self.mix.packets {
            return None;
        }
        // One random number for both the gap and the size.
        let lots = self.rng.next_u64();
        let (lot, flood) = (lots as u32, self.pass_time((lots >> 32) as u32));
        self.made += 1;
        if flood {
            return self.forged();
        }
        if self.burst == 0 {
            self.sender = self.rng.below(self.slots.len() as u64) as usize;
            self.burst = self.slots[self.sender].burst();
        }
        self.burst -= 1;
        let slot = &mut self.slots[self.sender];
        let packet = slot.step(self.time_ns, lot);
        if slot.is_over() {
            *slot = self.world.open(&self.mix, &mut self.rng);
            self.burst = 0;
        }
        Some(packet)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.mix.packets - self.made).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

fn check(mix: &Mix) -> Result<(), Infeasible> {
    let within = |name, got: u64, least: u64, most: u64| {
        if (least..=most).contains(&got) {
            return Ok(());
        }
        Err(Infeasible::OutOfRange { name, got, least, most })
    };
    let Shares { web, dns, peers, ping, scan } = mix.shares;
    let sum = [web, dns, peers, ping, scan].map(u64::from).iter().sum::<u64>();
    within("rate", mix.rate, 1, 1_000_000_000)?;
    // The year 2106 is the last that a pcap file can hold.
    within("start_ns", mix.start_ns, 0, 4_200_000_000_000_000_000)?;
    within("clients", mix.clients.into(), 1, (1 << 24) - 2)?;
    within("servers", mix.servers.into(), 1, 1 << 17)?;
    within("active", mix.active.into(), 1, 1 << 24)?;
    if !(0.0..=2.0).contains(&mix.zipf) {
        let (name, got) = ("zipf", mix.zipf);
        return Err(Infeasible::Rate { name, got, least: 0.0, most: 2.0 });
    }
    within("largest", mix.largest.into(), 1, 1 << 30)?;
    within("ipv6", mix.ipv6.into(), 0, 100)?;
    within("sum of shares", sum, 1, u32::MAX.into())?;
    if let Some(flood) = mix.flood {
        within("sources", flood.sources, 0, 1 << 32)?;
        within("share", flood.share.into(), 0, 100)?;
        within("answered", flood.answered.into(), 0, 100)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
