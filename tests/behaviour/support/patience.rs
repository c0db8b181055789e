//! How long a test waits for what must happen, on a machine that may be busy or stand still.
//!
//! A limit in seconds fails a correct program when its process is suspended, and on a busy machine. A [`Patience`] therefore
//! counts *turns*: a turn is a tenth of a second in which this process could have gone on. However long the process stood
//! still, it was one turn. Every wait of the tests goes through this file: it waits for an event, turn by turn, and panics
//! when the turns are used up, which only a failing test ever sees.
//!
//! Nothing here measures a program. A test that asserts on the system clock asserts lower bounds and order.
//!
//! The file is a module of every test binary that waits, also of other packages and of the crate's own tests.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::panic,
    reason = "each test binary uses a part of it, in real time"
)]

use std::{
    fmt::Display,
    process,
    sync::mpsc::{Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

/// The longest span that counts, however much time has passed.
pub const TURN: Duration = Duration::from_millis(100);

/// How many turns a test waits for one event.
const TURNS: u32 = 900;

/// A limit that is given to a call of the library or of the system, which measures it by its own clock: far longer than any
/// machine stands still.
pub const LONG: Duration = Duration::from_secs(600);

/// A limit that counts the time in which this process could go on.
#[derive(Debug)]
pub struct Patience {
    left: Duration,
    looked: Instant,
}

impl Patience {
    /// Returns the patience of one event.
    pub fn new() -> Self {
        Self::of(TURN * TURNS)
    }

    /// Returns a patience of this length.
    pub fn of(span: Duration) -> Self {
        Self { left: span, looked: Instant::now() }
    }

    /// Counts what has passed since the last look, at most one turn, and returns `true` as long as some is left.
    pub fn lasts(&mut self) -> bool {
        let now = Instant::now();
        self.left = self.left.saturating_sub((now - self.looked).min(TURN));
        self.looked = now;
        !self.left.is_zero()
    }

    /// The same, and panics with what did not happen.
    #[track_caller]
    pub fn go_on(&mut self, what: impl Display) {
        assert!(self.lasts(), "not within {TURNS} turns of {TURN:?}: {what}");
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self::new()
    }
}

/// Ends this process with that code if the patience is used up before the process ends by itself.
pub fn exit_at_last(code: i32) {
    thread::spawn(move || {
        let mut patience = Patience::new();
        while patience.lasts() {
            thread::sleep(TURN);
        }
        process::exit(code);
    });
}

/// Waits for a condition that has no event.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let mut patience = Patience::new();
    while !condition() {
        patience.go_on(what);
        thread::yield_now();
    }
}

/// Takes what a channel gets: [`Receiver::recv`], with patience.
#[track_caller]
pub fn receive<T>(from: &Receiver<T>, what: &str) -> T {
    next_of(from, what).unwrap_or_else(|| panic!("every sender is gone: {what}"))
}

/// The same, or `None` when every sender is gone.
#[track_caller]
pub fn next_of<T>(from: &Receiver<T>, what: impl Display) -> Option<T> {
    let mut patience = Patience::new();
    loop {
        match from.recv_timeout(TURN) {
            Ok(value) => return Some(value),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => patience.go_on(&what),
        }
    }
}
