//! Panics: wherever user code panics, its task ends, the reason is kept, and the worker survives.

use std::{
    any::Any,
    fmt::Debug,
    panic::{self, AssertUnwindSafe, panic_any},
    sync::{Arc, mpsc},
    task::{Wake, Waker},
    thread::{self, ThreadId},
    time::Duration,
};

use punctual::{
    Failure, ManualClock, RejectionReason, ScheduledFuture,
    ScheduledThreadPoolExecutor as Executor, TaskState,
};

use crate::support::{Bomb, Chain, Counter, Drops, hold, manual, ms, poll, receive, worker_of};

/// The payload with which an ended task panicked.
fn panic_of<T: Debug + 'static>(future: &ScheduledFuture<T>) -> Failure {
    let error = future.try_join().expect("ended").expect_err("panicked");
    error.into_failure().expect("it is a panic")
}

/// An executor with one worker, on a clock that stands still, and the worker's thread.
pub struct Subject {
    pub clock: ManualClock,
    pub executor: Executor,
    worker: ThreadId,
}

impl Subject {
    pub fn new() -> Self {
        let (clock, executor) = manual(1);
        let worker = worker_of(&executor);
        Self { clock, executor, worker }
    }

    /// Waits until everything that is due has run, and checks that the worker's thread is still the
    /// same.
    pub fn assert_worker_lives(&self) {
        assert_eq!(worker_of(&self.executor), self.worker);
    }
}

/// A payload of a type of the test's own.
#[derive(Debug, PartialEq)]
struct Custom(u32);

