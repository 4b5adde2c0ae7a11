//! The machine a run was made on, as far as it tells.

use serde_json::{Value, json};
use std::fs;

/// What a reader needs to place the numbers.
pub(crate) fn describe() -> Value {
    let text = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    json!({
        "cpu": text("/proc/cpuinfo").and_then(|info| field(&info, "model name")),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": text("/proc/meminfo").and_then(|info| field(&info, "MemTotal")),
        "last_cache": text("/sys/devices/system/cpu/cpu0/cache/index3/size"),
        "huge_pages": text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "load": text("/proc/loadavg"),
        "os": std::env::consts::OS,
        "target_cpu": target_cpu(),
    })
}

/// Peers without runtime dispatch gain by a newer target, so it is named.
fn target_cpu() -> &'static str {
    if cfg!(target_feature = "avx2") {
        "built with avx2 (target-cpu=native or the like)"
    } else {
        "default"
    }
}

/// The value of the first line `name : value`.
fn field(info: &str, name: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_name() {
        let info = "processor\t: 0\nmodel name\t: Some CPU\n";
        assert_eq!(field(info, "model name").as_deref(), Some("Some CPU"));
        assert_eq!(field(info, "flags"), None);
    }
}
