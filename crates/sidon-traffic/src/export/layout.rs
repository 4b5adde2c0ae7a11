//! Layouts of records, which templates describe: the fields of a record and their lengths.
//!
//! ```text
//! set 0, 2   | id | n | element length | element length | ..       records of flows
//! set 1, 3   | id | lengths or counts  | scope fields   | ..       records of options
//! ```
//! Sets 0 and 1 are NetFlow 9's, 2 and 3 IPFIX's. A field of length 65,535 has its length in each
//! record. A field of length 0 has no bytes in any record, so a layout leaves it out. Every field
//! of a layout therefore takes at least one byte, and the time to read a set is proportional to its
//! bytes.
//!
//! This parser is written by hand. The crate netflow_parser and its dependencies take 15 seconds of
//! processor time in a release build. It also refuses empty fields of variable length, which IPFIX
//! allows.

use super::sets::{half, word};
use std::{fmt, str::FromStr};

/// The length in a template of a field whose length differs from record to record.
const VARIABLE: u16 = 65_535;
/// The enterprise number that marks the scope fields of NetFlow 9, which are numbered separately.
const SCOPE: u32 = u32::MAX;

/// A field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    /// The owner of the element's number; 0 is IANA.
    pub(super) enterprise: u32,
    pub(super) element: u16,
    length: u16,
}

/// The fields of a record, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Whether the records are options: properties of the exporter, not flows.
    pub(super) options: bool,
    fields: Vec<Field>,
    /// Bytes of the shortest record.
    least: usize,
}

/// A set of templates ends within a template, or a template has more fields than are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadTemplate;

impl Layout {
    fn new(options: bool, fields: Vec<Field>) -> Self {
        let length = |field: &Field| match field.length {
            VARIABLE => 1,
            length => usize::from(length),
        };
        let least = fields.iter().map(length).sum();
        Layout { options, fields, least }
    }

    /// The records of a set. Bytes at the end that are too few for a record are padding.
    pub(super) fn records<'a>(&'a self, body: &'a [u8]) -> Records<'a> {
        Records { layout: self, rest: body, steps: 0 }
    }
}

/// Iterator over the records of a set.
#[derive(Debug)]
pub(super) struct Records<'a> {
    layout: &'a Layout,
    rest: &'a [u8],
    steps: u64,
}

impl Records<'_> {
    /// The number of fields read so far. A field is read twice: to find the record's end, and for its
    /// value.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Reads the next record and calls `to` with each of its fields. Returns whether there was one.
    pub(super) fn next(&mut self, mut to: impl FnMut(Field, &[u8])) -> bool {
        let Records { layout, rest, steps } = self;
        if layout.least == 0 || rest.len() < layout.least {
            return false;
        }
        // Finds the end of the record first: a record that the set cuts off must not be counted in
        // part.
        let Some(length) = length(&layout.fields, rest, steps) else {
            *rest = &[];
            return false;
        };
        let (mut record, after) = rest.split_at(length);
        for field in &layout.fields {
            *steps += 1;
            let Some((value, others)) = value(*field, record) else { return false };
            to(*field, value);
            record = others;
        }
        *rest = after;
        true
    }
}

/// The bytes of the record that `bytes` start with; `None` if they end within it. Adds the fields read
/// to `steps`.
fn length(fields: &[Field], bytes: &[u8], steps: &mut u64) -> Option<usize> {
    let mut rest = bytes;
    for field in fields {
        *steps += 1;
        (_, rest) = value(*field, rest)?;
    }
    Some(bytes.len() - rest.len())
}

/// Splits `bytes` into a field's value and what follows it.
fn value(field: Field, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, length) = match (field.length, bytes) {
        (VARIABLE, [255, high, low, ..]) => (3, u16::from_be_bytes([*high, *low])),
        (VARIABLE, [255, ..] | []) => return None,
        (VARIABLE, [length, ..]) => (1, u16::from(*length)),
        (length, _) => (0, length),
    };
    bytes.get(head..)?.split_at_checked(length.into())
}

