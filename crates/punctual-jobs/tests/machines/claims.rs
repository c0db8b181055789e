//! Claims that are cancelled elsewhere, lost, or released (J6).

use std::time::Duration;

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{Job, JobChange, JobError, JobRun, JobState, Jobs};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::{
    kinds::{RATIONED_AT_ONCE, Rationed, Wait, Work},
    machine::{LEASE, beats, postgres, sender, start, start_mortal, start_that_polls, start_with},
    support::{opened, receive, server::Server, wait_until},
};

#[test]
fn a_cancel_from_another_machine_raises_the_token() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut machine = start(&server, 0);
    let ticket = queue.now(Wait { number: 1 }).key("k").enqueue().unwrap();
    machine.wait_for("waits");
    assert_eq!(queue.cancel("k").unwrap(), JobChange::Signalled);
    machine.wait_for("Cancelled");
    assert_eq!(machine.wait_for("stopped"), [1, 0], "the claim still stood");
    wait_until("it is gone", || queue.state(ticket.id).unwrap() == JobState::Gone);
    // Nothing is left of it.
    queue.now(Work { number: 2, millis: 0 }).enqueue().unwrap();
    assert_eq!(machine.wait_for("ran")[0], 2);
    assert_eq!(server.value("select count(*) from punctual.job where key = 'k'"), "0");
}

#[test]
fn a_machine_that_was_believed_dead_learns_it() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut frozen = start_mortal(&server, 0);
    queue.now(Wait { number: 1 }).max_attempts(100).enqueue().unwrap();
    frozen.wait_for("waits");
    let mut other = start(&server, 1);
    frozen.signal(Signal::STOP);
    let taken_over = other.wait_for("waits");
    assert!(taken_over[1] >= 2, "taken over, and the attempt counts: {taken_over:?}");
    frozen.signal(Signal::CONT);
    frozen.wait_for("ClaimLost");
    assert_eq!(frozen.wait_for("stopped"), [1, 1], "its token is cancelled, and it gets no fence");
    // The claim of the other one stands.
    beats(&server, frozen.process(), 4);
    let waiting = "select count(*) from punctual.job where claim is not null";
    assert_eq!(server.value(waiting), "1");
    // And the first works on.
    for number in 10..14 {
        queue.now(Work { number, millis: 100 }).enqueue().unwrap();
    }
    drop(other);
    assert!(frozen.wait_for("ran")[0] >= 10);
}

#[test]
fn a_claim_that_somebody_has_freed_is_noticed() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut machine = start(&server, 0);
    queue.now(Wait { number: 1 }).max_attempts(3).enqueue().unwrap();
    machine.wait_for("waits");
    server.sql(
        "update punctual.job set claim = null, worker = null, claimed_at = null where claim is not null",
    );
    // The same machine may claim it again before it learns of this: a second run of the same job.
    machine.wait_for("ClaimLost");
    assert_eq!(machine.wait_for("stopped"), [1, 1], "its token is cancelled, and it gets no fence");
}

/// The other machine looks by itself once an hour. It is told when the ordering key and the slots of a dead one are free.
#[test]
fn what_a_dead_machine_holds_is_free_without_a_poll() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let hour = Duration::from_secs(3600);
    let orders = format!("poll={}\nlease={}", hour.as_millis(), LEASE.as_millis());
    let mut dying = start_with(&server, 0, &orders);
    queue.now(Wait { number: 1 }).ordering_key("k").max_attempts(100).enqueue().unwrap();
    dying.wait_for("waits");
    for _ in 0..RATIONED_AT_ONCE {
        let rationed = queue.now(Rationed { number: 2, millis: 3_600_000 });
        rationed.max_attempts(100).enqueue().unwrap();
        dying.wait_for("rationed");
    }
    let mut other = start_that_polls(&server, 1, hour);
    queue.now(Work { number: 3, millis: 0 }).ordering_key("k").enqueue().unwrap();
    queue.now(Rationed { number: 4, millis: 0 }).enqueue().unwrap();
    // What comes behind them has run, so these were looked at in vain.
    queue.now(Work { number: 5, millis: 0 }).enqueue().unwrap();
    assert_eq!(other.wait_for("ran")[0], 5);
    dying.kill();
    // In whichever order.
    for (word, number) in [("ran", 3), ("rationed", 4)] {
        let mut said = other.said.iter();
        if !said.any(|said| said.word == word && said.numbers[0] == number) {
            assert_eq!(other.wait_for(word)[0], number);
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Obedient {
    obeys: bool,
}

impl Job for Obedient {
    const NAME: &'static str = "obedient";
}

#[test]
fn a_shutdown_releases_what_does_not_end() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    let (tell, told) = std::sync::mpsc::channel();
    let release = punctual::CancellationToken::new();
    let released = release.clone();
    let first = opened(|| {
        let (tell, released) = (tell.clone(), released.clone());
        let on_first = Jobs::new().on(move |run: &JobRun, job: Obedient| {
            tell.send(())?;
            if job.obeys {
                run.token().wait();
                return Ok(());
            }
            released.wait();
            Err(JobError::new("too late"))
        });
        on_first.open(postgres(&executor, &server.url()))
    });
    for obeys in [true, true, false, false] {
        first.now(Obedient { obeys }).enqueue().unwrap();
    }
    (0..4).for_each(|_| receive(&told, "all four begin"));
    // Those that obey end within the grace; on a busy machine it has to be longer.
    let report = first
        .shutdown_within(Grace::patience(Duration::from_millis(100)).then(Duration::from_secs(5)))
        .unwrap();
    assert_eq!((report.ran.len(), report.released.len()), (2, 2), "{report:?}");
    assert_eq!(report.still_running.len(), 2, "{report:?}");
    assert!(report.released.iter().all(|job| job.attempts == 0));
    let free = "select count(*) from punctual.job where attempts = 0 and claim is null";
    assert_eq!(server.value(free), "2");

    let (tell, told) = std::sync::mpsc::channel();
    let second = opened(|| {
        let tell = tell.clone();
        let on_second = Jobs::new().on(move |run: &JobRun, job: Obedient| {
            tell.send((job.obeys, run.attempt))?;
            Ok(())
        });
        on_second.open(postgres(&executor, &server.url()).slots(2))
    });
    let elsewhere = [(); 2].map(|()| receive(&told, "it runs elsewhere"));
    assert_eq!(elsewhere, [(false, 1), (false, 1)]);
    release.cancel();
    drop(second);
}
