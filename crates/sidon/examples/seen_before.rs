//! "Seen this token before?": each token is accepted once, and forgotten when it expires.
//!
//!     cargo run -p sidon --example seen_before
//!
//! A set with deletes stores the tokens in two bytes each. A used token is never accepted again.
//! A new token is rejected by mistake with the probability that `certainty` states.

use sidon::{
    Digest, Key, Seed,
    key::Hasher,
    plan::{self, Target},
    set::DLeft,
};
use std::{collections::VecDeque, error::Error};

#[derive(Clone, Copy)]
struct Token {
    user: u32,
    nonce: u64,
}

/// A token is hashed as the pair of its fields.
impl Key for Token {
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
        (self.user, self.nonce).digest_with(hasher)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let shape = plan::dleft::shape(Target::new(50_000, 0.001), 0)?;
    let mut used = DLeft::new(shape, Seed::random()?)?;
    // The accepted tokens, oldest first. A real program reads them from its log when they expire.
    let mut log = VecDeque::new();

    let (mut accepted, mut rejected) = (0, 0);
    for nonce in 0..200_000 {
        let token = Token { user: nonce as u32 % 1_000, nonce };
        // One token in ten is sent twice.
        for token in [token].iter().cycle().take(if nonce % 10 == 0 { 2 } else { 1 }) {
            if used.contains(token) {
                rejected += 1;
            } else {
                accepted += 1;
                // Remove only tokens that were inserted: another one could take along a stored token.
                if log.len() == 50_000 {
                    used.remove(&log.pop_front().expect("the log is not empty"))?;
                }
                used.insert(token)?;
                log.push_back(*token);
            }
        }
    }
    println!("accepted {accepted}, rejected {rejected}; 20000 tokens were sent twice");
    println!("{} tokens are stored in {} KiB", used.len(), used.memory_bytes() / 1024);
    println!("\"seen before\" is {}", used.certainty());
    Ok(())
}
