//! Timers that are awaited, moved and dropped, and what must hold of them.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use punctual::{Sleep, TimerStopped};

use crate::{
    actors::{Door, Rouse},
    scenario::Steps,
    world::World,
};

impl World {
    /// Awaits a timer.
    pub(crate) fn sleep(&self, steps: Steps) {
        let due = self.clock.elapsed() + steps.span();
        let mut timer = self.handle.sleep(steps.span());
        let slept = self.blocking(|| {
            // Each poll has a waker of its own, at an address of its own as long as the others are kept.
            let mut doors = Vec::new();
            loop {
                let door = Arc::new(Door::default());
                doors.push(Arc::clone(&door));
                match poll(&mut timer, &Waker::from(Arc::clone(&door))) {
                    Poll::Ready(slept) => break slept,
                    Poll::Pending => door.pass(),
                }
            }
        });
        self.has_slept(slept, due);
    }

    /// Polls a timer with a waker, which panics if the scenario has panicking wakers; moves it, polls it again, and
    /// drops it.
    pub(crate) fn use_timer(self: &Arc<Self>, first: Steps, then: Steps) {
        let waker = Waker::from(Arc::new(Rouse { world: Arc::clone(self) }));
        let due = self.clock.elapsed() + first.span();
        let mut timer = self.handle.sleep(first.span());
        if let Poll::Ready(slept) = poll(&mut timer, &waker) {
            return self.has_slept(slept, due);
        }
        let due = self.clock.elapsed() + then.span();
        timer.reset(then.span());
        if let Poll::Ready(slept) = poll(&mut timer, &waker) {
            self.has_slept(slept, due);
        }
    }

    /// A timer is never early, and fails only if the executor is stopping, has no thread, or discards what is
    /// pending for what is new.
    fn has_slept(&self, slept: Result<(), TimerStopped>, due: Duration) {
        match slept {
            Ok(()) => self.is_wrong(self.clock.elapsed() < due, "a timer is early"),
            Err(stopped) => {
                let is_stopping = self.note(|ledger, _| ledger.is_stopping || ledger.discards);
                let may_fail = is_stopping || self.may_lack_threads();
                self.is_wrong(!may_fail, &format!("a timer was not served: {stopped}"));
            }
        }
    }
}

fn poll(timer: &mut Sleep, waker: &Waker) -> Poll<Result<(), TimerStopped>> {
    Pin::new(timer).poll(&mut Context::from_waker(waker))
}
