//! One connection: requests in, responses out, each phase within its time.
//!
//! ```text
//! accepted -> Reading --whole head--> Answering -> Writing -> Idle --first byte--> Reading ..
//! ```
//! A head must be whole, a response read, and an idle connection used again within the times of
//! [`Times`]. A client that is too slow gets status 408. If others wait for its place, it gets
//! status 503 with the time after which to try again. Before a connection closes for the sake of
//! others, its socket is read once more: with unread bytes it is not idle, and it stays.

use super::http::{self, HEAD, Method, Refused, Request, Response};
use std::{
    future::poll_fn,
    io::{self, ErrorKind},
    pin::{Pin, pin},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    task::Poll,
    time::Duration,
};
use tokio::{
    io::AsyncWrite,
    net::TcpStream,
    sync::Notify,
    time::{Instant, sleep_until},
};

/// How long each phase of a connection may last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// From the first byte of a request, or from the start of the connection, to the end of the head.
    pub(super) head: Duration,
    /// From the end of the request to the last byte of the response.
    pub(super) response: Duration,
    /// Between two requests.
    pub(super) idle: Duration,
    /// After a refused request: unread bytes are skipped for this long, so that the client can read
    /// the response.
    pub(super) linger: Duration,
}

impl Default for Times {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Times { head: seconds(10), response: seconds(30), idle: seconds(30), linger: seconds(1) }
    }
}

/// The phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Reading,
    Answering,
    Writing,
}

/// The phase of a connection and its start. The task that accepts connections reads them.
#[derive(Debug)]
pub(super) struct Place {
    start: Instant,
    /// Milliseconds from `start` to the start of the phase, times four, plus the phase.
    phase: AtomicU64,
    leave: AtomicBool,
    woken: Notify,
}

impl Place {
    /// The place of a new connection. `start` is the same for all places.
    pub(super) fn new(start: Instant) -> Self {
        let place = Place {
            start,
            phase: AtomicU64::new(0),
            leave: AtomicBool::new(false),
            woken: Notify::new(),
        };
        place.enter(Phase::Reading);
        place
    }

    fn enter(&self, phase: Phase) {
        let now = self.start.elapsed().as_millis() as u64;
        self.phase.store(now << 2 | phase as u64, Ordering::Relaxed);
        self.leave.store(false, Ordering::Relaxed);
    }

    /// The phase and its length so far.
    pub(super) fn phase(&self) -> (Phase, Duration) {
        let phases = [Phase::Idle, Phase::Reading, Phase::Answering, Phase::Writing];
        let stored = self.phase.load(Ordering::Relaxed);
        let since = Duration::from_millis(stored >> 2);
        (phases[(stored & 3) as usize], self.start.elapsed().saturating_sub(since))
    }

    /// Tells the connection to close in favour of others.
    pub(super) fn leave(&self) {
        self.leave.store(true, Ordering::Relaxed);
        self.woken.notify_one();
    }

    /// Whether the connection must close in favour of others.
    pub(super) fn leaves(&self) -> bool {
        self.leave.load(Ordering::Relaxed)
    }

    async fn left(&self) {
        while !self.leaves() {
            self.woken.notified().await;
        }
    }
}

/// Why a wait ended.
enum Woken {
    Ready,
    Leave,
    Late,
}

/// Waits for a socket, but not beyond `until`, nor for a connection that must leave.
async fn wait(ready: impl Future<Output = io::Result<()>>, place: &Place, until: Instant) -> Woken {
    let (mut ready, mut left, mut late) =
        (pin!(ready), pin!(place.left()), pin!(sleep_until(until)));
    poll_fn(|context| {
        // The socket first: unread bytes keep a connection.
        if ready.as_mut().poll(context).is_ready() {
            Poll::Ready(Woken::Ready)
        } else if left.as_mut().poll(context).is_ready() {
            Poll::Ready(Woken::Leave)
        } else if late.as_mut().poll(context).is_ready() {
            Poll::Ready(Woken::Late)
        } else {
            Poll::Pending
        }
    })
    .await
}

/// The next step of a connection after it was read.
enum Read {
    Request(Request),
    Refused(Refused),
    Close,
}

/// A connection after its last response, whose client may still send.
pub(super) struct Unread {
    pub(super) stream: TcpStream,
    /// Whether the connection closes in favour of others.
    pub(super) is_evicted: bool,
}

