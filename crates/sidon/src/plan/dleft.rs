//! d-left filters: how often they err, how often they are full, and the least memory for both.
//!
//! A key never inserted is found if it shares one of `M = buckets * 2^r` fingerprints with a stored key.
//! The memory therefore follows from how many keys a bucket takes, over all `d` subtables:
//! ```text
//!   rate = keys / (buckets * 2^r)        bits per key = (r + c) / load
//!        = d * h * load / 2^r            load: cells in use, of d * h * buckets
//! ```
//! If all cells of a key are taken, cells move along a chain. No formula gives the load at which that
//! fails. It was measured with two subtables of eight cells and a search of at most 16, 64 or 256
//! buckets. Random keys left as new ones arrived, a hundred times as many as are stored:
//!
//! | load | refused of 10^7: 16 buckets | 64 | 256 | buckets full | insertions that move |
//! |---|---|---|---|---|---|
//! | 0.97 | 0 | 0 | 0 | 81 % | 65 % |
//! | 0.98 | 19 | 0 | 0 | 86 % | 74 % |
//! | 0.985 | 863 | 0 | 0 | 90 % | 80 % |
//! | 0.99 | 27,274 | 0 | 0 | 93 % | 86 % |
//! | 0.993 | 162,629 | 0 | 0 | 95 % | 90 % |
//!
//! More cells or subtables reach higher loads: 2 x 16, 2 x 32, 3 x 8 and 4 x 8 refused nothing at 0.996
//! with a search of 64 buckets. A search of 256 full buckets has read eight times as many, and
//! fails only if all of those are full. Plans stop at 0.955, because moves take time. In a small table
//! all keys may hash to the same few buckets. A hundred keys in a table of a hundred cells are refused one in twenty times, and about fifty times less often with every
//! four spare cells. Plans add 24 cells. Bonomi et al.,
//! ESA 2006, sections 3 to 5.

use super::{Prefer, Target, bloom::least, fluid::Fluid, tail::ln_factorial, too_strict};
use crate::{
    Infeasible,
    key::permute::MODULUS_MAX,
    set::{
        Moves,
        dleft::{COUNTER_MAX, Shape},
    },
};

/// The smallest table that meets the target: two subtables of eight cells of any width, filled to at
/// most 95.5 per cent by moving cells.
///
/// With [`Prefer::Speed`], buckets of at most 32 bytes that one comparison reads, with so much room that
/// fewer than one insertion in a thousand needs a move.
///
/// A cell has a counter of at least `counter` bits, 0 to 4, for the copies of a key. With 0, each copy
/// takes a cell, and at most sixteen copies find one.
///
/// ```
/// use sidon::{set::DLeft, plan::{Prefer, Target, dleft}};
///
/// let bits = |shape| DLeft::planned_bytes(shape) * 8 / 1_000_000;
/// let target = Target::new(1_000_000, 0.001);
/// // A remainder of 14 bits: 16 cells per pair of buckets, 95.5 % in use, share 2^14 remainders.
/// let small = dleft::shape(target, 0)?;
/// assert_eq!((small.remainder, small.width, bits(small)), (14, 14, 14));
/// assert_eq!(bits(dleft::shape(target, 2)?), 16);
/// // Each doubling needs one more bit of fingerprint, for twice as many keys.
/// let grows = dleft::shape(Target { growth: 3, ..target }, 0)?;
/// assert_eq!((grows.remainder, grows.growths, grows.buckets), (17, 3, small.buckets));
/// let fast = dleft::shape(Target { prefer: Prefer::Speed, ..target }, 2)?;
/// assert!(bits(fast) < 24 && dleft::overflow(fast, 1_000_000) < 0.001);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: Target, counter: u32) -> Result<Shape, Infeasible> {
    smallest(target, counter)?.ok_or_else(|| {
        // Names the setting to change: less growth if that is enough, or else another rate.
        let is_met = |target| smallest(target, counter).is_ok_and(|shape| shape.is_some());
        let less = (0..target.growth).rev().find(|&growth| is_met(Target { growth, ..target }));
        if let Some(most) = less {
            let (got, most) = (target.growth.into(), most.into());
            return Infeasible::OutOfRange { name: "growth", got, least: 0, most };
        }
        let with = |false_positives| Target { false_positives, ..target };
        too_strict("false_positives", target.false_positives, |rate| is_met(with(rate)))
    })
}