/// F1, HK-004 to HK-007: the payload of a one-shot task's panic is in its future, with its message
/// and its type.
#[test]
fn a_one_shot_task_keeps_its_panic_payload() {
    type Look = fn(&(dyn Any + Send)) -> bool;
    let is_custom: Look = |payload| payload.downcast_ref() == Some(&Custom(7));
    let silent = "a panic without a message";
    let cases: [(fn(), &str, Look); 4] = [
        (|| panic_any("a literal"), "a literal", |payload| payload.is::<&'static str>()),
        (|| panic_any("text".to_owned()), "text", |payload| payload.is::<String>()),
        (|| panic_any(Custom(7)), silent, is_custom),
        (|| panic::resume_unwind(Box::new(Custom(7))), silent, is_custom),
    ];
    let subject = Subject::new();
    for (body, message, is_as_thrown) in cases {
        let future = subject.executor.submit(body).expect("accepted");
        subject.assert_worker_lives();
        assert_eq!(future.state(), TaskState::Failed);
        let error = future.try_join().expect("ended").expect_err("panicked");
        assert_eq!(error.to_string(), format!("the task panicked: {message}"));
        let panic = error.into_failure().expect("it is a panic");
        assert_eq!(panic.message(), message);
        assert!(is_as_thrown(&*panic.into_payload()), "{message}");
    }
}

/// F2: a periodic task ends with its first panic, which a joining thread can resume; it does not
/// run again, and affects no other task.
#[test]
fn a_periodic_task_ends_with_its_first_panic() {
    let subject = Subject::new();
    let (bad_runs, good_runs) = (Counter::new(), Counter::new());
    let (bad, good) = (bad_runs.clone(), good_runs.clone());
    let future = subject
        .executor
        .schedule_at_fixed_rate(ms(1), ms(1), move || {
            bad.add();
            assert!(bad.get() < 3, "the third run");
        })
        .expect("accepted");
    subject.executor.schedule_at_fixed_rate(ms(1), ms(1), move || good.add()).expect("accepted");
    for _ in 0..5 {
        subject.clock.advance(ms(1));
        subject.assert_worker_lives();
    }
    assert_eq!((bad_runs.get(), good_runs.get()), (3, 5));
    assert_eq!(subject.executor.pending_count(), 1);
    let panic = panic_of(&future);
    assert_eq!(panic.message(), "the third run");
    let resumed =
        panic::catch_unwind(AssertUnwindSafe(|| panic::resume_unwind(panic.into_payload())));
    assert_eq!(resumed.expect_err("it goes on").downcast_ref(), Some(&"the third run"));
}

/// How a task can lose its captures.
type Loss = fn(&ManualClock, Executor, &ScheduledFuture<()>);

const LOSSES: [(&str, Loss, TaskState); 5] = [
    ("run", lose_by_run, TaskState::Failed),
    ("cancelled", lose_by_cancel, TaskState::Cancelled),
    ("shut down", lose_by_shutdown, TaskState::Cancelled),
    ("drained", |_, executor, _| drop(executor.shutdown_now()), TaskState::Cancelled),
    ("executor dropped", |_, executor, _| drop(executor), TaskState::Cancelled),
];

fn lose_by_run(clock: &ManualClock, executor: Executor, _: &ScheduledFuture<()>) {
    clock.advance(ms(1));
    worker_of(&executor);
}

fn lose_by_cancel(_: &ManualClock, executor: Executor, future: &ScheduledFuture<()>) {
    assert!(future.cancel());
    worker_of(&executor);
}

fn lose_by_shutdown(_: &ManualClock, executor: Executor, _: &ScheduledFuture<()>) {
    executor.set_executes_existing_delayed_tasks_after_shutdown(false);
    executor.shutdown();
}

/// F3, HK-037: the panic of a capture's drop propagates to no caller, whichever way the task ends,
/// and the captures beside it are dropped all the same.
#[test]
fn a_capture_that_panics_is_contained_wherever_it_is_dropped() {
    for (how, lose, expected) in LOSSES {
        let (clock, executor) = manual(1);
        let drops = Drops::new();
        let captures = (drops.token(), Bomb("a capture"), drops.token());
        let future = executor.schedule(ms(1), move || hold(&captures)).expect("accepted");
        lose(&clock, executor, &future);
        assert_eq!(future.state(), expected, "{how}");
        assert_eq!(drops.count(), 2, "{how}");
    }
}

/// F3: a capture that panics at the end of a run counts as that run's panic.
#[test]
fn a_capture_that_panics_at_the_end_of_a_run_is_its_panic() {
    let subject = Subject::new();
    let bomb = Bomb("a capture");
    let future = subject.executor.submit(move || hold(&bomb)).expect("accepted");
    subject.assert_worker_lives();
    let panic = panic_of(&future);
    assert_eq!(panic.message(), "a capture");
}

/// F3: a refused closure that panics when it is dropped does not hide the reason for the refusal.
#[test]
fn a_capture_that_panics_does_not_hide_a_refusal() {
    let (_clock, executor) = manual(1);
    executor.shutdown();
    let bomb = Bomb("a capture");
    let refused = executor.submit(move || hold(&bomb));
    assert!(
        matches!(refused, Err(ref error) if matches!(error.reason(), RejectionReason::Shutdown))
    );
    let bomb = Bomb("a capture");
    let refused = executor.schedule_with_fixed_delay(ms(1), Duration::ZERO, move || hold(&bomb));
    assert!(
        matches!(refused, Err(ref error) if matches!(error.reason(), RejectionReason::ZeroPeriod))
    );
}

/// F5: a payload that panics when it is dropped, with another payload that does so too, ends no
/// worker.
#[test]
fn a_payload_that_panics_is_contained() {
    let subject = Subject::new();
    for length in 1..4 {
        let body = move || panic_any(Chain(length));
        subject.executor.execute(body).expect("accepted");
        subject.assert_worker_lives();
        let kept: ScheduledFuture<()> = subject.executor.submit(body).expect("accepted");
        subject.assert_worker_lives();
        assert_eq!(kept.state(), TaskState::Failed);
        drop(kept);
    }
    subject.assert_worker_lives();
}

/// F6, F48: a result that was not joined is dropped once, and may panic.
#[test]
fn a_result_that_panics_is_contained_and_dropped_once() {
    let subject = Subject::new();
    let drops = Drops::new();
    let token = || (drops.token(), Bomb("a result"));
    let (early, late) = (token(), token());
    drop(subject.executor.submit(move || early).expect("accepted"));
    subject.assert_worker_lives();
    assert_eq!(drops.count(), 1);
    let kept = subject.executor.submit(move || late).expect("accepted");
    subject.assert_worker_lives();
    assert_eq!(drops.count(), 1);
    drop(kept);
    assert_eq!(drops.count(), 2);
}

/// A waker that panics when it is woken.
struct PanicsOnWake;

impl Wake for PanicsOnWake {
    fn wake(self: Arc<Self>) {
        panic_any("a waker");
    }
}

/// F8, G26: a waker that panics when it is woken does not affect the result, and the other wakers
/// are woken.
#[test]
fn a_waker_that_panics_when_woken_does_not_keep_others_waiting() {
    let subject = Subject::new();
    let mut future = subject.executor.schedule(ms(1), || 7).expect("accepted");
    assert!(poll(&mut future, &Waker::from(Arc::new(PanicsOnWake))).is_pending());
    let future = Arc::new(future);
    let (waits, waiter) = (Counter::new(), Arc::clone(&future));
    let (tell, told) = mpsc::channel();
    let about_to_wait = waits.clone();
    thread::spawn(move || {
        about_to_wait.add();
        let _ = tell.send(waiter.wait());
    });
    waits.wait_for(1);
    subject.clock.advance(ms(1));
    let waited = receive(&told, "the other waiter is woken");
    waited.expect("it waits outside the pool");
    assert!(matches!(future.try_join(), Some(Ok(7))));
    subject.assert_worker_lives();
}

/// A waker that panics when the last of its clones is dropped.
struct PanicsOnDrop(#[expect(dead_code, reason = "its drop is what counts")] Bomb);

impl Wake for PanicsOnDrop {
    fn wake(self: Arc<Self>) {}
}

/// F8: a waker that panics when it is dropped is contained, whether it was woken, replaced or
/// released.
#[test]
fn a_waker_that_panics_when_dropped_is_contained() {
    let subject = Subject::new();
    let ways: [fn(&Subject, &mut ScheduledFuture<i32>); 3] = [
        |subject, _| {
            subject.clock.advance(ms(1));
            subject.assert_worker_lives();
        },
        |_, future| assert!(poll(future, Waker::noop()).is_pending()),
        |_, _| {},
    ];
    for way in ways {
        let mut future = subject.executor.schedule(ms(1), || 7).expect("accepted");
        let waker = Waker::from(Arc::new(PanicsOnDrop(Bomb("a waker"))));
        assert!(poll(&mut future, &waker).is_pending());
        drop(waker);
        way(&subject, &mut future);
        drop(future);
        subject.assert_worker_lives();
    }
}
