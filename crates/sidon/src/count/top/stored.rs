//! Keys that a table can store and return.

use crate::{Digest, Key};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A key with a fixed number of bytes. Keys with equal amounts are listed in this order in a
/// [`Ranking`](super::Ranking).
pub trait Stored: Key + Copy + Ord {
    /// The number of bytes, at least one.
    const BYTES: usize;

    /// Writes the key to exactly [`Self::BYTES`] bytes. Equal keys write equal bytes.
    fn write(&self, bytes: &mut [u8]);

    /// The key of exactly [`Self::BYTES`] bytes. Bytes that no key writes give an arbitrary key.
    fn read(bytes: &[u8]) -> Self;

    /// Whether these bytes are those of the key.
    #[inline(always)]
    fn is(&self, bytes: &[u8]) -> bool {
        Self::read(bytes) == *self
    }
}

impl<const N: usize> Stored for [u8; N] {
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

macro_rules! stored {
    ($($key:ty: $array:ty, $to:expr, $from:expr;)*) => {$(
        impl Stored for $key {
            const BYTES: usize = size_of::<$array>();

            #[inline(always)]
            fn write(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&$to(*self));
            }

            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                $from(<$array>::read(bytes))
            }
        }
    )*};
}
stored! {
    u8: [u8; 1], u8::to_le_bytes, u8::from_le_bytes;
    u16: [u8; 2], u16::to_le_bytes, u16::from_le_bytes;
    u32: [u8; 4], u32::to_le_bytes, u32::from_le_bytes;
    u64: [u8; 8], u64::to_le_bytes, u64::from_le_bytes;
    u128: [u8; 16], u128::to_le_bytes, u128::from_le_bytes;
    Ipv4Addr: [u8; 4], |key: Ipv4Addr| key.octets(), Ipv4Addr::from;
    Ipv6Addr: [u8; 16], |key: Ipv6Addr| key.octets(), Ipv6Addr::from;
    Digest: [u8; 8], |key: Digest| key.0.to_le_bytes(), |bytes| Digest(u64::from_le_bytes(bytes));
}
