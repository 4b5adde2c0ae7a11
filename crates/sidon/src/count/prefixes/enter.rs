//! Additions: the way of an item from level to level, alone or in a batch.
//!
//! The levels do not depend on each other's later content. So a batch passes level 0 as a whole, then
//! the evicted items pass level 1, and so on. Each level gets the same items in the same order as if the
//! batch were added one by one. Its lines can be prefetched, because all its items are known.

use super::{
    LEVELS, Prefixes,
    bucket::{Bucket, Item, digest, parts, tag_of},
    prefix,
};
use crate::{
    Digest, Seed,
    batch::{self, Batch, Keys, Pace},
    key::spread,
    simd::{self, Isa, Kernel, LINE},
};
use std::net::IpAddr;

/// Items that pass a level together.
const GROUP: usize = 128;
/// Levels up to this many bytes stay in the cache and are not prefetched.
const NEAR: usize = 64 << 10;

/// The mutable parts of a table.
pub(super) struct Cells<'a, const A: usize> {
    pub(super) levels: [&'a mut [u8]; LEVELS],
    pub(super) buckets: [u64; LEVELS],
    pub(super) seed: Seed,
    pub(super) halvings: u64,
    /// The amounts that the last level evicted.
    pub(super) rest: &'a mut Item<A>,
}

impl<const A: usize> Cells<'_, A> {
    /// Adds one item at a level, and what is evicted at the next ones.
    pub(super) fn put(&mut self, from: usize, mut item: Item<A>) {
        for level in from..LEVELS {
            let digest = digest(item.key, self.seed);
            let bucket = spread::position(digest, 0, self.buckets[level]) as usize;
            let bytes =
                &mut self.levels[level][bucket * Bucket::<A>::BYTES..][..Bucket::<A>::BYTES];
            Bucket::<A>::catch_up(bytes, self.halvings);
            match Bucket::put(simd::BASE, bytes, tag_of(digest), &item) {
                Some(evicted) if level + 1 < LEVELS => item = evicted.above(level + 1),
                Some(evicted) => self.rest.join(&evicted),
                None => return,
            }
        }
    }
}

/// Adds the amounts of many addresses, in order.
pub(super) fn each<const A: usize>(
    cells: Cells<'_, A>,
    addresses: &[IpAddr],
    amounts: &[[u64; A]],
) {
    simd::dispatch(All { cells, addresses, amounts });
}

struct All<'a, const A: usize> {
    cells: Cells<'a, A>,
    addresses: &'a [IpAddr],
    amounts: &'a [[u64; A]],
}

impl<const A: usize> Kernel for All<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let (mut items, mut evicted) = ([Item::NONE; GROUP], [Item::NONE; GROUP]);
        let groups = self.addresses.chunks(GROUP).zip(self.amounts.chunks(GROUP));
        for (addresses, amounts) in groups {
            for ((item, &address), amounts) in items.iter_mut().zip(addresses).zip(amounts) {
                let key = prefix::number(address);
                *item = Item { key, kept: amounts.map(parts), rounding: 0 };
            }
            let mut len = addresses.len();
            for level in 0..LEVELS {
                let mut pass = Level {
                    bytes: &mut *self.cells.levels[level],
                    buckets: self.cells.buckets[level],
                    halvings: self.cells.halvings,
                    items: &items[..len],
                    evicted: &mut evicted,
                    len: 0,
                };
                pass_level(isa, self.cells.seed, &mut pass);
                len = pass.len;
                if len == 0 {
                    break;
                }
                for (item, evicted) in items.iter_mut().zip(&evicted[..len]) {
                    if level + 1 < LEVELS {
                        *item = evicted.above(level + 1);
                    } else {
                        self.cells.rest.join(evicted);
                    }
                }
            }
        }
    }
}

/// Adds the items of a group to a level. One function for all levels.
#[inline(always)]
fn pass_level<I: Isa, const A: usize>(isa: I, seed: Seed, level: &mut Level<'_, A>) {
    let (items, bytes) = (level.items, level.bytes.len());
    batch::run(isa, Keys::Typed(seed, items), bytes, level);
}

/// One level and the items to add.
struct Level<'a, const A: usize> {
    bytes: &'a mut [u8],
    buckets: u64,
    halvings: u64,
    items: &'a [Item<A>],
    evicted: &'a mut [Item<A>; GROUP],
    len: usize,
}

/// The offset of a bucket, and the tag of a prefix in it.
#[derive(Clone, Copy)]
struct Place {
    bucket: usize,
    tag: u16,
}

impl<const A: usize> Batch for &mut Level<'_, A> {
    const PACE: Pace = Pace { ahead: Some(8), ..Pace::USUAL };
    type Position = Place;
    const NOWHERE: Place = Place { bucket: 0, tag: 0 };

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], places: &mut [Place]) {
        let far = self.bytes.len() > NEAR;
        for (&digest, place) in digests.iter().zip(places) {
            let bucket = spread::position(digest, 0, self.buckets) as usize;
            *place = Place { bucket: bucket * Bucket::<A>::BYTES, tag: tag_of(digest) };
            if far {
                for line in (0..Bucket::<A>::HEAD).step_by(LINE) {
                    simd::prefetch(self.bytes, place.bucket + line);
                }
            }
        }
    }

    /// The tags of a bucket tell which entry is needed next.
    #[inline(always)]
    fn read_ahead<I: Isa>(&mut self, isa: I, _: usize, places: &mut [Place]) {
        if self.bytes.len() <= NEAR {
            return;
        }
        for place in places {
            let bytes = &self.bytes[place.bucket..];
            let tagged = Bucket::<A>::tagged(isa, bytes, place.tag);
            if tagged != 0 {
                let at = Bucket::<A>::entry_at(tagged.trailing_zeros() as usize);
                for line in (0..Bucket::<A>::STRIDE).step_by(LINE) {
                    simd::prefetch(self.bytes, place.bucket + at + line);
                }
            }
        }
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) {
        for (item, place) in self.items[first..].iter().zip(places) {
            let bytes = &mut self.bytes[place.bucket..][..Bucket::<A>::BYTES];
            Bucket::<A>::catch_up(bytes, self.halvings);
            if let Some(evicted) = Bucket::put(isa, bytes, place.tag, item) {
                self.evicted[self.len] = evicted;
                self.len += 1;
            }
        }
    }
}

impl<const A: usize> Prefixes<A> {
    /// The mutable parts of the table.
    pub(super) fn cells(&mut self) -> Cells<'_, A> {
        let Prefixes { shape, seed, levels, halvings, rest, .. } = self;
        let (buckets, seed, halvings) = (shape.buckets, *seed, *halvings);
        let levels = levels.each_mut().map(|level| level.bytes_mut());
        Cells { levels, buckets, seed, halvings, rest }
    }
}
