//! The observable state of an executor, as data for `serde`.
//!
//! Most of it is plain: [`Statistics`](crate::Statistics), the states, the reasons and the report of a
//! shutdown derive their form where they are declared, and are read back as they were written. Two types
//! have a form of their own, which is here:
//!
//! * A **task id** is its text, `"2v-9qk0"`, in every format. The number would be exact as well, but a program
//!   in another language may read numbers as floating point, and loses the last digits of it.
//! * A **pending task** is the snapshot that it is. It is written and not read, because what is read could not
//!   hold the task that a [`PendingTask`] holds.
//!
//! An [`Instant`](std::time::Instant) means nothing in another process, so none is written. A pending task has
//! the delay that it had at the time of the snapshot, in the form that `serde` gives every `Duration`, which
//! is exact: a whole number of seconds and one of nanoseconds. A task that was never due has none. An estimate by the
//! wall clock would have looked more convenient, and would have been wrong after the next step of that
//! clock; a reader who wants one adds the delay to the time at which the snapshot was taken.
//!
//! The names of fields and variants are part of the interface: `docs/observing.md` lists them, and a test
//! compares that page with what is written. Fields may be added, and a reader has to ignore those that it
//! does not know.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{executor::PendingTask, id::TaskId, task::TaskState};

/// Writes the text that `Display` writes.
impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads the text that `Display` writes, as [`FromStr`](std::str::FromStr) does.
impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// A pending task, as it is written.
#[derive(Serialize)]
#[serde(rename = "PendingTask")]
struct Snapshot {
    id: TaskId,
    name: Option<Arc<str>>,
    state: TaskState,
    /// None if the task was never due.
    delay: Option<Duration>,
    run_count: u64,
    is_periodic: bool,
}

/// Writes the snapshot, and the state that the task has now.
impl Serialize for PendingTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let snapshot = Snapshot {
            id: self.id(),
            name: self.name(),
            state: self.task_handle().state(),
            delay: self.next_run().map(|_| self.delay()),
            run_count: self.run_count(),
            is_periodic: self.is_periodic(),
        };
        snapshot.serialize(serializer)
    }
}
