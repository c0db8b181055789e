//! A gate in PostgreSQL: of several replicas of a program, one runs each tick of a periodic task.
//!
//! ```no_run
//! use std::time::Duration;
//! use punctual::{FailurePolicy, ScheduledThreadPoolExecutor, with_context};
//! use punctual_jobs::{aligned, gate::Gate};
//!
//! let gate = Gate::postgres("postgres://app@db/app").lease(Duration::from_secs(20)).open()?;
//! let executor = ScheduledThreadPoolExecutor::new(2);
//! let minute = aligned(Duration::from_secs(60));
//! let sweep = executor.task().name("sweep").gate(gate.for_name("sweep")?);
//! // By default a failed run ends the task on this replica.
//! let sweep = sweep.on_failure(FailurePolicy::resume());
//! let sweep = sweep.repeat(minute, with_context(|run| {
//!     // `run.token()` is cancelled, and `run.is_lease_lost()` true, once another replica may run.
//!     println!("swept under the fencing token {:?}", run.fencing_token());
//! }))?;
//! sweep.join()?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! # The idea
//!
//! A replica claims the *tick*: the moment of the wall clock that a run is planned for. Every replica
//! plans the same moments, since they come from the calendar and not from when a program was started: use
//! [`aligned`](crate::aligned()) or a cron expression. There is one row for each name, with the last tick that was claimed,
//! and a claim needs a later one. So a tick is claimed once, whatever the clocks of the replicas show, and
//! that does not depend on any time-out. A lock with a time-out alone cannot promise it: two replicas whose
//! clocks are a minute apart take such a lock one after the other, for what both believe to be the same
//! run.
//!
//! Beside the tick a holder has a *lease*, which decides one thing: when a holder that no longer answers may
//! be taken for dead. It is renewed for as long as the run goes on, by the gate's own thread.
//!
//! # The steps of a tick
//!
//! 1. The worker hands the tick to the gate's thread, and goes on with other tasks. The task waits for the answer in the
//!    queue ([`Entry::Later`](punctual::gate::Entry::Later)): for a [request time-out](GateBuilder::request_timeout)
//!    at most, and not at all while there is no connection.
//! 2. The gate reads the row and the database's clock. If the tick is not due by that clock, it asks again
//!    when it will be; an earlier start than planned is possible by 50 ms. If the tick has been claimed,
//!    and its run has ended, it is skipped. If another replica holds the row, the gate looks again from time to
//!    time, so that the tick of a holder that died is taken over ([`OnHolderDeath`]), and that a later tick
//!    waits for a run that goes on.
//! 3. If the row is free the gate takes it, provided that it is still the row that was read. The fencing token,
//!    which is a number in the row, is a larger one then: all names of a schema draw theirs from one sequence.
//! 4. A worker that is free takes the task, looks whether the lease is still there, and runs it; if not, the gate is asked again. At
//!    a third of the lease it is renewed. If no worker was free until then, the tick is given back, for other replicas as well.
//! 5. At the end the row says that the run has ended. The worker does not wait for that.
//!
//! A run that was claimed and did not begin, because its task was cancelled meanwhile, is given back.
//!
//! # A run that fails
//!
//! A failed run has ended as well, and no other replica runs its tick. Whether this one tries it again is the
//! task's affair: by [`Trigger::retry`](punctual::Trigger::retry), or by a policy that [backs
//! off](punctual::FailurePolicy::back_off). Such a run is between the ticks of the schedule. It claims the tick that
//! has failed once more, with a larger fencing token; it is left out, and counted as refused, if another tick has been
//! claimed since, or if the failed run has [finished](Gate::finish) its tick.
//!
//! **A periodic task ends with its first failed run**, unless its policy says otherwise: that is the executor's default.
//! With it each replica loses its task after one failure, and then no replica runs the name. So give a gated
//! task a policy that goes on, as the example above does. A task that ends with a failed run is
//! [reported](GateEvent::Ended).
//!
//! # Why it is right
//!
//! *One claim.* Each statement compares, under the row's lock, what was read before (the fencing token, the end of
//! the lease, and whether the run has ended) and does nothing if any of it has changed. Two replicas that
//! read the same row cannot both take it.
//!
//! *One lease.* The database counts a lease from when it writes it, and the holder from before it has sent
//! the request, and a tenth less. So the holder's ends first, by a clock that goes on while the machine
//! sleeps, unless the two clocks differ in speed by a tenth. A holder that was frozen sees at its first
//! look that its lease is over. Its token is cancelled and
//! [`TaskContext::is_lease_lost`](punctual::TaskContext::is_lease_lost) compares the clock itself.
//!
//! *One clock.* All decisions are by the database's clock. A replica whose own clock is wrong asks too early or
//! too late, and that is all.
//!
//! *Shut when in doubt.* If the database cannot be asked, the tick does not run. It is asked about again
//! until a lease has passed, and is then skipped and [reported](GateEvent).
//!
//! # Limits of the promise
//!
//! * **Exactly once, in general.** A holder may be stopped between its last look at the lease and its
//!   effect. For effects in the same database there is [`Gate::guard`], and [`Gate::finish`], with which a
//!   tick has its effects exactly once. Other storages can compare the
//!   [fencing token](punctual::TaskContext::fencing_token), if they keep the largest one that they have seen.
//! * **Every tick.** None runs while the database is away, and none is made up for unless the task's policy
//!   for missed runs says so, or the name [catches up](NamedGate::catch_up). A lost tick runs again only if another replica was there to plan it.
//! * **A server whose clock is set forward** ends one lease of each name too soon, by the step. If it is *set back*,
//!   by a minute at most, no tick runs twice: until the old time is reached each is skipped and
//!   [reported](SkipReason::ClockSetBack). After a longer step ticks run by the new time at once, also those that
//!   have run by the old one, which is [reported](GateEvent::ClockSetBack) as well; a holder that died before the
//!   step is waited for no longer than its lease. Fencing tokens hold, and what passes the guard is one holder. A
//!   failover that loses committed transactions loses claims.
//! * **The same replica each time.** Whichever asks first has the tick.
//!
//! # Effects in the same database
//!
//! The migration makes two functions that any client can call, in any language, inside its own transaction:
//!
//! ```sql
//! begin;
//! insert into report (day, total) values ('2026-11-23', 42);
//! select punctual.guard('sweep', 7);   -- raises PJ001 if 7 is not the last fencing token of 'sweep'
//! commit;
//! ```
//!
//! `guard` locks the row until the transaction ends, in a way that keeps others from taking over and lets
//! the lease be renewed. `finish` in its place also marks the tick as done: the effects and the end of the
//! tick are both there afterwards, or neither is. So that tick has its effects once, however often it is
//! begun. [`Gate::guard`] and [`Gate::finish`] call them from Rust.
//!
//! In a transaction that is REPEATABLE READ or SERIALIZABLE both fail with a serialization failure if the lease was renewed since
//! its first statement: see [`Gate::finish`].
//!
//! # Schedules that do not fit
//!
//! A task's schedule has to be a function of the wall clock alone. A rate that counts from the submission
//! is skipped and reported ([`SkipReason::NotOnWallClock`]), and so is a run [beside the
//! schedule](punctual::TaskHandle::run_now). For a fixed delay there is [`NamedGate::with_delay`].
//!
//! [`jitter`](punctual::Trigger::jitter) fits: a tick is the moment of the trigger inside, and the span after it is the
//! same on each replica, by the name of the task.
//!
//! # Costs
//!
//! A thread, and a connection. Two round trips for a claim and one for its end, which the worker does not
//! wait for; the two that write wait for the server's disk. One round trip, which writes nothing, for a
//! replica that comes too late.
//!

