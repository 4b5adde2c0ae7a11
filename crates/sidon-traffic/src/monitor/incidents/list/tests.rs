use super::*;
use crate::{
    Figure, Prefix,
    monitor::incidents::{
        Ends, Severity,
        kinds::{ADDRESS_SCAN, PORT_SCAN, RANDOM_SCAN, SYN_FLOOD, UDP_FLOOD},
        saved,
    },
};

const SECOND: u64 = 1_000_000_000;
const SEED: Seed = Seed(9);

fn empty() -> List {
    let mut list = List::new(SEED, Arc::default());
    list.record_events();
    list
}

fn host(number: u32) -> Prefix {
    std::net::IpAddr::from((0x0a00_0000 + number).to_be_bytes()).into()
}

fn finding(kind: &'static str, subject: Prefix, second: u64) -> Finding {
    Finding {
        kind,
        subject,
        ends: Ends::default(),
        text: format!("{kind} {subject}"),
        filter: format!("{} {subject} and tcp", subject.word()),
        opened: second * SECOND,
        size: 1,
        least: 1,
        evidence: vec![("attempts", Figure::exact(second))],
    }
}

fn unlisted(list: &List) -> u64 {
    list.unlisted().iter().map(|(_, times)| times).sum()
}

/// Kind, subject, and whether it is open.
fn listed(list: &List) -> Vec<(&'static str, String, bool)> {
    let each = |one: &Incident| (one.kind, one.subject.to_string(), one.closed.is_none());
    list.incidents().map(each).collect()
}

/// The states of the news, each with the kind.
fn states(list: &mut List) -> Vec<(&'static str, State)> {
    list.drain_news().into_iter().map(|news| (news.incident.kind, news.state)).collect()
}

#[test]
fn ten_thousand_scans_keep_no_flood_out_and_each_is_counted_once() {
    let mut list = empty();
    for second in 0..100 {
        for number in 0..1_000 {
            // Detectors raise again what has no room.
            list.raise(finding(PORT_SCAN, host(number), second));
        }
    }
    let room = LISTED_MAX - (KINDS.len() - 1) * RESERVED;
    assert_eq!((list.incidents().len(), unlisted(&list)), (room, 1_000 - room as u64));
    for (at, kind) in KINDS.into_iter().enumerate().filter(|(_, kind)| *kind != PORT_SCAN) {
        for number in 0..RESERVED {
            let subject = host((5_000 + 100 * at + number) as u32);
            assert!(list.raise(finding(kind, subject, 100)).is_some(), "{kind}");
        }
    }
    assert_eq!(unlisted(&list), 1_000 - room as u64, "nothing was replaced");
    // A flood replaces an open scan once its own room is used, and a scan replaces nothing.
    assert!(list.raise(finding(SYN_FLOOD, host(60_000), 100)).is_some());
    assert!(list.raise(finding(PORT_SCAN, host(60_001), 100)).is_none());
    assert_eq!(listed(&list).len(), LISTED_MAX);
}

#[test]
fn closed_incidents_make_room_the_least_severe_and_oldest_first() {
    let mut list = empty();
    let room = LISTED_MAX - (KINDS.len() - 1) * RESERVED;
    let numbers: Vec<_> =
        (0..room as u32).map(|n| list.raise(finding(PORT_SCAN, host(n), n.into()))).collect();
    assert!(numbers.iter().all(Option::is_some));
    assert_eq!(list.raise(finding(PORT_SCAN, host(1_000), 500)), None);
    list.update(numbers[3], 500 * SECOND, 1_000);
    list.close(numbers[3].unwrap(), 501 * SECOND);
    list.close(numbers[7].unwrap(), 502 * SECOND);
    list.close(numbers[5].unwrap(), 503 * SECOND);
    // The refused one is listed now, and no longer counted; the one that it replaces is.
    assert_eq!(unlisted(&list), 1);
    assert!(list.raise(finding(PORT_SCAN, host(1_000), 504)).is_some());
    assert_eq!(unlisted(&list), 1);
    let gone = |list: &List, number: u32| {
        listed(list).iter().all(|(_, subject, _)| *subject != host(number).to_string())
    };
    assert!(gone(&list, 5) && !gone(&list, 7) && !gone(&list, 3), "low before medium, by time");
    assert!(list.raise(finding(PORT_SCAN, host(1_001), 504)).is_some());
    assert!(gone(&list, 7) && !gone(&list, 3));
    // Numbers stay valid; those of incidents that were replaced have no effect.
    let attempts = |number| vec![("attempts", Figure::exact(number))];
    list.show(numbers[9], || attempts(7));
    list.show(numbers[5], || attempts(8));
    list.close(numbers[5].unwrap(), 600 * SECOND);
    assert_eq!(list.incidents().filter(|one| one.evidence == attempts(7)).count(), 1);
    assert_eq!(list.incidents().filter(|one| one.evidence == attempts(8)).count(), 1);
    assert_eq!(list.raised()[kinds::number(PORT_SCAN).unwrap()], room as u64 + 2);
}

