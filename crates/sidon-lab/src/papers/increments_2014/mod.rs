//! 004: the variable-increment counting Bloom filter, its tables I and II and figures 4 to 6.
//!
//! [`facts`] has what is printed and what is right; [`sequences`] what is enumerated; [`formulas`]
//! rates, sizes and overflow without sampling; [`simulations`] filters that are filled and asked;
//! [`charts`] the figures.
//! [`fractional`] is a filter with a number of hashes that is no integer.
//! [`layers`] measures table I's filters of several layers.

pub mod charts;
pub mod facts;
pub mod formulas;
pub mod fractional;
pub mod layers;
pub mod sequences;
pub mod simulations;

use crate::experiment::{Cost, Experiment, Paper};

/// The paper.
pub static PAPER: Paper = Paper {
    id: "004",
    short: "increments 2014",
    title: "The variable-increment counting Bloom filter",
    source: "Rottenstreich, Kanizo, Keslassy, INFOCOM 2012 and IEEE/ACM Transactions on Networking 2014",
    experiments: &[
        Experiment {
            name: "004.sequences",
            claims: &facts::SEQUENCES,
            cost: Cost::FORMULA,
            run: sequences::sequences,
        },
        Experiment {
            name: "004.examples",
            claims: &facts::EXAMPLES,
            cost: Cost::FORMULA,
            run: sequences::examples,
        },
        Experiment {
            name: "004.rates",
            claims: &facts::RATES,
            cost: Cost::FORMULA,
            run: formulas::rates,
        },
        Experiment {
            name: "004.memory",
            claims: &facts::MEMORY,
            cost: Cost::FORMULA,
            run: formulas::memory,
        },
        Experiment {
            name: "004.overflow",
            claims: &facts::OVERFLOW,
            cost: Cost::FORMULA,
            run: formulas::overflow,
        },
        Experiment {
            name: "004.figure5",
            claims: &facts::FIGURE_5,
            cost: Cost { full: 1500, quick: 40, millis: 60 },
            run: simulations::figure_5,
        },
        Experiment {
            name: "004.pinned",
            claims: &facts::PINNED,
            cost: Cost { full: 1500, quick: 60, millis: 1 },
            run: simulations::pinned,
        },
        Experiment {
            name: "004.layers",
            claims: &layers::LAYERS,
            cost: Cost { full: 400, quick: 60, millis: 40 },
            run: layers::layers,
        },
    ],
    figures: &charts::FIGURES,
};
