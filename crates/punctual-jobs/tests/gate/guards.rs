//! Effects in the user's own transaction.

use std::{
    sync::mpsc,
    time::{Duration, Instant, SystemTime},
};

use punctual::{ScheduledThreadPoolExecutor, current_task};
use punctual_jobs::gate::{Gate, is_stale_fencing_token};
use tokio_postgres::Client;

use crate::{
    rows::{fencing_token, once},
    support::{LONG, block_on, both, in_time, opened, server::Server, server::rows, wait_until},
};

fn gate() -> Gate {
    opened(|| Gate::postgres(Server::shared().url()).lease(LONG).request_timeout(LONG).open())
}

/// Makes a row for a name, with fencing token 5, which a replica holds.
fn row(name: &str) -> Gate {
    let gate = gate();
    Server::shared().sql(&format!(
        "insert into punctual.gate values ('{name}', clock_timestamp(), false, 5, 4, 'me', '1 hour', \
         clock_timestamp() + interval '1 hour')"
    ));
    gate
}

async fn begin() -> Client {
    let client = Server::shared().connect().await;
    client.batch_execute("begin").await.unwrap();
    client
}

#[test]
fn a_stale_fence_does_not_pass_and_one_from_the_future_neither() {
    let gate = row("guarded");
    block_on(async {
        gate.guard(&begin().await, "guarded", 5).await.unwrap();
        for fence in [4, 6, 0, u64::MAX] {
            let error = gate.guard(&begin().await, "guarded", fence).await.unwrap_err();
            assert!(is_stale_fencing_token(&error), "{error:?}");
        }
        let error = gate.guard(&begin().await, "unknown", 5).await.unwrap_err();
        assert!(is_stale_fencing_token(&error), "{error:?}");
    });
}

#[test]
fn the_sql_says_what_happened_and_what_to_do() {
    let _gate = row("in words");
    block_on(async {
        let client = begin().await;
        let error = rows(&client, "select punctual.guard('in words', 4)").await.unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "PJ001");
        assert!(error.message().contains("fence 4 of 'in words' is stale"), "{error:?}");
        assert!(error.hint().unwrap().contains("Roll this transaction back"));
    });
}

#[test]
fn nobody_takes_over_while_a_guarded_transaction_is_open_and_the_lease_is_renewed() {
    let gate = row("open");
    block_on(async {
        let client = begin().await;
        gate.guard(&client, "open", 5).await.unwrap();
        let other = Server::shared().connect().await;
        let take =
            "with it as (select from punctual.gate where name = 'open' for update skip locked)
                    select count(*) from it";
        assert_eq!(rows(&other, take).await.unwrap(), [["0"]], "it cannot be taken");
        let renew = "update punctual.gate set lease_until = clock_timestamp() where name = 'open'";
        in_time("a renewal does not wait", other.batch_execute(renew)).await.unwrap();
        client.batch_execute("commit").await.unwrap();
        assert_eq!(rows(&other, take).await.unwrap(), [["1"]], "it can be taken");
    });
}

#[test]
fn a_guard_waits_for_a_takeover_that_has_begun_and_fails() {
    let gate = row("overtaken");
    block_on(async {
        let taker = begin().await;
        let take = "update punctual.gate set fence = fence + 1 where name in
                    (select name from punctual.gate where name = 'overtaken' for update)";
        taker.batch_execute(take).await.unwrap();
        let client = begin().await;
        let guard = gate.guard(&client, "overtaken", 5);
        let waits = async {
            Server::shared().has_one_wait().await;
            taker.batch_execute("commit").await.unwrap();
        };
        let guard = both(guard, waits).await;
        assert!(is_stale_fencing_token(&guard.unwrap_err()));
    });
}

#[test]
fn effects_and_the_end_of_the_tick_are_one() {
    let gate = row("finished");
    let done = "select done from punctual.gate where name = 'finished'";
    block_on(async {
        let client = begin().await;
        gate.finish(&client, "finished", 5).await.unwrap();
        client.batch_execute("rollback").await.unwrap();
        assert_eq!(Server::shared().connect().await.simple_query(done).await.unwrap().len(), 3);
        client.batch_execute("begin").await.unwrap();
        gate.finish(&client, "finished", 5).await.unwrap();
        client.batch_execute("commit; begin").await.unwrap();
        let error = gate.finish(&client, "finished", 5).await.unwrap_err();
        assert!(is_stale_fencing_token(&error), "it is finished once: {error:?}");
    });
    assert_eq!(Server::shared().value(done), "t");
}

