//! The kinds of saved structures: number, name and fields of each, listed once.
//!
//! Every reader and writer takes its number from here, and `sidon show` takes the names. The table of
//! `docs/FORMAT.md` is compared with this list by a test of the command. Numbers are never used again.

/// A kind of saved structure.
///
/// ```
/// use sidon::{Seed, saved::{self, Parts}, internals::Kind, set::{Bloom, bloom}};
///
/// let image = Bloom::new(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(1))?.to_bytes();
/// let kind = Kind::of(saved::kind(&image)?).unwrap();
/// assert_eq!((kind.name, kind.fields), ("set::Bloom", &["bits", "hashes", "inserted"][..]));
/// assert_eq!(Parts::of(&image)?.fields, [1_000, 3, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The number in the header.
    pub number: u16,
    /// The path of the structure in this crate, or the name of a structure of the monitor.
    pub name: &'static str,
    /// The names of the fields after the header, in order.
    pub fields: &'static [&'static str],
}

impl Kind {
    /// Every kind, in the order of the numbers, which start at 1.
    pub const ALL: [Kind; 27] = [
        BLOOM,
        BLOCKED,
        COUNTING,
        DLEFT,
        VARIABLE,
        BH,
        MULTILAYER,
        FILTER,
        SKETCH,
        ADAPTIVE,
        MIN,
        TOP,
        DIRECT,
        STATEFUL,
        FINGERPRINT,
        SUBNETS,
        ADDRESSES,
        SNAPSHOT,
        BACKYARD,
        HOSTS,
        CHECKPOINT,
        ELASTIC,
        DISTINCT,
        FAN_OUT,
        SUSPECTS,
        PERIODS,
        PREFIXES,
    ];

    /// The kind of this number.
    pub fn of(number: u16) -> Option<Kind> {
        Self::ALL.into_iter().find(|kind| kind.number == number)
    }
}

/// The kind `set::Bloom`.
pub(crate) const BLOOM: Kind =
    Kind { number: 1, name: "set::Bloom", fields: &["bits", "hashes", "inserted"] };
/// The kind `set::Blocked`.
pub(crate) const BLOCKED: Kind =
    Kind { number: 2, name: "set::Blocked", fields: &["lines", "hashes", "inserted"] };
/// The kind `set::Counting`.
pub(crate) const COUNTING: Kind = Kind {
    number: 3,
    name: "set::Counting",
    fields: &["counters", "hashes", "width", "overflow", "lines", "stored"],
};
/// The kind `set::DLeft`.
pub(crate) const DLEFT: Kind = Kind {
    number: 4,
    name: "set::DLeft",
    fields: &[
        "subtables",
        "buckets",
        "cells",
        "width",
        "remainder",
        "counter",
        "moves",
        "search limit",
        "growths",
        "grows",
    ],
};
/// The kind `set::Variable`.
pub(crate) const VARIABLE: Kind = Kind {
    number: 5,
    name: "set::Variable",
    fields: &[
        "counters",
        "hashes",
        "width",
        "increments low",
        "increments high",
        "overflow",
        "lines",
        "stored",
    ],
};
/// The kind `set::Bh`.
pub(crate) const BH: Kind = Kind {
    number: 6,
    name: "set::Bh",
    fields: &[
        "cells",
        "hashes",
        "keys bits",
        "sum bits",
        "increments low",
        "increments high",
        "decode",
        "centred",
        "overflow",
        "lines",
        "stored",
    ],
};
/// The kind `set::Multilayer`.
pub(crate) const MULTILAYER: Kind = Kind {
    number: 7,
    name: "set::Multilayer",
    fields: &[
        "counters",
        "hashes",
        "first",
        "rest",
        "buckets",
        "increments low",
        "increments high",
        "overflow",
        "lines",
        "stored",
    ],
};
/// The kind `zone::Filter`.
pub(crate) const FILTER: Kind = Kind {
    number: 8,
    name: "zone::Filter",
    fields: &["family", "universe", "order", "digits", "groups", "infinity", "columns"],
};
/// The kind `zone::Sketch`.
pub(crate) const SKETCH: Kind = Kind {
    number: 9,
    name: "zone::Sketch",
    fields: &[
        "family", "universe", "order", "digits", "groups", "infinity", "width", "known", "number",
    ],
};
/// The kind `zone::Adaptive`.
pub(crate) const ADAPTIVE: Kind =
    Kind { number: 10, name: "zone::Adaptive", fields: &["universe", "way", "members"] };
