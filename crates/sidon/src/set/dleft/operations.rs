//! Insertions and removals of keys, single or in batches, compiled once.
//!
//! The d-left table finds the cell of a key or an empty one; here is what a filter writes to it. A
//! cell stores the complement of `remainder * 2^c + copies - 1`, so one more copy is one less in
//! the cell.

use super::Body;
use crate::{
    Digest, Refused,
    batch::{AnyKeys, Batch, Pace},
    bucket::{Layout, with_layout},
    dleft_table::{ANY, Addressing, Finder, Table, run_best},
    simd::{BASE, Isa},
};

/// The result of an insertion.
enum Entered {
    /// The key took an empty cell.
    New,
    /// The cell of the fingerprint counts one more copy.
    Again,
    /// The cell of the fingerprint is at this ceiling. Nothing has changed.
    Overflow(u64),
    /// All cells of the key are taken. Nothing has changed.
    Full,
}

/// The result of a removal.
enum Left {
    /// The cell is now empty.
    Last,
    /// The cell counts one copy less.
    One,
    /// No cell holds the fingerprint. Nothing has changed.
    None,
    /// The first cell that may hold the fingerprint is empty: the remainder is the largest. Nothing
    /// has changed.
    Unknown,
}

/// Adds one copy: in the cell of the fingerprint if it has one and cells count, otherwise in an
/// empty cell of its emptiest bucket. `addressing` is that of the table, of which the finder has a
/// copy.
#[inline(always)]
fn insert<I: Isa, L: Layout, const D: usize>(
    finder: &Finder<I, L, D>,
    addressing: &Addressing,
    table: &mut [u8],
    permuted: &[u64; D],
) -> Entered {
    let (alike, room) = finder.find_room(table, permuted);
    if alike
        && finder.addressing.low_mask != 0
        && let Some(entered) = insert_again(finder.layout, addressing, table, permuted)
    {
        return entered;
    }
    let Some(room) = room else { return Entered::Full };
    let bucket = finder.layout.bucket_mut(table, room.bucket);
    finder.layout.write(bucket, room.cell, room.value);
    Entered::New
}

/// Adds one copy in the cell of the fingerprint, if it has one. Takes no reference to the finder,
/// which would keep the caller from holding it in registers.
#[cold]
#[inline(never)]
fn insert_again<L: Layout, const D: usize>(
    layout: L,
    addressing: &Addressing,
    table: &mut [u8],
    permuted: &[u64; D],
) -> Option<Entered> {
    let finder = Finder { isa: BASE, layout, addressing: addressing.of::<D>() };
    let cell = finder.find_exactly(table, permuted)?;
    let ceiling = addressing.low_mask;
    // The largest remainder counts one copy less, because its last value would look empty.
    if addressing.low_bits(cell.value) == ceiling {
        return Some(Entered::Overflow(ceiling + 1));
    }
    if cell.value == 1 {
        return Some(Entered::Overflow(ceiling));
    }
    layout.write(layout.bucket_mut(table, cell.bucket), cell.cell, cell.value - 1);
    Some(Entered::Again)
}

/// Removes one copy from the first cell that holds the fingerprint.
#[inline(always)]
fn remove<I: Isa, L: Layout, const D: usize>(
    finder: &Finder<I, L, D>,
    table: &mut [u8],
    permuted: &[u64; D],
) -> Left {
    let Some((bucket, cell)) = finder.find_alike(table, permuted) else { return Left::None };
    let cells = finder.layout.bucket_mut(table, bucket);
    match finder.layout.read(cells, cell) {
        0 => Left::Unknown,
        value => remove_one(finder, cells, cell, value),
    }
}

/// Removes one copy from a cell of this value.
#[inline(always)]
fn remove_one<I: Isa, L: Layout, const D: usize>(
    finder: &Finder<I, L, D>,
    cells: &mut [u8],
    cell: u32,
    value: u64,
) -> Left {
    if finder.addressing.low_bits(value) == 0 {
        finder.layout.write(cells, cell, 0);
        return Left::Last;
    }
    write_fewer(finder.layout, cells, cell, value + 1);
    Left::One
}

