//! Templates that are kept between runs: a text file, one template per line.
//!
//! ```text
//! 192.0.2.1/9/0 256 flows 8/4 12/4 7/2 11/2      exporter/version/domain, number, layout
//! ```
//! A line that is not a template is an error that names the line.

use super::{Origin, layout::Layout};
use crate::files::{
    self, Access, Disk,
    input::{Lines, Unread},
};
use std::{
    collections::BTreeMap,
    fmt,
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
    sync::Arc,
};

/// The most templates of all exporters that are kept for the file.
const MOST: usize = 8192;
/// The most bytes of a line: 256 fields with an enterprise take 6 KiB.
const LINE_MAX: usize = 8 << 10;
/// The most bytes of a file: [`MOST`] of the longest lines.
const FILE_MAX: u64 = (MOST * LINE_MAX) as u64;

type Key = (Origin, u16);

/// The templates of all exporters.
#[derive(Debug, Default)]
pub struct Templates {
    all: BTreeMap<Key, Arc<Layout>>,
    changed: bool,
}

/// Why a template file cannot be read.
#[derive(Debug)]
pub enum TemplatesError {
    /// The system's error, or a file or a line that is too long.
    Unread(Unread),
    /// This line is not a template.
    Line(u64),
    /// There are more templates than are kept.
    TooMany,
}

impl fmt::Display for TemplatesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplatesError::Unread(why) => write!(f, "{why}"),
            TemplatesError::Line(number) => write!(f, "line {number} is not a template"),
            TemplatesError::TooMany => {
                write!(f, "more than {MOST} templates; remove lines that no exporter needs")
            }
        }
    }
}

impl std::error::Error for TemplatesError {}

impl Templates {
    /// Reads the templates of a file. A missing file is an empty list.
    pub fn read(path: &Path) -> Result<Self, TemplatesError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(why) => return Err(TemplatesError::Unread(why.into())),
        };
        Self::read_from(BufReader::new(file.take(FILE_MAX + 1)))
    }

    /// Reads the templates in the text of such a file.
    pub fn read_from(input: impl io::BufRead) -> Result<Self, TemplatesError> {
        let mut lines = Lines::new(input, LINE_MAX);
        let (mut all, mut bytes) = (BTreeMap::new(), 0);
        while let Some(line) = lines.next().map_err(TemplatesError::Unread)? {
            bytes += line.len() as u64;
            if bytes > FILE_MAX {
                return Err(TemplatesError::Unread(Unread::Long { most: FILE_MAX }));
            }
            let line = line.trim_ascii_end();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let read = str::from_utf8(line).ok().and_then(parse);
            let (key, layout) = read.ok_or(TemplatesError::Line(lines.number()))?;
            all.insert(key, Arc::new(layout));
            if all.len() > MOST {
                return Err(TemplatesError::TooMany);
            }
        }
        Ok(Templates { all, changed: false })
    }

    /// Replaces the file by all templates, if they changed since the last call.
    pub fn write(&mut self, disk: &dyn Disk, path: &Path) -> io::Result<()> {
        if !self.changed {
            return Ok(());
        }
        files::replace(disk, path, Access::Umask, |out| {
            writeln!(out, "# Templates of flow records that sidon received.")?;
            let mut each = self.all.iter();
            each.try_for_each(|((origin, number), layout)| {
                writeln!(out, "{origin} {number} {layout}")
            })
        })?;
        self.changed = false;
        Ok(())
    }

    /// The number of templates.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether the list of templates is empty.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A template of an exporter.
    pub(super) fn get(&self, origin: Origin, number: u16) -> Option<Arc<Layout>> {
        self.all.get(&(origin, number)).cloned()
    }

    /// Keeps a template of an exporter, unless there are too many. Returns it in shared form.
    pub(super) fn keep(&mut self, origin: Origin, number: u16, layout: Layout) -> Arc<Layout> {
        let old = self.all.get(&(origin, number));
        if let Some(old) = old.filter(|old| ***old == layout) {
            return Arc::clone(old);
        }
        let layout = Arc::new(layout);
        if old.is_some() || self.all.len() < MOST {
            self.all.insert((origin, number), Arc::clone(&layout));
            self.changed = true;
        }
        layout
    }
}

fn parse(line: &str) -> Option<(Key, Layout)> {
    let (origin, rest) = line.split_once(' ')?;
    let (number, layout) = rest.split_once(' ')?;
    Some(((origin.parse().ok()?, number.parse().ok()?), layout.parse().ok()?))
}
