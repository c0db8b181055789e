//! The state that all threads share: the pool, the ledger, and how many tasks came to which end.

use std::{
    any::Any,
    fmt,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use punctual::{Handle, RejectedExecutionError, ScheduledFuture, Statistics, TaskError, TaskState};

use crate::{
    dice::Dice,
    ledger::{Ledger, Meant},
    patience::{LONG, Patience},
};

#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The ends of the tasks as their futures report them, to be compared with the executor's own
/// counts.
#[derive(Default)]
pub(crate) struct Ends {
    pub(crate) accepted: Count,
    pub(crate) completed: Count,
    pub(crate) panicked: Count,
    pub(crate) cancelled: Count,
    /// These tasks are also counted as cancelled, or completed with another value.
    pub(crate) timed_out: Count,
    /// The runs of periodic tasks.
    pub(crate) runs: Count,
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tasks: {} completed, {} panicked, {} cancelled; {} timed out, {} runs of periodic tasks",
            self.accepted.get(),
            self.completed.get(),
            self.panicked.get(),
            self.cancelled.get(),
            self.timed_out.get(),
            self.runs.get(),
        )
    }
}

pub(crate) struct Soak {
    pub(crate) pool: Handle,
    /// The largest number of workers of the pool.
    pub(crate) workers: usize,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) ends: Ends,
    /// The number of short-lived pools so far.
    pub(crate) brief_pools: Count,
    /// The number of elements that have been in a delay queue.
    pub(crate) elements: Count,
}

/// Brings a submission to its end, and checks that end.
pub(crate) type Settle = Box<dyn FnOnce(&Soak, &mut Dice) + Send>;

impl Soak {
    /// Unwraps the future of a task, which is admitted while the pool is open.
    pub(crate) fn accepted<T>(
        &self,
        tried: Result<ScheduledFuture<T>, RejectedExecutionError>,
    ) -> Option<ScheduledFuture<T>> {
        match tried {
            Ok(future) => {
                self.ends.accepted.add(1);
                Some(future)
            }
            Err(error) => {
                self.ledger.complain(error.to_string());
                None
            }
        }
    }

    /// Records how a task ended that should return its number or panic, and was not cancelled.
    pub(crate) fn ended(&self, what: &str, id: u64, panics: bool, end: Result<u64, TaskError>) {
        match end {
            Ok(value) if value == id && !panics => self.ends.completed.add(1),
            Err(TaskError::Failed(panic)) if panic.is::<Meant>() && panics => {
                self.ends.panicked.add(1);
            }
            end => self.ledger.complain(format!("{what}, number {id}, ended with {end:?}")),
        }
    }

    /// Records how a task ended whose result is not read.
    pub(crate) fn ended_as(&self, what: &str, state: TaskState, panics: bool) {
        match state {
            TaskState::Completed if !panics => self.ends.completed.add(1),
            TaskState::Failed if panics => self.ends.panicked.add(1),
            TaskState::Cancelled => self.ends.cancelled.add(1),
            other => self.ledger.complain(format!("{what} was cancelled, and is {other:?}")),
        }
    }

    /// Waits for a task in one of the possible ways.
    pub(crate) fn await_end<T: 'static>(
        &self,
        dice: &mut Dice,
        mut future: ScheduledFuture<T>,
    ) -> Result<T, TaskError> {
        match dice.roll(3) {
            0 => future.join(),
            1 => block_on(&mut future),
            _ => future.join_within(LONG).unwrap_or_else(|| {
                self.ledger.complain("a task did not end");
                future.join()
            }),
        }
    }

    /// Runs the work of a thread. A panic of a capture that is not caught is intended, so nobody
    /// reports it, and the round would wait for the thread without end.
    pub(crate) fn must_not_panic(&self, work: impl FnOnce()) {
        if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(work)) {
            let is_meant = panic.is::<Meant>();
            self.ledger
                .complain(format!("a thread of the soak panicked; by a capture: {is_meant}"));
        }
    }

    /// Checks that the counts of a snapshot add up, and that none has become smaller.
    pub(crate) fn check_counts(&self, before: &Statistics) -> Statistics {
        let now = self.pool.statistics();
        let ended = now.completed + now.failed + now.cancelled;
        let there = (now.pending + now.active) as u64;
        let adds_up = now.submitted == there + ended
            && now.active <= now.pool_size
            && now.pool_size <= now.largest_pool_size;
        let grows = now.submitted >= before.submitted
            && now.completed >= before.completed
            && now.failed >= before.failed
            && now.cancelled >= before.cancelled
            && now.runs >= before.runs;
        if !adds_up || !grows {
            self.ledger.complain(format!("counts that do not add up: {now:?} after {before:?}"));
        }
        now
    }

    /// Returns `true` if no task is pending or running, and the counts match those of the futures.
    pub(crate) fn is_quiet(&self, now: &Statistics) -> bool {
        let ends = &self.ends;
        (now.pending, now.active) == (0, 0)
            && now.submitted == ends.accepted.get()
            && now.completed == ends.completed.get()
            && now.failed == ends.panicked.get()
            && now.cancelled == ends.cancelled.get()
            && now.rejected == 0
    }
}

/// Awaits a future on a thread of its own.
pub(crate) fn block_on<F: Future + Unpin>(future: &mut F) -> F::Output {
    use std::{
        pin::Pin,
        task::{Context, Poll, Wake, Waker},
        thread::{self, Thread},
    };

    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match Pin::new(&mut *future).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Silences intended panics; any other is reported as usual.
pub(crate) fn silence_what_is_meant() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let payload: &dyn Any = panic.payload();
        if !payload.is::<Meant>() {
            told(panic);
        }
    }));
}

/// Polls until the condition holds; gives up after a while.
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let mut patience = Patience::new();
    while patience.lasts() {
        if is_so() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}
