//! Sets: keys are inserted, removed where the structure allows it, and sets are merged.

use super::{Draw, MEMBERS, Operate, SEED, UNIVERSE, any_key, batch, keys, member, one_of};
use sidon::{
    Infeasible, Refused,
    set::{
        Backyard, Bh, Blocked, Bloom, Counting, DLeft, Decode, Elastic, Filter, Increments, Moves,
        Multilayer, Overflow, Set, Spread, Variable, backyard, bh, blocked, bloom, counting, dleft,
        elastic, multilayer, variable,
    },
};
use std::fmt::Debug;

/// Which keys the set contains. One batch must give the same answers as single lookups.
fn found<B: Filter>(set: &Set<B>) -> Vec<bool> {
    let keys: Vec<u64> = (0..UNIVERSE).collect();
    let one_by_one: Vec<bool> = keys.iter().map(|key| set.contains(key)).collect();
    let mut in_batch = vec![false; keys.len()];
    set.contains_batch(&keys, &mut in_batch);
    assert_eq!(in_batch, one_by_one);
    one_by_one
}

/// A set that keys enter and never leave.
macro_rules! grows_only {
    ($name:ident, $draw:ident => $shape:expr) => {
        impl Operate for $name {
            fn fresh($draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
                $name::new($shape, SEED)
            }

            fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
                match draw(16) {
                    0..10 => self.insert(&member(draw)),
                    10..13 => batch(|refused| self.insert_batch(&keys(draw, MEMBERS), refused)),
                    _ => self.merge(other),
                }
            }

            fn wipe(&mut self) {
                self.clear();
            }

            fn answers(&self) -> impl PartialEq + Debug {
                (found(self), self.len(), self.stats().load, self.certainty().error())
            }
        }
    };
}

grows_only!(Bloom, draw => bloom::Shape { bits: 1 + draw(60), hashes: 1 + draw(6) as u32 });
grows_only!(Blocked, draw => blocked::Shape { lines: 1 + draw(3), hashes: 1 + draw(16) as u32 });

