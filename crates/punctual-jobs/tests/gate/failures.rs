//! Runs that fail: what their task tries again, and under which claim.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use punctual::{
    Backoff, FailurePolicy, ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor, Trigger,
    current_task,
    trigger::{Due, from_fn},
};
use punctual_jobs::gate::{Gate, GateEvent, NamedGate};

use crate::{
    rows::{at_once, fencing_token, once},
    support::{LONG, block_on, opened, server::Server, wait_until},
};

const SECOND: Duration = Duration::from_secs(1);

fn gate() -> Gate {
    opened(|| Gate::postgres(Server::shared().url()).lease(LONG).request_timeout(LONG).open())
}

/// The observations of a task's runs: their fencing token, and the tick in the row.
type Seen = Arc<Mutex<Vec<(u64, String)>>>;

/// A task whose first runs fail.
fn failing(
    executor: &ScheduledThreadPoolExecutor,
    named: NamedGate,
    trigger: impl Trigger,
    failures: usize,
) -> (ScheduledFuture<()>, Seen) {
    let seen = Seen::default();
    let runs = Arc::clone(&seen);
    let tick = format!("select tick from punctual.gate where name = '{}'", named.name());
    let policy = FailurePolicy::resume().back_off(SECOND / 2..=SECOND / 2);
    let task = executor.task().gate(named).on_failure(policy).repeat(trigger, move || {
        let mut runs = runs.lock();
        runs.push((fencing_token(), Server::shared().value(&tick)));
        if runs.len() > failures { Ok(()) } else { Err("it fails") }
    });
    (task.unwrap(), seen)
}

fn each_ran_under_one_tick(gate: &Gate, seen: &Seen, runs: usize) {
    let seen = seen.lock();
    assert_eq!(seen.len(), runs, "{seen:?}");
    for pair in seen.windows(2) {
        assert!(pair[1].0 > pair[0].0, "with a larger token: {seen:?}");
        assert_eq!(pair[1].1, pair[0].1, "under the same tick: {seen:?}");
    }
    let counts = gate.statistics();
    assert_eq!((counts.granted, counts.skipped), (runs as u64, 0), "{counts}");
}

/// By the default policy a task ends with its first failed run, on each replica after one of its own.
#[test]
fn a_task_that_ends_with_a_failed_run_is_told() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (sender, events) = mpsc::channel();
    let gate = opened(|| {
        let (gate, sender) = (Gate::postgres(Server::shared().url()), sender.clone());
        let gate = gate.lease(LONG).request_timeout(LONG);
        gate.on_event(move |event| drop(sender.send(event.clone()))).open()
    });
    for policy in [FailurePolicy::stop(), FailurePolicy::resume()] {
        let name = format!("ends {policy:?}");
        let named = gate.for_name(&*name).unwrap();
        let now = SystemTime::now();
        let mut moments = [now, now + Duration::from_micros(1)].map(Due::Wall).into_iter();
        let mut is_first = true;
        let task = executor.task().gate(named).on_failure(policy);
        let task = task.repeat(from_fn(move |_| moments.next()), move || {
            if std::mem::take(&mut is_first) { Err("it fails") } else { Ok(()) }
        });
        let is_ended = task.unwrap().join().is_err();
        assert_eq!(is_ended, policy == FailurePolicy::stop());
        let told: Vec<_> = events.try_iter().collect();
        match &*told {
            [GateEvent::Ended { name: of, error, .. }] if is_ended => {
                assert!(**of == *name && error.contains("it fails"), "{told:?}");
            }
            told => assert!(told.is_empty() && !is_ended, "{told:?}"),
        }
    }
    assert_eq!(gate.statistics().ended, 1);
}

#[test]
fn a_run_that_is_retried_has_its_tick_again() {
    let (executor, gate) = (ScheduledThreadPoolExecutor::new(1), gate());
    let named = gate.for_name("retried").unwrap();
    let trigger = at_once(SystemTime::now()).retry(Backoff::constant(SECOND / 20));
    let (task, seen) = failing(&executor, named, trigger, 3);
    task.join().unwrap();
    each_ran_under_one_tick(&gate, &seen, 4);
}

#[test]
fn a_run_that_backs_off_has_the_tick_that_failed_again() {
    let (executor, gate) = (ScheduledThreadPoolExecutor::new(1), gate());
    let named = gate.for_name("backs off").unwrap();
    // The second has come when the first has failed, so it is put off, and is on the wall clock no more.
    let now = SystemTime::now();
    let mut moments = [now, now + Duration::from_micros(1), now].map(Due::Wall).into_iter().take(2);
    let (task, seen) = failing(&executor, named, from_fn(move |_| moments.next()), 1);
    task.join().unwrap();
    each_ran_under_one_tick(&gate, &seen, 2);
}

#[test]
fn a_retry_is_left_out_if_another_replica_has_made_up_for_it() {
    let clock = ManualClock::new();
    clock.set_wall_time(SystemTime::now());
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).clock(clock.clone());
    let (executor, gate) = (builder.build().unwrap(), gate());
    let named = gate.for_name("made up for").unwrap();
    let trigger = at_once(clock.wall_time()).retry(Backoff::constant(100 * SECOND));
    let (task, seen) = failing(&executor, named, trigger, 1);
    wait_until("it fails", || {
        clock.run_until_idle();
        task.last_failure().is_some()
    });
    let (other, others) = (self::gate(), ScheduledThreadPoolExecutor::new(1));
    let named = other.for_name("made up for").unwrap();
    let (_other, ran) = once(&others, named, SystemTime::now(), fencing_token);
    ran.recv().unwrap();
    wait_until("the retry is left out", || {
        clock.run_for(SECOND);
        task.is_done()
    });
    assert_eq!(seen.lock().len(), 1);
    let counts = gate.statistics();
    assert_eq!((counts.refused, counts.skipped), (1, 0), "{counts}");
}

#[test]
fn a_run_that_fails_after_it_has_finished_its_tick_is_not_tried_again() {
    let (executor, gate) = (ScheduledThreadPoolExecutor::new(1), gate());
    let named = gate.for_name("finished and failed").unwrap();
    let runs = Arc::new(AtomicU64::new(0));
    let (counted, inner) = (Arc::clone(&runs), gate.clone());
    let policy = FailurePolicy::resume();
    let trigger = at_once(SystemTime::now()).retry(Backoff::constant(SECOND / 20).max_attempts(3));
    let task = executor.task().gate(named).on_failure(policy).repeat(trigger, move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let token = current_task().unwrap().fencing_token().unwrap();
        block_on(async {
            let client = Server::shared().connect().await;
            client.batch_execute("begin").await.unwrap();
            inner.finish(&client, "finished and failed", token).await.unwrap();
            client.batch_execute("commit").await.unwrap();
        });
        Err::<(), _>("it fails")
    });
    task.unwrap().join().ok();
    assert_eq!(runs.load(Ordering::SeqCst), 1, "the effects are there once");
    assert_eq!(gate.statistics().skipped, 0);
}
