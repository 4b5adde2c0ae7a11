//! The paths of the server and their responses.

use super::{
    chart::{Chart, Point, Series, Theme, Unit, WIDTH},
    feed::{Feed, NoAnswer},
    guard::{self, Guard},
    http::{Method, Refused, Request, Response},
    metrics,
    snapshot::{Moment, Snapshot},
};
use serde_json::{Value, json};
use sidon_traffic::{figure::Figure, monitor::connections::OUTCOMES};
use std::time::Duration;

/// The longest time for a query.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest query, in bytes.
const LONGEST: usize = 200;
const NO_PATH: &str = "no such path: use /, /metrics, /api/v1/report, /api/v1/history, \
                       /api/v1/query?q=KEY or /api/v1/chart/NAME";
const NO_CHART: &str = "no such chart: use packets, bits, handshakes, connections or memory";

/// The state that all requests share.
#[derive(Clone)]
pub(super) struct App {
    pub(super) feed: Feed,
    pub(super) guard: Guard,
}

impl App {
    /// Answers a request, unless the guard refuses it.
    pub(super) async fn answer(self, request: Request) -> Response {
        match self.guard.check(&request) {
            Ok(()) => guarded(self.route(&request).await),
            Err(why) => refusal(why),
        }
    }

    /// Answers by path. The page and its files hold no figures and need no token.
    async fn route(&self, request: &Request) -> Response {
        let path = request.path.as_str();
        let file = match path {
            "/" => Some(("text/html; charset=utf-8", include_str!("page/index.html"))),
            "/style.css" => Some(("text/css; charset=utf-8", include_str!("page/style.css"))),
            "/script.js" => {
                Some(("text/javascript; charset=utf-8", include_str!("page/script.js")))
            }
            "/icon.svg" => Some(("image/svg+xml", include_str!("page/icon.svg"))),
            "/healthz" => Some(("text/plain; charset=utf-8", "ok\n")),
            _ => None,
        };
        let chart = path.strip_prefix("/api/v1/chart/");
        let data = ["/api/v1/report", "/api/v1/history", "/api/v1/query", "/metrics"];
        if file.is_none() && chart.is_none() && !data.contains(&path) {
            return refuse(404, "not_found", NO_PATH);
        }
        if file.is_none() && !self.guard.may_ask(request.authorization.as_deref()) {
            let message = "a token is needed: Authorization: Bearer TOKEN";
            return refuse(401, "token", message).with("www-authenticate", "Bearer");
        }
        if request.method == Method::Other {
            let message = "this server answers GET and HEAD only";
            return refuse(405, "method", message).with("allow", "GET,HEAD");
        }
        if request.body {
            return refuse(413, "too_large", "this server takes no body; send none");
        }
        let parameter = |name: &str| {
            let all = form_urlencoded::parse(request.query.as_bytes());
            all.filter(|(known, _)| known == name).last().map(|(_, value)| value)
        };
        match (file, chart, path) {
            (Some((kind, text)), ..) => Response::new(kind, text),
            (_, Some(name), _) => {
                let width = parameter("width").and_then(|width| width.parse().ok());
                self.chart(name, parameter("theme").as_deref(), width.unwrap_or(WIDTH))
            }
            (.., "/api/v1/report") => Response::new(JSON, self.feed.snapshot().text()),
            (.., "/api/v1/history") => Response::new(JSON, self.feed.snapshot().history_text()),
            (.., "/api/v1/query") => self.query(&parameter("q").unwrap_or_default()).await,
            _ => self.metrics(request),
        }
    }

    async fn query(&self, text: &str) -> Response {
        let text = text.trim();
        if text.len() > LONGEST {
            let message = format!("the query has more than {LONGEST} bytes");
            return refuse(400, "not_a_question", &message);
        }
        let question = match text.parse() {
            Ok(question) => question,
            Err(why) => {
                let why: sidon_traffic::query::NotAQuestion = why;
                return refuse(400, "not_a_question", &why.to_string());
            }
        };
        let busy = |why| refuse(503, "busy", why).with("retry-after", AGAIN);
        match tokio::time::timeout(PATIENCE, self.feed.ask(question)).await {
            Ok(Ok(answer)) => {
                let mut json = answer.to_json();
                json["version"] = 1.into();
                Response::new(JSON, json.to_string())
            }
            Ok(Err(NoAnswer::Busy)) => busy("too many queries are waiting: try again"),
            Ok(Err(NoAnswer::Gone)) => busy("the server is stopping"),
            Err(_) => busy("the engine is busy: try again"),
        }
    }