/// The smallest shape; `None` if no shape meets the target.
fn smallest(target: Target, counter: u32) -> Result<Option<Shape>, Infeasible> {
    let wish = Wish::new(target, counter)?;
    Ok(match target.prefer {
        Prefer::Memory => smallest_of(&wish, [TIGHT]),
        Prefer::Speed => {
            let layouts = [(8, 16), (8, 32), (16, 8), (16, 16), (32, 8)];
            let frames = layouts.map(|(width, cells)| Frame {
                subtables: 2,
                cells,
                width: Some(width),
                room: Room::MovesAreRare,
            });
            smallest_of(&wish, frames)
        }
    })
}

/// The false-positive rate of a table that holds `keys` keys; 1 for a shape that cannot be built.
///
/// ```
/// use sidon::{set::{Moves, dleft::Shape}, plan::dleft};
///
/// // Bonomi et al., ESA 2006, section 5.1: 49,152 keys share 2,048 * 2^14 fingerprints.
/// let paper = Shape {
///     subtables: 4,
///     buckets: 2_048,
///     cells: 8,
///     width: 16,
///     remainder: 14,
///     counter: 2,
///     moves: Moves::Never,
///     growths: 0,
///     grows: false,
/// };
/// assert!((dleft::rate(paper, 49_152) - 0.001_463_771_4).abs() < 1e-10);
/// ```
pub fn rate(shape: Shape, keys: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    // The chance that a given fingerprint is no member's.
    let used = fingerprint_used(shape, keys);
    if shape.counter > 0 {
        return used;
    }
    // Without counters, the next fingerprint replaces a share q of them, and is then w times as likely for
    // stored and other keys alike. This is the mean over w, which is geometric with q.
    let q = f64::from(shape.subtables) / 2f64.powi((shape.remainder - shape.growths) as i32);
    let free = 1.0 - used;
    used * (1.0 - q * q * free) / (1.0 - q * free).powi(2)
}

/// The chance that an insertion finds all its cells taken, while `keys` keys are stored and random
/// ones leave as new ones arrive. This is the share that is refused under [`Moves::Never`]; 1 for a
/// shape that cannot be built.
///
/// ```
/// use sidon::{set::{Moves, dleft::Shape}, plan::dleft};
///
/// // Bonomi et al., ESA 2006, section 5.2: 6.5 keys per bucket overflow 0.0257 times in 2^20
/// // insertions.
/// let paper = Shape {
///     subtables: 4,
///     buckets: 2_048,
///     cells: 8,
///     width: 16,
///     remainder: 14,
///     counter: 2,
///     moves: Moves::Never,
///     growths: 0,
///     grows: false,
/// };
/// let overflows = dleft::overflow(paper, 53_248) * 2f64.powi(20);
/// assert!((overflows - 0.025_739).abs() < 1e-5);
/// ```
pub fn overflow(shape: Shape, keys: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    let buckets = f64::from(shape.subtables) * shape.buckets as f64;
    let load = cells_in_use(shape, keys) / buckets;
    overflowing(shape.subtables, shape.cells, load).overflow_chance(shape.cells)
}

/// The chance that an insertion finds `copies` copies of its fingerprint or more among `keys` keys; 1 for
/// a shape that cannot be built. It is the expected number of such groups of keys, which is nearly equal
/// while it is small.
fn copies_stored(shape: Shape, keys: u64, copies: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    let Some(others) = keys.checked_sub(copies) else { return 0.0 };
    let all = shape.fingerprints() as f64;
    if copies > 1024 {
        let ways = ln_factorial(keys) - ln_factorial(copies) - ln_factorial(others);
        return (ways - copies as f64 * all.ln()).exp().min(1.0);
    }
    let ratio = |already: u64| (keys - already) as f64 / ((already + 1) as f64 * all);
    (0..copies).map(ratio).product::<f64>().min(1.0)
}

/// How many of `insertions` insertions would raise a counter beyond its ceiling, on average, while
/// `keys` keys are stored and random ones leave as new ones arrive.
fn counter_overflow(shape: Shape, keys: u64, insertions: u64) -> f64 {
    if shape.counter == 0 {
        return 0.0;
    }
    if shape.check().is_err() {
        return insertions as f64;
    }
    let ceiling = shape.ceiling();
    let [full, nearly] = [ceiling, ceiling - 1].map(|copies| copies_stored(shape, keys, copies));
    // The largest remainder tops out one copy lower.
    let largest = 0.5f64.powi(shape.remainder as i32);
    insertions as f64 * (full + largest * nearly)
}

