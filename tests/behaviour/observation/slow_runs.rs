//! Runs that take longer than their set time are named, once, with where they were scheduled.

use std::{convert::Infallible, io, time::Duration};

use punctual::{
    Backoff, Builder, ExecutorCompletionService, FailureSource, MissedRuns,
    ScheduledThreadPoolExecutor, SlowRun, TaskRun, Trigger, Worker, trigger,
};

use crate::support::{Counter, LONG, Log, eventually, manual_with, ms, start};

const NS: Duration = Duration::from_nanos(1);

/// Settings that log each slow run.
fn logged(log: &Log<SlowRun>) -> impl FnOnce(Builder) -> Builder {
    let log = log.clone();
    move |builder| builder.on_slow_run(move |run| log.push(run.clone()))
}

/// G66, M192: a run is named at the very moment at which its time is over, while it runs, and not again.
#[test]
fn a_run_is_named_when_its_time_is_over() {
    let log = Log::new();
    let (clock, executor) = manual_with(logged(&log));
    let (begun, gate) = (Counter::new(), Counter::new());
    let (begin, open) = (begun.clone(), gate.clone());
    let task = executor.task().name("slow").warn_after(ms(5));
    let body = move || {
        begin.add();
        open.wait_for(1);
    };
    let (line, future) = (line!(), task.schedule(ms(1), body));
    let future = future.unwrap();
    clock.advance(ms(1));
    begun.wait_for(1);
    clock.advance(ms(5) - NS);
    eventually("the watcher waits", || clock.next_deadline() == Some(NS));
    assert!(log.entries().is_empty(), "it is not over yet");
    clock.advance(NS);
    eventually("it is named", || log.entries().len() == 1);
    assert!(!future.is_done(), "it ends nothing");
    clock.advance(LONG);
    gate.add();
    clock.run_until_idle();
    executor.close().unwrap();
    let [slow] = &log.entries()[..] else { panic!("named once") };
    assert_eq!((slow.id(), slow.name(), slow.run_number()), (future.id(), Some("slow"), 1));
    assert_eq!((slow.running_for(), slow.limit()), (ms(5), ms(5)));
    assert_eq!((slow.scheduled_at().file(), slow.scheduled_at().line()), (file!(), line));
    let text = slow.to_string();
    let expected = format!("run 1 of task {} \"slow\" has taken 5ms, longer than 5ms", future.id());
    assert!(text.starts_with(&expected), "{text}");
}

/// G66, M191: each run of a periodic task that takes as long as its time or longer is named, once; no other is.
#[test]
fn each_slow_run_is_named_and_no_other() {
    let log = Log::new();
    let (clock, executor) = manual_with(logged(&log));
    let (time, mut steps) = (clock.clone(), [4, 5, 1, 9, 0].into_iter());
    let task = executor.task().warn_after(ms(5)).missed_runs(MissedRuns::Skip);
    let beat = task.schedule_with_fixed_delay(ms(1), ms(1), move || {
        time.advance(ms(steps.next().unwrap_or(0)));
    });
    clock.run_for(ms(40));
    beat.unwrap().cancel();
    executor.close().unwrap();
    let named: Vec<_> =
        log.entries().iter().map(|run| (run.run_number(), run.running_for())).collect();
    assert_eq!(named, [(2, ms(5)), (4, ms(9))]);
}

/// The default of the executor holds for each task that says nothing; `Duration::MAX` is never.
#[test]
fn the_executor_has_a_default() {
    let log = Log::new();
    let (clock, executor) = manual_with(|builder| logged(&log)(builder.warn_after(ms(5))));
    let step = |by| {
        let time = clock.clone();
        move || time.advance(by)
    };
    executor.execute(step(ms(6))).unwrap();
    executor.task().warn_after(ms(7)).execute(step(ms(6))).unwrap();
    executor.task().warn_after(Duration::MAX).execute(step(LONG)).unwrap();
    executor.task().warn_after(ms(2)).execute(step(ms(3))).unwrap();
    clock.run_until_idle();
    executor.close().unwrap();
    let named: Vec<_> = log.entries().iter().map(|run| (run.limit(), run.running_for())).collect();
    assert_eq!(named, [(ms(5), ms(6)), (ms(2), ms(3))]);
}

