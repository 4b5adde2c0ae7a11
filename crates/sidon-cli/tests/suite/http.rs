//! `sidon serve` and hostile clients: many at once, slow ones, ambiguous requests, and the token.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Held by tests that open hundreds of connections: together they would pass the usual limit of 1,024
/// open files.
static CROWD: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    CROWD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server of made-up traffic, killed on drop.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts `sidon serve --demo` after the shell commands `before`, such as `ulimit -n 64;`.
    fn start_after(before: &str, arguments: &[&str], token: Option<&str>) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{before} exec \"$0\" \"$@\"")]);
        command.arg(assert_cmd::cargo::cargo_bin("sidon"));
        command.args(["serve", "--demo", "--seed", "7", "--listen", "127.0.0.1:0"]);
        command.args(arguments).env_remove("SIDON_TOKEN").stdout(Stdio::piped());
        if let Some(token) = token {
            command.env("SIDON_TOKEN", token);
        }
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("http://").and_then(|line| line.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Server { process, address }
    }

    fn start(arguments: &[&str]) -> Self {
        Self::start_after("", arguments, None)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Sends bytes and reads the answer up to the end of the connection.
    fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes.as_ref());
        rest(&mut stream)
    }

    /// Sends a request with these lines after the request line, each with its CRLF.
    fn ask(&self, request: &str, lines: &str) -> String {
        self.send(format!("{request}\r\n{lines}Connection: close\r\n\r\n"))
    }

    /// Bytes of memory in use, where the system tells.
    fn resident(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/statm", self.process.id())).ok()?;
        Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// All that is left to read, as far as it is text.
fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn status(answer: &str) -> u16 {
    let number = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A file of this test, removed on drop.
struct Secret(PathBuf);

impl Secret {
    fn new(name: &str, text: &str, mode: u32) -> Self {
        let path = std::env::temp_dir().join(format!("sidon-token-{name}-{}", std::process::id()));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Secret(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Whether an answer has status 200, or status 503 with the time for another attempt.
fn is_answered(answer: &str) -> bool {
    match status(answer) {
        200 => answer.ends_with("ok\n"),
        503 => answer.contains("\r\nretry-after: "),
        _ => false,
    }
}

/// Sends a request for `/healthz` that closes the connection.
fn ask_for_health(server: &Server, client: &mut TcpStream) {
    let host = &server.address;
    write!(client, "GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
}

#[test]
fn every_client_that_sends_a_whole_request_is_answered() {
    let _alone = alone();
    // All connect before the first sends anything.
    let server = Server::start(&[]);
    let mut clients: Vec<_> = (0..900).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| ask_for_health(&server, client));
    let answers: Vec<_> = clients.iter_mut().map(rest).collect();
    assert_eq!(answers.iter().filter(|answer| status(answer) == 200).count(), 900);
    // Servers with places for 64 and for 8 connections.
    for files in [128, 40] {
        let server = Server::start_after(&format!("ulimit -n {files};"), &[], None);
        let clients = (0..900).map(|_| {
            let mut client = server.connect();
            ask_for_health(&server, &mut client);
            client
        });
        let answers: Vec<_> = clients.collect::<Vec<_>>().iter_mut().map(rest).collect();
        assert_eq!(answers.iter().filter(|answer| is_answered(answer)).count(), 900, "{files}");
    }
}

#[test]
fn clients_that_keep_their_connections_do_not_shut_others_out() {
    let _alone = alone();
    let server = Server::start_after("ulimit -n 264;", &[], None);
    let mut kept = Vec::new();
    for n in 0..800 {
        let mut client = server.connect();
        write!(client, "GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).unwrap();
        let (mut answer, mut part) = (String::new(), [0; 1024]);
        while !answer.ends_with("ok\n") {
            let got = client.read(&mut part).unwrap();
            assert!(got > 0, "client {n}: {answer:?}");
            answer += str::from_utf8(&part[..got]).unwrap();
        }
        kept.push(client);
    }
}

#[test]
fn thousands_of_silent_clients_delay_an_honest_one_by_the_grace_alone() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let _alone = alone();
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = current.map(|files| files.max(3_500));
    if setrlimit(Resource::Nofile, Rlimit { current: wanted, maximum }).is_err() {
        return; // the system allows fewer than 3,500 open files
    }
    let server = Server::start(&[]);
    let silent: Vec<_> = (0..3_000).map(|_| server.connect()).collect();
    let begun = Instant::now();
    assert_eq!(status(&server.ask("GET /healthz HTTP/1.1", "Host: localhost\r\n")), 200);
    // The server has 1,792 places, so 1,209 silent clients leave, after a grace of two seconds. With a
    // pause of 20 ms for each of them, the answer came after 11 s.
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    drop(silent);
}

#[test]
fn slow_clients_are_told_so_and_cost_no_more_than_their_room() {
    let _alone = alone();
    let server = Server::start_after("ulimit -n 264;", &[], None);
    assert_eq!(status(&server.ask("GET /healthz HTTP/1.1", "Host: localhost\r\n")), 200);
    let before = server.resident();
    let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(12_000));
    let mut slow: Vec<_> = (0..400)
        .map(|_| {
            let mut client = server.connect();
            let _ = client.write_all(head.as_bytes());
            client
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(status(&server.ask("GET /healthz HTTP/1.1", "Host: localhost\r\n")), 200);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    if let (Some(before), Some(after)) = (before, server.resident()) {
        assert!(after.saturating_sub(before) < 32 << 20, "{before} {after}");
    }
    // The first clients lost their places, and the response says so.
    let answer = rest(&mut slow[0]);
    assert!(status(&answer) == 503 && answer.contains("\r\nretry-after: "), "{answer}");
}

#[test]
fn a_head_that_does_not_end_is_answered_in_time() {
    let server = Server::start(&[]);
    let begun = Instant::now();
    let answer = server.send("GET / HTTP/1.1\r\nHost: local");
    assert_eq!(status(&answer), 408, "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn ambiguous_requests_are_refused() {
    let server = Server::start(&[]);
    let here = server.address.clone();
    let host = format!("Host: {here}\r\n");
    let get = "GET /healthz HTTP/1.1";
    let with = |more: &str| format!("{host}{more}\r\n");
    let long = format!("X: {}\r\n{host}", "x".repeat(40_000));
    let many: String = (0..500).map(|n| format!("X{n}: x\r\n")).collect::<String>() + &host;
    let folded = format!("{host}X: one\r\n two\r\n");
    let elsewhere = "GET http://evil.example/healthz HTTP/1.1";
    for (request, lines, expected) in [
        (get, &*host, 200),
        ("HEAD /healthz HTTP/1.1", &host, 200),
        // The host: one, and this server.
        (get, "", 400),
        ("GET /healthz HTTP/1.0", "", 400),
        (get, &format!("{host}{host}"), 400),
        (get, &with("host: evil.example"), 400),
        (get, "Host: evil.example\r\n", 421),
        (get, "Host: localhost, evil.example\r\n", 421),
        (get, "Host: user@localhost\r\n", 421),
        (get, "Host: user:1@localhost\r\n", 421),
        (get, "Host: localhost.\r\n", 421),
        (get, "Host: localhost:+80\r\n", 421),
        (get, "Host: localhost:\r\n", 421),
        (get, "Host: localhost:80:80\r\n", 421),
        (get, "Host: localhost:65536\r\n", 421),
        (get, "Host: localhost/\r\n", 421),
        (get, "Host: [127.0.0.1]\r\n", 421),
        (get, "Host: [::1%25lo]\r\n", 421),
        (get, "Host: 127.1\r\n", 421),
        (get, "Host: \r\n", 421),
        // The target.
        (elsewhere, &host, 400),
        (elsewhere, "Host: evil.example\r\n", 421),
        (&format!("GET http://{here}/healthz HTTP/1.1"), &host, 200),
        (&format!("GET http://{here}/healthz HTTP/1.1"), "Host: localhost\r\n", 400),
        (&format!("GET http://user@{here}/healthz HTTP/1.1"), &host, 400),
        ("GET healthz HTTP/1.1", &host, 400),
        ("GET * HTTP/1.1", &host, 400),
        ("GET /healthz#part HTTP/1.1", &host, 400),
        ("GET /heal\tthz HTTP/1.1", &host, 400),
        ("GET  /healthz HTTP/1.1", &host, 400),
        ("GET /healthz  HTTP/1.1", &host, 400),
        ("GET /healthz", &host, 400),
        (&format!("GET /{} HTTP/1.1", "x".repeat(9_000)), &host, 414),
        ("GET /%68ealthz HTTP/1.1", &host, 404),
        ("GET //healthz HTTP/1.1", &host, 404),
        ("GET /healthz HTTP/2.0", &host, 505),
        ("GET /healthz HTTP/1.11", &host, 400),
        ("GET /healthz http/1.1", &host, 400),
        // Bodies and their lengths.
        (get, &with("Content-Length: 0"), 200),
        (get, &with("Content-Length: 5"), 413),
        (get, &with("Content-Length: 0\r\nContent-Length: 0"), 400),
        (get, &with("Content-Length: 0, 0"), 400),
        (get, &with("Content-Length: +0"), 400),
        (get, &with("Content-Length: "), 400),
        (get, &with("Transfer-Encoding: chunked"), 400),
        (get, &with("Transfer-Encoding: identity"), 400),
        (get, &with("Transfer-Encoding : chunked"), 400),
        (get, &with("Content-Length: 0\r\nTransfer-Encoding: chunked"), 400),
        // Header lines.
        (get, &folded, 400),
        (get, &with(" X: y"), 400),
        (get, &with("X"), 400),
        (get, &with(": y"), 400),
        (get, &with("X: a\0b"), 400),
        (get, &with("X: a\rb"), 400),
        (get, &with("X: a\nY: b"), 400),
        (get, &with("Authorization: Bearer a\r\nAuthorization: Bearer b"), 400),
        (get, &long, 431),
        (get, &many, 431),
        // Methods.
        ("OPTIONS /healthz HTTP/1.1", &host, 405),
        ("TRACE /healthz HTTP/1.1", &host, 405),
        ("get /healthz HTTP/1.1", &host, 405),
        ("POST /healthz HTTP/1.1", &with("Content-Length: 5"), 405),
        ("OPTIONS * HTTP/1.1", &host, 400),
        (&format!("CONNECT {here} HTTP/1.1"), &host, 400),
    ] {
        let answer = server.ask(request, lines);
        let start = &lines[..lines.len().min(90)];
        assert_eq!(status(&answer), expected, "{request:?} {start:?}: {answer}");
        assert!(
            answer.contains("\r\nx-content-type-options: nosniff\r\n"),
            "{request:?}: {answer}"
        );
    }
    // TRACE does not send the request back.
    let traced = server.ask("TRACE / HTTP/1.1", &with("Authorization: Bearer s3cret"));
    assert!(!traced.contains("s3cret"), "{traced}");
    // Two requests in one packet get two responses. The server reads nothing after a refused request.
    let two =
        format!("{get}\r\n{host}\r\nHEAD /nowhere HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
    let answer = server.send(&two);
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 2, "{answer}");
    let smuggled =
        format!("{get}\r\n{host}Content-Length: 60\r\n\r\nGET /metrics HTTP/1.1\r\n{host}\r\n");
    let answer = server.send(&smuggled);
    assert_eq!((status(&answer), answer.matches("HTTP/1.1 ").count()), (413, 1), "{answer}");
    // A client that stops sending is answered, too.
    let mut half = server.connect();
    write!(half, "{get}\r\n{host}\r\n").unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    assert_eq!(status(&rest(&mut half)), 200);
}

#[test]
fn the_token_comes_from_a_file_that_others_cannot_read_or_from_the_environment() {
    let asked = |server: &Server, authorization: &str| {
        let lines = format!("Host: localhost\r\n{authorization}");
        status(&server.ask("GET /metrics HTTP/1.1", &lines))
    };
    let secret = Secret::new("mine", "s3cret\n", 0o600);
    for server in [
        Server::start(&["--token-file", secret.path()]),
        Server::start_after("", &[], Some("s3cret")),
    ] {
        for scheme in ["Bearer", "bearer", "BEARER", "bEARER "] {
            assert_eq!(
                asked(&server, &format!("Authorization: {scheme} s3cret\r\n")),
                200,
                "{scheme}"
            );
        }
        for wrong in [
            "",
            "Authorization: s3cret\r\n",
            "Authorization: Bearer\r\n",
            "Authorization: Bearer s3creT\r\n",
            "Authorization: Bearer s3crets3cret\r\n",
            "Authorization: Bearers3cret\r\n",
            "Authorization: Basic s3cret\r\n",
        ] {
            assert_eq!(asked(&server, wrong), 401, "{wrong}");
        }
    }
    let refused = |arguments: &[&str], token: Option<&str>| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("sidon"));
        command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]).args(arguments);
        command.env_remove("SIDON_TOKEN");
        if let Some(token) = token {
            command.env("SIDON_TOKEN", token);
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let said = refused(&["--token", "s3cret"], None);
    assert_eq!(said.0, Some(2), "{}", said.1);
    assert!(said.1.contains("--token-file") && !said.1.contains("s3cret"), "{}", said.1);
    for mode in [0o644, 0o604, 0o606, 0o660, 0o620] {
        let open = Secret::new("open", "s3cret", mode);
        let (code, said) = refused(&["--token-file", open.path()], None);
        assert_eq!(code, Some(1), "{mode:o}: {said}");
        assert!(said.contains(&format!("type: chmod 600 {}", open.path())), "{said}");
    }
    for (text, word) in [("", "empty"), (" \n", "empty"), ("a b", "character"), ("ä", "character")]
    {
        let wrong = Secret::new("wrong", text, 0o600);
        for (code, said) in
            [refused(&["--token-file", wrong.path()], None), refused(&[], Some(text))]
        {
            assert_eq!(code, Some(1), "{text:?}: {said}");
            assert!(said.contains(word), "{text:?}: {said}");
        }
    }
    for endless in ["/dev/zero", "/dev/urandom"] {
        let (code, said) = refused(&["--token-file", endless], None);
        assert_eq!(code, Some(1), "{said}");
    }
}
