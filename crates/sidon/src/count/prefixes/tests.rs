//! The bounds of every prefix hold, and no heavy prefix is missing from a list.

use super::*;
use crate::{Malformed, count::Bounds};
use prefix::LENGTHS;
use sidon_kit::{Rng, Zipf};
use std::collections::BTreeMap;

const SEED: Seed = Seed(77);
const SMALL: Shape = Shape { buckets: [64, 32, 16, 8, 4] };
/// Binary digits after the point of an exact amount: more halvings than a test makes.
const POINT: u32 = 64;

type Table = Prefixes<2>;
type Packet = (IpAddr, [u64; 2]);

/// The exact amounts of every prefix of the five lengths.
#[derive(Default, Clone)]
struct Truth(BTreeMap<Prefix, [u128; 2]>);

impl Truth {
    fn add(&mut self, (address, amounts): Packet) {
        for level in 0..LEVELS {
            let prefix = Prefix::at(prefix::at_level(prefix::number(address), level), level);
            let sum = self.0.entry(prefix).or_default();
            *sum = [0, 1].map(|i| sum[i] + (u128::from(amounts[i]) << POINT));
        }
    }

    fn of(stream: &[Packet]) -> Self {
        let mut truth = Truth::default();
        stream.iter().for_each(|&packet| truth.add(packet));
        truth
    }

    fn halve(&mut self) {
        self.0.values_mut().for_each(|sum| *sum = sum.map(|amount| amount / 2));
    }

    fn join(&mut self, other: &Truth) {
        for (prefix, more) in &other.0 {
            let sum = self.0.entry(*prefix).or_default();
            *sum = [0, 1].map(|i| sum[i] + more[i]);
        }
    }
}

#[track_caller]
fn holds(bounds: Bounds, truth: i128, of: &Prefix) {
    let scaled = |bound: u64| i128::from(bound) << POINT;
    let fits = scaled(bounds.least) <= truth.max(0) && truth <= scaled(bounds.most);
    assert!(fits, "{of}: {bounds:?}, truly {}", truth as f64 / 2f64.powi(POINT as i32));
}

/// Compares every claim of the table with the truth. Looks up every `step`-th prefix.
#[track_caller]
fn check(table: &Table, truth: &Truth, step: usize) {
    for (prefix, sums) in truth.0.iter().step_by(step) {
        for (bounds, &sum) in table.bounds(prefix).into_iter().zip(sums) {
            holds(bounds, sum as i128, prefix);
        }
    }
    for amount in [0, 1] {
        for least in [1, table.total()[amount] / 200, table.total()[amount] / 20] {
            check_heavy(table, truth, amount, least);
        }
    }
}

#[track_caller]
fn check_heavy(table: &Table, truth: &Truth, amount: usize, least: u64) {
    let heavy = table.heavy(amount, least);
    let none = [0; 2];
    // The residue of every prefix: its amounts without those of the longest listed prefixes below it.
    let mut residue: BTreeMap<Prefix, [i128; 2]> =
        truth.0.iter().map(|(prefix, sums)| (*prefix, sums.map(|sum| sum as i128))).collect();
    let mut rows: Vec<_> = heavy.rows.iter().collect();
    rows.sort_by_key(|row| row.prefix.length());
    for row in &rows {
        let own = truth.0.get(&row.prefix).unwrap_or(&none).map(|sum| sum as i128);
        // Subtracts from all prefixes above, up to the next listed one.
        let lengths = LENGTHS[row.prefix.family()];
        for level in (0..LEVELS).filter(|&level| lengths[level] < row.prefix.length()) {
            let above = Prefix::at(prefix::at_level(row.prefix.number(), level), level);
            if let Some(sum) = residue.get_mut(&above) {
                *sum = [0, 1].map(|i| sum[i] - own[i]);
            }
            if rows.iter().any(|other| other.prefix == above) {
                break;
            }
        }
    }
    for row in &heavy.rows {
        let own = truth.0.get(&row.prefix).unwrap_or(&none);
        let without = residue.get(&row.prefix).copied().unwrap_or_default();
        for i in [0, 1] {
            holds(row.amounts[i], own[i] as i128, &row.prefix);
            holds(row.residue[i], without[i], &row.prefix);
        }
        assert!(row.residue[amount].most >= least);
    }
    for (prefix, residue) in &residue {
        if !rows.iter().any(|row| row.prefix == *prefix) {
            let others = i128::from(heavy.others) << POINT;
            assert!(residue[amount] <= others, "{prefix} is not listed: {residue:?}");
        }
    }
}

