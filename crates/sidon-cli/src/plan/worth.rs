//! Operations that a structure supports, cache lines per lookup, and memory above the lower bound.
//!
//! The floor is the information-theoretic lower bound. A set with false-positive rate `p` needs
//! `log2(1/p)` bits per key, and a state map `log2(states)` more. A set of at most `members` numbers
//! below `universe`, without false positives, needs the logarithm of the number of such sets.

use super::{member::Row, state_maps::StateShape};
use serde_json::{Value, json};
use sidon::{
    plan::{SetShape, zone::Target},
    state::Fingerprint,
};

/// The columns that the tables of sets and of state maps share.
pub(super) struct Worth {
    /// Cache lines that a lookup of a member reads, without the overflow table and the stash.
    pub(super) lines: u64,
    /// Whether keys can be removed.
    pub(super) deletes: bool,
    /// Whether two structures can be merged.
    pub(super) merges: bool,
    /// Whether it can grow with its keys. A table of fingerprints can if its shape has `growths`. An elastic
    /// set keeps its memory, so it does not grow.
    pub(super) grows: bool,
    /// Whether idle keys expire.
    pub(super) ages: bool,
}

const LINE: u64 = 64;

impl Worth {
    /// The operations of a set.
    pub(super) fn of_member(row: &Row) -> Self {
        let grows = matches!(row.shape, Some(SetShape::DLeft(_)) | None);
        Worth { lines: row.lines, deletes: row.deletes(), merges: true, grows, ages: false }
    }

    /// The operations of a state map.
    pub(super) fn of_state(shape: Option<StateShape>) -> Self {
        let (lines, ages) = match shape {
            // A lookup reads the pair of the flow and each state.
            Some(StateShape::Direct(shape)) => {
                (u64::from(shape.hashes) * u64::from(shape.states), shape.timed)
            }
            Some(StateShape::Stateful(shape)) => {
                let timed = matches!(shape.keeping, sidon::state::stateful::Keeping::Timed);
                (shape.hashes.into(), timed)
            }
            Some(StateShape::Fingerprint(shape)) => {
                let buckets = u64::from(shape.subtables) * shape.buckets;
                let lines = lines_of(Fingerprint::planned_bytes(shape) / buckets.max(1));
                (u64::from(shape.subtables) * lines, true)
            }
            _ => (2, false),
        };
        let grows = matches!(shape, Some(StateShape::Fingerprint(_)) | None);
        Worth { lines, deletes: true, merges: true, grows, ages }
    }

    /// The heads of [`cells`](Self::cells).
    pub(super) const HEAD: [&str; 4] = ["lines", "deletes", "grows", "ages"];

    /// The cells of a table row. All of these structures can be merged, so no cell says so.
    pub(super) fn cells(&self) -> [String; 4] {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let Worth { lines, deletes, grows, ages, .. } = *self;
        [lines.to_string(), yes(deletes), yes(grows), yes(ages)]
    }

    /// Adds these fields to a row of JSON, with the floor in bits and the excess above it.
    pub(super) fn add_to(&self, row: &mut Value, bits: f64, floor: f64) {
        row["floor_bits"] = json!(floor);
        row["excess"] = json!(bits / floor - 1.0);
        row["lines"] = json!(self.lines);
        row["deletes"] = json!(self.deletes);
        row["merges"] = json!(self.merges);
        row["grows"] = json!(self.grows);
        row["ages"] = json!(self.ages);
    }
}

/// The most cache lines that a bucket of `bytes` bytes can overlap.
fn lines_of(bytes: u64) -> u64 {
    let aligned = LINE.is_multiple_of(bytes.max(1)) || bytes.is_multiple_of(LINE);
    bytes.div_ceil(LINE).max(1) + u64::from(!aligned)
}

/// How far `bits` is above the floor, in per cent.
pub(super) fn excess(bits: f64, floor: f64) -> String {
    format!("{:+.0} %", 100.0 * (bits / floor - 1.0))
}

/// The floor of a set, in bits per key.
pub(super) fn member_floor(false_positives: f64) -> f64 {
    -false_positives.log2()
}

/// The floor of a state map, in bits per flow.
pub(super) fn state_floor(states: u32, error: f64) -> f64 {
    -error.log2() + f64::from(states).log2()
}

/// The floor of a set without false positives, in bits: the logarithm of the number of sets of at
/// most `members` numbers.
pub(super) fn zone_floor(target: Target) -> f64 {
    let n = target.universe as f64;
    let (mut sets, mut all) = (1.0f64, 1.0f64);
    let mut scale = 0.0;
    for i in 0..target.members {
        sets *= (n - i as f64) / (i + 1) as f64;
        all += sets;
        // Factors of two move to `scale` before the sum overflows.
        if all > 1e200 {
            (sets, all, scale) = (sets * 2f64.powi(-600), all * 2f64.powi(-600), scale + 600.0);
        }
    }
    all.log2() + scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_logarithms_of_what_must_be_told_apart() {
        assert!((member_floor(1.0 / 1024.0) - 10.0).abs() < 1e-12);
        assert!((state_floor(8, 1.0 / 1024.0) - 13.0).abs() < 1e-12);
        // 1 + 256 + 32640 + 2763520 sets.
        let floor = zone_floor(Target { universe: 256, members: 3 });
        assert!((floor - 2_796_417f64.log2()).abs() < 1e-9, "{floor}");
        // All subsets of 1000, far beyond what a float holds.
        let floor = zone_floor(Target { universe: 1000, members: 1000 });
        assert!((floor - 1000.0).abs() < 1e-6, "{floor}");
    }

    #[test]
    fn buckets_that_straddle_a_line_count_two() {
        assert_eq!([8, 16, 32, 64, 128].map(lines_of), [1, 1, 1, 1, 2]);
        assert_eq!([17, 13, 65].map(lines_of), [2, 2, 3]);
    }
}
