//! HTTP/1.1 requests without bodies, and their responses: text in, text out, no sockets.
//!
//! The server answers GET and HEAD, so it needs a small part of HTTP and reads that part strictly.
//! It refuses a request that another program could read differently: one with two `Host` lines, two
//! lengths, folded lines, lines without a carriage return, or a target that names another host.
//! After a refusal the connection closes, so no byte is read as a second request by mistake.
//! ```text
//! bytes --head--> end of the head, or not yet, or refused --parse--> Request, or Refused
//! ```
//! Work is linear: [`head`] starts where the last search ended, and [`parse`] runs once per request.

use std::{
    fmt::Write,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// The most bytes of a head: request line and header lines.
pub(super) const HEAD: usize = 16 << 10;
/// The most bytes of a target: path and query.
const TARGET: usize = 4 << 10;
/// The most header lines.
const LINES: usize = 100;

/// A method, as far as the server tells methods apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    /// Any other method, which the server does not implement.
    Other,
}

/// The parts of a request that the server uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    /// The text after `?`; empty without one.
    pub(super) query: String,
    /// The one `Host` line.
    pub(super) host: String,
    /// The authority of a target in absolute form, `http://AUTHORITY/PATH`.
    pub(super) authority: Option<String>,
    pub(super) authorization: Option<String>,
    pub(super) accept: String,
    /// Whether a body follows, which the server does not read.
    pub(super) body: bool,
    /// Whether the connection closes after the response.
    pub(super) close: bool,
}

/// Why a request cannot be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) message: &'static str,
}

const fn bad(message: &'static str) -> Refused {
    Refused { status: 400, code: "bad_request", message }
}

/// The end of the head in these bytes; `None` if the head is not whole. `searched` is the number of bytes that an
/// earlier call searched.
pub(super) fn head(bytes: &[u8], searched: usize) -> Result<Option<usize>, Refused> {
    for at in searched..bytes.len().min(HEAD) {
        if bytes[at] != b'\n' {
            continue;
        }
        if at == 0 || bytes[at - 1] != b'\r' {
            return Err(bad("a line of the request ends without a carriage return"));
        }
        if at >= 3 && &bytes[at - 3..at] == b"\r\n\r" {
            return Ok(Some(at + 1));
        }
        if at == 1 {
            return Err(bad("the request starts with an empty line"));
        }
    }
    if bytes.len() >= HEAD {
        let message = "the request line and the header lines have more than 16 KiB";
        return Err(Refused { status: 431, code: "too_large", message });
    }
    Ok(None)
}

/// Reads a head that [`head`] found.
pub(super) fn parse(head: &[u8]) -> Result<Request, Refused> {
    // Header values may hold other bytes, but no value that the server reads does.
    let text = String::from_utf8_lossy(head);
    let mut lines = text.strip_suffix("\r\n\r\n").unwrap_or(&text).split("\r\n");
    let (method, target, minor) = request_line(lines.next().unwrap_or_default())?;
    let (mut host, mut length, mut authorization, mut accept) = (None, None, None, String::new());
    let mut close = minor == 0;
    for (number, line) in lines.enumerate() {
        if number >= LINES {
            let message = "the request has more than 100 header lines";
            return Err(Refused { status: 431, code: "too_large", message });
        }
        let (name, value) = header_line(line)?;
        let twice = match name.as_str() {
            "host" => host.replace(value).is_some(),
            "content-length" => length.replace(value).is_some(),
            "authorization" => authorization.replace(value).is_some(),
            "transfer-encoding" => return Err(bad("this server takes no body; send none")),
            "accept" => {
                accept = value.to_owned();
                false
            }
            "connection" => {
                let mut options = value.split(',').map(str::trim);
                close |= options.any(|option| option.eq_ignore_ascii_case("close"));
                false
            }
            _ => false,
        };
        if twice {
            return Err(bad("a header that may come once comes twice"));
        }
    }
    let host = host.ok_or(bad("the request has no Host header"))?.to_owned();
    let body = match length {
        None => false,
        Some(digits) if !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()) => {
            digits.bytes().any(|digit| digit != b'0')
        }
        Some(_) => return Err(bad("the Content-Length is not a number")),
    };
    let (authority, rest) = authority(target)?;
    if authority.is_some_and(|authority| !authority.eq_ignore_ascii_case(&host)) {
        return Err(bad("the target names one host and the Host header another"));
    }
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    Ok(Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        host,
        authority: authority.map(str::to_owned),
        authorization: authorization.map(str::to_owned),
        accept,
        body,
        close: close || body,
    })
}

