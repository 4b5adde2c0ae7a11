//! The groups of buckets that each timer has to visit.
//!
//! A timer acts on cells in some states only, and a table may be nearly empty. So the map marks each
//! group of [`GROUP`] buckets with the timers that may find a cell of theirs there. A sweep visits
//! marked groups and skips the others, [`CHUNK`] groups at a time.
//! ```text
//! tops, per timer:  | 1 | 0 | ..             one bit per chunk of 64 groups
//! groups:           | 0b01 | 0b11 | 0 | ..   one bit per timer, in one byte per group of 4 buckets
//! ```
//! Every write marks the group of its bucket. A sweep sets the marks of a visited group to those of
//! the cells that remain. Therefore a mark may be left over, but never missing.
//!
//! Cost: one byte for 4 buckets, and one load per write. If each visit of a timer brings its own
//! cells closer to their end, `n` writes cause at most `n * (visits of a cell + 1)` visits of groups,
//! however much time passes.

use std::ops::Range;

/// Buckets that a timer visits together.
pub const GROUP: usize = 4;
/// Groups of a chunk.
const CHUNK: usize = 64;
/// The most timers with separate marks. Later ones share the marks of the last.
const TIMERS: usize = 8;

/// The marks of a map. Empty if the map has no timers.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    /// The timers of each state, one bit each, and at the end those of shared cells.
    timers_of: Vec<u8>,
    groups: Vec<u8>,
    tops: [Vec<u64>; TIMERS],
}

/// The marks of a timer in the bytes of eight groups.
const EACH: u64 = 0x0101_0101_0101_0101;

impl Marks {
    /// No marks yet, for a table of `buckets` buckets in all subtables.
    pub(super) fn new(timers_of: Vec<u8>, buckets: usize) -> Self {
        let groups = if timers_of.is_empty() { 0 } else { buckets.div_ceil(GROUP) };
        let top = vec![0; groups.div_ceil(CHUNK).div_ceil(64)];
        let tops = std::array::from_fn(|_| top.clone());
        // Whole chunks: a search reads eight groups at a time.
        Marks { timers_of, groups: vec![0; groups.next_multiple_of(CHUNK)], tops }
    }

    /// The timers of each state.
    pub(super) fn timers_of(&self) -> &[u8] {
        &self.timers_of
    }

    /// Whether the map has no timers.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The timers of a cell with this value.
    #[inline(always)]
    pub(super) fn timers(&self, value: u64) -> u8 {
        let last = self.timers_of.len().wrapping_sub(1);
        self.timers_of.get((value as usize).min(last)).copied().unwrap_or(0)
    }

    /// Notes that a cell of this bucket now has this value.
    #[inline(always)]
    pub(super) fn mark(&mut self, bucket: usize, value: u64) {
        self.add(bucket, self.timers(value));
    }

    /// Marks the group of a bucket with these timers.
    #[inline(always)]
    pub(super) fn add(&mut self, bucket: usize, timers: u8) {
        if let Some(group) = self.groups.get_mut(bucket / GROUP)
            && *group & timers != timers
        {
            *group |= timers;
            self.mark_top(bucket / GROUP, timers);
        }
    }

    /// Marks the chunk of a group.
    #[cold]
    fn mark_top(&mut self, group: usize, timers: u8) {
        let chunk = group / CHUNK;
        for (timer, top) in self.tops.iter_mut().enumerate() {
            if timers >> timer & 1 == 1 {
                top[chunk / 64] |= 1 << (chunk % 64);
            }
        }
    }

    /// The first marked group of a timer, starting at `group`. Removes the marks of chunks without
    /// marked groups.
    pub(super) fn next(&mut self, timer: usize, group: usize) -> Option<usize> {
        let timer = timer.min(TIMERS - 1);
        let top = &mut self.tops[timer];
        let mut from = group;
        loop {
            let chunk = from / CHUNK;
            let mut word = chunk / 64;
            let mut chunks = top.get(word)? & u64::MAX << (chunk % 64);
            while chunks == 0 {
                word += 1;
                chunks = *top.get(word)?;
            }
            let found = word * 64 + chunks.trailing_zeros() as usize;
            let start = from.max(found * CHUNK);
            from = (found + 1) * CHUNK;
            if let Some(group) = first_marked(&self.groups, timer, start..from) {
                return Some(group);
            }
            if first_marked(&self.groups, timer, found * CHUNK..start).is_none() {
                top[word] &= !(1 << (found % 64));
            }
        }
    }

    /// Replaces the marks of a group.
    pub(super) fn set(&mut self, group: usize, timers: u8) {
        let more = timers & !std::mem::replace(&mut self.groups[group], timers);
        self.mark_top(group, more);
    }

    /// Removes all marks.
    pub(super) fn clear(&mut self) {
        self.groups.fill(0);
        self.tops.iter_mut().for_each(|top| top.fill(0));
    }
}

/// The first group of a range with the mark of a timer. The range starts in a chunk and ends with it
/// or before.
fn first_marked(groups: &[u8], timer: usize, range: Range<usize>) -> Option<usize> {
    let words = range.start / 8..range.end.div_ceil(8);
    let mut wanted = u64::MAX << (range.start % 8 * 8);
    for (word, bytes) in words.clone().zip(&groups.as_chunks::<8>().0[words]) {
        let marked = u64::from_le_bytes(*bytes) & EACH << timer & wanted;
        if marked != 0 {
            let group = word * 8 + marked.trailing_zeros() as usize / 8;
            return (group < range.end).then_some(group);
        }
        wanted = u64::MAX;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all(marks: &mut Marks, timer: usize) -> Vec<usize> {
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(group) = marks.next(timer, from) {
            found.push(group);
            from = group + 1;
        }
        found
    }

    #[test]
    fn marks_are_those_of_a_set_of_groups_for_each_timer() {
        // Two timers: state 0 belongs to the first, state 1 to the second, shared cells to both.
        let timers_of = vec![0b01, 0b10, 0b11];
        let mut rng = sidon_kit::Rng::seeded(5);
        for buckets in [1, 16, 17, 1_024, 70_000] {
            let mut marks = Marks::new(timers_of.clone(), buckets);
            let mut sets = [const { BTreeSet::new() }; 2];
            for round in 0..200 {
                let bucket = rng.below(buckets as u64) as usize;
                let value = rng.below(5);
                marks.mark(bucket, value);
                for (timer, set) in sets.iter_mut().enumerate() {
                    if timers_of[value.min(2) as usize] >> timer & 1 == 1 {
                        set.insert(bucket / GROUP);
                    }
                }
                if round % 3 == 0 {
                    let group = rng.below(buckets.div_ceil(GROUP) as u64) as usize;
                    let left = [0, 1].map(|timer| sets[timer].contains(&group) && rng.chance(0.5));
                    marks.set(group, u8::from(left[0]) | u8::from(left[1]) << 1);
                    for (set, left) in sets.iter_mut().zip(left) {
                        if !left {
                            set.remove(&group);
                        }
                    }
                }
                for (timer, set) in sets.iter().enumerate() {
                    let expected: Vec<_> = set.iter().copied().collect();
                    assert_eq!(all(&mut marks, timer), expected, "{buckets} {round}");
                }
            }
            marks.clear();
            assert!(all(&mut marks, 0).is_empty());
        }
    }

    #[test]
    fn a_map_without_timers_has_no_marks() {
        let mut marks = Marks::new(Vec::new(), 1_000);
        marks.mark(7, 3);
        assert_eq!(marks.next(0, 0), None);
        assert_eq!(Marks::default().timers(0), 0);
    }
}
