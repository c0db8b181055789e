//! `hierarchical_hash_wheel_timer`: a timing wheel with a step of 1 ms and a thread of its own,
//! which also runs the callbacks.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use hierarchical_hash_wheel_timer::{
    ClosureTimer, OneShotClosureState, PeriodicClosureState, TimerReturn,
    thread_timer::{TimerRef, TimerWithThread},
};

use crate::measure::{
    oneshot::{Oneshot, oneshot},
    peer::Peer,
};

type Once = OneShotClosureState<u64>;
type Periodic = PeriodicClosureState<u64>;

pub(in crate::measure) struct Hhwt {
    timer: TimerWithThread<u64, Once, Periodic>,
    /// Each call clones it, because the methods need `&mut`.
    reference: TimerRef<u64, Once, Periodic>,
    next_id: AtomicU64,
}

impl Hhwt {
    fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

impl Peer for Hhwt {
    const MAX_WORKERS: usize = 1;

    type Handle = u64;
    type Future = Oneshot;

    fn new(_workers: usize) -> Self {
        let timer = TimerWithThread::new().expect("its thread starts");
        let reference = timer.timer_ref();
        Self { timer, reference, next_id: AtomicU64::new(1) }
    }

    fn schedule<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Handle {
        let id = self.id();
        self.reference.clone().schedule_action_once(id, delay, move |_| task());
        id
    }

    fn cancel(&self, handle: Self::Handle) {
        use hierarchical_hash_wheel_timer::Timer;
        self.reference.clone().cancel(&handle);
    }

    fn submit<F: FnOnce() -> u32 + Send + 'static>(&self, task: F) -> Self::Future {
        let (sender, result) = oneshot();
        self.schedule(Duration::ZERO, move || sender.send(task()));
        result
    }

    fn wait(&self, future: Self::Future) -> u32 {
        future.wait()
    }

    fn schedule_at_fixed_rate<F: FnMut() + Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        mut task: F,
    ) {
        self.reference.clone().schedule_action_periodic(self.id(), initial, period, move |_| {
            task();
            TimerReturn::Reschedule(())
        });
    }

    /// Calls are messages to the thread.
    fn settle(&self, _live: u64) {
        self.wait(self.submit(|| 1));
    }

    fn shutdown_now(self) {
        drop(self.reference);
        self.timer.shutdown().expect("its thread ends");
    }
}
