//! Lines with a table behind: how often they err, and how many lines keep the table from filling.
//!
//! Keys fall on lines at random, so a line has a Poisson number of them and spills what is beyond its
//! 31 cells, whatever came and went:
//! ```text
//!   rate = n / (lines * 65535)            spilled = lines * E[(X - 31)+],  X ~ Poisson(n / lines)
//! ```
//! | keys a line | bits a key | rate | spilled | lines that are full | strangers that read the back |
//! |---|---|---|---|---|---|
//! | 22 | 23.6 | 0.00034 | 0.3 % | 4 % | 0.2 % |
//! | 24 | 21.7 | 0.00037 | 0.8 % | 10 % | 0.55 % |
//! | 26 | 20.9 | 0.00040 | 1.8 % | 19 % | 1.3 % |
//! | 28 | 20.6 | 0.00043 | 3.5 % | 31 % | 2.6 % |
//!
//! Plans take 24: of memory little more is to be had, and one write in ten meets a full line.

use super::{
    Target,
    bloom::least,
    tail::{poisson_at_least, poisson_mean},
};
use crate::{
    Infeasible,
    member::backyard::{CELLS, Shape},
};

/// The most keys a line, on average, and the fewest that a rate may ask for.
const LOAD_MOST: f64 = 24.0;
const LOAD_LEAST: f64 = 15.0;
/// How many lines may share a bucket of the back, as a power of two: as many as leave it room.
const SHARING: [u32; 5] = [7, 6, 5, 4, 3];
/// The share of the back that may be in use, after so many standard deviations.
const BACK_MOST: f64 = 0.9;
const DEVIATIONS: f64 = 6.0;
/// How many lines may have more keys than they and their buckets of the back hold, on average.
const OVERFULL: f64 = 1e-3;

/// The smallest lines and table behind for this target: a line for every 24 keys, or a little more.
pub fn backyard(target: Target) -> Result<Shape, Infeasible> {
    target.check()?;
    let Target { keys, false_positives: got } = target;
    let line = Shape { lines: 1, sharing: 1 }.fingerprints() as f64;
    if got < LOAD_LEAST / line {
        let least = LOAD_LEAST / line;
        return Err(Infeasible::Rate { name: "false_positives", got, least, most: 1.0 });
    }
    let smallest = |sharing| {
        let lines = least(keys, |lines| {
            let shape = Shape { lines, sharing };
            keys as f64 <= LOAD_MOST * lines as f64
                && backyard_rate(shape, keys) <= got
                && back_holds(shape, keys)
        });
        Shape { lines, sharing }
    };
    let shapes = SHARING.map(smallest);
    Ok(shapes.into_iter().min_by_key(Shape::bytes).unwrap_or(shapes[0]))
}

/// The false-positive rate of a filter that holds `keys` keys; 1 for a shape that cannot be built.
pub fn backyard_rate(shape: Shape, keys: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    -(keys as f64 * (-1.0 / shape.fingerprints() as f64).ln_1p()).exp_m1()
}

/// How many of `keys` keys are in the back, on average.
pub fn backyard_spilled(shape: Shape, keys: u64) -> f64 {
    shape.lines as f64 * spilled(shape, keys, 1)
}

/// The mean of a power of how many keys a line spills.
fn spilled(shape: Shape, keys: u64, power: i32) -> f64 {
    let beyond = |count: u64| (count.saturating_sub(CELLS.into()) as f64).powi(power);
    poisson_mean(keys as f64 / shape.lines as f64, beyond)
}

fn back_holds(shape: Shape, keys: u64) -> bool {
    let load = keys as f64 / shape.lines as f64;
    if shape.lines as f64 * poisson_at_least(load, u64::from(Shape::LINE_MOST) + 1) > OVERFULL {
        return false;
    }
    let deviation = (shape.lines as f64 * spilled(shape, keys, 2)).sqrt();
    let most = backyard_spilled(shape, keys) + DEVIATIONS * deviation;
    most <= BACK_MOST * shape.back_cells() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_meet_the_target_at_twenty_four_keys_a_line() {
        let bits = |shape: Shape, keys: u64| shape.bytes() as f64 * 8.0 / keys as f64;
        for (keys, most) in [(1000, 28.0), (50_000, 22.8), (1_000_000, 22.05), (30_000_000, 21.7)] {
            for false_positives in [0.3, 0.0015, 0.0004] {
                let shape = backyard(Target { keys, false_positives }).unwrap();
                assert!(backyard_rate(shape, keys) <= false_positives);
                assert!(keys as f64 / shape.lines as f64 <= LOAD_MOST && back_holds(shape, keys));
                assert!(bits(shape, keys) <= most, "{keys} {shape:?} {}", bits(shape, keys));
            }
        }
        // Of so many lines some would have 64 keys at 24 on average.
        let keys = 1 << 45;
        let shape = backyard(Target { keys, false_positives: 0.01 }).unwrap();
        assert!(shape.lines > keys / 22, "{shape:?}");
    }

    #[test]
    fn what_lines_cannot_tell_apart_is_infeasible() {
        let refused = |rate| backyard(Target { keys: 1000, false_positives: rate }).is_err();
        assert!(!refused(2.3e-4) && refused(2.2e-4) && refused(1e-9) && refused(0.0));
    }
}
