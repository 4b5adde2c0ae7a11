//! Arguments that name the source of the traffic.

use super::number::{memory, memory_text, within};
use crate::show;
use anyhow::anyhow;
use sidon_traffic::{
    Decoder, Filter, Source, Tunnels,
    drive::{Capture, Interface, Records, Traffic},
    export::Listener,
    live::{Live, LiveError, Options},
    source::{Limits, SourceError},
};
use std::{
    fs::File,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Limits on a capture that is much larger than its file.
#[derive(Debug, clap::Args)]
pub(crate) struct LimitArgs {
    /// The most bytes of a compressed capture after decompression
    #[arg(long, value_name = "BYTES", default_value = "64GiB", value_parser = memory, hide_short_help = true)]
    input_most: u64,
    /// The most bytes after decompression per byte of the file, from 256 MiB on
    #[arg(long, value_name = "N", default_value = "250", value_parser = within::<u64>(1..=1 << 40), hide_short_help = true)]
    ratio_most: u64,
    /// The most bytes of pcapng blocks between two packets
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = memory, hide_short_help = true)]
    skip_most: u64,
}

impl LimitArgs {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            bytes: self.input_most,
            ratio: self.ratio_most,
            skipped: self.skip_most,
            ..Limits::default()
        }
    }
}

/// Makes the [`LimitArgs`] of a command with several sources arguments of `--read` only.
fn limits_with_read(arg: clap::Arg) -> clap::Arg {
    match arg.get_id().as_str() {
        "input_most" | "ratio_most" | "skip_most" => {
            arg.requires("read").conflicts_with_all(["interface", "netflow"])
        }
        _ => arg,
    }
}

/// One of `--read`, `--interface` and `--netflow`: the group `source`, which a command may extend.
#[derive(Debug, clap::Args)]
#[command(mut_args(limits_with_read))]
pub(crate) struct SourceArgs {
    /// Capture to read: pcap or pcapng, plain or in gzip, zstd or lz4; - is standard input
    #[arg(short, long, value_name = "FILE", group = "source")]
    pub(crate) read: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
    /// The most files of periods from a capture. All later packets count in the last one
    #[arg(long, value_name = "N", default_value = "1000", value_parser = within::<u64>(1..=1 << 40), requires_all = ["read", "save_dir"], conflicts_with_all = ["interface", "netflow"], hide_short_help = true)]
    files_most: u64,
    /// Network interface to read until Ctrl-C; needs root or CAP_NET_RAW
    #[arg(short, long, value_name = "NAME", group = "source")]
    pub(crate) interface: Option<String>,
    /// Size of the kernel's packet buffer for --interface
    #[arg(long, value_name = "BYTES", default_value = "8MiB", value_parser = memory, requires = "interface", conflicts_with_all = ["read", "netflow"])]
    pub(crate) buffer: u64,
    /// Address and port at which to receive NetFlow 5, 9 and IPFIX (repeatable)
    #[arg(long, value_name = "ADDR:PORT", group = "source", conflicts_with = "expression")]
    pub(crate) netflow: Vec<String>,
    /// File of NetFlow 9 and IPFIX templates: read at the start if it exists, and written with
    /// new templates
    #[arg(long, value_name = "FILE", requires = "netflow", conflicts_with_all = ["read", "interface"])]
    pub(crate) templates: Option<PathBuf>,
    /// Report the innermost packet of GRE, VXLAN, Geneve and IP-in-IP tunnels
    #[arg(long)]
    pub(crate) inner: bool,
    /// Filter for the packets to report, as in tcpdump: host, net, port, tcp, vlan, and, or, not, ..
    /// Options go before it
    #[arg(value_name = "EXPRESSION", trailing_var_arg = true)]
    pub(crate) expression: Vec<String>,
}

/// A source that is open, and of which nothing was read.
pub(crate) enum Opened {
    /// The capture in this file, or without one in standard input.
    Capture(Option<File>),
    Interface(Live),
    Sockets(Listener),
}

/// A source that is being read.
pub(crate) enum Input {
    Capture(Box<Capture>),
    Interface(Interface),
    Records(Box<Records>),
}

