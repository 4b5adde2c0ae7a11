//! Batches on the fast shapes: two subtables whose buckets fill a cache line or half of one.
//!
//! A loop prefetches the two buckets of later flows before it reads those of earlier ones, so that
//! cache misses overlap. It keeps the table and a few numbers in registers and handles the common
//! case. All other cases take the steps of single operations.

use super::{
    Body, Follow, Isa, Layout, Lookup, Next, Refused, State, marks::Marks, tally::Tally,
    with_fast_layout,
};
use crate::{
    Digest,
    left::{CELLS_MOST, Cut, Ways},
    member::batch::{CHUNK, DEEP, GROUP, Hashes},
    probe::{self, BASE, Kernel},
};

/// Runs a body with the layout and the bucket size of a fast shape, or the other body.
macro_rules! with_pairs {
    ($shape:expr, |$layout:ident, $N:ident| $body:expr, $other:expr) => {{
        use $crate::cells::bucket::{Lanes, Split};
        let Shape { subtables, width, cells, placing, reinsert, .. } = $shape;
        match (subtables, width, cells) {
            _ if placing != Placing::Permuted || reinsert => $other,
            (2, 16, 32) => {
                const $N: usize = 64;
                let $layout = Lanes::<u16, $N>::NEW;
                $body
            }
            (2, 24, 10) => {
                const $N: usize = 32;
                let $layout = Split::<10, $N, 16>;
                $body
            }
            (2, 24, 21) => {
                const $N: usize = 64;
                let $layout = Split::<21, $N, 32>;
                $body
            }
            (2, 32, 16) => {
                const $N: usize = 64;
                let $layout = Lanes::<u32, $N>::NEW;
                $body
            }
            _ => $other,
        }
    }};
}
pub(super) use with_pairs;

/// The number of flows by which acting follows prefetching in tables beyond the caches. It hides
/// the latency of memory.
const LAG: usize = 16;

/// The two buckets of a flow.
#[derive(Clone, Copy, Default)]
struct Pair {
    /// The buckets, numbered through all subtables.
    buckets: [usize; 2],
    /// The value of the flow's cell in either bucket, for low bits of zero. A cell stores the
    /// complement, so these bits are ones here.
    cells: [u64; 2],
}

/// Computes the pair of a digest. A loop keeps these copies in registers.
struct Finder {
    ways: Ways<2>,
    cut: Cut,
}

impl Finder {
    #[inline(always)]
    fn of(map: &Body) -> Self {
        Finder { ways: map.table.ways(), cut: map.table.cut() }
    }

    /// Finds the buckets of a flow and prefetches them.
    #[inline(always)]
    fn approach<const N: usize>(&self, table: &[[u8; N]], digest: Digest) -> Pair {
        let pair = self.find(digest);
        probe::prefetch(table.as_flattened(), pair.buckets[0] * N);
        probe::prefetch(table.as_flattened(), pair.buckets[1] * N);
        pair
    }

    /// Finds the buckets of a flow.
    #[inline(always)]
    fn find(&self, digest: Digest) -> Pair {
        let [left, right] = self.ways.images_of(self.ways.fingerprint_of(digest));
        Pair {
            buckets: [self.cut.bucket(0, left), self.cut.bucket(1, right)],
            cells: [self.cut.value(left), self.cut.value(right)],
        }
    }
}

/// The progress of a batch, and the flows whose buckets are being prefetched.
struct Way<'a> {
    keys: &'a dyn Hashes,
    /// Digests and pairs of the last flows that were prefetched.
    digests: [Digest; CHUNK],
    pairs: [Pair; CHUNK],
    /// The number of flows prefetched, and of those acted on.
    asked: usize,
    acted: usize,
    /// The number of flows hashed and prefetched at a time, and how many of them acting is behind.
    group: usize,
    lag: usize,
}

impl<'a> Way<'a> {
    /// The start of a batch on a table of `bytes` bytes.
    #[inline(always)]
    fn start(keys: &'a dyn Hashes, bytes: usize) -> Self {
        let (group, lag) = if bytes < DEEP { (CHUNK, 0) } else { (GROUP, LAG) };
        let (digests, pairs) = ([Digest(0); CHUNK], [Pair::default(); CHUNK]);
        Way { keys, digests, pairs, asked: 0, acted: 0, group, lag }
    }

