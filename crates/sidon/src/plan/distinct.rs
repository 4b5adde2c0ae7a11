//! Counters of distinct keys: registers from a relative error, and the error of a shape.
//!
//! With many keys per register, the relative standard error of `m` registers is `0.362 / sqrt(m)`. It is the inverse
//! root of the Fisher information of a register that remembers 20 ranks below the largest. Ertl derives it. An interval
//! extends 2.65 standard errors to each side.

use crate::{
    Infeasible,
    count::distinct::{REGISTERS, Shape},
};

/// The relative standard error of one register.
const ONE: f64 = 0.362;

/// The fewest registers whose relative standard error is at most `error`, which is below 1.
///
/// ```
/// use sidon::{count::Distinct, plan::distinct};
///
/// let shape = distinct::shape(0.01)?;
/// assert_eq!(shape.registers, 1_312);
/// assert_eq!(Distinct::planned_bytes(shape), 4_592);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(error: f64) -> Result<Shape, Infeasible> {
    let (least, most) = (REGISTERS.0, REGISTERS.1);
    let smallest = self::error(Shape { registers: most });
    // Written so that an error that is no number is refused too.
    if !(error >= smallest && error < 1.0) {
        let (name, least, most) = ("error", smallest, 1.0);
        return Err(Infeasible::Rate { name, got: error, least, most });
    }
    let registers = ((ONE / error).powi(2) - 1e-9).ceil() as u32;
    Ok(Shape { registers: registers.next_multiple_of(2).clamp(least, most) })
}

/// The relative standard error of the count of many keys.
///
/// ```
/// use sidon::{count::distinct::Shape, plan::distinct};
///
/// assert!(distinct::error(Shape { registers: 1_312 }) <= 0.01);
/// ```
pub fn error(shape: Shape) -> f64 {
    ONE / f64::from(shape.registers).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_shape_of_an_error_is_found() {
        for registers in (REGISTERS.0..2_000).step_by(2).chain([1 << 19, REGISTERS.1]) {
            let planned = shape(error(Shape { registers })).unwrap();
            assert_eq!(planned, Shape { registers });
            assert!(shape(error(planned) * 1.0001).unwrap().registers <= registers);
        }
        assert_eq!(shape(0.5).unwrap().registers, REGISTERS.0);
        for error in [0.0, 1e-9, 1.0, f64::NAN, f64::INFINITY, -1.0] {
            assert!(shape(error).is_err(), "{error}");
        }
    }
}
