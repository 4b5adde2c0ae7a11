//! The byte format of structures: versioned, little-endian, with a checksum. See `docs/FORMAT.md`.
//!
//! ```text
//! | SIDN | version 2 | kind 2 | hash 2 | fields 2 | room 4 | seed check 8 | payload length 8 |
//! | field 8 | field 8 | ... | payload | crc32 4 |
//! ```
//! `room` is 0, or the number of exceptions that a set or a map has room for. Its exceptions are then the
//! end of the payload.
//!
//! Any input gives a structure or [`Malformed`], never a panic, and takes no more memory than the
//! input is long. A structure read back has the same answers and statistics.

pub(crate) mod kinds;
#[cfg(feature = "serde")]
mod serialize;

#[cfg(feature = "serde")]
pub use serialize::Saved;

use crate::{Malformed, Seed, key};
use std::io;

const MAGIC: [u8; 4] = *b"SIDN";
pub(crate) const VERSION: u16 = 1;
const HEADER: usize = 32;
const CHECKSUM: usize = 4;

/// A structure that can be saved as bytes and read back.
///
/// ```
/// use sidon::{Malformed, Seed, saved::Save, set::{Bloom, bloom}};
///
/// /// A copy by way of a byte string.
/// fn copy<S: Save>(structure: &S, seed: Seed) -> Result<S, Malformed> {
///     S::from_bytes(&structure.to_bytes(), seed)
/// }
/// let seen = Bloom::from_keys(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(1), ["key"])?;
/// assert_eq!(copy(&seen, Seed(1))?, seen);
/// assert_eq!(copy(&seen, Seed(2)), Err(Malformed::Seed));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Save: Sized {
    /// The structure's number in the format.
    const KIND: u16;

    /// The bytes. They do not contain the seed, only its check value.
    fn to_bytes(&self) -> Vec<u8>;

    /// Reads a structure from bytes that were written under the same seed.
    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed>;
}

/// The kind of structure that an image claims to hold, read from its header.
///
/// ```
/// use sidon::{Malformed, Seed, saved::{self, Save}, set::{Bloom, bloom}};
///
/// let image = Bloom::new(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(1))?.to_bytes();
/// assert_eq!(saved::kind(&image), Ok(Bloom::KIND));
/// assert_eq!(saved::kind(b"a file of another program"), Err(Malformed::Magic));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn kind(image: &[u8]) -> Result<u16, Malformed> {
    let header = header(image)?;
    Ok(header.kind)
}

/// The length of an image, read from its header. `image` may be the start of the image alone.
///
/// ```
/// use sidon::{Seed, saved, set::{Bloom, bloom}};
///
/// let image = Bloom::new(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(1))?.to_bytes();
/// assert_eq!(saved::announced(&image[..saved::START])?, image.len() as u64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(hidden)]
pub fn announced(image: &[u8]) -> Result<u64, Malformed> {
    let header = header(image)?;
    let front = (HEADER + CHECKSUM + usize::from(header.fields) * 8) as u64;
    let got = image.len() as u64;
    front.checked_add(header.payload).ok_or(Malformed::Length { expected: u64::MAX, got })
}

/// The number of bytes that [`announced`] needs.
#[doc(hidden)]
pub const START: usize = HEADER + CHECKSUM;

struct Header {
    kind: u16,
    hash: u16,
    fields: u16,
    room: u32,
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
        room: u32::from_le_bytes(take(image, 12)),
        seed_check: u64::from_le_bytes(take(image, 16)),
        payload: u64::from_le_bytes(take(image, 24)),
    })
}

/// The `N` bytes that start at `at`. The caller has checked the length.
fn take<const N: usize>(image: &[u8], at: usize) -> [u8; N] {
    image[at..at + N].try_into().expect("a slice of N bytes")
}

/// The image of a structure with these fields and this payload.
pub(crate) fn write(kind: u16, seed: Seed, fields: &[u64], payload: &[u8]) -> Vec<u8> {
    sealed(kind, 0, seed.check_value(), fields, payload)
}

fn sealed(kind: u16, room: u32, seed_check: u64, fields: &[u64], payload: &[u8]) -> Vec<u8> {
    let mut image = Vec::with_capacity(HEADER + fields.len() * 8 + payload.len() + CHECKSUM);
    start(&mut image, kind, room, seed_check, fields, payload.len() as u64);
    image.extend(payload);
    image.extend(crc32fast::hash(&image).to_le_bytes());
    image
}

