//! The state of a sequential test: four levels of evidence.

use super::RATES;
use crate::Malformed;

/// The evidence against one subject, in 16 bytes. A new test has none.
///
/// [`Failures`](super::Failures) and [`Excess`](super::Excess) update and judge it. A test must always be
/// used with the same rule.
///
/// ```
/// use sidon::{decide::{Failures, Test}, plan};
///
/// // Usually 5 % fail. At most one false accusation in 10^8 trials, of all subjects together.
/// let rule = Failures::new(plan::decide::shape(0.05, 100_000_000)?)?;
/// let (mut scanner, mut client) = (Test::default(), Test::default());
/// for trial in 0..40 {
///     rule.see(&mut scanner, trial % 2 == 0);
///     rule.see(&mut client, trial % 20 == 0);
/// }
/// assert!(rule.accuses(&scanner) && !rule.accuses(&client));
/// assert!(scanner.evidence() >= 1e8 && client.evidence() < 100.0);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Test {
    levels: [f32; RATES],
}

impl Test {
    /// The saved bytes of a test.
    pub(crate) const BYTES: usize = 4 * RATES;

    /// The mean of the levels. Its expectation for an innocent subject is at most the number of trials seen.
    pub fn evidence(&self) -> f64 {
        self.total() / RATES as f64
    }

    /// Starts again without evidence, as after an accusation.
    pub fn restart(&mut self) {
        *self = Test::default();
    }

    /// Adds the evidence that another test of the same rule has collected from other trials of the subject.
    /// The sum keeps the bound on false accusations. It is weaker than one test of all trials.
    pub fn merge(&mut self, other: &Test) {
        for (level, more) in self.levels.iter_mut().zip(other.levels) {
            let sum = *level + more;
            // A sum that was rounded up would exceed the bound.
            let exact = f64::from(*level) + f64::from(more);
            *level = if f64::from(sum) > exact { sum.next_down() } else { sum };
        }
    }

    /// The levels as little-endian bytes.
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; Self::BYTES];
        for (bytes, level) in bytes.chunks_exact_mut(4).zip(self.levels) {
            bytes.copy_from_slice(&level.to_le_bytes());
        }
        bytes
    }

    /// The test of these bytes. A level is finite, not negative, and written in one way.
    pub fn from_bytes(bytes: [u8; 16]) -> Result<Test, Malformed> {
        let mut test = Test::default();
        for (level, bytes) in test.levels.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *level = f32::from_le_bytes(*bytes);
            if !level.is_finite() || level.is_sign_negative() || *level > CEILING {
                return Err(Malformed::Field { name: "level" });
            }
        }
        Ok(test)
    }

    #[cfg(test)]
    pub(super) fn from_levels(levels: [f32; RATES]) -> Self {
        Test { levels }
    }

    #[cfg(test)]
    pub(super) fn level(&self, i: usize) -> f64 {
        self.levels[i].into()
    }

    /// The sum of the levels, which 64-bit numbers hold exactly enough.
    #[inline(always)]
    pub(super) fn total(&self) -> f64 {
        self.levels.iter().map(|&level| f64::from(level)).sum()
    }

    /// One step: each level becomes `(level + 1) * factor`, at most `ceiling`.
    #[inline(always)]
    pub(super) fn step(&mut self, factors: &[f32; RATES], ceiling: f32) {
        for (level, factor) in self.levels.iter_mut().zip(factors) {
            *level = ((*level + 1.0) * factor).min(ceiling);
        }
    }

    /// One step with factors of a larger range.
    pub(super) fn step_by(&mut self, factors: [f64; RATES], ceiling: f32) {
        for (level, factor) in self.levels.iter_mut().zip(factors) {
            let next = (f64::from(*level) + 1.0) * factor;
            // A level below 2^-100 is rounded to 0.
            let next = if next < 2f64.powi(-100) { 0.0 } else { next.min(f64::from(ceiling)) };
            let rounded = next as f32;
            *level = if f64::from(rounded) > next { rounded.next_down() } else { rounded };
        }
    }

    /// Multiplies the evidence by `share`, at most 1.
    pub(super) fn fade(&mut self, share: f32) {
        for level in &mut self.levels {
            *level *= share;
        }
    }

    /// Lowers each level to at most `ceiling`.
    pub(super) fn cap(&mut self, ceiling: f32) {
        for level in &mut self.levels {
            *level = level.min(ceiling);
        }
    }

    /// The largest level.
    pub(super) fn highest(&self) -> f32 {
        self.highest_scaled(&[1.0; RATES])
    }

    /// The largest product of a level and its scale.
    pub(super) fn highest_scaled(&self, scale: &[f32; RATES]) -> f32 {
        let scaled = self.levels.iter().zip(scale).map(|(level, scale)| level * scale);
        scaled.fold(0.0, f32::max)
    }
}

/// The largest level of any rule, `16 * APART_MAX`.
const CEILING: f32 = (super::APART_MAX as f32) * 16.0;

/// When a test accuses, and where levels stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limit {
    /// The sum of the levels that accuses.
    total: f64,
    pub(super) ceiling: f32,
}

impl Limit {
    /// Accuses at an evidence of `apart`. Levels stop a little above it, so that an attack that has ended
    /// does not stay accused for long.
    pub(super) fn new(apart: u64) -> Self {
        // The levels carry rounding errors of at most 2^-20, and the factors make up for them.
        let total = apart as f64 * RATES as f64;
        Limit { total, ceiling: (total * 4.0) as f32 }
    }

    #[inline(always)]
    pub(super) fn is_reached(&self, test: &Test) -> bool {
        test.total() >= self.total
    }
}