/// Writes a cell. A separate function makes the compiler use a branch and not a selection, so that
/// zero is written in the common case without waiting for the value.
#[cold]
#[inline(never)]
fn write_fewer<L: Layout>(layout: L, cells: &mut [u8], cell: u32, value: u64) {
    layout.write(cells, cell, value);
}

impl Body {
    pub(super) fn insert_digest(&mut self, digest: Digest) -> Result<(), Refused> {
        self.insert_fingerprint(self.table.fingerprints.of_digest(digest))
    }

    pub(super) fn insert_fingerprint(&mut self, fingerprint: u64) -> Result<(), Refused> {
        let entered = with_layout!(self.shape, |layout, D| {
            let finder = self.table.finder::<_, _, D>(BASE, layout);
            let permuted: [u64; D] = self.table.fingerprints.permuted(fingerprint);
            let Table { addressing, memory, .. } = &mut self.table;
            insert(&finder, addressing, memory.bytes_mut(), &permuted)
        });
        if let Entered::New = entered {
            self.table.occupied += 1;
            self.table.changes += 1;
            self.stored += 1;
            return Ok(());
        }
        self.entered(entered, fingerprint)
    }

    /// Counts what an insertion did that took no empty cell, or makes room for it. A separate
    /// function, because a jump table in the caller costs 2 % of an insertion.
    #[cold]
    #[inline(never)]
    fn entered(&mut self, entered: Entered, fingerprint: u64) -> Result<(), Refused> {
        match entered {
            Entered::New | Entered::Again => {
                self.stored += 1;
                Ok(())
            }
            Entered::Overflow(ceiling) => Err(Refused::Overflow { ceiling }),
            Entered::Full => self.insert_by_moving(fingerprint),
        }
    }

    /// Inserts a fingerprint whose cells are all taken, by moving or growing if that is allowed.
    #[cold]
    #[inline(never)]
    fn insert_by_moving(&mut self, fingerprint: u64) -> Result<(), Refused> {
        let permuted: [u64; ANY] = self.table.fingerprints.permuted(fingerprint);
        if let Some(room) = self.table.room_by_moving(&permuted) {
            self.table.put(self.table.any(), room, 0);
            self.stored += 1;
            return Ok(());
        }
        let grows = self.shape.grows && self.table.doubling_makes_room(&permuted);
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
        let fingerprint = self.table.fingerprints.of_digest(digest);
        let left = with_layout!(self.shape, |layout, D| {
            let finder = self.table.finder::<_, _, D>(BASE, layout);
            let permuted: [u64; D] = self.table.fingerprints.permuted(fingerprint);
            remove(&finder, self.table.memory.bytes_mut(), &permuted)
        });
        self.left(left, fingerprint)
    }

    /// Counts what a removal did.
    #[inline(always)]
    fn left(&mut self, left: Left, fingerprint: u64) -> Result<(), Refused> {
        match left {
            Left::Last => {
                self.table.occupied -= 1;
                self.table.changes += 1;
            }
            Left::One => {}
            Left::None => return Err(Refused::NotStored),
            Left::Unknown => return self.remove_exactly(fingerprint),
        }
        self.stored -= 1;
        Ok(())
    }

    /// Removes one copy of a fingerprint with any remainder.
    #[cold]
    #[inline(never)]
    fn remove_exactly(&mut self, fingerprint: u64) -> Result<(), Refused> {
        let finder = self.table.finder::<_, _, ANY>(BASE, self.table.any());
        let permuted = self.table.fingerprints.permuted(fingerprint);
        let Some(cell) = finder.find_exactly(self.table.memory.bytes(), &permuted) else {
            return Err(Refused::NotStored);
        };
        let cells = finder.layout.bucket_mut(self.table.memory.bytes_mut(), cell.bucket);
        let left = remove_one(&finder, cells, cell.cell, cell.value);
        self.left(left, fingerprint)
    }

    pub(super) fn insert_keys(
        &mut self,
        keys: AnyKeys<'_>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let bytes = self.table.memory.bytes().len();
        with_layout!(self.shape, |layout, D| {
            run_best(keys, bytes, Insert::<_, D> { layout, filter: self, refused });
        });
    }

    pub(super) fn remove_keys(
        &mut self,
        keys: AnyKeys<'_>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let bytes = self.table.memory.bytes().len();
        with_layout!(self.shape, |layout, D| {
            run_best(keys, bytes, Remove::<_, D> { layout, filter: self, refused });
        });
    }
}