/// Another replica may have the next tick when this one's effects are committed, long before its body returns.
#[test]
fn a_run_that_has_finished_its_tick_loses_nothing_when_another_replica_goes_on() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    for waits_for_renewal in [true, false] {
        let name = format!("finished early {waits_for_renewal}");
        let (events, told) = mpsc::channel();
        // The renewal is after a third. If the machine stands still before, the lease has to outlast that.
        let lease = if waits_for_renewal { LONG / 20 } else { LONG };
        let gate = opened(|| {
            let (gate, events) = (Gate::postgres(Server::shared().url()), events.clone());
            let gate = gate.lease(lease).request_timeout(lease);
            gate.on_event(move |event| drop(events.send(event.clone()))).open()
        });
        drop(events);
        let (sender, finished) = mpsc::channel();
        let (go, may_end) = mpsc::channel();
        let may_end = std::sync::Mutex::new(may_end);
        let (named, inner, of_name) = (gate.for_name(&*name).unwrap(), gate.clone(), name.clone());
        let (task, ran) = once(&executor, named, SystemTime::now(), move || {
            block_on(async {
                let client = begin().await;
                inner.finish(&client, &of_name, fencing_token()).await.unwrap();
                client.batch_execute("commit").await.unwrap();
            });
            sender.send(()).unwrap();
            may_end.lock().unwrap().recv().unwrap();
            let task = current_task().unwrap();
            (task.token().is_cancelled(), task.is_lease_lost())
        });
        finished.recv().unwrap();
        let other = self::gate();
        let named = other.for_name(name).unwrap();
        let (_task, next) = once(&executor, named, SystemTime::now(), fencing_token);
        next.recv().unwrap();
        if waits_for_renewal {
            wait_until("a renewal has found it out", || gate.statistics().held == 0);
        }
        go.send(()).unwrap();
        assert_eq!(ran.recv(), Ok((false, false)));
        task.join().unwrap();
        // The channel ends with the gate, which has told the database of the end of the run by then.
        drop((task, gate));
        assert_eq!(told.iter().collect::<Vec<_>>(), [], "nothing was lost");
    }
}

#[test]
fn a_row_that_was_deleted_gives_no_token_twice_and_an_old_one_does_not_pass() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let gate = gate();
    let mut last = 0;
    for _ in 0..3 {
        let named = gate.for_name("deleted").unwrap();
        let (task, ran) = once(&executor, named, SystemTime::now(), fencing_token);
        let token = ran.recv().unwrap();
        task.join().unwrap();
        assert!(token > last, "{token} after {last}");
        let done = "select done from punctual.gate where name = 'deleted'";
        wait_until("the end is told", || Server::shared().value(done) == "t");
        if last > 0 {
            let guard =
                block_on(async { gate.guard(&begin().await, "deleted", last).await.unwrap_err() });
            assert!(is_stale_fencing_token(&guard), "{guard:?}");
        }
        Server::shared().sql("delete from punctual.gate where name = 'deleted'");
        last = token;
    }
}

/// A guard in a transaction that sits idle keeps the next claim out, and is no reason to ask all the time.
#[test]
fn a_row_that_an_idle_guard_has_locked_is_asked_about_less_and_less_often() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let gate = gate();
    let named = gate.for_name("idle").unwrap();
    let (task, ran) = once(&executor, named.clone(), SystemTime::now(), fencing_token);
    let token = ran.recv().unwrap();
    task.join().unwrap();
    let done = "select done from punctual.gate where name = 'idle'";
    wait_until("the end is told", || Server::shared().value(done) == "t");
    block_on(async {
        let client = begin().await;
        gate.guard(&client, "idle", token).await.unwrap();
        let begun = Instant::now();
        let (_next, ran) = once(&executor, named, SystemTime::now(), fencing_token);
        wait_until("it was asked again and again", || gate.statistics().postponed >= 6);
        // 50, 100, 200, 400 and 800 ms.
        assert!(begun.elapsed() >= Duration::from_millis(1500), "{:?}", begun.elapsed());
        client.batch_execute("rollback").await.unwrap();
        assert!(ran.recv().unwrap() > token);
    });
}

/// The rights of a transaction of each isolation level when the lease has been renewed since its first statement.
#[test]
fn a_renewal_refuses_the_snapshot_of_a_stricter_transaction() {
    let renewed = |isolation: &'static str| {
        let name = format!("isolated {isolation}");
        let gate = row(&name);
        block_on(async {
            let (client, other) = (begin().await, Server::shared().connect().await);
            client
                .batch_execute(&format!("set transaction isolation level {isolation}"))
                .await
                .unwrap();
            rows(&client, "select count(*) from punctual.gate").await.unwrap();
            let renew = format!(
                "update punctual.gate set lease_until = clock_timestamp() where name = '{name}'"
            );
            other.batch_execute(&renew).await.unwrap();
            let finished = gate.finish(&client, &name, 5).await;
            finished.map_err(|error| {
                assert!(!is_stale_fencing_token(&error), "it has not lost its lease");
                error.code().unwrap().code().to_owned()
            })
        })
    };
    assert_eq!(renewed("read committed"), Ok(()));
    for isolation in ["repeatable read", "serializable"] {
        assert_eq!(renewed(isolation), Err("40001".to_owned()), "{isolation}");
    }
}
