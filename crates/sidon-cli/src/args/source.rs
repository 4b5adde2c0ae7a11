//! Arguments that name the source of the traffic.

use crate::plan::count::memory;
use anyhow::Context;
use sidon_traffic::{
    Decoder, Filter, Source, Tunnels,
    drive::{Capture, Interface, Records, Traffic},
    export::Listener,
    filter::NotAFilter,
    live::{Live, Options},
};
use std::path::PathBuf;

/// One of `--read`, `--interface` and `--netflow`: the group `source`, which a command may extend.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// A capture: pcap or pcapng, plain or in gzip, zstd or lz4; - is standard input
    #[arg(short, long, value_name = "FILE", group = "source")]
    pub(crate) read: Option<PathBuf>,
    /// An interface to read, with CAP_NET_RAW, until the program is stopped
    #[arg(short, long, value_name = "NAME", group = "source")]
    pub(crate) interface: Option<String>,
    /// Memory that the kernel fills with packets of the interface
    #[arg(long, value_name = "BYTES", default_value = "8MiB", value_parser = memory, requires = "interface", conflicts_with_all = ["read", "netflow"])]
    pub(crate) buffer: u64,
    /// Receive NetFlow 5, 9 and IPFIX at this address and port (repeatable)
    #[arg(long, value_name = "ADDR:PORT", group = "source", conflicts_with = "expression")]
    pub(crate) netflow: Vec<String>,
    /// Templates of flow records; read if the file exists, and written with those learnt
    #[arg(long, value_name = "FILE", requires = "netflow", conflicts_with_all = ["read", "interface"])]
    pub(crate) templates: Option<PathBuf>,
    /// Look into GRE, VXLAN, Geneve and IP in IP: the innermost packet counts
    #[arg(long)]
    pub(crate) inner: bool,
    /// Which packets count, as tcpdump takes it: host, net, port, tcp, vlan, and, or, not, ...
    #[arg(value_name = "EXPRESSION", trailing_var_arg = true)]
    pub(crate) expression: Vec<String>,
}

/// An open source.
pub(crate) enum Input {
    Capture(Box<Capture>),
    Interface(Interface),
    Records(Box<Records>),
}

impl SourceArgs {
    /// Opens the source, if one is named. A capture is delivered at the pace of its times,
    /// multiplied by `speed`, or without delays.
    pub(crate) fn open(&self, speed: Option<f64>) -> anyhow::Result<Option<Input>> {
        if let Some(path) = &self.read {
            let source = Source::open(path).with_context(|| path.display().to_string())?;
            return Ok(Some(Input::Capture(Box::new(Capture::new(source, path, speed)))));
        }
        if let Some(name) = &self.interface {
            let live = Live::open(name, Options { ring: self.buffer, ..Options::default() })?;
            return Ok(Some(Input::Interface(Interface::new(live, name))));
        }
        if self.netflow.is_empty() {
            return Ok(None);
        }
        let listener = Listener::bind(&self.netflow).with_context(|| self.netflow.join(", "))?;
        let records = Records::new(listener, self.templates.clone());
        Ok(Some(Input::Records(Box::new(records.map_err(anyhow::Error::from_boxed)?))))
    }

    /// The filter that the expression names.
    pub(crate) fn filter(&self) -> Result<Filter, NotAFilter> {
        self.expression.join(" ").parse()
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
