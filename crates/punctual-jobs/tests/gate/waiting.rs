//! A question that waits for the server: it holds no worker, and what it is granted is kept or given back.

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use punctual::{ScheduledFuture, ScheduledThreadPoolExecutor, with_context};
use punctual_jobs::{
    aligned,
    gate::{Gate, GateBuilder, GateEvent},
};

use crate::support::{LONG, for_some, opened, receive, server::Server, wait_until};

/// A gate whose questions have longer than any of these tests should take.
fn gate(server: &Server) -> Gate {
    opened(|| Gate::postgres(server.url()).lease(LONG).request_timeout(LONG).open())
}

/// A gate of which is told.
fn telling(make: impl Fn() -> GateBuilder) -> (Gate, mpsc::Receiver<GateEvent>) {
    let (tell, told) = mpsc::channel();
    let gate = opened(|| {
        let tell = tell.clone();
        make().on_event(move |event| tell.send(event.clone()).unwrap_or(())).open()
    });
    (gate, told)
}

/// Submits a task behind the gate of this name. Each of its runs sends its fencing token, and ends when it is told to, or
/// can be no more.
fn task(
    executor: &ScheduledThreadPoolExecutor,
    gate: &Gate,
    name: &str,
) -> (ScheduledFuture<()>, mpsc::Receiver<u64>, mpsc::Sender<()>) {
    let (begins, begun) = mpsc::channel();
    let (end, ends) = mpsc::channel();
    let body = with_context(move |run: &punctual::TaskContext| {
        begins.send(run.fencing_token().unwrap()).unwrap_or(());
        ends.recv().unwrap_or(());
    });
    let named = gate.for_name(name).unwrap();
    let task = executor.task().gate(named).repeat(aligned(Duration::from_millis(200)), body);
    (task.unwrap(), begun, end)
}

/// Occupies a worker until the sender is dropped.
fn occupy(executor: &ScheduledThreadPoolExecutor) -> mpsc::Sender<()> {
    let (end, ends) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let busy = executor.submit(move || {
        begins.send(()).unwrap();
        ends.recv().unwrap_or(());
    });
    busy.unwrap();
    receive(&begun, "the worker is occupied");
    end
}

/// The server does not answer, and eight tasks ask: the only worker of the pool is free.
#[test]
fn a_question_without_an_answer_holds_no_worker() {
    let server = Server::start();
    let gate = gate(&server);
    server.freeze();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let submit = |number: i32| {
        let (task, begun, end) = task(&executor, &gate, &number.to_string());
        drop(end);
        (task, begun)
    };
    let tasks: Vec<_> = (0..8).map(submit).collect();
    wait_until("all are asked about", || gate.statistics().asked == 8);
    executor.submit(|| ()).unwrap().join().unwrap();
    assert_eq!(gate.statistics().unreachable, 0, "no question was answered before");
    server.thaw();
    for (task, begun) in tasks {
        receive(&begun, "it runs");
        task.cancel();
    }
}

/// Connections are refused: a question fails long before its time is up, and goes through when there is a connection again.
#[test]
fn a_question_fails_at_once_while_there_is_no_connection() {
    let mut server = Server::start();
    let url = server.url();
    let make = || Gate::postgres(&url).lease(LONG).request_timeout(LONG);
    let (gate, told) = telling(make);
    server.stop();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (task, begun, _end) = task(&executor, &gate, "refused");
    for _ in 0..3 {
        let why = receive(&told, "a question fails").to_string();
        assert!(why.contains("there is no connection"), "{why}");
    }
    server.again();
    receive(&begun, "it runs");
    task.cancel();
}

/// A connection that has fallen silent is none: only the first question waits for its whole time.
#[test]
fn a_question_fails_at_once_after_the_server_fell_silent() {
    let server = Server::start();
    let limit = Duration::from_secs(2);
    let (gate, told) = telling(|| Gate::postgres(server.url()).lease(LONG).request_timeout(limit));
    server.freeze();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (task, begun, _end) = task(&executor, &gate, "silent");
    let first = receive(&told, "the first question fails").to_string();
    assert!(first.contains("did not answer in time") && !first.contains("no connection"));
    // One that waits for its time takes that long each time, and one that fails at once does so unless the machine stands still.
    for_some("it fails at once", &[1, 2, 3, 4, 5, 6, 7, 8], |_| {
        let begin = Instant::now();
        let why = receive(&told, "another question fails").to_string();
        assert!(why.contains("there is no connection"), "{why}");
        begin.elapsed() < limit
    });
    server.thaw();
    receive(&begun, "it runs");
    task.cancel();
}

