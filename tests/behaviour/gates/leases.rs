//! The lease of a run: what the body has of it, what happens when it is lost, and when it is left.

use std::{
    ops::ControlFlow,
    sync::{Arc, OnceLock, mpsc},
    time::Duration,
};

use punctual::{
    CancelReason, CancellationToken, FailurePolicy, TaskContext, TaskHandle, current_task,
    gate::{Entry, Lease, RunEnd, from_fn},
    trigger::every,
};

use super::support::{Leases, Seen};
use crate::support::{
    Counter, Log, assert_cancelled, elsewhere, in_time, manual, manual_with, ms, receive,
};

/// G54: the order of everything around a body, and that no waiter sees the outcome before the lease has been left.
#[test]
fn a_lease_is_left_before_the_outcome_is_seen() {
    struct Noted(Log<&'static str>, mpsc::Sender<mpsc::Sender<()>>);
    impl Lease for Noted {
        fn watch(&self, _: CancellationToken) {
            self.0.push("watch");
        }

        fn leave(&self, _: RunEnd<'_>, _: Option<std::time::Instant>) {
            self.0.push("leave");
            let (go_on, gone_on) = mpsc::channel();
            self.1.send(go_on).unwrap();
            receive(&gone_on, "it is let go");
        }
    }
    let order = Log::new();
    let (before, after, around) = (order.clone(), order.clone(), order.clone());
    let (_, executor) = manual_with(|builder| {
        builder
            .before_execute(move |_| before.push("before"))
            .after_execute(move |_, _| after.push("after"))
            .decorate_task(move |_| {
                let around = around.clone();
                move |run: punctual::TaskRun<'_>| {
                    around.push("wrapper");
                    run.run()
                }
            })
    });
    let (leaving, leaves) = mpsc::channel();
    let log = order.clone();
    let gate = from_fn(move |_| {
        log.push("enter");
        Entry::Hold(Arc::new(Noted(log.clone(), leaving.clone())))
    });
    let log = order.clone();
    let task = executor.task().gate(gate).submit(move || log.push("body")).unwrap();
    let go_on = receive(&leaves, "it leaves");
    assert!(!task.is_done());
    assert_eq!(executor.statistics().active, 1);
    go_on.send(()).unwrap();
    task.join().unwrap();
    let expected = ["enter", "watch", "before", "wrapper", "body", "after", "leave"];
    assert_eq!(order.entries(), expected);
}

/// The body has the fence of its own run; so has a hook, and a context that outlives the run.
#[test]
fn a_run_has_its_own_fence() {
    let hooked = Log::new();
    let log = hooked.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.before_execute(move |task: &TaskContext| log.push(task.fencing_token()))
    });
    let (leases, contexts) = (Leases::new(&clock), Log::new());
    let log = contexts.clone();
    let body = move || log.push(current_task().unwrap());
    executor.task().gate(leases.gate()).schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
    clock.run_for(ms(20));
    let fences = contexts.entries().iter().map(TaskContext::fencing_token).collect::<Vec<_>>();
    assert_eq!((fences, hooked.entries()), (vec![Some(1), Some(2)], vec![Some(1), Some(2)]));
    assert!(!contexts.entries()[1].is_lease_lost());
    leases.lose();
    assert!(contexts.entries()[1].is_lease_lost());
    assert!(!contexts.entries()[0].is_lease_lost());
    let plain =
        executor.submit(|| current_task().map(|task| (task.fencing_token(), task.is_lease_lost())));
    assert_eq!(plain.unwrap().join().unwrap(), Some((None, false)));
    leases.assert_left_once();
}

