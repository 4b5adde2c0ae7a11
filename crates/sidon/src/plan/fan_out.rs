//! Tables of distinct elements per key: registers from a relative error, buckets from the number of large keys.
//!
//! A bucket of eight entries keeps its seven largest keys whatever other keys come: see
//! [`count::fan_out`](crate::count::fan_out). Of `n` large keys over `b` buckets, a bucket has a Poisson number,
//! `n / b` on average, and keys beyond the seventh may lose their entry.

use super::tail::poisson_at_least;
use crate::{
    Infeasible,
    count::fan_out::{PANES_MAX, REGISTERS_LEAST, REGISTERS_MAX, Shape},
};

/// Entries of a bucket that smaller keys cannot evict.
const SAFE: u64 = 7;
/// The relative standard error of one register, as in [`distinct`](super::distinct).
const ONE: f64 = 0.362;
/// The share by which few registers err more: one part in this many registers.
const FEW: f64 = 0.17;
/// The share of large keys that a plan leaves without a safe entry.
const LOST: f64 = 0.001;
/// The most large keys of a plan.
const KEYS_MAX: u64 = 1 << 32;

/// The requirements on a table of distinct elements per key.
///
/// ```
/// use sidon::plan::fan_out::Target;
///
/// // The thousand largest scanners, within 13 %, over the last one to two minutes.
/// let target = Target { panes: 2, pane: 60, ..Target::new(1_000, 0.13) };
/// assert_eq!(Target::new(1_000, 0.13).panes, 1);
/// # let _ = target;
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// The number of large keys to keep.
    pub keys: u64,
    /// The relative standard error of a large key's number, below 1.
    pub error: f64,
    /// The number of panes that an estimate covers: 1 to 16.
    pub panes: u32,
    /// The length of a pane, in the caller's unit of time. With `u64::MAX`, nothing ages.
    pub pane: u64,
}

impl Target {
    /// A table without ageing.
    pub const fn new(keys: u64, error: f64) -> Self {
        Target { keys, error, panes: 1, pane: u64::MAX }
    }
}

/// The smallest table for the target. At most one large key in a thousand has no safe entry.
///
/// ```
/// use sidon::{count::FanOut, plan::fan_out::{self, Target}};
///
/// let shape = fan_out::shape(Target::new(1_000, 0.13))?;
/// assert_eq!((shape.buckets, shape.registers), (468, 10));
/// assert!(FanOut::<[u8; 4]>::planned_bytes(shape) == 188_604);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: Target) -> Result<Shape, Infeasible> {
    let Target { keys, error, panes, pane } = target;
    Infeasible::unless_within("keys", keys, 1, KEYS_MAX)?;
    Infeasible::unless_within("panes", panes.into(), 1, PANES_MAX.into())?;
    Infeasible::unless_within("pane", pane, 1, u64::MAX)?;
    let least = deviation(REGISTERS_MAX);
    // Written so that an error that is no number is refused too.
    if !(error >= least && error < 1.0) {
        return Err(Infeasible::Rate { name: "error", got: error, least, most: 1.0 });
    }
    let enough = |registers: &u32| deviation(*registers) <= error;
    let registers = (REGISTERS_LEAST..=REGISTERS_MAX).step_by(2).find(enough);
    let registers = registers.unwrap_or(REGISTERS_MAX);
    let of = |buckets| Shape { buckets, registers, panes, pane };
    // One bucket per key is enough, and fewer buckets lose more keys.
    let (mut few, mut enough) = (0, keys);
    while enough - few > 1 {
        let middle = few + (enough - few) / 2;
        if lost(of(middle), keys) <= LOST { enough = middle } else { few = middle }
    }
    Ok(of(enough))
}

/// The relative standard error of a large key's number in a table of this shape, if the key has had its entry
/// from the start.
///
/// ```
/// use sidon::{count::fan_out::Shape, plan::fan_out};
///
/// let shape = Shape { buckets: 100, registers: 8, panes: 1, pane: u64::MAX };
/// assert!((0.12..0.14).contains(&fan_out::error(shape)));
/// ```
pub fn error(shape: Shape) -> f64 {
    deviation(shape.registers)
}

fn deviation(registers: u32) -> f64 {
    let registers = f64::from(registers);
    ONE / registers.sqrt() * (1.0 + FEW / registers)
}

/// The share of `keys` large keys that have no safe entry in a table of this shape.
///
/// ```
/// use sidon::{count::fan_out::Shape, plan::fan_out};
///
/// let shape = Shape { buckets: 1_000, registers: 8, panes: 1, pane: u64::MAX };
/// assert!(fan_out::lost(shape, 1_000) < 1e-4);
/// assert!(fan_out::lost(shape, 5_000) > 0.01);
/// ```
pub fn lost(shape: Shape, keys: u64) -> f64 {
    if keys <= SAFE {
        return 0.0;
    }
    let mean = keys as f64 / shape.buckets.max(1) as f64;
    // The mean number of keys is the sum of the chances of at least 1, 2, 3, .. keys. Without the first seven
    // terms, it is the mean number beyond the seventh.
    let first: f64 = (1..=SAFE).map(|number| poisson_at_least(mean, number)).sum();
    ((mean - first) / mean).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::Rng;

    #[test]
    fn the_smallest_shape_of_a_target_is_found() {
        for keys in [1, 7, 8, 100, 1_000, 1_000_000] {
            for registers in (REGISTERS_LEAST..=REGISTERS_MAX).step_by(2) {
                let planned = shape(Target::new(keys, deviation(registers))).unwrap();
                assert_eq!(planned.registers, registers);
                assert!(lost(planned, keys) <= LOST);
                let fewer = Shape { buckets: planned.buckets - 1, ..planned };
                assert!(planned.buckets == 1 || lost(fewer, keys) > LOST, "{keys} {planned:?}");
            }
        }
        for target in [
            Target::new(0, 0.1),
            Target::new(1 << 40, 0.1),
            Target::new(10, 0.01),
            Target::new(10, 1.0),
            Target::new(10, f64::NAN),
            Target { panes: 0, ..Target::new(10, 0.1) },
            Target { panes: 17, ..Target::new(10, 0.1) },
            Target { pane: 0, ..Target::new(10, 0.1) },
        ] {
            assert!(shape(target).is_err(), "{target:?}");
        }
    }

    #[test]
    fn keys_beyond_the_seventh_of_a_bucket_are_as_many_as_planned() {
        let (mut rng, keys) = (Rng::seeded(1), 1_000);
        for buckets in [150, 300, 500] {
            let shape = Shape { buckets, registers: 8, panes: 1, pane: u64::MAX };
            let (rounds, mut beyond, mut squares) = (2_000, 0.0, 0.0);
            for _ in 0..rounds {
                let mut fill = vec![0u64; buckets as usize];
                (0..keys).for_each(|_| fill[rng.below(buckets) as usize] += 1);
                let lost = fill.iter().map(|keys| keys.saturating_sub(SAFE)).sum::<u64>() as f64;
                beyond += lost;
                squares += lost * lost;
            }
            let (n, planned) = (f64::from(rounds), lost(shape, keys) * keys as f64);
            let (mean, mut deviation) = (beyond / n, squares / n);
            deviation = (deviation - mean * mean).max(0.0).sqrt() / n.sqrt();
            // The Poisson model of a fixed number of keys errs by about one part in the number of buckets.
            let tolerance = 6.0 * deviation + planned * 7.0 / buckets as f64;
            assert!((mean - planned).abs() < tolerance, "{buckets}: {mean}, planned {planned}");
        }
    }
}
