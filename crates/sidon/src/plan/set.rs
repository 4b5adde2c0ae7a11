//! Which structure, what size, what it will cost.

use super::{
    Target, backyard, backyard_rate, bh, bh_rate, blocked, blocked_rate, bloom, bloom_rate,
    counting, counting_in_lines, counting_rate, dleft_fast, dleft_rate, dleft_small,
    dleft_smallest, multilayer, multilayer_rate, variable, variable_in_lines, variable_rate,
};
use crate::{
    Infeasible,
    cells::Packed,
    member::{
        backyard as backyard_filter, bh as bh_filter, blocked as blocked_filter,
        bloom as bloom_filter, counting as counting_filter, dleft as dleft_filter,
        multilayer as multilayer_filter, variable as variable_filter,
    },
    probe::LINE,
};

/// A structure that meets a target, and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The bytes of its table.
    pub bytes: u64,
    /// The false-positive rate it will have with all keys stored.
    pub false_positives: f64,
    /// The integers to build it from.
    pub shape: Shape,
}

/// The shape of any structure that answers membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// A [`member::Bloom`](crate::member::Bloom).
    Bloom(bloom_filter::Shape),
    /// A [`member::Blocked`](crate::member::Blocked).
    Blocked(blocked_filter::Shape),
    /// A [`member::Counting`](crate::member::Counting).
    Counting(counting_filter::Shape),
    /// A [`member::Variable`](crate::member::Variable).
    Variable(variable_filter::Shape),
    /// A [`member::Bh`](crate::member::Bh).
    Bh(bh_filter::Shape),
    /// A [`member::Multilayer`](crate::member::Multilayer).
    Multilayer(multilayer_filter::Shape),
    /// A [`member::DLeft`](crate::member::DLeft).
    DLeft(dleft_filter::Shape),
    /// A [`member::Backyard`](crate::member::Backyard).
    Backyard(backyard_filter::Shape),
    /// The plain alternative, not ours: a hash table of 64-bit digests with a byte of control a
    /// slot, a power of two of slots and at most seven in eight of them full.
    HashSet {
        /// How many slots it has.
        slots: u64,
    },
}

impl Shape {
    /// The structure's name in tables and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Shape::Bloom(_) => "bloom",
            Shape::Blocked(_) => "blocked",
            Shape::Counting(_) => "counting",
            Shape::Variable(_) => "variable",
            Shape::Bh(_) => "bh",
            Shape::Multilayer(_) => "multilayer",
            Shape::DLeft(_) => "dleft",
            Shape::Backyard(_) => "backyard",
            Shape::HashSet { .. } => "hash_set",
        }
    }

    /// Whether keys can leave.
    pub fn deletes(&self) -> bool {
        !matches!(self, Shape::Bloom(_) | Shape::Blocked(_))
    }
}

/// Every structure that meets the target, cheapest first.
pub fn members(target: Target) -> Result<Vec<Member>, Infeasible> {
    let keys = target.keys;
    let mut rows = Vec::new();

    let shape = bloom(target)?;
    let bytes = Packed::payload_bytes(shape.bits, 1)?;
    let false_positives = bloom_rate(shape, keys);
    rows.push(Member { bytes, false_positives, shape: Shape::Bloom(shape) });

    // Its digest word is too narrow for the lowest rates: then it is no alternative.
    if let Ok(shape) = blocked(target) {
        let bytes = shape.lines * LINE as u64;
        let false_positives = blocked_rate(shape, keys);
        rows.push(Member { bytes, false_positives, shape: Shape::Blocked(shape) });
    }

    // The smallest, and one with few lines a key.
    for plan in [counting, counting_in_lines] {
        let shape = plan(target)?;
        let bytes = Packed::payload_bytes(shape.counters, shape.width)?;
        let false_positives = counting_rate(shape, keys);
        rows.push(Member { bytes, false_positives, shape: Shape::Counting(shape) });
    }

    for plan in [variable, variable_in_lines] {
        let shape = plan(target)?;
        let bytes = Packed::payload_bytes(shape.counters, shape.width)?;
        let false_positives = variable_rate(shape, keys)?;
        let row = Member { bytes, false_positives, shape: Shape::Variable(shape) };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }

    let shape = bh(target)?;
    let bytes = Packed::payload_bytes(shape.cells, shape.width())?;
    let false_positives = bh_rate(shape, keys)?;
    rows.push(Member { bytes, false_positives, shape: Shape::Bh(shape) });

    let shape = multilayer(target)?;
    let (bytes, false_positives) = (shape.bytes(), multilayer_rate(shape, keys)?);
    rows.push(Member { bytes, false_positives, shape: Shape::Multilayer(shape) });

    // The fast layout, the smallest with counters, the smallest. The lowest rates are beyond their
    // cells of 32 bits, and now and then two of them are the same.
    for plan in [dleft_fast, dleft_small, dleft_smallest] {
        let Ok(shape) = plan(target) else { continue };
        let (bytes, false_positives) = (shape.bytes(), dleft_rate(shape, keys));
        let row = Member { bytes, false_positives, shape: Shape::DLeft(shape) };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }

    // Its values are too short for the lower rates.
    if let Ok(shape) = backyard(target) {
        let (bytes, false_positives) = (shape.bytes(), backyard_rate(shape, keys));
        rows.push(Member { bytes, false_positives, shape: Shape::Backyard(shape) });
    }

    let slots = (keys.div_ceil(7) * 8).next_power_of_two();
    let false_positives = keys as f64 / 2f64.powi(64);
    let shape = Shape::HashSet { slots };
    rows.push(Member { bytes: slots * 9, false_positives, shape });

    rows.sort_by_key(|row| row.bytes);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
    fn rows_meet_the_target_and_come_cheapest_first() {
        for keys in [1, 100, 1_000_000, 1 << 33] {
            for false_positives in [0.5, 0.01, 1e-6, 1e-8] {
                let rows = members(Target { keys, false_positives }).unwrap();
                assert!(rows.is_sorted_by_key(|row| row.bytes));
                assert!(rows.iter().all(|row| row.false_positives <= false_positives));
                let smallest = rows.iter().find(|row| row.shape.deletes()).unwrap();
                // Where every other stranger may pass, a few counters a key are smaller still.
                let dleft = matches!(smallest.shape, Shape::DLeft(_));
                assert!(keys < 1000 || false_positives > 0.1 || dleft, "{rows:?}");
            }
        }
    }

    #[test]
    fn a_rate_that_digests_cannot_tell_apart_is_infeasible() {
        let target = Target { keys: 1 << 40, false_positives: 1e-9 };
        assert!(matches!(members(target), Err(Infeasible::Rate { least, .. }) if least > 9e-7));
    }
}
