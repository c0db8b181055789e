//! Ticks that come while a job of the schedule waits or runs.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use punctual_jobs::{CatchUp, Job, JobLimit, JobRun, Overlap, PostgresQueue, Schedule};

use super::{Desk, SECOND};
use crate::{
    kinds::{Rationed, Stubborn, Wait, Work},
    support::{LONG, block_on, server::Server, wait_until},
};

/// A schedule whose jobs [`run_now`](punctual_jobs::Schedules::run_now) alone enqueues.
fn by_hand(name: &str, job: &impl Job, overlap: Overlap) -> Schedule {
    Schedule::cron(name, "0 0 1 1 *", "UTC", job).unwrap().overlap(overlap)
}

fn working(overlap: Overlap, millis: u64) -> Schedule {
    Schedule::every("a", SECOND / 4, &Work { number: 1, millis }).overlap(overlap)
}

#[test]
fn skip_leaves_out_the_ticks_beside_a_job() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(working(Overlap::Skip, 1100));
    for _ in 0..3 {
        desk.expect("work 1");
        desk.expect("worked 1");
    }
    // A tick that comes while a job is there has none, and all are accounted for.
    desk.until("a", |status| {
        assert!(status.outstanding <= 1, "{status}");
        status.skipped >= 6 && status.enqueued >= 3
    });
}

#[test]
fn queue_one_keeps_one_waiting() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(working(Overlap::QueueOne, 1100));
    desk.until("a", |status| {
        assert!(status.outstanding <= 2, "{status}");
        status.enqueued >= 4
    });
    for _ in 0..3 {
        desk.expect("work 1");
        desk.expect("worked 1");
    }
}

#[test]
fn allow_has_as_many_at_once() {
    let server = Server::start();
    let desk = Desk::open(&server);
    // They end with the test.
    desk.put(Schedule::every("a", SECOND / 4, &Wait { number: 7 }).overlap(Overlap::Allow(3)));
    desk.until("a", |status| {
        assert!(status.outstanding <= 3, "{status}");
        status.skipped > 3
    });
    for _ in 0..3 {
        desk.expect("waits 7");
    }
    assert_eq!(desk.queue.schedules().run_now("a").call().unwrap(), None, "there is no room");
}

/// The schedule may have six jobs, of which two run at once over both machines.
#[test]
fn a_limited_kind_with_a_schedule_has_both() {
    let server = Server::start();
    let runs = Arc::<[AtomicUsize; 3]>::default();
    let open = || {
        let runs = Arc::clone(&runs);
        Desk::open_with(&server, |jobs| {
            let runs = Arc::clone(&runs);
            let jobs = jobs.on(move |run: &JobRun, _: Rationed| {
                let now = runs[0].fetch_add(1, Ordering::SeqCst) + 1;
                runs[1].fetch_max(now, Ordering::SeqCst);
                let slept = run.token().sleep(SECOND / 3);
                runs[0].fetch_sub(1, Ordering::SeqCst);
                runs[2].fetch_add(1, Ordering::SeqCst);
                Ok(slept?)
            });
            jobs.limit::<Rationed>(JobLimit::at_once(2))
        })
    };
    let (desk, _other) = (open(), open());
    let job = Rationed { number: 1, millis: 0 };
    desk.put(Schedule::every("a", SECOND / 10, &job).overlap(Overlap::Allow(6)));
    desk.until("a", |status| {
        assert!(status.outstanding <= 6, "{status}");
        let is_full = status.outstanding == 6 && status.skipped > 3;
        is_full && runs[2].load(Ordering::SeqCst) >= 8
    });
    assert_eq!(runs[1].load(Ordering::SeqCst), 2, "two ran at once, and never three");
}

#[test]
fn replace_cancels_the_running_one_and_begins_when_it_has_returned() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(Schedule::every("a", SECOND, &Wait { number: 7 }).overlap(Overlap::Replace));
    for _ in 0..3 {
        desk.expect("waits 7");
        desk.expect("stopped Some(Cancelled)");
    }
    let status = desk.status("a");
    assert!(status.outstanding <= 2 && status.skipped == 0, "{status}");
    let discarded =
        "select count(*) from punctual.job where claim is null and attempts >= max_attempts";
    assert_eq!(server.value(discarded), "0", "a cancelled job is not tried again");
}

/// A job that waits for its next attempt is a job of the schedule.
#[test]
fn a_retry_counts_as_a_job_that_waits() {
    let failing = |overlap| {
        let server = Server::start();
        let desk = Desk::open(&server);
        let job = Stubborn { number: 1, millis: 0, fails: true };
        desk.put(Schedule::every("a", SECOND / 2, &job).overlap(overlap));
        desk.expect("attempt 1");
        (server, desk)
    };
    let more = |desk: &Desk| desk.until("a", |status| status.skipped + status.enqueued > 4);
    let (_server, desk) = failing(Overlap::Skip);
    more(&desk);
    let attempts: Vec<String> = desk.said.try_iter().collect();
    assert!(attempts.is_empty(), "it waits for its next attempt: {attempts:?}");
    assert_eq!(desk.status("a").enqueued, 1);
    let (_server, desk) = failing(Overlap::QueueOne);
    desk.expect("attempt 2");
    desk.expect("attempt 3");
    assert_eq!(desk.status("a").enqueued, 1);
    let (_server, desk) = failing(Overlap::Replace);
    more(&desk);
    let attempts: Vec<String> = desk.said.try_iter().collect();
    assert!(attempts.iter().all(|attempt| attempt == "attempt 1"), "{attempts:?}");
    assert!(desk.status("a").enqueued > 1);
}

