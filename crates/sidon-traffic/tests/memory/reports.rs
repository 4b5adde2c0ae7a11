//! Reports and questions while packets arrive: they leave no memory behind and take little.

use crate::{ALLOCATED, alone};
use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, Generator, Mix, Settings,
    generate::{Flood, scenario::Scenario},
};

#[test]
fn many_reports_leave_no_memory_behind() {
    let _alone = alone();
    let many = if cfg!(feature = "slow-tests") { 100 } else { 20 };
    for (threads, reports) in [(1, 5), (2, many)] {
        let settings = Settings { threads, ..Settings::new(Seed(7)) };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        engine.start().unwrap();
        let victim = "10.0.0.80:443".parse().unwrap();
        let flood = Flood { sources: 300_000, victim, after: 50_000, ..Flood::default() };
        let mix = Mix { packets: 500_000, ipv6: 30, flood: Some(flood), ..Mix::default() };
        for packet in Generator::new(mix, 3).unwrap() {
            engine.packet(&packet);
        }
        // The table of IPv6 sources is full, too.
        let flood =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/overload/5-syn-ipv6.toml");
        for packet in Scenario::read(flood).unwrap().packets(100_000, 1, u64::MAX).unwrap() {
            engine.packet(&packet);
        }
        let question = "443/tcp".parse().unwrap();
        // The first report allocates what the engine keeps, such as the list of P2P-like hosts.
        let first = engine.report().to_json();
        let before = ALLOCATED.current_usage();
        ALLOCATED.reset_peak_usage();
        for _ in 0..reports {
            let report = engine.report();
            assert_eq!(report.new_sources.len(), 1_000);
            assert!(report.new_subnets > 10_000, "{}", report.new_subnets);
            assert!(engine.answer(&question).is_seen() == Some(true));
            drop(report);
            let now = ALLOCATED.current_usage();
            // A worker frees its last message a moment after it has answered.
            assert!(now.abs_diff(before) < 4 << 10, "{threads} threads: {before}, then {now}");
        }
        let peak = ALLOCATED.peak_usage() - before;
        println!("{threads} threads: {before} bytes live, {peak} more at the peak");
        assert!(peak < 4 << 20, "{threads} threads: {peak}");
        assert_eq!(engine.report().to_json(), first);
    }
}
