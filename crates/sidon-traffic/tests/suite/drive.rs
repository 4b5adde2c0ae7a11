//! The loop that feeds an engine: limits, periods, the clock, and the end of a run.

use sidon::{Infeasible, Seed};
use sidon_traffic::{
    Decoder, Engine, Filter, Generator, Mix, Packet, Settings, Snapshot,
    drive::{self, Done, End, Failed, Generated, Go, Host, Item, Limits, Moment, Records, Traffic},
    export::Listener,
};
use std::{net::UdpSocket, time::Duration};

const SECOND: u64 = 1_000_000_000;

/// A host that stops at a given look, and records what it sees.
#[derive(Default)]
struct Recorder {
    stop_at: Option<usize>,
    wait: Duration,
    looks: usize,
    /// The start and the packets of each period.
    periods: Vec<(u64, u64)>,
    /// The starts of the periods, when they were announced.
    begun: Vec<u64>,
    warnings: Vec<String>,
}

impl Host for Recorder {
    type Error = Infeasible;

    fn look(&mut self, _: &mut Engine, moment: &Moment<'_>) -> Result<Go, Infeasible> {
        self.looks += 1;
        assert!(moment.seen >= self.periods.iter().map(|(_, seen)| seen).sum());
        let stop = self.stop_at.is_some_and(|at| self.looks >= at);
        Ok(if stop { Go::Stop } else { Go::On(self.wait) })
    }

    fn begin(&mut self, start_ns: u64) {
        self.begun.push(start_ns);
    }

    fn period(&mut self, start_ns: u64, snapshot: Snapshot) -> Result<(), Infeasible> {
        assert_eq!(self.begun.last(), Some(&start_ns));
        self.periods.push((start_ns, snapshot.ledger().seen));
        Ok(())
    }

    fn warn(&mut self, why: &str) {
        self.warnings.push(why.to_owned());
    }
}

/// A source without an end that plays a script. `None` means that nothing arrives.
struct Script {
    items: std::vec::IntoIter<Option<Packet>>,
    clock_ns: Option<u64>,
    /// The time between two packets. A shorter wait finds nothing.
    gap: Duration,
}

impl Traffic for Script {
    fn next(&mut self, wait: Duration) -> Result<Item<'_>, Failed> {
        std::thread::sleep(self.gap.min(wait));
        if wait < self.gap {
            return Ok(Item::Nothing);
        }
        match self.items.next() {
            Some(Some(packet)) => Ok(Item::Packet(packet)),
            Some(None) => {
                std::thread::sleep(Duration::from_millis(1));
                Ok(Item::Nothing)
            }
            None => Err("the script is over".into()),
        }
    }

    fn name(&self) -> String {
        "script".to_owned()
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn clock(&self) -> Option<u64> {
        self.clock_ns
    }

    fn counters(&mut self) -> Vec<(&'static str, u64)> {
        vec![("kernel_received", 7)]
    }

    fn keep_up(&mut self, _: bool) -> Result<(), Failed> {
        Err("templates could not be written".into())
    }
}

fn engine() -> Engine {
    let settings = Settings { memory: 1 << 20, ..Settings::new(Seed(7)) };
    Engine::new(settings, Filter::default(), Decoder::default()).unwrap()
}

fn packets(many: u64) -> Vec<Packet> {
    Generator::new(Mix { packets: many, ..Mix::default() }, 3).unwrap().collect()
}

/// The packets at these seconds after the start of an hour.
fn at(seconds: &[u64]) -> Vec<Packet> {
    let hour = 1_700_000_000 / 3_600 * 3_600;
    let times = seconds.iter().map(|second| (hour + second) * SECOND);
    packets(seconds.len() as u64)
        .into_iter()
        .zip(times)
        .map(|(packet, time_ns)| Packet { time_ns, ..packet })
        .collect()
}

