//! d-left filters: how often they err, how often they are full, and the least memory for both.
//!
//! A stranger passes if it shares one of `M = buckets * 2^r` fingerprints with a member, so the
//! memory follows from how many keys a bucket can be trusted to take, over all `d` subtables:
//! ```text
//!   rate = keys / (buckets * 2^r)        bits a key = (r + c) / load
//!        = d * h * load / 2^r            load: cells in use, of d * h * buckets
//! ```
//! How high the load may go depends on what happens to a key whose cells are all taken. If it is
//! refused, [`Fluid`] says how often that is. If cells may move along a chain, no law is at hand and
//! the limit was measured: two subtables of eight cells, keys leaving at random as new ones arrive,
//! for a hundred times as many keys as are stored, the search seeing at most so many buckets:
//!
//! | load | refused of 10^7: 16 buckets | 64 | 256 | buckets full | insertions that move |
//! |---|---|---|---|---|---|
//! | 0.97 | 0 | 0 | 0 | 81 % | 65 % |
//! | 0.98 | 19 | 0 | 0 | 86 % | 74 % |
//! | 0.985 | 863 | 0 | 0 | 90 % | 80 % |
//! | 0.99 | 27,274 | 0 | 0 | 93 % | 86 % |
//! | 0.993 | 162,629 | 0 | 0 | 95 % | 90 % |
//!
//! More cells or more subtables go higher still: with 64 buckets seen, 2 x 16, 2 x 32, 3 x 8 and
//! 4 x 8 refused nothing at 0.996. A search that sees 256 full buckets has looked into eight times
//! as many, and fails only if all of those are full. Plans stop at 0.955 for the time it takes, far
//! from the limit. Small tables differ: there, all keys may happen to want the same few buckets.
//! Of a hundred cells with none to spare one key in twenty is refused, and about fifty times fewer
//! with every four more; plans add 24. Bonomi et al., ESA 2006, sections 3 to 5.

use super::{Fluid, Target, bloom::least, ln_factorial};
use crate::{
    Infeasible,
    hash::permute::MODULUS_MOST,
    member::{
        Moves,
        dleft::{COUNTER_MOST, Shape},
    },
};

/// What a d-left filter should hold, how rarely it may err, and how rarely it may refuse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Left {
    /// How many keys are stored at a time, at the most.
    pub keys: u64,
    /// The share of strangers that may pass, above 0 and below 1.
    pub false_positives: f64,
    /// How many of a million insertions may be refused because all cells are taken, on average,
    /// while keys come and go; and how many because a counter is at its ceiling.
    pub refusals: f64,
    /// The least bits of a counter. With 0 there is none, and each copy takes a cell of its own.
    pub counter: u32,
    /// What happens when all cells of a key are taken.
    pub moves: Moves,
}

impl From<Target> for Left {
    /// Counters of two bits or more, a search for moves, a refusal in 10^12 insertions.
    fn from(target: Target) -> Self {
        let Target { keys, false_positives } = target;
        Left { keys, false_positives, refusals: REFUSALS, counter: 2, moves: SEARCH }
    }
}

const REFUSALS: f64 = 1e-6;
const SEARCH: Moves = Moves::Search(256);

/// The false-positive rate of a table that holds `keys` keys; 1 for a shape that cannot be built.
pub fn dleft_rate(shape: Shape, keys: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    // The chance that a given fingerprint is no member's.
    let used = fingerprint_used(shape, keys);
    if shape.counter > 0 {
        return used;
    }
    // Without counters a share q of the fingerprints is passed over for the next, which so are
    // w times as likely, for members and strangers alike: the mean over w, geometric with q.
    let q = f64::from(shape.subtables) / 2f64.powi((shape.remainder - shape.growths) as i32);
    let free = 1.0 - used;
    used * (1.0 - q * q * free) / (1.0 - q * free).powi(2)
}

/// The chance that an insertion finds all its cells taken, while `keys` keys are stored and random
/// ones leave as new ones arrive. This is the share that is refused under [`Moves::Never`]; 1 for a
/// shape that cannot be built.
pub fn dleft_overflow(shape: Shape, keys: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    let buckets = f64::from(shape.subtables) * shape.buckets as f64;
    let load = cells_in_use(shape, keys) / buckets;
    overflowing(shape.subtables, shape.cells, load).overflow_chance(shape.cells)
}

