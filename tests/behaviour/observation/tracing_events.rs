//! Events for `tracing`: every event and span of a task, with its fields.

use std::{
    io,
    panic::panic_any,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use punctual::{
    Backoff, FailurePolicy, ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor, Worker,
    gate::{self, Entry},
    trigger::every,
};
use tracing::Level;

use super::collector::{Collector, only};
use crate::support::{Counter, Log, in_time, manual, manual_with, ms, worker_of};

/// An executor whose events are recorded, on a clock that stands still.
fn listened_to() -> (&'static Collector, ManualClock, ScheduledThreadPoolExecutor) {
    let collector = Collector::get();
    let (clock, executor) = manual(1);
    (collector, clock, executor)
}

/// An event announces a task when it is scheduled, and each run has a span, a start and an end.
#[test]
fn the_life_of_a_task_is_told() {
    let (collector, clock, executor) = listened_to();
    let time = clock.clone();
    let task = executor.task().name("traced life");
    let future = task.schedule(Duration::from_micros(1_500), move || time.advance(ms(3)));
    let id = future.expect("accepted").id().to_string();
    clock.advance(Duration::from_micros(1_750));
    clock.run_until_idle();
    let said = collector.said_about("traced life");
    let scheduled = only(&said, "scheduled");
    assert_eq!(scheduled.level, Level::DEBUG);
    assert_eq!(scheduled.fields.get("task"), id);
    assert_eq!(scheduled.fields.get("name"), "traced life");
    assert_eq!(scheduled.fields.get("delay_us"), "1500");
    let span = only(&said, "");
    assert!(span.is_span);
    assert_eq!(span.level, Level::INFO);
    assert_eq!(span.fields.get("task"), id);
    assert_eq!(span.fields.get("name"), "traced life");
    assert_eq!(span.fields.get("run"), "1");
    assert_eq!(span.fields.get("lateness_us"), "250");
    let started = only(&said, "started");
    let ended = only(&said, "ended");
    assert_eq!((started.level, ended.level), (Level::DEBUG, Level::DEBUG));
    assert_eq!(ended.fields.get("run_time_us"), "3000");
    for inside in [started, ended] {
        let span = inside.span.as_ref().expect("in a span");
        assert_eq!(span.get("task"), id);
        assert_eq!((inside.fields.get("task"), inside.fields.get("name")), (&*id, "traced life"));
        assert_eq!(inside.fields.get("run"), "1");
    }
    assert_eq!(said.len(), 4, "{said:#?}");
}

/// The spans of a periodic task's runs are numbered.
#[test]
fn runs_are_numbered() {
    let (collector, clock, executor) = listened_to();
    let task = executor.task().name("traced runs");
    let beat = task.schedule_at_fixed_rate(ms(1), ms(1), || {});
    drop(beat.expect("accepted"));
    clock.run_for(ms(3));
    let said = collector.said_about("traced runs");
    let spans = said.iter().filter(|said| said.is_span);
    let runs: Vec<_> = spans.map(|span| span.fields.get("run")).collect();
    assert_eq!(runs, ["1", "2", "3"]);
}

/// The cancellation of a task is reported once, with the reason.
#[test]
fn a_cancellation_is_told_with_its_reason() {
    let (collector, _clock, executor) = listened_to();
    let task = executor.task().name("traced cancel");
    let future = task.schedule(ms(1), || {}).expect("accepted");
    assert!(future.cancel());
    assert!(!future.cancel());
    let said = collector.said_about("traced cancel");
    let cancelled = only(&said, "cancelled");
    assert_eq!(cancelled.level, Level::DEBUG);
    assert_eq!(cancelled.fields.get("task"), future.id().to_string());
    assert_eq!(cancelled.fields.get("reason"), "cancellation was requested");
}

/// G17: the end of a periodic task by its time limit is reported once, as an error, with the
/// reason.
#[test]
fn an_end_without_the_users_doing_is_an_error() {
    let (collector, clock, executor) = listened_to();
    let (time, task) = (clock.clone(), executor.task().name("traced end").timeout(ms(5)));
    let poller = task.schedule_at_fixed_rate(ms(1), ms(1), move || time.advance(ms(5)));
    let poller = poller.expect("accepted");
    clock.run_for(ms(20));
    let said = collector.said_about("traced end");
    let ended = only(&said, "a task failed");
    assert_eq!(ended.level, Level::ERROR);
    assert_eq!(ended.fields.get("task"), poller.id().to_string());
    assert_eq!(ended.fields.get("error"), "exceeded its time limit of 5ms");
}

/// A capture that panics when a cancel drops it is reported as an error, even if it only resumes a
/// panic.
#[test]
fn a_drop_that_panics_is_told() {
    struct Quiet;
    impl Drop for Quiet {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("traced drop"));
        }
    }
    let (collector, _clock, executor) = listened_to();
    let quiet = Quiet;
    let future = executor.schedule(ms(1), move || drop(quiet)).expect("accepted");
    assert!(future.cancel());
    let said = collector.said_about("traced drop");
    let told = only(&said, "the drop of a value of a task panicked");
    assert_eq!((told.level, told.fields.get("task")), (Level::ERROR, &*future.id().to_string()));
}

