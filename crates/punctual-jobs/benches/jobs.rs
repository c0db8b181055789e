//! What our desk adds to the engine: jobs per second, and how soon a job is picked up.
//!
//! ```text
//! cargo bench -p punctual-jobs --features postgres --bench jobs [-- JOBS ROUNDS SLOTS]
//! ```
//!
//! It starts a server of its own, as the tests do. Both contestants work on the same database in turns: the bare
//! engine with a handler that does nothing, and our desk with the same. The jobs are sent first, and the engine's
//! slots are woken by a `notify` every millisecond while they run: the bare engine claims one job for each signal
//! and slot, and would otherwise wait for its poll. Our desk wakes its slots itself; a second figure is without
//! these signals. Server and client share the machine's cores, so only the ratios mean anything.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a program that measures, and that ends when something fails"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use graphile_worker::{
    IntoTaskHandlerResult, TaskHandler, Worker, WorkerContext, WorkerOptions,
    tokio_postgres::TokioPostgresDatabase,
};
use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{Desk, Job, JobRun, Jobs, Postgres};
use serde::{Deserialize, Serialize};

#[path = "../tests/support/mod.rs"]
mod support;

use support::server::Server;

#[derive(Serialize, Deserialize)]
struct Nothing {
    sent: u64,
}

impl Job for Nothing {
    const NAME: &'static str = "nothing";
}

/// What a contestant tells of each run.
#[derive(Clone, Debug)]
struct Seen {
    runs: Arc<AtomicUsize>,
    at: mpsc::Sender<(u64, u64)>,
}

impl Seen {
    fn see(&self, job: &Nothing) {
        if job.sent > 0 {
            let _ = self.at.send((job.sent, micros()));
        }
        self.runs.fetch_add(1, Ordering::SeqCst);
    }
}

impl TaskHandler for Nothing {
    const IDENTIFIER: &'static str = "nothing";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        context.get_ext::<Seen>().expect("it was added").see(&self);
    }
}

fn micros() -> u64 {
    u64::try_from(support::real_micros()).unwrap()
}

#[derive(Clone, Copy)]
struct Size {
    jobs: usize,
    slots: usize,
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let [jobs, rounds, slots] = match numbers[..] {
        [] => [20_000, 5, 16],
        [jobs] => [jobs, 5, 16],
        [jobs, rounds] => [jobs, rounds, 16],
        [jobs, rounds, slots, ..] => [jobs, rounds, slots],
    };
    let size = Size { jobs, slots };
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    Postgres::on(&executor, server.url()).migrate().unwrap();
    let (mut bare, mut ours, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bare_picks, mut our_picks) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // The order of the contestants changes from round to round.
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                bare.push(with_bare(&server, size, |seen| drain(&server, size, seen, true)));
                bare_picks.push(with_bare(&server, size, |seen| pick(&server, seen)));
            } else {
                ours.push(with_ours(&server, size, |seen| drain(&server, size, seen, true)));
                our_picks.push(with_ours(&server, size, |seen| pick(&server, seen)));
            }
        }
        alone.push(with_ours(&server, size, |seen| drain(&server, size, seen, false)));
        println!(
            "round {round}: bare {:.0}/s, ours {:.0}/s, ours without signals {:.0}/s; picked up p50 and p99 in ms: bare {:?}, ours {:?}",
            bare[round], ours[round], alone[round], bare_picks[round], our_picks[round],
        );
    }
    let ratios = bare.iter().zip(&ours).map(|(bare, ours)| ours / bare).collect();
    println!(
        "{jobs} jobs, {slots} slots, medians of {rounds}: bare {:.0}/s, ours {:.0}/s, ours without signals {:.0}/s, ratio {:.2}",
        median(bare),
        median(ours),
        median(alone),
        median(ratios),
    );
    let column = |picks: &[(f64, f64)], which: fn(&(f64, f64)) -> f64| {
        median(picks.iter().map(which).collect())
    };
    println!(
        "picked up at 100 jobs/s, p50 and p99 in ms: bare {:.2} {:.2}, ours {:.2} {:.2}",
        column(&bare_picks, |it| it.0),
        column(&bare_picks, |it| it.1),
        column(&our_picks, |it| it.0),
        column(&our_picks, |it| it.1),
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What a round sees: how many have run, and when.
type Watching = (Arc<AtomicUsize>, mpsc::Receiver<(u64, u64)>);

fn watching() -> (Seen, Watching) {
    let (at, times) = mpsc::channel();
    let runs = Arc::new(AtomicUsize::new(0));
    (Seen { runs: Arc::clone(&runs), at }, (runs, times))
}

/// Runs the bare engine while `round` lasts.
fn with_bare<T>(server: &Server, size: Size, round: impl FnOnce(&Watching) -> T) -> T {
    let (seen, watching) = watching();
    let url = server.url();
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        support::block_on(async move {
            let connections = size.slots.min(8);
            let database = TokioPostgresDatabase::from_url(&url, connections).unwrap();
            let worker = WorkerOptions::default()
                .database(database)
                .concurrency(size.slots)
                .poll_interval(Duration::from_secs(1))
                .listen_os_shutdown_signals(false)
                .heartbeat_interval(Duration::from_secs(5))
                .sweep_threshold(Duration::from_secs(20))
                .add_extension(seen)
                .define_job::<Nothing>();
            let worker: Arc<Worker> = Arc::new(worker.init().await.unwrap());
            let runs = Arc::clone(&worker);
            let running = tokio::spawn(async move { runs.run().await });
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            tell.send(stop).unwrap();
            stopped.await.unwrap();
            worker.request_shutdown();
            running.await.unwrap().unwrap();
        });
    });
    let stop = told.recv().unwrap();
    let result = round(&watching);
    stop.send(()).unwrap();
    thread.join().unwrap();
    result
}

