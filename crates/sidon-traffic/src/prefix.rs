//! A prefix of IPv4 or IPv6: a host, or all hosts whose addresses begin with the same bits.
//!
//! ```
//! use sidon_traffic::Prefix;
//!
//! let network: Prefix = "198.51.96.0/20".parse()?;
//! assert!(network.contains([198, 51, 100, 7].into()));
//! assert_eq!(network.to_string(), "198.51.96.0/20");
//! // A prefix of full length is a host, and prints without its length.
//! assert_eq!("2001:db8::1".parse::<Prefix>()?.to_string(), "2001:db8::1");
//! # Ok::<(), &str>(())
//! ```

use crate::snapshot::encode::{In, Out};
use sidon::Malformed;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// A host or a network, by address and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// Bits after the prefix are zero.
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The network of an address. A length beyond that of the address gives the host.
    pub fn new(address: IpAddr, length: u8) -> Self {
        let length = length.min(bits(address));
        let address = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                Ipv4Addr::from_bits(v4.to_bits() & mask).into()
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                Ipv6Addr::from_bits(v6.to_bits() & mask).into()
            }
        };
        Prefix { address, length }
    }

    /// The first address of the prefix. For a single host, its address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The number of bits that the addresses have in common.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether it is a single address.
    pub fn is_host(&self) -> bool {
        self.length == bits(self.address)
    }

    /// Whether an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && Prefix::new(address, self.length) == *self
    }

    /// Whether all addresses of another prefix are in it.
    pub fn covers(&self, other: &Prefix) -> bool {
        other.length >= self.length && self.contains(other.address)
    }

    /// The word of tcpdump's language for its kind: `host` or `net`.
    pub(crate) fn word(&self) -> &'static str {
        if self.is_host() { "host" } else { "net" }
    }

    pub(crate) fn save(&self, out: &mut Out) {
        out.address(self.address);
        out.number(self.length.into());
    }

    pub(crate) fn read(bytes: &mut In<'_>, field: &'static str) -> Result<Self, Malformed> {
        let (address, length) = (bytes.address(field)?, bytes.below(field, 129)? as u8);
        let read = Prefix::new(address, length);
        bytes.check(field, read == Prefix { address, length })?;
        Ok(read)
    }
}

/// The length of an address in bits.
fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl From<IpAddr> for Prefix {
    fn from(host: IpAddr) -> Self {
        Prefix { address: host, length: bits(host) }
    }
}

impl PartialEq<IpAddr> for Prefix {
    /// Whether it is this host.
    fn eq(&self, host: &IpAddr) -> bool {
        *self == Prefix::from(*host)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_host() {
            true => self.address.fmt(f),
            false => write!(f, "{}/{}", self.address, self.length),
        }
    }
}

impl FromStr for Prefix {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "expected an address, or a network like 192.0.2.0/24";
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| WRONG)?;
        let Some(length) = length else { return Ok(address.into()) };
        let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse().ok().filter(|&length| is_number && length <= bits(address));
        let network = Prefix::new(address, length.ok_or(WRONG)?);
        match network.address == address {
            true => Ok(network),
            false => Err("the address has bits beyond the prefix; set them to zero"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn texts_are_read_and_printed_alike_and_others_refused() {
        for text in
            ["0.0.0.0/0", "::/0", "10.0.0.0/8", "10.1.2.3", "2001:db8::/32", "::1", "::/128"]
        {
            let again = if text == "::/128" { "::" } else { text };
            assert_eq!(prefix(text).to_string(), again);
        }
        for text in
            ["", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.1/8", "::/129", "/8", "a", "1.2.3.4/"]
        {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_length_contains_the_addresses_that_share_its_bits() {
        for length in 0..=32u8 {
            let network = Prefix::new([198, 51, 100, 7].into(), length);
            for bit in 0..32u8 {
                let other = Ipv4Addr::from_bits(0xc633_6407 ^ 1 << (31 - bit));
                assert_eq!(network.contains(other.into()), bit >= length, "{network} {other}");
            }
            assert!(!network.contains("::".parse().unwrap()));
            assert!(prefix("0.0.0.0/0").covers(&network) && network.covers(&network));
            assert_eq!(network.covers(&prefix("198.0.0.0/8")), length <= 8);
        }
        for length in 0..=128u8 {
            let network = Prefix::new("2001:db8::7".parse().unwrap(), length);
            assert!(network.contains("2001:db8::7".parse().unwrap()));
            assert_eq!(network.contains("2001:db8::6".parse().unwrap()), length < 128);
        }
    }
}
