//! Thresholds in TOML: refused with a short error, or printed and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidon_traffic::{Thresholds, monitor::incidents::KINDS};

/// The most characters of an error: it may list every kind.
const MESSAGE_MAX: usize = 1000;

fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let thresholds = match Thresholds::parse(text) {
        Ok(thresholds) => thresholds,
        Err(why) => return assert!(why.to_string().chars().count() < MESSAGE_MAX),
    };
    let printed = thresholds.print();
    match Thresholds::parse(&printed) {
        Ok(again) => assert!(again.print() == printed, "printed otherwise"),
        Err(why) => panic!("its own text is refused: {why}"),
    }
    for kind in KINDS {
        let floor = thresholds.floor(kind);
        assert!((0.0..=1.0).contains(&floor.ratio) && floor.factor.is_finite());
        for (_, network) in &thresholds.networks {
            assert!(thresholds.network(network).is_some());
        }
        for rule in &thresholds.allow {
            let is_of = rule.kinds.is_empty() || rule.kinds.contains(&kind);
            assert!(!is_of || thresholds.allows(kind, &rule.network).is_some());
        }
    }
});

/// The defaults, and a file with every kind of value.
fn seeds() -> Vec<Vec<u8>> {
    let all = r#"false_accusations = 1e-3
allow = ["192.0.2.7: address_scan, port_scan", "2001:db8::/32:beacon", "::"]
[networks]
office = ["10.0.0.0/8", "2001:db8::/48"]
dmz-1 = "192.0.2.0/24"
[syn_flood]
enabled = false
count = 0x20
ratio = 0.25
holds = 86400
"#;
    vec![Thresholds::default().print().into_bytes(), all.as_bytes().to_vec()]
}
