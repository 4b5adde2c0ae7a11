//! A victim of one class of packets: what arrived in the last seconds, and whether that is a flood.
//!
//! Counts are of this window and of the one before, so they cover one to two windows. Against them
//! stand the floors of the kind, and the victim's own past: a decayed mean of the counts of earlier
//! windows and their variance.
//!
//! | class | a flood if |
//! |---|---|
//! | SYN | unanswered handshakes reach the floor and a share of all; more than repeated SYNs of clients whose server is down |
//! | SYN+ACK, RST, ACK, UDP | packets or new flows that the victim did not ask for reach the floor, and it does not answer |
//! | reflection | packets or bytes from one source port reach the floor |
//! | ICMP | packets or bytes reach the floor |
//! | fragments | they reach the floor, and are no large datagrams of a few sources |
//! | idle connections | connections that are open and got no byte reach the floor and a share of all |

use super::{
    class::{self, Class, Reach},
    rule::Rule,
};
use crate::{
    FlowKey,
    monitor::{
        alarms::{
            distinct::Distinct,
            table::{Subject, Suspect},
        },
        incidents::{self, Ends, Evidence, Finding, List},
    },
};

const SECOND: u64 = 1_000_000_000;
/// The least time of a window from which a rate is known.
const HALF: u64 = SECOND / 2;

/// The counts of one window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Handshakes, flows or packets that ask for a reaction of the victim.
    pub(super) asked: u32,
    /// Those that were answered, refused or ended.
    pub(super) answered: u32,
    /// Handshakes that went on without an answer in the capture.
    pub(super) one_way: u32,
    /// Flows without an answer in the capture that sent payload.
    pub(super) backing: u32,
    /// SYNs that were repeated; of fragments, the first ones.
    pub(super) again: u32,
    /// Handshakes that the victim refused.
    pub(super) refused: u32,
    pub(super) packets: u32,
    pub(super) bytes: u64,
}

impl Counts {
    fn plus(self, other: Counts) -> Counts {
        Counts {
            asked: self.asked.saturating_add(other.asked),
            answered: self.answered.saturating_add(other.answered),
            one_way: self.one_way.saturating_add(other.one_way),
            backing: self.backing.saturating_add(other.backing),
            again: self.again.saturating_add(other.again),
            refused: self.refused.saturating_add(other.refused),
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// The decayed mean of windows without a flood, and the variance.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Usual {
    pub(super) windows: u32,
    /// Of the size, of the asked and of the answered.
    pub(super) means: [f64; 3],
    /// Of the size.
    pub(super) variance: f64,
}

/// The most windows that weigh in the mean.
const MEMORY: f64 = 12.0;

impl Usual {
    fn learn(&mut self, sizes: [f64; 3]) {
        self.windows = self.windows.saturating_add(1);
        let share = 1.0 / f64::from(self.windows).min(MEMORY);
        let off = sizes[0] - self.means[0];
        for (mean, size) in self.means.iter_mut().zip(sizes) {
            *mean += share * (size - *mean);
        }
        self.variance = (1.0 - share) * (self.variance + share * off * off);
    }

    /// The size of two windows that the past allows.
    fn most(&self) -> f64 {
        if self.windows < 3 {
            return 0.0;
        }
        let mean = 2.0 * self.means[0];
        mean + 6.0 * (2.0 * self.variance + mean).sqrt()
    }
}

/// What the monitor knows beside the victim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) rules: &'a [Rule; 9],
    /// Whether the capture has both directions of other traffic.
    pub(super) is_two_way: bool,
    /// Whether every connection was followed.
    pub(super) followed: bool,
}

/// A packet or flow that arrives at a victim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit<'a> {
    pub(super) now: u64,
    pub(super) flow: &'a FlowKey,
    /// Hashes of the source, and of the part of the victim: its port, or a host of the prefix.
    pub(super) source: u32,
    pub(super) part: u32,
    /// One of 16 parts of the victim.
    pub(super) bucket: usize,
    /// The last byte of the victim's address.
    pub(super) last: u8,
    /// Whether the victim was seen to send.
    pub(super) sends: bool,
    pub(super) sampled: bool,
    /// Whether the subject is a host or a port of one.
    pub(super) is_at_host: bool,
    pub(super) counts: Counts,
}

