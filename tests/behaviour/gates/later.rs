//! An answer that comes later: the task waits for it in the queue, without a worker.

use std::{
    mem,
    sync::{Arc, Mutex, mpsc},
    time::Instant,
};

use punctual::{
    CancelReason, CancellationToken, Grace, Group, RunGate, ScheduledThreadPoolExecutor, TaskState,
    gate::{self, Entry, Lease, Reply, RunEnd, from_fn},
};

use super::support::{Leases, Seen};
use crate::support::{
    Counter, Drops, Log, assert_cancelled, eventually, manual, ms, occupy, receive,
};

/// The replies that a gate has kept, with the number of each question.
#[derive(Clone, Default)]
struct Replies(Arc<Mutex<Vec<(u32, Reply)>>>);

impl Replies {
    /// Returns a gate that answers each question later.
    fn gate(&self) -> impl RunGate + use<> {
        let replies = self.clone();
        from_fn(move |tick| {
            let (reply, entry) = gate::later();
            replies.0.lock().unwrap().push((tick.attempt(), reply));
            entry
        })
    }

    fn wait_for(&self, count: usize) {
        eventually("the gate is asked", || self.0.lock().unwrap().len() == count);
    }

    /// Waits for the only open question; returns its number and where its answer goes.
    fn next(&self) -> (u32, Reply) {
        self.wait_for(1);
        self.0.lock().unwrap().pop().unwrap()
    }

    fn answer(&self, entry: Entry) -> u32 {
        let (attempt, reply) = self.next();
        reply.send(entry);
        attempt
    }
}

/// Waits until a task waits for its answer.
fn is_asked(executor: &ScheduledThreadPoolExecutor, replies: &Replies) {
    replies.wait_for(1);
    eventually("no worker is occupied", || executor.statistics().active == 0);
}

/// G68, M214: eight questions are open, and the only worker is free.
#[test]
fn a_question_that_is_open_holds_no_worker() {
    let (_clock, executor) = manual(1);
    let replies = Replies::default();
    let submit = |number| executor.task().gate(replies.gate()).submit(move || number).unwrap();
    let tasks: Vec<_> = (0..8).map(submit).collect();
    replies.wait_for(8);
    assert_eq!(executor.submit(|| "beside").unwrap().join().unwrap(), "beside");
    assert!(tasks.iter().all(|task| task.state() == TaskState::Scheduled));
    assert_eq!(executor.pending_count(), 8);
    for (attempt, reply) in mem::take(&mut *replies.0.lock().unwrap()) {
        assert_eq!(attempt, 1);
        reply.send(Entry::Run);
    }
    assert_eq!(tasks.into_iter().map(|task| task.join().unwrap()).sum::<i32>(), 28);
}

/// A reply may be there before its entry is returned, and be another one that is still to come.
#[test]
fn a_reply_may_come_first_and_name_another() {
    let (_clock, executor) = manual(1);
    let at_once = from_fn(|_| {
        let (reply, entry) = gate::later();
        reply.send(Entry::Run);
        entry
    });
    assert_eq!(executor.task().gate(at_once).submit(|| 1).unwrap().join().unwrap(), 1);
    let replies = Replies::default();
    let task = executor.task().gate(replies.gate()).submit(|| 2).unwrap();
    let (another, entry) = gate::later();
    replies.answer(entry);
    assert_eq!(executor.submit(|| 3).unwrap().join().unwrap(), 3);
    another.send(Entry::Run);
    assert_eq!(task.join().unwrap(), 2);
}

/// G55: each answer does what it does when it is given at once: the next question has the next number.
#[test]
fn an_answer_that_comes_later_is_as_good() {
    let (clock, executor) = manual(1);
    let (replies, leases, runs) = (Replies::default(), Leases::new(&clock), Log::new());
    let (log, own) = (runs.clone(), clock.clone());
    let series = executor.task().gate(replies.gate());
    let body = move || log.push(own.elapsed());
    let series = series.schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
    clock.run_for(ms(10));
    assert_eq!(replies.answer(Entry::Again(ms(4))), 1);
    eventually("it is put off", || series.delay() == Some(ms(4)));
    clock.run_for(ms(4));
    assert_eq!(replies.answer(leases.give()), 2);
    eventually("it has run", || runs.entries() == [ms(14)]);
    eventually("it rests", || series.delay() == Some(ms(6)));
    clock.run_for(ms(6));
    assert_eq!(replies.answer(Entry::Skip), 1);
    eventually("it is skipped", || series.delay() == Some(ms(10)));
    clock.run_for(ms(10));
    drop(replies.next());
    eventually("it is skipped as well", || series.delay() == Some(ms(10)));
    assert_eq!((executor.statistics().runs, executor.statistics().gate_skips), (1, 2));
    assert_eq!(leases.seen(), [(1, Seen::Watched), (1, Seen::Completed(Some(20)))]);
}

