//! The promises that hold whatever fails: late ends, lost answers, silent connections, transactions that hold a job.

use std::{
    collections::HashMap,
    time::{Duration, Instant, SystemTime},
};

use punctual::{CancellationToken, ScheduledThreadPoolExecutor};
use punctual_jobs::{
    HistoryFilter, JobFilter, JobId, JobOutcome, JobQueue, JobRun, JobState, Jobs, Postgres,
    PostgresQueue, aligned,
};
use rustix::process::Signal;

use crate::{
    kinds::{Directed, FAILS, Stubborn, Tick, Work},
    machine::{
        LEASE, SLOTS, beats, beats_async, drained, end_lease, postgres, sender, start,
        start_mortal, start_with,
    },
    size,
    support::{
        LONG, for_some, in_time, opened,
        proxy::Proxy,
        receive, receive_until,
        replica::{Replica, Said},
        server::Server,
        wait_until,
    },
};

fn begins(said: &[Said], word: &str) -> HashMap<i64, usize> {
    let mut runs = HashMap::new();
    for said in said.iter().filter(|said| said.word == word) {
        *runs.entry(said.numbers[0]).or_default() += 1;
    }
    runs
}

/// A job that a machine runs which is frozen then, and believed to be dead. Returns the machine, and the attempts until then.
fn frozen(server: &Server, job: &Directed, key: Option<&str>) -> (Replica, JobId, u32) {
    let executor = ScheduledThreadPoolExecutor::new(1);
    // It handles another kind: it finds what dead machines have left, and runs nothing of that.
    let queue = opened(|| {
        let other = Jobs::new().on(|_: &JobRun, _: Tick| Ok(()));
        other.open(postgres(&executor, &server.url()))
    });
    let mut frozen = start_mortal(server, 0);
    let sending = queue.now(job.clone()).max_attempts(100);
    let sending = if let Some(key) = key { sending.key(key) } else { sending };
    let id = sending.enqueue().unwrap().id;
    frozen.wait_for("directed");
    frozen.signal(Signal::STOP);
    let running = "select count(*) from punctual.job where claim is not null";
    wait_until("it is recovered", || server.value(running) == "0");
    let attempts = server.value("select attempts from punctual.job").parse().unwrap();
    (frozen, id, attempts)
}

fn directed(server: &Server, number: i64) -> Directed {
    Directed { number, place: server.place().path().join("directed") }
}

/// Has the attempts of a frozen machine end, and waits until it has dealt with that.
fn end_late(mut frozen: Replica, job: &Directed, attempts: u32, word: &str) -> Vec<Said> {
    (1..=attempts).for_each(|attempt| job.end(attempt, word));
    frozen.signal(Signal::CONT);
    frozen.wait_for("directed_ends");
    frozen.end()
}

#[test]
fn a_late_end_leaves_a_replaced_job_alone() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let job = directed(&server, 1);
    let (frozen, first, attempts) = frozen(&server, &job, Some("k"));
    let next = Stubborn { number: 2, millis: 0, fails: false };
    let second = queue.after(Duration::from_secs(3600), next).key("k").enqueue().unwrap();
    assert_eq!(first, second.id, "it is replaced in place");
    end_late(frozen, &job, attempts, "succeeds");
    let waiting = JobState::Waiting { attempts: 0, last_error: None };
    assert_eq!(queue.state(second.id).unwrap(), waiting, "the payload that replaced it is there");
}

fn late(word: &str) {
    let server = Server::start();
    let job = directed(&server, 1);
    let (frozen, _, attempts) = frozen(&server, &job, None);
    let mut other = start(&server, 1);
    let next = attempts + 1;
    assert_eq!(other.wait_for("directed"), [1, i64::from(next)]);
    let mut said = end_late(frozen, &job, attempts, word);
    let running = "select count(*) from punctual.job where claim is not null";
    assert_eq!(server.value(running), "1", "the claim of the next attempt stands");
    job.end(next, "succeeds");
    other.wait_for("directed_ends");
    drained(&server);
    said.extend(other.end());
    let attempts: Vec<_> =
        said.iter().filter(|said| said.word == "directed").map(|said| said.numbers[1]).collect();
    assert_eq!(attempts.iter().max(), Some(&i64::from(next)), "no further attempt: {attempts:?}");
    assert_eq!(server.value("select count(*) from punctual.job"), "0", "and it has succeeded");
}

