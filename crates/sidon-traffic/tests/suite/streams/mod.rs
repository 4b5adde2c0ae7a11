//! Small streams of packets for the tests of incidents: attacks and ordinary traffic, by the second.

use sidon::Seed;
use sidon_kit::Rng;
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Packet, Report, Settings, TcpFlags, Transport,
    packet::{Fragment, Tcp, Vlans},
};
use std::net::{IpAddr, SocketAddr};

pub(crate) const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;

/// Packets of several activities, in any order until they are run.
pub(crate) struct Stream {
    packets: Vec<Packet>,
    pub(crate) rng: Rng,
}

/// An IPv4 address and a port.
pub(crate) fn at(address: [u8; 4], port: u16) -> SocketAddr {
    (address, port).into()
}

/// Any address that a forging sender draws.
pub(crate) fn any(rng: &mut Rng) -> [u8; 4] {
    [1 + rng.below(126) as u8, rng.next_u64() as u8, rng.next_u64() as u8, rng.next_u64() as u8]
}

pub(crate) fn flags(text: &str) -> TcpFlags {
    let all = "FSRPAU";
    TcpFlags(text.chars().map(|one| 1 << all.find(one).unwrap()).sum())
}

impl Stream {
    pub(crate) fn new(seed: u64) -> Self {
        Stream { packets: Vec::new(), rng: Rng::seeded(seed) }
    }

    /// A stream with ordinary traffic in both directions.
    pub(crate) fn with_office(seed: u64, seconds: u64) -> Self {
        let mut stream = Stream::new(seed);
        stream.office(seconds);
        stream
    }

    fn push(&mut self, time: f64, from: SocketAddr, to: SocketAddr, what: Transport, bytes: u32) {
        let protocol = match what {
            Transport::Tcp(_) => 6,
            Transport::Icmp { .. } if from.is_ipv4() => 1,
            Transport::Icmp { .. } => 58,
            _ => 17,
        };
        let flow = FlowKey::between(from, to, protocol).unwrap();
        let header = if protocol == 6 { 54 } else { 42 };
        self.packets.push(Packet {
            time_ns: START + (time * 1e9) as u64,
            flow,
            wire_len: header + bytes,
            captured: header,
            payload_len: bytes,
            transport: what,
            fragment: Fragment::Whole,
            ttl: 64,
            vlans: Vlans::default(),
            tunnels: 0,
        });
    }

    pub(crate) fn udp(&mut self, time: f64, from: SocketAddr, to: SocketAddr, bytes: u32) {
        self.push(time, from, to, Transport::Ports, bytes);
    }

    pub(crate) fn tcp(
        &mut self,
        time: f64,
        from: SocketAddr,
        to: SocketAddr,
        text: &str,
        bytes: u32,
    ) {
        let tcp = Tcp { sequence: 1, acknowledgement: 1, flags: flags(text) };
        self.push(time, from, to, Transport::Tcp(tcp), bytes);
    }

    pub(crate) fn icmp(&mut self, time: f64, from: IpAddr, to: IpAddr, kind: u8, bytes: u32) {
        let ends = [from, to].map(|address| SocketAddr::new(address, 0));
        self.push(time, ends[0], ends[1], Transport::Icmp { kind, code: 0 }, bytes);
    }

    /// A fragment of a datagram. A later one has no ports.
    pub(crate) fn fragment(
        &mut self,
        time: f64,
        from: SocketAddr,
        to: SocketAddr,
        later: bool,
        bytes: u32,
    ) {
        let [from, to] = [from, to].map(|end| match later {
            true => SocketAddr::new(end.ip(), 0),
            false => end,
        });
        let what = if later { Transport::Other } else { Transport::Ports };
        self.push(time, from, to, what, bytes);
        let last = self.packets.last_mut().unwrap();
        last.fragment = if later { Fragment::Later } else { Fragment::First };
    }

    /// SYN, SYN+ACK, ACK.
    pub(crate) fn handshake(&mut self, time: f64, client: SocketAddr, server: SocketAddr) -> f64 {
        self.tcp(time, client, server, "S", 0);
        self.tcp(time + 0.02, server, client, "SA", 0);
        self.tcp(time + 0.021, client, server, "A", 0);
        time + 0.022
    }

