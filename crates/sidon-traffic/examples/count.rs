//! How many frames of a capture each filter takes: `count FILE EXPRESSION ...`.
//!
//! One line an expression: matches, and frames that matched but for their VLAN tags. What
//! `scripts/filter-against-tcpdump` compares.

use sidon_traffic::{Filter, Source, Verdict};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        eprintln!("usage: count FILE EXPRESSION ...");
        return ExitCode::from(2);
    };
    let filters: Result<Vec<Filter>, _> = args.map(|text| text.parse()).collect();
    let filters = match filters {
        Ok(filters) => filters,
        Err(why) => {
            eprintln!("count: {why}");
            return ExitCode::from(2);
        }
    };
    let mut source = match Source::open(&path) {
        Ok(source) => source,
        Err(why) => {
            eprintln!("count: {path}: {why}");
            return ExitCode::FAILURE;
        }
    };
    let mut counts = vec![[0u64; 2]; filters.len()];
    let end = loop {
        match source.next() {
            Ok(Some(frame)) => {
                for (filter, count) in filters.iter().zip(&mut counts) {
                    match filter.verdict(&frame) {
                        Verdict::Match => count[0] += 1,
                        Verdict::BehindTag => count[1] += 1,
                        Verdict::NoMatch => {}
                    }
                }
            }
            Ok(None) => break ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("count: {path}: {why}");
                break ExitCode::from(3);
            }
        }
    };
    for [matched, behind] in counts {
        println!("{matched} {behind}");
    }
    end
}
