//! The report as one screen. It fits 80 columns, and uses more where the terminal has more.
//!
//! Every number comes from a [`Figure`], whose mark says what the number is worth. Without `--top`,
//! the lists of flows, hosts and ports share the lines that the rest leaves of the terminal.

use crate::show::{self, count, whole};
use sidon::count::{Bounds, Ranking};
use sidon_traffic::{
    Figure, FlowKey, Report,
    audit::Audit,
    ledger::Ledger,
    monitor::{
        connections::{self, OUTCOMES},
        incidents::Incident,
        services::RULES,
        sizes,
    },
    time,
};
use std::{fmt::Write, io::IsTerminal};

/// The layout of a screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
    width: usize,
    /// The height of the terminal; `None` if the output is not a terminal.
    height: Option<usize>,
    /// The rows of each list, if the user has set them.
    top: Option<usize>,
    detail: Detail,
    space: Space,
}

/// The space for sections, so that a screen fits a low terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Space {
    /// All sections, with blank lines between them.
    Enough,
    /// No blank lines, shorter lists, no intervals, no rules of services.
    Little,
    /// Neither hosts, ports and P2P-like hosts nor the evidence of alarms.
    Least,
}

/// The number of sections and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Little,
    Usual,
    Much,
}

/// Rows of each list where the height is unknown, and with `--verbose`.
const ROWS: usize = 10;
const MANY_ROWS: usize = 30;
/// Rows of the other lists: usual, and on a low terminal.
const ALARMS: [usize; 2] = [5, 2];
const SUBNETS: [usize; 2] = [5, 0];
const PEERS: [usize; 2] = [3, 0];
const HOSTS: [usize; 2] = [10, 3];
/// Columns of bytes and of packets.
const BYTES: usize = 20;
const PACKETS: usize = 16;

impl Style {
    /// The style for standard output. `top` is the value of `--top`.
    pub(crate) fn new(quiet: bool, verbose: bool, top: Option<u16>) -> Self {
        let detail = match (quiet, verbose) {
            (true, _) => Detail::Little,
            (_, true) => Detail::Much,
            _ => Detail::Usual,
        };
        let is_terminal = std::io::stdout().is_terminal();
        Style {
            colour: std::env::var_os("NO_COLOR").is_none() && is_terminal,
            width: show::width(),
            height: show::height(),
            top: top.map(usize::from),
            detail,
            space: Space::Enough,
        }
    }

    /// The length of the lists that a screen of this style can show.
    pub(crate) fn rows(&self) -> usize {
        match (self.top, self.detail, self.height) {
            (Some(top), ..) => top,
            (_, Detail::Much, _) => MANY_ROWS,
            (_, _, Some(height)) => height.max(ROWS),
            _ => ROWS,
        }
    }
}

/// The whole screen.
pub(crate) fn render(title: &str, report: &Report, mut style: Style) -> String {
    let (Some(height), Detail::Usual | Detail::Little, None) =
        (style.height, style.detail, style.top)
    else {
        return with_rows(title, report, style, [style.rows(); 3]);
    };
    // The prompt of the shell takes the last line.
    let over = |text: &str| (text.lines().count() + 1).saturating_sub(height);
    for space in [Space::Enough, Space::Little, Space::Least] {
        style.space = space;
        if over(&with_rows(title, report, style, [1; 3])) == 0 {
            break;
        }
    }
    let entries =
        [report.flows.entries.len(), report.hosts.entries.len(), report.ports.entries.len()];
    let order: &[usize] = if style.detail == Detail::Little { &[0] } else { &[0, 1, 0, 2] };
    let mut rows = [1; 3];
    let mut best = with_rows(title, report, style, rows);
    // Every second line is for flows. A list that is complete leaves its lines to the others.
    for &list in order.iter().cycle().take(order.len() * height) {
        if rows[list] >= entries[list] {
            continue;
        }
        rows[list] += 1;
        let text = with_rows(title, report, style, rows);
        if over(&text) > 0 {
            rows[list] -= 1;
        } else {
            best = text;
        }
    }
    best
}