/// The room for exceptions that an image has, if it has any.
pub(crate) fn room(image: &[u8]) -> Result<Option<u32>, Malformed> {
    let room = header(image)?.room;
    Ok((room > 0).then_some(room))
}

/// An image of this library with `part` at the end of its payload, and with room for exceptions.
pub(crate) fn append(image: &[u8], room: u32, part: &[u8]) -> Vec<u8> {
    let payload = u64::from_le_bytes(take(image, 24)) + part.len() as u64;
    seal(&[&image[..image.len() - CHECKSUM], part].concat(), room, payload)
}

/// Takes the last `len` bytes of the payload out of an image, and its room for exceptions.
pub(crate) fn detach(image: &[u8], len: usize) -> Result<(Vec<u8>, &[u8]), Malformed> {
    let payload = checked(image, &header(image)?)?;
    let Some(rest) = payload.len().checked_sub(len) else {
        return Err(Malformed::Length { expected: len as u64, got: payload.len() as u64 });
    };
    let front = image.len() - CHECKSUM - len;
    Ok((seal(&image[..front], 0, rest as u64), &payload[rest..]))
}

/// The image of this header, these fields and this payload, with another room and payload length.
fn seal(body: &[u8], room: u32, payload: u64) -> Vec<u8> {
    let mut image = Vec::with_capacity(body.len() + CHECKSUM);
    image.extend(body);
    image[12..16].copy_from_slice(&room.to_le_bytes());
    image[24..32].copy_from_slice(&payload.to_le_bytes());
    image.extend(crc32fast::hash(&image).to_le_bytes());
    image
}

/// Writes everything before the payload.
fn start(image: &mut Vec<u8>, kind: u16, room: u32, seed_check: u64, fields: &[u64], payload: u64) {
    image.extend(MAGIC);
    image.extend(VERSION.to_le_bytes());
    image.extend(kind.to_le_bytes());
    image.extend(key::KEYED_AES.to_le_bytes());
    image.extend((fields.len() as u16).to_le_bytes());
    image.extend(room.to_le_bytes());
    image.extend(seed_check.to_le_bytes());
    image.extend(payload.to_le_bytes());
    for field in fields {
        image.extend(field.to_le_bytes());
    }
}

/// The parts of an image of any kind and under any seed. Its length and checksum were checked.
///
/// ```
/// use sidon::{Malformed, Seed, saved::Parts, set::{Bloom, bloom}};
///
/// let mut image = Bloom::new(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(1))?.to_bytes();
/// let parts = Parts::of(&image)?;
/// assert_eq!((&parts.fields[..2], parts.payload.len()), (&[1_000, 3][..], 125));
/// assert_eq!(parts.to_bytes(), image);
/// image[50] ^= 1;
/// assert_eq!(Parts::of(&image), Err(Malformed::Checksum));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The kind of the structure.
    pub kind: u16,
    /// The [`Seed::check_value`] of the seed that the structure was built under.
    pub seed_check: u64,
    /// The shape of the structure, then its statistics.
    pub fields: Vec<u64>,
    /// The number of exceptions that a set or a map has room for.
    pub room: u32,
    /// The table of the structure, then its exceptions.
    pub payload: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Splits an image into parts, after every check that needs neither a shape nor a seed.
    pub fn of(image: &'a [u8]) -> Result<Self, Malformed> {
        let header = header(image)?;
        let payload = checked(image, &header)?;
        let fields = (0..usize::from(header.fields))
            .map(|i| u64::from_le_bytes(take(image, HEADER + i * 8)))
            .collect();
        let Header { kind, room, seed_check, .. } = header;
        Ok(Parts { kind, seed_check, fields, room, payload })
    }

    /// The image with these parts.
    pub fn to_bytes(&self) -> Vec<u8> {
        sealed(self.kind, self.room, self.seed_check, &self.fields, self.payload)
    }
}

/// Writes an image whose payload is given in pieces, so that it need not be in memory as a whole.
///
/// ```
/// use sidon::{Seed, saved::{Parts, Writer}};
///
/// let mut writer = Writer::new(Vec::new(), 900, Seed(1), &[7], 6)?;
/// writer.piece(b"abc")?;
/// writer.piece(b"def")?;
/// assert_eq!(Parts::of(&writer.finish()?)?.payload, b"abcdef");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(hidden)]
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    checksum: crc32fast::Hasher,
    left: u64,
}

