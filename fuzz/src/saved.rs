//! Saved bytes with a right header and checksum, from bytes that the fuzzer has changed.

use sidon::{Seed, saved::Parts};

/// Bytes before the fields, and after the payload.
const HEADER: usize = 32;
const CHECKSUM: usize = 4;

/// The kind, the fields, the room and the payload of the bytes under a new header and checksum; nothing if
/// the bytes are too short for a header. There are at most `most` fields.
pub fn repaired(bytes: &[u8], most: u16, seed_check: u64) -> Option<Vec<u8>> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let (rest, _) = rest.split_at_checked(rest.len().checked_sub(CHECKSUM)?)?;
    let kind = u16::from_le_bytes([header[6], header[7]]);
    let room = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    let fields = usize::from(u16::from_le_bytes([header[10], header[11]]).min(most));
    let (fields, payload) = rest.split_at(8 * fields.min(rest.len() / 8));
    let fields = fields.as_chunks::<8>().0.iter().map(|field| u64::from_le_bytes(*field));
    Some(Parts { kind, seed_check, fields: fields.collect(), room, payload }.to_bytes())
}

/// The check value of structures that do not hash.
pub fn no_seed() -> u64 {
    Seed(0).check_value()
}
