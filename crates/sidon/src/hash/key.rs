//! What can be hashed, and which bytes it is hashed as.

use super::{Digest, Seed, cipher::Cipher};
use crate::probe::{self, Isa, Kernel};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Something that a structure can be asked about.
///
/// The trait is the library's own, because what `std::hash::Hash` feeds to a hasher differs from
/// machine to machine and release to release. Every implementation here is a documented byte
/// string, and the digest is that of the bytes:
///
/// | key | its bytes |
/// |---|---|
/// | `[u8]`, `[u8; N]` | themselves |
/// | `str`, `String` | UTF-8 |
/// | `u8` .. `u128`, `i8` .. `i128` | little-endian, as wide as the type |
/// | `Ipv4Addr`, `Ipv6Addr` | 4 or 16 octets, network order |
/// | `IpAddr` | as the address it holds |
/// | `SocketAddrV4`, `SocketAddrV6` | the address's octets, then the port, network order |
/// | `SocketAddr` | as the address it holds |
/// | `&K`, `Box<K>` | as `K` |
/// | [`Digest`] | none: it is its own digest under every seed |
///
/// Keys with equal bytes are equal keys, whatever their types: `1u32` and `[1u8, 0, 0, 0]` are one
/// key, `1u32` and `1u64` are two.
pub trait Key {
    /// The 64 bits that stand for this key under the seed, by these instructions.
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest;

    /// The 64 bits that stand for this key under the seed.
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        struct One<'a, K: ?Sized>(&'a K, Seed);
        impl<K: Key + ?Sized> Kernel for One<'_, K> {
            type Output = Digest;
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) -> Digest {
                self.0.digest_by(isa, self.1)
            }
        }
        probe::dispatch(One(self, seed))
    }

    /// The digests of many keys. The two slices are of one length.
    #[inline(always)]
    fn digests<I: Isa>(isa: I, seed: Seed, keys: &[Self], digests: &mut [Digest])
    where
        Self: Sized,
    {
        for (key, digest) in keys.iter().zip(digests) {
            *digest = key.digest_by(isa, seed);
        }
    }
}

impl Key for [u8] {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        Cipher::new(isa, seed).digest(self)
    }
}

impl<const N: usize> Key for [u8; N] {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        Cipher::new(isa, seed).digest(self)
    }
}

impl Key for Digest {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, _: I, _: Seed) -> Digest {
        *self
    }

    #[inline(always)]
    fn digest(&self, _: Seed) -> Digest {
        *self
    }
}

impl Key for str {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        self.as_bytes().digest_by(isa, seed)
    }
}

impl Key for String {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        self.as_bytes().digest_by(isa, seed)
    }
}

impl<K: Key + ?Sized> Key for &K {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        (**self).digest_by(isa, seed)
    }
}

impl<K: Key + ?Sized> Key for Box<K> {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        (**self).digest_by(isa, seed)
    }
}

macro_rules! integers {
    ($($int:ty),*) => {$(
        impl Key for $int {
            #[inline(always)]
            fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
                self.to_le_bytes().digest_by(isa, seed)
            }
        }
    )*};
}
integers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);

impl Key for Ipv4Addr {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        self.octets().digest_by(isa, seed)
    }
}

impl Key for Ipv6Addr {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        self.octets().digest_by(isa, seed)
    }
}

impl Key for IpAddr {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        match self {
            IpAddr::V4(address) => address.digest_by(isa, seed),
            IpAddr::V6(address) => address.digest_by(isa, seed),
        }
    }
}

impl Key for SocketAddrV4 {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        let mut bytes = [0; 6];
        bytes[..4].copy_from_slice(&self.ip().octets());
        bytes[4..].copy_from_slice(&self.port().to_be_bytes());
        bytes.digest_by(isa, seed)
    }
}

impl Key for SocketAddrV6 {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        let mut bytes = [0; 18];
        bytes[..16].copy_from_slice(&self.ip().octets());
        bytes[16..].copy_from_slice(&self.port().to_be_bytes());
        bytes.digest_by(isa, seed)
    }
}

impl Key for SocketAddr {
    #[inline(always)]
    fn digest_by<I: Isa>(&self, isa: I, seed: Seed) -> Digest {
        match self {
            SocketAddr::V4(address) => address.digest_by(isa, seed),
            SocketAddr::V6(address) => address.digest_by(isa, seed),
        }
    }
}
