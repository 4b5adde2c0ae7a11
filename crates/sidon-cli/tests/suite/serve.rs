//! `sidon serve` as a browser, a program and Prometheus see it, on a capture that the project
//! generates and of which every flow is known.

use serde_json::Value;
use sidon_traffic::{FlowKey, Generator, Mix, generate::Flood, generate::write_pcap};
use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A running server, killed on drop.
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
        Self::start_with(&[&["--seed", "7"], arguments].concat(), Stdio::inherit())
    }

    fn start_with(arguments: &[&str], error: Stdio) -> Self {
        let mut process = Command::new(assert_cmd::cargo::cargo_bin("sidon"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(error)
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

    /// Kills it, without a word to it, and gives what it said to standard error.
    fn kill(mut self) -> String {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// Ends the server by SIGTERM, and returns whether it succeeded and its last output.
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

/// A capture file, removed on drop.
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

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sidon-serve-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// Names in it, in order.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != ".lock");
        names.sort();
        names
    }

    /// Saved files in it, in order.
    fn saved(&self) -> Vec<String> {
        let names = self.names().into_iter();
        names.filter(|name| name.starts_with("sidon-")).collect()
    }

    /// Waits until it holds `files` saved files.
    fn wait_for(&self, files: usize) {
        let start = Instant::now();
        while self.saved().len() < files {
            assert!(start.elapsed() < Duration::from_secs(60), "{:?}", self.names());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What `sidon show --json` says of a file.
fn shown(path: &std::path::Path) -> Value {
    let mut sidon = Command::new(assert_cmd::cargo::cargo_bin("sidon"));
    let output = sidon.args(["show", "--json"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{path:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn merged(folder: &Folder, names: &[String]) -> Value {
    let to = folder.0.join("merged");
    let mut sidon = Command::new(assert_cmd::cargo::cargo_bin("sidon"));
    sidon.arg("merge").args(names.iter().map(|name| folder.0.join(name)));
    let output = sidon.arg("-o").arg(&to).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report = shown(&to);
    fs::remove_file(&to).unwrap();
    report
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
    for figure in [
        "packets_per_second",
        "bits_per_second",
        "tables_bytes",
        "resident_bytes",
        "half_open",
        "half_open_figure",
        "open",
        "open_figure",
        "present",
        "present_figure",
    ] {
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
    let mut tasks = Vec::new();
    for threads in ["1", "3"] {
        let server = Server::start(&["-r", capture.path(), "--threads", threads]);
        server.whole();
        let task = format!("/proc/{}/task", server.process.id());
        tasks.extend(fs::read_dir(task).ok().map(Iterator::count));
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
    // Where the system lists them: three workers, and none if there is one thread.
    if let [one, three] = tasks[..] {
        assert_eq!(three, one + 3);
    }
}

#[test]
fn a_flood_fills_the_states_and_raises_its_alarm() {
    let victim: std::net::SocketAddrV4 = "198.18.0.9:25".parse().unwrap();
    let flood =
        Flood { sources: 20_000, victim, after: 5_000, share: 80, answered: 5, ..Flood::default() };
    let mix = Mix { packets: 28_000, rate: 2_000, flood: Some(flood), ..Mix::default() };
    let capture = Capture::new("flood", mix);
    let server = Server::start(&["-r", capture.path()]);
    let all = server.whole();
    let alarm = &all["report"]["alarms"][0];
    assert_eq!(alarm["kind"], "syn_flood");
    assert_eq!(alarm["subject"], "198.18.0.9");
    assert!(alarm["evidence"]["attempts"].as_u64().unwrap() > 1_000, "{alarm}");
    // The flood lasts until the end of the capture: the connection of its last SYN is half open.
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
    let folder = Folder::new("token");
    fs::create_dir(&folder.0).unwrap();
    let token = folder.0.join("token");
    fs::write(&token, "s3cret\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let file = token.to_str().unwrap();
    let server = Server::start(&["--demo", "--token-file", file, "--host", "sidon.example"]);
    let local = server.address.clone();
    for path in ["/api/v1/report", "/api/v1/query?q=10.0.0.1", "/api/v1/chart/memory", "/metrics"] {
        assert_eq!(server.get(path).status, 401, "{path}");
        let wrong = server.send(path, &local, "Authorization: Bearer s3creT\r\n");
        assert_eq!(wrong.status, 401, "{path}");
        let right = server.send(path, &local, "Authorization: Bearer s3cret\r\n");
        assert_eq!(right.status, 200, "{path}");
    }
    // The page holds no figures, so it needs no token.
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
    assert!(why.contains("clients need a token"), "{why}");
}

#[test]
fn only_get_and_head_are_answered_and_the_last_parameter_counts() {
    let server = Server::start(&["--demo"]);
    let send = |method: &str, path: &str| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let host = &server.address;
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let head = send("HEAD", "/api/v1/report");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    for method in ["POST", "PUT", "DELETE"] {
        let refused = send(method, "/api/v1/report");
        assert!(refused.starts_with("HTTP/1.1 405") && refused.contains("GET,HEAD"), "{refused}");
    }
    assert!(send("POST", "/nowhere").starts_with("HTTP/1.1 404"));
    let answer = server.json("/api/v1/query?q=nonsense&q=443%2Ftcp");
    assert_eq!(answer["version"], 1, "{answer}");
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
        ("/api/v1/chart/bits?width=344", "image/svg+xml"),
        ("/api/v1/chart/memory?width=nonsense", "image/svg+xml"),
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
    assert!(server.get("/api/v1/chart/bits?width=344").body.contains("width=\"344\" height"));
    assert!(server.get("/api/v1/chart/bits?width=99999999999").body.contains("width=\"560\""));
    let page = server.get("/").body;
    assert!(!page.contains("style=") && !page.contains("onclick"), "the policy forbids both");
    // Tables have names for screen readers, and the script writes no certainty by hand.
    for table in page.split("<table").skip(1) {
        assert!(table.split('>').next().unwrap().contains("aria-label=\""), "{table}");
    }
    for text in [page, server.get("/script.js").body] {
        assert!(!text.to_lowercase().contains("exact"), "{text}");
    }
    for path in ["/nothing", "/api/v1/chart/nothing", "/api/v2/report"] {
        let response = server.get(path);
        assert_eq!(response.status, 404, "{path}");
        assert!(response.body.contains(": use "), "{path}: {}", response.body);
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
    for (rule, packets) in report["ledger"]["services"].as_object().unwrap() {
        let sample = samples[&format!("sidon_service_packets_total{{rule=\"{rule}\"}}")];
        assert_eq!(sample, packets.as_f64().unwrap(), "{rule}");
    }
    let tables = samples["sidon_memory_bytes{kind=\"tables\"}"];
    assert_eq!(tables, report["memory"]["allocated"].as_f64().unwrap());
    let ports: f64 = samples
        .iter()
        .filter(|(name, _)| name.starts_with("sidon_top_port_bytes"))
        .map(|(_, bytes)| bytes)
        .sum();
    assert_eq!(ports, samples["sidon_wire_bytes_total"], "the named and the others are all");
    assert_certain(&samples, &report);
    assert_eq!(samples["sidon_source_running"], 0.0);

    let empty = Capture::new("empty", office(1));
    let few = Server::start(&["-r", empty.path()]);
    few.whole();
    let less = self::samples(&few.get("/metrics").body);
    let fixed = |samples: &HashMap<String, f64>| {
        let names = samples.keys().filter(|name| !name.contains("top_"));
        // The kind of a figure may change, but each figure has one kind.
        let mut names: Vec<_> =
            names.map(|name| name.split(",kind=").next().unwrap().to_owned()).collect();
        names.retain(|name| name != ".lock");
        names.sort();
        names
    };
    assert_eq!(fixed(&samples), fixed(&less), "the series do not depend on the traffic");

    let open = server.send("/metrics", &server.address, "Accept: application/openmetrics-text\r\n");
    assert!(open.headers["content-type"].starts_with("application/openmetrics-text"));
    assert!(open.body.ends_with("# EOF\n"));
}

/// Asserts that metrics have the interval and the kind that the report has.
fn assert_certain(samples: &HashMap<String, f64>, report: &Value) {
    let states = ["S0", "SF", "OTH"].map(|state| {
        let present = &report["connections"]["present_by_state_figure"][state];
        (format!("figure=\"connections\",of=\"{state}\""), present)
    });
    let port = &report["top_ports"][0];
    let named = |name: &str| format!("figure=\"{name}\"");
    let of_port = format!("figure=\"top_port_bytes\",of={}", port["key"]);
    let rows = [
        (named("packets_total"), &report["packets_figure"]),
        (named("new_sources_total"), &report["new_sources_total_figure"]),
        (named("half_open_connections"), &report["connections"]["half_open_figure"]),
        (named("half_open_connections_peak"), &report["connections"]["peak_half_open_figure"]),
        (named("open_connections"), &report["connections"]["open_figure"]),
        (named("connections_came_about_total"), &report["connections"]["came_about_figure"]),
        (of_port, &port["bytes_figure"]),
        ("figure=\"top_flow_bytes\",of=\"1\"".to_owned(), &report["top_flows"][0]["bytes_figure"]),
    ];
    for (labels, figure) in rows.into_iter().chain(states) {
        let kind = figure["kind"].as_str().unwrap();
        assert_eq!(samples[&format!("sidon_figure_kind{{{labels},kind=\"{kind}\"}}")], 1.0);
        let least = samples[&format!("sidon_figure_least{{{labels}}}")];
        assert_eq!(least, figure["interval"][0].as_f64().unwrap(), "{labels}");
        let most = samples[&format!("sidon_figure_most{{{labels}}}")];
        assert_eq!(most, figure["interval"][1].as_f64().unwrap_or(f64::INFINITY), "{labels}");
    }
}

#[test]
fn after_a_flood_no_metric_claims_more_than_it_has() {
    let flood = Flood { sources: 300_000, after: 1_000, share: 99, ..Flood::default() };
    let mix = Mix { packets: 310_000, rate: 100_000, flood: Some(flood), ..Mix::default() };
    let capture = Capture::new("full-tables", mix);
    let server = Server::start(&["-r", capture.path(), "-m", "4MiB"]);
    let report = server.whole()["report"].clone();
    let samples = samples(&server.get("/metrics").body);
    assert_certain(&samples, &report);
    let mut sources: Vec<_> =
        Generator::new(mix, 5).unwrap().map(|one| one.flow.source()).collect();
    sources.sort_unstable();
    sources.dedup();
    let truth = sources.len() as f64;
    assert!(samples["sidon_new_sources_total"] < truth);
    let kind = "sidon_figure_kind{figure=\"new_sources_total\",kind=\"at_least\"}";
    assert_eq!(samples[kind], 1.0);
    assert!(samples["sidon_figure_least{figure=\"new_sources_total\"}"] <= truth);
    assert!(samples["sidon_figure_most{figure=\"new_sources_total\"}"] >= truth);
    // There are many more flows than the table keeps, so `other` is a lower bound.
    let mut flows = self::truth(mix);
    for row in &report["top_flows"].as_array().unwrap()[..10] {
        let key = row["key"].as_str().unwrap().replace("<->", "->");
        let key: FlowKey = key.parse().unwrap();
        assert!(flows.remove(&key.undirected()).is_some(), "{key}");
    }
    let other = flows.into_values().map(|[bytes, _]| bytes as f64).sum::<f64>();
    assert!(samples["sidon_top_flow_bytes{rank=\"other\"}"] <= other);
    let ends = ["least", "most"].map(|end| {
        samples[&format!("sidon_figure_{end}{{figure=\"top_flow_bytes\",of=\"other\"}}")]
    });
    assert!(ends[0] < ends[1] && ends[0] <= other && other <= ends[1], "{ends:?} {other}");
}

#[test]
fn every_period_goes_to_its_file_and_they_merge_to_the_whole() {
    let mix = Mix { rate: 1_000, ..office(20_000) };
    let capture = Capture::new("periods", mix);
    let folder = Folder::new("periods");
    let saving = ["-r", capture.path(), "--save-dir", folder.path(), "--rotate", "4s"];
    let server = Server::start(&saving);
    let all = server.whole();
    // Twenty seconds from a multiple of four on, and a little more: the last is not over yet.
    assert_eq!(all["saved"]["files"], 5, "{}", all["saved"]);
    assert_eq!(all["saved"]["period_seconds"], 4);
    assert_eq!(all["saved"]["found"], Value::Null);
    assert_eq!(all["packets_total"], 20_000);
    let now = all["report"]["packets"].as_u64().unwrap();
    assert_eq!(all["saved"]["packets"], 20_000 - now);
    // Counters count the whole run, whatever the period.
    let samples = samples(&server.get("/metrics").body);
    assert_eq!(samples["sidon_packets_total"], 20_000.0);
    assert_eq!(samples["sidon_saved_files_total"], 5.0);
    assert_eq!(samples["sidon_save_failures_total"], 0.0);
    let fates = ["decoded", "filtered", "undecoded"];
    let fates =
        fates.map(|fate| samples[&format!("sidon_ledger_packets_total{{fate=\"{fate}\"}}")]);
    assert_eq!(fates.iter().sum::<f64>(), 20_000.0);
    // Nobody else saves there meanwhile.
    let other = Command::new(assert_cmd::cargo::cargo_bin("sidon"))
        .args(["serve", "--listen", "127.0.0.1:0", "--demo", "--save-dir", folder.path()])
        .output()
        .unwrap();
    assert!(!other.status.success());
    let why = String::from_utf8(other.stderr).unwrap();
    assert!(why.contains("another sidon saves its files to"), "{why}");

    let (success, said) = server.end();
    assert!(success);
    assert!(said.starts_with("20,000 packets seen, 0 not accounted for"), "{said}");
    assert!(said.contains("6 files in"), "{said}");
    let names = folder.names();
    assert_eq!(names, folder.saved(), "nothing else is left");
    assert_eq!(names.len(), 6);
    assert_eq!(names[0], "sidon-20231114T221320Z.sidon");
    let packets = |name: &String| shown(&folder.0.join(name))["packets"].as_u64().unwrap();
    assert_eq!(names.iter().map(packets).sum::<u64>(), 20_000);
    let whole = Server::start(&["-r", capture.path()]).whole();
    let merged = merged(&folder, &names);
    for same in ["packets", "bytes", "first", "last", "new_sources_total"] {
        assert_eq!(merged[same], whole["report"][same], "{same}");
    }
}

#[test]
fn after_a_kill_it_says_what_is_lost_and_goes_on() {
    let folder = Folder::new("kill");
    let saving = ["--demo", "--speed", "4", "--save-dir", folder.path(), "--rotate", "2s"];
    let server = Server::start_with(&saving, Stdio::piped());
    folder.wait_for(3);
    assert_eq!(server.kill(), "", "there was nothing to find");
    let before = folder.saved();
    assert!(folder.names().contains(&".serve".to_owned()), "{:?}", folder.names());
    // As if it had been killed while it wrote.
    let half = folder.0.join(".sidon-0123456789abcdef.new");
    fs::write(&half, "half").unwrap();
    let halves = folder.names().iter().filter(|name| name.ends_with(".new")).count();
    let last = shown(&folder.0.join(before.last().unwrap()));
    let until = last["last"].as_str().unwrap();

    let server = Server::start_with(&saving, Stdio::piped());
    let all = server.json("/api/v1/report");
    let found = &all["saved"]["found"];
    assert_eq!(found["ended_by_itself"], false);
    assert_eq!(found["last_file"], *before.last().unwrap());
    assert_eq!(found["last_file_until"], until);
    assert_eq!(found["lost_seconds_at_most"], 2);
    assert_eq!(found["half_written_removed"], halves);
    // The period after the last file is the one that is lost, and it is the next one.
    let lost = found["lost_after"].as_str().unwrap();
    assert!(until < lost, "{until} {lost}");
    assert!(!half.exists());
    folder.wait_for(before.len() + 2);
    let said = server.kill();
    let place = folder.path();
    assert!(said.contains(&format!("{place}: the run before was killed")), "{said}");
    assert!(said.contains(&format!("after {}Z are lost", &lost[..19])), "{said}");
    assert!(said.contains("at most one period of 2s"), "{said}");
    let name = before.last().unwrap();
    let last = format!("the last file is {name}, up to {}Z", &until[..19]);
    assert!(said.contains(&last), "{said}");
    assert!(said.contains(&format!("removed {halves} half-written file")), "{said}");

    // A server that ends normally leaves its saved files and no other file.
    let server = Server::start_with(&saving, Stdio::piped());
    folder.wait_for(before.len() + 3);
    let (success, said) = server.end();
    assert!(success, "{said}");
    assert_eq!(folder.names(), folder.saved());
    let server = Server::start_with(&saving, Stdio::piped());
    assert_eq!(server.json("/api/v1/report")["saved"]["found"]["ended_by_itself"], true);
    let said = server.kill();
    assert!(said.contains("the run before ended normally"), "{said}");
    // All runs have one seed, that of the first: hours before and after merge.
    let names = folder.saved();
    let packets = |name: &String| shown(&folder.0.join(name))["packets"].as_u64().unwrap();
    assert_eq!(merged(&folder, &names)["packets"], names.iter().map(packets).sum::<u64>());
}

#[test]
fn what_cannot_be_saved_is_said_and_the_server_goes_on() {
    let capture = Capture::new("full", Mix { rate: 1_000, ..office(20_000) });
    let folder = Folder::new("full");
    let saving = ["--save-dir", folder.path(), "--rotate", "4s", "-r", capture.path()];
    let server = Server::start_with(&[&saving[..], &["--speed", "2"]].concat(), Stdio::piped());
    // The folder no longer exists.
    let away = folder.0.with_extension("away");
    fs::rename(&folder.0, &away).unwrap();
    let start = Instant::now();
    let failed = loop {
        let all = server.json("/api/v1/report");
        if all["saved"]["failed"].as_u64().unwrap() > 0 {
            break all;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{all}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let why = failed["saved"]["error"].as_str().unwrap();
    assert!(why.starts_with("a period is lost: "), "{why}");
    assert!(samples(&server.get("/metrics").body)["sidon_save_failures_total"] > 0.0);
    assert!(server.kill().contains("sidon: a period is lost: "));
    fs::remove_dir_all(&away).unwrap();
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
