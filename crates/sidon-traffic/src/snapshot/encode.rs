//! Numbers, figures, texts and lists of names as bytes, and back.
//!
//! A count may be any number up to [`CEILING`], where every sum of counts stops. An expected number
//! may be from 0 to [`EXPECTED_MAX`]. The lengths of lists have limits that the writer keeps, too.

use crate::{
    Figure, FlowKey,
    figure::{CEILING, Kind},
    ledger,
    monitor::sizes,
    names,
};
use sidon::{Malformed, count::Stored};
use std::net::{IpAddr, SocketAddr};

/// The largest expected number. A larger sum is saved as this.
const EXPECTED_MAX: f64 = CEILING as f64;

/// The largest count that an engine may go on from. It has room for 2,000 years of a million packets
/// a second, and sums of a few such counts do not overflow.
const COUNT_MAX: u64 = 1 << 56;

/// The kinds of figures, by their numbers.
const KINDS: [Kind; 5] = [Kind::Exact, Kind::AtMost, Kind::AtLeast, Kind::Estimate, Kind::Unknown];

/// Bytes of a flow key.
const FLOW: usize = 38;

/// Bytes that are being written.
#[derive(Debug, Default)]
pub(crate) struct Out(pub(crate) Vec<u8>);

impl Out {
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    pub(crate) fn numbers(&mut self, numbers: &[u64]) {
        numbers.iter().for_each(|&number| self.number(number));
    }

