//! A job that waits and cannot run, and an idle queue, cost nothing.

use std::time::{Duration, Instant};

use punctual::ScheduledThreadPoolExecutor;

use crate::{
    kinds::{RATIONED_AT_ONCE, SHARED_AT_ONCE, Work},
    machine::{sender, start},
    size,
    support::server::Server,
};

/// Runs so many jobs one after another, and returns how long each took and how many bytes of the log.
fn one_after_another(server: &Server, key: Option<&str>, jobs: i64) -> (Duration, i64) {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut machine = start(server, 0);
    let log = "select (pg_current_wal_insert_lsn() - '0/0')::bigint";
    let written = || server.value(log).parse::<i64>().unwrap();
    let mut run = |number| {
        let sending = queue.now(Work { number, millis: 0 });
        match key {
            Some(key) => sending.ordering_key(key).enqueue().unwrap(),
            None => sending.enqueue().unwrap(),
        };
        while machine.wait_for("ran")[0] != number {}
    };
    run(-1);
    let (begun, before) = (Instant::now(), written());
    (0..jobs).for_each(&mut run);
    let measured = (begun.elapsed() / u32::try_from(jobs).unwrap(), (written() - before) / jobs);
    // Not killed: the last job would be its own for a whole lease.
    machine.end();
    measured
}

/// Runs jobs one after another beside the backlog, and says whether each takes about as long as it did without. Another
/// process may have had the processor meanwhile, so it is tried a few times; a statement that reads the backlog is
/// slower each time. The same holds for the log, into which others write meanwhile.
fn is_as_fast(server: &Server, key: Option<&str>, fresh: (Duration, i64), what: &str) -> bool {
    let more = Duration::from_millis(10);
    takes_no_more_than(server, key, (3 * fresh.0 + more, 3 * fresh.1 + 10_000), what)
}

fn takes_no_more_than(
    server: &Server,
    key: Option<&str>,
    most: (Duration, i64),
    what: &str,
) -> bool {
    (0..4).any(|_| {
        let (took, written) = one_after_another(server, key, 50);
        println!("{what}: {took:?} and {written} bytes for each job, and at most {most:?}");
        took < most.0 && written < most.1
    })
}

#[test]
fn ordering_keys_that_are_idle_cost_nothing() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    drop(sender(&executor, &server.url()));
    let fresh = one_after_another(&server, Some("user/42"), 50);
    let keys = size(20_000, 100_000);
    // As many keys have been used, and as many have a job that is not due.
    server.sql(&format!(
        "insert into punctual.job (name, payload, ordering_key) select 'work', '{{}}', 'used ' || n from generate_series(1, {keys}) n;
         delete from punctual.job;
         insert into punctual.job (name, payload, ordering_key, run_at)
           select 'work', '{{}}', 'later ' || n, now() + interval '1 day' from generate_series(1, {keys}) n"
    ));
    server.sql("vacuum analyze punctual.job");
    assert!(is_as_fast(&server, Some("user/42"), fresh, &format!("{keys} idle ordering keys")));
}

#[test]
fn a_backlog_that_cannot_run_costs_nothing() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    drop(sender(&executor, &server.url()));
    let fresh = one_after_another(&server, None, 50);
    let each = size(200, 2000);
    // Of a hundred ordering keys the first job runs elsewhere, and of a kind that nothing handles there are many.
    server.sql(&format!(
        "insert into punctual.job_worker values ('elsewhere', now() + interval '1 day', 86400000000, 4);
         insert into punctual.job (name, payload, ordering_key, due, claim, worker, claimed_at, attempts)
           select 'work', '{{}}', 'busy ' || n, true, n - 1000, 'elsewhere', now(), 1 from generate_series(1, 100) n;
         insert into punctual.job (name, payload, ordering_key, due)
           select 'work', '{{}}', 'busy ' || n % 100 + 1, true from generate_series(1, 100 * {each}) n;
         insert into punctual.job (name, payload) select 'unknown', '{{}}' from generate_series(1, 100 * {each}) n"
    ));
    server.sql("vacuum analyze punctual.job");
    for key in [None, Some("user/42")] {
        let what = format!("{} jobs that cannot run, with the key {key:?}", 200 * each);
        assert!(is_as_fast(&server, key, fresh, &what));
    }
}

