//! `sidon watch`: traffic in, answers with their certainty out, in fixed memory.

mod beat;
mod csv;
mod export;
mod known;
mod live;
pub(crate) mod screen;
mod signals;

use crate::{
    machine,
    plan::count::memory,
    saved::{
        file, found,
        rotate::{self, Rotation},
    },
    show,
};
use anyhow::Context;
use export::Export;
use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, Report, Settings, Source, Tunnels,
    event::Event,
    live::{Confined, Live, Options},
    monitor::subnet::Watched,
    source::Broken,
};
use signals::Signals;
use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex},
    time::Duration,
};

/// Reads a capture, an interface or flow records and reports what is on the wire, in memory that a flood cannot move
///
/// One screen: alarms, the heaviest flows, hosts and ports, the states of TCP connections, hosts that
/// behave like peers, new source addresses by subnet, and what became of every packet. A figure marked = is exact; one marked <= is at most that, and the
/// least it can be stands beside it. All tables are made before the first packet and never grow.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
EXIT STATUS
  0  the whole capture was read
  1  something failed: no such file, not a capture, no right to read an interface
  2  the command line, the filter expression or a machine is wrong
  3  the capture is broken off or damaged: the report covers everything before that;
     or the interface went down
  4  an alarm was raised, with --exit-on-alarm

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
    /// The capture: pcap or pcapng, plain or in gzip, zstd or lz4; - is standard input
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["interface", "netflow", "list_interfaces"])]
    read: Option<PathBuf>,
    /// An interface to read, with CAP_NET_RAW, until SIGINT, -c or --duration
    #[arg(short, long, value_name = "NAME", conflicts_with = "read")]
    interface: Option<String>,
    /// Take in NetFlow 5, 9 and IPFIX at this address and port instead (repeatable)
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["read", "interface", "expression"])]
    netflow: Vec<String>,
    /// Templates of flow records that were learnt; read if it exists, and written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["read", "interface"])]
    templates: Option<PathBuf>,
    /// List the interfaces
    #[arg(short = 'D', long)]
    list_interfaces: bool,
    /// Stop after so long: 90, 90s, 5m, 2h
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "read")]
    duration: Option<Duration>,
    /// Memory that the kernel fills with packets of the interface
    #[arg(long, value_name = "BYTES", default_value = "8MiB", value_parser = memory)]
    buffer: u64,
    /// What counts, as tcpdump takes it: host, net, port, tcp, vlan, and, or, not, ...
    #[arg(value_name = "EXPRESSION", trailing_var_arg = true)]
    expression: Vec<String>,
    /// Memory for all tables
    #[arg(short, long, value_name = "BYTES", default_value = "16MiB", value_parser = memory)]
    memory: u64,
    /// Threads that own tables; the answers are the same for any number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    threads: u8,
    /// Stop after so many packets
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// How many of the heaviest to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: u16,
    /// Look into GRE, VXLAN, Geneve and IP in IP: the innermost packet counts
    #[arg(long)]
    inner: bool,
    /// Count the packets of every host of this subnet exactly (/16 or smaller, repeatable)
    #[arg(long, value_name = "SUBNET")]
    subnet: Vec<Watched>,
    /// Run the state machine in this TOML file over the packets (see sidon machine; up to 4)
    #[arg(long, value_name = "FILE")]
    machine: Vec<PathBuf>,
    /// Source addresses that are not new; read if it exists, and written with those seen
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Run exact twins beside every table, and compare (needs memory that grows)
    #[arg(long)]
    audit: bool,
    /// Exit with status 4 if an alarm was raised
    #[arg(long)]
    exit_on_alarm: bool,
    /// Print one JSON object instead of a screen
    #[arg(long)]
    json: bool,
    /// Write what happens as it happens, a JSON object a line; - is standard output
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write the tables of the report to this directory
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Write everything that is known at the end to this file, for sidon show and sidon merge. Not in
    /// it: twins of --audit, and suspicion that was no alarm yet
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Begin anew after every period of so long (30s, 5m, 1h, 1d) of packet time, and write each to a
    /// file of its own: merged, they give the sum. The report at the end is of the last period
    #[arg(long, value_name = "TIME", value_parser = rotate::period, requires = "save_dir",
          conflicts_with_all = ["save", "known", "audit"])]
    rotate: Option<u64>,
    /// Where the files of --rotate go, each named by the start of its period
    #[arg(long, value_name = "DIR", requires = "rotate")]
    save_dir: Option<PathBuf>,
    /// The tables' secret; without it a new one is drawn for every run. Files of several runs or
    /// hosts can be merged if it is the same
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Addresses are never turned into names here; accepted for habit's sake
    #[arg(short)]
    n: bool,
    /// No progress bar, and only the heaviest flows and the ledger
    #[arg(short, long)]
    quiet: bool,
    /// More of everything
    #[arg(short, long)]
    verbose: bool,
}

