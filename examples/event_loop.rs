//! A server in one thread: an event loop of mio, and a driven executor for all that is timed.
//!
//! The loop sleeps in mio for as long as the executor says, and runs what is due when it wakes. A waker of mio
//! ends its sleep if another thread submits something that is due before. A guest hears its words again, and is
//! shown out when it has been silent for too long; it has a thread of its own, the only one that is started.
//!
//! ```text
//! cargo run --example event_loop
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

#[allow(dead_code, reason = "other examples use the rest")]
mod common;

use std::{
    error::Error,
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr},
    process::ExitCode,
    sync::{Arc, mpsc},
    task::{Wake, Waker},
    thread,
    time::Duration,
};

use mio::{
    Events, Interest, Poll, Token,
    net::{TcpListener, TcpStream},
};
use punctual::{DrivenExecutor, Handle, ScheduledFuture, ScheduledThreadPoolExecutor, trigger};

use crate::common::{complain, end, say};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const WAKE: Token = Token(0);
const DOOR: Token = Token(1);
const GUEST: Token = Token(2);

const BEAT: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_millis(120);

/// Ends the sleep of the loop, as a waker of the executor.
struct LoopWaker(mio::Waker);

impl Wake for LoopWaker {
    fn wake(self: Arc<Self>) {
        self.0.wake().unwrap_or_else(|error| complain(format_args!("error: no wake-up: {error}")));
    }
}

struct Guest {
    stream: TcpStream,
    silence: ScheduledFuture<()>,
}

impl Guest {
    /// Repeats what it says, and is patient again.
    fn listen(&mut self) -> io::Result<()> {
        let mut words = [0; 64];
        loop {
            match self.stream.read(&mut words) {
                Ok(0) => return Ok(()),
                Ok(length) => {
                    self.silence.reschedule(PATIENCE);
                    self.stream.write_all(&words[..length])?;
                    let words = String::from_utf8_lossy(&words[..length]);
                    say(format_args!("it says {}", words.trim()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

fn main() -> ExitCode {
    end(serve())
}

fn serve() -> Result<()> {
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(16));
    let mut executor: DrivenExecutor = ScheduledThreadPoolExecutor::builder().build_driven()?;
    let waker = LoopWaker(mio::Waker::new(poll.registry(), WAKE)?);
    executor.set_waker(Waker::from(Arc::new(waker)));

    let mut door = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    poll.registry().register(&mut door, DOOR, Interest::READABLE)?;
    let (address, handle) = (door.local_addr()?, executor.handle());
    let visitor = thread::spawn(move || visit(address, &handle));

    // A task runs in this thread, but has nothing of what the loop has: it tells the loop what to do.
    let (end, ended) = mpsc::channel();
    let mut number = 0;
    executor.repeat(trigger::every(BEAT).first_in(BEAT), move || {
        number += 1;
        say(format_args!("beat {number}"));
    })?;
    let mut guest: Option<Guest> = None;
    loop {
        executor.run_due();
        if ended.try_recv().is_ok() {
            say(format_args!("the guest was silent for {PATIENCE:?}"));
            guest.take().map_or(Ok(()), |guest| guest.stream.shutdown(Shutdown::Both))?;
            executor.shutdown();
        }
        // The only place where this thread sleeps.
        if executor.is_terminated() {
            break;
        }
        let slept = poll.poll(&mut events, executor.time_until_next());
        slept.or_else(
            |error| if error.kind() == ErrorKind::Interrupted { Ok(()) } else { Err(error) },
        )?;
        for event in &events {
            match (event.token(), &mut guest) {
                (DOOR, None) => {
                    let (mut stream, end) = (door.accept()?.0, end.clone());
                    poll.registry().register(&mut stream, GUEST, Interest::READABLE)?;
                    let silence =
                        executor.schedule(PATIENCE, move || end.send(()).unwrap_or_default())?;
                    guest = Some(Guest { stream, silence });
                    say(format_args!("a guest has come"));
                }
                (GUEST, Some(guest)) => guest.listen()?,
                _ => {}
            }
        }
    }
    say(format_args!("the executor has terminated"));
    visitor.join().unwrap_or_else(|_| Err("the visitor has panicked".into()))
}

/// A guest, in a thread of its own. It speaks twice, and has the loop say something as well.
fn visit(address: SocketAddr, executor: &Handle) -> Result<()> {
    let (mut stream, mut heard) = (std::net::TcpStream::connect(address)?, [0; 64]);
    for words in ["good morning\n", "how do you do\n"] {
        stream.write_all(words.as_bytes())?;
        stream.read_exact(&mut heard[..words.len()])?;
    }
    executor.execute(|| say(format_args!("another thread says that it was heard")))?;
    while stream.read(&mut heard)? > 0 {}
    Ok(())
}
