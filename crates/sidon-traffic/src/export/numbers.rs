//! The numbers that datagrams have: what did not arrive, and what came and could not be counted.
//!
//! NetFlow 5 and IPFIX number records, NetFlow 9 numbers datagrams. In a datagram with a set that
//! nobody can read, nobody knows how many records there are: its own number and the next one tell.

/// Numbers that a late datagram is behind; who is further behind began again.
const LATE: u32 = 1000;
/// Numbers that may be missing; who is further ahead counts something else now.
const LOST: u32 = 1 << 20;

/// What a number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Told {
    /// So many are missing before it.
    pub(super) missing: u64,
    /// So many came that were not counted.
    pub(super) uncounted: u64,
    /// It came late, or the numbers began again.
    pub(super) out_of_order: bool,
}

/// The numbers so far.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// That of the last datagram, and that which the next should have; `None` if that cannot be
    /// known.
    last: Option<u32>,
    expected: Option<u32>,
    /// Whether the numbers of IPFIX include the records of their own datagram, as some exporters
    /// have it against the standard; `None` while nobody knows.
    includes: Option<bool>,
    /// Records that were counted of the last datagram, if there were others.
    counted: Option<u32>,
}

impl Numbers {
    /// The number of a datagram that is followed by this one and so many more.
    pub(super) fn next(&mut self, number: u32, more: u32) -> Told {
        self.compare(number, Some(more))
    }

    /// The number of a datagram of IPFIX with so many records of flows and of options, and perhaps
    /// more that could not be counted. By the standard it counts the records of all kinds before
    /// it; some count those of flows with its own.
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

    /// Compares a number with what it should be, and notes what the next should be: so many more,
    /// `None` if nobody knows.
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
