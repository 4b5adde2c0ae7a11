//! A folder a paper: its claims with their facts, and the experiments that check them.

pub mod dleft_2006;

use crate::experiment::Paper;

/// Every paper, in the order of their ids.
pub static ALL: &[&Paper] = &[&dleft_2006::PAPER];
