//! `sidon serve` as a browser, a program and Prometheus see it, on a capture that the project
//! generates and of which every flow is known.

use serde_json::Value;
use sidon_traffic::{FlowKey, Generator, Mix, generate::Flood, generate::write_pcap};
use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A server of its own, ended when it goes out of sight.
struct Server {
    process: Child,
    address: String,
}

/// What came back.
struct Response {
    status: u16,
    headers: HashMap<String, String>,
    body: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(assert_cmd::cargo::cargo_bin("sidon"))
            .args(["serve", "--listen", "127.0.0.1:0", "--seed", "7"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("http://").and_then(|line| line.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Server { process, address }
    }

    fn send(&self, path: &str, host: &str, headers: &str) -> Response {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        };
        let headers = lines.map(header).collect();
        Response { status, headers, body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Response {
        self.send(path, &self.address, "")
    }

    fn json(&self, path: &str) -> Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        assert_eq!(response.headers["content-type"], "application/json");
        serde_json::from_str(&response.body).unwrap()
    }

    fn ask(&self, question: &str) -> Value {
        let text: String = question.bytes().map(|byte| format!("%{byte:02x}")).collect();
        self.json(&format!("/api/v1/query?q={text}"))
    }

    /// The report, once the capture is over.
    fn whole(&self) -> Value {
        let start = Instant::now();
        loop {
            let report = self.json("/api/v1/report");
            if report["source"]["status"] == "over" {
                return report;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{report}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks it to end, and says what it last said.
    fn end(mut self) -> (bool, String) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        let mut text = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (self.process.wait().unwrap().success(), text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A file of its own, gone afterwards.
struct Capture(PathBuf);

impl Capture {
    fn new(name: &str, mix: Mix) -> Self {
        let name = format!("sidon-serve-{name}-{}.pcap", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
        write_pcap(Generator::new(mix, 5).unwrap(), 65_535, file).unwrap();
        Capture(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn office(packets: u64) -> Mix {
    Mix { packets, active: 300, ..Mix::default() }
}

/// Bytes and packets of every flow.
fn truth(mix: Mix) -> HashMap<FlowKey, [u64; 2]> {
    let mut truth: HashMap<FlowKey, [u64; 2]> = HashMap::new();
    for packet in Generator::new(mix, 5).unwrap() {
        let amounts = truth.entry(packet.flow.undirected()).or_default();
        amounts[0] += u64::from(packet.wire_len);
        amounts[1] += 1;
    }
    truth
}

#[test]
fn the_report_and_the_history_have_their_shapes() {
    let capture = Capture::new("report", office(20_000));
    let server = Server::start(&["-r", capture.path()]);
    let all = server.whole();
    assert_eq!(all["version"], 1);
    assert_eq!(all["source"]["name"], capture.path());
    assert_eq!(all["source"]["detail"], "the whole capture was read");
    let report = &all["report"];
    assert_eq!(report["packets"], 20_000);
    assert_eq!(report["ledger"]["balance"], 0);
    assert_eq!(report["top_flows"].as_array().unwrap().len(), 20);
    assert!(report["new_sources"].as_array().unwrap().len() <= 50);
    assert!(report["new_sources_subnets"].as_u64().unwrap() > 50);
    assert!(report["memory"]["allocated"].as_u64() <= report["memory"]["budget"].as_u64());
    let present = report["connections"]["present_by_state"].as_object().unwrap();
    for (state, now) in present {
        assert!(now.as_u64() <= report["connections"]["by_state"][state].as_u64(), "{state}");
    }

    let history = server.json("/api/v1/history");
    let points = history["seconds"].as_array().unwrap().len();
    assert!(points >= 2);
    for figure in ["packets_per_second", "tables_bytes", "resident_bytes", "half_open", "open"] {
        assert_eq!(history[figure].as_array().unwrap().len(), points, "{figure}");
    }
    let tables = history["tables_bytes"].as_array().unwrap();
    assert!(tables.iter().all(|bytes| *bytes == report["memory"]["allocated"]));

    // Nothing changes when the packets are over.
    assert_eq!(server.json("/api/v1/report")["number"], all["number"]);
    let (success, said) = server.end();
    assert!(success);
    assert!(said.starts_with("20,000 packets seen, 0 not accounted for"), "{said}");
}

#[test]
fn questions_are_answered_as_the_generator_knows() {
    let mix = office(20_000);
    let capture = Capture::new("query", mix);
    let truth = truth(mix);
    for threads in ["1", "3"] {
        let server = Server::start(&["-r", capture.path(), "--threads", threads]);
        server.whole();
        for (flow, [bytes, packets]) in truth.iter().take(40) {
            // Either direction asks about the same flow.
            for key in [*flow, flow.reversed()] {
                let answer = server.ask(&key.to_string());
                assert_eq!(answer["kind"], "flow");
                assert_eq!(answer["seen"], "yes");
                assert_eq!(answer["key"], key.to_string());
                assert_eq!(answer["bytes"]["certainty"], "exact", "{answer}");
                assert_eq!(answer["bytes"]["most"], *bytes);
                assert_eq!(answer["packets"]["least"], *packets);
            }
        }
        let stranger = server.ask("192.0.2.1:1 192.0.2.2:2 tcp");
        assert_eq!(stranger["seen"], "no");
        assert_eq!(stranger["bytes"]["most"], 0);
        assert_eq!(stranger["connection"]["answer"], "absent");
        assert_eq!(stranger["connection"]["certainty"], "exact");

        let host = truth.keys().find(|flow| flow.is_v4()).unwrap().source();
        let of_host =
            truth.iter().filter(|(flow, _)| [flow.source(), flow.destination()].contains(&host));
        let bytes: u64 = of_host.map(|(_, [bytes, _])| bytes).sum();
        let answer = server.ask(&host.to_string());
        assert_eq!((&answer["seen"], &answer["source"]), (&"yes".into(), &"yes".into()));
        assert_eq!(answer["bytes"]["most"], bytes, "{answer}");
        assert_eq!(server.ask("192.0.2.1")["source"], "no");

        let service = server.ask("443/tcp");
        assert_eq!(service["kind"], "port");
        assert_eq!(service["seen"], "yes");
        assert_eq!(server.get("/api/v1/query?q=nonsense").status, 400);
        assert_eq!(server.get("/api/v1/query").status, 400);
        assert_eq!(server.get(&format!("/api/v1/query?q={}", "1".repeat(500))).status, 400);
    }
}

#[test]
fn a_flood_fills_the_states_and_raises_its_alarm() {
    let victim: std::net::SocketAddrV4 = "198.18.0.9:25".parse().unwrap();
    let flood = Flood { sources: 20_000, victim, after: 5_000, share: 80, answered: 5 };
    let mix = Mix { packets: 28_000, rate: 2_000, flood: Some(flood), ..Mix::default() };
    let capture = Capture::new("flood", mix);
    let server = Server::start(&["-r", capture.path()]);
    let all = server.whole();
    let alarm = &all["report"]["alarms"][0];
    assert_eq!(alarm["kind"], "syn_flood");
    assert_eq!(alarm["subject"], "198.18.0.9");
    assert!(alarm["evidence"]["attempts"].as_u64().unwrap() > 1_000, "{alarm}");
    // The flood still goes on at the end: its last packet asks for a connection that is half open.
    let forged = |packet: &sidon_traffic::Packet| packet.flow.destination() == *victim.ip();
    let last = Generator::new(mix, 5).unwrap().filter(forged).last().unwrap();
    let answer = server.ask(&last.flow.to_string());
    assert_eq!(answer["connection"]["answer"], "state", "{answer}");
    assert_eq!(answer["connection"]["phase"], "half_open");
    assert_eq!(answer["connection"]["outcome"], "S0");
    let opener = format!("{}:{}", last.flow.source(), last.flow.source_port());
    assert_eq!(answer["connection"]["opened_by"], opener);
    assert_eq!(answer["connection"]["certainty"], "wrong_at_most");
    let wrong = answer["connection"]["wrong_at_most"].as_f64().unwrap();
    assert!(wrong > 0.0 && wrong < 1e-5, "{wrong}");
}

#[test]
fn who_has_no_token_or_names_another_host_is_refused() {
    let server = Server::start(&["--demo", "--token", "s3cret", "--host", "sidon.example"]);
    let local = server.address.clone();
    for path in ["/api/v1/report", "/api/v1/query?q=10.0.0.1", "/api/v1/chart/memory", "/metrics"] {
        assert_eq!(server.get(path).status, 401, "{path}");
        let wrong = server.send(path, &local, "Authorization: Bearer s3creT\r\n");
        assert_eq!(wrong.status, 401, "{path}");
        let right = server.send(path, &local, "Authorization: Bearer s3cret\r\n");
        assert_eq!(right.status, 200, "{path}");
    }
    // The page holds no figures, and has to ask for the token.
    assert_eq!(server.get("/").status, 200);
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", ""] {
        for path in ["/", "/metrics", "/api/v1/report"] {
            let response = server.send(path, host, "Authorization: Bearer s3cret\r\n");
            assert_eq!(response.status, 421, "{host:?} {path}");
        }
    }
    assert_eq!(server.send("/", "sidon.example", "").status, 200);
    assert_eq!(server.send("/", "localhost:1", "").status, 200);

    let refused = Command::new(assert_cmd::cargo::cargo_bin("sidon"))
        .args(["serve", "--demo", "--listen", "0.0.0.0:0"])
        .env_remove("SIDON_TOKEN")
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(why.contains("a token is needed"), "{why}");
}

#[test]
fn the_page_and_its_parts_come_with_their_headers() {
    let server = Server::start(&["--demo"]);
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/script.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/api/v1/chart/packets", "image/svg+xml"),
        ("/api/v1/chart/connections?theme=dark", "image/svg+xml"),
    ] {
        let response = server.get(path);
        assert_eq!((response.status, response.headers["content-type"].as_str()), (200, kind));
        assert_eq!(response.headers["x-content-type-options"], "nosniff");
        assert!(response.headers["content-security-policy"].contains("default-src 'none'"));
        // Nothing is fetched from anywhere else.
        let elsewhere = response.body.replace("http://www.w3.org/", "");
        assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{path}");
    }
    let page = server.get("/").body;
    assert!(!page.contains("style=") && !page.contains("onclick"), "the policy forbids both");
    for path in ["/nothing", "/api/v1/chart/nothing", "/api/v2/report"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

/// Samples by name and labels; the text is read as the exposition format says.
fn samples(text: &str) -> HashMap<String, f64> {
    let mut samples = HashMap::new();
    let mut families = std::collections::HashSet::new();
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(families.insert(name.to_owned()), "{name} comes twice");
        } else if !line.starts_with('#') {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            assert!(families.contains(name), "{line} has no type");
            assert!(samples.insert(sample.to_owned(), value.parse().unwrap()).is_none(), "{line}");
        }
    }
    samples
}

#[test]
fn metrics_are_those_of_the_report_and_fixed_in_number() {
    let capture = Capture::new("metrics", office(20_000));
    let server = Server::start(&["-r", capture.path()]);
    let report = server.whole()["report"].clone();
    let response = server.get("/metrics");
    assert_eq!(response.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let samples = samples(&response.body);
    assert_eq!(samples["sidon_packets_total"], 20_000.0);
    assert_eq!(samples["sidon_wire_bytes_total"], report["bytes"].as_f64().unwrap());
    let fates = ["decoded", "filtered", "undecoded"];
    let fates =
        fates.map(|fate| samples[&format!("sidon_ledger_packets_total{{fate=\"{fate}\"}}")]);
    assert_eq!(fates.iter().sum::<f64>(), 20_000.0);
    let tables = samples["sidon_memory_bytes{kind=\"tables\"}"];
    assert_eq!(tables, report["memory"]["allocated"].as_f64().unwrap());
    let ports: f64 = samples
        .iter()
        .filter(|(name, _)| name.starts_with("sidon_top_port_bytes"))
        .map(|(_, bytes)| bytes)
        .sum();
    assert_eq!(ports, samples["sidon_wire_bytes_total"], "the named and the others are all");
    assert_eq!(samples["sidon_source_running"], 0.0);

    let empty = Capture::new("empty", office(1));
    let few = Server::start(&["-r", empty.path()]);
    few.whole();
    let less = self::samples(&few.get("/metrics").body);
    let fixed = |samples: &HashMap<String, f64>| {
        let mut names: Vec<_> =
            samples.keys().filter(|name| !name.starts_with("sidon_top_")).cloned().collect();
        names.sort();
        names
    };
    assert_eq!(fixed(&samples), fixed(&less), "the series do not depend on the traffic");

    let open = server.send("/metrics", &server.address, "Accept: application/openmetrics-text\r\n");
    assert!(open.headers["content-type"].starts_with("application/openmetrics-text"));
    assert!(open.body.ends_with("# EOF\n"));
}

#[test]
fn the_binary_writes_its_manual_and_completions() {
    let directory = std::env::temp_dir().join(format!("sidon-man-{}", std::process::id()));
    let sidon = || Command::new(assert_cmd::cargo::cargo_bin("sidon"));
    assert!(sidon().arg("man").arg(&directory).status().unwrap().success());
    for page in ["sidon.1", "sidon-serve.1", "sidon-watch.1"] {
        let text = fs::read_to_string(directory.join(page)).unwrap();
        assert!(text.contains(".TH") && text.contains(".SH NAME"), "{page}");
    }
    let serve = fs::read_to_string(directory.join("sidon-serve.1")).unwrap();
    assert!(serve.contains("listen") && serve.contains("SIDON_TOKEN"));
    fs::remove_dir_all(&directory).unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = sidon().args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains("serve"), "{shell}");
    }
}