#[test]
fn one_scanner_is_one_incident_of_its_strongest_kind() {
    let mut list = empty();
    let one = list.raise(finding(PORT_SCAN, host(1), 10)).unwrap();
    let id = list.incidents().next().unwrap().id();
    assert_eq!(
        list.raise(Finding { filter: "b".into(), ..finding(PORT_SCAN, host(1), 11) }),
        Some(one)
    );
    assert_eq!(list.raise(Finding { size: 30, ..finding(ADDRESS_SCAN, host(1), 12) }), Some(one));
    assert_eq!(list.raise(finding(PORT_SCAN, host(1), 13)), Some(one));
    let incident = list.incidents().next().unwrap();
    assert_eq!((incident.kind, incident.severity), (ADDRESS_SCAN, Severity::Medium));
    assert_eq!(incident.filter, "src host 10.0.0.1");
    assert_eq!((incident.opened, incident.size.peak()), (10 * SECOND, 30));
    assert_eq!(incident.evidence[0].1, Figure::exact(13), "that of the largest finding");
    assert_eq!(incident.id(), id, "the id stays");
    // It closes with the last of its four findings.
    (0..3).for_each(|_| list.close(one, 20 * SECOND));
    assert!(list.incidents().next().unwrap().closed.is_none());
    list.close(one, 21 * SECOND);
    assert_eq!(list.incidents().next().unwrap().closed, Some(21 * SECOND));
    // Within five minutes it begins again, later it is another one.
    assert_eq!(list.raise(finding(RANDOM_SCAN, host(1), 321)), Some(one));
    list.close(one, 322 * SECOND);
    assert_ne!(list.raise(finding(PORT_SCAN, host(1), 623)), Some(one));
    assert_eq!(listed(&list).len(), 2);
    let expected = [
        (PORT_SCAN, State::Opened),
        (PORT_SCAN, State::Updated),
        (ADDRESS_SCAN, State::Updated),
        (ADDRESS_SCAN, State::Updated),
        (ADDRESS_SCAN, State::Closed),
        (RANDOM_SCAN, State::Updated),
        (RANDOM_SCAN, State::Closed),
        (PORT_SCAN, State::Opened),
    ];
    assert_eq!(states(&mut list), expected);
}

#[test]
fn one_subject_has_a_bounded_number_of_findings() {
    let mut list = empty();
    let all: Vec<_> = (0..100).map(|n| list.raise(finding(PORT_SCAN, host(1), n))).collect();
    assert_eq!(all.iter().flatten().count() as u64, PARTS_MAX);
    assert_eq!((listed(&list).len(), unlisted(&list)), (1, 0));
    assert_eq!(list.incidents().next().unwrap().updated, 99 * SECOND);
}

