//! Sets: is this key one of them?
//!
//! | | keys can leave | reads a key | bits a key at 1 % |
//! |---|---|---|---|
//! | [`Bloom`] | no | k lines | 9.6 |
//! | [`Blocked`] | no | one line | about 11 |
//! | [`Counting`] | yes | k lines | 38 |
//! | [`DLeft`] | yes | 2 lines | 11 to 18 |

pub(crate) mod batch;
pub mod blocked;
pub mod bloom;
pub mod counting;
pub mod dleft;
mod lines;
mod mapping;
mod table;

pub use blocked::Blocked;
pub use bloom::Bloom;
pub use counting::{Counting, Overflow};
pub use dleft::{DLeft, Moves};
pub use mapping::{LINES_MOST, Spread};

use crate::Refused;

/// A merge goes on only if the two agree in this field.
pub(crate) fn same(field: &'static str, equal: bool) -> Result<(), Refused> {
    if equal { Ok(()) } else { Err(Refused::Mismatch { field }) }
}

/// Every bit of `other` into `own`, which is as long.
fn unite(own: &mut [u8], other: &[u8]) {
    for (own, other) in own.iter_mut().zip(other) {
        *own |= other;
    }
}
