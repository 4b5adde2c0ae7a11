//! SYNs between forged addresses: only addresses that no host can have reveal them.

use sidon::Seed;
use sidon_kit::{Rng, assert_rate};
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Frame, Generator, LinkType, Mix, Packet, Report, Settings,
    TcpFlags, Verdict,
    generate::{Flood, write_frame},
    monitor::incidents::{Incident, KINDS},
    packet::{Fragment, Tcp, Transport, Vlans},
};

/// No kind of alarm.
const NONE: [&str; 0] = [];
const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;

fn run(packets: &[Packet]) -> Report {
    let settings = Settings { memory: 2 << 20, ..Settings::new(Seed(5)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    packets.iter().for_each(|packet| engine.packet(packet));
    engine.finish().0
}

fn kinds(report: &Report) -> Vec<&'static str> {
    let kinds: Vec<_> = report.alarms.iter().map(|alarm| alarm.kind).collect();
    assert!(kinds.iter().all(|kind| KINDS.contains(kind)), "{kinds:?}");
    kinds
}

fn packet(flow: FlowKey, flags: TcpFlags, time_ns: u64) -> Packet {
    let tcp = Tcp { sequence: 1, acknowledgement: 0, flags };
    Packet {
        time_ns,
        flow,
        wire_len: if flow.is_v4() { 54 } else { 74 },
        captured: 74,
        payload_len: 0,
        transport: Transport::Tcp(tcp),
        fragment: Fragment::Whole,
        ttl: 64,
        vlans: Vlans::default(),
        tunnels: 0,
    }
}

fn syn(flow: FlowKey, time_ns: u64) -> Packet {
    packet(flow, TcpFlags::SYN, time_ns)
}

fn v4(source: u32, destination: u32) -> FlowKey {
    FlowKey::v4(source.to_be_bytes(), destination.to_be_bytes(), [2_000, 80], 6)
}

/// A SYN that opens, and the two that confirm it.
fn handshake(flow: FlowKey, time_ns: u64) -> [Packet; 3] {
    let answer = packet(flow.reversed(), TcpFlags::SYN.with(TcpFlags::ACK), time_ns + 1);
    [syn(flow, time_ns), answer, packet(flow, TcpFlags::ACK, time_ns + 2)]
}

/// SYNs a hundred microseconds apart whose ends are drawn: four bytes, or sixteen.
fn drawn(count: u64, is_v4: bool, seed: u64) -> Vec<Packet> {
    let mut rng = Rng::seeded(seed);
    let mut flow = || {
        let words = [(); 5].map(|()| rng.next_u64());
        let ports = [words[4] as u16, (words[4] >> 16) as u16 | 1];
        if is_v4 {
            let [source, destination] = [words[0] as u32, words[1] as u32].map(u32::to_be_bytes);
            return FlowKey::v4(source, destination, ports, 6);
        }
        let address = |at: usize| -> [u8; 16] {
            (u128::from(words[at]) << 64 | u128::from(words[at + 1])).to_be_bytes()
        };
        FlowKey::v6(address(0), address(2), ports, 6)
    };
    (0..count).map(|number| syn(flow(), START + number * 100_000)).collect()
}

fn evidence(alarm: &Incident, name: &str) -> u64 {
    alarm.evidence.iter().find(|(known, _)| *known == name).unwrap().1.value()
}

/// The number of packets, as frames, that the filter of an alarm accepts.
fn taken(alarm: &Incident, packets: &[Packet]) -> u64 {
    let filter: Filter = alarm.filter.parse().unwrap();
    let mut bytes = Vec::new();
    let takes = |packet: &&Packet| {
        write_frame(packet, &mut bytes);
        let (time_ns, wire_len) = (packet.time_ns, packet.wire_len);
        let frame = Frame { time_ns, wire_len, link: LinkType::ETHERNET, bytes: &bytes };
        filter.verdict(&frame) == Verdict::Match
    };
    packets.iter().filter(takes).count() as u64
}

#[test]
fn addresses_drawn_at_random_are_told_and_counted_about() {
    // The share of pairs with at least one end that no host can have.
    for (is_v4, share) in [(true, 34.0 / 256.0), (false, 157.0 / 256.0)] {
        let share: f64 = 1.0 - (1.0 - share) * (1.0 - share);
        let forged = drawn(20_000, is_v4, 1);
        // Honest traffic around it.
        let office = Mix { packets: 200_000, start_ns: START, ..Mix::default() };
        let mut packets: Vec<_> = Generator::new(office, 2).unwrap().collect();
        packets.extend(&forged);
        packets.sort_by_key(|packet| packet.time_ns);
        let report = run(&packets);
        assert_eq!(kinds(&report), ["forged_syns"], "{:?}", report.alarms);
        let alarm = &report.alarms[0];
        assert_eq!(alarm.subject.address().is_ipv4(), is_v4);
        assert!(alarm.subject.address().is_unspecified());
        assert!((START..START + SECOND).contains(&alarm.opened), "{}", alarm.opened);
        let impossible = evidence(alarm, "impossible");
        assert_rate(impossible as usize, forged.len(), share);
        let about = evidence(alarm, "forged_about") as f64;
        assert!((about - impossible as f64 / share).abs() <= 1.0, "{about}");
        assert!(evidence(alarm, "attempts") >= forged.len() as u64);
        assert_eq!(taken(alarm, &packets), impossible, "{}", alarm.filter);
        let first = forged.iter().find(|one| taken(alarm, &[**one]) == 1).unwrap().flow;
        let example = format!("{} > ", first.source());
        assert!(alarm.text.contains(&example), "{}: {}", alarm.text, example);
    }
}

#[test]
fn each_version_of_ip_is_looked_at_by_itself() {
    let mut packets = drawn(100, true, 6);
    packets.extend(drawn(100, false, 7));
    packets.sort_by_key(|packet| packet.time_ns);
    let report = run(&packets);
    assert_eq!(kinds(&report), ["forged_syns"; 2]);
    // In the order of their opening times.
    for (alarm, subject) in report.alarms.iter().zip(["::", "0.0.0.0"]) {
        assert_eq!(alarm.subject.to_string(), subject);
        assert_eq!(evidence(alarm, "attempts"), 100);
    }
}

#[test]
fn sources_drawn_at_random_for_a_whole_network_are_counted_by_one_end() {
    let mut packets = drawn(20_000, true, 3);
    for (number, packet) in (0u32..).zip(&mut packets) {
        let source: [u8; 4] = std::array::from_fn(|i| packet.flow.as_bytes()[i]);
        let ports = [number as u16 | 1, (number / 256) as u16 + 1];
        packet.flow = FlowKey::v4(source, [192, 0, 2, number as u8], ports, 6);
    }
    let report = run(&packets);
    assert_eq!(kinds(&report), ["forged_syns", "syn_flood"]);
    assert_eq!(report.alarms[1].subject.to_string(), "192.0.2.0/24");
    let impossible = evidence(&report.alarms[0], "impossible");
    assert_rate(impossible as usize, packets.len(), 34.0 / 256.0);
    let about = evidence(&report.alarms[0], "forged_about") as f64;
    let expected = (impossible as f64 * 256.0 / 34.0).min(20_000.0);
    assert!((about - expected).abs() <= 1.0, "{about}");
}

#[test]
fn it_is_raised_after_a_second_and_closed_a_minute_after_the_last() {
    let mut packets = drawn(100, true, 4);
    let last = packets.iter().rfind(|packet| packet.flow.as_bytes()[0] >= 224).unwrap().time_ns;
    // One connection per second, from the minute before until two minutes after.
    let honest = |second: u64| handshake(v4(0x0a00_0001 + second as u32, 0x0a00_0101), second);
    for second in 0..180 {
        let three = honest(second).map(|one| Packet {
            time_ns: START - 59 * SECOND - SECOND / 2 + second * SECOND + one.time_ns - second,
            ..one
        });
        packets.extend(three);
    }
    packets.sort_by_key(|packet| packet.time_ns);
    let settings = Settings { memory: 2 << 20, ..Settings::new(Seed(5)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    let mut raised = None;
    for packet in &packets {
        engine.packet(packet);
        engine.flush();
        if raised.is_none() && engine.alarms().incidents().len() > 0 {
            raised = Some(packet.time_ns);
        }
    }
    let report = engine.finish().0;
    assert_eq!(kinds(&report), ["forged_syns"], "{:?}", report.alarms);
    let after = |time: u64| (time - last) as f64 / 1e9;
    assert!((0.9..3.0).contains(&after(raised.unwrap())), "{}", after(raised.unwrap()));
    let closed = after(report.alarms[0].closed.unwrap());
    assert!((59.9..63.0).contains(&closed), "{closed}");
}

#[test]
fn ten_in_a_minute_are_an_alarm_and_nine_are_none() {
    let some = |count: u32, gap: u64| -> Vec<Packet> {
        let one = |number: u32| v4(0xf000_0001 + number, 0x0a00_0001 + number);
        (0..count).map(|number| syn(one(number), START + u64::from(number) * gap)).collect()
    };
    assert_eq!(kinds(&run(&some(10, SECOND))), ["forged_syns"]);
    assert_eq!(kinds(&run(&some(9, SECOND))), NONE);
    // Nine per minute, however long it lasts.
    assert_eq!(kinds(&run(&some(100, 7 * SECOND))), NONE);
}

#[test]
fn what_is_wrong_but_not_forged_raises_nothing() {
    let at = |number: u32| START + u64::from(number) * 50_000_000;
    let each = |flow: &dyn Fn(u32) -> FlowKey| -> Vec<Packet> {
        (0..300).map(|number| syn(flow(number), at(number))).collect()
    };
    let ports = |number: u32| [2_000 + number as u16, 8_009];

    // A program on many hosts that sends SYNs to a multicast group.
    let group = |n: u32| FlowKey::v4([10, 0, 1, n as u8], [239, 255, 255, 250], ports(n), 6);
    assert!(!kinds(&run(&each(&group))).contains(&"forged_syns"));
    // A host with the source address 0.0.0.0 that tries one address after the other.
    let nameless = |n: u32| FlowKey::v4([0; 4], [10, 0, (n / 8) as u8, 1], ports(n), 6);
    assert!(!kinds(&run(&each(&nameless))).contains(&"forged_syns"));
    // A scanner that tries every kind of address is reported as a scanner.
    let scanner = |n: u32| v4(0x0a00_0001, n.wrapping_mul(0x9e37_79b1));
    assert_eq!(kinds(&run(&each(&scanner))), ["address_scan"]);
    // A host that connects to its own loopback addresses.
    let itself = |n: u32| v4(0x7f00_0001 + n, 0x7f00_0101 + n);
    assert_eq!(kinds(&run(&each(&itself))), NONE);
    // Networks that use reserved addresses: some connections complete.
    let used = |n: u32| v4(0xf000_0001 + n, 0xf000_1001 + n);
    let mut packets = Vec::new();
    for number in 0..300 {
        // Three of four attempts stay unanswered.
        let parts = if number % 4 == 0 { 3 } else { 1 };
        packets.extend_from_slice(&handshake(used(number), at(number))[..parts]);
    }
    assert_eq!(kinds(&run(&packets)), NONE);
}

#[test]
fn a_flood_at_one_victim_has_its_name_and_no_other() {
    let victim = "10.0.0.80:443".parse().unwrap();
    let flood =
        Flood { sources: 20_000, victim, after: 0, share: 100, answered: 0, ..Flood::default() };
    let mix = Mix { packets: 20_000, flood: Some(flood), start_ns: START, ..Mix::default() };
    let packets: Vec<_> = Generator::new(mix, 3).unwrap().collect();
    assert!(packets.iter().filter(|packet| packet.flow.as_bytes()[0] >= 224).count() > 1_000);
    assert_eq!(kinds(&run(&packets)), ["syn_flood"]);
}