    /// Writes a text. Control characters become spaces, because [`In::text`] refuses them.
    pub(crate) fn text(&mut self, text: &str) {
        let text = &text.replace(char::is_control, " ");
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    pub(crate) fn address(&mut self, address: IpAddr) {
        self.0.extend(sizes::host(address));
    }

    /// Writes bytes whose number the reader knows.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Writes the number of bytes, then the bytes.
    pub(crate) fn nested(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.number(flag.into());
    }

    /// Writes whether there is a number, and the number or 0.
    pub(crate) fn optional(&mut self, number: Option<u64>) {
        self.flag(number.is_some());
        self.number(number.unwrap_or(0));
    }

    pub(crate) fn flow(&mut self, flow: FlowKey) {
        self.raw(&flow.parts());
    }

    /// Writes an expected number, at most [`EXPECTED_MAX`].
    pub(crate) fn expected(&mut self, expected: f64) {
        let expected = if expected > 0.0 { expected.min(EXPECTED_MAX) } else { 0.0 };
        self.number(expected.to_bits());
    }

    /// Writes the kind, the number, the lower end of the interval, whether there is an upper end,
    /// and the upper end or 0.
    pub(crate) fn figure(&mut self, figure: &Figure) {
        let kind = KINDS.iter().position(|kind| *kind == figure.kind()).unwrap_or(KINDS.len());
        let most = figure.most();
        self.numbers(&[kind as u64, figure.value(), figure.least()]);
        self.numbers(&[most.is_some().into(), most.unwrap_or(0)]);
    }

    /// Writes names, each with its count.
    pub(crate) fn list(&mut self, list: &[(&'static str, u64)]) {
        self.number(list.len() as u64);
        for (name, count) in list {
            self.text(name);
            self.number(*count);
        }
    }
}

/// The bytes being read, and the name of their part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct In<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) part: &'static str,
}

impl<'a> In<'a> {
    /// The error that names the part and this field.
    pub(crate) fn wrong<T>(&self, field: &'static str) -> Result<T, Malformed> {
        Err(Malformed::Part { part: self.part, field })
    }

    /// Refuses the part, and names this field, unless `holds`.
    pub(crate) fn check(&self, field: &'static str, holds: bool) -> Result<(), Malformed> {
        if holds { Ok(()) } else { self.wrong(field) }
    }

    pub(crate) fn take(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((taken, rest)) = self.bytes.split_at_checked(length) else {
            return self.wrong("length");
        };
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        match self.take(N as u64)?.first_chunk() {
            Some(bytes) => Ok(*bytes),
            None => self.wrong("length"),
        }
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Any numbers.
    pub(crate) fn numbers<const N: usize>(&mut self) -> Result<[u64; N], Malformed> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Ok(numbers)
    }

    /// The length of a list, at most `most`.
    pub(crate) fn length(&mut self, field: &'static str, most: usize) -> Result<u64, Malformed> {
        let length = self.number()?;
        self.check(field, length <= most as u64)?;
        Ok(length)
    }

    /// An expected number, from 0 to [`EXPECTED_MAX`].
    pub(crate) fn expected(&mut self, field: &'static str) -> Result<f64, Malformed> {
        let expected = f64::from_bits(self.number()?);
        self.check(field, expected.is_sign_positive() && expected <= EXPECTED_MAX)?;
        Ok(expected)
    }

    pub(crate) fn flag(&mut self, field: &'static str) -> Result<bool, Malformed> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.wrong(field),
        }
    }

    pub(crate) fn text(&mut self, field: &'static str) -> Result<&'a str, Malformed> {
        let length = self.number()?;
        match std::str::from_utf8(self.take(length)?) {
            // Refuses control characters, because the text may be printed to a terminal.
            Ok(text) if !text.chars().any(char::is_control) => Ok(text),
            _ => self.wrong(field),
        }
    }

    pub(crate) fn name(&mut self, field: &'static str) -> Result<&'static str, Malformed> {
        match names::lasting(self.text(field)?) {
            Some(name) => Ok(name),
            None => self.wrong(field),
        }
    }

    pub(crate) fn address(&mut self, field: &'static str) -> Result<IpAddr, Malformed> {
        let host = self.array()?;
        let address = sizes::address(host);
        self.check(field, sizes::host(address) == host)?;
        Ok(address)
    }

    /// A figure whose interval and kind agree.
    pub(crate) fn figure(&mut self, field: &'static str) -> Result<Figure, Malformed> {
        let [kind, value, least] = self.numbers()?;
        let (has_most, number) = (self.flag(field)?, self.number()?);
        let most = has_most.then_some(number);
        let kind = usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind));
        let figure = match (kind, most) {
            (Some(Kind::Exact), _) => Figure::exact(value),
            (Some(Kind::AtMost), Some(most)) => Figure::at_most(least, most),
            (Some(Kind::AtLeast), _) => Figure::at_least(least, most),
            (Some(Kind::Estimate), Some(most)) => Figure::estimate(value, least, most),
            (Some(Kind::Unknown), _) => Figure::unknown(value),
            _ => return self.wrong(field),
        };
        // A constructor that changed a field has read an inconsistent figure.
        let same = (figure.value(), figure.least(), figure.most()) == (value, least, most);
        let is_zero = has_most || number == 0;
        self.check(field, same && is_zero && kind == Some(&figure.kind()))?;
        Ok(figure)
    }

    /// Different names, each with its count, at most [`ledger::NAMES_MAX`].
    pub(crate) fn list(
        &mut self,
        field: &'static str,
    ) -> Result<Vec<(&'static str, u64)>, Malformed> {
        let length = self.length(field, ledger::NAMES_MAX)?;
        let mut list: Vec<(&'static str, u64)> = Vec::new();
        for _ in 0..length {
            let (name, count) = (self.name(field)?, self.number()?);
            self.check(field, list.iter().all(|(had, _)| *had != name))?;
            list.push((name, count));
        }
        // The last entry of a full list is `OTHERS`.
        let named = list.iter().filter(|(name, _)| *name != ledger::OTHERS).count();
        self.check(field, named < ledger::NAMES_MAX)?;
        Ok(list)
    }

    /// The bytes of a part inside this part.
    pub(crate) fn nested(&mut self) -> Result<In<'a>, Malformed> {
        let length = self.number()?;
        Ok(In { bytes: self.take(length)?, part: self.part })
    }

    /// A number up to [`COUNT_MAX`].
    pub(crate) fn count(&mut self, field: &'static str) -> Result<u64, Malformed> {
        let [count] = self.counts(field)?;
        Ok(count)
    }

    /// Numbers up to [`COUNT_MAX`].
    pub(crate) fn counts<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u64; N], Malformed> {
        let counts = self.numbers()?;
        self.are_counts(field, &counts)?;
        Ok(counts)
    }

