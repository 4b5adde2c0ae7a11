//! Sets: which structure, what size, what it costs.

use super::{
    Prefer, Target, backyard, bh, blocked, bloom, counting, dleft, elastic, multilayer, variable,
};
use crate::{
    Infeasible,
    bucket::bucket_bytes,
    set::{self, Spread},
    simd::LINE,
};

/// A set that meets a target, and its cost.
#[derive(Debug, Clone, PartialEq)]
pub struct SetRow {
    /// The bytes of its table.
    pub bytes: u64,
    /// The false-positive rate with all keys stored.
    pub false_positives: f64,
    /// The cache lines that a lookup of a stored key reads, without the overflow table.
    pub lines: u64,
    /// The integers to build it from.
    pub shape: SetShape,
}

/// The shape of any set. [`AnySet::new`](crate::set::AnySet::new) builds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum SetShape {
    /// A [`set::Bloom`].
    Bloom(set::bloom::Shape),
    /// A [`set::Blocked`].
    Blocked(set::blocked::Shape),
    /// A [`set::Counting`].
    Counting(set::counting::Shape),
    /// A [`set::Variable`].
    Variable(set::variable::Shape),
    /// A [`set::Bh`].
    Bh(set::bh::Shape),
    /// A [`set::Multilayer`].
    Multilayer(set::multilayer::Shape),
    /// A [`set::DLeft`].
    DLeft(set::dleft::Shape),
    /// A [`set::Backyard`].
    Backyard(set::backyard::Shape),
    /// A [`set::Elastic`].
    Elastic(set::elastic::Shape),
}

impl SetShape {
    /// The name of the structure in tables and JSON: `"bloom"`, `"dleft"` and so on.
    #[doc(hidden)]
    pub fn name(&self) -> &'static str {
        match self {
            SetShape::Bloom(_) => "bloom",
            SetShape::Blocked(_) => "blocked",
            SetShape::Counting(_) => "counting",
            SetShape::Variable(_) => "variable",
            SetShape::Bh(_) => "bh",
            SetShape::Multilayer(_) => "multilayer",
            SetShape::DLeft(_) => "dleft",
            SetShape::Backyard(_) => "backyard",
            SetShape::Elastic(_) => "elastic",
        }
    }

    /// The bytes of the table.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            SetShape::Bloom(shape) => shape.bytes(),
            SetShape::Blocked(shape) => shape.bytes(),
            SetShape::Counting(shape) => shape.bytes(),
            SetShape::Variable(shape) => shape.bytes(),
            SetShape::Bh(shape) => shape.bytes(),
            SetShape::Multilayer(shape) => shape.bytes(),
            SetShape::DLeft(shape) => shape.bytes(),
            SetShape::Backyard(shape) => shape.bytes(),
            SetShape::Elastic(shape) => shape.bytes(),
        }
    }

    fn rate(&self, keys: u64) -> Result<f64, Infeasible> {
        match *self {
            SetShape::Bloom(shape) => Ok(bloom::rate(shape, keys)),
            SetShape::Blocked(shape) => Ok(blocked::rate(shape, keys)),
            SetShape::Counting(shape) => Ok(counting::rate(shape, keys)),
            SetShape::Variable(shape) => variable::rate(shape, keys),
            SetShape::Bh(shape) => bh::rate(shape, keys),
            SetShape::Multilayer(shape) => multilayer::rate(shape, keys),
            SetShape::DLeft(shape) => Ok(dleft::rate(shape, keys)),
            SetShape::Backyard(shape) => Ok(backyard::rate(shape, keys)),
            SetShape::Elastic(shape) => Ok(elastic::rate(shape, keys)),
        }
    }

    fn lines(&self) -> u64 {
        let spread = |spread, hashes: u32| match spread {
            Spread::Anywhere => u64::from(hashes),
            Spread::Lines(lines) => lines.min(hashes).into(),
        };
        match self {
            SetShape::Bloom(shape) => shape.hashes.into(),
            SetShape::Blocked(_) | SetShape::Backyard(_) => 1,
            SetShape::Counting(shape) => spread(shape.spread, shape.hashes),
            SetShape::Variable(shape) => spread(shape.spread, shape.hashes),
            SetShape::Bh(shape) => spread(shape.spread, shape.hashes),
            SetShape::Multilayer(shape) => spread(shape.spread, shape.hashes),
            // A bucket is a line or a divisor of one.
            SetShape::Elastic(shape) => shape.subtables.into(),
            SetShape::DLeft(shape) => {
                // A bucket that is no divisor or multiple of a line may overlap one line more.
                let (bytes, line) = (bucket_bytes(shape.cells, shape.width), LINE as u64);
                let aligned = line.is_multiple_of(bytes) || bytes.is_multiple_of(line);
                u64::from(shape.subtables) * (bytes.div_ceil(line) + u64::from(!aligned))
            }
        }
    }
}

