//! Formulas of the papers that no structure and no plan needs.
//!
//! The formulas by which tables are sized are in [`sidon::plan`].

pub mod bloom;
pub mod dleft;
pub mod increments;
pub mod sequences;
pub mod state;
pub mod zone;
