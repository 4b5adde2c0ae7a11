//! The report as one screen of 100 columns and 40 lines.

use crate::show::{self, whole};
use sidon::count::{Bounds, Ranking};
use sidon_traffic::{
    Report, audit::Audit, ledger::Ledger, monitor::connections::OUTCOMES, monitor::sizes, time,
};
use std::{fmt::Write, io::IsTerminal};

/// How a screen is to look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
    detail: Detail,
}

impl Style {
    /// Colour where there is a terminal that wants it; less or more of everything.
    pub(crate) fn new(quiet: bool, verbose: bool) -> Self {
        let colour = std::env::var_os("NO_COLOR").is_none() && std::io::stdout().is_terminal();
        let detail = match (quiet, verbose) {
            (true, _) => Detail::Little,
            (_, true) => Detail::Much,
            _ => Detail::Usual,
        };
        Style { colour, detail }
    }
}

/// How much of it there is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Little,
    Usual,
    Much,
}

/// Columns of the screen.
const WIDTH: usize = 100;
/// Alarms on the screen, unless all are asked for.
const ALARMS: usize = 2;
/// Subnets on the screen, unless all are asked for.
const SUBNETS: usize = 5;
/// Hosts like peers on the screen, unless all are asked for.
const PEERS: usize = 2;

/// Lines of the screen.
const HEIGHT: usize = 40;
/// Flows, and hosts and ports each, that are listed: whatever else there is to say, it is one screen,
/// and the lists give way.
const ROWS: [(usize, usize); 11] =
    [(10, 4), (10, 3), (8, 3), (6, 3), (4, 3), (4, 2), (3, 2), (3, 1), (2, 1), (3, 0), (1, 0)];

/// The whole screen.
pub(crate) fn render(title: &str, report: &Report, style: Style) -> String {
    if style.detail == Detail::Much {
        return with_rows(title, report, style, (30, 20));
    }
    let mut text = String::new();
    for rows in ROWS {
        text = with_rows(title, report, style, rows);
        if text.lines().count() <= HEIGHT {
            break;
        }
    }
    text
}

fn with_rows(title: &str, report: &Report, style: Style, (rows, few): (usize, usize)) -> String {
    let mut screen = Screen { text: String::new(), style };
    screen.head(title, report);
    screen.alarms(report);
    let flow = |key: &sidon_traffic::FlowKey| key.two_way().to_string();
    screen.ranking("FLOW", &report.flows, rows, flow);
    if style.detail != Detail::Little {
        screen.ranking("HOST", &report.hosts, few, |key| sizes::address(*key).to_string());
        screen.ranking("PORT", &report.ports, few, |key| sizes::port_name(*key).to_string());
        screen.connections(report);
        screen.peers(report);
        screen.machines(report);
        screen.sources(report);
        screen.subnets(report);
    }
    if let Some(audit) = &report.audit {
        screen.audit(audit);
    }
    screen.ledger(&report.ledger);
    screen.text.trim_end().to_owned()
}

struct Screen {
    text: String,
    style: Style,
}

impl Screen {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A word that stands out.
    fn bold(&self, word: &str) -> String {
        if self.style.colour { format!("\x1b[1m{word}\x1b[0m") } else { word.to_owned() }
    }

    fn dim(&self, word: &str) -> String {
        if self.style.colour { format!("\x1b[2m{word}\x1b[0m") } else { word.to_owned() }
    }

    fn head(&mut self, title: &str, report: &Report) {
        self.line(&self.bold(title));
        let ledger = &report.ledger;
        let mut line =
            format!("{} packets, {}", whole(ledger.seen), show::bytes(ledger.wire_bytes));
        if let Some((first, last)) = report.times {
            let seconds = (last - first.min(last)) as f64 / 1e9;
            let _ = write!(line, " in {seconds:.1} s from {}", &time::iso8601(first)[..19]);
        }
        let _ = write!(
            line,
            "; tables {} of {}",
            show::bytes(report.allocated),
            show::bytes(report.budget)
        );
        self.line(&line);
    }

    fn alarms(&mut self, report: &Report) {
        let shown = if self.style.detail == Detail::Much { usize::MAX } else { ALARMS };
        for alarm in report.alarms.iter().take(shown) {
            let from = &time::iso8601(alarm.opened)[11..19];
            let to = alarm
                .closed
                .map_or("the end".to_owned(), |closed| time::iso8601(closed)[11..19].to_owned());
            let line = format!("ALARM  {} from {from} to {to}", alarm.text);
            self.line(&self.bold(&line));
            let evidence = alarm.evidence.iter();
            let evidence: Vec<_> = evidence
                .map(|(name, n)| format!("{} {}", whole(*n), name.replace('_', " ")))
                .collect();
            self.line(&format!("       {}", evidence.join(", ")));
            if self.style.detail == Detail::Much {
                self.line(&self.dim(&format!("       {}", alarm.filter)));
            }
        }
        let more = report.alarms.len().saturating_sub(shown) as u64 + report.alarms_unlisted;
        if more > 0 {
            self.line(&self.bold(&format!("ALARM  and {} more: see --json", whole(more))));
        }
        if report.connections.is_one_way() {
            self.line(&self.dim("one side of the connections only: answers pass elsewhere"));
        }
    }