/// The best set for the target: the smallest, or with [`Prefer::Speed`] the one that reads the fewest
/// cache lines and, of those, the smallest.
///
/// Keys that never leave are stored in a Bloom filter, into which a key can be inserted any number of
/// times. In all other sets, each insertion stores one more copy. Only d-left filters grow. The result is
/// never a [`set::Elastic`]: its remainders change their length for more keys than `target` plans.
///
/// ```
/// use sidon::{Seed, set::AnySet, plan::{self, Prefer, SetShape, Target}};
///
/// // Fixed, without deletes: a Bloom filter of 14.4 bits per key.
/// let target = Target::new(100_000, 0.001);
/// let row = plan::set(target)?;
/// assert!(matches!(row.shape, SetShape::Bloom(_)) && row.bytes * 80 / 100_000 == 143);
/// // With deletes: a d-left filter, little larger. Fast, with deletes: one cache line per lookup.
/// let target = Target { deletes: true, ..target };
/// assert_eq!(plan::set(target)?.shape.name(), "dleft");
/// let fast = plan::set(Target { prefer: Prefer::Speed, ..target })?;
/// assert_eq!((fast.shape.name(), fast.lines), ("backyard", 1));
///
/// // Ten times as many keys as planned fit a set with four doublings.
/// let shape = plan::set(Target { growth: 4, ..Target::new(1_000, 0.001) })?.shape;
/// let mut set = AnySet::new(shape, Seed(42))?;
/// for key in 0..10_000u64 {
///     set.insert(&key)?;
/// }
/// assert!((0..10_000u64).all(|key| set.contains(&key)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set(target: Target) -> Result<SetRow, Infeasible> {
    target.check()?;
    let shapes = if target.deletes || target.growth > 0 {
        removable(target)?
    } else {
        permanent(target).collect()
    };
    let cost = |row: &SetRow| match target.prefer {
        Prefer::Memory => (0, row.bytes),
        Prefer::Speed => (row.lines, row.bytes),
    };
    let best = rows(shapes, target)?.into_iter().min_by_key(cost);
    best.ok_or(Infeasible::Memory { bytes: u64::MAX })
}

/// Every set that meets the target, in every layout, the smallest first. `prefer` makes no difference.
/// A [`set::Elastic`] is listed for a target without growth.
///
/// ```
/// use sidon::plan::{self, Target};
///
/// let rows = plan::sets(Target::new(1_000_000, 0.001))?;
/// assert!(rows.is_sorted_by_key(|row| row.bytes));
/// assert!(rows.iter().all(|row| row.false_positives <= 0.001));
/// // Bloom filters need 14.377 bits per key. Counting filters need four times as many.
/// let bits = |name| rows.iter().find(|row| row.shape.name() == name).map(|row| row.bytes / 125);
/// assert_eq!((bits("bloom"), bits("counting")), (Some(14_377), Some(57_510)));
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn sets(target: Target) -> Result<Vec<SetRow>, Infeasible> {
    target.check()?;
    // More keys would raise the rate of an elastic set.
    let elastic = (target.growth == 0).then(|| elastic::shape(target).ok()).flatten();
    let shapes = permanent(target).chain(removable(target)?);
    let mut rows = rows(shapes.chain(elastic.map(SetShape::Elastic)), target)?;
    rows.sort_by_key(|row| row.bytes);
    Ok(rows)
}

/// The sets that keys cannot leave.
fn permanent(target: Target) -> impl Iterator<Item = SetShape> {
    let shapes =
        [bloom::shape(target).map(SetShape::Bloom), blocked::shape(target).map(SetShape::Blocked)];
    shapes.into_iter().flatten()
}

