//! Alarms: the detectors of floods and scans, what they read of each packet, and their incidents.
//!
//! The connections monitor reports the events of handshakes; every other decision is made on packets.
//! `packets` sorts them into what a victim did not ask for (`floods`) and what a
//! source tries (`scans`). Twice per second suspects are judged.
//! ```text
//! handshakes ---------------+--> floods: victims, prefixes --+
//! packet -> who sent before?|--> scans: sources -------------+--> list of incidents
//!           (contacts)      +--> forged SYNs ----------------+
//! ```
//! An incident is raised when its condition has held for the time that its kind demands, or holds
//! after the last packet. It is closed when the condition no longer holds. A high rate of connections
//! raises none while their handshakes complete. A one-way capture raises none either: an opener that
//! sends more after its SYN counts as answered, and packets that nobody asked for count only if the
//! capture shows what their receiver sends.
//!
//! While connections are sampled ([`flow_map`](crate::flow_map)), an incident of handshakes needs the
//! same number of followed ones. From then on `random_scan` is not raised over TCP. SYNs to the victim of a
//! flood do not count as scans, because their sources are forged. Packets that flow records imply
//! count by their handshakes alone.

pub(super) mod distinct;
mod forged;
mod packets;
mod saved;
pub(super) mod table;

pub(super) use saved::read_alarm;

use crate::{Event, batch::Batch, thresholds::Thresholds, work::Work};
use forged::Forged;
use sidon::{Infeasible, Seed};
use std::sync::Arc;

use super::{
    beacons::{self, Beacons},
    connections::Verdict,
    contacts::Contacts,
    floods::{self, Floods},
    incidents::{Incident, LISTED_MAX, List},
    scans::{self, Scans},
};

const SECOND: u64 = 1_000_000_000;
/// The time that a condition must hold before the alarm is raised.
const HOLDS: u64 = SECOND;
/// The time between two looks at the suspects.
const TICK: u64 = SECOND / 2;

/// The monitor.
#[derive(Debug)]
pub struct Alarms {
    contacts: Contacts,
    floods: Floods,
    scans: Scans,
    beacons: Beacons,
    /// Forged SYNs of IPv4 and of IPv6.
    forged: [Forged; 2],
    list: List,
    ticked: u64,
    /// Whether every connection so far was followed.
    followed: bool,
    /// Packets, and advances of the clock without one.
    events: u64,
}

/// The sizes of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the memory of contacts.
    contacts: u64,
    /// Victims of each kind.
    victims: u64,
    /// Sources of each kind.
    sources: u64,
    /// Bytes of the pairs in regular contact.
    pairs: u64,
}

impl Shape {
    /// The tables that fit in `bytes` bytes: three tenths each for contacts, victims and sources, and a
    /// tenth for pairs.
    pub fn within(bytes: u64) -> Self {
        let share = bytes / 10 * 3;
        Shape {
            contacts: share / 16 * 16,
            victims: floods::subjects(share),
            sources: scans::subjects(share),
            pairs: bytes / 10,
        }
    }

    /// The smallest tables.
    const LEAST: Shape = Shape { contacts: 0, victims: 16, sources: 8, pairs: 0 };

    /// The bytes of the tables.
    pub fn bytes(&self) -> u64 {
        let tables = floods::bytes(self.victims) + scans::bytes(self.sources);
        self.contacts + tables + beacons::bytes(self.pairs)
    }
}

impl Alarms {
    /// Empty tables.
    pub fn new(shape: Shape, seed: Seed, thresholds: Arc<Thresholds>) -> Result<Self, Infeasible> {
        Ok(Alarms {
            contacts: Contacts::new(shape.contacts)?,
            floods: Floods::new(shape.victims, seed, &thresholds)?,
            scans: Scans::new(shape.sources, seed, &thresholds)?,
            beacons: Beacons::new(shape.pairs, seed, &thresholds)?,
            forged: [const { Forged::new(0) }; 2],
            list: List::new(seed, thresholds),
            ticked: 0,
            followed: true,
            events: 0,
        })
    }

    /// Incidents from a file, with empty tables.
    pub(crate) fn of(list: List, seed: Seed) -> Result<Self, Infeasible> {
        Ok(Alarms { list, ..Alarms::new(Shape::LEAST, seed, Arc::default())? })
    }

    /// The incidents, as they are saved.
    pub(crate) fn list(&self) -> &List {
        &self.list
    }

    /// Adds the incidents of another capture, see [`List::absorb`].
    pub(crate) fn absorb(&mut self, other: Alarms, lasts: [u64; 2]) {
        self.list.absorb(other.list, lasts);
    }

