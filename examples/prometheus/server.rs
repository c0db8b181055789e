//! The smallest server that can be scraped: one page, one connection at a time.
//!
//! It reads the head of a request, answers, and closes the connection. A client has [`LIMIT`] for all of it,
//! so that one who is silent, or sends a byte a second, keeps the others waiting for no longer than
//! that.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// How long a client may take to send its request, and to take the answer.
const LIMIT: Duration = Duration::from_secs(2);
/// How long the head of a request may be; Prometheus sends some 300 bytes.
const LONGEST_HEAD: usize = 8 << 10;
/// How long to wait when no connection can be accepted, as when there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The text format that the page is in.
const PAGE: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    is_stopped: AtomicBool,
}

impl Server {
    pub(crate) fn bind(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, is_stopped: AtomicBool::new(false) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the page that `render` returns until the server is [stopped](Self::stop).
    pub(crate) fn run(&self, render: impl Fn() -> String) -> io::Result<()> {
        for stream in self.listener.incoming() {
            if self.is_stopped.load(Ordering::SeqCst) {
                break;
            }
            match stream {
                // A client that has gone is no reason to stop.
                Ok(stream) => drop(answer(&stream, &render)),
                Err(_) => thread::sleep(ACCEPT_PAUSE),
            }
        }
        Ok(())
    }

    /// Ends [`run`](Self::run), from any thread.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // The server waits for a connection; this is one.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let _ = TcpStream::connect_timeout(&address, LIMIT);
    }
}

fn answer(stream: &TcpStream, render: &impl Fn() -> String) -> io::Result<()> {
    let head = read_head(stream)?;
    let request = head.as_deref().and_then(|head| head.lines().next()).unwrap_or_default();
    let words: Vec<_> = request.split(' ').collect();
    match words[..] {
        ["GET", path, version] if version.starts_with("HTTP/1.") => {
            if path.split('?').next() == Some("/metrics") {
                respond(stream, "200 OK", PAGE, render())
            } else {
                respond(stream, "404 Not Found", PLAIN, "The page is /metrics.\n")
            }
        }
        [_, _, version] if version.starts_with("HTTP/1.") => {
            respond(stream, "405 Method Not Allowed\r\nAllow: GET", PLAIN, "Only GET is served.\n")
        }
        _ => respond(stream, "400 Bad Request", PLAIN, "This is no request of HTTP/1.\n"),
    }
}

/// Returns the head of a request; `None` if it is too long, or no text.
fn read_head(mut stream: &TcpStream) -> io::Result<Option<String>> {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    let end = Instant::now() + LIMIT;
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => head.extend_from_slice(&part[..count]),
            // A read with a limit ends so if the process is suspended and continued.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if head.len() > LONGEST_HEAD {
            return Ok(None);
        }
    }
    Ok(String::from_utf8(head).ok())
}

fn respond(
    mut stream: &TcpStream,
    status: &str,
    content: &str,
    body: impl Display,
) -> io::Result<()> {
    let body = body.to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all((head + &body).as_bytes())?;
    stream.shutdown(Shutdown::Write)
}
