//! The protocols of the pool that rely on the ordering of atomics, and not on locks alone.

use std::{task::Waker, time::Duration};

use super::{
    workers::{PoolView, Retirement},
    *,
};
use crate::{
    ManualClock, TaskState,
    entry::{Ticket, Timing},
    queue::Source,
    schedule::{MissedRuns, Schedule},
    sync::{Parker, exhaustive::check, thread},
    task::{Node, Task, series},
    time::Timestamp,
};

const STEP: Duration = Duration::from_nanos(10);

/// Makes a pool on a manual clock, with a queue of two stripes and without a worker.
fn pool(core_timeout: bool) -> (ManualClock, Arc<Pool>) {
    let (clock, refs) = pool_refs(core_timeout);
    (clock, Arc::clone(refs.pool()))
}

fn pool_refs(core_timeout: bool) -> (ManualClock, Arc<PoolRefs>) {
    let clock = ManualClock::from_zero();
    let (thread_factory, rejection) = Config::defaults();
    let refs = PoolRefs::to_new_pool(Config {
        core_pool_size: 1,
        keep_alive: STEP,
        core_timeout,
        max_pending: None,
        thread_name: String::new(),
        stack_size: None,
        timer_slack: Duration::ZERO,
        lead: Duration::ZERO,
        clock: Some(clock.clone().into()),
        is_driven: false,
        warn_after: None,
        submitter_span: false,
        stripes: 2,
        keep_delayed: true,
        keep_periodic: true,
        thread_factory,
        rejection,
        callbacks: Callbacks::default(),
    });
    (clock, refs)
}

fn offer(pool: &Pool, stripe: usize, deadline: Timestamp, task: Arc<Task>) -> Ticket {
    pool.queue
        .offer(stripe, pool.clock().read(), Timing::At(deadline), task)
        .ok()
        .expect("it is open")
}

/// M128: one thread changes a policy while another shuts the pool down: one of the two sees the other's step.
#[test]
fn a_change_of_policy_is_not_missed() {
    check(|| {
        let (_, pool) = pool(false);
        let periodic = series(|| (), Schedule::fixed_delay(STEP, MissedRuns::Burst));
        offer(&pool, 0, Timestamp::NEVER, periodic.clone());
        let other = Arc::clone(&pool);
        let setter = thread::spawn(move || {
            other.set_policy(|policies| &policies.keep_periodic, false);
        });
        pool.shutdown();
        setter.join().expect("nobody panics");
        assert_eq!(periodic.state(), TaskState::Cancelled);
    });
}

/// Adds a worker that the pool counts as started and that has finished its first search.
fn add_worker(pool: &Pool) -> usize {
    let permit = pool.workers.spawn_permit(&|_| true).expect("no other thread starts a worker");
    let (number, _) = permit.add_worker();
    pool.workers.mark_started(number);
    pool.workers.search_done(number);
    number
}

fn one_shot() -> Arc<Task> {
    Node::once(|| ())
}

/// Asserts that no waiter has to be woken: no thread sleeps in these models.
fn wakes(waker: Option<Waker>) {
    assert!(waker.is_none());
}

/// Lets an idle worker try to retire. Returns `true` if it has retired.
fn retire(pool: &Pool, number: usize) -> bool {
    pool.queue.begin_search();
    let answer = pool.workers.try_retire(
        number,
        true,
        || PoolView::under_workers_lock(&pool.workers.joins, &pool.queue),
        || wakes(pool.queue.end_search()),
    );
    answer == Retirement::Retired(())
}

/// M131: a thread submits a task while the last worker retires: the worker sees the task and stays, or the submitter
/// sees that there is no worker.
#[test]
fn the_last_worker_leaves_no_task_behind() {
    check(|| {
        let (_, pool) = pool(true);
        let (number, other) = (add_worker(&pool), Arc::clone(&pool));
        let worker = thread::spawn(move || retire(&other, number));
        offer(&pool, 0, Timestamp::NEVER, one_shot());
        let has_worker = pool.workers.started() > 0;
        let is_gone = worker.join().expect("nobody panics");
        assert!(!(has_worker && is_gone), "the task is left behind");
    });
}

/// M131: the same as in the test above, in a pool of two, beside a busy worker.
#[test]
fn a_retiring_worker_leaves_no_task_beside_a_busy_worker() {
    check(|| {
        let (_, pool) = pool(true);
        pool.workers.set_core_size(2);
        let (_busy, number, other) = (add_worker(&pool), add_worker(&pool), Arc::clone(&pool));
        let worker = thread::spawn(move || retire(&other, number));
        offer(&pool, 0, Timestamp::NEVER, one_shot());
        let is_full = pool.workers.started() >= pool.workers.wanted();
        let is_gone = worker.join().expect("nobody panics");
        assert!(!(is_full && is_gone), "the task is left behind");
    });
}