impl<W: io::Write> Writer<W> {
    /// Writes the header and the fields of an image with a payload of `payload` bytes.
    pub fn new(
        mut out: W,
        kind: u16,
        seed: Seed,
        fields: &[u64],
        payload: u64,
    ) -> io::Result<Self> {
        let mut front = Vec::new();
        start(&mut front, kind, 0, seed.check_value(), fields, payload);
        out.write_all(&front)?;
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&front);
        Ok(Writer { out, checksum, left: payload })
    }

    /// Writes the next piece. An error if the payload becomes longer than announced.
    pub fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| io::Error::other("the payload is longer than announced"))?;
        self.checksum.update(bytes);
        self.out.write_all(bytes)
    }

    /// Writes the checksum. An error if the payload is shorter than announced.
    pub fn finish(mut self) -> io::Result<W> {
        if self.left > 0 {
            return Err(io::Error::other("the payload is shorter than announced"));
        }
        self.out.write_all(&self.checksum.finalize().to_le_bytes())?;
        Ok(self.out)
    }
}

/// The payload of an image whose hash, length and checksum are right.
fn checked<'a>(image: &'a [u8], header: &Header) -> Result<&'a [u8], Malformed> {
    if header.hash != key::KEYED_AES {
        return Err(Malformed::Hash { got: header.hash });
    }
    let front = HEADER + usize::from(header.fields) * 8;
    let around = (front + CHECKSUM) as u64;
    let (expected, got) = (around.checked_add(header.payload), image.len() as u64);
    if expected != Some(got) {
        return Err(Malformed::Length { expected: expected.unwrap_or(u64::MAX), got });
    }
    let (body, checksum) = image.split_at(image.len() - CHECKSUM);
    if crc32fast::hash(body) != u32::from_le_bytes(take(checksum, 0)) {
        return Err(Malformed::Checksum);
    }
    Ok(&body[front..])
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
    if usize::from(header.fields) != FIELDS {
        return Err(Malformed::Field { name: "fields" });
    }
    let payload = checked(image, &header)?;
    if header.room != 0 {
        return Err(Malformed::Field { name: "room" });
    }
    if header.seed_check != seed.check_value() {
        return Err(Malformed::Seed);
    }
    let fields = std::array::from_fn(|i| u64::from_le_bytes(take(image, HEADER + i * 8)));
    Ok((fields, payload))
}

/// A field that must fit in 32 bits.
pub(crate) fn narrow(name: &'static str, field: u64) -> Result<u32, Malformed> {
    u32::try_from(field).map_err(|_| Malformed::Field { name })
}

/// A field that must be 0 or 1.
pub(crate) fn flag(name: &'static str, field: u64) -> Result<bool, Malformed> {
    match field {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed::Field { name }),
    }
}

/// Refuses a payload whose length differs from the one that the shape needs. This happens before
/// any memory is taken, so a short input cannot request a large table.
pub(crate) fn justify(payload: &[u8], needed: u64) -> Result<(), Malformed> {
    let got = payload.len() as u64;
    if got != needed {
        return Err(Malformed::Length { expected: needed, got });
    }
    Ok(())
}

/// Refuses a table with more bits set than `keys` keys of `hashes` hashes can set, or with none set
/// although `keys` is above zero.
pub(crate) fn plausible(
    name: &'static str,
    set: u64,
    keys: u64,
    hashes: u32,
) -> Result<(), Malformed> {
    let most = u128::from(keys) * u128::from(hashes);
    if u128::from(set) > most || (set == 0) != (keys == 0) {
        return Err(Malformed::Field { name });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_in_pieces_is_the_image_in_one() {
        let (fields, payload) = ([3, u64::MAX], *b"a payload in pieces");
        let whole = write(99, Seed(7), &fields, &payload);
        let mut writer =
            Writer::new(Vec::new(), 99, Seed(7), &fields, payload.len() as u64).unwrap();
        payload.chunks(5).for_each(|piece| writer.piece(piece).unwrap());
        assert_eq!(writer.finish().unwrap(), whole);

        let parts = Parts::of(&whole).unwrap();
        assert_eq!((parts.kind, parts.payload), (99, &payload[..]));
        assert_eq!(parts.fields, fields);
        assert_eq!(parts.seed_check, Seed(7).check_value());
        assert_eq!(parts.to_bytes(), whole);
        for len in 0..whole.len() {
            assert!(Parts::of(&whole[..len]).is_err(), "cut to {len}");
        }
    }

    #[test]
    fn a_payload_of_another_length_than_announced_is_an_error() {
        let writer = || Writer::new(Vec::new(), 1, Seed(0), &[], 3).unwrap();
        assert!(writer().piece(b"four").is_err());
        let mut short = writer();
        short.piece(b"ab").unwrap();
        assert!(short.finish().is_err());
    }
}