#[test]
fn a_late_success_leaves_the_next_attempt_alone() {
    late("succeeds");
}

#[test]
fn a_late_failure_leaves_the_next_attempt_alone() {
    late(FAILS);
}

/// Starts a machine with a short lease behind a proxy: after that time a connection counts as silent.
fn start_through(proxy: &Proxy) -> Replica {
    let orders = format!("url={}\nlease={}\nlimit=30000", proxy.url(), LEASE.as_millis());
    let mut machine = Replica::start("machine::machine", 0, &orders, 0);
    machine.wait_for("open");
    machine
}

#[test]
fn no_job_is_lost_when_answers_are() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let proxy = Proxy::start(&server);
    // A claim whose answer was lost is free when the lease of its machine is over, if nothing has freed it before.
    let machine = start_through(&proxy);
    let (jobs, cuts) = (size(1000, 10_000), 40);
    for number in 0..jobs {
        if number % (jobs / cuts) == 0 {
            proxy.cut();
        }
        queue.now(Work { number, millis: 3 }).max_attempts(100).enqueue().unwrap();
        std::thread::sleep(Duration::from_millis(3));
    }
    let begun = Instant::now();
    drained(&server);
    let runs = begins(&machine.end(), "ran");
    let more: usize = runs.values().map(|runs| runs - 1).sum();
    println!("{jobs} jobs, {cuts} cuts: {more} runs more, drained in {:?}", begun.elapsed());
    assert_eq!(runs.len() as i64, jobs, "none is lost");
}

#[test]
fn connections_that_fall_silent_are_replaced() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let direct = sender(&executor, &server.url());
    let proxy = Proxy::start(&server);
    let limit = Duration::from_secs(3);
    let through =
        opened(|| Jobs::new().open(postgres(&executor, proxy.url()).request_timeout(limit)));
    let mut machine = start_through(&proxy);
    direct.now(Work { number: -1, millis: 0 }).enqueue().unwrap();
    machine.wait_for("ran");
    wait_until("a verb is answered", || {
        through.now(Work { number: -2, millis: 0 }).enqueue().is_ok()
    });
    machine.wait_for("ran");
    proxy.silence();
    let begun = Instant::now();
    direct.now(Work { number: 1, millis: 0 }).enqueue().unwrap();
    machine.has_said("that it ran", |said| said.word == "ran" && said.numbers[0] == 1);
    println!("a job ran after {:?}", begun.elapsed());
    let begun = Instant::now();
    let mut failed = 0;
    while through.now(Work { number: 2, millis: 0 }).enqueue().is_err() {
        failed += 1;
        // One that is not replaced fails each. Others fail if the machine stands still.
        assert!(failed < 6, "the connection of the verbs is not replaced");
    }
    println!("the verbs: {failed} failed in {:?}", begun.elapsed());
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

/// Later jobs do not wait for the lease of a machine that is killed, although it has run the longest.
#[test]
fn later_jobs_are_not_late_after_a_kill() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let first = start(&server, 0);
    let dead = first.process();
    beats(&server, dead, 4);
    let second = start(&server, 1);
    let begun = SystemTime::now();
    for number in 0..150 {
        let due = begun + Duration::from_millis(1500 + 100 * number);
        queue.at(due, Work { number: number as i64, millis: 0 }).enqueue().unwrap();
    }
    let left = |what: &str| {
        server
            .value(&format!("select count(*) from punctual.job where {what}"))
            .parse::<i64>()
            .unwrap()
    };
    wait_until("some have run", || left("true") < 135);
    let mut said = first.kill();
    // Its lease is not over before this test is.
    let of_it = format!("coalesce(worker, '') like '%:{dead} %'");
    wait_until("all others have run", || left(&format!("not ({of_it})")) == 0);
    assert!(left(&of_it) <= SLOTS as i64, "it holds what it was running");
    end_lease(&server, dead);
    drained(&server);
    said.extend(second.end());
    assert_eq!(begins(&said, "ran").len(), 150, "{said:?}");
}

