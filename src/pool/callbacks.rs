//! The callbacks that a pool is set up with. They never change; what of the user's code can be replaced is
//! [`Replaceable`](crate::shared).

use super::Starvation;
use crate::{
    SlowRun,
    task::{Around, Hooks, Submission},
    unwind::Callback,
};

type Decorator = dyn Fn(&Submission<'_>) -> Around + Send + Sync;
pub(crate) type OnSlowRun = dyn Fn(&SlowRun) + Send + Sync;
type OnStarvation = dyn Fn(&Starvation) + Send + Sync;

/// The callbacks that the builder was given: observers, decorator, and those for what is watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callbacks {
    pub(crate) hooks: Hooks,
    pub(crate) decorate: Option<Callback<Decorator>>,
    pub(crate) slow_run: Option<Callback<OnSlowRun>>,
    pub(crate) starvation: Option<Callback<OnStarvation>>,
}
