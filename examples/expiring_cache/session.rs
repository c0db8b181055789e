//! The commands and their answers: of a person, a script, or the demonstration.

use std::{
    error::Error,
    fmt,
    io::{self, BufRead},
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use punctual::{Clock, ScheduledThreadPoolExecutor};

use crate::{cache::Cache, command::Command, common};

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

/// A cache, and the session that talks to it.
pub(crate) struct Session {
    begun: Instant,
    cache: Cache<Arc<str>, String>,
}

impl Session {
    pub(crate) fn start() -> io::Result<Self> {
        let begun = Instant::now();
        let cache = Cache::start(Clock::system(), move |name: Arc<str>, value: String| {
            say(begun, format_args!("evicted {name}, which was {value:?}"));
        })?;
        Ok(Self { begun, cache })
    }

    /// Executes the lines until they end or one is `quit`.
    pub(crate) fn read(self, input: &mut dyn BufRead) -> Result<(), Box<dyn Error + Send + Sync>> {
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

    pub(crate) fn demonstrate(self) -> Result<(), Box<dyn Error + Send + Sync>> {
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
        for (name, value, expires) in listed {
            let left = match expires {
                Some(expires) => format!("{:.1?} left", expires.saturating_duration_since(now)),
                None => "for ever".to_owned(),
            };
            say(self.begun, format_args!("{name} is {value:?}, {left}"));
        }
    }
}

/// Writes a line with the time since the start.
fn say(begun: Instant, line: fmt::Arguments<'_>) {
    common::say(format_args!("{:8.3}  {line}", begun.elapsed().as_secs_f64()));
}