/// One at a time over three machines, in order, and however the moments of those that are sent meanwhile lie.
fn ordering_keys(in_order: bool) {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machines: Vec<_> = (0..3).map(|number| start(&server, number)).collect();
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
            replies.push((number, sending.ordering_key(format!("line {line}")).enqueue_async()));
        }
    }
    // In the order in which the server has them: one that was asked for twice is behind others.
    let ids: HashMap<i64, JobId> =
        replies.into_iter().map(|(number, reply)| (number, reply.wait(LONG).unwrap().id)).collect();
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
            swaps += usize::from(ids[&number] < ids[&before]);
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
    let queue = opened(|| {
        let tell = tell.clone();
        let jobs = Jobs::new().on(move |run: &punctual_jobs::JobRun, job: Work| {
            tell.send(job.number)?;
            if job.millis > 0 {
                let is_cancelled = run.token().sleep(Duration::from_millis(job.millis)).is_err();
                tell.send(if is_cancelled { -1 } else { 0 })?;
            }
            Ok(())
        });
        jobs.open(postgres(&executor, &server.url()))
    });
    queue.now(Work { number: 1, millis: 3000 }).enqueue().unwrap();
    assert_eq!(receive(&told, "the first"), 1);
    crate::support::block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let hour = Duration::from_secs(3600);
        let job = queue.after(hour, Work { number: 2, millis: 0 }).key("k");
        queue.enqueue_in(&transaction, job).await.unwrap();
        let blocked = queue.after(hour, Work { number: 3, millis: 0 }).key("k").enqueue_async();
        // All of this is while the transaction is open, and after that question. No limit of the queue ends so soon.
        queue.now(Work { number: 4, millis: 0 }).enqueue().unwrap();
        assert_eq!(receive(&told, "another job"), 4);
        beats_async(&server, std::process::id(), 4).await;
        assert_eq!(receive(&told, "the end"), 0, "the claim of the job that runs stands");
        transaction.rollback().await.unwrap();
        assert!(blocked.wait(LONG).is_ok(), "it was asked again until the key was free");
    });
}

/// Each of the callers that wait for a key has the connection for a moment, so that others have their answers in time, and each tick its
/// job.
#[test]
fn hundreds_that_wait_for_a_key_hold_up_no_other_caller() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let limit = Duration::from_secs(10);
    let (tick, ticks) = std::sync::mpsc::channel();
    let queue = opened(|| {
        let tick = tick.clone();
        let jobs = Jobs::new().on(move |_: &JobRun, _: Tick| Ok(tick.send(())?));
        let jobs = jobs.every(aligned(Duration::from_millis(200)), Tick {});
        jobs.open(postgres(&executor, &server.url()).request_timeout(limit))
    });
    crate::support::block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let job = |number| queue.after(LONG, Work { number, millis: 0 });
        queue.enqueue_in(&transaction, job(0).key("k")).await.unwrap();
        let blocked: Vec<_> =
            (1..=400).map(|number| job(number).key("k").enqueue_async()).collect();
        for number in 401..=420 {
            job(number).enqueue().unwrap();
        }
        ticks.try_iter().for_each(drop);
        (0..5).for_each(|_| receive(&ticks, "the job of a tick"));
        drop(blocked);
        transaction.rollback().await.unwrap();
    });
}

/// A trigger of the program's own leaves the row out. The pauses between the questions grow, and they end with the limit.
#[test]
fn a_job_that_a_trigger_leaves_out_is_an_error_and_no_storm() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let limit = Duration::from_secs(2);
    let queue =
        opened(|| Jobs::new().open(postgres(&executor, &server.url()).request_timeout(limit)));
    server.sql("create sequence public.asked");
    server.sql(
        "create function public.leave_out() returns trigger language plpgsql as \
         $$ begin perform nextval('public.asked'); return null; end $$",
    );
    server.sql("create trigger leave_out before insert on punctual.job for each row execute function public.leave_out()");
    let job = || queue.now(Work { number: 1, millis: 0 });
    job().enqueue().unwrap_err();
    let asked = || server.value("select last_value from public.asked").parse::<u32>().unwrap();
    // 20, 40, 80 … 1000 ms.
    let asked_before = asked();
    assert!((2..20).contains(&asked_before), "{asked_before}");
    crate::support::block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let stored = in_time("an answer", queue.enqueue_in(&transaction, job())).await;
        let error = stored.unwrap_err();
        assert!(error.to_string().contains("leaves it out"), "{error}");
    });
    assert!(asked() < asked_before + 20, "{}", asked());
}