    /// Reads the packets of a batch that is sorted, and the events of their handshakes. `sampled` says
    /// that only a share of the new connections is followed now; `followed`, that every connection so
    /// far was.
    ///
    /// Every handshake here is followed to its end, so the counts are lower bounds of the truth at
    /// any share. While sampling, the ratio of unanswered to opened handshakes is an estimate. It
    /// must then exceed its limit by six standard deviations.
    pub fn take(&mut self, batch: &Batch, verdicts: &[Verdict], sampled: bool, followed: bool) {
        self.list.drain_news();
        self.followed = followed;
        self.events += batch.packets.len() as u64;
        let mut verdicts = verdicts.iter().peekable();
        for (index, packet) in batch.packets.iter().enumerate() {
            self.tick(packet.time_ns);
            let own = verdicts.next_if(|verdict| usize::from(verdict.index) == index);
            self.packet(batch, index, own, sampled);
        }
    }

    /// Advances the time to `now`, without a packet.
    pub fn pass(&mut self, now: u64) {
        self.events += 1;
        self.list.drain_news();
        self.tick(now);
    }

    /// Twice per second: raises alarms whose condition held long enough, and closes those that
    /// ended.
    fn tick(&mut self, now: u64) {
        if now < self.ticked.saturating_add(TICK) {
            return;
        }
        self.ticked = now;
        self.look(now, false);
    }

    /// Ends the capture: raises an alarm for every condition that holds now.
    pub fn end(&mut self, now: u64) {
        self.list.drain_news();
        self.look(now, true);
        self.refresh();
    }

    /// Raises and closes alarms. `over`: raises them even if a condition has just begun.
    fn look(&mut self, now: u64, over: bool) {
        let Alarms { contacts, list, floods, scans, beacons, forged, followed, .. } = self;
        let is_two_way = contacts.is_two_way();
        floods.know(is_two_way, *followed);
        floods.look(now, over, list);
        scans.look(now, over, *followed, is_two_way, list);
        beacons.look(now, over, list);
        forged.iter_mut().for_each(|forged| forged.look(now, over, *followed, list));
    }

    /// Updates the evidence of the open alarms. Estimates take time, so the look of each second leaves
    /// them out.
    pub(crate) fn refresh(&mut self) {
        let Alarms { list, floods, scans, forged, followed, .. } = self;
        floods.refresh(list);
        scans.refresh(*followed, list);
        for forged in forged {
            list.show(forged.alarm(), || forged.evidence(*followed));
        }
    }

    /// The listed incidents, in the order in which they were raised: at most 256.
    pub fn incidents(&self) -> impl DoubleEndedIterator<Item = &Incident> + ExactSizeIterator {
        self.list.incidents()
    }

    /// The listed incidents in the order of a report: the most severe first, floods before scans, each
    /// by time.
    pub fn listed(&self) -> Vec<Incident> {
        let mut incidents: Vec<Incident> = self.incidents().cloned().collect();
        incidents.sort_by_key(Incident::order);
        incidents
    }

    /// Incidents that were ever listed, by kind in the order of [`KINDS`](super::incidents::KINDS).
    pub fn raised(&self) -> [u64; super::incidents::KINDS.len()] {
        self.list.raised()
    }

    /// Suspects that were evicted or not stored for lack of room, though they had some evidence.
    pub fn evicted(&self) -> u64 {
        self.floods.evicted().saturating_add(self.scans.evicted())
    }

    /// Contacts of pairs that found no room among those in regular contact.
    pub fn pairs_refused(&self) -> u64 {
        self.beacons.refused()
    }

    /// Subjects that were judged so far. A packet causes at most one look. It changes at most 14
    /// subjects, each of which is then judged until its condition has held long enough. A listed
    /// alarm is judged until it closes.
    pub fn work(&self) -> Work {
        let done = self.floods.judged() + self.scans.judged();
        let each = 14 * (HOLDS / TICK + 2) + 2 * LISTED_MAX as u64;
        // A resumed engine goes on from counts of any size.
        let most = each.saturating_mul(self.events.saturating_add(2));
        Work { what: "alarms: subjects judged", done, most }
    }

    /// Incidents that were never listed or are no longer, by kind.
    pub fn unlisted(&self) -> &[(&'static str, u64)] {
        self.list.unlisted()
    }

    /// Incidents that the user allows, by rule.
    pub fn allowed(&self) -> &[(String, u64)] {
        self.list.allowed()
    }

    /// Records events of incidents for [`Self::drain_events`].
    pub(crate) fn record_events(&mut self) {
        self.list.record_events();
    }

    /// Calls `to` for each change of an incident by the last batch or the last `pass`. `weaken` changes
    /// the evidence as the report does. `now` is the time of the last packet.
    pub(crate) fn drain_events(
        &mut self,
        now: u64,
        weaken: impl Fn(&mut Incident),
        mut to: impl FnMut(Event),
    ) {
        for mut news in self.list.drain_news() {
            weaken(&mut news.incident);
            to(Event::incident(now, &news.incident, news.state));
        }
    }
}
