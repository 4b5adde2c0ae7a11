//! Small sets of a universe of 256: codes and lists of ours, beside the paper's own alternative.
//!
//! That alternative (its section VII) writes the first `d` members to a table and puts the others
//! into a Bloom filter: no false positive for `d` members either, in the same 64 bits.

use crate::{
    clock::ns_each,
    report::{Row, Size},
    stats::Summary,
};
use anyhow::Result;
use sidon::internals::Ladder;
use sidon::zone::{Adaptive, Code, Filter, Ols, Pol, ols, pol};
use sidon_kit::Rng;
use std::{collections::BTreeMap, hint::black_box};

/// What is timed.
pub(crate) const NAMES: [&str; 4] = ["zone_ols", "zone_pol", "zone_list", "table_then_bloom"];
/// Members of a set: as many as every one of them holds without an error, and more.
const MEMBERS: [u64; 2] = [3, 16];
const SETS: usize = 1024;
const UNIVERSE: u64 = 256;

/// What is asked of each.
trait Small {
    fn insert(&mut self, key: u64);
    fn contains(&self, key: u64) -> bool;
    fn bits(&self) -> u64;
}

macro_rules! small {
    ($name:ty, $bits:expr) => {
        impl Small for $name {
            fn insert(&mut self, key: u64) {
                <$name>::insert(self, &key).expect("the key is of the universe");
            }
            fn contains(&self, key: u64) -> bool {
                <$name>::contains(self, &key)
            }
            fn bits(&self) -> u64 {
                $bits(self)
            }
        }
    };
}
small!(Filter<Ols>, |set: &Filter<Ols>| set.code().cells());
small!(Filter<Pol>, |set: &Filter<Pol>| set.code().cells());
small!(Adaptive, |set: &Adaptive| 8 * set.memory_bytes());

/// Three members of eight bits and their number, then a Bloom filter of the 38 bits that are left,
/// with two hashes: few bits, and it is to be full of few.
#[derive(Debug, Clone, Copy, Default)]
struct TableThenBloom {
    table: [u8; 3],
    len: u8,
    bloom: u64,
}

impl TableThenBloom {
    const BLOOM: u64 = 38;

    fn column(key: u64) -> u64 {
        let hash = (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bit = |half: u64| ((half & 0xffff_ffff) * Self::BLOOM) >> 32;
        1 << bit(hash) | 1 << bit(hash >> 32)
    }
}

impl Small for TableThenBloom {
    fn insert(&mut self, key: u64) {
        if self.contains(key) {
            return;
        }
        if let Some(place) = self.table.get_mut(usize::from(self.len)) {
            *place = key as u8;
            self.len += 1;
        } else {
            self.bloom |= Self::column(key);
        }
    }

    fn contains(&self, key: u64) -> bool {
        let listed = self.table[..usize::from(self.len)].contains(&(key as u8));
        listed || (self.bloom != 0 && self.bloom & Self::column(key) == Self::column(key))
    }

    fn bits(&self) -> u64 {
        64
    }
}

/// The rows of the structures that `wanted` names.
pub(crate) fn run(rounds: usize, wanted: impl Fn(&str) -> bool) -> Result<Vec<Row>> {
    let code = Ols::new(ols::Shape { universe: UNIVERSE, order: 16, groups: 4 })?;
    let cut = pol::Shape { universe: UNIVERSE, order: 7, digits: 3, groups: 7, infinity: true };
    let cut = Pol::new(cut)?;
    let ladder = Ladder::new(UNIVERSE, sidon::internals::Way::List)?;
    let mut rows = Vec::new();
    for members in MEMBERS {
        eprintln!("zone: {members} of {UNIVERSE}");
        let sets = draw(members);
        let mut add = |name: &'static str, ours, times: Times| {
            rows.extend(times.ops.into_iter().map(|(op, ns)| Row {
                section: "zone",
                structure: name.to_owned(),
                ours,
                removes: false,
                op,
                size: Size::Keys(members),
                ns: Summary::of(&ns),
                bits_per_key: Some(times.bits as f64 / members as f64),
                fpr: Some(times.false_positives),
                lost: Some(times.lost),
                overestimate: None,
                ratio: BTreeMap::new(),
            }));
        };
        for name in NAMES.into_iter().filter(|name| wanted(name)) {
            let times = match name {
                "zone_ols" => time(rounds, &sets, || Ok(Filter::new(code.clone())?))?,
                "zone_pol" => time(rounds, &sets, || Ok(Filter::new(cut.clone())?))?,
                "zone_list" => time(rounds, &sets, || Ok(ladder.empty()))?,
                _ => time(rounds, &sets, || Ok(TableThenBloom::default()))?,
            };
            add(name, name != "table_then_bloom", times);
        }
    }
    Ok(rows)
}

/// Sets of distinct members.
fn draw(members: u64) -> Vec<Vec<u64>> {
    let mut rng = Rng::seeded(members);
    let set = |_| {
        let mut set = Vec::new();
        while (set.len() as u64) < members {
            let key = rng.below(UNIVERSE);
            if !set.contains(&key) {
                set.push(key);
            }
        }
        set
    };
    (0..SETS).map(set).collect()
}

/// What was found of one structure.
struct Times {
    ops: [(&'static str, Vec<f64>); 2],
    bits: u64,
    false_positives: f64,
    lost: u64,
}

fn time<S: Small>(
    rounds: usize,
    sets: &[Vec<u64>],
    empty: impl Fn() -> Result<S>,
) -> Result<Times> {
    let (mut insert, mut contains) = (Vec::new(), Vec::new());
    let (mut passed, mut strangers, mut lost, mut bits) = (0, 0, 0, 0);
    for _ in 0..rounds {
        let mut all = sets.iter().map(|_| empty()).collect::<Result<Vec<_>>>()?;
        insert.push(ns_each(sets.iter().map(Vec::len).sum(), || {
            for (set, keys) in all.iter_mut().zip(sets) {
                keys.iter().for_each(|&key| set.insert(key));
            }
        }));
        contains.push(ns_each(SETS * UNIVERSE as usize, || {
            let ask = |set: &S| (0..UNIVERSE).filter(|&key| set.contains(key)).count();
            black_box(all.iter().map(ask).sum::<usize>());
        }));
        (passed, strangers, lost, bits) = (0u64, 0u64, 0u64, 0u64);
        for (set, keys) in all.iter().zip(sets) {
            bits = bits.max(set.bits());
            for key in 0..UNIVERSE {
                let (is_in, found) = (keys.contains(&key), set.contains(key));
                strangers += u64::from(!is_in);
                passed += u64::from(found && !is_in);
                lost += u64::from(is_in && !found);
            }
        }
    }
    let false_positives = passed as f64 / strangers.max(1) as f64;
    Ok(Times { ops: [("insert", insert), ("contains", contains)], bits, false_positives, lost })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_loses_a_member_and_nobody_errs_with_three() {
        let rows = run(1, |_| true).unwrap();
        assert_eq!(rows.len(), 2 * NAMES.len() * MEMBERS.len());
        for row in &rows {
            assert_eq!(row.lost, Some(0), "{}", row.structure);
            let errs = row.fpr.unwrap() > 0.0;
            let exact = row.size == Size::Keys(3) || row.structure == "zone_list";
            assert_eq!(errs, !exact, "{} {:?}", row.structure, row.size);
        }
    }
}
