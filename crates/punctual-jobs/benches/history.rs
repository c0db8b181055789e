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

mod common;

use std::time::{Duration, Instant};

use common::{Machines, Numbers, Plan, Server, logged, median, value};

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
    let mut numbers = Numbers::read();
    let (jobs, rounds, slots) = (numbers.next(20_000), numbers.next(5), numbers.next(16));
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

/// Has so many jobs run that are stored before, and due in a moment.
fn drain(server: &Server, jobs: usize, slots: usize, history: Option<Duration>) -> Round {
    let machines = Machines::open(server, Plan { history, ..Plan::new(1, slots) });
    server.sql("truncate punctual.job, punctual.job_run");
    server.sql("vacuum analyze");
    server.sql("checkpoint");
    server.sql(&format!(
        "insert into punctual.job (name, payload, run_at)
         select 'nothing', '{{}}', now() + interval '2 seconds' from generate_series(1, {jobs})"
    ));
    let before = logged(server);
    machines.wait_for(1);
    let begun = Instant::now();
    machines.wait_for(jobs);
    let jobs_a_second = jobs as f64 / begun.elapsed().as_secs_f64();
    machines.shut_down();
    let size = "select pg_total_relation_size('punctual.job_run')";
    let kept = if history.is_some() { value(server, size) } else { 0.0 };
    Round {
        jobs_a_second,
        logged: (logged(server) - before) / jobs as f64,
        kept: kept.max(0.0) / jobs as f64,
    }
}
