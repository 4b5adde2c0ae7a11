//! The report of one moment, and the figures of the last five minutes.

use super::{
    metrics,
    save::{Saved, Saving},
    totals::{Past, Totals, plus},
};
use serde_json::{Value, json};
use sidon_traffic::{
    Engine, Report,
    drive::now_ns,
    figure::Figure,
    monitor::{connections::OUTCOMES, incidents::Incident},
    time,
};
use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

/// Moments that are kept.
pub(super) const KEPT: usize = 300;
/// Subnets that a snapshot lists.
const SUBNETS: usize = 50;

/// Whether packets come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Status {
    Running,
    /// The source has ended, for this reason.
    Over(String),
}

/// Figures of one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// Seconds since the start.
    pub(super) at: f64,
    pub(super) packets_per_second: f64,
    pub(super) bits_per_second: f64,
    pub(super) tables: u64,
    pub(super) resident: Option<u64>,
    pub(super) half_open: Figure,
    pub(super) open: Figure,
    /// Connections that have not ended, in the order of [`OUTCOMES`].
    pub(super) present: [Figure; OUTCOMES.len()],
}

impl Moment {
    /// Connections that have not ended, with any of these outcomes.
    pub(super) fn present(&self, outcomes: impl IntoIterator<Item = usize>) -> Figure {
        outcomes.into_iter().fold(Figure::exact(0), |sum, i| plus(sum, self.present[i]))
    }
}

/// Everything that is served, of one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The report of the current period, which is the whole run unless periods are saved.
    pub(super) report: Report,
    /// Counts of the whole run.
    pub(super) totals: Totals,
    /// Alarms of earlier periods.
    earlier_alarms: Vec<Incident>,
    /// The saved files, with `--save-dir`.
    pub(super) saved: Option<Saved>,
    pub(super) status: Status,
    /// Nanoseconds since 1970.
    pub(super) made_ns: u64,
    /// How long the report took.
    pub(super) took: Duration,
    pub(super) uptime: Duration,
    pub(super) source: String,
    /// The counters of exporters of flow records, with `--netflow`.
    pub(super) exporters: Option<Value>,
    pub(super) number: u64,
    /// The latest moment, which is also the last of `history`.
    pub(super) now: Moment,
    pub(super) history: Vec<Moment>,
    /// The answers that depend on nothing else, once they are made: all clients share them.
    texts: [OnceLock<Arc<str>>; 4],
}

/// The state that continues from one snapshot to the next.
pub(super) struct Course {
    pub(super) status: Status,
    source: String,
    started: Instant,
    number: u64,
    /// When the last snapshot was made, and the packets and bytes until then.
    last: (Instant, u64, u64),
    history: VecDeque<Moment>,
}

impl Course {
    pub(super) fn new(source: String) -> Self {
        let (now, history) = (Instant::now(), VecDeque::with_capacity(KEPT));
        Course {
            status: Status::Running,
            source,
            started: now,
            number: 0,
            last: (now, 0, 0),
            history,
        }
    }

    /// The next snapshot.
    pub(super) fn publish(
        &mut self,
        engine: &mut Engine,
        past: &Past,
        saving: Option<&Saving>,
        exporters: Option<Value>,
    ) -> Snapshot {
        let begun = Instant::now();
        let mut report = engine.report();
        let (now, took) = (Instant::now(), begun.elapsed());
        let totals = past.with(&report);
        let (before, packets, bytes) =
            std::mem::replace(&mut self.last, (now, totals.seen, totals.wire_bytes.value()));
        let seconds = now.duration_since(before).as_secs_f64();
        let per_second = |more: u64| if seconds > 0.0 { more as f64 / seconds } else { 0.0 };
        let connections = report.connection_figures();
        let moment = Moment {
            at: now.duration_since(self.started).as_secs_f64(),
            packets_per_second: per_second(totals.seen.saturating_sub(packets)),
            bits_per_second: 8.0 * per_second(totals.wire_bytes.value().saturating_sub(bytes)),
            tables: report.allocated,
            resident: crate::demo::live::resident(),
            half_open: connections.half_open,
            open: connections.open,
            present: connections.present,
        };
        if self.history.len() == KEPT {
            self.history.pop_front();
        }
        self.history.push_back(moment);
        self.number += 1;
        report.new_sources.truncate(SUBNETS);
        report.new_sources.shrink_to_fit();
        Snapshot {
            report,
            totals,
            earlier_alarms: past.alarms.iter().cloned().collect(),
            saved: saving.map(Saving::figures),
            status: self.status.clone(),
            made_ns: now_ns(),
            took,
            uptime: self.started.elapsed(),
            source: self.source.clone(),
            exporters,
            number: self.number,
            now: moment,
            history: self.history.iter().copied().collect(),
            texts: Default::default(),
        }
    }
}

