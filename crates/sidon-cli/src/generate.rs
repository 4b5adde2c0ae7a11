//! `sidon generate`: writes a capture of made-up traffic.

use crate::{
    args::{
        Files,
        number::{decimal, socket_v4, whole, within},
        refusal,
    },
    sandbox::{self, Needs},
    show,
    signals::Signals,
};
use anyhow::{anyhow, bail, ensure};
use indicatif::ProgressBar;
use sidon::Infeasible;
use sidon_traffic::{
    Generator, Mix, Packet,
    files::{self, Access, System},
    generate::{
        Flood, Shares,
        scenario::{PACKETS_MAX, Scenario, TooLarge},
        write_pcap,
    },
};
use std::{
    io::{self, BufWriter, IsTerminal, Write},
    net::SocketAddrV4,
    path::PathBuf,
};

/// Write a capture of made-up traffic
///
/// Clients in 10.0.0.0/8 browse the web, send DNS queries and pings, and exchange data with peers.
/// The sizes of conversations follow Zipf's law. A scanner (203.0.113.66) and a SYN flood from forged
/// addresses can be added. Lengths and checksums are right, payloads are zeros. Servers are in
/// 198.18.0.0/15 and 2001:db8::/32, which are reserved for tests. The same seed and options always
/// give the same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Capture to write; - is standard output
    #[arg(short = 'w', long, value_name = "FILE")]
    write: PathBuf,
    /// Number of packets
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1_000_000, value_parser = whole)]
    packets: u64,
    /// Seed of the traffic
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole)]
    seed: u64,
    /// Packets per second of capture time, without the flood
    #[arg(long, value_name = "N", default_value_t = Mix::default().rate, value_parser = whole)]
    rate: u64,
    /// Number of client hosts
    #[arg(long, value_name = "N", default_value_t = Mix::default().clients, value_parser = within::<u32>(0..=u32::MAX.into()))]
    clients: u32,
    /// Number of servers; the first is the most popular
    #[arg(long, value_name = "N", default_value_t = Mix::default().servers, value_parser = within::<u32>(0..=u32::MAX.into()))]
    servers: u32,
    /// Number of conversations at a time
    #[arg(long, value_name = "N", default_value_t = Mix::default().active, value_parser = within::<u32>(0..=u32::MAX.into()))]
    active: u32,
    /// Exponent of Zipf's law for the sizes of conversations, 0 to 2: at 0 all conversations have the
    /// same size, at 1 a few carry most packets
    #[arg(long, value_name = "Z", default_value_t = Mix::default().zipf, value_parser = decimal)]
    zipf: f64,
    /// Percentage of conversations over IPv6
    #[arg(long, value_name = "PERCENT", default_value_t = Mix::default().ipv6, value_parser = within::<u32>(0..=u32::MAX.into()))]
    ipv6: u32,
    /// Mix of new conversations, as weights; kinds not named get weight 0
    #[arg(long, value_name = "WEIGHTS", value_parser = shares, default_value = "web=50,dns=40,peers=8,ping=2,scan=0")]
    mix: Shares,
    /// Add a SYN flood from this number of forged addresses
    #[arg(long, value_name = "N", value_parser = whole)]
    flood: Option<u64>,
    /// Target of the flood
    #[arg(long, value_name = "ADDR:PORT", requires = "flood", default_value_t = Flood::default().victim, value_parser = socket_v4)]
    victim: SocketAddrV4,
    /// Number of packets before the flood
    #[arg(long, value_name = "N", requires = "flood", default_value_t = 0, value_parser = whole)]
    flood_after: u64,
    /// Percentage of packets that belong to the flood while it lasts
    #[arg(long, value_name = "PERCENT", requires = "flood", default_value_t = Flood::default().share, value_parser = within::<u32>(0..=u32::MAX.into()))]
    flood_share: u32,
    /// Repeat the flood: number of packets from one start to the next; 0 means a single flood
    #[arg(long, value_name = "N", requires = "flood", default_value_t = Flood::default().every, value_parser = whole)]
    flood_every: u64,
    /// Write the traffic of this scenario instead (see scenarios/README.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["packets", "rate", "clients", "servers", "active", "zipf", "ipv6", "mix", "flood"])]
    scenario: Option<PathBuf>,
    /// With --scenario: number of flows for `units = 1.0`
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = whole, requires = "scenario")]
    unit: u64,
    /// With --scenario: refuse a scenario with more packets than this
    #[arg(long, value_name = "N", default_value_t = PACKETS_MAX, value_parser = whole, requires = "scenario")]
    packets_most: u64,
    /// Bytes to keep of each packet; 54 keep the headers of IPv4 and TCP without options
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 262_144, value_parser = within::<u32>(1..=262_144))]
    snaplen: u32,
}

const EXAMPLES: &str = "\
Examples:
  sidon generate -w office.pcap -c 100000
  sidon generate -w - -c 10000 | tcpdump -nr -
  sidon generate -w flood.pcap -c 500000 --flood 200000 --flood-after 100000
  sidon generate -w scan.pcap -c 100000 --mix web=70,dns=20,scan=10
  sidon generate -w carpet.pcap --scenario scenarios/overload/8-carpet.toml";

