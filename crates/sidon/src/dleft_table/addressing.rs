//! Addressing: from a digest to the buckets of its key, and to the value of the key's cell in each.
//!
//! ```text
//! digest --fraction--> fingerprint f in 0..buckets * 2^r
//! f --permute(i)--> permuted fingerprint = | bucket | remainder |        for subtable i in 0..d
//!                                               |         |
//!                  subtable i starts at i * buckets     cell: the complement of | remainder | low bits |
//! ```
//! A batch keeps permuted fingerprints, because they are words and stay valid when the table grows:
//! growth moves the boundary between bucket and remainder by one bit. The first permutation is the
//! identity, so the first permuted fingerprint is the fingerprint itself.
//!
//! [`Fingerprints`] leads from a digest to the permuted fingerprints, [`Addressing`] from those to
//! buckets and cell values. All counts and masks that this takes are computed here and nowhere
//! else, once for each form of a table. A loop copies them, restricted to its number of subtables,
//! so that the compiler keeps them in registers.

use super::{ANY, Form, Placing, SUBTABLES_MAX, Table};
use crate::{
    Digest, Infeasible,
    batch::NEAR,
    bucket::Layout,
    key::{permute::Permutation, spread},
    simd::{self, Isa, Kernel},
};

/// From a digest to the permuted fingerprints of its key, in `D` subtables or in any number of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fingerprints<const D: usize = ANY> {
    /// The number of fingerprints.
    number: u64,
    /// A fingerprint is replaced by its successor if one of its permuted fingerprints has all bits
    /// of this mask set. 0 if every fingerprint can be stored.
    pub(crate) passed: u64,
    subtables: usize,
    /// One permutation per subtable.
    permutations: [Permutation; D],
}

impl Fingerprints {
    pub(super) fn new(form: &Form) -> Result<Self, Infeasible> {
        let Form { subtables, remainder, low, growths, .. } = *form;
        let number = form.fingerprints();
        Ok(Fingerprints {
            number,
            passed: if low > 0 { 0 } else { (1 << (remainder - growths)) - 1 },
            subtables: subtables as usize,
            permutations: permutations(number)?,
        })
    }

    /// A copy for a loop over keys. `D` is the number of subtables or [`ANY`].
    #[inline(always)]
    fn of<const D: usize>(&self) -> Fingerprints<D> {
        let Fingerprints { number, passed, subtables, .. } = *self;
        let mut permutations = [self.permutations[0]; D];
        permutations.copy_from_slice(&self.permutations[..D]);
        Fingerprints { number, passed, subtables, permutations }
    }

    /// The fingerprint that a subtable permutes to this word.
    #[inline(always)]
    pub(super) fn unpermuted(&self, subtable: usize, permuted: u64) -> u64 {
        self.permutations[subtable].invert(permuted)
    }

    /// The permuted fingerprint of one subtable.
    #[inline(always)]
    pub(super) fn permuted_for(&self, subtable: usize, fingerprint: u64) -> u64 {
        self.permutations[subtable].apply(fingerprint)
    }
}

impl<const D: usize> Fingerprints<D> {
    /// The fingerprint of a digest.
    #[inline(always)]
    pub(crate) fn of_digest(&self, digest: Digest) -> u64 {
        let fingerprint = spread::fraction(digest.0, self.number);
        if self.passed == 0 { fingerprint } else { self.next_storable(fingerprint) }
    }

    /// The fingerprint, or the first one after it whose remainder can be stored in every subtable,
    /// now and after every growth.
    #[inline(never)]
    pub(crate) fn next_storable(&self, mut fingerprint: u64) -> u64 {
        while self.is_passed_over(&self.permuted::<D>(fingerprint)) {
            fingerprint += 1;
            if fingerprint == self.number {
                fingerprint = 0;
            }
        }
        fingerprint
    }

    #[inline(always)]
    fn is_passed_over(&self, permuted: &[u64; D]) -> bool {
        let subtables = if D < ANY { D } else { self.subtables };
        self.passed != 0
            && permuted[..subtables].iter().any(|word| word & self.passed == self.passed)
    }

