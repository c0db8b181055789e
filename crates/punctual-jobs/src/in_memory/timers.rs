//! Tasks of the executor beside the attempts: one ends a pause, another has jobs begin that have waited for a token.

use std::time::Instant;

use punctual::{TaskHandle, trigger::Due};

use super::{
    board::{Board, refused, wall_of},
    entry::once,
    pauses::Pause,
};
use crate::{QueueError, When};

impl Board {
    /// Submits a task that acts once, unless the queue is gone by then.
    fn when(
        &self,
        due: Due,
        act: impl Fn(&Self) + Send + 'static,
    ) -> Result<TaskHandle, QueueError> {
        // Weak: the board has the handles of these tasks, and would keep itself alive.
        let me = self.me.clone();
        let task = self.executor.task().repeat(once(due), move || {
            if let Some(board) = me.upgrade() {
                act(&board);
            }
        });
        task.map(|future| future.task_handle()).map_err(|error| refused(&error))
    }

    pub(super) fn pause(&self, kind: &str, until: Option<When>) -> Result<(), QueueError> {
        let ends = until.map(|until| self.moment_of(until));
        let shown = |(instant, due): &(Option<Instant>, Due)| {
            wall_of(due).or_else(|| instant.and_then(|instant| self.wall_of(instant)))
        };
        let wall = ends.as_ref().and_then(shown);
        let mut state = self.state.lock();
        if state.closing.is_some() {
            return Err(QueueError::ShutDown);
        }
        state.pauses.last_number += 1;
        let number = state.pauses.last_number;
        let pause = Pause { number, until: wall, task: None };
        let old = state.pauses.of_kinds.insert(kind.to_owned(), pause);
        drop(state);
        self.cancel_task(old.and_then(|old| old.task));
        let Some((_, due)) = ends else { return Ok(()) };
        let name = kind.to_owned();
        let ends = self.when(due, move |board| _ = board.end_pause(&name, Some(number)));
        let task = match ends {
            Ok(task) => task,
            Err(error) => {
                self.end_pause(kind, Some(number));
                return Err(error);
            }
        };
        let mut state = self.state.lock();
        let its = state.pauses.of_kinds.get_mut(kind).filter(|pause| pause.number == number);
        let is_over = its.is_none();
        if let Some(pause) = its {
            pause.task = Some(task.clone());
        }
        drop(state);
        self.cancel_task(is_over.then_some(task));
        Ok(())
    }

    pub(super) fn resume(&self, kind: &str) -> Result<bool, QueueError> {
        self.state.lock().refuse_if_over()?;
        Ok(self.end_pause(kind, None))
    }

    /// Ends a pause: that with this number, if one is named.
    fn end_pause(&self, kind: &str, number: Option<u64>) -> bool {
        let mut state = self.state.lock();
        let found = state.pauses.of_kinds.get(kind);
        if found.is_none_or(|pause| number.is_some_and(|number| number != pause.number)) {
            return false;
        }
        let pause = state.pauses.of_kinds.remove(kind);
        let definition = self.definitions.handled(kind);
        let next = definition.map(|kind| state.give_slots(kind.name, kind.limits));
        drop(state);
        self.cancel_task(pause.and_then(|pause| pause.task));
        self.submit_or_discard(next.into_iter().flatten());
        true
    }

    /// Submits the tasks that are due when there is a token. The caller holds no lock.
    pub(super) fn arm_tokens(&self) {
        if !self.has_windows {
            return;
        }
        let mut state = self.state.lock();
        let all = state.slots.iter_mut();
        let wanted: Vec<_> =
            all.filter_map(|(kind, slots)| Some((*kind, slots.timer.take_unarmed()?))).collect();
        drop(state);
        for (kind, at) in wanted {
            self.arm(kind, at);
        }
    }

    fn arm(&self, kind: &'static str, at: Instant) {
        let task = self.when(Due::At(at), move |board| board.tokens_are_due(kind)).ok();
        let mut state = self.state.lock();
        let old = match state.slots.get_mut(kind) {
            // Another one has come meanwhile, or the queue is closing.
            Some(slots) if slots.timer.armed != Some(at) => task,
            None => task,
            Some(slots) => {
                slots.timer.armed = slots.timer.armed.filter(|_| task.is_some());
                std::mem::replace(&mut slots.timer.task, task)
            }
        };
        drop(state);
        self.cancel_task(old);
    }

    fn tokens_are_due(&self, kind: &'static str) {
        let Some(definition) = self.definitions.handled(kind) else { return };
        let mut state = self.state.lock();
        // The handle of the task that runs.
        let task = state.slots.get_mut(kind).and_then(|slots| slots.timer.take_task());
        let next = state.give_slots(kind, definition.limits);
        drop(state);
        drop(task);
        self.arm_tokens();
        self.submit_or_discard(next);
    }
}
