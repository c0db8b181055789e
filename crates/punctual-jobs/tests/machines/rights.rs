//! Whose the tables are: rights, schemas, versions, and leases that differ.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobChange, JobRun, Jobs, OpenError, Postgres, Schedule};

use crate::{
    kinds::{Directed, Tick, Work},
    machine::{beats, drained, postgres, sender, start, start_with_lease},
    support::{LONG, opened, receive, server::Server, wait_until},
};

/// The grants, as the page on the queue says them.
pub(crate) fn documented_grants() -> String {
    let source = include_str!("../../src/postgres/settings.rs");
    let lines = source.lines().map(|line| line.trim_start_matches("///").trim());
    let grants: Vec<_> = lines.filter(|line| line.starts_with("grant ")).collect();
    assert_eq!(grants.len(), 4);
    grants.concat()
}

#[test]
fn a_role_with_rights_to_rows_alone_can_do_everything() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    opened(|| Postgres::on(&executor, server.url()).migrate());
    server.sql("create role app login");
    server.sql(&documented_grants());
    let url = server.url().replace("user=punctual", "user=app");
    let (tell, told) = mpsc::channel();
    let queue = opened(|| {
        let (ticks, tell) = (tell.clone(), tell.clone());
        let jobs = Jobs::new()
            .on(move |run: &JobRun, job: Work| {
                run.fencing_token()?;
                tell.send(job.number)?;
                if run.attempt == 1 { Err(punctual_jobs::JobError::new("again")) } else { Ok(()) }
            })
            .backoff::<Work>(punctual::Backoff::constant(Duration::from_millis(1)))
            .on(move |_: &JobRun, _: Tick| Ok(ticks.send(0)?))
            .every(punctual_jobs::aligned(Duration::from_secs(1)), Tick {});
        jobs.open(postgres(&executor, &url))
    });
    queue.now(Work { number: 1, millis: 0 }).key("k").ordering_key("s").enqueue().unwrap();
    let mut seen = Vec::new();
    while seen.iter().filter(|number| **number == 1).count() < 2 || !seen.contains(&0) {
        seen.push(receive(&told, "both"));
    }
    let later = Duration::from_secs(3600);
    queue.after(later, Work { number: 2, millis: 0 }).key("k").enqueue().unwrap();
    queue.reschedule("k", 2 * later).unwrap();
    assert_eq!(queue.cancel("k").unwrap(), JobChange::Done);
    let schedule = Schedule::every("a", Duration::from_millis(100), &Tick {});
    queue.schedules().put(schedule).call().unwrap();
    // While a job of a tick waits or runs there is no other one.
    wait_until("a run", || queue.schedules().run_now("a").call().unwrap().is_some());
    let first = || queue.schedules().list().call().unwrap().remove(0);
    wait_until("it ticks", || first().enqueued > 2);
    assert!(queue.schedules().pause("a").call().unwrap());
    assert!(queue.schedules().remove("a").call().unwrap());
    queue.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap();
    assert_eq!(server.value("select count(*) from punctual.job_worker"), "0", "it has left");
}

/// What an acknowledged job must not depend on, and what costs a claim much: both are set by the queue, whatever a role has set.
#[test]
fn the_settings_of_a_role_do_not_weaken_a_commit() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    opened(|| Postgres::on(&executor, server.url()).migrate());
    server.sql("create table public.seen (commit text, jit text)");
    server.sql(
        "create function note() returns trigger language plpgsql as $$ begin \
         insert into public.seen values (current_setting('synchronous_commit'), current_setting('jit')); return new; end $$",
    );
    server.sql(
        "create trigger note after insert on punctual.job for each row execute function note()",
    );
    for (asked, held) in [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")] {
        server.sql(&format!("alter role punctual set synchronous_commit = {asked}"));
        server.sql("alter role punctual set jit = on");
        server.sql("truncate public.seen");
        let queue = sender(&executor, &server.url());
        queue.after(LONG, Work { number: 1, millis: 0 }).enqueue().unwrap();
        assert_eq!(
            server.value("select commit || ' ' || jit from public.seen"),
            format!("{held} off")
        );
    }
}