/// Addresses of both families by Zipf's law, under common prefixes.
fn stream(packets: usize, addresses: u64, seed: u64) -> Vec<Packet> {
    let mut names = Rng::seeded(40);
    let names: Vec<IpAddr> = (0..addresses)
        .map(|_| {
            let bits = names.next_u64();
            let (net, host) = ((bits as u8) & 7, (bits >> 8) as u32);
            match bits >> 63 {
                0 => IpAddr::from([10 + net, (host >> 28) as u8, (host >> 8) as u8, host as u8]),
                _ => {
                    let number = 0x2001_0db8 << 96 | u128::from(net) << 80 | u128::from(host);
                    IpAddr::from((number | u128::from(host >> 20) << 64).to_be_bytes())
                }
            }
        })
        .collect();
    let law = Zipf::new(addresses, 1.0);
    let mut rng = Rng::seeded(seed);
    let mut packet = || {
        let rank = law.draw(&mut rng);
        (names[rank as usize - 1], [40 + rng.below(1461), 1])
    };
    (0..packets).map(|_| packet()).collect()
}

fn filled(shape: Shape, stream: &[Packet]) -> Table {
    let mut table = Table::new(shape, SEED).unwrap();
    for (address, amounts) in stream {
        table.add(*address, *amounts).unwrap();
    }
    table
}

fn batched(table: &mut Table, stream: &[Packet]) {
    let (addresses, amounts): (Vec<_>, Vec<_>) = stream.iter().copied().unzip();
    table.add_batch(&addresses, &amounts).unwrap();
}

#[test]
fn every_claim_is_true_on_a_zipf_stream() {
    let stream = stream(200_000, 20_000, 1);
    let table = filled(SMALL, &stream);
    check(&table, &Truth::of(&stream), 50);
    let total: u64 = stream.iter().map(|(_, [bytes, _])| bytes).sum();
    assert_eq!(table.total(), [total, 200_000]);
    assert_eq!(table.len()[0], 8 * 64);
    // The invariant of Space-Saving in buckets of eight, on average over the buckets.
    let heavy = table.heavy(0, total / 100);
    assert!(heavy.others < total / 100, "{} of {total}", heavy.others);
    assert!(heavy.rows.iter().filter(|row| row.residue[0].least > total / 100).count() >= 5);
}

#[test]
fn tiny_tables_only_know_less() {
    let stream = stream(20_000, 3_000, 3);
    let truth = Truth::of(&stream);
    for buckets in [[1; LEVELS], [3, 1, 1, 1, 2], [1, 50, 1, 1, 1], [40, 1, 30, 1, 1]] {
        check(&filled(Shape { buckets }, &stream), &truth, 20);
    }
    assert_eq!(
        Table::new(Shape { buckets: [1, 0, 1, 1, 1] }, SEED).unwrap_err().name(),
        Some("buckets")
    );
    assert_eq!(Prefixes::<5>::new(SMALL, SEED).unwrap_err().name(), Some("amounts"));
}

#[test]
fn a_table_with_room_knows_everything() {
    let stream = stream(5_000, 200, 2);
    let table = filled(Shape { buckets: [2_000; LEVELS] }, &stream);
    for (prefix, sums) in &Truth::of(&stream).0 {
        let exact =
            sums.map(|sum| (sum >> POINT) as u64).map(|sum| Bounds { least: sum, most: sum });
        assert_eq!(table.bounds(prefix), exact);
    }
    assert_eq!(
        table.bounds(&Prefix::new([9, 9, 9, 9].into(), 16).unwrap()),
        [Bounds::default(); 2]
    );
    assert_eq!(table.len()[1..], [0; LEVELS - 1]);
}

#[test]
fn prefixes_of_every_length_have_bounds() {
    let stream = stream(30_000, 2_000, 8);
    let table = filled(Shape { buckets: [8, 8, 4, 2, 1] }, &stream);
    let mut rng = Rng::seeded(9);
    for _ in 0..300 {
        let address = stream[rng.below(stream.len() as u64) as usize].0;
        let length = rng.below(if address.is_ipv4() { 33 } else { 129 }) as u8;
        let prefix = Prefix::new(address, length).unwrap();
        let own = stream.iter().filter(|(address, _)| prefix.contains(*address));
        let sums = own.fold([0u64; 2], |sum, (_, more)| [sum[0] + more[0], sum[1] + more[1]]);
        for (bounds, sum) in table.bounds(&prefix).into_iter().zip(sums) {
            assert!(bounds.least <= sum && sum <= bounds.most, "{prefix}: {bounds:?}, {sum}");
        }
    }
}

