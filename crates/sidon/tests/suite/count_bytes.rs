//! Saved bytes of counts: golden files that must never change, and byte strings that a reader must
//! refuse.

use sidon::{
    Malformed, Seed,
    count::{
        Distinct, FanOut, Layout, Min, Periods, Prefix, Prefixes, Top, Update, distinct, fan_out,
        min, periods, prefixes, top,
    },
    decide::{Suspects, failures, suspects},
    saved::Save,
};
use sidon_kit::Rng;
use std::{net::IpAddr, path::PathBuf};

const SEED: Seed = Seed(0x5eed);
const KEYS: [&str; 5] = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "", "sidon"];

fn golden<S: Save>(name: &str, fresh: S) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    // This variable writes the file of a new structure, once and with one test thread.
    if std::env::var_os("SIDON_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, fresh.to_bytes()).unwrap();
    }
    let image = std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    assert_eq!(fresh.to_bytes(), image, "{name}: what is written today differs from the past");
    image
}

fn min(shape: min::Shape) -> Min {
    let mut sketch = Min::new(shape, SEED).unwrap();
    for (amount, key) in (1..).zip(KEYS) {
        sketch.add(key, amount * 100).unwrap();
    }
    sketch
}

fn heavy() -> Top<[u8; 4], 2> {
    let shape = top::Shape { buckets: 1, rows: 2, columns: 5 };
    let mut table = Top::new(shape, SEED).unwrap();
    for i in 0..12u8 {
        table.add(&[10, 0, 0, i], [100 + u64::from(i) * 7 % 12, 1]);
    }
    table
}

fn distinct(keys: u64) -> Distinct {
    let mut distinct = Distinct::new(distinct::Shape { registers: 24 }, SEED).unwrap();
    (0..keys).for_each(|key| distinct.add(&key));
    distinct
}

/// Ten keys in one bucket, of which two have lost their entries, in three panes.
fn fan_out() -> FanOut<[u8; 4]> {
    let shape = fan_out::Shape { buckets: 1, registers: 4, panes: 2, pane: 10 };
    let mut table = FanOut::new(shape, SEED).unwrap();
    for element in 0..200u64 {
        for key in 0..10u8 {
            if element % (u64::from(key) + 1) == 0 {
                table.add(&[10, 0, 0, key], &element, element / 7);
            }
        }
    }
    table
}

/// Full at every level, halved once, and with an amount after that.
fn networks() -> Prefixes<3> {
    let mut table = Prefixes::new(prefixes::Shape { buckets: [1, 1, 1, 1, 1] }, SEED).unwrap();
    for i in 0..48u8 {
        let address = match i % 3 {
            0 => IpAddr::from([0x20, 1, 0xd, i, 0, i, 0, i / 2, 0, 0, 0, 0, 0, 0, 0, 1]),
            _ => IpAddr::from([10 + i, i, i, i]),
        };
        table.add(address, [100 + u64::from(i) * 7 % 12, 1, u64::from(i % 2)]).unwrap();
    }
    table.halve(1);
    table.add(IpAddr::from([10, 0, 0, 1]), [33, 3, 0]).unwrap();
    table
}

fn tested() -> Suspects<[u8; 4]> {
    let test = failures::Shape {
        usual: 50_000,
        attacks: [75_000, 180_000, 420_000, 800_000],
        apart: 1_000_000,
    };
    let mut table = Suspects::new(suspects::Shape { buckets: 1, test }, SEED).unwrap();
    for i in 0..12u8 {
        (0..=i).for_each(|trial| _ = table.see(&[10, 0, 0, i], trial % 3 == 0));
    }
    table
}

fn contacts() -> Periods<[u8; 4]> {
    let shape = periods::Shape { buckets: 1, shortest: 1, grace: 1_000, longest: 100_000 };
    let mut table = Periods::new(shape, SEED).unwrap();
    for time in 0..60u64 {
        table.see(&[10, 0, 0, (time % 3) as u8], time * time * 5_000_000);
        table.see(&[10, 0, 1, time as u8], time * 1_000_000);
    }
    table
}