/// `METHOD SP TARGET SP HTTP/1.x`: the method, the target and x.
fn request_line(line: &str) -> Result<(Method, &str, u8), Refused> {
    let wrong = bad("the request line is not METHOD TARGET HTTP/1.1");
    let parts: Vec<&str> = line.splitn(4, ' ').collect();
    let [method, target, version] = parts[..] else { return Err(wrong) };
    if !is_token(method) || target.is_empty() || !target.bytes().all(|c| c.is_ascii_graphic()) {
        return Err(wrong);
    }
    let minor = match version.as_bytes() {
        b"HTTP/1.1" => 1,
        b"HTTP/1.0" => 0,
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
            let message = "this server speaks HTTP/1.1";
            return Err(Refused { status: 505, code: "version", message });
        }
        _ => return Err(wrong),
    };
    if target.len() > TARGET {
        let message = "the path and the query have more than 4 KiB";
        return Err(Refused { status: 414, code: "too_large", message });
    }
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => Method::Other,
    };
    Ok((method, target, minor))
}

/// The name in lower case, and the value without the spaces around it.
fn header_line(line: &str) -> Result<(String, &str), Refused> {
    let wrong = bad("a header line is not NAME: VALUE");
    let (name, value) = line.split_once(':').ok_or(wrong)?;
    // A name with a space before the colon, or a folded line, is not a token.
    if !is_token(name) || value.bytes().any(|c| c.is_ascii_control() && c != b'\t') {
        return Err(wrong);
    }
    Ok((name.to_ascii_lowercase(), value.trim_matches([' ', '\t'])))
}

/// Whether a text is a token of RFC 9110: a method or the name of a header.
fn is_token(text: &str) -> bool {
    let mark = |c: u8| b"!#$%&'*+-.^_`|~".contains(&c);
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || mark(c))
}

/// The authority of an absolute target, and the path with the query of any target.
fn authority(target: &str) -> Result<(Option<&str>, &str), Refused> {
    let wrong = bad("the target is neither a path nor http://HOST/PATH");
    if target.contains('#') {
        return Err(wrong);
    }
    if target.starts_with('/') {
        return Ok((None, target));
    }
    let start = "http://";
    let scheme = target.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start));
    let rest = if scheme { &target[start.len()..] } else { return Err(wrong) };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    match rest.split_at(end) {
        (authority, "") => Ok((Some(authority), "/")),
        (authority, path) if path.starts_with('/') => Ok((Some(authority), path)),
        _ => Err(wrong),
    }
}

/// The body of a response. Responses of the same report share it.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Fixed(&'static str),
    Made(Arc<str>),
}

impl Body {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Body::Fixed(text) => text.as_bytes(),
            Body::Made(text) => text.as_bytes(),
        }
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Body::Fixed(text)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Body::Made(text.into())
    }
}

impl From<Arc<str>> for Body {
    fn from(text: Arc<str>) -> Self {
        Body::Made(text)
    }
}

/// A response.
#[derive(Debug, Clone)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    /// Headers besides those of every response.
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: Body,
}

impl Response {
    /// A response with status 200.
    pub(super) fn new(kind: &'static str, body: impl Into<Body>) -> Self {
        Response { status: 200, kind, headers: Vec::new(), body: body.into() }
    }