/// How reading ended.
enum End {
    Whole,
    Broken(Broken),
    Down(std::io::Error),
    Interrupted,
    Enough,
}

/// Where packets come from.
enum Input {
    Capture(Box<Source>),
    Interface(Live),
    Export(Box<Export>),
}

impl Input {
    fn open(args: &Args) -> anyhow::Result<Self> {
        if let Some(name) = &args.interface {
            let options = Options { ring: args.buffer, ..Options::default() };
            return Ok(Input::Interface(Live::open(name, options)?));
        }
        if !args.netflow.is_empty() {
            return Ok(Input::Export(Box::new(Export::open(args)?)));
        }
        let path = args.read.as_deref().unwrap_or(Path::new("-"));
        let source = Source::open(path).with_context(|| path.display().to_string())?;
        Ok(Input::Capture(Box::new(source)))
    }

    /// What it is called, and what it is.
    fn name(&self, args: &Args) -> [String; 2] {
        match self {
            Input::Capture(source) => {
                let path = args.read.as_deref().unwrap_or(Path::new("-"));
                [path.display().to_string(), format!("{:?}", source.format())]
            }
            Input::Interface(live) => {
                [args.interface.clone().unwrap_or_default(), format!("live, {}", live.link())]
            }
            Input::Export(export) => [export.name(args), "live".to_owned()],
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list_interfaces {
        live::list()?;
        return Ok(ExitCode::SUCCESS);
    }
    let filter: Filter = match args.expression.join(" ").parse() {
        Ok(filter) => filter,
        Err(why) => {
            eprintln!("sidon: {why}");
            return Ok(ExitCode::from(2));
        }
    };
    let seed = match args.seed {
        Some(seed) => Seed(seed.into()),
        None => Seed::random().context("no random seed")?,
    };
    let machines = args.machine.iter().map(|file| machine::definition(file));
    let machines = match machines.collect::<anyhow::Result<Vec<_>>>() {
        Ok(machines) => machines,
        Err(why) => {
            eprintln!("sidon: {why}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut input = Input::open(args)?;
    let tunnels = if args.inner { Tunnels::Inner } else { Tunnels::Outer };
    let top = if args.verbose { args.top.max(30) } else { args.top };
    let events = args.events.as_ref().map(open_events).transpose()?;
    let settings = Settings {
        memory: args.memory,
        threads: args.threads.into(),
        audit: args.audit,
        events: events.clone(),
        subnets: args.subnet.clone(),
        machines,
        top: top.into(),
        ..Settings::new(seed)
    };
    let mut rotation = match (&args.save_dir, args.rotate) {
        (Some(directory), Some(period)) => Some(Rotation::new(directory.clone(), period)?),
        _ => None,
    };
    let _shared = rotation.as_ref().map(|one| found::share(one.directory())).transpose()?;
    let signals = match input {
        Input::Capture(_) => Signals::stopping()?,
        Input::Interface(_) | Input::Export(_) => {
            // Everything is open now; what follows cannot do more than it must.
            confine(args);
            Signals::all()?
        }
    };
    let mut engine = Engine::new(settings, filter, Decoder { tunnels })?;
    if let Some(path) = &args.known {
        engine.learn(known::read(path)?);
    }
    engine.start();
    let end = match &mut input {
        Input::Capture(source) => read(args, source, &mut engine, &signals, rotation.as_mut())?,
        Input::Interface(live) => {
            live::watch(args, live, &mut engine, &signals, rotation.as_mut())?
        }
        Input::Export(export) => export.watch(args, &mut engine, &signals, rotation.as_mut())?,
    };
    let mut snapshot = engine.snapshot();
    if matches!(end, End::Broken(_) | End::Down(_)) {
        snapshot.set_partial();
    }
    let report = snapshot.report();
    if let Some(path) = &args.save {
        file::replace(path, |out| snapshot.write(out))?;
    }
    if let Some(rotation) = &mut rotation {
        rotation.end(&snapshot)?;
    }
    if let Some(path) = &args.known {
        let shards = snapshot.shards().iter();
        known::write(path, shards.flat_map(|shard| shard.sources.addresses()))?;
    }
    if let Some(directory) = &args.csv {
        csv::write(directory, &report)?;
    }
    let [name, kind] = input.name(args);
    let exporters = match &input {
        Input::Export(export) => Some(&**export),
        _ => None,
    };
    show_report(args, [&name, &kind], &report, &end, exporters)?;
    if let (Some(rotation), false) = (&rotation, args.quiet) {
        let (packets, files) = (show::whole(rotation.seen), rotation.files);
        eprintln!("sidon: {packets} packets in {files} files; the report is of the last one");
    }
    let failed: Option<&dyn std::fmt::Display> = match &end {
        End::Broken(broken) => Some(broken),
        End::Down(why) => Some(why),
        _ => None,
    };
    match failed {
        Some(why) => {
            eprintln!("sidon: {name}: {why}");
            Ok(ExitCode::from(3))
        }
        _ if args.exit_on_alarm
            && (!report.alarms.is_empty() || rotation.is_some_and(|one| one.alarmed)) =>
        {
            Ok(ExitCode::from(4))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Gives up all rights but to files in the folders of those that are read or written later.
fn confine(args: &Args) {
    let later = [&args.known, &args.csv, &args.templates, &args.save, &args.save_dir];
    let Confined { powerless, files } =
        sidon_traffic::live::give_up(later.into_iter().flatten().map(PathBuf::as_path));
    if !powerless {
        eprintln!("sidon: capabilities could not be given up");
    }
    if args.verbose {
        let files = match files {
            Some(true) => "confined by Landlock",
            Some(false) => "confined by Landlock, as far as this kernel has it",
            None => "not confined: this kernel has no Landlock",
        };
        eprintln!("sidon: no capabilities left; files {files}");
    }
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
        .ok_or_else(|| format!("{text:?} is not a time like 90s, 5m or 2h"))
}

fn read(
    args: &Args,
    source: &mut Source,
    engine: &mut Engine,
    signals: &Signals,
    mut rotation: Option<&mut Rotation>,
) -> anyhow::Result<End> {
    /// Packets between two looks at the clock and the signals.
    const STRIDE: u64 = 1 << 14;
    let bar = match source.size() {
        Some(size) if !args.quiet => show::progress(size),
        _ => indicatif::ProgressBar::hidden(),
    };
    bar.set_message("reading");
    let start = std::time::Instant::now();
    let limit = args.count.unwrap_or(u64::MAX);
    let end = loop {
        let before = rotation.as_ref().map_or(0, |rotation| rotation.seen);
        let seen = before + engine.ledger().seen;
        if seen >= limit {
            break End::Enough;
        }
        if seen.is_multiple_of(STRIDE) {
            if signals.stop() {
                break End::Interrupted;
            }
            let rate = seen as f64 / start.elapsed().as_secs_f64().max(1e-9) / 1e6;
            bar.set_position(source.taken());
            bar.set_message(format!("{rate:.1} M packets/s"));
        }
        match source.next() {
            Ok(Some(frame)) => {
                if let Some(rotation) = &mut rotation {
                    rotation.at(frame.time_ns, engine)?;
                }
                engine.frame(&frame);
            }
            Ok(None) => break End::Whole,
            Err(broken) => break End::Broken(broken),
        }
    };
    bar.finish_and_clear();
    Ok(end)
}

fn open_events(path: &PathBuf) -> anyhow::Result<sidon_traffic::engine::Sink> {
    let mut output: Box<dyn Write + Send> = if path.as_os_str() == "-" {
        Box::new(std::io::stdout())
    } else {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        Box::new(BufWriter::new(file))
    };
    Ok(Arc::new(Mutex::new(move |event: Event| {
        if let Err(why) = writeln!(output, "{}", event.to_json())
            && why.kind() != std::io::ErrorKind::BrokenPipe
        {
            eprintln!("sidon: events: {why}");
        }
    })))
}

fn show_report(
    args: &Args,
    [name, kind]: [&str; 2],
    report: &Report,
    end: &End,
    exporters: Option<&Export>,
) -> anyhow::Result<()> {
    if args.json {
        let mut json = report.to_json();
        json["partial"] = matches!(end, End::Broken(_) | End::Down(_)).into();
        match end {
            End::Broken(broken) => json["broken"] = broken.to_string().into(),
            End::Down(why) => json["broken"] = why.to_string().into(),
            _ => {}
        }
        if let Some(export) = exporters {
            json["exporters"] = export.to_json();
        }
        return show::print(&serde_json::to_string_pretty(&json)?);
    }
    let style = screen::Style::new(args.quiet, args.verbose);
    let ending = match end {
        End::Whole => String::new(),
        End::Enough => ", stopped as asked".to_owned(),
        End::Interrupted => ", interrupted".to_owned(),
        End::Broken(_) => ", broken off".to_owned(),
        End::Down(_) => ", went down".to_owned(),
    };
    let title = format!("{name} ({kind}{ending})");
    let mut screen = screen::render(&title, report, style);
    if let Some(export) = exporters {
        screen.push('\n');
        screen.push_str(&export.render());
    }
    show::print(&screen)
}
