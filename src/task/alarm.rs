//! The alarm: a payload that only calls a closure of this crate, or a waker, when it is due.
//!
//! A [`Sleep`](crate::Sleep) has one in the queue, to wake its waker, and so has every time limit in the queue of the
//! timer thread. It is a task like any other, so order, precision, shutdown and prompt removal hold for timers as well.
//! But no hook, no decorator and no span is around it.
//!
//! The worker that has taken an alarm sets it off. A pool that ends it, by a shutdown or because it was discarded, sets
//! it off as well, and the sleeper finds out why. A sleeper that no longer waits takes it out of the queue, and drops
//! it. The queue's lock decides between them, so a sleeper that finds its alarm gone has been woken, or is about to be.

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
