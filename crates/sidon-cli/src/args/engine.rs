//! Arguments of every command that runs an engine.

use super::{
    Secret,
    number::{memory, within},
};
use crate::show;
use anyhow::{Context, bail};
use sidon::Seed;
use sidon_traffic::{
    Settings, Thresholds,
    thresholds::{ALLOW_MAX, Allow},
};
use std::{fs::File, path::PathBuf, str::FromStr, sync::Arc};

/// The length of the lists unless the user sets it.
pub(crate) const TOP: u16 = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct EngineArgs {
    /// Memory for all tables, which are allocated at the start and never grow
    #[arg(short, long, value_name = "BYTES", default_value = "16MiB", value_parser = memory)]
    pub(crate) memory: u64,
    /// Threads that update the tables, 1 to 8; the number changes no figure of the report
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within::<u8>(1..=8))]
    pub(crate) threads: u8,
    /// Number of flows, of hosts and of ports to list, the heaviest first
    #[arg(long, value_name = "N", value_parser = within::<u16>(0..=65_535))]
    pub(crate) top: Option<u16>,
    /// Seed of the hash functions: a number below 2^128, decimal or hexadecimal (0x..), or random.
    /// Other users of this machine can read a command line, so give a secret seed with --seed-file or
    /// SIDON_SEED. Without a seed, a capture gets a fixed one, so that every run gives the same
    /// report. All other sources get a random seed. Saved files can be merged only if they have the
    /// same seed
    #[arg(long, value_name = "NUMBER|random", conflicts_with = "seed_file")]
    pub(crate) seed: Option<SeedArg>,
    /// File with the seed, written as for --seed. Other users must not be able to read the file.
    /// Without this option, the seed is that of SIDON_SEED, if any
    #[arg(long, value_name = "FILE")]
    pub(crate) seed_file: Option<PathBuf>,
    /// TOML file with thresholds of incidents, names of your networks, and subjects that are not
    /// reported; sidon watch --print-thresholds prints the defaults as such a file
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Report no incident of this host or network, such as your own scanner, or only none of these
    /// kinds: 192.0.2.7:port_scan,address_scan. The report counts what it leaves out (repeatable)
    #[arg(long, value_name = "NET[:KINDS]", value_parser = str::parse::<Allow>)]
    pub(crate) allow: Vec<Allow>,
}

const SECRET: Secret = Secret { name: "seed", variable: "SIDON_SEED", longest: 64 };

/// A choice of the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeedArg {
    Given(Seed),
    Random,
}

impl SeedArg {
    /// The seed of `watch -r` unless the user gives one: anybody may know it.
    pub(crate) const FIXED: SeedArg = SeedArg::Given(Seed(0x0053_4944_4f4e));

    /// The seed, or a random one.
    pub(crate) fn seed(self) -> anyhow::Result<Seed> {
        match self {
            SeedArg::Given(seed) => Ok(seed),
            SeedArg::Random => {
                Seed::random().context("cannot draw a random seed; give a number with --seed")
            }
        }
    }
}

impl FromStr for SeedArg {
    type Err = String;

    /// The message does not repeat the text, which may be a secret with a typing error.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = match text.strip_prefix("0x") {
            _ if text == "random" => return Ok(SeedArg::Random),
            None => text.parse().ok(),
            Some(digits) if digits.len() > 32 || digits.starts_with('+') => None,
            Some(digits) => u128::from_str_radix(digits, 16).ok(),
        };
        number.map(|number| SeedArg::Given(Seed(number))).ok_or_else(|| {
            "expected a whole number below 2^128, or 0x and 1 to 32 hexadecimal digits, or the word \
             random"
                .to_owned()
        })
    }
}

/// Whether the environment gives a seed.
fn is_set() -> bool {
    std::env::var_os(SECRET.variable).is_some()
}

impl EngineArgs {
    /// The choice of the seed by --seed, --seed-file or SIDON_SEED, if there is one.
    pub(crate) fn given_seed(&self) -> anyhow::Result<Option<SeedArg>> {
        if let (true, Some(option)) = (is_set(), self.seed_option()) {
            bail!(
                "{option} and the variable SIDON_SEED both give a seed; leave out {option}, or type: \
                 unset SIDON_SEED"
            );
        }
        let parse =
            |bytes: &[u8]| SECRET.text(bytes)?.parse::<SeedArg>().map_err(anyhow::Error::msg);
        let found = SECRET.find(self.seed_file.as_deref(), parse)?;
        Ok(self.seed.or(found))
    }

    /// Whether a file or the environment contains a seed that other processes must not read.
    pub(crate) fn has_secret(&self) -> bool {
        self.seed_file.is_some() || is_set()
    }

    /// The option that gives a seed.
    fn seed_option(&self) -> Option<&'static str> {
        match (self.seed, &self.seed_file) {
            (Some(_), _) => Some("--seed"),
            (None, Some(_)) => Some("--seed-file"),
            (None, None) => None,
        }
    }

    /// Opens the file of thresholds, so that it can be read when the program has given up its rights.
    pub(crate) fn open_thresholds(&self) -> anyhow::Result<Option<File>> {
        let open = |path: &PathBuf| {
            File::open(path).with_context(|| format!("cannot read {}", show::path(path)))
        };
        self.thresholds.as_ref().map(open).transpose()
    }

    /// The thresholds of this file, or the defaults, and the rules of --allow.
    pub(crate) fn thresholds(&self, file: Option<File>) -> anyhow::Result<Thresholds> {
        let mut thresholds = match (file, &self.thresholds) {
            (Some(file), Some(path)) => Thresholds::read(file, path)?,
            _ => Thresholds::default(),
        };
        thresholds.allow.extend(self.allow.iter().cloned());
        if thresholds.allow.len() > ALLOW_MAX {
            bail!("more than {ALLOW_MAX} rules in --allow and --thresholds; use fewer");
        }
        Ok(thresholds)
    }

    /// The settings of an engine with this seed and these thresholds.
    pub(crate) fn settings(&self, seed: Seed, thresholds: Thresholds) -> Settings {
        Settings {
            thresholds: Arc::new(thresholds),
            memory: self.memory,
            threads: self.threads.into(),
            top: self.top.unwrap_or(TOP).into(),
            ..Settings::new(seed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_have_128_bits_in_decimal_or_hexadecimal() {
        let seed = |text: &str| text.parse::<SeedArg>().ok();
        let given = |number| Some(SeedArg::Given(Seed(number)));
        assert_eq!(seed("0"), given(0));
        assert_eq!(seed("18446744073709551616"), given(1 << 64));
        assert_eq!(seed("340282366920938463463374607431768211455"), given(u128::MAX));
        assert_eq!(seed("0x0"), given(0));
        assert_eq!(seed("0xfF"), given(255));
        assert_eq!(seed("0xffffffffffffffffffffffffffffffff"), given(u128::MAX));
        assert_eq!(seed("0x00000000000000000000000000000001"), given(1));
        assert_eq!(seed("random"), Some(SeedArg::Random));
        for wrong in [
            "",
            "x",
            "-1",
            "1.5",
            "ff",
            "0x",
            "0x+1",
            "0x-1",
            "0xg",
            "0X1",
            "0x 1",
            "Random",
            "340282366920938463463374607431768211456",
            "0x000000000000000000000000000000001",
        ] {
            assert_eq!(seed(wrong), None, "{wrong}");
        }
        let why = "0xsecret".parse::<SeedArg>().unwrap_err();
        assert!(why.contains("0x and 1 to 32") && !why.contains("secret"), "{why}");
    }
}
