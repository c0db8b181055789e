//! A handler and the task it gets: the effect of each method on the task, and what becomes of both
//! if the handler fails.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, Once, OnceLock},
    thread,
    time::Duration,
};

use punctual::{
    Builder, CancelReason, DiscardPolicy, DrainedTask, Handle, RejectedTask, Rejection,
    ScheduledFuture, ScheduledThreadPoolExecutor as Executor, TaskError, TaskRun, TaskState,
    Worker, current_task,
};

use crate::{
    rejection::policies::{HOUR, Why, bounded, verbs, why, why_of},
    support::{Counter, Drops, Log, assert_cancelled, eventually, hold, in_time, ms},
};

/// A handler.
type Answer = fn(RejectedTask<'_>) -> Rejection;

/// Tasks that a handler has kept.
type Kept = Arc<Mutex<Vec<DrainedTask>>>;

/// An executor that was shut down, whose handler keeps all tasks.
fn keeping() -> (Executor, Kept) {
    let kept = Kept::default();
    let keeper = Arc::clone(&kept);
    let builder = Executor::builder().core_pool_size(1);
    let builder = builder.rejected_execution_handler(move |task: RejectedTask<'_>| {
        let (task, answer) = task.keep();
        keeper.lock().unwrap().push(task);
        answer
    });
    let executor = builder.build().unwrap();
    executor.shutdown();
    (executor, kept)
}

fn take(kept: &Kept) -> DrainedTask {
    kept.lock().unwrap().pop().expect("one was kept")
}

/// Its owner can run a kept task, on the owner's thread, with its name and context.
#[test]
fn a_kept_task_is_run_later() {
    let (executor, kept) = keeping();
    let whose = || (thread::current().id(), current_task().unwrap().name());
    let future = executor.task().name("kept").submit(whose).unwrap();
    assert_eq!(future.state(), TaskState::Scheduled);
    let task = take(&kept);
    assert_eq!((task.id(), task.name()), (future.id(), Some("kept".into())));
    assert!(task.is_due() && !task.is_periodic());
    let runner = thread::spawn(move || task.run());
    let expected = runner.thread().id();
    runner.join().unwrap();
    let (thread, name) = future.try_join().unwrap().unwrap();
    assert_eq!((thread, name.as_deref()), (expected, Some("kept")));
}

/// A kept task that is dropped ends as cancelled; so does one that is cancelled, and running it
/// then has no effect.
#[test]
fn a_kept_task_can_be_dropped_or_cancelled() {
    let (executor, kept) = keeping();
    let drops = Drops::new();
    let submit = || {
        let token = drops.token();
        executor.submit(move || hold(&token)).unwrap()
    };
    let dropped = submit();
    drop(take(&kept));
    assert_cancelled(&dropped, CancelReason::Rejected);
    let cancelled = submit();
    assert!(!executor.remove(&cancelled));
    assert!(cancelled.cancel());
    assert_eq!(drops.count(), 2);
    take(&kept).run();
    assert_cancelled(&cancelled, CancelReason::Requested);
}

/// A periodic task that was kept runs once, and ends as cancelled.
#[test]
fn a_kept_task_runs_once() {
    let (executor, kept) = keeping();
    let runs = Counter::new();
    let count = runs.clone();
    let future = executor.schedule_at_fixed_rate(HOUR, HOUR, move || count.add()).unwrap();
    let task = take(&kept);
    assert!(task.is_periodic() && !task.is_due() && task.deadline().is_some());
    task.run();
    assert_eq!(runs.get(), 1);
    assert_cancelled(&future, CancelReason::Rejected);
}

