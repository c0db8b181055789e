//! Discarded jobs are told once, over all machines.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver},
    },
    time::{Duration, Instant},
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobError, JobRun, Jobs, PostgresQueue};

use crate::{
    kinds::{Stubborn, Work},
    machine::{LEASE, end_lease, postgres, sender, start, start_that_dies_telling},
    support::{LONG, for_some, opened, proxy::Proxy, receive, server::Server, wait_until},
};

/// A queue whose jobs fail, and what is told of these.
fn failing(executor: &ScheduledThreadPoolExecutor, url: &str) -> (PostgresQueue, Receiver<i64>) {
    let (tell, told) = mpsc::channel();
    let queue = opened(|| {
        let tell = tell.clone();
        let jobs = Jobs::new()
            .on(|_: &JobRun, _: Work| Err(JobError::new("it fails")))
            .max_attempts::<Work>(1)
            .on_discarded(move |job| {
                let _ = tell.send(job.id.0);
            });
        // A job whose claim was not answered is free when the lease is over.
        jobs.open(postgres(executor, url).lease(LEASE))
    });
    (queue, told)
}

fn all_are_told(server: &Server) {
    let untold = "select count(*) from punctual.job where untold or claim is not null or attempts < max_attempts";
    wait_until("all are told", || server.value(untold) == "0");
}

#[test]
fn each_discarded_job_is_told_once_when_answers_are_lost() {
    // A machine whose lease ends while it tells, because it stands still, may be beside another one that tells.
    for_some("each is told once", &[1, 2, 3, 4], |_| told_once());
}

fn told_once() -> bool {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let direct = sender(&executor, &server.url());
    let proxy = Proxy::start(&server);
    let (_queue, told) = failing(&executor, proxy.url());
    let ids: Vec<i64> = (0..300)
        .map(|number| {
            if number % 15 == 0 {
                proxy.cut();
            }
            std::thread::sleep(Duration::from_millis(5));
            direct.now(Work { number, millis: 0 }).max_attempts(1).enqueue().unwrap().id.0
        })
        .collect();
    all_are_told(&server);
    let mut times = HashMap::new();
    for id in told.try_iter() {
        *times.entry(id).or_insert(0) += 1;
    }
    assert!(ids.iter().all(|id| times.contains_key(id)), "each is told: {times:?}");
    ids.iter().all(|id| times.get(id) == Some(&1))
}

/// The first machine dies in the callback, so the job is told again: by another one that lives.
#[test]
fn a_job_is_told_again_when_its_teller_dies() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut victim = start_that_dies_telling(&server, 0);
    let dying = victim.process();
    let job = Stubborn { number: 1, millis: 0, fails: true };
    let job = queue.now(job).max_attempts(1).enqueue().unwrap();
    assert_eq!(victim.wait_for("dies_telling"), [job.id.0]);
    victim.kill();
    end_lease(&server, dying);
    let mut survivor = start(&server, 1);
    assert_eq!(survivor.wait_for("discarded"), [job.id.0, 1]);
    all_are_told(&server);
    assert!(survivor.end().iter().filter(|said| said.word == "discarded").count() == 1);
}

/// The executor has no room for the callback when the job is discarded.
#[test]
fn a_callback_that_is_refused_is_called_later() {
    let server = Server::start();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).max_pending(1);
    let executor = builder.build().unwrap();
    let filler = Arc::new(Mutex::new(None));
    let (tell, told) = mpsc::channel();
    let (fills, handle) = (Arc::clone(&filler), executor.handle());
    let jobs = Jobs::new()
        .on(move |_: &JobRun, _: Work| {
            *fills.lock().unwrap() = Some(handle.schedule(LONG * 60, || ()).unwrap());
            Err(JobError::new("it fails"))
        })
        .on_discarded(move |job| {
            let _ = tell.send(job.id.0);
        });
    let queue = jobs.open(postgres(&executor, &server.url())).unwrap();
    let job = queue.now(Work { number: 1, millis: 0 }).max_attempts(1).enqueue().unwrap();
    let untold = "select count(*) from punctual.job where untold";
    wait_until("it is discarded", || server.value(untold) == "1");
    let beats = "select until from punctual.job_worker";
    for _ in 0..3 {
        let until = server.value(beats);
        wait_until("a heartbeat", || server.value(beats) != until);
    }
    assert!(told.try_recv().is_err());
    filler.lock().unwrap().take().unwrap().cancel();
    assert_eq!(receive(&told, "it is called"), job.id.0);
    all_are_told(&server);
}

/// A shutdown waits for callbacks; in one it is refused, since it would wait for itself.
#[test]
fn a_shutdown_waits_until_discarded_jobs_are_told() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (begin, begins) = mpsc::channel();
    let (open, opened) = mpsc::channel::<()>();
    let opened = Mutex::new(opened);
    let (tell, told) = mpsc::channel();
    let own: Arc<Mutex<Option<PostgresQueue>>> = Arc::default();
    let asks = Arc::clone(&own);
    let jobs = Jobs::new()
        .on(move |_: &JobRun, _: Work| {
            begin.send(())?;
            opened.lock().unwrap().recv()?;
            Err(JobError::new("it fails"))
        })
        .on_discarded(move |_| {
            let queue = asks.lock().unwrap().clone().unwrap();
            let would_wait = queue.shutdown_within(Grace::patience(Duration::ZERO)).is_err();
            std::thread::sleep(Duration::from_millis(300));
            let _ = tell.send(would_wait);
        });
    let queue = jobs.open(postgres(&executor, &server.url())).unwrap();
    *own.lock().unwrap() = Some(queue.clone());
    queue.now(Work { number: 1, millis: 0 }).max_attempts(1).enqueue().unwrap();
    receive(&begins, "it begins");
    let begun = Instant::now();
    let closes = std::thread::spawn(move || queue.shutdown_within(Grace::patience(LONG)).unwrap());
    open.send(()).unwrap();
    closes.join().unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!(told.try_recv(), Ok(true));
    all_are_told(&server);
    drop(own.lock().unwrap().take());
}
