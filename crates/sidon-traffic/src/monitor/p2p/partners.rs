//! Limits the new pairs of one host, so that one host cannot fill the map.
//!
//! The evidence about a host counts up to some hundred distinct partners. The victim of a flood has
//! a new partner in every packet, and its pairs would fill the map. While the map is crowded, a
//! host may therefore add only [`MOST`] pairs per minute. The count of a host is the smaller of two
//! counters, each shared with one host in 512 ([`count::Min`](sidon::count::Min) in its simplest
//! form).

use crate::{
    FlowKey,
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::{Key, Malformed, Seed};

/// Most new pairs of a host per minute.
const MOST: u16 = 512;
const MINUTE: u64 = 60_000_000_000;
const COUNTERS: usize = 512;
/// Bytes of the counters.
pub(super) const BYTES: u64 = 4 * COUNTERS as u64;

#[derive(Debug)]
pub(super) struct Partners {
    seed: Seed,
    rows: Box<[[u16; COUNTERS]; 2]>,
    minute: u64,
}

impl Partners {
    pub(super) fn new(seed: Seed) -> Self {
        Partners { seed, rows: Box::new([[0; COUNTERS]; 2]), minute: 0 }
    }

    /// Sets all counters to zero if `now` is in a later minute.
    pub(super) fn at(&mut self, now: u64) {
        if now / MINUTE > self.minute {
            self.minute = now / MINUTE;
            self.rows.iter_mut().for_each(|row| row.fill(0));
        }
    }

    /// Counts a new pair for both of its hosts. Returns `false` and counts nothing if a host has
    /// reached its limit.
    pub(super) fn admits(&mut self, pair: &FlowKey) -> bool {
        let ends = pair.ends().map(|host| {
            let digest = host.digest(self.seed).0 as usize;
            [digest % COUNTERS, digest / COUNTERS % COUNTERS]
        });
        let count = |at: &[usize; 2]| self.rows[0][at[0]].min(self.rows[1][at[1]]);
        if ends.iter().any(|at| count(at) >= MOST) {
            return false;
        }
        for at in ends {
            for (row, at) in self.rows.iter_mut().zip(at) {
                row[at] = row[at].saturating_add(1);
            }
        }
        true
    }
}

impl Resume for Partners {
    fn save(&self, out: &mut Out) {
        out.number(self.minute);
        self.rows.as_flattened().iter().for_each(|count| out.raw(&count.to_le_bytes()));
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.minute = bytes.number()?;
        for count in self.rows.as_flattened_mut() {
            *count = u16::from_le_bytes(bytes.array()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_many_partners_leaves_room_for_others() {
        let mut partners = Partners::new(Seed(1));
        let pair =
            |host: u32, other: u32| FlowKey::v4(host.to_be_bytes(), other.to_be_bytes(), [0; 2], 0);
        let admitted =
            (0..10_000).filter(|&other| partners.admits(&pair(1, 1_000 + other))).count();
        assert_eq!(admitted, usize::from(MOST));
        assert!((0..100).all(|other| partners.admits(&pair(2, 100_000 + other))));
        partners.at(MINUTE);
        assert!(partners.admits(&pair(1, 2)));
    }
}