fn run(traffic: &mut dyn Traffic, limits: Limits, host: &mut Recorder) -> (Done, Snapshot) {
    let mut engine = engine();
    let done = drive::drive(&mut engine, traffic, limits, host).unwrap();
    (done, engine.snapshot())
}

#[test]
fn the_limit_of_packets_is_exact_across_periods() {
    let mut traffic = Generated::new(packets(20_000).into_iter(), "test", None);
    let mut host = Recorder::default();
    let limits = Limits {
        packets: Some(12_345),
        period_ns: Some(SECOND / 100),
        stride: 100,
        ..Limits::default()
    };
    let (done, snapshot) = run(&mut traffic, limits, &mut host);
    assert!(matches!(done.end, End::Enough), "{done:?}");
    assert!(host.periods.len() > 3, "{:?}", host.periods);
    let past: u64 = host.periods.iter().map(|(_, seen)| seen).sum();
    assert_eq!(past + snapshot.ledger().seen, 12_345);
    assert!(host.looks >= 100, "{}", host.looks);
}

#[test]
fn a_packet_counts_in_the_period_of_its_time_and_a_late_one_in_the_current_period() {
    let minute = Limits { period_ns: Some(60 * SECOND), ..Limits::default() };
    let mut host = Recorder::default();
    let times = at(&[3, 59, 60, 61, 59, 200, 201]);
    let start = times[0].time_ns - 3 * SECOND;
    let mut traffic = Generated::new(times.into_iter(), "test", None);
    let (done, snapshot) = run(&mut traffic, minute, &mut host);
    assert!(matches!(done.end, End::Over), "{done:?}");
    assert_eq!(host.periods, [(start, 2), (start + 60 * SECOND, 3)]);
    assert_eq!((done.period_ns, snapshot.ledger().seen), (Some(start + 180 * SECOND), 2));
    assert_eq!(host.begun, [start, start + 60 * SECOND, start + 180 * SECOND]);
}

#[test]
fn a_stopped_source_delivers_what_is_waiting_and_no_more() {
    let mut waiting: Vec<_> = packets(1_000).into_iter().map(Some).collect();
    waiting.push(None);
    waiting.extend(packets(500).into_iter().map(Some));
    let mut traffic = Script { items: waiting.into_iter(), clock_ns: None, gap: Duration::ZERO };
    let mut host = Recorder { stop_at: Some(1), ..Recorder::default() };
    let limits = Limits { stride: 10, ..Limits::default() };
    let (done, snapshot) = run(&mut traffic, limits, &mut host);
    assert!(matches!(done.end, End::Stopped), "{done:?}");
    assert_eq!((host.looks, snapshot.ledger().seen), (1, 1_000));
    // A capture stops at once: nothing is waiting there.
    let mut traffic = Generated::new(packets(1_000).into_iter(), "test", None);
    let mut host = Recorder { stop_at: Some(1), ..Recorder::default() };
    assert_eq!(run(&mut traffic, limits, &mut host).1.ledger().seen, 10);
}

#[test]
fn packets_that_wait_at_the_end_count_in_the_period_of_their_time() {
    let script = at(&[10, 11, 12, 70, 71]).into_iter().map(Some).collect::<Vec<_>>();
    let start = script[0].unwrap().time_ns - 10 * SECOND;
    let mut traffic = Script { items: script.into_iter(), clock_ns: None, gap: Duration::ZERO };
    let mut host = Recorder { stop_at: Some(1), ..Recorder::default() };
    let limits = Limits { stride: 2, period_ns: Some(60 * SECOND), ..Limits::default() };
    let (done, snapshot) = run(&mut traffic, limits, &mut host);
    assert_eq!(host.periods, [(start, 3)]);
    assert_eq!((done.period_ns, snapshot.ledger().seen), (Some(start + 60 * SECOND), 2));
}

