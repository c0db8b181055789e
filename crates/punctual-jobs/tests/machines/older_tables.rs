//! Tables of each older version, in the middle of their work, that this version brings up to date.
//!
//! The steps are read from the source, which is what made those tables: a step that was released is not changed any more. So a
//! new version joins this test by itself.

use std::{sync::mpsc, time::Duration};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobFilter, JobRun, JobStage, Jobs};

use crate::{
    kinds::{Tick, Work},
    machine::postgres,
    support::{LONG, receive, server::Server, wait_until},
};

/// The statements that make each version from the one before.
fn steps() -> Vec<String> {
    let source = include_str!("../../src/postgres/tables.rs");
    let between = |text: &str, begin: &str, end: &str| -> String {
        let rest = text.split_once(begin).unwrap_or_else(|| panic!("{begin}")).1;
        rest.split_once(end).unwrap_or_else(|| panic!("{end}")).0.to_owned()
    };
    let names = between(source, "const STEPS: &[&str] = &[", "]");
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let text = |name| between(source, &format!("const {name}: &str = \"\\\n"), "\n\";");
    let steps = names.map(|name| text(name).replace("\\\"", "\"").replace("@schema", "punctual"));
    steps.collect()
}

/// Makes the tables as a program of this version did.
fn make(server: &Server, steps: &[String]) {
    server.sql(
        "drop schema if exists punctual cascade; create schema punctual; create table punctual.job_version \
         (version int primary key, at timestamptz not null default clock_timestamp())",
    );
    for (step, version) in steps.iter().zip(1..) {
        server.sql(step);
        server.sql(&format!("insert into punctual.job_version (version) values ({version})"));
    }
}

/// Jobs that wait: one that is due, one that is due soon and has a key, two of one ordering key. One that runs on a machine that has
/// a second to live, and one that is discarded and was not told. And a schedule, from the version on that has them.
fn fill(server: &Server, version: usize) {
    server.sql(
        "insert into punctual.job (name, payload) values ('work', '{\"number\": 1, \"millis\": 0}');
         insert into punctual.job (name, payload, key, run_at) \
           values ('work', '{\"number\": 2, \"millis\": 0}', 'k', now() + interval '1 second');
         insert into punctual.job (name, payload, ordering_key, run_at) \
           values ('work', '{\"number\": 3, \"millis\": 0}', 'line', now() - interval '2 seconds'), \
             ('work', '{\"number\": 4, \"millis\": 0}', 'line', now() - interval '1 second');
         insert into punctual.job_worker values ('old 1', now() + interval '1 second');
         insert into punctual.job (name, payload, attempts, claim, worker, claimed_at) \
           values ('work', '{\"number\": 5, \"millis\": 0}', 1, nextval('punctual.job_claim'), 'old 1', now());
         insert into punctual.job (name, payload, attempts, max_attempts, last_error, untold) \
           values ('work', '{\"number\": 6, \"millis\": 0}', 2, 2, 'no route', true)",
    );
    if version >= 2 {
        server.sql(
            "insert into punctual.job_schedule (name, period_us, kind, payload) \
             values ('often', 200000, 'tick', '{}')",
        );
    }
}

#[test]
fn tables_of_each_version_are_brought_up_to_date_in_the_middle_of_their_work() {
    let (server, steps) = (Server::start(), steps());
    assert!(steps.len() >= 5, "{}", steps.len());
    for version in 1..=steps.len() {
        make(&server, &steps[..version]);
        fill(&server, version);
        let executor = ScheduledThreadPoolExecutor::new(2);
        let (tell, told) = mpsc::channel();
        let (ticks, discarded) = (tell.clone(), tell.clone());
        let jobs = Jobs::new()
            .on(move |run: &JobRun, job: Work| Ok(tell.send((job.number, run.attempt))?))
            .on(move |run: &JobRun, _: Tick| Ok(ticks.send((0, run.attempt))?))
            .on_discarded(move |job| {
                let _ = discarded.send((-1, job.attempts));
            });
        let history = Duration::from_secs(3600);
        let queue = jobs.open(postgres(&executor, &server.url()).history(history)).unwrap();
        let mut seen = Vec::new();
        // Five runs, a discarded job, and a tick if there is a schedule.
        while seen.len() < if version >= 2 { 7 } else { 6 } {
            let (number, attempt) = receive(&told, "all of them");
            // One tick stands for all.
            if !seen.contains(&(number, attempt)) || number != 0 {
                seen.push((number, attempt));
            }
        }
        let place = |number| seen.iter().position(|(other, _)| *other == number);
        assert!(place(3) < place(4), "version {version}: {seen:?}");
        seen.retain(|(number, _)| *number != 0);
        seen.sort_unstable();
        let all = [(-1, 2), (1, 1), (2, 1), (3, 1), (4, 1), (5, 2)];
        assert_eq!(seen, all, "version {version}");
        let left = || {
            queue.list(&JobFilter { kind: Some("work".into()), ..JobFilter::default() }).unwrap()
        };
        wait_until("all ends are written", || left().len() == 1);
        assert_eq!(left()[0].stage, JobStage::Discarded, "version {version}: {:?}", left());
        let newest = server.value("select max(version) from punctual.job_version");
        assert_eq!(newest, steps.len().to_string());
        let ran = "select count(*) from punctual.job_run where name = 'work' and outcome = 'ran'";
        assert_eq!(server.value(ran), "5", "version {version}");
        queue.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap();
    }
}
