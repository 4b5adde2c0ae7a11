//! Numbers on the command line.

use std::{
    net::{SocketAddr, SocketAddrV4},
    ops::RangeInclusive,
};

/// Parses a whole number within the limits: 1000000, 1_000_000 or 1e6.
pub(crate) fn within<T: TryFrom<u64>>(
    limits: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = whole(text).ok().filter(|number| limits.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            format!("expected a whole number from {} to {}", limits.start(), limits.end())
        })
    }
}

/// Parses a whole number: 1000000, 1_000_000 or 1e6.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.replace('_', "").parse() {
        return Ok(number);
    }
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number < 2f64.powi(64) && number.fract() == 0.0 => {
            Ok(number as u64)
        }
        _ => Err("expected a whole number, such as 1000000 or 1e6".to_owned()),
    }
}

/// Parses a number, whole or not.
pub(crate) fn decimal(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "expected a number, such as 0.01 or 1e-6".to_owned())
}

/// Parses a number of bytes, with or without a unit.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)];
    let (number, unit) = units
        .iter()
        .find_map(|&(name, unit)| Some((text.strip_suffix(name)?.trim_end(), unit)))
        .unwrap_or((text, 1));
    let bytes = whole(number).ok().and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| "expected a number of bytes, such as 65536, 64KiB or 16MiB".to_owned())
}

/// The number of bytes as [`memory`] reads it, in the largest unit that divides it.
pub(crate) fn memory_text(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Parses an address and a port.
pub(crate) fn socket(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an address and a port, such as 127.0.0.1:7700 or [::1]:7700".to_owned()
    })
}

/// Parses an IPv4 address and a port.
pub(crate) fn socket_v4(text: &str) -> Result<SocketAddrV4, String> {
    text.parse()
        .map_err(|_| "expected an IPv4 address and a port, such as 198.18.0.7:443".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_units() {
        for (text, bytes) in
            [("65537", 65_537), ("64KiB", 65_536), ("16MiB", 16 << 20), ("2GiB", 2 << 30)]
        {
            assert_eq!((memory(text), memory_text(bytes)), (Ok(bytes), text.to_owned()));
        }
        assert_eq!(memory("16 MiB"), Ok(16 << 20));
        assert_eq!(memory_text(0), "0");
        assert!(memory("lots").is_err() && memory("99999999999GiB").is_err());
    }

    #[test]
    fn whole_numbers_keep_their_limits() {
        let (byte, wrong) = (within::<u8>(1..=8), "expected a whole number from 1 to 8");
        assert_eq!((byte("1"), byte("8")), (Ok(1), Ok(8)));
        for text in ["0", "9", "1.5", "x", "", "-1"] {
            assert_eq!(byte(text), Err(wrong.to_owned()), "{text}");
        }
        assert_eq!(within::<u64>(0..=1 << 40)("1e6"), Ok(1_000_000));
    }
}
