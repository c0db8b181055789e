//! Later, again and again, and by the calendar.
//!
//! # `setTimeout` and `setInterval`
//!
//! A function is to be called once after a while, and another one again and again. (Go: `time.AfterFunc` and
//! `time.NewTicker`.)
//!
//! ```
//! use std::time::Duration;
//! use punctual::{ManualClock, ScheduledThreadPoolExecutor};
//!
//! let clock = ManualClock::new();
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let second = Duration::from_secs(1);
//!
//! let timeout = executor.schedule(3 * second, || "three seconds have passed")?;
//! let (initial_delay, period) = (second, second);
//! let interval = executor.schedule_at_fixed_rate(initial_delay, period, || { /* each second */ })?;
//!
//! clock.run_for(3 * second);
//! assert_eq!(timeout.join()?, "three seconds have passed");
//! assert_eq!(executor.statistics().runs, 4); // one, and three
//! assert!(interval.cancel()); // `clearInterval`; `clearTimeout` is the same
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the end of the program: JavaScript waits for timers, and Rust does not. When the executor is
//! dropped, tasks that are not yet due are cancelled. [`join`](crate::ScheduledFuture::join) the future, or
//! [`close`](crate::ScheduledThreadPoolExecutor::close) the executor. Dropping a *future* cancels nothing.
//!
//! # Poll until a condition holds
//!
//! A result will be there at some unknown time. A closure that [`repeat`](crate::Handle::repeat)
//! calls ends the series with `Break` and a value, for which the future can be joined or awaited.
//!
//! ```
//! use std::{ops::ControlFlow, time::Duration};
//! use punctual::{ManualClock, ScheduledThreadPoolExecutor, TaskError, Trigger, trigger::every};
//!
//! let clock = ManualClock::new();
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let second = Duration::from_secs(1);
//!
//! let mut looks = 0;
//! let found = executor.repeat(every(second).times(60), move || {
//!     looks += 1; // a look at a file, for instance
//!     if looks < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break("it is there") }
//! })?;
//! clock.run_for(2 * second);
//! assert_eq!(found.join()?, "it is there");
//!
//! let in_vain = executor.repeat(every(second).times(60), || ControlFlow::<()>::Continue(()))?;
//! clock.run_for(60 * second);
//! assert!(matches!(in_vain.join(), Err(TaskError::Exhausted)));
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the limit: without [`times`](crate::Trigger::times) or [`until`](crate::Trigger::until) it polls
//! for ever. The first look is at once; [`first_in`](crate::trigger::Every::first_in) moves it.
//!
//! # A periodic task with jitter
//!
//! A thousand machines ask the same server once a minute, and are not to ask in the same second.
//!
//! ```
//! use std::time::Duration;
//! use punctual::{ManualClock, ScheduledThreadPoolExecutor, Trigger, trigger::every};
//!
//! let clock = ManualClock::new();
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
//!
//! let spread = every(minute).first_in(minute).jitter(20 * second);
//! let poll = executor.repeat(spread, || { /* ask */ })?;
//!
//! let first = poll.delay().expect("it is pending");
//! assert!(minute <= first && first < minute + 20 * second);
//! clock.run_for(60 * minute + 20 * second);
//! assert_eq!(executor.statistics().runs, 60); // the series does not drift
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the longest span, which should be shorter than the period, so that each run is due before the next
//! one. If a machine is to have the same spans after each start, give them its name: [`Jitter::name`](crate::trigger::Jitter::name).
//! Behind a [gate](crate::gate) the spans are the same on all machines, by the name of the task.
//!
//! # When the last run still goes on
//!
//! Runs of one task never overlap. So a run that takes longer than the period makes others late, and
//! [`MissedRuns`](crate::MissedRuns) says what becomes of these: whether they are left out, or caught up.
//!
//! ```
//! use std::{error::Error, mem, sync::mpsc, time::Duration};
//! use punctual::{ManualClock, MissedRuns, ScheduledThreadPoolExecutor};
//!
//! /// Runs once a second; the first run takes three and a half. Returns when each starts, in ms.
//! fn starts(missed: MissedRuns) -> Result<Vec<u128>, Box<dyn Error + Send + Sync>> {
//!     let clock = ManualClock::new();
//!     let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//!     let (tell, told) = mpsc::channel();
//!     let (time, second) = (clock.clone(), Duration::from_secs(1));
//!     let mut is_first = true;
//!     let (initial_delay, period) = (second, second);
//!     executor.task().missed_runs(missed).schedule_at_fixed_rate(initial_delay, period, move || {
//!         tell.send(time.elapsed().as_millis()).ok();
//!         if mem::take(&mut is_first) {
//!             time.advance(Duration::from_millis(3_500)); // what takes so long
//!         }
//!     })?;
//!     clock.run_for(Duration::from_millis(5_500));
//!     Ok(told.try_iter().collect())
//! }
//!
//! // The next moment that is still to come; one run for all that were missed; each of them; or a
//! // second between two starts.
//! assert_eq!(starts(MissedRuns::Skip)?, [1_000, 5_000]);
//! assert_eq!(starts(MissedRuns::Coalesce)?, [1_000, 4_500, 5_000]);
//! assert_eq!(starts(MissedRuns::Burst)?, [1_000, 4_500, 4_500, 4_500, 5_000]);
//! assert_eq!(starts(MissedRuns::Delay)?, [1_000, 4_500, 5_500]);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the default. The verbs that Java has, such as
//! [`schedule_at_fixed_rate`](crate::Handle::schedule_at_fixed_rate), make up for each run (`Burst`);
//! [`repeat`](crate::Handle::repeat) makes up for all with one (`Coalesce`). If runs *should* overlap, have each run
//! [`execute`](crate::Handle::execute) the work through a handle.
//!
//! # Run at 03:00 local time
//!
//! A backup is made each night at three, by the clocks of Berlin. It needs the feature `cron`.
//!
//! ```
//! # #[cfg(feature = "cron")] {
//! use std::time::{Duration, UNIX_EPOCH};
//! use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::cron};
//!
//! let hour = Duration::from_secs(3600);
//! let clock = ManualClock::new();
//! let saturday = UNIX_EPOCH + Duration::from_secs(1_774_699_200); // 28 March 2026, 12:00 UTC
//! clock.set_wall_time(saturday);
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//!
//! let backup = executor.repeat(cron("0 3 * * *", "Europe/Berlin")?, || { /* save everything */ })?;
//!
//! // In this night the clocks go from 02:00 to 03:00, at 01:00 UTC. The next day is an ordinary one.
//! assert_eq!(backup.delay(), Some(13 * hour));
//! clock.run_for(13 * hour);
//! assert_eq!((executor.statistics().runs, backup.delay()), (1, Some(24 * hour)));
//!
//! // No clock shows half past two in that night: the run is at three, when the gap is over.
//! let half_past_two = cron("30 2 * * *", "Europe/Berlin")?;
//! assert_eq!(half_past_two.next_after(saturday), Some(saturday + 13 * hour));
//!
//! // On 25 October clocks show it at 00:30 UTC and again at 01:30 UTC: it runs the first time.
//! let midnight = UNIX_EPOCH + Duration::from_secs(1_792_886_400); // 00:00 UTC
//! let first = half_past_two.next_after(midnight).ok_or("there is a next run")?;
//! assert_eq!(first, midnight + hour / 2);
//! assert_eq!(half_past_two.next_after(first), Some(midnight + hour / 2 + 25 * hour));
//! # }
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the zone, which has no default: the name decides, and `UTC` is one. Where a machine has no time
//! zone files, enable the feature `tzdb-bundle-always` of the crate `jiff`. Expressions that mean an interval, such
//! as `*/15 * * * *`, treat the change of the clocks otherwise:
#![cfg_attr(feature = "cron", doc = "[`cron`](crate::trigger::cron()) explains it.")]
#![cfg_attr(not(feature = "cron"), doc = "`cron` explains it.")]
//! The schedule lives as long as the process: a run that falls into a time at which the program does not run does
//! not take place.
//!
//! # Debounce and throttle
//!
//! An editor saves its file once typing has paused for a second, but at least every ten seconds (debounce). It draws the
//! screen at each key, but at most ten times a second (throttle, a rate limit).
//!
//! ```
//! use std::time::Duration;
//! use punctual::{ManualClock, ScheduledThreadPoolExecutor};
//!
//! let clock = ManualClock::new();
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let second = Duration::from_secs(1);
//! let (files, screen) = (executor.group("files").build()?, executor.group("screen").build()?);
//!
//! let save = files.task().debounce(second, || { /* save the file */ })?.max_wait(10 * second);
//! let draw = screen.task().throttle(second / 10, || { /* draw the screen */ })?;
//!
//! for _key in 0..20 {
//!     save.call();
//!     draw.call();
//!     clock.run_for(second / 50); // they type fast
//! }
//! assert_eq!(screen.statistics().runs, 5); // at 0, 0.1, 0.2, 0.3 and 0.4 seconds
//! assert_eq!(files.statistics().runs, 0); // they have not stopped yet
//! clock.run_for(second);
//! assert_eq!(files.statistics().runs, 1);
//!
//! save.call();
//! assert!(save.flush()); // the window is closed: now
//! clock.run_until_idle();
//! assert_eq!(files.statistics().runs, 2);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the drop: dropping [`Debounced`](crate::Debounced) cancels a run that is waited for, so
//! [`flush`](crate::Debounced::flush) first. `flush` does not wait for the run. (The groups are here to count the
//! two apart; `executor.debounce` and `executor.throttle` need none.)
//!
//! # A heartbeat, or dead man's switch
//!
//! A connection is closed when nothing has been heard from it for thirty seconds. One task waits for as long, and
//! each sign of life puts it off, in place: nothing is cancelled and scheduled again.
//!
//! ```
//! use std::time::Duration;
//! use punctual::{ManualClock, ScheduledThreadPoolExecutor};
//!
//! let clock = ManualClock::new();
//! let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//! let patience = Duration::from_secs(30);
//!
//! let lost = executor.schedule(patience, || "the connection is closed")?;
//! let alive = lost.task_handle(); // can be cloned, for those who hear from it
//!
//! for _ in 0..10 {
//!     clock.run_for(Duration::from_secs(20));
//!     assert!(alive.reschedule(patience), "heard in time");
//! }
//! clock.run_for(patience);
//! assert_eq!(lost.join()?, "the connection is closed");
//! assert!(!alive.reschedule(patience), "heard too late");
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** the answer of [`reschedule`](crate::TaskHandle::reschedule): `false` means that the task has begun, and
//! that the connection is being closed.
