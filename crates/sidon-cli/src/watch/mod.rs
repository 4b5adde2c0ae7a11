//! `sidon watch`: reads traffic and prints a report, in fixed memory.

mod csv;
mod events;
mod evidence;
mod exporters;
#[cfg(test)]
mod faults;
mod interfaces;
mod known;
pub(crate) mod screen;
mod watcher;

use crate::{
    args::{
        EngineArgs, Files, Input, SeedArg, SourceArgs, engine_refusal,
        number::{memory, whole, within},
        thread_refusal,
    },
    machine,
    sandbox::{self, Needs, Sockets},
    saved::{
        file, found,
        rotate::{self, Rotation},
    },
    show,
    signals::Signals,
};
use anyhow::Context;
use events::Events;
use evidence::Evidence;
use sidon_traffic::{
    Engine, Report, Settings, Snapshot,
    drive::{Done, End, Limits, Traffic, drive},
    files::System,
    monitor::subnet::Network,
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use watcher::Watcher;

/// Report on a capture, an interface or flow records, in memory that a flood cannot change
///
/// The report has alarms, the heaviest flows, hosts and ports, TCP connections by state, P2P-like
/// hosts, new source addresses by subnet, and counts of all packets. A figure marked = is exact, <=
/// marks an upper bound, >= a lower bound, and ~ an estimate with its interval. All tables are
/// allocated before the first packet and never grow.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true), override_usage = "\
sidon watch [OPTIONS] -r <FILE> [EXPRESSION]
       sidon watch [OPTIONS] -i <NAME> [EXPRESSION]
       sidon watch [OPTIONS] --netflow <ADDR:PORT>
       sidon watch -D
       sidon watch --print-thresholds", after_long_help = "\
EXIT STATUS
  0  the whole capture was read
  1  an error: a file or an interface cannot be read or written
  2  the command line, the filter expression, a machine or a file of thresholds is wrong
  3  the capture is cut or damaged, and the report covers the part before that;
     or the interface went down
  4  an alarm was raised, with --exit-on-alarm
  5  with --audit: a figure excludes the truth; the report names its row

EXAMPLES
  sidon watch -r trace.pcapng
  sidon watch -r trace.pcap.gz --json 'tcp port 443 and not net 10.0.0.0/8'
  sidon watch -r trace.pcap --machine examples/machines/tcp-handshake.toml
  sidon watch -i eth0 --duration 10m
  sidon watch --netflow 0.0.0.0:2055 --templates templates.txt
  sidon watch -r today.pcap --known sources.txt --events -
  sidon watch -r today.pcap --save today.sidon && sidon show today.sidon
  sidon watch -r week.pcap --rotate 1h --save-dir week --seed 4711
  tcpdump -w - | sidon watch -r - --memory 4MiB --audit")]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// List the network interfaces of this machine
    #[arg(short = 'D', long, group = "source")]
    list_interfaces: bool,
    /// Print the thresholds of incidents as a commented file for --thresholds
    #[arg(long, group = "source")]
    print_thresholds: bool,
    /// Stop after this time, such as 90s, 5m or 2h; not with --read
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "read")]
    duration: Option<Duration>,
    /// Stop after N packets
    #[arg(short, long, value_name = "N", value_parser = whole)]
    count: Option<u64>,
    /// IPv4 subnet, /16 or smaller, in which the packets of every host are counted exactly
    /// (repeatable)
    #[arg(long, value_name = "SUBNET", value_parser = subnet)]
    subnet: Vec<Network>,
    /// TOML file with a state machine to run over the packets (see sidon machine; up to 4)
    #[arg(long, value_name = "FILE")]
    machine: Vec<PathBuf>,
    /// File of known source addresses, one per line: read at the start if it exists. At the end, new
    /// addresses are added; the lines of the file stay as they are
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Count everything a second time in exact tables, and compare; needs memory that grows
    #[arg(long)]
    audit: bool,
    /// Exit with status 4 if there was an alarm
    #[arg(long)]
    exit_on_alarm: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    /// Append alarms and new sources to this file at once, one JSON object per line; - is standard
    /// output
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Kinds of incidents for --events, such as syn_flood, or new_source for new sources; comma
    /// between them [default: all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = events::kind, requires = "events")]
    event_kinds: Vec<&'static str>,
    /// The most lines of --events per second of packet time. A line with the event type dropped
    /// counts the others
    #[arg(long, value_name = "N", value_parser = whole, requires = "events")]
    event_rate: Option<u64>,
    /// Keep packets of each incident in this directory: a pcap file with the first ones and a sample of
    /// later ones, and a JSON file with the incident, whose filter finds all of them
    #[arg(long, value_name = "DIR", conflicts_with = "netflow")]
    evidence: Option<PathBuf>,
    /// The most incidents with files in the directory of --evidence
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = within::<u16>(1..=4_096), requires = "evidence")]
    evidence_files: u16,
    /// The most bytes of packets of an incident. Memory for as many bytes is needed per incident
    #[arg(long, value_name = "BYTES", default_value = "256KiB", value_parser = memory, requires = "evidence")]
    evidence_size: u64,
    /// Also write the tables of the report as CSV files to this directory
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Save the tables to this file at the end, for sidon show and sidon merge. The file has no exact
    /// tables of --audit, and no evidence for alarms that have not occurred
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Save a file for every period of this length in packet time (30s, 5m, 1h, 1d), and start again
    /// with empty tables. Use sidon merge for a sum of periods. The report at the end covers the last
    /// period
    #[arg(long, value_name = "TIME", value_parser = rotate::period, requires = "save_dir",
          conflicts_with_all = ["save", "known", "audit"])]
    rotate: Option<u64>,
    /// Directory for the files of --rotate; their names have the start of the period
    #[arg(long, value_name = "DIR", requires = "rotate")]
    save_dir: Option<PathBuf>,
    /// Accepted for compatibility with tcpdump; addresses are never resolved to names
    #[arg(short)]
    n: bool,
    /// Print no progress, and only the heaviest flows and the packet ledger
    #[arg(short, long)]
    quiet: bool,
    /// Print longer lists
    #[arg(short, long)]
    verbose: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list_interfaces {
        interfaces::list()?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.print_thresholds {
        let thresholds = args.engine.thresholds(args.engine.open_thresholds()?)?;
        show::print(&thresholds.print())?;
        return Ok(ExitCode::SUCCESS);
    }
    files(args).check()?;
    let wrong = |why: anyhow::Error| {
        show::say(&format!("{why:#}"));
        Ok(ExitCode::from(2))
    };
    let filter = match args.source.filter() {
        Ok(filter) => filter,
        Err(why) => return wrong(why),
    };
    let (seed, seed_name) = match args.engine.given_seed() {
        Ok(given) => choice(given, args.source.read.is_some()),
        Err(why) => return wrong(why),
    };
    let open = args.machine.iter().map(|file| machine::open(file));
    let open = match open.collect::<anyhow::Result<Vec<_>>>() {
        Ok(open) => open,
        Err(why) => return wrong(why),
    };
    let thresholds = args.engine.open_thresholds()?;
    let Some(opened) = args.source.open()? else {
        return wrong(anyhow::anyhow!("no source; type -r FILE, -i NAME or --netflow ADDR:PORT"));
    };
    let rotation = match (&args.save_dir, args.rotate) {
        (Some(directory), Some(period)) => {
            Some(Rotation::new(Box::new(System), directory.clone(), period)?)
        }
        _ => None,
    };
    let _shared = rotation.as_ref().map(|one| found::share(one.directory())).transpose()?;
    // Everything is open now, and no byte was read of an input: the program needs no more rights.
    confine(args)?;
    let machines = args.machine.iter().zip(open);
    let machines = machines.map(|(file, open)| machine::definition(file, open));
    let machines = match machines.collect::<anyhow::Result<Vec<_>>>() {
        Ok(machines) => machines,
        Err(why) => return wrong(why),
    };
    let thresholds = match args.engine.thresholds(thresholds) {
        Ok(thresholds) => thresholds,
        Err(why) => return wrong(why),
    };
    let settings = Settings {
        audit: args.audit,
        subnets: args.subnet.clone(),
        machines,
        ..args.engine.settings(seed.seed()?, thresholds)
    };
    let mut input = args.source.start(opened, None)?;
    let events = args.events.as_deref().map(|path| Events::open(&System, path)).transpose()?;
    if let Some(events) = &events {
        events.select(&args.event_kinds, args.event_rate);
    }
    let endless = input.traffic().is_endless();
    let signals = if endless { Signals::all()? } else { Signals::stopping()? };
    let engine = Engine::new(settings, filter, args.source.decoder());
    let mut engine = engine.map_err(engine_refusal)?;
    if let Some(events) = &events {
        engine.set_sink(events.sink());
    }
    let evidence = args.evidence.as_ref().map(|directory| {
        let files = args.evidence_files.into();
        engine.record_packets(evidence::limits(files, args.evidence_size));
        Evidence::new(Box::new(System), directory.clone())
    });
    if let Some(path) = &args.known {
        known::learn(&mut engine, path)?;
    }
    engine.start().map_err(thread_refusal)?;
    let limits = Limits {
        packets: args.count,
        period_ns: args.rotate,
        periods: args.source.periods_most(),
        ..Limits::default()
    };
    let mut watcher = Watcher::new(args, signals, rotation, events.clone(), evidence);
    let done = drive(&mut engine, input.traffic(), limits, &mut watcher);
    watcher.clear();
    let Done { end, period_ns, joined, unsaved } = done?;
    let Watcher { rotation, interrupted, evidence, .. } = watcher;
    let (snapshot, recorder) = engine.snapshot_and_recorder();
    let mut failed: Vec<_> = unsaved.map(anyhow::Error::from_boxed).into_iter().collect();
    if let (Some(mut evidence), Some(mut recorder)) = (evidence, recorder) {
        failed.extend(evidence.finish(&mut recorder).err());
    }
    match events.as_ref().map(|events| (events.finish(), events.is_only_closed())) {
        Some((Err(why), true)) => show::say(&format!("{why:#}")),
        Some((Err(why), false)) => failed.push(why),
        _ => {}
    }
    if joined {
        failed.push(rotate::joined(limits.periods));
    }
    let ending = Ending { end, seed: seed_name, interrupted, period_ns, rotation, failed };
    report(args, &input, ending, snapshot)
}