/// Inserts each key.
struct Insert<'a, L, const D: usize> {
    layout: L,
    filter: &'a mut Body,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl<L: Layout, const D: usize> Batch for Insert<'_, L, D> {
    const PACE: Pace = Pace::USUAL;
    type Position = [u64; D];
    const NOWHERE: [u64; D] = [0; D];

    #[inline(always)]
    fn locate<I: Isa>(&mut self, isa: I, digests: &[Digest], permuted: &mut [[u64; D]]) {
        self.filter.table.locate(isa, self.layout, digests, permuted);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, mut first: usize, mut permuted: &[[u64; D]]) {
        while let Some((stopped, why)) = self.insert(isa, first, permuted) {
            let why = match why {
                Entered::Overflow(ceiling) => Err(Refused::Overflow { ceiling }),
                // Cells may move or the table may grow, so the loop reads its shape again.
                _ => self.filter.insert_by_moving(permuted[stopped][0]),
            };
            if let Err(why) = why {
                (self.refused)(first + stopped, why);
            }
            (first, permuted) = (first + stopped + 1, &permuted[stopped + 1..]);
        }
    }
}

impl<L: Layout, const D: usize> Insert<'_, L, D> {
    /// Inserts keys up to the first that needs a search or overflows, and returns its index and the
    /// reason. While no search can make room, keys without a free cell are refused on the way.
    #[inline(always)]
    fn insert<I: Isa>(
        &mut self,
        isa: I,
        first: usize,
        permuted: &[[u64; D]],
    ) -> Option<(usize, Entered)> {
        let mut full = self.filter.full();
        let table = &mut self.filter.table;
        let finder = table.finder(isa, self.layout);
        let Table { addressing, memory, .. } = &mut *table;
        let bytes = memory.bytes_mut();
        let (mut again, mut refused, mut stopped) = (0, 0, None);
        for (i, permuted) in permuted.iter().enumerate() {
            match (insert(&finder, addressing, bytes, permuted), full) {
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
        let entered = stopped.as_ref().map_or(permuted.len(), |&(i, _)| i) as u64 - refused;
        table.occupied += entered - again;
        table.changes += entered - again;
        table.moved.needed += refused;
        self.filter.stored += entered;
        stopped
    }
}

/// Removes each key.
struct Remove<'a, L, const D: usize> {
    layout: L,
    filter: &'a mut Body,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl<L: Layout, const D: usize> Batch for Remove<'_, L, D> {
    const PACE: Pace = Pace::USUAL;
    type Position = [u64; D];
    const NOWHERE: [u64; D] = [0; D];

    #[inline(always)]
    fn locate<I: Isa>(&mut self, isa: I, digests: &[Digest], permuted: &mut [[u64; D]]) {
        self.filter.table.locate(isa, self.layout, digests, permuted);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, permuted: &[[u64; D]]) {
        let mut next = 0;
        while let Some((stopped, left)) = self.remove(isa, &permuted[next..]) {
            next += stopped;
            if let Err(why) = self.filter.left(left, permuted[next][0]) {
                (self.refused)(first + next, why);
            }
            next += 1;
        }
    }
}

impl<L: Layout, const D: usize> Remove<'_, L, D> {
    /// Removes keys up to the first with [`Left::None`] or [`Left::Unknown`]. Returns its index and
    /// the result.
    #[inline(always)]
    fn remove<I: Isa>(&mut self, isa: I, permuted: &[[u64; D]]) -> Option<(usize, Left)> {
        let table = &mut self.filter.table;
        let (finder, bytes) = (table.finder(isa, self.layout), table.memory.bytes_mut());
        let (mut others, mut stopped) = (0, None);
        for (i, permuted) in permuted.iter().enumerate() {
            match remove(&finder, bytes, permuted) {
                Left::Last => {}
                Left::One => others += 1,
                left => {
                    stopped = Some((i, left));
                    break;
                }
            }
        }
        let left = stopped.as_ref().map_or(permuted.len(), |&(i, _)| i) as u64;
        table.occupied -= left - others;
        table.changes += left - others;
        self.filter.stored -= left;
        stopped
    }
}
