//! Starvation: nothing that is due can start, and the tasks that occupy the workers are named.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use punctual::{
    Builder, ConfigError, FailureSource, Handle, ManualClock, ScheduledThreadPoolExecutor,
    Starvation,
};

use crate::support::{Counter, LONG, Log, eventually, in_time, manual_with, ms};

const NS: Duration = Duration::from_nanos(1);
const AFTER: Duration = ms(10);

/// Settings that log each report.
fn logged(log: &Log<Starvation>) -> impl FnOnce(Builder) -> Builder {
    let log = log.clone();
    move |builder| builder.on_starvation(AFTER, move |starvation| log.push(starvation.clone()))
}

/// An executor whose reports are logged, and whose tasks may block.
struct Scene {
    clock: ManualClock,
    executor: ScheduledThreadPoolExecutor,
    log: Log<Starvation>,
    begun: Counter,
    gate: Counter,
}

impl Scene {
    fn new(workers: usize) -> Self {
        let log = Log::new();
        let settings = logged(&log);
        let (clock, executor) = manual_with(|builder| settings(builder.core_pool_size(workers)));
        Self { clock, executor, log, begun: Counter::new(), gate: Counter::new() }
    }

    /// Occupies one more worker, until `gate` has counted to `until`.
    fn occupy(&self, name: &str, until: usize) {
        let (begun, gate, before) = (self.begun.clone(), self.gate.clone(), self.begun.get());
        let body = move || {
            begun.add();
            gate.wait_for(until);
        };
        self.executor.task().name(name).execute(body).unwrap();
        self.begun.wait_for(before + 1);
    }

    /// Waits until the watcher sleeps, for so long.
    fn looks_in(&self, rest: Duration) {
        eventually("the next look is armed", || self.clock.next_deadline() == Some(rest));
    }

    /// Moves the clock until the watcher has nothing to wait for.
    fn until_nobody_looks(&self) {
        eventually("nobody looks", || {
            let is_idle = self.clock.next_deadline().is_none();
            if !is_idle {
                self.clock.advance(AFTER);
            }
            is_idle
        });
    }

    /// How long each reported starvation had lasted.
    fn waited(&self) -> Vec<Duration> {
        self.log.entries().iter().map(Starvation::waited).collect()
    }

    fn end(self) {
        self.gate.add();
        self.gate.add();
        in_time("it closes", move || self.executor.close().unwrap());
    }
}

/// G65, M189: it is reported when the first task has been due for just as long as was set, with what is due and what occupies the
/// workers, and since when.
#[test]
fn it_is_reported_when_a_task_has_been_due_for_the_set_time() {
    let scene = Scene::new(2);
    scene.occupy("one", 1);
    scene.clock.advance(ms(1));
    scene.occupy("other", 1);
    let next = scene.executor.task().name("next").schedule(ms(2), || ()).unwrap();
    scene.executor.schedule(ms(3), || ()).unwrap();
    scene.clock.advance(AFTER - ms(1));
    // The first look finds a task that was due at 3 ms.
    scene.looks_in(ms(3));
    scene.clock.advance(ms(3) - NS);
    scene.looks_in(NS);
    assert!(scene.log.entries().is_empty(), "it is not over yet");
    scene.clock.advance(NS);
    scene.looks_in(AFTER);
    let entries = scene.log.entries();
    let [seen] = &entries[..] else { panic!("one report: {entries:?}") };
    assert_eq!(seen.waited(), AFTER);
    assert_eq!((seen.next_task().id(), seen.next_task().name()), (next.id(), Some("next")));
    let mut running: Vec<_> =
        seen.running().iter().map(|task| (task.name().unwrap(), task.running_for())).collect();
    running.sort_unstable();
    assert_eq!(running, [("one", ms(13)), ("other", ms(12))]);
    let text = seen.to_string();
    let begin =
        format!("nothing that is due has started for 10ms: task {} \"next\" waits", next.id());
    assert!(text.starts_with(&begin) && text.contains("\"one\" for 13ms"), "{text}");
    scene.end();
}

/// M190: it is reported again each time it has lasted twice as long, and a look is made once in the set time.
#[test]
fn it_is_reported_again_when_it_has_doubled() {
    let scene = Scene::new(1);
    scene.occupy("it", 1);
    scene.executor.execute(|| ()).unwrap();
    for _ in 0..9 {
        scene.clock.advance(AFTER);
        scene.looks_in(AFTER);
    }
    assert_eq!(scene.waited(), [1, 2, 4, 8].map(|times| times * AFTER));
    scene.end();
}

/// G65, M188: a task that starts ends it; the next one is reported when it has lasted for the set time itself, counted from that
/// start.
#[test]
fn a_task_that_starts_ends_it() {
    let scene = Scene::new(1);
    scene.occupy("first", 1);
    let (begun, gate) = (scene.begun.clone(), scene.gate.clone());
    let second = move || {
        begun.add();
        gate.wait_for(2);
    };
    scene.executor.task().name("second").execute(second).unwrap();
    scene.executor.execute(|| ()).unwrap();
    scene.clock.advance(AFTER);
    scene.looks_in(AFTER);
    scene.clock.advance(ms(4));
    scene.gate.add();
    scene.begun.wait_for(2);
    scene.clock.advance(AFTER - ms(4));
    scene.looks_in(ms(4));
    scene.clock.advance(ms(4));
    scene.looks_in(AFTER);
    assert_eq!(scene.waited(), [AFTER, AFTER]);
    let named: Vec<_> = scene
        .log
        .entries()
        .iter()
        .map(|seen| seen.running()[0].name().unwrap().to_owned())
        .collect();
    assert_eq!(named, ["first", "second"]);
    scene.end();
}

