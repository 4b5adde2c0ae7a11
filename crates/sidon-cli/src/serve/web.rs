//! Paths and what they answer.

use super::{
    chart::{Chart, Series, Theme, Unit},
    feed::{Feed, NoAnswer},
    guard::{self, Guard},
    metrics,
    snapshot::{Moment, Snapshot},
};
use axum::{
    Router,
    body::Body,
    extract::{Path, Query, Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};
use sidon_traffic::monitor::connections::OUTCOMES;
use std::{collections::HashMap, time::Duration};

/// How long a question may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest question.
const LONGEST: usize = 200;

/// What handlers share.
#[derive(Clone)]
pub(super) struct App {
    pub(super) feed: Feed,
    pub(super) guard: Guard,
}

/// All paths. The page and its parts hold no figures and need no token.
pub(super) fn router(app: App) -> Router {
    const HTML: &str = "text/html; charset=utf-8";
    const CSS: &str = "text/css; charset=utf-8";
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    let data = Router::new()
        .route("/api/v1/report", get(report))
        .route("/api/v1/history", get(history))
        .route("/api/v1/query", get(query))
        .route("/api/v1/chart/{name}", get(chart))
        .route("/metrics", get(scrape))
        .route_layer(middleware::from_fn_with_state(app.clone(), with_token));
    let page = |kind: &'static str, text: &'static str| get(move || async move { of(kind, text) });
    Router::new()
        .route("/", page(HTML, include_str!("page/index.html")))
        .route("/style.css", page(CSS, include_str!("page/style.css")))
        .route("/script.js", page(SCRIPT, include_str!("page/script.js")))
        .route("/icon.svg", page("image/svg+xml", include_str!("page/icon.svg")))
        .route("/healthz", page("text/plain; charset=utf-8", "ok\n"))
        .merge(data)
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "not_found", "there is no such path") })
        .layer(middleware::from_fn_with_state(app.clone(), with_host))
        .with_state(app)
}

/// Whoever asks for another server is not answered, and every answer has its headers.
async fn with_host(State(app): State<App>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let mut response = match host {
        Some(host) if app.guard.is_host(host) => next.run(request).await,
        _ => refuse(
            StatusCode::MISDIRECTED_REQUEST,
            "wrong_host",
            "this server is asked for by its address, by localhost, or by a name of --host",
        ),
    };
    for (name, value) in guard::HEADERS {
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

async fn with_token(State(app): State<App>, request: Request, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    if app.guard.may_ask(given) {
        return next.run(request).await;
    }
    let mut response =
        refuse(StatusCode::UNAUTHORIZED, "token", "a token is needed: Authorization: Bearer TOKEN");
    let bearer = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
    response
}

async fn report(State(app): State<App>) -> Response {
    of(JSON, app.feed.snapshot().text.clone())
}

async fn history(State(app): State<App>) -> Response {
    of(JSON, app.feed.snapshot().history_json().to_string())
}

async fn query(
    State(app): State<App>,
    Query(parameters): Query<HashMap<String, String>>,
) -> Response {
    let text = parameters.get("q").map_or("", |text| text.trim());
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
    match tokio::time::timeout(PATIENCE, app.feed.ask(question)).await {
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

async fn chart(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(parameters): Query<HashMap<String, String>>,
) -> Response {
    let theme = match parameters.get("theme").map(String::as_str) {
        Some("dark") => Theme::Dark,
        _ => Theme::Light,
    };
    let Some(chart) = chart_of(&name, &app.feed.snapshot()) else {
        return refuse(StatusCode::NOT_FOUND, "not_found", "there is no such chart");
    };
    match chart.draw(theme) {
        Ok(svg) => of("image/svg+xml", svg),
        Err(why) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "chart", &why),
    }
}

async fn scrape(State(app): State<App>, request: Request) -> Response {
    let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let open = accept.is_some_and(|accept| accept.contains("application/openmetrics-text"));
    match metrics::encode(app.feed.snapshot(), open) {
        Ok(text) => of(if open { metrics::OPEN } else { metrics::PLAIN }, text),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "metrics", "could not be written"),
    }
}

const JSON: &str = "application/json";

fn of(kind: &'static str, text: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], text.into()).into_response()
}

fn refuse(status: StatusCode, code: &str, message: &str) -> Response {
    let error: Value = json!({ "version": 1, "error": { "code": code, "message": message } });
    (status, of(JSON, error.to_string())).into_response()
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