fn goldens() -> [Vec<u8>; 10] {
    let (update, layout) = (Update::Plain, Layout::Rows);
    let rows = min::Shape { rows: 3, columns: 11, width: 32, update, layout };
    let update = Update::Conservative;
    let line = min::Shape { rows: 3, columns: 10, width: 16, update, layout: Layout::Line };
    let mut narrow = min(min::Shape { width: 8, rows: 4, ..rows });
    narrow.decay(1, 3).unwrap();
    [
        golden("min.sidon", min(rows)),
        golden("min-line.sidon", min(line)),
        golden("min-decayed.sidon", narrow),
        golden("top.sidon", heavy()),
        golden("distinct-list.sidon", distinct(5)),
        golden("distinct.sidon", distinct(500)),
        golden("fan-out.sidon", fan_out()),
        golden("prefixes.sidon", networks()),
        golden("suspects.sidon", tested()),
        golden("periods.sidon", contacts()),
    ]
}

/// A reader that accepts an image must write back the same bytes.
fn read(image: &[u8]) -> Option<Malformed> {
    fn one<S: Save>(image: &[u8]) -> Option<Malformed> {
        match S::from_bytes(image, SEED) {
            Ok(structure) => {
                assert_eq!(structure.to_bytes(), image, "accepted, but written otherwise");
                None
            }
            Err(why) => Some(why),
        }
    }
    let others = [
        one::<Top<[u8; 4], 2>>(image),
        one::<Distinct>(image),
        one::<FanOut<[u8; 4]>>(image),
        one::<Prefixes<3>>(image),
        one::<Suspects<[u8; 4]>>(image),
        one::<Periods<[u8; 4]>>(image),
    ];
    others.into_iter().fold(one::<Min>(image), Option::and)
}

#[test]
fn golden_images_are_read_back() {
    let [rows, line, narrow, top, list, registers, spread, networks, suspects, periods] = goldens();
    for image in [&rows, &line] {
        let sketch = Min::from_bytes(image, SEED).unwrap();
        for (amount, key) in (1..).zip(KEYS) {
            assert!(sketch.estimate(key).value >= amount * 100);
        }
        assert_eq!(sketch.total(), 1500);
        assert_eq!(Min::from_bytes(image, Seed(1)).err(), Some(Malformed::Seed));
    }
    let table = Prefixes::<3>::from_bytes(&networks, SEED).unwrap();
    assert_eq!(table.len(), [8; 5]);
    let halved = Prefix::new([10, 0, 0, 0].into(), 8).unwrap();
    // Another prefix may have been evicted from the bucket before: one packet, halved.
    assert_eq!(table.bounds(&halved)[1].to_string(), "<= 4 and >= 3");
    let all = Prefix::new([0, 0, 0, 0].into(), 0).unwrap();
    // Half of 32 packets and three more, of which the last level has evicted some.
    let [_, packets, _] = table.bounds(&all);
    assert!(packets.least == 16 && packets.most >= 19, "{packets}");
    let decayed = Min::from_bytes(&narrow, SEED).unwrap();
    assert_eq!((decayed.total(), decayed.estimate("sidon").value), (500, 85));
    let table = Top::<[u8; 4], 2>::from_bytes(&top, SEED).unwrap();
    assert_eq!(table.heaviest(5), heavy().heaviest(5));
    assert!(table.heaviest(5).others > 0);
    assert_eq!(Distinct::from_bytes(&list, SEED).unwrap().count().to_string(), "= 5");
    let count = Distinct::from_bytes(&registers, SEED).unwrap().count();
    assert!(count.contains(500) && count == distinct(500).count());
    let table = FanOut::<[u8; 4]>::from_bytes(&spread, SEED).unwrap();
    assert_eq!(table.largest(9, 28), fan_out().largest(9, 28));
    assert!(table.len() == 8 && table.others(28) > 0);
    let table = Suspects::<[u8; 4]>::from_bytes(&suspects, SEED).unwrap();
    assert!(table.len() == 8 && table.lost() > 0 && table == tested());
    let table = Periods::<[u8; 4]>::from_bytes(&periods, SEED).unwrap();
    assert!(table.len() == 8 && table.refused() > 0 && table == contacts());
    assert_eq!(Min::from_bytes(&top, SEED).err(), Some(Malformed::Kind { expected: 11, got: 12 }));
}

