//! Drops the privileges that the program no longer needs.

use std::path::{Path, PathBuf};

/// The degree of confinement of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confined {
    /// Whether the program has no capability left.
    pub powerless: bool,
    /// Whether only files in the given folders can be opened. `None` if the kernel does not support
    /// this, `Some(false)` if it supports a part of it.
    pub files: Option<bool>,
}

/// Gives up every capability and, where the kernel has Landlock, the right to open files outside
/// the folders of `paths`. This is permanent, for the calling thread and for threads that it starts
/// later. Call it before other threads exist, and after all other files are open.
pub fn give_up<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Confined {
    let folders: Vec<PathBuf> = paths.into_iter().map(folder).collect();
    Confined { powerless: powerless(), files: confine(&folders) }
}

/// The folder that holds or will hold a file; for a folder, the folder itself.
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
    // Emptying the bounding set needs a capability. Without it the program cannot regain one
    // either, because it starts no other program. The other sets can always be emptied.
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