/// While a worker is idle there are no looks; the one that was armed before is the last.
#[test]
fn an_idle_pool_is_not_looked_at() {
    let scene = Scene::new(2);
    scene.executor.execute(|| ()).unwrap();
    scene.executor.execute(|| ()).unwrap();
    scene.clock.run_for(2 * AFTER);
    assert_eq!(scene.clock.next_deadline(), None);
    scene.occupy("one", 1);
    // The other is idle, so the look that is armed is the last.
    scene.until_nobody_looks();
    scene.clock.advance(LONG);
    // The worker that was idle takes a task, and from then on there is none.
    scene.occupy("other", 1);
    scene.executor.execute(|| ()).unwrap();
    scene.looks_in(AFTER);
    scene.clock.advance(AFTER);
    scene.looks_in(AFTER);
    assert_eq!(scene.waited(), [AFTER]);
    let log = scene.log.clone();
    scene.end();
    assert_eq!(log.entries().len(), 1);
}

/// G65, M187: an idle worker that retires leaves only busy ones behind: they are looked at from then on.
#[test]
fn the_last_idle_worker_that_retires_has_the_others_looked_at() {
    let scene = Scene::new(2);
    scene.occupy("it", 1);
    scene.executor.submit(|| ()).unwrap().join().unwrap();
    scene.until_nobody_looks();
    scene.executor.set_core_pool_size(1);
    eventually("it retires", || {
        let is_gone = scene.executor.pool_size() == 1;
        if !is_gone {
            scene.clock.advance(AFTER);
        }
        is_gone
    });
    scene.looks_in(AFTER);
    scene.executor.execute(|| ()).unwrap();
    scene.clock.advance(AFTER);
    eventually("it is reported", || scene.waited() == [AFTER]);
    scene.end();
}

/// G65: a worker whose first hook blocks occupies itself: what waits for it is reported.
#[test]
fn a_worker_that_does_not_begin_is_seen() {
    let (log, gate) = (Log::new(), Counter::new());
    let (settings, open) = (logged(&log), gate.clone());
    let (clock, executor) =
        manual_with(|builder| settings(builder).on_thread_start(move || open.wait_for(1)));
    executor.execute(|| ()).unwrap();
    eventually("a look is armed", || clock.next_deadline() == Some(AFTER));
    clock.advance(AFTER);
    eventually("it is reported", || !log.entries().is_empty());
    assert!(log.entries()[0].running().is_empty());
    gate.add();
    in_time("it closes", move || executor.close().unwrap());
}

/// A callback that panics is reported as such and looks go on; it may submit tasks, which run.
#[test]
fn a_callback_may_panic_and_submit() {
    let (reports, ran, gate) = (Log::new(), Counter::new(), Counter::new());
    let own: Arc<OnceLock<Handle>> = Arc::default();
    let (told, handle, runs) = (reports.clone(), own.clone(), ran.clone());
    let (clock, executor) = manual_with(|builder| {
        builder
            .failure_handler(move |report| {
                told.push((report.source(), report.message().to_owned()))
            })
            .on_starvation(AFTER, move |_| {
                let runs = runs.clone();
                handle.get().unwrap().execute(move || runs.add()).unwrap();
                panic!("the callback")
            })
    });
    own.set(executor.handle()).unwrap();
    let (begun, begin, open) = (Counter::new(), Counter::new(), gate.clone());
    let it = begin.clone();
    executor
        .execute(move || {
            it.add();
            open.wait_for(1);
        })
        .unwrap();
    begin.wait_for(1);
    executor.execute(move || begun.add()).unwrap();
    for _ in 0..2 {
        clock.advance(AFTER);
        eventually("the next look is armed", || clock.next_deadline() == Some(AFTER));
    }
    gate.add();
    ran.wait_for(2);
    let expected = (FailureSource::Starvation, "the callback".to_owned());
    assert_eq!(reports.entries(), [expected.clone(), expected]);
    in_time("it closes", move || executor.close().unwrap());
}

/// G65: a task that is not due does not starve, and neither does a queue that has been emptied.
#[test]
fn only_what_is_due_waits() {
    let scene = Scene::new(1);
    scene.occupy("it", 1);
    scene.executor.schedule(LONG, || ()).unwrap();
    let due = scene.executor.submit(|| ()).unwrap();
    scene.clock.advance(AFTER - NS);
    assert!(due.cancel());
    for rest in [NS, AFTER, AFTER] {
        scene.looks_in(rest);
        scene.clock.advance(rest);
    }
    scene.looks_in(AFTER);
    drop(scene.executor.shutdown_now());
    scene.clock.advance(AFTER);
    eventually("nobody looks any more", || scene.clock.next_deadline().is_none());
    assert!(scene.log.entries().is_empty());
    scene.end();
}

#[test]
fn no_time_at_all_is_refused() {
    let builder = ScheduledThreadPoolExecutor::builder();
    let refused = builder.on_starvation(Duration::ZERO, |_| ()).build().unwrap_err();
    assert!(matches!(refused, ConfigError::ZeroStarvationTime), "{refused}");
}

/// On the system's clock, a pool that hangs is reported while it hangs.
#[test]
fn it_is_reported_while_it_lasts() {
    let (told, tell) = (Counter::new(), Counter::new());
    let called = told.clone();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
    let executor = builder.on_starvation(ms(2), move |_| called.add()).build().unwrap();
    let first = executor.submit(move || told.wait_for(1)).unwrap();
    executor.execute(move || tell.add()).unwrap();
    first.join().unwrap();
    executor.close().unwrap();
}
