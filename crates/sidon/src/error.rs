//! How a structure says no.
//!
//! Three occasions, three types: a write that did not happen ([`Refused`]), a target or shape that
//! cannot be had ([`Infeasible`]), bytes that are not a structure ([`Malformed`]).

use std::fmt;

/// Why a write was refused. Whoever returns this has changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Every cell that the key may use is taken, and none could be made free.
    Full {
        /// How many cells are in use.
        stored: u64,
        /// How many there are.
        cells: u64,
    },
    /// A counter that the write would raise is at its ceiling.
    Overflow {
        /// The largest value a counter of this width holds.
        ceiling: u64,
    },
    /// The number is not a key of the universe `0..universe`.
    Outside {
        /// How many keys there are.
        universe: u64,
    },
    /// There is nothing to remove: the key is visibly absent.
    NotStored,
    /// Counters raised by conservative update are not sums of amounts: nothing can be taken out of
    /// them again.
    NotSums,
    /// More than one cell may be the key's, and taking the wrong one would lose another key.
    Ambiguous,
    /// A merge of structures that differ in this respect.
    Mismatch {
        /// What differs: `"seed"` or the name of a field of the shape.
        field: &'static str,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Full { stored, cells } => {
                write!(f, "no cell is free for the key: {stored} of {cells} are in use")
            }
            Refused::Overflow { ceiling } => {
                write!(f, "a counter is at its ceiling of {ceiling}")
            }
            Refused::Outside { universe } => {
                write!(f, "the key is not below the universe's size of {universe}")
            }
            Refused::NotStored => write!(f, "the key is not stored"),
            Refused::NotSums => {
                write!(f, "under conservative update the counters are not sums of amounts")
            }
            Refused::Ambiguous => write!(f, "more than one cell may be the key's"),
            Refused::Mismatch { field } => {
                write!(f, "the two structures differ in their {field}")
            }
        }
    }
}

impl std::error::Error for Refused {}

/// Why a plan or a shape cannot be had.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Infeasible {
    /// A parameter lies outside what the structure allows.
    Parameter {
        /// The name of the parameter.
        name: &'static str,
        /// What was asked for.
        got: f64,
        /// The smallest value allowed.
        least: f64,
        /// The largest value allowed.
        most: f64,
    },
    /// The operating system does not give this much memory, or no machine could address it.
    Memory {
        /// The bytes asked for; `u64::MAX` if their number does not fit 64 bits.
        bytes: u64,
    },
}

impl Infeasible {
    /// `Ok` if `least <= got <= most`, else the parameter by its name.
    pub(crate) fn unless_within(
        name: &'static str,
        got: u64,
        least: u64,
        most: u64,
    ) -> Result<(), Infeasible> {
        if (least..=most).contains(&got) {
            return Ok(());
        }
        Err(Infeasible::Parameter { name, got: got as f64, least: least as f64, most: most as f64 })
    }
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Infeasible::Parameter { name, got, least, most } => {
                write!(f, "{name} is {}, and must be ", Number(*got))?;
                let (least, most) = (Number(*least), Number(*most));
                match (least.is_limit(), most.is_limit()) {
                    (true, true) if least.0 == most.0 => write!(f, "{least}"),
                    (true, true) => write!(f, "from {least} to {most}"),
                    (true, false) => write!(f, "at least {least}"),
                    (false, true) => write!(f, "at most {most}"),
                    (false, false) => write!(f, "another number"),
                }
            }
            Infeasible::Memory { bytes: u64::MAX } => {
                write!(f, "the table would not fit any address space")
            }
            Infeasible::Memory { bytes } => {
                write!(f, "the system does not give the {bytes} bytes that the table needs")
            }
        }
    }
}

impl std::error::Error for Infeasible {}

/// A number in a message: an exponent replaces more than 15 digits.
struct Number(f64);

impl Number {
    /// Whether this is a limit at all. The ends of `u64` and `f64` are not.
    fn is_limit(&self) -> bool {
        self.0.abs() < u64::MAX as f64
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Number(number) = *self;
        if number == 0.0 || (1e-4..1e15).contains(&number.abs()) || !number.is_finite() {
            write!(f, "{number}")
        } else {
            write!(f, "{number:e}")
        }
    }
}

/// Why bytes are not a structure.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Malformed {
    /// The bytes end before the structure does, or go on after it.
    Length {
        /// How many bytes the header asks for.
        expected: u64,
        /// How many there are.
        got: u64,
    },
    /// The first four bytes are not the magic number.
    Magic,
    /// Written by a version of the format that this library does not read.
    Version {
        /// The version found.
        got: u16,
    },
    /// The bytes hold another kind of structure.
    Kind {
        /// The kind that the caller asked for.
        expected: u16,
        /// The kind found.
        got: u16,
    },
    /// Digests were made by a function that this library does not have.
    Hash {
        /// The function's number in the format.
        got: u16,
    },
    /// The seed given is not the seed the structure was built under.
    Seed,
    /// The checksum does not fit the bytes.
    Checksum,
    /// A field has a value that no structure has.
    Field {
        /// The field by its name in the format.
        name: &'static str,
    },
    /// A field of a part of the bytes has a value that no structure has.
    Part {
        /// The part by its name in the format.
        part: &'static str,
        /// The field by its name in that part.
        field: &'static str,
    },
    /// The shape is well formed but cannot be built here.
    Shape(Infeasible),
}

impl From<Infeasible> for Malformed {
    fn from(why: Infeasible) -> Self {
        Malformed::Shape(why)
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Length { expected, got } => {
                write!(f, "expected {expected} bytes, got {got}")
            }
            Malformed::Magic => write!(f, "not a sidon structure: the magic number is missing"),
            Malformed::Version { got } => write!(f, "format version {got} is not known"),
            Malformed::Kind { expected, got } => {
                write!(f, "expected a structure of kind {expected}, got kind {got}")
            }
            Malformed::Hash { got } => write!(
                f,
                "its digests are of hash function {got}, and this version has number {} only; build \
                 the structure again with this version",
                crate::hash::KEYED_AES
            ),
            Malformed::Seed => write!(f, "written under another seed"),
            Malformed::Checksum => write!(f, "the checksum does not match the bytes"),
            Malformed::Field { name } => write!(f, "the field {name} has an impossible value"),
            Malformed::Part { part, field } => {
                write!(f, "the field {field} of the part {part} has an impossible value")
            }
            Malformed::Shape(why) => write!(f, "the shape cannot be built: {why}"),
        }
    }
}

impl std::error::Error for Malformed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Malformed::Shape(why) => Some(why),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_whole_numbers_and_absent_ones_are_not_printed() {
        let text = |got, least, most| {
            Infeasible::Parameter { name: "memory", got, least, most }.to_string()
        };
        assert_eq!(
            text(102_400.0, 262_144.0, f64::MAX),
            "memory is 102400, and must be at least 262144"
        );
        assert_eq!(text(9.0, f64::MIN, 8.0), "memory is 9, and must be at most 8");
        assert_eq!(text(2.0, 1e-12, 1.0), "memory is 2, and must be from 1e-12 to 1");
        assert_eq!(text(1.0, 0.0, 0.0), "memory is 1, and must be 0");
        assert_eq!(text(1e300, 1.0, 2.0), "memory is 1e300, and must be from 1 to 2");
        assert_eq!(text(f64::NAN, 0.5, 2.0), "memory is NaN, and must be from 0.5 to 2");
    }
}