/// The shares of buckets by load, in the limit of many buckets: `loads[i][j]` is the share of the
/// buckets of subtable `i` that hold `j` keys or more.
///
/// The table holds `load` keys per bucket. If `keys_leave`, random keys have left as new ones arrived for
/// a long time. Otherwise the keys were inserted into an empty table and none has left. At most 16
/// subtables are computed.
///
/// ```
/// use sidon::plan::dleft;
///
/// // Table 1 of Bonomi et al., ESA 2006: six keys per bucket in four subtables.
/// let loads = dleft::bucket_loads(4, 6.0, true);
/// let at_least = |count: usize| loads.iter().map(|shares| shares[count]).sum::<f64>() / 4.0;
/// assert!((at_least(6) - 0.766_866_604_6).abs() < 1e-9);
/// assert!((at_least(9) / 1.680_777_707_9e-27 - 1.0).abs() < 1e-9);
/// ```
#[doc(hidden)]
pub fn bucket_loads(subtables: u32, load: f64, keys_leave: bool) -> Vec<Vec<f64>> {
    // Buckets of twice the mean load and twelve keys more are rarer than any double.
    let height = (load.max(0.0) as u32).saturating_mul(2).saturating_add(12);
    let limit = if keys_leave { Fluid::steady } else { Fluid::insert_only };
    limit(subtables, load, height).loads()
}

/// A target, and the limits that follow from it.
#[derive(Debug, Clone, Copy)]
struct Wish {
    keys: u64,
    /// The keys after all growth.
    grown: u64,
    false_positives: f64,
    /// The least bits of a counter.
    counter: u32,
    growths: u32,
}

impl Wish {
    fn new(target: Target, counter: u32) -> Result<Self, Infeasible> {
        target.check()?;
        Infeasible::unless_within("counter", counter.into(), 0, COUNTER_MAX.into())?;
        let Target { keys, false_positives, growth, .. } = target;
        let most = (super::KEYS_MAX / keys).ilog2();
        Infeasible::unless_within("growth", growth.into(), 0, most.into())?;
        let grown = keys << growth;
        Target::new(grown, false_positives).check()?;
        Ok(Wish { keys, grown, false_positives, counter, growths: growth })
    }
}

/// The smallest layout.
const TIGHT: Frame = Frame { subtables: 2, cells: 8, width: None, room: Room::Least };
/// The most insertions that a counter at its ceiling may refuse, of a million, on average.
const REFUSALS: f64 = 1e-6;

/// A layout: the part of a shape that is fixed before remainder, counter and buckets are chosen.
#[derive(Debug, Clone, Copy)]
struct Frame {
    subtables: u32,
    cells: u32,
    /// The bits of a cell, or as many as needed.
    width: Option<u32>,
    room: Room,
}

/// The room that a layout leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Room {
    /// As little as a search for moves needs.
    Least,
    /// Enough for [`MOVES_RARE`].
    MovesAreRare,
}

/// A load that plans do not exceed.
pub(super) const LOAD_MAX: f64 = 0.955;
/// The most buckets that a search for moves reads.
const SEARCH: Moves = Moves::Search(256);
/// Cells to spare in any table of more than one bucket a subtable.
pub(super) const SPARE: f64 = 24.0;
/// The share of insertions that may need a move in the fast layout.
const MOVES_RARE: f64 = 1e-3;
/// A table this many times as large as the keys need is no plan: the fingerprints are too short.
const SPARSE: u64 = 8;

fn smallest_of(wish: &Wish, frames: impl IntoIterator<Item = Frame>) -> Option<Shape> {
    let counters = if wish.counter == 0 { 0..=0 } else { wish.counter..=COUNTER_MAX };
    let mut best: Option<Shape> = None;
    for frame in frames {
        let load_buckets = frame.buckets_for_load(wish);
        for counter in counters.clone() {
            for shape in frame.shapes(wish, counter, load_buckets) {
                // Of two that are equal the earlier is kept: fewer subtables, fewer cells.
                if best.is_none_or(|best| shape.bytes() < best.bytes()) {
                    best = Some(shape);
                }
            }
        }
    }
    best
}

