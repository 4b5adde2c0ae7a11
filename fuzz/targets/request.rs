//! HTTP requests: found in the bytes, parsed, and checked as `sidon serve` does.
#![no_main]
#![allow(dead_code)] // the modules of the server have more than is used here

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sidon-cli/src/args"]
mod args {
    mod secret;
    pub(crate) use secret::Secret;
}

#[path = "../../crates/sidon-cli/src/serve"]
mod serve {
    mod guard;
    mod http;
    mod token;

    use guard::Guard;
    use http::{Response, head, parse};
    use std::sync::LazyLock;
    use token::Token;

    static GUARDS: LazyLock<[Guard; 2]> = LazyLock::new(|| {
        let names = ["sidon.example".to_owned()];
        let token = Token::of(b"secret").expect("a token");
        [Guard::new(None, &names), Guard::new(Some(token), &names)]
    });

    /// A head is found at the same place however the bytes arrive. An accepted request names one
    /// host, has no transfer coding and a target that is a path.
    pub(super) fn take(bytes: &[u8]) {
        let at_once = head(bytes, 0);
        let (mut searched, mut step) = (0, 1);
        let mut in_pieces = Ok(None);
        while searched < bytes.len() && in_pieces == Ok(None) {
            let length = bytes.len().min(searched + step);
            in_pieces = head(&bytes[..length], searched);
            (searched, step) = (length, step * 2);
        }
        // In pieces, a head may be found before a later error.
        assert!(in_pieces == at_once || at_once.is_err());
        let Ok(Some(end)) = at_once else { return };
        let Ok(request) = parse(&bytes[..end]) else { return };
        let lines = || bytes[..end].split(|&byte| byte == b'\n');
        let starts = |line: &[u8], name: &str| {
            line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        };
        let with = |name: &str| lines().filter(|line| starts(line, name)).count();
        assert_eq!((with("host:"), with("transfer-encoding:")), (1, 0));
        assert!(request.path.starts_with('/') && !request.path.contains(['#', ' ', '\r', '\n']));
        let [open, closed] = &*GUARDS;
        let authorization = request.authorization.as_deref();
        assert!(open.may_ask(authorization));
        if closed.may_ask(authorization) {
            assert!(authorization.is_some_and(|header| header.ends_with("secret")));
        }
        if open.check(&request).is_ok() {
            let host = request.host.to_ascii_lowercase();
            assert!(!host.is_empty() && !host.contains(['@', '/', ' ']), "{host}");
        }
        assert!(Response::new("text/plain", "").head(request.close).ends_with("\r\n\r\n"));
    }
}

fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| serve::take(bytes));

fn seeds() -> Vec<Vec<u8>> {
    [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "HEAD /api/v1/query?host=10.0.0.1&top=3 HTTP/1.1\r\nhost: 127.0.0.1:7700\r\n\
         Authorization: Bearer secret\r\nAccept: text/html\r\nConnection: close\r\n\r\n",
        "GET http://[::1]:7700/metrics HTTP/1.0\r\nHost: [::1]:7700\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: sidon.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
