//! What this machine's memory can do: the floor under every structure's times.
//!
//! | op | how the next line is known | what it measures |
//! |---|---|---|
//! | `chase` | the line before names it | the whole latency of a read |
//! | `independent` | from a counter | what the processor overlaps by itself |
//! | `prefetched` | from a counter, 32 asked for at a time | what a batch can reach |
//!
//! On Sidon's memory, which asks for huge pages from 4 MiB on, and on a `Vec`'s ordinary ones.
//!
//! [`Reads`] is the last of them for a table of a given size, beside the structures of that size.

use crate::{
    clock::ns_each,
    filter::CHUNK,
    ours,
    report::{Row, Size},
    stats::Summary,
};
use anyhow::Result;
use sidon::{
    internals::{LINE, Memory, prefetch},
    plan::{self, Target},
    set::{Backyard, DLeft},
};
use sidon_kit::Rng;
use std::{collections::BTreeMap, hint::black_box};

const SIZES: [usize; 4] = [256 << 10, 8 << 20, 64 << 20, 512 << 20];
const READS: usize = 1 << 20;

/// The rows of the kinds of memory that `wanted` names.
pub(crate) fn run(rounds: usize, wanted: impl Fn(&str) -> bool) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for bytes in SIZES {
        eprintln!("machine: {} KiB", bytes >> 10);
        let mut memory = Memory::zeroed(bytes as u64)?;
        let mut ordinary = vec![0; bytes];
        let mut tables =
            [("memory_huge", memory.bytes_mut()), ("memory_ordinary", ordinary.as_mut_slice())];
        let mut times = BTreeMap::<_, Vec<f64>>::new();
        tables.iter_mut().filter(|table| wanted(table.0)).for_each(|table| link(table.1));
        for number in 0..rounds {
            for (name, table) in tables.iter().filter(|table| wanted(table.0)) {
                for (op, ns) in round(table, number as u64) {
                    times.entry((*name, op)).or_default().push(ns);
                }
            }
        }
        rows.extend(times.into_iter().map(|((name, op), times)| Row {
            section: "machine",
            structure: name.to_string(),
            ours: false,
            removes: false,
            op,
            size: Size::Bytes(bytes as u64),
            ns: Summary::of(&times),
            bits_per_key: None,
            fpr: None,
            lost: None,
            overestimate: None,
            ratio: BTreeMap::new(),
        }));
    }
    Ok(rows)
}

/// Makes every line name another, all of them in one random circle: Sattolo's shuffle.
fn link(table: &mut [u8]) {
    let mut rng = Rng::seeded(11);
    let lines = table.len() / LINE;
    (0..lines).for_each(|line| write(table, line, line as u64));
    for line in (1..lines).rev() {
        let other = rng.below(line as u64) as usize;
        let (a, b) = (read(table, line), read(table, other));
        write(table, line, b);
        write(table, other, a);
    }
}

fn round(table: &[u8], number: u64) -> [(&'static str, f64); 3] {
    let lines = (table.len() / LINE) as u64;
    let chase = ns_each(READS, || {
        // Another start each round: the lines read last time are not read again at once.
        let start = Rng::seeded(number).below(lines);
        black_box((0..READS).fold(start, |line, _| read(table, line as usize)));
    });
    let mut rng = Rng::seeded(number + 100);
    let independent = ns_each(READS, || {
        let sum = |sum: u64, _| sum ^ read(table, rng.below(lines) as usize);
        black_box((0..READS).fold(0, sum));
    });
    let prefetched = prefetched::<CHUNK>(table, &mut rng);
    [("chase", chase), ("independent", independent), ("prefetched", prefetched)]
}

/// A read of a line in a table, `LINES` asked for at a time.
fn prefetched<const LINES: usize>(table: &[u8], rng: &mut Rng) -> f64 {
    let lines = (table.len() / LINE) as u64;
    let mut picked = [0; LINES];
    ns_each(READS, || {
        let mut sum = 0;
        for _ in 0..READS / LINES {
            for line in &mut picked {
                *line = rng.below(lines) as usize;
                prefetch(table, *line * LINE);
            }
            sum = picked.iter().fold(sum, |sum, &line| sum ^ read(table, line));
        }
        black_box(sum);
    })
}

/// Lines that are read for a key, of a table as large as some structure's.
#[derive(Clone, Copy)]
pub(crate) struct Reads {
    /// Its name in tables, JSON and `--only`.
    pub(crate) name: &'static str,
    /// The bytes of the table for a target.
    pub(crate) bytes: fn(Target) -> Result<u64>,
    /// Nanoseconds for the lines of a key, those of [`CHUNK`] keys asked for at a time.
    timed: fn(&[u8], &mut Rng) -> f64,
}

impl Reads {
    /// One line, of as large a table as `backyard`'s; two, as `dleft`'s.
    pub(crate) const ALL: [Reads; 2] = [
        Reads {
            name: "read_one_line",
            bytes: |target| Ok(Backyard::planned_bytes(plan::backyard::shape(target)?)),
            timed: |table, rng| prefetched::<CHUNK>(table, rng),
        },
        Reads {
            name: "read_two_lines",
            bytes: |target| Ok(DLeft::planned_bytes(ours::fast(target))),
            timed: |table, rng| 2.0 * prefetched::<{ 2 * CHUNK }>(table, rng),
        },
    ];

    /// Nanoseconds a key, in a round of this number.
    pub(crate) fn round(&self, target: Target, number: usize) -> Result<f64> {
        let mut memory = Memory::zeroed((self.bytes)(target)?)?;
        memory.bytes_mut().fill(1);
        let mut rng = Rng::seeded(number as u64);
        // The first time brings to the caches what they hold of it, as entering members does.
        (self.timed)(memory.bytes(), &mut rng);
        Ok((self.timed)(memory.bytes(), &mut rng))
    }
}

#[inline(always)]
fn read(table: &[u8], line: usize) -> u64 {
    let first = table[line * LINE..].first_chunk().expect("a line has eight bytes");
    u64::from_le_bytes(*first)
}

#[inline(always)]
fn write(table: &mut [u8], line: usize, value: u64) {
    table[line * LINE..][..8].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_form_one_circle() {
        let mut table = vec![0; 64 * LINE];
        link(&mut table);
        let (mut line, mut steps) = (read(&table, 0), 1);
        while line != 0 {
            line = read(&table, line as usize);
            steps += 1;
        }
        assert_eq!(steps, 64);
    }
}
