//! Connections that break (J8).

use std::time::{Duration, Instant};

use punctual::{CancellationToken, Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobRun, JobState, Jobs};

use crate::{
    kinds::Work,
    machine::{LEASE, SLOTS, drained, postgres, sender, start},
    size,
    support::{opened, receive, receive_until, server::Server, wait_until},
};

#[test]
fn connections_come_back_and_leave_nothing_behind() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machine = start(&server, 0);
    let mut sent = Vec::new();
    let (jobs, blow) = (size(600, 9000), size(75, 150));
    for number in 0..jobs {
        if number % blow == 0 {
            let others = "select pg_terminate_backend(pid) from pg_stat_activity
                where pid <> pg_backend_pid() and backend_type = 'client backend'";
            server.sql(others);
        }
        // One that has no answer may be stored or not.
        if queue.now(Work { number, millis: 0 }).enqueue().is_ok() {
            sent.push(number);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // The queue is as good as new.
    queue.now(Work { number: jobs, millis: 0 }).enqueue().unwrap();
    drained(&server);
    queue.shutdown_within(Grace::patience(Duration::ZERO)).unwrap();
    let connections = "select count(*) from pg_stat_activity where backend_type = 'client backend'";
    // Four of the machine, and this question's. The server sees the end of the others a little later.
    wait_until("nothing is left behind", || {
        server.value(connections).parse::<usize>().unwrap() <= 4 + 1
    });
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

/// While a server is down no machine can say that it lives. When it is up again, that is held against none of them: each job runs
/// once, and what it returns counts.
#[test]
fn an_outage_is_not_held_against_the_machines() {
    let mut server = Server::start();
    let (tell, told) = std::sync::mpsc::channel();
    let go_on = CancellationToken::new();
    // The second one is the first to be heard when the server is up.
    let open = |executor: &ScheduledThreadPoolExecutor, heartbeat| {
        opened(|| {
            let (tell, go_on) = (tell.clone(), go_on.clone());
            let jobs = Jobs::new().on(move |_: &JobRun, job: Work| {
                tell.send(job.number)?;
                go_on.wait();
                Ok(())
            });
            jobs.open(postgres(executor, &server.url()).lease(LEASE).heartbeat(heartbeat))
        })
    };
    let executors = [3, 3].map(ScheduledThreadPoolExecutor::new);
    let queues = [open(&executors[0], LEASE / 2), open(&executors[1], LEASE / 50)];
    let ids: Vec<_> = (0..6)
        .map(|number| {
            queues[0].now(Work { number, millis: 0 }).max_attempts(1).enqueue().unwrap().id
        })
        .collect();
    let mut began: Vec<i64> = ids.iter().map(|_| receive(&told, "each begins")).collect();
    server.stop();
    // The outage itself: it is longer than the lease.
    std::thread::sleep(2 * LEASE);
    server.again();
    let up = format!(
        "select clock_timestamp() - pg_postmaster_start_time() > make_interval(secs => {})",
        3 * LEASE.as_secs()
    );
    wait_until("a sweep that believes the leases", || server.value(&up) == "t");
    go_on.cancel();
    for id in ids {
        wait_until("its end", || queues[1].state(id).unwrap() == JobState::Gone);
    }
    began.extend(told.try_iter());
    began.sort_unstable();
    assert_eq!(began, [0, 1, 2, 3, 4, 5], "none began a second time");
}

#[test]
fn a_silent_server_costs_the_verbs_their_limit_and_the_runs_their_claims() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (tell, told) = std::sync::mpsc::channel();
    let limit = Duration::from_secs(5);
    let sender = sender(&executor, &server.url());
    let queue = opened(|| {
        let tell = tell.clone();
        let jobs = Jobs::new().on(move |run: &JobRun, _: Work| {
            tell.send("begins")?;
            run.token().wait();
            tell.send("is stopped")?;
            Ok(())
        });
        jobs.open(postgres(&executor, &server.url()).request_timeout(limit).lease(LEASE))
    });
    sender.now(Work { number: 1, millis: 0 }).max_attempts(100).enqueue().unwrap();
    receive(&told, "it begins");
    server.freeze();
    let asked = Instant::now();
    assert!(queue.cancel("nobody").is_err());
    assert!(asked.elapsed() >= limit);
    receive_until(&told, "it is stopped", |told| *told == "is stopped");
    server.thaw();
    sender.now(Work { number: 2, millis: 0 }).enqueue().unwrap();
    receive_until(&told, "it goes on", |told| *told == "begins");
    drop(queue);
}
