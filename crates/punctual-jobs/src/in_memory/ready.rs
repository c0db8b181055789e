//! Priorities: a job that is about to begin lets one of a higher priority go first that is due.
//!
//! The executor runs tasks in the order of their moments, and knows no priorities. So when the task of a job runs, the job
//! asks here whether another one is to go first: one that is due, waits for a worker, and has a higher priority. Then that
//! job gets a new task, and this one gets another task behind it.
//!
//! The executor may have taken more tasks out of its queue already, and these run before the new ones. So the jobs that
//! have new tasks are remembered, as *called*. Each job lets those of them go first that come before it, by priority, moment
//! and id. That keeps the order among jobs of one priority as well.
//!
//! # Why it ends
//!
//! The task of a called job has a moment, its *ticket*. A job that lets it go first gets a task whose moment is not before
//! the ticket, and which is submitted later, so the called job is asked before this job is asked again. The first of the
//! called jobs lets none of them go first. It may call another of a higher priority, which is the first then; there are two
//! of these at most. So between any two askings of one job another job begins, or leaves.
//!
//! A job is called no more when it begins, waits in a line, is moved, replaced or cancelled ([`State::forget_ready`](super::state::State::forget_ready)).
//!
//! Jobs with an ordering key are not here: their turns are given in another way ([`ordering`](super::ordering)). Nor are
//! those that have a slot of a limit already ([`slots`](super::slots)), whose line has the order of priorities itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use crate::Priority;

pub(super) type Place = (Priority, Instant, i64);

/// The jobs that may be let go first.
#[derive(Default)]
pub(super) struct Ready {
    /// Those that are not called.
    pub(super) jobs: BTreeMap<Priority, BTreeSet<(Instant, i64)>>,
    /// Those that are called, with their tickets.
    pub(super) called: BTreeMap<Place, Instant>,
}
