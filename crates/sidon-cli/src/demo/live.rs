//! The screen of the demo while it runs, and its report at the end.

use super::recount::Recount;
use crate::show::{self, whole};
use sidon_traffic::{Mix, Report};
use std::{
    fmt::Write as _,
    fs::File,
    io::{IsTerminal, Read, Seek, SeekFrom, Write as _},
    net::SocketAddrV4,
    sync::{Mutex, OnceLock},
    time::Duration,
};

/// A moment of the run.
pub(super) struct Sample {
    pub(super) packets: u64,
    pub(super) packet_time: Duration,
    pub(super) half_open: u64,
    pub(super) tables: u64,
    pub(super) resident: Option<u64>,
    pub(super) alarm: Option<String>,
    pub(super) took: Duration,
}

/// The samples so far, and the way to show them.
pub(super) struct Live {
    /// Whether to print no text at all.
    silent: bool,
    /// Columns of the terminal.
    width: usize,
    /// Lines of the last moment on the terminal; `None` if standard output is not a terminal.
    drawn: Option<usize>,
    all: u64,
    chart: Vec<u64>,
    /// The least and the most resident memory after the first eighth of the packets.
    resident: Option<[u64; 2]>,
}

/// Columns to the left of the chart and the alarm.
const INDENT: usize = 11;

impl Live {
    pub(super) fn new(silent: bool) -> Self {
        let terminal = !silent && std::io::stdout().is_terminal();
        let width = if silent { 80 } else { show::width() };
        let drawn = terminal.then_some(0);
        Live { silent, width, drawn, all: 0, chart: Vec::new(), resident: None }
    }

    /// Samples of the whole run: the chart has one bar per sample and fits a line.
    pub(super) fn samples(&self) -> u64 {
        self.width.saturating_sub(8).clamp(16, 192) as u64
    }

    pub(super) fn begin(
        &mut self,
        mix: &Mix,
        victim: SocketAddrV4,
        memory: u64,
    ) -> anyhow::Result<()> {
        self.all = mix.packets;
        if self.silent {
            return Ok(());
        }
        let sources = mix.flood.map_or(0, |flood| flood.sources);
        show::print(&show::folded(&format!(
            "An office of a thousand hosts, then a SYN flood at {victim} from {} forged sources: {} \
             generated packets, all tables in {}.\n",
            whole(sources),
            whole(mix.packets),
            show::bytes(memory),
        )))
    }

    pub(super) fn show(&mut self, sample: Sample) -> anyhow::Result<()> {
        self.chart.push(sample.half_open);
        if let Some(now) = sample.resident
            && sample.packets >= self.all / 8
        {
            let [least, most] = self.resident.unwrap_or([now, now]);
            self.resident = Some([least.min(now), most.max(now)]);
        }
        let Some(drawn) = self.drawn else { return Ok(()) };
        let rate = sample.packets as f64 / sample.took.as_secs_f64().max(1e-9) / 1e6;
        let resident = sample.resident.map_or("?".to_owned(), show::bytes);
        let alarm = show::wrapped(sample.alarm.as_deref().unwrap_or(""), self.width - INDENT);
        let (red, plain) = match std::env::var_os("NO_COLOR") {
            Some(_) => ("", ""),
            None => ("\x1b[1;31m", "\x1b[0m"),
        };
        let mut text = format!(
            "packets    {:>12} of {}, {rate:.1} million/s, {:.1} s of traffic\n\
             memory     {:>12} in tables, {resident} in the process\n\
             half open  {:>12}\n",
            whole(sample.packets),
            whole(self.all),
            sample.packet_time.as_secs_f64(),
            show::bytes(sample.tables),
            whole(sample.half_open),
        );
        for (i, line) in alarm.iter().enumerate() {
            let name = if i == 0 { "alarm" } else { "" };
            let _ = writeln!(text, "{name:INDENT$}{red}{line}{plain}");
        }
        let _ = writeln!(text, "{}", strip(&self.chart));
        let mut out = std::io::stdout().lock();
        let up = if drawn > 0 { format!("\x1b[{drawn}A\x1b[J") } else { String::new() };
        write!(out, "{up}{text}").and_then(|()| out.flush()).map_err(show::unwritten)?;
        self.drawn = Some(text.lines().count());
        Ok(())
    }

