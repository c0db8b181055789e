//! A task that is brought forward has its worker, as one that is submitted: whichever way it comes from a moment
//! that never came, or from one far away, and whether other workers are busy, have retired or are gone.

use std::{
    io,
    sync::{Arc, Mutex},
    task::{Wake, Waker},
    time::Duration,
};

use punctual::{
    Builder, CancelReason, Debounced, Group, Handle, ManualClock, ScheduledFuture,
    ScheduledThreadPoolExecutor, TaskHandle, TaskState, Throttled, Trigger, Worker, current_task,
    trigger::{every, on_demand},
};

use crate::support::{
    Counter, Log, assert_cancelled, elsewhere, eventually, in_time, manual_with, ms, start,
};

const HOUR: Duration = Duration::from_secs(3_600);

/// Settings of an executor whose four workers retire when they have been idle for ten milliseconds; two stay for the
/// tasks that wait.
fn fleeting(builder: Builder) -> Builder {
    builder.core_pool_size(4).keep_alive(ms(10)).allows_core_thread_timeout(true)
}

/// Advances from deadline to deadline, without a look of every worker at each step, as `run_for` has it.
fn go_on(clock: &ManualClock, span: Duration) {
    let end = clock.elapsed() + span;
    clock.run_until_idle();
    while clock.elapsed() < end {
        let left = end - clock.elapsed();
        clock.advance(clock.next_deadline().map_or(left, |next| next.min(left)));
        clock.run_until_idle();
    }
}

/// In a task: notes when it begins, and is busy for half a second.
fn body(clock: &ManualClock, begun: &Log<Duration>) -> impl Fn() + Clone + Send + 'static {
    let (clock, begun) = (clock.clone(), begun.clone());
    move || {
        begun.push(clock.elapsed());
        let _ = current_task().expect("this is a task").token().sleep(ms(500));
    }
}

/// Brings a task forward, and keeps it alive.
type Forward = Box<dyn Fn() -> bool>;

/// A way to bring a task forward: submits one that waits, with this body.
type Way<B> = fn(&Handle, B) -> Forward;

fn forward(task: TaskHandle, verb: impl Fn(&TaskHandle) -> bool + 'static) -> Forward {
    Box::new(move || verb(&task))
}

fn never<B: Fn() + Clone + Send + 'static>(handle: &Handle, body: B) -> TaskHandle {
    handle.schedule(Duration::MAX, body).expect("it is open").task_handle()
}

fn paused<B: Fn() + Clone + Send + 'static>(handle: &Handle, body: B) -> TaskHandle {
    let task = handle.schedule(ms(1), body).expect("it is open").task_handle();
    assert!(task.pause());
    task
}

fn demanded<B: Fn() + Clone + Send + 'static>(handle: &Handle, body: B) -> TaskHandle {
    handle.repeat(on_demand(), body).expect("it is open").task_handle()
}

fn ways<B: Fn() + Clone + Send + 'static>() -> Vec<(&'static str, Way<B>)> {
    vec![
        ("resume", |handle, body| forward(paused(handle, body), TaskHandle::resume)),
        ("run_now, paused", |handle, body| forward(paused(handle, body), TaskHandle::run_now)),
        ("run_now, on demand", |handle, body| forward(demanded(handle, body), TaskHandle::run_now)),
        ("reschedule", |handle, body| {
            forward(never(handle, body), |task| task.reschedule(Duration::ZERO))
        }),
        ("run_within", |handle, body| {
            forward(never(handle, body), |task| task.run_within(Duration::ZERO))
        }),
        ("set_trigger", |handle, body| {
            let once = |task: &TaskHandle| task.set_trigger(every(ms(5)).times(1));
            forward(demanded(handle, body), once)
        }),
        ("a throttle", |handle, body| {
            let throttled: Throttled = handle.task().throttle(HOUR, body).expect("it is open");
            Box::new(move || throttled.call())
        }),
        ("a debounce", |handle, body| {
            let debounced: Debounced = handle.task().debounce(ms(5), body).expect("it is open");
            Box::new(move || debounced.call())
        }),
        ("a group that goes on", |handle, body| {
            let group: Group = handle.group("paused").build().expect("a good limit");
            assert!(group.pause());
            let task = group.task().submit(body).expect("it is open");
            // The task may have run to its end when `resume` returns.
            Box::new(move || {
                let _task: &ScheduledFuture<()> = &task;
                group.resume()
            })
        }),
    ]
}

