//! Requests that fail, and answers that come late.
//!
//! # Retry with back-off and a deadline
//!
//! A page is fetched. If that fails, it is tried again after a second, then after two, four and so on, until it works
//! or a minute has passed. [`retry`](crate::Handle::retry) returns a future for the page, and [`Backoff`](crate::Backoff)
//! says how long to wait, and how long to try.
//!
//! ```
//! use std::{io, time::Duration};
//! use punctual::{Backoff, ManualClock, ScheduledThreadPoolExecutor, with_context};
//!
//! let clock = ManualClock::new();
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
//! let (first, longest) = (second, 16 * second);
//! let backoff = Backoff::exponential(first, longest).max_elapsed(minute);
//!
//! let fetch = with_context(|run| {
//!     // the request
//!     if run.attempt() < 4 { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok("the page") }
//! });
//! let page = executor.task().name("fetch").retry(backoff, fetch)?;
//! clock.run_for(7 * second); // attempts at 0, 1, 3 and 7 seconds
//! assert_eq!(page.join()?, "the page");
//!
//! // It never works. After 0, 1, 3, 7, 15, 31 and 47 seconds the next attempt would be too late.
//! let in_vain = executor.retry(backoff, || -> io::Result<()> { Err(io::ErrorKind::NotFound.into()) })?;
//! clock.run_for(minute);
//! let error: io::Error = in_vain.join().expect_err("the last attempt failed").downcast()?;
//! assert_eq!(error.kind(), io::ErrorKind::NotFound);
//! assert_eq!(executor.statistics().failed_runs, 3 + 7);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! [`max_attempts`](crate::Backoff::max_attempts) limits how often it is tried. If many clients fail together,
//! [`jitter`](crate::Backoff::jitter) keeps them from coming back together. The runs of a series are retried by
//! [`Trigger::retry`](crate::Trigger::retry): `every(minute).retry(backoff)`.
//!
//! **Watch for** attempts that hang: [`timeout`](crate::TaskBuilder::timeout) limits each of them. A retry is right only
//! for what may be done twice; an error that no further attempt mends is returned as
//! [a result](crate::Handle::retry). Async code asks [`delay_after`](crate::Backoff::delay_after) for the next delay, and sleeps for
//! so long.
//!
//! # A time limit for each request
//!
//! Each request has two seconds. When these are over its future ends, also if the request is still waiting for a
//! worker, and a request that runs is asked to stop.
//!
//! ```
//! use std::time::Duration;
//! use punctual::{ManualClock, ScheduledThreadPoolExecutor, with_context};
//!
//! let clock = ManualClock::new();
//! clock.set_auto_advance(true);
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let seconds = Duration::from_secs;
//!
//! // A request that takes that long, and ends early on request.
//! let request = move |takes: u64| {
//!     with_context(move |run| run.token().sleep(seconds(takes)).map(|()| "the answer"))
//! };
//! let quick = executor.task().timeout(seconds(2)).submit(request(1))?;
//! assert_eq!(quick.join()?, Ok("the answer"));
//!
//! let slow = executor.task().timeout(seconds(2)).submit(request(3600))?;
//! assert!(slow.join().expect_err("an hour is too long").is_timeout());
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** bodies that do not look at their [token](crate::TaskContext::token): Rust cannot end a thread, so such a
//! body occupies its worker until it returns, although its future has ended. Give a socket a timeout of its own as well. In
//! async code, [`Handle::timeout`](crate::Handle::timeout) drops the request where it stands.
//!
//! # A timeout that an answer calls off
//!
//! A question has been sent, and another thread will receive the answer. Either the answer or the timeout is
//! delivered, and never both: [`cancel`](crate::ScheduledFuture::cancel) returns `true` to the one caller that was in time.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use punctual::{ManualClock, ScheduledThreadPoolExecutor};
//!
//! let clock = ManualClock::new();
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let limit = Duration::from_secs(30);
//! let (tell, told) = mpsc::channel();
//!
//! // For each question that is sent:
//! let ask = |question: u32| {
//!     let tell = tell.clone();
//!     executor.schedule(limit, move || tell.send((question, Err("no answer"))).unwrap_or(()))
//! };
//! let (first, second) = (ask(1)?, ask(2)?);
//!
//! // When the answer to the first has come:
//! clock.run_for(Duration::from_secs(29));
//! if first.cancel() {
//!     tell.send((1, Ok("yes")))?;
//! }
//! clock.run_for(Duration::from_secs(1));
//! // When the answer to the second has come:
//! if second.cancel() {
//!     tell.send((2, Ok("no")))?;
//! }
//! assert_eq!(told.try_iter().collect::<Vec<_>>(), [(1, Ok("yes")), (2, Err("no answer"))]);
//! assert_eq!(executor.pending_count(), 0); // a cancelled timeout leaves the queue at once
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** work in the closure: with a million questions that expire together it is done a million times. A timeout
//! that is cancelled costs about a hundred nanoseconds (`docs/performance.md`).
//!
//! # Ask two servers
//!
//! The first answer is taken, and the other request is asked to stop. If both fail, the last error is returned.
//!
//! ```
//! use punctual::{ScheduledThreadPoolExecutor, with_context};
//!
//! let executor = ScheduledThreadPoolExecutor::new(2);
//! let ask = |server: &'static str| {
//!     with_context(move |run| {
//!         if server == "backup" {
//!             return Ok("the answer");
//!         }
//!         run.token().wait(); // silent until it is asked to stop
//!         Err("asked to stop")
//!     })
//! };
//! assert_eq!(executor.invoke_any(["main", "backup"].map(ask))?, "the answer");
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the number of workers: requests that find no worker wait for one.
