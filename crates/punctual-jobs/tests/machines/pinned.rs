//! Rows that have ended and that the server keeps, because a transaction has an old snapshot, are not walked over by each claim.

use std::time::Duration;

use punctual::ScheduledThreadPoolExecutor;

use crate::{
    machine::{drained, sender, start, start_that_polls},
    size,
    support::{block_on, server::Server},
};

/// Returns how many entries each scan of the indexes has read that claims look at, since the counts were reset.
fn entries_per_scan(server: &Server) -> f64 {
    let counts =
        "select (sum(idx_tup_read)::float8 / greatest(sum(idx_scan), 1))::text from pg_stat_user_indexes
        where indexrelname in ('job_waiting', 'job_limited', 'job_keyed', 'job_turns', 'job_of_worker')";
    server.value(counts).parse().unwrap()
}

/// What has ended was of this kind, and had one of so many limit keys. Such jobs were claimed and have run, so they are in each index.
fn claims_do_not_read_what_has_ended(kind: &str, keys: i32) {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    drop(sender(&executor, &server.url()));
    let (ended, jobs) = size((20_000, 1000), (200_000, 20_000));
    block_on(async {
        let pin = server.connect().await;
        let begin = "begin isolation level repeatable read; select count(*) from punctual.job";
        pin.batch_execute(begin).await.unwrap();
        let insert = |count: i32, moment: &str| {
            server_sql(
                &server,
                format!(
                    "insert into punctual.job (name, payload, run_at, limit_key, due)
                       select '{kind}', '{{\"number\": 0, \"millis\": 0}}', {moment},
                           case when {keys} > 0 then 'key ' || n % {keys} else '' end, {keys} > 0
                         from generate_series(1, {count}) n"
                ),
            )
        };
        insert(ended, "now() - interval '1 hour'").await;
        let claimed = "update punctual.job set claim = id, limit_claim = id, attempts = 1";
        server_sql(&server, claimed.to_owned()).await;
        server_sql(&server, "delete from punctual.job".to_owned()).await;
        let drawn = format!("select setval('punctual.job_claim', {ended})");
        server_sql(&server, drawn).await;
        insert(jobs, "now()").await;
        // The server plans by what it counts now, and no more by what it assumes of a table that it has not counted.
        server_sql(&server, "analyze punctual.job".to_owned()).await;
        let (server, run) = (&server, move |server: &Server| {
            let machine = start(server, 0);
            drained(server);
            // Its counts are in the view once it has closed its connections.
            machine.end();
            entries_per_scan(server)
        });
        let read = std::thread::scope(|scope| scope.spawn(|| run(server)).join().unwrap());
        println!("{kind}, beside {ended} rows that have ended: {read:.0} entries in each scan");
        // There are scans that find nothing. With claims from the beginning of an index it is a thirteenth of all, or more.
        assert!(read < f64::from(ended) / 40.0, "{read}");
        drop(pin);
    });
}

#[test]
fn a_pinned_snapshot_does_not_make_claims_read_what_has_ended() {
    claims_do_not_read_what_has_ended("work", 0);
}

#[test]
fn a_pinned_snapshot_does_not_make_claims_with_a_limit_read_what_has_ended() {
    claims_do_not_read_what_has_ended("rationed", 0);
}

#[test]
fn a_pinned_snapshot_does_not_make_claims_with_limit_keys_read_what_has_ended() {
    claims_do_not_read_what_has_ended("shared", 8);
}

async fn server_sql(server: &Server, text: String) {
    server.connect().await.batch_execute(&text).await.unwrap();
}

/// The claim begins behind the last job that it has claimed. One that is stored before it later is found by the look that follows, and
/// no poll is needed.
fn a_past_job_begins_without_a_poll(limit_key: &str) {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    drop(sender(&executor, &server.url()));
    let mut machine = start_that_polls(&server, 0, Duration::from_secs(3600));
    let store = |number: i64, moment: &str, count: i32| {
        server.sql(&format!(
            "insert into punctual.job (name, payload, limit_key, run_at)
               select 'work', '{{\"number\": {number}, \"millis\": 0}}', '{limit_key}', {moment} from generate_series(1, {count});
             notify punctual"
        ));
    };
    for number in 0..size(50, 500) {
        store(number, "now()", 1);
        while machine.wait_for("ran")[0] != number {}
        let past = number + 1_000_000;
        store(past, &format!("now() - interval '1 hour' * (1 + {number} % 3)"), 1);
        while machine.wait_for("ran")[0] != past {}
    }
    // As many of them as there are slots lie before the frontier, and more behind these.
    store(0, "now() - interval '2 days'", 100);
    drained(&server);
}

#[test]
fn a_job_that_is_stored_for_a_moment_that_has_passed_begins_without_a_poll() {
    a_past_job_begins_without_a_poll("");
}

#[test]
fn a_job_with_a_limit_key_that_is_stored_for_a_moment_that_has_passed_begins_without_a_poll() {
    a_past_job_begins_without_a_poll("key");
}
