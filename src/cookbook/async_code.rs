//! With tokio, with any other runtime, and with none.
//!
//! # Blocking work from async code
//!
//! Async code has to hash a password, and its runtime must not stand still meanwhile. The future of a submission is a
//! `Future` that any runtime can await. (tokio's own pool for this is `spawn_blocking`. A pool of its own has a size, a
//! name and a bound of its own.)
//!
//! ```
//! use std::error::Error;
//! use punctual::ScheduledThreadPoolExecutor;
//!
//! # fn hash(password: &str) -> u32 { password.bytes().fold(7, |hash, byte| hash.rotate_left(5) ^ u32::from(byte)) }
//! # fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
//! let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
//! runtime.block_on(async {
//!     let hashing = ScheduledThreadPoolExecutor::new(2);
//!     let hashed = hashing.submit(|| hash("sesame"))?; // none of tokio's threads is occupied
//!     assert_eq!(hashed.await?, hash("sesame"));
//!
//!     let ended = hashing.termination();
//!     hashing.shutdown_background(); // a drop would block this thread until the tasks have ended
//!     ended.await;
//!     Ok(())
//! })
//! # }
//! ```
//!
//! **Watch for** three things. A future that is dropped, by a timeout for instance, leaves its task running:
//! [`cancel_on_drop`](crate::ScheduledFuture::cancel_on_drop) makes one that cancels. A closure that returns a future has
//! ended when it has *made* the future, and is refused by the compiler: [`submit`](crate::Handle::submit) says more. And
//! [`join`](crate::ScheduledFuture::join) blocks, and belongs into threads.
//!
//! # Async work on a schedule
//!
//! Each minute something async is to be done. The closure hands it to the runtime and waits for it there, so runs do not
//! overlap, and [`MissedRuns`](crate::MissedRuns) says what happens if one takes long.
//!
//! ```
//! use std::{error::Error, sync::mpsc, time::Duration};
//! use punctual::{FailurePolicy, ManualClock, ScheduledThreadPoolExecutor, trigger::every};
//!
//! # fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
//! let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
//! let clock = ManualClock::new();
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let (minute, (tell, told)) = (Duration::from_secs(60), mpsc::channel());
//!
//! async fn refresh(tell: &mpsc::Sender<u32>) -> Result<(), mpsc::SendError<u32>> {
//!     tell.send(1) // something that is awaited
//! }
//! let tokio = runtime.handle().clone();
//! executor
//!     .task()
//!     .on_failure(FailurePolicy::resume())
//!     .repeat(every(minute).first_in(minute), move || tokio.block_on(refresh(&tell)))?;
//!
//! clock.run_for(10 * minute);
//! assert_eq!(told.try_iter().sum::<u32>(), 10);
//! # Ok(())
//! # }
//! ```
//!
//! **Watch for** the worker, which is occupied while it waits. For many tasks that wait long, `tokio.spawn(…)` in the
//! closure occupies it only for the handing over; the runs may then overlap.
//!
//! # Timers without a runtime
//!
//! Async code that is to run on any runtime needs a sleep, an interval and a time limit. An executor has all three, and a
//! [`Handle`](crate::Handle) to it is all that the code needs. Without a runtime, the
//! [executor that the caller drives](crate::DrivenExecutor) can drive the future as well.
//!
//! ```
//! use std::time::Duration;
//! use punctual::{Handle, ManualClock, ScheduledThreadPoolExecutor, TimeoutError};
//!
//! # async fn fetch() {}
//! async fn refresh(timers: &Handle, times: u32) -> Result<(), TimeoutError> {
//!     let mut ticks = timers.interval(Duration::from_secs(5));
//!     for _ in 0..times {
//!         ticks.tick().await?;
//!         timers.timeout(Duration::from_secs(2), fetch()).await?;
//!     }
//!     timers.sleep(Duration::from_secs(1)).await?;
//!     Ok(())
//! }
//!
//! let clock = ManualClock::new();
//! clock.set_auto_advance(true);
//! let mut executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build_driven()?;
//! let timers = executor.handle();
//! executor.run_until(refresh(&timers, 3))?; // on a runtime: `refresh(&timers, 3).await`
//! assert_eq!(clock.elapsed(), Duration::from_secs(11)); // ticks at 0, 5 and 10 seconds
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the owner: a timer of an executor that has stopped ends with
//! [`TimerStopped`](crate::TimerStopped), and never as if its moment had come.