#[test]
fn batches_leave_the_table_that_single_additions_leave() {
    let stream = stream(50_000, 20_000, 6);
    // In the cache and far beyond it.
    for buckets in [[64, 32, 16, 8, 4], [1 << 15, 3, 1 << 10, 100, 7]] {
        let one_by_one = filled(Shape { buckets }, &stream);
        for sizes in [vec![50_000], vec![1, 127, 128, 129, 49_615], vec![0, 31, 33, 49_936]] {
            let mut table = Table::new(Shape { buckets }, SEED).unwrap();
            let mut rest = &stream[..];
            for size in sizes {
                let (group, others) = rest.split_at(size);
                batched(&mut table, group);
                rest = others;
            }
            assert!(rest.is_empty() && table.to_bytes() == one_by_one.to_bytes());
        }
    }
}

#[test]
fn halved_amounts_keep_their_bounds() {
    let stream = stream(60_000, 5_000, 7);
    let mut table = Table::new(Shape { buckets: [32, 16, 8, 4, 2] }, SEED).unwrap();
    let mut truth = Truth::default();
    for (period, group) in stream.chunks(3_000).enumerate() {
        batched(&mut table, group);
        group.iter().for_each(|&packet| truth.add(packet));
        if period % 4 == 3 {
            check(&table, &truth, 50);
        }
        let times = [1, 1, 2, 1][period % 4];
        table.halve(times);
        (0..times).for_each(|_| truth.halve());
        check_heavy(&table, &truth, 0, table.total()[0] / 50);
        let image = table.to_bytes();
        assert_eq!(Table::from_bytes(&image, SEED).map(|read| read.to_bytes()), Ok(image));
    }
    // Twenty halvings later nothing is left but what is rounded up.
    table.halve(20);
    (0..20).for_each(|_| truth.halve());
    check(&table, &truth, 50);
    assert!(table.total()[0] < 100);
    table.halve(u32::MAX);
    assert_eq!(table.total(), [1, 1]);
    check(&table, &Truth::default(), 1);
}

#[test]
fn a_steady_rate_is_between_once_and_twice_its_period() {
    let mut table = Table::new(SMALL, SEED).unwrap();
    let host = IpAddr::from([10, 0, 0, 1]);
    for _ in 0..40 {
        table.halve(1);
        table.add(host, [1_000, 10]).unwrap();
    }
    let [bytes, packets] = table.bounds(&Prefix::new(host, 32).unwrap());
    assert_eq!((bytes.least, bytes.most), (1_999, 2_000));
    assert_eq!((packets.least, packets.most), (19, 20));
}

#[test]
fn merged_tables_hold_the_truth_of_both_streams() {
    let whole = stream(100_000, 10_000, 10);
    let (left, right) = whole.split_at(60_000);
    let (mut one, mut other) = (filled(SMALL, left), filled(SMALL, right));
    let (mut truth, mut others) = (Truth::of(left), Truth::of(right));
    let mut swapped = other.try_clone().unwrap();
    swapped.merge(&one).unwrap();
    one.merge(&other).unwrap();
    truth.join(&others);
    check(&one, &truth, 50);
    assert_eq!(one.total(), swapped.total());
    // A merged table accepts further additions, and tables with different numbers of halvings merge.
    for (address, amounts) in &whole[..30_000] {
        one.add(*address, *amounts).unwrap();
        truth.add((*address, *amounts));
    }
    other.halve(3);
    (0..3).for_each(|_| others.halve());
    one.merge(&other).unwrap();
    truth.join(&others);
    check(&one, &truth, 50);
    let image = one.to_bytes();
    assert_eq!(Table::from_bytes(&image, SEED).map(|read| read.to_bytes()), Ok(image));
    for (name, table) in [
        ("seed", Table::new(SMALL, Seed(1)).unwrap()),
        ("buckets", Table::new(Shape { buckets: [1; LEVELS] }, SEED).unwrap()),
    ] {
        assert_eq!(one.merge(&table), Err(Refused::Mismatch { field: name }));
    }
}

