//! How often jobs run, and when (J1, J2, J3, J5).

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobQueue, JobState};

use crate::{
    kinds::{Abort, Work},
    machine::{SLOTS, drained, end_lease, sender, start, start_with_lease},
    size,
    support::{
        LONG,
        replica::{Replica, Said},
        server::Server,
    },
};

/// Sends jobs that are due at scattered moments in `span`, and returns these moments.
fn scatter(queue: &JobQueue, jobs: i64, span: Duration, millis: u64) -> Vec<SystemTime> {
    let begin = SystemTime::now() + Duration::from_millis(300);
    let mut dues = Vec::new();
    let mut replies = Vec::new();
    for number in 0..jobs {
        // A fixed sequence that is spread evenly.
        let share = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let due = begin + span.mul_f64(share as f64 / (1_u64 << 24) as f64);
        dues.push(due);
        replies.push(queue.at(due, Work { number, millis }).enqueue_async());
    }
    for reply in replies {
        reply.wait(LONG).unwrap();
    }
    dues
}

/// Returns how often each job has begun.
fn begins(said: &[Said]) -> HashMap<i64, usize> {
    let mut runs = HashMap::new();
    for said in said.iter().filter(|said| said.word == "begins") {
        *runs.entry(said.numbers[0]).or_default() += 1;
    }
    runs
}

fn micros(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

#[test]
fn each_job_runs_once_and_none_early() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machines: Vec<_> = (0..3).map(|number| start(&server, number)).collect();
    let jobs = size(600, 20_000);
    let dues = scatter(&queue, jobs, size(Duration::from_secs(2), Duration::from_secs(5)), 0);
    drained(&server);
    let said: Vec<Said> = machines.into_iter().flat_map(Replica::end).collect();
    let runs = begins(&said);
    assert_eq!(runs.len() as i64, jobs);
    assert!(runs.values().all(|runs| *runs == 1));
    for said in said.iter().filter(|said| said.word == "begins") {
        let (number, at) = (said.numbers[0], said.numbers[1]);
        assert!(at >= micros(dues[usize::try_from(number).unwrap()]), "job {number} was early");
    }
    let at_work: std::collections::HashSet<_> = said.iter().map(|said| said.replica).collect();
    assert_eq!(at_work.len(), 3, "all machines have worked");
}

#[test]
fn no_job_is_lost_when_machines_are_killed_and_the_server_restarts() {
    let mut server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    // A claim whose answer is lost with the server is free after its lease.
    let lease = Duration::from_secs(60);
    let start = |server: &Server, number| start_with_lease(server, number, lease);
    let mut machines: Vec<_> = (0..3).map(|number| start(&server, number)).collect();
    let jobs = size(500, 20_000);
    let span = size(Duration::from_secs(4), Duration::from_secs(60));
    scatter(&queue, jobs, span, 10);
    let mut said = Vec::new();
    let (kills, mut snapshot) = (size(3, 30), None);
    for kill in 0..kills {
        let number = kill as usize % 3;
        // At whichever moment of its work, and not before it has some.
        machines[number].wait_for("ran");
        std::thread::sleep(span / (2 * kills + 2));
        let dead = machines[number].process();
        said.extend(machines.remove(number).kill());
        end_lease(&server, dead);
        machines.insert(number, start(&server, number));
        if kill == kills / 2 {
            server.restart_immediate();
            // From here on the server keeps each row that ends.
            snapshot = Some(server.pin_snapshot());
        }
    }
    drained(&server);
    drop(snapshot);
    said.extend(machines.into_iter().flat_map(Replica::end));
    let runs = begins(&said);
    assert_eq!(runs.len() as i64, jobs, "none is lost");
    let more: usize = runs.values().map(|runs| runs - 1).sum();
    // In flight: at a kill those of one machine, at the restart those of all three.
    assert!(more <= SLOTS * (kills as usize + 3), "{more} runs too many");
    // An effect that is made once for each job is made exactly so often.
    let ran: std::collections::HashSet<i64> =
        said.iter().filter(|said| said.word == "ran").map(|said| said.numbers[0]).collect();
    assert_eq!(ran.len() as i64, jobs);
}

#[test]
fn jobs_outlive_every_process() {
    let mut server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    scatter(&queue, 50, Duration::from_secs(1), 0);
    queue.shutdown_within(Grace::patience(Duration::ZERO)).unwrap();
    drop(queue);
    server.stop();
    std::thread::sleep(Duration::from_millis(1500));
    server.again();
    let machine = start(&server, 0);
    drained(&server);
    let runs = begins(&machine.end());
    assert_eq!((runs.len(), runs.values().sum::<usize>()), (50, 50));
}

#[test]
fn a_job_that_kills_its_process_is_discarded() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut survivor = None;
    let ticket = queue.now(Abort {}).max_attempts(2).enqueue().unwrap();
    for attempt in 1..=2 {
        let mut victim = start(&server, attempt);
        assert_eq!(victim.wait_for("aborts"), [attempt as i64], "each death counts");
        let dead = victim.process();
        victim.kill();
        end_lease(&server, dead);
        if attempt == 2 {
            survivor = Some(start(&server, 0));
        }
    }
    let mut survivor = survivor.unwrap();
    assert_eq!(survivor.wait_for("discarded"), [ticket.id.0, 2]);
    assert!(matches!(queue.state(ticket.id).unwrap(), JobState::Discarded { .. }));
    queue.now(Work { number: 7, millis: 0 }).enqueue().unwrap();
    assert_eq!(survivor.wait_for("ran")[0], 7, "others are unharmed");
}