/// G54: whatever ends the wait before the reply, nothing runs and the lease is left. Whether the answer comes before or
/// after that makes no difference.
#[test]
fn an_answer_for_a_task_that_waits_no_longer_leaves_its_lease() {
    type End = fn(&ScheduledThreadPoolExecutor, &punctual::ScheduledFuture<()>);
    let ends: [End; 3] = [
        |_, task| assert!(task.cancel()),
        |executor, _| drop(executor.shutdown_now()),
        |executor, _| executor.shutdown_now().for_each(drop),
    ];
    for (end, is_answered_first) in ends.into_iter().flat_map(|end| [(end, true), (end, false)]) {
        let (clock, executor) = manual(1);
        let (replies, leases, drops) = (Replies::default(), Leases::new(&clock), Drops::new());
        let capture = drops.token();
        let task = executor.task().gate(replies.gate());
        let task = task.submit(move || crate::support::hold(&capture)).unwrap();
        is_asked(&executor, &replies);
        // The worker is busy, so that the answer waits for it.
        let go_on = occupy(&executor);
        if is_answered_first {
            replies.answer(leases.give());
        }
        end(&executor, &task);
        if !is_answered_first {
            replies.answer(leases.give());
        }
        assert!(task.join().unwrap_err().is_cancelled());
        assert_eq!((leases.seen(), drops.count()), (vec![(1, Seen::NotRun(None))], 1));
        go_on.add();
    }
}

/// The same for a task that is run by hand, which asks no gate.
#[test]
fn an_answer_for_a_drained_task_leaves_its_lease() {
    let (clock, executor) = manual(1);
    let (replies, leases) = (Replies::default(), Leases::new(&clock));
    let task = executor.task().gate(replies.gate()).submit(|| 5).unwrap();
    is_asked(&executor, &replies);
    let go_on = occupy(&executor);
    replies.answer(leases.give());
    executor.shutdown_now().for_each(|drained| drained.run());
    assert_eq!((task.join().unwrap(), leases.seen()), (5, vec![(1, Seen::NotRun(None))]));
    go_on.add();
}

/// M215: a task that is paused, or moved, waits for no answer: the next tick has a question of its own.
#[test]
fn a_task_that_is_moved_asks_anew() {
    for is_answered_first in [true, false] {
        let (clock, executor) = manual(1);
        let (replies, leases, runs) = (Replies::default(), Leases::new(&clock), Counter::new());
        let counts = runs.clone();
        let series = executor.task().gate(replies.gate());
        let body = move || counts.add();
        let series = series.schedule_at_fixed_rate(ms(0), ms(10), body).unwrap();
        for step in 0..2 {
            is_asked(&executor, &replies);
            let go_on = occupy(&executor);
            let (attempt, reply) = replies.next();
            assert_eq!(attempt, step + 1, "it is still the same tick after a pause");
            let mut reply = Some(reply);
            if is_answered_first {
                reply.take().unwrap().send(leases.give());
            }
            match step {
                0 => assert!(series.pause()),
                _ => assert!(series.reschedule(ms(5))),
            }
            if let Some(reply) = reply {
                reply.send(leases.give());
            }
            assert_eq!(
                leases.seen().len(),
                step as usize + 1,
                "it is left at once: {:?}",
                leases.seen()
            );
            go_on.add();
            match step {
                0 => assert!(series.resume()),
                _ => clock.run_for(ms(5)),
            }
        }
        assert_eq!(replies.answer(leases.give()), 1);
        runs.wait_for(1);
        assert!(series.cancel());
        eventually("it is left", || leases.seen().len() == 4);
        leases.assert_left_once();
    }
}

/// A verb that does not give the task another moment leaves the question open.
#[test]
fn a_run_that_is_asked_for_is_the_one_that_waits() {
    let (clock, executor) = manual(1);
    let replies = Replies::default();
    let series = executor.task().gate(replies.gate());
    let series = series.schedule_at_fixed_rate(ms(0), ms(10), || ()).unwrap();
    is_asked(&executor, &replies);
    assert!(series.run_now());
    assert_eq!(replies.answer(Entry::Run), 1);
    eventually("it runs", || executor.statistics().runs == 1);
    eventually("it rests", || series.delay() == Some(ms(10)));
    // A run beside the schedule.
    assert!(series.run_now());
    is_asked(&executor, &replies);
    clock.run_for(ms(10));
    assert_eq!(replies.answer(Entry::Run), 1);
    assert_eq!(replies.answer(Entry::Run), 1);
    eventually("both run", || executor.statistics().runs == 3);
}

