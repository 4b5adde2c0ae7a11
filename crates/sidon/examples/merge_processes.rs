//! Two processes count requests, a third one adds their sketches.
//!
//!     cargo run -p sidon --example merge_processes
//!
//! Sketches of one shape and one seed can be merged. The program starts itself twice as a worker.
//! A worker gets the seed on its standard input and writes its sketch to its standard output.

use sidon::{
    Seed,
    count::{Layout, Min, Update, min::Shape},
};
use std::{
    error::Error,
    io::{Read, Write, stdin, stdout},
    process::{Command, Stdio},
};

const SHAPE: Shape =
    Shape { rows: 4, columns: 2_000, width: 32, update: Update::Plain, layout: Layout::Rows };

/// Worker `part` counts the requests for 1,000 pages. Page 7 is ten times as popular.
fn work(part: u64) -> Result<(), Box<dyn Error>> {
    let mut seed = [0; 16];
    stdin().read_exact(&mut seed)?;
    let mut requests = Min::new(SHAPE, Seed(u128::from_le_bytes(seed)))?;
    for page in 0..1_000u64 {
        let amount = if page == 7 { 100 * part } else { 10 * part };
        requests.add(&format!("/page/{page}"), amount)?;
    }
    stdout().write_all(&requests.to_bytes())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(part) = std::env::args().nth(1) {
        return work(part.parse()?);
    }
    let seed = Seed::random()?;
    let mut all = Min::new(SHAPE, seed)?;
    for part in ["1", "2"] {
        let mut worker = Command::new(std::env::current_exe()?);
        let mut worker = worker.arg(part).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        worker.stdin.take().ok_or("no pipe")?.write_all(&seed.0.to_le_bytes())?;
        let image = worker.wait_with_output()?.stdout;
        let sketch = Min::from_bytes(&image, seed)?;
        println!("worker {part}: {} requests in {} bytes", sketch.total(), image.len());
        all.merge(&sketch)?;
    }
    println!("together: {} requests", all.total());
    println!("/page/7: {}", all.estimate("/page/7"));
    println!("the lower bounds are {}", all.certainty());
    Ok(())
}
