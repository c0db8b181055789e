//! The promises that hold whatever fails: late ends, lost answers, silent connections, transactions that hold a job.

use std::{
    collections::HashMap,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobState, Jobs, Postgres};
use rustix::process::Signal;

use crate::{
    kinds::{Stubborn, Work},
    machine::{drained, postgres, sender, start, start_at, start_with_lease},
    size,
    support::{proxy::Proxy, replica::Said, server::Server, wait_until},
};

fn begins(said: &[Said], word: &str) -> HashMap<i64, usize> {
    let mut runs = HashMap::new();
    for said in said.iter().filter(|said| said.word == word) {
        *runs.entry(said.numbers[0]).or_default() += 1;
    }
    runs
}

#[test]
fn a_late_end_leaves_a_replaced_job_alone() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut frozen = start(&server, 0);
    let job = Stubborn { number: 1, millis: 1000, fails: false };
    let first = queue.now(job).key("k").max_attempts(5).enqueue().unwrap();
    frozen.wait_for("stubborn");
    frozen.signal(Signal::STOP);
    let _other = start(&server, 1);
    let running = "select count(*) from punctual.job where claim is not null";
    wait_until("it is recovered", || server.value(running) == "0");
    let job = Stubborn { number: 2, millis: 0, fails: false };
    let second = queue.after(Duration::from_secs(600), job).key("k").enqueue().unwrap();
    assert_eq!(first.id(), second.id(), "it is replaced in place");
    frozen.signal(Signal::CONT);
    frozen.wait_for("stubborn_ends");
    std::thread::sleep(Duration::from_secs(2));
    let waiting = JobState::Waiting { attempts: 0, last_error: None };
    assert_eq!(queue.state(second.id()).unwrap(), waiting, "the payload that replaced it is there");
}

fn late(fails: bool) {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut frozen = start(&server, 0);
    let job = Stubborn { number: 1, millis: 4000, fails };
    queue.now(job).max_attempts(2).enqueue().unwrap();
    frozen.wait_for("stubborn");
    frozen.signal(Signal::STOP);
    let mut other = start(&server, 1);
    assert_eq!(other.wait_for("stubborn"), [1, 2]);
    frozen.signal(Signal::CONT);
    frozen.wait_for("stubborn_ends");
    std::thread::sleep(Duration::from_millis(700));
    let running = "select count(*) from punctual.job where claim is not null";
    assert_eq!(server.value(running), "1", "the claim of the second attempt stands");
    other.wait_for("stubborn_ends");
    drained(&server);
    let said: Vec<Said> = [frozen.end(), other.end()].concat();
    assert_eq!(begins(&said, "stubborn")[&1], 2, "no third attempt");
}

#[test]
fn a_late_success_leaves_the_next_attempt_alone() {
    late(false);
}

#[test]
fn a_late_failure_leaves_the_next_attempt_alone() {
    late(true);
}

#[test]
fn no_job_is_lost_when_answers_are() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let proxy = Proxy::start(&server);
    let machine = start_at(proxy.url(), 0);
    let end = Instant::now() + size(Duration::from_secs(6), Duration::from_secs(60));
    let (mut number, mut next_cut, mut cuts) = (0, Instant::now(), 0);
    while Instant::now() < end {
        if Instant::now() >= next_cut {
            next_cut += Duration::from_millis(150);
            proxy.cut();
            cuts += 1;
        }
        queue.now(Work { number, millis: 3 }).max_attempts(100).enqueue().unwrap();
        number += 1;
        std::thread::sleep(Duration::from_millis(3));
    }
    let begun = Instant::now();
    drained(&server);
    let runs = begins(&machine.end(), "ran");
    let more: usize = runs.values().map(|runs| runs - 1).sum();
    println!("{number} jobs, {cuts} cuts: {more} runs more, drained in {:?}", begun.elapsed());
    assert_eq!(runs.len() as i64, number, "none is lost");
}