/// The seed, fixed for a capture and random for everything else unless given, and the name of this
/// choice in the report. The number itself may be a secret.
fn choice(given: Option<SeedArg>, is_capture: bool) -> (SeedArg, &'static str) {
    match given {
        Some(SeedArg::Random) => (SeedArg::Random, "random"),
        Some(seed) => (seed, "given"),
        None if is_capture => (SeedArg::FIXED, "fixed"),
        None => (SeedArg::Random, "random"),
    }
}

/// How a run ended.
struct Ending {
    end: End,
    seed: &'static str,
    interrupted: bool,
    period_ns: Option<u64>,
    rotation: Option<Rotation>,
    /// Why outputs could not be written.
    failed: Vec<anyhow::Error>,
}

/// Writes all files and the report. An output that cannot be written does not keep others back.
fn report(
    args: &Args,
    input: &Input,
    ending: Ending,
    mut snapshot: Snapshot,
) -> anyhow::Result<ExitCode> {
    let Ending { end, seed, interrupted, period_ns, mut rotation, mut failed } = ending;
    if matches!(end, End::Broken(_)) {
        snapshot.set_partial();
    }
    let style = screen::Style::new(args.quiet, args.verbose, args.engine.top);
    let top = snapshot.settings().top;
    if !args.json {
        snapshot.set_top(top.max(style.rows()));
    }
    let report = snapshot.report();
    snapshot.set_top(top);
    if let Some(path) = &args.save {
        failed.extend(file::replace(&System, path, |out| snapshot.write(out)).err());
    }
    if let Some(rotation) = &mut rotation {
        failed.extend(rotation.end(period_ns, &snapshot).err());
        failed.extend(rotation.lost());
    }
    if let Some(path) = &args.known {
        failed.extend(known::add(&System, path, &snapshot).err());
    }
    if let Some(directory) = &args.csv {
        let written = csv::write(&System, directory, &report, top, &snapshot.new_sources());
        failed.extend(written.err());
    }
    let (name, kind) = match input {
        Input::Capture(capture) => (capture.name(), format!("{:?}", capture.source().format())),
        Input::Interface(one) => (one.name(), format!("live, {}", one.live().link())),
        Input::Records(records) => (records.name(), "live".to_owned()),
    };
    let ended = match (&end, input) {
        (End::Over, _) => "",
        (End::Stopped, _) if interrupted => ", interrupted",
        (End::Enough | End::Stopped, _) => ", stopped as asked",
        (End::Broken(_), Input::Capture(_)) => ", broken off",
        (End::Broken(_), _) => ", went down",
    };
    let title = format!("{name} ({kind}, {seed} seed{ended})");
    let shown = show_report(args, (&title, seed), &report, style, &end, input);
    failed.extend(shown.err().filter(|why| !why.is::<show::Closed>()));
    if let (Some(rotation), false) = (&rotation, args.quiet) {
        let (packets, files) = (show::whole(rotation.seen), rotation.files);
        show::say(&format!("{packets} packets in {files} files; the report is of the last one"));
    }
    let alarmed = !report.alarms.is_empty() || rotation.is_some_and(|one| one.alarmed);
    for why in &failed {
        show::say(&format!("{why:#}"));
    }
    let status = status(&report, &end, args.exit_on_alarm && alarmed, !failed.is_empty());
    match end {
        _ if status == VIOLATED => {
            show::say(&format!("{name}: the audit found figures that exclude the truth"));
        }
        End::Broken(why) => {
            show::say(&format!("{name}: {why}; the report covers the packets before that"));
        }
        _ => {}
    }
    Ok(ExitCode::from(status))
}

