//! Checks of requests, and headers that restrict the browser.
//!
//! A page of another site can make a browser send requests to this server. If that site points its
//! own name to this address (DNS rebinding), the page can even read the responses. So the `Host` of
//! a request must be an address, `localhost` or a name of `--host`. No request changes any state.

use std::{hint::black_box, net::IpAddr};

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
    token: Option<String>,
    names: Vec<String>,
}

impl Guard {
    pub(super) fn new(token: Option<String>, names: &[String]) -> Self {
        let names = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Guard { token, names }
    }

    /// Whether the `Host` of a request is this server.
    pub(super) fn is_host(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            // An IPv6 address, with or without a port.
            Some(rest) => match rest.split_once(']') {
                Some((name, port)) if port.is_empty() || is_port(port.strip_prefix(':')) => name,
                _ => return false,
            },
            None => match host.split_once(':') {
                Some((name, port)) if is_port(Some(port)) => name,
                Some(_) => return false,
                None => host,
            },
        };
        let name = name.to_ascii_lowercase();
        name == "localhost" || name.parse::<IpAddr>().is_ok() || self.names.contains(&name)
    }

    /// Whether the `Authorization` header has the token. Always true for a server without a token.
    pub(super) fn may_ask(&self, authorization: Option<&[u8]>) -> bool {
        let Some(token) = &self.token else { return true };
        let given = authorization.and_then(|header| header.strip_prefix(b"Bearer "));
        given.is_some_and(|given| same(given, token.as_bytes()))
    }
}

fn is_port(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.parse::<u16>().is_ok())
}

/// Whether two texts are the same, in a time that depends on their lengths alone.
fn same(given: &[u8], token: &[u8]) -> bool {
    if given.len() != token.len() {
        return false;
    }
    let differ = given.iter().zip(token).fold(0, |differ, (a, b)| black_box(differ | (a ^ b)));
    differ == 0
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
        ] {
            assert!(!guard.is_host(host), "{host}");
        }
    }

    #[test]
    fn a_token_is_asked_for_if_there_is_one() {
        let open = Guard::new(None, &[]);
        assert!(open.may_ask(None) && open.may_ask(Some(b"Bearer x")));
        let closed = Guard::new(Some("secret".to_owned()), &[]);
        assert!(closed.may_ask(Some(b"Bearer secret")));
        for header in
            [&b""[..], b"secret", b"Bearer ", b"Bearer secre", b"Bearer secreT", b"Bearer secrets"]
        {
            assert!(!closed.may_ask(Some(header)));
        }
        assert!(!closed.may_ask(None));
    }
}
