//! The wall clock: tasks that are planned on it follow it when it is set.
//!
//! A task on the wall clock stands in the queue with an estimate of its moment, and when a worker takes it
//! the wall clock is read once more, so it is never early ([`layers::wall`](crate::layers)). That it is not *late*
//! either, when the clock is set ahead or the machine has slept, is the business of the *watcher*, a thread
//! that is started with the first plan on the wall clock and ends with the pool. Until then there
//! is no such thread. How it learns that the clock was set is a matter of [`time`](crate::time).
//!
//! # The work of the watcher
//!
//! There is no list of the tasks that are on the wall clock. The clock is set rarely, so the watcher goes
//! through all that are pending, and asks each of them to follow. A task decides
//! under its lock where it belongs by what both clocks show *then*, and moves its entry. That is the one
//! step in which its plan, its entry and what else has been asked of it agree ([`layers::control`](crate::layers)). Nothing
//! that was worked out earlier is used, so two watchers, or a watcher and a worker, cannot undo each other.
//!
//! A trigger that has to be asked again is user code, and not called here: its task is made due, and the
//! worker that takes it asks, and runs nothing.
//!
//! # Why no task is missed
//!
//! A task may be on its way to the queue, with an estimate, while the clock is set. So a thread that
//! queues a task on the wall clock (a submission, a worker that queues it again, a change of its schedule)
//! has it follow, and so reads the clock, *afterwards*; and after the clock was set, the watcher looks
//! through the queue. These are the two sides of [`queue::waiters`](crate::queue). A task that is not in
//! the queue then is with a worker, which will queue it in the same way.
//!
//! There is one watcher ([`LazyThread`](crate::lazy_thread)), and [`WallWatch`] keeps one waker.
//!
//! On a manual clock `set_wall_time` wakes the watcher in the step that sets the clock, and the watcher
//! counts as a worker of that clock. So a clock that is idle has had all its tasks moved.
//!
//! # The end
//!
//! The watcher holds references to tasks while it goes through them, so it is a party of the termination:
//! after that no closure of the pool is alive. A watcher that finds the pool at its end does nothing.

use std::io;

use super::Pool;
use crate::{entry::Ticket, queue::SnapshotEntry, sync::Arc, task::Task, time::WallWatch, trace};

impl Pool {
    /// Ensures that the wall clock is watched, unless the pool is at its end.
    pub(crate) fn ensure_wall_watcher(self: &Arc<Self>) -> io::Result<()> {
        let make_watch = || WallWatch::new(self.clock().clone());
        self.start_service(&self.wall_clock, "wall-clock", make_watch, || {
            |pool: &Arc<Self>, watch: &Arc<WallWatch>| watch.watch(|| pool.wall_clock_was_set())
        })
    }

    /// Moves a task that is on the wall clock to where it belongs by what that clock shows. The thread that has
    /// queued such a task calls this then.
    pub(crate) fn follow_wall(self: &Arc<Self>, task: &Task, ticket: Ticket) {
        if let Some(watch) = self.wall_clock.running() {
            watch.tell_waiting();
        }
        self.with_entry(ticket, |entry| task.follow_wall(self.clock(), entry));
    }

    /// Sees to it that the moment of a task which a worker has queued again is followed: it is an estimate.
    #[cold]
    pub(super) fn follow_estimate(self: &Arc<Self>, task: &Task, sequence: u64) {
        self.ensure_wall_watcher().unwrap_or_else(|error| trace::spawn_failed(&error));
        self.follow_wall(task, Ticket::without_slot(sequence));
    }

    /// Moves all tasks that are on the wall clock.
    pub(super) fn wall_clock_was_set(self: &Arc<Self>) {
        if !self.lifecycle.register() {
            return;
        }
        trace::lifecycle("follows the wall clock", &self.spawner.thread_name);
        for SnapshotEntry { ticket, element: task, .. } in self.queue.snapshot(Arc::clone) {
            self.with_entry(ticket, |entry| task.follow_wall(self.clock(), entry));
            self.callbacks.hooks.drops(ticket.sequence).discard(task);
        }
        self.deregister();
    }
}