    /// Acts on the remaining flows, in order, each some time after its buckets were prefetched.
    /// Stops after a flow for which `act` returned `false`, and then returns `false`.
    #[inline(always)]
    fn go<const N: usize>(&mut self, finder: &Finder, act: &mut impl Act<N>) -> bool {
        let len = self.keys.len();
        loop {
            let until = if self.asked == len { len } else { self.asked.saturating_sub(self.lag) };
            while self.acted < until {
                let key = self.acted;
                self.acted += 1;
                if !act.act(key, &self.pairs[key % CHUNK]) {
                    return false;
                }
            }
            if self.acted == len {
                return true;
            }
            let first = self.asked % CHUNK;
            let group = self.group.min(len - self.asked);
            let digests = &mut self.digests[first..first + group];
            self.keys.hash(self.asked, digests);
            for (digest, pair) in digests.iter().zip(&mut self.pairs[first..]) {
                *pair = finder.approach(act.table(), *digest);
            }
            self.asked += group;
        }
    }

    /// The digest of a flow that was prefetched recently.
    fn digest(&self, key: usize) -> Digest {
        self.digests[key % CHUNK]
    }

    /// Finds the buckets of prefetched flows again, in a table that may have grown.
    #[cold]
    #[inline(never)]
    fn find_anew(&mut self, map: &Body) {
        let finder = Finder::of(map);
        for key in self.acted..self.asked {
            self.pairs[key % CHUNK] = finder.find(self.digest(key));
        }
    }
}

/// The action on a flow whose buckets were prefetched.
trait Act<const N: usize> {
    fn table(&self) -> &[[u8; N]];

    /// Acts on the flow of this index. Returns `false` if it must take the slow path.
    fn act(&mut self, key: usize, pair: &Pair) -> bool;
}

/// The flows that may be in the stash: one bit for each first bucket, modulo 64. A full table has a
/// full stash, and most flows then need not be compared with it.
#[derive(Clone, Copy)]
struct Stashed(u64);

impl Stashed {
    #[inline(always)]
    fn of(stash: &[(u64, u64)], cut: &Cut) -> Self {
        // The first permutation is the identity.
        let bit = |&(fingerprint, _): &(u64, u64)| 1 << (cut.bucket(0, fingerprint) % 64);
        Stashed(stash.iter().map(bit).fold(0, |all, bit: u64| all | bit))
    }

    #[inline(always)]
    fn may_hold(self, pair: &Pair) -> bool {
        self.0 >> (pair.buckets[0] % 64) & 1 == 1
    }
}

/// The cells of the two buckets that hold the flow's remainder, as a mask. Those of the second
/// bucket start at bit [`CELLS_MOST`]. If the remainder is the largest, empty cells match, too.
#[inline(always)]
fn matches<I: Isa, L: Layout, const N: usize>(
    isa: I,
    layout: L,
    table: &[[u8; N]],
    pair: &Pair,
    low_mask: u64,
) -> u64 {
    let left = layout.matches(isa, &table[pair.buckets[0]], pair.cells[0], low_mask);
    let right = layout.matches(isa, &table[pair.buckets[1]], pair.cells[1], low_mask);
    left | right << CELLS_MOST
}

/// Looks up every flow.
pub(super) struct Ask<'a, L, const N: usize> {
    pub(super) layout: L,
    pub(super) map: &'a Body,
    pub(super) keys: &'a dyn Hashes,
    pub(super) answers: &'a mut [Lookup<State>],
}

impl<L: Layout, const N: usize> Kernel for Ask<'_, L, N> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Ask { layout, map, keys, answers } = self;
        let table = map.table.memory.bytes().as_chunks::<N>().0;
        let (low_mask, tally) = (map.table.form.low_mask(), map.tally);
        let finder = Finder::of(map);
        let stashed = Stashed::of(&map.stash, &finder.cut);
        let mut asking = Asking { isa, layout, table, low_mask, stashed, tally, answers };
        let mut way = Way::start(keys, table.as_flattened().len());
        while !way.go(&finder, &mut asking) {
            let key = way.acted - 1;
            asking.answers[key] = map.lookup_digest(way.digest(key));
        }
    }
}