/// The server refuses the end of one run, in a statement with the ends of others. Those are written, the slot is free, and the job
/// does not run again; it ends when the cause is mended.
#[test]
fn an_end_that_is_refused_stops_no_other() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (tell, told) = std::sync::mpsc::channel();
    let (say, said) = std::sync::mpsc::channel();
    let queue = opened(|| {
        let (tell, say) = (tell.clone(), say.clone());
        let jobs = Jobs::new().on(move |_: &JobRun, job: Work| Ok(tell.send(job.number)?));
        let settings = postgres(&executor, &server.url()).heartbeat(Duration::from_millis(100));
        jobs.open(settings.on_event(move |event| drop(say.send(event.to_string()))))
    });
    server.sql(
        "create function public.refuse() returns trigger language plpgsql as $$ begin \
         if old.payload like '%:3,%' then raise exception 'kept'; end if; return old; end $$",
    );
    server.sql("create trigger refuse before delete on punctual.job for each row execute function public.refuse()");
    let ids: Vec<_> =
        (0..40).map(|number| queue.now(Work { number, millis: 0 }).enqueue().unwrap().id).collect();
    for id in ids.iter().filter(|id| **id != ids[3]) {
        wait_until("its end", || queue.state(*id).unwrap() == JobState::Gone);
    }
    let mut ran: Vec<_> = ids.iter().map(|_| receive(&told, "each run")).collect();
    ran.sort_unstable();
    assert_eq!(ran, (0..40).collect::<Vec<_>>());
    let named = format!("the end of the job {}", ids[3]);
    receive_until(&said, "the event that names it", |event| event.contains(&named));
    assert_eq!(queue.state(ids[3]).unwrap(), JobState::Running);
    server.sql("drop trigger refuse on punctual.job");
    wait_until("its end", || queue.state(ids[3]).unwrap() == JobState::Gone);
    assert_eq!(told.try_recv().ok(), None, "none ran again");
}

/// An answer to a claim waits for the ends that are written down beside it. After half of the lease it is dropped, because the heartbeat
/// frees claims that it does not know.
#[test]
fn a_claim_that_waits_too_long_for_the_ends_beside_it_does_not_begin() {
    // A run may end so much before the others that its end is written down alone.
    for_some("the claim is freed", &[1, 2, 3, 4], |_| slow_ends());
}

fn slow_ends() -> bool {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    let (go_on, runs) = (CancellationToken::new(), std::sync::mpsc::channel());
    let queue = opened(|| {
        let (go_on, tell) = (go_on.clone(), runs.0.clone());
        let jobs = Jobs::new().on(move |_: &JobRun, job: Work| {
            tell.send(job.number)?;
            go_on.wait();
            Ok(())
        });
        let settings = postgres(&executor, &server.url()).lease(2 * LEASE).heartbeat(LEASE / 15);
        jobs.open(settings.history(LONG).slots(4))
    });
    // The first statement with ends is refused, and the claim is sent before they are asked for one after the other.
    server.sql("create sequence public.ends");
    server.sql(
        "create function public.slow() returns trigger language plpgsql as $$ begin \
         if nextval('public.ends') = 1 then raise exception 'kept'; end if; \
         perform pg_sleep(0.9); return old; end $$",
    );
    server.sql("create trigger slow before delete on punctual.job for each row execute function public.slow()");
    let job = |number| queue.now(Work { number, millis: 0 }).enqueue().unwrap();
    for number in 0..4 {
        job(number);
        receive(&runs.1, "a run");
    }
    let late = job(4);
    go_on.cancel();
    wait_until("its end", || queue.state(late.id).unwrap() == JobState::Gone);
    let of_it = HistoryFilter { job: Some(late.id), ..HistoryFilter::default() };
    queue.history(&of_it).unwrap().iter().any(|run| run.outcome == JobOutcome::Released)
}

