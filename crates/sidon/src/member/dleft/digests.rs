//! Operations on keys, single or in batches, compiled once.
//!
//! ```text
//! digest --> fingerprint --> permuted fingerprints --> prefetch buckets ...... read and write
//! ```
//! A batch hashes a group of keys and runs the first steps for it. Then it runs the last steps for
//! an earlier group, or for the same one.

use super::{
    Body,
    one::{Entered, Left, Look},
};
use crate::{
    Digest, Refused,
    cells::bucket::Layout,
    left::ANY,
    member::batch::{DEEP, GROUP, Groups, Hashes, NEAR, Pace, by_groups},
    probe::{self, BASE, Isa, Kernel},
};

/// Runs a body with the layout of a shape and its number of subtables as constants, for shapes that
/// have specialised code.
macro_rules! with_shape {
    ($shape:expr, |$layout:ident, $D:ident| $body:expr) => {{
        use crate::{
            cells::bucket::{Eights, Lanes, Odd},
            probe::Eight,
        };
        macro_rules! with {
            ($subtables:expr, $of:expr) => {{
                const $D: usize = $subtables;
                let $layout = $of;
                $body
            }};
        }
        match ($shape.subtables, $shape.width, $shape.cells) {
            (2, 8, 16) => with!(2, Lanes::<u8, 16>::NEW),
            (2, 8, 32) => with!(2, Lanes::<u8, 32>::NEW),
            (2, 16, 8) => with!(2, Lanes::<u16, 16>::NEW),
            (2, 16, 16) => with!(2, Lanes::<u16, 32>::NEW),
            (2, 16, 32) => with!(2, Lanes::<u16, 64>::NEW),
            (2, 32, 8) => with!(2, Lanes::<u32, 32>::NEW),
            (2, 32, 16) => with!(2, Lanes::<u32, 64>::NEW),
            (2, width @ ..=Eight::WIDTH_MOST, cells) => with!(2, Eights::new(cells, width)),
            (4, 16, 8) => with!(4, Lanes::<u16, 16>::NEW),
            (4, 16, 16) => with!(4, Lanes::<u16, 32>::NEW),
            (4, width @ ..=Eight::WIDTH_MOST, cells) => with!(4, Eights::new(cells, width)),
            (_, 16, 8) => with!(ANY, Lanes::<u16, 16>::NEW),
            (_, 16, 16) => with!(ANY, Lanes::<u16, 32>::NEW),
            (_, width @ ..=Eight::WIDTH_MOST, cells) => with!(ANY, Eights::new(cells, width)),
            (_, width, cells) => with!(ANY, Odd { cells, width }),
        }
    }};
}

impl Body {
    pub(super) fn insert_digest(&mut self, digest: Digest) -> Result<(), Refused> {
        self.insert_fingerprint(self.table.fingerprint_of(digest))
    }

    pub(super) fn insert_fingerprint(&mut self, fingerprint: u64) -> Result<(), Refused> {
        let entered = with_shape!(self.shape, |layout, D| {
            let images = self.table.images_of::<D>(fingerprint);
            let look = Look { isa: BASE, layout, cut: self.table.cut() };
            look.insert(self.table.memory.bytes_mut(), &images)
        });
        match entered {
            Entered::New => {
                self.table.occupied += 1;
                self.table.changes += 1;
            }
            Entered::Again => {}
            Entered::Overflow(ceiling) => return Err(Refused::Overflow { ceiling }),
            Entered::Full => return self.insert_by_moving(fingerprint),
        }
        self.stored += 1;
        Ok(())
    }

    /// Inserts a fingerprint whose cells are all taken, by moving or growing if that is allowed.
    #[cold]
    #[inline(never)]
    fn insert_by_moving(&mut self, fingerprint: u64) -> Result<(), Refused> {
        let places = self.table.places_of::<ANY>(fingerprint);
        if let Some(spot) = self.table.room_by_moving(self.table.any(), &places) {
            self.table.put(self.table.any(), &places, spot, 0);
            self.stored += 1;
            return Ok(());
        }
        let grows = self.shape.grows && self.table.doubling_makes_room(&places);
        if grows && self.grow().is_ok() {
            return self.insert_fingerprint(fingerprint);
        }
        Err(Refused::Full { stored: self.table.occupied, cells: self.shape.all_cells() })
    }

    /// The refusal of a key without a free cell. `None` if a search or growth may make room.
    fn full(&self) -> Option<Refused> {
        let grows = self.shape.grows && self.table.may_double();
        let full = Refused::Full { stored: self.table.occupied, cells: self.shape.all_cells() };
        (!grows && !self.table.may_search()).then_some(full)
    }

