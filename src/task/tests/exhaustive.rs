//! The state transitions of a task, each against everything that may happen to the task at the same
//! time, in every order.

use std::{rc::Rc, time::Duration};

use super::{observer::Hooks, *};
use crate::{
    CancelReason, Clock, ManualClock,
    entry::{Moved, Timing},
    feature::{Change, TimeLimit},
    schedule::{MissedRuns, Schedule},
    statistics::Ended,
    sync::{
        Mutex,
        exhaustive::{Note, check},
        thread,
    },
    wait::{self, Place},
};

/// Runs a task as a worker does, and returns the verdict.
fn run(task: Arc<Task>) -> Verdict {
    let clock = Clock::from(ManualClock::new());
    let stop = CancellationToken::with_clock(clock.clone());
    let worker = Rc::new(WorkerContext::new(clock, stop, Arc::default(), true));
    let run = Run::new(worker, task, 1, Timestamp::PAST, Timestamp::PAST);
    run.task.run(&run, &Hooks::default())
}

/// Makes a series with this schedule and without settings, for the models.
pub(crate) fn series(body: impl FnMut() + Send + 'static, schedule: Schedule) -> Arc<Task> {
    let task: Arc<Task> = Node::repeated(body);
    task.set_plan(Plan::new(schedule, None));
    task
}

/// Waits for the end of a task, as `join` does.
fn wait_for(task: &Task) {
    let clock = Clock::from(ManualClock::new());
    let mut place = Place::default();
    wait::block_on(&clock, |waker| task.poll_done(&mut place, waker).then_some(()));
}

/// A start races with a cancellation: the task runs or it does not, and its captures are dropped
/// once.
#[test]
fn a_task_runs_or_is_cancelled() {
    check(|| {
        let (runs, drops) = (Note::default(), Note::default());
        let (noted, capture) = (runs.clone(), drops.drop_of_one());
        let task: Arc<Task> = Node::once(move || {
            noted.add();
            capture
        });
        let other = Arc::clone(&task);
        let worker = thread::spawn(move || run(other));
        let found = task.cancel(CancelReason::Requested, Drops::UNREPORTED);
        let verdict = worker.join().expect("no thread panics");
        let (expected, times) = match found {
            Cancellation::Waiting(_) => (Verdict::TooLate, 0),
            Cancellation::Running | Cancellation::TooLate => (Verdict::Ended, 1),
        };
        assert_eq!((verdict, runs.get()), (expected, times));
        assert_eq!(drops.get(), usize::from(found != Cancellation::TooLate));
        drop(task);
        assert_eq!(drops.get(), 1);
    });
}

/// M123: a waiter registers while the task is ending: it is woken, and sees what the body has done.
#[test]
fn a_joining_thread_is_woken() {
    check(|| {
        let note = Note::default();
        let noted = note.clone();
        let task: Arc<Task> = Node::once(move || noted.add());
        let other = task.clone();
        let worker = thread::spawn(move || run(other));
        wait_for(&*task);
        assert_eq!(
            (task.take_result::<()>().is_some_and(|result| result.is_ok()), note.get()),
            (true, 1)
        );
        assert_eq!(worker.join().expect("no thread panics"), Verdict::Ended);
    });
}

/// One waiter awaits with a waker that is kept beside the list, and another joins: both are woken.
#[test]
fn all_waiters_are_woken() {
    check(|| {
        let task: Arc<Task> = Node::once(|| ());
        let (one, other) = (Arc::clone(&task), Arc::clone(&task));
        let worker = thread::spawn(move || run(one));
        let joiner = thread::spawn(move || wait_for(&*other));
        let clock = Clock::from(ManualClock::new());
        wait::block_on(&clock, |waker| task.poll_awaited(waker).then_some(()));
        joiner.join().expect("no thread panics");
        assert_eq!(worker.join().expect("no thread panics"), Verdict::Ended);
    });
}

/// A cancellation, even one during the run, wakes a waiter as a result does.
#[test]
fn a_joining_thread_is_woken_by_a_cancellation() {
    check(|| {
        let task: Arc<Task> = Node::once(|| ());
        let (one, other) = (Arc::clone(&task), Arc::clone(&task));
        let worker = thread::spawn(move || run(one));
        let canceller =
            thread::spawn(move || other.cancel(CancelReason::Requested, Drops::UNREPORTED));
        wait_for(&*task);
        let found = canceller.join().expect("no thread panics");
        assert_eq!(task.state() == TaskState::Cancelled, found != Cancellation::TooLate);
        let _ = worker.join().expect("the worker does not panic");
    });
}

