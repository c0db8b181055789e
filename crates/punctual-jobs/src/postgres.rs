//! The desk on PostgreSQL: jobs that outlive a process and run on any machine.
//!
//! The queue is that of an engine that exists, `graphile_worker`, behind one private module ([`engine`]).
//! These modules do what the engine leaves to its user, and what makes it behave as the embedded desk does.
//!
//! # Who does what
//!
//! * **One thread**, named `punctual-jobs`, with a tokio runtime of its own, talks to the server. No user code
//!   runs on it: handlers and callbacks run on the executor, and a handler that hangs stops no heartbeat.
//! * **The engine** claims jobs, completes and fails them, and finds the jobs of dead processes. Each claim
//!   becomes a task of the executor ([`running`]), and the engine waits for its end.
//! * **The supervisor** ([`supervisor`]) starts the engine again when it has stopped with an error, which it
//!   does whenever a statement fails, or when it claims nothing although jobs are due.
//! * **The watch**, in the same module, asks once per heartbeat which claims still stand, and raises the
//!   tokens of those that do not, and of those that were cancelled on another machine. If it gets no answer
//!   for nine tenths of the lease, it raises them all: by then another machine may have begun.
//! * **The ledger** ([`ticks`]) lets each tick of a periodic job be sent once.
//!
//! # Which claim
//!
//! A job is claimed by a worker at a time of the database: the three, id, worker and time, name one claim.
//! The engine fails a job only for the worker that has it, but completes it for anybody, so a run that was
//! lost and ends well removes the job although another machine has begun it: done is done. A worker that was
//! believed dead may claim again under its old name, and then the end of a lost run could be taken for that
//! of the new one. So a desk that finds a claim lost starts another worker, with another name.
//!
//! # Locks
//!
//! The lock of [`claims`] protects which runs there are. Under it nothing is called. The lock of the
//! connection is one of tokio's, held while the connection is made.

mod claims;
mod connection;
mod engine;
mod office;
mod running;
mod settings;
mod statements;
mod supervisor;
mod ticks;
mod transaction;

pub(crate) use self::engine::{TaskOfEngine, task_of_engine};
pub use self::settings::{Postgres, Trouble};
