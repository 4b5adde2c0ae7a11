//! Numbers, figures, texts and lists of names as bytes, and back.

use crate::{Figure, figure::Kind, monitor::sizes, names};
use sidon::Malformed;
use std::net::IpAddr;

/// The largest count that a file may hold, so that sums of several stay below 2^64.
const MOST: u64 = 1 << 62;

/// The kinds of figures, by their numbers.
const KINDS: [Kind; 5] = [Kind::Exact, Kind::AtMost, Kind::AtLeast, Kind::Estimate, Kind::Unknown];

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

    /// Writes the kind, the number, the lower end of the interval, whether there is an upper end,
    /// and the upper end or 0.
    pub(super) fn figure(&mut self, figure: &Figure) {
        let kind = KINDS.iter().position(|kind| *kind == figure.kind()).unwrap_or(KINDS.len());
        let most = figure.most();
        self.numbers(&[kind as u64, figure.value(), figure.least()]);
        self.numbers(&[most.is_some().into(), most.unwrap_or(0)]);
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

    /// A figure whose interval and kind agree.
    pub(super) fn figure(&mut self) -> Result<Figure, Malformed> {
        let [kind, value, least] = self.counts()?;
        let (has_most, number) = (self.flag()?, self.count()?);
        let most = has_most.then_some(number);
        let kind = usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind));
        let figure = match (kind, most) {
            (Some(Kind::Exact), _) => Figure::exact(value),
            (Some(Kind::AtMost), Some(most)) => Figure::at_most(least, most),
            (Some(Kind::AtLeast), _) => Figure::at_least(least, most),
            (Some(Kind::Estimate), Some(most)) => Figure::estimate(value, least, most),
            (Some(Kind::Unknown), _) => Figure::unknown(value),
            _ => return self.wrong(),
        };
        // A constructor that changed a field has read an inconsistent figure.
        let same = (figure.value(), figure.least(), figure.most()) == (value, least, most);
        let is_zero = has_most || number == 0;
        if same && is_zero && kind == Some(&figure.kind()) { Ok(figure) } else { self.wrong() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_back_and_inconsistent_ones_refused() {
        let read = |numbers: [u64; 5]| {
            let mut out = Out::default();
            out.numbers(&numbers);
            let mut bytes = In { bytes: &out.0, name: "figure" };
            bytes.figure().and_then(|figure| bytes.end().map(|()| figure))
        };
        for (numbers, figure) in [
            ([0, 7, 7, 1, 7], Figure::exact(7)),
            ([1, 9, 5, 1, 9], Figure::at_most(5, 9)),
            ([2, 5, 5, 1, 9], Figure::at_least(5, Some(9))),
            ([2, 5, 5, 0, 0], Figure::at_least(5, None)),
            ([3, 7, 5, 1, 9], Figure::estimate(7, 5, 9)),
            ([4, 7, 0, 0, 0], Figure::unknown(7)),
        ] {
            assert_eq!(read(numbers), Ok(figure));
            let mut out = Out::default();
            out.figure(&figure);
            let expected: Vec<u8> =
                numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            assert_eq!(out.0, expected);
            // Any other value of a field gives another figure, or none.
            for field in 0..5 {
                for other in 0..12 {
                    let mut changed = numbers;
                    changed[field] = other;
                    let is_same = changed == numbers;
                    assert!(read(changed).map_or(true, |read| (read == figure) == is_same));
                }
            }
        }
        for wrong in [
            [0, 7, 6, 1, 7],
            [1, 9, 9, 1, 9],
            [1, 5, 9, 1, 5],
            [2, 5, 5, 0, 9],
            [3, 4, 5, 1, 9],
            [3, 7, 5, 0, 0],
            [4, 7, 1, 0, 0],
            [5, 7, 7, 1, 7],
            [0, 7, 7, 2, 7],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