/// A shutdown waits for a one-shot task whose gate has not answered, and ends a series that it does not keep.
#[test]
fn a_shutdown_waits_for_the_answer() {
    let (clock, executor) = manual(1);
    let (replies, of_series, leases) =
        (Replies::default(), Replies::default(), Leases::new(&clock));
    let task = executor.task().gate(replies.gate()).submit(|| 3).unwrap();
    let series = executor.task().gate(of_series.gate());
    let series = series.schedule_at_fixed_rate(ms(0), ms(10), || ()).unwrap();
    is_asked(&executor, &replies);
    is_asked(&executor, &of_series);
    executor.shutdown();
    assert_cancelled(&series, CancelReason::Shutdown);
    of_series.answer(leases.give());
    assert_eq!(leases.seen(), [(1, Seen::NotRun(None))]);
    assert!(!executor.is_terminated());
    replies.answer(Entry::Run);
    assert_eq!(task.join().unwrap(), 3);
    assert_eq!(executor.await_termination(crate::support::LONG), Ok(true));
}

/// The owner's drop waits for what is due, and so for the answer.
#[test]
fn a_drop_waits_for_the_answer_and_a_reply_may_outlive_the_executor() {
    let (clock, executor) = manual(1);
    let (replies, leases) = (Replies::default(), Leases::new(&clock));
    let task = executor.task().gate(replies.gate()).submit(|| 3).unwrap();
    is_asked(&executor, &replies);
    let answering = replies.clone();
    let answers = std::thread::spawn(move || answering.answer(Entry::Run));
    drop(executor);
    assert_eq!((task.join().unwrap(), answers.join().unwrap()), (3, 1));

    let (_, executor) = manual(1);
    let task = executor.task().gate(replies.gate()).submit(|| 3).unwrap();
    is_asked(&executor, &replies);
    drop(executor.shutdown_now());
    drop((executor, task));
    replies.answer(leases.give());
    assert_eq!(leases.seen(), [(1, Seen::NotRun(None))]);
}

/// M216: a member keeps its permit while its question is open, and gives it back when it is paused.
#[test]
fn a_member_keeps_its_permit_while_it_is_asked() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let (replies, leases, order) = (Replies::default(), Leases::new(&clock), Log::new());
    let log = order.clone();
    let first = group.task().gate(replies.gate()).submit(move || log.push(1)).unwrap();
    is_asked(&executor, &replies);
    let log = order.clone();
    let second = group.task().submit(move || log.push(2)).unwrap();
    eventually("it waits", || group.statistics().waiting == 1);
    assert_eq!((group.statistics().active, group.statistics().pending), (0, 2));
    replies.answer(leases.give());
    first.join().unwrap();
    second.join().unwrap();
    assert_eq!(order.entries(), [1, 2]);

    let paused = group.task().gate(replies.gate()).submit(|| ()).unwrap();
    is_asked(&executor, &replies);
    let third = group.task().submit(|| 3).unwrap();
    eventually("it waits", || group.statistics().waiting == 1);
    assert!(paused.pause());
    assert_eq!(third.join().unwrap(), 3);
    replies.answer(leases.give());
    assert!(paused.resume());
    replies.answer(leases.give());
    paused.join().unwrap();
    let now = group.statistics();
    assert_eq!((now.active, now.waiting, now.completed), (0, 0, 4));
    leases.assert_left_once();
}

/// A member that is moved gives its permit to the next member first, and leaves its lease then: `leave` may take long.
#[test]
fn a_lease_that_is_left_delays_no_other_member() {
    struct Slow(Counter, Mutex<mpsc::Receiver<()>>);
    impl Lease for Slow {
        fn watch(&self, _: CancellationToken) {}

        fn leave(&self, _: RunEnd<'_>, _: Option<Instant>) {
            self.0.add();
            receive(&self.1.lock().unwrap(), "the other member runs");
        }
    }
    let (_, executor) = manual(1);
    let group = executor.group("g").limit(1).build().unwrap();
    let replies = Replies::default();
    let first = group.task().gate(replies.gate()).submit(|| ()).unwrap();
    is_asked(&executor, &replies);
    let (ran, runs) = mpsc::channel();
    let second = group.task().submit(move || ran.send(()).unwrap()).unwrap();
    eventually("it waits", || group.statistics().waiting == 1);
    // The worker is busy, so that the answer waits for it.
    let go_on = occupy(&executor);
    replies.answer(Entry::Hold(Arc::new(Slow(go_on, Mutex::new(runs)))));
    assert!(first.pause());
    second.join().unwrap();
}

