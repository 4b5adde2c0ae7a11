//! `sidon demo`: a minute of made-up traffic that shows what the tool does.

pub(crate) mod live;
mod recount;

use crate::{
    args::{EngineArgs, SeedArg, engine_refusal, number::within, thread_refusal},
    show,
};
use live::{Live, Sample};
use serde_json::json;
use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, Generator, Mix, Report, Snapshot,
    drive::{Generated, Go, Host, Limits, Moment, drive},
    generate::Flood,
};
use std::{
    net::SocketAddrV4,
    time::{Duration, Instant},
};

/// Watch an office and then a SYN flood from ten million forged sources, in fixed memory
///
/// Generates the traffic of a thousand hosts, then a flood of one server from ten million addresses.
/// Shows the memory, which stays constant, the half-open connections, the alarm that names the
/// victim, and the heaviest flows. Then it counts a sample of the flows exactly and compares the
/// two. It reads neither the network nor a file, and takes about a minute.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("top", |top| top.default_value("5")),
    mut_arg("seed", |seed| seed.help("Seed of the tables and of the traffic: a number below 2^128, or random [default: 1]"))
)]
pub(crate) struct Args {
    /// Number of forged sources of the flood
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = within::<u64>(1_000..=1_000_000_000))]
    sources: u64,
    #[command(flatten)]
    engine: EngineArgs,
    /// Write one JSON object at the end, and nothing before it
    #[arg(long)]
    json: bool,
}

/// The most packets between two reads of the engine's state.
const STRIDE: u64 = 1 << 12;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let seed = args.engine.given_seed()?.map_or(Ok(Seed(1)), SeedArg::seed)?;
    let (mix, traffic_seed) = (mix(args.sources), seed.0 as u64);
    let victim = mix.flood.map_or(SocketAddrV4::new([0, 0, 0, 0].into(), 0), |flood| flood.victim);
    let thresholds = args.engine.thresholds(args.engine.open_thresholds()?)?;
    let settings = args.engine.settings(seed, thresholds);
    let engine = Engine::new(settings, Filter::default(), Decoder::default());
    let mut engine = engine.map_err(engine_refusal)?;
    engine.start().map_err(thread_refusal)?;
    let mut live = Live::new(args.json);
    live.begin(&mix, victim, args.engine.memory)?;

    let every = mix.packets.div_ceil(live.samples()).max(1);
    let stride = usize::try_from(every.min(STRIDE)).unwrap_or(usize::MAX);
    let mut traffic = Generated::new(Generator::new(mix, traffic_seed)?, "demo", None);
    let mut stage = Stage { live, start: Instant::now(), start_ns: mix.start_ns, every, shown: 0 };
    drive(&mut engine, &mut traffic, Limits { stride, ..Limits::default() }, &mut stage)?;
    let (report, shards) = engine.finish();
    let Stage { live, start, .. } = stage;
    let took = start.elapsed();
    let recount = recount::recount(mix, traffic_seed, seed, &report, &shards)?;
    if args.json {
        let json = to_json(args, &report, &live, took, victim, &recount);
        return show::print_json(&json);
    }
    live.end(&report, took, &recount)
}

/// Takes samples while the traffic runs.
struct Stage {
    live: Live,
    start: Instant,
    start_ns: u64,
    /// Packets between two samples.
    every: u64,
    /// Packets at the last sample.
    shown: u64,
}

impl Host for Stage {
    type Error = anyhow::Error;

    fn look(&mut self, engine: &mut Engine, moment: &Moment<'_>) -> anyhow::Result<Go> {
        if moment.seen - self.shown >= self.every {
            self.shown += self.every;
            let last_ns = engine.times().map_or(self.start_ns, |(_, last)| last);
            self.live.show(Sample {
                packets: moment.seen,
                packet_time: Duration::from_nanos(last_ns.saturating_sub(self.start_ns)),
                half_open: engine.connections().half_open(),
                tables: engine.allocated(),
                resident: live::resident(),
                alarm: engine.alarms().incidents().next().map(|alarm| alarm.text.clone()),
                took: self.start.elapsed(),
            })?;
        }
        Ok(Go::On(Duration::ZERO))
    }

    fn period(&mut self, _: u64, _: Snapshot) -> anyhow::Result<()> {
        Ok(())
    }

    fn warn(&mut self, why: &str) {
        show::say(why);
    }
}

/// An office before, during and after the flood. Attempts of the flood expire fast enough for the
/// default memory.
fn mix(sources: u64) -> Mix {
    let victim = SocketAddrV4::new([198, 18, 0, 7].into(), 443);
    let (before, after) = (sources / 20, sources / 20);
    // One in ten is answered, and one packet in ten is the office's.
    let during = sources + sources / 10;
    let flood =
        Flood { sources, victim, after: before, share: 90, answered: 10, ..Flood::default() };
    Mix {
        packets: before + during + during / 9 + after,
        rate: 15_000,
        active: 2_000,
        flood: Some(flood),
        ..Mix::default()
    }
}

fn to_json(
    args: &Args,
    report: &Report,
    live: &Live,
    took: Duration,
    victim: SocketAddrV4,
    recount: &recount::Recount,
) -> serde_json::Value {
    let flow = |entry: &sidon::count::Entry<sidon_traffic::FlowKey, 2>| {
        let [bytes, packets] = entry.amounts;
        let mut row = json!({ "key": entry.key.two_way(), "lower": bytes.least,
                              "certainty": report.amount(bytes).kind().name() });
        report.amount(bytes).set(&mut row, "bytes");
        report.amount(packets).set(&mut row, "packets");
        row
    };
    let resident = live.resident();
    json!({
        "packets": report.ledger.seen,
        "sources": args.sources,
        "seconds": took.as_secs_f64(),
        "memory": {
            "budget": report.budget,
            "allocated": report.allocated,
            "resident_least": resident.map(|[least, _]| least),
            "resident_most": resident.map(|[_, most]| most),
        },
        "victim": victim.to_string(),
        "alarms": report.alarms.iter().map(|alarm| alarm.to_alarm_json()).collect::<Vec<_>>(),
        "connections": report.to_json()["connections"],
        "half_open": live.chart(),
        "top_flows": report.flows.entries.iter().map(flow).collect::<Vec<_>>(),
        "audit": { "flows": recount.flows, "violations": recount.violations },
        "ledger": report.to_json()["ledger"],
    })
}
