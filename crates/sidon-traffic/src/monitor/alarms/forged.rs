//! SYNs with addresses that no host can have: their sender forges addresses.
//!
//! Multicast addresses and unassigned ranges are never the source or destination of a valid SYN. A
//! sender that draws addresses at random hits these ranges in proportion to their size. The SYNs
//! seen there therefore give an estimate of all forged SYNs.
//! ```text
//! IPv4:  0/8  127/8  224/4  240/4               34 of 256 addresses, 1 - (1 - 34/256)^2 of pairs
//! IPv6:  ::  ::1  ff00::/8, 6000:: to fbff::   157 of 256
//! ```
//! The alarm needs ten such SYNs, all with different sources and different destinations. Programs
//! that connect to one multicast group share the destination, and a scanner of all addresses has
//! one source: neither raises the alarm. A flood at one victim has its own alarm.
//!
//! If a network uses these ranges after all, its connections complete. The alarm therefore requires
//! that at most one in nine of these SYNs completes a handshake. A flow with both ends on the
//! loopback is valid.

use super::{Alarm, HOLDS, List, SECOND};
use crate::FlowKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The time in which SYNs count, and the time without one after which the alarm closes.
const WINDOW: u64 = 60 * SECOND;
/// The number of SYNs that raise an alarm.
const LEAST: usize = 10;
/// The shares of all IPv4 and IPv6 addresses that no host can have.
const SHARES: [f64; 2] = [34.0 / 256.0, 157.0 / 256.0];

/// The SYNs of one IP version.
#[derive(Debug, Clone)]
pub(super) struct Forged {
    /// Hashes of source and destination, with no source and no destination twice.
    known: [[u32; 2]; LEAST],
    used: u8,
    start: u64,
    last: u64,
    since: Option<u64>,
    alarm: Option<usize>,
    /// The first SYN with an impossible address.
    example: Option<FlowKey>,
    /// Connections opened, by all sources.
    attempts: u64,
    /// SYNs with a source or destination that no host can have.
    impossible: u64,
    /// Impossible sources, and impossible destinations.
    ends: [u64; 2],
    /// Connections with an impossible address that completed.
    confirmed: u64,
}

impl Forged {
    /// No SYN counted yet.
    pub(super) const fn new(now: u64) -> Self {
        Forged {
            known: [[0; 2]; LEAST],
            used: 0,
            start: now,
            last: now,
            since: None,
            alarm: None,
            example: None,
            attempts: 0,
            impossible: 0,
            ends: [0; 2],
            confirmed: 0,
        }
    }

    /// Counts the SYN of a flow. `ends` are the hashes of its source and destination.
    pub(super) fn ask(&mut self, flow: &FlowKey, ends: [u32; 2], now: u64) {
        let idle = self.alarm.is_none() && self.since.is_none();
        if idle && now.saturating_sub(self.start) >= WINDOW {
            *self = Forged::new(now);
        }
        self.attempts += 1;
        let Some(which) = impossible(flow) else { return };
        self.last = now;
        self.impossible += 1;
        self.example.get_or_insert(*flow);
        for (count, is_so) in self.ends.iter_mut().zip(which) {
            *count += u64::from(is_so);
        }
        let used = usize::from(self.used);
        let is_new = |known: &[u32; 2]| known[0] != ends[0] && known[1] != ends[1];
        if used < LEAST && self.known[..used].iter().all(is_new) {
            self.known[used] = ends;
            self.used += 1;
        }
        if self.since.is_none() && self.holds() {
            self.since = Some(now);
        }
    }

    /// Counts a connection that completed.
    pub(super) fn confirm(&mut self, flow: &FlowKey) {
        self.confirmed += u64::from(impossible(flow).is_some());
    }

    fn holds(&self) -> bool {
        usize::from(self.used) == LEAST && self.confirmed.saturating_mul(9) <= self.impossible
    }

    pub(super) fn look(&mut self, now: u64, over: bool, list: &mut List) {
        if let Some(index) = self.alarm {
            list.show(index, self.evidence());
            if now.saturating_sub(self.last) >= WINDOW {
                list.close(index, now);
                *self = Forged::new(now);
            }
            return;
        }
        let (Some(since), Some(example)) = (self.since, &self.example) else { return };
        if !self.holds() {
            self.since = None;
        } else if over || now >= since.saturating_add(HOLDS) {
            self.alarm = list.raise(self.raised(example, since));
        }
    }

    fn raised(&self, example: &FlowKey, opened: u64) -> Alarm {
        let from = example.source();
        let to = SocketAddr::new(example.destination(), example.destination_port());
        // The alarm has neither an attacker nor a victim that can be named.
        let (subject, filter) = match from {
            IpAddr::V4(_) => (
                Ipv4Addr::UNSPECIFIED.into(),
                "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn \
                 and (net 0.0.0.0/8 or net 127.0.0.0/8 or net 224.0.0.0/3) \
                 and not (src net 127.0.0.0/8 and dst net 127.0.0.0/8)",
            ),
            IpAddr::V6(_) => (
                Ipv6Addr::UNSPECIFIED.into(),
                "ip6 proto 6 and ip6[53] & 0x12 == 0x02 \
                 and (net ::/127 or net 6000::/3 or net 8000::/2 or net c000::/3 or net e000::/4 \
                 or net f000::/5 or net f800::/6 or net ff00::/8) \
                 and not (src host ::1 and dst host ::1)",
            ),
        };
        Alarm {
            kind: "forged_syns",
            subject,
            text: format!(
                "forged SYNs at no single victim, e.g. {from} > {to}: MAC or state-table flooding"
            ),
            opened,
            closed: None,
            evidence: self.evidence(),
            filter: filter.to_owned(),
        }
    }