/// A panic is reported once, as an error with its message, in the span of the run that panicked.
#[test]
fn a_panic_is_told_in_the_span_of_its_run() {
    let (collector, clock, executor) = listened_to();
    let named = |name: &'static str| executor.task().name(name);
    let once = named("traced panic, once").execute(|| panic_any("traced boom, once"));
    once.expect("accepted");
    let again = named("traced panic, again");
    let again = again.schedule_at_fixed_rate(ms(0), ms(1), || panic_any("traced boom, again"));
    drop(again.expect("accepted"));
    clock.run_until_idle();
    for kind in ["once", "again"] {
        let said = collector.said_about(&format!("traced boom, {kind}"));
        let panicked = only(&said, "a task panicked");
        assert_eq!(panicked.level, Level::ERROR);
        let name = format!("traced panic, {kind}");
        let span = panicked.span.as_ref().expect("in the span of the run");
        assert_eq!(span.get("name"), name);
        // At level `warn` there is no span.
        assert_eq!((panicked.fields.get("name"), panicked.fields.get("run")), (&*name, "1"));
        assert_eq!(panicked.fields.get("task"), span.get("task"));
    }
}

/// Every event about the failure of a task says which task it is on the event itself: that a run has returned an
/// `Err`, that it took too long, that a hook panicked, and that a value panicked when it was dropped.
#[test]
fn every_failure_names_its_task() {
    let collector = Collector::get();
    let (clock, executor) = manual_with(|builder| {
        builder.after_execute(|task, _| {
            if task.name().as_deref() == Some("traced hook of its own") {
                panic_any("traced hook panics");
            }
        })
    });
    let goes_on =
        |name: &'static str| executor.task().name(name).on_failure(FailurePolicy::resume());
    let error = goes_on("traced error of its own").repeat(every(ms(50)), || Err::<(), _>("no"));
    let time = clock.clone();
    let late = goes_on("traced limit of its own").timeout(ms(5));
    let late = late.schedule_at_fixed_rate(ms(1), ms(50), move || time.advance(ms(5)));
    let hook = goes_on("traced hook of its own").schedule_at_fixed_rate(ms(1), ms(50), || ());
    clock.run_for(ms(52));
    let id = |future: &ScheduledFuture<()>| future.id().to_string();
    let (error, late, hook) = (error.unwrap(), late.unwrap(), hook.unwrap());
    let again = "a task failed; the task runs again";
    for (future, name, message, field, text) in [
        (&error, "traced error of its own", again, "error", "no"),
        (&late, "traced limit of its own", again, "error", "exceeded its time limit of 5ms"),
        (
            &hook,
            "traced hook of its own",
            "the hook after a task panicked",
            "panic",
            "traced hook panics",
        ),
    ] {
        let said = collector.said_about(name);
        let told = said.iter().find(|said| said.fields.get("message") == message);
        let told = told.unwrap_or_else(|| panic!("{message}: {said:#?}"));
        let level = if message == again { Level::WARN } else { Level::ERROR };
        assert_eq!((told.level, told.fields.get(field)), (level, text));
        assert_eq!((told.fields.get("task"), told.fields.get("name")), (&*id(future), name));
        assert!(["1", "2"].contains(&told.fields.get("run")), "{told:?}");
    }
}

