//! `sidon serve`: the engine behind a page, an interface for programs, and metrics.

mod chart;
mod clients;
mod connection;
mod feed;
mod guard;
mod http;
mod metrics;
mod office;
mod save;
mod snapshot;
mod token;
mod totals;
mod web;

use crate::{
    args::{
        EngineArgs, Files, Opened, SeedArg, SourceArgs, engine_refusal,
        number::{socket, within},
        thread_refusal,
    },
    sandbox::{self, Needs, Sockets},
    saved::{
        found,
        rotate::{self, Rotation},
    },
    show,
    signals::hangup_ends,
};
use anyhow::{Context, bail};
use clients::{Limits, first};
use feed::End;
use guard::Guard;
use office::Office;
use save::Saving;
use sidon_traffic::{
    Engine,
    drive::{Generated, Traffic, now_ns},
    files::System,
    threads,
};
use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
};
use token::Token;

/// Serve the report of `sidon watch` live: a web page, JSON, and metrics
///
/// The command prints the address of the page, which needs no internet. /api/v1/report is the
/// report as JSON. /api/v1/query?q=... looks up one flow, address or service. /metrics is for
/// Prometheus. docs/SERVE.md describes them. On any other interface than loopback the server needs a
/// token, from --token-file or SIDON_TOKEN.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("source").required(true),
    mut_arg("top", |top| top.default_value("20").value_parser(within::<u16>(1..=1000))),
    mut_arg("seed", |seed| seed.help("Seed of the hash functions: a number below 2^128, decimal or hexadecimal (0x..), or random. Other users of this machine can read a command line, so give a secret seed with --seed-file or SIDON_SEED [default: that of the files in --save-dir, or random]")),
    override_usage = "\
sidon serve [OPTIONS] -r <FILE> [EXPRESSION]
       sidon serve [OPTIONS] -i <NAME> [EXPRESSION]
       sidon serve [OPTIONS] --netflow <ADDR:PORT>
       sidon serve [OPTIONS] --demo",
    after_long_help = "\
EXAMPLES
  sidon serve --demo
  sidon serve -i eth0
  sidon serve --netflow 0.0.0.0:2055 --templates templates.txt
  sidon serve -i eth0 --save-dir /var/lib/sidon --rotate 1h
  sidon serve -r trace.pcapng --listen 127.0.0.1:8080
  SIDON_TOKEN=$(openssl rand -hex 16) sidon serve --demo --listen 0.0.0.0:7700
  curl -s 'http://127.0.0.1:7700/api/v1/query?q=443/tcp'"
)]
pub(crate) struct Args {
    /// Address and port to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7700", value_parser = socket)]
    listen: SocketAddr,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Serve made-up traffic of an office, with a scan and a flood from time to time
    #[arg(long, group = "source")]
    demo: bool,
    /// Seconds of packet time per second. Without it, a capture is read as fast as possible
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    speed: Option<f64>,
    /// File with the token that clients must send: Authorization: Bearer TOKEN. Other users must not
    /// be able to read the file. Without this option, the token is that of SIDON_TOKEN, if any
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Refused: every user of the machine can read a command line
    #[arg(long, value_name = "TOKEN", hide = true, num_args = 0..=1)]
    token: Option<Option<String>>,
    /// A host name that requests may use, besides addresses and localhost (repeatable)
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Write each period to a file in this directory, for sidon show and sidon merge, and start the
    /// next period with empty tables. Without a seed, the seed of earlier files in DIR is used
    #[arg(long, value_name = "DIR")]
    save_dir: Option<PathBuf>,
    /// Length of a period in packet time: 30s, 5m, 1h, 1d
    #[arg(long, value_name = "TIME", default_value = rotate::PERIOD, value_parser = rotate::period, requires = "save_dir")]
    rotate: u64,
}

