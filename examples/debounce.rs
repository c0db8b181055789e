//! A notepad that saves when typing stops.
//!
//! Each line of standard input is added to a note. The note is saved half a second after the last line, and two
//! seconds after the first line that is not saved yet, even if more lines come all the time. At the end of the input
//! it is saved at once.
//!
//! ```text
//! cargo run --example debounce -- note.txt
//! for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.3; done | cargo run --example debounce -- note.txt
//! ```
//!
//! If the note cannot be saved, the program reports it, and tries again after the next line.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

#[allow(dead_code, reason = "other examples use the rest")]
mod common;

use std::{
    error::Error,
    fs,
    io::{self, BufRead},
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lexopt::Arg;
use punctual::{FailurePolicy, FailureReport, ScheduledThreadPoolExecutor};

use crate::common::{complain, say};

const USAGE: &str = "\
Usage: debounce FILE

Adds the lines of standard input to a file, which it saves when no more lines come for half a second.";

const QUIET: Duration = Duration::from_millis(500);
const MAX_WAIT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    match common::options(USAGE, parse) {
        Ok(path) => common::end(edit(path)),
        Err(code) => code,
    }
}

/// Returns the file; `None` if only the usage is asked for.
fn parse(args: &mut lexopt::Parser) -> Result<Option<PathBuf>, String> {
    let mut path = None;
    while let Some(arg) = common::next(args)? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            Arg::Value(value) if path.is_none() => path = Some(PathBuf::from(value)),
            arg => return Err(common::unknown(arg)),
        }
    }
    path.map(Some).ok_or_else(|| "there is no FILE".to_owned())
}

fn edit(path: PathBuf) -> Result<(), Box<dyn Error + Send + Sync>> {
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(1)
        .failure_handler(|report: &FailureReport<'_>| {
            complain(format_args!("not saved: {}", report.message()));
        })
        .build()?;
    let note = Arc::new(Mutex::new(Note::open(path)?));
    let shared = Arc::clone(&note);
    let save = executor
        .task()
        .on_failure(FailurePolicy::resume())
        .debounce(QUIET, move || lock(&shared).save())?
        .max_wait(MAX_WAIT);
    for (number, line) in (1..).zip(io::stdin().lock().split(b'\n')) {
        lock(&note).add(common::typed(&line?, number)?);
        save.call();
    }
    // A run that waits is cancelled. One that has begun holds the lock until the note is saved.
    save.task_handle().cancel();
    Ok(lock(&note).save()?)
}

struct Note {
    path: PathBuf,
    text: String,
    /// How many lines have come since it was saved.
    unsaved: usize,
}

impl Note {
    fn open(path: PathBuf) -> Result<Self, String> {
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self { path, text, unsaved: 0 }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { path, text: String::new(), unsaved: 0 })
            }
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn add(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.unsaved += 1;
    }

    /// Replaces the file as a whole, so that no reader ever sees half of it.
    fn save(&mut self) -> Result<(), String> {
        if self.unsaved == 0 {
            return Ok(());
        }
        let new = self.path.with_extension("new");
        let written = fs::write(&new, &self.text).and_then(|()| fs::rename(&new, &self.path));
        written.map_err(|error| format!("{}: {error}", self.path.display()))?;
        say(format_args!("saved, with {} more", self.unsaved));
        self.unsaved = 0;
        Ok(())
    }
}

fn lock(note: &Mutex<Note>) -> MutexGuard<'_, Note> {
    note.lock().unwrap_or_else(PoisonError::into_inner)
}
