//! A statement that the server refuses for one row of ten: the other nine go on, whichever statement it is.

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobError, JobFilter, JobLimit, JobRun, JobStage, Jobs, PostgresQueue};

use crate::{
    kinds::Work,
    machine::{LEASE, postgres, sender},
    support::{LONG, opened, receive, receive_until, server::Server, wait_until},
};

const SECOND: Duration = Duration::from_secs(1);

/// A statement, and how the server refuses it for the row with the number 3.
struct Case {
    name: &'static str,
    /// What the event says before the number of the row.
    told: &'static str,
    /// The trigger: its moment, its table, and when it refuses.
    refused: (&'static str, &'static str, &'static str),
    /// Makes the ten rows.
    rows: fn(&PostgresQueue, &Server),
    jobs: fn(Jobs) -> Jobs,
    /// Selects the rows that are left to be done, by their numbers.
    left: &'static str,
}

const JOBS: &str = "select substring(payload from '(\\d),')::int from punctual.job";
const CLAIMS: (&str, &str, &str) =
    ("update", "job", "new.claim is not null and new.payload like '%:3,%'");

fn plain(jobs: Jobs) -> Jobs {
    jobs.on(|_: &JobRun, _: Work| Ok(()))
}

fn limited(jobs: Jobs) -> Jobs {
    plain(jobs).limit::<Work>(JobLimit::at_once(4))
}

fn windowed(jobs: Jobs) -> Jobs {
    plain(jobs).limit::<Work>(JobLimit::in_window(100, LONG).for_each_key())
}

fn returning(jobs: Jobs) -> Jobs {
    jobs.on_returning(LONG, |_: &JobRun, job: Work| Ok(job.number))
}

fn discarding(jobs: Jobs) -> Jobs {
    let jobs = jobs.on(|_: &JobRun, _: Work| Err(JobError::discard("no")));
    jobs.on_discarded(|_| ())
}

fn send(queue: &PostgresQueue, _: &Server) {
    for number in 0..10 {
        queue.now(Work { number, millis: 0 }).enqueue().unwrap();
    }
}

fn send_limit_keys(queue: &PostgresQueue, _: &Server) {
    for number in 0..10 {
        let job = queue.now(Work { number, millis: 0 });
        job.limit_key(number.to_string()).enqueue().unwrap();
    }
}

fn send_ordering_keys(queue: &PostgresQueue, _: &Server) {
    for number in 0..10 {
        let job = queue.now(Work { number, millis: 0 });
        job.ordering_key(number.to_string()).enqueue().unwrap();
    }
}

fn send_unmarked(queue: &PostgresQueue, server: &Server) {
    send_ordering_keys(queue, server);
    server.sql("update punctual.job set due = false");
}

/// Discarded jobs that a process that has died was to tell of.
fn send_untold(queue: &PostgresQueue, server: &Server) {
    send(queue, server);
    server.sql(
        "update punctual.job set attempts = 1, max_attempts = 1, untold = true, worker = 'dead 1'",
    );
}

fn send_dead(queue: &PostgresQueue, server: &Server) {
    send(queue, server);
    server.sql(
        "update punctual.job set claim = nextval('punctual.job_claim'), worker = 'dead 1', attempts = 1",
    );
}

/// The statements, each with what its trigger refuses.
const CASES: [Case; 17] = [
    Case {
        name: "the claim of jobs without a key",
        told: "a claim, of the job",
        refused: CLAIMS,
        rows: send,
        jobs: plain,
        left: JOBS,
    },
    Case {
        name: "the claim of jobs with a limit key",
        told: "a claim, of the job",
        refused: CLAIMS,
        rows: send_limit_keys,
        jobs: plain,
        left: JOBS,
    },
    Case {
        name: "the claim of ordering keys",
        told: "a claim, of the job",
        refused: CLAIMS,
        rows: send_ordering_keys,
        jobs: plain,
        left: JOBS,
    },
    Case {
        name: "the claim of a kind with a limit",
        told: "a claim, of the job",
        refused: CLAIMS,
        rows: send,
        jobs: limited,
        left: JOBS,
    },
    Case {
        name: "the claim of limit keys with windows",
        told: "a claim, of the job",
        refused: CLAIMS,
        rows: send_limit_keys,
        jobs: windowed,
        left: JOBS,
    },
    Case {
        name: "the claim of ordering keys of a kind with a limit",
        told: "a claim, of the job",
        refused: CLAIMS,
        rows: send_ordering_keys,
        jobs: limited,
        left: JOBS,
    },
    Case {
        name: "the mark of what is due",
        told: "a mark, of the job",
        refused: ("update", "job", "new.due and not old.due and new.payload like '%:3,%'"),
        rows: send_unmarked,
        jobs: plain,
        left: JOBS,
    },
    Case {
        name: "the end of a run that is gone",
        told: "the end of the job",
        refused: ("delete", "job", "old.payload like '%:3,%'"),
        rows: send,
        jobs: plain,
        left: JOBS,
    },
    Case {
        name: "the end of a run that has a result",
        told: "the end of the job",
        refused: ("insert", "job_result", "new.value = '3'"),
        rows: send,
        jobs: returning,
        left: JOBS,
    },
    Case {
        name: "the end of a run that is discarded",
        told: "the end of the job",
        refused: ("update", "job", "new.untold and not old.untold and new.payload like '%:3,%'"),
        rows: send,
        jobs: discarding,
        left: "select substring(payload from '(\\d),')::int from punctual.job where untold or attempts < max_attempts",
    },
    Case {
        name: "the note that a job was told",
        told: "the note that was told of the job",
        refused: ("update", "job", "old.untold and not new.untold and new.payload like '%:3,%'"),
        rows: send,
        jobs: discarding,
        left: "select substring(payload from '(\\d),')::int from punctual.job where untold or attempts < max_attempts",
    },
    Case {
        name: "the choice of jobs to tell of",
        told: "the telling of the job",
        refused: (
            "update",
            "job",
            "new.untold and new.worker is distinct from old.worker and new.payload like '%:3,%'",
        ),
        rows: send_untold,
        jobs: discarding,
        left: "select substring(payload from '(\\d),')::int from punctual.job where untold",
    },
    Case {
        name: "the sweep",
        told: "a job of a dead process,",
        refused: ("update", "job", "old.worker = 'dead 1' and new.payload like '%:3,%'"),
        rows: send_dead,
        jobs: plain,
        left: "select substring(payload from '(\\d),')::int from punctual.job where worker = 'dead 1'",
    },
    Case {
        name: "what forgets machines",
        told: "a worker that is forgotten,",
        refused: ("delete", "job_worker", "old.id = 'dead 3'"),
        rows: |_, server| {
            server.sql("insert into punctual.job_worker select 'dead ' || i, now() - interval '1 day', 1000000, 4 from generate_series(0, 9) i");
        },
        jobs: plain,
        left: "select substring(id from '(\\d)$')::int from punctual.job_worker where id like 'dead%'",
    },
    Case {
        name: "what forgets buckets",
        told: "a bucket that is forgotten,",
        refused: ("delete", "job_bucket", "old.limit_key = '3'"),
        rows: |_, server| {
            server.sql("insert into punctual.job_bucket select 'work', true, i, 1, 1, now() - interval '1 day' from generate_series(0, 9) i");
        },
        jobs: windowed,
        left: "select limit_key::int from punctual.job_bucket",
    },
    Case {
        name: "what prunes the history",
        told: "a run that is pruned,",
        refused: ("delete", "job_run", "old.job = 3"),
        rows: |_, server| {
            server.sql("insert into punctual.job_run (job, name, attempt, machine, began, ended, outcome) select i, 'work', 1, 'm', now(), now() - interval '1 day', 'ran' from generate_series(0, 9) i");
        },
        jobs: plain,
        left: "select job::int from punctual.job_run",
    },
    Case {
        name: "what prunes results",
        told: "the result of the job",
        refused: ("delete", "job_result", "old.job = 3"),
        rows: |_, server| {
            server.sql("insert into punctual.job_result select i, '1', now() - interval '1 day' from generate_series(0, 9) i");
        },
        jobs: returning,
        left: "select job::int from punctual.job_result",
    },
];

/// Errors by which a server, a trigger or a policy may refuse a row.
const CODES: [&str; 7] = ["P0001", "U0001", "55000", "42501", "23505", "22000", "XX001"];

impl Case {
    fn refuses_one_of_ten(&self, server: &Server, code: &str) {
        let Self { name, told, refused: (when, table, condition), .. } = self;
        let what = format!("{name}, with {code}");
        let executor = ScheduledThreadPoolExecutor::new(4);
        server.sql("drop schema if exists punctual cascade");
        (self.rows)(&sender(&executor, &server.url()), server);
        let returned = if *when == "delete" { "old" } else { "new" };
        server.sql(&format!(
            "create or replace function public.refuse() returns trigger language plpgsql as $$ begin \
             if {condition} then raise exception 'kept' using errcode = '{code}'; end if; return {returned}; end $$; \
             create trigger refuse before {when} on punctual.{table} for each row execute function public.refuse()"
        ));
        let (say, said) = mpsc::channel();
        let queue = opened(|| {
            let say = say.clone();
            let settings = postgres(&executor, &server.url()).lease(LEASE).heartbeat(LEASE / 15);
            let settings = settings.history(Duration::from_secs(2));
            let settings = settings.on_event(move |event| drop(say.send(event.to_string())));
            (self.jobs)(Jobs::new()).open(settings)
        });
        let left = || {
            let mut left: Vec<String> = server.sql(self.left).into_iter().flatten().collect();
            left.sort_unstable();
            left
        };
        wait_until(&what, || left() == ["3"]);
        let event = receive_until(&said, &what, |event: &String| event.contains(told));
        assert!(event.contains("kept"), "{what}: {event}");
        if told.starts_with("the end") {
            let running = JobFilter { stage: Some(JobStage::Running), ..JobFilter::default() };
            let error = || queue.list(&running).unwrap().pop().and_then(|job| job.last_error);
            wait_until(&what, || error().is_some_and(|error| error.contains("kept")));
        }
        // When the cause is mended the row is done as well.
        server.sql(&format!("drop trigger refuse on punctual.{table}"));
        wait_until(&what, || left().is_empty());
        let again = said.try_iter().filter(|event| event.contains(told)).count();
        assert!(again == 0 || told.starts_with("the end"), "{what}: told {again} times more");
    }
}

#[test]
fn a_row_that_is_refused_stops_no_others() {
    let server = Server::start();
    for (case, code) in CASES.iter().zip(CODES.iter().cycle()) {
        case.refuses_one_of_ten(&server, code);
    }
}

#[test]
fn an_end_is_refused_by_any_error_of_its_statement() {
    let server = Server::start();
    let is_end = |case: &&Case| case.name == "the end of a run that is gone";
    let end = CASES.iter().find(is_end).unwrap();
    for code in CODES {
        end.refuses_one_of_ten(&server, code);
    }
}

/// Refuses each row of a table that this condition names.
fn refuse(server: &Server, when: &str, table: &str, condition: &str, before: &str) {
    server.sql(&format!(
        "create function public.refuse() returns trigger language plpgsql as $$ begin if {condition} then {before} \
         raise exception 'kept'; end if; return old; end $$; \
         create trigger refuse before {when} on punctual.{table} for each row execute function public.refuse()"
    ));
}

#[test]
fn thousands_of_rows_that_are_refused_to_one_part_of_a_heartbeat_keep_no_other_from_its_turn() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    let jobs = (0..3000).map(|number| Work { number, millis: 0 });
    let sender = sender(&executor, &server.url());
    sender.enqueue_all(jobs.map(|work| sender.now(work))).unwrap();
    // A job of which a process that has died was to tell, and many that it had claimed.
    server.sql(
        "update punctual.job set attempts = 1, worker = 'dead 1', \
         claim = case when id > 1 then nextval('punctual.job_claim') end, \
         max_attempts = case when id > 1 then 9 else 1 end, untold = id = 1",
    );
    let is_swept = "old.claim is not null and old.worker = 'dead 1'";
    refuse(&server, "update", "job", is_swept, "perform pg_sleep(0.005);");
    let (tell, told) = mpsc::channel();
    let _queue = opened(|| {
        let tell = tell.clone();
        let jobs = plain(Jobs::new()).on_discarded(move |job| tell.send(job.id).unwrap_or(()));
        jobs.open(postgres(&executor, &server.url()).lease(4 * SECOND).heartbeat(SECOND))
    });
    receive(&told, "it is told of the discarded job");
}

#[test]
fn the_other_rows_are_asked_for_again_after_pauses_that_grow() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    sender(&executor, &server.url());
    server.sql("insert into punctual.job_result select i, '1', now() - interval '1 day' from generate_series(1, 40) i");
    refuse(&server, "delete", "job_result", "true", "");
    let begun = Instant::now();
    let (say, said) = mpsc::channel();
    let _queue = opened(|| {
        let say = say.clone();
        let settings = postgres(&executor, &server.url());
        let settings = settings.on_event(move |event| drop(say.send(event.to_string())));
        returning(Jobs::new()).open(settings)
    });
    for number in 1..=40 {
        receive_until(&said, &format!("row {number}"), |event: &String| event.contains("kept"));
    }
    // The first row that is refused is followed by a millisecond, the next one by two, and the tenth and all others by ten.
    assert!(begun.elapsed() >= Duration::from_millis(45 + 30 * 10), "{:?}", begun.elapsed());
}
