//! The observable state of an executor, as data for `serde`. Most of it derives its form where it is
//! declared. Two types have a form of their own:
//!
//! * A **task id** is its text, `"2v-9qk0"`, in every format: a program in another language may read numbers
//!   as floating point, and lose the last digits of this one.
//! * A **pending task** is the snapshot that it is. It is written and not read, because what is read could
//!   not hold the task that a [`PendingTask`] holds.
//!
//! An [`Instant`](std::time::Instant) means nothing in another process, so none is written. A pending task
//! has the delay that it had at the time of the snapshot, as `serde` writes every `Duration`; a task that was
//! never due has none.
//!
//! The names of fields and variants are part of the interface: `docs/observing.md` lists them, and a test
//! compares that page with what is written. Fields may be added.

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
