//! The alarm: a payload that only calls a closure of this crate when it is due.
//!
//! It is what a [`Sleep`](crate::Sleep) has in the queue, to wake its waker. It is a task like any other, so all that
//! holds for order, precision, shutdown and prompt removal of tasks holds for timers. But it has no closure of the
//! user's: no hook, no decorator and no span is around it. The timer thread ends each alarm of its queue when due.
//!
//! The waker goes one of three ways:
//!
//! * **It is due.** The worker that has taken the alarm wakes it.
//! * **The pool ends it**, by a shutdown or because it was discarded: it is woken as well, and the
//!   sleeper finds out why.
//! * **The sleeper takes it out of the queue**, because it waits no longer or has another waker: it is
//!   dropped, and no task is woken.
//!
//! The queue's lock decides between them: the alarm belongs to the one that has taken it out. So a
//! sleeper that finds its alarm gone has been woken, or is about to be.
//!
//! Wakers are user code. They are cloned, dropped and woken with no lock held.

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
    /// Makes a task that only calls code of this crate.
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
