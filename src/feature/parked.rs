//! How a parked task's wait ends: for its turn in a group, or for its gate's answer.

use crate::{
    entry::{MoveEntry, Moved, Ticket},
    pool::Pool,
    sync::Weak,
    task::{Parts, Task},
    unwind::discard,
};

/// Moves the entries of parked tasks whose turn has come, or whose gate has answered, to when the tasks are due. The
/// caller holds no lock.
pub(super) fn let_go(pool: &Weak<Pool>, tasks: Vec<(u64, Weak<Task>)>) {
    let Some(pool) = pool.upgrade() else { return };
    let mut moved = Vec::with_capacity(tasks.len());
    // All entries move first: waking a waiter or starting a worker calls user code, for which no other task may wait.
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
        // The thread that ends a task takes its entry out.
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
