//! A TCP server that disconnects clients that are silent for too long.
//!
//! Each connection has a thread that reads, and an element in a [`DelayQueue`]. Each line read
//! resets the element; one thread takes expired elements and shuts their connections down, which
//! ends their readers. Whether a connection was left by its client or cut by the server depends on
//! which thread gets the element out of the queue: the reader at the end of the stream, or the
//! thread that cuts.

use std::{
    fmt,
    io::{self, Read},
    net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use punctual::{DelayQueue, delay_queue::Key};

use crate::common;

/// How long to wait when no connection can be accepted, as when there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Server {
    begun: Instant,
    listener: TcpListener,
    address: SocketAddr,
    timeout: Duration,
    connections: DelayQueue<Arc<Connection>>,
    is_stopped: AtomicBool,
    accepted: AtomicUsize,
    left: AtomicUsize,
    cut: AtomicUsize,
}

struct Connection {
    peer: SocketAddr,
    stream: TcpStream,
    beats: AtomicUsize,
}

impl Server {
    pub(crate) fn bind(address: &str, timeout: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        Ok(Self {
            begun: Instant::now(),
            address: listener.local_addr()?,
            listener,
            timeout,
            connections: DelayQueue::new(),
            is_stopped: AtomicBool::new(false),
            accepted: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            cut: AtomicUsize::new(0),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the server is [stopped](Self::stop); then disconnects all clients, and returns
    /// when every connection has ended.
    pub(crate) fn run(&self) -> io::Result<()> {
        thread::scope(|scope| {
            thread::Builder::new().name("cutter".into()).spawn_scoped(scope, || {
                for expired in self.connections.expirations() {
                    self.cut(&expired.element);
                }
            })?;
            for stream in self.listener.incoming() {
                if self.is_stopped.load(Ordering::SeqCst) {
                    break;
                }
                let serve = |stream| {
                    let (connection, key) = self.admit(stream)?;
                    let name = format!("{}", connection.peer);
                    let serving = move || self.serve(&connection, key);
                    // If no thread can be started for it, the connection is cut when its time is
                    // over.
                    thread::Builder::new().name(name).spawn_scoped(scope, serving).map(drop)
                };
                if let Err(error) = stream.and_then(serve) {
                    self.say(format_args!("cannot serve a connection: {error}"));
                    thread::sleep(ACCEPT_PAUSE);
                }
            }
            self.connections.close();
            for queued in self.connections.remove_all() {
                let _ = queued.element.stream.shutdown(Shutdown::Both);
            }
            Ok(())
        })
    }

    /// Stops the server. This may be called from any thread, and more than once.
    pub(crate) fn stop(&self) {
        if !self.is_stopped.swap(true, Ordering::SeqCst) {
            let mut address = self.address;
            // A server that listens on every address cannot be reached at that address on every
            // system.
            match address {
                SocketAddr::V4(v4) if v4.ip().is_unspecified() => {
                    address.set_ip(Ipv4Addr::LOCALHOST.into());
                }
                SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
                    address.set_ip(Ipv6Addr::LOCALHOST.into());
                }
                _ => {}
            }
            // Wakes the thread that accepts.
            let _ = TcpStream::connect(address);
        }
    }

    fn admit(&self, stream: TcpStream) -> io::Result<(Arc<Connection>, Key)> {
        let peer = stream.peer_addr()?;
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.say(format_args!("{peer} connected"));
        let connection = Arc::new(Connection { peer, stream, beats: AtomicUsize::new(0) });
        let key = self
            .connections
            .insert(self.timeout, Arc::clone(&connection))
            .map_err(|refused| io::Error::other(refused.into_error()))?;
        Ok((connection, key))
    }

    /// Reads until the end of the stream, which the peer causes, or the thread that cuts.
    fn serve(&self, connection: &Connection, key: Key) {
        // The input is examined piece by piece: a line without an end is no heartbeat, and takes no
        // memory.
        let mut piece = [0; 1024];
        let mut stream = &connection.stream;
        loop {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => {
                    let lines = piece[..count].iter().filter(|byte| **byte == b'\n').count();
                    connection.beats.fetch_add(lines, Ordering::Relaxed);
                    if lines > 0 && !self.connections.reset(key, self.timeout) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if self.connections.remove(key).is_some() {
            self.left.fetch_add(1, Ordering::Relaxed);
            self.say(format_args!("{} left after {connection}", connection.peer));
        }
    }

    fn cut(&self, connection: &Connection) {
        self.cut.fetch_add(1, Ordering::Relaxed);
        self.say(format_args!(
            "{} cut after {connection}: silent for {:?}",
            connection.peer, self.timeout
        ));
        // A connection that the peer has reset meanwhile cannot be shut down, and need not be.
        let _ = connection.stream.shutdown(Shutdown::Both);
    }

    /// Writes a line with the time since the start.
    pub(crate) fn say(&self, line: fmt::Arguments<'_>) {
        common::say(format_args!("{:8.3}  {line}", self.begun.elapsed().as_secs_f64()));
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.beats.load(Ordering::Relaxed) {
            1 => f.write_str("1 heartbeat"),
            beats => write!(f, "{beats} heartbeats"),
        }
    }
}

/// The numbers of connections by how they ended.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [accepted, left, cut] =
            [&self.accepted, &self.left, &self.cut].map(|count| count.load(Ordering::Relaxed));
        let stopped = accepted - left - cut;
        write!(f, "{accepted} connections: {left} left, {cut} cut, {stopped} there at the end")
    }
}
