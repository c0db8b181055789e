//! The end of a task, and the end of the program.
//!
//! # Stop on Ctrl-C
//!
//! The program runs until Ctrl-C or SIGTERM, and then shuts down gracefully. The signal is sent through a channel, because a handler should do little; here it comes from the crate `ctrlc` with its feature `termination`.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use punctual::ScheduledThreadPoolExecutor;
//!
//! let (stop, stopped) = mpsc::channel();
//! ctrlc::set_handler(move || stop.send(()).unwrap_or(()))?;
//!
//! let executor = ScheduledThreadPoolExecutor::new(2);
//! let (initial_delay, period) = (Duration::ZERO, Duration::from_secs(1));
//! executor.schedule_at_fixed_rate(initial_delay, period, || { /* sweep */ })?;
//!
//! # #[cfg(unix)]
//! # rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT)?;
//! # #[cfg(not(unix))]
//! # return Ok(());
//! # #[cfg(unix)] {
//! stopped.recv()?; // the main thread waits here
//! let (patience, grace) = (Duration::from_secs(10), Duration::from_secs(2));
//! let report = executor.shutdown_within(patience, grace)?;
//! for task in report.still_running() {
//!     eprintln!("{} does not stop", task.name().unwrap_or("a task"));
//! }
//! # assert!(report.is_terminated());
//! # }
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! The program ends within twelve seconds, whatever its tasks do. One that ignores its token ends with the process, since the
//! drop of the executor waits for nothing after that.
//!
//! **Watch for** `std::process::exit` in a handler: nothing waits for tasks then, and no destructor is called. In async
//! code, await the signal, call
//! [`shutdown_background`](crate::ScheduledThreadPoolExecutor::shutdown_background), and await
//! [`termination`](crate::Handle::termination).
//!
//! # Shut down with a deadline
//!
//! Tasks that are due soon are still to run, those that are far off are not, and the whole is to take no longer than
//! thirty-five seconds. The report says what became of each task.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use punctual::{ManualClock, ScheduledThreadPoolExecutor, with_context};
//!
//! let clock = ManualClock::new();
//! clock.set_auto_advance(true); // while the shutdown waits
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let seconds = Duration::from_secs;
//!
//! executor.task().name("letter").schedule(seconds(5), || { /* send it */ })?;
//! executor.task().name("invoice").schedule(seconds(3600), || { /* write it */ })?;
//! let (begin, begun) = mpsc::channel();
//! executor.task().name("watcher").execute(with_context(move |run| {
//!     begin.send(()).ok();
//!     while run.token().sleep(seconds(1)).is_ok() { /* look */ }
//! }))?;
//! begun.recv()?;
//!
//! // Half a minute for what the policies keep; then the rest is cancelled, and what runs has five
//! // seconds to stop.
//! let (patience, grace) = (seconds(30), seconds(5));
//! let report = executor.shutdown_within(patience, grace)?;
//! assert!(report.is_terminated());
//! let ran: Vec<_> = report.ran().iter().filter_map(|task| task.name()).collect();
//! assert_eq!(ran, ["letter", "watcher"]);
//! let cancelled: Vec<_> = report.cancelled().iter().filter_map(|task| task.name()).collect();
//! assert_eq!(cancelled, ["invoice"]);
//! assert_eq!(clock.elapsed(), patience); // the watcher has stopped at once
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** periodic tasks: a shutdown cancels them, unless
//! [a policy](crate::Builder::continues_existing_periodic_tasks_after_shutdown) says otherwise. To get pending tasks back and
//! store them, call [`shutdown_now`](crate::Handle::shutdown_now).
//!
//! # Stop a task that runs
//!
//! A long computation is no longer wanted. Rust cannot end a thread from outside, so the task has to look at its
//! [token](crate::TaskContext::token), or sleep on it.
//!
//! ```
//! use std::sync::mpsc;
//! use punctual::{ScheduledThreadPoolExecutor, with_context};
//!
//! let executor = ScheduledThreadPoolExecutor::new(1);
//! let (begin, begun) = mpsc::channel();
//! let (tell, told) = mpsc::channel();
//! let count = executor.submit(with_context(move |run| {
//!     let token = run.token();
//!     begin.send(()).ok();
//!     let mut steps = 0_u64;
//!     while !token.is_cancelled() {
//!         steps += 1; // a step of the computation
//!     }
//!     tell.send(steps).ok(); // put it away
//! }))?;
//! begun.recv()?;
//! assert!(count.cancel_and_wait()?); // when this returns, nothing of it runs any more
//! assert!(told.try_recv().is_ok());
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the difference: [`cancel`](crate::ScheduledFuture::cancel) ends the *future* of a running task and lets its
//! body finish, [`cancel_and_signal`](crate::ScheduledFuture::cancel_and_signal) asks the body to stop and does not wait,
//! [`cancel_and_wait`](crate::ScheduledFuture::cancel_and_wait) waits.
