//! The system calls that a confined process may make: a list for each need, everything else is
//! refused.
//!
//! A call that is not listed fails with `ENOSYS`, as on a kernel that does not have it. The C library
//! then falls back to an older call, such as from `clone3` to `clone`, whose arguments can be
//! checked. With `EPERM` it would fail instead, and a newer C library would no longer run. Killing
//! the process would turn every harmless new call into a crash.
//!
//! Calls that no library makes by itself and that an attacker needs end the process: [`FATAL`].
//! The kernel then logs the call, and the attacker gets no second try.
//!
//! The filter checks the processor of the caller, so 32-bit calls cannot pass as others. It applies
//! to all threads. Arguments behind pointers cannot be checked.

use super::{Needs, Sockets};
use libc::{AF_UNIX, CLONE_THREAD, FIONBIO, FIONREAD, PROT_EXEC, TCGETS, TIOCGWINSZ, c_long};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Compare, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Memory, threads, signals, time, and reading and writing of open files.
const ALWAYS: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_futex,
    libc::SYS_getcwd,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Reading files by name. The flags of `openat` are checked if the command only reads.
const READ: &[c_long] = &[libc::SYS_getdents64, libc::SYS_readlinkat];

/// Creating, replacing and removing files.
const WRITE: &[c_long] = &[
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    libc::SYS_ftruncate,
    libc::SYS_linkat,
    libc::SYS_mkdirat,
    libc::SYS_openat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
];

/// Reading sockets that are open.
const RECEIVE: &[c_long] = &[
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
];

/// Accepting connections and answering them.
const SERVE: &[c_long] = &[
    libc::SYS_accept4,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
];

/// Older forms of the same calls, which only this processor has.
#[cfg(target_arch = "x86_64")]
mod old {
    use libc::c_long;
    pub(super) const ALWAYS: &[c_long] = &[libc::SYS_poll, libc::SYS_time];
    pub(super) const READ: &[c_long] =
        &[libc::SYS_access, libc::SYS_lstat, libc::SYS_readlink, libc::SYS_stat];
    pub(super) const WRITE: &[c_long] =
        &[libc::SYS_link, libc::SYS_mkdir, libc::SYS_open, libc::SYS_rename, libc::SYS_unlink];
    pub(super) const SERVE: &[c_long] = &[libc::SYS_epoll_wait];
    /// `open`, and the argument with its flags.
    pub(super) const OPEN: &[(c_long, u8)] = &[(libc::SYS_open, 1)];
    pub(super) const FATAL: &[c_long] = &[libc::SYS_ioperm, libc::SYS_iopl];
}

#[cfg(not(target_arch = "x86_64"))]
mod old {
    use libc::c_long;
    pub(super) const ALWAYS: &[c_long] = &[];
    /// `access` is this call here.
    pub(super) const READ: &[c_long] = &[libc::SYS_faccessat];
    /// `renameat`, for which the crate libc has no name here.
    pub(super) const WRITE: &[c_long] = if cfg!(target_arch = "aarch64") { &[38] } else { &[] };
    pub(super) const SERVE: &[c_long] = &[];
    pub(super) const OPEN: &[(c_long, u8)] = &[];
    pub(super) const FATAL: &[c_long] = &[];
}