/// Every verb, of the handle and of the builder of a task, is where its task was scheduled.
#[test]
fn every_verb_is_the_place() {
    let log = Log::new();
    let (clock, executor) = manual_with(|builder| logged(&log)(builder.warn_after(Duration::ZERO)));
    let (now, beat) = (clock.now(), ms(10));
    let every = || trigger::every(beat);
    let task = || executor.task();
    let first = line!() + 3;
    #[rustfmt::skip]
    let scheduled = [
        executor.execute(|| ()).map(drop).unwrap(),
        executor.submit(|| ()).map(drop).unwrap(),
        executor.schedule(beat, || ()).map(drop).unwrap(),
        executor.schedule_at(now, || ()).map(drop).unwrap(),
        executor.schedule_at_fixed_rate(beat, beat, || ()).map(drop).unwrap(),
        executor.schedule_with_fixed_delay(beat, beat, || ()).map(drop).unwrap(),
        executor.repeat(every(), || ()).map(drop).unwrap(),
        task().execute(|| ()).map(drop).unwrap(),
        task().submit(|| ()).map(drop).unwrap(),
        task().schedule(beat, || ()).map(drop).unwrap(),
        task().schedule_at(now, || ()).map(drop).unwrap(),
        task().schedule_at_fixed_rate(beat, beat, || ()).map(drop).unwrap(),
        task().schedule_with_fixed_delay(beat, beat, || ()).map(drop).unwrap(),
        task().repeat(every(), || ()).map(drop).unwrap(),
    ];
    let lines: Vec<_> = (first..).take(scheduled.len()).collect();
    clock.run_for(beat);
    drop(executor.shutdown_now());
    executor.close().unwrap();
    let mut named: Vec<_> = log.entries().iter().map(|run| run.scheduled_at().line()).collect();
    assert!(log.entries().iter().all(|run| run.scheduled_at().file() == file!()));
    named.sort_unstable();
    // A trigger has run twice by then.
    named.dedup();
    assert_eq!(named, lines);
}

/// So is every verb that is made of these: of a group, of what is called, and of what waits for several tasks.
#[test]
fn every_verb_that_is_made_of_others_is_the_place() {
    let log = Log::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
    let executor = logged(&log)(builder.warn_after(Duration::ZERO)).build().unwrap();
    let (now, beat) = (executor.clock().now(), Duration::ZERO);
    let (group, service) =
        (executor.group("verbs").build().unwrap(), ExecutorCompletionService::new(&executor));
    let once = || trigger::every(NS).times(1);
    let ok = [|| Ok::<_, ()>(())];
    let first = line!() + 3;
    #[rustfmt::skip]
    let scheduled = [
        group.task().execute(|| ()).map(drop).unwrap(),
        group.task().submit(|| ()).map(drop).unwrap(),
        group.task().schedule(beat, || ()).map(drop).unwrap(),
        group.task().schedule_at(now, || ()).map(drop).unwrap(),
        group.task().schedule_at_fixed_rate(beat, LONG, || ()).map(drop).unwrap(),
        group.task().schedule_with_fixed_delay(beat, LONG, || ()).map(drop).unwrap(),
        group.task().repeat(once(), || ()).map(drop).unwrap(),
        group.task().retry(Backoff::constant(NS), || Ok::<_, Infallible>(())).map(drop).unwrap(),
        executor.retry(Backoff::constant(NS), || Ok::<_, Infallible>(())).map(drop).unwrap(),
        service.submit(|| ()).map(drop).unwrap(),
        executor.invoke_all([|| ()]).map(drop).unwrap(),
        executor.invoke_all_within([|| ()], LONG).map(drop).unwrap(),
        executor.invoke_any(ok).unwrap(),
        executor.invoke_any_within(ok, LONG).unwrap(),
    ];
    let called = line!() + 1;
    let debounced = executor.task().debounce(beat, || ()).unwrap();
    let throttled = executor.task().throttle(beat, || ()).unwrap();
    assert!(debounced.call() && throttled.call());
    let lines: Vec<_> = (first..).take(scheduled.len()).chain([called, called + 1]).collect();
    eventually("all have run", || log.entries().len() == lines.len());
    drop(executor.shutdown_now());
    executor.close().unwrap();
    let mut named: Vec<_> = log.entries().iter().map(|run| run.scheduled_at().line()).collect();
    assert!(log.entries().iter().all(|run| run.scheduled_at().file() == file!()));
    named.sort_unstable();
    assert_eq!(named, lines);
}