#[test]
fn jobs_of_a_schedule_that_is_removed_go_on() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(working(Overlap::QueueOne, 700));
    desk.until("a", |status| status.outstanding == 2);
    desk.expect("work 1");
    assert!(desk.queue.schedules().remove("a").call().unwrap());
    desk.wait_for("worked 1");
    desk.wait_for("worked 1");
    assert!(desk.meanwhile(5).is_empty(), "no other comes");
}

/// Each counts what the others have enqueued, however close they come.
#[test]
fn jobs_that_several_run_at_once_have_room() {
    let server = Server::start();
    let desks: Vec<_> = (0..4).map(|_| Desk::open(&server)).collect();
    for round in 0..20 {
        let name = format!("a{round}");
        desks[0].put(by_hand(&name, &Work { number: 1, millis: 1 }, Overlap::Allow(1)));
        // They wait: none is claimed.
        server.sql("update punctual.job_schedule set kind = 'unknown'");
        let run =
            |queue: &PostgresQueue| queue.schedules().run_now(&name).call().unwrap().is_some();
        let queues: Vec<_> = desks.iter().chain(&desks).map(|desk| &desk.queue).collect();
        let run: usize = std::thread::scope(|scope| {
            let begin = |queue| scope.spawn(move || run(queue));
            let all: Vec<_> = queues.into_iter().map(begin).collect();
            all.into_iter().map(|it| usize::from(it.join().unwrap())).sum()
        });
        assert_eq!((run, desks[0].status(&name).outstanding), (1, 1), "{name}");
    }
}

#[test]
fn what_is_run_by_hand_replaces_also_a_job_that_is_locked_for_a_moment() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(by_hand("a", &Wait { number: 7 }, Overlap::Replace));
    let run = || desk.queue.schedules().run_now("a");
    run().call().unwrap().unwrap();
    desk.expect("waits 7");
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        transaction.batch_execute("select from punctual.job for update").await.unwrap();
        let answer = run().call_async();
        std::thread::sleep(SECOND / 2);
        transaction.rollback().await.unwrap();
        assert!(answer.await.unwrap().is_some(), "replace always has room");
    });
    desk.expect("stopped Some(Cancelled)");
    desk.expect("waits 7");
    assert_eq!(desk.queue.schedules().run_now("b").call().unwrap(), None, "there is none");
}

/// It takes the place of the last one at once on this machine, whose next heartbeat would say so when this test is long over.
#[test]
fn what_is_run_by_hand_cancels_the_run_of_this_machine_at_once() {
    let server = Server::start();
    let desk = Desk::open_as(&server, |jobs| jobs, |settings| settings.heartbeat(LONG / 3));
    desk.put(by_hand("a", &Wait { number: 7 }, Overlap::Replace));
    desk.queue.schedules().run_now("a").call().unwrap().unwrap();
    desk.expect("waits 7");
    desk.queue.schedules().run_now("a").call().unwrap().unwrap();
    desk.expect("stopped Some(Cancelled)");
}

#[test]
fn a_job_that_waits_for_its_next_attempt_is_run_by_hand_and_as_the_schedule_says_now() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let job = Stubborn { number: 1, millis: 0, fails: true };
    desk.put(by_hand("a", &job, Overlap::QueueOne));
    let has_failed =
        || server.value("select count(*) from punctual.job where claim is null") == "1";
    let run = || desk.queue.schedules().run_now("a").call().unwrap();
    let id = run().unwrap();
    desk.expect("attempt 1");
    wait_until("it waits for its next attempt", has_failed);
    assert_eq!(run(), Some(id), "the same job");
    desk.expect("attempt 2");
    wait_until("it waits for its next attempt", has_failed);
    // One that is right now, and has no more attempts than the old one has had.
    let job = Work { number: 2, millis: 0 };
    desk.put(by_hand("a", &job, Overlap::QueueOne).max_attempts(2));
    assert_eq!(run(), Some(id), "the same job");
    desk.expect("work 2");
    desk.until("a", |status| status.outstanding == 0 && status.enqueued == 1);
}

/// Two ticks that are due together: one that waited for room would wait for a job that only it can end.
#[test]
fn replace_makes_up_for_several_with_one_job() {
    let server = Server::start();
    let desk = Desk::open(&server);
    let schedule = Schedule::every("a", 30 * SECOND, &Wait { number: 7 });
    desk.put(schedule.overlap(Overlap::Replace).catch_up(CatchUp::Each(3600 * SECOND)));
    desk.queue.schedules().run_now("a").call().unwrap().unwrap();
    desk.expect("waits 7");
    server.sql(
        "update punctual.job_schedule set tick = tick - interval '5 minutes', next_at = now(), \
         revision = nextval('punctual.job_claim')",
    );
    desk.expect("stopped Some(Cancelled)");
    desk.expect("waits 7");
    desk.until("a", |status| status.missed >= 8);
}

#[test]
fn there_is_room_for_one_at_least() {
    let server = Server::start();
    let desk = Desk::open(&server);
    desk.put(by_hand("a", &Work { number: 1, millis: 0 }, Overlap::Allow(0)));
    assert!(desk.queue.schedules().run_now("a").call().unwrap().is_some());
    desk.expect("work 1");
}