/// A task that the handler runs runs on the submitter's thread whether it is due or not; a periodic
/// one runs once. The executor's hooks are called.
#[test]
fn a_handler_can_run_anything() {
    let (seen, before) = (Log::new(), Log::new());
    let (log, hook) = (seen.clone(), before.clone());
    let builder = Executor::builder().core_pool_size(1).before_execute(move |task| {
        hook.push(task.id());
    });
    let executor =
        builder.rejected_execution_handler(|task: RejectedTask<'_>| task.run()).build().unwrap();
    executor.shutdown();
    for (name, verb) in verbs() {
        let log = log.clone();
        let body = move || log.push((thread::current().id(), current_task().unwrap().id()));
        if let Some(future) = verb(&executor, Box::new(body)).expect(name) {
            assert!(future.is_done(), "{name}");
            let outcome = future.try_join().unwrap();
            let is_cut_short = matches!(outcome, Err(TaskError::Cancelled(CancelReason::Rejected)));
            assert_eq!(is_cut_short, name.contains("fixed"), "{name}");
        }
    }
    let seen = seen.entries();
    assert_eq!(seen.len(), verbs().count());
    assert!(seen.iter().all(|(thread, _)| *thread == thread::current().id()));
    assert_eq!(before.entries(), seen.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
}

/// A handler that makes room itself tries again; the submission then counts as admitted, like any
/// other.
#[test]
fn a_handler_can_make_room_and_try_again() {
    let (clock, executor) = bounded(1, DiscardPolicy);
    let (handle, asked) = (executor.handle(), Counter::new());
    let count = asked.clone();
    executor.set_rejected_execution_handler(move |task: RejectedTask<'_>| {
        assert_eq!(why_of(task.reason()), Why::Saturated);
        count.add();
        if count.get() % 3 == 0 {
            handle.pending_tasks()[0].cancel();
        }
        task.retry()
    });
    let first = executor.schedule(HOUR, || 1).unwrap();
    let second = executor.schedule(2 * HOUR, || 2).unwrap();
    assert_cancelled(&first, CancelReason::Requested);
    assert_eq!((asked.get(), executor.statistics().rejected), (3, 0));
    clock.run_for(2 * HOUR);
    assert_eq!(second.try_join().unwrap().unwrap(), 2);
}

/// After a shutdown there is no second try, because it would fail for ever.
#[test]
fn there_is_no_second_try_after_a_shutdown() {
    let again: [Answer; 3] = [
        |task| task.retry(),
        |task| task.discard_oldest(),
        |task| task.wait_for_room(Duration::MAX),
    ];
    for handler in again {
        let (_clock, executor) = bounded(1, handler);
        let kept = executor.schedule(HOUR, || ()).unwrap();
        executor.shutdown();
        let handle = executor.handle();
        let refused = in_time("the submission", move || handle.submit(|| ()));
        assert_eq!(why(&refused.unwrap_err()), Why::Shutdown);
        assert_eq!(kept.state(), TaskState::Scheduled);
    }
}

/// F7, RJ-017: the panic of a handler propagates to the submitter; the closure is dropped, the
/// refusal is counted, and the executor is unaffected.
#[test]
fn a_handler_that_panics_harms_no_other_task() {
    let (clock, executor) = bounded(1, |task: RejectedTask<'_>| -> Rejection {
        panic!("not {}", task.name().is_some());
    });
    executor.schedule(HOUR, || ()).unwrap();
    let (worker, drops) = (Counter::new(), Drops::new());
    for (number, (name, verb)) in (1..).zip(verbs()) {
        let token = drops.token();
        let closure = Box::new(move || hold(&token));
        let submission = AssertUnwindSafe(|| verb(&executor, closure));
        let panic = panic::catch_unwind(submission).expect_err(name);
        assert_eq!(panic.downcast_ref::<String>().unwrap(), "not false");
        assert_eq!(drops.count(), number, "{name}");
        assert_eq!(executor.statistics().rejected, number as u64);
    }
    clock.run_for(HOUR);
    let count = worker.clone();
    executor.execute(move || count.add()).unwrap();
    worker.wait_for(1);
    assert_eq!(executor.statistics().submitted, 2);
}

/// A handler that has waited for room and then panics releases its permit.
#[test]
fn a_handler_that_panics_gives_its_place_back() {
    let (_clock, executor) = bounded(1, |task: RejectedTask<'_>| -> Rejection {
        // The task that held the permit has been cancelled, so there is room at once.
        let _answer = task.wait_for_room(ms(0));
        panic!("after all");
    });
    let (handle, first) = (executor.handle(), executor.schedule(HOUR, || ()).unwrap());
    let stubborn = executor.rejected_execution_handler();
    executor.set_rejected_execution_handler(move |task: RejectedTask<'_>| {
        first.cancel();
        handle.set_rejected_execution_handler(stubborn.clone());
        stubborn.rejected_execution(task)
    });
    let submission = AssertUnwindSafe(|| executor.submit(|| ()));
    assert!(panic::catch_unwind(submission).is_err());
    assert_eq!(executor.pending_count(), 0);
    let next = executor.schedule(HOUR, || ()).expect("there is room");
    assert_eq!(next.state(), TaskState::Scheduled);
}

