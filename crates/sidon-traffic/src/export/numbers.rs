//! Sequence numbers of datagrams: what did not arrive, and what arrived but was not counted.
//!
//! NetFlow 5 and IPFIX number records, NetFlow 9 numbers datagrams. The number of records in an
//! unreadable set follows from the numbers of its datagram and of the next one.

/// Largest lag of a late datagram. A larger lag means that the numbers started again.
const LATE: u32 = 1000;
/// Largest gap that counts as loss. A larger gap means that the numbering changed.
const LOST: u32 = 1 << 20;

/// The result of comparing a sequence number with the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Told {
    /// Records or datagrams missing before this datagram.
    pub(super) missing: u64,
    /// Records that arrived but were not counted.
    pub(super) uncounted: u64,
    /// The datagram came late, or the numbers started again.
    pub(super) out_of_order: bool,
}

/// The sequence numbers seen so far.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The number of the last datagram, and the number expected next; `None` if it is unknown.
    last: Option<u32>,
    expected: Option<u32>,
    /// Whether IPFIX numbers include the records of their own datagram. Some exporters do this,
    /// against the standard. `None` while unknown.
    includes: Option<bool>,
    /// Records counted in the last datagram, if it also had records that could not be counted.
    counted: Option<u32>,
}

impl Numbers {
    /// Compares the number of a datagram, and expects `number + more` next.
    pub(super) fn next(&mut self, number: u32, more: u32) -> Told {
        self.compare(number, Some(more))
    }

    /// Compares the number of an IPFIX datagram with `flows` flow records and `options` options
    /// records. `all` is false if some of its records could not be counted. By the standard, the
    /// number counts all records before the datagram. Some exporters count flow records only,
    /// including those of the datagram itself.
    pub(super) fn ipfix(&mut self, number: u32, flows: u32, options: u32, all: bool) -> Told {
        let own = self.last.filter(|_| all).map(|last| last.wrapping_add(flows));
        if self.includes.is_none() && self.expected.is_some() && self.expected != own {
            let matches = [self.expected, own].map(|should| should == Some(number));
            self.includes = match matches {
                [true, false] => Some(false),
                [false, true] => Some(true),
                _ => None,
            };
        }
        let counted = if self.includes == Some(true) {
            self.expected = own;
            Some(flows).filter(|_| !all)
        } else {
            self.counted
        };
        let between = self.last.map(|last| number.wrapping_sub(last)).filter(|&n| n <= LOST);
        let uncounted = between.zip(counted).map_or(0, |(all, known)| all.saturating_sub(known));
        let here = flows.saturating_add(options);
        let told = self.compare(number, Some(here).filter(|_| all));
        if !told.out_of_order {
            self.counted = Some(here).filter(|_| !all);
        }
        Told { uncounted: uncounted.into(), ..told }
    }

    /// Compares a number with the expected one. Expects `number + more` next, or any number if
    /// `more` is `None`.
    fn compare(&mut self, number: u32, more: Option<u32>) -> Told {
        let mut told = Told::default();
        if self.expected.is_none()
            && self.last.is_some_and(|last| (1..=LATE).contains(&last.wrapping_sub(number)))
        {
            told.out_of_order = true;
            return told;
        }
        if let Some(expected) = self.expected {
            let ahead = number.wrapping_sub(expected);
            if ahead > LOST {
                told.out_of_order = true;
                if expected.wrapping_sub(number) <= LATE {
                    return told;
                }
            } else {
                told.missing = ahead.into();
            }
        }
        self.last = Some(number);
        self.expected = more.map(|more| number.wrapping_add(more));
        told
    }
}
