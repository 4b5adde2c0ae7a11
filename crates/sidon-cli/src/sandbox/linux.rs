//! The layers on Linux, except the list of system calls.

use super::{Confined, Layer, Needs, calls};
use caps::CapSet;
use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::{
    fs::{AtFlags, CWD},
    io::Errno,
    process::DumpableBehavior,
};
use std::path::{Path, PathBuf};

/// The version of Landlock whose rights the program knows. An older kernel enforces its part.
const KNOWN: ABI = ABI::V6;

/// Puts the layers in force. Also returns a place where the command needs to write and cannot,
/// because it no longer has root's power over files.
pub(super) fn confine(needs: &Needs) -> (Confined, Option<&Path>) {
    let privileges = match rustix::thread::set_no_new_privs(true) {
        Ok(()) => Layer::Whole("set".to_owned()),
        Err(why) => Layer::Missing(why.to_string()),
    };
    if needs.secret {
        // The memory and the environment have the token: root alone may read them. A failure leaves
        // them readable for the same user, as those of any other program.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    let capabilities = match powerless() {
        true => Layer::Whole("none left".to_owned()),
        false => Layer::Missing("the kernel did not drop all of them".to_owned()),
    };
    let forbidden = needs.writes.iter().find(|path| is_forbidden(path));
    let files = match files(needs) {
        Ok(layer) => layer,
        Err(why) => Layer::Missing(format!("{why:#}")),
    };
    // Last: the other layers need system calls that this one forbids.
    let calls = match calls::restrict(needs) {
        Ok(many) => Layer::Whole(format!("{many} system calls allowed")),
        Err(why) => Layer::Missing(why),
    };
    let confined = vec![
        ("no_new_privs", privileges),
        ("capabilities", capabilities),
        ("Landlock", files),
        ("seccomp", calls),
    ];
    (confined, forbidden.map(PathBuf::as_path))
}

/// Empties all sets of capabilities. Returns whether none is left.
fn powerless() -> bool {
    // Emptying the bounding set needs a capability. Without it the program cannot regain one
    // either, because no_new_privs is set. The other sets can always be emptied.
    for capability in caps::runtime::thread_all_supported() {
        let _ = caps::drop(None, CapSet::Bounding, capability);
    }
    let _ = caps::clear(None, CapSet::Ambient);
    let sets = [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable];
    sets.into_iter().all(|set| {
        let _ = caps::clear(None, set);
        caps::read(None, set).is_ok_and(|left| left.is_empty())
    })
}

/// Forbids all files except those of `needs`, TCP, and signals to other processes.
fn files(needs: &Needs) -> anyhow::Result<Layer> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::RemoveFile
        | AccessFs::MakeDir;
    let granted = |paths: &'_ [PathBuf], access| {
        paths.iter().map(move |path| (path.clone(), access)).collect::<Vec<_>>()
    };
    for (path, access) in
        [granted(&needs.reads, read), granted(&needs.writes, read | write)].concat()
    {
        // A path that does not exist, or a pipe, has no rule. Opening the former fails anyway, and
        // the latter is not restricted.
        let opened = match PathFd::new(&path) {
            Ok(opened) => opened,
            Err(_) if !path.exists() => continue,
            // Without its rule the command could not open the path later.
            Err(why) => return Err(why.into()),
        };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(KNOWN) };
        let _ = (&mut rules).add_rule(PathBeneath::new(opened, access));
    }
    let status = rules.restrict_self()?;
    let version = match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.unwrap_or(effective_abi as i32)
        }
        _ => 0,
    };
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Layer::Whole(format!("version {version}")),
        RulesetStatus::PartiallyEnforced => {
            Layer::Part(format!("this kernel has version {version}"))
        }
        _ => Layer::Missing("this kernel does not have it, or does not enable it".to_owned()),
    })
}

/// Whether the process may not create files in a directory, or write a device.
fn is_forbidden(path: &Path) -> bool {
    let access = rustix::fs::Access::WRITE_OK;
    rustix::fs::accessat(CWD, path, access, AtFlags::empty()) == Err(Errno::ACCESS)
}
