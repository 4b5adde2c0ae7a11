//! The library's own detectors beside published ones: delay, false accusations and ROC curves.
//!
//! [`accuse`] compares [`sidon::decide`] with a fixed threshold and with Threshold Random Walk.
//! [`regular`] compares [`sidon::count::Periods`] with the timestamp score of RITA. The program
//! `examples/detection.rs` prints both as tables and charts.

pub mod accuse;
pub mod regular;