/// A victim, and what arrived.
#[derive(Debug, Clone)]
pub(super) struct Flood {
    pub(super) subject: Subject,
    /// Of this window and of the one before.
    pub(super) windows: [Counts; 2],
    pub(super) sampled: [bool; 2],
    /// The start of this window, and its length.
    pub(super) start: u64,
    pub(super) span: u64,
    pub(super) usual: Usual,
    pub(super) since: Option<u64>,
    pub(super) alarm: Option<usize>,
    /// The attempts at the last look.
    pub(super) told: u64,
    pub(super) is_first: bool,
    pub(super) sends: bool,
    pub(super) attempts: u64,
    pub(super) bytes: u64,
    pub(super) peak: u64,
    /// Hits by part, halved with every window.
    pub(super) spread: [u32; 16],
    /// One bit for each of 64 hashes of parts and of sources, of this window and of the one before.
    pub(super) parts: [u64; 2],
    pub(super) origins: [u64; 2],
    /// The lowest and the highest last byte of hosts.
    pub(super) range: [u8; 2],
    pub(super) sources: Distinct,
    pub(super) example: Option<FlowKey>,
}

impl Suspect for Flood {
    fn new(subject: Subject, now: u64, is_first: bool) -> Self {
        Flood {
            subject,
            windows: [Counts::default(); 2],
            sampled: [false; 2],
            start: now,
            span: 0,
            usual: Usual::default(),
            since: None,
            alarm: None,
            told: 0,
            is_first,
            sends: false,
            attempts: 0,
            bytes: 0,
            peak: 0,
            spread: [0; 16],
            parts: [0; 2],
            origins: [0; 2],
            range: [u8::MAX, 0],
            sources: Distinct::default(),
            example: None,
        }
    }

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn weight(&self, now: u64) -> Option<f64> {
        if self.is_open() {
            return None;
        }
        let sums = self.sums(now);
        let size = f64::from(sums.asked.saturating_sub(sums.answered).max(sums.packets / 8));
        // A victim with a past is worth more than one without.
        Some(size + f64::from(self.usual.windows.min(8)) / 8.0)
    }

    fn is_active(&self, now: u64) -> bool {
        now.saturating_sub(self.start) < self.span
    }

    fn is_open(&self) -> bool {
        self.since.is_some() || self.alarm.is_some()
    }
}

impl Flood {
    pub(super) fn class(&self) -> Class {
        class::class(&self.subject)
    }

    /// The counts of the windows that count at time `now`.
    fn sums(&self, now: u64) -> Counts {
        match now.saturating_sub(self.start) / self.span.max(1) {
            0 => self.windows[0].plus(self.windows[1]),
            1 => self.windows[0],
            _ => Counts::default(),
        }
    }

    /// The time that the windows of [`sums`](Self::sums) cover, at least a second.
    fn length(&self, now: u64) -> u64 {
        let own = now.saturating_sub(self.start);
        let before = if self.windows[1] == Counts::default() { 0 } else { self.span };
        own.saturating_add(before).clamp(SECOND, 2 * self.span)
    }