/// The sets that keys can leave, in every layout. Some layouts have no shape for the lowest rates.
fn removable(target: Target) -> Result<Vec<SetShape>, Infeasible> {
    let small = Target { prefer: Prefer::Memory, ..target };
    let fast = Target { prefer: Prefer::Speed, ..target };
    let smallest = dleft::shape(small, 0);
    if target.growth > 0 {
        // No other set grows, and no other layout of this one reaches lower rates.
        smallest.clone()?;
    }
    let shapes = [
        counting::shape(small).map(SetShape::Counting),
        counting::shape(fast).map(SetShape::Counting),
        variable::shape(small).map(SetShape::Variable),
        variable::shape(fast).map(SetShape::Variable),
        bh::shape(target).map(SetShape::Bh),
        multilayer::shape(target).map(SetShape::Multilayer),
        dleft::shape(fast, 2).map(SetShape::DLeft),
        dleft::shape(small, 2).map(SetShape::DLeft),
        smallest.map(SetShape::DLeft),
        backyard::shape(target).map(SetShape::Backyard),
    ];
    Ok(shapes.into_iter().flatten().collect())
}

/// The costs of the shapes, each shape once.
fn rows(
    shapes: impl IntoIterator<Item = SetShape>,
    target: Target,
) -> Result<Vec<SetRow>, Infeasible> {
    let mut rows: Vec<SetRow> = Vec::new();
    for shape in shapes {
        if rows.iter().any(|row| row.shape == shape) {
            continue;
        }
        let (bytes, false_positives) = (shape.bytes(), shape.rate(target.keys << target.growth)?);
        rows.push(SetRow { bytes, false_positives, lines: shape.lines(), shape });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deletes(row: &SetRow) -> bool {
        !matches!(row.shape, SetShape::Bloom(_) | SetShape::Blocked(_))
    }

    #[test]
    #[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
    fn rows_meet_the_target_and_come_smallest_first() {
        for keys in [1, 100, 1_000_000, 1 << 33] {
            for false_positives in [0.5, 0.01, 1e-6, 1e-8] {
                let rows = sets(Target::new(keys, false_positives)).unwrap();
                assert!(rows.is_sorted_by_key(|row| row.bytes));
                assert!(rows.iter().all(|row| row.false_positives <= false_positives));
                let smallest = rows.iter().find(|row| deletes(row)).unwrap();
                // At a rate of one half, a few counters per key are smaller still.
                let dleft = matches!(smallest.shape, SetShape::DLeft(_) | SetShape::Elastic(_));
                assert!(keys < 1000 || false_positives > 0.1 || dleft, "{rows:?}");
            }
        }
    }

    #[test]
    fn the_best_set_has_what_the_target_needs_at_the_least_cost() {
        for keys in [10, 30_000] {
            for (removes, growth) in [(false, 0), (true, 0), (false, 2), (true, 5)] {
                let target = Target { deletes: removes, growth, ..Target::new(keys, 1e-3) };
                let mut rows = sets(target).unwrap();
                rows.retain(|row| !matches!(row.shape, SetShape::Elastic(_)));
                let usable = |row: &&SetRow| {
                    (!removes || deletes(row))
                        && (growth == 0 || matches!(row.shape, SetShape::DLeft(_)))
                };
                assert!(rows.iter().all(|row| usable(&row)), "{rows:?}");
                let small = set(target).unwrap();
                let fast = set(Target { prefer: Prefer::Speed, ..target }).unwrap();
                assert!(rows.contains(&small) && rows.contains(&fast));
                assert!(small.bytes <= fast.bytes && fast.lines <= small.lines);
                if removes || growth > 0 {
                    let best = |row: &SetRow| small.bytes <= row.bytes && fast.lines <= row.lines;
                    assert!(rows.iter().all(best));
                } else {
                    assert!(!deletes(&small) && !deletes(&fast));
                }
            }
        }
    }

    #[test]
    fn a_rate_that_digests_cannot_distinguish_is_infeasible() {
        let target = Target::new(1 << 40, 1e-9);
        assert!(matches!(sets(target), Err(Infeasible::Rate { least, .. }) if least > 9e-7));
        let grows = Target { growth: 30, ..Target::new(1 << 10, 1e-9) };
        assert!(matches!(set(grows), Err(Infeasible::Rate { least, .. }) if least > 9e-7));
        assert!(set(Target { growth: 40, ..Target::new(1 << 10, 0.1) }).is_err());
    }
}
