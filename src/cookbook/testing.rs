//! Time in tests.
//!
//! # Test timed code
//!
//! A reminder is sent after a week, unless the invoice is paid before. The code takes a [`Handle`](crate::Handle), so that
//! its test can hand it that of an executor on a [`ManualClock`](crate::ManualClock). The tasks run on real threads, at exact times, and the
//! week takes no time.
//!
//! ```
//! use std::{sync::mpsc::{Sender, channel}, time::Duration};
//! use punctual::{
//!     Handle, ManualClock, RejectedExecutionError, ScheduledFuture, ScheduledThreadPoolExecutor,
//! };
//!
//! const DAY: Duration = Duration::from_secs(24 * 60 * 60);
//!
//! fn remind(
//!     executor: &Handle,
//!     mail: Sender<u32>,
//!     invoice: u32,
//! ) -> Result<ScheduledFuture<()>, RejectedExecutionError> {
//!     executor.schedule(7 * DAY, move || mail.send(invoice).unwrap_or(()))
//! }
//!
//! // In the test:
//! let clock = ManualClock::new();
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let (mail, sent) = channel();
//! let (_first, second) = (remind(&executor, mail.clone(), 1)?, remind(&executor, mail, 2)?);
//!
//! clock.run_for(6 * DAY);
//! assert_eq!(sent.try_iter().count(), 0);
//! second.cancel(); // it is paid
//! clock.run_for(DAY);
//! assert_eq!(sent.try_iter().collect::<Vec<_>>(), [1]);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the three ways to move the clock. [`run_for`](crate::ManualClock::run_for) goes from deadline to deadline and
//! waits at each until everything has run: the one for tests. [`advance`](crate::ManualClock::advance) jumps, as if all
//! workers had been busy meanwhile, and does not wait. [`run_until`](crate::ManualClock::run_until) goes on until a condition
//! holds. Code that reads the time should read it from [`Handle::clock`](crate::Handle::clock).
//!
//! # Let the clock go on by itself
//!
//! The code under test waits in a `join`, so the test cannot move the clock meanwhile. With
//! [`set_auto_advance`](crate::ManualClock::set_auto_advance) it jumps to the next deadline whenever all threads wait. (tokio's
//! paused clock does the same.)
//!
//! ```
//! use std::time::Duration;
//! use punctual::{ManualClock, ScheduledThreadPoolExecutor};
//!
//! let clock = ManualClock::new();
//! clock.set_auto_advance(true);
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let minute = Duration::from_secs(60);
//!
//! let report = executor.schedule(60 * minute, || "written")?;
//! assert!(report.join_timeout(minute).is_none());
//! assert_eq!(clock.elapsed(), minute);
//! assert_eq!(report.join()?, "written");
//! assert_eq!(clock.elapsed(), 60 * minute);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** waits that the clock does not know, such as a channel's `recv` in the test's thread: time stands still
//! meanwhile.
