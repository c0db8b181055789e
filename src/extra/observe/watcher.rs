//! The executor that watches another one, on the same clock: at a moment, it looks whether a run is slow, or whether
//! the executor starves. It has two threads, so a callback of one kind that blocks does not silence the other kind.
//!
//! A worker of the watched executor builds it at the first need. It is shut down when that executor has terminated.
//!
//! What may be missed: if its thread cannot be started, `tracing` has an event of that. A slow run is then named by its
//! worker when the body has returned, and starvation is looked for again when a worker takes the next task. While all
//! workers hang, no notification comes.

use std::{
    mem,
    sync::{Arc, Mutex},
};

use super::locked;
use crate::{Builder, Handle, Observer, Points, ScheduledThreadPoolExecutor};

type MakeBuilder = dyn Fn() -> Builder + Send + Sync;

/// The watcher of one executor; its clones are the same one.
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

    /// Returns the executor that watches; `None` if the other one has terminated.
    pub(crate) fn executor(&self) -> Option<Handle> {
        match &*locked(&self.0.state) {
            State::Unneeded => {}
            known => return known.handle(),
        }
        // If another thread is faster, this one is dropped after the lock. It has no thread and no task.
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
            // A callback on its thread may wait for the watched executor.
            executor.shutdown_background();
        }
    }
}
