//! Refusals of the library in the words of the command line: the option, its value, and a value
//! that works.

use super::{Misuse, number::memory_text};
use anyhow::anyhow;
use sidon::Infeasible;
use sidon_traffic::threads::NoThread;

/// An error with the option that must change, which is a [`Misuse`]. `option` maps the library's name
/// of a parameter to an option.
pub(crate) fn refusal(
    why: Infeasible,
    option: impl Fn(&str) -> Option<&'static str>,
) -> anyhow::Error {
    let Some(option) = why.name().and_then(option) else { return why.into() };
    match why {
        Infeasible::OutOfRange { got, least, most, .. } => {
            let text = |value: u64| match option {
                "--memory" => memory_text(value),
                _ => whole(value),
            };
            if got < least {
                too_small(option, &text(got), &text(least), least as f64 / got as f64)
            } else {
                too_large(option, &text(got), &text(most), got as f64 / most as f64)
            }
        }
        Infeasible::Rate { got, most, .. } if got >= most && most == 1.0 => {
            // The library refuses a share of 1, too.
            misuse(format!("{option} {} is too large; type a number below 1", number(got)))
        }
        Infeasible::Rate { got, least, most, .. } => {
            let (least, most) = (ceil(least), floor(most));
            let [got_text, least_text, most_text] = [got, least, most].map(number);
            if got < least {
                too_small(option, &got_text, &least_text, least / got)
            } else if got > most {
                too_large(option, &got_text, &most_text, got / most)
            } else {
                misuse(format!(
                    "{option} {got} is not a number; type one from {least_text} to {most_text}"
                ))
            }
        }
        // The library's message, with the option in place of the parameter.
        why => {
            let text = why.to_string();
            let rest = why.name().and_then(|name| text.strip_prefix(name)).unwrap_or(&text);
            misuse(format!("{option}{rest}"))
        }
    }
}

/// A thread that the system refused.
pub(crate) fn thread_refusal(why: NoThread) -> anyhow::Error {
    anyhow!(
        "{why}; type a smaller --threads or a smaller --memory, or allow this process more memory and \
         threads (ulimit -v, ulimit -u)"
    )
}

fn too_small(option: &str, got: &str, least: &str, factor: f64) -> anyhow::Error {
    let times = times(factor, "as much");
    misuse(format!("{option} {got} is too small; type {option} {least} or more{times}"))
}

fn too_large(option: &str, got: &str, most: &str, factor: f64) -> anyhow::Error {
    let times = times(factor, "less");
    misuse(format!("{option} {got} is too large; type {option} {most} or less{times}"))
}

fn misuse(text: String) -> anyhow::Error {
    Misuse(text).into()
}

/// An engine that cannot be built.
pub(crate) fn engine_refusal(why: Infeasible) -> anyhow::Error {
    match why {
        Infeasible::OutOfRange { name: "machines", got, most, .. } => misuse(format!(
            "{got} state machines are too many; give --machine at most {most} times"
        )),
        Infeasible::OutOfRange { name: "subnets", got, most, .. } => {
            misuse(format!("{got} subnets are too many; give --subnet at most {most} times"))
        }
        Infeasible::OutOfRange { name: "memory", .. } => refusal(why, |_| Some("--memory")),
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

/// A whole number as a user types it: all its digits, or `1e19` from 10^15 on if that is as exact.
fn whole(number: u64) -> String {
    let (digits, exponent) = (number.to_string(), format!("{number:e}"));
    if digits.len() > 15 && exponent.len() < digits.len() { exponent } else { digits }
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
            let why = Infeasible::Rate { name: "false_positives", got, least, most };
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
        let other = Infeasible::OutOfRange { name: "x", got: 3, least: 1, most: 2 };
        assert_eq!(refusal(other.clone(), |_| None).to_string(), other.to_string());
        let many = Infeasible::OutOfRange { name: "keys", got: 1 << 60, least: 1, most: 1 << 59 };
        assert_eq!(
            refusal(many, |_| Some("--keys")).to_string(),
            "--keys 1152921504606846976 is too large; type --keys 576460752303423488 or less, 2 \
             times less"
        );
        let (name, most) = ("keys", 1 << 60);
        let one_more = Infeasible::OutOfRange { name, got: most + 1, least: 1, most };
        assert_eq!(
            refusal(one_more, |_| Some("--keys")).to_string(),
            "--keys 1152921504606846977 is too large; type --keys 1152921504606846976 or less"
        );
        let odd = Infeasible::NotAMultiple { name: "cells", got: 100, of: 64 };
        assert_eq!(
            refusal(odd, |_| Some("--cells")).to_string(),
            "--cells is 100, and must be a multiple of 64, such as 128"
        );
    }

    #[test]
    fn whole_numbers_are_printed_exactly() {
        for (number, text) in [
            (1_000_000, "1000000"),
            (10_000_000_000_000_000_000, "1e19"),
            (1_200_000_000_000_000, "1.2e15"),
            (1 << 60, "1152921504606846976"),
            (u64::MAX, "18446744073709551615"),
        ] {
            assert_eq!(whole(number), text);
        }
    }

    #[test]
    fn memory_is_typed_with_its_unit() {
        let (got, least) = (102_400, 262_144);
        let why = Infeasible::OutOfRange { name: "memory", got, least, most: u64::MAX };
        assert_eq!(
            engine_refusal(why).to_string(),
            "--memory 100KiB is too small; type --memory 256KiB or more, 2.56 times as much"
        );
    }
}
