//! A transaction that stays open, and the speed of the queue on PostgreSQL beside it.
//!
//! ```text
//! cargo bench -p punctual-jobs --features postgres --bench pinned [-- SECONDS MACHINES SLOTS ENDED]
//! ```
//!
//! It starts a server of its own, as the tests do. The machines are queues of this process, each with an executor of its own, and
//! the handlers do nothing. A backlog is kept, so that the machines are busy for all that time. A round without the transaction
//! comes first; then one in which a `REPEATABLE READ` transaction is open from the beginning, so the server removes no row that
//! has ended. Each round prints a line for each tenth of its time: the jobs per second, the rows that have ended and are
//! still there, and the size of the table and its indexes. ENDED is the number of rows that have ended before the round
//! begins, so that a short run can show what a long one comes to: ten minutes at a thousand jobs per second are 600,000.

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
        atomic::{AtomicUsize, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{Job, JobQueue, JobRun, Jobs, Postgres};
use serde::{Deserialize, Serialize};

#[path = "../tests/support/mod.rs"]
mod support;

use support::server::Server;

#[derive(Serialize, Deserialize)]
struct Nothing {}

impl Job for Nothing {
    const NAME: &'static str = "nothing";
}

/// How many jobs wait at least, and how many are added at a time.
const BACKLOG: usize = 10_000;

fn main() {
    let mut numbers = std::env::args().filter_map(|word| word.parse().ok());
    let mut number = |usual: usize| numbers.next().unwrap_or(usual);
    let (seconds, machines, slots) = (number(600), number(3), number(4));
    let ended = number(0);
    let length = Duration::from_secs(seconds as u64);
    println!("{machines} machines of {slots} slots, {seconds} s without and with the transaction");
    let free = round("free", length, (machines, slots), None);
    let pinned = round("pinned", length, (machines, slots), Some(ended));
    let ratios = free.iter().zip(&pinned).map(|(free, pinned)| pinned / free);
    println!("pinned / free: {:.2?}", ratios.collect::<Vec<_>>());
}

/// Runs the machines for so long, and returns the jobs per second of each tenth. The transaction is open if it is said how many rows
/// end before.
fn round(
    what: &str,
    length: Duration,
    (machines, slots): (usize, usize),
    pinned: Option<usize>,
) -> Vec<f64> {
    let server = Server::start();
    let runs = Arc::<AtomicUsize>::default();
    let machines: Vec<_> = (0..machines).map(|_| machine(&server, slots, &runs)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pin = runtime.block_on(server.connect());
    if let Some(ended) = pinned {
        let begin = "begin isolation level repeatable read; select count(*) from punctual.job";
        runtime.block_on(pin.batch_execute(begin)).unwrap();
        // In one transaction, so that no machine sees them.
        server.sql(&format!(
            "begin;
             insert into punctual.job (name, payload, run_at)
               select 'nothing', '{{}}', now() - interval '1 hour' from generate_series(1, {ended});
             delete from punctual.job where run_at = now() - interval '1 hour';
             commit"
        ));
    }
    let (begun, mut added) = (Instant::now(), 0);
    let mut speeds = Vec::new();
    for tenth in 1..=10 {
        let (since, before) = (Instant::now(), runs.load(Ordering::SeqCst));
        while begun.elapsed() < length * tenth / 10 {
            if runs.load(Ordering::SeqCst) + BACKLOG > added {
                add(&server);
                added += BACKLOG;
            }
            sleep(Duration::from_millis(10));
        }
        let speed = (runs.load(Ordering::SeqCst) - before) as f64 / since.elapsed().as_secs_f64();
        let ended = runs.load(Ordering::SeqCst);
        let size = server.value("select pg_size_pretty(pg_total_relation_size('punctual.job'))");
        let seconds = begun.elapsed().as_secs();
        println!("{what:>6} {seconds:>5} s: {speed:>6.0} jobs/s, {ended:>8} ended, {size:>8}");
        speeds.push(speed);
    }
    for (queue, _executor) in machines {
        queue.shutdown_within(Grace::patience(Duration::from_secs(30))).unwrap();
    }
    drop(pin);
    speeds
}

fn machine(
    server: &Server,
    slots: usize,
    runs: &Arc<AtomicUsize>,
) -> (JobQueue, ScheduledThreadPoolExecutor) {
    let executor = ScheduledThreadPoolExecutor::new(slots);
    let runs = Arc::clone(runs);
    let jobs = Jobs::new().on(move |_: &JobRun, _: Nothing| {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let queue = jobs.open(Postgres::on(&executor, server.url()).slots(slots)).unwrap();
    (queue.into(), executor)
}

fn add(server: &Server) {
    server.sql(&format!(
        "insert into punctual.job (name, payload) select 'nothing', '{{}}' from generate_series(1, {BACKLOG}); notify punctual"
    ));
}
