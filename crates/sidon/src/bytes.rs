//! A structure as bytes: versioned, little-endian, checksummed. `docs/FORMAT.md` draws it.
//!
//! ```text
//! | SIDN | version 2 | kind 2 | hash 2 | fields 2 | zero 4 | seed check 8 | payload length 8 |
//! | field 8 | field 8 | ... | payload | crc32 4 |
//! ```
//! Any input whatever gives a structure or [`Malformed`]: never a panic, and never more memory
//! than the input is long. A structure that is read back is equal in every answer and statistic.

use crate::{Malformed, Seed, hash};

const MAGIC: [u8; 4] = *b"SIDN";
const VERSION: u16 = 1;
const HEADER: usize = 32;
const CHECKSUM: usize = 4;

/// A structure that can become bytes and come back.
pub trait Image: Sized {
    /// Its number in the format.
    const KIND: u16;

    /// The bytes. They hold no secret: of the seed only a check value.
    fn to_bytes(&self) -> Vec<u8>;

    /// The structure that the bytes hold, if they were written under this seed.
    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed>;
}

/// The kind of the structure that an image claims to hold, from its first bytes.
pub fn kind(image: &[u8]) -> Result<u16, Malformed> {
    let header = header(image)?;
    Ok(header.kind)
}

struct Header {
    kind: u16,
    hash: u16,
    fields: u16,
    zero: u32,
    seed_check: u64,
    payload: u64,
}

fn header(image: &[u8]) -> Result<Header, Malformed> {
    if image.get(..4).is_some_and(|magic| magic != MAGIC) {
        return Err(Malformed::Magic);
    }
    if image.len() < HEADER + CHECKSUM {
        let expected = (HEADER + CHECKSUM) as u64;
        return Err(Malformed::Length { expected, got: image.len() as u64 });
    }
    let version = u16::from_le_bytes(take(image, 4));
    if version != VERSION {
        return Err(Malformed::Version { got: version });
    }
    Ok(Header {
        kind: u16::from_le_bytes(take(image, 6)),
        hash: u16::from_le_bytes(take(image, 8)),
        fields: u16::from_le_bytes(take(image, 10)),
        zero: u32::from_le_bytes(take(image, 12)),
        seed_check: u64::from_le_bytes(take(image, 16)),
        payload: u64::from_le_bytes(take(image, 24)),
    })
}

/// The `N` bytes from `at` on, which the caller has made sure of.
fn take<const N: usize>(image: &[u8], at: usize) -> [u8; N] {
    image[at..at + N].try_into().expect("a slice of N bytes")
}

/// The image of a structure with these fields and this payload.
pub(crate) fn write(kind: u16, seed: Seed, fields: &[u64], payload: &[u8]) -> Vec<u8> {
    let mut image = Vec::with_capacity(HEADER + fields.len() * 8 + payload.len() + CHECKSUM);
    image.extend(MAGIC);
    image.extend(VERSION.to_le_bytes());
    image.extend(kind.to_le_bytes());
    image.extend(hash::SIPHASH_1_3.to_le_bytes());
    image.extend((fields.len() as u16).to_le_bytes());
    image.extend([0; 4]);
    image.extend(seed.check_value().to_le_bytes());
    image.extend((payload.len() as u64).to_le_bytes());
    for field in fields {
        image.extend(field.to_le_bytes());
    }
    image.extend(payload);
    image.extend(crc32fast::hash(&image).to_le_bytes());
    image
}

/// The fields and the payload of an image, after every check that needs no shape.
pub(crate) fn read<const FIELDS: usize>(
    image: &[u8],
    kind: u16,
    seed: Seed,
) -> Result<([u64; FIELDS], &[u8]), Malformed> {
    let header = header(image)?;
    if header.kind != kind {
        return Err(Malformed::Kind { expected: kind, got: header.kind });
    }
    if header.hash != hash::SIPHASH_1_3 {
        return Err(Malformed::Hash { got: header.hash });
    }
    if usize::from(header.fields) != FIELDS {
        return Err(Malformed::Field { name: "fields" });
    }
    if header.zero != 0 {
        return Err(Malformed::Field { name: "zero" });
    }
    let around = (HEADER + FIELDS * 8 + CHECKSUM) as u64;
    let (expected, got) = (around.checked_add(header.payload), image.len() as u64);
    if expected != Some(got) {
        return Err(Malformed::Length { expected: expected.unwrap_or(u64::MAX), got });
    }
    let (body, checksum) = image.split_at(image.len() - CHECKSUM);
    if crc32fast::hash(body) != u32::from_le_bytes(take(checksum, 0)) {
        return Err(Malformed::Checksum);
    }
    if header.seed_check != seed.check_value() {
        return Err(Malformed::Seed);
    }
    let fields = std::array::from_fn(|i| u64::from_le_bytes(take(image, HEADER + i * 8)));
    Ok((fields, &body[HEADER + FIELDS * 8..]))
}

/// A field that must fit 32 bits.
pub(crate) fn narrow(name: &'static str, field: u64) -> Result<u32, Malformed> {
    u32::try_from(field).map_err(|_| Malformed::Field { name })
}

/// A field that is 0 or 1.
pub(crate) fn flag(name: &'static str, field: u64) -> Result<bool, Malformed> {
    match field {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed::Field { name }),
    }
}

/// Refuses a shape that asks for another payload than there is: no structure is built, and no
/// memory taken, that the input does not justify.
pub(crate) fn justify(payload: &[u8], needed: u64) -> Result<(), Malformed> {
    let got = payload.len() as u64;
    if got != needed {
        return Err(Malformed::Length { expected: needed, got });
    }
    Ok(())
}

/// Refuses a table in which more was raised than that many keys of that many hashes can raise.
pub(crate) fn plausible(
    name: &'static str,
    raised: u64,
    keys: u64,
    hashes: u32,
) -> Result<(), Malformed> {
    if u128::from(raised) > u128::from(keys) * u128::from(hashes) {
        return Err(Malformed::Field { name });
    }
    Ok(())
}