    pub(super) fn remove_digest(&mut self, digest: Digest) -> Result<(), Refused> {
        let left = with_shape!(self.shape, |layout, D| {
            let images = self.table.images_of::<D>(self.table.fingerprint_of(digest));
            let look = Look { isa: BASE, layout, cut: self.table.cut() };
            look.remove(self.table.memory.bytes_mut(), &images)
        });
        match left {
            Left::Last => {
                self.table.occupied -= 1;
                self.table.changes += 1;
            }
            Left::One => {}
            Left::None => return Err(Refused::NotStored),
        }
        self.stored -= 1;
        Ok(())
    }

    pub(super) fn contains_digest(&self, digest: Digest) -> bool {
        with_shape!(self.shape, |layout, D| {
            let images = self.table.images_of::<D>(self.table.fingerprint_of(digest));
            let look = Look { isa: BASE, layout, cut: self.table.cut() };
            look.contains(self.table.memory.bytes(), &images)
        })
    }

    pub(super) fn count_digest(&self, digest: Digest) -> u64 {
        with_shape!(self.shape, |layout, D| {
            let images = self.table.images_of::<D>(self.table.fingerprint_of(digest));
            let look = Look { isa: BASE, layout, cut: self.table.cut() };
            look.count(self.table.memory.bytes(), &images)
        })
    }

    pub(super) fn insert_keys(
        &mut self,
        keys: &dyn Hashes,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        with_shape!(self.shape, |layout, D| {
            let act = Enter { filter: self, refused };
            probe::dispatch(Walk::<_, _, D> { layout, keys, act });
        });
    }

    pub(super) fn remove_keys(
        &mut self,
        keys: &dyn Hashes,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        with_shape!(self.shape, |layout, D| {
            let act = Leave { filter: self, refused };
            probe::dispatch(Walk::<_, _, D> { layout, keys, act });
        });
    }

    pub(super) fn contains_keys(&self, keys: &dyn Hashes, found: &mut [bool]) {
        with_shape!(self.shape, |layout, D| {
            let act = Find { filter: self, found };
            probe::dispatch(Walk::<_, _, D> { layout, keys, act });
        });
    }

    pub(super) fn count_keys(&self, keys: &dyn Hashes, counts: &mut [u64]) {
        with_shape!(self.shape, |layout, D| {
            let act = Count { filter: self, counts };
            probe::dispatch(Walk::<_, _, D> { layout, keys, act });
        });
    }
}

/// The action on a group of keys whose buckets were prefetched. A trait instead of a closure, so
/// that it is inlined into the loop and compiled for its instruction set.
trait Act {
    fn filter(&self) -> &Body;
    /// Acts on keys from the one of this index on.
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        first: usize,
        images: &[[u64; D]],
    );
}

/// A loop over keys.
struct Walk<'a, L, A, const D: usize> {
    layout: L,
    keys: &'a dyn Hashes,
    act: A,
}

impl<L: Layout, A: Act, const D: usize> Kernel for Walk<'_, L, A, D> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let bytes = self.act.filter().table.memory.bytes().len();
        by_groups(isa, self.keys, bytes, self);
    }
}

impl<L: Layout, A: Act, const D: usize> Groups for Walk<'_, L, A, D> {
    const PACE: Pace = Pace { ask: GROUP, act: GROUP, lag: 2 * GROUP, from: DEEP };
    type Place = [u64; D];
    const NOWHERE: [u64; D] = [0; D];

    #[inline(always)]
    fn ask<I: Isa>(&mut self, isa: I, digests: &[Digest], images: &mut [[u64; D]]) {
        isa.apart(Approach { layout: self.layout, filter: self.act.filter(), digests, images });
    }

    #[inline(always)]
    fn act<I: Isa>(&mut self, isa: I, first: usize, images: &[[u64; D]]) {
        self.act.act(isa, self.layout, first, images);
    }
}

/// Computes the permuted fingerprints of a group of keys, and prefetches their buckets unless the
/// table is in the cache.
struct Approach<'a, L, const D: usize> {
    layout: L,
    filter: &'a Body,
    digests: &'a [Digest],
    images: &'a mut [[u64; D]],
}

impl<L: Layout, const D: usize> Kernel for Approach<'_, L, D> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        let table = &self.filter.table;
        let (ways, cut, bytes) = (table.ways::<D>(), table.cut(), table.memory.bytes());
        if bytes.len() <= NEAR {
            for (&digest, images) in self.digests.iter().zip(self.images) {
                *images = ways.images_of(ways.fingerprint_of(digest));
            }
            return;
        }
        for (&digest, images) in self.digests.iter().zip(self.images) {
            *images = ways.images_of(ways.fingerprint_of(digest));
            for (i, &image) in images[..cut.subtables::<D>()].iter().enumerate() {
                probe::prefetch(bytes, self.layout.offset(cut.bucket(i, image)));
            }
        }
    }
}