    /// A table of the heaviest: what, bytes and packets each with its mark.
    fn ranking<K>(
        &mut self,
        what: &str,
        ranking: &Ranking<K, 2>,
        rows: usize,
        name: impl Fn(&K) -> String,
    ) {
        if ranking.entries.is_empty() || rows == 0 {
            return;
        }
        let shown = ranking.entries.len().min(rows);
        let others = whole(ranking.others);
        let certain = match ranking.leading.min(shown) {
            0 => format!("none missing has > {others} bytes"),
            leading if leading == shown => "list complete".to_owned(),
            leading => format!("first {leading} certain, none missing > {others} bytes"),
        };
        self.line("");
        let what = format!("{what}  {certain}");
        let head = format!("{what:58}{:>21}{:>19}", "BYTES", "PACKETS");
        self.line(&self.bold(&head));
        for entry in ranking.entries.iter().take(rows) {
            let [bytes, packets] = entry.amounts;
            let line =
                format!("{:58}{:>21}{:>19}", short(&name(&entry.key)), mark(bytes), mark(packets));
            self.line(&line);
            if !bytes.is_exact() && self.style.detail == Detail::Much {
                self.line(&self.dim(&format!(
                    "{:58}{:>21}{:>19}",
                    "  at least",
                    whole(bytes.least),
                    whole(packets.least)
                )));
            }
        }
    }

    fn connections(&mut self, report: &Report) {
        let counts = &report.connections;
        let all: u64 = counts.by_state.iter().sum();
        if all == 0 {
            return;
        }
        self.line("");
        let sampling = &counts.sampling;
        let mark = if sampling.is_sampled() { "~ " } else { "" };
        let head = format!(
            "CONNECTIONS  {mark}{}: {mark}{} half open (at most {mark}{}), {mark}{} open, {} don't know",
            whole(all),
            whole(counts.half_open),
            whole(counts.peak_half_open),
            whole(counts.open),
            whole(counts.dont_know),
        );
        self.line(&self.bold(&head));
        if let Some(since) = sampling.since {
            let now = match sampling.level {
                0 => "every new connection is followed now".to_owned(),
                level => format!("1 in {} now", whole(1 << level)),
            };
            self.line(&format!(
                "  sampled: 1 in {} since {}, {now}; ~ is an estimate, with its 99 % interval",
                whole(1 << sampling.highest),
                time::iso8601(since)
            ));
        }
        if counts.in_both > 0 {
            let both = whole(counts.in_both);
            self.line(
                &self.dim(&format!(
                    "  {both} times one was in a further file: it is counted in each"
                )),
            );
        }
        let states = OUTCOMES.iter().zip(counts.by_state).zip(sampling.by_state);
        let states = states.filter(|((_, times), _)| *times > 0);
        let items: Vec<_> = states
            .map(|((name, times), variance)| match sampling.interval(times, variance) {
                (least, most) if sampling.is_sampled() => {
                    format!("{name} ~ {} [{}, {}]", whole(times), whole(least), whole(most))
                }
                _ => format!("{name} {}", whole(times)),
            })
            .collect();
        self.wrapped(&items);
    }

    fn peers(&mut self, report: &Report) {
        if report.p2p.is_empty() {
            return;
        }
        self.line("");
        let head = format!("LIKE PEERS  {} hosts, score of 100", whole(report.p2p.len() as u64));
        self.line(&self.bold(&head));
        let shown = if self.style.detail == Detail::Much { usize::MAX } else { PEERS };
        for suspect in report.p2p.iter().take(shown) {
            let reasons: Vec<_> = suspect.reasons.iter().map(ToString::to_string).collect();
            let line = format!("  {:>3}  {}  {}", suspect.score, suspect.host, reasons.join("; "));
            let cut: String = line.chars().take(WIDTH).collect();
            self.line(&cut);
        }
    }

    fn machines(&mut self, report: &Report) {
        if !report.machines.is_empty() {
            self.line("");
        }
        for counts in &report.machines {
            let refused = match counts.refused {
                0 => String::new(),
                refused => format!(", {} refused", whole(refused)),
            };
            let flows = whole(counts.flows);
            let head = format!("MACHINE {}  {flows} flows{refused}", short(&counts.name));
            self.line(&self.bold(&head));
            let states = counts.states.iter().map(|(name, stay)| {
                let (now, expired) = (whole(stay.now), whole(stay.expired));
                format!("{name} {now} now, {expired} expired")
            });
            self.wrapped(&states.collect::<Vec<_>>());
        }
    }

