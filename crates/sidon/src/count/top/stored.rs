//! Keys that a table can store and return.

use crate::{Digest, Key};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A key that a table can keep, of a fixed number of bytes. Keys with equal amounts are listed in
/// this order in a [`Ranking`](super::Ranking).
///
/// Byte arrays, integers, addresses, digests, and tuples of two to six kept keys implement it. A table keeps
/// each key in a fixed number of bytes, which [`plan::top::shape`](crate::plan::top::shape) takes:
///
/// | key | bytes |
/// |---|---|
/// | `[u8; N]` | `N` |
/// | integers | as wide as the type |
/// | `Ipv4Addr`, `Ipv6Addr` | 4, 16 |
/// | `IpAddr`, `SocketAddr` | 17, 19 |
/// | [`Digest`] | 8 |
/// | a tuple | the sum of its parts |
/// | a type of your own | as its parts |
///
/// A type of your own names such a key as its parts, and is made from them again:
///
/// ```
/// use sidon::{Digest, Key, Seed, count::{Stored, Top, top::Shape}, key::Hasher};
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
/// struct Vlan(u16);
///
/// impl Key for Vlan {
///     fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
///         self.0.digest_with(hasher)
///     }
/// }
/// impl Stored for Vlan {
///     type Parts = u16;
///
///     fn parts(self) -> u16 {
///         self.0
///     }
///
///     fn from_parts(number: u16) -> Self {
///         Vlan(number)
///     }
/// }
/// let mut top: Top<Vlan> = Top::new(Shape { buckets: 10, rows: 2, columns: 100 }, Seed(1))?;
/// top.add(&Vlan(100), [5]);
/// assert_eq!(top.heaviest(1).entries[0].key, Vlan(100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The two implementations cannot be one, because they may differ. A key is hashed by the bytes of
/// [`Key`], which identify it and may be of any length; [`Hasher`](crate::key::Hasher) cannot return a key
/// from them. A table needs bytes of a fixed length from which it can make the key again. An `IpAddr`, for
/// example, is hashed as 4 or 16 bytes and kept as 17. Nor can every kept key get its `Key` from its parts:
/// Rust rejects this beside the implementation for references, because another crate may keep a `&T`.
///
/// Memory is fixed at the start, so a table cannot keep a `String` or a `Vec<u8>`. Keep text as an
/// array that has room for the longest text, with zeros behind it:
///
/// ```
/// use sidon::{Seed, count::{Top, top::Shape}};
///
/// /// The first 32 bytes of a name.
/// fn name(text: &str) -> [u8; 32] {
///     let mut name = [0; 32];
///     name.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
///     name
/// }
/// let shape = Shape { buckets: 10, rows: 2, columns: 100 };
/// let mut names: Top<[u8; 32]> = Top::new(shape, Seed(1))?;
/// names.add(&name("example.com"), [5]);
/// assert_eq!(names.heaviest(1).entries[0].key, name("example.com"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Stored: Key + Copy + Ord {
    /// A kept key that has the same information.
    type Parts: Stored;

    /// The parts of this key. Equal keys have equal parts.
    fn parts(self) -> Self::Parts;

    /// The key of these parts. Parts that no key has may give any key.
    fn from_parts(parts: Self::Parts) -> Self;

    /// The number of bytes, at least one.
    #[doc(hidden)]
    const BYTES: usize = Self::Parts::BYTES;

    /// Writes the key to exactly [`Self::BYTES`] bytes. Equal keys write equal bytes.
    #[doc(hidden)]
    #[inline(always)]
    fn write(&self, bytes: &mut [u8]) {
        self.parts().write(bytes);
    }

    /// The key of exactly [`Self::BYTES`] bytes. Bytes that no key writes give an arbitrary key.
    #[doc(hidden)]
    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        Self::from_parts(Self::Parts::read(bytes))
    }

    /// Whether these bytes are those of the key.
    #[doc(hidden)]
    #[inline(always)]
    fn is(&self, bytes: &[u8]) -> bool {
        Self::read(bytes) == *self
    }
}

impl<const N: usize> Stored for [u8; N] {
    type Parts = Self;

    #[inline(always)]
    fn parts(self) -> Self {
        self
    }

