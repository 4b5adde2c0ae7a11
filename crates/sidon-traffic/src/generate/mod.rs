//! Traffic from a seed: the same packets on every machine, as fast as they can be looked at.
//!
//! A fixed number of conversations is under way at a time. One of them is picked, sends a packet
//! or a burst, and makes room for a new one when it is over. Conversations are TCP from handshake
//! to close, DNS, peers that speak TCP and UDP to strangers, pings, and a scanner that knocks at
//! one address after the other. Their sizes follow Zipf's law: of `n` conversations the one of
//! rank `r` carries about `(n / r)^z` packets of data. On top there may be a [`Flood`].
//!
//! ```text
//! seed -> new conversations -> | slot | slot | .. active .. | -> pick, burst -> Packet
//!                                              forged sources -> SYN ---------^
//! ```
//! Memory is the slots alone. [`write_pcap`] turns packets into frames with right lengths and
//! checksums; decoded again they are the same packets.

mod conversation;
mod frame;

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

/// What the traffic is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// How many packets in all.
    pub packets: u64,
    /// Packets per second of the capture's own time, without the flood.
    pub rate: u64,
    /// When the first one is sent, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Hosts of the network, from 10.0.0.1 on.
    pub clients: u32,
    /// Hosts outside that they ask, the first most often.
    pub servers: u32,
    /// Conversations under way at a time.
    pub active: u32,
    /// How unequal conversations are: the exponent of their sizes by rank.
    pub zipf: f64,
    /// Packets of data that a conversation carries at most.
    pub largest: u32,
    /// Of a hundred conversations, how many are over IPv6. Scans and floods are not.
    pub ipv6: u32,
    /// What conversations are about.
    pub shares: Shares,
    /// A flood on top.
    pub flood: Option<Flood>,
}

/// How many of new conversations are of each sort, in parts of their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// TCP to servers.
    pub web: u32,
    /// Questions to a resolver.
    pub dns: u32,
    /// Peers: TCP and UDP between a few hosts and many strangers.
    pub peers: u32,
    /// Echo requests.
    pub ping: u32,
    /// One address after the other, by one stranger.
    pub scan: u32,
}

/// A SYN flood from forged addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flood {
    /// From how many addresses; each sends one packet.
    pub sources: u64,
    /// To whom.
    pub victim: SocketAddrV4,
    /// After how many packets it starts.
    pub after: u64,
    /// Of a hundred packets while it lasts, how many are the flood's.
    pub share: u32,
    /// Of a hundred forged packets, how many the victim still answers.
    pub answered: u32,
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
        Flood { sources: 10_000_000, victim, after: 0, share: 90, answered: 10 }
    }
}

/// The address of the one that scans.
pub const SCANNER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 66);

/// Packets of a mix, one after the other.
#[derive(Debug, Clone)]
pub struct Generator {
    mix: Mix,
    rng: Rng,
    world: World,
    slots: Vec<Conversation>,
    /// Who is sending, and how many packets more.
    sender: usize,
    burst: u32,
    made: u64,
    time_ns: u64,
    /// Nanoseconds between packets, on the average.
    gap_ns: u64,
    flood: Option<Forger>,
}

/// A flood under way.
#[derive(Debug, Clone)]
struct Forger {
    flood: Flood,
    /// Nanoseconds between packets while it lasts: the background keeps its pace.
    gap_ns: u64,
    sent: u64,
    next: u32,
    step: u32,
    /// The SYN that the victim answers next, and its sequence number.
    answer: Option<(FlowKey, u32)>,
}

impl Generator {
    /// The traffic of this mix and seed.
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
            // An odd step visits every address once before any comes twice.
            step: rng.next_u64() as u32 | 1,
            answer: None,
        });
        let time_ns = mix.start_ns;
        let (sender, burst, made) = (0, 0, 0);
        Ok(Generator { mix, rng, world, slots, sender, burst, made, time_ns, gap_ns, flood })
    }

    /// The mix that it makes.
    pub fn mix(&self) -> &Mix {
        &self.mix
    }

    /// Lets the time to the next packet pass, as long as `lot` says, and says whether that packet
    /// is the flood's.
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
        // One draw for the gap and the size.
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
    let within = |name, got: f64, least: f64, most: f64| {
        if (least..=most).contains(&got) {
            return Ok(());
        }
        Err(Infeasible::Parameter { name, got, least, most })
    };
    let Shares { web, dns, peers, ping, scan } = mix.shares;
    let sum = [web, dns, peers, ping, scan].map(u64::from).iter().sum::<u64>();
    within("rate", mix.rate as f64, 1.0, 1e9)?;
    // Until the year 2106, what a pcap file can hold.
    within("start_ns", mix.start_ns as f64, 0.0, 4.2e18)?;
    within("clients", f64::from(mix.clients), 1.0, f64::from(1 << 24) - 2.0)?;
    within("servers", f64::from(mix.servers), 1.0, f64::from(1 << 17))?;
    within("active", f64::from(mix.active), 1.0, f64::from(1 << 24))?;
    within("zipf", mix.zipf, 0.0, 2.0)?;
    within("largest", f64::from(mix.largest), 1.0, f64::from(1 << 30))?;
    within("ipv6", f64::from(mix.ipv6), 0.0, 100.0)?;
    within("sum of shares", sum as f64, 1.0, f64::from(u32::MAX))?;
    if let Some(flood) = mix.flood {
        within("sources", flood.sources as f64, 0.0, f64::from(u32::MAX) + 1.0)?;
        within("share", f64::from(flood.share), 0.0, 100.0)?;
        within("answered", f64::from(flood.answered), 0.0, 100.0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