    /// The permuted fingerprints of a digest.
    #[inline(always)]
    pub(crate) fn permuted_of<const N: usize>(&self, digest: Digest) -> [u64; N] {
        self.permuted(self.of_digest(digest))
    }

    /// [`permuted_of`](Self::permuted_of) for loops over keys: only a fingerprint that cannot be
    /// stored leaves the loop.
    #[inline(always)]
    fn permuted_inline(&self, digest: Digest) -> [u64; D] {
        let fingerprint = spread::fraction(digest.0, self.number);
        let permuted = self.permuted(fingerprint);
        if self.is_passed_over(&permuted) {
            return self.permuted(self.next_storable(fingerprint));
        }
        permuted
    }

    /// The permuted fingerprint of each subtable, in the first `N` of them or in all.
    #[inline(always)]
    pub(crate) fn permuted<const N: usize>(&self, fingerprint: u64) -> [u64; N] {
        let mut permuted = [fingerprint; N];
        let subtables = if N < ANY { N } else { self.subtables };
        for (i, permuted) in permuted[..subtables].iter_mut().enumerate() {
            if i > 0 {
                *permuted = self.permutations[i].apply(fingerprint);
            }
        }
        permuted
    }
}

/// The counts and masks that lead from a permuted fingerprint to a bucket and a cell value, in `D`
/// subtables or in any number of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addressing<const D: usize = ANY> {
    subtables: usize,
    /// Buckets per subtable.
    buckets: usize,
    /// Bits per remainder.
    remainder: u32,
    /// Bits of a cell below the remainder, and their mask.
    low: u32,
    pub(crate) low_mask: u64,
    /// The mask of remainder and low bits.
    pub(crate) cell_mask: u64,
}

impl Addressing {
    pub(super) fn new(form: &Form) -> Self {
        let Form { subtables, buckets, remainder, low, .. } = *form;
        Addressing {
            subtables: subtables as usize,
            buckets: buckets as usize,
            remainder,
            low,
            low_mask: (1 << low) - 1,
            cell_mask: u64::MAX >> (64 - remainder - low),
        }
    }

    /// Words with an independent bucket for each subtable and one remainder, in the form of permuted
    /// fingerprints: [`Placing::Independent`].
    #[cold]
    #[inline(never)]
    pub(crate) fn independent(&self, digest: Digest) -> [u64; ANY] {
        let remainder = spread::position(digest, SUBTABLES_MAX, 1 << self.remainder);
        let mut words = [remainder; ANY];
        for (i, word) in (0..).zip(&mut words[..self.subtables()]) {
            *word |= spread::position(digest, i, self.buckets as u64) << self.remainder;
        }
        words
    }

    /// A copy for a loop over keys. `D` is the number of subtables or [`ANY`].
    #[inline(always)]
    pub(crate) fn of<const D: usize>(&self) -> Addressing<D> {
        let Addressing { subtables, buckets, remainder, low, low_mask, cell_mask } = *self;
        Addressing { subtables, buckets, remainder, low, low_mask, cell_mask }
    }
}

impl<const D: usize> Addressing<D> {
    /// The number of subtables: the constant `D`, unless `D` is [`ANY`].
    #[inline(always)]
    pub(crate) fn subtables(&self) -> usize {
        if D < ANY { D } else { self.subtables }
    }

    /// The bucket of a permuted fingerprint, numbered through all subtables.
    #[inline(always)]
    pub(crate) fn bucket(&self, subtable: usize, permuted: u64) -> usize {
        subtable * self.buckets + (permuted >> self.remainder) as usize
    }

    /// The cell value of a permuted fingerprint with low bits 0. A cell stores the complement, so
    /// the low bits of the value are ones.
    #[inline(always)]
    pub(crate) fn value(&self, permuted: u64) -> u64 {
        !(permuted << self.low) & self.cell_mask
    }

    /// The low bits of a cell in use.
    #[inline(always)]
    pub(crate) fn low_bits(&self, value: u64) -> u64 {
        !value & self.low_mask
    }

