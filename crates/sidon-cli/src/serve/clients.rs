//! Accepts connections: a fixed number at a time, and others wait for a place.
//!
//! With all [`Limits::most`] places taken, the next connection waits, and more wait in the kernel's
//! queue. A client that has sent a whole request keeps its place. These clients lose it to others,
//! in this order: idle ones, those without a whole head after [`Limits::grace`], and those that have
//! not read their response after four times that.
//! ```text
//! kernel's queue -> accept -> place free? -> attend in a task of its own
//!                               | no: the idlest or slowest leave, wait for a place
//! ```
//! One in [`BATCH`] connections leaves at a time. A connection frees its place with its last response:
//! the time in which its client may read the response is spent in one of [`Limits::lingering`] places.
//!
//! Memory: a connection holds at most one head (16 KiB) and one response. Responses with the same
//! report share its text.

use super::{
    connection::{Phase, Place, Times, Unread, attend, linger},
    http::{Refused, Request, Response},
};
use std::{cmp::Reverse, future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};

/// How many connections there may be, and how long a client may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) most: usize,
    /// Connections after their last response, besides `most`.
    pub(super) lingering: usize,
    /// The time that a head may take while others wait.
    pub(super) grace: Duration,
    pub(super) times: Times,
}

impl Default for Limits {
    /// 2,048 connections, or as many as the limit of open files allows beside the program's own; one
    /// in eight of them may linger; two seconds.
    fn default() -> Self {
        let all = files().saturating_sub(OWN_FILES).clamp(8, MOST);
        let lingering = all / 8;
        let (most, grace) = (all - lingering, Duration::from_secs(2));
        Limits { most, lingering, grace, times: Times::default() }
    }
}

/// The most connections.
const MOST: usize = 2048;
/// Open files that connections leave to the rest of the program: clients must not be able to keep it
/// from saving.
const OWN_FILES: usize = 64;

/// The number of files that this process may open, raised as far as the connections need it.
fn files() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = (MOST + OWN_FILES) as u64;
    let raised = maximum.unwrap_or(wanted).min(wanted).max(current.unwrap_or(wanted));
    // Refused or not, the limit in force counts.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum });
    getrlimit(Resource::Nofile).current.map_or(MOST, |files| files.min(1 << 20) as usize)
}

/// Connections that may wait in the kernel's queue. The kernel may set a lower limit,
/// `net.core.somaxconn`. Clients beyond it try again after a second.
pub(super) const QUEUE: i32 = 4096;
/// The time for clients to leave before the server tells others to leave.
const PAUSE: Duration = Duration::from_millis(20);
/// One in this number of connections leaves at a time: the search for them reads all places.
const BATCH: usize = 32;

/// Answers clients by `answer`, for ever. `refuse` makes the response to a refused request.
pub(super) async fn serve<A, F, R>(listener: TcpListener, answer: A, refuse: R, limits: Limits)
where
    A: Fn(Request) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
    R: Fn(Refused) -> Response + Clone + Send + Sync + 'static,
{
    let start = Instant::now();
    let mut room = Room { free: Arc::new(Semaphore::new(limits.most.max(1))), taken: Vec::new() };
    let lingering = Arc::new(Semaphore::new(limits.lingering));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The system has no room for one more, such as no free file descriptor.
            room.make(limits.grace);
            sleep(PAUSE).await;
            continue;
        };
        let permit = room.wait(limits.grace).await;
        let place = Arc::new(Place::new(start));
        room.enter(&place);
        let (answer, refuse, free) = (answer.clone(), refuse.clone(), Arc::clone(&room.free));
        let lingering = Arc::clone(&lingering);
        tokio::spawn(async move {
            let crowded = || free.available_permits() == 0;
            let left = attend(stream, &place, limits.times, crowded, answer, refuse).await;
            let Some(Unread { stream, is_evicted }) = left else { return drop((place, permit)) };
            match lingering.try_acquire() {
                Ok(_lingers) => {
                    drop((place, permit));
                    linger(&stream, limits.times).await;
                }
                // Others wait for this place.
                Err(_) if is_evicted => drop((stream, place, permit)),
                Err(_) => {
                    linger(&stream, limits.times).await;
                    drop((stream, place, permit));
                }
            }
        });
    }
}