#[test]
fn connections_that_fall_silent_are_replaced() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let direct = sender(&executor, &server.url());
    let proxy = Proxy::start(&server);
    let through = Jobs::new()
        .open(postgres(&executor, proxy.url()).request_timeout(Duration::from_secs(3)))
        .unwrap();
    let mut machine = start_at(proxy.url(), 0);
    direct.now(Work { number: -1, millis: 0 }).enqueue().unwrap();
    machine.wait_for("ran");
    through.now(Work { number: -2, millis: 0 }).enqueue().unwrap();
    machine.wait_for("ran");
    proxy.silence();
    let begun = Instant::now();
    direct.now(Work { number: 1, millis: 0 }).enqueue().unwrap();
    let ran = machine.wait_for_within("ran", Duration::from_secs(40));
    println!("a job ran after {:?}: {ran:?}", begun.elapsed());
    let begun = Instant::now();
    let mut failed = 0;
    while through.now(Work { number: 2, millis: 0 }).enqueue().is_err() && failed < 6 {
        failed += 1;
    }
    println!("the verbs: {failed} failed in {:?}", begun.elapsed());
    assert!(ran.is_some() && failed <= 2);
}

#[test]
fn a_database_of_serializable_transactions_works() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    server.sql("alter database postgres set default_transaction_isolation = 'serializable'");
    let url = server.url();
    let queues: Vec<_> = (0..4).map(|_| sender(&executor, &url)).collect();
    let machines: Vec<_> = (0..2).map(|number| start(&server, number)).collect();
    let begun = Instant::now();
    let failed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|at| {
                let queue = &queues[at as usize];
                scope.spawn(move || {
                    let sends = (0..150).map(|n| Work { number: at * 150 + n, millis: 0 });
                    sends.filter_map(|job| queue.now(job).enqueue().err()).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let sent = begun.elapsed();
    drained(&server);
    let said: Vec<Said> =
        machines.into_iter().flat_map(crate::support::replica::Replica::end).collect();
    println!(
        "{failed} of 600 sends failed in {sent:?}, {} ran in {:?}",
        begins(&said, "ran").len(),
        begun.elapsed()
    );
    assert_eq!(failed, 0);
}

/// A later job is late by at most a few polls although the machine that has run the longest is killed.
#[test]
fn later_jobs_are_not_late_after_a_kill() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let first = start(&server, 0);
    std::thread::sleep(Duration::from_secs(1));
    let second = start(&server, 1);
    let begun = SystemTime::now();
    let dues: Vec<_> = (0..150).map(|at| begun + Duration::from_millis(1500 + 100 * at)).collect();
    // On a busy machine a moment may have passed before its job was sent.
    let mut may_begin = Vec::new();
    for (number, due) in dues.iter().enumerate() {
        queue.at(*due, Work { number: number as i64, millis: 0 }).enqueue().unwrap();
        may_begin.push(SystemTime::now().max(*due));
    }
    std::thread::sleep(Duration::from_secs(3));
    let mut said = first.kill();
    drained(&server);
    said.extend(second.end());
    let late = said.iter().filter(|said| said.word == "begins").map(|said| {
        let due =
            may_begin[said.numbers[0] as usize].duration_since(UNIX_EPOCH).unwrap().as_micros();
        (said.numbers[1] - due as i64) / 1000
    });
    let late: Vec<i64> = late.collect();
    let most = late.iter().max().unwrap();
    println!(
        "{} runs, the latest {most} ms late, the earliest {:?}",
        late.len(),
        late.iter().min()
    );
    assert!(*most < 5000, "{most} ms late");
}

/// One at a time over three machines, in order, and however the moments of those that are sent meanwhile lie.
fn ordering_keys(in_order: bool) {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    // Long enough that a busy machine loses none: a job whose attempt has failed lets the others go first.
    let lease = Duration::from_secs(20);
    let machines: Vec<_> = (0..3).map(|number| start_with_lease(&server, number, lease)).collect();
    let (lines, each) = (12, size(40, 200));
    let begun = SystemTime::now();
    let mut replies = Vec::new();
    for at in 0..each {
        for line in 0..lines {
            let number = line * 1000 + at;
            let job = Work { number, millis: 3 };
            let early = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
            let due = begun - Duration::from_millis(early);
            let sending = if in_order { queue.now(job) } else { queue.at(due, job) };
            replies.push(sending.ordering_key(format!("line {line}")).enqueue_async());
        }
    }
    for reply in replies {
        reply.wait(Duration::from_secs(60)).unwrap();
    }
    drained(&server);
    let said: Vec<Said> =
        machines.into_iter().flat_map(crate::support::replica::Replica::end).collect();
    let mut begins: Vec<(i64, i64)> = Vec::new();
    let mut ends: HashMap<i64, i64> = HashMap::new();
    for said in &said {
        match &*said.word {
            "begins" => begins.push((said.numbers[1], said.numbers[0])),
            "ran" => drop(ends.insert(said.numbers[0], said.numbers[1])),
            _ => {}
        }
    }
    begins.sort_unstable();
    assert_eq!(begins.len() as i64, each * lines, "each once");
    let (mut overlaps, mut swaps) = (0, 0);
    let mut last: HashMap<i64, (i64, i64)> = HashMap::new();
    for (at, number) in begins {
        let end = ends[&number];
        if let Some((before, until)) = last.insert(number / 1000, (number, end)) {
            overlaps += usize::from(at < until);
            swaps += usize::from(number < before);
        }
    }
    assert_eq!(overlaps, 0);
    assert!(!in_order || swaps == 0, "{swaps} out of order");
}

#[test]
fn ordering_keys_hold_over_machines() {
    ordering_keys(true);
}

#[test]
fn ordering_keys_hold_when_earlier_jobs_come_later() {
    ordering_keys(false);
}

#[test]
fn a_transaction_that_holds_a_key_stops_nobody() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    let (tell, told) = std::sync::mpsc::channel();
    let jobs = Jobs::new().on(move |run: &punctual_jobs::JobRun, job: Work| {
        tell.send(job.number)?;
        if job.millis > 0 {
            let is_raised = run.token().sleep(Duration::from_millis(job.millis)).is_err();
            tell.send(if is_raised { -1 } else { 0 })?;
        }
        Ok(())
    });
    let limit = Duration::from_secs(20);
    let queue = jobs.open(postgres(&executor, &server.url()).request_timeout(limit)).unwrap();
    queue.now(Work { number: 1, millis: 6000 }).enqueue().unwrap();
    assert_eq!(told.recv_timeout(limit), Ok(1));
    crate::support::block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let hour = Duration::from_secs(3600);
        queue
            .after(hour, Work { number: 2, millis: 0 })
            .key("k")
            .enqueue_in(&transaction)
            .await
            .unwrap();
        let blocked = queue.after(hour, Work { number: 3, millis: 0 }).key("k").enqueue_async();
        std::thread::sleep(Duration::from_millis(300));
        let begun = Instant::now();
        queue.now(Work { number: 4, millis: 0 }).enqueue().unwrap();
        assert_eq!(told.recv_timeout(limit), Ok(4));
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert_eq!(told.recv_timeout(limit), Ok(0), "the claim of the job that runs stands");
        transaction.rollback().await.unwrap();
        assert!(blocked.wait(limit).is_ok(), "it was asked again until the key was free");
    });
}

