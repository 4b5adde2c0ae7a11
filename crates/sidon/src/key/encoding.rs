//! Keys, and the bytes that are hashed for them.

use super::{Digest, Seed, cipher::Cipher};
use crate::simd::{self, Isa, Kernel};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A type whose values the structures can store or count.
///
/// The library does not use `std::hash::Hash`, because the bytes that `Hash` feeds to a hasher differ
/// between machines and releases. Every key here has documented bytes, and its digest is the digest of
/// those bytes:
///
/// | key | its bytes |
/// |---|---|
/// | `[u8]`, `[u8; N]`, `Vec<u8>` | themselves |
/// | `str`, `String` | UTF-8 |
/// | `u8` .. `u128`, `i8` .. `i128` | little-endian, as wide as the type |
/// | `Ipv4Addr`, `Ipv6Addr` | 4 or 16 bytes in network order |
/// | `IpAddr` | as the address it holds |
/// | `SocketAddrV4`, `SocketAddrV6` | the address's bytes, then the port in network order |
/// | `SocketAddr` | as the address it holds |
/// | a tuple of two to six keys | for each part its length, then its bytes |
/// | `&K`, `Box<K>` | as `K` |
/// | [`Digest`] | none: it is its own digest under every seed |
///
/// The length of a tuple's part is one byte if it is below 255. Otherwise it is a byte 255 and eight
/// bytes, little-endian. A [`Digest`] within a tuple has the eight bytes of its number, little-endian.
///
/// Keys with equal bytes are equal keys, whatever their types: `1u32` and `[1u8, 0, 0, 0]` are the same
/// key, `1u32` and `1u64` are not.
///
/// A type of your own passes its bytes to the hasher:
///
/// ```
/// use sidon::{Digest, Key, Seed, key::Hasher};
///
/// struct Session {
///     user: u32,
///     device: u32,
/// }
///
/// impl Key for Session {
///     fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
///         (self.user, self.device).digest_with(hasher)
///     }
/// }
///
/// let session = Session { user: 7, device: 1 };
/// assert_eq!(session.digest(Seed(42)), (7u32, 1u32).digest(Seed(42)));
/// assert_ne!(session.digest(Seed(42)), (1u32, 7u32).digest(Seed(42)));
/// ```
pub trait Key {
    /// Passes the bytes of this key to the hasher and returns the hasher's result.
    ///
    /// Keys that are equal must pass equal bytes, and keys that differ must pass different bytes.
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest;

    /// The 64 bits that represent this key under the seed.
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        struct One<'a, K: ?Sized>(&'a K, Seed);
        impl<K: Key + ?Sized> Kernel for One<'_, K> {
            type Output = Digest;
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) -> Digest {
                digest_by(self.0, isa, self.1)
            }
        }
        simd::dispatch(One(self, seed))
    }
}

/// Turns the bytes of a [`Key`] into its [`Digest`]. The library passes one to [`Key::digest_with`].
///
/// ```
/// use sidon::{Digest, Key, Seed, key::Hasher};
///
/// /// Host names that differ in case only are equal.
/// struct Host<'a>(&'a str);
///
/// impl Key for Host<'_> {
///     fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
///         hasher.digest(self.0.to_ascii_lowercase().as_bytes())
///     }
/// }
/// assert_eq!(Host("Example.COM").digest(Seed(1)), "example.com".digest(Seed(1)));
/// ```
pub trait Hasher {
    /// The digest of these bytes.
    fn digest(self, bytes: &[u8]) -> Digest;
}

/// The hash function under a seed, by the instructions of `I`.
struct By<I>(I, Seed);

impl<I: Isa> Hasher for By<I> {
    #[inline(always)]
    fn digest(self, bytes: &[u8]) -> Digest {
        Cipher::new(self.0, self.1).digest(bytes)
    }
}

/// The digest of a key by these instructions.
#[inline(always)]
pub(crate) fn digest_by<I: Isa, K: Key + ?Sized>(key: &K, isa: I, seed: Seed) -> Digest {
    key.digest_with(By(isa, seed))
}

/// The digests of many keys by these instructions. The two slices are of one length.
#[inline(always)]
pub(crate) fn digests_by<I: Isa, K: Key>(isa: I, seed: Seed, keys: &[K], digests: &mut [Digest]) {
    for (key, digest) in keys.iter().zip(digests) {
        *digest = digest_by(key, isa, seed);
    }
}

impl Key for [u8] {
    #[inline(always)]
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
        hasher.digest(self)
    }
}

impl Key for Digest {
    #[inline(always)]
    fn digest_with<H: Hasher>(&self, _: H) -> Digest {
        *self
    }

    #[inline(always)]
    fn digest(&self, _: Seed) -> Digest {
        *self
    }
}

