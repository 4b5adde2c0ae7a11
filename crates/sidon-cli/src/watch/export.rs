//! `--netflow`: records of flows from routers in place of packets.

use super::{
    Args, End,
    beat::{Beat, WAIT},
    signals::Signals,
};
use crate::{
    saved::rotate::Rotation,
    show::{self, whole},
};
use anyhow::Context;
use sidon_traffic::{
    Engine,
    export::{Collector, Limits, Listener, Templates},
};
use std::{
    fmt::Write,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

/// Sockets, and what came from them.
pub(super) struct Export {
    listener: Listener,
    collector: Collector,
}

impl Export {
    /// Binds the sockets and reads the templates.
    pub(super) fn open(args: &Args) -> anyhow::Result<Self> {
        let listener = Listener::bind(&args.netflow).with_context(|| args.netflow.join(", "))?;
        let templates = match &args.templates {
            Some(path) => Templates::read(path).with_context(|| path.display().to_string())?,
            None => Templates::default(),
        };
        Ok(Export { listener, collector: Collector::new(Limits::default(), templates) })
    }

    /// Where it listens.
    pub(super) fn name(&self, args: &Args) -> String {
        format!("flow records at {}", args.netflow.join(", "))
    }

    /// What the exporters sent, one object each.
    pub(super) fn to_json(&self) -> serde_json::Value {
        self.collector.to_json()
    }

    /// Takes in records until something ends it.
    pub(super) fn watch(
        &mut self,
        args: &Args,
        engine: &mut Engine,
        signals: &Signals,
        mut rotation: Option<&mut Rotation>,
    ) -> anyhow::Result<End> {
        let limit = args.count.unwrap_or(u64::MAX);
        let mut beat = Beat::new(args, signals);
        self.listener.start();
        let mut looked = Instant::now();
        let end = loop {
            let datagram = self.listener.next(WAIT);
            if let Some(rotation) = &mut rotation {
                rotation.now(engine)?;
            }
            if let Some(datagram) = &datagram {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let now = now.as_nanos() as u64;
                let collector = &mut self.collector;
                collector.datagram(datagram.from, &datagram.bytes, now, |record| {
                    engine.record(record);
                });
            }
            let before = rotation.as_ref().map_or(0, |rotation| rotation.seen);
            if before + engine.ledger().seen >= limit {
                break End::Enough;
            }
            if datagram.is_none() || looked.elapsed() >= WAIT {
                looked = Instant::now();
                if let Some(end) = beat.beat(engine, || self.collector.list())? {
                    break end;
                }
                self.save(args)?;
            }
        };
        beat.clear()?;
        engine.note_source(self.collector.list());
        self.save(args)?;
        Ok(end)
    }

    fn save(&mut self, args: &Args) -> anyhow::Result<()> {
        let Some(path) = &args.templates else { return Ok(()) };
        self.collector.templates().write(path).with_context(|| path.display().to_string())
    }

    /// A few lines for each exporter.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        for exporter in self.collector.exporters() {
            let (origin, counts) = (exporter.origin(), exporter.counts());
            let kind = match origin.version {
                10 => "IPFIX".to_owned(),
                version => format!("NetFlow {version}"),
            };
            let _ = write!(
                text,
                "\nEXPORTER {}, {kind}, domain {}: {} records, {} packets, {}",
                origin.address,
                origin.domain,
                whole(counts.counted),
                whole(counts.packets),
                show::bytes(counts.bytes),
            );
            if let Some(sampling) = exporter.sampling() {
                let _ =
                    write!(text, "; estimated x{}, from {}", whole(sampling.rate), sampling.from);
            }
            let troubles = [
                ("records lost", counts.records_lost),
                ("datagrams lost", counts.datagrams_lost),
                ("sets wait for their template", counts.waiting),
                ("sets given up", counts.given_up),
                ("sets not understood", counts.not_understood),
                ("records unexplained", counts.unexplained),
                ("records without addresses", counts.without_addresses),
                ("datagrams malformed", counts.malformed),
            ];
            let troubles = troubles.iter().filter(|(_, times)| *times > 0);
            let troubles: Vec<_> =
                troubles.map(|(what, times)| format!("{} {what}", whole(*times))).collect();
            if !troubles.is_empty() {
                let _ = write!(text, "\n  {}", troubles.join(", "));
            }
            for unknown in exporter.not_known() {
                let _ = write!(text, "\n  not known: {unknown}");
            }
        }
        text
    }
}