/// Reads the set `number` of templates, with at most `most` fields each, and calls `to` with each.
/// Adds the templates and fields read to `steps`.
pub(super) fn templates(
    number: u16,
    body: &[u8],
    most: usize,
    steps: &mut u64,
    mut to: impl FnMut(u16, Layout),
) -> Result<(), BadTemplate> {
    let mut rest = body;
    // Padding is shorter than a template's header, or zeros.
    while let (Some(id @ 1..), Some(count)) = (half(rest, 0), half(rest, 2)) {
        *steps += 1;
        // Template numbers start at 256. A withdrawal of all templates has the number of their set.
        if id < 256 && (id, count) != (number, 0) {
            return Err(BadTemplate);
        }
        let (mut at, counts) = match number {
            0 | 2 => (4, [0, usize::from(count)]),
            // NetFlow 9 gives the lengths in bytes of the scope fields and of the others.
            1 => {
                let others = half(rest, 4).ok_or(BadTemplate)?;
                (6, [count, others].map(|bytes| usize::from(bytes) / 4))
            }
            // A withdrawal of IPFIX ends after the count.
            _ if count == 0 => (4, [0, 0]),
            _ => (6, [0, usize::from(count)]),
        };
        let left = rest.len().saturating_sub(at) / 4;
        if counts[0] + counts[1] > most.min(left) {
            return Err(BadTemplate);
        }
        let mut fields = Vec::with_capacity(counts[0] + counts[1]);
        for i in 0..counts[0] + counts[1] {
            *steps += 1;
            let element = half(rest, at).ok_or(BadTemplate)?;
            let length = half(rest, at + 2).ok_or(BadTemplate)?;
            at += 4;
            let mut field = Field { enterprise: 0, element, length };
            if i < counts[0] {
                field.enterprise = SCOPE;
            } else if number >= 2 && element & 0x8000 != 0 {
                field.element = element & 0x7fff;
                field.enterprise = word(rest, at).ok_or(BadTemplate)?;
                at += 4;
            }
            if length > 0 {
                fields.push(field);
            }
        }
        // Without fields it is a withdrawal, which a collector of UDP must ignore (RFC 7011, 8.4): the
        // address of its sender may be forged.
        if counts[0] + counts[1] > 0 {
            to(id, Layout::new(matches!(number, 1 | 3), fields));
        }
        rest = rest.get(at..).unwrap_or_default();
    }
    Ok(())
}

