//! The executor without threads: what one call runs, what the caller is told, who is woken, which waits are
//! refused, and how it ends. `tests/behaviour/without_threads` runs the other rooms on such an executor.

mod extensions;
mod groups;
mod limits;
mod no_threads;
mod rounds;
mod running;
mod stopping;
mod waits;
mod wake_ups;
mod wall_clock;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Wake, Waker},
    time::Duration,
};

use punctual::{Builder, DrivenExecutor, ManualClock, ScheduledThreadPoolExecutor};

const SECOND: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);

/// An executor that this thread drives, on a clock that stands still.
fn driven() -> (ManualClock, DrivenExecutor) {
    driven_with(|builder| builder)
}

fn driven_with(settings: impl FnOnce(Builder) -> Builder) -> (ManualClock, DrivenExecutor) {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    (clock, settings(builder).build_driven().expect("the settings are good"))
}

/// Advances the clock to the next moment again and again, as an event loop would, for so long.
fn run_for(clock: &ManualClock, executor: &mut DrivenExecutor, span: Duration) {
    let end = clock.elapsed() + span;
    executor.run_due();
    while let Some(step) = executor.time_until_next().filter(|step| clock.elapsed() + *step <= end)
    {
        clock.advance(step);
        executor.run_due();
    }
    clock.advance(end.saturating_sub(clock.elapsed()));
}

/// How often each pending task has run, in the order in which they are due next.
fn runs(executor: &DrivenExecutor) -> Vec<u64> {
    executor.pending_tasks().iter().map(|task| task.run_count).collect()
}

/// Counts how often it was woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wakes {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Counts the wake-ups of an executor.
    fn of(executor: &mut DrivenExecutor) -> Arc<Self> {
        let wakes = Arc::<Self>::default();
        executor.set_waker(Waker::from(Arc::clone(&wakes)));
        wakes
    }
}
