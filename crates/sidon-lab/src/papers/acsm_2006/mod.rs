//! 000 and 001: approximate state machines for flows, in two parts.
//!
//! [`facts`] has what is printed and what is right; [`examples`] the four figures; [`formulas`] what
//! needs no sampling; [`simulations`] the rates; [`compare`] the three structures on one stream at
//! equal memory; [`charts`] what is drawn.

pub mod charts;
pub mod compare;
pub mod examples;
pub mod facts;
pub mod formulas;
pub mod simulations;

use crate::experiment::{Cost, Experiment, Paper};

/// The paper from section 3.3 on.
pub static PAPER: Paper = Paper {
    id: "000",
    short: "ACSM 2006",
    title: "Beyond Bloom filters: from approximate membership checks to approximate state machines",
    source: "Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, SIGCOMM 2006",
    experiments: &[
        Experiment {
            name: "000.figures",
            claims: &facts::FIGURES_3_4,
            cost: Cost::FORMULA,
            run: examples::figures_3_4,
        },
        Experiment {
            name: "000.formulas",
            claims: &facts::FORMULAS_000,
            cost: Cost::FORMULA,
            run: formulas::of_000,
        },
        Experiment {
            name: "000.stateful",
            claims: &facts::STATEFUL,
            cost: Cost { full: 2250, quick: 100, millis: 4 },
            run: simulations::stateful,
        },
        Experiment {
            name: "000.never_wrong",
            claims: &facts::NEVER_WRONG,
            cost: Cost { full: 10, quick: 1, millis: 100 },
            run: simulations::never_wrong,
        },
        Experiment {
            name: "000.fingerprint",
            claims: &facts::FINGERPRINT,
            cost: Cost { full: 180, quick: 18, millis: 30 },
            run: simulations::fingerprint,
        },
        Experiment {
            name: "000.compare",
            claims: &facts::COMPARE,
            cost: Cost { full: 1, quick: 1, millis: 20_000 },
            run: compare::best,
        },
    ],
    figures: &charts::OF_000,
};

/// The paper up to section 3.2.
pub static PART_1: Paper = Paper {
    id: "001",
    short: "ACSM 2006, 1",
    title: "Beyond Bloom filters: from approximate membership checks to approximate state machines",
    source: "Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, SIGCOMM 2006, sections 3.1 and 3.2",
    experiments: &[
        Experiment {
            name: "001.figures",
            claims: &facts::FIGURES_1_2,
            cost: Cost::FORMULA,
            run: examples::figures_1_2,
        },
        Experiment {
            name: "001.formulas",
            claims: &facts::FORMULAS_001,
            cost: Cost::FORMULA,
            run: formulas::of_001,
        },
        Experiment {
            name: "001.direct",
            claims: &facts::DIRECT,
            cost: Cost { full: 600, quick: 30, millis: 12 },
            run: simulations::direct,
        },
    ],
    figures: &charts::OF_001,
};