/// The kind `count::Min`.
pub(crate) const MIN: Kind = Kind {
    number: 11,
    name: "count::Min",
    fields: &["rows", "columns", "width", "update", "layout", "total", "floor", "rounding"],
};
/// The kind `count::Top`.
pub(crate) const TOP: Kind = Kind {
    number: 12,
    name: "count::Top",
    fields: &[
        "key bytes",
        "amounts",
        "buckets",
        "rows",
        "columns",
        "total 1",
        "total 2",
        "total 3",
        "total 4",
    ],
};
/// The kind `state::Direct`.
pub(crate) const DIRECT: Kind = Kind {
    number: 13,
    name: "state::Direct",
    fields: &["cells", "hashes", "states", "counter", "timed", "clock hand"],
};
/// The kind `state::Stateful`.
pub(crate) const STATEFUL: Kind = Kind {
    number: 14,
    name: "state::Stateful",
    fields: &["cells", "hashes", "states", "keeping", "counter", "clock hand"],
};
/// The kind `state::Fingerprint`.
pub(crate) const FINGERPRINT: Kind = Kind {
    number: 15,
    name: "state::Fingerprint",
    fields: &[
        "subtables",
        "buckets",
        "cells",
        "width",
        "remainder",
        "states",
        "shared",
        "independent",
        "moves",
        "search limit",
        "reinsert",
        "stash",
        "growths",
        "grows",
        "clock hand",
    ],
};
/// The kind `zone::Subnets`.
pub(crate) const SUBNETS: Kind = Kind {
    number: 16,
    name: "zone::Subnets",
    fields: &["subnet bits", "slots", "bitmaps", "subnets", "promoted"],
};
/// The kind `addresses`.
pub const ADDRESSES: Kind = Kind { number: 17, name: "addresses", fields: &["slots", "stored"] };
/// The kind `snapshot`.
pub const SNAPSHOT: Kind = Kind {
    number: 18,
    name: "snapshot",
    fields: &[
        "seed low",
        "seed high",
        "memory",
        "allocated",
        "top",
        "shards",
        "packets",
        "first",
        "last",
        "end",
        "tunnels",
        "partial",
        "engines",
        "crossing",
    ],
};
/// The kind `set::Backyard`.
pub(crate) const BACKYARD: Kind =
    Kind { number: 19, name: "set::Backyard", fields: &["lines", "sharing"] };
/// The kind `zone::Hosts`.
pub(crate) const HOSTS: Kind =
    Kind { number: 20, name: "zone::Hosts", fields: &["universe", "table", "active"] };

/// The kind `checkpoint`. After its field there is a digest of each machine's definition.
pub const CHECKPOINT: Kind = Kind { number: 21, name: "checkpoint", fields: &["version"] };

/// The kind `set::Elastic`.
pub(crate) const ELASTIC: Kind = Kind {
    number: 22,
    name: "set::Elastic",
    fields: &[
        "subtables",
        "buckets",
        "line",
        "least",
        "remainder",
        "counter",
        "moves",
        "search limit",
        "narrows",
    ],
};

/// The kind `count::Distinct`. `listed` is 2^64 - 1 if the payload has registers.
pub(crate) const DISTINCT: Kind =
    Kind { number: 23, name: "count::Distinct", fields: &["registers", "listed"] };

/// The kind `count::FanOut`.
pub(crate) const FAN_OUT: Kind = Kind {
    number: 24,
    name: "count::FanOut",
    fields: &["key bytes", "buckets", "registers", "panes", "pane"],
};

/// The kind `decide::Suspects`.
pub(crate) const SUSPECTS: Kind = Kind {
    number: 25,
    name: "decide::Suspects",
    fields: &[
        "key bytes",
        "buckets",
        "usual",
        "attack 1",
        "attack 2",
        "attack 3",
        "attack 4",
        "apart",
        "lost",
    ],
};

/// The kind `count::Periods`.
pub(crate) const PERIODS: Kind = Kind {
    number: 26,
    name: "count::Periods",
    fields: &["key bytes", "buckets", "shortest", "grace", "longest", "refused"],
};

/// The kind `count::Prefixes`.
pub(crate) const PREFIXES: Kind = Kind {
    number: 27,
    name: "count::Prefixes",
    fields: &[
        "amounts",
        "buckets 1",
        "buckets 2",
        "buckets 3",
        "buckets 4",
        "buckets 5",
        "halvings",
        "rounding",
        "total 1",
        "total 2",
        "total 3",
        "total 4",
        "rest 1",
        "rest 2",
        "rest 3",
        "rest 4",
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_up_from_one_and_names_differ() {
        assert!(Kind::ALL.iter().map(|kind| kind.number).eq(1..=Kind::ALL.len() as u16));
        for kind in Kind::ALL {
            assert_eq!(Kind::ALL.iter().filter(|other| other.name == kind.name).count(), 1);
            assert_eq!(Kind::of(kind.number), Some(kind));
        }
        assert_eq!((Kind::of(0), Kind::of(28)), (None, None));
    }
}