/// How many tasks with a moment there are, for which as many workers stay, and a way in which others come forward.
fn scenes<B: Fn() + Clone + Send + 'static>() -> Vec<(usize, (&'static str, Way<B>))> {
    [0, 2]
        .into_iter()
        .flat_map(|staying| ways().into_iter().map(move |way| (staying, way)))
        .collect()
}

/// Submits so many tasks for a moment far away. Returns how many workers stay for these and for four tasks that wait as
/// this way has it: none stays for a task that waits for no moment.
fn staying(executor: &ScheduledThreadPoolExecutor, count: usize, what: &str) -> usize {
    (0..count).for_each(|_| drop(executor.schedule(HOUR, || ()).expect("it is open")));
    // Their moment never comes, but it is one.
    if ["reschedule", "run_within"].contains(&what) { 2 } else { count }
}

/// Four tasks wait for no moment, or for one that never comes. Two workers have stayed, or none, and the tasks are
/// brought forward twenty milliseconds apart, each for half a second: each begins when it is due.
#[test]
fn each_task_that_is_brought_forward_begins_when_it_is_due() {
    for (far, (what, way)) in scenes() {
        let (clock, executor) = manual_with(fleeting);
        let stay = staying(&executor, far, what);
        let begun = Log::new();
        let tasks: Vec<_> = (0..4).map(|_| way(&executor, body(&clock, &begun))).collect();
        go_on(&clock, ms(20));
        assert_eq!(executor.pool_size(), stay, "{what}");
        let start = clock.elapsed();
        for bring_forward in &tasks {
            assert!(bring_forward(), "{what}");
            go_on(&clock, ms(20));
        }
        let quiet = if what == "a debounce" { ms(5) } else { ms(0) };
        let expected = [0, 20, 40, 60].map(|delay| start + ms(delay) + quiet);
        assert_eq!(begun.entries(), expected, "{what}");
        drop(executor.shutdown_now());
    }
}

/// The same with bodies that wait for the third of them: were the third not to begin, none would ever end.
#[test]
fn bodies_that_wait_for_each_other_get_their_workers() {
    for (far, (what, way)) in scenes() {
        let (clock, executor) = manual_with(fleeting);
        let stay = staying(&executor, far, what);
        let begun = Counter::new();
        let own = begun.clone();
        let body = move || {
            own.add();
            own.wait_for(3);
        };
        let tasks: Vec<_> = (0..3).map(|_| way(&executor, body.clone())).collect();
        go_on(&clock, ms(20));
        assert_eq!(executor.pool_size(), stay, "{what}");
        for (others, bring_forward) in tasks.iter().enumerate() {
            assert!(bring_forward(), "{what}");
            clock.advance(ms(5));
            begun.wait_for(others + 1);
        }
        drop(executor.shutdown_now());
    }
}

/// A limit that is raised, and a permit that is released, let members go: each has its worker.
#[test]
fn members_that_are_let_go_get_their_workers() {
    [0, 2].into_iter().for_each(members_that_are_let_go);
}

fn members_that_are_let_go(far: usize) {
    let (clock, executor) = manual_with(fleeting);
    let stay = staying(&executor, far, "a limit");
    let group = executor.group("narrow").limit(1).build().unwrap();
    let begun = Log::new();
    let tasks: Vec<_> =
        (0..5).map(|_| group.task().submit(body(&clock, &begun)).expect("it is open")).collect();
    go_on(&clock, ms(20));
    assert_eq!((begun.entries().len(), executor.pool_size()), (1, 1 + stay), "one runs");
    for limit in 2..=4 {
        group.set_limit(limit).unwrap();
        go_on(&clock, ms(20));
    }
    assert_eq!(begun.entries(), [0, 20, 40, 60].map(ms));
    go_on(&clock, ms(960));
    assert_eq!(begun.entries()[4], ms(500), "in place of the first");
    assert!(tasks.iter().all(|task| task.is_done()));
}