/// The handlers of two executors answer for each other's task: the outer one's submits to the inner
/// one before it answers. Returns what became of both tasks.
fn answer_crosswise(answer: Answer) -> [ScheduledFuture<()>; 2] {
    let full = || {
        let (_, executor) = bounded(1, DiscardPolicy);
        executor.schedule(HOUR, || ()).unwrap();
        executor
    };
    let (outer, inner) = (full(), full());
    let (spare, drops) = (Arc::new(Mutex::new(None)), Drops::new());
    let theirs = Arc::clone(&spare);
    inner.set_rejected_execution_handler(move |task: RejectedTask<'_>| {
        theirs.lock().unwrap().replace(answer(task)).expect("the outer task's answer")
    });
    let nested = Arc::new(Mutex::new(None));
    let (future, to, token) = (Arc::clone(&nested), inner.handle(), drops.token());
    let token = Mutex::new(Some(token));
    outer.set_rejected_execution_handler(move |task: RejectedTask<'_>| {
        *spare.lock().unwrap() = Some(answer(task));
        let token = token.lock().unwrap().take();
        *future.lock().unwrap() = Some(to.submit(move || hold(&token)).unwrap());
        spare.lock().unwrap().take().expect("the inner task's answer")
    });
    let token = drops.token();
    let future = outer.submit(move || hold(&token)).unwrap();
    assert_eq!(drops.count(), 2);
    assert_eq!((inner.pending_count(), outer.pending_count()), (1, 1));
    assert_eq!((inner.statistics().rejected, outer.statistics().rejected), (1, 1));
    let nested = nested.lock().unwrap().take().expect("submitted");
    [future, nested]
}

/// An answer about another task is valid for neither task: both end as cancelled.
#[test]
fn an_answer_about_another_task_discards_both() {
    let answers: [Answer; 2] = [|task| task.abort(), |task| task.retry()];
    for answer in answers {
        for future in answer_crosswise(answer) {
            assert_cancelled(&future, CancelReason::Rejected);
        }
    }
}

/// Starts one worker, which retires when it is idle, and no second one: a submission for which the
/// second start fails, when its task is already queued, calls `meanwhile` first.
pub fn without_second_worker(
    builder: Builder,
    meanwhile: impl Fn(&Handle) + Send + Sync + 'static,
) -> Executor {
    let own = Arc::new(OnceLock::<Handle>::new());
    let (decorating, starting, started) = (Arc::clone(&own), Arc::clone(&own), Counter::new());
    let goes = Once::new();
    let builder = builder.core_pool_size(0).keep_alive(ms(1)).decorate_task(move |_| {
        // The first submission has seen a worker; when this returns the worker has retired.
        let executor = decorating.get().expect("set below");
        let has_gone = || {
            // This makes idle workers check again how long they stay.
            executor.set_keep_alive(ms(1)).expect("not zero");
            executor.pool_size() == 0
        };
        goes.call_once(|| eventually("the worker goes", has_gone));
        |next: TaskRun<'_>| next.run()
    });
    let builder = builder.thread_factory(move |worker: Worker| {
        started.add();
        if started.get() == 1 {
            return Ok(Some(thread::spawn(move || worker.run())));
        }
        meanwhile(starting.get().expect("set below"));
        Err(io::Error::other("no second one"))
    });
    let executor = builder.build().unwrap();
    own.set(executor.handle()).expect("set once");
    executor
}

/// A queued task that is refused because no worker can be started for it, and that another thread
/// cancels at that very moment: the submission returns its future.
#[test]
fn a_task_can_be_cancelled_while_it_is_refused() {
    let (dropping, gate, ended) = (Counter::new(), Counter::new(), Counter::new());
    let drop_slowly = {
        let (dropping, gate) = (dropping.clone(), gate.clone());
        OnDrop(move || {
            dropping.add();
            gate.wait_for(1);
        })
    };
    let done = ended.clone();
    let executor = without_second_worker(Executor::builder(), move |executor| {
        let listed = executor.pending_tasks();
        let done = done.clone();
        thread::spawn(move || {
            assert!(listed[0].cancel());
            done.add();
        });
        dropping.wait_for(1);
    });
    let future =
        executor.submit(move || hold(&drop_slowly)).expect("it was admitted, and cancelled");
    assert_cancelled(&future, CancelReason::Requested);
    gate.add();
    ended.wait_for(1);
    assert_eq!(executor.pending_count(), 0);
}

/// Calls a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