/// The server refuses every end. The machine runs no more jobs than would run again if it died: three for each slot.
#[test]
fn a_machine_whose_ends_are_refused_does_not_run_the_backlog() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (tell, told) = std::sync::mpsc::channel();
    let (say, said) = std::sync::mpsc::channel();
    server.sql("create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'kept'; end $$");
    let queue = opened(|| {
        let (tell, say) = (tell.clone(), say.clone());
        let jobs = Jobs::new().on(move |_: &JobRun, job: Work| Ok(tell.send(job.number)?));
        let settings = postgres(&executor, &server.url()).heartbeat(Duration::from_millis(50));
        jobs.open(settings.on_event(move |event| drop(say.send(event.to_string()))))
    });
    server.sql("create trigger refuse before delete on punctual.job for each row execute function public.refuse()");
    for number in 0..40 {
        queue.now(Work { number, millis: 0 }).enqueue().unwrap();
    }
    let mut ran: Vec<_> = (0..4).map(|_| receive(&told, "the first")).collect();
    // It asks again at each heartbeat.
    for _ in 0..40 {
        receive(&said, "a refusal");
    }
    ran.extend(told.try_iter());
    assert!(ran.len() <= 6, "{ran:?}");
    server.sql("drop trigger refuse on punctual.job");
    while ran.len() < 40 {
        ran.push(receive(&told, "the others"));
    }
    ran.sort_unstable();
    assert_eq!(ran, (0..40).collect::<Vec<_>>());
    drained(&server);
}

/// The server refuses one row of a sweep. The other jobs of the dead machine run elsewhere, and the lease of this one stands.
#[test]
fn a_row_that_is_refused_stops_no_sweep() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    let (tell, told) = std::sync::mpsc::channel();
    let (say, said) = std::sync::mpsc::channel();
    let sender = sender(&executor, &server.url());
    let ids: Vec<_> = (0..5)
        .map(|number| sender.after(LONG, Work { number, millis: 0 }).enqueue().unwrap().id)
        .collect();
    server.sql(
        "create function public.refuse() returns trigger language plpgsql as $$ begin \
         if old.payload like '%:3,%' and old.claim is not null then raise exception 'kept'; end if; return new; end $$",
    );
    // All of them are claimed by a process that is not there.
    server.sql(
        "update punctual.job set claim = nextval('punctual.job_claim'), claimed_at = now(), worker = 'dead 1', attempts = 1",
    );
    server.sql("create trigger refuse before update on punctual.job for each row execute function public.refuse()");
    let queue = opened(|| {
        let (tell, say) = (tell.clone(), say.clone());
        let jobs = Jobs::new().on(move |_: &JobRun, job: Work| Ok(tell.send(job.number)?));
        let settings = postgres(&executor, &server.url()).lease(LEASE).heartbeat(LEASE / 15);
        jobs.open(settings.on_event(move |event| drop(say.send(event.to_string()))))
    });
    let named = format!("a job of a dead process, {}", ids[3]);
    receive_until(&said, "the event that names it", |event| event.contains(&named));
    let mut ran: Vec<_> = (0..4).map(|_| receive(&told, "the others")).collect();
    ran.sort_unstable();
    assert_eq!(ran, [0, 1, 2, 4]);
    queue.now(Work { number: 5, millis: 0 }).enqueue().unwrap();
    assert_eq!(receive(&told, "a new one"), 5);
}

/// The server refuses a job that is to be told, and one of two claims without an answer. The other one is freed all the same, and a
/// machine that has died is forgotten.
#[test]
fn a_row_that_is_refused_keeps_no_claim_without_an_answer() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    let (say, said) = std::sync::mpsc::channel();
    let queue = opened(|| {
        let say = say.clone();
        let jobs = Jobs::new().on(|_: &JobRun, _: Work| Ok(()));
        let settings = postgres(&executor, &server.url()).lease(LEASE).heartbeat(LEASE / 15);
        jobs.open(settings.on_event(move |event| drop(say.send(event.to_string()))))
    });
    server.sql(
        "create function public.refuse() returns trigger language plpgsql as $$ begin \
         if old.payload like '%:3,%' then raise exception 'kept'; end if; return new; end $$",
    );
    server.sql("create trigger refuse before update on punctual.job for each row execute function public.refuse()");
    server.sql(
        "insert into punctual.job (name, payload, attempts, max_attempts, untold, worker) \
         select 'work', '{\"number\":3,\"millis\":0}', 1, 1, true, id from punctual.job_worker",
    );
    server.sql(
        "insert into punctual.job (name, payload, attempts, claim, worker) \
         select 'work', payload, 1, nextval('punctual.job_claim'), id \
           from punctual.job_worker, (values ('{\"number\":3,\"millis\":0}'), ('{\"number\":4,\"millis\":0}')) job(payload)",
    );
    server.sql(
        "insert into punctual.job_worker values ('dead 1', now() - interval '1 day', 1000000, 4)",
    );
    let left = || server.value("select count(*) from punctual.job");
    wait_until("the other one is freed, and has run", || left() == "2");
    receive_until(&said, "the event that names the claim", |event| {
        event.contains("a claim without an answer, of the job")
    });
    let workers = || server.value("select count(*) from punctual.job_worker");
    wait_until("the dead machine is forgotten", || workers() == "1");
    drop(queue);
}

