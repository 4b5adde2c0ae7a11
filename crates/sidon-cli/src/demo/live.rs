//! What is shown while it runs, and at the end.

use super::recount::Recount;
use crate::show::{self, whole};
use sidon_traffic::{Mix, Report};
use std::{
    fmt::Write as _,
    io::{IsTerminal, Write as _},
    net::SocketAddrV4,
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

/// How the moments are shown.
pub(super) struct Live {
    style: Style,
    all: u64,
    chart: Vec<u64>,
    /// The least and the most resident memory after the first eighth.
    resident: Option<[u64; 2]>,
    alarmed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Nothing.
    Silent,
    /// A line now and then.
    Lines,
    /// The same lines again, in place.
    Redrawn,
}

/// Columns that every terminal has.
const WIDTH: usize = 80;
/// Lines that are redrawn.
const DRAWN: usize = 5;
/// Samples to a line where lines are not redrawn.
const EVERY: usize = 8;

impl Live {
    pub(super) fn new(silent: bool) -> Self {
        let style = match (silent, std::io::stdout().is_terminal()) {
            (true, _) => Style::Silent,
            (_, true) => Style::Redrawn,
            (_, false) => Style::Lines,
        };
        Live { style, all: 0, chart: Vec::new(), resident: None, alarmed: false }
    }

    pub(super) fn begin(
        &mut self,
        mix: &Mix,
        victim: SocketAddrV4,
        memory: u64,
    ) -> anyhow::Result<()> {
        self.all = mix.packets;
        if self.style == Style::Silent {
            return Ok(());
        }
        let sources = mix.flood.map_or(0, |flood| flood.sources);
        show::print(&format!(
            "The office of a thousand hosts, then a SYN flood at {victim}\n\
             from {} forged sources: {} packets from memory,\n\
             all tables in {}.\n",
            whole(sources),
            whole(mix.packets),
            show::bytes(memory),
        ))?;
        if self.style == Style::Redrawn {
            show::print(&"\n".repeat(DRAWN - 1))?;
        }
        Ok(())
    }

    pub(super) fn show(&mut self, sample: Sample) -> anyhow::Result<()> {
        self.chart.push(sample.half_open);
        if let Some(now) = sample.resident
            && sample.packets >= self.all / 8
        {
            let [least, most] = self.resident.unwrap_or([now, now]);
            self.resident = Some([least.min(now), most.max(now)]);
        }
        let new_alarm = sample.alarm.is_some() && !self.alarmed;
        self.alarmed |= new_alarm;
        let rate = sample.packets as f64 / sample.took.as_secs_f64().max(1e-9) / 1e6;
        let resident = sample.resident.map_or("?".to_owned(), show::bytes);
        match self.style {
            Style::Silent => Ok(()),
            Style::Lines => {
                if let Some(alarm) = sample.alarm.filter(|_| new_alarm) {
                    show::print(&format!(
                        "{:>7.1} s  ALARM  {alarm}",
                        seconds(sample.packet_time)
                    ))?;
                }
                if !self.chart.len().is_multiple_of(EVERY) {
                    return Ok(());
                }
                show::print(&format!(
                    "{:>7.1} s {:>12} packets {:>11} half open   process {resident}",
                    seconds(sample.packet_time),
                    whole(sample.packets),
                    whole(sample.half_open),
                ))
            }
            Style::Redrawn => {
                let alarm = sample.alarm.map_or(String::new(), |alarm| {
                    if std::env::var_os("NO_COLOR").is_some() {
                        alarm
                    } else {
                        format!("\x1b[1;31m{alarm}\x1b[0m")
                    }
                });
                let mut out = std::io::stdout().lock();
                write!(
                    out,
                    "\x1b[{DRAWN}A\x1b[J\
                     packets    {:>12} of {}, {rate:.1} million/s, {:.1} s of traffic\n\
                     memory     {:>12} in tables, {resident} in the process\n\
                     half open  {:>12}\n\
                     alarm      {alarm}\n\
                     {}\n",
                    whole(sample.packets),
                    whole(self.all),
                    seconds(sample.packet_time),
                    show::bytes(sample.tables),
                    whole(sample.half_open),
                    strip(&self.chart),
                )?;
                out.flush()?;
                Ok(())
            }
        }
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
        let counts = &report.connections;
        let rate = report.ledger.seen as f64 / took.as_secs_f64().max(1e-9) / 1e6;
        let _ = writeln!(
            text,
            "\n{} packets in {:.1} s, {rate:.1} million a second, generated on the way.\n\n\
             half open over time, {} at the most\n{}\n",
            whole(report.ledger.seen),
            took.as_secs_f64(),
            whole(counts.peak_half_open),
            strip(&self.chart),
        );
        for alarm in &report.alarms {
            let evidence = alarm.evidence.iter();
            let evidence: Vec<_> = evidence
                .map(|(name, n)| format!("{} {}", whole(*n), name.replace('_', " ")))
                .collect();
            let _ = writeln!(text, "ALARM   {}", alarm.text);
            let _ = writeln!(text, "        {}", evidence.join(", "));
            // A line break inside the quotes is a space to tcpdump.
            let command = format!("tcpdump '{}'", alarm.filter);
            for line in broken(&command, WIDTH - 8) {
                let _ = writeln!(text, "        {line}");
            }
        }
        let _ = writeln!(text, "\nheaviest flows, through all of it");
        for entry in &report.flows.entries {
            let [bytes, _] = entry.amounts;
            let sign = if bytes.is_exact() { "=" } else { "<=" };
            let (name, amount) =
                (entry.key.two_way().to_string(), format!("{sign} {} bytes", whole(bytes.most)));
            // A long name takes a whole line: addresses are never cut.
            if name.len() + amount.len() + 3 <= WIDTH {
                let rest = WIDTH - 2 - name.len();
                let _ = writeln!(text, "  {name}{amount:>rest$}");
            } else {
                let _ = writeln!(text, "  {name}\n{amount:>WIDTH$}");
            }
        }
        let process = match self.resident {
            Some([least, most]) => {
                format!("the process {} to {}", show::bytes(least), show::bytes(most))
            }
            None => "the process is not known here".to_owned(),
        };
        let _ = writeln!(text, "\nmemory  tables {}, {process}", show::bytes(report.allocated));
        let _ = writeln!(
            text,
            "audit   {} bound violations in {} flows counted again, exactly",
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

/// The words of a text in lines of at most `width` characters, if no word is longer.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("never empty");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// A line of bars, one for each sample.
fn strip(chart: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = chart.iter().copied().max().unwrap_or(0).max(1);
    chart.iter().map(|&value| BARS[(value * 7).div_ceil(most) as usize]).collect()
}

/// The process's memory in use, where the system tells it.
pub(crate) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
