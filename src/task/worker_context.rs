//! The state that all runs on one worker share. Values that only some runs need are kept here rather than in the
//! [`Run`](super::Run), so most runs have nothing to set up. Only the worker's thread uses the context.

use std::{
    cell::{Cell, RefCell},
    time::SystemTime,
};

use super::{extensions::RunExtensions, observer::Names};
use crate::{CancellationToken, Failure, TaskId, statistics::WorkerStats, sync::Arc, time::Clock};

pub(crate) struct WorkerContext {
    pub(crate) clock: Clock,
    pub(super) stop: CancellationToken,
    pub(crate) stats: Arc<WorkerStats>,
    /// `false` for runs by hand, which have no starting deadline, and which features neither refuse nor put off.
    pub(super) keeps_limits: bool,
    pub(crate) extensions: RefCell<RunExtensions>,
    /// The failure with which code around the body has overruled the current run.
    pub(super) overruled: Cell<Option<Failure>>,
    /// The id of a task, and the moment of the wall clock for which its last run on this worker was planned.
    pub(crate) planned_wall: Cell<Option<(u64, SystemTime)>>,
    /// The names of a task and its group, as last noted for observers. The task's next run need not copy them again.
    names: RefCell<Names>,
    named: Cell<u64>,
}

impl WorkerContext {
    pub(crate) fn new(
        clock: Clock,
        stop: CancellationToken,
        stats: Arc<WorkerStats>,
        keeps_limits: bool,
    ) -> Self {
        Self {
            clock,
            stop,
            stats,
            keeps_limits,
            extensions: RefCell::default(),
            overruled: Cell::default(),
            planned_wall: Cell::default(),
            names: RefCell::default(),
            named: Cell::default(),
        }
    }

    pub(super) fn note_names(&self, id: u64, task: Option<&Arc<str>>, group: Option<&Arc<str>>) {
        self.named.set(id);
        let kept = &mut *self.names.borrow_mut();
        for (kept, name) in [(&mut kept.task, task), (&mut kept.group, group)] {
            if kept.as_ref().map(Arc::as_ptr) != name.map(Arc::as_ptr) {
                *kept = name.cloned();
            }
        }
    }

    /// Calls `look` with the names of a task that has run; without names if none were kept.
    pub(crate) fn with_names(&self, id: TaskId, look: impl FnOnce(&Names)) {
        let names = self.names.borrow();
        look(if self.named.get() == id.0 { &names } else { &Names::NONE });
    }
}
