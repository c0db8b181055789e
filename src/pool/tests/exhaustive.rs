//! What of the pool is ordered by a word about memory, and not by a lock alone.

use std::time::Duration;

use super::*;
use crate::{
    ManualClock, TaskState,
    queue::Ticket,
    sync::{exhaustive::check, thread},
    task::{OneShot, Periodic, Task},
};

const STEP: Duration = Duration::from_nanos(10);

/// A pool on a clock that stands still, with a queue of two stripes and without a worker.
fn pool(core_timeout: bool) -> (ManualClock, Arc<Pool>) {
    let clock = ManualClock::from_zero();
    let (thread_factory, rejection) = Config::defaults();
    let pool = Pool::new(Config {
        core_pool_size: 1,
        keep_alive: STEP,
        core_timeout,
        max_pending: None,
        thread_name: String::new(),
        stack_size: None,
        timer_slack: Duration::ZERO,
        lead: Duration::ZERO,
        clock: clock.clone().into(),
        stripes: 2,
        keep_delayed: true,
        keep_periodic: true,
        thread_factory,
        rejection,
        callbacks: Callbacks::default(),
    });
    (clock, pool)
}

fn offer(pool: &Pool, stripe: usize, deadline: Deadline, task: Arc<dyn Runnable>) -> Ticket {
    pool.queue.offer(stripe, pool.clock().read(), deadline, task).ok().expect("it is open")
}

/// A policy is changed while the pool is shut down: one of the two sees the other.
#[test]
fn a_change_of_policy_is_not_missed() {
    check(|| {
        let (_, pool) = pool(false);
        let series = Arc::new(Task::new(Periodic::with_fixed_delay(|| (), STEP), None, None));
        offer(&pool, 0, Deadline::NEVER, series.clone());
        let other = Arc::clone(&pool);
        let setter = thread::spawn(move || other.set_keep_periodic(false));
        pool.shutdown();
        setter.join().expect("nobody panics");
        assert_eq!(series.state(), TaskState::Cancelled);
    });
}

/// A worker that can be relied on, as far as the pool knows.
fn settle(pool: &Pool) -> Arc<Desk> {
    let turn = pool.crew.turn(|_| true).expect("nobody else starts one");
    let (_, desk) = turn.hire();
    pool.crew.settle(&desk);
    desk
}

fn one_shot() -> Arc<dyn Runnable> {
    Arc::new(Task::new(OneShot(|| ()), None, None))
}

/// A task comes in while the last worker goes: the worker sees it and stays, or who brings it sees
/// that nobody is there.
#[test]
fn the_last_worker_leaves_no_task_behind() {
    check(|| {
        let (_, pool) = pool(true);
        let (desk, other) = (settle(&pool), Arc::clone(&pool));
        let worker = thread::spawn(move || {
            other.crew.retire(&desk, || other.joins.len(), || other.queue.len() > 0)
        });
        offer(&pool, 0, Deadline::NEVER, one_shot());
        let has_worker = pool.crew.settled() > 0;
        let is_gone = worker.join().expect("nobody panics");
        assert!(!(has_worker && is_gone), "it is left behind");
    });
}

/// One of two workers is about to wait for a task while the other, idle for long, is about to go:
/// the wait is refused, or the other stays.
#[test]
fn who_waits_for_a_task_is_not_left_alone() {
    check(|| {
        let (_, pool) = pool(true);
        let (_who_waits, idle) = (settle(&pool), settle(&pool));
        let other = Arc::clone(&pool);
        let worker =
            thread::spawn(move || other.crew.retire(&idle, || other.joins.len(), || false));
        let joining = pool.enter_joins(one_shot());
        let is_gone = worker.join().expect("nobody panics");
        assert!(joining.is_err() || !is_gone, "nobody is left to run it");
    });
}

/// The last worker has stayed for two tasks, which are taken out of two stripes at once: one of the
/// two who do that tells it that it may go.
#[test]
fn who_takes_out_the_last_tells_who_has_stayed() {
    check(|| {
        let (clock, pool) = pool(true);
        settle(&pool);
        clock.advance(STEP);
        let far = Deadline::from_nanos(1_000);
        let tickets = [0, 1].map(|stripe| offer(&pool, stripe, far, one_shot()));
        let (own, other) = (Arc::clone(&pool), Arc::clone(&pool));
        let worker = thread::spawn(move || {
            // It has been idle since the beginning.
            own.queue.take_until(|_| own.idle_limit(Deadline::PAST)).is_none()
        });
        let remover = thread::spawn(move || other.remove(tickets[1]));
        assert!(pool.remove(tickets[0]));
        assert!(remover.join().expect("nobody panics"));
        assert!(worker.join().expect("nobody panics"));
    });
}

/// A task comes when the last worker has gone, and a shutdown: it is refused, or it holds up the
/// end until there is a worker for it.
#[test]
fn a_task_without_a_worker_holds_up_the_end() {
    check(|| {
        let (_, pool) = pool(false);
        let task = Arc::new(Task::new(OneShot(|| ()), None, None));
        let (own, other) = (Arc::clone(&task), Arc::clone(&pool));
        let submitter = thread::spawn(move || {
            // It has seen a worker, a moment ago.
            other.submit(0, own, Deadline::PAST, Deadline::PAST).is_ok()
        });
        pool.shutdown();
        let is_let_in = submitter.join().expect("nobody panics");
        assert_eq!(pool.await_termination(Duration::MAX), Ok(true));
        assert_eq!(task.state() == TaskState::Completed, is_let_in);
    });
}