/// An attempt that another is to follow is a warning, with when that is, and the last one an error.
#[test]
fn a_failed_attempt_is_a_warning_and_the_last_an_error() {
    let (collector, clock, executor) = listened_to();
    let backoff = Backoff::exponential(ms(10)..=ms(40)).max_attempts(3);
    let task = executor.task().name("traced attempts");
    let _page = task.retry(backoff, || Err::<(), _>("no")).expect("accepted");
    clock.run_for(ms(30));
    let said = collector.said_about("traced attempts");
    let told: Vec<_> = said.iter().filter(|said| !said.fields.get("attempt").is_empty()).collect();
    let told = told.into_iter().map(|told| {
        let field = |name| told.fields.get(name).to_owned();
        (told.level, ["message", "attempt", "again_us", "error"].map(field))
    });
    let again = "a task failed; the task runs again";
    let expected = [
        (Level::WARN, [again, "1 of 3", "10000", "no"]),
        (Level::WARN, [again, "2 of 3", "20000", "no"]),
        (Level::ERROR, ["a task failed", "3 of 3", "", "no"]),
    ];
    assert_eq!(
        told.collect::<Vec<_>>(),
        expected.map(|(level, fields)| (level, fields.map(str::to_owned)))
    );
}

/// HK-004: a panic is reported to the failure handler and by an event, once each, even if the handler
/// panics; so is the panic of a hook.
#[test]
fn a_panic_is_told_to_the_handler_and_by_an_event() {
    let collector = Collector::get();
    let calls = Log::new();
    let called = calls.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.after_execute(|_, _| panic_any("traced boom, hook")).failure_handler(
            move |report| {
                called.push(report.message().to_owned());
                panic_any("the handler");
            },
        )
    });
    executor.task().name("traced both").execute(|| panic_any("traced boom, task")).expect("open");
    clock.run_until_idle();
    assert_eq!(calls.entries(), ["traced boom, hook", "traced boom, task"]);
    let said = collector.said_about("traced both");
    for (message, panic) in
        [("a task panicked", "task"), ("the hook after a task panicked", "hook")]
    {
        let panicked = only(&said, message);
        assert_eq!(panicked.level, Level::ERROR);
        assert_eq!(panicked.fields.get("panic"), format!("traced boom, {panic}"));
    }
}

/// A run that its gate skips or puts off is reported, with which run it is and for how long.
#[test]
fn what_a_gate_decides_is_told() {
    let (collector, clock, executor) = listened_to();
    let answers = Mutex::new([Entry::Again(ms(4)), Entry::Skip, Entry::Run].into_iter());
    let task = executor.task().name("traced gate");
    let task = task.gate(gate::from_fn(move |_| answers.lock().unwrap().next().unwrap()));
    let beat = task.schedule_at_fixed_rate(ms(1), ms(10), || ()).expect("accepted");
    clock.run_for(ms(12));
    let said = collector.said_about("traced gate");
    let put_off = only(&said, "put off by its gate");
    assert_eq!((put_off.level, put_off.fields.get("run")), (Level::DEBUG, "1"));
    assert_eq!(put_off.fields.get("delay_us"), "4000");
    let skipped = only(&said, "skipped by its gate");
    assert_eq!((skipped.level, skipped.fields.get("run")), (Level::DEBUG, "1"));
    assert_eq!(skipped.fields.get("task"), beat.id().to_string());
    beat.cancel();
}

/// A run that takes long is a warning, with the place where its task was scheduled.
#[test]
fn a_slow_run_is_a_warning() {
    let (collector, clock, executor) = listened_to();
    let (time, task) = (clock.clone(), executor.task().name("traced slow").warn_after(ms(5)));
    let line = line!() + 1;
    task.execute(move || time.advance(ms(7))).expect("accepted");
    clock.run_until_idle();
    executor.close().expect("not a task");
    let said = collector.said_about("traced slow");
    let slow = only(&said, "a run takes long");
    assert_eq!((slow.level, slow.fields.get("run")), (Level::WARN, "1"));
    assert_eq!(slow.fields.get("running_us"), "7000");
    let place = slow.fields.get("scheduled_at");
    assert!(place.starts_with(&format!("{}:{line}:", file!())), "{place}");
}

/// A pool in which nothing that is due can start is a warning, which names what waits and what occupies the
/// workers.
#[test]
fn starvation_is_a_warning() {
    let collector = Collector::get();
    let reported = Counter::new();
    let told = reported.clone();
    let (clock, executor) =
        manual_with(|builder| builder.on_starvation(ms(10), move |_| told.add()));
    let (begun, gate) = (Counter::new(), Counter::new());
    let (begin, open) = (begun.clone(), gate.clone());
    let body = move || {
        begin.add();
        open.wait_for(1);
    };
    executor.task().name("traced hog").execute(body).expect("accepted");
    begun.wait_for(1);
    let next = executor.task().name("traced next").submit(|| ()).expect("accepted");
    clock.advance(ms(10));
    reported.wait_for(1);
    gate.add();
    executor.close().expect("not a task");
    let said = collector.said_about("traced next");
    let starved = only(&said, "nothing that is due could start");
    assert_eq!((starved.level, starved.fields.get("waited_us")), (Level::WARN, "10000"));
    assert_eq!(starved.fields.get("task"), next.id().to_string());
    assert!(starved.fields.get("running").ends_with(" \"traced hog\" for 10ms"), "{starved:?}");
}