#[test]
fn a_flooded_prefix_is_one_incident() {
    let mut list = empty();
    let hosts: Vec<_> =
        (0..20).map(|n| list.raise(finding(SYN_FLOOD, host(n), 10)).unwrap()).collect();
    let other = list.raise(finding(UDP_FLOOD, host(3), 11)).unwrap();
    let outside = list.raise(finding(SYN_FLOOD, host(300), 11)).unwrap();
    let small = list.raise(finding(SYN_FLOOD, "10.0.0.0/28".parse().unwrap(), 12)).unwrap();
    let large = list.raise(finding(SYN_FLOOD, "10.0.0.0/24".parse().unwrap(), 13)).unwrap();
    let names = |list: &List| -> Vec<String> {
        listed(list).into_iter().map(|(kind, subject, _)| format!("{kind} {subject}")).collect()
    };
    let expected = ["udp_flood 10.0.0.3", "syn_flood 10.0.1.44", "syn_flood 10.0.0.0/24"];
    // The hosts of the smaller prefix are part of the larger one, too.
    assert_eq!(names(&list), expected);
    assert_eq!(list.raise(finding(SYN_FLOOD, host(77), 14)), None, "it has enough findings");
    assert_eq!(listed(&list).len(), 3);
    // The incident is open until all findings are closed.
    for number in hosts.iter().chain([&small]) {
        list.close(*number, 20 * SECOND);
    }
    assert!(listed(&list)[2].2, "the prefix itself");
    list.close(large, 21 * SECOND);
    assert!(!listed(&list)[2].2);
    [other, outside].into_iter().for_each(|number| list.close(number, 22 * SECOND));
    let closed = states(&mut list).iter().filter(|(_, state)| *state == State::Closed).count();
    assert_eq!(closed, 20 + 1 + 3);
}

#[test]
fn allowed_subjects_are_counted_and_not_listed() {
    let thresholds = Thresholds {
        allow: vec!["10.0.0.0/31: port_scan".parse().unwrap(), "10.0.0.9".parse().unwrap()],
        networks: vec![("lab".to_owned(), "10.0.0.0/24".parse().unwrap())],
        ..Thresholds::default()
    };
    let mut list = List::new(SEED, Arc::new(thresholds));
    for second in 0..50 {
        assert_eq!(list.raise(finding(PORT_SCAN, host(0), second)), None);
        assert_eq!(list.raise(finding(PORT_SCAN, host(1), second)), None);
        assert_eq!(list.raise(finding(SYN_FLOOD, host(9), second)), None);
    }
    assert!(list.raise(finding(SYN_FLOOD, host(1), 50)).is_some());
    let expected = [("10.0.0.0/31: port_scan".to_owned(), 2), ("10.0.0.9".to_owned(), 1)];
    assert_eq!((list.allowed(), unlisted(&list)), (&expected[..], 0));
    assert_eq!(list.incidents().next().unwrap().network, "lab");
}

#[test]
fn sizes_severity_and_examples_are_those_of_the_whole_incident() {
    let mut list = empty();
    let number = list.raise(Finding { size: 60, least: 50, ..finding(SYN_FLOOD, host(1), 10) });
    for second in 11..40u64 {
        list.update(number, second * SECOND, second * 20);
        let flow = FlowKey::v4([1, 2, 3, 4], [10, 0, 0, 1], [second as u16, 80], 6);
        list.example(number, second * SECOND, &flow);
    }
    let incident = list.incidents().next().unwrap().clone();
    assert_eq!((incident.severity, incident.updated), (Severity::Critical, 39 * SECOND));
    assert_eq!(incident.size.points()[..2], [(10 * SECOND, 60), (11 * SECOND, 220)]);
    assert_eq!((incident.size.points().len(), incident.examples.len()), (30, 8));
    let sizes: Vec<_> = list.drain_news().iter().map(|news| news.incident.size.peak()).collect();
    // Opened, twice the size again and again, and the higher severity at 500.
    assert_eq!(sizes, [60, 220, 440, 500]);
}

/// The list as bytes of a snapshot and of a checkpoint, and back.
fn again(list: &List) -> List {
    let part = saved::write(list);
    let mut resumed = List::new(SEED, Arc::clone(&list.thresholds));
    resumed.take_over(saved::read(In { bytes: &part, part: "incidents" }, SEED).unwrap());
    let mut out = Out::default();
    list.save(&mut out);
    let mut bytes = In { bytes: &out.0, part: "alarms" };
    resumed.resume(&mut bytes).and_then(|()| bytes.end()).unwrap();
    assert_eq!(saved::write(&resumed), part);
    resumed.record_events();
    resumed
}

