//! `sidon doctor`: what protects this machine from hostile input, what it lacks, what to type.
//!
//! The command looks at the machine, confines itself as `sidon show` would, and asks the kernel what
//! is in force then.

use crate::{
    sandbox::{self, Layer, Needs},
    show,
};
use serde_json::json;
use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    process::ExitCode,
};

/// Show what confines sidon on this machine, what the machine lacks, and what to type
///
/// Commands that read captures, saved files, packets or requests first give up all rights that they
/// do not need. This command shows which parts of that are in force on this machine: no_new_privs,
/// capabilities, Landlock and seccomp. It also shows the limits of the system that matter to sidon.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
EXIT STATUS
  0  every layer of confinement is in force
  1  a layer is missing
  2  the command line is wrong

EXAMPLES
  sidon doctor
  sidon doctor --json")]
pub(crate) struct Args {
    /// Write JSON: {\"checks\": [{\"check\", \"ok\", \"found\", \"advice\"}]}
    #[arg(long)]
    json: bool,
}

/// One line of the answer.
struct Check {
    name: &'static str,
    /// Whether the machine meets the need; if not, `advice` applies.
    ok: bool,
    found: String,
    /// What to type or to change, if something is lacking.
    advice: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut checks = vec![interfaces()];
    checks.extend(limits());
    let (layers, kernel) = layers()?;
    let confined = layers.iter().all(|layer| layer.ok);
    checks.splice(0..0, layers);
    checks.insert(0, Check { name: "kernel", ok: true, found: kernel, advice: String::new() });
    let advice = |check: &Check| (!check.ok).then(|| check.advice.clone());
    if args.json {
        let rows = checks.iter().map(|check| {
            json!({ "check": check.name, "ok": check.ok, "found": check.found, "advice": advice(check) })
        });
        let rows: Vec<_> = rows.collect();
        let all = json!({ "version": 1, "confined": confined, "checks": rows });
        show::print(&serde_json::to_string_pretty(&all)?)?;
    } else {
        let state = |check: &Check| if check.ok { "ok" } else { "lacks" }.to_owned();
        let rows = checks
            .iter()
            .map(|check| vec![check.name.to_owned(), state(check), check.found.clone()]);
        let mut text = show::table(&["check", "state", "found"], rows);
        for check in checks.iter().filter(|check| !check.ok) {
            text += &show::folded(&format!("\n\n{}: {}", check.name, check.advice));
        }
        show::print(&text)?;
    }
    Ok(if confined { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Confines this process, and compares what the layers say with what the kernel says. Also returns
/// the kernel's name.
fn layers() -> anyhow::Result<(Vec<Check>, String)> {
    // The only file that is still needed afterwards.
    let mut status = File::open("/proc/self/status").ok();
    let kernel = kernel();
    let confined = sandbox::confine(&Needs::nothing().quiet(true))?;
    let mut text = String::new();
    if let Some(status) = &mut status {
        status.seek(SeekFrom::Start(0))?;
        status.read_to_string(&mut text)?;
    }
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim)
    };
    let names = ["no_new_privs", "capabilities", "Landlock", "seccomp"];
    let checks = names.map(|name| {
        let layer = confined.iter().find(|(layer, _)| *layer == name).map(|(_, layer)| layer);
        let (mut ok, mut found) = match layer {
            Some(Layer::Whole(detail)) => (true, detail.clone()),
            Some(Layer::Part(detail)) => (true, format!("in part: {detail}")),
            Some(Layer::Missing(why)) => (false, why.clone()),
            None => (false, "SIDON_SANDBOX is off, or this system is not Linux".to_owned()),
        };
        // If the kernel reports otherwise, the kernel is right.
        let denied = match name {
            "no_new_privs" => field("NoNewPrivs").is_some_and(|value| value != "1"),
            "capabilities" => {
                let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"];
                let some = |set: &&str| field(set).is_some_and(|bits| bits.contains(|c| c != '0'));
                sets.iter().any(some)
            }
            "seccomp" => field("Seccomp").is_some_and(|value| value != "2"),
            _ => false,
        };
        if ok && denied {
            (ok, found) = (false, "the kernel says that it is not in force".to_owned());
        }
        let advice = match name {
            "Landlock" => {
                "use Linux 5.13 or later, with landlock in the kernel's parameter lsm=; in a container, \
                 allow the system calls landlock_create_ruleset, landlock_add_rule and \
                 landlock_restrict_self"
            }
            "seccomp" => {
                "use a kernel with CONFIG_SECCOMP_FILTER on x86_64, aarch64 or riscv64; in a \
                 container, allow the system call seccomp"
            }
            "capabilities" => "run sidon as an ordinary user",
            _ => "use Linux 3.5 or later",
        };
        Check { name, ok, found, advice: advice.to_owned() }
    });
    Ok((checks.into(), kernel))
}

#[cfg(target_os = "linux")]
fn kernel() -> String {
    let about = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    format!("{} {} {}", part(about.sysname()), part(about.release()), part(about.machine()))
}

#[cfg(not(target_os = "linux"))]
fn kernel() -> String {
    format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)
}

