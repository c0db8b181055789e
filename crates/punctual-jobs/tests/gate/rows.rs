//! The gate's changes to its rows: one test for each statement, and for what must not happen to it.
//!
//! The gates of these tests have a lease that outlasts the test, or one so short that its end is waited for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use punctual::{
    ScheduledFuture, ScheduledThreadPoolExecutor, Trigger, current_task,
    trigger::{Due, from_fn},
};
use punctual_jobs::gate::{Gate, GateEvent, NamedGate};

use crate::support::{block_on, server::Server, wait_until};

fn gate(lease: Duration) -> Gate {
    Gate::postgres(Server::shared().url()).lease(lease).open().unwrap()
}

const LONG: Duration = Duration::from_secs(30);

fn server_value(what: &str, name: &str) -> String {
    Server::shared().value(&format!("select {what} from punctual.gate where name = '{name}'"))
}

/// Runs once, at a moment of the wall clock, behind the gate. Returns what the body is handed.
pub(crate) fn once<R: Send + 'static>(
    executor: &ScheduledThreadPoolExecutor,
    named: NamedGate,
    at: SystemTime,
    body: impl Fn() -> R + Send + Sync + 'static,
) -> (ScheduledFuture<()>, mpsc::Receiver<R>) {
    let (sender, receiver) = mpsc::channel();
    let body = move || drop(sender.send(body()));
    (executor.task().gate(named).repeat(at_once(at), body).unwrap(), receiver)
}

/// One moment of the wall clock, also if it has passed.
pub(crate) fn at_once(moment: SystemTime) -> impl Trigger {
    let mut moments = Some(Due::Wall(moment)).into_iter();
    from_fn(move |_| moments.next())
}

fn now() -> SystemTime {
    SystemTime::now()
}

pub(crate) fn fencing_token() -> u64 {
    current_task().unwrap().fencing_token().unwrap()
}

#[test]
fn a_run_that_has_ended_is_told_and_the_same_tick_does_not_run_again() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let gate = gate(LONG);
    let tick = now();
    let named = gate.for_name("told").unwrap();
    let (first, ran) = once(&executor, named.clone(), tick, fencing_token);
    ran.recv().unwrap();
    first.join().unwrap();
    wait_until("the end is told", || server_value("done", "told") == "t");
    let (again, ran) = once(&executor, named, tick, fencing_token);
    again.join().unwrap();
    assert!(ran.recv().is_err(), "the tick has passed");
    let counts = gate.statistics();
    assert_eq!((counts.asked, counts.granted, counts.refused, counts.held), (2, 1, 1, 0));
}

#[test]
fn a_renewal_does_not_touch_the_row_of_another_fence() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (events, lost) = mpsc::channel();
    let gate = Gate::postgres(Server::shared().url())
        .lease(Duration::from_secs(6))
        .on_event(move |event| drop(events.send(event.clone())))
        .open()
        .unwrap();
    let (sender, started) = mpsc::channel();
    let (_task, ran) = once(&executor, gate.for_name("usurped").unwrap(), now(), move || {
        sender.send(()).unwrap();
        let task = current_task().unwrap();
        let is_raised = task.token().sleep(Duration::from_secs(20)).is_err();
        (is_raised, task.is_lease_lost())
    });
    started.recv().unwrap();
    let token: u64 = server_value("fence", "usurped").parse().unwrap();
    // Another holder has it: a server whose clock was set would do that.
    let usurp = "update punctual.gate set fence = fence + 1, overtaken = fence, holder = 'another', \
                 lease_until = '2100-01-01' where name = 'usurped'";
    Server::shared().sql(usurp);
    let begun = Instant::now();
    assert_eq!(ran.recv(), Ok((true, true)), "the next renewal finds it out");
    assert!(begun.elapsed() < Duration::from_millis(5000), "and not only the end of the lease");
    let event = lost.recv().unwrap();
    assert!(matches!(event, GateEvent::Lost { fence, .. } if fence == token), "{event:?}");
    executor.close().unwrap();
    drop(gate);
    // Neither a renewal nor the end of the run has touched what is not theirs.
    let row =
        server_value("concat_ws(' ', fence, done, extract(year from lease_until))", "usurped");
    assert_eq!(row, format!("{} f 2100", token + 1));
    assert!(lost.try_recv().is_err(), "it is told once");
}