/// The clock of a machine is `ahead` of the server's by so many seconds.
fn wrong_clock(ahead: i32) {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let orders = format!("url={}", server.url());
    let mut machine =
        crate::support::replica::Replica::start("machine::machine", 0, &orders, ahead);
    machine.wait_for("open");
    std::thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    let second = Duration::from_secs(1);
    queue.after(second, Work { number: 1, millis: 0 }).enqueue().unwrap();
    machine.wait_for("ran");
    let later = begun.elapsed();
    let begun = Instant::now();
    queue.now(Stubborn { number: 2, millis: 0, fails: true }).max_attempts(2).enqueue().unwrap();
    machine.wait_for("stubborn");
    machine.wait_for("stubborn");
    let again = begun.elapsed();
    assert!(later > second && later < 5 * second, "{ahead} s ahead: {later:?}");
    assert!(again < 5 * second, "{ahead} s ahead: tried again after {again:?}");
}

#[test]
fn a_clock_that_is_ahead_changes_nothing() {
    wrong_clock(20);
}

#[test]
fn a_clock_that_is_behind_changes_nothing() {
    wrong_clock(-20);
}

/// A handler sends its own key in a transaction, which holds its own row, and asks for its fencing token before it commits.
#[test]
fn a_run_whose_row_is_held_has_a_fence_and_its_end_waits_alone() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    let (tell, told) = std::sync::mpsc::channel();
    let (url, limit) = (server.url(), Duration::from_secs(20));
    let jobs = Jobs::new().on(move |run: &punctual_jobs::JobRun, job: Work| {
        if job.number > 1 {
            tell.send((job.number, Duration::ZERO))?;
            return Ok(());
        }
        // The transaction is committed a while after the handler has returned.
        let (open, opened) = std::sync::mpsc::channel();
        let (queue, url) = (run.queue().clone(), url.clone());
        std::thread::spawn(move || {
            crate::support::block_on(async {
                let mut client = crate::support::server::connect(&url).await.unwrap();
                let transaction = client.transaction().await.unwrap();
                let next = Work { number: 3, millis: 0 };
                queue.now(next).key("k").enqueue_in(&transaction).await.unwrap();
                open.send(()).unwrap();
                tokio::time::sleep(Duration::from_secs(2)).await;
                transaction.commit().await.unwrap();
            });
        });
        opened.recv()?;
        let begun = Instant::now();
        run.fencing_token()?;
        tell.send((1, begun.elapsed()))?;
        Ok(())
    });
    let (complain, complaints) = std::sync::mpsc::channel();
    let settings = postgres(&executor, &server.url());
    let settings = settings.on_event(move |event| drop(complain.send(event.to_string())));
    let queue = jobs.open(settings).unwrap();
    queue.now(Work { number: 1, millis: 0 }).key("k").enqueue().unwrap();
    let (number, took) = told.recv_timeout(limit).unwrap();
    assert_eq!(number, 1);
    assert!(took < Duration::from_secs(1), "the fence took {took:?}");
    let other = queue.now(Work { number: 2, millis: 0 }).enqueue().unwrap();
    assert_eq!(told.recv_timeout(limit).unwrap().0, 2);
    let begun = Instant::now();
    wait_until("the other one's end is written", || {
        queue.state(other.id()).unwrap() == JobState::Gone
    });
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(told.recv_timeout(limit).unwrap().0, 3, "the next one runs when it is committed");
    drained(&server);
    assert_eq!(complaints.try_recv().ok(), None, "it was no event");
}

