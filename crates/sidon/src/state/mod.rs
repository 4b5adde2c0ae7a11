//! State maps (maplets): a state for every flow, none, or "don't know".
//!
//! | | a flow takes | a lookup reads | errors come from |
//! |---|---|---|---|
//! | [`Direct`] | `k` counters or bits | `k` cells per state | pairs whose cells are all in use by others |
//! | [`Stateful`] | `k` cells of a state and a counter | `k` cells | cells with flows of two states |
//! | [`Fingerprint`] | one cell | 2 lines | flows that share a fingerprint |
//!
//! A map of this kind is called a *maplet* in the literature: it stores a value for every key
//! without the key. All three are a [`Map`]. A well-behaved caller
//! inserts flows that are not stored, and modifies and forgets flows that are stored. Then no
//! answer about a stored flow is a wrong state.
//!
//! Network traffic is not well-behaved: flows end silently, and packets arrive for flows that never
//! started. [`Clock`] clears flows that nothing touched for two periods. [`Machine`] defines the
//! action of every event in every state, and for flows that are absent or unknown.
//!
//! With one state, a map under a [`Clock`] is a set whose keys expire: see [`Map::see`] and
//! [`Map::contains`].
//!
//! The structures are those of Bonomi, Mitzenmacher, Panigrahy, Singh and Varghese, "Beyond Bloom
//! filters: from approximate membership checks to approximate state machines", SIGCOMM 2006. The
//! word maplet is from Bender, Conway, Farach-Colton, Johnson and Pandey, "Time to replace your
//! filter: how maplets simplify system design", 2025.

pub(crate) mod audit;
mod cell_set;
mod cells;
pub mod clock;
pub mod direct;
pub mod fingerprint;
pub mod machine;
mod map;
pub mod stateful;

pub use cells::Cells;
pub use clock::Clock;
#[doc(hidden)]
pub use clock::Sweep;
pub use direct::Direct;
pub use fingerprint::Fingerprint;
pub use machine::{Faulty, Machine, Rule};
pub use map::{Map, Next};
pub use stateful::Stateful;

/// The number of a state: `0..states`.
pub type State = u16;

/// The most states of a structure.
pub(crate) const STATES_MAX: u32 = 1 << 15;

use crate::{Infeasible, Refused, set::Stats};

/// Checks that the number of states is 1 to [`STATES_MAX`].
fn check_states(states: u32) -> Result<(), Infeasible> {
    Infeasible::unless_within("states", states.into(), 1, STATES_MAX.into())
}

/// Refuses a state number that the structure does not have.
#[inline(always)]
fn known(state: State, states: u32) -> Result<(), Refused> {
    if u32::from(state) < states {
        return Ok(());
    }
    Err(Refused::Outside { universe: states.into() })
}