/// The decorations and the time limit of a task are as without; a run that is over its limit is named as
/// well.
#[test]
fn decorators_and_time_limits_stay() {
    let (log, calls) = (Log::new(), Log::new());
    let called = calls.clone();
    let (clock, executor) = manual_with(|builder| {
        logged(&log)(builder).decorate_task(move |_| {
            let called = called.clone();
            move |task: TaskRun<'_>| {
                called.push("decorated");
                task.run()
            }
        })
    });
    let time = clock.clone();
    let task = executor.task().warn_after(ms(2)).timeout(ms(4));
    let beat = task.schedule_at_fixed_rate(ms(1), ms(1), move || time.advance(ms(4))).unwrap();
    clock.run_for(ms(20));
    assert!(beat.join().unwrap_err().is_timeout());
    executor.close().unwrap();
    assert_eq!(calls.entries(), ["decorated"]);
    assert_eq!(log.entries().len(), 1);
}

/// A callback that panics is reported, once for each call, and ends neither the worker nor the watcher;
/// it may submit tasks.
#[test]
fn a_callback_may_panic_and_submit() {
    let reports = Log::new();
    let (told, ran) = (reports.clone(), Counter::new());
    let own: std::sync::Arc<std::sync::OnceLock<punctual::Handle>> = std::sync::Arc::default();
    let (handle, runs) = (own.clone(), ran.clone());
    let (clock, executor) = manual_with(|builder| {
        builder
            .failure_handler(move |report| {
                told.push((report.source(), report.message().to_owned()))
            })
            .on_slow_run(move |_| {
                let runs = runs.clone();
                handle.get().unwrap().execute(move || runs.add()).unwrap();
                panic!("the callback")
            })
    });
    own.set(executor.handle()).unwrap();
    for _ in 0..2 {
        let time = clock.clone();
        executor.task().warn_after(ms(1)).execute(move || time.advance(ms(1))).unwrap();
        clock.run_until_idle();
    }
    ran.wait_for(2);
    let source = FailureSource::SlowRun;
    let expected = [(source, "the callback".to_owned()), (source, "the callback".to_owned())];
    eventually("both are reported", || reports.entries() == expected);
}

/// A body that panics is named if its time was over, and the panic is its outcome.
#[test]
fn a_slow_run_that_panics_is_named() {
    let log = Log::new();
    let (clock, executor) = manual_with(logged(&log));
    let (time, task) = (clock.clone(), executor.task().warn_after(ms(1)));
    let future = task.submit(move || {
        time.advance(ms(1));
        panic!("late, too");
    });
    let future: punctual::ScheduledFuture<()> = future.unwrap();
    clock.run_until_idle();
    assert!(future.join().unwrap_err().is_panic());
    executor.close().unwrap();
    assert_eq!(log.entries().len(), 1);
}

/// If the thread that watches cannot be started, the worker names the run when its body has returned.
#[test]
fn a_slow_run_is_named_without_a_watching_thread() {
    let log = Log::new();
    let no_watch = |worker: Worker| match worker.name().contains("-watch") {
        true => Err(io::Error::other("no thread to watch")),
        false => start(worker),
    };
    let settings = logged(&log);
    let (clock, executor) = manual_with(|builder| settings(builder.thread_factory(no_watch)));
    let (time, seen) = (clock.clone(), log.clone());
    let task = executor.task().warn_after(ms(5)).submit(move || {
        time.advance(ms(7));
        assert!(seen.entries().is_empty(), "the worker is still in the body");
    });
    task.unwrap().join_within(LONG).unwrap().unwrap();
    executor.close().unwrap();
    let named: Vec<_> = log.entries().iter().map(SlowRun::running_for).collect();
    assert_eq!(named, [ms(7)]);
}

/// On the system's clock, the name comes while the run is under way.
#[test]
fn the_name_comes_while_the_run_goes_on() {
    let (named, log) = (Counter::new(), Log::new());
    let (name, logged) = (named.clone(), log.clone());
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
    let builder = builder.on_slow_run(move |run: &SlowRun| {
        logged.push(run.running_for());
        name.add();
    });
    let executor = builder.build().unwrap();
    let task = executor.task().warn_after(ms(2));
    task.submit(move || named.wait_for(1)).unwrap().join().unwrap();
    assert!(log.entries()[0] >= ms(2));
    executor.close().unwrap();
    assert_eq!(log.entries().len(), 1);
}