    #[inline(always)]
    fn from_parts(parts: Self) -> Self {
        parts
    }

    const BYTES: usize = N;

    #[inline(always)]
    fn write(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(self);
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        let mut key = [0; N];
        key.copy_from_slice(bytes);
        key
    }
}

/// Keys that are kept as the result of `$to`.
macro_rules! stored {
    ($([$($generics:tt)*] $key:ty: $parts:ty, $to:expr, $from:expr;)*) => {$(
        impl<$($generics)*> Stored for $key {
            type Parts = $parts;

            #[inline(always)]
            fn parts(self) -> $parts {
                $to(self)
            }

            #[inline(always)]
            fn from_parts(parts: $parts) -> Self {
                $from(parts)
            }
        }
    )*};
}
stored! {
    [] u8: [u8; 1], u8::to_le_bytes, u8::from_le_bytes;
    [] u16: [u8; 2], u16::to_le_bytes, u16::from_le_bytes;
    [] u32: [u8; 4], u32::to_le_bytes, u32::from_le_bytes;
    [] u64: [u8; 8], u64::to_le_bytes, u64::from_le_bytes;
    [] u128: [u8; 16], u128::to_le_bytes, u128::from_le_bytes;
    [] i8: [u8; 1], i8::to_le_bytes, i8::from_le_bytes;
    [] i16: [u8; 2], i16::to_le_bytes, i16::from_le_bytes;
    [] i32: [u8; 4], i32::to_le_bytes, i32::from_le_bytes;
    [] i64: [u8; 8], i64::to_le_bytes, i64::from_le_bytes;
    [] i128: [u8; 16], i128::to_le_bytes, i128::from_le_bytes;
    [] Ipv4Addr: [u8; 4], |key: Ipv4Addr| key.octets(), Ipv4Addr::from;
    [] Ipv6Addr: [u8; 16], |key: Ipv6Addr| key.octets(), Ipv6Addr::from;
    [] IpAddr: (u8, [u8; 16]), version_and_bytes, |(version, bytes)| address(version, bytes);
    [] Digest: [u8; 8], |key: Digest| key.0.to_le_bytes(), |bytes| Digest(u64::from_le_bytes(bytes));
    // A tuple is kept as the pair of its last part and the others.
    [A: Stored, B: Stored, C: Stored] (A, B, C): ((A, B), C),
        |(a, b, c)| ((a, b), c), |((a, b), c)| (a, b, c);
    [A: Stored, B: Stored, C: Stored, D: Stored] (A, B, C, D): ((A, B, C), D),
        |(a, b, c, d)| ((a, b, c), d), |((a, b, c), d)| (a, b, c, d);
    [A: Stored, B: Stored, C: Stored, D: Stored, E: Stored] (A, B, C, D, E): ((A, B, C, D), E),
        |(a, b, c, d, e)| ((a, b, c, d), e), |((a, b, c, d), e)| (a, b, c, d, e);
    [A: Stored, B: Stored, C: Stored, D: Stored, E: Stored, F: Stored] (A, B, C, D, E, F):
        ((A, B, C, D, E), F),
        |(a, b, c, d, e, f)| ((a, b, c, d, e), f), |((a, b, c, d, e), f)| (a, b, c, d, e, f);
}

/// The version, 4 or 6, and the bytes of the address, with zeros up to 16.
#[inline(always)]
fn version_and_bytes(address: IpAddr) -> (u8, [u8; 16]) {
    match address {
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            (4, bytes)
        }
        IpAddr::V6(address) => (6, address.octets()),
    }
}

/// The address of [`version_and_bytes`].
#[inline(always)]
fn address(version: u8, bytes: [u8; 16]) -> IpAddr {
    match (version, bytes) {
        (4, [a, b, c, d, ..]) => IpAddr::from([a, b, c, d]),
        _ => IpAddr::from(bytes),
    }
}

/// The address as an [`IpAddr`], then the port. Flow label and scope of IPv6 are not part of a key.
impl Stored for SocketAddr {
    type Parts = (IpAddr, [u8; 2]);

    #[inline(always)]
    fn parts(self) -> (IpAddr, [u8; 2]) {
        (self.ip(), self.port().to_be_bytes())
    }