/// The exit status if the audit found a violation.
const VIOLATED: u8 = 5;

/// The exit status of a run. A violation of the audit takes precedence, then an output that could
/// not be written.
fn status(report: &Report, end: &End, alarmed: bool, failed: bool) -> u8 {
    let violations = report.audit.as_ref().map_or(0, |audit| audit.violations());
    match end {
        _ if violations > 0 => VIOLATED,
        _ if failed => 1,
        End::Broken(_) => 3,
        _ if alarmed => 4,
        _ => 0,
    }
}

/// The files that the options name.
fn files(args: &Args) -> Files {
    let tables = args.csv.iter().flat_map(|csv| csv::NAMES.map(|name| csv.join(name)));
    let notes = args.save_dir.iter().map(|directory| found::note(directory));
    // With `--events -`, events and the report have the same place by request.
    let printed = match &args.events {
        Some(path) if path == Path::new("-") => Files::default(),
        _ => Files::default().prints(),
    };
    printed
        .reads("-r", &args.source.read)
        .reads("--machine", &args.machine)
        .reads("--thresholds", &args.engine.thresholds)
        .reads("--seed-file", &args.engine.seed_file)
        .reads("--csv", &args.csv)
        .reads("--evidence", &args.evidence)
        .reads("--save-dir", &args.save_dir)
        .updates("--known", &args.known)
        .updates("--templates", &args.source.templates)
        .replaces("--save", &args.save)
        .appends("--events", &args.events)
        .makes("--csv", tables)
        .makes("--save-dir", notes)
}

