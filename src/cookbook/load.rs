//! How much runs, how much waits, where it runs, and how long it is kept.
//!
//! # Limit how many run at once
//!
//! Downloads share an executor with other work, and two of them at most are to run at the same time. A
//! [`Group`](crate::Group) is a semaphore for tasks: one that has to wait for its group occupies no worker.
//!
//! ```
//! use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
//! use punctual::{ScheduledThreadPoolExecutor, TaskSet};
//!
//! let executor = ScheduledThreadPoolExecutor::new(4);
//! let downloads = executor.group("downloads").limit(2).build()?;
//!
//! let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
//! let download = || {
//!     let (running, most) = (Arc::clone(&running), Arc::clone(&most));
//!     move || {
//!         most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
//!         // the download
//!         running.fetch_sub(1, Ordering::SeqCst);
//!     }
//! };
//! let mut all = (0..100).map(|_| downloads.submit(download())).collect::<Result<TaskSet<_>, _>>()?;
//! assert!(all.join_all().iter().all(Result::is_ok));
//! assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** tasks of a group that wait for each other: a group with a limit of one runs its tasks one after the other,
//! as a queue of its own would. [`reserve`](crate::GroupBuilder::reserve) says the opposite: how many workers a group leaves to
//! others.
//!
//! # Back-pressure
//!
//! Work arrives faster than it is done. A [bound](crate::Builder::max_pending) on what is pending keeps the memory
//! small, and a [handler](crate::RejectedExecutionHandler) decides about the rest. By default the submission fails, and the
//! error has the closure.
//!
//! ```
//! use std::{sync::mpsc, thread};
//! use punctual::{CallerRunsPolicy, RejectionReason, ScheduledThreadPoolExecutor};
//!
//! let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).max_pending(2);
//! let executor = builder.build()?;
//! let (begin, begun) = mpsc::channel();
//! let (end, ends) = mpsc::channel::<()>();
//! executor.execute(move || {
//!     begin.send(()).ok();
//!     ends.recv().ok(); // the only worker has something to do
//! })?;
//! begun.recv()?;
//!
//! let (first, second) = (executor.submit(|| "first")?, executor.submit(|| "second")?);
//! let refused = executor.submit(|| "third").expect_err("two are pending");
//! assert!(matches!(refused.reason(), RejectionReason::Saturated));
//! refused.into_task().run(); // it is not lost: run it, keep it, or drop it
//!
//! // A submitter that runs the work itself submits nothing meanwhile.
//! executor.set_rejected_execution_handler(CallerRunsPolicy);
//! let here = executor.submit(|| thread::current().id())?;
//! assert_eq!(here.join()?, thread::current().id());
//!
//! drop(end);
//! assert_eq!((first.join()?, second.join()?), ("first", "second"));
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! The other handlers: [`BlockPolicy`](crate::BlockPolicy) has the submitter wait for room,
//! [`DiscardPolicy`](crate::DiscardPolicy) drops the task, [`DiscardOldestPolicy`](crate::DiscardOldestPolicy) drops the one
//! that is due first, and a closure decides as it likes.
//!
//! **Watch for** delayed tasks, which are pending and count: a bound that suits requests is too small for an hour of
//! timeouts.
//!
//! # One machine of several
//!
//! The same program runs on three machines, with the same hourly task, and each hour the work is to be done once. A
//! [gate](crate::gate) is asked on the worker just before each run. Here a variable stands for the row of a
//! database that all machines see, and three executors stand for the machines.
//!
//! ```
//! use std::{sync::{Arc, Mutex}, time::{Duration, SystemTime, UNIX_EPOCH}};
//! use punctual::{
//!     ManualClock, RunGate, ScheduledThreadPoolExecutor,
//!     gate::{Entry, Tick},
//!     trigger::{Due, from_fn},
//! };
//!
//! /// Lets the first run pass that asks for each tick. In SQL, it passes if this changes a row:
//! /// `UPDATE ticks SET last = $planned WHERE task = $name AND last < $planned`.
//! struct OncePerTick(Arc<Mutex<SystemTime>>);
//!
//! impl RunGate for OncePerTick {
//!     fn enter(&self, tick: &Tick<'_>) -> Entry {
//!         let Ok(mut last) = self.0.lock() else { return Entry::Skip };
//!         if tick.planned_wall() <= *last {
//!             return Entry::Skip;
//!         }
//!         *last = tick.planned_wall();
//!         Entry::Run
//!     }
//! }
//!
//! let clock = ManualClock::new();
//! let row = Arc::new(Mutex::new(UNIX_EPOCH));
//! let mut machines = Vec::new();
//! for _ in 0..3 {
//!     let machine = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
//!     // Moments of the wall clock are the same on every machine; those of a rate are not.
//!     let hourly = from_fn(|last| {
//!         let hour = last.after_wall().duration_since(UNIX_EPOCH).ok()?.as_secs() / 3600;
//!         Some(Due::Wall(UNIX_EPOCH + Duration::from_secs(3600 * (hour + 1))))
//!     });
//!     let gate = OncePerTick(Arc::clone(&row));
//!     machine.task().name("report").gate(gate).repeat(hourly, || { /* write it */ })?;
//!     machines.push(machine);
//! }
//! clock.run_for(Duration::from_secs(24 * 3600));
//! let counts: Vec<_> = machines.iter().map(|machine| machine.statistics()).collect();
//! assert_eq!(counts.iter().map(|now| now.runs).sum::<u64>(), 24);
//! assert_eq!(counts.iter().map(|now| now.gate_skips).sum::<u64>(), 2 * 24);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** what "once" means. This gate runs each tick at most once: if the machine that has taken it dies, the
//! tick is lost. A [lease](crate::gate::Lease) can tell others, and the companion crate `punctual-jobs` has such a gate
//! on PostgreSQL.
//!
//! # A cache that expires
//!
//! A value expires a minute after its last use. A [`DelayQueue`](crate::DelayQueue) says which values have expired,
//! without a thread: it holds the keys, in the order in which they expire.
//!
//! ```
//! use std::{collections::HashMap, time::Duration};
//! use punctual::{DelayQueue, ManualClock, delay_queue::{InsertError, Key, Refused}};
//!
//! struct Cache {
//!     values: HashMap<String, (u32, Key)>,
//!     expiring: DelayQueue<String>,
//!     keep: Duration,
//! }
//!
//! impl Cache {
//!     fn put(&mut self, name: &str, value: u32) -> Result<(), InsertError> {
//!         self.forget();
//!         let key = self.expiring.insert(self.keep, name.to_owned()).map_err(Refused::into_error)?;
//!         if let Some((_, before)) = self.values.insert(name.to_owned(), (value, key)) {
//!             self.expiring.remove(before);
//!         }
//!         Ok(())
//!     }
//!
//!     fn get(&mut self, name: &str) -> Option<u32> {
//!         self.forget();
//!         let (value, key) = self.values.get(name)?;
//!         self.expiring.reset(*key, self.keep);
//!         Some(*value)
//!     }
//!
//!     fn forget(&mut self) {
//!         for expired in self.expiring.drain() {
//!             self.values.remove(&expired.element);
//!         }
//!     }
//! }
//!
//! let clock = ManualClock::new(); // `DelayQueue::new()` takes the system's
//! let expiring = DelayQueue::with_clock(clock.clone());
//! let mut cache = Cache { values: HashMap::new(), expiring, keep: Duration::from_secs(60) };
//! cache.put("answer", 42)?;
//! clock.advance(Duration::from_secs(59));
//! assert_eq!(cache.get("answer"), Some(42));
//! clock.advance(Duration::from_secs(59));
//! assert_eq!(cache.get("answer"), Some(42)); // it was used again in time
//! clock.advance(Duration::from_secs(60));
//! assert_eq!(cache.get("answer"), None);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** caches that are rarely used: this one forgets when it is called, and keeps its memory until then. A thread
//! that [takes](crate::DelayQueue::take) from the queue, or a periodic task that calls `forget`, forgets in time.
