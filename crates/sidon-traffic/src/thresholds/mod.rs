//! The thresholds of incidents, which the user may change: floors by kind, allowed subjects, own networks.
//!
//! Detectors read the [`Floor`] of their kind. A file in TOML changes single values of
//! [`Thresholds::default`]; [`print`](Thresholds::print) writes the defaults as such a file:
//! ```
//! use sidon_traffic::Thresholds;
//!
//! let text = r#"
//! false_accusations = 0.5
//! allow = ["192.0.2.7: address_scan, port_scan"]
//! [networks]
//! office = "10.0.0.0/8"
//! [syn_flood]
//! count = 200
//! "#;
//! let thresholds = Thresholds::parse(text)?;
//! assert_eq!(thresholds.floor("syn_flood").count, 200);
//! assert!(thresholds.allows("port_scan", &"192.0.2.7".parse()?).is_some());
//! assert_eq!(Thresholds::parse(&Thresholds::default().print())?, Thresholds::default());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod floor;
mod print;
mod read;

pub use floor::{FIELDS, Floor};
pub use read::ThresholdsError;

use crate::{
    Prefix,
    monitor::incidents::{KINDS, kinds},
};
use sidon::{Key, Seed};
use std::{fmt, str::FromStr};

/// The most networks with a name.
pub const NETWORKS_MAX: usize = 256;
/// The most rules about allowed subjects.
pub const ALLOW_MAX: usize = 64;

/// The thresholds of all kinds of incidents.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds {
    /// The innocent hosts that may be accused per day of traffic, on average. Detectors whose decision
    /// is a statistical test share this budget.
    pub false_accusations: f64,
    /// Subjects that are not reported, such as the user's own scanners; at most [`ALLOW_MAX`].
    pub allow: Vec<Allow>,
    /// The user's own networks, each with its name; at most [`NETWORKS_MAX`]. The longest prefix names
    /// a subject.
    pub networks: Vec<(String, Prefix)>,
    /// The least evidence of each kind, in the order of [`KINDS`].
    pub floors: [Floor; KINDS.len()],
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds {
            false_accusations: 0.1,
            allow: Vec::new(),
            networks: Vec::new(),
            floors: KINDS.map(Floor::of),
        }
    }
}

impl Thresholds {
    /// The least evidence of a kind. A kind that is not in [`KINDS`] is off.
    pub fn floor(&self, kind: &str) -> &Floor {
        kinds::number(kind).map_or(&Floor::OFF, |number| &self.floors[number])
    }

    /// The least evidence of a kind, to change it; `None` for a kind that is not in [`KINDS`].
    pub fn floor_mut(&mut self, kind: &str) -> Option<&mut Floor> {
        kinds::number(kind).map(|number| &mut self.floors[number])
    }

    /// The first rule that allows this subject of this kind.
    pub fn allows(&self, kind: &str, subject: &Prefix) -> Option<&Allow> {
        let is_of = |rule: &&Allow| {
            rule.network.covers(subject) && (rule.kinds.is_empty() || rule.kinds.contains(&kind))
        };
        self.allow.iter().find(is_of)
    }

    /// The name of the network of a subject.
    pub fn network(&self, subject: &Prefix) -> Option<&str> {
        let around = self.networks.iter().filter(|(_, network)| network.covers(subject));
        let nearest = around.max_by_key(|(_, network)| network.length());
        nearest.map(|(name, _)| name.as_str())
    }

    /// A number that stands for all values: engines of other thresholds have another one.
    pub(crate) fn digest(&self) -> u64 {
        self.print().as_bytes().digest(Seed(0)).0
    }
}

/// A rule: subjects in this network are not reported as these kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    /// The host or the network.
    pub network: Prefix,
    /// The kinds; empty means every kind.
    pub kinds: Vec<&'static str>,
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.network.fmt(f)?;
        for (number, kind) in self.kinds.iter().enumerate() {
            write!(f, "{}{kind}", if number == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}

impl FromStr for Allow {
    type Err = String;

    /// Reads `NETWORK` or `NETWORK: KIND, KIND`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let network = |text: &str| text.trim().parse::<Prefix>();
        if let Ok(network) = network(text) {
            return Ok(Allow { network, kinds: Vec::new() });
        }
        let (address, names) = text.rsplit_once(':').unwrap_or((text, ""));
        let network = network(address)?;
        let mut kinds = Vec::new();
        for name in names.split(',').map(str::trim) {
            match KINDS.into_iter().find(|kind| *kind == name) {
                Some(kind) if !kinds.contains(&kind) => kinds.push(kind),
                Some(kind) => return Err(format!("{kind} is named twice")),
                None => {
                    let name = crate::excerpt::word(name);
                    return Err(format!("{name:?} is not one of {}", KINDS.join(", ")));
                }
            }
        }
        Ok(Allow { network, kinds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_printed_and_apply_to_their_kinds() {
        for (text, printed) in [
            ("192.0.2.7", "192.0.2.7"),
            ("10.0.0.0/8:beacon", "10.0.0.0/8: beacon"),
            ("2001:db8::/32: port_scan,address_scan", "2001:db8::/32: port_scan, address_scan"),
            ("2001:db8::1:icmp_flood", "2001:db8::1: icmp_flood"),
        ] {
            assert_eq!(text.parse::<Allow>().unwrap().to_string(), printed);
        }
        for text in ["", "x", "10.0.0.1/8", "10.0.0.1:", "10.0.0.1:scan", "10.0.0.1:beacon,beacon"]
        {
            assert!(text.parse::<Allow>().is_err(), "{text}");
        }
        let rule = "10.0.0.0/8: port_scan".parse().unwrap();
        let thresholds = Thresholds { allow: vec![rule], ..Thresholds::default() };
        let allows = |kind, subject: &str| thresholds.allows(kind, &subject.parse().unwrap());
        assert!(allows("port_scan", "10.1.2.3").is_some());
        assert!(allows("port_scan", "10.1.0.0/16").is_some());
        assert!(allows("port_scan", "11.1.2.3").is_none());
        assert!(allows("port_scan", "0.0.0.0/0").is_none());
        assert!(allows("address_scan", "10.1.2.3").is_none());
    }

    #[test]
    fn the_longest_prefix_names_a_subject() {
        let network = |name: &str, text: &str| (name.to_owned(), text.parse().unwrap());
        let networks = vec![
            network("all", "10.0.0.0/8"),
            network("dmz", "10.1.0.0/16"),
            network("six", "::/0"),
        ];
        let thresholds = Thresholds { networks, ..Thresholds::default() };
        let name = |text: &str| thresholds.network(&text.parse().unwrap());
        assert_eq!(name("10.1.2.3"), Some("dmz"));
        assert_eq!(name("10.2.0.0/15"), Some("all"));
        assert_eq!(name("2001:db8::1"), Some("six"));
        assert_eq!(name("192.0.2.1"), None);
    }
}
