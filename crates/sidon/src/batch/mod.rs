//! Operations on many keys: hash them, prefetch their cells, and act on the cells later.
//!
//! A structure implements [`Batch`] for each operation, and [`run`] is the loop over the keys. While
//! memory serves the cells of some keys, the loop hashes the next ones and acts on earlier ones.
//!
//! ```text
//! keys    | 0 .. 7 | 8 .. 15 | 16 .. 23 | 24 .. 31 | 32 ..
//!           applied   read ahead             located            Pace { locate: 8, lag: 16, .. }
//! ```
//! [`Pace`] holds the sizes of the groups. Tables that fit in the cache are processed in chunks: all
//! keys of a chunk are located, then all of them are read ahead, then all of them are applied.
//!
//! Three steps suffice for every structure of this crate:
//!
//! - `locate` computes the position of a key from its digest and prefetches the first cells. A table
//!   of up to [`NEAR`] bytes needs no prefetch.
//! - `read_ahead` reads these cells and prefetches further ones, if some keys need them. Most
//!   structures omit it.
//! - `apply` answers, inserts or removes.
//!
//! The steps take groups of keys, because a loop inside a step keeps its constants in registers.
//! They are methods of a trait instead of closures, so that they are inlined into the loop and
//! compiled for its instruction set. `apply` sees the keys in order, and an index for each.

mod pace;

#[cfg(test)]
pub(crate) use pace::DEEP;
pub(crate) use pace::{CHUNK, NEAR, Pace};

use crate::{
    Digest, Key, Seed, key,
    simd::{self, Isa, Kernel},
};

/// An operation of a structure on many keys. See the [module](self).
pub(crate) trait Batch {
    /// The sizes of the groups.
    const PACE: Pace;
    /// The data of a key that `locate` computes for `apply`. It is stored for up to [`CHUNK`] keys.
    type Position: Copy;
    /// Any position, for initialisation.
    const NOWHERE: Self::Position;

    /// Computes the positions of some keys, and prefetches their first cells.
    fn locate<I: Isa>(&mut self, isa: I, digests: &[Digest], positions: &mut [Self::Position]);

    /// Reads the first cells of the keys from index `first` on, and prefetches others. Called only
    /// if the pace says how far [`ahead`](Pace::ahead).
    #[inline(always)]
    fn read_ahead<I: Isa>(&mut self, _isa: I, _first: usize, _positions: &mut [Self::Position]) {}

    /// Acts on the keys from index `first` on.
    fn apply<I: Isa>(&mut self, isa: I, first: usize, positions: &[Self::Position]);
}

/// The keys of a batch.
#[derive(Clone, Copy)]
pub(crate) enum Keys<'a, K> {
    /// Keys that the loop itself hashes under a seed. The loop is compiled for every type of key.
    Typed(Seed, &'a [K]),
    /// The number of keys, and a function that hashes some of them. The loop is compiled once for
    /// all types of keys, and calls the function for each chunk.
    Any(usize, &'a dyn Fn(usize, &mut [Digest])),
}

/// Keys whose type the loop does not know. [`hasher`] makes the function.
pub(crate) type AnyKeys<'a> = Keys<'a, Digest>;

/// Makes the function of [`Keys::Any`]: it hashes keys from an index on, until the output is full.
pub(crate) fn hasher<K: Key>(seed: Seed, keys: &[K]) -> impl Fn(usize, &mut [Digest]) {
    move |from, digests| key::digests(seed, &keys[from..from + digests.len()], digests)
}

/// Calls `act` with the digests of one chunk of keys after the other, and the index of its first
/// key: for operations that read cells without prefetching them.
pub(crate) fn hashed<K: Key>(seed: Seed, keys: &[K], mut act: impl FnMut(usize, &[Digest])) {
    let mut digests = [Digest(0); CHUNK];
    for (i, keys) in keys.chunks(CHUNK).enumerate() {
        let digests = &mut digests[..keys.len()];
        key::digests(seed, keys, digests);
        act(i * CHUNK, digests);
    }
}

impl<K: Key> Keys<'_, K> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        match self {
            Keys::Typed(_, keys) => keys.len(),
            Keys::Any(len, _) => *len,
        }
    }
}

/// [`run`] with the best instruction set of this processor.
pub(crate) fn dispatch<K: Key, B: Batch>(keys: Keys<'_, K>, bytes: usize, batch: B) {
    struct Loop<'a, K, B>(Keys<'a, K>, usize, B);
    impl<K: Key, B: Batch> Kernel for Loop<'_, K, B> {
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            run(isa, self.0, self.1, self.2);
        }
    }
    simd::dispatch(Loop(keys, bytes, batch));
}