    /// Items side by side, in as many lines as they need.
    fn wrapped(&mut self, items: &[String]) {
        let mut line = String::from(" ");
        for item in items {
            if line.len() + item.len() + 2 > WIDTH {
                self.line(&line);
                line = String::from(" ");
            }
            let _ = write!(line, " {item} ");
        }
        self.line(&line);
    }

    fn sources(&mut self, report: &Report) {
        if report.new_sources.is_empty() {
            return;
        }
        self.line("");
        let (sign, why) = match report.new_sources_certainty() {
            "exact" => ("=", ""),
            "at_least" => (">=", "; a full table refused others"),
            _ => ("?", "; a full table refused known and new ones"),
        };
        let head = format!(
            "NEW SOURCES  {sign} {} addresses in {sign} {} subnets{why}",
            whole(report.new_sources_total),
            whole(report.new_subnets)
        );
        self.line(&self.bold(&head));
        let shown = if self.style.detail == Detail::Much { usize::MAX } else { SUBNETS };
        let subnets = report.new_sources.iter().take(shown);
        let mut items: Vec<_> =
            subnets.map(|(subnet, count)| format!("{subnet} {count}")).collect();
        let more = report.new_subnets.saturating_sub(items.len() as u64);
        if more > 0 {
            items.push(format!("and {} more", whole(more)));
        }
        self.wrapped(&items);
    }

    fn subnets(&mut self, report: &Report) {
        for (subnet, hosts) in &report.subnets {
            self.line("");
            let head = format!("HOSTS OF {subnet}, exact");
            let head = format!("{head:58}{:>21}{:>19}", "SENT", "RECEIVED");
            self.line(&self.bold(&head));
            let shown = if self.style.detail == Detail::Much { usize::MAX } else { 10 };
            for (host, sent, received) in hosts.iter().take(shown) {
                let line =
                    format!("{:58}{:>21}{:>19}", host.to_string(), whole(*sent), whole(*received));
                self.line(&line);
            }
            if hosts.len() > shown {
                self.line(&self.dim(&format!("  and {} more", hosts.len() - shown)));
            }
        }
    }

    fn audit(&mut self, audit: &Audit) {
        self.line("");
        let flows = audit.flows.keys;
        let violations = audit.violations();
        let head = format!("AUDIT  {violations} bound violations in {} flows", whole(flows));
        self.line(&self.bold(&head));
        for (name, finding) in audit.parts() {
            if name == "connections" {
                continue;
            }
            let exact = 100.0 * finding.exact as f64 / finding.keys.max(1) as f64;
            let line = format!(
                "  {name:8}{:>12} keys{exact:>9.2} % exact{:>14.1} bytes too high on average",
                whole(finding.keys),
                finding.mean_excess
            );
            self.line(&line);
        }
        let states = &audit.states;
        self.line(&format!(
            "  states  {:>12} answers, {} don't know, {} of another flow of the same fingerprint",
            whole(states.answers),
            whole(states.dont_knows),
            whole(states.mistaken),
        ));
        let p2p = &audit.p2p;
        self.line(&format!(
            "  peers   {:>12} hosts by exact maps, {} missing here, {} here alone",
            whole(p2p.exact),
            whole(p2p.missing),
            whole(p2p.extra),
        ));
    }

    fn ledger(&mut self, ledger: &Ledger) {
        self.line("");
        self.line(&self.bold("LEDGER"));
        let mut parts = vec![format!("{} decoded", whole(ledger.decoded))];
        if ledger.filtered > 0 {
            parts.push(format!("{} filtered", whole(ledger.filtered)));
        }
        parts.extend(
            ledger.undecoded.iter().map(|(name, times)| format!("{} {name}", whole(*times))),
        );
        self.line(&format!("  {} seen = {}", whole(ledger.seen), parts.join(" + ")));
        if ledger.balance() != 0 {
            self.line(&format!("  NOT ACCOUNTED FOR: {}", ledger.balance()));
        }
        if ledger.behind_tag > 0 {
            let tagged = whole(ledger.behind_tag);
            self.line(&format!(
                "  {tagged} of the filtered would match behind a VLAN tag: add \"vlan and ...\""
            ));
        }
        for (title, list) in [
            ("refused, tables full", &ledger.refused),
            ("don't know", &ledger.dont_know),
            ("source", &ledger.source),
        ] {
            if !list.is_empty() {
                let list: Vec<_> =
                    list.iter().map(|(name, times)| format!("{} {name}", whole(*times))).collect();
                self.line(&format!("  {title}: {}", list.join(", ")));
            }
        }
    }
}

/// A count with its mark.
fn mark(bounds: Bounds) -> String {
    let sign = if bounds.is_exact() { "=" } else { "<=" };
    format!("{sign} {}", whole(bounds.most))
}

/// A name that leaves room for the numbers.
fn short(name: &str) -> String {
    const MOST: usize = 57;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    let head: String = name.chars().take(MOST - 2).collect();
    format!("{head}..")
}
