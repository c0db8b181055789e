//! The features that only some tasks have and that decide about their runs, a file and a type each.
//!
//! At which points of a task's life a feature is asked, in which order, and what it may answer, is in
//! [`task::extensions`](crate::task::Extensions). A feature knows the task, and as a rule no other feature: the wall clock
//! asks the control whether an entry stands for an extra run, and the control asks whether the task has a gate. What a
//! handle asks of a task that has a feature (to move it, to pause it, to enter its group) is in the feature's file, too.
//!
//! `feature/tests/rate.rs` is a fifth, for the tests: at most so many runs in a minute. The seam is not public, since what
//! is called under a lock must not be the user's. A [`gate`] is the feature that asks the user.

mod at_shutdown;
mod control;
pub mod gate;
mod group;
mod limit;
#[cfg(all(test, not(any(shuttle, loom))))]
#[path = "feature/tests/rate.rs"]
mod rate;

#[cfg(all(test, not(any(shuttle, loom))))]
pub(crate) use self::rate::RateLimit;
pub(crate) use self::{
    at_shutdown::AtShutdown,
    control::{Change, Control},
    gate::{GateQuestion, Gated, HeldLease},
    group::{GroupState, Groups, Keeps, Membership, Roll},
    limit::{Exceeded, TimeLimit},
};
pub use self::{
    at_shutdown::ShutdownPolicy,
    group::{Group, GroupBuilder, GroupStatistics, GroupTermination},
};
use crate::{
    entry::{MoveEntry, Moved, Ticket},
    pool::Pool,
    sync::Weak,
    task::{Parts, Task},
    unwind::discard,
};

/// Moves the entries of parked tasks that wait no longer, because their turn has come or their gate has answered, to when
/// the tasks are due. The caller holds no lock.
fn let_go(pool: &Weak<Pool>, tasks: Vec<(u64, Weak<Task>)>) {
    let Some(pool) = pool.upgrade() else { return };
    let mut moved = Vec::with_capacity(tasks.len());
    // All entries move first: waking a waiter or starting a worker calls user code, and no other task may wait for that.
    for (sequence, task) in tasks {
        // A task that is gone has ended, or is about to.
        if let Some(task) = task.upgrade() {
            // The task knows its slot: a worker has queued it again.
            let mut entry = pool.entry(Ticket::without_slot(sequence));
            task.with(|parts| parts.let_go(&mut |slot, choose| entry.move_to(slot, choose)));
            moved.push((task, entry));
        }
    }
    for (task, entry) in moved {
        pool.call_worker(entry);
        discard(task);
    }
    discard(pool);
}

impl Parts<'_> {
    /// Moves the entry of the task to when it is due, unless a feature keeps it parked.
    fn let_go(&mut self, mover: &mut MoveEntry<'_>) {
        // The thread that has ended the task takes its entry out, by its place.
        if self.keeps_parked() || !self.stage.is_scheduled() {
            return;
        }
        let slot = self.slot();
        let moved = mover(slot, &mut |due, _| Some(self.with_look(due.into())));
        if let Moved::To(Some(slot)) = moved {
            self.set_slot(slot);
        }
    }
}