/// Calls that end the process: other programs, other processes, the kernel itself.
const FATAL: &[c_long] = &[
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_mount,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_reboot,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Flags with which `openat` can change something.
const CHANGES: i32 = libc::O_WRONLY
    | libc::O_RDWR
    | libc::O_CREAT
    | libc::O_TRUNC
    | libc::O_APPEND
    | (libc::O_TMPFILE & !libc::O_DIRECTORY);

/// `TCGETS2`, by which newer C libraries ask whether a file is a terminal.
const TCGETS2: u64 = 0x802c_542a;
/// `prctl` that names a thread.
const PR_SET_NAME: u64 = 15;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Forbids all system calls that `needs` does not imply. Returns the number of allowed calls.
pub(super) fn restrict(needs: &Needs) -> Result<usize, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("no filter for the processor {}", std::env::consts::ARCH))?;
    let apply = |rules: Rules, else_: SeccompAction, then: SeccompAction| {
        let filter = SeccompFilter::new(rules, else_, then, arch);
        let program: seccompiler::BpfProgram =
            filter.and_then(TryInto::try_into).map_err(|why| why.to_string())?;
        seccompiler::apply_filter_all_threads(&program).map_err(|why| why.to_string())
    };
    let allowed = allowed(needs).map_err(|why| why.to_string())?;
    let many = allowed.len();
    let fatal = FATAL.iter().chain(old::FATAL).map(|call| (*call, Vec::new())).collect();
    // The list of allowed calls comes last: it lacks the call that installs filters.
    apply(fatal, SeccompAction::Allow, SeccompAction::KillProcess)?;
    apply(allowed, SeccompAction::Errno(libc::ENOSYS as u32), SeccompAction::Allow)?;
    Ok(many)
}

/// The allowed calls and the conditions on their arguments.
fn allowed(needs: &Needs) -> Result<Rules, seccompiler::BackendError> {
    let mut lists = vec![ALWAYS, old::ALWAYS];
    let (reads, writes) = (!needs.reads.is_empty(), !needs.writes.is_empty());
    if reads || writes {
        lists.extend([READ, old::READ]);
    }
    if writes {
        lists.extend([WRITE, old::WRITE]);
    }
    if needs.sockets != Sockets::None {
        lists.push(RECEIVE);
    }
    if needs.sockets == Sockets::Serve {
        lists.extend([SERVE, old::SERVE]);
    }
    let mut rules: Rules = lists.concat().into_iter().map(|call| (call, Vec::new())).collect();
    let mut check = |call: c_long, conditions: &[(u8, Width, Compare, u64)]| {
        let conditions = conditions.iter().map(|(argument, width, compare, value)| {
            SeccompCondition::new(*argument, width.clone(), compare.clone(), *value)
        });
        let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
        rules.entry(call).or_default().push(rule);
        Ok(())
    };
    let is = |argument, value| (argument, Width::Dword, Compare::Eq, value);
    let without =
        |argument, flags: i32| (argument, Width::Dword, Compare::MaskedEq(flags as u64), 0);
    // Threads, not processes.
    let thread = CLONE_THREAD as u64;
    check(libc::SYS_clone, &[(0, Width::Qword, Compare::MaskedEq(thread), thread)])?;
    // No memory that holds new code.
    check(libc::SYS_mmap, &[without(2, PROT_EXEC)])?;
    check(libc::SYS_mprotect, &[without(2, PROT_EXEC)])?;
    // `abort` sends a signal to this process.
    check(libc::SYS_tgkill, &[is(0, std::process::id().into())])?;
    check(libc::SYS_prctl, &[is(0, PR_SET_NAME)])?;
    // Limits can be read and not set.
    check(libc::SYS_prlimit64, &[(2, Width::Qword, Compare::Eq, 0)])?;
    #[allow(clippy::unnecessary_cast)] // the type of these constants differs between C libraries
    let questions = [TCGETS as u64, TCGETS2, TIOCGWINSZ as u64, FIONBIO as u64, FIONREAD as u64];
    for question in questions {
        check(libc::SYS_ioctl, &[is(1, question)])?;
    }
    if reads && !writes {
        for (call, flags) in [(libc::SYS_openat, 2)].iter().chain(old::OPEN) {
            check(*call, &[without(*flags, CHANGES)])?;
        }
    }
    if needs.sockets == Sockets::Serve {
        // Answers go to the client of the connection, not to an address.
        check(libc::SYS_sendto, &[(4, Width::Qword, Compare::Eq, 0)])?;
        // The handler of signals wakes its thread through a pair of sockets.
        check(libc::SYS_socketpair, &[is(0, AF_UNIX as u64)])?;
    }
    Ok(rules)
}
