//! Calls every method that takes a time with zero, with the shortest and with the longest. (The
//! ends of the clock itself are in `overflow`.)

use std::{
    thread,
    time::{Duration, Instant},
};

use punctual::{
    BlockPolicy, CancellationToken, DelayQueue, ExecutorCompletionService, Grace, Handle, Limit,
    ScheduledFuture, ScheduledThreadPoolExecutor as Executor, TaskHandle, TaskSet,
};

use crate::support::{Counter, Log, in_time, manual, ms};

const ZERO: Duration = Duration::ZERO;
const NANO: Duration = Duration::from_nanos(1);
const MAX: Duration = Duration::MAX;

/// Schedules a task that notes its name, with this delay before the first run.
type Verb = fn(&Handle, Duration, Box<dyn Fn() + Send>) -> TaskHandle;

fn handle<T>(scheduled: ScheduledFuture<T>) -> TaskHandle {
    scheduled.task_handle()
}

/// Every method that takes a delay; each periodic task runs again very soon or never.
const VERBS: [(&str, Verb); 11] = [
    ("schedule", |on, delay, body| handle(on.schedule(delay, body).unwrap())),
    ("of a builder", |on, delay, body| handle(on.task().schedule(delay, body).ok().unwrap())),
    ("named", |on, delay, body| handle(on.task().name("it").schedule(delay, body).unwrap())),
    ("with the longest timeout", |on, delay, body| {
        handle(on.task().timeout(MAX).schedule(delay, body).unwrap())
    }),
    ("named, with the longest timeout", |on, delay, body| {
        handle(on.task().name("it").timeout(MAX).schedule(delay, body).unwrap())
    }),
    ("at a rate, soon", |on, delay, body| {
        handle(on.schedule_at_fixed_rate(delay, ms(1), body).unwrap())
    }),
    ("at a rate, never", |on, delay, body| {
        handle(on.schedule_at_fixed_rate(delay, MAX, body).unwrap())
    }),
    ("of a builder, at a rate", |on, delay, body| {
        handle(on.task().schedule_at_fixed_rate(delay, MAX, body).ok().unwrap())
    }),
    ("with a delay, soon", |on, delay, body| {
        handle(on.schedule_with_fixed_delay(delay, ms(1), body).unwrap())
    }),
    ("with a delay, never", |on, delay, body| {
        handle(on.schedule_with_fixed_delay(delay, MAX, body).unwrap())
    }),
    ("of a builder, with a delay", |on, delay, body| {
        handle(on.task().schedule_with_fixed_delay(delay, MAX, body).ok().unwrap())
    }),
];

/// F23, F24: by whichever methods, and pairwise: a task without delay runs at once, after tasks
/// that were due before; one with a delay of a nanosecond runs a nanosecond later; the longest
/// delay never ends, and affects neither.
#[test]
fn every_verb_takes_every_delay() {
    for (first, schedule_first) in VERBS {
        for (second, schedule_second) in VERBS {
            let (clock, executor) = manual(1);
            let log = Log::new();
            let note = |what: &'static str| -> Box<dyn Fn() + Send> {
                let log = log.clone();
                Box::new(move || log.push(what))
            };
            let never = schedule_first(&executor, MAX, note("never"));
            let soon = schedule_second(&executor, NANO, note("soon"));
            // A task submits both, so that the only worker is busy while both fall due.
            let (inside, earlier, now) = (executor.handle(), note("earlier"), note("now"));
            executor
                .execute(move || {
                    schedule_first(&inside, ZERO, earlier);
                    schedule_second(&inside, ZERO, now);
                })
                .unwrap();
            clock.run_until_idle();
            assert_eq!(log.entries(), ["earlier", "now"], "{first}, {second}");
            clock.advance(NANO);
            clock.run_until_idle();
            assert_eq!(log.entries(), ["earlier", "now", "soon"], "{first}, {second}");
            clock.run_for(ms(2));
            assert!(!log.entries().contains(&"never"), "{first}, {second}");
            assert!(never.cancel(), "{first}");
            soon.cancel();
        }
    }
}

/// F24: a task that is never due stays until it is cancelled, or until its executor is shut down or
/// dropped, whichever method scheduled it.
#[test]
fn a_task_that_is_never_due_stays_until_it_is_ended() {
    type End = fn(Executor, &TaskHandle);
    let ends: [End; 5] = [
        |_executor, task| assert!(task.cancel()),
        |executor, _| {
            executor.set_executes_existing_delayed_tasks_after_shutdown(false);
            executor.shutdown();
        },
        |executor, _| drop(executor.shutdown_now()),
        |executor, _| drop(executor),
        |executor, _| drop(executor.shutdown_within(Grace::patience(ZERO))),
    ];
    for ((verb, schedule), end) in VERBS.iter().flat_map(|verb| ends.map(|end| (verb, end))) {
        let (clock, executor) = manual(1);
        let runs = Counter::new();
        let ran = runs.clone();
        let task = schedule(&executor, MAX, Box::new(move || ran.add()));
        clock.advance(MAX);
        clock.run_until_idle();
        assert_eq!((runs.get(), executor.pending_count()), (0, 1), "{verb}");
        let left = executor.handle();
        in_time(verb, {
            let task = task.clone();
            move || end(executor, &task)
        });
        assert!(task.is_cancelled(), "{verb}");
        assert_eq!((runs.get(), left.pending_count()), (0, 0), "{verb}");
    }
}