/// Whether this process may read network interfaces.
fn interfaces() -> Check {
    #[cfg(target_os = "linux")]
    let opened = socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, None).map(drop);
    #[cfg(not(target_os = "linux"))]
    let opened = Err(std::io::Error::from(std::io::ErrorKind::Unsupported));
    let path = std::env::current_exe().unwrap_or_else(|_| "sidon".into());
    Check {
        name: "read interfaces (-i)",
        ok: opened.is_ok(),
        found: opened.map_or_else(|why| why.to_string(), |()| "permitted".to_owned()),
        advice: format!("type: sudo setcap cap_net_raw=ep {}", show::path(path)),
    }
}

/// Limits of the system, as far as it has them under `/proc` and `/sys`.
fn limits() -> Vec<Check> {
    let mut checks = Vec::new();
    if let Ok(text) = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled") {
        let chosen = text.split(['[', ']']).nth(1).unwrap_or("unknown");
        checks.push(Check {
            name: "huge pages",
            ok: chosen != "never",
            found: chosen.to_owned(),
            advice: "large tables are slower without them; type: echo madvise | sudo tee \
                     /sys/kernel/mm/transparent_hugepage/enabled"
                .to_owned(),
        });
    }
    if let Ok(text) = fs::read_to_string("/proc/meminfo") {
        let kibibytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse::<u64>().ok()
        };
        if let (Some(all), Some(free)) = (kibibytes("MemTotal"), kibibytes("MemAvailable")) {
            let (all, free) = (all.saturating_mul(1024), free.saturating_mul(1024));
            checks.push(Check {
                name: "memory",
                ok: free > 64 << 20,
                found: format!("{} of {} available", show::bytes(free), show::bytes(all)),
                advice: "the tables of --memory 16MiB need 64 MiB for the whole process".to_owned(),
            });
        }
    }
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let mut at_least = |name, path: &str, most: u64, what: &str| {
        let Some(found) = number(path) else { return };
        let key = path.trim_start_matches("/proc/sys/").replace('/', ".");
        checks.push(Check {
            name,
            ok: found >= most,
            found: format!("{key} = {found}"),
            advice: format!("{what}; type: sudo sysctl -w {key}={most}"),
        });
    };
    at_least(
        "buffer for flow records (--netflow)",
        "/proc/sys/net/core/rmem_max",
        8 << 20,
        "the kernel drops records of a burst beyond this buffer",
    );
    at_least(
        "queue of connections (serve)",
        "/proc/sys/net/core/somaxconn",
        4096,
        "more clients at once wait a second and try again",
    );
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    checks.push(Check {
        name: "open files (serve)",
        ok: files.is_none_or(|files| files >= 2112),
        found: files.map_or("no limit".to_owned(), |files| format!("up to {files}")),
        advice: "sidon serve then serves fewer than 2,048 clients at a time; type: ulimit -Hn 2112"
            .to_owned(),
    });
    checks
}
