//! The paths of the server and their responses.

use super::{
    chart::{Chart, Series, Theme, Unit},
    clients::{Request, Response},
    feed::{Feed, NoAnswer},
    guard::{self, Guard},
    metrics,
    snapshot::{Moment, Snapshot},
};
use http_body_util::Full;
use hyper::{
    Method, StatusCode,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
};
use serde_json::{Value, json};
use sidon_traffic::monitor::connections::OUTCOMES;
use std::time::Duration;

/// How long a question may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest question.
const LONGEST: usize = 200;

/// The state that all requests share.
#[derive(Clone)]
pub(super) struct App {
    pub(super) feed: Feed,
    pub(super) guard: Guard,
}

impl App {
    /// Answers a request. Requests that name another host get an error, and every response carries
    /// the headers of [`guard::HEADERS`].
    pub(super) async fn answer(self, request: Request) -> Response {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let mut response = match host {
            Some(host) if self.guard.is_host(host) => self.route(&request).await,
            _ => refuse(
                StatusCode::MISDIRECTED_REQUEST,
                "wrong_host",
                "name this server by its address, by localhost, or by a name given with --host",
            ),
        };
        for (name, value) in guard::HEADERS {
            let name = HeaderName::from_static(name);
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }

    /// Answers by path. The page and its files hold no figures and need no token.
    async fn route(&self, request: &Request) -> Response {
        let path = request.uri().path();
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
            return refuse(StatusCode::NOT_FOUND, "not_found", "there is no such path");
        }
        let given = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        if file.is_none() && !self.guard.may_ask(given) {
            let message = "a token is needed: Authorization: Bearer TOKEN";
            let response = refuse(StatusCode::UNAUTHORIZED, "token", message);
            return with(response, header::WWW_AUTHENTICATE, "Bearer");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let message = "this server answers GET and HEAD only";
            let response = refuse(StatusCode::METHOD_NOT_ALLOWED, "method", message);
            return with(response, header::ALLOW, "GET,HEAD");
        }
        let parameter = |name: &str| {
            let query = request.uri().query().unwrap_or_default();
            let all = form_urlencoded::parse(query.as_bytes());
            all.filter(|(known, _)| known == name).last().map(|(_, value)| value)
        };
        match (file, chart, path) {
            (Some((kind, text)), ..) => of(kind, text),
            (_, Some(name), _) => self.chart(name, parameter("theme").as_deref()),
            (.., "/api/v1/report") => of(JSON, self.feed.snapshot().text.clone()),
            (.., "/api/v1/history") => of(JSON, self.feed.snapshot().history_json().to_string()),
            (.., "/api/v1/query") => self.query(&parameter("q").unwrap_or_default()).await,
            _ => self.metrics(request),
        }
    }

    async fn query(&self, text: &str) -> Response {
        let text = text.trim();
        if text.len() > LONGEST {
            return refuse(StatusCode::BAD_REQUEST, "not_a_question", "the question is too long");
        }
        let question = match text.parse() {
            Ok(question) => question,
            Err(why) => {
                let why: sidon_traffic::query::NotAQuestion = why;
                return refuse(StatusCode::BAD_REQUEST, "not_a_question", &why.to_string());
            }
        };
        let busy = |why| refuse(StatusCode::SERVICE_UNAVAILABLE, "busy", why);
        match tokio::time::timeout(PATIENCE, self.feed.ask(question)).await {
            Ok(Ok(answer)) => {
                let mut json = answer.to_json();
                json["version"] = 1.into();
                of(JSON, json.to_string())
            }
            Ok(Err(NoAnswer::Busy)) => busy("too many questions wait: ask again"),
            Ok(Err(NoAnswer::Gone)) => busy("the server is stopping"),
            Err(_) => busy("the engine is busy: ask again"),
        }
    }

    fn chart(&self, name: &str, theme: Option<&str>) -> Response {
        let theme = if theme == Some("dark") { Theme::Dark } else { Theme::Light };
        match chart_of(name, &self.feed.snapshot()) {
            Some(chart) => of("image/svg+xml", chart.draw(theme)),
            None => refuse(StatusCode::NOT_FOUND, "not_found", "there is no such chart"),
        }
    }

    fn metrics(&self, request: &Request) -> Response {
        let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        let open = accept.is_some_and(|accept| accept.contains("application/openmetrics-text"));
        let text = metrics::encode(&self.feed.snapshot(), open);
        of(if open { metrics::OPEN } else { metrics::PLAIN }, text)
    }
}

const JSON: &str = "application/json";

/// A response of this content type.
fn of(kind: &'static str, text: impl Into<Bytes>) -> Response {
    let response = Response::new(Full::new(text.into()));
    with(response, header::CONTENT_TYPE, kind)
}

/// An error as JSON.
fn refuse(status: StatusCode, code: &str, message: &str) -> Response {
    let error: Value = json!({ "version": 1, "error": { "code": code, "message": message } });
    let mut response = of(JSON, error.to_string());
    *response.status_mut() = status;
    response
}

fn with(mut response: Response, name: HeaderName, value: &'static str) -> Response {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

/// The charts that there are.
fn chart_of(name: &str, snapshot: &Snapshot) -> Option<Chart> {
    let now = snapshot.now();
    let line = |name: &str, figure: &dyn Fn(&Moment) -> f64| Series {
        name: name.to_owned(),
        points: snapshot
            .history
            .iter()
            .map(|moment| (moment.at - now.at, figure(moment)))
            .collect(),
    };
    let chart = match name {
        "packets" => Chart {
            title: format!("Packets a second, {:.0} now", now.packets_per_second),
            unit: Unit::Number,
            stacked: false,
            series: vec![line("packets a second", &|moment| moment.packets_per_second)],
        },
        "memory" => Chart {
            title: format!("Memory: tables {}", crate::show::bytes(now.tables)),
            unit: Unit::Bytes,
            stacked: false,
            series: vec![
                line("tables", &|moment| moment.tables as f64),
                line("whole process", &|moment| moment.resident.unwrap_or(0) as f64),
            ],
        },
        "handshakes" => Chart {
            title: format!("Half-open connections, {} now; open, {} now", now.half_open, now.open),
            unit: Unit::Number,
            stacked: false,
            series: vec![
                line("half open", &|moment| moment.half_open as f64),
                line("open", &|moment| moment.open as f64),
            ],
        },
        "connections" => {
            let (names, others) = busiest(&snapshot.history);
            let layers = names
                .into_iter()
                .map(|i| line(OUTCOMES[i], &move |moment: &Moment| moment.present[i] as f64));
            let mut series: Vec<_> = layers.collect();
            let sum = |moment: &Moment| others.iter().map(|&i| moment.present[i]).sum::<u64>();
            series.push(line("others", &|moment| sum(moment) as f64));
            let title = "TCP connections that are there, by state".to_owned();
            Chart { title, unit: Unit::Number, stacked: true, series }
        }
        _ => return None,
    };
    Some(chart)
}

/// Four outcomes of which there are most at a time, in their own order, and all others.
fn busiest(history: &[Moment]) -> (Vec<usize>, Vec<usize>) {
    let most = |i: usize| history.iter().map(|moment| moment.present[i]).max().unwrap_or(0);
    let mut outcomes: Vec<usize> = (0..OUTCOMES.len()).collect();
    outcomes.sort_by_key(|&i| std::cmp::Reverse(most(i)));
    let mut others = outcomes.split_off(4);
    outcomes.sort_unstable();
    others.sort_unstable();
    (outcomes, others)
}