/// The chance that an insertion finds `copies` copies of its fingerprint, or more, among `keys`:
/// the expected number of such groups of keys, which is hardly more while it is small. 1 for a shape
/// that cannot be built.
pub fn dleft_copies(shape: Shape, keys: u64, copies: u64) -> f64 {
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
pub fn dleft_counter_overflow(shape: Shape, keys: u64, insertions: u64) -> f64 {
    if shape.counter == 0 {
        return 0.0;
    }
    if shape.check().is_err() {
        return insertions as f64;
    }
    let ceiling = shape.ceiling();
    let [full, nearly] = [ceiling, ceiling - 1].map(|copies| dleft_copies(shape, keys, copies));
    // The largest remainder tops out one copy lower.
    let largest = 0.5f64.powi(shape.remainder as i32);
    insertions as f64 * (full + largest * nearly)
}

/// The smallest table for this wish: 2 to 4 subtables, any number of cells, any width.
pub fn dleft(wish: Left) -> Result<Shape, Infeasible> {
    let frames = (2..=4).flat_map(|subtables| {
        let frame = move |cells| Frame { subtables, cells, width: None, room: Room::Least };
        [8, 16, 32].map(frame)
    });
    smallest_of(&wish, frames)
}

/// The fast layout: two subtables, buckets of at most 32 bytes that one comparison reads, and so
/// much room that moves are needed for less than one in a thousand insertions.
pub fn dleft_fast(target: Target) -> Result<Shape, Infeasible> {
    let layouts = [(8, 16), (8, 32), (16, 8), (16, 16), (32, 8)];
    let frames = layouts.map(|(width, cells)| {
        let room = Room::MovesAreRare;
        Frame { subtables: 2, cells, width: Some(width), room }
    });
    smallest_of(&target.into(), frames)
}

/// The smallest table that counts the copies of a key in one cell: two subtables of eight cells of
/// any width, filled to 97 per cent by moving.
pub fn dleft_small(target: Target) -> Result<Shape, Infeasible> {
    smallest_of(&target.into(), [TIGHT])
}

/// The smallest table: the same without counters, so that each copy of a key takes a cell, and no
/// more than sixteen copies find one.
pub fn dleft_smallest(target: Target) -> Result<Shape, Infeasible> {
    smallest_of(&Left { counter: 0, ..target.into() }, [TIGHT])
}

const TIGHT: Frame = Frame { subtables: 2, cells: 8, width: None, room: Room::Least };

/// What is fixed before remainder, counter and buckets are chosen.
#[derive(Debug, Clone, Copy)]
struct Frame {
    subtables: u32,
    cells: u32,
    /// The bits of a cell, or as many as needed.
    width: Option<u32>,
    room: Room,
}

/// How much room to leave.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Room {
    /// As little as the refusals allow.
    Least,
    /// Enough for [`MOVES_RARE`].
    MovesAreRare,
}

/// A load that plans do not exceed, whatever the moves.
pub(super) const LOAD_MOST: f64 = 0.955;
/// The least buckets that a search must be allowed to look at for that load.
const SEARCH_LEAST: u32 = 64;
/// Cells to spare in any table of more than one bucket a subtable.
pub(super) const SPARE: f64 = 24.0;
/// The share of insertions that may need a move in the fast layout.
const MOVES_RARE: f64 = 1e-3;
/// The share of insertions that may find all cells taken where the fluid limit is relied on: it
/// lets buckets grow beyond their cells, which must remain an exception.
const OVERFLOW_MOST: f64 = 1e-2;
/// A table this many times as large as the keys need is no plan: the fingerprints are too short.
const SPARSE: u64 = 8;

fn smallest_of(wish: &Left, frames: impl IntoIterator<Item = Frame>) -> Result<Shape, Infeasible> {
    wish.check()?;
    let counters = if wish.counter == 0 { 0..=0 } else { wish.counter..=COUNTER_MOST };
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
    best.ok_or_else(|| {
        let (name, got) = ("false_positives", wish.false_positives);
        let least = f64::from(TIGHT.subtables * TIGHT.cells) / 2f64.powi(32 - wish.counter as i32);
        Infeasible::Rate { name, got, least: least / SPARSE as f64, most: 1.0 }
    })
}

