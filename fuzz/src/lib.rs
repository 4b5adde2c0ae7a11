//! Parts that several fuzz targets share: seeds, checksums and engines.

pub mod saved;

use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, Settings, Snapshot, budget,
    monitor::{machine::Definition, subnet::Network},
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The seed of every engine.
pub const SEED: Seed = Seed(7);

/// Writes seed inputs to the folder that `SIDON_SEEDS` names, before the fuzzer reads it.
pub fn plant(seeds: impl FnOnce() -> Vec<Vec<u8>>) {
    let Some(folder) = env::var_os("SIDON_SEEDS").map(PathBuf::from) else { return };
    for (number, seed) in seeds().into_iter().enumerate() {
        let file = folder.join(format!("seed-{number:04}"));
        fs::write(file, seed).expect("SIDON_SEEDS names a folder that can be written");
    }
}

/// The files below a folder of this repository, or of the corpus if `SIDON_CORPUS` is set, that
/// have at most `most` bytes and whose name satisfies `wanted`.
pub fn files(folder: &Path, most: u64, wanted: &dyn Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let is_wanted = path.file_name().is_some_and(|name| wanted(&name.to_string_lossy()));
        match entry.metadata() {
            Ok(about) if about.is_dir() => found.extend(files(&path, most, wanted)),
            Ok(about) if is_wanted && about.len() <= most => found.extend(fs::read(&path).ok()),
            _ => {}
        }
    }
    found
}

/// A folder of this repository.
pub fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The folder of real captures, if `SIDON_CORPUS` names one.
pub fn corpus() -> Option<PathBuf> {
    env::var_os("SIDON_CORPUS").map(PathBuf::from)
}

/// An engine of the least memory, with a watched subnet.
pub fn engine() -> Engine {
    engine_with(Vec::new())
}

/// An engine of the least memory, with a watched subnet and machines.
pub fn engine_with(machines: Vec<Arc<Definition>>) -> Engine {
    let subnets: Vec<Network> = vec!["10.0.0.0/28".parse().expect("a subnet")];
    let settings = Settings { memory: budget::LEAST, subnets, machines, ..Settings::new(SEED) };
    Engine::new(settings, Filter::default(), Decoder::default()).expect("the least memory suffices")
}

/// Whether this input is one of about `one_in` that get a slow check. The input itself decides, so
/// that a find is found again.
pub fn is_rare(bytes: &[u8], one_in: u32) -> bool {
    crc32fast::hash(bytes).is_multiple_of(one_in)
}

/// Reads the snapshot's bytes back, and asserts that bytes and report are the same: the law of saved
/// bytes.
pub fn is_read_back(snapshot: &Snapshot) -> Snapshot {
    let bytes = snapshot.to_bytes();
    let again = match Snapshot::from_bytes(&bytes) {
        Ok(again) => again,
        Err(why) => panic!("its own bytes are refused: {why}"),
    };
    assert!(again.to_bytes() == bytes, "read, but written otherwise");
    assert_eq!(again.report().to_json(), snapshot.report().to_json());
    again
}

/// Asserts the law for the state of an engine, and for two such states merged.
pub fn is_saved(engine: Engine) {
    let mut snapshot = engine.snapshot();
    let again = is_read_back(&snapshot);
    if snapshot.merge(again).is_ok() {
        is_read_back(&snapshot);
    }
}