    fn chart(&self, name: &str, theme: Option<&str>, width: u32) -> Response {
        let theme = if theme == Some("dark") { Theme::Dark } else { Theme::Light };
        match chart_of(name, &self.feed.snapshot()) {
            Some(chart) => Response::new("image/svg+xml", chart.draw(theme, width)),
            None => refuse(404, "not_found", NO_CHART),
        }
    }

    fn metrics(&self, request: &Request) -> Response {
        let open = request.accept.contains("application/openmetrics-text");
        let kind = if open { metrics::OPEN } else { metrics::PLAIN };
        Response::new(kind, self.feed.snapshot().metrics_text(open))
    }
}

const JSON: &str = "application/json";
/// Seconds after which a client may try again.
const AGAIN: &str = "1";

/// The response to a refused request.
pub(super) fn refusal(why: Refused) -> Response {
    let response = guarded(refuse(why.status, why.code, why.message));
    if why.status == 503 { response.with("retry-after", AGAIN) } else { response }
}

/// Adds the headers of [`guard::HEADERS`].
fn guarded(mut response: Response) -> Response {
    response.headers.extend(guard::HEADERS);
    response
}

/// An error as JSON.
fn refuse(status: u16, code: &str, message: &str) -> Response {
    let error: Value = json!({ "version": 1, "error": { "code": code, "message": message } });
    Response { status, ..Response::new(JSON, error.to_string()) }
}

/// The chart of this name, if there is one.
fn chart_of(name: &str, snapshot: &Snapshot) -> Option<Chart> {
    let now = &snapshot.now;
    let line = |name: &str, point: &dyn Fn(f64, &Moment) -> Point| Series {
        name: name.to_owned(),
        points: snapshot.history.iter().map(|moment| point(moment.at - now.at, moment)).collect(),
    };
    let rate = |name: &str, rate: fn(&Moment) -> f64| {
        line(name, &|at, moment| Point::new(at, rate(moment)))
    };
    let count = |name: &str, count: &dyn Fn(&Moment) -> Figure| {
        line(name, &|at, moment| Point::of(at, count(moment)))
    };
    let chart = match name {
        "packets" => Chart {
            title: format!("Packets per second: {:.0} now", now.packets_per_second),
            unit: Unit::Number,
            stacked: false,
            series: vec![rate("packets per second", |moment| moment.packets_per_second)],
        },
        "bits" => Chart {
            title: format!("Bits per second: {:.0} now", now.bits_per_second),
            unit: Unit::Bits,
            stacked: false,
            series: vec![rate("bits per second", |moment| moment.bits_per_second)],
        },
        "memory" => Chart {
            title: format!("Memory: tables {}", crate::show::bytes(now.tables)),
            unit: Unit::Bytes,
            stacked: false,
            series: vec![
                rate("tables", |moment| moment.tables as f64),
                rate("whole process", |moment| moment.resident.unwrap_or(0) as f64),
            ],
        },
        "handshakes" => Chart {
            title: format!("Connections: half open {} now, open {} now", now.half_open, now.open),
            unit: Unit::Number,
            stacked: false,
            series: vec![
                count("half open", &|moment| moment.half_open),
                count("open", &|moment| moment.open),
            ],
        },
        "connections" => {
            let (names, others) = busiest(&snapshot.history);
            let layers = names.into_iter().map(|i| count(OUTCOMES[i], &|moment| moment.present[i]));
            let mut series: Vec<_> = layers.collect();
            series.push(count("others", &|moment| moment.present(others.iter().copied())));
            let title = "TCP connections that have not ended, by state".to_owned();
            Chart { title, unit: Unit::Number, stacked: true, series }
        }
        _ => return None,
    };
    Some(chart)
}

/// The four outcomes with the highest peaks, in the order of [`OUTCOMES`], and all others.
fn busiest(history: &[Moment]) -> (Vec<usize>, Vec<usize>) {
    let most = |i: usize| history.iter().map(|moment| moment.present[i].value()).max();
    let mut outcomes: Vec<usize> = (0..OUTCOMES.len()).collect();
    outcomes.sort_by_key(|&i| std::cmp::Reverse(most(i)));
    let mut others = outcomes.split_off(4);
    outcomes.sort_unstable();
    others.sort_unstable();
    (outcomes, others)
}