/// The member that is stopped with its group while its question is open releases the permit.
#[test]
fn a_member_is_stopped_while_it_is_asked() {
    let (_clock, executor) = manual(1);
    let group = executor.group("g").limit(1).build().unwrap();
    let replies = Replies::default();
    let task = group.task().gate(replies.gate()).submit(|| ()).unwrap();
    is_asked(&executor, &replies);
    assert!(task.cancel());
    assert_eq!(group.task().submit(|| 2).unwrap().join().unwrap(), 2);
    drop(replies.next());
    let task = group.task().gate(replies.gate()).submit(|| ()).unwrap();
    is_asked(&executor, &replies);
    drop(group.shutdown_now());
    replies.answer(Entry::Run);
    assert!(task.join().unwrap_err().is_cancelled());
    eventually("the group has ended", || group.is_terminated());
}

/// A member whose question is open is pending for its group as it is for the executor: a stop returns it, a shutdown with
/// a deadline cancels it, and the group ends without the reply.
#[test]
fn a_member_is_pending_while_it_is_asked() {
    let (_clock, executor) = manual(1);
    let asked = |group: &Group| {
        let replies = Replies::default();
        let task = group.task().gate(replies.gate()).submit(|| ()).unwrap();
        is_asked(&executor, &replies);
        (task, replies)
    };

    let group = executor.group("stopped").limit(1).build().unwrap();
    let (task, replies) = asked(&group);
    let stopped = group.shutdown_now();
    assert_eq!(stopped.len(), 1);
    assert!(group.is_terminated());
    drop(stopped);
    assert_cancelled(&task, CancelReason::GroupShutdown);
    replies.answer(Entry::Run);

    let group = executor.group("within").build().unwrap();
    let (task, _replies) = asked(&group);
    let report = group.shutdown_within(Grace::patience(ms(0))).unwrap();
    assert!(report.is_terminated && report.still_running.is_empty(), "{report}");
    assert_eq!(report.cancelled.len(), 1);
    assert_cancelled(&task, CancelReason::GroupShutdown);

    let group = executor.group("of a stopped executor").build().unwrap();
    let (_task, _replies) = asked(&group);
    let returned = executor.shutdown_now();
    assert_eq!(returned.len(), 1);
    assert_eq!((group.statistics().active, group.statistics().pending), (0, 0));
    assert!(group.is_terminated());
}

/// A pause of the group holds a member whose reply arrives meanwhile, and gives its permit to nobody; after the pause the
/// member runs with the answer that it has.
#[test]
fn a_pause_of_the_group_holds_what_was_answered() {
    let (_clock, executor) = manual(1);
    let group = executor.group("g").limit(1).build().unwrap();
    let replies = Replies::default();
    let task = group.task().gate(replies.gate()).submit(|| 1).unwrap();
    is_asked(&executor, &replies);
    assert!(group.pause());
    assert_eq!(replies.answer(Entry::Run), 1);
    eventually("it waits", || group.statistics().waiting == 1);
    assert!(!task.is_done());
    assert!(group.resume());
    assert_eq!(task.join().unwrap(), 1);
    assert!(replies.0.lock().unwrap().is_empty(), "it is not asked again");

    let task = group.task().gate(replies.gate()).submit(|| 2).unwrap();
    is_asked(&executor, &replies);
    assert!(group.pause());
    replies.answer(Entry::Run);
    eventually("it waits", || group.statistics().waiting == 1);
    assert_eq!(group.shutdown_now().len(), 1);
    assert_cancelled(&task, CancelReason::GroupShutdown);
}

/// G53, M217: a lease that is lost before the body, whether the worker is late or the process was stopped: the body does not
/// run under it, and the gate is asked about the tick once more.
#[test]
fn a_body_does_not_begin_under_a_lost_lease() {
    struct Lost(Counter);
    impl gate::Lease for Lost {
        fn is_lost(&self) -> bool {
            true
        }
        fn watch(&self, lost: punctual::CancellationToken) {
            lost.cancel();
        }
        fn leave(&self, end: gate::RunEnd<'_>, _: Option<std::time::Instant>) {
            assert!(matches!(end, gate::RunEnd::NotRun), "{end:?}");
            self.0.add();
        }
    }
    let (clock, executor) = manual(1);
    let (left, asked, leases) = (Counter::new(), Log::new(), Leases::new(&clock));
    let (counts, log, good) = (left.clone(), asked.clone(), leases.clone());
    let gate = from_fn(move |tick| {
        log.push((tick.run_number(), tick.attempt()));
        if tick.attempt() < 3 { Entry::Hold(Arc::new(Lost(counts.clone()))) } else { good.give() }
    });
    let body = || punctual::current_task().unwrap().fencing_token();
    let task = executor.task().gate(gate).submit(body).unwrap();
    assert_eq!(task.join().unwrap(), Some(1));
    assert_eq!((left.get(), asked.entries()), (2, vec![(1, 1), (1, 2), (1, 3)]));
    leases.assert_left_once();
}
