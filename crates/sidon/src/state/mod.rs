//! States: what is this flow in? A state, none, or an honest "don't know".
//!
//! | | a flow takes | a lookup reads | cells that err |
//! |---|---|---|---|
//! | [`Direct`] | `k` counters or bits | `k` cells a state | all states are asked for |
//! | [`Stateful`] | `k` cells of a state and a counter | `k` cells | where flows of two states meet |
//! | [`Fingerprint`] | one cell | 2 lines | where two flows share a fingerprint |
//!
//! All three are [`StateMap`](crate::ops::StateMap)s: `insert` a new flow, `modify` and `forget` one
//! that is in. A stream in which that is always true is well-behaved, and then no member is ever
//! answered a wrong state. Streams from a network are not: flows end without a word, packets come
//! for flows that never began. [`Clock`] clears flows that nothing touched for two periods, and
//! [`Machine`] defines what every event means in every state, and for a flow that is not there. With one
//! state they are sets that age: [`Recent`].
//!
//! The structures are those of Bonomi, Mitzenmacher, Panigrahy, Singh and Varghese, "Beyond Bloom
//! filters: from approximate membership checks to approximate state machines", SIGCOMM 2006.

pub mod audit;
pub mod clock;
pub mod direct;
pub mod fingerprint;
pub mod machine;
pub mod recent;
mod spots;
pub mod stateful;

pub use audit::Audit;
pub use clock::{Clock, Sweep};
pub use direct::Direct;
pub use fingerprint::Fingerprint;
pub use machine::{Event, Machine};
pub use recent::Recent;
pub use stateful::Stateful;

/// The number of a state: `0..states`.
pub type State = u16;

/// The most states that a structure can tell apart.
pub const STATES_MOST: u32 = 1 << 15;

use crate::{Infeasible, Refused};

/// The states of a structure are from 1 to [`STATES_MOST`].
fn check_states(states: u32) -> Result<(), Infeasible> {
    Infeasible::unless_within("states", states.into(), 1, STATES_MOST.into())
}

/// Refuses a state that the structure does not have.
#[inline(always)]
fn known(state: State, states: u32) -> Result<(), Refused> {
    if u32::from(state) < states {
        return Ok(());
    }
    Err(Refused::Outside { universe: states.into() })
}