/// A claim that is refused is a line on standard error if no program listens. The program is this test again.
#[test]
fn a_missing_grant_is_not_silent() {
    const CHILD: &str = "PUNCTUAL_TEST_URL";
    if let Ok(url) = std::env::var(CHILD) {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let _queue = opened(|| Jobs::new().on(|_, _: Tick| Ok(())).open(postgres(&executor, &url)));
        thread::sleep(LONG);
        return;
    }
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    opened(|| Postgres::on(&executor, server.url()).migrate());
    server.sql("create role app login");
    server.sql(&documented_grants());
    server.sql("revoke usage on sequence punctual.job_claim from app");
    sender(&executor, &server.url()).now(Tick {}).enqueue().unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "rights::a_missing_grant_is_not_silent", "--nocapture"]);
    program.env(CHILD, server.url().replace("user=punctual", "user=app"));
    let mut program = program.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(program.stderr.take().unwrap()).lines();
    let said = lines.map(Result::unwrap).find(|line| line.starts_with("punctual-jobs: "));
    program.kill().unwrap();
    program.wait().unwrap();
    let said = said.unwrap_or_default();
    assert!(said.contains("permission denied for sequence job_claim"), "{said}");
}

#[test]
fn a_role_without_rights_is_told_so() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    server.sql("create role app login");
    let url = server.url().replace("user=punctual", "user=app");
    let error = Jobs::new().open(postgres(&executor, &url)).unwrap_err();
    let source = std::error::Error::source(&error).and_then(|it| it.source()).unwrap().to_string();
    assert!(source.contains("permission denied"), "{source}");
}

#[test]
fn queues_on_two_schemas_have_nothing_to_do_with_each_other() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    let (tell, told) = mpsc::channel();
    let open = |schema: &'static str| {
        opened(|| {
            let tell = tell.clone();
            let jobs =
                Jobs::new().on(move |_: &JobRun, job: Work| Ok(tell.send((schema, job.number))?));
            jobs.open(postgres(&executor, &server.url()).schema(schema))
        })
    };
    let (one, two) = (open("one"), open("two"));
    for number in 0..10 {
        one.now(Work { number, millis: 0 }).key("k").enqueue().unwrap();
        assert_eq!(receive(&told, "a run"), ("one", number));
        two.now(Work { number, millis: 0 }).ordering_key("s").enqueue().unwrap();
        assert_eq!(receive(&told, "a run"), ("two", number));
    }
    assert_eq!(server.value("select to_regnamespace('punctual') is null"), "t");
    let error = Jobs::new().open(postgres(&executor, &server.url()).schema("a\"b")).unwrap_err();
    assert!(matches!(error, OpenError::Setting(_)), "{error}");
}

#[test]
fn tables_of_a_newer_version_are_left_alone() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    drop(sender(&executor, &server.url()));
    server.sql("insert into punctual.job_version (version) values (1000)");
    let on = || postgres(&executor, &server.url());
    for error in [Jobs::new().open(on()).unwrap_err(), on().migrate().unwrap_err()] {
        assert!(matches!(error, OpenError::NewerTables { found: 1000, .. }), "{error}");
        assert!(error.to_string().contains("version 1000"), "{error}");
    }
    assert_eq!(server.value("select max(version) from punctual.job_version"), "1000");
}

/// They are neither made again nor taken for those of a newer version.
#[test]
fn tables_of_a_version_before_the_first_release_are_left_alone() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    server.sql("create schema punctual");
    server.sql("create table punctual.job_version (version int primary key)");
    let on = || postgres(&executor, &server.url());
    for version in [1, 11] {
        server.sql(&format!("insert into punctual.job_version values ({version})"));
        for error in [Jobs::new().open(on()).unwrap_err(), on().migrate().unwrap_err()] {
            assert!(matches!(error, OpenError::OlderTables { found } if found == version));
            assert!(error.to_string().contains("drop the schema"), "{error}");
        }
    }
    assert_eq!(server.value("select to_regclass('punctual.job') is null"), "t");
}

/// A machine with a short lease does not take the jobs of one with a long lease, which beats seldom.
#[test]
fn each_machine_has_its_own_lease() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut slow = start(&server, 0);
    let job = Directed { number: 1, place: server.place().path().join("directed") };
    queue.now(job.clone()).enqueue().unwrap();
    slow.wait_for("directed");
    let hasty = start_with_lease(&server, 1, Duration::from_millis(200));
    // For many of its leases.
    beats(&server, hasty.process(), 20);
    job.end(1, "succeeds");
    slow.wait_for("directed_ends");
    drained(&server);
    assert!(hasty.end().iter().all(|said| said.word != "directed"), "it took a job that ran");
    assert!(slow.end().iter().all(|said| said.word != "lost"));
}
