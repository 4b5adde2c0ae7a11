//! The token that clients must send: from a file or from the environment, never from the command
//! line, which every user of the machine can read.

use crate::args::Secret;
use std::path::Path;

const SECRET: Secret = Secret { name: "token", variable: "SIDON_TOKEN", longest: 4096 };

/// A token that a header can carry.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    /// The token of `file`, or else of `SIDON_TOKEN`, if there is one.
    pub(super) fn find(file: Option<&Path>) -> anyhow::Result<Option<Self>> {
        SECRET.find(file, Self::of)
    }

    /// The token in these bytes, without the white space around it.
    pub(super) fn of(bytes: &[u8]) -> anyhow::Result<Self> {
        SECRET.text(bytes).map(|text| Token(text.to_owned()))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    #[cfg(test)]
    pub(super) fn new(text: &str) -> anyhow::Result<Self> {
        Self::of(text.as_bytes())
    }
}