/// `web=50,dns=40` and so on.
fn shares(text: &str) -> Result<Shares, String> {
    let mut shares = Shares { web: 0, dns: 0, peers: 0, ping: 0, scan: 0 };
    for part in text.split(',') {
        let (name, parts) =
            part.split_once('=').ok_or_else(|| format!("expected NAME=WEIGHT, got `{part}`"))?;
        let weight = match name.trim() {
            "web" => &mut shares.web,
            "dns" => &mut shares.dns,
            "peers" => &mut shares.peers,
            "ping" => &mut shares.ping,
            "scan" => &mut shares.scan,
            _ => return Err(format!("expected web, dns, peers, ping or scan, got `{name}`")),
        };
        *weight = parts.trim().parse().map_err(|_| {
            format!("expected a whole number as the weight of {name}, got `{parts}`")
        })?;
    }
    Ok(shares)
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    with_output(Files::default().reads("--scenario", &args.scenario), args).check()?;
    if let Some(path) = &args.scenario {
        // A scenario may include files of the same directory.
        let included = sidon_traffic::files::directory_of(path);
        sandbox::confine(&Needs::nothing().reads([&included]).outputs([&args.write]))?;
        let scenario =
            Scenario::read(path).map_err(|why| anyhow!("cannot read the scenario {why}"))?;
        with_output(Files::default().reads("--scenario", &scenario.files), args).check()?;
        let packets = scenario.packets(args.unit, args.seed, args.packets_most);
        let packets = packets.map_err(|why| {
            let path = show::path(path);
            match why {
                TooLarge::Packets { .. } => anyhow!(
                    "cannot generate {path}: {why}; type a larger --packets-most, or a smaller --unit"
                ),
                why => anyhow!("cannot generate {path}: {why}"),
            }
        })?;
        return write(args, packets, None);
    }
    let flood = args.flood.map(|sources| Flood {
        sources,
        victim: args.victim,
        after: args.flood_after,
        share: args.flood_share,
        every: args.flood_every,
        ..Flood::default()
    });
    let mix = Mix {
        packets: args.packets,
        rate: args.rate,
        clients: args.clients,
        servers: args.servers,
        active: args.active,
        zipf: args.zipf,
        ipv6: args.ipv6,
        shares: args.mix,
        flood,
        ..Mix::default()
    };
    let generator = Generator::new(mix, args.seed).map_err(refused)?;
    write(args, generator, Some(args.packets))
}

/// Adds the file to write; `-` is standard output.
fn with_output(files: Files, args: &Args) -> Files {
    match args.write.as_os_str() == "-" {
        true => files.appends("-w", [&args.write]),
        false => files.replaces("-w", [&args.write]),
    }
}

fn refused(why: Infeasible) -> anyhow::Error {
    match why {
        Infeasible::OutOfRange { name: "sum of shares", got, .. } => {
            anyhow!("the weights of --mix add up to {got}; type at least one weight above 0")
        }
        why => refusal(why, |name| match name {
            "rate" => Some("--rate"),
            "clients" => Some("--clients"),
            "servers" => Some("--servers"),
            "active" => Some("--active"),
            "zipf" => Some("--zipf"),
            "ipv6" => Some("--ipv6"),
            "sources" => Some("--flood"),
            "share" => Some("--flood-share"),
            _ => None,
        }),
    }
}

/// Writes packets as a capture. `all` is their number, if it is known.
fn write(
    args: &Args,
    packets: impl Iterator<Item = Packet>,
    all: Option<u64>,
) -> anyhow::Result<()> {
    let to_stdout = args.write.as_os_str() == "-";
    if to_stdout && io::stdout().is_terminal() {
        bail!(
            "-w - would write a capture to the terminal; type -w FILE, or send it to another \
             program with |"
        );
    }
    let signals = Signals::stopping()?;
    let bar = all.map_or_else(ProgressBar::hidden, show::progress);
    let (mut bytes, mut first, mut last) = (0u64, None, 0);
    let mut unshown = 0;
    let packets = packets.inspect(|packet| {
        bytes += u64::from(packet.wire_len);
        first.get_or_insert(packet.time_ns);
        last = packet.time_ns;
        unshown += 1;
        if unshown == 8_192 {
            bar.inc(unshown);
            unshown = 0;
        }
    });
    let packets = packets.take_while(|_| !signals.stop());
    let mut written = 0;
    let write = |out: &mut dyn Write| {
        written = write_pcap(packets, args.snaplen, BufWriter::with_capacity(1 << 18, out))?;
        // An error removes the file, which would have only a part of the packets.
        if signals.stop() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    };
    let done = if to_stdout {
        write(&mut io::stdout().lock())
    } else {
        files::replace(&System, &args.write, Access::Umask, write)
    };
    bar.finish_and_clear();
    done.map_err(|why| match why.kind() {
        _ if to_stdout => show::unwritten(why),
        _ => anyhow!("cannot write {}: {why}", show::path(&args.write)),
    })?;
    if let Some(all) = all {
        ensure!(written == all, "only {written} of {all} packets were written");
    }
    let seconds = (last - first.unwrap_or(last)) as f64 / 1e9;
    show::note(&format!(
        "{} packets, {} on the wire, {seconds:.3} s of traffic",
        show::whole(written),
        show::bytes(bytes)
    ));
    Ok(())
}
