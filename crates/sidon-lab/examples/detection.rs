//! Compares the detectors of the library with published ones, as tables and charts.
//!
//!     cargo run --release -p sidon-lab --example detection [FOLDER]
//!     cargo run --release -p sidon-lab --example detection -- --budget
//!
//! Writes `delay.svg` and `periods.svg` into the folder. With `--budget`, a million innocent subjects with ten
//! thousand trials each are tested, about two minutes on two cores; the program fails if too many are accused.

use sidon::plan;
use sidon_lab::{
    Chart,
    chart::{Axis, Curve},
    detection::{
        accuse::{Delays, Detector, Sequential, WINDOW, Walk, Window, accusations, delays},
        regular::{Kind, area, roc, scores},
    },
};
use std::{error::Error, fs, path::Path};

/// The usual failure rate, and the trials per false accusation: eleven days at 1,000 per second.
const USUAL: f64 = 0.02;
const APART: u64 = 1_000_000_000;
const TIMES: [f64; 7] = [1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0];
const ATTACKS: u64 = 500;
const MOST: u64 = 50_000;
const PAIRS: u64 = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("--budget") {
        return budget();
    }
    let (delay, periods) = (delay()?, periods()?);
    if let Some(folder) = argument {
        fs::write(Path::new(&folder).join("delay.svg"), delay.svg())?;
        fs::write(Path::new(&folder).join("periods.svg"), periods.svg())?;
    }
    Ok(())
}

/// A million innocent subjects, each tested ten thousand times.
fn budget() -> Result<(), Box<dyn Error>> {
    let (subjects, trials) = (1_000_000, 10_000);
    let sequential = Sequential::new(USUAL, APART)?;
    let found = accusations(&sequential, USUAL, subjects, trials, 2);
    let allowed = (subjects * trials / APART) as f64;
    println!(
        "{found} of {subjects} innocent subjects accused in {trials} trials each; {allowed} allowed"
    );
    // The bound is one of the mean; six sigma of a Poisson number are added.
    if found as f64 > allowed + 6.0 * allowed.sqrt() {
        return Err("more false accusations than the budget allows".into());
    }
    Ok(())
}

/// Delays by the failure rate.
fn delay() -> Result<Chart, Box<dyn Error>> {
    let sequential = Sequential::new(USUAL, APART)?;
    let (window, walk) = (Window::new(USUAL, APART), Walk::new(USUAL, 5.0, APART));
    let fast = Walk::new(USUAL, 20.0, APART);
    println!(
        "Usual failure rate {USUAL}, one false accusation in {APART} trials, {ATTACKS} attacks per rate,"
    );
    println!(
        "given up after {MOST} trials. The threshold is {} of {WINDOW} trials.\n",
        window.limit()
    );
    println!(
        "| times the usual rate | planned, at most | sequential test | threshold | walk for 5 x | walk for 20 x |"
    );
    println!("|---|---|---|---|---|---|");
    let mut curves = vec![
        Curve::new("planned bound of the sequential test"),
        Curve::new("sequential test"),
        Curve::new(format!("threshold, {} of {WINDOW} trials", window.limit())),
        Curve::new("threshold random walk for 5 x"),
        Curve::new("threshold random walk for 20 x"),
    ];
    for times in TIMES {
        let rate = USUAL * times;
        let planned = plan::decide::delay(sequential.shape(), rate);
        let found = [
            measure(&sequential, rate),
            measure(&window, rate),
            measure(&walk, rate),
            measure(&fast, rate),
        ];
        let [a, b, c, d] = found.map(text);
        println!("| {times} | {planned:.0} | {a} | {b} | {c} | {d} |");
        curves[0].line.push((times, planned));
        for (curve, found) in curves[1..].iter_mut().zip(found) {
            // A mean without the attacks that were missed is no delay.
            if found.missed == 0.0 {
                curve.line.push((times, found.mean));
                curve.measured.push((times, found.mean));
            }
        }
    }
    println!();
    let apart = 100_000;
    println!("False accusations in 100,000,000 innocent trials, one in {apart} allowed (1000):");
    let found = [
        innocent(&Sequential::new(USUAL, apart)?),
        innocent(&Window::new(USUAL, apart)),
        innocent(&Walk::new(USUAL, 5.0, apart)),
        innocent(&Walk::new(USUAL, 20.0, apart)),
    ];
    println!(
        "sequential test {}, threshold {}, walk for 5 x {}, walk for 20 x {}\n",
        found[0], found[1], found[2], found[3]
    );
    Ok(Chart {
        title: format!("Trials until an attack is accused; usual failure rate {USUAL}"),
        x: Axis::log("failure rate, times the usual one"),
        y: Axis::log("trials, mean"),
        curves,
    })
}

fn measure(detector: &impl Detector, rate: f64) -> Delays {
    delays(detector, USUAL, rate, ATTACKS, MOST)
}

fn innocent<D: Detector + Sync>(detector: &D) -> u64 {
    accusations(detector, USUAL, 10_000, 10_000, 2)
}

fn text(found: Delays) -> String {
    if found.missed == 1.0 {
        return "never".to_owned();
    }
    let missed = found.missed * 100.0;
    if missed > 0.0 {
        format!("{:.0}, {missed:.0} % missed", found.mean)
    } else {
        format!("{:.0}", found.mean)
    }
}

/// ROC curves of regular pairs beside random ones.
fn periods() -> Result<Chart, Box<dyn Error>> {
    println!(
        "{PAIRS} pairs of each kind; area under the ROC curve beside random (Poisson) pairs.\n"
    );
    println!(
        "| kind | score after 20 contacts, mean | area | RITA, area | area after 8 contacts |"
    );
    println!("|---|---|---|---|---|");
    let [random, rita_random] = scores(Kind::Poisson, PAIRS, 20)?;
    let [early_random, _] = scores(Kind::Poisson, PAIRS, 8)?;
    let mut all: [Vec<f64>; 3] = Default::default();
    for kind in Kind::REGULAR.into_iter().chain(Kind::RANDOM) {
        let [ours, rita] = scores(kind, PAIRS, 20)?;
        let [early, _] = scores(kind, PAIRS, 8)?;
        let mean = ours.iter().sum::<f64>() / PAIRS as f64;
        let areas = [(&ours, &random), (&rita, &rita_random), (&early, &early_random)]
            .map(|(regular, random)| area(&roc(regular, random)));
        let [a, b, c] = areas;
        println!("| {} | {mean:.3} | {a:.4} | {b:.4} | {c:.4} |", kind.name());
        if Kind::REGULAR.contains(&kind) {
            all[0].extend(ours);
            all[1].extend(rita);
            all[2].extend(early);
        }
    }
    let curve = |name: &str, regular: &[f64], random: &[f64]| {
        // Points closer than a pixel are left out.
        let mut points = roc(regular, random);
        points.dedup_by(|next, kept| {
            next.0 < 1.0 && next.0 - kept.0 < 0.002 && next.1 - kept.1 < 0.002
        });
        Curve::new(name).line(points)
    };
    Ok(Chart {
        title: "Pairs with a period beside random ones, 1,000 of each kind".to_owned(),
        x: Axis::linear("share of random pairs that reach the score"),
        y: Axis::linear("share of regular pairs that reach it"),
        curves: vec![
            curve("RITA, 20 contacts, all gaps", &all[1], &rita_random),
            curve("count::Periods, 8 contacts", &all[2], &early_random),
            curve("count::Periods, 20 contacts", &all[0], &random),
        ],
    })
}