/// M124: a periodic task is queued again while it is being cancelled: afterwards it is not in the queue, and its
/// closure has been dropped once.
#[test]
fn a_cancelled_task_is_not_queued() {
    check(|| {
        let (queue, drops): (Arc<Mutex<bool>>, _) = (Arc::default(), Note::default());
        let capture = drops.drop_of_one();
        let body = move || _ = &capture;
        let task = series(body, Schedule::fixed_delay(Duration::from_nanos(1), MissedRuns::Burst));
        let worker = {
            let (task, queue) = (Arc::clone(&task), Arc::clone(&queue));
            thread::spawn(move || {
                let Verdict::Again(next) = run(task.clone()) else { return };
                let mut enqueue = |_, _| {
                    *queue.lock() = true;
                    Some(7)
                };
                if task.requeue(next, &mut enqueue).0 == Err(None) {
                    assert_eq!(task.state(), TaskState::Cancelled);
                }
            })
        };
        match task.cancel(CancelReason::Requested, Drops::UNREPORTED) {
            Cancellation::Waiting(Some(7)) => assert!(std::mem::take(&mut *queue.lock())),
            Cancellation::Waiting(_) | Cancellation::Running => {}
            Cancellation::TooLate => unreachable!("nothing else ends it"),
        }
        worker.join().expect("no thread panics");
        let is_queued = *queue.lock();
        assert_eq!((is_queued, task.state()), (false, TaskState::Cancelled));
        assert_eq!(drops.get(), 1);
    });
}

/// M125: a thread that sees a run counted sees what happened in it.
#[test]
fn a_counted_run_has_happened() {
    check(|| {
        let (stats, note) = (Arc::new(crate::statistics::WorkerStats::default()), Note::default());
        let (own, noted) = (Arc::clone(&stats), note.clone());
        let worker = thread::spawn(move || {
            noted.add();
            own.count(false, 0, Some(Ended::Completed));
        });
        if stats.totals().completed > 0 {
            assert_eq!(note.get(), 1);
        }
        worker.join().expect("no thread panics");
    });
}

/// M126: the name that is shown for a running task is that task's own.
#[test]
fn a_running_task_is_shown_with_its_own_name() {
    check(|| {
        let stats = Arc::new(crate::statistics::WorkerStats::default());
        let own = Arc::clone(&stats);
        let worker = thread::spawn(move || {
            own.begin(1, Some("one".into()), Timestamp::PAST);
            own.leave();
            own.begin(2, None, Timestamp::PAST);
            own.leave();
            own.begin(3, Some("three".into()), Timestamp::PAST);
        });
        match stats.current() {
            None | Some((2, None, _)) => {}
            Some((1, name, _)) => assert_eq!(name.as_deref(), Some("one")),
            Some((_, name, _)) => assert_eq!(name.as_deref(), Some("three")),
        }
        worker.join().expect("no thread panics");
    });
}

/// Gives a task a time limit, `budget` after `due`.
fn limit_to(task: &Arc<Task>, due: Timestamp, budget: Duration) {
    let limit = Box::new(TimeLimit::new(due, budget));
    task.extend(|extras| extras.extensions.limit = Some(limit));
}

/// The time limit of a task is up, and both the timer thread and a worker see that: one of them times the task out, it
/// does not run, and its closure is dropped once.
#[test]
fn a_task_times_out_once() {
    check(|| {
        let (runs, drops) = (Note::default(), Note::default());
        let (noted, capture) = (runs.clone(), drops.drop_of_one());
        let task: Arc<Task> = Node::once(move || {
            noted.add();
            drop(capture);
        });
        let limit = Timestamp::PAST;
        limit_to(&task, limit, Duration::ZERO);
        let other = Arc::clone(&task);
        let worker = thread::spawn(move || run(other));
        let found = task.time_out(limit, None, Drops::UNREPORTED);
        let verdict = worker.join().expect("no thread panics");
        let by_timer = matches!(found, Cancellation::Waiting(_));
        let by_worker = matches!(verdict, Verdict::TimedOut);
        assert!(by_timer != by_worker, "{found:?}, {verdict:?}");
        assert!(by_worker || verdict == Verdict::TooLate);
        assert_eq!((runs.get(), drops.get(), task.state()), (0, 1, TaskState::Cancelled));
    });
}

