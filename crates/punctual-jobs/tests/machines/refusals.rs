//! An executor that does not take the runs of a queue.

use std::{
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use punctual::{
    AbortPolicy, BlockPolicy, CallerRunsPolicy, DiscardOldestPolicy, DiscardPolicy,
    RejectedExecutionHandler, ScheduledFuture, ScheduledThreadPoolExecutor,
};
use punctual_jobs::{JobRun, JobState, Jobs, PostgresQueue, QueueEvent};

use crate::{
    kinds::Work,
    machine::{drained, postgres, sender, start},
    support::{opened, receive, server::Server, wait_until},
};

const HOUR: Duration = Duration::from_secs(3600);

/// An executor without room, and what takes it.
fn full(
    handler: impl RejectedExecutionHandler + 'static,
) -> (ScheduledThreadPoolExecutor, ScheduledFuture<()>) {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).max_pending(1);
    let executor = builder.rejected_execution_handler(handler).build().unwrap();
    let filler = executor.schedule(HOUR, || ()).unwrap();
    (executor, filler)
}

/// The reports of a queue on this executor: the attempt and the thread of each run, and how many runs were refused.
enum Told {
    Ran(u32, Option<String>),
    Refused(u64),
}

fn open(
    server: &Server,
    executor: &ScheduledThreadPoolExecutor,
) -> (PostgresQueue, Receiver<Told>) {
    let (tell, told) = mpsc::channel();
    let queue = opened(|| {
        let (runs, tell) = (tell.clone(), tell.clone());
        let jobs = Jobs::new().on(move |run: &JobRun, _: Work| {
            let name = thread::current().name().map(str::to_owned);
            Ok(runs.send(Told::Ran(run.attempt, name))?)
        });
        let settings = postgres(executor, &server.url()).on_event(move |event| {
            if let QueueEvent::RunsRefused { runs, .. } = event {
                let _ = tell.send(Told::Refused(*runs));
            }
        });
        jobs.open(settings)
    });
    (queue, told)
}

/// Waits until so many jobs were claimed, by the numbers of the claims.
fn claimed(server: &Server, claims: i64) {
    let last = "select case when is_called then last_value else 0 end from punctual.job_claim";
    wait_until("claims", || server.value(last).parse::<i64>().unwrap() >= claims);
}

/// The job has one attempt, which is not used up, and it runs in a worker when there is room.
fn a_run_waits_for_room(handler: impl RejectedExecutionHandler + 'static) {
    let server = Server::start();
    let (executor, filler) = full(handler);
    let (queue, told) = open(&server, &executor);
    let begun = Instant::now();
    let job = queue.now(Work { number: 1, millis: 0 }).max_attempts(1).enqueue().unwrap();
    claimed(&server, 4);
    assert!(begun.elapsed() >= Duration::from_millis(100 + 200 + 400), "it does not spin");
    wait_until("it is free", || {
        queue.state(job.id).unwrap() == JobState::Waiting { attempts: 0, last_error: None }
    });
    assert!(told.try_recv().is_err() && !filler.is_done());
    filler.cancel();
    let (attempt, name) = loop {
        if let Told::Ran(attempt, name) = receive(&told, "a run") {
            break (attempt, name);
        }
    };
    assert_eq!(attempt, 1);
    assert_ne!(name.as_deref(), Some("punctual-jobs"), "the thread of the queue");
    drained(&server);
}

#[test]
fn a_run_that_is_refused_is_no_attempt() {
    a_run_waits_for_room(AbortPolicy);
}

#[test]
fn no_handler_runs_in_the_thread_of_the_queue() {
    a_run_waits_for_room(CallerRunsPolicy);
}

#[test]
fn the_thread_of_the_queue_does_not_wait_for_room() {
    a_run_waits_for_room(BlockPolicy::new(HOUR));
}

#[test]
fn a_run_that_would_be_discarded_is_no_attempt() {
    a_run_waits_for_room(DiscardPolicy);
}

#[test]
fn a_run_discards_no_task_of_the_programs() {
    a_run_waits_for_room(DiscardOldestPolicy);
}

/// A refused run is told as soon as there is room for the callback.
#[test]
fn runs_that_are_refused_are_told() {
    let server = Server::start();
    let (executor, filler) = full(AbortPolicy);
    let (queue, told) = open(&server, &executor);
    queue.now(Work { number: 1, millis: 0 }).enqueue().unwrap();
    claimed(&server, 2);
    filler.cancel();
    let (mut refused, mut ran) = (0, 0);
    while refused == 0 || ran == 0 {
        match receive(&told, "a run") {
            Told::Refused(runs) => refused += runs,
            Told::Ran(attempt, _) => ran = attempt,
        }
    }
    assert_eq!(ran, 1);
}

/// The program shuts its executor down first: what waits there is another machine's, and had no attempt here.
#[test]
fn a_run_that_an_executor_drops_is_no_attempt() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let other = ScheduledThreadPoolExecutor::new(1);
    let (hold, held) = mpsc::channel::<()>();
    let (begin, begins) = mpsc::channel();
    executor
        .execute(move || {
            begin.send(()).unwrap();
            let _ = held.recv();
        })
        .unwrap();
    begins.recv().unwrap();
    let (queue, _told) = open(&server, &executor);
    let job = queue.now(Work { number: 1, millis: 0 }).max_attempts(1).enqueue().unwrap();
    claimed(&server, 1);
    let elsewhere = sender(&other, &server.url());
    drop(executor.shutdown_now());
    wait_until("it is free", || {
        elsewhere.state(job.id).unwrap() == JobState::Waiting { attempts: 0, last_error: None }
    });
    let mut machine = start(&server, 0);
    assert_eq!(machine.wait_for("begins")[2], 1, "the first attempt");
    drop(hold);
}
