//! The papers' tables and experiments, re-run: the printed, the right and the measured values.
//!
//! In the order one meets them:
//!
//! 1. [`claim`]: a number that a paper prints, with the right value and how close is close enough.
//! 2. [`papers`]: a file or folder a paper; its claims, and the experiments that check them on the public
//!    parts of [`sidon`].
//!    Formulas that only the papers need are in [`formulas`].
//! 3. [`trials`]: repeats of an experiment, side by side, the same for a seed on any number of
//!    threads.
//! 4. [`interval`]: where a measurement must fall, sized from the number of trials.
//! 5. [`row`]: a claim beside its measurement, and the verdict. A row can fail.
//! 6. [`report`]: rows as JSON and as a Markdown table; [`pages`]: all papers on one page, with
//!    errata.
//! 7. [`chart`]: axes and curves as SVG; [`figure`]: the papers' figures, drawn with it.
//! 8. [`detection`]: the detectors of the library beside published ones.
//!
//! ```
//! use sidon_lab::{Run, select};
//!
//! let chosen = select(&["002.bf".to_owned()])?;
//! let run = Run { seed: 1, quick: true, trials: None, threads: 1, flows: None, progress: &|_| {} };
//! let rows = chosen.run(&run)?;
//! assert!(rows.iter().all(|row| row.holds));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod chart;
pub mod claim;
pub mod detection;
pub mod experiment;
pub mod figure;
pub mod formulas;
pub mod interval;
pub mod pages;
pub mod papers;
pub mod report;
pub mod row;
pub mod svg;
pub mod trials;

pub use chart::Chart;
pub use claim::{Claim, Said, Tolerance, Value};
pub use experiment::{Chosen, Cost, Experiment, Paper, Unknown, select};
pub use figure::Figure;
pub use interval::Interval;
pub use row::Row;
pub use trials::Run;

/// The example of the README is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