/// Runs our desk while `round` lasts.
fn with_ours<T>(server: &Server, size: Size, round: impl FnOnce(&Watching) -> T) -> T {
    let (seen, watching) = watching();
    let executor = ScheduledThreadPoolExecutor::new(size.slots);
    let jobs = Jobs::new().on(move |_: &JobRun, job: Nothing| {
        seen.see(&job);
        Ok(())
    });
    let desk: Desk = jobs.open(Postgres::on(&executor, server.url()).slots(size.slots)).unwrap();
    let result = round(&watching);
    desk.shutdown_within(Duration::from_secs(10), Duration::ZERO).unwrap();
    result
}

/// Stores jobs that are due in a moment, and returns how many were run per second.
fn drain(server: &Server, size: Size, (runs, _): &Watching, signals: bool) -> f64 {
    let before = runs.load(Ordering::SeqCst);
    server.sql(&format!(
        "select count(*) from graphile_worker.add_jobs(array(
           select row('nothing', '{{\"sent\": 0}}', null, now() + interval '2 seconds', null, null, null, null)::graphile_worker.job_spec
             from generate_series(1, {})))",
        size.jobs
    ));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if signals {
            scope.spawn(|| {
                support::block_on(async {
                    let client = server.connect().await;
                    while !stop.load(Ordering::SeqCst) {
                        client.batch_execute("notify \"jobs:insert\"").await.unwrap();
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                });
            });
        }
        let wait = |count: usize| {
            while runs.load(Ordering::SeqCst) < before + count {
                std::thread::sleep(Duration::from_micros(200));
            }
            Instant::now()
        };
        let (begun, ended) = (wait(1), wait(size.jobs));
        stop.store(true, Ordering::SeqCst);
        size.jobs as f64 / (ended - begun).as_secs_f64()
    })
}

/// Sends 100 jobs a second for three seconds, and returns how long it took until each began.
fn pick(server: &Server, (_, times): &Watching) -> (f64, f64) {
    support::block_on(async {
        let client = server.connect().await;
        let mut next = tokio::time::Instant::now();
        for _ in 0..300 {
            next += Duration::from_millis(10);
            tokio::time::sleep_until(next).await;
            let payload = format!("{{\"sent\": {}}}", micros());
            let sql = format!("select graphile_worker.add_job('nothing', '{payload}')");
            client.batch_execute(&sql).await.unwrap();
        }
    });
    let mut delays: Vec<f64> = (0..300)
        .map(|_| times.recv_timeout(Duration::from_secs(30)).unwrap())
        .map(|(sent, began)| (began.saturating_sub(sent)) as f64 / 1000.0)
        .collect();
    delays.sort_by(f64::total_cmp);
    (delays[150], delays[297])
}