/// M166: a lease that is lost raises the token of its run and of no other, with a lease or without, and does
/// not call the series off: also if each run has a time limit.
#[test]
fn a_lost_lease_raises_the_token_of_its_run() {
    for has_limit in [false, true] {
        let (clock, executor) = manual(1);
        let (leases, raised, begun) = (Leases::new(&clock), Log::new(), Counter::new());
        let (log, begins) = (raised.clone(), begun.clone());
        let body = move || {
            let task = current_task().unwrap();
            begins.add();
            if task.run_number() == 1 {
                task.token().wait();
            }
            log.push((task.run_number(), task.token().is_cancelled(), task.is_lease_lost()));
        };
        let given = leases.clone();
        let gate =
            from_fn(move |tick| if tick.run_number() == 2 { Entry::Run } else { given.give() });
        let task = executor.task().gate(gate).on_failure(FailurePolicy::resume());
        let task = if has_limit { task.timeout(ms(5000)) } else { task };
        let rate = task.schedule_at_fixed_rate(ms(0), ms(10), body).unwrap();
        begun.wait_for(1);
        leases.lose();
        clock.run_until_idle();
        assert_eq!(raised.entries(), [(1, true, true)]);
        clock.run_for(ms(20));
        assert_eq!(raised.entries()[1..], [(2, false, false), (3, false, false)]);
        assert!(!rate.is_done());
        leases.assert_left_once();
    }
}

/// M169: a gate that has asked for the token of its task does not keep the lease from raising that of the body.
#[test]
fn the_token_of_a_gate_is_not_that_of_the_body() {
    let (clock, executor) = manual(1);
    let (leases, begun) = (Leases::new(&clock), Counter::new());
    let (given, begins) = (leases.clone(), begun.clone());
    let gate = from_fn(move |_| {
        assert!(!current_task().unwrap().token().is_cancelled());
        given.give()
    });
    let task = executor.task().gate(gate).submit(move || {
        begins.add();
        current_task().unwrap().token().wait();
    });
    let task = task.unwrap();
    begun.wait_for(1);
    leases.lose();
    in_time("the body", move || task.join()).unwrap();
    leases.assert_left_once();
}

/// A series under leases can still call itself off by its token, and so can a holder of that token.
#[test]
fn a_body_calls_its_series_off() {
    for has_limit in [false, true] {
        let (clock, executor) = manual(1);
        let leases = Leases::new(&clock);
        let body = || {
            let task = current_task().unwrap();
            if task.run_number() == 2 {
                task.token().cancel();
            }
        };
        let task = executor.task().gate(leases.gate());
        let task = if has_limit { task.timeout(ms(5)) } else { task };
        let rate = task.schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
        clock.run_for(ms(50));
        assert_cancelled(&rate, CancelReason::Requested);
        assert_eq!(executor.statistics().runs, 2);
        leases.assert_left_once();
    }
}

/// The token of a leased run is also raised by everything that raises those of others.
#[test]
fn the_token_of_a_leased_run_is_raised_as_any() {
    for is_shutdown in [false, true] {
        let (clock, executor) = manual(1);
        let (leases, begun) = (Leases::new(&clock), Counter::new());
        let begins = begun.clone();
        let body = move || {
            let token = current_task().unwrap().token();
            begins.add();
            token.sleep(Duration::from_secs(60)).is_err()
        };
        let task = executor.task().gate(leases.gate()).submit(body).unwrap();
        begun.wait_for(1);
        if is_shutdown {
            drop(executor.shutdown_now());
            assert!(task.join().unwrap(), "it was asked to stop");
        } else {
            assert_eq!(task.cancel_and_wait(), Ok(true));
        }
        drop(executor);
        leases.assert_left_once();
    }
}