impl Frame {
    /// The shapes that keep to the wish, one for each remainder.
    fn shapes(
        self,
        wish: &Wish,
        counter: u32,
        load_buckets: u64,
    ) -> impl Iterator<Item = Shape> + '_ {
        let widths = self.width.map_or(5..=32, |width| width..=width);
        // After all growth, a remainder has one bit, or four without a counter.
        let least = wish.growths + if counter == 0 { 4 } else { 1 };
        widths.filter(move |width| width - counter >= least).filter_map(move |width| {
            let remainder = width - counter;
            let shape = |buckets| Shape {
                subtables: self.subtables,
                buckets,
                cells: self.cells,
                width,
                remainder,
                counter,
                moves: SEARCH,
                growths: wish.growths,
                grows: wish.growths > 0,
            };
            let meets = |&shape: &Shape| {
                rate(shape, wish.grown) <= wish.false_positives
                    && counter_overflow(shape, wish.grown, 1_000_000) <= REFUSALS
            };
            let most = load_buckets.saturating_mul(SPARSE).min(MODULUS_MAX >> remainder);
            let buckets = least_from(load_buckets, most, |buckets| meets(&shape(buckets)));
            Some(shape(buckets)).filter(|shape| buckets <= most && meets(shape))
        })
    }

    /// The buckets of a subtable that leave enough room for the keys.
    fn buckets_for_load(self, wish: &Wish) -> u64 {
        let all = self.subtables * self.cells;
        if wish.keys <= all.into() {
            // Every key may use every cell.
            return 1;
        }
        let needed = wish.keys as f64 / self.load();
        ((needed + SPARE) / f64::from(all)).ceil() as u64
    }

    /// The share of cells that may be in use in a large table.
    fn load(self) -> f64 {
        match self.room {
            Room::Least => LOAD_MAX,
            Room::MovesAreRare => load_where(self.subtables, self.cells, |fluid| {
                fluid.overflow_chance(self.cells) <= MOVES_RARE
            }),
        }
    }
}

/// The largest load, to a thousandth, at which a condition holds that all lower loads meet.
pub(super) fn load_where(subtables: u32, cells: u32, holds: impl Fn(&Fluid) -> bool) -> f64 {
    let load = |thousandths: u64| f64::from(cells) * thousandths as f64 / 1000.0;
    let most = (LOAD_MAX * 1000.0) as u64;
    let fails = |thousandths| !holds(&overflowing(subtables, cells, load(thousandths)));
    let first = least_from(1, most + 1, fails);
    (first - 1).max(1) as f64 / 1000.0
}

/// The least number from `from` to `most` that meets a condition which all larger ones meet too; if
/// none does, `most` or more.
pub(super) fn least_from(from: u64, most: u64, meets: impl Fn(u64) -> bool) -> u64 {
    let below = from - 1;
    below + least(most.saturating_sub(below).max(1), |above| meets(below + above))
}

/// The chance that a given fingerprint is one of the keys'.
fn fingerprint_used(shape: Shape, keys: u64) -> f64 {
    -(keys as f64 * (-1.0 / shape.fingerprints() as f64).ln_1p()).exp_m1()
}

/// One for each distinct fingerprint, or for each key if there are no counters.
fn cells_in_use(shape: Shape, keys: u64) -> f64 {
    if shape.counter == 0 {
        return keys as f64;
    }
    fingerprint_used(shape, keys) * shape.fingerprints() as f64
}

