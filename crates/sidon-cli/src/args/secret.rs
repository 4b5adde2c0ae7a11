//! Secrets from a file or from the environment: tokens and seeds. No message contains a secret.

use anyhow::{Context, bail, ensure};
use sidon_traffic::text;
use std::{
    fs::{File, Metadata},
    io::Read,
    path::Path,
};

/// A kind of secret.
pub(crate) struct Secret {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// The variable of the environment that can contain it.
    pub(crate) variable: &'static str,
    /// The most bytes, without the white space around it.
    pub(crate) longest: usize,
}

impl Secret {
    /// The value that `parse` makes of `file`, or else of the variable, if there is one.
    pub(crate) fn find<T>(
        &self,
        file: Option<&Path>,
        parse: impl Fn(&[u8]) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        let (place, bytes) = match (file, std::env::var_os(self.variable)) {
            (Some(path), _) => (text::path(path), self.read(path)?),
            (None, Some(text)) => (self.variable.to_owned(), text.into_encoded_bytes()),
            (None, None) => return Ok(None),
        };
        parse(&bytes).with_context(|| format!("{place} cannot be used")).map(Some)
    }

    /// The first bytes of a file that only its owner, and perhaps its group, may read.
    fn read(&self, path: &Path) -> anyhow::Result<Vec<u8>> {
        let place = || format!("cannot read the {} file {}", self.name, text::path(path));
        let file = File::open(path).with_context(place)?;
        self.private(&file.metadata().with_context(place)?, path)?;
        let mut bytes = Vec::new();
        file.take(self.longest as u64 + 1).read_to_end(&mut bytes).with_context(place)?;
        Ok(bytes)
    }

    /// The text in these bytes, without the white space around it.
    pub(crate) fn text<'a>(&self, bytes: &'a [u8]) -> anyhow::Result<&'a str> {
        let (name, longest, bytes) = (self.name, self.longest, bytes.trim_ascii());
        ensure!(!bytes.is_empty(), "the {name} is empty; give at least one character");
        ensure!(
            bytes.len() <= longest,
            "the {name} has more than {longest} bytes; give a shorter one"
        );
        match str::from_utf8(bytes) {
            Ok(text) if bytes.iter().all(u8::is_ascii_graphic) => Ok(text),
            _ => bail!(
                "the {name} has a character that is not visible ASCII; give letters and digits"
            ),
        }
    }

    /// Refuses a file that any user may read or that the group may write. Pipes have no other
    /// readers.
    #[cfg(unix)]
    fn private(&self, about: &Metadata, path: &Path) -> anyhow::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let mode = about.permissions().mode() & 0o777;
        let (name, path) = (self.name, text::path(path));
        ensure!(
            !about.is_file() || mode & 0o027 == 0,
            "other users can read or change the {name} file {path} (mode {mode:03o}); type: chmod 600 {path}"
        );
        Ok(())
    }

    #[cfg(not(unix))]
    fn private(&self, _: &Metadata, _: &Path) -> anyhow::Result<()> {
        Ok(())
    }
}
