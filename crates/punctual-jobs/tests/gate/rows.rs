//! The gate's changes to its rows: one test for each statement, and for what must not happen to it.
//!
//! The gates of these tests have a lease that outlasts the test, however long the machine stands still, or one so short that its
//! end is waited for.

use std::{
    sync::{
        Arc, Mutex,
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

use crate::support::{
    LONG, block_on, for_some, opened, receive,
    server::{Server, rows},
    wait_until,
};

fn gate(lease: Duration) -> Gate {
    gate_of(Server::shared(), lease)
}

fn gate_of(server: &Server, lease: Duration) -> Gate {
    opened(|| Gate::postgres(server.url()).lease(lease).request_timeout(lease).open())
}

/// Opens a gate that hands over its events.
fn telling(lease: Duration) -> (Gate, mpsc::Receiver<GateEvent>) {
    let (events, told) = mpsc::channel();
    let gate = opened(|| {
        let (gate, events) = (Gate::postgres(Server::shared().url()), events.clone());
        let gate = gate.lease(lease).request_timeout(lease);
        gate.on_event(move |event| drop(events.send(event.clone()))).open()
    });
    (gate, told)
}

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

/// A crash must take back no claim, renewal or end that was answered, whatever a role has set.
#[test]
fn the_settings_of_a_role_do_not_weaken_a_commit() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let lease = Duration::from_secs(3);
    gate_of(&server, lease);
    server.sql("create table public.seen (run text, commit text)");
    server.sql(
        "create function note() returns trigger language plpgsql as $$ begin \
         insert into public.seen values (new.done::text || tg_op, current_setting('synchronous_commit')); return new; end $$",
    );
    server.sql("create trigger note after insert or update on punctual.gate for each row execute function note()");
    for (asked, held) in [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")] {
        server.sql(&format!("alter role punctual set synchronous_commit = {asked}"));
        // A row that a clock has written which was set back since.
        server.sql(&format!(
            "insert into punctual.gate values ('{asked} ahead', clock_timestamp() + interval '1 day', true, \
             nextval('punctual.gate_fence'), 0, 'another', '1 s', clock_timestamp()); truncate public.seen"
        ));
        let gate = gate_of(&server, lease);
        let ahead = gate.for_name(format!("{asked} ahead")).unwrap();
        let (task, ran) = once(&executor, ahead, now(), fencing_token);
        receive(&ran, "it is set right");
        task.join().unwrap();
        assert_eq!(gate.statistics().set_back, 1);
        claim_and_cancel(&executor, gate.for_name(format!("{asked} back")).unwrap(), now());
        let given_back =
            "select count(*) from punctual.gate where done and lease_until = to_timestamp(0)";
        wait_until("it is given back", || server.value(given_back) != "0");
        server.sql("delete from punctual.gate");
        let seen =
            |what: &str| server.value(&format!("select count(*) from public.seen where {what}"));
        for _ in 0..2 {
            let named = gate.for_name(asked).unwrap();
            let (go_on, waits) = mpsc::channel::<()>();
            let waits = Mutex::new(waits);
            let (task, ran) = once(&executor, named, now(), move || {
                waits.lock().unwrap().recv_timeout(LONG).is_ok()
            });
            let before: u64 = seen("run = 'falseUPDATE'").parse().unwrap();
            wait_until("a renewal", || {
                seen("run = 'falseUPDATE'").parse::<u64>().unwrap() > before + 1
            });
            go_on.send(()).unwrap();
            assert_eq!(ran.recv(), Ok(true));
            task.join().unwrap();
            wait_until("its end", || {
                server.value("select bool_and(done) from punctual.gate") == "t"
            });
        }
        assert_eq!(seen("run = 'falseINSERT'"), "2");
        assert_eq!(seen(&format!("commit <> '{held}'")), "0", "with {asked}");
    }
}

#[test]
fn a_renewal_does_not_touch_the_row_of_another_fence() {
    for_some("the next renewal finds it out", &[6, 18, 54].map(Duration::from_secs), |lease| {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let (gate, lost) = telling(lease);
        let name = format!("usurped {lease:?}");
        let (sender, started) = mpsc::channel();
        let (_task, ran) = once(&executor, gate.for_name(&*name).unwrap(), now(), move || {
            sender.send(()).unwrap();
            let task = current_task().unwrap();
            let is_cancelled = task.token().sleep(LONG).is_err();
            (is_cancelled, task.is_lease_lost())
        });
        started.recv().unwrap();
        let begun = Instant::now();
        let token: u64 = server_value("fence", &name).parse().unwrap();
        // Another holder has it: a server whose clock was set would do that.
        Server::shared().sql(&format!(
            "update punctual.gate set fence = fence + 1, overtaken = fence, holder = 'another', \
             lease_until = '2100-01-01' where name = '{name}'"
        ));
        assert_eq!(ran.recv(), Ok((true, true)), "it is found out");
        // By a renewal, after a third of the lease, and not only when nine tenths have passed.
        let is_by_renewal = begun.elapsed() < lease * 8 / 10;
        let event = lost.recv().unwrap();
        assert!(matches!(event, GateEvent::Lost { fence, .. } if fence == token), "{event:?}");
        executor.close().unwrap();
        drop(gate);
        // Neither a renewal nor the end of the run has touched what is not theirs.
        let row =
            server_value("concat_ws(' ', fence, done, extract(year from lease_until))", &name);
        assert!(!is_by_renewal || row == format!("{} f 2100", token + 1), "{row}");
        assert!(lost.try_recv().is_err(), "it is told once");
        is_by_renewal
    });
}

#[test]
fn a_run_beyond_its_lease_keeps_it_by_renewals() {
    for_some("it is kept", &[600, 6000, 30_000].map(Duration::from_millis), |lease| {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let gate = gate(lease);
        let named = gate.for_name(format!("renewed {lease:?}")).unwrap();
        let (_task, ran) = once(&executor, named, now(), move || {
            let task = current_task().unwrap();
            task.token().sleep(lease * 10 / 3).is_ok() && !task.is_lease_lost()
        });
        let is_kept = ran.recv().unwrap();
        assert!(!is_kept || gate.statistics().renewed >= 3, "{:?}", gate.statistics());
        is_kept
    });
}

/// The time of the server is read when the row is there to be written, and not when the statement arrives.
#[test]
fn a_lease_is_counted_from_the_grant_and_not_from_the_question() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let gate = gate_of(&server, LONG);
    let (_first, ran) = once(&executor, gate.for_name("waited").unwrap(), now(), fencing_token);
    ran.recv().unwrap();
    wait_until("the end is told", || server.value("select done from punctual.gate") == "t");
    let (sender, started) = mpsc::channel();
    let released = block_on(async {
        let client = server.connect().await;
        // A reader goes on; a writer waits until this transaction is over.
        client.batch_execute("begin; lock table punctual.gate in exclusive mode").await.unwrap();
        let named = gate.for_name("waited").unwrap();
        let (_task, _ran) = once(&executor, named, now(), move || {
            sender.send(()).unwrap();
            current_task().unwrap().token().sleep(Duration::from_secs(1)).ok();
        });
        server.has_one_wait().await;
        let time = rows(&client, "select clock_timestamp()").await.unwrap();
        client.batch_execute("rollback").await.unwrap();
        time[0][0].clone()
    });
    started.recv().unwrap();
    // It is not renewed before a third of it has passed.
    let is_whole = format!(
        "select lease_until >= timestamptz '{released}' + interval '{} seconds' from punctual.gate where not done",
        LONG.as_secs()
    );
    assert_eq!(server.value(&is_whole), "t");
}