struct Asking<'a, I, L, const N: usize> {
    isa: I,
    layout: L,
    table: &'a [[u8; N]],
    low_mask: u64,
    stashed: Stashed,
    tally: Tally,
    answers: &'a mut [Lookup<State>],
}

impl<I: Isa, L: Layout, const N: usize> Act<N> for Asking<'_, I, L, N> {
    #[inline(always)]
    fn table(&self) -> &[[u8; N]] {
        self.table
    }

    #[inline(always)]
    fn act(&mut self, key: usize, pair: &Pair) -> bool {
        let found = matches(self.isa, self.layout, self.table, pair, self.low_mask);
        let first = found.trailing_zeros();
        let (place, cell) = ((first as usize / CELLS_MOST) & 1, first % CELLS_MOST as u32);
        let value = self.layout.read(&self.table[pair.buckets[place]], cell);
        self.answers[key] = if found == 0 && !self.stashed.may_hold(pair) {
            Lookup::Absent
        } else if found.is_power_of_two() && value != 0 {
            self.tally.read(value ^ pair.cells[place])
        } else {
            return false;
        };
        true
    }
}

/// Changes the state of every flow.
pub(super) struct Change<'a, F, L, const N: usize> {
    pub(super) layout: L,
    pub(super) map: &'a mut Body,
    pub(super) keys: &'a dyn Hashes,
    pub(super) follow: &'a mut F,
}

impl<F: Follow, L: Layout, const N: usize> Kernel for Change<'_, F, L, N> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Change { layout, map, keys, follow } = self;
        let mut way = Way::start(keys, map.table.memory.bytes().len());
        loop {
            let finder = Finder::of(map);
            let full = if map.may_make_room() { None } else { Some(map.full()) };
            let Body { table, stash, tally, marks, .. } = &mut *map;
            let mut changing = Changing {
                isa,
                layout,
                low_mask: table.form.low_mask(),
                table: table.memory.bytes_mut().as_chunks_mut::<N>().0,
                cells: table.form.all_cells(),
                occupied: &mut table.occupied,
                changes: &mut table.changes,
                needed: &mut table.moved.needed,
                full,
                stashed: Stashed::of(stash, &finder.cut),
                stash,
                cut: finder.cut,
                tally,
                marks,
                follow: &mut *follow,
                next: None,
            };
            if way.go(&finder, &mut changing) {
                return;
            }
            let (key, next) = (way.acted - 1, changing.next);
            map.change_slowly(way.digest(key), key, next, follow);
            way.find_anew(map);
        }
    }
}

impl Body {
    /// A transition to `next`, if it is already chosen, otherwise to the choice of `follow`.
    #[cold]
    #[inline(never)]
    fn change_slowly(
        &mut self,
        digest: Digest,
        key: usize,
        next: Option<Next<State>>,
        follow: &mut impl Follow,
    ) {
        with_fast_layout!(self.shape, |layout, D| {
            let places = self.table.places::<D>(digest);
            self.follow_at(BASE, layout, &places, key, next, follow);
        });
    }
}

struct Changing<'a, F, I, L, const N: usize> {
    isa: I,
    layout: L,
    table: &'a mut [[u8; N]],
    low_mask: u64,
    occupied: &'a mut u64,
    /// The number of cells of the whole table.
    cells: u64,
    changes: &'a mut u64,
    needed: &'a mut u64,
    /// The refusal of a flow whose cells are all taken, if no search could make room for it.
    full: Option<Refused>,
    stashed: Stashed,
    stash: &'a [(u64, u64)],
    cut: Cut,
    tally: &'a mut Tally,
    marks: &'a mut Marks,
    follow: &'a mut F,
    /// The next state of a flow that takes the slow path, if it is already chosen.
    next: Option<Next<State>>,
}

