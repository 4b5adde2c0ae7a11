//! The gaps between the contacts of one pair, and the score that they give.
//!
//! A gap has 16 bits: exact up to 4,095 ms, then 12 significant bits and the number of bits left out. Codes have
//! the order of their gaps, so the median of the codes is that of the gaps. Code 0 is no gap.

use super::{NANOS, Regularity, Shape};
use std::time::Duration;

/// The gaps that a pair keeps.
pub(super) const KEPT: usize = 12;
/// The silent periods after which a pair may lose its entry.
const PATIENCE: u64 = 4;

/// The last contact in milliseconds, the number of contacts, and the last gaps, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gaps {
    last: u64,
    contacts: u16,
    codes: [u16; KEPT],
}

impl Gaps {
    pub(super) const BYTES: usize = 6 + 2 + 2 * KEPT;

    /// A pair with one contact.
    pub(super) fn first(now: u64) -> Self {
        Gaps { last: now, contacts: 1, codes: [0; KEPT] }
    }

    /// Adds a contact. Returns whether it counts.
    pub(super) fn see(&mut self, now: u64, shape: &Shape) -> bool {
        let Some(gap) = now.checked_sub(self.last) else { return false };
        if gap < shape.shortest {
            return false;
        }
        if gap > shape.longest {
            *self = Gaps::first(now);
            return true;
        }
        self.codes.copy_within(..KEPT - 1, 1);
        self.codes[0] = encode(gap);
        self.last = now;
        self.contacts = self.contacts.saturating_add(1);
        true
    }

    /// The milliseconds by which the pair has been silent for too long, at least 1; 0 if it has not. A pair whose last
    /// contact is in the future by more than that was counted under a wrong clock.
    pub(super) fn overdue(&self, now: u64, shape: &Shape) -> u64 {
        let (codes, gaps) = self.sorted();
        let patience = match gaps {
            0 => shape.grace,
            gaps => (decode(median(&codes[..gaps])) * PATIENCE).clamp(shape.grace, shape.longest),
        };
        self.last.abs_diff(now).saturating_sub(patience)
    }

    /// Period, jitter, number and score.
    pub(super) fn regularity(&self) -> Regularity {
        let (codes, gaps) = self.sorted();
        let contacts = self.contacts.into();
        if gaps == 0 {
            let none = Duration::ZERO;
            return Regularity { period: none, jitter: none, contacts, score: 0.0 };
        }
        let codes = &codes[..gaps];
        let period = decode(median(codes));
        let mut distances = [0; KEPT];
        for (distance, code) in distances.iter_mut().zip(codes) {
            *distance = decode(*code).abs_diff(period);
        }
        distances[..gaps].sort_unstable();
        let jitter = median(&distances[..gaps]);
        let spread = 2.0 * jitter as f64 / period as f64;
        let score = (1.0 - spread).max(0.0) * gaps as f64 / KEPT as f64;
        let [period, jitter] = [period, jitter].map(Duration::from_millis);
        Regularity { period, jitter, contacts, score }
    }

    /// The pair of two tables.
    pub(super) fn merged([one, two]: [Gaps; 2]) -> Self {
        // The order of the two tables does not matter.
        let newer = (one.last, one.contacts, one.codes) >= (two.last, two.contacts, two.codes);
        let (mut both, earlier) = if newer { (one, two) } else { (two, one) };
        let (own, more) = (both.number(), earlier.number());
        let more = more.min(KEPT - own);
        both.codes[own..own + more].copy_from_slice(&earlier.codes[..more]);
        both.contacts = both.contacts.saturating_add(earlier.contacts);
        both
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..6].copy_from_slice(&self.last.to_le_bytes()[..6]);
        bytes[6..8].copy_from_slice(&self.contacts.to_le_bytes());
        for (bytes, code) in bytes[8..].chunks_exact_mut(2).zip(self.codes) {
            bytes.copy_from_slice(&code.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, low, high, ..] = bytes;
        let mut codes = [0; KEPT];
        for (code, bytes) in codes.iter_mut().zip(bytes[8..].as_chunks::<2>().0) {
            *code = u16::from_le_bytes(*bytes);
        }
        let last = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        Gaps { last, contacts: u16::from_le_bytes([low, high]), codes }
    }

    /// Whether contacts can lead to this: gaps within the shape, newest first, and more contacts than gaps.
    pub(super) fn is_sound(&self, shape: &Shape) -> bool {
        let gaps = self.number();
        let within = |&code: &u16| (encode(shape.shortest)..=encode(shape.longest)).contains(&code);
        usize::from(self.contacts) > gaps
            && self.codes[..gaps].iter().all(within)
            && self.codes[gaps..].iter().all(|&code| code == 0)
            && self.last <= u64::MAX / NANOS
    }

    /// The number of gaps.
    fn number(&self) -> usize {
        self.codes.iter().position(|&code| code == 0).unwrap_or(KEPT)
    }

    /// The codes in ascending order, and their number.
    fn sorted(&self) -> ([u16; KEPT], usize) {
        let (mut codes, gaps) = (self.codes, self.number());
        codes[..gaps].sort_unstable();
        (codes, gaps)
    }
}

/// The lower median of sorted numbers, of which there is at least one.
fn median<T: Copy>(sorted: &[T]) -> T {
    sorted[(sorted.len() - 1) / 2]
}

/// The code of a gap below 2^42.
fn encode(gap: u64) -> u16 {
    let left_out = (64 - gap.leading_zeros()).saturating_sub(12);
    ((u64::from(left_out) << 11) + (gap >> left_out)) as u16
}

/// The smallest gap of a code.
fn decode(code: u16) -> u64 {
    let code = u64::from(code);
    if code < 1 << 12 {
        return code;
    }
    let left_out = (code >> 11) - 1;
    (code - (left_out << 11)) << left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_order_of_the_gaps_and_twelve_bits() {
        for code in 1..encode(1 << 41) {
            assert_eq!(encode(decode(code)), code);
            assert!(decode(code) < decode(code + 1));
        }
        for gap in [1, 4_095, 4_096, 60_000, 86_400_000, 1 << 40] {
            let back = decode(encode(gap));
            assert!(back <= gap && gap - back <= gap >> 11, "{gap}");
        }
    }
}
