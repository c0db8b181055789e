//! The alarm wakes a task's waker at a given time.
//!
//! A thread that waits for an element sleeps with a time limit. A task that awaits one has only a
//! waker, which has to be woken in time. Of all tasks that await one queue at most two are armed,
//! the leader and its deputy, so there are few alarms however many tasks wait.
//!
//! * On the system's clock all alarms of the process are in one queue, and one thread takes them
//!   from it and wakes their wakers. The thread is started with the first alarm ([`LazyThread`]),
//!   sleeps while there is none, and never ends. The queue is one of this crate's, so it copes with
//!   alarms that are nearer than the first one and with alarms that are cancelled.
//! * A manual clock keeps its alarms itself, and wakes the wakers when it is moved.
//!
//! If the thread cannot be started, the waker is woken at once: the task polls, finds nothing, sets
//! the next alarm and so tries again. That costs a core, but no wake-up is late or lost.
//!
//! A waker is user code: it is woken through `unwind`, outside all locks. A waker that blocks delays
//! all alarms of the process, as it would block the thread of any runtime.

use std::{io, task::Waker, time::Duration};

use crate::{
    lazy_thread::LazyThread,
    queue::{SingleQueue, Ticket},
    sync::{Arc, Mutex, OnceLock, thread},
    time::{Clock, ManualClock, Timestamp, slack},
    unwind::{discard, wake_all},
};

/// An alarm that is set. Dropping it cancels it. See the [module](self).
pub(super) enum Alarm {
    System(Ticket),
    Manual(ManualClock, u64),
    /// The waker was woken at once.
    Fired,
}

impl Alarm {
    /// Sets an alarm that wakes `waker` once `deadline` has come on `clock`.
    pub(super) fn set(clock: &Clock, deadline: Timestamp, waker: Waker) -> Self {
        match clock.manual() {
            Some(manual) => Self::Manual(manual.clone(), manual.set_alarm(deadline, waker)),
            None => match SystemAlarms::get().set(clock, deadline, waker) {
                Ok(ticket) => Self::System(ticket),
                Err(waker) => {
                    wake_all([waker]);
                    Self::Fired
                }
            },
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        match self {
            Self::System(ticket) => SystemAlarms::get().cancel(*ticket),
            Self::Manual(clock, id) => clock.call_off(*id),
            Self::Fired => {}
        }
    }
}

/// The alarms of the system's clock, and their thread.
struct SystemAlarms {
    clock: Clock,
    thread: LazyThread<SingleQueue<Waker>>,
    /// Held by the caller that starts the thread.
    start: Mutex<()>,
}

impl SystemAlarms {
    fn get() -> &'static Self {
        static ALARMS: OnceLock<SystemAlarms> = OnceLock::new();
        ALARMS.get_or_init(|| {
            let (clock, thread) = (Clock::system(), LazyThread::new());
            Self { clock, thread, start: Mutex::new(()) }
        })
    }

    /// Sets an alarm for a deadline of `clock`. Returns the waker if there is no thread that would
    /// wake it.
    fn set(&self, clock: &Clock, deadline: Timestamp, waker: Waker) -> Result<Ticket, Waker> {
        let Ok(queue) = self.running_queue() else { return Err(waker) };
        let instant = clock.instant_of(deadline);
        let deadline = instant.map_or(Timestamp::NEVER, |instant| self.clock.deadline_of(instant));
        queue.insert(deadline, waker).map_err(|refused| refused.element)
    }

    fn cancel(&self, ticket: Ticket) {
        discard(self.thread.queue().and_then(|queue| queue.remove(ticket)));
    }

    /// Returns the queue that the thread takes from, and starts the thread if it is not running.
    fn running_queue(&self) -> io::Result<&Arc<SingleQueue<Waker>>> {
        if let Some(queue) = self.thread.running() {
            return Ok(queue);
        }
        let _start = self.start.lock();
        let make_queue = || SingleQueue::new(self.clock.clone());
        self.thread.start(make_queue, |queue| {
            let builder = thread::Builder::new().name("punctual-alarm".into());
            builder.spawn(move || wake_when_due(&queue)).map(drop)
        })
    }
}

/// The loop of the thread.
fn wake_when_due(queue: &SingleQueue<Waker>) {
    slack::set(Duration::from_nanos(1));
    while let Some(entry) = queue.take() {
        wake_all([entry.element]);
    }
}
