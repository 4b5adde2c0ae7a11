//! What can be hashed, and which bytes it is hashed as.

use super::{Digest, Seed, sip};
use crate::probe::Isa;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Something that a structure can be asked about.
///
/// The trait is the library's own, because what `std::hash::Hash` feeds to a hasher differs from
/// machine to machine and release to release. Every implementation here is a documented byte
/// string, hashed by SipHash-1-3:
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
    /// The 64 bits that stand for this key under the seed.
    fn digest(&self, seed: Seed) -> Digest;

    /// The digests of many keys. The two slices are of one length.
    #[inline(always)]
    fn digests<I: Isa>(_isa: I, seed: Seed, keys: &[Self], digests: &mut [Digest])
    where
        Self: Sized,
    {
        for (key, digest) in keys.iter().zip(digests) {
            *digest = key.digest(seed);
        }
    }
}

impl Key for [u8] {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        sip::hash(seed, self)
    }
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        sip::hash(seed, self)
    }

    #[inline(always)]
    fn digests<I: Isa>(isa: I, seed: Seed, keys: &[Self], digests: &mut [Digest]) {
        sip::hash_each(isa, seed, keys, digests);
    }
}

impl Key for Digest {
    #[inline]
    fn digest(&self, _: Seed) -> Digest {
        *self
    }
}

impl Key for str {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        self.as_bytes().digest(seed)
    }
}

impl Key for String {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        self.as_bytes().digest(seed)
    }
}

impl<K: Key + ?Sized> Key for &K {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        (**self).digest(seed)
    }
}

impl<K: Key + ?Sized> Key for Box<K> {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        (**self).digest(seed)
    }
}

macro_rules! integers {
    ($($int:ty),*) => {$(
        impl Key for $int {
            #[inline]
            fn digest(&self, seed: Seed) -> Digest {
                self.to_le_bytes().digest(seed)
            }
        }
    )*};
}
integers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);

impl Key for Ipv4Addr {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        self.octets().digest(seed)
    }
}

impl Key for Ipv6Addr {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        self.octets().digest(seed)
    }
}

impl Key for IpAddr {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        match self {
            IpAddr::V4(address) => address.digest(seed),
            IpAddr::V6(address) => address.digest(seed),
        }
    }
}

impl Key for SocketAddrV4 {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        let mut bytes = [0; 6];
        bytes[..4].copy_from_slice(&self.ip().octets());
        bytes[4..].copy_from_slice(&self.port().to_be_bytes());
        bytes.digest(seed)
    }
}

impl Key for SocketAddrV6 {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        let mut bytes = [0; 18];
        bytes[..16].copy_from_slice(&self.ip().octets());
        bytes[16..].copy_from_slice(&self.port().to_be_bytes());
        bytes.digest(seed)
    }
}

impl Key for SocketAddr {
    #[inline]
    fn digest(&self, seed: Seed) -> Digest {
        match self {
            SocketAddr::V4(address) => address.digest(seed),
            SocketAddr::V6(address) => address.digest(seed),
        }
    }
}
