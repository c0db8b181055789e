//! Closures that are handed the context of their run.

use super::{TaskContext, current_task};

/// Makes a closure for any verb of one that takes the [context](TaskContext) of its run: which run it is, how late it
/// is, and whether it is asked to stop. What the closure returns stays what it is.
///
/// Works with every verb, of an executor, a group or a builder. A closure that can be called only once, because
/// it consumes something that it has captured, is for [`with_context_once`]. Costs as much as [`current_task`], for each
/// run.
///
/// ```
/// use std::{sync::mpsc, time::Duration};
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor, with_context};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let (tell, told) = mpsc::channel();
/// let (initial_delay, period) = (Duration::ZERO, Duration::from_secs(1));
/// executor.schedule_at_fixed_rate(initial_delay, period, with_context(move |run| {
///     tell.send(run.run_number()).ok();
/// }))?;
/// clock.run_for(2 * period);
/// assert_eq!(told.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # Panics
///
/// The closure that is returned panics if it is called outside of a task.
#[doc(alias("current_task", "JobExecutionContext"))]
pub fn with_context<F, T>(mut body: F) -> impl FnMut() -> T + use<F, T>
where
    F: FnMut(&TaskContext) -> T,
{
    move || body(&context())
}

/// As [`with_context`], for a closure that can be called only once.
///
/// ```
/// use punctual::{ScheduledThreadPoolExecutor, with_context_once};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let greeting = String::from("hello");
/// let task = executor.task().name("greeter").submit(with_context_once(move |run| {
///     (greeting, run.name())
/// }))?;
/// assert_eq!(task.join()?, ("hello".into(), Some("greeter".into())));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # Panics
///
/// The closure that is returned panics if it is called outside of a task.
pub fn with_context_once<F, T>(body: F) -> impl FnOnce() -> T + use<F, T>
where
    F: FnOnce(&TaskContext) -> T,
{
    move || body(&context())
}

#[allow(
    clippy::panic,
    reason = "documented: a test that calls such a closure by itself has no other answer"
)]
fn context() -> TaskContext {
    match current_task() {
        Some(context) => context,
        None => panic!("a closure of `with_context` was called outside of a task"),
    }
}