/// A timer that is reset from a moment that never comes is on time beside tasks that keep the other workers.
#[test]
fn a_timer_that_is_reset_is_on_time() {
    [0, 2].into_iter().for_each(a_timer_that_is_reset);
}

fn a_timer_that_is_reset(far: usize) {
    struct Noted(ManualClock, Log<Duration>);

    impl Wake for Noted {
        fn wake(self: Arc<Self>) {
            self.1.push(self.0.elapsed());
        }
    }

    let (clock, executor) = manual_with(fleeting);
    let stay = staying(&executor, far, "a timer");
    let (begun, woken) = (Log::new(), Log::new());
    let waker = Waker::from(Arc::new(Noted(clock.clone(), woken.clone())));
    let mut context = std::task::Context::from_waker(&waker);
    let mut sleep = executor.sleep(HOUR);
    let mut poll =
        |sleep: &mut punctual::Sleep| std::pin::Pin::new(sleep).poll(&mut context).is_ready();
    assert!(!poll(&mut sleep));
    sleep.reset(Duration::MAX);
    assert!(!poll(&mut sleep));
    let busy: Vec<_> = (0..2).map(|_| paused(&executor, body(&clock, &begun))).collect();
    go_on(&clock, ms(20));
    assert_eq!(executor.pool_size(), stay);
    assert!(busy.iter().all(|task| task.resume()));
    go_on(&clock, ms(20));
    assert_eq!(begun.entries(), [ms(20), ms(20)]);
    sleep.reset(ms(7));
    assert!(!poll(&mut sleep));
    go_on(&clock, ms(20));
    assert_eq!(woken.entries(), [ms(47)]);
    assert!(poll(&mut sleep));
    drop(executor.shutdown_now());
}

/// An executor whose workers are all gone: its thread factory has kept the first and dropped it. The next start fails
/// as often as that.
fn abandoned(failures: usize) -> (ManualClock, ScheduledThreadPoolExecutor, Counter, Abandon) {
    let (kept, tried) = (Arc::new(Mutex::new(None)), Counter::new());
    let (keeps, counts) = (Arc::clone(&kept), tried.clone());
    let (clock, executor) = manual_with(|builder| {
        builder.core_pool_size(2).thread_factory(move |worker: Worker| {
            counts.add();
            match counts.get() {
                1 => Ok(keeps.lock().unwrap().replace(worker)).map(|_| None),
                number if number <= 1 + failures => Err(io::Error::other("not now")),
                _ => start(worker),
            }
        })
    });
    (clock, executor, tried, Abandon(kept))
}

/// The worker that was kept.
struct Abandon(Arc<Mutex<Option<Worker>>>);

impl Abandon {
    fn drop_worker(self) {
        drop(self.0.lock().unwrap().take());
    }
}

/// No worker is left, and a task that waited is brought forward: one is started for it.
#[test]
fn a_task_that_is_brought_forward_starts_the_only_worker() {
    // A member of a paused group has to be taken once before its group holds it.
    for (what, way) in ways().into_iter().filter(|(what, _)| !what.starts_with("a group")) {
        let (clock, executor, tried, first) = abandoned(0);
        let begun = Log::new();
        let bring_forward = way(&executor, body(&clock, &begun));
        first.drop_worker();
        assert_eq!((executor.pool_size(), tried.get()), (0, 1), "{what}");
        assert!(bring_forward(), "{what}");
        go_on(&clock, ms(20));
        assert_eq!((begun.entries().len(), tried.get()), (1, 2), "{what}");
        drop(executor.shutdown_now());
    }
}

