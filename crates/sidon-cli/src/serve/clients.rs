//! Connections of clients: a fixed number, and idle ones are closed.
//!
//! A connection must send a request and read the response within [`Limits::patience`]. At
//! [`Limits::most`] connections, a new one replaces the one that has been idle longest. Active
//! clients therefore get their answers, even while others open connections and send nothing.

use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::{
    convert::Infallible,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
    time::{Instant, sleep},
};

pub(super) type Request = hyper::Request<Incoming>;
pub(super) type Response = hyper::Response<Full<Bytes>>;

/// How many there may be, and how long they may do nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) most: usize,
    pub(super) patience: Duration,
}

impl Default for Limits {
    /// 256 connections, 30 seconds.
    fn default() -> Self {
        Limits { most: 256, patience: Duration::from_secs(30) }
    }
}

/// Bytes of a request's head, and of an answer on its way.
const HEAD: usize = 16 << 10;
/// After a connection could not be taken: there may be no room for one more in the system.
const PAUSE: Duration = Duration::from_millis(50);
/// While a request is being answered.
const BUSY: u64 = u64::MAX;

/// Since when a connection has done nothing, in milliseconds of the server's time.
#[derive(Debug, Clone)]
struct Since {
    start: Instant,
    at: Arc<AtomicU64>,
}

impl Since {
    fn now(start: Instant) -> Self {
        let since = Since { start, at: Arc::default() };
        since.answered();
        since
    }

    fn asked(&self) {
        self.at.store(BUSY, Ordering::Relaxed);
    }

    fn answered(&self) {
        self.at.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn at(&self) -> u64 {
        self.at.load(Ordering::Relaxed)
    }

    /// Waits until the connection has been idle for `patience`.
    async fn longer_than(&self, patience: Duration) {
        loop {
            let idle = match self.at() {
                BUSY => Duration::ZERO,
                at => self.start.elapsed().saturating_sub(Duration::from_millis(at)),
            };
            match patience.checked_sub(idle).filter(|left| !left.is_zero()) {
                Some(left) => sleep(left).await,
                None => return,
            }
        }
    }
}

/// A connection that is held.
struct Held {
    since: Since,
    task: AbortHandle,
}

/// Answers clients by `answer`, for ever.
pub(super) async fn serve<A, F>(listener: TcpListener, answer: A, limits: Limits)
where
    A: Fn(Request) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let start = Instant::now();
    let mut held: Vec<Held> = Vec::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        held.retain(|one| !one.task.is_finished());
        while held.len() >= limits.most.max(1) {
            let oldest = held.iter().enumerate().min_by_key(|(_, one)| one.since.at());
            let Some((oldest, _)) = oldest else { break };
            held.swap_remove(oldest).task.abort();
        }
        let since = Since::now(start);
        let task = tokio::spawn(attend(stream, answer.clone(), since.clone(), limits.patience));
        held.push(Held { since, task: task.abort_handle() });
    }
}

/// Answers the requests of one connection until the client closes it or has been idle too long.
async fn attend<F>(
    stream: TcpStream,
    answer: impl Fn(Request) -> F,
    since: Since,
    patience: Duration,
) where
    F: Future<Output = Response>,
{
    let service = service_fn(|request| {
        since.asked();
        let answer = answer(request);
        let since = since.clone();
        async move {
            let answer = answer.await;
            since.answered();
            Ok::<_, Infallible>(answer)
        }
    });
    let mut http = http1::Builder::new();
    http.max_buf_size(HEAD);
    let connection = async {
        // The client's errors end its connection and concern nobody else.
        let _ = http.serve_connection(TokioIo::new(stream), service).await;
    };
    first(connection, since.longer_than(patience)).await;
}

/// Waits until one of two futures is ready, and drops the other.
pub(super) async fn first(one: impl Future<Output = ()>, two: impl Future<Output = ()>) {
    let (mut one, mut two) = (pin!(one), pin!(two));
    poll_fn(|context| {
        let ready = one.as_mut().poll(context).is_ready() || two.as_mut().poll(context).is_ready();
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read, Write},
        net::{SocketAddr, TcpStream},
    };

    const PATIENCE: Duration = Duration::from_millis(400);
    const LARGE: usize = 32 << 20;

    /// A server for four clients.
    fn with_server(act: impl FnOnce(SocketAddr)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let answer = |request: Request| async move {
            let large = request.uri().path() == "/large";
            let text = if large { Bytes::from(vec![b'x'; LARGE]) } else { Bytes::from("well") };
            Response::new(Full::new(text))
        };
        let limits = Limits { most: 4, patience: PATIENCE };
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(serve(listener, answer, limits));
        act(address);
    }

    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn ask(stream: &mut TcpStream, path: &str) {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    }

    /// Reads one small answer.
    fn answer(stream: &mut TcpStream) -> String {
        let (mut text, mut part) = (String::new(), [0; 1_024]);
        while !text.ends_with("well") {
            let length = stream.read(&mut part).unwrap();
            assert!(length > 0, "closed after {text:?}");
            text += str::from_utf8(&part[..length]).unwrap();
        }
        text
    }

    #[test]
    fn who_asks_is_answered_however_many_say_nothing() {
        with_server(|address| {
            let mut slow: Vec<_> = (0..40)
                .map(|_| {
                    let mut stream = connect(address);
                    write!(stream, "GET / HTTP/1.1\r\nHost:").unwrap();
                    stream
                })
                .collect();
            for _ in 0..10 {
                let mut honest = connect(address);
                ask(&mut honest, "/");
                assert!(answer(&mut honest).starts_with("HTTP/1.1 200"));
            }
            // The first lost their places, and nothing was said to them.
            let mut rest = Vec::new();
            let closed = slow[0].read_to_end(&mut rest);
            assert!(closed.is_err() || rest.is_empty(), "{rest:?}");
        });
    }

    #[test]
    fn a_head_that_drips_in_is_not_awaited_and_one_who_asks_again_may_stay() {
        with_server(|address| {
            let begun = std::time::Instant::now();
            let mut busy = connect(address);
            let mut slow = connect(address);
            slow.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let mut closed = None;
            while begun.elapsed() < 3 * PATIENCE {
                ask(&mut busy, "/");
                answer(&mut busy);
                let gone = slow.write_all(b"G").is_err()
                    || matches!(slow.read(&mut [0; 64]), Ok(0))
                    || matches!(slow.take_error(), Ok(Some(_)));
                if gone {
                    closed.get_or_insert(begun.elapsed());
                }
                std::thread::sleep(PATIENCE / 10);
            }
            let closed = closed.expect("the slow one is sent away");
            assert!(closed >= PATIENCE / 2, "{closed:?}");
        });
    }

    #[test]
    fn an_answer_that_nobody_takes_is_given_up() {
        with_server(|address| {
            let mut stream = connect(address);
            ask(&mut stream, "/large");
            std::thread::sleep(3 * PATIENCE);
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            assert!(rest.len() < LARGE, "{}", rest.len());
            // The next client gets its connection.
            let mut stream = connect(address);
            ask(&mut stream, "/large");
            let mut taken = 0;
            while taken < LARGE {
                let length = stream.read(&mut vec![0; 1 << 20]).unwrap();
                assert!(length > 0, "{taken}");
                taken += length;
            }
        });
    }
}