fn with_rows(title: &str, report: &Report, style: Style, rows: [usize; 3]) -> String {
    let mut screen = Screen { text: String::new(), style };
    screen.head(title, report);
    screen.alarms(report);
    let [flows, hosts, ports] = rows;
    let flow = |key: &FlowKey| key.two_way();
    screen.ranking(
        "FLOW",
        |bounds| report.amounts(bounds),
        &report.flows,
        report.kept[0],
        flows,
        flow,
    );
    let has_room = style.space < Space::Least;
    if style.detail != Detail::Little && has_room {
        let host = |key: &sizes::Host| sizes::address(*key).to_string();
        screen.ranking(
            "HOST",
            |bounds| report.amounts(bounds),
            &report.hosts,
            report.kept[1],
            hosts,
            host,
        );
        let port = |key: &sizes::Port| sizes::port_name(*key);
        screen.ranking(
            "PORT",
            |bounds| report.service_amounts(bounds),
            &report.ports,
            report.kept[2],
            ports,
            port,
        );
        screen.guesses(report);
    }
    if style.detail != Detail::Little {
        screen.connections(report);
        if has_room {
            screen.peers(report);
        }
        screen.machines(report);
        screen.sources(report);
        screen.subnets(report);
    }
    if style.detail != Detail::Little && !has_room {
        screen.line(&screen.dim("not shown: hosts, ports, P2P-like hosts; -v lists everything"));
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

    /// A blank line before a section.
    fn gap(&mut self) {
        if self.style.space == Space::Enough {
            self.line("");
        }
    }

    /// The rows of a list with this usual and low number.
    fn most(&self, [usual, low]: [usize; 2]) -> usize {
        match self.style.detail {
            Detail::Much => usize::MAX,
            _ if self.style.space > Space::Enough => low,
            _ => usual,
        }
    }

    /// A text in as many lines as it needs. Lines after the first have `indent` more spaces.
    fn folded(&mut self, text: &str, indent: usize, bold: bool) {
        let mut rest = text.trim_start();
        // A path may start with many spaces.
        let start = (text.len() - rest.len()).min(self.style.width / 4);
        let mut spaces = start;
        while !rest.is_empty() {
            let first = show::first_line(rest, self.style.width.saturating_sub(spaces));
            rest = rest[first.len()..].trim_start();
            let line = if bold { self.bold(first) } else { first.to_owned() };
            self.line(&format!("{:spaces$}{line}", ""));
            spaces = start + indent;
        }
    }

    fn bold(&self, word: &str) -> String {
        self.styled(0, word)
    }

    fn dim(&self, word: &str) -> String {
        self.styled(1, word)
    }

    /// A word in one of the [`show::STYLES`].
    fn styled(&self, style: usize, word: &str) -> String {
        let [.., plain] = show::STYLES;
        match self.style.colour {
            true => format!("{}{word}{plain}", show::STYLES[style]),
            false => word.to_owned(),
        }
    }

    fn head(&mut self, title: &str, report: &Report) {
        self.folded(&show::printable(title), 2, true);
        let mut line = format!("{} packets, {} bytes", report.packets(), report.bytes());
        if let Some((first, last)) = report.times {
            let seconds = (last - first.min(last)) as f64 / 1e9;
            let _ = write!(line, " in {seconds:.1} s from {}", &time::iso8601(first)[..19]);
        }
        self.folded(&line, 2, false);
        let [tables, budget] = [report.allocated, report.budget].map(show::bytes);
        self.line(&format!("tables take {tables} of {budget}"));
        if report.engines > 1 {
            let merged = format!(
                "merged from {} files: counts are sums, peaks and P2P scores are maxima, and what is \
                 open or half open is the value at the end",
                whole(report.engines)
            );
            self.folded(&merged, 2, false);
        }
    }

    fn alarms(&mut self, report: &Report) {
        let shown = self.most(ALARMS);
        for alarm in report.alarms.iter().take(shown) {
            let network = match alarm.network.as_str() {
                "" => String::new(),
                network => format!(" ({network})"),
            };
            let text = format!("ALARM  {}{network}", show::printable(&alarm.text));
            self.folded(&text, 7, true);
            if self.style.space == Space::Least {
                continue;
            }
            let line = format!(
                "       {}, {}; {}",
                alarm.severity.name(),
                duration(alarm),
                alarm.evidence_text().join("; ")
            );
            self.folded(&line, 0, false);
            if self.style.detail == Detail::Much {
                self.folded(&format!("       {}", show::printable(&alarm.filter)), 0, false);
            }
        }
        let more = report.alarms.len().saturating_sub(shown) as u64;
        let text = match (more, report.alarms_unlisted) {
            (0, 0) => None,
            (0, unlisted) => Some(format!("{} more are not listed", whole(unlisted))),
            (more, 0) => Some(format!("{} more: -v lists them", whole(more))),
            (more, unlisted) => Some(format!(
                "{} more: -v lists them; {} more are not listed",
                whole(more),
                whole(unlisted)
            )),
        };
        if let Some(text) = text {
            self.folded(&format!("ALARM  {text}"), 7, true);
        }
        for (rule, times) in &report.incidents_allowed {
            let (rule, end) = (show::printable(rule), if *times == 1 { "" } else { "s" });
            let text = format!("{} incident{end} left out, allowed by {rule}", whole(*times));
            self.folded(&self.dim(&text), 0, false);
        }
        if report.connections.is_one_way() {
            self.line(&self.dim("one-way capture: answers do not pass this point"));
        }
    }

    /// A list of the heaviest keys, with bytes and packets.
    fn ranking<K>(
        &mut self,
        what: &str,
        amounts: impl Fn([Bounds; 2]) -> [Figure; 2],
        ranking: &Ranking<K, 2>,
        kept: u64,
        rows: usize,
        name: impl Fn(&K) -> String,
    ) {
        if ranking.entries.is_empty() || rows == 0 {
            return;
        }
        let shown = ranking.entries.len().min(rows);
        let certain = ranking.leading.min(shown);
        let mut head = format!("{what}  top {shown} of {} kept", whole(kept));
        if certain == shown {
            head += ", certainly the largest";
        }
        self.gap();
        self.columns(&head, ["BYTES".to_owned(), "PACKETS".to_owned()], true);
        for entry in ranking.entries.iter().take(rows) {
            let amounts = amounts(entry.amounts);
            self.columns(&name(&entry.key), amounts.map(|figure| figure.to_string()), false);
            if self.style.detail == Detail::Much && amounts[0].least() < amounts[0].value() {
                let least = amounts.map(|figure| format!(">= {}", whole(figure.least())));
                self.columns("", least, false);
            }
        }
        // Without an upper bound of the listed amounts there is none of the others.
        let first = amounts(ranking.entries[0].amounts)[0];
        if certain < shown && first.most().is_some() {
            let others = whole(ranking.others);
            let note = match certain {
                0 => format!("  a key that is not listed has at most {others} bytes"),
                _ => format!(
                    "  the first {certain} are certainly the largest; a key that is not listed has \
                     at most {others} bytes"
                ),
            };
            self.folded(&note, 0, false);
        }
    }

    /// A name and two columns to its right. A long name has its own lines.
    fn columns(&mut self, name: &str, columns: [String; 2], bold: bool) {
        let [bytes, packets] = &columns;
        let numbers = format!("{bytes:>BYTES$}{packets:>PACKETS$}");
        let room = self.style.width.saturating_sub(numbers.trim_start().chars().count() + 2);
        if name.chars().count() <= room {
            let space = self.style.width.saturating_sub(name.chars().count());
            let line = format!("{name}{:>space$}", numbers.trim_start());
            let line = if bold { self.bold(&line) } else { line };
            return self.line(&line);
        }
        self.folded(name, 2, bold);
        self.line(&format!("{:>1$}", numbers.trim_start(), self.style.width));
    }

    /// The amounts by which those of services may be wrong.
    fn guesses(&mut self, report: &Report) {
        let [bytes, packets] = report.service_slack().map(whole);
        let is_shown = report.engines == 1 && !report.ports.entries.is_empty();
        if is_shown && report.service_slack() != [0, 0] {
            let note = format!(
                "  services that are guesses have {bytes} bytes and {packets} packets, by which ~ \
                 may be wrong"
            );
            self.folded(&note, 0, false);
        }
    }

    fn connections(&mut self, report: &Report) {
        let figures = report.connection_figures();
        if figures.total.value() == 0 && report.connections.refused == 0 {
            return;
        }
        self.gap();
        self.folded(&format!("CONNECTIONS  {:#}", figures.total), 13, true);
        let connections::Figures { half_open, peak_half_open: peak, open, dont_know, .. } = figures;
        let counts = match self.style.space {
            Space::Enough => format!(
                "  {half_open:#} half open at the end, {peak:#} at the peak; {open:#} open at the \
                 end; {dont_know:#} don't know"
            ),
            _ => format!(
                "  {half_open} half open at the end, {peak} at the peak; {open} open at the end; \
                 {dont_know} don't know"
            ),
        };
        self.folded(&counts, 0, false);
        let sampling = &report.connections.sampling;
        if let Some(since) = sampling.since {
            let now = match sampling.level {
                0 => "every new connection is followed now".to_owned(),
                level => format!("1 in {} now", whole(1 << level)),
            };
            let line = format!(
                "  sampled: 1 in {} since {}, {now}; ~ has a 99 % interval",
                whole(1 << sampling.highest),
                &time::iso8601(since)[..19]
            );
            self.folded(&line, 0, false);
        }
        let refused = report.connections.refused;
        if refused > 0 {
            let refused = whole(refused);
            self.folded(&format!("  {refused} packets of connections that did not fit"), 0, false);
        }
        if report.connections.in_both > 0 {
            let both = whole(report.connections.in_both);
            let line = format!("  {both} connections are in two files, and are counted in each");
            self.folded(&line, 0, false);
        }
        let states = OUTCOMES.iter().zip(figures.by_state);
        let states = states.filter(|(_, figure)| figure.value() > 0);
        let with_interval = self.style.space == Space::Enough;
        let states = states.map(|(name, figure)| match with_interval {
            true => format!("{name} {figure:#}"),
            false => format!("{name} {figure}"),
        });
        self.wrapped(&states.collect::<Vec<_>>());
    }

    fn peers(&mut self, report: &Report) {
        if report.p2p.is_empty() {
            return;
        }
        self.gap();
        let hosts = match report.p2p.len() {
            1 => "1 host".to_owned(),
            hosts => format!("{} hosts", whole(hosts as u64)),
        };
        let shown = self.most(PEERS);
        let first = match &report.p2p[0] {
            suspect if shown == 0 => {
                format!(", the first {} with {} of 100", suspect.host, suspect.score)
            }
            _ => ", score out of 100".to_owned(),
        };
        self.folded(&format!("P2P-LIKE  {hosts}{first}"), 10, true);
        if shown == 0 {
            return;
        }
        for suspect in report.p2p.iter().take(shown) {
            let reasons: Vec<_> = suspect.reasons.iter().map(ToString::to_string).collect();
            let line = format!("  {:#}  {}  {}", suspect.score, suspect.host, reasons.join("; "));
            self.folded(&line, 5, false);
        }
        self.more(report.p2p.len().saturating_sub(shown));
    }

    fn machines(&mut self, report: &Report) {
        for counts in &report.machines {
            self.gap();
            let refused = match counts.refused {
                0 => String::new(),
                refused => format!(", {} packets refused", whole(refused)),
            };
            let flows = counts.figure(counts.flows);
            self.folded(
                &format!("MACHINE {}  {flows:#} flows{refused}", show::printable(&counts.name)),
                8,
                true,
            );
            let states = counts.states.iter().map(|(name, stay)| {
                let (now, expired) =
                    (counts.now_figure(stay.now), counts.event_figure(stay.expired));
                format!("{} {now} now, {expired} expired", show::printable(name))
            });
            self.wrapped(&states.collect::<Vec<_>>());
        }
    }

    /// Items side by side, in as many lines as they need.
    fn wrapped(&mut self, items: &[String]) {
        let mut line = String::new();
        for item in items {
            let longer = line.chars().count() + 2 + item.chars().count();
            if !line.is_empty() && longer > self.style.width {
                self.line(&line);
                line.clear();
            }
            let _ = write!(line, "  {item}");
        }
        self.folded(&line, 2, false);
    }

    fn sources(&mut self, report: &Report) {
        if report.new_sources_total == 0 && report.new_addresses().most() == Some(0) {
            return;
        }
        self.gap();
        let (addresses, subnets) = (report.new_addresses(), report.new_subnets());
        let mut refused = report.ledger.refused.iter();
        let why = match refused.any(|(name, _)| name.contains("sources")) {
            true => "; a full table refused others",
            false => "",
        };
        let head = format!("NEW SOURCES  {addresses} addresses in {subnets} subnets{why}");
        self.folded(&head, 13, true);
        let shown = self.most(SUBNETS);
        if shown == 0 {
            return;
        }
        let listed = report.new_sources.iter().take(shown);
        let mut items: Vec<_> = listed
            .map(|(subnet, count)| format!("{subnet} {}", report.new_in(*subnet, *count)))
            .collect();
        let more = report.new_subnets.saturating_sub(items.len() as u64);
        if more > 0 {
            let most = subnets.most().map(|most| most.saturating_sub(items.len() as u64));
            items.push(format!("and {} more", Figure::at_least(more, most)));
        }
        self.wrapped(&items);
    }

    fn subnets(&mut self, report: &Report) {
        for (subnet, hosts) in &report.subnets {
            self.gap();
            let head = format!("HOSTS OF {subnet}");
            self.columns(&head, ["SENT".to_owned(), "RECEIVED".to_owned()], true);
            let shown = self.most(HOSTS);
            for (host, sent, received) in hosts.iter().take(shown) {
                let counts = [sent, received].map(|packets| report.watched(*packets).to_string());
                self.columns(&host.to_string(), counts, false);
            }
            self.more(hosts.len().saturating_sub(shown));
        }
    }

    /// The number of rows that are left out.
    fn more(&mut self, rows: usize) {
        if rows > 0 {
            self.line(&self.dim(&format!("  and {} more: -v lists them", whole(rows as u64))));
        }
    }

    fn audit(&mut self, audit: &Audit) {
        self.gap();
        let violations = whole(audit.violations());
        let keys = whole(audit.parts().iter().map(|(_, finding)| finding.keys).sum());
        let head = format!("AUDIT  {violations} violations in {keys} compared rows");
        self.folded(&head, 7, true);
        for row in &audit.rows {
            self.folded(&format!("  VIOLATED  {row}"), 10, true);
        }
        for (name, finding) in audit.parts() {
            if name == "connections" {
                continue;
            }
            let share = 100.0 * finding.exact as f64 / finding.keys.max(1) as f64;
            let excess = match name {
                "flows" | "hosts" | "ports" => {
                    format!(", on average {:.1} bytes too high", finding.mean_excess)
                }
                _ => String::new(),
            };
            let keys = whole(finding.keys);
            self.folded(&format!("  {name:8}{keys:>12}, {share:.2} % exact{excess}"), 2, false);
        }
        let states = &audit.states;
        let line = format!(
            "  states  {:>12} answers, {} don't know, {} of another flow with the same fingerprint",
            whole(states.answers),
            whole(states.dont_knows),
            whole(states.mistaken),
        );
        self.folded(&line, 2, false);
        let p2p = &audit.p2p;
        let line = format!(
            "  peers   {:>12} hosts by exact maps, {} missing here, {} only here",
            whole(p2p.exact),
            whole(p2p.missing),
            whole(p2p.extra),
        );
        self.folded(&line, 2, false);
    }

    fn ledger(&mut self, ledger: &Ledger) {
        self.gap();
        self.line(&self.bold("LEDGER"));
        let mut parts = vec![format!("{} decoded", count(ledger.decoded))];
        if ledger.filtered > 0 {
            parts.push(format!("{} filtered", count(ledger.filtered)));
        }
        let undecoded = ledger.undecoded.iter();
        parts.extend(undecoded.map(|(name, times)| format!("{} {name}", count(*times))));
        self.folded(&format!("  {} seen = {}", count(ledger.seen), parts.join(" + ")), 2, false);
        if ledger.balance() != 0 {
            self.line(&format!("  NOT ACCOUNTED FOR: {}", ledger.balance()));
        }
        if ledger.late > 0 {
            let seconds = ledger.late_ns as f64 / 1e9;
            let line = format!(
                "  {} packets are older than one before them, by up to {seconds:.3} s: connections \
                 age by the latest time",
                count(ledger.late)
            );
            self.folded(&line, 2, false);
        }
        if ledger.time_jumps > 0 {
            let line = format!(
                "  {} packets have a time that no packet near them confirms: they count at the time of \
                 the packet before",
                whole(ledger.time_jumps)
            );
            self.folded(&line, 2, false);
        }
        if ledger.time_steps > 0 {
            let line = format!(
                "  the clock of the capture was set back {} times: later times are shifted forward",
                whole(ledger.time_steps)
            );
            self.folded(&line, 2, false);
        }
        if ledger.behind_tag > 0 {
            let tagged = count(ledger.behind_tag);
            let line = format!(
                "  {tagged} filtered packets match the expression behind their VLAN tag: \
                 add \"vlan and ...\""
            );
            self.folded(&line, 2, false);
        }
        let services = RULES.into_iter().zip(ledger.services).filter(|(_, packets)| *packets > 0);
        for (title, list) in [
            ("service named by", &services.collect()),
            ("refused, tables full", &ledger.refused),
            ("don't know", &ledger.dont_know),
            ("source", &ledger.source),
        ] {
            let is_rule = title == "service named by" && self.style.space > Space::Enough;
            if !list.is_empty() && !is_rule {
                let list: Vec<_> =
                    list.iter().map(|(name, times)| format!("{} {name}", count(*times))).collect();
                self.folded(&format!("  {title}: {}", list.join(", ")), 2, false);
            }
        }
    }
}

/// The first and the last time of an incident, with dates if they differ.
fn duration(incident: &Incident) -> String {
    let opened = time::iso8601(incident.opened);
    let Some(closed) = incident.closed.map(time::iso8601) else {
        return format!("since {}", &opened[11..19]);
    };
    if opened[..10] == closed[..10] {
        return format!("{} to {}", &opened[11..19], &closed[11..19]);
    }
    format!("{} to {}", &opened[..19], &closed[..19])
}

#[cfg(test)]
mod tests;
