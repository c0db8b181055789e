//! An executor that watches another one, on the same clock: at set times it checks whether the other has a slow run or
//! starves. It has two threads, so one callback that blocks does not stop the other reports.
//!
//! The submitter or worker that first needs the watcher builds it. The watched executor shuts it down on termination.
//!
//! If the watcher cannot start a thread, it emits a `tracing` event. In that case a worker reports its own slow run
//! when the body has returned, and the next worker that takes a task tries again to arm the check for starvation. Until
//! the watcher can start a thread, nothing is reported while all workers hang.

use std::{
    mem,
    sync::{Arc, Mutex},
};

use super::locked;
use crate::{Builder, Handle, Observer, Points, ScheduledThreadPoolExecutor};

type MakeBuilder = dyn Fn() -> Builder + Send + Sync;

/// What a watching thread calls. Boxed, so that all watches are tasks of one type.
pub(super) type Look = Box<dyn FnOnce() + Send>;

/// The watcher of one executor. Its clones share one state.
#[derive(Clone)]
pub(crate) struct Watcher(Arc<Shared>);

struct Shared {
    make: Box<MakeBuilder>,
    state: Mutex<State>,
}

enum State {
    Unneeded,
    Watches(ScheduledThreadPoolExecutor),
    Over,
}

impl State {
    fn handle(&self) -> Option<Handle> {
        if let Self::Watches(executor) = self { Some(executor.handle()) } else { None }
    }
}

impl Watcher {
    pub(crate) fn new(make: impl Fn() -> Builder + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { make: Box::new(make), state: Mutex::new(State::Unneeded) }))
    }

    /// Returns the watching executor, which the first call builds. Returns `None` if it cannot be built, or if the
    /// watched executor has terminated.
    pub(crate) fn executor(&self) -> Option<Handle> {
        match &*locked(&self.0.state) {
            State::Unneeded => {}
            known => return known.handle(),
        }
        // If another thread was faster, this executor, with no thread or task, is dropped once the lock is released.
        let mut made = Some((self.0.make)().core_pool_size(2).build().ok()?);
        let mut state = locked(&self.0.state);
        if let State::Unneeded = *state {
            *state = made.take().map_or(State::Over, State::Watches);
        }
        state.handle()
    }
}

impl Observer for Watcher {
    fn points(&self) -> Points {
        Points::TERMINATED
    }

    fn terminated(&self) {
        let state = mem::replace(&mut *locked(&self.0.state), State::Over);
        if let State::Watches(executor) = state {
            // In the background, since a callback on the watching thread may wait for the watched executor.
            executor.shutdown_background();
        }
    }
}