impl SourceArgs {
    /// Opens the source, if one is named. The program may confine itself before it reads the first
    /// byte by [`SourceArgs::start`].
    pub(crate) fn open(&self) -> anyhow::Result<Option<Opened>> {
        if let Some(path) = &self.read {
            let file = match path.as_os_str() == "-" {
                true => None,
                false => Some(File::open(path).map_err(|why| unread(path, why))?),
            };
            return Ok(Some(Opened::Capture(file)));
        }
        if let Some(name) = &self.interface {
            let options = Options { ring: self.buffer, ..Options::default() };
            let live = Live::open(name, options).map_err(|why| match why {
                LiveError::Ring { .. } => {
                    let size = memory_text(self.buffer);
                    anyhow!("--buffer {size} is not within its limits; type 512KiB to 4095MiB")
                }
                why => why.into(),
            })?;
            return Ok(Some(Opened::Interface(live)));
        }
        if self.netflow.is_empty() {
            return Ok(None);
        }
        let listener = Listener::bind(&self.netflow).map_err(|why| {
            let all = self.netflow.join(", ");
            let all = show::printable(&all);
            match why.kind() {
                ErrorKind::InvalidInput => {
                    anyhow!("--netflow {all}: expected an address and a port, such as 0.0.0.0:2055")
                }
                _ => anyhow!(
                    "cannot receive at --netflow {all}: {why}; give an address of this machine and \
                     a free port, such as 0.0.0.0:2055"
                ),
            }
        })?;
        Ok(Some(Opened::Sockets(listener)))
    }

    /// Starts to read an open source. A capture is delivered at the pace of its times, multiplied by
    /// `speed`, or without delays.
    pub(crate) fn start(&self, opened: Opened, speed: Option<f64>) -> anyhow::Result<Input> {
        Ok(match opened {
            Opened::Capture(file) => {
                let path = self.read.as_deref().unwrap_or(Path::new("-"));
                let source = match file {
                    Some(file) => Source::from_file(file, path),
                    None => Source::from_reader(std::io::stdin()),
                };
                let mut source = source.map_err(|why| not_a_capture(path, why))?;
                source.set_limits(self.limits.limits());
                Input::Capture(Box::new(Capture::new(source, path, speed)))
            }
            Opened::Interface(live) => {
                Input::Interface(Interface::new(live, self.interface.as_deref().unwrap_or("?")))
            }
            Opened::Sockets(listener) => {
                let records = Records::new(listener, self.templates.clone());
                let mut records =
                    records.map_err(|why| anyhow!("cannot read the templates {why}"))?;
                records.start().map_err(super::thread_refusal)?;
                Input::Records(Box::new(records))
            }
        })
    }

    /// The most periods of this source, each of which becomes a file. Those of an interface or of
    /// sockets follow the time of day, and have no limit.
    pub(crate) fn periods_most(&self) -> Option<u64> {
        self.read.as_ref().map(|_| self.files_most)
    }

    /// The filter that the expression names.
    pub(crate) fn filter(&self) -> anyhow::Result<Filter> {
        let parsed = self.expression.join(" ").parse();
        parsed.map_err(|why: sidon_traffic::filter::NotAFilter| {
            let option = |word: &&String| {
                word.starts_with('-')
                    && word[1..].starts_with(|c: char| c == '-' || c.is_alphabetic())
            };
            match self.expression.iter().find(option).map(|option| show::printable(option)) {
                Some(option) => anyhow!(
                    "the option {option} comes after the filter expression; options go before it: \
                     type {option} before `{}`",
                    show::printable(&self.expression[0])
                ),
                None => anyhow!("the filter expression is wrong: {why}"),
            }
        })
    }

    pub(crate) fn decoder(&self) -> Decoder {
        Decoder { tunnels: if self.inner { Tunnels::Inner } else { Tunnels::Outer } }
    }
}

impl Input {
    pub(crate) fn traffic(&mut self) -> &mut dyn Traffic {
        match self {
            Input::Capture(capture) => &mut **capture,
            Input::Interface(interface) => interface,
            Input::Records(records) => &mut **records,
        }
    }

    pub(crate) fn into_traffic(self) -> Box<dyn Traffic + Send> {
        match self {
            Input::Capture(capture) => capture,
            Input::Interface(interface) => Box::new(interface),
            Input::Records(records) => records,
        }
    }
}

/// A file that cannot be opened.
fn unread(path: &Path, why: std::io::Error) -> anyhow::Error {
    anyhow!("cannot read the capture {}: {why}", show::path(path))
}

/// A file that is not a capture.
fn not_a_capture(file: &Path, why: SourceError) -> anyhow::Error {
    let path = show::path(file);
    match why {
        SourceError::Open { why, .. } => unread(file, why),
        SourceError::NotACapture { magic } if magic == *b"SIDN" => {
            anyhow!("{path} is not a capture but a saved file; type: sidon show {path}")
        }
        SourceError::Header(why) => anyhow!("{path} is not a capture that can be read: {why}"),
        why => anyhow!("{path} is not a capture that can be read: {why}"),
    }
}