/// Runs the steps for all keys, in order, on a table of `bytes` bytes.
#[inline(always)]
pub(crate) fn run<I: Isa, K: Key, B: Batch>(isa: I, keys: Keys<'_, K>, bytes: usize, mut batch: B) {
    const { assert!(B::PACE.is_sound(), "the keys in flight fit in a chunk") };
    let pace = if bytes < B::PACE.from { B::PACE.chunks() } else { B::PACE };
    let len = keys.len();
    let (mut digests, mut positions) = ([Digest(0); CHUNK], [B::NOWHERE; CHUNK]);
    // The number of keys that have passed each step.
    let (mut located, mut ahead, mut applied) = (0, 0, 0);
    while applied < len {
        let group = pace.locate.min(len - located);
        let to = &mut positions[located % CHUNK..][..group];
        match keys {
            Keys::Typed(seed, keys) if B::PACE.singly => {
                for (key, to) in keys[located..located + group].iter().zip(to) {
                    let digest = key::digest_by(key, isa, seed);
                    batch.locate(isa, &[digest], std::slice::from_mut(to));
                }
            }
            Keys::Typed(seed, keys) => {
                let digests = &mut digests[..group];
                key::digests_by(isa, seed, &keys[located..located + group], digests);
                batch.locate(isa, digests, to);
            }
            Keys::Any(_, hash) => {
                // One call for a whole chunk, because a call takes some 40 instructions.
                if located.is_multiple_of(CHUNK) {
                    hash(located, &mut digests[..CHUNK.min(len - located)]);
                }
                batch.locate(isa, &digests[located % CHUNK..][..group], to);
            }
        }
        located += group;
        // Each step waits until enough keys are in flight. At the end it waits no longer.
        if let Some(lag) = pace.ahead {
            while ahead < located && (ahead + pace.locate + lag <= located || located == len) {
                let group = pace.locate.min(len - ahead);
                batch.read_ahead(isa, ahead, &mut positions[ahead % CHUNK..][..group]);
                ahead += group;
            }
        }
        while applied < len && (applied + pace.apply + pace.lag <= located || located == len) {
            let group = pace.apply.min(len - applied);
            batch.apply(isa, applied, &positions[applied % CHUNK..][..group]);
            applied += group;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, CHUNK, Keys, Pace, hasher, run};
    use crate::{Digest, Key, Seed, simd::BASE, simd::Isa};

    /// Checks that each key passes the three steps in order, and that no more keys are in flight
    /// than the pace allows. `PACE` is the index of the pace.
    struct Checked<'a, const PACE: usize> {
        keys: &'a [u32],
        bytes: usize,
        located: usize,
        ahead: usize,
        applied: usize,
    }

    const PACES: [Pace; 4] = [
        Pace::USUAL,
        Pace { ahead: Some(8), singly: true, ..Pace::USUAL },
        Pace { locate: 4, apply: 16, lag: 12, ahead: Some(12), from: 0, singly: false },
        Pace { locate: CHUNK, apply: CHUNK, lag: 0, ahead: Some(0), from: 7, singly: false },
    ];
    const SEED: Seed = Seed(3);

    impl<const PACE: usize> Batch for &mut Checked<'_, PACE> {
        const PACE: Pace = PACES[PACE];
        type Position = (Digest, bool);
        const NOWHERE: (Digest, bool) = (Digest(0), false);

        fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], to: &mut [(Digest, bool)]) {
            assert_eq!(digests.len(), to.len());
            for (&digest, to) in digests.iter().zip(to) {
                *to = (digest, false);
            }
            self.located += digests.len();
            let Pace { locate, apply, lag, from, .. } = Self::PACE;
            let most = if self.bytes < from { CHUNK } else { locate.max(apply) + lag };
            assert!(self.located - self.applied <= most, "{most} keys may be in flight");
        }

        fn read_ahead<I: Isa>(&mut self, _: I, first: usize, positions: &mut [(Digest, bool)]) {
            assert_eq!(first, self.ahead);
            for (i, (digest, ahead)) in positions.iter_mut().enumerate() {
                assert_eq!(*digest, self.keys[first + i].digest(SEED), "key {}", first + i);
                assert!(!*ahead, "key {} twice", first + i);
                *ahead = true;
            }
            self.ahead += positions.len();
            let waits = self.located < self.keys.len() && self.bytes >= Self::PACE.from;
            let least = if waits { Self::PACE.ahead.unwrap() } else { 0 };
            assert!(self.ahead + least <= self.located, "too early");
        }

        fn apply<I: Isa>(&mut self, _: I, first: usize, positions: &[(Digest, bool)]) {
            assert_eq!(first, self.applied);
            for (i, (digest, ahead)) in positions.iter().enumerate() {
                assert_eq!(*digest, self.keys[first + i].digest(SEED), "key {}", first + i);
                assert_eq!(*ahead, Self::PACE.ahead.is_some(), "key {}", first + i);
            }
            self.applied += positions.len();
            let waits = self.located < self.keys.len() && self.bytes >= Self::PACE.from;
            let least = if waits { Self::PACE.lag } else { 0 };
            assert!(self.applied + least <= self.located, "too early");
        }
    }

    /// Runs one pace for every number of keys, in small and in large tables.
    fn check<const PACE: usize>() {
        let all: Vec<u32> = (0..5 * CHUNK as u32 + 3).collect();
        for len in 0..all.len() {
            let keys = &all[..len];
            for bytes in [0, PACES[PACE].from] {
                let [mut one, mut other] = [0; 2].map(|n| Checked::<PACE> {
                    keys,
                    bytes,
                    located: n,
                    ahead: n,
                    applied: n,
                });
                run(BASE, Keys::Typed(SEED, keys), bytes, &mut one);
                assert_eq!((one.located, one.applied), (len, len));
                run(BASE, Keys::<Digest>::Any(len, &hasher(SEED, keys)), bytes, &mut other);
                assert_eq!((other.located, other.applied), (len, len));
            }
        }
    }

    #[test]
    fn every_key_passes_the_steps_in_order_and_as_far_apart_as_the_pace_says() {
        check::<0>();
        check::<1>();
        check::<2>();
        check::<3>();
    }
}