/// A table that is locked for two leases: the sweep and the ends wait for it, and the heartbeat does not. The claims stand.
#[test]
fn a_lock_on_a_table_loses_no_claim() {
    for lock in ["punctual.job_run in share mode", "punctual.job in access exclusive mode"] {
        outlives_a_lock(lock);
    }
}

fn outlives_a_lock(lock: &str) {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (tell, told) = std::sync::mpsc::channel();
    let (say, said) = std::sync::mpsc::channel();
    let go_on = CancellationToken::new();
    let queue = opened(|| {
        let (tell, say, go_on) = (tell.clone(), say.clone(), go_on.clone());
        let jobs = Jobs::new().on(move |_: &JobRun, job: Work| {
            tell.send(job.number)?;
            go_on.wait();
            Ok(())
        });
        let settings = postgres(&executor, &server.url()).lease(LEASE).heartbeat(LEASE / 15);
        let settings = settings.history(LONG);
        jobs.open(settings.on_event(move |event| drop(say.send(event.to_string()))))
    });
    let job = queue.now(Work { number: 1, millis: 0 }).enqueue().unwrap();
    assert_eq!(receive(&told, "its run"), 1);
    // Of a process that has died, so that the sweep has something to write down.
    let dead = queue.after(LONG, Work { number: 2, millis: 0 }).max_attempts(1).enqueue().unwrap();
    crate::support::block_on(async {
        let (mut client, other) = (server.connect().await, server.connect().await);
        let transaction = client.transaction().await.unwrap();
        transaction.batch_execute(&format!("lock table {lock}")).await.unwrap();
        let dies = format!(
            "set lock_timeout = '100ms'; update punctual.job set claim = nextval('punctual.job_claim'), claimed_at = now(), \
             worker = 'dead 1', attempts = 1 where id = {}",
            dead.id
        );
        let is_written = other.batch_execute(&dies).await.is_ok();
        assert_eq!(is_written, lock.contains("job_run"), "a job can be written beside the lock");
        beats_async(&server, std::process::id(), 30).await;
        transaction.rollback().await.unwrap();
    });
    wait_until("the dead one's", || !matches!(queue.state(dead.id).unwrap(), JobState::Running));
    go_on.cancel();
    wait_until("its end", || queue.state(job.id).unwrap() == JobState::Gone);
    assert!(said.try_iter().all(|event| !event.contains("is lost")), "the claim stands");
    assert_eq!(told.try_recv().ok(), None, "it runs once");
}

