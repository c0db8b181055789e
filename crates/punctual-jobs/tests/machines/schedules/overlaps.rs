//! Ticks that come while a job of the schedule waits or runs.

use punctual_jobs::{Overlap, Schedule};

use super::{Desk, SECOND};
use crate::{
    kinds::{Stubborn, Wait, Work},
    support::server::Server,
};

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
    let status = desk.status("a");
    assert!(status.outstanding <= 1, "{status}");
    assert!(status.skipped >= 6 && status.skipped + status.enqueued >= 11, "{status}");
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
    desk.put(working(Overlap::Allow(3), 2500));
    desk.until("a", |status| {
        assert!(status.outstanding <= 3, "{status}");
        status.skipped > 3
    });
    for _ in 0..3 {
        desk.expect("work 1");
    }
    assert_eq!(desk.queue.schedules().run_now("a").call().unwrap(), None, "there is no room");
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
        desk.until("a", |status| status.skipped + status.enqueued > 4);
        let mut attempts: Vec<String> = desk.said.try_iter().collect();
        attempts.truncate(2);
        let status = desk.status("a");
        (attempts, status.enqueued)
    };
    let (attempts, enqueued) = failing(Overlap::Skip);
    assert!(attempts.is_empty() && enqueued == 1, "it waits for its next attempt: {attempts:?}");
    let (attempts, enqueued) = failing(Overlap::QueueOne);
    assert_eq!(
        (attempts.as_slice(), enqueued),
        (&["attempt 2".to_owned(), "attempt 3".to_owned()][..], 1)
    );
    let (attempts, enqueued) = failing(Overlap::Replace);
    assert!(attempts.iter().all(|attempt| attempt == "attempt 1") && enqueued > 1, "{attempts:?}");
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
    assert!(desk.said.recv_timeout(2 * SECOND).is_err(), "no other comes");
}