    /// A whole connection with a request and `answers` packets of the server.
    pub(crate) fn session(
        &mut self,
        time: f64,
        client: SocketAddr,
        server: SocketAddr,
        answers: u32,
    ) {
        let mut time = self.handshake(time, client, server);
        self.tcp(time, client, server, "PA", 400);
        for _ in 0..answers {
            time += 0.004;
            self.tcp(time, server, client, "A", 1_400);
            self.tcp(time + 0.001, client, server, "A", 0);
        }
        self.tcp(time + 0.01, client, server, "FA", 0);
        self.tcp(time + 0.02, server, client, "FA", 0);
        self.tcp(time + 0.021, client, server, "A", 0);
    }

    /// A question and its answer.
    pub(crate) fn question(
        &mut self,
        time: f64,
        client: SocketAddr,
        server: SocketAddr,
        bytes: u32,
    ) {
        self.udp(time, client, server, 40);
        self.udp(time + 0.01, server, client, bytes);
    }

    /// 20 hosts of an office: web, names, a few pings.
    pub(crate) fn office(&mut self, seconds: u64) {
        for second in 0..seconds {
            for number in 0..10u16 {
                let time = second as f64 + f64::from(number) / 10.0;
                let port = self.port();
                let client = at([10, 9, 0, 1 + number as u8 * 2], port);
                let server = at([198, 51, 100, 1 + self.rng.below(40) as u8], 443);
                self.session(time, client, server, 4);
                let client = SocketAddr::new(client.ip(), port ^ 1);
                self.question(time, client, at([198, 51, 100, 53], 53), 150);
            }
        }
    }

    /// A port that clients use.
    pub(crate) fn port(&mut self) -> u16 {
        32_768 + self.rng.below(28_000) as u16
    }

    /// Times of `rate` events a second from `begin` to `end`.
    pub(crate) fn times(
        &self,
        begin: f64,
        end: f64,
        rate: f64,
    ) -> impl Iterator<Item = f64> + use<> {
        (0..((end - begin) * rate) as u64).map(move |number| begin + number as f64 / rate)
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&Packet) -> bool) {
        self.packets.retain(keep);
    }

    /// The report of an engine with this memory.
    pub(crate) fn report(&self, memory: u64, threads: usize) -> Report {
        let settings = Settings { memory, threads, ..Settings::new(Seed(5)) };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        engine.start().unwrap();
        for packet in &self.packets {
            engine.packet(packet);
        }
        engine.finish().0
    }

    /// The kinds and subjects of the incidents, in order. Every filter can be read.
    pub(crate) fn named(&mut self, memory: u64, threads: usize) -> Vec<(&'static str, String)> {
        self.packets.sort_by_key(|packet| packet.time_ns);
        let report = self.report(memory, threads);
        for one in &report.alarms {
            assert!(one.filter.parse::<Filter>().is_ok(), "{}", one.filter);
            assert!(one.opened >= START, "{one:?}");
        }
        let mut all: Vec<_> =
            report.alarms.iter().map(|one| (one.kind, one.subject.to_string())).collect();
        all.sort();
        all
    }

    /// The incidents. Checks that they are equal at 4 and at 64 MiB, with one thread and with two.
    #[track_caller]
    pub(crate) fn incidents(&mut self) -> Vec<(&'static str, String)> {
        let (small, large) = (self.named(4 << 20, 1), self.named(64 << 20, 2));
        assert_eq!(small, large, "4 MiB and 64 MiB");
        small
    }

    /// Checks that exactly these incidents are named.
    #[track_caller]
    pub(crate) fn says(&mut self, expected: &[(&'static str, &str)]) {
        let named = self.incidents();
        let named: Vec<_> = named.iter().map(|(kind, subject)| (*kind, subject.as_str())).collect();
        assert_eq!(named, expected);
    }

    /// The time from `begin` until the first incident of a kind, in seconds, as a report after each
    /// tenth of a second shows it.
    pub(crate) fn delay(&mut self, kind: &str, begin: f64) -> f64 {
        self.packets.sort_by_key(|packet| packet.time_ns);
        let settings = Settings { memory: 4 << 20, ..Settings::new(Seed(5)) };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        let mut next = START;
        for packet in &self.packets {
            while packet.time_ns >= next {
                engine.pass(next);
                if engine.alarms().incidents().any(|one| one.kind == kind) {
                    return (next - START) as f64 / 1e9 - begin;
                }
                next += SECOND / 10;
            }
            engine.packet(packet);
        }
        f64::INFINITY
    }
}
