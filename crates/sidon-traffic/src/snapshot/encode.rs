//! Numbers, texts and lists of names as bytes, and back.

use crate::{monitor::sizes, names};
use sidon::Malformed;
use std::net::IpAddr;

/// The largest count that a file may hold, so that sums of several stay below 2^64.
const MOST: u64 = 1 << 62;

/// Bytes that are being written.
#[derive(Debug, Default)]
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    pub(super) fn numbers(&mut self, numbers: &[u64]) {
        numbers.iter().for_each(|&number| self.number(number));
    }

    /// Writes a text. Control characters become spaces, because [`In::text`] refuses them.
    pub(super) fn text(&mut self, text: &str) {
        let text = &text.replace(char::is_control, " ");
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    pub(super) fn address(&mut self, address: IpAddr) {
        self.0.extend(sizes::host(address));
    }

    /// Writes names, each with its count.
    pub(super) fn list(&mut self, list: &[(&'static str, u64)]) {
        self.number(list.len() as u64);
        for (name, count) in list {
            self.text(name);
            self.number(*count);
        }
    }
}

/// The bytes being read, and the name of their part.
#[derive(Debug, Clone, Copy)]
pub(super) struct In<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) name: &'static str,
}

impl<'a> In<'a> {
    pub(super) fn wrong<T>(&self) -> Result<T, Malformed> {
        Err(Malformed::Field { name: self.name })
    }

    pub(super) fn take(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((taken, rest)) = self.bytes.split_at_checked(length) else { return self.wrong() };
        self.bytes = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        match self.take(N as u64)?.first_chunk() {
            Some(bytes) => Ok(*bytes),
            None => self.wrong(),
        }
    }

    /// Any number.
    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A count, at most `MOST`.
    pub(super) fn count(&mut self) -> Result<u64, Malformed> {
        let count = self.number()?;
        if count > MOST { self.wrong() } else { Ok(count) }
    }

    pub(super) fn counts<const N: usize>(&mut self) -> Result<[u64; N], Malformed> {
        let mut counts = [0; N];
        for count in &mut counts {
            *count = self.count()?;
        }
        Ok(counts)
    }

    /// An expected number: not negative, and at most `MOST`.
    pub(super) fn expected(&mut self) -> Result<f64, Malformed> {
        let expected = f64::from_bits(self.number()?);
        let fits = expected.is_sign_positive() && expected <= MOST as f64;
        if fits { Ok(expected) } else { self.wrong() }
    }

    pub(super) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.wrong(),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = self.number()?;
        match std::str::from_utf8(self.take(length)?) {
            // Refuses control characters, because the text may be printed to a terminal.
            Ok(text) if !text.chars().any(char::is_control) => Ok(text),
            _ => self.wrong(),
        }
    }

    pub(super) fn name(&mut self) -> Result<&'static str, Malformed> {
        match names::lasting(self.text()?) {
            Some(name) => Ok(name),
            None => self.wrong(),
        }
    }

    pub(super) fn address(&mut self) -> Result<IpAddr, Malformed> {
        let host = self.array()?;
        let address = sizes::address(host);
        if sizes::host(address) != host { self.wrong() } else { Ok(address) }
    }

    pub(super) fn list(&mut self) -> Result<Vec<(&'static str, u64)>, Malformed> {
        let length = self.number()?;
        let mut list: Vec<(&'static str, u64)> = Vec::new();
        for _ in 0..length {
            let (name, count) = (self.name()?, self.count()?);
            if list.iter().any(|(had, _)| *had == name) {
                return self.wrong();
            }
            list.push((name, count));
        }
        Ok(list)
    }

    /// Refuses trailing bytes.
    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.bytes.is_empty() { Ok(()) } else { self.wrong() }
    }
}
