//! The alarms raised so far, at most `MOST`: a new one replaces the oldest closed one.

use super::{Alarm, KINDS};

/// The most alarms that are listed.
const MOST: usize = 256;

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
    /// A list of alarms from a file; `None` if there are more than `MOST`.
    pub(super) fn of(alarms: Vec<Alarm>, unlisted: u64) -> Option<Self> {
        if alarms.len() > MOST {
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
    pub(super) fn absorb(&mut self, other: List, [own_last, other_last]: [u64; 2]) {
        let (mut alarms, mut more) = (std::mem::take(&mut self.alarms), other.alarms);
        let end = own_last.max(other_last);
        for (list, last) in [(&mut alarms, own_last), (&mut more, other_last)] {
            let open = list.iter_mut().filter(|alarm| alarm.closed.is_none() && last < end);
            open.for_each(|alarm| alarm.closed = Some(last.max(alarm.opened)));
        }
        alarms.extend(more);
        alarms.sort_by(|one, two| {
            (one.opened, one.kind, one.subject).cmp(&(two.opened, two.kind, two.subject))
        });
        let unlisted = self.unlisted.saturating_add(other.unlisted);
        let unlisted = unlisted.saturating_add(alarms.len().saturating_sub(MOST) as u64);
        alarms.truncate(MOST);
        *self = List::of(alarms, unlisted).unwrap_or_default();
    }

    /// Raises an alarm and returns its number; `None` if no listed alarm can be replaced.
    pub(super) fn raise(&mut self, alarm: Alarm) -> Option<usize> {
        if self.alarms.len() >= MOST {
            self.unlisted += 1;
            // An alarm stays listed until its events are reported.
            let told = |number: &usize| !self.news.iter().any(|(news, _)| news == number);
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

    /// Sets the evidence of an alarm that is still open.
    pub(super) fn show(&mut self, number: usize, evidence: Vec<(&'static str, u64)>) {
        if let Some(alarm) = self.alarm(number) {
            alarm.evidence = evidence;
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

#[cfg(test)]
mod tests {
    use super::*;

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
        list.show(two, vec![("attempts", 5)]);
        list.show(numbers[255], vec![("attempts", 6)]);
        list.close(one, 400);
        let last = |back: usize| &list.alarms()[256 - back];
        assert_eq!(last(1).evidence, [("attempts", 5)]);
        assert_eq!(last(3).evidence, [("attempts", 6)]);
        assert_eq!((last(2).closed, last(1).closed), (Some(400), None));
        // Closing an alarm that is no longer listed has no effect.
        list.close(numbers[3], 500);
        assert_eq!(list.alarms().iter().filter(|alarm| alarm.closed.is_some()).count(), 1);
    }
}