#[test]
fn a_resumed_list_goes_on_as_one_that_was_not() {
    let mut one = empty();
    let mut two = empty();
    let mut rng = sidon_kit::Rng::seeded(4);
    let mut open = Vec::new();
    for step in 0..5_000u64 {
        if step % 100 == 0 {
            two = again(&two);
        }
        let kind = KINDS[rng.below(KINDS.len() as u64) as usize];
        let subject = match rng.below(8) {
            0 => Prefix::new(host(rng.below(600) as u32).address(), 26),
            _ => host(rng.below(600) as u32),
        };
        let new = Finding { size: rng.below(40), ..finding(kind, subject, step) };
        let number = one.raise(new.clone());
        assert_eq!(number, two.raise(new));
        open.extend(number);
        if !open.is_empty() && rng.below(2) == 0 {
            let number = open.swap_remove(rng.below(open.len() as u64) as usize);
            let size = rng.below(100);
            let flow = FlowKey::v4([1, 2, 3, 4], [10, 0, 0, 1], [step as u16, 80], 6);
            for list in [&mut one, &mut two] {
                list.update(Some(number), step * SECOND, size);
                list.example(Some(number), step * SECOND, &flow);
                list.close(number, step * SECOND);
            }
        }
        assert_eq!(saved::write(&one), saved::write(&two));
        let news = |list: &mut List| -> Vec<_> {
            list.drain_news().into_iter().map(|one| (one.incident.id, one.state)).collect()
        };
        assert_eq!(news(&mut one), news(&mut two));
    }
    assert!(unlisted(&one) > 100 && one.incidents().len() == LISTED_MAX, "{}", unlisted(&one));
}

/// An incident of some seconds, with that many attempts.
fn part(kind: &'static str, number: u32, seconds: [u64; 2], attempts: u64) -> Incident {
    let evidence = vec![("attempts", Figure::exact(attempts))];
    let closed = (seconds[1] > 0).then_some(seconds[1] * SECOND);
    let new = Incident::of(Finding { evidence, ..finding(kind, host(number), seconds[0]) });
    Incident { closed, ..new }
}

fn list(incidents: Vec<Incident>) -> List {
    List::of(incidents, Vec::new(), Vec::new(), SEED)
}

/// The times of the incidents in seconds, 0 if open, and the most attempts of one part.
fn times(list: &List) -> Vec<([u64; 2], u64)> {
    let second = |time: u64| time / SECOND;
    let each = |one: &Incident| {
        ([second(one.opened), one.closed.map_or(0, second)], one.evidence[0].1.value())
    };
    list.incidents().map(each).collect()
}

#[test]
fn an_incident_over_several_periods_is_listed_once() {
    let scan = |from, to, attempts| part(PORT_SCAN, 1, [from, to], attempts);
    // Four periods of a minute; each raises the incident again after ten seconds.
    let mut whole = list(vec![scan(10, 0, 1)]);
    whole.absorb(list(vec![scan(70, 0, 2)]), [60, 120].map(|s| s * SECOND));
    assert_eq!(times(&whole), [([10, 0], 2)]);
    whole.absorb(list(vec![scan(130, 0, 3)]), [120, 180].map(|s| s * SECOND));
    whole.absorb(list(vec![scan(190, 230, 4)]), [180, 240].map(|s| s * SECOND));
    assert_eq!(times(&whole), [([10, 230], 4)]);
    assert_eq!((whole.raised().iter().sum::<u64>(), unlisted(&whole)), (1, 0));

    // In any order of the periods, and with another kind of scan.
    let mut mixed = list(vec![scan(10, 0, 1)]);
    mixed.absorb(list(vec![scan(190, 230, 4)]), [60, 240].map(|s| s * SECOND));
    let random = part(RANDOM_SCAN, 1, [130, 0], 3);
    mixed.absorb(list(vec![random]), [240, 180].map(|s| s * SECOND));
    mixed.absorb(list(vec![scan(70, 0, 2)]), [240, 120].map(|s| s * SECOND));
    assert_eq!(times(&mixed), [([10, 230], 4)]);
    assert_eq!(mixed.incidents().next().unwrap().kind, RANDOM_SCAN);
    assert_eq!(mixed.incidents().next().unwrap().id, scan(10, 0, 1).id);

    // Two captures of one hour that see the same flood.
    let flood = |from, to, attempts| part(SYN_FLOOD, 1, [from, to], attempts);
    let mut hosts = list(vec![flood(10, 40, 1)]);
    hosts.absorb(list(vec![flood(20, 30, 2)]), [60, 60].map(|s| s * SECOND));
    assert_eq!(times(&hosts), [([10, 40], 2)]);
}

