//! Fields of variable length that are empty: IPFIX allows them, the parser does not take them.
//!
//! A name that a router does not know is a field of length 0. Before a message is parsed such a
//! field becomes one byte of zero, by the layout that the template told.
//! ```text
//! record   | 10.0.0.1 | 0 | 6 tcp/80 |   ->   | 10.0.0.1 | 1 0 | 6 tcp/80 |
//! ```

use super::{
    Origin,
    sets::{self, half},
};
use std::collections::BTreeMap;

/// The length in a template that says that each record has its own.
const VARIABLE: u16 = 65_535;

/// The lengths of the fields of templates that have such fields.
#[derive(Debug)]
pub(super) struct Variable {
    layouts: BTreeMap<u16, Vec<u16>>,
    /// How many layouts, and fields of one, there may be.
    most: [usize; 2],
}

impl Variable {
    pub(super) fn new(templates: usize, fields: usize) -> Self {
        Variable { layouts: BTreeMap::new(), most: [templates, fields] }
    }

    /// Learns the layouts that a message tells, and gives the message without empty fields if it
    /// has any.
    pub(super) fn filled(&mut self, origin: Origin, message: &[u8]) -> Option<Vec<u8>> {
        // Two messages in one datagram stay as they are.
        if half(message, 2).map(usize::from) != Some(message.len()) {
            return None;
        }
        let mut changed = Vec::new();
        for (at, (number, body)) in sets::of(message).enumerate() {
            match number {
                2 | 3 => self.learn(body, number == 3),
                _ => {
                    let layout = self.layouts.get(&number);
                    let full = layout.and_then(|layout| without_empty(body, layout));
                    changed.extend(full.map(|full| (at, full)));
                }
            }
        }
        if changed.is_empty() {
            return None;
        }
        let mut changed = changed.iter().peekable();
        let all = sets::of(message).enumerate().map(|(at, (number, body))| {
            let full = changed.next_if(|(changed, _)| *changed == at);
            (number, full.map_or(body, |(_, full)| &full[..]))
        });
        let mut full = sets::message(origin, all)?;
        // The time and the number are those of the message.
        full[4..12].copy_from_slice(message.get(4..12)?);
        Some(full)
    }

    /// Learns from a set of templates, of options or not.
    fn learn(&mut self, mut body: &[u8], options: bool) {
        let [templates, most] = self.most;
        while let (Some(number), Some(fields)) = (half(body, 0), half(body, 2)) {
            let mut at = if options && fields > 0 { 6 } else { 4 };
            let mut lengths = Vec::new();
            for _ in 0..usize::from(fields).min(most + 1) {
                let (Some(kind), Some(length)) = (half(body, at), half(body, at + 2)) else {
                    return;
                };
                // The highest bit announces the number of an enterprise.
                at += if kind & 0x8000 == 0 { 4 } else { 8 };
                lengths.push(length);
            }
            self.layouts.remove(&number);
            if lengths.len() > most {
                return;
            }
            if lengths.contains(&VARIABLE) && self.layouts.len() < templates {
                self.layouts.insert(number, lengths);
            }
            body = body.get(at..).unwrap_or_default();
        }
    }
}

/// The records with a byte in every field; `None` if they have one already.
fn without_empty(records: &[u8], layout: &[u16]) -> Option<Vec<u8>> {
    let (mut full, mut rest, mut empty) = (Vec::with_capacity(records.len() + 64), records, false);
    'records: while !rest.is_empty() {
        let (start, record, before) = (full.len(), rest, empty);
        for &length in layout {
            let (head, length, none) = match (length, rest) {
                (VARIABLE, [0, ..]) => (1, 0, true),
                (VARIABLE, [255, 0, 0, ..]) => (3, 0, true),
                (VARIABLE, [255, high, low, ..]) => {
                    (3, usize::from(u16::from_be_bytes([*high, *low])), false)
                }
                (VARIABLE, [length, ..]) => (1, usize::from(*length), false),
                (VARIABLE, []) => (1, 0, false),
                (length, _) => (0, usize::from(length), false),
            };
            let Some((field, after)) = rest.split_at_checked(head + length) else {
                // What is no whole record is padding, and stays.
                full.truncate(start);
                full.extend(record);
                empty = before;
                break 'records;
            };
            full.extend(if none { &[1, 0] } else { field });
            (rest, empty) = (after, empty | none);
        }
        if rest.len() == record.len() {
            return None;
        }
    }
    empty.then_some(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_become_one_byte_and_all_else_stays() {
        let layout = [2, VARIABLE, 1, VARIABLE];
        let full = |records: &[u8]| without_empty(records, &layout);
        assert_eq!(full(&[1, 2, 1, 9, 3, 2, 7, 8]), None);
        assert_eq!(full(&[1, 2, 0, 3, 2, 7, 8]), Some(vec![1, 2, 1, 0, 3, 2, 7, 8]));
        // A second record, a long form of nothing, and padding, part of which could be a record.
        let two = [1, 2, 0, 3, 0, 4, 5, 255, 0, 0, 6, 1, 7, 0, 0, 0];
        let expected = vec![1, 2, 1, 0, 3, 1, 0, 4, 5, 1, 0, 6, 1, 7, 0, 0, 0];
        assert_eq!(full(&two), Some(expected));
        assert_eq!(full(&[1, 2, 0]), None);
        assert_eq!(without_empty(&[1, 2, 3], &[0]), None);
        assert_eq!(full(&[]), None);
    }

    #[test]
    fn layouts_are_learnt_replaced_and_bounded() {
        let origin = Origin { address: [192, 0, 2, 1].into(), version: 10, domain: 0 };
        let mut variable = Variable::new(2, 4);
        let template = |number: u16, lengths: &[u16]| -> Vec<u8> {
            let fields = lengths.iter().flat_map(|length| [0x8001, *length, 0, 9]);
            let halves = [number, lengths.len() as u16].into_iter().chain(fields);
            halves.flat_map(u16::to_be_bytes).collect()
        };
        let mut told = |set: &[u8], records: &[u8]| {
            let sets = [(2, set), (256, records)];
            let message = sets::message(origin, sets.into_iter()).unwrap();
            let full = variable.filled(origin, &message)?;
            sets::of(&full).nth(1).map(|(_, body)| body.to_vec())
        };
        let layout = template(256, &[VARIABLE, 1]);
        assert_eq!(told(&layout, &[0, 5]), Some(vec![1, 0, 5]));
        assert_eq!(told(&[], &[0, 5]), Some(vec![1, 0, 5]));
        assert_eq!(told(&template(256, &[1, 1]), &[0, 5]), None, "another one took its place");
        assert_eq!(told(&template(256, &[VARIABLE; 5]), &[0; 5]), None, "too many fields");
        let others = [template(300, &[VARIABLE]), template(301, &[VARIABLE]), layout].concat();
        assert_eq!(told(&others, &[0, 5]), None, "too many templates");
        for cut in 0..others.len() {
            let _ = told(&others[..cut], &[0, 5]);
        }
    }
}
