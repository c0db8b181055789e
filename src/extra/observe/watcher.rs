//! The executor that watches another one: it has the same clock, and calls what was asked for at a moment. It has two
//! threads, which sleep while nothing is to be watched: a callback that blocks does not silence the other kind of watch.
//!
//! It is built when it is needed for the first time, and is shut down when the watched executor has terminated.

#![allow(clippy::disallowed_types, reason = "this is a user of the crate, and locks as users do")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Builder, Handle, Observer, Points, ScheduledThreadPoolExecutor};

type MakeBuilder = dyn Fn() -> Builder + Send + Sync;

/// The watcher of one executor; its clones are the same one.
#[derive(Clone)]
pub(crate) struct Watcher(Arc<Shared>);

struct Shared {
    make: Box<MakeBuilder>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_over: bool,
    executor: Option<ScheduledThreadPoolExecutor>,
}

impl Watcher {
    /// Describes a watcher that is built with these settings, when it is needed.
    pub(crate) fn new(make: impl Fn() -> Builder + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { make: Box::new(make), state: Mutex::default() }))
    }

    /// Returns the executor that watches; `None` if the other one has terminated.
    pub(crate) fn executor(&self) -> Option<Handle> {
        let built = self.state().executor.as_ref().map(|executor| executor.handle());
        if built.is_some() || self.state().is_over {
            return built;
        }
        let made = (self.0.make)().core_pool_size(2).build().ok()?;
        let (handle, mut state) = (made.handle(), self.state());
        if state.is_over || state.executor.is_some() {
            // Another thread was faster. No task of this one is pending, and it has no thread.
            drop(state);
            drop(made);
            return self.executor();
        }
        state.executor = Some(made);
        Some(handle)
    }

    /// No thread panics while it holds this lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Watcher {
    fn points(&self) -> Points {
        Points::TERMINATED
    }

    fn terminated(&self) {
        let executor = {
            let mut state = self.state();
            state.is_over = true;
            state.executor.take()
        };
        // This must not wait for the thread, which may be in a callback that waits for the watched executor.
        executor.into_iter().for_each(|executor| executor.shutdown_background());
    }
}