/// The steady state of buckets that take more keys than they have cells, as if nothing were refused.
fn overflowing(subtables: u32, cells: u32, load: f64) -> Fluid {
    Fluid::steady(subtables, load, cells + 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    const TARGETS: [(u64, f64); 8] = [
        (1, 0.5),
        (10, 1e-3),
        (1000, 0.3),
        (30_000, 1e-2),
        (1_000_000, 1e-3),
        (1_000_000, 1.5e-3),
        (30_000_000, 1e-6),
        (1 << 33, 1e-8),
    ];

    /// The layouts that `plan::sets` lists.
    const LAYOUTS: [(Prefer, u32); 3] =
        [(Prefer::Speed, 2), (Prefer::Memory, 2), (Prefer::Memory, 0)];

    #[test]
    fn plans_meet_the_target_and_a_bucket_less_would_not() {
        for (keys, false_positives) in TARGETS {
            for ((prefer, counter), growth) in LAYOUTS.into_iter().zip([0, 2, 3]) {
                for growth in [0, growth] {
                    let target = Target { prefer, growth, ..Target::new(keys, false_positives) };
                    let (Ok(shape), grown) = (shape(target, counter), keys << growth) else {
                        // Remainders of 32 bits are too short for such a rate after growth.
                        assert!(growth > 0 && keys > 1 << 24, "{target:?}");
                        continue;
                    };
                    let fails = |shape| {
                        rate(shape, grown) > false_positives
                            || counter_overflow(shape, grown, 1_000_000) > REFUSALS
                    };
                    assert!(!fails(shape) && shape.growths == growth);
                    let load = keys as f64 / shape.all_cells() as f64;
                    assert!(load <= LOAD_MAX || shape.buckets == 1, "{shape:?}");
                    if shape.buckets == 1 {
                        continue;
                    }
                    let less = Shape { buckets: shape.buckets - 1, ..shape };
                    let frame = Frame { subtables: shape.subtables, cells: shape.cells, ..TIGHT };
                    let wish = Wish::new(target, counter).unwrap();
                    let fast = Frame { room: Room::MovesAreRare, ..frame };
                    let rooms = [frame, fast].map(|frame| frame.buckets_for_load(&wish));
                    assert!(fails(less) || rooms.contains(&shape.buckets), "{shape:?}");
                }
            }
        }
    }

    #[test]
    fn a_million_keys_at_one_in_a_thousand() {
        let target = Target::new(1_000_000, 0.001);
        let bits = |shape: Shape| shape.bytes() as f64 * 8.0 / 1e6;
        let load = |shape: Shape| 1e6 / shape.all_cells() as f64;
        let small = shape(target, 2).unwrap();
        assert!(bits(small) <= 17.0 && small.counter == 2 && small.width == 16, "{small:?}");
        let smallest = shape(target, 0).unwrap();
        assert!(bits(smallest) <= 15.0 && load(smallest) >= 0.95, "{smallest:?}");
        assert_eq!((smallest.counter, smallest.width), (0, 14));
        let fast = |false_positives| {
            shape(Target { false_positives, prefer: Prefer::Speed, ..target }, 2).unwrap()
        };
        let at_0_001 = fast(0.001);
        assert!(bits(at_0_001) <= 24.0 && overflow(at_0_001, 1_000_000) <= 1e-3, "{at_0_001:?}");
        // Two buckets of 32 bytes are the best for one in 700.
        let fast = fast(0.0015);
        assert!(bits(fast) <= 21.4 && overflow(fast, 1_000_000) <= 1e-6, "{fast:?}");
        assert_eq!((fast.cells, fast.width, fast.counter), (16, 16, 2));
    }

    #[test]
    fn impossible_targets_say_so() {
        let target = Target::new(100, 0.01);
        for (bad, counter) in [
            (Target { keys: 0, ..target }, 2),
            (Target { false_positives: 0.0, ..target }, 2),
            (Target { false_positives: 1e-11, ..target }, 2),
            (Target { growth: 31, ..target }, 2),
            (Target { growth: u32::MAX, ..target }, 2),
            (target, 5),
        ] {
            assert!(shape(bad, counter).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn copies_of_fingerprints_in_the_papers_table() {
        const PAPER: Shape = Shape {
            subtables: 4,
            buckets: 2048,
            cells: 8,
            width: 16,
            remainder: 14,
            counter: 2,
            moves: Moves::Never,
            growths: 0,
            grows: false,
        };
        const ELEMENTS: u64 = 49_152;
        const STEPS: u64 = 1 << 20;
        // 002.counter.four_share.trials: of 10,000 trials, those in which a counter reaches 4. While
        // the table fills, the n-th insertion meets four with the fourth power of n.
        let reached = |copies: u64| {
            let while_filling = ELEMENTS as f64 / copies as f64;
            (STEPS as f64 + while_filling) * copies_stored(PAPER, ELEMENTS, copies - 1)
        };
        assert_close(1e4 * reached(4), 5.556_858_693_87, 1e-3);
        // 002.counter.five_share.lifetime: overflows of a 2-bit counter in a trial.
        assert_close(reached(5), 2.030_102_963_17e-7, 1e-3);
        // Ours are more by a sixth: the largest remainder counts no further than three.
        let lifetime = counter_overflow(PAPER, ELEMENTS, STEPS);
        assert_close(lifetime / reached(5), 1.157, 1e-2);
        // 002.counter.five_share.true: five of the elements share a fingerprint at one moment.
        let groups = PAPER.fingerprints() as f64 * copies_stored(PAPER, ELEMENTS, 5);
        assert_close(groups, 1.885_544_547_84e-9, 1e-6);
        assert_eq!(copies_stored(PAPER, 3, 4), 0.0);
        assert_eq!(copies_stored(PAPER, ELEMENTS, 0), 1.0);
    }
}
