//! The errors of the three state maps on one stream at equal memory, as a Markdown table.
//!
//! `cargo run --release -p sidon-lab --example state_errors -- 1000000` for a million flows.

use sidon_lab::{
    Run,
    papers::acsm_2006::compare::{self, Outcome},
};
use std::thread;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flows = match std::env::args().nth(1) {
        Some(flows) => flows.parse()?,
        None => 20_000,
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let run =
        Run { seed: 1, quick: false, trials: None, threads, flows: Some(flows), progress: &|_| {} };
    println!("{flows} concurrent flows, {} states, seed 1.\n", compare::STATES);
    println!("{}", Outcome::HEAD);
    for outcome in compare::table(flows, &run)? {
        println!("{}", outcome.line());
    }
    Ok(())
}