#[test]
fn other_subjects_other_kinds_and_later_incidents_stay_apart() {
    let apart = |one: Incident, two: Incident, lasts: [u64; 2]| {
        let mut both = list(vec![one]);
        both.absorb(list(vec![two]), lasts.map(|s| s * SECOND));
        assert_eq!(both.incidents().len(), 2, "{:?}", listed(&both));
        both
    };
    let scan = |number, from, to| part(PORT_SCAN, number, [from, to], 1);
    apart(scan(1, 10, 0), scan(2, 70, 0), [60, 120]);
    apart(scan(1, 10, 0), part(SYN_FLOOD, 1, [70, 0], 1), [60, 120]);
    // A scan closes five minutes after its last attempt, a flood after ten seconds.
    let both = apart(scan(1, 10, 0), scan(1, 361, 0), [60, 400]);
    assert_eq!(times(&both), [([10, 60], 1), ([361, 0], 1)]);
    let flood = |from, to| part(SYN_FLOOD, 1, [from, to], 1);
    apart(flood(10, 0), flood(71, 0), [60, 120]);
    // One capture with two floods; the other saw another subject.
    let mut twice = list(vec![flood(10, 20), flood(31, 40)]);
    twice.absorb(list(vec![scan(1, 5, 50)]), [60, 60].map(|s| s * SECOND));
    assert_eq!(times(&twice), [([5, 50], 1), ([10, 20], 1), ([31, 40], 1)]);
    // A capture that saw the flood between the two as well makes them one.
    twice.absorb(list(vec![flood(15, 30)]), [60, 60].map(|s| s * SECOND));
    assert_eq!(times(&twice), [([5, 50], 1), ([10, 40], 1)]);
}

#[test]
fn too_many_incidents_of_two_captures_leave_out_the_least_severe() {
    let scans = |from: u32| -> Vec<Incident> {
        (from..from + 200).map(|n| part(PORT_SCAN, n, [n.into(), u64::from(n) + 1], 1)).collect()
    };
    let mut both = list(scans(0));
    let mut late = scans(1_000);
    late.push(part(SYN_FLOOD, 9_000, [2_000, 0], 1));
    both.absorb(list(late), [3_000, 3_000].map(|s| s * SECOND));
    assert_eq!((both.incidents().len(), unlisted(&both)), (256, 401 - 256));
    assert_eq!(both.raised()[..3], [1, 0, 255]);
    assert_eq!(both.incidents().last().map(|one| one.kind), Some(SYN_FLOOD));
    assert!(both.incidents().is_sorted_by_key(|one| one.opened));
    // The counts of kinds that this version does not have are bounded.
    let names = |prefix: &str| -> Vec<(&'static str, u64)> {
        let name = |number| crate::names::lasting(&format!("{prefix}{number}")).unwrap();
        (0..32).map(|number| (name(number), 1)).collect()
    };
    let rules = |prefix: &str| (0..64).map(|n| (format!("{prefix}{n}"), 1)).collect();
    let mut one = List::of(Vec::new(), names("kind_a"), rules("a"), SEED);
    one.absorb(List::of(Vec::new(), names("kind_b"), rules("b"), SEED), [0, 0]);
    assert_eq!(unlisted(&one), 64);
    let part = saved::write(&one);
    let read = saved::read(In { bytes: &part, part: "incidents" }, SEED).unwrap();
    assert_eq!((read.unlisted(), read.allowed()), (one.unlisted(), one.allowed()));
    assert_eq!(read.allowed().iter().map(|(_, times)| times).sum::<u64>(), 128);
}