impl fmt::Display for Layout {
    /// `flows 8/4 12/4 9.12235/2`: the kind, then enterprise (unless it is IANA), element and
    /// length of each field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.options { "options" } else { "flows" })?;
        for Field { enterprise, element, length } in &self.fields {
            match enterprise {
                0 => write!(f, " {element}/{length}")?,
                _ => write!(f, " {enterprise}.{element}/{length}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Layout {
    type Err = BadTemplate;

    fn from_str(text: &str) -> Result<Self, BadTemplate> {
        let mut words = text.split(' ');
        let options = match words.next() {
            Some("flows") => false,
            Some("options") => true,
            _ => return Err(BadTemplate),
        };
        let field = |word: &str| {
            let (name, length) = word.split_once('/')?;
            let (enterprise, element) = name.split_once('.').unwrap_or(("0", name));
            let [enterprise, element, length] =
                [enterprise.parse().ok()?, element.parse().ok()?, length.parse().ok()?];
            let (element, length) = (u16::try_from(element).ok()?, u16::try_from(length).ok()?);
            (length > 0).then_some(Field { enterprise, element, length })
        };
        let fields: Option<Vec<_>> = words.map(field).collect();
        Ok(Layout::new(options, fields.ok_or(BadTemplate)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(layout: &str, body: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let layout: Layout = layout.parse().unwrap();
        let mut records = layout.records(body);
        let mut all = Vec::new();
        loop {
            let mut values = Vec::new();
            if !records.next(|_, value| values.push(value.to_vec())) {
                return all;
            }
            all.push(values);
        }
    }

    #[test]
    fn records_have_fields_of_fixed_and_of_variable_length() {
        let layout = "flows 8/2 82/65535 4/1 83/65535";
        let one = vec![vec![1, 2], vec![9], vec![3], vec![7, 8]];
        assert_eq!(read(layout, &[1, 2, 1, 9, 3, 2, 7, 8]), std::slice::from_ref(&one));
        // An empty field in both of its forms, then padding.
        let empty = vec![vec![1, 2], vec![], vec![3], vec![]];
        assert_eq!(
            read(layout, &[1, 2, 0, 3, 0, 1, 2, 255, 0, 0, 3, 0, 0, 0, 0]),
            [empty.clone(), empty]
        );
        // A record that the set cuts off is not read.
        assert_eq!(read(layout, &[1, 2, 1, 9, 3, 2, 7, 8, 1, 2, 0, 3, 9]), [one]);
        assert_eq!(read(layout, &[1, 2, 255, 0]), Vec::<Vec<Vec<u8>>>::new());
        assert_eq!(read("flows", &[1, 2, 3]), Vec::<Vec<Vec<u8>>>::new());
        assert_eq!(read("flows 4/1", &[1, 2, 3]).len(), 3);
    }

    fn told(number: u16, halves: &[u16], most: usize) -> Result<Vec<String>, BadTemplate> {
        let body: Vec<u8> = halves.iter().flat_map(|half| half.to_be_bytes()).collect();
        let mut all = Vec::new();
        templates(number, &body, most, &mut 0, |id, layout| all.push(format!("{id} {layout}")))?;
        Ok(all)
    }

    #[test]
    fn templates_of_every_kind_are_read_and_written() {
        // Two of NetFlow 9, one with a field of no length, and padding.
        let sent = [256, 2, 8, 4, 12, 4, 257, 3, 1, 4, 210, 0, 0x8002, 8, 0, 0];
        assert_eq!(told(0, &sent, 9).unwrap(), ["256 flows 8/4 12/4", "257 flows 1/4 32770/8"]);
        // Options of NetFlow 9: one scope field, two others.
        let sent = [260, 4, 8, 1, 4, 34, 4, 48, 1, 0];
        assert_eq!(told(1, &sent, 9).unwrap(), ["260 options 4294967295.1/4 34/4 48/1"]);
        // IPFIX, with a field of an enterprise, and a withdrawal, which is ignored.
        let sent = [300, 2, 0x8000 | 12_236, 4, 0, 9, 82, 65_535, 301, 0];
        assert_eq!(told(2, &sent, 9).unwrap(), ["300 flows 9.12236/4 82/65535"]);
        assert_eq!(told(2, &[2, 0, 300, 1, 8, 4], 9).unwrap(), ["300 flows 8/4"]);
        let sent = [310, 2, 1, 302, 4, 309, 4, 311, 0];
        assert_eq!(told(3, &sent, 9).unwrap(), ["310 options 302/4 309/4"]);
        // One that ends too soon, and one of too many fields.
        assert_eq!(told(2, &[256, 2, 8, 4, 12], 9), Err(BadTemplate));
        assert_eq!(told(1, &[256, 4], 9), Err(BadTemplate));
        assert_eq!(told(2, &[255, 1, 8, 4], 9), Err(BadTemplate));
        assert_eq!(told(0, &[256, 2, 8, 4, 12, 4], 1), Err(BadTemplate));
        for text in ["", "flow 8/4", "flows 8", "flows 8/0", "flows 70000/4", "flows 8/4 "] {
            assert_eq!(text.parse::<Layout>(), Err(BadTemplate), "{text:?}");
        }
    }
}
