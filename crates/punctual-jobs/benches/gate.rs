//! The cost of a claim, on a server that this program starts: `cargo bench -p punctual-jobs --features gate`.
//!
//! The first lines are of the whole way of a tick: a worker asks, the row is read and taken, the body
//! returns, the end of the run is told. Those below are of what a replica pays that comes too late, in two
//! ways: by reading first, as the gate does, and by one statement that claims or does not.
//!
//! Server and clients share the machine, so the figures of two machines are not to be compared. Each claim
//! is two commits, which wait for the disk; `PUNCTUAL_PLACE=/dev/shm` has the server where nothing does.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that measures, and what tests are made of"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::{
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use punctual::{
    ScheduledThreadPoolExecutor, Trigger,
    gate::{Entry, RunGate, Tick},
    trigger::{Due, from_fn},
};
use punctual_jobs::gate::{Gate, NamedGate};
use support::{block_on, server::Server, server::rows};

const NAMES: u64 = 100;

fn main() {
    // `cargo test` runs benches with this word, to see that they run.
    let is_test = std::env::args().any(|arg| arg == "--test");
    let span = Duration::from_millis(if is_test { 100 } else { 4000 });
    let server = Server::start();
    for (gates, workers) in [(1, 1), (1, 4), (1, 16), (4, 4), (4, 16)] {
        claims(&server, gates, workers, span);
    }
    for clients in [1, 4] {
        late(&server, clients, span / 2);
    }
}

/// Runs ticks of 100 names for so long, in so many programs, each of which has its own names.
fn claims(server: &Server, gates: u64, workers: usize, span: Duration) {
    server.sql("drop schema if exists punctual cascade");
    let open = |_| Gate::postgres(server.url()).open().expect("the server is there");
    let gates: Vec<_> = (0..gates).map(open).collect();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let begun = Instant::now();
    thread::scope(|scope| {
        for (number, gate) in gates.iter().enumerate() {
            let names = (0..NAMES / gates.len() as u64).map(move |name| format!("{number}/{name}"));
            let asked = Arc::clone(&asked);
            scope.spawn(move || {
                let executor = ScheduledThreadPoolExecutor::new(workers);
                let tasks: Vec<_> = names
                    .map(|name| {
                        let named = gate.for_name(name).expect("a name");
                        let timed = Timed { named, asked: Arc::clone(&asked) };
                        executor
                            .task()
                            .gate(timed)
                            .repeat(past(begun + span), || {})
                            .expect("it runs")
                    })
                    .collect();
                for task in tasks {
                    task.join().expect("it ends");
                }
            });
        }
    });
    let took = begun.elapsed();
    let granted: u64 = gates.iter().map(|gate| gate.statistics().granted).sum();
    println!(
        "{} program(s) of {workers:2} worker(s): {:6.0} claims/s of {NAMES} names; asking takes {}",
        gates.len(),
        granted as f64 / took.as_secs_f64(),
        quantiles(&mut asked.lock()),
    );
}

/// Moments that have passed, and so are due at once, as long as it is not late.
fn past(end: Instant) -> impl Trigger {
    let begin = SystemTime::now() - Duration::from_secs(100_000);
    let mut moments = (0..100_000).map(move |n| Due::Wall(begin + Duration::from_secs(n)));
    from_fn(move |_| moments.next().filter(|_| Instant::now() < end))
}

struct Timed {
    named: NamedGate,
    asked: Arc<Mutex<Vec<Duration>>>,
}

impl RunGate for Timed {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        let begun = Instant::now();
        let entry = self.named.enter(tick);
        self.asked.lock().push(begun.elapsed());
        entry
    }
}

/// Asks about a tick that has ended, by so many clients at once.
fn late(server: &Server, clients: usize, span: Duration) {
    let look = "select clock_timestamp(), g.tick, g.done, g.fence, g.lease_until, g.holder
                  from (select) one left join punctual.gate g on g.name = '0/0'";
    let claim =
        "insert into punctual.gate as g (name, tick, done, fence, overtaken, holder, lease, lease_until)
                 select '0/0', '2000-01-01', false, 1, 0, 'x', '20 s', clock_timestamp() + interval '20 s'
                 on conflict (name) do update set tick = excluded.tick
                  where g.tick < excluded.tick returning g.fence";
    for (what, text) in [("read first", look), ("claim at once", claim)] {
        let before = wal(server);
        let (barrier, took) = (Barrier::new(clients), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    block_on(async {
                        let client = server.connect().await;
                        barrier.wait();
                        let all = Instant::now();
                        while all.elapsed() < span {
                            let begun = Instant::now();
                            rows(&client, text).await.expect("it is answered");
                            took.lock().push(begun.elapsed());
                        }
                    });
                });
            }
        });
        let mut took = took.into_inner();
        println!(
            "{clients} late client(s), {what:13}: {:6.0}/s, {}; {} bytes of log each",
            took.len() as f64 / span.as_secs_f64(),
            quantiles(&mut took),
            (wal(server) - before) / took.len() as u64,
        );
    }
}

/// Returns how much the server has logged.
fn wal(server: &Server) -> u64 {
    server.value("select pg_current_wal_insert_lsn() - '0/0'").parse().expect("a number")
}

fn quantiles(spans: &mut [Duration]) -> String {
    spans.sort();
    let at = |share: usize| spans[(spans.len() - 1) * share / 100].as_micros();
    format!("p50 {} us, p99 {} us", at(50), at(99))
}
