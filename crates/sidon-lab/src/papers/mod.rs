//! A file or folder a paper: its claims with their facts, and the experiments that check them.
//!
//! An experiment binds each of its claims to a name by an array pattern and makes one row of it. A
//! claim without a row, or a row without a claim, does not compile.

pub mod acsm_2006;
pub mod dleft_2006;
pub mod increments_2014;
pub mod zones_2021;

use crate::experiment::Paper;

/// Every paper, in the order of their ids.
pub static ALL: &[&Paper] = &[
    &acsm_2006::PAPER,
    &acsm_2006::PART_1,
    &dleft_2006::PAPER,
    &zones_2021::PAPER,
    &increments_2014::PAPER,
];
