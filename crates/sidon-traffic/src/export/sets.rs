//! The sets of a datagram of NetFlow 9 or IPFIX by their headers, and a datagram of one set.

use super::Origin;

/// The sets of a datagram, with their numbers and without their headers.
pub(super) fn of(bytes: &[u8]) -> Sets<'_> {
    Sets { bytes, at: 0, end: 0 }
}

/// Sets, one after the other, of all messages of a datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sets<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The end of the message that is being read.
    end: usize,
}

impl<'a> Iterator for Sets<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at + 4 > self.end {
            let start = self.end;
            (self.at, self.end) = match half(self.bytes, start)? {
                9 => (start + 20, self.bytes.len()),
                10 => {
                    let end = start + usize::from(half(self.bytes, start + 2)?);
                    (start + 16, end.min(self.bytes.len()))
                }
                _ => return None,
            };
            if self.end <= start {
                return None;
            }
        }
        let number = half(self.bytes, self.at)?;
        let length = usize::from(half(self.bytes, self.at + 2)?);
        let body = self.bytes.get(self.at + 4..(self.at + length).min(self.end));
        if length < 4 {
            // Nobody knows where the next one begins.
            self.at = self.end;
            return self.next();
        }
        self.at += length;
        body.map(|body| (number, body))
    }
}

/// Two bytes as a number.
pub(super) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map(|part| u16::from_be_bytes(*part))
}

/// A message of these sets from the same exporter; `None` if they are too long for one.
pub(super) fn message<'a>(
    origin: Origin,
    sets: impl Iterator<Item = (u16, &'a [u8])>,
) -> Option<Vec<u8>> {
    let header = if origin.version == 9 { 20 } else { 16 };
    let mut bytes = vec![0; header];
    for (number, body) in sets {
        bytes.extend(number.to_be_bytes());
        bytes.extend(u16::try_from(body.len() + 4).ok()?.to_be_bytes());
        bytes.extend(body);
    }
    let length = u16::try_from(bytes.len()).ok()?;
    let second = if origin.version == 9 { 1 } else { length };
    bytes[..2].copy_from_slice(&origin.version.to_be_bytes());
    bytes[2..4].copy_from_slice(&second.to_be_bytes());
    bytes[header - 4..header].copy_from_slice(&origin.domain.to_be_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_sets_and_hostile_lengths_end() {
        for version in [9, 10] {
            let origin = Origin { address: [192, 0, 2, 1].into(), version, domain: 7 };
            let sets = [(256, &[1u8, 2, 3][..]), (257, &[]), (300, &[0; 8])];
            let mut bytes = message(origin, sets.into_iter()).unwrap();
            assert_eq!(of(&bytes).collect::<Vec<_>>(), sets);
            assert_eq!(Origin::of("192.0.2.1:1".parse().unwrap(), &bytes), Ok(origin));
            let header = bytes.len() - 3 * 4 - 11;
            // A set of no length, and one that is longer than the rest.
            bytes[header + 3] = 0;
            assert_eq!(of(&bytes).count(), 0);
            bytes[header + 2..header + 4].copy_from_slice(&[0xff, 0xff]);
            assert_eq!(of(&bytes).map(|(_, body)| body.len()).collect::<Vec<_>>(), [19]);
            assert_eq!(message(origin, [(1, &[0; 65_535][..])].into_iter()), None);
            for length in 0..bytes.len() {
                assert!(of(&bytes[..length]).count() <= 1);
            }
        }
        assert_eq!(of(&[0, 10, 0, 0, 0, 0]).count(), 0);
    }
}