/// Answers the requests of one connection. `crowded` tells whether others wait for a place: then the
/// connection closes after its response. `refuse` makes the response to a refused request. The
/// caller closes the returned connection by [`linger`].
pub(super) async fn attend<F>(
    mut stream: TcpStream,
    place: &Place,
    times: Times,
    crowded: impl Fn() -> bool,
    answer: impl Fn(Request) -> F,
    refuse: impl Fn(Refused) -> Response,
) -> Option<Unread>
where
    F: Future<Output = Response>,
{
    let mut buffer = Vec::new();
    loop {
        match read(&stream, place, times, &mut buffer).await {
            Read::Request(request) => {
                let (only_head, body) = (request.method == Method::Head, request.body);
                let closes = request.close;
                let response = answer(request).await;
                let close = closes || crowded();
                place.enter(Phase::Writing);
                if !write(&stream, place, times, &response, close, only_head).await {
                    return None;
                }
                if close {
                    let is_open = shut(&mut stream).await && body;
                    return is_open.then_some(Unread { stream, is_evicted: false });
                }
            }
            Read::Refused(why) => {
                let is_evicted = why.status == CROWDED.status;
                place.enter(Phase::Writing);
                let is_open = write(&stream, place, times, &refuse(why), true, false).await
                    && shut(&mut stream).await;
                return is_open.then_some(Unread { stream, is_evicted });
            }
            Read::Close => return None,
        }
        if buffer.is_empty() {
            buffer = Vec::new();
            place.enter(Phase::Idle);
        } else {
            place.enter(Phase::Reading);
        }
    }
}

/// Reads until the head of a request is whole. Bytes after it stay in the buffer.
async fn read(stream: &TcpStream, place: &Place, times: Times, buffer: &mut Vec<u8>) -> Read {
    let mut searched = 0;
    let mut started = Instant::now();
    loop {
        match http::head(buffer, searched) {
            Ok(Some(end)) => {
                place.enter(Phase::Answering);
                let request = http::parse(&buffer[..end]);
                buffer.drain(..end);
                return request.map_or_else(Read::Refused, Read::Request);
            }
            Ok(None) => searched = buffer.len(),
            Err(why) => return Read::Refused(why),
        }
        let idle = place.phase().0 == Phase::Idle;
        let until = started + if idle { times.idle } else { times.head };
        match wait(stream.readable(), place, until).await {
            Woken::Ready => {}
            Woken::Leave | Woken::Late if idle => return Read::Close,
            Woken::Leave => return Read::Refused(CROWDED),
            Woken::Late => return Read::Refused(SLOW),
        }
        // The buffer doubles up to the limit, so that short heads take little memory.
        let have = buffer.len();
        buffer.resize((2 * have).clamp(1 << 10, HEAD), 0);
        let got = stream.try_read(&mut buffer[have..]);
        buffer.truncate(have + *got.as_ref().unwrap_or(&0));
        match got {
            Ok(0) => return Read::Close,
            Ok(_) if idle => {
                place.enter(Phase::Reading);
                started = Instant::now();
            }
            Ok(_) => {}
            Err(why) if is_temporary(&why) => {}
            Err(_) => return Read::Close,
        }
    }
}

const CROWDED: Refused = Refused {
    status: 503,
    code: "busy",
    message: "others wait for this connection, and no whole request came: try again",
};
const SLOW: Refused =
    Refused { status: 408, code: "slow", message: "no whole request came in time" };

fn is_temporary(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Writes a response. `false` if the client does not take it in time.
async fn write(
    stream: &TcpStream,
    place: &Place,
    times: Times,
    response: &Response,
    close: bool,
    only_head: bool,
) -> bool {
    let until = Instant::now() + times.response;
    let head = response.head(close);
    let body = if only_head { &[] } else { response.body.as_bytes() };
    for mut part in [head.as_bytes(), body] {
        while !part.is_empty() {
            match stream.try_write(part) {
                Ok(0) => return false,
                Ok(sent) => {
                    part = &part[sent..];
                    continue;
                }
                Err(why) if is_temporary(&why) => {}
                Err(_) => return false,
            }
            if !matches!(wait(stream.writable(), place, until).await, Woken::Ready) {
                return false;
            }
        }
    }
    true
}

/// Ends the server's side of a connection after the last response. `false` if the client is gone.
async fn shut(stream: &mut TcpStream) -> bool {
    poll_fn(|context| Pin::new(&mut *stream).poll_shutdown(context)).await.is_ok()
}

/// Skips what the client of a shut connection sends, for a while: to close a socket with unread bytes
/// would destroy the response on its way.
pub(super) async fn linger(stream: &TcpStream, times: Times) {
    let until = Instant::now() + times.linger;
    let skip = async {
        let mut buffer = [0; 4 << 10];
        while stream.readable().await.is_ok() {
            match stream.try_read(&mut buffer) {
                Ok(0) => return,
                Err(why) if !is_temporary(&why) => return,
                _ => {}
            }
        }
    };
    let _ = tokio::time::timeout_at(until, skip).await;
}