    #[inline(always)]
    fn from_parts((address, port): (IpAddr, [u8; 2])) -> Self {
        SocketAddr::new(address, u16::from_be_bytes(port))
    }

    #[inline(always)]
    fn is(&self, bytes: &[u8]) -> bool {
        self.parts().is(bytes)
    }
}

/// The stored parts one after the other.
impl<A: Stored, B: Stored> Stored for (A, B) {
    type Parts = Self;

    #[inline(always)]
    fn parts(self) -> Self {
        self
    }

    #[inline(always)]
    fn from_parts(parts: Self) -> Self {
        parts
    }

    const BYTES: usize = A::BYTES + B::BYTES;

    #[inline(always)]
    fn write(&self, bytes: &mut [u8]) {
        let (first, second) = bytes.split_at_mut(A::BYTES);
        self.0.write(first);
        self.1.write(second);
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        let (first, second) = bytes.split_at(A::BYTES);
        (A::read(first), B::read(second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Seed,
        count::{Top, top::Shape},
    };

    /// A table keeps the key, finds it again, and reads it back from its image.
    fn is_kept<K: Stored + std::fmt::Debug>(keys: &[K]) {
        let shape = Shape { buckets: 50, rows: 2, columns: 100 };
        let mut top = Top::<K>::new(shape, Seed(1)).unwrap();
        for (amount, key) in (1..).zip(keys) {
            top.add(key, [amount]);
        }
        let top = Top::<K>::from_bytes(&top.to_bytes(), Seed(1)).unwrap();
        let heaviest = top.heaviest(keys.len());
        let read: Vec<&K> = heaviest.entries.iter().map(|entry| &entry.key).collect();
        assert_eq!(read, keys.iter().rev().collect::<Vec<_>>());
        for (amount, key) in (1..).zip(keys) {
            assert_eq!((top.bounds(key)[0].least, top.bounds(key)[0].most), (amount, amount));
        }
    }

    #[test]
    fn keys_of_every_kind_are_kept() {
        let v4 = IpAddr::from([1, 2, 3, 4]);
        let v6 = IpAddr::from([0x0102, 0x0304, 0, 0, 0, 0, 0, 0]);
        is_kept(&[v4, v6]);
        is_kept(&[SocketAddr::new(v4, 1), SocketAddr::new(v4, 2), SocketAddr::new(v6, 1)]);
        is_kept(&[-1i8, 0, 1]);
        is_kept(&[i128::MIN, -1, i128::MAX]);
        is_kept(&[(v4, 80u16), (v4, 443), (v6, 80)]);
        is_kept(&[(1u8, 2u16, 3u32, 4u64, 5u128, [6u8; 3]), (1, 2, 3, 4, 5, [7; 3])]);
    }

    /// A key of parts that are themselves a tuple.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Login {
        user: u32,
        device: [u8; 3],
    }

    impl Key for Login {
        fn digest_with<H: crate::key::Hasher>(&self, hasher: H) -> Digest {
            (self.user, self.device).digest_with(hasher)
        }
    }

    impl Stored for Login {
        type Parts = (u32, [u8; 3]);

        fn parts(self) -> (u32, [u8; 3]) {
            (self.user, self.device)
        }

        fn from_parts((user, device): (u32, [u8; 3])) -> Self {
            Login { user, device }
        }
    }

    #[test]
    fn a_key_of_an_own_type_is_kept_as_its_parts() {
        let logins = [1u8, 2, 3].map(|n| Login { user: 7, device: [n, 0, n] });
        is_kept(&logins);
        is_kept(&logins.map(|login| (login, login.device[0])));
        // The saved bytes are those of the parts.
        let shape = Shape { buckets: 5, rows: 2, columns: 10 };
        let mut own = Top::<Login>::new(shape, Seed(1)).unwrap();
        let mut parts = Top::<(u32, [u8; 3])>::new(shape, Seed(1)).unwrap();
        for login in logins {
            own.add(&login, [5]);
            parts.add(&login.parts(), [5]);
        }
        assert_eq!(own.to_bytes(), parts.to_bytes());
    }
}