    /// The least and the most resident memory after the first eighth of the packets.
    pub(super) fn resident(&self) -> Option<[u64; 2]> {
        self.resident
    }

    /// Half-open connections over time.
    pub(super) fn chart(&self) -> &[u64] {
        &self.chart
    }

    pub(super) fn end(
        &self,
        report: &Report,
        took: Duration,
        recount: &Recount,
    ) -> anyhow::Result<()> {
        let mut text = String::new();
        let peak = report.connection_figures().peak_half_open;
        let refused = report.ledger.refused.iter();
        let refused = refused.filter(|(name, _)| name.starts_with("connections"));
        let left_out = match refused.map(|(_, times)| times).sum() {
            0 => String::new(),
            times => format!("\n{} packets of further connections did not fit", whole(times)),
        };
        let rate = report.ledger.seen as f64 / took.as_secs_f64().max(1e-9) / 1e6;
        let _ = writeln!(
            text,
            "\n{} packets in {:.1} s, {rate:.1} million per second with their generation.\n\n\
             half-open connections over time, {peak:#} at the peak{}\n{}\n",
            whole(report.ledger.seen),
            took.as_secs_f64(),
            left_out,
            strip(&self.chart),
        );
        for alarm in &report.alarms {
            let evidence = alarm.evidence_text();
            // tcpdump reads a line break inside the quotes as a space.
            let lines =
                [&*alarm.text, &*evidence.join(", "), &format!("tcpdump '{}'", alarm.filter)];
            let lines = lines.iter().flat_map(|line| show::wrapped(line, self.width - 8));
            for (i, line) in lines.enumerate() {
                let name = if i == 0 { "ALARM" } else { "" };
                let _ = writeln!(text, "{name:8}{line}");
            }
        }
        let width = self.width;
        let _ = writeln!(text, "\nheaviest flows of the whole run");
        for entry in &report.flows.entries {
            let [bytes, _] = entry.amounts;
            let (name, amount) = (entry.key.two_way(), format!("{} bytes", report.amount(bytes)));
            // A long name has its own line: addresses are never cut.
            if name.len() + amount.len() + 3 <= width {
                let rest = width - 2 - name.len();
                let _ = writeln!(text, "  {name}{amount:>rest$}");
            } else {
                let _ = writeln!(text, "  {name}\n{amount:>width$}");
            }
        }
        let process = match self.resident {
            Some([least, most]) => {
                format!("the process {} to {}", show::bytes(least), show::bytes(most))
            }
            None => "the memory of the process is unknown on this system".to_owned(),
        };
        let _ = writeln!(text, "\nmemory  tables {}, {process}", show::bytes(report.allocated));
        let _ = writeln!(
            text,
            "audit   {} bound violations in {} flows that were also counted exactly",
            recount.violations,
            whole(recount.flows)
        );
        let _ = write!(
            text,
            "\nNext:\n  sidon generate -c 1000000 --flood 500000 -w flood.pcap\n  \
             sidon watch -r flood.pcap --audit\n  sidon plan state --help"
        );
        show::print(&text)
    }
}

/// A line of bars, one per sample.
fn strip(chart: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = chart.iter().copied().max().unwrap_or(0).max(1);
    chart.iter().map(|&value| BARS[(value * 7).div_ceil(most) as usize]).collect()
}

/// Resident memory of the process, on systems with `/proc`. The first call opens a file, which a
/// confined process cannot do any more.
pub(crate) fn resident() -> Option<u64> {
    static STATUS: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let status = STATUS.get_or_init(|| File::open("/proc/self/status").ok().map(Mutex::new));
    let mut status = status.as_ref()?.lock().ok()?;
    let mut text = String::new();
    status.seek(SeekFrom::Start(0)).ok()?;
    status.read_to_string(&mut text).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