/// The places, free and taken.
struct Room {
    free: Arc<Semaphore>,
    /// The connections, and some that have ended.
    taken: Vec<Arc<Place>>,
}

impl Room {
    /// Adds a connection. Forgets those that have ended whenever the list has doubled, so that its
    /// length does not grow with the number of clients.
    fn enter(&mut self, place: &Arc<Place>) {
        if self.taken.len() == self.taken.capacity() {
            self.forget();
        }
        self.taken.push(Arc::clone(place));
    }

    /// Removes connections that have ended: they have dropped their share of the place.
    fn forget(&mut self) {
        self.taken.retain(|place| Arc::strong_count(place) > 1);
        self.taken.reserve(self.taken.len().max(BATCH));
    }

    /// Waits for a place.
    async fn wait(&mut self, grace: Duration) -> OwnedSemaphorePermit {
        loop {
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                return permit;
            }
            let pause = self.make(grace);
            if let Ok(Ok(permit)) = timeout(pause, Arc::clone(&self.free).acquire_owned()).await {
                return permit;
            }
        }
    }

    /// Tells some connections to leave, if any may. Returns the time after which to call again.
    fn make(&mut self, grace: Duration) -> Duration {
        self.forget();
        let mut next = grace;
        let mut may_leave: Vec<(u8, Duration, &Place)> = Vec::new();
        for place in self.taken.iter().filter(|place| !place.leaves()) {
            let (phase, age) = place.phase();
            let (class, least) = match phase {
                Phase::Idle => (2, Duration::ZERO),
                Phase::Reading => (1, grace),
                Phase::Writing => (0, 4 * grace),
                Phase::Answering => continue,
            };
            if age < least {
                next = next.min(least - age);
            } else {
                may_leave.push((class, age, &**place));
            }
        }
        if may_leave.is_empty() {
            return next.max(Duration::from_millis(1));
        }
        may_leave.sort_unstable_by_key(|&(class, age, _)| Reverse((class, age)));
        let batch = self.taken.len().div_ceil(BATCH);
        may_leave.iter().take(batch).for_each(|(.., place)| place.leave());
        PAUSE
    }
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

    const SOON: Duration = Duration::from_millis(400);
    const LARGE: usize = 32 << 20;

    /// A server for four clients.
    fn with_server(act: impl FnOnce(SocketAddr)) {
        with_lingering(SOON, act);
    }

    /// A server for four clients, and one more that may linger.
    fn with_lingering(linger: Duration, act: impl FnOnce(SocketAddr)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let answer = |request: Request| async move {
            let large = request.path == "/large";
            Response::new("text/plain", if large { "x".repeat(LARGE) } else { "well".to_owned() })
        };
        let refuse = |why: Refused| Response {
            status: why.status,
            ..Response::new("text/plain", why.message)
        };
        let times = Times { head: SOON, response: SOON, idle: SOON, linger };
        let limits = Limits { most: 4, lingering: 1, grace: SOON / 4, times };
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(serve(listener, answer, refuse, limits));
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

    fn rest(stream: &mut TcpStream) -> String {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        String::from_utf8(rest).unwrap()
    }

    #[test]
    fn all_who_ask_at_once_are_answered() {
        with_server(|address| {
            let all = (0..200).map(|_| {
                let mut stream = connect(address);
                ask(&mut stream, "/");
                stream
            });
            for mut stream in all.collect::<Vec<_>>() {
                assert!(answer(&mut stream).starts_with("HTTP/1.1 200"));
            }
        });
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
            // The first clients lost their places, and the response says why.
            assert!(rest(&mut slow[0]).starts_with("HTTP/1.1 503"));
        });
    }

    #[test]
    fn clients_that_linger_keep_no_place() {
        // A client that left would keep its place for longer than `connect` waits.
        with_lingering(Duration::from_secs(100), |address| {
            let mut silent: Vec<_> = (0..12).map(|_| connect(address)).collect();
            let mut honest = connect(address);
            ask(&mut honest, "/");
            assert!(answer(&mut honest).starts_with("HTTP/1.1 200"));
            assert!(rest(&mut silent[0]).starts_with("HTTP/1.1 503"));
        });
    }

    #[test]
    fn one_search_tells_a_batch_to_leave_and_the_longest_silent_first() {
        let start = Instant::now() - Duration::from_secs(9);
        let mut room = Room { free: Arc::new(Semaphore::new(0)), taken: Vec::new() };
        room.taken.extend((0..2048).map(|_| Arc::new(Place::new(start))));
        let held = room.taken.clone();
        let leaving = || held.iter().filter(|place| place.leaves()).count();
        room.make(Duration::from_secs(100));
        assert_eq!(leaving(), 0, "within their time");
        for batch in 1..=BATCH {
            assert_eq!(room.make(Duration::ZERO), PAUSE);
            assert_eq!(leaving(), 64 * batch);
        }
        assert!(room.make(Duration::ZERO) < PAUSE);
        // The two oldest of 40 connections leave.
        let start = Instant::now();
        room.taken = (0..40)
            .map(|_| {
                std::thread::sleep(Duration::from_millis(2));
                Arc::new(Place::new(start))
            })
            .collect();
        let held = room.taken.clone();
        room.make(Duration::ZERO);
        let left: Vec<_> = (0..40).filter(|&number| held[number].leaves()).collect();
        assert_eq!(left, [0, 1]);
    }

    #[test]
    fn connections_that_have_ended_take_no_memory() {
        let start = Instant::now();
        let mut room = Room { free: Arc::new(Semaphore::new(4)), taken: Vec::new() };
        let mut open = Vec::new();
        for number in 0..100_000 {
            let place = Arc::new(Place::new(start));
            room.enter(&place);
            // A hundred stay, the others end at once.
            if number % 1_000 == 0 {
                open.push(place);
            }
            assert!(room.taken.len() <= 4 * BATCH + 4 * open.len(), "{}", room.taken.len());
        }
        let held = |place| room.taken.iter().any(|taken| Arc::ptr_eq(taken, place));
        assert!(open.iter().all(held));
    }

    #[test]
    fn a_head_that_drips_in_is_not_awaited_and_one_who_asks_again_may_stay() {
        with_server(|address| {
            let begun = std::time::Instant::now();
            let mut busy = connect(address);
            let mut slow = connect(address);
            slow.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let (mut closed, mut said) = (None, [0; 64]);
            while begun.elapsed() < 3 * SOON && closed.is_none() {
                ask(&mut busy, "/");
                answer(&mut busy);
                let _ = slow.write_all(b"G");
                if matches!(slow.read(&mut said), Ok(1..)) {
                    closed = Some(begun.elapsed());
                }
                std::thread::sleep(SOON / 10);
            }
            let closed = closed.expect("the slow one is sent away");
            assert!(closed >= SOON / 2, "{closed:?}");
            assert!(said.starts_with(b"HTTP/1.1 408"), "{said:?}");
        });
    }

    #[test]
    fn an_answer_that_nobody_takes_is_given_up() {
        with_server(|address| {
            let mut stream = connect(address);
            ask(&mut stream, "/large");
            std::thread::sleep(3 * SOON);
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

    #[test]
    fn slow_readers_make_room_for_others() {
        with_server(|address| {
            let mut slow: Vec<_> = (0..4).map(|_| connect(address)).collect();
            slow.iter_mut().for_each(|stream| ask(stream, "/large"));
            let mut honest = connect(address);
            ask(&mut honest, "/");
            assert!(answer(&mut honest).starts_with("HTTP/1.1 200"));
        });
    }
}
