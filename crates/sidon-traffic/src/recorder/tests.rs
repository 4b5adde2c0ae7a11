use super::{tape::Tape, *};
use crate::{Decoder, Engine, Generator, Mix, Settings, Source, generate::Flood};
use sidon::Seed;
use std::io::Cursor;

fn frame(number: u64, bytes: &[u8]) -> Frame<'_> {
    Frame { time_ns: number, wire_len: bytes.len() as u32, link: LinkType(1), bytes }
}

/// The times of the packets in a pcap file.
fn times(file: Vec<u8>) -> Vec<u64> {
    let mut source = Source::from_reader(Cursor::new(file)).unwrap();
    let mut times = Vec::new();
    while let Some(frame) = source.next().unwrap() {
        times.push(frame.time_ns);
    }
    times
}

#[test]
fn a_tape_has_the_first_packets_and_an_even_sample_in_its_bytes() {
    for bytes in [0, 100, 10_000] {
        let mut tape = Tape::new(bytes);
        for number in 0..100_000 {
            tape.add(&frame(number, &[7; 84]));
        }
        let mut file = Vec::new();
        tape.write(&mut file).unwrap();
        let times = times(file.clone());
        assert!(file.len() <= 24 + bytes, "{} of {bytes}", file.len());
        assert_eq!(tape.packets(), [100_000, times.len() as u64]);
        if bytes < 10_000 {
            assert!(times.is_empty());
            continue;
        }
        // 50 first packets and between 25 and 50 later ones, evenly spaced to the end.
        assert_eq!(times[..50], (0..50).collect::<Vec<u64>>());
        let later = &times[50..];
        let gap = later[1] - later[0];
        assert!((25..=50).contains(&later.len()) && gap.is_power_of_two(), "{later:?}");
        assert!(later.windows(2).all(|two| two[1] - two[0] == gap));
        assert!(later.last().unwrap() + gap >= 100_000);
    }
}

/// A capture with a flood and a scan.
fn capture() -> Vec<u8> {
    let victim = "198.18.0.9:25".parse().unwrap();
    let flood = Flood { sources: 20_000, victim, after: 5_000, share: 80, ..Flood::default() };
    let mut shares = Mix::default().shares;
    shares.scan = 5;
    let mix = Mix { packets: 60_000, rate: 2_000, flood: Some(flood), shares, ..Mix::default() };
    let mut capture = Vec::new();
    crate::generate::write_pcap(Generator::new(mix, 5).unwrap(), 65_535, &mut capture).unwrap();
    capture
}

fn run(capture: &[u8], limits: Limits) -> Engine {
    let settings = Settings::new(Seed(5));
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    engine.record_packets(limits);
    let mut source = Source::from_reader(Cursor::new(capture.to_vec())).unwrap();
    while let Some(frame) = source.next().unwrap() {
        engine.frame(&frame);
    }
    engine.end();
    engine
}

#[test]
fn every_incident_has_its_packets_and_no_others() {
    let capture = capture();
    let mut engine = run(&capture, Limits::default());
    let incidents = engine.alarms().listed();
    let mut files = Vec::new();
    let recorder = engine.recorder().unwrap();
    let write = |one: &Recorded| -> Result<(), ()> {
        let mut file = Vec::new();
        one.write(&mut file).unwrap();
        files.push((one.incident().id, one.packets(), file));
        Ok(())
    };
    recorder.finished(true, write).unwrap();
    assert_eq!((files.len(), recorder.missed()), (incidents.len(), 0));
    assert!(incidents.len() >= 2, "{incidents:?}");
    recorder.finished(true, |_| Err("written before")).unwrap();
    for (id, packets, file) in files {
        let incident = incidents.iter().find(|one| one.id == id).unwrap();
        let filter: Filter = incident.filter.parse().unwrap();
        let mut source = Source::from_reader(Cursor::new(file)).unwrap();
        let mut kept = 0;
        while let Some(frame) = source.next().unwrap() {
            assert_eq!(filter.verdict(&frame), Verdict::Match, "{}", incident.text);
            kept += 1;
        }
        assert!(kept == packets[1] && kept > 10, "{kept} {packets:?}");
        assert!(packets[0] >= kept);
    }
}

#[test]
fn no_more_incidents_and_bytes_than_allowed_are_kept() {
    let limits = Limits { files: 1, bytes: 4_096, ring: 0 };
    let mut engine = run(&capture(), limits);
    let listed = engine.alarms().incidents().len() as u64;
    let recorder = engine.recorder().unwrap();
    let mut sizes = Vec::new();
    let write = |one: &Recorded| -> io::Result<()> {
        let mut file = Vec::new();
        one.write(&mut file)?;
        sizes.push(file.len());
        Ok(())
    };
    recorder.finished(true, write).unwrap();
    assert_eq!((sizes.len() as u64, recorder.missed()), (1, listed - 1));
    assert!(sizes[0] <= 24 + 4_096 && sizes[0] > 1_000, "{sizes:?}");
}