/// A set that keys can leave, and `$own`, an operation that other sets do not have.
macro_rules! keys_leave {
    ($name:ident, $draw:ident => $shape:expr, $own:expr, $statistics:expr) => {
        impl Operate for $name {
            fn fresh($draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
                $name::new($shape, SEED)
            }

            fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
                match draw(32) {
                    0..13 => self.insert(&member(draw)),
                    13..25 => self.remove(&any_key(draw)),
                    25..27 => batch(|refused| self.insert_batch(&keys(draw, MEMBERS), refused)),
                    27..29 => batch(|refused| self.remove_batch(&keys(draw, UNIVERSE), refused)),
                    29 => self.merge(other),
                    30 => {
                        let own: fn(&mut $name, &mut Draw<'_>) = $own;
                        own(self, draw);
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }

            fn wipe(&mut self) {
                self.clear();
            }

            fn answers(&self) -> impl PartialEq + Debug {
                let statistics: fn(&$name) -> [f64; 2] = $statistics;
                (found(self), self.len(), self.certainty().error(), statistics(self))
            }
        }
    };
}

keys_leave!(
    Counting,
    draw => {
        let width = one_of(draw, &[1, 2, 2, 3, 4, 4, 7, 8, 16]);
        let (hashes, spread) = hashes(draw);
        let counters = counters(draw, width, spread);
        counting::Shape { counters, hashes, width, overflow: overflow(draw), spread }
    },
    |_, _| (),
    |filter| [filter.stats().load, filter.stats().at_ceiling as f64]
);

keys_leave!(
    Variable,
    draw => {
        let (increments, width) = (increments(draw), 3 + draw(7) as u32);
        let (hashes, spread) = hashes(draw);
        let counters = counters(draw, width, spread);
        variable::Shape { counters, hashes, width, increments, overflow: overflow(draw), spread }
    },
    |_, _| (),
    |filter| [filter.stats().load, filter.stats().at_ceiling as f64]
);

keys_leave!(
    Bh,
    draw => {
        let (keys_bits, sum_bits) = (1 + draw(5) as u32, 4 + draw(7) as u32);
        let (hashes, spread) = hashes(draw);
        bh::Shape {
            cells: counters(draw, keys_bits + sum_bits, spread),
            hashes,
            keys_bits,
            sum_bits,
            increments: increments(draw),
            decode: match draw(3) {
                0 => Decode::Basic,
                _ => Decode::Improved(draw(20) as u32),
            },
            centred: draw(2) == 1,
            overflow: overflow(draw),
            spread,
        }
    },
    |_, _| (),
    |filter| [filter.stats().load, filter.stats().at_ceiling as f64]
);

keys_leave!(
    Multilayer,
    draw => {
        let (hashes, spread) = hashes(draw);
        let first = 1 + draw(5) as u32;
        let (mut rest, mut buckets) = ([0; 7], [0; 7]);
        for i in 0..=draw(7) as usize {
            (rest[i], buckets[i]) = (1 + draw(7) as u32, 1 + draw(3));
        }
        multilayer::Shape {
            counters: counters(draw, first, spread),
            hashes,
            first,
            rest,
            buckets,
            increments: increments(draw),
            overflow: overflow(draw),
            spread,
        }
    },
    |_, _| (),
    |filter| [filter.stats().load, filter.stats().overflowed as f64]
);

keys_leave!(
    DLeft,
    draw => {
        let counter = draw(4) as u32;
        let remainder = 4 + draw(6) as u32;
        let width = remainder + counter + draw(3) as u32;
        dleft::Shape {
            subtables: 2 + draw(3) as u32,
            buckets: 1 + draw(3),
            cells: 8,
            width: if draw(3) == 0 { 16 } else { width },
            remainder,
            counter,
            moves: moves(draw),
            growths: draw(3) as u32,
            grows: draw(2) == 1,
        }
    },
    |filter, draw| {
        // Refused where the shape allows no more.
        let _ = if draw(2) == 0 { filter.grow() } else { filter.shrink() };
    },
    |filter| [filter.stats().load, filter.shape().buckets as f64]
);

keys_leave!(
    Elastic,
    draw => {
        let (least, counter) = (1 + draw(5) as u32, draw(4) as u32);
        elastic::Shape {
            subtables: 2 + draw(3) as u32,
            buckets: 1 + draw(3),
            line: one_of(draw, &[16, 32, 64]),
            least,
            remainder: least + draw(8) as u32,
            counter,
            moves: moves(draw),
            narrows: draw(2) == 1,
        }
    },
    |filter, draw| {
        // Refused where the shape does not allow the length, or where cells do not fit.
        let _ = filter.set_remainder(draw(14) as u32);
    },
    |filter| [filter.stats().load, f64::from(filter.shape().remainder)]
);

keys_leave!(
    Backyard,
    draw => backyard::Shape { lines: 1 + draw(2), sharing: 1 + draw(3) as u32 },
    |filter, draw| {
        // Lines spill only if they are full.
        let many: Vec<u64> = (0..draw(80)).collect();
        filter.insert_batch(&many, &mut |_, _| {});
    },
    |filter| [filter.stats().load, filter.stats().overflowed as f64]
);

pub(super) fn moves(draw: &mut Draw<'_>) -> Moves {
    one_of(draw, &[Moves::Never, Moves::First, Moves::Search(3), Moves::Search(40)])
}

fn overflow(draw: &mut Draw<'_>) -> Overflow {
    one_of(draw, &[Overflow::Refuse, Overflow::Refuse, Overflow::Pin])
}

fn increments(draw: &mut Draw<'_>) -> Increments {
    let sets = [
        Increments::of([1]),
        Increments::of([3]),
        Increments::of([2, 4]),
        Increments::of([4, 5, 6, 7]),
        Increments::of([1, 4, 13, 15]),
        Increments::of([8, 12, 14, 15]),
        Increments::of([3, 9, 30]),
        Increments::of([31, 47, 60]),
    ];
    one_of(draw, &sets)
}

/// A number of hashes and a mapping, which is in lines one time in four.
fn hashes(draw: &mut Draw<'_>) -> (u32, Spread) {
    let each = 1 + draw(4) as u32;
    match draw(8) {
        0 => (each, Spread::Lines(1)),
        1 => (2 * each, Spread::Lines(2)),
        _ => (each, Spread::Anywhere),
    }
}

/// A number of cells: whole lines if the cells are in lines.
fn counters(draw: &mut Draw<'_>, width: u32, spread: Spread) -> u64 {
    match spread {
        Spread::Anywhere => 1 + draw(14),
        Spread::Lines(_) => (1 + draw(2)) * (512 / u64::from(width)),
    }
}
