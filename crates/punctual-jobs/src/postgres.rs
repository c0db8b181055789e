//! The queue on PostgreSQL: jobs that outlive a process and run on any machine.
//!
//! The queue is a table, and everything that happens to a job is one statement on it. Read it in this order.
//!
//! * `schema.sql`: what is stored, and [`tables`]: which version of it that is; in a [`schema`](crate::server::schema) of its own.
//! * [`statements`]: which statement decides what, under which lock, and why none of them waits for one. [`claiming`] has
//!   those that claim jobs, and [`limiting`] those for kinds with a limit.
//! * [`connection`]: how a statement gets to the server, and what becomes of a connection that is of no use;
//!   [`encryption`].
//! * [`worker`]: when jobs are claimed, and [`sources`], which, from which [`frontier`] on; [`listening`] and [`coming`] wake it. Each claimed job becomes a task of the
//!   executor in [`running`], is among the [`claims`] meanwhile, and is written down in [`ending`].
//! * [`heartbeat`]: which claims stand, and whose jobs are free; [`dead`]: which machines live; [`unanswered`]: which claims have no run.
//! * [`telling`]: each job that is discarded is told once; [`told`] is what is kept of it.
//! * [`ticks`]: each tick of a trigger in code is taken once. [`schedules`]: schedules that are rows.
//! * [`storing`]: how jobs are stored; [`verbs`]: what callers ask besides, and the same in a [`transaction`] of theirs; [`looking`] and [`past`]: what a person asks. [`moment`] says when.
//! * [`pauses`]: which kinds are paused. [`results`]: what handlers return, for a while.
//! * [`settings`] and [`opening`]: how the queue is opened, and how it ends; the [`machine`] is what all of it shares. [`postgres_queue`]: what opening returns. [`unheard`]: the lines for events that no program hears.
//!
//! # Which claim
//!
//! A claim is a number, drawn when the job is claimed and greater than those before. The row has it for as long as
//! the claim stands. A claim is ended by a statement that names it, and the server carries out one of
//! these on the row at a time: the end that the run has come to, or the sweep because the lease of its worker is
//! over, or the heartbeat because the worker does not know it. The second one finds another number there, or none,
//! and changes nothing. So a run that was lost can end as late as it likes.
//!
//! # Threads and connections
//!
//! **One thread**, named `punctual-jobs`, with a tokio runtime of its own, talks to the server. No user code runs on
//! it: handlers and callbacks run on the executor, and a handler that hangs stops no heartbeat. Triggers are asked on a
//! thread of the [planner](ticks) of ticks, if there are schedules. There are six connections, so that nothing waits
//! behind what may be slow: for the verbs, for what reads much, for the worker, for the heartbeat, for the rows of schedules, and
//! one that listens.
//!
//! # Locks
//!
//! The lock of [`claims`] protects which runs there are. Under it nothing is called. The lock of a
//! connection is one of tokio's, held while the connection is made.

mod claiming;
mod claims;
mod coming;
mod connection;
mod dead;
mod encryption;
mod ending;
mod frontier;
mod heartbeat;
mod known_keys;
mod limiting;
mod listening;
mod looking;
mod machine;
mod moment;
mod opening;
mod past;
mod pauses;
mod postgres_queue;
mod refused;
mod results;
mod running;
mod schedules;
mod settings;
mod sources;
mod statements;
mod storing;
mod tables;
mod telling;
mod ticks;
mod told;
mod transaction;
mod unanswered;
mod unheard;
mod verbs;
mod worker;

pub use self::postgres_queue::PostgresQueue;
pub use self::schedules::{OnEdit, Overlap, Schedule, ScheduleCall, ScheduleStatus, Schedules};
pub use self::settings::{Postgres, QueueEvent};