fn manual() -> Clock {
    Clock::from(ManualClock::new())
}

/// A queue for one task: the deadline of its entry; `None` if the queue is empty.
type OneEntry = Arc<Mutex<Option<Timestamp>>>;

/// Returns a function that moves the entry of such a queue.
fn mover_of(
    queue: &OneEntry,
) -> impl FnMut(Option<u32>, &mut dyn FnMut(Timestamp, bool) -> Option<Timing>) -> Moved + '_ {
    |_, choose| match &mut *queue.lock() {
        Some(due) => {
            let Some(timing) = choose(*due, true) else { return Moved::Declined };
            *due = timing.due();
            Moved::To(None)
        }
        None => Moved::Absent,
    }
}

fn control(task: &Arc<Task>, change: Change, queue: &OneEntry) -> bool {
    let (changed, deferred) = task.control(change, &manual(), &mut mover_of(queue));
    deferred.run();
    changed
}

/// Does what a worker does: takes the task out of the queue if it is due, runs it, and queues it again.
fn work(task: Arc<Task>, queue: &OneEntry) {
    if queue.lock().take_if(|deadline| *deadline == Timestamp::PAST).is_none() {
        return;
    }
    if let Verdict::Again(next) = run(Arc::clone(&task)) {
        let mut enqueue = |timing: Timing, _| {
            *queue.lock() = Some(timing.due());
            Some(0)
        };
        let _ = task.requeue(next, &mut enqueue);
    }
}

/// M133: a task is moved while a worker takes it, runs it and queues it again: in each order it ends up queued for the
/// moment that was asked for.
#[test]
fn a_series_is_moved_and_not_lost() {
    check(|| {
        let runs = Note::default();
        let noted = runs.clone();
        let delay = Duration::from_nanos(1);
        let task = series(move || noted.add(), Schedule::fixed_delay(delay, MissedRuns::Burst));
        let queue: OneEntry = Arc::new(Mutex::new(Some(Timestamp::PAST)));
        let (of_worker, its_queue) = (Arc::clone(&task), Arc::clone(&queue));
        let worker = thread::spawn(move || work(of_worker, &its_queue));
        let moment = Timestamp::from_nanos(1_000);
        let changed = control(&task, Change::At(moment), &queue);
        worker.join().expect("no thread panics");
        assert!(changed);
        assert_eq!(*queue.lock(), Some(moment), "after {} runs", runs.get());
    });
}

/// A task is paused and resumed while a worker takes it and queues it again: it ends up queued, and not paused.
#[test]
fn a_pause_that_is_over_leaves_nothing() {
    check(|| {
        let delay = Duration::from_nanos(1);
        let task = series(|| (), Schedule::fixed_delay(delay, MissedRuns::Burst));
        let queue: OneEntry = Arc::new(Mutex::new(Some(Timestamp::PAST)));
        let (of_worker, its_queue) = (Arc::clone(&task), Arc::clone(&queue));
        let worker = thread::spawn(move || work(of_worker, &its_queue));
        for change in [Change::Pause, Change::Resume] {
            assert!(control(&task, change, &queue));
        }
        worker.join().expect("no thread panics");
        let entry = *queue.lock();
        assert!(entry.is_some_and(|entry| entry < Timestamp::NEVER), "{entry:?}");
        assert_eq!(task.state(), TaskState::Scheduled);
    });
}

/// A one-shot task that is put off in time does not run before; if it is too late for that, `control` says so.
#[test]
fn a_task_is_put_off_or_it_is_too_late() {
    check(|| {
        let task: Arc<Task> = Node::once(|| ());
        let queue: OneEntry = Arc::new(Mutex::new(Some(Timestamp::PAST)));
        let (of_worker, its_queue) = (Arc::clone(&task), Arc::clone(&queue));
        let worker = thread::spawn(move || work(of_worker, &its_queue));
        let moment = Timestamp::from_nanos(1_000);
        let changed = control(&task, Change::At(moment), &queue);
        worker.join().expect("no thread panics");
        let expected = if changed { Some(moment) } else { None };
        let entry = *queue.lock();
        assert_eq!((entry, task.state().is_done()), (expected, !changed));
    });
}

