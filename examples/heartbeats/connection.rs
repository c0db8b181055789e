//! One client: the stream that it sends heartbeats on, and how many have come.

use std::{
    fmt,
    io::{self, Read},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::atomic::{AtomicUsize, Ordering},
};

pub(crate) struct Connection {
    peer: SocketAddr,
    stream: TcpStream,
    beats: AtomicUsize,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        Ok(Self { peer: stream.peer_addr()?, stream, beats: AtomicUsize::new(0) })
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Reads until the stream ends, or until `beat` returns `false`, which is called after each heartbeat.
    pub(crate) fn listen(&self, beat: impl Fn() -> bool) {
        // The input is examined piece by piece: a line without an end is no heartbeat, and takes no
        // memory.
        let (mut piece, mut stream) = ([0; 1024], &self.stream);
        loop {
            match stream.read(&mut piece) {
                Ok(0) => return,
                Ok(count) => {
                    let lines = piece[..count].iter().filter(|byte| **byte == b'\n').count();
                    self.beats.fetch_add(lines, Ordering::Relaxed);
                    if lines > 0 && !beat() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    pub(crate) fn hang_up(&self) {
        // A connection that the peer has reset meanwhile cannot be shut down, and need not be.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The number of heartbeats.
impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.beats.load(Ordering::Relaxed) {
            1 => f.write_str("1 heartbeat"),
            beats => write!(f, "{beats} heartbeats"),
        }
    }
}
