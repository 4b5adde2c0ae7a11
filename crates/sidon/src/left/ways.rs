//! Addressing: from a digest to a fingerprint, and from that to its bucket in each subtable.

use super::{ANY, Place};
use crate::{
    Digest,
    hash::{permute::Permutation, spread},
};

/// The addressing of a table. A loop keeps this copy in registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways<const D: usize> {
    /// The number of fingerprints.
    pub(super) fingerprints: u64,
    /// A fingerprint is replaced by its successor if one of its permuted fingerprints has all bits
    /// of this mask set. 0 if every fingerprint can be stored.
    pub(super) passed: u64,
    pub(super) subtables: usize,
    /// Bits per remainder.
    pub(super) remainder: u32,
    pub(super) bucket_bytes: usize,
    pub(super) subtable_bytes: usize,
    /// One permutation per subtable; the first is the identity.
    pub(super) permutations: [Permutation; D],
}

impl<const D: usize> Ways<D> {
    /// The fingerprint of a digest.
    #[inline(always)]
    pub(crate) fn fingerprint_of(&self, digest: Digest) -> u64 {
        let fingerprint = spread::fraction(digest.0, self.fingerprints);
        if self.passed == 0 { fingerprint } else { self.next_storable(fingerprint) }
    }

    /// The fingerprint, or the first one after it whose remainder can be stored in every subtable,
    /// now and after every growth.
    #[inline(always)]
    pub(crate) fn next_storable(&self, mut fingerprint: u64) -> u64 {
        while self.is_passed_over(fingerprint) {
            fingerprint += 1;
            if fingerprint == self.fingerprints {
                fingerprint = 0;
            }
        }
        fingerprint
    }

    #[inline(always)]
    fn is_passed_over(&self, fingerprint: u64) -> bool {
        if self.passed == 0 {
            return false;
        }
        let mut passed = fingerprint & self.passed == self.passed;
        for permutation in &self.permutations[1..self.subtables] {
            passed |= permutation.apply(fingerprint) & self.passed == self.passed;
        }
        passed
    }

    /// The bucket and remainder of a fingerprint in each subtable.
    #[inline(always)]
    pub(crate) fn places_of(&self, fingerprint: u64) -> [Place; D] {
        let mut places = [Place::NOWHERE; D];
        let mask = (1 << self.remainder) - 1;
        for (i, place) in places[..self.subtables].iter_mut().enumerate() {
            let image = match i {
                0 => fingerprint,
                _ => self.permutations[i].apply(fingerprint),
            };
            let bucket = (image >> self.remainder) as usize;
            place.offset = i * self.subtable_bytes + bucket * self.bucket_bytes;
            place.remainder = image & mask;
        }
        places
    }

    /// The permuted fingerprint of each subtable: the bucket in the upper bits, the remainder in
    /// the lower.
    #[inline(always)]
    pub(crate) fn images_of(&self, fingerprint: u64) -> [u64; D] {
        let mut images = [fingerprint; D];
        let subtables = if D < ANY { D } else { self.subtables };
        for (i, image) in images[..subtables].iter_mut().enumerate() {
            if i > 0 {
                *image = self.permutations[i].apply(fingerprint);
            }
        }
        images
    }
}
