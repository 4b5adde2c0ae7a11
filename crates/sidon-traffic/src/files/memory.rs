//! A file system in memory, for tests: it fails on demand, and shows what a power cut leaves.
//!
//! Every create, write, sync, rename and link counts down to the fault. A power cut keeps synced
//! content and synced names. Of other names it keeps the first few changes, and of other content a
//! part, as a seed chooses.

use super::{About, Access, Disk, Output, Target};
use sidon_kit::Rng;
use std::{
    collections::BTreeMap,
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The error of a fault, by its number.
const FAULTS: [ErrorKind; 4] = [
    ErrorKind::StorageFull,
    ErrorKind::Other,
    ErrorKind::PermissionDenied,
    ErrorKind::QuotaExceeded,
];

/// When operations fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This operation only, counted from 0.
    Once(u64),
    /// This operation and all later ones, as on a full disk. Files can still be removed.
    From(u64),
}

/// The file system.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Files by number; a name can be added to a file.
    files: Vec<File>,
    names: BTreeMap<PathBuf, usize>,
    /// The names that a power cut keeps, and the changes since.
    durable: BTreeMap<PathBuf, usize>,
    changes: Vec<(PathBuf, Option<usize>)>,
    operations: u64,
    fault: Option<Fault>,
    /// Whether an operation has failed.
    failed: bool,
    seed: u64,
}

#[derive(Debug, Default, Clone)]
struct File {
    bytes: Vec<u8>,
    /// The content at the last sync.
    synced: Option<Vec<u8>>,
    mode: u32,
    written: u64,
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a durable file.
    pub fn put(&self, path: &str, bytes: &[u8]) {
        let mut state = self.state();
        let file = File {
            bytes: bytes.to_vec(),
            synced: Some(bytes.to_vec()),
            mode: 0o640,
            ..File::default()
        };
        state.files.push(file);
        let number = state.files.len() - 1;
        state.names.insert(path.into(), number);
        state.durable.insert(path.into(), number);
    }

    /// Sets the fault, counted from the next operation on. `seed` chooses errors and short writes.
    pub fn fail(&self, fault: Fault, seed: u64) {
        let mut state = self.state();
        let now = state.operations;
        state.fault = Some(match fault {
            Fault::Once(after) => Fault::Once(now + after),
            Fault::From(after) => Fault::From(now + after),
        });
        (state.failed, state.seed) = (false, seed);
    }

    /// Ends all faults. Returns whether one happened.
    pub fn mend(&self) -> bool {
        let mut state = self.state();
        state.fault = None;
        std::mem::take(&mut state.failed)
    }

    /// The number of operations so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// The names and contents of all files.
    pub fn all(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let each = state.names.iter();
        each.map(|(path, &number)| (name(path), state.files[number].bytes.clone())).collect()
    }

    /// The permissions of a file.
    pub fn mode(&self, path: &str) -> Option<u32> {
        let state = self.state();
        state.names.get(Path::new(path)).map(|&number| state.files[number].mode)
    }

    /// What a power cut at this moment leaves.
    pub fn after_power_cut(&self, seed: u64) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let mut random = seed;
        let mut names = state.durable.clone();
        let kept = below(&mut random, state.changes.len() + 1);
        for (path, file) in &state.changes[..kept] {
            match file {
                Some(number) => names.insert(path.clone(), *number),
                None => names.remove(path),
            };
        }
        let content = |number: usize, random: &mut u64| {
            let file = &state.files[number];
            match &file.synced {
                Some(synced) if *synced == file.bytes => synced.clone(),
                _ => file.bytes[..below(random, file.bytes.len() + 1)].to_vec(),
            }
        };
        names.iter().map(|(path, &number)| (name(path), content(number, &mut random))).collect()
    }
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A number below `most`, which is above 0. The seed moves on.
fn below(seed: &mut u64, most: usize) -> usize {
    let mut random = Rng::seeded(*seed);
    *seed = random.next_u64();
    random.below(most as u64) as usize
}

impl State {
    /// Counts an operation. An error if it is the one that fails.
    fn step(&mut self) -> io::Result<()> {
        let now = self.operations;
        self.operations += 1;
        let fails = match self.fault {
            Some(Fault::Once(at)) => at == now,
            Some(Fault::From(at)) => at <= now,
            None => false,
        };
        if fails {
            self.failed = true;
            return Err(FAULTS[below(&mut self.seed, FAULTS.len())].into());
        }
        Ok(())
    }

    fn set(&mut self, path: &Path, file: Option<usize>) {
        match file {
            Some(number) => self.names.insert(path.to_owned(), number),
            None => self.names.remove(path),
        };
        self.changes.push((path.to_owned(), file));
    }

    fn new_file(&mut self, path: &Path, mode: u32) -> usize {
        self.files.push(File { mode, ..File::default() });
        let number = self.files.len() - 1;
        self.set(path, Some(number));
        number
    }

    fn number(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Disk for Memory {
    fn find(&self, path: &Path) -> io::Result<Target> {
        let state = self.state();
        Ok(match state.number(path) {
            Err(_) => Target::Missing(path.to_owned()),
            Ok(number) => {
                let file = &state.files[number];
                let version = [0, number as u64, file.bytes.len() as u64, file.written, 0];
                Target::File(path.to_owned(), About { version, mode: file.mode, owner: [0; 2] })
            }
        })
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let state = self.state();
        let bytes = state.files[state.number(path)?].bytes.clone();
        Ok(Box::new(io::Cursor::new(bytes)))
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Output>> {
        let mut state = self.state();
        state.step()?;
        if state.names.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let mode = match access {
            Access::Owner => 0o600,
            Access::Umask => 0o644,
            Access::Like(about) => about.mode,
        };
        let number = state.new_file(path, mode);
        Ok(Box::new(Open { disk: self.clone(), number, start: 0 }))
    }

    fn stream(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let mut state = self.state();
        state.step()?;
        let number = match state.number(path) {
            Ok(number) => number,
            Err(_) => state.new_file(path, 0o644),
        };
        let bytes = &mut state.files[number].bytes;
        if bytes.last().is_some_and(|&last| last != b'\n') {
            bytes.push(b'\n');
        }
        let start = bytes.len();
        Ok(Box::new(Open { disk: self.clone(), number, start }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        let number = state.number(from)?;
        // A rename is one change: a power cut keeps both halves or neither.
        state.names.remove(from);
        state.set(to, Some(number));
        state.durable.remove(from);
        state.changes.retain(|(path, _)| path != from);
        Ok(())
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        if state.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let number = state.number(file)?;
        state.set(name, Some(number));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.number(path)?;
        state.set(path, None);
        Ok(())
    }

    fn create_directory(&self, _: &Path) -> io::Result<()> {
        self.state().step()
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        state.durable = state.names.clone();
        state.changes.clear();
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(()))
    }
}

/// An open file.
struct Open {
    disk: Memory,
    number: usize,
    /// Length of the file when it was opened.
    start: usize,
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        let done = state.step();
        // A write that fails has often written a part.
        let length = match done {
            Ok(()) => bytes.len(),
            Err(_) => below(&mut state.seed, bytes.len() + 1),
        };
        let file = &mut state.files[self.number];
        file.bytes.extend(&bytes[..length]);
        file.written += 1;
        done.map(|()| length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Open {
    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.step()?;
        let file = &mut state.files[self.number];
        file.synced = Some(file.bytes.clone());
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let file = &mut state.files[self.number];
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        file.bytes.truncate(self.start.saturating_add(length));
        Ok(())
    }
}
