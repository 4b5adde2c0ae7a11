//! `--known`: the file of source addresses of earlier runs.

use crate::show;
use anyhow::anyhow;
use sidon_traffic::{
    Engine, Snapshot,
    files::{Disk, System},
    known::{self, KnownError, Seen},
};
use std::path::Path;

/// Adds the addresses of the file to the engine. Returns their number.
pub(super) fn learn(engine: &mut Engine, path: &Path) -> anyhow::Result<u64> {
    let addresses = known::read(&System, path).map_err(|why| unread(path, why))?;
    let (mut many, mut wrong) = (0, None);
    engine.learn(addresses.map_while(|next| {
        many += 1;
        next.map_err(|why| wrong = Some(why)).ok()
    }));
    wrong.map_or(Ok(many), |why| Err(unread(path, why)))
}

/// Reads the whole file. An error if a line is wrong.
pub(super) fn check(path: &Path) -> anyhow::Result<()> {
    let mut addresses = known::read(&System, path).map_err(|why| unread(path, why))?;
    addresses.try_for_each(|next| next.map(drop)).map_err(|why| unread(path, why))
}

/// Adds the addresses of a run that the file lacks.
pub(super) fn add(disk: &dyn Disk, path: &Path, snapshot: &Snapshot) -> anyhow::Result<u64> {
    let shards = snapshot.shards().iter();
    let mut seen: Seen = shards.flat_map(|shard| shard.sources.addresses()).collect();
    known::add(disk, path, &mut seen).map_err(|why| match why {
        KnownError::Unwritten(_) => {
            anyhow!(why).context(format!("cannot write the known sources {}", show::path(path)))
        }
        why => unread(path, why).context("no address was added"),
    })
}

fn unread(path: &Path, why: KnownError) -> anyhow::Error {
    let path = show::path(path);
    match why {
        KnownError::Line { line, text } => {
            anyhow!("{path}:{line}: expected one IP address per line, got {text:?}")
        }
        why => anyhow!(why).context(format!("cannot read the known sources {path}")),
    }
}
