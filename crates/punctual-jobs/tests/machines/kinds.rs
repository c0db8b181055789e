//! The kinds of jobs that machines run.

use std::path::PathBuf;

use punctual_jobs::Job;
use serde::{Deserialize, Serialize};

/// Says its number, after it has worked for a while.
#[derive(Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) number: i64,
    pub(crate) millis: u64,
}

impl Job for Work {
    const NAME: &'static str = "work";
}

/// A kind that says how often it is tried, and has a text.
#[derive(Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
}

impl Job for Named {
    const NAME: &'static str = "named";
    const MAX_ATTEMPTS: u32 = 3;
}

/// Ends its process.
#[derive(Serialize, Deserialize)]
pub(crate) struct Abort {}

impl Job for Abort {
    const NAME: &'static str = "abort";
}

/// Runs until its token is cancelled, and then says so.
#[derive(Serialize, Deserialize)]
pub(crate) struct Wait {
    pub(crate) number: i64,
}

impl Job for Wait {
    const NAME: &'static str = "wait";
}

/// A job that is sent at each tick.
#[derive(Serialize, Deserialize)]
pub(crate) struct Tick {}

impl Job for Tick {
    const NAME: &'static str = "tick";
}

/// Works for a while, whatever its token says.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stubborn {
    pub(crate) number: i64,
    pub(crate) millis: u64,
    pub(crate) fails: bool,
}

impl Job for Stubborn {
    const NAME: &'static str = "stubborn";
}

/// Runs until its test has said how the attempt ends, whatever its token says.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Directed {
    pub(crate) number: i64,
    /// The beginning of the path of a file for each attempt.
    pub(crate) place: PathBuf,
}

/// The word by which an attempt of a [`Directed`] job fails.
pub(crate) const FAILS: &str = "fails";

impl Directed {
    fn path(&self, attempt: u32) -> PathBuf {
        self.place.with_extension(format!("{}.{attempt}", self.number))
    }

    /// Has an attempt end, by this word.
    pub(crate) fn end(&self, attempt: u32, word: &str) {
        // Renamed, so that it is not read before it is written.
        let path = self.path(attempt);
        let begun = path.with_extension("begun");
        std::fs::write(&begun, word).unwrap();
        std::fs::rename(begun, path).unwrap();
    }

    /// In a handler: waits for the word.
    pub(crate) fn word_for(&self, attempt: u32) -> String {
        loop {
            if let Ok(word) = std::fs::read_to_string(self.path(attempt)) {
                return word;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Job for Directed {
    const NAME: &'static str = "directed";
}

/// How many jobs of the kind [`Rationed`] run at once.
pub(crate) const RATIONED_AT_ONCE: u32 = 3;

/// Works for a while, and so many at once.
#[derive(Serialize, Deserialize)]
pub(crate) struct Rationed {
    pub(crate) number: i64,
    pub(crate) millis: u64,
}

impl Job for Rationed {
    const NAME: &'static str = "rationed";
}

/// How many jobs of the kind [`Shared`] run at once of each limit key.
pub(crate) const SHARED_AT_ONCE: u32 = 2;

/// Works for a while, and so many of each limit key at once.
#[derive(Serialize, Deserialize)]
pub(crate) struct Shared {
    pub(crate) number: i64,
    pub(crate) millis: u64,
}

impl Job for Shared {
    const NAME: &'static str = "shared";
}

/// Works for a while. Its limits are those of the queue.
#[derive(Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) number: i64,
    pub(crate) millis: u64,
}

impl Job for Held {
    const NAME: &'static str = "held";
}

/// How many jobs of the kind [`Metered`] begin at once of each limit key, and after how many milliseconds another one may.
pub(crate) const METERED: (u32, u64) = (4, 100);

/// So many of each limit key begin in a window.
#[derive(Serialize, Deserialize)]
pub(crate) struct Metered {
    pub(crate) number: i64,
}

impl Job for Metered {
    const NAME: &'static str = "metered";
}