/// The executor on which the waits are made; its worker is busy until the gate opens.
struct Scene {
    executor: Executor,
    gate: Counter,
    token: CancellationToken,
    queue: DelayQueue<()>,
}

impl Scene {
    fn new() -> Self {
        let full = Executor::builder().core_pool_size(1).max_pending(1);
        let scene = Self {
            executor: full.build().unwrap(),
            gate: Counter::new(),
            token: CancellationToken::new(),
            queue: DelayQueue::new(),
        };
        let begun = Counter::new();
        let (begins, gate) = (begun.clone(), scene.gate.clone());
        let blocks = move || {
            begins.add();
            gate.wait_for(1);
        };
        scene.executor.execute(blocks).unwrap();
        begun.wait_for(1);
        scene
    }

    /// Lets every awaited event happen.
    fn open(&self) {
        self.gate.add();
        self.token.cancel();
        self.queue.insert(ZERO, ()).unwrap();
    }

    fn behind(&self) -> ScheduledFuture<()> {
        self.executor.submit(|| ()).unwrap()
    }
}

/// Waits for no longer than this; returns whether the awaited event has happened.
type Wait = fn(&Scene, Duration) -> bool;

const WAITS: [(&str, Wait); 12] = [
    ("join", |scene, limit| scene.behind().join_within(limit).is_some()),
    ("join all", |scene, limit| {
        TaskSet::from_iter([scene.behind()]).join_all_within(limit).is_some()
    }),
    ("take what has ended", |scene, limit| {
        let service = ExecutorCompletionService::new(&scene.executor);
        service.push(scene.behind());
        service.take_within(limit).ok().flatten().is_some()
    }),
    ("invoke all", |scene, limit| {
        let all = scene.executor.invoke_all_within([|| ()], limit).unwrap();
        all.into_iter().all(|future| future.join().is_ok())
    }),
    ("invoke any", |scene, limit| {
        scene.executor.invoke_any_within([|| Ok::<_, ()>(())], limit).is_ok()
    }),
    ("the end", |scene, limit| {
        scene.executor.shutdown();
        scene.executor.await_termination(limit).unwrap()
    }),
    ("the end, with patience", |scene, limit| {
        scene.executor.shutdown_within(Grace::patience(limit)).unwrap().is_terminated
    }),
    ("the end, with grace", |scene, limit| {
        scene.executor.shutdown_within(Grace::patience(ZERO).then(limit)).unwrap().is_terminated
    }),
    ("room", |scene, limit| {
        scene.executor.set_rejected_execution_handler(BlockPolicy::new(limit));
        let _full = scene.behind();
        scene.executor.execute(|| ()).is_ok()
    }),
    ("a token", |scene, limit| scene.token.sleep(limit).is_err()),
    ("an element", |scene, limit| scene.queue.take_within(limit).ok().flatten().is_some()),
    ("an element, or a token", |scene, limit| {
        let limit = Limit::from(limit).unless(&CancellationToken::new());
        scene.queue.take_within(limit).is_ok_and(|taken| taken.is_some())
    }),
];

/// F24: every wait that has a limit gives up at once if the limit is zero or a nanosecond, and with
/// the longest limit waits until the awaited event happens.
#[test]
fn every_wait_takes_every_limit() {
    for (what, wait) in WAITS {
        for limit in [ZERO, NANO, MAX] {
            in_time(&format!("{what}, {limit:?}"), move || {
                let scene = Scene::new();
                let has_come = thread::scope(|scope| {
                    if limit == MAX {
                        scope.spawn(|| scene.open());
                    }
                    wait(&scene, limit)
                });
                assert_eq!(has_come, limit == MAX, "{what}, {limit:?}");
                scene.open();
            });
        }
    }
}

/// F24: an element with the longest delay is never taken; it can be inserted and removed by its
/// key, and is taken at once if its delay is changed to zero.
#[test]
fn a_queue_takes_every_delay() {
    let queue = DelayQueue::new();
    let keys = queue.insert_all([(MAX, 0), (NANO, 1), (ZERO, 2)]).unwrap();
    let later = queue.insert(MAX, 3).unwrap();
    let begin = Instant::now();
    let taken = [(); 2].map(|()| queue.take().unwrap().element);
    assert!(taken == [2, 1] && begin.elapsed() >= NANO);
    assert!(queue.take_within(NANO).ok().flatten().is_none());
    assert_eq!((queue.delay(keys[0]), queue.deadline(later)), (Some(MAX), None));
    assert!(queue.reset(later, ZERO) && queue.reset(keys[0], MAX));
    assert_eq!(queue.poll().unwrap().element, 3);
    assert_eq!((queue.remove(keys[0]), queue.len()), (Some(0), 0));
}

/// F24: settings that are times may be the shortest or the longest.
#[test]
fn every_setting_takes_every_time() {
    for time in [ZERO, NANO, MAX] {
        let executor = Executor::builder()
            .core_pool_size(2)
            .keep_alive(time)
            .timer_slack(time)
            .precise(time)
            .build()
            .unwrap();
        executor.set_core_pool_size(1);
        let begin = Instant::now();
        let late = executor.schedule(ms(2), move || begin.elapsed()).unwrap();
        drop(executor.schedule(MAX, || ()).unwrap());
        assert!(in_time("a task", move || late.join()).unwrap() >= ms(2), "{time:?}");
        in_time("the drop", || drop(executor));
    }
}
