//! The alarms raised so far, at most [`LISTED_MAX`]: a new one replaces the oldest closed one.

use super::{Alarm, Evidence, KINDS, evidence};
use crate::{
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::Malformed;

/// The most alarms that are listed.
pub(crate) const LISTED_MAX: usize = 256;
/// The most bytes of the text and of the filter of an alarm in a file.
pub(crate) const TEXT_MAX: usize = 4096;

/// The listed alarms, and the events about them that were not reported yet.
#[derive(Debug, Default)]
pub(super) struct List {
    alarms: Vec<Alarm>,
    /// The number of each alarm, in ascending order. It stays valid when positions change.
    numbers: Vec<usize>,
    next: usize,
    /// Alarms that were ever listed, by kind in the order of [`KINDS`].
    raised: [u64; KINDS.len()],
    unlisted: u64,
    news: Vec<(usize, bool)>,
}

impl List {
    /// A list of alarms from a file; `None` if there are more than [`LISTED_MAX`].
    pub(super) fn of(alarms: Vec<Alarm>, unlisted: u64) -> Option<Self> {
        if alarms.len() > LISTED_MAX {
            return None;
        }
        let mut list = List { unlisted, ..List::default() };
        for alarm in alarms {
            list.push(alarm);
        }
        Some(list)
    }

    /// Adds the alarms of another list, in the order of their opening times. Alarms still open in
    /// the capture that ended first are closed at its end.
    ///
    /// Two alarms of one kind and subject become one if they overlap. They also become one if the
    /// later one, of the other capture, opened within [`Alarm::closes_after`] of the earlier one's
    /// end: in one capture, the alarm would have stayed open.
    pub(super) fn absorb(&mut self, other: List, lasts: [u64; 2]) {
        let end = lasts[0].max(lasts[1]);
        let mut parts = Vec::new();
        for (capture, alarms) in
            [std::mem::take(&mut self.alarms), other.alarms].into_iter().enumerate()
        {
            let last = lasts[capture];
            parts.extend(alarms.into_iter().map(|mut alarm| {
                if alarm.closed.is_none() && last < end {
                    alarm.closed = Some(last.max(alarm.opened));
                }
                (capture, alarm)
            }));
        }
        let by_time = |one: &Alarm, two: &Alarm| {
            (one.opened, one.kind, one.subject).cmp(&(two.opened, two.kind, two.subject))
        };
        parts.sort_by(|(_, one), (_, two)| by_time(one, two));
        // Each alarm with the capture in which it was open last.
        let mut joined: Vec<(usize, Alarm)> = Vec::new();
        for (capture, alarm) in parts {
            let closed = |alarm: &Alarm| alarm.closed.unwrap_or(end);
            let goes_on = |(its, before): &&mut (usize, Alarm)| {
                let gap = if *its == capture { 0 } else { before.closes_after() };
                before.is_like(&alarm) && alarm.opened <= closed(before).saturating_add(gap)
            };
            let Some((its, before)) = joined.iter_mut().rev().find(goes_on) else {
                joined.push((capture, alarm));
                continue;
            };
            if closed(&alarm) >= closed(before) {
                *its = capture;
            }
            before.closed = before.closed.zip(alarm.closed).map(|(one, two)| one.max(two));
            evidence::join(&mut before.evidence, alarm.evidence);
        }
        let mut alarms: Vec<_> = joined.into_iter().map(|(_, alarm)| alarm).collect();
        let more = alarms.len().saturating_sub(LISTED_MAX) as u64;
        let unlisted = self.unlisted.saturating_add(other.unlisted).saturating_add(more);
        alarms.sort_by_key(|alarm| !alarm.is_flood());
        alarms.truncate(LISTED_MAX);
        alarms.sort_by(by_time);
        *self = List::of(alarms, unlisted).unwrap_or_default();
    }

    /// Raises an alarm and returns its number; `None` if no listed alarm can be replaced.
    pub(super) fn raise(&mut self, alarm: Alarm) -> Option<usize> {
        if self.alarms.len() >= LISTED_MAX {
            self.unlisted = self.unlisted.saturating_add(1);
            // An alarm stays listed until its events are reported.
            let mut untold: Vec<usize> = self.news.iter().map(|(number, _)| *number).collect();
            untold.sort_unstable();
            let told = |number: &usize| untold.binary_search(number).is_err();
            let mut places = self.alarms.iter().zip(&self.numbers);
            let place =
                places.position(|(alarm, number)| alarm.closed.is_some() && told(number))?;
            self.alarms.remove(place);
            self.numbers.remove(place);
        }
        debug_assert!(KINDS.contains(&alarm.kind), "{} is one of the kinds", alarm.kind);
        let number = self.push(alarm);
        self.news.push((number, true));
        Some(number)
    }

    fn push(&mut self, alarm: Alarm) -> usize {
        // A file may contain kinds that this version does not have.
        if let Some(kind) = KINDS.iter().position(|kind| *kind == alarm.kind) {
            self.raised[kind] += 1;
        }
        let number = self.next;
        self.next += 1;
        self.alarms.push(alarm);
        self.numbers.push(number);
        number
    }

    fn alarm(&mut self, number: usize) -> Option<&mut Alarm> {
        let place = self.numbers.binary_search(&number).ok()?;
        self.alarms.get_mut(place)
    }

    /// Sets the evidence of an alarm that is still open, if there is one.
    pub(super) fn show(&mut self, number: Option<usize>, evidence: impl FnOnce() -> Evidence) {
        if let Some(alarm) = number.and_then(|number| self.alarm(number)) {
            alarm.evidence = evidence();
        }
    }

    /// Closes an alarm whose condition no longer holds.
    pub(super) fn close(&mut self, number: usize, now: u64) {
        if let Some(alarm) = self.alarm(number) {
            alarm.closed = Some(now);
            self.news.push((number, false));
        }
    }

    /// The listed alarms, in the order in which they were raised.
    pub(super) fn alarms(&self) -> &[Alarm] {
        &self.alarms
    }

    /// Alarms that were ever listed, by kind in the order of [`KINDS`].
    pub(super) fn raised(&self) -> [u64; KINDS.len()] {
        self.raised
    }

    /// The number of alarms that were never listed, or are no longer.
    pub(super) fn unlisted(&self) -> u64 {
        self.unlisted
    }

    /// Calls `to` for each alarm that was raised or closed since the last call; `true` means
    /// raised.
    pub(super) fn drain_news(&mut self, mut to: impl FnMut(&Alarm, bool)) {
        for (number, raised) in std::mem::take(&mut self.news) {
            if let Some(alarm) = self.alarm(number) {
                to(alarm, raised);
            }
        }
    }

    /// Discards events that the caller did not read.
    pub(super) fn forget_news(&mut self) {
        self.news.clear();
    }
}

/// A list in a checkpoint: the numbers of its alarms. A snapshot holds the alarms. Events that were not
/// reported are left out, because the next batch discards them.
impl Resume for List {
    fn save(&self, out: &mut Out) {
        out.number(self.next as u64);
        out.numbers(&self.raised);
        self.numbers.iter().for_each(|&number| out.number(number as u64));
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.next = bytes.count("next")? as usize;
        self.raised = bytes.counts("raised")?;
        for number in &mut self.numbers {
            *number = bytes.below("number", self.next)?;
        }
        bytes.check("number", self.numbers.is_sorted_by(|one, two| one < two))
    }
}

impl List {
    /// Whether an alarm was raised under this number.
    pub(super) fn has_raised(&self, number: Option<usize>) -> bool {
        number.is_none_or(|number| number < self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;

    fn alarm(opened: u64) -> Alarm {
        Alarm {
            kind: KINDS[opened as usize % 2],
            subject: [10, 0, 0, 1].into(),
            text: String::new(),
            opened,
            closed: None,
            evidence: Vec::new(),
            filter: String::new(),
        }
    }

    #[test]
    fn closed_alarms_make_room_the_oldest_first_and_open_ones_stay() {
        let mut list = List::default();
        let numbers: Vec<_> = (0..256).map(|at| list.raise(alarm(at)).unwrap()).collect();
        assert_eq!(list.raise(alarm(256)), None, "all hold");
        list.close(numbers[7], 300);
        list.close(numbers[3], 301);
        assert_eq!(list.raise(alarm(257)), None, "nobody was told of those that are closed");
        let mut told = 0;
        list.drain_news(|_, _| told += 1);
        assert_eq!(told, 258);
        let (one, two) = (list.raise(alarm(258)).unwrap(), list.raise(alarm(259)).unwrap());
        list.forget_news();
        assert_eq!(list.raise(alarm(260)), None);
        let opened: Vec<_> = list.alarms().iter().map(|alarm| alarm.opened).collect();
        let expected = (0..256).filter(|at| ![3, 7].contains(at)).chain([258, 259]);
        assert_eq!(opened, expected.collect::<Vec<_>>());
        assert_eq!(list.raised()[..2], [129, 129]);
        assert_eq!(list.raised().iter().sum::<u64>() + 3, list.unlisted() + 256);

        // Numbers stay valid when positions change.
        let attempts = |number| vec![("attempts", Figure::exact(number))];
        list.show(Some(two), || attempts(5));
        list.show(Some(numbers[255]), || attempts(6));
        list.close(one, 400);
        let last = |back: usize| &list.alarms()[256 - back];
        assert_eq!(last(1).evidence, attempts(5));
        assert_eq!(last(3).evidence, attempts(6));
        assert_eq!((last(2).closed, last(1).closed), (Some(400), None));
        // Closing an alarm that is no longer listed has no effect.
        list.close(numbers[3], 500);
        assert_eq!(list.alarms().iter().filter(|alarm| alarm.closed.is_some()).count(), 1);
    }

    const SECOND: u64 = 1_000_000_000;

    /// An alarm of some seconds, with that many attempts.
    fn part(kind: &'static str, filter: &str, seconds: [u64; 2], attempts: u64) -> Alarm {
        let [opened, closed] = seconds.map(|second| second * SECOND);
        let evidence = vec![("attempts", Figure::exact(attempts))];
        let closed = (closed > 0).then_some(closed);
        Alarm { kind, opened, closed, evidence, filter: filter.to_owned(), ..alarm(0) }
    }

    fn list(alarms: Vec<Alarm>) -> List {
        List::of(alarms, 0).unwrap()
    }

    /// The times of the alarms in seconds, 0 if open, and the most attempts of one part.
    fn times(list: &List) -> Vec<([u64; 2], u64)> {
        let second = |time: u64| time / SECOND;
        let each = |alarm: &Alarm| {
            let attempts = alarm.evidence[0].1.value();
            ([second(alarm.opened), alarm.closed.map_or(0, second)], attempts)
        };
        list.alarms().iter().map(each).collect()
    }

    #[test]
    fn an_alarm_over_several_periods_is_listed_once() {
        let scan = |from, to, attempts| part("port_scan", "src host 1", [from, to], attempts);
        // Four periods of a minute; each raises the alarm again after ten seconds.
        let mut whole = list(vec![scan(10, 0, 1)]);
        whole.absorb(list(vec![scan(70, 0, 2)]), [60, 120].map(|s| s * SECOND));
        assert_eq!(times(&whole), [([10, 0], 2)]);
        whole.absorb(list(vec![scan(130, 0, 3)]), [120, 180].map(|s| s * SECOND));
        whole.absorb(list(vec![scan(190, 230, 4)]), [180, 240].map(|s| s * SECOND));
        assert_eq!(times(&whole), [([10, 230], 4)]);
        assert_eq!((whole.raised().iter().sum::<u64>(), whole.unlisted()), (1, 0));

        // In any order of the periods.
        let mut mixed = list(vec![scan(10, 0, 1)]);
        mixed.absorb(list(vec![scan(190, 230, 4)]), [60, 240].map(|s| s * SECOND));
        mixed.absorb(list(vec![scan(130, 0, 3)]), [240, 180].map(|s| s * SECOND));
        mixed.absorb(list(vec![scan(70, 0, 2)]), [240, 120].map(|s| s * SECOND));
        assert_eq!(times(&mixed), [([10, 230], 4)]);

        // Two captures of one hour that see the same flood.
        let flood = |from, to, attempts| part("syn_flood", "dst host 1", [from, to], attempts);
        let mut hosts = list(vec![flood(10, 40, 1)]);
        hosts.absorb(list(vec![flood(20, 30, 2)]), [60, 60].map(|s| s * SECOND));
        assert_eq!(times(&hosts), [([10, 40], 2)]);
    }

    #[test]
    fn other_subjects_other_kinds_and_later_alarms_stay_apart() {
        let apart = |one: Alarm, two: Alarm, lasts: [u64; 2]| {
            let mut both = list(vec![one]);
            both.absorb(list(vec![two]), lasts.map(|s| s * SECOND));
            assert_eq!(both.alarms().len(), 2, "{:?}", both.alarms());
            both
        };
        let scan = |filter, from, to| part("port_scan", filter, [from, to], 1);
        apart(scan("src host 1", 10, 0), scan("src host 2", 70, 0), [60, 120]);
        let other = part("address_scan", "src host 1", [70, 0], 1);
        apart(scan("src host 1", 10, 0), other, [60, 120]);
        // A scan closes five minutes after its last attempt, a flood after ten seconds.
        let both = apart(scan("src host 1", 10, 0), scan("src host 1", 361, 0), [60, 400]);
        assert_eq!(times(&both), [([10, 60], 1), ([361, 0], 1)]);
        let flood = |from, to| part("syn_flood", "dst host 1", [from, to], 1);
        apart(flood(10, 0), flood(71, 0), [60, 120]);
        // One capture that raised an alarm twice; the other saw another subject.
        let mut twice = list(vec![flood(10, 20), flood(25, 40)]);
        twice.absorb(list(vec![scan("src host 1", 5, 50)]), [60, 60].map(|s| s * SECOND));
        assert_eq!(times(&twice), [([5, 50], 1), ([10, 20], 1), ([25, 40], 1)]);
        // A capture that saw the flood between the two as well makes them one.
        let whole = list(vec![flood(15, 30)]);
        twice.absorb(whole, [60, 60].map(|s| s * SECOND));
        assert_eq!(times(&twice), [([5, 50], 1), ([10, 40], 1)]);
    }

    #[test]
    fn too_many_alarms_of_two_captures_leave_out_scans_and_not_floods() {
        let scans = |from: u64| -> Vec<Alarm> {
            let filter = |n: u64| format!("src host {n}");
            (from..from + 200).map(|n| part("port_scan", &filter(n), [n, n + 1], 1)).collect()
        };
        let mut both = list(scans(0));
        let mut late = scans(1_000);
        late.push(part("syn_flood", "dst host 1", [2_000, 0], 1));
        both.absorb(list(late), [3_000, 3_000].map(|s| s * SECOND));
        assert_eq!((both.alarms().len(), both.unlisted()), (256, 401 - 256));
        assert_eq!(both.raised()[..3], [1, 0, 255]);
        assert_eq!(both.alarms().last().map(|alarm| alarm.kind), Some("syn_flood"));
        assert!(both.alarms().is_sorted_by_key(|alarm| alarm.opened));
    }
}
