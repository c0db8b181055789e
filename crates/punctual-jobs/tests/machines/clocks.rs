//! A server whose clock is set while jobs run, and when a machine dies.

use std::{sync::mpsc, time::Duration};

use punctual::{CancellationToken, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobRun, JobState, Jobs, Schedule};

use crate::{
    kinds::{Tick, Wait, Work},
    machine::{beats, postgres, sender, start_mortal},
    support::{opened, receive, server::Server, wait_until},
};

/// How far the clock is set: by more than a lease.
const STEP: i64 = 60;
const LEASE: Duration = Duration::from_secs(20);

/// Of two machines the second one is heard, and sweeps, long before the first one prolongs its lease by the new clock.
#[test]
fn a_clock_that_is_set_ahead_begins_no_job_again() {
    let server = Server::start_with_clock();
    let (tell, told) = mpsc::channel();
    let go_on = CancellationToken::new();
    let executors = [3, 3].map(ScheduledThreadPoolExecutor::new);
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
    let queues = [open(&executors[0], LEASE / 2), open(&executors[1], LEASE / 200)];
    let enqueue = |number| {
        let job = queues[0].now(Work { number, millis: 0 }).max_attempts(1);
        job.enqueue().unwrap().id
    };
    let ids: Vec<_> = (0..6).map(enqueue).collect();
    for _ in &ids {
        receive(&told, "each begins");
    }
    server.set_clock(STEP);
    beats(&server, std::process::id(), 8);
    go_on.cancel();
    for id in ids {
        wait_until("its end", || queues[1].state(id).unwrap() == JobState::Gone);
    }
    assert!(told.try_recv().is_err(), "none began a second time");
}

/// The lease of the dead machine is not over by the server's clock when its job begins elsewhere.
#[test]
fn a_clock_that_is_set_back_delays_no_job_of_a_dead_machine() {
    let server = Server::start_with_clock();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut dying = start_mortal(&server, 0);
    let mut other = start_mortal(&server, 1);
    for number in 0..8 {
        queue.now(Wait { number }).enqueue().unwrap();
    }
    for machine in [&mut dying, &mut other] {
        machine.wait_for("waits");
    }
    let lease = format!("punctual.job_worker where id like '%:{} %'", dying.process());
    let is_over = format!("select max(until) < clock_timestamp() from {lease}");
    server.set_clock(-STEP);
    let theirs =
        format!("select count(*) from punctual.job where worker like '%:{} %'", dying.process());
    dying.kill();
    wait_until("what it held is free", || server.value(&theirs) == "0");
    assert_eq!(server.value(&is_over), "f", "by the server's clock it lives");
}

/// Ticks that have come before the clock was set back would come twice.
#[test]
fn a_clock_that_is_set_back_repeats_no_tick_of_a_schedule_that_is_put_or_resumed() {
    let server = Server::start_with_clock();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let every = |seconds| Schedule::every("a", Duration::from_secs(seconds), &Tick {});
    let ticks_from = || server.value("select extract(epoch from tick) from punctual.job_schedule");
    assert!(!queue.schedules().put(every(1)).call().unwrap());
    let before = ticks_from();
    server.set_clock(-STEP / 2);
    assert!(queue.schedules().put(every(2)).call().unwrap());
    assert_eq!(ticks_from(), before, "another one in its place");
    queue.schedules().pause("a").call().unwrap();
    queue.schedules().resume("a").call().unwrap();
    assert_eq!(ticks_from(), before, "after a pause");
    server.set_clock(STEP);
    assert!(queue.schedules().put(every(3)).call().unwrap());
    assert!(ticks_from() > before, "what has passed is left out");
}
