//! What a history costs: jobs a second, and bytes of the server's log and of the database for each job, without and with one.
//!
//! ```text
//! cargo bench -p punctual-jobs --features postgres --bench history [-- JOBS ROUNDS SLOTS]
//! ```
//!
//! It starts a server of its own, as the tests do, and the handlers do nothing. Rounds without a history and with one follow
//! each other, on one server. Server and client share the machine's cores.

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
    time::{Duration, Instant},
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{Job, JobRun, Jobs, Postgres};
use serde::{Deserialize, Serialize};

#[path = "../tests/support/mod.rs"]
mod support;

use support::server::Server;

#[derive(Serialize, Deserialize)]
struct Nothing {}

impl Job for Nothing {
    const NAME: &'static str = "nothing";
}

/// The figures of a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    jobs_a_second: f64,
    /// For each job.
    logged: f64,
    /// What the table of the runs has for each job, with its indexes.
    kept: f64,
}

fn main() {
    let mut numbers = std::env::args().filter_map(|word| word.parse().ok());
    let mut number = |usual: usize| numbers.next().unwrap_or(usual);
    let (jobs, rounds, slots) = (number(20_000), number(5), number(16));
    let server = Server::start();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        without.push(drain(&server, jobs, slots, None));
        with.push(drain(&server, jobs, slots, Some(Duration::from_secs(86_400))));
        println!("round {round}: without {:.1?}, with {:.1?}", without[round], with[round]);
    }
    for (name, rounds) in [("without", without), ("with", with)] {
        let of = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure).collect());
        println!(
            "{name} a history, {jobs} jobs, {slots} slots, medians of {}: {:.0} jobs/s, {:.0} bytes logged \
             and {:.0} kept for each",
            rounds.len(),
            of(|it| it.jobs_a_second),
            of(|it| it.logged),
            of(|it| it.kept)
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn value(server: &Server, text: &str) -> f64 {
    server.value(text).parse().unwrap()
}

/// Has so many jobs run that are stored before, and due in a moment.
fn drain(server: &Server, jobs: usize, slots: usize, history: Option<Duration>) -> Round {
    let runs = Arc::<AtomicUsize>::default();
    let counts = Arc::clone(&runs);
    let executor = ScheduledThreadPoolExecutor::new(slots);
    let definitions = Jobs::new().on(move |_: &JobRun, _: Nothing| {
        counts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let postgres = Postgres::on(&executor, server.url()).slots(slots);
    let postgres = match history {
        Some(keep) => postgres.history(keep),
        None => postgres,
    };
    let queue = definitions.open(postgres).unwrap();
    server.sql("truncate punctual.job, punctual.job_run");
    server.sql("vacuum analyze");
    server.sql("checkpoint");
    server.sql(&format!(
        "insert into punctual.job (name, payload, run_at)
         select 'nothing', '{{}}', now() + interval '2 seconds' from generate_series(1, {jobs})"
    ));
    let position = || value(server, "select pg_current_wal_insert_lsn() - '0/0'");
    let before = position();
    let wait_for = |count: usize| {
        while runs.load(Ordering::SeqCst) < count {
            std::thread::sleep(Duration::from_micros(200));
        }
    };
    wait_for(1);
    let begun = Instant::now();
    wait_for(jobs);
    let jobs_a_second = jobs as f64 / begun.elapsed().as_secs_f64();
    queue.shutdown_within(Grace::patience(Duration::from_secs(10))).unwrap();
    let size = "select pg_total_relation_size('punctual.job_run')";
    let kept = if history.is_some() { value(server, size) } else { 0.0 };
    Round {
        jobs_a_second,
        logged: (position() - before) / jobs as f64,
        kept: kept.max(0.0) / jobs as f64,
    }
}
