//! The thresholds as a commented file.

use super::{Allow, FIELDS, Floor, Thresholds};
use crate::monitor::incidents::KINDS;
use std::fmt::Write;

const HEAD: &str = "\
# Thresholds of sidon. A value that is left out keeps its default.

# The innocent hosts that may be accused per day of traffic, on average.
";

const ALLOW: &str = "
# Subjects that are not reported, such as your own scanners: a host or a network, and kinds of
# incidents or none for all. The report counts what it leaves out.
# allow = [\"192.0.2.7: address_scan, port_scan\", \"198.51.100.0/24\"]
";

const NETWORKS: &str = "
# Names of your own networks, which the report prints beside a subject.
# office = [\"10.0.0.0/8\", \"2001:db8::/32\"]
[networks]
";

impl Thresholds {
    /// A file in TOML with every value. [`parse`](Self::parse) reads it back.
    pub fn print(&self) -> String {
        let mut out = HEAD.to_owned();
        // Writing to a text does not fail.
        let _ = writeln!(out, "false_accusations = {}", decimal(self.false_accusations));
        out.push_str(ALLOW);
        if !self.allow.is_empty() {
            let rules: Vec<_> = self.allow.iter().map(Allow::to_string).collect();
            let _ = writeln!(out, "allow = [{}]", quoted(&rules));
        }
        out.push_str(NETWORKS);
        let mut names: Vec<&String> = Vec::new();
        for (name, _) in &self.networks {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let own = self.networks.iter().filter(|(known, _)| known == name);
            let own: Vec<_> = own.map(|(_, network)| network.to_string()).collect();
            let _ = writeln!(out, "{name} = [{}]", quoted(&own));
        }
        for kind in KINDS {
            let (floor, default) = (self.floor(kind), Floor::of(kind));
            let _ = writeln!(out, "\n[{kind}]\nenabled = {}", floor.enabled);
            for (name, about) in FIELDS {
                if default.field(name) != 0.0 {
                    let value = decimal(floor.field(name));
                    let text = format!("{name} = {value}");
                    let _ = writeln!(out, "{text:<28} # {about}");
                }
            }
        }
        out
    }
}

/// A number as short as it can be read back.
fn decimal(number: f64) -> String {
    format!("{number}")
}

fn quoted(texts: &[String]) -> String {
    texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ")
}
