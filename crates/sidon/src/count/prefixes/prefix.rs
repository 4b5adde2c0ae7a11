//! Prefixes of addresses, and the five lengths for which a table keeps entries.
//!
//! A table treats both families as numbers of 128 bits. An IPv4 address is `::ffff:a.b.c.d`, so an
//! IPv4-mapped IPv6 address counts as the IPv4 address that it contains. The other IPv6 addresses
//! never have this form, so a number determines its family.

use crate::Infeasible;
use std::{fmt, net::IpAddr};

/// The number of lengths for which a table keeps entries.
pub const LEVELS: usize = 5;

/// The lengths, from the whole address to the shortest prefix: of IPv4, then of IPv6.
pub(super) const LENGTHS: [[u8; LEVELS]; 2] = [[32, 24, 20, 16, 8], [128, 64, 56, 48, 32]];

/// The bits of a number that a prefix of each length has.
const MASKS: [[u128; LEVELS]; 2] = masks();

const fn masks() -> [[u128; LEVELS]; 2] {
    let mut masks = [[0; LEVELS]; 2];
    let mut level = 0;
    while level < LEVELS {
        masks[0][level] = u128::MAX << (32 - LENGTHS[0][level]);
        masks[1][level] = u128::MAX << (128 - LENGTHS[1][level]);
        level += 1;
    }
    masks
}

/// The index of a number's family in [`LENGTHS`].
#[inline(always)]
pub(super) fn family(number: u128) -> usize {
    usize::from(number >> 32 != 0xffff)
}

/// The first bits of a number, as long as a prefix of this level.
#[inline(always)]
pub(super) fn at_level(number: u128, level: usize) -> u128 {
    number & MASKS[family(number)][level]
}

/// The number of an address.
#[inline(always)]
pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => 0xffff << 32 | u128::from(u32::from(address)),
        IpAddr::V6(address) => address.into(),
    }
}

/// The addresses whose first bits are equal: a network in CIDR notation.
///
/// Bits of the address after the prefix are cleared. An IPv4-mapped prefix of at least 96 bits is the
/// IPv4 prefix that it contains.
///
/// ```
/// use sidon::count::Prefix;
///
/// let net = Prefix::new("192.0.2.77".parse()?, 24)?;
/// assert_eq!(net.to_string(), "192.0.2.0/24");
/// assert!(net.contains("192.0.2.5".parse()?) && !net.contains("192.0.3.5".parse()?));
/// assert_eq!(Prefix::new("::ffff:192.0.2.77".parse()?, 120)?, net);
/// assert!(Prefix::new("192.0.2.77".parse()?, 33).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    number: u128,
    length: u8,
    v4: bool,
}

impl Prefix {
    /// The first `length` bits of the address: 0 to 32 for IPv4, 0 to 128 for IPv6.
    pub fn new(address: IpAddr, length: u8) -> Result<Self, Infeasible> {
        let most = if address.is_ipv4() { 32 } else { 128 };
        Infeasible::unless_within("length", length.into(), 0, most)?;
        let number = number(address);
        let mapped = address.is_ipv6() && family(number) == 0 && length >= 96;
        let (v4, length) = if mapped { (true, length - 96) } else { (address.is_ipv4(), length) };
        let own = if v4 { 32 } else { 128 };
        let mask = u128::MAX.checked_shl(own - u32::from(length)).unwrap_or(0);
        Ok(Prefix { number: number & mask, length, v4 })
    }

    /// The prefix at a level that has these first bits.
    pub(super) fn at(number: u128, level: usize) -> Self {
        let v4 = family(number) == 0;
        Prefix { number, length: LENGTHS[usize::from(!v4)][level], v4 }
    }

    /// The first address.
    pub fn address(&self) -> IpAddr {
        if self.v4 {
            IpAddr::V4((self.number as u32).into())
        } else {
            IpAddr::V6(self.number.into())
        }
    }

    /// The number of bits.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether the address begins with the bits of this prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.has(number(address))
    }

    /// Whether a number of the same family begins with the bits of this prefix.
    #[inline(always)]
    pub(super) fn has(&self, number: u128) -> bool {
        let own = if self.v4 { 32 } else { 128 };
        let differ = number ^ self.number;
        self.family() == family(number)
            && differ.checked_shr(own - u32::from(self.length)).unwrap_or(0) == 0
    }

    /// The bits, as a number.
    pub(super) fn number(&self) -> u128 {
        self.number
    }

    /// The index of the family in [`LENGTHS`].
    pub(super) fn family(&self) -> usize {
        usize::from(!self.v4)
    }
}

/// IPv4 first, then by address; a shorter prefix before a longer one.
impl Ord for Prefix {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let order = |prefix: &Prefix| (!prefix.v4, prefix.number, prefix.length);
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for Prefix {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// `192.0.2.0/24`.
impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.address(), self.length))
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_determines_its_family_at_every_level() {
        for (address, v4) in [("10.9.8.7", true), ("::ffff:10.9.8.7", true), ("2001:db8::1", false)]
            .into_iter()
            .chain([("0.0.0.0", true), ("255.255.255.255", true), ("::", false), ("::1", false)])
            .chain([("::fffe:10.9.8.7", false), ("::1:ffff:10.9.8.7", false), ("ffff::", false)])
        {
            let number = number(address.parse().unwrap());
            for (level, &length) in LENGTHS[usize::from(!v4)].iter().enumerate() {
                let bits = at_level(number, level);
                assert_eq!(family(bits) == 0, v4, "{address}, level {level}");
                let prefix = Prefix::at(bits, level);
                assert!(prefix.has(number) && prefix.length() == length);
                assert_eq!(Prefix::new(prefix.address(), prefix.length()).unwrap(), prefix);
                // Every longer prefix of the address has the same shorter ones.
                assert!((0..level).all(|finer| at_level(at_level(number, finer), level) == bits));
            }
        }
    }

    #[test]
    fn prefixes_of_any_length_contain_their_addresses_only() {
        let net = |text: &str, length| Prefix::new(text.parse().unwrap(), length).unwrap();
        assert!(net("0.0.0.0", 0).contains("255.0.0.1".parse().unwrap()));
        assert!(!net("0.0.0.0", 0).contains("2001:db8::1".parse().unwrap()));
        assert!(!net("::", 0).contains("10.0.0.1".parse().unwrap()));
        assert!(net("::", 0).contains("ffff::1".parse().unwrap()));
        assert_eq!(net("10.255.255.255", 9).to_string(), "10.128.0.0/9");
        assert_eq!(net("2001:db8:ffff::", 33).to_string(), "2001:db8:8000::/33");
        assert_eq!(net("::ffff:10.1.2.3", 128).to_string(), "10.1.2.3/32");
        assert_eq!(net("::ffff:10.1.2.3", 95).to_string(), "::fffe:0:0/95");
        assert!(net("10.0.0.0", 8) < net("10.0.0.0", 9) && net("255.0.0.0", 8) < net("::", 0));
    }
}
