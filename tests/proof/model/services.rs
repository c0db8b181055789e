//! The thread of an executor that is no worker: whichever thread needs it first, there is one, and it ends.

use std::time::Duration;

use punctual::{Handle, ManualClock, ScheduledThreadPoolExecutor, Worker};
use shuttle::thread;

use crate::support::{Count, check};

/// Two threads submit the first task that needs the thread at the same moment, and the executor is closed.
fn is_started_once(need: fn(&Handle)) {
    check(move || {
        let threads = Count::default();
        let counted = threads.clone();
        let factory = move |worker: Worker| {
            if worker.index().is_none() {
                counted.add();
            }
            Ok(Some(thread::spawn(move || worker.run())))
        };
        let executor = ScheduledThreadPoolExecutor::builder()
            .clock(ManualClock::new())
            .executes_existing_delayed_tasks_after_shutdown(false)
            .thread_factory(factory)
            .build()
            .expect("valid settings");
        let handle = executor.handle();
        let other = thread::spawn(move || need(&handle));
        need(&executor);
        other.join().expect("no thread panics");
        assert_eq!(threads.get(), 1);
        // It waits for each of these threads.
        executor.close().expect("not on a worker");
    });
}

#[test]
fn one_thread_expires_time_limits() {
    is_started_once(|executor| {
        let limit = Duration::from_secs(1);
        executor.task().timeout(limit).schedule(limit, || ()).expect("it is open");
    });
}
