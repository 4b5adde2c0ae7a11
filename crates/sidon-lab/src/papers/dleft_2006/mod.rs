//! 002: the d-left counting Bloom filter, its table 1 and the experiments of sections 4 and 5.
//!
//! [`facts`] has what is printed and what is right; [`formulas`] what needs no sampling;
//! [`churn`] one trial, in which keys leave and come; [`simulations`] the experiments made of it.
//! [`factors`] compares random factors with fixed ones.

pub mod charts;
pub mod churn;
pub mod factors;
pub mod facts;
pub mod formulas;
pub mod simulations;

use crate::experiment::{Cost, Experiment, Paper};

/// The paper.
pub static PAPER: Paper = Paper {
    id: "002",
    short: "d-left 2006",
    title: "An improved construction for counting Bloom filters",
    source: "Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, ESA 2006",
    experiments: &[
        Experiment {
            name: "002.bloom",
            claims: &facts::BLOOM,
            cost: Cost::FORMULA,
            run: formulas::bloom,
        },
        Experiment {
            name: "002.compare",
            claims: &facts::COMPARE,
            cost: Cost::FORMULA,
            run: formulas::compare,
        },
        Experiment {
            name: "002.example",
            claims: &facts::EXAMPLE,
            cost: Cost::FORMULA,
            run: formulas::example,
        },
        Experiment {
            name: "002.fluid",
            claims: &facts::FLUID,
            cost: Cost::FORMULA,
            run: formulas::fluid,
        },
        Experiment {
            name: "002.load6",
            claims: &facts::LOAD_6,
            cost: Cost { full: 3000, quick: 8, millis: 120 },
            run: simulations::load_6,
        },
        Experiment {
            name: "002.load6_5",
            claims: &facts::LOAD_6_5,
            cost: Cost { full: 3500, quick: 8, millis: 115 },
            run: simulations::load_6_5,
        },
        Experiment {
            name: "002.load6_5.printed",
            claims: &facts::LOAD_6_5_PRINTED,
            cost: Cost { full: 3500, quick: 8, millis: 115 },
            run: simulations::load_6_5_printed,
        },
        Experiment {
            name: "002.load6_75",
            claims: &facts::LOAD_6_75,
            cost: Cost { full: 2000, quick: 6, millis: 115 },
            run: simulations::load_6_75,
        },
        Experiment {
            name: "002.counting",
            claims: &facts::COUNTING,
            cost: Cost { full: 1500, quick: 3, millis: 200 },
            run: simulations::counting,
        },
        Experiment {
            name: "002.factors",
            claims: &factors::FACTORS,
            cost: Cost { full: 1000, quick: 40, millis: 25 },
            run: factors::factors,
        },
    ],
    figures: &charts::FIGURES,
};
