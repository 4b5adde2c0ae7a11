//! Frame filters: expressions in the language of tcpdump.
//!
//! The language and its meaning are libpcap's, for IP traffic:
//! - `and` and `or` bind equally strongly, from left to right.
//! - `port 80 or 443` repeats the qualifiers.
//! - `host` also matches ARP.
//! - Port tests do not match later fragments.
//! - A test that needs bytes beyond the capture rejects the frame.
//! - Tests with `[ ]` match TCP and UDP only over IPv4.
//!
//! `scripts/filter-against-tcpdump` compares the two on many captures.
//!
//! The VLAN rule of libpcap holds, too. Without `vlan`, tests do not match the headers after a VLAN
//! tag. After `vlan`, every test to the right skips one more tag. People stumble over this rule, so
//! a frame that fails only because of its tags gives [`Verdict::BehindTag`].
//!
//! ```
//! use sidon_traffic::Filter;
//!
//! let filter: Filter = "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn and not net 10/8".parse()?;
//! let why = "tcp prot 80".parse::<Filter>().unwrap_err();
//! assert_eq!(why.column(), 4);
//! assert!(why.to_string().ends_with("tcp prot 80\n    ^^^^"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod eval;
mod expr;
mod lex;
mod number;
mod parse;
mod words;

use crate::{
    LinkType,
    excerpt::excerpt,
    packet::{be16, is_vlan},
    source::Frame,
    work::step,
};
use expr::Expr;
use std::{fmt, str::FromStr};

/// A test of frames. The default accepts every frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    text: String,
    /// `None` accepts every frame.
    expr: Option<Expr>,
    /// Whether the expression contains `vlan`.
    speaks_of_vlan: bool,
}

/// The result of a filter on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The frame matches.
    Match,
    /// The frame does not match.
    NoMatch,
    /// The frame does not match, but would without its VLAN tags: the expression lacks a `vlan`.
    BehindTag,
}

impl Filter {
    /// Tests a frame.
    #[inline]
    pub fn verdict(&self, frame: &Frame<'_>) -> Verdict {
        let Some(expr) = &self.expr else { return Verdict::Match };
        if eval::holds(expr, frame, 0) {
            return Verdict::Match;
        }
        if !self.speaks_of_vlan && frame.link == LinkType::ETHERNET {
            let tags = tags(frame.bytes);
            if tags > 0 && eval::holds(expr, frame, tags) {
                return Verdict::BehindTag;
            }
        }
        Verdict::NoMatch
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The VLAN tags of an Ethernet frame, as far as they are captured.
#[inline]
fn tags(bytes: &[u8]) -> usize {
    let mut tags = 0;
    while be16(bytes, 12 + 4 * tags).is_some_and(is_vlan) {
        step();
        tags += 1;
    }
    tags
}

impl FromStr for Filter {
    type Err = NotAFilter;

    /// Parses an expression. The empty text accepts every frame.
    fn from_str(text: &str) -> Result<Self, NotAFilter> {
        let (expr, speaks_of_vlan) = parse::parse(text)?;
        Ok(Filter { text: text.to_owned(), expr, speaks_of_vlan })
    }
}

/// The text of the expression.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.text)
    }
}

/// Why a text is not a filter, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAFilter {
    text: String,
    /// The characters at fault, counted from 0.
    columns: std::ops::Range<usize>,
    message: String,
}

impl NotAFilter {
    /// The first character at fault, counted from 0.
    pub fn column(&self) -> usize {
        self.columns.start
    }

    /// What is wrong there.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The message, the part of the expression around the fault, and carets under the fault.
impl fmt::Display for NotAFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.message, excerpt(&self.text, self.columns.clone()))
    }
}

impl std::error::Error for NotAFilter {}

#[cfg(test)]
mod tests;
