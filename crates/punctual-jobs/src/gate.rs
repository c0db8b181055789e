//! A gate in PostgreSQL: of several replicas, one runs each tick.
mod aligned;
mod boot_clock;
mod builder;
pub(crate) mod connection;
mod error;
mod event;
mod guard;
mod keeper;
mod lease;
mod named;
mod rules;
mod sql;

use std::{fmt, sync::Arc, thread, time::Duration};

use tokio::sync::mpsc::UnboundedSender;

pub use self::{
    aligned::{Aligned, aligned},
    builder::GateBuilder,
    error::{GateError, GateErrorKind},
    event::{GateEvent, GateStatistics, SkipReason},
    guard::is_stale_fence,
    named::NamedGate,
    rules::LostTick,
};
use self::{
    event::Reporter,
    keeper::{HeldList, Request},
    sql::Statements,
};

/// A table of a database in which replicas claim ticks. See the [module](self).
///
/// Clones share one thread and one connection. The thread ends when the last of them has been dropped, and the last
/// [`NamedGate`]; that drop waits until the database knows of the runs that have ended, for
/// [the limit](GateBuilder::limit) at most.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    requests: UnboundedSender<Request>,
    thread: Option<thread::JoinHandle<()>>,
    held: Arc<HeldList>,
    reporter: Arc<Reporter>,
    statements: Statements,
    lease: Duration,
    limit: Duration,
    lost_tick: LostTick,
}

impl Gate {
    /// Describes a gate in the PostgreSQL database at this address: a URL or a list of keys and values, as
    /// [`tokio_postgres::Config`] reads them.
    ///
    /// The connection may lead through any pooler, in any mode.
    pub fn postgres(url: impl Into<String>) -> GateBuilder {
        GateBuilder::new(url.into())
    }

    /// Returns the name's gate, for the task that replicas compete for. Does not block.
    ///
    /// # Errors
    ///
    /// [`GateError`] if the name is empty, has more than 200 characters, or contains a zero.
    pub fn for_name(&self, name: impl Into<Arc<str>>) -> Result<NamedGate, GateError> {
        let name = name.into();
        if name.is_empty() || name.contains('\0') || name.chars().count() > 200 {
            return Err(GateError::bad(GateErrorKind::BadName, &*name));
        }
        Ok(NamedGate::new(self.clone(), name))
    }

    /// Returns what the gate has done so far. Does not block; the counts are read one after the other.
    #[must_use]
    pub fn statistics(&self) -> GateStatistics {
        self.0.reporter.statistics(self.0.held.len())
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("lease", &self.0.lease)
            .field("limit", &self.0.limit)
            .field("lost_tick", &self.0.lost_tick)
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.requests.send(Request::Close));
        // A listener may be what was last to have the gate, on the gate's own thread.
        if let Some(thread) =
            self.thread.take().filter(|it| it.thread().id() != thread::current().id())
        {
            drop(thread.join());
        }
    }
}
