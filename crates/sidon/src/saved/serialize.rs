//! Structures in the formats of serde.
//!
//! A structure serializes as its saved bytes: a string of hexadecimal digits in formats for
//! humans such as JSON, bytes in all others. The bytes do not contain the seed. They deserialize as
//! [`Saved`], and [`Saved::open`] takes the seed, which the program keeps elsewhere.

use super::{Parts, Save};
use crate::{Malformed, Seed, count, decide, set, state, zone};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, marker::PhantomData};

/// The kind of [`set::AnySet`], whose saved bytes have the kind of the set inside.
const ANY_SET: u16 = <set::AnySet as Save>::KIND;

/// The saved bytes of a `T`, without its seed.
///
/// Deserializing checks the kind, the length and the checksum. Opening checks the seed and the
/// content, and the kind of a [`set::AnySet`].
///
/// ```
/// use sidon::{Malformed, Seed, saved::Saved, set::{Bloom, bloom}};
///
/// let mut seen = Bloom::new(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(42))?;
/// seen.insert("10.0.0.1")?;
/// let json = serde_json::to_string(&seen)?;
/// let saved: Saved<Bloom> = serde_json::from_str(&json)?;
/// assert_eq!(saved.open(Seed(42))?, seen);
/// assert_eq!(saved.open(Seed(43)), Err(Malformed::Seed));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Saved<T> {
    image: Vec<u8>,
    structure: PhantomData<fn() -> T>,
}

impl<T: Save> Saved<T> {
    /// The saved bytes of a structure.
    pub fn new(structure: &T) -> Self {
        Saved { image: structure.to_bytes(), structure: PhantomData }
    }

    /// The structure, if it was built under this seed.
    pub fn open(&self, seed: Seed) -> Result<T, Malformed> {
        T::from_bytes(&self.image, seed)
    }

    /// Checks everything that needs neither a seed nor a shape.
    fn checked(image: Vec<u8>) -> Result<Self, Malformed> {
        let Parts { kind, .. } = Parts::of(&image)?;
        if T::KIND != ANY_SET && kind != T::KIND {
            return Err(Malformed::Kind { expected: T::KIND, got: kind });
        }
        Ok(Saved { image, structure: PhantomData })
    }
}

impl<T> Clone for Saved<T> {
    fn clone(&self) -> Self {
        Saved { image: self.image.clone(), structure: PhantomData }
    }
}

impl<T> PartialEq for Saved<T> {
    fn eq(&self, other: &Self) -> bool {
        self.image == other.image
    }
}

impl<T: Save> fmt::Debug for Saved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut saved = f.debug_struct("Saved");
        saved.field("kind", &T::KIND).field("bytes", &self.image.len()).finish()
    }
}

impl<T> Serialize for Saved<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.image, serializer)
    }
}

impl<'de, T: Save> Deserialize<'de> for Saved<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let image = if deserializer.is_human_readable() {
            deserializer.deserialize_str(Bytes)
        } else {
            deserializer.deserialize_byte_buf(Bytes)
        }?;
        Saved::checked(image).map_err(de::Error::custom)
    }
}

/// Each structure serializes as its [`Saved`] does.
macro_rules! structures {
    ($([$($generics:tt)*] $structure:ty;)*) => {$(
        impl<$($generics)*> Serialize for $structure
        where
            $structure: Save,
        {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serialize(&Save::to_bytes(self), serializer)
            }
        }
    )*};
}
structures! {
    [B] set::Set<B>;
    [] count::Min;
    [K, const A: usize] count::Top<K, A>;
    [] count::Distinct;
    [K] count::FanOut<K>;
    [K] count::Periods<K>;
    [K] decide::Suspects<K>;
    [const A: usize] count::Prefixes<A>;
    [B] state::Map<B>;
    [C] zone::Filter<C>;
    [C] zone::Sketch<C>;
    [] zone::Adaptive;
    [] zone::Hosts;
    [] zone::Subnets;
}

fn serialize<S: Serializer>(image: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    if !serializer.is_human_readable() {
        return serializer.serialize_bytes(image);
    }
    let digits = image.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let text: String =
        digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])).collect();
    serializer.serialize_str(&text)
}

/// Reads bytes, or a string of hexadecimal digits.
struct Bytes;

impl de::Visitor<'_> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the saved bytes of a sidon structure")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
        let digit = |text: u8| char::from(text).to_digit(16).map(|digit| digit as u8);
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?));
        match bytes.collect::<Option<_>>() {
            Some(bytes) if rest.is_empty() => Ok(bytes),
            _ => Err(E::custom("the saved bytes of a structure are pairs of hexadecimal digits")),
        }
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }
}
