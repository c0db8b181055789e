//! The alarm wakes a task's waker at a given time.
//!
//! A thread that waits for an element sleeps with a time limit. A task that awaits one has only a
//! waker, which has to be woken in time. Of all tasks that await one queue at most two are armed,
//! the leader and its deputy, so there are few alarms however many tasks wait.
//!
//! * On the system's clock all alarms of the process are in one queue, and one thread takes them
//!   from it and wakes their wakers. The thread is started with the first alarm, sleeps while there
//!   is none, and never ends. The queue is one of this crate's, so it copes with alarms that are
//!   nearer than the first one and with alarms that are cancelled.
//! * A manual clock keeps its alarms itself, and wakes the wakers when it is moved.
//!
//! If the thread cannot be started, the waker is woken at once: the task polls, finds nothing, sets
//! the next alarm and so tries again. That costs a core, but no wake-up is late or lost.
//!
//! A waker is user code: it is woken through `unwind`, outside all locks. A waker that blocks delays
//! all alarms of the process, as it would block the thread of any runtime.

use std::{io, task::Waker, time::Duration};

use crate::{
    queue::{SingleQueue, Ticket},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
        thread,
    },
    time::{Clock, ManualClock, Timestamp, slack},
    unwind::{discard, wake_all},
};

/// An alarm that is set. Dropping it cancels it. See the [module](self).
pub(super) enum Alarm {
    System(Ticket),
    Manual(ManualClock, u64),
    /// The waker was woken at once.
    Rung,
}

impl Alarm {
    /// Sets an alarm that wakes `waker` once `deadline` has come on `clock`.
    pub(super) fn set(clock: &Clock, deadline: Timestamp, waker: Waker) -> Self {
        match clock.manual() {
            Some(manual) => Self::Manual(manual.clone(), manual.set_alarm(deadline, waker)),
            None => match Ringer::get().set(clock, deadline, waker) {
                Ok(ticket) => Self::System(ticket),
                Err(waker) => {
                    wake_all([waker]);
                    Self::Rung
                }
            },
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        match self {
            Self::System(ticket) => discard(Ringer::get().queue.remove(*ticket)),
            Self::Manual(clock, id) => clock.call_off(*id),
            Self::Rung => {}
        }
    }
}

/// The alarms of the system's clock, and their thread.
struct Ringer {
    clock: Clock,
    queue: SingleQueue<Waker>,
    is_running: AtomicBool,
    /// Held by who starts the thread.
    start: Mutex<()>,
}

impl Ringer {
    fn get() -> &'static Self {
        static RINGER: OnceLock<Ringer> = OnceLock::new();
        RINGER.get_or_init(|| {
            let clock = Clock::system();
            let queue = SingleQueue::new(clock.clone());
            Self { clock, queue, is_running: AtomicBool::new(false), start: Mutex::new(()) }
        })
    }

    /// Gives the waker back if there is nobody who would wake it.
    fn set(
        &'static self,
        clock: &Clock,
        deadline: Timestamp,
        waker: Waker,
    ) -> Result<Ticket, Waker> {
        if self.ensure_thread().is_err() {
            return Err(waker);
        }
        let instant = clock.instant_of(deadline);
        let deadline = instant.map_or(Timestamp::NEVER, |instant| self.clock.deadline_of(instant));
        self.queue.insert(deadline, waker).map_err(|refused| refused.element)
    }

    fn ensure_thread(&'static self) -> io::Result<()> {
        // Ordering: it says that there is a thread; what that does is ordered by the queue.
        if self.is_running.load(Ordering::Relaxed) {
            return Ok(());
        }
        let _start = self.start.lock();
        if !self.is_running.load(Ordering::Relaxed) {
            thread::Builder::new().name("punctual-alarm".into()).spawn(|| self.ring())?;
            self.is_running.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn ring(&self) {
        slack::set(Duration::from_nanos(1));
        while let Some(entry) = self.queue.take() {
            wake_all([entry.element]);
        }
    }
}
