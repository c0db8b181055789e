//! The callbacks that the builder was given: hooks, decorator, and those for the start and end of
//! threads and for termination.

use std::fmt;

use crate::{
    task::{Hooks, PanicSource, Submission, Wrapper},
    unwind::Callback,
};

type Decorator = dyn Fn(&Submission<'_>) -> Wrapper + Send + Sync;
type Occasion = dyn Fn() + Send + Sync;

/// See the [module](self).
#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    pub(crate) hooks: Hooks,
    pub(crate) decorate: Option<Callback<Decorator>>,
    pub(crate) thread_start: Option<Callback<Occasion>>,
    pub(crate) thread_stop: Option<Callback<Occasion>>,
    pub(crate) terminated: Option<Callback<Occasion>>,
}

impl Callbacks {
    /// Calls the callback for this occasion, if there is one. A panic is reported and goes no further.
    pub(super) fn call(&self, occasion: PanicSource) {
        let callback = match occasion {
            PanicSource::ThreadStart => &self.thread_start,
            PanicSource::ThreadStop => &self.thread_stop,
            PanicSource::Terminated => &self.terminated,
            _ => &None,
        };
        if let Some(callback) = callback {
            self.hooks.call_aside(occasion, &***callback);
        }
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks")
            .field("hooks", &self.hooks)
            .field("decorate", &self.decorate.is_some())
            .field("thread_start", &self.thread_start.is_some())
            .field("thread_stop", &self.thread_stop.is_some())
            .field("terminated", &self.terminated.is_some())
            .finish()
    }
}