mod boot_clock;
mod builder;
mod catching_up;
mod connection;
mod error;
mod event;
mod guard;
mod keeper;
mod lease;
mod named;
mod retries;
mod rules;
mod sql;
mod tables;

use std::{fmt, sync::Arc, thread, time::Duration};

use tokio::sync::mpsc::UnboundedSender;
/// The driver, in the version that the functions of this module take and return.
pub use tokio_postgres;

use self::{
    boot_clock::BootClock,
    event::Reporter,
    keeper::{HeldList, Request},
};
pub use self::{
    builder::GateBuilder,
    catching_up::CaughtUp,
    error::{GateError, GateErrorKind},
    event::{GateEvent, GateStatistics, SkipReason},
    guard::is_stale_fencing_token,
    named::NamedGate,
    rules::OnHolderDeath,
};
use crate::server::schema::Schema;

/// A table of a database in which replicas claim ticks. See the [module](self).
///
/// Clones share one thread and one connection. The thread ends when the last of them has been dropped, and
/// the last [`NamedGate`]; that drop waits until the database knows of the runs that have ended, for [the
/// request time-out](GateBuilder::request_timeout) at most.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    requests: UnboundedSender<Request>,
    thread: Option<thread::JoinHandle<()>>,
    held: Arc<HeldList>,
    reporter: Arc<Reporter>,
    schema: Schema,
    lease: Duration,
    request_timeout: Duration,
    on_holder_death: OnHolderDeath,
    clock: BootClock,
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

    /// Returns the counts of the gate so far. Does not block; the counts are read one after the other.
    #[must_use]
    pub fn statistics(&self) -> GateStatistics {
        self.0.reporter.statistics(self.0.held.len())
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("lease", &self.0.lease)
            .field("request_timeout", &self.0.request_timeout)
            .field("on_holder_death", &self.0.on_holder_death)
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
