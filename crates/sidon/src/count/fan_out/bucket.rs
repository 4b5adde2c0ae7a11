//! One bucket: the layout of its bytes, and the operations on it.

use crate::{
    Digest,
    count::{registers, top::Stored},
    simd::Isa,
};

/// Entries of a bucket.
pub(super) const ENTRIES: usize = 8;
/// Bytes of a bucket's tags.
const TAGS: usize = 2 * ENTRIES;
/// The offset of the tags, behind the epoch.
const TAGS_AT: usize = 8;
/// The offset of the counts.
const COUNTS_AT: usize = TAGS_AT + TAGS;
/// The offset of the remainder.
pub(super) const HEAD: usize = COUNTS_AT + 4 * ENTRIES;
/// The most registers of a sketch.
pub(crate) const REGISTERS_MAX: u32 = 64;
/// Bytes of the largest sketch.
pub(super) const SKETCH_MAX: usize = registers::bytes_of(REGISTERS_MAX);

/// The layout of a bucket. First the epoch of its newest pane, the tags and counts of its entries, and the
/// sketches of the remainder. Then each entry: its key and its sketches. There is a sketch per pane.
///
/// The pane of epoch `e` has the index `e` modulo `panes`. All methods take the bytes of one bucket,
/// [`bytes`](Self::bytes) of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    pub(super) key: usize,
    pub(super) registers: u32,
    pub(super) panes: u32,
}

/// The tag of a key in its bucket. It is never that of an empty entry.
#[inline(always)]
pub(super) fn tag_of(digest: Digest) -> u16 {
    (digest.0 as u16).max(1)
}

impl Bucket {
    /// Bytes of one sketch.
    #[inline(always)]
    pub(super) const fn sketch(self) -> usize {
        registers::bytes_of(self.registers)
    }

    /// Bytes of the sketches of all panes.
    #[inline(always)]
    pub(super) const fn panes(self) -> usize {
        self.sketch() * self.panes as usize
    }

    #[inline(always)]
    pub(super) const fn entry(self, entry: usize) -> usize {
        HEAD + self.panes() + entry * (self.key + self.panes())
    }

    #[inline(always)]
    pub(super) const fn bytes(self) -> usize {
        self.entry(ENTRIES)
    }

    /// The index of the pane of an epoch.
    #[inline(always)]
    fn pane(self, epoch: u64) -> usize {
        (epoch % u64::from(self.panes)) as usize
    }

    /// The epoch of the newest pane.
    #[inline(always)]
    pub(super) fn epoch(self, bytes: &[u8]) -> u64 {
        match bytes.first_chunk() {
            Some(epoch) => u64::from_le_bytes(*epoch),
            None => unreachable!("every bucket is whole"),
        }
    }

    /// The entries that have this tag, as a mask.
    #[inline(always)]
    fn tagged<I: Isa>(self, isa: I, bytes: &[u8], tag: u16) -> u64 {
        match bytes[TAGS_AT..].first_chunk::<TAGS>() {
            Some(tags) => isa.matches::<2, TAGS>(tags, tag.into(), 0),
            None => unreachable!("every bucket is whole"),
        }
    }

    /// The first entry with this tag. The tag 0 is that of entries without a key.
    #[inline(always)]
    pub(super) fn first_tagged<I: Isa>(self, isa: I, bytes: &[u8], tag: u16) -> Option<usize> {
        let tagged = self.tagged(isa, bytes, tag);
        (tagged != 0).then(|| tagged.trailing_zeros() as usize % ENTRIES)
    }

    /// The entries that hold a key.
    pub(super) fn taken(self, bytes: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let free = self.tagged(crate::simd::Portable, bytes, 0);
        (0..ENTRIES).filter(move |entry| free >> entry & 1 == 0)
    }

    /// The key's entry.
    #[inline(always)]
    pub(super) fn find<I: Isa, K: Stored>(
        self,
        isa: I,
        bytes: &[u8],
        tag: u16,
        key: &K,
    ) -> Option<usize> {
        let mut tagged = self.tagged(isa, bytes, tag);
        while tagged != 0 {
            let entry = tagged.trailing_zeros() as usize % ENTRIES;
            if key.is(self.key_of(bytes, entry)) {
                return Some(entry);
            }
            tagged &= tagged - 1;
        }
        None
    }

    /// The bytes of an entry's key.
    #[inline(always)]
    pub(super) fn key_of(self, bytes: &[u8], entry: usize) -> &[u8] {
        &bytes[self.entry(entry)..][..self.key]
    }

    /// The sketches of an entry, or of the remainder if `entry` is `None`.
    #[inline(always)]
    pub(super) fn sketches(self, bytes: &[u8], entry: Option<usize>) -> &[u8] {
        let at = entry.map_or(HEAD, |entry| self.entry(entry) + self.key);
        &bytes[at..][..self.panes()]
    }

    #[inline(always)]
    pub(super) fn sketches_mut(self, bytes: &mut [u8], entry: Option<usize>) -> &mut [u8] {
        let at = entry.map_or(HEAD, |entry| self.entry(entry) + self.key);
        &mut bytes[at..][..self.panes()]
    }

    /// The estimate of an entry in its newest panes, or 0 without a key.
    #[inline(always)]
    pub(super) fn count(self, bytes: &[u8], entry: usize) -> u32 {
        match bytes[COUNTS_AT + 4 * entry..].first_chunk() {
            Some(count) => u32::from_le_bytes(*count),
            None => unreachable!("every bucket is whole"),
        }
    }

