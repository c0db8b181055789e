//! The history over machines that are killed, stopped and have other clocks.

use std::time::{Duration, Instant, SystemTime};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{
    HistoryFilter, JobChange, JobId, JobOutcome, JobQueue, JobRun, JobState, Jobs, PastRun,
    Postgres, Schedule,
};
use rustix::process::Signal;

use crate::{
    kinds::{Directed, Tick, Wait, Work},
    machine::{
        LEASE, beats, drained, end_lease, postgres, sender, start, start_ahead, start_with,
        start_with_history,
    },
    size,
    support::{opened, replica::Said, server::Server, wait_until},
};

const DAY: Duration = Duration::from_secs(86_400);

/// Waits until there are so many runs, and returns them, the first one first.
fn runs(queue: &JobQueue, filter: &HistoryFilter, count: usize) -> Vec<PastRun> {
    wait_until("the runs", || queue.history(filter).unwrap().len() >= count);
    let mut runs = queue.history(filter).unwrap();
    assert_eq!(runs.len(), count, "{runs:?}");
    runs.reverse();
    runs
}

/// The orders of a machine with a history whose death is found soon.
fn mortal() -> String {
    format!("history=yes\nlease={}", LEASE.as_millis())
}

#[test]
fn a_machine_that_is_killed_has_its_run_in_the_history_once() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut killed = start_with(&server, 0, &mortal());
    let job = queue.now(Wait { number: 1 }).max_attempts(1).enqueue().unwrap();
    killed.wait_for("waits");
    // Two others sweep.
    let others = [start_with_history(&server, 1), start_with_history(&server, 2)];
    killed.kill();
    let lost = runs(&queue, &HistoryFilter { job: Some(job.id), ..HistoryFilter::default() }, 1);
    assert_eq!((lost[0].attempt, lost[0].outcome), (1, JobOutcome::Lost), "{lost:?}");
    assert!(lost[0].error.as_ref().unwrap().contains("died"), "{lost:?}");
    for other in &others {
        beats(&server, other.process(), 4);
    }
    assert_eq!(runs(&queue, &HistoryFilter::default(), 1), lost, "once");
}

#[test]
fn an_end_that_comes_too_late_is_not_in_the_history() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut frozen = start_with(&server, 0, &mortal());
    let directed = Directed { number: 1, place: server.place().path().join("directed") };
    let job = queue.now(directed.clone()).max_attempts(100).enqueue().unwrap();
    frozen.wait_for("directed");
    let mut other = start_with_history(&server, 1);
    frozen.signal(Signal::STOP);
    let attempt = u32::try_from(other.wait_for("directed")[1]).unwrap();
    assert!(attempt > 1, "it was taken over");
    (1..attempt).for_each(|attempt| directed.end(attempt, "succeeds"));
    frozen.signal(Signal::CONT);
    frozen.wait_for("directed_ends");
    let counts_of_frozen = counted(frozen.end());
    directed.end(attempt, "succeeds");
    other.wait_for("directed_ends");
    drained(&server);
    let runs = runs(
        &queue,
        &HistoryFilter { job: Some(job.id), ..HistoryFilter::default() },
        attempt as usize,
    );
    let how: Vec<_> = runs.iter().map(|run| (run.attempt, run.outcome)).collect();
    let (last, lost) = how.split_last().unwrap();
    assert_eq!(*last, (attempt, JobOutcome::Succeeded), "{how:?}");
    assert!(lost.iter().all(|(_, outcome)| *outcome == JobOutcome::Lost), "{how:?}");
    assert_ne!(runs[0].machine, runs[lost.len()].machine);
    // A machine that has found a lost run counts it, and the one that comes too late has no success.
    let counts = counted(other.end());
    assert_eq!((counts_of_frozen[0], counts[0]), (0, 1));
    assert!(counts[1] >= 1 && counts[1] <= lost.len() as i64, "{counts:?}");
}

/// Returns how many runs of the kind have succeeded on a machine, and how many it has found to be lost.
fn counted(said: Vec<Said>) -> Vec<i64> {
    said.into_iter().find(|said| said.word == "counted_directed").unwrap().numbers
}

#[test]
fn the_moments_of_the_history_are_the_servers() {
    let server = Server::start_with_clock();
    server.set_clock(-3600);
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    // One machine is a day ahead of the other, for which no test runs.
    let machines = [start_with_history(&server, 0), start_ahead(&server, 1, 86_400)];
    let on = "select count(distinct machine) from punctual.job_run";
    let mut sent = 0;
    wait_until("both have run some", || {
        for number in sent..sent + 20 {
            queue.now(Work { number, millis: 20 }).enqueue().unwrap();
        }
        sent += 20;
        drained(&server);
        server.value(on) == "2"
    });
    let all = runs(
        &queue,
        &HistoryFilter { limit: Some(sent as usize), ..HistoryFilter::default() },
        sent as usize,
    );
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    for run in &all {
        assert!(run.began <= run.ended && run.ended <= hour_ago, "{run:?}");
        assert!(run.ended.duration_since(run.began).unwrap() < DAY / 2, "{run:?}");
    }
    drop(machines);
}

