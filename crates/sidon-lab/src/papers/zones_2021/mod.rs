//! 003: Bloom filters and Count-Min sketches with a false-positive-free zone.
//!
//! [`facts`] has the printed and the right values, [`figures`] the worked examples. [`zones`] checks the
//! theorems by covering every element. [`lengths`] has the tables, figure 9 and equations 3 and 4,
//! [`table_then_bloom`] has the alternative of section VII. [`counts`] has the sketches of figures 12 and 13, [`estimates`] the better estimates of section II. [`adaptive`] has the sets of section 8.D, [`charts`] the
//! figures.

pub mod adaptive;
pub mod charts;
pub mod counts;
pub mod estimates;
pub mod facts;
pub mod figures;
pub mod lengths;
pub mod table_then_bloom;
pub mod zones;

use crate::experiment::{Cost, Experiment, Paper};

/// The paper.
pub static PAPER: Paper = Paper {
    id: "003",
    short: "zones 2021",
    title: "Avoiding flow size overestimation in Count-Min sketch with Bloom filter constructions",
    source: "Rottenstreich, Reviriego, Porat, Muthukrishnan, IEEE TNSM 2021",
    experiments: &[
        Experiment {
            name: "003.figures",
            claims: &facts::FIGURES,
            cost: Cost::FORMULA,
            run: figures::figures,
        },
        Experiment {
            name: "003.zones",
            claims: &facts::ZONES,
            cost: Cost::FORMULA,
            run: zones::zones,
        },
        Experiment {
            name: "003.lengths",
            claims: &facts::LENGTHS,
            cost: Cost::FORMULA,
            run: lengths::lengths,
        },
        Experiment {
            name: "003.rates",
            claims: &facts::RATES,
            cost: Cost::FORMULA,
            run: lengths::rates,
        },
        Experiment {
            name: "003.thm5",
            claims: &facts::THEOREM_5,
            cost: Cost { full: 600, quick: 60, millis: 1 },
            run: counts::theorem_5,
        },
        Experiment {
            name: "003.fig12",
            claims: &facts::FIG_12,
            cost: Cost { full: 1800, quick: 200, millis: 1 },
            run: counts::figure_12,
        },
        Experiment {
            name: "003.fig13",
            claims: &facts::FIG_13,
            cost: Cost { full: 1800, quick: 60, millis: 50 },
            run: counts::figure_13,
        },
        Experiment {
            name: "003.estimates",
            claims: &estimates::ESTIMATES,
            cost: Cost { full: 400, quick: 40, millis: 10 },
            run: estimates::estimates,
        },
        Experiment {
            name: "003.adaptive",
            claims: &facts::ADAPTIVE,
            cost: Cost { full: 1024, quick: 4, millis: 350 },
            run: adaptive::adaptive,
        },
    ],
    figures: &charts::FIGURES,
};
