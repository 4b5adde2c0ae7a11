//! Checks of requests, and headers that restrict the browser.
//!
//! A page of another site can make a browser send requests to this server. If that site points its
//! own name to this address (DNS rebinding), the page can even read the responses. So the `Host` of
//! a request must be an address, `localhost` or a name of `--host`. No request changes any state.

use super::{
    http::{Refused, Request},
    token::Token,
};
use std::{
    hint::black_box,
    net::{Ipv4Addr, Ipv6Addr},
};

/// Headers of every response: the page may run its own script only and send requests to this server
/// only.
pub(super) const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// The conditions on a request.
#[derive(Clone)]
pub(super) struct Guard {
    token: Option<Token>,
    names: Vec<String>,
}

impl Guard {
    pub(super) fn new(token: Option<Token>, names: &[String]) -> Self {
        let names = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Guard { token, names }
    }

    /// Refuses a request that names another host.
    pub(super) fn check(&self, request: &Request) -> Result<(), Refused> {
        // If the target names a host, the parser has compared it with the `Host` line.
        if !self.is_host(&request.host) {
            let message =
                "name this server by its address, by localhost, or by a name given with --host";
            return Err(Refused { status: 421, code: "wrong_host", message });
        }
        Ok(())
    }

    /// Whether the `Host` of a request is this server.
    fn is_host(&self, host: &str) -> bool {
        let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, port)) if name.parse::<Ipv6Addr>().is_ok() => ("localhost", port),
            Some(_) => return false,
            None => host.split_at(host.find(':').unwrap_or(host.len())),
        };
        let is_number = |port: &str| {
            port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok()
        };
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_number) {
            return false;
        }
        let name = name.to_ascii_lowercase();
        name == "localhost" || name.parse::<Ipv4Addr>().is_ok() || self.names.contains(&name)
    }

    /// Whether the `Authorization` header has the token. Always true for a server without a token.
    /// The word `Bearer` may be in any case.
    pub(super) fn may_ask(&self, authorization: Option<&str>) -> bool {
        let Some(token) = &self.token else { return true };
        let given = authorization.and_then(|header| header.split_once(' '));
        let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        given.is_some_and(|(_, given)| same(given.trim_start().as_bytes(), token.as_bytes()))
    }
}

/// Whether a text is the token, in a time that depends on the length of the text alone.
fn same(given: &[u8], token: &[u8]) -> bool {
    let differ = u8::from(given.len() != token.len());
    let pairs = given.iter().zip(token.iter().cycle());
    pairs.fold(differ, |differ, (a, b)| black_box(differ | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_allowed_names_are_this_server() {
        let guard = Guard::new(None, &["Sidon.example".to_owned()]);
        for host in [
            "localhost",
            "LOCALHOST:7700",
            "127.0.0.1:7700",
            "192.0.2.7",
            "[::1]:7700",
            "[::1]",
            "sidon.example:80",
            "localhost:65535",
        ] {
            assert!(guard.is_host(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:7700",
            "127.0.0.1.evil.example",
            "localhost:x",
            "::1",
            "[::1",
            "[evil.example]",
            "[::1]evil",
            "sidon.example.",
            "localhost:",
            "localhost:+80",
            "localhost:-1",
            "localhost:65536",
            "localhost:80:80",
            "localhost@evil.example",
            "user@localhost",
            "user:80@localhost",
            "127.0.0.1 ",
            "127.1",
            "0x7f000001",
            "[127.0.0.1]",
            "[::1%25lo]",
            "[::1]:",
            "[]",
        ] {
            assert!(!guard.is_host(host), "{host}");
        }
    }

    #[test]
    fn a_token_is_asked_for_if_there_is_one() {
        let open = Guard::new(None, &[]);
        assert!(open.may_ask(None) && open.may_ask(Some("Bearer x")));
        let closed = Guard::new(Some(Token::new("secret").unwrap()), &[]);
        for scheme in ["Bearer", "bearer", "BEARER", "BeArEr "] {
            assert!(closed.may_ask(Some(&format!("{scheme} secret"))));
        }
        for header in [
            "",
            "secret",
            "Bearer",
            "Bearer ",
            "Bearersecret",
            "Basic secret",
            "Bearer secre",
            "Bearer secreT",
            "Bearer secrets",
            "Bearer secretsecret",
        ] {
            assert!(!closed.may_ask(Some(header)), "{header}");
        }
        assert!(!closed.may_ask(None));
    }
}
