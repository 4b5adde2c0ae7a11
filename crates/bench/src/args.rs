//! The command line.

use clap::Parser;

/// Times Sidon's structures and their peers in one run, with interleaved rounds.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Args {
    /// Leave out the largest size and take fewer rounds: under two minutes.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub(crate) json: bool,

    /// Only this section (machine, hash, member, zone, count, refused, state, distinct; engine, top,
    /// prefixes, fan_out and hostile only if named), or only
    /// structures whose name contains this.
    /// May be given more than once.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,

    /// Numbers of members [default: 50000,1000000 and, without --quick, 30000000].
    #[arg(long, value_name = "N", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keys: Vec<u32>,

    /// Write the chart of the section `fan_out` to this SVG file.
    #[arg(long, value_name = "FILE")]
    pub(crate) chart: Option<std::path::PathBuf>,

    /// The false-positive rate that structures are built for.
    #[arg(long, value_name = "P", default_value_t = 0.001)]
    pub(crate) fpr: f64,

    /// Flows a call in the section `state`, by default as many as the engine hands over at a time.
    /// Elsewhere a call has 32 keys.
    #[arg(long, value_name = "N", default_value_t = 512,
          value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) batch: u32,

    /// Rounds at every size [default: more at small sizes, 3 at 30000000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
}

/// The names of the sections, in the order they run.
const SECTIONS: [&str; 14] = [
    "machine",
    "hash",
    "member",
    "zone",
    "count",
    "detection",
    "refused",
    "state",
    "distinct",
    "engine",
    "top",
    "prefixes",
    "fan_out",
    "hostile",
];

impl Args {
    /// Whether anything of this name in this section is wanted.
    pub(crate) fn wants(&self, section: &str, name: &str) -> bool {
        self.only.is_empty()
            || self.only.iter().any(|only| {
                // A section's name means that section and nothing that happens to contain it.
                if SECTIONS.contains(&only.as_str()) {
                    only == section
                } else {
                    name.contains(only)
                }
            })
    }

    /// Whether a section was named that runs on demand only.
    pub(crate) fn names(&self, section: &str) -> bool {
        self.only.iter().any(|only| only == section)
    }

    /// The numbers of members to time.
    pub(crate) fn sizes(&self) -> Vec<u32> {
        match (&self.keys[..], self.quick) {
            ([], true) => vec![50_000, 1_000_000],
            ([], false) => vec![50_000, 1_000_000, 30_000_000],
            (keys, _) => keys.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args::try_parse_from(line.split(' ')).unwrap()
    }

    #[test]
    fn only_names_a_section_or_a_part_of_a_name() {
        let hash = args("bench --only hash");
        assert!(hash.wants("hash", "xxh3_64"));
        assert!(!hash.wants("member", "hash_set+ours"));
        let some = args("bench --only blocked --only sbbf");
        assert!(some.wants("member", "blocked_single") && some.wants("member", "sbbf+ours"));
        assert!(!some.wants("member", "bloom"));
        assert!(args("bench").wants("machine", "memory_huge"));
        assert!(args("bench --only top").names("top") && !args("bench").names("top"));
    }

    #[test]
    fn sizes_come_from_the_line_or_from_quick() {
        assert_eq!(args("bench --keys 5,6").sizes(), [5, 6]);
        assert_eq!(args("bench --quick").sizes().len(), 2);
        assert_eq!(args("bench").sizes().last(), Some(&30_000_000));
        assert!(Args::try_parse_from(["bench", "--keys", "0"]).is_err());
    }
}
