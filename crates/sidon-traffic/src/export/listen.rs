//! Receives datagrams from several sockets, in order of arrival.

use crate::threads::{self, NoThread};
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

/// Datagrams that may wait in the queue. More wait in the kernel, which drops those beyond its
/// buffer.
const QUEUE: usize = 256;
/// Bytes of a socket's receive buffer: exporters send in bursts.
const ROOM: u32 = 8 << 20;
/// How often a thread checks whether it must stop.
const PAUSE: Duration = Duration::from_millis(200);

/// A datagram and its sender.
#[derive(Debug)]
pub struct Datagram {
    /// The sender.
    pub from: SocketAddr,
    /// The payload.
    pub bytes: Vec<u8>,
}

/// Bound sockets, each with its thread once started.
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

    /// The bound addresses; empty once the threads have started.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }

    /// Starts one receiving thread per socket. A second call starts nothing.
    pub fn start(&mut self) -> Result<(), NoThread> {
        let (sender, incoming) = sync_channel(QUEUE);
        self.incoming.get_or_insert(incoming);
        for socket in self.sockets.drain(..) {
            let (sender, over) = (sender.clone(), Arc::clone(&self.over));
            let receiving = move || receive(&socket, &sender, &over);
            self.threads.push(threads::spawn("a receiver of flow records", receiving)?);
        }
        Ok(())
    }

    /// The next datagram; `None` if no datagram arrives within `wait`.
    pub fn next(&self, wait: Duration) -> Option<Datagram> {
        self.incoming.as_ref()?.recv_timeout(wait).ok()
    }
}

fn receive(socket: &UdpSocket, sender: &SyncSender<Datagram>, over: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while !over.load(Ordering::Relaxed) {
        // An error is a timeout, or concerns a single datagram: try again.
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
        // Dropping the receiver wakes threads that wait for room in the queue, so that they end.
        self.incoming = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