/// If no thread can be started the task is brought forward all the same, and stays pending. The next step that looks
/// for a worker tries again: another change, a submission.
#[test]
fn a_thread_that_cannot_be_started_loses_no_task() {
    for is_submitted in [false, true] {
        let (clock, executor, tried, first) = abandoned(2);
        let begun = Log::new();
        let tasks = [1, 2].map(|_| never(&executor, body(&clock, &begun)));
        first.drop_worker();
        // The second submission has tried to start another worker, and has gone without it.
        assert_eq!((executor.pool_size(), tried.get()), (0, 2));
        assert!(tasks[0].reschedule(Duration::ZERO), "it is brought forward");
        assert_eq!((executor.pool_size(), tried.get()), (0, 3), "no thread can be started");
        assert_eq!((executor.pending_count(), begun.entries().len()), (2, 0));
        if is_submitted {
            executor.execute(|| ()).unwrap();
        } else {
            assert!(tasks[1].run_within(ms(30)));
        }
        go_on(&clock, ms(20));
        assert_eq!(begun.entries(), [ms(0)]);
        drop(executor.shutdown_now());
    }
}

/// A thread factory that brings a task forward is in the middle of a start: the new worker sees to that task.
#[test]
fn a_thread_factory_may_bring_a_task_forward() {
    let waiting = Arc::new(Mutex::new(None::<TaskHandle>));
    let brought = Arc::clone(&waiting);
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(2)
        .thread_factory(move |worker: Worker| {
            let task = brought.lock().unwrap().take();
            assert!(task.is_none_or(|task| task.reschedule(Duration::ZERO)));
            start(worker)
        })
        .build()
        .unwrap();
    let begun = Counter::new();
    let counted = begun.clone();
    *waiting.lock().unwrap() = Some(never(&executor, move || counted.add()));
    let handle = Handle::clone(&executor);
    elsewhere(move || handle.execute(|| ()).unwrap()).get();
    begun.wait_for(1);
    eventually("both are there", || executor.pool_size() == 2);
}

/// The last task of an executor that was shut down, or is shut down then, is brought forward when no worker lives and no
/// thread can be started: it ends as one that the shutdown has not kept, and so does the executor.
#[test]
fn a_closed_executor_ends_though_no_thread_can_be_started() {
    for is_shut_down_first in [true, false] {
        let (clock, executor, _, first) = abandoned(usize::MAX - 1);
        let begun = Log::new();
        let [task, other] = [1, 2].map(|_| {
            let task = executor.schedule(ms(1), body(&clock, &begun)).expect("it is open");
            assert!(task.pause());
            task
        });
        first.drop_worker();
        assert_eq!(executor.pool_size(), 0);
        if is_shut_down_first {
            executor.shutdown();
        }
        assert!(task.resume());
        executor.shutdown();
        assert_cancelled(&task, CancelReason::Shutdown);
        assert_eq!(other.state(), TaskState::Paused, "it may get a worker yet");
        assert!(!executor.is_terminated());
        assert!(other.run_now());
        in_time("the end", move || executor.close()).expect("not on a worker");
        assert_cancelled(&other, CancelReason::Shutdown);
        assert!(begun.entries().is_empty());
    }
}

/// A thread factory keeps the only worker, and drops it when the executor has been shut down: another one is started for
/// the tasks that the shutdown has kept, or they end if none can be.
#[test]
fn a_closed_executor_ends_though_its_worker_is_dropped_late() {
    for failures in [0, usize::MAX - 1] {
        let (clock, executor, tried, first) = abandoned(failures);
        let begun = Log::new();
        let task = executor.schedule(ms(1), body(&clock, &begun)).expect("it is open");
        executor.shutdown();
        assert_eq!((executor.pool_size(), tried.get()), (1, 1));
        first.drop_worker();
        if failures == 0 {
            go_on(&clock, ms(600));
            assert_eq!(begun.entries().len(), 1);
        } else {
            assert_cancelled(&task, CancelReason::Shutdown);
        }
        in_time("the end", move || executor.close()).expect("not on a worker");
    }
}