    /// Refuses numbers above [`COUNT_MAX`].
    pub(crate) fn are_counts(&self, field: &'static str, counts: &[u64]) -> Result<(), Malformed> {
        self.check(field, counts.iter().all(|&count| count <= COUNT_MAX))
    }

    /// A number below `end`, as an index.
    pub(crate) fn below(&mut self, field: &'static str, end: usize) -> Result<usize, Malformed> {
        let number = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        self.check(field, number < end)?;
        Ok(number)
    }

    pub(crate) fn optional(&mut self, field: &'static str) -> Result<Option<u64>, Malformed> {
        let (is_some, number) = (self.flag(field)?, self.number()?);
        self.check(field, is_some || number == 0)?;
        Ok(is_some.then_some(number))
    }

    pub(crate) fn flow(&mut self, field: &'static str) -> Result<FlowKey, Malformed> {
        let bytes = self.array::<FLOW>()?;
        let flow = FlowKey::from_parts(bytes);
        let source = SocketAddr::new(flow.source(), flow.source_port());
        let destination = SocketAddr::new(flow.destination(), flow.destination_port());
        let again = FlowKey::between(source, destination, flow.protocol());
        self.check(field, again == Some(flow) && flow.parts() == bytes)?;
        Ok(flow)
    }

    /// Refuses trailing bytes.
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        self.check("length", self.bytes.is_empty())
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
            let mut bytes = In { bytes: &out.0, part: "test" };
            bytes.figure("figure").and_then(|figure| bytes.end().map(|()| figure))
        };
        for (numbers, figure) in [
            ([0, 7, 7, 1, 7], Figure::exact(7)),
            ([1, 9, 5, 1, 9], Figure::at_most(5, 9)),
            ([2, 5, 5, 1, 9], Figure::at_least(5, Some(9))),
            ([2, 5, 5, 0, 0], Figure::at_least(5, None)),
            ([3, 7, 5, 1, 9], Figure::estimate(7, 5, 9)),
            ([4, 7, 0, 0, 0], Figure::unknown(7)),
            ([2, CEILING, CEILING, 0, 0], Figure::exact(CEILING)),
            ([4, CEILING, 0, 0, 0], Figure::unknown(CEILING)),
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
            [0, CEILING, CEILING, 1, CEILING],
            [1, CEILING, 5, 1, CEILING],
            [2, 5, 5, 1, CEILING],
            [3, 7, 5, 1, CEILING],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn expected_numbers_have_one_range_and_the_writer_keeps_it() {
        let read = |bits: u64| {
            let bytes = bits.to_le_bytes();
            In { bytes: &bytes, part: "test" }.expected("mistaken")
        };
        for (written, expected) in [
            (0.0, 0.0),
            (1.5, 1.5),
            (EXPECTED_MAX, EXPECTED_MAX),
            (f64::INFINITY, EXPECTED_MAX),
            (-1.0, 0.0),
        ] {
            let mut out = Out::default();
            out.expected(written);
            let bits = u64::from_le_bytes(out.0.try_into().unwrap());
            assert_eq!(read(bits), Ok(expected));
        }
        let why = Malformed::Part { part: "test", field: "mistaken" };
        for wrong in [-0.0, -1.0, f64::NAN, f64::INFINITY, EXPECTED_MAX * 1.001] {
            assert_eq!(read(wrong.to_bits()), Err(why.clone()), "{wrong}");
        }
    }
}
