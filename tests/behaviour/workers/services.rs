//! The threads of an executor that are no workers: the one that expires time limits, and the one that watches
//! the wall clock. Each is started with the first task that needs it, and there is never a second.

use std::{
    io,
    sync::{Arc, Barrier, OnceLock},
    thread,
    time::Duration,
};

use punctual::{
    Builder, Handle, ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor as Executor, Worker,
    trigger,
};

use crate::{
    rounds::rounds,
    support::{LONG, Log, in_time, start},
};

/// Submits a task that needs the thread; returns `None` if it is refused.
type Need = fn(&Handle) -> Option<ScheduledFuture<()>>;

const HOUR: Duration = Duration::from_secs(3600);
const NEEDS: [(&str, Need); 2] = [
    ("punctual-timeouts", |executor| executor.task().timeout(LONG).schedule(HOUR, || ()).ok()),
    ("punctual-wall-clock", |executor| {
        let moment = executor.clock().wall_time() + HOUR;
        executor.repeat(trigger::at([moment]), || ()).ok()
    }),
];

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

/// Lets three threads submit the first tasks of that kind at the same moment.
fn submit_at_once(executor: &Executor, need: Need) {
    let together = Barrier::new(3);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                together.wait();
                need(executor).expect("accepted");
            });
        }
    });
}

/// Threads that need such a thread for the first time at the same moment get one, and `close` returns.
fn one_thread_is_started(name: &'static str, builder: impl Fn() -> Builder) {
    let need = NEEDS.iter().find(|(known, _)| *known == name).expect("it is one of these").1;
    for round in rounds(name, 400) {
        let (executor, names) = logging(builder());
        submit_at_once(&executor, need);
        assert_eq!(names.entries(), [name], "round {round}");
        executor.set_executes_existing_delayed_tasks_after_shutdown(false);
        in_time("the end", || executor.close()).expect("not on a worker");
    }
}

#[test]
fn one_thread_watches_the_wall_clock() {
    let builder = || Executor::builder().clock(ManualClock::new());
    one_thread_is_started("punctual-wall-clock", builder);
}

#[test]
fn one_thread_watches_the_wall_clock_of_the_system() {
    one_thread_is_started("punctual-wall-clock", Executor::builder);
}

#[test]
fn one_thread_expires_time_limits() {
    let builder = || Executor::builder().clock(ManualClock::new());
    one_thread_is_started("punctual-timeouts", builder);
}

/// A factory that fails leaves the start to the next submission; also to one that is made in the drop of what the
/// factory has panicked with.
#[test]
fn a_thread_that_could_not_be_started_is_started_later() {
    for (name, need) in NEEDS {
        for panics in [false, true] {
            let (names, own) = (Log::new(), Arc::new(OnceLock::new()));
            let (log, known) = (names.clone(), Arc::clone(&own));
            let factory = move |worker: Worker| {
                if worker.index().is_some() {
                    return start(worker);
                }
                log.push(worker.name().to_owned());
                match log.entries().len() {
                    1 if panics => std::panic::panic_any(Submits(Arc::clone(&known), need)),
                    1 => Err(io::Error::other("no more threads")),
                    _ => start(worker),
                }
            };
            let executor = Executor::builder().thread_factory(factory).build().unwrap();
            own.set(executor.handle()).expect("set once");
            executor.prestart_core_thread().expect("there are threads");
            let handle = executor.handle();
            let is_refused = in_time("a submission", move || need(&handle).is_none());
            assert!(is_refused, "{name}: the factory has failed");
            assert!(need(&executor).is_some());
            assert_eq!(names.entries(), [name, name]);
        }
    }
}

/// Submits a task when it is dropped.
struct Submits(Arc<OnceLock<Handle>>, Need);

impl Drop for Submits {
    fn drop(&mut self) {
        assert!((self.1)(self.0.get().expect("it is set")).is_some());
    }
}
