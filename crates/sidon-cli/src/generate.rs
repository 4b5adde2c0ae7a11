//! `sidon generate`: traffic from a seed, as a capture.

use crate::show;
use anyhow::{Context, bail, ensure};
use indicatif::ProgressBar;
use sidon_traffic::{
    Generator, Mix, Packet,
    generate::{Flood, Shares, scenario::Scenario, write_pcap},
};
use std::{
    fs::File,
    io::{BufWriter, IsTerminal, Write},
    net::SocketAddrV4,
    path::PathBuf,
};

/// Write a capture of made-up traffic, the same for the same seed
///
/// A network of clients in 10.0.0.0/8 browses, asks DNS, pings and exchanges with peers; sizes of
/// conversations follow Zipf's law. A scanner (203.0.113.66) and a SYN flood from forged addresses
/// can be added. Lengths and checksums are right, payloads are zeros. Servers are in 198.18.0.0/15
/// and 2001:db8::/32, which nobody owns.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The capture to write; `-` is standard output
    #[arg(short = 'w', long, value_name = "FILE")]
    write: PathBuf,
    /// How many packets in all
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1_000_000)]
    packets: u64,
    /// The seed: the same seed and options give the same bytes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Packets per second of the capture's time, without the flood
    #[arg(long, value_name = "N", default_value_t = Mix::default().rate)]
    rate: u64,
    /// How many hosts the network has
    #[arg(long, value_name = "N", default_value_t = Mix::default().clients)]
    clients: u32,
    /// How many servers there are, the first the most popular
    #[arg(long, value_name = "N", default_value_t = Mix::default().servers)]
    servers: u32,
    /// Conversations under way at a time
    #[arg(long, value_name = "N", default_value_t = Mix::default().active)]
    active: u32,
    /// How unequal conversations are: 0 all alike, 1 a few carry most
    #[arg(long, value_name = "Z", default_value_t = Mix::default().zipf)]
    zipf: f64,
    /// Of a hundred conversations, how many are over IPv6
    #[arg(long, value_name = "PERCENT", default_value_t = Mix::default().ipv6)]
    ipv6: u32,
    /// What new conversations are about, in parts; what is not named is none of it
    #[arg(long, value_name = "PARTS", value_parser = shares, default_value = "web=50,dns=40,peers=8,ping=2,scan=0")]
    mix: Shares,
    /// Add a SYN flood from so many forged addresses
    #[arg(long, value_name = "N")]
    flood: Option<u64>,
    /// Whom the flood hits
    #[arg(long, value_name = "ADDR:PORT", requires = "flood", default_value_t = Flood::default().victim)]
    victim: SocketAddrV4,
    /// After how many packets the flood starts
    #[arg(long, value_name = "N", requires = "flood", default_value_t = 0)]
    flood_after: u64,
    /// Of a hundred packets while it lasts, how many are the flood's
    #[arg(long, value_name = "PERCENT", requires = "flood", default_value_t = Flood::default().share)]
    flood_share: u32,
    /// Repeat the flood: packets from one start to the next; 0 for a single flood
    #[arg(long, value_name = "N", requires = "flood", default_value_t = Flood::default().every)]
    flood_every: u64,
    /// Write the traffic of this scenario instead (see scenarios/README.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["packets", "rate", "clients", "servers", "active", "zipf", "ipv6", "mix", "flood"])]
    scenario: Option<PathBuf>,
    /// What `units = 1.0` stands for in a scenario: a number of flows
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "scenario")]
    unit: u64,
    /// Bytes kept of each packet; 54 and above keep all headers without options
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 262_144, value_parser = clap::value_parser!(u32).range(1..=262_144))]
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
            part.split_once('=').ok_or_else(|| format!("expected NAME=PARTS, got `{part}`"))?;
        let place = match name.trim() {
            "web" => &mut shares.web,
            "dns" => &mut shares.dns,
            "peers" => &mut shares.peers,
            "ping" => &mut shares.ping,
            "scan" => &mut shares.scan,
            _ => return Err(format!("`{name}` is none of web, dns, peers, ping, scan")),
        };
        *place = parts.trim().parse().map_err(|_| format!("`{parts}` is not a number of parts"))?;
    }
    Ok(shares)
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(path) = &args.scenario {
        let scenario = Scenario::read(path)?;
        return write(args, scenario.packets(args.unit, args.seed), None);
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
    write(args, Generator::new(mix, args.seed)?, Some(args.packets))
}

/// Writes packets as a capture; `all` is their number, if that is known.
fn write(
    args: &Args,
    packets: impl Iterator<Item = Packet>,
    all: Option<u64>,
) -> anyhow::Result<()> {
    let output: Box<dyn Write> = if args.write.as_os_str() == "-" {
        let stdout = std::io::stdout();
        if stdout.is_terminal() {
            bail!("a capture is not for a terminal: send it to a file or another program");
        }
        Box::new(stdout.lock())
    } else {
        let path = args.write.display();
        Box::new(File::create(&args.write).with_context(|| format!("cannot write {path}"))?)
    };
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
    let written = write_pcap(packets, args.snaplen, BufWriter::with_capacity(1 << 18, output))?;
    bar.finish_and_clear();
    if let Some(all) = all {
        ensure!(written == all, "{written} packets written of {all}");
    }
    let seconds = (last - first.unwrap_or(last)) as f64 / 1e9;
    eprintln!(
        "{} packets, {} on the wire, {seconds:.3} s of traffic",
        show::whole(written),
        show::bytes(bytes)
    );
    Ok(())
}