    /// Begins a new window if the current one is over.
    fn turn(&mut self, now: u64, context: &Context<'_>) {
        self.span = context.rules[self.class() as usize].window;
        let over = now.saturating_sub(self.start) / self.span;
        if over == 0 {
            return;
        }
        if self.alarm.is_none() && self.since.is_none() {
            let last = self.windows[0];
            let answered = f64::from(last.answered);
            let size = self.size(&last, context);
            // What clients do while their server is silent is not usual.
            if self.class() != Class::Syn || size < context.rules[Class::Syn as usize].count {
                self.usual.learn([size as f64, f64::from(last.asked), answered]);
            }
            // Windows without a packet are part of the past.
            for _ in 1..over.min(MEMORY as u64) {
                self.usual.learn([0.0; 3]);
            }
        }
        let keep = over == 1;
        self.windows = [Counts::default(), if keep { self.windows[0] } else { Counts::default() }];
        self.sampled = [false, keep && self.sampled[0]];
        self.parts = [0, if keep { self.parts[0] } else { 0 }];
        self.origins = [0, if keep { self.origins[0] } else { 0 }];
        for count in &mut self.spread {
            *count = if keep { *count / 2 } else { 0 };
        }
        if !keep && self.alarm.is_none() {
            self.range = [u8::MAX, 0];
        }
        self.start += over * self.span;
    }

    /// Counts a hit.
    pub(super) fn hit(&mut self, hit: &Hit<'_>, context: &Context<'_>) {
        self.turn(hit.now, context);
        self.sampled[0] |= hit.sampled;
        self.sends |= hit.sends;
        self.windows[0] = self.windows[0].plus(hit.counts);
        self.attempts += u64::from(hit.counts.asked.max(hit.counts.packets));
        self.bytes = self.bytes.saturating_add(hit.counts.bytes);
        self.spread[hit.bucket & 15] = self.spread[hit.bucket & 15].saturating_add(1);
        self.parts[0] |= 1 << (hit.part & 63);
        self.origins[0] |= 1 << (hit.source & 63);
        self.range = [self.range[0].min(hit.last), self.range[1].max(hit.last)];
        self.sources.see(hit.source);
        self.example = Some(*hit.flow);
        self.settle(hit.now, context);
    }

    /// Counts an answer or another excuse.
    pub(super) fn note(&mut self, now: u64, counts: Counts, context: &Context<'_>) {
        self.turn(now, context);
        self.windows[0] = self.windows[0].plus(counts);
        self.settle(now, context);
    }