/// Looks up each key.
struct Find<'a> {
    filter: &'a Body,
    found: &'a mut [bool],
}

impl Act for Find<'_> {
    #[inline(always)]
    fn filter(&self) -> &Body {
        self.filter
    }

    #[inline(always)]
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        first: usize,
        images: &[[u64; D]],
    ) {
        let table = &self.filter.table;
        let (look, bytes) = (Look { isa, layout, cut: table.cut() }, table.memory.bytes());
        for (images, found) in images.iter().zip(&mut self.found[first..]) {
            *found = look.contains(bytes, images);
        }
    }
}

/// Counts the copies of each key.
struct Count<'a> {
    filter: &'a Body,
    counts: &'a mut [u64],
}

impl Act for Count<'_> {
    #[inline(always)]
    fn filter(&self) -> &Body {
        self.filter
    }

    #[inline(always)]
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        first: usize,
        images: &[[u64; D]],
    ) {
        let table = &self.filter.table;
        let (look, bytes) = (Look { isa, layout, cut: table.cut() }, table.memory.bytes());
        for (images, copies) in images.iter().zip(&mut self.counts[first..]) {
            *copies = look.count(bytes, images);
        }
    }
}

/// Inserts each key.
struct Enter<'a> {
    filter: &'a mut Body,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl Act for Enter<'_> {
    #[inline(always)]
    fn filter(&self) -> &Body {
        self.filter
    }

    #[inline(always)]
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        mut first: usize,
        mut images: &[[u64; D]],
    ) {
        while let Some((stopped, why)) = self.enter(isa, layout, first, images) {
            let why = match why {
                Entered::Overflow(ceiling) => Err(Refused::Overflow { ceiling }),
                // Cells may move or the table may grow, so the loop reads its shape again.
                _ => self.filter.insert_by_moving(images[stopped][0]),
            };
            if let Err(why) = why {
                (self.refused)(first + stopped, why);
            }
            (first, images) = (first + stopped + 1, &images[stopped + 1..]);
        }
    }
}

impl Enter<'_> {
    /// Inserts keys up to the first that needs a search or overflows, and returns its index and the
    /// reason. While no search can make room, keys without a free cell are refused on the way.
    #[inline(always)]
    fn enter<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        first: usize,
        images: &[[u64; D]],
    ) -> Option<(usize, Entered)> {
        let mut full = self.filter.full();
        let table = &mut self.filter.table;
        let (look, bytes) = (Look { isa, layout, cut: table.cut() }, table.memory.bytes_mut());
        let (mut again, mut refused, mut stopped) = (0, 0, None);
        for (i, images) in images.iter().enumerate() {
            match (look.insert(bytes, images), full) {
                // A cell that is taken earns tokens for a search.
                (Entered::New, _) => full = None,
                (Entered::Again, _) => again += 1,
                (Entered::Full, Some(why)) => {
                    refused += 1;
                    (self.refused)(first + i, why);
                }
                (why, _) => {
                    stopped = Some((i, why));
                    break;
                }
            }
        }
        let entered = stopped.as_ref().map_or(images.len(), |&(i, _)| i) as u64 - refused;
        table.occupied += entered - again;
        table.changes += entered - again;
        table.moved.needed += refused;
        self.filter.stored += entered;
        stopped
    }
}

/// Removes each key.
struct Leave<'a> {
    filter: &'a mut Body,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl Act for Leave<'_> {
    #[inline(always)]
    fn filter(&self) -> &Body {
        self.filter
    }

    #[inline(always)]
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        first: usize,
        images: &[[u64; D]],
    ) {
        let mut next = 0;
        while let Some(absent) = self.leave(isa, layout, &images[next..]) {
            (self.refused)(first + next + absent, Refused::NotStored);
            next += absent + 1;
        }
    }
}

impl Leave<'_> {
    /// Removes keys up to the first that is not stored, and returns its index.
    #[inline(always)]
    fn leave<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        images: &[[u64; D]],
    ) -> Option<usize> {
        let table = &mut self.filter.table;
        let (look, bytes) = (Look { isa, layout, cut: table.cut() }, table.memory.bytes_mut());
        let (mut others, mut stopped) = (0, None);
        for (i, images) in images.iter().enumerate() {
            match look.remove(bytes, images) {
                Left::Last => {}
                Left::One => others += 1,
                Left::None => {
                    stopped = Some(i);
                    break;
                }
            }
        }
        let left = stopped.unwrap_or(images.len()) as u64;
        table.occupied -= left - others;
        table.changes += left - others;
        self.filter.stored -= left;
        stopped
    }
}