/// Such a row is stored by plain SQL in a database that checks no encoding.
#[test]
fn a_payload_without_an_encoding_fails_alone() {
    let server = Server::start();
    server.sql("create database plain encoding 'SQL_ASCII' locale 'C' template template0");
    let url = server.url().replace("dbname=postgres", "dbname=plain");
    assert_ne!(url, server.url());
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (tell, told) = std::sync::mpsc::channel();
    opened(|| Postgres::on(&executor, url.clone()).migrate());
    crate::support::block_on(async {
        let (client, driver) = url
            .parse::<tokio_postgres::Config>()
            .unwrap()
            .connect(tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(driver);
        let odd = "insert into punctual.job (name, payload, max_attempts) values ('work', E'\"\\xff\"', 1)";
        client.batch_execute(odd).await.unwrap();
    });
    let sender = sender(&executor, &url);
    for number in 0..20 {
        sender.now(Work { number, millis: 0 }).enqueue().unwrap();
    }
    let _queue = opened(|| {
        let (tell, lost) = (tell.clone(), tell.clone());
        let jobs =
            Jobs::new().on(move |_: &JobRun, job: Work| Ok(tell.send(job.number.to_string())?));
        let jobs = jobs.on_discarded(move |job| drop(lost.send(job.last_error.clone())));
        jobs.open(postgres(&executor, &url))
    });
    let said: Vec<_> = (0..21).map(|_| receive(&told, "all of them")).collect();
    assert_eq!(
        said.iter().filter(|said| said.contains("cannot be decoded")).count(),
        1,
        "{said:?}"
    );
}

/// A look that takes long is on a connection of its own: a list, a count, the history.
#[test]
fn a_look_holds_up_no_enqueue() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let limit = Duration::from_secs(10);
    // No superuser, whom a policy would not concern.
    opened(|| Postgres::on(&executor, server.url()).migrate());
    server.sql("create role app login");
    server.sql(&crate::rights::documented_grants());
    let url = server.url().replace("user=punctual", "user=app");
    let queue = opened(|| Jobs::new().open(postgres(&executor, &url).request_timeout(limit)));
    queue.after(LONG, Work { number: 1, millis: 0 }).enqueue().unwrap();
    server.sql("alter table punctual.job enable row level security");
    server.sql(
        "create policy slow on punctual.job using (case when current_query() like any (array[ \
         '%coalesce(waiting, 0)%', '%case when $9 then payload%']) then pg_sleep(3600) is not null else true end)",
    );
    server.sql("alter table punctual.job_run rename to kept");
    server.sql("insert into punctual.kept (job, name, attempt, machine, began, outcome) values (1, 'work', 1, 'm', now(), 'succeeded')");
    server.sql("create view punctual.job_run as select kept.* from punctual.kept, (select pg_sleep(3600) offset 0) as slow");
    server.sql("grant select on punctual.job_run to app");
    let beside = || {
        let sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
        wait_until("the look reads", || server.value(sleeps) == "1");
        queue.after(LONG, Work { number: 2, millis: 0 }).enqueue().unwrap();
        server.sql(
            "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'",
        );
    };
    let list = queue.list_async(&JobFilter::default());
    beside();
    list.wait(LONG).unwrap_err();
    let counts = queue.counts_async();
    beside();
    counts.wait(LONG).unwrap_err();
    let history = queue.history_async(&HistoryFilter::default());
    beside();
    history.wait(LONG).unwrap_err();
}

/// The clock of a machine is `ahead` of the server's by so many seconds: by an hour, for which no test waits.
fn wrong_clock(ahead: i32) {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let orders = format!("url={}", server.url());
    let mut machine =
        crate::support::replica::Replica::start("machine::machine", 0, &orders, ahead);
    machine.wait_for("open");
    beats(&server, machine.process(), 4);
    let begun = Instant::now();
    let second = Duration::from_secs(1);
    queue.after(second, Work { number: 1, millis: 0 }).enqueue().unwrap();
    machine.wait_for("ran");
    let later = begun.elapsed();
    assert!(later > second, "{ahead} s ahead: {later:?}");
    queue.now(Stubborn { number: 2, millis: 0, fails: true }).max_attempts(2).enqueue().unwrap();
    machine.wait_for("stubborn");
    machine.wait_for("stubborn");
}

#[test]
fn a_clock_that_is_ahead_changes_nothing() {
    wrong_clock(3600);
}

#[test]
fn a_clock_that_is_behind_changes_nothing() {
    wrong_clock(-3600);
}