/// Keys whose bytes are an expression.
macro_rules! keys {
    ($([$($generics:tt)*] $key:ty: |$own:ident| $bytes:expr;)*) => {$(
        impl<$($generics)*> Key for $key {
            #[inline(always)]
            fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
                let $own = self;
                hasher.digest(&$bytes)
            }
        }
    )*};
}
keys! {
    [const N: usize] [u8; N]: |key| *key;
    [] Vec<u8>: |key| **key;
    [] str: |key| *key.as_bytes();
    [] String: |key| *key.as_bytes();
    [] u8: |key| key.to_le_bytes();
    [] u16: |key| key.to_le_bytes();
    [] u32: |key| key.to_le_bytes();
    [] u64: |key| key.to_le_bytes();
    [] u128: |key| key.to_le_bytes();
    [] i8: |key| key.to_le_bytes();
    [] i16: |key| key.to_le_bytes();
    [] i32: |key| key.to_le_bytes();
    [] i64: |key| key.to_le_bytes();
    [] i128: |key| key.to_le_bytes();
    [] Ipv4Addr: |key| key.octets();
    [] Ipv6Addr: |key| key.octets();
    [] SocketAddrV4: |key| socket::<4, 6>(key.ip().octets(), key.port());
    [] SocketAddrV6: |key| socket::<16, 18>(key.ip().octets(), key.port());
    [A: Key, B: Key] (A, B): |key| *Joined::new().add(&key.0).add(&key.1).bytes();
    [A: Key, B: Key, C: Key] (A, B, C):
        |key| *Joined::new().add(&key.0).add(&key.1).add(&key.2).bytes();
    [A: Key, B: Key, C: Key, D: Key] (A, B, C, D):
        |key| *Joined::new().add(&key.0).add(&key.1).add(&key.2).add(&key.3).bytes();
    [A: Key, B: Key, C: Key, D: Key, E: Key] (A, B, C, D, E):
        |key| *Joined::new().add(&key.0).add(&key.1).add(&key.2).add(&key.3).add(&key.4).bytes();
    [A: Key, B: Key, C: Key, D: Key, E: Key, F: Key] (A, B, C, D, E, F):
        |key| *Joined::new().add(&key.0).add(&key.1).add(&key.2).add(&key.3).add(&key.4).add(&key.5).bytes();
}

/// The bytes of an address, then the port in network order.
#[inline(always)]
pub(crate) fn socket<const A: usize, const N: usize>(address: [u8; A], port: u16) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..A].copy_from_slice(&address);
    bytes[A..].copy_from_slice(&port.to_be_bytes());
    bytes
}

impl<K: Key + ?Sized> Key for &K {
    #[inline(always)]
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
        (**self).digest_with(hasher)
    }

    // Passes the key to the dispatcher, and not a reference to a reference: one load less.
    #[inline(always)]
    fn digest(&self, seed: Seed) -> Digest {
        (**self).digest(seed)
    }
}

impl<K: Key + ?Sized> Key for Box<K> {
    #[inline(always)]
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
        (**self).digest_with(hasher)
    }

    #[inline(always)]
    fn digest(&self, seed: Seed) -> Digest {
        (**self).digest(seed)
    }
}

impl Key for IpAddr {
    #[inline(always)]
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
        match self {
            IpAddr::V4(address) => address.digest_with(hasher),
            IpAddr::V6(address) => address.digest_with(hasher),
        }
    }
}

impl Key for SocketAddr {
    #[inline(always)]
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
        match self {
            SocketAddr::V4(address) => address.digest_with(hasher),
            SocketAddr::V6(address) => address.digest_with(hasher),
        }
    }
}

/// The bytes of a tuple: in place up to 64 bytes, beyond on the heap.
struct Joined {
    near: [u8; 64],
    len: usize,
    far: Vec<u8>,
}

impl Joined {
    fn new() -> Self {
        Joined { near: [0; 64], len: 0, far: Vec::new() }
    }

    #[inline(always)]
    fn extend(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.near.get_mut(self.len..end) {
            Some(room) if self.far.is_empty() => room.copy_from_slice(bytes),
            _ => {
                if self.far.is_empty() {
                    self.far.extend(&self.near[..self.len]);
                }
                self.far.extend(bytes);
            }
        }
        self.len = end;
    }

    /// Adds the length of a part and its bytes.
    #[inline(always)]
    fn add<K: Key + ?Sized>(&mut self, part: &K) -> &mut Self {
        let mut seen = false;
        let digest = part.digest_with(Part { joined: self, seen: &mut seen });
        if !seen {
            digest.0.to_le_bytes().digest_with(Part { joined: self, seen: &mut seen });
        }
        self
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        if self.far.is_empty() { &self.near[..self.len] } else { &self.far }
    }
}

/// Adds the bytes of a part to those of its tuple.
struct Part<'a> {
    joined: &'a mut Joined,
    /// Whether the part had bytes: a digest has none.
    seen: &'a mut bool,
}

impl Hasher for Part<'_> {
    #[inline(always)]
    fn digest(self, bytes: &[u8]) -> Digest {
        *self.seen = true;
        match u8::try_from(bytes.len()) {
            Ok(short) if short < u8::MAX => self.joined.extend(&[short]),
            _ => {
                self.joined.extend(&[u8::MAX]);
                self.joined.extend(&(bytes.len() as u64).to_le_bytes());
            }
        }
        self.joined.extend(bytes);
        Digest(0)
    }
}