/// The start and end of workers, each kind of shutdown, and termination are reported.
#[test]
fn the_end_of_an_executor_is_told() {
    type End = fn(ScheduledThreadPoolExecutor);
    let ends: [(&str, End, &str); 3] = [
        ("traced close", |executor| executor.close().expect("not a task"), "shut down"),
        (
            "traced now",
            |executor| {
                drop(executor.shutdown_now());
                executor.close().expect("not a task");
            },
            "shut down now",
        ),
        ("traced drop of all", drop, "dropped"),
    ];
    let collector = Collector::get();
    for (name, end, message) in ends {
        let builder = ScheduledThreadPoolExecutor::builder().clock(ManualClock::new());
        let executor = builder.core_pool_size(1).thread_name(name).build();
        let executor = executor.expect("the name is good");
        let beat = executor.schedule_at_fixed_rate(ms(1), ms(1), || {});
        let task = executor.schedule(Duration::MAX, || {}).expect("accepted");
        drop(beat.expect("accepted"));
        if message == "shut down" {
            // A close would wait for it.
            assert!(task.cancel());
        }
        in_time(name, move || end(executor));
        let said = collector.said_about(name);
        assert_eq!(only(&said, message).fields.get("executor"), name);
        assert_eq!(only(&said, "terminated").level, Level::DEBUG);
        let said = collector.said_about(&format!("{name}-1"));
        let told: Vec<_> = said.iter().map(|said| said.fields.get("message")).collect();
        assert_eq!(told, ["worker started", "worker ended"]);
    }
}

/// A task is brought forward, no worker is left and none can be started for it: that is told, and the task stays
/// pending. A task that waits for no moment needs no worker.
#[test]
fn a_worker_that_a_moved_task_does_not_get_is_told_of() {
    let (kept, collector) = (Arc::new(Mutex::new(None)), Collector::get());
    let (keeps, error) = (Arc::clone(&kept), "traced: no thread for it");
    let started = Counter::new();
    let factory = move |worker: Worker| {
        started.add();
        if started.get() > 1 {
            return Err(io::Error::other(error));
        }
        Ok(keeps.lock().unwrap().replace(worker)).map(|_| None)
    };
    let (_, executor) = manual_with(|builder| builder.thread_factory(factory));
    let task = executor.schedule(Duration::MAX, || {}).expect("accepted");
    drop(kept.lock().unwrap().take());
    assert!(task.pause() && collector.said_about(error).is_empty());
    assert!(task.run_now());
    let said = collector.said_about(error);
    let told = only(&said, "a worker could not be started; what is pending waits for another");
    assert_eq!((told.level, told.fields.get("error")), (Level::WARN, error));
    assert!(!task.is_done() && executor.pending_count() == 1);
    drop(executor.shutdown_now());
}

/// A subscriber that panics on a worker, in whichever of its methods, does not end the worker.
#[test]
fn a_subscriber_that_panics_ends_no_worker() {
    Collector::get();
    let survives = |method: &&str| {
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
        let executor = builder.thread_name(format!("throws in {method}")).build();
        let executor = executor.expect("the name is good");
        in_thread_survives(executor)
    };
    let methods = ["enabled", "new_span", "event", "enter", "record", "exit", "try_close"];
    let (survived, died): (Vec<&str>, Vec<&str>) =
        methods.iter().partition(|method| survives(method));
    assert_eq!((survived, died), (methods.to_vec(), vec![]));
}

/// Returns `true` if the worker runs one task after another, and the executor terminates.
fn in_thread_survives(executor: ScheduledThreadPoolExecutor) -> bool {
    let survives = move || {
        assert_eq!(worker_of(&executor), worker_of(&executor));
        let panics = executor.submit(|| panic_any("a task"));
        let panics: punctual::ScheduledFuture<()> = panics.expect("accepted");
        worker_of(&executor);
        assert!(panics.is_done());
        executor.close().expect("not a task");
    };
    thread::spawn(move || in_time("survives", survives)).join().is_ok()
}
