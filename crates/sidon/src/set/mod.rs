//! Sets: whether a key was inserted.
//!
//! | | deletes | lines read per key | bits per key at 1 % |
//! |---|---|---|---|
//! | [`Bloom`] | no | k lines | 9.6 |
//! | [`Blocked`] | no | one line | 10 |
//! | [`Counting`] | yes | k lines | 38 |
//! | [`Variable`] | yes | k lines | 24 |
//! | [`Bh`] | yes | k lines | 32 |
//! | [`Multilayer`] | yes | k lines | 20 |
//! | [`DLeft`] | yes | 2 to 4 lines | 12 to 19 |
//! | [`Backyard`] | yes | one line, rarely more | 22 |
//! | [`Elastic`] | yes | 2 to 4 lines | one more than `DLeft` |
//!
//! [`AnySet`] is any of them except `Elastic`, as [`plan::set`](crate::plan::set) chooses.

mod any;
pub mod backyard;
pub mod bh;
pub mod blocked;
pub mod bloom;
mod cells;
pub mod counting;
pub mod dleft;
pub mod elastic;
mod filter;
pub mod increments;
pub mod multilayer;
mod operations;
pub mod variable;

pub use any::AnySet;
pub use backyard::Backyard;
pub use bh::{Bh, Decode};
pub use blocked::Blocked;
pub use bloom::Bloom;
pub(crate) use cells::{increment_code, mapping::LINES_MAX};
pub use cells::{mapping::Spread, overflow::Overflow};
pub use counting::Counting;
pub use dleft::{DLeft, Moves};
pub use elastic::Elastic;
pub use filter::{Filter, Removes};
pub use increments::Increments;
pub use multilayer::Multilayer;
pub use operations::{Set, Stats};
pub use variable::Variable;

use crate::Refused;

/// Refuses a merge of two structures that differ in `field`.
pub(crate) fn same(field: &'static str, equal: bool) -> Result<(), Refused> {
    if equal { Ok(()) } else { Err(Refused::Mismatch { field }) }
}

/// The sum of two numbers of copies, or a refusal if it cannot be counted. Only a saved
/// file can claim such a number. A number that stopped at its ceiling would no longer agree with the cells.
#[inline(always)]
fn sum_of_copies(stored: u64, more: u64) -> Result<u64, Refused> {
    stored.checked_add(more).ok_or(Refused::Overflow { ceiling: u64::MAX })
}

/// Sets in `own` every bit that is set in `other`. Both have the same length.
fn unite(own: &mut [u8], other: &[u8]) {
    for (own, other) in own.iter_mut().zip(other) {
        *own |= other;
    }
}