#[test]
fn the_clock_ends_a_period_without_a_packet_and_a_failure_is_an_end() {
    let first = at(&[10]).remove(0);
    let start = first.time_ns - 10 * SECOND;
    // The loop reads the clock after a quarter of a second.
    let mut items = vec![Some(first)];
    items.resize(1_000, None);
    let clock_ns = Some(start + 61 * SECOND);
    let mut traffic = Script { items: items.into_iter(), clock_ns, gap: Duration::ZERO };
    let mut host = Recorder::default();
    let limits = Limits { period_ns: Some(60 * SECOND), ..Limits::default() };
    let (done, snapshot) = run(&mut traffic, limits, &mut host);
    assert_eq!(host.periods, [(start, 1)]);
    assert_eq!(done.period_ns, Some(start + 60 * SECOND));
    let End::Broken(why) = done.end else { panic!("{:?}", done.end) };
    assert_eq!(why.to_string(), "the script is over");
    assert_eq!(snapshot.ledger().source, [("kernel_received", 0)], "counted in the first period");
    assert_eq!(host.warnings, ["templates could not be written"], "said once");
    assert_eq!(done.unsaved.unwrap().to_string(), "templates could not be written");
}

#[test]
fn slow_traffic_without_a_pause_is_looked_at_and_a_stop_waits_for_the_kernel() {
    // A packet every 5 ms, so the source is never idle and a stride takes 20 seconds.
    let items: Vec<_> = packets(2_000).into_iter().map(Some).collect();
    let gap = Duration::from_millis(5);
    let mut traffic = Script { items: items.into_iter(), clock_ns: None, gap };
    let mut host =
        Recorder { stop_at: Some(4), wait: Duration::from_millis(100), ..Recorder::default() };
    let begun = std::time::Instant::now();
    let (done, snapshot) = run(&mut traffic, Limits::default(), &mut host);
    assert!(matches!(done.end, End::Stopped), "{done:?}");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    // The host stops at its fourth look. Packets that need a wait of 5 ms are still read.
    assert!(snapshot.ledger().seen > 4 * 16, "{}", snapshot.ledger().seen);
    assert!(snapshot.ledger().seen < 2_000, "{}", snapshot.ledger().seen);
}

#[test]
fn a_record_of_any_amount_does_not_end_a_run_without_a_limit() {
    for amount in [1, u64::MAX - 1, u64::MAX] {
        let datagram = crate::datagrams::ipfix(1, 7, &crate::datagrams::wide(256, amount, amount));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listener = Listener::bind(&["127.0.0.1:0"]).unwrap();
        let to = listener.addresses()[0];
        let mut records = Records::new(listener, None).unwrap();
        socket.send_to(&datagram, to).unwrap();
        let mut host =
            Recorder { stop_at: Some(20), wait: Duration::from_millis(10), ..Recorder::default() };
        let (done, snapshot) = run(&mut records, Limits::default(), &mut host);
        assert!(matches!(done.end, End::Stopped), "{amount}: {done:?}");
        assert_eq!((host.looks, snapshot.ledger().seen), (20, amount));
    }
}

#[test]
fn flow_records_arrive_and_the_clock_is_a_second_behind() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listener = Listener::bind(&["127.0.0.1:0"]).unwrap();
    let to = listener.addresses()[0];
    let mut records = Records::new(listener, None).unwrap();
    assert_eq!(records.name(), format!("flow records at {to}"));
    for datagram in crate::datagrams::all() {
        socket.send_to(&datagram, to).unwrap();
    }
    let mut host =
        Recorder { stop_at: Some(20), wait: Duration::from_millis(50), ..Recorder::default() };
    let (done, snapshot) = run(&mut records, Limits::default(), &mut host);
    assert!(matches!(done.end, End::Stopped), "{done:?}");
    assert!(snapshot.ledger().seen > 0);
    assert!(
        snapshot.ledger().source.contains(&("datagrams", crate::datagrams::all().len() as u64))
    );
    let clock_ns = records.clock().unwrap();
    let late = drive::now_ns() - clock_ns;
    assert!((SECOND..2 * SECOND).contains(&late), "{late}");
}