/// M137: a task with a time limit is put off, and so is its limit, while the timeout of the earlier limit fires: the
/// task is put off or has timed out, and not both.
#[test]
fn a_limit_that_has_moved_does_not_end_the_task() {
    check(|| {
        let (due, budget) = (Timestamp::PAST, Duration::from_nanos(u64::MAX / 2));
        let task: Arc<Task> = Node::once(|| ());
        limit_to(&task, due, budget);
        let queue: OneEntry = Arc::new(Mutex::new(Some(due)));
        let of_timer = Arc::clone(&task);
        let timer =
            thread::spawn(move || of_timer.time_out(due.after(budget), None, Drops::UNREPORTED));
        let moment = Timestamp::from_nanos(1_000);
        let changed = control(&task, Change::At(moment), &queue);
        let found = timer.join().expect("no thread panics");
        assert_eq!(changed, found == Cancellation::TooLate);
        assert_eq!(changed, task.state() == TaskState::Scheduled);
        let limit = if changed { moment } else { due }.after(budget);
        assert_eq!(task.with(|parts| parts.expiry()), Some(limit));
    });
}

/// M142: two threads move the limit, and each arms a guard for its own limit: the guard that stays is the one for the
/// limit that the task has in the end.
#[test]
fn the_guard_of_the_last_limit_stays() {
    check(|| {
        let (due, budget) = (Timestamp::PAST, Duration::from_nanos(u64::MAX / 2));
        let task: Arc<Task> = Node::once(|| ());
        limit_to(&task, due, budget);
        let queue: OneEntry = Arc::new(Mutex::new(Some(due)));
        let drops = [Note::default(), Note::default(), Note::default()];
        let moments = [1_000, 2_000].map(Timestamp::from_nanos);
        let (of_task, of_arm) = (Arc::downgrade(&task), drops.clone());
        task.arm_limits(Arc::new(move |limit| {
            let place = moments.iter().position(|moment| moment.after(budget) == limit);
            let guard = of_arm[place.unwrap_or(2)].drop_of_one();
            of_task.upgrade().expect("it is there").attach(Box::new(guard), limit);
        }));
        let put_off = |index: usize| {
            let (task, queue, moment) = (Arc::clone(&task), Arc::clone(&queue), moments[index]);
            move || assert!(control(&task, Change::At(moment), &queue))
        };
        let other = thread::spawn(put_off(0));
        put_off(1)();
        other.join().expect("no thread panics");
        let entry = (*queue.lock()).expect("nobody takes it");
        let stays = moments.map(|moment| usize::from(moment != entry));
        assert_eq!([drops[0].get(), drops[1].get(), drops[2].get()], [stays[0], stays[1], 1]);
    });
}

/// A capture whose drop takes a lock that another thread takes too, so that loom tries both orders.
struct Hesitates<D>(Arc<Mutex<()>>, D);

impl<D> Drop for Hesitates<D> {
    fn drop(&mut self) {
        drop(self.0.lock());
    }
}

/// M138: a series is cancelled during its run: a thread that waits until the series has left finds that the closure has
/// been dropped.
#[test]
fn who_waits_for_the_body_sees_the_closure_dropped() {
    check(|| {
        let drops = Note::default();
        let meeting: Arc<Mutex<()>> = Arc::default();
        let capture = Hesitates(Arc::clone(&meeting), drops.drop_of_one());
        let own: Arc<Mutex<Option<Arc<Task>>>> = Arc::default();
        let itself = Arc::clone(&own);
        let body = move || {
            let _ = &capture;
            let task = itself.lock().take().expect("it is there");
            let _ = task.cancel(CancelReason::Requested, Drops::UNREPORTED);
        };
        let task = series(body, Schedule::fixed_delay(Duration::from_nanos(1), MissedRuns::Burst));
        *own.lock() = Some(task.clone());
        let other = Arc::clone(&task);
        let worker = thread::spawn(move || _ = run(other));
        let clock = Clock::from(ManualClock::new());
        let mut place = Place::default();
        wait::block_on(&clock, |waker| task.poll_left(&mut place, waker).then_some(()));
        drop(meeting.lock());
        assert_eq!(drops.get(), 1);
        worker.join().expect("no thread panics");
    });
}
