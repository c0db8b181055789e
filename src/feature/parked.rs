//! Unparks tasks that have waited for their turn in a group or for their gate's answer.

use crate::{
    entry::{MoveEntry, Moved, Ticket},
    pool::Pool,
    sync::Weak,
    task::{Parts, Task},
    unwind::discard,
};

/// Unparks tasks whose turn has come, whose gate has answered, or whose next run was moved. Moves each task's
/// entry to the moment when the task is due. The caller holds no lock.
pub(super) fn let_go(pool: &Weak<Pool>, tasks: Vec<(u64, Weak<Task>)>) {
    let Some(pool) = pool.upgrade() else { return };
    let mut moved = Vec::with_capacity(tasks.len());
    // All entries move first: waking a waiter or starting a worker calls user code, which must not delay other tasks.
    for (sequence, task) in tasks {
        // If the task is gone, it has ended.
        if let Some(task) = task.upgrade() {
            // The task knows its slot, since a worker has queued it again.
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
    /// Moves the task's entry to the moment when the task is due, unless a feature keeps the task parked.
    fn let_go(&mut self, mover: &mut MoveEntry<'_>) {
        // A running task has no entry, and the thread that ends a task takes the entry out.
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
