//! Arguments of every command that runs an engine.

use super::number::{memory, within};
use anyhow::Context;
use sidon::Seed;
use sidon_traffic::Settings;
use std::str::FromStr;

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
    /// Seed of the hash functions: a number, or random. Without this option, a capture gets a fixed
    /// seed, so that every run gives the same report. All other sources get a random seed. Saved
    /// files can be merged only if they have the same seed
    #[arg(long, value_name = "NUMBER|random")]
    pub(crate) seed: Option<SeedArg>,
}

/// A choice of the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeedArg {
    Number(u64),
    Random,
}

impl SeedArg {
    /// The seed of `watch -r` unless the user gives one: anybody may know it.
    pub(crate) const FIXED: SeedArg = SeedArg::Number(0x0053_4944_4f4e);

    /// The seed, or a random one.
    pub(crate) fn seed(self) -> anyhow::Result<Seed> {
        match self {
            SeedArg::Number(number) => Ok(Seed(number.into())),
            SeedArg::Random => {
                Seed::random().context("cannot draw a random seed; give a number with --seed")
            }
        }
    }

    /// The number, or a random one.
    pub(crate) fn number(self) -> anyhow::Result<u64> {
        self.seed().map(|seed| seed.0 as u64)
    }
}

impl FromStr for SeedArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("random", _) => Ok(SeedArg::Random),
            (_, Ok(number)) => Ok(SeedArg::Number(number)),
            _ => Err("expected a whole number below 2^64, or the word random".to_owned()),
        }
    }
}

impl EngineArgs {
    /// The settings of an engine with this seed.
    pub(crate) fn settings(&self, seed: Seed) -> Settings {
        Settings {
            memory: self.memory,
            threads: self.threads.into(),
            top: self.top.unwrap_or(TOP).into(),
            ..Settings::new(seed)
        }
    }
}
