//! The queue on PostgreSQL: jobs per second, how soon a job is picked up, and what ordering keys cost.
//!
//! ```text
//! cargo bench -p punctual-jobs --features postgres --bench jobs [-- JOBS ROUNDS SLOTS KEYS]
//! ```
//!
//! It starts a server of its own, as the tests do, and the handlers do nothing. Server and client share the
//! machine's cores. Bytes are those of the server's log.

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

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use common::{Machines, Nothing, Numbers, Plan, Server, logged, median, micros, support};

fn main() {
    let mut numbers = Numbers::read();
    let (jobs, rounds) = (numbers.next(20_000), numbers.next(5));
    let (slots, keys) = (numbers.next(16), numbers.next(2000));
    let server = Server::start();
    let mut figures: [Vec<f64>; 11] = Default::default();
    for round in 0..rounds {
        let (speed, bytes) = with_queue(&server, slots, |machines| drain(&server, jobs, machines));
        let (median_pick, late_pick) =
            with_queue(&server, slots, |machines| pick(&server, machines));
        let sends = with_queue(&server, slots, sends);
        let batches = [false, true]
            .map(|keyed| with_queue(&server, slots, |machines| batches(machines, keyed)));
        let ordered = with_queue(&server, slots, |machines| ordered(&server, machines, keys));
        let one = with_queue(&server, slots, |machines| one_after_another(&server, machines));
        let [plain, keyed] = batches;
        let sent = [speed, bytes, median_pick, late_pick, sends, plain, keyed];
        let row = [&sent[..], &[ordered.0, ordered.1, one.0, one.1]].concat();
        println!("round {round}: {row:.1?}");
        figures.iter_mut().zip(row).for_each(|(column, figure)| column.push(figure));
        server.sql("delete from punctual.job");
    }
    let [
        speed,
        bytes,
        median_pick,
        late_pick,
        sends,
        plain,
        keyed,
        ordered,
        ordered_bytes,
        each,
        each_bytes,
    ] = figures.map(median);
    println!(
        "{jobs} jobs, {slots} slots, medians of {rounds}:
         {speed:.0} jobs/s, {bytes:.0} bytes each
         picked up at 100 jobs/s: p50 {median_pick:.2} ms, p99 {late_pick:.2} ms
         {sends:.0} sends/s; by batches of 5000: {plain:.0} jobs/s, with unique keys {keyed:.0} jobs/s
         {keys} ordering keys of four jobs each: {ordered:.0} jobs/s, {ordered_bytes:.0} bytes each
         then one job after another of a key: {each:.2} ms and {each_bytes:.0} bytes each"
    );
}

/// Has a machine while `round` lasts.
fn with_queue<T>(server: &Server, slots: usize, round: impl FnOnce(&Machines) -> T) -> T {
    let machines = Machines::open(server, Plan::new(1, slots));
    let result = round(&machines);
    machines.shut_down();
    result
}

/// Stores jobs that are due in a moment, and returns how many were run per second, and bytes for each.
fn drain(server: &Server, jobs: usize, machines: &Machines) -> (f64, f64) {
    server.sql(&format!(
        "insert into punctual.job (name, payload, run_at)
         select 'nothing', '{{\"sent\": 0}}', now() + interval '2 seconds' from generate_series(1, {jobs})"
    ));
    let before = logged(server);
    machines.wait_for(1);
    let begun = Instant::now();
    machines.wait_for(jobs);
    let speed = jobs as f64 / begun.elapsed().as_secs_f64();
    sleep(Duration::from_millis(300));
    (speed, (logged(server) - before) / jobs as f64)
}

/// Sends 100 jobs a second for three seconds, and returns how long it took until each began.
fn pick(server: &Server, machines: &Machines) -> (f64, f64) {
    support::block_on(async {
        let client = server.connect().await;
        let mut next = tokio::time::Instant::now();
        for _ in 0..300 {
            next += Duration::from_millis(10);
            tokio::time::sleep_until(next).await;
            let payload = format!("{{\"sent\": {}}}", micros());
            let sql = format!(
                "insert into punctual.job (name, payload) values ('nothing', '{payload}'); notify punctual"
            );
            client.batch_execute(&sql).await.unwrap();
        }
    });
    let mut delays: Vec<f64> = (0..300)
        .map(|_| machines.begun.recv_timeout(Duration::from_secs(30)).unwrap())
        .map(|(sent, began)| (began.saturating_sub(sent)) as f64 / 1000.0)
        .collect();
    delays.sort_by(f64::total_cmp);
    (delays[150], delays[297])
}

fn sends(machines: &Machines) -> f64 {
    let begun = Instant::now();
    let later = Duration::from_secs(360_000);
    let replies: Vec<_> = (0..5000)
        .map(|_| machines.queue().after(later, Nothing { sent: 0 }).enqueue_async())
        .collect();
    for reply in replies {
        reply.wait(Duration::from_secs(60)).unwrap();
    }
    5000.0 / begun.elapsed().as_secs_f64()
}

/// Sends batches of 5000 jobs one after another, and returns how many jobs were stored per second.
fn batches(machines: &Machines, is_keyed: bool) -> f64 {
    let (begun, later) = (Instant::now(), Duration::from_secs(360_000));
    for batch in 0..4 {
        let jobs = (0..5000).map(|number| {
            let job = machines.queue().after(later, Nothing { sent: 0 });
            if is_keyed { job.unique(format!("{batch}/{number}")) } else { job }
        });
        assert_eq!(machines.queue().enqueue_all(jobs).unwrap().len(), 5000);
    }
    20_000.0 / begun.elapsed().as_secs_f64()
}

/// Runs four jobs of each of many ordering keys.
fn ordered(server: &Server, machines: &Machines, keys: usize) -> (f64, f64) {
    server.sql(&format!(
        "insert into punctual.job (name, payload, ordering_key, run_at)
         select 'nothing', '{{\"sent\": 0}}', 'user/' || n % {keys}, now() + interval '2 seconds'
           from generate_series(1, 4 * {keys}) n"
    ));
    let before = logged(server);
    machines.wait_for(1);
    let begun = Instant::now();
    machines.wait_for(4 * keys);
    let speed = 4.0 * keys as f64 / begun.elapsed().as_secs_f64();
    sleep(Duration::from_millis(300));
    (speed, (logged(server) - before) / (4.0 * keys as f64))
}

/// Sends a job of an ordering key when the last one has run.
fn one_after_another(server: &Server, machines: &Machines) -> (f64, f64) {
    let (before, begun) = (logged(server), Instant::now());
    for at in 0..200 {
        machines.queue().now(Nothing { sent: 0 }).ordering_key("user/42").enqueue().unwrap();
        machines.wait_for(at + 1);
    }
    let each = begun.elapsed().as_secs_f64() * 1000.0 / 200.0;
    sleep(Duration::from_millis(300));
    (each, (logged(server) - before) / 200.0)
}
