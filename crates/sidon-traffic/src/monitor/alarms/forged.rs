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

use super::{HOLDS, SECOND};
use crate::{
    Figure, FlowKey,
    flow::protocol,
    monitor::incidents::{Ends, Evidence, Finding, List, count, estimate, kinds},
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::Malformed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The time in which SYNs count, and the time without one after which the alarm closes.
pub(super) const WINDOW: u64 = 60 * SECOND;
/// The number of SYNs that raise an alarm.
const LEAST: usize = 10;
/// The shares of all IPv4 and IPv6 addresses that no host can have.
const SHARES: [f64; 2] = [34.0 / 256.0, 157.0 / 256.0];
/// The half width of an interval, in standard deviations.
const WIDTH: f64 = 2.0;

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

    /// Counts the SYN of a flow. `ends` are the hashes of its source and destination. Returns whether an
    /// address is impossible.
    pub(super) fn ask(&mut self, flow: &FlowKey, ends: [u32; 2], now: u64) -> bool {
        let idle = self.alarm.is_none() && self.since.is_none();
        if idle && now.saturating_sub(self.start) >= WINDOW {
            *self = Forged::new(now);
        }
        self.attempts += 1;
        let Some(which) = impossible(flow) else { return false };
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
        true
    }

    /// Counts a connection that completed.
    pub(super) fn confirm(&mut self, flow: &FlowKey) {
        self.confirmed += u64::from(impossible(flow).is_some());
    }

    fn holds(&self) -> bool {
        usize::from(self.used) == LEAST && self.confirmed.saturating_mul(9) <= self.impossible
    }

    pub(super) fn look(&mut self, now: u64, over: bool, followed: bool, list: &mut List) {
        if let Some(index) = self.alarm {
            if now.saturating_sub(self.last) >= WINDOW {
                list.show(self.alarm, || self.evidence(followed));
                list.close(index, now);
                *self = Forged::new(now);
            } else {
                list.update(self.alarm, self.last, self.impossible);
            }
            return;
        }
        let (Some(since), Some(example)) = (self.since, &self.example) else { return };
        if !self.holds() {
            self.since = None;
        } else if over || now >= since.saturating_add(HOLDS) {
            self.alarm = list.raise(self.raised(example, since, followed));
        }
    }

    fn raised(&self, example: &FlowKey, opened: u64, followed: bool) -> Finding {
        let from = example.source();
        let to = SocketAddr::new(example.destination(), example.destination_port());
        // The alarm has neither an attacker nor a victim that can be named.
        let (subject, filter) = match from {
            IpAddr::V4(_) => (
                IpAddr::from(Ipv4Addr::UNSPECIFIED),
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
        Finding {
            kind: kinds::FORGED_SYNS,
            subject: subject.into(),
            ends: Ends { protocol: Some(protocol::TCP), ..Ends::default() },
            text: format!(
                "forged SYNs at no single victim, e.g. {from} > {to}: MAC or state-table flooding"
            ),
            filter: filter.to_owned(),
            opened,
            size: self.impossible,
            least: LEAST as u64,
            evidence: self.evidence(followed),
        }
    }

    /// The number of its open alarm.
    pub(super) fn alarm(&self) -> Option<usize> {
        self.alarm
    }

    pub(super) fn evidence(&self, followed: bool) -> Evidence {
        let attempts = count(self.attempts, followed);
        vec![
            ("attempts", attempts),
            ("impossible", count(self.impossible, followed)),
            ("forged_about", estimate(self.about(), attempts, followed)),
        ]
    }

    /// An estimate of the number of forged SYNs, if their addresses are drawn uniformly. At most
    /// the number of SYNs seen.
    fn about(&self) -> Figure {
        let is_v6 = self.example.is_some_and(|flow| !flow.is_v4());
        let share = SHARES[usize::from(is_v6)];
        let of_pairs = 1.0 - (1.0 - share) * (1.0 - share);
        let [most, least] = [self.ends[0].max(self.ends[1]), self.ends[0].min(self.ends[1])];
        let by_pairs = interval(self.impossible as f64, of_pairs);
        let by_one_end = interval(most as f64, share);
        // If one end is rarely impossible, only the other end is drawn at random. Two ends drawn
        // alike differ by at most two standard deviations of their difference; while they do, the
        // interval holds for either.
        let (value, interval) = if least >= most / 2 {
            (self.impossible as f64 / of_pairs, by_pairs)
        } else if (most - least) as f64 > WIDTH * ((most + least) as f64).sqrt() {
            (most as f64 / share, by_one_end)
        } else {
            let either = [by_pairs[0].min(by_one_end[0]), by_pairs[1].max(by_one_end[1])];
            (most as f64 / share, either)
        };
        let seen = |number: f64| (number as u64).clamp(self.impossible, self.attempts);
        let [least, most] = interval;
        Figure::estimate(seen(value.round()), seen(least.floor()), seen(most.ceil()))
    }
}

impl Resume for Forged {
    fn save(&self, out: &mut Out) {
        let Forged { start, last, since, alarm, example, attempts, impossible, .. } = *self;
        out.numbers(&[start, last, attempts, impossible, self.ends[0], self.ends[1]]);
        out.number(self.confirmed);
        out.optional(since);
        out.optional(alarm.map(|number| number as u64));
        out.flag(example.is_some());
        if let Some(example) = example {
            out.flow(example);
        }
        out.number(self.used.into());
        let known = &self.known[..usize::from(self.used)];
        known.iter().for_each(|ends| out.numbers(&ends.map(u64::from)));
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        [self.start, self.last] = bytes.numbers()?;
        [self.attempts, self.impossible, self.ends[0], self.ends[1], self.confirmed] =
            bytes.counts("attempts")?;
        let is_part = self.ends.iter().all(|&ends| ends <= self.impossible);
        bytes.check("impossible", is_part && self.impossible <= self.attempts)?;
        (self.since, self.alarm) = (bytes.optional("since")?, super::read_alarm(bytes)?);
        self.example = if bytes.flag("example")? { Some(bytes.flow("example")?) } else { None };
        self.used = bytes.below("used", LEAST + 1)? as u8;
        for end in self.known[..usize::from(self.used)].as_flattened_mut() {
            *end = bytes.below("known", 1 << 32)? as u32;
        }
        Ok(())
    }
}

/// The interval of `n`, if each of `n` SYNs is impossible with probability `share` and `hits` are.
/// Its ends are those `n` whose mean is [`WIDTH`] standard deviations from `hits` (Wilson).
fn interval(hits: f64, share: f64) -> [f64; 2] {
    let spread = WIDTH * WIDTH * (1.0 - share);
    let half = (spread * hits + spread * spread / 4.0).sqrt();
    [-half, half].map(|half| (hits + spread / 2.0 + half) / share)
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

    fn about(attempts: u64, impossible: u64, ends: [u64; 2]) -> Figure {
        let example = Some(v4([240, 0, 0, 1], [10, 0, 0, 1]));
        Forged { attempts, impossible, ends, example, ..Forged::new(0) }.about()
    }

    #[test]
    fn how_many_are_forged_is_told_by_which_ends_are_impossible() {
        // Both ends drawn: 1 - (222/256)^2 of the pairs, 16,252 of 65,536.
        assert_eq!(about(1_000_000, 16_252, [8_704, 8_704]).value(), 65_536);
        // Only sources drawn, or only destinations: 34 of 256.
        assert_eq!(about(1_000_000, 3_400, [3_400, 0]).value(), 25_600);
        assert_eq!(about(1_000_000, 3_401, [1, 3_400]).value(), 25_600);
        // The estimate is limited to the number of SYNs seen.
        let few = about(100, 39, [20, 23]);
        assert_eq!((few.value(), few.most()), (100, Some(100)));
        // Twelve ends of one kind and five of the other may come of either.
        let unsure = about(1_000, 16, [12, 5]);
        assert!(unsure.allows((12.0 / SHARES[0]) as u64) && unsure.allows(64), "{unsure:?}");
    }

    #[test]
    fn the_interval_holds_the_truth_for_95_of_100_seeds() {
        const SEEDS: u64 = 1_000;
        // Six standard deviations below 95%: 950 - 6 * sqrt(1000 * 0.95 * 0.05) = 908.6.
        let least = SEEDS as f64 * 0.95 - 6.0 * (SEEDS as f64 * 0.95 * 0.05).sqrt();
        for all in [100, 1_000, 10_000] {
            for drawn in [[true, true], [true, false]] {
                let (mut held, mut width) = (0, 0.0);
                for seed in 0..SEEDS {
                    let mut rng = sidon_kit::Rng::seeded(seed);
                    let (mut impossible, mut ends) = (0, [0; 2]);
                    for _ in 0..all {
                        let which = drawn.map(|is_drawn| is_drawn && rng.chance(SHARES[0]));
                        impossible += u64::from(which != [false; 2]);
                        ends = [0, 1].map(|end| ends[end] + u64::from(which[end]));
                    }
                    let figure = about(1_000_000, impossible, ends);
                    held += u64::from(figure.allows(all));
                    width += (figure.most().unwrap() - figure.least()) as f64 / all as f64;
                }
                assert!(held as f64 >= least, "{held} of {SEEDS} intervals hold {all}: {drawn:?}");
                // Four standard errors, and as much again while either model may hold.
                let error = ((1.0 - SHARES[0]) / (all as f64 * SHARES[0])).sqrt();
                assert!(width / (SEEDS as f64) < 8.0 * error, "{width} for {all}: {drawn:?}");
            }
        }
    }
}
