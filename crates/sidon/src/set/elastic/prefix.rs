//! The extra bits of a fingerprint that a cell has: a prefix of any length.
//!
//! ```text
//! a field of 6 bits:  | 1 0 1 | 1 | 0 0 |      the prefix 101
//!                     | 1 0 1 1 0 | 1 |        the prefix 10110: all that the field has room for
//!                     | 1 | 0 0 0 0 0 |        the empty prefix
//! ```
//! The lowest one ends the prefix. So the field is never zero, and a field of `E` bits has prefixes of 0 to
//! `E - 1` bits.

/// The extra bits of every fingerprint, of which a cell has a prefix.
pub(super) const EXTRA: u32 = 24;

/// The first bits of a fingerprint's extra bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) bits: u64,
    pub(super) len: u32,
}

impl Prefix {
    /// The first `len` of a fingerprint's extra bits.
    pub(super) fn of(extra: u64, len: u32) -> Self {
        Prefix { bits: extra >> (EXTRA - len), len }
    }

    /// Whether these are the first of a fingerprint's extra bits.
    pub(super) fn begins(self, extra: u64) -> bool {
        Prefix::of(extra, self.len) == self
    }

    /// The first bits of this prefix, at most `len`.
    pub(super) fn cut(self, len: u32) -> Self {
        let lost = self.len.saturating_sub(len);
        Prefix { bits: self.bits >> lost, len: self.len - lost }
    }

    /// A field of `width` bits, which is longer than the prefix.
    pub(super) fn to_field(self, width: u32) -> u64 {
        (self.bits << 1 | 1) << (width - 1 - self.len)
    }

    /// The prefix in a field of `width` bits. `None` for 0.
    pub(super) fn from_field(field: u64, width: u32) -> Option<Self> {
        let end = (field != 0).then(|| field.trailing_zeros())?;
        Some(Prefix { bits: field >> end >> 1, len: width - 1 - end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_but_zero_is_a_prefix_of_its_own() {
        for width in 1..=12 {
            assert_eq!(Prefix::from_field(0, width), None);
            for field in 1..1u64 << width {
                let prefix = Prefix::from_field(field, width).unwrap();
                assert!(prefix.len < width && prefix.bits >> prefix.len == 0);
                assert_eq!(prefix.to_field(width), field);
                // More room loses nothing. Less room cuts.
                assert_eq!(prefix.to_field(width + 3), field << 3);
                for len in 0..width {
                    let cut = prefix.cut(len);
                    assert_eq!(
                        (cut.len, cut.bits),
                        (len.min(prefix.len), prefix.bits >> (prefix.len - cut.len))
                    );
                }
                let extra = prefix.bits << (EXTRA - prefix.len) | 5;
                assert!(prefix.begins(extra) && prefix.cut(1).begins(extra));
                assert!(prefix.len == 0 || !prefix.begins(extra ^ 1 << (EXTRA - prefix.len)));
            }
        }
    }
}