#[test]
fn sums_that_cannot_be_counted_are_refused_and_change_nothing() {
    let host = IpAddr::from([10, 0, 0, 1]);
    let full = Refused::Overflow { ceiling: CEILING };
    let mut table = Table::new(SMALL, SEED).unwrap();
    table.add(host, [CEILING - 7, 1]).unwrap();
    let image = table.to_bytes();
    for amounts in [[8, 0], [u64::MAX, 0], [0, u64::MAX], [0, CEILING]] {
        assert_eq!(table.add(host, amounts), Err(full));
        assert_eq!(table.add_batch(&[host, host], &[[0, 0], amounts]), Err(full));
    }
    assert_eq!(table.add_batch(&[host; 2], &[[4, 0]; 2]), Err(full));
    let copy = table.try_clone().unwrap();
    assert_eq!(table.merge(&copy), Err(full));
    assert_eq!(table.to_bytes(), image);
    table.add(host, [7, 0]).unwrap();
    assert_eq!(
        table.bounds(&Prefix::new(host, 32).unwrap())[0].to_string(),
        format!("= {CEILING}")
    );
    table.halve(1);
    table.merge(&copy).unwrap_err();
    table.halve(1);
    table.add(host, [CEILING / 2, 0]).unwrap();
}

#[test]
fn amounts_of_nothing_evict_nothing_heavy() {
    let mut table = Table::new(Shape { buckets: [1; LEVELS] }, SEED).unwrap();
    let heavy: Vec<IpAddr> = (0..7).map(|host| [10, 0, 0, host].into()).collect();
    for &host in &heavy {
        table.add(host, [100, 1]).unwrap();
    }
    let mut rng = Rng::seeded(13);
    for _ in 0..10_000 {
        table.add(((rng.next_u64() as u32).to_be_bytes()).into(), [rng.below(1), 1]).unwrap();
    }
    for host in heavy {
        let [bytes, packets] = table.bounds(&Prefix::new(host, 32).unwrap());
        assert!(bytes.is_exact() && packets.is_exact());
    }
}

#[test]
fn no_addition_touches_more_than_one_bucket_per_level() {
    // A table of one bucket per level, and addresses that share no prefix: each addition evicts at each
    // level. The number of entries shows that each level keeps eight.
    let mut table = Table::new(Shape { buckets: [1; LEVELS] }, SEED).unwrap();
    for net in 0..=255u8 {
        table.add([net, 1, 1, 1].into(), [1, 1]).unwrap();
    }
    assert_eq!(table.len(), [8; LEVELS]);
    let kept: u64 = table.sums()[1][1] as u64;
    assert_eq!(kept, parts(256));
}

#[test]
fn images_come_back_and_impossible_ones_do_not() {
    let mut table = filled(Shape { buckets: [3, 2, 1, 1, 1] }, &stream(2_000, 500, 9));
    table.halve(5);
    table.add([10, 0, 0, 1].into(), [7, 7]).unwrap();
    let image = table.to_bytes();
    let back = Table::from_bytes(&image, SEED).unwrap();
    assert_eq!(back, table);
    assert_eq!(back.heavy(0, 1), table.heavy(0, 1));
    assert_eq!(Table::from_bytes(&image, Seed(1)).err(), Some(Malformed::Seed));
    let other = Prefixes::<1>::from_bytes(&image, SEED);
    assert_eq!(other.err(), Some(Malformed::Field { name: "amounts" }));
    // Changes each byte of fields and payload under a valid checksum. The result must be another
    // structure that accepts operations, or an error.
    let other = filled(Shape { buckets: [3, 2, 1, 1, 1] }, &stream(500, 100, 10));
    let mut accepted = 0;
    for at in 32..image.len() - 4 {
        for flip in [1, 0x80] {
            let mut damaged = image.clone();
            damaged[at] ^= flip;
            let body = damaged.len() - 4;
            let checksum = crc32fast::hash(&damaged[..body]);
            damaged[body..].copy_from_slice(&checksum.to_le_bytes());
            let Ok(mut table) = Table::from_bytes(&damaged, SEED) else { continue };
            accepted += 1;
            assert_eq!(table.to_bytes(), damaged, "byte {at}");
            let _ = (table.add([1, 2, 3, 4].into(), [1 << 57; 2]), table.merge(&other));
            table.halve(3);
            let _ = (table.heavy(1, 3), table.merge(&other));
            let image = table.to_bytes();
            assert_eq!(Table::from_bytes(&image, SEED).map(|read| read.to_bytes()), Ok(image));
        }
    }
    assert!(accepted > 100, "{accepted}");
}