/// G54: a lease is told how its run has ended, and when the next is planned.
#[test]
fn a_lease_is_told_the_end() {
    let (clock, executor) = manual(1);
    let leases = Leases::new(&clock);
    let task = || executor.task().gate(leases.gate());
    task().submit(|| 7).unwrap().join().unwrap();
    task().submit(|| panic!("no")).unwrap().join().unwrap_err();
    let once = [Seen::Completed(None), Seen::Failed("no".to_owned(), None)];

    let mut runs = 0;
    let stubborn = FailurePolicy::resume().back_off(ms(25)..=ms(25));
    let rate = task().on_failure(stubborn).schedule_at_fixed_rate(ms(10), ms(10), move || {
        runs += 1;
        assert!(runs != 2, "the second");
    });
    let rate = rate.unwrap();
    clock.run_for(ms(45));
    assert!(rate.cancel());
    let again = [
        Seen::Completed(Some(20)),
        Seen::Failed("the second".to_owned(), Some(45)),
        Seen::Completed(Some(55)),
    ];

    let delay = task().schedule_with_fixed_delay(ms(10), ms(30), || ()).unwrap();
    clock.run_for(ms(10));
    assert!(delay.run_now());
    clock.run_until_idle();
    assert!(delay.cancel());
    // After a run beside the schedule the plan stands, and is not known.
    let beside = [Seen::Completed(Some(85)), Seen::Completed(None)];

    let search = task().repeat(every(ms(1)), || ControlFlow::<u32>::Break(7)).unwrap();
    assert_eq!(search.join().unwrap(), 7);
    let last = [Seen::Completed(None)];

    let seen: Vec<_> = leases.seen().into_iter().map(|(_, seen)| seen).collect();
    let left: Vec<_> = seen.into_iter().filter(|seen| *seen != Seen::Watched).collect();
    assert_eq!(left, [&once[..], &again, &beside, &last].concat());
    leases.assert_left_once();
}

/// It is told when the next run is planned by what was asked for during the run, and of none if the task is paused or
/// has ended.
#[test]
fn a_lease_is_told_what_was_asked_for_meanwhile() {
    type Request = fn(&TaskHandle) -> bool;
    let requests: [(Request, Option<u64>); 6] = [
        (|task| task.reschedule(ms(7)), Some(17)),
        (|task| task.run_within(ms(3)), Some(13)),
        (|task| task.set_trigger(every(ms(1)).first_in(ms(50))), Some(60)),
        (|task| task.run_now(), Some(10)),
        (TaskHandle::pause, None),
        (TaskHandle::cancel, None),
    ];
    for (request, next) in requests {
        let (clock, executor) = manual(1);
        let leases = Leases::new(&clock);
        let own: Arc<OnceLock<TaskHandle>> = Arc::default();
        let task = Arc::clone(&own);
        let mut runs = 0;
        let body = move || {
            runs += 1;
            assert!(runs > 1 || request(task.get().unwrap()));
        };
        let rate = executor.task().gate(leases.gate()).schedule_at_fixed_rate(ms(10), ms(10), body);
        own.set(rate.unwrap().task_handle()).unwrap();
        clock.run_for(ms(10));
        assert_eq!(leases.seen()[1], (1, Seen::Completed(next)));
    }
}

/// A run that was cancelled after it began leaves its lease when the body has returned, and the wait for it
/// lasts until then.
#[test]
fn a_cancelled_run_leaves_its_lease() {
    let (clock, executor) = manual(1);
    let (leases, begun, release) = (Leases::new(&clock), Counter::new(), Counter::new());
    for is_periodic in [false, true] {
        let (begins, wait) = (begun.clone(), release.clone());
        let body = move || {
            begins.add();
            wait.wait_for(begins.get());
        };
        let task = executor.task().gate(leases.gate());
        let handle = if is_periodic {
            task.schedule_at_fixed_rate(ms(0), ms(10), body).unwrap().task_handle()
        } else {
            task.submit(body).unwrap().task_handle()
        };
        begun.wait_for(1 + usize::from(is_periodic));
        let waits = handle.clone();
        let waiter = elsewhere(move || waits.cancel_and_wait());
        crate::support::eventually("it is cancelled", || handle.is_done());
        release.add();
        assert_eq!(waiter.get(), Ok(true));
    }
    leases.assert_left_once();
}
