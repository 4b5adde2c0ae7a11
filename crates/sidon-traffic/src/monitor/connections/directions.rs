//! Networks whose packets are missing in the capture, although they must have sent some.
//!
//! A capture may contain one direction of a link only, or replies may take another link. An opener
//! then sends data after its SYN although no answer was captured. A sender with a forged address may do
//! that, too. The difference: if the direction is captured, hosts of the responder's network answer
//! other connections.
//!
//! ```text
//! network (IPv4 /24, IPv6 /64) -> last answer, connections that went on without an answer since
//! ```
//! The direction is missing after ten connections that went on without a captured answer. One answer
//! of the network ends that for five minutes, whatever the number of forged packets.
//! The table has 64 sets of eight networks, 16 KiB, and a new network replaces the one of its set
//! whose last event is oldest. Only events of handshakes read it.

use crate::{
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::{Key, Malformed, Seed};
use std::net::IpAddr;

const SETS: usize = 64;
const WAYS: usize = 8;
/// Connections that go on without an answer before the direction counts as missing.
const ENOUGH: u64 = 10;
/// The time that an answer counts, in nanoseconds.
const WINDOW: u64 = 300_000_000_000;

/// A network, by the digest of its prefix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Network {
    /// 0 for an empty entry.
    digest: u64,
    /// The time of the last event.
    last: u64,
    /// The time of the last answer, plus one; 0 if there was none.
    answered: u64,
    /// Connections that went on without an answer since then.
    unanswered: u64,
}

/// The table of networks.
#[derive(Debug)]
pub(super) struct Directions {
    seed: Seed,
    networks: Vec<[Network; WAYS]>,
}

impl Directions {
    pub(super) fn new(seed: Seed) -> Self {
        Directions { seed, networks: vec![[Network::default(); WAYS]; SETS] }
    }

    /// A packet of this host answered a connection.
    pub(super) fn answered(&mut self, host: IpAddr, now: u64) {
        let network = self.enter(host, now);
        (network.answered, network.unanswered) = (now.saturating_add(1), 0);
    }

    /// The other end of a connection with this host went on, and no packet of the host was captured.
    pub(super) fn unanswered(&mut self, host: IpAddr, now: u64) {
        let network = self.enter(host, now);
        network.unanswered = network.unanswered.saturating_add(1);
    }

    /// Whether the packets of this host's network are missing.
    pub(super) fn is_missing(&self, host: IpAddr, now: u64) -> bool {
        let digest = self.digest(host);
        let set = &self.networks[digest as usize % SETS];
        set.iter().find(|network| network.digest == digest).is_some_and(|network| {
            let lately = network.answered > 0 && now < network.answered.saturating_add(WINDOW);
            network.unanswered >= ENOUGH && !lately
        })
    }

    fn enter(&mut self, host: IpAddr, now: u64) -> &mut Network {
        let digest = self.digest(host);
        let set = &mut self.networks[digest as usize % SETS];
        let at = set.iter().position(|network| network.digest == digest).unwrap_or_else(|| {
            let oldest = (0..WAYS).min_by_key(|&at| (set[at].digest != 0, set[at].last));
            let at = oldest.unwrap_or(0);
            set[at] = Network { digest, ..Network::default() };
            at
        });
        set[at].last = now;
        &mut set[at]
    }

    fn digest(&self, host: IpAddr) -> u64 {
        let mut bytes = [0; 9];
        match host {
            IpAddr::V4(address) => {
                bytes[0] = 4;
                bytes[1..4].copy_from_slice(&address.octets()[..3]);
            }
            IpAddr::V6(address) => {
                bytes[0] = 6;
                bytes[1..].copy_from_slice(&address.octets()[..8]);
            }
        }
        bytes.digest(self.seed).0.max(1)
    }
}

impl Resume for Directions {
    fn save(&self, out: &mut Out) {
        for Network { digest, last, answered, unanswered } in self.networks.iter().flatten() {
            out.numbers(&[*digest, *last, *answered, *unanswered]);
        }
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        for (number, set) in self.networks.iter_mut().enumerate() {
            for at in 0..WAYS {
                let [digest, last, answered, unanswered] = bytes.numbers()?;
                let network = Network { digest, last, answered, unanswered };
                let is_empty = digest == 0 && network == Network::default();
                let is_own = digest as usize % SETS == number
                    && set[..at].iter().all(|other| other.digest != digest);
                bytes.check("directions", is_empty || digest != 0 && is_own)?;
                set[at] = network;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn host(third: u8, last: u8) -> IpAddr {
        IpAddr::from([192, 0, third, last])
    }

    #[test]
    fn one_answer_of_the_network_outvotes_every_forged_sender_for_five_minutes() {
        let mut all = Directions::new(Seed(1));
        for number in 0..9 {
            all.unanswered(host(2, number), SECOND);
            assert!(!all.is_missing(host(2, 200), SECOND), "{number}");
        }
        all.unanswered(host(2, 9), SECOND);
        assert!(all.is_missing(host(2, 200), SECOND));
        assert!(!all.is_missing(host(3, 200), SECOND));
        all.answered(host(2, 77), 2 * SECOND);
        for number in 0..1_000 {
            all.unanswered(host(2, number as u8), 3 * SECOND);
        }
        assert!(!all.is_missing(host(2, 1), 301 * SECOND));
        assert!(all.is_missing(host(2, 1), 303 * SECOND));
    }

    #[test]
    fn the_networks_of_a_set_are_replaced_by_age_and_survive_a_checkpoint() {
        let mut all = Directions::new(Seed(2));
        for round in 0..20u64 {
            for third in 0..=255 {
                all.unanswered(host(third, 1), round * SECOND + u64::from(third));
            }
        }
        let missing = |all: &Directions| {
            (0..=255).filter(|&third| all.is_missing(host(third, 9), 30 * SECOND)).count()
        };
        assert!(missing(&all) > 200, "{}", missing(&all));
        let mut out = Out::default();
        all.save(&mut out);
        let mut again = Directions::new(Seed(2));
        again.resume(&mut In { bytes: &out.0, part: "test" }).unwrap();
        assert_eq!(again.networks, all.networks);
        // Another seed puts networks into other sets.
        let mut wrong = out.0.clone();
        wrong.rotate_left(32 * WAYS);
        assert!(again.resume(&mut In { bytes: &wrong, part: "test" }).is_err());
    }
}