    fn evidence(&self) -> Vec<(&'static str, u64)> {
        let about = self.about();
        vec![("attempts", self.attempts), ("impossible", self.impossible), ("forged_about", about)]
    }

    /// An estimate of the number of forged SYNs, if their addresses are drawn uniformly. At most
    /// the number of SYNs seen.
    fn about(&self) -> u64 {
        let is_v6 = self.example.is_some_and(|flow| !flow.is_v4());
        let share = SHARES[usize::from(is_v6)];
        let [most, least] = [self.ends[0].max(self.ends[1]), self.ends[0].min(self.ends[1])];
        // If one end is rarely impossible, only the other end is drawn at random.
        let about = if least < most / 2 {
            most as f64 / share
        } else {
            self.impossible as f64 / (1.0 - (1.0 - share) * (1.0 - share))
        };
        (about.round() as u64).min(self.attempts)
    }
}

/// Whether source and destination are impossible addresses; `None` if both are possible.
fn impossible(flow: &FlowKey) -> Option<[bool; 2]> {
    let ends = [flow.source(), flow.destination()];
    let which = ends.map(|address| match address {
        IpAddr::V4(address) => matches!(address.octets()[0], 0 | 127 | 224..),
        IpAddr::V6(address) => {
            matches!(address.octets()[0], 0x60..=0xfb | 0xff) || address.to_bits() <= 1
        }
    });
    let by_itself = || ends.iter().all(IpAddr::is_loopback);
    (which != [false; 2] && !by_itself()).then_some(which)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(source: [u8; 4], destination: [u8; 4]) -> FlowKey {
        FlowKey::v4(source, destination, [1024, 80], 6)
    }

    fn v6(source: &str, destination: &str) -> FlowKey {
        let [source, destination] =
            [source, destination].map(|text| text.parse::<Ipv6Addr>().unwrap().octets());
        FlowKey::v6(source, destination, [1024, 80], 6)
    }

    #[test]
    fn the_shares_are_those_of_the_ranges() {
        let of_256 = |is_so: &dyn Fn(u8) -> bool| (0..=255).filter(|byte| is_so(*byte)).count();
        let v4_share = of_256(&|byte| impossible(&v4([byte, 1, 2, 3], [9, 9, 9, 9])).is_some());
        let v6_share = of_256(&|byte| {
            let source = Ipv6Addr::from([byte; 16]).octets();
            impossible(&FlowKey::v6(source, [0x20; 16], [1024, 80], 6)).is_some()
        });
        // Byte 0 gives `::`, a single address: its share is 0.
        assert_eq!([v4_share, v6_share - 1], SHARES.map(|share| (share * 256.0) as usize));
    }

    #[test]
    fn what_a_host_has_and_what_none_has() {
        for (flow, expected) in [
            (v4([10, 0, 0, 1], [192, 0, 2, 1]), None),
            (v4([169, 254, 0, 1], [223, 255, 255, 255]), None),
            (v4([1, 0, 0, 0], [126, 0, 0, 1]), None),
            (v4([127, 0, 0, 1], [127, 0, 0, 1]), None),
            (v4([127, 0, 0, 1], [127, 3, 2, 1]), None),
            (v4([127, 0, 0, 1], [10, 0, 0, 1]), Some([true, false])),
            (v4([10, 0, 0, 1], [224, 0, 0, 1]), Some([false, true])),
            (v4([0, 0, 0, 0], [255, 255, 255, 255]), Some([true, true])),
            (v6("2001:db8::1", "fe80::1"), None),
            (v6("fd00::1", "64:ff9b::1"), None),
            (v6("200::1", "5f00::1"), None),
            (v6("::1", "::1"), None),
            (v6("::1", "2001:db8::1"), Some([true, false])),
            (v6("2001:db8::1", "::"), Some([false, true])),
            (v6("ff02::1", "6000::1"), Some([true, true])),
        ] {
            assert_eq!(impossible(&flow), expected, "{flow:?}");
        }
    }

    #[test]
    fn how_many_are_forged_is_told_by_which_ends_are_impossible() {
        let about = |attempts, impossible, ends| {
            let example = Some(v4([240, 0, 0, 1], [10, 0, 0, 1]));
            Forged { attempts, impossible, ends, example, ..Forged::new(0) }.about()
        };
        // Both ends drawn: 1 - (222/256)^2 of the pairs, 16,252 of 65,536.
        assert_eq!(about(1_000_000, 16_252, [8_704, 8_704]), 65_536);
        // Only sources drawn, or only destinations: 34 of 256.
        assert_eq!(about(1_000_000, 3_400, [3_400, 0]), 25_600);
        assert_eq!(about(1_000_000, 3_401, [1, 3_400]), 25_600);
        // The estimate is limited to the number of SYNs seen.
        assert_eq!(about(100, 39, [20, 23]), 100);
    }
}
