//! The alarms raised so far, in bounded room: the oldest that is closed makes room.

use super::{Alarm, KINDS};

/// Alarms that are listed.
const MOST: usize = 256;

/// The alarms, and what is still to be told of them.
#[derive(Debug, Default)]
pub(super) struct List {
    alarms: Vec<Alarm>,
    /// Their numbers, in the order in which they were raised: whoever raised one knows it by that.
    numbers: Vec<usize>,
    next: usize,
    /// How many of each of [`KINDS`] were listed at a time.
    raised: [u64; KINDS.len()],
    unlisted: u64,
    news: Vec<(usize, bool)>,
}

impl List {
    /// Alarms that were raised elsewhere; `None` if they are more than are listed.
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

    /// Takes in those of another list, by the times when they were opened. What held at the end of
    /// the one that ended first is closed there.
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

    /// Raises an alarm: its number, `None` if all that are listed hold.
    pub(super) fn raise(&mut self, alarm: Alarm) -> Option<usize> {
        if self.alarms.len() >= MOST {
            self.unlisted += 1;
            // What was not told yet stays until it is.
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
        // A file may know of kinds that are none here.
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

    /// What there is to show for an alarm that holds.
    pub(super) fn show(&mut self, number: usize, evidence: Vec<(&'static str, u64)>) {
        if let Some(alarm) = self.alarm(number) {
            alarm.evidence = evidence;
        }
    }

    /// It no longer holds.
    pub(super) fn close(&mut self, number: usize, now: u64) {
        if let Some(alarm) = self.alarm(number) {
            alarm.closed = Some(now);
            self.news.push((number, false));
        }
    }

    /// Those that are listed, in the order in which they were raised.
    pub(super) fn alarms(&self) -> &[Alarm] {
        &self.alarms
    }

    /// How many of each of [`KINDS`] were listed at a time.
    pub(super) fn raised(&self) -> [u64; KINDS.len()] {
        self.raised
    }

    /// How many were not listed, or are no longer.
    pub(super) fn unlisted(&self) -> u64 {
        self.unlisted
    }

    /// Hands out what was raised or closed since the last call.
    pub(super) fn drain_news(&mut self, mut to: impl FnMut(&Alarm, bool)) {
        for (number, raised) in std::mem::take(&mut self.news) {
            if let Some(alarm) = self.alarm(number) {
                to(alarm, raised);
            }
        }
    }

    /// Forgets what nobody asked for.
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

        // Numbers stay good when places change.
        list.show(two, vec![("attempts", 5)]);
        list.show(numbers[255], vec![("attempts", 6)]);
        list.close(one, 400);
        let last = |back: usize| &list.alarms()[256 - back];
        assert_eq!(last(1).evidence, [("attempts", 5)]);
        assert_eq!(last(3).evidence, [("attempts", 6)]);
        assert_eq!((last(2).closed, last(1).closed), (Some(400), None));
        // Of one that left nothing can be said any more.
        list.close(numbers[3], 500);
        assert_eq!(list.alarms().iter().filter(|alarm| alarm.closed.is_some()).count(), 1);
    }
}
