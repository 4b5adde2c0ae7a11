//! Locates the damage in a snapshot file.
//!
//! A wrong checksum of the file shows only that some byte is wrong. Each table has a separate
//! checksum, so tables whose checksum is right can be ruled out.

use super::{
    image::{KIND, PART},
    parts::Part,
};
use sidon::{Malformed, internals::SNAPSHOT, saved};
use std::{fmt, ops::Range};

/// A part of a snapshot that is damaged.
#[derive(Debug, Clone, PartialEq)]
pub struct Damage {
    /// Its name, and its shard if it has one.
    pub part: String,
    /// The bytes of the file that it takes.
    pub bytes: Range<u64>,
    /// What is wrong with it.
    pub why: Malformed,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { part, bytes, why } = self;
        write!(f, "{part}, bytes {} to {}: {why}", bytes.start, bytes.end)
    }
}

/// Bytes before the first part: the header and the fields.
const FRONT: usize = 32 + SNAPSHOT.fields.len() * 8;

/// The damaged tables of a file that is, or was, a snapshot. Empty if the damage is elsewhere.
pub fn damage(image: &[u8]) -> Vec<Damage> {
    let mut found = Vec::new();
    if saved::kind(image) != Ok(KIND) {
        return found;
    }
    let mut at = FRONT;
    while let Some(head) = image.get(at..at + PART) {
        let name = u16::from_le_bytes([head[0], head[1]]);
        let shard = u16::from_le_bytes([head[2], head[3]]);
        let length = head[8..].iter().rev().fold(0, |sum: u64, &byte| sum << 8 | u64::from(byte));
        let Some(kind) = Part::of(name) else { break };
        let from = at + PART;
        let Some(to) = usize::try_from(length).ok().and_then(|length| from.checked_add(length))
        else {
            break;
        };
        let part = match kind.name {
            name if kind.is_sharded => format!("{name} of shard {shard}"),
            name => name.to_owned(),
        };
        let bytes = from as u64..to as u64;
        let Some(inside) = image.get(from..to) else {
            let why = Malformed::Length { expected: length, got: (image.len() - from) as u64 };
            found.push(Damage { part, bytes, why });
            break;
        };
        if kind.is_image
            && let Err(why) = sidon::saved::Parts::of(inside)
        {
            found.push(Damage { part, bytes, why });
        }
        at = to;
    }
    found
}