    pub(super) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The head of the response: status line and headers.
    pub(super) fn head(&self, close: bool) -> String {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        let length = self.body.as_bytes().len();
        let _ = write!(head, "date: {}\r\ncontent-type: {}\r\n", date(now()), self.kind);
        let _ = write!(head, "content-length: {length}\r\n");
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head + if close { "connection: close\r\n\r\n" } else { "\r\n" }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Seconds since 1970 as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = sidon_traffic::time::iso8601(seconds.saturating_mul(1_000_000_000));
    let day = DAYS[(seconds / 86_400 % 7) as usize];
    let month = text[5..7].parse().ok().and_then(|month: usize| MONTHS.get(month - 1));
    let (year, of_month, time) = (&text[..4], &text[8..10], &text[11..19]);
    format!("{day}, {of_month} {} {year} {time} GMT", month.unwrap_or(&"Jan"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the head in whole text, byte by byte and at once, and reads it.
    fn read(text: &str) -> Result<Request, Refused> {
        let at_once = head(text.as_bytes(), 0);
        let mut searched = 0;
        for length in 1..=text.len() {
            let found = head(&text.as_bytes()[..length], searched);
            if found != Ok(None) {
                assert_eq!(found, at_once, "{text:?}");
                break;
            }
            searched = length;
        }
        let end = at_once?.unwrap_or_else(|| panic!("no end: {text:?}"));
        parse(&text.as_bytes()[..end])
    }

    #[test]
    fn a_request_has_its_parts() {
        let request = read(
            "GET /a/b?q=1&q=2 HTTP/1.1\r\nhOST:\tlocalhost:80 \r\nAuthorization: Bearer x\r\n\
             Accept: text/html\r\nConnection: Upgrade, Close\r\nX: \u{e4}\r\n\r\nrest",
        );
        let request = request.unwrap();
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/a/b", "q=1&q=2"));
        assert_eq!((request.host.as_str(), request.authority), ("localhost:80", None));
        assert_eq!(request.authorization.as_deref(), Some("Bearer x"));
        assert_eq!(request.accept, "text/html");
        assert!(request.close && !request.body && request.method == Method::Get);
        let absolute = read("HEAD HTTP://Here HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        assert_eq!((absolute.path.as_str(), absolute.authority.as_deref()), ("/", Some("Here")));
        assert!(!absolute.close && absolute.method == Method::Head);
        assert!(read("GET / HTTP/1.0\r\nHost: a\r\n\r\n").unwrap().close);
    }

    #[test]
    fn a_head_ends_at_its_empty_line_or_is_too_long() {
        assert_eq!(head(b"GET / HTTP/1.1\r\nHost: a\r\n\r", 0), Ok(None));
        let long = vec![b'x'; HEAD];
        assert_eq!(head(&long[..HEAD - 1], 0), Ok(None));
        assert_eq!(head(&long, HEAD - 1).unwrap_err().status, 431);
        for wrong in ["\n", "\r\n\r\nGET", "GET / HTTP/1.1\nHost: a\n\n", "GET /\r\nA: b\n\r\n"] {
            assert_eq!(head(wrong.as_bytes(), 0).unwrap_err().status, 400, "{wrong:?}");
        }
    }

    /// Every text of four pieces is a request with one host and without a body, or is refused.
    #[test]
    fn any_pieces_in_any_order_are_read_or_refused() {
        let pieces = [
            "GET ",
            "/ ",
            "http://",
            "a",
            "HTTP/1.1",
            "\r\n",
            "\r\n\r\n",
            "Host: a",
            "Host:",
            ":",
            " ",
            "\t",
            "?",
            "#",
            "\0",
            "\u{e4}",
            "Content-Length: 1",
            "Transfer-Encoding: x",
        ];
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            let longer = |text: &String| pieces.map(|piece| format!("{text}{piece}"));
            texts = texts.iter().flat_map(longer).collect();
        }
        for text in texts {
            let whole = format!("GET / HTTP/1.1\r\n{text}\r\n\r\n");
            for bytes in [text.as_bytes(), whole.as_bytes()] {
                if let Ok(Some(end)) = head(bytes, 0)
                    && let Ok(request) = parse(&bytes[..end])
                {
                    let lines = || str::from_utf8(&bytes[..end]).unwrap().split("\r\n");
                    let with = |start| lines().filter(|line| line.starts_with(start)).count();
                    assert_eq!((with("Host:"), with("Transfer-Encoding:")), (1, 0), "{text:?}");
                    assert_eq!(request.body, with("Content-Length: 1") == 1, "{text:?}");
                    assert!(request.path.starts_with('/') && !request.path.contains('#'));
                }
            }
        }
    }

    #[test]
    fn the_date_is_that_of_the_standard() {
        assert_eq!(date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        let _ = date(u64::MAX);
    }
}
