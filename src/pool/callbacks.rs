//! The callbacks that a pool is set up with. They never change; what of the user's code can be replaced is
//! [`Replaceable`](crate::shared).

use super::Starvation;
use crate::{
    SlowRun,
    task::{Around, FailureSource, Hooks, Submission},
    unwind::Callback,
};

type Decorator = dyn Fn(&Submission<'_>) -> Around + Send + Sync;
type Occasion = dyn Fn() + Send + Sync;
pub(crate) type OnSlowRun = dyn Fn(&SlowRun) + Send + Sync;
type OnStarvation = dyn Fn(&Starvation) + Send + Sync;

/// The callbacks that the builder was given: hooks, decorator, and those for the start and end of
/// threads, for termination, and for what is watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callbacks {
    pub(crate) hooks: Hooks,
    pub(crate) decorate: Option<Callback<Decorator>>,
    pub(crate) thread_start: Option<Callback<Occasion>>,
    pub(crate) thread_stop: Option<Callback<Occasion>>,
    pub(crate) terminated: Option<Callback<Occasion>>,
    pub(crate) slow_run: Option<Callback<OnSlowRun>>,
    pub(crate) starvation: Option<Callback<OnStarvation>>,
}

impl Callbacks {
    /// Calls a callback for an occasion, if there is one. A panic is reported and goes no further.
    pub(super) fn call(&self, source: FailureSource, callback: Option<&Callback<Occasion>>) {
        if let Some(callback) = callback {
            self.hooks.call_aside(source, &***callback);
        }
    }
}
