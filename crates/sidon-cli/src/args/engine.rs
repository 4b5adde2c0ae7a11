//! Arguments of every command that runs an engine.

use crate::plan::count::memory;
use anyhow::Context;
use sidon::Seed;
use sidon_traffic::Settings;

#[derive(Debug, clap::Args)]
pub(crate) struct EngineArgs {
    /// Memory for all tables
    #[arg(short, long, value_name = "BYTES", default_value = "16MiB", value_parser = memory)]
    pub(crate) memory: u64,
    /// Threads that own tables; the answers are the same for any number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) threads: u8,
    /// The length of the lists of the heaviest flows, hosts and ports
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: u16,
    /// The seed of the tables, and of generated traffic; a random one unless given. Files of several
    /// runs or hosts can be merged if they have the same seed. Keep it secret: an attacker who has it
    /// can choose keys that collide
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
}

impl EngineArgs {
    /// The seed, or a random one.
    pub(crate) fn seed(&self) -> anyhow::Result<Seed> {
        match self.seed {
            Some(seed) => Ok(Seed(seed.into())),
            None => Seed::random().context("cannot draw a random seed; give one with --seed"),
        }
    }

    /// The settings of an engine with this seed.
    pub(crate) fn settings(&self, seed: Seed) -> Settings {
        Settings {
            memory: self.memory,
            threads: self.threads.into(),
            top: self.top.into(),
            ..Settings::new(seed)
        }
    }
}