/// The task that is cancelled in its run was the last that had the gate: the lease is renewed until the run ends, and its end
/// is told by the worker that drops the gate with it.
#[test]
fn a_run_that_was_cancelled_keeps_its_lease() {
    let server = Server::shared();
    for_some("it is kept", &[900, 9000, 60_000].map(Duration::from_millis), |lease| {
        let (gate, told) = telling(|| Gate::postgres(server.url()).lease(lease));
        let executor = ScheduledThreadPoolExecutor::new(1);
        let name = format!("cancelled {lease:?}");
        let (task, begun, end) = task(&executor, &gate, &name);
        drop(gate);
        let fence = receive(&begun, "it runs");
        assert!(task.cancel());
        let row = |what: &str| {
            server.value(&format!("select {what} from punctual.gate where name = '{name}'"))
        };
        let until = row("lease_until");
        let is_lost = || told.try_iter().any(|event| matches!(event, GateEvent::Lost { .. }));
        let mut lost = false;
        wait_until("it is renewed", || {
            lost |= is_lost();
            lost || row("lease_until") > until
        });
        if lost {
            return false;
        }
        let is_kept = (row("done"), row("fence")) == ("f".to_owned(), fence.to_string());
        end.send(()).unwrap();
        wait_until("its end is told", || {
            lost |= is_lost();
            lost || row("done") == "t"
        });
        assert_eq!(row("fence"), fence.to_string());
        executor.close().unwrap();
        is_kept && !lost
    });
}

/// The answer comes when task and executor are gone: what it grants is given back by the gate's own thread, which was the
/// last that had the gate, and ends.
#[test]
fn a_claim_for_a_task_that_is_gone_is_given_back() {
    let server = Server::start();
    let gate = gate(&server);
    server.freeze();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (task, begun, _end) = task(&executor, &gate, "gone");
    wait_until("it is asked about", || gate.statistics().asked >= 1);
    drop(executor.shutdown_now());
    drop((executor, task, gate));
    server.thaw();
    let given_back = "select count(*) from punctual.gate where name = 'gone' and done";
    wait_until("it is given back", || server.value(given_back) == "1");
    let left = "select count(*) from pg_stat_activity where application_name = 'punctual gate'";
    wait_until("the gate has ended", || server.value(left) == "0");
    assert_eq!(begun.recv(), Err(mpsc::RecvError), "nothing has run");
}

/// A run that was claimed waits for a worker: after a third of the lease it is given back, and claimed anew when a worker
/// is free.
#[test]
fn a_claim_that_no_worker_begins_is_given_back() {
    let server = Server::start();
    let lease = Duration::from_secs(3);
    let gate = opened(|| Gate::postgres(server.url()).lease(lease).request_timeout(lease).open());
    let executor = ScheduledThreadPoolExecutor::new(1);
    let busy = claimed_while_busy(&server, &executor, &gate);
    let row = |what: &str| {
        server.value(&format!("select {what} from punctual.gate where name = 'unbegun'"))
    };
    wait_until("it is given back", || row("done") == "t");
    let first: u64 = row("fence").parse().unwrap();
    assert_eq!(busy.begun.try_recv(), Err(mpsc::TryRecvError::Empty));
    assert_eq!(gate.statistics().lost, 0, "a run that has not begun has lost nothing");
    drop(busy.end);
    assert!(receive(&busy.begun, "it runs") > first, "it is claimed anew");
    busy.task.cancel();
}

/// Another replica takes the row over before the body begins: the body does not run beside it.
#[test]
fn a_body_does_not_begin_when_its_lease_was_lost_before() {
    let server = Server::start();
    let (gate, told) = telling(|| Gate::postgres(server.url()).lease(Duration::from_secs(3)));
    let executor = ScheduledThreadPoolExecutor::new(1);
    let busy = claimed_while_busy(&server, &executor, &gate);
    server.sql(
        "update punctual.gate set done = false, holder = 'another', lease_until = clock_timestamp() + interval '1 hour',
           overtaken = fence, fence = nextval('punctual.gate_fence') where name = 'unbegun'",
    );
    let row = "select fence from punctual.gate where name = 'unbegun' and not done";
    let others: u64 = server.value(row).parse().unwrap();
    // The gate looks at it when a third of the lease has passed.
    wait_until("the lease has ended", || gate.statistics().held == 0);
    drop(busy.end);
    wait_until("it asks again", || gate.statistics().postponed > 0);
    assert_eq!(busy.begun.try_recv(), Err(mpsc::TryRecvError::Empty), "the other one runs");
    server.sql("update punctual.gate set done = true where name = 'unbegun'");
    assert!(receive(&busy.begun, "it runs") > others, "the next tick");
    assert!(told.try_iter().all(|event| !matches!(event, GateEvent::Skipped { .. })));
    busy.task.cancel();
}

struct Busy {
    task: ScheduledFuture<()>,
    begun: mpsc::Receiver<u64>,
    end: mpsc::Sender<()>,
    _ends: mpsc::Sender<()>,
}

/// Lets the gate grant a tick of a task while the only worker is occupied.
fn claimed_while_busy(
    server: &Server,
    executor: &ScheduledThreadPoolExecutor,
    gate: &Gate,
) -> Busy {
    server.freeze();
    let (task, begun, ends) = task(executor, gate, "unbegun");
    wait_until("it is asked about", || gate.statistics().asked >= 1);
    let end = occupy(executor);
    server.thaw();
    wait_until("it is granted", || gate.statistics().granted >= 1);
    Busy { task, begun, end, _ends: ends }
}