impl<F: Follow, I: Isa, L: Layout, const N: usize> Act<N> for Changing<'_, F, I, L, N> {
    #[inline(always)]
    fn table(&self) -> &[[u8; N]] {
        self.table
    }

    #[inline(always)]
    fn act(&mut self, key: usize, pair: &Pair) -> bool {
        let found = matches(self.isa, self.layout, self.table, pair, self.low_mask);
        if found == 0 {
            return self.absent(key, pair);
        }
        let first = found.trailing_zeros();
        let (place, cell) = ((first as usize / CELLS_MOST) & 1, first % CELLS_MOST as u32);
        let bucket = &mut self.table[pair.buckets[place]];
        let value = self.layout.read(bucket, cell);
        if !found.is_power_of_two() || value == 0 {
            return self.leave(None);
        }
        let low = value ^ pair.cells[place];
        let now = self.tally.read(low);
        let next = self.follow.next(key, now);
        let done = match self.tally.change(low, next) {
            Ok(Some(low)) => {
                self.layout.write(bucket, cell, pair.cells[place] ^ low);
                self.marks.mark(pair.buckets[place], low >> 1);
                Ok(())
            }
            Ok(None) => {
                self.layout.write(bucket, cell, 0);
                *self.occupied -= 1;
                self.changed();
                Ok(())
            }
            Err(why) => Err(why),
        };
        self.follow.done(key, now, next, done);
        true
    }
}

impl<F: Follow, I: Isa, L: Layout, const N: usize> Changing<'_, F, I, L, N> {
    /// Handles a flow without a cell.
    #[inline(always)]
    fn absent(&mut self, key: usize, pair: &Pair) -> bool {
        if self.stashed.may_hold(pair) && self.is_stashed(pair) {
            return self.leave(None);
        }
        let next = self.follow.next(key, Lookup::Absent);
        let done = match next {
            Next::Insert(state) | Next::Set(state) => {
                if let Err(why) = self.tally.known(state) {
                    Err(why)
                } else {
                    let [left, right] = self.empty(pair);
                    match (left | right, self.full) {
                        (0, None) => return self.leave(Some(next)),
                        (0, Some(why)) => {
                            *self.needed += 1;
                            Err(why)
                        }
                        _ => {
                            self.enter(pair, [left, right], state);
                            Ok(())
                        }
                    }
                }
            }
            Next::Stay => Ok(()),
            Next::Modify(_) | Next::Forget => Err(Refused::NotStored),
        };
        self.follow.done(key, Lookup::Absent, next, done);
        true
    }

    /// The empty cells of both buckets.
    #[inline(always)]
    fn empty(&self, pair: &Pair) -> [u64; 2] {
        if *self.occupied == self.cells {
            return [0, 0];
        }
        pair.buckets.map(|bucket| self.layout.matches(self.isa, &self.table[bucket], 0, 0))
    }

    /// Stores a flow in the emptier bucket, ties to the left.
    #[inline(always)]
    fn enter(&mut self, pair: &Pair, empty: [u64; 2], state: State) {
        let place = usize::from(empty[1].count_ones() > empty[0].count_ones());
        let cell = empty[place].trailing_zeros();
        let value = pair.cells[place] ^ u64::from(state) << 1;
        self.layout.write(&mut self.table[pair.buckets[place]], cell, value);
        self.marks.mark(pair.buckets[place], state.into());
        *self.occupied += 1;
        self.tally.flows += 1;
        self.changed();
    }

    /// Records that a cell was taken or freed. This earns tokens, so the next flow without room may
    /// search.
    #[inline(always)]
    fn changed(&mut self) {
        *self.changes += 1;
        self.full = None;
    }

    #[cold]
    #[inline(never)]
    fn is_stashed(&self, pair: &Pair) -> bool {
        // The first permutation is the identity.
        let fingerprint = self.cut.image(pair.buckets[0], pair.cells[0]);
        self.stash.iter().any(|&(stashed, _)| stashed == fingerprint)
    }

    /// Passes the flow to the slow path.
    #[inline(always)]
    fn leave(&mut self, next: Option<Next<State>>) -> bool {
        self.next = next;
        false
    }
}
