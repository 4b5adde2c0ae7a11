//! What the program is still allowed, once it has what it needs.

use std::path::{Path, PathBuf};

/// How far the program is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confined {
    /// No capability is left.
    pub powerless: bool,
    /// No file can be opened but in the folders that were named; `None` if the kernel cannot do
    /// that, `Some(false)` if it can do a part of it.
    pub files: Option<bool>,
}

/// Gives up every capability, and the right to open files but those in the folders of `paths`,
/// where the kernel has Landlock. For the calling thread and those it starts from here on, for
/// ever: call it before there are others, and after everything else is open.
pub fn give_up<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Confined {
    let folders: Vec<PathBuf> = paths.into_iter().map(folder).collect();
    Confined { powerless: powerless(), files: confine(&folders) }
}

/// The folder that a file is or will be in; a folder is its own.
fn folder(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(target_os = "linux")]
fn powerless() -> bool {
    use caps::CapSet;
    // The bounding set takes a capability of its own to empty; without it nothing can be regained
    // either, as there is no program to start. The rest is always allowed.
    for set in [CapSet::Bounding, CapSet::Ambient] {
        let _ = caps::clear(None, set);
    }
    let sets = [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable];
    sets.into_iter().all(|set| {
        let _ = caps::clear(None, set);
        caps::read(None, set).is_ok_and(|left| left.is_empty())
    })
}

#[cfg(target_os = "linux")]
fn confine(folders: &[PathBuf]) -> Option<bool> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
        RulesetStatus, path_beneath_rules,
    };
    let abi = ABI::V5;
    let restrict = || -> Result<RulesetStatus, RulesetError> {
        let rules = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .create()?
            .add_rules(path_beneath_rules(folders, AccessFs::from_all(abi)))?;
        Ok(rules.restrict_self()?.ruleset)
    };
    match restrict().ok()? {
        RulesetStatus::FullyEnforced => Some(true),
        RulesetStatus::PartiallyEnforced => Some(false),
        RulesetStatus::NotEnforced => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn powerless() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn confine(_: &[PathBuf]) -> Option<bool> {
    None
}
