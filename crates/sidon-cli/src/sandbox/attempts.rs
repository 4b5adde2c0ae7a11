//! Tries what a confined process must not do, for tests of the real binary. Only builds with debug
//! assertions have this file.
//!
//! With `SIDON_SANDBOX_TRY=read,connect` a command makes these attempts right after it was confined,
//! prints one line for each to standard output, and exits. `SIDON_SANDBOX_PATH` names the file for
//! attempts that need one. An attempt that ends the process prints nothing.
#![allow(unsafe_code)]
#![allow(clippy::print_stdout)] // tests read this output

use std::{
    fs::{self, File, OpenOptions},
    io,
    net::{TcpListener, TcpStream, UdpSocket},
    path::PathBuf,
    process::Command,
    ptr,
};

/// Makes the attempts that the environment names, if there are any.
pub(super) fn run() {
    let Ok(names) = std::env::var("SIDON_SANDBOX_TRY") else { return };
    let path = std::env::var_os("SIDON_SANDBOX_PATH").map(PathBuf::from).unwrap_or_default();
    for name in names.split(',') {
        let done: io::Result<()> = match name {
            "read" => File::open(&path).map(drop),
            "write" => OpenOptions::new().append(true).open(&path).map(drop),
            "create" => File::create(path.with_extension("new")).map(drop),
            "remove" => fs::remove_file(&path),
            "rename" => fs::rename(&path, path.with_extension("old")),
            "link" => fs::hard_link(&path, path.with_extension("link")),
            "directory" => fs::create_dir(path.with_extension("dir")),
            "list" => fs::read_dir(path.parent().unwrap_or(&path)).map(drop),
            "permissions" => fs::set_permissions(&path, mode(0o777)),
            "connect" => TcpStream::connect("127.0.0.1:9").map(drop),
            "listen" => TcpListener::bind("127.0.0.1:0").map(drop),
            "send" => UdpSocket::bind("127.0.0.1:0").map(drop),
            "spawn" => Command::new("/bin/true").spawn().map(drop),
            "thread" => std::thread::Builder::new()
                .spawn(|| ())
                .and_then(|thread| thread.join().map_err(|_| io::Error::other("panicked"))),
            "kill" => call(libc::SYS_kill, [i64::from(std::os::unix::process::parent_id()), 0, 0]),
            "setuid" => call(libc::SYS_setuid, [0; 3]),
            "capabilities" => {
                caps::raise(None, caps::CapSet::Effective, caps::Capability::CAP_CHOWN)
                    .map_err(io::Error::other)
            }
            "code" => executable(),
            "ioctl" => call(libc::SYS_ioctl, [0, libc::TIOCSTI as i64, 0]),
            "process" => call(libc::SYS_clone, [libc::SIGCHLD.into(), 0, 0]),
            "execve" => call(libc::SYS_execve, [0; 3]),
            "ptrace" => call(libc::SYS_ptrace, [0; 3]),
            "mount" => call(libc::SYS_mount, [0; 3]),
            "unshare" => call(libc::SYS_unshare, [0; 3]),
            "bpf" => call(libc::SYS_bpf, [0; 3]),
            name => Err(io::Error::other(format!("no attempt has the name {name}"))),
        };
        match done {
            Ok(()) => println!("{name}: ALLOWED"),
            Err(why) => println!("{name}: refused: {why}"),
        }
    }
    std::process::exit(0);
}

fn mode(mode: u32) -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(mode)
}

/// Makes a system call that gets numbers and no addresses but null.
fn call(number: libc::c_long, [a, b, c]: [i64; 3]) -> io::Result<()> {
    // SAFETY: no argument is an address of this process, so the kernel reads and writes none of its
    // memory. A child of `clone` without its own stack exits below at once.
    let done = unsafe { libc::syscall(number, a, b, c, 0, 0, 0) };
    if number == libc::SYS_clone && done == 0 {
        std::process::exit(0);
    }
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Maps memory that may hold code.
fn executable() -> io::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice; nothing uses it.
    let map = unsafe { libc::mmap(ptr::null_mut(), 4096, access, flags, -1, 0) };
    if map == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}