/// A handler sends its own key in a transaction, which holds its own row, and asks for its fencing token before it commits.
#[test]
fn a_run_whose_row_is_held_has_a_fence_and_its_end_waits_alone() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    let (tell, told) = std::sync::mpsc::channel();
    // The transaction is open until this is cancelled: all that is waited for before happens meanwhile.
    let commit = punctual::CancellationToken::new();
    let (complain, complaints) = std::sync::mpsc::channel();
    let queue = opened(|| {
        let (tell, url, commit) = (tell.clone(), server.url(), commit.clone());
        let jobs = Jobs::new().on(move |run: &punctual_jobs::JobRun, job: Work| {
            if job.number == 1 {
                hold_with_the_next(run.queue(), &url, &commit)?;
                run.fencing_token()?;
            }
            Ok(tell.send(job.number)?)
        });
        let complain = complain.clone();
        let settings = postgres(&executor, &server.url());
        jobs.open(settings.on_event(move |event| drop(complain.send(event.to_string()))))
    });
    queue.now(Work { number: 1, millis: 0 }).key("k").enqueue().unwrap();
    assert_eq!(receive(&told, "the run has its fence"), 1);
    let other = queue.now(Work { number: 2, millis: 0 }).enqueue().unwrap();
    assert_eq!(receive(&told, "another one runs"), 2);
    wait_until("the other one's end is written", || {
        queue.state(other.id).unwrap() == JobState::Gone
    });
    beats(&server, std::process::id(), 4);
    assert!(told.try_recv().is_err(), "the next one is not there yet");
    commit.cancel();
    assert_eq!(receive(&told, "the next one"), 3, "it runs when it is committed");
    drained(&server);
    assert_eq!(complaints.try_recv().ok(), None, "it was no event");
}

/// Enqueues the next job of the key in a transaction, in a thread of its own, which commits it when it is told to.
fn hold_with_the_next(
    queue: &JobQueue,
    url: &str,
    commit: &punctual::CancellationToken,
) -> Result<(), std::sync::mpsc::RecvError> {
    let (open, opened) = std::sync::mpsc::channel();
    let (url, commit) = (url.to_owned(), commit.clone());
    let queue = PostgresQueue::of(queue).unwrap();
    std::thread::spawn(move || {
        crate::support::block_on(async {
            let mut client = crate::support::server::connect(&url).await.unwrap();
            let transaction = client.transaction().await.unwrap();
            let next = Work { number: 3, millis: 0 };
            queue.enqueue_in(&transaction, queue.now(next).key("k")).await.unwrap();
            drop(queue);
            open.send(()).unwrap();
            while !commit.is_cancelled() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            transaction.commit().await.unwrap();
        });
    });
    opened.recv()
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
        // On a busy machine an answer may take seconds, and its lateness would be an event.
        let mut machine = start_with(&server, 0, "limit=30000");
        for number in 3..7 {
            queue.now(Work { number, millis: 0 }).enqueue().unwrap();
            assert_eq!(machine.wait_for("ran")[0], number);
        }
        beats_async(&server, machine.process(), 4).await;
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
    let queue =
        opened(|| Jobs::new().open(postgres(&executor, proxy.url()).request_timeout(limit)));
    wait_until("a verb is answered", || queue.now(Work { number: 1, millis: 0 }).enqueue().is_ok());
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
    assert!(old.state(punctual_jobs::JobId(1)).is_ok());
    let before = server.value(pid);
    assert!(old.now(Work { number: 8, millis: 0 }).enqueue().is_err());
    assert!(old.state(punctual_jobs::JobId(1)).is_ok());
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
    beats(&server, machine.process(), 4);
    for job in jobs {
        let waiting = JobState::Waiting { attempts: 0, last_error: None };
        assert_eq!(queue.state(job.id).unwrap(), waiting);
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
        .backoff::<Work>(punctual::Backoff::constant(Duration::ZERO));
    let app = jobs.open(postgres(&executor, &url)).unwrap();
    let first = app.now(Work { number: 1, millis: 0 }).key("k").enqueue().unwrap();
    assert_eq!(receive(&told, "the first"), 1);
    let stopped = "select count(*) from pg_stat_activity
                    where usename = 'app' and wait_event = 'PgSleep' and query like '%ended(id, claim, how%'";
    wait_until("the end of the run is being written down", || server.value(stopped) == "1");
    // The superuser passes by all policies.
    let other = sender(&executor, &server.url());
    let second = other.now(Work { number: 2, millis: 0 }).key("k").enqueue().unwrap();
    assert_ne!(first.id, second.id);
    server.sql("insert into public.pause values (true)");
    wait_until("the first is gone", || other.state(first.id).unwrap() == JobState::Gone);
    assert_eq!(receive(&told, "the second"), 2);
    drained(&server);
    assert_eq!(told.try_recv().ok(), None, "neither runs again");
}