impl Snapshot {
    /// The answer to `/api/v1/report`.
    pub(super) fn text(&self) -> Arc<str> {
        Arc::clone(self.texts[0].get_or_init(|| self.to_json().to_string().into()))
    }

    /// The answer to `/api/v1/history`.
    pub(super) fn history_text(&self) -> Arc<str> {
        Arc::clone(self.texts[1].get_or_init(|| self.history_json().to_string().into()))
    }

    /// The answer to `/metrics`, in OpenMetrics or in the older format.
    pub(super) fn metrics_text(&self, open: bool) -> Arc<str> {
        let text = &self.texts[2 + usize::from(open)];
        Arc::clone(text.get_or_init(|| metrics::encode(self, open).into()))
    }

    fn to_json(&self) -> Value {
        let now = &self.now;
        let (status, detail) = match &self.status {
            Status::Running => ("running", None),
            Status::Over(why) => ("over", Some(why)),
        };
        let mut json = json!({
            "version": 1,
            "number": self.number,
            "time": time::iso8601(self.made_ns),
            "uptime_seconds": self.uptime.as_secs_f64(),
            "source": { "name": self.source, "status": status, "detail": detail },
            "rates": {
                "packets_per_second": now.packets_per_second,
                "bits_per_second": now.bits_per_second,
            },
            "process": { "resident_bytes": now.resident },
            "report_seconds": self.took.as_secs_f64(),
            "alarms_total": self.totals.alarms.iter().sum::<u64>(),
            "saved": self.saved.as_ref().map(|saved| &saved.json),
            "earlier_alarms": self.earlier_alarms.iter().map(Incident::to_json).collect::<Value>(),
            "report": self.report.to_json(),
        });
        self.totals.packets.set(&mut json, "packets_total");
        if let Some(exporters) = &self.exporters {
            json["source"]["exporters"] = exporters.clone();
        }
        json
    }

    /// The last five minutes, one array per figure.
    fn history_json(&self) -> Value {
        let column = |figure: &dyn Fn(&Moment) -> Value| -> Value {
            self.history.iter().map(figure).collect()
        };
        let states = OUTCOMES.iter().enumerate();
        let states = states.map(|(i, name)| {
            (name.to_string(), column(&|moment| moment.present[i].value().into()))
        });
        json!({
            "version": 1,
            "seconds": column(&|moment| moment.at.into()),
            "packets_per_second": column(&|moment| moment.packets_per_second.into()),
            "bits_per_second": column(&|moment| moment.bits_per_second.into()),
            "tables_bytes": column(&|moment| moment.tables.into()),
            "resident_bytes": column(&|moment| moment.resident.into()),
            "half_open": column(&|moment| moment.half_open.value().into()),
            "half_open_figure": column(&|moment| moment.half_open.to_json()),
            "open": column(&|moment| moment.open.value().into()),
            "open_figure": column(&|moment| moment.open.to_json()),
            "present_by_state": states.collect::<Value>(),
            "present": column(&|moment| moment.present(0..OUTCOMES.len()).value().into()),
            "present_figure": column(&|moment| moment.present(0..OUTCOMES.len()).to_json()),
        })
    }
}
