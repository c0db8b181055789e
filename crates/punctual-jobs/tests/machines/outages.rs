//! Connections that break (J8).

use std::time::{Duration, Instant};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobRun, Jobs};

use crate::{
    kinds::Work,
    machine::{SLOTS, drained, postgres, sender, start},
    size,
    support::server::Server,
};

#[test]
fn connections_come_back_and_leave_nothing_behind() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machine = start(&server, 0);
    let end = Instant::now() + size(Duration::from_secs(4), Duration::from_secs(60));
    let (mut number, mut sent, mut next_blow) = (0, Vec::new(), Instant::now());
    while Instant::now() < end {
        if Instant::now() >= next_blow {
            next_blow += size(Duration::from_millis(500), Duration::from_secs(1));
            let others = "select pg_terminate_backend(pid) from pg_stat_activity
                where pid <> pg_backend_pid() and backend_type = 'client backend'";
            server.sql(others);
        }
        // One that has no answer may be stored or not.
        if queue.now(Work { number, millis: 0 }).enqueue().is_ok() {
            sent.push(number);
        }
        number += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    // The queue is as good as new.
    queue.now(Work { number, millis: 0 }).enqueue().unwrap();
    drained(&server);
    queue.shutdown_within(Duration::ZERO, Duration::ZERO).unwrap();
    let connections = "select count(*) from pg_stat_activity where backend_type = 'client backend'";
    let connections: usize = server.value(connections).parse().unwrap();
    // Four of the machine, and this question's; and those that the server has not yet seen the end of.
    assert!(connections <= 4 + 1 + 2, "{connections} connections");
    let said = machine.end();
    let numbers = |word: &str| -> Vec<i64> {
        let meant = said.iter().filter(|said| said.word == word);
        meant.flat_map(|said| said.numbers.first().copied()).collect()
    };
    let ran = numbers("ran");
    assert!(sent.iter().all(|number| ran.contains(number)), "none that was stored is lost");
    // The process, the test, the harness, the workers, and the queue.
    assert!(numbers("threads")[0] <= 4 + SLOTS as i64, "{:?}", numbers("threads"));
}

#[test]
fn a_silent_server_costs_the_verbs_their_limit_and_the_runs_their_claims() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (tell, told) = std::sync::mpsc::channel();
    let jobs = Jobs::new().on(move |run: &JobRun, _: Work| {
        tell.send("begins")?;
        run.token().wait();
        tell.send("is stopped")?;
        Ok(())
    });
    let limit = Duration::from_secs(5);
    let queue = jobs.open(postgres(&executor, &server.url()).request_timeout(limit)).unwrap();
    queue.now(Work { number: 1, millis: 0 }).enqueue().unwrap();
    assert_eq!(told.recv().unwrap(), "begins");
    server.freeze();
    let asked = Instant::now();
    assert!(queue.cancel("nobody").is_err());
    assert!(asked.elapsed() >= limit);
    assert_eq!(told.recv_timeout(Duration::from_secs(60)).unwrap(), "is stopped");
    server.thaw();
    let sender = sender(&executor, &server.url());
    sender.now(Work { number: 2, millis: 0 }).enqueue().unwrap();
    assert_eq!(told.recv_timeout(Duration::from_secs(60)).unwrap(), "begins");
    drop(queue);
}