    /// The first entry with the smallest count, and that count.
    #[inline(always)]
    pub(super) fn smallest(self, bytes: &[u8]) -> (usize, u32) {
        let (mut smallest, mut least) = (0, u32::MAX);
        for (entry, count) in
            bytes[COUNTS_AT..HEAD].as_chunks::<4>().0.iter().enumerate().take(ENTRIES)
        {
            let count = u32::from_le_bytes(*count);
            if count < least {
                (smallest, least) = (entry, count);
            }
        }
        (smallest, least)
    }

    /// Writes the facts of all `panes` into one sketch.
    #[inline(always)]
    pub(super) fn union_into(self, union: &mut [u8], sketches: &[u8]) {
        for sketch in sketches.chunks_exact(self.sketch()) {
            registers::merge(union, sketch, self.registers);
        }
    }

    /// The estimate of the union of all panes.
    pub(super) fn estimate(self, sketches: &[u8]) -> u32 {
        let likely = if self.panes == 1 {
            registers::likely(sketches, self.registers)
        } else {
            let mut union = [0; SKETCH_MAX];
            self.union_into(&mut union, sketches);
            registers::likely(&union, self.registers)
        };
        u32::try_from(likely.value()).unwrap_or(u32::MAX)
    }

    /// Computes the count of an entry from its sketches.
    pub(super) fn set_count(self, bytes: &mut [u8], entry: usize) {
        let count = self.estimate(self.sketches(bytes, Some(entry)));
        bytes[COUNTS_AT + 4 * entry..][..4].copy_from_slice(&count.to_le_bytes());
    }

    /// Sets the count of an entry with one word, without computing it.
    #[inline(always)]
    pub(super) fn set_count_of_one(self, bytes: &mut [u8], entry: usize) {
        bytes[COUNTS_AT + 4 * entry..][..4].copy_from_slice(&1u32.to_le_bytes());
    }

    /// Adds a word to the newest pane. Returns whether the pane changed.
    #[inline(always)]
    pub(super) fn insert(self, bytes: &mut [u8], entry: Option<usize>, word: u64) -> bool {
        let pane = self.pane(self.epoch(bytes)) * self.sketch();
        let sketches = self.sketches_mut(bytes, entry);
        registers::insert(&mut sketches[pane..][..self.sketch()], self.registers, word)
    }

    /// Adds the sketches to those of an entry, or of the remainder, pane by pane.
    pub(super) fn merge(self, bytes: &mut [u8], entry: Option<usize>, sketches: &[u8]) {
        let (own, width) = (self.sketches_mut(bytes, entry), self.sketch());
        for (own, other) in own.chunks_exact_mut(width).zip(sketches.chunks_exact(width)) {
            registers::merge(own, other, self.registers);
        }
    }

    /// Writes the key of an empty entry.
    #[inline(always)]
    pub(super) fn write_key<K: Stored>(self, bytes: &mut [u8], entry: usize, tag: u16, key: &K) {
        bytes[TAGS_AT + 2 * entry..][..2].copy_from_slice(&tag.to_le_bytes());
        key.write(&mut bytes[self.entry(entry)..][..self.key]);
    }

    /// Empties an entry.
    pub(super) fn clear(self, bytes: &mut [u8], entry: usize) {
        bytes[TAGS_AT + 2 * entry..][..2].fill(0);
        bytes[COUNTS_AT + 4 * entry..][..4].fill(0);
        bytes[self.entry(entry)..][..self.key + self.panes()].fill(0);
    }

    /// Adds the sketches of an entry to the remainder, and empties the entry.
    pub(super) fn evict(self, bytes: &mut [u8], entry: usize) {
        let (rest, entries) = bytes[HEAD..].split_at_mut(self.panes());
        let sketches = &entries[entry * (self.key + self.panes()) + self.key..][..self.panes()];
        let width = self.sketch();
        for (rest, other) in rest.chunks_exact_mut(width).zip(sketches.chunks_exact(width)) {
            registers::merge(rest, other, self.registers);
        }
        self.clear(bytes, entry);
    }

    /// Makes `epoch` the epoch of the newest pane, unless it is older. Panes that are too old become
    /// empty, and so do entries without another pane.
    #[inline(always)]
    pub(super) fn advance(self, bytes: &mut [u8], epoch: u64) {
        let newest = self.epoch(bytes);
        if epoch > newest {
            self.advance_by(bytes, epoch, epoch - newest);
        }
    }

    #[cold]
    fn advance_by(self, bytes: &mut [u8], epoch: u64, by: u64) {
        bytes[..8].copy_from_slice(&epoch.to_le_bytes());
        for back in 0..by.min(self.panes.into()) {
            let pane = self.pane(epoch - back) * self.sketch();
            self.sketches_mut(bytes, None)[pane..][..self.sketch()].fill(0);
            for entry in self.taken(bytes) {
                self.sketches_mut(bytes, Some(entry))[pane..][..self.sketch()].fill(0);
            }
        }
        for entry in self.taken(bytes) {
            if self.sketches(bytes, Some(entry)).iter().all(|&byte| byte == 0) {
                self.clear(bytes, entry);
            } else {
                self.set_count(bytes, entry);
            }
        }
    }

    /// Writes the facts of the panes of `sketches` that are not too old at `epoch` into one sketch.
    pub(super) fn union_at(self, union: &mut [u8], bytes: &[u8], sketches: &[u8], epoch: u64) {
        let newest = self.epoch(bytes);
        let old = epoch.saturating_sub(newest).min(self.panes.into());
        // At `epoch`, panes of the epochs `newest - back` are in use if `old + back < panes`.
        for back in 0..u64::from(self.panes) - old {
            // Panes before epoch 0 are empty, and share the index of one that is not.
            let Some(epoch) = newest.checked_sub(back) else { break };
            let pane = self.pane(epoch) * self.sketch();
            registers::merge(union, &sketches[pane..][..self.sketch()], self.registers);
        }
    }
}
