//! Saves a set and loads it again, with its seed in another file that only its owner can read.
//!
//!     cargo run -p sidon --example save_and_load
//!
//! The saved bytes contain a check value of the seed, not the seed. Keep the seed apart from them:
//! with both, an attacker can choose keys that collide.

use sidon::{
    Seed,
    plan::{self, Target},
    set::Blocked,
};
use std::{error::Error, fs, io::Write, path::Path};

/// Writes the seed to a new file of mode 0600.
fn save_seed(path: &Path, seed: Seed) -> Result<(), Box<dyn Error>> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    writeln!(options.open(path)?, "{:032x}", seed.0)?;
    Ok(())
}

fn load_seed(path: &Path) -> Result<Seed, Box<dyn Error>> {
    Ok(Seed(u128::from_str_radix(fs::read_to_string(path)?.trim(), 16)?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("sidon-save-and-load-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let (data, secret) = (folder.join("clients.sidon"), folder.join("seed"));

    // The first run of a program creates the seed and saves both.
    save_seed(&secret, Seed::random()?)?;
    let shape = plan::blocked::shape(Target::new(10_000, 0.01))?;
    let mut clients = Blocked::new(shape, load_seed(&secret)?)?;
    for client in 0..10_000 {
        clients.insert(&format!("client-{client}"))?;
    }
    fs::write(&data, clients.to_bytes())?;
    println!("saved {} keys in {} bytes", clients.len(), fs::metadata(&data)?.len());

    // A later run loads both.
    let loaded = Blocked::from_bytes(&fs::read(&data)?, load_seed(&secret)?)?;
    println!("loaded {} keys; equal: {}", loaded.len(), loaded == clients);
    println!("client-77: {}", loaded.contains("client-77"));
    println!("client-10000: {}", loaded.contains("client-10000"));
    println!("\"true\" is {}", loaded.certainty());

    // Another seed is detected, and so is a damaged file.
    let mut image = fs::read(&data)?;
    println!("another seed: {}", Blocked::from_bytes(&image, Seed(1)).expect_err("refused"));
    image[100] ^= 1;
    println!("damaged: {}", Blocked::from_bytes(&image, load_seed(&secret)?).expect_err("refused"));
    fs::remove_dir_all(&folder)?;
    Ok(())
}
