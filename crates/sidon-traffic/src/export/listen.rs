//! Datagrams from any number of sockets, in the order in which they were taken.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

/// Datagrams that may wait to be looked at; more wait in the kernel, and are dropped there.
const QUEUE: usize = 256;
/// Bytes that the kernel is asked to keep for a socket: exporters send in bursts.
const ROOM: u32 = 8 << 20;
/// How often a thread looks whether it is to end.
const PAUSE: Duration = Duration::from_millis(200);

/// What somebody sent.
#[derive(Debug)]
pub struct Datagram {
    /// Who.
    pub from: SocketAddr,
    /// What.
    pub bytes: Vec<u8>,
}

/// Sockets that are bound, each with a thread once started.
#[derive(Debug, Default)]
pub struct Listener {
    sockets: Vec<UdpSocket>,
    incoming: Option<Receiver<Datagram>>,
    threads: Vec<thread::JoinHandle<()>>,
    over: Arc<AtomicBool>,
}

impl Listener {
    /// Binds a socket for each address and starts no thread yet.
    pub fn bind<A: ToSocketAddrs>(addresses: &[A]) -> io::Result<Self> {
        let mut listener = Listener::default();
        for address in addresses {
            let socket = UdpSocket::bind(address)?;
            crate::live::widen(&socket, ROOM);
            socket.set_read_timeout(Some(PAUSE))?;
            listener.sockets.push(socket);
        }
        Ok(listener)
    }

    /// The addresses that it is bound to, while it is not started.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }

    /// Begins to receive.
    pub fn start(&mut self) {
        let (sender, incoming) = sync_channel(QUEUE);
        self.incoming.get_or_insert(incoming);
        for socket in self.sockets.drain(..) {
            let (sender, over) = (sender.clone(), Arc::clone(&self.over));
            self.threads.push(thread::spawn(move || receive(&socket, &sender, &over)));
        }
    }

    /// The next datagram; `None` if none came in this time.
    pub fn next(&self, wait: Duration) -> Option<Datagram> {
        self.incoming.as_ref()?.recv_timeout(wait).ok()
    }
}

fn receive(socket: &UdpSocket, sender: &SyncSender<Datagram>, over: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while !over.load(Ordering::Relaxed) {
        // An error is a pause that ran out, or of one datagram alone.
        if let Ok((length, from)) = socket.recv_from(&mut buffer)
            && sender.send(Datagram { from, bytes: buffer[..length].to_vec() }).is_err()
        {
            return;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Nobody takes what is still sent, so that no thread waits for that.
        self.incoming = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