    /// The remainder in a cell in use.
    #[inline(always)]
    pub(crate) fn remainder(&self, value: u64) -> u64 {
        (!value & self.cell_mask) >> self.low
    }

    /// The permuted fingerprint of a cell with this value in a bucket of a subtable.
    #[inline(always)]
    pub(super) fn permuted_at(&self, subtable: usize, bucket: usize, value: u64) -> u64 {
        ((bucket - subtable * self.buckets) as u64) << self.remainder | self.remainder(value)
    }
}

impl Table {
    /// Computes the permuted fingerprints of some keys, and prefetches their buckets unless the
    /// table is in the cache.
    #[inline(always)]
    pub(crate) fn locate<I: Isa, L: Layout, const D: usize>(
        &self,
        isa: I,
        layout: L,
        digests: &[Digest],
        permuted: &mut [[u64; D]],
    ) {
        isa.apart(Locate { layout, table: self, digests, permuted });
    }

    /// The permuted fingerprints of a digest.
    #[inline(always)]
    pub(crate) fn permuted<const D: usize>(&self, digest: Digest) -> [u64; D] {
        if self.form.placing == Placing::Independent {
            let mut words = [0; D];
            words.copy_from_slice(&self.addressing.independent(digest)[..D]);
            return words;
        }
        self.fingerprints.permuted_of(digest)
    }
}

/// The arguments of [`Table::locate`], whose loop is a separate function: it would compete for
/// registers with the loop that acts on the keys.
struct Locate<'a, L, const D: usize> {
    layout: L,
    table: &'a Table,
    digests: &'a [Digest],
    permuted: &'a mut [[u64; D]],
}

impl<L: Layout, const D: usize> Kernel for Locate<'_, L, D> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        let table = self.table;
        if table.form.placing == Placing::Independent {
            for (&digest, permuted) in self.digests.iter().zip(self.permuted) {
                *permuted = table.permuted(digest);
            }
            return;
        }
        let fingerprints = table.fingerprints.of::<D>();
        // Constants, so that the loops do not test them for each key.
        match (fingerprints.passed, table.memory.bytes().len() > NEAR) {
            (0, false) => self.each::<false>(Fingerprints { passed: 0, ..fingerprints }),
            (0, true) => self.each::<true>(Fingerprints { passed: 0, ..fingerprints }),
            (_, false) => self.each::<false>(fingerprints),
            (_, true) => self.each::<true>(fingerprints),
        }
    }
}

impl<L: Layout, const D: usize> Locate<'_, L, D> {
    /// Locates each key, and prefetches its buckets if the table is `FAR`.
    #[inline(always)]
    fn each<const FAR: bool>(self, fingerprints: Fingerprints<D>) {
        let (addressing, bytes) = (self.table.addressing.of::<D>(), self.table.memory.bytes());
        for (&digest, permuted) in self.digests.iter().zip(self.permuted) {
            *permuted = fingerprints.permuted_inline(digest);
            if FAR {
                for (i, &permuted) in permuted[..addressing.subtables()].iter().enumerate() {
                    simd::prefetch(bytes, self.layout.offset(addressing.bucket(i, permuted)));
                }
            }
        }
    }
}

/// The identity, then multiplications by well-spread factors. They depend on the number of
/// fingerprints alone, so tables stay compatible when one of them grows.
fn permutations(fingerprints: u64) -> Result<[Permutation; ANY], Infeasible> {
    let mut all = [None; ANY];
    for (i, permutation) in (0u64..).zip(&mut all) {
        // Fractions of the range that no small multiple brings close to each other.
        let mut mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let wish = if i == 0 { 1 } else { spread::fraction(mixed, fingerprints) };
        *permutation = Permutation::near(fingerprints, wish);
    }
    match all {
        [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f), Some(g), Some(h)] => {
            Ok([a, b, c, d, e, f, g, h])
        }
        _ => Err(Infeasible::Memory { bytes: u64::MAX }),
    }
}