/// Returns how long after the question, and how long after a time before the answer, a holder that cannot renew its lease
/// has given it up.
fn given_up(lease: Duration) -> (Duration, Duration) {
    let mut server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let gate = gate_of(&server, lease);
    let (first, ran) = once(&executor, gate.for_name("asked").unwrap(), now(), fencing_token);
    ran.recv().unwrap();
    first.join().unwrap();
    wait_until("the end is told", || server.value("select done from punctual.gate") == "t");
    let (sender, started) = mpsc::channel();
    let asked = Instant::now();
    let ((_task, ended), released) = block_on(async {
        let client = server.connect().await;
        client.batch_execute("begin; lock table punctual.gate in exclusive mode").await.unwrap();
        let run = once(&executor, gate.for_name("asked").unwrap(), now(), move || {
            sender.send(()).unwrap();
            current_task().unwrap().token().sleep(LONG).ok();
            Instant::now()
        });
        tokio::time::sleep(Duration::from_millis(2000)).await;
        let released = Instant::now();
        client.batch_execute("rollback").await.unwrap();
        (run, released)
    });
    started.recv().unwrap();
    // Before the first renewal, a third of the lease after the question.
    server.stop();
    let ended = ended.recv().unwrap();
    (ended - asked, ended - released)
}

#[test]
fn a_holder_counts_its_lease_from_the_question_and_not_from_the_answer() {
    let (lease, trusted) = (Duration::from_secs(9), Duration::from_millis(8100));
    // In an attempt in which the machine stands still it is later, or was asked again or renewed.
    for_some("nine tenths of the lease from the question", &[1, 2, 3, 4], |_| {
        let (from_question, from_answer) = given_up(lease);
        assert!(from_question > trusted - Duration::from_millis(100), "{from_question:?}");
        from_answer < trusted
    });
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
        receive(&ran, "the other name runs");
        assert!(waits.1.try_recv().is_err(), "this one is asked about again");
        client.batch_execute("rollback").await.unwrap();
        waits
    });
    assert!(receive(&ran, "it is free") > before);
    assert_eq!(gate.statistics().unreachable, 0, "nothing waited for an answer");
}

/// Has a tick claimed for a task that is cancelled between the claim and the run.
fn claim_and_cancel(executor: &ScheduledThreadPoolExecutor, named: NamedGate, tick: SystemTime) {
    let cancels = punctual::gate::from_fn(move |tick| {
        let entry = punctual::gate::RunGate::enter(&named, tick);
        current_task().unwrap().token().cancel();
        entry
    });
    let task = executor.task().gate(cancels).repeat(at_once(tick), || {});
    assert!(task.unwrap().join().unwrap_err().is_cancelled());
}

#[test]
fn a_tick_whose_task_was_cancelled_meanwhile_is_given_back() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let gate = gate(LONG);
    let tick = now();
    claim_and_cancel(&executor, gate.for_name("given back").unwrap(), tick);
    // Another replica has it, long before the lease would be over.
    let other = self::gate(LONG);
    let (_task, ran) = once(&executor, other.for_name("given back").unwrap(), tick, fencing_token);
    receive(&ran, "another replica has it");
}

#[test]
fn a_claim_whose_answer_was_lost_is_claimed_again_by_the_same_replica() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let gate = gate_of(&server, LONG);
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
    assert_eq!(receive(&ran, "it is claimed again"), 3, "with the fence after that");
}

#[test]
fn a_run_that_is_not_on_the_wall_clock_is_skipped_and_reported() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (gate, reported) = telling(LONG);
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