/// Gives up all rights except to the directories of files that are read or written later.
fn confine(args: &Args) -> anyhow::Result<()> {
    if let Some(directory) = &args.csv {
        let place = || format!("cannot write CSV files to the directory {}", show::path(directory));
        fs::create_dir_all(directory).with_context(place)?;
    }
    if let Some(directory) = &args.evidence {
        let place = || format!("cannot write packets to the directory {}", show::path(directory));
        fs::create_dir_all(directory).with_context(place)?;
    }
    let sockets = match args.source.read {
        Some(_) => Sockets::None,
        None => Sockets::Receive,
    };
    let needs = Needs::nothing()
        .outputs(
            [&args.known, &args.source.templates, &args.save, &args.events].into_iter().flatten(),
        )
        .directories([&args.csv, &args.save_dir, &args.evidence].into_iter().flatten())
        .sockets(sockets)
        .secret(args.engine.has_secret())
        .quiet(args.quiet);
    let confined = sandbox::confine(&needs)?;
    if args.verbose {
        show::say(&sandbox::words(&confined));
    }
    Ok(())
}

/// `90`, `90s`, `5m`, `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    let seconds =
        digits.parse().ok().zip(unit).and_then(|(n, unit): (u64, u64)| n.checked_mul(unit));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "expected a time, such as 90s, 5m or 2h".to_owned())
}

/// `192.168.1.0/24`.
fn subnet(text: &str) -> Result<Network, String> {
    text.parse()
        .map_err(|_| "expected an IPv4 subnet from /16 to /32, such as 192.168.1.0/24".to_owned())
}

fn show_report(
    args: &Args,
    (title, seed): (&str, &str),
    report: &Report,
    style: screen::Style,
    end: &End,
    input: &Input,
) -> anyhow::Result<()> {
    if args.json {
        let mut json = report.to_json();
        json["seed"] = seed.into();
        json["partial"] = matches!(end, End::Broken(_)).into();
        if let End::Broken(why) = end {
            json["broken"] = why.to_string().into();
        }
        if let Input::Records(records) = input {
            json["exporters"] = records.collector().to_json();
        }
        return show::print_json(&json);
    }
    let mut screen = screen::render(title, report, style);
    if let Input::Records(records) = input {
        screen.push('\n');
        screen.push_str(&exporters::render(records.collector()));
    }
    show::print(&screen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::Seed;
    use sidon_traffic::{Decoder, Filter, Generator, Mix, audit::Audit};

    #[test]
    fn a_violation_of_the_audit_is_status_five() {
        let settings = Settings { audit: true, ..Settings::new(Seed(1)) };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        let mix = Mix { packets: 1_000, ..Mix::default() };
        Generator::new(mix, 1).unwrap().for_each(|packet| engine.packet(&packet));
        let mut report = engine.finish().0;
        let broken = || End::Broken("cut".into());
        assert_eq!(status(&report, &End::Over, false, false), 0);
        assert_eq!(status(&report, &End::Over, true, false), 4);
        assert_eq!(status(&report, &broken(), true, false), 3);
        assert_eq!(status(&report, &broken(), true, true), 1);
        let mut audit = Audit::default();
        audit.hosts.violations = 1;
        report.audit = Some(audit);
        for (end, alarmed) in [(End::Over, false), (End::Over, true), (broken(), false)] {
            assert_eq!(status(&report, &end, alarmed, true), 5);
        }
    }
}
