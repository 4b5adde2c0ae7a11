//! The sets of one NetFlow 9 or IPFIX message, by their headers.

/// The sets of a message without its header: the number and the body of each.
///
/// `Err` ends the iteration at a set whose length is shorter than its header or longer than the
/// message.
pub(super) fn of(body: &[u8]) -> Sets<'_> {
    Sets { rest: body }
}

/// Iterator over the sets of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sets<'a> {
    rest: &'a [u8],
}

/// A set header contradicts the message around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadLength;

/// Bytes of a set's header: its number and its length, header included.
const HEADER: usize = 4;

impl<'a> Iterator for Sets<'a> {
    type Item = Result<(u16, &'a [u8]), BadLength>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let set = (|| {
            let (number, length) = (half(self.rest, 0)?, usize::from(half(self.rest, 2)?));
            let body = self.rest.get(HEADER..length)?;
            self.rest = &self.rest[length..];
            Some((number, body))
        })();
        if set.is_none() {
            self.rest = &[];
        }
        Some(set.ok_or(BadLength))
    }
}

/// Two bytes as a number.
pub(super) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map(|part| u16::from_be_bytes(*part))
}

/// Four bytes as a number.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map(|part| u32::from_be_bytes(*part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_follow_each_other_and_a_bad_length_ends_them() {
        let body = [1, 0, 0, 7, 1, 2, 3, 1, 1, 0, 4, 1, 44, 0, 6, 8, 9];
        let all: Vec<_> = of(&body).collect();
        let expected: [(u16, &[u8]); 3] = [(256, &[1, 2, 3]), (257, &[]), (300, &[8, 9])];
        assert_eq!(all, expected.map(Ok));
        // A length below the header's, and lengths beyond the message.
        for length in [0, 3, 18, 255] {
            let mut body = body;
            body[3] = length;
            assert_eq!(of(&body).collect::<Vec<_>>(), [Err(BadLength)], "{length}");
        }
        for cut in 1..body.len() {
            let whole = [7, 11].contains(&cut);
            assert_eq!(of(&body[..cut]).all(|set| set.is_ok()), whole, "{cut}");
        }
        assert_eq!(of(&[]).count(), 0);
    }
}
