//! How a structure says no.
//!
//! Three occasions, three types: a write that did not happen ([`Refused`]), a target or shape that
//! cannot be had ([`Infeasible`]), bytes that are not a structure ([`Malformed`]).

use crate::saved::kinds::Kind;
use std::fmt;

/// Why a write was refused. A refused write has changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Every cell that the key may use is taken, and none could be made free.
    Full {
        /// How many cells are in use.
        stored: u64,
        /// How many cells there are.
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
    /// Keys cannot leave this kind of set.
    Permanent,
    /// Counters raised by conservative update, or rounded by a decay, are not sums of amounts. Nothing
    /// can be subtracted from them.
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
            Refused::Full { cells: 0, .. } => write!(
                f,
                "there is no room for exceptions; build the set or map with `with_exceptions`"
            ),
            Refused::Full { stored, cells } => {
                write!(
                    f,
                    "no cell is free for the key: {stored} of {cells} cells are in use; remove \
                     keys or build a larger table"
                )
            }
            Refused::Overflow { ceiling } => {
                write!(
                    f,
                    "a counter of the key would exceed its ceiling of {ceiling}; build a table \
                     with wider counters"
                )
            }
            Refused::Outside { universe } => {
                write!(f, "the key or state is not a number below {universe}")
            }
            Refused::NotStored => {
                write!(f, "the key is not stored, so it cannot be modified or removed")
            }
            Refused::Permanent => write!(
                f,
                "keys cannot leave a Bloom filter; plan a set with deletes or take a counting filter"
            ),
            Refused::NotSums => {
                write!(
                    f,
                    "amounts cannot be subtracted after a conservative update or a decay; build a table \
                     with a plain update, and do not decay it"
                )
            }
            Refused::Ambiguous => write!(
                f,
                "more than one cell may be the key's, and clearing the wrong one would lose \
                 another key; let ageing clear it, or build the table with permuted fingerprints"
            ),
            Refused::Mismatch { field } => {
                write!(
                    f,
                    "the two structures differ in their {field}; build both with one shape and \
                     one seed"
                )
            }
        }
    }
}

impl std::error::Error for Refused {}

/// Why a plan, a shape or a structure of given keys is not possible.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Infeasible {
    /// A whole number lies outside its range.
    OutOfRange {
        /// The name of the parameter.
        name: &'static str,
        /// The number given.
        got: u64,
        /// The smallest number allowed.
        least: u64,
        /// The largest number allowed; `u64::MAX` if there is no limit.
        most: u64,
    },
    /// A rate, or another number with a fraction, lies outside its range.
    Rate {
        /// The name of the parameter.
        name: &'static str,
        /// The number given; it may be infinite or not a number.
        got: f64,
        /// The smallest number allowed.
        least: f64,
        /// The largest number allowed. If it is 1, the number must be below 1.
        most: f64,
    },
    /// A number must be a multiple of another one.
    NotAMultiple {
        /// The name of the parameter.
        name: &'static str,
        /// The number given.
        got: u64,
        /// The number that must divide it.
        of: u64,
    },
    /// Only some numbers of a range are allowed.
    NotOneOf {
        /// The name of the parameter.
        name: &'static str,
        /// The number given.
        got: u64,
        /// The numbers allowed, in words: `"a prime power"`.
        allowed: &'static str,
        /// One of the numbers allowed: the next larger one if there is one.
        near: u64,
    },
    /// Two parameters are allowed, but not together.
    Conflict {
        /// The name of the parameter that must change.
        name: &'static str,
        /// Its value.
        got: String,
        /// The value that would work, after the word "must".
        must: &'static str,
    },
    /// The operating system does not give this much memory, or no machine could address it.
    Memory {
        /// The bytes that the table needs; `u64::MAX` if their number does not fit 64 bits.
        bytes: u64,
    },
    /// A structure of given keys refused one of them.
    Key {
        /// The index of the key.
        index: usize,
        /// The reason.
        why: Refused,
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
        Err(Infeasible::OutOfRange { name, got, least, most })
    }

    /// `Ok` if `of` divides `got`, else the parameter by its name.
    pub(crate) fn unless_multiple(name: &'static str, got: u64, of: u64) -> Result<(), Infeasible> {
        if got.is_multiple_of(of) {
            return Ok(());
        }
        Err(Infeasible::NotAMultiple { name, got, of })
    }

    /// A conflict of the parameter `name` with another one.
    pub(crate) fn conflict(
        name: &'static str,
        got: &dyn fmt::Debug,
        must: &'static str,
    ) -> Infeasible {
        Infeasible::Conflict { name, got: format!("{got:?}"), must }
    }

    /// The name of the parameter that must change; `None` if no parameter is wrong.
    #[doc(hidden)]
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Infeasible::OutOfRange { name, .. }
            | Infeasible::Rate { name, .. }
            | Infeasible::NotAMultiple { name, .. }
            | Infeasible::NotOneOf { name, .. }
            | Infeasible::Conflict { name, .. } => Some(name),
            Infeasible::Memory { .. } | Infeasible::Key { .. } => None,
        }
    }
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Infeasible::OutOfRange { name, got, least, most } => {
                write!(f, "{name} is {got}, and must be ")?;
                match (least, most) {
                    (least, most) if least == most => write!(f, "{least}"),
                    (least, &u64::MAX) => write!(f, "at least {least}"),
                    (0, most) => write!(f, "at most {most}"),
                    (least, most) => write!(f, "from {least} to {most}"),
                }
            }
            Infeasible::Rate { name, got, least, most } => {
                let (got, least) = (Number(*got), Number(*least));
                write!(f, "{name} is {got}, and must be ")?;
                if *most == 1.0 {
                    write!(f, "at least {least} and below 1")
                } else {
                    write!(f, "from {least} to {}", Number(*most))
                }
            }
            Infeasible::NotAMultiple { name, got, of } => {
                write!(f, "{name} is {got}, and must be a multiple of {of}")?;
                match got.checked_next_multiple_of(*of) {
                    Some(next) => write!(f, ", such as {next}"),
                    None => Ok(()),
                }
            }
            Infeasible::NotOneOf { name, got, allowed, near } => {
                write!(f, "{name} is {got}, and must be {allowed}, such as {near}")
            }
            Infeasible::Conflict { name, got, must } => {
                write!(f, "{name} is {got}, and must {must}")
            }
            Infeasible::Key { index, why } => write!(f, "key {index} was refused: {why}"),
            Infeasible::Memory { bytes: u64::MAX } => {
                write!(f, "the table would need more bytes than a machine can address")
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

/// A kind of structure in a message.
struct Named(u16);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Kind::of(self.0) {
            Some(kind) => write!(f, "{} (kind {})", kind.name, self.0),
            None => write!(f, "the unknown kind {}", self.0),
        }
    }
}

