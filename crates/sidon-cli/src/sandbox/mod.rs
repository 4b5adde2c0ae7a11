//! Gives up every right that a command does not need, before it reads the first untrusted byte.
//!
//! A command opens its input, says in [`Needs`] what it will do later, and calls [`confine`]. From
//! then on a fault in a parser can no longer become access to the machine:
//! ```text
//! no_new_privs   no program gains rights that this process does not have
//! capabilities   all sets are emptied: root's power over files, sockets and other processes
//! Landlock       only the named files and directories can be opened; no TCP, no signals to others
//! seccomp        no new sockets, no programs, no debugging, no executable memory; and no file can
//!                be opened at all if the command named none
//! ```
//! This is permanent, for the calling thread and for threads that it starts later, so `confine`
//! runs before other threads exist. Each layer works alone. If the kernel lacks one, the others are in
//! force, and one line on standard error names it. `SIDON_SANDBOX=quiet` suppresses this line, and
//! `SIDON_SANDBOX=off` disables all layers, for a system on which they do harm.

#[cfg(all(target_os = "linux", debug_assertions))]
mod attempts;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
#[path = "none.rs"]
mod linux;

use crate::show;
use anyhow::bail;
use sidon_traffic::files::{Disk, System, Target, directory_of};
use std::path::{Path, PathBuf};

/// How a command uses the network after it is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sockets {
    /// Not at all.
    #[default]
    None,
    /// Reads packets or datagrams from sockets that are open.
    Receive,
    /// Also accepts connections at a socket that is open, and answers.
    Serve,
}

/// The rights that a command keeps, besides those on files that are open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needs {
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    sockets: Sockets,
    secret: bool,
    quiet: bool,
}

impl Needs {
    /// No right except on files that are open.
    pub(crate) fn nothing() -> Self {
        Needs::default()
    }

    /// Files to read, or directories whose files to read.
    pub(crate) fn reads<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.reads.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Directories that exist, whose files the command reads, writes, creates and removes.
    pub(crate) fn directories<P: AsRef<Path>>(
        mut self,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        self.writes.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Files to write or replace. A file is replaced by a new one, so its whole directory is
    /// writable. A device, a pipe or an open file such as /dev/stdout is written itself, and `-` is
    /// standard output.
    pub(crate) fn outputs<P: AsRef<Path>>(self, paths: impl IntoIterator<Item = P>) -> Self {
        let paths = paths.into_iter().filter(|path| path.as_ref() != Path::new("-"));
        let places = paths.map(|path| match System.find(path.as_ref()) {
            Ok(Target::Stream(path)) => path,
            _ => directory_of(path.as_ref()),
        });
        self.directories(places)
    }

    pub(crate) fn sockets(mut self, sockets: Sockets) -> Self {
        self.sockets = sockets;
        self
    }

    /// Whether the process holds a secret, which other processes of the same user must not read.
    pub(crate) fn secret(mut self, secret: bool) -> Self {
        self.secret = secret;
        self
    }

    /// Whether to print nothing about layers that the machine lacks.
    pub(crate) fn quiet(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }
}

/// Whether a layer is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Wholly, with a detail.
    Whole(String),
    /// As far as this kernel supports it.
    Part(String),
    /// Not at all, for this reason.
    Missing(String),
}

/// The layers in force, by name.
pub(crate) type Confined = Vec<(&'static str, Layer)>;

/// Gives up all rights but those of `needs`.
///
/// # Errors
/// If a directory in which the command will write is not writable without root's power over files:
/// better now than at the end of a long run.
pub(crate) fn confine(needs: &Needs) -> anyhow::Result<Confined> {
    let setting = std::env::var_os("SIDON_SANDBOX").unwrap_or_default();
    let quiet = needs.quiet || setting == "quiet";
    if setting == "off" {
        if !quiet {
            show::say("not confined, because SIDON_SANDBOX is off");
        }
        return Ok(Vec::new());
    }
    let (confined, forbidden) = linux::confine(needs);
    let missing = confined.iter().filter_map(|(name, layer)| match layer {
        Layer::Missing(why) => Some(format!("no {name}: {why}")),
        _ => None,
    });
    let missing: Vec<_> = missing.collect();
    if !missing.is_empty() && !quiet {
        show::say(&format!(
            "confined less than possible ({}); see sidon doctor",
            missing.join("; ")
        ));
    }
    #[cfg(all(target_os = "linux", debug_assertions))]
    attempts::run();
    if let Some(path) = forbidden {
        bail!(
            "cannot write to {}: permission denied (sidon gives up root's power over files); run it \
             as the owner, or name another directory",
            show::path(path)
        );
    }
    Ok(confined)
}

/// The layers as text, for `--verbose`.
pub(crate) fn words(confined: &Confined) -> String {
    let words = confined.iter().map(|(name, layer)| match layer {
        Layer::Whole(detail) => format!("{name}: {detail}"),
        Layer::Part(detail) => format!("{name}: in part, {detail}"),
        Layer::Missing(why) => format!("{name}: missing, {why}"),
    });
    let words: Vec<_> = words.collect();
    if words.is_empty() {
        "not confined".to_owned()
    } else {
        format!("confined by {}", words.join("; "))
    }
}