#[test]
fn jobs_of_a_high_priority_that_are_not_due_cost_nothing() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    drop(sender(&executor, &server.url()));
    let fresh = one_after_another(&server, None, 50);
    let jobs = size(20_000, 100_000);
    server.sql(&format!(
        "insert into punctual.job (name, payload, priority, run_at)
           select 'work', '{{}}', -1, now() + interval '1 day' from generate_series(1, {jobs}) n"
    ));
    server.sql("vacuum analyze punctual.job");
    assert!(is_as_fast(&server, None, fresh, &format!("{jobs} urgent jobs of tomorrow")));
}

#[test]
fn a_backlog_behind_a_limit_costs_nothing() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    drop(sender(&executor, &server.url()));
    let fresh = one_after_another(&server, None, 50);
    let jobs = size(20_000, 100_000);
    // As many as may run do so elsewhere.
    server.sql(&format!(
        "insert into punctual.job_worker values ('elsewhere', now() + interval '1 day', 86400000000, 4);
         insert into punctual.job (name, payload, limit_claim, claim, worker, claimed_at, attempts)
           select 'rationed', '{{}}', n + 1000000, n + 1000000, 'elsewhere', now(), 1
             from generate_series(0, {RATIONED_AT_ONCE} - 1) n;
         insert into punctual.job (name, payload) select 'rationed', '{{}}' from generate_series(1, {jobs}) n"
    ));
    server.sql("vacuum analyze punctual.job");
    assert!(is_as_fast(&server, None, fresh, &format!("{jobs} jobs behind a limit")));
    let waiting = "select count(*) from punctual.job where name = 'rationed' and attempts = 0";
    assert_eq!(server.value(waiting), jobs.to_string());
}

/// A look asks about each limit key that has a job that is due, and about none of the jobs that wait behind it.
#[test]
fn a_backlog_behind_limit_keys_that_are_full_costs_a_look_at_each_key() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    drop(sender(&executor, &server.url()));
    let fresh = one_after_another(&server, None, 50);
    let jobs = size(20_000, 100_000);
    // Of each key as many as may run do so elsewhere.
    let fill = |from: i64, keys: i64| {
        let last = from + keys - 1;
        server.sql(&format!(
            "insert into punctual.job_worker values ('elsewhere', now() + interval '1 day', 86400000000, 4) on conflict do nothing;
             insert into punctual.job (name, payload, limit_key, limit_claim, claim, worker, claimed_at, attempts)
               select 'shared', '{{}}', 'key ' || key, 2000000 + 2 * key + nth, 2000000 + 2 * key + nth, 'elsewhere', now(), 1
                 from generate_series({from}, {last}) key, generate_series(0, {SHARED_AT_ONCE} - 1) nth;
             insert into punctual.job (name, payload, limit_key, due)
               select 'shared', '{{}}', 'key ' || {from} + n % {keys}, true from generate_series(1, {jobs}) n"
        ));
        server.sql("vacuum analyze punctual.job");
    };
    fill(1, 1);
    assert!(is_as_fast(&server, None, fresh, &format!("{jobs} jobs behind one full limit key")));
    fill(2, 1000);
    let most = (3 * fresh.0 + Duration::from_millis(300), i64::MAX);
    let what = format!("{jobs} jobs behind 1,000 full limit keys");
    assert!(takes_no_more_than(&server, None, most, &what));
    let waiting = "select count(*) from punctual.job where name = 'shared' and attempts = 0";
    assert_eq!(server.value(waiting), (2 * jobs).to_string());
}