/// Threads that answer clients.
const WORKERS: usize = 2;

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if (1e-3..=1e6).contains(&speed) => Ok(speed),
        _ => Err("expected a number from 0.001 to 1000000".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.token.is_some() {
        let why = "--token would show the token to every user of this machine, in the list of \
                   processes; write it to a file and type --token-file FILE, or set SIDON_TOKEN\n";
        clap::Error::raw(clap::error::ErrorKind::UnknownArgument, why).exit();
    }
    let notes = args.save_dir.iter().map(|directory| found::note(directory));
    Files::default()
        .prints()
        .reads("-r", &args.source.read)
        .reads("--token-file", &args.token_file)
        .reads("--seed-file", &args.engine.seed_file)
        .reads("--thresholds", &args.engine.thresholds)
        .reads("--save-dir", &args.save_dir)
        .updates("--templates", &args.source.templates)
        .makes("--save-dir", notes)
        .check()?;
    let token = Token::find(args.token_file.as_deref())?;
    if token.is_none() && !args.listen.ip().is_loopback() {
        bail!(
            "--listen {} is not the loopback interface, so clients need a token; give one with \
             --token-file or SIDON_TOKEN",
            args.listen
        );
    }
    let given = args.engine.given_seed()?;
    let filter = args.source.filter()?;
    let thresholds = args.engine.open_thresholds()?;
    let opened = args.source.open()?;
    let listener = TcpListener::bind(args.listen)
        .with_context(|| format!("cannot listen at {}", args.listen))?;
    listener.set_nonblocking(true)?;
    socket2::SockRef::from(&listener).listen(clients::QUEUE)?;
    let limits = Limits::default();
    confine(args, token.is_some() || args.engine.has_secret())?;

    let saving = args
        .save_dir
        .as_ref()
        .map(|path| Saving::open(path, args.rotate, args.engine.memory))
        .transpose()?;
    let seed = match (given, saving.as_ref().and_then(Saving::seed)) {
        // New files can be merged with those of earlier runs.
        (None, Some(seed)) => seed,
        (seed, _) => seed.unwrap_or(SeedArg::Random).seed()?,
    };
    let traffic = traffic(args, opened, given)?;
    let thresholds = args.engine.thresholds(thresholds)?;
    let engine = Engine::new(args.engine.settings(seed, thresholds), filter, args.source.decoder());
    let mut engine = engine.map_err(engine_refusal)?;
    engine.start().map_err(thread_refusal)?;
    // One more for the feeder. The HTTP library panics without its threads.
    threads::probe("the HTTP server", WORKERS + 1).map_err(thread_refusal)?;
    saving.as_ref().map_or(Ok(()), Saving::start)?;
    show::print(&format!("http://{}/  {}", listener.local_addr()?, traffic.name()))?;
    let started = feed::start(engine, saving, args.source.periods_most(), traffic);
    let (feed, feeding) = started.map_err(|why| {
        // No packet was read, so the next run has nothing to tell about this one.
        let _ = args.save_dir.as_deref().map(found::Note::remove);
        thread_refusal(why)
    })?;
    let app = web::App { feed, guard: Guard::new(token, &args.host) };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    let served = runtime.block_on(serve(listener, app, limits));
    runtime.shutdown_background();
    let end = feeding.stop()?;
    served?;
    last_words(args, &end)
}

/// Gives up all rights except to the directories of templates and saved files, and to the sockets.
/// No byte was read of the input or of a client.
fn confine(args: &Args, secret: bool) -> anyhow::Result<()> {
    if let Some(directory) = &args.save_dir {
        rotate::make(&System, directory)?;
    }
    // The file with the process's own figures, which stays open.
    crate::demo::live::resident();
    let needs = Needs::nothing()
        .outputs(&args.source.templates)
        .directories(&args.save_dir)
        .sockets(Sockets::Serve)
        .secret(secret);
    sandbox::confine(&needs).map(drop)
}

fn traffic(
    args: &Args,
    opened: Option<Opened>,
    seed: Option<SeedArg>,
) -> anyhow::Result<Box<dyn Traffic + Send>> {
    if let Some(opened) = opened {
        return Ok(args.source.start(opened, args.speed)?.into_traffic());
    }
    let seed = seed.map_or(Ok(1), |seed| seed.seed().map(|seed| seed.0 as u64))?;
    let office = Office::new(seed, now_ns())?;
    let speed = args.speed.or(Some(1.0));
    Ok(Box::new(Generated::new(office, "demo: a made-up office", speed)))
}

/// Serves until a signal comes.
async fn serve(listener: TcpListener, app: web::App, limits: Limits) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let answer = move |request| app.clone().answer(request);
    let serving = clients::serve(listener, answer, web::refusal, limits);
    let interrupted = async {
        interrupt.recv().await;
    };
    let terminated = async {
        terminate.recv().await;
    };
    let mut hangup = hangup_ends().then(|| signal(SignalKind::hangup())).transpose()?;
    let hung_up = async {
        match &mut hangup {
            Some(hangup) => drop(hangup.recv().await),
            None => std::future::pending().await,
        }
    };
    first(serving, first(interrupted, first(terminated, hung_up))).await;
    Ok(())
}

fn last_words(args: &Args, end: &End) -> anyhow::Result<()> {
    let End { totals, allocated, rotation } = end;
    let mut words = format!(
        "{} packets seen, {} not accounted for; {} alarms; tables {}",
        show::whole(totals.seen),
        totals.balance(),
        show::whole(totals.alarms.iter().sum()),
        show::bytes(*allocated)
    );
    if let (Some(rotation), Some(directory)) = (rotation, &args.save_dir) {
        words += &format!("; {} files in {}", show::whole(rotation.files), show::path(directory));
    }
    show::print(&words)?;
    rotation.as_ref().and_then(Rotation::lost).map_or(Ok(()), Err)
}