impl Left {
    fn check(&self) -> Result<(), Infeasible> {
        Target { keys: self.keys, false_positives: self.false_positives }.check()?;
        Infeasible::unless_within("counter", self.counter.into(), 0, COUNTER_MOST.into())?;
        if let Moves::Search(limit) = self.moves {
            let most = Moves::SEARCH_MOST.into();
            Infeasible::unless_within("search limit", limit.into(), 1, most)?;
        }
        if !(self.refusals > 0.0 && self.refusals <= 1e6) {
            let (name, got) = ("refusals", self.refusals);
            return Err(Infeasible::Rate { name, got, least: f64::MIN_POSITIVE, most: 1e6 });
        }
        Ok(())
    }
}

impl Frame {
    /// The shapes that keep to the wish, one for each remainder.
    fn shapes(
        self,
        wish: &Left,
        counter: u32,
        load_buckets: u64,
    ) -> impl Iterator<Item = Shape> + '_ {
        let widths = self.width.map_or(5..=32, |width| width..=width);
        // What DLeft asks for: a bit of remainder, or four where some are passed over.
        let least = if counter == 0 { 4 } else { 1 };
        widths.filter(move |width| width - counter >= least).filter_map(move |width| {
            let remainder = width - counter;
            let shape = |buckets| Shape {
                subtables: self.subtables,
                buckets,
                cells: self.cells,
                width,
                remainder,
                counter,
                moves: wish.moves,
                growths: 0,
                grows: false,
            };
            let meets = |&shape: &Shape| {
                dleft_rate(shape, wish.keys) <= wish.false_positives
                    && dleft_counter_overflow(shape, wish.keys, 1_000_000) <= wish.refusals
            };
            let most = load_buckets.saturating_mul(SPARSE).min(MODULUS_MOST >> remainder);
            let buckets = least_from(load_buckets, most, |buckets| meets(&shape(buckets)));
            Some(shape(buckets)).filter(|shape| buckets <= most && meets(shape))
        })
    }

    /// The buckets a subtable that leave enough room for the keys.
    fn buckets_for_load(self, wish: &Left) -> u64 {
        let all = self.subtables * self.cells;
        if wish.keys <= all.into() {
            // Every cell is any key's.
            return 1;
        }
        let needed = wish.keys as f64 / self.load(wish);
        let search = matches!(wish.moves, Moves::Search(SEARCH_LEAST..));
        // Where nothing moves, chance plays in all of a table: some deviations of its own.
        let spare = if search { SPARE } else { SPARE + 2.0 * needed.sqrt() };
        ((needed + spare) / f64::from(all)).ceil() as u64
    }

    /// The share of cells that may be in use in a large table.
    fn load(self, wish: &Left) -> f64 {
        if self.room == Room::MovesAreRare {
            return self.load_where(|fluid| fluid.overflow_chance(self.cells) <= MOVES_RARE);
        }
        let refusals = wish.refusals / 1e6;
        match wish.moves {
            Moves::Search(SEARCH_LEAST..) => LOAD_MOST,
            Moves::Never => self.load_where(|fluid| {
                fluid.overflow_chance(self.cells) <= refusals.min(OVERFLOW_MOST)
            }),
            // A short search finds at least what the first subtable offers.
            Moves::First | Moves::Search(_) => self.load_where(|fluid| {
                let full = fluid.overflow_chance(self.cells);
                // None of the bucket's cells has room in any of its other buckets.
                let others = 1..self.subtables;
                let stuck: f64 = others.map(|i| fluid.at_least_in(i, self.cells)).product();
                full <= OVERFLOW_MOST && full * stuck.powi(self.cells as i32) <= refusals
            }),
        }
    }

    fn load_where(self, holds: impl Fn(&Fluid) -> bool) -> f64 {
        load_where(self.subtables, self.cells, holds)
    }
}