#[test]
fn a_run_beyond_its_lease_keeps_it_by_renewals() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let gate = gate(Duration::from_millis(600));
    let (_task, ran) = once(&executor, gate.for_name("renewed").unwrap(), now(), || {
        let task = current_task().unwrap();
        task.token().sleep(Duration::from_millis(2000)).is_ok() && !task.is_lease_lost()
    });
    assert_eq!(ran.recv(), Ok(true));
    assert!(gate.statistics().renewed >= 3, "{:?}", gate.statistics());
}

/// The time of the server is read when the row is there to be written, and not when the statement arrives.
#[test]
fn a_lease_is_counted_from_the_grant_and_not_from_the_question() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let lease = Duration::from_secs(12);
    let gate = Gate::postgres(server.url()).lease(lease).request_timeout(lease).open().unwrap();
    let (_first, ran) = once(&executor, gate.for_name("waited").unwrap(), now(), fencing_token);
    ran.recv().unwrap();
    wait_until("the end is told", || server.value("select done from punctual.gate") == "t");
    let (sender, started) = mpsc::channel();
    block_on(async {
        let client = server.connect().await;
        // A reader goes on; a writer waits until this transaction is over.
        client.batch_execute("begin; lock table punctual.gate in exclusive mode").await.unwrap();
        let named = gate.for_name("waited").unwrap();
        let (_task, _ran) = once(&executor, named, now(), move || {
            sender.send(()).unwrap();
            current_task().unwrap().token().sleep(Duration::from_secs(1)).ok();
        });
        tokio::time::sleep(Duration::from_millis(2500)).await;
        client.batch_execute("rollback").await.unwrap();
    });
    started.recv().unwrap();
    let left: f64 = server
        .value("select extract(epoch from lease_until - clock_timestamp()) from punctual.gate")
        .parse()
        .unwrap();
    assert!(left > 10.5, "{left} s are left of twelve");
}

#[test]
fn a_holder_counts_its_lease_from_the_question_and_not_from_the_answer() {
    let mut server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let lease = Duration::from_secs(9);
    let gate = Gate::postgres(server.url()).lease(lease).request_timeout(lease).open().unwrap();
    let (first, ran) = once(&executor, gate.for_name("asked").unwrap(), now(), fencing_token);
    ran.recv().unwrap();
    first.join().unwrap();
    wait_until("the end is told", || server.value("select done from punctual.gate") == "t");
    let (sender, started) = mpsc::channel();
    let asked = Instant::now();
    let (_task, ended) = block_on(async {
        let client = server.connect().await;
        client.batch_execute("begin; lock table punctual.gate in exclusive mode").await.unwrap();
        let run = once(&executor, gate.for_name("asked").unwrap(), now(), move || {
            sender.send(()).unwrap();
            current_task().unwrap().token().sleep(Duration::from_secs(30)).ok();
            Instant::now()
        });
        tokio::time::sleep(Duration::from_millis(2000)).await;
        client.batch_execute("rollback").await.unwrap();
        run
    });
    started.recv().unwrap();
    // Before the first renewal, a third of the lease after the question.
    server.stop();
    let lost = ended.recv().unwrap() - asked;
    assert!(lost > Duration::from_millis(8000), "nine tenths of the lease, and not {lost:?}");
    assert!(lost < Duration::from_millis(9500), "nine tenths of the lease, and not {lost:?}");
}

#[test]
fn of_many_replicas_that_race_for_a_tick_one_has_it() {
    let executor = ScheduledThreadPoolExecutor::new(8);
    let ticks = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let gates: Vec<_> = (0..8).map(|_| gate(LONG)).collect();
    let tasks: Vec<_> = gates
        .iter()
        .map(|gate| {
            let (named, ticks) = (gate.for_name("raced").unwrap(), Arc::clone(&ticks));
            let trigger = punctual_jobs::aligned(Duration::from_millis(50));
            let body = move || ticks.lock().push(current_task().unwrap().planned_wall());
            executor.task().gate(named).repeat(trigger, body).unwrap()
        })
        .collect();
    wait_until("many ticks have been claimed", || ticks.lock().len() >= 60);
    for task in tasks {
        task.cancel();
    }
    executor.close().unwrap();
    let mut ticks = std::mem::take(&mut *ticks.lock());
    let claims = ticks.len();
    ticks.sort();
    ticks.dedup();
    assert_eq!(ticks.len(), claims, "a tick was claimed twice");
}

