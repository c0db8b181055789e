//! What a limit costs where it is not what binds: jobs of five milliseconds on several machines.
//!
//! ```text
//! cargo bench -p punctual-jobs --features postgres --bench limits [-- JOBS MACHINES SLOTS ROUNDS]
//! ```
//!
//! It starts a server of its own for each line, as the tests do. The machines are queues of this process, each with an executor of its
//! own. Rounds without a limit and with one follow each other. Each line has the jobs per second, what part that is of the
//! round without a limit, and how many statements the server has rolled back.

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

use common::{Machines, Numbers, Plan, Server, median};
use punctual_jobs::JobLimit;

fn main() {
    let mut numbers = Numbers::read();
    let jobs = numbers.next(2000);
    let nap = Duration::from_millis(5);
    let plan = Plan { nap, ..Plan::new(numbers.next(2), numbers.next(4)) };
    let rounds = numbers.next(3);
    println!("{jobs} jobs of 5 ms, {} machines of {} slots", plan.machines, plan.slots);
    let limits = [
        ("no limit", None),
        ("at_once(6)", Some(JobLimit::at_once(6))),
        ("at_once(1) for each of eight keys", Some(JobLimit::at_once(1).for_each_key())),
        ("at_once(64), which never binds", Some(JobLimit::at_once(64))),
        ("at_once(64) for each of eight keys", Some(JobLimit::at_once(64).for_each_key())),
    ];
    let mut ratios = [const { Vec::new() }; 5];
    for _ in 0..rounds {
        let mut free = 0.0;
        for ((what, limit), ratios) in limits.into_iter().zip(&mut ratios) {
            let speed = round(what, jobs, Plan { limit, ..plan });
            if limit.is_none() {
                free = speed;
            }
            ratios.push(speed / free);
        }
    }
    let medians = ratios.map(median);
    println!("of the speed without a limit, medians of {rounds}: {medians:.2?}");
}

fn round(what: &str, jobs: usize, plan: Plan) -> f64 {
    let server = Server::start();
    let machines = Machines::open(&server, plan);
    server.sql(&format!(
        "insert into punctual.job (name, payload, limit_key, due)
         select 'nothing', '{{}}', (n % 8)::text, true from generate_series(1, {jobs}) n; notify punctual"
    ));
    let begun = Instant::now();
    machines.wait_for(jobs);
    let speed = jobs as f64 / begun.elapsed().as_secs_f64();
    machines.shut_down();
    let undone = server
        .value("select xact_rollback from pg_stat_database where datname = current_database()");
    println!("{what}: {speed:.0} jobs/s, {undone} rollbacks");
    speed
}