#[test]
fn every_single_byte_corruption_is_noticed() {
    for image in goldens() {
        assert_eq!(read(&image), None);
        for at in 0..image.len() {
            for flip in 1..=255 {
                let mut damaged = image.clone();
                damaged[at] ^= flip;
                assert!(read(&damaged).is_some(), "byte {at} ^ {flip} went unnoticed");
            }
        }
        for len in 0..image.len() {
            assert!(read(&image[..len]).is_some(), "cut to {len} bytes");
        }
    }
}

#[test]
fn a_million_byte_strings_give_a_structure_or_malformed() {
    let goldens = goldens();
    let mut rng = Rng::seeded(21);
    let (mut accepted, mut image) = (0, Vec::<u8>::new());
    for _ in 0..1_000_000 {
        image.clear();
        image.extend(&goldens[rng.below(10) as usize]);
        for _ in 0..=rng.below(3) {
            // Half of the changes go to the header and the fields.
            let reach = if rng.below(2) == 0 { image.len() } else { image.len().min(104) };
            let at = rng.below(reach as u64) as usize;
            image[at] = match rng.below(4) {
                0 => 0,
                1 => 0xff,
                2 => image[at].wrapping_add(1),
                _ => rng.next_u64() as u8,
            };
        }
        if rng.below(16) == 0 {
            image.truncate(rng.below(image.len() as u64 + 1) as usize);
        }
        if let Some(body) = image.len().checked_sub(4) {
            let checksum = crc32fast::hash(&image[..body]);
            image[body..].copy_from_slice(&checksum.to_le_bytes());
        }
        accepted += u32::from(read(&image).is_none());
    }
    assert!(accepted > 1_000 && accepted < 500_000, "{accepted} accepted");
}

#[test]
fn no_shape_takes_more_memory_than_its_image_is_long() {
    let [
        mut rows,
        _,
        _,
        mut top,
        _,
        mut registers,
        mut spread,
        mut networks,
        mut suspects,
        mut periods,
    ] = goldens();
    rows[40..48].copy_from_slice(&(1u64 << 40).to_le_bytes());
    top[48..56].copy_from_slice(&(1u64 << 30).to_le_bytes());
    registers[32..40].copy_from_slice(&(1u64 << 20).to_le_bytes());
    spread[40..48].copy_from_slice(&(1u64 << 30).to_le_bytes());
    networks[40..48].copy_from_slice(&(1u64 << 30).to_le_bytes());
    suspects[40..48].copy_from_slice(&(1u64 << 30).to_le_bytes());
    periods[40..48].copy_from_slice(&(1u64 << 30).to_le_bytes());
    let images = [&mut rows, &mut top, &mut registers, &mut spread, &mut networks];
    for image in images.into_iter().chain([&mut suspects, &mut periods]) {
        let body = image.len() - 4;
        let checksum = crc32fast::hash(&image[..body]);
        image[body..].copy_from_slice(&checksum.to_le_bytes());
    }
    assert!(matches!(Min::from_bytes(&rows, SEED), Err(Malformed::Length { .. })));
    let networks = Prefixes::<3>::from_bytes(&networks, SEED);
    assert!(matches!(networks.err(), Some(Malformed::Length { .. })));
    let top = Top::<[u8; 4], 2>::from_bytes(&top, SEED);
    assert!(matches!(top.err(), Some(Malformed::Length { .. })));
    let registers = Distinct::from_bytes(&registers, SEED);
    assert!(matches!(registers.err(), Some(Malformed::Length { .. })));
    let spread = FanOut::<[u8; 4]>::from_bytes(&spread, SEED);
    assert!(matches!(spread.err(), Some(Malformed::Length { .. })));
    let suspects = Suspects::<[u8; 4]>::from_bytes(&suspects, SEED);
    assert!(matches!(suspects.err(), Some(Malformed::Length { .. })));
    let periods = Periods::<[u8; 4]>::from_bytes(&periods, SEED);
    assert!(matches!(periods.err(), Some(Malformed::Length { .. })));
}