#[test]
fn a_row_that_somebody_has_locked_holds_up_no_other_name() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let gate = gate(LONG);
    let (first, ran) = once(&executor, gate.for_name("locked").unwrap(), now(), fencing_token);
    let before = ran.recv().unwrap();
    first.join().unwrap();
    wait_until("the end is told", || server_value("done", "locked") == "t");
    let (_task, ran) = block_on(async {
        let client = Server::shared().connect().await;
        let lock = "begin; select from punctual.gate where name = 'locked' for update";
        client.batch_execute(lock).await.unwrap();
        let waits = once(&executor, gate.for_name("locked").unwrap(), now(), fencing_token);
        let (_other, ran) =
            once(&executor, gate.for_name("unlocked").unwrap(), now(), fencing_token);
        assert!(ran.recv_timeout(Duration::from_secs(5)).is_ok(), "the other name runs");
        assert!(waits.1.try_recv().is_err(), "this one is asked about again");
        client.batch_execute("rollback").await.unwrap();
        waits
    });
    assert!(ran.recv_timeout(Duration::from_secs(5)).unwrap() > before);
    assert_eq!(gate.statistics().unreachable, 0, "nothing waited for an answer");
}

#[test]
fn a_tick_whose_task_was_cancelled_meanwhile_is_given_back() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let gate = gate(LONG);
    let tick = now();
    let named = gate.for_name("given back").unwrap();
    let inner = named.clone();
    // Cancelled between the claim and the run.
    let cancels = punctual::gate::from_fn(move |tick| {
        let entry = punctual::gate::RunGate::enter(&inner, tick);
        current_task().unwrap().token().cancel();
        entry
    });
    let task = executor.task().gate(cancels).repeat(at_once(tick), || {});
    assert!(task.unwrap().join().unwrap_err().is_cancelled());
    // Another replica has it, at once, though the lease is half a minute.
    let other = self::gate(LONG);
    let (_task, ran) = once(&executor, other.for_name("given back").unwrap(), tick, fencing_token);
    assert!(ran.recv_timeout(Duration::from_secs(5)).is_ok());
}

#[test]
fn a_claim_whose_answer_was_lost_is_claimed_again_by_the_same_replica() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let gate = Gate::postgres(server.url()).lease(LONG).open().unwrap();
    let (first, ran) = once(&executor, gate.for_name("orphan").unwrap(), now(), fencing_token);
    ran.recv().unwrap();
    first.join().unwrap();
    wait_until("the end is told", || server.value("select done from punctual.gate") == "t");
    // The row as it is when a claim was carried out and its answer was lost.
    let tick = now();
    let micros = tick.duration_since(UNIX_EPOCH).unwrap().as_micros();
    server.sql(&format!(
        "update punctual.gate set done = false, fence = nextval('punctual.gate_fence'), tick = to_timestamp(0) + \
         interval '1 microsecond' * {micros}, lease_until = clock_timestamp() + interval '1 hour'"
    ));
    let (_task, ran) = once(&executor, gate.for_name("orphan").unwrap(), tick, fencing_token);
    assert_eq!(ran.recv_timeout(Duration::from_secs(5)), Ok(3), "with the fence after that");
}

#[test]
fn a_run_that_is_not_on_the_wall_clock_is_skipped_and_reported() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (events, reported) = mpsc::channel();
    let gate = Gate::postgres(Server::shared().url())
        .on_event(move |event| drop(events.send(event.clone())))
        .open()
        .unwrap();
    let named = gate.for_name("rate").unwrap();
    let second = Duration::from_secs(1);
    let task = executor.task().gate(named).schedule_at_fixed_rate(Duration::ZERO, second, || {
        panic!("it must not run");
    });
    let event = reported.recv().unwrap();
    assert!(
        matches!(
            event,
            GateEvent::Skipped { reason: punctual_jobs::gate::SkipReason::NotOnWallClock, .. }
        ),
        "{event:?}"
    );
    task.unwrap().cancel();
}

#[test]
fn two_tasks_of_one_program_with_one_name_do_not_run_at_once() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let gate = gate(LONG);
    let named = gate.for_name("twins").unwrap();
    let (running, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let ticks = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let tasks = [(); 2].map(|()| {
        let (running, most, ticks) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&ticks));
        let trigger = punctual_jobs::aligned(Duration::from_millis(50));
        let body = move || {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            ticks.lock().push(fencing_token());
            std::thread::sleep(Duration::from_millis(10));
            running.fetch_sub(1, Ordering::SeqCst);
        };
        executor.task().gate(named.clone()).repeat(trigger, body).unwrap()
    });
    wait_until("some have run", || ticks.lock().len() >= 20);
    for task in tasks {
        task.cancel();
    }
    executor.close().unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let ticks = ticks.lock();
    assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{ticks:?}");
}