/// Why bytes are not a structure.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Malformed {
    /// The bytes end before the structure does, or go on after it.
    Length {
        /// The number of bytes that the header announces.
        expected: u64,
        /// The number of bytes given.
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
        /// The kind that the caller expects; 0 for any set.
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
            Malformed::Version { got } => write!(
                f,
                "format version {got} is not known: this library reads version {}",
                crate::saved::VERSION
            ),
            Malformed::Kind { expected: 0, got } => {
                write!(f, "expected a set, got {}", Named(*got))
            }
            Malformed::Kind { expected, got } => {
                write!(f, "expected {}, got {}", Named(*expected), Named(*got))
            }
            Malformed::Hash { got } => write!(
                f,
                "its digests are of hash function {got}, and this version has number {} only; build \
                 the structure again with this version",
                crate::key::KEYED_AES
            ),
            Malformed::Seed => write!(
                f,
                "written under another seed; the bytes do not hold it, so pass the seed that the \
                 structure was built with"
            ),
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

    /// Every variant, with its message. `match`es below make sure that none is left out.
    #[test]
    fn messages_name_the_field_the_value_and_a_way_out() {
        let range = |got, least, most| Infeasible::OutOfRange { name: "keys", got, least, most };
        let rate = |got, least, most| Infeasible::Rate { name: "rate", got, least, most };
        let multiple = |got, of| Infeasible::NotAMultiple { name: "cells", got, of };
        let messages = [
            (
                range(1 << 60, 1, 1 << 48),
                "keys is 1152921504606846976, and must be from 1 to 281474976710656",
            ),
            (range(u64::MAX, 0, 8), "keys is 18446744073709551615, and must be at most 8"),
            (range(7, 8, u64::MAX), "keys is 7, and must be at least 8"),
            (range(1, 0, 0), "keys is 1, and must be 0"),
            (rate(2.0, 1e-12, 1.0), "rate is 2, and must be at least 1e-12 and below 1"),
            (rate(1e300, 0.5, 2.0), "rate is 1e300, and must be from 0.5 to 2"),
            (rate(f64::NAN, 0.5, 2.0), "rate is NaN, and must be from 0.5 to 2"),
            (multiple(100, 64), "cells is 100, and must be a multiple of 64, such as 128"),
            (multiple(u64::MAX, 2), "cells is 18446744073709551615, and must be a multiple of 2"),
            (
                Infeasible::NotOneOf { name: "order", got: 6, allowed: "a prime power", near: 7 },
                "order is 6, and must be a prime power, such as 7",
            ),
            (
                Infeasible::conflict("growths", &3, "be 0 if placing is Independent"),
                "growths is 3, and must be 0 if placing is Independent",
            ),
            (
                Infeasible::Memory { bytes: 1 << 50 },
                "the system does not give the 1125899906842624 bytes that the table needs",
            ),
            (
                Infeasible::Memory { bytes: u64::MAX },
                "the table would need more bytes than a machine can address",
            ),
            (
                Infeasible::Key { index: 7, why: Refused::Full { stored: 9, cells: 12 } },
                "key 7 was refused: no cell is free for the key: 9 of 12 cells are in use; remove keys or \
                 build a larger table",
            ),
        ];
        let kind = |why: &Infeasible| match why {
            Infeasible::OutOfRange { .. } => 0,
            Infeasible::Rate { .. } => 1,
            Infeasible::NotAMultiple { .. } => 2,
            Infeasible::NotOneOf { .. } => 3,
            Infeasible::Conflict { .. } => 4,
            Infeasible::Memory { .. } => 5,
            Infeasible::Key { .. } => 6,
        };
        compare(&messages, kind, 7);
        assert_eq!(
            messages.each_ref().map(|(why, _)| why.name())[9..],
            [Some("order"), Some("growths"), None, None, None]
        );

        let messages = [
            (
                Refused::Full { stored: 90, cells: 100 },
                "no cell is free for the key: 90 of 100 cells are in use; remove keys or build a \
                 larger table",
            ),
            (
                Refused::Overflow { ceiling: 15 },
                "a counter of the key would exceed its ceiling of 15; build a table with wider \
                 counters",
            ),
            (Refused::Outside { universe: 256 }, "the key or state is not a number below 256"),
            (Refused::NotStored, "the key is not stored, so it cannot be modified or removed"),
            (
                Refused::Permanent,
                "keys cannot leave a Bloom filter; plan a set with deletes or take a counting \
                 filter",
            ),
            (
                Refused::NotSums,
                "amounts cannot be subtracted after a conservative update or a decay; build a table with a \
                 plain update, and do not decay it",
            ),
            (
                Refused::Ambiguous,
                "more than one cell may be the key's, and clearing the wrong one would lose \
                 another key; let ageing clear it, or build the table with permuted fingerprints",
            ),
            (
                Refused::Full { stored: 0, cells: 0 },
                "there is no room for exceptions; build the set or map with `with_exceptions`",
            ),
            (
                Refused::Mismatch { field: "hashes" },
                "the two structures differ in their hashes; build both with one shape and one seed",
            ),
        ];
        let kind = |why: &Refused| match why {
            Refused::Full { .. } => 0,
            Refused::Overflow { .. } => 1,
            Refused::Outside { .. } => 2,
            Refused::NotStored => 3,
            Refused::NotSums => 4,
            Refused::Ambiguous => 5,
            Refused::Mismatch { .. } => 6,
            Refused::Permanent => 7,
        };
        compare(&messages, kind, 8);

        let messages = [
            (Malformed::Length { expected: 80, got: 79 }, "expected 80 bytes, got 79"),
            (Malformed::Magic, "not a sidon structure: the magic number is missing"),
            (
                Malformed::Version { got: 9 },
                "format version 9 is not known: this library reads version 1",
            ),
            (Malformed::Kind { expected: 0, got: 9 }, "expected a set, got zone::Sketch (kind 9)"),
            (
                Malformed::Kind { expected: 1, got: 3 },
                "expected set::Bloom (kind 1), got set::Counting (kind 3)",
            ),
            (
                Malformed::Hash { got: 77 },
                "its digests are of hash function 77, and this version has number HASH only; \
                 build the structure again with this version",
            ),
            (
                Malformed::Seed,
                "written under another seed; the bytes do not hold it, so pass the seed that the \
                 structure was built with",
            ),
            (Malformed::Checksum, "the checksum does not match the bytes"),
            (Malformed::Field { name: "hashes" }, "the field hashes has an impossible value"),
            (
                Malformed::Part { part: "flows", field: "rows" },
                "the field rows of the part flows has an impossible value",
            ),
            (
                Malformed::Shape(Infeasible::Memory { bytes: 1 << 50 }),
                "the shape cannot be built: the system does not give the 1125899906842624 bytes \
                 that the table needs",
            ),
        ];
        let kind = |why: &Malformed| match why {
            Malformed::Length { .. } => 0,
            Malformed::Magic => 1,
            Malformed::Version { .. } => 2,
            Malformed::Kind { .. } => 3,
            Malformed::Hash { .. } => 4,
            Malformed::Seed => 5,
            Malformed::Checksum => 6,
            Malformed::Field { .. } => 7,
            Malformed::Part { .. } => 8,
            Malformed::Shape(_) => 9,
        };
        compare(&messages, kind, 10);
    }

    /// Compares messages, of which each of `kinds` variants must have one.
    #[track_caller]
    fn compare<E: std::error::Error>(messages: &[(E, &str)], kind: fn(&E) -> usize, kinds: usize) {
        let hash = crate::key::KEYED_AES.to_string();
        for (error, text) in messages {
            assert_eq!(error.to_string(), text.replace("HASH", &hash));
        }
        for number in 0..kinds {
            assert!(messages.iter().any(|(error, _)| kind(error) == number), "variant {number}");
        }
    }
}