/// Kills machines in the middle of their work. Each claim that was made has one row, and each success is said once.
#[test]
fn each_claim_is_in_the_history_once() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut said: Vec<Said> = Vec::new();
    for round in 0..size(3, 20) {
        let mut machine = start_with_history(&server, round);
        for number in 0..30 {
            queue.now(Work { number, millis: 15 }).max_attempts(100).enqueue().unwrap();
        }
        machine.wait_for("ran");
        let dead = machine.process();
        said.extend(machine.kill());
        end_lease(&server, dead);
    }
    let last = start_with_history(&server, 99);
    drained(&server);
    said.extend(last.end());
    let value = |what: &str| server.value(what).parse::<u64>().unwrap();
    let claims = value("select last_value from punctual.job_claim");
    let runs = value("select count(*) from punctual.job_run");
    let succeeded = value("select count(*) from punctual.job_run where outcome = 'ran'");
    let jobs = value("select count(distinct job) from punctual.job_run");
    let twice = "select count(*) from (select 1 from punctual.job_run group by job, attempt having count(*) > 1) t";
    assert_eq!(value(twice), 0, "an attempt has one end");
    assert_eq!(jobs, succeeded, "a job succeeds once in the tables");
    // A claim whose answer a killed machine has not read is a run that was lost, too.
    assert_eq!(claims, runs, "each claim has an end");
    println!("{claims} claims of {jobs} jobs, {} lost", runs - succeeded);
}

#[test]
fn a_run_of_a_schedule_is_found_by_it() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let jobs = Jobs::new().on(|_: &JobRun, _: Tick| Ok(()));
    let queue = jobs.open(postgres(&executor, &server.url()).history(DAY).machine("a b")).unwrap();
    let schedule = Schedule::every("often", Duration::from_millis(200), &Tick {});
    queue.schedules().put(schedule).call().unwrap();
    queue.now(Tick {}).enqueue().unwrap();
    let of_schedule = HistoryFilter {
        schedule: Some("often".into()),
        limit: Some(2),
        ..HistoryFilter::default()
    };
    wait_until("two runs", || queue.history(&of_schedule).unwrap().len() == 2);
    for run in queue.history(&of_schedule).unwrap() {
        assert_eq!((run.schedule.as_deref(), run.machine.as_str()), (Some("often"), "a_b"));
        assert!(run.tick.unwrap() <= run.ended, "{run:?}");
    }
}

#[test]
fn old_runs_go_and_young_ones_stay() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    Postgres::on(&executor, server.url()).migrate().unwrap();
    let rows = "insert into punctual.job_run (job, name, attempt, machine, began, ended, outcome) \
        select n, 'old', 1, 'm', now(), now() - make_interval(mins => case when n <= 2500 then 90 else 10 end), 'ran' \
        from generate_series(1, 3000) n";
    server.sql(rows);
    let open = |keep: Duration| {
        opened(|| {
            let jobs = Jobs::new().on(|_: &JobRun, _: Work| Ok(()));
            jobs.open(postgres(&executor, &server.url()).history(keep))
        })
    };
    let kept = || server.value("select count(*) from punctual.job_run");
    let keeps_a_day = open(DAY);
    beats(&server, std::process::id(), 4);
    assert_eq!(kept(), "3000");
    let hasty = open(Duration::from_secs(3600));
    wait_until("the old ones are gone", || kept() == "500");
    drop((keeps_a_day, hasty));
}

#[test]
fn without_a_word_there_is_no_history() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut machine = start(&server, 0);
    queue.now(Work { number: 1, millis: 0 }).enqueue().unwrap();
    machine.wait_for("ran");
    drained(&server);
    assert_eq!(queue.history(&HistoryFilter::default()).unwrap(), []);
}

/// No run of the claim has begun: its machine does not know of it.
#[test]
fn a_claim_without_an_answer_is_in_the_history() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machine = start_with(&server, 0, &mortal());
    let begun = Instant::now();
    // Whatever the server's clock showed when they were made.
    server.sql(
        "insert into punctual.job (name, payload, attempts, claim, worker, claimed_at, retired, run_at) \
         select 'work', '{}', 1, nextval('punctual.job_claim'), id, at, at < now(), now() + interval '1 hour' \
           from punctual.job_worker, (values (now() - interval '1 day'), (now() + interval '1 day')) claimed(at)",
    );
    let freed = runs(&queue, &HistoryFilter::default(), 2);
    let mut outcomes: Vec<_> = freed.iter().map(|run| run.outcome.to_string()).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["cancelled", "freed"]);
    assert!(begun.elapsed() >= LEASE, "an answer may have been under way");
    assert!(freed.iter().all(|run| run.error.as_ref().unwrap().contains("lost")), "{freed:?}");
    assert_eq!(server.value("select attempts from punctual.job"), "0", "it was no attempt");
    drop(machine);
}

/// The text for the history is no error of the job.
#[test]
fn a_job_that_was_discarded_keeps_its_error_if_its_claim_had_no_answer() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machine = start_with(&server, 0, &mortal());
    let id = server.value(
        "insert into punctual.job (name, payload, attempts, claim, worker, claimed_at, last_error) \
         select 'work', '{}', 2, nextval('punctual.job_claim'), id, now(), 'no route' \
           from punctual.job_worker returning id",
    );
    let id = JobId(id.parse().unwrap());
    assert_eq!(queue.discard(id).unwrap(), JobChange::Signalled);
    let freed = runs(&queue, &HistoryFilter::default(), 1);
    assert!(freed[0].error.as_ref().unwrap().contains("lost"), "{freed:?}");
    let state = queue.state(id).unwrap();
    assert_eq!(state, JobState::Discarded { last_error: "no route".to_owned() });
    drop(machine);
}
