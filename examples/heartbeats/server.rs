//! A TCP server that disconnects clients that are silent for too long.
//!
//! Each connection has a thread that reads, and an element in a [`DelayQueue`]. Each line read
//! resets the element; one thread takes expired elements and shuts their connections down, which
//! ends their readers. Whether a connection was left by its client or cut by the server depends on
//! which thread gets the element out of the queue: the reader at the end of the stream, or the
//! thread that cuts.

use std::{
    fmt, io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use punctual::{DelayQueue, delay_queue::Key};

use crate::{common, connection::Connection, tally::Tally};

/// How long to wait when no connection can be accepted, as when there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Server {
    begun: Instant,
    listener: TcpListener,
    address: SocketAddr,
    timeout: Duration,
    connections: DelayQueue<Arc<Connection>>,
    is_stopped: AtomicBool,
    tally: Tally,
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
            tally: Tally::default(),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
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
                    let name = format!("{}", connection.peer());
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
                queued.element.hang_up();
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
        let connection = Arc::new(Connection::new(stream)?);
        self.tally.accepted.fetch_add(1, Ordering::Relaxed);
        self.say(format_args!("{} connected", connection.peer()));
        let key = self
            .connections
            .insert(self.timeout, Arc::clone(&connection))
            .map_err(|refused| io::Error::other(refused.error()))?;
        Ok((connection, key))
    }

    /// Serves until the stream ends, which the peer causes, or the thread that cuts.
    fn serve(&self, connection: &Connection, key: Key) {
        connection.listen(|| self.connections.reset(key, self.timeout));
        if self.connections.remove(key).is_some() {
            self.tally.left.fetch_add(1, Ordering::Relaxed);
            self.say(format_args!("{} left after {connection}", connection.peer()));
        }
    }

    fn cut(&self, connection: &Connection) {
        self.tally.cut.fetch_add(1, Ordering::Relaxed);
        self.say(format_args!(
            "{} cut after {connection}: silent for {:?}",
            connection.peer(),
            self.timeout
        ));
        connection.hang_up();
    }

    /// Writes a line with the time since the start.
    pub(crate) fn say(&self, line: fmt::Arguments<'_>) {
        common::say(format_args!("{:8.3}  {line}", self.begun.elapsed().as_secs_f64()));
    }
}
