//! A running engine: addresses added late, and the effect of time alone.

use sidon::Seed;
use sidon_traffic::{Decoder, Engine, Event, Filter, Generator, Mix, Settings, generate::Flood};
use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::{Arc, Mutex},
};

fn engine(settings: Settings) -> Engine {
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    engine.start().unwrap();
    engine
}

#[test]
fn addresses_learnt_while_running_are_not_new_for_any_number_of_threads() {
    let mix = Mix { packets: 20_000, ..Mix::default() };
    let packets: Vec<_> = Generator::new(mix, 3).unwrap().collect();
    let (first, second) = packets.split_at(packets.len() / 2);
    let all: BTreeSet<IpAddr> = packets.iter().map(|packet| packet.flow.source()).collect();
    let seen: BTreeSet<IpAddr> = first.iter().map(|packet| packet.flow.source()).collect();
    assert!(all.len() > seen.len() + 100, "{} of {}", seen.len(), all.len());
    for threads in [1, 2, 5] {
        let settings = Settings { threads, audit: true, ..Settings::new(Seed(7)) };
        let mut engine = engine(settings);
        first.iter().for_each(|packet| engine.packet(packet));
        engine.learn(all.iter().copied());
        second.iter().for_each(|packet| engine.packet(packet));
        let (report, shards) = engine.finish();
        assert_eq!(report.new_sources_total, seen.len() as u64, "{threads} threads");
        assert_eq!(report.audit.unwrap().sources.violations, 0);
        assert_eq!(shards.iter().map(|shard| shard.unlearnt).sum::<u64>(), 0);
    }
}

#[test]
fn an_alarm_is_raised_and_closed_by_the_clock_when_no_packet_comes() {
    let victim = "10.0.0.80:443".parse().unwrap();
    let flood =
        Flood { sources: 500, victim, after: 0, share: 100, answered: 0, ..Flood::default() };
    let mix = Mix { packets: 400, flood: Some(flood), ..Mix::default() };
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let mut engine = engine(Settings::new(Seed(7)));
    engine.set_sink(Box::new(move |event: Event| {
        let event = event.to_json();
        if event["event_type"] == "alarm" {
            told.lock().unwrap().push(event["alarm"]["action"].clone());
        }
    }));
    let mut last = 0;
    for packet in Generator::new(mix, 3).unwrap() {
        engine.packet(&packet);
        last = packet.time_ns;
    }
    engine.flush();
    assert_eq!(engine.alarms().listed(), [], "not for long enough");
    for second in 1..=3 {
        engine.pass(last + second * 1_000_000_000);
    }
    assert_eq!(engine.alarms().incidents().len(), 1);
    assert_eq!(*events.lock().unwrap(), ["raised"]);
    for second in 4..=30 {
        engine.pass(last + second * 1_000_000_000);
    }
    assert!(engine.alarms().listed()[0].closed.is_some());
    assert_eq!(*events.lock().unwrap(), ["raised", "closed"]);
    assert_eq!(engine.connections().half_open(), 0, "attempts end, too");
}

#[test]
fn every_thread_count_sends_the_same_events() {
    let mix = Mix { packets: 20_000, ..Mix::default() };
    let events = |threads| {
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&events);
        let mut engine = engine(Settings { threads, ..Settings::new(Seed(7)) });
        engine.set_sink(Box::new(move |event| told.lock().unwrap().push(event.to_json())));
        for packet in Generator::new(mix, 3).unwrap() {
            engine.packet(&packet);
        }
        // A report waits for the workers, so all events so far have been sent.
        let new = engine.report().new_sources_total;
        assert_eq!(events.lock().unwrap().len() as u64, new);
        assert!(new > 100, "{new}");
        drop(engine.finish());
        let mut events: Vec<_> = events.lock().unwrap().iter().map(ToString::to_string).collect();
        events.sort();
        events
    };
    assert_eq!(events(1), events(3));
}

#[test]
fn events_go_on_after_a_rotation() {
    let victim = "10.0.0.80:443".parse().unwrap();
    let flood = Flood { sources: 20_000, victim, after: 5_000, share: 90, ..Flood::default() };
    let mix = Mix { packets: 40_000, rate: 1_000, flood: Some(flood), ..Mix::default() };
    let events = |threads| {
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&events);
        let mut engine = engine(Settings { threads, ..Settings::new(Seed(7)) });
        engine.set_sink(Box::new(move |event| told.lock().unwrap().push(event.to_json())));
        let mut new = 0;
        for (number, packet) in Generator::new(mix, 3).unwrap().enumerate() {
            if number % 15_000 == 14_999 {
                new += engine.rotate(|snapshot| snapshot.report().new_sources_total).unwrap();
            }
            engine.packet(&packet);
        }
        new += engine.snapshot().report().new_sources_total;
        let events = events.lock().unwrap();
        let of = |kind: &str| events.iter().filter(|event| event["event_type"] == kind).count();
        assert_eq!(of("new_source") as u64, new);
        assert!(of("alarm") > 0);
        let mut events: Vec<_> = events.iter().map(ToString::to_string).collect();
        events.sort();
        events
    };
    assert_eq!(events(1), events(2));
}