/// A transaction has locked the row of a job that is due: the others run, and that one does when it is free.
#[test]
fn a_job_that_is_held_is_passed_over() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    queue.now(Work { number: 1, millis: 0 }).enqueue().unwrap();
    queue.now(Work { number: 2, millis: 0 }).ordering_key("s").enqueue().unwrap();
    crate::support::block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        transaction.query("select 1 from punctual.job for update", &[]).await.unwrap();
        let mut machine = start(&server, 0);
        queue.now(Work { number: 3, millis: 0 }).enqueue().unwrap();
        assert_eq!(machine.wait_for("ran")[0], 3);
        std::thread::sleep(Duration::from_secs(2));
        transaction.rollback().await.unwrap();
        let numbers = [machine.wait_for("ran")[0], machine.wait_for("ran")[0]];
        assert_eq!(numbers.iter().sum::<i64>(), 3);
        assert!(machine.end().iter().all(|said| said.word != "event"), "it was no event");
    });
}

/// A proxy leads to a server that is a standby, and then to the primary again: the connections to the standby are
/// of no use, although they work.
#[test]
fn connections_to_a_server_that_is_read_only_are_replaced() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let proxy = Proxy::start(&server);
    let limit = Duration::from_secs(3);
    let queue = Jobs::new().open(postgres(&executor, proxy.url()).request_timeout(limit)).unwrap();
    queue.now(Work { number: 1, millis: 0 }).enqueue().unwrap();
    let mut standby = Server::start();
    standby.demote();
    proxy.lead_to(&standby);
    proxy.cut();
    let refused = |number| queue.now(Work { number, millis: 0 }).enqueue().is_err();
    assert!((2..6).filter(|number| refused(*number)).count() >= 3, "nothing is written there");
    proxy.lead_to(&server);
    wait_until("the primary is found", || !refused(7));
    assert_eq!(server.value("select count(*) > 1 from punctual.job"), "t");
    // A server that is demoted under a connection says so in an answer.
    server.sql("create function punctual.refuse() returns trigger language plpgsql as $$ begin
      if current_setting('application_name') = 'old' then
        raise exception 'cannot write' using errcode = 'read_only_sql_transaction';
      end if; return new; end $$;
      create trigger refuse before insert on punctual.job for each row execute function punctual.refuse()");
    let url = format!("{} application_name=old", server.url());
    let old = sender(&executor, &url);
    let backend = "select count(*) from pg_stat_activity where application_name = 'old'";
    let pid = "select string_agg(pid::text, ',' order by pid) from pg_stat_activity where application_name = 'old'";
    assert!(old.state(punctual_jobs::JobId::from(1)).is_ok());
    let before = server.value(pid);
    assert!(old.now(Work { number: 8, millis: 0 }).enqueue().is_err());
    assert!(old.state(punctual_jobs::JobId::from(1)).is_ok());
    wait_until("the old one is gone", || server.value(backend) == "1");
    assert_ne!(server.value(pid), before, "another connection was made");
}