    fn settle(&mut self, now: u64, context: &Context<'_>) {
        let sums = self.sums(now);
        self.peak = self.peak.max(self.size(&sums, context));
        match (self.holds(&sums, now, context), self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(_)) if self.alarm.is_none() => self.since = None,
            _ => {}
        }
    }

    fn is_prefix(&self) -> bool {
        matches!(class::reach(&self.subject), Reach::Prefix(_))
    }

    /// Whether the capture would show what the victim sends.
    fn is_seen(&self, context: &Context<'_>) -> bool {
        self.sends || context.is_two_way
    }

    /// What counts against the victim's callers, in the unit of the class.
    fn size(&self, sums: &Counts, context: &Context<'_>) -> u64 {
        let asked = sums.asked;
        let size = match self.class() {
            Class::Syn => {
                let one_way = match self.is_seen(context) {
                    true => sums.one_way.min(sums.backing),
                    false => sums.one_way,
                };
                let open = asked.saturating_sub(sums.answered).saturating_sub(one_way);
                // One flow that is opened again and again is no client, and neither are those that
                // ask for a port that is closed, faster than a server's own clients.
                let repeated = if sums.again / 20 > asked { sums.again } else { 0 };
                let is_closed = 2 * sums.refused > asked && sums.refused >= REFUSED;
                open.max(repeated).max(if is_closed { sums.refused } else { 0 })
            }
            Class::SynAck => asked.saturating_sub(sums.backing),
            Class::Reflection => sums.packets,
            // A host that is pinged too often may answer all the same; a network that answers is used.
            Class::Icmp if self.is_prefix() => asked.saturating_sub(sums.answered),
            Class::Icmp => asked.saturating_sub(sums.answered / 4 * 3),
            Class::Fragment => asked,
            Class::Udp => {
                let flows = asked.saturating_sub(sums.answered);
                if ones(self.origins) >= 14 { flows.max(sums.packets / 5) } else { flows }
            }
            _ => asked.saturating_sub(sums.answered),
        };
        u64::from(size)
    }

    /// The least size of this subject that is a flood.
    fn least(&self, rule: &Rule) -> u64 {
        let times = match (class::reach(&self.subject), self.class()) {
            (Reach::Port, _) => 1,
            (Reach::Host, Class::Syn) => 2,
            // Scans of many sources touch each host of a wide network now and then.
            (Reach::Prefix(16 | 48), Class::Syn) => 100,
            (Reach::Prefix(20 | 56), Class::Syn) => 50,
            (Reach::Prefix(_), Class::Syn) => 20,
            (Reach::Prefix(_), _) => 2,
            _ => 1,
        };
        rule.count.saturating_mul(times)
    }

    /// Whether the counts are a flood.
    fn holds(&self, sums: &Counts, now: u64, context: &Context<'_>) -> bool {
        let class = self.class();
        let rule = &context.rules[class as usize];
        let (size, least) = (self.size(sums, context), self.least(rule));
        let by_bytes = rule.bytes > 0 && sums.bytes >= rule.bytes;
        if !rule.enabled || (size < least && !by_bytes) || !self.is_spread(class) {
            return false;
        }
        if size >= least && (size as f64) < self.usual.most() {
            return false;
        }
        let (asked, answered) = (u64::from(sums.asked), u64::from(sums.answered));
        let mean = sums.bytes / u64::from(sums.packets).max(1);
        // A scanner sends small packets, each to another port.
        let is_scan = |small| {
            let few_sources = ones(self.origins) <= 2 && ones(self.parts) >= 8;
            few_sources && self.attempts < SCANNED && mean < small
        };
        match class {
            Class::Syn if self.is_prefix() && ones(self.origins) < 4 && size < 10 * least => false,
            Class::Syn => {
                let sampled = self.sampled[0] || self.sampled[1];
                let margin = if sampled { 3.0 * (asked as f64).sqrt() } else { 0.0 };
                size >= (asked as f64 * rule.ratio + margin) as u64
                    && !self.is_stall(sums, size, now)
            }
            // One host that answers many forged sources is a victim, and they are not. One that tries
            // many hosts is a scanner.
            Class::SynAck | Class::Rst if self.is_prefix() && ones(self.origins) < 4 => false,
            Class::SynAck | Class::Rst => self.is_seen(context),
            Class::Ack => self.is_seen(context) && 2 * size >= asked && !is_scan(100),
            Class::Reflection if self.is_seen(context) => mean >= 60,
            Class::Reflection => mean >= 400 && sums.bytes >= 4 * rule.bytes,
            Class::Udp => self.is_seen(context) && 2 * size >= asked && !is_scan(250),
            Class::Icmp => true,
            Class::Fragment => {
                let first = u64::from(sums.again);
                let later = asked.saturating_sub(first);
                // A datagram has at most 64 KiB, and a first fragment has a second one.
                let is_broken = later > 50 * first || first > 3 * later;
                is_broken || ones(self.origins) >= 14 || mean < 300
            }
            Class::Idle => size as f64 >= rule.ratio * asked.saturating_sub(answered / 4) as f64,
        }
    }

    /// Whether clients repeat their SYNs to a server that does not answer any more.
    fn is_stall(&self, sums: &Counts, size: u64, now: u64) -> bool {
        if self.is_prefix() {
            return false;
        }
        let again = u64::from(sums.again);
        let repeats = 4 * again >= size && again <= 6 * size && size < 1_000;
        repeats || !self.asks_more(now)
    }

    /// Whether more is asked for than usual, if the victim used to answer. A server whose path fails
    /// has the clients that it had.
    fn asks_more(&self, now: u64) -> bool {
        let [_, usual, served] = self.usual.means;
        if self.usual.windows < 1 || 2.0 * served <= usual {
            return true;
        }
        let elapsed = now.saturating_sub(self.start);
        let (asked, time) = match elapsed {
            0..HALF => (self.windows[1].asked, self.span),
            _ => (self.windows[0].asked, elapsed.min(self.span)),
        };
        let expected = usual * time as f64 / self.span.max(1) as f64;
        f64::from(asked) > 1.5 * expected + 6.0 * expected.sqrt() + 10.0
    }

    /// Whether the hits are spread over the parts of the subject, as far as it has any: over ports of a
    /// host, or hosts of a prefix.
    fn is_spread(&self, class: Class) -> bool {
        let all: u64 = self.spread.iter().map(|&count| u64::from(count)).sum();
        let most = self.spread.iter().copied().max().unwrap_or(0);
        let is_even = 10 * u64::from(most) <= 7 * all;
        let parts = ones(self.parts);
        match class::reach(&self.subject) {
            Reach::Port => true,
            Reach::Host if class == Class::Syn => is_even && parts >= 5,
            Reach::Host => true,
            Reach::Prefix(24 | 64) => is_even && parts >= 7,
            // A part that has nearly all hits is reported by itself.
            Reach::Prefix(_) => parts >= 12 && self.filled().is_some_and(|(_, parts)| parts > 1),
        }
    }

    /// The smallest aligned run of parts that has nine of ten hits, as its start and length; `None` if
    /// half of these parts have few hits.
    fn filled(&self) -> Option<(usize, usize)> {
        let all: u64 = self.spread.iter().map(|&count| u64::from(count)).sum();
        for length in [1, 2, 4, 8, 16] {
            for start in (0..16).step_by(length) {
                let run = &self.spread[start..start + length];
                let sum: u64 = run.iter().map(|&count| u64::from(count)).sum();
                if 10 * sum >= 9 * all {
                    let few = |&&count: &&u32| 4 * u64::from(count) * (length as u64) < sum;
                    let few = run.iter().filter(few).count();
                    return (2 * few <= length).then_some((start, length));
                }
            }
        }
        None
    }

    /// The host or the prefix that the hits are spread over.
    fn victim(&self) -> crate::Prefix {
        let (whole, _) = class::parts(&self.subject);
        match class::reach(&self.subject) {
            Reach::Prefix(24) => {
                let [low, high] = self.range;
                let bits = (low ^ high).leading_zeros().min(8) as u8;
                class::narrowed(whole, 24 + bits, low)
            }
            Reach::Prefix(64) => whole,
            Reach::Prefix(length) => {
                let (start, parts) = self.filled().unwrap_or((0, 16));
                let bits = 4 - parts.trailing_zeros() as u8;
                class::narrowed_by(whole, length, length + bits, start as u8)
            }
            _ => whole,
        }
    }

    /// Once per second: raises, updates or closes the incident.
    pub(super) fn look(&mut self, now: u64, over: bool, context: &Context<'_>, list: &mut List) {
        let class = self.class();
        let rule = context.rules[class as usize];
        let per_second = |size: u64, length: u64| match class {
            Class::Idle => size,
            _ => (u128::from(size) * u128::from(SECOND) / u128::from(length)) as u64,
        };
        if let Some(number) = self.alarm {
            let sums = self.sums(now);
            let size = self.size(&sums, context);
            if size < self.least(&rule) / 2 && (rule.bytes == 0 || sums.bytes < rule.bytes / 2) {
                list.show(self.alarm, || self.evidence(context));
                list.close(number, now);
                *self = Flood {
                    usual: self.usual,
                    sends: self.sends,
                    ..Flood::new(self.subject, now, false)
                };
                return;
            }
            list.update(self.alarm, now, per_second(size, self.length(now)));
            if let Some(flow) = self.example.take() {
                list.example(self.alarm, now, &flow);
            }
            return;
        }
        let Some(since) = self.since else { return };
        let then = since.saturating_add(rule.holds);
        let sums = self.sums(now.min(then));
        if !self.holds(&sums, now.min(then), context) {
            self.since = None;
        } else if !self.is_ready(now, since, over, &rule) {
            // The burst is over.
            if now >= since.saturating_add(4 * rule.holds) {
                self.since = None;
            }
            self.told = self.attempts;
        } else {
            let size = per_second(self.size(&sums, context), self.length(now));
            let least = per_second(self.least(&rule), rule.window);
            self.alarm = list.raise(self.finding(since, size, least, context));
            if let Some(flow) = self.example.take() {
                list.example(self.alarm, now, &flow);
            }
            // An incident that cannot be listed is counted once: the condition must begin again.
            self.since = self.since.filter(|_| self.alarm.is_some());
        }
    }

    /// Whether the condition has held for long enough. A single burst is no flood, except of SYNs that
    /// stay unanswered: a server may answer when its clients ask again, after a second.
    fn is_ready(&self, now: u64, since: u64, over: bool, rule: &Rule) -> bool {
        let held = now.saturating_sub(since);
        let goes_on = self.attempts > self.told.saturating_add(self.least(rule) / 16);
        match self.class() {
            _ if over && held <= 2 * rule.holds => true,
            Class::Idle | Class::Fragment => held >= rule.holds,
            Class::Syn if held >= 3 * rule.holds => true,
            _ => held >= rule.holds && goes_on,
        }
    }

    fn finding(&self, opened: u64, size: u64, least: u64, context: &Context<'_>) -> Finding {
        let (class, victim) = (self.class(), self.victim());
        let port = class::parts(&self.subject).1;
        let is_v6 = self.subject[0] == 6;
        let is_port = class::reach(&self.subject) == Reach::Port;
        let text = match class {
            Class::Syn if is_port => format!("SYN flood at {victim} port {port}"),
            Class::Syn if victim.is_host() => format!("SYN flood at many ports of {victim}"),
            Class::Syn => format!("SYN flood at hosts of {victim}"),
            Class::SynAck => format!("SYN+ACKs that {victim} did not ask for"),
            Class::Rst => format!("RSTs of connections that {victim} does not have"),
            Class::Ack => format!("TCP segments of connections that {victim} does not have"),
            Class::Reflection => {
                let name = super::amplifiers::name(port).unwrap_or("UDP");
                format!("{name} answers that {victim} did not ask for")
            }
            Class::Udp => format!("UDP flood at {victim}"),
            Class::Icmp => format!("ICMP flood at {victim}"),
            Class::Fragment => format!("flood of fragments at {victim}"),
            Class::Idle => format!("connections that stay idle at {victim} port {port}"),
        };
        let ends = Ends {
            protocol: class.protocol(is_v6),
            subject_port: (is_port && class != Class::Reflection).then_some(port),
            peer_port: (class == Class::Reflection).then_some(port),
            ..Ends::default()
        };
        let filter = format!("dst {} {victim}{}", victim.word(), class.words(port));
        Finding {
            kind: class.kind(),
            subject: victim,
            ends,
            text,
            filter,
            opened,
            size,
            least,
            evidence: self.evidence(context),
        }
    }

    pub(super) fn evidence(&self, context: &Context<'_>) -> Evidence {
        let class = self.class();
        let counted = context.followed && self.is_first;
        let attempts = incidents::count(self.attempts, counted);
        let sources = incidents::estimate(self.sources.figure(), attempts, context.followed);
        let mut evidence = match class {
            Class::Syn => {
                let peak = incidents::count(self.peak, counted);
                vec![("attempts", attempts), ("peak_pending", peak)]
            }
            Class::Idle => {
                vec![("connections", attempts), ("idle", incidents::count(self.peak, false))]
            }
            _ => vec![
                ("packets", incidents::count(self.attempts, self.is_first)),
                ("bytes", incidents::count(self.bytes, self.is_first)),
            ],
        };
        evidence.push(("sources_about", sources));
        evidence
    }
}

/// Handshakes that a closed port refuses within one to two windows from which on they are a flood.
const REFUSED: u32 = 2_000;
/// Datagrams of one source that may be a scan.
const SCANNED: u64 = 3_000;

/// The bits that are set in either word.
fn ones(words: [u64; 2]) -> u32 {
    (words[0] | words[1]).count_ones()
}
