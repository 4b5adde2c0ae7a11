//! The token that clients must send: from a file or from the environment, never from the command
//! line, which every user of the machine can read.

use anyhow::{Context, bail, ensure};
use sidon_traffic::text;
use std::{fs::File, io::Read, path::Path};

/// The most bytes of a token.
const LONGEST: usize = 4096;

/// A token that a header can carry.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    /// The token of `file`, or else of `SIDON_TOKEN`, if there is one.
    pub(super) fn find(file: Option<&Path>) -> anyhow::Result<Option<Self>> {
        match (file, std::env::var_os("SIDON_TOKEN")) {
            (Some(path), _) => Self::read(path).map(Some),
            (None, Some(text)) => {
                let text = text.into_encoded_bytes();
                Self::of(&text).context("SIDON_TOKEN cannot be used").map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    /// The token of a file that only its owner, and perhaps its group, may read.
    fn read(path: &Path) -> anyhow::Result<Self> {
        let place = || format!("cannot read the token file {}", text::path(path));
        let file = File::open(path).with_context(place)?;
        private(&file, path)?;
        let mut bytes = Vec::new();
        file.take(LONGEST as u64 + 1).read_to_end(&mut bytes).with_context(place)?;
        Self::of(&bytes).with_context(|| format!("{} cannot be used", text::path(path)))
    }

    /// The token in these bytes, without the white space around it.
    pub(super) fn of(bytes: &[u8]) -> anyhow::Result<Self> {
        let bytes = bytes.trim_ascii();
        ensure!(!bytes.is_empty(), "the token is empty; give at least one character");
        ensure!(
            bytes.len() <= LONGEST,
            "the token has more than {LONGEST} bytes; give a shorter one"
        );
        match str::from_utf8(bytes) {
            Ok(text) if bytes.iter().all(u8::is_ascii_graphic) => Ok(Token(text.to_owned())),
            _ => bail!(
                "the token has a character that is not visible ASCII; give letters and digits"
            ),
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    #[cfg(test)]
    pub(super) fn new(text: &str) -> anyhow::Result<Self> {
        Self::of(text.as_bytes())
    }
}

/// Refuses a file that any user may read or that the group may write. Pipes have no other readers.
#[cfg(unix)]
fn private(file: &File, path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let place = || format!("cannot read the token file {}", text::path(path));
    let about = file.metadata().with_context(place)?;
    let mode = about.permissions().mode() & 0o777;
    let path = text::path(path);
    ensure!(
        !about.is_file() || mode & 0o027 == 0,
        "other users can read or change the token file {path} (mode {mode:03o}); type: chmod 600 {path}"
    );
    Ok(())
}

#[cfg(not(unix))]
fn private(_: &File, _: &Path) -> anyhow::Result<()> {
    Ok(())
}
