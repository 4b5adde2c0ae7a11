//! `--demo`: a made-up office without an end. Quiet, then a scan, then a flood, and again.

use sidon::Infeasible;
use sidon_traffic::{
    Generator, Mix, Packet,
    generate::{Flood, Shares},
};
use std::net::SocketAddrV4;

/// Packets a second of the office.
const RATE: u64 = 3_000;
/// The victim of the flood.
const VICTIM: ([u8; 4], u16) = ([198, 18, 0, 7], 443);

/// The packets of the office.
pub(super) struct Office {
    seed: u64,
    round: u64,
    scene: Generator,
    last_ns: u64,
}

impl Office {
    pub(super) fn new(seed: u64, start_ns: u64) -> Result<Self, Infeasible> {
        let scene = Generator::new(scene(0, start_ns), seed)?;
        Ok(Office { seed, round: 0, scene, last_ns: start_ns })
    }
}

impl Iterator for Office {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        let packet = self.scene.next().or_else(|| {
            self.round += 1;
            let seed = self.seed.wrapping_add(self.round);
            self.scene = Generator::new(scene(self.round, self.last_ns), seed).ok()?;
            self.scene.next()
        })?;
        self.last_ns = packet.time_ns;
        Some(packet)
    }
}

/// A scene of the office: half a minute of quiet first, then quiet again after a flood or a scan.
fn scene(round: u64, start_ns: u64) -> Mix {
    let (address, port) = VICTIM;
    let flood = Flood {
        sources: 20 * 9 * RATE,
        victim: SocketAddrV4::new(address.into(), port),
        after: 10 * RATE,
        share: 90,
        answered: 10,
        ..Flood::default()
    };
    let quiet = Mix { packets: 20 * RATE, rate: RATE, start_ns, active: 600, ..Mix::default() };
    match round % 3 {
        0 => quiet,
        1 => Mix { shares: Shares { scan: 12, ..quiet.shares }, ..quiet },
        // Forged packets, the answers to some of them, the office between, and ten seconds after.
        _ => Mix {
            packets: flood.after + flood.sources * 11 / 9 + 12 * RATE,
            flood: Some(flood),
            ..quiet
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::Seed;
    use sidon_traffic::{Decoder, Engine, Filter, Settings};

    #[test]
    fn the_demo_goes_round_and_time_goes_on() {
        let engine = Engine::new(Settings::new(Seed(1)), Filter::default(), Decoder::default());
        let mut engine = engine.unwrap();
        let mut office = Office::new(1, 1_800_000_000_000_000_000).unwrap();
        while office.round < 4 {
            engine.packet(&office.next().unwrap());
        }
        let report = engine.report();
        assert_eq!(report.ledger.balance(), 0);
        let kinds: Vec<_> =
            report.alarms.iter().map(|alarm| (alarm.kind, alarm.subject.address())).collect();
        let victim = std::net::IpAddr::from(VICTIM.0);
        assert!(kinds.contains(&("syn_flood", victim)), "{kinds:?}");
        assert!(
            kinds.contains(&("address_scan", sidon_traffic::generate::SCANNER.into())),
            "{kinds:?}"
        );
        assert_eq!(kinds.len(), 2, "{kinds:?}");
        let (first, last) = report.times.unwrap();
        assert!((last - first) / 1_000_000_000 >= 80, "{first} {last}");
    }
}
