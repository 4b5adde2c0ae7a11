//! Refusals of the library in the words of the command line: the option, its value, and a value
//! that works.

use super::number::memory_text;
use anyhow::anyhow;
use sidon::Infeasible;

/// An error with the option that must change. `option` maps the library's name of a parameter to
/// an option.
pub(crate) fn refusal(
    why: Infeasible,
    option: impl Fn(&str) -> Option<&'static str>,
) -> anyhow::Error {
    let Infeasible::Parameter { name, got, least, most } = why else { return why.into() };
    let Some(option) = option(name) else { return why.into() };
    let text = |value: f64| match option {
        "--memory" => memory_text(value as u64),
        _ => number(value),
    };
    if got < least {
        let least = ceil(least);
        let times = times(least / got, "as much");
        anyhow!("{option} {} is too small; type {option} {} or more{times}", text(got), text(least))
    } else if got >= most && most == 1.0 {
        // The library refuses a share of 1, too.
        anyhow!("{option} {} is too large; type a number below 1", text(got))
    } else if got > most {
        let most = floor(most);
        let times = times(got / most, "less");
        anyhow!("{option} {} is too large; type {option} {} or less{times}", text(got), text(most))
    } else {
        anyhow!(
            "{option} {got} is not a number; type one from {} to {}",
            text(ceil(least)),
            text(floor(most))
        )
    }
}

/// An engine that cannot be built.
pub(crate) fn engine_refusal(why: Infeasible) -> anyhow::Error {
    match why {
        Infeasible::Parameter { name: "machines", got, most, .. } => {
            anyhow!("{got} state machines are too many; give --machine at most {most} times")
        }
        Infeasible::Parameter { name: "subnets", got, most, .. } => {
            anyhow!("{got} subnets are too many; give --subnet at most {most} times")
        }
        Infeasible::Parameter { name: "memory", .. } => refusal(why, |_| Some("--memory")),
        why => anyhow!("--memory is too large: {why}; type a smaller --memory"),
    }
}

/// The factor by which the value must change, if it is above 1.
fn times(factor: f64, what: &str) -> String {
    match factor {
        factor if factor <= 1.0 || !factor.is_finite() => String::new(),
        factor if factor < 1e6 => {
            format!(", {} times {what}", (factor * 100.0 - 1e-6).ceil() / 100.0)
        }
        factor => format!(", {factor:.0e} times {what}"),
    }
}

/// A number as a user types it.
pub(crate) fn number(number: f64) -> String {
    match number.abs() {
        0.0 | 1e-4..1e15 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

/// The next number of at most four digits that is not smaller; whole numbers stay as they are.
fn ceil(number: f64) -> f64 {
    let (near, step) = short(number);
    if near < number { short(near + step).0 } else { near }
}

/// The next number of at most four digits that is not larger; whole numbers stay as they are.
fn floor(number: f64) -> f64 {
    let (near, step) = short(number);
    if near > number { short(near - step).0 } else { near }
}

/// The number in four digits, and the value of one in the last digit.
fn short(number: f64) -> (f64, f64) {
    if number.fract() == 0.0 {
        return (number, 0.0);
    }
    let text = format!("{number:.3e}");
    let exponent = text.split('e').nth(1).unwrap_or("0");
    let value = |text: &str| text.parse().unwrap_or(number);
    (value(&text), value(&format!("0.001e{exponent}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_option_and_a_value_that_works() {
        let refuse = |got, least, most| {
            let why = Infeasible::Parameter { name: "false_positives", got, least, most };
            refusal(why, |name| (name == "false_positives").then_some("--fpr")).to_string()
        };
        assert_eq!(
            refuse(1e-13, 1e-12, 1.0),
            "--fpr 1e-13 is too small; type --fpr 1e-12 or more, 10 times as much"
        );
        assert_eq!(refuse(0.0, 1e-12, 1.0), "--fpr 0 is too small; type --fpr 1e-12 or more");
        assert_eq!(refuse(-1.0, 0.0, 2.0), "--fpr -1 is too small; type --fpr 0 or more");
        assert_eq!(
            refuse(8.0, 1e-12, 2.0),
            "--fpr 8 is too large; type --fpr 2 or less, 4 times less"
        );
        assert_eq!(refuse(4.0, 1e-12, 1.0), "--fpr 4 is too large; type a number below 1");
        assert_eq!(refuse(1.0, 1e-12, 1.0), "--fpr 1 is too large; type a number below 1");
        assert_eq!(
            refuse(f64::NAN, 1e-12, 1.0),
            "--fpr NaN is not a number; type one from 1e-12 to 1"
        );
        // A limit with many digits is rounded to a value that is allowed.
        assert_eq!(
            refuse(1e-8, 8.673617379884035e-7, 1.0),
            "--fpr 1e-8 is too small; type --fpr 8.674e-7 or more, 86.74 times as much"
        );
        assert!(refuse(1e-300, 9.657e-15, 1.0).ends_with("or more, 1e286 times as much"));
        let other = Infeasible::Parameter { name: "x", got: 3.0, least: 1.0, most: 2.0 };
        assert_eq!(refusal(other.clone(), |_| None).to_string(), other.to_string());
    }

    #[test]
    fn memory_is_typed_with_its_unit() {
        let (got, least) = (102_400.0, 262_144.0);
        let why = Infeasible::Parameter { name: "memory", got, least, most: f64::MAX };
        assert_eq!(
            engine_refusal(why).to_string(),
            "--memory 100KiB is too small; type --memory 256KiB or more, 2.56 times as much"
        );
    }
}