/// Returns `true` if the calling thread, which has just left the queue with an entry, has to start a worker.
fn compensates(pool: &Pool) -> bool {
    let is_left = || pool.queue.waiting() == 0 && !pool.queue.seems_empty();
    let may_start = pool.workers.started() < pool.workers.wanted() && !pool.queue.seems_empty();
    may_start && pool.workers.try_spawn_permit(is_left).map(std::mem::forget).is_some()
}

/// M131, M132: one of two idle workers takes a task and leaves a second task behind while the other retires: the
/// retiring worker sees the task and stays, or the taking worker sees it retire.
#[test]
fn a_taking_and_a_retiring_worker_leave_no_task_behind() {
    check(|| {
        let (_, pool) = pool(true);
        pool.workers.set_core_size(2);
        let (_takes, goes, other) = (add_worker(&pool), add_worker(&pool), Arc::clone(&pool));
        let now = pool.clock().read();
        offer(&pool, 0, Timestamp::from_nanos(1_000), one_shot());
        offer(&pool, 0, now, one_shot());
        pool.queue.begin_search();
        let worker = thread::spawn(move || retire(&other, goes));
        assert!(pool.queue.try_take().is_some());
        wakes(pool.queue.end_search());
        let is_compensated = compensates(&pool);
        let is_gone = worker.join().expect("nobody panics");
        assert!(is_compensated || !is_gone, "the task is left behind");
    });
}

/// Two idle workers take one task each and leave a third behind: exactly one of them starts a worker for it.
#[test]
fn one_of_two_taking_workers_starts_a_third() {
    check(|| {
        let (_, pool) = pool(true);
        pool.workers.set_core_size(3);
        for _ in 0..2 {
            add_worker(&pool);
            pool.queue.begin_search();
        }
        // The two tasks that they take have left the queue already.
        offer(&pool, 0, Timestamp::from_nanos(1_000), one_shot());
        let other = Arc::clone(&pool);
        let worker = thread::spawn(move || {
            wakes(other.queue.end_search());
            compensates(&other)
        });
        wakes(pool.queue.end_search());
        let own = compensates(&pool);
        assert!(own ^ worker.join().expect("nobody panics"));
    });
}

/// M73: one of two workers is about to join a task while the other, whose keep-alive has passed, is about to retire:
/// the join is refused, or the other worker stays.
#[test]
fn a_joining_worker_is_not_left_alone() {
    check(|| {
        let (_, pool) = pool(true);
        let (_joining, idle) = (add_worker(&pool), add_worker(&pool));
        let other = Arc::clone(&pool);
        let worker = thread::spawn(move || retire(&other, idle));
        let joining = pool.register_join(Arc::new(|_: bool| true));
        let is_gone = worker.join().expect("nobody panics");
        assert!(joining.is_err() || !is_gone, "no worker is left to run it");
    });
}

/// M130: the last worker stays for two tasks, which two threads remove from two stripes at once: one of these threads
/// tells the worker that it may retire.
#[test]
fn removing_the_last_task_releases_the_staying_worker() {
    check(|| {
        let (clock, pool) = pool(true);
        let number = add_worker(&pool);
        clock.advance(STEP);
        let far = Timestamp::from_nanos(1_000);
        let tickets = [0, 1].map(|stripe| offer(&pool, stripe, far, one_shot()));
        let (own, other) = (Arc::clone(&pool), Arc::clone(&pool));
        let worker = thread::spawn(move || {
            // This worker has been idle since the beginning.
            let limit =
                |_| own.workers.idle_limit(number, &own.queue, own.clock(), Timestamp::PAST);
            own.queue.take_until_by(Parker::current, limit).is_none()
        });
        let remover = thread::spawn(move || other.remove(tickets[1]));
        assert!(pool.remove(tickets[0]));
        assert!(remover.join().expect("nobody panics"));
        assert!(worker.join().expect("nobody panics"));
    });
}

/// M71: during a shutdown a thread submits a task after the last worker has retired: the task is refused, or
/// termination waits until a worker has run it.
#[test]
fn a_task_without_a_worker_delays_termination() {
    check(|| {
        let (_, refs) = pool_refs(false);
        let pool = Arc::clone(refs.pool());
        let task = one_shot();
        let own = Arc::clone(&task);
        let submitter = thread::spawn(move || {
            // The submitter saw a worker a moment ago.
            let (now, timing) = (Timestamp::PAST, Timing::At(Timestamp::PAST));
            refs.local().offer(own, now, timing, Staffing::Complete, false).is_ok()
        });
        pool.shutdown();
        let is_admitted = submitter.join().expect("nobody panics");
        assert_eq!(pool.await_termination(Duration::MAX, false), Ok(true));
        assert_eq!(task.state() == TaskState::Completed, is_admitted);
    });
}