/// Jobs are replaced under their keys at the moments at which they are claimed and end: none runs twice, and nothing
/// is left.
#[test]
fn a_key_that_is_sent_again_and_again_runs_no_job_twice() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let machines: Vec<_> = (0..2).map(|number| start(&server, number)).collect();
    let each = size(400, 10_000);
    std::thread::scope(|scope| {
        for sender_number in 0..3 {
            let queue = sender(&executor, &server.url());
            scope.spawn(move || {
                for at in 0..each {
                    let job = Work { number: sender_number * each + at, millis: 1 };
                    queue.now(job).key(format!("k{}", at % 3)).enqueue().unwrap();
                }
            });
        }
    });
    drained(&server);
    let said: Vec<Said> =
        machines.into_iter().flat_map(crate::support::replica::Replica::end).collect();
    let runs = begins(&said, "begins");
    assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
    assert_eq!(server.value("select count(*) from punctual.job"), "0");
}

/// A job that it claimed would be taken for the job of a dead process by the next sweep, and the attempt would count.
#[test]
fn a_worker_whose_lease_is_over_claims_nothing() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    server.sql(
        "create function punctual.late() returns trigger language plpgsql as $$ begin
           new.until := clock_timestamp() - interval '1 second'; return new; end $$;
         create trigger late before insert or update on punctual.job_worker
           for each row execute function punctual.late()",
    );
    let mut machine = start(&server, 0);
    let jobs = ["", "s"].map(|key| {
        let sending = queue.now(Work { number: 1, millis: 0 });
        if key.is_empty() {
            sending.enqueue().unwrap()
        } else {
            sending.ordering_key(key).enqueue().unwrap()
        }
    });
    std::thread::sleep(Duration::from_secs(1));
    for job in jobs {
        let waiting = JobState::Waiting { attempts: 0, last_error: None };
        assert_eq!(queue.state(job.id()).unwrap(), waiting);
    }
    server.sql("drop trigger late on punctual.job_worker");
    machine.wait_for("ran");
    machine.wait_for("ran");
}

/// The statement that ends a run is stopped after it has begun and before it locks the row. Meanwhile the key is
/// enqueued again. What the statement saw when it began would put the job back, to run once more beside the next one.
#[test]
fn a_key_that_is_enqueued_again_while_its_run_is_written_down_retires_the_run() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    Postgres::on(&executor, server.url()).migrate().unwrap();
    // Rows are looked at by a policy before they are locked, and its function waits in that statement alone.
    server.sql(
        "create role app login;
         grant usage on schema punctual to app;
         grant select, insert, update, delete on all tables in schema punctual to app;
         grant usage on all sequences in schema punctual to app;
         create table public.pause (is_over boolean);
         grant select on public.pause to app;
         create function public.looks() returns boolean language plpgsql volatile as $$ begin
           if position('ended(id, claim, how' in current_query()) > 0 then
             while not exists (select from public.pause) loop perform pg_sleep(0.005); end loop;
           end if;
           return true;
         end $$;
         alter table punctual.job enable row level security;
         create policy looks on punctual.job using (public.looks()) with check (true)",
    );
    let url = server.url().replace("user=punctual", "user=app");
    let (tell, told) = std::sync::mpsc::channel();
    let jobs = Jobs::new()
        .on(move |_: &punctual_jobs::JobRun, job: Work| {
            tell.send(job.number)?;
            if job.number == 1 { Err(punctual_jobs::JobError::new("again")) } else { Ok(()) }
        })
        .backoff::<Work>(|_| Duration::ZERO);
    let minute = Duration::from_secs(60);
    let app = postgres(&executor, &url).lease(minute);
    let app = jobs.open(app).unwrap();
    let first = app.now(Work { number: 1, millis: 0 }).key("k").enqueue().unwrap();
    assert_eq!(told.recv_timeout(minute), Ok(1));
    let stopped = "select count(*) from pg_stat_activity
                    where usename = 'app' and wait_event = 'PgSleep' and query like '%ended(id, claim, how%'";
    wait_until("the end of the run is being written down", || server.value(stopped) == "1");
    // The superuser passes by all policies.
    let other = sender(&executor, &server.url());
    let second = other.now(Work { number: 2, millis: 0 }).key("k").enqueue().unwrap();
    assert_ne!(first.id(), second.id());
    server.sql("insert into public.pause values (true)");
    wait_until("the first is gone", || other.state(first.id()).unwrap() == JobState::Gone);
    assert_eq!(told.recv_timeout(minute), Ok(2));
    drained(&server);
    assert_eq!(told.try_recv().ok(), None, "neither runs again");
}
