//! An alarm: a payload that, when its task is due, calls a waker, or a closure that this crate has made.
//!
//! The alarm of a [`Sleep`](crate::Sleep) waits in the executor's queue, and calls the sleeper's waker. The alarm of a
//! time limit waits in the queue of the timer thread. An alarm is queued like any other task. So timers are as precise
//! as tasks, and are ordered, removed and shut down in the same way. But no hook, decorator or span surrounds an alarm.
//!
//! The worker or timer thread that takes an alarm sets it off. A thread that ends a sleeper's alarm early, in a
//! shutdown or because the alarm was discarded, also sets the alarm off. The sleeper's next poll then finds out why it
//! was woken. A sleeper that no longer waits takes its alarm out of the queue, and drops it. The queue's lock orders
//! these steps, so a sleeper that finds its alarm gone has been or will be woken.

use std::task::Waker;

use super::{
    call::Call,
    hooks::Lent,
    outcome::{Next, RunReport},
    payload::{Body, Node},
};
use crate::{sync::Arc, unwind::shield};

pub(crate) enum Alarm {
    Wake(Waker),
    Act(Box<dyn FnOnce() + Send>),
}

impl Node<Alarm> {
    pub(crate) fn alarm(alarm: Alarm) -> Arc<Self> {
        Arc::new(Self::new(alarm, ()))
    }
}

impl Body for Alarm {
    type Value = ();
    type Place = ();
    const ACTS_UNRUN: bool = true;

    fn run(alarm: &mut Option<Self>, value: &mut Option<()>) -> RunReport {
        *value = alarm.take().map(Self::will_not_run);
        Ok(Next::Nothing)
    }

    fn will_not_run(self) {
        shield(|| match self {
            Self::Wake(waker) => waker.wake(),
            Self::Act(act) => act(),
        });
    }

    fn carry_out(call: &mut Call<'_>, lent: &mut dyn Lent) {
        call.carry_out_bare(lent);
    }
}
