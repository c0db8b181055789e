//! The thread of an executor that is no worker: it expires time limits. It is started with the first task that needs it,
//! and there is never a second.

use std::{
    io,
    sync::{Arc, Barrier, OnceLock},
    thread,
    time::Duration,
};

use punctual::{
    Builder, Handle, ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor as Executor, Worker,
};

use crate::{
    rounds::rounds,
    support::{LONG, Log, in_time, start},
};

const HOUR: Duration = Duration::from_secs(3600);
const NAME: &str = "punctual-timeouts";

/// Submits a task that needs the thread; returns `None` if it is refused.
fn need(executor: &Handle) -> Option<ScheduledFuture<()>> {
    executor.task().timeout(LONG).schedule(HOUR, || ()).ok()
}

/// An executor whose factory logs the names of the threads that are no workers.
fn logging(builder: Builder) -> (Executor, Log<String>) {
    let names = Log::new();
    let log = names.clone();
    let factory = move |worker: Worker| {
        if worker.index().is_none() {
            log.push(worker.name().to_owned());
        }
        start(worker)
    };
    (builder.thread_factory(factory).build().expect("good settings"), names)
}

/// Threads that need such a thread for the first time at the same moment get one, and `close` returns.
#[test]
fn one_thread_expires_time_limits() {
    for round in rounds(NAME, 400) {
        let (executor, names) = logging(Executor::builder().clock(ManualClock::new()));
        let together = Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    together.wait();
                    need(&executor).expect("accepted");
                });
            }
        });
        assert_eq!(names.entries(), [NAME], "round {round}");
        executor.set_executes_existing_delayed_tasks_after_shutdown(false);
        in_time("the end", || executor.close()).expect("not on a worker");
    }
}

/// A factory that fails leaves the start to the next submission; also to one that is made in the drop of what the
/// factory has panicked with.
#[test]
fn a_thread_that_could_not_be_started_is_started_later() {
    for panics in [false, true] {
        let (names, own) = (Log::new(), Arc::new(OnceLock::new()));
        let (log, known) = (names.clone(), Arc::clone(&own));
        let factory = move |worker: Worker| {
            if worker.index().is_some() {
                return start(worker);
            }
            log.push(worker.name().to_owned());
            match log.entries().len() {
                1 if panics => std::panic::panic_any(Submits(Arc::clone(&known))),
                1 => Err(io::Error::other("no more threads")),
                _ => start(worker),
            }
        };
        let executor = Executor::builder().thread_factory(factory).build().unwrap();
        own.set(executor.handle()).expect("set once");
        executor.prestart_core_thread().expect("there are threads");
        let handle = executor.handle();
        let is_refused = in_time("a submission", move || need(&handle).is_none());
        assert!(is_refused, "the factory has failed");
        assert!(need(&executor).is_some());
        assert_eq!(names.entries(), [NAME, NAME]);
    }
}

/// Submits a task when it is dropped.
struct Submits(Arc<OnceLock<Handle>>);

impl Drop for Submits {
    fn drop(&mut self) {
        assert!(need(self.0.get().expect("it is set")).is_some());
    }
}