/// The largest load, to a thousandth, at which a condition holds that all lower loads meet.
pub(super) fn load_where(subtables: u32, cells: u32, holds: impl Fn(&Fluid) -> bool) -> f64 {
    let load = |thousandths: u64| f64::from(cells) * thousandths as f64 / 1000.0;
    let most = (LOAD_MOST * 1000.0) as u64;
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

    fn plans() -> [fn(Target) -> Result<Shape, Infeasible>; 4] {
        [dleft_fast, dleft_small, dleft_smallest, |target| {
            dleft(Left { moves: Moves::Never, ..target.into() })
        }]
    }

    #[test]
    fn plans_meet_the_target_and_a_bucket_less_would_not() {
        for (keys, false_positives) in TARGETS {
            let target = Target { keys, false_positives };
            for plan in plans() {
                let shape = plan(target).unwrap();
                assert!(dleft_rate(shape, keys) <= false_positives);
                assert!(dleft_counter_overflow(shape, keys, 1_000_000) <= REFUSALS);
                let load = keys as f64 / shape.all_cells() as f64;
                assert!(load <= LOAD_MOST || shape.buckets == 1, "{shape:?}");
                if shape.buckets == 1 {
                    continue;
                }
                let less = Shape { buckets: shape.buckets - 1, ..shape };
                let frame = Frame { width: Some(shape.width), ..TIGHT };
                let frame = Frame { subtables: shape.subtables, cells: shape.cells, ..frame };
                let wish = Left { moves: shape.moves, ..target.into() };
                let fast = Frame { room: Room::MovesAreRare, ..frame };
                let rooms = [frame, fast].map(|frame| frame.buckets_for_load(&wish));
                let fails = dleft_rate(less, keys) > false_positives
                    || dleft_counter_overflow(less, keys, 1_000_000) > REFUSALS;
                assert!(fails || rooms.contains(&shape.buckets), "{shape:?}");
            }
        }
    }

    #[test]
    fn a_million_keys_at_one_in_a_thousand() {
        let target = Target { keys: 1_000_000, false_positives: 0.001 };
        let bits = |shape: Shape| shape.bytes() as f64 * 8.0 / 1e6;
        let load = |shape: Shape| 1e6 / shape.all_cells() as f64;
        let small = dleft_small(target).unwrap();
        assert!(bits(small) <= 17.0 && small.counter == 2 && small.width == 16, "{small:?}");
        let smallest = dleft_smallest(target).unwrap();
        assert!(bits(smallest) <= 15.0 && load(smallest) >= 0.95, "{smallest:?}");
        assert_eq!((smallest.counter, smallest.width), (0, 14));
        let fast = dleft_fast(target).unwrap();
        assert!(bits(fast) <= 24.0 && dleft_overflow(fast, target.keys) <= 1e-3, "{fast:?}");
        // Two buckets of 32 bytes are the best for one in 700.
        let fast = dleft_fast(Target { false_positives: 0.0015, ..target }).unwrap();
        assert!(bits(fast) <= 21.4 && dleft_overflow(fast, target.keys) <= 1e-6, "{fast:?}");
        assert_eq!((fast.cells, fast.width, fast.counter), (16, 16, 2));
    }

    #[test]
    fn more_freedom_takes_less_memory() {
        let wish = Left {
            keys: 49_152,
            false_positives: 24.0 / 16384.0,
            ..Left::from(Target { keys: 1, false_positives: 0.5 })
        };
        let bits = |wish| dleft(wish).unwrap().bytes() * 8;
        let never = Left { moves: Moves::Never, ..wish };
        let first = Left { moves: Moves::First, ..wish };
        // The paper's table for this target has 2^20 bits.
        assert!(bits(never) < 1 << 20);
        assert!(bits(first) < bits(never));
        assert!(bits(wish) < bits(first));
        assert!(bits(Left { counter: 0, ..wish }) < bits(wish));
        assert!(bits(Left { refusals: 100.0, ..never }) < bits(never));
        assert_eq!(bits(Left { moves: Moves::Search(1), ..wish }), bits(first));
    }

    #[test]
    fn impossible_wishes_say_so() {
        let wish = Left::from(Target { keys: 100, false_positives: 0.01 });
        for bad in [
            Left { keys: 0, ..wish },
            Left { false_positives: 0.0, ..wish },
            Left { false_positives: 1e-11, ..wish },
            Left { refusals: 0.0, ..wish },
            Left { refusals: f64::NAN, ..wish },
            Left { counter: 5, ..wish },
            Left { moves: Moves::Search(0), ..wish },
        ] {
            assert!(dleft(bad).is_err(), "{bad:?}");
        }
    }
}
