//! A cache on the command line: entries expire, and reading one refreshes it.
//!
//! It reads commands from standard input, one per line, and answers each at once. It announces an
//! entry when it expires, whatever is typed meanwhile.
//!
//! ```text
//! set KEY SECONDS VALUE   keeps VALUE until nobody has asked for KEY for so many seconds
//! get KEY                 shows it, and its time begins anew
//! del KEY                 removes it
//! list                    shows all, in the order in which they will expire
//! quit                    ends at once
//! ```
//!
//! For a line that cannot be understood it reports the error, and reads the next. When the input
//! ends, no entry can be refreshed any more: the program waits until the last one has expired.
//! Without input, or on a terminal, it runs a demonstration of two seconds instead; call it with
//! `-` to type commands.
//!
//! ```text
//! cargo run --example expiring_cache
//! cargo run --example expiring_cache -- -
//! printf 'set tea 1 hot\nget tea\n' | cargo run --example expiring_cache
//! ```
//!
//! The interesting part is `cache.rs`: a cache for any program, made of a map, a
//! [`DelayQueue`](punctual::DelayQueue) and one thread. [`reset`](punctual::DelayQueue::reset)
//! refreshes an entry: no entry is queued twice, and no thread polls. An executor types the
//! demonstration's commands.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

mod cache;
mod command;
#[allow(dead_code, reason = "other examples use the rest")]
#[path = "../common/mod.rs"]
mod common;

use std::{
    error::Error,
    fmt,
    io::{self, BufRead, IsTerminal},
    ops::ControlFlow,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use lexopt::Arg;
use punctual::{Clock, ScheduledThreadPoolExecutor};

use crate::{cache::Cache, command::Command};

const USAGE: &str = "\
Usage: expiring_cache [-]

Reads from standard input: set KEY SECONDS VALUE, get KEY, del KEY, list, quit.
Runs a demonstration if that is empty or a terminal.

  -   read commands, also from a terminal";

/// The demonstration's input, and when it is typed, in milliseconds.
const DEMO: [(u64, &str); 10] = [
    (0, "set tea 0.8 hot"),
    (0, "set news 0.4 today's"),
    (0, "set stamp 60 rare"),
    (100, "list"),
    (300, "get news"),
    (500, "get news"),
    (600, "del stamp"),
    (1000, "get tea"),
    (1100, "set tea 0.4 hot again"),
    (1200, "list"),
];

fn main() -> ExitCode {
    match common::options(USAGE, reads_terminal) {
        Ok(reads_terminal) => common::end(run(reads_terminal)),
        Err(code) => code,
    }
}

/// Reads the command line; `None` if only the usage is asked for.
fn reads_terminal(args: &mut lexopt::Parser) -> Result<Option<bool>, String> {
    let mut reads_terminal = false;
    while let Some(arg) = common::next(args)? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            Arg::Value(value) if value == "-" => reads_terminal = true,
            arg => return Err(common::unknown(arg)),
        }
    }
    Ok(Some(reads_terminal))
}

fn run(reads_terminal: bool) -> Result<(), Box<dyn Error + Send + Sync>> {
    let session = Session::start()?;
    if reads_terminal {
        return session.read(&mut io::stdin().lock());
    }
    let is_empty = || io::stdin().lock().fill_buf().map(<[u8]>::is_empty);
    if io::stdin().is_terminal() || is_empty()? {
        session.demonstrate()
    } else {
        session.read(&mut io::stdin().lock())
    }
}

/// A cache, and the session that talks to it.
struct Session {
    begun: Instant,
    cache: Cache<Arc<str>, String>,
}

impl Session {
    fn start() -> io::Result<Self> {
        let begun = Instant::now();
        let cache = Cache::start(Clock::system(), move |name: Arc<str>, value: String| {
            say(begun, format_args!("evicted {name}, which was {value:?}"));
        })?;
        Ok(Self { begun, cache })
    }

    /// Executes the lines until they end or one is `quit`.
    fn read(self, input: &mut dyn BufRead) -> Result<(), Box<dyn Error + Send + Sync>> {
        for (number, line) in (1..).zip(input.split(b'\n')) {
            match common::typed(&line?, number) {
                Ok(line) if self.execute(line).is_break() => return Ok(()),
                Ok(_) => {}
                Err(error) => say(self.begun, format_args!("error: {error}")),
            }
        }
        self.cache.finish();
        Ok(())
    }

    fn demonstrate(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        common::say(format_args!("A demonstration; --help says how to type commands.\n"));
        let executor = ScheduledThreadPoolExecutor::new(1);
        let session = Arc::new(self);
        for (millis, line) in DEMO {
            let session = Arc::clone(&session);
            executor.schedule(Duration::from_millis(millis), move || {
                say(session.begun, format_args!("> {line}"));
                session.execute(line)
            })?;
        }
        executor.close()?;
        // The tasks have run, and their shares of the session are gone with them.
        if let Some(session) = Arc::into_inner(session) {
            session.cache.finish();
        }
        Ok(())
    }

    fn execute(&self, line: &str) -> ControlFlow<()> {
        let answer = match Command::parse(line) {
            Ok(None) => return ControlFlow::Continue(()),
            Ok(Some(Command::Quit)) => return ControlFlow::Break(()),
            Ok(Some(Command::List)) => {
                self.list();
                return ControlFlow::Continue(());
            }
            Ok(Some(Command::Set { name, lifetime, value })) => {
                match self.cache.set(name, lifetime, value) {
                    Ok(None) => "set".to_owned(),
                    Ok(Some(old)) => format!("set, in the place of {old:?}"),
                    Err(error) => format!("error: {error}"),
                }
            }
            Ok(Some(Command::Get(name))) => match self.cache.get(&name) {
                Some(value) => format!("{name} is {value:?}"),
                None => format!("there is no {name}"),
            },
            Ok(Some(Command::Del(name))) => match self.cache.remove(&name) {
                Some(value) => format!("removed {name}, which was {value:?}"),
                None => format!("there is no {name}"),
            },
            Err(error) => format!("error: {error}"),
        };
        say(self.begun, format_args!("{answer}"));
        ControlFlow::Continue(())
    }

    fn list(&self) {
        let listed = self.cache.list();
        if listed.is_empty() {
            say(self.begun, format_args!("the cache is empty"));
        }
        let now = Instant::now();
        for entry in listed {
            let left = match entry.expires {
                Some(expires) => format!("{:.1?} left", expires.saturating_duration_since(now)),
                None => "for ever".to_owned(),
            };
            say(self.begun, format_args!("{} is {:?}, {left}", entry.name, entry.value));
        }
    }
}

/// Writes a line with the time since the start.
fn say(begun: Instant, line: fmt::Arguments<'_>) {
    common::say(format_args!("{:8.3}  {line}", begun.elapsed().as_secs_f64()));
}
