//! Templates that outlive the program: a text file, a template a line.
//!
//! ```text
//! 192.0.2.1/9/0 v9_data 256 01010000...      exporter/version/domain, kind, number, content
//! ```
//! The content is the parser's own form of it, which names its version. A line that is not
//! understood is an error with its place; content that is not, the parser drops.

use netflow_parser::{TemplateKind, TemplateStore, TemplateStoreError, TemplateStoreKey};
use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    fs, io,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Templates that are kept, and bytes of one: what an exporter sends is not to fill the memory.
const MOST: usize = 8192;
const LONGEST: usize = 8192;

const KINDS: [(TemplateKind, &str); 6] = [
    (TemplateKind::V9Data, "v9_data"),
    (TemplateKind::V9Options, "v9_options"),
    (TemplateKind::IpfixData, "ipfix_data"),
    (TemplateKind::IpfixOptions, "ipfix_options"),
    (TemplateKind::IpfixV9Data, "ipfix_v9_data"),
    (TemplateKind::IpfixV9Options, "ipfix_v9_options"),
];

type Key = (String, &'static str, u16);

/// The templates of all exporters.
#[derive(Debug, Default)]
pub struct Templates {
    all: Mutex<BTreeMap<Key, Vec<u8>>>,
    changed: AtomicBool,
}

/// Why a file of templates cannot be read.
#[derive(Debug)]
pub enum TemplatesError {
    /// The system said no.
    System(io::Error),
    /// This line is not a template.
    Line(usize),
    /// There are more templates than are kept.
    TooMany,
}

impl fmt::Display for TemplatesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplatesError::System(why) => write!(f, "{why}"),
            TemplatesError::Line(number) => write!(f, "line {number} is not a template"),
            TemplatesError::TooMany => write!(f, "more than {MOST} templates"),
        }
    }
}

impl std::error::Error for TemplatesError {}

impl Templates {
    /// Those in the file; none if there is no file yet.
    pub fn read(path: &Path) -> Result<Self, TemplatesError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(why) => return Err(TemplatesError::System(why)),
        };
        let mut all = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, content) = parse(line).ok_or(TemplatesError::Line(number + 1))?;
            all.insert(key, content);
        }
        if all.len() > MOST {
            return Err(TemplatesError::TooMany);
        }
        Ok(Templates { all: Mutex::new(all), changed: AtomicBool::new(false) })
    }

    /// Writes all of them in place of what the file held, if they changed since the last time.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if !self.changed.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let mut text = "# Templates of flow records that sidon watch has learnt.\n".to_owned();
        for ((scope, kind, number), content) in &*self.lock() {
            let _ = write!(text, "{scope} {kind} {number} ");
            for byte in content {
                let _ = write!(text, "{byte:02x}");
            }
            text.push('\n');
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        fs::write(&beside, text)?;
        fs::rename(&beside, path)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Vec<u8>>> {
        // No one panics while holding it, and the map is whole between two calls.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse(line: &str) -> Option<(Key, Vec<u8>)> {
    let mut words = line.split(' ');
    let [scope, kind, number, content] =
        [words.next()?, words.next()?, words.next()?, words.next()?];
    let (_, kind) = KINDS.iter().find(|(_, name)| *name == kind)?;
    if words.next().is_some() || content.len() > 2 * LONGEST || !content.is_ascii() {
        return None;
    }
    let (pairs, rest) = content.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let content = pairs.iter().map(byte).collect::<Option<Vec<u8>>>()?;
    rest.is_empty().then_some(((scope.to_owned(), *kind, number.parse().ok()?), content))
}

fn key(key: &TemplateStoreKey) -> Option<Key> {
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == key.kind)?;
    Some((key.scope.to_string(), *kind, key.template_id))
}

impl TemplateStore for Templates {
    fn get(&self, wanted: &TemplateStoreKey) -> Result<Option<Vec<u8>>, TemplateStoreError> {
        Ok(key(wanted).and_then(|key| self.lock().get(&key).cloned()))
    }

    fn put(&self, new: &TemplateStoreKey, content: &[u8]) -> Result<(), TemplateStoreError> {
        let mut all = self.lock();
        if let Some(key) = key(new)
            && content.len() <= LONGEST
            && (all.len() < MOST || all.contains_key(&key))
        {
            let old = all.insert(key, content.to_vec());
            let changed = old.is_none_or(|old| old != content);
            self.changed.fetch_or(changed, Ordering::Relaxed);
        }
        Ok(())
    }

    fn remove(&self, old: &TemplateStoreKey) -> Result<(), TemplateStoreError> {
        if let Some(key) = key(old) {
            let removed = self.lock().remove(&key).is_some();
            self.changed.fetch_or(removed, Ordering::Relaxed);
        }
        Ok(())
    }
}
